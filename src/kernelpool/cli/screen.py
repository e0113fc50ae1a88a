"""What people see, and what machines read instead.

Results go to stdout, everything said along the way to stderr, so that results can be piped. Names and cells come from files
that nobody has vouched for: `shown` takes the control characters out of them, and nothing is ever read as rich's markup.
"""

import json
import math
import sys
import threading
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Self

import numpy as np

from ..text import shorten

BAR_AFTER = 2.0
"""Seconds before a progress bar appears."""


class Exit(IntEnum):
    """Exit codes; `docs/cli.md` lists them."""

    DONE = 0
    FAULT = 1
    USAGE = 2
    DATA = 3
    MODEL = 4
    FIT = 5
    OUTPUT = 6
    REFUTED = 7
    EXTRA = 8
    INTERRUPTED = 130


MEANINGS = {
    Exit.DONE: "done",
    Exit.FAULT: "a fault of kernelpool itself; please report it",
    Exit.USAGE: "the command line is wrong",
    Exit.DATA: "the data cannot be used",
    Exit.MODEL: "the model file cannot be used, or not for this",
    Exit.FIT: "the model cannot be fitted with these settings to these data",
    Exit.OUTPUT: "the output exists already, or cannot be written",
    Exit.REFUTED: "`certify --at-most`: the claim could not be certified",
    Exit.EXTRA: "a package that the command needs is not installed",
    Exit.INTERRUPTED: "interrupted",
}


class CommandError(Exception):
    """Ends a command with a message for its user and an exit code."""

    def __init__(self, code: Exit, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details


def shown(name: Any, longest: int = 60) -> str:
    """A name or cell as it may be put on a screen: printable, and not too long."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in str(name))
    return shorten(text, longest)


def quoted(name: Any) -> str:
    """The same in quotes."""
    return f"'{shown(name)}'"


def listed(names: Sequence[Any], most: int = 5) -> str:
    """Names in a row; the rest is counted."""
    text = ", ".join(quoted(name) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"


class Screen:
    """Where a command speaks. With `--json` it says one JSON object at the end and nothing else."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet

    def say(self, text: str) -> None:
        """A line on the way, for people."""
        if not self.as_json and not self.quiet:
            _console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that should not be missed."""
        if not self.as_json:
            _console(stderr=True).print(f"Warning: {text}", markup=False, highlight=False, soft_wrap=True, style="yellow")

    def result(self, text: str) -> None:
        """A line of the answer, for people."""
        if not self.as_json:
            _console().print(text, markup=False, highlight=False, soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table of the answer, for people."""
        if self.as_json:
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(columns):
            table.add_column(Text(shown(name, 24)), justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*(Text(shown(cell, 40)) for cell in row))
        _console().print(Text(f"\n{title}"), style="bold", soft_wrap=True)
        _console().print(table)

    def answer(self, record: dict[str, Any]) -> None:
        """The answer, for machines."""
        if self.as_json:
            print(json.dumps(plain(record), allow_nan=False), flush=True)

    def working(self, title: str, total: float | None = None, unit: str = "") -> "Working":
        """A progress bar for what follows, once it has taken two seconds."""
        return Working(title, total, unit, visible=not self.as_json and not self.quiet and sys.stderr.isatty())


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr)


class Working:
    """A progress bar on stderr that appears after two seconds and goes away when the work is done."""

    def __init__(self, title: str, total: float | None, unit: str, visible: bool) -> None:
        self.title, self.total, self.unit, self.visible = title, total, unit, visible
        self.done, self.note = 0.0, ""
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self.visible:
            self._timer = threading.Timer(BAR_AFTER, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _show(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:
                return
            columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn()]
            columns += [TextColumn("{task.fields[note]}", markup=False), TimeElapsedColumn()]
            self._bar = Progress(*columns, console=_console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=self.total, completed=self.done, note=self.note)
            self._bar.start()

    def at(self, done: float, note: str = "", title: str | None = None) -> None:
        """So far."""
        with self._lock:
            self.done, self.note, self.title = done, note, title or self.title
            if self._bar is not None:
                self._bar.update(self._task, completed=done, note=note, description=self.title)

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._bar is not None:
                self._bar.stop()
                self._bar = None


def plain(value: Any) -> Any:
    """Numbers, text, lists and mappings as JSON has them; what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
