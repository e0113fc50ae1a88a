"""Files, folders and stdin as batches of columns.

What a file is, is told by its first bytes, not by its name: Parquet, Arrow (file or stream, which Feather is), or text, which
may be compressed. A file is opened once and read from front to back where the format allows it, so pipes will do. Text is
read as text: what is a number is decided later, by `columns`, where a cell can still be named by its row.
"""

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..text import plural
from .batches import HEAD, Batch, Opened, Rejoined, TextStyle, checked_names, first_line
from .screen import CommandError, Exit, listed, shown
from .text import opened_text

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
CELLS = 1 << 22
"""Cells of a batch of Parquet."""


@dataclass
class Source:
    """Rows that can be read once."""

    label: str
    files: list[str]
    style: TextStyle
    names: list[str] = field(default_factory=list)
    n_bytes: int | None = None
    """Size of the files together, where known."""
    bytes_read: int = 0

    def batches(self) -> Iterator[Batch]:
        """Every batch of every file; the columns of all files must be the same, in any order."""
        for path in self.files:
            with _raw(path) as raw:
                opened = _open(path, raw, self.style, self)
                self.names = self.names or opened.names
                check_same(self.names, opened.names, shown(self.files[0]), opened.file)
                yield from opened.batches


def source(path: str, style: TextStyle | None = None) -> Source:
    """What `DATA` names: a file, a folder of files, or `-` for stdin."""
    style = style or TextStyle()
    if path == "-":
        return Source("stdin", ["-"], style)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise CommandError(Exit.DATA, f"{shown(path, 200)}: {_reason(error)}.") from None
    if not stat.S_ISDIR(mode):
        size = os.path.getsize(path) if stat.S_ISREG(mode) else None
        return Source(shown(path, 200), [path], style, n_bytes=size)
    files = sorted(str(p) for p in Path(path).iterdir() if _is_data(p))
    if not files:
        known = ", ".join(SUFFIXES)
        raise CommandError(Exit.DATA, f"{shown(path, 200)}: no data files in this folder; expected {known} (or .gz of text).")
    return Source(f"{shown(path, 200)} ({plural(len(files), 'file')})", files, style, n_bytes=sum(map(os.path.getsize, files)))


def _is_data(path: Path) -> bool:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".zst"):
        suffixes.pop()
    return path.is_file() and not path.name.startswith((".", "_")) and bool(suffixes) and suffixes[-1] in SUFFIXES


def check_same(expected: list[str], found: list[str], first: str, other: str) -> None:
    """Columns are matched by name: reordered is fine, missing or extra ones are not."""
    here, there = set(expected), set(found)
    missing, extra = [name for name in expected if name not in there], [name for name in found if name not in here]
    if missing or extra:
        parts = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)} besides"] * bool(extra)
        raise CommandError(Exit.DATA, f"{other}: its columns differ from those of {first}: it {' and '.join(parts)}.")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# -- one file -----------------------------------------------------------------------------------------------------


@contextmanager
def _raw(path: str) -> Iterator[Any]:
    """The bytes of a file, or of stdin, which stays open."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        raw = open(path, "rb")  # noqa: SIM115 (errors of opening alone are told so)
    except OSError as error:
        raise CommandError(Exit.DATA, f"{shown(path, 200)}: {_reason(error)}.") from None
    with raw:
        yield raw


def _open(path: str, raw: Any, style: TextStyle, owner: Source) -> Opened:
    import pyarrow as pa

    name = "stdin" if path == "-" else shown(path, 200)
    try:
        head = raw.read(HEAD)
        if not head:
            raise CommandError(Exit.DATA, f"{name}: the file is empty.")
        stream: Any = io.BufferedReader(Rejoined(head, raw, owner), HEAD)
        if head[:4] == b"PAR1":
            return _parquet(name, _seekable(path, stream))
        if head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            return _arrow(name, head, path, stream)
        if head[:4] == b"FEA1":
            raise CommandError(Exit.DATA, f"{name}: Feather version 1; write it again as version 2 (Arrow) or Parquet.")
        for magic, codec in COMPRESSED.items():
            if head.startswith(magic):
                inner = pa.CompressedInputStream(pa.PythonFile(stream, "r"), codec)
                return opened_text(name, inner.read(HEAD), inner, style)
        return opened_text(name, stream.read(HEAD), stream, style)
    except OSError as error:
        raise CommandError(Exit.DATA, f"{name}: {_reason(error)}.") from None
    except (pa.ArrowException, UnicodeDecodeError, MemoryError) as error:  # lengths that are lies ask for much memory
        raise CommandError(Exit.DATA, f"{name}: {shown(first_line(error), 300)}") from None


def _seekable(path: str, stream: Any) -> Any:
    """The file itself, or all that a pipe has to give."""
    import pyarrow as pa

    return pa.OSFile(path) if path != "-" and os.path.isfile(path) else pa.BufferReader(stream.read())


def _parquet(name: str, file: Any) -> Opened:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    names = parquet.schema_arrow.names
    pieces = parquet.iter_batches(batch_size=max(64, CELLS // max(1, len(names))))
    return Opened(name, checked_names(names, name), _typed(name, names, pieces))


def _arrow(name: str, head: bytes, path: str, stream: Any) -> Opened:
    import pyarrow as pa

    if head[:6] == b"ARROW1":
        file = pa.ipc.open_file(_seekable(path, stream))
        pieces: Iterator[Any] = (file.get_batch(i) for i in range(file.num_record_batches))
        names = file.schema.names
    else:
        pieces = pa.ipc.open_stream(stream)
        names = pieces.schema.names  # type: ignore[attr-defined]
    return Opened(name, checked_names(names, name), _typed(name, names, pieces))


def _typed(name: str, names: list[str], pieces: Iterator[Any]) -> Iterator[Batch]:
    import pyarrow as pa

    row = 1
    try:
        for piece in pieces:
            if piece.num_rows:
                piece.validate(full=True)  # a file may lie about its own lengths
                yield Batch(name, row, dict(zip(names, piece.columns, strict=True)), piece.num_rows, typed=True)
            row += piece.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise CommandError(Exit.DATA, f"{name}: damaged after row {row - 1}: {shown(first_line(error), 300)}") from None
