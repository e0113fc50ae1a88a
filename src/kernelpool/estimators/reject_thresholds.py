"""What a `RejectClassifier` takes from its parameters and from held-out rows: the labels of refusal, and the thresholds."""

from typing import Any

import numpy as np

from ..errors import KernelpoolError, warn
from .reject_fitting import HeldOut
from .reject_rules import NOTHING_BELOW, REFUSE_ALL, REFUSE_NONE, cost_threshold, error_threshold, rate_threshold


def refusal_label(name: str, given: Any, below: int, word: str, classes: np.ndarray) -> Any:
    """The label that is given; or, where classes are numbers, so far `below` all of them, else `word`."""
    numbers, taken = classes.dtype.kind in "biuf", classes.tolist()
    if given is not None and isinstance(given, str) == numbers:
        wanted = "a number" if numbers else "a string"
        raise KernelpoolError(f"{name} must be {wanted}, as the classes are; got {given!r}.")
    if given is not None and given in taken:
        raise KernelpoolError(f"{name} must not be one of the classes {taken}; got {given!r}.")
    if given is not None:
        return given
    kind = float if classes.dtype.kind == "f" else int
    found = kind(np.floor(min(float(classes.min()), 0.0))) - below if numbers else word
    if found in taken:
        raise KernelpoolError(f"A class is called {found!r}: name another {name}.")
    return found


def novelty_threshold(reject: Any, held_out: HeldOut | None) -> float:
    """The log-density below which a row is novel."""
    value = float(reject.novelty)
    if reject.novelty_rule == "threshold" or held_out is None:
        return max(value, NOTHING_BELOW)
    weight, score = held_out.weight, np.where(np.isnan(held_out.score), -np.inf, held_out.score)
    _check_enough("novelty", value, weight.sum())
    nowhere = float(weight[score == -np.inf].sum() / weight.sum())
    if nowhere > value:
        warn(
            f"{100 * nowhere:.1f} % of the held-out rows have no density at all and count as novel, more than "
            f"novelty={value}. Use wider kernels, or kernels that reach everywhere, such as kernel='gaussian'.",
            UserWarning,
        )
    return max(-rate_threshold(-score, weight, value), NOTHING_BELOW)


def ambiguity_threshold(reject: Any, held_out: HeldOut | None) -> float:
    """The ambiguity above which a row is refused; novelty has been settled before."""
    value = float(reject.ambiguity)
    if reject.ambiguity_rule == "threshold" or held_out is None:
        return value
    if reject.ambiguity_rule == "rate":
        _check_enough("ambiguity", value, held_out.weight.sum())
        return min(rate_threshold(held_out.ambiguity, held_out.weight, value), REFUSE_NONE)
    # rows without a label of their own, and novel ones, tell nothing about errors among the accepted
    counted = np.isin(held_out.label, reject.classes_) & ~reject._novel(held_out.score)
    rule = cost_threshold if reject.ambiguity_rule == "cost" else error_threshold
    wrong, weight = held_out.wrong[counted], held_out.weight[counted]
    threshold = rule(held_out.ambiguity[counted], wrong, weight, value)
    if threshold == REFUSE_ALL:
        aim = f"ambiguity={value} with ambiguity_rule={reject.ambiguity_rule!r}"
        advice = "Raise it, or use a better classifier."
        warn(f"No held-out row is sure enough for {aim}: every row will be refused. {advice}", UserWarning)
    return threshold


def _check_enough(name: str, rate: float, n_rows: float) -> None:
    if rate > 0 and rate * (n_rows + 1) < 1:
        warn(
            f"{name}={rate} needs at least {int(np.ceil(1 / rate)) - 1} held-out rows to set a threshold; there are "
            f"{n_rows:.0f}, so that no row is refused for it. Raise {name}, or pass more rows.",
            UserWarning,
        )
