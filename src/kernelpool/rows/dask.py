"""Rows of Dask arrays, on the threads of this process or on the workers of a cluster.

A sum is a tree of tasks: one a chunk, run where the chunk lives, then `FAN_IN` parts at a time. The
parameters are one more task, so they travel once to each worker, and are made again where a worker
is lost. Parts are added in the order of the chunks, so that sums are the same to the last bit.

On a cluster the workers hold the rows for all sweeps, and Dask runs a task where its chunk is.
Where such a worker is lost, Dask makes its chunks anew elsewhere.
"""

import sys
from collections.abc import Callable
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, is_lazy
from ..errors import KernelpoolError, UnequalChunksError
from .block import Frame, Layout
from .in_memory import ArrayRows, RowsWithMissing, one_blas_thread, rows_in_memory

T = TypeVar("T")

FAN_IN = 8
"""Sums that one task adds."""


class DaskRows:
    """Rows of Dask arrays; every chunk is summed where it lives, and the sums meet as a tree."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        **layout: Any,
    ) -> None:
        self.x = x.rechunk({1: -1}) if x.numblocks[1] > 1 else x
        self.y, self.weight = (None if a is None else _aligned(a, self.x) for a in (y, weight))
        self.layout = Layout(**layout)
        self.n_features = x.shape[1]
        self.backend = np.zeros(0)
        self.eps = float(np.finfo(x.dtype).eps)

    def framed(self, frame: Frame, width: int) -> "DaskRows":
        return DaskRows(self.x, self.y, self.weight, frame=frame, width=width)

    def persisted(self) -> "DaskRows":
        """The same rows, held by the workers for all sweeps; as they are where there is no
        cluster.
        """
        if "distributed" not in sys.modules:
            return self
        import dask
        from distributed import default_client

        try:
            default_client()
        except ValueError:  # there is none
            return self
        held = dask.persist(self.x, self.y, self.weight)
        return DaskRows(*held, **vars(self.layout))

    def by_class(self) -> "DaskRows":
        return self  # rows stay in the chunks they live in

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        import dask

        # a task, and no scattered data, which would be lost with its worker
        task = statistic, self.layout, params
        sent = dask.delayed(task, pure=False, traverse=False)
        parts = [_delayed(_total_of_chunk, sent, *chunk) for chunk in self._chunks()]
        result = tree_sum(parts)
        if result is None:
            raise KernelpoolError("The Dask array has no rows: every chunk is empty.")
        return result  # type: ignore[no-any-return]

    def _chunks(self) -> list[tuple[Any, Any, Any]]:
        columns = (
            repeat(None) if a is None else a.to_delayed().ravel()
            for a in (self.x, self.y, self.weight)
        )
        return list(zip(*columns, strict=False))


def tree_sum(parts: list[Any]) -> Any:
    """The sum of delayed parts, None for those that are empty; no worker receives all of them."""
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [_delayed(_sum, *group) for group in groups]
    return parts[0].compute()


def each_part(X: Any, answer: Callable[[Any], Any], like: Any) -> Any:
    """What `answer` returns for the parts of a Dask array or data frame, row for row, as Dask arrays
    of the types and shapes of `like`, the answer for a row, or a tuple of answers.
    """
    import dask
    import dask.array as da

    if is_lazy(X):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        sizes = X.chunks[0]
    else:
        sizes = (np.nan,) * X.npartitions
    sent = dask.delayed((answer, like), pure=False, traverse=False)
    parts = [_delayed(_answer_part, sent, part) for part in np.ravel(X.to_delayed())]

    def collected(like: Any, parts: list[Any]) -> Any:
        shape = like.shape[1:]
        arrays = [
            da.from_delayed(part, (n, *shape), like.dtype)
            for part, n in zip(parts, sizes, strict=True)
        ]
        return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)

    if isinstance(like, tuple):
        return tuple(collected(one, [p[i] for p in parts]) for i, one in enumerate(like))
    return collected(like, parts)


def _answer_part(sent: tuple[Callable[[Any], Any], Any], part: Any) -> Any:
    answer, like = sent
    if len(part):
        with one_blas_thread():
            return answer(part)
    return tuple(one[:0] for one in like) if isinstance(like, tuple) else like[:0]


def _aligned(column: Array, x: Array) -> Array:
    """`column` (n,) or (n, o) cut where the rows of `x` are cut."""
    import dask.array as da

    if not is_lazy(column):
        column = da.from_array(np.asarray(column))
    if column.numblocks[0] == x.numblocks[0] and str(column.chunks[0]) == str(x.chunks[0]):
        return column
    if column.shape[0] != x.shape[0]:
        raise UnequalChunksError(
            f"X has {x.shape[0]} rows in {x.numblocks[0]} chunks and y or sample_weight "
            f"{column.shape[0]} in {column.numblocks[0]}. Give them the same rows; where Dask does "
            f"not know lengths (nan), call compute_chunk_sizes() first."
        )
    return column.rechunk((x.chunks[0], *column.shape[1:]))


def _total_of_chunk(sent: tuple[Any, ...], x: Array, y: Array, weight: Array) -> Any:
    statistic, layout, params = sent
    if x.shape[0] == 0:
        return None
    return _chunk_rows(x, y, weight, layout).total(statistic, *params)


def _chunk_rows(
    x: Array, y: Array | None, weight: Array | None, layout: Layout
) -> ArrayRows | RowsWithMissing:
    # Dask runs a chunk on each of its threads already; nothing outlives the task
    kind = rows_in_memory if x.shape[0] else ArrayRows
    return kind(x, y, weight, **vars(layout) | {"n_jobs": 1})


def _delayed(function: Callable[..., Any], *args: Any) -> Any:
    import dask

    return dask.delayed(function, pure=False)(*args)


def _sum(*parts: Any) -> Any:
    """In this order; None stands for an empty chunk."""
    present = [part for part in parts if part is not None]
    return reduce(add, present) if present else None
