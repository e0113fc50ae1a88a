"""The rows as a user passes them, and what can be said of them at once: columns, ranges, constants, repeats, gaps, classes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ...arrays import is_array, to_numpy
from ...errors import KernelpoolError
from ...rows import is_lazy
from ...text import is_missing, text_of
from .records import ClassCount, Column, Data

BLOCK = 1 << 16
"""Rows that are looked at together."""


class Table:
    """Rows and the names of their columns; `rows` is what estimators take."""

    def __init__(self, X: Any, names: Sequence[Any] | None = None) -> None:
        if is_lazy(X):
            raise KernelpoolError(
                "A report needs rows in memory; got a Dask array. Pass a part of it: X[:100_000].compute()."
            )
        if issparse(X):
            raise KernelpoolError(
                "A report needs dense rows; got a sparse matrix. Use X.toarray()."
            )
        self.is_frame = hasattr(X, "columns") and hasattr(X, "shape")
        self.rows: Any = X if self.is_frame else to_numpy(X) if is_array(X) else np.asarray(X)
        if len(self.rows.shape) != 2:
            raise KernelpoolError(
                f"X must have two dimensions, rows and columns; got the shape {tuple(self.rows.shape)}."
            )
        given = column_names(X) if names is None else list(names)
        if given is not None and len(given) != self.n_columns:
            raise KernelpoolError(
                f"feature_names has {len(given)} names for {self.n_columns} columns of X."
            )
        self.names = (
            tuple(text_of(n) for n in given)
            if given is not None
            else tuple(f"x{i}" for i in range(self.n_columns))
        )

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
        column = (
            np.asarray(_safe_indexing(self.rows, i, axis=1)) if self.is_frame else self.rows[:, i]
        )
        if column.dtype.kind in "biuf":
            return column
        if column.dtype.kind == "O":
            try:  # numbers that NumPy or pandas keep as objects
                return (
                    column.astype(np.float64)
                    if not any(isinstance(v, str) for v in column[:1000])
                    else column
                )
            except (TypeError, ValueError):
                return column
        return column.astype(object)

    def at(self, index: np.ndarray) -> Any:
        """Some rows, of the kind of `rows`."""
        return _safe_indexing(self.rows, index)


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a frame or table; None where they have none."""
    names = getattr(X, "column_names", None)  # of a pyarrow table, whose `columns` are the data
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None else list(names)


def blocks(n: int, size: int = BLOCK) -> Iterator[np.ndarray]:
    """Row numbers 0 to n, some at a time."""
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


def some(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most `most` of n row numbers, sorted: all of them, or a random sample."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


MOST_COLUMNS, MOST_CLASSES, MOST_NAMED = 30, 20, 10


def data_of(
    table: Table,
    target: "Target",
    test: Table | None,
    test_target: "Target | None",
    told: dict[str, Any],
) -> Data:
    """Everything that the report says of the rows."""
    columns = columns_of(table)
    constant = [column.name for column in columns if column.constant]
    repeated = [(column.name, column.same_as) for column in columns if column.same_as is not None]
    counts = _class_counts(target, test_target)
    return Data(
        n_rows=table.n_rows,
        n_features=table.n_columns,
        n_test=None if test is None else test.n_rows,
        n_unlabeled=int(target.unlabeled.sum()),
        n_missing=sum(column.n_missing for column in columns),
        columns=tuple(columns[:MOST_COLUMNS]),
        n_more_columns=max(0, len(columns) - MOST_COLUMNS),
        constant=tuple(constant[:MOST_NAMED]),
        n_more_constant=max(0, len(constant) - MOST_NAMED),
        duplicates=tuple(repeated[:MOST_NAMED]),
        n_more_duplicates=max(0, len(repeated) - MOST_NAMED),
        classes=tuple(counts[:MOST_CLASSES]),
        n_more_classes=max(0, len(counts) - MOST_CLASSES),
        n_classes=len(counts),
        target_range=target.range,
        **told,
    )


class Target:
    """Labels as codes, or numbers where the task is regression."""

    def __init__(self, y: Any, unlabeled: np.ndarray, classification: bool) -> None:
        self.y, self.unlabeled = y, unlabeled
        self.range: tuple[float, float, float] | None = None
        self.values: np.ndarray = np.empty(0, object)
        self.counts: np.ndarray = np.empty(0, int)
        if classification:
            self.values, self.counts = np.unique(y[~unlabeled], return_counts=True)
        elif y.size:
            self.range = float(y.min()), float(y.mean()), float(y.max())


def _class_counts(target: Target, test: Target | None) -> list[ClassCount]:
    """Classes in falling order of their rows."""
    in_test = (
        {} if test is None else dict(zip(test.values.tolist(), test.counts.tolist(), strict=True))
    )
    order = np.argsort(-target.counts, kind="stable")
    return [
        ClassCount(text_of(label), int(count), None if test is None else in_test.get(label, 0))
        for label, count in zip(
            target.values[order].tolist(), target.counts[order].tolist(), strict=True
        )
    ]


def columns_of(table: Table) -> list[Column]:
    """All columns; a column that repeats an earlier one says which."""
    columns: list[Column] = []
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, name in enumerate(table.names):
        values = table.column(i)
        column = _numbers(name, values) if values.dtype.kind in "biuf" else _words(name, values)
        columns.append(column)
        key = (
            column.kind,
            column.low,
            column.high,
            column.n_distinct,
            column.common,
            column.n_missing,
        )
        alike.setdefault(key, []).append(i)
    for group in (
        group for group in alike.values() if len(group) > 1
    ):  # only these can be the same
        first: dict[bytes, int] = {}
        for i in group:
            earlier = first.setdefault(_digest(table.column(i)), i)
            if earlier != i:
                columns[i] = replace(columns[i], same_as=columns[earlier].name)
    return columns


def _digest(values: np.ndarray) -> bytes:
    """Of what a column holds; two that differ share it with a probability of 2^-128."""
    if values.dtype.kind in "biuf":
        return blake2b(np.ascontiguousarray(values, np.float64).tobytes(), digest_size=16).digest()
    joined = "\0".join(map(str, values.tolist()))
    return blake2b(joined.encode("utf-8", "replace"), digest_size=16).digest()


def _numbers(name: str, values: np.ndarray) -> Column:
    values = values.astype(np.float64)
    known = values[np.isfinite(values)] if not np.isfinite(values).all() else values
    n_missing = len(values) - len(known)
    if not len(known):
        return Column(name, "number", n_missing=n_missing, constant=True)
    low, high, mean = float(known.min()), float(known.max()), float(known.mean())
    return Column(
        name,
        "number",
        low,
        mean,
        high,
        float(known.std()),
        n_missing=n_missing,
        constant=low == high,
    )


def _words(name: str, values: np.ndarray) -> Column:
    counts = Counter(str(value) for value in values.tolist() if not is_missing(value))
    n_missing = len(values) - counts.total()
    common = text_of(counts.most_common(1)[0][0], 60) if counts else None
    return Column(
        name,
        "text",
        n_distinct=len(counts),
        common=common,
        n_missing=n_missing,
        constant=len(counts) <= 1,
    )
