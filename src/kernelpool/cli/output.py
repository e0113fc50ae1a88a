"""Where commands write: nothing is replaced unless `--force` says so, and files appear whole or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import KernelpoolError
from ..files.atomic import atomic_path, is_special
from ..tables.writing import FORMATS, table_writer
from ..text import shown
from .screen import CommandError, Exit

NAME_IT = "--json tells about the run; with it, name the output with -o. For rows as JSON, use --format jsonl."


def check_free(path: str, force: bool) -> None:
    """Refuses before any work is done what could not be written after it."""
    if path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)} is a folder; name a file.")
    if not target.parent.is_dir():
        raise CommandError(Exit.OUTPUT, f"There is no folder {shown(target.parent, 200)} to write {shown(target.name)} to.")
    if os.path.lexists(path) and not force and not is_special(path):
        raise CommandError(
            Exit.OUTPUT, f"{shown(path, 200)} exists already; pass --force to replace it, or name another with -o."
        )


@contextmanager
def failing_as_output(path: str) -> Iterator[None]:
    """Errors of writing, as the command line says them."""
    try:
        yield
    except OSError as error:
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {(error.strerror or str(error)).lower()}.") from None
    except KernelpoolError as error:
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {shown(error, 600)}") from None


def format_of(path: str, given: str | None) -> str:
    """csv, parquet, arrow or jsonl: what was asked for, or what the name ends with."""
    found = given or ("csv" if path == "-" else FORMATS.get(Path(path).suffix.lower()))
    if found is None:
        raise CommandError(
            Exit.USAGE, f"{shown(path, 200)}: name it .csv, .parquet, .arrow, .feather or .jsonl, or say which with --format."
        )
    return found


@contextmanager
def placed(path: str, force: bool) -> Iterator[str]:
    """A name beside `path` to write to; the file is moved to `path` at the end, or removed if anything went wrong."""
    check_free(path, force)
    try:
        with atomic_path(path, replace=force) as beside:
            yield beside
    except FileExistsError:
        check_free(path, force)
        raise
    except OSError as error:
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {(error.strerror or str(error)).lower()}.") from None


@contextmanager
def table_output(path: str, kind: str, schema: Any, force: bool, raw: bool = False) -> Iterator[Any]:
    """Writes tables to a file that appears when all are written, or to stdout."""
    if path == "-":
        if sys.stdout.name == os.devnull:  # what `app.run` opens in its place
            raise CommandError(Exit.OUTPUT, "stdout is closed; name a file with -o.")
        writer = table_writer(kind, sys.stdout.buffer, schema, raw)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with placed(path, force) as beside, open(beside, "wb") as file:
        writer = table_writer(kind, file, schema, raw)
        yield writer
        writer.close()
