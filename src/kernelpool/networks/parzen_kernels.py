r"""Kernels of Parzen classifiers: the indicator of a ball or of a star-shaped set, Epanechnikov's, the Gaussian.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its formulas are not numbered).
A kernel has height one at its center; at radius one it integrates to ``exp(log_volume)``.

.. math::

    K(u) = [u \le 1], \qquad 1 - u^2, \qquad e^{-u^2/2}, \qquad u = \|x - x_i\| / r

Deviations: the paper's star-shaped set (x in S implies cx in S "for all c >= 1": for c <= 1 is meant) is given by its gauge,
the factor by which the set must grow to reach a point. It is in `kernelpool.training.parzen`, which measures its volume.
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
    countable: ClassVar[bool] = False
    """Whether kernels of equal weight may be counted in a tree in place of adding up heights."""

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

    @abstractmethod
    def left(self, squared: Array, n: Array | float) -> Array:
        """Its integral over n other features at this squared distance, as a part of that at none; the height where n is 0."""

    def log_marginal(self, squared: Array, n: Array, log_ways: Array, word_squared: float) -> Array:
        """log of what is left when n (rows, 1) missing features are integrated and missing words summed out, (rows, m).

        A missing word may be the kernel's own or lie `word_squared` away; `log_ways` (rows, G + 1) are the logarithms of the
        number of ways in which 0, 1 ... of the missing words are others.
        """
        terms = [
            safe_log(self.left(squared + g * word_squared, n)) + log_ways[:, g : g + 1]
            for g in range(log_ways.shape[1])
        ]
        return terms[0] if len(terms) == 1 else logsumexp(namespace(squared).stack(terms), axis=0)

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        """Heights at one radius after the other, of `squared` in units of the frame."""
        for radius in radii:
            yield self.height(squared * (1 / radius**2))


class Hypersphere(Profile):
    """The indicator of a ball: one vote for all rows within the radius."""

    noun = "hypersphere"
    countable = True

    def height(self, squared: Array) -> Array:
        return namespace(squared).astype(squared <= INSIDE, squared.dtype)

    def log_total(self, tiles: Iterator[tuple[Array, Array]]) -> Array:
        return safe_log(sum(_count(squared <= INSIDE, weight) for squared, weight in tiles))

    def heights(self, squared: Array, radii: list[float]) -> Iterator[Array]:
        for radius in radii:
            yield namespace(squared).astype(squared <= INSIDE * radius**2, squared.dtype)

    def log_volume(self, d: int) -> float:
        return ball_log_volume(d)

    def left(self, squared: Array, n: Array | float) -> Array:
        """A slice of a ball is a ball."""
        return self.height(squared) * namespace(squared).clip(1 - squared, min=0.0) ** (0.5 * n)

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

    def left(self, squared: Array, n: Array | float) -> Array:
        return namespace(squared).clip(1 - squared, min=0.0) ** (0.5 * n + 1)

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

    def left(self, squared: Array, n: Array | float) -> Array:
        """Features are independent."""
        return self.height(squared)

    def log_marginal(self, squared: Array, n: Array, log_ways: Array, word_squared: float) -> Array:
        """Words factor out."""
        xp = namespace(squared)
        away = xp.arange(log_ways.shape[1], dtype=log_ways.dtype, device=device(log_ways)) * (
            -0.5 * word_squared
        )
        return -0.5 * squared + logsumexp(log_ways + away, axis=1)[:, None]

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
        seen: list[Array] = []
        for i, radius in enumerate(radii):
            if i > 1 and math.isclose(radii[i - 2] ** 2, 2 * radius**2, rel_tol=1e-9):
                seen.append(seen[i - 2] * seen[i - 2])
                seen[i - 2] = None
            else:
                seen.append(self.height(squared * (1 / radius**2)))
            yield seen[i]


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


def distances_along(x: Array, center: Array, seen: Array) -> Array:
    """`squared_distances` along the features that each center sees, one in `seen` (m, d) and zero for the others, (n, m)."""
    xp = namespace(x)
    return (x * x) @ seen.T - 2 * x @ (center * seen).T + xp.sum(center * center * seen, axis=1)


def observed_distances(x: Array, observed: Array, center: Array, narrow: bool = False) -> Array:
    """`squared_distances` along the features that are known of each row, (n, m)."""
    xp = namespace(x)
    x = xp.where(observed > 0, x, xp.zeros_like(x))
    if not narrow:
        norm = xp.sum(x**2, axis=1)[:, None]
        return (
            xp.concat([-2 * x, observed, norm], axis=1)
            @ xp.concat([center, center**2, xp.ones_like(center[:, :1])], axis=1).T
        )
    squared = xp.zeros((x.shape[0], center.shape[0]), dtype=x.dtype, device=device(x))
    for i in range(x.shape[1]):
        away = x[:, i : i + 1] - center[:, i]
        squared += observed[:, i : i + 1] * away * away
    return squared


def log_ways(levels: tuple[int, ...], missing: Array) -> Array:
    """log of the number of ways in which 0, 1 ... of the missing words are others than some given ones, (n, G + 1).

    `missing` (n, G) tells of each row which words are missing, ones and zeros. These are the elementary symmetric polynomials
    of the numbers of other words.
    """
    xp = namespace(missing)
    nothing = xp.full((missing.shape[0], 1), -xp.inf, dtype=missing.dtype, device=device(missing))
    found = xp.zeros_like(nothing)
    for g, n_levels in enumerate(levels):
        other = safe_log(missing[:, g : g + 1] * (n_levels - 1.0))
        found = logsumexp(
            xp.stack(
                [xp.concat([found, nothing], axis=1), xp.concat([nothing, found + other], axis=1)]
            ),
            axis=0,
        )
    return found
