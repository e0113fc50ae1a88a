"""`kernelpool fit`: the saved model, its held-out error, settings, and what an interruption
leaves.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import kernelpool
from kernelpool.app.cli import console
from kernelpool.app.cli import fit as command
from kernelpool.app.files import load_file, read_header
from kernelpool.tables.read import read_table

from ..report.parsed import Page
from .tables import NAMES, QUICK, colors, labels, table, write_csv

FIT = ("fit", "d.csv", "-t", "color")


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "d.csv", NAMES, colors(300, 1, 1.5))


def test_the_saved_model_is_fitted_to_the_rows_not_held_out(run, data):
    found = run(*FIT, *QUICK, "--json").json
    rows = colors(300, 1, 1.5)
    model = kernelpool.load("d.safetensors")
    settings = {"n_kernels": 3, "training": "em", "random_state": 0}
    everything = kernelpool.SharedKernelClassifier(**settings).fit(table(rows), labels(rows))
    assert found["held_out"]["n_rows"] == 60
    assert not np.allclose(model.means_, everything.means_)
    assert "not measured" in run(*FIT, *QUICK, "--holdout", 0, "-o", "all.st").out
    run(*FIT, *QUICK, "--cv", 3, "-o", "cv.st")
    for name in ("all.st", "cv.st"):
        np.testing.assert_array_equal(kernelpool.load(name).means_, everything.means_)
    assert read_header("all.st")["summary"]["held_out"] is None
    summary = read_header("cv.st")["summary"]
    assert summary["held_out"]["n_rows"] == 300
    assert summary["evaluated_by"] == "3 folds"


def test_equal_rows_are_held_out_together(run):
    rows = colors(60, 1, 1.5)
    write_csv("d.csv", NAMES, rows * 5)
    run(*FIT, *QUICK)
    held = kernelpool.load("d.safetensors").score_samples(table(rows))
    kept = np.sort(load_file("d.safetensors").calibration.score)
    assert len(kept) % 5 == 0
    np.testing.assert_allclose(kept[::5], kept[4::5])
    assert np.isin(kept.round(6), np.round(held, 6)).all()


def test_settings(run, data):
    run(*FIT, *QUICK, "--set", "max_iter=7", "--set", "covariance_type=diag", "--set", "tol=1e-3")
    model = kernelpool.load("d.safetensors")
    assert (model.max_iter, model.covariance_type, model.tol) == (7, "diag", 1e-3)
    assert model.random_state == 0
    listed = run(*FIT, "-m", "shared-kernel", "--set", "help", code=2).text
    assert "max_iter=" in listed
    assert "n_kernels=" in listed
    assert "random_state" not in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "parsen"], "did you mean 'parzen'?"),
        (
            ["-m", "rbf-regressor"],
            "numbers are predicted from Python, by kernelpool.EMLogRegressor",
        ),
        (["-m", "shared-kernel", "--set", "max_iters=3"], "did you mean 'max_iter'?"),
        (["--set", "max_iter"], "expected NAME=VALUE"),
        (["--set", "random_state=3"], "Settings of --model pool"),
        (["--columns", "a=time"], "--columns takes COLUMN=number"),
        (["--text", "decimal=x"], "expected decimal=,"),
        (["--text", "encoding=klingon"], "'encoding=klingon'"),
        (["--holdout", "2"], "--holdout"),
        (["--unlabeled", "use"], "--unlabeled use needs --model shared-kernel"),
        (["-o", "m.pkl"], "name it .safetensors"),
        (["-o", "none.csv", "--force"], "name it .safetensors"),
        (["-o", "x.st", "--report", "./x.st"], "cannot be both the model (-o) and the report"),
    ],
)
def test_wrong_options_are_refused_before_data_are_read(run, words, message):
    assert message in run("fit", "none.csv", "-t", "y", *words, code=2).text


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["red"], "at least two classes; found only 'red' in 1 row"),
        (["red", "", "blue"], "1 row of 3 without a class in column 'color', the first is row 2"),
        ([f"{i}.5" for i in range(99)], "a measurement"),
        ([f"k{i}" for i in range(99)], "too many for"),
    ],
)
def test_targets_that_are_no_classes(run, labels, message):
    write_csv("d.csv", NAMES, [[i, 7 * i % 5, label] for i, label in enumerate(labels)])
    assert message in run(*FIT, *QUICK, code=3).err


def test_what_the_estimator_refuses_or_warns_of(run, data):
    ran = run(*FIT, *QUICK, "--set", "n_kernels=-3", code=5)
    assert "n_kernels" in ran.err
    assert "Traceback" not in ran.err
    assert "no class has so many rows" in run(*FIT, *QUICK, "--cv", 101, code=5).err
    ran = run(*FIT, *QUICK, "--set", "max_iter=1", "--json")
    assert "max_iter" in ran.json["warnings"][0]


def test_held_out_rows_pass_the_model_once_and_once_more_a_feature(run, monkeypatch):
    write_csv("d.csv", NAMES, colors(4500, 1, 1.5))  # 900 held out: more than the explorer draws
    passes = []
    depth = [0]

    def counted(name):
        method = getattr(kernelpool.SharedKernelClassifier, name)

        def count(model, X, *words, **options):
            passes.extend([name] * (len(X) == 900 and not depth[0]))
            depth[0] += 1
            try:
                return method(model, X, *words, **options)
            finally:
                depth[0] -= 1

        monkeypatch.setattr(kernelpool.SharedKernelClassifier, name, count)

    for name in ("_predictions", "predict_proba", "predict_log_proba", "predict", "score_samples"):
        counted(name)
    for words, expected in (([], 1), (["--report", "r.html"], 3)):
        passes.clear()
        run(*FIT, *QUICK, "-f", *words)
        assert len(passes) == expected, passes


def test_of_more_rows_than_memory_holds_all_but_those_held_out_train(run, monkeypatch):
    rows = colors(600, 1, 1.5)
    write_csv("d.csv", NAMES, rows)
    monkeypatch.setitem(read_table.__kwdefaults__, "most_cells", 200)  # 100 rows
    batches = []
    original = kernelpool.SharedKernelClassifier.fit

    def fitting(model, X, *words):
        batches.extend(X)
        return original(model, iter(batches), *words)

    monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)
    ran = run(*FIT, *QUICK, "--text", "missing=oops")
    assert "600 rows, 2 features; of 100 drawn evenly" in ran.err
    file = load_file("d.safetensors")
    assert file.model.columns_.missing == ("oops",)
    n_held_out = len(file.codes)
    trained = {tuple(row.values()) for X, _ in batches for row in X.to_pylist()}
    held_out = [row for row in rows if (float(row[0]), float(row[1])) not in trained]
    assert len(held_out) == n_held_out > 10
    score = file.model.score_samples(table(held_out))
    np.testing.assert_allclose(np.sort(score), np.sort(file.calibration.score))
    ran = run(*FIT, "-m", "parzen", "-o", "p.st", "--json")
    assert "drawn evenly from all of them" in ran.json["warnings"][0]
    assert re.search(r"learns from 8\d of 600 rows", ran.json["warnings"][0])


def test_columns_of_numbers_as_categories_and_rows_without_a_class(run):
    rows = [[a, b, i % 4, "" if i < 9 else c] for i, (a, b, c) in enumerate(colors(90))]
    write_csv("d.csv", ["a", "b", "zip", "color"], rows)
    assert "9 rows of 90 without a class" in run(*FIT, *QUICK, code=3).err
    assert "81 rows" in run(*FIT, *QUICK, "--unlabeled", "drop", "-o", "drop.st").err
    words = ("--unlabeled", "use", "--columns", "zip=category")
    ran = run(*FIT, *QUICK, *words)
    assert "9 rows without a class" in ran.err
    assert run("info", "d.safetensors", "--json").json["features"]["zip"] == "category"
    found = run("evaluate", "d.safetensors", "d.csv", "--json").json
    assert (found["n_rows"], found["unlabeled"]) == (81, 9)


def test_categories_are_counted_as_the_model_has_them(run):
    rows = [[a, ("True", "1", "False", "0")[i % 4], c] for i, (a, _, c) in enumerate(colors(90))]
    write_csv("d.csv", NAMES, rows)
    assert "Categories: 'b' (2)" in run(*FIT, *QUICK).err
    assert kernelpool.load("d.safetensors").columns_.levels == (0, 3)


def test_dates_stay_dates_for_new_rows(run):
    rows = [[f"2020-{1 + i % 12:02}-03", *row] for i, row in enumerate(colors(90))]
    write_csv("d.csv", ["day", *NAMES], rows)
    ran = run(*FIT, *QUICK, "--columns", "day=date", "--report", "r.html")
    assert "Dates: 'day'" in ran.err
    page = Page(Path("r.html"))
    (day,) = (row for row in page.table("column-table") if row[0][0] == "day")
    assert [day[1][0], day[3][0]] == ["2020-01-03", "2020-12-03"]
    assert {row[3][0][:5] for row in page.table("kernel-table")} == {"2020-"}
    assert page.explorer["dates"] == [name == "day" for name in page.explorer["features"]]
    run("predict", "d.safetensors", "d.csv", "-o", "out.csv")
    assert run("info", "d.safetensors", "--json").json["features"]["day"] == "date"


def test_nothing_is_replaced_without_force(run, data):
    Path("d.safetensors").write_text("theirs")
    assert "exists already; pass --force" in run(*FIT, *QUICK, code=6).err
    assert Path("d.safetensors").read_text() == "theirs"
    run(*FIT, *QUICK, "--force")
    assert "no folder" in run(*FIT, *QUICK, "-o", "none/m.st", code=6).err
    assert "is a folder" in run(*FIT, *QUICK, "-o", ".", code=6).err


def test_a_pool_ends_in_time_and_says_what_it_left_out(run, data, monkeypatch):
    monkeypatch.setattr(console, "SHOWN_AFTER", 0.01)
    ran = run(*FIT, "--time-limit", "0.001")
    assert re.search(r"Fitting: 0 s, .*at most 0 s left", ran.err)
    assert re.search(r"Warning: The pool was trained on .* and without ", ran.err)
    model = kernelpool.load("d.safetensors")
    assert (model.time_limit, model.callback) == (0.001, None)
    assert "probabilities are multiplied, each to the power in parentheses: " in ran.text
    record = run(*FIT, "--time-limit", "0.001", "-f", "--json").json
    assert [member["name"] for member in record["members"]] == list(model.members_)
    assert "for --model pool alone" in run(*FIT, *QUICK, "--time-limit", 9, "-f", code=2).text


# -- Ctrl-C ----------------------------------------------------------------------------------------


class Interrupting:
    """Presses Ctrl-C in the fit of that number, at its second sweep or before its first."""

    def __init__(self, monkeypatch, fit, sweep=2):
        self.fits = 0
        original_watch = command._watch_sweeps
        original_fit = kernelpool.SharedKernelClassifier.fit

        def watching(bar):
            watch = original_watch(bar)

            def watched(info):
                if self.fits == fit and info.sweep >= sweep:
                    raise KeyboardInterrupt
                return watch(info)

            return watched

        def fitting(model, *words, **options):
            self.fits += 1
            if self.fits == fit and sweep == 0:
                raise KeyboardInterrupt
            return original_fit(model, *words, **options)

        monkeypatch.setattr(command, "_watch_sweeps", watching)
        monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)


def test_an_interrupted_fit_is_kept_under_a_free_name(run, data, monkeypatch):
    Path("d.interrupted.safetensors").write_text("an earlier one")
    Interrupting(monkeypatch, fit=1)
    ran = run(*FIT, *QUICK, "--json", code=130)
    assert ran.json["model"] == "d.interrupted-2.safetensors"
    assert "the best parameters so far were kept" in ran.json["interrupted"]
    assert ran.json["held_out"]["n_rows"] == 60
    assert Path("d.interrupted.safetensors").read_text() == "an earlier one"
    assert kernelpool.load("d.interrupted-2.safetensors").n_iter_ < 5


@pytest.mark.parametrize(
    ("fit", "sweep", "words", "message"),
    [
        (1, 0, [], "nothing has been fitted yet"),
        (2, 2, ["--cv", 3], "the folds were not finished"),
    ],
)
def test_interruptions_that_leave_nothing(run, data, monkeypatch, fit, sweep, words, message):
    Interrupting(monkeypatch, fit, sweep)
    assert message in run(*FIT, *QUICK, *words, code=130).err
    assert list(Path().glob("*.safetensors")) == []


def test_a_file_that_appears_during_the_fit_is_kept_and_so_is_the_model(run, data, monkeypatch):
    original = kernelpool.SharedKernelClassifier.fit

    def fitting(model, *words, **options):
        Path("d.safetensors").write_text("theirs")
        return original(model, *words, **options)

    monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)
    ran = run(*FIT, *QUICK, "--json")
    assert ran.json["model"] == "d-2.safetensors"
    assert "d.safetensors exists and is kept" in ran.json["warnings"][0]
    assert Path("d.safetensors").read_text() == "theirs"
    assert kernelpool.load("d-2.safetensors").n_features_in_ == 2


def test_a_model_remembers_what_a_missing_cell_is_called(run):
    rows = [
        [f"{i}" if i % 7 else "-99", "kA" if i % 5 == 0 else "red", "uv"[i % 2]] for i in range(80)
    ]
    write_csv("w.csv", ["a", "color", "t"], rows)
    words = ["--text", "missing=kA", "--text", "missing=-99"]
    run("fit", "w.csv", "-t", "t", *QUICK, "-o", "w.safetensors", *words)
    model = kernelpool.load("w.safetensors")
    assert model.columns_.missing == ("kA", "-99")
    x = model.columns_.encode(np.array(rows, object)[:, :2])
    assert np.isnan(x).sum(axis=0).tolist() == [12, 16]
    run("predict", "w.safetensors", "w.csv", "-o", "p.csv")
    with open("p.csv", newline="") as file:
        answers = [[float(row["probability_u"])] for row in csv.DictReader(file)]
    np.testing.assert_allclose(model.predict_proba("w.csv")[:, :1], answers, atol=1e-6)
