"""The rows that a model finds least likely, and which of their features it did not expect.

What a feature should have been is its mean in the most likely kernel; where features depend on each other there (full and tied
covariances), its mean given the other features of the row, so that a row may be odd although each of its values is common.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...estimators.shared_kernel import SharedKernelClassifier
from ...inspection.describe import Pool
from ...inspection.pipeline import Unwrapped
from ...text import text_of
from .kernels import whitened
from .records import OddFeature, Outlier, Outliers, Scores

N_BINS, MOST_ODD, N_DRAWN = 36, 3, 20_000


@dataclass(frozen=True)
class Scored:
    """log p(x) of some rows."""

    where: str
    x: np.ndarray
    """As the model inside sees them, (n, d)."""
    numbers: np.ndarray
    """By which the report names them, (n,)."""
    labels: np.ndarray
    named: Any
    """A function of positions among these rows that returns what the whole model names them."""
    score: np.ndarray


def density_of(inner: Any, pool: Pool) -> Any:
    """Something with `score_samples` and `sample`: the model, or the mixture of its hidden layer; None where there is none."""
    if hasattr(inner, "score_samples") and hasattr(inner, "sample"):
        return inner
    if pool.mean is None or pool.variance is None:
        return None
    kind = getattr(inner, "covariance_type_", None)
    covariances, kind = (inner.covariances_, kind) if kind is not None else (pool.variance, "diag")
    mixing = np.column_stack(
        [pool.share, pool.share]
    )  # a mixture without classes: two that are the same
    return SharedKernelClassifier.from_parameters(
        pool.mean, covariances, mixing, [0.5, 0.5], [0, 1], kind
    )


def outliers_of(
    density: Any,
    pool: Pool,
    model: Unwrapped,
    parts: list[Scored],
    most: int,
    n_drawn: int,
    seed: int,
    novelty: float | None = None,
) -> Outliers:
    """The `most` least likely rows of each part, and how all of them compare with rows drawn from the model.

    `novelty` is what the classifier itself calls novel below.
    """
    bound, one_in = None, 1000 if n_drawn >= 5000 else 100
    if n_drawn >= 500:
        drawn, _ = density.sample(min(n_drawn, N_DRAWN), random_state=seed)
        bound = float(np.quantile(_scores(density, drawn), 1 / one_in, method="lower"))
    finite = np.concatenate([part.score[np.isfinite(part.score)] for part in parts])
    edges = _edges(finite)
    rows = [outlier for part in parts for outlier in _least(pool, model, part, most)]
    scores = tuple(
        Scores(
            part.where,
            len(part.score),
            tuple(np.histogram(np.clip(part.score, edges[0], edges[-1]), edges)[0].tolist())
            if len(edges)
            else (),
            0 if bound is None else int((part.score < bound).sum()),
            None if novelty is None else int((~(part.score >= novelty)).sum()),
        )
        for part in parts
    )
    return Outliers(tuple(rows), bound, one_in, tuple(edges.tolist()), scores, novelty)


def _scores(density: Any, x: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():  # a model fitted to a frame is asked without its names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(density.score_samples(x))


def _edges(finite: np.ndarray) -> np.ndarray:
    """Of the histogram: the few far rows on the left are counted in its first bin."""
    if not len(finite):
        return np.empty(0)
    q1, q3 = np.quantile(finite, [0.25, 0.75])
    low, high = max(float(finite.min()), q1 - 6 * (q3 - q1)), float(finite.max())
    return np.linspace(low, high if high > low else low + 1, N_BINS + 1)


def _least(pool: Pool, model: Unwrapped, part: Scored, most: int) -> list[Outlier]:
    order = np.argsort(part.score, kind="stable")[:most]
    named = part.named(order)
    return [
        Outlier(
            part.where,
            int(part.numbers[i]),
            float(part.score[i]),
            text_of(part.labels[i]),
            text_of(name),
            _odd(pool, model, part.x[i]),
        )
        for i, name in zip(order.tolist(), named, strict=True)
    ]


def _odd(pool: Pool, model: Unwrapped, x: np.ndarray) -> tuple[OddFeature, ...]:
    """The features that are farthest from what the most likely kernel expects."""
    j = _most_likely(pool, x)
    mean, variance = pool.mean[j], pool.variance[j]  # type: ignore[index]
    residual, width = x - mean, variance**0.5
    if pool.covariance is not None:
        precision = np.linalg.inv(
            pool.covariance if pool.covariance.ndim == 2 else pool.covariance[j]
        )
        own = np.diag(precision)
        residual, width = precision @ residual / own, own**-0.5
    away = residual / width
    far = np.argsort(-np.abs(away), kind="stable")[:MOST_ODD]
    scale, offset = model.scale, model.offset
    return tuple(
        OddFeature(
            model.names[i],
            float(scale[i] * x[i] + offset[i]),
            float(scale[i] * (x[i] - residual[i]) + offset[i]),
            float(np.sign(scale[i]) * away[i]),
        )
        for i in far.tolist()
        if abs(away[i]) >= 1
    )


def _most_likely(pool: Pool, x: np.ndarray) -> int:
    """The kernel with the greatest share times density at x."""
    with np.errstate(divide="ignore"):
        log_share = np.log(pool.share)
    if pool.covariance is None:
        variance = np.asarray(pool.variance)
        square = ((x - pool.mean) ** 2 / variance + np.log(variance)).sum(axis=1)
        return int(np.argmax(log_share - square / 2))
    log_det = np.linalg.slogdet(pool.covariance)[1] * np.ones(len(pool))
    square = np.array([(whitened(pool, j, x[None]) ** 2).sum() for j in range(len(pool))])
    return int(np.argmax(log_share - (square + log_det) / 2))
