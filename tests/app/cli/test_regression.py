"""Numbers instead of classes on the command line, against scikit-learn's metrics and the estimator itself."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import kernelpool
from kernelpool.inspection.metrics import RegressionError

from .tables import write_csv

NAMES = ["a", "b", "price"]
FIT = ("--model", "rbf-regressor", "--target", "price", "--kernels", 6)


def houses(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 2))
    price = 1000 + 50 * np.sin(x[:, 0]) + 10 * x[:, 1] ** 2 + rng.normal(size=n)
    return [[f"{v:.4f}" for v in row] for row in np.column_stack([x, price])]


@pytest.fixture
def files(run):
    """A data file, and a model of its rows; in the folder of the test."""
    data = write_csv("houses.csv", NAMES, houses())
    told = run("fit", data, *FIT, "-o", "m.safetensors")
    return data, "m.safetensors", told


def columns(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {name: np.array([float(row[name]) for row in rows if row[name]]) for name in rows[0]}


def test_a_table_is_fitted_and_predicted(run, files):
    data, model, told = files
    assert "'price': " in told.err
    assert "Root mean squared error by rows held out: " in told.out
    x = np.array([[float(cell) for cell in row[:2]] for row in houses()])
    mean, std = kernelpool.load(model).predict(pd_frame(x), return_std=True)
    answers = columns(run("predict", model, data, "--keep", "a").out)
    assert list(answers) == ["a", "prediction", "deviation"]
    np.testing.assert_allclose(answers["prediction"], mean)
    np.testing.assert_allclose(answers["deviation"], std)
    info = run("info", model)
    assert "Predicts: numbers" in info.text
    assert "(root mean square) of 24 rows, by rows held out" in info.text


def pd_frame(x):
    import pandas as pd

    return pd.DataFrame(x, columns=["a", "b"])


def test_rows_held_out_are_found_again(run, files):
    data, model, _ = files
    fitted = run("fit", data, *FIT, "-o", "again.safetensors", "--json").json
    judged = run("evaluate", model, data, "--json").json
    assert judged["counted"] == "rows held out"
    assert judged["n_rows"] == 24
    assert judged["rmse"] == pytest.approx(fitted["held_out"]["rmse"])
    new = write_csv("new.csv", NAMES, houses(50, seed=1))
    found = run("evaluate", model, new, "--json").json
    answers = columns(run("predict", model, new).out)["prediction"]
    true = np.array([float(row[2]) for row in houses(50, seed=1)])
    assert found["counted"] == "all rows"
    assert found["rmse"] == pytest.approx(mean_squared_error(true, answers) ** 0.5)
    assert found["mae"] == pytest.approx(mean_absolute_error(true, answers))
    assert found["r2"] == pytest.approx(r2_score(true, answers))
    assert "Mean absolute error:" in run("evaluate", model, new).out


def test_folds_and_words(run, files):
    rows = [
        [*row[:2], "old" if i % 2 else "new", f"{float(row[2]) + 30 * (i % 2):.3f}"]
        for i, row in enumerate(houses())
    ]
    data = write_csv("words.csv", ["a", "b", "age", "price"], rows)
    found = run("fit", data, *FIT, "--cv", 3, "-o", "w.safetensors", "--json").json
    assert found["judged_by"] == "3 folds"
    assert found["held_out"]["n_rows"] == 120
    assert "the model was fitted to these very rows" in run("evaluate", "w.safetensors", data).err
    assert len(columns(run("predict", "w.safetensors", data).out)["prediction"]) == 120


def test_missing_cells(run, files):
    _, model, _ = files
    rows = houses(10)
    rows[3][0], rows[5][2] = "", ""
    data = write_csv("holes.csv", NAMES, rows)
    ran = run("predict", model, data)
    assert "1 row got no prediction" in ran.err
    assert len(columns(ran.out)["prediction"]) == 9
    ran = run(
        "fit",
        write_csv("gap.csv", NAMES, [*houses(40), ["1", "1", ""]]),
        *FIT,
        "-o",
        "gap.safetensors",
        code=3,
    )
    assert "1 row of 41 without a number in column 'price'" in ran.text
    assert "--unlabeled drop to leave them out." in ran.text
    run("fit", "gap.csv", *FIT, "-o", "gap.safetensors", "--unlabeled", "drop")
    assert (
        run("evaluate", "gap.safetensors", "gap.csv", "--json").json["counted"] == "rows held out"
    )


def test_reports(run, files):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    data, model, _ = files
    run("report", model, data, "-o", "r.html")
    assert "oot mean squared error" in Path("r.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("predict", "m.safetensors", "houses.csv", "--reject"),
            2,
            "--reject is for classes; m.safetensors predicts numbers.",
        ),
        (("predict", "m.safetensors", "houses.csv", "--sets", 0.1), 2, "--sets is for classes"),
        (
            ("evaluate", "m.safetensors", "houses.csv", "--importance"),
            2,
            "--importance is for classes",
        ),
        (
            ("certify", "m.safetensors", "houses.csv"),
            4,
            "RBFNetworkRegressor predicts numbers; this command is for classifiers.",
        ),
        (
            ("fit", "words.csv", *FIT),
            3,
            "'cheap' is not a number, and a regressor predicts numbers.",
        ),
        (("fit", "few.csv", *FIT), 5, "1 row: at least 2 are needed."),
        (
            ("fit", "houses.csv", "--target", "price"),
            3,
            "numbers are predicted by a regressor, --model rbf-regressor.",
        ),
    ],
)
def test_what_is_refused(run, files, words, code, message):
    write_csv("words.csv", NAMES, [*houses(5), ["1", "1", "cheap"]])
    write_csv("few.csv", NAMES, houses(1))
    assert message in run(*words, code=code).text


def test_several_outputs(run):
    x = np.random.default_rng(0).normal(size=(40, 2))
    kernelpool.save(
        kernelpool.RBFNetworkRegressor(4, random_state=0).fit(
            x, np.column_stack([x[:, 0], x.sum(axis=1)])
        ),
        "two.st",
    )
    data = write_csv("x.csv", ["a", "b", "c"], np.column_stack([x, x[:, 0]]).tolist())
    answers = columns(run("predict", "two.st", data, "--drop", "c").out)
    assert list(answers) == ["prediction_0", "prediction_1", "deviation_0", "deviation_1"]
    assert "predicts 2 outputs" in run("evaluate", "two.st", data, "--target", "c", code=4).text


def test_the_interval_holds_the_root_of_the_mean_square():
    """The mean of the squares lies within 1.96 of its standard errors with a probability of 95 %."""
    rng = np.random.default_rng(0)
    true, predicted = rng.normal(size=500), np.zeros(500)
    found = RegressionError.of(true, predicted, 0.05)
    error = norm.ppf(0.975) * np.std(true**2) / 500**0.5
    assert found.low**2 == pytest.approx(np.mean(true**2) - error)
    assert found.high**2 == pytest.approx(np.mean(true**2) + error)
    inside = [RegressionError.of(rng.normal(size=400), np.zeros(400), 0.1) for _ in range(300)]
    assert np.mean([f.low < 1 < f.high for f in inside]) == pytest.approx(0.9, abs=0.05)
    assert RegressionError.of(np.ones(3), np.zeros(3), 0.05).r2 is None
