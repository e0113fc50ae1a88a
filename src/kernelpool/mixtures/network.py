r"""Probabilistic RBF network with shared kernels.

Titsias & Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions
on Neural Networks 12(5), 2001, equations (2)-(5) and (27)-(37).

.. math:: p(x \mid C_k) = \sum_j \pi_{jk}\, p(x \mid j)

==================  ==================  =======  =====================================================================
paper               here                shape    meaning
==================  ==================  =======  =====================================================================
:math:`\pi_{jk}`    ``mixing``          (M, K)   weight of kernel j for class k; each column sums to one
:math:`\lambda`     ``sharing``         (M, K)   how far class k may use kernel j while training; 1 for its owner
:math:`T_k`         ``owner``           (M,)     the class that kernel j belongs to
:math:`P(C_k)`      ``class_prior``     (K,)     share of class k among all rows
:math:`h_{jk}(x)`   ``responsibility``  (M, n)   share of kernel j in a row whose class is known, times its weight
==================  ==================  =======  =====================================================================

Deviations from the paper: sharing may differ by kernel and class (its wish list). A row without a
label takes part with its class summed out, :math:`\sum_k P(C_k) p_\lambda(x \mid C_k)`; the class
priors stay those of the labeled rows, (10). A kernel that loses its rows keeps its place instead of
dividing by zero.
"""

import math
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    can_fuse,
    clip,
    device,
    empty,
    exp_within_range,
    fused_sums,
    log_weighted_sums,
    match_array,
    matmul_into,
    namespace,
    responsibilities,
    safe_log,
    shares_of,
    sums_within_range,
    transpose_into,
    without_overflow_warnings,
)
from ..errors import KernelpoolError
from ..kernels import Kernel, KernelSums, NaturalParams, Observed, Parameters
from ..penalties import NoPenalty, Penalty, Subkernels
from ..rows import Block, Rows
from ..sums import Sums, record

EMPTY = 1e-3
"""A kernel that accounts for less than this part of one average row has lost its rows."""

VANISHED = 1e-12
"""Below this part of one average row a mean of rows is no longer taken at all."""


FLOAT64_EPS = 2.0**-52

LOG_ABSENT = -700.0
"""Stands for log 0 among coordinates, where infinity would be no number."""


@record
class Params:
    """A trained network."""

    kernels: Parameters
    mixing: Array
    """(M, K)."""
    class_prior: Array
    """(K,)."""
    subkernels: tuple[Parameters, ...] | None = field(default=None, kw_only=True)
    """Those of the sweep before, under a penalty that needs subkernels."""


P = TypeVar("P", bound=Params)


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
        return xp.take(
            xp.concat([sums, xp.zeros_like(sums[:, :1])], axis=1), self.compact_index, axis=1
        )


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
    in_float64: bool = False
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


@record
class TotalsByClass(Totals):
    """The same, and the moments of each class apart, for penalties that ask for them."""

    by_class: tuple[KernelSums, ...]
    """Of each class."""


@record
class ConditionalParams:
    """The parameters as one step of the conditional likelihood needs them; sharing plays no
    part.
    """

    natural_params: NaturalParams
    weight: Array
    """`NaturalParams.offset`, then its weights, (M, 1 + P)."""
    mixing: Array
    """(M, K)."""
    log_mixing: Array
    """(M, K), finite."""
    class_prior: Array
    """(K,)."""
    evidence_weight: float
    """How much log p(x) counts: one in the conditional likelihood, none in the likelihood."""


@record
class ConditionalTotals(Sums):
    """What the gradient of sum log P(y|x) needs of the rows; those without a class take no part."""

    log_likelihood: Array
    """Sum of log p(x|y) - log p(x)."""
    responsibility: Array
    """Of the kernels in the rows of each class, (M, K): sum of r."""
    posterior: Array
    """Of the kernels with the class summed out, (M,): sum of q."""
    moments: KernelSums
    """With r - q in place of responsibility."""


@record
class WorstRows:
    """The row of each class that is modeled worst; of two such records the worse rows remain."""

    log_evidence: Array
    """(K,)."""
    x: Array
    """(K, d)."""

    def __add__(self, other: "WorstRows") -> "WorstRows":
        xp = namespace(self.x)
        keep = self.log_evidence <= other.log_evidence
        return WorstRows(
            xp.where(keep, self.log_evidence, other.log_evidence),
            xp.where(keep[:, None], self.x, other.x),
        )


def sharing_table(owner: Array, sharing: float | Array, n_classes: int) -> Array:
    """lambda for the classes that borrow a kernel, one for the class that owns it, (M, K); a full
    table stays as it is.
    """
    xp = namespace(owner)
    if getattr(sharing, "ndim", 0) == 2:
        return sharing
    classes = xp.arange(n_classes, dtype=owner.dtype, device=device(owner))
    own = xp.astype(owner[:, None] == classes[None, :], xp.float64)
    return own + (1 - own) * float(sharing)


def shares_of_classes(joint: Array, otherwise: Array | None = None) -> Array:
    """P(C_k|j), (M, K), of weights in that proportion; zero, or `otherwise`, for a kernel without
    any.
    """
    xp = namespace(joint)
    of_kernel = xp.sum(joint, axis=1)[:, None]
    share = joint / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
    return share if otherwise is None else xp.where(of_kernel > 0, share, otherwise)


class SharedKernel:
    """Networks of one kernel family and one table of sharing; the parameters are passed in and
    returned.
    """

    def __init__(self, kernel: Kernel, sharing: Array, penalty: Penalty | None = None) -> None:
        self.kernel = kernel
        self.sharing = sharing
        self.penalty = NoPenalty() if penalty is None else penalty

    # -- training ----------------------------------------------------------------------------------

    @property
    def takes_classes_apart(self) -> bool:
        """Whether a sweep has less to do over rows that are sorted by class."""
        return self.penalty.by_class or not bool(namespace(self.sharing).all(self.sharing > 0))

    def sweep(self, rows: Rows, params: P) -> tuple[P, float]:
        """One E-step and one M-step: better parameters, and the objective a row of the given
        ones.
        """
        return self.sweep_and_mass(rows, params)[:2]

    def sweep_and_mass(self, rows: Rows, params: P) -> tuple[P, float, Array]:
        """`sweep`, and the mass of each kernel in each class, (M, K)."""
        e_step_params = self.e_step_params(params, rows.eps)
        totals = self.totals(rows, e_step_params)
        subkernels = None
        if isinstance(totals, TotalsByClass):
            subkernels = self.subkernels(totals, params, e_step_params)
        log_prior = self.penalty.objective(self.kernel, params.kernels, subkernels)
        objective = (float(totals.log_likelihood) + log_prior) / float(totals.weight)
        mass = self.by_class(totals.moments.mass, e_step_params)
        return self.m_step(totals, params, e_step_params, subkernels, mass), objective, mass

    def e_step_params(self, params: Params, eps: float) -> EStepParams:
        """What the E-step needs to know, worked out once a sweep."""
        xp = namespace(params.mixing)
        natural_params = self.kernel.natural_params(params.kernels, eps)
        in_float64 = False
        if (
            eps > FLOAT64_EPS and natural_params.guarded
        ):  # one kernel at a time: many times slower than float64
            precise = self.kernel.natural_params(params.kernels, FLOAT64_EPS)
            in_float64 = len(precise.guarded) < len(natural_params.guarded)
            natural_params = precise if in_float64 else natural_params
        by_class = self.sharing * params.mixing  # (M, K)
        joint = by_class * params.class_prior
        by_column = xp.concat([by_class, xp.sum(joint, axis=1)[:, None]], axis=1)
        table = natural_params.offset[:, None] + clip(safe_log(by_column), LOG_ZERO, math.inf)
        weight = xp.concat([table, natural_params.weight], axis=1)
        usable = _usable(natural_params, table, by_column)
        posterior = shares_of_classes(joint)
        return EStepParams(natural_params, table, weight, by_class, posterior, usable, in_float64)

    def totals(self, rows: Rows, e_step_params: EStepParams) -> Totals:
        """`e_step` of all rows."""
        if e_step_params.in_float64:
            return rows.total(partial(self._e_step_in_float64, e_step_params))
        return rows.total(self.e_step, e_step_params)

    def _e_step_in_float64(self, e_step_params: EStepParams, block: Block) -> Totals:
        """The same of float32 rows, in float64; bound to the parameters, which rows would round."""
        block = block.in_float64()
        return self.e_step(block, match_array(e_step_params, like=block.x))

    def e_step(self, block: Block, e_step_params: EStepParams) -> Totals:
        """(29), (30): responsibilities of one block, kept only as sums."""
        if block.missing is not None:
            return self._expect_with_missing(block, e_step_params)
        if (
            block.classes is not None
            and e_step_params.usable is not None
            and not (e_step_params.natural_params.guarded or self.penalty.by_class)
        ):
            return self._expect_by_class(block, e_step_params, block.classes, e_step_params.usable)
        n_columns = e_step_params.table.shape[1]
        if self._can_fuse(block, e_step_params):
            columns, features, indicators = self._factors(block)
            sums, log_evidence = fused_sums(
                columns, indicators + features, block.weight, e_step_params.weight
            )
            mass = sums[:n_columns, :].T
            sums = sums[n_columns:, :]
            return self._totals(
                block, e_step_params, mass, sums, self._row_weight(block), log_evidence
            )
        phi = self._features(block)  # (K + 1 + P, n)
        responsibility, log_evidence = self._responsibility(block, e_step_params, phi)
        sums = as_float64(self.kernel.sums(phi, block.x, responsibility))  # (K + 1 + P, M)
        plain = self._totals(
            block,
            e_step_params,
            sums[:n_columns, :].T,
            sums[n_columns:, :],
            responsibility,
            log_evidence,
        )
        if not self.penalty.by_class:
            return plain
        by_class = tuple(
            self._moments_of(block, e_step_params, phi, responsibility, k)
            for k in range(n_columns - 1)
        )
        return TotalsByClass(plain.log_likelihood, plain.weight, plain.moments, by_class)

    def _expect_by_class(
        self,
        block: Block,
        e_step_params: EStepParams,
        classes: dict[int, slice],
        usable: tuple[UsableKernels, ...],
    ) -> Totals:
        """The same where rows of one class lie together: every class with the kernels that it may
        use alone.
        """
        xp, (n, d), n_columns = namespace(block.x), block.x.shape, len(usable)
        fused = self._can_fuse(block, e_step_params)
        if fused:
            phi, features, ((_, one), *_) = self._factors(block)
        else:
            phi = block.scratch("features", (1 + self.kernel.n_features(d), n))
            phi[0, :] = 1
            self.kernel.write_features(phi[1:, :], block)
        sums = 0.0
        mass = [as_float64(xp.zeros_like(e_step_params.table[:, 0]))] * n_columns
        log_evidence = empty((n,), block.x)
        for code, span in classes.items():
            k = code % n_columns
            part = usable[code % n_columns]
            weight = None if block.weight is None else block.weight[span]
            if fused:
                pairs = ((one, one), *features)
                found, log_evidence[span] = fused_sums(phi[:, span], pairs, weight, part.weight)
            else:
                x = block.x[span, :]
                of_class = phi[:, span]
                make = partial(self._log_joint_of_class, part, e_step_params, of_class, x)
                responsibility, log_evidence[span] = responsibilities(make, weight)
                found = as_float64(self.kernel.sums(of_class, x, responsibility))
            found = part.among_all(found)
            sums, mass[k] = sums + found[1:, :], found[0, :]
        return self._totals(
            block,
            e_step_params,
            xp.stack(mass, axis=1),
            sums,
            self._row_weight(block),
            log_evidence,
        )

    def _log_joint_of_class(
        self, part: UsableKernels, e_step_params: EStepParams, phi: Array, x: Array
    ) -> Array:
        log_joint = part.weight @ phi  # (m, n)
        self.kernel.correct(log_joint, e_step_params.natural_params, x, None, part.index)
        return log_joint

    def _expect_with_missing(self, block: Block, e_step_params: EStepParams) -> Totals:
        """The same where cells are missing: by the cells that are known, the others as each kernel
        expects them.
        """
        n_columns = e_step_params.table.shape[1]
        posterior = e_step_params.class_posterior
        observed = self.kernel.observe(e_step_params.natural_params, block)
        indicators = block.once((type(self), n_columns), self._indicators, n_columns)  # (K + 1, n)
        responsibility, log_evidence = self._observed_responsibility(block, e_step_params, observed)
        moments = observed.moments(as_float64(responsibility @ indicators.T), responsibility)
        totals = self._weighted(block, log_evidence, moments)
        if not self.penalty.by_class:
            return totals
        by_class = []
        for k in range(n_columns - 1):
            mine = responsibility * (
                indicators[k, :] + posterior[:, k : k + 1] * indicators[n_columns - 1, :]
            )
            by_class.append(
                observed.moments(as_float64(namespace(mine).sum(mine, axis=1))[:, None], mine)
            )
        return TotalsByClass(totals.log_likelihood, totals.weight, totals.moments, tuple(by_class))

    def _observed_responsibility(
        self, block: Block, e_step_params: EStepParams, observed: Observed
    ) -> tuple[Array, Array]:
        n_columns = e_step_params.table.shape[1]
        indicators = block.once((type(self), n_columns), self._indicators, n_columns)
        share = (
            e_step_params.table - e_step_params.natural_params.offset[:, None]
        ) @ indicators  # (M, n)
        return responsibilities(lambda: observed.log_density + share, block.weight)

    # -- the same by `fused_sums` ------------------------------------------------------------------

    def _can_fuse(self, block: Block, e_step_params: EStepParams) -> bool:
        plain = not (e_step_params.natural_params.guarded or self.penalty.by_class)
        return (
            plain
            and can_fuse(block.x, e_step_params.table.shape[0])
            and self._factors(block) is not None
        )

    def _factors(self, block: Block) -> Any:
        """Columns (c, n) of which features and indicators are products, and which two each feature
        and indicator is of.
        """
        width = block.x.shape[1] + self.sharing.shape[1] + 3
        return block.once(
            ("factors", type(self), self.sharing.shape[1], self.kernel.name),
            self._make_factors,
            width,
        )

    def _make_factors(self, block: Block) -> Any:
        found = self.kernel.factors(block)
        n_columns = self.sharing.shape[1] + 1
        if found is None:
            return None
        given, features = found
        one = given.shape[0]
        columns = empty((one + 1 + n_columns, given.shape[1]), given)
        transpose_into(columns[:one, :], given.T)
        columns[one, :], columns[one + 1 :, :] = 1, self._indicators(block)
        return columns, features, tuple((one + 1 + k, one) for k in range(n_columns))

    def _row_weight(self, block: Block) -> Array:
        """What the responsibilities of each row sum to, (1, n)."""
        one = namespace(block.x).ones_like(block.x[:, 0])
        return (one if block.weight is None else block.weight)[None, :]

    def _totals(
        self,
        block: Block,
        e_step_params: EStepParams,
        mass: Array,
        sums: Array,
        responsibility: Array,
        log_evidence: Array,
    ) -> Totals:
        """Sums by kernel (P, M) and mass (M, K + 1) as totals."""
        moments = self.kernel.moments(
            mass, sums, e_step_params.natural_params, block.x, responsibility
        )
        return self._weighted(
            block, log_evidence + self.kernel.common(e_step_params.natural_params, block.x), moments
        )

    def _weighted(self, block: Block, log_evidence: Array, moments: KernelSums) -> Totals:
        """The evidence (n,) summed over the rows, with their moments."""
        xp = namespace(block.x)
        if block.weight is None:
            return Totals(
                xp.sum(log_evidence, dtype=xp.float64), float(log_evidence.shape[0]), moments
            )
        total = as_float64(block.weight) @ as_float64(log_evidence)
        return Totals(total, xp.sum(block.weight, dtype=xp.float64), moments)

    def _moments_of(
        self, block: Block, e_step_params: EStepParams, phi: Array, responsibility: Array, k: int
    ) -> KernelSums:
        """Moments of the rows of class k, those without a class by P(C_k|j)."""
        n_columns = e_step_params.table.shape[1]
        posterior = e_step_params.class_posterior[:, k : k + 1]
        if block.classes is None:
            parts = [(slice(None), phi[k, :] + posterior * phi[n_columns - 1, :])]
        else:  # no other rows have a part in it
            spans = (block.classes.get(code, slice(0, 0)) for code in (k, -1))
            parts = list(zip(spans, (1.0, posterior), strict=True))
        found = []
        for span, share in parts:
            x = block.x[span, :]
            mine = responsibility[:, span] * share
            sums = as_float64(self.kernel.sums(phi[n_columns:, span], x, mine))
            mass = sums[:1, :].T
            found.append(self.kernel.moments(mass, sums, e_step_params.natural_params, x, mine))
        return reduce(add, found)

    def m_step(
        self,
        totals: Totals,
        params: P,
        e_step_params: EStepParams,
        subkernels: Subkernels | None,
        mass: Array,
    ) -> P:
        """(35)-(37), or their counterparts under the penalty."""
        xp = namespace(params.mixing)
        moments = replace(totals.moments, mass=mass)
        moment_origin = match_array(e_step_params.natural_params.moment_origin, like=mass)
        vanished = xp.sum(mass, axis=1) <= VANISHED * totals.weight / mass.shape[0]
        if bool(xp.any(vanished)):
            moments = self.kernel.with_pseudocounts(
                moments, moment_origin, vanished, params.kernels, VANISHED
            )
        prior = self.penalty.prior_statistics(self.kernel, moments, moment_origin, subkernels)
        kernels = self.kernel.estimate(moments, moment_origin, prior)
        mixing = self.penalty.mixing(self.kernel, mass, params.mixing, kernels, subkernels)
        previous = None if subkernels is None else subkernels.kernels
        return replace(params, kernels=kernels, mixing=mixing, subkernels=previous)

    def subkernels(
        self, totals: "TotalsByClass", params: Params, e_step_params: EStepParams
    ) -> Subkernels:
        """(11), (12), (15): each kernel as each class alone sees it."""
        mass = self.by_class(totals.moments.mass, e_step_params)
        by_class = []
        moment_origin = match_array(e_step_params.natural_params.moment_origin, like=mass)
        for k, moments in enumerate(totals.by_class):
            absent = mass[:, k] <= VANISHED * totals.weight / mass.shape[0]
            moments = replace(moments, mass=mass[:, k : k + 1])
            moments = self.kernel.with_pseudocounts(
                moments, moment_origin, absent, params.kernels, VANISHED
            )
            by_class.append(self.kernel.estimate(moments, moment_origin))
        class_posterior = shares_of_classes(params.mixing * params.class_prior)
        return Subkernels(class_posterior, tuple(by_class), params.kernels, params.subkernels)

    def by_class(self, mass: Array, e_step_params: EStepParams) -> Array:
        """Mass by class, (M, K): that of the rows without a class is dealt out by P(C_k | j)."""
        xp = namespace(mass)
        # exp() was kept off denormals: what a class may not use is exactly zero again here
        labeled = xp.where(
            e_step_params.allowed > 0, mass[:, :-1], xp.zeros_like(e_step_params.allowed)
        )
        return labeled + mass[:, -1:] * e_step_params.class_posterior

    def _features(self, block: Block) -> Array:
        """Indicators of class 0..K-1 and of no class, then phi(x), (K + 1 + P, n)."""
        (n, d), n_columns = block.x.shape, self.sharing.shape[1] + 1
        phi = block.scratch("features", (n_columns + self.kernel.n_features(d), n))
        phi[:n_columns, :] = block.once((type(self), n_columns), self._indicators, n_columns)
        self.kernel.write_features(phi[n_columns:, :], block)
        return phi

    def _indicators(self, block: Block) -> Array:
        """(K + 1, n) or (K + 1, 1)."""
        xp = namespace(block.x)
        home = device(block.x)
        codes = xp.asarray([*range(self.sharing.shape[1]), -1], dtype=block.y.dtype, device=home)  # type: ignore[union-attr]
        return xp.astype(codes[:, None] == block.y[None, :], block.x.dtype)  # type: ignore[index]

    def _responsibility(
        self, block: Block, e_step_params: EStepParams, phi: Array
    ) -> tuple[Array, Array]:
        return responsibilities(lambda: self._log_joint(block, e_step_params, phi), block.weight)

    def _log_joint(self, block: Block, e_step_params: EStepParams, phi: Array) -> Array:
        log_joint = block.scratch(
            "log_joint", (e_step_params.weight.shape[0], phi.shape[1])
        )  # (M, n)
        matmul_into(log_joint, e_step_params.weight, phi)
        natural_params = e_step_params.natural_params
        n_columns = e_step_params.table.shape[1]
        constant = e_step_params.table @ phi[:n_columns, :] if natural_params.guarded else None
        self.kernel.correct(log_joint, natural_params, block.x, constant)
        return log_joint

    # -- the conditional likelihood ----------------------------------------------------------------

    def gradient(
        self, rows: Rows, params: Params, generative_weight: float = 0.0
    ) -> tuple[Array, float]:
        r"""Gradient by `to_vector` of the mean of log P(y|x) over the rows with a class, and that
        mean.

        With :math:`r_{jn} = P(j \mid x_n, y_n)` and :math:`q_{jn} = P(j \mid x_n)`, the class
        summed out, the gradient by the natural parameters is :math:`\sum_n (r_{jn} - q_{jn})
        \phi(x_n)`: the two products of a sweep, with signed responsibilities. Sharing plays no
        part, as in (2).

        A `generative_weight` w makes it a hybrid of both objectives,
        :math:`(1 - w) \log P(y \mid x) + w \log p(x, y)`, whose responsibilities are :math:`r - (1 - w) q`.
        """
        xp = namespace(params.mixing)
        mixing = params.mixing
        natural_params = self.kernel.natural_params(params.kernels, rows.eps)
        weight = xp.concat([natural_params.offset[:, None], natural_params.weight], axis=1)
        log_mixing = clip(safe_log(mixing), LOG_ZERO, math.inf)
        given = ConditionalParams(
            natural_params, weight, mixing, log_mixing, params.class_prior, 1 - generative_weight
        )
        totals = match_array(rows.total(self.conditional_step, given), like=mixing)
        of_class = xp.sum(totals.responsibility, axis=0)  # weight of the rows of each class
        n_rows = float(xp.sum(of_class))
        if not n_rows > 0:
            raise KernelpoolError(
                "The conditional likelihood needs rows with a class; got none, or none with any "
                "weight."
            )
        class_posterior = shares_of_classes(mixing * params.class_prior)
        # by log(pi_jk P(C_k))
        signed = totals.responsibility - class_posterior * totals.posterior[:, None]
        by_prior = xp.sum(signed, axis=0)
        moment_origin = match_array(natural_params.moment_origin, like=mixing)
        by_kernels = self.kernel.pullback(params.kernels, totals.moments, moment_origin)
        by_mixing = xp.reshape(signed - mixing * by_prior, (-1,))
        by_prior = by_prior - params.class_prior * xp.sum(by_prior)
        known = of_class * xp.where(
            of_class > 0, safe_log(params.class_prior), xp.zeros_like(of_class)
        )
        objective = (float(totals.log_likelihood) + float(xp.sum(known))) / n_rows
        return xp.concat([by_kernels, by_mixing, by_prior]) / n_rows, objective

    def conditional_step(self, block: Block, given: ConditionalParams) -> ConditionalTotals:
        """r - q of one block, kept only as sums."""
        xp, (n, d), n_classes = namespace(block.x), block.x.shape, given.mixing.shape[1]
        observed = (
            None if block.missing is None else self.kernel.observe(given.natural_params, block)
        )
        if observed is None:
            phi = block.scratch("features", (1 + self.kernel.n_features(d), n))
            phi[0, :] = 1
            self.kernel.write_features(phi[1:, :], block)
        indicators = block.once((type(self), n_classes + 1), self._indicators, n_classes + 1)
        weight = xp.sum(indicators[:n_classes, :], axis=0)  # one for the rows with a class
        weight = weight if block.weight is None else weight * block.weight

        def scores() -> Array:
            """log p(x|j) but for what is common to all kernels, (M, n)."""
            if observed is not None:
                return xp.asarray(observed.log_density, copy=True)
            out = block.scratch("log_joint", (given.weight.shape[0], n))
            matmul_into(out, given.weight, phi)
            self.kernel.correct(out, given.natural_params, block.x, given.weight[:, 0])
            return out

        signed, responsibility, posterior, log_ratio = self._signed(
            block, given, scores, indicators[:n_classes, :], weight
        )
        if observed is not None:
            moments = observed.moments(as_float64(xp.sum(signed, axis=1))[:, None], signed)
        else:
            sums = as_float64(self.kernel.sums(phi, block.x, signed))  # (1 + P, M)
            moments = self.kernel.moments(
                sums[:1, :].T, sums[1:, :], given.natural_params, block.x, signed
            )
            if given.evidence_weight != 1:  # what is common to all kernels does not cancel
                log_ratio = log_ratio + (1 - given.evidence_weight) * self.kernel.common(
                    given.natural_params, block.x
                )
        log_likelihood = as_float64(weight) @ as_float64(log_ratio)
        return ConditionalTotals(
            log_likelihood, as_float64(responsibility), as_float64(posterior), moments
        )

    def _signed(
        self,
        block: Block,
        given: ConditionalParams,
        make_scores: Callable[[], Array],
        of_class: Array,
        weight: Array,
    ) -> tuple[Array, Array, Array, Array]:
        """weight * (r - q), (M, n); the sums of weight * r by class, (M, K), and of weight * q,
        (M,); log p(x|y) / p(x), (n,).

        q and log p(x) count by `evidence_weight`. Everything is linear in the densities e:
        r - q = e * ([pi, -pi P] @ [1(y = k) / p(x|y); 1 / p(x)]), one small product.
        """
        xp = namespace(block.x)
        mixing = given.mixing
        mixed = mixing @ given.class_prior  # (M,)
        density = exp_within_range(make_scores())
        if density is not None:
            with without_overflow_warnings():
                by_class = mixing.T @ density  # p(x|C_k), (K, n)
                own = xp.sum(of_class * by_class, axis=0)
                own = xp.where(weight > 0, own, xp.ones_like(own))
                evidence = given.class_prior @ by_class
            if sums_within_range(xp.stack([own, evidence])):
                ratio = xp.concat(
                    [
                        of_class * (weight / own),
                        given.evidence_weight * (weight / evidence)[None, :],
                    ]
                )  # (K + 1, n)
                shares = density @ ratio.T  # (M, K + 1)
                factor = block.scratch("factor", density.shape)
                matmul_into(factor, xp.concat([mixing, -mixed[:, None]], axis=1), ratio)
                density *= factor
                log_ratio = xp.log(own) - given.evidence_weight * xp.log(evidence)
                return density, mixing * shares[:, :-1], mixed * shares[:, -1], log_ratio
        scores = make_scores()
        log_own = given.log_mixing @ of_class
        log_mixed = clip(safe_log(mixed), LOG_ZERO, math.inf)[:, None]
        own, log_evidence_own = responsibilities(lambda: scores + log_own, weight)
        summed_out, log_evidence = responsibilities(lambda: scores + log_mixed, weight)
        shares = xp.where(
            mixing > 0, own @ of_class.T, xp.zeros_like(mixing)
        )  # exp() was kept off denormals
        summed_out *= given.evidence_weight
        log_ratio = log_evidence_own - given.evidence_weight * log_evidence
        return own - summed_out, shares, xp.sum(summed_out, axis=1), log_ratio

    def to_vector(self, params: Params) -> Array:
        """The parameters in the coordinates of `gradient`: the family's, log(mixing) and
        log(class_prior).
        """
        xp = namespace(params.mixing)
        logs = [
            xp.reshape(clip(safe_log(a), LOG_ABSENT, math.inf), (-1,))
            for a in (params.mixing, params.class_prior)
        ]
        return xp.concat([self.kernel.coordinates(params.kernels), *logs])

    def from_vector(self, vector: Array, like: P) -> P:
        """The network at `vector`, in the shapes of `like`; mixing weights that are zero there stay
        zero.
        """
        xp, (n_kernels, n_classes) = namespace(vector), like.mixing.shape
        n_logs = (n_kernels + 1) * n_classes
        log_mixing = xp.reshape(vector[-n_logs:-n_classes], like.mixing.shape)
        mixing, class_prior = (
            xp.where(before > 0, xp.exp(logs - xp.max(logs, axis=0)), xp.zeros_like(before))
            for logs, before in ((log_mixing, like.mixing), (vector[-n_classes:], like.class_prior))
        )
        return replace(
            like,
            kernels=self.kernel.at(vector[:-n_logs], like.kernels),
            mixing=mixing / xp.sum(mixing, axis=0),
            class_prior=class_prior / xp.sum(class_prior),
        )

    # -- coordinates in which steps may be extrapolated --------------------------------------------

    def coordinates(self, params: Params) -> Array:
        """The parameters as one vector; every vector is some network. Square roots keep mixing
        weights positive.
        """
        xp = namespace(params.mixing)
        return xp.concat(
            [self.kernel.coordinates(params.kernels), xp.reshape(params.mixing**0.5, (-1,))]
        )

    def at(self, coordinates: Array, like: P) -> P:
        """The network at `coordinates`, in the shapes of `like`."""
        xp = namespace(coordinates)
        n_mixing = like.mixing.shape[0] * like.mixing.shape[1]
        mixing = xp.reshape(coordinates[-n_mixing:], like.mixing.shape) ** 2
        kernels = self.kernel.at(coordinates[:-n_mixing], like.kernels)
        return replace(like, kernels=kernels, mixing=mixing / xp.sum(mixing, axis=0))

    # -- kernels that have lost their rows ---------------------------------------------------------

    def empty_kernels(self, params: Params, class_weight: Array, row_weight: float) -> list[int]:
        """Kernels that account for next to none of the rows; `class_weight` (K,) and `row_weight`
        tell how much there is.
        """
        mass = params.mixing @ class_weight
        return [j for j, is_empty in enumerate(mass < EMPTY * row_weight) if bool(is_empty)]

    def moved(
        self, rows: Rows, params: P, empty: list[int], owner: Array, class_weight: Array
    ) -> P:
        """The same network with empty kernels, one a class, moved to the worst modeled row of the
        class that owns them.

        A moved kernel starts with the weight of one row and the mean covariance of all kernels, so
        that the rows it takes no part in lose almost nothing.
        """
        xp = namespace(params.mixing)
        natural_params = self.kernel.natural_params(params.kernels, rows.eps)
        found = rows.total(self.worst_rows, natural_params, self.sharing * params.mixing)
        worst_rows = match_array(found, like=params.mixing)
        to = {}
        mixing = xp.asarray(params.mixing, copy=True)
        for k, j in moves(empty, owner).items():
            share = 1 / (1 + float(class_weight[k]))
            to[j] = worst_rows.x[k, :]
            mixing[j, k] = 0
            others = float(xp.sum(mixing[:, k]))
            # a light class may have no other kernel, or none that can be divided by
            alone = others < 1e-290
            mixing[:, k] = mixing[:, k] * (0.0 if alone else (1 - share) / others)
            mixing[j, k] = 1.0 if alone else share
        return replace(params, kernels=self.kernel.move(params.kernels, to), mixing=mixing)

    def without(self, params: Params, dropped: list[int]) -> Params:
        """The network less some kernels, its mixing weights made to sum to one again."""
        xp = namespace(params.mixing)
        home = device(params.mixing)
        keep = [j for j in range(params.mixing.shape[0]) if j not in dropped]
        index = xp.asarray(keep, dtype=xp.int64, device=home)
        mixing = xp.take(params.mixing, index, axis=0)
        kernels = self.kernel.take(params.kernels, index)
        return Params(kernels, mixing / xp.sum(mixing, axis=0), params.class_prior)

    def worst_rows(self, block: Block, natural_params: NaturalParams, allowed: Array) -> WorstRows:
        """Of each class, the row of this block with the lowest log sum_j allowed_jk p(x|j)."""
        xp = namespace(block.x)
        log_density = self.log_density(block, natural_params, allowed).T
        counts = self._indicators(block)[:-1, :] > 0  # (K, n)
        if block.weight is not None:
            counts = counts & (block.weight > 0)
        by_class = xp.where(counts, log_density, xp.inf * xp.ones_like(log_density))
        worst = xp.argmin(by_class, axis=1)
        return WorstRows(xp.min(by_class, axis=1), xp.take(block.x, worst, axis=0))

    # -- prediction --------------------------------------------------------------------------------

    def log_density(self, block: Block, natural_params: NaturalParams, mixing: Array) -> Array:
        """(2): log p(x|C_k), (n, K), of the cells that are known; sharing plays no part."""
        return log_weighted_sums(self.by_kernel(block, natural_params), mixing).T

    def by_kernel(self, block: Block, natural_params: NaturalParams) -> Array:
        """log p(x|j) of the cells that are known, (M, n)."""
        if block.missing is None:
            return self.kernel.log_density(natural_params, block.x)
        return self.kernel.observe(natural_params, block).log_density

    def kernel_posterior(
        self, block: Block, natural_params: NaturalParams, mixing: Array, class_prior: Array
    ) -> Array:
        """P(j|x), the class summed out, (n, M)."""
        log_joint = self.by_kernel(block, natural_params) + safe_log(mixing @ class_prior)[:, None]
        return shares_of(log_joint, axis=0).T

    def impute(
        self,
        block: Block,
        natural_params: NaturalParams,
        log_share: Array,
        pick: Array | None,
        noise: Array | None,
    ) -> Array:
        """Rows with their missing cells imputed, (n, d): as expected, or drawn.

        `log_share` (M, n) or (M, 1) is how likely each kernel is before the row is seen. Where
        cells are drawn, `pick` (n,), uniform in (0, 1), chooses the kernel of each row and `noise`
        (n, d), standard normal, the cells.
        """
        if block.missing is None:
            return block.x
        xp = namespace(block.x)
        observed = self.kernel.observe(natural_params, block)
        joint = observed.log_density + log_share
        share = shares_of(joint, axis=0)
        if pick is not None:
            below = xp.cumulative_sum(share, axis=0)
            last = xp.astype(below >= xp.minimum(pick, below[-1, :]), xp.int64)
            chosen = xp.argmax(last, axis=0)
            codes = xp.arange(share.shape[0], dtype=chosen.dtype, device=device(chosen))
            share = xp.astype(codes[:, None] == chosen[None, :], block.x.dtype)
        return observed.fill(share, noise)


def moves(empty: list[int], owner: Array) -> dict[int, int]:
    """Which of the empty kernels is moved to each class: one of those that the class owns."""
    return {int(owner[j]): j for j in empty}


def _usable(
    natural_params: NaturalParams, table: Array, share: Array
) -> tuple[UsableKernels, ...] | None:
    """For every column of `table` the kernels with a `share` (M, K + 1) in it, or None if all have
    one in all.
    """
    xp = namespace(table)
    if bool(xp.all(share > 0)):
        return None
    found = []
    for k in range(table.shape[1]):
        counts = share[:, k] > 0
        counts = (
            counts if bool(xp.any(counts)) else ~counts
        )  # rows of a class without kernels weigh nothing
        (index,) = xp.nonzero(counts)
        compact_index = xp.where(
            counts, xp.cumulative_sum(xp.astype(counts, index.dtype)) - 1, index.shape[0]
        )
        weight = xp.concat([table[:, k : k + 1], natural_params.weight], axis=1)
        found.append(UsableKernels(xp.take(weight, index, axis=0), compact_index, index))
    return tuple(found)
