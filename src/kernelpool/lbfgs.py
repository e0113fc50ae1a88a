"""L-BFGS on a network's coordinates.

Liu & Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical
Programming 45, 1989. The steps are SciPy's (`scipy.optimize.minimize`, method L-BFGS-B, which takes
bounds on coordinates as well). Added here: the best point so far is kept, a callback may end the
search, and an interruption (Ctrl-C) loses nothing.

Points are vectors on the host: parameters are few, whatever the number of rows and wherever these
live.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.optimize import OptimizeResult, minimize

from .arrays import Array
from .em import Outcome

Objective = Callable[[Array], tuple[Array, float]]
"""(gradient, objective) at a point, as `Network.gradient` returns them."""


@dataclass(frozen=True)
class Maximum:
    """The highest point evaluated."""

    point: Array
    objective: float
    n_steps: int
    """Steps made, each of one or more evaluations."""
    outcome: Outcome
    history: tuple[float, ...] = field(repr=False)
    """The objective at the start and after every step; it never falls."""


class _Ended(Exception):  # noqa: N818
    """The callback asked to end."""


def maximize(
    objective: Objective,
    start: Array,
    *,
    max_iter: int = 100,
    tol: float = 1e-9,
    gradient_tol: float = 1e-12,
    memory: int = 10,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
    on_step: Callable[[Array, float], bool] | None = None,
) -> Maximum:
    """Climb from `start` until a step gains less than `tol` of the objective, or `max_iter` steps
    are made.

    It ends as well where no component of the gradient exceeds `gradient_tol`.

    `on_step(point, objective)` is called at the start and after every step; True ends the search.
    An exception that is not an interruption passes through.
    """
    best: dict[str, Any] = {"x": start, "fun": float("inf")}
    history: list[float] = []

    def descend(point: Array) -> tuple[float, Array]:
        gradient, value = objective(point)
        loss = -value if value == value else float("inf")
        if loss < best["fun"]:
            best.update(x=point.copy(), fun=loss)
        if not history:
            step(OptimizeResult(x=point, fun=loss))
        return loss, -gradient

    def step(intermediate_result: Any) -> None:
        value = -float(intermediate_result.fun)
        history.append(value)
        if on_step is not None and on_step(intermediate_result.x.copy(), value):
            raise _Ended

    try:
        limits = {"maxiter": max_iter, "maxfun": 20 * max_iter + 20, "maxcor": memory}
        options = {**limits, "ftol": tol, "gtol": gradient_tol}
        result = minimize(
            descend,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=step,
            options=options,
        )
        settled = len(history) - 1 < max_iter or result.success
        outcome = Outcome.CONVERGED if settled else Outcome.MAX_ITER
    except _Ended:
        outcome = Outcome.STOPPED
    except KeyboardInterrupt:
        if not history:
            raise
        outcome = Outcome.INTERRUPTED
    return Maximum(best["x"], -float(best["fun"]), len(history) - 1, outcome, tuple(history))
