"""Rows of files, data sets and iterables as batches of numbers, with what their target column says.

::

    "folder/"  "rows.parquet"  "rows.csv"     path: a file, a folder, folders `key=value` inside it
    pyarrow.dataset.dataset(...)              its fragments, one after the other
    "rows.npy"                                a matrix that is mapped, not loaded
    [(X, y), ...]  [data_frame, ...]          any iterable that can be iterated over again

A source is read from front to back as often as it is asked to, and holds one batch at a time.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..app.readers.columns import Gaps, NotNumbersError, check_columns, check_finite, numbers
from ..app.readers.labels import distinct_cells
from ..app.readers.sources import BUFFER, Batch, source
from ..errors import KernelpoolError, TableError
from ..rows import RowBatch
from ..text import plural, quoted, shown

BATCH_ROWS = 1 << 17
"""Rows of a batch that is cut here: some megabytes."""


@dataclass(frozen=True)
class Cells:
    """The target of some rows."""

    distinct: list[Any]
    """Values; None for a missing one."""
    index: np.ndarray
    """Which of them each row has, -1 for none, (n,)."""


class NumberBatch(NamedTuple):
    """Some rows as numbers; NaN where a cell is missing."""

    x: np.ndarray
    """(n, d)."""
    target: Cells | None
    weight: np.ndarray | None
    batch: Batch | None
    """The table that they come from, if any: it knows file and row."""


class NumberSource(Protocol):
    """Rows as numbers, as often as they are asked for."""

    label: str
    names: list[str] | None
    """Of the features; None where columns have no names."""
    is_table: bool
    """Whether labels are cells of a table, which `labels` turns into classes."""
    decodes: bool
    """Whether there is more to reading than fetching numbers, so that a decoded copy on the disk pays."""

    def read(self) -> Iterator[NumberBatch]: ...


def is_source(X: Any, y: Any = None) -> bool:
    """Whether rows are to be read in batches: paths, data sets, iterables of batches, and tables whose target is a column."""
    if isinstance(X, str | os.PathLike) or _is_dataset(X) or _is_number_source(X):
        return True
    if hasattr(X, "__array__") or hasattr(X, "shape") or not hasattr(X, "__iter__"):
        return isinstance(y, str) and _is_table(X)
    if isinstance(X, list | tuple):
        return len(X) > 0 and _is_batch(X[0])
    return not isinstance(X, dict | set | bytes) and not hasattr(X, "__len__")


def number_source(
    X: Any, target: Any = None, weight: Any = None, *, names: Sequence[str] | None = None
) -> NumberSource:
    """What `is_source` is true of, as a source of numbers.

    Parameters
    ----------
    X : path, pyarrow.dataset.Dataset, data frame, Arrow table or iterable
    target : str, array-like or None
        Column of the labels; beside a matrix (``.npy``) the labels themselves or a path to them.
    weight : str, array-like or None
        Column of the weights; beside a matrix the weights.
    names : sequence of str, optional
        Columns to take; all but `target` and `weight` otherwise.
    """
    if _is_number_source(X):
        return X  # type: ignore[no-any-return]
    if isinstance(X, str | os.PathLike):
        path = os.fspath(X)
        if path.endswith(".npy"):
            return _Matrix(path, target, weight)
        return TableNumbers(source(path), target, weight, names)
    if _is_dataset(X):
        return TableNumbers(_Dataset(X), target, weight, names)
    if _is_table(X):
        return TableNumbers(_Tables([X]), target, weight, names)
    beginning = iter(X)
    if beginning is X:
        raise KernelpoolError(
            f"X is an iterator ({type(X).__name__}), which can be read only once; a fit reads its rows many times. Pass a list "
            f"of batches, or an object whose __iter__ begins anew."
        )
    first = next(beginning, None)
    if first is None:
        raise KernelpoolError("X has no rows: it gives no batch.")
    if _is_table(first):
        return TableNumbers(_Tables(X), target, weight, names)
    if target is not None or weight is not None:
        raise KernelpoolError(
            "Batches of arrays bring their labels and weights along, as (X, y) or (X, y, sample_weight): pass y=None."
        )
    return _ArrayBatches(X)


def _is_number_source(X: Any) -> bool:
    return hasattr(X, "decodes") and hasattr(X, "read")


def _is_dataset(X: Any) -> bool:
    return hasattr(X, "get_fragments") and hasattr(X, "schema")


def _is_table(X: Any) -> bool:
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") or hasattr(X, "iloc")


def _is_batch(item: Any) -> bool:
    """Whether an entry of a list is a batch of rows and not a row."""
    if isinstance(item, tuple):
        return len(item) > 0 and getattr(item[0], "ndim", 0) == 2
    return _is_table(item) and getattr(item, "ndim", 2) == 2


# -- tables -----------------------------------------------------------------------------------------------------------


class Tables(Protocol):
    """Rows as batches of columns, as often as they are asked for."""

    label: str

    def batches(self) -> Iterator[Batch]: ...


@dataclass
class _Dataset:
    """A data set of pyarrow: fragment by fragment, so that rows can be named, and no more than a few batches ahead."""

    dataset: Any
    label: str = "the data set"

    def batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        schema = self.dataset.schema
        for i, fragment in enumerate(self.dataset.get_fragments()):
            name, row = shown(getattr(fragment, "path", f"fragment {i + 1}"), 200), 1
            try:
                options = _sparing(fragment)
                for piece in fragment.to_batches(
                    schema, batch_size=BATCH_ROWS, batch_readahead=2, **options
                ):
                    if piece.num_rows:
                        yield Batch(
                            name,
                            row,
                            dict(zip(schema.names, piece.columns, strict=True)),
                            piece.num_rows,
                            True,
                        )
                    row += piece.num_rows
            except (pa.ArrowException, OSError) as error:
                raise TableError(
                    f"{name}: damaged after row {row - 1}: {shown(error, 300)}"
                ) from None


def _sparing(fragment: Any) -> dict[str, Any]:
    """Options of a scan that reads Parquet a little at a time."""
    from pyarrow import dataset

    if not isinstance(getattr(fragment, "format", None), dataset.ParquetFileFormat):
        return {}
    options = {"pre_buffer": False, "use_buffered_stream": True, "buffer_size": BUFFER}
    return {"fragment_scan_options": dataset.ParquetFragmentScanOptions(**options)}


@dataclass
class _Tables:
    """Data frames and Arrow tables, one after the other."""

    tables: Iterable[Any]
    label: str = "X"

    def batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        for i, item in enumerate(self.tables):
            table = (
                pa.Table.from_pandas(item, preserve_index=False)
                if hasattr(item, "iloc")
                else pa.table(item)
            )
            row = 1
            for piece in table.to_batches(max_chunksize=BATCH_ROWS):
                if piece.num_rows:
                    columns = dict(zip(table.column_names, piece.columns, strict=True))
                    yield Batch(f"batch {i + 1}", row, columns, piece.num_rows, True)
                row += piece.num_rows


class TableNumbers:
    """The columns of a table as numbers."""

    is_table = decodes = True
    names: list[str] | None

    def __init__(
        self, tables: Tables, target: Any, weight: Any, names: Sequence[str] | None
    ) -> None:
        for value, what in ((target, "y"), (weight, "sample_weight")):
            if value is not None and not isinstance(value, str):
                raise KernelpoolError(
                    f"{what} must be the name of a column where X is read in batches; got {type(value).__name__}."
                )
        self.tables, self.target, self.weight, self.label = tables, target, weight, tables.label
        self.gaps, self.n_rows = Gaps(), 0
        self.columns = list(names) if names is not None else self._names()
        self.names = self.columns

    def _names(self) -> list[str]:
        first = next(self.tables.batches(), None)
        if first is None:
            raise TableError(f"{self.label}: no rows.")
        columns = list(first.columns)
        for name, what in ((self.target, "for the target"), (self.weight, "for the weights")):
            if name is not None:
                check_columns([name], columns, self.label, what)
        names = [name for name in columns if name not in (self.target, self.weight)]
        if not names:
            raise TableError(
                f"{self.label}: no column is left to learn from beside {quoted(self.target)}."
            )
        return names

    def read(self) -> Iterator[NumberBatch]:
        """Every batch; missing cells are counted in `gaps`."""
        self.gaps, self.n_rows = Gaps(), 0
        for whole in self.tables.batches():
            wanted = [n for n in (*self.columns, self.target, self.weight) if n is not None]
            check_columns(wanted, list(whole.columns), whole.file, "among its columns")
            for batch in _pieces(whole):
                weight = None if self.weight is None else self._weights(batch)
                target = None if self.target is None else Cells(*distinct_cells(batch, self.target))
                yield NumberBatch(self._matrix(batch), target, weight, batch)

    def check(self) -> None:
        """Missing cells are refused; call it when everything has been read."""
        if self.gaps.counts:
            raise self.gaps.error(self.n_rows)

    def _matrix(self, batch: Batch) -> np.ndarray:
        out = np.empty((len(self.columns), batch.n_rows))
        plain = [
            self._copied(row, batch.columns[name])
            for row, name in zip(out, self.columns, strict=True)
        ]
        self.n_rows += batch.n_rows
        with np.errstate(over="ignore", invalid="ignore"):
            if all(plain) and np.isfinite(out.sum()):  # nearly always all is well
                return out.T
        missing = {}
        for row, name in zip(out, self.columns, strict=True):
            row[...], mask = self._column(batch, name)
            if mask is not None:
                missing[name] = mask
        self.gaps.add(batch, missing)
        return out.T  # columns lie together, as they came

    @staticmethod
    def _copied(out: np.ndarray, column: Any) -> bool:
        """Whether a column was float64 without nulls, and is in `out` now."""
        import pyarrow as pa

        if not pa.types.is_float64(column.type) or column.null_count:
            return False
        out[...] = column.to_numpy(zero_copy_only=False)
        return True

    def _column(self, batch: Batch, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        try:
            x, mask = numbers(batch.columns[name], batch.style)
        except NotNumbersError as error:
            raise TableError(
                f"Not a number: {batch.file}, row {batch.first_row + error.at}, column {quoted(name)}: {quoted(error.cell)}.",
                "Rows that are read in batches must be numbers: leave other columns out, or code them first.",
            ) from None
        check_finite(batch, name, x)
        return x, mask

    def _weights(self, batch: Batch) -> np.ndarray:
        x, mask = self._column(batch, str(self.weight))
        bad = (x < 0) if mask is None else mask | (x < 0)
        if bad.any():
            row = batch.first_row + int(np.argmax(bad))
            raise TableError(
                f"{batch.file}, row {row}, column {quoted(self.weight)}: a weight must be a number, none negative."
            )
        return x


def _pieces(batch: Batch) -> Iterator[Batch]:
    """A batch in parts of at most `BATCH_ROWS` rows."""
    if batch.n_rows <= BATCH_ROWS:
        yield batch
        return
    for start in range(0, batch.n_rows, BATCH_ROWS):
        n = min(BATCH_ROWS, batch.n_rows - start)
        columns = {name: column.slice(start, n) for name, column in batch.columns.items()}
        yield replace(batch, first_row=batch.first_row + start, columns=columns, n_rows=n)


# -- arrays -----------------------------------------------------------------------------------------------------------


class _ArrayBatches:
    """Arrays X, or tuples (X, y) and (X, y, sample_weight)."""

    is_table = decodes = False
    names: list[str] | None = None
    label = "X"

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items

    def read(self) -> Iterator[NumberBatch]:
        for i, item in enumerate(self.items):
            x, y, weight = (
                (*item, None, None)[:3] if isinstance(item, tuple) else (item, None, None)
            )
            yield _number_batch(np.asarray(x), y, weight, f"batch {i + 1}")


class _Matrix:
    """A matrix in a file of NumPy; labels and weights are there too, or in memory."""

    is_table = decodes = False
    names: list[str] | None = None

    def __init__(self, path: str, target: Any, weight: Any) -> None:
        self.label, self.x = shown(path, 200), _mapped(path)
        if self.x.ndim != 2:
            raise ValueError(f"Expected 2D array, got {self.x.ndim}D array instead.")
        self.columns = [
            self._beside(a, name) for a, name in ((target, "y"), (weight, "sample_weight"))
        ]

    def _beside(self, column: Any, name: str) -> np.ndarray | None:
        if isinstance(column, str | os.PathLike):
            if not os.fspath(column).endswith(".npy"):
                raise KernelpoolError(
                    f"{self.label} is a matrix without names: {name} must be an array or a path to a .npy file; "
                    f"got {quoted(os.fspath(column))}."
                )
            column = _mapped(os.fspath(column))
        column = None if column is None else np.asarray(column)
        if column is not None and column.shape != self.x.shape[:1]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: [{len(self.x)}, {len(column)}]"
            )
        return column

    def read(self) -> Iterator[NumberBatch]:
        for start in range(0, len(self.x), BATCH_ROWS):
            span = slice(start, start + BATCH_ROWS)
            y, weight = (None if a is None else a[span] for a in self.columns)
            yield _number_batch(
                np.asarray(self.x[span]),
                y,
                weight,
                f"{self.label}, rows {start + 1} to {start + len(self.x[span])}",
            )


def _mapped(path: str) -> np.ndarray:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise TableError(f"{shown(path, 200)}: {shown(error, 300)}") from None


def _number_batch(x: np.ndarray, y: Any, weight: Any, place: str) -> NumberBatch:
    if x.ndim != 2:
        raise ValueError(f"{place}: expected 2D array, got {x.ndim}D array instead.")
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is not None and len(column) != len(x):
            raise ValueError(f"{place}: {plural(len(x), 'row')} of X and {len(column)} of {name}.")
    if weight is not None:
        weight = np.asarray(weight, x.dtype)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"{place}: sample_weight must hold numbers, none negative.")
    return NumberBatch(x, None if y is None else _cells(np.asarray(y)), weight, None)


def _cells(y: np.ndarray) -> Cells:
    if y.dtype == object:
        place: dict[Any, int] = {}
        index = np.array([place.setdefault(label, len(place)) for label in y.tolist()], np.int64)
        return Cells(list(place), index)
    distinct, index = np.unique(y, return_inverse=True)
    return Cells(distinct.tolist(), np.asarray(index, np.int64))


# -- rows to be judged --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryRows:
    """The features of a source alone, batch by batch: rows to be judged by a fitted estimator."""

    source: NumberSource
    n_features: int
    estimator: str
    """Its name, for messages."""
    holes: bool = False
    """Whether cells may be missing."""

    def __iter__(self) -> Iterator[RowBatch]:
        for batch in checked_batches(self.source, self.n_features, self.estimator, self.holes):
            yield RowBatch(batch.x)


def checked_batches(
    source: NumberSource, n_features: int, estimator: str, holes: bool
) -> Iterator[NumberBatch]:
    """Batches of as many features as an estimator was fitted to, and complete ones unless it takes `holes`."""
    for batch in source.read():
        if batch.x.shape[1] != n_features:
            raise ValueError(
                f"X has {batch.x.shape[1]} features, but {estimator} is expecting {n_features} features as input."
            )
        if not holes:
            check_complete(source)
        yield batch


def check_width(x: np.ndarray, n_features: int) -> None:
    """Every batch has as many features."""
    if x.shape[1] != n_features:
        raise ValueError(f"A batch of X has {x.shape[1]} features; the first one has {n_features}.")


def check_complete(source: NumberSource) -> None:
    """Missing cells of what has been read so far are refused."""
    if isinstance(source, TableNumbers):
        source.check()
