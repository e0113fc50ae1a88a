r"""The metric in which a Parzen network that leaves each row out tells the classes apart best.

Goldberger, Roweis, Hinton & Salakhutdinov, "Neighbourhood components analysis", Advances in Neural Information Processing
Systems 17, 2004, equations (1)-(5).

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
:math:`\rho`        ``ridge``         scalar   pull towards the metric in which the rows come
==================  ================  =======  =====================================================================

Deviations: the logarithm of :math:`p_i` (the paper's KL objective (5)) with :math:`\epsilon` inside, so that a row among
strangers does not decide alone; half the squared distance, as in a Gaussian; the ridge; rows have weights.
"""

from ..arrays import Array, device, namespace

EPSILON = 1e-4
"""Added to every p_i: a row that no other row of its class is near loses at most log(1e4)."""


def neighborhood_objective(metric: Array, x: Array, codes: Array, weight: Array, ridge: float) -> tuple[float, Array]:
    """(5): the mean of log p_i less the ridge, and its gradient, (d, d)."""
    xp, (n, d) = namespace(x), x.shape
    home = device(x)
    one = xp.eye(d, dtype=x.dtype, device=home)
    mapped = x @ metric.T  # (n, d)
    square = xp.sum(mapped * mapped, axis=1)
    logit = mapped @ mapped.T - 0.5 * (square[:, None] + square[None, :])  # (n, n)
    itself = xp.eye(n, dtype=x.dtype, device=home)
    logit = xp.where(itself > 0, -xp.inf * xp.ones_like(itself), logit)
    logit = logit - xp.max(logit, axis=1, keepdims=True)
    share = xp.exp(logit) * weight[None, :]
    share = share / xp.sum(share, axis=1, keepdims=True)
    same = xp.astype(codes[:, None] == codes[None, :], x.dtype)
    right = xp.sum(share * same, axis=1)
    pull = weight / (xp.sum(weight) * (right + EPSILON))
    slope = share * (same - right[:, None]) * pull[:, None]  # of the objective by each logit
    slope = slope + slope.T
    gradient = (slope @ mapped - mapped * xp.sum(slope, axis=1)[:, None]).T @ x
    objective = xp.sum(weight * xp.log(right + EPSILON)) / xp.sum(weight) - ridge * xp.sum((metric - one) ** 2)
    return float(objective), gradient - 2 * ridge * (metric - one)
