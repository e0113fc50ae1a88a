"""One paper a file: pure functions of (block, parameters)."""

from typing import Protocol, TypeVar

from ..arrays import Array
from ..rows import Rows

P = TypeVar("P")


class Network(Protocol[P]):
    """What drivers ask of a network: parameters go in, better ones come out, and only `rows` knows
    where the data live.
    """

    def sweep(self, rows: Rows, params: P) -> tuple[P, float]:
        """Better parameters, and the objective, a row, of the given ones."""


class Differentiable(Network[P], Protocol):
    """A network that solvers can train as well."""

    def gradient(self, rows: Rows, params: P) -> tuple[Array, float]:
        """The gradient of its conditional objective by `to_vector(params)`, and that objective, a
        row.
        """

    def to_vector(self, params: P) -> Array:
        """The parameters as one vector; every vector is some network."""

    def from_vector(self, vector: Array, like: P) -> P:
        """The parameters at `vector`, in the shapes of `like`."""
