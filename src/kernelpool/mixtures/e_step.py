r"""The E-step of shared-kernel networks: responsibilities of one block of rows, kept only as sums.

Titsias & Likas 2001, equations (29) and (30).

.. math::

    h_{jk}(x) = \frac{\lambda_{jk}\, \pi_{jk}\, p(x \mid j)}{\sum_i \lambda_{ik}\, \pi_{ik}\, p(x \mid i)}

==================  ==================  =======  =====================================================================
paper               here                shape    meaning
==================  ==================  =======  =====================================================================
:math:`h_{jk}(x)`   ``responsibility``  (M, n)   share of kernel j in a row whose class is known, times its weight
==================  ==================  =======  =====================================================================

A row without a class has the sum over classes, weighted by their priors, in both places.
"""

import math
from functools import partial, reduce
from operator import add

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    can_fuse,
    clip,
    device,
    empty,
    fused_sums,
    match_array,
    matmul_into,
    namespace,
    safe_log,
    transpose_into,
)
from ..kernels import Kernel, KernelSums, NaturalParams, Parameters
from ..rows import Block, Rows
from ..softmax import responsibilities
from ..sums import Sums, record

FLOAT64_EPS = 2.0**-52

Factors = tuple[Array, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
"""Columns (c, n), and the two of them whose product each feature, and each indicator of a class,
is.
"""


@record
class UsableKernels:
    """The kernels that rows of one class may use."""

    weight: Array
    """Their part of one column of `EStepParams.table`, then of `NaturalParams.weight`, (m, 1 +
    P).
    """
    compact_index: Array
    """Where each kernel of the network stands among them, or m, (M,)."""
    index: Array
    """Which kernels of the network they are, (m,)."""

    def among_all(self, sums: Array) -> Array:
        """Sums of these kernels (..., m) as those of all kernels, (..., M), zero for the others."""
        xp = namespace(sums)
        padded = xp.concat([sums, xp.zeros_like(sums[:, :1])], axis=1)
        return xp.take(padded, self.compact_index, axis=1)


@record
class EStepParams:
    """The parameters as one E-step needs them."""

    natural_params: NaturalParams
    table: Array
    """offset + log(sharing * mixing), by class and, last, for rows without a class, (M, K + 1)."""
    weight: Array
    """`table`, then the natural parameters: what a row's indicators and features are multiplied
    with, (M, K + 1 + P).
    """
    allowed: Array
    """sharing * mixing, (M, K)."""
    class_posterior: Array
    """P(C_k|j), (M, K): how a row without a class counts towards each."""
    usable: tuple[UsableKernels, ...] | None
    """For each column of `table` the kernels that count there, unless all count everywhere."""
    in_float64: bool
    """Whether float32 rows are worked on in float64, since some kernel is too narrow for its place
    for float32.
    """


@record
class Totals(Sums):
    """What the E-step keeps of the rows."""

    log_likelihood: Array
    weight: Array | float
    moments: KernelSums
    """With mass by class and, last, of the rows without a class, (M, K + 1)."""
    by_class: tuple[KernelSums, ...] = ()
    """The moments of each class apart, for penalties that need them."""


def indicators(block: Block, n_classes: int) -> Array:
    """Whether each row is of class 0..K-1, or of none, (K + 1, n) or (K + 1, 1)."""
    return block.once(("indicators", n_classes), partial(_indicators, n_classes), n_classes + 1)


def _indicators(n_classes: int, block: Block) -> Array:
    assert block.y is not None
    xp = namespace(block.x)
    codes = xp.asarray([*range(n_classes), -1], dtype=block.y.dtype, device=device(block.x))
    return xp.astype(codes[:, None] == block.y[None, :], block.x.dtype)


def shares_of_classes(joint: Array, otherwise: Array | None = None) -> Array:
    """P(C_k|j), (M, K), of weights in that proportion; zero, or `otherwise`, for a kernel without
    any.
    """
    xp = namespace(joint)
    of_kernel = xp.sum(joint, axis=1)[:, None]
    share = joint / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
    return share if otherwise is None else xp.where(of_kernel > 0, share, otherwise)


class EStep:
    """The E-step for one kernel family; `by_class` keeps the moments of each class apart."""

    def __init__(self, kernel: Kernel, n_classes: int, by_class: bool) -> None:
        self.kernel = kernel
        self.n_classes = n_classes
        self.by_class = by_class

    def params(
        self, kernels: Parameters, allowed: Array, class_prior: Array, eps: float
    ) -> EStepParams:
        """What the E-step needs to know, worked out once a sweep; `allowed` is sharing * mixing."""
        xp = namespace(allowed)
        natural_params = self.kernel.natural_params(kernels, eps)
        in_float64 = False
        # guarded kernels are taken one at a time: many times slower than float64
        if eps > FLOAT64_EPS and natural_params.guarded:
            precise = self.kernel.natural_params(kernels, FLOAT64_EPS)
            in_float64 = len(precise.guarded) < len(natural_params.guarded)
            natural_params = precise if in_float64 else natural_params
        joint = allowed * class_prior
        by_column = xp.concat([allowed, xp.sum(joint, axis=1)[:, None]], axis=1)
        table = natural_params.offset[:, None] + clip(safe_log(by_column), LOG_ZERO, math.inf)
        weight = xp.concat([table, natural_params.weight], axis=1)
        usable = _usable(natural_params, table, by_column)
        posterior = shares_of_classes(joint)
        return EStepParams(natural_params, table, weight, allowed, posterior, usable, in_float64)

    def total(self, rows: Rows, params: EStepParams) -> Totals:
        """Of all rows."""
        if params.in_float64:  # bound to the parameters, which rows would round
            return rows.total(partial(self._in_float64, params))
        return rows.total(self, params)

    def _in_float64(self, params: EStepParams, block: Block) -> Totals:
        block = block.in_float64()
        return self(block, match_array(params, like=block.x))

    def __call__(self, block: Block, params: EStepParams) -> Totals:
        """Of one block, in one of four ways.

        =====================  ==================================================================
        way                    where
        =====================  ==================================================================
        `_with_missing`        rows have missing cells
        `_class_by_class`      rows lie class by class, and some class may not use all kernels
        `_fused`               the rows are float32 on an NVIDIA card
        `_together`            otherwise; where a kernel is guarded, or moments are needed by class
        =====================  ==================================================================
        """
        if block.missing is not None:
            return self._with_missing(block, params)
        is_plain = not (params.natural_params.guarded or self.by_class)
        if is_plain and block.classes is not None and params.usable is not None:
            return self._class_by_class(block, params, block.classes, params.usable)
        factors = self._factors(block, params) if is_plain else None
        if factors is not None:
            return self._fused(block, params, factors)
        return self._together(block, params)

    # -- four ways ---------------------------------------------------------------------------------

    def _together(self, block: Block, params: EStepParams) -> Totals:
        """All rows with all kernels."""
        n_columns = self.n_classes + 1
        n, d = block.x.shape
        phi = block.scratch("features", (n_columns + self.kernel.n_features(d), n))
        phi[:n_columns, :] = indicators(block, self.n_classes)
        self.kernel.write_features(phi[n_columns:, :], block)
        guarded = params.natural_params.guarded
        constant = params.table @ phi[:n_columns, :] if guarded else None

        def log_joint() -> Array:
            out = block.scratch("log_joint", (params.weight.shape[0], n))  # (M, n)
            matmul_into(out, params.weight, phi)
            self.kernel.correct(out, params.natural_params, block.x, constant)
            return out

        responsibility, log_evidence = responsibilities(log_joint, block.weight)
        sums = as_float64(self.kernel.sums(phi, block.x, responsibility))  # (K + 1 + P, M)
        by_class: tuple[KernelSums, ...] = ()
        if self.by_class:
            by_class = tuple(
                self._moments_of_class(block, params, phi, responsibility, k)
                for k in range(self.n_classes)
            )
        mass = sums[:n_columns, :].T
        return self._totals(
            block, params, mass, sums[n_columns:, :], responsibility, log_evidence, by_class
        )

    def _moments_of_class(
        self, block: Block, params: EStepParams, phi: Array, responsibility: Array, k: int
    ) -> KernelSums:
        """Moments of the rows of class k, those without a class by P(C_k|j)."""
        posterior = params.class_posterior[:, k : k + 1]
        if block.classes is None:
            parts = [(slice(None), phi[k, :] + posterior * phi[self.n_classes, :])]
        else:  # no other rows have a part in it
            spans = (block.classes.get(code, slice(0, 0)) for code in (k, -1))
            parts = list(zip(spans, (1.0, posterior), strict=True))
        moments = []
        for span, share in parts:
            x = block.x[span, :]
            in_class = responsibility[:, span] * share
            sums = as_float64(self.kernel.sums(phi[self.n_classes + 1 :, span], x, in_class))
            mass = sums[:1, :].T
            moments.append(self.kernel.moments(mass, sums, params.natural_params, x, in_class))
        return reduce(add, moments)

    def _class_by_class(
        self,
        block: Block,
        params: EStepParams,
        classes: dict[int, slice],
        usable: tuple[UsableKernels, ...],
    ) -> Totals:
        """Every class with the kernels that it may use alone."""
        xp = namespace(block.x)
        n, d = block.x.shape
        factors = self._factors(block, params)
        if factors is None:
            phi = block.scratch("features", (1 + self.kernel.n_features(d), n))
            phi[0, :] = 1
            self.kernel.write_features(phi[1:, :], block)
        else:
            phi, features, ((_, one), *_) = factors
            pairs = ((one, one), *features)
        sums = 0.0
        mass = [as_float64(xp.zeros_like(params.table[:, 0]))] * len(usable)
        log_evidence = empty((n,), block.x)
        for code, span in classes.items():
            column = code % len(usable)  # rows without a class come last
            kernels = usable[column]
            weight = None if block.weight is None else block.weight[span]
            if factors is None:
                x = block.x[span, :]
                log_joint = partial(self._log_joint_of_class, kernels, params, phi[:, span], x)
                responsibility, log_evidence[span] = responsibilities(log_joint, weight)
                of_class = as_float64(self.kernel.sums(phi[:, span], x, responsibility))
            else:
                of_class, log_evidence[span] = fused_sums(
                    phi[:, span], pairs, weight, kernels.weight
                )
            of_class = kernels.among_all(of_class)
            sums, mass[column] = sums + of_class[1:, :], of_class[0, :]
        total_mass = xp.stack(mass, axis=1)
        return self._totals(block, params, total_mass, sums, _row_weight(block), log_evidence)

    def _log_joint_of_class(
        self, kernels: UsableKernels, params: EStepParams, phi: Array, x: Array
    ) -> Array:
        log_joint = kernels.weight @ phi  # (m, n)
        self.kernel.correct(log_joint, params.natural_params, x, None, kernels.index)
        return log_joint

    def _with_missing(self, block: Block, params: EStepParams) -> Totals:
        """By the cells that are known, the others as each kernel expects them."""
        natural_params = params.natural_params
        observed = self.kernel.observe(natural_params, block)
        is_of = indicators(block, self.n_classes)  # (K + 1, n)
        share = (params.table - natural_params.offset[:, None]) @ is_of  # (M, n)
        responsibility, log_evidence = responsibilities(
            lambda: observed.log_density + share, block.weight
        )
        moments = observed.moments(as_float64(responsibility @ is_of.T), responsibility)
        by_class = []
        for k in range(self.n_classes if self.by_class else 0):
            posterior = params.class_posterior[:, k : k + 1]
            in_class = responsibility * (is_of[k, :] + posterior * is_of[-1, :])
            mass = as_float64(namespace(in_class).sum(in_class, axis=1))[:, None]
            by_class.append(observed.moments(mass, in_class))
        return _weighted(block, log_evidence, moments, tuple(by_class))

    def _fused(self, block: Block, params: EStepParams, factors: Factors) -> Totals:
        """By `fused_sums`, which makes features and responsibilities where they are multiplied."""
        columns, features, is_of = factors
        sums, log_evidence = fused_sums(columns, is_of + features, block.weight, params.weight)
        n_columns = self.n_classes + 1
        mass = sums[:n_columns, :].T
        return self._totals(
            block, params, mass, sums[n_columns:, :], _row_weight(block), log_evidence
        )

    def _factors(self, block: Block, params: EStepParams) -> Factors | None:
        """Of what features and indicators are products, where `fused_sums` takes them."""
        if not can_fuse(block.x, params.table.shape[0]):
            return None
        key = "factors", self.n_classes, self.kernel.name
        return block.once(key, self._make_factors, block.x.shape[1] + self.n_classes + 3)

    def _make_factors(self, block: Block) -> Factors | None:
        factors = self.kernel.factors(block)
        if factors is None:
            return None
        x, features = factors
        one, n = x.shape
        n_columns = self.n_classes + 1
        columns = empty((one + 1 + n_columns, n), x)
        transpose_into(columns[:one, :], x.T)
        columns[one, :] = 1
        columns[one + 1 :, :] = indicators(block, self.n_classes)
        return columns, features, tuple((one + 1 + k, one) for k in range(n_columns))

    def _totals(
        self,
        block: Block,
        params: EStepParams,
        mass: Array,
        sums: Array,
        responsibility: Array,
        log_evidence: Array,
        by_class: tuple[KernelSums, ...] = (),
    ) -> Totals:
        """Sums by kernel (P, M) and mass (M, K + 1) as totals."""
        natural_params = params.natural_params
        moments = self.kernel.moments(mass, sums, natural_params, block.x, responsibility)
        log_evidence = log_evidence + self.kernel.common(natural_params, block.x)
        return _weighted(block, log_evidence, moments, by_class)


def _row_weight(block: Block) -> Array:
    """What the responsibilities of each row sum to, (1, n)."""
    one = namespace(block.x).ones_like(block.x[:, 0])
    return (one if block.weight is None else block.weight)[None, :]


def _weighted(
    block: Block, log_evidence: Array, moments: KernelSums, by_class: tuple[KernelSums, ...]
) -> Totals:
    """The evidence (n,) summed over the rows, with their moments."""
    xp = namespace(block.x)
    if block.weight is None:
        total = xp.sum(log_evidence, dtype=xp.float64)
        return Totals(total, float(log_evidence.shape[0]), moments, by_class)
    total = as_float64(block.weight) @ as_float64(log_evidence)
    return Totals(total, xp.sum(block.weight, dtype=xp.float64), moments, by_class)


def _usable(
    natural_params: NaturalParams, table: Array, share: Array
) -> tuple[UsableKernels, ...] | None:
    """For every column of `table` the kernels with a `share` (M, K + 1) in it, or None if all have
    one in all.
    """
    xp = namespace(table)
    if bool(xp.all(share > 0)):
        return None
    usable = []
    for k in range(table.shape[1]):
        counts = share[:, k] > 0
        if not bool(xp.any(counts)):  # rows of a class without kernels weigh nothing
            counts = ~counts
        (index,) = xp.nonzero(counts)
        place = xp.cumulative_sum(xp.astype(counts, index.dtype)) - 1
        compact_index = xp.where(counts, place, index.shape[0])
        weight = xp.concat([table[:, k : k + 1], natural_params.weight], axis=1)
        usable.append(UsableKernels(xp.take(weight, index, axis=0), compact_index, index))
    return tuple(usable)
