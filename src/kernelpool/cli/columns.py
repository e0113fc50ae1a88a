"""Columns as numbers and categories; what can be neither is named by its file, row and column.

A cell is missing where a typed file has a null or a NaN, and where a text file has nothing or one of `MISSING` in a column of
numbers. Missing cells are counted to the end of the data before they are refused, so that one run names them all.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..text import plural
from .batches import Batch
from .screen import CommandError, Exit, listed, quoted

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")
MOST_CATEGORIES = 256
"""A column with more different words than this is a name or a text, not a category."""

NUMBER, CATEGORY = "number", "category"


class NotNumbersError(Exception):
    """The first cell of a column that is no number, counted from the start of its batch."""

    def __init__(self, at: int, cell: str) -> None:
        super().__init__(cell)
        self.at, self.cell = at, cell


@dataclass
class Gaps:
    """Missing cells, counted by column."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[str, int]] = field(default_factory=dict)
    rows: int = 0

    def add(self, batch: Batch, missing: dict[str, np.ndarray]) -> None:
        """The missing cells of a batch, True where there is none."""
        if not missing:
            return
        for name, mask in missing.items():
            self.counts[name] = self.counts.get(name, 0) + int(mask.sum())
            self.first.setdefault(name, (batch.file, batch.first_row + int(np.argmax(mask))))
        self.rows += int(np.logical_or.reduce(list(missing.values())).sum())

    def refuse(self, n_rows: int) -> None:
        """End here if any cell is missing."""
        if not self.counts:
            return
        names = sorted(self.counts, key=lambda name: -self.counts[name])
        told = [f"{quoted(n)} ({self.counts[n]:,}, first in {self.first[n][0]}, row {self.first[n][1]})" for n in names[:8]]
        rest = f" and {plural(len(names) - 8, 'other column')}" if len(names) > 8 else ""
        raise CommandError(
            Exit.DATA,
            f"{plural(sum(self.counts.values()), 'missing cell')} in {self.rows:,} of {plural(n_rows, 'row')}: "
            f"{', '.join(told)}{rest}. Fill them in or drop those rows first: models of incomplete rows are not supported yet.",
            missing={name: self.counts[name] for name in names},
        )


def is_text(array: Any) -> bool:
    """Whether a column holds words."""
    import pyarrow as pa

    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def words(array: Any) -> Any:
    """The words of a column, without space around them; what is empty is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def numbers(array: Any, decimal: str = ".") -> tuple[np.ndarray, np.ndarray | None]:
    """A column as float64, and where it has no number; NotNumbersError where a cell is something else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if is_text(array):
        values = _parsed(array, decimal)
    elif pa.types.is_boolean(kind):
        values = array.cast(pa.uint8()).cast(pa.float64())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        values = pc.cast(array, pa.float64(), safe=False)
    else:
        first = next((i for i, cell in enumerate(array) if cell.is_valid), 0)
        raise NotNumbersError(first, f"{array[first]} ({kind})")
    x = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    missing = np.isnan(x)
    return x, missing if missing.any() else None


def _parsed(array: Any, decimal: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = array.cast(pa.string())
    if decimal == ".":
        try:  # nearly always all is well
            return pc.cast(text, pa.float64())
        except pa.ArrowInvalid:
            pass
    text = pc.utf8_trim_whitespace(text)
    text = pc.if_else(pc.is_in(text, pa.array(MISSING)), pa.scalar(None, pa.string()), text)
    lower = pc.utf8_lower(text)
    text = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    if decimal != ".":
        text = pc.replace_substring(text, decimal, ".")
    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        at = next(i for i, cell in enumerate(text) if cell.is_valid and not _parses(cell))
        raise NotNumbersError(at, array[at].as_py()) from None


def _parses(cell: Any) -> bool:
    import pyarrow as pa

    try:
        cell.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


# -- features -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """A column that a model takes."""

    name: str
    kind: str = NUMBER


@dataclass
class Features:
    """The features of all rows, as they come in; what kind each is shows at the end."""

    names: list[str]
    encode: bool
    chunks: dict[str, list[np.ndarray]] = field(default_factory=dict)
    texts: dict[str, list[Any]] = field(default_factory=dict)
    not_numbers: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps)
    n_rows: int = 0

    def add(self, batch: Batch) -> None:
        """A batch. Without `encode`, columns that are no numbers end it here, all named."""
        missing: dict[str, np.ndarray] = {}
        for name in self.names:
            mask = self._add(batch, name, batch.columns[name])
            if mask is not None and mask.any():
                missing[name] = mask
        if self.not_numbers and not self.encode:
            raise CommandError(Exit.DATA, _not_numbers(self.not_numbers))
        self.gaps.add(batch, missing)
        self.n_rows += batch.n_rows

    def _add(self, batch: Batch, name: str, array: Any) -> np.ndarray | None:
        text = is_text(array)
        if self.encode and text:
            self.texts.setdefault(name, []).append(words(array))
        if name not in self.not_numbers:
            try:
                if text and batch.typed:
                    raise NotNumbersError(0, array[0].as_py() or "")
                x, mask = numbers(array, batch.decimal)
                check_finite(batch, name, x)
                self.chunks.setdefault(name, []).append(x)
            except NotNumbersError as error:
                self.not_numbers[name] = batch.file, batch.first_row + error.at, error.cell
                if self.encode and not text:
                    raise CommandError(Exit.DATA, _not_encodable(self.not_numbers[name], name)) from None
            else:
                return mask
        return None if not self.encode else np.asarray(words(array).is_null().to_numpy(zero_copy_only=False))

    def table(self) -> tuple[Any, list[Feature]]:
        """The features as an Arrow table of float64 and words, and their kinds."""
        import pyarrow as pa

        self.gaps.refuse(self.n_rows)
        columns, kinds = [], []
        for name in self.names:
            if name in self.not_numbers:
                column = pa.chunked_array(self.texts[name], pa.string()).combine_chunks()
                _check_categories(name, column)
                columns.append(column)
                kinds.append(Feature(name, CATEGORY))
            else:
                columns.append(pa.array(np.concatenate(self.chunks[name])))
                kinds.append(Feature(name))
        return pa.table(columns, names=self.names), kinds


def check_finite(batch: Batch, name: str, x: np.ndarray) -> None:
    """Infinite numbers are refused."""
    infinite = np.isinf(x)
    if infinite.any():
        row = batch.first_row + int(np.argmax(infinite))
        raise CommandError(Exit.DATA, f"{batch.file}, row {row}, column {quoted(name)}: an infinite number.")


def features_of(batch: Batch, features: Iterable[Feature], gaps: Gaps) -> Any:
    """The features of a batch that a fitted model takes, as an Arrow table; None if cells are missing."""
    import pyarrow as pa

    columns, names, missing = [], [], {}
    for feature in features:
        array = batch.columns[feature.name]
        names.append(feature.name)
        if feature.kind == CATEGORY:
            column = words(array if is_text(array) else array.cast(pa.string()))
            columns.append(column)
            mask = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        else:
            try:
                x, found = numbers(array, batch.decimal)
            except NotNumbersError as error:
                raise CommandError(
                    Exit.DATA, _not_numbers({feature.name: (batch.file, batch.first_row + error.at, error.cell)}, fitted=True)
                ) from None
            check_finite(batch, feature.name, x)
            columns.append(pa.array(x))
            mask = np.zeros(0, bool) if found is None else found
        if mask.any():
            missing[feature.name] = mask
    gaps.add(batch, missing)
    return None if missing else pa.table(columns, names=names)


def _not_numbers(cells: dict[str, tuple[str, int, str]], fitted: bool = False) -> str:
    told = [f"{file}, row {row}, column {quoted(name)}: {quoted(cell)}" for name, (file, row, cell) in list(cells.items())[:5]]
    rest = f"; and {plural(len(cells) - 5, 'other column')}" if len(cells) > 5 else ""
    advice = (
        "The model was fitted on numbers there."
        if fitted
        else "Leave such columns out with --drop, or turn words into categories with --encode."
    )
    return f"Not a number: {'; '.join(told)}{rest}. {advice}"


def _not_encodable(cell: tuple[str, int, str], name: str) -> str:
    file, row, value = cell
    return (
        f"{file}, row {row}, column {quoted(name)}: {quoted(value)} is neither a number nor a word. "
        f"Turn it into numbers (dates: days or seconds) or leave it out with --drop."
    )


def _check_categories(name: str, column: Any) -> None:
    n = len(column.unique())
    if n > MOST_CATEGORIES:
        some = listed(column.unique()[:3].to_pylist())
        raise CommandError(
            Exit.DATA,
            f"Column {quoted(name)} has {n:,} different words such as {some}; at most {MOST_CATEGORIES} make categories. "
            f"Leave it out with --drop.",
        )
