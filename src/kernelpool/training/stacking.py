r"""Weights of several density estimates, from rows that none of them has seen.

Smyth & Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999.

.. math:: \max_w \; \sum_n \log \sum_i w_i\, p_i(x_n), \qquad w_i \ge 0, \quad \sum_i w_i = 1

=================  ===============  ==================================================================
paper              here             meaning
=================  ===============  ==================================================================
:math:`p_i(x_n)`   ``log_density``  what network i, trained without row n, says of it, (L, n)
:math:`w_i`        ``share``        weight of network i, (L,)
=================  ===============  ==================================================================

The objective is concave, so EM finds its one maximum from anywhere. Deviations: rows may have
weights, and every network counts as if it had explained one row more (a Dirichlet prior): with few
rows held out the weights stay near equal, and none is ever zero.
"""

import numpy as np

from ..em import Stop, em

PRIOR_ROWS = 1.0
"""Rows that each network is taken to have explained before any is seen."""


def stacked(
    log_density: np.ndarray, weight: np.ndarray, prior_rows: float = PRIOR_ROWS
) -> np.ndarray:
    """The weights of the networks, (L,)."""
    n_networks = len(log_density)
    total = weight.sum() + prior_rows * n_networks
    most = log_density.max(axis=0)
    density, constant = np.exp(log_density - most), weight @ most  # (L, n), as parts of the largest

    def sweep(share: np.ndarray) -> tuple[np.ndarray, float]:
        evidence = share @ density
        mass = share * (density @ (weight / evidence))
        objective = (
            weight @ np.log(evidence) + constant + prior_rows * np.log(share).sum()
        ) / total
        return (mass + prior_rows) / total, float(objective)

    return em(sweep, np.full(n_networks, 1 / n_networks), Stop(max_iter=2000, tol=1e-10)).params
