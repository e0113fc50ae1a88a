"""Reports of a fit while it runs: the user's callback, scikit-learn's callbacks, and lines on the
screen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..em import Fit, Outcome
from ..errors import UnfinishedWarning, warn
from ..records import attributes

__all__ = [
    "CallbackSupportMixin",
    "FitMonitor",
    "SweepInfo",
    "print_sweep",
    "warn_if_unfinished",
    "with_callbacks",
]

try:  # scikit-learn 1.9 brought callbacks
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""
        return method


OnSweep = Callable[[Fit[Any]], bool]
"""Called after each sweep; true if the fit is to stop."""


@dataclass(frozen=True)
class SweepInfo:
    """What a callback gets after each sweep.

    Attributes
    ----------
    start : int
        Which of the ``n_init`` starts is running, from 0.
    sweep : int
        Sweeps made from this start so far.
    objective : float
        Objective per row of the parameters that are kept now, in the units of the data.
    change : float
        What the last sweep added to it.
    parameters : dict
        ``means_``, ``covariances_``, ``mixing_`` and other fitted attributes as they would be if
        the fit stopped now.
    """

    start: int
    sweep: int
    objective: float
    change: float
    parameters: dict[str, Any]


def print_sweep(verbose: int, title: str, n_sweeps: int, objective: float, change: float) -> None:
    """One line every ten sweeps, or each sweep with `verbose` above 1; none with 0."""
    if verbose > 1 or (verbose and n_sweeps % 10 == 0):
        print(f"{title}: sweep {n_sweeps}, objective {objective:.6f} ({change:+.1e})")


class FitMonitor:
    """Reports each sweep of a fit: on the screen, to the user's callback and to scikit-learn's
    callbacks; both may end the fit.

    A training opens it by `fitting`, and each start by `start`.

    Parameters
    ----------
    estimator : estimator, default=None
        The one whose `verbose`, `callback` and callbacks of scikit-learn apply; None for no
        reports.
    X, y, sample_weight : array-like
        As passed to its `fit`, for scikit-learn's callbacks.
    """

    def __init__(
        self, estimator: Any = None, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._estimator = estimator

    @contextmanager
    def fitting(
        self, n_starts: int, fitted: Callable[[Any], Any], log_volume: float
    ) -> Iterator[None]:
        """A fit of `n_starts` starts.

        `fitted` makes the record of a fit that stops now from the parameters in training, whose
        objectives are those in a frame of volume `log_volume`.
        """
        self._n_starts = n_starts
        self._fitted = fitted
        self._log_volume = log_volume
        new_context = getattr(self._estimator, "_init_callback_context", None)
        self._context: Any = None if new_context is None else new_context(max_subtasks=n_starts)
        with self._task(self._context):
            yield

    @contextmanager
    def start(self, index: int) -> Iterator[OnSweep]:
        """A start, with the function that is to be called after each of its sweeps."""
        context = self._context
        if context is not None:
            context = context.subcontext(task_name="start", max_subtasks=None)
        with self._task(context):
            yield partial(self._sweep, index, context)

    @contextmanager
    def _task(self, context: Any) -> Iterator[None]:
        """A task of scikit-learn's callbacks, which ends unless there is an error."""
        if context is not None:
            context.call_on_fit_task_begin(**self._data)
        yield
        if context is not None:
            context.call_on_fit_task_end(**self._data)

    def _sweep(self, start: int, context: Any, fit: Fit[Any]) -> bool:
        estimator = self._estimator
        if estimator is None:
            return False
        objective = fit.objective - self._log_volume
        title = f"{type(estimator).__name__} {start + 1}/{self._n_starts}"
        print_sweep(estimator.verbose, title, fit.n_sweeps, objective, fit.change)
        fitted = partial(self._fitted, fit.params)
        stop = False
        if estimator.callback is not None:
            parameters = {f"{name}_": value for name, value in attributes(fitted()).items()}
            info = SweepInfo(start, fit.n_sweeps, objective, fit.change, parameters)
            stop = bool(estimator.callback(info))
        if context is not None:
            task = context.subcontext(task_name="sweep")
            task.call_on_fit_task_begin(**self._data)
            stop |= task.call_on_fit_task_end(
                **self._data, reconstruction_attributes=lambda: {"_fitted": fitted()}
            )
        return stop


def warn_if_unfinished(fit: Fit[Any], max_iter: int, fell: str | None = None) -> None:
    """Warn if a fit did not converge; `fell` replaces the warning of an objective that fell."""
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt(fit.sentence(max_iter))
    if fit.outcome not in (Outcome.CONVERGED, Outcome.STOPPED):
        warn(
            fell if fell and fit.outcome is Outcome.FELL else fit.sentence(max_iter),
            UnfinishedWarning,
        )
