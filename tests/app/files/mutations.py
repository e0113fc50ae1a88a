"""Ways to damage a model file; each takes the parts of a file and random numbers, and returns
bytes.
"""

import copy
import json

import numpy as np

from kernelpool.app.files import container

WEIRD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10**6,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e308,
    -1e308,
    "",
    "nan",
    "auto",
    "full",
    "tied",
    "gaussian",
    "x" * 1000,
    "\ud800",
    "__import__('os').system('true')",
    [],
    [[]],
    [1, "a", None],
    {},
    {"float": "nan"},
    {"float": "inf"},
    {"tuple": []},
    {"dict": []},
    {"dict": [["a", 1], ["a", 2]]},
    {"dict": [[{"tuple": []}, 1]]},
    {"slice": [None, None, None]},
    {"array": "means_"},
    {"array": "classes_", "order": "F"},
    {"text": "classes_"},
    {"array": "radius_", "scalar": True},
    {"objects": [], "shape": [0]},
    {"objects": [1, "a"], "shape": [2, 2**40]},
    {"type": "float64"},
    {"type": "object"},
    {"dtype": "object"},
    {"random_state": {"state": {"array": "means_"}}},
    {"same": "estimator"},
    {"same": "__class__"},
    {"model": "StandardScaler", "parameters": {}, "fitted": None},
    {"model": "Pipeline", "parameters": {"steps": []}, "fitted": {}},
    {"model": "os.system", "parameters": {}, "fitted": None},
    {"record": "Frame", "fields": {}},
    {"eval": "1"},
]


class File:
    """A model file taken apart."""

    def __init__(self, data, contents):
        self.data = data
        self.metadata, self.arrays = contents.metadata, contents.arrays
        self.header = json.loads(contents.metadata["header"])

    def sealed(self, header=None, arrays=None, **metadata):
        """Bytes of a file with a right digest: what a malicious writer would make."""
        arrays = self.arrays if arrays is None else arrays
        text = json.dumps(self.header if header is None else header)
        kwargs = self.metadata | {"header": text} | metadata
        kwargs["sha256"] = container.digest_of(kwargs, arrays)
        parts = [
            container.index_of(kwargs, arrays),
            *(container.data_of(a) for _, a in container.sorted_arrays(arrays)),
        ]
        return b"".join(bytes(part) for part in parts)


# -- bytes -----------------------------------------------------------------------------------------


def flipped_bits(file, rng):
    data = bytearray(file.data)
    for _ in range(rng.integers(1, 9)):
        at = rng.integers(len(data)) if rng.uniform() < 0.5 else rng.integers(min(600, len(data)))
        data[at] ^= 1 << rng.integers(8)
    return bytes(data)


def cut_off(file, rng):
    return file.data[: rng.integers(len(file.data))]


def extended(file, rng):
    return file.data + rng.bytes(rng.integers(1, 100))


def overwritten(file, rng):
    data = bytearray(file.data)
    start, n = rng.integers(len(data)), rng.integers(1, 64)
    data[start : start + n] = [bytes(n), b"\xff" * n, rng.bytes(n), data[:n]][rng.integers(4)]
    return bytes(data)


def other_length(file, rng):
    length = int(rng.choice([0, 1, 2**15, 2**32, 2**62, len(file.data), len(file.data) - 8]))
    return length.to_bytes(8, "little") + file.data[8:]


def with_index_text(file, change):
    length = int.from_bytes(file.data[:8], "little")
    text = change(file.data[8 : 8 + length].decode())
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw + file.data[8 + length :]


def edited_index_text(file, rng):
    """Names twice, NaN, deep nesting, huge numbers: what json.loads alone lets pass."""
    tokens = [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "[" * 5000,
        "{" * 200,
        "9" * 5000,
        '"\\ud800"',
        "null",
        "{}",
        "true",
        "-1",
    ]

    def change(text):
        at = rng.integers(len(text))
        kind = rng.integers(4)
        if kind == 0:
            return text[:at] + str(rng.choice(tokens)) + text[at + rng.integers(3) :]
        if kind == 1:
            return text.replace("data_offsets", "shape", 1)
        if kind == 2:
            return text.replace("[0,", f"[{rng.choice(tokens)},", 1)
        return (
            text.rstrip()[:-1]
            + ',"again":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}' * int(rng.integers(1, 3))
            + "}"
        )

    return with_index_text(file, change)


def other_places(file, rng):
    """Arrays that overlap, leave holes, claim other shapes and types, or sizes that no memory
    holds.
    """
    sizes = [0, 1, 2, 3, 8, 2**31, 2**40, 2**47, 2**62, 2**64, -1, 1.5, None, "3"]

    def change(text):
        index = json.loads(text)
        name = rng.choice([name for name in index if name != "__metadata__"])
        entry = index[name]
        kind = rng.integers(5)
        if kind == 0:
            entry["data_offsets"][rng.integers(2)] = sizes[rng.integers(len(sizes))]
        elif kind == 1:
            entry["shape"] = [sizes[i] for i in rng.integers(len(sizes), size=rng.integers(4))]
        elif kind == 2:
            entry["dtype"] = str(
                rng.choice(["F64", "F32", "I64", "U32", "BOOL", "F16", "BF16", "C64", "", "float"])
            )
        elif kind == 3:
            other = rng.choice([name for name in index if name != "__metadata__"])
            index[name], index[other] = index[other], index[name]
        else:
            entry["shape"] = entry["shape"][::-1] if rng.uniform() < 0.5 else [*entry["shape"], 1]
        return json.dumps(index)

    return with_index_text(file, change)


# -- what a malicious writer would make ------------------------------------------------------------


def nodes_of(node, found=None):
    """Every list and object in JSON."""
    found = [] if found is None else found
    if isinstance(node, dict | list) and node:
        found.append(node)
        for part in node.values() if isinstance(node, dict) else node:
            nodes_of(part, found)
    return found


def edited_header(file, rng):
    header = copy.deepcopy(file.header)
    for _ in range(rng.integers(1, 3)):
        nodes = nodes_of(header)
        node = nodes[rng.integers(len(nodes))]
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = keys[rng.integers(len(keys))]
        kind = rng.integers(6)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[f"{key}_"] = node.pop(key)
        elif kind == 2:
            other = nodes[rng.integers(len(nodes))]
            values = list(other.values()) if isinstance(other, dict) else other
            if values:
                node[key] = copy.deepcopy(values[rng.integers(len(values))])
        else:
            node[key] = copy.deepcopy(WEIRD[rng.integers(len(WEIRD))])
    return file.sealed(header)


def deep_header(file, rng):
    header = copy.deepcopy(file.header)
    nest = []
    for _ in range(rng.integers(50, 900)):
        nest = (
            [nest]
            if rng.uniform() < 0.5
            else {"tuple": nest}
            if isinstance(nest, list)
            else {"model": nest}
        )
    header[rng.choice(["summary", "model", "units"])] = nest
    return file.sealed(header)


def edited_metadata(file, rng):
    word = rng.choice(["format", "format_version", "header"])
    value = str(
        rng.choice(
            [
                "",
                "0",
                "-1",
                "2",
                "1.0",
                "1" * 400,
                "kernelpool ",
                "null",
                "[]",
                "{}",
                '{"a":1,"a":2}',
                "NaN",
            ]
        )
    )
    kwargs = file.metadata | {word: value}
    kwargs["sha256"] = container.digest_of(kwargs, file.arrays)
    parts = [
        container.index_of(kwargs, file.arrays),
        *(container.data_of(a) for _, a in container.sorted_arrays(file.arrays)),
    ]
    return b"".join(bytes(part) for part in parts)


NUMBERS = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -1.0,
    1.0,
    2.0,
    1e-320,
    1e-200,
    1e150,
    -1e150,
    1e300,
    -1e300,
    0.5,
]


def edited_numbers(file, rng):
    arrays = dict(file.arrays)
    name = rng.choice(list(arrays))
    array = arrays[name].copy()
    if array.size:
        flat = array.reshape(-1)
        at = (
            slice(None)
            if rng.uniform() < 0.2
            else rng.integers(array.size, size=rng.integers(1, 4))
        )
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):  # infinity is as good a damage as any
                flat[at] = NUMBERS[rng.integers(len(NUMBERS))]
        elif array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            flat[at] = [ends.min, ends.max, 0, 1, 5, 0x110000 if ends.max > 0x110000 else 1][
                rng.integers(6)
            ]
        else:
            flat[at] = rng.uniform() < 0.5
    arrays[name] = array
    return file.sealed(arrays=arrays)


def random_bits_in_numbers(file, rng):
    arrays = dict(file.arrays)
    name = rng.choice([name for name, array in arrays.items() if array.size])
    raw = bytearray(container.data_of(arrays[name]))
    for _ in range(rng.integers(1, 5)):
        raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
    arrays[name] = np.frombuffer(bytes(raw), arrays[name].dtype).reshape(arrays[name].shape)
    return file.sealed(arrays=arrays)


def reshaped_arrays(file, rng):
    arrays = dict(file.arrays)
    name = str(rng.choice(list(arrays)))
    array = arrays[name]
    kind = rng.integers(6)
    if kind == 0:
        arrays[name] = array.T
    elif kind == 1:
        arrays[name] = array[: len(array) // 2] if array.ndim else array
    elif kind == 2:
        arrays[name] = array[None]
    elif kind == 3:
        with np.errstate(all="ignore"):
            kinds = ["float32", "float64", "int64", "uint32", "bool", "float16"]
            arrays[name] = array.astype(rng.choice(kinds))
    elif kind == 4:
        arrays[name] = np.concatenate([array, array]) if array.ndim else array
    else:
        arrays[name] = np.zeros((0,) * array.ndim, array.dtype)
    with np.errstate(all="ignore"):
        return file.sealed(
            arrays={
                key: np.ascontiguousarray(value).reshape(value.shape)
                for key, value in arrays.items()
            }
        )


def swapped_arrays(file, rng):
    arrays = dict(file.arrays)
    names = list(arrays)
    one, other = rng.integers(len(names), size=2)
    one, other = names[one], names[other]
    kind = rng.integers(3)
    if kind == 0:
        arrays[one], arrays[other] = arrays[other], arrays[one]
    elif kind == 1:
        del arrays[one]
    else:
        arrays[f"{one}/more"] = arrays[one]
    return file.sealed(arrays=arrays)


MUTATIONS = [
    flipped_bits,
    cut_off,
    extended,
    overwritten,
    other_length,
    edited_index_text,
    other_places,
    edited_header,
    edited_header,
    edited_header,
    deep_header,
    edited_metadata,
    edited_numbers,
    edited_numbers,
    random_bits_in_numbers,
    reshaped_arrays,
    swapped_arrays,
]
