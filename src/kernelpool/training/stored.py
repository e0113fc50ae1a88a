"""Rows of a source of batches, decoded once into a store on disk, or into memory where they are few.

Labels and categories get codes in the order in which they come. When all rows have been read, the
codes in the store are replaced by positions among the sorted values.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import KernelpoolError
from ..rows import Rows, Store, StoredRows, as_rows, recode
from ..tables.batches import batches
from ..tables.columns import Columns

IN_MEMORY = 64 << 20
"""Bytes of rows that are kept in memory: their model is that of the array, bit for bit."""


class _Values(dict[Any, int]):
    """Distinct values, in the order in which they came."""

    def codes(self, values: Any) -> np.ndarray:
        """Their positions, new ones included."""
        # NaN is not equal to itself, but one object is
        keys = (np.nan if isinstance(v, float) and v != v else v for v in values)
        return np.array([self.setdefault(key, len(self)) for key in keys], np.float64)


def read(
    X: Any, y: Any, sample_weight: Any, columns: Columns | None, categorical_features: Any = None
) -> tuple[Columns, np.ndarray, Store]:
    """Columns, the distinct labels, and the rows of a source, with the positions of their labels.

    With `columns`, those of a fitted estimator, columns are matched by name and encoded by them.
    """
    store, learned, labels = None, columns, _Values()
    categories: list[_Values | None] = []
    names = None if columns is None else columns.names
    for table, target, weight in batches(X, y, sample_weight, names=names):
        found = columns or Columns.learn(table, categorical_features)
        x = _encoded(found, table)
        if not len(x):
            continue
        if store is None:
            learned, weighted = found, weight is not None
            store = Store(x.shape[1], x.dtype, weighted=weighted)
            categories = [None if values is None else _Values() for values in found.categories]
        if x.shape[1] != store.n_features:
            raise ValueError(
                f"A batch of X has {x.shape[1]} features; the first one has {store.n_features}."
            )
        if (weight is not None) != store.weighted:
            raise ValueError("Either all batches of X have a sample_weight, or none has.")
        if columns is None:
            _recode(x, found, categories)
        if target is None:
            codes = np.full(len(x), -1.0)
        else:
            values, at = _distinct(target)
            codes = labels.codes(values)[at]
        store.add(x, codes, weight)
    if store is None or learned is None:
        raise ValueError("X has 0 rows, while a minimum of 1 is required: no batch has any.")
    if columns is None:
        in_order = [None if v is None else _sort(store, i, v) for i, v in enumerate(categories)]
        learned = replace(learned, categories=tuple(in_order))
    return learned, _as_objects(list(labels)), store


def _encoded(columns: Columns, table: Any) -> np.ndarray:
    plain = isinstance(table, np.ndarray) and table.dtype.kind in "fiub" and not any(columns.levels)
    if plain:
        x = np.array(table, table.dtype if table.dtype in (np.float32, np.float64) else np.float64)
    else:
        x = columns.encode(table)
    n_bad = np.count_nonzero(np.isinf(x))
    if n_bad:
        raise ValueError(f"Input X contains infinity in {n_bad} cells of a batch; leave them out.")
    return x


def _recode(x: np.ndarray, found: Columns, categories: list[_Values | None]) -> None:
    """Codes of one batch as codes of all that have been read, in place."""
    for i, (values, known) in enumerate(zip(found.categories, categories, strict=True)):
        if (values is None) != (known is None):
            held = ("numbers", "categories") if known is None else ("categories", "numbers")
            raise KernelpoolError(
                f"{found.label(i)} of X holds {held[0]} in the first batch and {held[1]} in a later "
                f"one. Give it one type, or name it in categorical_features."
            )
        if values is not None and known is not None:
            recode(x[:, i], known.codes(values))


def _sort(store: Store, column: int, known: _Values) -> np.ndarray:
    """The sorted values of a column; its codes in the store become positions among them."""
    values = np.array(sorted(known), object)
    place = {value: float(i) for i, value in enumerate(values)}
    store.recode(column, np.array([place[value] for value in known]))
    return values


def _distinct(target: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Some labels, each once, and which of them each row has, (n,)."""
    if target.dtype != object:
        values, at = np.unique(target, return_inverse=True)
        return values.tolist(), at.reshape(-1)
    place: dict[Any, int] = {}
    positions = [place.setdefault(label, len(place)) for label in target.tolist()]
    return list(place), np.array(positions, int)


def _as_objects(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def rows_of(store: Store, codes: np.ndarray, n_jobs: int | None) -> Rows:
    """The rows, with `codes` in place of the positions of their labels; -1 is no label."""
    if (codes != np.arange(len(codes))).any():
        store.recode(store.n_features, codes.astype(np.float64))
    if store.n_bytes <= IN_MEMORY:
        return as_rows(*store.in_memory(), n_jobs=n_jobs)
    return StoredRows(store, n_jobs=n_jobs)
