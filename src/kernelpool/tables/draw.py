"""An even draw from the rows of a source that is larger than memory.

Every row has a key made from its position in the whole. The `most` rows with the smallest keys are
drawn, and of every class those with its smallest, so that rare classes are kept. A file, its parts
and a Dask collection in the same order give the same rows, however they are cut, and draws add up.
Weights make each class as common in the draw as it is in the whole. Where all rows are drawn, they
are in their order and have the weights that they had.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from ..arrays import splitmix64
from ..text import is_missing

MOST_CELLS = 10_000_000
"""Rows by columns that are kept in memory for networks that learn in memory: 80 MB of numbers."""

DRAWN_OF_CLASS = 1000
"""Rows that are drawn of every class, at least, where it has as many."""

ANY_KEY = np.uint64(np.iinfo(np.uint64).max)
"""The limit of keys where every row may be drawn."""


class Distinct(dict[Any, int]):
    """Distinct values and their positions, in the order in which they came; None if missing."""

    def codes(self, values: Any) -> np.ndarray:
        """The positions of values of an ndarray or an Arrow array, new ones included, (n,)."""
        if isinstance(values, np.ndarray) and values.dtype == object:
            return self._codes(values.tolist())
        if isinstance(values, np.ndarray):
            distinct, at = np.unique(values, return_inverse=True)
        else:
            import pyarrow.compute as pc

            distinct = values.unique()
            at = np.asarray(pc.index_in(values, distinct))
        return self._codes(distinct.tolist())[at]

    def _codes(self, values: list[Any]) -> np.ndarray:
        keys = (None if is_missing(value) else value for value in values)
        return np.array([self.setdefault(key, len(self)) for key in keys], int)


class _Piece(NamedTuple):
    position: np.ndarray
    """(n,)."""
    code: np.ndarray
    """(n,)."""
    weight: np.ndarray
    """(n,)."""
    rows: Any

    def take(self, at: np.ndarray) -> "_Piece":
        if np.array_equal(at, np.arange(len(self.position))):
            return self
        return _Piece(self.position[at], self.code[at], self.weight[at], rows_at(self.rows, at))


class Drawn(NamedTuple):
    """The rows of a draw, in the order of the whole."""

    rows: Any
    positions: np.ndarray
    """(n,)."""
    weight: np.ndarray | None
    """(n,); None where all rows are drawn and none has a weight."""


class Draw:
    """Rows are added as they come; two draws from parts of the same whole add up.

    Rows that may still be drawn are kept: those with a key below a limit, which falls whenever
    half as many again are kept as are drawn, and those with a key below the limit of their class.

    Parameters
    ----------
    most : int
        Rows to draw; those of rare classes come on top, a quarter of them at most.
    """

    def __init__(self, most: int) -> None:
        self.most = max(most, 1)
        self.n_rows = 0
        self.weighted = False
        self.codes = Distinct()
        self.class_weight = np.zeros(0)
        """Of all rows of each class, drawn or not, (K,)."""
        self.limit = ANY_KEY
        self.class_limits = np.zeros(0, np.uint64)
        """Of the classes at the last thinning."""
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
        labels : ndarray or Arrow array of shape (n,), default=None
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
        code = self.codes.codes(np.zeros(n) if labels is None else labels)
        weight = np.ones(n) if weight is None else np.asarray(weight, np.float64)
        n_classes = len(self.codes)
        self.class_weight = _longer(self.class_weight, n_classes, 0)
        self.class_weight += np.bincount(code, weight, n_classes)
        piece = _Piece(np.arange(first, first + n), code, weight, rows)
        self.class_limits = _longer(self.class_limits, n_classes, ANY_KEY)
        may_be_drawn = _keys(piece) <= self._limits[code]
        self._keep([*self.pieces, piece.take(np.flatnonzero(may_be_drawn))])

    def __add__(self, other: "Draw") -> "Draw":
        out = Draw(self.most)
        out.n_rows = self.n_rows + other.n_rows
        out.weighted = self.weighted or other.weighted
        out.limit = min(self.limit, other.limit)
        out.codes.update(self.codes)
        place = out.codes.codes(np.array([*other.codes, None], object)[:-1])
        out.class_weight = _longer(self.class_weight, len(out.codes), 0)
        out.class_weight[place] += other.class_weight
        out.class_limits = np.full(len(out.codes), ANY_KEY)
        pieces = [piece._replace(code=place[piece.code]) for piece in other.pieces]
        out._keep([*self.pieces, *pieces])
        return out

    def drawn(self) -> Drawn:
        """The rows of the draw."""
        whole = self._thinned()
        if len(whole.position) == self.n_rows:
            return Drawn(whole.rows, whole.position, whole.weight if self.weighted else None)
        # the sum of the weights is that of the rows that are drawn
        of_drawn = np.bincount(whole.code, whole.weight, len(self.codes))
        share = self.class_weight / self.class_weight.sum()
        drawn_share = of_drawn / of_drawn.sum()
        factor = np.divide(share, drawn_share, out=np.zeros_like(share), where=drawn_share > 0)
        return Drawn(whole.rows, whole.position, whole.weight * factor[whole.code])

    def of_whole(self, n_rows: int) -> "Draw":
        """The draw of a part of so many rows in all: it keeps hardly more than its share."""
        share = (self.most + 10 * self.most**0.5 + 10) / n_rows  # for all that chance does
        if share < 1:
            self.limit = np.uint64(int(share * 2.0**64))
            self.pieces = [self._thinned()]
        return self

    def _keep(self, pieces: list[_Piece]) -> None:
        """Rows that may be drawn; once there are half as many again, others are dropped."""
        self.pieces = pieces
        if sum(len(piece.position) for piece in pieces) > 1.5 * self.most + DRAWN_OF_CLASS:
            self.pieces = [self._thinned()]

    def _thinned(self) -> _Piece:
        """The rows with the smallest keys of all and of their class, in order; those to come must
        have smaller ones.
        """
        *columns, rows = zip(*self.pieces, strict=True)
        position, code, weight = map(np.concatenate, columns)
        whole = _Piece(position, code, weight, concatenated(rows))
        whole = whole.take(np.argsort(whole.position))
        if len(whole.position) <= self.most and self.limit == ANY_KEY:
            return whole
        key = _keys(whole)
        order = np.argsort(key)
        self.limit = min([self.limit, *key[order[self.most - 1 : self.most]]])
        fewest = min(DRAWN_OF_CLASS, self.most // (4 * len(self.codes)))
        by_class = order[np.argsort(whole.code[order], kind="stable")]
        rank = np.arange(len(key)) - np.searchsorted(whole.code[by_class], whole.code[by_class])
        last = by_class[rank == fewest - 1]
        self.class_limits = np.full(len(self.codes), ANY_KEY if fewest else np.uint64(0))
        self.class_limits[whole.code[last]] = key[last]
        return whole.take(np.flatnonzero(key <= self._limits[whole.code]))

    @property
    def _limits(self) -> np.ndarray:
        """Keys of the rows of each class above which none is drawn, (K,)."""
        return np.maximum(self.limit, self.class_limits)


def _keys(piece: _Piece) -> np.ndarray:
    return splitmix64(piece.position).view(np.uint64)


def _longer(values: np.ndarray, n: int, value: Any) -> np.ndarray:
    """With so many values in all."""
    return np.concatenate([values, np.full(n - len(values), value, values.dtype)])


# -- rows of any kind ------------------------------------------------------------------------------


def rows_at(rows: Any, at: np.ndarray) -> Any:
    """Some rows of a frame, an Arrow table, an array or a tuple of them."""
    if rows is None:
        return None
    if isinstance(rows, tuple):
        return tuple(rows_at(part, at) for part in rows)
    return nw.to_native(nw.from_native(rows, pass_through=True)[at], pass_through=True)


def concatenated(parts: Sequence[Any]) -> Any:
    """Rows of the same kind, one after the other."""
    first = parts[0]
    if len(parts) == 1 or first is None:
        return first
    if isinstance(first, tuple):
        return tuple(concatenated(part) for part in zip(*parts, strict=True))
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return nw.concat(list(map(nw.from_native, parts))).to_native()
