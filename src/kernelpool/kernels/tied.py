r"""Gaussians that share one covariance matrix."""

from collections.abc import Collection
from dataclasses import replace

from ..arrays import Array, feature_sums, namespace
from .full import Full
from .gaussian import GaussianNaturalParams, K, Kernels, Moments


class Tied(Full):
    """phi(x) = x: the square of x weighs the same in every kernel and cancels; covariance (d,
    d).
    """

    name = "tied"

    def of_kernel(self, covariance: Array, j: int) -> Array:
        return covariance

    def take(self, kernels: K, index: Array) -> K:
        return replace(kernels, mean=namespace(index).take(kernels.mean, index, axis=0))

    def shrunk(self, kernels: K, share: Array, strength: float) -> K:
        return kernels  # they have all in common

    def one_by_one(self, d: int) -> bool:
        return False  # without pairs of features, however many there are

    def n_features(self, d: int) -> int:
        return d

    def _weight(self, slope: Array, precision: Array) -> Array:
        return slope

    def common(self, natural_params: GaussianNaturalParams, x: Array) -> Array | float:
        """-x' precision x / 2, (n,); guarded kernels, and then all are, leave nothing out."""
        if natural_params.guarded:
            return 0.0
        origin = namespace(x).zeros_like(natural_params.kernels.mean[0, :])
        return -0.5 * self.squared_distance(natural_params.whitening, x, origin)

    def elongation(self, precision: Array, covariance: Array) -> float:
        return 0.0  # `common` is a sum of squares and does not cancel

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...]:
        return ()

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        return feature_sums(phi, responsibility)  # of x alone: there is no square to sum

    def moments(
        self,
        mass: Array,
        sums: Array,
        natural_params: GaussianNaturalParams,
        x: Array,
        responsibility: Array,
    ) -> Moments:
        if natural_params.guarded:  # one covariance: if one kernel is guarded, all are
            return super().moments(mass, sums, natural_params, x, responsibility)
        of_rows = namespace(x).sum(responsibility, axis=0)
        return Moments(mass, sums.T, self.scatter(x, of_rows)[None, :])

    def _guarded(self, kernels: Kernels, precision: Array, eps: float) -> tuple[int, ...]:
        any_guarded = super()._guarded(kernels, precision, eps)
        return tuple(range(kernels.mean.shape[0])) if any_guarded else ()

    def reset_covariance(self, covariance: Array, chosen: Collection[int]) -> Array:
        return covariance

    def n_covariance_parameters(self, n_kernels: int, d: int) -> int:
        return d * (d + 1) // 2

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        scatter, count = super().prior(variance, n_kernels)
        return scatter, count + n_kernels - 1

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (d, d)

    def pool_moments(self, flat: Array) -> Array:
        return namespace(flat).sum(flat, axis=0, keepdims=True)
