"""Labels in NumPy: which rows have one, the classes, and their codes."""

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from ..errors import KernelpoolError


def is_unlabeled(labels: np.ndarray, marker: Any) -> np.ndarray:
    """Which labels are the one that marks rows without a class, (n,)."""
    if marker is None:
        return (
            np.array([label is None for label in labels])
            if labels.dtype == object
            else np.zeros(len(labels), bool)
        )
    if isinstance(marker, float) and marker != marker:
        if labels.dtype == object:  # pandas' NA is neither equal nor unequal to itself
            return np.array(
                [type(label).__name__ == "NAType" or label != label for label in labels], bool
            )
        return np.asarray(labels != labels)
    return np.asarray(labels == marker) & np.ones(len(labels), bool)


def distinct_labels(labels: np.ndarray, marker: Any) -> np.ndarray:
    """The distinct labels of rows that have one."""
    known = labels[~is_unlabeled(labels, marker)]
    if known.dtype == object:
        kinds = {"text" if isinstance(label, str | bytes) else "a number" for label in known}
        if len(kinds) > 1:
            other = next(
                label
                for label in known
                if isinstance(label, str | bytes) != isinstance(known[0], str | bytes)
            )
            raise KernelpoolError(
                f"y must hold labels of one kind; found text and numbers, {label_name(known[0])} and {label_name(other)}. "
                f"Convert y to str, or name the label of unlabeled rows with unlabeled=."
            )
        known = (
            known.astype(str)
            if kinds == {"text"} and not any(isinstance(b, bytes) for b in known)
            else known
        )
        if kinds == {"a number"}:
            known = np.asarray(known.tolist())
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise ValueError(
            "Input y contains NaN. If it marks rows without a label, say unlabeled=np.nan."
        )
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
            f"For one density without classes, use scikit-learn's GaussianMixture."
        )
    return classes


def label_name(label: Any) -> str:
    """A label as a user would type it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def class_codes(labels: np.ndarray, classes: np.ndarray, marker: Any) -> np.ndarray:
    """Codes 0..K-1 of labels, -1 where there is none, (n,)."""
    codes = np.full(len(labels), -1, np.int64)
    known = ~is_unlabeled(labels, marker)
    given = labels[known]
    codes[known] = np.searchsorted(
        classes, given.astype(classes.dtype) if given.dtype == object else given
    )
    return codes


def codes_of_known(labels: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """Codes of labels if every one of them is among the sorted classes, (n,); None otherwise."""
    if labels.dtype.kind == "O" or (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
        return None
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return codes if bool((classes[codes] == labels).all()) else None
