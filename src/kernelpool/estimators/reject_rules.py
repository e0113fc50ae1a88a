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

Departures: ambiguity is summed from the small probabilities and not taken as 1 - max, which rounds to zero for confident rows.
A threshold is a value that a held-out row has, and a row that equals it is accepted. A weight says how often a row counts.
"""

from typing import NamedTuple

import numpy as np

NOTHING_BELOW = float(np.finfo(np.float64).min)
"""A threshold of log-density under which only rows of no density fall."""

REFUSE_ALL, REFUSE_NONE = -1.0, 1.0
"""Thresholds of ambiguity beyond what a row may have, in [0, 1]."""


class CoverageCurve(NamedTuple):
    """What is accepted, and how often that is wrong, as the threshold of ambiguity rises.

    Attributes
    ----------
    coverage : ndarray of shape (n_thresholds,)
        Share of the rows that are accepted; rises, and ends at the share that is not novel.
    error : ndarray of shape (n_thresholds,)
        Share of errors among the accepted rows.
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds: rows whose ambiguity is at most this are accepted. Rises.
    """

    coverage: np.ndarray
    error: np.ndarray
    thresholds: np.ndarray


def ambiguity_of(probability: np.ndarray) -> np.ndarray:
    """1 - m(x): the model's own probability that its label is wrong, (n,)."""
    others = np.array(probability, dtype=np.float64)
    np.put_along_axis(others, np.argmax(others, axis=1)[:, None], 0.0, axis=1)
    return np.asarray(others.sum(axis=1))


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
    level, accepted, errors = _cumulated(ambiguity, wrong, weight)
    costs = np.concatenate([[weight.sum()], weight.sum() - accepted]) * cost + np.concatenate([[0.0], errors])
    return _after(level, len(level) - int(np.argmin(costs[::-1])))


def error_threshold(ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, error: float) -> float:
    """The threshold that accepts the most rows of which at most the share `error` is wrong."""
    level, accepted, errors = _cumulated(ambiguity, wrong, weight)
    good = np.flatnonzero(errors <= error * accepted)
    return _after(level, int(good[-1]) + 1 if len(good) else 0)


def _after(level: np.ndarray, n_accepted: int) -> float:
    """The threshold that accepts the first so many levels; all of them: also rows more doubtful than any seen."""
    if n_accepted == len(level):
        return REFUSE_NONE
    return float(level[n_accepted - 1]) if n_accepted else REFUSE_ALL


def coverage_curve(ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, novel: np.ndarray) -> CoverageCurve:
    """Every threshold that makes a difference; novel rows are never accepted, and count among all."""
    kept = ~novel & (weight > 0)
    level, accepted, errors = _cumulated(ambiguity[kept], wrong[kept], weight[kept])
    return CoverageCurve(accepted / weight.sum(), errors / accepted, level)


def _cumulated(ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct ambiguities, rising, with the weight of the rows up to each and of the errors among them."""
    counted = weight > 0
    level, at = np.unique(ambiguity[counted], return_inverse=True)
    accepted = np.bincount(at, weight[counted], minlength=len(level))
    errors = np.bincount(at, weight[counted] * wrong[counted], minlength=len(level))
    return level, np.cumsum(accepted), np.cumsum(errors)


def _tail(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The distinct values, rising, with the weight of the rows beyond each, and that of all."""
    level, up_to, _ = _cumulated(values, np.zeros(len(values)), weight)
    total = float(up_to[-1]) if len(up_to) else 0.0
    return level, total - up_to, total
