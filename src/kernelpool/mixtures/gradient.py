r"""The gradient of the conditional likelihood of shared-kernel networks.

With :math:`r_{jn} = P(j \mid x_n, y_n)` and :math:`q_{jn} = P(j \mid x_n)`, the class summed out,
the gradient of :math:`\sum \log P(y \mid x)` by the natural parameters of the kernels is

.. math:: \sum_n (r_{jn} - q_{jn}) \phi(x_n)

the two products of a sweep, with signed responsibilities. Sharing plays no part, as in (2) of
Titsias & Likas 2001. A `generative_weight` w makes it that of a hybrid of both objectives,
:math:`(1 - w) \log P(y \mid x) + w \log p(x, y)`, whose responsibilities are :math:`r - (1 - w) q`.
"""

import math
from collections.abc import Callable

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    clip,
    matmul_into,
    namespace,
    safe_log,
)
from ..kernels import Kernel, KernelSums, NaturalParams
from ..rows import Block
from ..softmax import exp_within_range, responsibilities, sums_within_range
from ..sums import Sums, record
from .e_step import indicators


@record
class ConditionalParams:
    """The parameters as one step of the conditional likelihood needs them."""

    natural_params: NaturalParams
    weight: Array
    """`NaturalParams.offset`, then its weights, (M, 1 + P)."""
    mixing: Array
    """(M, K)."""
    class_prior: Array
    """(K,)."""
    evidence_weight: float
    """How much log p(x) counts: one in the conditional likelihood, none in the likelihood."""


@record
class ConditionalTotals(Sums):
    """What the gradient needs of the rows; those without a class take no part."""

    log_likelihood: Array
    """Sum of log p(x|y) - log p(x)."""
    responsibility: Array
    """Of the kernels in the rows of each class, (M, K): sum of r."""
    posterior: Array
    """Of the kernels with the class summed out, (M,): sum of q."""
    moments: KernelSums
    """With r - q in place of responsibility."""


def conditional_step(block: Block, kernel: Kernel, params: ConditionalParams) -> ConditionalTotals:
    """r - q of one block, kept only as sums."""
    xp = namespace(block.x)
    n, d = block.x.shape
    natural_params = params.natural_params
    observed = None if block.missing is None else kernel.observe(natural_params, block)
    if observed is None:
        phi = block.scratch("features", (1 + kernel.n_features(d), n))
        phi[0, :] = 1
        kernel.write_features(phi[1:, :], block)
    is_of = indicators(block, params.mixing.shape[1])[:-1, :]
    weight = xp.sum(is_of, axis=0)  # one for the rows with a class
    weight = weight if block.weight is None else weight * block.weight

    def scores() -> Array:
        """log p(x|j) but for what is common to all kernels, (M, n)."""
        if observed is not None:
            return xp.asarray(observed.log_density, copy=True)
        out = block.scratch("log_joint", (params.weight.shape[0], n))
        matmul_into(out, params.weight, phi)
        kernel.correct(out, natural_params, block.x, params.weight[:, 0])
        return out

    signed, responsibility, posterior, log_ratio = _signed(block, params, scores, is_of, weight)
    if observed is not None:
        moments = observed.moments(as_float64(xp.sum(signed, axis=1))[:, None], signed)
    else:
        sums = as_float64(kernel.sums(phi, block.x, signed))  # (1 + P, M)
        moments = kernel.moments(sums[:1, :].T, sums[1:, :], natural_params, block.x, signed)
        if params.evidence_weight != 1:  # what is common to all kernels does not cancel
            common = kernel.common(natural_params, block.x)
            log_ratio = log_ratio + (1 - params.evidence_weight) * common
    log_likelihood = as_float64(weight) @ as_float64(log_ratio)
    return ConditionalTotals(
        log_likelihood, as_float64(responsibility), as_float64(posterior), moments
    )


def _signed(
    block: Block,
    params: ConditionalParams,
    make_scores: Callable[[], Array],
    is_of: Array,
    weight: Array,
) -> tuple[Array, Array, Array, Array]:
    """weight * (r - q), (M, n); the sums of weight * r by class, (M, K), and of weight * q,
    (M,); log p(x|y) / p(x), (n,).

    q and log p(x) count by `evidence_weight`. Everything is linear in the densities e:
    r - q = e * ([pi, -pi P] @ [1(y = k) / p(x|y); 1 / p(x)]), one small product.
    """
    xp = namespace(block.x)
    mixing = params.mixing
    mixed = mixing @ params.class_prior  # (M,)
    density = exp_within_range(make_scores())
    if density is not None:

        def own_and_evidence() -> Array:
            by_class = mixing.T @ density  # p(x|C_k), (K, n)
            own = xp.sum(is_of * by_class, axis=0)
            own = xp.where(weight > 0, own, xp.ones_like(own))
            return xp.stack([own, params.class_prior @ by_class])

        sums = sums_within_range(own_and_evidence)
        if sums is not None:
            own, evidence = sums[0, :], sums[1, :]
            of_all = params.evidence_weight * (weight / evidence)
            ratio = xp.concat([is_of * (weight / own), of_all[None, :]])  # (K + 1, n)
            shares = density @ ratio.T  # (M, K + 1)
            factor = block.scratch("factor", density.shape)
            matmul_into(factor, xp.concat([mixing, -mixed[:, None]], axis=1), ratio)
            density *= factor
            log_ratio = xp.log(own) - params.evidence_weight * xp.log(evidence)
            return density, mixing * shares[:, :-1], mixed * shares[:, -1], log_ratio
    scores = make_scores()
    log_mixing, log_mixed = (clip(safe_log(a), LOG_ZERO, math.inf) for a in (mixing, mixed))
    log_own = log_mixing @ is_of
    own, log_evidence_own = responsibilities(lambda: scores + log_own, weight)
    summed_out, log_evidence = responsibilities(lambda: scores + log_mixed[:, None], weight)
    # exp() was kept off denormals
    shares = xp.where(mixing > 0, own @ is_of.T, xp.zeros_like(mixing))
    summed_out *= params.evidence_weight
    log_ratio = log_evidence_own - params.evidence_weight * log_evidence
    return own - summed_out, shares, xp.sum(summed_out, axis=1), log_ratio
