"""`evaluate`, `check`, `report`, `export` and `info`: numbers beside scikit-learn's and SciPy's."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, binomtest
from sklearn.metrics import (
    average_precision_score,
    recall_score,
    roc_auc_score,
)

import kernelpool
from kernelpool import inspection
from kernelpool.app.files import load_file

from .tables import NAMES, QUICK, colors, labels, table, write_csv

ROWS = colors(150, 9, 1.5)
X = table(ROWS)
Y = labels(ROWS)


@pytest.fixture
def model(blurred):
    return blurred[1]


@pytest.fixture
def new(tmp_path):
    return write_csv(tmp_path / "new.csv", NAMES, ROWS)


def test_evaluate_is_what_others_compute(run, model, new):
    found = run("evaluate", model, new, "--json").json
    fitted = kernelpool.load(model)
    probability = np.asarray(fitted.predict_proba(X))
    classes = fitted.classes_
    predicted = classes[probability.argmax(axis=1)]
    wrong = int((predicted != Y).sum())
    interval = binomtest(wrong, 150).proportion_ci(0.95, "exact")
    expected = [wrong / 150, *interval, beta.ppf(0.95, wrong + 1, 150 - wrong)]
    numbers = [found[name] for name in ("error", "low", "high", "certified")]
    assert_allclose(numbers, expected, rtol=1e-6)
    metrics = inspection.Metrics.of(np.searchsorted(classes, Y), probability).to_dict(0.05)
    for name in ("log_loss", "brier", "calibration_error"):
        assert found[name] == pytest.approx(metrics[name], rel=1e-12)
    assert found["confusion"] == metrics["confusion"]
    auc = roc_auc_score(Y, probability, multi_class="ovr")
    assert_allclose(found["auc"], auc, rtol=1e-12)
    assert found["rare"] == []
    tried = run("evaluate", model, new, "--json", "--tried", 10, "--confidence", 0.9).json
    bound = beta.ppf(1 - 0.1 / 10, wrong + 1, 150 - wrong)
    assert_allclose(tried["certified"], bound, rtol=1e-6)
    assert tried["high"] < found["high"]
    run("evaluate", model, new, "--at-most", found["certified"] + 0.001)
    ran = run("evaluate", model, new, "--at-most", found["certified"] - 0.001, code=7)
    assert "Not certified" in ran.out


def test_rare_classes_are_ranked(run, model, monkeypatch):
    rows = [row for row in ROWS if row[2] != "red"] + [row for row in ROWS if row[2] == "red"][:9]
    new = write_csv("few.csv", NAMES, rows)
    x = table(rows)
    y = labels(rows)
    monkeypatch.setattr(kernelpool.tables.files, "BLOCK", 200)
    (rare,) = run("evaluate", model, new, "--json").json["rare"]
    fitted = kernelpool.load(model)
    precision = average_precision_score(y == "red", np.asarray(fitted.predict_proba(x))[:, 2])
    recall = recall_score(y, fitted.predict(x), labels=["red"], average=None)[0]
    assert rare == pytest.approx(
        {"code": 2, "share": 9 / 109, "recall": recall, "average_precision": precision}
    )
    assert f"Rare classes: 'red' 8.3 % of the rows, recall {100 * recall:.1f} %" in (
        run("evaluate", model, new).text
    )


def test_rows_that_cannot_be_evaluated(run, model, blurred):
    assert "too low" in run("evaluate", model, blurred[0]).err
    other = write_csv("o.csv", NAMES, [[0, 0, "red"], [1, 1, "pink"]])
    ran = run("evaluate", model, other, code=3)
    message = "o.csv, row 2, column 'color': unknown class 'pink'; the model has 'blue', 'green'"
    assert message in ran.err
    one = run("evaluate", model, write_csv("one.csv", NAMES, [[0, 0, "red"]]))
    assert "AUC" not in one.out
    bare = write_csv("p.csv", ["a", "b"], [[0, 0]])
    assert "no column 'color' for the target" in run("evaluate", model, bare, code=3).err
    empty = write_csv("q.csv", NAMES, [[0, 0, ""]])
    assert "no row has a class" in run("evaluate", model, empty, code=3).err
    nothing = write_csv("r.csv", NAMES, [])
    assert "no rows below the header" in run("evaluate", model, nothing, code=3).err
    assert "and the data" in run("evaluate", model, code=2).err


def test_labels_of_any_form_are_known_again(run):
    """Classes of booleans and numbers, in text and in typed columns."""
    x = np.linspace(-1, 1, 60)
    for true, cells in (
        (x > 0, ["false", "True", "0", "1"]),
        ((x > 0).astype(int), ["0", "1.0"]),
        (np.where(x > 0, "1.5", "01"), ["01", "1.5"]),
    ):
        model = kernelpool.SharedKernelClassifier(2, training="em", random_state=0)
        kernelpool.save(model.fit(pa.table({"x": x}), true), "m.st")
        data = write_csv("d.csv", ["x", "y"], [[2 * (i % 2) - 1, c] for i, c in enumerate(cells)])
        assert run("evaluate", "m.st", data, "-t", "y", "--json").json["error"] == 0.0


def test_several_models_are_compared_by_mcnemars_test(run, model, blurred, new):
    words = ("-m", "shared-kernel", "--set", "training=em", "--set", "covariance_type=spherical")
    run("fit", blurred[0], "-t", "color", *words, "-o", "other.st")
    found = run("evaluate", model, "other.st", new, "--json").json
    (compared,) = found["models"][0]["comparisons"]
    pair = [kernelpool.load(m) for m in (model, "other.st")]
    expected = inspection.compare_models(*pair, X, Y)
    assert compared["p_value"] == pytest.approx(expected.p_value)
    assert compared["log_loss_difference"] == pytest.approx(expected.log_loss_difference)
    wrong = [m.predict(X) != Y for m in pair]
    assert [m["error"] for m in found["models"]] == [wrong[0].mean(), wrong[1].mean()]
    n = int(wrong[1].sum())  # two models: each bound is wrong with half of 0.05
    bound = beta.ppf(1 - 0.025, n + 1, 150 - n)
    assert found["models"][1]["certified"] == pytest.approx(bound)
    assert "Models on the same rows" in run("evaluate", model, "other.st", new).out
    two = [row for row in colors(90) if row[2] != "red"]
    run("fit", write_csv("two.csv", NAMES, two), "-t", "color", *QUICK, "-o", "two.st")
    assert "different classes" in run("evaluate", model, "two.st", new, code=4).text


def test_check_finds_what_changed(run, blurred, model, new):
    calm = run("check", model, new, "--json").json
    assert calm["moved"] == []
    assert calm["p_value"] > 0.01
    shifted = [[float(a) + 3, b, color] for a, b, color in ROWS]
    write_csv("moved.csv", NAMES, shifted)
    moved = run("check", model, "moved.csv", "--json", "--alarm", "0.5", code=7).json
    assert set(moved["moved"]) == {"a", "log-density"}
    ran = run("check", model, "moved.csv")
    assert "This is not reliable: features have moved" in ran.text
    features = load_file(model).reference.features
    assert all(set(vars(bins)) == {"name", "edges", "counts"} for bins in features)  # and no rows
    kernelpool.save(kernelpool.load(model), "bare.st")
    run("fit", blurred[0], "-t", "color", "-m", "rbf", "-o", "rbf.st")  # it knows no prior
    found = run("check", "rbf.st", new, "--json").json["class_frequencies"]
    assert_allclose([row["trained"] for row in found["classes"]], 1 / 3, atol=0.02)
    assert "has no counts of the rows of its fit" in run("check", "bare.st", new, code=4).text


def test_export_writes_a_graph_and_names_its_outputs(run, model):
    pytest.importorskip("onnx", reason="ONNX needs onnx")
    found = run("export", model, "--json", "-o", "m.onnx").json
    assert (found["onnx"], found["inputs"]) == ("m.onnx", ["X"])
    assert found["outputs"] == ["label", "probabilities", "log_density", "score_samples"]
    assert "exists already" in run("export", model, "-o", "m.onnx", code=6).err
    write_csv("d.csv", NAMES, [["" if i < 9 else a, b, c] for i, (a, b, c) in enumerate(ROWS)])
    for words, refused in ((QUICK, False), (("-m", "rbf"), True)):
        run("fit", "d.csv", "-t", "color", *words, "-f")
        ran = run("export", "d.safetensors", "-f")
        said = "The graph refuses rows with missing cells, which rows of the fit had in 'a'"
        assert (said in ran.err) == refused


def test_info_describes_a_model_file(run, fitted):
    text = run("info", fitted[1]).text
    assert "3 full Gaussian kernels" in text
    assert "Target: color" in text
    found = run("info", fitted[1], "--json").json
    assert found["classes"] == ["blue", "green", "red"]
    assert found["features"] == {"a": "number", "b": "number"}
    assert found["settings"]["n_kernels"] == 3
    assert found["held_out"]["n_rows"] == 18


def test_reports(run, model, new):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    named = write_csv("d.csv", ["id", *NAMES], [[f"k{i}", *row] for i, row in enumerate(ROWS)])
    ran = run("fit", named, "-t", "color", *QUICK, "--report", "r.html", "--keep", "id")
    assert "Report: r.html" in ran.out
    assert "(k" in Path("r.html").read_text(encoding="utf-8")
    assert "Report: report.html" in run("report", model, new).out
    assert "exists already" in run("report", model, new, code=6).err
    bare = write_csv("p.csv", ["id", "a", "b"], [[f"n{i}", *row[:2]] for i, row in enumerate(ROWS)])
    run("report", model, bare, "--keep", "id", "-o", "new.html")
    assert "(n1" in Path("new.html").read_text(encoding="utf-8")
    assert "no column 'x' to keep" in run("report", model, bare, "--keep", "x", "-f", code=3).err
