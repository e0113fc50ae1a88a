"""Rows in a temporary file, for data larger than memory.

A source is decoded once and written chunk by chunk. In every sweep each thread reads the next chunk
with `pread`, while it is in the caches, and leaves it to the code for rows in memory. So survey,
sample, start and sweeps are the same as in memory, and so are their results.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import KernelpoolError
from .block import Frame, Layout
from .in_memory import (
    ArrayRows,
    OrderedSum,
    RowsWithMissing,
    over_threads,
    rows_in_memory,
)

T = TypeVar("T")

CHUNK_BYTES = 4 << 20
"""Size of a chunk, at most: it should fit the caches."""

CHUNK_ROWS = 1 << 15
"""Rows of a chunk, at most."""

SPARE_BYTES = 2 << 30
"""Bytes of the disk that stay free."""


class Store:
    """Rows, class codes and weights in a temporary file without a name.

    It takes as much of the disk as the rows would of memory, and is gone when the store is garbage
    or the process ends, in whatever way. Columns lie together within a chunk, the codes after those
    of the features, then the weights.
    """

    def __init__(self, n_features: int, dtype: Any, *, weighted: bool = False) -> None:
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.weighted = weighted
        self.n_columns = n_features + 1 + weighted
        self.sizes: list[int] = []
        """Rows of each chunk."""
        self.has_missing = False
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
        """Append rows (n, d), their codes (n,) and, in a store that has them, their weights
        (n,).
        """
        self.has_missing = self.has_missing or bool(np.isnan(x).any())
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

    def recode(self, column: int, values: np.ndarray) -> None:
        """Replace the codes of a column by the `values` at them; NaN and negative codes stay."""
        start = 0
        for n in self.sizes:
            at = self.dtype.itemsize * (self.n_columns * start + column * n)
            codes = self._read((n,), at).copy()
            recode(codes, values)
            self._write(codes, at)
            start += n

    def _read(self, shape: tuple[int, ...], at: int) -> np.ndarray:
        data = os.pread(self.file.fileno(), int(np.prod(shape)) * self.dtype.itemsize, at)
        return np.frombuffer(data, self.dtype).reshape(shape)

    def _write(self, table: np.ndarray, at: int) -> None:
        left = memoryview(table.reshape(-1).view(np.uint8).data)
        while len(left):
            n_written = os.pwrite(self.file.fileno(), left, at)
            left = left[n_written:]
            at = at + n_written

    def chunk(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows (n, d), codes and weights of chunk number i."""
        at = self.dtype.itemsize * self.n_columns * sum(self.sizes[:i])
        table = self._read((self.n_columns, self.sizes[i]), at)
        x = table[: self.n_features].T
        codes = table[self.n_features].astype(np.int64)
        return x, codes, table[-1] if self.weighted else None

    def in_memory(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The same of all rows."""
        x, codes, weight = zip(*(self.chunk(i) for i in range(len(self.sizes))), strict=True)
        whole = np.ascontiguousarray(np.concatenate(x)), np.concatenate(codes)
        return *whole, np.concatenate(weight) if self.weighted else None


class StoredRows:
    """The rows of a store, read anew in every sweep."""

    def __init__(
        self,
        store: Store,
        *,
        sort: bool = False,
        **layout: Any,
    ) -> None:
        self.store = store
        self.sort = sort
        self.layout = Layout(**layout)
        self.n_features = store.n_features
        self.backend = np.zeros(0)
        self.eps = float(np.finfo(store.dtype).eps)

    def framed(self, frame: Frame, width: int) -> "StoredRows":
        layout = vars(self.layout) | {"frame": frame, "width": width}
        return StoredRows(self.store, sort=self.sort, **layout)

    def by_class(self) -> "StoredRows":
        # chunk by chunk: no row leaves its chunk
        return StoredRows(self.store, sort=True, **vars(self.layout))

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        total = OrderedSum[T]()

        def add_chunk(i: int) -> None:
            total.add(i, self._chunk(i).total(statistic, *params))

        self._run(add_chunk)
        return total.value

    def _run(self, work: Callable[[int], None]) -> None:
        over_threads(work, len(self.store.sizes), self.layout.n_jobs)

    def _chunk(self, i: int) -> ArrayRows | RowsWithMissing:
        x, codes, weight = self.store.chunk(i)
        kind = rows_in_memory if self.store.has_missing else ArrayRows
        layout = vars(self.layout) | {"n_jobs": 1, "keep": False}
        rows = kind(x, codes, weight, **layout)
        return rows.by_class() if self.sort else rows


def recode(codes: np.ndarray, values: np.ndarray) -> None:
    """Replace codes by the `values` at them, in place; NaN and negative codes stay."""
    known = codes >= 0
    codes[known] = values[codes[known].astype(int)]
