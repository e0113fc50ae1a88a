"""Work shared out over threads, one BLAS thread for each."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import ClassVar, Generic, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
Piece = TypeVar("Piece")


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads_for(n_jobs: int | None) -> int:
    """None takes as many as BLAS may, so joblib, threadpoolctl and OPENBLAS_NUM_THREADS are all obeyed."""
    if n_jobs is None:
        return _OneBlasThread.allowed()
    n_cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return n_jobs if n_jobs > 0 else max(1, n_cores + 1 + n_jobs)


class ThreadTuner:
    """Whether threads pay, found by trying: over small arrays they wait for each other longer than they work.

    Threads have the benefit of the doubt, for now and then one of them is late. Sums that take long are left to them unasked.
    """

    PATIENCE = 0.1
    """Seconds beyond which a sum is never tried on one thread."""
    LOSS = 1.25
    """How many times longer threads must take to be left."""
    AGAIN = 50
    """Calls after which they are tried once more."""

    def __init__(self) -> None:
        self._n_calls = 0
        self._seconds = {threads: deque[float](maxlen=3) for threads in (True, False)}

    def use_threads(self) -> bool:
        """Which way to go now."""
        self._n_calls += 1
        if (
            self._n_calls <= 4 or min(self._seconds[True]) > self.PATIENCE
        ):  # the first call makes what later ones find made
            return True
        if not self._seconds[False]:
            return False
        if self._n_calls % self.AGAIN < 3:  # a few times, since the first finds them asleep
            return True
        return min(self._seconds[True]) <= self.LOSS * min(self._seconds[False])

    def record(self, threads: bool, seconds: float) -> None:
        """What it took."""
        self._seconds[threads].append(seconds)


class OrderedSum(Generic[T]):
    """A sum whose terms come from several threads and are added in their order, so that rounding is always the same."""

    def __init__(self) -> None:
        self._lock, self._early, self._n_added = Lock(), dict[int, T](), 0
        self.value: T

    def add(self, i: int, term: T) -> None:
        """Term number i; those that come before their turn wait."""
        with self._lock:
            self._early[i] = term
            while self._n_added in self._early:
                term = self._early.pop(self._n_added)
                self.value = term if self._n_added == 0 else self.value + term  # type: ignore[operator]
                self._n_added += 1


def map_threads(work: Callable[[Piece], T], pieces: list[Piece], n_threads: int) -> list[T]:
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
                for library, n_threads in zip(
                    _controller().lib_controllers, cls.before, strict=True
                ):
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
