"""
Kernels whose classes lie apart
===============================

A kernel that two classes share is worth having where they lie on top of each other. Where they only
touch, it blurs the boundary between them. ``overlap`` makes such kernels expensive. Here are the
kernels of a two-class problem at strengths 0, 5 and 20, and the tables that say which class uses
which kernel.
"""

# %%
# Two classes in three places
# ---------------------------
#
# In each of three places a blue cloud lies under an orange one, 2.3 standard deviations apart. With
# six round kernels every cloud could have its own. We allow five.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Ellipse

from kernelpool import SharedKernelClassifier


def clouds(n_rows, seed):
    """Rows and classes 0 (below) and 1 (above)."""
    rng = np.random.default_rng(seed)
    y, place = np.arange(n_rows) % 2, rng.integers(3, size=n_rows)
    center = np.array([[0, 0], [7, 0], [3.5, 6]])[place] + np.column_stack([0 * y, 2.3 * (y - 0.5)])
    return rng.normal(size=(n_rows, 2)) + center, y


X, y = clouds(800, seed=2)
X_test, y_test = clouds(5000, seed=100)
networks = {
    strength: SharedKernelClassifier.prbf(n_kernels=5, overlap=strength, random_state=0).fit(X, y)
    for strength in (0, 5, 20)
}

# %%
# The kernels
# -----------
#
# A circle is a kernel at two standard deviations, in the color of the class that uses it; gray
# means both. The background is the predicted class, the thin line its boundary.

BLUE, ORANGE = "#2f6db5", "#e07b1a"
SHADES = LinearSegmentedColormap.from_list("shades", [BLUE, "#8d8d8d", ORANGE])
REGIONS = ListedColormap(["#dbe7f4", "#fbe6d1"])


def class_posterior(network):
    """P(C_k | j) by Bayes' rule, (M, K)."""
    joint = network.mixing_ * network.class_prior_
    return joint / joint.sum(axis=1, keepdims=True)


def draw(axes, network):
    """Rows, decision regions and kernels."""
    left, right, low, high = -4.5, 11.5, -5.0, 11.0
    grid = np.meshgrid(np.linspace(left, right, 300), np.linspace(low, high, 300))
    label = network.predict(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    axes.pcolormesh(*grid, label, cmap=REGIONS, shading="nearest", rasterized=True)
    axes.contour(*grid, label, levels=[0.5], colors="#444444", linewidths=1.2)
    axes.scatter(*X.T, c=np.where(y == 0, BLUE, ORANGE), s=3, alpha=0.5, linewidths=0)
    for j, (mean, variance) in enumerate(zip(network.means_, network.covariances_, strict=True)):
        color, size = SHADES(class_posterior(network)[j, 1]), 4 * np.sqrt(variance)
        axes.add_patch(Ellipse(mean, size, size, facecolor="none", edgecolor="white", linewidth=4))
        axes.add_patch(
            Ellipse(mean, size, size, facecolor=(*color[:3], 0.06), edgecolor=color, linewidth=2.2)
        )
        axes.annotate(
            str(j), mean, ha="center", va="center", fontsize=11, fontweight="bold", color=color[:3]
        )
    axes.set(xlim=(left, right), ylim=(low, high), xticks=[], yticks=[], aspect="equal")


figure, panels = plt.subplots(1, 3, figsize=(11.5, 4.2), layout="constrained")
for axes, (strength, network) in zip(panels, networks.items(), strict=True):
    draw(axes, network)
    axes.set_title(
        f"overlap={strength}: {100 * (1 - network.score(X_test, y_test)):.1f} % error",
        fontsize=11,
    )
plt.show()

# %%
# Maximum likelihood spends one kernel on both clouds of a place: rows are explained well, classes
# are not distinguished there. The penalty makes that kernel give up a class. A kernel of the other
# class then stretches over two places, which costs likelihood and few errors.
#
# Which class uses which kernel
# -----------------------------
#
# The sharing matrix as a heat map: P(class | kernel), one line a kernel.

figure, panels = plt.subplots(1, 3, figsize=(11.5, 3.6), layout="constrained")
for axes, (strength, network) in zip(panels, networks.items(), strict=True):
    posterior = class_posterior(network)
    image = axes.imshow(posterior, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (j, k), value in np.ndenumerate(posterior):
        axes.text(
            k,
            j,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="white" if value > 0.5 else "black",
        )
    axes.set(
        xticks=[0, 1],
        xticklabels=["blue", "orange"],
        yticks=range(len(posterior)),
        title=f"overlap={strength}",
    )
    axes.set(ylabel="kernel" if axes is panels[0] else "")
    axes.tick_params(length=0)
figure.colorbar(image, ax=panels, label="P(class | kernel)", pad=0.01)
plt.show()

# %%
# What the penalty costs and what it brings: the log-likelihood a row goes down, the error with it.

for strength, network in networks.items():
    likelihood, error = network.log_likelihood(X, y) / len(y), 1 - network.score(X_test, y_test)
    print(
        f"overlap={strength:2d}  log-likelihood a row {likelihood:.3f}  error {100 * error:.1f} %"
    )
