r"""Reduction of a Parzen network to few kernels.

K. Fukunaga & R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI 11(4), 1989; herding is that
of Chen, Welling & Smola, "Super-samples from kernel herding", UAI 2010. Of the N kernels of one
class those K are kept that maximize

.. math::

    \int \ln\frac{p_K(x)}{p_N(x)}\, p_N(x)\, dx \approx \sum_i w_i \ln\frac{p_K(x_i)}{p_N(x_i)}

==================  ===============  ==========  ==================================================================
paper               here             shape       meaning
==================  ===============  ==========  ==================================================================
:math:`p_N`         ``full``         (N,)        density of all kernels at every row, in units of a kernel's height
:math:`K p_K`       ``sums``         (N,)        sum of the heights of those kept
:math:`w_i`         ``weight``       (N,)        weight of a row; they sum to one
K of N              ``kept``         (K,)        positions of the rows that are kept
==================  ===============  ==========  ==================================================================

Deviations: :math:`p_K` is mixed with a little of :math:`p_N`, or the criterion would be minus
infinity as soon as one row is left uncovered. Fukunaga tries every exchange; here a kernel is
exchanged for the best of some candidates, drawn near it and where rows are badly represented, and
all sums are carried along.
"""

from collections.abc import Callable

import numpy as np

from .parzen import TILE, Profile, each_row, is_narrow

DEFENSE = 1e-3
"""Share of the full density in the reduced one while kernels are chosen."""

Uniform = Callable[[int], np.ndarray]
"""Draws so many numbers in [0, 1)."""


class Reducer:
    """Chooses K of the N rows of one class so that their kernels have the density of all N.

    Sums over the rows are carried along, so that an exchange costs N times the number of
    candidates.
    """

    def __init__(self, x: np.ndarray, weight: np.ndarray, profile: Profile, radius: float) -> None:
        self.x, self.weight = x, weight / weight.sum()
        self.profile, self.radius, self.narrow = profile, radius, is_narrow(x, radius)
        self.full = self._mixed(np.arange(len(x)), self.weight)
        """p_N at every row, in units of a kernel's height: sum_j w_j K((x_i - x_j) / r), (N,)."""

    def heights(self, kept: list[int] | np.ndarray) -> np.ndarray:
        """Heights of the kernels at some rows over all rows, (N, m), in float32: exponentials and
        logarithms are ten times as fast in it.
        """
        centers = self.x[kept]

        def of_block(x: np.ndarray) -> np.ndarray:
            squared = self.profile.squared(x, centers, self.narrow) * (1 / self.radius**2)
            return self.profile.height(squared.astype(np.float32))

        return each_row(of_block, self.x, width=max(len(centers), self.x.shape[1]))

    def _mixed(self, kept: np.ndarray, vote: np.ndarray) -> np.ndarray:
        """sum_j vote_j K((x - x_j) / r), (N,)."""
        tiles = (slice(start, start + TILE) for start in range(0, len(kept), TILE))
        total = np.zeros(len(self.x))
        for tile in tiles:
            total += self.heights(kept[tile]).astype(np.float64) @ vote[tile]
        return total

    def criterion(self, sums: np.ndarray, k: int) -> float:
        """Fukunaga: mean over the rows of ln(p_K / p_N), for sums of K heights."""
        return float(self.weight @ np.log((1 - DEFENSE) * sums / (k * self.full) + DEFENSE))

    def herd(self, k: int) -> list[int]:
        """Chen, Welling & Smola (8)-(9): each kernel goes where the density so far falls short of
        the full one the most.
        """
        shortfall, running = self.full.copy(), np.zeros_like(self.full)
        kept: list[int] = []
        for t in range(k):
            kept.append(int(shortfall.argmax()))
            running += self.heights(kept[-1:])[:, 0]
            shortfall = self.full - running / (t + 2)
            shortfall[kept] = -np.inf
        return kept

    def exchange(
        self, kept: list[int], uniform: Uniform, *, n_candidates: int, max_sweeps: int, tol: float
    ) -> tuple[list[int], list[float]]:
        """Fukunaga & Hayes: exchange kept kernels for others as long as the criterion rises."""
        kept, k = list(kept), len(kept)
        sums = self._mixed(np.array(kept), np.ones(k))
        history = [self.criterion(sums, k)]
        for _ in range(max_sweeps):
            for place in range(k):
                sums = self._exchanged(kept, place, sums, uniform, n_candidates)
            history.append(self.criterion(sums, k))
            if history[-1] - history[-2] < tol:
                break
        return kept, history

    def _exchanged(
        self, kept: list[int], place: int, sums: np.ndarray, uniform: Uniform, n_candidates: int
    ) -> np.ndarray:
        """The sums after the kernel at `place` has been exchanged for the best candidate, itself
        among them: each adds sum_i w_i ln(1 + K((x_i - c) / r) / rest_i) to the criterion.
        """
        out = self.heights([kept[place]])[:, 0].astype(np.float64)
        rest = np.maximum(sums - out, 0.0)
        candidates = [kept[place], *self._candidates(kept, out, rest, uniform, n_candidates)]
        heights = self.heights(candidates)
        share = 1 / (rest + DEFENSE / (1 - DEFENSE) * len(kept) * self.full)
        terms = np.log1p(heights * share.astype(np.float32)[:, None])
        gain = self.weight.astype(np.float32) @ terms
        best = int(gain.argmax())
        if gain[best] <= (1 + 1e-5) * gain[0]:  # sums are rounded to float32
            return sums
        kept[place] = candidates[best]
        return rest + heights[:, best]

    def _candidates(
        self,
        kept: list[int],
        out: np.ndarray,
        rest: np.ndarray,
        uniform: Uniform,
        n_candidates: int,
    ) -> list[int]:
        """Half near the kernel that goes, half where rows would be badly represented without it;
        all of them if few.
        """
        taken, n = set(kept), len(self.x)
        if n - len(kept) <= n_candidates:
            return sorted(set(range(n)) - taken)
        near = self.weight * out
        poor = self.weight / (rest + len(kept) * self.full * DEFENSE)
        drawn: set[int] = set()
        for chance in (near, poor):
            edge = np.cumsum(chance)
            where = np.searchsorted(edge, uniform(n_candidates // 2) * edge[-1])
            drawn |= set(np.minimum(where, n - 1).tolist())
        return sorted(drawn - taken)

    def weights(self, kept: list[int], *, n_sweeps: int) -> np.ndarray:
        """Votes of the kept kernels that maximize the same criterion, by EM: a mixture whose
        kernels stay where they are.
        """
        heights, vote = self.heights(kept).astype(np.float64), np.full(len(kept), 1 / len(kept))
        for _ in range(n_sweeps):
            density = (1 - DEFENSE) * (heights @ vote) + DEFENSE * self.full
            vote = vote * ((self.weight / density) @ heights)
            vote = vote / vote.sum()
        return vote
