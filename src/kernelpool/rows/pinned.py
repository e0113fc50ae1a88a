"""Rows of a torch tensor in pinned host memory, on their way through a card.

A card reads pinned memory by itself while it computes. So rows that do not fit onto it are copied in pieces, the next one
while the sums of this one are being made: a sweep takes as long as the bus or the sums, whichever is slower.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, eps_of, match_array, to_host
from .block import Block
from .frame import Frame
from .in_memory import FEWEST_ROWS

T = TypeVar("T")

PIECE_BYTES = 256 << 20
"""Of the rows that travel together."""

SCRATCH_BYTES = 4 << 30
"""Temporaries of their sums."""


class PinnedRows:
    """Rows that stay in pinned host memory; labels and weights, which are few beside them, are kept on the card."""

    def __init__(
        self,
        x: Array,
        y: Array | None = None,
        weight: Array | None = None,
        *,
        frame: Frame | None = None,
        width: int = 64,
        device: str = "cuda",
    ) -> None:
        self.x, self.frame, self.device = x, frame, device
        self.y, self.weight = (None if a is None else a.to(device) for a in (y, weight))
        self.n_rows, self.n_features = x.shape
        self.home, self.eps = np.zeros(0), eps_of(x)
        self._like = x[:0, :].to(device)
        most = min(
            PIECE_BYTES // (x.element_size() * self.n_features), SCRATCH_BYTES // (8 * width)
        )
        self.block_rows = max(most, FEWEST_ROWS)

    def framed(self, frame: Frame, width: int) -> "PinnedRows":
        return PinnedRows(
            self.x,
            self.y,
            self.weight,
            frame=frame.beside(self._like),
            width=width,
            device=self.device,
        )

    def by_class(self) -> "PinnedRows":
        return self  # rows stay where they are

    def total(self, statistic: Callable[..., T], *params: Any) -> T:
        at_home = [match_array(p, like=self._like) for p in params]
        return to_host(reduce(add, (statistic(block, *at_home) for block in self._blocks())))  # type: ignore[no-any-return]

    def each(self, function: Callable[..., Array], *params: Any) -> Array:
        at_home = [match_array(p, like=self._like) for p in params]
        return import_module("torch").cat(
            [function(block, *at_home).cpu() for block in self._blocks()]
        )

    def _blocks(self) -> Iterator[Block]:
        """The rows in the frame, in order; while one block is worked on, the next one travels."""
        spans = [
            slice(i, min(i + self.block_rows, self.n_rows))
            for i in range(0, max(self.n_rows, 1), self.block_rows)
        ]
        courier = _Courier(self.x, self.device, self.block_rows)
        courier.send(0, spans[0])
        for i, span in enumerate(spans):
            if i + 1 < len(spans):
                courier.send(i + 1, spans[i + 1])
            with courier.received(i, span) as x:
                x = x.clone() if self.frame is None else self.frame.inside(x)
            yield Block(x, *(None if a is None else a[span] for a in (self.y, self.weight)))


class _Courier:
    """Two buffers on the card, filled in turn on a stream of their own."""

    def __init__(self, x: Array, device: str, n_rows: int) -> None:
        self.x, self.cuda = x, import_module("torch").cuda
        self.buffers = [
            x.new_empty((min(n_rows, x.shape[0]), x.shape[1]), device=device) for _ in range(2)
        ]
        self.stream = self.cuda.Stream(device)
        self.arrived, self.free = ([self.cuda.Event() for _ in range(2)] for _ in range(2))
        self.stream.wait_stream(self.cuda.current_stream())  # the buffers may have been another's

    def send(self, i: int, span: slice) -> None:
        with self.cuda.stream(self.stream):
            self.stream.wait_event(self.free[i % 2])
            self.buffers[i % 2][: span.stop - span.start].copy_(self.x[span], non_blocking=True)
            self.arrived[i % 2].record(self.stream)

    @contextmanager
    def received(self, i: int, span: slice) -> Iterator[Array]:
        """Rows that have arrived; their buffer is filled again when they have been read."""
        self.cuda.current_stream().wait_event(self.arrived[i % 2])
        yield self.buffers[i % 2][: span.stop - span.start]
        self.free[i % 2].record(self.cuda.current_stream())
