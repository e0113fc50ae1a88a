"""Rows of an array in memory, over threads.

Where cells are missing, complete rows come first, in blocks of their own. The others are sorted by
pattern, so that rows in which the same cells are known lie together. Where no cell is missing
nothing changes, to the last bit.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, reduce
from operator import add
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

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
from .block import Block, Frame, Layout, MissingCells

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
"""Bytes of rows in the frame, and of what is computed from them, that are cached between sweeps."""

MOST_TASKS = 32
"""Tasks into which the blocks are grouped; fixed, so that results do not depend on the threads."""


# -- rows ------------------------------------------------------------------------------------------


class ArrayRows:
    """Rows of an array of any array-API library, a block at a time, over threads in NumPy.

    `layout` are the fields of a `Layout`.
    """

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        **layout: Any,
    ) -> None:
        self.x = x
        self.y = y
        self.weight = weight
        self.layout = Layout(**layout)
        frame = self.layout.frame
        self.frame = None if frame is None else frame.like(x)
        self.n_rows, self.n_features = x.shape
        xp = namespace(x)
        # a host computes small parameters before an accelerator has launched its first kernel
        self.backend = (
            np.zeros(0) if on_accelerator(x) else xp.zeros(0, dtype=xp.float64, device=device(x))
        )
        self.eps = eps_of(x)
        row_bytes = 8 * max(self.layout.width, self.n_features)
        memory = device_memory(x)
        if memory is None:
            most = min(BLOCK_BYTES // row_bytes, BLOCK_ROWS)
            keep_bytes = KEEP_BYTES
        else:
            most = min(DEVICE_BLOCK_BYTES, memory // 8) // row_bytes
            keep_bytes = memory // 4
        # what may be cached for a row beside its features in the frame
        room = keep_bytes / (8 * max(self.n_rows, 1)) - self.n_features
        self._keep_width = room if self.layout.keep else -1
        self._cut(_equal_blocks(self.n_rows, max(most, FEWEST_ROWS), 8 if memory is None else 1))

    def _cut(self, block_rows: int) -> None:
        self.block_rows = block_rows
        self.n_blocks = max(1, -(-self.n_rows // block_rows))
        self._blocks: list[Block | None] = [None] * self.n_blocks

    def framed(self, frame: Frame, width: int) -> "ArrayRows":
        return self._with(type(self), frame=frame, width=width)

    def by_class(self) -> "ArrayRows":
        return self if self.y is None else self._with(RowsByClass)

    def _with(self, kind: type["ArrayRows"], **changed: Any) -> "ArrayRows":
        return kind(self.x, self.y, self.weight, **vars(self.layout) | changed)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        return self._within_memory(self._total, statistic, params)  # type: ignore[no-any-return]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self._within_memory(self._each, function, params)

    def _within_memory(
        self, pass_over_rows: Callable[..., Any], function: Any, params: tuple[Any, ...]
    ) -> Any:
        """Where an accelerator has too little memory, the same is tried on blocks half as long."""
        moved = [match_array(p, like=self.x) for p in params]
        while True:
            try:
                return pass_over_rows(function, moved)
            except Exception as error:
                if type(error).__name__ != "OutOfMemoryError" or self.block_rows <= FEWEST_ROWS:
                    raise
            self._cut(max(self.block_rows // 2, FEWEST_ROWS))

    def _total(self, statistic: Callable[..., T], params: list[Any]) -> T:
        total = OrderedSum[T]()
        size = -(-self.n_blocks // MOST_TASKS)

        def add_task(task: int) -> None:
            blocks = range(task * size, min((task + 1) * size, self.n_blocks))
            total.add(task, reduce(add, (statistic(self._block(i), *params) for i in blocks)))

        self._run(add_task, -(-self.n_blocks // size))
        return to_host(total.value) if on_accelerator(self.x) else total.value  # type: ignore[no-any-return]

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
        over_threads(work, n_tasks, self.layout.n_jobs)

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

    def __init__(self, *columns: Any, **layout: Any) -> None:
        super().__init__(*columns, **layout)
        assert self.y is not None
        self._order = namespace(self.y).argsort(self.y, stable=True)
        codes, counts = np.unique(to_numpy(self.y), return_counts=True)
        ends = np.cumsum(counts)
        self._spans = list(
            zip(codes.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True)
        )

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        return self._with(ArrayRows).each(function, *params)

    def _make_block(self, span: slice) -> Block:
        block = super()._make_block(span)
        inside = {
            code: slice(max(start, span.start) - span.start, min(end, span.stop) - span.start)
            for code, start, end in self._spans
        }
        block.classes = {code: at for code, at in inside.items() if at.start < at.stop}
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


# -- missing cells ---------------------------------------------------------------------------------


def has_missing(x: Array) -> bool:
    """Whether any cell is NaN."""
    xp = namespace(x)
    if is_numpy_array(x):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(x.sum()):  # one pass and no array of flags, in the common case
                return False
    return bool(xp.any(xp.isnan(x)))


def with_missing(block: Block) -> np.ndarray:
    """The rows of a block on the host in float64, NaN where a cell is missing, (n, d)."""
    x = np.asarray(to_numpy(block.x), dtype=np.float64)
    return x if block.missing is None else np.where(to_numpy(block.missing.observed) > 0, x, np.nan)


def rows_in_memory(
    x: Array,
    y: Array | None,
    weight: Array | None,
    **layout: Any,
) -> "ArrayRows | RowsWithMissing":
    """Rows of an array in which NaN marks missing cells; `layout` are the fields of a `Layout`."""
    if not has_missing(x):
        return ArrayRows(x, y, weight, **layout)
    missing = np.isnan(to_numpy(x))
    incomplete = missing.any(axis=1)
    complete = np.flatnonzero(~incomplete)
    by_pattern = np.flatnonzero(incomplete)
    by_pattern = by_pattern[np.lexsort(np.packbits(missing[by_pattern], axis=1).T[::-1])]
    parts: list[ArrayRows] = []
    for kind, index in ((ArrayRows, complete), (IncompleteRows, by_pattern)):
        if len(index):
            taken = [None if a is None else _taken(a, index) for a in (x, y, weight)]
            parts.append(kind(*taken, **layout))
    return RowsWithMissing(parts, np.concatenate([complete, by_pattern]), (x, y, weight))


def _taken(a: Array, index: np.ndarray) -> Array:
    xp = namespace(a)
    return xp.take(a, xp.asarray(index, device=device(a)), axis=0)


class IncompleteRows(ArrayRows):
    """Rows each of which misses a cell, sorted by pattern."""

    def by_class(self) -> "IncompleteRows":
        return self  # sorted by pattern already

    def _make_block(self, span: slice) -> Block:
        block = super()._make_block(span)
        xp = namespace(block.x)
        unknown = xp.isnan(block.x)
        known = ~to_numpy(unknown)
        new = np.flatnonzero(np.concatenate([[True], (known[1:] != known[:-1]).any(axis=1)]))
        ends = [*new[1:].tolist(), len(known)]
        block.missing = MissingCells(
            xp.astype(~unknown, block.x.dtype),
            xp.asarray(known[new].astype(np.float64), device=device(block.x)),
            tuple(slice(start, end) for start, end in zip(new.tolist(), ends, strict=True)),
        )
        block.x = xp.where(unknown, xp.zeros_like(block.x), block.x)
        return block


class RowsWithMissing:
    """Rows of an array in memory: the complete ones, and those that miss cells."""

    def __init__(
        self,
        parts: list[ArrayRows],
        order: np.ndarray,
        columns: tuple[Array, Array | None, Array | None],
    ) -> None:
        self.parts = parts
        self.order = order
        """Position of each row of the parts, one after the other, in the array, (n,)."""
        self.x, self.y, self.weight = self.columns = columns
        """In the order of the array."""
        first = parts[0]
        self.n_features = first.n_features
        self.backend = first.backend
        self.eps = first.eps

    def framed(self, frame: Frame, width: int) -> "RowsWithMissing":
        parts = [part.framed(frame, width) for part in self.parts]
        return RowsWithMissing(parts, self.order, self.columns)

    def by_class(self) -> "RowsWithMissing":
        parts = [part.by_class() for part in self.parts]
        return RowsWithMissing(parts, self.order, self.columns)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        return reduce(add, (part.total(statistic, *params) for part in self.parts))  # type: ignore[arg-type]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        values = [part.each(function, *params) for part in self.parts]
        return _taken(namespace(values[0]).concat(values, axis=0), np.argsort(self.order))


# -- threads, one BLAS thread for each -------------------------------------------------------------


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads_for(n_jobs: int | None) -> int:
    """None takes as many as BLAS may: joblib, threadpoolctl and OPENBLAS_NUM_THREADS are obeyed."""
    if n_jobs is None:
        with _lock:
            return max(_blas_threads(), default=1)
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


class OrderedSum(Generic[T]):
    """A sum of terms from several threads, added in their order: rounding is always the same, and
    no more terms are held than are early.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._early: dict[int, T] = {}
        self._n_added = 0
        self.value: T

    def add(self, i: int, term: T) -> None:
        """Term number i; those that come before their turn wait."""
        with self._lock:
            self._early[i] = term
            while self._n_added in self._early:
                term = self._early.pop(self._n_added)
                self.value = term if self._n_added == 0 else self.value + term  # type: ignore[operator]
                self._n_added += 1


def map_over_threads(
    function: Callable[[Any], T], values: Sequence[Any], n_jobs: int | None = None
) -> list[T]:
    """`function` of each value, in their order, as `over_threads`."""
    results: dict[int, T] = {}

    def work(i: int) -> None:
        results[i] = function(values[i])

    over_threads(work, len(values), n_jobs)
    return [results[i] for i in range(len(values))]


def over_threads(work: Callable[[int], None], n_tasks: int, n_jobs: int | None) -> None:
    """`work(0)` to `work(n_tasks - 1)` with one BLAS thread each; each thread takes the next task
    when it is free, and the calling one is among them.

    So a sweep wakes n_threads - 1 threads, not one for each task, and never waits for a thread
    that has not begun.
    """
    left = deque(range(n_tasks))

    def take() -> None:
        while left:
            try:
                task = left.popleft()
            except IndexError:  # another thread was quicker
                return
            work(task)

    with one_blas_thread():
        n_helpers = max(min(n_threads_for(n_jobs), n_tasks) - 1, 0)
        helpers = [_threads(n_helpers).submit(take) for _ in range(n_helpers)]
        try:
            take()
        finally:
            left.clear()
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()


@lru_cache
def _threads(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="kernelpool")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_threads.cache_clear)


_lock = Lock()
_holders: list[list[int]] = []
"""For each fit that holds BLAS at one thread: the threads of each library before the first."""


def _blas_threads() -> list[int]:
    """Threads of each BLAS library that is loaded, as they are when no fit holds them."""
    return (
        _holders[0]
        if _holders
        else [library.num_threads or 1 for library in _controller().lib_controllers]
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread while any fit needs it; the last to leave restores the number.

    A training does so for all its sweeps, which costs less than to do so in each. Others set the
    same number too, k-means for one, and may do so before the first fit and restore it before the
    last one ends. So a library that no longer has one thread is left as it is.
    """
    libraries = _controller().lib_controllers
    with _lock:
        before = _blas_threads()
        for library in [] if _holders else libraries:
            library.set_num_threads(1)
        _holders.append(before)
    try:
        yield
    finally:
        with _lock:
            _holders.pop()
            for library, n_threads in [] if _holders else zip(libraries, before, strict=True):
                if library.num_threads == 1:
                    library.set_num_threads(n_threads)
