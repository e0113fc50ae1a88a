"""What an experiment is: units of work, and the file that keeps the finished ones.

An experiment is a module with four names: `NAME`, `PROTOCOL` (every choice that its figures depend
on, by method where units are of one method), `units(quick)` and `work(unit)`, which returns one
record for each figure that the unit contributes to. Units are independent, so they may run in any
order and in any process.

`FinishedUnits` is a file of JSON lines, one a unit: its name, the fingerprint of everything its
figures depend on, and its records. A line is written and flushed to disk when its unit is finished;
a line cut off by a crash is dropped when the file is read again. Units whose fingerprint has
changed (another version, another protocol, other rows) count as not finished.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

Row = dict[str, Any]
"""A line of a CSV file."""

Record = dict[str, Any]
"""What a unit found: method, parameter, kernels, fold, and the numbers, such as `error` in
percent.
"""


@dataclass(frozen=True)
class Unit:
    """What is run in one go: one data set, one repeat, and what else the experiment varies."""

    table: str
    dataset: str
    kernels: int | None = None
    repeat: int = 0
    method: str = ""

    @property
    def key(self) -> str:
        """The name of the unit, the same in every run."""
        parts = (self.table, self.dataset, self.kernels, self.method, self.repeat)
        return "/".join(str(part) for part in parts if part not in (None, ""))


class Experiment(Protocol):
    """What the module of a paper offers."""

    NAME: str
    PROTOCOL: dict[str, Any]

    def units(self, quick: bool) -> list[Unit]: ...
    def work(self, unit: Unit) -> list[Record]: ...


def in_processes(
    function: Callable[[Any], Any], items: Sequence[Any], n_jobs: int = 2, ordered: bool = True
) -> Iterator[Any]:
    """What a function makes of each item, in processes with one BLAS thread each; in their order,
    or as they come.
    """
    if n_jobs == 1 or len(items) < 2:
        with threadpool_limits(1):
            yield from map(function, items)
        return
    with parallel_config("loky", inner_max_num_threads=1):
        how = "generator" if ordered else "generator_unordered"
        yield from Parallel(n_jobs, return_as=how)(delayed(function)(item) for item in items)


def fingerprint(*parts: Any) -> str:
    """Hash of the arguments, the same in every process."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


class FinishedUnits:
    """Records of finished units, kept in a file of JSON lines."""

    def __init__(self, path: Path, resume: bool = True) -> None:
        self.path = path
        self._done: dict[tuple[str, str], list[Record]] = {}
        if resume and path.exists():
            self._read()
        else:
            path.write_text("", encoding="utf-8")

    def _read(self) -> None:
        lines = self.path.read_bytes().split(b"\n")
        whole = []
        for line in lines[:-1]:  # what follows the last newline was cut off
            try:
                entry = json.loads(line)
                self._done[entry["unit"], entry["fingerprint"]] = entry["records"]
            except (ValueError, KeyError, TypeError):
                continue
            whole.append(line + b"\n")
        if b"".join(whole) != b"\n".join(lines):
            repaired = self.path.with_suffix(".part")
            repaired.write_bytes(b"".join(whole))
            os.replace(repaired, self.path)

    def records(self, unit: str, print_: str) -> list[Record] | None:
        """The records of a unit, or None if it is not finished."""
        return self._done.get((unit, print_))

    def add(
        self, unit: str, print_: str, records: list[Record], seconds: float = float("nan")
    ) -> None:
        """Append a finished unit to the file, with the processor seconds it took."""
        line = (
            json.dumps(
                {"unit": unit, "fingerprint": print_, "seconds": seconds, "records": records}
            )
            + "\n"
        )
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._done[unit, print_] = records
