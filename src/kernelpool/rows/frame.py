"""The frame in which a network sees rows."""

import numpy as np

from ..arrays import Array, as_float64, eps_of, is_numpy_array, match_array, namespace
from ..sums import record


def max_abs_value(eps: float) -> float:
    """How far from the origin rows of a float type are let, in units of the frame: their squares
    must not overflow.
    """
    return 1e100 if eps < 1e-10 else 1e12


@record
class Frame:
    """x -> (x - origin) / unit."""

    origin: Array
    """(d,)."""
    unit: Array
    """(d,)."""

    def like(self, x: Array) -> "Frame":
        """The frame in the library and float type of `x`; what that type cannot hold becomes the
        largest number it can.
        """
        largest = float(namespace(x).finfo(x.dtype).max)
        held = [
            namespace(a).clip(as_float64(a), min=-largest, max=largest)
            for a in (self.origin, self.unit)
        ]
        return Frame(*(match_array(a, like=x) for a in held))

    def inside(self, x: Array) -> Array:
        """Rows in the frame, held within bounds whose squares cannot overflow."""
        xp = namespace(x)
        bound = max_abs_value(eps_of(x))
        with np.errstate(over="ignore"):  # what overflows is held within the bounds next
            away = x - self.origin
            away /= self.unit
        return (
            np.clip(away, -bound, bound, out=away)
            if is_numpy_array(away)
            else xp.clip(away, min=-bound, max=bound)
        )

    def outside(self, x: Array) -> Array:
        """Rows of the frame in the units of the data."""
        return x * self.unit + self.origin

    @property
    def log_volume(self) -> float:
        """log p(x) = log p(x in the frame) - log_volume."""
        xp = namespace(self.unit)
        return float(xp.sum(xp.log(self.unit)))
