"""What is told of a fit while it runs: the user's callback, scikit-learn's callbacks, and a
progress bar.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from ..em import Fit, Outcome
from ..errors import UnfinishedWarning, warn

__all__ = [
    "CallbackSupportMixin",
    "FitMonitor",
    "Progress",
    "SklearnCallbacks",
    "SweepInfo",
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
    """What a callback is told after each sweep.

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


class Progress:
    """Lines on the screen while EM runs: a bar where rich is installed, plain lines otherwise,
    nothing when not verbose.
    """

    def __init__(self, verbose: int, n_starts: int, max_iter: int, title: str) -> None:
        self.verbose, self.n_starts, self.max_iter, self.title = verbose, n_starts, max_iter, title
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self.verbose:
            try:
                from rich.progress import (
                    BarColumn,
                    MofNCompleteColumn,
                    Progress,
                    TextColumn,
                    TimeElapsedColumn,
                )
            except ImportError:
                return self
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("sweeps"),
            )
            self._bar = Progress(*columns, TextColumn("{task.fields[note]}"), TimeElapsedColumn())
            self._bar.start()
        return self

    def start(self, index: int) -> None:
        """A new start begins."""
        self._index = index
        if self._bar is not None:
            name = self.title if self.n_starts == 1 else f"{self.title} {index + 1}/{self.n_starts}"
            self._task = self._bar.add_task(name, total=self.max_iter, note="")

    def sweep(self, n_sweeps: int, objective: float, change: float) -> None:
        """One more sweep is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=n_sweeps, note=f"objective {objective:.6f}")
        elif self.verbose and (self.verbose > 1 or n_sweeps % 10 == 0):
            print(
                f"{self.title} {self._index + 1}/{self.n_starts}: sweep {n_sweeps}, objective "
                f"{objective:.6f} ({change:+.1e})"
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class SklearnCallbacks:
    """scikit-learn's callbacks of one call to `fit`, which want to know the estimator and its data.

    Parameters
    ----------
    estimator : estimator
        Whose callbacks are to be called.
    X, y, sample_weight : array-like
        As passed to its `fit`.
    fitted_attributes : callable
        Makes the attributes of an estimator that stops now of the parameters in training.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        fitted_attributes: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._new_context = getattr(estimator, "_init_callback_context", None)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._kwargs = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._fitted_attributes = fitted_attributes
        self._fit: Any = None
        self._start: Any = None

    @contextmanager
    def fitting(self, n_starts: int) -> Iterator[None]:
        """The fit begins, and ends unless there is an error."""
        if self._new_context is None:
            yield
            return
        self._fit = self._new_context(max_subtasks=n_starts)
        self._fit.call_on_fit_task_begin(**self._kwargs)
        yield
        self._fit.call_on_fit_task_end(**self._kwargs)

    @contextmanager
    def start(self) -> Iterator[None]:
        """A start begins, and ends unless there is an error."""
        if self._fit is None:
            yield
            return
        self._start = self._fit.subcontext(task_name="start", max_subtasks=None)
        self._start.call_on_fit_task_begin(**self._kwargs)
        yield
        self._start.call_on_fit_task_end(**self._kwargs)

    def sweep(self, parameters: Callable[[], dict[str, Any]]) -> bool:
        """A sweep is done; true if a callback asks to stop."""
        if self._start is None:
            return False
        context = self._start.subcontext(task_name="sweep")
        context.call_on_fit_task_begin(**self._kwargs)
        attributes = lambda: self._fitted_attributes(parameters())  # noqa: E731 (made only if a callback asks)
        return bool(
            context.call_on_fit_task_end(**self._kwargs, reconstruction_attributes=attributes)
        )


class FitMonitor:
    """Tells of each sweep: to the user's callback, to scikit-learn's callbacks, and on the screen.

    A training opens it by `fitting`, which says how parameters are described, and each start by
    `start`.
    """

    def __init__(
        self,
        title: str,
        *,
        max_iter: int,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
        sklearn_callbacks: SklearnCallbacks | None = None,
    ) -> None:
        self.title, self.max_iter, self.verbose = title, max_iter, verbose
        self._callback, self._sklearn = callback, sklearn_callbacks
        self._progress: Progress

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
        self._parameters, self._constants, self._log_volume = parameters, constants, log_volume
        tasks = nullcontext() if self._sklearn is None else self._sklearn.fitting(n_starts)
        with tasks, Progress(self.verbose, n_starts, self.max_iter, self.title) as self._progress:
            yield

    @contextmanager
    def start(self, index: int) -> Iterator[OnSweep]:
        """A start begins; what is given is to be called after each of its sweeps."""
        self._progress.start(index)
        task: AbstractContextManager[None] = (
            nullcontext() if self._sklearn is None else self._sklearn.start()
        )
        with task:
            yield partial(self._sweep, index)

    def _sweep(self, index: int, fit: Fit[Any]) -> bool:
        objective = fit.objective - self._log_volume
        self._progress.sweep(fit.n_sweeps, objective, fit.change)
        stop = False
        if self._callback is not None:
            stop = bool(
                self._callback(
                    SweepInfo(
                        index, fit.n_sweeps, objective, fit.change, self._parameters(fit.params)
                    )
                )
            )
        if self._sklearn is not None:
            stop |= self._sklearn.sweep(lambda: {**self._parameters(fit.params), **self._constants})
        return stop


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
