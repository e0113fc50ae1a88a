"""The file itself: what the guide says of its bytes, other readers of safetensors, what is refused,
and how it comes to be on the disk.
"""

import hashlib
import json
import os
import pickle
import struct
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as safetensors_bytes
from scipy.stats import multivariate_normal
from zoo import example, kernels, rows, text_table

import kernelpool
from kernelpool import SharedKernelClassifier
from kernelpool.app.files import FORMAT_VERSION, ModelFile, load_file, model_file, read_header
from kernelpool.errors import KernelpoolError, ModelFileError
from kernelpool.inspection import DriftReference, predictions

from .mutations import File
from .test_round_trip import recorded


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def naive(path):
    """The file by the guide's words: metadata, header, arrays."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    index = json.loads(data[8 : 8 + length])
    metadata = index.pop("__metadata__")
    body = data[8 + length :]
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "?"}
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
    kernelpool.save(model, path)
    metadata, header, arrays = naive(path)
    assert (metadata["format"], metadata["format_version"]) == ("kernelpool", "3")
    overview = header["overview"]
    assert overview["estimator"] == header["model"]["model"] == "SharedKernelClassifier"
    assert overview["n_features"] == 3
    assert overview["feature_names"] is None
    assert header["model"]["fields"]["covariance_type"] == "full"
    found = header["model"]["fields"]["_fitted"]["fields"]
    place = "model/_fitted/network/"
    assert found["network"]["fields"]["means"] == {"array": f"{place}means"}
    assert found["classes"]["text"] == overview["classes"] == model.classes_.tolist()
    means, covariances, mixing = (arrays[place + n] for n in ("means", "covariances", "mixing"))
    kernels = map(multivariate_normal, means, covariances)
    density = np.transpose([kernel.pdf(X) for kernel in kernels]) @ mixing
    np.testing.assert_allclose(np.log(density), model.log_density(X), rtol=1e-8)


@pytest.mark.parametrize("name", ["shared tied", "table", "parzen", "regressor"])
def test_the_safetensors_package_reads_our_files_and_we_read_its(name, path):
    model, X = example(name)
    file = File(model, path)
    with safe_open(path, "numpy") as opened:
        assert opened.metadata()["format"] == "kernelpool"
        arrays = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    assert arrays.keys() == file.arrays.keys()
    for key, array in arrays.items():
        assert array.dtype == file.arrays[key].dtype, key
        assert np.array_equal(array, file.arrays[key], equal_nan=array.dtype.kind == "f"), key
    # that package orders the arrays by itself, so the digest is made anew
    written = safetensors_bytes(arrays, {"header": file.metadata["header"]})
    start = 8 + int.from_bytes(written[:8], "little")
    digest = hashlib.sha256(file.metadata["header"].encode() + written[start:]).hexdigest()
    path.write_bytes(safetensors_bytes(arrays, file.metadata | {"sha256": digest}))
    assert np.array_equal(kernelpool.load(path).predict(X), model.predict(X))


def indexed(places):
    entries = {n: {"dtype": t, "shape": s, "data_offsets": o} for n, (t, s, o) in places.items()}
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


EXPECTED = "Array 'a' is .*; expected a dtype of BOOL, .* and data_offsets as far apart as they"
APART = "The arrays do not lie end to end in the %d bytes of data: the file is cut off or damaged"
WRONG = {
    "nothing": (b"", "not a model file .* has 0 bytes"),
    "a pickle": (
        pickle.dumps(np.ones(99)),
        r"not a model file that kernelpool.save has written, or it is cut off: it has \d+ bytes "
        r"and begins with b'\\x80.*Read files of pickle, joblib, skops or ONNX with the library",
    ),
    "a list": (b"\x02\0\0\0\0\0\0\0[]", "The index must be a JSON object"),
    "another's": (b"\x02\0\0\0\0\0\0\0{}", "not one of kernelpool's: its format is None"),
    "bytes": (b"\x02\0\0\0\0\0\0\0\xff\xff", "The index is not JSON"),
    "a gap": (
        indexed({"a": ("U8", [2], [0, 2]), "b": ("U8", [2], [3, 5])}) + bytes(5),
        APART % 5,
    ),
    "too few bytes": (indexed({"a": ("F64", [2], [0, 8])}) + bytes(8), EXPECTED),
    "bytes left over": (indexed({"a": ("U8", [1], [0, 1])}) + bytes(2), APART % 2),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_model_file_is_refused(what, path):
    data, message = WRONG[what]
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


# -- the header ------------------------------------------------------------------------------------


def test_the_header_says_what_the_file_is(path):
    model, frame = example("table")
    summary = {"rows": 120, "held_out_error": 0.125, "notes": ["a", None, {"b": True}]}
    kernelpool.save(model, path, summary=summary)
    header = read_header(path)
    assert header["format_version"] == FORMAT_VERSION == 3
    assert header["library_version"] == kernelpool.__version__
    assert header["estimator"] == "SharedKernelClassifier"
    assert header["classes"] == ["no", "yes"]
    assert header["feature_names"] == list(frame.columns)
    assert header["summary"] == summary
    assert header["arrays"]["model/_fitted/network/means"]["dtype"] == "float64"


@pytest.mark.parametrize("version", ["2", "7"])
def test_other_formats_are_refused(version, path):
    path.write_bytes(File(example("parzen")[0], path).sealed(format_version=version))
    for read in (kernelpool.load, read_header):
        with pytest.raises(ModelFileError, match=rf"version '{version}', .* reads version 3: fit"):
            read(path)


def test_a_parameter_that_an_older_library_did_not_have_takes_its_default(path):
    model, X = example("shared tied")
    path.write_bytes(File(model, path).changed(lambda h, m, a: m["fields"].pop("tol")))
    again = kernelpool.load(path)
    assert again.tol == SharedKernelClassifier().tol
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


# -- what is no model ------------------------------------------------------------------------------


def mean(value):
    return lambda h, m, a: a["model/_fitted/network/means"].put(0, value)


def parameter(**kwargs):
    return lambda h, m, a: m["fields"].update(kwargs)


CHANGES = {
    "an unknown class": (lambda h, m, a: m.update(model="GaussianMixture"), "'GaussianMixture'"),
    "out of range": (parameter(tol=-1.0), "InvalidParameterError, The 'tol' parameter"),
    "a newer parameter": (parameter(foresight=1), "no parameter 'foresight' in this version"),
    "a cache": (
        parameter(estimator={"model": "Pipeline", "fields": {"memory": "/"}}),
        "memory must be None",
    ),
    "a random state beyond its end": (
        parameter(random_state={"random_state": {"tuple": ["MT19937", [], 625]}}),
        "a value that is not known",
    ),
    "a method": (lambda h, m, a: m["fields"].update(fit=1), "no parameter 'fit'"),
    "an array too few": (
        lambda h, m, a: a.pop("model/_fitted/network/means"),
        "KeyError, 'model/_fitted/network/means'",
    ),
    "other classes": (
        lambda h, m, a: h["overview"].update(classes=["x"]),
        "The overview in the header is that of another model",
    ),
    "a header with more": (lambda h, m, a: h.update(extra=1), "must be a JSON object of"),
    "NaN": (mean(np.nan), "holds NaN"),
    # sqrt(1.8e308) / 1e4 = 1.3e150
    "a square that overflows": (mean(1e151), r"numbers beyond 1e\+150"),
    "a private method": (
        lambda h, m, a: m["fields"].update(_validate_params=1),
        "no parameter '_valid",
    ),
    "many features": (
        lambda h, m, a: (
            m["fields"].update(n_features_in_=2**40),
            h["overview"].update(n_features=2**40),
        ),
        "more features than the file has numbers",
    ),
    "a list for an array": (
        lambda h, m, a: m["fields"]["_fitted"]["fields"].update(classes=["x"]),
        r"classes of FittedSharedKernel is \['x'\]; expected numpy.ndarray",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_no_model_is_refused(what, path):
    change, message = CHANGES[what]
    path.write_bytes(File(example("shared full")[0], path).changed(change))
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


def part(name, **kwargs):
    """Change fields of a record beside the model."""
    return lambda h, m, a: h[name]["fields"].update(kwargs)


def entry(name, value):
    return lambda h, m, a: a[name].put(0, value)


def feature(**kwargs):
    """Change what the reference holds of the first feature."""

    def change(header, model, arrays):
        header["reference"]["fields"]["features"]["tuple"][0]["fields"] |= kwargs

    return change


BESIDE = {
    "codes of no class": (
        entry("codes", 3),
        "codes must be whole numbers from 0 to 2 for 144 rows",
    ),
    "negative codes": (entry("codes", -1), "codes must be whole numbers from 0 to 2"),
    "too few codes": (lambda h, m, a: a.update(codes=a["codes"][1:]), r"of shape \(143, 3\)"),
    "no codes": (
        lambda h, m, a: (a.pop("codes"), h.update(codes=None)),
        "calibration and codes must be given together",
    ),
    "a probability above one": (entry("calibration/probability", 2.0), "do not sum to one"),
    "a negative one": (
        lambda h, m, a: a["calibration/probability"][0].put([0, 1, 2], [2.0, -1.0, 0.0]),
        "do not sum to one",
    ),
    "NaN": (entry("calibration/probability", np.nan), "do not sum to one"),
    "an infinite density": (entry("calibration/score", np.inf), "score must be finite numbers"),
    "scores of another shape": (
        lambda h, m, a: a.update({"calibration/score": a["calibration/log_density"]}),
        r"score must be .* of shape \(144,\)",
    ),
    "a decision that is none": (entry("calibration/decision", 3), "decision must be .* 0 to 2"),
    "a prediction of no class": (entry("calibration/predicted", 3), "predicted must be .* 0 to 2"),
    "other classes": (part("calibration", classes={"text": ["a", "b", "c"]}), "are not those of"),
    "no array": (
        part("calibration", sets=[[True]]),
        r"sets of Predictions is \[\[True\]\]; expected",
    ),
    "another record": (
        lambda h, m, a: h.update(reference={"record": "Thresholds", "fields": {}}),
        "reference of ModelFile is Thresholds.*expected",
    ),
    "fewer features": (
        lambda h, m, a: h["reference"]["fields"]["features"]["tuple"].pop(),
        "bins of each of its columns",
    ),
    "numbers for features": (
        part("reference", features={"tuple": [1, 2, 3]}),
        "AttributeError, 'int' object has no attribute 'edges'",
    ),
    "edges that fall": (feature(edges=[1.0, 0.0]), "edges of .* must rise"),
    "negative counts": (feature(edges=[0.0], counts=[5, -1, 1]), "counts of .* do not fit"),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_is_no_record_of_the_model_is_refused(what, path):
    change, message = BESIDE[what]
    path.write_bytes(File(recorded("shared full"), path).changed(change))
    with pytest.raises(ModelFileError, match=message):
        load_file(path)


def test_a_file_is_checked_before_it_is_written(path):
    file = recorded("shared full")
    with pytest.raises(ModelFileError, match="codes must be whole numbers from 0 to 2"):
        kernelpool.save(replace(file, codes=file.codes + 3), path)
    for name, X in (
        ("shared full", rows()[0][:, :2]),
        ("table", text_table()[0].rename(columns={"size": "width"})),
    ):
        with pytest.raises(ModelFileError, match="reference is of other features than the model"):
            kernelpool.save(replace(recorded(name), reference=DriftReference.of(X)), path)
    assert not path.exists()


def test_densities_may_be_unknown_or_none(path):
    """There are as many classes as features, and one kernel: what was recorded is not what to ask
    the model about.
    """
    X, _, text, _ = rows()
    model = kernels(n_kernels=1).fit(X, text)
    calibration = predictions(model, X, log_density=True)
    log_density = calibration.log_density.copy("C")  # rows, as those that a model takes
    calibration = replace(calibration, log_density=log_density)
    calibration.score[:40] = -np.inf
    calibration.log_density[:40] = -np.inf
    calibration.log_density[40:80] = np.nan
    kernelpool.save(ModelFile(model, calibration, calibration.predicted), path)
    again = load_file(path).calibration
    assert np.array_equal(again.score, calibration.score)
    assert np.array_equal(again.log_density, calibration.log_density, equal_nan=True)


def test_a_model_whose_probabilities_do_not_sum_to_one_is_refused(path, monkeypatch):
    kernelpool.save(example("shared full")[0], path)

    def doubled(model, X):
        rows = predictions(model, X)
        return replace(rows, probability=2 * rows.probability)

    monkeypatch.setattr(model_file, "predictions", doubled)
    with pytest.raises(ModelFileError, match=r"probabilities .* do not sum to one"):
        kernelpool.load(path)


# -- on the disk -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["with space.st", "new\nline", "$(touch oops)", "x" * 255, b"not utf-8 \xff"]
)
def test_paths_with_odd_characters(name, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), name) if isinstance(name, bytes) else tmp_path / name
    kernelpool.save(example("shared tied")[0], path)
    assert len(os.listdir(tmp_path)) == 1
    assert type(kernelpool.load(path)).__name__ == read_header(path)["estimator"]


def test_what_is_not_there_or_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(KernelpoolError, match="is not a file"):
            kernelpool.load(path)
    with pytest.raises(FileNotFoundError, match="missing"):
        kernelpool.save(example("shared tied")[0], tmp_path / "missing" / "model")
    with pytest.raises(FileNotFoundError, match="missing"):
        kernelpool.load(tmp_path / "missing")


def test_a_huge_file_is_refused_before_it_is_read(path):
    with open(path, "wb") as file:
        index = indexed({"a": ("U8", [2**42], [0, 2**42])})
        file.write(index)
        file.truncate(len(index) + 2**42)  # four terabytes, none of them on the disk
    with pytest.raises(ModelFileError, match="at most 2147483648 are read"):
        kernelpool.load(path)
    with pytest.raises(ModelFileError, match="not one of kernelpool's: its format is None"):
        read_header(path)
