r"""Reduction of a Parzen network to few kernels.

K. Fukunaga & R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI 11(4), 1989; herding is that of Chen, Welling & Smola,
"Super-samples from kernel herding", UAI 2010. Of the N kernels of one class those K are kept that maximize

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

Deviations: :math:`p_K` is mixed with a little of :math:`p_N`, or the criterion would be minus infinity as soon as one row is
left uncovered. Fukunaga tries every exchange; here a kernel is exchanged for the best of some candidates, drawn near it and
where rows are badly represented, and all sums are carried along.
"""

from collections.abc import Callable

from ..arrays import Array, as_float64, device, namespace
from ..rows import Block, Rows
from .parzen_kernels import TILE, Profile

DEFENSE = 1e-3
"""Share of the full density in the reduced one while kernels are chosen."""


class Reducer:
    """Chooses K of the N rows of one class so that their kernels have the density of all N.

    `rows` are those N rows in the frame, with positions 0..N-1 in y; `x` is the same as one array; `uniform(n)` draws n
    numbers in [0, 1). Sums over the rows are carried along, so that an exchange costs N times the number of candidates.
    """

    def __init__(
        self, rows: Rows, x: Array, weight: Array, profile: Profile, radius: float, narrow: bool
    ) -> None:
        self.rows, self.x, self.weight = rows, x, weight / namespace(x).sum(weight)
        self.profile, self.radius, self.narrow = profile, radius, narrow
        self.full = self._full()

    @property
    def n(self) -> int:
        """N."""
        return int(self.x.shape[0])

    def column(self, centers: Array) -> Array:
        """Heights of the kernels at `centers` over all rows, (N, m)."""
        return as_float64(self.rows.each(_heights, self.profile, centers, self.radius, self.narrow))

    def criterion(self, sums: Array, k: int) -> float:
        """Fukunaga: mean over the rows of ln(p_K / p_N), for sums of K heights."""
        xp = namespace(sums)
        return float(self.weight @ xp.log((1 - DEFENSE) * sums / (k * self.full) + DEFENSE))

    def herd(self, k: int) -> list[int]:
        """Chen, Welling & Smola (8)-(9): each kernel goes where the density so far falls short of the full one the most."""
        xp = namespace(self.x)
        shortfall, running = xp.asarray(self.full, copy=True), xp.zeros_like(self.full)
        kept: list[int] = []
        for t in range(k):
            kept.append(int(xp.argmax(shortfall)))
            running += self.column(self.x[kept[-1] : kept[-1] + 1, :])[:, 0]
            shortfall = self.full - running / (t + 2)
            shortfall[xp.asarray(kept, dtype=xp.int64, device=device(self.x))] = -xp.inf
        return kept

    def exchange(
        self,
        kept: list[int],
        uniform: Callable[[int], Array],
        *,
        n_candidates: int,
        max_sweeps: int,
        tol: float,
    ) -> tuple[list[int], list[float]]:
        """Fukunaga & Hayes: exchange kept kernels for others as long as the criterion rises."""
        xp = namespace(self.x)
        kept, k = list(kept), len(kept)
        if k >= self.n:
            return kept, [0.0]
        sums = xp.zeros_like(self.full)
        ones = xp.ones_like(self.full)
        for start in range(0, k, TILE):
            part = self._at(kept[start : start + TILE])
            sums += self.rows.each(
                _mixed, self.profile, part, self.radius, self.narrow, ones[: part.shape[0]]
            )
        history = [self.criterion(sums, k)]
        for _ in range(max_sweeps):
            for place in range(k):
                sums = self._exchanged(kept, place, sums, uniform, n_candidates)
            history.append(self.criterion(sums, k))
            if history[-1] - history[-2] < tol:
                break
        return kept, history

    def _exchanged(
        self,
        kept: list[int],
        place: int,
        sums: Array,
        uniform: Callable[[int], Array],
        n_candidates: int,
    ) -> Array:
        """The sums after the kernel at `place` has been exchanged for the best candidate, itself among them."""
        xp = namespace(sums)
        out = self.column(self._at([kept[place]]))[:, 0]
        rest = xp.clip(sums - out, min=0.0)
        candidates = [kept[place], *self._candidates(kept, out, rest, uniform, n_candidates)]
        floor = DEFENSE / (1 - DEFENSE) * len(kept) * self.full
        gain = self.rows.total(
            _gain,
            self.profile,
            self._at(candidates),
            self.radius,
            self.narrow,
            rest + floor,
            self.weight,
        )
        best = int(xp.argmax(gain))
        if best == 0 or float(gain[best]) <= (1 + 1e-5) * float(
            gain[0]
        ):  # sums are rounded to float32
            return sums
        kept[place] = candidates[best]
        return rest + self.column(self._at([kept[place]]))[:, 0]

    def _candidates(
        self,
        kept: list[int],
        out: Array,
        rest: Array,
        uniform: Callable[[int], Array],
        n_candidates: int,
    ) -> list[int]:
        """Half near the kernel that goes, half where rows would be badly represented without it; all of them if few."""
        xp, taken = namespace(out), set(kept)
        if self.n - len(kept) <= n_candidates:
            return [i for i in range(self.n) if i not in taken]
        near = self.weight * out
        poor = self.weight / (rest + len(kept) * self.full * DEFENSE)
        drawn: set[int] = set()
        for chance in (near, poor):
            edge = xp.cumulative_sum(chance)
            where = xp.searchsorted(edge, uniform(n_candidates // 2) * edge[-1])
            drawn |= {min(int(i), self.n - 1) for i in where}
        return sorted(drawn - taken)

    def weights(self, kept: list[int], *, n_sweeps: int) -> Array:
        """Votes of the kept kernels that maximize the same criterion, by EM: a mixture whose kernels stay where they are."""
        xp = namespace(self.x)
        centers = self._at(kept)
        vote = xp.full((len(kept),), 1 / len(kept), dtype=self.full.dtype, device=device(self.x))
        for _ in range(n_sweeps):
            share = self.rows.total(
                _responsibility,
                self.profile,
                centers,
                self.radius,
                self.narrow,
                vote,
                self.full * DEFENSE,
                self.weight,
            )
            vote = vote * share
            vote = vote / xp.sum(vote)
        return vote

    def _at(self, which: list[int]) -> Array:
        xp = namespace(self.x)
        return xp.take(self.x, xp.asarray(which, dtype=xp.int64, device=device(self.x)), axis=0)

    def _full(self) -> Array:
        """p_N at every row, in units of a kernel's height: sum_j w_j K((x_i - x_j) / r), (N,)."""
        total = namespace(self.x).zeros_like(self.weight)
        for start in range(0, self.n, TILE):
            span = slice(start, min(start + TILE, self.n))
            total += self.rows.each(
                _mixed, self.profile, self.x[span, :], self.radius, self.narrow, self.weight[span]
            )
        return total


def _heights(block: Block, profile: Profile, centers: Array, radius: float, narrow: bool) -> Array:
    """K((x - c) / r) for each center c, (n, m), in float32: exponentials and logarithms are ten times as fast in it."""
    xp = namespace(block.x)
    squared = profile.squared(as_float64(block.x), as_float64(centers), narrow) * (1 / radius**2)
    return profile.height(xp.astype(squared, xp.float32))


def _mixed(
    block: Block, profile: Profile, centers: Array, radius: float, narrow: bool, vote: Array
) -> Array:
    """sum_j vote_j K((x - c_j) / r), (n,)."""
    return as_float64(_heights(block, profile, centers, radius, narrow)) @ as_float64(vote)


def _gain(
    block: Block,
    profile: Profile,
    centers: Array,
    radius: float,
    narrow: bool,
    rest: Array,
    weight: Array,
) -> Array:
    """sum_i w_i ln(1 + K((x_i - c) / r) / rest_i) for each candidate c, (m,): what it adds to the criterion."""
    xp = namespace(block.x)
    height = _heights(block, profile, centers, radius, narrow)
    share = xp.astype(1 / xp.take(rest, block.y), height.dtype)[:, None]
    return as_float64(
        xp.astype(xp.take(weight, block.y), height.dtype) @ xp.log(1 + height * share)
    )


def _responsibility(
    block: Block,
    profile: Profile,
    centers: Array,
    radius: float,
    narrow: bool,
    vote: Array,
    floor: Array,
    weight: Array,
) -> Array:
    """sum_i w_i K_ij / p(x_i) for each kernel j, (m,)."""
    xp = namespace(block.x)
    height = as_float64(_heights(block, profile, centers, radius, narrow))
    density = (1 - DEFENSE) * (height @ vote) + xp.take(floor, block.y)
    return (xp.take(weight, block.y) / density) @ height
