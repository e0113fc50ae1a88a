"""Where the rows live.

A network never asks. It hands over a function of one block of rows that returns something addable, and gets the sum
over all rows back; or a function that answers row for row, and gets the answers back in the home the rows came from.

Rows reach a network in a *frame*: shifted by a common origin and divided by a unit, so that sums of squares about the
origin lose nothing when the data lie far from zero, and so that no row, however far, overflows.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, reduce
from operator import add
from threading import Lock
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .arrays import Array, at_home_of, detached, device, empty, epsilon, is_array, is_numpy_array, lent, namespace, wide
from .errors import KernelpoolError, UnequalChunksError
from .sums import Sums, record

T = TypeVar("T")

BLOCK_BYTES = 8 << 20
"""Temporaries of one block: large enough to hide the cost of a call, small enough for the processor's caches."""

KEEP_BYTES = 64 << 20
"""What is made of the rows is kept between sweeps if it needs no more than this, and made anew otherwise."""

MOST_TASKS = 32
"""Into how many pieces the blocks are grouped; fixed, so that results do not depend on the number of threads."""


def farthest(rounding: float) -> float:
    """How far from the origin rows of a float type are let, in units of the frame: their squares must not overflow."""
    return 1e100 if rounding < 1e-10 else 1e12


@record
class Frame:
    """x -> (x - origin) / unit."""

    origin: Array
    """(d,)."""
    unit: Array
    """(d,)."""

    def beside(self, x: Array) -> "Frame":
        """The frame in the library and float type of `x`; what that type cannot hold becomes the largest number it can."""
        largest = float(namespace(x).finfo(x.dtype).max)
        held = [namespace(a).clip(wide(a), min=-largest, max=largest) for a in (self.origin, self.unit)]
        return Frame(*(at_home_of(x, a) for a in held))

    def inside(self, x: Array) -> Array:
        """Rows in the frame, held within bounds whose squares cannot overflow."""
        xp = namespace(x)
        bound = farthest(epsilon(x))
        with np.errstate(over="ignore"):  # what overflows is held within the bounds next
            away = x - self.origin
            away /= self.unit
        return np.clip(away, -bound, bound, out=away) if is_numpy_array(away) else xp.clip(away, min=-bound, max=bound)

    def outside(self, x: Array) -> Array:
        """Rows of the frame in the units of the data."""
        return x * self.unit + self.origin

    @property
    def log_volume(self) -> float:
        """log p(x) = log p(x in the frame) - log_volume."""
        xp = namespace(self.unit)
        return float(xp.sum(xp.log(self.unit)))


class Block:
    """Rows that are in memory now, in the frame."""

    def __init__(
        self, x: Array, y: Array | None = None, weight: Array | None = None, *, held: bool = False, keep: bool = False
    ) -> None:
        self.x = x
        """Features, (n, d)."""
        self.y = y
        """Class codes 0..K-1, or -1 where the class is not known, (n,)."""
        self.weight = weight
        """How often each row counts, (n,); None is once."""
        self._held = held
        self._columns: Array | None = None
        self._kept: dict[Any, Any] | None = {} if keep else None

    def scratch(self, shape: tuple[int, ...]) -> Array:
        """Room for what is made of this block and not needed once the next one is asked for."""
        return lent(shape, self.x)

    def write_columns(self, room: Array) -> None:
        """The rows as columns, (d, n), written into `room`; a block that is held through the sweeps turns them round once."""
        if not self._held:
            room[...] = self.x.T
            return
        if self._columns is None:
            self._columns = empty((self.x.shape[1], self.x.shape[0]), self.x)
            self._columns[...] = self.x.T
        room[...] = self._columns

    def once(self, key: Any, make: Callable[["Block"], T]) -> T:
        """`make(self)`, remembered under `key` if what is made of the rows may be kept."""
        if self._kept is None:
            return make(self)
        if key not in self._kept:
            self._kept[key] = make(self)
        made: T = self._kept[key]
        return made


class Rows(Protocol):
    """All that a network may ask of data."""

    n_features: int
    home: Array
    """An empty float64 array where the rows live: parameters are kept beside it."""
    rounding: float
    """Spacing of the rows' float type."""

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        """Sum of `statistic(block, *params)` over every block."""

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        """`function(block, *params)`, row for row, in the home the rows came from."""

    def framed(self, frame: Frame, width: int) -> "Rows":
        """The same rows seen in `frame`, in blocks that suit `width` numbers of scratch a row."""


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
        self.x, self.y, self.weight, self.frame = x, y, weight, frame
        self.n_rows, self.n_features = x.shape
        self.n_jobs = n_jobs
        xp = namespace(x)
        self.home, self.rounding = xp.zeros(0, dtype=xp.float64, device=device(x)), epsilon(x)
        row_bytes = 8 * max(width, self.n_features)
        self.block_rows = _even(self.n_rows, min(max(BLOCK_BYTES // row_bytes, 512), 16384))
        self._keeps = self.n_rows * row_bytes <= KEEP_BYTES
        self._holds = self._keeps or 2 * 8 * self.n_rows * self.n_features <= KEEP_BYTES  # as rows and as columns
        self._blocks: list[Block | None] = [None] * self._n_blocks

    def framed(self, frame: Frame, width: int) -> "ArrayRows":
        return ArrayRows(self.x, self.y, self.weight, frame=frame.beside(self.x), width=width, n_jobs=self.n_jobs)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        at_home = [at_home_of(self.x, p) for p in params]

        def of_piece(spans: range) -> T:
            return reduce(add, (statistic(self._block(i), *at_home) for i in spans))  # type: ignore[arg-type]

        return reduce(add, self._over_threads(of_piece, self._pieces()))  # type: ignore[arg-type]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        at_home = [at_home_of(self.x, p) for p in params]
        first = function(self._block(0), *at_home)
        if self._n_blocks == 1:
            return first
        if not is_numpy_array(first):
            rest = [function(self._block(i), *at_home) for i in range(1, self._n_blocks)]
            return namespace(first).concat([first, *rest], axis=0)
        answer = np.empty((self.n_rows, *first.shape[1:]), first.dtype)
        answer[: first.shape[0]] = first

        def fill(spans: range) -> None:
            for i in spans:
                answer[self._span(i)] = function(self._block(i), *at_home)

        self._over_threads(fill, self._pieces(skip=1))
        return answer

    @property
    def _n_blocks(self) -> int:
        return max(1, -(-self.n_rows // self.block_rows))

    def _pieces(self, skip: int = 0) -> list[range]:
        size = -(-self._n_blocks // MOST_TASKS)
        return [range(max(i, skip), min(i + size, self._n_blocks)) for i in range(skip, self._n_blocks, size)]

    def _span(self, i: int) -> slice:
        # array-api-strict refuses a stop beyond the end
        return slice(i * self.block_rows, min((i + 1) * self.block_rows, self.n_rows))

    def _block(self, i: int) -> Block:
        block = self._blocks[i]
        if block is None:
            span = self._span(i)
            x = self.x[span, :]
            block = Block(
                x if self.frame is None else self.frame.inside(x),
                None if self.y is None else self.y[span],
                None if self.weight is None else self.weight[span],
                held=self._holds,
                keep=self._keeps,
            )
            if self._holds:
                self._blocks[i] = block
        return block

    def _over_threads(self, work: Callable[[range], T], pieces: list[range]) -> list[T]:
        """`work` of every piece, in order."""
        if not is_numpy_array(self.x):  # other libraries bring their own threads
            return [work(piece) for piece in pieces]
        n_threads = min(_n_threads(self.n_jobs), len(pieces))
        with one_blas_thread():
            return list(map(work, pieces)) if n_threads <= 1 else _shared_out(work, pieces, n_threads)


def _even(n_rows: int, most: int) -> int:
    """Rows of a block, at most `most`, such that 2, 4 or 8 threads get equally many blocks of equal size."""
    n_blocks = max(1, -(-n_rows // most))
    multiple = min(1 << (n_blocks.bit_length() - 1), 8)
    n_blocks = -(-n_blocks // multiple) * multiple
    return max(1, -(-n_rows // n_blocks))


class DaskRows:
    """Rows of Dask arrays; every chunk is summed where it lives, and the sums meet as a tree."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        frame: Frame | None = None,
        width: int = 64,
    ) -> None:
        self.x = x.rechunk({1: -1}) if x.numblocks[1] > 1 else x
        self.y, self.weight = (None if a is None else _aligned(a, self.x) for a in (y, weight))
        self.frame, self.width = frame, width
        self.n_features = x.shape[1]
        self.home, self.rounding = np.zeros(0), float(np.finfo(x.dtype).eps)

    def framed(self, frame: Frame, width: int) -> "DaskRows":
        return DaskRows(self.x, self.y, self.weight, frame=frame, width=width)

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        import dask

        # one key for the parameters: they travel once to each worker, not once to each chunk
        sent = dask.delayed((statistic, self.frame, self.width, params), pure=False, traverse=False)
        on_chunk, both = dask.delayed(_total_of_chunk, pure=False), dask.delayed(_both, pure=False)
        parts = [on_chunk(sent, x, y, w) for x, y, w in self._chunks()]
        while len(parts) > 1:  # a tree, so that no worker receives every part
            parts = [both(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
        result: T | None = parts[0].compute()
        if result is None:
            raise KernelpoolError("The Dask array has no rows: every chunk is empty.")
        return result

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        import dask
        import dask.array as da

        sent = dask.delayed((function, self.frame, self.width, params), pure=False, traverse=False)
        like = _each_of_chunk((function, self.frame, self.width, params), np.zeros((1, self.n_features), self.x.dtype))
        on_chunk = dask.delayed(_each_of_chunk, pure=False)
        parts = [
            da.from_delayed(on_chunk(sent, x), shape=(n, *like.shape[1:]), dtype=like.dtype)
            for (x, _, _), n in zip(self._chunks(), self.x.chunks[0], strict=True)
        ]
        return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)

    def _chunks(self) -> list[tuple[Any, Any, Any]]:
        columns = [None if a is None else a.to_delayed().ravel() for a in (self.x, self.y, self.weight)]
        return [
            (x, *(None if c is None else c[i] for c in columns[1:]))  # type: ignore[misc]
            for i, x in enumerate(columns[0])  # type: ignore[arg-type]
        ]


def as_rows(x: Array, y: Array | None = None, weight: Array | None = None, *, n_jobs: int | None = None) -> Rows:
    """The only place where the home of the data is asked for."""
    if hasattr(x, "to_delayed"):
        return DaskRows(x, y, weight)
    if is_array(x):
        return ArrayRows(detached(x), y, weight, n_jobs=n_jobs)
    raise KernelpoolError(f"Rows must be an array of an array-API library or of Dask; got {type(x).__name__}.")


def _aligned(column: Array, x: Array) -> Array:
    """`column` (n,) cut where the rows of `x` are cut."""
    import dask.array as da

    if not hasattr(column, "to_delayed"):
        if x.shape[0] != x.shape[0]:
            raise UnequalChunksError(
                "X is a Dask array of unknown length and y or sample_weight is not a Dask array: "
                "call X.compute_chunk_sizes() first."
            )
        column = da.from_array(np.asarray(column), chunks=(x.chunks[0],))
    if column.numblocks[0] == x.numblocks[0] and str(column.chunks[0]) == str(x.chunks[0]):
        return column
    if column.shape[0] != x.shape[0]:
        raise UnequalChunksError(
            f"X has {x.shape[0]} rows in {x.numblocks[0]} chunks and y or sample_weight {column.shape[0]} in "
            f"{column.numblocks[0]}. Give them the same rows; where Dask does not know lengths (nan), call "
            f"compute_chunk_sizes()."
        )
    return column.rechunk((x.chunks[0],))


def _total_of_chunk(sent: tuple[Any, ...], x: Array, y: Array | None, weight: Array | None) -> Any:
    statistic, frame, width, params = sent
    if x.shape[0] == 0:
        return None
    return _chunk_rows(x, y, weight, frame, width).total(statistic, *params)


def _each_of_chunk(sent: tuple[Any, ...], x: Array) -> Array:
    function, frame, width, params = sent
    return _chunk_rows(x, None, None, frame, width).each(function, *params)


def _chunk_rows(x: Array, y: Array | None, weight: Array | None, frame: Frame | None, width: int) -> ArrayRows:
    # Dask runs a chunk on each of its threads already
    return ArrayRows(x, y, weight, frame=None if frame is None else frame.beside(x), width=width, n_jobs=1)


def _both(a: Any, b: Any = None) -> Any:
    return b if a is None else a if b is None else a + b


# -- the scale of the data, from which the frame follows ----------------------------------------------------------


@record
class Spread(Sums):
    """Weighted sums about a point, in float64."""

    weight: Array
    """Sum of weights, ()."""
    first: Array
    """Sum of weight * (x - about), (d,)."""
    second: Array
    """Sum of weight * (x - about)^2, (d,)."""

    @property
    def mean(self) -> Array:
        """From `about`, (d,)."""
        return self.first / self.weight

    @property
    def variance(self) -> Array:
        """(d,); exact where `about` lies within some deviations of the mean."""
        xp = namespace(self.second)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = self.second / self.weight - self.mean**2
        return xp.where(variance > 0, variance, xp.zeros_like(variance))


def spread(block: Block, about: Array) -> Spread:
    """`Spread` of one block."""
    xp = namespace(block.x)
    away = wide(block.x - about)
    weight = xp.ones_like(away[:, 0]) if block.weight is None else wide(block.weight)
    with np.errstate(over="ignore"):  # whoever asks looks for infinity
        return Spread(xp.sum(weight), weight @ away, weight @ away**2)


# -- threads ------------------------------------------------------------------------------------------------------


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _n_threads(n_jobs: int | None) -> int:
    """None takes as many as BLAS may, so joblib, threadpoolctl and OPENBLAS_NUM_THREADS are all obeyed."""
    if n_jobs is None:
        return _OneBlasThread.allowed()
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, n_cores + 1 + n_jobs)


def _shared_out(work: Callable[[range], T], pieces: list[range], n_threads: int) -> list[T]:
    """`work` of every piece, in order; each thread takes the next piece when it is free, and the calling one is among them.

    So a sweep wakes n_threads - 1 threads, not one for each piece, and never waits for a thread that has not begun.
    """
    done: list[T | None] = [None] * len(pieces)
    left = deque(range(len(pieces)))

    def take() -> None:
        while left:
            try:
                i = left.popleft()
            except IndexError:  # another thread was quicker
                return
            done[i] = work(pieces[i])

    helpers = [_threads(n_threads - 1).submit(take) for _ in range(n_threads - 1)]
    try:
        take()
    finally:
        left.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return done  # type: ignore[return-value]


@lru_cache
def _threads(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="kernelpool")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_threads.cache_clear)


class _OneBlasThread:
    """BLAS is held at one thread while any fit needs it; the last one to leave restores what the first one found.

    Others set the same number too, k-means for one, and may hold it when the first fit comes and let go before the last one
    leaves. So a library that no longer has the one thread it was given is left as it is: somebody else has restored it.
    """

    lock = Lock()
    holders = 0
    before: ClassVar[list[int]] = []

    @classmethod
    def allowed(cls) -> int:
        with cls.lock:
            return max(cls.before, default=1) if cls.holders else _blas_threads()

    @classmethod
    def enter(cls) -> None:
        with cls.lock:
            if cls.holders == 0:
                cls.before = [library.num_threads or 1 for library in _controller().lib_controllers]
                for library in _controller().lib_controllers:
                    library.set_num_threads(1)
            cls.holders += 1

    @classmethod
    def leave(cls) -> None:
        with cls.lock:
            cls.holders -= 1
            if cls.holders == 0:
                for library, n_threads in zip(_controller().lib_controllers, cls.before, strict=True):
                    if library.num_threads == 1:
                        library.set_num_threads(n_threads)


def _blas_threads() -> int:
    return max((library.num_threads or 1 for library in _controller().lib_controllers), default=1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread; a training holds it for all its sweeps, since letting go and taking hold again costs more."""
    _OneBlasThread.enter()
    try:
        yield
    finally:
        _OneBlasThread.leave()
