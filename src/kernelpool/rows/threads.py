"""Tasks shared among threads, one BLAS thread for each."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Generic, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads_for(n_jobs: int | None) -> int:
    """None takes as many as BLAS may: joblib, threadpoolctl and OPENBLAS_NUM_THREADS are obeyed."""
    if n_jobs is None:
        with _lock:
            return max(_blas_threads(), default=1)
    n_cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return n_jobs if n_jobs > 0 else max(1, n_cores + 1 + n_jobs)


class OrderedSum(Generic[T]):
    """A sum of terms from several threads, added in their order: rounding is always the same, and
    no more terms are held than are early.
    """

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


def over_threads(work: Callable[[int], None], n_tasks: int, n_threads: int) -> None:
    """`work(0)` to `work(n_tasks - 1)`; each thread takes the next task when it is free, and the
    calling one is among them.

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

    n_helpers = max(min(n_threads, n_tasks) - 1, 0)
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
