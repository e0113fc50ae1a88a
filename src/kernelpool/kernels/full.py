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
    squared_distances,
    triangle,
    triangle_pairs,
    weighted_gram,
    with_diagonal,
)
from ..errors import CollapsedKernelError, KernelpoolError
from ..rows import Block
from .gaussian import WIDE, Gaussian, GaussianNaturalParams, Kernels
from .patterns import Patterns


class Full(Gaussian):
    """phi(x) = x, upper triangle of x x'; covariance (M, d, d)."""

    name = "full"
    matrices = True

    def square(self, x: Array) -> Array:
        d, n = x.shape
        out = empty((d * (d + 1) // 2, n), x)
        self.write_square(out, x)
        return out

    def cross(self, a: Array, b: Array) -> Array:
        product = a[:, :, None] * b[:, None, :]
        return self.flat(product + namespace(a).matrix_transpose(product))

    def write_square(self, out: Array, x: Array) -> None:
        multiply_pairs_into(out, x)

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...] | None:
        return None if self.one_by_one(d) else triangle_pairs(d)

    def one_by_one(self, d: int) -> bool:
        return d >= WIDE

    def n_features(self, d: int) -> int:
        return d if self.one_by_one(d) else d + d * (d + 1) // 2

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        found = None if self.one_by_one(x.shape[1]) else outer_sums(x, responsibility)
        if found is None:
            return feature_sums(phi, responsibility)
        first, second = found
        before = phi[: phi.shape[0] - self.n_features(x.shape[1]), :]
        return namespace(phi).concat(
            [before @ responsibility.T, first.T, self.flat(second).T], axis=0
        )

    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        factor = self._factor(covariance)
        log_size = self._log_size(factor)
        return inverse_of_lower(factor, overwrite=True), log_size

    def log_size(self, covariance: Array) -> Array:
        return self._log_size(self._factor(covariance))

    def _log_size(self, factor: Array) -> Array:
        xp = namespace(factor)
        return 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)), axis=-1)

    def _factor(self, covariance: Array) -> Array:
        """L with L L' = covariance."""
        factor = cholesky(covariance)
        if factor is None:
            raise KernelpoolError(
                "A covariance is positive definite no longer: weights or features span more than "
                "float64 holds. Scale X, bring "
                "sample_weight closer together, or raise covariance_floor."
            )
        return factor

    def gram(self, whitening: Array) -> Array:
        return namespace(whitening).matrix_transpose(whitening) @ whitening

    def squared_distance(self, whitening: Array, x: Array, point: Array) -> Array:
        return squared_distances(x, point, whitening)

    def observe(self, natural_params: GaussianNaturalParams, block: Block) -> Patterns:
        return Patterns(self, natural_params, block)

    def elongation(self, precision: Array, covariance: Array) -> Array | float:
        xp = namespace(precision)
        return xp.sum(xp.abs(precision * covariance), axis=(1, 2))

    def scatter(self, away: Array, responsibility: Array) -> Array:
        # in float64: in float32 a kernel a thousand times longer than wide would lose its width to
        # its length
        return self.flat(weighted_gram(as_float64(away), as_float64(responsibility))[None, ...])[
            0, :
        ]

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

    def variances(self, kernels: Kernels) -> Array:
        xp = namespace(kernels.mean)
        return xp.linalg.diagonal(kernels.covariance) + xp.zeros_like(kernels.mean)

    def apply_floor(self, covariance: Array) -> Array:
        xp = namespace(covariance)
        lowest = (
            xp.eye(covariance.shape[-1], dtype=covariance.dtype, device=device(covariance))
            * self.floor
        )
        if covariance.shape[-1] < WIDE and cholesky(covariance - lowest) is not None:
            return covariance
        stacked = xp.reshape(covariance, (-1, *lowest.shape))
        each = [stacked[j, ...] for j in range(stacked.shape[0])]
        raised = {
            j: self._raise_matrix_to_floor(c, j)
            for j, c in enumerate(each)
            if cholesky(c - lowest) is None
        }
        if not raised:
            return covariance
        return xp.reshape(
            xp.stack([raised.get(j, c) for j, c in enumerate(each)]), covariance.shape
        )

    def _raise_matrix_to_floor(self, covariance: Array, j: int) -> Array:
        """The most likely covariance (d, d) of kernel j at or above diag(floor): eigenvalues
        clipped in its metric.
        """
        xp = namespace(covariance)
        # a floor of zero has no metric; there only what is beyond rounding is refused
        metric = xp.where(self.floor > 0, self.floor, xp.ones_like(self.floor)) ** 0.5
        smallest = 1.0 if bool(xp.all(self.floor > 0)) else 0.0
        value, vector = xp.linalg.eigh(covariance / (metric[:, None] * metric[None, :]))
        if smallest == 0.0 and float(value[0]) < eps_of(value):
            raise CollapsedKernelError(j, int(xp.argmax(xp.abs(vector[:, 0]))), float(value[0]))
        value = xp.clip(value, min=smallest)
        root = metric[:, None] * vector * value**0.5
        raised = root @ root.T
        return 0.5 * (raised + raised.T)

    def rescaled(self, covariance: Array, factor: Array) -> Array:
        return covariance * (factor[:, None] * factor[None, :])

    def covariance_coordinates(self, covariance: Array) -> Array:
        """The lower triangle of the Cholesky factor, flat, with the logarithm of its diagonal."""
        xp = namespace(covariance)
        factor = xp.linalg.cholesky(covariance)
        return self._flat_lower(with_diagonal(factor, xp.log(xp.linalg.diagonal(factor))))

    def _flat_lower(self, factor: Array) -> Array:
        xp = namespace(factor)
        return xp.reshape(self.flat(xp.matrix_transpose(factor)), (-1,))

    def covariance_at(self, coordinates: Array, like: Array) -> Array:
        xp = namespace(coordinates)
        d = like.shape[-1]
        flat = xp.reshape(coordinates, (-1, d * (d + 1) // 2))
        factor = xp.tril(self.unflatten(flat, d))
        factor = with_diagonal(factor, xp.exp(xp.linalg.diagonal(factor)))
        return xp.reshape(factor @ xp.matrix_transpose(factor), like.shape)

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        """W' (W scatter W' - mass) by the factor L = W^-1: its lower triangle, times L on the
        diagonal.
        """
        xp, d = namespace(covariance), covariance.shape[-1]
        covariance = xp.reshape(covariance, (-1, d, d))
        mass, n_kernels = self.pool_moments(mass[:, None])[:, 0], covariance.shape[0]
        if d >= WIDE and n_kernels > 1:
            scatter = scatter + 0 * mass[:, None]
            each = (slice(j, j + 1) for j in range(n_kernels))
            return xp.concat(
                [self.covariance_pullback(covariance[j, ...], scatter[j, :], mass[j]) for j in each]
            )
        factor = xp.linalg.cholesky(covariance)
        diagonal = xp.asarray(xp.linalg.diagonal(factor), copy=True)
        inverse = inverse_of_lower(factor, overwrite=True)
        turned = xp.matrix_transpose(inverse)
        white = inverse @ self.unflatten(scatter + xp.zeros_like(self.flat(covariance)), d) @ turned
        white = with_diagonal(white, xp.linalg.diagonal(white) - mass[:, None])
        slope = xp.tril(turned @ white)
        return self._flat_lower(with_diagonal(slope, xp.linalg.diagonal(slope) * diagonal))

    def given(
        self, kernels: Kernels, known: list[int], rest: list[int], x: Array
    ) -> tuple[Gaussian, Kernels]:
        xp, mean = namespace(kernels.mean), kernels.mean
        family, _ = self.marginal(kernels, rest)
        covariance = xp.reshape(kernels.covariance, (-1, *kernels.covariance.shape[-2:]))
        index, at = (xp.asarray(i, dtype=xp.int64, device=device(mean)) for i in (rest, known))
        across = xp.take(xp.take(covariance, at, axis=1), index, axis=2)  # (M, known, rest)
        slope = xp.linalg.solve(self.submatrix(covariance, at), across)
        step = xp.sum(slope * (x - xp.take(mean, at, axis=1))[..., None], axis=1)
        spread = self.submatrix(covariance, index) - xp.matrix_transpose(slope) @ across
        spread = 0.5 * (spread + xp.matrix_transpose(spread))
        shape = self.shape(mean.shape[0], len(rest))
        return family, Kernels(xp.take(mean, index, axis=1) + step, xp.reshape(spread, shape))

    def submatrix(self, covariance: Array, columns: Array) -> Array:
        xp = namespace(covariance)
        return xp.take(xp.take(covariance, columns, axis=-1), columns, axis=-2)

    def n_covariance_parameters(self, n_kernels: int, d: int) -> int:
        return n_kernels * d * (d + 1) // 2

    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        d = variance.shape[0]
        dof = d + 2  # the smallest whole number for which an inverse Wishart has a mean
        one = namespace(variance).eye(d, dtype=variance.dtype, device=device(variance))
        return self.flat((one * variance)[None, ...]), dof + d + 2.0

    @staticmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        return (n_kernels, d, d)
