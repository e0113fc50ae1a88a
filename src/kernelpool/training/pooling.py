r"""Pools of classifiers: one probability from those of several, weighted by their held-out predictions.

Genest & Zidek, "Combining probability distributions: a critique and an annotated bibliography", Statistical Science 1(1), 1986:
the logarithmic and the linear opinion pool.

.. math::

    P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m} \qquad \text{or} \qquad
    P(C_k \mid x) = \sum_m w_m P_m(C_k \mid x), \quad \sum_m w_m = 1

==================  ====================  ==========  ==============================================================
paper               here                  shape       meaning
==================  ====================  ==========  ==============================================================
:math:`P_m`         ``log_proba``         (L, n, K)   predictions of member m, trained without row n
:math:`w_m`         ``weight``            (L,)        not negative; of the logarithmic pool they need not sum to one
==================  ====================  ==========  ==============================================================

The weights minimize the log-loss on held-out rows, which is convex in both cases. Those of the logarithmic pool are a
temperature as well: members that are overconfident together get weights that sum to less than one. A small penalty (`PRICE`)
sets the weights of members without use to zero. A ridge towards equal weights (`RIDGE`) fades as rows become many.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..arrays import safe_log
from ..lbfgs import maximize
from .stacking import stacked

PRICE = 1e-3
"""Penalty on the sum of the weights, in log-loss per row."""

RIDGE = 20.0
"""Strength of the ridge towards equal weights, in rows: held-out losses of few rows are noisy."""

SMALLEST = 0.01
"""Weights below this are set to zero."""

LOWEST = np.log(1e-12)
"""The least log-probability of a member: no class is impossible."""

KINDS = ("log_linear", "linear")


@dataclass(frozen=True)
class Pooling:
    """How the probabilities of members become one."""

    weight: np.ndarray
    """(L,)."""
    kind: str
    loss: float
    """Log-loss per row on the held-out rows that the weights were fitted to."""

    def log_proba(self, log_proba: np.ndarray) -> np.ndarray:
        """log P(C_k|x), (n, K), from those of the members, (L, n, K)."""
        log_proba = np.maximum(log_proba, LOWEST)
        if self.kind == "linear":
            return normalized(logsumexp(log_proba + safe_log(self.weight)[:, None, None], axis=0))
        return normalized(np.tensordot(self.weight, log_proba, axes=1))


def normalized(scores: np.ndarray) -> np.ndarray:
    """Log-probabilities from scores, (n, K)."""
    scores = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))


def log_loss(log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray) -> float:
    """Mean of -log P(C_y|x) over the rows."""
    return float(-(row_weight @ log_proba[np.arange(len(codes)), codes]) / row_weight.sum())


def pool(
    log_proba: np.ndarray,
    codes: np.ndarray,
    row_weight: np.ndarray,
    kind: str = "auto",
    part: float = 1.0,
) -> Pooling:
    """The weights with the least held-out loss; of kind "auto", the better of the two pools.

    Where the rows are a fraction `part` of all, the ridge is that of all rows.
    """
    kinds = KINDS if kind == "auto" else (kind,)
    fitted = [
        _log_linear(log_proba, codes, row_weight, part * RIDGE)
        if k == "log_linear"
        else _linear(log_proba, codes, row_weight)
        for k in kinds
    ]
    return min(fitted, key=lambda pooling: pooling.loss)


def _log_linear(
    log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray, ridge_rows: float
) -> Pooling:
    clipped, share, at = (
        np.maximum(log_proba, LOWEST),
        row_weight / row_weight.sum(),
        np.arange(len(codes)),
    )
    own = clipped[:, at, codes] @ share  # (L,)
    n_members, ridge = len(log_proba), ridge_rows / row_weight.sum()

    def objective(weight: np.ndarray) -> tuple[np.ndarray, float]:
        scores = np.tensordot(weight, clipped, axes=1)
        log_total = logsumexp(scores, axis=1)
        expected = np.exp(scores - log_total[:, None]) * share[:, None]  # (n, K)
        away = weight - weight.mean()
        gradient = own - np.tensordot(clipped, expected, axes=2) - PRICE - 2 * ridge * away
        return gradient, float(
            weight @ own - share @ log_total - PRICE * weight.sum() - ridge * away @ away
        )

    weight = maximize(
        objective, np.full(n_members, 1 / n_members), max_iter=200, bounds=[(0, None)] * n_members
    ).point
    if 0 < np.count_nonzero(weight >= SMALLEST) < n_members:
        keep = weight >= SMALLEST
        weight = np.zeros(n_members)
        weight[keep] = _log_linear(log_proba[keep], codes, row_weight, ridge_rows).weight
    pooling = Pooling(weight, "log_linear", 0.0)
    return Pooling(weight, "log_linear", log_loss(pooling.log_proba(log_proba), codes, row_weight))


def _linear(log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray) -> Pooling:
    clipped = np.maximum(log_proba, LOWEST)
    weight = np.asarray(stacked(clipped[:, np.arange(len(codes)), codes], row_weight))
    weight = np.where(weight >= SMALLEST, weight, 0.0)
    pooling = Pooling(weight / weight.sum(), "linear", 0.0)
    return Pooling(
        pooling.weight, "linear", log_loss(pooling.log_proba(log_proba), codes, row_weight)
    )
