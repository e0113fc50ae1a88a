"""Kernels for a reader: their shares of the rows, classes, places and nearest rows; and rows and kernels on a map.

The map runs along two features, or the two directions in which the classes differ most.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ...errors import KernelpoolError
from ...inspection.describe import Pool
from ...inspection.pipeline import Unwrapped
from ...text import text_of
from .data import blocks
from .plots.plane import Plane, plane_of
from .records import Ellipse, KernelRow, KernelTable, Map, Near, Trait

MOST_AS_COLUMNS, MOST_TRAITS, MOST_CLASSES, N_NEAR = 6, 5, 4, 3


@dataclass(frozen=True)
class Seen:
    """Training rows as the model inside sees them; some of them, where there are too many."""

    x: np.ndarray
    """(n, d)."""
    at: np.ndarray
    """Their places among all training rows, (n,)."""
    numbers: np.ndarray
    """By which the report names them, (n,)."""
    labels: np.ndarray
    """Their labels as given, (n,)."""
    n_rows: int
    """Of all training rows."""
    mean: np.ndarray
    """(d,)."""
    deviation: np.ndarray
    """(d,); one where a feature is constant."""


def table_of(
    pool: Pool,
    model: Unwrapped,
    seen: Seen,
    classes: np.ndarray | None,
    most: int,
    apart: np.ndarray | None = None,
) -> KernelTable:
    """The kernels table; `apart` says how far the classes of each kernel lie apart, (M,)."""
    chosen = pool.largest(most)
    near = nearest(pool, chosen, seen) if pool.mean is not None else [()] * len(chosen)
    n_features = len(model.features)
    as_columns = n_features <= MOST_AS_COLUMNS and pool.mean is not None
    rows = []
    for j, close in zip(chosen.tolist(), near, strict=True):
        named = (
            _class_shares(pool.class_posterior[j], classes)
            if classes is not None and pool.class_posterior is not None
            else []
        )
        traits = _traits(pool, j, model, seen, None if as_columns else MOST_TRAITS)
        readout = (
            pool.weight[j]
            if classes is None and pool.weight is not None and pool.weight.ndim == 2
            else ()
        )
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
                apart=None if apart is None else float(apart[j]),
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
    order = (
        np.arange(len(away)) if most is None else np.argsort(-np.abs(away), kind="stable")[:most]
    )
    return [
        Trait(
            model.features[i].name,
            float(value[i]),
            None if width is None else float(width[i]),
            float(away[i]),
        )
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
        parts = [
            (whitened(pool, j, seen.x[block]) ** 2).sum(axis=1)
            for block in blocks(len(seen.x), size)
        ]
        square = np.concatenate(parts)
        best = np.argpartition(square, min(N_NEAR, len(square) - 1))[:N_NEAR]
        best = best[np.argsort(square[best], kind="stable")]
        found.append(
            tuple(
                Near(int(seen.numbers[i]), text_of(seen.labels[i]), float(square[i] ** 0.5))
                for i in best
            )
        )
    return found


def class_posterior_by_rows(
    inner: Any, x: Any, codes: np.ndarray, n_classes: int
) -> np.ndarray | None:
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


MOST_MOMENTS = 10**7
"""Kernels times classes times features up to which their moments are worth the wait."""


def class_distances(inner: Any, x: Any, labels: np.ndarray) -> np.ndarray | None:
    """delta_j, (M,), of kernels that classes share, by labeled rows; None where the model has no such measure."""
    if (
        not hasattr(inner, "kernel_overlap")
        or not len(labels)
        or inner.mixing_.size * inner.n_features_in_ > MOST_MOMENTS
    ):
        return None
    try:
        return np.asarray(inner.kernel_overlap(x, np.asarray(labels.tolist())))
    except KernelpoolError:  # a family without a Bhattacharyya distance
        return None


MOST_DRAWN, MOST_PLANED, MOST_COLORS, MOST_DIRECTIONS = 500, 5000, 7, 300


def map_of(
    pool: Pool,
    model: Unwrapped,
    seen: Seen,
    classes: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> Map | None:
    """Rows and kernels along two axes; None where there is one feature, or no place for a kernel."""
    d = seen.x.shape[1]
    if d < 2 or pool.mean is None:
        return None
    codes = {label: code for code, label in enumerate(classes.tolist())}
    y = np.array([codes.get(label, -1) for label in seen.labels.tolist()])
    counts = np.bincount(y[y >= 0], minlength=len(classes))
    biggest = np.sort(np.argsort(-counts, kind="stable")[:MOST_COLORS])
    place = np.full(len(classes) + 1, -1)
    place[biggest] = np.arange(len(biggest))
    few = np.sort(rng.choice(len(seen.x), min(len(seen.x), MOST_PLANED), replace=False))
    plane = _plane(model, seen, few, y)
    drawn = few[np.linspace(0, len(few) - 1, min(len(few), MOST_DRAWN)).astype(int)]
    chosen = pool.largest(most)
    part = _part(pool, chosen)
    ellipses = []
    for j, center, covariance in zip(
        chosen,
        plane.points(part.mean),  # type: ignore[arg-type]
        plane.covariances(part),
        strict=True,
    ):
        label = -1 if pool.class_posterior is None else int(place[pool.class_posterior[j].argmax()])
        shares = (
            (0.0,) * len(biggest)
            if pool.class_posterior is None
            else tuple(pool.class_posterior[j][biggest].tolist())
        )
        ellipses.append(_ellipse(center, covariance, label, float(pool.share[j]), shares))
    return Map(
        plane.names,
        tuple(text_of(classes[k]) for k in biggest),
        tuple(
            (float(a), float(b), int(place[k]))
            for (a, b), k in zip(plane.points(seen.x[drawn]), y[drawn], strict=True)
        ),
        tuple(ellipses),
        linear=plane.names[0] not in model.names,
        word=pool.word,
    )


def _plane(model: Unwrapped, seen: Seen, few: np.ndarray, y: np.ndarray) -> Plane:
    """Along the directions in which classes differ most; along two features, where there are too many or too few rows."""
    if seen.x.shape[1] > MOST_DIRECTIONS:
        return plane_of(model, seen.x[few], y[few], _telling(seen, few, y))
    try:
        return plane_of(model, seen.x[few], y[few], None)
    except (
        ValueError,
        np.linalg.LinAlgError,
    ):  # as many classes as rows, or features without any variance
        return plane_of(model, seen.x[few], y[few], (0, 1))


def _part(pool: Pool, chosen: np.ndarray) -> Pool:
    """Some kernels of a pool."""
    covariance = pool.covariance
    if covariance is not None and covariance.ndim == 3:
        covariance = covariance[chosen]
    return Pool(
        pool.share[chosen],
        mean=pool.mean[chosen],  # type: ignore[index]
        variance=pool.variance[chosen],  # type: ignore[index]
        covariance=covariance,
    )


def _telling(seen: Seen, few: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """The two features whose class means lie farthest apart, in deviations."""
    z = (seen.x[few] - seen.mean) / seen.deviation
    means = np.array([z[y[few] == k].mean(axis=0) for k in np.unique(y[few])])
    first, second = np.argsort(-means.var(axis=0), kind="stable")[:2].tolist()
    return first, second


def _ellipse(
    center: np.ndarray, covariance: np.ndarray, label: int, share: float, classes: tuple[float, ...]
) -> Ellipse:
    value, vector = np.linalg.eigh(covariance)
    short, long = np.sqrt(np.maximum(value, 0))
    angle = float(np.degrees(np.arctan2(vector[1, 1], vector[0, 1])))
    return Ellipse(
        float(center[0]), float(center[1]), float(long), float(short), angle, label, share, classes
    )
