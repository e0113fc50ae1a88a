"""
Kernels that classes share
==========================

Each class density is a mixture over one common pool of kernels. Every kernel is owned by one class;
``sharing`` says how freely the other classes may use it while training. Here three networks are
trained on the same rows from the same start and drawn with their kernels.
"""

# %%
# The data
# --------
#
# Clouds has two classes of equal size. The blue class is two small round clouds and a long one; the
# orange class is one wide cloud that lies right across one of them. The best possible classifier
# errs on 9.65 % of the rows.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Ellipse

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds

X, y = make_clouds(random_state=0)
X_test, y_test = make_clouds(random_state=1)

# %%
# Three degrees of sharing
# ------------------------
#
# Eight round kernels, four owned by each class. The orange class needs one of its four; the blue
# class could do with more than its own. The same seed gives all three networks the same start.

networks = {
    sharing: SharedKernelClassifier.prbf(n_kernels=8, sharing=sharing, random_state=0).fit(X, y)
    for sharing in (0, 0.5, 1)
}
for sharing, network in networks.items():
    error = 1 - network.score(X_test, y_test)
    print(
        f"sharing={sharing:<3}  test error {100 * error:.1f} %  objective {network.objective_:.3f}"
    )

# %%
# The picture
# -----------
#
# A circle is a kernel at two standard deviations. Its color is P(class | kernel): blue or orange
# where one class alone uses it, a shade between where both do. The dot in its middle has the color
# of the class that owns it and grows with the kernel's share of the rows. The background shows the
# label of every point of the plane.

BLUE, ORANGE = "#2f6db5", "#e07b1a"
SHADES = LinearSegmentedColormap.from_list("shades", [BLUE, "#8d8d8d", ORANGE])
REGIONS = ListedColormap(["#dbe7f4", "#fbe6d1"])


def class_posterior(network):
    """P(C_k | j) by Bayes' rule, (M, K)."""
    joint = network.mixing_ * network.class_prior_
    return joint / joint.sum(axis=1, keepdims=True)


def draw(axes, network, X, y):
    """Rows, decision regions and kernels of a network of spherical kernels in the plane."""
    left, right, low, high = -3.2, 3.4, -3.4, 4.2
    grid = np.meshgrid(np.linspace(left, right, 400), np.linspace(low, high, 400))
    label = network.predict(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    axes.pcolormesh(*grid, label, cmap=REGIONS, shading="nearest", rasterized=True)
    axes.contour(*grid, label, levels=[0.5], colors="#666666", linewidths=0.8)
    few = slice(0, 1200)
    axes.scatter(*X[few].T, c=np.where(y[few] == 0, BLUE, ORANGE), s=2.5, alpha=0.45, linewidths=0)
    share = network.mixing_ @ network.class_prior_
    parts = zip(
        network.means_,
        network.covariances_,
        class_posterior(network),
        network.owners_,
        share,
        strict=True,
    )
    for mean, variance, posterior, owner, weight in parts:
        color, size = SHADES(posterior[1]), 4 * np.sqrt(variance)
        axes.add_patch(Ellipse(mean, size, size, facecolor="none", edgecolor="white", linewidth=4))
        axes.add_patch(
            Ellipse(mean, size, size, facecolor=(*color[:3], 0.12), edgecolor=color, linewidth=2.2)
        )
        axes.plot(
            *mean,
            "o",
            color=(BLUE, ORANGE)[owner],
            markersize=4 + 12 * weight**0.5,
            markeredgecolor="white",
        )
    axes.set(xlim=(left, right), ylim=(low, high), xticks=[], yticks=[], aspect="equal")


def figure_of(networks, X, y, X_test, y_test):
    """One panel for each degree of sharing."""
    figure, panels = plt.subplots(
        1, len(networks), figsize=(3.6 * len(networks) + 0.6, 4.2), layout="constrained"
    )
    for axes, (sharing, network) in zip(panels, networks.items(), strict=True):
        draw(axes, network, X, y)
        axes.set_title(
            f"sharing={sharing}: {100 * (1 - network.score(X_test, y_test)):.1f} % error",
            fontsize=11,
        )
    figure.get_layout_engine().set(h_pad=0.1)
    scale = figure.colorbar(
        plt.cm.ScalarMappable(cmap=SHADES), ax=panels, shrink=0.8, pad=0.01, ticks=[0, 0.5, 1]
    )
    scale.set_label("P(orange class | kernel)")
    return figure


figure_of(networks, X, y, X_test, y_test)
plt.show()

# %%
# Without sharing the orange class spends four kernels on one cloud. As the sharing opens, blue
# takes over a kernel that orange owns and does not need, and the error falls; at ``sharing=1``
# ownership no longer counts at all.
#
# Which class uses which kernel
# -----------------------------
#
# The table behind the colors: one line a kernel.

for sharing, network in networks.items():
    print(f"sharing={sharing}")
    for owner, posterior in zip(network.owners_, class_posterior(network), strict=True):
        print(
            f"  owned by class {owner}, used by class 0 {posterior[0]:4.0%}, by class 1 "
            f"{posterior[1]:4.0%}"
        )
