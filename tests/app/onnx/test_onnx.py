"""Exported models: onnxruntime answers as the estimators do, on rows near and far, and in a process
without this library.
"""

import copy
import json
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from zoo import EXAMPLES, example, kernels, rows

import kernelpool
from kernelpool import (
    ConformalClassifier,
    ParzenClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
)
from kernelpool.errors import KernelpoolError
from kernelpool.records import replaced

EXPORTED = [
    name
    for name in EXAMPLES
    if not name.startswith(("conformal", "multi-edit", "table"))  # sets; a resampler; see below
]


def run(model, x):
    """The answers to an array, or to the columns of a table."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    ready = onnxruntime.InferenceSession(model.SerializeToString(), options)
    cells = {}
    for entry in ready.get_inputs():
        if entry.name == "X":
            cells["X"] = np.asarray(x)
            continue
        column = x[[entry.name.rstrip("_")]]
        if entry.type == "tensor(string)":
            cells[entry.name] = column.fillna("").astype(str).to_numpy(object)
            continue
        if column.dtypes.iloc[0].kind == "M":
            column = (column - pd.Timestamp(0)) / pd.Timedelta("1D")
        cells[entry.name] = column.to_numpy(np.float32)
    names = [output.name for output in ready.get_outputs()]
    return dict(zip(names, ready.run(None, cells), strict=True))


def expected(model, x):
    """What the estimator says in float64 of rows that are float32, or of a table."""
    if isinstance(x, pd.DataFrame):
        x = x.astype({name: np.float64 for name in x if x[name].dtype == np.float32})
    else:
        x = np.asarray(x, np.float64)
    if isinstance(model, kernelpool.EMLogRegressor):
        return dict(zip(("prediction", "std"), model.predict(x, return_std=True), strict=True))
    found = {"label": model.predict(x), "probabilities": model.predict_proba(x)}
    inner = model
    if isinstance(model, RejectClassifier):
        found["decision"] = model.decide(x)
        inner = model.estimator_
    if isinstance(inner, Pipeline):
        inner, x = inner[-1], inner[:-1].transform(x)
    if hasattr(inner, "log_density"):
        found |= {"log_density": inner.log_density(x), "score_samples": inner.score_samples(x)}
    return found


def assert_agree(found, wanted, tolerance):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        if name in ("label", "decision"):
            least, most = np.sort(wanted["probabilities"], axis=1)[:, -2:].T
            apart = most - least > 1e-9  # of classes that are equally probable either may be named
            assert found[name][apart].tolist() == value[apart].tolist()
        else:
            assert found[name].dtype == np.float32, name
            # minus infinity in both where no kernel covers a row
            assert_allclose(found[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


def near_and_far(X):
    rng = np.random.default_rng(0)
    x = np.concatenate([X[:60], 3 * rng.normal(size=(60, X.shape[1])), 1e3 * X[:20]])
    return x.astype(np.float32)


@pytest.mark.parametrize("name", EXPORTED)
def test_answers_agree_to_1e_5(name):
    model, X = example(name)
    x = near_and_far(X)
    exported = kernelpool.to_onnx(model)
    onnx.checker.check_model(exported, full_check=True)
    assert_agree(run(exported, x), expected(model, x), 1e-5)
    assert all(len(answer) == 0 for answer in run(exported, x[:0]).values())
    x[1, 0] = np.nan
    about = {entry.key: entry.value for entry in exported.metadata_props}
    if about["missing_cells"] == "integrated out":
        assert_agree(run(exported, x), expected(model, x), 1e-5)
    else:
        with pytest.raises(Exception, match="A cell is missing"):
            run(exported, x)


@pytest.mark.parametrize("name", ["shared full", "parzen", "rbf", "neurons", "pool"])
def test_float32_inside_agrees_to_1e_5_near_the_data(name):
    """Far from it, float32 has no digits left for the difference of two log-densities of minus a
    million.
    """
    model, X = example(name)
    x = X[:60].astype(np.float32)
    exported = kernelpool.to_onnx(model, precision="float32")
    types = [constant.data_type for constant in exported.graph.initializer]
    assert onnx.TensorProto.DOUBLE not in types
    assert_agree(run(exported, x), expected(model, x), 1e-5)


@pytest.mark.parametrize("precision", ["mixed", "float32"])
def test_a_pool_in_several_views_agrees(precision, monkeypatch):
    """Scaled, warped and in a learned metric: skewed features, one of them constant."""
    members = import_module("kernelpool.pool.members")
    X, y, _, _ = rows()
    X = np.column_stack([np.exp(X[:, 0]), 100 * X[:, 1] + 5, -np.exp(X[:, 2]), 0 * y + 7])
    rbf = RBFNetworkClassifier(20, standardize=False, metric="learned")
    candidates = [
        members.Candidate("plain", kernels(), "codes"),
        members.Candidate("warped", kernels(training="conditional"), "warped"),
        members.Candidate("metric", rbf, "warped"),
        members.Candidate("straight metric", rbf, "scaled"),
    ]
    monkeypatch.setattr("kernelpool.pool.fit.candidates_of", lambda *_: candidates)
    model = kernelpool.PooledClassifier(n_folds=2, random_state=0).fit(X, y)
    assert set(model.views_) == {"scaled", "warped"}
    exported = kernelpool.to_onnx(model, precision=precision)
    x, tolerance = (X[:60].astype(np.float32), 1e-4)
    if precision == "mixed":
        x, tolerance = (near_and_far(X), 1e-5)
    assert_agree(run(exported, x), expected(model, x), tolerance)


def test_new_priors_long_odds_and_neurons_that_all_say_no():
    parzen, X = example("parzen conditional")
    neurons, _ = example("neurons with margins")
    hot = copy.copy(parzen)
    silent = copy.copy(neurons)
    hot._fitted = replaced(parzen._fitted, "temperature", 9.0)
    params = neurons._fitted.network.params
    params = replace(params, weight=params.weight - [0, 0, 0, 1e3])
    silent._fitted = replaced(neurons._fitted, "params", params)
    for model in (parzen.with_class_prior([0.8, 0.1, 0.1]), hot, silent):
        x = (100 * X).astype(np.float32) if model is hot else X.astype(np.float32)
        assert_agree(run(kernelpool.to_onnx(model), x), expected(model, x), 1e-5)


@pytest.mark.parametrize("precision", ["mixed", "float32"])
def test_rows_without_density_are_novel_under_any_threshold(precision):
    """Minus infinity is not above a threshold that the type of the graph cannot hold."""
    parzen, X = example("parzen")
    model = RejectClassifier(parzen, ambiguity=None, novelty=-1e300, novelty_rule="threshold").fit()
    x = near_and_far(X)
    found = run(kernelpool.to_onnx(model, precision=precision), x)
    assert (found["decision"] == np.where(parzen.in_support(x.astype(float)), 0, 2)).all()
    assert set(found["decision"]) == {0, 2}


def test_the_best_of_a_search_is_exported():
    X, y, _, _ = rows()
    pipeline = make_pipeline(StandardScaler(), kernels())
    search = GridSearchCV(pipeline, {"sharedkernelclassifier__n_kernels": [2, 4]}, cv=2).fit(X, y)
    x = near_and_far(X)
    found = run(kernelpool.to_onnx(search), x)
    assert_agree(found, expected(search.best_estimator_, x), 1e-5)


def test_a_runtime_that_optimizes_does_not_round_to_float32():
    """onnxruntime folds a factor into the product that follows, as a float32: no such factor may
    stand there.
    """
    model, X = example("parzen epanechnikov")
    found = run(kernelpool.to_onnx(model, precision="float64"), X)["log_density"]
    assert_allclose(found, model.log_density(X), rtol=1e-10)


def test_a_row_nearer_to_a_kernel_than_any_before_stays_finite():
    """Columns are held at exp(300), as in the estimator."""
    model = copy.deepcopy(example("em-log densities")[0])
    lower = model.activation_log_scale_ - 400.0
    model._fitted = replaced(model._fitted, "activation_log_scale", lower)
    x = rows()[0][:60].astype(np.float32)
    assert (np.log(model.activations(x.astype(float))) > 299).any()
    assert_agree(run(kernelpool.to_onnx(model), x), expected(model, x), 1e-5)


def test_rows_at_an_offset_of_a_million():
    """Rows are float32, which near a million has steps of 1/16; what is computed from them loses
    nothing more.
    """
    X, y, _, _ = rows()
    shifted = (X * [1, 10, 100] + 1e6).astype(np.float32)
    families = [kernels(covariance_type=name) for name in FAMILIES]
    for model in (*families, make_pipeline(StandardScaler(), kernels())):
        model.fit(shifted.astype(np.float64), y)
        with pytest.warns(UserWarning, match="float32 inputs lose digits .* precision='float64'"):
            graphs = [kernelpool.to_onnx(model, precision=p) for p in ("mixed", "float32")]
        assert_agree(run(graphs[0], shifted), expected(model, shifted), 1e-5)
        if not isinstance(model, Pipeline):  # skl2onnx's scaler loses more
            narrow = run(graphs[1], shifted)["probabilities"]
            assert_allclose(narrow, expected(model, shifted)["probabilities"], atol=1e-4)


FAMILIES = ("spherical", "diag", "full", "tied")


WORDS = {
    "reduced": ReducedParzenClassifier(0.3, random_state=0),
    "reduced epanechnikov": ReducedParzenClassifier(4, kernel="epanechnikov", random_state=0),
    "full": ParzenClassifier("hypersphere", "loo", random_state=0),
}


@pytest.mark.parametrize("precision", ["mixed", "float32"])
@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("seed", range(2))
def test_words_alone_outside_all_kernels(seed, name, precision):
    """Rows are equally far from kernels of several classes, by the dozen."""
    rng = np.random.default_rng(seed)
    color = rng.choice(["red", "green", "blue", "grey"], 150)
    frame = pd.DataFrame({"color": color, "size": rng.choice(list("xyz"), 150)})
    model = clone(WORDS[name]).fit(frame, (color == "red") + rng.normal(size=150) * 0.5 > 0.5)
    x = pd.concat([frame, frame.assign(color="new"), frame.assign(color="new", size="new")])
    assert 0 < model.in_support(x).mean() < 0.8
    assert_agree(run(kernelpool.to_onnx(model, precision=precision), x), expected(model, x), 1e-5)


# -- labels, pipelines, metadata -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([3, -7]), np.int64),
        (np.array([3, 200], np.uint8), np.int64),
        (np.array([False, True]), np.bool_),
        (np.array([0.0, 2.0]), np.float64),
        (np.array(["\N{SNOWMAN}", "b"]), object),
        (np.array(["2024-01-31", "2024-02-01"], "datetime64[D]"), object),
    ],
)
def test_labels_keep_their_type(labels, kind):
    X, y, _, _ = rows()
    model = kernels().fit(X, labels[y])
    found = run(kernelpool.to_onnx(model), X.astype(np.float32))["label"]
    assert found.dtype == kind
    wanted = model.predict(X.astype(np.float32).astype(float))
    assert found.tolist() == (wanted.astype(str) if wanted.dtype.kind == "M" else wanted).tolist()


def test_the_model_says_who_made_it_and_what_its_numbers_mean(tmp_path):
    X, _, text, _ = rows()
    model = kernels().fit(pd.DataFrame(X, columns=["a", "b", "c"]), text)
    exported = kernelpool.to_onnx(model, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == exported
    assert exported.producer_name == "kernelpool"
    assert exported.producer_version == kernelpool.__version__
    about = {entry.key: entry.value for entry in exported.metadata_props}
    assert json.loads(about["classes"]) == model.classes_.tolist()
    assert json.loads(about["feature_names"]) == ["a", "b", "c"]
    assert about["estimator"] == "SharedKernelClassifier"
    refusing, _ = example("reject")
    about = {entry.key: entry.value for entry in kernelpool.to_onnx(refusing).metadata_props}
    assert json.loads(about["refusals"]) == ["ambiguous", "novel"]
    assert {node.domain for node in exported.graph.node} == {""}  # standard operators alone


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            ConformalClassifier(kernels()),
            r"export one of its classifiers, such as model\.estimators_\[0\]",
        ),
        (
            kernelpool.PooledClassifier([LogisticRegression()], n_folds=2),
            "LogisticRegression cannot be exported to ONNX",
        ),
        (
            RejectClassifier(LogisticRegression(), ambiguity=0.2),
            "LogisticRegression cannot be exported to ONNX",
        ),
        (kernelpool.MultiEdit(), "MultiEdit cannot be exported to ONNX"),
        (
            make_pipeline(FunctionTransformer(np.abs), kernels()),
            "A step before the classifier cannot be exported to ONNX: .* transform the rows ",
        ),
        (
            RejectClassifier(RejectClassifier(kernels(), ambiguity=0.2), ambiguity=0.1),
            "A RejectClassifier in another one cannot be exported to ONNX",
        ),
    ],
)
def test_what_cannot_be_exported_is_said(model, message):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        kernelpool.to_onnx(model)
    X, y, _, _ = rows()
    with pytest.raises(KernelpoolError, match=message):
        kernelpool.to_onnx(model.fit(X, y))


# -- on the disk -----------------------------------------------------------------------------------


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(KernelpoolError, match=r"to_onnx needs skl2onnx: pip install '\.\[onnx\]'"):
        kernelpool.to_onnx(example("parzen")[0])


def test_every_density_classifier_and_network_is_exported():
    kinds = {type(example(name)[0]).__name__ for name in EXPORTED}
    public = {name for name in kernelpool.__all__ if name.endswith(("Classifier", "Regressor"))}
    assert public - {"ConformalClassifier"} <= kinds  # whose answers are sets
