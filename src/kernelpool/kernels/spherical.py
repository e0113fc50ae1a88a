r"""Spherical Gaussians: one variance a kernel, :math:`\Sigma_j = \sigma_j^2 I` (Titsias & Likas
2001, (39)).
"""

from dataclasses import replace

from ..arrays import Array, namespace
from ..rows import Block
from .gaussian import INVERSE_GAMMA_DOF, Gaussian, K, Kernels


class Spherical(Gaussian):
    """phi(x) = x, ‖x‖²; covariance (M,)."""

    name = "spherical"
    equivariant = False

    def square(self, x: Array) -> Array:
        return namespace(x).sum(x * x, axis=0, keepdims=True)

    def write_square(self, out: Array, x: Array, block: Block) -> None:
        out[...] = block.once(self.name, lambda block: self.square(block.x.T), 1)

    def cross(self, a: Array, b: Array) -> Array:
        return 2 * namespace(a).sum(a * b, axis=1, keepdims=True)

    def factors(self, block: Block) -> tuple[Array, tuple[tuple[int, int], ...]] | None:
        columns = self.features(block.x)
        return columns, tuple((i, columns.shape[0]) for i in range(columns.shape[0]))

    def n_features(self, d: int) -> int:
        return d + 1

    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        return covariance**-0.5, self.floor.shape[0] * namespace(covariance).log(covariance)

    def apply(self, precision: Array, x: Array) -> Array:
        return namespace(x).reshape(precision, (-1,) + (1,) * (x.ndim - 1)) * x

    def dual(self, precision: Array) -> Array:
        return precision[:, None]

    def unflatten(self, second: Array) -> Array:
        return second[:, 0] / self.floor.shape[0]

    def flat(self, covariance: Array) -> Array:
        return covariance[:, None] * self.floor.shape[0]

    def apply_floor(self, covariance: Array) -> Array:
        floor = namespace(self.floor).mean(self.floor)
        return self._raise_to_floor(covariance[:, None], floor)[:, 0]

    def rescaled(self, covariance: Array, factor: Array) -> Array:
        return covariance * factor[0] ** 2  # the frame of the family has one unit

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        return 0.5 * (scatter[:, 0] / covariance - self.floor.shape[0] * mass)

    def submatrix(self, covariance: Array, columns: Array) -> Array:
        return covariance

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        xp = namespace(variance)
        count = (INVERSE_GAMMA_DOF + 2) / variance.shape[0] + 1
        return xp.reshape(xp.mean(variance), (1, 1)), count

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (n_kernels,)

    def variances(self, kernels: Kernels) -> Array:
        return as_diag(kernels).covariance


def as_diag(kernels: K) -> K:
    """Spherical kernels as diagonal ones, whose features may be scaled one by one."""
    variance = kernels.covariance[:, None] + namespace(kernels.mean).zeros_like(kernels.mean)
    return replace(kernels, covariance=variance)


def as_spherical(kernels: K) -> K:
    """Diagonal kernels as spherical ones, of the mean variance of their features."""
    return replace(kernels, covariance=namespace(kernels.mean).mean(kernels.covariance, axis=1))
