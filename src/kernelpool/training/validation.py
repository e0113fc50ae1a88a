"""From what a user passes to rows: validation of data and parameters, labels, weights, and the frame of the data."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..arrays import is_array, is_numpy_array, is_writeable_array, namespace, to_numpy
from ..errors import CollapsedKernelError, KernelpoolError
from ..kernels import FAMILIES, Gaussian, Kernels, Product, ProductKernels
from ..rows import (
    DaskRows,
    Frame,
    Rows,
    as_rows,
    column_like,
    has_float_type,
    is_lazy,
    is_lazy_frame,
    lives_elsewhere,
    map_column,
    of_parts,
)
from ..tables.batches import is_source
from ..tables.words import TableColumns, columns_of, learn_columns
from .batched import batched_query_rows, batched_training_data
from .labels import class_codes, distinct_labels, with_two_classes
from .survey import TrainingData, check_finite, check_total_weight, surveyed

FLOATS = [np.float64, np.float32]


def training_data(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    unlabeled: Any,
    unlabeled_weight: float,
    n_jobs: int | None,
    *,
    holes: bool = False,
) -> TrainingData:
    """Checks everything that can be checked before any work is done; with `holes`, cells may be missing."""
    names, columns = None, None
    for name in ("categories_", "indicator_features_"):
        estimator.__dict__.pop(name, None)
    if is_lazy_frame(X):
        X, y, sample_weight, names = frame_columns(X, y, sample_weight)
    elif is_source(X, y):
        if not isinstance(getattr(X, "columns", None), TableColumns) or getattr(
            estimator, "add_indicator", False
        ):
            _refuse_told_words(estimator, "rows in memory")
        return batched_training_data(
            estimator, X, y, sample_weight, unlabeled, unlabeled_weight, n_jobs, holes=holes
        )
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if lives_elsewhere(X):
        _refuse_told_words(estimator, "rows in NumPy or a table")
        check_elsewhere(estimator, X, reset=True, names=names)
    else:
        columns = learned_columns(estimator, X)
        X = checked_rows(estimator, X, holes=holes, columns=columns, reset=True)
    codes, classes = _coded(X, y, unlabeled)
    weight = _weights(X, codes, sample_weight, unlabeled_weight)
    rows = as_rows(X, column_like(X, codes), weight, n_jobs=n_jobs)
    rows = rows.persisted() if isinstance(rows, DaskRows) else rows
    data = surveyed(rows, classes, getattr(estimator, "feature_names_in_", None))
    data.levels = None if columns is None else columns.levels
    return data


def learned_columns(estimator: Any, X: Any) -> TableColumns | None:
    """What the columns of a table hold, where the estimator takes words and some do; it keeps the words as `categories_`."""
    estimator.__dict__.pop("categories_", None)
    if not hasattr(estimator, "categorical_features"):
        return None
    most_words = getattr(estimator, "_most_words", None)
    columns = learn_columns(X, estimator.categorical_features, estimator.min_frequency, most_words)
    estimator.__dict__.pop("indicator_features_", None)
    if getattr(estimator, "add_indicator", False):
        columns = _with_patterns(X, columns)
        if columns is not None and columns.patterns:
            estimator.indicator_features_ = np.array(columns.patterns, int)
    if columns is not None:
        estimator.categories_ = list(columns.categories)
    return columns


def _with_patterns(X: Any, columns: TableColumns | None) -> TableColumns | None:
    """What the columns hold, with those in which cells are missing told of; None where there are neither words nor gaps."""
    if columns is None and hasattr(X, "tocsr"):
        return None
    if columns is None:
        X = as_nan(X if hasattr(X, "shape") else np.asarray(X, np.float64))
        cells, names = columns_of(X)
        columns = TableColumns((None,) * len(cells), None if names is None else tuple(names))
        found = columns.with_patterns(X)
        return found if found.patterns else None
    return columns.with_patterns(X)


def known_columns(estimator: Any) -> TableColumns | None:
    """What the columns held that an estimator was fitted to, where some held words."""
    categories = getattr(estimator, "categories_", None)
    if categories is None:
        return None
    names = getattr(estimator, "feature_names_in_", None)
    patterns = tuple(int(i) for i in getattr(estimator, "indicator_features_", ()))
    return TableColumns(
        tuple(categories), None if names is None else tuple(str(name) for name in names), patterns
    )


def checked_rows(
    estimator: Any,
    X: Any,
    *,
    holes: bool,
    columns: TableColumns | None,
    reset: bool = False,
    dtype: Any = FLOATS,
) -> np.ndarray:
    """Rows in memory as numbers, words as codes; as scikit-learn checks them, with the names of their features kept."""
    finite = "allow-nan" if holes else True
    fewest = 2 if reset else 1
    if columns is None:
        X = as_nan(X) if holes else X
        settings = {
            "order": None,
            "ensure_min_samples": fewest,
            "ensure_all_finite": finite,
            "reset": reset,
        }
        try:
            return np.asarray(validate_data(estimator, X, dtype=dtype, **settings))
        except (TypeError, ValueError):
            _refuse_words(estimator, X)
            raise
    x = columns.coded(X)
    if not reset:
        return np.asarray(check_array(x, ensure_all_finite=finite, input_name="X"))
    x = np.asarray(validate_data(estimator, x, ensure_min_samples=fewest, ensure_all_finite=finite))
    estimator.n_features_in_ = len(columns.categories)
    if columns.names is not None:
        estimator.feature_names_in_ = np.array(columns.names, dtype=object)
    return x


def _refuse_told_words(estimator: Any, what: str) -> None:
    """Columns that are named as words cannot be coded where rows live elsewhere, and no pattern is told of there."""
    if getattr(estimator, "add_indicator", False):
        raise KernelpoolError(
            f"add_indicator=True needs {what}; add the pattern as columns of your own, or leave it out."
        )
    told = getattr(estimator, "categorical_features", None)
    if told is not None and not isinstance(told, str) and len(told):
        raise KernelpoolError(
            f"categorical_features={told!r} needs {what}; code the words first, or leave it out."
        )


def _refuse_words(estimator: Any, X: Any) -> None:
    """An error that names the column of words, where there is one and the estimator takes numbers alone."""
    columns = learn_columns(X)
    if columns is None:
        return
    name = columns.name(next(i for i, words in enumerate(columns.categories) if words is not None))
    what = f"{name[0].upper()}{name[1:]} of X holds words"
    if hasattr(estimator, "categorical_features"):
        raise KernelpoolError(
            f"{what}, and categorical_features={estimator.categorical_features!r} takes it for numbers."
        )
    raise KernelpoolError(
        f"{what}, and {type(estimator).__name__} takes numbers alone: put an encoder before it, such as "
        f"kernelpool.tables.encoder.TableEncoder."
    )


def as_nan(X: Any) -> Any:
    """`X` with every mark of a missing cell turned into NaN: masked cells, None and pandas' NA."""
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(X.dtype if X.dtype.kind == "f" else np.float64), np.nan)
    if isinstance(X, np.ndarray) and X.dtype == object:
        return np.where(_is_missing(X), np.nan, X)
    if hasattr(X, "mask") and any(
        getattr(dtype, "kind", "") == "O" for dtype in X.dtypes
    ):  # a data frame of pandas
        return X.mask(X.isna(), np.nan)
    return X


def refuse_missing(X: Any, what: str) -> None:
    """An error where cells are missing and `what` cannot leave them out, though the classifier takes them elsewhere."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isnan(X).any():
        n_missing = int(np.isnan(X).sum())
        raise KernelpoolError(
            f"{what} takes no missing values yet: Input X contains NaN in {n_missing} cells. impute(X) fills them."
        )


def _is_missing(cells: np.ndarray) -> np.ndarray:
    return np.vectorize(
        lambda cell: cell is None or type(cell).__name__ == "NAType", otypes=[bool]
    )(cells)


def validation_rows(
    estimator: Any, X_val: Any, y_val: Any, classes: np.ndarray, *, holes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Checked rows on which something is chosen, and the codes of their classes."""
    if y_val is None:
        raise KernelpoolError("y_val must be given with X_val.")
    x = checked_rows(estimator, X_val, holes=holes, columns=known_columns(estimator))
    labels = np.asarray(y_val)
    if len(labels) != len(x):
        raise KernelpoolError(
            f"X_val has {len(x)} rows and y_val {len(labels)}; give one label a row."
        )
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise KernelpoolError(
            f"y_val must hold labels of y, {classes.tolist()}; got {unknown[0]!r}."
        )
    return x, np.searchsorted(classes, labels)


def query_rows(estimator: Any, X: Any, n_jobs: int | None, *, holes: bool = False) -> Rows:
    """Rows to be judged; with `holes`, cells may be missing."""
    if is_lazy_frame(X):
        names = getattr(estimator, "feature_names_in_", None)
        X = frame_columns(X if names is None else _columns_of(X, names.tolist()), None, None)[0]
    if is_source(X) and not hasattr(estimator, "categories_"):
        return batched_query_rows(estimator, X, n_jobs, holes=holes)
    columns = known_columns(estimator)
    if columns is not None or not lives_elsewhere(X):
        return as_rows(checked_rows(estimator, X, holes=holes, columns=columns), n_jobs=n_jobs)
    check_elsewhere(estimator, X, reset=False)
    rows = as_rows(X, n_jobs=n_jobs)
    if not is_lazy(X):  # what is lazy is not computed twice
        check_finite(rows)
    return rows


def frame_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, list[str]]:
    """A data frame of Dask as arrays, and the names of its features; y and sample_weight may be names of columns."""
    beside = [
        _columns_of(X, [name])[name] if isinstance(name, str) else name
        for name in (y, sample_weight)
    ]
    X = X.drop(columns=[name for name in (y, sample_weight) if isinstance(name, str)])
    words = [
        str(name) for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"
    ]
    if words:
        raise KernelpoolError(
            f"Column {words[0]!r} of X holds {X.dtypes[words[0]]}, not numbers; leave it out, or code it first (Dask-ML can)."
        )
    names = [str(name) for name in X.columns]
    kinds = {str(dtype) for dtype in X.dtypes}
    array = X.astype("float32" if kinds == {"float32"} else "float64").to_dask_array()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # labels that are strings of pandas become objects
        columns = [column.to_dask_array() if is_lazy_frame(column) else column for column in beside]
    return array, *columns, names  # type: ignore[return-value]


def _columns_of(X: Any, names: list[str]) -> Any:
    absent = [name for name in names if name not in X.columns]
    if absent:
        raise KernelpoolError(
            f"X has no column {absent[0]!r}; there are {[str(name) for name in X.columns]}."
        )
    return X[names]


def check_elsewhere(estimator: Any, X: Any, *, reset: bool, names: list[str] | None = None) -> None:
    """What scikit-learn's validate_data checks of arrays that it does not take, without a look at the rows."""
    if is_array(X) and not is_writeable_array(X):
        raise ValueError(
            f"X is an array of {type(X).__module__.partition('.')[0]}, whose arrays cannot be written into; pass "
            f"numpy.asarray(X), or torch.from_dlpack(X) to stay on its device."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    if not reset and X.shape[1] != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input."
        )
    if not has_float_type(X):
        raise ValueError(
            f"X must be float32 or float64; got {X.dtype}. Convert it, for instance with X.astype('float64')."
        )
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, object)


# -- labels -------------------------------------------------------------------------------------------------------


def _coded(X: Any, y: Any, unlabeled: Any) -> tuple[Any, np.ndarray]:
    """Codes 0..K-1, -1 where the class is not known, where y lives; and the classes."""
    if not is_lazy(y):
        y, n = column_or_1d(to_numpy(y) if is_array(y) else _as_labels(y), warn=True), X.shape[0]
        if len(y) != n and n == n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: [{n}, {len(y)}]"
            )
    classes = with_two_classes(np.unique(np.concatenate(of_parts(y, distinct_labels, unlabeled))))
    return map_column(y, class_codes, classes, unlabeled, dtype=np.int64), classes


def _as_labels(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    if labels.dtype.kind in "OU" and not isinstance(y, np.ndarray):
        # NumPy turns [1, 'a'] into strings; look at what was passed
        labels = np.empty(len(y), object) if np.ndim(y) == 1 or labels.ndim == 1 else labels
        if labels.dtype == object and labels.ndim == 1:
            labels[:] = list(y)
    return labels


# -- weights and scale --------------------------------------------------------------------------------------------


def _weights(X: Any, codes: Any, sample_weight: Any, unlabeled_weight: float) -> Any:
    """sample_weight times `unlabeled_weight` where there is no label; None where every row counts once."""
    weight = (
        sample_weight if sample_weight is None or is_lazy(X) else given_weights(X, sample_weight)
    )
    if unlabeled_weight != 1 and (is_lazy(codes) or (codes < 0).any()):
        factor = map_column(codes, _factor, unlabeled_weight, dtype=np.float64)
        weight = factor if weight is None else weight * factor.astype(weight.dtype)
    return None if weight is None else column_like(X, weight)


def given_weights(X: Any, sample_weight: Any) -> np.ndarray:
    """`sample_weight`, checked, in NumPy; ones where it is None."""
    like = X if is_numpy_array(X) else np.empty((X.shape[0], 1))
    given = to_numpy(sample_weight) if is_array(sample_weight) else sample_weight
    weight = np.asarray(_check_sample_weight(given, like, dtype=FLOATS, ensure_non_negative=True))
    with np.errstate(over="ignore"):
        check_total_weight(float(weight.sum(dtype=np.float64)))
    return weight


def _factor(codes: np.ndarray, unlabeled_weight: float) -> np.ndarray:
    return np.where(codes < 0, unlabeled_weight, 1.0)


def frame_of(
    kernel: type[Gaussian], mean: np.ndarray, variance: np.ndarray, standardize: bool = False
) -> tuple[Frame, np.ndarray]:
    """The frame that suits a family, and the variance of each feature in it (that of a constant feature is one).

    Families that are closed under scaling features one by one get a unit for each; the spherical one a common unit, unless
    features are to be standardized.
    """
    typical = variance[variance > 0].mean() if variance.any() else 1.0
    filled = np.where(variance > 0, variance, typical)
    unit = np.sqrt(
        filled if kernel.equivariant or standardize else np.full_like(filled, filled.mean())
    )
    return Frame(mean, unit), filled / unit**2


def mixture_frame(kernel: Gaussian | Product, kernels: Kernels, share: np.ndarray) -> Frame:
    """The frame that suits the rows which a mixture stands for: it needs no rows."""
    origin = share @ kernels.mean
    variance = share @ (kernel.variances(kernels) + (kernels.mean - origin) ** 2)
    if isinstance(kernel, Product):
        return frame_of_table(type(kernel.gaussian), origin, variance, kernel.levels)[0]
    return frame_of(type(kernel), origin, variance)[0]


# -- words ----------------------------------------------------------------------------------------------------------


def frame_of_table(
    kernel: type[Gaussian],
    mean: np.ndarray,
    variance: np.ndarray,
    levels: tuple[int, ...],
    standardize: bool = False,
) -> tuple[Frame, np.ndarray]:
    """`frame_of` for the numbers among the features; codes of words stay as they are."""
    numbers = np.array(levels) == 0
    frame, inside = frame_of(kernel, mean[numbers], variance[numbers], standardize)
    origin, unit, found = np.zeros(len(mean)), np.ones(len(mean)), np.ones(len(mean))
    origin[numbers], unit[numbers], found[numbers] = frame.origin, frame.unit, inside
    return Frame(origin, unit), found


def family_for(name: str, floor: Any, levels: tuple[int, ...] | None, strength: float = 1.0) -> Any:
    """The family of kernels over numbers, or over numbers and words; `floor` (d,) is the smallest variance of each feature."""
    if levels is None:
        return FAMILIES[name](floor)
    numbers = [i for i, n_levels in enumerate(levels) if not n_levels]
    index = namespace(floor).asarray(numbers, dtype=namespace(floor).int64)
    return Product(FAMILIES[name](namespace(floor).take(floor, index, axis=0)), levels, strength)


def kernels_of(
    means: np.ndarray, covariances: np.ndarray, probability: np.ndarray | None = None
) -> Kernels:
    """The parameters of kernels over numbers, or over numbers and words."""
    arrays = np.asarray(means), np.asarray(covariances)
    return (
        Kernels(*arrays)
        if probability is None
        else ProductKernels(*arrays, np.asarray(probability))
    )


# -- parameters ---------------------------------------------------------------------------------------------------


def check_degree(sharing: float, name: str) -> None:
    """A degree of sharing lies in [0, 1]."""
    if not 0 <= sharing <= 1:
        raise KernelpoolError(f"{name} must lie in [0, 1]; got {sharing}.")


def class_prior_of(given: Any, data: TrainingData) -> np.ndarray:
    """The class priors given, or the shares of the classes among the labeled rows."""
    if given is None:
        return np.asarray(data.class_weight / data.class_weight.sum())
    return class_prior_for(given, data.classes, data.class_weight / data.class_weight.sum())


def class_prior_for(given: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Class priors from "balanced", a dict of some labels, or one number a class; `shares` (K,) are those of the rows."""
    if isinstance(given, str):
        if given != "balanced":
            raise KernelpoolError(
                f"class_prior must be 'balanced', a dict or one number a class; got {given!r}."
            )
        return np.full(len(classes), 1 / len(classes))
    if not isinstance(given, Mapping):
        return checked_class_prior(given, len(classes))
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


def checked_class_prior(given: Any, n_classes: int) -> np.ndarray:
    """The class priors given, one for each class."""
    prior = np.asarray(
        check_array(given, dtype=np.float64, ensure_2d=False, input_name="class_prior")
    )
    check_shape("class_prior", prior, (n_classes,))
    check_columns("class_prior", prior[:, None])
    return prior


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
    # of families with covariances alike the first one registered is meant: shipped ones come before others
    alike = {FAMILIES[name].shape(1009, 1013): name for name in reversed(list(FAMILIES))}
    fits = [
        name
        for name in FAMILIES
        if name in alike.values() and FAMILIES[name].shape(*shape) == covariances.shape
    ]
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
def named_features(names: np.ndarray | None) -> Iterator[None]:
    """A kernel that collapses in here is told of with the feature named as the user names it."""
    try:
        yield
    except CollapsedKernelError as error:
        name = None if names is None else str(names[error.feature])
        raise CollapsedKernelError(error.kernel, error.feature, error.variance, name) from None
