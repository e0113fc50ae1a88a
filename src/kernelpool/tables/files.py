"""One file of a table, of any format: names and types of its columns, and its rows piece by piece.

The format is known by the first bytes, not by the name: Parquet, Arrow (file or stream, as Feather
is), an Excel workbook, or delimited text, which may be compressed. Cells of text files and workbooks
stay text. pyarrow is imported in functions only.
"""

import codecs
import csv
import io
import os
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import TableError
from ..text import listed, plural, quoted, shown

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
"""Endings of the files of a folder that are read."""

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""Compressed text, by its first bytes."""

ENDINGS = (".gz", ".bz2", ".zst")
"""What follows the ending of compressed text."""

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

BLOCK = 1 << 22
"""Bytes of text that are parsed at a time; a row must fit."""

CELLS = 1 << 20
"""Cells of a batch of Parquet."""

DELIMITERS = ",;\t|"
"""One of them is found in the first line."""

ENCODINGS = ["utf-8", "latin-1"]
"""The first in which the first bytes of a file can be read, but for UTF-16, which has a mark."""


@dataclass(frozen=True)
class ReadOptions:
    """How text files are written; None detects it."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True
    missing: tuple[str, ...] = ()
    """Text that stands for a missing cell, besides `kinds.MISSING`."""


Pieces = Callable[[Sequence[str]], Iterator[Any]]
"""The record batches of a file, of some of its columns."""


class File(NamedTuple):
    """A file that has been opened once."""

    label: str
    schema: Any
    """All columns of text files are strings."""
    typed: bool
    """Whether the file has types."""
    pieces: Pieces


def stem_of(path: str) -> str:
    """The name of a data file without its folder and its endings."""
    name = Path(path).resolve().name
    for endings in (ENDINGS, SUFFIXES):
        stem, suffix = os.path.splitext(name)
        name = stem if suffix.lower() in endings else name
    return name


@contextmanager
def readable(label: str, sizes: Sequence[int] = ()) -> Iterator[None]:
    """Errors of the system and of Arrow name the file, and the row after pieces of these sizes."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, MemoryError) as error:  # wrong lengths ask for memory
        text = shown(str(error).strip().split("\n")[0] or type(error).__name__, 300)
        after = f"damaged after row {sum(sizes)}: " if sizes else ""
        raise TableError(f"{label}: {after}{text}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TableError(f"{label}: {shown(reason, 300)}.") from None


def checked(label: str, schema: Any) -> Any:
    """Columns whose names differ."""
    twice = [name for name, n in Counter(schema.names).items() if n > 1]
    if not schema.names or twice:
        what = f"several columns are named {listed(twice)}" if twice else "no columns"
        raise TableError(f"{label}: {what}.", "Give each column its own name." * bool(twice))
    return schema


def opened(path: str, label: str, options: ReadOptions) -> File:
    """A file by its first bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with readable(label):
        with open(path, "rb") as file:
            head = file.read(HEAD)
        if not head:
            raise TableError(f"{label}: the file is empty.")
        typed = True
        if head[:4] == b"PAR1":
            schema = _with_categories(pq.read_schema(path), pq.read_metadata(path).metadata)
            pieces: Pieces = partial(_parquet, path, schema)
        elif head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            is_file = head[:6] == b"ARROW1"
            with pa.OSFile(path) as file:
                schema = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).schema
            pieces = partial(_arrow, path, is_file)
        elif head[:4] == b"PK\x03\x04":
            rows = _workbook(path, label)
            schema = rows.schema
            pieces = lambda _: iter([rows])  # noqa: E731
            typed = False
        else:
            for magic, kind in NOT_TABLES.items():
                if re.match(magic, head[:1000]):
                    advice = "Save the table as CSV, Parquet or Arrow (Feather version 2)."
                    raise TableError(f"{label}: this is {kind}.", advice)
            names, pieces = _text(path, label, head, options)
            schema = pa.schema([(name, pa.string()) for name in names])
            typed = False
    return File(label, checked(label, schema), typed, pieces)


# -- files with types ------------------------------------------------------------------------------


def _with_categories(schema: Any, metadata: Any) -> Any:
    """The types that pandas or Arrow wrote, of which Parquet keeps the values alone: categories that
    are no text.
    """
    import pyarrow as pa

    with suppress(ValueError, TypeError):  # no such types, or none that can be read
        written = pa.ipc.read_schema(pa.py_buffer(b64decode(metadata[b"ARROW:schema"])))
        for i, (field, before) in enumerate(zip(schema, written, strict=True)):
            if pa.types.is_dictionary(before.type) and not pa.types.is_dictionary(field.type):
                schema = schema.set(i, field.with_type(pa.dictionary(pa.int32(), field.type)))
    return schema


def _parquet(path: str, schema: Any, columns: Sequence[str]) -> Iterator[Any]:
    """A little at a time: neither a row group nor a column of it is held as a whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False, buffer_size=HEAD) as file:
        size = max(64, CELLS // max(1, len(columns)))
        for batch in file.iter_batches(batch_size=size, columns=[*columns]):
            for name in columns:
                kind = schema.field(name).type
                if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(batch[name].type):
                    i = batch.schema.get_field_index(name)
                    batch = batch.set_column(i, name, batch[name].dictionary_encode())
            yield batch


def _arrow(path: str, is_file: bool, _: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa

    with pa.OSFile(path) as file:
        if is_file:
            arrow = pa.ipc.open_file(file)
            yield from map(arrow.get_batch, range(arrow.num_record_batches))
        else:
            yield from pa.ipc.open_stream(file)


def fragment_of(fragment: Any, schema: Any) -> File:
    """A file of a data set of pyarrow; Parquet is read a little at a time."""
    from pyarrow import dataset

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        buffered = {"pre_buffer": False, "use_buffered_stream": True, "buffer_size": HEAD}
        parquet = dataset.ParquetFragmentScanOptions(**buffered) if is_parquet else None
        yield from fragment.to_batches(
            schema,
            columns=[*columns],
            batch_size=max(64, CELLS // max(1, len(columns))),
            batch_readahead=2,
            fragment_scan_options=parquet,
        )

    is_file = isinstance(fragment, dataset.FileFragment)
    is_parquet = is_file and isinstance(fragment.format, dataset.ParquetFileFormat)
    label = shown(fragment.path, 200) if is_file else "the data set"
    return File(label, schema, True, pieces)


# -- workbooks -------------------------------------------------------------------------------------


def _workbook(path: str, label: str) -> Any:
    """The first sheet of an Excel workbook; its cells become text, as those of text files are."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        advice = "pip install '.[excel]' in kernelpool's folder, or save the table as CSV."
        raise TableError(f"{label}: Excel workbooks need openpyxl.", advice) from None
    try:
        with open(path, "rb") as file:
            sheet = load_workbook(file, read_only=True, data_only=True).worksheets[0]
            rows = [[_cell(c) for c in row] for row in sheet.iter_rows(values_only=True)]
    except Exception as error:  # whatever openpyxl raises of a damaged file
        what = f"no Excel workbook that can be read ({type(error).__name__})"
        raise TableError(f"{label}: {what}.", "Save the table as CSV.") from None
    cells = zip_longest(*(row for row in rows if any(row)), fillvalue="")
    columns = [column for column in cells if any(column)]
    arrays = [pa.array([cell or None for cell in column[1:]], pa.string()) for column in columns]
    return pa.record_batch(arrays, names=[column[0] for column in columns])


def _cell(value: Any) -> str:
    """A cell of a workbook as text; a date without a time is a day."""
    text = "" if value is None else str(value).strip()
    return text.removesuffix(" 00:00:00") if isinstance(value, datetime) else text


# -- delimited text --------------------------------------------------------------------------------


def _text(
    path: str, label: str, head: bytes, options: ReadOptions
) -> tuple[list[str], Callable[..., Iterator[Any]]]:
    """The names of the columns, and the rows as record batches of strings."""
    import pyarrow as pa

    codec = next((codec for magic, codec in COMPRESSED.items() if head.startswith(magic)), None)
    if codec is not None:
        with pa.input_stream(path, compression=codec) as stream:
            head = stream.read(HEAD)
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encodings = [options.encoding] if options.encoding else ["utf-16"] if is_utf16 else ENCODINGS
    for encoding in encodings:
        with suppress(UnicodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(head).removeprefix("\ufeff")
            break
    else:
        advice = "Pass another --text encoding=NAME."
        raise TableError(f"{label}: not {encoding} text.", advice)
    body = text.lstrip("\r\n")
    if not body.strip():
        raise TableError(f"{label}: the file is empty.")
    names, delimiter, n_lines = _first_row(label, body, options.delimiter, options.header)
    n_blank = len(text[: len(text) - len(body)].splitlines())
    skipped = n_blank + n_lines * options.header
    return names, partial(_parsed, path, label, names, codec, encoding, delimiter, skipped)


def _parsed(
    path: str,
    label: str,
    names: list[str],
    codec: str | None,
    encoding: str,
    delimiter: str,
    skipped: int,
    columns: Sequence[str],
) -> Iterator[Any]:
    """Record batches of strings; errors name the row. `skipped` lines come before the rows."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    row = 0
    try:
        with pa.input_stream(path, compression=codec) as stream:
            reader = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=BLOCK,
                    column_names=names,
                    skip_rows=skipped,
                    encoding=encoding,
                ),
                arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    include_columns=[*columns],
                ),
            )
            for piece in reader:
                yield piece
                row += len(piece)
    except pa.ArrowInvalid as error:
        text = str(error)
        if "Could not skip" in text or "Empty CSV" in text:  # a header, and nothing below it
            return
        at = re.search(r"Row #(\d+): ", text)
        where = f"{label}, " + (f"row {int(at[1]) - skipped}" if at else f"after row {row}")
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


def _first_row(
    label: str, body: str, delimiter: str | None, header: bool
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
            f"{label}: the first line has no delimiter in {csv.field_size_limit():,} characters."
        ) from None
    if not header:
        return [f"c{i + 1}" for i in range(len(first))], delimiter, n_lines
    if body.startswith("#"):
        line = body.split("\n")[0].strip()
        raise TableError(f"{label}: the first line is a comment: {quoted(line)}.", "Delete it.")
    names = [cell.strip() for cell in first]
    if all(is_number(cell) for cell in names) and names != [str(i) for i in range(len(names))]:
        raise TableError(
            f"{label}: the first line looks like data: {listed(first)}.",
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
