"""`kernelpool predict`: what the library answers, in every format, and rows that are rejected."""

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.json as pjson
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import kernelpool
from kernelpool import inspection
from kernelpool.app.files import load_file

from .tables import NAMES, QUICK, colors, features, labels, table, write_csv


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def expected(fitted):
    """The answers by the library itself."""
    model = kernelpool.load(fitted[1])
    x = table(colors())
    return model.predict(x), model.predict_proba(x), model.score_samples(x)


def check(found, expected):
    label, probability, density = expected
    names = ["label", "probability_blue", "probability_green", "probability_red", "log_density"]
    assert found.column_names == names
    assert found.column("label").to_pylist() == label.tolist()
    columns = np.column_stack([found.column(name).to_numpy() for name in names[1:4]])
    # of a probability of 1e-20 the logarithm has 46 times the rounding of one
    assert_allclose(columns, probability, rtol=1e-14, atol=1e-30)
    assert_allclose(found.column("log_density").to_numpy(), density, rtol=1e-14)


def test_every_format_holds_the_same_however_rows_are_cut(run, fitted, expected, monkeypatch):
    data, model = fitted
    for name in ("out.csv", "out.parquet", "out.feather", "out.jsonl"):
        run("predict", model, data, "-o", name)
    check(pcsv.read_csv("out.csv"), expected)
    check(pq.read_table("out.parquet"), expected)
    check(feather.read_table("out.feather"), expected)
    check(pjson.read_json("out.jsonl"), expected)
    check(pcsv.read_csv(io.BytesIO(run("predict", model, data).out.encode())), expected)
    monkeypatch.setattr(kernelpool.tables.files, "BLOCK", 200)
    run("predict", model, data, "-o", "cut.parquet")
    check(pq.read_table("cut.parquet"), expected)
    assert pq.ParquetFile("cut.parquet").num_row_groups > 1


def test_columns_are_matched_by_name(run, fitted, expected):
    rows = [[c, "z", b, a] for a, b, c in colors()]
    data = write_csv("turned.csv", ["color", "id", "b", "a"], rows)
    ran = run("predict", fitted[1], data, "-o", "out.parquet")
    check(pq.read_table("out.parquet"), expected)
    assert "the model does not use 'id'" in ran.err
    lacking = write_csv("d.csv", ["a", "c"], [[1, 2]])
    error = run("predict", fitted[1], lacking, "-o", "x.csv", "--json", code=3).json["error"]
    assert error["missing_columns"] == ["b"]
    message = "there is no column 'b' that the model was fitted to. There are 'a', 'c'."
    assert message in error["message"]
    named = write_csv("e.csv", ["a", "b", "label"], [[1, 2, 3]])
    assert "of its own" in run("predict", fitted[1], named, "--keep", "label", code=3).err
    assert "no column 'x' to keep" in run("predict", fitted[1], named, "--keep", "x", code=3).err


def test_cells_that_are_missing_or_unreadable(run, fitted):
    rows = [["", "4.9"], ["x", "4.9"], ["inf", "4.9"], ["", ""], [1, 2]]
    data = write_csv("d.csv", ["a", "b"], rows)
    ran = run("predict", fitted[1], data, "-o", "out.csv", "--json").json
    model = kernelpool.load(fitted[1])
    rows = read("out.csv")
    known = pa.table({"a": [np.nan, np.nan], "b": [4.9, np.nan]})
    found = np.array([[float(row[f"probability_{c}"]) for c in model.classes_] for row in rows])
    probability = np.asarray(model.predict_proba(known))
    assert_allclose(found[:4], probability[[0, 0, 0, 1]], rtol=1e-12)
    assert_allclose(found[3], np.ones(3) / 3, atol=0.02)  # the class frequencies
    assert ran["unreadable"] == {"a": 2}
    assert ran["rows_with_missing_cells"] == 4
    ran = run("predict", fitted[1], data)
    assert "2 cells that cannot be read are taken as missing: 'a' 2." in ran.err
    data = write_csv("d.csv", ["a", "b"], [["1,5", "4.9"]])
    assert "--text decimal=," in run("predict", fitted[1], data, code=3).err
    run("predict", fitted[1], data, "--text", "decimal=,")


def test_a_later_batch_may_hold_no_number(run, fitted, monkeypatch):
    monkeypatch.setattr(kernelpool.tables.files, "BLOCK", 200)
    good = [[1, "4.9"]] * 100
    data = write_csv("d.csv", ["a", "b"], [*good, *[["x", "4.9"]] * 100])
    found = run("predict", fitted[1], data, "-o", "out.csv", "--json").json
    assert (found["n_rows"], found["unreadable"]) == (200, {"a": 100})
    data = write_csv("e.csv", ["a", "b"], [*[["x", "4.9"]] * 100, *good])
    assert "e.csv, row 1, column 'a': " in run("predict", fitted[1], data, code=3).err


def test_rejected_rows_have_no_label(run, blurred):
    new = write_csv("new.csv", ["a", "b"], [[0.75, 0.0], [-1.5, -1], [900, -900]])
    run("predict", blurred[1], new, "-o", "out.parquet", "--ambiguity", 0.2, "--novelty", 0.02)
    found = pq.read_table("out.parquet")
    assert found.column("decision").to_pylist() == ["ambiguous", "accepted", "novel"]
    alone = write_csv("alone.csv", ["a", "b"], [[0.75, 0.0]])
    assert "most rows are ambiguous" in run("predict", blurred[1], alone, "--ambiguity", 0.2).err
    assert found.column("label").to_pylist() == [None, "red", None]
    both = run("predict", blurred[1], new, "--ambiguity", "0.9", "-q").out.splitlines()
    assert [line.split(",")[1] for line in both[1:]] == ["accepted"] * 3
    alone = run("predict", blurred[1], new, "--reject")  # of 80 rows for a rate of 0.01
    assert [line.split(",")[1] for line in alone.out.splitlines()[3:]] == ["novel"]
    assert "at least 99 held-out rows" in alone.err


def test_novelty_is_the_share_of_held_out_rows_below_the_threshold(run, blurred):
    """j = floor(0.1 (n + 1)): the rows below the j-th lowest of n held-out densities are novel."""
    score = load_file(blurred[1]).calibration.score
    n = len(score)
    assert n in (79, 80, 81)
    j = int(0.1 * (n + 1))
    x = table(colors(400, 1, 1.5))
    model = kernelpool.load(blurred[1])
    novel = int((np.asarray(model.score_samples(x)) < np.sort(score)[j - 1]).sum())
    found = run("evaluate", *blurred[::-1], "--novelty", 0.1, "--json").json
    assert found["decisions"]["novel"] == novel > 0
    assert (
        "--novelty must lie in [0, 1)" in run("predict", *blurred[::-1], "--novelty", 1, code=2).err
    )


def test_what_cannot_reject_says_so(run):
    data = write_csv("d.csv", NAMES, colors())
    run("fit", data, "-t", "color", "-m", "rbf", "--holdout", 0)
    ran = run("predict", "d.safetensors", data, "--sets", 0.1, code=4)
    assert "not possible: the model" in ran.err
    ran = run("predict", "d.safetensors", data, "--novelty", 0.1, code=2)
    assert "--novelty needs a classifier with densities" in ran.err
    ran = run("predict", "d.safetensors", data, "--reject")
    assert "RBFNetworkClassifier has no densities (score_samples), so that no row" in ran.err
    run("fit", data, "-t", "color", "-o", "all.st", *QUICK, "--holdout", 0)
    run("predict", "all.st", data, "--novelty", 0.1)  # by rows drawn from the model


def test_models_that_were_saved_from_python(run):
    rows = colors()
    x = table(rows)
    y = labels(rows)
    settings = {"training": "em", "random_state": 0}
    inner = kernelpool.SharedKernelClassifier(3, **settings).fit(x, y)
    wary = kernelpool.RejectClassifier(inner, ambiguity=0.0, novelty=None).fit(x, y)
    kernelpool.save(wary, "wary.st")
    data = write_csv("d.csv", ["a", "b"], [row[:2] for row in rows])
    ran = run("predict", "wary.st", data)
    decided = [line.split(",")[1] for line in ran.out.splitlines()[1:]]
    assert ("most rows are ambiguous" in ran.err) == (decided.count("ambiguous") > len(rows) / 2)
    refused = wary.predict(x) == "ambiguous"
    assert decided == np.where(refused, "ambiguous", "accepted").tolist()
    assert "ambiguous" in decided
    bare = kernelpool.SharedKernelClassifier(3, **settings).fit(features(rows), y)
    kernelpool.save(bare, "bare.st")
    found = run("predict", "bare.st", data).out.splitlines()[1:]
    assert [line.split(",")[0] for line in found] == bare.predict(features(rows)).tolist()
    full = write_csv("full.csv", ["p", "q", "color"], rows)
    assert "2 columns without names; there are 3" in run("predict", "bare.st", full, code=3).text
    assert "pass --target" in run("evaluate", "bare.st", full, code=2).err
    found = run("evaluate", "bare.st", full, "--target", "color", "--json").json
    assert found["error"] == np.mean(bare.predict(features(rows)) != y)


def test_not_a_model(run, fitted):
    data, model = fitted
    Path("text.st").write_text("hello")
    for words, message in (
        (("text.st", data), "is not a model file"),
        ((data, model), "the model comes first, then the data"),
        (("nothing.st", data), "no such file"),
        ((".", data), ""),
    ):
        assert message in run("predict", *words, code=4).err


def test_outputs(run, fitted):
    data, model = fitted
    assert "name it .csv" in run("predict", model, data, "-o", "out.xls", code=2).err
    words = ("predict", model, data, "-o", "out.xls", "--format", "csv")
    run(*words)
    assert "exists already" in run(*words, code=6).err
    assert "--format jsonl" in run("predict", model, data, "--json", code=2).out
    found = run("predict", model, data, "-o", "o.csv", "--json").json
    assert found["labels"] == {"blue": 30, "green": 30, "red": 30}
    assert not list(Path().glob("*.part"))


def test_sets_hold_the_true_class(run, blurred):
    new = write_csv("new.csv", NAMES, colors(300, 9, 1.5))
    run("predict", blurred[1], new, "-o", "sets.csv", "--sets", "0.2", "--keep", "color")
    inside = np.mean([row["color"] in row["set"].split("|") for row in read("sets.csv")])
    assert 0.66 < inside < 0.95  # 80 calibration rows: 0.8 with a standard deviation of 0.045
    run("predict", blurred[1], new, "-o", "classes.csv", "--sets", "0.2", "--per-class")
    assert [r["set"] for r in read("classes.csv")] != [r["set"] for r in read("sets.csv")]
    far = write_csv("far.csv", NAMES, [[1e4, 1e4, "red"]])
    run("predict", blurred[1], far, "-o", "far-sets.csv", "--sets", "0.2")
    assert read("far-sets.csv")[0]["set"] == ""
    assert "between 0 and 1" in run("predict", blurred[1], new, "--sets", "0", code=2).text
    rows = [[a, b, c.replace("red", "b|\\c")] for a, b, c in colors(120, 0, 0.3)]
    run("fit", write_csv("bar.csv", NAMES, rows), "-t", "color", *QUICK)
    ran = run("predict", "bar.safetensors", "bar.csv", "-o", "bars.csv", "--sets", "0.01")
    assert "Warning: error=0.01 needs 99 calibration rows; there are 24" in ran.err
    assert {r["set"] for r in read("bars.csv")} == {r"blue|b\|\\c|green"}
    words = ("--sets", "0.1", "--class-prior", "balanced")
    assert "leave --class-prior out" in run("predict", blurred[1], new, *words, code=2).text


def test_other_class_frequencies(run, blurred):
    path = blurred[1]
    rows = colors(300, 9, 1.5)
    new = write_csv("new.csv", NAMES, rows)
    model = kernelpool.load(path)
    for text, prior in (("balanced", "balanced"), ("red=0.9", {"red": 0.9})):
        run("predict", path, new, "-o", "p.csv", "--class-prior", text, "--force")
        expected = inspection.with_class_prior(model, prior).predict_proba(table(rows))
        found = [[float(r[f"probability_{c}"]) for c in model.classes_] for r in read("p.csv")]
        assert_allclose(found, expected, rtol=1e-9)
    assert "CLASS=SHARE pairs" in run("predict", path, new, "--class-prior", "some", code=2).text
    assert "pink" in run("predict", path, new, "--class-prior", "pink=0.5", code=2).text


def test_unknown_categories_are_counted(run):
    rows = [[a, "xy"[i % 2], c] for i, (a, _, c) in enumerate(colors())]
    write_csv("w.csv", NAMES, rows)
    run("fit", "w.csv", "-t", "color", *QUICK)
    new = write_csv("new.csv", ["a", "b"], [[1, "x"], [1, "z"], [1, ""]])
    found = run("predict", "w.safetensors", new, "-o", "new-out.csv", "--json").json
    assert found["unknown"] == {"b": 1}
