"""`check`, `compare`, `predict --explain --sets --class-prior` and `evaluate --importance`, beside what Python answers."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binomtest

import kernelpool
from kernelpool import questions
from kernelpool.app.files import read_header

from .tables import QUICK, blurred, features, write_csv

COLUMNS = ["a", "b", "color"]


@pytest.fixture
def model(run):
    """A model file, the rows of its fit, and rows that it has not seen."""
    data = write_csv("d.csv", COLUMNS, blurred(400))
    run("fit", data, "-t", "color", *QUICK, "-o", "m.st")
    return "m.st", data, write_csv("new.csv", COLUMNS, blurred(300, seed=9))


def table(rows):
    x = features(rows)
    return pa.table({"a": x[:, 0], "b": x[:, 1]})


def read(path):
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_check_finds_what_moved_and_what_did_not(run, model):
    path, _, new = model
    calm = run("check", path, new, "--json").json
    assert calm["moved"] == []
    assert calm["p_value"] > 0.01
    shifted = [[float(a) + 3, b, color] for a, b, color in blurred(300, seed=9)]
    moved = run(
        "check", path, write_csv("moved.csv", COLUMNS, shifted), "--json", "--alarm", "0.5", code=7
    ).json
    assert "a" in moved["moved"]
    assert "log-density" in moved["moved"]
    assert "b" not in moved["moved"]
    told = run("check", path, "moved.csv")
    assert "What moved most" in told.out
    assert "Class frequencies" in told.out
    # the p-values are those of Python, from the very reference that the file holds
    reference = questions.DriftReference.from_dict(read_header(path)["summary"]["reference"])
    report = reference.compare(*reference.count(table(shifted), kernelpool.load(path)))
    assert [part["p_value"] for part in moved["parts"]] == [part.p_value for part in report.parts]


def test_a_reference_holds_no_rows(run, model):
    told = read_header(model[0])["summary"]["reference"]
    assert set(told) == {"bins", "n_rows", "counts", "density"}
    assert all(len(bins["edges"]) <= 9 for bins in told["bins"])
    assert told["n_rows"] == 319
    assert told["density"]["n_rows"] == 81


def test_check_counts_frequencies(run, model):
    rows = [row for row in blurred(600, seed=5) if row[2] != "red"] + [
        row for row in blurred(600, seed=5) if row[2] == "red"
    ][:5]
    found = run("check", model[0], write_csv("few.csv", COLUMNS, rows), "--json").json[
        "class_frequencies"
    ]
    red = next(one for one in found["classes"] if one["label"] == "red")
    assert red["low"] <= 5 / len(rows) + 0.02
    assert red["share"] < 0.1 < red["trained"]
    assert found["p_value"] < 1e-3


def test_check_needs_a_reference(run, model):
    fitted = kernelpool.load(model[0])
    kernelpool.save(fitted, "bare.st")
    assert (
        "does not say what the rows of its fit were like"
        in run("check", "bare.st", model[2], code=4).text
    )


def test_compare_is_mcnemars_test(run, model):
    path, data, new = model
    run(
        "fit",
        data,
        "-t",
        "color",
        "--model",
        "shared-kernel",
        "--kernels",
        "3",
        "--sharing",
        "1",
        "-o",
        "other.st",
        "--seed",
        "1",
    )
    found = run("compare", path, "other.st", new, "--json").json
    rows = blurred(300, seed=9)
    y = np.array([row[2] for row in rows])
    wrong = [kernelpool.load(name).predict(table(rows)) != y for name in (path, "other.st")]
    only = (wrong[0] & ~wrong[1]).sum(), (wrong[1] & ~wrong[0]).sum()
    assert (found["only_first"], found["only_second"]) == only
    assert found["errors"] == [wrong[0].mean(), wrong[1].mean()]
    if sum(only):
        assert found["p_value"] == pytest.approx(binomtest(int(only[0]), int(sum(only))).pvalue)
    assert found["n_rows"] == 300
    told = run("compare", path, "other.st", data)
    assert "held out" in told.err
    assert "First:" in told.out
    assert "Log-loss" in told.out
    assert (
        "reads DATA once for each model"
        in run("compare", path, "other.st", "-", code=2, input="").text
    )


def test_compare_wants_the_same_classes(run, model):
    two = [row for row in blurred(300) if row[2] != "red"]
    run("fit", write_csv("two.csv", COLUMNS, two), "-t", "color", *QUICK, "-o", "two.st")
    assert "know different classes" in run("compare", model[0], "two.st", model[2], code=4).text


def test_predict_explains(run, model):
    path, _, new = model
    run("predict", path, new, "-o", "why.csv", "--explain")
    rows = read("why.csv")
    (first,) = questions.explain(kernelpool.load(path), table(blurred(300, seed=9)).slice(0, 1))
    assert rows[0]["why"].startswith(
        f"against {first.against} {first.log_odds:+.2f}: {first.features[0].name} "
    )
    assert all(row["why"].count(",") == 1 for row in rows)  # two features


def test_predict_names_sets_with_a_promise(run, model):
    path, _, new = model
    run("predict", path, new, "-o", "sets.csv", "--sets", "0.2", "--keep", "color")
    rows = read("sets.csv")
    inside = np.mean([row["color"] in row["set"].split("|") for row in rows])
    assert 0.68 < inside < 0.95  # 80 calibration rows: 0.8 with a deviation of 0.045
    sizes = {len(row["set"].split("|")) for row in rows if row["set"]}
    run("predict", path, new, "-o", "classes.csv", "--sets", "0.2", "--per-class")
    assert sizes
    far = write_csv("far.csv", COLUMNS, [[1e4, 1e4, "red"]])
    run("predict", path, far, "-o", "far-sets.csv", "--sets", "0.2")
    assert read("far-sets.csv")[0]["set"] == ""
    assert "between 0 and 1" in run("predict", path, new, "--sets", "0", code=2).text
    assert (
        "leave --class-prior out"
        in run("predict", path, new, "--sets", "0.1", "--class-prior", "balanced", code=2).text
    )
    run("fit", model[1], "-t", "color", *QUICK, "-o", "all.st", "--holdout", "0")
    assert "without rows held out" in run("predict", "all.st", new, "--sets", "0.1", code=4).text


def test_predict_takes_other_frequencies(run, model):
    path, _, new = model
    fitted, x = kernelpool.load(path), table(blurred(300, seed=9))
    classes = [str(label) for label in fitted.classes_]
    for text, prior in (("balanced", "balanced"), (f"{classes[0]}=0.9", {classes[0]: 0.9})):
        run("predict", path, new, "-o", "p.csv", "--class-prior", text, "--force")
        expected = questions.with_class_prior(fitted, prior).predict_proba(x)
        found = [[float(row[f"probability_{label}"]) for label in classes] for row in read("p.csv")]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    ran = run("predict", path, new, "-o", "p.csv", "--class-prior", "estimated", "--force")
    assert "Class frequencies of 300 rows" in ran.err
    assert "CLASS=SHARE pairs" in run("predict", path, new, "--class-prior", "some", code=2).text
    assert (
        "none of the classes" in run("predict", path, new, "--class-prior", "pink=0.5", code=2).text
    )
    assert (
        "reads DATA twice"
        in run("predict", path, "-", "--class-prior", "estimated", code=2, input="").text
    )


def test_evaluate_says_which_features_matter(run, model):
    path, data, new = model
    found = run("evaluate", path, new, "--importance", "--json").json["importance"]
    rows = blurred(300, seed=9)
    expected = questions.feature_importance(
        kernelpool.load(path), table(rows), [row[2] for row in rows]
    )
    np.testing.assert_allclose(found["importance"], expected.importance)
    assert found["names"] == ["a", "b"]
    held = run("evaluate", path, data, "--importance", "--json").json
    assert held["importance"]["n_rows"] == held["n_rows"] == 81
    assert "Rise of the log-loss" in run("evaluate", path, new, "--importance").out
    assert (
        "reads DATA twice"
        in run("evaluate", path, "-", "--importance", code=2, input="a,b,color\n1,2,red\n").text
    )


def test_words_are_watched_and_explained(run):
    rng = np.random.default_rng(0)
    rows = [
        [repr(float(v)), w, "up" if (v > 0) == (w == "x") else "down"]
        for v, w in zip(rng.normal(size=300), rng.choice(["x", "y"], 300), strict=True)
    ]
    data = write_csv("w.csv", ["v", "word", "kind"], rows)
    run(
        "fit",
        data,
        "-t",
        "kind",
        "--encode",
        "--model",
        "shared-kernel",
        "--kernels",
        "8",
        "-o",
        "w.st",
    )
    other = write_csv("w2.csv", ["v", "word", "kind"], [[v, "x", kind] for v, _, kind in rows])
    assert run("check", "w.st", other, "--json").json["moved"][0] == "word"
    run("predict", "w.st", data, "-o", "w-why.csv", "--explain")
    assert "word" in read("w-why.csv")[0]["why"]


def test_explore_writes_a_page_on_rows_without_labels(run, model):
    path, _, new = model
    rows = [[f"id-{i}", a, b] for i, (a, b, _) in enumerate(blurred(30, seed=3))]
    data = write_csv("plain.csv", ["id", "a", "b"], rows)
    assert run("explore", path, data, "--keep", "id", "--no-open", "--json").json == {
        "page": "explore.html",
        "n_rows": 30,
    }
    page = Path("explore.html").read_text(encoding="utf-8")
    assert "id-7" in page
    assert "plain.csv seen by m.st" in page
    assert "exists already" in run("explore", path, data, "--drop", "id", "--no-open", code=6).text
    run("explore", path, new, "--no-open", "-o", "labeled.html")
    assert "&#34;true&#34;:[" in Path("labeled.html").read_text(encoding="utf-8")


def test_compare_and_report_write_pages(run, model):
    path, data, new = model
    run("fit", data, "-t", "color", *QUICK, "-o", "other.st", "--seed", "3")
    run("compare", path, "other.st", new, "--report", "both.html")
    page = Path("both.html").read_text(encoding="utf-8")
    assert page.count('class="explorer"') == 2
    compared = run("compare", path, "other.st", new, "--json").json
    assert f"… and {compared['n_different'] - 50} more" in page or compared["n_different"] <= 50
    parted = page[page.index("Rows on which they disagree") : page.index("<main")]
    assert parted.count('<tr><th scope="row"') == min(50, compared["n_different"])
    assert f'<span class="name">{compared["log_losses"][1]:.4f}</span>' in page
    assert "Log-loss" in page
    rows = [[f"id-{i}", *row] for i, row in enumerate(blurred(400))]
    kept = write_csv("kept.csv", ["id", *COLUMNS], rows)
    run("report", path, kept, "--keep", "id", "-o", "kept.html")
    assert (
        len(set(re.findall(r"id-\d+", Path("kept.html").read_text(encoding="utf-8")))) == 81
    )  # those held out
    run("fit", kept, "-t", "color", *QUICK, "--keep", "id", "-o", "kept.st", "--report", "fit.html")
    assert len(set(re.findall(r"id-\d+", Path("fit.html").read_text(encoding="utf-8")))) == 81
    assert (
        run("predict", "kept.st", new, "--json", "-o", "kept-answers.csv").json["n_rows"] > 0
    )  # no column 'id' is asked for
    assert (
        "pass --report"
        in run("fit", kept, "-t", "color", *QUICK, "--keep", "id", "-o", "x.st", code=2).text
    )
    assert (
        "reads DATA twice"
        in run(
            "report",
            path,
            "-",
            "--keep",
            "id",
            "-o",
            "x.html",
            code=2,
            input="a,b,id,color\n1,2,3,red\n",
        ).text
    )
