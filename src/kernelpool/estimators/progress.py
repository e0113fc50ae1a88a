"""What is told of a fit while it runs: the user's callback, scikit-learn's callbacks, and a progress bar."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

__all__ = ["CallbackSupportMixin", "Progress", "SweepInfo", "with_callbacks"]

try:  # scikit-learn 1.9 brought callbacks
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""
        return method


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
    """Lines on the screen while EM runs: a bar where rich is installed, plain lines otherwise, nothing when not verbose."""

    def __init__(self, verbose: int, n_starts: int, max_iter: int, title: str) -> None:
        self.verbose, self.n_starts, self.max_iter, self.title = verbose, n_starts, max_iter, title
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self.verbose:
            try:
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
            except ImportError:
                return self
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("sweeps"))
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
                f"{self.title} {self._index + 1}/{self.n_starts}: sweep {n_sweeps}, objective {objective:.6f} ({change:+.1e})"
            )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
