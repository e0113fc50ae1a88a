"""Diagonal Gaussians: one variance a kernel and feature."""

from ..arrays import Array, multiply_into, namespace
from ..rows import Block
from .gaussian import INVERSE_GAMMA_DOF, Gaussian, Kernels


class Diag(Gaussian):
    """phi(x) = x, x²; covariance (M, d)."""

    name = "diag"

    def square(self, x: Array) -> Array:
        return x * x

    def cross(self, a: Array, b: Array) -> Array:
        return 2 * a * b

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...]:
        return tuple((i, i) for i in range(d))

    def n_features(self, d: int) -> int:
        return 2 * d

    def write_square(self, out: Array, x: Array, block: Block) -> None:
        multiply_into(out, x, x)

    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        xp = namespace(covariance)
        return covariance**-0.5, xp.sum(xp.log(covariance), axis=1)

    def apply(self, precision: Array, x: Array) -> Array:
        return precision * x if x.ndim == 2 else precision[:, None, :] * x

    def dual(self, precision: Array) -> Array:
        return precision

    def unflatten(self, second: Array) -> Array:
        return second

    def flat(self, covariance: Array) -> Array:
        return covariance

    def apply_floor(self, covariance: Array) -> Array:
        return self._raise_to_floor(covariance, self.floor)

    def rescaled(self, covariance: Array, factor: Array) -> Array:
        return covariance * factor**2

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        return namespace(covariance).reshape(0.5 * (scatter / covariance - mass[:, None]), (-1,))

    def submatrix(self, covariance: Array, columns: Array) -> Array:
        return namespace(covariance).take(covariance, columns, axis=1)

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        return variance[None, :], INVERSE_GAMMA_DOF + 3

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (n_kernels, d)

    def variances(self, kernels: Kernels) -> Array:
        return kernels.covariance
