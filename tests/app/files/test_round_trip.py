"""What is saved comes back: the same answers to the last bit, the same parameters, and a model that
can be fitted again.
"""

import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from zoo import EXAMPLES, answers, example, kernels, rows, target, text_table

import kernelpool
from kernelpool import ParzenClassifier, SharedKernelClassifier
from kernelpool.app.files import read_header
from kernelpool.app.files.codec import ESTIMATORS, NOT_SAVED


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def saved(model, path, **kwargs):
    kernelpool.save(model, path, **kwargs)
    return kernelpool.load(path)


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert one
    for name, value in one.items():
        assert value.dtype == other[name].dtype, name
        assert value.shape == other[name].shape, name
        assert (
            value.tobytes() == other[name].tobytes()
            if value.dtype != object
            else (value == other[name]).all()
        ), name


def parts(value):
    """The values inside a value: of an estimator its attributes, of a record its fields."""
    if isinstance(value, BaseEstimator):
        return {k: v for k, v in vars(value).items() if k not in NOT_SAVED}
    if is_dataclass(value):
        return {
            f.name: getattr(value, f.name) for f in fields(value) if f"{f.name}_" not in NOT_SAVED
        }
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def assert_same_state(one, other, where=""):
    assert type(one) is type(other), where
    inside = parts(one)
    if inside is not None:
        assert inside.keys() == parts(other).keys(), where
        for name, value in inside.items():
            assert_same_state(value, parts(other)[name], f"{where}.{name}")
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
        assert one.dtype == other.dtype, where
    else:
        assert one == other or (one != one and other != other), where


@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_and_attributes_are_the_same_to_the_last_bit(name, path):
    model, X = example(name)
    again = saved(model, path)
    assert_same_state(model, again)
    assert_same(answers(model, X), answers(again, X))
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        few = np.concatenate([X[:20], 1e3 * X[:20]]).astype(np.float32)
        assert_same(answers(model, few), answers(again, few))


def classes_in(value):
    own = {type(value).__name__} if isinstance(value, BaseEstimator) else set()
    return own.union(*(classes_in(part) for part in (parts(value) or {}).values()))


def test_every_class_that_files_may_hold_is_in_some_example_here():
    assert set().union(*(classes_in(example(name)[0]) for name in EXAMPLES)) == set(ESTIMATORS)


@pytest.mark.parametrize("name", ["shared full", "parzen", "table", "reject"])
def test_a_loaded_model_can_be_fitted_again(name, path):
    model, X = example(name)
    X, y = target(EXAMPLES[name][1])
    again = saved(model, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once, twice = clone(again).fit(X, y), again.fit(X, y)
    assert_same(answers(model, X), answers(once, X))
    assert_same(answers(model, X), answers(twice, X))


def test_warm_start_goes_on_from_a_loaded_model(path):
    X, y, _, _ = rows()
    model = SharedKernelClassifier.prbf(4, random_state=0, warm_start=True, tol=1e-3).fit(X, y)
    again = saved(model, path)
    assert_same(answers(model.fit(X, y), X), answers(again.fit(X, y), X))


def test_a_random_state_goes_on_where_it_was(path):
    X, y, _, _ = rows()
    state = np.random.RandomState(5)
    state.normal()  # leaves a spare deviate behind
    model = ParzenClassifier("hypersphere", standardize=False, radius=1.0, random_state=state).fit(
        X, y
    )
    again = saved(model, path)
    assert np.array_equal(model.random_state.normal(size=9), again.random_state.normal(size=9))


LABELS = {
    "numbers": np.array([3.0, -1.0]),
    "booleans": np.array([False, True]),
    "small whole numbers": np.array([-3, 7], np.int8),
    "large whole numbers": np.array([1, 2**63], np.uint64),
    "one letter": np.array(["a", "b"]),
    "every alphabet": np.array(
        ["\N{SNOWMAN}", "zu\N{LATIN SMALL LETTER U WITH DIAERESIS}g\0x", "\U0001f600" * 30]
    )[:2],
    "objects": np.array(["x", "yy"], object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_type(kind, path):
    X, y, _, _ = rows()
    model = kernels().fit(X, LABELS[kind][y])
    again = saved(model, path)
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.predict(X), model.predict(X))
    assert read_header(path)["classes"] == model.classes_.tolist()


def test_feature_names_are_asked_for_again(path):
    frame, _ = text_table()
    model, _ = example("table")
    again = saved(model, path)
    assert list(again.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="size"):
        again.predict(frame.drop(columns="size"))


def test_ten_thousand_columns(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 10_000))
    names = [f"<script>alert({i})</script>" for i in range(10_000)]
    import pandas as pd

    model = kernels(n_kernels=2).fit(pd.DataFrame(X, columns=names), np.arange(12) % 2)
    again = saved(model, path)
    assert list(again.feature_names_in_) == names
    assert read_header(path)["feature_names"] == names


def test_features_whose_units_differ_by_twenty_orders_of_magnitude(path):
    X, y, _, _ = rows()
    X = X * np.array([1e-10, 1.0, 1e10])
    model = kernels(covariance_type="full").fit(X, y)
    assert np.array_equal(saved(model, path).predict_proba(X), model.predict_proba(X))


def test_a_fit_elsewhere_comes_home(path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y, _, _ = rows()
    model = kernels().fit(torch.asarray(X), torch.asarray(y))
    again = saved(model, path)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert torch.equal(again.predict_proba(torch.asarray(X)), model.predict_proba(torch.asarray(X)))


def test_a_model_that_was_fitted_before_is_written_once(path):
    model, _X = example("reject prefit")
    assert model.estimator is model.estimator_
    again = saved(model, path)
    assert again.estimator is again.estimator_
    assert sum(name.endswith("means") for name in read_header(path)["arrays"]) == 1


def test_a_fresh_process_loads_any_model(path):
    """Names of the package are imported on first use; a file may hold any of its estimators."""
    kernelpool.save(example("reject")[0], path)
    code = f"import kernelpool; print(type(kernelpool.load({str(path)!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "RejectClassifier"
