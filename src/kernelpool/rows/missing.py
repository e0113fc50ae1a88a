"""Rows with missing cells.

Complete rows come first, in blocks of their own. The others are sorted by pattern, so that rows in
which the same cells are known lie together. Where no cell is missing nothing changes, to the last
bit.
"""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, device, is_numpy_array, namespace, to_numpy
from .block import Block, MissingCells
from .frame import Frame
from .in_memory import ArrayRows

T = TypeVar("T")


def has_missing(x: Array) -> bool:
    """Whether any cell is NaN."""
    xp = namespace(x)
    if is_numpy_array(x):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(x.sum()):  # one pass and no array of flags, in the common case
                return False
    return bool(xp.any(xp.isnan(x)))


def with_missing(block: Block) -> np.ndarray:
    """The rows of a block on the host in float64, NaN where a cell is missing, (n, d)."""
    x = np.asarray(to_numpy(block.x), dtype=np.float64)
    return x if block.missing is None else np.where(to_numpy(block.missing.observed) > 0, x, np.nan)


def rows_in_memory(
    x: Array,
    y: Array | None,
    weight: Array | None,
    *,
    frame: Frame | None = None,
    width: int = 64,
    n_jobs: int | None = None,
    keep: bool = True,
) -> "ArrayRows | RowsWithMissing":
    """Rows of an array in which NaN marks missing cells."""
    settings: dict[str, Any] = {"frame": frame, "width": width, "n_jobs": n_jobs, "keep": keep}
    if not has_missing(x):
        return ArrayRows(x, y, weight, **settings)
    missing = np.isnan(to_numpy(x))
    incomplete = missing.any(axis=1)
    complete, others = np.flatnonzero(~incomplete), np.flatnonzero(incomplete)
    others = others[np.lexsort(np.packbits(missing[others], axis=1).T[::-1])]
    parts: list[ArrayRows] = []
    for kind, index in ((ArrayRows, complete), (IncompleteRows, others)):
        if len(index):
            taken = [None if a is None else _taken(a, index) for a in (x, y, weight)]
            parts.append(kind(*taken, **settings))
    return RowsWithMissing(parts, np.concatenate([complete, others]), (x, y, weight))


def _taken(a: Array, index: np.ndarray) -> Array:
    xp = namespace(a)
    return xp.take(a, xp.asarray(index, device=device(a)), axis=0)


class IncompleteRows(ArrayRows):
    """Rows each of which misses a cell, sorted by pattern."""

    def by_class(self) -> "IncompleteRows":
        return self  # sorted by pattern already

    def _make_block(self, span: slice) -> Block:
        block = super()._make_block(span)
        xp, unknown = namespace(block.x), namespace(block.x).isnan(block.x)
        known = ~to_numpy(unknown)
        new = np.flatnonzero(np.concatenate([[True], (known[1:] != known[:-1]).any(axis=1)]))
        ends = [*new[1:].tolist(), len(known)]
        block.missing = MissingCells(
            xp.astype(~unknown, block.x.dtype),
            xp.asarray(known[new].astype(np.float64), device=device(block.x)),
            tuple(slice(start, end) for start, end in zip(new.tolist(), ends, strict=True)),
        )
        block.x = xp.where(unknown, xp.zeros_like(block.x), block.x)
        return block


class RowsWithMissing:
    """Rows of an array in memory, the complete ones apart from the others."""

    def __init__(
        self,
        parts: list[ArrayRows],
        order: np.ndarray,
        columns: tuple[Array, Array | None, Array | None],
    ) -> None:
        self.parts = parts
        self.order = order
        """Where each row of the parts, one after the other, came from, (n,)."""
        self.x, self.y, self.weight = self.columns = columns
        """As they were given."""
        first = parts[0]
        self.n_features, self.backend, self.eps = first.n_features, first.backend, first.eps

    def framed(self, frame: Frame, width: int) -> "RowsWithMissing":
        parts = [part.framed(frame, width) for part in self.parts]
        return RowsWithMissing(parts, self.order, self.columns)

    def by_class(self) -> "RowsWithMissing":
        parts = [part.by_class() for part in self.parts]
        return RowsWithMissing(parts, self.order, self.columns)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        return reduce(add, (part.total(statistic, *params) for part in self.parts))  # type: ignore[arg-type]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        values = [part.each(function, *params) for part in self.parts]
        return _taken(namespace(values[0]).concat(values, axis=0), np.argsort(self.order))
