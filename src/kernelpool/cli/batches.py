"""Rows on their way in: a batch of columns, and what every reader needs."""

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .screen import CommandError, Exit, listed

HEAD = 1 << 20
"""Bytes that are looked at to tell what a file is."""


@dataclass(frozen=True)
class TextStyle:
    """How text files are written, where it cannot be told from them."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True


@dataclass(frozen=True)
class Batch:
    """Some rows of one file."""

    file: str
    first_row: int
    """Number of its first row within the file, from 1; the header is not counted."""
    columns: dict[str, Any]
    """Arrow arrays by name."""
    n_rows: int
    typed: bool
    """Whether the file says what its columns are; text files do not."""
    decimal: str = "."


@dataclass
class Opened:
    """A file whose columns are known and whose rows are yet to be read."""

    file: str
    names: list[str]
    batches: Iterator[Batch]


class Rejoined(io.RawIOBase):
    """A stream with its first bytes, which were looked at, put back; counts what is read."""

    def __init__(self, head: bytes, rest: Any, counter: Any = None) -> None:
        self.head, self.rest, self.counter = head, rest, counter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.head[: len(buffer)] or self.rest.read(len(buffer)) or b""
        self.head = self.head[len(chunk) :] if self.head else b""
        buffer[: len(chunk)] = chunk
        if self.counter is not None:
            self.counter.bytes_read += len(chunk)
        return len(chunk)


def checked_names(names: list[str], file: str) -> list[str]:
    """Every column has its own name."""
    if not names:
        raise CommandError(Exit.DATA, f"{file}: no columns.")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise CommandError(Exit.DATA, f"{file}: several columns are named {listed(twice)}; give each its own name.")
    return list(names)


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
