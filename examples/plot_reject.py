"""
Refusing to predict: ambiguous and novel rows
=============================================

A classifier that must name a class for every row is wrong where classes overlap, and makes things
up where it has seen nothing. `RejectClassifier` refuses both kinds of rows, with a label for each.
"""

# %%
# Two reasons to refuse
# ---------------------
#
# A row is *ambiguous* where the model's own probability that its label is wrong exceeds
# ``ambiguity``, and *novel* where its density is so low that only a share ``novelty`` of ordinary
# rows would lie lower. The latter is set on rows that are held out.

import matplotlib.pyplot as plt
import numpy as np

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report.plots import plot_kernels, plot_novelty, plot_reject_curve
from kernelpool.datasets import make_clouds

X, y = make_clouds(2000, random_state=0)
X_test, y_test = make_clouds(20_000, random_state=1)
network = SharedKernelClassifier.prbf(n_kernels=6, covariance_type="full", random_state=0)
plain = RejectClassifier(network, ambiguity=None, novelty=None).fit(X, y)
rejecting = RejectClassifier(network, ambiguity=0.2, novelty=0.02).fit(X, y)

figure, panels = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained", sharey=True)
for axes, model, title in zip(
    panels, (plain, rejecting), ("a label for every point", "refusals"), strict=True
):
    plot_kernels(model, X, y, ax=axes, legend=model is rejecting)
    axes.set(title=title, xlabel="", ylabel="")
plt.show()

# %%
# The left picture has a label for points where no row ever was. On the right that area is novel,
# and a seam along the boundary, wide where the classes overlap, is ambiguous.

decision = rejecting.decide(X_test)
print(
    f"accepted {np.mean(decision == 0):.1%}, ambiguous {np.mean(decision == 1):.1%}, novel "
    f"{np.mean(decision == 2):.1%}"
)
print(
    f"error of all rows {1 - plain.score(X_test, y_test):.1%}, of accepted rows "
    f"{1 - rejecting.score(X_test, y_test):.1%}"
)

# %%
# What a refusal buys
# -------------------
#
# Each threshold of ambiguity is a point of this curve. If an error costs one and a refusal ``t``,
# the best threshold is ``t`` itself (Chow 1970), as long as probabilities are right;
# ``ambiguity_rule="cost"`` looks for it on held-out rows instead.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
plot_reject_curve(rejecting, X_test, y_test, ax=axes)
plt.show()

print("cost of a refusal   never refuse   threshold   looked for")
for cost in (0.1, 0.2, 0.3):
    chow = RejectClassifier(network, ambiguity=cost).fit(X, y)
    found = RejectClassifier(network, ambiguity=cost, ambiguity_rule="cost").fit(X, y)
    costs = [model.mean_cost(X_test, y_test, refusal=cost) for model in (plain, chow, found)]
    print(f"{cost:>17}   {costs[0]:12.4f}   {costs[1]:9.4f}   {costs[2]:10.4f}")

# %%
# Unlike anything seen
# --------------------
#
# Rows from everywhere are mixed into the test rows. The threshold was set without any of them.

rng = np.random.default_rng(0)
unknown = np.vstack([X_test, rng.uniform(-6, 6, size=(2000, 2))])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
plot_novelty(rejecting, X, unknown, ax=axes)
plt.show()
