"""Which class uses which kernel, as a heat map."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ....errors import KernelpoolError
from ....estimators.shared_kernel import SharedKernelClassifier
from ....estimators.sharing_average import SharingAverageClassifier
from ....inspection.describe import member_name, member_weights
from .style import COLORS, DARK, axes_for, model_in, refuse

MOST_NUMBERS = 160
"""Cells above which numbers in them could not be read."""
MOST_LINES = 30


@dataclass(eq=False, repr=False)
class SharingDisplay:
    """Which class uses which kernel, as a heat map: one line a kernel, one column a class.

    Parameters
    ----------
    values : ndarray of shape (n_kernels, n_classes)
        P(class | kernel), or the mixing weights.
    share : ndarray of shape (n_kernels,)
        P(kernel).
    owners : ndarray of shape (n_kernels,)
        Place in `classes` of the class that owns each kernel.
    classes : ndarray of shape (n_classes,)
        Labels.
    kernels : ndarray of shape (n_kernels,)
        The number of each kernel in its network.
    groups : tuple of str
        The network of each kernel, where there are several; empty otherwise.
    title : str
        What the values are.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    im_ : matplotlib image
        The heat map.
    text_ : list of matplotlib text
        Numbers in the cells, where there is room.
    """

    values: np.ndarray
    share: np.ndarray
    owners: np.ndarray
    classes: np.ndarray
    kernels: np.ndarray
    groups: tuple[str, ...] = ()
    title: str = "P(class | kernel)"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, values: str = "class_posterior", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what the classes make of the kernels.

        Kernels are sorted by owner, and among those of one owner by their share of the rows.

        Parameters
        ----------
        estimator : classifier
            A fitted `SharedKernelClassifier` or `SharingAverageClassifier`, also inside a pipeline, a search or a
            `RejectClassifier`.
        values : {"class_posterior", "mixing"}, default="class_posterior"
            P(class | kernel), of which lines sum to one, or the mixing weights, of which columns do in every network.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : SharingDisplay
            Drawn.
        """
        if values not in ("class_posterior", "mixing"):
            raise KernelpoolError(f"values must be 'class_posterior' or 'mixing'; got {values!r}.")
        model = model_in(estimator).inner
        members, weights, names = _members(model)
        parts, shares, owners, kernels, groups = [], [], [], [], []
        for member, weight, name in zip(members, weights, names, strict=True):
            joint = member.mixing_ * member.class_prior_
            share = joint.sum(axis=1)
            owner = np.searchsorted(member.classes_, member.owners_)
            order = np.lexsort((-share, owner))
            posterior = joint / np.where(share > 0, share, 1.0)[:, None]
            parts.append((posterior if values == "class_posterior" else member.mixing_)[order])
            shares.append(weight * share[order] / share.sum())
            owners.append(owner[order])
            kernels.append(order)
            groups += [name] * len(order) if len(members) > 1 else []
        title = "P(class | kernel)" if values == "class_posterior" else "mixing weight"
        values_, share_, owners_ = (np.concatenate(part) for part in (parts, shares, owners))
        classes, numbers = np.asarray(model.classes_), np.concatenate(kernels)
        return cls(values_, share_, owners_, classes, numbers, tuple(groups), title).plot(
            ax=ax, **kwargs
        )

    def plot(self, ax: Any = None, *, cmap: str = "Blues", colorbar: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where; None makes a figure.
        cmap : str, default="Blues"
            Color map, from light to dark.
        colorbar : bool, default=True
            Whether to draw the scale.

        Returns
        -------
        display : SharingDisplay
            Itself.
        """
        from matplotlib.patches import Rectangle

        n_kernels, n_classes = self.values.shape
        size = (2.4 + 0.6 * min(n_classes, 12), 1.2 + 0.3 * min(n_kernels, 26))
        self.ax_ = axes_for(ax, size)
        self.figure_ = self.ax_.figure
        top = 1.0 if self.title.startswith("P") else float(self.values.max())
        self.im_ = self.ax_.imshow(self.values, cmap=cmap, vmin=0, vmax=top, aspect="auto")
        self.text_ = [] if self.values.size > MOST_NUMBERS else self._numbers(top)
        for j, owner in enumerate(self.owners):
            self.ax_.add_patch(
                Rectangle(
                    (owner - 0.47, j - 0.44),
                    0.94,
                    0.88,
                    fill=False,
                    edgecolor=COLORS[1],
                    linewidth=2.4,
                )
            )
        self._name_lines()
        angle = 40 if max(len(str(label)) for label in self.classes) > 5 else 0
        aligned = {"rotation": angle, "ha": "right", "rotation_mode": "anchor"} if angle else {}
        self.ax_.set_xticks(
            range(n_classes), [str(label) for label in self.classes.tolist()], **aligned
        )
        self.ax_.set(xlabel="class (framed: owns the kernel)")
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        for text in self.ax_.get_xticklabels():
            text.set_parse_math(False)
        if colorbar:
            self.figure_.colorbar(self.im_, ax=self.ax_, label=self.title, shrink=0.9)
        return self

    def _numbers(self, top: float) -> list[Any]:
        return [
            self.ax_.text(
                k,
                j,
                _short(value),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if value > 0.55 * top else DARK,
            )
            for (j, k), value in np.ndenumerate(self.values)
        ]

    def _name_lines(self) -> None:
        """One name a kernel, or one a network where there are too many."""
        if len(self.kernels) <= MOST_LINES:
            names = [
                f"{j} ({100 * share:.0f} %)"
                for j, share in zip(self.kernels, self.share, strict=True)
            ]
            self.ax_.set_yticks(range(len(names)), names)
            self.ax_.set_ylabel("kernel (share of the rows)")
        else:
            self.ax_.set_yticks([])
            self.ax_.set_ylabel(f"{len(self.kernels)} kernels")
        if not self.groups:
            return
        starts = [
            0,
            *(i for i in range(1, len(self.groups)) if self.groups[i] != self.groups[i - 1]),
            len(self.groups),
        ]
        for start in starts[1:-1]:
            self.ax_.axhline(start - 0.5, color="white", linewidth=4)
            self.ax_.axhline(start - 0.5, color=DARK, linewidth=1)
        middles = [(a + b - 1) / 2 for a, b in pairwise(starts)]
        if len(self.kernels) > MOST_LINES:
            self.ax_.set_yticks(middles, [self.groups[start] for start in starts[:-1]])
        else:
            beside = self.ax_.secondary_yaxis("right")
            beside.set_yticks(
                middles, [self.groups[start] for start in starts[:-1]], rotation=90, va="center"
            )
            beside.tick_params(length=0)
            beside.spines[:].set_visible(False)


def _short(value: float) -> str:
    return f"{value:.2f}" if 0.005 <= value < 0.995 else f"{value:.0f}"


def _members(model: Any) -> tuple[list[SharedKernelClassifier], np.ndarray, list[str]]:
    """Networks with their weights and names."""
    if isinstance(model, SharedKernelClassifier):
        return [model], np.ones(1), [""]
    if isinstance(model, SharingAverageClassifier):
        return (
            list(model.estimators_),
            member_weights(model),
            [member_name(member) for member in model.estimators_],
        )
    if hasattr(model, "kernel_classes_"):
        raise refuse("SharingDisplay", model, "each of its kernels belongs to one class alone")
    raise refuse(
        "SharingDisplay",
        model,
        "only kernels of a shared-kernel network are weighed by every class",
    )
