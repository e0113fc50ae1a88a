"""How training went."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ....estimators.competitive import CompetitiveNeuronsClassifier
from ....estimators.em_log import EMLogEstimator
from ....inspection.describe import member_name
from .style import DARK, axes_for, color_of, model_in, refuse, tidy

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


class Course(NamedTuple):
    """One line of a history."""

    name: str
    step: np.ndarray
    value: np.ndarray


@dataclass(eq=False, repr=False)
class HistoryDisplay:
    """How training went: the objective after each step, or how far it was from the best one.

    Parameters
    ----------
    courses : list of (name, step, value)
        Lines to draw.
    ylabel, xlabel : str
        What the values and the steps are.
    rising : bool, default=True
        Whether higher values are better.
    kept : int or None, default=None
        The step whose parameters were kept, where that is not the last.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    lines_ : list of matplotlib lines
        One a course.
    """

    courses: list[Course]
    ylabel: str = "objective per row"
    xlabel: str = "step"
    rising: bool = True
    kept: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted shared-kernel network, an average of them, an RBF network or a mixture of neurons; also inside a pipeline,
            a search or a `RejectClassifier`.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : HistoryDisplay
            Drawn.
        """
        return cls(**_history(model_in(estimator).inner)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, gap: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure.
        gap : bool, default=False
            Whether to draw, on a logarithmic axis, how far each value is from the best of its line; the best itself is then
            left out.

        Returns
        -------
        display : HistoryDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, (5.6, 3.6))
        self.figure_ = self.ax_.figure
        self.lines_ = []
        sign = 1 if self.rising else -1
        for i, (name, step, value) in enumerate(self.courses):
            shown = np.nanmax(sign * value) - sign * value if gap else value
            kept = shown > 0 if gap else np.isfinite(shown)
            self.lines_ += self.ax_.plot(
                step[kept],
                shown[kept],
                color=color_of(i),
                linestyle=LINES[i % len(LINES)],
                linewidth=2,
                label=name or None,
            )
            if not gap:
                self.ax_.plot(
                    step[kept][-1:], shown[kept][-1:], "o", color=color_of(i), markersize=5
                )
        if self.kept is not None:
            self.ax_.axvline(
                self.kept,
                color=DARK,
                linewidth=1.2,
                linestyle=":",
                label=f"kept: {self.xlabel} {self.kept}",
            )
        self.ax_.set(
            xlabel=self.xlabel, ylabel=f"{self.ylabel}, short of the best" if gap else self.ylabel
        )
        if gap:
            self.ax_.set_yscale("log")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        if any(name for name, *_ in self.courses) or self.kept is not None:
            self.ax_.legend(frameon=False)
        tidy(self.ax_)
        return self


def _history(model: Any) -> dict[str, Any]:
    members = getattr(model, "estimators_", None)
    if members is not None and all(hasattr(member, "history_") for member in members):
        return {"courses": [_course(member_name(member), member.history_) for member in members]}
    if hasattr(model, "radius_"):
        raise refuse(
            "HistoryDisplay", model, "its kernels are rows, and nothing is trained step by step"
        )
    if hasattr(model, "losses_"):
        raise refuse("HistoryDisplay", model, "its settings were chosen from a grid")
    if not hasattr(model, "history_"):
        raise refuse(
            "HistoryDisplay", model, "it has no history_; was it made from known parameters?"
        )
    if isinstance(model, EMLogEstimator):
        if not len(model.history_):
            raise refuse("HistoryDisplay", model, "it was trained without rows left out to watch")
        loss = (
            "log-loss"
            if getattr(model, "readout", "least_squares") != "least_squares"
            else "squared error"
        )
        kwargs = {"ylabel": f"{loss}, rows left out", "xlabel": "sweep", "rising": False}
        return {"courses": [_course("", model.history_)], "kept": int(model.best_iter_), **kwargs}
    if isinstance(model, CompetitiveNeuronsClassifier):
        steps = np.arange(len(model.history_))
        courses = [Course("objective", steps, model.history_)]
        if np.isfinite(model.bound_history_).any():
            courses.append(Course("bound", steps, model.bound_history_))
        return {"courses": courses, "xlabel": "sweep"}
    return {"courses": [_course("", model.history_)]}


def _course(name: str, value: Any) -> Course:
    return Course(name, np.arange(1, len(value) + 1), np.asarray(value, dtype=np.float64))
