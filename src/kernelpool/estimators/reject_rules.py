r"""Thresholds from held-out rows: how doubtful and how unlike the rest a row may be before it is refused a label.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory 16(1), 1970: the rule.
V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer 2005: the ranks of exchangeable rows.

.. math::

    \text{refuse } x \text{ if } \max_k P(C_k|x) < 1 - t, \qquad \text{cost}(t) = E(t) + t R(t)

| paper | here |
|---|---|
| t | `threshold` of ambiguity; the cost of a refusal where an error costs one |
| 1 - m(x) | `ambiguity` of a row, the sum of all its probabilities but the largest |
| E, R | share of errors, share of refusals, over all rows |

Ambiguity is that of `kernelpool.inspection.metrics`. Departures: a threshold is a value that a held-out row
has, and a row that equals it is accepted. A weight says how often a row counts.
"""

import numpy as np

from ..inspection.metrics import accepted_up_to

NOTHING_BELOW = float(np.finfo(np.float64).min)
"""A threshold of log-density under which only rows of no density fall."""

REFUSE_ALL, REFUSE_NONE = -1.0, 1.0
"""Thresholds of ambiguity beyond what a row may have, in [0, 1]."""


def rate_threshold(values: np.ndarray, weight: np.ndarray, rate: float) -> float:
    """The least of `values` that a new row of the same law exceeds with a probability of at most `rate`; inf if there is none.

    The new row is as likely as any to be the largest, the second largest and so on of all n + 1. So it exceeds the j-th
    largest value with a probability of at most j / (n + 1).
    """
    level, above, total = _tail(values, weight)
    enough = above + 1 <= rate * (total + 1)
    return float(level[np.argmax(enough)]) if enough.any() else float("inf")


def cost_threshold(ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, cost: float) -> float:
    """Least E + t R: the threshold with the least mean cost; of several, the one that refuses least."""
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight)
    costs = np.concatenate([[weight.sum()], weight.sum() - accepted]) * cost + np.concatenate([[0.0], errors])
    return _after(level, len(level) - int(np.argmin(costs[::-1])))


def error_threshold(ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, error: float) -> float:
    """The threshold that accepts the most rows of which at most the share `error` is wrong."""
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight)
    good = np.flatnonzero(errors <= error * accepted)
    return _after(level, int(good[-1]) + 1 if len(good) else 0)


def _after(level: np.ndarray, n_accepted: int) -> float:
    """The threshold that accepts the first so many levels; all of them: also rows more doubtful than any seen."""
    if n_accepted == len(level):
        return REFUSE_NONE
    return float(level[n_accepted - 1]) if n_accepted else REFUSE_ALL


def _tail(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The distinct values, rising, with the weight of the rows beyond each, and that of all."""
    level, up_to, _ = accepted_up_to(values, np.zeros(len(values)), weight)
    total = float(up_to[-1]) if len(up_to) else 0.0
    return level, total - up_to, total
