"""Small tables, and settings of a fit that takes no time."""

import csv

import numpy as np
import pyarrow as pa

QUICK = ("--model", "shared-kernel", "--set", "n_kernels=3", "--set", "training=em")
NAMES = ["a", "b", "color"]


def write_csv(path, names, rows, **words):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", **words)
        writer.writerow(names)
        writer.writerows(rows)
    return str(path)


def colors(n=90, seed=0, apart=5.0):
    """Three classes, two features; 5 apart any model separates them, 1.5 apart there are errors."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 3
    x = rng.normal(size=(n, 2)) + apart * np.array([[0, 0], [1, 0], [0, 1]])[code]
    return [
        [f"{a:.3f}", f"{b:.3f}", ("red", "green", "blue")[k]]
        for (a, b), k in zip(x, code, strict=True)
    ]


def features(rows):
    return np.array([[float(cell) for cell in row[:2]] for row in rows])


def table(rows):
    x = features(rows)
    return pa.table({"a": x[:, 0], "b": x[:, 1]})


def labels(rows):
    return np.array([row[2] for row in rows])
