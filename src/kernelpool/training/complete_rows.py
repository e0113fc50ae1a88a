"""Labeled rows of complete numbers, for the networks that keep them in memory."""

from typing import Any

import numpy as np

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
    x, codes = x[order], codes[order]
    first = np.append(True, (codes[1:] != codes[:-1]) | (x[1:] != x[:-1]).any(axis=1))
    weight = np.bincount(np.cumsum(first) - 1, weight[order])
    return (x[first], codes[first], weight), order[first]


def mean_and_variance(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each feature, (d,); the variance of a constant feature is
    zero.
    """
    share = weight / weight.sum()
    mean = share @ x
    shift = share @ (x - mean)  # the mean of large numbers is rounded
    mean = mean + shift
    variance = share @ (x - mean) ** 2
    return mean, np.where(np.ptp(x, axis=0) > 0, variance, 0.0)


def feature_scale(variance: np.ndarray, standardize: bool) -> np.ndarray:
    """What features are divided by, (d,): their deviations, or one number for all of them."""
    known = variance[variance > 0]
    typical = known.mean() if len(known) else 1.0
    variance = np.where(variance > 0, variance, typical)
    return np.sqrt(variance if standardize else np.full_like(variance, variance.mean()))
