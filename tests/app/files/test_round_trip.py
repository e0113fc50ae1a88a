"""What is saved comes back: the same answers to the last bit, the same parameters, and a model that
can be fitted again. What cannot be saved is refused.
"""

import json
import warnings
from dataclasses import is_dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from zoo import EXAMPLES, answers, example, kernels, rows, target

import kernelpool
from kernelpool import (
    ConformalClassifier,
    ParzenClassifier,
    RBFNetworkClassifier,
    RejectClassifier,
    SharedKernelClassifier,
)
from kernelpool.app.files import ModelFile, load_file, read_header
from kernelpool.app.files.codec import SAVED_CLASSES, Reader, Writer
from kernelpool.app.files.container import parse_json
from kernelpool.errors import ModelFileError
from kernelpool.inspection import DriftReference, predictions
from kernelpool.records import SAVED, stored


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def saved(model, path, **kwargs):
    kernelpool.save(model, path, **kwargs)
    return kernelpool.load(path)


def parts(value):
    """The values inside a value: of an estimator its attributes, of a record its fields."""
    if isinstance(value, BaseEstimator):
        return vars(value)
    if is_dataclass(value):
        return stored(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def assert_same(one, other, where=""):
    """Values are the same to the last bit, and arrays of one type; text may be stored wider."""
    assert type(one) is type(other), where
    inside = parts(one)
    if inside is not None:
        assert inside.keys() == parts(other).keys(), where
        for name, value in inside.items():
            assert_same(value, parts(other)[name], f"{where}.{name}")
    elif isinstance(one, np.ndarray):
        assert (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind), where
        if one.dtype.kind in "UO":
            assert repr(one.tolist()) == repr(other.tolist()), where
        else:
            assert one.dtype == other.dtype, where
            assert one.tobytes() == other.tobytes(), where
    else:
        assert repr(one) == repr(other), where


@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_and_attributes_are_the_same_to_the_last_bit(name, path):
    model, X = example(name)
    again = saved(model, path)
    assert_same(model, again)
    assert_same(answers(model, X), answers(again, X))
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        few = np.concatenate([X[:20], 1e3 * X[:20]]).astype(np.float32)
        assert_same(answers(model, few), answers(again, few))


def classes_in(value, kind):
    own = {type(value).__name__} if kind(value) else set()
    return own.union(*(classes_in(part, kind) for part in (parts(value) or {}).values()))


def recorded(name):
    """A model with its own predictions, their classes, and counts of the rows."""
    model, X = example(name)
    rows = predictions(model, X, log_density=True)
    codes = np.arange(len(X)) % len(rows.classes)
    return ModelFile(model, rows, codes, DriftReference.of(X, model, X), {"rows": len(X)})


def test_files_hold_every_class_and_record():
    """Which records these are, tests/test_house.py lists."""
    models = [example(name)[0] for name in EXAMPLES]
    estimators = lambda value: isinstance(value, BaseEstimator)  # noqa: E731
    assert set().union(*(classes_in(model, estimators) for model in models)) == set(SAVED_CLASSES)
    models += vars(recorded("shared full")).values()
    records = set().union(*(classes_in(model, is_dataclass) for model in models))
    # two parameters, a stream, the rows of a pool of networks that take numbers, and refusals
    others = {"Frame", "GradientRule", "Overlap", "StreamState", "Thresholds", "View"}
    assert records | others == set(SAVED)


@pytest.mark.parametrize("name", ["shared full", "parzen", "table", "reject"])
def test_a_loaded_model_can_be_fitted_again(name, path):
    model, X = example(name)
    X, y = target(EXAMPLES[name][1])
    again = saved(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fitted in (clone(again).fit(X, y), again.fit(X, y)):
            assert_same(answers(model, X), answers(fitted, X))


def test_a_random_state_goes_on_where_it_was(path):
    X, y, _, _ = rows()
    state = np.random.RandomState(5)
    state.normal()  # leaves a spare deviate behind
    model = ParzenClassifier("hypersphere", radius=1.0, random_state=state).fit(X, y)
    again = saved(model, path)
    assert np.array_equal(model.random_state.normal(size=9), again.random_state.normal(size=9))


def test_sets_by_probabilities_alone(path):
    """An RBF network has no densities."""
    X, y, _, _ = rows()
    model = ConformalClassifier(RBFNetworkClassifier(10, random_state=0)).fit(X, y)
    assert np.array_equal(saved(model, path).predict_set(X), model.predict_set(X))


LABELS = {
    "numbers": np.array([3.0, -1.0]),
    "booleans": np.array([False, True]),
    "small whole numbers": np.array([-3, 7], np.int8),
    "large whole numbers": np.array([1, 2**63], np.uint64),
    "every alphabet": np.array(["\N{SNOWMAN}", "g\0x" + "\U0001f600" * 30]),
    "objects": np.array(["x", "yy"], object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_type(kind, path):
    X, y, _, _ = rows()
    model = kernels().fit(X, LABELS[kind][y])
    assert_same(model.predict(X), saved(model, path).predict(X))
    assert read_header(path)["classes"] == model.classes_.tolist()


def test_a_model_that_was_fitted_before_is_written_once(path):
    model, _ = example("reject prefit")
    assert model.estimator is model.estimator_
    again = saved(model, path)
    assert again.estimator is again.estimator_
    assert sum(name.endswith("means") for name in read_header(path)["arrays"]) == 1


def test_a_cache_of_a_pipeline_is_not_saved(path, tmp_path):
    X, y, _, _ = rows()
    model = make_pipeline(StandardScaler(), kernels(), memory=str(tmp_path / "cache")).fit(X, y)
    assert saved(model, path).memory is None


@pytest.mark.parametrize("name", ["shared full", "table", "pipeline", "reject", "conformal", "rbf"])
def test_a_file_holds_what_was_recorded_beside_the_model(name, path):
    file = recorded(name)
    kernelpool.save(file, path)
    again = load_file(path)
    for name, value in vars(file).items():
        assert_same(value, getattr(again, name))
    assert_same(file.model, kernelpool.load(path))
    kernelpool.save(again, path, summary={"rows": 3})
    assert load_file(path).summary == {"rows": 3}


# -- values ----------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True)])
)
TYPES = ["float64", "float32", "float16", "int64", "int8", "uint64", "uint8", "bool"]
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_side=0, max_side=4))
)
TEXTS = hnp.arrays(hnp.unicode_string_dtypes(endianness="=", max_len=5), st.integers(0, 3))
OBJECTS = st.just(np.array(["a\0", None, float("nan"), True, 3, -0.0], object))
VALUES = st.recursive(
    SCALARS | ARRAYS | TEXTS | OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_values_come_back_as_they_were(value):
    writer = Writer()
    text = json.dumps(writer.value(value, "it"), allow_nan=False)
    reader = Reader(writer.arrays)
    assert_same(value, reader.value(parse_json(text, "value")))
    assert not reader.arrays


# -- what cannot be saved --------------------------------------------------------------------------


def test_functions_are_refused_with_what_to_do(path):
    X, y, _, _ = rows()
    model = make_pipeline(StandardScaler(), kernels()).fit(X, y)
    model[-1].set_params(callback=print)
    message = "^model/steps/1/1/callback is a function, .*Set it to None .* with set_params"
    with pytest.raises(ModelFileError, match=message):
        kernelpool.save(model, path)
    assert not path.exists()


class Subclass(SharedKernelClassifier):
    """Its code would be lost."""


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (kernels(), NotFittedError, "not fitted"),
        (LogisticRegression(), ModelFileError, "LogisticRegression, which cannot be saved.*skops"),
        (Subclass(), ModelFileError, "Subclass, which cannot be saved"),
        (
            RejectClassifier(LogisticRegression()),
            ModelFileError,
            "^model/estimator is a sklearn.*Logis",
        ),
        (
            Pipeline([("scale", MinMaxScaler())]),
            ModelFileError,
            "^model/steps/0/1 is a .*MinMaxScaler",
        ),
        ("model", ModelFileError, "model of ModelFile is 'model'; expected .*BaseEstimator"),
    ],
)
def test_what_is_no_fitted_model_of_ours_is_refused(model, error, message, path):
    with pytest.raises(error, match=message):
        kernelpool.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([object()]), "it/0 is of type object"),
        (np.ones(1, complex), "type complex128 with 1 dimensions, which cannot be saved"),
        ({(1, 2): 3}, "it is of type dict"),
        (np.float64, "it is a function"),
        (slice(1, 2), "it is of type slice"),
    ],
)
def test_values_of_other_kinds_are_refused(value, message):
    with pytest.raises(ModelFileError, match=message):
        Writer().value(value, "it")


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ([1], r"summary of ModelFile is \[1\]; expected dict.*None"),
        ({"loss": float("nan")}, "summary must hold only what JSON can"),
        ({"loss": np.float32(1)}, "summary must hold only what JSON can.*float32"),
    ],
)
def test_a_summary_must_be_plain(summary, message, path):
    with pytest.raises(ModelFileError, match=message):
        kernelpool.save(example("shared full")[0], path, summary=summary)
    assert not path.exists()
