"""Draws from mixtures of Gaussians with labels: what most of the papers' artificial problems are.

Classes and, within a class, its parts have their exact shares of the rows, to within one row; an odd row goes to the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import KernelpoolError


@dataclass(frozen=True)
class Part:
    """One Gaussian of one class: `deviation` along axes that are turned by `angle` degrees, anticlockwise."""

    label: int
    share: float
    mean: tuple[float, float]
    deviation: tuple[float, float]
    angle: float = 0.0

    def draw(self, n: int, rng: Any) -> np.ndarray:
        """`n` rows of N(mean, R diag(deviation²) Rᵀ)."""
        turn = np.deg2rad(self.angle)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        return np.asarray(self.mean) + (rng.normal(size=(n, 2)) * self.deviation) @ axes.T


def draw(parts: Sequence[Part], n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the parts and their classes, shuffled."""
    rng = check_random_state(random_state)
    labels = sorted({part.label for part in parts})
    by_class = [[part for part in parts if part.label == label] for label in labels]
    rows = split(n_samples, [sum(part.share for part in own) for own in by_class], at_least=len(parts))
    X, y = [], []
    for own, n_class in zip(by_class, rows, strict=True):
        for part, n in zip(own, split(n_class, [part.share for part in own]), strict=True):
            X.append(part.draw(n, rng))
            y.append(np.full(n, part.label))
    return shuffled(np.concatenate(X), np.concatenate(y), rng)


def split(n: int, shares: Sequence[float], at_least: int = 0) -> list[int]:
    """`n` rows cut by shares: each gets its quota rounded down, the rest goes to the largest remainders, first come first."""
    if not isinstance(n, Integral) or n < at_least:
        raise KernelpoolError(f"n_samples must be an integer of at least {at_least}; got {n!r}.")
    # Unrounded, 45 * 0.35 / 0.5 and 45 * 0.15 / 0.5 would not tie, and the odd row would go to the second.
    quota = np.round(int(n) * np.asarray(shares, dtype=float) / np.sum(shares), 9)
    counts = np.floor(quota).astype(int)
    for i in np.argsort(counts - quota, kind="stable")[: int(n) - counts.sum()]:
        counts[i] += 1
    return counts.tolist()


def shuffled(X: np.ndarray, y: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same rows in random order."""
    order = rng.permutation(len(y))
    return X[order], y[order]
