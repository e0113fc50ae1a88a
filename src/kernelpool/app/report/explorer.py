"""The data of the page's explorer: rows, kernels and regions of classes along any two features.

Axes are input columns of numbers. Categories are given by name, and a region is the most probable
class where the two features of the axes alone are known.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...inspection import FittedPipeline, cells_of, never_seen, predictions
from ...text import plain, text_of
from .results import Results, spaced

N_SERIES = 7
"""Classes that have a color of their own."""

NEVER_SEEN = "never seen"
"""Marks a category that was not there when the model was fitted."""

MOST_EXPLORED = 800
"""Rows in the explorer."""

MOST_EXPLORED_FEATURES = 6
"""Numeric features in the explorer."""

MOST_CATEGORY_COLUMNS = 6
"""Categorical features in the explorer."""

MOST_DRAWN = 60
"""Kernels in the explorer."""

N_CELLS = 6000
"""Cells of the regions of classes, about, of all pairs of features together."""


def explore(results: Results) -> dict[str, Any] | None:
    """What the page's script draws; None where no column holds numbers."""
    inside = results.inside
    at = spaced(len(results.rows), MOST_EXPLORED)
    rows = results.rows.at(at)
    answers = results.predictions.at(at)
    x = inside.input.encode(rows.X)
    cells = cells_of(inside.input, x, rows.X)
    unseen = never_seen(inside.input, x)
    categories = inside.input.categories
    numbers = [i for i, c in enumerate(categories) if c is None and not np.isnan(x[:, i]).all()]
    if not numbers:
        return None
    likely = answers.probability.argmax(axis=1)
    axes = separating(x, likely, numbers, MOST_EXPLORED_FEATURES)
    categorical = [i for i, values in enumerate(categories) if values is not None]
    ranges = [_range(x[:, i]) for i in axes]
    n_pairs = max(1, len(axes) * (len(axes) - 1) // 2)
    side = min(24, (N_CELLS / n_pairs / 6) ** 0.5)  # three cells across on two up
    grid = [round(3 * side), round(2 * side)]
    drawn, nearest = _drawn_kernels(inside, rows.X, axes)
    n_classes = len(answers.classes)
    return {
        "features": [text_of(inside.names[i]) for i in axes],
        "labels": results.names[:n_classes],
        "colors": [f"s{k}" if k < N_SERIES else "other" for k in range(len(results.names))],
        "ids": [text_of(name) for name in rows.ids],
        "dates": [inside.names[i] in inside.dates for i in axes],
        "values": plain(x[:, axes]),
        "categories": {
            text_of(inside.names[i]): [
                row[i] and text_of(row[i]) + f" ({NEVER_SEEN})" * new
                for row, new in zip(cells, unseen[:, i].tolist(), strict=True)
            ]
            for i in categorical[:MOST_CATEGORY_COLUMNS]
        },
        "true": np.where(rows.y < n_classes, rows.y, -1).tolist(),
        "named": likely.tolist(),
        "ambiguity": rounded(answers.ambiguity),
        "score": [None] * len(x) if answers.score is None else rounded(answers.score),
        "nearest": nearest,
        "kernels": drawn,
        "threshold": results.reject and results.reject.ambiguity_threshold_,
        "ranges": ranges,
        "missing": bool(np.isnan(x[:, axes]).any()),
        "start": [axes.index(i) for i in separating(x, likely, axes, 2)] * 2,
        "grid": grid,
        "regions": _regions(inside, axes, ranges, grid),
    }


def rounded(values: np.ndarray, digits: int = 7) -> Any:
    """Numbers as JSON has them, with a few digits."""
    return plain(np.array([float(f"{v:.{digits}g}") for v in values.ravel()]).reshape(values.shape))


def separating(x: np.ndarray, codes: np.ndarray, features: list[int], most: int) -> list[int]:
    """The features along which classes lie farthest apart, in deviations; in their order."""
    if len(features) <= most:
        return features
    z = np.ma.masked_invalid(x[:, features])
    means = np.ma.stack([z[codes == k].mean(axis=0) for k in np.unique(codes)])
    apart = (means.var(axis=0) / z.var(axis=0)).filled(0.0)
    return sorted(features[j] for j in np.argsort(-apart, kind="stable")[:most])


def _range(column: np.ndarray) -> tuple[float, float]:
    """What the page's script shows of a feature."""
    low = float(np.nanmin(column))
    high = float(np.nanmax(column))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def regions_of(
    inside: FittedPipeline, pair: Sequence[int], across: np.ndarray, up: np.ndarray
) -> tuple[Any, Any] | None:
    """Codes of the most probable classes where two input columns alone are known, and of the
    decisions, (up, across). None where the classifier takes no missing values.
    """
    x = np.full((len(up) * len(across), len(inside.names)), np.nan)
    x[:, list(pair)] = np.column_stack([grid.ravel() for grid in np.meshgrid(across, up)])
    try:
        answers = predictions(inside.outer, inside.input.decode(x), score=False)
    except ValueError:
        return None
    shape = len(up), len(across)
    return answers.probability.argmax(axis=1).reshape(shape), answers.decision.reshape(shape)


def _regions(
    inside: FittedPipeline, axes: list[int], ranges: Any, grid: list[int]
) -> list[list[int]]:
    """Codes of the cells of each pair of axes, from the lowest row up, as runs (code, count)."""
    centers = [
        [low + (np.arange(n) + 0.5) / n * (high - low) for n in grid] for low, high in ranges
    ]
    runs = []
    for a, b in combinations(range(len(axes)), 2):
        regions = regions_of(inside, (axes[a], axes[b]), centers[a][0], centers[b][1])
        if regions is None:
            return []
        code = regions[0].ravel()
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        counts = np.diff(starts, append=len(code))
        runs.append(np.column_stack([code[starts], counts]).ravel().tolist())
    return runs


def _drawn_kernels(
    inside: FittedPipeline, X: Any, axes: list[int]
) -> tuple[list[dict[str, Any]], list[int]]:
    """The greatest kernels along the axes, and that of each row, -1 where it is not drawn."""
    none = [-1] * X.shape[0]
    if inside.kernels is None or inside.made:
        return [], none
    table = inside.kernels
    greatest = np.sort(table.largest(MOST_DRAWN)).tolist()
    kernels = [
        {
            "index": j,
            "share": float(table.share[j]),
            "classes": table.classes(j)[:5],
            "mean": rounded(table.mean[j][axes]),
            "covariance": rounded(inside.covariance(j, axes)),
        }
        for j in greatest
    ]
    posterior = inside.responsibilities(X)
    if posterior is None:
        return kernels, none
    at = table.largest(len(table))
    nearest = at[posterior[:, at].argmax(axis=1)].tolist()
    return kernels, [j if j in greatest else -1 for j in nearest]
