"""
Settings chosen by the data
===========================

How many kernels, of which shape, how far shared, and how strongly penalized:
``SharedKernelClassifier.auto()`` chooses all of it on rows that it holds out, and keeps a record of
what it tried.
"""

# %%
# The data
# --------
#
# Clouds: the blue class has three parts, the orange one lies right across one of them. The axes of
# every part lie along the features, so kernels with a variance for each feature are all it takes;
# no classifier can err less than 9.65 %.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds

X, y = make_clouds(2000, random_state=0)
X_test, y_test = make_clouds(random_state=1)
model = SharedKernelClassifier.auto(random_state=0).fit(X, y)
print(f"{model.n_kernels_} {model.covariance_type_} kernels")
print(f"sharing {model.sharing_degree_:g}, penalty {model.overlap_:g}")
print(f"test error {100 * (1 - model.score(X_test, y_test)):.1f} %")

# %%
# What was tried
# --------------
#
# ``selection_`` has a line for every network that was scored. Each family is tried with one, two,
# four, ... kernels a class, and is given up when more no longer help. Spherical kernels need many;
# diagonal and full ones are as good as they get with four a class, and the smaller of the two is
# taken.

BLUE, ORANGE = "#2f6db5", "#e07b1a"
COLORS = {"spherical": "#8a5fb0", "diag": "#1f8a5b", "full": "#c23b3b", "tied": "#7a7a7a"}
tried = model.selection_
growing = (tried["sharing"] == 0.1) & (tried["overlap"] == 0)


def draw_growth(axes):
    """Held-out loss of each family by its number of kernels, and the choice."""
    for family, color in COLORS.items():
        mine = growing & (tried["covariance_type"] == family)
        order = np.argsort(tried["n_kernels"][mine])
        shape = (
            "--" if family == "full" else "-"
        )  # where it covers the curve of diag, both can be seen
        axes.plot(
            tried["n_kernels"][mine][order],
            tried["tempered_loss"][mine][order],
            color=color,
            label=family,
            linestyle=shape,
            marker="o",
            markersize=4,
            linewidth=2,
        )
    chosen = tried["chosen"]
    axes.plot(
        tried["n_kernels"][chosen],
        tried["tempered_loss"][chosen],
        "o",
        color="none",
        markeredgecolor="black",
        markersize=11,
    )
    axes.annotate(
        "chosen", (tried["n_kernels"][chosen][0], tried["tempered_loss"][chosen][0]), (0, -18), textcoords="offset points",
        ha="center", fontsize=10,
    )  # fmt: skip
    axes.set(xscale="log", xlabel="kernels", ylabel="held-out loss", title="Number of kernels")
    axes.set_xticks([2, 5, 10, 20, 50, 100], labels=["2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.19)
    axes.legend(frameon=False)


def draw_network(axes):
    """The chosen network: rows, boundary, and its kernels at two standard deviations."""
    left, right, low, high = -3.2, 3.4, -3.4, 4.2
    grid = np.meshgrid(np.linspace(left, right, 300), np.linspace(low, high, 300))
    label = model.predict(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    few = slice(0, 1200)
    axes.scatter(*X[few].T, c=np.where(y[few] == 0, BLUE, ORANGE), s=3, alpha=0.4, linewidths=0)
    axes.contour(*grid, label, levels=[0.5], colors="#444444", linewidths=1)
    for mean, covariance, owner in zip(
        model.means_, model.covariances_, model.owners_, strict=True
    ):
        covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
        size, axis = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(axis[1, 1], axis[0, 1]))
        width, height = 4 * np.sqrt(size[1]), 4 * np.sqrt(size[0])
        axes.add_patch(
            Ellipse(mean, width, height, angle=angle, fill=False, edgecolor="white", linewidth=4)
        )
        axes.add_patch(
            Ellipse(
                mean,
                width,
                height,
                angle=angle,
                fill=False,
                edgecolor=(BLUE, ORANGE)[owner],
                linewidth=2.2,
            )
        )
    error = 100 * (1 - model.score(X_test, y_test))
    axes.set(
        xlim=(left, right),
        ylim=(low, high),
        xticks=[],
        yticks=[],
        aspect="equal",
        title=f"Chosen: {error:.1f} % error",
    )


figure, panels = plt.subplots(
    1, 2, figsize=(9.6, 4.4), layout="constrained", width_ratios=[1.25, 1]
)
draw_growth(panels[0])
draw_network(panels[1])
plt.show()

# %%
# Sharing and the penalty
# -----------------------
#
# The best network is then tried with other degrees of sharing and under the overlap penalty. Here
# they make no difference that held-out rows could tell: the losses differ by less than their
# errors.

best = ~growing
print(f"{'sharing':>8} {'penalty':>8} {'kernels':>8} {'loss':>8}")
for i in np.flatnonzero(best):
    print(
        f"{tried['sharing'][i]:8g} {tried['overlap'][i]:8g} {tried['n_kernels'][i]:8d} "
        f"{tried['tempered_loss'][i]:8.4f}"
    )
