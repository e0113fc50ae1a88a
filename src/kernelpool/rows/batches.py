"""Rows that come in batches from a source that can be read again: files, and whatever else is larger than memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import KernelpoolError
from .frame import Frame
from .in_memory import ArrayRows

T = TypeVar("T")

AHEAD = 2
"""Batches that are read while one is worked on."""


class RowBatch(NamedTuple):
    """Some rows, in NumPy."""

    x: np.ndarray
    """(n, d)."""
    y: np.ndarray | None = None
    """Class codes, -1 where there is none, (n,); or targets."""
    weight: np.ndarray | None = None
    """(n,)."""


class BatchRows:
    """Rows read anew in every sweep, a batch at a time; the next batches are read while one is summed.

    Parameters
    ----------
    source : iterable of RowBatch
        Gives the same rows, cut in the same way, every time it is iterated over: then sums are the same to the last bit.
    n_features : int
    dtype : dtype
        Float type of the rows.
    n_rows : int or None
        Rows that every pass must give; None where they have not been counted.
    """

    def __init__(
        self,
        source: Iterable[RowBatch],
        n_features: int,
        dtype: Any = np.float64,
        *,
        n_rows: int | None = None,
        frame: Frame | None = None,
        width: int = 64,
        n_jobs: int | None = None,
        sort: bool = False,
    ) -> None:
        self.source, self.n_features, self.dtype, self.n_rows = source, n_features, np.dtype(dtype), n_rows
        self.frame, self.width, self.n_jobs, self.sort = frame, width, n_jobs, sort
        self.home, self.eps = np.zeros(0), float(np.finfo(self.dtype).eps)

    def _like(self, **changes: Any) -> "BatchRows":
        settings = {name: getattr(self, name) for name in ("n_rows", "frame", "width", "n_jobs", "sort")}
        return BatchRows(self.source, self.n_features, self.dtype, **{**settings, **changes})

    def framed(self, frame: Frame, width: int) -> "BatchRows":
        return self._like(frame=frame, width=width)

    def by_class(self) -> "BatchRows":
        return self._like(sort=True)  # batch by batch: no row leaves its batch

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        result: T | None = None
        for rows in self._batches():
            part = (rows.by_class() if self.sort else rows).total(statistic, *params)
            result = part if result is None else result + part  # type: ignore[operator]
        if result is None:
            raise KernelpoolError("X has no rows: there is none in any of its batches.")
        return result

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        parts = [rows.each(function, *params) for rows in self._batches()]
        return np.concatenate(parts) if parts else self._no_answer(function, *params)

    def _no_answer(self, function: Callable[..., Array], *params: Any) -> Array:
        one = ArrayRows(np.zeros((1, self.n_features), self.dtype), frame=self.frame, width=self.width, n_jobs=1)
        return one.each(function, *params)[:0]

    def _batches(self) -> Iterator[ArrayRows]:
        n_rows = 0
        for x, y, weight in read_ahead(iter(self.source)):
            if len(x):
                n_rows += len(x)
                frame = None if self.frame is None else self.frame.beside(x)
                yield ArrayRows(x, y, weight, frame=frame, width=self.width, n_jobs=self.n_jobs)
        if self.n_rows is not None and n_rows != self.n_rows:
            raise KernelpoolError(
                f"X gave {self.n_rows} rows at first and {n_rows} when it was read again; a source must give the same rows "
                f"every time. Do not change files while they are fitted, and pass no iterator that ends with its first reading."
            )


def read_ahead(items: Iterator[T], n_ahead: int = AHEAD) -> Iterator[T]:
    """The same items, made in a thread of their own up to `n_ahead` before they are asked for."""
    end: Any = object()
    with ThreadPoolExecutor(1, thread_name_prefix="kernelpool-read") as reader:
        waiting: deque[Future[T]] = deque(reader.submit(next, items, end) for _ in range(n_ahead))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(reader.submit(next, items, end))
                yield item
        finally:
            for future in waiting:
                future.cancel()
