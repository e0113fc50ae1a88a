"""
A Parzen classifier with a fiftieth of its kernels
==================================================

A Parzen classifier puts a kernel at every training row. Most of them are not needed: those that lie
among rows of another class never win a vote, and of the rest a few represent the density of all.
This is figure 2 of Kraaijveld & Duin (1991), redrawn and taken one step further, and then a curve:
how the error depends on the number of kernels.
"""

# %%
# Editing and reduction
# ---------------------
#
# Two classes that overlap. `MultiEdit` drops rows until the classes are apart;
# `ReducedParzenClassifier` then keeps the kernels that represent the rest best. A circle shows how
# far a kernel's vote reaches.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier, bounds, inspection
from kernelpool.datasets import make_clouds

COLORS = np.array(["#2f6db5", "#e07b1a"])
X, y = make_clouds(2000, random_state=0)
X_test, y_test = make_clouds(20_000, random_state=1)

full = ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0).fit(X, y)
kept = (
    MultiEdit(
        ParzenClassifier("hypersphere", standardize=False, radius=full.radius_), random_state=0
    )
    .fit(X, y)
    .sample_indices_
)
edited = ParzenClassifier("hypersphere", standardize=False, radius=full.radius_).fit(
    X[kept], y[kept]
)
reduced = ReducedParzenClassifier(n_kernels=40, edit=True, standardize=False, random_state=0).fit(
    X, y
)


def draw(axes, network, title, circles):
    """Kernels of a network, its decision boundary, and how far the kernels reach."""
    x0, x1 = np.meshgrid(np.linspace(-3.2, 3.2, 200), np.linspace(-3.2, 4.2, 200))
    label = network.predict(np.column_stack([x0.ravel(), x1.ravel()])).reshape(x0.shape)
    axes.contour(x0, x1, label, levels=[0.5], colors="#444444", linewidths=1)
    color = COLORS[network.kernel_classes_]
    if circles:
        width = np.full(len(network.kernels_), 2 * network.radius_)
        axes.add_collection(
            EllipseCollection(
                width,
                width,
                np.zeros(len(width)),
                units="xy",
                offsets=network.kernels_,
                transOffset=axes.transData,
                edgecolors=color,
                facecolors="none",
            )
        )
    axes.scatter(*network.kernels_.T, c=color, s=20 if circles else 3, linewidths=0)
    error = 100 * (1 - network.score(X_test, y_test))
    axes.set(
        title=f"{title}\n{len(network.kernels_)} kernels, {error:.1f} % error",
        xlim=(-3.2, 3.2),
        ylim=(-3.2, 4.2),
    )
    axes.set(aspect="equal", xticks=[], yticks=[])


figure, panels = plt.subplots(1, 3, figsize=(10, 4.6), layout="constrained")
draw(panels[0], full, "every row", circles=False)
draw(panels[1], edited, "edited", circles=False)
draw(panels[2], reduced, "edited and reduced", circles=True)
plt.show()

# %%
# Error against size
# ------------------
#
# The same number of kernels chosen at random does far worse. The random networks get the radius at
# which they classify all training rows best, as the reduced ones do.

SIZES = (6, 12, 25, 50, 100, 200)


def random_error(size, seed):
    """Error of a network of kernels drawn at random."""
    some = np.random.default_rng(seed).choice(len(X), size, replace=False)
    network = ParzenClassifier("hypersphere", standardize=False, radius="loo").fit(
        X[some], y[some], X_val=X, y_val=y
    )
    return 100 * (1 - network.score(X_test, y_test))


random = np.array([[random_error(size, seed) for seed in range(10)] for size in SIZES])
networks = [
    ReducedParzenClassifier(size, standardize=False, random_state=0).fit(X, y) for size in SIZES
]
errors = [100 * (1 - network.score(X_test, y_test)) for network in networks]

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.fill_between(
    SIZES, random.min(axis=1), random.max(axis=1), color="#bbbbbb", alpha=0.5, linewidth=0
)
axes.plot(
    SIZES, random.mean(axis=1), color="#777777", marker="o", label="drawn at random (ten times)"
)
axes.plot(SIZES, errors, color="#2f6db5", marker="o", linewidth=2, label="ReducedParzenClassifier")
axes.axhline(
    100 * (1 - full.score(X_test, y_test)),
    color="#e07b1a",
    linestyle="--",
    label=f"all {len(X)} kernels",
)
axes.axhline(9.65, color="#444444", linewidth=1, linestyle=":", label="best possible")
axes.set(xscale="log", xlabel="kernels", ylabel="test error, %", ylim=(9, 30))
axes.set_xticks(SIZES, map(str, SIZES))
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
plt.show()

# %%
# What can be promised
# --------------------
#
# A certificate says what the error of new rows will not exceed, from test rows, or from the
# training rows alone: a network that is described completely by a few of its training rows cannot have
# been fitted to the others very closely.

small = networks[2]
print(bounds.certify(small, X_test, y_test))
print(bounds.certify_by_compression(small, X, y))
print(inspection.compare_models(full, small, X_test, y_test))

# %%
# More rows, less error
# ---------------------
#
# The full network is consistent: with more rows and a radius that is chosen anew its error falls
# towards the best possible one.

COUNTS = (500, 1500, 5000, 15_000, 50_000)
falling = [
    [
        100
        * (
            1
            - ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0)
            .fit(*make_clouds(n, random_state=seed))
            .score(X_test, y_test)
        )
        for n in COUNTS
    ]
    for seed in (2, 3)
]

figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axes.plot(
    COUNTS,
    np.transpose(falling),
    color="#2f6db5",
    marker="o",
    label=["ParzenClassifier, two draws", None],
)
axes.axhline(9.65, color="#444444", linewidth=1, linestyle=":", label="best possible, on average")
axes.set(xscale="log", xlabel="training rows", ylabel="test error, %", ylim=(9, 13))
axes.set_xticks(COUNTS, [f"{n:,}" for n in COUNTS])
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
plt.show()
