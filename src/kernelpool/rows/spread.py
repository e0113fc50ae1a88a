"""What is learned of the rows before any training: classes, counts, and the scale from which the frame follows."""

import numpy as np

from ..arrays import Array, as_float64, namespace, to_numpy
from ..sums import Sums, record
from .block import Block


@record
class Spread(Sums):
    """Weighted sums about a point, in float64."""

    weight: Array
    """Sum of weights, (), or, where cells are missing, of the rows in which each feature is known, (d,)."""
    first: Array
    """Sum of weight * (x - about), (d,)."""
    second: Array
    """Sum of weight * (x - about)^2, (d,)."""

    @property
    def mean(self) -> Array:
        """From `about`, (d,)."""
        return self.first / self.weight

    @property
    def variance(self) -> Array:
        """(d,); exact where `about` lies within some deviations of the mean."""
        xp = namespace(self.second)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = self.second / self.weight - self.mean**2
        return xp.where(variance > 0, variance, xp.zeros_like(variance))


def spread(block: Block, about: Array) -> Spread:
    """`Spread` of one block."""
    xp = namespace(block.x)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # sums that are not finite tell of cells that are not, or are too large
        away = as_float64(block.x - about)
        weight = xp.ones_like(away[:, 0]) if block.weight is None else as_float64(block.weight)
        if block.missing is not None:
            observed = as_float64(block.missing.observed)
            away = away * observed
            return Spread(weight @ observed, weight @ away, weight @ away**2)
        return Spread(xp.sum(weight), weight @ away, weight @ away**2)


@record
class Survey(Sums):
    """All that one pass over coded rows tells."""

    class_weight: np.ndarray
    """Weight of the rows of each class, (K,)."""
    unlabeled_weight: float
    n_rows: int
    """Rows with any weight."""
    scale: Spread
    """About the origin: its `mean` is the point about which a second pass is taken."""
    observed: np.ndarray
    """Weight of the rows without a class and of those of each class in which a feature is known, (1 + K, d)."""


def survey(block: Block, n_classes: int) -> Survey:
    """`Survey` of one block."""
    xp, codes = namespace(block.x), to_numpy(block.y)
    weight = (
        np.ones(len(codes))
        if block.weight is None
        else np.asarray(to_numpy(block.weight), np.float64)
    )
    by_code = np.bincount(codes + 1, weight, minlength=n_classes + 1)
    scale = spread(block, xp.zeros_like(block.x[0, :]))
    if block.missing is None:
        observed = by_code[:, None] + np.zeros(block.x.shape[1])
    else:
        known = np.asarray(to_numpy(block.missing.observed), np.float64) * weight[:, None]
        observed = np.stack([known[codes == code].sum(axis=0) for code in range(-1, n_classes)])
    return Survey(by_code[1:], float(by_code[0]), int(np.count_nonzero(weight)), scale, observed)
