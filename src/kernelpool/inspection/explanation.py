r"""Why a row got its class: the part of every feature in the log-odds, and the kernels that the row belongs to.

L. S. Shapley, "A value for n-person games", in Contributions to the Theory of Games II, Princeton 1953: the parts.

.. math::

    \log \frac{P(C_a \mid x)}{P(C_b \mid x)} = \log \frac{P(C_a)}{P(C_b)} + \sum_i \text{part}_i, \qquad
    \text{part}_i = \sum_{S \not\ni i} \frac{|S|!\,(d - |S| - 1)!}{d!} \left[ v(S \cup i) - v(S) \right]

with :math:`v(S) = \log P(C_a \mid x_S) / P(C_b \mid x_S)`, the log-odds of a row in which all cells but the features S are
missing. `predict_log_proba` of the classifier answers such rows, so the parts sum to the log-odds of its prediction whatever
the classifier is; cells that are missing in the row itself have no part.

Departures: beyond ten features there are too many sets. The mean is then taken over random orders of the features and the
same orders backwards. The sum is as exact as before, and `error` is the standard error of each part.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import comb
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..arrays import safe_log, to_numpy
from ..errors import KernelpoolError
from ..tables.columns import Columns
from ..text import percent, plural, shown
from ..training.prepare import encoded_rows
from .describe import describe

MAX_SETS = 1024
"""Sets of features that are evaluated one by one; where there are more, random orders are."""

CHUNK = 1 << 15
"""Rows, about, that the model is asked about at once."""

LEAST_LOG = -1e15
"""Stands for the logarithm of a probability of zero: differences stay finite."""

MAX_KERNELS = 5
"""Kernels that an explanation names."""


# -- rows with missing cells ----------------------------------------------------------------------------------------


def encoded(model: Any, X: Any) -> tuple[Columns, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The columns of X, its rows as codes and NaN, (n, d), and log P(C_k|x) as a function of such rows."""
    check_is_fitted(model)
    inner = _answering(model)
    if hasattr(X, "to_frame"):  # a row of a data frame
        X = X.to_frame().T.infer_objects()
    elif not hasattr(X, "columns"):
        X = to_numpy(X) if hasattr(X, "__dlpack__") else X
        X = [X] if np.ndim(X) == 1 else X
    if not hasattr(inner, "columns_"):  # such as a pipeline
        columns = Columns.learn(X)
        return columns, columns.encode(X), lambda x: _log_proba(inner, columns.decode(x))
    columns = inner.columns_
    coded = inner._with_columns(columns.of_codes())
    return columns, np.asarray(encoded_rows(inner, X), np.float64), lambda x: _log_proba(coded, x)


def _answering(model: Any) -> Any:
    """The classifier whose probabilities a wrapper returns."""
    for name in ("best_estimator_", "estimator_"):
        if name in vars(model) and not hasattr(model, "columns_"):
            return _answering(getattr(model, name))
    return model


def _log_proba(model: Any, X: Any) -> np.ndarray:
    if hasattr(model, "predict_log_proba"):
        found = np.asarray(to_numpy(model.predict_log_proba(X)), np.float64)
    else:
        found = safe_log(np.asarray(model.predict_proba(X), np.float64))
    return np.maximum(found, LEAST_LOG)


def feature_names(columns: Columns) -> list[str]:
    """As messages and tables name them."""
    return list(columns.names or (f"feature {i}" for i in range(len(columns))))


# -- the answer ---------------------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """Two decimals with a sign, and no minus zero."""
    return f"{round(value, 2) + 0.0:+.2f}"


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
    without : float
        By how much the log-odds fall when this feature alone is missing.
    expected : float, str or None
        What the model imputes given the other features and the class; None for models without `impute`.
    """

    name: str
    value: Any
    part: float
    error: float
    without: float
    expected: Any = None

    def __str__(self) -> str:
        expected = "" if self.expected is None else f"; {_cell(self.expected)} expected"
        error = f" ± {self.error:.2f}" if self.error > 0.005 else ""
        return f"{shown(self.name, 40)} = {_cell(self.value)}: {signed(self.part)}{error}{expected}"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value, 24)


@dataclass(frozen=True)
class KernelPart:
    """A kernel that a row belongs to.

    Attributes
    ----------
    index : int
        In the order of the fitted attributes.
    posterior : float
        P(j|x).
    label : object
        The class that the kernel serves most; None where that is not known.
    class_posterior : float or None
        P(C_k|j) of that class.
    """

    index: int
    posterior: float
    label: Any = None
    class_posterior: float | None = None

    def __str__(self) -> str:
        serves = (
            ""
            if self.class_posterior is None
            else f" ({shown(self.label, 24)} {percent(self.class_posterior, 0)})"
        )
        return f"kernel {self.index}{serves}: {percent(self.posterior)}"


@dataclass(frozen=True)
class Explanation:
    """Why a row got its class; prints as a table.

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
    kernels : tuple of KernelPart
        The kernels that the row belongs to most.
    log_density : float or None
        log p(x), for models with `score_samples`.
    """

    label: Any
    against: Any
    probability: float
    against_probability: float
    log_odds: float
    prior: float
    features: tuple[FeaturePart, ...]
    kernels: tuple[KernelPart, ...] = ()
    log_density: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{shown(self.label)} ({percent(self.probability)}) rather than {shown(self.against)} "
            f"({percent(self.against_probability)}): log-odds {signed(self.log_odds)}",
            f"  before any feature: {signed(self.prior)}",
            *(f"  {feature}" for feature in self.features[:12]),
        ]
        rest = self.features[12:]
        if rest:
            total = signed(sum(feature.part for feature in rest))
            lines.append(f"  {plural(len(rest), 'other feature')}: {total}")
        if self.kernels:
            lines.append(f"  {'; '.join(map(str, self.kernels))}")
        return "\n".join(lines)


def explain(model: Any, X: Any, *, against: Any = None, random_state: Any = 0) -> list[Explanation]:
    """Why rows get their classes: the part of each feature in the log-odds, and the kernels.

    The log-odds of the most probable class against the next are the sum of those of the class prior and of one part for each
    feature, its Shapley value where features that are left out are missing cells. Up to ten features this is exact; beyond,
    the mean over random orders of the features, with its standard error.

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
    explanations : list of Explanation
        One a row; each prints as a table.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import explain
    >>> X, y = make_clouds(random_state=0)
    >>> model = make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, random_state=0)).fit(X, y)
    >>> (why,) = explain(model, X[:1])
    >>> bool(np.isclose(why.prior + sum(part.part for part in why.features), why.log_odds))
    True
    """
    columns, x, log_proba = encoded(model, X)
    classes = np.asarray(model.classes_)
    if against is not None and against not in classes.tolist():
        raise KernelpoolError(
            f"against must be one of the classes {classes.tolist()}; got {against!r}."
        )
    if len(classes) < 2:
        raise KernelpoolError("There is one class only: there are no log-odds to explain.")
    rng = check_random_state(random_state)
    whole = log_proba(x)
    named = whole.argmax(axis=1)
    others = np.where(np.arange(len(classes)) == named[:, None], -np.inf, whole)
    rival = others.argmax(axis=1)
    if against is not None:
        code = classes.tolist().index(against)
        rival = np.where(named == code, rival, code)

    prior = log_proba(np.full((1, x.shape[1]), np.nan))[0]
    parts, errors, without = (np.zeros(x.shape) for _ in range(3))
    missing = np.isnan(x)
    for pattern in np.unique(missing, axis=0):  # rows that lack the same cells share their sets
        players, same = np.flatnonzero(~pattern), np.flatnonzero((missing == pattern).all(axis=1))
        step = max(1, CHUNK // max(2 ** min(len(players), 10), 1))
        for at in (same[i : i + step] for i in range(0, len(same), step)):

            def log_odds(masks: np.ndarray, at: Any = at, players: Any = players) -> np.ndarray:
                z = np.full((len(masks), len(at), x.shape[1]), np.nan)
                z[:, :, players] = np.where(masks[:, None, :], x[np.ix_(at, players)], np.nan)
                scores = log_proba(z.reshape(-1, x.shape[1])).reshape(len(masks), len(at), -1)
                return np.asarray(
                    scores[:, np.arange(len(at)), named[at]]
                    - scores[:, np.arange(len(at)), rival[at]]
                )

            if len(players):
                place = np.ix_(players, at)
                parts.T[place], errors.T[place], without.T[place] = shapley_parts(
                    log_odds, len(players), rng
                )
    values, expected = _values(columns, x), _expected(model, columns, x, classes[named])
    kernels, log_density = _kernels(model, columns, x, classes)
    names, found = feature_names(columns), []
    for n, (a, b) in enumerate(zip(named.tolist(), rival.tolist(), strict=True)):
        features = [
            FeaturePart(
                names[i],
                values[n][i],
                float(parts[n, i]),
                float(errors[n, i]),
                float(without[n, i]),
                expected[n][i],
            )
            for i in np.flatnonzero(~missing[n])
        ]
        features.sort(key=lambda feature: -abs(feature.part))
        found.append(
            Explanation(
                classes[a],
                classes[b],
                float(np.exp(whole[n, a])),
                float(np.exp(whole[n, b])),
                float(whole[n, a] - whole[n, b]),
                float(prior[a] - prior[b]),
                tuple(features),
                kernels[n],
                log_density[n],
            )
        )
    return found


def _values(columns: Columns, x: np.ndarray) -> list[list[Any]]:
    """The cells as their user knows them."""
    cells = replace(columns, frame=None, coded=False).decode(x).tolist()
    return [["another value" if cell is None else cell for cell in row] for row in cells]


def _expected(model: Any, columns: Columns, x: np.ndarray, labels: np.ndarray) -> list[list[Any]]:
    """What the model imputes for each cell given the others of the row and its class."""
    inner = _answering(model)
    if not hasattr(inner, "impute"):
        return [[None] * x.shape[1]] * len(x)
    coded, found = inner._with_columns(columns.of_codes()), x.copy()
    for i in range(x.shape[1]):
        without = x.copy()
        without[:, i] = np.nan
        found[:, i] = coded.impute(without, labels)[:, i]
    return _values(columns, found)


def _kernels(
    model: Any, columns: Columns, x: np.ndarray, classes: np.ndarray
) -> tuple[list[tuple[KernelPart, ...]], list[float | None]]:
    """The kernels of each row by their posteriors, and log p(x), where the model has them."""
    inner = _answering(model)
    if not hasattr(inner, "kernel_posterior"):
        return [()] * len(x), [None] * len(x)
    coded, pool = inner._with_columns(columns.of_codes()), describe(inner).pool
    posterior = np.asarray(to_numpy(coded.kernel_posterior(x)))
    density = np.asarray(to_numpy(coded.score_samples(x))).tolist()
    served = None if pool is None else pool.class_posterior
    if served is not None and len(served) != posterior.shape[1]:
        served = None
    found = []
    for row in posterior:
        largest = np.argsort(-row, kind="stable")[:MAX_KERNELS].tolist()
        parts = []
        for j in (j for j in largest if row[j] >= 0.01):
            k = None if served is None else int(served[j].argmax())
            parts.append(
                KernelPart(j, float(row[j]))
                if served is None or k is None
                else KernelPart(j, float(row[j]), classes[k], float(served[j, k]))
            )
        found.append(tuple(parts))
    return found, density


def shapley_parts(
    value: Callable[[np.ndarray], np.ndarray], n_players: int, rng: Any, max_sets: int = MAX_SETS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapley values of a game, their standard errors, and what is lost without each player, three of shape (players, n).

    `value` takes sets of players as masks, (sets, players), and returns their values in n games, (sets, n).
    """
    if 2**n_players <= max_sets:
        masks = (np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1 > 0
        found, size = value(masks), masks.sum(axis=1)
        ways = [comb(n_players - 1, s) * n_players for s in range(n_players)]
        joins, leaves = 1 / np.array([1, *ways]), 1 / np.array([*ways, 1])
        weight = np.where(masks.T, joins[size], -leaves[size])  # (players, sets)
        alone = found[-1] - found[len(masks) - 1 - (1 << np.arange(n_players))]
        return weight @ found, np.zeros((n_players, found.shape[1])), alone
    n_pairs = max(4, max_sets // (2 * n_players))
    half = np.array([rng.permutation(n_players) for _ in range(n_pairs)])
    orders = np.concatenate([half, half[:, ::-1]])
    rank = orders.argsort(axis=1)  # (orders, players)
    masks = rank[:, None, :] < np.arange(n_players + 1)[:, None]  # (orders, steps, players)
    found = value(np.concatenate([masks.reshape(-1, n_players), ~np.eye(n_players, dtype=bool)]))
    steps = found[:-n_players].reshape(len(orders), n_players + 1, -1)
    gains = np.take_along_axis(np.diff(steps, axis=1), rank[:, :, None], axis=1)
    pairs = 0.5 * (gains[:n_pairs] + gains[n_pairs:])  # (pairs, players, n)
    error = pairs.std(axis=0, ddof=1) / n_pairs**0.5
    return pairs.mean(axis=0), error, steps[0, -1] - found[-n_players:]
