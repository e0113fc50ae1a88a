"""Kernels for a reader: what share of the rows each accounts for, its classes, where it lies, and the rows nearest to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..inspection.pipeline import Unwrapped
from ..inspection.pool import Pool
from ..text import text_of
from .records import KernelRow, KernelTable, Near, Trait
from .table import blocks

MOST_AS_COLUMNS, MOST_TRAITS, MOST_CLASSES, N_NEAR = 6, 5, 4, 3


@dataclass(frozen=True)
class Seen:
    """Training rows as the model inside sees them; some of them, where there are too many."""

    x: np.ndarray
    """(n, d)."""
    at: np.ndarray
    """Their numbers among all training rows, (n,)."""
    labels: np.ndarray
    """Their labels as given, (n,)."""
    n_rows: int
    """Of all training rows."""
    mean: np.ndarray
    """(d,)."""
    deviation: np.ndarray
    """(d,); one where a feature is constant."""


def table_of(pool: Pool, model: Unwrapped, seen: Seen, classes: np.ndarray | None, most: int) -> KernelTable:
    """The kernels table."""
    chosen = pool.largest(most)
    near = nearest(pool, chosen, seen) if pool.mean is not None else [()] * len(chosen)
    n_features = len(model.features)
    as_columns = n_features <= MOST_AS_COLUMNS and pool.mean is not None
    rows = []
    for j, close in zip(chosen.tolist(), near, strict=True):
        named = (
            _class_shares(pool.class_posterior[j], classes) if classes is not None and pool.class_posterior is not None else []
        )
        traits = _traits(pool, j, model, seen, None if as_columns else MOST_TRAITS)
        readout = pool.weight[j] if classes is None and pool.weight is not None and pool.weight.ndim == 2 else ()
        rows.append(
            KernelRow(
                index=j,
                group=pool.group[j] if pool.group else "",
                share=float(pool.share[j]),
                n_rows=float(pool.share[j] * seen.n_rows),
                classes=tuple(named[:MOST_CLASSES]),
                n_more_classes=max(0, len(named) - MOST_CLASSES),
                traits=tuple(traits),
                n_more_traits=0 if as_columns else max(0, n_features - MOST_TRAITS),
                near=close,
                weight=tuple(float(w) for w in readout),
            )
        )
    names = model.names if as_columns else ()
    return KernelTable(pool.word, tuple(rows), len(pool) - len(rows), names, not as_columns)


def _class_shares(posterior: np.ndarray, classes: np.ndarray) -> list[tuple[str, float]]:
    """Classes that matter to a kernel, the greatest first."""
    order = np.argsort(-posterior, kind="stable")
    return [(text_of(classes[k]), float(posterior[k])) for k in order if posterior[k] >= 0.005]


def _traits(pool: Pool, j: int, model: Unwrapped, seen: Seen, most: int | None) -> list[Trait]:
    """Mean and width along each feature in the units of the data, or the slopes of a neuron.

    All of them in their order, or the `most` that stand out farthest.
    """
    scale = model.scale
    width: np.ndarray | None = None
    if pool.mean is not None and pool.variance is not None:
        value, width = scale * pool.mean[j] + model.offset, np.abs(scale) * pool.variance[j] ** 0.5
        away = np.sign(scale) * (pool.mean[j] - seen.mean) / seen.deviation
    elif pool.weight is not None:
        slope = pool.weight[j]  # (outputs, d)
        steepest = slope[np.abs(slope).argmax(axis=0), np.arange(slope.shape[1])]
        value, away = steepest / scale, steepest * seen.deviation
    else:
        return []
    order = np.arange(len(away)) if most is None else np.argsort(-np.abs(away), kind="stable")[:most]
    return [
        Trait(model.features[i].name, float(value[i]), None if width is None else float(width[i]), float(away[i]))
        for i in order.tolist()
    ]


# -- distances ----------------------------------------------------------------------------------------------------


def whitened(pool: Pool, j: int, x: np.ndarray) -> np.ndarray:
    """x - mean in widths of kernel j, (n, d): its squared length is the Mahalanobis distance squared."""
    away = x - pool.mean[j]  # type: ignore[index]
    if pool.covariance is None:
        return np.asarray(away / pool.variance[j] ** 0.5)  # type: ignore[index]
    matrix = pool.covariance if pool.covariance.ndim == 2 else pool.covariance[j]
    return np.asarray(solve_triangular(np.linalg.cholesky(matrix), away.T, lower=True).T)


def nearest(pool: Pool, chosen: np.ndarray, seen: Seen) -> list[tuple[Near, ...]]:
    """The training rows nearest to each kernel, by Mahalanobis distance."""
    size = max(256, (1 << 21) // seen.x.shape[1])  # 16 MB a block
    found = []
    for j in chosen.tolist():
        parts = [(whitened(pool, j, seen.x[block]) ** 2).sum(axis=1) for block in blocks(len(seen.x), size)]
        square = np.concatenate(parts)
        best = np.argpartition(square, min(N_NEAR, len(square) - 1))[:N_NEAR]
        best = best[np.argsort(square[best], kind="stable")]
        found.append(tuple(Near(int(seen.at[i]), text_of(seen.labels[i]), float(square[i] ** 0.5)) for i in best))
    return found


def class_posterior_by_rows(inner: Any, x: Any, codes: np.ndarray, n_classes: int) -> np.ndarray | None:
    """P(C_k|j) of kernels that know no classes: the classes of the rows, weighed by what each kernel has to do with them."""
    if hasattr(inner, "neuron_posterior"):
        if not inner.local:  # every neuron has as much to do with every row
            return None
        belonging = np.asarray(inner.neuron_posterior(x))
    elif hasattr(inner, "activations"):
        belonging = np.asarray(inner.activations(x))
    else:
        return None
    mass = belonging[codes >= 0].T @ np.eye(n_classes)[codes[codes >= 0]]  # (M, K)
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / n_classes)
