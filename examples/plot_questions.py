"""
Explanations, prediction sets, class frequencies and drift
==========================================================

A classifier that models densities returns more than the class of a row: why this class, which
features matter, which classes are possible, how frequent they are now, and whether the rows have
changed since training.
"""

# %%
# Why this class?
# ---------------
#
# The log-odds of a row are the sum of one part for each feature: its Shapley value, where unknown
# features are integrated out of the mixture. The printed explanation also has the expected value of
# each feature, given all others and the class.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from kernelpool import ConformalClassifier, SharedKernelClassifier, inspection
from kernelpool.datasets import make_clouds

data = load_breast_cancer(as_frame=True)
chosen = [
    "mean radius",
    "mean texture",
    "mean smoothness",
    "mean concavity",
    "worst area",
    "worst symmetry",
]
X, y = data.data[chosen], np.where(data.target == 1, "benign", "malignant")
X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = SharedKernelClassifier.prbf(
    6, covariance_type="full", kernel_prior="conjugate", random_state=0
).fit(X, y)
unsure = np.argsort(np.abs(model.predict_proba(X_test)[:, 0] - 0.5))[0]
why = model.explain(X_test.iloc[unsure])
print(why)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
parts = why.features[::-1]
bars = ["#b5403a" if part.part < 0 else "#2b6c99" for part in parts]
axes.barh(
    [f"{part.name} = {part.value:.3g}" for part in parts], [part.part for part in parts], color=bars
)
axes.axvline(0, color="0.3", linewidth=0.8)
axes.set(title=f"one row: {why.label} rather than {why.against}", xlabel="part of the log-odds")
plt.show()

# %%
# Which features matter?
# ----------------------
#
# The importance of a feature is the rise of the log-loss of held-out rows without it. The feature
# is integrated out, not shuffled, so only rows that can occur are evaluated.

importance = inspection.feature_importance(model, X_test, y_test)
order = np.argsort(importance.importance)
names = [importance.names[i] for i in order]
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.barh(names, importance.importance[order], xerr=importance.error[order], color="#7a8b99")
axes.axvline(0, color="0.3", linewidth=0.8)
axes.set(title="all held-out rows", xlabel="rise of the log-loss without the feature")
plt.show()

# %%
# Which classes are possible?
# ---------------------------
#
# A prediction set holds the true class with a guaranteed probability: one class where that is
# enough, both near the boundary, and none for a row unlike both.

X, y = make_clouds(2000, random_state=0)
sets = ConformalClassifier(
    SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0), error=0.05
).fit(X, y)
across, up = np.meshgrid(np.linspace(-4.2, 4.2, 160), np.linspace(-4, 5, 160))
members = sets.predict_set(np.column_stack([across.ravel(), up.ravel()]))
kind = np.select([members.all(axis=1), members[:, 0], members[:, 1]], [2, 0, 1], 3).reshape(
    across.shape
)
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
colors = plt.matplotlib.colors.ListedColormap(["#a9c9e0", "#e8b9b5", "#d9cbe0", "#f2f2f2"])
axes.pcolormesh(across, up, kind, cmap=colors, vmin=0, vmax=3, rasterized=True)
for k, color in enumerate(("#2b6c99", "#b5403a")):
    axes.plot(*X[y == k][:400].T, ".", markersize=2, color=color)
areas = [plt.Rectangle((0, 0), 1, 1, facecolor=colors(i), edgecolor="0.6") for i in range(4)]
axes.legend(areas, ["{0}", "{1}", "{0, 1}", "{ }"], loc="lower left", ncols=4, fontsize=9)
axes.set(title="sets that hold the true class with 95 %")
plt.show()
X_test, y_test = make_clouds(20_000, random_state=1)
inside = sets.predict_set(X_test)
print(f"true class inside: {inside[np.arange(len(y_test)), y_test].mean():.1%}")
print("classes in a set:", np.bincount(inside.sum(axis=1)) / len(y_test))

# %%
# How frequent are the classes now?
# ---------------------------------
#
# Class frequencies are estimated from rows without labels, with an interval, and a test whether
# they have changed (Saerens, Latinne and Decaestecker 2002). ``with_class_prior`` then predicts for
# these frequencies; nothing is trained again.

network = sets.estimators_[0]
truth, found = np.linspace(0.05, 0.95, 10), []
rng = np.random.default_rng(0)
for share in truth:
    rows = np.concatenate(
        [
            rng.choice(np.flatnonzero(y_test == k), n)
            for k, n in ((1, round(1000 * share)), (0, 1000 - round(1000 * share)))
        ]
    )
    found.append(inspection.estimate_class_prior(network, X_test[rows]))
middle = np.array([one.class_prior[1] for one in found])
ends = np.abs(np.array([[one.low[1] for one in found], [one.high[1] for one in found]]) - middle)
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.errorbar(truth, middle, yerr=ends, fmt="o", color="#2b6c99", capsize=3, label="estimated")
axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
axes.set(
    title="frequency of class 1 among 1,000 rows", xlabel="true", ylabel="estimated, 95 % interval"
)
plt.show()

# %%
# Are rows still like those of the training?
# ------------------------------------------
#
# Every feature is compared with the training rows, and the density of the model with that of rows
# held out, with a p-value that holds for all of them together. Here each feature alone is as before;
# only their dependence has changed, and the density shows it.

reference = inspection.DriftReference.of(X, network, held_out=X_test[500:])
print(inspection.check_drift(network, X_test[:500], reference))
turned = np.column_stack([X_test[:500, 0], rng.permutation(X_test[:500, 1])])
print(inspection.check_drift(network, turned, reference))
