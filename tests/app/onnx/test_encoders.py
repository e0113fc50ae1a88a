"""Tables of words and numbers: every step before a network does in ONNX what it does in scikit-learn."""

import itertools
import json
import subprocess
import sys
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from saved_models import encoded as by_table_encoder
from saved_models import kernels, rows
from saved_models import table as table_without_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import kernelpool
from kernelpool import RejectClassifier
from kernelpool.app.onnx import _converted, _inputs, _one_by_one, free_names, register_converters
from kernelpool.errors import KernelpoolError


def table():
    """Numbers with gaps and text, as a user's file has them."""
    frame, y = table_without_gaps()
    frame["<b>width</b>"] = frame["<b>width</b>"].where(
        np.random.default_rng(3).uniform(size=len(frame)) > 0.1, np.nan
    )
    return frame, y


def encoded(last, hot=None):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numbers, ["length", "<b>width</b>"]),
            ("hot", hot or OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["color"]),
            ("ordered", OrdinalEncoder(categories=[["s", "m", "l"]]), ["size"]),
        ],
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", columns), ("classifier", last)])


UNFITTED = {
    "encoded": encoded(kernels(covariance_type="diag")),
    "encoded, refusing": RejectClassifier(encoded(kernels(covariance_type="diag")), ambiguity=0.2),
    "encoded by ours": by_table_encoder(kernels(covariance_type="diag")),
    "encoded by ours, refusing": RejectClassifier(
        by_table_encoder(kernels(covariance_type="diag")), ambiguity=0.2
    ),
    "min and max": make_pipeline(
        ColumnTransformer(
            [("n", make_pipeline(SimpleImputer(), MinMaxScaler()), ["length", "<b>width</b>"])]
        ),
        kernels(),
    ),
    "gaps told, others passed through": make_pipeline(
        ColumnTransformer(
            [
                ("gaps", SimpleImputer(add_indicator=True), ["<b>width</b>"]),
                ("text", "drop", ["color", "size"]),
            ],
            remainder="passthrough",
        ),
        kernels(),
    ),
}


@lru_cache
def fitted(name):
    frame, y = table_without_gaps() if "ours" in name else table()
    return clone(UNFITTED[name]).fit(frame, y), frame


KINDS = {"tensor(string)": object, "tensor(float)": np.float32, "tensor(double)": np.float64}


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def fed(ready, frame, names=None):
    """A table as onnxruntime takes it: a tensor (n, 1) for each column, with an empty word for a gap."""
    given = {}
    for entry in ready.get_inputs():
        cells = frame[(names or {}).get(entry.name, entry.name)].to_numpy(object)
        if entry.type == "tensor(string)":
            cells = np.array(["" if pd.isna(cell) else cell for cell in cells], object)
        given[entry.name] = cells.astype(KINDS[entry.type])[:, None]
    return given


def run(model, frame, names=None):
    ready = session(model)
    return dict(
        zip(
            [output.name for output in ready.get_outputs()],
            ready.run(None, fed(ready, frame, names)),
            strict=True,
        )
    )


def rounded(frame):
    """The numbers of a table as float32 holds them."""
    return frame.assign(
        **{
            c: frame[c].astype(np.float32).astype(float)
            for c in frame
            if frame[c].dtype.kind == "f"
        }
    )


def expected(model, frame):
    frame = rounded(frame)
    inner = model.estimator_ if isinstance(model, RejectClassifier) else model
    x = inner[:-1].transform(frame)
    found = {
        "label": model.predict(frame),
        "probabilities": model.predict_proba(frame),
        "log_density": inner[-1].log_density(x),
        "score_samples": inner[-1].score_samples(x),
    }
    return found | (
        {"decision": model.decide(frame)} if isinstance(model, RejectClassifier) else {}
    )


def assert_agree(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if name in ("label", "decision"):
            assert found[name].tolist() == value.tolist()
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("precision", ["mixed", "float32", "float64"])
@pytest.mark.parametrize("name", UNFITTED)
def test_answers_agree_to_1e_5(name, precision):
    model, frame = fitted(name)
    exported = kernelpool.to_onnx(model, precision=precision)
    kinds = {
        onnx.TensorProto.STRING,
        onnx.TensorProto.DOUBLE if precision == "float64" else onnx.TensorProto.FLOAT,
    }
    assert {entry.type.tensor_type.elem_type for entry in exported.graph.input} <= kinds
    wanted = expected(model, frame)
    assert_agree(run(exported, rounded(frame)), wanted)


def test_inputs_are_the_columns_that_are_used():
    model, _ = fitted("encoded")
    inputs = [
        (entry.name, entry.type, entry.shape)
        for entry in session(kernelpool.to_onnx(model)).get_inputs()
    ]
    number, word = ("tensor(float)", ["n", 1]), ("tensor(string)", ["n", 1])
    assert inputs == [
        ("length", *number),
        ("<b>width</b>", *number),
        ("color", *word),
        ("size", *word),
    ]
    model, _ = fitted("gaps told, others passed through")  # color and size are dropped
    assert [entry.name for entry in session(kernelpool.to_onnx(model)).get_inputs()] == [
        "length",
        "<b>width</b>",
    ]


def test_any_number_of_rows():
    model, frame = fitted("encoded")
    ready = session(kernelpool.to_onnx(model))
    whole = ready.run(["probabilities"], fed(ready, frame))[0]
    for n in (0, 1, 2, 77):
        part = ready.run(["probabilities"], fed(ready, frame[:n]))[0]
        assert part.shape == (n, 2)
        np.testing.assert_allclose(part, whole[:n], atol=1e-6)


def test_onnxruntime_alone_is_enough(tmp_path):
    """In a process that never imports this library."""
    model, frame = fitted("encoded")
    kernelpool.to_onnx(model, tmp_path / "model.onnx")
    cells = fed(session(onnx.load(tmp_path / "model.onnx")), frame)
    given = {
        f"table/{name}": x.astype(str) if x.dtype == object else x for name, x in cells.items()
    }
    np.savez(tmp_path / "rows.npz", **given)
    script = Path(__file__).parents[2] / "own_process" / "onnx_alone.py"
    files = [str(tmp_path / name) for name in ("model.onnx", "rows.npz", "answers.npz")]
    subprocess.run([sys.executable, str(script), *files], check=True, cwd=tmp_path)
    found = np.load(tmp_path / "answers.npz")
    wanted = expected(model, frame)
    assert_agree(
        {key.removeprefix("table/"): found[key] for key in found if key.startswith("table/")},
        wanted,
    )


# -- each step against scikit-learn's ---------------------------------------------------------------------------------------


def features(step, frame, given, dtype=np.float64):
    """What the exported step makes of rows, without a network behind it."""
    register_converters()
    steps = [part for part in _one_by_one([step]) if part is not None and not isinstance(part, str)]
    columns, words = _inputs(steps, None)
    model = _converted(step, None, columns, words, dtype)
    ready, used = session(model), {name for node in model.graph.node for name in node.input}
    if columns is None:
        return ready.run(None, {"X": given.to_numpy(dtype)})[0]
    names = dict(
        zip([entry.name for entry in ready.get_inputs()], columns, strict=True)
    )  # skl2onnx changes some
    given = given.assign(**{names[name]: 0.0 for name in names if name not in used})
    return ready.run(None, fed(ready, given, names))[0]


def transformed(step, frame):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # scikit-learn tells of unknown categories and of empty columns
        made = step.transform(frame)
    return np.asarray(made.todense() if hasattr(made, "todense") else made, np.float64)


WORDS = pd.DataFrame(
    {
        "a": ["x"] * 6 + ["y"] * 5 + ["z", "u", "v"],
        "b": ["p", "q"] * 7,
        "c": ["only"] * 14,
    }
).astype(object)
NEW_WORDS = pd.concat(
    [
        WORDS,
        pd.DataFrame({"a": ["new", "x", "u"], "b": ["p", "new", ""], "c": ["only", "only", "new"]}),
    ]
)
GAPS = WORDS.assign(
    a=WORDS["a"].where(WORDS["a"] != "u", None), b=WORDS["b"].where(np.arange(14) > 2, np.nan)
).astype(object)
CODES = pd.DataFrame(
    {
        "a": [0.5, 0.25, 0.5, 3.0, np.nan, 0.5, 3.0],
        "b": [1, 2, 3, 1, 2, 3, 1],
        "c": [True, False] * 3 + [True],
    }
)


@pytest.mark.parametrize(
    ("drop", "rare"),
    [
        *itertools.product(
            [None, "first", "if_binary", ["y", "q", "only"]],
            [{}, {"min_frequency": 2}, {"max_categories": 3}],
        ),
        (None, {"min_frequency": 6}),
        ("if_binary", {"min_frequency": 100}),  # all are rare
    ],
)
@pytest.mark.parametrize("unknown", ["ignore", "infrequent_if_exist", "warn"])
def test_one_hot(drop, rare, unknown):
    step = OneHotEncoder(handle_unknown=unknown, drop=drop, **rare).fit(WORDS)
    np.testing.assert_array_equal(features(step, WORDS, NEW_WORDS), transformed(step, NEW_WORDS))


@pytest.mark.parametrize("frame", [GAPS, CODES], ids=["words", "numbers"])
@pytest.mark.parametrize("rare", [{}, {"max_categories": 2}])
def test_one_hot_of_gaps_and_of_numbers(frame, rare):
    step = OneHotEncoder(handle_unknown="ignore", **rare).fit(frame)
    np.testing.assert_array_equal(features(step, frame, frame), transformed(step, frame))
    # as float32 a category of 0.1 is still itself, though it is not the number 0.1 of Python
    np.testing.assert_array_equal(features(step, frame, frame), transformed(step, frame))


@pytest.mark.parametrize("unknown", [-1, 99, np.nan])
@pytest.mark.parametrize("missing", [-5, np.nan])
@pytest.mark.parametrize("rare", [{}, {"min_frequency": 2}, {"max_categories": 2}])
@pytest.mark.parametrize("frame", [WORDS, GAPS, CODES], ids=["words", "gaps", "numbers"])
def test_ordinal(frame, rare, missing, unknown):
    kwargs = {
        "handle_unknown": "use_encoded_value",
        "unknown_value": unknown,
        "encoded_missing_value": missing,
    }
    step = OrdinalEncoder(**kwargs, **rare).fit(frame)
    unknown = pd.concat([frame, frame.iloc[:1].assign(a=7.5 if frame is CODES else "new")])
    np.testing.assert_array_equal(features(step, frame, unknown), transformed(step, unknown))


HOLES = pd.DataFrame(
    {
        "a": [1.0, np.nan, 3.5, np.nan, 2.0],
        "b": [np.nan] * 5,
        "c": [1.0, 2.0, 3.0, 4.0, -1.0],
        "d": [5.0, 6.0, np.nan, 1.0, 1.0],
    }
)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("missing", [np.nan, -1])
@pytest.mark.filterwarnings("ignore:Skipping features")
@pytest.mark.filterwarnings("ignore:Currently, when `keep_empty_feature`")
def test_gaps_in_numbers(strategy, indicator, keep, missing):
    frame = HOLES if missing is np.nan else HOLES.fillna(-1)
    kwargs = {
        "strategy": strategy,
        "add_indicator": indicator,
        "keep_empty_features": keep,
        "missing_values": missing,
    }
    step = SimpleImputer(**kwargs).fit(frame)
    np.testing.assert_allclose(features(step, frame, frame), transformed(step, frame), rtol=1e-15)
    by_column = ColumnTransformer([("fill", step, list(frame))]).fit(frame)
    np.testing.assert_allclose(
        features(by_column, frame, frame), transformed(by_column, frame), rtol=1e-15
    )


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_what_fills_a_gap_has_the_type_that_the_imputer_gives_it(dtype):
    frame = pd.DataFrame({"a": [1, 4, -1, 6], "b": [-1, 7, 8, 8]}).astype(dtype)
    step = SimpleImputer(missing_values=-1).fit(frame)
    np.testing.assert_allclose(features(step, frame, frame), transformed(step, frame), rtol=1e-6)


MIXED, _ = table()


@pytest.mark.parametrize(
    "step",
    [
        ColumnTransformer(
            [
                ("b", StandardScaler(), ["<b>width</b>", "length"]),
                ("hot", OneHotEncoder(), ["size", "color"]),
            ],
            transformer_weights={"b": 2.0, "hot": 0.5},
        ),
        ColumnTransformer(
            [("hot", OneHotEncoder(), [3]), ("none", StandardScaler(), []), ("off", "drop", [2])],
            remainder="passthrough",
        ),
        ColumnTransformer(
            [
                ("hot", OneHotEncoder(), slice(2, 4)),
                ("same", "passthrough", ["length"]),
                ("off", "drop", ["<b>width</b>"]),
            ]
        ),
        ColumnTransformer(
            [
                (
                    "words",
                    ColumnTransformer(
                        [("hot", OneHotEncoder(), ["size"]), ("o", OrdinalEncoder(), ["color"])]
                    ),
                    [2, 3],
                ),
                (
                    "twice",
                    make_pipeline(SimpleImputer(), StandardScaler(with_mean=False)),
                    ["length", "<b>width</b>"],
                ),
                ("again", StandardScaler(with_std=False), ["length"]),
            ]
        ),
        make_pipeline(
            FunctionTransformer(),
            ColumnTransformer([("o", OrdinalEncoder(), ["size", "color"])]),
            OneHotEncoder(drop="first"),
        ),
    ],
)
def test_columns(step):
    known = rounded(MIXED)
    step = step.fit(known)
    np.testing.assert_allclose(features(step, known, known), transformed(step, known), rtol=1e-12)
    frozen = FrozenEstimator(step)
    np.testing.assert_allclose(features(frozen, known, known), transformed(step, known), rtol=1e-12)


# -- words that the model does not know -------------------------------------------------------------------------------------


def test_an_encoder_that_refuses_unknown_words_ends_the_run():
    model, frame = fitted("encoded")  # its OrdinalEncoder takes s, m and l alone
    unknown = frame.assign(size="xl")
    with pytest.raises(ValueError, match="Found unknown categories"):
        model.predict(unknown)
    with pytest.raises(Exception, match="A column holds a category that the model does not know"):
        run(kernelpool.to_onnx(model), unknown)
    one = frame.assign(size=["xl", *frame["size"][1:]])
    with pytest.raises(Exception, match="A column holds a category that the model does not know"):
        run(kernelpool.to_onnx(model), one)
    with pytest.raises(Exception, match="A column holds a category that the model does not know"):
        features(OneHotEncoder().fit(CODES[["a"]]), CODES[["a"]], pd.DataFrame({"a": [0.5, 7.0]}))


def test_an_encoder_that_passes_over_unknown_words_goes_on():
    model, frame = fitted("encoded")
    unknown = frame.assign(color="mauve")
    assert_agree(run(kernelpool.to_onnx(model), unknown), expected(model, unknown))
    assert not np.allclose(model.predict_proba(unknown), model.predict_proba(frame))


# -- names ----------------------------------------------------------------------------------------------------------------


def test_columns_may_have_any_name():
    names = [
        "label",
        "cast_0",
        "constant_0",
        "concat_1",
        "probabilities",
        "label_",
        "a b",
        "sepal length (cm)",
        "X",
    ]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 9)), columns=names).astype(np.float32).astype(float)
    frame["label"] = rng.choice(["a", "b"], 60)
    y = np.where(frame["X"] > 0, "yes", "no")
    parts = [("hot", OneHotEncoder(sparse_output=False), ["label"])]
    model = make_pipeline(
        ColumnTransformer(parts, remainder="passthrough"), kernels(covariance_type="diag")
    ).fit(frame, y)
    exported = kernelpool.to_onnx(model)
    about = json.loads({entry.key: entry.value for entry in exported.metadata_props}["inputs"])
    assert [entry["column"] for entry in about] == names
    found = run(exported, frame, {entry["name"]: entry["column"] for entry in about})
    assert_agree(found, expected(model, frame))
    renamed = {"label": "label_", "probabilities": "probabilities_", "label_": "label__"}
    assert [entry["name"] for entry in about] == [renamed.get(name, name) for name in names]
    assert {entry["kind"] for entry in about[1:]} == {"number"}
    assert about[0]["kind"] == "word"


def test_names_are_free():
    assert free_names(["a", "a", "a_", "std", "std_", "half \ud800"]) == [
        "a",
        "a_",
        "a__",
        "std_",
        "std__",
        "half ?",
    ]


def test_columns_without_names_are_numbered():
    frame, y = table()
    cells = frame.to_numpy(object)
    parts = [("scale", StandardScaler(), [0]), ("hot", OneHotEncoder(sparse_output=False), [2, 3])]
    model = make_pipeline(ColumnTransformer(parts), kernels(covariance_type="diag")).fit(cells, y)
    exported = kernelpool.to_onnx(model)
    assert [entry.name for entry in exported.graph.input] == ["x0", "x2", "x3"]
    found = run(exported, frame, dict(zip(["x0", "x1", "x2", "x3"], frame, strict=True)))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(cells), atol=1e-5)


def test_operators_for_words_are_there_only_where_words_are():
    model, _ = fitted("encoded")
    exported = kernelpool.to_onnx(model)
    assert {node.domain for node in exported.graph.node} == {"", "ai.onnx.ml"}
    assert {(entry.domain, entry.version) for entry in exported.opset_import} == {
        ("", 18),
        ("ai.onnx.ml", 3),
    }
    plain, _ = fitted("gaps told, others passed through")
    assert {entry.domain for entry in kernelpool.to_onnx(plain).opset_import} == {""}


# -- what stands where ------------------------------------------------------------------------------------------------------


def test_refusals_may_stand_in_the_pipeline():
    frame, y = table()
    steps = encoded(RejectClassifier(kernels(covariance_type="diag"), ambiguity=0.2, novelty=0.05))
    model = steps.fit(frame, y)
    found = run(kernelpool.to_onnx(model), rounded(frame))
    x = model[:-1].transform(rounded(frame))
    assert found["label"].tolist() == model.predict(rounded(frame)).tolist()
    assert found["decision"].tolist() == model[-1].decide(x).tolist()
    assert {0, 1} <= set(found["decision"].tolist())


def test_names_are_found_behind_steps_that_do_nothing():
    frame, y = table()
    last = encoded(kernels(covariance_type="diag"))
    model = make_pipeline(
        "passthrough", make_pipeline(None, FrozenEstimator(last[:-1].fit(frame))), last[-1]
    ).fit(frame, y)
    exported = kernelpool.to_onnx(model)
    assert [entry.name for entry in exported.graph.input] == list(frame)
    np.testing.assert_allclose(
        run(exported, rounded(frame))["probabilities"],
        model.predict_proba(rounded(frame)),
        atol=1e-5,
    )


def test_a_model_of_numbers_still_takes_x():
    X, y, _, _ = rows()
    model = make_pipeline(
        FunctionTransformer(),
        "passthrough",
        make_pipeline(SimpleImputer(), StandardScaler()),
        kernels(),
    )
    exported = kernelpool.to_onnx(model.fit(X, y))
    assert [entry.name for entry in exported.graph.input] == ["X"]
    ready = session(exported)
    found = ready.run(["probabilities"], {"X": X.astype(np.float32)})[0]
    np.testing.assert_allclose(
        found, model.predict_proba(X.astype(np.float32).astype(float)), atol=1e-5
    )


# -- what cannot be told ----------------------------------------------------------------------------------------------------


def refused(step, frame):
    return lambda: features(step.fit(frame), frame, frame)


BOTH = pd.DataFrame({"a": ["", None, "x"]}, dtype=object)
DIGITS = pd.DataFrame({"a": ["1", "2", "3"]}, dtype=object)
LARGE = pd.DataFrame({"a": [16777216, 16777217, 5]})
BYTES = pd.DataFrame({"a": [b"x", b"y", b"x"]}, dtype=object)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (refused(OneHotEncoder(), BOTH), "empty words beside missing ones"),
        (
            refused(
                make_pipeline(
                    SimpleImputer(missing_values=None, strategy="most_frequent"), OrdinalEncoder()
                ),
                BOTH,
            ),
            "A SimpleImputer of words cannot be exported to ONNX",
        ),
        (
            refused(
                ColumnTransformer(
                    [("hot", OneHotEncoder(), ["a"]), ("scale", StandardScaler(), ["a"])]
                ),
                DIGITS,
            ),
            "A step before the classifier cannot be exported to ONNX",
        ),
        (
            refused(OneHotEncoder(), LARGE),
            "A column has categories that float32 cannot hold; fit it with text instead.",
        ),
        (
            refused(OneHotEncoder(), BYTES),
            "Categories of bytes cannot be exported to ONNX; fit with text instead.",
        ),
        (
            refused(ColumnTransformer([("f", FunctionTransformer(np.abs), ["length"])]), MIXED),
            "A step before the classifier cannot be exported to ONNX: .*FunctionTransformer.* transform the rows yourself",
        ),
        (
            refused(
                make_pipeline(
                    ColumnTransformer([("hot", OneHotEncoder(), ["color"])]),
                    ColumnTransformer([("turned", "passthrough", [2, 0, 1])]),
                ),
                MIXED,
            ),
            "A step before the classifier cannot be exported to ONNX",
        ),
        (
            refused(OneHotEncoder(), DIGITS.rename(columns={"a": ""})),
            "A step before the classifier cannot be exported to ONNX",
        ),
    ],
)
def test_what_cannot_be_exported_is_said(made, message):
    with pytest.raises(KernelpoolError, match=message):
        made()
