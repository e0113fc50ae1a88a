"""Star-shaped kernels of the minimal-network paper: indicators of sets given by their gauges.

M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks",
IJCNN 1991. A set S is star-shaped if x in S implies cx in S for all c <= 1 (the paper prints c >=
1). Its gauge is the factor by which S must grow to reach a point: ``lambda u:
np.abs(u).max(axis=1)`` is a cube. Use it as ``ParzenClassifier(StarShaped(gauge, d))``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelpool.errors import KernelpoolError
from kernelpool.parzen.network import TILE, Hypersphere, ball_log_volume

N_DIRECTIONS = 1 << 16
"""Directions along which the volume of a set is measured."""


class StarShaped(Hypersphere):
    """The indicator of a star-shaped set in d dimensions: gauge(x - center) <= radius is inside."""

    noun = "star-shaped kernel"

    def __init__(self, gauge: Callable[[np.ndarray], np.ndarray], d: int) -> None:
        normal = np.random.default_rng(0).standard_normal((N_DIRECTIONS, d))
        self.gauge, self.direction = gauge, normal / np.linalg.norm(normal, axis=1, keepdims=True)
        self.reach = np.asarray(gauge(self.direction))
        if self.reach.shape != (N_DIRECTIONS,) or not (
            np.isfinite(self.reach).all() and self.reach.min() > 0
        ):
            raise KernelpoolError("A gauge returns one positive number for each row but zero.")
        if not np.allclose(gauge(2 * self.direction[:64]), 2 * self.reach[:64], rtol=1e-6):
            raise KernelpoolError("A gauge of twice the difference is twice the value.")

    def log_volume(self, d: int) -> float:
        """The mean of g^-d over directions, times a ball."""
        return ball_log_volume(d) + float(np.log(np.mean(self.reach ** -float(d))))

    def squared(self, x: Any, center: Any, narrow: bool) -> Any:
        step = max(1, TILE // (2 * x.shape[1]))  # differences take d times the memory of distances
        parts = []
        for start in range(0, len(center), step):
            away = x[:, None, :] - center[None, start : start + step, :]
            parts.append(self.gauge(away.reshape(-1, x.shape[1])).reshape(away.shape[:2]))
        return np.concatenate(parts, axis=1) ** 2

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        volume = self.reach ** -float(d)
        at = rng.choice(N_DIRECTIONS, size=n, p=volume / volume.sum())
        length = rng.uniform(size=(n, 1)) ** (1 / d)
        return np.asarray(length * self.direction[at] / self.reach[at, None])
