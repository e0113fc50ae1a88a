"""Star-shaped kernels that a user gives by their gauge: checked, and measured along many directions."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..errors import KernelpoolError

DIRECTIONS = 1 << 16
"""Directions along which the volume of a star-shaped set is measured."""


@lru_cache(maxsize=4)
def directions(d: int) -> np.ndarray:
    """Directions, uniform on the sphere and always the same, (DIRECTIONS, d)."""
    normal = np.random.default_rng(0).standard_normal((DIRECTIONS, d))
    directions: np.ndarray = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    directions.flags.writeable = False
    return directions


def checked_gauge(gauge: Callable[[np.ndarray], np.ndarray], directions: np.ndarray) -> np.ndarray:
    """The gauge along `directions`, found to be one."""
    found = np.asarray(gauge(directions))
    if found.shape != (len(directions),) or found.dtype.kind != "f":
        raise KernelpoolError(
            f"kernel must return one number a row, by what factor the set must be scaled to reach it: shape "
            f"({len(directions)},) and floats expected; got {found.shape} and {found.dtype}."
        )
    if not (np.isfinite(found).all() and found.min() > 0):
        raise KernelpoolError(f"kernel must return positive numbers except at zero; got {found.min()}.")
    if not np.allclose(np.asarray(gauge(2 * directions[:64])), 2 * found[:64], rtol=1e-6):
        raise KernelpoolError("kernel must be a gauge: twice the difference must give twice the value.")
    return found
