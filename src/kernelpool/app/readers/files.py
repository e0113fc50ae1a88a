"""Files, folders and stdin as batches of columns, and tables that are written.

The format of a file is known by its first bytes, not by its name: Parquet, Arrow (file or stream, as Feather
is), an Excel workbook, or delimited text, which may be compressed. Text is parsed by
`pyarrow.csv.open_csv` with every column as text: `table` decides what is a number, so that a cell
can be named by its row. stdin and pipes are copied to a temporary file first, which is read as often
as needed.

Spreadsheets run cells that begin like a formula. So in CSV that is written, text that begins with
`=`, `@`, a tab or a line end, or with `+` or `-` and is no number, gets an apostrophe in front
unless `raw`. Other formats have types and need none.
"""

import codecs
import csv
import io
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import TableError
from ...text import listed, plain, plural, quoted, shown

SUFFIXES = (
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".pq",
    ".arrow",
    ".arrows",
    ".feather",
    ".ipc",
    ".xlsx",
)
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
ENDINGS = (".gz", ".bz2", ".zst")
NOT_TABLES = {
    rb"\xd0\xcf\x11\xe0": "an Excel workbook (.xls) or another Office file",
    rb"\x80[\x02-\x05]": "a Python pickle",
    rb"\x93NUMPY": "a NumPy array",
    rb"\x89HDF": "an HDF5 file",
    rb"SQLite format 3": "an SQLite database",
    rb"%PDF": "a PDF document",
    rb"FEA1": "Feather version 1",
    rb'\s*[\[{]\s*["\[{0-9\]}]': "JSON",
    rb"(?i)\s*<(!doctype|html|\?xml)\b": "HTML or XML",
}
"""Patterns of the first bytes of files that are no tables."""

HEAD = 1 << 20
"""First bytes of a file, by which its format is known."""

BLOCK = 1 << 24
"""Bytes of text that are parsed at a time; a row must fit."""

CELLS = 1 << 20
"""Cells of a batch of Parquet."""

DELIMITERS = ",;\t|"
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?(\r\n|\n|\r)')
"""What spreadsheets write before the header to name the delimiter."""


@dataclass(frozen=True)
class TextStyle:
    """How text files are written; None detects it."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True
    missing: tuple[str, ...] = ()
    """Text that stands for a missing cell, besides `table.MISSING`."""


class Batch(NamedTuple):
    """Some rows of one file."""

    file: str
    numbers: Any
    """Of the rows within the file, from 1, (n,); the header is not counted."""
    rows: Any
    """pyarrow.RecordBatch."""
    typed: bool
    """Whether the file has types; all columns of text files are strings."""

    def place(self, row: int, name: str) -> str:
        """A cell, for messages."""
        return f"{self.file}, row {self.numbers[row]}, column {quoted(name)}"


@dataclass
class Source:
    """Rows of a file, of the files of a folder, or of stdin (`-`)."""

    path: str
    style: TextStyle = field(default_factory=TextStyle)
    most_bytes: float = math.inf
    """Of larger files so many bytes are read, in rows that are drawn at random."""
    names: list[str] = field(default_factory=list)
    """Names of the columns, known from the first batch on, or when `batches` has ended."""

    def __post_init__(self) -> None:
        self.label = shown(self.path, 200)
        self._copy: Any = None
        if self.path == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise TableError("stdin is closed: there are no data to read.")
            self.label, self.files = "stdin", [self._spooled(sys.stdin.buffer)]
            return
        try:
            mode = os.stat(self.path).st_mode
            if stat.S_ISDIR(mode):
                self.files = sorted(str(p) for p in Path(self.path).iterdir() if _is_data(p))
                self.label = f"{self.label} ({plural(len(self.files), 'file')})"
            elif stat.S_ISREG(mode):
                self.files = [self.path]
            else:
                with open(self.path, "rb") as pipe:
                    self.files = [self._spooled(pipe)]
        except OSError as error:
            raise TableError(f"{self.label}: {_reason(error)}.") from None
        if not self.files:
            raise TableError(
                f"{self.label}: no data files in this folder; expected {', '.join(SUFFIXES)} "
                f"(or .gz of text)."
            )

    def _spooled(self, stream: Any) -> str:
        self._copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 (as long as the source lives)
        shutil.copyfileobj(stream, self._copy, BLOCK)
        self._copy.flush()
        return str(self._copy.name)

    @cached_property
    def share(self) -> float:
        """The share of the rows that is read."""
        return min(1.0, self.most_bytes / max(1, sum(map(os.path.getsize, self.files))))

    def batches(self) -> Iterator[Batch]:
        """Every batch of every file; all files must have the same columns, in any order."""
        import pyarrow as pa

        rng = np.random.default_rng(0)
        for path in self.files:
            name = self.label if self._copy is not None else shown(path, 200)
            row = 0
            with ExitStack() as stack:
                try:
                    names, pieces, typed = _opened(path, name, self.style, stack)
                    self._check_names(names, name)
                    for piece in pieces:
                        if typed:
                            piece.validate(full=True)  # a damaged file may hold wrong lengths
                        at = np.flatnonzero(rng.random(piece.num_rows) < self.share)
                        if len(at):
                            rows = piece if self.share == 1 else piece.take(pa.array(at))
                            yield Batch(name, at + row + 1, rows.rename_columns(names), typed)
                        row += piece.num_rows
                except OSError as error:
                    raise TableError(f"{name}: {_reason(error)}.") from None
                except (pa.ArrowException, MemoryError) as error:  # wrong lengths ask for memory
                    text = shown(str(error).strip().split("\n")[0] or type(error).__name__, 300)
                    after = f"damaged after row {row}: " if row else ""
                    raise TableError(f"{name}: {after}{text}") from None

    def _check_names(self, names: list[str], file: str) -> None:
        twice = [name for name, n in Counter(names).items() if n > 1]
        if not names or twice:
            what = f"several columns are named {listed(twice)}" if twice else "no columns"
            raise TableError(f"{file}: {what}.", "Give each column its own name." * bool(twice))
        self.names = self.names or names
        lacks, besides = (
            sorted(set(a) - set(b)) for a, b in ((self.names, names), (names, self.names))
        )
        if lacks or besides:
            raise TableError(
                f"{file}: its columns differ from those of {shown(self.files[0])}: it lacks "
                f"{listed(lacks) or 'none'} and has {listed(besides) or 'none'} besides."
            )


def stem_of(path: str) -> str:
    """The name of a data file without its folder and its endings."""
    name = Path(path).resolve().name
    for endings in (ENDINGS, SUFFIXES):
        stem, suffix = os.path.splitext(name)
        name = stem if suffix.lower() in endings else name
    return name


def _is_data(path: Path) -> bool:
    """Whether a file of a folder holds data, by its name."""
    named = stem_of(path.name) not in (path.name, "") and not path.name.startswith((".", "_"))
    return named and path.is_file()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _opened(
    path: str, name: str, style: TextStyle, stack: ExitStack
) -> tuple[list[str], Iterator[Any], bool]:
    """The names of the columns of a file, its record batches, and whether they have types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(path, "rb") as file:
        head = file.read(HEAD)
    if not head:
        raise TableError(f"{name}: the file is empty.")
    if head[:4] == b"PAR1":
        parquet = pq.ParquetFile(path, pre_buffer=False, buffer_size=HEAD)
        names = parquet.schema_arrow.names
        return names, parquet.iter_batches(batch_size=max(64, CELLS // max(1, len(names)))), True
    if head[:6] == b"ARROW1":
        arrow = pa.ipc.open_file(stack.enter_context(pa.OSFile(path)))
        pieces = (arrow.get_batch(i) for i in range(arrow.num_record_batches))
        return arrow.schema.names, pieces, True
    if head[:4] == b"\xff\xff\xff\xff":
        stream = pa.ipc.open_stream(stack.enter_context(pa.OSFile(path)))
        return stream.schema.names, stream, True
    if head[:4] == b"PK\x03\x04":
        return (*_workbook(path, name), False)
    kind = next((kind for magic, kind in NOT_TABLES.items() if re.match(magic, head[:1000])), None)
    if kind is not None:
        raise TableError(
            f"{name}: this is {kind}.",
            "Save the table as CSV, Parquet or Arrow (Feather version 2).",
        )
    return (*_text(path, name, head, style, stack), False)


def _workbook(path: str, name: str) -> tuple[list[str], Iterator[Any]]:
    """The first sheet of an Excel workbook; its cells become text, as those of text files are."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        advice = "pip install '.[excel]' in kernelpool's folder, or save the table as CSV."
        raise TableError(f"{name}: Excel workbooks need openpyxl.", advice) from None
    try:
        with open(path, "rb") as file:
            sheet = load_workbook(file, read_only=True, data_only=True).worksheets[0]
            rows = [[_cell(c) for c in row] for row in sheet.iter_rows(values_only=True)]
    except Exception as error:  # whatever openpyxl raises of a damaged file
        what = f"no Excel workbook that can be read ({type(error).__name__})"
        raise TableError(f"{name}: {what}.", "Save the table as CSV.") from None
    cells = zip_longest(*(row for row in rows if any(row)), fillvalue="")
    columns = [column for column in cells if any(column)]
    names = [column[0] for column in columns]
    keys = [str(i) for i in range(len(columns))]
    arrays = [pa.array(column[1:], pa.string()) for column in columns]
    return names, iter([pa.record_batch(arrays, names=keys)])


def _cell(value: Any) -> str:
    """A cell of a workbook as text; a date without a time is a day."""
    text = "" if value is None else str(value).strip()
    return text.removesuffix(" 00:00:00") if isinstance(value, datetime) else text


# -- delimited text --------------------------------------------------------------------------------


def _text(
    path: str, name: str, head: bytes, style: TextStyle, stack: ExitStack
) -> tuple[list[str], Iterator[Any]]:
    """The names of the columns, and the rows as record batches of strings."""
    import pyarrow as pa

    codec = next((codec for magic, codec in COMPRESSED.items() if head.startswith(magic)), None)
    if codec is not None:
        with pa.input_stream(path, compression=codec) as stream:
            head = stream.read(HEAD)
    encoding = style.encoding or _encoding(head)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head).removeprefix("\ufeff")
    except UnicodeError:
        raise TableError(
            f"{name}: not {encoding} text.", "Pass another --text encoding=NAME."
        ) from None
    start = len(text) - len(text.lstrip("\r\n"))
    separator = SEPARATOR_LINE.match(text, start)
    start = start if separator is None else separator.end()
    body = text[start:]
    if not body.strip():
        raise TableError(f"{name}: the file is empty.")
    known_delimiter = style.delimiter or (separator[1] if separator else None)
    names, delimiter, n_lines = _first_row(name, body, known_delimiter, style.header)
    skipped = len(re.findall(r"\r\n|\r|\n", text[:start])) + n_lines * style.header
    stream = stack.enter_context(pa.input_stream(path, compression=codec))
    return names, _parsed(stream, name, names, delimiter, skipped, encoding)


def _encoding(head: bytes) -> str:
    """UTF-16 by its mark; otherwise UTF-8 where the first bytes are, and else Latin-1."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _first_row(
    name: str, body: str, delimiter: str | None, header: bool
) -> tuple[list[str], str, int]:
    """Names of the columns, the delimiter, and the number of lines of the first row."""

    def cells(delimiter: str) -> tuple[list[str], int]:
        reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
        return next(reader, []), reader.line_num

    try:
        delimiter = delimiter or max(DELIMITERS, key=lambda d: len(cells(d)[0]))
        first, n_lines = cells(delimiter)
    except csv.Error:
        raise TableError(
            f"{name}: the first line has no delimiter in {csv.field_size_limit():,} characters."
        ) from None
    if not header:
        return [f"c{i + 1}" for i in range(len(first))], delimiter, n_lines
    if body.startswith("#"):
        line = body.split("\n")[0].strip()
        raise TableError(f"{name}: the first line is a comment: {quoted(line)}.", "Delete it.")
    names = [cell.strip() for cell in first]
    if all(is_number(cell) for cell in names) and names != [str(i) for i in range(len(names))]:
        raise TableError(
            f"{name}: the first line looks like data: {listed(first)}.",
            "Add a line of names, or pass --text header=no.",
        )
    return names, delimiter, n_lines


def is_number(cell: Any) -> bool:
    """Whether Python reads a cell as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(
    stream: Any, name: str, names: list[str], delimiter: str, skipped: int, encoding: str
) -> Iterator[Any]:
    """Record batches of strings; errors name the row."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    keys = [str(i) for i in range(len(names))]
    row = 0
    try:
        reader = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK,
                column_names=keys,
                skip_rows=skipped,
                encoding=encoding,
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False
            ),
        )
        for batch in reader:
            yield batch
            row += batch.num_rows
    except pa.ArrowInvalid as error:
        text = str(error)
        if "Could not skip" in text or "Empty CSV" in text:  # a header, and nothing below it
            return
        at = re.search(r"Row #(\d+): ", text)
        where = f"{name}, " + (f"row {int(at[1]) - skipped}" if at else f"after row {row}")
        cells = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text)
        if cells is not None:
            count = f"{plural(int(cells[2]), 'cell')} where the header has {cells[1]}"
            raise TableError(f"{where}: {count}: {quoted(cells[3])}.") from None
        if "straddling" in text:
            raise TableError(f"{where}: a row is longer than {BLOCK:,} bytes.") from None
        if "UTF8" in text:
            column = re.search(r"In CSV column #(\d+)", text)
            where += f", column {quoted(names[int(column[1])])}" if column else ""
            advice = "Pass its encoding, such as --text encoding=latin-1."
            raise TableError(f"{where}: not UTF-8 text.", advice) from None
        raise TableError(f"{where}: {shown(text, 300)}") from None


# -- tables that are written -----------------------------------------------------------------------

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
def table_writer(kind: str, sink: Any, schema: Any, raw: bool = False) -> Iterator[Any]:
    """A function that writes tables of one schema to an open binary file.

    Parameters
    ----------
    kind : {"csv", "parquet", "arrow", "jsonl"}
    sink : binary file object
    schema : pyarrow.Schema
    raw : bool
        Whether CSV cells that a spreadsheet would run are left as they are.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write_json(table: Any) -> None:
        lines = (json.dumps(plain(row), allow_nan=False) for row in table.to_pylist())
        sink.write("".join(f"{line}\n" for line in lines).encode())

    def write_csv(columns: Any) -> None:
        text = io.StringIO()
        cells = columns if raw else map(harmless, columns)
        rows = zip(*(column.to_pylist() for column in cells), strict=True)
        csv.writer(text, lineterminator="\n").writerows(rows)
        sink.write(text.getvalue().encode())

    if kind == "jsonl":
        yield write_json
    elif kind == "csv":
        write_csv([pa.array([name], pa.string()) for name in schema.names])
        yield lambda table: write_csv(table.columns)
    else:
        arrow = (pq.ParquetWriter if kind == "parquet" else pa.ipc.new_file)(sink, schema)
        yield arrow.write_table
        arrow.close()  # after an error the file stays incomplete


def harmless(cells: Any) -> Any:
    """Cells of which none is a formula to a spreadsheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(cells.type):
        return cells
    no_number = pc.invert(pc.match_substring_regex(cells, NOT_FORMULA))
    risky = pc.and_(pc.match_substring_regex(cells, FORMULA), no_number)
    return pc.if_else(
        risky, pc.binary_join_element_wise(pa.scalar("'"), cells, pa.scalar("")), cells
    )
