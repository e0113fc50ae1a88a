"""Rows of Dask arrays, on the threads of this process or on the workers of a cluster.

A sum is a tree of tasks: one a chunk, run where the chunk lives, then `FAN_IN` parts at a time. Parameters are one more task,
so they travel once to each worker, and are made again where a worker is lost. Parts are added in the order of the chunks,
whichever comes first, so that sums are the same to the last bit.

On a cluster the workers hold the rows for all sweeps, those of a chunk together with their labels and weights, and a task is
bound to the workers that have its chunk: otherwise the scheduler moves rows to where it hopes for an idle core, in every sweep.
Where such a worker is lost, its chunks are made anew elsewhere, and the sweep is begun again.
"""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import ClusterLostError, KernelpoolError, UnequalChunksError
from .columns import is_lazy
from .frame import Frame
from .in_memory import ArrayRows
from .missing import RowsWithMissing, rows_in_memory

T = TypeVar("T")

FAN_IN = 8
"""Sums that one task adds."""

ALONE = 300.0
"""Seconds that a fit waits for a worker where there is none at all."""

PATIENCE = 2.0
"""Seconds after which it is looked whether all workers are still there."""


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
        client: Any = None,
        held: list[Any] | None = None,
    ) -> None:
        self.x = x.rechunk({1: -1}) if x.numblocks[1] > 1 else x
        self.y, self.weight = (None if a is None else _aligned(a, self.x) for a in (y, weight))
        self.frame, self.width, self.client, self.held = frame, width, client, held
        self.n_features = x.shape[1]
        self.backend, self.eps = np.zeros(0), float(np.finfo(x.dtype).eps)

    def framed(self, frame: Frame, width: int) -> "DaskRows":
        return self._like(frame=frame, width=width)

    def _like(self, **changes: Any) -> "DaskRows":
        settings = {name: getattr(self, name) for name in ("frame", "width", "client", "held")}
        return DaskRows(self.x, self.y, self.weight, **{**settings, **changes})

    def persisted(self) -> "DaskRows":
        """The same rows, held by the workers of the cluster for all sweeps; where there is none, as they are."""
        import dask

        client = _client()
        if client is None:
            return self
        together = dask.delayed(_together, pure=False)
        with cluster_errors(client):
            return self._like(
                client=client, held=client.compute([together(*chunk) for chunk in self._chunks()])
            )

    def by_class(self) -> "DaskRows":
        return self  # rows stay in the chunks they live in

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        result: T | None = (self._total_here if self.held is None else self._total_there)(
            statistic, params
        )
        if result is None:
            raise KernelpoolError("The Dask array has no rows: every chunk is empty.")
        return result

    def _total_here(self, statistic: Callable[..., T], params: tuple[Any, ...]) -> T | None:
        import dask

        # one key for the parameters: they travel once to each worker, not once to each chunk
        sent = dask.delayed((statistic, self._seen, params), pure=False, traverse=False)
        on_chunk, both = dask.delayed(_total_of_chunk, pure=False), dask.delayed(_both, pure=False)
        parts = [on_chunk(sent, chunk) for chunk in self._chunks()]
        while len(parts) > 1:  # a tree, so that no worker receives every part
            parts = [both(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        result: T | None = parts[0].compute()
        return result

    def _total_there(self, statistic: Callable[..., T], params: tuple[Any, ...]) -> T | None:
        client, held = self.client, self.held or []
        while True:
            with cluster_errors(client):
                where = client.who_has(held)
                homes = [where.get(chunk.key) or None for chunk in held]
                # a task, and no scattered data, which would be lost with its worker
                sent = client.submit(_identity, (statistic, self._seen, params), pure=False)
                parts = [
                    client.submit(_total_of_chunk, sent, chunk, workers=home, pure=False)
                    for chunk, home in zip(held, homes, strict=True)
                ]
                while len(parts) > 1:
                    parts = [
                        client.submit(_both, *parts[i : i + FAN_IN], pure=False)
                        for i in range(0, len(parts), FAN_IN)
                    ]
                done, result = _result(
                    client, parts[0], {worker for home in homes for worker in home or ()}
                )
            if done:
                return result

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        import dask
        import dask.array as da

        sent = dask.delayed((function, self._seen, params), pure=False, traverse=False)
        like = _each_of_chunk(
            (function, self._seen, params), np.zeros((1, self.n_features), self.x.dtype)
        )
        on_chunk = dask.delayed(_each_of_chunk, pure=False)
        parts = [
            da.from_delayed(on_chunk(sent, x), shape=(n, *like.shape[1:]), dtype=like.dtype)
            for (x, _, _), n in zip(self._chunks(), self.x.chunks[0], strict=True)
        ]
        return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)

    @property
    def _seen(self) -> tuple[Frame | None, int]:
        """How a chunk is to be seen."""
        return self.frame, self.width

    def _chunks(self) -> list[tuple[Any, Any, Any]]:
        columns = [
            None if a is None else a.to_delayed().ravel() for a in (self.x, self.y, self.weight)
        ]
        return [
            (x, *(None if c is None else c[i] for c in columns[1:]))  # type: ignore[misc]
            for i, x in enumerate(columns[0])  # type: ignore[arg-type]
        ]


def _aligned(column: Array, x: Array) -> Array:
    """`column` (n,) or (n, o) cut where the rows of `x` are cut."""
    import dask.array as da

    if not is_lazy(column):
        if x.shape[0] != x.shape[0]:
            raise UnequalChunksError(
                "X is a Dask array of unknown length and y or sample_weight is not a Dask array: "
                "call X.compute_chunk_sizes() first."
            )
        column = np.asarray(column)
        if len(column) == x.shape[0]:
            column = da.from_array(column, chunks=(x.chunks[0], *column.shape[1:]))
        else:
            column = da.from_array(column)
    if column.numblocks[0] == x.numblocks[0] and str(column.chunks[0]) == str(x.chunks[0]):
        return column
    if column.shape[0] != x.shape[0]:
        raise UnequalChunksError(
            f"X has {x.shape[0]} rows in {x.numblocks[0]} chunks and y or sample_weight {column.shape[0]} in "
            f"{column.numblocks[0]}. Give them the same rows; where Dask does not know lengths (nan), call "
            f"compute_chunk_sizes()."
        )
    return column.rechunk((x.chunks[0], *column.shape[1:]))


def _together(x: Array, y: Array | None, weight: Array | None) -> tuple[Any, Any, Any]:
    return x, y, weight


def _identity(value: Any) -> Any:
    return value


def _total_of_chunk(sent: tuple[Any, ...], chunk: tuple[Any, Any, Any]) -> Any:
    (statistic, seen, params), (x, y, weight) = sent, chunk
    if x.shape[0] == 0:
        return None
    return _chunk_rows(x, y, weight, *seen).total(statistic, *params)


def _each_of_chunk(sent: tuple[Any, ...], x: Array) -> Array:
    function, seen, params = sent
    return _chunk_rows(x, None, None, *seen).each(function, *params)


def _chunk_rows(
    x: Array, y: Array | None, weight: Array | None, frame: Frame | None, width: int
) -> ArrayRows | RowsWithMissing:
    # Dask runs a chunk on each of its threads already
    kind = rows_in_memory if x.shape[0] else ArrayRows
    return kind(x, y, weight, frame=None if frame is None else frame.like(x), width=width, n_jobs=1)


def _both(*parts: Any) -> Any:
    """The sum, in this order; empty chunks have none."""
    some = [part for part in parts if part is not None]
    return reduce(add, some) if some else None


# -- clusters -------------------------------------------------------------------------------------------------------------


def _client() -> Any:
    """The client of the cluster in use, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _result(client: Any, future: Any, needed: set[str]) -> tuple[bool, Any]:
    """The result of a task, once it is there; not so if one of the workers that it waits for is lost."""
    seen = time.monotonic()
    while True:
        try:
            return True, future.result(
                timeout=10 * PATIENCE if future.done() else PATIENCE
            )  # done: it is on its way
        except TimeoutError:
            if (
                future.status == "error"
            ):  # the task's own; one that came just after the time was up is fetched
                raise
            workers = (
                set(client.scheduler_info(n_workers=-1)["workers"])
                if client.status == "running"
                else set()
            )
            if client.status != "running" or not needed <= workers:
                future.cancel()
                return False, None
            if workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > ALONE:
                future.cancel()
                raise ClusterLostError(f"no worker has been there for {ALONE:g} s") from None


@contextmanager
def cluster_errors(client: Any) -> Iterator[None]:
    """A cluster that is lost in here is told of in one sentence."""
    if client is None:
        yield
        return
    if client.status != "running":
        raise ClusterLostError(f"the client is {client.status}")
    try:
        yield
    except KernelpoolError:
        raise
    except (Exception, CancelledError) as error:  # each of them has its own way to say so
        if client.status == "running" and not _is_loss(error):
            raise
        raise ClusterLostError(f"{type(error).__name__}, the client is {client.status}") from error


def _is_loss(error: BaseException) -> bool:
    """Whether an error tells of the cluster and not of a task."""
    module, name = type(error).__module__, type(error).__name__
    return (
        isinstance(error, CancelledError) or module.startswith("distributed") or "Cancelled" in name
    )
