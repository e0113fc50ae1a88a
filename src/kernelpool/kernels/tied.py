r"""Gaussians that share one covariance matrix."""

from ..arrays import Array, feature_sums, namespace, weighted_gram
from .full import Full
from .gaussian import GaussianNaturalParams, Kernels, Moments


class Tied(Full):
    """phi(x) = x: the square of x weighs the same in every kernel and cancels; covariance (d, d)."""

    name = "tied"

    def of_kernel(self, covariance: Array, j: int) -> Array:
        return covariance

    def take(self, kernels: Kernels, index: Array) -> Kernels:
        return Kernels(namespace(index).take(kernels.mean, index, axis=0), kernels.covariance)

    def shrunk(self, kernels: Kernels, share: Array, strength: float) -> Kernels:
        return kernels  # they have all in common

    def one_by_one(self, d: int) -> bool:
        return False  # without pairs of features, however many there are

    def n_features(self, d: int) -> int:
        return d

    def complete(self, features: Array, d: int) -> None:
        """x is all there is."""

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
        xp = namespace(x)
        if not natural_params.guarded:
            return Moments(mass, sums.T, self.scatter(x, xp.sum(responsibility, axis=0))[None, :])
        first, second = xp.asarray(sums.T, copy=True), []
        for j in natural_params.guarded:  # one covariance: if one kernel is guarded, all are
            away = x - natural_params.kernels.mean[j, :]
            first[j, :] = responsibility[j, :] @ away
            second.append(self.scatter(away, responsibility[j, :]))
        return Moments(mass, first, xp.sum(xp.stack(second), axis=0, keepdims=True))

    def _guarded(self, kernels: Kernels, precision: Array, eps: float) -> tuple[int, ...]:
        found = super()._guarded(kernels, precision, eps)
        return tuple(range(kernels.mean.shape[0])) if found else ()

    def with_pseudocounts(
        self, moments: Moments, moment_origin: Array, vanished: Array, kernels: Kernels, mass: float
    ) -> Moments:
        xp, away = namespace(moment_origin), kernels.mean - moment_origin
        trace = xp.where(vanished, mass + 0 * away[:, 0], 0 * away[:, 0])  # (M,)
        kept = xp.sum(trace) * self.flat(kernels.covariance[None, ...]) + self.squares(trace, away)
        return Moments(
            *self._pseudocount_mass(moments, away, vanished, mass), moments.second + kept
        )

    def trace(self, precision: Array, covariance: Array) -> Array:
        return super().trace(precision[None, ...], covariance[None, ...])

    def reset_covariance(self, covariance: Array, chosen: list[int]) -> Array:
        return covariance

    def apply_floor(self, covariance: Array) -> Array:
        return (
            super().apply_floor(covariance)
            if covariance.ndim == 3
            else super().apply_floor(covariance[None, ...])[0, ...]
        )

    def covariances(self, second: Array, mass: Array, count: float) -> Array:
        pooled = second / (namespace(mass).sum(mass) + count)  # (1, S)
        return self.apply_floor(self.unflatten(pooled, self.floor.shape[0]))[0, ...]

    def covariance_coordinates(self, covariance: Array) -> Array:
        return super().covariance_coordinates(covariance[None, ...])

    def covariance_at(self, coordinates: Array, like: Array) -> Array:
        return super().covariance_at(coordinates, like[None, ...])[0, ...]

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        xp = namespace(mass)
        return super().covariance_pullback(
            covariance[None, ...], scatter, xp.reshape(xp.sum(mass), (1,))
        )

    def n_covariance_parameters(self, n_kernels: int, d: int) -> int:
        return d * (d + 1) // 2

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        scatter, count = super().prior(variance, n_kernels)
        return scatter, count + n_kernels - 1

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (d, d)

    def variances(self, kernels: Kernels) -> Array:
        return super().variances(kernels) + namespace(kernels.mean).zeros_like(kernels.mean)

    def widths(self, flat: Array, weight: Array) -> Array:
        pooled = (weight @ flat) / namespace(weight).sum(weight)
        return super().widths(pooled[None, :], weight)[0, ...]

    def pool_moments(self, flat: Array) -> Array:
        return namespace(flat).sum(flat, axis=0, keepdims=True)

    def squares(self, weight: Array, a: Array) -> Array:
        return self.flat(weighted_gram(a, weight)[None, ...])

    def cross(self, a: Array, b: Array) -> Array:
        product = a.T @ b
        return self.flat((product + product.T)[None, ...])
