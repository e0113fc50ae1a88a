r"""Probabilistic RBF network with shared kernels.

Titsias & Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions on Neural Networks
12(5), 2001, equations (2)-(5) and (27)-(37).

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

Deviations from the paper: sharing may differ by kernel and class (its wish list). A row without a label takes part with
its class summed out, :math:`\sum_k P(C_k) p_\lambda(x \mid C_k)`; the class priors stay those of the labeled rows, (10).
A kernel that loses its rows keeps its place instead of dividing by zero.
"""

import math
from dataclasses import field, replace

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    clip,
    device,
    empty,
    log_weighted_sums,
    logsumexp,
    match_array,
    namespace,
    responsibilities,
    safe_log,
    transpose_into,
)
from ..kernels import Gaussian, Kernels, Moments, NaturalParams
from ..penalties import NoPenalty, Penalty, Subkernels
from ..products import linear_scores
from ..rows import Block, Rows
from ..sums import Sums, record

STARVING = 1e-3
"""A kernel that accounts for less than this part of one average row has lost its rows."""

VANISHED = 1e-12
"""Below this part of one average row a mean of rows is no longer taken at all."""


@record
class Params:
    """A trained network."""

    kernels: Kernels
    mixing: Array
    """(M, K)."""
    class_prior: Array
    """(K,)."""
    subkernels: tuple[Kernels, ...] | None = field(default=None, kw_only=True)
    """What each class saw in the kernels of the sweep before, where the penalty `remembers` it."""


@record
class UsableKernels:
    """The kernels that rows of one class may use."""

    weight: Array
    """Their part of one column of `EStepParams.table`, then of `NaturalParams.weight`, (m, 1 + P)."""
    compact_index: Array
    """Where each kernel of the network stands among them, or m, (M,)."""


@record
class EStepParams:
    """The parameters as one E-step needs them."""

    natural_params: NaturalParams
    table: Array
    """offset + log(sharing * mixing), by class and, last, for rows without a class, (M, K + 1)."""
    weight: Array
    """`table`, then the natural parameters: what a row's indicators and features are multiplied with, (M, K + 1 + P)."""
    allowed: Array
    """sharing * mixing, (M, K)."""
    class_posterior: Array
    """P(C_k|j), (M, K): how a row without a class counts towards each."""
    usable: tuple[UsableKernels, ...] | None
    """For each column of `table` the kernels that count there, unless all count everywhere."""


@record
class Totals(Sums):
    """What the E-step keeps of the rows."""

    log_likelihood: Array
    weight: Array
    moments: Moments
    """With mass by class and, last, of the rows without a class, (M, K + 1)."""


@record
class TotalsByClass(Totals):
    """The same, and the moments of each class apart, for penalties that ask for them."""

    by_class: tuple[Moments, ...]
    """Of each class."""


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
        return WorstRows(xp.where(keep, self.log_evidence, other.log_evidence), xp.where(keep[:, None], self.x, other.x))


def sharing_table(owner: Array, sharing: float | Array, n_classes: int) -> Array:
    """lambda for the classes that borrow a kernel, one for the class that owns it, (M, K); a full table stays as it is."""
    xp = namespace(owner)
    if getattr(sharing, "ndim", 0) == 2:
        return sharing
    classes = xp.arange(n_classes, dtype=owner.dtype, device=device(owner))
    own = xp.astype(owner[:, None] == classes[None, :], xp.float64)
    return own + (1 - own) * float(sharing)


class SharedKernel:
    """Networks of one kernel family and one table of sharing; the parameters are passed in and returned."""

    def __init__(self, kernel: Gaussian, sharing: Array, penalty: Penalty | None = None) -> None:
        self.kernel, self.sharing = kernel, sharing
        self.penalty = NoPenalty() if penalty is None else penalty

    # -- training -------------------------------------------------------------------------------------------------

    @property
    def takes_classes_apart(self) -> bool:
        """Whether a sweep has less to do over rows that are sorted by class."""
        return self.penalty.by_class or not bool(namespace(self.sharing).all(self.sharing > 0))

    def sweep(self, rows: Rows, params: Params) -> tuple[Params, float]:
        """One E-step and one M-step: better parameters, and the objective a row of the given ones."""
        e_step_params = self.e_step_params(params, rows.eps)
        totals = rows.total(self.e_step, e_step_params)
        subkernels = self.subkernels(totals, params, e_step_params) if isinstance(totals, TotalsByClass) else None
        belief = self.penalty.objective(self.kernel, params.kernels, subkernels)
        objective = (float(totals.log_likelihood) + belief) / float(totals.weight)
        return self.m_step(totals, params, e_step_params, subkernels), objective

    def e_step_params(self, params: Params, eps: float) -> EStepParams:
        """What the E-step needs to know, worked out once a sweep."""
        xp = namespace(params.mixing)
        natural_params = self.kernel.natural_params(params.kernels, eps)
        by_class = self.sharing * params.mixing  # (M, K)
        joint = by_class * params.class_prior
        of_kernel = xp.sum(joint, axis=1)[:, None]
        by_column = xp.concat([by_class, of_kernel], axis=1)
        table = natural_params.offset[:, None] + clip(safe_log(by_column), LOG_ZERO, math.inf)
        weight = xp.concat([table, natural_params.weight], axis=1)
        class_posterior = joint / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
        return EStepParams(natural_params, table, weight, by_class, class_posterior, _usable(natural_params, table, by_column))

    def e_step(self, block: Block, e_step_params: EStepParams) -> Totals:
        """(29), (30): responsibilities of one block, kept only as sums."""
        if (
            block.classes is not None
            and e_step_params.usable is not None
            and not (e_step_params.natural_params.guarded or self.penalty.by_class)
        ):
            return self._expect_by_class(block, e_step_params, block.classes, e_step_params.usable)
        n_columns = e_step_params.table.shape[1]
        phi = self._features(block)  # (K + 1 + P, n)
        responsibility, log_evidence = self._responsibility(block, e_step_params, phi)
        sums = as_float64(self.kernel.sums(phi, block.x, responsibility))  # (K + 1 + P, M)
        plain = self._totals(block, e_step_params, sums[:n_columns, :].T, sums[n_columns:, :], responsibility, log_evidence)
        if not self.penalty.by_class:
            return plain
        by_class = tuple(self._moments_of(block, e_step_params, phi, responsibility, k) for k in range(n_columns - 1))
        return TotalsByClass(plain.log_likelihood, plain.weight, plain.moments, by_class)

    def _expect_by_class(
        self, block: Block, e_step_params: EStepParams, classes: dict[int, slice], usable: tuple[UsableKernels, ...]
    ) -> Totals:
        """The same where rows of one class lie together: every class is multiplied with the kernels that it may use alone."""
        xp, (n, d), n_columns = namespace(block.x), block.x.shape, len(usable)
        mine = [(code % n_columns, span, usable[code % n_columns]) for code, span in classes.items()]
        n_most = max(part.weight.shape[0] for _, _, part in mine)
        phi = block.scratch("features", (1 + self.kernel.n_features(d), n))
        phi[0, :] = 1
        self._write_features(block, phi[1:, :])

        def log_joint() -> Array:
            out = empty((n_most, n), block.x)
            for _, span, part in mine:
                m = part.weight.shape[0]
                out[:m, span] = linear_scores(part.weight, phi[:, span])
                out[m:, span] = LOG_ZERO
            return out

        responsibility, log_evidence = responsibilities(log_joint, block.weight)
        sums, mass = 0.0, [xp.zeros_like(e_step_params.table[:, 0])] * n_columns
        for k, span, part in mine:
            found = self.kernel.sums(phi[:, span], block.x[span, :], responsibility[: part.weight.shape[0], span])
            found = xp.concat([as_float64(found), as_float64(xp.zeros_like(found[:, :1]))], axis=1)
            found = xp.take(found, part.compact_index, axis=1)  # (1 + P, M)
            sums, mass[k] = sums + found[1:, :], found[0, :]
        return self._totals(block, e_step_params, xp.stack(mass, axis=1), sums, responsibility, log_evidence)

    def _totals(
        self, block: Block, e_step_params: EStepParams, mass: Array, sums: Array, responsibility: Array, log_evidence: Array
    ) -> Totals:
        """Sums by kernel (P, M) and mass (M, K + 1) as totals."""
        xp = namespace(block.x)
        moments = self.kernel.moments(mass, sums, e_step_params.natural_params, block.x, responsibility)
        log_evidence = as_float64(log_evidence + self.kernel.common(e_step_params.natural_params, block.x))
        if block.weight is None:
            return Totals(xp.sum(log_evidence), 0 * log_evidence[0] + log_evidence.shape[0], moments)
        return Totals(as_float64(block.weight) @ log_evidence, xp.sum(as_float64(block.weight)), moments)

    def _moments_of(self, block: Block, e_step_params: EStepParams, phi: Array, responsibility: Array, k: int) -> Moments:
        """Moments of the rows of class k, those without a class by P(C_k|j)."""
        n_columns, posterior = e_step_params.table.shape[1], e_step_params.class_posterior[:, k : k + 1]
        if block.classes is None:
            mine = responsibility * (phi[k, :] + posterior * phi[n_columns - 1, :])
            return self._moments_in(slice(0, block.x.shape[0]), block, e_step_params, phi[n_columns:, :], mine)
        spans = [block.classes.get(code, slice(0, 0)) for code in (k, -1)]  # no other rows have a part in it
        shares = responsibility[:, spans[0]], responsibility[:, spans[1]] * posterior
        labeled, others = (
            self._moments_in(span, block, e_step_params, phi[n_columns:, span], share)
            for span, share in zip(spans, shares, strict=True)
        )
        return labeled + others

    def _moments_in(self, span: slice, block: Block, e_step_params: EStepParams, phi: Array, responsibility: Array) -> Moments:
        """Moments of the rows in `span`, whose features and responsibilities are given."""
        x = block.x[span, :]
        sums = as_float64(self.kernel.sums(phi, x, responsibility))
        return self.kernel.moments(sums[:1, :].T, sums, e_step_params.natural_params, x, responsibility)

    def m_step(
        self, totals: Totals, params: Params, e_step_params: EStepParams, subkernels: Subkernels | None = None
    ) -> Params:
        """(35)-(37), or their counterparts under the penalty."""
        xp = namespace(params.mixing)
        mass = self.by_class(totals.moments.mass, e_step_params)
        moments = replace(totals.moments, mass=mass)
        moment_origin = self.kernel.moment_origin(match_array(e_step_params.natural_params, like=mass))
        vanished = xp.sum(mass, axis=1) <= VANISHED * totals.weight / mass.shape[0]
        if bool(xp.any(vanished)):
            moments = self.kernel.with_pseudocounts(moments, moment_origin, vanished, params.kernels, VANISHED)
        prior = self.penalty.prior_statistics(self.kernel, moments, moment_origin, subkernels)
        kernels = self.kernel.estimate(moments, moment_origin, prior)
        mixing = self.penalty.mixing(self.kernel, mass, params.mixing, kernels, subkernels)
        remembered = subkernels.kernels if subkernels is not None and self.penalty.remembers else None
        return Params(kernels, mixing, params.class_prior, subkernels=remembered)

    def subkernels(self, totals: "TotalsByClass", params: Params, e_step_params: EStepParams) -> Subkernels:
        """(11), (12), (15): each kernel as each class alone sees it."""
        xp = namespace(params.mixing)
        mass = self.by_class(totals.moments.mass, e_step_params)
        moment_origin = self.kernel.moment_origin(match_array(e_step_params.natural_params, like=mass))
        by_class = []
        for k, moments in enumerate(totals.by_class):
            absent = mass[:, k] <= VANISHED * totals.weight / mass.shape[0]
            moments = replace(moments, mass=mass[:, k : k + 1])
            moments = self.kernel.with_pseudocounts(moments, moment_origin, absent, params.kernels, VANISHED)
            by_class.append(self.kernel.estimate(moments, moment_origin))
        prior = params.mixing * params.class_prior
        of_kernel = xp.sum(prior, axis=1)[:, None]
        class_posterior = prior / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
        return Subkernels(class_posterior, tuple(by_class), params.kernels, params.subkernels)

    def by_class(self, mass: Array, e_step_params: EStepParams) -> Array:
        """Mass by class, (M, K): that of the rows without a class is dealt out by P(C_k | j)."""
        xp = namespace(mass)
        # exp() was kept off denormals: what a class may not use is exactly zero again here
        labeled = xp.where(e_step_params.allowed > 0, mass[:, :-1], xp.zeros_like(e_step_params.allowed))
        return labeled + mass[:, -1:] * e_step_params.class_posterior

    def _features(self, block: Block) -> Array:
        """Indicators of class 0..K-1 and of no class, then phi(x), (K + 1 + P, n).

        Squares are made anew in every sweep: that costs less than to fetch them from memory, for they would not fit the caches.
        """
        (n, d), n_columns = block.x.shape, self.sharing.shape[1] + 1
        phi = block.scratch("features", (n_columns + self.kernel.n_features(d), n))
        phi[:n_columns, :] = block.once((type(self), n_columns), self._indicators)
        self._write_features(block, phi[n_columns:, :])
        return phi

    def _write_features(self, block: Block, out: Array) -> None:
        """phi(x), of which a held block remembers as much as it has rows."""
        p, d = out.shape[0], block.x.shape[1]
        if p <= d + 1:
            block.write_once(self.kernel.name, out, lambda out: self.kernel.write_features(out, block.x))
            return
        block.write_once("columns", out[:d, :], lambda out: transpose_into(out, block.x))
        self.kernel.complete(out, d)

    def _indicators(self, block: Block) -> Array:
        """(K + 1, n) or (K + 1, 1)."""
        xp, home = namespace(block.x), device(block.x)
        codes = xp.asarray([*range(self.sharing.shape[1]), -1], dtype=block.y.dtype, device=home)  # type: ignore[union-attr]
        return xp.astype(codes[:, None] == block.y[None, :], block.x.dtype)  # type: ignore[index]

    def _responsibility(self, block: Block, e_step_params: EStepParams, phi: Array) -> tuple[Array, Array]:
        return responsibilities(lambda: self._log_joint(block, e_step_params, phi), block.weight)

    def _log_joint(self, block: Block, e_step_params: EStepParams, phi: Array) -> Array:
        log_joint = linear_scores(e_step_params.weight, phi)  # (M, n)
        if e_step_params.natural_params.guarded:
            n_columns = e_step_params.table.shape[1]
            self.kernel.correct(log_joint, e_step_params.natural_params, block.x, e_step_params.table @ phi[:n_columns, :])
        return log_joint

    # -- coordinates in which steps may be extrapolated -----------------------------------------------------------

    def coordinates(self, params: Params) -> Array:
        """The parameters as one vector; every vector is some network. Square roots keep mixing weights positive."""
        xp = namespace(params.mixing)
        return xp.concat(
            [
                xp.reshape(params.kernels.mean, (-1,)),
                self.kernel.coordinates(params.kernels.covariance),
                xp.reshape(params.mixing**0.5, (-1,)),
            ]
        )

    def at(self, coordinates: Array, like: Params) -> Params:
        """The network at `coordinates`, at or above the floor, in the shapes of `like`."""
        xp = namespace(coordinates)
        n_kernels, d = like.kernels.mean.shape
        n_mixing = n_kernels * like.mixing.shape[1]
        mean = xp.reshape(coordinates[: n_kernels * d], (n_kernels, d))
        covariance = self.kernel.at(coordinates[n_kernels * d : -n_mixing], like.kernels.covariance)
        mixing = xp.reshape(coordinates[-n_mixing:], like.mixing.shape) ** 2
        if not bool(xp.all(xp.isfinite(coordinates)) and xp.all(xp.isfinite(covariance))):
            raise FloatingPointError("A step was extrapolated beyond the range of floating-point numbers.")
        kernels = Kernels(mean, self.kernel.apply_floor(covariance))
        return Params(kernels, mixing / xp.sum(mixing, axis=0), like.class_prior, subkernels=like.subkernels)

    # -- kernels that have lost their rows ------------------------------------------------------------------------

    def starving(self, params: Params, class_weight: Array, row_weight: float) -> list[int]:
        """Kernels that account for next to none of the rows; `class_weight` (K,) and `row_weight` tell how much there is."""
        mass = params.mixing @ class_weight
        return [j for j, starves in enumerate(mass < STARVING * row_weight) if bool(starves)]

    def moved(self, rows: Rows, params: Params, starving: list[int], owner: Array, class_weight: Array) -> Params:
        """The same network with starving kernels, one a class, moved to the worst modeled row of the class that owns them.

        A moved kernel starts with the weight of one row and the mean covariance of all kernels, so that the rows it takes
        no part in lose almost nothing.
        """
        xp = namespace(params.mixing)
        moves = {int(owner[j]): j for j in starving}
        worst_rows = match_array(rows.total(self.worst_rows, self.e_step_params(params, rows.eps)), like=params.mixing)
        mean, mixing = xp.asarray(params.kernels.mean, copy=True), xp.asarray(params.mixing, copy=True)
        for k, j in moves.items():
            share = 1 / (1 + float(class_weight[k]))
            mean[j, :] = worst_rows.x[k, :]
            mixing[j, k] = 0
            mixing[:, k] = mixing[:, k] * ((1 - share) / xp.sum(mixing[:, k]))
            mixing[j, k] = share
        covariance = self.kernel.reset_covariance(params.kernels.covariance, list(moves.values()))
        return Params(Kernels(mean, covariance), mixing, params.class_prior, subkernels=params.subkernels)

    def without(self, params: Params, dropped: list[int]) -> Params:
        """The network less some kernels, its mixing weights made to sum to one again."""
        xp, home = namespace(params.mixing), device(params.mixing)
        keep = [j for j in range(params.mixing.shape[0]) if j not in dropped]
        index = xp.asarray(keep, dtype=xp.int64, device=home)
        mixing = xp.take(params.mixing, index, axis=0)
        remembered = params.subkernels and tuple(self.kernel.take(kernels, index) for kernels in params.subkernels)
        kernels = self.kernel.take(params.kernels, index)
        return Params(kernels, mixing / xp.sum(mixing, axis=0), params.class_prior, subkernels=remembered)

    def worst_rows(self, block: Block, e_step_params: EStepParams) -> WorstRows:
        """Of each class, the row of this block with the lowest log p(x|C_k)."""
        xp = namespace(block.x)
        n_columns = e_step_params.table.shape[1]
        phi = self._features(block)
        _, log_evidence = self._responsibility(block, e_step_params, phi)
        log_evidence = log_evidence + self.kernel.common(e_step_params.natural_params, block.x)
        counts = (phi[: n_columns - 1, :] > 0) & ((block.weight if block.weight is not None else phi[0, :] + 1) > 0)
        by_class = xp.where(counts, log_evidence, xp.inf * xp.ones_like(log_evidence))  # (K, n)
        return WorstRows(xp.min(by_class, axis=1), xp.take(block.x, xp.argmin(by_class, axis=1), axis=0))

    # -- prediction -----------------------------------------------------------------------------------------------

    def log_density(self, block: Block, natural_params: NaturalParams, mixing: Array) -> Array:
        """(2): log p(x|C_k), (n, K); sharing plays no part."""
        return log_weighted_sums(self.kernel.log_density(natural_params, block.x), mixing).T

    def kernel_posterior(self, block: Block, natural_params: NaturalParams, mixing: Array, class_prior: Array) -> Array:
        """P(j|x), the class summed out, (n, M)."""
        xp = namespace(block.x)
        log_joint = self.kernel.log_density(natural_params, block.x) + safe_log(mixing @ class_prior)[:, None]
        return xp.exp(log_joint - logsumexp(log_joint, axis=0)).T


def _usable(natural_params: NaturalParams, table: Array, share: Array) -> tuple[UsableKernels, ...] | None:
    """For every column of `table` the kernels with a `share` (M, K + 1) in it, or None if all have one in all."""
    xp = namespace(table)
    if bool(xp.all(share > 0)):
        return None
    found = []
    for k in range(table.shape[1]):
        counts = share[:, k] > 0
        counts = counts if bool(xp.any(counts)) else ~counts  # rows of a class without kernels weigh nothing
        (index,) = xp.nonzero(counts)
        compact_index = xp.where(counts, xp.cumulative_sum(xp.astype(counts, index.dtype)) - 1, index.shape[0])
        weight = xp.concat([table[:, k : k + 1], natural_params.weight], axis=1)
        found.append(UsableKernels(xp.take(weight, index, axis=0), compact_index))
    return tuple(found)
