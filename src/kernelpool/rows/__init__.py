"""Where the rows live.

A network does not ask. It passes a function of one block of rows that returns something addable,
and gets the sum over all rows; of rows in memory, also a function that returns a value for every
row, and gets the values in the array library that the rows came from.

Rows reach a network in a *frame*: shifted by a common origin and divided by a unit, so that sums
of squares about the origin lose nothing when the data lie far from zero, and so that no row,
however far, overflows. NaN marks a missing cell; blocks record which cells are known.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..arrays import Array, detach, is_array, is_lazy
from ..errors import KernelpoolError
from .block import Block, Frame, MissingCells, max_abs_value
from .dask import DaskRows
from .in_memory import (
    ArrayRows,
    RowsWithMissing,
    has_missing,
    map_over_threads,
    one_blas_thread,
    rows_in_memory,
    with_missing,
)
from .stored import Store, StoredRows, recode

__all__ = [
    "ArrayRows",
    "Block",
    "DaskRows",
    "Frame",
    "MissingCells",
    "Rows",
    "RowsInMemory",
    "RowsWithMissing",
    "Store",
    "StoredRows",
    "as_rows",
    "has_missing",
    "map_over_threads",
    "max_abs_value",
    "one_blas_thread",
    "recode",
    "with_missing",
]

T = TypeVar("T")


class Rows(Protocol):
    """All that a network may ask of data."""

    n_features: int
    backend: Array
    """An empty float64 array of the library and device on which parameters are kept."""
    eps: float
    """Spacing of the rows' float type."""

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        """Sum of `statistic(block, *params)` over every block."""

    def framed(self, frame: Frame, width: int) -> "Rows":
        """The same rows in `frame`, in blocks that suit `width` numbers of scratch a row."""

    def by_class(self) -> "Rows":
        """The same rows, those of one class together where they can be sorted."""


class RowsInMemory(Rows, Protocol):
    """What a fitted network may ask of rows besides."""

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        """`function(block, *params)`, row for row, in the array library of the rows."""

    def framed(self, frame: Frame, width: int) -> "RowsInMemory":
        """As above."""


def as_rows(
    x: Array, y: Array | None = None, weight: Array | None = None, *, n_jobs: int | None = None
) -> Any:
    """`RowsInMemory` of an array of any array library, or `Rows` of Dask, with class codes and
    weights; NaN marks missing cells.
    """
    if is_lazy(x):
        return DaskRows(x, y, weight)
    if is_array(x):
        return rows_in_memory(detach(x), y, weight, n_jobs=n_jobs)
    raise KernelpoolError(
        f"Rows must be an array of an array-API library or of Dask; got {type(x).__name__}."
    )
