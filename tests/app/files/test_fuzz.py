"""Damaged files give a clean error or a model that answers: never a crash, a hang, or another
exception.
"""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import EXAMPLES, example

import kernelpool
from kernelpool.app.files import container, read_header
from kernelpool.app.files.container import parse_json
from kernelpool.errors import KernelpoolError, ModelFileError

from .mutations import MUTATIONS, File

FUZZED = [
    "shared full",
    "shared tied",
    "sharing average",
    "pool",
    "parzen gaussian",
    "reduced parzen",
    "multi-edit",
    "rbf",
    "em-log of a mixture",
    "regressor",
    "neurons with places",
    "reject",
]


def taken_apart(name, path):
    model, X = example(name)
    kernelpool.save(model, path)
    return File(path.read_bytes(), container.read_contents(path, 1 << 30)), X


def assert_answers(model, X):
    """For rows like those that the model was fitted to, for rows far away, and for its own
    samples.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in (X[:8], 1e6 * X[:2]) if isinstance(X, np.ndarray) else (X[:8],):
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
    refused, loaded = fuzzed(name, tmp_path / "model", 68, seed=sum(map(ord, name)))
    assert refused > 40
    assert loaded > 0  # some damage is none: the test sees models too


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_many_damaged_files_give_clean_errors(name, tmp_path):
    fuzzed(name, tmp_path / "model", 340, seed=1)


# -- single bits -----------------------------------------------------------------------------------


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


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | st.text('[]{},:"0123456789eE+-. nulltrefasNI\\', max_size=60))
def test_any_text_is_json_or_a_clean_error(text):
    with contextlib.suppress(ModelFileError):
        parse_json(text, "text")
