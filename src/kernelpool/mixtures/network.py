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

The E-step, (29) and (30), is in `e_step`; the gradient of the conditional likelihood, which the paper
does not have, in `gradient`.

Deviations from the paper: sharing may differ by kernel and class (its wish list). A row without a
label takes part with its class summed out, :math:`\sum_k P(C_k) p_\lambda(x \mid C_k)`; the class
priors stay those of the labeled rows, (10). A kernel that loses its rows keeps its place instead of
dividing by zero.
"""

import math
from dataclasses import field, replace
from functools import cached_property
from typing import TypeVar

from ..arrays import (
    Array,
    clip,
    device,
    match_array,
    namespace,
    safe_log,
)
from ..errors import KernelpoolError
from ..kernels import Kernel, KernelSums, NaturalParams, Parameters
from ..penalties import NoPenalty, Penalty, Subkernels
from ..rows import Block, Rows
from ..softmax import log_weighted_sums, shares_of
from ..sums import record
from .e_step import EStep, EStepParams, Totals, indicators, shares_of_classes
from .gradient import ConditionalParams, conditional_step

EMPTY = 1e-3
"""A kernel that accounts for less than this part of one average row has lost its rows."""

VANISHED = 1e-12
"""Below this part of one average row a mean of rows is no longer taken at all."""


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


def sharing_table(owner: Array, sharing: float, n_classes: int) -> Array:
    """lambda for the classes that borrow a kernel, one for the class that owns it, (M, K)."""
    xp = namespace(owner)
    classes = xp.arange(n_classes, dtype=owner.dtype, device=device(owner))
    own = xp.astype(owner[:, None] == classes[None, :], xp.float64)
    return own + (1 - own) * sharing


class SharedKernel:
    """Networks of one kernel family and one table of sharing; the parameters are passed in and
    returned.
    """

    def __init__(self, kernel: Kernel, sharing: Array, penalty: Penalty | None = None) -> None:
        self.kernel = kernel
        self.sharing = sharing
        self.penalty = NoPenalty() if penalty is None else penalty

    # -- training ----------------------------------------------------------------------------------

    @cached_property
    def e_step(self) -> EStep:
        """(29), (30)."""
        return EStep(self.kernel, self.sharing.shape[1], self.penalty.by_class)

    def table(self, params: Params) -> Array:
        """lambda, (M, K)."""
        return self.sharing

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
        totals = self.e_step.total(rows, e_step_params)
        subkernels = None
        if totals.by_class:
            subkernels = self.subkernels(totals, params, e_step_params)
        log_prior = self.penalty.objective(self.kernel, params.kernels, subkernels)
        objective = (float(totals.log_likelihood) + log_prior) / float(totals.weight)
        mass = self.by_class(totals.moments.mass, e_step_params)
        return self.m_step(totals, params, e_step_params, subkernels, mass), objective, mass

    def e_step_params(self, params: Params, eps: float) -> EStepParams:
        """The parameters as one E-step needs them."""
        allowed = self.table(params) * params.mixing
        return self.e_step.params(params.kernels, allowed, params.class_prior, eps)

    def m_step(
        self,
        totals: Totals,
        params: P,
        e_step_params: EStepParams,
        subkernels: Subkernels | None,
        mass: Array,
    ) -> P:
        """(35)-(37), or their counterparts under the penalty."""
        moment_origin = match_array(e_step_params.natural_params.moment_origin, like=mass)
        least = VANISHED * totals.weight / mass.shape[0]
        moments = self._held(replace(totals.moments, mass=mass), moment_origin, least, params)
        prior = self.penalty.prior_statistics(self.kernel, moments, moment_origin, subkernels)
        kernels = self.kernel.estimate(moments, moment_origin, prior)
        mixing = self.penalty.mixing(self.kernel, mass, params.mixing, kernels, subkernels)
        previous = None if subkernels is None else subkernels.kernels
        return replace(params, kernels=kernels, mixing=mixing, subkernels=previous)

    def subkernels(self, totals: Totals, params: Params, e_step_params: EStepParams) -> Subkernels:
        """(11), (12), (15): each kernel as each class alone sees it."""
        mass = self.by_class(totals.moments.mass, e_step_params)
        moment_origin = match_array(e_step_params.natural_params.moment_origin, like=mass)
        least = VANISHED * totals.weight / mass.shape[0]
        by_class = []
        for k, moments in enumerate(totals.by_class):
            moments = replace(moments, mass=mass[:, k : k + 1])
            moments = self._held(moments, moment_origin, least, params)
            by_class.append(self.kernel.estimate(moments, moment_origin))
        class_posterior = shares_of_classes(params.mixing * params.class_prior)
        return Subkernels(class_posterior, tuple(by_class), params.kernels, params.subkernels)

    def _held(
        self, moments: KernelSums, moment_origin: Array, least: Array | float, params: Params
    ) -> KernelSums:
        """Moments in which kernels with no more than `least` of mass stay as they are."""
        xp = namespace(moment_origin)
        vanished = xp.sum(moments.mass, axis=1) <= least
        if not bool(xp.any(vanished)):
            return moments
        return self.kernel.with_pseudocounts(
            moments, moment_origin, vanished, params.kernels, VANISHED
        )

    def by_class(self, mass: Array, e_step_params: EStepParams) -> Array:
        """Mass by class, (M, K): that of the rows without a class is dealt out by P(C_k | j)."""
        xp = namespace(mass)
        # exp() was kept off denormals: what a class may not use is exactly zero again here
        labeled = xp.where(
            e_step_params.allowed > 0, mass[:, :-1], xp.zeros_like(e_step_params.allowed)
        )
        return labeled + mass[:, -1:] * e_step_params.class_posterior

    # -- the conditional likelihood ----------------------------------------------------------------

    def gradient(
        self, rows: Rows, params: Params, generative_weight: float = 0.0
    ) -> tuple[Array, float]:
        """Gradient by `to_vector` of the mean of log P(y|x) over the rows with a class, and that
        mean; with a `generative_weight`, of the hybrid with log p(x, y).
        """
        xp = namespace(params.mixing)
        mixing = params.mixing
        natural_params = self.kernel.natural_params(params.kernels, rows.eps)
        weight = xp.concat([natural_params.offset[:, None], natural_params.weight], axis=1)
        conditional_params = ConditionalParams(
            natural_params, weight, mixing, params.class_prior, 1 - generative_weight
        )
        totals = rows.total(conditional_step, self.kernel, conditional_params)
        totals = match_array(totals, like=mixing)
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
        xp = namespace(vector)
        n_kernels, n_classes = like.mixing.shape
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
        found = rows.total(self.worst_rows, natural_params, self.table(params) * params.mixing)
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
        counts = indicators(block, self.sharing.shape[1])[:-1, :] > 0  # (K, n)
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
