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

import numpy as np
from threadpoolctl import threadpool_limits

from ..arrays import squared_distances
from ..lbfgs import maximize

METRIC_ROWS = 600
"""A metric is learned on a sample of this many rows: its cost grows with their square."""

METRIC_STEPS = 25
"""Steps of L-BFGS at most."""

METRIC_RIDGE = 1e-3
"""The ridge of a learned metric."""

UNIT_NEIGHBOR = 3
"""The distance to the neighbor of this rank is about one."""

EPSILON = 1e-4
"""Added to every p_i: a row that no other row of its class is near loses at most log(1e4)."""


def neighborhood_objective(
    metric: np.ndarray, x: np.ndarray, codes: np.ndarray, weight: np.ndarray, ridge: float
) -> tuple[float, np.ndarray]:
    """(5): the mean of log p_i less the ridge, and its gradient, (d, d)."""
    mapped = x @ metric.T  # (n, d)
    score = mapped @ mapped.T  # (n, n); what is common to a line cancels
    score += np.log(weight) - 0.5 * (mapped * mapped).sum(axis=1)
    np.fill_diagonal(score, -np.inf)
    score -= score.max(axis=1, keepdims=True)
    share = np.exp(score, out=score)
    share /= share.sum(axis=1, keepdims=True)
    slope = share * (codes[:, None] == codes)
    right = slope.sum(axis=1)
    share *= right[:, None]
    slope -= share
    slope *= (weight / (weight.sum() * (right + EPSILON)))[:, None]  # of the mean, by the score
    toward = slope @ mapped + slope.T @ mapped - slope.sum(axis=0)[:, None] * mapped
    gradient = toward.T @ x
    change = metric - np.eye(len(metric), dtype=x.dtype)
    objective = weight @ np.log(right + EPSILON) / weight.sum() - ridge * (change * change).sum()
    return float(objective), gradient - 2 * ridge * change


def learned_metric(
    z: np.ndarray, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The metric of a sample of rows, (d, d); lengths are in units of the distance to a near row."""
    chosen = np.sort(rng.permutation(len(z))[:METRIC_ROWS])
    z = z[chosen]
    d = z.shape[1]
    rank = min(UNIT_NEIGHBOR, len(z) - 1)
    near = np.median(np.sort(squared_distances(z[:200], z, exact=True), axis=1)[:, rank])
    z = z / (np.sqrt(near) if near > 0 else 1.0)
    # exponentials of all pairs are the cost, and half as wide they take a third of it
    narrow = np.abs(z).max() < 1e6  # beyond, rows would be infinitely far
    dtype = np.float32 if narrow else np.float64
    rows = z.astype(dtype), codes[chosen], weight[chosen].astype(dtype), METRIC_RIDGE

    def objective(flat: np.ndarray) -> tuple[np.ndarray, float]:
        value, gradient = neighborhood_objective(flat.reshape(d, d).astype(dtype), *rows)
        return gradient.ravel().astype(np.float64), value

    tol = 1e-6 if narrow else 1e-9
    with threadpool_limits(1, user_api="blas"):  # more threads round otherwise, and steps add up
        best = maximize(objective, np.eye(d).ravel(), max_iter=METRIC_STEPS, tol=tol)
    return best.point.reshape(d, d)
