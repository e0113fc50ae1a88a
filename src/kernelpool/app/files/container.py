"""The bytes of a model file: a safetensors container, read with suspicion and written all at once
or not at all.

::

    8 bytes   length of the index, little-endian
    index     JSON: every array's dtype, shape and place, and text under "__metadata__"
    data      the arrays, end to end, little-endian, rows first

The container is read here and not by the safetensors package, because a reader that trusts nothing
must see what a lenient one passes over: names that occur twice, holes, nesting, numbers that are
none. The tests read our files with that package, and its files with ours.
"""

import hashlib
import json
import math
import os
import reprlib
import stat
import sys
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ...atomic import write_atomically
from ...errors import ModelFileError
from ...text import shorten

DTYPES = {
    "BOOL": np.dtype("bool"),
    "I8": np.dtype("int8"),
    "I16": np.dtype("int16"),
    "I32": np.dtype("int32"),
    "I64": np.dtype("int64"),
    "U8": np.dtype("uint8"),
    "U16": np.dtype("uint16"),
    "U32": np.dtype("uint32"),
    "U64": np.dtype("uint64"),
    "F16": np.dtype("float16"),
    "F32": np.dtype("float32"),
    "F64": np.dtype("float64"),
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


@dataclass
class Contents:
    """What a container holds."""

    metadata: dict[str, str]
    arrays: dict[str, np.ndarray]
    digest: str = ""
    """SHA-256 of the metadata's "header" and the data, in hexadecimal."""


@dataclass(frozen=True)
class Place:
    """Where an array lies."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass
class Index:
    """The first part of a file."""

    metadata: dict[str, str]
    places: list[Place] = field(default_factory=list)
    data_start: int = 0


# -- JSON ------------------------------------------------------------------------------------------


def parse_json(text: str, what: str) -> Any:
    """`text` as JSON with no name twice, no NaN, no number beyond float64 or 64 bits, and neither
    too long nor too deep.
    """
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ModelFileError(f"The {what} holds more than {MOST_VALUES} values; no more are read.")
    try:
        found = json.loads(
            text,
            object_pairs_hook=_once_each,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except ModelFileError as error:
        raise ModelFileError(f"The {what} is damaged: {error}") from None
    except RecursionError:
        raise ModelFileError(
            f"The {what} is nested too deep; at most {DEEPEST} levels are read."
        ) from None
    except ValueError as error:
        raise ModelFileError(f"The {what} is not JSON: {error}.") from None
    check_depth(found, what)
    return found


def check_depth(value: Any, what: str) -> None:
    """At most DEEPEST lists and objects inside each other."""
    level, depth = [value], 0
    while level:
        level = [
            v
            for part in level
            if isinstance(part, list | dict)
            for v in (part.values() if isinstance(part, dict) else part)
        ]
        depth += 1
        if depth > DEEPEST:
            raise ModelFileError(
                f"The {what} is nested too deep; at most {DEEPEST} levels are read."
            )


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ModelFileError(f"the name {short(name)} occurs twice in one object.")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise ModelFileError(f"{text} is not a number in JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ModelFileError(f"the number {short(text)} is beyond float64.")
    return number


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 20 else 2**64
    if not -(2**63) <= number < 2**64:
        raise ModelFileError(f"the number {short(text)} is beyond 64 bits.")
    return number


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def short(value: Any) -> str:
    """`value` for a message: what comes from a file may be long, and is never written out whole."""
    return shorten(_REPR.repr(value), 60, "...")


def clipped(text: object, width: int = 400) -> str:
    """The message of another error, of bounded length."""
    return shorten(str(text), width, "...")


# -- reading ---------------------------------------------------------------------------------------


def read_index(file: BinaryIO, size: int, max_bytes: int) -> Index:
    """The first part of a file of `size` bytes, and the promise that the arrays it names fill the
    rest just so.
    """
    if size < 8:
        raise ModelFileError(
            f"The file has {size} bytes: it is empty or cut off. A model file has at least 8."
        )
    length = int.from_bytes(_exactly(file, 8), "little")
    if length > min(LARGEST_INDEX, size - 8):
        raise ModelFileError(
            f"The file says that its index has {length} bytes; it has {size - 8} left and at most "
            f"{LARGEST_INDEX} are read. "
            f"It is cut off, or not a model file."
        )
    if size > max_bytes:
        raise ModelFileError(
            f"The file has {size} bytes; at most {max_bytes} are read. Raise max_bytes if you "
            f"trust it."
        )
    try:
        text = _exactly(file, length).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"The index is not text: {error.reason}. It is damaged, or not a model file."
        ) from None
    raw = parse_json(text, "index")
    if not isinstance(raw, dict):
        raise ModelFileError(
            f"The index must be a JSON object; got {type(raw).__name__}. It is not a model file."
        )
    metadata = raw.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in metadata.values()
    ):
        raise ModelFileError("__metadata__ must be a JSON object of strings.")
    places = sorted(
        (_place(name, entry) for name, entry in raw.items()),
        key=lambda place: (place.start, place.end),
    )
    end = 0
    for place in places:
        if place.start != end:
            raise ModelFileError(
                f"Array {short(place.name)} starts at byte {place.start} of the data; expected "
                f"{end}."
            )
        end = place.end
    if end != size - 8 - length:
        raise ModelFileError(
            f"The arrays need {end} bytes of data; the file has {size - 8 - length}. It is cut off "
            f"or damaged."
        )
    return Index(metadata, places, 8 + length)


def _place(name: str, entry: Any) -> Place:
    who = f"Array {short(name)}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"{who} must have dtype, shape and data_offsets, and nothing else.")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise ModelFileError(f"{who} has dtype {short(kind)}; expected one of {', '.join(DTYPES)}.")
    if not is_shape(shape):
        raise ModelFileError(f"{who} has shape {short(shape)}; expected at most {MOST_AXES} sizes.")
    if not is_shape(offsets) or len(offsets) != 2:
        raise ModelFileError(
            f"{who} has data_offsets {short(offsets)}; expected where it starts and ends."
        )
    n_bytes = math.prod(shape) * DTYPES[kind].itemsize
    if not n_bytes and max(shape) > WIDEST_EMPTY:
        raise ModelFileError(
            f"{who} of shape {short(shape)} has no entries; its sizes may be at most "
            f"{WIDEST_EMPTY}."
        )
    if offsets[1] - offsets[0] != n_bytes:
        raise ModelFileError(
            f"{who} of shape {short(shape)} and dtype {kind} needs {n_bytes} bytes; "
            f"it is said to have {offsets[1] - offsets[0]}."
        )
    return Place(name, DTYPES[kind], tuple(shape), *offsets)


def is_shape(value: Any) -> bool:
    """Whether JSON is a list of a few sizes, whose product can be taken."""
    return (
        isinstance(value, list)
        and len(value) <= MOST_AXES
        and all(type(n) is int and 0 <= n < 2**48 for n in value)
    )


def read_contents(path: str | os.PathLike[str], max_bytes: int) -> Contents:
    """Everything, each array in memory of its own."""
    with _opened(path) as file:
        index = read_index(file, os.fstat(file.fileno()).st_size, max_bytes)
        digest, arrays = _begun(index.metadata), {}
        for place in index.places:
            arrays[place.name] = _array(file, place, digest)
        return Contents(index.metadata, arrays, digest.hexdigest())


def read_metadata(path: str | os.PathLike[str]) -> Index:
    """The index alone; no array is read."""
    with _opened(path) as file:
        return read_index(file, os.fstat(file.fileno()).st_size, sys.maxsize)


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a file; expected a model file that kernelpool.save has "
            f"written."
        )
    return open(path, "rb")


def _exactly(file: BinaryIO, n: int) -> bytes:
    found = file.read(n)
    if len(found) != n:
        raise ModelFileError("The file became shorter while it was read.")
    return found


def _array(file: BinaryIO, place: Place, digest: Any) -> np.ndarray:
    try:
        array = np.empty(place.shape, place.dtype)
    except (MemoryError, ValueError, OverflowError):
        raise ModelFileError(
            f"Array {short(place.name)} of shape {place.shape} does not fit into memory."
        ) from None
    if array.size:
        flat = array.reshape(-1).view(np.uint8).data
        if file.readinto(flat) != len(flat):  # type: ignore[attr-defined]
            raise ModelFileError("The file became shorter while it was read.")
        digest.update(flat)
    if place.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise ModelFileError(
            f"Array {short(place.name)} of booleans has bytes that are neither 0 nor 1."
        )
    return array if sys.byteorder == "little" else array.byteswap()


# -- writing ---------------------------------------------------------------------------------------


def sorted_arrays(arrays: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """In the order of the file: the widest types first, so that every array starts at a multiple of
    its type's size.
    """
    return sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))


def data_of(array: np.ndarray) -> memoryview:
    """The bytes of a contiguous array, as they are written."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def digest_of(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of the header and the data."""
    digest = _begun(metadata)
    for _, array in sorted_arrays(arrays):
        digest.update(data_of(array))
    return str(digest.hexdigest())


def _begun(metadata: dict[str, str]) -> Any:
    return hashlib.sha256(metadata.get("header", "").encode("utf-8", "surrogatepass"))


def index_of(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """The first part of a file, length included."""
    index: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name, array in sorted_arrays(arrays):
        end = start + array.nbytes
        index[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(index, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_INDEX:
        raise ModelFileError(
            f"The header would have {len(text)} bytes; at most {LARGEST_INDEX} can be read back."
        )
    return len(text).to_bytes(8, "little") + text


def write_contents(
    path: str | os.PathLike[str], metadata: dict[str, str], arrays: dict[str, np.ndarray]
) -> None:
    """All at once or not at all."""
    write_atomically(
        path, [index_of(metadata, arrays), *(data_of(a) for _, a in sorted_arrays(arrays))]
    )
