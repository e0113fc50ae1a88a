"""Location and scale of features, from sums over rows wherever they live.

Outliers count in neither; see `_without_outliers`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import as_float64, namespace, to_numpy
from ..errors import KernelpoolError
from ..rows import Block, Rows
from ..rows.sample import Sample
from ..sums import Sums, record
from ..tables.columns import Columns

HEAVIEST, SMALLEST_VARIANCE, SMALLEST_VARIANCE_OF_FLOAT32 = 1e280, 1e-305, 1e-72
"""Beyond these, sums of weights and squares of features leave the range of float64."""


TAIL, HEAVY, FAR, WILD, REACH = 0.02, 20.0, 1.5, 3.0, 5.0
"""Outliers are cells beyond this part of the weight at either end, and farther away than the range
of the rest; they are sought where the kurtosis is above the second. Mean and variance are those of
the other cells where outliers make the deviation larger by the third. Where by the fourth, training
holds cells within so many deviations of the medians of the classes: a rare class may lie far away.
"""


QUARTILES, GAUSSIAN = (0.25, 0.5, 0.75), 1.35
"""And the range between the outer ones, in deviations of a Gaussian."""


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
