"""Tables that are written: CSV, Parquet, Arrow and JSON, a line a row.

Spreadsheets run cells that begin like a formula. So in CSV, text that begins with `=`, `@`, a tab or
a line end, or with `+` or `-` and is no number, gets an apostrophe in front unless `raw`. Other
formats have types and need none.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ...text import plain
from .console import CommandError, Exit, placed

FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
}
"""Formats by the ending of a name."""

FORMULA = r"^[=@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[+\-]."
NOT_FORMULA = r"^[+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?$"


@contextmanager
def table_output(
    path: str, kind: str, schema: Any, force: bool, raw: bool = False
) -> Iterator[Any]:
    """A function that writes tables of one schema to a file that appears when all are written, or to
    stdout.

    Parameters
    ----------
    path : str
    kind : {"csv", "parquet", "arrow", "jsonl"}
    schema : pyarrow.Schema
    force : bool
        Whether a file that is there is replaced.
    raw : bool
        Whether CSV cells that a spreadsheet would run are left as they are.
    """
    if path == "-" and sys.stdout.name == os.devnull:  # what `app.run` opens in its place
        raise CommandError(Exit.OUTPUT, "stdout is closed; name a file with -o.")
    with ExitStack() as stack:
        sink: Any = sys.stdout.buffer
        if path != "-":
            sink = stack.enter_context(open(stack.enter_context(placed(path, force)), "wb"))
        with _writer(kind, sink, schema, raw) as write:
            yield write
        sink.flush()


@contextmanager
def _writer(kind: str, sink: Any, schema: Any, raw: bool) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def write_json(table: Any) -> None:
        lines = (json.dumps(plain(row), allow_nan=False) for row in table.to_pylist())
        sink.write("".join(f"{line}\n" for line in lines).encode())

    def write_csv(table: Any) -> None:
        cells = [in_csv(column.combine_chunks(), raw) for column in table.columns]
        lines = pc.binary_join_element_wise(*cells, ",", null_handling="replace")
        whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")
        sink.write(whole[0].as_buffer())
        sink.write(b"\n")

    if kind == "jsonl":
        yield write_json
    elif kind == "csv":
        write_csv(pa.table([[name] for name in schema.names], schema.names))
        yield write_csv
    else:
        arrow = (pq.ParquetWriter if kind == "parquet" else pa.ipc.new_file)(sink, schema)
        yield arrow.write_table
        arrow.close()  # after an error the file stays incomplete


def in_csv(cells: Any, raw: bool) -> Any:
    """Cells as text between commas; unless `raw`, none is a formula to a spreadsheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
        return cells.cast(pa.string())
    if not pa.types.is_string(cells.type):
        cells = pa.array(
            [None if cell is None else str(cell) for cell in cells.to_pylist()], pa.string()
        )
    elif not raw:
        no_number = pc.invert(pc.match_substring_regex(cells, NOT_FORMULA))
        risky = pc.and_(pc.match_substring_regex(cells, FORMULA), no_number)
        cells = pc.if_else(risky, pc.binary_join_element_wise("'", cells, ""), cells)
    doubled = pc.replace_substring(cells, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(cells, '[",\r\n]'), quoted, cells)
