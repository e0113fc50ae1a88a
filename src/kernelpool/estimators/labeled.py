"""Rows in memory with their labels and weights: what Parzen networks are made of."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..rows import Frame
from .data import training_data


@dataclass(frozen=True)
class Labeled:
    """Rows in memory, each with a class and some weight."""

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    index: np.ndarray
    """Where each row stood in X."""
    classes: np.ndarray
    frame: Frame
    variance: np.ndarray
    """Of each feature, (d,)."""
    n_rows: int = 0
    """Rows of X, those of weight zero included."""

    def part(self, at: np.ndarray) -> "Labeled":
        """Some of the rows, in the same frame."""
        return replace(self, x=self.x[at], codes=self.codes[at], weight=self.weight[at], index=self.index[at])

    def merge_duplicates(self) -> "Labeled":
        """Rows that stand several times in one class as one row of their weights together; in an order of their own."""
        order = np.lexsort((*self.x.T, self.codes))
        x, codes = self.x[order], self.codes[order]
        first = np.append(True, (codes[1:] != codes[:-1]) | (x[1:] != x[:-1]).any(axis=1))
        weight = np.bincount(np.cumsum(first) - 1, self.weight[order])
        return replace(self.part(order[first]), weight=weight)


def labeled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Labeled:
    """Checked rows of positive weight, in NumPy: they are the network, so they must fit into memory."""
    data = training_data(estimator, X, y, sample_weight, None, 1.0, None)
    x, codes, weight = (_host(a) for a in (data.rows.x, data.rows.y, data.rows.weight))  # type: ignore[attr-defined]
    if (codes < 0).any():
        raise KernelpoolError(f"y must have a label for every row; row {int(np.argmin(codes))} has None. Drop such rows first.")
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
    at = np.flatnonzero(weight > 0)
    frame = _frame(data.mean, data.variance)
    return Labeled(x[at], codes[at], weight[at], at, data.classes, frame, data.variance, len(x))


def _host(a: Any) -> Any:
    return None if a is None else to_numpy(a.compute() if hasattr(a, "compute") else a)


def _frame(mean: np.ndarray, variance: np.ndarray) -> Frame:
    """About the mean, in one unit for all features, a power of two: distances stay distances."""
    unit = 2.0 ** np.round(0.5 * np.log2(variance.mean())) if variance.any() else 1.0
    return Frame(mean, np.full(len(mean), unit))


def checked_prior(given: Any, n_classes: int) -> np.ndarray | None:
    """`class_prior` as the user gave it, or None."""
    if given is None:
        return None
    prior = np.asarray(check_array(given, dtype=np.float64, ensure_2d=False, input_name="class_prior"))
    if prior.shape != (n_classes,):
        raise KernelpoolError(f"class_prior must have shape ({n_classes},); got {prior.shape}.")
    if prior.min() < 0 or not math.isclose(prior.sum(), 1, abs_tol=1e-6):
        raise KernelpoolError(f"class_prior must not be negative and must sum to one; got {prior.tolist()}.")
    return prior


def split(codes: np.ndarray, fraction: float, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Positions of most rows, and of the rest, with the classes in the same shares where there are rows enough."""
    least = np.bincount(codes)[np.unique(codes)].min()
    n_judged = math.ceil(fraction * len(codes))
    enough = least > 1 and min(n_judged, len(codes) - n_judged) >= len(np.unique(codes))
    others, judged = train_test_split(
        np.arange(len(codes)), test_size=fraction, random_state=rng, stratify=codes if enough else None
    )
    return np.sort(others), np.sort(judged)


def folds(codes: np.ndarray, n_folds: int, rng: np.random.RandomState) -> list[np.ndarray]:
    """Positions of the rows in each of some parts, with the classes in the same shares as far as may be."""
    order = np.concatenate([rng.permutation(np.flatnonzero(codes == code)) for code in np.unique(codes)])
    return [np.sort(order[i::n_folds]) for i in range(min(n_folds, len(order)))]


def apportion_kernels(weight: np.ndarray, most: np.ndarray, total: int) -> list[int]:
    """`total` kernels dealt out in proportion to `weight`, at least one and at most `most` a class."""
    counts = np.ones(len(weight), int)
    for _ in range(min(total, int(most.sum())) - len(counts)):
        share = np.where(counts < most, weight / (counts + 0.5), -1.0)  # Webster's method: the most underrepresented next
        counts[np.argmax(share)] += 1
    return [int(n) for n in counts]
