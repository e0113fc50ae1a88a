"""An even draw from the rows of a source that is larger than memory.

Every row has a key made from its position in the whole. The `most` rows with the smallest keys are
drawn, and of every class those with its smallest, so that rare classes are kept. A file, its parts
and a Dask collection in the same order give the same rows, however they are cut, and draws add up.
Weights make each class as common in the draw as it is in the whole. Where all rows are drawn, they
are in their order and have the weights that they had.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import splitmix64
from ..text import is_missing

MOST_CELLS = 10_000_000
"""Rows by columns that are kept in memory for networks that learn in memory: 80 MB of numbers."""

DRAWN_OF_CLASS = 1000
"""Rows that are drawn of every class, at least, where it has as many."""

UNLABELED = None
"""Stands for a missing label."""


class _Piece(NamedTuple):
    key: np.ndarray
    """(n,), uint64."""
    position: np.ndarray
    """(n,)."""
    code: np.ndarray
    """(n,)."""
    weight: np.ndarray
    """(n,)."""
    rows: Any


class Drawn(NamedTuple):
    """The rows of a draw, in the order of the whole."""

    rows: Any
    positions: np.ndarray
    """(n,)."""
    weight: np.ndarray | None
    """(n,); None where all rows are drawn and none has a weight."""


class Draw:
    """Rows are added as they come; two draws from parts of the same whole add up.

    Parameters
    ----------
    most : int
        Rows to draw; those of rare classes come on top, a quarter of them at most.
    n_expected : int, default=None
        Number of rows of the whole, where it is known: a part then holds hardly more than its
        share of the draw.
    """

    def __init__(self, most: int, n_expected: int | None = None) -> None:
        self.most = max(most, 1)
        self.n_rows = 0
        self.weighted = False
        self.codes: dict[Any, int] = {}
        self.class_weight = np.zeros(0)
        """Of all rows of each class, drawn or not, (K,)."""
        self.limit = _limit(self.most, n_expected)
        self.pieces: list[_Piece] = []

    def add(
        self,
        rows: Any,
        labels: Any = None,
        weight: np.ndarray | None = None,
        first: int | None = None,
    ) -> None:
        """Rows that follow one another, a frame, an Arrow table, an array or a tuple of them.

        Parameters
        ----------
        rows : data frame, Arrow table, ndarray or tuple
            With n rows.
        labels : array-like of shape (n,), default=None
            By which no class is left out; None for rows that have no classes.
        weight : ndarray of shape (n,), default=None
            How often each row counts.
        first : int, default=None
            Position of the first one in the whole; None where all before it were added.
        """
        n = len(rows[0]) if isinstance(rows, tuple) else len(rows)
        first = self.n_rows if first is None else first
        self.n_rows += n
        self.weighted = self.weighted or weight is not None
        values, at = ([UNLABELED], np.zeros(n, int)) if labels is None else _distinct(labels)
        code = np.array([self.codes.setdefault(v, len(self.codes)) for v in values], int)[at]
        weight = np.ones(n) if weight is None else np.asarray(weight, np.float64)
        self.class_weight = _sum(self.class_weight, np.bincount(code, weight))
        position = np.arange(first, first + n)
        key = splitmix64(position).view(np.uint64)
        chosen = self._chosen(key, code)
        piece = _Piece(key, position, code, weight, rows)
        self.pieces.append(piece if chosen.all() else _taken(piece, np.flatnonzero(chosen)))
        self._thin()

    def __add__(self, other: "Draw") -> "Draw":
        out = Draw(self.most)
        out.n_rows = self.n_rows + other.n_rows
        out.weighted = self.weighted or other.weighted
        out.limit = min(self.limit, other.limit)
        out.codes = dict(self.codes)
        place = np.array([out.codes.setdefault(v, len(out.codes)) for v in other.codes], int)
        moved = np.zeros(len(out.codes))
        moved[place] = other.class_weight
        out.class_weight = _sum(self.class_weight, moved)
        pieces = [piece._replace(code=place[piece.code]) for piece in other.pieces]
        out.pieces = [*self.pieces, *pieces]
        out._thin()
        return out

    def drawn(self) -> Drawn:
        """The rows of the draw."""
        pieces = sorted((p for p in self.pieces if len(p.key)), key=lambda p: p.position[0])
        whole = self._joined(pieces or self.pieces[:1])
        if len(whole.key) > self.most:
            whole = _taken(whole, np.flatnonzero(self._chosen(whole.key, whole.code)))
        order = np.argsort(whole.position)
        if (order != np.arange(len(order))).any():
            whole = _taken(whole, order)
        if len(whole.key) == self.n_rows:
            return Drawn(whole.rows, whole.position, whole.weight if self.weighted else None)
        # the sum of the weights is that of the rows that are drawn
        of_drawn = np.bincount(whole.code, whole.weight, minlength=len(self.codes))
        share = self.class_weight / self.class_weight.sum()
        drawn_share = of_drawn / of_drawn.sum()
        factor = np.divide(share, drawn_share, out=np.zeros_like(share), where=drawn_share > 0)
        return Drawn(whole.rows, whole.position, whole.weight * factor[whole.code])

    def _chosen(self, key: np.ndarray, code: np.ndarray) -> np.ndarray:
        """Whether each row may be among those with the smallest keys of all, or of its class, so
        far, (n,).
        """
        limit = self.limit
        if len(key) > self.most:
            limit = min(limit, np.partition(key, self.most - 1)[self.most - 1])
        chosen = key <= limit
        fewest = min(DRAWN_OF_CLASS, self.most // (4 * len(self.codes)))
        late = np.flatnonzero(~chosen)
        counts = np.bincount(code[chosen], minlength=len(self.codes))
        late = late[counts[code[late]] < fewest]  # others have enough rows
        late = late[np.lexsort((key[late], code[late]))]
        begins = np.searchsorted(code[late], code[late])
        rank = np.arange(len(late)) - begins + counts[code[late]]
        chosen[late[rank < fewest]] = True
        return chosen

    def _thin(self) -> None:
        """Drop rows that cannot be drawn any more, once there are half as many again."""
        if sum(len(piece.key) for piece in self.pieces) > 1.5 * self.most + DRAWN_OF_CLASS:
            whole = self._joined(self.pieces)
            if len(whole.key) > self.most:
                smallest = np.partition(whole.key, self.most - 1)[self.most - 1]
                self.limit = min(self.limit, smallest)
            at = np.flatnonzero(self._chosen(whole.key, whole.code))
            self.pieces = [_taken(whole, at)]

    @staticmethod
    def _joined(pieces: Sequence[_Piece]) -> _Piece:
        if len(pieces) == 1:
            return pieces[0]
        *numbers, rows = zip(*pieces, strict=True)
        key, position, code, weight = map(np.concatenate, numbers)
        return _Piece(key, position, code, weight, _concatenated(rows))


def _limit(most: int, n_rows: int | None) -> np.uint64:
    """A key above the `most` smallest ones of so many rows, for all that chance does."""
    most_key = np.uint64(np.iinfo(np.uint64).max)
    if n_rows is None:
        return most_key
    share = (most + 10 * most**0.5 + 10) / max(n_rows, 1)
    return most_key if share >= 1 else np.uint64(int(share * 2.0**64))


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of the weights of classes, the shorter of which has zeros at its end."""
    out = np.zeros(max(len(a), len(b)))
    out[: len(a)] += a
    out[: len(b)] += b
    return out


# -- rows of any kind ------------------------------------------------------------------------------


def _distinct(labels: Any) -> tuple[list[Any], np.ndarray]:
    """The distinct labels, missing ones as `UNLABELED`, and the position of each row's among them,
    (n,).
    """
    if _library(labels) == "pyarrow":
        import pyarrow.compute as pc

        unique = labels.unique()
        values = unique.to_pylist()
        at = np.asarray(pc.index_in(labels, unique))
    else:
        cells = np.asarray(labels)
        if cells.dtype.kind in "biufSUMm":
            unique, at = np.unique(cells, return_inverse=True)
            values = unique.tolist()
        else:
            listed = cells.tolist()
            values = list(dict.fromkeys(listed))
            place = {value: i for i, value in enumerate(values)}
            at = np.fromiter(map(place.__getitem__, listed), int, len(listed))
    return [UNLABELED if is_missing(value) else value for value in values], at


def _library(rows: Any) -> str:
    return type(rows).__module__.partition(".")[0]


def _taken(piece: _Piece, at: np.ndarray) -> _Piece:
    *numbers, rows = piece
    key, position, code, weight = (column[at] for column in numbers)
    return _Piece(key, position, code, weight, _rows_at(rows, at))


def _rows_at(rows: Any, at: np.ndarray) -> Any:
    if isinstance(rows, tuple):
        return tuple(None if part is None else _rows_at(part, at) for part in rows)
    return rows.take(at) if _library(rows) in ("pandas", "pyarrow") else rows[at]


def _concatenated(parts: Sequence[Any]) -> Any:
    """Rows of the same kind, one after the other."""
    first = parts[0]
    if isinstance(first, tuple):
        columns = zip(*parts, strict=True)
        return tuple(None if part[0] is None else _concatenated(part) for part in columns)
    library = _library(first)
    if library == "pyarrow":
        import pyarrow as pa

        joined = pa.chunked_array if isinstance(first, pa.ChunkedArray) else pa.concat_tables
        return joined(list(parts))
    if library == "pandas":
        import pandas as pd

        return pd.concat(parts)
    if library == "polars":
        import polars as pl

        return pl.concat(parts)
    return np.concatenate(parts)
