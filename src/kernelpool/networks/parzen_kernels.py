r"""Kernels of Parzen classifiers: the indicator of a ball or of a star-shaped set, Epanechnikov's, the Gaussian.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its formulas are not numbered).
A kernel has height one at its center; at radius one it integrates to ``exp(log_volume)``.

.. math::

    K(u) = [u \le 1], \qquad 1 - u^2, \qquad e^{-u^2/2}, \qquad u = \|x - x_i\| / r

Deviations: star-shaped sets, given by their gauges, are in `papers.star_shaped`: any `Profile` may be the `kernel` of a
`ParzenClassifier`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from ..arrays import Array, as_float64, device, log_weighted_sums, logsumexp, namespace, safe_log

TILE = 512
"""Kernels that a block of rows meets at a time: nothing of size n x M is ever held."""

INSIDE = 1 + 1e-9
"""A hypersphere is closed, and distances are rounded: what lies this little outside is inside."""


class Profile(ABC):
    """Height of a kernel over the squared distance from its center, in units of the radius; one at the center."""

    noun: ClassVar[str]
    """What one kernel is called."""

    @abstractmethod
    def height(self, squared: Array) -> Array:
        """Height at `squared` = (distance / radius)^2."""

    @abstractmethod
    def log_volume(self, d: int) -> float:
        """Logarithm of its integral in d dimensions at radius one."""

    @abstractmethod
    def sample(self, n: int, d: int, rng: Any) -> Array:
        """Draws from the kernel of radius one at zero, (n, d); `rng` is a NumPy random state."""

    @abstractmethod
    def variance(self, d: int) -> float:
        """Variance along each feature in d dimensions at radius one."""

    def largest_radius(self, d: int) -> float:
        """Largest radius worth trying, in units of the spread of the rows."""
        return 1.0

    def log_height(self, squared: Array) -> Array:
        """Logarithm of the height."""
        return safe_log(self.height(squared))

    def squared(self, x: Array, center: Array, narrow: bool) -> Array:
        """Squared distances of rows from centers, (n, m)."""
        return squared_distances(x, center, narrow)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        """log of the weighted sum of heights over tiles of (squared, weight), (n,)."""
        return safe_log(sum(self.height(squared) @ weight for squared, weight in tiles))

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        """Heights at one radius after the other, of `squared` in units of the frame."""
        for radius in radii:
            yield self.height(squared * (1 / radius**2))


class Hypersphere(Profile):
    """The indicator of a ball: one vote for all rows within the radius."""

    noun = "hypersphere"

    def height(self, squared: Array) -> Array:
        return namespace(squared).astype(squared <= INSIDE, squared.dtype)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        return safe_log(sum(_count(squared <= INSIDE, weight) for squared, weight in tiles))

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        for radius in radii:
            yield namespace(squared).astype(squared <= INSIDE * radius**2, squared.dtype)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d)

    def variance(self, d: int) -> float:
        return 1 / (d + 2)

    def sample(self, n: int, d: int, rng: Any) -> Array:
        normal = rng.standard_normal((n, d))
        return rng.uniform(size=(n, 1)) ** (1 / d) * normal / _norm(normal)


class Epanechnikov(Profile):
    """1 - u^2 within the radius."""

    noun = "epanechnikov kernel"

    def height(self, squared: Array) -> Array:
        return namespace(squared).clip(1 - squared, min=0.0)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d) + math.log(2 / (d + 2))

    def variance(self, d: int) -> float:
        return 1 / (d + 4)

    def sample(self, n: int, d: int, rng: Any) -> Array:
        """The squared length is of the beta distribution with parameters d / 2 and 2."""
        normal = rng.standard_normal((n, d))
        return rng.beta(d / 2, 2, size=(n, 1)) ** 0.5 * normal / _norm(normal)


class GaussianProfile(Profile):
    """exp(-u^2 / 2); the radius is the standard deviation."""

    noun = "Gaussian kernel"

    def height(self, squared: Array) -> Array:
        return namespace(squared).exp(-0.5 * squared)

    def log_height(self, squared: Array) -> Array:
        return -0.5 * squared

    def largest_radius(self, d: int) -> float:
        """The standard deviation of a ball of radius one along each axis."""
        return 1 / math.sqrt(d + 2)

    def log_volume(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def variance(self, d: int) -> float:
        return 1.0

    def sample(self, n: int, d: int, rng: Any) -> Array:
        return rng.standard_normal((n, d))

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        parts = [
            log_weighted_sums(-0.5 * squared.T, weight[:, None])[0, :] for squared, weight in tiles
        ]
        return logsumexp(namespace(parts[0]).stack(parts), axis=0)

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        """Where radius^2 is half of the one two places before, the height is the square of that one."""
        made: list[Array] = []
        for i, radius in enumerate(radii):
            if i > 1 and math.isclose(radii[i - 2] ** 2, 2 * radius**2, rel_tol=1e-9):
                made.append(made[i - 2] * made[i - 2])
                made[i - 2] = None
            else:
                made.append(self.height(squared * (1 / radius**2)))
            yield made[i]


def _count(inside: Array, weight: Array) -> Array:
    """inside @ weight, (n,); equal weights are counted, which is exact in float32 up to 2^24 and twice as fast."""
    xp = namespace(inside)
    one = float(weight[0])
    if bool(xp.all(weight == one)):
        return one * as_float64(
            xp.astype(inside, xp.float32)
            @ xp.ones(weight.shape, dtype=xp.float32, device=device(weight))
        )
    return xp.astype(inside, weight.dtype) @ weight


PROFILES: dict[str, type[Profile]] = {
    "hypersphere": Hypersphere,
    "epanechnikov": Epanechnikov,
    "gaussian": GaussianProfile,
}


def _norm(x: Array) -> Array:
    """Euclidean length of each row, (n, 1)."""
    return namespace(x).linalg.vector_norm(x, axis=1, keepdims=True)


def ball_log_volume(d: int) -> float:
    """log of the volume of the unit ball in d dimensions."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


def squared_distances(x: Array, center: Array, narrow: bool = False) -> Array:
    """(n, m): by one matrix product, or from differences, slower and exact, where the product would cancel."""
    xp = namespace(x)
    if not narrow:
        one, norm = xp.ones_like(x[:, :1]), xp.sum(x**2, axis=1)[:, None]
        other, other_norm = xp.ones_like(center[:, :1]), xp.sum(center**2, axis=1)[:, None]
        return (
            xp.concat([-2 * x, norm, one], axis=1)
            @ xp.concat([center, other, other_norm], axis=1).T
        )
    squared = xp.zeros((x.shape[0], center.shape[0]), dtype=x.dtype, device=device(x))
    for i in range(x.shape[1]):
        away = x[:, i : i + 1] - center[:, i]
        squared += away * away
    return squared
