"""Plots of fitted classifiers: each function draws on matplotlib axes and returns them.

All take models inside pipelines, searches and `RejectClassifier`, and `ax=` to draw on given axes.
Colors are those of M. Okabe and K. Ito, "Color Universal Design", 2008, which differ for every
common color vision, and marks, lines and hatches differ with them. Names from the data are never
read as mathematics.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ... import RejectClassifier
from ...errors import KernelpoolError
from ...inspection import FittedPipeline, ambiguity_of, bin_sums, binomial_interval, coverage_curve
from ...text import text_of

__all__ = [
    "plot_calibration",
    "plot_kernels",
    "plot_novelty",
    "plot_reject_curve",
]

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
MARKS = ("o", "s", "^", "D", "v", "P", "X")

MOST_KEYS = 15
"""Classes in a legend."""

MOST_PROJECTED = 300
"""Features that a direction is made of."""

MOST_POINTS = 600
"""Rows that are drawn."""

MOST_ELLIPSES = 30
"""Kernels that are drawn."""

LINES = ("-", "--", "-.", ":")
DARK = "#222222"
GRAY = "#6b6b6b"
RULE = "#dddddd"

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRAY,
    "axes.grid": True,
    "axes.labelcolor": DARK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9.5,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "text.color": DARK,
    "text.parse_math": False,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
}


def color_of(code: int) -> str:
    """The color of a class, by its code."""
    return COLORS[code % len(COLORS)]


def mark_of(code: int) -> str:
    """The mark of a class, by its code: with the color, 49 classes differ."""
    return MARKS[(code + code // len(COLORS)) % len(MARKS)]


def styled(width: float, height: float) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Let a function draw in the common style, on given axes or on a new figure, in inches."""

    def decorated(function: Callable[..., None]) -> Callable[..., Any]:
        @wraps(function)
        def plot(*args: Any, ax: Any = None, **kwargs: Any) -> Any:
            try:
                import matplotlib.pyplot as plt
                from matplotlib.text import Text
            except ImportError as error:
                raise ImportError(
                    "Plots need matplotlib: pip install '.[plot]' in kernelpool's folder."
                ) from error
            with plt.rc_context(STYLE):
                if ax is None:
                    ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
                function(*args, ax=ax, **kwargs)
            for text in ax.findobj(Text):
                text.set_parse_math(False)
            return ax

        return plot

    return decorated


def codes_of(y: Any, classes: Any) -> np.ndarray:
    """Position of each label among the classes; -1 where it is none of them, (n,)."""
    place = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([place.get(label, -1) for label in np.asarray(y).ravel().tolist()], np.int64)


def separating(x: np.ndarray, codes: np.ndarray, features: list[int], most: int) -> list[int]:
    """The features along which classes lie farthest apart, in deviations; in their order."""
    if len(features) <= most:
        return features
    z = x[:, features]
    apart = np.zeros(len(features))
    for j, spread in enumerate(np.nanvar(z, axis=0)):
        known = ~np.isnan(z[:, j]) & (codes >= 0)
        means = [z[known & (codes == k), j].mean() for k in np.unique(codes[known])]
        apart[j] = np.var(means) / spread if spread > 0 and means else 0.0
    return sorted(features[j] for j in np.argsort(-apart, kind="stable")[:most])


# -- how good a classifier is ----------------------------------------------------------------------


@styled(4.6, 4.4)
def plot_calibration(model: Any, X: Any, y: Any, *, ax: Any = None) -> None:
    """How often labels are right against the probability of the label, on held-out rows.

    Rows are put into ten bins of equal width by the probability of their most probable class. The
    expected calibration error (ECE) is the mean distance from the diagonal, weighted by rows.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`, of any number of classes.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        With 95 % intervals as bars.
    """
    probability = np.asarray(model.predict_proba(X), np.float64)
    right = probability.argmax(axis=1) == codes_of(y, model.classes_)
    draw_calibration(bin_sums(probability.max(axis=1), right), ax)


def draw_calibration(bins: np.ndarray, ax: Any) -> None:
    """Rows, sum of probabilities and rows that are right, in each bin, (n_bins, 3)."""
    n, sure, right = bins[bins[:, 0] > 0].T
    error = np.abs(sure - right).sum() / n.sum()
    low, high = binomial_interval(right, n)
    x = sure / n
    share = right / n
    left = max(0.0, min(float(x.min()), float(low.min())) - 0.05)
    reach = np.clip([share - low, high - share], 0, None)
    ax.plot([left, 1], [left, 1], ":", color=GRAY, label="perfectly calibrated")
    ax.errorbar(x, share, reach, fmt="o", color=COLORS[0], capsize=3, label=f"ECE {error:.3f}")
    for place, top, rows in zip(x, high, n, strict=True):
        at = {"textcoords": "offset points", "ha": "center", "size": 7}
        ax.annotate(f"{rows:,.0f}", (place, top), (0, 3), **at)
    ax.set(xlabel="probability of the label", ylabel="share of rows whose label is right")
    ax.set(xlim=(left, 1.02), ylim=(left, 1.08))
    ax.legend(loc="upper left")


@styled(5.6, 3.8)
def plot_reject_curve(model: Any, X: Any, y: Any, *, ax: Any = None) -> None:
    """The error of accepted rows against the share that is accepted, on held-out rows.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`. The thresholds of a `RejectClassifier` are marked, and rows
        that it finds novel are never accepted.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their classes.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        With the 95 % interval as a band.
    """
    probability = np.asarray(model.predict_proba(X), np.float64)
    wrong = probability.argmax(axis=1) != codes_of(y, model.classes_)
    decision = model.decide(X) if isinstance(model, RejectClassifier) else np.zeros(len(wrong))
    draw_reject_curve(ambiguity_of(probability), wrong, decision, ax)


def draw_reject_curve(
    ambiguity: np.ndarray, wrong: np.ndarray, decision: np.ndarray, ax: Any
) -> None:
    """Of rows, (n,): ambiguity, whether wrong, and decision (1: ambiguous, 2: novel)."""
    n = len(wrong)
    taken = decision == 0
    coverage, error, _ = coverage_curve(ambiguity, wrong, np.ones(n), decision == 2)
    if not len(coverage):
        raise KernelpoolError("There is no reject curve: every row is novel to the model.")
    at = np.unique(np.searchsorted(coverage, np.linspace(coverage[0], coverage[-1], 300)))
    at = at[at < len(coverage)]
    accepted = np.rint(coverage[at] * n)
    low, high = binomial_interval(np.rint(error[at] * accepted), accepted)
    x = 100 * coverage[at]
    look = {"color": COLORS[0]}
    ax.fill_between(x, 100 * low, 100 * high, alpha=0.18, linewidth=0, **look)
    ax.plot(x, 100 * error[at], linewidth=2.2, label="most certain rows first", **look)
    ax.axhline(100 * error[-1], color=GRAY, linestyle="--", label="rows in random order")
    if not taken.all() and taken.any():
        used = 100 * taken.mean(), 100 * wrong[taken].mean()
        label = f"in use: {used[0]:.0f} % accepted, {used[1]:.1f} % wrong"
        ax.plot(*used, "*", color=COLORS[1], markersize=11, markeredgecolor=DARK, label=label)
    top = 100 * (error[coverage > 0.2].max(initial=error[-1]) or high[-1])  # no row may be wrong
    ax.set(xlabel="rows accepted, %", ylabel="error of accepted rows, %", xlim=(0, 101))
    ax.set_ylim(0, 1.6 * top)
    ax.legend(loc="upper left")


@styled(6.0, 3.8)
def plot_novelty(model: Any, X: Any, X_test: Any = None, *, ax: Any = None) -> None:
    """Histograms of log p(x), with the threshold below which a `RejectClassifier` finds rows novel.

    Parameters
    ----------
    model : classifier
        Fitted, with `score_samples`.
    X : array-like of shape (n_samples, n_features)
        Rows, as a rule those of the fit.
    X_test : array-like of shape (n_test_samples, n_features), default=None
        Other rows.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        The first bar also holds all rows below it.
    """
    if not hasattr(model, "score_samples"):
        raise KernelpoolError(
            f"plot_novelty needs score_samples, log p(x); {type(model).__name__} has none."
        )
    threshold = model.novelty_threshold_ if isinstance(model, RejectClassifier) else None
    tables = {"training rows": X} if X_test is None else {"training rows": X, "test rows": X_test}
    scores = {name: np.asarray(model.score_samples(table)) for name, table in tables.items()}
    draw_novelty(scores, {"novel below": threshold}, ax)


def draw_novelty(
    scores: dict[str, np.ndarray], thresholds: dict[str, float | None], ax: Any
) -> None:
    """Of sets of rows by name, with lines at thresholds by name."""
    finite = [score[np.isfinite(score)] for score in scores.values()]
    lines = {name: t for name, t in thresholds.items() if t is not None and np.isfinite(t)}
    high = max((float(score.max()) for score in finite if len(score)), default=1.0)
    low = float(np.quantile(finite[0], 0.002)) if len(finite[0]) else high - 1
    low -= 0.25 * (high - low) or 0.5
    low = min([low, *(t - 0.1 * (high - t) for t in lines.values() if t > 3 * low - 2 * high)])
    edges = np.linspace(low, high, 41)
    for i, (name, score) in enumerate(scores.items()):
        inside = np.clip(np.where(np.isnan(score), low, score), low, high)
        share = 100 * np.histogram(inside, edges)[0] / max(1, len(score))
        face = (
            {"hatch": "///", "facecolor": "none"}
            if i
            else {"facecolor": color_of(i), "alpha": 0.45}
        )
        label = f"{name} ({len(score):,})"
        ax.stairs(
            share, edges, fill=True, edgecolor=color_of(i), linewidth=1.6, label=label, **face
        )
    for i, (name, t) in enumerate(lines.items()):
        at = min(max(t, low), high)
        label = f"{name} {t:.4g}" + ("" if at == t else " ←" if t < low else " →")
        ax.axvline(at, color=DARK, linewidth=2, linestyle=LINES[i + 1], label=label)
    ax.set(xlabel="log p(x)", ylabel="share of the rows, %")
    ax.legend(loc="best")


# -- what a classifier is made of ------------------------------------------------------------------


@styled(6.4, 4.8)
def plot_kernels(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Sequence[Any] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> None:
    """Rows and kernels along two axes; a kernel of more features is drawn as its projection.

    Of many, 600 random rows and the 30 greatest kernels are drawn.

    Parameters
    ----------
    model : classifier
        Fitted, whose kernels have means.
    X : array-like of shape (n_samples, n_features)
        Rows to draw, as far as their features are known.
    y : array-like of shape (n_samples,)
        Their classes.
    features : two ints or names, default=None
        The axes; None takes both features where there are two numbers, else the two directions in
        which the classes differ most (linear discriminant analysis; the two features, where every
        row has a missing cell). Categories are left out.
    legend : bool, default=True
        Whether to draw the legend.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        Ellipses are two standard deviations wide, broken lines kernels that several classes share.
        The background has the color of the decision where these two features alone are known, which
        is not drawn along directions.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.app.report.plots import plot_kernels
    >>> X, y = make_clouds(random_state=0)
    >>> model = SharedKernelClassifier.prbf(n_kernels=8, random_state=0).fit(X, y)
    >>> ax = plot_kernels(model, X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('feature 0', 'feature 1')
    """
    inside = FittedPipeline(model, X)
    if inside.kernels is None:
        raise KernelpoolError(
            f"plot_kernels needs a model whose kernels have means; "
            f"{type(inside.model).__name__} has none."
        )
    codes = codes_of(y, inside.outer.classes_)
    draw_kernels(inside, inside.rows(X), codes, ax, features, legend)


def draw_kernels(
    inside: FittedPipeline,
    x: np.ndarray,
    codes: np.ndarray,
    ax: Any,
    features: Sequence[Any] | None = None,
    legend: bool = True,
) -> None:
    """Of rows as the model inside has them, (n, d), with the codes of their classes, (n,)."""
    table = inside.kernels
    classes = np.asarray(inside.outer.classes_)
    at, axes, names = _plane(inside, x, codes, features)
    known = np.flatnonzero(~np.isnan(x[:, at]).any(axis=1))
    few = np.random.default_rng(0).permutation(known)[:MOST_POINTS]
    points = x[few][:, at] @ axes
    greatest = table.largest(MOST_ELLIPSES)
    centers = table.mean[greatest][:, at] @ axes
    covariances = [axes.T @ inside.covariance(j, at) @ axes for j in greatest.tolist()]
    ax.set(xlabel=text_of(names[0], 60), ylabel=text_of(names[1], 60))
    for axis, name in zip((ax.xaxis, ax.yaxis), names, strict=True):
        if name in inside.dates:
            axis.axis_date()
    for label, edge, middle in ((ax.set_xlim, 0, centers[:, 0]), (ax.set_ylim, 1, centers[:, 1])):
        label(*_limits(points[:, edge], middle))
    codes_drawn: list[int] = []
    if len(at) == 2 and not inside.made:
        codes_drawn = _draw_regions(inside, at, len(classes), ax)
    for code in range(-1, len(classes)):
        color, mark = (GRAY, ".") if code < 0 else (color_of(code), mark_of(code))
        here = points[codes[few] == code]
        ax.scatter(*here.T, color=color, marker=mark, s=14, alpha=0.55, linewidths=0, zorder=2)
    shares = table.class_posterior[greatest]
    _draw_ellipses(centers, covariances, shares, ax)
    if legend:
        _draw_legend(classes, shares, len(table) - len(greatest), codes_drawn, table.word, ax)


def _plane(
    inside: FittedPipeline, x: np.ndarray, codes: np.ndarray, features: Sequence[Any] | None
) -> tuple[list[int], np.ndarray, tuple[str, str]]:
    """Features of the model, the two axes in them, (d, 2), and the names of the axes."""
    numbers = inside.numbers
    names = inside.features
    complete = ~np.isnan(x[:, numbers]).any(axis=1)
    if features is None and (len(numbers) == 2 or not complete.any()):
        features = separating(x, codes, numbers, 2)
    if features is None and len(numbers) > 2:
        at = separating(x, codes, numbers, MOST_PROJECTED)
        axes = discriminants(x[complete][:, at], codes[complete])
        return at, axes, ("discriminant 1", "discriminant 2")
    known: dict[Any, int] = {**{names[i]: i for i in numbers}, **{i: i for i in numbers}}
    at = [known.get(feature, -1) for feature in features or ()]
    if len(set(at)) != 2 or -1 in at:
        raise KernelpoolError(
            f"plot_kernels needs two numeric features, of {[names[i] for i in numbers][:8]}; "
            f"got {features!r}."
        )
    return at, np.eye(2), (names[at[0]], names[at[1]])


def discriminants(x: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The directions in which classes lie farthest apart, as in linear discriminant analysis,
    (d, 2); where there are fewer than two, those of greatest variance follow.

    They maximize a'Ta / a'(0.9 W + 0.1 I)a, T the total and W the within-class covariance of
    standardized features: shrunk, for there may be more features than rows.
    """
    deviation = x.std(axis=0)
    deviation[deviation == 0] = 1.0
    z = (x - x.mean(axis=0)) / deviation
    within = z.copy()
    for code in np.unique(codes):
        within[codes == code] -= z[codes == code].mean(axis=0)
    total, spread = (rows.T @ rows / len(x) for rows in (z, within))
    axes = eigh(total, 0.9 * spread + 0.1 * np.eye(len(spread)))[1][:, :-3:-1]
    axes = axes / deviation[:, None]
    spread = (x @ axes).std(axis=0)
    return np.asarray(axes / np.where(spread > 1e-300, spread, 1.0))


def _limits(points: np.ndarray, centers: np.ndarray) -> tuple[float, float]:
    """All rows but the outermost, and centers that are not far from them."""
    if not len(points):
        points = centers
    low, high = np.quantile(points, [0.005, 0.995])
    reach = (high - low) or 1.0
    both = np.append(points, centers)
    both = both[(both >= low - 0.2 * reach) & (both <= high + 0.2 * reach)]
    return both.min() - 0.06 * reach, both.max() + 0.06 * reach


def regions_of(
    inside: FittedPipeline,
    pair: Sequence[int],
    across: np.ndarray,
    up: np.ndarray,
    decide: bool = True,
) -> Any:
    """Codes of the most probable classes where two input columns alone are known, (up, across).

    With `decide`, K where a rejecting classifier finds the row ambiguous, K + 1 where novel. None
    where the classifier takes no missing values.
    """
    model = inside.outer
    x = np.full((len(up) * len(across), len(inside.names)), np.nan)
    x[:, list(pair)] = np.column_stack(
        [coordinates.ravel() for coordinates in np.meshgrid(across, up)]
    )
    rows = inside.input.decode(x)
    try:
        code = np.asarray(model.predict_proba(rows)).argmax(axis=1)
        if decide and isinstance(model, RejectClassifier):
            decision = model.decide(rows)
            code = np.where(decision > 0, len(model.classes_) - 1 + decision, code)
    except ValueError:
        return None
    return code.reshape(len(up), len(across))


def _draw_regions(inside: FittedPipeline, pair: list[Any], n_classes: int, ax: Any) -> list[int]:
    """The background, and the codes of the decisions in it."""
    from matplotlib.colors import to_rgba_array

    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    across = np.linspace(left, right, 100)
    up = np.linspace(low, high, 100)
    code = regions_of(inside, pair, across, up)
    if code is None:
        return []
    colors = to_rgba_array([*map(color_of, range(n_classes)), "0.65", "0.3"])[:, :3]
    extent = (left, right, low, high)
    shade = 1 - 0.2 * (1 - colors)
    ax.imshow(shade[code], extent=extent, origin="lower", aspect="auto", zorder=0)
    codes: list[int] = np.unique(code).tolist()
    for k in codes if len(codes) > 1 else []:
        here = (code == k).astype(float)
        ax.contour(across, up, here, levels=[0.5], colors=GRAY, linewidths=0.8, zorder=1)
        if k >= n_classes:
            hatch = ["xxx" if k == n_classes else "///"]
            drawn = ax.contourf(across, up, here, levels=[0.5, 1.5], colors="none", hatches=hatch)
            drawn.set(edgecolor="#b0b0b0", linewidth=0)
    return codes


def _draw_ellipses(centers: np.ndarray, covariances: Any, shares: np.ndarray, ax: Any) -> None:
    """Two deviations wide, in the mixed colors of their classes, broken where no class has nine
    tenths of a kernel.
    """
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import Ellipse

    mixed = 0.85 * shares @ to_rgba_array([*map(color_of, range(shares.shape[1]))])[:, :3]
    for center, covariance, share, color in zip(centers, covariances, shares, mixed, strict=True):
        value, vector = np.linalg.eigh(covariance)
        short, long = 4 * np.sqrt(np.maximum(value, 0))
        angle = np.degrees(np.arctan2(vector[1, 1], vector[0, 1]))
        line = "-" if share.max() >= 0.9 else (0, (3, 1.6))
        for look in (
            {"edgecolor": "white", "linewidth": 3.6, "zorder": 3},
            {"edgecolor": np.clip(color, 0, 1), "linewidth": 2.0, "linestyle": line, "zorder": 4},
        ):
            ax.add_patch(Ellipse(center, long, short, angle=angle, fill=False, **look))
        k = int(share.argmax())
        ax.plot(*center, mark_of(k), color=color_of(k), markeredgecolor=DARK, zorder=5)


def _draw_legend(
    classes: np.ndarray, shares: np.ndarray, n_more: int, drawn: list[int], word: str, ax: Any
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = [
        Line2D([], [], linestyle="", marker=mark_of(k), color=color_of(k), label=text_of(label, 30))
        for k, label in enumerate(classes.tolist()[:MOST_KEYS])
    ]
    if len(classes) > MOST_KEYS:
        more = f"({len(classes) - MOST_KEYS:,} more classes)"
        keys.append(Line2D([], [], linestyle="", label=more))
    pure = shares.max(axis=1) >= 0.9
    if pure.any():
        keys.append(Line2D([], [], color=DARK, label=f"{word} of one class"))
    if not pure.all():
        keys.append(
            Line2D([], [], color=DARK, linestyle=(0, (2, 1.2)), label=f"{word} that is shared")
        )
    if n_more:
        keys.append(Line2D([], [], linestyle="", label=f"({n_more:,} more {word}s)"))
    for k, name, hatch in ((0, "ambiguous", "xxx"), (1, "novel", "///")):
        if len(classes) + k in drawn:
            keys.append(Patch(facecolor="#eeeeee", edgecolor="#b0b0b0", hatch=hatch, label=name))
    ax.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
