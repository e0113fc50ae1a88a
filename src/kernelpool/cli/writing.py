"""Files that appear whole or not at all, and tables in the format that their name asks for.

A file is written beside its place and moved there when it is complete. Nothing is replaced unless `--force` says so.

Spreadsheets run cells that begin like a formula. So in CSV, text that begins with `=`, `@`, a tab or a carriage return, or with
`+` or `-` and is no number, gets an apostrophe in front; `--raw` leaves it as it is. Other formats have types and need none.
"""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .screen import CommandError, Exit, plain, shown

NAME_IT = "--json tells about the run; with it, name the output with -o. For rows as JSON, use --format jsonl."
FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".jsonl": "jsonl"}
FORMULA = r"^[=@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[+\-]."
SPECIAL = r"""[,"\r\n]|^\s|\s$|^$"""
PLAIN_NUMBER = r"^[+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?$"


def check_free(path: str, force: bool) -> None:
    """Refuses before any work is done what could not be written after it."""
    if path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)} is a folder; name a file.")
    if not target.parent.is_dir():
        raise CommandError(Exit.OUTPUT, f"There is no folder {shown(target.parent, 200)} to write {shown(target.name)} to.")
    if os.path.lexists(path) and not force:
        raise CommandError(
            Exit.OUTPUT, f"{shown(path, 200)} exists already; pass --force to replace it, or name another with -o."
        )


@contextmanager
def placed(path: str, force: bool) -> Iterator[str]:
    """A name beside `path` to write to; the file is moved to `path` at the end, or removed if anything went wrong."""
    check_free(path, force)
    target = Path(path)
    beside = str(target.with_name(f".{secrets.token_hex(4)}.{target.name[-60:]}.part"))
    try:
        yield beside
        if force:
            os.replace(beside, path)
        else:
            _moved_to_free(beside, path)
    except OSError as error:
        raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {(error.strerror or str(error)).lower()}.") from None
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)


def _moved_to_free(beside: str, path: str) -> None:
    """A link fails where a file has appeared in the meantime; a move would replace it."""
    try:
        os.link(beside, path)
    except FileExistsError:
        check_free(path, force=False)
        raise
    except OSError:  # a file system without links
        check_free(path, force=False)
        os.replace(beside, path)


# -- tables -------------------------------------------------------------------------------------------------------


class TableWriter(Protocol):
    """Takes batches of rows."""

    def write(self, table: Any) -> None: ...
    def close(self) -> None: ...


def format_of(path: str, asked: str | None) -> str:
    """csv, parquet, arrow or jsonl: what was asked for, or what the name ends with."""
    if asked is not None:
        return asked
    if path == "-":
        return "csv"
    found = FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise CommandError(
            Exit.USAGE, f"{shown(path, 200)}: name it .csv, .parquet, .arrow, .feather or .jsonl, or say which with --format."
        )
    return found


@contextmanager
def table_writer(path: str, kind: str, schema: Any, force: bool, raw: bool = False) -> Iterator[TableWriter]:
    """Writes batches to a file that appears when all are written, or to stdout."""
    if path == "-":
        out = sys.stdout.buffer
        writer = _writer(kind, out, schema, raw)
        yield writer
        writer.close()
        out.flush()
        return
    with placed(path, force) as beside, open(beside, "xb") as file:
        writer = _writer(kind, file, schema, raw)
        yield writer
        writer.close()


def _writer(kind: str, sink: Any, schema: Any, raw: bool) -> TableWriter:
    if kind == "jsonl":
        return _JsonLines(sink)
    if kind == "csv":
        return _Csv(sink, schema, raw)
    return _Binary(kind, sink, schema)


class _JsonLines:
    """One JSON object a row."""

    def __init__(self, sink: Any) -> None:
        self.sink = sink

    def write(self, table: Any) -> None:
        lines = (json.dumps(plain(row), allow_nan=False) for row in table.to_pylist())
        self.sink.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        pass


class _Csv:
    """Text; cells that a spreadsheet would run are made harmless unless `raw`."""

    def __init__(self, sink: Any, schema: Any, raw: bool) -> None:
        import pyarrow as pa

        self.sink, self.raw = sink, raw
        names = schema.names if raw else harmless(pa.array(schema.names, pa.string())).to_pylist()
        sink.write((",".join(_cell(name) for name in names) + "\n").encode())

    def write(self, table: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        quotes = False
        for i, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                column = table.column(i) if self.raw else harmless(table.column(i))
                table = table.set_column(i, field, column)
                quotes |= bool(pc.any(pc.match_substring_regex(column, SPECIAL)).as_py())
        out = pa.BufferOutputStream()  # Arrow's "needed" puts every text in quotes
        csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="needed" if quotes else "none"))
        self.sink.write(out.getvalue())

    def close(self) -> None:
        pass


class _Binary:
    """Parquet or Arrow."""

    def __init__(self, kind: str, sink: Any, schema: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.writer = pq.ParquetWriter(sink, schema) if kind == "parquet" else pa.ipc.new_file(sink, schema)

    def write(self, table: Any) -> None:
        self.writer.write_table(table)

    def close(self) -> None:
        self.writer.close()


def _cell(text: str) -> str:
    if any(c in text for c in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def harmless(texts: Any) -> Any:
    """Texts of which none is a formula to a spreadsheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    risky = pc.and_(pc.match_substring_regex(texts, FORMULA), pc.invert(pc.match_substring_regex(texts, PLAIN_NUMBER)))
    return pc.if_else(risky, pc.binary_join_element_wise(pa.scalar("'"), texts, pa.scalar("")), texts)
