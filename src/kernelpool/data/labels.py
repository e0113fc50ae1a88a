"""Labels and weights as a user passes them, and class priors: codes 0..K-1, -1 for rows without a
class.

Labels may be class probabilities (n, K): each row then counts once for every class.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from ..arrays import is_array, is_foreign_array, is_lazy, map_column, of_parts, to_numpy
from ..errors import KernelpoolError
from ..tables.read import places_of
from ..text import is_missing

FLOATS = [np.float64, np.float32]


LEAST_SHARE = 1e-9
"""A class with less than this probability in a row has none."""


def coded_labels(X: Any, y: Any, unlabeled: Any) -> tuple[Any, np.ndarray]:
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
        is_text = np.array([isinstance(label, str) for label in known], bool)
        if is_text.any() and not is_text.all():
            second = known[np.argmax(is_text != is_text[0])]
            raise KernelpoolError(
                f"y must hold labels of one kind; found text and numbers, {label_name(known[0])} "
                f"and {label_name(second)}. Convert y to str, or name the label of unlabeled rows "
                "with unlabeled=."
            )
        known = known.astype(str) if is_text.any() else np.asarray(known.tolist())
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if len(known):
        check_classification_targets(known)
    return np.unique(known)


def known_labels(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels of a file as the classes that they stand for, (n,): text files hold text. Others are
    something else than any class.
    """
    cells = labels.tolist()
    places = dict(
        zip(dict.fromkeys(cells), places_of([*dict.fromkeys(cells)], classes.tolist()), strict=True)
    )
    other = classes.max() + 1 if classes.dtype.kind in "biuf" else "".join(map(str, classes)) + "."
    return np.append(classes, other)[[max(places[cell], -1) for cell in cells]]


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
    labels, classes = (
        np.asarray(values.tolist()) if values.dtype == object else values
        for values in (labels[known], classes)
    )
    if (labels.dtype.kind in "US") == (classes.dtype.kind in "US"):
        codes[known] = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = labels[(codes[known] < 0) | (classes[codes[known]] != labels)]
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
    invalid = ~(np.abs(total - 1) <= 1e-6) | (table < 0).any(axis=1)
    if invalid.any():
        row = int(np.argmax(invalid))
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


def given_weights(X: Any, sample_weight: Any) -> np.ndarray:
    """`sample_weight`, checked, in NumPy; ones where it is None."""
    weight = to_numpy(sample_weight) if is_array(sample_weight) else sample_weight
    rows = np.empty((X.shape[0], 1))
    return _check_sample_weight(weight, rows, dtype=FLOATS, ensure_non_negative=True)


Labeled = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows (n, d), codes of their classes (n,) and weights (n,)."""


def labeled(rows: Any) -> Labeled:
    """The rows in memory that have a label and a positive weight."""
    weight = np.ones(len(rows.x)) if rows.weight is None else np.asarray(rows.weight, np.float64)
    at = (weight > 0) & (rows.y >= 0)
    return np.asarray(rows.x[at], np.float64), rows.y[at], weight[at]


def merge_duplicates(rows: Labeled) -> tuple[Labeled, np.ndarray]:
    """Equal rows of one class as one row with the sum of their weights, and where each first stood.

    A row that stands twice is then a row of weight two, and one of no weight is none. The rows are
    sorted, so that the order in which they came does not matter.
    """
    x, codes, weight = rows
    order = np.lexsort((*x.T, codes))
    order = order[weight[order] > 0]
    x = x[order]
    codes = codes[order]
    differs = (x[1:] != x[:-1]) & ~(np.isnan(x[1:]) & np.isnan(x[:-1]))
    first = np.append(True, (codes[1:] != codes[:-1]) | differs.any(axis=1))[: len(x)]
    weight = np.bincount(np.cumsum(first) - 1, weight[order])
    return (x[first], codes[first], weight), order[first]


def class_prior_for(class_prior: Any, classes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Class priors from None, "balanced", a dict of some labels, or one number a class; `shares`
    (K,) are those of the rows, and the priors where it is None.
    """
    if class_prior is None:
        return shares
    if isinstance(class_prior, str):
        if class_prior != "balanced":
            raise KernelpoolError(
                f"class_prior must be 'balanced', a dict or one number a class; got {class_prior!r}."
            )
        return np.full(len(classes), 1 / len(classes))
    if not isinstance(class_prior, Mapping):
        prior = given_array("class_prior", class_prior, classes.shape)
        check_columns("class_prior", prior[:, None])
        return prior
    labels = classes.tolist()
    unknown = [label for label in class_prior if label not in labels]
    if unknown:
        raise KernelpoolError(
            f"class_prior names {unknown[0]!r}, which is none of the classes {labels}."
        )
    named = np.array([label in class_prior for label in labels])
    prior = np.array([float(class_prior.get(label, 0.0)) for label in labels])
    left = 1 - prior.sum()
    if not np.isfinite(left) or prior.min() < 0 or left < -1e-6 or (named.all() and left > 1e-6):
        raise KernelpoolError(
            f"class_prior must be shares that sum to one, over all classes; got {dict(class_prior)}."
        )
    rest = np.where(named, 0.0, shares)
    if rest.sum() > 0:
        prior = prior + max(left, 0.0) * rest / rest.sum()
    return prior / prior.sum()


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
