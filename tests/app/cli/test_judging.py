"""`kernelpool evaluate` and `certify`: numbers beside scikit-learn's and SciPy's."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, binomtest
from sklearn.metrics import confusion_matrix, log_loss

import kernelpool

from .tables import QUICK, blurred, features, write_csv


@pytest.fixture
def judged(run):
    """A model, and rows that it has not seen."""
    data = write_csv("d.csv", ["a", "b", "color"], blurred())
    run("fit", data, "-t", "color", *QUICK, "-o", "m.st")
    return data, write_csv("test.csv", ["a", "b", "color"], blurred(150, seed=9))


def answers():
    rows = blurred(150, seed=9)
    model = kernelpool.load("m.st")
    probability = model.predict_proba(
        pa.table({"a": features(rows)[:, 0], "b": features(rows)[:, 1]})
    )
    return np.array([row[2] for row in rows]), probability, model.classes_


def test_evaluate_is_what_others_compute(run, judged):
    found = run("evaluate", "m.st", judged[1], "--json").json
    y, probability, classes = answers()
    named = classes[probability.argmax(axis=1)]
    interval = binomtest(int((named != y).sum()), 150).proportion_ci(0.95, "exact")
    assert found["n_rows"] == 150
    np.testing.assert_allclose(
        [found["error"], found["low"], found["high"]], [(named != y).mean(), *interval], rtol=1e-6
    )
    np.testing.assert_allclose(found["log_loss"], log_loss(y, probability), rtol=1e-12)
    np.testing.assert_allclose(
        found["brier"],
        ((probability - (y[:, None] == classes)) ** 2).sum(axis=1).mean(),
        rtol=1e-12,
    )
    assert found["confusion"] == confusion_matrix(y, named).tolist()
    sure, right = probability.max(axis=1), named == y
    bins = np.digitize(sure, np.arange(0.1, 1, 0.1))
    gaps = [
        abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    ]
    np.testing.assert_allclose(found["calibration_error"], sum(gaps), rtol=1e-9)
    assert found["counted"] == "all rows"


def test_evaluate_for_people(run, judged):
    ran = run("evaluate", "m.st", judged[1], "--reject")
    for words in (
        "Error:",
        "95 % interval",
        "Log-loss:",
        "Calibration:",
        "Confusion",
        "Decisions:",
        "Accepted:",
        "green",
    ):
        assert words in ran.out


def test_confidence_widens_the_interval(run, judged):
    wide, narrow = (
        run("evaluate", "m.st", judged[1], "--json", "--confidence", c).json for c in (0.99, 0.8)
    )
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_rows_of_the_fit_do_not_count_unless_held_out(run, judged):
    data, _ = judged
    fit = run("fit", data, "-t", "color", *QUICK, "-o", "again.st", "--json").json
    ran = run("evaluate", "again.st", data, "--json").json
    assert ran["counted"] == "rows held out"
    assert (ran["n_errors"], ran["n_rows"]) == (fit["held_out"]["n_errors"], 60)
    rows = [[c, b, a] for a, b, c in blurred()]
    turned = write_csv("turned.csv", ["color", "b", "a"], rows)
    assert run("evaluate", "again.st", turned, "--json").json["counted"] == "rows held out"
    part = write_csv("part.csv", ["a", "b", "color"], blurred()[:-1])
    assert run("evaluate", "again.st", part, "--json").json["counted"] == "all rows"
    run("fit", data, "-t", "color", *QUICK, "-o", "all.st", "--holdout", 0)
    assert "too low an estimate" in run("evaluate", "all.st", data).err
    assert "can certify nothing" in run("certify", "all.st", data, code=3).err


def test_a_class_the_model_does_not_know_is_named(run, judged):
    other = write_csv("o.csv", ["a", "b", "color"], [[0, 0, "red"], [1, 1, "pink"]])
    ran = run("evaluate", "m.st", other, code=3)
    assert (
        "o.csv, row 2, column 'color': the model knows no class 'pink', only 'blue', 'green', 'red'"
        in ran.err
    )
    assert (
        "no column 'color'"
        in run("evaluate", "m.st", write_csv("p.csv", ["a", "b"], [[0, 0]]), code=3).err
    )
    empty = write_csv("q.csv", ["a", "b", "color"], [[0, 0, ""]])
    assert "nothing can be judged" in run("evaluate", "m.st", empty, code=3).err


def test_certificate_is_clopper_and_pearsons_bound(run, judged):
    found = run("certify", "m.st", judged[1], "--json").json
    y, probability, classes = answers()
    wrong = int((classes[probability.argmax(axis=1)] != y).sum())
    np.testing.assert_allclose(found["error"], beta.ppf(0.95, wrong + 1, 150 - wrong), rtol=1e-6)
    more = run("certify", "m.st", judged[1], "--json", "--tried", 10).json
    np.testing.assert_allclose(
        more["error"], beta.ppf(1 - 0.05 / 10, wrong + 1, 150 - wrong), rtol=1e-6
    )
    assert "with 95 % confidence at most" in run("certify", "m.st", judged[1]).out
    assert run("certify", "m.st", judged[0], "--json").json["n_rows"] == 60


def test_a_claim_that_does_not_hold_has_its_own_exit_code(run, judged):
    error = run("certify", "m.st", judged[1], "--json").json["error"]
    assert run("certify", "m.st", judged[1], "--at-most", error + 0.001, "--json").json["holds"]
    ran = run("certify", "m.st", judged[1], "--at-most", error - 0.001, code=7)
    assert "Not certified" in ran.out
