"""The scale of the data, from which the frame follows."""

import numpy as np

from ..arrays import Array, as_float64, namespace
from ..sums import Sums, record
from .block import Block


@record
class Spread(Sums):
    """Weighted sums about a point, in float64."""

    weight: Array
    """Sum of weights, ()."""
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
    away = as_float64(block.x - about)
    weight = xp.ones_like(away[:, 0]) if block.weight is None else as_float64(block.weight)
    with np.errstate(over="ignore"):  # whoever asks looks for infinity
        return Spread(xp.sum(weight), weight @ away, weight @ away**2)
