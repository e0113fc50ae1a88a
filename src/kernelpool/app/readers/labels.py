"""The target column as classes or as numbers, and whole tables with it, in memory.

Whole numbers written plainly stay whole numbers; everything else, `007` and `1.0` included, stays the text it is. A column with
nearly as many values as rows, or with many fractional ones, is a measurement or a name and no class.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from ...errors import TableError
from ...text import listed, plural, quoted
from .columns import (
    FEW,
    NUMBER,
    FeatureColumn,
    Features,
    Gaps,
    NotNumbersError,
    check_columns,
    check_finite,
    is_text,
    numbers,
    words,
)
from .sources import Batch, Source

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
ROWS_A_CLASS = 3
"""Fewer rows a class than this, on average, teach nothing about most of them."""


@dataclass
class TargetColumn:
    """The target of all rows, as it comes in: distinct values, and which of them each row has."""

    name: str
    as_text: bool = False
    keep: bool = True
    """Whether the codes of all rows are kept; otherwise there are `classes` and `counts`, and no `array`."""
    values: dict[Any, int] = field(default_factory=dict)
    codes: list[np.ndarray] = field(default_factory=list)
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows of each value, (n_values,)."""
    missing: int = 0
    first: tuple[str, int] | None = None

    def add(self, batch: Batch) -> np.ndarray:
        """A batch; its codes."""
        distinct, index = distinct_cells(batch, self.name)
        at = [
            -1 if value is None else self.values.setdefault(value, len(self.values))
            for value in distinct
        ]
        codes = np.array([*at, -1])[index]  # the last is for cells that have no value at all
        gone = codes < 0
        if gone.any():
            self.missing += int(gone.sum())
            self.first = self.first or (batch.file, batch.first_row + int(np.argmax(gone)))
        if self.keep:
            self.codes.append(codes)
        counts = np.bincount(codes[~gone], minlength=len(self.values))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        return codes

    def classes(self) -> tuple[list[Any], np.ndarray]:
        """Distinct values as they came, and the label of each."""
        values = list(self.values)
        return values, classes_of(self.name, values, int(self.counts.sum()), self.as_text)

    def array(self) -> np.ndarray:
        """One label a row; None where there is none."""
        codes, (_, labels) = np.concatenate(self.codes), self.classes()
        if not self.missing:
            return np.asarray(labels[codes])
        out = labels.astype(object)[codes]
        out[codes < 0] = None
        return np.asarray(out)


@dataclass
class NumberTarget:
    """The target of all rows as numbers, as it comes in; NaN where there is none."""

    name: str
    values: list[np.ndarray] = field(default_factory=list)
    missing: int = 0
    first: tuple[str, int] | None = None

    def add(self, batch: Batch) -> None:
        """A batch."""
        values = numbers_of(batch, self.name)
        gone = np.isnan(values)
        if gone.any():
            self.missing += int(gone.sum())
            self.first = self.first or (batch.file, batch.first_row + int(np.argmax(gone)))
        self.values.append(values)

    def array(self) -> np.ndarray:
        """One number a row."""
        return np.concatenate(self.values)


def numbers_of(batch: Batch, name: str) -> np.ndarray:
    """The target of a batch as numbers, (n,); NaN where there is none, an error where a cell is no finite number."""
    try:
        values, _ = numbers(batch.columns[name], batch.style)
    except NotNumbersError as error:
        raise TableError(
            f"{batch.file}, row {batch.first_row + error.at}, column {quoted(name)}: {quoted(error.cell)} is not a number, and "
            "a regressor predicts numbers.",
            "Classes are predicted by any other model.",
        ) from None
    check_finite(batch, name, values)
    return values


def classes_of(name: str, values: list[Any], n_rows: int, as_text: bool = False) -> np.ndarray:
    """Distinct cells of the target column as labels, in the same order: whole numbers, or text."""
    _check_classes(name, values, n_rows, as_text)
    as_text = as_text or not _all_whole(values)
    return np.asarray([_as_text(value) if as_text else int(value) for value in values])


def distinct_cells(batch: Batch, name: str) -> tuple[list[Any], np.ndarray]:
    """The distinct labels of a batch, None where one is missing, and which of them each row has; -1 for nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = batch.columns[name]
    if pa.types.is_null(array.type):
        return [], np.full(batch.n_rows, -1)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if (
        pa.types.is_nested(array.type)
        or pa.types.is_binary(array.type)
        or pa.types.is_large_binary(array.type)
    ):
        raise TableError(f"{batch.file}, column {quoted(name)}: {array.type} cannot be a class.")
    coded = array.dictionary_encode()
    index = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    return _cells(coded.dictionary), np.asarray(index, np.int64)


def _cells(array: Any) -> list[Any]:
    """Labels as Python has them: words, whole numbers, fractions, booleans and dates as words."""
    import pyarrow as pa

    kind = array.type
    if is_text(array):
        return list(words(array).to_pylist())
    if pa.types.is_boolean(kind):
        return [str(value).lower() for value in array.to_pylist()]
    if pa.types.is_integer(kind):
        return list(array.to_pylist())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [
            None
            if v != v
            else v
            if not np.isfinite(float(v))
            else int(v)
            if v == v // 1
            else float(v)
            for v in array.to_pylist()
        ]
    return [str(value) for value in array.to_pylist()]


def _as_text(value: Any) -> str:
    """A label as text."""
    return value if isinstance(value, str) else str(value)


def _all_whole(known: list[Any]) -> bool:
    return all(
        isinstance(v, int) or (isinstance(v, str) and WHOLE.fullmatch(v) is not None) for v in known
    )


def _check_classes(name: str, known: list[Any], n_rows: int, as_text: bool) -> None:
    distinct = sorted(known, key=str)
    if len(distinct) > FEW and not as_text and _fractions(distinct):
        raise TableError(
            f"Column {quoted(name)} holds {len(distinct):,} different fractional numbers such as {listed(distinct[:3])}: "
            f"a measurement, not classes.",
            "If they are classes, pass as_text=True; numbers are predicted by a regressor, model='rbf-regressor'.",
        )
    if len(distinct) > FEW and n_rows < ROWS_A_CLASS * len(distinct):
        raise TableError(
            f"Column {quoted(name)} holds {len(distinct):,} different values in {plural(n_rows, 'row')}, "
            f"such as {listed(distinct[:3])}: too many for classes, with {n_rows / len(distinct):.2g} rows each.",
            "Is target= the right column?",
        )
    if len(distinct) < 2:
        found = f"only {quoted(distinct[0])}" if distinct else "nothing"
        raise TableError(
            f"Column {quoted(name)} must hold at least two classes; found {found} in {plural(n_rows, 'row')}."
        )


def _fractions(distinct: list[Any]) -> bool:
    """Whether all are numbers and some are not whole."""
    try:
        numbers = [float(v) for v in distinct]
    except ValueError:
        return False
    return any(v != v // 1 for v in numbers)


def codes_of(batch: Batch, name: str, classes: np.ndarray) -> np.ndarray:
    """Which of the fitted classes each label is; -1 where there is none, an error where it is another."""
    distinct, index = distinct_cells(batch, name)
    known = {str(label): code for code, label in enumerate(classes.tolist())}
    at = [-1 if value is None else known.get(str(value), -2) for value in distinct]
    codes = np.array([*at, -1])[index]
    if (codes == -2).any():
        row = int(np.argmax(codes == -2))
        raise TableError(
            f"{batch.file}, row {batch.first_row + row}, column {quoted(name)}: the model knows no class "
            f"{quoted(distinct[index[row]])}, only {listed(classes.tolist(), 8)}.",
        )
    return codes


def codes_and_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes from 0, -1 where there is no label; and the classes."""
    known = has_label(labels)
    classes, inverse = np.unique(np.asarray(labels[known].tolist()), return_inverse=True)
    codes = np.full(len(labels), -1)
    codes[known] = inverse
    return codes, classes


def has_label(labels: np.ndarray) -> np.ndarray:
    """Whether each row has a label; None stands for none, NaN among numbers."""
    if labels.dtype.kind == "f":
        return ~np.isnan(labels)
    if labels.dtype != object:
        return np.ones(len(labels), bool)
    return np.array([label is not None for label in labels], bool)


# -- rows with their classes ----------------------------------------------------------------------------------------


class Fingerprint:
    """Of rows in their order, however they are cut into batches and whatever file they come from."""

    def __init__(self, features: list[FeatureColumn], classes: np.ndarray) -> None:
        self.features, self.classes = features, classes
        self.marks = [blake2b(digest_size=16) for _ in range(len(features) + 1)]

    def add(self, table: Any, codes: np.ndarray) -> None:
        """Some rows, and the codes of their classes; their targets where these are numbers."""
        for mark, feature in zip(self.marks, self.features, strict=False):
            column = table.column(feature.name)
            if feature.kind == NUMBER:
                mark.update(np.ascontiguousarray(column.to_numpy()).tobytes())
            else:
                mark.update(
                    "".join(f"{word}\0" for word in column.to_pylist()).encode(
                        errors="backslashreplace"
                    )
                )
        kind = np.float64 if codes.dtype.kind == "f" else np.int64
        self.marks[-1].update(np.ascontiguousarray(codes, kind).tobytes())

    def text(self) -> str:
        """The fingerprint of all."""
        names = "".join(f"{f.name}\0{f.kind}\0" for f in self.features) + "".join(
            f"{c}\0" for c in self.classes.tolist()
        )
        return blake2b(
            names.encode(errors="backslashreplace")
            + b"".join(mark.digest() for mark in self.marks),
            digest_size=16,
        ).hexdigest()


@dataclass(frozen=True)
class LabeledTable:
    """Rows in memory: an Arrow table of features, and one label a row, None where there is none; or one number a row."""

    table: Any
    labels: np.ndarray
    features: list[FeatureColumn]
    target: str
    source: str
    columns: list[str]
    """All columns of the source."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that were left out because they can teach nothing, and why."""
    numbers: np.ndarray | None = None
    """Numbers of the rows in the source, from 1, where some of its rows were left out."""
    gaps: Gaps = field(default_factory=Gaps)
    """Missing cells, counted by column."""

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some of the rows."""
        return self.table.take(index), self.labels[index]

    def class_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes, sorted, and how many rows each has."""
        codes, classes = codes_and_classes(self.labels)
        return classes, np.bincount(codes[codes >= 0], minlength=len(classes))

    def n_words(self, name: str) -> int:
        """Different words of a column of words."""
        return len(self.table.column(name).unique().drop_null())

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of the rows in the source, from 1."""
        return np.arange(1, len(self) + 1) if self.numbers is None else self.numbers

    def fingerprint(self) -> str:
        """Tells whether two sets of rows are the same, in the same order."""
        codes, classes = (
            (self.labels, np.zeros(0))
            if self.labels.dtype.kind == "f"
            else codes_and_classes(self.labels)
        )
        mark = Fingerprint(self.features, classes)
        mark.add(self.table, codes)
        return mark.text()


def read_labeled(
    source: Source,
    target: str | None,
    *,
    drop: Sequence[str] = (),
    encode: bool = False,
    as_text: bool = False,
    unlabeled: str = "refuse",
    kinds: Mapping[str, str] | None = None,
    holes: bool = False,
    cautious: bool = False,
    numeric: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> LabeledTable:
    """All rows of a source with their classes, or with the numbers to predict.

    Parameters
    ----------
    source : Source
    target : str or None
        Column that holds the classes; None is an error that lists the columns.
    drop : sequence of str
        Columns to leave out.
    encode : bool
        Whether columns of words are categories; otherwise they are an error.
    as_text : bool
        Whether classes are text, whatever they look like.
    unlabeled : {"refuse", "drop", "use"}
        What becomes of rows without a class.
    kinds : dict of str to str, optional
        What some columns hold, "number" or "category", whatever they look like.
    holes : bool
        Whether cells of features may be missing; otherwise that is an error.
    cautious : bool
        Whether a column of text in which most of the different cells are numbers is refused rather than taken for words.
    numeric : bool
        Whether the target is a number, for a regressor.
    progress : callable, optional
        Called after every batch with the number of bytes and of rows that have been read.

    Returns
    -------
    LabeledTable
    """
    features: Features | None = None
    labels: TargetColumn | NumberTarget = (
        NumberTarget(target or "") if numeric else TargetColumn(target or "", as_text)
    )
    for batch in source.batches():
        if features is None:
            names = feature_names(source, target, drop)
            check_columns(list(kinds or ()), names, source.label, "whose kind is given")
            features = Features(names, encode, source.style, kinds or {}, holes, cautious)
        labels.add(batch)
        features.add(batch)
        if progress is not None:
            progress(source.bytes_read, features.n_rows)
    if features is None:
        if source.names:
            _check_target(source, target)
        raise TableError(f"{source.label}: no rows below the header.")
    if labels.missing and (unlabeled == "refuse" or (numeric and unlabeled == "use")):
        raise refuse_unlabeled(labels, features.n_rows)
    table, columns = features.table()
    classes, at = labels.array(), None
    if labels.missing and unlabeled == "drop":
        known = np.flatnonzero(has_label(classes))
        table, classes, at = table.take(known), np.asarray(classes[known].tolist()), known + 1
    return LabeledTable(
        table,
        classes,
        columns,
        labels.name,
        source.label,
        source.names,
        features.left_out,
        at,
        features.gaps,
    )


def _check_target(source: Source, target: str | None) -> None:
    if target is None:
        raise TableError(
            f"{source.label}: name the column that holds the classes; there are {listed(source.names, 40)}.",
            "Pass target=.",
        )
    check_columns([target], source.names, source.label, "for the target")


def refuse_unlabeled(labels: TargetColumn | NumberTarget, n_rows: int) -> TableError:
    """Rows without a class or number, as an error."""
    numeric = isinstance(labels, NumberTarget)
    file, row = labels.first or ("", 0)
    use = "" if numeric else ", or unlabeled='use' to learn from them without a class"
    return TableError(
        f"{plural(labels.missing, 'row')} of {n_rows:,} without a {'number' if numeric else 'class'} in column "
        f"{quoted(labels.name)}, first in {file}, row {row}.",
        f"Pass unlabeled='drop' to leave them out{use}.",
        missing={labels.name: labels.missing},
    )


def feature_names(source: Source, target: str | None, drop: Sequence[str]) -> list[str]:
    """The columns of a source less the target and those to drop, checked."""
    _check_target(source, target)
    check_columns(drop, source.names, source.label, "to drop")
    spare = {target, *drop}
    names = [name for name in source.names if name not in spare]
    if "" in names:
        at = source.names.index("") + 1
        raise TableError(
            f"{source.label}: column {at} has no name (row numbers are often written so).",
            "Name it, or pass drop=''.",
        )
    if not names:
        raise TableError(
            f"{source.label}: no column is left to learn from beside {quoted(target)}."
        )
    return names
