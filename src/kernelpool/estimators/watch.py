"""Tells whoever listens of each sweep of a fit."""

from collections.abc import Callable
from typing import Any, Self

from ..em import Fit
from ..networks.shared_kernel import Params
from .progress import Progress, SweepInfo
from .training import Training


class Watch:
    """Tells of each sweep: to the user's callback, to scikit-learn's callbacks, and on the screen."""

    def __init__(self, estimator: Any, training: Training, n_starts: int, X: Any, y: Any, weight: Any) -> None:
        self.estimator, self.training = estimator, training
        self.progress = Progress(estimator.verbose, n_starts, estimator.max_iter, type(estimator).__name__)
        self.sent = {"X": X, "y": y, "metadata": None if weight is None else {"sample_weight": weight}}
        self.context: Any = None
        self.start_context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=n_starts)

    def __enter__(self) -> Self:
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
        self.progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.__exit__(*error)
        if self.context is not None and error[0] is None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.sent)

    def begin(self, index: int) -> Callable[[Fit[Params]], bool]:
        """A start begins; the answer is told of its sweeps."""
        self.index = index
        self.progress.start(index)
        if self.context is not None:
            self.start_context = self.context.subcontext(task_name="start", max_subtasks=None)
            self.start_context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
        return self.sweep

    def end(self) -> None:
        """A start has ended."""
        if self.start_context is not None:
            self.start_context.call_on_fit_task_end(estimator=self.estimator, **self.sent)

    def sweep(self, fit: Fit[Params]) -> bool:
        """True if somebody asks to stop."""
        objective = fit.objective - self.training.frame.log_volume
        self.progress.sweep(fit.n_sweeps, objective, fit.change)
        stop = False
        if self.estimator.callback is not None:
            info = SweepInfo(self.index, fit.n_sweeps, objective, fit.change, self._parameters(fit.params))
            stop = bool(self.estimator.callback(info))
        if self.start_context is not None:
            context = self.start_context.subcontext(task_name="sweep")
            context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
            stop |= bool(
                context.call_on_fit_task_end(
                    estimator=self.estimator, **self.sent, reconstruction_attributes=lambda: self._attributes(fit.params)
                )
            )
        return stop

    def _parameters(self, params: Params) -> dict[str, Any]:
        return dict(zip(("means_", "covariances_", "mixing_"), self.training.outside(params), strict=True))

    def _attributes(self, params: Params) -> dict[str, Any]:
        common = {
            "classes_": self.training.data.classes,
            "class_prior_": self.training.class_prior,
            "covariance_type_": self.training.kernel.name,
        }
        kept: dict[str, Any] = self.estimator._as_if_stopped({**self._parameters(params), **common})
        return kept
