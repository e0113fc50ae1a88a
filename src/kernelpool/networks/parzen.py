r"""Parzen classifier and its reduction to few kernels.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its formulas are not numbered);
the reduction is that of Fukunaga & Hayes, "The reduced Parzen classifier", IEEE PAMI 11(4), 1989; herding that of Chen,
Welling & Smola, "Super-samples from kernel herding", UAI 2010.

.. math::

    f(x) = \arg\max_k \sum_{i:\, y_i = k} w_i\, K\!\left(\frac{x - x_i}{r}\right), \qquad
    \int \ln\frac{p_K(x)}{p_N(x)}\, p_N(x)\, dx \approx \sum_i w_i \ln\frac{p_K(x_i)}{p_N(x_i)}

==================  ===============  ==========  ==================================================================
paper               here             shape       meaning
==================  ===============  ==========  ==================================================================
:math:`x_i`         ``centre``       (M, d)      kernels, sorted by class
:math:`\theta_i`    ``offsets``      K + 1       kernels offsets[k] .. offsets[k+1] belong to class k
:math:`w_i`         ``weight``       (M,)        votes of a kernel; the paper gives one to each
:math:`r`           ``radius``       scalar      common radius, or standard deviation, or scale
:math:`K(x, r)`     ``Profile``                  height of a kernel over the squared distance in units of the radius
:math:`K` of N      ``kept``         (K,)        kernels that represent the density of all N
==================  ===============  ==========  ==================================================================

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; it goes to the class of its nearest
kernel, which is what a radius that grew until it reached one would give. :math:`p_K` is mixed with a little of :math:`p_N`, or
the criterion would be minus infinity as soon as one row is left uncovered. Fukunaga tries every exchange; here a
kernel is exchanged for the best of some candidates, drawn near it and where rows are badly represented, and all sums are
carried along. The paper's star-shaped set (x in S implies cx in S "for all c >= 1": for c <= 1 is meant) is given by its gauge,
the factor by which the set must grow to reach a point.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ..arrays import Array, at_home_of, device, log_of_sums, logsumexp, namespace, safe_log, wide
from ..rows import Block, Rows
from ..sums import Sums, record

TILE = 512
"""Kernels that a block of rows meets at a time: nothing of size n x M is ever held."""

INSIDE = 1 + 1e-9
"""A hypersphere is closed, and distances are rounded: what lies this little outside is inside."""

NARROW = 1e-6
"""Where radius^2 is less than this part of the largest squared norm, distances are taken from differences, not products."""

DEFENCE = 1e-3
"""Share of the full density in the reduced one while kernels are chosen."""


# -- kernels ------------------------------------------------------------------------------------------------------------


class Profile(ABC):
    """Height of a kernel over the squared distance from its centre, in units of the radius; one at the centre."""

    compact: ClassVar[bool] = True
    """Whether it is zero beyond the radius."""

    @abstractmethod
    def height(self, squared: Array) -> Array:
        """Height at `squared` = (distance / radius)^2."""

    @abstractmethod
    def log_volume(self, d: int) -> float:
        """Logarithm of its integral in d dimensions at radius one."""

    def squared(self, x: Array, centre: Array, narrow: bool) -> Array:
        """Squared distances of rows from centres, (n, m)."""
        return squared_distances(x, centre, narrow)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        """log of the weighted sum of heights over tiles of (squared, weight), (n,)."""
        return safe_log(sum(self.height(squared) @ weight for squared, weight in tiles))

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        """Heights at one radius after the other, of `squared` in units of the frame."""
        for radius in radii:
            yield self.height(squared * (1 / radius**2))


class Hypersphere(Profile):
    """The indicator of a ball: one vote for all rows within the radius."""

    def height(self, squared: Array) -> Array:
        return namespace(squared).astype(squared <= INSIDE, squared.dtype)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        return safe_log(sum(_count(squared <= INSIDE, weight) for squared, weight in tiles))

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        for radius in radii:
            yield namespace(squared).astype(squared <= INSIDE * radius**2, squared.dtype)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d)


class Epanechnikov(Profile):
    """1 - u^2 within the radius."""

    def height(self, squared: Array) -> Array:
        return namespace(squared).clip(1 - squared, min=0.0)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d) + math.log(2 / (d + 2))


class GaussianProfile(Profile):
    """exp(-u^2 / 2); the radius is the standard deviation."""

    compact = False

    def height(self, squared: Array) -> Array:
        return namespace(squared).exp(-0.5 * squared)

    def log_volume(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        parts = [log_of_sums(-0.5 * squared.T, weight[:, None])[0, :] for squared, weight in tiles]
        return logsumexp(namespace(parts[0]).stack(parts), axis=0)

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        """Where radius^2 is half of the one two places before, the height is the square of that one."""
        seen: list[Array] = []
        for i, radius in enumerate(radii):
            if i > 1 and math.isclose(radii[i - 2] ** 2, 2 * radius**2, rel_tol=1e-9):
                seen.append(seen[i - 2] * seen[i - 2])
                seen[i - 2] = None
            else:
                seen.append(self.height(squared * (1 / radius**2)))
            yield seen[i]


class StarShaped(Hypersphere):
    """The indicator of a star-shaped set, given by its gauge: g(x - centre) <= radius is inside."""

    def __init__(self, gauge: Callable[[Array], Array], log_volume: float) -> None:
        self.gauge, self._log_volume = gauge, log_volume

    def log_volume(self, d: int) -> float:
        return self._log_volume

    def squared(self, x: Array, centre: Array, narrow: bool) -> Array:
        xp, step = namespace(x), max(1, TILE // (2 * x.shape[1]))  # differences take d times the room of distances
        parts = []
        for start in range(0, centre.shape[0], step):
            away = x[:, None, :] - centre[None, start : min(start + step, centre.shape[0]), :]
            parts.append(xp.reshape(self.gauge(xp.reshape(away, (-1, x.shape[1]))), away.shape[:2]))
        return xp.concat(parts, axis=1) ** 2


def _count(inside: Array, weight: Array) -> Array:
    """inside @ weight, (n,); equal weights are counted, which is exact in float32 up to 2^24 and twice as fast."""
    xp = namespace(inside)
    one = float(weight[0])
    if bool(xp.all(weight == one)):
        return one * wide(xp.astype(inside, xp.float32) @ xp.ones(weight.shape, dtype=xp.float32, device=device(weight)))
    return xp.astype(inside, weight.dtype) @ weight


PROFILES: dict[str, type[Profile]] = {"hypersphere": Hypersphere, "epanechnikov": Epanechnikov, "gaussian": GaussianProfile}


def ball_log_volume(d: int) -> float:
    """log of the volume of the unit ball in d dimensions."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


def squared_distances(x: Array, centre: Array, narrow: bool = False) -> Array:
    """(n, m): by one matrix product, or from differences, slower and exact, where the product would cancel."""
    xp = namespace(x)
    if not narrow:
        one, norm = xp.ones_like(x[:, :1]), xp.sum(x**2, axis=1)[:, None]
        other, other_norm = xp.ones_like(centre[:, :1]), xp.sum(centre**2, axis=1)[:, None]
        return xp.concat([-2 * x, norm, one], axis=1) @ xp.concat([centre, other, other_norm], axis=1).T
    squared = xp.zeros((x.shape[0], centre.shape[0]), dtype=x.dtype, device=device(x))
    for i in range(x.shape[1]):
        away = x[:, i : i + 1] - centre[:, i]
        squared += away * away
    return squared


# -- the network --------------------------------------------------------------------------------------------------------


@record
class Network:
    """M kernels of a common radius, in a frame, sorted by class."""

    centre: Array
    """(M, d)."""
    weight: Array
    """(M,)."""
    offsets: tuple[int, ...]
    """Kernels offsets[k] to offsets[k + 1] belong to class k."""
    log_scale: Array
    """log of what one vote counts for each class, (K,): the prior over the sum of the class's votes."""
    radius: float
    narrow: bool

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.offsets) - 1

    def spans(self, k: int) -> Iterator[slice]:
        """The kernels of class k, a tile at a time."""
        for start in range(self.offsets[k], self.offsets[k + 1], TILE):
            yield slice(start, min(start + TILE, self.offsets[k + 1]))


def network(centre: Array, weight: Array, offsets: tuple[int, ...], log_scale: Array, radius: float) -> Network:
    """A network whose distances are computed in the way that its radius allows."""
    xp = namespace(centre)
    largest = float(xp.max(xp.sum(centre**2, axis=1))) if centre.shape[0] else 0.0
    return Network(centre, weight, offsets, log_scale, radius, radius**2 < NARROW * largest)


def log_votes(block: Block, profile: Profile, net: Network) -> Array:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the class covers the row."""
    xp, x = namespace(block.x), wide(block.x)
    columns = [
        profile.log_total(_tiles(x, profile, net, k)) for k in range(net.n_classes) if net.offsets[k] < net.offsets[k + 1]
    ]
    nothing = xp.full((x.shape[0],), -xp.inf, dtype=x.dtype, device=device(x))
    filled = iter(columns)
    return xp.stack([next(filled) if net.offsets[k] < net.offsets[k + 1] else nothing for k in range(net.n_classes)], axis=1)


def _tiles(x: Array, profile: Profile, net: Network, k: int) -> Iterator[tuple[Array, Array]]:
    centre, weight = wide(net.centre), wide(net.weight)
    x = x / net.radius
    for span in net.spans(k):
        yield profile.squared(x, centre[span, :] / net.radius, net.narrow), weight[span]


def nearest_class(block: Block, profile: Profile, net: Network) -> Array:
    """The class of the nearest kernel, (n,); the first of those at the same distance."""
    return namespace(block.x).argmin(_least(wide(block.x), profile, net), axis=1)


def _least(x: Array, profile: Profile, net: Network) -> Array:
    """Squared distance of the nearest kernel of each class, (n, K)."""
    xp, centre = namespace(x), wide(net.centre)
    far = xp.full((x.shape[0],), xp.inf, dtype=x.dtype, device=device(x))
    columns = []
    for k in range(net.n_classes):
        least = far
        for span in net.spans(k):
            least = xp.minimum(least, xp.min(profile.squared(x, centre[span, :], net.narrow), axis=1))
        columns.append(least)
    return xp.stack(columns, axis=1)


def log_joint(block: Block, profile: Profile, net: Network, log_norm: float) -> Array:
    """log P(C_k) p(x|C_k), (n, K), with the integral of a kernel taken out by `log_norm`."""
    votes = log_votes(block, profile, net)
    return votes + (at_home_of(votes, net.log_scale) - log_norm)


def decided(joint: Array, block: Block, profile: Profile, net: Network) -> Array:
    """`joint` with rows that no kernel covers given to the class of their nearest kernel."""
    xp = namespace(joint)
    (rows,) = xp.nonzero(xp.max(joint, axis=1) == -xp.inf)
    if rows.shape[0]:
        nearest = nearest_class(Block(xp.take(block.x, rows, axis=0)), profile, net)
        classes = xp.arange(joint.shape[1], dtype=nearest.dtype, device=device(joint))
        chosen = classes[None, :] == nearest[:, None]
        joint[rows, :] = safe_log(xp.astype(chosen, joint.dtype))
    return joint


def kernel_posterior(block: Block, profile: Profile, net: Network) -> Array:
    """P(i|x), the class summed out, (n, M); all on the nearest kernel where none covers the row."""
    xp, x = namespace(block.x), wide(block.x)
    squared = profile.squared(x, wide(net.centre), net.narrow) / net.radius**2
    counts = [net.offsets[k + 1] - net.offsets[k] for k in range(net.n_classes)]
    share = xp.concat([xp.full((n,), float(net.log_scale[k]), dtype=x.dtype, device=device(x)) for k, n in enumerate(counts)])
    log_height = safe_log(profile.height(squared)) if profile.compact else -0.5 * squared
    log_posterior = log_height + (safe_log(wide(net.weight)) + share)
    total = logsumexp(log_posterior, axis=1)
    (rows,) = xp.nonzero(total == -xp.inf)
    if rows.shape[0]:
        alone = xp.take(squared, rows, axis=0)
        first = xp.argmin(alone, axis=1)[:, None] == xp.arange(squared.shape[1], dtype=xp.int64, device=device(x))[None, :]
        log_posterior[rows, :] = safe_log(xp.astype(first, x.dtype))
        total = xp.where(total == -xp.inf, xp.zeros_like(total), total)
    return xp.exp(log_posterior - total[:, None])


# -- the radius ---------------------------------------------------------------------------------------------------------


@record
class RadiusErrors(Sums):
    """What each radius would have cost."""

    wrong: Array
    """Weight of misclassified rows at each radius, (R,)."""
    uncovered: Array
    """Weight of rows without a vote, (R,)."""
    weight: Array


def radius_errors(block: Block, profile: Profile, net: Network, radii: list[float], label: Array, own: Array) -> RadiusErrors:
    """Errors of one block at all radii, from one pass over its distances.

    `block.y` holds positions in `label` (the class of a row) and `own` (the kernel that the row itself is, or -1). A row is
    left out of its own vote; one that counts w times is left out once, as if it stood there w times.
    """
    xp, x = namespace(block.x), wide(block.x)
    label, own = xp.take(label, block.y), xp.take(own, block.y)
    votes, least = _votes_by_radius(x, profile, net, radii, own)  # (R, n, K), (n, K)
    classes = xp.arange(net.n_classes, dtype=label.dtype, device=device(x))
    mine = xp.astype(classes[None, :] == label[:, None], x.dtype)
    weight = wide(net.weight)
    again = xp.where(own >= 0, xp.take(weight, xp.where(own >= 0, own, xp.zeros_like(own))) - 1, xp.zeros_like(x[:, 0]))
    again = xp.clip(again, min=0.0)  # the other copies of the row
    votes += (again[:, None] * mine)[None, :, :]
    least = xp.where((again[:, None] * mine) > 0, xp.zeros_like(least), least)
    uncovered = xp.max(votes, axis=2) == 0  # (R, n)
    scale = xp.exp(wide(net.log_scale) - float(xp.max(net.log_scale)))
    chosen = xp.where(uncovered, xp.argmin(least, axis=1)[None, :], xp.argmax(votes * scale, axis=2))
    counts = xp.ones_like(x[:, 0]) if block.weight is None else wide(block.weight)
    wrong = xp.astype(chosen != label[None, :], x.dtype)
    return RadiusErrors(wrong @ counts, xp.astype(uncovered, x.dtype) @ counts, xp.sum(counts))


def _votes_by_radius(x: Array, profile: Profile, net: Network, radii: list[float], own: Array) -> tuple[Array, Array]:
    xp, home = namespace(x), device(x)
    centre, weight = wide(net.centre), wide(net.weight)
    votes = xp.zeros((len(radii), x.shape[0], net.n_classes), dtype=x.dtype, device=home)
    least = xp.full((x.shape[0], net.n_classes), xp.inf, dtype=x.dtype, device=home)
    for k in range(net.n_classes):
        for span in net.spans(k):
            squared = profile.squared(x, centre[span, :], net.narrow)
            itself = own[:, None] == xp.arange(span.start, span.stop, dtype=own.dtype, device=home)[None, :]
            squared = xp.where(itself, xp.inf, squared)
            least[:, k] = xp.minimum(least[:, k], xp.min(squared, axis=1))
            squared = xp.astype(squared, xp.float32)  # many times faster, and enough to choose by
            for i, height in enumerate(profile.heights(squared, radii)):
                votes[i, :, k] += wide(height @ xp.astype(weight[span], xp.float32))
    return votes, least


# -- reduction: K of N kernels of one class -----------------------------------------------------------------------------


class Reducer:
    """Chooses K of the N rows of one class so that their kernels have the density of all N.

    `rows` are those N rows in the frame, with positions 0..N-1 in y; `x` is the same as one array; `uniform(n)` draws n
    numbers in [0, 1). Sums over the rows are carried along, so that an exchange costs N times the number of candidates.
    """

    def __init__(self, rows: Rows, x: Array, weight: Array, profile: Profile, radius: float, narrow: bool) -> None:
        self.rows, self.x, self.weight = rows, x, weight / namespace(x).sum(weight)
        self.profile, self.radius, self.narrow = profile, radius, narrow
        self.full = self._full()

    @property
    def n(self) -> int:
        """N."""
        return int(self.x.shape[0])

    def column(self, centres: Array) -> Array:
        """Heights of the kernels at `centres` over all rows, (N, m)."""
        return wide(self.rows.each(_heights, self.profile, centres, self.radius, self.narrow))

    def criterion(self, sums: Array, k: int) -> float:
        """Fukunaga: mean over the rows of ln(p_K / p_N), for sums of K heights."""
        xp = namespace(sums)
        return float(self.weight @ xp.log((1 - DEFENCE) * sums / (k * self.full) + DEFENCE))

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
        self, kept: list[int], uniform: Callable[[int], Array], *, n_candidates: int, max_sweeps: int, tol: float
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
            sums += self.rows.each(_mixed, self.profile, part, self.radius, self.narrow, ones[: part.shape[0]])
        history = [self.criterion(sums, k)]
        for _ in range(max_sweeps):
            for place in range(k):
                sums = self._exchanged(kept, place, sums, uniform, n_candidates)
            history.append(self.criterion(sums, k))
            if history[-1] - history[-2] < tol:
                break
        return kept, history

    def _exchanged(self, kept: list[int], place: int, sums: Array, uniform: Callable[[int], Array], n_candidates: int) -> Array:
        """The sums after the kernel at `place` has been exchanged for the best candidate, itself among them."""
        xp = namespace(sums)
        out = self.column(self._at([kept[place]]))[:, 0]
        rest = xp.clip(sums - out, min=0.0)
        candidates = [kept[place], *self._candidates(kept, out, rest, uniform, n_candidates)]
        floor = DEFENCE / (1 - DEFENCE) * len(kept) * self.full
        gain = self.rows.total(_gain, self.profile, self._at(candidates), self.radius, self.narrow, rest + floor, self.weight)
        best = int(xp.argmax(gain))
        if best == 0 or float(gain[best]) <= (1 + 1e-5) * float(gain[0]):  # sums are rounded to float32
            return sums
        kept[place] = candidates[best]
        return rest + self.column(self._at([kept[place]]))[:, 0]

    def _candidates(
        self, kept: list[int], out: Array, rest: Array, uniform: Callable[[int], Array], n_candidates: int
    ) -> list[int]:
        """Half near the kernel that goes, half where rows would be badly represented without it; all of them if few."""
        xp, taken = namespace(out), set(kept)
        if self.n - len(kept) <= n_candidates:
            return [i for i in range(self.n) if i not in taken]
        near = self.weight * out
        poor = self.weight / (rest + len(kept) * self.full * DEFENCE)
        drawn: set[int] = set()
        for chance in (near, poor):
            edge = xp.cumulative_sum(chance)
            where = xp.searchsorted(edge, uniform(n_candidates // 2) * edge[-1])
            drawn |= {min(int(i), self.n - 1) for i in where}
        return sorted(drawn - taken)

    def weights(self, kept: list[int], *, n_sweeps: int) -> Array:
        """Votes of the kept kernels that maximise the same criterion, by EM: a mixture whose kernels stay where they are."""
        xp = namespace(self.x)
        centres = self._at(kept)
        vote = xp.full((len(kept),), 1 / len(kept), dtype=self.full.dtype, device=device(self.x))
        for _ in range(n_sweeps):
            share = self.rows.total(
                _responsibility, self.profile, centres, self.radius, self.narrow, vote, self.full * DEFENCE, self.weight
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
            total += self.rows.each(_mixed, self.profile, self.x[span, :], self.radius, self.narrow, self.weight[span])
        return total


def _heights(block: Block, profile: Profile, centres: Array, radius: float, narrow: bool) -> Array:
    """K((x - c) / r) for each centre c, (n, m), in float32: exponentials and logarithms are ten times as fast in it."""
    xp = namespace(block.x)
    squared = profile.squared(wide(block.x), wide(centres), narrow) * (1 / radius**2)
    return profile.height(xp.astype(squared, xp.float32))


def _mixed(block: Block, profile: Profile, centres: Array, radius: float, narrow: bool, vote: Array) -> Array:
    """sum_j vote_j K((x - c_j) / r), (n,)."""
    return wide(_heights(block, profile, centres, radius, narrow)) @ wide(vote)


def _gain(block: Block, profile: Profile, centres: Array, radius: float, narrow: bool, rest: Array, weight: Array) -> Array:
    """sum_i w_i ln(1 + K((x_i - c) / r) / rest_i) for each candidate c, (m,): what it adds to the criterion."""
    xp = namespace(block.x)
    height = _heights(block, profile, centres, radius, narrow)
    share = xp.astype(1 / xp.take(rest, block.y), height.dtype)[:, None]
    return wide(xp.astype(xp.take(weight, block.y), height.dtype) @ xp.log(1 + height * share))


def _responsibility(
    block: Block, profile: Profile, centres: Array, radius: float, narrow: bool, vote: Array, floor: Array, weight: Array
) -> Array:
    """sum_i w_i K_ij / p(x_i) for each kernel j, (m,)."""
    xp = namespace(block.x)
    height = wide(_heights(block, profile, centres, radius, narrow))
    density = (1 - DEFENCE) * (height @ vote) + xp.take(floor, block.y)
    return (xp.take(weight, block.y) / density) @ height


def log_prior_scale(prior: Any, votes: Any) -> Any:
    """log(P(C_k) / votes of class k), (K,): what one vote counts; minus infinity for a class without votes."""
    xp = namespace(votes)
    safe = xp.where(votes > 0, votes, xp.ones_like(votes))
    return xp.where(votes > 0, safe_log(prior / safe), -xp.inf)
