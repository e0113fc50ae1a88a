r"""Parzen classifier.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its
formulas are not numbered). The reduction to few kernels is in `parzen_reduction`.

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

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; it goes
to the class of its nearest kernel, which is what a radius that grew until it reached one would
give. Star-shaped sets, given by their gauges, are in `papers.star_shaped`: any `Profile` may be the
`kernel` of a `ParzenClassifier`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from ..arrays import safe_log
from ..rows import ArrayRows

TILE = 512
"""Kernels that a block of rows meets at a time: nothing of size n x M is ever held."""

INSIDE = 1 + 1e-9
"""A hypersphere is closed, and distances are rounded: what lies this little outside is inside."""

VANISHED = 1e-200
"""Sums of Gaussian heights below this are taken about the largest term."""

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

    def largest_radius(self, d: int) -> float:
        """Largest radius worth trying, in units of the spread of the rows."""
        return 1.0

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        """Logarithm of the height."""
        return safe_log(self.height(squared))

    def squared(self, x: np.ndarray, center: np.ndarray, narrow: bool) -> np.ndarray:
        """Squared distances of rows from centers, (n, m)."""
        return squared_distances(x, center, narrow)

    def log_total(self, tiles: Iterator[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """log of the weighted sum of heights over tiles of (squared, weight), (n,)."""
        return safe_log(sum(self.height(squared) @ weight for squared, weight in tiles))

    def heights(self, squared: np.ndarray, radii: list[float]) -> Iterator[np.ndarray]:
        """Heights at one radius after the other, of `squared` in units of the frame."""
        for radius in radii:
            yield self.height(squared * (1 / radius**2))


class Hypersphere(Profile):
    """The indicator of a ball: one vote for all rows within the radius."""

    noun = "hypersphere"

    def height(self, squared: np.ndarray) -> np.ndarray:
        return (squared <= INSIDE).astype(squared.dtype)

    def log_total(self, tiles: Iterator[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        return safe_log(sum(_count(squared <= INSIDE, weight) for squared, weight in tiles))

    def heights(self, squared: np.ndarray, radii: list[float]) -> Iterator[np.ndarray]:
        for radius in radii:
            yield (squared <= INSIDE * radius**2).astype(squared.dtype)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d)

    def variance(self, d: int) -> float:
        return 1 / (d + 2)

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        normal = rng.standard_normal((n, d))
        return rng.uniform(size=(n, 1)) ** (1 / d) * normal / _norm(normal)


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
        normal = rng.standard_normal((n, d))
        return rng.beta(d / 2, 2, size=(n, 1)) ** 0.5 * normal / _norm(normal)


class GaussianProfile(Profile):
    """exp(-u^2 / 2); the radius is the standard deviation."""

    noun = "Gaussian kernel"

    def height(self, squared: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-0.5 * squared))

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        return -0.5 * squared

    def largest_radius(self, d: int) -> float:
        """The standard deviation of a ball of radius one along each axis."""
        return 1 / math.sqrt(d + 2)

    def log_volume(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def variance(self, d: int) -> float:
        return 1.0

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        return rng.standard_normal((n, d))

    def log_total(self, tiles: Iterator[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        parts = [logsumexp(-0.5 * squared, axis=1, b=weight) for squared, weight in tiles]
        return np.asarray(logsumexp(parts, axis=0))

    def heights(self, squared: np.ndarray, radii: list[float]) -> Iterator[np.ndarray]:
        """Where radius^2 is half of the one two places before, the height is the square of that
        one.
        """
        made: list[Any] = []
        for i, radius in enumerate(radii):
            if i > 1 and math.isclose(radii[i - 2] ** 2, 2 * radius**2, rel_tol=1e-9):
                made.append(made[i - 2] * made[i - 2])
                made[i - 2] = None
            else:
                made.append(self.height(squared * (1 / radius**2)))
            yield made[i]


def _count(inside: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """inside @ weight, (n,); equal weights are counted, so that a tie is a tie to the last bit."""
    if (weight == weight[0]).all():
        return np.asarray(weight[0] * np.count_nonzero(inside, axis=1))
    return inside @ weight


PROFILES: dict[str, type[Profile]] = {
    "hypersphere": Hypersphere,
    "epanechnikov": Epanechnikov,
    "gaussian": GaussianProfile,
}


def _norm(x: np.ndarray) -> np.ndarray:
    """Euclidean length of each row, (n, 1)."""
    return np.linalg.norm(x, axis=1, keepdims=True)


def ball_log_volume(d: int) -> float:
    """log of the volume of the unit ball in d dimensions."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


def squared_distances(x: np.ndarray, center: np.ndarray, narrow: bool = False) -> np.ndarray:
    """(n, m): by one matrix product, or from differences, slower and exact, where the product would
    cancel.
    """
    if not narrow:
        left = np.column_stack([-2 * x, (x**2).sum(axis=1), np.ones(len(x))])
        right = np.column_stack([center, np.ones(len(center)), (center**2).sum(axis=1)])
        return left @ right.T
    squared = np.zeros((len(x), len(center)))
    for column, centers in zip(x.T, center.T, strict=True):
        squared += np.subtract.outer(column, centers) ** 2
    return squared


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


def log_prior_scale(prior: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """log(P(C_k) / votes of class k), (K,): what one vote counts; minus infinity without votes."""
    return np.where(votes > 0, safe_log(prior / np.where(votes > 0, votes, 1.0)), -np.inf)


def log_votes(x: np.ndarray, profile: Profile, params: ParzenParams) -> np.ndarray:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the
    class covers the row.
    """
    gaussian = isinstance(profile, GaussianProfile) and not params.narrow
    log_sum = _log_gaussian_sum if gaussian else _log_sum
    votes = np.full((len(x), params.n_classes), -np.inf)
    for k in np.flatnonzero(np.diff(params.offsets)):
        votes[:, k] = log_sum(x, profile, params, int(k))
    return votes


def _log_sum(x: np.ndarray, profile: Profile, params: ParzenParams, k: int) -> np.ndarray:
    x, center = x / params.radius, params.center / params.radius
    return profile.log_total(
        (profile.squared(x, center[tile], params.narrow), params.weight[tile])
        for tile in params.tiles(k)
    )


def _log_gaussian_sum(x: np.ndarray, profile: Profile, params: ParzenParams, k: int) -> np.ndarray:
    """The same by one product that is the exponent itself; rows so far off that the sum vanishes
    are done again.
    """
    scaled, total = x / params.radius, np.zeros(len(x))
    left = np.column_stack([scaled, -0.5 * (scaled**2).sum(axis=1), np.ones(len(x))])
    for tile in params.tiles(k):
        center = params.center[tile] / params.radius
        norm = -0.5 * (center**2).sum(axis=1)
        exponent = left @ np.column_stack([center, np.ones(len(center)), norm]).T
        total += np.exp(exponent, out=exponent) @ params.weight[tile]
    far, result = total < VANISHED, np.asarray(safe_log(total))
    if far.any():
        result[far] = _log_sum(x[far], profile, params, k)
    return result


def log_joint(
    x: np.ndarray, profile: Profile, params: ParzenParams, log_norm: float = 0.0
) -> np.ndarray:
    """log P(C_k) p(x|C_k), (n, K), with the integral of a kernel taken out by `log_norm`."""
    return log_votes(x, profile, params) + (params.log_scale - log_norm)


def class_scores(x: np.ndarray, profile: Profile, params: ParzenParams) -> np.ndarray:
    """log P(C_k) p(x|C_k) up to a constant, (n, K); rows that no kernel covers are given to the
    class of their nearest kernel.
    """
    joint = log_joint(x, profile, params)
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
            for i, height in enumerate(profile.heights(squared.astype(np.float32), radii)):
                votes[i, :, k] += height @ weight
    uncovered = votes.max(axis=2) == 0  # (R, n)
    scale = np.exp(params.log_scale - params.log_scale.max())
    most = (votes * scale).argmax(axis=2)
    return np.asarray(np.where(uncovered, least.argmin(axis=1), most) != label).T
