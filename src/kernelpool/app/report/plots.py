"""Plots of fitted classifiers: each function draws on matplotlib axes and returns them.

All take models inside pipelines, searches and `RejectClassifier`, or the `Results` of `evaluate`
instead of a model and its rows, and `ax=` to draw on given axes. Colors are those of M. Okabe and
K. Ito, "Color Universal Design", 2008, which differ for every common color vision, and marks, lines
and hatches differ with them. Names from the data are never read as mathematics.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ...errors import KernelpoolError
from ...inspection import FittedPipeline, binomial_interval
from ...text import shorten, text_of
from .explorer import regions_of, separating
from .results import ONE_IN, Results, evaluate

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

PURE = 0.9
"""From this share of one class on a kernel is that class's alone."""

LINES = ("--", "-.")
"""Of thresholds."""

N_ALONG = 100
"""Rows along each axis that the background asks about."""

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


@contextmanager
def drawing(ax: Any, width: float, height: float) -> Iterator[Any]:
    """Axes in the common style: those given, or of a new figure, in inches."""
    try:
        import matplotlib as mpl
        from matplotlib.text import Text
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib: pip install '.[plot]' in kernelpool's folder."
        ) from error
    with mpl.rc_context(STYLE):
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
        yield ax
    for text in ax.findobj(Text):
        text.set_parse_math(False)


def _results(model: Any, X: Any, y: Any = None, **rows: Any) -> Results:
    """Those given, or of a model on rows."""
    return model if isinstance(model, Results) else evaluate(model, X, y, **rows)


# -- how good a classifier is ----------------------------------------------------------------------


def plot_calibration(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """How often labels are right against the probability of the label, on held-out rows.

    Rows are put into ten bins of equal width by the probability of their most probable class. The
    expected calibration error (ECE) is the mean distance from the diagonal, weighted by rows.

    Parameters
    ----------
    model : classifier or Results
        Fitted, with `predict_proba`, of any number of classes; or what `evaluate` returned.
    X : array-like of shape (n_samples, n_features), default=None
        Rows; not with results.
    y : array-like of shape (n_samples,), default=None
        Their classes; not with results.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        With 95 % intervals as bars.
    """
    metrics = _results(model, X, y).metrics
    n, sure, right = metrics.bins[metrics.bins[:, 0] > 0].T
    low, high = binomial_interval(right, n)
    x = sure / n
    share = right / n
    left = max(0.0, min(float(x.min()), float(low.min())) - 0.05)
    reach = np.clip([share - low, high - share], 0, None)
    label = f"ECE {metrics.calibration_error:.3f}"
    with drawing(ax, 4.6, 4.4) as ax:
        ax.plot([left, 1], [left, 1], ":", color=GRAY, label="perfectly calibrated")
        ax.errorbar(x, share, reach, fmt="o", color=COLORS[0], capsize=3, label=label)
        for place, top, rows in zip(x, high, n, strict=True):
            at = {"textcoords": "offset points", "ha": "center", "size": 7}
            ax.annotate(f"{rows:,.0f}", (place, top), (0, 3), **at)
        ax.set(xlabel="probability of the label", ylabel="share of rows whose label is right")
        ax.set(xlim=(left, 1.02), ylim=(left, 1.08))
        ax.legend(loc="upper left")
    return ax


def plot_reject_curve(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """The error of accepted rows against the share that is accepted, on held-out rows.

    Parameters
    ----------
    model : classifier or Results
        Fitted, with `predict_proba`; or what `evaluate` returned. The thresholds of a
        `RejectClassifier` are marked, and rows that it finds novel are never accepted.
    X : array-like of shape (n_samples, n_features), default=None
        Rows; not with results.
    y : array-like of shape (n_samples,), default=None
        Their classes; not with results.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        With the 95 % interval as a band.
    """
    results = _results(model, X, y)
    coverage, error, _ = results.curve
    n = results.metrics.n_rows
    if not len(coverage):
        raise KernelpoolError("There is no reject curve: every row is novel to the model.")
    at = np.unique(np.searchsorted(coverage, np.linspace(coverage[0], coverage[-1], 300)))
    at = at[at < len(coverage)]
    accepted = np.rint(coverage[at] * n)
    low, high = binomial_interval(np.rint(error[at] * accepted), accepted)
    x = 100 * coverage[at]
    taken, wrong = results.metrics.decisions[0].tolist()
    top = 100 * (error[coverage > 0.2].max(initial=error[-1]) or high[-1])  # no row may be wrong
    look = {"color": COLORS[0]}
    with drawing(ax, 5.6, 3.8) as ax:
        ax.fill_between(x, 100 * low, 100 * high, alpha=0.18, linewidth=0, **look)
        ax.plot(x, 100 * error[at], linewidth=2.2, label="most certain rows first", **look)
        ax.axhline(100 * error[-1], color=GRAY, linestyle="--", label="rows in random order")
        if 0 < taken < n:
            used = 100 * taken / n, 100 * wrong / taken
            label = f"in use: {used[0]:.0f} % accepted, {used[1]:.1f} % wrong"
            star = {"color": COLORS[1], "markersize": 11, "markeredgecolor": DARK}
            ax.plot(*used, "*", label=label, **star)
        ax.set(xlabel="rows accepted, %", ylabel="error of accepted rows, %", xlim=(0, 101))
        ax.set_ylim(0, 1.6 * top)
        ax.legend(loc="upper left")
    return ax


def plot_novelty(model: Any, X: Any = None, X_test: Any = None, *, ax: Any = None) -> Any:
    """Histograms of log p(x), with the threshold below which a `RejectClassifier` finds rows novel,
    and the density below which one of a hundred rows lies that are drawn from the model.

    Parameters
    ----------
    model : classifier or Results
        Fitted, with `score_samples`; or what `evaluate` returned.
    X : array-like of shape (n_samples, n_features), default=None
        Rows, as a rule those of the fit; not with results.
    X_test : array-like of shape (n_test_samples, n_features), default=None
        Other rows.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib axes
        The first bar also holds all rows below it.
    """
    results = _results(model, X_test, X_train=X)
    if not results.scores:
        raise KernelpoolError(
            f"plot_novelty needs score_samples, log p(x); {type(results.model).__name__} has none."
        )
    lines = {
        f"one in {ONE_IN:,} below": results.bounds[-1][0],
        "novel below": results.reject and results.reject.novelty_threshold_,
    }
    lines = {name: t for name, t in lines.items() if t is not None and np.isfinite(t)}
    finite = [score[np.isfinite(score)] for score in results.scores]
    high = max((float(score.max()) for score in finite if len(score)), default=1.0)
    low = float(np.quantile(finite[0], 0.002)) if len(finite[0]) else high - 1
    low -= 0.25 * (high - low) or 0.5
    low = min([low, *(t - 0.1 * (high - t) for t in lines.values() if t > 3 * low - 2 * high)])
    edges = np.linspace(low, high, 41)
    faces: tuple[dict[str, Any], ...] = (
        {"facecolor": COLORS[0], "alpha": 0.45},
        {"facecolor": "none", "hatch": "///"},
    )
    with drawing(ax, 6.0, 3.8) as ax:
        for part, score, face, color in zip(
            results.row_sets, results.scores, faces, COLORS, strict=False
        ):
            inside = np.clip(np.where(np.isnan(score), low, score), low, high)
            share = 100 * np.histogram(inside, edges)[0] / len(score)
            look = {
                "edgecolor": color,
                "linewidth": 1.6,
                "label": f"{part.name} rows ({len(score):,})",
            }
            ax.stairs(share, edges, fill=True, **look, **face)
        for (name, t), line in zip(lines.items(), LINES, strict=False):
            at = min(max(t, low), high)
            label = f"{name} {t:.4g}" + ("" if at == t else " ←" if t < low else " →")
            ax.axvline(at, color=DARK, linewidth=2, linestyle=line, label=label)
        ax.set(xlabel="log p(x)", ylabel="share of each set of rows, %")
        ax.legend(loc="best")
    return ax


# -- what a classifier is made of ------------------------------------------------------------------


def plot_kernels(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[Any] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Rows and kernels along two axes; a kernel of more features is drawn as its projection.

    Of many, 600 random rows and the 30 greatest kernels are drawn.

    Parameters
    ----------
    model : classifier or Results
        Fitted, whose kernels have means; or what `evaluate` returned.
    X : array-like of shape (n_samples, n_features), default=None
        Rows to draw, as far as their features are known; not with results.
    y : array-like of shape (n_samples,), default=None
        Their classes; not with results.
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
    results = _results(model, X, y)
    inside = results.inside
    table = inside.kernels
    if table is None:
        raise KernelpoolError(
            f"plot_kernels needs a model whose kernels have means; "
            f"{type(inside.model).__name__} has none."
        )
    x = results.x[0]
    classes = results.names[: len(inside.outer.classes_)]
    codes = results.row_sets[0].y
    codes = np.where(codes < len(classes), codes, -1)
    at, axes, names = _plane(inside, x, codes, features)
    known = np.flatnonzero(~np.isnan(x[:, at]).any(axis=1))
    few = np.random.default_rng(0).permutation(known)[:MOST_POINTS]
    points = x[few][:, at] @ axes
    greatest = table.largest(MOST_ELLIPSES)
    centers = table.mean[greatest][:, at] @ axes
    covariances = [axes.T @ inside.covariance(j, at) @ axes for j in greatest.tolist()]
    shares = table.class_posterior[greatest]
    with drawing(ax, 6.4, 4.8) as ax:
        ax.set(xlabel=text_of(names[0], 60), ylabel=text_of(names[1], 60))
        ax.set(xlim=_limits(points[:, 0], centers[:, 0]), ylim=_limits(points[:, 1], centers[:, 1]))
        for axis, name in zip((ax.xaxis, ax.yaxis), names, strict=True):
            if name in inside.dates:
                axis.axis_date()
        in_sight = [] if len(at) != 2 or inside.made else _draw_regions(inside, at, ax)
        for code in range(-1, len(classes)):
            color, mark = (GRAY, ".") if code < 0 else (color_of(code), mark_of(code))
            here = points[codes[few] == code]
            ax.scatter(*here.T, color=color, marker=mark, s=14, alpha=0.55, linewidths=0, zorder=2)
        _draw_ellipses(centers, covariances, shares, ax)
        if legend:
            _draw_legend(classes, shares, len(table) - len(greatest), in_sight, table.word, ax)
    return ax


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
    return np.asarray(axes / deviation[:, None])


def _limits(points: np.ndarray, centers: np.ndarray) -> tuple[float, float]:
    """All rows but the outermost, and centers that are not far from them."""
    if not len(points):
        points = centers
    low, high = np.quantile(points, [0.005, 0.995])
    reach = (high - low) or 1.0
    both = np.append(points, centers)
    both = both[(both >= low - 0.2 * reach) & (both <= high + 0.2 * reach)]
    return both.min() - 0.06 * reach, both.max() + 0.06 * reach


def _draw_regions(inside: FittedPipeline, pair: list[int], ax: Any) -> list[int]:
    """The background: classes, and K where a row is ambiguous, K + 1 where novel; the codes in it."""
    from matplotlib.colors import to_rgba_array

    n_classes = len(inside.outer.classes_)
    extent = (*ax.get_xlim(), *ax.get_ylim())
    across = np.linspace(extent[0], extent[1], N_ALONG)
    up = np.linspace(extent[2], extent[3], N_ALONG)
    regions = regions_of(inside, pair, across, up)
    if regions is None:
        return []
    code = np.where(regions[1] > 0, n_classes - 1 + regions[1], regions[0])
    colors = to_rgba_array([*map(color_of, range(n_classes)), "0.65", "0.3"])[:, :3]
    shade = 1 - 0.2 * (1 - colors)
    ax.imshow(shade[code], extent=extent, origin="lower", aspect="auto", zorder=0)
    codes: list[int] = np.unique(code).tolist()
    for k in codes:
        here = (code == k).astype(float)
        if k != codes[0]:  # the borders of the first are those of the others
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
        line = "-" if share.max() >= PURE else (0, (3, 1.6))
        for look in (
            {"edgecolor": "white", "linewidth": 3.6, "zorder": 3},
            {"edgecolor": np.clip(color, 0, 1), "linewidth": 2.0, "linestyle": line, "zorder": 4},
        ):
            ax.add_patch(Ellipse(center, long, short, angle=angle, fill=False, **look))
        k = int(share.argmax())
        ax.plot(*center, mark_of(k), color=color_of(k), markeredgecolor=DARK, zorder=5)


def _draw_legend(
    classes: list[str], shares: np.ndarray, n_more: int, drawn: list[int], word: str, ax: Any
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    line = partial(Line2D, [], [], color=DARK)
    text = partial(Line2D, [], [], linestyle="")
    keys: list[Any] = [
        text(marker=mark_of(k), color=color_of(k), label=shorten(name, 30))
        for k, name in enumerate(classes[:MOST_KEYS])
    ]
    if len(classes) > MOST_KEYS:
        keys.append(text(label=f"({len(classes) - MOST_KEYS:,} more classes)"))
    pure = shares.max(axis=1) >= PURE
    if pure.any():
        keys.append(line(label=f"{word} of one class"))
    if not pure.all():
        keys.append(line(linestyle=(0, (2, 1.2)), label=f"{word} that is shared"))
    if n_more:
        keys.append(text(label=f"({n_more:,} more {word}s)"))
    for k, name, hatch in ((0, "ambiguous", "xxx"), (1, "novel", "///")):
        if len(classes) + k in drawn:
            keys.append(Patch(facecolor="#eeeeee", edgecolor="#b0b0b0", hatch=hatch, label=name))
    ax.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
