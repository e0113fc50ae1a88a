"""Ways to damage a model file; each takes the parts of a file and random numbers, and returns
bytes.
"""

import copy
import json

import numpy as np

import kernelpool
from kernelpool.app.files import container

WEIRD = [
    *(None, True, 0, -1, 2**31, -(2**63), 2**64, 10**400, -0.0, 0.5, 1e-320, 1e308),
    *("", "nan", "auto", "tied", "x" * 1000, "\ud800", "__import__('os').system('true')"),
    *([], [[]], [1, "a", None], {}, {"float": "nan"}, {"float": "inf"}, {"tuple": []}),
    {"dict": []},
    {"dict": [[{"tuple": []}, 1]]},
    {"array": "model/_fitted/network/means"},
    {"eval": "1"},
    {"objects": [], "shape": [0], "text": True},
    {"random_state": {"dict": []}},
    {"objects": [1, "a"], "shape": [2, 2**40], "text": False},
    {"same": "__class__"},
    {"same": "estimator"},
    {"record": "Frame", "fields": {}},
    {"record": "os", "fields": {}},
    {"model": "StandardScaler", "fields": {}},
    {"model": "Pipeline", "fields": {"steps": []}},
    {"model": "os.system", "fields": {}},
]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e-320, 1e-200, 1e150, -1e150, 1e300]


class File:
    """A model file taken apart."""

    def __init__(self, model, path):
        kernelpool.save(model, path)
        self.data = path.read_bytes()
        with container.opened(path) as opened:
            self.metadata, self.arrays = opened.metadata, opened.arrays()
        self.header = json.loads(self.metadata["header"])

    def sealed(self, header=None, arrays=None, **metadata):
        """Bytes of a file with a right digest: what a malicious writer would make."""
        text = json.dumps(self.header if header is None else header)
        metadata = self.metadata | {"header": text} | metadata
        arrays = self.arrays if arrays is None else arrays
        return b"".join(map(bytes, container.container_bytes(metadata, arrays)))

    def changed(self, change):
        """The same of a header, a model and arrays that `change` has edited in place."""
        header = copy.deepcopy(self.header)
        arrays = {k: v.copy() for k, v in self.arrays.items()}
        change(header, header["model"], arrays)
        return self.sealed(header, arrays)


def pick(rng, options):
    options = list(options)
    return options[rng.integers(len(options))]


# -- bytes -----------------------------------------------------------------------------------------


def flipped_bits(file, rng):
    data = bytearray(file.data)
    for _ in range(rng.integers(1, 9)):
        data[rng.integers(pick(rng, [len(data), 600]))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def cut_or_extended(file, rng):
    return pick(rng, [file.data[: rng.integers(len(file.data))], file.data + rng.bytes(9)])


# -- the index -------------------------------------------------------------------------------------


def with_index(file, change):
    length = int.from_bytes(file.data[:8], "little")
    raw = change(file.data[8 : 8 + length].decode()).encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw + file.data[8 + length :]


def edited_text(file, rng):
    """Names twice, NaN, deep nesting, huge numbers: what json.loads alone lets pass."""
    tokens = ["NaN", "-Infinity", "1e999", "[" * 5000, "{" * 200, "9" * 5000, '"\\ud800"', "-1"]
    again = ',"again":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}'

    def change(text):
        at = rng.integers(len(text))
        token = pick(rng, tokens)
        texts = [
            text[:at] + token + text[at + rng.integers(3) :],
            text.replace("data_offsets", "shape", 1),
            text.replace("[0,", f"[{token},", 1),
            text.rstrip()[:-1] + again * pick(rng, [1, 2]) + "}",
        ]
        return pick(rng, texts)

    return with_index(file, change)


def other_places(file, rng):
    """Arrays that overlap, leave gaps, claim other shapes and types, or sizes that no memory
    holds.
    """
    sizes = [0, 1, 3, 8, 2**31, 2**47, 2**62, 2**64, -1, 1.5, None, "3"]

    def change(text):
        index = json.loads(text)
        names = [name for name in index if name != "__metadata__"]
        entry = index[pick(rng, names)]
        other = index[pick(rng, names)]
        key = pick(rng, ["dtype", "shape", "data_offsets", "swap"])
        if key == "dtype":
            entry[key] = pick(rng, ["F64", "F32", "U32", "BOOL", "BF16", "C64", "", "float"])
        elif key == "swap":
            entry["data_offsets"], other["data_offsets"] = other["data_offsets"], entry["shape"]
        else:
            entry[key] = pick(rng, [[pick(rng, sizes) for _ in range(2)], entry[key][::-1]])
        return json.dumps(index)

    return with_index(file, change)


# -- what a malicious writer would make ------------------------------------------------------------


def nodes_of(node):
    """Every list and object in JSON."""
    if isinstance(node, dict | list) and node:
        yield node
        for part in node.values() if isinstance(node, dict) else node:
            yield from nodes_of(part)


def edited_header(file, rng):
    header = copy.deepcopy(file.header)
    for _ in range(rng.integers(1, 3)):
        node = pick(rng, nodes_of(header))
        other = pick(rng, nodes_of(header))
        key = pick(rng, node if isinstance(node, dict) else range(len(node)))
        kind = rng.integers(6)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[f"{key}_"] = node.pop(key)
        elif kind == 2:
            values = other.values() if isinstance(other, dict) else other
            node[key] = copy.deepcopy(pick(rng, values))
        else:
            node[key] = copy.deepcopy(pick(rng, WEIRD))
    return file.sealed(header)


def edited_metadata(file, rng):
    texts = ["", "0", "3", "1" * 400, "kernelpool ", "null", "[]", "{}", '{"a":1,"a":2}', "NaN"]
    return file.sealed(**{pick(rng, ["format", "format_version", "header"]): pick(rng, texts)})


def edited_numbers(file, rng):
    arrays = dict(file.arrays)
    name = pick(rng, [name for name, array in arrays.items() if array.size])
    array = arrays[name] = arrays[name].copy()
    flat = array.reshape(-1)
    at = rng.integers(array.size, size=rng.integers(1, 4)) if rng.uniform() < 0.8 else slice(None)
    if rng.uniform() < 0.3:
        flat.view(np.uint8)[rng.integers(array.nbytes, size=3)] ^= np.uint8(1 << rng.integers(8))
    elif array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # infinity is as good a damage as any
            flat[at] = pick(rng, NUMBERS)
    elif array.dtype.kind in "iu":
        flat[at] = pick(rng, [np.iinfo(array.dtype).min, np.iinfo(array.dtype).max, 0, 5])
    else:
        flat[at] = rng.uniform() < 0.5
    return file.sealed(arrays=arrays)


MUTATIONS = [
    flipped_bits,
    cut_or_extended,
    edited_text,
    other_places,
    edited_header,
    edited_header,
    edited_header,
    edited_metadata,
    edited_numbers,
    edited_numbers,
]
