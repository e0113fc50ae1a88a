"""Rows that are in memory now."""

from collections.abc import Callable
from typing import Any, TypeVar

from ..arrays import Array, empty, thread_scratch

T = TypeVar("T")


class Block:
    """Rows that are in memory now, in the frame."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        classes: dict[int, slice] | None = None,
        held: bool = False,
        keep: bool = False,
    ) -> None:
        self.x = x
        """Features, (n, d)."""
        self.y = y
        """Class codes 0..K-1, or -1 where the class is not known, (n,)."""
        self.weight = weight
        """How often each row counts, (n,); None is once."""
        self.classes = classes
        """Where the rows of each class lie, if those of one class lie together."""
        self._written: dict[Any, Array] | None = {} if held else None
        self._kept: dict[Any, Any] | None = {} if keep else None

    def scratch(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array to write into, valid until the next call with the same `name` in this thread."""
        return thread_scratch(name, shape, self.x)

    def write_once(self, key: Any, out: Array, fill: Callable[[Array], None]) -> None:
        """`fill(room)`; a block that is held through the sweeps remembers what was written, no wider than its rows."""
        if self._written is None:
            fill(out)
        elif key in self._written:
            out[...] = self._written[key]
        else:
            fill(out)
            self._written[key] = empty(out.shape, out)
            self._written[key][...] = out

    def once(self, key: Any, make: Callable[["Block"], T]) -> T:
        """`make(self)`, remembered under `key` if what is made of the rows may be kept."""
        if self._kept is None:
            return make(self)
        if key not in self._kept:
            self._kept[key] = make(self)
        made: T = self._kept[key]
        return made
