"""Location and scale of features, from two passes over rows wherever they live.

Outliers count in neither where they dominate: see `trimmed_moments`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import as_float64, namespace, to_numpy
from ..errors import KernelpoolError
from ..rows import ArrayRows, Block, Frame, Rows
from ..rows.sample import MOST_ROWS, Sample, sample_block
from ..sums import Sums, record
from ..tables.columns import Columns

HEAVIEST = 1e280
"""Largest sum of weights; the smallest is its inverse."""

SMALLEST_VARIANCE = 1e-305
"""Below it squares of features leave the range of float64."""

SMALLEST_VARIANCE_OF_FLOAT32 = 1e-72
"""Below it features are told apart no more in float32."""

TAIL = 0.02
"""Weight in either tail that defines the central range of a feature."""

MIN_KURTOSIS = 20.0
"""Outliers are searched for in features above this."""

MIN_INFLATION = 1.5
"""Moments are trimmed where outliers inflate the standard deviation by more."""

CLIP_INFLATION = 3.0
"""Cells are clipped in training where outliers inflate it by more."""

CLIP_DEVIATIONS = 5.0
"""Cells are clipped at so many deviations from the medians of the classes."""

QUARTILES = (0.25, 0.5, 0.75)

GAUSSIAN_RANGE = 1.35
"""Interquartile range of a Gaussian, in standard deviations."""


@dataclass(frozen=True)
class Scale:
    """Location and scale of the features of the rows of a fit."""

    mean: np.ndarray
    """(d,); without outliers where they dominate, as the variance."""
    variance: np.ndarray
    """(d,); zero where there is only what rounding would leave."""
    reach: np.ndarray
    """Clipping bound of each feature during training, in standard deviations, (d,); inf where there
    are no outliers.
    """

    @cached_property
    def frame(self) -> Frame:
        """In which the mean is zero and the variance one; a constant feature keeps its unit."""
        return Frame(self.mean, np.sqrt(np.where(self.variance > 0, self.variance, 1.0)))

    @property
    def clips(self) -> bool:
        """Whether any feature is clipped."""
        return bool(np.isfinite(self.reach).any())

    def clipped(self, x: np.ndarray) -> np.ndarray:
        """Rows (n, d) within the reach of the features."""
        if not self.clips:
            return x
        bound = self.reach * self.frame.unit
        return np.clip(x, self.mean - bound, self.mean + bound)


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

    @property
    def weight(self) -> np.ndarray:
        """Weight of the rows in which a feature is known, (d,)."""
        return self.observed.sum(axis=0)


def survey(block: Block, about: Any, n_classes: int) -> Survey:
    """`Survey` of one block."""
    xp = namespace(block.x)
    codes = to_numpy(block.y)
    missing = block.missing
    with np.errstate(over="ignore", invalid="ignore"):  # found in the sums
        deviation = as_float64(block.x - about)
        weight = xp.ones_like(deviation[:, 0]) if block.weight is None else as_float64(block.weight)
        if missing is not None:
            deviation = deviation * as_float64(missing.observed)
        squared = deviation**2
        powers = deviation, squared, squared**2
        first, second, fourth = (np.asarray(to_numpy(weight @ power)) for power in powers)
    weight = np.asarray(to_numpy(weight))
    by_code = np.bincount(codes + 1, weight, minlength=n_classes + 1)
    observed = by_code[:, None] + np.zeros(block.x.shape[1])
    if missing is not None:
        known = np.asarray(to_numpy(missing.observed)) * weight[:, None]
        observed = np.stack([known[codes == code].sum(axis=0) for code in range(-1, n_classes)])
    return Survey(by_code, observed, first, second, fourth, int(np.count_nonzero(weight)))


def scale_of(rows: Rows, about_zero: Survey, columns: Columns) -> Scale:
    """The scale of rows whose survey about zero is given."""
    mean, variance, about_mean = _moments(rows, about_zero)
    _check_range(rows, about_mean.second, mean, variance)
    numbers = np.array(columns.levels) == 0
    return _without_outliers(rows, mean, variance, about_mean, numbers)


def mean_and_variance(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of the scale of rows in memory, (d,), which may be anything: targets, or mapped rows."""
    rows = ArrayRows(x, np.zeros(len(x), np.int64), weight)
    about_zero = rows.total(survey, np.zeros(x.shape[1]), 1)
    scale = _without_outliers(rows, *_moments(rows, about_zero))
    return scale.mean, scale.variance


def _moments(rows: Rows, about_zero: Survey) -> tuple[np.ndarray, np.ndarray, Survey]:
    """Mean and variance of each feature, (d,), and the survey about the mean, of which an offset
    costs no digits.
    """
    weight = about_zero.weight
    with np.errstate(over="ignore", invalid="ignore"):
        origin = about_zero.first / weight
        about_mean = rows.total(survey, origin, len(about_zero.by_code) - 1)
        shift = about_mean.first / weight
        variance = about_mean.second / weight - shift**2
    return origin + shift, np.where(variance > 0, variance, 0.0), about_mean


def _without_outliers(
    rows: Rows,
    mean: np.ndarray,
    variance: np.ndarray,
    about_mean: Survey,
    numbers: np.ndarray | bool = True,
) -> Scale:
    """The scale of rows with these moments; outliers are searched for in a sample of the
    rows, in features that are `numbers`, (d,).
    """
    reach = np.full(len(mean), np.inf)
    with np.errstate(over="ignore"):  # both sides may overflow
        heavy = about_mean.fourth / about_mean.weight >= MIN_KURTOSIS * variance**2
    heavy &= (variance > 0) & numbers
    if heavy.any():
        n_classes = len(about_mean.by_code) - 1
        frame = Scale(mean, variance, reach).frame
        drawn = rows.total(sample_block, 0, max(MOST_ROWS // n_classes, 1000), frame)
        of_all = variance
        mean, variance = trimmed_moments(drawn.x, drawn.weight, mean, variance, heavy)
        clip = of_all > CLIP_INFLATION**2 * variance
        reach[clip] = _farthest_class(drawn, Scale(mean, variance, reach).frame)[clip]
    rounding = (8 * rows.eps * np.abs(mean)) ** 2
    return Scale(mean, np.where(variance <= rounding, 0.0, variance), reach)


def trimmed_moments(
    x: np.ndarray, weight: np.ndarray, mean: np.ndarray, variance: np.ndarray, features: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace mean and variance of `features` by those without outliers, where outliers dominate.

    An outlier lies farther from the central 96 % of the weight than that range is wide.
    """
    x = x[:, features]
    low, high = weighted_quantiles(x, weight, (TAIL, 1 - TAIL))  # (1, d)
    width = high - low
    inlier = (x >= low - width) & (x <= high + width)
    share = weight[:, None] * inlier
    share /= share.sum(axis=0)
    deviation = np.where(inlier, x - low, 0.0)  # from `low`: exact far from the origin
    center = (share * deviation).sum(axis=0)
    trimmed = (share * (deviation - center) ** 2).sum(axis=0)
    inflated = (width[0] > 0) & (variance[features] > MIN_INFLATION**2 * trimmed)
    mean = mean.copy()
    variance = variance.copy()
    mean[features] = np.where(inflated, low[0] + center, mean[features])
    variance[features] = np.where(inflated, trimmed, variance[features])
    return mean, variance


def _farthest_class(drawn: Sample, frame: Frame) -> np.ndarray:
    """Deviations from the mean within which lie `CLIP_DEVIATIONS` about the medians of all classes,
    (d,): common ones or, where they are larger, those of the class by its quartiles.
    """
    farthest = np.zeros(drawn.x.shape[1])
    for k in np.unique(drawn.code):
        in_class = drawn.code == k
        quartiles = weighted_quantiles(drawn.x[in_class], drawn.weight[in_class], QUARTILES)
        low, median, high = ((q[0] - frame.origin) / frame.unit for q in quartiles)
        bound = np.abs(median) + CLIP_DEVIATIONS * np.fmax((high - low) / GAUSSIAN_RANGE, 1.0)
        farthest = np.fmax(farthest, bound)  # a class may have no known cell
    return farthest


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
