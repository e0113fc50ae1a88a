r"""Parzen classifier, and its reduction to few kernels.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its
formulas are not numbered).

.. math::

    f(x) = \arg\max_k \sum_{i:\, y_i = k} w_i\, K\!\left(\frac{x - x_i}{r}\right), \qquad
    K(u) = [u \le 1], \quad 1 - u^2, \quad e^{-u^2/2}

==================  ===============  ==========  ===================================================
paper               here             shape       meaning
==================  ===============  ==========  ===================================================
:math:`x_i`         ``center``       (M, d)      kernels, sorted by class
:math:`\theta_i`    ``offsets``      K + 1       kernels offsets[k] .. offsets[k+1] are of class k
:math:`w_i`         ``weight``       (M,)        votes of a kernel; the paper gives one to each
:math:`r`           ``radius``       scalar      common radius, or standard deviation, or scale
:math:`K(u)`        ``Profile``                  height over the squared distance in radii
==================  ===============  ==========  ===================================================

The reduction is that of K. Fukunaga & R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI
11(4), 1989; it starts from the kernels of Chen, Welling & Smola, "Super-samples from kernel
herding", UAI 2010. Of the N kernels of one class those K are kept that maximize

.. math::

    \int \ln\frac{p_K(x)}{p_N(x)}\, p_N(x)\, dx \approx \sum_i w_i \ln\frac{p_K(x_i)}{p_N(x_i)}

==================  ===============  ==========  ===================================================
paper               here             shape       meaning
==================  ===============  ==========  ===================================================
:math:`p_N`         ``full``         (N,)        density of all kernels at every row, in units of a
                                                 kernel's height
:math:`K p_K`       ``sums``         (N,)        sum of the heights of those kept
:math:`w_i`         ``weight``       (N,)        weight of a row; they sum to one
K of N              ``kept``         (K,)        positions of the rows that are kept
==================  ===============  ==========  ===================================================

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; it goes
to the class of its nearest kernel, which is what a radius that grew until it reached one would
give. Star-shaped sets, given by their gauges, are in `papers.star_shaped`: any `Profile` may be the
`kernel` of a `ParzenClassifier`. In the reduction, :math:`p_K` is mixed with a little of
:math:`p_N`, or the criterion would be minus infinity as soon as one row is left uncovered. Fukunaga
tries every exchange; here a kernel is exchanged for the best of some candidates, drawn near it and
where rows are badly represented, and all sums are carried along.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from ..arrays import safe_log, squared_distances
from ..rows import ArrayRows

TILE = 512
"""Kernels that a block of rows meets at a time: nothing of size n x M is ever held."""

INSIDE = 1 + 1e-9
"""A hypersphere is closed, and distances are rounded: what lies this little outside is inside."""

VANISHED = 1e-200
"""Sums of Gaussian heights below this are taken about the largest term."""

DEFENSE = 1e-3
"""Share of the full density in the reduced one while kernels are chosen."""

NARROW = 1e-6
"""Where radius^2 is less than this part of the largest squared norm, distances are taken from
differences, not products."""


def each_row(
    function: Callable[..., np.ndarray], x: np.ndarray, *aligned: np.ndarray, width: int = 4 * TILE
) -> np.ndarray:
    """`function(x, *aligned)` of blocks of rows, on several threads; `width` numbers of scratch a
    row.
    """
    rows = ArrayRows(x, np.arange(len(x)), width=width)
    return np.asarray(
        rows.each(lambda block: function(block.x, *(values[block.y] for values in aligned)))
    )


# -- kernels -------------------------------------------------------------------------------------


class Profile(ABC):
    """Height of a kernel over the squared distance from its center, in units of the radius; one at
    the center.
    """

    noun: ClassVar[str]
    """What one kernel is called."""

    compact: ClassVar[bool] = True
    """Whether it is zero beyond some distance."""

    @abstractmethod
    def height(self, squared: np.ndarray) -> np.ndarray:
        """Height at `squared` = (distance / radius)^2."""

    @abstractmethod
    def log_volume(self, d: int) -> float:
        """Logarithm of its integral in d dimensions at radius one."""

    @abstractmethod
    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        """Draws from the kernel of radius one at zero, (n, d); `rng` is a NumPy random state."""

    @abstractmethod
    def variance(self, d: int) -> float:
        """Variance along each feature in d dimensions at radius one."""

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        """Logarithm of the height."""
        return safe_log(self.height(squared))

    def squared(self, x: np.ndarray, center: np.ndarray, narrow: bool) -> np.ndarray:
        """Squared distances of rows from centers, (n, m)."""
        return squared_distances(x, center, narrow)


class Hypersphere(Profile):
    """The indicator of a ball: one vote for all rows within the radius."""

    noun = "hypersphere"

    def height(self, squared: np.ndarray) -> np.ndarray:
        return (squared <= INSIDE).astype(squared.dtype)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d)

    def variance(self, d: int) -> float:
        return 1 / (d + 2)

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        return _directions(n, d, rng) * rng.uniform(size=(n, 1)) ** (1 / d)


class Epanechnikov(Profile):
    """1 - u^2 within the radius."""

    noun = "epanechnikov kernel"

    def height(self, squared: np.ndarray) -> np.ndarray:
        return np.maximum(1 - squared, 0.0)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d) + math.log(2 / (d + 2))

    def variance(self, d: int) -> float:
        return 1 / (d + 4)

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        """The squared length is of the beta distribution with parameters d / 2 and 2."""
        return _directions(n, d, rng) * rng.beta(d / 2, 2, size=(n, 1)) ** 0.5


class GaussianProfile(Profile):
    """exp(-u^2 / 2); the radius is the standard deviation."""

    noun = "Gaussian kernel"
    compact = False

    def height(self, squared: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-0.5 * squared))

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        return -0.5 * squared

    def log_volume(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def variance(self, d: int) -> float:
        return 1.0

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        return rng.standard_normal((n, d))


PROFILES: dict[str, type[Profile]] = {
    "hypersphere": Hypersphere,
    "epanechnikov": Epanechnikov,
    "gaussian": GaussianProfile,
}


def _directions(n: int, d: int, rng: Any) -> np.ndarray:
    """Points drawn from the unit sphere, (n, d)."""
    normal = rng.standard_normal((n, d))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def ball_log_volume(d: int) -> float:
    """log of the volume of the unit ball in d dimensions."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


# -- the network ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParzenParams:
    """M kernels of a common radius, sorted by class."""

    center: np.ndarray
    """(M, d)."""
    weight: np.ndarray
    """(M,)."""
    offsets: tuple[int, ...]
    """Kernels offsets[k] to offsets[k + 1] belong to class k."""
    log_scale: np.ndarray
    """log of what one vote counts for each class, (K,): the prior over the sum of the class's
    votes."""
    radius: float
    group: np.ndarray
    """Kernels at the same point share a number, (M,)."""

    @cached_property
    def narrow(self) -> bool:
        """Whether distances must be taken from differences, not from a product."""
        return is_narrow(self.center, self.radius)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.offsets) - 1

    @property
    def codes(self) -> np.ndarray:
        """The class of each kernel, (M,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.offsets))

    def tiles(self, k: int) -> Iterator[slice]:
        """The kernels of class k, a tile at a time."""
        for start in range(self.offsets[k], self.offsets[k + 1], TILE):
            yield slice(start, min(start + TILE, self.offsets[k + 1]))


def is_narrow(center: np.ndarray, radius: float) -> bool:
    """Whether a product of rows and centers would lose too much of distances of about the
    radius.
    """
    return bool(radius**2 < NARROW * (center**2).sum(axis=1).max(initial=0.0))


def voting_params(
    center: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    n_classes: int,
    class_prior: np.ndarray | None,
) -> ParzenParams:
    """Kernels of radius one, sorted by class; without a `class_prior` every vote counts the same.

    Equal weights become ones: they add up exactly, and a tie is a tie.
    """
    if (weight == weight[0]).all():
        weight = np.ones_like(weight)
    votes = np.bincount(codes, weight, minlength=n_classes)
    of_vote = 1 / votes.sum()
    if class_prior is not None:
        of_vote = class_prior / np.where(votes > 0, votes, 1.0)
    log_scale = np.where(votes > 0, safe_log(of_vote), -np.inf)
    offsets = tuple(np.searchsorted(codes, np.arange(n_classes + 1)).tolist())
    return ParzenParams(center, weight, offsets, log_scale, 1.0, group)


def log_votes(
    x: np.ndarray, profile: Profile, params: ParzenParams, own: np.ndarray | None = None
) -> np.ndarray:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the
    class covers the row. Kernels of the group `own` of a row, (n,), do not vote on it.
    """
    scaled = x / params.radius
    center = params.center / params.radius

    def squared(rows: Any, tile: slice) -> np.ndarray:
        found = profile.squared(scaled[rows], center[tile], params.narrow)
        if own is not None:
            found[own[rows][:, None] == params.group[tile]] = np.inf
        return found

    votes = np.full((len(x), params.n_classes), -np.inf)
    for k in np.flatnonzero(np.diff(params.offsets)).tolist():
        total = np.zeros(len(x))
        every = slice(None)
        for tile in params.tiles(k):
            total += profile.height(squared(every, tile)) @ params.weight[tile]
        votes[:, k] = safe_log(total)
        far = np.flatnonzero(total < VANISHED)
        if len(far) and not profile.compact:
            parts = [
                logsumexp(profile.log_height(squared(far, tile)), axis=1, b=params.weight[tile])
                for tile in params.tiles(k)
            ]
            votes[far, k] = logsumexp(parts, axis=0)
    return votes


def class_scores(x: np.ndarray, profile: Profile, params: ParzenParams) -> np.ndarray:
    """log P(C_k) p(x|C_k) up to a constant, (n, K); rows that no kernel covers are given to the
    class of their nearest kernel.
    """
    joint = log_votes(x, profile, params) + params.log_scale
    rows = joint.max(axis=1) == -np.inf
    if rows.any():
        least = np.full((rows.sum(), params.n_classes), np.inf)
        for k in range(params.n_classes):
            for tile in params.tiles(k):
                squared = profile.squared(x[rows], params.center[tile], params.narrow)
                least[:, k] = np.minimum(least[:, k], squared.min(axis=1))
        joint[rows] = safe_log(np.eye(params.n_classes)[least.argmin(axis=1)])
    return joint


def kernel_posterior(x: np.ndarray, profile: Profile, params: ParzenParams) -> np.ndarray:
    """P(i|x), the class summed out, (n, M); all on the nearest kernel where none covers the row."""
    squared = profile.squared(x, params.center, params.narrow) / params.radius**2
    votes = safe_log(params.weight) + params.log_scale[params.codes]
    log_posterior = profile.log_height(squared) + votes
    rows = np.flatnonzero(log_posterior.max(axis=1) == -np.inf)
    log_posterior[rows, squared[rows].argmin(axis=1)] = 0.0
    return np.asarray(softmax(log_posterior, axis=1))


def wrong_rows(
    x: np.ndarray,
    label: np.ndarray,
    own: np.ndarray,
    profile: Profile,
    params: ParzenParams,
    radii: list[float],
) -> np.ndarray:
    """Whether each row is misclassified at every radius, (n, R), from one pass over the distances.

    `label` is the class of each row, `own` its group or -1: kernels of that group, the row itself
    and its copies, do not vote on it.
    """
    votes = np.zeros((len(radii), len(x), params.n_classes))
    least = np.full((len(x), params.n_classes), np.inf)
    for k in range(params.n_classes):
        for tile in params.tiles(k):
            squared = profile.squared(x, params.center[tile], params.narrow)
            squared = np.where(own[:, None] == params.group[tile], np.inf, squared)
            least[:, k] = np.minimum(least[:, k], squared.min(axis=1))
            # float32 is many times faster, and enough to choose by
            weight = params.weight[tile].astype(np.float32)
            squared = squared.astype(np.float32)
            for i, radius in enumerate(radii):
                votes[i, :, k] += profile.height(squared * (1 / radius**2)) @ weight
    uncovered = votes.max(axis=2) == 0  # (R, n)
    scale = np.exp(params.log_scale - params.log_scale.max())
    most = (votes * scale).argmax(axis=2)
    return np.asarray(np.where(uncovered, least.argmin(axis=1), most) != label).T


# -- the reduction -------------------------------------------------------------------------------


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
        total = np.zeros(len(self.x))
        for start in range(0, len(kept), TILE):
            tile = slice(start, start + TILE)
            total += self.heights(kept[tile]).astype(np.float64) @ vote[tile]
        return total

    def criterion(self, sums: np.ndarray, k: int) -> float:
        """Fukunaga: mean over the rows of ln(p_K / p_N), for sums of K heights."""
        return float(self.weight @ np.log((1 - DEFENSE) * sums / (k * self.full) + DEFENSE))

    def herd(self, k: int) -> list[int]:
        """Chen, Welling & Smola (8)-(9): each kernel goes where the density so far falls short of
        the full one the most.
        """
        shortfall = self.full.copy()
        running = np.zeros_like(self.full)
        kept: list[int] = []
        for t in range(k):
            kept.append(int(shortfall.argmax()))
            running += self.heights(kept[-1:])[:, 0]
            shortfall = self.full - running / (t + 2)
            shortfall[kept] = -np.inf
        return kept

    def exchange(
        self, kept: list[int], rng: Any, *, n_candidates: int, max_sweeps: int, tol: float
    ) -> tuple[list[int], list[float]]:
        """Fukunaga & Hayes: exchange kept kernels for others as long as the criterion rises."""
        kept, k = list(kept), len(kept)
        sums = self._mixed(np.array(kept), np.ones(k))
        history = [self.criterion(sums, k)]
        for _ in range(max_sweeps):
            for place in range(k):
                sums = self._exchanged(kept, place, sums, rng, n_candidates)
            history.append(self.criterion(sums, k))
            if history[-1] - history[-2] < tol:
                break
        return kept, history

    def _exchanged(
        self, kept: list[int], place: int, sums: np.ndarray, rng: Any, n_candidates: int
    ) -> np.ndarray:
        """The sums after the kernel at `place` has been exchanged for the best candidate, itself
        among them: each adds sum_i w_i ln(1 + K((x_i - c) / r) / rest_i) to the criterion.
        """
        out = self.heights([kept[place]])[:, 0].astype(np.float64)
        rest = np.maximum(sums - out, 0.0)
        candidates = [kept[place], *self._candidates(kept, out, rest, rng, n_candidates)]
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
        self, kept: list[int], out: np.ndarray, rest: np.ndarray, rng: Any, n_candidates: int
    ) -> list[int]:
        """Half near the kernel that goes, half where rows would be badly represented without it;
        all of them if few.
        """
        taken = set(kept)
        n = len(self.x)
        if n - len(kept) <= n_candidates:
            return sorted(set(range(n)) - taken)
        near = self.weight * out
        poor = self.weight / (rest + len(kept) * self.full * DEFENSE)
        drawn: set[int] = set()
        for chance in (near, poor):
            edge = np.cumsum(chance)
            where = np.searchsorted(edge, rng.uniform(size=n_candidates // 2) * edge[-1])
            drawn |= set(np.minimum(where, n - 1).tolist())
        return sorted(drawn - taken)
