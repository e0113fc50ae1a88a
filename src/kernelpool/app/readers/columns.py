"""Columns as numbers and categories; what can be neither is named by its file, row and column.

A cell is missing where a typed file has a null or a NaN, and where a text file has nothing or one of `MISSING` in a column of
numbers. Problems are collected to the end of the data, so that one run names them all.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import TableError
from ...text import did_you_mean, listed, plural, quoted
from .sources import Batch, TextStyle, is_number

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")
"""What a text file writes where a number is missing."""

PERHAPS_MISSING = (
    "-",
    "--",
    ".",
    "unknown",
    "missing",
    "none",
    "nil",
    "na",
    "n.a.",
    "nan",
    "n/a",
    "null",
    "nothing",
)
"""Words, in lower case, that may stand for a missing number; only the user can say."""

ODD_NUMBERS = (
    (re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f]\d{3})+(\.\d+)?"), "thousands are set apart"),
    (re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][+-]?\d+)?"), "a decimal comma"),
    (re.compile(r"[+-]?\s*[$€£¥]\s*[\d.,]+|[+-]?[\d.,]+\s*[$€£¥]"), "an amount of money"),
    (re.compile(r"[+-]?[\d.,]+\s*%"), "a percentage"),
)
DATE = r"^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})([T ].*)?$"
MOST_CATEGORIES = 256
"""A column with more different words than this is a name or a text, not a category."""

FEW = 20
"""So many different values may be categories or classes, however few rows there are."""

MOST_DISTINCT = 100_000
"""Different words of a column of a large file that are remembered; one that has more is left out."""

NUMBER, CATEGORY = "number", "category"

Place = tuple[str, int]
"""A file and a row."""


@dataclass(frozen=True)
class FeatureColumn:
    """A column that a model takes."""

    name: str
    kind: str = NUMBER


class NotNumbersError(Exception):
    """The first cell of a column that is no number, counted from the start of its batch."""

    def __init__(self, at: int, cell: str) -> None:
        super().__init__(cell)
        self.at, self.cell = at, cell


@dataclass
class Gaps:
    """Missing cells, counted by column."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, Place] = field(default_factory=dict)
    rows: int = 0

    def add(self, batch: Batch, missing: dict[str, np.ndarray]) -> None:
        """The missing cells of a batch, True where there is none."""
        if not missing:
            return
        for name, mask in missing.items():
            self.counts[name] = self.counts.get(name, 0) + int(mask.sum())
            self.first.setdefault(name, (batch.file, batch.first_row + int(np.argmax(mask))))
        self.rows += int(np.logical_or.reduce(list(missing.values())).sum())

    def told(self) -> str:
        """The columns, the most affected first."""
        names = sorted(self.counts, key=lambda name: -self.counts[name])
        told = [
            f"{quoted(n)} ({self.counts[n]:,}, first in {self.first[n][0]}, row {self.first[n][1]})"
            for n in names[:8]
        ]
        return ", ".join(told) + (
            f" and {plural(len(names) - 8, 'other column')}" if len(names) > 8 else ""
        )

    def error(self, n_rows: int) -> TableError:
        """What is missing, as an error."""
        return TableError(
            f"{plural(sum(self.counts.values()), 'missing cell')} in {self.rows:,} of {plural(n_rows, 'row')}: {self.told()}.",
            "Fill them in, drop those rows, or choose a model that takes them: pool, auto, shared-kernel or sharing-average.",
            missing=dict(sorted(self.counts.items(), key=lambda item: -item[1])),
        )


def check_columns(wanted: Sequence[str], names: Sequence[str], source: str, purpose: str) -> None:
    """Columns that were asked for must be there."""
    present = set(names)
    absent = [name for name in wanted if name not in present]
    if absent:
        hint = did_you_mean(absent[0], list(names)) if len(absent) == 1 else "."
        raise TableError(
            f"{source}: there is no column {listed(absent, 12)} {purpose}{hint} There are {listed(list(names), 12)}."
        )


def is_text(array: Any) -> bool:
    """Whether a column holds words."""
    import pyarrow as pa

    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def words(array: Any) -> Any:
    """The words of a column, without space around them; what is empty is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def numbers(array: Any, style: TextStyle) -> tuple[np.ndarray, np.ndarray | None]:
    """A column as float64, and where it has no number; NotNumbersError where a cell is something else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if is_text(array):
        values = _parsed(array, style)
    elif pa.types.is_boolean(kind):
        values = array.cast(pa.uint8()).cast(pa.float64())
    elif (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        values = pc.cast(array, pa.float64(), safe=False)
    else:
        first = next((i for i, cell in enumerate(array) if cell.is_valid), 0)
        raise NotNumbersError(first, f"{array[first]} ({kind})")
    x = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    missing = np.isnan(x)
    return x, missing if missing.any() else None


def _parsed(array: Any, style: TextStyle) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = array.cast(pa.string())
    if style.decimal == "." and not style.missing:
        try:  # nearly always all is well
            return pc.cast(text, pa.float64())
        except pa.ArrowInvalid:
            pass
    text = _plain(text, style)
    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        at = int(np.argmax(_unreadable(text)))
        raise NotNumbersError(at, array[at].as_py()) from None


def _plain(text: Any, style: TextStyle) -> Any:
    """Cells as Arrow parses numbers; null where they stand for a missing one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(text)
    text = pc.if_else(
        pc.is_in(text, pa.array([*MISSING, *style.missing])), pa.scalar(None, pa.string()), text
    )
    lower = pc.utf8_lower(text)
    text = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    return text if style.decimal == "." else pc.replace_substring(text, style.decimal, ".")


def _unreadable(text: Any) -> np.ndarray:
    """True where a cell is there and is no number."""
    coded = text.dictionary_encode()
    bad = np.array([cell.is_valid and not _parses(cell) for cell in coded.dictionary] + [False])
    return np.asarray(
        bad[
            np.asarray(
                coded.indices.fill_null(len(bad) - 1).to_numpy(zero_copy_only=False), np.int64
            )
        ]
    )


def _parses(cell: Any) -> bool:
    import pyarrow as pa

    try:
        cell.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def odd_number(cell: str, style: TextStyle) -> tuple[str, str]:
    """What a cell that is no number looks like, and what to do about it; empty where it looks like nothing in particular."""
    text = cell.strip()
    if text.lower() in PERHAPS_MISSING:
        return (
            "a missing cell?",
            f"If {quoted(text)} stands for a missing cell, pass missing={quoted(text)}.",
        )
    kind = next((kind for pattern, kind in ODD_NUMBERS if pattern.fullmatch(text)), "")
    if kind == "a decimal comma" and style.decimal == ".":
        return kind, "Pass decimal=','."
    if kind == "a decimal comma":  # which is known already
        return "thousands are set apart", "Write numbers with digits and a decimal comma alone."
    return kind, "Write numbers with digits and a decimal point alone." if kind else ""


# -- features -----------------------------------------------------------------------------------------------------


@dataclass
class NumberColumn:
    """A column of numbers while it is read: its cells if they are kept, and what is known of all of them."""

    parts: list[np.ndarray] = field(default_factory=list)
    has_value: bool = False
    counts_rows: bool = True
    """Whether it goes 0, 1, 2, ... or 1, 2, 3, ... so far."""
    last: float = np.nan
    n: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of squares about the mean; Chan, Golub & LeVeque 1983 join those of batches."""

    def add(self, x: np.ndarray, keep: bool, taught: np.ndarray | None) -> None:
        """The cells of a batch, NaN where one is missing; mean and squares are taken of the rows `taught`."""
        if keep:
            self.parts.append(x)
        known = x[~np.isnan(x)]
        self.has_value = self.has_value or bool(len(known))
        if self.counts_rows and len(x):
            begins = x[0] in (0, 1) if np.isnan(self.last) else x[0] == self.last + 1
            self.counts_rows, self.last = bool(begins and (np.diff(x) == 1).all()), float(x[-1])
        if keep:
            return
        known = known if taught is None else x[taught & ~np.isnan(x)]
        if len(known):
            with np.errstate(over="ignore", invalid="ignore"):
                mean, both = float(known.mean()), self.n + len(known)
                away = mean - self.mean
                self.squares += (
                    float(((known - mean) ** 2).sum()) + away**2 * self.n * len(known) / both
                )
                self.mean, self.n = self.mean + away * len(known) / both, both

    @property
    def scale(self) -> float:
        """The deviation; one where all cells are alike up to rounding, as in scikit-learn's StandardScaler."""
        variance, eps = self.squares / max(self.n, 1), self.n * float(np.finfo(float).eps)
        alike = not variance > eps * variance + (eps * self.mean) ** 2
        return 1.0 if alike else float(np.sqrt(variance))


@dataclass
class WordColumn:
    """A column of text while it is read: its cells if they are kept, its different words otherwise."""

    parts: list[Any] = field(default_factory=list)
    distinct: Any = None
    """Different words, up to `MOST_DISTINCT` of them; None where cells are kept."""

    def add(self, array: Any, keep: bool) -> None:
        """The cells of a batch as they are."""
        import pyarrow as pa

        if keep:
            self.parts.append(array)
            return
        found = words(array).unique()
        both = found if self.distinct is None else pa.concat_arrays([self.distinct, found]).unique()
        self.distinct = both[: MOST_DISTINCT + 1]

    def words(self) -> Any:
        """All cells, trimmed."""
        import pyarrow as pa

        return words(
            pa.chunked_array(
                [part.cast(pa.string()) for part in self.parts], pa.string()
            ).combine_chunks()
        )


@dataclass
class Features:
    """The features of all rows, collected batch by batch; what kind each is shows at the end."""

    names: list[str]
    encode: bool
    """Whether columns of words are categories; otherwise they are refused."""
    style: TextStyle = field(default_factory=TextStyle)
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What some columns are, whatever they look like: "number" or "category"."""
    holes: bool = False
    """Whether cells may be missing."""
    cautious: bool = False
    """Whether a column of text most of whose different cells are numbers is one of numbers, with cells that are refused."""
    keep: bool = True
    """Whether cells are kept; otherwise `columns` tells what there is to know of them, and `table` is not to be had."""
    texts_from_start: set[str] = field(default_factory=set)
    """Columns of text whose words are looked at though they begin with numbers, where cells are not kept."""
    numbers: dict[str, NumberColumn] = field(default_factory=dict)
    texts: dict[str, WordColumn] = field(default_factory=dict)
    not_numbers: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that can teach nothing, and why."""
    gaps: Gaps = field(default_factory=Gaps)
    n_rows: int = 0

    def add(self, batch: Batch, taught: np.ndarray | None = None) -> None:
        """A batch; means and deviations of its numbers are those of the rows `taught`."""
        missing: dict[str, np.ndarray] = {}
        for name in self.names:
            mask = self._add(batch, name, batch.columns[name], taught)
            if mask is not None and mask.any():
                missing[name] = mask
        self.gaps.add(batch, missing)
        self.n_rows += batch.n_rows

    def _add(
        self, batch: Batch, name: str, array: Any, taught: np.ndarray | None
    ) -> np.ndarray | None:
        import pyarrow as pa

        text = is_text(array)
        if self.kinds.get(name) == CATEGORY:
            array, text = array if text else array.cast(pa.string()), True
            self.typed.add(name)
            self.not_numbers.setdefault(name, (batch.file, batch.first_row, ""))
        if name in self.left_out:
            return None
        mask: np.ndarray | None = None
        if name not in self.not_numbers:
            try:
                if text and batch.typed:
                    self.typed.add(name)
                    raise NotNumbersError(0, array[0].as_py() or "")
                x, mask = numbers(array, batch.style)
                check_finite(batch, name, x)
                self.numbers.setdefault(name, NumberColumn()).add(x, self.keep, taught)
            except NotNumbersError as error:
                if self.encode and not text and self.kinds.get(name) != NUMBER:
                    self._leave_out_or_refuse(batch, name, array, error)
                    return None
                self.not_numbers[name] = batch.file, batch.first_row + error.at, error.cell
        if not (self.encode and text):
            return mask
        if self.keep or name in self.not_numbers or name in self.texts_from_start:
            self.texts.setdefault(name, WordColumn()).add(array, self.keep)
        return (
            mask
            if name not in self.not_numbers
            else np.asarray(words(array).is_null().to_numpy(zero_copy_only=False))
        )

    @property
    def turned_to_words(self) -> set[str]:
        """Columns that began with numbers, whose first words were not looked at: read again with `texts_from_start`."""
        begun = {name for name in self.not_numbers if name in self.numbers and not self.keep}
        return begun - self.texts_from_start

    def _leave_out_or_refuse(
        self, batch: Batch, name: str, array: Any, error: NotNumbersError
    ) -> None:
        import pyarrow as pa

        if pa.types.is_temporal(array.type):
            self.left_out[name] = f"it holds dates or times such as {quoted(error.cell)}"
            return
        raise TableError(
            f"{batch.file}, row {batch.first_row + error.at}, column {quoted(name)}: {quoted(error.cell)} is neither a number "
            f"nor a word.",
            f"Turn it into numbers or leave it out with drop={quoted(name)}.",
        )

    def table(self) -> tuple[Any, list[FeatureColumn]]:
        """The features as an Arrow table of float64 and words, and their kinds; TableError names all that stands against it."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for name in self.names:
            if name not in self.not_numbers and name not in self.left_out:
                columns[name] = pa.array(np.concatenate(self.numbers[name].parts))
            elif (
                name in self.texts and name not in self.left_out and self.kinds.get(name) != NUMBER
            ):
                columns[name] = self.texts[name].words()
                self.texts[name].distinct = columns[name].unique()
        kinds = self.columns()
        if set(self.gaps.counts) & set(self.left_out):
            kept = {name: n for name, n in self.gaps.counts.items() if name not in self.left_out}
            masks = [np.asarray(columns[name].is_null()) | _nan(columns[name]) for name in kept]
            self.gaps = Gaps(
                kept,
                {n: self.gaps.first[n] for n in kept},
                int(np.any(masks, axis=0).sum()) if masks else 0,
            )
        return pa.table([columns[f.name] for f in kinds], names=[f.name for f in kinds]), kinds

    def columns(self) -> list[FeatureColumn]:
        """The kinds of those that can be learned from; TableError names all that stands against it."""
        odd = {
            n: at
            for n, at in self.not_numbers.items()
            if not self.encode or self.kinds.get(n) == NUMBER
        }
        kinds: list[FeatureColumn] = []
        for name in self.names:
            if name in self.left_out or name in odd:
                continue
            if name not in self.not_numbers:
                if self.holes and not self.numbers[name].has_value:
                    self.left_out[name] = "it has no value at all"
                elif self.n_rows > FEW and self.numbers[name].counts_rows:
                    self.left_out[name] = "it counts the rows"
                else:
                    kinds.append(FeatureColumn(name, NUMBER))
                continue
            distinct = self.texts[name].distinct.drop_null()
            if name not in self.typed and self._numberlike(distinct.to_pylist()):
                odd[name] = self.not_numbers[name]
            elif not self._teaches_nothing(name, distinct):
                _check_categories(name, distinct)
                kinds.append(FeatureColumn(name, CATEGORY))
        gaps = {name: n for name, n in self.gaps.counts.items() if name not in self.left_out}
        if odd:
            raise self._not_numbers(odd, replace(self.gaps, counts=gaps))
        if gaps and not self.holes:
            raise replace(self.gaps, counts=gaps).error(self.n_rows)
        if not kinds:
            raise TableError(
                f"No column is left to learn from: {'; '.join(f'{quoted(n)}: {w}' for n, w in self.left_out.items())}."
            )
        return kinds

    def _numberlike(self, distinct: list[str]) -> bool:
        """Whether every word, or most of them, is a number in some way of writing or may stand for a missing one."""
        alike = [
            bool(odd_number(cell, self.style)[0] or cell in MISSING or is_number(cell))
            for cell in distinct
        ]
        return all(alike) or (self.cautious and sum(alike) >= len(alike) / 2)

    def _teaches_nothing(self, name: str, distinct: Any) -> bool:
        import pyarrow.compute as pc

        some = listed(distinct[:2].to_pylist())
        if not len(distinct):
            self.left_out[name] = "it has no value at all"
        elif pc.all(pc.match_substring_regex(distinct, DATE)).as_py():
            self.left_out[name] = f"it holds dates such as {quoted(distinct[0])}"
        elif len(distinct) > MOST_DISTINCT:
            self.left_out[name] = (
                f"it has more than {MOST_DISTINCT:,} different words, such as {some}"
            )
        elif len(distinct) > FEW and len(distinct) > self.n_rows / 2:
            self.left_out[name] = (
                f"it has a different word in nearly every row ({len(distinct):,} in {self.n_rows:,}), such as {some}"
            )
        return name in self.left_out

    def _not_numbers(self, odd: dict[str, tuple[str, int, str]], gaps: Gaps) -> TableError:
        told, advice = [], []
        for name, (file, row, cell) in odd.items():
            kind, remedy = odd_number(cell, self.style)
            told.append(
                f"{file}, row {row}, column {quoted(name)}: {quoted(cell)}{f' ({kind})' if kind else ''}"
            )
            if remedy and remedy not in advice:
                advice.append(remedy)
        rest = f"; and {plural(len(odd) - 8, 'other column')}" if len(odd) > 8 else ""
        also = (
            f" And {plural(sum(gaps.counts.values()), 'missing cell')}: {gaps.told()}."
            if gaps.counts
            else ""
        )
        if any(not odd_number(cell, self.style)[0] for _, _, cell in odd.values()):
            advice.append(
                "Leave columns of words out with drop=, or take them for categories with encode=True."
            )
        return TableError(
            f"Not a number: {'; '.join(told[:8])}{rest}.{also}",
            " ".join(advice),
            not_numbers=list(odd),
            missing=gaps.counts,
        )


def _nan(column: Any) -> np.ndarray:
    import pyarrow as pa

    return (
        np.isnan(np.asarray(column))
        if pa.types.is_floating(column.type)
        else np.zeros(len(column), bool)
    )


def check_finite(batch: Batch, name: str, x: np.ndarray) -> None:
    """Infinite numbers are refused."""
    infinite = np.isinf(x)
    if infinite.any():
        row = batch.first_row + int(np.argmax(infinite))
        raise TableError(f"{batch.file}, row {row}, column {quoted(name)}: an infinite number.")


def _check_categories(name: str, distinct: Any) -> None:
    if len(distinct) > MOST_CATEGORIES:
        some = listed(distinct[:3].to_pylist())
        raise TableError(
            f"Column {quoted(name)} has {len(distinct):,} different words such as {some}; at most {MOST_CATEGORIES} make "
            f"categories.",
            f"Leave it out with drop={quoted(name)}.",
        )


def fitted_features(
    batch: Batch,
    features: Sequence[FeatureColumn],
    gaps: Gaps,
    lenient: bool = False,
    holes: bool = False,
) -> tuple[Any, np.ndarray]:
    """The columns that a fitted model takes, of the rows that can be judged.

    Parameters
    ----------
    batch : Batch
    features : sequence of FeatureColumn
    gaps : Gaps
        Missing cells are counted here.
    lenient : bool
        Whether a row with a cell that is no number, or an infinite one, is passed over; otherwise it is a TableError.
    holes : bool
        Whether the model takes rows with missing cells; otherwise these are passed over too.

    Returns
    -------
    table : pyarrow.Table
        Of these rows alone.
    complete : ndarray of bool, (n_rows,)
    """
    import pyarrow as pa

    columns, missing = [], {}
    for feature in features:
        array = batch.columns[feature.name]
        if feature.kind == CATEGORY:
            column = words(array if is_text(array) else array.cast(pa.string()))
            mask, bad = (
                np.asarray(column.is_null().to_numpy(zero_copy_only=False)),
                np.zeros(len(column), bool),
            )
        else:
            x, mask, bad = _fitted_numbers(batch, feature.name, array, lenient)
            column = pa.array(x)
        columns.append(column)
        mask = bad if holes else mask | bad
        if mask.any():
            missing[feature.name] = mask
    gaps.add(batch, missing)
    table = pa.table(columns, names=[feature.name for feature in features])
    if not missing:
        return table, np.ones(batch.n_rows, bool)
    complete = ~np.logical_or.reduce(list(missing.values()))
    return table.filter(pa.array(complete)), complete


def _fitted_numbers(
    batch: Batch, name: str, array: Any, lenient: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A column as float64, where it has no number, and where it has a cell that is no finite number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unreadable = np.zeros(len(array), bool)
    try:
        x, mask = numbers(array, batch.style)
    except NotNumbersError as error:
        if not lenient:
            raise TableError(
                f"Not a number: {batch.file}, row {batch.first_row + error.at}, column {quoted(name)}: {quoted(error.cell)}.",
                "The model was fitted on numbers there.",
            ) from None
        if not is_text(array):
            return np.full(len(array), np.nan), unreadable, ~unreadable
        text = _plain(array.cast(pa.string()), batch.style)
        unreadable = _unreadable(text)
        x, mask = numbers(
            pc.if_else(pa.array(unreadable), pa.scalar(None, pa.string()), text), TextStyle()
        )
    if lenient:
        unreadable = unreadable | np.isinf(x)
    else:
        check_finite(batch, name, x)
    return x, np.zeros(len(x), bool) if mask is None else mask & ~unreadable, unreadable
