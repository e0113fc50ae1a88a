"""Delimited text: delimiter, encoding and header are found in its beginning; cells stay text.

The file is cut into blocks of whole rows here, and Arrow parses one block at a time from memory. Arrow's own streaming reader
reads ahead from a thread of its own; given a Python stream, that thread can meet the end of the interpreter and abort the
process.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import TableError
from ..text import listed, plural, quoted, shown

DELIMITERS = ",;\t|"
LONGEST_HEADER = 1 << 25
BLOCK = 1 << 24
"""Bytes that are parsed at a time; a row must fit."""

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


def read_text(name: str, head: bytes, rest: Any, style: TextStyle) -> tuple[list[str], Iterator[Any]]:
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
    encoding = style.encoding or ("utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8")
    pieces = _as_utf8(name, head, rest, encoding)
    header, body, separator = _header(name, pieces, encoding)
    delimiter = style.delimiter or separator or _delimiter(header)
    first = _cells(header, delimiter)
    if len(first) == 1 and first[0] and max(map(len, first)) > csv.field_size_limit():
        raise TableError(f"{name}: the first line has no delimiter in its first {csv.field_size_limit():,} characters.")
    if style.header and header.startswith("#"):
        raise TableError(f"{name}: the first line is a comment: {quoted(header.strip())}.", "Take such lines out.")
    if style.header and all(_is_number(cell) for cell in first):
        raise TableError(
            f"{name}: the first line looks like data: {listed(first)}.", "Add a line of names, or pass header=False."
        )
    names = [cell.strip() for cell in first] if style.header else [f"c{i + 1}" for i in range(len(first))]
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
            raise TableError(f"{name}: not {encoding} text.", "Pass its encoding, such as encoding='latin-1'.") from None
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
    end = _whole_header(read)
    header = read if end is None else read[:end]
    try:
        return header.decode(), read[len(header) :], None if separator is None else separator[1]
    except UnicodeDecodeError:
        raise TableError(
            f"{name}: the header is not {encoding} text.", "Pass its encoding, such as encoding='latin-1'."
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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(name: str, names: list[str], body: bytes, pieces: Iterator[bytes], delimiter: str, encoding: str) -> Iterator[Any]:
    import pyarrow as pa

    row = 1
    try:
        for block in _blocks(body, pieces, delimiter):
            if not block:
                raise TableError(f"{name}, after row {row - 1}: a row is longer than {BLOCK:,} bytes.")
            for batch in _table(block, len(names), delimiter).to_batches():
                yield batch
                row += batch.num_rows
    except pa.ArrowInvalid as error:
        message, advice = _why(error, encoding)
        raise TableError(f"{name}, {_place(error, row, names)}: {message}", advice) from None
    except OSError as error:
        raise TableError(f"{name}, after row {row - 1}: {(error.strerror or str(error)).lower()}.") from None


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
    before = len(read)
    if b'"' in read:
        quoted_cell = re.compile(rb'(?:^|(?<=[\r\n%b]))"[^"]*(?:""[^"]*)*(?:"|\Z)' % re.escape(delimiter))
        for start, end in reversed([found.span() for found in quoted_cell.finditer(read)]):
            last = max(read.rfind(b"\n", end, before), read.rfind(b"\r", end, before))
            if last >= 0:
                return last + 1
            before = start
    return max(read.rfind(b"\n", 0, before), read.rfind(b"\r", 0, before)) + 1


def _table(block: bytes, n_columns: int, delimiter: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    keys = [str(i) for i in range(n_columns)]
    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=keys),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False),
    )


def _place(error: Exception, row: int, names: list[str]) -> str:
    """Where Arrow found a wrong cell, counted in rows of the file."""
    column, number = re.search(r"In CSV column #(\d+):", str(error)), re.search(r": Row #(\d+): ", str(error))
    at = f"after row {row - 1}" if number is None else f"row {int(number[1]) + row - 1}"
    return at if column is None else f"{at}, column {quoted(names[int(column[1])])}"


def _why(error: Exception, encoding: str) -> tuple[str, str]:
    text = str(error).strip().splitlines()[0]
    cells = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text)
    if cells is not None:
        return f"{plural(int(cells[2]), 'cell')} where the header has {cells[1]}: {quoted(cells[3])}.", ""
    if "utf8" in text.lower():
        return f"not {encoding} text.", "Pass its encoding, such as encoding='latin-1'."
    return shown(text, 300), ""
