"""First parameters, one method a file.

A method places the kernels of one class: it sees a sample of the class and answers with centers and with the points from
which deviations are measured. What the kernels look like around them follows here, for every method and family.
"""

from collections.abc import Callable

import numpy as np

from ..kernels import Gaussian, Kernels
from .kmeans import kmeans
from .random_rows import random_rows
from .sample import ClassSample, sample_rows

__all__ = ["METHODS", "ClassSample", "apportion", "opened", "placed", "sample_rows", "uniform_mixing"]

Method = Callable[[ClassSample, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]

METHODS: dict[str, Method] = {"kmeans": kmeans, "random": random_rows}
"""How the kernels of a class are placed, by the name under which users ask for it."""


def apportion(n_kernels: int, most: list[int]) -> list[int]:
    """`n_kernels` dealt out to the classes as evenly as `most` allows; a class with few rows leaves its share to others."""
    counts = [0] * len(most)
    for _ in range(n_kernels):
        open_ = [k for k in range(len(most)) if counts[k] < most[k]]
        # every class first; then the one with the fewest kernels, of these the one with the most rows
        k = min(open_ or [k for k in range(len(most)) if most[k]], key=lambda k: (counts[k], -most[k]))
        counts[k] += 1
    return counts


def placed(
    kernel: Gaussian, method: Method, samples: list[ClassSample], counts: list[int], rng: np.random.Generator
) -> Kernels:
    """The first kernels, those of class 0 first."""
    centers, seconds = [], []
    for sample, count in zip(samples, counts, strict=True):
        if count:
            center, about = method(sample, count, rng)
            centers.append(center)
            weight = sample.weight.sum()
            second = kernel.square((sample.x - about).T) @ sample.weight  # zero where no row of the class counts
            seconds.append((second / weight if weight > 0 else second, count, weight))
    mean = np.concatenate(centers)
    return Kernels(mean, _widths(kernel, seconds, mean))


def _widths(kernel: Gaussian, seconds: list[tuple[np.ndarray, int, float]], mean: np.ndarray) -> np.ndarray:
    """Each kernel has the width of its class; where a class has none (every row is a center), that of all classes."""
    d = mean.shape[1]
    pooled = np.average([second for second, _, _ in seconds], axis=0, weights=[weight for _, _, weight in seconds])
    if not pooled.any():
        pooled = kernel.square(np.eye(d)).sum(axis=1) * len(mean) ** (-2 / d)
    flat = [second if second.any() else pooled for second, count, _ in seconds for _ in range(count)]
    weight = [weight / count for _, count, weight in seconds for _ in range(count)]
    covariance: np.ndarray = kernel.widths(np.stack(flat), np.asarray(weight))
    return covariance


def uniform_mixing(sharing: np.ndarray) -> np.ndarray:
    """Every class starts with equal shares of all the kernels it may use, (M, K); one without any, of all."""
    allowed = (sharing > 0).astype(float)
    allowed[:, ~allowed.any(axis=0)] = 1.0
    return np.asarray(allowed / allowed.sum(axis=0))


def opened(mixing: np.ndarray, sharing: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Mixing of separate mixtures with a small `share` spread over the kernels that may now be used too."""
    return (1 - share) * mixing + share * uniform_mixing(sharing)
