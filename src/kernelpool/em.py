"""The driver: repeat a sweep until the objective stops improving.

Iterate `sweep(params) -> (new_params, objective(params))` until convergence. Parameters are opaque.
The objective returned belongs to the *input* of the sweep; `Fit` stores the two together.

An accelerator may propose longer steps, and a repair may move kernels without rows. Every proposal
is evaluated by the next sweep and taken back if the objective fell, so the history never falls.
(Where a plain step itself may lower the objective, as under the overlap penalty, the history shows
it and the best parameters are returned.)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Protocol, TypeVar

P = TypeVar("P")


class Accelerator(Protocol[P]):
    """What proposes longer steps."""

    def propose(self, params: P, better: P) -> P | None:
        """Parameters beyond the plain step `params` -> `better`; None where a plain step is due."""

    def reject(self) -> None:
        """The objective fell at the proposal."""


class Outcome(Enum):
    """How a run of EM ended; the text says what to do about it."""

    CONVERGED = "the objective settled"
    MAX_ITER = (
        "EM stopped after max_iter={max_iter} sweeps; the objective was still rising by "
        "{change:.2g} per row. Raise max_iter, or tol."
    )
    STOPPED = "a callback asked to stop after {n_sweeps} sweeps"
    INTERRUPTED = "interrupted after {n_sweeps} sweeps; the best parameters so far were kept"
    FELL = (
        "the objective fell by {change:.2g} per row at sweep {n_sweeps}, which the M-step of this "
        "model should not allow; the parameters before it were kept. Please report it."
    )


@dataclass
class Fit(Generic[P]):
    """Parameters, their own objective, and how they came about."""

    params: P
    objective: float = -float("inf")
    """Objective per row of `params` themselves, not of the ones before."""
    history: list[float] = field(default_factory=list)
    """Objective per row of every set of parameters that was kept, in order."""
    n_sweeps: int = 0
    """Sweeps over the rows, those of rejected proposals included."""
    change: float = float("inf")
    best: tuple[P, float] = field(default=(None, -float("inf")), repr=False)  # type: ignore[assignment]
    """The highest parameters and their objective: the last ones, where plain steps cannot fall."""
    outcome: Outcome = Outcome.STOPPED

    def sentence(self, max_iter: int) -> str:
        """The outcome in words."""
        return self.outcome.value.format(
            max_iter=max_iter, change=abs(self.change), n_sweeps=self.n_sweeps
        )


@dataclass
class Stop:
    """When to stop."""

    max_iter: int = 100
    tol: float = 1e-5
    """What a sweep must add to the objective per row."""
    monotone: bool = True
    """Whether plain steps cannot lower the objective; if they can, they are made all the same and
    the best is kept.
    """
    eps: float = 1e-10
    """A fall smaller than this part of the objective is rounding, not a fall."""
    noise: float = 0.0
    """A fall per row smaller than this is what rounding makes of a step where the objective has
    settled.
    """


def em(
    sweep: Callable[[P], tuple[P, float]],
    start: P,
    stop: Stop,
    *,
    accelerator: Accelerator[P] | None = None,
    repair: Callable[[P], P | None] | None = None,
    on_sweep: Callable[[Fit[P]], bool] | None = None,
) -> Fit[P]:
    """Iterate `sweep(params) -> (better, objective of params)` from `start`.

    `repair(params)` is asked when the objective has settled; what it proposes is kept if the
    objective rises by more than the tolerance. `on_sweep(fit)` may return True to stop.
    """
    fit: Fit[P] = Fit(start)
    try:
        _iterate(fit, sweep, stop, accelerator, repair, on_sweep)
    except KeyboardInterrupt:
        if not fit.history:
            raise
        fit.outcome = Outcome.INTERRUPTED
    fit.params, fit.objective = fit.best
    return fit


def _iterate(
    fit: Fit[P],
    sweep: Callable[[P], tuple[P, float]],
    stop: Stop,
    accelerator: Accelerator[P] | None,
    repair: Callable[[P], P | None] | None,
    on_sweep: Callable[[Fit[P]], bool] | None,
) -> None:
    proposal: P | None = None  # the next parameters, unless they are a plain step
    repaired = False
    better, fit.objective = sweep(fit.params)
    fit.history.append(fit.objective)
    fit.best = fit.params, fit.objective
    if on_sweep is not None and on_sweep(fit):
        return
    while fit.n_sweeps < stop.max_iter:
        trial = better if proposal is None else proposal
        trial_better, objective = sweep(trial)
        fit.n_sweeps += 1
        # a repair that gains nothing would be proposed again for ever
        gain = stop.tol if repaired else -stop.eps * (1 + abs(fit.objective))
        fell = not objective >= fit.objective + gain  # NaN falls too
        if fell and proposal is not None:
            if accelerator is not None:
                accelerator.reject()
            if repaired:  # the plain steps had settled before
                fit.outcome = Outcome.CONVERGED
                return
            proposal = None
            continue
        change = objective - fit.objective
        plain = proposal is None
        fit.change = change
        if fell and (stop.monotone or change != change):
            fit.outcome = Outcome.CONVERGED if change > -max(stop.tol, stop.noise) else Outcome.FELL
            return
        fit.params = trial
        fit.objective = objective
        better = trial_better
        fit.history.append(objective)
        if stop.monotone or objective >= fit.best[1]:
            fit.best = trial, objective
        if on_sweep is not None and on_sweep(fit):
            fit.outcome = Outcome.STOPPED
            return
        proposal = None
        repaired = False
        if (change if stop.monotone else abs(change)) < stop.tol:
            if not plain:
                # a proposal that gained little says nothing of the plain step from here: try that
                continue
            proposal = repair(fit.params) if repair is not None else None
            repaired = proposal is not None
            if proposal is None:
                fit.outcome = Outcome.CONVERGED
                return
        elif accelerator is not None:
            proposal = accelerator.propose(fit.params, better)
    fit.outcome = Outcome.CONVERGED if abs(fit.change) < stop.tol else Outcome.MAX_ITER


def best_of(fits: list[Fit[P]]) -> Fit[P]:
    """The run that ended highest."""
    return max(fits, key=lambda fit: fit.objective)
