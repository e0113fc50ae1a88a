"""Rows in a temporary file, for data larger than memory.

A source is decoded once and written chunk by chunk. Every sweep reads the chunks back with `pread`,
the next ones in a thread of their own while one is summed, and leaves each to the code for rows in
memory. So survey, sample, start and sweeps are the same as in memory, and so are their results.
"""

import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import KernelpoolError
from .frame import Frame
from .in_memory import ArrayRows
from .missing import RowsWithMissing, rows_in_memory

T = TypeVar("T")

CHUNK_BYTES, CHUNK_ROWS = 32 << 20, 1 << 17
"""Size of a chunk, at most: what a sweep holds in memory is a few of them."""

SPARE_BYTES = 2 << 30
"""Bytes of the disk that are left to others."""

N_AHEAD = 2
"""Chunks that are read while one is worked on."""


class Store:
    """Rows, class codes and weights in a temporary file without a name.

    It takes as much of the disk as the rows would of memory, and is gone when the store is garbage
    or the process ends, in whatever way. Columns lie together within a chunk, the codes after those
    of the features, then the weights.
    """

    def __init__(self, n_features: int, dtype: Any, *, weighted: bool = False) -> None:
        self.n_features, self.dtype, self.weighted = n_features, np.dtype(dtype), weighted
        self.n_columns = n_features + 1 + weighted
        self.sizes: list[int] = []
        """Rows of each chunk."""
        in_memory = tempfile.gettempdir()  # /tmp often is; /var/tmp is not
        on_disk = "/var/tmp" if os.access("/var/tmp", os.W_OK) else in_memory
        self.folder = os.environ.get("TMPDIR") or on_disk
        self.file = tempfile.TemporaryFile(prefix="kernelpool-", dir=self.folder, buffering=0)  # noqa: SIM115
        weakref.finalize(self, self.file.close)

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_columns * self.dtype.itemsize

    def add(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Append rows (n, d), their codes (n,) and, in a store that has them, their weights (n,)."""
        at_once = CHUNK_BYTES // (self.n_columns * self.dtype.itemsize)
        at_once = max(1, min(at_once, CHUNK_ROWS))
        for start in range(0, len(x), at_once):
            span = slice(start, start + at_once)
            table = np.empty((self.n_columns, len(x[span])), self.dtype)
            table[: self.n_features] = x[span].T
            table[self.n_features] = codes[span]
            if weight is not None:
                table[-1] = weight[span]
            if shutil.disk_usage(self.folder).free < SPARE_BYTES + table.nbytes:
                raise KernelpoolError(
                    f"Rows larger than memory are kept in {self.folder} while they are fitted, "
                    f"which is nearly full after {self.n_bytes / 1e9:.1f} GB. Free some of it, or "
                    f"set TMPDIR to a folder on a larger disk."
                )
            self._write(table, self.n_bytes)
            self.sizes.append(table.shape[1])

    def rewrite(self, function: Callable[[np.ndarray], None]) -> None:
        """Let `function` change every chunk, (columns, n), in place."""
        at = 0
        for table in self:
            changed = table.copy()
            function(changed)
            self._write(changed, at)
            at += table.nbytes

    def _write(self, table: np.ndarray, at: int) -> None:
        left = memoryview(table.reshape(-1).view(np.uint8).data)
        while len(left):
            n_written = os.pwrite(self.file.fileno(), left, at)
            left, at = left[n_written:], at + n_written

    def __iter__(self) -> Iterator[np.ndarray]:
        at = 0
        for n in self.sizes:
            n_bytes = n * self.n_columns * self.dtype.itemsize
            data = os.pread(self.file.fileno(), n_bytes, at)
            yield np.frombuffer(data, self.dtype).reshape(self.n_columns, n)
            at += n_bytes

    def columns(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows (n, d), codes and weights of a chunk."""
        x, codes = table[: self.n_features].T, table[self.n_features].astype(np.int64)
        return x, codes, table[-1] if self.weighted else None

    def in_memory(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The same of all rows."""
        x, codes, weight = self.columns(np.concatenate(list(self), axis=1))
        return np.ascontiguousarray(x), codes, weight


class StoredRows:
    """The rows of a store, read anew in every sweep."""

    def __init__(
        self,
        store: Store,
        *,
        frame: Frame | None = None,
        width: int = 64,
        n_jobs: int | None = None,
        sort: bool = False,
    ) -> None:
        self.store, self.frame, self.width, self.n_jobs = store, frame, width, n_jobs
        self.sort = sort
        self.n_features = store.n_features
        self.backend, self.eps = np.zeros(0), float(np.finfo(store.dtype).eps)

    def framed(self, frame: Frame, width: int) -> "StoredRows":
        return StoredRows(self.store, frame=frame, width=width, n_jobs=self.n_jobs, sort=self.sort)

    def by_class(self) -> "StoredRows":
        return StoredRows(
            self.store, frame=self.frame, width=self.width, n_jobs=self.n_jobs, sort=True
        )  # chunk by chunk: no row leaves its chunk

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        sorted_ = (rows.by_class() if self.sort else rows for rows in self._chunks())
        return reduce(add, (rows.total(statistic, *params) for rows in sorted_))  # type: ignore[arg-type]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return np.concatenate([rows.each(function, *params) for rows in self._chunks()])

    def _chunks(self) -> Iterator[ArrayRows | RowsWithMissing]:
        for table in read_ahead(self.store):
            x, codes, weight = self.store.columns(table)
            frame = None if self.frame is None else self.frame.like(x)
            yield rows_in_memory(
                x, codes, weight, frame=frame, width=self.width, n_jobs=self.n_jobs, keep=False
            )


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, made in a thread of their own up to `N_AHEAD` before they are asked for."""
    end: Any = object()
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="kernelpool-read") as reader:
        waiting: deque[Future[T]] = deque(reader.submit(next, source, end) for _ in range(N_AHEAD))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(reader.submit(next, source, end))
                yield item
        finally:
            for future in waiting:
                future.cancel()
