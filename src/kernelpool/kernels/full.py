r"""Full Gaussians: one covariance matrix a kernel."""

from ..arrays import (
    Array,
    as_float64,
    cholesky,
    device,
    empty,
    eps_of,
    feature_sums,
    inverse_of_lower,
    multiply_pairs_into,
    namespace,
    outer_sums,
    triangle,
    triangle_pairs,
)
from ..errors import CollapsedKernelError, KernelpoolError
from ..rows import Block
from .gaussian import Gaussian, GaussianNaturalParams, Kernels
from .patterns import Patterns, sweep

WIDE = 128
"""From so many features on, kernel after kernel is faster than the products of all pairs of features."""


class Full(Gaussian):
    """phi(x) = x, upper triangle of x x'; covariance (M, d, d)."""

    name = "full"
    matrices = True

    def square(self, x: Array) -> Array:
        d, n = x.shape
        out = empty((d * (d + 1) // 2, n), x)
        self.write_square(out, x)
        return out

    def write_square(self, out: Array, x: Array) -> None:
        multiply_pairs_into(out, x)

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...]:
        return triangle_pairs(d)

    def n_features(self, d: int) -> int:
        return d + d * (d + 1) // 2

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        found = outer_sums(x, responsibility)
        if found is None:
            return feature_sums(phi, responsibility)
        first, second = found
        before = phi[: phi.shape[0] - self.n_features(x.shape[1]), :]
        return namespace(phi).concat([before @ responsibility.T, first.T, self.flat(second).T], axis=0)

    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        xp = namespace(covariance)
        factor = cholesky(covariance)
        if factor is None:
            raise KernelpoolError(
                "A covariance is positive definite no longer: weights or features span more than float64 holds. Scale X, bring "
                "sample_weight closer together, or raise covariance_floor."
            )
        return inverse_of_lower(factor), 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)), axis=-1)

    def gram(self, whitening: Array) -> Array:
        return namespace(whitening).matrix_transpose(whitening) @ whitening

    def whiten(self, whitening: Array, x: Array) -> Array:
        return x @ whitening.T

    def log_density(self, natural_params: GaussianNaturalParams, x: Array) -> Array:
        if x.shape[1] < WIDE:
            return super().log_density(natural_params, x)
        n_kernels = natural_params.weight.shape[0]
        return namespace(x).stack([self.exact_log_density(natural_params, j, x) for j in range(n_kernels)])

    def observe(self, natural_params: GaussianNaturalParams, block: Block) -> Patterns:
        return Patterns(self, natural_params, block)

    def elongation(self, precision: Array, covariance: Array) -> Array | float:
        xp = namespace(precision)
        return xp.sum(xp.abs(precision * covariance), axis=(1, 2))

    def scatter(self, away: Array, responsibility: Array) -> Array:
        # in float64: in float32 a kernel a thousand times longer than wide would lose its width to its length
        away = as_float64(away)
        return self.flat(((away * as_float64(responsibility)[:, None]).T @ away)[None, ...])[0, :]

    def apply(self, precision: Array, x: Array) -> Array:
        return (precision @ x[..., None])[..., 0] if x.ndim == 2 else x @ precision

    def dual(self, precision: Array) -> Array:
        _, _, times = triangle(precision, precision.shape[-1])
        return self.flat(precision) * times  # entries off the diagonal stand for two

    def deviate(self, covariance: Array, noise: Array) -> Array:
        return noise @ namespace(covariance).linalg.cholesky(covariance).T

    def unflatten(self, second: Array, d: int) -> Array:
        xp = namespace(second)
        _, back, _ = triangle(second, d)
        return xp.reshape(xp.take(second, back, axis=1), (-1, d, d))

    def flat(self, covariance: Array) -> Array:
        xp, d = namespace(covariance), covariance.shape[-1]
        upper, _, _ = triangle(covariance, d)
        return xp.take(xp.reshape(covariance, (-1, d * d)), upper, axis=1)

    def apply_floor(self, covariance: Array) -> Array:
        xp = namespace(covariance)
        lowest = xp.eye(covariance.shape[-1], dtype=covariance.dtype, device=device(covariance)) * self.floor
        if cholesky(covariance - lowest) is not None:
            return covariance
        each = [covariance[j, ...] for j in range(covariance.shape[0])]
        return xp.stack(
            [c if cholesky(c - lowest) is not None else self._raise_matrix_to_floor(c, j) for j, c in enumerate(each)]
        )

    def _raise_matrix_to_floor(self, covariance: Array, j: int) -> Array:
        """The most likely covariance (d, d) of kernel j at or above diag(floor): eigenvalues clipped in its metric."""
        xp = namespace(covariance)
        # a floor of zero has no metric; there only what is beyond rounding is refused
        metric = xp.where(self.floor > 0, self.floor, xp.ones_like(self.floor)) ** 0.5
        smallest = 1.0 if bool(xp.all(self.floor > 0)) else 0.0
        value, vector = xp.linalg.eigh(covariance / (metric[:, None] * metric[None, :]))
        if smallest == 0.0 and float(value[0]) < eps_of(value):
            raise CollapsedKernelError(j, int(xp.argmax(xp.abs(vector[:, 0]))), float(value[0]))
        value = xp.clip(value, min=smallest)
        raised = (vector * value) @ vector.T * (metric[:, None] * metric[None, :])
        return 0.5 * (raised + raised.T)

    def rescaled(self, covariance: Array, factor: Array) -> Array:
        return covariance * (factor[:, None] * factor[None, :])

    def covariance_coordinates(self, covariance: Array) -> Array:
        """Cholesky factor, the logarithm of its diagonal, flat; what stands above the diagonal counts nothing."""
        xp = namespace(covariance)
        factor = xp.linalg.cholesky(covariance)
        diagonal = xp.linalg.diagonal(factor)
        return xp.reshape(_with_diagonal(factor, xp.log(diagonal)), (-1,))

    def covariance_at(self, coordinates: Array, like: Array) -> Array:
        xp = namespace(coordinates)
        factor = xp.tril(xp.reshape(coordinates, like.shape))
        factor = _with_diagonal(factor, xp.exp(xp.linalg.diagonal(factor)))
        return factor @ xp.matrix_transpose(factor)

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        """W' (W scatter W' - mass) by the factor L = W^-1: its lower triangle, times L on the diagonal."""
        xp, d = namespace(covariance), covariance.shape[-1]
        factor = xp.linalg.cholesky(covariance)
        inverse = inverse_of_lower(factor)
        one = xp.eye(d, dtype=covariance.dtype, device=device(covariance))
        turned = xp.matrix_transpose(inverse)
        white = inverse @ self.unflatten(scatter + xp.zeros_like(self.flat(covariance)), d) @ turned
        slope = xp.tril(turned @ (white - mass[:, None, None] * one))
        return xp.reshape(_with_diagonal(slope, xp.linalg.diagonal(slope) * xp.linalg.diagonal(factor)), (-1,))

    def given(self, kernels: Kernels, known: list[int], rest: list[int], x: Array) -> tuple[Gaussian, Kernels]:
        xp, mean = namespace(kernels.mean), kernels.mean
        family, _ = self.marginal(kernels, rest)
        covariance = kernels.covariance if kernels.covariance.ndim == 3 else kernels.covariance[None, ...]
        pattern = xp.asarray([float(i in known) for i in range(mean.shape[1])], dtype=mean.dtype, device=device(mean))
        swept = sweep(covariance, pattern[None, :])[0][0, ...]  # (M, d, d)
        index, at = (xp.asarray(i, dtype=xp.int64, device=device(mean)) for i in (rest, known))
        rows = xp.take(swept, index, axis=1)
        slope, spread = xp.take(rows, at, axis=2), xp.take(rows, index, axis=2)
        step = (slope @ (x - xp.take(mean, at, axis=1))[..., None])[..., 0]
        spread = 0.5 * (spread + xp.matrix_transpose(spread))
        return family, Kernels(xp.take(mean, index, axis=1) + step, spread if kernels.covariance.ndim == 3 else spread[0, ...])

    def submatrix(self, covariance: Array, columns: Array) -> Array:
        xp = namespace(covariance)
        return xp.take(xp.take(covariance, columns, axis=-1), columns, axis=-2)

    def n_covariance_parameters(self, n_kernels: int, d: int) -> int:
        return n_kernels * d * (d + 1) // 2

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        d = variance.shape[0]
        matrix = namespace(variance).eye(d, dtype=variance.dtype, device=device(variance)) * variance
        return self.flat(matrix[None, ...]), self._prior_dof(d) + d + 2.0

    def _prior_dof(self, d: int) -> int:
        return d + 2  # the smallest whole number for which an inverse Wishart has a mean

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (n_kernels, d, d)

    def variances(self, kernels: Kernels) -> Array:
        return namespace(kernels.covariance).linalg.diagonal(kernels.covariance)


def _with_diagonal(a: Array, diagonal: Array) -> Array:
    xp = namespace(a)
    one = xp.eye(a.shape[-1], dtype=a.dtype, device=device(a))
    return a * (1 - one) + diagonal[..., None] * one
