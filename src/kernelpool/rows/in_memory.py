"""Rows of an array in memory."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..arrays import (
    Array,
    device,
    device_memory,
    eps_of,
    is_numpy_array,
    match_array,
    namespace,
    on_accelerator,
    to_host,
    to_numpy,
)
from .block import Block
from .frame import Frame
from .threads import OrderedSum, n_threads_for, one_blas_thread, over_threads

T = TypeVar("T")

BLOCK_BYTES = 8 << 20
"""Temporaries of a block on a CPU: many enough to hide the cost of a call, few enough for the
caches.
"""

DEVICE_BLOCK_BYTES = 16 << 30
"""The same on an accelerator, or an eighth of its free memory if that is less: a launch costs as
much as many rows."""

BLOCK_ROWS = 16384
"""Rows of a block on a CPU, at most."""

FEWEST_ROWS = 32
"""Rows of a block, at least, however wide they are."""

KEEP_BYTES = 64 << 20
"""Rows in the frame, and what is made of them, are kept between sweeps as far as this goes."""

MOST_TASKS = 32
"""Tasks into which the blocks are grouped; fixed, so that results do not depend on the threads."""


class ArrayRows:
    """Rows of an array of any array-API library, a block at a time, over threads in NumPy.

    With ``keep=False`` nothing is kept between sweeps.
    """

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        frame: Frame | None = None,
        width: int = 64,
        n_jobs: int | None = None,
        keep: bool = True,
    ) -> None:
        self.x, self.y, self.weight, self.frame, self.width = x, y, weight, frame, width
        self.n_rows, self.n_features = x.shape
        self.n_jobs, self.keep = n_jobs, keep
        xp = namespace(x)
        # a host computes small parameters before an accelerator has launched its first kernel
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
        # what may be kept of a row beside its features in the frame
        self._keep_width = keep_bytes / (8 * max(self.n_rows, 1)) - self.n_features if keep else -1
        self._cut(_equal_blocks(self.n_rows, max(most, FEWEST_ROWS), 8 if memory is None else 1))

    def _cut(self, block_rows: int) -> None:
        self.block_rows = block_rows
        self.n_blocks = max(1, -(-self.n_rows // block_rows))
        self._blocks: list[Block | None] = [None] * self.n_blocks

    def framed(self, frame: Frame, width: int) -> "ArrayRows":
        return self._with(type(self), frame.like(self.x), width)

    def by_class(self) -> "ArrayRows":
        return self if self.y is None else self._with(RowsByClass, self.frame, self.width)

    def _with(self, kind: type["ArrayRows"], frame: Frame | None, width: int) -> "ArrayRows":
        columns, settings = (self.x, self.y, self.weight), {"n_jobs": self.n_jobs}
        return kind(*columns, frame=frame, width=width, keep=self.keep, **settings)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        moved = [match_array(p, like=self.x) for p in params]
        while True:
            try:
                total = self._sum(statistic, moved)
                return to_host(total) if on_accelerator(self.x) else total  # type: ignore[no-any-return]
            except Exception as error:
                self._halve_blocks(error)

    def _sum(self, statistic: Callable[..., T], params: list[Any]) -> T:
        total, size = OrderedSum[T](), -(-self.n_blocks // MOST_TASKS)

        def add_task(task: int) -> None:
            first = task * size
            part = statistic(self._block(first), *params)
            for i in range(first + 1, min(first + size, self.n_blocks)):
                part = part + statistic(self._block(i), *params)  # type: ignore[operator]
            total.add(task, part)

        self._run(add_task, -(-self.n_blocks // size))
        return total.value

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        moved = [match_array(p, like=self.x) for p in params]
        while True:
            try:
                return self._each(function, moved)
            except Exception as error:
                self._halve_blocks(error)

    def _each(self, function: Callable[..., Array], params: list[Any]) -> Array:
        first = function(self._block(0), *params)
        if self.n_blocks == 1:
            return first
        if not is_numpy_array(first):
            rest = [function(self._block(i), *params) for i in range(1, self.n_blocks)]
            return namespace(first).concat([first, *rest], axis=0)
        values = np.empty((self.n_rows, *first.shape[1:]), first.dtype)
        values[: first.shape[0]] = first

        def write(i: int) -> None:
            values[self._span(i + 1)] = function(self._block(i + 1), *params)

        self._run(write, self.n_blocks - 1)
        return values

    def _run(self, work: Callable[[int], None], n_tasks: int) -> None:
        """`work(0)` to `work(n_tasks - 1)`."""
        if not is_numpy_array(self.x):  # other libraries bring their own threads
            for task in range(n_tasks):
                work(task)
            return
        with one_blas_thread():
            over_threads(work, n_tasks, 1 if n_tasks == 1 else n_threads_for(self.n_jobs))

    def _halve_blocks(self, error: Exception) -> None:
        """Where an accelerator has too little memory, the same is tried on blocks half as long."""
        if type(error).__name__ != "OutOfMemoryError" or self.block_rows <= FEWEST_ROWS:
            raise error
        self._cut(max(self.block_rows // 2, FEWEST_ROWS))

    def _span(self, i: int) -> slice:
        # array-api-strict refuses a stop beyond the end
        return slice(i * self.block_rows, min((i + 1) * self.block_rows, self.n_rows))

    def _block(self, i: int) -> Block:
        block = self._blocks[i]
        if block is None:
            block = self._make_block(self._span(i))
            if self._keep_width >= 0:
                self._blocks[i] = block
        return block

    def _make_block(self, span: slice) -> Block:
        x, y, weight = (
            None if a is None else self._rows_of(a, span) for a in (self.x, self.y, self.weight)
        )
        x = x if self.frame is None else self.frame.inside(x)
        return Block(x, y, weight, keep_width=max(self._keep_width, 0))

    def _rows_of(self, a: Array, span: slice) -> Array:
        return a[span, ...]


class RowsByClass(ArrayRows):
    """The same rows with those of one class together."""

    def __init__(self, *columns: Any, **settings: Any) -> None:
        super().__init__(*columns, **settings)
        assert self.y is not None
        self._order = namespace(self.y).argsort(self.y, stable=True)
        codes, counts = np.unique(to_numpy(self.y), return_counts=True)
        ends = np.cumsum(counts)
        self._spans = list(
            zip(codes.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True)
        )

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self._with(ArrayRows, self.frame, self.width).each(function, *params)

    def _make_block(self, span: slice) -> Block:
        block = super()._make_block(span)
        inside = {
            code: slice(max(start, span.start) - span.start, min(end, span.stop) - span.start)
            for code, start, end in self._spans
        }
        block.classes = {code: part for code, part in inside.items() if part.start < part.stop}
        return block

    def _rows_of(self, a: Array, span: slice) -> Array:
        return namespace(a).take(a, self._order[span], axis=0)


def _equal_blocks(n_rows: int, most: int, n_threads: int) -> int:
    """Rows of a block, at most `most`, in few blocks of equal size: as many for each of 2, 4, ...
    up to `n_threads` threads.
    """
    n_blocks = max(1, -(-n_rows // most))
    multiple = min(1 << (n_blocks.bit_length() - 1), n_threads)
    n_blocks = -(-n_blocks // multiple) * multiple
    return max(1, -(-n_rows // n_blocks))
