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
        ``means_``, ``covariances_`` and ``mixing_`` as they would be if the fit stopped now.
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
    """Reports each sweep: to the user's callback, to scikit-learn's callbacks, and on the screen.

    A training opens it by `fitting`, which says how parameters are described, and each start by
    `start`.

    Parameters
    ----------
    estimator : estimator, default=None
        The one whose `verbose`, `callback` and callbacks of scikit-learn apply; None for no
        reports.
    X, y, sample_weight : array-like
        As passed to its `fit`.
    attributes : callable
        Makes the attributes of an estimator that stops now of the parameters in training.
    """

    def __init__(
        self,
        estimator: Any = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        attributes: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._task_kwargs = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._estimator = estimator
        self._attributes = attributes
        self._context: Any = None
        """Of scikit-learn's callbacks."""

    @contextmanager
    def fitting(
        self,
        n_starts: int,
        parameters: Callable[[Any], dict[str, Any]],
        constants: dict[str, Any],
        log_volume: float = 0.0,
    ) -> Iterator[None]:
        """A fit of `n_starts` starts.

        `parameters` describes what EM iterates, in the units of the data; `constants` are the
        fitted attributes that are known already. Objectives are those in a frame of volume
        `log_volume`.
        """
        self._parameters = parameters
        self._constants = constants
        self._log_volume = log_volume
        self._n_starts = n_starts
        new_context = getattr(self._estimator, "_init_callback_context", None)
        if new_context is not None:
            self._context = new_context(max_subtasks=n_starts)
        with self._task(self._context):
            yield

    @contextmanager
    def start(self, index: int) -> Iterator[OnSweep]:
        """A start begins; what is given is to be called after each of its sweeps."""
        context = self._context
        if context is not None:
            context = context.subcontext(task_name="start", max_subtasks=None)
        with self._task(context):
            yield partial(self._sweep, index, context)

    @contextmanager
    def _task(self, context: Any) -> Iterator[None]:
        """A task of scikit-learn's callbacks, which ends unless there is an error."""
        if context is None:
            yield
            return
        context.call_on_fit_task_begin(**self._task_kwargs)
        yield
        context.call_on_fit_task_end(**self._task_kwargs)

    def _sweep(self, index: int, context: Any, fit: Fit[Any]) -> bool:
        estimator = self._estimator
        objective = fit.objective - self._log_volume
        stop = False
        if estimator is None:
            return False
        title = f"{type(estimator).__name__} {index + 1}/{self._n_starts}"
        print_sweep(estimator.verbose, title, fit.n_sweeps, objective, fit.change)
        parameters = partial(self._parameters, fit.params)
        if estimator.callback is not None:
            info = SweepInfo(index, fit.n_sweeps, objective, fit.change, parameters())
            stop = bool(estimator.callback(info))
        if context is not None:
            task = context.subcontext(task_name="sweep")
            task.call_on_fit_task_begin(**self._task_kwargs)
            # made only if a callback asks
            attributes = lambda: self._attributes({**parameters(), **self._constants})  # noqa: E731
            stop |= task.call_on_fit_task_end(
                **self._task_kwargs, reconstruction_attributes=attributes
            )
        return bool(stop)


def warn_if_unfinished(fit: Fit[Any], max_iter: int, fell: str | None = None) -> None:
    """Says so if a fit did not end as it should; `fell` is what to say of an objective that fell,
    if not the usual.
    """
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt(fit.sentence(max_iter))
    if fit.outcome not in (Outcome.CONVERGED, Outcome.STOPPED):
        warn(
            fell if fell and fit.outcome is Outcome.FELL else fit.sentence(max_iter),
            UnfinishedWarning,
        )
