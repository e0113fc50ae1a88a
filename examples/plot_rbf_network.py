"""
Round and long kernels: the EM-Log paper's pictures
===================================================

An RBF network whose kernels come from k-means can only be round. One whose kernels come from EM
follows the rows, and EM-Log-Link trains both layers together. The two problems are those of figures
3 and 4 of Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural
networks"; the paper prints their sizes, not their shapes, so the shapes are ours.
"""

# %%
# Two problems, three networks
# ----------------------------
#
# Four kernels for two classes that lean apart, six for three thin strips. KMeans+LS is the paper's
# name for round kernels at the centers of k-means with a least-squares output layer. EM-Log-Link
# weighs the densities of the kernels, as in the paper, with a damped output layer. The third weighs
# their shares P(j|x) instead, which is what `training="em_log_link"` does by default:
# far from all kernels densities vanish and say nothing, shares still tell which kernel is nearest.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from kernelpool import EMLogClassifier
from kernelpool.datasets import make_ripley
from papers.data.generators import make_ellipses, make_strips

NETWORKS = {
    "KMeans+LS": {
        "training": "two_stage",
        "readout": "least_squares",
        "activation": "gaussian",
        "covariance_type": "spherical",
        "ridge": 0.0,
    },
    "EM-Log-Link": {"training": "em_log_link", "activation": "density", "covariance_type": "full"},
    "EM-Log-Link of shares": {"training": "em_log_link"},
}
PROBLEMS = {
    "figure 3": (make_ellipses, 200, 4),
    "figure 4": (make_strips, 100, 6),
}

# %%
# The pictures
# ------------
#
# Dots are rows of the test set, and crosses those in error. The thin lines are level curves of
# P(blue) at 0.1, 0.3, 0.7 and 0.9, the thick one is the boundary; dashed are the kernels at two
# standard deviations. Round kernels give round curves; with the strips they must cut across.
# Kernels trained by EM lie along the classes, and so do the curves.

BLUE, ORANGE = "#2f6db5", "#e07b1a"


def draw(axes, network, X, y):
    """Rows, level curves and kernels of a network in the plane."""
    low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    grid = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    blue = network.predict_proba(np.column_stack([g.ravel() for g in grid]))[:, 0].reshape(
        grid[0].shape
    )
    axes.contour(*grid, blue, levels=[0.1, 0.3, 0.7, 0.9], colors="#999999", linewidths=0.7)
    axes.contour(*grid, blue, levels=[0.5], colors="black", linewidths=1.6)
    wrong = network.predict(X) != y
    color = np.where(y == 0, BLUE, ORANGE)
    axes.scatter(*X[~wrong].T, c=color[~wrong], s=9, linewidths=0)
    axes.scatter(*X[wrong].T, c=color[wrong], s=28, marker="x", linewidths=1.3)
    for mean, covariance in zip(network.means_, network.covariances_, strict=True):
        covariance = np.diag(covariance) if np.ndim(covariance) == 1 else covariance
        value, vector = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(vector[1, 1], vector[0, 1]))
        ellipse = Ellipse(
            mean,
            4 * value[1] ** 0.5,
            4 * value[0] ** 0.5,
            angle=angle,
            fill=False,
            linestyle="--",
            alpha=0.6,
        )
        axes.add_patch(ellipse)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], aspect="equal")


figure, rows_of_axes = plt.subplots(
    2, 3, figsize=(12, 5.6), layout="constrained", height_ratios=[2, 1]
)
for row, (problem, (make, n_rows, n_kernels)) in zip(rows_of_axes, PROBLEMS.items(), strict=True):
    X, y = make(n_rows, random_state=0)
    X_test, y_test = make(2 * n_rows, random_state=1)
    for axes, (name, settings) in zip(row, NETWORKS.items(), strict=True):
        network = EMLogClassifier(n_kernels, random_state=0, **settings).fit(X, y)
        n_wrong = int((network.predict(X_test) != y_test).sum())
        draw(axes, network, X_test, y_test)
        axes.set_title(f"{problem}, {name}: {n_wrong} of {len(y_test)} in error", fontsize=10)
plt.show()

# %%
# Stopping before EM hurts
# ------------------------
#
# EM does not see the labels: it makes the mixture of kernels ever more likely, and the labels may
# be served worse. Training watches the loss of rows left out, which one more pass over the rows
# tells without fitting again, and keeps the best sweep.

X, y = make_ripley(250, random_state=0)
network = EMLogClassifier(
    6, init="random", training="em_log", activation="density", patience=40, random_state=1
).fit(X, y)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(np.arange(1, network.n_iter_ + 1), network.history_, color=BLUE)
axes.axvline(
    network.best_iter_, color=ORANGE, linestyle="--", label=f"kept: sweep {network.best_iter_}"
)
axes.set(xlabel="sweep", ylabel="log-loss, rows left out")
axes.legend(frameon=False)
plt.show()
