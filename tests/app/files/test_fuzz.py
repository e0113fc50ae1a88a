"""Damaged files give a clean error or a model that answers: never a crash, a hang, or another exception."""

import contextlib
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from saved_models import UNFITTED, fitted

import kernelpool
from kernelpool.app.files import container, read_header
from kernelpool.app.files.container import parse_json
from kernelpool.app.files.models import read_model, write_model
from kernelpool.app.files.values import Reader, Writer
from kernelpool.errors import KernelpoolError, ModelFileError

from .mutations import MUTATIONS, File

FUZZED = [
    "shared spherical",
    "shared full",
    "shared tied",
    "shared, split",
    "sharing average",
    "parzen with trees",
    "parzen gaussian",
    "reduced parzen",
    "multi-edit",
    "rbf",
    "rbf of a mixture",
    "rbf regressor",
    "neurons with places",
    "reject",
    "encoded",
    "encoder of tables",
]


def taken_apart(name, path):
    model, X = fitted(name)
    kernelpool.save(model, path)
    return File(path.read_bytes(), container.read_contents(path, 1 << 30)), X


def assert_answers(model, X):
    """What every model must do for rows like those it was made for, and for rows far away."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = [X[:8]] if not isinstance(X, np.ndarray) else [X[:8], 1e6 * X[:2]]
        for x in rows:
            if hasattr(model, "predict_proba"):
                probability = model.predict_proba(x)
                assert probability.shape == (len(x), len(model.classes_))
                assert np.isfinite(probability).all()
                np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-6)
            if hasattr(model, "predict"):
                assert len(model.predict(x)) == len(x)
            if hasattr(model, "sample"):
                assert model.sample(3, random_state=0)[0].shape == (3, X.shape[1])


def fuzzed(name, path, n, seed):
    """How many of `n` damaged files were refused, and how many gave a model."""
    file, X = taken_apart(name, path)
    rng = np.random.default_rng(seed)
    refused = loaded = 0
    for i in range(n):
        mutate = MUTATIONS[i % len(MUTATIONS)]
        path.write_bytes(mutate(file, rng))
        with contextlib.suppress(KernelpoolError):
            read_header(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kernelpool.load(path)
        except KernelpoolError as error:
            if not 20 < len(str(error)) < 2000:
                raise AssertionError("a message says too little or too much") from error
            refused += 1
            continue
        loaded += 1
        if X.ndim == 2 and getattr(model, "n_features_in_", None) == X.shape[1]:
            assert_answers(model, X)
    return refused, loaded


@pytest.mark.parametrize("name", FUZZED)
def test_damaged_files_give_clean_errors(name, tmp_path):
    refused, loaded = fuzzed(name, tmp_path / "model", 170, seed=sum(map(ord, name)))
    assert refused > 100
    assert loaded > 0  # some damage is none: the test sees models too


@pytest.mark.slow
@pytest.mark.parametrize("name", UNFITTED)
def test_many_damaged_files_give_clean_errors(name, tmp_path):
    fuzzed(name, tmp_path / "model", 3400, seed=1)


# -- single bits --------------------------------------------------------------------------------------------------------


def test_no_single_flipped_bit_goes_unnoticed(tmp_path):
    """The digest covers the header and the data; the index around them must fit to the byte."""
    path = tmp_path / "model"
    file, _ = taken_apart("shared tied", path)
    rng = np.random.default_rng(0)
    unnoticed = []
    for at in rng.choice(len(file.data), 600, replace=False):
        data = bytearray(file.data)
        data[at] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(data))
        try:
            kernelpool.load(path)
        except KernelpoolError:
            continue
        unnoticed.append(bytes(file.data[at : at + 1]))
    assert not [
        byte for byte in unnoticed if byte != b" "
    ]  # the index is filled up with blanks, any of which may be a tab


# -- values -------------------------------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
)
TYPES = ["float64", "float32", "float16", "int64", "int8", "uint64", "uint8", "bool"]
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
)
TEXTS = hnp.arrays(
    hnp.unicode_string_dtypes(endianness="=", max_len=5), hnp.array_shapes(max_side=3)
)
VALUES = st.recursive(
    SCALARS | ARRAYS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one, other):
    if isinstance(one, np.ndarray):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == np.array(other, order="C").tobytes()
        )
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return (
        type(one) is type(other)
        and (one == other or (one != one and other != other))
        and str(one) == str(other)
    )


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_values_come_back_as_they_were(value):
    writer = Writer(write_model)
    text = json.dumps(writer.value(value, "it"), allow_nan=False)
    reader = Reader(writer.arrays, read_model)
    assert same(value, reader.value(parse_json(text, "value")))
    reader.finished()


WORDS = "float tuple dict slice array text objects shape scalar type dtype order same random_state position has_gauss gauss"
WORDS = [*WORDS.split(), "model", "class", "parameters", "fitted", "steps"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats()
    | st.sampled_from(["", "a", "nan", "float64", "means_"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    JSON,
    st.sampled_from(["float64", "uint32", "int64", "bool"]),
    st.sampled_from([(), (3,), (624,), (2, 2), (0,)]),
)
def test_any_json_is_a_value_or_a_clean_error(node, kind, shape):
    reader = Reader({"a": np.ones(shape, kind), "means_": np.ones(shape, kind)}, read_model)
    with contextlib.suppress(ModelFileError):
        reader.value(node)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.text('[]{},:"0123456789eE+-. nulltrefasNI\\', max_size=60))
def test_any_text_is_json_or_a_clean_error(text):
    with contextlib.suppress(ModelFileError):
        parse_json(text, "text")
