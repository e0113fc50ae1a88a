"""Every classifier and every kind of column: what a graph answers to the rows of the fit, new rows,
rows far from all of them and categories never seen is what Python answers, to 1e-5.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from zoo import CLASSIFIERS, META, kernels

from kernelpool import ParzenClassifier, SharingAverageClassifier, to_onnx

from .test_onnx import assert_agree, expected, run

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60

MODELS = {
    **CLASSIFIERS,
    "ball": ParzenClassifier("hypersphere", "loo", random_state=0),
    "reject": META["reject"],
    "full": kernels(covariance_type="full", standardize=True, max_iter=5),
    "tied": kernels(covariance_type="tied", class_prior=[0.3, 0.7], max_iter=5),
    "average, full": SharingAverageClassifier(kernels(covariance_type="full", max_iter=5)),
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
        "words": {"label": town, "size": rng.choice(["s", "m", "l"], N)},
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
    assert_agree(run(graph, rows), expected(model, rows), 1e-5)
    if refuses and missing:
        with pytest.raises(Exception, match="A cell is missing, and the exported network takes"):
            run(graph, X)
