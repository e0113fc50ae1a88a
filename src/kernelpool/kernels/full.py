r"""Full Gaussians: one covariance matrix a kernel."""

import math
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
    take_columns,
    to_numpy,
    triangle,
    triangle_pairs,
    weighted_gram,
    whitened_distances,
    with_diagonal,
)
from ..errors import CollapsedKernelError, KernelpoolError
from ..rows import Block
from ..sums import record
from .gaussian import LOG_2_PI, WIDE, Gaussian, GaussianNaturalParams, Kernels, Moments
from .kernel import Observed

SWEPT_AT_ONCE = 1 << 18
"""Numbers in the matrices of the patterns that are swept at once: they should fit the caches."""

MOST_INFLATION = 1e6
"""Largest variance of a feature, relative to that given all others, of kernels whose precision is
swept.
"""

PATTERN_NUMBERS = 1 << 24
"""Numbers in the matrices of all patterns of a block that are kept from the E-step to the moments;
else they are made twice.
"""


def log_determinant(factor: Array) -> Array:
    """log |L L'| of Cholesky factors, (...,)."""
    xp = namespace(factor)
    return 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)), axis=-1)


class Full(Gaussian):
    """phi(x) = x, upper triangle of x x'; covariance (M, d, d)."""

    name = "full"
    matrices = True

    def square(self, x: Array) -> Array:
        d, n = x.shape
        out = empty((d * (d + 1) // 2, n), x)
        multiply_pairs_into(out, x)
        return out

    def cross(self, a: Array, b: Array) -> Array:
        product = a[:, :, None] * b[:, None, :]
        return self.flat(product + namespace(a).matrix_transpose(product))

    def write_square(self, out: Array, x: Array, block: Block) -> None:
        multiply_pairs_into(out, x)

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...] | None:
        return None if self.one_by_one(d) else triangle_pairs(d)

    def one_by_one(self, d: int) -> bool:
        return d >= WIDE

    def n_features(self, d: int) -> int:
        return d if self.one_by_one(d) else d + d * (d + 1) // 2

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        outer = None if self.one_by_one(x.shape[1]) else outer_sums(x, responsibility)
        if outer is None:
            return feature_sums(phi, responsibility)
        first, second = outer
        before = phi[: phi.shape[0] - self.n_features(x.shape[1]), :]
        return namespace(phi).concat(
            [before @ responsibility.T, first.T, self.flat(second).T], axis=0
        )

    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        factor = cholesky(covariance)
        if factor is None:
            raise KernelpoolError(
                "A covariance is positive definite no longer: weights or features span more than "
                "float64 holds. Scale X, bring sample_weight closer together, or raise "
                "covariance_floor."
            )
        log_size = log_determinant(factor)
        return inverse_of_lower(factor, overwrite=True), log_size

    def gram(self, whitening: Array) -> Array:
        return namespace(whitening).matrix_transpose(whitening) @ whitening

    def squared_distance(self, whitening: Array, x: Array, point: Array) -> Array:
        return whitened_distances(x, point, whitening)

    def observe(self, natural_params: GaussianNaturalParams, block: Block) -> "Patterns":
        return Patterns(self, natural_params, block)

    def elongation(self, precision: Array, covariance: Array) -> Array | float:
        xp = namespace(precision)
        return xp.sum(xp.abs(precision * covariance), axis=(1, 2))

    def scatter(self, deviation: Array, responsibility: Array) -> Array:
        # in float64: in float32 a kernel a thousand times longer than wide would lose its width to
        # its length
        gram = weighted_gram(as_float64(deviation), as_float64(responsibility))
        return self.flat(gram)[0, :]

    def apply(self, precision: Array, x: Array) -> Array:
        return (precision @ x[..., None])[..., 0] if x.ndim == 2 else x @ precision

    def dual(self, precision: Array) -> Array:
        _, _, times = triangle(precision, precision.shape[-1])
        return self.flat(precision) * times  # entries off the diagonal stand for two

    def deviate(self, covariance: Array, noise: Array) -> Array:
        return noise @ namespace(covariance).linalg.cholesky(covariance).T

    def unflatten(self, second: Array) -> Array:
        xp = namespace(second)
        d = self.floor.shape[0]
        _, back, _ = triangle(second, d)
        return xp.reshape(xp.take(second, back, axis=1), (-1, d, d))

    def flat(self, covariance: Array) -> Array:
        xp = namespace(covariance)
        d = covariance.shape[-1]
        upper, _, _ = triangle(covariance, d)
        return xp.take(xp.reshape(covariance, (-1, d * d)), upper, axis=1)

    def variances(self, kernels: Kernels) -> Array:
        xp = namespace(kernels.mean)
        return xp.linalg.diagonal(kernels.covariance) + xp.zeros_like(kernels.mean)

    def apply_floor(self, covariance: Array) -> Array:
        xp = namespace(covariance)
        d = covariance.shape[-1]
        lowest = xp.eye(d, dtype=covariance.dtype, device=device(covariance)) * self.floor
        if cholesky(covariance - lowest) is not None:
            return covariance
        stacked = xp.reshape(covariance, (-1, d, d))
        matrices = []
        for j in range(stacked.shape[0]):
            matrix = stacked[j, ...]
            below = cholesky(matrix - lowest) is None
            matrices.append(self._raise_matrix_to_floor(matrix, j) if below else matrix)
        return xp.reshape(xp.stack(matrices), covariance.shape)

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
        factor = cholesky(covariance)
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
        factor = xp.tril(self.unflatten(flat))
        factor = with_diagonal(factor, xp.exp(xp.linalg.diagonal(factor)))
        return xp.reshape(factor @ xp.matrix_transpose(factor), like.shape)

    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        """W' (W scatter W' - mass) by the factor L = W^-1: its lower triangle, times L on the
        diagonal.
        """
        xp = namespace(covariance)
        d = covariance.shape[-1]
        covariance = xp.reshape(covariance, (-1, d, d))
        mass = self.pool_moments(mass[:, None])
        n_kernels = covariance.shape[0]
        if d >= WIDE and n_kernels > 1:
            scatter = scatter + 0 * mass
            each = (slice(j, j + 1) for j in range(n_kernels))
            return xp.concat(
                [
                    self.covariance_pullback(covariance[j, ...], scatter[j, :], mass[j, 0])
                    for j in each
                ]
            )
        factor = xp.linalg.cholesky(covariance)
        diagonal = xp.asarray(xp.linalg.diagonal(factor), copy=True)
        inverse = inverse_of_lower(factor, overwrite=True)
        turned = xp.matrix_transpose(inverse)
        white = inverse @ self.unflatten(scatter + xp.zeros_like(self.flat(covariance))) @ turned
        white = with_diagonal(white, xp.linalg.diagonal(white) - mass)
        slope = xp.tril(turned @ white)
        return self._flat_lower(with_diagonal(slope, xp.linalg.diagonal(slope) * diagonal))

    def given(
        self, kernels: Kernels, known: list[int], rest: list[int], x: Array | None
    ) -> tuple[Gaussian, Kernels]:
        """The covariance swept on the known features has slopes and conditional covariances."""
        family, marginal = super().given(kernels, known, rest, x)
        if x is None:
            return family, marginal
        xp = namespace(kernels.mean)
        d = kernels.mean.shape[1]
        covariance = xp.reshape(kernels.covariance, (-1, d, d))
        n_known = len(known)
        order = xp.asarray([*known, *rest], dtype=xp.int64, device=device(covariance))
        steps = xp.asarray([n_known], device=device(covariance))
        swept, _ = sweep(covariance, order[None, :], steps, 1)  # (1, M, d, d)
        rows = self.submatrix(swept[0, ...], order)[:, n_known:, :]  # known features first
        deviation = x - take_columns(kernels.mean, known)
        mean = marginal.mean + (rows[:, :, :n_known] @ deviation[..., None])[..., 0]
        spread = xp.reshape(rows[:, :, n_known:], marginal.covariance.shape)
        return family, Kernels(mean, spread)

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
class Stack:
    """Rows of some patterns, as many of each, and what kernels make of them, in float64."""

    rows: Array
    """Positions of the rows in the block, pattern by pattern, (G n,)."""
    known: Array
    """(G, 1, d, 1)."""
    matrix: Array
    """The covariance swept on the known features, (G, M, d, d), or (G, 1, d, d) of tied kernels:
    minus the precision of the known cells, the slopes of the regression on them and the
    conditional covariance.
    """
    constant: Array
    """log |2 pi S_oo|, (G, M, 1)."""
    deviation: Array
    """x - mean in the known cells, zero in the others, (G, M, d, n)."""
    swept: Array
    """matrix @ deviation, (G, M, d, n): in the missing cells, what the regression adds to the mean."""

    @property
    def spread(self) -> Array:
        """Covariances of the missing cells given the known ones, (G, M, d, d)."""
        unknown = 1 - self.known
        return self.matrix * unknown * namespace(unknown).matrix_transpose(unknown)

    def of_rows(self, a: Array) -> Array:
        """The columns of `a` (M, rows of the block), (G, M, 1, n)."""
        xp = namespace(a)
        n_patterns = self.known.shape[0]
        part = xp.take(as_float64(a), self.rows, axis=1)
        part = xp.reshape(part, (a.shape[0], n_patterns, 1, -1))
        return xp.permute_dims(part, (1, 0, 2, 3))


def sweep(matrix: Array, features: Array, n_features: Array, sign: int) -> tuple[Array, Array]:
    """Matrices (M, d, d) swept (`sign` 1), or swept back (-1), on the first `n_features` (G,) of the
    `features` (G, d) of each pattern, (G, M, d, d); and by how much that raises log |S_oo|, (G, M).

    Patterns come in falling order of `n_features`.
    """
    xp = namespace(matrix)
    n_patterns, d = features.shape
    n_kernels = matrix.shape[0]
    # patterns and kernels along the last axis, where memory runs
    a = xp.permute_dims(matrix, (1, 2, 0))[:, :, None, :]
    a = xp.reshape(xp.broadcast_to(a, (d, d, n_patterns, n_kernels)), (d, d, -1))
    a = xp.asarray(a, copy=True)
    index = xp.repeat(xp.permute_dims(features, (1, 0)), n_kernels, axis=1)  # (d, G M)
    every = xp.arange(d, device=device(matrix))[:, None]
    log_size = xp.zeros_like(a[0, 0, :])
    for step in range(int(n_features[0])):
        # -1/p, sign a_ik/p and a_ij - a_ik a_kj / p, with p = a_kk, in one outer product
        active = slice(int(xp.count_nonzero(n_features > step)) * n_kernels)
        k = index[step : step + 1, active]
        part = a[:, :, active]
        row = xp.take_along_axis(part, k[None, ...], axis=0)[0, ...]
        pivot = xp.take_along_axis(row, k, axis=0)
        log_size[active] += xp.log(sign * pivot[0, :])
        at = xp.astype(every == k, matrix.dtype)
        row = row - sign * at
        part -= (row / pivot)[:, None, :] * row[None, :, :]
        for i in range(d):
            part[i, i, :] -= 2 * sign * at[i, :]
    flat = xp.reshape(xp.permute_dims(a, (2, 0, 1)), (-1,))  # copied: products want this order
    swept = xp.reshape(flat, (n_patterns, n_kernels, d, d))
    return swept, xp.reshape(log_size, (n_patterns, n_kernels))


class Patterns(Observed):
    r"""Full or tied kernels of a block whose rows are sorted by pattern.

    Little & Rubin, "Statistical analysis with missing data", 2nd edition, 2002, sections 7.4.2 (the
    sweep operator) and 11.2. With o the cells that are known and h those that are missing, kernel j
    expects

    .. math::

        \hat x_h = \mu_h + \Sigma_{ho} \Sigma_{oo}^{-1} (x_o - \mu_o), \qquad
        \text{cov}(x_h \mid x_o) = \Sigma_{hh} - \Sigma_{ho} \Sigma_{oo}^{-1} \Sigma_{oh}

    Slopes and covariances depend on the row through its pattern alone. Patterns of one row are
    taken together, others one after the other.
    """

    def __init__(
        self, kernel: Gaussian, natural_params: GaussianNaturalParams, block: Block
    ) -> None:
        assert block.missing is not None
        self.kernel = kernel
        self.block = block
        self.missing = block.missing
        xp = namespace(block.x)
        n, d = block.x.shape
        self.mean = as_float64(natural_params.kernels.mean)  # (M, d)
        covariance = as_float64(natural_params.kernels.covariance)
        self.covariance = xp.reshape(covariance, (-1, d, d))  # (M, d, d) or (1, d, d)
        # rounded to the type of the rows, it must stay positive definite
        if eps_of(block.x) > 1e-10:
            one = xp.eye(d, dtype=xp.float64, device=device(block.x))
            self.covariance = self.covariance * (1 + 4 * eps_of(block.x) * one)
        self.origin = as_float64(natural_params.moment_origin)
        known = xp.sum(self.missing.patterns, axis=1)
        self._begin = self.covariance
        self._log_size = xp.zeros_like(self.covariance[:, 0, 0])
        self._sign = 1
        self._n_features = known
        factor = cholesky(self.covariance) if float(xp.mean(known)) > d / 2 else None
        if factor is not None:
            root = inverse_of_lower(factor)
            precision = xp.matrix_transpose(root) @ root
            variance = xp.linalg.diagonal(self.covariance)
            # sweeping the precision back on the missing features takes fewer steps where these are
            # few; where features are nearly functions of each other it would lose digits
            if float(xp.max(variance * xp.linalg.diagonal(precision))) < MOST_INFLATION:
                self._sign = -1
                self._n_features = d - known
                self._begin = -precision
                self._log_size = log_determinant(factor)
        n_numbers = len(self.missing.spans) * self.covariance.shape[0] * d * d
        self._cached: list[Stack] | None = None
        if n_numbers + 2 * n * self.mean.shape[0] * d <= PATTERN_NUMBERS:
            self._cached = list(self._stacks())
        columns = []
        for stack in self._stacks():
            distance = -xp.sum(stack.deviation * stack.swept, axis=2)  # (G, M, n)
            columns.append((stack.rows, -0.5 * (distance + stack.constant)))
        self.log_density = self._in_order(columns)

    def _stacks(self) -> Iterator[Stack]:
        if self._cached is not None:
            yield from self._cached
            return
        xp = namespace(self.mean)
        spans = self.missing.spans
        order = to_numpy(xp.argsort(self._n_features, descending=True)).tolist()
        n_rows = [span.stop - span.start for span in spans]
        of_one_row = [g for g in order if n_rows[g] == 1]
        of_more_rows = [g for g in order if n_rows[g] > 1]
        at_once = max(1, SWEPT_AT_ONCE // math.prod(self.covariance.shape))
        for group, together in ((of_one_row, at_once), (of_more_rows, 1)):
            for start in range(0, len(group), at_once):
                swept_at_once = group[start : start + at_once]
                at = xp.asarray(swept_at_once, device=device(self.mean))
                known = xp.take(self.missing.patterns, at, axis=0)  # (G, d)
                features = xp.argsort(self._sign * known, axis=1, descending=True)
                n_features = xp.take(self._n_features, at, axis=0)
                matrix, log_size = sweep(self._begin, features, n_features, self._sign)
                constant = log_size + self._log_size + LOG_2_PI * xp.sum(known, axis=1)[:, None]
                for g in range(0, len(swept_at_once), together):
                    part = slice(g, min(g + together, len(swept_at_once)))
                    rows = [
                        i
                        for pattern in swept_at_once[part]
                        for i in range(spans[pattern].start, spans[pattern].stop)
                    ]
                    yield self._stack(rows, known[part, :], matrix[part, ...], constant[part, :])

    def _stack(self, rows: list[int], known: Array, matrix: Array, constant: Array) -> Stack:
        xp = namespace(known)
        n_patterns, d = known.shape
        at = xp.asarray(rows, device=device(known))
        x = as_float64(xp.take(self.block.x, at, axis=0))
        x = xp.permute_dims(xp.reshape(x, (n_patterns, 1, -1, d)), (0, 1, 3, 2))
        known = known[:, None, :, None]
        deviation = (x - self.mean[None, :, :, None]) * known
        return Stack(at, known, matrix, constant[..., None], deviation, matrix @ deviation)

    def moments(self, mass: Array, responsibility: Array) -> Moments:
        """Sums of the expected rows, and of what each pattern leaves uncertain."""
        xp = namespace(self.mean)
        n_kernels, d = self.mean.shape
        total = xp.zeros_like(self.mean[:, :1])  # (M, 1)
        first = xp.zeros_like(self.mean)
        second = first[:, :, None] * first[:, None, :]
        for stack in self._stacks():
            share = stack.of_rows(responsibility)
            # expected, from the mean
            deviation = xp.where(stack.known > 0, stack.deviation, stack.swept)
            deviation, weighted = (
                xp.reshape(xp.permute_dims(a, (1, 2, 0, 3)), (n_kernels, d, -1))
                for a in (deviation, deviation * share)
            )
            of_pattern = xp.permute_dims(xp.sum(share, axis=3), (1, 2, 0))  # (M, 1, G)
            spread = xp.reshape(stack.spread, (*stack.matrix.shape[:2], d * d))
            uncertain = of_pattern @ xp.permute_dims(spread, (1, 0, 2))  # (M, 1, d d)
            total += xp.sum(of_pattern, axis=2)
            first += xp.sum(weighted, axis=2)
            second += weighted @ xp.matrix_transpose(deviation)
            second += xp.reshape(uncertain, second.shape)
        shift = self.mean - self.origin
        cross = (first + 0.5 * total * shift)[:, :, None] * shift[:, None, :]
        second += cross + xp.matrix_transpose(cross)
        first += total * shift
        return Moments(mass, first, self.kernel.pool_moments(self.kernel.flat(second)))

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        xp = namespace(self.mean)
        one = xp.eye(self.mean.shape[1], dtype=self.mean.dtype, device=device(self.mean))
        columns = []
        for stack in self._stacks():
            each = self.mean[None, :, :, None] + stack.swept
            if noise is not None:
                # known cells have a variance of their own, so that there is a factor
                factor = xp.linalg.cholesky(
                    stack.spread + (stack.known + 1e-12 * (1 - stack.known)) * one
                )
                drawn = xp.permute_dims(stack.of_rows(noise.T), (0, 2, 1, 3))  # (G, 1, d, n)
                each = each + factor @ drawn
            expected = xp.sum(stack.of_rows(share) * each, axis=1) * (1 - stack.known[:, 0, ...])
            columns.append((stack.rows, expected))
        return self.block.x + self._in_order(columns).T

    def _in_order(self, columns: list[tuple[Array, Array]]) -> Array:
        """Columns (G, c, n) of the rows of each stack as one array of all rows, (c, rows of the
        block), in their order and type.
        """
        xp = namespace(self.mean)
        flat = [xp.reshape(xp.permute_dims(a, (1, 0, 2)), (a.shape[1], -1)) for _, a in columns]
        order = xp.argsort(xp.concat([rows for rows, _ in columns]))
        return match_array(xp.take(xp.concat(flat, axis=1), order, axis=1), like=self.block.x)
