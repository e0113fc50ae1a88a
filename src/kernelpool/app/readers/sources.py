"""Files, folders and stdin as batches of columns.

What a file is, is told by its first bytes, not by its name: Parquet, Arrow (file or stream, which Feather is), or text, which
may be compressed. A file is opened once and read from front to back where the format allows it, so pipes will do. Text is
read as text: what is a number is decided later, by `columns`, where a cell can still be named by its row.

Text is cut into blocks of whole rows here, and Arrow parses one block at a time from memory. Arrow's own streaming reader
reads ahead from a thread of its own; given a Python stream, that thread can meet the end of the interpreter and abort the
process.
"""

import codecs
import csv
import io
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from ...errors import TableError
from ...text import listed, plural, quoted, shown

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
NOT_TABLES = {
    b"PK\x03\x04": "an Excel workbook (.xlsx) or another zip archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook (.xls) or another Office file",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
    b"FEA1": "Feather version 1",
}
TEXT_NOT_TABLES = {
    "JSON": re.compile(rb'\s*[\[{]\s*["\[{0-9\]}]'),
    "HTML or XML": re.compile(rb"\s*<(!doctype|html|\?xml)\b", re.IGNORECASE),
}
HEAD = 1 << 20
"""Bytes that are looked at to tell what a file is."""

CELLS = 1 << 20
"""Cells of a batch of Parquet."""

BUFFER = 1 << 20
"""Bytes that are read of a column of Parquet at a time; whole files would be read ahead otherwise."""

DELIMITERS = ",;\t|"
LONGEST_HEADER = 1 << 25
BLOCK = 1 << 24
"""Bytes that are parsed at a time; a row must fit."""

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?(\r\n|\n|\r)')
"""What spreadsheets write before the header to say which delimiter follows."""


@dataclass(frozen=True)
class TextStyle:
    """How text files are written, where they do not show it themselves."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True
    missing: tuple[str, ...] = ()
    """Words that stand for a missing cell, beside `columns.MISSING`."""


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
    style: TextStyle = field(default_factory=TextStyle)


@dataclass
class Source:
    """Rows that can be read once, from front to back."""

    label: str
    files: list[str]
    style: TextStyle
    names: list[str] = field(default_factory=list)
    """Names of the columns, known from the first batch on, or after `batches` has ended."""
    n_bytes: int | None = None
    """Size of the files together, where known."""
    bytes_read: int = 0
    folder: str | None = None
    """Where the files are, if they are those of a folder: folders `key=value` inside it are columns."""

    def batches(self) -> Iterator[Batch]:
        """Every batch of every file; the columns of all files must be the same, in any order."""
        self.bytes_read = 0
        for path in self.files:
            with _raw(path) as raw:
                name = "stdin" if path == "-" else shown(path, 200)
                names, pieces, typed = _opened(path, name, raw, self)
                partition = {} if self.folder is None else _partition(path, self.folder)
                if partition:
                    names, pieces = (
                        [*names, *partition],
                        _with_constants(pieces, list(partition.values())),
                    )
                _check_names(names, name)
                self.names = self.names or list(names)
                _check_same(self.names, names, shown(self.files[0]), name)
                yield from _numbered(name, names, pieces, typed, self.style)


def source(path: str, style: TextStyle | None = None) -> Source:
    """The rows of a file, of the files of a folder, or of stdin (`-`).

    Parameters
    ----------
    path : str
        A file, a folder, or `-`.
    style : TextStyle, optional
        How text files are written, where they do not show it themselves.
    """
    style = style or TextStyle()
    if path == "-":
        return Source("stdin", ["-"], style)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise TableError(f"{shown(path, 200)}: {_reason(error)}.") from None
    if not stat.S_ISDIR(mode):
        size = os.path.getsize(path) if stat.S_ISREG(mode) else None
        return Source(shown(path, 200), [path], style, n_bytes=size)
    files = sorted(str(p) for p in Path(path).rglob("*") if _is_data(p, Path(path)))
    if not files:
        known = ", ".join(SUFFIXES)
        raise TableError(
            f"{shown(path, 200)}: no data files in this folder; expected {known} (or .gz of text)."
        )
    label, n_bytes = (
        f"{shown(path, 200)} ({plural(len(files), 'file')})",
        sum(map(os.path.getsize, files)),
    )
    return Source(label, files, style, n_bytes=n_bytes, folder=path)


def stem_of(path: str) -> str:
    """The name of a data file without its folder and its endings."""
    name = Path(path).resolve().name
    for _ in range(2):
        stem, dot, suffix = name.rpartition(".")
        if stem and dot + suffix.lower() in (*SUFFIXES, ".gz", ".bz2", ".zst"):
            name = stem
    return name


def _is_data(path: Path, folder: Path) -> bool:
    """Whether it is a data file of the folder, or of folders `key=value` inside it."""
    if not all("=" in part for part in path.relative_to(folder).parts[:-1]):
        return False
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".zst"):
        suffixes.pop()
    return (
        path.is_file()
        and not path.name.startswith((".", "_"))
        and bool(suffixes)
        and suffixes[-1] in SUFFIXES
    )


def _partition(path: str, folder: str) -> dict[str, Any]:
    """What folders `key=value` say of a file, as Hive writes them: whole numbers, words, or nothing."""
    pairs = (part.split("=", 1) for part in Path(path).relative_to(folder).parts[:-1])
    cells = {unquote(key): unquote(value) for key, value in pairs}
    whole = re.compile(r"-?(0|[1-9][0-9]{0,17})")
    return {
        k: None if v == NO_PARTITION else int(v) if whole.fullmatch(v) else v
        for k, v in cells.items()
    }


def _with_constants(pieces: Iterator[Any], values: list[Any]) -> Iterator[Any]:
    """Batches with a column for each of the values besides."""
    import pyarrow as pa

    for piece in pieces:
        extra = [pa.repeat(pa.scalar(value), piece.num_rows) for value in values]
        names = [str(i) for i in range(len(piece.columns) + len(extra))]
        yield pa.record_batch([*piece.columns, *extra], names=names)


def _check_names(names: list[str], file: str) -> None:
    """Every column has its own name."""
    if not names:
        raise TableError(f"{file}: no columns.")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise TableError(
            f"{file}: several columns are named {listed(twice)}; give each its own name."
        )


def _check_same(expected: list[str], found: list[str], first: str, other: str) -> None:
    """Columns are matched by name: reordered is fine, missing or extra ones are not."""
    here, there = set(expected), set(found)
    missing, extra = (
        [name for name in expected if name not in there],
        [name for name in found if name not in here],
    )
    if missing or extra:
        parts = [f"lacks {listed(missing)}"] * bool(missing) + [
            f"has {listed(extra)} besides"
        ] * bool(extra)
        raise TableError(
            f"{other}: its columns differ from those of {first}: it {' and '.join(parts)}."
        )


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


# -- one file -----------------------------------------------------------------------------------------------------


@contextmanager
def _raw(path: str) -> Iterator[Any]:
    """The bytes of a file, or of stdin, which stays open."""
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise TableError("stdin is closed: there are no data to read.")
        yield sys.stdin.buffer
        return
    try:
        raw = open(path, "rb")  # noqa: SIM115 (errors of opening alone are told so)
    except OSError as error:
        raise TableError(f"{shown(path, 200)}: {_reason(error)}.") from None
    with raw:
        yield raw


class _Rejoined(io.RawIOBase):
    """A stream with its first bytes, which were looked at, put back; counts what is read."""

    def __init__(self, head: bytes, rest: Any, owner: Source) -> None:
        self.head, self.rest, self.owner = head, rest, owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.head[: len(buffer)] or self.rest.read(len(buffer)) or b""
        self.head = self.head[len(chunk) :] if self.head else b""
        buffer[: len(chunk)] = chunk
        self.owner.bytes_read += len(chunk)
        return len(chunk)


def _opened(path: str, name: str, raw: Any, owner: Source) -> tuple[list[str], Iterator[Any], bool]:
    """The names of the columns of a file, its record batches, and whether they have types."""
    import pyarrow as pa

    try:
        head = raw.read(HEAD)
        if not head:
            raise TableError(f"{name}: the file is empty.")
        stream: Any = io.BufferedReader(_Rejoined(head, raw, owner), HEAD)
        if head[:4] == b"PAR1":
            return (*_parquet(_seekable(path, stream)), True)
        if head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            return (*_arrow(head, path, stream), True)
        kind = _not_a_table(head)
        if kind is not None:
            raise TableError(
                f"{name}: this is {kind}.",
                "Save the table as CSV, Parquet or Arrow (Feather version 2).",
            )
        for magic, codec in COMPRESSED.items():
            if head.startswith(magic):
                stream = pa.CompressedInputStream(pa.PythonFile(stream, "r"), codec)
        return (*read_text(name, stream.read(HEAD), stream, owner.style), False)
    except OSError as error:
        raise TableError(f"{name}: {_reason(error)}.") from None
    except (pa.ArrowException, MemoryError) as error:  # lengths that are lies ask for much memory
        raise TableError(f"{name}: {shown(_first_line(error), 300)}") from None


def _not_a_table(head: bytes) -> str | None:
    """What a file is that is no table."""
    for kind, pattern in TEXT_NOT_TABLES.items():
        if pattern.match(head[:1000]):
            return kind
    return next((kind for magic, kind in NOT_TABLES.items() if head.startswith(magic)), None)


def _seekable(path: str, stream: Any) -> Any:
    """The file itself, or all that a pipe has to give."""
    import pyarrow as pa

    return (
        pa.OSFile(path) if path != "-" and os.path.isfile(path) else pa.BufferReader(stream.read())
    )


def _parquet(file: Any) -> tuple[list[str], Iterator[Any]]:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
    names = parquet.schema_arrow.names
    return names, parquet.iter_batches(batch_size=max(64, CELLS // max(1, len(names))))


def _arrow(head: bytes, path: str, stream: Any) -> tuple[list[str], Iterator[Any]]:
    import pyarrow as pa

    if head[:6] == b"ARROW1":
        file = pa.ipc.open_file(_seekable(path, stream))
        return file.schema.names, (file.get_batch(i) for i in range(file.num_record_batches))
    pieces = pa.ipc.open_stream(stream)
    return pieces.schema.names, pieces


def _numbered(
    name: str, names: list[str], pieces: Iterator[Any], typed: bool, style: TextStyle
) -> Iterator[Batch]:
    """Record batches with the numbers of their rows."""
    import pyarrow as pa

    row = 1
    try:
        for piece in pieces:
            if piece.num_rows:
                if typed:
                    piece.validate(full=True)  # a file may lie about its own lengths
                yield Batch(
                    name,
                    row,
                    dict(zip(names, piece.columns, strict=True)),
                    piece.num_rows,
                    typed,
                    style,
                )
            row += piece.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise TableError(
            f"{name}: damaged after row {row - 1}: {shown(_first_line(error), 300)}"
        ) from None


# -- delimited text -----------------------------------------------------------------------------------------------


def read_text(
    name: str, head: bytes, rest: Any, style: TextStyle
) -> tuple[list[str], Iterator[Any]]:
    """The names of the columns, and the rows as Arrow record batches of strings.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    head : bytes
        The first bytes of the file.
    rest : file object
        Where the bytes after them are read from.
    style : TextStyle
    """
    encoding = style.encoding or (
        "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    )
    pieces = _as_utf8(name, head, rest, encoding)
    header, body, separator = _header(name, pieces, encoding)
    delimiter = style.delimiter or separator or _delimiter(header)
    first = _cells(header, delimiter)
    if len(first) == 1 and first[0] and max(map(len, first)) > csv.field_size_limit():
        raise TableError(
            f"{name}: the first line has no delimiter in its first {csv.field_size_limit():,} characters."
        )
    if style.header and header.startswith("#"):
        raise TableError(
            f"{name}: the first line is a comment: {quoted(header.strip())}.",
            "Take such lines out.",
        )
    if style.header and all(is_number(cell) for cell in first):
        raise TableError(
            f"{name}: the first line looks like data: {listed(first)}.",
            "Add a line of names, or pass header=False.",
        )
    names = (
        [cell.strip() for cell in first]
        if style.header
        else [f"c{i + 1}" for i in range(len(first))]
    )
    if not style.header:
        body = header.encode() + body
    return names, _parsed(name, names, body, pieces, delimiter, encoding)


def _as_utf8(name: str, head: bytes, rest: Any, encoding: str) -> Iterator[bytes]:
    """The bytes of a file in UTF-8, without a byte order mark; bad bytes of UTF-8 are left for Arrow, which names their row."""
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
    piece = head.removeprefix(codecs.BOM_UTF8) if decoder is None else head
    while piece:
        try:
            yield piece if decoder is None else decoder.decode(piece).encode()
        except UnicodeError:
            raise TableError(
                f"{name}: not {encoding} text.", "Pass its encoding, such as encoding='latin-1'."
            ) from None
        piece = rest.read(BLOCK)


def _header(name: str, pieces: Iterator[bytes], encoding: str) -> tuple[str, bytes, str | None]:
    """The header, the bytes that were read after it, and the delimiter of a line `sep=`."""
    read = b""
    for piece in pieces:
        read += piece
        if len(read) > LONGEST_HEADER:
            break
        found = _whole_header(read)
        if found is not None:
            break
    read = read.lstrip(b"\r\n")
    if not read.strip():
        raise TableError(f"{name}: the file is empty.")
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(read)
    separator = SEPARATOR_LINE.match(text)
    if separator is not None:
        read = read[len(separator[0].encode()) :].lstrip(b"\r\n")
        if not read.strip():
            raise TableError(
                f"{name}: there is nothing below the line {quoted(separator[0].strip())}."
            )
    end = _whole_header(read)
    header = read if end is None else read[:end]
    try:
        return header.decode(), read[len(header) :], None if separator is None else separator[1]
    except UnicodeDecodeError:
        raise TableError(
            f"{name}: the header is not {encoding} text.",
            "Pass its encoding, such as encoding='latin-1'.",
        ) from None


def _whole_header(read: bytes) -> int | None:
    """Where the first row ends; None if it goes on after what was read."""
    start = len(read) - len(read.lstrip(b"\r\n"))
    separator = re.match(rb'"?sep=.{1,4}"?[\r\n]+', read[start:])
    quotes, at = 0, start + (separator.end() if separator else 0)
    for line in read[at:].splitlines(keepends=True)[:1000]:
        quotes, at = quotes + line.count(b'"'), at + len(line)
        if quotes % 2 == 0 and line.endswith((b"\n", b"\r")):
            return at
    return None


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=lambda d: len(_cells(header, d)))


def _cells(header: str, delimiter: str) -> list[str]:
    """The cells of the first line; the line itself where a cell is longer than Python's reader takes."""
    try:
        return next(csv.reader(io.StringIO(header), delimiter=delimiter), [])
    except csv.Error:
        return [header]


def is_number(cell: str) -> bool:
    """Whether Python reads the cell as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(
    name: str, names: list[str], body: bytes, pieces: Iterator[bytes], delimiter: str, encoding: str
) -> Iterator[Any]:
    import pyarrow as pa

    row = 1
    try:
        for block in _blocks(body, pieces, delimiter):
            if not block:
                raise TableError(
                    f"{name}, after row {row - 1}: a row is longer than {BLOCK:,} bytes."
                )
            for batch in _table(block, len(names), delimiter).to_batches():
                yield batch
                row += batch.num_rows
    except pa.ArrowInvalid as error:
        message, advice = _why(error, encoding)
        raise TableError(f"{name}, {_place(error, row, names)}: {message}", advice) from None
    except OSError as error:
        raise TableError(
            f"{name}, after row {row - 1}: {(error.strerror or str(error)).lower()}."
        ) from None


def _blocks(read: bytes, pieces: Iterator[bytes], delimiter: str) -> Iterator[bytes]:
    """Pieces of a file that end with a row; an empty one where a row does not end."""
    for piece in pieces:
        read += piece
        end = _end_of_rows(read, delimiter.encode())
        if end:
            yield read[:end]
            read = read[end:]
        elif len(read) > BLOCK:
            yield b""
    if len(read) > BLOCK and not _end_of_rows(read[:BLOCK], delimiter.encode()):
        yield b""
    elif read.strip(b"\r\n"):
        yield read if read.endswith((b"\n", b"\r")) else read + b"\n"


def _end_of_rows(read: bytes, delimiter: bytes) -> int:
    """Where the last whole row ends: after the last end of line that is not inside quotes."""
    if b'"' not in read:
        return _end_of_line(read, 0, len(read))
    before = len(read)
    for start, end in _quoted_cells(read, delimiter)[::-1]:
        last = _end_of_line(read, end, before)
        if last:
            return last
        before = start
    return _end_of_line(read, 0, before)


def _end_of_line(read: bytes, start: int, end: int) -> int:
    return max(read.rfind(b"\n", start, end), read.rfind(b"\r", start, end)) + 1


def _quoted_cells(read: bytes, delimiter: bytes) -> np.ndarray:
    """Where quoted cells begin and end, (n, 2); a quote that is written twice may end one and begin another.

    Where all quotes stand beside delimiters, ends of lines and other quotes, they begin and end cells in turn; cells are
    searched for one by one, which takes long, only where some do not.
    """
    text = np.frombuffer(read, np.uint8)
    at = np.flatnonzero(text == ord('"'))
    beside = np.zeros(256, bool)
    beside[[*b'\r\n"', *delimiter]] = True
    opening, closing = at[::2], at[1::2]
    opens = beside[text[opening[opening > 0] - 1]].all()
    closes = beside[text[closing[closing < len(text) - 1] + 1]].all()
    if opens and closes:
        return np.stack([opening, np.append(closing + 1, np.full(len(at) % 2, len(text)))], axis=1)
    quoted_cell = re.compile(
        rb'(?:^|(?<=[\r\n%b]))"[^"]*(?:""[^"]*)*(?:"|\Z)' % re.escape(delimiter)
    )
    return np.array([found.span() for found in quoted_cell.finditer(read)], np.int64).reshape(-1, 2)


def _table(block: bytes, n_columns: int, delimiter: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    keys = [str(i) for i in range(n_columns)]
    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=keys
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False
        ),
    )


def _place(error: Exception, row: int, names: list[str]) -> str:
    """Where Arrow found a wrong cell, counted in rows of the file."""
    column, number = (
        re.search(r"In CSV column #(\d+):", str(error)),
        re.search(r": Row #(\d+): ", str(error)),
    )
    at = f"after row {row - 1}" if number is None else f"row {int(number[1]) + row - 1}"
    return at if column is None else f"{at}, column {quoted(names[int(column[1])])}"


def _why(error: Exception, encoding: str) -> tuple[str, str]:
    text = str(error).strip().splitlines()[0]
    cells = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text)
    if cells is not None:
        return (
            f"{plural(int(cells[2]), 'cell')} where the header has {cells[1]}: {quoted(cells[3])}.",
            "",
        )
    if "utf8" in text.lower():
        return f"not {encoding} text.", "Pass its encoding, such as encoding='latin-1'."
    return shown(text, 300), ""
