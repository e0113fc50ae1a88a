"""Folds of labeled rows: stratified, and made from the content of the rows.

Equal rows of a class share a fold, so that a row of weight two is the same as the row twice and no
copy of a held-out row is trained on. The order of the rows and the units of the features change
nothing.
"""

import zlib
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import check_cv

from ..arrays import Array, as_float64, namespace
from ..errors import KernelpoolError
from ..rows import Frame, as_rows
from ..rows.sample import MOST_ROWS, content_key, sample_block
from .door import TrainingData, surveyed
from .scale import weighted_quantiles

NEAR = 2.0**-10
"""Cells are copies of each other up to this part of their spread, or of themselves."""


def row_keys(X: Any, weight: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """A number in (0, 1) for each row, made from its content and the seed, (n,).

    Numbers are taken about their median in units of their interquartile range, which are cells of
    a few rows: another row changes its own number alone. They count to a thousandth of this unit,
    or of themselves where they are larger, so that copies in float32 or in rounded text are equal
    rows. NaN is a value like others, and cells that are no numbers count by their text.
    """
    x, is_number = _as_numbers(X)
    weight = np.ones(len(x)) if weight is None else weight
    levels = 1e-9, 0.25 - 1e-9, 0.5 - 1e-9, 0.75 - 1e-9, 1 - 1e-9
    least, low, median, high, most = weighted_quantiles(x, weight, levels)
    spread = np.where(most > least, (most - least) * 2.0**-20, 1.0)
    scale = np.where(high > low, high - low, spread)
    return np.asarray(content_key(np.where(is_number, near((x - median) / scale), x), seed))


def near(x: Array) -> Array:
    """Cells in units of their spread, (n, d), such that `content_key` tells apart what differs by
    more than `NEAR` units or, beyond one, by that part.
    """
    return namespace(x).asinh(as_float64(x)) * 2.0**-20 / NEAR


def _as_numbers(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Any table as numbers, (n, d), and which columns hold numbers, (d,): text and other objects
    count by a checksum of what is printed.
    """
    if issparse(X):
        rows = [[zlib.crc32(row.toarray().tobytes())] for row in X.tocsr()]
        return np.array(rows, np.float64), np.zeros(1, bool)
    cells = np.asarray(X)
    cells = cells.reshape(len(cells), -1)
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64), np.ones(cells.shape[1], bool)
    columns, is_number = zip(*map(_column_as_numbers, cells.T), strict=True)
    return np.column_stack(columns), np.array(is_number)


def _column_as_numbers(column: np.ndarray) -> tuple[np.ndarray, bool]:
    if column.dtype == object:
        try:
            return column.astype(np.float64), True
        except (TypeError, ValueError):
            pass
    return np.array([zlib.crc32(str(value).encode()) for value in column], np.float64), False


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
    fold = np.full(len(code), -1)
    usable = code >= 0 if weight is None else (code >= 0) & (weight > 0)
    for k in np.unique(code[usable]):
        in_class = (code == k) & usable
        distinct, place = np.unique(key[in_class], return_inverse=True)
        if len(distinct) > spare_single:
            # each class begins with another fold, so that folds are of about equal size
            fold[in_class] = (place * n_folds // len(distinct) + k) % n_folds
    return fold


def hold_out(code: np.ndarray, share: float, *, key: np.ndarray) -> np.ndarray:
    """Whether each row is held out, (n,): a share of every class, but never all of its rows."""
    out = np.zeros(len(code), bool)
    for k in np.unique(code[code >= 0]):
        distinct, place = np.unique(key[code == k], return_inverse=True)
        out[code == k] = place < min(int(share * len(distinct) + 0.5), len(distinct) - 1)
    return out


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
    # in units in which numbers made from the content of rows are those of any other units
    frame = Frame(data.mean, np.sqrt(np.where(data.variance > 0, data.variance, 1.0)))
    most = max(most_rows // (len(data.classes) + 1), most_rows // 20)
    drawn = data.rows.total(sample_block, seed, most, frame)
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
    return np.asarray((total / np.maximum(drawn, 1) * (drawn.sum() / total.sum()))[code + 1])


def fold_data(data: TrainingData, rows: SampledRows, n_jobs: int | None) -> TrainingData:
    """The training data less the rows that are held out: `rows` are those that train."""
    of_rows = as_rows(rows.x, rows.code, rows.weight, n_jobs=n_jobs)
    part = surveyed(of_rows, data.classes, data.columns)
    return replace(part, mean=data.mean, variance=data.variance, reach=data.reach)
