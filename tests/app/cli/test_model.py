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


def test_infinite_numbers_are_missing_at_every_door(run):
    """In a file with types as in text: of the fit they are refused with their place."""
    frame = pd.DataFrame({"a": np.arange(40) % 7 / 7, "b": np.arange(40) % 2 + 0.0})
    frame["class"] = np.where(frame["a"] > 0.5, "x", "y")
    frame.to_parquet("rows.parquet")
    new = frame[:5].copy()
    new.loc[[1, 3], "a"] = np.inf, -np.inf
    new.to_parquet("new.parquet")
    new.to_csv("new.csv", index=False)
    run("fit", "rows.parquet", "--target", "class", "-o", "model.st", *QUICK)
    model = kernelpool.load("model.st")
    expected = model.predict_proba(new[["a", "b"]].replace([np.inf, -np.inf], np.nan))
    with pytest.warns(kernelpool.errors.ColumnWarning, match="column 'a' .2 cells such as 'inf'"):
        np.testing.assert_array_equal(model.predict_proba(new[["a", "b"]]), expected)
    for path in ("new.parquet", "new.csv"):
        with pytest.warns(kernelpool.errors.ColumnWarning, match="2 cells that cannot be read"):
            np.testing.assert_array_equal(model.predict_proba(path), expected)
        ran = run("predict", "model.st", path, "-o", f"{path}.csv")
        assert "2 cells that cannot be read are taken as missing: 'a' 2" in ran.text
        answers = pd.read_csv(f"{path}.csv")
        np.testing.assert_allclose(answers["probability_x"], expected[:, 0], rtol=1e-12)
    ran = run("fit", "new.parquet", "--target", "class", "-o", "no.st", *QUICK, code=3)
    assert "new.parquet, row 2, column 'a': 'inf'" in ran.text
