"""Whether probabilities can be taken at their word."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ....arrays import to_numpy
from ....errors import KernelpoolError
from ....inspection.metrics import N_BINS, bin_sums, binomial_interval
from .style import DARK, GRAY, axes_for, codes_of, color_of, tidy


@dataclass(eq=False, repr=False)
class CalibrationDisplay:
    """Whether probabilities can be taken at their word: how often labels are right against how sure the model is of them.

    Rows are put into bins by probability; above, how many rows each bin holds. The expected calibration error (ECE) is the mean
    distance from the diagonal, weighed by rows.

    Parameters
    ----------
    confidence : ndarray of shape (n_bins,)
        Mean probability in each bin that holds a row.
    accuracy : ndarray of shape (n_bins,)
        Share of its rows for which the event came true.
    counts : ndarray of shape (n_bins,)
        Its rows.
    edges : ndarray of shape (n_bins, 2)
        Where it begins and ends.
    event : str
        What was predicted: "the label is right", or a class.
    name : str or None, default=None
        Of the model.

    Attributes
    ----------
    ece : float
        Expected calibration error.
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    counts_ax_ : matplotlib axes
        Those of the counts.
    line_, bars_ : matplotlib artists
        The points with their 95 % intervals, and the counts.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray
    edges: np.ndarray
    event: str = "the label is right"
    name: str | None = None

    @property
    def ece(self) -> float:
        """Expected calibration error: how far accuracy and confidence of a bin are apart, a mean over the rows."""
        return float(self.counts @ np.abs(self.accuracy - self.confidence) / self.counts.sum())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        n_bins: int = N_BINS,
        strategy: str = "uniform",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of a fitted classifier on rows that it was not fitted to.

        Parameters
        ----------
        estimator : classifier
            Any fitted classifier with `predict_proba`, of any number of classes.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        pos_label : label or None, default=None
            The class whose probability is judged. None judges that of the most probable class of each row.
        n_bins : int, default=10
            Bins.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of about as many rows each.
        name : str or None, default=None
            What the legend calls the model.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure. The counts stand above them.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : CalibrationDisplay
            Drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise KernelpoolError(
                f"CalibrationDisplay needs predict_proba; {type(estimator).__name__} has none."
            )
        probability, classes = to_numpy(estimator.predict_proba(X)), np.asarray(estimator.classes_)
        return cls.from_predictions(
            y,
            probability,
            classes,
            pos_label=pos_label,
            n_bins=n_bins,
            strategy=strategy,
            name=name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: np.ndarray,
        classes: Any,
        *,
        pos_label: Any = None,
        n_bins: int = N_BINS,
        strategy: str = "uniform",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        probability : array-like of shape (n_samples, n_classes)
            Probabilities in the order of `classes`.
        classes : array-like of shape (n_classes,)
            Labels of the classes.
        pos_label, n_bins, strategy, name, ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        display : CalibrationDisplay
            Drawn.
        """
        if strategy not in ("uniform", "quantile") or n_bins < 1:
            raise KernelpoolError(
                f"strategy must be 'uniform' or 'quantile', n_bins at least 1; got {strategy!r}, {n_bins}."
            )
        probability, classes = np.asarray(probability, dtype=np.float64), np.asarray(classes)
        codes = codes_of(y_true, classes)
        if pos_label is None:
            event, sure, right = (
                "the label is right",
                probability.max(axis=1),
                probability.argmax(axis=1) == codes,
            )
        else:
            at = codes_of([pos_label], classes)[0]
            if at < 0:
                raise KernelpoolError(
                    f"pos_label must be one of the classes {classes.tolist()}; got {pos_label!r}."
                )
            event, sure, right = f"class {pos_label}", probability[:, at], codes == at
        edges = np.linspace(0, 1, n_bins + 1)
        if strategy == "quantile":
            edges = np.unique(np.quantile(sure, edges))
            edges = edges if len(edges) > 1 else np.array([edges[0], edges[0]])
        sums = bin_sums(sure, right, edges)
        kept = sums[:, 0] > 0
        counts, mean = sums[kept, 0].astype(int), sums[kept, 1:] / sums[kept, :1]
        bins = np.column_stack([edges[:-1], edges[1:]])[kept]
        return cls(mean[:, 0], mean[:, 1], counts, bins, event, name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, color: int = 0, doubt: float = 0.05) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure.
        color : int, default=0
            Which of the colors to take.
        doubt : float, default=0.05
            One minus the confidence of the intervals.

        Returns
        -------
        display : CalibrationDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, (4.6, 4.8))
        self.figure_ = self.ax_.figure
        low, high = binomial_interval(np.rint(self.accuracy * self.counts), self.counts, doubt)
        reach = np.clip([self.accuracy - low, high - self.accuracy], 0, None)
        self.ax_.plot(
            [0, 1],
            [0, 1],
            color=GRAY,
            linewidth=1.2,
            linestyle="--",
            label="probabilities are right",
        )
        kwargs = {"linewidth": 1.2, "elinewidth": 1.6, "capsize": 3, "markersize": 6}
        label = f"{self.name}: ECE {self.ece:.3f}" if self.name else f"ECE {self.ece:.3f}"
        shade = color_of(color)
        self.line_ = self.ax_.errorbar(
            self.confidence,
            self.accuracy,
            yerr=reach,
            fmt="o-",
            color=shade,
            ecolor=shade,
            label=label,
            **kwargs,
        )
        lowest = min(self.edges[0, 0], max(0.0, float(low.min()) - 0.05))
        what = (
            "probability of the label"
            if self.event == "the label is right"
            else f"probability of {self.event}"
        )
        self.ax_.set(
            xlabel=what,
            ylabel=f"share of rows: {self.event}",
            xlim=(lowest, 1.01),
            ylim=(lowest, 1.02),
        )
        self.ax_.legend(frameon=False, loc="upper left")
        tidy(self.ax_)
        self._draw_counts(shade)
        return self

    def _draw_counts(self, shade: str) -> None:
        self.counts_ax_ = self.ax_.inset_axes([0, 1.04, 1, 0.17], sharex=self.ax_)
        width = np.maximum(self.edges[:, 1] - self.edges[:, 0], 1e-3)
        self.bars_ = self.counts_ax_.bar(
            self.edges[:, 0],
            self.counts,
            width,
            align="edge",
            color=shade,
            edgecolor="white",
            alpha=0.75,
        )
        self.counts_ax_.tick_params(labelbottom=False, labelsize=8)
        self.counts_ax_.set_ylabel("rows", color=DARK)
        self.counts_ax_.set_yticks([0, int(self.counts.max())])
        tidy(self.counts_ax_)
