"""Kernels as ellipses over rows and decision regions."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ....arrays import to_numpy
from ....errors import KernelpoolError
from ....estimators.base import DensityClassifier
from ....estimators.reject import Decision, RejectClassifier
from ....estimators.shared_kernel import SharedKernelClassifier
from ....inspection.describe import Pool, describe
from ....inspection.metrics import ambiguity_of
from ....inspection.pipeline import Unwrapped
from ....training.reject import is_novel
from ..kernels import class_posterior_by_rows
from .plane import Plane, plane_of
from .style import (
    DARK,
    GRAY,
    as_written,
    axes_for,
    codes_of,
    color_of,
    mark_of,
    mixed,
    model_in,
    refuse,
    rgb,
    tint,
)

GRID, MARGIN = 241, 0.06
PURE = 0.9
"""A kernel whose first class has less than this share of it is drawn as shared."""


@dataclass(eq=False, repr=False)
class KernelDisplay:
    r"""Kernels as ellipses over rows and decision regions.

    An ellipse reaches `deviations` standard deviations from the center of its kernel. Its color is mixed from those of the
    classes by P(class | kernel), its line is broken where several classes share it, and the mark in its middle is that of its
    first class and grows with its share of the rows.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Rows as they are drawn.
    codes : ndarray of shape (n_samples,)
        Place of their labels in `classes`, -1 for none.
    classes : ndarray of shape (n_classes,)
        Labels.
    centers, covariances : ndarray of shape (n_kernels, 2) and (n_kernels, 2, 2)
        Kernels as they are drawn.
    class_posterior : ndarray of shape (n_kernels, n_classes)
        P(class | kernel); what is missing to one belongs to other classes, and is gray.
    share : ndarray of shape (n_kernels,)
        P(kernel).
    names : tuple of str
        Of the two axes.
    regions : tuple of ndarray or None
        Places along both axes and what the model says there, one row a place along the second: codes of classes, or
        ``n_classes`` for ambiguous and ``n_classes + 1`` for novel.
    limits : array-like of shape (2, 2) or None, default=None
        What is in view, from and to along each axis; None shows all rows that are drawn, and centers not far from them.
    n_left_out : int, default=0
        Kernels that are not drawn.
    word : str, default="kernel"
        What the legend calls a kernel.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    ellipses_, marks_ : list of matplotlib artists
        One a kernel.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.app.report.plots import KernelDisplay
    >>> X, y = make_clouds(random_state=0)
    >>> network = SharedKernelClassifier.prbf(n_kernels=8, random_state=0).fit(X, y)
    >>> display = KernelDisplay.from_estimator(network, X, y)
    >>> len(display.ellipses_)
    8
    """

    points: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    centers: np.ndarray
    covariances: np.ndarray
    class_posterior: np.ndarray
    share: np.ndarray
    names: tuple[str, str]
    regions: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    limits: Any = None
    n_left_out: int = 0
    word: str = "kernel"

    def __post_init__(self) -> None:
        self.limits = (
            self._all_in_view()
            if self.limits is None
            else np.asarray(self.limits, dtype=np.float64)
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        features: Any = None,
        regions: str | None = "auto",
        limits: Any = None,
        max_rows: int = 600,
        max_kernels: int = 200,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the kernels of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted density classifier, RBF network or mixture of neurons with places (``local=True``); also inside a
            pipeline, a search or a `RejectClassifier`.
        X : array-like of shape (n_samples, n_features)
            Rows to draw.
        y : array-like of shape (n_samples,)
            Their labels.
        features : two ints or names, or "lda"; default=None
            The two axes: a pair of features, or the two directions in which the classes differ most. None takes both features
            where there are two and "lda" where there are more. A kernel of more features is drawn as its shadow.
        regions : {"auto", "slice"} or None, default="auto"
            Decision regions. With two features they are the model's; with more, "auto" draws the best decision on the two
            coordinates alone, which mixtures of Gaussians know, and none for other models; "slice" draws the decisions in the
            plane through the mean of the rows.
        limits : array-like of shape (2, 2) or None, default=None
            What is in view, from and to along each axis; None shows all rows that are drawn.
        max_rows : int, default=600
            Most rows drawn, chosen at random.
        max_kernels : int, default=200
            Most kernels drawn, those with the greatest shares.
        random_state : int, default=0
            Seed of the rows drawn.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : KernelDisplay
            Drawn.
        """
        model = model_in(estimator, X)
        pool = _placed(model.inner)
        if regions not in ("auto", "slice", None):
            raise KernelpoolError(f"regions must be 'auto', 'slice' or None; got {regions!r}.")
        classes = np.asarray(model.inner.classes_)
        codes = codes_of(y, classes)
        x = np.asarray(model.transform(X), dtype=np.float64)
        posterior = pool.class_posterior
        if posterior is None:
            posterior = class_posterior_by_rows(model.inner, x, codes, len(classes))
        plane = plane_of(model, x, codes, features)
        few = np.random.default_rng(random_state).permutation(len(x))[:max_rows]
        kept = pool.largest(max_kernels)
        centers, covariances = plane.points(pool.mean), plane.covariances(pool)  # type: ignore[arg-type]
        display = cls(
            plane.points(x[few]),
            codes[few],
            classes,
            centers[kept],
            covariances[kept],
            posterior[kept],  # type: ignore[index]
            pool.share[kept],
            plane.names,
            limits=limits,
            n_left_out=len(pool) - len(kept),
            word=pool.word,
        )
        if regions is not None:
            speaker = _speaker(model, pool, plane, x.mean(axis=0), regions)
            display.regions = None if speaker is None else display._regions(speaker)
        return display.plot(ax=ax, **kwargs)

    def _regions(self, speaker: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        (left, right), (low, high) = self.limits
        across, up = np.linspace(left, right, GRID), np.linspace(low, high, GRID)
        grid = np.column_stack([g.ravel() for g in np.meshgrid(across, up)])
        return across, up, np.asarray(speaker(grid)).reshape(GRID, GRID)

    def _all_in_view(self) -> np.ndarray:
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        reach = np.where(high > low, high - low, 1.0)
        near = ((self.centers > low - reach / 4) & (self.centers < high + reach / 4)).all(axis=1)
        both = np.vstack([low, high, self.centers[near]])
        return np.column_stack(
            [both.min(axis=0) - MARGIN * reach, both.max(axis=0) + MARGIN * reach]
        )

    # -- drawing ----------------------------------------------------------------------------------------------------

    def plot(
        self,
        ax: Any = None,
        *,
        deviations: float = 2.0,
        legend: bool = True,
        row_size: float = 14.0,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure.
        deviations : float, default=2.0
            How far ellipses reach, in standard deviations.
        legend : bool, default=True
            Whether to say what marks and lines mean.
        row_size : float, default=14.0
            Of the marks of rows, in square points.

        Returns
        -------
        display : KernelDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, (6.4, 4.8))
        self.figure_ = self.ax_.figure
        if self.regions is not None:
            self._draw_regions()
        for code in range(-1, len(self.classes)):
            here = self.points[self.codes == code]
            color, mark = (
                (GRAY, ".") if code < 0 else (tuple(0.8 * rgb(color_of(code))), mark_of(code))
            )
            self.ax_.scatter(
                *here.T, color=color, marker=mark, s=row_size, alpha=0.55, linewidths=0, zorder=2
            )
        self._draw_kernels(deviations)
        (left, right), (low, high) = self.limits
        self.ax_.set(
            xlim=(left, right), ylim=(low, high), xlabel=self.names[0], ylabel=self.names[1]
        )
        if legend:
            self._explain()
        as_written(self.ax_)
        return self

    def _draw_regions(self) -> None:
        across, up, label = self.regions  # type: ignore[misc]
        k = len(self.classes)
        palette = [
            *(tint(rgb(color_of(code)), 0.2) for code in range(k)),
            np.full(3, 0.93),
            np.full(3, 0.86),
        ]
        extent = (across[0], across[-1], up[0], up[-1])
        self.ax_.imshow(
            np.array(palette)[label], extent=extent, origin="lower", aspect="auto", zorder=0
        )
        for code in range(k + 2):
            here = (label == code).astype(float)
            if not 0 < here.mean() < 1:
                continue
            self.ax_.contour(across, up, here, levels=[0.5], colors=GRAY, linewidths=0.8, zorder=1)
            if code >= k:
                hatch = "xxx" if code == k else "///"
                drawn = self.ax_.contourf(
                    across, up, here, levels=[0.5, 1.5], colors="none", hatches=[hatch], zorder=1
                )
                drawn.set(edgecolor="#b0b0b0", linewidth=0)

    def _draw_kernels(self, deviations: float) -> None:
        from matplotlib.patches import Ellipse

        colors, first, purity = (
            mixed(self.class_posterior),
            self.class_posterior.argmax(axis=1),
            self._purity(),
        )
        self.ellipses_, self.marks_ = [], []
        for j, (center, covariance) in enumerate(zip(self.centers, self.covariances, strict=True)):
            value, vector = np.linalg.eigh(covariance)
            short, long = 2 * deviations * np.sqrt(np.maximum(value, 0))
            kwargs = {
                "width": long,
                "height": short,
                "angle": np.degrees(np.arctan2(vector[1, 1], vector[0, 1])),
            }
            self.ax_.add_patch(
                Ellipse(center, **kwargs, fill=False, edgecolor="white", linewidth=3.6, zorder=3)
            )
            line = "-" if purity[j] >= PURE else (0, (3, 1.6))
            face, edge = (*colors[j], 0.08), tuple(0.85 * colors[j])
            self.ellipses_.append(
                Ellipse(
                    center,
                    **kwargs,
                    facecolor=face,
                    edgecolor=edge,
                    linewidth=2.0,
                    linestyle=line,
                    zorder=4,
                )
            )
            self.ax_.add_patch(self.ellipses_[-1])
            others = (
                self.class_posterior[j].max(initial=0.0) < 0.5 < 1 - self.class_posterior[j].sum()
            )
            size, mark = (
                4 + 10 * min(1.0, self.share[j]) ** 0.5,
                "." if others else mark_of(int(first[j])),
            )
            self.marks_ += self.ax_.plot(
                *center,
                mark,
                color=GRAY if others else color_of(int(first[j])),
                markersize=size,
                markeredgecolor=DARK,
                markeredgewidth=0.9,
                zorder=5,
            )

    def _purity(self) -> np.ndarray:
        """Greatest share of a class in each kernel, those that are not named taken as one, (M,)."""
        rest = 1 - self.class_posterior.sum(axis=1)
        return np.asarray(np.maximum(self.class_posterior.max(axis=1, initial=0.0), rest))

    def _explain(self) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        keys: list[Any] = [
            Line2D(
                [],
                [],
                linestyle="",
                marker=mark_of(code),
                color=color_of(code),
                markersize=7,
                label=str(label),
            )
            for code, label in enumerate(self.classes.tolist())
        ]
        if (self.codes < 0).any():
            keys.append(
                Line2D(
                    [],
                    [],
                    linestyle="",
                    marker=".",
                    color=GRAY,
                    markersize=7,
                    label="other classes, or none",
                )
            )
        pure = self._purity() >= PURE
        left_out = f" ({self.n_left_out:,} more)" if self.n_left_out else ""
        if pure.any():
            keys.append(
                Line2D([], [], color=DARK, linewidth=2, label=f"{self.word} of one class{left_out}")
            )
        if not pure.all():
            keys.append(
                Line2D(
                    [],
                    [],
                    color=DARK,
                    linewidth=2,
                    linestyle=(0, (2, 1.2)),
                    label=f"{self.word} that is shared",
                )
            )
        if self.regions is not None:
            for code, name, hatch in ((0, "ambiguous", "xxx"), (1, "novel", "///")):
                if (self.regions[2] == len(self.classes) + code).any():
                    keys.append(
                        Patch(facecolor="#eeeeee", edgecolor="#b0b0b0", hatch=hatch, label=name)
                    )
        self.ax_.legend(
            handles=keys,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            frameon=False,
            borderaxespad=0.0,
        )


def _placed(model: Any) -> Pool:
    """Kernels with a place and classes, or an error that says what is missing."""
    pool = describe(model).pool
    if pool is None:
        raise refuse(
            "KernelDisplay",
            model,
            "it is no classifier of kernelpool and its kernels are not known",
        )
    if not hasattr(model, "classes_"):
        raise refuse("KernelDisplay", model, "its kernels have no classes")
    if pool.mean is None:
        raise refuse("KernelDisplay", model, "its neurons have no places; fit it with local=True")
    return pool


def _speaker(model: Unwrapped, pool: Pool, plane: Plane, middle: np.ndarray, regions: str) -> Any:
    """What says which class a point of the plane belongs to, as a function of points; None if nothing can."""
    if len(model.features) == 2 or regions == "slice":
        refusals = next((w for w in model.wrappers if isinstance(w, RejectClassifier)), None)
        return lambda z: _decided(model.inner, refusals, plane.back(z, middle))
    gaussian = (
        isinstance(model.inner, DensityClassifier)
        and getattr(model.inner, "kernel", "gaussian") == "gaussian"
    )
    if not gaussian:
        return None
    joint = pool.share[:, None] * pool.class_posterior  # (M, K)
    prior = joint.sum(axis=0)
    shadow = SharedKernelClassifier.from_parameters(
        plane.points(pool.mean),  # type: ignore[arg-type]
        plane.covariances(pool),
        joint / prior,
        prior / prior.sum(),
        np.arange(len(prior)),
        "full",
    )
    return shadow.predict


def _decided(inner: Any, refusals: RejectClassifier | None, x: np.ndarray) -> np.ndarray:
    """Codes of classes; K for ambiguous and K + 1 for novel."""
    classes = np.asarray(inner.classes_)
    label = np.searchsorted(classes, to_numpy(inner.predict(x)))
    if refusals is None:
        return label
    if refusals.ambiguity_threshold_ is not None:
        doubt = ambiguity_of(to_numpy(inner.predict_proba(x)))
        label = np.where(
            doubt <= refusals.ambiguity_threshold_, label, len(classes) - 1 + Decision.AMBIGUOUS
        )
    if refusals.novelty_threshold_ is not None:
        novel = is_novel(to_numpy(inner.score_samples(x)), refusals.novelty_threshold_)
        label = np.where(novel, len(classes) - 1 + Decision.NOVEL, label)
    return label
