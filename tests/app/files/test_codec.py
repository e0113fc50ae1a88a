"""What cannot be saved is refused by `save`; what is no model is refused by `load`, with the
reason.
"""

import ast
import contextlib
import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from zoo import example, kernels, rows

import kernelpool
from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.files import codec, container
from kernelpool.app.files.codec import Reader, Writer
from kernelpool.app.files.container import parse_json
from kernelpool.errors import ModelFileError

from .mutations import File


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


# -- saving ---------------------------------------------------------------------------------------


def cube(u):
    return np.abs(u).max(axis=1)


def test_functions_are_refused_with_what_to_do(path):
    X, y, _, _ = rows()
    model = kernels().fit(X, y).set_params(callback=cube)
    with pytest.raises(
        ModelFileError, match=r"^callback is a function, .*Set it to None .* with set_params"
    ):
        kernelpool.save(model, path)
    with pytest.raises(ModelFileError, match=r"^steps/1/1/callback is a function"):
        kernelpool.save(make_pipeline(StandardScaler().fit(X), model), path)
    kernelpool.save(model.set_params(callback=None), path)
    assert np.array_equal(kernelpool.load(path).predict(X), model.predict(X))


class Subclass(SharedKernelClassifier):
    """Its code would be lost."""


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (kernels(), NotFittedError, "not fitted"),
        (LogisticRegression(), ModelFileError, "LogisticRegression cannot be saved.*skops"),
        (Subclass(), ModelFileError, "Subclass cannot be saved"),
        (
            RejectClassifier(LogisticRegression()),
            ModelFileError,
            "^estimator is a sklearn.*LogisticRegression, which cannot be saved",
        ),
        (
            Pipeline([("scale", MinMaxScaler()), ("model", kernels())]),
            ModelFileError,
            "^steps/0/1 is a .*MinMaxScaler, which cannot be saved",
        ),
        ("model", ModelFileError, "builtins.str cannot be saved"),
    ],
)
def test_what_is_no_fitted_model_of_ours_is_refused(model, error, message, path):
    with pytest.raises(error, match=message):
        kernelpool.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**64, "more than 64 bits"),
        (np.array([object()]), "holds an object of type object"),
        (np.array(["x" * 5000]), "more than 4096 characters"),
        (np.ones(1, complex), "type complex128, which cannot be saved"),
        ({(1, 2): 3}, "keys are not all text or integers"),
        (np.float64, "it is a function"),
        (slice(1, 2), "it is of type slice"),
    ],
)
def test_values_of_other_kinds_are_refused(value, message):
    with pytest.raises(ModelFileError, match=message):
        Writer().value(value, "it")


def test_a_cache_of_a_pipeline_is_not_saved(path, tmp_path):
    X, y, _, _ = rows()
    model = make_pipeline(StandardScaler(), kernels(), memory=str(tmp_path / "cache")).fit(X, y)
    kernelpool.save(model, path)
    assert kernelpool.load(path).memory is None


# -- values ----------------------------------------------------------------------------------------

KEY = np.ones(624, np.uint32)


def state(**changes):
    inner = {"key": {"array": "a"}, "pos": 5} | changes
    pairs = {"dict": [[name, inner.pop(name)] for name in ("key", "pos")]}
    whole = {"bit_generator": "MT19937", "state": pairs, "has_gauss": 0, "gauss": 0.0} | inner
    return {"random_state": whole}


MODEL = {"model": "RejectClassifier", "parameters": {}, "fitted": None}
WRONG = {
    "unknown kind": ({"eval": "1"}, {}, "unknown kind 'eval'"),
    "empty object": ({}, {}, "unknown kind None"),
    "float": ({"float": "1.5"}, {}, "'nan', 'inf' or '-inf'"),
    "float and more": ({"float": "nan", "x": 1}, {}, "entries that are not known"),
    "tuple of nothing": ({"tuple": 3}, {}, "A list was expected in the header; got 3"),
    "dict of no pairs": ({"dict": [[1, 2, 3]]}, {}, "list of pairs"),
    "dict of other keys": ({"dict": [[None, 2]]}, {}, "keys are text or integers"),
    "dict with a key twice": ({"dict": [["a", 1], ["a", 2]]}, {}, "holds a key twice"),
    "missing array": ({"array": "b"}, {"a": KEY}, "an array 'b', which is not in the file"),
    "array without a name": ({"array": 3}, {"a": KEY}, "asks for an array 3"),
    "another order": ({"array": "a", "order": "K"}, {"a": KEY}, "'C' or 'F'; got 'K'"),
    "scalar of many": ({"array": "a", "scalar": True}, {"a": KEY}, r"shape \(\); got \(624,\)"),
    "text of floats": ({"text": "a"}, {"a": np.ones((2, 3))}, "code points of type U32"),
    "text without width": ({"text": "a"}, {"a": np.ones((2, 0), np.uint32)}, "with a width"),
    "text too wide": ({"text": "a"}, {"a": np.ones((1, 5000), np.uint32)}, "with a width"),
    "no code points": ({"text": "a"}, {"a": KEY[:1] * 0x110000}, "1114112, which is no code point"),
    "other number": ({"objects": [1], "shape": [2]}, {}, r"1 objects cannot have shape \[2\]"),
    "no shape": ({"objects": [1]}, {}, "1 objects cannot have shape None"),
    "nested objects": ({"objects": [[1]], "shape": [1]}, {}, "text, numbers and None only"),
    "huge shape": ({"objects": [], "shape": [0, 2**40]}, {}, "0 objects cannot have shape"),
    "short state": (state(), {"a": KEY[:623]}, "a state of MT19937"),
    "state beyond its end": (state(pos=625), {"a": KEY}, "a state of MT19937"),
    "another generator": (state(bit_generator="PCG64"), {"a": KEY}, "a state of MT19937"),
    "record": ({"record": "os.system", "fields": {}}, {}, "a record 'os.system' that is not known"),
    "fields": ({"record": "Frame", "fields": {"a": 1}}, {}, "are not those of the class"),
    "class": (MODEL | {"model": "os.system"}, {}, "holds a 'os.system'; a model file may hold"),
    "parameter": (MODEL | {"parameters": {"x": 1}}, {}, "no parameter 'x' in this version"),
    "threads": (
        {"model": "SharedKernelClassifier", "parameters": {"n_jobs": 999}, "fitted": None},
        {},
        "n_jobs must be at most 256; got 999",
    ),
    "attribute": (
        {"model": "SharedKernelClassifier", "parameters": {}, "fitted": {"predict_": 1, "fit": 1}},
        {},
        "cannot have an attribute 'fit'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_value_is_refused(what):
    node, arrays, message = WRONG[what]
    with pytest.raises(ModelFileError, match=message):
        Reader(arrays).value(node)


def test_every_array_is_used_once():
    reader = Reader({"a": KEY, "b": KEY})
    reader.value({"array": "a"})
    with pytest.raises(ModelFileError, match="already taken"):
        reader.value({"array": "a"})
    with pytest.raises(ModelFileError, match="an array 'b' that the model does not use"):
        reader.finished()


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True)])
)
TYPES = ["float64", "float32", "float16", "int64", "int8", "uint64", "uint8", "bool"]
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
)
TEXTS = hnp.arrays(
    hnp.unicode_string_dtypes(endianness="=", max_len=5), hnp.array_shapes(max_side=3)
)
OBJECTS = st.just(np.array([["a\0", None, float("nan")], [True, 3, -0.0]], object))
VALUES = st.recursive(
    SCALARS | ARRAYS | TEXTS | OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one, other):
    if isinstance(one, np.ndarray) and one.dtype == object:
        return one.shape == other.shape and same(one.tolist(), other.tolist())
    if isinstance(one, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and one.tobytes() == np.array(other, order="C").tobytes()
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and repr(one) == repr(other)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_values_come_back_as_they_were(value):
    writer = Writer()
    text = json.dumps(writer.value(value, "it"), allow_nan=False)
    reader = Reader(writer.arrays)
    assert same(value, reader.value(parse_json(text, "value")))
    reader.finished()


WORDS = "float tuple dict slice array text objects shape scalar order same random_state record"
WORDS = [*WORDS.split(), "fields", "model", "parameters", "fitted", "steps"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats()
    | st.sampled_from(["", "a", "nan", "float64", "means_", "Frame", "StandardScaler"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(
    JSON,
    st.sampled_from(["float64", "uint32", "int64", "bool"]),
    st.sampled_from([(), (3,), (624,), (2, 2), (0,)]),
)
def test_any_json_is_a_value_or_a_clean_error(node, kind, shape):
    reader = Reader({"a": np.ones(shape, kind), "means_": np.ones(shape, kind)})
    with contextlib.suppress(ModelFileError):
        reader.value(node)


# -- models ----------------------------------------------------------------------------------------


def changed(name, change, path):
    """The file of a model with its header and arrays changed, and sealed again."""
    kernelpool.save(example(name)[0], path)
    file = File(path.read_bytes(), container.read_contents(path, 1 << 30))
    header, arrays = copy.deepcopy(file.header), {k: v.copy() for k, v in file.arrays.items()}
    change(header, header["model"], arrays)
    path.write_bytes(file.sealed(header, arrays))


def put(array, value):
    array.reshape(-1)[0] = value


CHANGES = {
    "an unknown class": (lambda h, m, a: m.update(model="GaussianMixture"), "'GaussianMixture'"),
    "no class": (lambda h, m, a: m.pop("model"), "must have model, parameters and fitted"),
    "not fitted": (lambda h, m, a: (m.update(fitted=None), a.clear()), "not fitted"),
    "out of range": (lambda h, m, a: m["parameters"].update(tol=-1.0), "A parameter is out of"),
    "a callback": (lambda h, m, a: m["parameters"].update(callback="os.system"), "out of range"),
    "an array too many": (lambda h, m, a: a.update(x=KEY), "an array 'x' that the model does not"),
    "an array too few": (
        lambda h, m, a: a.pop("_fitted/means"),
        "asks for an array '_fitted/means'",
    ),
    "an attribute too few": (
        lambda h, m, a: (m["fitted"]["_fitted"]["fields"].pop("means"), a.pop("_fitted/means")),
        "The fields of .* in the file are not those of the class",
    ),
    "other classes": (lambda h, m, a: h.update(classes=["x"]), r"The header says classes is \['x'"),
    "other features": (lambda h, m, a: h.update(n_features=4), "The header says n_features is 4"),
    "a header with more": (lambda h, m, a: h.update(extra=1), "'extra' is missing or not known"),
    "a header with less": (lambda h, m, a: h.pop("summary"), "'summary' is missing or not known"),
    "a list": (lambda h, m, a: h.update(summary=[1]), "summary must be a JSON object"),
    "NaN": (
        lambda h, m, a: put(a["_fitted/means"], np.nan),
        "holds NaN",
    ),
    "a square that overflows": (
        lambda h, m, a: put(a["_fitted/means"], 1e151),  # sqrt(1.8e308) / 1e4 = 1.3e150
        r"numbers beyond 1e\+150",
    ),
    "no covariance": (
        lambda h, m, a: put(a["_fitted/covariances"], -1.0),
        "not finite|not fit together",
    ),
    "fewer kernels": (
        lambda h, m, a: a.update({"_fitted/means": a["_fitted/means"][:2].copy()}),
        "does not fit together",
    ),
    "many features": (
        lambda h, m, a: (m["fitted"].update(n_features_in_=2**40), h.update(n_features=2**40)),
        "more features than the file has numbers",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_no_model_is_refused(what, path):
    change, message = CHANGES[what]
    changed("shared full", change, path)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


def test_a_model_whose_probabilities_do_not_sum_to_one_is_refused(path, monkeypatch):
    kernelpool.save(example("shared full")[0], path)
    monkeypatch.setattr(
        SharedKernelClassifier, "predict_proba", lambda self, X: np.ones((len(X), 3))
    )
    with pytest.raises(ModelFileError, match=r"probabilities .* do not sum to one"):
        kernelpool.load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has 0 bytes: it is empty or cut off"),
        (b"\x80\x04\x95" * 40, "says that its index has"),
        (b"PK\x03\x04" * 20, "says that its index has"),
        (b"\x02\0\0\0\0\0\0\0[]", "The index must be a JSON object; got list"),
        (b"\x02\0\0\0\0\0\0\0{}", "not one of kernelpool's: its format is None"),
        (b"\x02\0\0\0\0\0\0\0\xff\xff", "The index is not text"),
    ],
)
def test_what_is_no_model_file_is_refused(data, message, path):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


def test_damage_is_told_from_malice_by_the_digest(path):
    kernelpool.save(example("shared full")[0], path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ModelFileError, match="SHA-256 differs"):
        kernelpool.load(path)


def test_nothing_of_a_file_is_run():
    """No pickle, no eval, no import by name: the sources call none of them."""
    called = {
        ast.unparse(node.func).rsplit(".", 1)[-1]
        for source in Path(codec.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call)
    }
    assert not called & {"eval", "exec", "compile", "import_module", "__import__", "loads_pickle"}
