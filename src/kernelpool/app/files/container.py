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
import math
import os
import reprlib
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...errors import ModelFileError
from ...text import shorten

DTYPES = {"BOOL": np.dtype(bool)} | {
    f"{kind.upper()}{8 * size}": np.dtype(f"{kind}{size}")
    for kind in "iuf"
    for size in (1, 2, 4, 8)
    if f"{kind}{size}" != "f1"
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

MOST_AXES = 8

WIDEST_EMPTY = 4096
"""Largest size of an array without entries: it takes no bytes in the file and may cost many when it
is used.
"""


class Place(NamedTuple):
    """Where an array lies."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Container:
    """An open file whose index has been read."""

    metadata: dict[str, str]
    places: list[Place]
    file: BinaryIO

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array in memory of its own, if they and the header have the digest of the file."""
        digest = _begun(self.metadata)
        arrays = {place.name: _array(self.file, place, digest) for place in self.places}
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
        lists = [
            p.values() if isinstance(p, dict) else p for p in level if isinstance(p, list | dict)
        ]
        level = [part for parts in lists for part in parts]
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
        try:
            index = parse_json(file.read(length).decode("utf-8"), "index")
        except UnicodeDecodeError as error:
            raise ModelFileError(f"The index is not text: {error.reason}.") from None
        yield Container(*_checked_index(index, size - 8 - length), file)


def _checked_index(index: Any, n_bytes: int) -> tuple[dict[str, str], list[Place]]:
    """Metadata and places of an index in front of `n_bytes` of data."""
    metadata = index.pop("__metadata__", {}) if isinstance(index, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError("The index must be a JSON object, and its __metadata__ one of text.")
    places = sorted((_place(*item) for item in index.items()), key=lambda p: (p.start, p.end))
    end = 0
    for place in places:
        if place.start != end:
            raise ModelFileError(
                f"Array {short(place.name)} starts at byte {place.start} of the data; expected "
                f"{end}."
            )
        end = place.end
    if end != n_bytes:
        raise ModelFileError(
            f"The arrays need {end} bytes of data; the file has {n_bytes}. It is cut off or "
            f"damaged."
        )
    return metadata, places


def _place(name: str, entry: Any) -> Place:
    match entry:
        case {"dtype": str(kind), "shape": shape, "data_offsets": [int(start), int(end)]} if (
            kind in DTYPES and is_shape(shape)
        ):
            n_bytes = math.prod(shape) * DTYPES[kind].itemsize
            if 0 <= start == end - n_bytes and (n_bytes or max(shape) <= WIDEST_EMPTY):
                return Place(name, DTYPES[kind], tuple(shape), start, end)
    raise ModelFileError(
        f"Array {short(name)} is {short(entry)}; expected a dtype of {', '.join(DTYPES)}, a shape "
        f"of at most {MOST_AXES} sizes (up to {WIDEST_EMPTY} where one is zero), and data_offsets "
        f"as far apart as they need."
    )


def is_shape(value: Any) -> bool:
    """Whether JSON is a list of a few sizes, whose product can be taken."""
    return (
        isinstance(value, list)
        and len(value) <= MOST_AXES
        and all(type(n) is int and 0 <= n < 2**48 for n in value)
    )


def _array(file: BinaryIO, place: Place, digest: Any) -> np.ndarray:
    try:
        array = np.empty(place.shape, place.dtype)
    except (MemoryError, ValueError, OverflowError):
        raise ModelFileError(
            f"Array {short(place.name)} of shape {place.shape} does not fit into memory."
        ) from None
    flat = array.reshape(-1).view(np.uint8)
    if file.readinto(flat.data) != len(flat):  # type: ignore[attr-defined]
        raise ModelFileError("The file became shorter while it was read.")
    digest.update(flat.data)
    if place.dtype == np.bool_ and (flat > 1).any():
        raise ModelFileError(
            f"Array {short(place.name)} of booleans has bytes that are neither 0 nor 1."
        )
    return array if sys.byteorder == "little" else array.byteswap()


# -- writing ---------------------------------------------------------------------------------------


def container_bytes(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> list[Any]:
    """The parts of a file: the length, the index with the digest, and the arrays.

    The widest types come first, so that every array starts at a multiple of its type's size.
    """
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    digest = _begun(metadata)
    index = {}
    data = []
    start = 0
    for name, array in ordered:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        data.append(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)
        digest.update(data[-1])
        entry = {"dtype": NAMES[array.dtype], "shape": list(array.shape)}
        index[name] = entry | {"data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    whole = {"__metadata__": metadata | {"sha256": digest.hexdigest()}, **index}
    text = json.dumps(whole, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_INDEX:
        raise ModelFileError(
            f"The header would have {len(text)} bytes; at most {LARGEST_INDEX} can be read back."
        )
    return [len(text).to_bytes(8, "little"), text, *data]


def _begun(metadata: dict[str, str]) -> Any:
    """SHA-256 of the header, to which the data are added."""
    return hashlib.sha256(metadata.get("header", "").encode("utf-8", "surrogatepass"))
