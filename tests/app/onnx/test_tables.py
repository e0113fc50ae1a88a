"""Every classifier and every kind of column: what a graph answers to the rows of the fit, new rows,
rows far from all of them and categories never seen is what Python answers, to 1e-5.
"""

import warnings
from functools import cache

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from zoo import CLASSIFIERS, META

from kernelpool import ParzenClassifier, RejectClassifier, to_onnx

pytestmark = pytest.mark.filterwarnings("ignore")

N = 80

MODELS = {
    **CLASSIFIERS,
    "ball": ParzenClassifier("hypersphere", "loo", random_state=0),
    "reject": META["reject"],
}


def columns_of(kind):
    """Columns that depend on a class, and the class of each row."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    often = lambda share: rng.random(N) < share + 0.4 * y  # noqa: E731
    number = (50 + 12 * (rng.normal(size=N) + y)).astype(np.float32)
    town = np.where(often(0.2), "Rome", rng.choice(["Oslo", "Athens"], N))
    columns = {
        "numbers": {"age": number, "dose": (0.01 * rng.normal(size=N)).astype(np.float32)},
        "mixed": {
            "town": town,
            "age": number,
            "paid": often(0.3),
            "asked": pd.array(often(0.2), "boolean"),
            "since": pd.Timestamp("2024-01-31") + pd.to_timedelta(rng.integers(0, 90, N), "D"),
            "code": [f"c{i}" for i in rng.integers(0, 90, N) + 5 * y],  # more than indicators
        },
        "words": {"town": town, "size": rng.choice(["s", "m", "l"], N)},
        "far": {"x": (1e5 + 3 * (rng.normal(size=N) + y)).astype(np.float32), "y": number - 3e4},
    }
    return pd.DataFrame(columns[kind]), y


def with_missing(X):
    """A sixth of the cells missing; of one row all."""
    gone = np.random.default_rng(1).random(X.shape) < 1 / 6
    gone[7] = True
    return X.astype({name: object for name in X if X[name].dtype == bool}).mask(gone)


def numbers_of(X):
    return [name for name in X if X[name].dtype == np.float32]


def words_of(X):
    return [name for name in X if X[name].dtype.kind not in "fM"]


def asked(X):
    """The rows of the fit, their cells in other combinations, rows far outside, and categories never
    seen.
    """
    words = words_of(X)
    rows = X.astype(dict.fromkeys(words, object))
    mixed = [rows[name].sample(frac=1, random_state=i) for i, name in enumerate(rows)]
    parts = [rows, pd.concat([column.reset_index(drop=True) for column in mixed], axis=1)]
    for factor in (1e3, -50.0):
        parts.append(
            rows[:9].assign(**{n: rows[n][:9] * np.float32(factor) for n in numbers_of(X)})
        )
    parts += [rows[:9].assign(**{name: "never seen"}) for name in words]
    return pd.concat(parts, ignore_index=True)


def run(graph, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    inputs = [entry.name for entry in session.get_inputs()]
    cells = {"X": X.to_numpy()} if inputs == ["X"] else {}
    for name in inputs if inputs != ["X"] else []:
        column = X[[name]]
        if X[name].dtype.kind == "M":
            days = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
            cells[name] = days.to_numpy(np.float32)
        elif name in words_of(X):
            cells[name] = column.fillna("").astype(str).to_numpy(object)
        else:
            cells[name] = column.to_numpy()
    outputs = [entry.name for entry in session.get_outputs()]
    return dict(zip(outputs, session.run(None, cells), strict=True))


def answers(model, X):
    """Those of Python, in float64."""
    X = X.astype(dict.fromkeys(numbers_of(X), np.float64))
    found = {"label": model.predict(X), "probabilities": model.predict_proba(X)}
    if hasattr(model, "log_density"):
        found |= {"log_density": model.log_density(X), "score_samples": model.score_samples(X)}
    return found | ({"decision": model.decide(X)} if isinstance(model, RejectClassifier) else {})


@cache
def exported(name, kind, missing):
    X, y = columns_of(kind)
    X = with_missing(X) if missing else X
    model = clone(MODELS[name]).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = to_onnx(model)
    about = {entry.key: entry.value for entry in graph.metadata_props}
    said = [str(w.message) for w in caught if "refuses rows with missing cells" in str(w.message)]
    return model, graph, asked(X), about["missing_cells"] == "refused", said


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("numbers", True), ("mixed", False), ("mixed", True), ("words", True), ("far", False)],
)
@pytest.mark.parametrize("name", MODELS)
def test_graphs_answer_as_python_does(name, kind, missing):
    model, graph, X, refuses, said = exported(name, kind, missing)
    if missing and not refuses and numbers_of(X):  # infinite numbers are missing cells
        X = X.copy()
        X.loc[3, numbers_of(X)[0]] = np.inf
    assert len(said) == (refuses and missing)
    assert all(f"'{column}'" in text for column in X for text in said)
    rows = X.dropna() if refuses else X
    found = run(graph, rows)
    wanted = answers(model, rows)
    assert found.keys() == wanted.keys()
    least, most = np.sort(wanted["probabilities"], axis=1)[:, -2:].T
    apart = most - least > 1e-9  # of classes that are equally probable either may be named
    for key, value in wanted.items():
        if key in ("label", "decision"):
            assert found[key][apart].tolist() == value[apart].tolist()
        else:
            assert_allclose(found[key], value, rtol=1e-5, atol=1e-5, err_msg=key)
    if refuses and missing:
        with pytest.raises(Exception, match="A cell is missing"):
            run(graph, X)
