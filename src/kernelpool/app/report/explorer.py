"""Rows and kernels to be looked at from all sides: what the page's script needs to draw them along any two features."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from ...arrays import to_numpy
from ...inspection.describe import Pool
from ...inspection.metrics import ambiguity_of
from ...inspection.pipeline import Unwrapped, of_codes
from ...text import text_of
from .records import ExploredKernel, Explorer

MOST_POINTS, MOST_FEATURES, MOST_KERNELS, MOST_CLASSES = 800, 8, 60, 5
GRID = 24, 16
"""Cells of regions, across and up."""

MOST_ASKED, MOST_LENT = 60_000, 20
"""Rows that a classifier is asked for regions, and rows that lend it the other features where it cannot do without them."""


def explorer_of(
    model: Unwrapped,
    pool: Pool | None,
    rows: Any,
    x: np.ndarray,
    labels: Any,
    numbers: np.ndarray,
    names: Sequence[str] | None = None,
    *,
    held_out: bool = True,
) -> Explorer | None:
    """Of rows as the user passes them, and as the model inside sees them, `x` (n, d); None where there is nothing to draw."""
    classes = np.asarray(model.outer.classes_)
    probability = np.asarray(to_numpy(model.outer.predict_proba(rows)), np.float64)
    if not len(x) or x.shape[1] < 1 or not np.isfinite(probability).all():
        return None
    named = probability.argmax(axis=1)
    known = {label: code for code, label in enumerate(classes.tolist())}
    true = (
        [-1] * len(x)
        if labels is None
        else [known.get(label, -1) for label in np.asarray(labels, object).tolist()]
    )
    chosen = _telling(x, named, len(classes))
    scale, offset = model.scale[chosen], model.offset[chosen]
    score: list[float | None] = [None] * len(x)
    if hasattr(model.outer, "score_samples"):
        found = np.asarray(to_numpy(model.outer.score_samples(rows)), np.float64)
        score = [_short(v) if np.isfinite(v) else None for v in found.tolist()]
    kernels, nearest = _kernels(model, pool, x, chosen)
    refusing = getattr(model.outer, "ambiguity_threshold_", None)
    ranges = _ranges(x[:, chosen])
    regions = _regions(model, x, chosen, ranges, classes)
    in_units = ranges * scale[:, None] + offset[:, None]
    return Explorer(
        features=tuple(model.names[i] for i in chosen.tolist()),
        labels=tuple(text_of(label) for label in classes.tolist()),
        numbers=tuple(int(n) for n in numbers),
        names=tuple(text_of(name) for name in names) if names is not None else (),
        values=tuple(
            tuple(_short(v) for v in row) for row in (x[:, chosen] * scale + offset).tolist()
        ),
        true=tuple(true),
        named=tuple(named.tolist()),
        doubt=tuple(_short(v) for v in ambiguity_of(probability).tolist()),
        score=tuple(score),
        nearest=nearest,
        kernels=kernels,
        threshold=refusing,
        held_out=held_out,
        ranges=tuple((float(low), float(high)) for low, high in in_units.tolist())
        if regions
        else (),
        grid=GRID if regions else (0, 0),
        regions=regions,
    )


def _ranges(x: np.ndarray) -> np.ndarray:
    """What a picture of the rows shows of each feature, (d, 2): as the page's script draws it."""
    low, high = x.min(axis=0), x.max(axis=0)
    margin = 0.05 * (high - low)
    margin = np.where(margin > 0, margin, np.where(high != 0, 0.05 * np.abs(high), 1.0))
    return np.stack([low - margin, high + margin], axis=1)


def _regions(
    model: Unwrapped, x: np.ndarray, chosen: np.ndarray, ranges: np.ndarray, classes: np.ndarray
) -> tuple[tuple[int, ...], ...]:
    """The most probable class in cells along every pair of features, the others unknown; as runs of equal cells."""
    pairs = list(combinations(range(len(chosen)), 2))
    inner, (across, up) = of_codes(model.inner), GRID
    known = {label: code for code, label in enumerate(classes.tolist())}
    order = [known.get(label, -1) for label in np.asarray(inner.classes_).tolist()]
    numbers = [
        model.features[i].source is None and model.features[i].words is None
        for i in chosen.tolist()
    ]
    if not any(numbers[a] and numbers[b] for a, b in pairs) or not np.isfinite(x).all():
        return ()
    mixture = hasattr(inner, "kernel_posterior") and not hasattr(
        inner, "trials_"
    )  # a pool draws what it does not know
    free = x.shape[1] == 2 or (mixture and bool(get_tags(inner).input_tags.allow_nan))
    n_lent = 1 if free else max(1, min(MOST_LENT, len(x), MOST_ASKED // (len(pairs) * across * up)))
    lent = (
        np.full((1, x.shape[1]), np.nan)
        if free
        else x[np.linspace(0, len(x) - 1, n_lent).astype(int)]
    )
    found: list[tuple[int, ...]] = []
    for a, b in pairs:
        if not (numbers[a] and numbers[b]):  # between two words there is nothing
            found.append(())
            continue
        right, top = (
            low + (np.arange(n) + 0.5) / n * (high - low)
            for n, (low, high) in zip(GRID, ranges[[a, b]], strict=True)
        )
        cells = np.stack([np.tile(right, up), np.repeat(top, across)], axis=1)  # (cells, 2)
        rows = np.repeat(lent[None], len(cells), axis=0)  # (cells, lent, d)
        rows[:, :, chosen[[a, b]]] = cells[:, None]
        try:
            probability = np.asarray(
                to_numpy(inner.predict_proba(rows.reshape(-1, x.shape[1]))), np.float64
            )
        except ValueError:  # a network that wants other features
            return ()
        best = probability.reshape(len(cells), n_lent, -1).mean(axis=1).argmax(axis=1)
        found.append(_runs(np.array(order)[best]))
    return tuple(found)


def _runs(codes: np.ndarray) -> tuple[int, ...]:
    """(value, number of times) one after the other."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    lengths = np.diff([*starts.tolist(), len(codes)])
    return tuple(np.stack([codes[starts], lengths], axis=1).ravel().tolist())


def _telling(x: np.ndarray, named: np.ndarray, n_classes: int) -> np.ndarray:
    """Features along which classes lie apart most, at most so many, in their order."""
    if x.shape[1] <= MOST_FEATURES:
        return np.arange(x.shape[1])
    spread = x.var(axis=0)
    means = np.stack([x[named == k].mean(axis=0) for k in range(n_classes) if (named == k).any()])
    apart = np.where(spread > 0, means.var(axis=0) / np.where(spread > 0, spread, 1.0), 0.0)
    return np.sort(np.argsort(-apart, kind="stable")[:MOST_FEATURES])


def _kernels(
    model: Unwrapped, pool: Pool | None, x: np.ndarray, chosen: np.ndarray
) -> tuple[tuple[ExploredKernel, ...], tuple[int, ...]]:
    """The greatest kernels along the chosen features, in the units of the data, and the kernel of each row (-1: none)."""
    if pool is None or pool.mean is None or pool.variance is None:
        return (), (-1,) * len(x)
    scale, offset = model.scale[chosen], model.offset[chosen]
    greatest = np.sort(pool.largest(MOST_KERNELS))
    found = []
    for j in greatest.tolist():
        if pool.covariance is None:
            matrix = np.diag(pool.variance[j][chosen])
        else:
            whole = pool.covariance if pool.covariance.ndim == 2 else pool.covariance[j]
            matrix = whole[np.ix_(chosen, chosen)]
        found.append(
            ExploredKernel(
                index=int(j),
                share=_short(float(pool.share[j])),
                classes=() if pool.class_posterior is None else _greatest(pool.class_posterior[j]),
                mean=tuple(_short(v) for v in (pool.mean[j][chosen] * scale + offset).tolist()),
                covariance=tuple(
                    tuple(_short(v) for v in row)
                    for row in (matrix * np.outer(scale, scale)).tolist()
                ),
            )
        )
    inner = of_codes(model.inner)
    if not hasattr(inner, "kernel_posterior"):
        return tuple(found), (-1,) * len(x)
    posterior = np.asarray(to_numpy(inner.kernel_posterior(x)))
    if posterior.shape[1] != len(pool):
        return tuple(found), (-1,) * len(x)
    drawn = set(greatest.tolist())
    return tuple(found), tuple(j if j in drawn else -1 for j in posterior.argmax(axis=1).tolist())


def _greatest(posterior: np.ndarray) -> tuple[tuple[int, float], ...]:
    order = np.argsort(-posterior, kind="stable")[:MOST_CLASSES]
    return tuple((k, _short(float(posterior[k]))) for k in order.tolist() if posterior[k] >= 0.005)


def _short(value: float) -> float:
    """As many digits as a picture needs."""
    return float(f"{value:.5g}")
