"""Units of work: what is run at one go, kept when it is finished, and skipped when it has been kept before.

A table is a module with four names: `NAME`, `PROTOCOL` (every choice that its figures depend on, by method where units are of
one method), `units(quick)` and `work(unit)`, which returns one record for each figure that the unit contributes to. Units know
nothing of each other, so they may run in any order and in any process.
"""

from dataclasses import dataclass
from typing import Any, Protocol

Record = dict[str, Any]
"""What a unit found: method, parameter, kernels, fold, and the numbers, such as `error` in percent."""


@dataclass(frozen=True)
class Unit:
    """A piece of a table."""

    table: str
    dataset: str
    kernels: int | None = None
    repeat: int = 0
    method: str = ""

    @property
    def key(self) -> str:
        """Its name, the same in every run."""
        parts = (self.table, self.dataset, self.kernels, self.method, self.repeat)
        return "/".join(str(part) for part in parts if part not in (None, ""))


class Table(Protocol):
    """What a paper's module offers."""

    NAME: str
    PROTOCOL: dict[str, Any]

    def units(self, quick: bool) -> list[Unit]: ...
    def work(self, unit: Unit) -> list[Record]: ...
