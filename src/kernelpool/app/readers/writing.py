"""Tables in the format that the name of a file asks for, batch by batch.

Spreadsheets run cells that begin like a formula. So in CSV, text that begins with `=`, `@`, a tab or a carriage return, or with
`+` or `-` and is no number, gets an apostrophe in front unless `raw`. Other formats have types and need none.
"""

import json
from typing import Any, Protocol

from ...text import plain

FORMATS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
}
"""What the ending of a name asks for."""

FORMULA = r"^[=@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[+\-]."
SPECIAL = r"""[,"\r\n]|^\s|\s$|^$"""
PLAIN_NUMBER = r"^[+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?$"


class TableWriter(Protocol):
    """Takes batches of rows."""

    def write(self, table: Any) -> None: ...
    def close(self) -> None: ...


def table_writer(kind: str, sink: Any, schema: Any, raw: bool = False) -> TableWriter:
    """Writes tables of one schema to an open binary file.

    Parameters
    ----------
    kind : {"csv", "parquet", "arrow", "jsonl"}
    sink : binary file object
    schema : pyarrow.Schema
    raw : bool
        Whether CSV cells that a spreadsheet would run are left as they are.
    """
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
        csv.write_csv(
            table,
            out,
            csv.WriteOptions(include_header=False, quoting_style="needed" if quotes else "none"),
        )
        self.sink.write(out.getvalue())

    def close(self) -> None:
        pass


class _Binary:
    """Parquet or Arrow."""

    def __init__(self, kind: str, sink: Any, schema: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.writer = (
            pq.ParquetWriter(sink, schema) if kind == "parquet" else pa.ipc.new_file(sink, schema)
        )

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

    risky = pc.and_(
        pc.match_substring_regex(texts, FORMULA),
        pc.invert(pc.match_substring_regex(texts, PLAIN_NUMBER)),
    )
    return pc.if_else(
        risky, pc.binary_join_element_wise(pa.scalar("'"), texts, pa.scalar("")), texts
    )
