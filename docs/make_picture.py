"""Draws `_static/tumors.png`, the picture in the README: python docs/make_picture.py [FOLDER].

FOLDER is the one that `make demo` writes.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

from kernelpool import PooledClassifier, RejectClassifier

COLORS = {"benign": "#2b6c99", "malignant": "#c2552d"}
AXES = "mean radius", "mean smoothness"


def density(model, table, panel):
    """Log-density where the two features alone are known, and the training rows."""
    x = np.linspace(5, 30, 160)
    y = np.geomspace(0.045, 1.3, 160)
    grid = pd.DataFrame(np.nan, index=range(x.size * y.size), columns=table.columns)
    grid["size"] = pd.Series([None] * len(grid), dtype=object)
    grid[AXES[0]], grid[AXES[1]] = (axis.ravel() for axis in np.meshgrid(x, y))
    levels = model.score_samples(grid).reshape(y.size, x.size)
    gray = ListedColormap([str(shade) for shade in np.linspace(0.98, 0.7, 8)])
    panel.contourf(x, y, levels, [-60, -30, -15, -8, -4, -2, 0, 2, 6], cmap=gray)
    panel.set(yscale="log", xlabel=AXES[0], ylabel=AXES[1], xlim=(5, 30), ylim=(0.045, 1.3))
    panel.set_yticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])


def draw(folder):
    table = pd.read_csv(folder / "tumors.csv")
    new = pd.read_csv(folder / "new.csv").set_index("id")
    X, y = table.drop(columns="kind"), table["kind"]
    model = PooledClassifier(random_state=0).fit(X, y)
    answer = RejectClassifier(model).fit(X, y).predict(new)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    density(model, X, left)
    for name, color in COLORS.items():
        rows = X[y == name]
        left.plot(
            rows[AXES[0]], rows[AXES[1]], ".", color=color, markersize=3, alpha=0.6, label=name
        )
    for name, label in zip(new.index, answer, strict=True):
        where = new.loc[name, AXES[0]], new.loc[name, AXES[1]]
        if np.isnan(where[1]):  # in the margin
            where, label = (where[0], 0.048), f"{label}\n(smoothness missing)"
        left.plot(*where, "o", color="black", markerfacecolor="white", markersize=7)
        shift = {"A": (-6, -28), "D": (-24, 16)}.get(name, (6, 16))
        left.annotate(
            f"{name}: {label}",
            where,
            shift,
            textcoords="offset points",
            ha="right" if name == "A" else "left",
            weight="bold",
            arrowprops={"arrowstyle": "-", "shrinkB": 3},
        )
    left.legend(loc="center right", frameon=False, markerscale=3)
    left.set_title("How likely each row is, and four new rows", loc="left")
    why = model.explain(new.loc["B"])
    parts = why.features[::-1]
    colors = [COLORS[why.label if part.part > 0 else why.against] for part in parts]
    bars = right.barh(
        [f"{part.name} = {part.value}" for part in parts],
        [part.part for part in parts],
        color=colors,
    )
    right.bar_label(bars, fmt="%+.2f", padding=3)
    right.axvline(0, color="0.3", linewidth=0.8)
    right.margins(x=0.3)
    right.set(xlabel=f"{why.against}  ←  log-odds  →  {why.label}")
    right.set_title(f"Why B is ambiguous: {why.label} {100 * why.probability:.0f} %", loc="left")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "_static" / "tumors.png", dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "kernelpool-demo"))
