r"""Thresholds from held-out rows: how ambiguous, and how unlike the training rows, a labeled row may be.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory 16(1), 1970: the rule.
V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer 2005: the ranks of exchangeable rows.

.. math::

    \text{refuse } x \text{ if } \max_k P(C_k|x) < 1 - t, \qquad \text{cost}(t) = E(t) + t R(t)

| paper | here |
|---|---|
| t | `threshold` of ambiguity; the cost of a refusal where an error costs one |
| 1 - m(x) | `ambiguity` of a row: see `kernelpool.inspection.metrics.ambiguity_of` |
| E, R | share of errors, share of refusals, over all rows |

Departures: a threshold is a value that a held-out row has, and a row that equals it is accepted.
A row of weight two counts as two rows.
"""

import numpy as np

from ..errors import warn

NOTHING_BELOW = float(np.finfo(np.float64).min)
"""A threshold of log-density under which only rows of no density fall."""

REFUSE_ALL, REFUSE_NONE = -1.0, 1.0
"""Thresholds of ambiguity beyond what a row may have, in [0, 1]."""


def is_novel(score: np.ndarray, threshold: float | None) -> np.ndarray:
    """Whether the log-density is below the threshold, (n,); minus infinity and NaN are below any."""
    return np.zeros(len(score), bool) if threshold is None else ~(score >= threshold)


# -- thresholds -------------------------------------------------------------------------------------------------------


def novelty_threshold(rate: float, score: np.ndarray, weight: np.ndarray) -> float:
    """The log-density below which at most the share `rate` of ordinary rows lies, from those of held-out rows."""
    score = np.where(np.isnan(score), -np.inf, score)
    _warn_if_too_few("novelty", rate, weight.sum())
    no_density = float(weight[score == -np.inf].sum() / weight.sum())
    if no_density > rate:
        warn(
            f"{100 * no_density:.1f} % of the held-out rows have no density at all and count as novel, "
            f"more than novelty={rate}. Use wider kernels, or kernels that reach everywhere, such as "
            "kernel='gaussian'.",
            UserWarning,
        )
    return max(-rate_threshold(-score, weight, rate), NOTHING_BELOW)


def ambiguity_threshold(
    value: float, rule: str, ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray
) -> float:
    """The ambiguity above which a row is refused, from those of held-out rows and whether each is misclassified."""
    if rule == "rate":
        _warn_if_too_few("ambiguity", value, weight.sum())
        return min(rate_threshold(ambiguity, weight, value), REFUSE_NONE)
    find = {"cost": cost_threshold, "error": error_threshold}[rule]
    threshold = find(ambiguity, wrong, weight, value)
    if threshold == REFUSE_ALL:
        warn(
            f"No held-out row is certain enough for ambiguity={value} with ambiguity_rule={rule!r}: "
            "every row will be refused. Raise it, or use a better classifier.",
            UserWarning,
        )
    return threshold


def _warn_if_too_few(name: str, rate: float, n_rows: float) -> None:
    if rate > 0 and rate * (n_rows + 1) < 1:
        warn(
            f"{name}={rate} needs at least {int(np.ceil(1 / rate)) - 1} held-out rows to set a threshold; there are "
            f"{n_rows:.0f}, so that no row is refused for it. Raise {name}, or pass more rows.",
            UserWarning,
        )


def rate_threshold(values: np.ndarray, weight: np.ndarray, rate: float) -> float:
    """The least of `values` that a new row of the same law exceeds with a probability of at most `rate`; inf if there is none.

    The new row is as likely as any to be the largest, the second largest and so on of all n + 1. So it exceeds the j-th
    largest value with a probability of at most j / (n + 1).
    """
    level, up_to, _ = accepted_up_to(values, np.zeros(len(values)), weight)
    enough = up_to[-1] - up_to + 1 <= rate * (up_to[-1] + 1)
    return float(level[np.argmax(enough)]) if enough.any() else float("inf")


def cost_threshold(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, cost: float
) -> float:
    """Least E + t R: the threshold with the least mean cost; of several, the one that refuses least."""
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight)
    costs = np.concatenate([[weight.sum()], weight.sum() - accepted]) * cost + np.concatenate(
        [[0.0], errors]
    )
    return _after(level, len(level) - int(np.argmin(costs[::-1])))


def error_threshold(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, error: float
) -> float:
    """The threshold that accepts the most rows of which at most the share `error` is wrong."""
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight)
    good = np.flatnonzero(errors <= error * accepted)
    return _after(level, int(good[-1]) + 1 if len(good) else 0)


def _after(level: np.ndarray, n_accepted: int) -> float:
    """The threshold that accepts the first so many levels; all of them: also rows more ambiguous than any seen."""
    if n_accepted == len(level):
        return REFUSE_NONE
    return float(level[n_accepted - 1]) if n_accepted else REFUSE_ALL


def accepted_up_to(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct ambiguities, rising, with the weight of the rows up to each and of the errors among them."""
    counted = weight > 0
    level, at = np.unique(ambiguity[counted], return_inverse=True)
    accepted = np.bincount(at, weight[counted], minlength=len(level))
    errors = np.bincount(at, weight[counted] * wrong[counted], minlength=len(level))
    return level, np.cumsum(accepted), np.cumsum(errors)
