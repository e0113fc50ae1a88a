r"""Weights of several density estimates, from rows that none of them has seen.

Smyth & Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999.

.. math:: \max_w \; \sum_n \log \sum_i w_i\, p_i(x_n), \qquad w_i \ge 0, \quad \sum_i w_i = 1

=================  ===============  ==================================================================
paper              here             meaning
=================  ===============  ==================================================================
:math:`p_i(x_n)`   ``log_density``  what network i, trained without row n, says of it, (L, n)
:math:`w_i`        ``share``        weight of network i, (L,)
=================  ===============  ==================================================================

The objective is concave, so EM finds its one maximum from anywhere. Deviations: rows may have weights, and every network
counts as if it had explained one row more (a Dirichlet prior): with few rows held out the weights stay near equal, and none
is ever zero.
"""

from ..arrays import Array, logsumexp, namespace
from ..em import Stop, em

PRIOR_ROWS = 1.0
"""Rows that each network is taken to have explained before any is seen."""


def stacked(log_density: Array, weight: Array, prior_rows: float = PRIOR_ROWS) -> Array:
    """The weights of the networks, (L,)."""
    xp, n_networks = namespace(log_density), log_density.shape[0]
    total = xp.sum(weight) + prior_rows * n_networks

    def sweep(share: Array) -> tuple[Array, float]:
        log_joint = log_density + xp.log(share)[:, None]  # (L, n)
        log_evidence = logsumexp(log_joint, axis=0)
        mass = xp.exp(log_joint - log_evidence) @ weight
        objective = (weight @ log_evidence + prior_rows * xp.sum(xp.log(share))) / total
        return (mass + prior_rows) / total, float(objective)

    start = xp.ones_like(log_density[:, 0]) / n_networks
    return em(sweep, start, Stop(max_iter=2000, tol=1e-10)).params
