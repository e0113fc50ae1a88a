"""Rows of an array in memory."""

from collections.abc import Callable
from functools import reduce
from operator import add
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from ..arrays import (
    Array,
    device,
    device_memory,
    eps_of,
    is_numpy_array,
    is_out_of_memory,
    match_array,
    namespace,
    on_accelerator,
    to_host,
    to_numpy,
)
from .block import Block
from .frame import Frame
from .threads import OrderedSum, ThreadTuner, map_threads, n_threads_for, one_blas_thread

T = TypeVar("T")
Piece = TypeVar("Piece")

BLOCK_BYTES = 8 << 20
"""Temporaries of one block on a CPU: large enough to hide the cost of a call, small enough for the processor's caches."""

DEVICE_BLOCK_BYTES = 16 << 30
"""The same on an accelerator, or an eighth of its free memory if that is less: a launch costs as much as many rows."""

BLOCK_ROWS = 16384
"""Rows of a block on a CPU, at most."""

FEWEST_ROWS = 32
"""Rows of a block, at least, however wide they are."""

KEEP_BYTES = 64 << 20
"""Rows in the frame, and what is made of them, are kept between sweeps as far as this goes, and made anew otherwise."""

MOST_TASKS = 32
"""Into how many pieces the blocks are grouped; fixed, so that results do not depend on the number of threads."""


class ArrayRows:
    """Rows of an array of any array-API library, visited a block at a time, over threads where that pays."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        frame: Frame | None = None,
        width: int = 64,
        n_jobs: int | None = None,
    ) -> None:
        self.x, self.y, self.weight, self.frame, self.width = x, y, weight, frame, width
        self.n_rows, self.n_features = x.shape
        self.n_jobs = n_jobs
        xp = namespace(x)
        # a host works out small parameters while an accelerator would still be waiting for the first of a hundred launches
        self.backend = (
            np.zeros(0) if on_accelerator(x) else xp.zeros(0, dtype=xp.float64, device=device(x))
        )
        self.eps = eps_of(x)
        row_bytes = 8 * max(width, self.n_features)
        memory = device_memory(x)
        if memory is None:
            most, keep_bytes = min(BLOCK_BYTES // row_bytes, BLOCK_ROWS), KEEP_BYTES
        else:
            most, keep_bytes = min(DEVICE_BLOCK_BYTES, memory // 8) // row_bytes, memory // 4
        self._keep_width = (
            keep_bytes / (8 * max(self.n_rows, 1)) - self.n_features
        )  # beside the rows in the frame
        self._cut_blocks((_even if memory is None else _equal)(self.n_rows, max(most, FEWEST_ROWS)))
        self._tuners: dict[str, ThreadTuner] = {}

    def _cut_blocks(self, block_rows: int) -> None:
        self.block_rows = block_rows
        self._blocks: list[Block | None] = [None] * self._n_blocks

    def _in_memory(self, work: Callable[[], T]) -> T:
        """`work()`, over blocks that are cut in half for as long as an accelerator has too little memory for them."""
        while True:
            try:
                return work()
            except Exception as error:
                if not is_out_of_memory(error) or self.block_rows <= FEWEST_ROWS:
                    raise
            self._cut_blocks(
                max(self.block_rows // 2, FEWEST_ROWS)
            )  # here nothing of the failed try is held any more

    def visited_once(self, tuners: dict[str, ThreadTuner]) -> "ArrayRows":
        """The same rows, of which nothing is kept: what is made of one block is made in the memory of the one before.

        `tuners` have learned from other rows of the same source whether threads pay.
        """
        self._keep_width, self._tuners = -1.0, tuners
        return self

    def framed(self, frame: Frame, width: int) -> "ArrayRows":
        return ArrayRows(
            self.x, self.y, self.weight, frame=frame.like(self.x), width=width, n_jobs=self.n_jobs
        )

    def by_class(self) -> "ArrayRows":
        return self if self.y is None else RowsByClass(self)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        moved = [match_array(p, like=self.x) for p in params]

        def of_piece(spans: range) -> T:
            return reduce(add, (statistic(self._block(i), *moved) for i in spans))  # type: ignore[arg-type]

        tuner = (
            self._tuners.setdefault(getattr(statistic, "__qualname__", ""), ThreadTuner())
            if self.n_jobs is None
            else None
        )
        total = self._in_memory(lambda: self._sum_over_threads(of_piece, tuner))
        return to_host(total) if on_accelerator(self.x) else total  # type: ignore[no-any-return]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self._in_memory(
            lambda: self._each(function, [match_array(p, like=self.x) for p in params])
        )

    def _each(self, function: Callable[..., Array], moved: list[Any]) -> Array:
        first = function(self._block(0), *moved)
        if self._n_blocks == 1:
            return first
        if not is_numpy_array(first):
            rest = [function(self._block(i), *moved) for i in range(1, self._n_blocks)]
            return namespace(first).concat([first, *rest], axis=0)
        answer = np.empty((self.n_rows, *first.shape[1:]), first.dtype)
        answer[: first.shape[0]] = first

        def fill(spans: range) -> None:
            for i in spans:
                answer[self._span(i)] = function(self._block(i), *moved)

        self._over_threads(fill, self._pieces(skip=1))
        return answer

    @property
    def _n_blocks(self) -> int:
        return max(1, -(-self.n_rows // self.block_rows))

    def _pieces(self, skip: int = 0) -> list[range]:
        size = -(-self._n_blocks // MOST_TASKS)
        return [
            range(max(i, skip), min(i + size, self._n_blocks))
            for i in range(skip, self._n_blocks, size)
        ]

    def _span(self, i: int) -> slice:
        # array-api-strict refuses a stop beyond the end
        return slice(i * self.block_rows, min((i + 1) * self.block_rows, self.n_rows))

    def _block(self, i: int) -> Block:
        block = self._blocks[i]
        if block is None:
            span = self._span(i)
            x, y, weight = (
                None if a is None else self._rows_of(a, span) for a in (self.x, self.y, self.weight)
            )
            block = Block(
                x if self.frame is None else self.frame.inside(x),
                y,
                weight,
                classes=self._classes_of(span),
                keep_width=max(self._keep_width, 0),
            )
            if self._keep_width >= 0:
                self._blocks[i] = block
        return block

    def _rows_of(self, a: Array, span: slice) -> Array:
        return a[span, ...]

    def _classes_of(self, span: slice) -> dict[int, slice] | None:
        return None

    def _sum_over_threads(self, work: Callable[[range], T], tuner: ThreadTuner | None) -> T:
        """The sum of `work` over all pieces, added in their order as they come: sums of wide kernels are large."""
        total: OrderedSum[T] = OrderedSum()

        def add_piece(numbered: tuple[int, range]) -> None:
            total.add(numbered[0], work(numbered[1]))

        self._over_threads(add_piece, list(enumerate(self._pieces())), tuner)
        return total.value

    def _over_threads(
        self, work: Callable[[Piece], T], pieces: list[Piece], tuner: ThreadTuner | None = None
    ) -> list[T]:
        """`work` of every piece, in order."""
        if not is_numpy_array(self.x):  # other libraries bring their own threads
            return [work(piece) for piece in pieces]
        n_threads = 1 if len(pieces) == 1 else min(n_threads_for(self.n_jobs), len(pieces))
        threads = n_threads > 1 and (tuner is None or tuner.use_threads())
        begun = perf_counter()
        with one_blas_thread():
            done = map_threads(work, pieces, n_threads) if threads else list(map(work, pieces))
        if tuner is not None:
            tuner.record(threads, perf_counter() - begun)
        return done


class RowsByClass(ArrayRows):
    """The same rows with those of one class together."""

    def __init__(self, rows: ArrayRows) -> None:
        super().__init__(
            rows.x, rows.y, rows.weight, frame=rows.frame, width=rows.width, n_jobs=rows.n_jobs
        )
        self._plain = rows
        self._order = namespace(rows.y).argsort(rows.y, stable=True)
        codes, counts = np.unique(to_numpy(rows.y), return_counts=True)
        self._codes, self._ends = codes.tolist(), np.cumsum(counts).tolist()

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self._plain.each(function, *params)

    def _rows_of(self, a: Array, span: slice) -> Array:
        return namespace(a).take(a, self._order[span], axis=0)

    def _classes_of(self, span: slice) -> dict[int, slice]:
        starts = [0, *self._ends[:-1]]
        inside = {
            code: slice(max(start, span.start) - span.start, min(end, span.stop) - span.start)
            for code, start, end in zip(self._codes, starts, self._ends, strict=True)
        }
        return {code: part for code, part in inside.items() if part.start < part.stop}


def _equal(n_rows: int, most: int) -> int:
    """Rows of a block, at most `most`, in as few blocks of equal size as that allows."""
    return max(1, -(-n_rows // max(1, -(-n_rows // most))))


def _even(n_rows: int, most: int) -> int:
    """Rows of a block, at most `most`, such that 2, 4 or 8 threads get equally many blocks of equal size."""
    n_blocks = max(1, -(-n_rows // most))
    multiple = min(1 << (n_blocks.bit_length() - 1), 8)
    n_blocks = -(-n_blocks // multiple) * multiple
    return max(1, -(-n_rows // n_blocks))
