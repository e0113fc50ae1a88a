"""Rows, kernels and regions of classes along any two features: the data of the page's script.

Axes are input columns of numbers; categories are shown by name with the row, and a row is not
drawn along a feature in which its cell is missing. A region is the most probable class where the
two features of the axes alone are known, all others NaN.
"""

from itertools import combinations
from typing import Any

import numpy as np

from ...inspection import ambiguity_of
from ...text import text_of
from .inside import Inside, category, separating

MOST_AXES, MOST_CATEGORIES, MOST_KERNELS = 6, 6, 60
GRID = 24, 16
"""Cells of regions, across and up."""


def explore(
    inside: Inside, X: Any, y: np.ndarray, ids: list[str], score: np.ndarray | None
) -> dict[str, Any] | None:
    """Of rows with the codes of their classes, (n,), -1 where not known, and log p(x), (n,).

    None where no feature is a number.
    """
    x, classes = inside.input.encode(X), np.asarray(inside.outer.classes_)
    probability = np.asarray(inside.outer.predict_proba(X), np.float64)
    named = probability.argmax(axis=1)
    categories = inside.input.categories
    numbers = [i for i, c in enumerate(categories) if c is None and not np.isnan(x[:, i]).all()]
    if not numbers:
        return None
    axes = separating(x, named, numbers, MOST_AXES)
    shown = [i for i, values in enumerate(categories) if values is not None][:MOST_CATEGORIES]
    kernels, nearest = _kernels(inside, X, axes)
    ranges = [_range(x[:, i]) for i in axes]
    reject = inside.reject
    return {
        "features": [text_of(inside.names[i]) for i in axes],
        "labels": [text_of(label) for label in classes.tolist()],
        "ids": ids,
        "values": [[_short(cell) for cell in row] for row in x[:, axes].tolist()],
        "categories": {
            text_of(inside.names[i]): [
                None if np.isnan(code) else category(categories[i], code) for code in x[:, i]
            ]
            for i in shown
        },
        "true": np.where(y < len(classes), y, -1).tolist(),
        "named": named.tolist(),
        "ambiguity": [_short(value) for value in ambiguity_of(probability).tolist()],
        "score": [None] * len(x) if score is None else [_short(v) for v in score.tolist()],
        "nearest": nearest,
        "kernels": kernels,
        "threshold": None if reject is None else reject.ambiguity_threshold_,
        "ranges": ranges,
        "grid": GRID,
        "regions": _regions(inside, axes, ranges),
    }


def _range(column: np.ndarray) -> tuple[float, float]:
    """What the page's script shows of a feature."""
    low, high = float(np.nanmin(column)), float(np.nanmax(column))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _regions(inside: Inside, axes: list[int], ranges: Any) -> list[list[int]]:
    """Codes of the cells of each pair of axes, from the lowest row up, as runs (code, count)."""
    found = []
    for a, b in combinations(range(len(axes)), 2):
        centers = [
            low + (np.arange(n) + 0.5) / n * (high - low)
            for n, (low, high) in zip(GRID, (ranges[a], ranges[b]), strict=True)
        ]
        code = inside.regions((axes[a], axes[b]), centers[0], centers[1], decide=False)
        if code is None:
            return []
        code = code.ravel()
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        counts = np.diff(starts, append=len(code))
        found.append(np.column_stack([code[starts], counts]).ravel().tolist())
    return found


def _kernels(inside: Inside, X: Any, axes: list[int]) -> tuple[list[dict[str, Any]], list[int]]:
    """The greatest kernels along the axes, and that of each row, -1 where it is not drawn."""
    none = [-1] * len(inside.input.encode(X))
    place = {inside.position(i): i for i in inside.numbers}
    at = [place[i] for i in axes if i in place]
    if inside.pool is None or len(at) < len(axes):
        return [], none
    pool, greatest = inside.pool, np.sort(inside.pool.largest(MOST_KERNELS)).tolist()
    kernels = [
        {
            "index": j,
            "share": _short(float(pool.share[j])),
            "classes": [(k, _short(share)) for k, share in inside.classes(j, 5)],
            "mean": [_short(v) for v in pool.mean[j][at].tolist()],
            "covariance": [[_short(v) for v in r] for r in inside.covariance(j, at).tolist()],
        }
        for j in greatest
    ]
    posterior = inside.responsibilities(X)
    if posterior is None:
        return kernels, none
    return kernels, [j if j in greatest else -1 for j in posterior.argmax(axis=1).tolist()]


def _short(value: float) -> float | None:
    """As many digits as a picture needs; None where there is no number."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
