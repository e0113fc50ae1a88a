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

from ..lbfgs import maximize

METRIC_ROWS = 600
"""A metric is learned on a sample of this many rows: its cost grows with their square."""

METRIC_STEPS = 25
METRIC_RIDGE = 1e-3

EPSILON = 1e-4
"""Added to every p_i: a row that no other row of its class is near loses at most log(1e4)."""


def neighborhood_objective(
    metric: np.ndarray, x: np.ndarray, codes: np.ndarray, weight: np.ndarray, ridge: float
) -> tuple[float, np.ndarray]:
    """(5): the mean of log p_i less the ridge, and its gradient, (d, d).

    With rows in the order of their classes, neighbors of the same class are blocks on the diagonal
    of p_ij, and the matrix need not be looked at more often than a softmax does.
    """
    order = np.argsort(codes)
    x = x[order]
    codes = codes[order]
    weight = weight[order]
    mapped = x @ metric.T  # (n, d)
    score = mapped @ mapped.T  # (n, n); what is common to a line cancels
    score -= 0.5 * (mapped * mapped).sum(axis=1)
    np.fill_diagonal(score, -np.inf)
    score -= score.max(axis=1, keepdims=True)
    vote = np.exp(score)
    if (weight != weight[0]).any():
        vote *= weight
    total = vote.sum(axis=1)
    right = np.zeros_like(weight)
    ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    blocks = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    for block in blocks:
        right[block] = vote[block, block].sum(axis=1) / total[block]
    factor = weight / (weight.sum() * (right + EPSILON) * total)
    # of the objective by the score of i and j: factor_i vote_ij (1 if the classes are the same,
    # less right_i)
    against = (factor * right)[:, None] * mapped
    toward = -(factor * right)[:, None] * (vote @ mapped) - vote.T @ against
    of_row = -(factor * right * total) - vote.T @ (factor * right)
    for block in blocks:
        own = vote[block, block]
        own_rows = factor[block, None] * mapped[block]
        toward[block] += factor[block, None] * (own @ mapped[block]) + own.T @ own_rows
        of_row[block] += factor[block] * own.sum(axis=1) + own.T @ factor[block]
    gradient = (toward - mapped * of_row[:, None]).T @ x
    away = metric - np.eye(len(metric), dtype=x.dtype)
    objective = weight @ np.log(right + EPSILON) / weight.sum() - ridge * (away * away).sum()
    return float(objective), gradient - 2 * ridge * away


def learned_metric(
    z: np.ndarray, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The metric of a sample of rows, (d, d); lengths are in units of the distance to a near row."""
    chosen = np.sort(rng.permutation(len(z))[:METRIC_ROWS])
    z, codes, weight, d = z[chosen], codes[chosen], weight[chosen], z.shape[1]
    near = np.median([np.sort(((z - row) ** 2).sum(axis=1))[min(3, len(z) - 1)] for row in z[:200]])
    z = z / (np.sqrt(near) if near > 0 else 1.0)
    # exponentials of all pairs are the cost, and half as wide they take a third of it; far rows
    # would be infinitely far
    dtype, tol = (np.float32, 1e-6) if np.abs(z).max(initial=0.0) < 1e6 else (np.float64, 1e-9)
    z = z.astype(dtype)
    weight = weight.astype(dtype)

    def objective(a: np.ndarray) -> tuple[np.ndarray, float]:
        value, gradient = neighborhood_objective(
            a.reshape(d, d).astype(dtype), z, codes, weight, METRIC_RIDGE
        )
        return gradient.ravel().astype(np.float64), value

    return np.asarray(
        maximize(objective, np.eye(d).ravel(), max_iter=METRIC_STEPS, tol=tol).point.reshape(d, d)
    )
