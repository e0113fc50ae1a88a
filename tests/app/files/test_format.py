"""The file itself: what the guide says of its bytes, other readers of safetensors, and how it comes
to be on the disk.
"""

import hashlib
import json
import os
import struct
import threading

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as safetensors_bytes
from zoo import example, rows, text_table

import kernelpool
from kernelpool import SharedKernelClassifier
from kernelpool.app.files import FORMAT_VERSION, container, read_header
from kernelpool.errors import KernelpoolError, ModelFileError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def naive(path):
    """The file by the guide's words: metadata, header, arrays."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    index = json.loads(data[8 : 8 + length])
    metadata, body = index.pop("__metadata__"), data[8 + length :]
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U32": "<u4", "BOOL": "?"}
    arrays = {}
    for name, entry in index.items():
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:end], types[entry["dtype"]]).reshape(entry["shape"])
    assert metadata["sha256"] == hashlib.sha256(metadata["header"].encode() + body).hexdigest()
    return metadata, json.loads(metadata["header"]), arrays


def test_a_reader_in_ten_lines_finds_the_model(path):
    """The header and arrays are enough to evaluate (2) of Titsias & Likas without this library."""
    X, _, _, _ = rows()
    model, _ = example("shared full")
    kernelpool.save(model, path, units=["m", "s", ""])
    metadata, header, arrays = naive(path)
    assert metadata["format"] == "kernelpool"
    assert metadata["format_version"] == "1"
    assert header["estimator"] == header["model"]["model"] == "SharedKernelClassifier"
    assert header["units"] == ["m", "s", ""]
    assert header["n_features"] == 3
    assert header["feature_names"] is None
    assert header["model"]["parameters"]["covariance_type"] == "full"
    assert header["model"]["fitted"]["_fitted"]["fields"]["means"] == {"array": "_fitted/means"}
    text = ["".join(map(chr, row[row > 0])) for row in arrays["_fitted/classes"]]
    assert text == header["classes"] == model.classes_.tolist()
    density = np.zeros((len(X), 3))
    for j, mean in enumerate(arrays["_fitted/means"]):
        covariance = arrays["_fitted/covariances"][j]
        away = X - mean
        depth = (away @ np.linalg.inv(covariance) * away).sum(axis=1)
        height = np.exp(-0.5 * depth) / np.sqrt(np.linalg.det(2 * np.pi * covariance))
        density += height[:, None] * arrays["_fitted/mixing"][j]
    np.testing.assert_allclose(np.log(density), model.log_density(X), rtol=1e-8)


@pytest.mark.parametrize("name", ["shared tied", "table", "parzen", "regressor"])
def test_the_safetensors_package_reads_our_files(name, path):
    model, _ = example(name)
    kernelpool.save(model, path)
    with safe_open(path, "numpy") as file:
        assert file.metadata()["format"] == "kernelpool"
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    ours = container.read_contents(path, 1 << 30).arrays
    assert arrays.keys() == ours.keys()
    assert len(arrays) > 4
    for key, array in arrays.items():
        assert array.dtype == ours[key].dtype, key
        assert np.array_equal(array, ours[key], equal_nan=True), key


def test_we_read_files_that_the_safetensors_package_wrote(path):
    model, X = example("shared diag, separate")
    kernelpool.save(model, path)
    contents = container.read_contents(path, 1 << 30)
    # that package orders the arrays by itself, so the digest is made anew
    written = safetensors_bytes(contents.arrays, {"header": contents.metadata["header"]})
    start = 8 + int.from_bytes(written[:8], "little")
    digest = hashlib.sha256(contents.metadata["header"].encode() + written[start:]).hexdigest()
    path.write_bytes(safetensors_bytes(contents.arrays, contents.metadata | {"sha256": digest}))
    assert np.array_equal(kernelpool.load(path).predict_proba(X), model.predict_proba(X))


def test_every_array_starts_at_a_multiple_of_its_types_size(path):
    arrays = {
        "a": np.ones(3, bool),
        "b": np.ones(5),
        "c": np.ones(1, np.uint8),
        "d": np.ones(3, np.float32),
    }
    container.write_contents(path, {}, arrays)
    index = container.read_metadata(path)
    assert index.data_start % 8 == 0
    assert [place.name for place in index.places] == ["b", "d", "a", "c"]
    assert all(place.start % place.dtype.itemsize == 0 for place in index.places)
    assert all(
        np.array_equal(array, arrays[name])
        for name, array in container.read_contents(path, 100_000).arrays.items()
    )


PLACES = {
    "a hole": (
        {"a": ("U8", [2], [0, 2]), "b": ("U8", [2], [3, 5])},
        5,
        "Array 'b' starts at byte 3 of the data; expected 2",
    ),
    "an overlap": (
        {"a": ("U8", [4], [0, 4]), "b": ("U8", [4], [2, 6])},
        6,
        "'b' starts at byte 2 of the data; expected 4",
    ),
    "too few bytes": (
        {"a": ("F64", [2], [0, 8])},
        8,
        r"of shape \[2\] and dtype F64 needs 16 bytes; it is said to have 8",
    ),
    "a type that is none": (
        {"a": ("C128", [1], [0, 16])},
        16,
        "has dtype 'C128'; expected one of BOOL",
    ),
    "a size that is none": (
        {"a": ("U8", [1.0], [0, 1])},
        1,
        r"has shape \[1.0\]; expected at most 8 sizes",
    ),
    "a size beyond memory": ({"a": ("U8", [2**50], [0, 2**50])}, 1, "has shape"),
    "bytes left over": (
        {"a": ("U8", [1], [0, 1])},
        2,
        "The arrays need 1 bytes of data; the file has 2",
    ),
    "booleans that are none": (
        {"a": ("BOOL", [2], [0, 2])},
        2,
        "of booleans has bytes that are neither 0 nor 1",
    ),
}


@pytest.mark.parametrize("what", PLACES)
def test_arrays_must_lie_end_to_end(what, path):
    places, n_bytes, message = PLACES[what]
    index = {
        name: {"dtype": t, "shape": shape, "data_offsets": ends}
        for name, (t, shape, ends) in places.items()
    }
    text = json.dumps(index).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\x07" * n_bytes)
    with pytest.raises(ModelFileError, match=message):
        container.read_contents(path, 1 << 30)


# -- the header ------------------------------------------------------------------------------------


def test_the_header_tells_what_the_file_is(path):
    frame, _ = text_table()
    model, _ = example("table")
    summary = {"rows": 120, "held_out_error": 0.125, "notes": ["a", None, {"b": True}]}
    kernelpool.save(model, path, summary=summary, units={"length": "m"})
    header = read_header(path)
    assert header["format_version"] == FORMAT_VERSION == 1
    assert header["library_version"] == kernelpool.__version__
    assert header["estimator"] == "SharedKernelClassifier"
    assert header["classes"] == ["no", "yes"]
    assert header["feature_names"] == list(frame.columns)
    assert header["units"] == ["m", None, None, None]
    assert header["summary"] == summary
    assert header["arrays"]["_fitted/means"]["dtype"] == "float64"


def test_without_a_summary_the_estimator_tells_what_it_knows(path):
    model, _ = example("shared full")
    kernelpool.save(model, path)
    told = read_header(path)["summary"]
    assert told == {
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "objective": model.objective_,
    }


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"summary": [1]}, "summary must be a dict; got list"),
        ({"summary": {"loss": float("nan")}}, "summary must hold only what JSON can"),
        ({"summary": {"loss": np.float32(1)}}, "summary must hold only what JSON can.*float32"),
        ({"units": ["m"]}, r"units must be text, one for each of the 3 features; got \['m'\]"),
        ({"units": [1, 2, 3]}, "units must be text"),
        (
            {"units": {"a": "m"}},
            "units by name need an estimator that was fitted with feature names",
        ),
    ],
)
def test_what_is_told_beside_the_model_must_be_plain(kwargs, message, path):
    with pytest.raises(ModelFileError, match=message):
        kernelpool.save(example("shared full")[0], path, **kwargs)
    assert not path.exists()


# -- versions --------------------------------------------------------------------------------------


def resealed(path, **metadata):
    """The same file with other metadata, its digest made anew."""
    contents = container.read_contents(path, 1 << 30)
    kwargs = contents.metadata | metadata
    kwargs["sha256"] = container.digest_of(kwargs, contents.arrays)
    container.write_contents(path, kwargs, contents.arrays)


def test_a_newer_format_is_refused_politely(path):
    kernelpool.save(example("parzen")[0], path)
    resealed(path, format_version="7")
    for read in (kernelpool.load, read_header):
        with pytest.raises(
            ModelFileError,
            match=r"format version 7, .* reads version 1. Upgrade it \(pip install",
        ):
            read(path)


def test_a_parameter_that_a_newer_library_added_is_named(path):
    kernelpool.save(example("shared tied")[0], path)
    header = json.loads(container.read_contents(path, 1 << 30).metadata["header"])
    header["model"]["parameters"]["foresight"] = 1
    resealed(path, header=json.dumps(header))
    with pytest.raises(
        ModelFileError, match="SharedKernelClassifier has no parameter 'foresight' in this version"
    ):
        kernelpool.load(path)


def test_a_parameter_that_an_older_library_did_not_have_takes_its_default(path):
    model, X = example("shared tied")
    kernelpool.save(model, path)
    header = json.loads(container.read_contents(path, 1 << 30).metadata["header"])
    del header["model"]["parameters"]["tol"]
    resealed(path, header=json.dumps(header))
    again = kernelpool.load(path)
    assert again.tol == SharedKernelClassifier().tol
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


# -- on the disk -----------------------------------------------------------------------------------


def test_readers_never_see_half_a_file(path):
    models = [example("parzen")[0], example("shared tied")[0]]
    kernelpool.save(models[0], path)
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            seen.add(type(kernelpool.load(path)).__name__)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(40):
        kernelpool.save(models[i % 2], path)
    stop.set()
    reader.join()
    assert seen == {"ParzenClassifier", "SharedKernelClassifier"}


@pytest.mark.parametrize(
    "name",
    [
        "with space.st",
        "new\nline",
        "$(touch oops)",
        "x" * 255,
        b"not utf-8 \xff",
    ],
)
def test_paths_with_odd_characters(name, tmp_path):
    model, X = example("shared tied")
    path = os.path.join(os.fsencode(tmp_path), name) if isinstance(name, bytes) else tmp_path / name
    kernelpool.save(model, path)
    assert len(os.listdir(tmp_path)) == 1
    assert np.array_equal(kernelpool.load(path).predict_proba(X), model.predict_proba(X))
    assert (
        read_header(str(path) if not isinstance(path, bytes) else path)["estimator"]
        == "SharedKernelClassifier"
    )


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        kernelpool.save(example("shared tied")[0], tmp_path / "missing" / "model")
    with pytest.raises(FileNotFoundError, match="missing"):
        kernelpool.load(tmp_path / "missing")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(KernelpoolError, match="is not a file"):
            kernelpool.load(path)


def test_a_huge_file_is_refused_before_it_is_read(path):
    with open(path, "wb") as file:
        index = b'{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (2**42, 2**42)
        file.write(len(index).to_bytes(8, "little") + index)
        file.truncate(8 + len(index) + 2**42)  # four terabytes, none of them on the disk
    with pytest.raises(
        ModelFileError, match=r"at most 2147483648 are read. Raise max_bytes if you trust it"
    ):
        kernelpool.load(path)
    with pytest.raises(ModelFileError, match="not one of kernelpool's: its format is None"):
        read_header(path)
    kernelpool.save(example("parzen")[0], path)
    with pytest.raises(ModelFileError, match="at most 100 are read"):
        kernelpool.load(path, max_bytes=100)
