"""Rows and kernels on a map: along two features, or the two directions in which the classes differ most."""

import numpy as np

from ..inspection.pipeline import Unwrapped
from ..inspection.pool import Pool
from ..text import text_of
from .kernels import Seen
from .plots.plane import Plane, plane_of
from .records import Ellipse, Map

MOST_DRAWN, MOST_PLANED, MOST_COLORS, MOST_DIRECTIONS = 500, 5000, 7, 300


def map_of(pool: Pool, model: Unwrapped, seen: Seen, classes: np.ndarray, most: int, rng: np.random.Generator) -> Map | None:
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
    for j, center, covariance in zip(chosen, plane.points(part.mean), plane.covariances(part), strict=True):  # type: ignore[arg-type]
        label = -1 if pool.class_posterior is None else int(place[pool.class_posterior[j].argmax()])
        ellipses.append(_ellipse(center, covariance, label, float(pool.share[j])))
    return Map(
        plane.names,
        tuple(text_of(classes[k]) for k in biggest),
        tuple((float(a), float(b), int(place[k])) for (a, b), k in zip(plane.points(seen.x[drawn]), y[drawn], strict=True)),
        tuple(ellipses),
        linear=plane.names[0] not in model.names,
    )


def _plane(model: Unwrapped, seen: Seen, few: np.ndarray, y: np.ndarray) -> Plane:
    """Along the directions in which classes differ most; along two features, where there are too many or too few rows."""
    if seen.x.shape[1] > MOST_DIRECTIONS:
        return plane_of(model, seen.x[few], y[few], _telling(seen, few, y))
    try:
        return plane_of(model, seen.x[few], y[few], None)
    except (ValueError, np.linalg.LinAlgError):  # as many classes as rows, or features without any variance
        return plane_of(model, seen.x[few], y[few], (0, 1))


def _part(pool: Pool, chosen: np.ndarray) -> Pool:
    """Some kernels of a pool."""
    covariance = pool.covariance
    if covariance is not None and covariance.ndim == 3:
        covariance = covariance[chosen]
    return Pool(pool.share[chosen], mean=pool.mean[chosen], variance=pool.variance[chosen], covariance=covariance)  # type: ignore[index]


def _telling(seen: Seen, few: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """The two features whose class means lie farthest apart, in deviations."""
    z = (seen.x[few] - seen.mean) / seen.deviation
    means = np.array([z[y[few] == k].mean(axis=0) for k in np.unique(y[few])])
    first, second = np.argsort(-means.var(axis=0), kind="stable")[:2].tolist()
    return first, second


def _ellipse(center: np.ndarray, covariance: np.ndarray, label: int, share: float) -> Ellipse:
    value, vector = np.linalg.eigh(covariance)
    short, long = np.sqrt(np.maximum(value, 0))
    angle = float(np.degrees(np.arctan2(vector[1, 1], vector[0, 1])))
    return Ellipse(float(center[0]), float(center[1]), float(long), float(short), angle, label, share)
