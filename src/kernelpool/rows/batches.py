"""Rows that come in batches from a source that can be read again: files, and whatever else is larger than memory."""

import mmap
import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import KernelpoolError
from .frame import Frame
from .in_memory import ArrayRows
from .missing import RowsWithMissing, rows_in_memory

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
        self.source, self.n_features, self.dtype, self.n_rows = (
            source,
            n_features,
            np.dtype(dtype),
            n_rows,
        )
        self.frame, self.width, self.n_jobs, self.sort = frame, width, n_jobs, sort
        self.backend, self.eps = np.zeros(0), float(np.finfo(self.dtype).eps)

    def _like(self, **changes: Any) -> "BatchRows":
        settings = {
            name: getattr(self, name) for name in ("n_rows", "frame", "width", "n_jobs", "sort")
        }
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
        one = ArrayRows(
            np.zeros((1, self.n_features), self.dtype), frame=self.frame, width=self.width, n_jobs=1
        )
        return one.each(function, *params)[:0]

    def _batches(self) -> Iterator[ArrayRows | RowsWithMissing]:
        n_rows = 0
        for x, y, weight in read_ahead(iter(self.source)):
            if len(x):
                n_rows += len(x)
                frame = None if self.frame is None else self.frame.like(x)
                rows = rows_in_memory(
                    x, y, weight, frame=frame, width=self.width, n_jobs=self.n_jobs
                )
                yield rows
        if self.n_rows is not None and n_rows != self.n_rows:
            raise KernelpoolError(
                f"X gave {self.n_rows} rows at first and {n_rows} when it was read again; a source must give the same rows "
                f"every time. Do not change files while they are fitted, and pass no iterator that ends with its first reading."
            )


class Spool:
    """Batches in a temporary file without a name, to be read back as they were as often as is asked for.

    Numbers are read from it several times as fast as they are decoded from Parquet or parsed from text. It takes as much of the
    disk as they would of memory, and is gone when it is closed or the process ends, in whatever way.
    """

    SPARE = 2 << 30
    """Bytes of the disk that are left to others."""

    def __init__(self, folder: str | None = None) -> None:
        # where /tmp is in memory, /var/tmp is not
        usual = (
            "/var/tmp"
            if os.path.isdir("/var/tmp") and os.access("/var/tmp", os.W_OK)
            else tempfile.gettempdir()
        )
        self.folder = folder or os.environ.get("TMPDIR") or usual
        self.file = tempfile.TemporaryFile(prefix="kernelpool-", dir=self.folder, buffering=0)  # noqa: SIM115 (it outlives this)
        self.close = weakref.finalize(self, self.file.close)
        """Gives the disk back."""
        self.batches: list[tuple[Any, ...]] = []
        self.n_bytes = 0

    def has_room(self, batch: RowBatch) -> bool:
        """Whether the disk can take a batch more."""
        return shutil.disk_usage(self.folder).free > self.SPARE + sum(
            a.nbytes for a in batch if a is not None
        )

    def add(self, batch: RowBatch) -> None:
        """Write a batch."""
        parts: list[Any] = []
        for a in batch:
            if a is None:
                parts.append(None)
                continue
            turned = a.ndim == 2 and a.flags.f_contiguous  # columns that lie together stay so
            data = np.ascontiguousarray(a.T if turned else a)
            self.n_bytes += -self.n_bytes % mmap.ALLOCATIONGRANULARITY  # where a map can begin
            self.file.seek(self.n_bytes)
            self._write(memoryview(data.reshape(-1).view(np.uint8).data))
            parts.append((self.n_bytes, data.shape, data.dtype, turned))
            self.n_bytes += data.nbytes
        self.batches.append(tuple(parts))

    def _write(self, left: memoryview) -> None:
        while len(left):
            left = left[self.file.write(left) :]

    def __iter__(self) -> Iterator[RowBatch]:
        for parts in self.batches:
            yield RowBatch(*(None if part is None else self._array(*part) for part in parts))  # type: ignore[arg-type]

    def _array(self, at: int, shape: tuple[int, ...], dtype: Any, turned: bool) -> np.ndarray:
        if 0 in shape:
            return np.empty(shape[::-1] if turned else shape, dtype)
        # mapped, not read: no copy is made, and the pages go when the array does
        mapped = mmap.mmap(
            self.file.fileno(),
            int(np.prod(shape)) * dtype.itemsize,
            access=mmap.ACCESS_READ,
            offset=at,
        )
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_WILLNEED)
        out = np.frombuffer(mapped, dtype).reshape(shape)
        return out.T if turned else out


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
