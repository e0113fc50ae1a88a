"""Text and progress for people, JSON for programs, and files that are written.

Results go to stdout, everything else to stderr, so that results can be piped. Nothing is read as
rich's markup, and a stderr that is full or closed ends no command. No file is replaced without
`--force`, and files appear completely or not at all.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, Self

from ...text import plain, shown

NAME_IT = (
    "--json describes the run: name the output with -o, or use --format jsonl for rows as JSON."
)

BAR_AFTER = 2.0
"""Seconds before a progress bar appears."""


class Exit(IntEnum):
    """Exit codes and their meanings; `docs/cli.md` lists them."""

    DONE = 0, "done"
    FAULT = 1, "a fault of kernelpool itself; please report it"
    USAGE = 2, "the command line is wrong"
    DATA = 3, "the data cannot be used"
    MODEL = 4, "the model file cannot be used, or not for this"
    FIT = 5, "the model cannot be fitted with these settings to these data"
    OUTPUT = 6, "the output exists already, or cannot be written"
    REFUTED = 7, "`evaluate --at-most`: not certified; `check --alarm`: rows have changed"
    EXTRA = 8, "a package that the command needs is not installed"
    INTERRUPTED = 130, "interrupted"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """An int with a meaning."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


class CommandError(Exception):
    """Ends a command with a message for its user and an exit code."""

    def __init__(self, code: Exit, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.details = code, details


class Screen:
    """Where a command writes. With `--json` that is one JSON object at the end and nothing else."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.silent = as_json, as_json or quiet

    def say(self, text: str) -> None:
        """A line along the way, for people."""
        if not self.silent:
            _print(text)

    def warn(self, text: str) -> None:
        """A line that should not be missed."""
        if not self.as_json:
            _print(f"Warning: {text}", style="yellow")

    def complain(self, text: str) -> None:
        """An error, for people."""
        _print(f"Error: {text}", style="red")

    def result(self, text: str) -> None:
        """A line of the result, for people."""
        if not self.as_json:
            _console().print(text, **PLAIN)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table of the result, for people."""
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
        """The result, for programs."""
        if self.as_json:
            print(json.dumps(plain(record), allow_nan=False), flush=True)

    def fail(self, code: Exit, message: str, details: dict[str, Any]) -> NoReturn:
        """End the command with an error."""
        import typer

        if self.as_json:
            error = {"code": int(code), "meaning": code.meaning, "message": message, **details}
            self.answer({"error": error})
        else:
            self.complain(message)
        raise typer.Exit(int(code))

    @contextmanager
    def working(self, title: str, total: float | None = None) -> Iterator["Working"]:
        """A progress bar on stderr that appears after two seconds and vanishes at the end."""
        if self.silent or not sys.stderr.isatty():
            yield Working(self.silent)
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        title_column = TextColumn("{task.description}", markup=False)
        columns = SpinnerColumn(), title_column, BarColumn()
        note = TextColumn("{task.fields[note]}", markup=False)
        bar = Progress(*columns, note, console=_console(stderr=True), transient=True)
        timer = threading.Timer(BAR_AFTER, bar.start)
        timer.daemon = True
        timer.start()
        try:
            yield Working(self.silent, bar, bar.add_task(title, total=total, note=""))
        finally:
            timer.cancel()
            timer.join()
            bar.stop()


PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""Nothing is read as rich's markup, and lines are left to the terminal."""


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=stderr)


def _print(text: str, console: Any = None, style: str | None = None) -> None:
    """A line on stderr; a closed or full one ends no command."""
    with suppress(OSError):
        (console or _console(stderr=True)).print(text, style=style, **PLAIN)


@dataclass
class Working:
    """What is done so far, on a progress bar where there is one."""

    silent: bool
    bar: Any = None
    task: Any = None

    def at(self, completed: float, note: str = "", **state: Any) -> None:
        """So far; `description` and `total` may change."""
        if self.bar is not None:
            self.bar.update(self.task, completed=completed, note=note, **state)

    def line(self, text: str) -> None:
        """A line above the bar, which stays; without a terminal as well."""
        if not self.silent:
            _print(text, None if self.bar is None else self.bar.console)


# -- files -----------------------------------------------------------------------------------------


def check_free(path: str, force: bool) -> None:
    """Refuse before any work is done what could not be written after it."""
    from ...atomic import is_special

    if path == "-":
        return
    target, name = Path(path), shown(path, 200)
    if target.is_dir():
        raise CommandError(Exit.OUTPUT, f"{name} is a folder; name a file.")
    if not target.parent.is_dir():
        raise CommandError(Exit.OUTPUT, f"{name}: there is no folder {shown(target.parent, 200)}.")
    if os.path.lexists(path) and not force and not is_special(path):
        raise CommandError(
            Exit.OUTPUT,
            f"{name} exists already; pass --force to replace it, or name another with -o.",
        )


@contextmanager
def placed(path: str, force: bool) -> Iterator[str]:
    """A name beside `path` to write to; the file is moved to `path` at the end, or removed.

    Without `force` a file that another process has put there in the meantime is kept.
    """
    from ...atomic import atomic_path
    from ...errors import KernelpoolError, TableError  # which need scikit-learn

    check_free(path, force)
    try:
        with atomic_path(path, replace=force) as beside:
            yield beside
    except FileExistsError:
        check_free(path, force)
        raise
    except TableError:  # of what was read to be written
        raise
    except (OSError, KernelpoolError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {shown(reason, 600)}") from None


@contextmanager
def table_output(
    path: str, kind: str, schema: Any, force: bool, raw: bool = False
) -> Iterator[Any]:
    """Writes tables to a file that appears when all are written, or to stdout."""
    from ..readers.writing import table_writer

    if path == "-":
        if sys.stdout.name == os.devnull:  # what `app.run` opens in its place
            raise CommandError(Exit.OUTPUT, "stdout is closed; name a file with -o.")
        with table_writer(kind, sys.stdout.buffer, schema, raw) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with (
        placed(path, force) as beside,
        open(beside, "wb") as file,
        table_writer(kind, file, schema, raw) as write,
    ):
        yield write
