"""The bytes of a model file: a safetensors container, read with suspicion.

::

    8 bytes   length of the index, little-endian
    index     JSON: every array's dtype, shape and place, and text under "__metadata__"
    data      the arrays, end to end, little-endian, rows first

The container is read here and not by the safetensors package, because a reader that trusts nothing
must see what a lenient one passes over: names that occur twice, gaps, nesting. The tests read our
files with that package, and its files with ours.
"""

import hashlib
import json
import os
import reprlib
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import starmap
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...errors import ModelFileError
from ...text import shorten

DTYPES = {"BOOL": np.dtype(bool)} | {
    f"{name[0].upper()}{8 * int(name[1])}": np.dtype(f"<{name}")
    for name in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

LARGEST_INDEX = 32 << 20
"""Bytes of JSON that are parsed at most; 10,000 features need less than one hundredth of it."""

MOST_VALUES = 1 << 20
"""Values in JSON, counted by its commas and brackets before it is parsed: each takes some 60 bytes
of memory.
"""

DEEPEST = 96
"""Levels of JSON inside JSON; a classifier in a pipeline has about 20."""

WIDEST_EMPTY = 4096
"""Largest size of an array without entries: it takes no bytes in the file and may cost many when it
is used.
"""


class Place(NamedTuple):
    """Where an array lies; places are sorted by their bytes."""

    start: int
    end: int
    name: str
    like: np.ndarray
    """An array of its type and shape that takes no memory."""


class Container(NamedTuple):
    """An open file whose index has been read."""

    metadata: dict[str, str]
    places: list[Place]
    file: BinaryIO

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array in memory of its own, if they and the header have the digest of the file."""
        digest = hashlib.sha256(self.metadata["header"].encode(errors="replace"))
        arrays = {}
        for *_, name, like in self.places:
            array = np.fromfile(self.file, like.dtype, like.size).reshape(like.shape)
            digest.update(array.data)
            if array.dtype == bool and (array.view(np.uint8) > 1).any():
                raise ModelFileError(
                    f"Array {short(name)} of booleans has bytes that are neither 0 nor 1."
                )
            arrays[name] = array
        if self.metadata.get("sha256") != digest.hexdigest():
            raise ModelFileError(
                "The file is damaged: it is not what was written (its SHA-256 differs). Save the "
                "model anew."
            )
        return arrays


# -- JSON ------------------------------------------------------------------------------------------


def parse_json(text: str, what: str) -> Any:
    """`text` as JSON with no name twice, no NaN, and neither too long nor too deep."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ModelFileError(f"The {what} holds more than {MOST_VALUES} values; no more are read.")
    deep = f"The {what} is nested too deep; at most {DEEPEST} levels are read."
    try:
        value = json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError(deep) from None
    except ValueError as error:
        raise ModelFileError(f"The {what} is not JSON: {error}.") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [
            part
            for node in level
            if isinstance(node, dict | list)
            for part in (node.values() if isinstance(node, dict) else node)
        ]
    if level:
        raise ModelFileError(deep)
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return named


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number in JSON")


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def short(value: Any) -> str:
    """`value` for a message: what comes from a file may be long, and is never written out whole."""
    return shorten(_REPR.repr(value), 60, "...")


# -- reading ---------------------------------------------------------------------------------------


@contextmanager
def opened(path: str | os.PathLike[str], max_bytes: int = sys.maxsize) -> Iterator[Container]:
    """A file with its index, whose arrays fill the rest of it just so; none of them is read yet."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a file; expected a model file that kernelpool.save has "
            f"written."
        )
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or length > min(LARGEST_INDEX, size - 8):
            raise ModelFileError(
                f"This is not a model file that kernelpool.save has written, or it is cut off: it "
                f"has {size} bytes and begins with {head!r}. Read files of pickle, joblib, skops "
                f"or ONNX with the library that wrote them."
            )
        if size > max_bytes:
            raise ModelFileError(
                f"The file has {size} bytes; at most {max_bytes} are read. Raise max_bytes if you "
                f"trust it."
            )
        index = parse_json(file.read(length).decode("utf-8", "replace"), "index")
        metadata = index.pop("__metadata__", {}) if isinstance(index, dict) else None
        if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
            raise ModelFileError(
                "The index must be a JSON object, and its __metadata__ one of text."
            )
        places = sorted(starmap(_place, index.items()))
        ends = [0, *(place.end for place in places)]
        if [*(place.start for place in places), size - 8 - length] != ends:
            raise ModelFileError(
                f"The arrays do not lie end to end in the {size - 8 - length} bytes of data: the "
                f"file is cut off or damaged."
            )
        yield Container(metadata, places, file)


def _place(name: str, entry: Any) -> Place:
    with suppress(KeyError, TypeError, ValueError):
        start, end = entry["data_offsets"]
        like = np.broadcast_to(np.zeros((), DTYPES[entry["dtype"]]), entry["shape"])
        if start + like.nbytes == end and (like.size or max(like.shape) <= WIDEST_EMPTY):
            return Place(start, end, name, like)
    raise ModelFileError(
        f"Array {short(name)} is {short(entry)}; expected a dtype of {', '.join(DTYPES)}, a shape "
        f"(of sizes up to {WIDEST_EMPTY} where one is zero), and data_offsets as far apart as they "
        f"need."
    )


# -- writing ---------------------------------------------------------------------------------------


def container_bytes(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> list[Any]:
    """The parts of a file: the length, the index with the digest, and the arrays.

    The widest types come first, so that every array starts at a multiple of its type's size.
    """
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    digest = hashlib.sha256(metadata["header"].encode(errors="replace"))
    index = {}
    start = 0
    for name, array in ordered:
        digest.update(array.data)
        end = start + array.nbytes
        index[name] = {
            "dtype": NAMES[array.dtype],
            "shape": array.shape,
            "data_offsets": [start, end],
        }
        start = end
    whole = {"__metadata__": metadata | {"sha256": digest.hexdigest()}, **index}
    text = json.dumps(whole, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_INDEX:
        raise ModelFileError(
            f"The header would have {len(text)} bytes; at most {LARGEST_INDEX} can be read back."
        )
    return [len(text).to_bytes(8, "little"), text, *(array.data for _, array in ordered)]
