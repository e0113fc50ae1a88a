"""A model of the command line is a model of Python: it predicts the same of the same file, and of a
frame that was read from it by whatever reads files.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import kernelpool

from .tables import QUICK

N_FITTED = 400


@pytest.fixture(scope="module")
def mixed():
    """Codes with leading zeros, truth, whole numbers, numbers, dates and a class; cells are missing
    as `?`, and an identifier in front is of no use.
    """
    rng = np.random.default_rng(0)
    n = N_FITTED + 100
    code = rng.integers(0, 2, n)
    columns = {
        "zip": rng.choice(["02134", "09553", "00501", "33101"], n),
        "active": np.where(rng.random(n) < 0.3 + 0.4 * code, "True", "False"),
        "visits": rng.integers(1, 8, n).astype(str),
        "score": [f"{value:.3f}" for value in rng.normal(size=n) + code],
        "joined": (np.datetime64("2020-01-01") + rng.integers(0, 900, n) + 200 * code).astype(str),
    }
    for cells in columns.values():
        for i in np.flatnonzero(rng.random(n) < 0.05):
            cells[i] = "?"
    return pd.DataFrame(
        {"ref": [f"R{i:05d}" for i in range(n)], **columns, "class": np.where(code, "yes", "no")}
    )


READERS = {
    "a path": str,
    "pandas": pd.read_csv,
    "text of pandas": lambda path: pd.read_csv(path, dtype=str, keep_default_na=False),
    "missing cells of pandas": lambda path: pd.read_csv(
        path, dtype={"zip": str}, na_values="?", parse_dates=["joined"]
    ),
    "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
    "Arrow": pyarrow.csv.read_csv,
}


@pytest.mark.filterwarnings("ignore:X holds text that reads as numbers")
@pytest.mark.parametrize("reader", READERS)
def test_python_predicts_as_the_command_does(reader, mixed, run):
    mixed[:N_FITTED].to_csv("rows.csv", index=False)
    mixed[N_FITTED:].to_csv("new.csv", index=False)
    run("fit", "rows.csv", "--target", "class", "-o", "model.st", *QUICK)
    run("predict", "model.st", "new.csv", "-o", "answers.csv")
    answers = pd.read_csv("answers.csv")
    model = kernelpool.load("model.st")
    X = READERS[reader]("new.csv")
    if reader != "a path":
        names = list(model.columns_.names)
        X = X.select(names) if isinstance(X, pa.Table) else X[names]
    probability = answers[["probability_no", "probability_yes"]].to_numpy()
    np.testing.assert_allclose(model.predict_proba(X), probability, rtol=1e-12)
    assert model.predict(X).tolist() == answers["label"].tolist()
