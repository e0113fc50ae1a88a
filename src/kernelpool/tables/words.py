"""Tables of words and numbers as rows of numbers: a word becomes the code of its level.

Which columns hold words is told by their types or by the user. The levels of a column are the words that were seen at the fit,
sorted; the code after the last one stands for any other word, and for those that are too rare to be told apart. A missing cell
is NaN.

=================================================  =====================================================
a column of                                        is taken for
=================================================  =====================================================
strings, categories (ordered ones too), booleans   words
floats, integers (nullable ones too), decimals     numbers
dates, times, durations                            neither: an error
Python objects                                     words, if any of them is text or a boolean
=================================================  =====================================================
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..arrays import Array, device, namespace
from ..errors import KernelpoolError
from ..text import shorten

WORDS = (
    "string",
    "large_string",
    "str",
    "category",
    "categorical",
    "enum",
    "bool",
    "dictionary",
    "utf8",
)
"""How the names of types of words begin, in pandas, polars and Arrow."""

DATES = ("date", "time", "duration", "period", "month", "interval")
"""How the names of types of dates begin."""


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table, and the levels of those that hold words."""

    categories: tuple[np.ndarray | None, ...]
    """Of each column the words that are told apart; None for numbers."""
    names: tuple[str, ...] | None = None
    patterns: tuple[int, ...] = ()
    """Columns of which it is told, in columns behind all others, whether a cell is missing: 1 where it is."""

    @property
    def levels(self) -> tuple[int, ...]:
        """How many levels each column has, other words included; 0 for numbers, 2 for what tells of missing cells."""
        return (
            *(0 if words is None else len(words) + 1 for words in self.categories),
            *(2 for _ in self.patterns),
        )

    @cached_property
    def _codes(self) -> list[dict[str, int] | None]:
        return [
            None if words is None else {str(w): i for i, w in enumerate(words)}
            for words in self.categories
        ]

    def coded(self, X: Any) -> np.ndarray:
        """Rows as numbers, (n, d): codes of words, NaN where a cell is missing."""
        columns = self._columns(X)
        out = np.empty((len(columns[0]) if columns else 0, len(columns)))
        for i, (column, place) in enumerate(zip(columns, self._codes, strict=True)):
            if place is None:
                out[:, i] = as_numbers(column, self.name(i))
            else:
                out[:, i] = _codes_of(column, place)
        return np.hstack([out, np.isnan(out[:, list(self.patterns)])]) if self.patterns else out

    def decoded(self, x: np.ndarray) -> np.ndarray:
        """Rows of numbers as the table has them, (n, d), objects: words as text, None for a word that has no level."""
        x = x[:, : len(self.categories)]
        if all(words is None for words in self.categories):
            return x
        out = np.array(x, dtype=object)
        for i, words in enumerate(self.categories):
            if words is not None:
                known = np.array([*words, None, np.nan], dtype=object)
                out[:, i] = known[np.where(np.isnan(x[:, i]), len(words) + 1, x[:, i]).astype(int)]
        return out

    def with_patterns(self, X: Any) -> "TableColumns":
        """The same, and told of each column of X that lacks a cell which of its cells are missing."""
        return replace(
            self, patterns=tuple(np.flatnonzero(np.isnan(self.coded(X)).any(axis=0)).tolist())
        )

    def unknown_words(self, X: Any) -> dict[str, int]:
        """How many cells of each column of words hold one that has no level."""
        found = {}
        for i, (column, place) in enumerate(zip(self._columns(X), self._codes, strict=True)):
            if place is not None:
                name = str(i) if self.names is None else self.names[i]
                found[name] = sum(
                    word is not None and word not in place for word in as_words(column)
                )
        return found

    def name(self, i: int) -> str:
        """A column as a user would name it."""
        return f"column {i}" if self.names is None else f"column {shorten(self.names[i], 200)!r}"

    def _columns(self, X: Any) -> list[Any]:
        columns, names = columns_of(X)
        if self.names is not None and names is not None:
            place = {name: i for i, name in enumerate(names)}
            absent = [name for name in self.names if name not in place]
            if absent:
                raise KernelpoolError(
                    f"X lacks the column {shorten(absent[0], 200)!r} that the model was fitted to."
                )
            return [columns[place[name]] for name in self.names]
        if len(columns) != len(self.categories):
            raise ValueError(
                f"X has {len(columns)} features, but the model is expecting {len(self.categories)} features."
            )
        return columns


def learn_columns(
    X: Any,
    categorical_features: Any = "from_dtype",
    min_frequency: Any = None,
    most_words: int | None = None,
) -> TableColumns | None:
    """What the columns of a table hold; None where all are numbers.

    Parameters
    ----------
    X : data frame of pandas or polars, Arrow table, or array
        Rows in memory.
    categorical_features : "from_dtype", sequence of str, int or bool, dict, or None
        Which columns hold words: those whose type says so; those named, counted or marked; those of which the words are told;
        or none.
    min_frequency : int, float or None
        How many rows, or which part of them, a word must be in to have a level of its own.
    most_words : int or None
        How many words of a column have levels of their own at most: the most frequent ones, in that order. None takes all,
        sorted by their spelling.
    """
    if (
        categorical_features is None
        or not (hasattr(X, "shape") or isinstance(X, list | tuple))
        or _is_sparse(X)
    ):
        return None
    if isinstance(categorical_features, dict):
        return _as_told(X, categorical_features)
    by_type = isinstance(categorical_features, str)
    if by_type and not _may_hold_words(X):
        return None
    columns, names = columns_of(X)
    if by_type:
        chosen = [i for i, column in enumerate(columns) if holds_words(column)]
    else:
        chosen = _named(categorical_features, len(columns), names)
    if not chosen:
        return None
    categories = [
        _levels(column, min_frequency, most_words) if i in chosen else None
        for i, column in enumerate(columns)
    ]
    return TableColumns(tuple(categories), None if names is None else tuple(names))


def _codes_of(column: Any, place: dict[str, int]) -> Any:
    """The code of each word, NaN where one is missing, (n,)."""
    n = len(place)
    if str(getattr(column, "type", "")) == "string":  # Arrow is a hundred times as fast
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.fill_null(pc.index_in(column, value_set=pa.array(list(place), pa.string())), n)
        return np.asarray(
            pc.if_else(
                pc.is_null(column), pa.scalar(None, pa.float64()), pc.cast(found, pa.float64())
            ).to_numpy()
        )
    return [np.nan if word is None else place.get(word, n) for word in as_words(column)]


def _as_told(X: Any, words: dict[Any, Any]) -> TableColumns | None:
    """Columns whose words are told beforehand."""
    columns, names = columns_of(X)
    chosen = {_named([key], len(columns), names)[0]: value for key, value in words.items()}
    if not chosen:
        return None
    categories = [
        np.array([str(_word(v)) for v in chosen[i]], object) if i in chosen else None
        for i in range(len(columns))
    ]
    return TableColumns(tuple(categories), None if names is None else tuple(names))


def _levels(column: Any, min_frequency: Any, most_words: int | None) -> np.ndarray:
    counts = Counter(as_words(column))
    del counts[None]
    least = 0.0 if min_frequency is None else float(min_frequency)
    if isinstance(min_frequency, Real) and not isinstance(min_frequency, Integral):
        least *= sum(counts.values())
    words = sorted(word for word, n in counts.items() if word is not None and n >= least)
    if (
        most_words is not None
    ):  # by how frequent they are, so that it does not matter how they are spelled
        words = sorted(words, key=lambda word: -counts[word])[:most_words]
    return np.array(words, dtype=object)


def _named(given: Any, d: int, names: list[str] | None) -> list[int]:
    marks = list(given)
    if marks and all(isinstance(mark, bool | np.bool_) for mark in marks):
        if len(marks) != d:
            raise KernelpoolError(
                f"categorical_features must mark each of the {d} columns of X; got {len(marks)} marks."
            )
        return [i for i, mark in enumerate(marks) if mark]
    known: dict[Any, int] = {
        **{name: i for i, name in enumerate(names or ())},
        **{i: i for i in range(d)},
    }
    unknown = [mark for mark in marks if mark not in known]
    if unknown:
        what = "names of columns or positions" if names is not None else "positions"
        raise KernelpoolError(
            f"categorical_features must be {what} below {d}; got {shorten(repr(unknown[0]), 200)}."
        )
    return sorted({known[mark] for mark in marks})


MOST_INDICATORS = 64
"""Indicators of a column of words; more words than that share them, by their codes."""


def indicators_of(x: np.ndarray, levels: tuple[int, ...]) -> np.ndarray:
    """Coded rows for those who take words for numbers, (n, D): the numbers, then 0 and 1 for each word.

    Any other word has zeros alone, a missing one NaN.
    """
    parts = [x[:, [i for i, n in enumerate(levels) if not n]]]
    for i, n_levels in enumerate(levels):
        if n_levels:
            n_words = n_levels - 1
            codes = np.where(
                x[:, i] >= n_words, -1, x[:, i] % min(n_words, MOST_INDICATORS) if n_words else -1
            )
            hot = (codes[:, None] == np.arange(min(n_words, MOST_INDICATORS))).astype(x.dtype)
            hot[np.isnan(x[:, i])] = np.nan
            parts.append(hot)
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Indicators:
    r"""Rows in which words are told by indicators that lie equally far apart: the numbers, then one for each level.

    Two words of a column, whichever they are, are :math:`\sqrt{2}` times the height of an indicator apart, so that a Gaussian
    kernel is a product of one over the numbers and one of Aitchison and Aitken ("Multivariate binary discrimination by the
    kernel method", Biometrika 63(3), 1976) over each column of words.
    """

    levels: tuple[int, ...]
    """How many levels each column has, other words included; 0 for numbers."""
    others: bool = True
    """Whether other words have an indicator too, or none at all."""

    @cached_property
    def numbers(self) -> list[int]:
        """The columns of numbers."""
        return [i for i, n in enumerate(self.levels) if not n]

    @cached_property
    def words(self) -> tuple[int, ...]:
        """Indicators of the columns of words."""
        return tuple(self._n_indicators(n) for n in self.levels if n)

    @cached_property
    def sources(self) -> np.ndarray:
        """The column that each number and each indicator comes from, (D,)."""
        return np.array(
            [
                *self.numbers,
                *(i for i, n in enumerate(self.levels) for _ in range(self._n_indicators(n))),
            ],
            int,
        )

    def _n_indicators(self, n_levels: int) -> int:
        return n_levels if self.others else max(n_levels - 1, 0)

    def of(self, x: Array, height: float = 1.0) -> Array:
        """Coded rows, (n, d), as numbers and indicators, (n, D); all indicators of a missing word are NaN."""
        xp = namespace(x)
        parts = [xp.take(x, xp.asarray(self.numbers, dtype=xp.int64, device=device(x)), axis=1)]
        for i, n_levels in enumerate(self.levels):
            if n_levels:
                code = x[:, i : i + 1]
                n = self._n_indicators(n_levels)
                hot = (
                    xp.astype(code == xp.arange(n, dtype=x.dtype, device=device(x)), x.dtype)
                    * height
                )
                parts.append(xp.where(xp.isnan(code), code + xp.zeros_like(hot), hot))
        return xp.concat(parts, axis=1)


# -- tables of any kind -------------------------------------------------------------------------------------------------


def columns_of(X: Any) -> tuple[list[Any], list[str] | None]:
    """The columns of a table, and their names where it has them."""
    if hasattr(X, "column_names"):  # Arrow
        return list(X.columns), [str(name) for name in X.column_names]
    if hasattr(X, "iloc"):  # pandas
        names = (
            [str(name) for name in X.columns]
            if all(isinstance(name, str) for name in X.columns)
            else None
        )
        return [X.iloc[:, i] for i in range(X.shape[1])], names
    if hasattr(X, "get_columns"):  # polars
        return X.get_columns(), [str(name) for name in X.columns]
    cells = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {cells.ndim}D array instead. Reshape your data: X[None] is one row, X[:, None] one column."
        )
    return list(cells.T), None


def holds_words(column: Any) -> bool:
    """Whether a column holds words, by its type; of Python objects, by what is in it."""
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if kind.startswith("object"):
        return any(
            isinstance(cell, str | bool | np.bool_)
            for cell in np.asarray(column, dtype=object).tolist()
        )
    return kind.startswith(WORDS) and not (isinstance(column, np.ndarray) and column.dtype == bool)


def _may_hold_words(X: Any) -> bool:
    """Whether it is a table, or an array of objects: arrays of numbers need no look."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "OU" and X.ndim == 2
    if isinstance(X, list | tuple):
        first = X[0] if len(X) else ()
        return isinstance(first, list | tuple) and any(
            isinstance(cell, str) for row in X for cell in row
        )
    return hasattr(X, "column_names") or hasattr(X, "iloc") or hasattr(X, "get_columns")


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def as_words(column: Any) -> list[str | None]:
    """The words of a column as text, None where one is missing; whole numbers are written alike whatever their type."""
    if hasattr(column, "to_pylist"):
        cells = column.to_pylist()
    elif hasattr(column, "to_list"):
        cells = column.to_list()
    else:
        cells = np.asarray(column, dtype=object).tolist()
    return [cell if type(cell) is str else _word(cell) for cell in cells]


def _word(cell: Any) -> str | None:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return None
    if isinstance(cell, float | np.floating):
        return None if cell != cell else str(int(cell)) if cell.is_integer() else repr(float(cell))
    return str(cell)


def as_numbers(column: Any, name: str) -> np.ndarray:
    """A column as float64, NaN where a cell is missing, (n,)."""
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if kind.startswith(DATES):
        raise KernelpoolError(
            f"{name[0].upper()}{name[1:]} of X holds dates ({kind}), neither words nor numbers; leave it out, or make a "
            f"number of it, such as days since some day."
        )
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.filled(column.astype(np.float64), np.nan)
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    cells = (
        column.to_pylist()
        if hasattr(column, "to_pylist")
        else np.asarray(column, dtype=object).tolist()
    )
    out = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            out[i] = np.nan if cell is None or type(cell).__name__ == "NAType" else float(cell)
        except (TypeError, ValueError):
            raise KernelpoolError(
                f"{name[0].upper()}{name[1:]} of X must hold numbers; row {i} holds {shorten(repr(cell), 100)}. "
                f"If it is a column of words, name it in categorical_features."
            ) from None
    return out
