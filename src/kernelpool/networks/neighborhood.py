r"""The metric in which a Parzen network that leaves each row out tells the classes apart best.

Goldberger, Roweis, Hinton & Salakhutdinov, "Neighbourhood components analysis", Advances in Neural
Information Processing Systems 17, 2004, equations (1)-(5).

.. math::

    p_{ij} = \frac{\exp(-\tfrac12 \|A x_i - A x_j\|^2)}{\sum_{l \ne i} \exp(-\tfrac12 \|A x_i - A x_l\|^2)}, \qquad
    p_i = \sum_{j: y_j = y_i} p_{ij}, \qquad
    \max_A \; \frac1n \sum_i \log (p_i + \epsilon) - \rho \|A - I\|^2

==================  ================  =======  =====================================================================
paper               here              shape    meaning
==================  ================  =======  =====================================================================
:math:`A`           ``metric``        (d, d)   rows are compared as A x
:math:`p_{ij}`      ``share``         (n, n)   share of row j in the vote on row i
:math:`p_i`         ``right``         (n,)     vote for the class of row i
:math:`\rho`        ``ridge``         scalar   weight of the metric in which the rows come
==================  ================  =======  =====================================================================

Deviations: the logarithm of :math:`p_i` (the paper's KL objective (5)) with :math:`\epsilon`
inside, so that a row among strangers does not decide alone; half the squared distance, as in a
Gaussian; the ridge; rows have weights.
"""

from typing import Any

from ..arrays import Array, device, namespace

EPSILON = 1e-4
"""Added to every p_i: a row that no other row of its class is near loses at most log(1e4)."""


def neighborhood_objective(
    metric: Array, x: Array, codes: Array, weight: Array, ridge: float
) -> tuple[float, Array]:
    """(5): the mean of log p_i less the ridge, and its gradient, (d, d).

    With rows in the order of their classes, neighbors of the same class are blocks on the diagonal
    of p_ij, and the matrix need not be looked at more often than a softmax does.
    """
    xp, (n, d) = namespace(x), x.shape
    order = xp.argsort(codes)
    x, codes, weight = (xp.take(a, order, axis=0) for a in (x, codes, weight))
    mapped = x @ metric.T  # (n, d)
    square = xp.sum(mapped * mapped, axis=1)
    score = mapped @ mapped.T  # (n, n); what is common to a line cancels
    score -= 0.5 * square[None, :]
    every = xp.arange(n, device=device(x))
    score = xp.where(
        every[:, None] == every[None, :],
        xp.asarray(-xp.inf, dtype=x.dtype, device=device(x)),
        score,
    )
    score -= xp.max(score, axis=1, keepdims=True)
    vote = xp.exp(score)
    if not bool(xp.all(weight == weight[0])):
        vote *= weight[None, :]
    total = xp.sum(vote, axis=1)
    right = xp.zeros_like(square)
    blocks = _runs(xp, codes)
    for block in blocks:
        right[block] = xp.sum(vote[block, block], axis=1) / total[block]
    factor = weight / (xp.sum(weight) * (right + EPSILON) * total)
    # of the objective by the score of i and j: pull_i vote_ij (1 if the classes are the same, less
    # right_i)
    against = (factor * right)[:, None] * mapped
    toward = -(factor * right)[:, None] * (vote @ mapped) - vote.T @ against
    of_row = -(factor * right * total) - vote.T @ (factor * right)
    for block in blocks:
        own, own_rows = vote[block, block], (factor[block])[:, None] * mapped[block, :]
        toward[block, :] += factor[block][:, None] * (own @ mapped[block, :]) + own.T @ own_rows
        of_row[block] += factor[block] * xp.sum(own, axis=1) + own.T @ factor[block]
    gradient = (toward - mapped * of_row[:, None]).T @ x
    one = xp.eye(d, dtype=x.dtype, device=device(x))
    objective = xp.sum(weight * xp.log(right + EPSILON)) / xp.sum(weight) - ridge * xp.sum(
        (metric - one) ** 2
    )
    return float(objective), gradient - 2 * ridge * (metric - one)


def _runs(xp: Any, codes: Array) -> list[slice]:
    """Where each class lies among sorted codes."""
    n = int(codes.shape[0])
    ends = [*(int(i) + 1 for i in xp.nonzero(codes[1:] != codes[:-1])[0]), n]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
