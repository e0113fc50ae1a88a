"""Where the rows live.

A network never asks. It hands over a function of one block of rows that returns something addable, and gets the sum
over all rows back; or a function that answers row for row, and gets the answers back in the home the rows came from.

Rows reach a network in a *frame*: shifted by a common origin and divided by a unit, so that sums of squares about the
origin lose nothing when the data lie far from zero, and so that no row, however far, overflows.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..arrays import Array, detach, is_array, is_pinned
from ..errors import KernelpoolError
from .batches import BatchRows, RowBatch, Spool, read_ahead
from .block import Block, Holes
from .columns import (
    beside,
    has_float_type,
    is_lazy,
    is_lazy_frame,
    lives_elsewhere,
    map_column,
    of_parts,
    on_host,
)
from .dask import DaskRows
from .frame import Frame, max_abs_value
from .holes import RowsWithHoles, rows_in_memory, with_missing
from .in_memory import ArrayRows
from .pinned import PinnedRows
from .spread import Spread, Survey, spread, survey
from .threads import one_blas_thread

__all__ = [
    "ArrayRows",
    "BatchRows",
    "Block",
    "DaskRows",
    "Frame",
    "Holes",
    "PinnedRows",
    "RowBatch",
    "Rows",
    "RowsWithHoles",
    "Spool",
    "Spread",
    "Survey",
    "as_rows",
    "beside",
    "has_float_type",
    "is_lazy",
    "is_lazy_frame",
    "lives_elsewhere",
    "map_column",
    "max_abs_value",
    "of_parts",
    "on_host",
    "one_blas_thread",
    "read_ahead",
    "spread",
    "survey",
    "with_missing",
]

T = TypeVar("T")


class Rows(Protocol):
    """All that a network may ask of data."""

    n_features: int
    home: Array
    """An empty float64 array where the rows live: parameters are kept beside it."""
    eps: float
    """Spacing of the rows' float type."""

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        """Sum of `statistic(block, *params)` over every block."""

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        """`function(block, *params)`, row for row, in the home the rows came from."""

    def framed(self, frame: Frame, width: int) -> "Rows":
        """The same rows seen in `frame`, in blocks that suit `width` numbers of scratch a row."""

    def by_class(self) -> "Rows":
        """The same rows, those of one class together where they can be sorted."""


def as_rows(
    x: Array,
    y: Array | None = None,
    weight: Array | None = None,
    *,
    n_jobs: int | None = None,
    holes: bool = False,
) -> Rows:
    """Rows in the home of `x`; with `holes`, NaN marks missing cells, and blocks tell of them."""
    if is_lazy(x):
        return DaskRows(x, y, weight, holes=holes)
    if is_array(x) and holes:
        return rows_in_memory(detach(x), y, weight, n_jobs=n_jobs)
    if is_pinned(x):
        return PinnedRows(detach(x), y, weight)
    if is_array(x):
        return ArrayRows(detach(x), y, weight, n_jobs=n_jobs)
    raise KernelpoolError(
        f"Rows must be an array of an array-API library or of Dask; got {type(x).__name__}."
    )
