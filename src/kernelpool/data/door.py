"""From what a user passes to rows: the checks of X at a fit and at a prediction.

Nothing here writes into an estimator. `training_data` returns a record, and the estimator keeps its
`columns` at the end of the fit, so that a fit that fails leaves the estimator as it was. NaN, None,
masked cells and pandas' NA are missing cells. Functions for predictions take the fitted estimator,
as those of scikit-learn that they call.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, _get_feature_names

from ..arrays import (
    column_like,
    is_array,
    is_foreign_array,
    is_lazy,
    is_lazy_frame,
    is_writeable_array,
    namespace,
    to_numpy,
)
from ..errors import KernelpoolError
from ..rows import DaskRows, Frame, Rows, as_rows, has_missing
from ..tables.columns import Columns
from .labels import (
    FLOATS,
    Labeled,
    class_codes,
    coded_labels,
    distinct_labels,
    given_weights,
    is_matrix,
    is_unlabeled,
    label_column,
    label_name,
    merge_duplicates,
    spread_shares,
)
from .scale import HEAVIEST, Scale, check_finite, feature_name, scale_of, survey
from .source import (
    checked_rows,
    frame_columns,
    in_memory_or_batches,
    is_source,
    rows_of,
    stored,
    warn_of_columns,
)


@dataclass
class TrainingData:
    """Checked rows with codes of their labels, and what every fit needs of them."""

    rows: Rows
    classes: np.ndarray
    columns: Columns
    scale: Scale
    class_weight: np.ndarray
    """Weight of the labeled rows of each class, (K,)."""
    unlabeled_weight: float
    n_rows: float
    """Rows with any weight."""
    observed: np.ndarray | None = None
    """Weight of the rows without a class and of those of each class in which a feature is known, (1
    + K, d); None if all are, everywhere.
    """

    @property
    def levels(self) -> tuple[int, ...] | None:
        """How many codes each column of categories has, 0 for a number, (d,); None where all are
        numbers.
        """
        return self.columns.levels if any(self.columns.levels) else None

    def log_volume(self, frame: Frame) -> float:
        """What the frame adds to the log-density of an average row: every feature counts in the
        rows in which it is known.
        """
        if self.observed is None:
            return frame.log_volume
        return float(self.observed.sum(axis=0) / self.weight @ np.log(to_numpy(frame.unit)))

    @property
    def class_share(self) -> np.ndarray:
        """Of each class in the weight of the labeled rows, (K,)."""
        return self.class_weight / self.class_weight.sum()

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return float(self.class_weight.sum()) + self.unlabeled_weight

    @property
    def row_weight(self) -> float:
        """Of an average row."""
        return self.weight / self.n_rows

    def as_one_class(self) -> "TrainingData":
        """The same rows, which are in memory, as those of one class, labeled or not."""
        rows: Any = self.rows
        observed = self.observed
        if observed is not None:
            observed = np.stack([np.zeros(observed.shape[1]), observed.sum(axis=0)])
        return replace(
            self,
            rows=as_rows(rows.x, np.zeros(len(rows.x), np.int64), rows.weight),
            classes=np.zeros(1, int),
            class_weight=np.array([self.weight]),
            unlabeled_weight=0.0,
            observed=observed,
        )


def surveyed(
    rows: Rows, classes: np.ndarray, columns: Columns | None = None, scale: Scale | None = None
) -> TrainingData:
    """Rows whose labels are coded, with what a pass over them finds, and two where their scale is
    not given. Without `columns`, all are numbers.
    """
    columns = Columns.numbers(rows.n_features) if columns is None else columns
    about_zero = rows.total(survey, np.zeros(rows.n_features), len(classes))
    total = float(about_zero.by_code.sum())
    if not 1 / HEAVIEST <= total <= HEAVIEST:
        raise KernelpoolError(
            f"sample_weight must sum to a number between {1 / HEAVIEST:g} and {HEAVIEST:g}; got "
            f"{total:g}. Multiply all weights by a constant: a weight is a number of rows."
        )
    if not (about_zero.weight > 0).all():
        raise KernelpoolError(
            f"{feature_name(np.argmin(about_zero.weight > 0), columns)} of X is missing in every row, so "
            "nothing can be learned of it; leave it out."
        )
    lacking = (about_zero.observed != about_zero.by_code[:, None]).any(axis=0)
    columns = replace(columns, incomplete=tuple(np.flatnonzero(lacking).tolist()))
    return TrainingData(
        rows,
        classes,
        columns,
        scale_of(rows, about_zero, columns) if scale is None else scale,
        about_zero.by_code[1:],
        float(about_zero.by_code[0]),
        float(about_zero.n_rows),
        about_zero.observed if lacking.any() else None,
    )


def training_data(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    name: str,
    categorical_features: Any = "from_dtype",
    n_jobs: int | None = None,
    unlabeled: Any = None,
    in_memory: bool = False,
    merge: bool = False,
) -> TrainingData:
    """Check everything that can be checked before any work is done.

    Rows stay where they are. With `in_memory` they lie in memory, and become float64 in NumPy; with
    `merge`, equal rows of a class become one. Labels equal to `unlabeled` mark rows without a class.
    `name` is that of the estimator, for messages.
    """
    X = on_host(X) if in_memory else X
    if is_source(X, y):
        X, y, sample_weight = in_memory_or_batches(X, y, sample_weight, categorical_features)
    if is_source(X, y):
        learned, labels, store = stored(X, categorical_features)
        if is_unlabeled(labels, np.nan).any():  # where that is an error, it counts rows
            at = [store.chunk(i)[1] for i in range(len(store.sizes))]
            distinct_labels(labels[np.concatenate(at)], unlabeled)
        codes, classes = coded_labels(labels[:, None], labels, unlabeled)
        warn_of_columns(learned, store.n_rows)
        return _with_all_classes(rows_of(store, codes, n_jobs), classes, learned)
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    columns: Columns | None = None
    if is_lazy_frame(X):
        X, y, sample_weight, columns = frame_columns(X, y, sample_weight, categorical_features)
    if is_matrix(y):
        X, y, sample_weight = spread_shares(X, y, sample_weight)
    is_foreign = is_foreign_array(X)
    if is_foreign and columns is None:
        chosen = categorical_features
        if chosen is not None and not isinstance(chosen, str) and len(chosen):
            raise KernelpoolError(
                f"categorical_features={chosen!r} needs rows in NumPy or a table; encode the "
                "categories first, or leave it out."
            )
        check_foreign_array(X)
        columns = Columns.numbers(X.shape[1])
    elif columns is None:
        dtype = np.float64 if in_memory else FLOATS
        columns, X = learned_rows(X, categorical_features, name, dtype)
    codes, classes = coded_labels(X, y, unlabeled)
    if not is_foreign:
        warn_of_columns(columns, len(X), X, codes)
    weight = sample_weight
    if weight is not None:
        weight = column_like(X, weight if is_lazy(X) else given_weights(X, weight))
    if merge:
        (X, codes, weight), _ = merge_duplicates((X, codes, given_weights(X, weight)))
    rows = as_rows(X, column_like(X, codes), weight, n_jobs=n_jobs)
    rows = rows.persisted() if isinstance(rows, DaskRows) else rows
    return _with_all_classes(rows, classes, columns)


def _with_all_classes(rows: Rows, classes: np.ndarray, columns: Columns) -> TrainingData:
    """Surveyed rows, where those of every class have some weight."""
    data = surveyed(rows, classes, columns)
    if not data.class_weight.all():
        name = label_name(classes[int(np.argmin(data.class_weight))])
        raise KernelpoolError(
            f"Every class needs a row of positive weight; class {name} has none. Drop its rows, or "
            "give them some weight."
        )
    return data


def on_host(X: Any) -> Any:
    """Arrays of other libraries in NumPy, all else as it is."""
    return to_numpy(X) if is_foreign_array(X) else X


def learned_rows(
    X: Any, categorical_features: Any, name: str, dtype: Any = FLOATS
) -> tuple[Columns, np.ndarray]:
    """What the columns of rows in memory hold, and the rows as numbers: codes of categories, NaN
    where a cell is missing.
    """
    _get_feature_names(X)  # an error where some names are text and others are not
    columns = Columns.learn(X, categorical_features)
    if not isinstance(categorical_features, Columns):
        columns.warn_of_text(X)
    return columns, checked_rows(name, X, columns, fewest=2, dtype=dtype)


def encoded_rows(estimator: Any, X: Any, *, dtype: Any = FLOATS) -> np.ndarray:
    """Rows in memory as a fitted estimator takes them: codes of categories, NaN where a cell is
    missing, (n, d).
    """
    columns = estimator.columns_
    X = on_host(X)
    _check_feature_names(estimator, X, reset=False)
    x = checked_rows(type(estimator).__name__, X, columns, dtype=dtype)
    _check_n_features(estimator, x, reset=False)
    return x


def query_rows(estimator: Any, X: Any) -> Rows:
    """Rows in memory of which a fitted mixture is asked, in whatever array library."""
    if any(estimator.columns_.levels) or not is_foreign_array(X):
        return as_rows(encoded_rows(estimator, X), n_jobs=estimator.n_jobs)
    check_foreign_array(X)
    _check_n_features(estimator, X, reset=False)
    rows = as_rows(X, n_jobs=estimator.n_jobs)
    check_finite(rows)
    return rows


def complete_numbers(estimator: Any, X: Any, method: str) -> tuple[Columns, Any]:
    """Rows for a method that takes neither categories nor missing cells, and their columns; the
    estimator may be fitted.
    """
    fitted = estimator.__sklearn_is_fitted__()
    if is_foreign_array(X):
        check_foreign_array(X)
        columns = Columns.numbers(X.shape[1])
    elif fitted:
        X = encoded_rows(estimator, X)
    else:
        columns, X = learned_rows(X, estimator.categorical_features, type(estimator).__name__)
    if fitted:
        columns = estimator.columns_
        _check_n_features(estimator, X, reset=False)
    if any(columns.levels) or has_missing(X):
        what = "has columns of categories" if any(columns.levels) else "contains NaN"
        raise KernelpoolError(
            f"{method} takes complete numbers alone, and Input X {what}; leave them out, or use fit."
        )
    return columns, X


def validation_rows(
    X_val: Any,
    y_val: Any,
    sample_weight_val: Any,
    columns: Columns,
    classes: np.ndarray,
    name: str,
) -> Labeled:
    """Checked rows on which something is chosen, encoded."""
    if y_val is None:
        raise KernelpoolError("y_val must be given with X_val.")
    x = checked_rows(name, X_val, columns)
    if x.shape[1] != len(columns):
        raise ValueError(f"X_val has {x.shape[1]} features; X has {len(columns)}.")
    codes = class_codes(label_column(y_val, len(x)), classes, None, "y_val")
    return x, codes, given_weights(x, sample_weight_val)


def check_foreign_array(X: Any) -> None:
    """What scikit-learn's validate_data checks of arrays that it does not take, without a look at
    the rows.
    """
    if is_array(X) and not is_writeable_array(X):
        raise ValueError(
            f"X is an array of {type(X).__module__.partition('.')[0]}, whose arrays cannot be "
            "written into; pass numpy.asarray(X), or torch.from_dlpack(X) to stay on its device."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    xp = np if is_lazy(X) else namespace(X)
    if X.dtype not in (xp.float32, xp.float64):
        raise ValueError(
            f"X must be float32 or float64; got {X.dtype}. Convert it, for instance with "
            "X.astype('float64')."
        )
