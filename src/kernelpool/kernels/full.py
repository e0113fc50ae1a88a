r"""Full Gaussians: one covariance matrix a kernel."""

from collections.abc import Iterator

from ..arrays import (
    Array,
    as_float64,
    cholesky,
    device,
    empty,
    eps_of,
    feature_sums,
    inverse_of_lower,
    match_array,
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
from ..sums import record
from .gaussian import LOG_2_PI, WIDE, Gaussian, GaussianNaturalParams, Kernels, Moments
from .kernel import Observed

CHUNK = 1 << 17
"""Numbers in the matrices of the patterns that are swept at once: they should fit the caches."""

KEEP = 1 << 24
"""Numbers in the matrices of all patterns of a block that are kept from the E-step to the moments;
else they are made twice.
"""


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

    def observe(self, natural_params: GaussianNaturalParams, block: Block) -> "Patterns":
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
        xp, factor = namespace(covariance), cholesky(covariance)
        if factor is None:
            raise FloatingPointError("a covariance is not positive definite to rounding")
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


@record
class Swept:
    """Some patterns and what kernels make of them, in float64."""

    spans: tuple[slice, ...]
    """Of the rows of each pattern in the block."""
    known: Array
    """(G, 1, d)."""
    matrix: Array
    """The covariance swept on the known features, (G, M, d, d), or (G, 1, d, d) of tied kernels:
    minus the precision of the known cells, the slopes of the regression on them and the
    conditional covariance.
    """
    log_size: Array
    """Logarithm of the determinant of the covariance of the known cells, (G, M)."""


def sweep(covariance: Array, patterns: Array) -> tuple[Array, Array]:
    """Covariances (M, d, d) swept on the features that each pattern (G, d) has, (G, M, d, d), and
    log |S_oo|, (G, M).
    """
    xp, (n_patterns, d), n_kernels = namespace(covariance), patterns.shape, covariance.shape[0]
    # patterns and kernels along the last axis, where memory runs
    a = (
        xp.permute_dims(covariance, (1, 2, 0))[:, :, None, :]
        + xp.zeros_like(patterns)[None, None, :, :1]
    )
    a = xp.reshape(a, (d, d, n_patterns * n_kernels))
    has = xp.reshape(
        patterns.T[:, :, None] + xp.zeros_like(covariance)[None, None, :, 0, 0], (d, -1)
    )
    log_size = xp.zeros_like(has[0, :])
    for k in range(d):
        # -1/p, a_ik/p and a_ij - a_ik a_kj / p, with p = a_kk, in one outer product
        pivot = xp.where(has[k, :] > 0, a[k, k, :], xp.ones_like(log_size))
        log_size += xp.log(pivot)
        row = xp.asarray(a[k, :, :], copy=True)
        row[k, :] -= 1
        a -= (row * (has[k, :] / pivot))[:, None, :] * row[None, :, :]
        a[k, k, :] -= 2 * has[k, :]
    swept = xp.reshape(xp.permute_dims(a, (2, 0, 1)), (n_patterns, n_kernels, d, d))
    return swept, xp.reshape(log_size, (n_patterns, n_kernels))


class Patterns(Observed):
    r"""Full or tied kernels of a block whose rows are sorted by pattern.

    Little & Rubin, "Statistical analysis with missing data", 2nd edition, 2002, sections 7.4.2 (the
    sweep operator) and 11.2. With o the cells that are known and h those that are missing, kernel j
    expects

    .. math::

        \hat x_h = \mu_h + \Sigma_{ho} \Sigma_{oo}^{-1} (x_o - \mu_o), \qquad
        \text{cov}(x_h \mid x_o) = \Sigma_{hh} - \Sigma_{ho} \Sigma_{oo}^{-1} \Sigma_{oh}

    Both depend on the row through its pattern alone, and :math:`\hat x` is affine in :math:`x_o`.
    So the rows of a pattern are two matrix products, as complete rows are, and what is left to do
    is small: matrices of d x d for every pattern and kernel (`Swept`).
    """

    def __init__(
        self, kernel: Gaussian, natural_params: GaussianNaturalParams, block: Block
    ) -> None:
        assert block.missing is not None
        self.kernel, self.block, self.missing = kernel, block, block.missing
        xp, (n, d) = namespace(block.x), block.x.shape
        self.mean = as_float64(natural_params.kernels.mean)  # (M, d)
        covariance = as_float64(natural_params.kernels.covariance)
        self.covariance = xp.reshape(covariance, (-1, d, d))  # (M, d, d) or (1, d, d)
        if (
            eps_of(block.x) > 1e-10
        ):  # rounded to the type of the rows: it must stay positive definite
            one = xp.eye(d, dtype=xp.float64, device=device(block.x))
            self.covariance = self.covariance * (1 + 4 * eps_of(block.x) * one)
        guarded = natural_params.guarded
        self.origin = self.mean - kernel.without(guarded, self.mean)
        """The points about which moments are taken, (M, d)."""
        self.exact = tuple(range(self.mean.shape[0])) if d >= WIDE else guarded
        """The kernels that are taken one after the other."""
        self.by_product = len(self.exact) < self.mean.shape[0]
        self.phi = empty(
            (1 + (d + d * (d + 1) // 2 if self.by_product else 0), n), block.x
        )  # one, x and its pairs
        self.phi[0, :] = 1
        if self.by_product:
            self.phi[1 : 1 + d, :] = block.x.T
            kernel.write_square(self.phi[1 + d :, :], self.phi[1 : 1 + d, :])
        size = self.covariance.shape[0] * d * d
        self._at_once = max(1, CHUNK // size)
        self._kept: list[Swept] | None = None
        if len(self.missing.spans) * size <= KEEP:
            self._kept = list(self._swept())
        self.log_density = empty((self.mean.shape[0], n), block.x)
        for part in self._swept():
            self._write_log_density(part)

    def _swept(self) -> Iterator[Swept]:
        if self._kept is not None:
            yield from self._kept
            return
        spans = self.missing.spans
        for start in range(0, len(spans), self._at_once):
            some = slice(start, min(start + self._at_once, len(spans)))
            patterns = self.missing.patterns[some, :]
            swept = sweep(self.covariance, patterns)
            yield Swept(spans[some], patterns[:, None, :], *swept)

    def _away(self, span: slice, known: Array, point: Array) -> Array:
        """x - point in the known cells, zero in the others, (n, d), in float64."""
        return (as_float64(self.block.x[span, :]) - point) * known

    def _write_log_density(self, part: Swept) -> None:
        """offset + weight . phi, pattern by pattern."""
        xp = namespace(self.mean)
        precision = -part.matrix * (
            part.known[..., :, None] * part.known[..., None, :]
        )  # (G, M, d, d)
        constant = part.log_size + xp.sum(part.known, axis=2) * LOG_2_PI
        if self.by_product:
            self._multiply(part, precision, constant)
        for g, span in enumerate(part.spans):
            for j in self.exact:
                of = j % precision.shape[1]
                away = self._away(span, part.known[g, 0, :], self.mean[j, :])
                distance = xp.vecdot(away @ precision[g, of, ...], away)
                exact = -0.5 * (distance + constant[g, of])
                self.log_density[j, span] = match_array(exact, like=self.phi)

    def _multiply(self, part: Swept, precision: Array, constant: Array) -> None:
        """The same of all kernels at once."""
        xp, d = namespace(self.mean), self.mean.shape[1]
        slope = (precision @ self.mean[None, :, :, None])[..., 0]  # (G, M, d)
        offset = -0.5 * (xp.sum(slope * self.mean, axis=2) + constant)  # (G, M)
        dual = xp.reshape(
            self.kernel.dual(xp.reshape(precision, (-1, d, d))),
            (len(part.spans), -1, self.phi.shape[0] - 1 - d),
        )
        weight = xp.concat(
            [offset[..., None], slope, -0.5 * dual + 0 * slope[..., :1]], axis=2
        )  # (G, M, 1 + d + S)
        weight = match_array(weight, like=self.phi)
        for g, span in enumerate(part.spans):
            self.log_density[:, span] = weight[g, ...] @ self.phi[:, span]

    def _regression(self, part: Swept, about: Array) -> tuple[Array, Array, Array]:
        """Slopes (G, M, d, d), constants (G, M, d) and covariances (G, M, d, d) of the missing
        cells given the known ones; rows are taken from the points `about` (M, d).
        """
        unknown, away = 1 - part.known, self.mean - about
        slope = part.matrix * (unknown[..., :, None] * part.known[..., None, :])
        shift = unknown * away - (slope @ away[None, :, :, None])[..., 0]
        return slope, shift, part.matrix * (unknown[..., :, None] * unknown[..., None, :])

    def moments(self, mass: Array, responsibility: Array) -> Moments:
        """Sums of the expected rows, and of what each pattern leaves uncertain."""
        xp, d = namespace(self.mean), self.mean.shape[1]
        first = xp.zeros_like(self.mean)
        second = self.mean[:, :, None] * first[:, None, :]
        one = xp.eye(d, dtype=self.mean.dtype, device=device(self.mean))
        for part in self._swept():
            sums = self._sums(part, responsibility)  # (G, M, d + 1, d + 1)
            slope, shift, spread = self._regression(part, self.origin)
            known = part.known[..., None] * one + xp.zeros_like(shift)[..., None]
            # the expected row is expects (x, 1)
            expects = xp.concat([known + slope, shift[..., None]], axis=3)
            at = expects @ sums  # (G, M, d, d + 1)
            first += xp.sum(at[..., -1], axis=0)
            second += xp.sum(
                at @ xp.matrix_transpose(expects) + sums[..., -1:, -1:] * spread, axis=0
            )
        return Moments(mass, first, self.kernel.pool_moments(self.kernel.flat(second)))

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        xp, d = namespace(self.mean), self.mean.shape[1]
        out = xp.asarray(self.block.x, copy=True)
        one = xp.eye(d, dtype=self.mean.dtype, device=device(self.mean))
        for part in self._swept():
            slope, shift, spread = self._regression(part, xp.zeros_like(self.mean))
            for g, span in enumerate(part.spans):
                known = part.known[g, 0, :]
                x, found = as_float64(self.block.x[span, :]), xp.zeros_like(self.block.x[span, :])
                for j in range(self.mean.shape[0]):
                    of = j % slope.shape[1]
                    each = x @ slope[g, of, ...].T + shift[g, j, :]
                    if noise is not None:
                        padded = spread[g, of, ...] + (known + 1e-12 * (1 - known)) * one
                        factor = xp.linalg.cholesky(padded)
                        each = each + (as_float64(noise[span, :]) @ factor.T) * (1 - known)
                    found = found + share[j, span][:, None] * match_array(each, like=self.phi)
                out[span, :] = out[span, :] + found
        return out

    def _sums(self, part: Swept, responsibility: Array) -> Array:
        """Responsibility times (x, 1)(x, 1)' summed over the rows of each pattern, missing cells
        zero, (G, M, d + 1, d + 1).
        """
        xp, d = namespace(self.mean), self.mean.shape[1]
        flat = xp.stack(
            [self.phi[:, span] @ responsibility[:, span].T for span in part.spans]
        )  # (G, 1 + d + S, M)
        flat = xp.matrix_transpose(as_float64(flat))
        n_patterns, n_kernels, _ = flat.shape
        first = flat[..., 1 : 1 + d] if self.by_product else xp.zeros_like(flat) * self.mean
        if self.by_product:
            second = self.kernel.unflatten(
                xp.reshape(flat[..., 1 + d :], (n_patterns * n_kernels, -1)), d
            )
            second = xp.reshape(second, (n_patterns, n_kernels, d, d))
        else:
            second = first[..., :, None] * first[..., None, :]  # zeros
        for j in self.exact:
            for g, span in enumerate(part.spans):
                away = self._away(span, part.known[g, 0, :], self.origin[j, :])
                weighted = as_float64(responsibility[j, span])[:, None] * away
                first[g, j, :] = xp.sum(weighted, axis=0)
                second[g, j, ...] = weighted.T @ away
        above = xp.concat([second, first[..., None]], axis=3)
        below = xp.concat([first, flat[..., :1]], axis=2)
        return xp.concat([above, below[..., None, :]], axis=2)
