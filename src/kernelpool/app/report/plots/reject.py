"""What refusing doubtful rows buys."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ....errors import KernelpoolError
from ....estimators.reject import RejectClassifier
from ....inspection.metrics import CoverageCurve, binomial_interval
from .style import DARK, GRAY, axes_for, color_of, tidy


@dataclass(eq=False, repr=False)
class RejectCurveDisplay:
    """What refusing doubtful rows buys: the error of accepted rows against the share that is accepted.

    Parameters
    ----------
    coverage, error : ndarray of shape (n_thresholds,)
        Shares, rising with coverage.
    n_rows : int
        Rows behind them.
    point : tuple of float or None, default=None
        Coverage and error at the thresholds in use.
    name : str or None, default=None
        Of the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    line_, band_, point_ : matplotlib artists
        The curve, its 95 % intervals, and the thresholds in use or None.
    """

    coverage: np.ndarray
    error: np.ndarray
    n_rows: int
    point: tuple[float, float] | None = None
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier on rows that it was not fitted to.

        Parameters
        ----------
        estimator : classifier
            Any fitted classifier with `predict_proba`. Of a `RejectClassifier` the thresholds in use are marked as well, and
            rows that it finds novel are never accepted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        name : str or None, default=None
            What the legend calls the curve.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : RejectCurveDisplay
            Drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise KernelpoolError(
                f"RejectCurveDisplay needs predict_proba; {type(estimator).__name__} has none."
            )
        plain = not isinstance(estimator, RejectClassifier)
        model = RejectClassifier(estimator).fit(X, y) if plain else estimator
        curve: CoverageCurve = model.coverage_curve(X, y)
        if not len(curve.coverage):
            raise KernelpoolError(
                "Every row is novel to the model, so that there is no curve to draw. Lower its novelty."
            )
        point = None
        if not plain and (accepted := model.accepted(X)).any():
            point = float(accepted.mean()), 1 - model.score(X, y)
        return cls(curve.coverage, curve.error, len(np.asarray(y)), point, name).plot(
            ax=ax, **kwargs
        )

    def plot(
        self, ax: Any = None, *, references: bool = True, color: int = 0, doubt: float = 0.05
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure. Curves of several models may share axes.
        references : bool, default=True
            Whether to draw what a random and a perfect order of the rows would give.
        color : int, default=0
            Which of the colors to take.
        doubt : float, default=0.05
            One minus the confidence of the band.

        Returns
        -------
        display : RejectCurveDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, (5.6, 3.8))
        self.figure_ = self.ax_.figure
        shown = self._thinned()
        coverage, error = 100 * self.coverage[shown], 100 * self.error[shown]
        n = np.rint(self.coverage[shown] * self.n_rows)
        wrong = np.rint(self.error[shown] * n)
        low, high = binomial_interval(wrong, n, doubt)
        shade = color_of(color)
        self.band_ = self.ax_.fill_between(
            coverage, 100 * low, 100 * high, color=shade, alpha=0.18, linewidth=0
        )
        label = self.name or "least doubtful rows first"
        (self.line_,) = self.ax_.plot(coverage, error, color=shade, linewidth=2.2, label=label)
        if references:
            self._draw_references()
        self.point_ = None
        if self.point is not None:
            x, e = 100 * self.point[0], 100 * self.point[1]
            kwargs = {
                "markersize": 11,
                "markeredgecolor": DARK,
                "label": f"in use: {x:.0f} % accepted, {e:.1f} % wrong",
            }
            (self.point_,) = self.ax_.plot(x, e, "*", color=color_of(color + 1), zorder=5, **kwargs)
        top = max(
            100 * self.error[-1], 100 * self.error[self.coverage > 0.2].max(initial=0.0), 1e-9
        )
        self.ax_.set(xlabel="rows accepted, %", ylabel="error of accepted rows, %", xlim=(0, 101))
        self.ax_.set_ylim(
            0, max(1.6 * top, self.ax_.get_ylim()[1] if len(self.ax_.lines) > 4 else 0)
        )
        self.ax_.legend(frameon=False, loc="upper left")
        tidy(self.ax_)
        return self

    def _thinned(self) -> np.ndarray:
        """About 300 places along the curve, its ends among them."""
        wanted = np.linspace(self.coverage[0], self.coverage[-1], 300)
        return np.unique(np.minimum(np.searchsorted(self.coverage, wanted), len(self.coverage) - 1))

    def _draw_references(self) -> None:
        total, end = float(self.error[-1]), float(self.coverage[-1])
        self.ax_.axhline(
            100 * total, color=GRAY, linewidth=1.2, linestyle="--", label="rows in random order"
        )
        coverage = np.linspace(0.01, end, 200)
        right = end * (1 - total)
        ideal = np.maximum(0, coverage - right) / coverage
        self.ax_.plot(
            100 * coverage,
            100 * ideal,
            color=GRAY,
            linewidth=1.2,
            linestyle=":",
            label="errors last",
        )
