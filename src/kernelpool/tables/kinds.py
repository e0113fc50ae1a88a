"""What text means: which cells are missing, what a column of text holds, and its cells as numbers
or days.

One rule for every table: text files, and text in data frames, Arrow and Parquet. Space around text
is no part of it. The kind of a column follows from its distinct cells that are not missing:

=====================================================  ===============================
all of them are                                        kind
=====================================================  ===============================
dates, written 2024-01-31, with a time or not          date: days since 1970
True, False and the like, not all of them numbers      category
numbers, none of them whole with leading zeros         number
none of these, and there are leading zeros, more than  category
`FEW_WORDS` words, or words among `FEW` cells
anything else                                          none: `Cells.odd` is an odd one
=====================================================  ===============================

A word is neither a number, however it is written, nor a date.
"""

import re
from collections.abc import Callable, Container, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ..text import is_missing, shown

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")
"""Text that stands for a missing cell."""

NUMBER = "number"

CATEGORY = "category"

DATE = "date"
"""Models take dates as numbers, days since 1970."""

WORDS_KEY = b"kernelpool.missing"
"""Of the metadata of an Arrow table: other such text of the file that it was read from, line by
line.
"""

COLUMN_KINDS = (NUMBER, CATEGORY, DATE)
"""Kinds of columns."""

FALSE = ("False", "false", "FALSE", "0", "0.0")
TRUE = ("True", "true", "TRUE", "1", "1.0")
BOOLEANS = {text: same for same in (FALSE, TRUE) for text in same}
"""In a column that holds no other text, all of the same cell."""

FEW = 20
"""So many distinct values may be categories or classes, however few rows there are."""

FEW_WORDS = 5
"""In a column of many numbers or dates, so many distinct words may be slips."""

PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

LEADING_ZEROS = re.compile(r"[+-]?0[0-9]+")
"""Whole numbers that are codes: a number is not written so."""

PLAIN_DATE = re.compile(
    r"(?:([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})|([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4}))"
    r"(?:[T ]+([0-9]{1,2})((?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)? *(?:Z|[+-][0-9]{2}:?[0-9]{2})?))?"
)
"""Year, month and day, or day, month and year; the hour, and the rest of the time with its zone.
Without one, times are in UTC.
"""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MIDNIGHT = " 00:00:00"
"""Not written behind a day that is a category or a label."""

FIRST_CELLS = 1000
"""By which a column of words is known at once."""

MICROSECONDS = 86400e6
"""Of a day."""

DIGITS = "Write numbers with digits and a decimal point alone."
DATE_ADVICE = "Write dates as 2024-01-31, with a time or without, or as 31.01.2024."

ODD_NUMBERS = {
    r"[+-]?[1-9]\d{0,2},\d{3}": (
        "a thousands separator or a decimal comma",
        f"{DIGITS} Where commas are decimal points, pass --text decimal=,.",
    ),
    r"[+-]?[1-9]\d{0,2}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?": ("a thousands separator", DIGITS),
    r"[+-]?\d*,\d+([eE][+-]?\d+)?": ("a decimal comma", "Pass --text decimal=,."),
    r"[+-]?\s*[$€£¥]\s*[\d.,]+|[+-]?[\d.,]+\s*[$€£¥]": ("an amount of money", DIGITS),
    r"[+-]?[\d.,]+\s*%": ("a percentage", DIGITS),
}
"""Patterns of numbers that are written in an odd way: what they look like, and what to do."""

ODD_CELLS = {
    r"(?i)-|--|\.|unknown|missing|nil|#?n[./]?a\.?|-?nan|nothing": (
        "a missing cell?",
        "If '{}' stands for a missing cell, pass --text missing={}.",
    ),
    r"[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}.*": ("a date?", DATE_ADVICE),
    **ODD_NUMBERS,
}
"""The same of all cells that are no numbers."""


def odd_cell(cell: Any) -> tuple[str, str]:
    """What a cell that is no number looks like, and what to do; empty where it is like nothing."""
    text = str(cell).strip()
    matches = (odd for pattern, odd in ODD_CELLS.items() if re.fullmatch(pattern, text))
    kind, advice = next(matches, ("", ""))
    return kind, advice.format(shown(text), shown(text))


# -- one cell --------------------------------------------------------------------------------------


def number_of(text: str) -> float:
    """A number, finite; NaN where the text is none."""
    x = float(text) if PLAIN_NUMBER.fullmatch(text) else np.nan
    return x if abs(x) < np.inf else np.nan


def day_of(text: str) -> float:
    """A date as days since 1970, with the time as a fraction; NaN where the text is none."""
    match = PLAIN_DATE.fullmatch(text)
    if match is None:
        return np.nan
    *day, hour, rest = match.groups()
    year, month, of_month = day[:3] if day[0] else day[:2:-1]
    time = f"{hour or 0:0>2}{(rest or '').replace(' ', '')}"
    try:
        at = datetime.fromisoformat(f"{year}-{month:0>2}-{of_month:0>2}T{time}")
    except ValueError:  # there is no such day or time
        return np.nan
    return (at.replace(tzinfo=at.tzinfo or UTC) - EPOCH) / timedelta(days=1)


# -- cells of a column -----------------------------------------------------------------------------


def distinct_texts(cells: Any, missing: Sequence[str] = ()) -> tuple[np.ndarray, list[str]]:
    """The position of each cell among some distinct texts, -1 where it is missing, (n,); and these
    texts. Two of them are equal where space around them or their types differed.

    Parameters
    ----------
    cells : sequence or Arrow array
        Text, or values of any type.
    missing : sequence of str
        Text of a missing cell, beside `MISSING`.
    """
    none = {*MISSING, *missing}
    if _is_arrow(cells):
        at, values = arrow_codes(cells)
    else:
        types = set(map(type, cells))
        mixed = len(types & {bool, np.bool_}) and not types <= {bool, str, type(None)}
        if mixed or None in [t.__hash__ for t in types]:
            cells = [_text_of(cell, none) for cell in cells]  # True and 1 are equal, and two texts
        values = list(dict.fromkeys(cells))
        place = {value: i for i, value in enumerate(values)}
        at = np.fromiter(map(place.__getitem__, cells), int, len(cells))
    used = np.bincount(at + 1, minlength=len(values) + 1)[1:] > 0  # a dictionary may hold more
    texts = [_text_of(v, none) if u else None for v, u in zip(values, used, strict=True)]
    known = np.array([*(text is not None for text in texts), False])
    at = np.where(known, np.cumsum(known) - 1, -1)[at]
    return at, [text for text in texts if text is not None]


def _text_of(cell: Any, none: Container[str]) -> str | None:
    """A value as text, whole numbers alike whatever their type; None where it is missing."""
    if isinstance(cell, str):
        text = cell.strip()
        return None if text in none else text
    if is_missing(cell):
        return None
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if cell.is_integer() else repr(float(cell))
    return str(cell).removesuffix(MIDNIGHT) if isinstance(cell, datetime) else str(cell)


def parsed_numbers(texts: Any, missing: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Cells as float64, NaN where one is missing or no finite number; and where they are none, (n,)
    both.

    Parameters
    ----------
    texts : sequence or Arrow array
        Text, or values of any type.
    missing : sequence of str
        Text of a missing cell, beside `MISSING`.
    """
    if _is_arrow_text(texts):
        cells = _arrow_numbers(texts, missing)
        if cells is not None:
            return cells
    return _parsed(texts, missing, number_of)


def parsed_days(texts: Any, missing: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """The same of dates, as days since 1970."""
    return _parsed(texts, missing, day_of)


def _parsed(
    texts: Any, missing: Sequence[str], parse: Callable[[str], float]
) -> tuple[np.ndarray, np.ndarray]:
    at, values = distinct_texts(texts, missing)
    x = np.array([*map(parse, values), np.nan])[at]
    return x, np.isnan(x) & (at >= 0)


# -- a column --------------------------------------------------------------------------------------


class Cells:
    """What the text of a column holds, of one batch after the other.

    Attributes
    ----------
    odd : str or None
        The first cell that is neither a number nor a date; where there is none, the first that is
        no number.
    forms : set of str
        What cells are: NUMBER, DATE, "zeros", "odd" or "word".
    """

    def __init__(self, missing: Sequence[str] = ()) -> None:
        self.missing = tuple(missing)
        self.odd: str | None = None
        self._few: set[str] = set()  # at most FEW + 1 of all cells
        self._words: set[str] = set()  # at most FEW_WORDS + 1
        self.forms: set[str] = set()

    @property
    def kind(self) -> str | None:
        """`NUMBER`, `CATEGORY` or `DATE`; None where a few cells are odd. Without any cell, a
        number.
        """
        if self.forms == {DATE}:
            return DATE
        if self.forms <= {NUMBER}:
            return NUMBER
        is_few = len(self._few) <= FEW
        if is_few and self._few <= BOOLEANS.keys():
            return CATEGORY
        if "zeros" in self.forms or len(self._words) > FEW_WORDS or (self._words and is_few):
            return CATEGORY
        return None

    def add(self, texts: Any) -> np.ndarray | None:
        """Cells of a batch: text or None, or an Arrow array of text. Of such an array that holds
        plain numbers alone also these numbers, NaN where a cell is missing, (n,).
        """
        if len(self._words) > FEW_WORDS and len(self._few) > FEW:
            return None  # all is known
        numbers = self._plain_numbers(texts)
        if numbers is not None:
            if not np.isnan(numbers).all():
                self.forms.add(NUMBER)
            return numbers
        distinct = texts.unique() if _is_arrow(texts) else texts
        for text in dict.fromkeys(distinct_texts(distinct, self.missing)[1]):
            if len(self._few) <= FEW:
                self._few.add(text)
            form = self._form(text)
            self.forms.add(form)
            if form in (NUMBER, "zeros"):
                continue
            if self.odd is None or (form != DATE and PLAIN_DATE.fullmatch(self.odd)):
                self.odd = text
            if form == "word" and len(self._words) <= FEW_WORDS:
                self._words.add(text)
        return None

    def _plain_numbers(self, texts: Any) -> np.ndarray | None:
        """An Arrow array that holds numbers alone, of which none has leading zeros; None where that
        is to be seen cell by cell.
        """
        if not _is_arrow_text(texts):
            return None
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = _arrow_numbers(texts, self.missing)
        if cells is None or cells[1].any():
            return None
        x = cells[0]
        texts = texts.cast(pa.string())
        whole = texts.filter(x == np.trunc(x))
        pattern = rf"^\s*{LEADING_ZEROS.pattern}\s*$"
        if pc.any(pc.match_substring_regex(whole, pattern)).as_py():
            return None
        if len(self._few) <= FEW:
            few = texts.filter(~np.isnan(x)).unique()[: 2 * FEW + 2].to_pylist()
            self._few.update([v for v in map(str.strip, few) if v not in self._few][: FEW + 1])
        return x

    def _form(self, text: str) -> str:
        if LEADING_ZEROS.fullmatch(text):
            return "zeros"
        if not np.isnan(number_of(text)):
            return NUMBER
        if not np.isnan(day_of(text)):
            return DATE
        return "odd" if any(re.fullmatch(p, text) for p in ODD_NUMBERS) else "word"


def kind_of(texts: Sequence[str | None] | Any, missing: Sequence[str] = ()) -> str | None:
    """What a column of text holds; None where a few of its cells are odd."""
    cells = Cells(missing)
    cells.add(texts)
    return cells.kind


# -- Arrow -----------------------------------------------------------------------------------------


def _is_arrow(column: Any) -> bool:
    return type(column).__module__.partition(".")[0] == "pyarrow"


def _is_arrow_text(column: Any) -> bool:
    """Whether it is an Arrow array of text without a dictionary."""
    return _is_arrow(column) and str(column.type) in ("string", "large_string", "string_view")


def arrow_codes(column: Any) -> tuple[np.ndarray, list[Any]]:
    """The position of each cell of an Arrow column among its distinct values, -1 where it is null,
    (n,); and these values.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    at = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return at, column.dictionary.to_pylist()


def arrow_text(column: Any, missing: Sequence[str]) -> Any:
    """Cells without space around them, null where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    if pa.types.is_timestamp(column.type):
        text = pc.replace_substring_regex(text, rf"({MIDNIGHT})?(\.0+)?$", "")
    absent = pc.is_in(text, value_set=pa.array([*MISSING, *missing]))
    return pc.if_else(absent, pa.scalar(None, pa.string()), text)


def _arrow_numbers(texts: Any, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
    """Cells as float64, and where one is not finite; None where some are neither numbers nor
    missing. What Arrow reads is what `number_of` reads, or is not finite.
    """
    import pyarrow as pa

    for plain in (False, True) if not missing else (True,):  # hardly ever is a cell not plain
        text = arrow_text(texts, missing) if plain else texts
        try:
            text[:FIRST_CELLS].cast(pa.float64())  # a cast that fails is slow
            x = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            continue
        finite = np.isfinite(x)
        bad = ~finite & text.is_valid().to_numpy(zero_copy_only=False)
        if plain or not bad.any():
            return np.where(finite, x, np.nan), bad
    return None
