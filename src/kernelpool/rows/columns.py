"""Labels, weights and results: which library holds them, and how one is made of another there."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, is_array, is_numpy_array, match_array, namespace


def is_lazy(x: Any) -> bool:
    """Whether rows are computed only when they are asked for: those of Dask."""
    return hasattr(x, "to_delayed") and hasattr(x, "rechunk")


def is_lazy_frame(x: Any) -> bool:
    """Whether it is a data frame or a series of Dask."""
    return hasattr(x, "to_dask_array") and hasattr(x, "npartitions")


def lives_elsewhere(x: Any) -> bool:
    """Whether `x` lives in another array library than NumPy, or on a cluster: it stays there."""
    return is_lazy(x) or (is_array(x) and not is_numpy_array(x))


def has_float_type(x: Array) -> bool:
    """Whether `x` holds float32 or float64."""
    xp = np if is_lazy(x) else namespace(x)
    return x.dtype in (xp.float32, xp.float64)


def column_like(x: Array, column: Any) -> Any:
    """A column in the library and device of `x`; floats also in its float type."""
    if is_lazy(x) or is_numpy_array(x):
        return column.astype(x.dtype) if column.dtype.kind == "f" else column
    return match_array(namespace(x).asarray(column), like=x)


def of_parts(column: Any, function: Callable[..., Any], *params: Any) -> list[Any]:
    """`function(part, *params)` for every part in which a column lives: one for what is in memory."""
    if not is_lazy(column):
        return [function(column, *params)]
    import dask

    return list(
        dask.compute(
            *(dask.delayed(function)(part, *params) for part in column.to_delayed().ravel())
        )
    )


def map_column(column: Any, function: Callable[..., np.ndarray], *params: Any, dtype: Any) -> Any:
    """`function(column, *params)`, entry by entry, where the column lives."""
    return (
        column.map_blocks(function, *params, dtype=dtype)
        if is_lazy(column)
        else function(column, *params)
    )
