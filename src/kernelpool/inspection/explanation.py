r"""Why a row got its class: the part of every feature in the log-odds, and the kernels that the row
belongs to; and which features a classifier needs: by how much the log-loss of held-out rows rises
when one is missing.

L. S. Shapley, "A value for n-person games", in Contributions to the Theory of Games II, Princeton
1953: the parts.

.. math::

    \log \frac{P(C_a \mid x)}{P(C_b \mid x)} = \log \frac{P(C_a)}{P(C_b)} + \sum_i \text{part}_i,
    \qquad \text{part}_i = \sum_{S \not\ni i} \frac{|S|!\,(d - |S| - 1)!}{d!}
    \left[ v(S \cup i) - v(S) \right]

with :math:`v(S) = \log P(C_a \mid x_S) / P(C_b \mid x_S)`, the log-odds of a row in which all cells
but the features S are missing. `predict_log_proba` of the classifier answers such rows, so the
parts sum to the log-odds of its prediction whatever the classifier is; cells that are missing in
the row itself have no part. The importance of a feature is

.. math:: \text{importance}_i = \frac{1}{n} \sum_n \log P(y_n \mid x_n) - \log P(y_n \mid x_{n,-i})

Departures: beyond ten features there are too many sets. The mean is then taken over random orders
of the features and the same orders backwards. The sum is as exact as before, and `error` is the
standard error of each part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from math import comb
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from ..arrays import as_float64, safe_log, to_numpy
from ..data.door import encoded_rows
from ..data.labels import class_codes, label_column
from ..errors import KernelpoolError
from ..tables.columns import Columns, as_table
from ..text import JsonRecord, decimals_of, percent, plural, shown, signed, text_of
from .description import describe, greatest
from .pipeline import FittedPipeline, cells_of, feature_names, innermost, never_seen

MAX_SETS = 1024
"""Sets of features that are evaluated one by one; where there are more, random orders are."""

CHUNK = 1 << 15
"""Rows, about, that the model is asked about at once."""

LEAST_LOG = -1000.0
"""Stands for the logarithm of a probability of zero: differences stay finite."""

LEAST_OF_CLASS = float(np.log(np.finfo(np.float64).eps))
"""What the log-probability of a true class does not fall below, as in scikit-learn's `log_loss`."""

MAX_KERNELS = 5
"""Kernels that an explanation names."""

MAX_FEATURES = 12
"""Features that it names."""

LONGEST_BAR = 24
"""Characters of its longest bar."""


# -- rows with missing cells -----------------------------------------------------------------------


def encoded(
    model: Any, X: Any
) -> tuple[Columns, np.ndarray, Callable[[np.ndarray], np.ndarray], Any]:
    """The columns of X, its rows as codes and NaN, (n, d), log P(C_k|x) of such rows, and who
    answers them.

    That is the model inside, taking codes, where it is one of this library and nothing transforms
    its rows; else None.
    """
    if not hasattr(model, "predict_proba"):
        raise KernelpoolError(
            f"A classifier with predict_proba is expected; got {type(model).__name__}."
        )
    inside = FittedPipeline(model, X)
    columns = inside.input
    coded = inside.model
    if inside.direct:
        x = np.asarray(encoded_rows(innermost(model), X), np.float64)
        return columns, x, lambda x: _log_proba(coded, x), coded
    return columns, columns.encode(X), lambda x: _log_proba(model, columns.decode(x)), None


def _log_proba(model: Any, X: Any) -> np.ndarray:
    if hasattr(model, "predict_log_proba"):
        log_proba = as_float64(to_numpy(model.predict_log_proba(X)))
    else:
        log_proba = safe_log(as_float64(to_numpy(model.predict_proba(X))))
    return np.where(np.isneginf(log_proba), LEAST_LOG, log_proba)


# -- the answer ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeaturePart:
    """The part of one feature in the class of a row.

    Attributes
    ----------
    name : str
        Of the feature.
    value : float or str
        In the row.
    part : float
        In the log-odds of the class against the other; above zero it supports the class.
    error : float
        Standard error of `part`; zero where it is exact.
    expected : float, str or None
        What the model imputes given the other features and the class; None for models without
        `impute`.
    known : bool
        Whether the model was fitted to such a value; False for other categories.
    """

    name: str
    value: Any
    part: float
    error: float
    expected: Any = None
    known: bool = True

    def texts(self) -> tuple[str, str]:
        """The cell, and what is to be noted of it."""
        notes = [f"± {self.error:.2f}"] if self.error > 0.005 else []
        notes += [] if self.known else ["never seen"]
        expected = self.expected
        if isinstance(expected, float) and expected != self.value:
            expected = round(expected, decimals_of(abs(expected - self.value)))
        if expected is not None and expected != self.value:
            notes.append(f"{_cell(expected)} expected")
        return f"{shown(self.name, 40)} = {_cell(self.value)}", ", ".join(notes)


def _cell(value: Any) -> str:
    return text_of(value, 24)


class _Printed:
    """A notebook shows the text."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class Explanation(_Printed):
    """Why a row got its class; prints as a sentence and a bar chart, in notebooks too.

    Attributes
    ----------
    label : object
        The class that is explained.
    against : object
        The class that it is compared with.
    probability, against_probability : float
        Of both.
    log_odds : float
        log P(label|x) / P(against|x), the sum of `prior` and the parts of the features.
    prior : float
        The log-odds of a row of which nothing is known.
    features : tuple of FeaturePart
        The largest parts first.
    kernels : tuple of dict
        The kernels that the row belongs to most, where the model is one network: `index` in the
        order of the fitted attributes, `posterior` P(j|x), `label` of the class that the kernel
        serves most and its `class_posterior` P(C_k|j); both None where they are not known.
    """

    label: Any
    against: Any
    probability: float
    against_probability: float
    log_odds: float
    prior: float
    features: tuple[FeaturePart, ...]
    kernels: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        first = f"{shown(self.label)} ({percent(self.probability)})"
        second = f"{shown(self.against)} ({percent(self.against_probability)})"
        lines = [f"{first} rather than {second}: log-odds {signed(self.log_odds)}"]
        rows = [("before any feature", self.prior, "")]
        for feature in self.features[:MAX_FEATURES]:
            name, note = feature.texts()
            rows.append((name, feature.part, note))
        rest = self.features[MAX_FEATURES:]
        if rest:
            rows.append((plural(len(rest), "other feature"), sum(f.part for f in rest), ""))
        width = max(len(name) for name, _, _ in rows)
        most = max(abs(part) for _, part, _ in rows) or 1.0
        for name, part, note in rows:
            bar = ("+" if part > 0 else "-") * round(LONGEST_BAR * abs(part) / most)
            line = f"  {name:{width}} {signed(part):>8}  {bar:{LONGEST_BAR}}  {note}"
            lines.append(line.rstrip())
        if self.kernels:
            lines.append(f"  {'; '.join(_kernel_text(**kernel) for kernel in self.kernels)}")
        return "\n".join(lines)


def _kernel_text(index: int, posterior: float, label: Any, class_posterior: float | None) -> str:
    serves = f" ({shown(label, 24)} {percent(class_posterior, 0)})" if class_posterior else ""
    return f"kernel {index}{serves}: {percent(posterior)}"


class Explanations(_Printed, list[Explanation]):
    """Of several rows; prints as a text."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


def explain(model: Any, X: Any, *, against: Any = None, random_state: Any = 0) -> Explanations:
    """Why rows get their classes: the part of each feature in the log-odds, and the kernels.

    The log-odds of the most probable class against the next are the sum of those of the class prior
    and of one part for each feature, its Shapley value where features that are left out are missing
    cells. Up to ten features this is exact; beyond, the mean over random orders of the features,
    with its standard error.

    Parameters
    ----------
    model : classifier
        Fitted, and one that answers rows with missing cells; pipelines and wrappers included.
    X : array-like of shape (n_samples, n_features) or (n_features,)
        Rows, as the model takes them. Missing cells have no part.
    against : label, default=None
        The class to compare with; None takes the most probable of the others.
    random_state : int, RandomState instance or None, default=0
        Seed of the orders.

    Returns
    -------
    explanations : Explanations
        A list of one `Explanation` a row; it prints as sentences and bar charts.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import explain
    >>> X, y = make_clouds(random_state=0)
    >>> model = make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, random_state=0))
    >>> (why,) = explain(model.fit(X, y), X[:1])
    >>> bool(np.isclose(why.prior + sum(part.part for part in why.features), why.log_odds))
    True
    """
    X = as_table(X)
    columns, x, log_proba, coded = encoded(model, X)
    classes = np.asarray(model.classes_)
    if against is not None and against not in classes.tolist():
        raise KernelpoolError(
            f"against must be one of the classes {classes.tolist()}; got {against!r}."
        )
    if len(classes) < 2:
        raise KernelpoolError("There is one class only: there are no log-odds to explain.")
    rng = check_random_state(random_state)
    whole, prior = (np.empty((len(x), len(classes))) for _ in range(2))
    pairs = np.empty((2, len(x)), int)  # the class of each row, and the one it is compared with
    parts = np.zeros(x.shape)
    errors = np.zeros(x.shape)
    missing = np.isnan(x)
    for pattern in np.unique(missing, axis=0):  # rows that lack the same cells share their sets
        players = np.flatnonzero(~pattern)
        same = np.flatnonzero((missing == pattern).all(axis=1))
        step = max(1, CHUNK // 2 ** min(len(players), 10))
        for at in (same[i : i + step] for i in range(0, len(same), step)):

            def log_odds(masks: np.ndarray, at: Any = at, players: Any = players) -> np.ndarray:
                z = np.full((len(masks), len(at), x.shape[1]), np.nan)
                z[:, :, players] = np.where(masks[:, None, :], x[np.ix_(at, players)], np.nan)
                scores = log_proba(z.reshape(-1, x.shape[1])).reshape(len(masks), len(at), -1)
                size = masks.sum(axis=1)
                whole[at], prior[at] = scores[size.argmax()], scores[size.argmin()]
                pairs[:, at] = _pairs(whole[at], classes, against)
                row = np.arange(len(at))
                return np.asarray(scores[:, row, pairs[0, at]] - scores[:, row, pairs[1, at]])

            place = np.ix_(players, at)
            parts.T[place], errors.T[place] = shapley_parts(log_odds, len(players), rng)
    values = cells_of(columns, x, X)
    known = ~never_seen(columns, x)
    expected = _expected(coded, columns, x, classes[pairs[0]])
    kernels = _kernels(coded, x, classes)
    names = feature_names(columns)
    explanations = Explanations()
    for n, (a, b) in enumerate(pairs.T.tolist()):
        rows = (values[n], parts[n].tolist(), errors[n].tolist(), expected[n], known[n].tolist())
        features = [FeaturePart(*cell) for cell in zip(names, *rows, strict=True)]
        features = [features[i] for i in np.flatnonzero(~missing[n])]
        features.sort(key=lambda feature: -abs(feature.part))
        explanations.append(
            Explanation(
                classes[a],
                classes[b],
                float(np.exp(whole[n, a])),
                float(np.exp(whole[n, b])),
                float(whole[n, a] - whole[n, b]),
                float(prior[n, a] - prior[n, b]),
                tuple(features),
                kernels[n],
            )
        )
    return explanations


def _pairs(log_proba: np.ndarray, classes: np.ndarray, against: Any) -> tuple[Any, Any]:
    """Codes of the most probable class of each row, and of the one that it is compared with."""
    likely = log_proba.argmax(axis=1)
    rival = np.where(np.arange(len(classes)) == likely[:, None], -np.inf, log_proba).argmax(axis=1)
    if against is not None:
        code = classes.tolist().index(against)
        rival = np.where(likely == code, rival, code)
    return likely, rival


def _expected(coded: Any, columns: Columns, x: np.ndarray, labels: np.ndarray) -> list[list[Any]]:
    """What the model imputes for each cell given the others of the row and its class; None where it
    cannot.
    """
    if not hasattr(coded, "impute"):
        return [[None] * x.shape[1]] * len(x)
    imputed = x.copy()
    for i in range(x.shape[1]):
        imputed[:, i] = coded.impute(_without(x, i), labels)[:, i]
    return cells_of(columns, imputed)


def _without(x: np.ndarray, feature: int) -> np.ndarray:
    """The rows with one feature missing."""
    x = x.copy()
    x[:, feature] = np.nan
    return x


def _kernels(coded: Any, x: np.ndarray, classes: np.ndarray) -> list[tuple[dict[str, Any], ...]]:
    """The kernels of each row by their posteriors, where the model is one network of kernels."""
    table = None if coded is None else describe(coded).kernels
    if table is None or table.group or not hasattr(coded, "kernel_posterior"):
        return [()] * len(x)
    posterior = to_numpy(coded.kernel_posterior(x))
    serves: list[dict[str, Any]]
    serves = [{"label": None, "class_posterior": None}] * posterior.shape[1]
    if table.class_posterior is not None and len(table) == len(serves):
        serves = [
            {"label": classes[shares.argmax()], "class_posterior": float(shares.max())}
            for shares in table.class_posterior
        ]
    return [
        tuple(
            {"index": j, "posterior": share, **serves[j]}
            for j, share in greatest(row, 0.01)[:MAX_KERNELS]
        )
        for row in posterior
    ]


def shapley_parts(
    value: Callable[[np.ndarray], np.ndarray], n_players: int, rng: Any, max_sets: int = MAX_SETS
) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values of a game, and their standard errors, (players, n).

    `value` takes sets of players as masks, (sets, players), and returns their values in n games,
    (sets, n).
    """
    if 2**n_players <= max_sets:
        masks = (np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1 > 0
        values = value(masks)
        size = masks.sum(axis=1)
        ways = [comb(n_players - 1, s) * n_players for s in range(n_players)]
        joins = 1 / np.array([1, *ways])
        leaves = 1 / np.array([*ways, 1])
        weight = np.where(masks.T, joins[size], -leaves[size])  # (players, sets)
        return weight @ values, np.zeros((n_players, values.shape[1]))
    n_pairs = max(4, max_sets // (2 * n_players))
    half = np.array([rng.permutation(n_players) for _ in range(n_pairs)])
    orders = np.concatenate([half, half[:, ::-1]])
    rank = orders.argsort(axis=1)  # (orders, players)
    masks = rank[:, None, :] < np.arange(n_players + 1)[:, None]  # (orders, steps, players)
    steps = value(masks.reshape(-1, n_players)).reshape(len(orders), n_players + 1, -1)
    gains = np.take_along_axis(np.diff(steps, axis=1), rank[:, :, None], axis=1)
    pairs = 0.5 * (gains[:n_pairs] + gains[n_pairs:])  # (pairs, players, n)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / n_pairs**0.5


# -- which features matter -------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureImportance(JsonRecord):
    """What missing features cost; prints as a table.

    Attributes
    ----------
    names : tuple of str
        Of the features, in the order of the input.
    importance : ndarray of shape (n_features,)
        Rise of the log-loss per row; below zero where the classifier is better without the feature.
    error : ndarray of shape (n_features,)
        Standard errors over the rows.
    log_loss : float
        With all features.
    n_rows : int
        Rows that were scored.
    """

    names: tuple[str, ...]
    importance: np.ndarray
    error: np.ndarray
    log_loss: float
    n_rows: int

    def __str__(self) -> str:
        rows = f"{self.log_loss:.4f} a row over {plural(self.n_rows, 'row')}"
        lines = [f"Log-loss {rows}; it rises where a feature is missing:"]
        for i in np.argsort(-self.importance, kind="stable"):
            rise = f"{signed(self.importance[i], 4)} ± {self.error[i]:.4f}"
            lines.append(f"  {shown(self.names[i], 40)}: {rise}")
        return "\n".join(lines)


def feature_importance(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, probability: Any = None
) -> FeatureImportance:
    """By how much the log-loss of held-out rows rises when a feature is missing.

    Parameters
    ----------
    model : classifier
        Fitted, and one that answers rows with missing cells; pipelines and wrappers included.
    X : array-like of shape (n_samples, n_features)
        Rows that were not part of the fit.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts.
    probability : array-like of shape (n_samples, n_classes), default=None
        What `predict_proba` returned for X; None calls it.

    Returns
    -------
    importance : FeatureImportance
        Prints as a table.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import feature_importance
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(*make_clouds(random_state=0))
    >>> found = feature_importance(model, *make_clouds(500, random_state=1))
    >>> bool((found.importance > 0).all())
    True
    """
    columns, x, log_proba, _ = encoded(model, as_table(X))
    codes = class_codes(label_column(y, len(x)), np.asarray(model.classes_), None)
    weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    total = weight.sum()

    def of_class(log_proba: np.ndarray) -> np.ndarray:
        """log P(y|x)."""
        return np.maximum(log_proba[np.arange(len(x)), codes], LEAST_OF_CLASS)

    known = log_proba(x) if probability is None else safe_log(as_float64(to_numpy(probability)))
    whole = of_class(known)
    lost = whole - np.stack([of_class(log_proba(_without(x, i))) for i in range(x.shape[1])])
    mean = lost @ weight / total
    variance = (lost - mean[:, None]) ** 2 @ weight / total
    effective = total**2 / (weight @ weight)
    return FeatureImportance(
        tuple(feature_names(columns)),
        mean,
        np.sqrt(variance / max(effective - 1, 1)),
        float(-(weight @ whole) / total),
        len(x),
    )
