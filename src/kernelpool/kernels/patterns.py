r"""Full Gaussians of rows with missing cells.

Little & Rubin, "Statistical analysis with missing data", 2nd edition, 2002, sections 7.4.2 (the
sweep operator) and 11.2.

With o the cells that are known and h those that are missing, kernel j expects

.. math::

    \hat x_h = \mu_h + \Sigma_{ho} \Sigma_{oo}^{-1} (x_o - \mu_o), \qquad
    \text{cov}(x_h \mid x_o) = \Sigma_{hh} - \Sigma_{ho} \Sigma_{oo}^{-1} \Sigma_{oh}

Both depend on the row through its pattern alone, and :math:`\hat x` is affine in :math:`x_o`. So
the rows of a pattern are two matrix products, as complete rows are, and what is left to do is
small: matrices of d x d for every pattern and kernel.

=================================  =============  =======================================================================
here                               shape          meaning
=================================  =============  =======================================================================
``swept``                          (G, M, d, d)   :math:`\Sigma` swept on the known features:
:math:`-\Sigma_{oo}^{-1}`,
                                                  :math:`\Sigma_{ho} \Sigma_{oo}^{-1}` and the conditional covariance
``known``, ``unknown``             (G, 1, d)      one where a pattern has a cell, and where it has
not
=================================  =============  =======================================================================

Tied kernels have one matrix a pattern, (G, 1, d, d).
"""

from collections.abc import Iterator

from ..arrays import Array, as_float64, device, empty, eps_of, match_array, namespace
from ..rows import Block
from ..sums import record
from .gaussian import LOG_2_PI, WIDE, Gaussian, GaussianNaturalParams, Moments
from .kernel import Observed

CHUNK = 1 << 17
"""Numbers in the matrices of the patterns that are swept at once: they should fit the caches."""

KEEP = 1 << 24
"""Numbers in the matrices of all patterns of a block that are kept from the E-step to the moments;
else they are made twice.
"""


@record
class Swept:
    """Some patterns and what kernels make of them, in float64."""

    spans: tuple[slice, ...]
    """Of the rows of each pattern in the block."""
    known: Array
    """(G, 1, d)."""
    matrix: Array
    """`swept`, (G, M, d, d)."""
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
    """Full or tied kernels of a block whose rows are sorted by pattern."""

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
