"""What cannot be saved is said when it is saved; what is no model is said when it is loaded, and why."""

import copy

import numpy as np
import pytest
from saved_models import fitted, kernels, rows, table
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import kernelpool
from kernelpool import (
    ParzenClassifier,
    RBFNetworkClassifier,
    RejectClassifier,
    SharedKernelClassifier,
)
from kernelpool.app.files import container
from kernelpool.errors import ModelFileError
from kernelpool.tables.encoder import TableEncoder

from .mutations import File


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


# -- saving ---------------------------------------------------------------------------------------------------------------


def cube(u):
    return np.abs(u).max(axis=1)


def test_functions_are_refused_with_what_to_do(path):
    X, y, _, _ = rows()
    parzen = ParzenClassifier(cube, radius=1.0).fit(X, y)
    with pytest.raises(
        ModelFileError,
        match=r"^kernel is a function, which cannot be saved: .*named choices.*or use pickle",
    ):
        kernelpool.save(parzen, path)
    model = kernels().fit(X, y)
    model.set_params(callback=cube)
    with pytest.raises(
        ModelFileError, match=r"^callback is a function, .*Set it to None .* with set_params"
    ):
        kernelpool.save(model, path)
    with pytest.raises(ModelFileError, match=r"^steps/1/1/callback is a function"):
        kernelpool.save(make_pipeline(StandardScaler().fit(X), model), path)
    model.set_params(callback=None)
    kernelpool.save(model, path)
    assert np.array_equal(kernelpool.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda X, y: kernels(), NotFittedError, "not fitted yet"),
        (lambda X, y: make_pipeline(StandardScaler(), kernels()), NotFittedError, "not fitted yet"),
        (
            lambda X, y: LogisticRegression().fit(X, y),
            ModelFileError,
            r"LogisticRegression cannot be saved; .*may hold Comp",
        ),
        (lambda X, y: "model", ModelFileError, "builtins.str cannot be saved"),
        (lambda X, y: SharedKernelClassifier, ModelFileError, "cannot be saved"),
        (
            lambda X, y: make_pipeline(MinMaxScaler(), kernels()).fit(X, y),
            ModelFileError,
            r"steps/0/1 is a sklearn.*MinMaxScaler, which cannot be saved; .* use skops \(it asks which types you trust .*"
            r"joblib \(loading runs whatever code the file holds\); kernelpool checks neither",
        ),
        (
            lambda X, y: RBFNetworkClassifier(
                hidden=GaussianMixture(3, random_state=0).fit(X), training="two_stage"
            ).fit(X, y),
            ModelFileError,
            "hidden is a sklearn.*GaussianMixture, which cannot be saved",
        ),
        (
            lambda X, y: RejectClassifier(
                kernels(), ambiguity=0.1, novelty=0.1, cv=StratifiedKFold(2)
            ).fit(X, y),
            ModelFileError,
            "cv is of type StratifiedKFold, which cannot be saved",
        ),
    ],
)
def test_what_is_no_fitted_model_of_ours_is_refused(model, error, message, path):
    X, y, _, _ = rows()
    with pytest.raises(error, match=message):
        kernelpool.save(model(X, y), path)
    assert not path.exists()


def test_callbacks_of_scikit_learn_are_to_be_taken_off(path):
    callback = pytest.importorskip(
        "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on"
    )
    X, y, _, _ = rows()
    model = kernels()
    model.set_callbacks(callback.ProgressBar())
    model.fit(X, y)
    with pytest.raises(
        ModelFileError,
        match=r"cannot be saved with callbacks; take them off with set_callbacks\(\)",
    ):
        kernelpool.save(model, path)
    model.set_callbacks()
    kernelpool.save(model, path)


def test_subclasses_are_refused_because_their_code_would_be_lost(path):
    class SharedKernelClassifier(kernelpool.SharedKernelClassifier):
        pass

    X, y, _, _ = rows()
    with pytest.raises(ModelFileError, match="SharedKernelClassifier cannot be saved"):
        kernelpool.save(SharedKernelClassifier.prbf(4, tol=1e-3, random_state=0).fit(X, y), path)


def changed(name, **attributes):
    model = copy.deepcopy(fitted(name)[0])
    for attribute, value in attributes.items():
        setattr(model, attribute, value)
    return model


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"note": 1},
            "SharedKernelClassifier has an attribute 'note' that model files do not know",
        ),
        (
            {"_metadata_request": 1},
            r"cannot be saved with requests of metadata routing \(set_fit_request",
        ),
        (
            {"random_state": 2**70},
            "random_state is 1180591620717411303424, which has more than 64 bits",
        ),
        (
            {"class_prior": np.array([0.5, 0.5], np.longdouble)},
            "class_prior is an array of type (float128|longdouble|float64)",
        ),
        ({"class_prior": np.array([object()])}, "class_prior holds an object of type object"),
        (
            {"class_prior": np.array(["2020-01-01"], "M8[D]")},
            "class_prior is an array of type datetime64",
        ),
        ({"unlabeled": b"none"}, "unlabeled is of type bytes"),
        (
            {"means_": np.full((4, 3), np.nan)},
            r"SharedKernelClassifier.means_ must be finite; got NaN or infinity",
        ),
        (
            {"mixing_": np.full((4, 2), 0.5)},
            r"mixing_ must be shares that sum to one; got sums \[2.0, 2.0\]",
        ),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(attributes, message, path):
    with pytest.raises(ModelFileError, match=message):
        kernelpool.save(changed("shared spherical", **attributes), path)
    assert not path.exists()


def test_memory_of_a_pipeline_is_a_path_and_stays_behind(path, tmp_path):
    X, y, _, _ = rows()
    model = make_pipeline(StandardScaler(), kernels(), memory=str(tmp_path / "cache")).fit(X, y)
    with pytest.raises(ModelFileError, match=r"Pipeline.memory must be one of \(None,\)"):
        kernelpool.save(model, path)


# -- loading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The file has 0 bytes: it is empty or cut off"),
        (b"abc", "The file has 3 bytes"),
        (
            b"a,b,c\n1,2,3\n4,5,6\n",
            "The file says that its index has .* bytes; it has 10 left.* not a model file",
        ),
        (b"\x05" + bytes(7) + b"hello", "The index is not JSON"),
        (b"\x02" + bytes(7) + b"[]", "The index must be a JSON object; got list"),
        (b"\x02" + bytes(7) + b"\xff\xfe", "The index is not text"),
        (b"\x02" + bytes(7) + b"{}", "not one of kernelpool's: its format is None"),
        (b"\x02" + bytes(7) + b"{}xx", "The arrays need 0 bytes of data; the file has 2"),
        (b"\x0f" + bytes(7) + b'{"a":1,"a":"b"}', "the name 'a' occurs twice in one object"),
        (b"\x09" + bytes(7) + b'{"a":NaN}', "NaN is not a number in JSON"),
        (b"\x0b" + bytes(7) + b'{"a":1e999}', "the number '1e999' is beyond float64"),
        (
            b"\x1f" + bytes(7) + b'{"__metadata__":{"format":123}}',
            "__metadata__ must be a JSON object of strings",
        ),
        ((6000).to_bytes(8, "little") + b"[" * 6000, "nested too deep; at most 96 levels"),
        (
            (200).to_bytes(8, "little") + b"[" * 100 + b"]" * 100,
            "nested too deep; at most 96 levels",
        ),
        (b"PK\x03\x04" + bytes(100), "not a model file"),
        (b"\x80\x04\x95" + bytes(100), "not a model file"),
    ],
)
def test_what_is_no_model_file_is_refused(data, message, path):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


def edited(name, path, change):
    """The file of a model with its header and arrays changed, and sealed again."""
    model, _ = fitted(name)
    kernelpool.save(model, path)
    file = File(path.read_bytes(), container.read_contents(path, 1 << 30))
    header, arrays = (
        copy.deepcopy(file.header),
        {key: array.copy() for key, array in file.arrays.items()},
    )
    change(header, header["model"], arrays)
    path.write_bytes(file.sealed(header, arrays))


def put(array, value, at=0):
    array.reshape(-1)[at] = value


EDITS = {
    # of the header
    "an unknown class": (
        lambda h, m, a: m.update({"class": "subprocess.Popen"}),
        "holds a 'subprocess.Popen'; a model",
    ),
    "no class": (lambda h, m, a: m.pop("class"), "must have class, parameters and fitted"),
    "another class": (
        lambda h, m, a: m.update({"class": "ParzenClassifier"}),
        "has no parameter 'acceleration'",
    ),
    "not fitted": (lambda h, m, a: (m.update(fitted=None), a.clear()), "is not fitted"),
    "a parameter out of range": (
        lambda h, m, a: m["parameters"].update(max_iter=-3),
        "out of range: .*max_iter.*Got -3",
    ),
    "too many threads": (
        lambda h, m, a: m["parameters"].update(n_jobs=10**9),
        "n_jobs must be at least -256 and",
    ),
    "a model as a parameter": (
        lambda h, m, a: m["parameters"].update(
            floor={"model": {"class": "MultiEdit", "parameters": {}, "fitted": None}}
        ),
        "has no parameter 'floor'",
    ),
    "a model as another parameter": (
        lambda h, m, a: m["parameters"].update(
            tol={"model": {"class": "MultiEdit", "parameters": {}, "fitted": None}}
        ),
        "tol must be plain data; got MultiEdit",
    ),
    "a callback": (
        lambda h, m, a: m["parameters"].update(callback="print"),
        r"callback must be one of \(None,\); got 'print'",
    ),
    "a mark of unlabeled rows that is no label": (
        lambda h, m, a: m["parameters"].update(unlabeled={"dict": [["a", 1]]}),
        "unlabeled must be a label; got {'a': 1}",
    ),
    "a class that 0.1 stored": (
        lambda h, m, a: m.update({"class": "ColumnTransformer"}),
        "a ColumnTransformer of scikit-learn, which only version 0.1 of kernelpool stored. Fit the model again",
    ),
    "an attribute too many": (
        lambda h, m, a: m["fitted"].update(fit=1),
        "has an attribute 'fit' that is not known",
    ),
    "an attribute too few": (
        lambda h, m, a: m["fitted"].pop("mixing_"),
        "lacks its attribute mixing_",
    ),
    "an array too many": (
        lambda h, m, a: a.update(more=np.ones(2)),
        "an array 'more' that no part of the model asks for",
    ),
    "an array twice": (
        lambda h, m, a: m["fitted"].update(covariances_={"array": "means_"}),
        "asks for an array 'means_', which is not in the file or already taken",
    ),
    "an array too few": (
        lambda h, m, a: a.pop("means_"),
        "asks for an array 'means_', which is not in the file",
    ),
    "a kind of value that is not known": (
        lambda h, m, a: m["fitted"].update(n_iter_={"eval": "1"}),
        "unknown kind 'eval'",
    ),
    "other classes in the header": (
        lambda h, m, a: h.update(classes=[0, 7]),
        r"says classes is \[0, 7\]; the model says",
    ),
    "another number of features": (
        lambda h, m, a: h.update(n_features=2),
        "says n_features is 2; the model says 3",
    ),
    "a header with more": (lambda h, m, a: h.update(extra=1), "'extra' is missing or not known"),
    "a header with less": (lambda h, m, a: h.pop("summary"), "'summary' is missing or not known"),
    "a summary that is a list": (
        lambda h, m, a: h.update(summary=[1]),
        "summary must be a JSON object, or null",
    ),
    # of the numbers
    "NaN": (lambda h, m, a: put(a["means_"], np.nan), "means_ must be finite"),
    "infinity": (lambda h, m, a: put(a["covariances_"], np.inf), "covariances_ must be finite"),
    "huge": (
        lambda h, m, a: put(a["means_"], 1e200),
        r"means_ must be .*at most 1e\+150; got values from",
    ),
    "a negative variance": (
        lambda h, m, a: put(a["covariances_"], -1.0),
        "must have positive variances; got -1.0",
    ),
    "not symmetric": (
        lambda h, m, a: put(a["covariances_"], 0.5, 1),
        "covariances_ must be symmetric",
    ),
    "not positive definite": (
        lambda h, m, a: a["covariances_"].__setitem__(0, np.eye(3) + 5 * (1 - np.eye(3))),
        "covariances_ must be positive definite",
    ),
    "shares that do not sum to one": (
        lambda h, m, a: put(a["mixing_"], 0.9),
        "mixing_ must be shares that sum to one",
    ),
    "a negative share": (lambda h, m, a: put(a["mixing_"], -0.1), "mixing_ must be at least 0.0"),
    "a prior that does not sum to one": (
        lambda h, m, a: put(a["class_prior_"], 0.9),
        "class_prior_ must be shares that sum",
    ),
    "the same class twice": (
        lambda h, m, a: a["classes_"].__setitem__(1, a["classes_"][0]),
        "classes_ must be distinct and sorted labels",
    ),
    "an owner that is no class": (
        lambda h, m, a: put(a["owners_"], ord("q")),
        "owners_ must hold labels of classes_ only",
    ),
    "no code point": (
        lambda h, m, a: put(a["classes_"], 0x110000),
        "Text holds 1114112, which is no code point",
    ),
    "float32 for float64": (
        lambda h, m, a: a.update(means_=a["means_"].astype("f4")),
        "means_ must be an array of float64",
    ),
    "another shape": (
        lambda h, m, a: a.update(means_=a["means_"][:, :2].copy()),
        r"covariances_ must be of shape \(M, d, d\) = ",
    ),
    "other kernels": (
        lambda h, m, a: a.update(mixing_=a["mixing_"][:3].copy()),
        r"must be of shape \(M, K\) = \(4, 3\)",
    ),
    "another family": (
        lambda h, m, a: m["fitted"].update(covariance_type_="diag"),
        r"covariances_ must be of shape \(M, d\) = \(4, 3\)",
    ),
}


def test_a_model_that_cannot_answer_is_refused(path, monkeypatch):
    edited("shared full", path, lambda h, m, a: None)

    def fail(*_):
        raise ArithmeticError("no numbers left")

    monkeypatch.setattr(SharedKernelClassifier, "_density", fail)
    with pytest.raises(
        ModelFileError,
        match=r"does not fit together; it cannot answer: ArithmeticError, no numbers left",
    ):
        kernelpool.load(path)


def test_a_kernel_hardly_wider_than_a_point_answers(path):
    edited(
        "shared full", path, lambda h, m, a: a["covariances_"].__setitem__(0, 1e-320 * np.eye(3))
    )
    model = kernelpool.load(path)
    assert np.isfinite(model.predict_proba(model.means_ + np.array([0.0, 0, 1e-3]))).all()


@pytest.mark.parametrize("what", EDITS)
def test_numbers_that_are_no_model_are_refused(what, path):
    change, message = EDITS[what]
    edited("shared full", path, change)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


OTHERS = {
    "parzen order": (
        "parzen",
        lambda h, m, a: a.update(kernel_classes_=a["kernel_classes_"][::-1].copy()),
        "kernels_ must be sorted by class",
    ),
    "parzen votes": (
        "parzen",
        lambda h, m, a: put(a["kernel_weights_"], 5.0),
        "_votes is not what the rest",
    ),
    "parzen radius": (
        "parzen",
        lambda h, m, a: m["fitted"].update(radius_=0.0),
        "radius_ must be above 0.0 ",
    ),
    "parzen volume": (
        "parzen",
        lambda h, m, a: m["fitted"].update(_log_volume=3.0),
        "_log_volume is not what the rest",
    ),
    "parzen unit": ("parzen", lambda h, m, a: put(a["_unit"], 3.0), "one unit for all features"),
    "parzen tree": (
        "parzen gaussian",
        lambda h, m, a: m["parameters"].update(algorithm="tree"),
        "algorithm='tree' needs kernel='hypersphere'",
    ),
    "average of none": (
        "sharing average",
        lambda h, m, a: (m["fitted"].update(estimators_=[]), a.clear()),
        ".",
    ),
    "average weights": (
        "sharing average",
        lambda h, m, a: a.update(weights_=np.ones(1)),
        r"must be of shape \(L\) = ",
    ),
    "no deciding networks": (
        "shared, deciding",
        lambda h, m, a: (
            m["fitted"].update(deciding_networks_=[]),
            [a.pop(name) for name in list(a) if name.startswith("deciding_networks_")],
        ),
        "deciding_networks_ must hold one network at least",
    ),
    "deciding networks of other classes": (
        "shared, deciding",
        lambda h, m, a: put(a["deciding_networks_/0/classes_"], -1),
        "owners_ must hold labels|must have the covariance_type and the classes of the whole",
    ),
    "deciding networks that have their own": (
        "shared, deciding",
        lambda h, m, a: m["fitted"]["deciding_networks_"][0]["model"]["fitted"].update(
            deciding_networks_=[]
        ),
        "deciding_networks_ must",
    ),
    "deciding by another model": (
        "shared, deciding",
        lambda h, m, a: m["fitted"]["deciding_networks_"].append(
            {"model": {"class": "MultiEdit", "parameters": {}, "fitted": None}}
        ),
        "must be SharedKernelClassifier; got MultiEdit",
    ),
    "a pool in a pool": (
        "pool",
        lambda h, m, a: m["fitted"]["networks_"].__setitem__(
            0, {"model": {"class": "PooledClassifier", "parameters": {}, "fitted": None}}
        ),
        "networks_ must be classifiers with probabilities, and no pools",
    ),
    "a network of a pool that is no classifier": (
        "pool",
        lambda h, m, a: m["fitted"]["networks_"].__setitem__(
            0, {"model": {"class": "StandardScaler", "parameters": {}, "fitted": None}}
        ),
        "networks_ must be classifiers with probabilities",
    ),
    "a member without networks": (
        "pool",
        lambda h, m, a: a["network_members_"].fill(0),
        "must name a network for every member",
    ),
    "a member that is not there": (
        "pool",
        lambda h, m, a: put(a["network_members_"], 9),
        "network_members_ must be below 2; got 9",
    ),
    "a view that is not there": (
        "pool",
        lambda h, m, a: put(a["network_views_"], 0),
        "network_views_ must be below 0; got 0",
    ),
    "a negative view": (
        "pool",
        lambda h, m, a: put(a["network_views_"], -2),
        "network_views_ must be at least -1",
    ),
    "a negative weight": (
        "pool",
        lambda h, m, a: put(a["weights_"], -0.5),
        "weights_ must be at least 0",
    ),
    "weights that do not sum to one": (
        "pool, linear",
        lambda h, m, a: put(a["weights_"], 3.0),
        "weights_ is not what the rest",
    ),
    "densities of networks without": (
        "pool",
        lambda h, m, a: a["density_weights_"].fill(0.25),
        "density_weights_ must be zero for networks without densities",
    ),
    "trials that end early": (
        "pool",
        lambda h, m, a: a.update(
            {
                k: v[:1].copy()
                for k, v in a.items()
                if k.startswith("trials_") and v.dtype == np.float64
            }
        ),
        "trials_ must hold one entry a trial",
    ),
    "rbf outputs": (
        "rbf densities",
        lambda h, m, a: a.update(readout_=a["readout_"][:, :2].copy()),
        "one output a class",
    ),
    "rbf readout": (
        "rbf",
        lambda h, m, a: a.update(readout_=a["readout_"][:-1].copy()),
        "readout_ must have 6 rows; got 5",
    ),
    "rbf of a flat y": (
        "rbf regressor of two",
        lambda h, m, a: m["fitted"].update(_flat=True),
        "readout_ must have one output for a flat y; got 2",
    ),
    "parzen prior": (
        "parzen",
        lambda h, m, a: a["class_prior_"].__setitem__(slice(None), [0.1, 0.9]),
        "class_prior_ is not what the rest",
    ),
    "neurons": (
        "neurons",
        lambda h, m, a: m["parameters"].update(local=True),
        "where local is set, and only there",
    ),
    "neurons scale": ("neurons", lambda h, m, a: put(a["scale_"], 0.0), "scale_ must be above 0.0"),
    "editing": ("multi-edit", lambda h, m, a: put(a["history_"], 0), "history_ must fall"),
    "refusal label": (
        "reject",
        lambda h, m, a: m["fitted"].update(novel_label_="low"),
        "ambiguous_label_ and novel_label_ must be of the kind",
    ),
    "refusals of other columns": (
        "encoded, refusing",
        lambda h, m, a: (
            m["fitted"]["feature_names_in_"]["objects"].__setitem__(0, "height")
            or h["feature_names"].__setitem__(0, "height")
        ),
        "feature_names_in_ must be those of estimator_",
    ),
    "refusal threshold": (
        "reject",
        lambda h, m, a: m["fitted"].update(ambiguity_threshold_=7.5),
        "at most 1.0; got 7.5",
    ),
    "words that are no columns": (
        "encoder of tables",
        lambda h, m, a: m["parameters"].update(words=["color", "shape"]),
        "words must be names of columns",
    ),
    "categories of a column that is not there": (
        "encoder of tables",
        lambda h, m, a: m["fitted"]["categories_"].pop(),
        "words must be names of columns, each with its categories",
    ),
    "the same category twice": (
        "encoder of tables",
        lambda h, m, a: m["fitted"]["categories_"][0]["objects"].__setitem__(0, "red"),
        "categories_ must be distinct words",
    ),
    "an encoder before another model": (
        "encoded",
        lambda h, m, a: m["parameters"]["steps"][0]["tuple"][1]["model"]["fitted"]["categories_"][
            0
        ].update(objects=["red"], shape=[1]),
        "a step of a pipeline makes 6 features; the next expects 8",
    ),
    "a function that is a type": (
        "parzen",
        lambda h, m, a: m["parameters"].update(kernel={"type": "float64"}),
        "unknown kind 'type'",
    ),
    "a kernel that is none": (
        "parzen",
        lambda h, m, a: m["parameters"].update(kernel="numpy.ones"),
        "kernel must be one of .*got 'numpy.ones'",
    ),
    "a step that cannot transform": (
        "pipeline of votes",
        lambda h, m, a: m["parameters"]["steps"].reverse(),
        "a ParzenClassifier cannot stand before other steps of a pipeline",
    ),
    "a pipeline whose last step is not fitted": (
        "pipeline",
        lambda h, m, a: (
            m["parameters"]["steps"][1]["tuple"][1]["model"].update(fitted=None),
            [a.pop(name) for name in list(a) if name.startswith("steps/1/")],
        ),
        "is not fitted",
    ),
    "scaling by zero": (
        "pipeline",
        lambda h, m, a: put(a["steps/0/1/scale_"], 0.0),
        "scale_ must be at least 1e-150",
    ),
    "scaling of other features": (
        "pipeline",
        lambda h, m, a: a.update({"steps/0/1/mean_": np.zeros(2)}),
        r"mean_ must be of shape \(d\) = \(3,\); got shape \(2,\)",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_estimators_are_checked_as_well(what, path):
    name, change, message = OTHERS[what]
    edited(name, path, change)
    with pytest.raises(ModelFileError, match=message):
        kernelpool.load(path)


def test_damage_is_told_from_malice_by_the_digest(path):
    kernelpool.save(fitted("shared full")[0], path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ModelFileError, match="SHA-256 differs"):
        kernelpool.load(path)


def test_messages_repeat_little_of_a_file(path):
    edited("shared full", path, lambda h, m, a: m.update({"class": "\x1b[31m<script>" * 10_000}))
    with pytest.raises(ModelFileError) as caught:
        kernelpool.load(path)
    assert len(str(caught.value)) < 1000
    assert "\x1b" not in str(caught.value)


def test_nothing_of_a_file_is_run(path):
    """No pickle, no eval, no import by name: the sources hold none of them."""
    import ast
    from pathlib import Path

    import kernelpool.app.files

    forbidden = {
        "eval",
        "exec",
        "compile",
        "__import__",
        "import_module",
        "pickle",
        "marshal",
        "dill",
        "joblib",
    }
    sources = list(Path(kernelpool.app.files.__file__).parent.glob("*.py"))
    assert len(sources) > 5
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            kwargs = [getattr(node, word, None) for word in ("id", "attr", "module", "name")]
            assert not forbidden & {word for word in kwargs if isinstance(word, str)}, source


def test_html_and_formulas_in_names_are_just_names(path):
    frame, y = table()
    frame = frame.rename(
        columns={"length": "=cmd|' /C calc'!A0", "size": "<img src=x onerror=alert(1)>"}
    )
    model = Pipeline(
        [
            ("columns", TableEncoder(list(frame.columns[2:]))),
            ("classifier", kernels(covariance_type="diag")),
        ]
    )
    model.fit(frame, y)
    kernelpool.save(model, path)
    assert kernelpool.app.files.read_header(path)["feature_names"] == list(frame.columns)
    assert np.array_equal(kernelpool.load(path).predict(frame), model.predict(frame))
