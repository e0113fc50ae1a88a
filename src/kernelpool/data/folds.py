r"""Folds of labeled rows, made from the content of the rows, and cross-fitting: networks trained
without one fold each, and predictions for rows that took no part in training.

.. math:: \text{held-out}(x_n) = f_{-k}(x_n), \qquad x_n \in \text{fold } k

Folds are stratified. Equal rows of a class share a fold, so that a row of weight two is the same as
the row twice and no copy of a held-out row is trained on. The order of the rows and the units of the
features change nothing. Every loop over folds is `cross_fit`.

Held-out rows may also select, such as the step at which training stops. The least loss on rows is
too low an estimate if the same rows have selected it. `Selection` therefore divides held-out rows
into parts, and the prediction for each part is that of the step which the other parts select.

The log-loss of a class posterior measures discrimination and calibration at once. Mixtures in more
than a few dimensions are overconfident, and the more so the better they discriminate; the log-loss
then prefers a blurred network to a sharp one. Networks are therefore compared by their *tempered*
loss, the log-loss at the best temperature of each,

.. math:: \min_\beta\; \frac{\sum_n w_n\, (-\log P_\beta(C_{y_n} \mid x_n))}{\sum_n w_n}, \qquad
    P_\beta(C_k \mid x) \propto (P(C_k)\, p(x \mid C_k))^\beta
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from ..arrays import Array, as_float64, namespace
from ..errors import KernelpoolError, without_column_warnings
from ..rows import as_rows
from ..rows.sample import MOST_ROWS, content_key, sample_block
from ..tables.columns import FRAMES, Columns
from ..tables.kinds import BOOLEANS
from ..text import is_missing
from .door import TrainingData, surveyed
from .scale import weighted_quantiles

NEAR = 2.0**-10
"""Cells are copies of each other up to this part of their spread, or of themselves."""

HIGHEST_LOSS = 1e6
"""The loss of a row whose class has probability zero: losses are added and subtracted."""

N_PARTS = 5
"""Parts of held-out rows that select for each other."""

LEAST_BETA = 1e-4
"""Mixtures of full kernels in a hundred dimensions want a hundredth and less."""

MOST_BETA = 2.0

Data = tuple[Any, ...]
"""Rows, labels, weights and so on: arrays or frames of the same length, or None."""


def row_keys(X: Any, weight: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """A number in (0, 1) for each row, made from its content and the seed, (n,).

    Numbers are taken about their median in units of their interquartile range, which are cells of
    a few rows: another row changes its own number alone. They count to a thousandth of this unit,
    or of themselves where they are larger, so that copies in float32 or in rounded text are equal
    rows. NaN is a value like others, and cells that are no numbers count by their text. A data frame
    has the same keys from whatever format it was read.
    """
    x, is_number = _as_numbers(X)
    weight = np.ones(len(x)) if weight is None else weight
    levels = 1e-9, 0.25 - 1e-9, 0.5 - 1e-9, 0.75 - 1e-9, 1 - 1e-9
    least, low, median, high, most = weighted_quantiles(x, weight, levels)
    spread = np.where(most > least, (most - least) * 2.0**-20, 1.0)
    scale = np.where(high > low, high - low, spread)
    return content_key(np.where(is_number, near((x - median) / scale), x), seed)


def near(x: Array) -> Array:
    """Cells in units of their spread, (n, d), such that `content_key` tells apart what differs by
    more than `NEAR` units or, beyond one, by that part.
    """
    return namespace(x).asinh(as_float64(x)) * 2.0**-20 / NEAR


def _as_numbers(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Any table as numbers, (n, d), and which columns hold numbers, (d,): text and other objects
    count by a checksum of what is printed.
    """
    if type(X).__module__.partition(".")[0] in FRAMES:
        with without_column_warnings():
            columns = Columns.learn(X)
            x = columns.encode(X)
        for i, values in enumerate(columns.categories):
            if values is not None:
                is_boolean = BOOLEANS.keys() >= set(values)
                texts = [BOOLEANS[text][0] for text in values] if is_boolean else values
                of_text = np.array([zlib.crc32(t.encode(errors="replace")) for t in texts])
                known = ~np.isnan(x[:, i])
                x[known, i] = of_text[x[known, i].astype(int)]
        return x, np.array(columns.levels) == 0
    if issparse(X):
        sums = [[zlib.crc32(row.toarray().tobytes())] for row in X.tocsr()]
        return np.array(sums, np.float64), np.zeros(1, bool)
    cells = np.asarray(X)
    cells = cells.reshape(len(cells), -1)
    x = np.empty(cells.shape)
    is_number = np.ones(x.shape[1], bool)
    for i, column in enumerate(cells.T):
        try:
            x[:, i] = column
        except (TypeError, ValueError):
            is_number[i] = False
            text = ("" if is_missing(cell) else str(cell) for cell in column)
            x[:, i] = [zlib.crc32(cell.encode()) for cell in text]
    return x, is_number


def stratified_folds(
    code: np.ndarray,
    n_folds: int,
    *,
    key: np.ndarray,
    weight: np.ndarray | None = None,
    spare_single: bool = True,
) -> np.ndarray:
    """The fold in which each row is held out, (n,); -1 for rows that always train.

    Each class is cut into equal parts in the order of `key` (see `row_keys`); rows of a class with
    equal keys share a fold. So a row that changes takes with it at most one other row at each cut.
    Rows without a label (-1) or weight always train, and so does the only distinct row of a class
    if `spare_single`.
    """
    usable = code >= 0 if weight is None else (code >= 0) & (weight > 0)
    place, n_distinct = places(np.where(usable, code, -1), key)
    # each class begins with another fold, so that folds are of about equal size
    fold = (place * n_folds // n_distinct + code) % n_folds
    return np.where(usable & (n_distinct > spare_single), fold, -1)


def hold_out(code: np.ndarray, share: float, *, key: np.ndarray) -> np.ndarray:
    """Whether each row is held out, (n,): a share of every class, but never all of its rows."""
    place, n_distinct = places(code, key)
    n_out = np.minimum((share * n_distinct + 0.5).astype(int), n_distinct - 1)
    return (code >= 0) & (place < n_out)


def places(code: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each row among the distinct rows of its class in the order of `key`, (n,), and
    how many these are, (n,).
    """
    place = np.empty(len(code), int)
    n_distinct = np.empty(len(code), int)
    for k in np.unique(code):
        in_class = code == k
        distinct, place[in_class] = np.unique(key[in_class], return_inverse=True)
        n_distinct[in_class] = len(distinct)
    return place, n_distinct


def folds_of(
    cv: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    seed: int = 0,
    split_params: dict[str, Any] | None = None,
) -> np.ndarray:
    """The fold in which each row is held out, (n,), from a parameter `cv` as scikit-learn has it.

    None is for five folds, an int for so many; other splitters and iterables must hold each row
    out at most once and train on all others.
    """
    if cv is None or isinstance(cv, Integral):
        codes = np.unique(y, return_inverse=True)[1]
        fold = stratified_folds(codes, int(cv or 5), key=row_keys(X, weight, seed), weight=weight)
        if (fold < 0).all():
            raise KernelpoolError(
                "y must have a class with at least two distinct rows to hold some out; there is "
                f"one for each class (n_samples={len(y)})."
            )
        return fold
    fold = np.full(len(y), -1)
    for f, (train, test) in enumerate(
        check_cv(cv, y, classifier=True).split(X, y, **split_params or {})
    ):
        if (fold[test] >= 0).any() or len(train) + len(test) != len(y):
            raise KernelpoolError(
                "cv must hold each row out at most once and train on all others, as "
                f"StratifiedKFold does; got {cv!r}."
            )
        fold[test] = f
    return fold


# -- samples of training data, wherever they live ---------------------------------------------------


class SampledRows(NamedTuple):
    """Rows on the host, in the units of the data."""

    x: np.ndarray
    """(n, d); NaN where a cell is missing."""
    code: np.ndarray
    """(n,); -1 without a label."""
    weight: np.ndarray
    """(n,)."""
    key: np.ndarray
    """A number in (0, 1) made from the content of the row, (n,)."""


def draw_rows(data: TrainingData, seed: int, most_rows: int = MOST_ROWS) -> SampledRows:
    """Rows on the host; of each class, and of the rows without one, no more than its part of
    `most_rows`.
    """
    most = max(most_rows // (len(data.classes) + 1), most_rows // 20)
    # in units in which numbers made from the content of rows are those of any other units
    drawn = data.rows.total(sample_block, seed, most, data.scale.frame)
    order = np.argsort(drawn.key * drawn.weight, kind="stable")
    x, code, weight = (column[order] for column in (drawn.x, drawn.code, drawn.weight))
    return SampledRows(x, code, _as_common(code, weight, most, data), row_keys(x, weight, seed))


def _as_common(code: np.ndarray, weight: np.ndarray, most: int, data: TrainingData) -> np.ndarray:
    """Weights that make each class as common in the sample as it is in the data."""
    drawn = np.bincount(code + 1, minlength=len(data.classes) + 1)  # rows of no class come first
    if (drawn < most).all():
        return weight
    # a row was drawn the more often the more it weighs: among those drawn of a class all count
    # alike
    total = np.concatenate([[data.unlabeled_weight], data.class_weight])
    return (total / np.maximum(drawn, 1) * (drawn.sum() / total.sum()))[code + 1]


def fold_data(data: TrainingData, rows: SampledRows, n_jobs: int | None) -> TrainingData:
    """The training data less the rows that are held out: `rows` are those that train."""
    of_rows = as_rows(rows.x, rows.code, rows.weight, n_jobs=n_jobs)
    return surveyed(of_rows, data.classes, data.columns, data.scale)


# -- cross-fitting ---------------------------------------------------------------------------------


def cross_fit(
    fit: Callable[[Data, Data], tuple[Any, np.ndarray]],
    data: Data,
    fold: np.ndarray,
    *,
    only: Sequence[int] | None = None,
    n_jobs: int | None = 1,
) -> tuple[list[Any], np.ndarray]:
    """One network for each fold, and the held-out predictions of all rows.

    Parameters
    ----------
    fit : callable
        ``fit(train, held_out) -> (network, predictions)`` trains on some rows and predicts the
        others. Both are parts of `data`; the predictions are log-probabilities (n, K), or any array
        with an entry for each held-out row. Where held-out rows select anything of the network,
        their predictions must be those of `Selection`.
    data : tuple of arrays, frames or None
        Rows, labels, weights, ..., see `Data`.
    fold : ndarray of shape (n,)
        The fold of each row (`stratified_folds`); -1 for rows that always train.
    only : sequence of int, default=None
        Folds for which a network is trained; None for all of them.
    n_jobs : int, default=1
        Networks that are trained at a time, in threads; None for what joblib's `parallel_config` sets.

    Returns
    -------
    networks : list
        In the order of the folds.
    held_out : ndarray of shape (n, ...)
        NaN for rows in none of the folds.
    """
    folds = np.unique(fold[fold >= 0]).tolist() if only is None else list(only)

    def fitted(f: int) -> tuple[Any, np.ndarray]:
        train = take_rows(data, np.flatnonzero(fold != f))
        held_out = take_rows(data, np.flatnonzero(fold == f))
        with without_column_warnings(f != folds[0]):
            return fit(train, held_out)

    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fitted)(f) for f in folds)
    shape = results[0][1].shape[1:] if results else ()
    held_out = np.full((len(fold), *shape), np.nan)
    for f, (_, predictions) in zip(folds, results, strict=True):
        held_out[fold == f] = predictions
    return [network for network, _ in results], held_out


def take_rows(data: Data, at: np.ndarray) -> Data:
    """Some rows of several arrays or frames, by position."""
    return tuple(None if column is None else _safe_indexing(column, at) for column in data)


class Selection:
    """Held-out rows that select one of several steps, and their predictions at the step that other
    rows select.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Classes; -1 for rows without one.
    weight : ndarray of shape (n,)
        Weights of the rows.
    key : ndarray of shape (n,), default=None
        Numbers by which rows are divided into parts (`row_keys`); None for one part, whose
        predictions are then those of the first step.
    gain : float, default=0.0
        A step is better if it lowers the loss by more than this fraction.
    """

    def __init__(
        self,
        codes: np.ndarray,
        weight: np.ndarray,
        key: np.ndarray | None = None,
        gain: float = 0.0,
    ) -> None:
        self.codes = codes
        self.weight = np.where(codes >= 0, weight, 0.0)
        self.gain = gain
        self.part = np.zeros(len(codes), int)
        if key is not None:
            fold = stratified_folds(codes, N_PARTS, key=key, spare_single=False)
            self.part = np.maximum(fold, 0)
        self.log_proba = np.full((len(codes), 1), np.nan)
        """log P(C_k|x) of each row at the step that the other parts select, (n, K)."""
        self._least = np.full(int(self.part.max(initial=0)) + 1, np.inf)

    def add(self, log_proba: np.ndarray) -> float:
        """Take the predictions of one step, (n, K); return its log-loss per row, on all rows."""
        own = log_proba[np.arange(len(self.codes)), self.codes]
        loss = -self.weight * np.maximum(own, -HIGHEST_LOSS)
        rest_loss = loss.sum() - np.bincount(self.part, loss)
        rest_weight = self.weight.sum() - np.bincount(self.part, self.weight)
        rest = rest_loss / np.maximum(rest_weight, 1e-300)
        better = rest < (1 - self.gain) * self._least
        self._least = np.where(better, rest, self._least)
        self.log_proba = np.where(better[self.part][:, None], log_proba, self.log_proba)
        return float(loss.sum() / max(self.weight.sum(), 1e-300))


# -- losses on held-out rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """Held-out losses of one network (or of its copies, one a fold), row by row."""

    plain: np.ndarray
    """-log P(C_y|x), (n,)."""
    tempered: np.ndarray
    """The same at the temperature that suits the network best, (n,)."""
    wrong: np.ndarray
    """Whether the row is misclassified, (n,)."""
    beta: float
    weight: np.ndarray
    """(n,)."""

    def mean(self, values: np.ndarray) -> float:
        """Weighted mean over the rows."""
        return float(self.weight @ values / self.weight.sum())

    def behind(self, other: "Loss", kind: str = "tempered") -> tuple[float, float]:
        """By how much this loss is above another on the same rows, and the standard error of
        that.
        """
        difference = getattr(self, kind) - getattr(other, kind)
        mean = self.mean(difference)
        return mean, float(np.sqrt(self.mean((difference - mean) ** 2) / self.weight.sum()))


def held_out_loss(log_joint: np.ndarray, code: np.ndarray, weight: np.ndarray) -> Loss:
    """From log P(C_k|x) up to a constant of the row, (n, K), of held-out rows of classes `code`."""
    log_joint = log_joint - log_joint.max(axis=1, keepdims=True)
    log_joint = np.maximum(log_joint, -1e8)

    def loss_at(beta: float) -> np.ndarray:
        scaled = beta * log_joint
        return logsumexp(scaled, axis=1) - scaled[np.arange(len(code)), code]

    log_beta = minimize_scalar(
        lambda log_beta: weight @ loss_at(np.exp(log_beta)),
        bounds=(np.log(LEAST_BETA), np.log(MOST_BETA)),
        method="bounded",
        options={"xatol": 0.01},
    ).x
    beta = float(np.exp(log_beta))
    return Loss(loss_at(1.0), loss_at(beta), log_joint.argmax(axis=1) != code, beta, weight)


def choose(losses: list[Loss], sizes: Sequence[tuple[float, ...]]) -> int:
    """One-standard-error rule, three times: lowest tempered loss, then lowest loss, then smallest
    model.

    `sizes` are compared entry by entry. Of several that are smallest, the one with the lowest plain
    loss is taken, and the earliest of equals (to six places: the rest is rounding).
    """
    among = list(range(len(losses)))
    for kind in ("tempered", "plain"):
        means = [losses[i].mean(getattr(losses[i], kind)) for i in among]
        lowest = losses[among[int(np.argmin(means))]]
        behind = [losses[i].behind(lowest, kind) for i in among]
        among = [i for i, (excess, error) in zip(among, behind, strict=True) if excess <= error]
    return min(among, key=lambda i: (sizes[i], round(losses[i].mean(losses[i].plain), 6), i))
