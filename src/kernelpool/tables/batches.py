"""Tables that come in batches.

::

    "folder/"  "rows.parquet"  "rows.csv"     path: what pyarrow.dataset reads, hive folders included
    pyarrow.dataset.dataset(...)              one record batch after the other
    [data_frame, ...]  [(X, y), ...]          iterables of data frames or Arrow tables; with y, of arrays too
    data_frame                                with y as the name of one of its columns

`batches` reads such a source once, from front to back, and holds one batch at a time.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..arrays import is_dataset, is_table
from ..errors import KernelpoolError, TableError
from ..text import did_you_mean, quoted, shown

BATCH_ROWS = 1 << 17
"""Rows of a batch that is cut here: some megabytes."""

DATASET_FORMATS = {".csv": "csv", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".orc": "orc"}
"""How files are read, by their suffix; all others are Parquet."""

Batch = tuple[Any, np.ndarray | None, np.ndarray | None]
"""A table of features or an array (n, d), labels (n,) and weights (n,)."""


def batches(
    X: Any, y: Any = None, weight: Any = None, *, names: Sequence[str] | None = None
) -> Iterator[Batch]:
    """What `is_source` is true of, batch by batch.

    Parameters
    ----------
    X : path, pyarrow.dataset.Dataset, data frame, Arrow table or iterable
    y, weight : str or None
        Names of columns; None for batches that bring them along, tuples (X, y) or (X, y, weight).
    names : sequence of str, optional
        Columns to take; all but `y` and `weight` otherwise.
    """
    if isinstance(X, str | os.PathLike):
        X = _dataset(os.fspath(X), y)
    tables = _record_batches(X) if is_dataset(X) else [X] if is_table(X) else X
    for i, item in enumerate(tables):
        if is_table(item):
            yield _of_table(item, y, weight, names)
        elif y is not None or weight is not None:
            raise KernelpoolError(
                "Batches of arrays, and tuples, bring their labels and weights along, as (X, y) or "
                "(X, y, sample_weight): pass y=None."
            )
        else:
            yield _of_arrays(item if isinstance(item, tuple) else (item,), f"Batch {i + 1}")


# -- tables ----------------------------------------------------------------------------------------


def _dataset(path: str, y: Any) -> Any:
    """A file or folder as a data set of pyarrow.

    Whole numbers in text files are read as floats, since later ones may be; those of y are not.
    """
    import pyarrow as pa
    from pyarrow import csv, dataset

    files = [path]
    if os.path.isdir(path):
        files = sorted(
            os.path.join(at, name) for at, _, entries in os.walk(path) for name in entries
        )
    name = next((f for f in files if f[0] not in "._"), path).lower()
    suffix = os.path.splitext(name.removesuffix(".gz"))[1]  # pyarrow unpacks text
    kind: Any = DATASET_FORMATS.get(suffix, "parquet")
    if kind == "csv":
        options = csv.ConvertOptions(strings_can_be_null=True)
        kind = dataset.CsvFileFormat(convert_options=options)
    try:
        data = dataset.dataset(path, format=kind, partitioning="hive")
        if suffix != ".csv":
            return data
        columns = [
            pa.field(f.name, pa.float64())
            if f.name != y and (pa.types.is_integer(f.type) or pa.types.is_null(f.type))
            else f
            for f in data.schema
        ]
        return dataset.dataset(path, pa.schema(columns), format=kind, partitioning="hive")
    except FileNotFoundError:
        raise TableError(f"{shown(path, 200)}: no such file or folder.") from None
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{shown(path, 200)}: {shown(error, 300)}") from None


def _record_batches(source: Any) -> Iterator[Any]:
    """The record batches of a data set; Parquet is read a little at a time."""
    import pyarrow as pa
    from pyarrow import dataset

    for fragment in source.get_fragments():
        options: dict[str, Any] = {}
        if isinstance(getattr(fragment, "format", None), dataset.ParquetFileFormat):
            buffered = {"pre_buffer": False, "use_buffered_stream": True, "buffer_size": 1 << 20}
            options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(**buffered)
        n_read = 0
        try:
            for piece in fragment.to_batches(
                source.schema, batch_size=BATCH_ROWS, batch_readahead=2, **options
            ):
                if piece.num_rows:
                    yield pa.Table.from_batches([piece])
                n_read += piece.num_rows
        except (pa.ArrowException, OSError) as error:
            path = shown(getattr(fragment, "path", "the data set"), 200)
            raise TableError(f"{path}: damaged after row {n_read}: {shown(error, 300)}") from None


def _of_table(table: Any, y: Any, weight: Any, names: Sequence[str] | None) -> Batch:
    columns = getattr(table, "column_names", None) or [str(name) for name in table.columns]
    for name, what in ((y, "y"), (weight, "sample_weight")):
        if name is not None and not isinstance(name, str):
            raise KernelpoolError(
                f"{what} must be the name of a column where X is read in batches; "
                f"got {type(name).__name__}."
            )
    chosen = [name for name in columns if name not in (y, weight)] if names is None else list(names)
    for name in (*chosen, y, weight):
        if name is not None and name not in columns:
            raise TableError(f"X: there is no column {quoted(name)}{did_you_mean(name, columns)}")
    if not chosen:
        raise TableError(f"X: no column is left to learn from beside {quoted(y)}.")
    features = table.select(chosen) if hasattr(table, "select") else table[chosen]
    labels, weights = (None if name is None else _column(table[name]) for name in (y, weight))
    return features, labels, None if weights is None else _checked_weights(weights, "X")


def _column(column: Any) -> np.ndarray:
    """A column of pandas, polars or Arrow; None where a cell of Arrow or polars is missing."""
    if getattr(column, "null_count", 0) and hasattr(column, "type"):
        return np.array([*column.to_pylist(), None], object)[:-1]
    cells = np.asarray(column.to_numpy())
    return cells.astype(object) if cells.dtype.kind in "UT" else cells


# -- arrays ----------------------------------------------------------------------------------------


def _of_arrays(arrays: Iterable[Any], place: str) -> Batch:
    x, y, weight = (*arrays, None, None)[:3]
    x = x if is_table(x) else np.asarray(x)
    if len(x.shape) != 2:
        raise ValueError(f"{place}: expected 2D array, got {len(x.shape)}D array instead.")
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is not None and len(column) != len(x):
            raise ValueError(f"{place}: {len(x)} rows of X and {len(column)} of {name}.")
    weight = None if weight is None else _checked_weights(np.asarray(weight), place)
    return x, None if y is None else np.asarray(y), weight


def _checked_weights(weight: np.ndarray, place: str) -> np.ndarray:
    weight = np.asarray(weight, np.float64)
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"{place}: sample_weight must hold finite numbers, none negative.")
    return weight
