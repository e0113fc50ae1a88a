"""Columns on their way through a graph: what is given, what holds words, and what are numbers already.

A model of numbers alone takes ``X``, (n, d). One that begins with a step for each kind of column takes a tensor (n, 1) for each
column that it uses, under the name of the column. A column is words or numbers by what the first step asks of it; ONNX has no
missing words, so an empty one stands for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..errors import KernelpoolError
from .graph import Graph

OUTPUTS = ("label", "probabilities", "log_density", "score_samples", "prediction", "std", "decision")
"""Names that a graph has for its answers; a column of such a name is given under another."""


@dataclass(frozen=True)
class Given:
    """A column as it is given."""

    at: int


@dataclass(frozen=True)
class Number:
    """Column `at` of a tensor of numbers, (n, width)."""

    tensor: str
    at: int
    width: int


@dataclass(frozen=True)
class Word:
    """A column of words, some of which stand for others: gaps that an imputer has filled."""

    tensor: str
    column: str
    stands_for: tuple[tuple[str, str], ...] = ()
    gaps_filled: bool = False
    """Whether the empty word stands for a gap and not for itself."""


Column = Given | Number | Word
Columns = list[Column]


class Inputs:
    """What a graph is given."""

    def __init__(self, g: Graph, names: Sequence[str], whole: bool) -> None:
        self.g, self.columns, self.whole = g, list(names), whole
        self.names = ["X"] if whole else free_names(names)
        self.words: dict[int, bool] = {}
        """Whether a column holds words, of those that are used."""
        g.taken.update(self.names)

    def table(self) -> Columns:
        """The columns to begin with."""
        if self.whole:
            return block(self.g.inwards("X"), len(self.columns))
        return [Given(at) for at in range(len(self.columns))]

    def taken(self, at: int, words: bool) -> str:
        """The tensor of a column that is words, or numbers."""
        if self.words.setdefault(at, words) != words:
            raise KernelpoolError(
                f"Column {self.columns[at]!r} is words to one step and numbers to another; an input of ONNX is one of them."
            )
        return self.names[at]

    def infos(self) -> list[Any]:
        """Names, types and shapes, in the order of the columns; those that no step uses are not asked for."""
        from onnx import helper

        number = self.g.kind(self.g.outside.name)
        if self.whole:
            return [helper.make_tensor_value_info("X", number, ["n", len(self.columns)])]
        kinds = {True: self.g.kind("string"), False: number}
        used = sorted(self.words.items())
        return [helper.make_tensor_value_info(self.names[at], kinds[words], ["n", 1]) for at, words in used]

    def about(self) -> list[dict[str, str]]:
        """The columns behind the inputs, for the metadata."""
        kinds = {True: "word", False: "number"}
        return [{"name": self.names[at], "column": self.columns[at], "kind": kinds[w]} for at, w in sorted(self.words.items())]


def free_names(columns: Sequence[str]) -> list[str]:
    """The names of columns, with underscores behind those that are taken."""
    names: dict[str, None] = {}
    for at, column in enumerate(columns):
        name = column.encode("utf-8", "replace").decode("utf-8") or f"x{at}"  # half a character is no text, and "" is no name
        while name in OUTPUTS or name in names:
            name += "_"
        names[name] = None
    return list(names)


def block(tensor: str, width: int) -> Columns:
    """The columns of a tensor, (n, width)."""
    return [Number(tensor, at, width) for at in range(width)]


def numbers(g: Graph, inputs: Inputs, columns: Columns) -> str:
    """Columns side by side, (n, d), in the type of the graph."""
    parts = []
    for source, several in groupby(columns, lambda column: column.tensor if isinstance(column, Number) else type(column)):
        run = list(several)
        if source is Given:
            parts.append(_given(g, inputs, run))
        elif source is Word:
            raise KernelpoolError(f"Column {run[0].column!r} holds words that no encoder turns into numbers.")  # type: ignore[union-attr]
        else:
            parts.append(_picked(g, run))
    return beside(g, parts)


def _given(g: Graph, inputs: Inputs, run: Columns) -> str:
    names = [inputs.taken(column.at, words=False) for column in run if isinstance(column, Given)]
    return g.inwards(beside(g, names))


def _picked(g: Graph, run: Columns) -> str:
    found = [column for column in run if isinstance(column, Number)]
    at = [column.at for column in found]
    if at == list(range(found[0].width)):
        return found[0].tensor
    return str(g.op("Gather", found[0].tensor, g.constant(np.array(at)), axis=1))


def beside(g: Graph, parts: list[str]) -> str:
    """Tensors side by side."""
    return parts[0] if len(parts) == 1 else str(g.op("Concat", *parts, axis=1))
