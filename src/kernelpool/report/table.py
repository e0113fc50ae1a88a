"""Rows as a user passes them: arrays and frames, with names, numbers and text, looked at a column or a block at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ..arrays import is_array, to_numpy
from ..errors import KernelpoolError
from ..text import text_of

BLOCK = 1 << 16
"""Rows that are looked at together."""


class Table:
    """Rows and the names of their columns; `rows` is what estimators take."""

    def __init__(self, X: Any, names: Sequence[Any] | None = None) -> None:
        if hasattr(X, "to_delayed"):
            raise KernelpoolError("A report needs rows in memory; got a Dask array. Pass a part of it: X[:100_000].compute().")
        if issparse(X):
            raise KernelpoolError("A report needs dense rows; got a sparse matrix. Use X.toarray().")
        self.is_frame = hasattr(X, "columns") and hasattr(X, "shape")
        self.rows: Any = X if self.is_frame else to_numpy(X) if is_array(X) else np.asarray(X)
        if len(self.rows.shape) != 2:
            raise KernelpoolError(f"X must have two dimensions, rows and columns; got the shape {tuple(self.rows.shape)}.")
        own = list(X.columns) if self.is_frame else None
        given = own if names is None else list(names)
        if given is not None and len(given) != self.n_columns:
            raise KernelpoolError(f"feature_names has {len(given)} names for {self.n_columns} columns of X.")
        self.names = tuple(text_of(n) for n in given) if given is not None else tuple(f"x{i}" for i in range(self.n_columns))

    @property
    def n_rows(self) -> int:
        """Of the table."""
        return int(self.rows.shape[0])

    @property
    def n_columns(self) -> int:
        """Of the table."""
        return int(self.rows.shape[1])

    def column(self, i: int) -> np.ndarray:
        """One column: floats where it holds numbers, objects otherwise."""
        column = np.asarray(_safe_indexing(self.rows, i, axis=1)) if self.is_frame else self.rows[:, i]
        if column.dtype.kind in "biuf":
            return column
        if column.dtype.kind == "O":
            try:  # numbers that NumPy or pandas keep as objects
                return column.astype(np.float64) if not any(isinstance(v, str) for v in column[:1000]) else column
            except (TypeError, ValueError):
                return column
        return column.astype(object)

    def at(self, index: np.ndarray) -> Any:
        """Some rows, of the kind of `rows`."""
        return _safe_indexing(self.rows, index)


def blocks(n: int, size: int = BLOCK) -> Iterator[np.ndarray]:
    """Row numbers 0 to n, some at a time."""
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


def some(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most `most` of n row numbers, sorted: all of them, or a random sample."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
