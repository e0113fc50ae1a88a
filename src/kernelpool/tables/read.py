"""Rows of files, folders, stdin and data sets: in batches of Arrow tables, and as a table in memory.

`scan` opens every file of a folder, so that one that is no table, or has other columns, is refused
before any row is read. stdin and pipes are copied to a temporary file first, which is read as often
as needed. Of text files, cells are text in batches; `read_table` decides what each column holds, once.
pyarrow is imported in functions only.
"""

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arrays import is_dataset
from ..errors import TableError
from ..text import did_you_mean, listed, plural, quoted, shown
from .columns import Columns, Found, reason_to_leave_out, stamps_of
from .draw import MOST_CELLS, Draw
from .files import (
    BLOCK,
    SUFFIXES,
    File,
    ReadOptions,
    checked,
    fragment_of,
    is_number,
    opened,
    readable,
    stem_of,
)
from .kinds import (
    BOOLEANS,
    CATEGORY,
    DATE,
    DATE_ADVICE,
    FEW,
    LEADING_ZEROS,
    MICROSECONDS,
    NUMBER,
    WORDS_KEY,
    Cells,
    arrow_codes,
    arrow_text,
    odd_cell,
    parsed_days,
    parsed_numbers,
)

ANY_TEXT = "text"
"""A column of text may hold numbers, categories or dates."""

TYPES_OF_TEXT = ("string", "large_string", "string_view", "null")
"""Arrow's types of text."""

MOST_TEXTS = 256
"""A column with more different cells than this is a name or a text."""

SAVED_INDEX = r"Unnamed: [0-9]+"
"""The names that pandas gives to row numbers, read from a file where they had none."""

MOST_ODD = 8
"""Columns that an error names."""

LABELS: dict[str, Callable[[str], Any]] = {
    r"-?(0|[1-9][0-9]{0,17})": int,
    r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?": float,
    "|".join(map(re.escape, BOOLEANS)): lambda text: BOOLEANS[text] == BOOLEANS["True"],
}
"""Patterns of labels in text files that are no text: 007 is."""


class Batch(NamedTuple):
    """Consecutive rows of one file."""

    file: str
    first: int
    """Position of the first row in the whole scan, from 0."""
    row: int
    """Number of the first row within its file, from 1; the header is not counted."""
    table: Any
    """pyarrow.Table; columns of text files are strings, null where a cell is empty."""

    def place(self, i: int, name: str) -> str:
        """A cell, for messages."""
        return f"{self.file}, row {self.row + i}, column {quoted(name)}"


@dataclass(frozen=True)
class Scan:
    """Rows that can be read as often as needed.

    Attributes
    ----------
    label : str
        What is read, for messages.
    files : list of File
        Their columns have the same names, in any order.
    types : dict of str to pyarrow.DataType
        Of the columns, by their names. Where files differ, numbers are float64, categories are
        dictionaries of text, and other columns are text.
    options : ReadOptions
    """

    label: str
    files: list[File]
    types: dict[str, Any]
    options: ReadOptions
    copy: Any = None
    """Of stdin or a pipe; it is deleted with the scan."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [*self.types]

    @property
    def typed(self) -> bool:
        """Whether all files have types: text in a text file may be a number."""
        return all(file.typed for file in self.files)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Every batch of every file, with the columns in this order."""
        import pyarrow as pa

        columns = list(self.types if columns is None else dict.fromkeys(columns))
        schema = pa.schema([(name, self.types[name]) for name in columns])
        first = 0
        for file in self.files:
            sizes: list[int] = []
            with readable(file.label, sizes):
                for piece in file.pieces(columns):
                    if file.typed:
                        piece.validate(full=True)  # a damaged file may hold wrong lengths
                    if len(piece):
                        table = pa.Table.from_batches([piece]).select(columns)
                        table = (table if file.typed else self._plain(table)).cast(
                            schema, safe=False
                        )
                        yield Batch(file.label, first, 1 + sum(sizes), table)
                    sizes.append(len(piece))
                    first += len(piece)

    def _plain(self, table: Any) -> Any:
        """Text with decimal points, empty where the options call a cell missing."""
        import pyarrow.compute as pc

        number = (
            rf"^(\s*[+-]?[0-9]*){re.escape(self.options.decimal)}([0-9]+([eE][+-]?[0-9]+)?\s*)$"
        )
        words = "|".join(map(re.escape, self.options.missing))
        plain = {number: r"\1.\2"} if self.options.decimal != "." else {}
        plain |= {rf"^\s*({words})\s*$": ""} if words else {}
        for pattern, text in plain.items():
            for i, column in enumerate(table.columns):
                column = pc.replace_substring_regex(column, pattern, text)
                table = table.set_column(i, table.column_names[i], column)
        return table


def scan(source: Any, options: ReadOptions | None = None) -> Scan:
    """The rows of a file, of the files of a folder and its folders, of stdin (`-`), or of a data set
    of pyarrow.

    Parameters
    ----------
    source : str, path or pyarrow.dataset.Dataset
    options : ReadOptions, optional
    """
    options = ReadOptions() if options is None else options
    if is_dataset(source):
        schema = checked("the data set", source.schema)
        files = [fragment_of(fragment, schema) for fragment in source.get_fragments()]
        types = dict(zip(schema.names, schema.types, strict=True))
        return Scan("the data set", files, types, options)
    path = os.fspath(source)
    label = "stdin" if path == "-" else shown(path, 200)
    copy: Any = None
    with readable(label):
        if os.path.isdir(path):
            files = [opened(p, shown(p, 200), options) for p in _files_in(path)]
            label = f"{label} ({plural(len(files), 'file')})"
        else:
            if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
                copy = _spooled(path)
            files = [opened(path if copy is None else copy.name, label, options)]
    return Scan(label, files, _types(files), options, copy)


def _types(files: Sequence[File]) -> dict[str, Any]:
    """The types of columns that all files can have."""
    import pyarrow as pa

    names = files[0].schema.names
    for file in files:
        lacks = sorted(set(names) - set(file.schema.names))
        besides = sorted(set(file.schema.names) - set(names))
        if lacks or besides:
            raise TableError(
                f"{file.label}: its columns differ from those of {files[0].label}: it lacks "
                f"{listed(lacks) or 'none'} and has {listed(besides) or 'none'} besides."
            )
    types = {}
    for name in names:
        kinds = list(dict.fromkeys(file.schema.field(name).type for file in files))
        if all(kind_of_type(kind) == NUMBER for kind in kinds):
            common = pa.float64()
        elif all(pa.types.is_dictionary(kind) for kind in kinds):
            common = pa.dictionary(pa.int32(), pa.string())
        else:
            common = pa.string()
        types[name] = kinds[0] if len(kinds) == 1 else common
    return types


def _spooled(path: str) -> Any:
    """A copy of stdin or a pipe."""
    if path == "-" and (sys.stdin is None or sys.stdin.closed):
        raise TableError("stdin is closed: there are no data to read.")
    copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 (as long as the scan lives)
    with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
        shutil.copyfileobj(stream, copy, BLOCK)
    copy.flush()
    return copy


def _files_in(folder: str) -> list[str]:
    """The data files of a folder and of the folders in it, by their names."""
    found = [
        os.path.join(folder, path)
        for path in sorted(p.relative_to(folder) for p in Path(folder).rglob("*") if p.is_file())
        if stem_of(path.name) not in (path.name, "")
        and not any(part.startswith((".", "_")) for part in path.parts)
    ]
    if not found:
        raise TableError(
            f"{shown(folder, 200)}: no data files in this folder; expected {', '.join(SUFFIXES)} "
            f"(or .gz of text)."
        )
    return found


# -- tables in memory ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows of a scan in memory, all of them or an even draw."""

    X: Any
    """pyarrow.Table of the features, (n, d): numbers as the file has them, float64 or int64 where it
    has text; categories as dictionaries, or as the file has them; dates.
    """
    y: np.ndarray
    """Labels, None where one is missing, (n,)."""
    weight: np.ndarray | None
    """(n,); None where all rows count alike."""
    positions: np.ndarray
    """In the whole scan, (n,)."""
    ids: np.ndarray
    """Numbers of the rows in their files, from 1; as text, with the cells of the columns that are
    kept, where there are such, (n,).
    """
    n_rows: int
    """Of the whole scan."""
    kinds: dict[str, str]
    """Of the features, by name: `NUMBER`, `CATEGORY` or `DATE`."""
    left_out: dict[str, str]
    """Columns that no model can learn from, and why."""
    target: str
    label: str
    """What was read."""
    values: dict[Any, Any] | None = None
    """The label that each distinct text stands for; None where labels are as they are in the
    file.
    """

    def typed(self, table: Any) -> Any:
        """Columns of a batch as those of `X`."""
        import pyarrow as pa

        columns = {name: typed(table[name], kind)[0] for name, kind in self.kinds.items()}
        return pa.table(columns, metadata=self.X.schema.metadata)

    def at(self, index: np.ndarray) -> "Rows":
        """Some of the rows, by their positions or a mask."""
        index = np.arange(len(self.y))[index]
        return replace(
            self,
            X=self.X.take(index),
            y=self.y[index],
            weight=None if self.weight is None else self.weight[index],
            positions=self.positions[index],
            ids=self.ids[index],
        )


def read_table(
    scan: Scan,
    target: str | None,
    weight: str | None = None,
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    most_cells: int = MOST_CELLS,
    labeled: bool = True,
) -> Rows:
    """The rows of a scan with their labels; of more than `most_cells`, an even draw.

    Whether a column of text holds numbers, categories or dates is decided by all of its cells. They
    are numbers as soon as they are read; a column that has other cells later is read again.

    Parameters
    ----------
    scan : Scan
    target : str or None
        Column that holds the classes; None is an error that lists the columns.
    weight : str, optional
        Column that says how often each row counts.
    drop, keep : sequence of str
        Columns to leave out; and such ones whose text is shown with the numbers of rows.
    kinds : dict of str to str, optional
        What some columns hold, whatever they look like; the target may be a `CATEGORY`.
    most_cells : int
        Rows by features that are held in memory.
    labeled : bool
        Whether the target holds classes; it holds numbers otherwise.
    """
    import pyarrow as pa

    given = dict(kinds or {})
    names = feature_names(scan, target, weight, [*drop, *keep])
    check_columns([*given], scan, "whose kind is given")
    of_types = {name: kind_of_type(scan.types[name]) for name in names}
    texts = [name for name in names if of_types[name] == ANY_TEXT and name not in given]
    others = [str(target), *keep]
    draw, cells = _drawn(
        scan, names, others, weight, texts, most_cells // len(names), labeled=labeled
    )
    drawn = draw.drawn()
    table, rest, numbers = drawn.rows
    distinct = [label for label in draw.codes if label is not None]
    values: dict[Any, Any] | None = None
    if labeled and given.get(str(target)) == CATEGORY:
        values = {label: str(label) for label in distinct}
    elif labeled and not scan.typed:
        values = dict(zip(distinct, label_values(distinct), strict=True))
    columns = {}
    column_kinds = {}
    left_out = {}
    odd: dict[str, tuple[str, str | None]] = {}
    for name in names:
        if of_types[name] is None:
            left_out[name] = f"it holds {shown(scan.types[name])}"
            continue
        kind = cells[name].kind if name in cells else given.get(name, of_types[name])
        if kind is None:
            odd[name] = str(cells[name].odd), None
            continue
        column, bad = typed(table[name], kind)
        if bad.any():
            at = int(np.argmax(bad))
            odd[name] = arrow_text(table[name].slice(at, 1), ())[0].as_py(), kind
            continue
        if kind == NUMBER and of_types[name] == ANY_TEXT:
            column = _whole(column)
        why = None if name in given else _reason_to_leave_out(name, column, kind, drawn.positions)
        if why is None:
            columns[name], column_kinds[name] = column, kind
        else:
            left_out[name] = why
    if odd:
        raise _not_numbers(scan, odd)
    if not columns:
        reasons = "; ".join(f"{quoted(name)}: {why}" for name, why in left_out.items())
        raise TableError(f"No column is left to learn from: {reasons}.")
    words = "\n".join(scan.options.missing).encode()
    return Rows(
        pa.table(columns, metadata={WORDS_KEY: words} if words else None),
        values_of(rest[0], values) if labeled else _numbers_of(rest[0]),
        drawn.weight,
        drawn.positions,
        row_ids(numbers, [rest[name] for name in keep]),
        draw.n_rows,
        column_kinds,
        left_out,
        str(target),
        scan.label,
        values,
    )


def _drawn(
    scan: Scan,
    names: Sequence[str],
    others: Sequence[str],
    weight: str | None,
    texts: Sequence[str],
    most: int,
    *,
    labeled: bool,
    at_once: bool = True,
) -> tuple[Draw, dict[str, Cells]]:
    """A draw of tables of `names` and of `others`, whose first one holds the labels, and of the
    numbers of the rows in their files; and what each of `texts` holds.

    With `at_once`, text becomes numbers as it comes; where some of it cannot, all is read again.
    """
    import pyarrow as pa

    draw = Draw(most)
    cells = {name: Cells() for name in texts}
    numbers: set[str] = set()
    wanted = [*names, *others, *([weight] if weight else [])]
    for batch in scan.batches(wanted):
        features = {name: batch.table[name] for name in names}
        for name in texts:
            x = cells[name].add(features[name])
            if at_once and batch.first == 0 and x is not None:
                numbers.add(name)
            if name in numbers:
                if x is None:
                    return _drawn(
                        scan, names, others, weight, texts, most, labeled=labeled, at_once=False
                    )
                features[name] = pa.chunked_array([pa.array(x, from_pandas=True)])
        labels = labels_of(batch, others[0])
        rest = batch.table.select([*dict.fromkeys(others)]).set_column(0, others[0], labels)
        weights = None if weight is None else weights_of(batch, weight)
        row = np.arange(batch.row, batch.row + len(rest))
        draw.add((pa.table(features), rest, row), labels if labeled else None, weights)
    if not draw.n_rows:
        raise TableError(f"{scan.label}: no rows below the header.")
    return draw, cells


def read_by(
    columns: Columns, batch: Batch, names: Sequence[str], found: Found
) -> tuple[Any, np.ndarray]:
    """The features of a batch with their text as the numbers and dates that `columns` holds, and its
    rows encoded. Cells that cannot be read are missing, and counted; an error names file and row.
    """
    table = batch.table.select(names)
    try:
        x = columns.encode(table, found)
    except TableError as error:
        cell: Any = error.details["cell"]
        at = batch.place(cell[0], names[cell[1]])
        raise TableError(f"{at}: {error.message}", error.advice) from None
    for i, kind in enumerate(columns.kinds):
        if kind != CATEGORY:
            cells = stamps_of(x[:, i]) if kind == DATE else x[:, i]
            table = table.set_column(i, names[i], [cells])
    return table, x


def check_columns(wanted: Sequence[str], scan: Scan, purpose: str) -> None:
    """The columns must be there."""
    absent = sorted(set(wanted) - set(scan.names))
    if absent:
        hint = did_you_mean(absent[0], scan.names) if len(absent) == 1 else "."
        raise TableError(
            f"{scan.label}: there is no column {listed(absent, 12)} {purpose}{hint} "
            f"There are {listed(scan.names, 12)}.",
            missing_columns=absent,
        )


def feature_names(
    scan: Scan, target: str | None, weight: str | None, drop: Sequence[str]
) -> list[str]:
    """The columns of a scan less the target and those to drop, checked."""
    if target is None:
        raise TableError(
            f"{scan.label}: name the column that holds the classes; there are "
            f"{listed(scan.names, 40)}.",
            "Pass --target, or y from Python.",
        )
    check_columns([target], scan, "for the target")
    check_columns([weight] if weight else [], scan, "for the weights")
    check_columns(drop, scan, "to leave out")
    left_out = {target, weight, *drop}
    names = [name for name in scan.names if name not in left_out]
    if "" in names:
        at = scan.names.index("") + 1
        raise TableError(
            f"{scan.label}: column {at} has no name (row numbers are often written so).",
            "Name it, or pass --drop ''.",
        )
    if not names:
        raise TableError(f"{scan.label}: no column is left to learn from.")
    return names


# -- columns ---------------------------------------------------------------------------------------


def kind_of_type(kind: Any) -> str | None:
    """What a column of an Arrow type holds; `ANY_TEXT` where its cells decide, and None for what is no
    feature.
    """
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBER
    if types.is_boolean(kind) or types.is_dictionary(kind):
        return CATEGORY
    if types.is_date(kind) or types.is_timestamp(kind):
        return DATE
    return ANY_TEXT if str(kind) in TYPES_OF_TEXT else None


def typed(column: Any, kind: str) -> tuple[Any, np.ndarray]:
    """A column as one of a kind; and which cells, missing then, are none of it, (n,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = np.zeros(len(column), bool)
    if pa.types.is_dictionary(column.type) and kind != CATEGORY:
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type) or (kind == NUMBER and pa.types.is_boolean(column.type)):
        column = pc.cast(column, pa.float64(), safe=False)
    of_type = kind_of_type(column.type)
    if kind == CATEGORY:
        if of_type in (ANY_TEXT, DATE):
            column = arrow_text(column, ())
        return column if of_type == CATEGORY else column.dictionary_encode(), bad
    if of_type == kind and (kind == DATE or not pc.any(pc.is_inf(column)).as_py()):
        return column, bad
    x, bad = (parsed_days if kind == DATE else parsed_numbers)(column.cast(pa.string()))
    if kind == DATE:
        x = np.round(MICROSECONDS * x)
    cells = pa.chunked_array([pa.array(x, from_pandas=True)])
    return cells.cast(pa.int64()).cast(pa.timestamp("us")) if kind == DATE else cells, bad


def _whole(column: Any) -> Any:
    """Whole numbers as such where no cell is missing."""
    import pyarrow as pa

    try:
        return column if column.null_count else column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _reason_to_leave_out(name: str, column: Any, kind: str, positions: np.ndarray) -> str | None:
    """Why no model can learn from a column; None where one can."""
    n_rows = len(column)
    if kind == NUMBER:
        x = column.to_numpy()
        if np.isnan(x).all():
            return "it has no value at all"
        if re.fullmatch(SAVED_INDEX, name) and (np.diff(x) > 0).all():
            return "it holds the row numbers of a table of pandas"
        counts = n_rows > FEW and x[0] - positions[0] in (0, 1)
        return "it counts the rows" if counts and (np.diff(x - positions) == 0).all() else None
    distinct = column.unique().drop_null()
    if not len(distinct):
        return "it has no value at all"
    if kind == DATE:
        return None
    values = list(map(str, distinct.to_pylist()))
    if len(values) > MOST_TEXTS and 2 * len(values) <= n_rows:
        return f"it has {len(values):,} different values such as {listed(values[:2])}"
    return reason_to_leave_out(values, n_rows)


def _not_numbers(scan: Scan, odd: Mapping[str, tuple[str, str | None]]) -> TableError:
    """Of columns that hold some other cells: the first of these cells, and what to do."""
    import pyarrow.compute as pc

    places: dict[str, str] = {}
    named = [*odd][:MOST_ODD]
    for batch in scan.batches(named):
        for name in named:
            text = arrow_text(batch.table[name], ())
            at = pc.index(text, odd[name][0]).as_py()
            if at >= 0:
                places.setdefault(name, batch.place(at, name))
    cells = []
    advice = []
    for name in named:
        cell, kind = odd[name]
        what, remedy = ("", DATE_ADVICE) if kind == DATE else odd_cell(cell)
        cells.append(f"{places[name]}: {quoted(cell)}" + f" ({what})" * bool(what))
        advice.append(
            remedy
            or f"For a column of categories pass --columns {shown(name)}=category, in Python "
            f"categorical_features=[{quoted(name)}]; for a missing cell --text missing={shown(cell)}."
        )
    rest = f"; and {plural(len(odd) - MOST_ODD, 'other column')}" * (len(odd) > MOST_ODD)
    return TableError(
        f"Not a number or date: {'; '.join(cells)}{rest}.",
        " ".join(dict.fromkeys(advice)),
        not_numbers=list(odd),
    )


# -- labels, weights, names of rows ----------------------------------------------------------------


def labels_of(batch: Batch, name: str) -> Any:
    """Labels of a batch: numbers, booleans or text without space around it, null where one is
    missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = kind_of_type(column.type)
    if kind is None:
        raise TableError(f"{batch.file}, column {quoted(name)}: {column.type} cannot be a class.")
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64() if column.type.scale else pa.int64())
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return arrow_text(column, ()) if kind in (ANY_TEXT, DATE) else column


def _numbers_of(labels: Any) -> np.ndarray:
    """A target that is no class, (n,)."""
    column, wrong = typed(labels, NUMBER)
    if wrong.any():
        raise TableError(f"y must hold numbers; found {quoted(labels[int(np.argmax(wrong))])}.")
    return np.asarray(column, np.float64)


def weights_of(batch: Batch, name: str) -> np.ndarray:
    """Finite numbers, none negative, (n,)."""
    column, wrong = typed(batch.table[name], NUMBER)
    x = np.asarray(column, np.float64)
    wrong |= ~((x >= 0) & (x < np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise TableError(
            f"{batch.place(at, name)}: {quoted(batch.table[name][at])} is no weight, which is a "
            "finite number and not negative."
        )
    return x


def label_values(texts: Sequence[str]) -> list[Any]:
    """Labels of text files: numbers or booleans where all read so."""
    for pattern, read in LABELS.items():
        if all(re.fullmatch(pattern, text) for text in texts):
            return list(map(read, texts))
    return [*texts]


def values_of(labels: Any, values: Mapping[Any, Any] | None = None) -> np.ndarray:
    """Labels as `labels_of` returns them, or the values that these stand for, None where one is
    missing, (n,).
    """
    at, distinct = arrow_codes(labels)
    if values is not None:
        distinct = [values[label] for label in distinct]
    return np.array([*distinct, None], object)[at] if (at < 0).any() else np.array(distinct)[at]


def alike(label: Any) -> Any:
    """What labels have in common that are one class: 1, 1.0 and "1", and True and "true"; 01 is
    another.
    """
    text = str(label).strip()
    is_word = LEADING_ZEROS.fullmatch(text) or not is_number(text)
    return BOOLEANS.get(text) or (text if is_word else float(text))


def places_of(labels: Sequence[Any], classes: Sequence[Any]) -> list[int]:
    """Positions of labels, as files or users write them, among classes; -2 where there is none."""
    known = {alike(v): i for i, v in enumerate(classes)} | {
        str(v): i for i, v in enumerate(classes)
    }
    return [known.get(str(v), known.get(alike(v), -2)) for v in labels]


def row_ids(numbers: np.ndarray, columns: Sequence[Any]) -> np.ndarray:
    """Numbers of rows, with the cells of columns that identify rows."""
    if not columns:
        return numbers
    cells = zip(numbers, *(map(str, column.to_pylist()) for column in columns), strict=True)
    return np.array([f"{number} ({', '.join(row)})" for number, *row in cells], object)
