"""
When unlabeled rows help, and when they hurt
=============================================

Rows without a label take part with their class summed out. They tell a network where rows lie, not
what they are: that helps if the kernels can follow the classes, and hurts if they cannot. The same
rows and the same labels show both; only the shape of the kernels differs.
"""

# %%
# Ten labels a class
# ------------------
#
# Of each 5000 rows of Clouds, ten rows a class keep their label; ``-1`` marks the others, as in
# scikit-learn's semi-supervised module. Nothing is guessed: the marker has to be named with
# ``unlabeled``.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds
from kernelpool.errors import EmptyKernelWarning

warnings.simplefilter(
    "ignore", EmptyKernelWarning
)  # with ten labels a class a kernel may end up without rows

WEIGHTS = (0, 0.01, 0.1, 1)
SEEDS = range(20)
X_test, y_test = make_clouds(random_state=1000)


def few_labels(seed, per_class=10):
    """Clouds with most labels taken away."""
    X, y = make_clouds(random_state=seed)
    kept = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in (0, 1)])
    hidden = np.full(len(y), -1)
    hidden[kept] = y[kept]
    return X, hidden


def test_error(seed, weight, covariance_type):
    """Error on new rows, in percent, if an unlabeled row counts `weight` times."""
    network = SharedKernelClassifier.prbf(
        n_kernels=6,
        covariance_type=covariance_type,
        sharing=0,
        kernel_prior="conjugate",
        unlabeled=-1,
        random_state=seed,
    )
    X, y = few_labels(seed)
    network.fit(X, y, sample_weight=np.where(y == -1, weight, 1.0))
    return 100 * (1 - network.score(X_test, y_test))


# %%
# Two shapes of kernel
# --------------------
#
# Class 0 of Clouds has a long, narrow part. Three diagonal kernels can take its shape; three round
# ones cannot, and the likelihood of thousands of unlabeled rows is then best served by kernels that
# ignore their few labels.

families = ("diag", "spherical")
errors = {
    family: np.array([[test_error(seed, weight, family) for weight in WEIGHTS] for seed in SEEDS])
    for family in families
}
print(f"{'weight of an unlabeled row':<32}" + "".join(f"{weight:>8}" for weight in WEIGHTS))
for family, table in errors.items():
    better = (table < table[:, :1]).sum(axis=0)
    print(
        f"{family + ', mean error in percent':<32}"
        + "".join(f"{mean:8.1f}" for mean in table.mean(axis=0))
    )
    print(f"{'  draws better than without':<32}" + "".join(f"{n:>5}/{len(SEEDS)}" for n in better))

# %%
# The picture
# -----------
#
# A thin line is one draw of the data, the thick one the mean.

figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True, layout="constrained")
for axes, family, color in zip(panels, families, ("#2f6db5", "#e07b1a"), strict=True):
    table = errors[family]
    axes.plot(table.T, color=color, alpha=0.25, linewidth=1)
    axes.plot(table.mean(axis=0), color=color, linewidth=3, marker="o")
    axes.axhline(9.65, color="#666666", linewidth=1, linestyle="--")
    axes.text(0, 9.2, "best possible, on average", color="#666666", va="top", fontsize=9)
    axes.set_xticks(range(len(WEIGHTS)), ["none", *map(str, WEIGHTS[1:])])
    axes.set(title=f'covariance_type="{family}"', xlabel="weight of an unlabeled row")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set(ylabel="test error, %", ylim=(5, None))
plt.show()

# %%
# What to do with it: compare on labeled rows that were held back, start with a weight of 0.1 or
# 0.01, and look at the kernels. The guide has the same comparison on real data.
