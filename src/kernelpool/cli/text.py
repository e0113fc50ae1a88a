"""Text files: delimiter, encoding and header told from their beginning, rows parsed by Arrow, cells left as text."""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from ..text import plural
from .batches import HEAD, Batch, Opened, Rejoined, TextStyle, checked_names, first_line
from .screen import CommandError, Exit, listed, quoted, shown

DELIMITERS = ",;\t|"
LONGEST_HEADER = 1 << 25
BLOCK = 1 << 24
"""Bytes that are parsed at a time; a row must fit."""


def opened_text(name: str, head: bytes, rest: Any, style: TextStyle) -> Opened:
    """A text file of which the first bytes have been read."""
    encoding = style.encoding or _encoding(head)
    text, blank, head = _header_text(name, head, rest, encoding)
    delimiter = style.delimiter or _delimiter(text)
    first = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    if style.header and all(_is_number(cell) for cell in first):
        raise CommandError(
            Exit.DATA,
            f"{name}: the first line looks like data: {listed(first)}. Add a line of names, or pass --no-header.",
        )
    names = [cell.strip() for cell in first] if style.header else [f"c{i + 1}" for i in range(len(first))]
    stream = io.BufferedReader(Rejoined(head, rest), HEAD)
    return Opened(name, checked_names(names, name), _parsed(name, names, stream, style, delimiter, encoding, blank))


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8"


def _header_text(name: str, head: bytes, rest: Any, encoding: str) -> tuple[str, int, bytes]:
    """The whole header, how many empty lines stand before it, and all bytes that were read to see it."""
    decoder = "utf-8-sig" if encoding == "utf-8" else encoding
    while True:
        # a bad byte further down is found where its row can be named
        text = codecs.getincrementaldecoder(decoder)("replace").decode(head)
        blank, text = text[: len(text) - len(text.lstrip("\r\n"))], text.lstrip("\r\n")
        quotes, header, whole = 0, "", False
        for line in text.splitlines(keepends=True)[:1000]:
            header, quotes = header + line, quotes + line.count('"')
            whole = quotes % 2 == 0 and line.endswith(("\n", "\r"))
            if whole:
                break
        more = b"" if whole else rest.read(HEAD)
        head += more
        if more and len(head) < LONGEST_HEADER:
            continue
        if not text.strip():
            raise CommandError(Exit.DATA, f"{name}: the file is empty.")
        if "\ufffd" in header:
            raise CommandError(Exit.DATA, f"{name}: the header is not {encoding} text; pass --encoding, such as latin-1.")
        # Arrow wants an end of line after the last row
        return header, max(blank.count("\n"), blank.count("\r")), head if whole or more else head + b"\n"


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=lambda d: len(next(csv.reader(io.StringIO(header), delimiter=d), [])))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(
    name: str, names: list[str], stream: Any, style: TextStyle, delimiter: str, encoding: str, blank: int
) -> Iterator[Batch]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    keys = [str(i) for i in range(len(names))]
    row = 1
    try:
        pieces = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK,
                column_names=keys,
                skip_rows=blank,
                skip_rows_after_names=int(style.header),
                encoding=encoding,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False),
        )
        for piece in pieces:
            if piece.num_rows:
                columns = dict(zip(names, piece.columns, strict=True))
                yield Batch(name, row, columns, piece.num_rows, typed=False, decimal=style.decimal)
            row += piece.num_rows
    except pa.ArrowInvalid as error:
        raise CommandError(Exit.DATA, f"{name}, {_place(error, row, names, style)}: {_why(error, encoding)}") from None
    except OSError as error:
        raise CommandError(Exit.DATA, f"{name}, after row {row - 1}: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError as error:
        raise CommandError(Exit.DATA, f"{name}, after row {row - 1}: {_why(error, encoding)}") from None


def _place(error: Exception, row: int, names: list[str], style: TextStyle) -> str:
    """Where Arrow says that a cell is wrong, in our words."""
    column, number = re.search(r"In CSV column #(\d+):", str(error)), re.search(r": Row #(\d+): ", str(error))
    at = f"after row {row - 1}" if number is None else f"row {int(number[1]) - int(style.header)}"
    return at if column is None else f"{at}, column {quoted(names[int(column[1])])}"


def _why(error: Exception, encoding: str) -> str:
    text = first_line(error)
    cells = re.search(r"Expected (\d+) columns, got (\d+): (.*)", text)
    if cells is not None:
        return f"{plural(int(cells[2]), 'cell')} where the header has {cells[1]}: {quoted(cells[3])}."
    if isinstance(error, UnicodeDecodeError) or "utf8" in text.lower():
        return f"not {encoding} text; pass --encoding, such as latin-1."
    if "straddling" in text:
        return f"a row is longer than {BLOCK:,} bytes."
    return shown(text, 300)
