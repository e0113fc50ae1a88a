"""The columns of a table: their names, which of them hold categories, and the codes of their
cells.

`Columns.learn` is called once, at the fit. `encode` is the only way in and `decode` the only way
out; between them a category is the position of its text among the sorted categories of its column.
The code after the last stands for any other value, and NaN for a missing cell. Space around text is
no part of it, and empty text is a missing cell.

=================================================  ================================
a column of                                        holds
=================================================  ================================
strings, categories (ordered ones too), booleans   categories
floats, integers (nullable ones too), decimals     numbers
Python objects                                     categories, if any of them is text or a boolean
dates, times, durations                            neither: an error
=================================================  ================================
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..errors import ColumnWarning, KernelpoolError, warn
from ..records import saved
from ..text import is_missing, listed, shorten
from .kinds import BOOLEANS, FEW, TRUE, arrow_codes

CATEGORICAL = ("string", "large_string", "str", "cat", "enum", "bool", "dictionary", "utf8")
"""How the names of types of categories begin, in pandas, polars and Arrow."""

DATE_TYPES = ("date", "time", "duration", "period", "month", "interval")
"""How the names of types of dates begin."""

MOST_INDICATORS = 64
"""Indicators of a column; of more categories, those whose codes are equal modulo this number share
one.
"""

DATE_TEXT = r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})([T ].*)?"
"""A date as text."""

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


@saved(eq=False)
class Columns:
    """Names, types and categories of the columns of a table.

    Attributes
    ----------
    categories : tuple of (ndarray of str or None)
        Of each column the sorted values as text, objects; None for numbers.
    names : tuple of str or None
        Names of the columns; None where the table had none.
    frame : {"pandas", "polars", "pyarrow"} or None
        The library of the data frame that was learned from; None for an array.
    types : tuple of str
        Of each column of such a frame, "bool", "int", "float" or "" for any other type, behind
        "category " where pandas holds categories of them.
    coded : bool
        Whether rows come as codes: `encode` then takes float64 arrays as they are.
    ranges : tuple of (ndarray or None)
        Of each column of such a frame that holds whole numbers alone, the lowest and the highest.
    complete : bool
        Whether no cell is ever missing, in training or in prediction: nothing is then prepared for
        imputations.
    """

    categories: tuple[np.ndarray | None, ...]
    names: tuple[str, ...] | None = None
    frame: str | None = None
    types: tuple[str, ...] = ()
    coded: bool = False
    ranges: tuple[np.ndarray | None, ...] = ()
    complete: bool = False

    def __post_init__(self) -> None:
        if self.frame not in (None, "pandas", "polars", "pyarrow"):
            raise ValueError(f"frame must be a library of data frames; got {self.frame!r}.")
        if self.coded and self.names is not None:
            raise ValueError("Columns of codes have no names.")

    @classmethod
    def numbers(cls, n_columns: int, complete: bool = False) -> "Columns":
        """Columns of numbers without names."""
        return cls((None,) * n_columns, complete=complete)

    @classmethod
    def learn(cls, X: Any, categorical_features: Any = "from_dtype") -> "Columns":
        """What the columns of a table hold.

        Parameters
        ----------
        X : data frame of pandas or polars, Arrow table, array or list of rows
            Rows in memory; of sparse matrices and arrays of other libraries, columns of numbers.
        categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None
            Which columns hold categories: those whose type says so; those named, counted or marked;
            as in given columns; none.
        """
        if isinstance(categorical_features, Columns):
            return categorical_features
        by_type = isinstance(categorical_features, str)
        if not _is_table(X) and (by_type or categorical_features is None):
            shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
            return cls.numbers(shape[1] if len(shape) == 2 else 1)
        cells, names, frame = _cells(X)
        chosen = (
            [i for i, column in enumerate(cells) if _is_categorical(column)]
            if by_type
            else _positions(categorical_features, len(cells), names)
        )
        categories = [
            _sorted_text(column) if i in chosen else None for i, column in enumerate(cells)
        ]
        if frame is None:
            return cls(tuple(categories), names)
        types = tuple(_type_of(column) for column in cells)
        ranges = tuple(
            _whole_range(column) if values is None else None
            for column, values in zip(cells, categories, strict=True)
        )
        return cls(tuple(categories), names, frame, types, ranges=ranges)

    # -- in and out --------------------------------------------------------------------------------

    def encode(self, X: Any) -> np.ndarray:
        """Rows as numbers, (n, d) float64: codes of categories, NaN where a cell is missing.

        ColumnWarning where a column holds other values alone than its few categories.
        """
        if self.coded:
            return np.asarray(X, np.float64)
        cells = _cells(X)[0]
        if len(cells) != len(self.categories):
            raise ValueError(
                f"X has {len(cells)} features; the model was fitted to {len(self.categories)}."
            )
        out = np.empty((len(cells[0]) if cells else 0, len(cells)))
        for i, (column, values) in enumerate(zip(cells, self.categories, strict=True)):
            if values is None:
                out[:, i] = _numbers(column, self.label(i))
                continue
            out[:, i] = _codes(column, values)
            if len(values) <= FEW and np.nanmin(out[:, i], initial=np.inf) == len(values):
                warn(
                    f"{self.label(i)} of X holds none of the categories that it had in the fit: "
                    f"found {listed(_sorted_text(column).tolist())}, expected "
                    f"{listed(values.tolist())}.",
                    ColumnWarning,
                )
        return out

    def decode(self, x: np.ndarray) -> Any:
        """The table that rows of numbers stand for, a data frame of the library that was learned
        from, where one was; otherwise an array, of objects with text if there are categories.

        Categories have the type that they had in a data frame, None where one is missing or any other
        value. Numbers are float64, int64 where they were integers in a data frame and none is
        missing.
        """
        if self.coded or (self.frame is None and not any(self.levels)):
            return x
        kinds = [""] * len(self) if self.frame is None else self.types
        cells = [self._decoded(i, x[:, i], kind) for i, kind in enumerate(kinds)]
        if self.frame is None:
            return np.array([column.tolist() for column in cells], dtype=object).T
        import importlib

        columns = dict(zip(self._names(), cells, strict=True))
        if self.frame != "pandas":
            library = importlib.import_module(self.frame)
            lists = {n: c.tolist() if c.dtype == object else c for n, c in columns.items()}
            return library.table(lists) if self.frame == "pyarrow" else library.DataFrame(lists)
        import pandas as pd

        for i, (name, kind) in enumerate(zip(columns, kinds, strict=True)):
            if self.levels[i] and kind.startswith("category"):
                known = self._decoded(i, np.arange(self.levels[i] - 1.0), kind)
                columns[name] = pd.Categorical(columns[name], categories=known)
        return pd.DataFrame(columns)

    def imputed(self, X: Any, x: np.ndarray, imputations: np.ndarray) -> Any:
        """`X`, which is x (n, d) when encoded, with `imputations`, `rounded`, in its missing cells and all
        else as it is: a table like X where the columns were learned from a data frame, otherwise an
        array.
        """
        missing = np.isnan(x)
        imputations = self.rounded(imputations)
        frame = None if self.frame is None else _library(X)
        if self.coded or (frame is None and not any(self.levels)):
            return np.where(missing, imputations, x)
        columns = _cells(X)[0]
        completed = {}
        for i in np.flatnonzero(missing.any(axis=0)).tolist():
            kind = _type_of(columns[i]) or (self.types[i] if self.types else "")
            values = iter(self._decoded(i, imputations[missing[:, i], i], kind).tolist())
            pairs = zip(_listed(columns[i]), missing[:, i], strict=True)
            completed[i] = [next(values) if empty else cell for cell, empty in pairs]
        if frame is None:
            return np.array(
                [completed.get(i) or _listed(column) for i, column in enumerate(columns)], object
            ).T
        out = X.copy() if frame == "pandas" else X
        for i, cells in completed.items():
            if frame == "pandas":
                column = _like_pandas(columns[i], cells)
                whole = self.types[i] == "int" and column.dtype == float  # a float to hold NaN
                whole = whole and (column == column.round()).all()
                out.isetitem(i, column.astype(np.int64) if whole else column)
            elif frame == "pyarrow":
                out = out.set_column(i, out.column_names[i], _like_arrow(columns[i], cells))
            else:
                name = columns[i].name
                kind = columns[i].dtype
                out = out.with_columns(type(columns[i])(name, cells, kind, strict=False))
        return out

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
        return replace(self, names=None, frame=None, types=(), coded=True, ranges=())

    def select(self, at: Sequence[int]) -> "Columns":
        """Some of the columns, by position."""
        return replace(
            self,
            categories=tuple(self.categories[i] for i in at),
            names=None if self.names is None else tuple(self.names[i] for i in at),
            types=tuple(self.types[i] for i in at) if self.types else (),
            ranges=tuple(self.ranges[i] for i in at) if self.ranges else (),
        )

    def positions(self, chosen: Sequence[Any], argument: str) -> list[int]:
        """Columns that are named, counted or marked in an argument, as positions."""
        at = _positions(chosen, len(self), self.names, argument)
        if not at:
            raise KernelpoolError(f"{argument} must hold at least one column.")
        return at

    def unknown(self, X: Any) -> dict[str, int]:
        """How many cells of each categorical column hold a value that is not among its
        categories.
        """
        x = self.encode(X)
        return {
            name: int((x[:, i] == n - 1).sum())
            for i, (name, n) in enumerate(zip(self._names(), self.levels, strict=True))
            if n
        }

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

    def _decoded(self, i: int, codes: np.ndarray, kind: str) -> np.ndarray:
        """Numbers of a column as its cells of a type, objects where some are text or missing, (n,)."""
        values = self.categories[i]
        kind = kind.removeprefix("category ")
        if values is None:
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
    if len(values) and all(re.fullmatch(DATE_TEXT, value) for value in values):
        return f"it holds dates such as {examples}"
    if len(values) > FEW and len(values) > n_rows / 2:
        return (
            f"nearly every row has a value of its own ({len(values):,} in {n_rows:,}: {examples})"
        )
    return None


# -- tables of any kind ----------------------------------------------------------------------------


def _is_table(X: Any) -> bool:
    """Whether a table, or an array that may hold categories: arrays of numbers need no look."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "OU" and X.ndim == 2
    if isinstance(X, list | tuple):
        first = X[0] if len(X) else ()
        return isinstance(first, list | tuple) and any(
            isinstance(cell, str) for row in X for cell in row
        )
    return _library(X) is not None


def _library(X: Any) -> str | None:
    """The library of a data frame in memory."""
    name = type(X).__module__.partition(".")[0]
    is_frame = hasattr(X, "columns") and hasattr(X, "shape")
    return name if is_frame and name in ("pandas", "polars", "pyarrow") else None


def _cells(X: Any) -> tuple[list[Any], tuple[str, ...] | None, str | None]:
    """The columns of a table, their names where it has them, and the library of a data frame."""
    frame = _library(X)
    if frame == "pyarrow":
        return list(X.columns), tuple(map(str, X.column_names)), frame
    if frame == "polars":
        return X.get_columns(), tuple(map(str, X.columns)), frame
    if frame == "pandas":
        named = all(isinstance(name, str) for name in X.columns)
        columns = [X.iloc[:, i] for i in range(X.shape[1])]
        return columns, tuple(map(str, X.columns)) if named else None, frame if named else None
    cells = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {cells.ndim}D array instead. Reshape your data: X[None] is "
            "one row, X[:, None] one column."
        )
    return list(cells.T), None, None


def _type_name(column: Any) -> str:
    return str(getattr(column, "dtype", getattr(column, "type", ""))).lower()


def _type_of(column: Any) -> str:
    kind = _type_name(column).removeprefix("dictionary<values=")
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas
        return f"category {_type_of(column.cat.categories)}"
    if kind.startswith("object"):
        kinds = {type(cell).__name__ for cell in _listed(column) if not is_missing(cell)}
        kind = kinds.pop() if len(kinds) == 1 else ""
    starts = {"bool": "bool", "int": "int", "uint": "int", "float": "float", "double": "float"}
    return next((name for start, name in starts.items() if kind.startswith(start)), "")


def _whole_range(column: Any) -> np.ndarray | None:
    """The lowest and the highest of whole numbers, (2,); None where the column holds others."""
    if not _type_name(column).startswith(("int", "uint", "float", "double")):
        return None
    x = _numbers(column, "column")
    x = x[np.isfinite(x)]
    whole = len(x) and (x == np.round(x)).all() and np.abs(x).max() < MOST_WHOLE
    return np.array([x.min(), x.max()]) if whole else None


def _is_categorical(column: Any) -> bool:
    """Whether a column holds categories, by its type; of Python objects, by what is in it."""
    kind = _type_name(column)
    if kind.startswith("object"):
        types = set(map(type, _listed(column)))
        return any(issubclass(t, str | bool | np.bool_) for t in types)
    return kind.startswith(CATEGORICAL) and not (
        isinstance(column, np.ndarray) and column.dtype == bool
    )


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


# -- one column ------------------------------------------------------------------------------------


def _listed(column: Any) -> list[Any]:
    """The cells of a column as values of Python."""
    if hasattr(column, "to_pylist"):  # Arrow
        return list(column.to_pylist())
    return list(np.asarray(column, object).tolist())


def _like_pandas(column: Any, cells: list[Any]) -> Any:
    """Cells as a column of the type and index of another, where they fit."""
    import pandas as pd

    if hasattr(column, "cat"):
        new = [v for v in dict.fromkeys(cells) if v not in column.cat.categories]
        column = column.cat.add_categories(new)
    series = pd.Series(cells, column.index, object)
    try:
        return series.astype(column.dtype)
    except (TypeError, ValueError):
        return series.infer_objects()


def _like_arrow(column: Any, cells: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(cells, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(cells)


def _sorted_text(column: Any) -> np.ndarray:
    """The distinct values of a column as text, sorted, missing ones left out."""
    at, text = _factorized(column)
    return sorted_categories({text[i] for i in np.unique(at[at >= 0]).tolist()} - {None})


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


def _codes(column: Any, values: np.ndarray) -> np.ndarray:
    """The code of each cell among `values`, their number for any other, NaN where one is missing,
    (n,).
    """
    at, text = _factorized(column)
    place = codes_of(values.tolist())
    code = [np.nan if t is None else place.get(t, float(len(values))) for t in text]
    return np.array([*code, np.nan])[at]  # -1, the last: missing


def _factorized(column: Any) -> tuple[np.ndarray, list[str | None]]:
    """The position of each cell among some distinct values, -1 where it is missing, (n,); and these
    values as text.

    Cells are hashed, not looked at one by one; two values may have the same text.
    """
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas
        return np.asarray(column.cat.codes), [_text_of(v) for v in column.cat.categories.tolist()]
    if hasattr(column, "dictionary_encode"):  # Arrow
        at, values = arrow_codes(column)
        return at, [_text_of(value) for value in values]
    cells = _listed(column)
    types = set(map(type, cells))
    if len(types & {bool, np.bool_}) and not types <= {bool, str, type(None)}:
        cells = [_text_of(cell) for cell in cells]  # True and 1 are equal, and two categories
    try:
        values = list(dict.fromkeys(cells))
    except TypeError:  # what cannot be hashed
        cells = [_text_of(cell) for cell in cells]
        values = list(dict.fromkeys(cells))
    place = {value: i for i, value in enumerate(values)}
    return np.fromiter(map(place.__getitem__, cells), int, len(cells)), [
        _text_of(value) for value in values
    ]


def _text_of(cell: Any) -> str | None:
    """A value as text, whole numbers alike whatever their type; None where it is missing."""
    if isinstance(cell, str):
        return cell.strip() or None
    if is_missing(cell):
        return None
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if cell.is_integer() else repr(float(cell))
    return str(cell)


def _numbers(column: Any, name: str) -> np.ndarray:
    """A column as float64, NaN where a cell is missing, (n,)."""
    kind = _type_name(column)
    name = f"{name[0].upper()}{name[1:]}"
    if kind.startswith(DATE_TYPES):
        raise KernelpoolError(
            f"{name} of X holds dates ({kind}), neither categories nor numbers; leave it out, or "
            "make a number of it, such as days since some day."
        )
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.filled(column.astype(np.float64), np.nan)
    try:
        if hasattr(column, "isna"):  # pandas
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    cells = _listed(column)
    out = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            out[i] = np.nan if is_missing(cell) else float(cell)
        except (TypeError, ValueError):
            raise KernelpoolError(
                f"{name} of X must hold numbers; row {i} holds {shorten(repr(cell), 100)}. "
                f"If it is a column of categories, name it in categorical_features."
            ) from None
    return out
