"""The data at a glance: columns, their ranges, what is constant, repeated or missing, and how many rows each class has."""

from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np

from ..text import is_missing, text_of
from .records import ClassCount, Column, Data
from .table import Table

MOST_COLUMNS, MOST_CLASSES, MOST_NAMED = 30, 20, 10


def data_of(
    table: Table, target: "Target", test: Table | None, test_target: "Target | None", labels: dict[str, str | None]
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
        **labels,
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
    in_test = {} if test is None else dict(zip(test.values.tolist(), test.counts.tolist(), strict=True))
    order = np.argsort(-target.counts, kind="stable")
    return [
        ClassCount(text_of(label), int(count), None if test is None else in_test.get(label, 0))
        for label, count in zip(target.values[order].tolist(), target.counts[order].tolist(), strict=True)
    ]


def columns_of(table: Table) -> list[Column]:
    """All columns; a column that repeats an earlier one says which."""
    columns: list[Column] = []
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, name in enumerate(table.names):
        values = table.column(i)
        column = _numbers(name, values) if values.dtype.kind in "biuf" else _words(name, values)
        columns.append(column)
        key = (column.kind, column.low, column.high, column.n_distinct, column.common, column.n_missing)
        alike.setdefault(key, []).append(i)
    for group in (group for group in alike.values() if len(group) > 1):  # only these can be the same
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
    return Column(name, "number", low, mean, high, float(known.std()), n_missing=n_missing, constant=low == high)


def _words(name: str, values: np.ndarray) -> Column:
    counts = Counter(str(value) for value in values.tolist() if not is_missing(value))
    n_missing = len(values) - counts.total()
    common = text_of(counts.most_common(1)[0][0], 60) if counts else None
    return Column(name, "text", n_distinct=len(counts), common=common, n_missing=n_missing, constant=len(counts) <= 1)
