"""Tables in the format that the name of a file asks for, batch by batch.

Spreadsheets run cells that begin like a formula. So in CSV, text that begins with `=`, `@`, a tab or
a line end, or with `+` or `-` and is no number, gets an apostrophe in front unless `raw`. Other
formats have types and need none.
"""

import csv
import io
import json
from typing import Any, Self

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
NUMBER = r"^[+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?$"


class TableWriter:
    """Writes tables of one schema to an open binary file.

    Parameters
    ----------
    kind : {"csv", "parquet", "arrow", "jsonl"}
    sink : binary file object
    schema : pyarrow.Schema
    raw : bool
        Whether CSV cells that a spreadsheet would run are left as they are.
    """

    def __init__(self, kind: str, sink: Any, schema: Any, raw: bool = False) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.kind, self.sink, self.raw = kind, sink, raw
        self.arrow: Any = None
        if kind == "parquet":
            self.arrow = pq.ParquetWriter(sink, schema)
        elif kind == "arrow":
            self.arrow = pa.ipc.new_file(sink, schema)
        elif kind == "csv":
            names = pa.array(schema.names, pa.string())
            self._write_csv([(names if raw else harmless(names)).to_pylist()])

    def write(self, table: Any) -> None:
        """Append rows."""
        if self.arrow is not None:
            self.arrow.write_table(table)
        elif self.kind == "jsonl":
            lines = (json.dumps(plain(row), allow_nan=False) for row in table.to_pylist())
            self.sink.write("".join(f"{line}\n" for line in lines).encode())
        else:
            columns = table.columns if self.raw else map(harmless, table.columns)
            self._write_csv(zip(*(column.to_pylist() for column in columns), strict=True))

    def _write_csv(self, rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.sink.write(text.getvalue().encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.arrow is not None and kind is None:
            self.arrow.close()


def harmless(cells: Any) -> Any:
    """Cells of which none is a formula to a spreadsheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(cells.type):
        return cells
    no_number = pc.invert(pc.match_substring_regex(cells, NUMBER))
    risky = pc.and_(pc.match_substring_regex(cells, FORMULA), no_number)
    return pc.if_else(
        risky, pc.binary_join_element_wise(pa.scalar("'"), cells, pa.scalar("")), cells
    )
