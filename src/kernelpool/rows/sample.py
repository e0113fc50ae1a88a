"""A sample of each class, drawn in one pass wherever the rows live.

Every row gets a random number made from its own content and the seed, and the rows with the
smallest numbers stay. So two samples add up, the order of the rows and the way they are cut into
blocks change nothing, and a row of weight two is the same as the row twice.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array, as_float64, device, namespace, shifted, splitmix64, to_numpy
from ..sums import record
from . import Block, Frame, Rows, with_missing

MOST_ROWS = 20_000
"""Rows of all classes together, about."""


class ClassSample(NamedTuple):
    """Distinct rows of one class, in the frame, sorted, with their weights."""

    x: np.ndarray
    """(n, d); NaN where a cell is missing."""
    weight: np.ndarray
    """(n,)."""


@record
class Sample:
    """At most `most` rows of each class."""

    key: np.ndarray
    code: np.ndarray
    x: np.ndarray
    weight: np.ndarray
    most: int

    def __add__(self, other: "Sample") -> "Sample":
        pairs = zip(self._columns(), other._columns(), strict=True)
        key, code, x, weight = map(np.concatenate, pairs)
        return Sample(key, code, x, weight, self.most).thinned()

    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.key, self.code, self.x, self.weight

    def thinned(self) -> "Sample":
        """No more than `most` rows a class, those with the smallest keys."""
        keep = [np.empty(0, int)]
        for k in np.unique(self.code):
            rows = np.flatnonzero(self.code == k)
            if len(rows) > self.most:
                rows = rows[np.argpartition(self.key[rows], self.most - 1)[: self.most]]
            keep.append(rows)
        chosen = np.concatenate(keep)
        key, code, x, weight = (column[chosen] for column in self._columns())
        return Sample(key, code, x, weight, self.most)

    def of_class(self, k: int) -> ClassSample:
        """The distinct rows of class k; equal rows become one with their joint weight."""
        in_class = self.code == k
        x, place = np.unique(self.x[in_class], axis=0, return_inverse=True)
        return ClassSample(x, np.bincount(place.ravel(), self.weight[in_class], minlength=len(x)))


def sample_rows(rows: Rows, n_classes: int, seed: int, most: int = MOST_ROWS) -> list[ClassSample]:
    """About `most` rows in all, as many of each class."""
    drawn = rows.total(sample_block, seed, max(most // n_classes, 1000))
    return [drawn.of_class(k) for k in range(n_classes)]


def sample_block(block: Block, seed: int, most: int, frame: Frame | None = None) -> Sample:
    """At most `most` rows of each class of one block, in float64, by numbers made from their
    content.

    With a `frame` their content is that in the frame, and rows without a class are drawn too.
    """
    x = block.x if block.missing is None else with_missing(block)
    code = to_numpy(block.y)
    weight = np.ones(len(code)) if block.weight is None else to_numpy(block.weight)
    weight = np.asarray(weight, np.float64)
    content = as_float64(x)
    counts = weight > 0
    if frame is not None:
        content = frame.like(content).inside(content)
    else:
        counts &= code >= 0
        if block.missing is not None:  # a row of which nothing is known has no place
            counts &= ~np.isnan(x).all(axis=1)
    at = np.flatnonzero(counts)
    uniform = to_numpy(content_key(content, seed))[at]
    # Efraimidis & Spirakis 2006: the smallest of -log(u) / weight is a draw without replacement by
    # weight
    drawn = Sample(-np.log(uniform) / weight[at], code[at], at[:, None], weight[at], most).thinned()
    xp = namespace(x)
    chosen = xp.take(x, xp.asarray(drawn.x[:, 0], device=device(x)), axis=0)  # others stay there
    return replace(drawn, x=np.asarray(to_numpy(chosen), np.float64))


def content_key(x: Array, seed: int) -> Array:
    """A number in (0, 1) that depends on nothing but the row and the seed (SplitMix64 over its
    cells).
    """
    xp = namespace(x)
    # a millionth of a deviation is as near as rounding can tell rows apart when the data have been
    # shifted
    x = as_float64(x)
    x = xp.clip(xp.where(xp.isnan(x), 1e12 * xp.ones_like(x), x), min=-1e12, max=1e12)
    cells = xp.astype(xp.round(x * 2**20), xp.int64)
    state = splitmix64(xp.full((x.shape[0],), seed, dtype=xp.int64, device=device(x)))
    for column in range(x.shape[1]):
        state = splitmix64(state ^ cells[:, column])
    return xp.astype(shifted(splitmix64(state), 11), xp.float64) * 2.0**-53 + 2.0**-54
