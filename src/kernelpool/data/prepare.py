"""From what a user passes to rows: all validation of X, y, weights, validation rows, queries and
priors.

Nothing here writes into an estimator. `training_data` returns a record, and the estimator keeps its
`columns` at the end of the fit, so that a fit that fails leaves the estimator as it was. NaN, None,
masked cells and pandas' NA are missing cells.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _get_feature_names,
    check_consistent_length,
)

from ..arrays import (
    as_float64,
    column_like,
    is_array,
    is_foreign_array,
    is_lazy,
    is_lazy_frame,
    is_numpy_array,
    is_source,
    is_table,
    is_writeable_array,
    map_column,
    namespace,
    of_parts,
    to_numpy,
)
from ..errors import CollapsedKernelError, ColumnWarning, KernelpoolError, warn
from ..kernels import FAMILIES
from ..rows import Block, DaskRows, Frame, Rows, Store, StoredRows, as_rows, has_missing, recode
from ..rows.sample import MOST_ROWS, Sample, sample_block
from ..sums import Sums, record
from ..tables.batches import batches
from ..tables.columns import FEW, Columns, sorted_categories, teaches_nothing
from ..text import is_missing

FLOATS = [np.float64, np.float32]

HEAVIEST, SMALLEST_VARIANCE, SMALLEST_VARIANCE_OF_FLOAT32 = 1e280, 1e-305, 1e-72
"""Beyond these, sums of weights and squares of features leave the range of float64."""

MOST_LOOKED_AT, FEWEST_LOOKED_AT = 1000, 50
"""First rows in which a column that gives the class away has few values, and rows that show it."""

TAIL, HEAVY, FAR, WILD, REACH = 0.02, 20.0, 1.5, 3.0, 5.0
"""Outliers are cells beyond this part of the weight at either end, and farther away than the range
of the rest; they are sought where the kurtosis is above the second. Mean and variance are those of
the other cells where outliers make the deviation larger by the third. Where by the fourth, training
holds cells within so many deviations of the medians of the classes: a rare class may lie far away.
"""

QUARTILES, GAUSSIAN = (0.25, 0.5, 0.75), 1.35
"""And the range between the outer ones, in deviations of a Gaussian."""

LEAST_SHARE = 1e-9
"""A class with less than this probability in a row has none."""


IN_MEMORY = 64 << 20
"""Bytes of rows of a source that are kept in memory: their model is that of the array, bit for
bit.
"""


# -- training rows ---------------------------------------------------------------------------------


@dataclass
class TrainingData:
    """Rows with their labels in codes, and what was learned of them on the way."""

    rows: Rows
    classes: np.ndarray
    class_weight: np.ndarray
    """Weight of the labeled rows of each class, (K,)."""
    unlabeled_weight: float
    n_rows: float
    mean: np.ndarray
    """(d,)."""
    variance: np.ndarray
    """(d,)."""
    columns: Columns
    reach: np.ndarray
    """Deviations from the mean within which cells are held in training, (d,); infinity for features
    without wild cells.
    """
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
        return np.asarray(self.class_weight / self.class_weight.sum())

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return float(self.class_weight.sum()) + self.unlabeled_weight

    @property
    def row_weight(self) -> float:
        """Of an average row."""
        return self.weight / self.n_rows


def training_data(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    unlabeled: Any = None,
    in_memory: bool = False,
) -> TrainingData:
    """Check everything that can be checked before any work is done.

    The estimator lends its name, `n_jobs` and `categorical_features`. Rows stay where they are;
    with `in_memory`, those that are not in NumPy or a table are refused. Labels equal to
    `unlabeled` mark rows without a class.
    """
    if in_memory:
        check_in_memory(estimator, X, y)
    if is_source(X, y):
        columns, labels, store = read(X, y, sample_weight, None, estimator.categorical_features)
        if is_unlabeled(labels, np.nan).any():  # where that is an error, it counts rows
            at = [store.chunk(i)[1] for i in range(len(store.sizes))]
            distinct_labels(labels[np.concatenate(at)], unlabeled)
        codes, classes = _coded(labels[:, None], labels, unlabeled)
        warn_of_columns(columns, store.n_rows)
        return _weighed(surveyed(rows_of(store, codes, estimator.n_jobs), classes, columns))
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    names = None
    if is_lazy_frame(X):
        X, y, sample_weight, names = frame_columns(X, y, sample_weight)
    if is_matrix(y):
        X, y, sample_weight = spread_shares(X, y, sample_weight)
    if is_foreign_array(X):
        given = estimator.categorical_features
        if given is not None and not isinstance(given, str) and len(given):
            raise KernelpoolError(
                f"categorical_features={given!r} needs rows in NumPy or a table; encode the "
                "categories first, or leave it out."
            )
        check_foreign_array(X)
        columns = Columns((None,) * X.shape[1], None if names is None else tuple(names))
    else:
        columns, X = learned_rows(estimator, X)
    codes, classes = _coded(X, y, unlabeled)
    if not is_foreign_array(X):
        warn_of_columns(columns, len(X), X, codes)
    weight = sample_weight
    if weight is not None:
        weight = column_like(X, weight if is_lazy(X) else given_weights(X, weight))
    rows = as_rows(X, column_like(X, codes), weight, n_jobs=estimator.n_jobs)
    rows = rows.persisted() if isinstance(rows, DaskRows) else rows
    return _weighed(surveyed(rows, classes, columns))


def _weighed(data: TrainingData) -> TrainingData:
    """The data, if rows of every class count."""
    if not data.class_weight.all():
        name = label_name(data.classes[int(np.argmin(data.class_weight))])
        raise KernelpoolError(
            f"Every class needs a row of positive weight; class {name} has none. Drop its rows, or "
            "give them some weight."
        )
    return data


def learned_rows(estimator: Any, X: Any) -> tuple[Columns, np.ndarray]:
    """What the columns of rows in memory hold, and the rows as numbers: codes of categories, NaN
    where a cell is missing.
    """
    _get_feature_names(X)  # an error where some names are text and others are not
    columns = Columns.learn(X, estimator.categorical_features)
    return columns, _checked(type(estimator).__name__, X, columns, fewest=2)


def encoded_rows(estimator: Any, X: Any, *, dtype: Any = FLOATS) -> np.ndarray:
    """Rows in memory as a fitted estimator takes them: codes of categories, NaN where a cell is
    missing, (n, d).
    """
    if is_array(X) and not is_numpy_array(X):
        X = to_numpy(X)
    _check_feature_names(estimator, X, reset=False)
    x = _checked(type(estimator).__name__, X, estimator.columns_, dtype=dtype)
    _check_n_features(estimator, x, reset=False)
    return x


def query_rows(estimator: Any, X: Any) -> Rows:
    """Rows of which a fitted estimator is asked, wherever they live."""
    if is_lazy_frame(X):
        names = estimator.columns_.names
        X = frame_columns(X if names is None else _columns_of(X, list(names)), None, None)[0]
    if is_source(X):
        return labeled_source(estimator, X, None, None)
    if any(estimator.columns_.levels) or not is_foreign_array(X):
        return as_rows(encoded_rows(estimator, X), n_jobs=estimator.n_jobs)
    check_foreign_array(X)
    _check_n_features(estimator, X, reset=False)
    rows = as_rows(X, n_jobs=estimator.n_jobs)
    if not is_lazy(X):  # what is lazy is not computed twice
        check_finite(rows)
    return rows


def labeled_source(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of a source of batches, with the codes of their classes: -1 where there is no label, -2
    where it is none of the classes of the estimator.
    """
    _, labels, store = read(X, y, sample_weight, estimator.columns_)
    _check_n_features(estimator, np.empty((0, store.n_features)), reset=False)
    known: dict[Any, int] = {}
    for code, label in enumerate(estimator.classes_.tolist()):
        known |= {str(label): code, label: code}  # text files hold text
    codes = [-1 if is_missing(v) else known.get(v, known.get(str(v), -2)) for v in labels]
    return rows_of(store, np.array(codes, int), estimator.n_jobs)


def complete_numbers(estimator: Any, X: Any, method: str) -> tuple[Columns, Any]:
    """Rows for a method that takes neither categories nor missing cells, and their columns; the
    estimator may be fitted.
    """
    fitted = estimator.__sklearn_is_fitted__()
    if is_foreign_array(X):
        check_foreign_array(X)
        columns = estimator.columns_ if fitted else Columns.numbers(X.shape[1])
        x = X
        if fitted:
            _check_n_features(estimator, X, reset=False)
    elif fitted:
        columns = estimator.columns_
        x = encoded_rows(estimator, X)
    else:
        columns, x = learned_rows(estimator, X)
    if any(columns.levels) or has_missing(x):
        found = "has columns of categories" if any(columns.levels) else "contains NaN"
        raise KernelpoolError(
            f"{method} takes complete numbers alone, and Input X {found}; leave them out, or use "
            "fit."
        )
    return columns, x


def validation_rows(
    estimator: Any, X_val: Any, y_val: Any, columns: Columns, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Checked rows on which something is chosen, encoded, and the codes of their classes."""
    if y_val is None:
        raise KernelpoolError("y_val must be given with X_val.")
    x = _checked(type(estimator).__name__, X_val, columns)
    if x.shape[1] != len(columns):
        raise ValueError(f"X_val has {x.shape[1]} features; X has {len(columns)}.")
    return x, class_codes(label_column(y_val, len(x)), classes, None, "y_val")


def _checked(
    name: str, X: Any, columns: Columns, *, fewest: int = 1, dtype: Any = FLOATS
) -> np.ndarray:
    """Rows in memory as scikit-learn checks them; infinite cells are refused, missing ones are
    NaN.
    """
    is_encoded = columns.coded or not (any(columns.levels) or is_table(X))
    if not is_encoded or isinstance(X, np.ma.MaskedArray):
        X = columns.encode(X)
    elif isinstance(X, np.ndarray) and X.dtype == object:  # pandas' NA is no number
        X = np.where(np.vectorize(is_missing, otypes=[bool])(X), np.nan, X)
    checked = check_array(
        X,
        dtype=dtype,
        order=None,
        ensure_min_samples=fewest,
        ensure_all_finite="allow-nan",
        estimator=name,
        input_name="X",
    )
    return np.asarray(checked)


def warn_of_columns(
    columns: Columns, n_rows: int, x: np.ndarray | None = None, codes: np.ndarray | None = None
) -> None:
    """One warning that names the columns from which nothing can be learned and, given encoded rows
    (n, d) and the codes of their classes (n,), those that give the class away.
    """
    if columns.names is None:  # the numbers of another network have none
        return
    found = []
    for i, values in enumerate(columns.categories):
        why = None if values is None else teaches_nothing(values.tolist(), n_rows)
        if why is None and x is not None and codes is not None:
            most = int(codes.max()) + 1 if values is None else FEW
            if _gives_away(x[codes >= 0, i], codes[codes >= 0], most):
                why = "each of its values is found in one class alone"
        if why is not None:
            found.append(f"{columns.label(i)} ({why})")
    if found:
        warn(
            f"X has columns that may mislead: {'; '.join(found)}. Leave out what new rows will not "
            "have, or not before their class is known.",
            ColumnWarning,
        )


def _gives_away(x: np.ndarray, codes: np.ndarray, most: int) -> bool:
    """Whether a column has at most so many values, each of them in one class alone; a missing cell
    is a value.
    """
    x = np.where(np.isnan(x), np.inf, x)
    if len(x) < FEWEST_LOOKED_AT or len(np.unique(x[:MOST_LOOKED_AT])) > most:
        return False
    values, at = np.unique(x, return_inverse=True)
    code_of = np.zeros(len(values), int)
    code_of[at] = codes
    return 1 < len(values) <= most and bool((code_of[at] == codes).all())


def is_in_memory(X: Any, y: Any = None) -> bool:
    """Whether rows are in NumPy or a table."""
    return not (is_foreign_array(X) or is_lazy_frame(X) or is_source(X, y))


def check_in_memory(estimator: Any, X: Any, y: Any = None) -> None:
    """One sentence for all rows that only mixtures take."""
    if not is_in_memory(X, y):
        raise KernelpoolError(
            f"{type(estimator).__name__} needs its rows in memory, in NumPy or a data frame; got "
            f"{type(X).__name__}. SharedKernelClassifier takes rows of torch, Dask and files."
        )


def frame_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, list[str]]:
    """A data frame of Dask as arrays, and the names of its features; y and sample_weight may be
    names of columns.
    """
    # one set of chunks for all columns: Dask joins files of which few columns are read
    X = X.map_partitions(lambda frame: frame)
    others = [
        _columns_of(X, [name])[name] if isinstance(name, str) else name
        for name in (y, sample_weight)
    ]
    X = X.drop(columns=[name for name in (y, sample_weight) if isinstance(name, str)])
    categorical = [
        str(name) for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"
    ]
    if categorical:
        raise KernelpoolError(
            f"Column {categorical[0]!r} of X holds {X.dtypes[categorical[0]]}, not numbers; leave "
            "it out, or encode it first (Dask-ML can)."
        )
    names = [str(name) for name in X.columns]
    kinds = {str(dtype) for dtype in X.dtypes}
    array = X.astype("float32" if kinds == {"float32"} else "float64").to_dask_array()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # strings of pandas become objects
        columns = [column.to_dask_array() if is_lazy_frame(column) else column for column in others]
    return array, *columns, names  # type: ignore[return-value]


def _columns_of(X: Any, names: list[str]) -> Any:
    absent = [name for name in names if name not in X.columns]
    if absent:
        raise KernelpoolError(
            f"X has no column {absent[0]!r}; there are {[str(name) for name in X.columns]}."
        )
    return X[names]


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


# -- sources of batches ----------------------------------------------------------------------------
#
# Rows are decoded once into a store. Labels and categories get codes in the order in which they
# come; when all rows have been read, these are replaced by positions among the sorted values.


class _Values(dict[Any, int]):
    """Distinct values, in the order in which they came."""

    def codes(self, values: Any) -> np.ndarray:
        """Their positions, new ones included."""
        # NaN is not equal to itself, but one object is
        keys = (np.nan if isinstance(v, float) and v != v else v for v in values)
        return np.array([self.setdefault(key, len(self)) for key in keys], np.float64)


def read(
    X: Any, y: Any, sample_weight: Any, columns: Columns | None, categorical_features: Any = None
) -> tuple[Columns, np.ndarray, Store]:
    """Columns, the distinct labels, and the rows of a source, with the positions of their labels.

    With `columns`, those of a fitted estimator, columns are matched by name and encoded by them.
    """
    store = None
    learned = columns
    labels = _Values()
    categories: list[_Values | None] = []
    names = None if columns is None else columns.names
    for table, target, weight in batches(X, y, sample_weight, names=names):
        found = columns or Columns.learn(table, categorical_features)
        x = _checked("SharedKernelClassifier", table, found, fewest=0)
        if not len(x):
            continue
        if store is None:
            learned = found
            store = Store(x.shape[1], x.dtype, weighted=weight is not None)
            categories = [None if values is None else _Values() for values in found.categories]
        if x.shape[1] != store.n_features:
            raise ValueError(
                f"A batch of X has {x.shape[1]} features; the first one has {store.n_features}."
            )
        if (weight is not None) != store.weighted:
            raise ValueError("Either all batches of X have a sample_weight, or none has.")
        if columns is None:
            _recode(x, found, categories)
        codes = np.full(len(x), -1.0) if target is None else labels.codes(target.tolist())
        store.add(x, codes, weight)
    if store is None or learned is None:
        raise ValueError("X has 0 rows, while a minimum of 1 is required: no batch has any.")
    if columns is None:
        in_order = [None if v is None else _sort(store, i, v) for i, v in enumerate(categories)]
        learned = replace(learned, categories=tuple(in_order), ranges=(None,) * len(in_order))
    return learned, np.array([*labels, None], object)[:-1], store


def _recode(x: np.ndarray, found: Columns, categories: list[_Values | None]) -> None:
    """Codes of one batch as codes of all that have been read, in place."""
    for i, (values, known) in enumerate(zip(found.categories, categories, strict=True)):
        if (values is None) != (known is None):
            held = ("numbers", "categories") if known is None else ("categories", "numbers")
            raise KernelpoolError(
                f"{found.label(i)} of X holds {held[0]} in the first batch and {held[1]} in a "
                "later one. Give it one type, or name it in categorical_features."
            )
        if values is not None and known is not None:
            recode(x[:, i], known.codes(values))


def _sort(store: Store, column: int, known: _Values) -> np.ndarray:
    """The categories of a column; its codes in the store become positions among them."""
    values = sorted_categories(set(known))
    store.recode(column, Columns((values,)).encode([[value] for value in known])[:, 0])
    return values


def rows_of(store: Store, codes: np.ndarray, n_jobs: int | None) -> Rows:
    """The rows, with `codes` in place of the positions of their labels; -1 is no label."""
    if (codes != np.arange(len(codes))).any():
        store.recode(store.n_features, codes.astype(np.float64))
    if store.n_bytes <= IN_MEMORY:
        return as_rows(*store.in_memory(), n_jobs=n_jobs)
    return StoredRows(store, n_jobs=n_jobs)


# -- labels ----------------------------------------------------------------------------------------


def _coded(X: Any, y: Any, unlabeled: Any) -> tuple[Any, np.ndarray]:
    """Codes 0..K-1, -1 where the class is not known, where y lives; and the classes."""
    y = y if is_lazy(y) else label_column(y, X.shape[0])
    classes = with_two_classes(np.unique(np.concatenate(of_parts(y, distinct_labels, unlabeled))))
    return map_column(y, class_codes, classes, unlabeled, dtype=np.int64), classes


def label_column(y: Any, n: float) -> np.ndarray:
    """Labels of n rows in NumPy, (n,); n is NaN where it is not known."""
    labels = to_numpy(y) if is_array(y) else np.asarray(y)
    if labels.dtype.kind == "U" and not is_array(y):  # NumPy turns [1, 'a'] into text
        labels = np.asarray(y, object)
    if labels.ndim != 1:
        labels = column_or_1d(labels, warn=True)
    if len(labels) != n and n == n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n}, {len(labels)}]"
        )
    return labels


def is_unlabeled(labels: np.ndarray, marker: Any) -> np.ndarray:
    """Which labels are the one that marks rows without a class, (n,); NaN is any missing value."""
    if marker is None:
        return np.zeros(len(labels), bool)
    if is_missing(marker):
        return np.fromiter(map(is_missing, labels.tolist()), bool, len(labels))
    return np.asarray(labels == marker) & np.ones(len(labels), bool)


def distinct_labels(labels: np.ndarray, marker: Any) -> np.ndarray:
    """The distinct labels of rows that have one."""
    known = labels[~is_unlabeled(labels, marker)]
    n_missing = is_unlabeled(known, np.nan).sum() if known.dtype.kind in "fO" else 0
    if n_missing:
        raise KernelpoolError(
            f"Input y contains NaN: {n_missing} of {len(labels)} labels are missing. Leave such "
            "rows out, or pass unlabeled=np.nan to SharedKernelClassifier, which learns from them."
        )
    if known.dtype == object:
        text = np.array([isinstance(label, str | bytes) for label in known], bool)
        if text.any() and not text.all():
            other = known[np.argmax(text != text[0])]
            raise KernelpoolError(
                f"y must hold labels of one kind; found text and numbers, {label_name(known[0])} "
                f"and {label_name(other)}. Convert y to str, or name the label of unlabeled rows "
                "with unlabeled=."
            )
        if len(known) and not text.any():
            known = np.asarray(known.tolist())
        elif text.any() and not any(isinstance(label, bytes) for label in known):
            known = known.astype(str)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if len(known):
        check_classification_targets(known)
    return np.unique(known)


def with_two_classes(classes: np.ndarray) -> np.ndarray:
    """The same classes, at least two."""
    if len(classes) < 2:
        found = f"1 class: {label_name(classes[0])}" if len(classes) else "no labeled row"
        raise KernelpoolError(
            f"y must contain at least two classes; found {found}. "
            "For one density without classes, use scikit-learn's GaussianMixture."
        )
    return classes


def label_name(label: Any) -> str:
    """A label as a user would type it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def class_codes(
    labels: np.ndarray, classes: np.ndarray, marker: Any, name: str = "y"
) -> np.ndarray:
    """Codes 0..K-1 of labels, -1 where there is none, (n,)."""
    codes = np.full(len(labels), -1, np.int64)
    known = ~is_unlabeled(labels, marker)
    given, classes = (
        np.asarray(part.tolist()) if part.dtype == object else part
        for part in (labels[known], classes)
    )
    if (given.dtype.kind in "US") == (classes.dtype.kind in "US"):
        codes[known] = np.minimum(np.searchsorted(classes, given), len(classes) - 1)
    unknown = given[(codes[known] < 0) | (classes[codes[known]] != given)]
    if len(unknown):
        raise KernelpoolError(
            f"{name} has the label {label_name(unknown[0])}, which is none of the classes "
            f"{classes.tolist()}."
        )
    return codes


def is_matrix(y: Any) -> bool:
    """Whether `y` holds class probabilities rather than labels."""
    if isinstance(y, list | tuple):
        return len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray) and len(y[0]) > 1
    return hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] > 1


def spread_shares(X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    r"""Class probabilities in place of labels: each row once for every class, with weights
    :math:`w_n t_{nk}`.

    .. math:: L = \sum_{nk} w_n t_{nk} \log P(C_k)\, p(x_n \mid C_k)
    """
    if is_foreign_array(X):
        raise KernelpoolError("Class probabilities need rows in memory, in NumPy or a table.")
    table = np.asarray(y, dtype=np.float64)
    check_consistent_length(X, table)
    classes = np.array(list(y.columns)) if hasattr(y, "columns") else np.arange(table.shape[1])
    total = table.sum(axis=1)
    bad = ~np.isfinite(total) | (table < 0).any(axis=1) | (np.abs(total - 1) > 1e-6)
    if bad.any():
        row = int(np.argmax(bad))
        raise KernelpoolError(
            "y as a matrix must hold class probabilities, rows that sum to one; "
            f"row {row} holds {table[row].tolist()[:8]}."
        )
    if (table.sum(axis=0) <= 0).any():
        raise KernelpoolError(
            f"y gives class {classes[int(np.argmin(table.sum(axis=0)))]!s} no share in any row; "
            "leave it out."
        )
    weight = given_weights(table, sample_weight)
    at, codes = np.nonzero(table > LEAST_SHARE)
    return _safe_indexing(X, at), classes[codes], table[at, codes] * weight[at]


# -- weights ---------------------------------------------------------------------------------------


def given_weights(X: Any, sample_weight: Any) -> np.ndarray:
    """`sample_weight`, checked, in NumPy; ones where it is None."""
    given = to_numpy(sample_weight) if is_array(sample_weight) else sample_weight
    rows = np.empty((X.shape[0], 1))
    return np.asarray(_check_sample_weight(given, rows, dtype=FLOATS, ensure_non_negative=True))


# -- means, variances and what is observed ---------------------------------------------------------


@record
class Survey(Sums):
    """Sums over coded rows about a point."""

    by_code: np.ndarray
    """Weight of the rows without a class and of those of each class, (1 + K,)."""
    observed: np.ndarray
    """Weight of those in which a feature is known, (1 + K, d)."""
    first: np.ndarray
    """Sum of weight * (x - about), (d,)."""
    second: np.ndarray
    """Sum of weight * (x - about)^2, (d,)."""
    fourth: np.ndarray
    """Sum of weight * (x - about)^4, (d,)."""
    n_rows: int
    """Rows with any weight."""


def survey(block: Block, about: Any, n_classes: int) -> Survey:
    """`Survey` of one block."""
    xp = namespace(block.x)
    codes = to_numpy(block.y)
    missing = block.missing
    with np.errstate(over="ignore", invalid="ignore"):  # found in the sums
        away = as_float64(block.x - about)
        weight = xp.ones_like(away[:, 0]) if block.weight is None else as_float64(block.weight)
        away = away if missing is None else away * as_float64(missing.observed)
        squared = away**2
        powers = away, squared, squared**2
        first, second, fourth = (np.asarray(to_numpy(weight @ power)) for power in powers)
    weight = np.asarray(to_numpy(weight))
    by_code = np.bincount(codes + 1, weight, minlength=n_classes + 1)
    observed = by_code[:, None] + np.zeros(block.x.shape[1])
    if missing is not None:
        known = np.asarray(to_numpy(missing.observed)) * weight[:, None]
        observed = np.stack([known[codes == code].sum(axis=0) for code in range(-1, n_classes)])
    return Survey(by_code, observed, first, second, fourth, int(np.count_nonzero(weight)))


def surveyed(rows: Rows, classes: np.ndarray, columns: Columns | None = None) -> TrainingData:
    """Rows whose labels are coded, with what two passes over them tell: the second is about the
    mean, so that an offset costs nothing. Without `columns`, all are numbers.
    """
    columns = Columns.numbers(rows.n_features) if columns is None else columns
    known = rows.total(survey, np.zeros(rows.n_features), len(classes))
    total = float(known.by_code.sum())
    if not 1 / HEAVIEST <= total <= HEAVIEST:
        raise KernelpoolError(
            f"sample_weight must sum to a number between {1 / HEAVIEST:g} and {HEAVIEST:g}; got "
            f"{total:g}. Multiply all weights by a constant: a weight is a number of rows."
        )
    weight = known.observed.sum(axis=0)
    if not (weight > 0).all():
        raise KernelpoolError(
            f"{feature_name(np.argmin(weight > 0), columns)} of X is missing in every row, so "
            "nothing can be learned of it; leave it out."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        origin = known.first / weight
        about = rows.total(survey, origin, len(classes))
        shift = about.first / weight
        variance = about.second / weight - shift**2
    mean = origin + shift
    variance = np.where(variance > 0, variance, 0.0)
    _check_range(rows, about.second, mean, variance)
    reach = np.full(len(mean), np.inf)
    with np.errstate(over="ignore"):
        heavy = about.fourth / weight >= HEAVY * variance**2  # both may overflow
    heavy &= (variance > 0) & (np.array(columns.levels) == 0)
    if heavy.any():
        frame = Frame(mean, np.sqrt(np.where(variance > 0, variance, 1.0)))
        drawn = rows.total(sample_block, 0, max(MOST_ROWS // len(classes), 1000), frame)
        of_all = variance
        mean, variance = _without_outliers(drawn.x, drawn.weight, mean, variance, heavy)
        wild = of_all > WILD**2 * variance
        reach[wild] = _farthest_class(drawn, mean, variance)[wild]
    # no variance where there is only what rounding alone would leave
    variance = np.where(variance <= (8 * rows.eps * np.abs(mean)) ** 2, 0.0, variance)
    incomplete = (known.observed != known.by_code[:, None]).any()
    return TrainingData(
        rows,
        classes,
        known.by_code[1:],
        float(known.by_code[0]),
        float(known.n_rows),
        mean,
        variance,
        columns,
        reach,
        known.observed if incomplete else None,
    )


def _check_range(rows: Rows, second: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
    """Squares of features neither overflow nor vanish."""
    if not np.isfinite(second).all():
        check_finite(rows)
        worst = int(np.argmax(~np.isfinite(second)))
        raise KernelpoolError(
            f"Feature {worst} of X is too large to be squared in float64; divide X by a constant."
        )
    narrow = rows.eps > 1e-10
    least = SMALLEST_VARIANCE_OF_FLOAT32 if narrow else SMALLEST_VARIANCE
    small = np.where(variance > 0, variance < least, (mean != 0) & (np.abs(mean) < least**0.5))
    if small.any():
        what = "told apart in float32" if narrow else "squared in float64"
        raise KernelpoolError(
            f"Feature {int(np.argmax(small))} of X is too small to be {what}; multiply X by a "
            "constant."
        )


def feature_name(feature: Any, columns: Columns) -> str:
    """A feature as a user would name it, at the beginning of a sentence."""
    return f"Feature {feature if columns.names is None else repr(columns.names[feature])}"


def check_finite(rows: Rows) -> None:
    """No cell is infinite; NaN is a missing cell."""
    n_infinite = int(rows.total(_n_infinite))
    if n_infinite:
        raise ValueError(f"Input X contains infinity in {n_infinite} cells; drop them first.")


def _n_infinite(block: Block) -> Any:
    xp = namespace(block.x)
    return xp.sum(xp.astype(xp.isinf(block.x), xp.int64))


# -- labeled rows of complete numbers, for the networks that keep them in memory --------------------

Labeled = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows (n, d), codes of their classes (n,) and weights (n,)."""


def labeled(rows: Any) -> Labeled:
    """The rows in memory that have a label and a positive weight."""
    weight = np.ones(len(rows.x)) if rows.weight is None else np.asarray(rows.weight, np.float64)
    at = (weight > 0) & (rows.y >= 0)
    return np.asarray(rows.x[at], np.float64), rows.y[at], weight[at]


def take(rows: Labeled, at: np.ndarray) -> Labeled:
    """The rows at some positions, or where a mask is true."""
    x, codes, weight = rows
    return x[at], codes[at], weight[at]


def merge_duplicates(rows: Labeled) -> tuple[Labeled, np.ndarray]:
    """Equal rows of one class as one row with the sum of their weights, and where each first stood.

    A row that stands twice is then a row of weight two. The rows are sorted, so that the order in
    which they came does not matter.
    """
    x, codes, weight = rows
    order = np.lexsort((*x.T, codes))
    x = x[order]
    codes = codes[order]
    first = np.append(True, (codes[1:] != codes[:-1]) | (x[1:] != x[:-1]).any(axis=1))
    weight = np.bincount(np.cumsum(first) - 1, weight[order])
    return (x[first], codes[first], weight), order[first]


def mean_and_variance(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each feature, (d,), those of the other cells where there are
    outliers; the variance of a constant feature is zero.
    """
    share = weight / weight.sum()
    mean = share @ x
    shift = share @ (x - mean)  # the mean of large numbers is rounded
    mean = mean + shift
    away = x - mean
    variance = np.where(np.ptp(x, axis=0) > 0, share @ away**2, 0.0)
    with np.errstate(over="ignore"):
        heavy = share @ away**4 > HEAVY * variance**2
    return _without_outliers(x, weight, mean, variance, heavy) if heavy.any() else (mean, variance)


def _without_outliers(
    x: np.ndarray, weight: np.ndarray, mean: np.ndarray, variance: np.ndarray, heavy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature, (d,): of those with heavy tails as they are without the
    known cells beyond the quantiles of `TAIL` by more than the range between these.
    """
    x = x[:, heavy]
    low, high = weighted_quantiles(x, weight, (TAIL, 1 - TAIL))
    others = (x >= 2 * low - high) & (x <= 2 * high - low)
    share = weight[:, None] * others
    share /= share.sum(axis=0)
    away = np.where(others, x - low, 0.0)
    shift = (share * away).sum(axis=0)
    of_others = (share * (away - shift) ** 2).sum(axis=0)
    far = (high[0] > low[0]) & (variance[heavy] > FAR**2 * of_others)
    mean = mean.copy()
    variance = variance.copy()
    mean[heavy] = np.where(far, low[0] + shift, mean[heavy])
    variance[heavy] = np.where(far, of_others, variance[heavy])
    return mean, variance


def _farthest_class(drawn: Sample, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Deviations from the mean within which lie `REACH` deviations about the medians of all classes,
    (d,): common ones or, where they are larger, those of the class by its quartiles.
    """
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    farthest = np.zeros(len(mean))
    for of_class in (drawn.code == code for code in np.unique(drawn.code)):
        quartiles = weighted_quantiles(drawn.x[of_class], drawn.weight[of_class], QUARTILES)
        low, median, high = ((q[0] - mean) / unit for q in quartiles)
        bound = np.abs(median) + REACH * np.fmax((high - low) / GAUSSIAN, 1.0)
        farthest = np.fmax(farthest, bound)  # a class may have no known cell
    return farthest


def weighted_quantiles(x: np.ndarray, weight: np.ndarray, levels: Sequence[float]) -> list[Any]:
    """The cell of each feature below which such parts of the weight lie, (1, d) for each level;
    missing cells have no part.
    """
    known = np.where(np.isfinite(x), weight[:, None], 0.0)
    order = np.argsort(x, axis=0)
    x, below = (np.take_along_axis(a, order, axis=0) for a in (x, known))
    below = np.cumsum(below, axis=0) / np.maximum(known.sum(axis=0), 1e-300)
    at = [(below < level).sum(axis=0, keepdims=True).clip(max=len(x) - 1) for level in levels]
    return [np.take_along_axis(x, i, axis=0) for i in at]


def feature_scale(variance: np.ndarray, standardize: bool) -> np.ndarray:
    """What features are divided by, (d,): their deviations, or one number for all of them."""
    known = variance[variance > 0]
    typical = known.mean() if len(known) else 1.0
    variance = np.where(variance > 0, variance, typical)
    return np.sqrt(variance if standardize else np.full_like(variance, variance.mean()))


# -- parameters ------------------------------------------------------------------------------------


def check_degree(sharing: float, name: str) -> None:
    """A degree of sharing lies in [0, 1]."""
    if not 0 <= sharing <= 1:
        raise KernelpoolError(f"{name} must lie in [0, 1]; got {sharing}.")


def class_prior_for(given: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Class priors from None, "balanced", a dict of some labels, or one number a class; `shares`
    (K,) are those of the rows, and the priors where none are given.
    """
    if given is None:
        return shares
    if isinstance(given, str):
        if given != "balanced":
            raise KernelpoolError(
                f"class_prior must be 'balanced', a dict or one number a class; got {given!r}."
            )
        return np.full(len(classes), 1 / len(classes))
    if not isinstance(given, Mapping):
        prior = given_array("class_prior", given, classes.shape)
        check_columns("class_prior", prior[:, None])
        return prior
    labels = classes.tolist()
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise KernelpoolError(
            f"class_prior names {unknown[0]!r}, which is none of the classes {labels}."
        )
    named = np.array([label in given for label in labels])
    prior = np.array([float(given.get(label, 0.0)) for label in labels])
    left = 1 - prior.sum()
    if not np.isfinite(left) or prior.min() < 0 or left < -1e-6 or (named.all() and left > 1e-6):
        raise KernelpoolError(
            f"class_prior must be shares that sum to one, over all classes; got {dict(given)}."
        )
    rest = np.where(named, 0.0, shares)
    if not named.all() and rest.sum() > 0:
        prior = prior + max(left, 0.0) * rest / rest.sum()
    return np.asarray(prior / prior.sum())


def given_array(name: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Finite numbers in float64, of a shape if one is expected."""
    checks: dict[str, Any] = {"dtype": np.float64, "ensure_2d": False, "allow_nd": True}
    array = np.asarray(check_array(given, **checks, input_name=name))
    if shape is not None:
        check_shape(name, array, shape)
    return array


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """The array has just this shape."""
    if array.shape != shape:
        raise KernelpoolError(f"{name} must have shape {shape}; got {array.shape}.")


def check_columns(name: str, array: np.ndarray) -> None:
    """Every column is a distribution."""
    total = array.sum(axis=0)
    if array.min() < 0 or not np.allclose(total, 1, atol=1e-6):
        what = (
            "must not be negative"
            if array.min() < 0
            else f"must sum to one, column by column; the sums are {total.round(6).tolist()}"
        )
        raise KernelpoolError(f"{name} {what}.")


def check_positive(name: str, covariances: np.ndarray, covariance_type: str) -> None:
    """Variances above zero, matrices symmetric and positive definite."""
    if FAMILIES[covariance_type].matrices:
        matrices = covariances.reshape(-1, *covariances.shape[-2:])
        asymmetry = np.abs(matrices - matrices.swapaxes(1, 2)).max(axis=(1, 2))
        bad = (np.linalg.eigvalsh(matrices)[:, 0] <= 0) | (
            asymmetry > 1e-8 * np.abs(matrices).max(axis=(1, 2))
        )
        wanted = "symmetric and positive definite"
    else:
        bad = covariances.reshape(len(covariances), -1).min(axis=1) <= 0
        wanted = "positive (variances, not deviations)"
    if bad.any():
        raise KernelpoolError(
            f"{name} must be {wanted}; that of kernel {int(np.argmax(bad))} is not."
        )


def family_of(covariances: np.ndarray, shape: tuple[int, int], named: str | None) -> str:
    """The family that `covariances` belong to, by their shape."""
    fits = [name for name in FAMILIES if FAMILIES[name].shape(*shape) == covariances.shape]
    if named is not None:
        if named not in FAMILIES:
            raise KernelpoolError(
                f"covariance_type must be one of {list(FAMILIES)}; got {named!r}."
            )
        check_shape("covariances", covariances, FAMILIES[named].shape(*shape))
        return named
    if len(fits) != 1:
        found = (
            f"may be of type {fits[0]} or {fits[1]}: say covariance_type="
            if fits
            else "fits none of the covariance types"
        )
        raise KernelpoolError(
            f"covariances of shape {covariances.shape} for means of shape {shape} {found}."
        )
    return fits[0]


@contextmanager
def named_features(columns: Columns) -> Iterator[None]:
    """The error of a kernel that collapses in here names the feature as the user does."""
    try:
        yield
    except CollapsedKernelError as error:
        name = None if columns.names is None else columns.names[error.feature]
        raise CollapsedKernelError(error.kernel, error.feature, error.variance, name) from None
