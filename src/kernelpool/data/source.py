"""From tables and sources of batches to rows of numbers, and a warning of columns that mislead.

Rows of a source are decoded once into a store. Labels and categories get codes in the order in
which they come; when all rows have been read, these are replaced by positions among the sorted
values.
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..arrays import is_dataset, is_lazy, is_lazy_frame, is_table
from ..errors import (
    ColumnWarning,
    KernelpoolError,
    SampleWarning,
    TableError,
    UnequalChunksError,
    warn,
)
from ..rows import DaskRows, Rows, Store, StoredRows, as_rows, recode
from ..rows.dask import each_part, tree_sum
from ..tables import draw
from ..tables.columns import (
    Columns,
    Found,
    frame_of,
    holds_text,
    reason_to_leave_out,
    sorted_categories,
)
from ..tables.kinds import CATEGORY, FEW
from ..tables.read import (
    Scan,
    check_columns,
    labels_of,
    read_by,
    read_table,
    scan,
    values_of,
    weights_of,
)
from ..text import did_you_mean, is_missing, quoted
from .labels import FLOATS

FEWEST_TO_MISLEAD = 50
"""Of fewer rows no column gives the class away."""

FIRST_ROWS = 1000
"""In which such a column has few values: all rows are not looked at in vain."""


NO_ROWS = "X has 0 rows, while a minimum of 1 is required: no batch has any."


def is_source(X: Any, y: Any = None) -> bool:
    """Whether rows come in batches: paths, data sets, iterables of batches, and a table whose
    target is a column.
    """
    if is_scanned(X):
        return True
    if hasattr(X, "__array__") or hasattr(X, "shape") or not hasattr(X, "__iter__"):
        return isinstance(y, str) and is_table(X)
    if isinstance(X, list | tuple):
        return len(X) > 0 and _is_batch(X[0])
    return not hasattr(X, "__len__")


def is_scanned(X: Any) -> bool:
    """Whether rows are read by `scan`: those of a path or a data set of pyarrow."""
    return isinstance(X, str | os.PathLike) or is_dataset(X)


def _is_batch(item: Any) -> bool:
    """Whether an entry of a list is a batch of rows and not a row."""
    if isinstance(item, tuple):
        return len(item) > 0 and getattr(item[0], "ndim", 0) == 2
    return is_table(item) and getattr(item, "ndim", 2) == 2


def is_in_memory(X: Any, y: Any = None) -> bool:
    """Whether rows are arrays of any library but Dask, or a table, with their labels apart."""
    return not (is_lazy(X) or is_lazy_frame(X) or is_source(X, y))


def checked_rows(
    name: str, X: Any, columns: Columns, *, fewest: int = 1, dtype: Any = FLOATS
) -> np.ndarray:
    """Rows in memory as scikit-learn checks them; infinite cells are refused, missing ones are
    NaN.
    """
    if isinstance(X, str | os.PathLike):
        raise KernelpoolError(
            f"{name} expects rows in memory here; got the path {quoted(os.fspath(X))}. fit, score and "
            "predictions take paths; read the file first, for instance with pandas.read_csv."
        )
    is_encoded = columns.coded or not (any(columns.levels) or is_table(X) or holds_text(X))
    if not is_encoded or isinstance(X, np.ma.MaskedArray):
        X = columns.encode(X)
    elif isinstance(X, np.ndarray) and X.dtype == object:  # pandas' NA is no number
        X = np.where(np.vectorize(is_missing, otypes=[bool])(X), np.nan, X)
    return check_array(
        X,
        dtype=dtype,
        order=None,
        ensure_min_samples=fewest,
        ensure_all_finite="allow-nan",
        estimator=name,
        input_name="X",
    )


def warn_of_columns(
    columns: Columns, n_rows: int, x: np.ndarray | None = None, codes: np.ndarray | None = None
) -> None:
    """One warning that names the columns from which nothing can be learned and, given encoded rows
    (n, d) and the codes of their classes (n,), those that give the class away.
    """
    if columns.names is None:  # the numbers of another network have none
        return
    reasons = []
    for i, values in enumerate(columns.categories):
        reason = None if values is None else reason_to_leave_out(values.tolist(), n_rows)
        if reason is None and x is not None and codes is not None:
            most = int(codes.max()) + 1 if values is None else FEW
            if _gives_away(x[codes >= 0, i], codes[codes >= 0], most):
                reason = "each of its values is found in one class alone"
        if reason is not None:
            reasons.append(f"{columns.label(i)} ({reason})")
    if reasons:
        warn(
            f"X has columns that may mislead: {'; '.join(reasons)}. Leave out what new rows will not "
            "have, or not before their class is known.",
            ColumnWarning,
        )


def _gives_away(x: np.ndarray, codes: np.ndarray, most: int) -> bool:
    """Whether a column has at most so many values, each of them in one class alone; a missing cell
    is a value.
    """
    x = np.where(np.isnan(x), np.inf, x)
    if len(x) < FEWEST_TO_MISLEAD or len(np.unique(x[:FIRST_ROWS])) > most:
        return False
    values, at = np.unique(x, return_inverse=True)
    code_of = np.zeros(len(values), int)
    code_of[at] = codes
    return len(values) <= most and bool((code_of[at] == codes).all())


def frame_columns(
    X: Any, y: Any, sample_weight: Any, categorical_features: Any = "from_dtype"
) -> tuple[Any, ...]:
    """A data frame of Dask as arrays, and its columns; y and sample_weight may be names of
    columns.
    """
    # one set of chunks for all columns: Dask joins files of which few columns are read
    X = X.map_partitions(lambda frame: frame)
    targets = [
        columns_named(X, [name])[name] if isinstance(name, str) else name
        for name in (y, sample_weight)
    ]
    X = X.drop(columns=[name for name in (y, sample_weight) if isinstance(name, str)])
    columns = _columns_of_collection(X, categorical_features)
    if columns.frame is None:
        kinds = {str(dtype) for dtype in X.dtypes}
        array = X.astype("float32" if kinds == {"float32"} else "float64").to_dask_array()
    else:
        array = each_part(X, columns.encode, np.zeros((1, len(columns))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # strings of pandas become objects
        arrays = [column.to_dask_array() if is_lazy_frame(column) else column for column in targets]
    return array, *arrays, columns


def _columns_of_collection(X: Any, categorical_features: Any) -> Columns:
    """What the columns of a data frame of Dask hold, by all of their distinct cells."""
    import dask

    if isinstance(categorical_features, Columns):
        return categorical_features
    names = tuple(map(str, X.columns))
    learned = Columns.learn(X._meta_nonempty, categorical_features)
    by_cells = [
        i
        for i, dtype in enumerate(X.dtypes)
        if learned.levels[i] or getattr(dtype, "kind", "O") not in "fiu"
    ]
    if not by_cells:
        return Columns((None,) * len(names), names)
    cells = dask.compute(*(X.iloc[:, [i]].drop_duplicates() for i in by_cells))
    categories = list(learned.categories)
    types = list(learned.types)
    for i, distinct in zip(by_cells, cells, strict=True):
        named = learned.levels[i] and not isinstance(categorical_features, str)
        of_column = Columns.learn(distinct, [0] if named else "from_dtype")
        categories[i] = of_column.categories[0]
        types[i] = of_column.types[0]
    ranges = (None,) * len(names)
    return replace(learned, categories=tuple(categories), types=tuple(types), ranges=ranges)


def columns_named(X: Any, names: list[str]) -> Any:
    """Some columns of a data frame."""
    absent = [name for name in names if name not in X.columns]
    if absent:
        raise KernelpoolError(
            f"X has no column {absent[0]!r}; there are {[str(name) for name in X.columns]}."
        )
    return X[names]


def in_memory_or_batches(
    X: Any, y: Any, sample_weight: Any, categorical_features: Any = None
) -> tuple[Any, Any, Any]:
    """Rows of a source as a table, labels and weights where they fit in memory: their model is that
    of a data frame, bit for bit. Otherwise all of them in batches, None and None.
    """
    if is_table(X):
        return _of_table(X, y, sample_weight)
    if not is_scanned(X):
        return labeled_batches(X, y, sample_weight), None, None
    rows, source = _read_table(X, y, sample_weight, categorical_features)
    if len(rows.y) == rows.n_rows:
        return rows.X, rows.y, rows.weight
    return _typed_batches(rows, source, y, sample_weight), None, None


def stored(
    source: Iterable["Batch"], categorical_features: Any = None
) -> tuple[Columns, np.ndarray, Store]:
    """Columns, the distinct labels, and the rows of batches, with the positions of their labels."""
    store = None
    labels = draw.Distinct()
    for table, target, weight in source:
        of_batch = Columns.learn(table, categorical_features)
        x = checked_rows("SharedKernelClassifier", table, of_batch, fewest=0)
        if store is None:
            learned = of_batch
            store = Store(x.shape[1], x.dtype, weighted=weight is not None)
            categories = [
                None if values is None else draw.Distinct() for values in of_batch.categories
            ]
        if x.shape[1] != store.n_features:
            raise ValueError(
                f"A batch of X has {x.shape[1]} features; the first one has {store.n_features}."
            )
        _check_weighted(weight, store.weighted)
        _recode(x, of_batch, categories)
        codes = np.full(len(x), -1) if target is None else labels.codes(target)
        store.add(x, codes, weight)
    if store is None:
        raise ValueError(NO_ROWS)
    in_order = [None if v is None else _sort(store, i, v) for i, v in enumerate(categories)]
    learned = replace(learned, categories=tuple(in_order), ranges=(None,) * len(in_order))
    return learned, np.array([*labels, None], object)[:-1], store


def _check_weighted(weight: np.ndarray | None, weighted: bool) -> None:
    if (weight is not None) != weighted:
        raise ValueError("Either all batches of X have a sample_weight, or none has.")


def _recode(x: np.ndarray, of_batch: Columns, categories: list[draw.Distinct | None]) -> None:
    """Codes of one batch as codes of all that have been read, in place."""
    for i, (values, known) in enumerate(zip(of_batch.categories, categories, strict=True)):
        if (values is None) != (known is None):
            held = ("numbers", "categories") if known is None else ("categories", "numbers")
            raise KernelpoolError(
                f"{of_batch.label(i)} of X holds {held[0]} in the first batch and {held[1]} in a "
                "later one. Give it one type, or name it in categorical_features."
            )
        if values is not None and known is not None:
            recode(x[:, i], known.codes(values))


def _sort(store: Store, column: int, known: draw.Distinct) -> np.ndarray:
    """The categories of a column; its codes in the store become positions among them."""
    values = sorted_categories(set(known))
    store.recode(column, Columns((values,)).encode([[value] for value in known])[:, 0])
    return values


def rows_of(store: Store, codes: np.ndarray, n_jobs: int | None) -> Rows:
    """The rows, with `codes` in place of the positions of their labels; -1 is no label."""
    if (codes != np.arange(len(codes))).any():
        store.recode(store.n_features, codes.astype(np.float64))
    if store.n_rows * store.n_features <= draw.MOST_CELLS:
        return as_rows(*store.in_memory(), n_jobs=n_jobs)
    return StoredRows(store, n_jobs=n_jobs)


# -- batches ---------------------------------------------------------------------------------------

Batch = tuple[Any, np.ndarray | None, np.ndarray | None]
"""A table of features or an array (n, d), labels (n,) and weights (n,)."""


def labeled_batches(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    names: Sequence[str] | None = None,
    columns: Columns | None = None,
) -> Iterator[Batch]:
    """Rows, their labels and weights, of a source that `is_source` is true of.

    Parameters
    ----------
    X : path, pyarrow.dataset.Dataset, data frame, Arrow table or iterable
    y, weight : str or None
        Names of columns; None for batches that bring them along, tuples (X, y) or (X, y, weight).
    names : sequence of str, optional
        Columns to take; all but `y` and `weight` otherwise.
    columns : Columns, optional
        Those of a fitted estimator, with these names, by which text of files is read.
    """
    if is_scanned(X):
        yield from _of_scan(X, y, weight, names, columns)
        return
    for i, item in enumerate([X] if is_table(X) else X):
        if is_table(item):
            batch = _of_table(item, y, weight, names)
        elif y is not None or weight is not None:
            raise KernelpoolError(
                "Batches of arrays, and tuples, bring their labels and weights along, as (X, y) or "
                "(X, y, sample_weight): pass y=None."
            )
        else:
            batch = _of_arrays(item if isinstance(item, tuple) else (item,), f"Batch {i + 1}")
        if len(batch[0]):
            yield batch


def _named(y: Any, weight: Any) -> list[str]:
    """The columns of labels and weights."""
    for name, what in ((y, "y"), (weight, "sample_weight")):
        if name is not None and not isinstance(name, str):
            raise KernelpoolError(
                f"{what} must be the name of a column where X is read in batches; "
                f"got {type(name).__name__}."
            )
    return [name for name in (y, weight) if name is not None]


def _of_scan(
    X: Any, y: Any, weight: Any, names: Sequence[str] | None, columns: Columns | None
) -> Iterator[Batch]:
    """Batches as they are in their files, or as `columns` reads them, with one warning of cells that
    it cannot.
    """
    source = scan(X)
    targets = _named(y, weight)
    check_columns(targets, source, "for y or sample_weight")
    chosen = [name for name in source.names if name not in targets] if names is None else [*names]
    check_columns(chosen, source, "that the model was fitted to")
    found = Found.none(len(chosen))
    read = None
    if columns is not None and names is not None:
        read = partial(read_by, columns, names=chosen, found=found)
    yield from _batches_of(source, chosen, y, weight, read=read)
    unreadable, _ = found.sentences(chosen)
    if unreadable:
        warn(f"{source.label}: {unreadable}", ColumnWarning)


def _batches_of(
    source: Scan, names: Sequence[str], y: Any, weight: Any, values: Any = None, read: Any = None
) -> Iterator[Batch]:
    for batch in source.batches([*names, *_named(y, weight)]):
        yield (
            batch.table.select(names) if read is None else read(batch)[0],
            None if y is None else values_of(labels_of(batch, y), values),
            None if weight is None else weights_of(batch, weight),
        )


def _of_table(table: Any, y: Any, weight: Any, names: Sequence[str] | None = None) -> Batch:
    frame = frame_of(table)
    targets = _named(y, weight)
    chosen = [name for name in frame.columns if name not in targets] if names is None else [*names]
    for name in (*chosen, *targets):
        if name not in frame.columns:
            raise TableError(
                f"X: there is no column {quoted(name)}{did_you_mean(name, frame.columns)}"
            )
    if not chosen:
        raise TableError(f"X: no column is left to learn from beside {quoted(y)}.")
    labels, weights = (None if name is None else _column(frame[name]) for name in (y, weight))
    weights = None if weights is None else _checked_weights(weights, "X")
    return frame.select(chosen).to_native(), labels, weights


def _column(column: Any) -> np.ndarray:
    """A column of narwhals; objects where cells are text or missing."""
    if column.null_count():
        return np.array([*column.to_list(), None], object)[:-1]
    cells = np.asarray(column.to_numpy())
    return cells.astype(object) if cells.dtype.kind in "UT" else cells


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


# -- rows of files, to learn from ------------------------------------------------------------------


def _read_table(
    X: Any, y: Any, weight: Any, categorical_features: Any, labeled: bool = True
) -> tuple[Any, Scan]:
    """The rows of a scan in memory, and the scan; a warning names columns that are left out."""
    _named(y, weight)
    source = scan(X)
    chosen = () if isinstance(categorical_features, str | Columns) else categorical_features or ()
    kinds = {name: CATEGORY for name in chosen if isinstance(name, str)}
    most = draw.MOST_CELLS
    rows = read_table(source, y, weight, kinds=kinds, labeled=labeled, most_cells=most)
    if rows.left_out:
        reasons = "; ".join(f"{quoted(name)} ({why})" for name, why in rows.left_out.items())
        warn(f"{rows.label}: columns are left out: {reasons}.", ColumnWarning)
    return rows, source


def _typed_batches(rows: Any, source: Scan, y: str, weight: str | None) -> Iterator[Batch]:
    """All rows, with columns of the kinds that all rows have."""
    for x, labels, weights in _batches_of(source, [*rows.kinds], y, weight, rows.values):
        yield rows.typed(x), labels, weights


# -- rows that fit in memory -----------------------------------------------------------------------


def in_memory(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    name: str,
    labeled: bool = True,
    categorical_features: Any = None,
) -> tuple[Any, Any, Any]:
    """Rows of files, batches and Dask collections, their labels and weights, in memory.

    All of them where they have at most `MOST_CELLS` cells, as they are and in their order.
    Otherwise those of an even draw, which says so. `labeled` is False where y has no classes.
    """
    if is_table(X):
        return _of_table(X, y, sample_weight)
    if is_scanned(X):
        rows, _ = _read_table(X, y, sample_weight, categorical_features, labeled)
        X, y, weight = rows.X, rows.y, rows.weight
        positions, n_rows = rows.positions, rows.n_rows
    else:
        if is_lazy(X) or is_lazy_frame(X):
            of_all = _draw_of_collection(X, y, sample_weight, labeled)
        else:
            of_all = _draw_of_batches(labeled_batches(X, y, sample_weight), labeled)
        (X, y), positions, weight = of_all.drawn()
        n_rows = of_all.n_rows
    if len(positions) < n_rows:
        warn(
            f"{name} learns from {len(positions):,} of {n_rows:,} rows, drawn evenly from "
            "all of them, since more may not fit in memory. SharedKernelClassifier learns from "
            "all.",
            SampleWarning,
        )
    return X, y, weight


def _draw_of_batches(source: Iterator[Any], labeled: bool) -> draw.Draw:
    of_all = None
    for x, labels, weight in source:
        if of_all is None:
            of_all = draw.Draw(draw.MOST_CELLS // max(x.shape[1], 1))
            of_all.weighted = weight is not None
        _check_weighted(weight, of_all.weighted)
        of_all.add((x, labels), labels if labeled else None, weight)
    if of_all is None:
        raise ValueError(NO_ROWS)
    return of_all


def _draw_of_collection(X: Any, y: Any, weight: Any, labeled: bool) -> draw.Draw:
    """Each part is drawn from where it lives; the client gets the rows that are drawn."""
    import dask

    names = [name for name in (y, weight) if isinstance(name, str)]
    if is_lazy_frame(X):
        columns_named(X, names)
        # one set of chunks for all columns: Dask joins files of which few columns are read
        X = X.map_partitions(lambda frame: frame)
        sizes = X.map_partitions(len).compute().tolist()
    else:
        rows = DaskRows(X, y, weight)
        X, y, weight = rows.x, rows.y, rows.weight
        sizes = list(X.chunks[0])
        if np.isnan(sizes).any():
            sizes = dask.compute(*(dask.delayed(len)(part) for part in X.to_delayed().ravel()))
    most = draw.MOST_CELLS // max(X.shape[1] - len(names), 1)
    n_rows = sum(sizes)
    function = dask.delayed(_draw_of_part, pure=False)
    parts = [
        function(most, n_rows, labeled, *part)
        for part in zip(
            np.cumsum([0, *sizes[:-1]]).tolist(),
            np.ravel(X.to_delayed()),
            _parts_of(y, sizes),
            _parts_of(weight, sizes),
            strict=True,
        )
    ]
    of_all = tree_sum(parts)
    if of_all is None or not of_all.n_rows:
        raise KernelpoolError("The Dask collection has no rows: every part is empty.")
    return of_all  # type: ignore[no-any-return]


def _parts_of(column: Any, sizes: Sequence[int]) -> list[Any]:
    """Labels or weights, or the name of their column, for each part of the rows."""
    if column is None or isinstance(column, str):
        return [column] * len(sizes)
    if is_lazy(column) or is_lazy_frame(column):
        parts = np.ravel(column.to_delayed()).tolist()
    else:
        parts = np.split(np.asarray(column), np.cumsum(sizes)[:-1])
    if len(parts) != len(sizes):
        raise UnequalChunksError(
            f"X lies in {len(sizes)} parts, y or sample_weight in {len(parts)}; cut them alike."
        )
    return parts


def _draw_of_part(
    most: int, n_rows: int, labeled: bool, first: int, x: Any, y: Any, weight: Any
) -> draw.Draw | None:
    names = [name for name in (y, weight) if isinstance(name, str)]
    y, weight = (
        None if v is None else np.asarray(x[v] if isinstance(v, str) else v) for v in (y, weight)
    )
    if names:
        x = x.drop(columns=names)
    if not len(x):
        return None
    of_part = draw.Draw(most)
    of_part.add((x, y), y if labeled else None, weight, first)
    return of_part.of_whole(n_rows)
