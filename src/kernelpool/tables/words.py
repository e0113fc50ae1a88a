"""Encoded rows as numbers and indicators, for the networks that have not moved to `Columns.indicators` yet."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array, device, namespace


@dataclass(frozen=True)
class Indicators:
    r"""Rows in which words are told by indicators that lie equally far apart: the numbers, then one for each level.

    Two words of a column, whichever they are, are :math:`\sqrt{2}` times the height of an indicator apart, so that a Gaussian
    kernel is a product of one over the numbers and one of Aitchison and Aitken ("Multivariate binary discrimination by the
    kernel method", Biometrika 63(3), 1976) over each column of words.
    """

    levels: tuple[int, ...]
    """How many levels each column has, other words included; 0 for numbers."""
    others: bool = True
    """Whether other words have an indicator too, or none at all."""

    @cached_property
    def numbers(self) -> list[int]:
        """The columns of numbers."""
        return [i for i, n in enumerate(self.levels) if not n]

    @cached_property
    def words(self) -> tuple[int, ...]:
        """Indicators of the columns of words."""
        return tuple(self._n_indicators(n) for n in self.levels if n)

    @cached_property
    def sources(self) -> np.ndarray:
        """The column that each number and each indicator comes from, (D,)."""
        return np.array(
            [
                *self.numbers,
                *(i for i, n in enumerate(self.levels) for _ in range(self._n_indicators(n))),
            ],
            int,
        )

    def _n_indicators(self, n_levels: int) -> int:
        return n_levels if self.others else max(n_levels - 1, 0)

    def of(self, x: Array, height: float = 1.0) -> Array:
        """Coded rows, (n, d), as numbers and indicators, (n, D); all indicators of a missing word are NaN."""
        xp = namespace(x)
        parts = [xp.take(x, xp.asarray(self.numbers, dtype=xp.int64, device=device(x)), axis=1)]
        for i, n_levels in enumerate(self.levels):
            if n_levels:
                code = x[:, i : i + 1]
                n = self._n_indicators(n_levels)
                hot = (
                    xp.astype(code == xp.arange(n, dtype=x.dtype, device=device(x)), x.dtype)
                    * height
                )
                parts.append(xp.where(xp.isnan(code), code + xp.zeros_like(hot), hot))
        return xp.concat(parts, axis=1)
