"""Cells as numbers and categories, and the target as classes.

Typed files have types of columns. A column of a text file holds numbers if all its cells are
numbers or missing, and categories otherwise; where most of its different cells are numbers, the
others are named by row and refused. The tables made here have columns of float64 and of strings,
null where a cell is missing: `kernelpool.tables.Columns` takes such tables from Python as well.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from ...errors import TableError
from ...tables.columns import reason_to_leave_out
from ...tables.kinds import (
    CATEGORY,
    DATE,
    DATE_ADVICE,
    FEW,
    MISSING,
    NUMBER,
    PLAIN_NUMBER,
    odd_cell,
)
from ...tables.read import Batch, ReadOptions, Scan, is_number
from ...text import did_you_mean, is_missing, listed, plural, quoted

TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M%z", " %H:%M:%S%z")
"""What may follow the day of a date in text; without a zone, times are in UTC."""

LABELS: dict[str, Callable[[str], Any]] = {
    r"-?(0|[1-9][0-9]{0,17})": int,
    r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?": float,
    r"True|False": "True".__eq__,
}
"""Patterns of labels in text files that are no text: 007 is."""

MOST_TEXTS = 256
"""A column with more different cells than this is a name or a text."""

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


def check_columns(wanted: Sequence[str], source: Scan, purpose: str) -> None:
    """The columns must be there."""
    absent = sorted(set(wanted) - set(source.names))
    if absent:
        hint = did_you_mean(absent[0], source.names) if len(absent) == 1 else "."
        raise TableError(
            f"{source.label}: there is no column {listed(absent, 12)} {purpose}{hint} "
            f"There are {listed(source.names, 12)}."
        )


# -- cells -----------------------------------------------------------------------------------------


def as_text(column: Any) -> Any:
    """Cells as text without space around it, empty ones null; numbers and booleans as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind_of(column.type) == NUMBER or pa.types.is_boolean(column.type):
        return column
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def days(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Dates as days since 1970, NaN where one is missing; and where a cell is no date, (n,) both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_temporal(column.type):
        text = as_text(column.cast(pa.string()))
        for pattern, plain in (
            (r"^(\d+)\.(\d+)\.(\d{4})", r"\3-\2-\1"),
            (r"^(\S+)T", r"\1 "),
            (r"(:\d\d)\.\d+", r"\1"),
        ):
            text = pc.replace_substring_regex(text, pattern, plain)
        parsed = (
            pc.strptime(text, f"%Y-%m-%d{t}", unit="s", error_is_null=True) for t in TIME_FORMATS
        )
        utc = (stamps.cast(pa.timestamp("s")) for stamps in parsed)
        column = pc.coalesce(*utc)
        present = text.is_valid()
    else:
        present = column.is_valid()
    seconds = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    x = seconds.cast(pa.float64()).to_numpy(zero_copy_only=False) / 86400
    return x, present.to_numpy(zero_copy_only=False) & np.isnan(x)


def numbers(column: Any, style: ReadOptions, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells as float64, NaN where one is missing; and where a cell is no finite number, (n,)
    both.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == DATE:
        return days(column)
    bad = np.zeros(len(column), bool)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif kind_of(column.type) == CATEGORY:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
        missing = pc.is_in(text, value_set=pa.array([*MISSING, *style.missing]))
        text = pc.if_else(missing, pa.scalar(None, pa.string()), text)
        text = pc.replace_substring_regex(text, r"^\+", "")
        if style.decimal != ".":
            text = pc.replace_substring(text, style.decimal, ".")
        good = pc.fill_null(pc.match_substring_regex(text, f"^{PLAIN_NUMBER.pattern}$"), True)
        bad = ~good.to_numpy(zero_copy_only=False)
        column = pc.if_else(good, text, pa.scalar(None, pa.string()))
    x = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(x)
    return np.where(infinite, np.nan, x), bad | infinite


def kind_of(kind: Any) -> str | None:
    """What a column of an Arrow type holds; None for neither numbers nor categories."""
    name = str(kind).removeprefix("dictionary<values=")
    if name.startswith(("int", "uint", "float", "halffloat", "double", "decimal", "null")):
        return NUMBER
    return CATEGORY if name.startswith(("string", "large_string", "bool")) else None


def table_of(
    batch: Batch, kinds: Mapping[str, str], style: ReadOptions
) -> tuple[Any, dict[str, int]]:
    """The columns that a fitted model takes, and of each the number of cells that are no numbers.

    Those are missing in the table; a column without any number is refused.
    """
    import pyarrow as pa

    columns = []
    unreadable = {}
    for name, kind in kinds.items():
        column = batch.table.column(name).combine_chunks()
        if kind == CATEGORY:
            columns.append(as_text(column))
            continue
        if kind_of(column.type) is None and kind != DATE:
            raise TableError(f"{batch.file}, column {quoted(name)}: {column.type} are no numbers.")
        x, bad = numbers(column, style, kind)
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
        columns.append(pa.array(x, from_pandas=True))
    return pa.table(columns, names=list(kinds)), unreadable


def fingerprint(table: Any) -> str:
    """Of the first rows, however the source is cut into batches."""
    cells = table[:MARKED].tolist() if hasattr(table, "tolist") else table[:MARKED].to_pydict()
    return blake2b(repr(cells).encode(errors="backslashreplace"), digest_size=16).hexdigest()


# -- labels ----------------------------------------------------------------------------------------


def labels_of(batch: Batch, name: str) -> np.ndarray:
    """Labels of a batch as the file has them, None where one is missing, (n,) objects."""
    import pyarrow as pa

    column = batch.table.column(name).combine_chunks()
    if pa.types.is_nested(column.type) or "binary" in str(column.type):
        raise TableError(f"{batch.file}, column {quoted(name)}: {column.type} cannot be a class.")
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64() if column.type.scale else pa.int64())
    cells = as_text(column).to_pylist()  # of dates as well
    labels = np.empty(len(column), object)
    labels[:] = [None if is_missing(value) else value for value in cells]
    return labels


def label_reader(labels: Sequence[Any], typed: bool) -> Callable[[Any], Any]:
    """What makes labels of cells; those of text files are numbers or booleans where all read so."""
    for pattern, read in () if typed else LABELS.items():
        if all(re.fullmatch(pattern, label) for label in labels):
            return read
    return lambda label: label


def classes_of(
    name: str, labels: np.ndarray, known: np.ndarray, read: Callable[[Any], Any]
) -> np.ndarray:
    """Labels, None where a cell is missing. TableError where they can be no classes."""
    distinct = [read(label) for label in sorted(set(labels[known].tolist()), key=str)]
    n_rows = int(known.sum())
    fractions = [v for v in distinct if isinstance(v, float) and not v.is_integer()]
    many = len(distinct) > FEW and read is not str and n_rows < ROWS_A_CLASS * len(distinct)
    if fractions or many:
        what = "a measurement, not classes" if fractions else "too many for classes"
        raise TableError(
            f"Column {quoted(name)} holds {len(distinct):,} different values in "
            f"{plural(n_rows, 'row')}, such as {listed((fractions or distinct)[:3])}: {what}. "
            f"The command line fits classifiers.",
            f"Is --target the right column? Numbers are predicted from Python, by "
            f"kernelpool.EMLogRegressor. If these are classes, pass --columns {name}=category.",
        )
    if len(distinct) < 2:
        classes = f"only {quoted(distinct[0])}" if distinct else "nothing"
        raise TableError(
            f"Column {quoted(name)} must hold at least two classes; found {classes} in "
            f"{plural(len(labels), 'row')}."
        )
    y = [None if label is None else read(label) for label in labels.tolist()]
    return np.asarray(y, None if known.all() else object)


def alike(label: Any) -> Any:
    """What labels have in common that are one class: 1, 1.0 and "1", and True and "true"."""
    text = str(label)
    return float(text) if is_number(text) else {"True": "true", "False": "false"}.get(text, text)


def codes_of(batch: Batch, name: str, classes: np.ndarray) -> np.ndarray:
    """Positions of labels among the classes of a model; -1 where there is no label."""
    names = classes.tolist()
    labels = labels_of(batch, name).tolist()
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
    """All rows of a source with their labels.

    Parameters
    ----------
    source : Scan
    target : str or None
        Column that holds the classes; None is an error that lists the columns.
    drop, keep : sequence of str
        Columns to leave out; and such ones whose text is shown with the numbers of rows.
    kinds : dict of str to str, optional
        What some columns hold, whatever they look like; the target may be a `CATEGORY`.
    unlabeled : {"refuse", "drop", "use"}
        What becomes of rows without a class.
    """
    batches = list(source.batches())
    fixed_kinds = dict(kinds or {})
    names = feature_names(source, target, [*drop, *keep])
    assert target is not None
    check_columns(list(fixed_kinds), source, "whose kind is given")
    if not batches:
        raise TableError(f"{source.label}: no rows below the header.")
    labels = np.concatenate([labels_of(b, target) for b in batches])
    known = np.array([label is not None for label in labels], bool)
    read = label_reader(list(set(labels[known].tolist())), batches[0].typed)
    read = str if fixed_kinds.pop(target, NUMBER) == CATEGORY else read
    table, column_kinds, left_out = features_of(batches, names, source.options, fixed_kinds)
    y = classes_of(target, labels, known, read)
    if not known.all() and unlabeled == "refuse":
        n_rows = int((~known).sum())
        raise TableError(
            f"{plural(n_rows, 'row')} of {len(labels):,} without a class in column "
            f"{quoted(target)}, the first is row {int(np.argmin(known)) + 1}.",
            "Pass --unlabeled drop to leave them out, or --unlabeled use to learn from them.",
            missing={target: n_rows},
        )
    ids = row_ids(batches, keep)
    table = table.combine_chunks()
    if unlabeled == "drop":
        table = table.filter(known)
        y = np.asarray(y[known].tolist())
        ids = ids[known]
    return Rows(table, y, column_kinds, target, source.label, ids, left_out)


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


def feature_names(source: Scan, target: str | None, drop: Sequence[str]) -> list[str]:
    """The columns of a source less the target and those to drop, checked."""
    if target is None:
        raise TableError(
            f"{source.label}: name the column that holds the classes; there are "
            f"{listed(source.names, 40)}.",
            "Pass --target.",
        )
    check_columns([target], source, "for the target")
    check_columns(drop, source, "to leave out")
    left_out = {target, *drop}
    names = [name for name in source.names if name not in left_out]
    if "" in names:
        at = source.names.index("") + 1
        raise TableError(
            f"{source.label}: column {at} has no name (row numbers are often written so).",
            "Name it, or pass --drop ''.",
        )
    if not names:
        raise TableError(f"{source.label}: no column is left to learn from.")
    return names


def features_of(
    batches: Sequence[Batch],
    names: Sequence[str],
    style: ReadOptions,
    fixed_kinds: Mapping[str, str],
) -> tuple[Any, dict[str, str], dict[str, str]]:
    """The features as a table, the kind of each, and why columns are left out.

    One TableError names all columns of numbers that hold other cells as well.
    """
    import pyarrow as pa

    columns = {}
    kinds = {}
    left_out = {}
    odd = {}
    for name in names:
        kind = fixed_kinds.get(name) or _typed_kind(batches, name)
        if kind is None:
            left_out[name] = "it holds dates or times"
            continue
        chunks = [batch.table.column(name).combine_chunks() for batch in batches]
        if kind != CATEGORY:
            cells, bad = zip(*(numbers(chunk, style, kind) for chunk in chunks), strict=True)
            first = next((i for i, where in enumerate(bad) if where.any()), None)
            column = pa.array(np.concatenate(cells), from_pandas=True)
            if first is not None:
                at = int(np.argmax(bad[first]))
                if name in fixed_kinds or batches[first].typed or _numberlike(chunks):
                    odd[name] = batches[first].place(at, name), chunks[first][at], kind
                    continue
                kind = CATEGORY
        if kind == CATEGORY:
            chunks = [as_text(chunk) for chunk in chunks]
            if len({chunk.type for chunk in chunks}) > 1:  # of files of several formats
                chunks = [chunk.cast(pa.string()) for chunk in chunks]
            column = pa.chunked_array(chunks)
            column = column.dictionary_encode() if kind_of(column.type) == NUMBER else column
        why = None if name in fixed_kinds else _reason_to_leave_out(column, kind)
        if why is None:
            columns[name], kinds[name] = column, kind
        else:
            left_out[name] = why
    if odd:
        raise _not_numbers(odd)
    if not kinds:
        reasons = "; ".join(f"{quoted(name)}: {why}" for name, why in left_out.items())
        raise TableError(f"No column is left to learn from: {reasons}.")
    return pa.table(columns), kinds, left_out


def _typed_kind(batches: Sequence[Batch], name: str) -> str | None:
    """What a column holds by its type; None for dates, and numbers for text of unknown type."""
    import pyarrow as pa

    for batch in batches:
        kind = batch.table.column(name).combine_chunks().type
        if pa.types.is_temporal(kind):
            return None
        if kind_of(kind) is None:
            raise TableError(
                f"{batch.file}, column {quoted(name)}: {kind} is neither a number nor text.",
                f"Leave it out with --drop {quoted(name)}.",
            )
        if batch.typed and kind_of(kind) == CATEGORY:
            return CATEGORY
    return NUMBER


def _numberlike(chunks: Sequence[Any]) -> bool:
    """Whether most of the different cells are numbers, are written in an odd way, or are
    missing.
    """
    distinct = {cell for chunk in chunks for cell in chunk.unique().to_pylist()}
    alike = sum(c.strip() in MISSING or is_number(c) or odd_cell(c)[0] != "" for c in distinct)
    return 2 * alike >= len(distinct)


def _reason_to_leave_out(column: Any, kind: str) -> str | None:
    """Why no model can learn from a column; None where one can."""
    n_rows = len(column)
    distinct = column.unique().drop_null()
    if not len(distinct):
        return "it has no value at all"
    if kind == NUMBER:
        x = column.to_numpy(zero_copy_only=False)
        counts = n_rows > FEW and x[0] in (0, 1) and bool((np.diff(x) == 1).all())
        return "it counts the rows" if counts else None
    values = list(map(str, distinct.to_pylist()))
    if len(values) > MOST_TEXTS and 2 * len(values) <= n_rows:
        return f"it has {len(values):,} different values such as {listed(values[:2])}"
    return reason_to_leave_out(values, n_rows)


def _not_numbers(odd: Mapping[str, tuple[str, Any, str]]) -> TableError:
    cells = []
    advice = []
    for place, cell, kind in odd.values():
        what, remedy = ("", DATE_ADVICE) if kind == DATE else odd_cell(cell)
        cells.append(f"{place}: {quoted(cell)}" + f" ({what})" * bool(what))
        advice.append(remedy or "Take a column for categories with --columns COLUMN=category.")
    rest = f"; and {plural(len(odd) - 8, 'other column')}" * (len(odd) > 8)
    return TableError(
        f"Not a number or date: {'; '.join(cells[:8])}{rest}.",
        " ".join(dict.fromkeys(advice)),
        not_numbers=list(odd),
    )
