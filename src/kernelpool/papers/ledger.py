"""What has been finished, kept on disk line by line, so that an interrupted run goes on where it stopped.

Each line is one unit: its name, the fingerprint of everything its figures depend on, and its records. A line is written in one
go and flushed to disk when its unit is finished; a line cut off by a crash is dropped when the file is read again. Units whose
fingerprint has changed (another version, another protocol, other rows) count as not done.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .units import Record


def fingerprint(*parts: Any) -> str:
    """A short name of everything given; equal things have equal names in every process."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Ledger:
    """Finished units in a file of JSON lines."""

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
        """What the unit found, if it is finished."""
        return self._done.get((unit, print_))

    def add(self, unit: str, print_: str, records: list[Record]) -> None:
        """Keep a finished unit."""
        line = json.dumps({"unit": unit, "fingerprint": print_, "records": records}) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._done[unit, print_] = records
