"""Rows that are in memory now."""

from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np

from ..arrays import (
    Array,
    as_float64,
    eps_of,
    is_numpy_array,
    match_array,
    namespace,
    thread_scratch,
)
from ..records import saved
from ..sums import record


def max_abs_value(eps: float) -> float:
    """How far from the origin rows of a float type are let, in units of the frame: their squares
    must not overflow.
    """
    return 1e100 if eps < 1e-10 else 1e12


@saved(eq=False)
class Frame:
    """x -> (x - origin) / unit."""

    origin: Array
    """(d,)."""
    unit: Array
    """(d,)."""
    reach: Array | None = None
    """How far from the origin cells are let, in units, (d,)."""

    def like(self, x: Array) -> "Frame":
        """The frame in the library and float type of `x`; what that type cannot hold becomes the
        largest number it can.
        """
        if is_numpy_array(x) and x.dtype == self.origin.dtype == self.unit.dtype:
            return self
        largest = float(namespace(x).finfo(x.dtype).max)
        held = [
            namespace(a).clip(as_float64(a), min=-largest, max=largest)
            for a in (self.origin, self.unit)
        ]
        reach = None if self.reach is None else match_array(self.reach, like=x)
        origin, unit = (match_array(a, like=x) for a in held)
        return Frame(origin, unit, reach)

    @staticmethod
    def bound(eps: float) -> float:
        """`max_abs_value`."""
        return max_abs_value(eps)

    def inside(self, x: Array) -> Array:
        """Rows in the frame, held within bounds whose squares cannot overflow."""
        xp = namespace(x)
        bound = self.bound(eps_of(x))
        with np.errstate(over="ignore"):  # what overflows is held within the bounds next
            deviation = x - self.origin
            deviation /= self.unit
        if self.reach is not None:
            deviation = xp.clip(deviation, min=-self.reach, max=self.reach)
        if is_numpy_array(deviation):
            return np.clip(deviation, -bound, bound, out=deviation)
        return xp.clip(deviation, min=-bound, max=bound)

    def outside(self, x: Array) -> Array:
        """Rows of the frame in the units of the data."""
        return x * self.unit + self.origin

    @property
    def log_volume(self) -> float:
        """log p(x) = log p(x in the frame) - log_volume."""
        xp = namespace(self.unit)
        return float(xp.sum(xp.log(self.unit)))


@record
class Layout:
    """How rows are shifted, scaled and cut into blocks."""

    frame: Frame | None = None
    width: int = 64
    """Numbers of scratch a row: blocks are as long as suits them."""
    n_jobs: int | None = None
    keep: bool = True
    """Whether blocks are cached between sweeps."""


T = TypeVar("T")


@record
class MissingCells:
    """Which cells of a block are known; missing ones are zero in its `x`, the mean of the feature."""

    observed: Array
    """One where a cell is known and zero where it is missing, (n, d), in the type of the rows."""
    patterns: Array
    """The distinct rows of `observed`, (G, d), in float64."""
    spans: tuple[slice, ...]
    """Where the rows of each pattern lie."""


class Block:
    """Rows that are in memory now, in the frame."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        classes: dict[int, slice] | None = None,
        keep_width: float = 0,
    ) -> None:
        self.x = x
        """Features, (n, d)."""
        self.y = y
        """Class codes 0..K-1, or -1 where the class is not known, (n,)."""
        self.weight = weight
        """How often each row counts, (n,); None is once."""
        self.classes = classes
        """Where the rows of each class lie, if those of one class lie together."""
        self.missing: MissingCells | None = None
        """Which cells are missing, where any are: every row of such a block misses some."""
        self.keep_width = keep_width
        """Numbers per row that may still be cached for later sweeps; zero where the block does not
        outlive this one.
        """
        self._cache: dict[Any, Any] = {}

    def scratch(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array to write into, valid until the next call with the same `name` in this thread."""
        return thread_scratch(name, shape, self.x)

    def by_column(self) -> Array:
        """`x`, column after column in memory where there is room to cache it: every sweep writes
        features in that order.
        """
        d = self.x.shape[1]
        if not is_numpy_array(self.x) or not ("columns" in self._cache or d <= self.keep_width):
            return self.x
        return self.once("columns", lambda block: np.asfortranarray(block.x), d)

    def in_float64(self) -> "Block":
        """The same rows in float64."""
        return self.once("float64", _in_float64, 2 * self.x.shape[1])

    def changed(self, **changes: Any) -> "Block":
        """The same rows with other weights, columns or whatever changes, and a cache of their
        own.
        """
        other = copy(self)
        other._cache = {}
        vars(other).update(changes)
        return other

    def once(self, key: Any, make: Callable[["Block"], T], width: int) -> T:
        """`make(self)`, of `width` numbers per row, cached under `key` for later sweeps where there
        is room.
        """
        if key in self._cache:
            cached: T = self._cache[key]
            return cached
        value = make(self)
        if width <= self.keep_width:
            self.keep_width -= width
            self._cache[key] = value
        return value


def _in_float64(block: Block) -> Block:
    weight = None if block.weight is None else as_float64(block.weight)
    return block.changed(x=as_float64(block.x), weight=weight, keep_width=0)
