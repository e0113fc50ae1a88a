"""Cells as numbers and categories, and the target as classes.

Typed files have types of columns. A column of a text file holds numbers if all its cells are
numbers or missing, and categories otherwise; where most of its different cells are numbers, the
others are named by row and refused. The tables made here have columns of float64 and of strings,
null where a cell is missing: `kernelpool.tables.Columns` takes such tables from Python as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from ...errors import TableError
from ...tables.files import is_number
from ...tables.kinds import (
    BOOLEANS,
    CATEGORY,
    DATE,
    DATE_ADVICE,
    FEW,
    MICROSECONDS,
    NUMBER,
    arrow_text,
    odd_cell,
    parsed_days,
    parsed_numbers,
)
from ...tables.read import ANY_TEXT, Batch, Scan, kind_of_type, labels_of, read_table
from ...text import listed, plural, quoted

TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M%z", " %H:%M:%S%z")
"""What may follow the day of a date in text; without a zone, times are in UTC."""

ROWS_A_CLASS = 3
"""With fewer rows a class than this, on average, a target holds no classes."""

MARKED = 64
"""First rows by which the rows of a fit are known again."""


@dataclass(frozen=True)
class Rows:
    """Rows in memory: an Arrow table of features, and a label for each, None where there is
    none.
    """

    table: Any
    y: np.ndarray
    kinds: dict[str, str]
    """Of the features: `NUMBER` or `CATEGORY`."""
    target: str
    source: str
    ids: np.ndarray
    """Numbers of the rows in their files, from 1; as text, with identifiers, where columns are
    kept.
    """
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that no model can learn from, and why."""

    def at(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some of the rows."""
        return self.table.take(index), self.y[index]


# -- cells -----------------------------------------------------------------------------------------


def numbers(column: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells as float64, NaN where one is missing; and where a cell is no finite number, (n,)
    both.
    """
    import pyarrow as pa

    if kind_of_type(column.type) == ANY_TEXT:
        return (parsed_days if kind == DATE else parsed_numbers)(column)
    if kind == DATE and pa.types.is_temporal(column.type):
        days = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        x = days.cast(pa.float64()).to_numpy() / MICROSECONDS
    else:
        column = column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
        x = column.cast(pa.float64(), safe=False).to_numpy()
    infinite = np.isinf(x)
    return np.where(infinite, np.nan, x), infinite


def table_of(batch: Batch, kinds: Mapping[str, str]) -> tuple[Any, dict[str, int]]:
    """The columns that a fitted model takes, and of each the number of cells that are no numbers.

    Those are missing in the table; a column without any number is refused.
    """
    import pyarrow as pa

    columns = []
    unreadable = {}
    for name, kind in kinds.items():
        column = batch.table[name]
        of_type = kind_of_type(column.type)
        if kind == CATEGORY:
            columns.append(arrow_text(column, ()) if of_type in (ANY_TEXT, DATE) else column)
            continue
        if of_type is None or (of_type == DATE and kind == NUMBER):
            raise TableError(f"{batch.file}, column {quoted(name)}: {column.type} are no numbers.")
        x, bad = numbers(column, kind)
        if bad.any():
            unreadable[name] = int(bad.sum())
            if np.isnan(x).all():
                at = int(np.argmax(bad))
                what = "date" if kind == DATE else "number"
                advice = odd_cell(column[at])[1] or "The model was fitted to numbers."
                raise TableError(
                    f"{batch.place(at, name)}: {quoted(column[at])} is not a {what}, nor is any "
                    f"other cell there.",
                    DATE_ADVICE if kind == DATE else advice,
                )
        if kind == DATE and of_type != DATE:
            stamps = pa.array(np.round(MICROSECONDS * x), from_pandas=True)
            column = stamps.cast(pa.int64()).cast(pa.timestamp("us"))
        columns.append(column if kind == DATE else pa.array(x, from_pandas=True))
    return pa.table(columns, names=list(kinds)), unreadable


def fingerprint(table: Any) -> str:
    """Of the first rows, however the source is cut into batches."""
    if hasattr(table, "tolist"):
        cells = table[:MARKED].tolist()
    else:
        cells = {
            name: [float(v) if type(v) is int else v for v in column]
            for name, column in table[:MARKED].to_pydict().items()
        }
    return blake2b(repr(cells).encode(errors="backslashreplace"), digest_size=16).hexdigest()


# -- labels ----------------------------------------------------------------------------------------


def alike(label: Any) -> Any:
    """What labels have in common that are one class: 1, 1.0 and "1", and True and "true"."""
    text = str(label)
    return BOOLEANS.get(text) or (float(text) if is_number(text) else text)


def codes_of(batch: Batch, name: str, classes: np.ndarray) -> np.ndarray:
    """Positions of labels among the classes of a model; -1 where there is no label."""
    names = classes.tolist()
    labels = labels_of(batch, name).to_pylist()
    known = {alike(v): i for i, v in enumerate(names)} | {str(v): i for i, v in enumerate(names)}
    place = {v: known.get(str(v), known.get(alike(v), -2)) for v in set(labels)} | {None: -1}
    codes = np.array([place[label] for label in labels], int)
    if (codes == -2).any():
        at = int(np.argmax(codes == -2))
        raise TableError(
            f"{batch.place(at, name)}: unknown class {quoted(labels[at])}; the model has "
            f"{listed(names, 8)}."
        )
    return codes


# -- tables with classes ---------------------------------------------------------------------------


def read_rows(
    source: Scan,
    target: str | None,
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    unlabeled: str = "refuse",
) -> Rows:
    """Rows with their labels, at least of two classes.

    Parameters
    ----------
    source : Scan
    target, drop, keep, kinds
        As of `read_table`.
    unlabeled : {"refuse", "drop", "use"}
        What becomes of rows without a class.
    """
    rows = read_table(source, target, drop=drop, keep=keep, kinds=kinds)
    known = np.array([label is not None for label in rows.y], bool)
    _check_classes(rows, known, (kinds or {}).get(rows.target) == CATEGORY)
    if not known.all() and unlabeled == "refuse":
        n_rows = int((~known).sum())
        raise TableError(
            f"{plural(n_rows, 'row')} of {rows.n_rows:,} without a class in column "
            f"{quoted(target)}, the first is row {int(rows.positions[np.argmin(known)]) + 1}.",
            "Pass --unlabeled drop to leave them out, or --unlabeled use to learn from them.",
            missing={target: n_rows},
        )
    use = known if unlabeled == "drop" else np.ones(len(known), bool)
    table = rows.X.combine_chunks().filter(use)
    y = np.asarray(rows.y[use].tolist()) if known[use].all() else rows.y
    return Rows(table, y, rows.kinds, rows.target, rows.label, rows.ids[use], rows.left_out)


def _check_classes(rows: Any, known: np.ndarray, are_text: bool) -> None:
    """TableError where labels can be no classes."""
    distinct = sorted(set(rows.y[known].tolist()), key=str)
    n_rows = int(known.sum())
    fractions = [v for v in distinct if isinstance(v, float) and not v.is_integer()]
    many = len(distinct) > FEW and not are_text and n_rows < ROWS_A_CLASS * len(distinct)
    if fractions or many:
        what = "a measurement, not classes" if fractions else "too many for classes"
        raise TableError(
            f"Column {quoted(rows.target)} holds {len(distinct):,} different values in "
            f"{plural(n_rows, 'row')}, such as {listed((fractions or distinct)[:3])}: {what}. "
            f"The command line fits classifiers.",
            f"Is --target the right column? Numbers are predicted from Python, by "
            f"kernelpool.EMLogRegressor. If these are classes, pass --columns "
            f"{rows.target}=category.",
        )
    if len(distinct) < 2:
        classes = f"only {quoted(distinct[0])}" if distinct else "nothing"
        raise TableError(
            f"Column {quoted(rows.target)} must hold at least two classes; found {classes} in "
            f"{plural(len(known), 'row')}."
        )


def row_ids(batches: Sequence[Batch], keep: Sequence[str]) -> np.ndarray:
    """Numbers of rows within their files, with the cells of columns that identify rows."""
    numbers = np.concatenate(
        [np.arange(batch.row, batch.row + len(batch.table)) for batch in batches]
    )
    if not keep:
        return numbers
    columns = [
        [str(v) for batch in batches for v in batch.table.column(name).combine_chunks()]
        for name in keep
    ]
    cells = zip(numbers, *columns, strict=True)
    return np.array([f"{number} ({', '.join(row)})" for number, *row in cells], object)
