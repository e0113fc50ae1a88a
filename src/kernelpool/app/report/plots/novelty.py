"""How unlike the training rows other rows are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ....arrays import to_numpy
from ....errors import KernelpoolError
from ....estimators.reject import RejectClassifier
from ....training.reject import NOTHING_BELOW
from .style import DARK, GRAY, axes_for, color_of, tidy

BINS = 40
TAIL = 0.002
"""Share of the rows at the low end that may lie out of view; they are counted in the first bar."""
HATCHES = ("", "///", "...")


@dataclass(eq=False, repr=False)
class NoveltyDisplay:
    """How unlike the training rows other rows are: histograms of log p(x), with the threshold under which rows are novel.

    The first bar also holds rows that lie lower still, and rows of no density at all; the legend counts the latter.

    Parameters
    ----------
    scores : dict of str to ndarray
        log p(x) of each set of rows, by name.
    threshold : float or None, default=None
        Rows below it are novel.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    edges_ : ndarray
        Where the bars begin and end.
    shares_ : dict of str to ndarray
        The heights of the bars: shares of all rows of each set.
    line_ : matplotlib line or None
        The threshold.
    """

    scores: dict[str, np.ndarray]
    threshold: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        X_test: Any = None,
        *,
        threshold: float | None = None,
        names: tuple[str, str] = ("training rows", "test rows"),
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a fitted density classifier makes of rows.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `score_samples`.
        X : array-like of shape (n_samples, n_features)
            Rows, as a rule those it was fitted to.
        X_test : array-like of shape (n_test_samples, n_features), default=None
            Others.
        threshold : float or None, default=None
            Log-density under which rows are novel; None takes that of a `RejectClassifier`.
        names : tuple of str, default=("training rows", "test rows")
            What the legend calls them.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : NoveltyDisplay
            Drawn.
        """
        if not hasattr(estimator, "score_samples"):
            raise KernelpoolError(
                f"NoveltyDisplay needs a classifier that knows how likely a row is (score_samples), such as "
                f"SharedKernelClassifier; {type(estimator).__name__} does not."
            )
        sets = [part for part in (X, X_test) if part is not None]
        scores = {
            name: np.asarray(to_numpy(estimator.score_samples(part)), np.float64)
            for name, part in zip(names, sets, strict=False)
        }
        if threshold is None and isinstance(estimator, RejectClassifier):
            threshold = estimator.novelty_threshold_
        return cls(scores, threshold).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, bins: int = BINS) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure.
        bins : int, default=40
            Bars of each histogram.

        Returns
        -------
        display : NoveltyDisplay
            Itself.
        """
        edges, shares, labels = self._edges(bins), {}, []
        for name, score in self.scores.items():
            nowhere = int((~np.isfinite(score)).sum())
            place = np.clip(np.where(np.isfinite(score), score, -np.inf), edges[0], edges[-1])
            shares[name] = np.histogram(place, edges)[0] / len(score)
            label = f"{name} ({len(score):,})" + (f", {nowhere:,} of no density" if nowhere else "")
            if self._visible is not None:
                label += f": {100 * np.mean(~(score >= self._visible)):.1f} % novel"
            labels.append(label)
        return self.plot_histograms(ax, edges, shares, labels=labels)

    def plot_histograms(
        self,
        ax: Any,
        edges: np.ndarray,
        shares: dict[str, np.ndarray],
        bound: float | None = None,
        labels: Sequence[str] | None = None,
    ) -> Self:
        """Draw what has been counted already.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where; None makes a figure.
        edges : ndarray of shape (n_bins + 1,)
            Where bars begin and end.
        shares : dict of str to ndarray of shape (n_bins,)
            Heights of the bars of each set of rows, by name.
        bound : float or None, default=None
            Another log-density to mark.
        labels : sequence of str or None, default=None
            What the legend calls the sets; None takes their names.

        Returns
        -------
        display : NoveltyDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, (6.0, 3.8))
        self.figure_, self.edges_, self.shares_, self.line_ = self.ax_.figure, edges, shares, None
        for i, (label, share) in enumerate(
            zip(labels or list(shares), shares.values(), strict=True)
        ):
            color, hatch = color_of(i), HATCHES[i % len(HATCHES)]
            kwargs = {
                "facecolor": "none" if i else color,
                "alpha": 1.0 if i else 0.45,
                "hatch": hatch,
                "edgecolor": color,
            }
            self.ax_.stairs(100 * share, edges, fill=True, linewidth=1.6, label=label, **kwargs)
        n_lines = 0
        if bound is not None:
            self.ax_.axvline(bound, color=GRAY, linewidth=1.4, linestyle=":")
        if self._visible is not None:
            self.line_, n_lines = self._draw_threshold(self._visible), 1
        self.ax_.set(xlabel="log p(x)", ylabel="share of the rows, %")
        tallest = max((share.max(initial=0.0) for share in shares.values()), default=0.0)
        self.ax_.set_ylim(0, 100 * (1 + 0.16 * (len(shares) + n_lines)) * max(tallest, 1e-9))
        self.ax_.legend(loc="upper left", framealpha=0.9, edgecolor="none", borderaxespad=0.2)
        tidy(self.ax_)
        return self

    def _draw_threshold(self, value: float) -> Any:
        """A line, and its value in the legend; at the edge, with an arrow, where it lies far from all rows."""
        low, high = self.edges_[0], self.edges_[-1]
        inside = 2 * low - high <= value <= 2 * high - low
        text = f"threshold {value:.4g}".replace("-", "\N{MINUS SIGN}") + (
            "" if inside else " ←" if value < low else " →"
        )
        return self.ax_.axvline(
            value if inside else min(max(value, low), high),
            color=DARK,
            linewidth=2,
            linestyle="--",
            label=text,
        )

    @property
    def _visible(self) -> float | None:
        """The threshold, if it is one that can be drawn."""
        return (
            None
            if self.threshold is None or self.threshold <= NOTHING_BELOW
            else float(self.threshold)
        )

    def _edges(self, bins: int) -> np.ndarray:
        """Bars over what most rows have, the threshold in view."""
        finite = np.concatenate([score[np.isfinite(score)] for score in self.scores.values()])
        if not len(finite):
            return np.linspace(0.0, 1.0, bins + 1)
        first = next(iter(self.scores.values()))
        first = first[np.isfinite(first)]
        usual = first if len(first) else finite
        low, high = np.quantile(usual, TAIL), finite.max()
        low -= 0.25 * (high - low)  # room for rows that are lower than those of the first set
        if self._visible is not None:
            low = min(low, self._visible - 0.1 * (high - self._visible))
        return np.linspace(low, high if high > low else low + 1.0, bins + 1)
