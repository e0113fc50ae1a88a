"""The columns of a table: their names, what each of them holds, and the codes of their cells.

`Columns.learn` is called once, at the fit. `encode` is the only way in and `decode` the only way
out; between them a category is the position of its text among the sorted categories of its column,
and a date the days since 1970. The code after the last category stands for any other value, and NaN
for a missing cell. What text means is said in `tables.kinds`; all else follows from the type:

=================================================  ================================
a column of                                        holds
=================================================  ================================
floats, integers (nullable ones too), decimals     numbers
categories (ordered ones too), booleans            categories
dates, timestamps (with zones too)                 dates
text, Python objects                               what their cells are as text
durations, times of day, lists, bytes              none of these: an error
=================================================  ================================
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from functools import cached_property
from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..arrays import is_table, to_numpy
from ..errors import ColumnWarning, KernelpoolError, TableError, warn
from ..records import saved
from ..text import is_missing, listed, plural, quoted, shorten
from .kinds import (
    BOOLEANS,
    CATEGORY,
    DATE,
    FEW,
    MICROSECONDS,
    NUMBER,
    TRUE,
    WORDS_KEY,
    Cells,
    distinct_texts,
    odd_cell,
    parsed_days,
    parsed_numbers,
)

FRAMES = ("pandas", "polars", "pyarrow")
"""Libraries of data frames that are returned as such; rows of others are returned as arrays."""

BY_CELLS = "by cells"
"""What a column holds by its type where its cells decide."""

OBJECTS = (object, nw.Object, nw.Unknown)
"""Types of columns that hold Python objects, or none that narwhals has a type for."""

KNOWN_TYPES = (str, Number, np.generic, date)
"""Of Python objects in a column; lists, bytes and durations are none."""

TEXTS = (str, bool, np.bool_, date, np.datetime64)
"""Of these, those whose text says what a column holds."""

AMBIGUOUS_DATE = r"[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}.*"
"""A date as text of which nobody knows the month, or the century."""

MOST_INDICATORS = 64
"""Indicators of a column; of more categories, those whose codes are equal modulo this number share
one.
"""

READ: dict[str, Any] = {
    "bool": lambda text: BOOLEANS[text] is TRUE,
    "int": lambda text: int(text.removesuffix(".0")),
    "float": float,
}
"""Categories as cells of a column of a type."""

MOST_WHOLE = 2.0**53
"""Whole numbers below it are float64 numbers."""

APART = np.sqrt(0.5)
"""Height of an indicator: two categories of a column lie one apart."""


@dataclass
class Found:
    """What `Columns.encode` found in rows, batch by batch, beside their values."""

    unreadable: np.ndarray
    """Cells of each column that are neither numbers nor dates, (d,)."""
    unknown: np.ndarray
    """Cells of each column that are none of its categories, (d,)."""
    n_incomplete: int = 0
    """Rows with missing cells."""
    n_rows: int = 0

    @classmethod
    def none(cls, n_columns: int) -> "Found":
        """Nothing, of so many columns."""
        return cls(np.zeros(n_columns, int), np.zeros(n_columns, int))

    def sentences(self, names: Sequence[str]) -> list[str]:
        """What to say of unreadable and of unknown cells; empty where there are none."""
        sentences = []
        for counts, what in (
            (self.unreadable, "that cannot be read are taken as missing"),
            (self.unknown, "hold values that were not there when the model was fitted"),
        ):
            most = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i]][:8]
            cells = ", ".join(f"{quoted(names[i])} {counts[i]:,}" for i in most)
            n = plural(int(counts.sum()), "cell")
            sentences.append(f"{n} {what}: {cells}." if most else "")
        return sentences


@saved(eq=False)
class Columns:
    """Names, types and categories of the columns of a table.

    Attributes
    ----------
    categories : tuple of (ndarray of str or None)
        Of each column the sorted values as text, objects; None for numbers and dates.
    names : tuple of str or None
        Names of the columns; None where the table had none.
    frame : str or None
        The library of the data frame that was learned from, of `FRAMES`; None for an array.
    types : tuple of str
        Of each column of a table "date", or, of a frame, "bool", "int", "float" or "" for any other
        type, behind "category " where pandas holds categories of them.
    coded : bool
        Whether rows come as codes: `encode` then takes float64 arrays as they are.
    ranges : tuple of (ndarray or None)
        Of each column of a frame that holds whole numbers or days alone, the lowest and the highest.
    complete : bool
        Whether no cell is ever missing, in training or in prediction: nothing is then prepared for
        imputations.
    missing : tuple of str
        Text of a missing cell, beside that of every table.
    incomplete : tuple of int
        Columns of which a fit had missing cells.
    """

    categories: tuple[np.ndarray | None, ...]
    names: tuple[str, ...] | None = None
    frame: str | None = None
    types: tuple[str, ...] = ()
    coded: bool = False
    ranges: tuple[np.ndarray | None, ...] = ()
    complete: bool = False
    missing: tuple[str, ...] = ()
    incomplete: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.frame not in (None, *FRAMES):
            raise ValueError(f"frame must be a library of data frames; got {self.frame!r}.")
        if self.coded and self.names is not None:
            raise ValueError("Columns of codes have no names.")

    @classmethod
    def numbers(cls, n_columns: int, complete: bool = False) -> "Columns":
        """Columns of numbers without names."""
        return cls((None,) * n_columns, complete=complete)

    @classmethod
    def learn(
        cls, X: Any, categorical_features: Any = "from_dtype", missing: Sequence[str] = ()
    ) -> "Columns":
        """What the columns of a table hold.

        Parameters
        ----------
        X : data frame, Arrow table, array or list of rows
            Rows in memory; of sparse matrices and arrays of other libraries, columns of numbers.
        categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None
            Which columns hold categories: those whose type or text says so; those named, counted or
            marked; as in given columns; none.
        missing : sequence of str
            Text of a missing cell, beside `kinds.MISSING`.
        """
        if isinstance(categorical_features, Columns):
            return categorical_features
        by_type = isinstance(categorical_features, str)
        is_numeric = not holds_text(X) and frame_of(X) is None
        if is_numeric and (by_type or categorical_features is None):
            shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
            return cls.numbers(shape[1] if len(shape) == 2 else 1)
        cells, names, frame = _cells(X)
        chosen = () if by_type else _positions(categorical_features, len(cells), names)
        if frame == "pyarrow":
            about = frame_of(X).to_native().schema.metadata or {}
            missing = [*missing, *about.get(WORDS_KEY, b"").decode().splitlines()]
        named = cls((None,) * len(cells), names, missing=tuple(missing))
        categories: list[np.ndarray | None] = [None] * len(cells)
        ranges: list[np.ndarray | None] = [None] * len(cells)
        types = [_type_of(column) for column in cells]
        for i, column in enumerate(cells):
            kind = CATEGORY if i in chosen else named._kind_of(column, by_type)
            if kind == CATEGORY:
                values = distinct_texts(_values(column), missing)[1]
                categories[i] = sorted_categories(set(values))
                continue
            if kind == DATE:
                types[i] = DATE
            if frame is None and _form(column) != BY_CELLS:
                continue
            ranges[i] = _whole_range(named._numbers(i, column, kind, strict=True)[0])
        return replace(
            named,
            categories=tuple(categories),
            frame=frame,
            types=tuple(types),
            ranges=tuple(ranges),
        )

    def warn_of_text(self, X: Any) -> None:
        """One ColumnWarning that names the columns of a data frame whose text is read as numbers."""
        pairs = zip(_cells(X)[0], self.kinds, strict=True) if self.frame else ()
        text = [
            self.label(i) for i, (c, k) in enumerate(pairs) if k == NUMBER and _form(c) == BY_CELLS
        ]
        if text:
            warn(
                f"X holds text that reads as numbers: {', '.join(text)}. Name a column in "
                "categorical_features to keep it as categories.",
                ColumnWarning,
            )

    def _kind_of(self, column: Any, by_type: bool) -> str:
        """The kind of a column, a category only if `by_type`."""
        form = _form(column)
        if form != BY_CELLS:
            return form if form == DATE or (form == CATEGORY and by_type) else NUMBER
        cells = Cells(self.missing)
        cells.add(_values(column))
        kind = cells.kind or (NUMBER if NUMBER in cells.forms else DATE)  # to find odd ones
        return kind if by_type or kind == DATE else NUMBER

    # -- in and out --------------------------------------------------------------------------------

    def encode(self, X: Any, found: Found | None = None) -> np.ndarray:
        """Rows as numbers, (n, d) float64: codes of categories, days of dates, NaN where a cell is
        missing.

        ColumnWarning where a column holds other values alone than its few categories, and where a
        cell is neither number nor date: it is missing. A column without any is an error. With `found`
        such cells are counted there instead, and only the first batch may lack any number.
        """
        if self.coded:
            return np.asarray(X, np.float64)
        cells = _cells(X)[0]
        if len(cells) != len(self):
            raise ValueError(f"X has {len(cells)} features; the model was fitted to {len(self)}.")
        out = np.empty((len(cells[0]) if cells else 0, len(cells)))
        unread = []
        is_first = found is None or not found.n_rows
        for i, (column, values) in enumerate(zip(cells, self.categories, strict=True)):
            if values is None:
                out[:, i], n_bad, example = self._numbers(i, column, self.kinds[i], fewest=is_first)
                unread += [f"{self.label(i)} ({plural(n_bad, 'cell')} such as {example})"] * (
                    n_bad > 0
                )
                if found is not None:
                    found.unreadable[i] += n_bad
                continue
            at, texts = distinct_texts(_values(column), self.missing)
            place = codes_of(values.tolist())
            codes = [place.get(text, float(len(values))) for text in texts]
            out[:, i] = np.array([*codes, np.nan])[at]
            if found is not None:
                found.unknown[i] += np.count_nonzero(out[:, i] == len(values))
            elif 0 < len(values) <= FEW and min(codes, default=0) == len(values):
                warn(
                    f"{self.label(i)} of X holds none of the categories that it had in the fit: "
                    f"found {listed(sorted(set(texts)))}, expected {listed(values.tolist())}.",
                    ColumnWarning,
                )
        if found is not None:
            found.n_incomplete += int(np.isnan(out).any(axis=1).sum())
            found.n_rows += len(out)
        elif unread:
            warn(
                f"Cells of X that cannot be read are taken as missing: {'; '.join(unread)}.",
                ColumnWarning,
            )
        return out

    def _numbers(
        self, i: int, column: Any, kind: str, strict: bool = False, fewest: bool = True
    ) -> tuple[np.ndarray, int, str]:
        """Numbers or days of a column, NaN where a cell is missing or cannot be read, (n,); how many
        of these there are; and the first. One is an error where it is `strict`, or, where there must be
        a number, `fewest`, there is none.
        """
        x, bad = _parsed(column, kind, self.missing)
        if not bad.any():
            return x, 0, ""
        row = int(np.argmax(bad))
        cell = quoted(column[row])
        if strict or (fewest and np.isnan(x).all()):
            looks, advice = odd_cell(column[row])
            raise TableError(
                f"{_capital(self.label(i))} of X must hold {kind}s; row {row} holds {cell}"
                + f" ({looks})" * bool(looks)
                + ".",
                advice or "If it is a column of categories, name it in categorical_features.",
                cell=(row, i),
            )
        return x, int(bad.sum()), cell

    def decode(self, x: np.ndarray) -> Any:
        """The table that rows of numbers stand for, a data frame of the library that was learned
        from, where one was; otherwise an array, of objects with text if there are categories.

        Categories have the type that they had in a data frame, None where one is missing or any other
        value; dates are timestamps there, and days in an array. Numbers are float64, int64 where
        they were integers in a data frame and none is missing.
        """
        if self.coded or (self.frame is None and not any(self.levels)):
            return x
        types = [""] * len(self) if self.frame is None else self.types
        cells = [self._decoded(i, x[:, i], kind) for i, kind in enumerate(types)]
        if self.frame is None:
            return np.array([column.tolist() for column in cells], dtype=object).T
        names = self._names()
        columns = {
            n: c.tolist() if c.dtype == object else c for n, c in zip(names, cells, strict=True)
        }
        if self.frame == "pandas":
            import pandas as pd

            for i, (name, kind) in enumerate(zip(names, types, strict=True)):
                if self.levels[i] and kind.startswith("category"):
                    known = self._decoded(i, np.arange(self.levels[i] - 1.0), kind)
                    columns[name] = pd.Categorical(columns[name], categories=known)
        frame: Any = self.frame
        return nw.from_dict(columns, backend=frame).to_native()

    def imputed(self, X: Any, x: np.ndarray, imputations: np.ndarray) -> Any:
        """`X`, which is x (n, d) when encoded, with `imputations`, `rounded`, in its missing cells and all
        else as it is: a table like X where the columns were learned from a data frame, otherwise an
        array.
        """
        missing = np.isnan(x)
        imputations = self.rounded(imputations)
        frame = None if self.frame is None else frame_of(X)
        if self.coded or (frame is None and not any(self.levels)):
            return np.where(missing, imputations, x)
        columns = _cells(X)[0]
        completed = {}
        for i in np.flatnonzero(missing.any(axis=0)).tolist():
            kind = _type_of(columns[i]) or (self.types[i] if self.types else "")
            cells = self._decoded(i, imputations[missing[:, i], i], kind).tolist()
            values = iter(_dates_like(columns[i], cells) if self.kinds[i] == DATE else cells)
            pairs = zip(_listed(columns[i]), missing[:, i], strict=True)
            completed[i] = [next(values) if empty else cell for cell, empty in pairs]
        if frame is None:
            return np.array(
                [completed.get(i) or _listed(column) for i, column in enumerate(columns)], object
            ).T
        for i, cells in completed.items():
            column = nw.from_native(_like(nw.to_native(columns[i]), cells), series_only=True)
            held_nan = self.types[i] == "int" and column.dtype.is_float()  # pandas: no int does
            if held_nan and (column == column.round()).all():
                column = column.cast(nw.Int64)
            frame = frame.with_columns(column.alias(columns[i].name))
        return frame.to_native()

    def rounded(self, x: np.ndarray) -> np.ndarray:
        """Rows from a model, (n, d), with whole numbers within the range of their column where it
        held whole ones alone.
        """
        x = np.array(x)
        for i, bounds in enumerate(self.ranges):
            if bounds is not None:
                x[:, i] = np.clip(np.round(x[:, i]), *bounds)
        return x

    def of_codes(self) -> "Columns":
        """The same columns for rows that are encoded already."""
        return replace(self, names=None, frame=None, coded=True, ranges=())

    def select(self, at: Sequence[int]) -> "Columns":
        """Some of the columns, by position."""
        return replace(
            self,
            categories=tuple(self.categories[i] for i in at),
            names=None if self.names is None else tuple(self.names[i] for i in at),
            types=tuple(self.types[i] for i in at) if self.types else (),
            ranges=tuple(self.ranges[i] for i in at) if self.ranges else (),
            incomplete=tuple(place for place, i in enumerate(at) if i in self.incomplete),
        )

    def positions(self, chosen: Sequence[Any], argument: str) -> list[int]:
        """Columns that are named, counted or marked in an argument, as positions."""
        at = _positions(chosen, len(self), self.names, argument)
        if not at:
            raise KernelpoolError(f"{argument} must hold at least one column.")
        return at

    # -- shapes ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.categories)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many codes each column has, that of other values included; 0 for numbers."""
        return tuple(0 if values is None else len(values) + 1 for values in self.categories)

    def label(self, i: int) -> str:
        """A column as a message names it."""
        return f"column {i}" if self.names is None else f"column {shorten(self.names[i], 200)!r}"

    # -- complete numbers --------------------------------------------------------------------------

    def indicators(self, x: np.ndarray) -> np.ndarray:
        """Encoded rows for networks that take numbers alone, (n, D): the numbers, then an indicator
        for each category.

        Two categories of a column lie one apart; another value has no indicator, and those of a
        missing cell are NaN.
        """
        return indicators_of(x, self.levels)

    @cached_property
    def sources(self) -> np.ndarray:
        """The column that each of the numbers of `indicators` is made of, (D,)."""
        numbers = [i for i, n in enumerate(self.levels) if not n]
        hot = [i for i, n in enumerate(self.levels) for _ in range(_n_indicators(n))]
        return np.array([*numbers, *hot], int)

    def _names(self) -> list[str]:
        return list(map(str, range(len(self)))) if self.names is None else list(self.names)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Of each column "number", "category" or "date"."""
        types = self.types or ("",) * len(self)
        return tuple(
            CATEGORY if values is not None else DATE if kind == DATE else NUMBER
            for values, kind in zip(self.categories, types, strict=True)
        )

    def _decoded(self, i: int, codes: np.ndarray, kind: str) -> np.ndarray:
        """Numbers of a column as its cells of a type, objects where some are text or missing, (n,)."""
        values = self.categories[i]
        kind = kind.removeprefix("category ")
        if values is None:
            if kind == DATE:
                return stamps_of(codes)
            whole = kind == "int" and (codes == np.round(codes)).all()
            return codes.astype(np.int64) if whole else codes
        try:
            known = [READ.get(kind, str)(value) for value in values]
        except (KeyError, ValueError):  # the type is that of another table
            known = list(values)
            kind = ""
        at = np.where(np.isnan(codes), len(values), codes).astype(int)
        cells = np.array([*known, None], dtype=object)[np.minimum(at, len(values))]
        return np.array(cells.tolist()) if kind in READ and None not in cells else cells


def stamps_of(days: np.ndarray) -> np.ndarray:
    """Days since 1970 as time stamps of NumPy, NaT where one is missing, (n,)."""
    stamps = np.full(len(days), "NaT", "datetime64[us]")
    known = np.isfinite(days)
    stamps[known] = np.round(days[known] * MICROSECONDS).astype("datetime64[us]")
    return stamps


def indicators_of(x: np.ndarray, levels: tuple[int, ...]) -> np.ndarray:
    """`Columns.indicators` of columns with so many levels."""
    if not any(levels):
        return x
    blocks = [x[:, [i for i, n in enumerate(levels) if not n]]]
    for i, n in enumerate(levels):
        if n:
            k = _n_indicators(n)
            code = np.where(x[:, i] >= n - 1, -1, x[:, i] % max(k, 1))
            hot = (code[:, None] == np.arange(k)) * x.dtype.type(APART)
            hot[np.isnan(x[:, i])] = np.nan
            blocks.append(hot)
    return np.concatenate(blocks, axis=1)


def _n_indicators(n_levels: int) -> int:
    return min(max(n_levels - 1, 0), MOST_INDICATORS)


def reason_to_leave_out(values: Sequence[str], n_rows: int) -> str | None:
    """Why no model can learn from a column of categories with these values, none twice, in so many
    rows; None where one can.
    """
    examples = listed(values[:2])
    if len(values) and all(re.fullmatch(AMBIGUOUS_DATE, value) for value in values):
        return f"it holds dates such as {examples}; write them as 2024-01-31"
    if len(values) > FEW and len(values) > n_rows / 2:
        return (
            f"nearly every row has a value of its own ({len(values):,} in {n_rows:,}: {examples})"
        )
    return None


def sorted_categories(texts: set[Any]) -> np.ndarray:
    """The categories of a column that holds these texts: of booleans one each, False first."""
    if texts <= BOOLEANS.keys():
        one = {BOOLEANS[text]: text for text in sorted(texts)}
        return np.array([one[same] for same in sorted(one)], dtype=object)
    return np.array(sorted(texts), dtype=object)


def codes_of(values: Sequence[str]) -> dict[str, float]:
    """The code of each text that stands for one of the categories: of booleans True, true, TRUE, 1
    and 1.0, of whole numbers 2 and 2.0.
    """
    code = {value: float(i) for i, value in enumerate(values)}
    if code.keys() <= BOOLEANS.keys():
        return {text: i for value, i in code.items() for text in BOOLEANS[value]}
    whole = {v: i for v, i in code.items() if re.fullmatch(r"-?[0-9]+(\.0)?", v)}
    return {v.removesuffix(".0") if "." in v else f"{v}.0": i for v, i in whole.items()} | code


# -- tables of any kind ----------------------------------------------------------------------------


def holds_text(X: Any) -> bool:
    """Whether an array or a list of rows may hold more than numbers."""
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple):
        return any(isinstance(cell, str | date) for row in X for cell in row)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return False
    types = set(map(type, X.flat)) if X.dtype == object else ()
    return X.dtype.kind in "UM" or any(issubclass(t, str | bool | np.bool_ | date) for t in types)


def frame_of(X: Any) -> Any:
    """A data frame in memory as narwhals has it; None for anything else."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame
    return nw.from_arrow(X, backend="pyarrow") if is_table(X) else None


def _cells(X: Any) -> tuple[list[Any], tuple[str, ...] | None, str | None]:
    """The columns of a table, their names where it has them, and the library of a data frame."""
    frame = frame_of(X)
    if frame is not None:
        named = all(isinstance(name, str) for name in frame.columns)
        library = frame.implementation.value if named else None
        names = tuple(map(str, frame.columns)) if named else None
        return list(frame.iter_columns()), names, library if library in FRAMES else None
    cells = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {cells.ndim}D array instead. Reshape your data: X[None] is "
            "one row, X[:, None] one column."
        )
    return list(cells.T), None, None


def as_table(X: Any) -> Any:
    """Rows, of a single one too."""
    if hasattr(X, "to_frame"):  # a row of a data frame
        return X.to_frame().T.infer_objects()
    if hasattr(X, "columns"):
        return X
    X = to_numpy(X) if hasattr(X, "__dlpack__") else X
    return [X] if np.ndim(X) == 1 else X


def _positions(
    chosen: Any, d: int, names: tuple[str, ...] | None, argument: str = "categorical_features"
) -> list[int]:
    """Columns that are named, counted or marked, as positions."""
    marks = [] if chosen is None else list(chosen)
    if marks and all(isinstance(mark, bool | np.bool_) for mark in marks):
        if len(marks) != d:
            raise KernelpoolError(
                f"{argument} must mark each of the {d} columns of X; got {len(marks)} marks."
            )
        return np.flatnonzero(marks).tolist()
    known: dict[Any, int] = {
        **{name: i for i, name in enumerate(names or ())},
        **{i: i for i in range(d)},
    }
    unknown = [mark for mark in marks if mark not in known]
    if unknown:
        what = "positions" if names is None else "names of columns or positions"
        raise KernelpoolError(
            f"{argument} must be {what} below {d}; got {shorten(repr(unknown[0]), 200)}."
        )
    return [known[mark] for mark in marks]


def names_of(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a table; None where it has none."""
    return _cells(X)[1]


def texts_of(X: Any, i: int) -> tuple[np.ndarray, list[str]]:
    """The position of each cell of a column among its distinct texts, -1 where it is missing, (n,);
    and these texts.
    """
    return distinct_texts(_values(_cells(X)[0][i]))


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


# -- one column ------------------------------------------------------------------------------------


def _form(column: Any) -> str | None:
    """What a column holds by its type, `BY_CELLS` where its cells decide; None for what no model
    takes.
    """
    if isinstance(column, np.ndarray) and column.dtype != object:
        return {"U": BY_CELLS, "M": DATE}.get(column.dtype.kind, NUMBER)
    dtype = column.dtype
    if dtype in OBJECTS:
        cells = {type(cell): cell for cell in _listed(column) if not is_missing(cell)}.values()
        if not all(isinstance(cell, KNOWN_TYPES) for cell in cells) or any(
            map(np.iscomplexobj, cells)
        ):
            return None
        return BY_CELLS if any(isinstance(cell, TEXTS) for cell in cells) else NUMBER
    if dtype in (nw.Date, nw.Datetime):
        return DATE
    if dtype in (nw.Boolean, nw.Categorical, nw.Enum):
        return CATEGORY
    return BY_CELLS if dtype == nw.String else NUMBER if dtype.is_numeric() else None


def _listed(column: Any) -> list[Any]:
    """The cells of a column as values of Python."""
    return list(column.tolist() if isinstance(column, np.ndarray) else column.to_list())


def _values(column: Any) -> Any:
    """The cells of a column, as an Arrow array where there can be one."""
    if isinstance(column, np.ndarray) or column.dtype in OBJECTS:
        return _listed(column)
    try:
        return column.to_arrow()
    except (ModuleNotFoundError, UnicodeEncodeError):  # no pyarrow; halves of characters
        return _listed(column)


def _type_of(column: Any) -> str:
    """The name in `READ` of the type of the cells, "date", or ""."""
    dtype = column.dtype
    if isinstance(column, np.ndarray):
        return ""
    if column.implementation.is_pandas() and str(column.to_native().dtype) == "category":
        return f"category {_type_of(column.cat.get_categories())}"
    if dtype == nw.Object:
        types = {type(cell).__name__ for cell in _listed(column) if not is_missing(cell)}
        return types.pop() if len(types) == 1 and types <= READ.keys() else ""
    name = str(dtype).lower().removeprefix("u")  # unsigned
    return next((kind for kind in (*READ, DATE) if name.startswith(kind)), "")


def _whole_range(x: np.ndarray) -> np.ndarray | None:
    """The lowest and the highest of whole numbers, (2,); None where there are others."""
    x = x[np.isfinite(x)]
    whole = len(x) and (x == np.round(x)).all() and np.abs(x).max() < MOST_WHOLE
    return np.array([x.min(), x.max()]) if whole else None


def _parsed(column: Any, kind: str, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, or days where the kind is a date, NaN where a cell is missing or cannot be read; and
    where it cannot be read, (n,) both.
    """
    form = _form(column)
    if form == DATE:
        days = _days(column)
        is_bad = ~np.isnan(days) & (kind != DATE)
        return np.where(is_bad, np.nan, days), is_bad
    if form == NUMBER or (form == CATEGORY and column.dtype == nw.Boolean):
        x = _floats(column)
        infinite = np.isinf(x) & (not isinstance(column, np.ndarray))  # refused in arrays
        return np.where(infinite, np.nan, x), infinite
    if form is None:
        bad = np.array([not is_missing(cell) for cell in _listed(column)], bool)
        return np.full(len(bad), np.nan), bad
    return (parsed_days if kind == DATE else parsed_numbers)(_values(column), missing)


def _floats(column: Any) -> np.ndarray:
    dtype = column.dtype
    if dtype in OBJECTS:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in _listed(column)])
    if isinstance(column, np.ndarray):
        return np.ma.filled(column.astype(np.float64), np.nan)
    if dtype in (nw.Boolean, nw.Int128, nw.UInt128):
        column = column.cast(nw.Float64)
    return np.asarray(column.to_numpy(), np.float64)


def _days(column: Any) -> np.ndarray:
    """Typed dates as days since 1970, NaN where one is missing, (n,)."""
    if not isinstance(column, np.ndarray):
        return _floats(column.dt.timestamp("us")) / MICROSECONDS
    days = column.astype("datetime64[us]").astype(np.float64) / MICROSECONDS
    return np.where(np.isnat(column), np.nan, days)


def _dates_like(column: Any, stamps: list[Any]) -> list[Any]:
    """Timestamps in UTC as cells of a column."""
    form = _form(column)
    if form == BY_CELLS:
        return [str(stamp).removesuffix(" 00:00:00") for stamp in stamps]
    if form == DATE and column.dtype == nw.Date:
        return [stamp.date() for stamp in stamps]
    if form == DATE and column.dtype.time_zone is not None:
        return [stamp.replace(tzinfo=UTC) for stamp in stamps]
    return stamps


def _like(column: Any, cells: list[Any]) -> Any:
    """Cells as a column of the type and index of another, where they fit."""
    library = type(column).__module__.partition(".")[0]
    if library == "pyarrow":
        import pyarrow as pa

        try:
            return pa.chunked_array([cells], column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.chunked_array([cells])
    if library != "pandas":
        return type(column)(column.name, cells, column.dtype, strict=False)
    if hasattr(column, "cat"):
        new = [v for v in dict.fromkeys(cells) if v not in column.cat.categories]
        column = column.cat.add_categories(new)
    series = type(column)(cells, column.index, object)
    try:
        return series.astype(column.dtype)
    except (TypeError, ValueError):
        return series.infer_objects()
