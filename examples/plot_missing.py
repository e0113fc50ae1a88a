"""
Missing values
==============

A model of densities needs no imputer. Missing values are integrated out: in training by EM, in
prediction by the density of the known cells. This example shows one row with a missing value and
its conditional density, and then fits a file with categorical features and missing values.
"""

# %%
# One row, one value missing
# --------------------------
#
# Ripley's two classes, with 30 % of the training cells deleted. The first feature of a new row is
# known; the second is not.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_ripley

X, y = make_ripley(1000, random_state=0)
rng = np.random.default_rng(0)
incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
model = SharedKernelClassifier.prbf(4, covariance_type="full", sharing=0, random_state=0).fit(
    incomplete, y
)
row = np.array([0.35, np.nan])
print("P(class | first feature) =", model.predict_proba(row[None, :])[0].round(3))
print("the second feature, as expected:", model.impute(row[None, :])[0, 1].round(3))

# %%
# Left: the two class densities, and the line on which the row lies. Middle: the conditional density of
# the missing value, in all and by class: the density along that line. Right: the probability of a
# class as a function of the missing value; the prediction is the mean of this curve over the
# conditional density.

known = model.conditional(row)
line = np.linspace(-0.6, 1.6, 400)
along = np.column_stack([np.full(400, row[0]), line])
by_class = np.exp(known.log_density(line[:, None])) * known.class_prior_
colors = ("tab:blue", "tab:orange")

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
across, up = np.meshgrid(np.linspace(-1.4, 1.2, 120), np.linspace(-0.4, 1.3, 120))
density = np.exp(model.log_density(np.column_stack([across.ravel(), up.ravel()])))
for k, color in enumerate(colors):
    complete = ~np.isnan(incomplete).any(axis=1) & (y == k)
    left.scatter(*incomplete[complete].T, s=6, color=color, alpha=0.4, linewidths=0)
    left.contour(
        across, up, density[:, k].reshape(across.shape), levels=4, colors=color, linewidths=1
    )
    middle.plot(line, by_class[:, k], color=color, label=f"class {k}")
left.axvline(row[0], color="black", linewidth=1.5)
left.set(title="the row lies on this line", xlabel="first feature", ylabel="second feature")
middle.plot(line, by_class.sum(axis=1), color="black", label="together")
middle.set(title="density of the missing value", xlabel="second feature", ylabel="density")
middle.legend()
right.plot(line, model.predict_proba(along)[:, 1], color="tab:orange", label="if it were known")
right.axhline(
    model.predict_proba(row[None, :])[0, 1], color="black", linestyle="--", label="not knowing it"
)
right.set(title="P(class 1)", xlabel="second feature", ylim=(0, 1))
right.legend()

# %%
# The dashed line is an integral, and can be checked as one:

step = line[1] - line[0]
conditional = by_class.sum(axis=1) * step
predicted = model.predict_proba(row[None, :])[0, 1]
print(
    f"{conditional @ model.predict_proba(along)[:, 1]:.3f} by adding up, {predicted:.3f} by the model"
)

# %%
# From a file to a report
# -----------------------
#
# A table with categories, numbers and empty cells. Nothing is encoded, imputed or scaled by hand:
# ``kernelpool fit`` prints the kind of each column.

from typer.testing import CliRunner

from kernelpool.app.cli.app import app

folder = Path(tempfile.mkdtemp())
with open(folder / "loans.csv", "w", encoding="utf-8") as file:
    file.write("age,income,town,married,repaid\n")
    for _ in range(300):
        good = rng.random() < 0.6
        town = rng.choice(
            ["Athens", "Patras", "Volos"], p=[0.6, 0.2, 0.2] if good else [0.2, 0.3, 0.5]
        )
        married = rng.choice(["yes", "no"], p=[0.7, 0.3] if good else [0.4, 0.6])
        cells = [
            f"{rng.normal(45 if good else 35, 8):.0f}",
            f"{rng.normal(30 if good else 24, 6):.1f}",
            town,
            married,
        ]
        cells = ["" if rng.random() < 0.15 else cell for cell in cells]
        file.write(",".join([*cells, "yes" if good else "no"]) + "\n")

arguments = ["fit", str(folder / "loans.csv"), "-t", "repaid", "--set", "members=fast"]
ran = CliRunner().invoke(
    app,
    [*arguments, "-o", str(folder / "loans.safetensors"), "--report", str(folder / "loans.html")],
)
print((ran.stderr + ran.stdout).replace(f"{folder}/", ""))

# %%
# In Python it is one line too: the types of the columns decide which hold categories. Each kernel
# has a table of probabilities for each of them, and an empty cell is a missing value.

import pandas as pd

loans = pd.read_csv(folder / "loans.csv")
table, repaid = loans.drop(columns="repaid"), loans["repaid"]
model = SharedKernelClassifier([2, 2], covariance_type="diag", random_state=0).fit(table, repaid)
print(
    {
        name: categories.tolist()
        for name, categories in zip(table.columns, model.columns_.categories, strict=True)
        if categories is not None
    }
)
row = table.iloc[[7]].assign(town="Sparta", income=np.nan)  # an unseen town, a missing income
print(row.to_string(index=False))
print(
    "P(repaid) =",
    model.predict_proba(row)[0, 1].round(3),
    "and the expected income is",
    f"{model.impute(row)['income'].iloc[0]:.1f}",
)
print(model.explain(table.iloc[0]))

# %%
# The probabilities of the towns in either class: the tables of the kernels, weighted by the shares
# of the kernels.

towns = (
    model.mixing_.T @ model.probabilities_[:, : len(model.columns_.categories[2]) + 1]
)  # (classes, towns and any other)
names = [*model.columns_.categories[2], "any other"]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for k, (label, color) in enumerate(zip(model.classes_, colors, strict=True)):
    ax.bar(
        np.arange(len(names)) + 0.4 * k, towns[k], width=0.38, color=color, label=f"repaid: {label}"
    )
ax.set_xticks(np.arange(len(names)) + 0.2, names)
ax.set(title="P(town | class)", ylim=(0, 1))
ax.legend()
