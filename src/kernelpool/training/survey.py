"""Rows whose labels are coded, with what passes over them tell: weights, means, variances, and what is observed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import namespace, to_numpy
from ..errors import KernelpoolError
from ..rows import Block, Frame, Rows, spread, survey
from ..starts.sample import ClassSample

HEAVIEST, SMALLEST_VARIANCE, SMALLEST_VARIANCE_OF_FLOAT32 = 1e280, 1e-305, 1e-72
"""Beyond these, sums of weights and squares of features leave the range of float64."""


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
    samples: list[ClassSample] | None = None
    """Rows of each class in the units of the data, drawn while the rows were read; None where starts draw their own."""
    observed: np.ndarray | None = None
    """Weight of the rows without a class and of those of each class in which a feature is known, (1 + K, d); None if all
    are, everywhere."""
    feature_names: np.ndarray | None = None
    levels: tuple[int, ...] | None = None
    """How many levels each column of words has, 0 for a number, (d,); None where all are numbers."""

    def log_volume(self, frame: Frame) -> float:
        """What the frame adds to the log-density of an average row: every feature counts in the rows in which it is known."""
        if self.observed is None:
            return frame.log_volume
        return float(self.observed.sum(axis=0) / self.weight @ np.log(to_numpy(frame.unit)))

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return float(self.class_weight.sum()) + self.unlabeled_weight


def surveyed(rows: Rows, classes: np.ndarray, names: np.ndarray | None = None) -> TrainingData:
    """Rows whose labels are coded, with what two passes over them tell."""
    known = rows.total(survey, len(classes))
    if not known.class_weight.any():
        raise KernelpoolError(
            "sample_weight is zero for every labeled row; at least one must be positive."
        )
    check_total_weight(float(known.class_weight.sum()) + known.unlabeled_weight)
    _check_observed(known.observed, names)
    mean, variance = mean_and_variance(rows, known.scale.mean)
    observed = (
        known.observed if known.scale.weight.ndim else None
    )  # weights feature by feature tell of holes
    weights = known.class_weight, known.unlabeled_weight, float(known.n_rows)
    return TrainingData(
        rows, classes, *weights, mean, variance, observed=observed, feature_names=names
    )


def _check_observed(observed: np.ndarray, names: np.ndarray | None) -> None:
    """Every feature is known somewhere."""
    never = np.flatnonzero(observed.sum(axis=0) <= 0)
    if len(never):
        raise KernelpoolError(
            f"{feature_name(never[0], names)} of X is missing in every row, so nothing can be learned of it; leave it out."
        )


def feature_name(feature: Any, names: np.ndarray | None) -> str:
    """A feature as a user would name it, at the beginning of a sentence."""
    return f"Feature {feature}" if names is None else f"Feature {str(names[feature])!r}"


def check_finite(rows: Rows) -> None:
    """Every cell is a finite number."""
    n_not_finite = int(rows.total(_n_not_finite))
    if n_not_finite:
        raise ValueError(
            f"Input X contains NaN or infinity in {n_not_finite} cells; impute or drop them first."
        )


def _n_not_finite(block: Block) -> Any:
    xp = namespace(block.x)
    return xp.sum(xp.astype(~xp.isfinite(block.x), xp.int64))


def check_total_weight(total: float) -> None:
    """Weights whose sum leaves the range in which moments can be taken are refused by their own name."""
    if total > HEAVIEST or 0 < total < 1 / HEAVIEST:
        raise KernelpoolError(
            f"sample_weight must sum to a number between {1 / HEAVIEST:g} and {HEAVIEST:g}; got {total:g}. Multiply all "
            f"weights by a constant: only their proportions count."
        )


def mean_and_variance(rows: Rows, origin: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every feature, by a pass about `origin`: the mean itself, so that an offset costs nothing."""
    origin = rows.total(spread, np.zeros(rows.n_features)).mean if origin is None else origin
    about_mean = rows.total(spread, origin)
    mean, variance, second = (
        np.asarray(to_numpy(a))
        for a in (origin + about_mean.mean, about_mean.variance, about_mean.second)
    )
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
            f"Feature {int(np.argmax(small))} of X is too small to be {what}; multiply X by a constant."
        )
    return zero_where_constant(mean, variance, rows.eps)


def zero_where_constant(
    mean: np.ndarray, variance: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same, with no variance where there is only what rounding alone would leave."""
    return mean, np.where(variance <= (8 * eps * np.abs(mean)) ** 2, 0.0, variance)
