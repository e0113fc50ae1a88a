"""`kernelpool fit`: what is saved is what the estimator gives, and the error is that of rows it has not seen."""

import importlib
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer
from scipy.stats import binomtest

import kernelpool
from kernelpool.app.cli import fit as fit_command
from kernelpool.app.cli import work
from kernelpool.app.files import read_header
from kernelpool.inspection.pipeline import unwrap
from kernelpool.training.held_out import stratified_holdout

from .tables import QUICK, blurred, colors, features, write_csv


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "data.csv", ["a", "b", "color"], blurred())


def split(rows, seed):
    codes = np.unique([row[2] for row in rows], return_inverse=True)[1]
    test = stratified_holdout(codes, 0.2, seed)
    return np.flatnonzero(~test), np.flatnonzero(test)


def test_the_saved_model_is_the_estimator_fitted_to_the_rows_not_held_out(run, data):
    rows = blurred()
    x, y = features(rows), np.array([row[2] for row in rows])
    ran = run(
        "fit", data, "--target", "color", "-m", "shared-kernel", "-k", 5, "--seed", 3, "--json"
    )
    train, test = split(rows, seed=3)
    expected = kernelpool.SharedKernelClassifier(5, random_state=3).fit(x[train], y[train])
    model = kernelpool.load("data.safetensors")
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-12)
    wrong = int((expected.predict(x[test]) != y[test]).sum())
    interval = binomtest(wrong, len(test)).proportion_ci(0.95, "exact")
    found = ran.json["held_out"]
    assert (found["n_errors"], found["n_rows"]) == (wrong, 60)
    np.testing.assert_allclose([found["low"], found["high"]], interval, rtol=1e-6)
    assert wrong > 0


def test_words_for_people(run, data):
    ran = run("fit", data, "--target", "color", *QUICK)
    assert "300 rows, 2 features; 'color': blue 100, green 100, red 100" in ran.err
    assert "Error by rows held out:" in ran.out
    assert "95 % interval" in ran.out
    assert "Model: data.safetensors" in ran.out


def test_the_header_says_how_the_model_was_made(run, data):
    run("fit", data, "--target", "color", *QUICK, "--seed", 5)
    header = read_header("data.safetensors")
    assert header["feature_names"] == ["a", "b"]
    summary = header["summary"]
    assert summary["target"] == "color"
    assert summary["seed"] == 5
    assert summary["split"] == {"share": 0.2, "seed": 5, "n_rows": 60}
    assert summary["n_rows"] == 300
    assert summary["made_by"] == "kernelpool fit"


def test_cross_validation_judges_every_row_and_fits_to_all(run, data):
    ran = run("fit", data, "--target", "color", *QUICK, "--cv", 3, "--json")
    assert ran.json["held_out"]["n_rows"] == 300
    assert ran.json["judged_by"] == "3 folds"
    rows = blurred()
    x, y = features(rows), np.array([row[2] for row in rows])
    expected = kernelpool.SharedKernelClassifier(3, random_state=0).fit(x, y)
    np.testing.assert_allclose(
        kernelpool.load("data.safetensors").means_, expected.means_, rtol=1e-12
    )
    assert read_header("data.safetensors")["summary"]["split"] is None


def test_refit_and_no_holdout_fit_to_all_rows(run, data):
    run("fit", data, "--target", "color", *QUICK, "--refit", "-o", "again.st")
    ran = run("fit", data, "--target", "color", *QUICK, "--holdout", 0, "-o", "all.st")
    assert "not measured" in ran.out
    again, everything = kernelpool.load("again.st"), kernelpool.load("all.st")
    np.testing.assert_array_equal(again.means_, everything.means_)
    assert read_header("all.st")["summary"]["held_out"] is None
    assert read_header("again.st")["summary"]["held_out"]["n_rows"] == 60


@pytest.mark.parametrize(
    ("name", "words", "kind", "scaled"),
    [
        ("shared-kernel", ["--covariance", "full"], "SharedKernelClassifier", False),
        (
            "shared-kernel",
            ["--covariance", "full", "--scale", "standard"],
            "SharedKernelClassifier",
            True,
        ),
        ("shared-kernel", ["--scale", "none"], "SharedKernelClassifier", False),
        ("sharing-average", ["--sharing", "0,1", "-k", 3], "SharingAverageClassifier", False),
        ("shared-kernel", ["--covariance", "spherical"], "SharedKernelClassifier", False),
        (
            "shared-kernel",
            ["--covariance", "spherical", "--set", "standardize=false"],
            "SharedKernelClassifier",
            True,
        ),
        ("rbf", ["-k", 4], "RBFNetworkClassifier", False),
        ("neurons", ["-k", 2], "CompetitiveNeuronsClassifier", False),
        ("parzen", ["--set", "kernel=gaussian"], "ParzenClassifier", False),
        ("reduced-parzen", ["-k", 9], "ReducedParzenClassifier", False),
    ],
)
def test_every_model_fits_is_scaled_where_distances_matter_and_predicts(
    run, data, name, words, kind, scaled
):
    assert run("fit", data, "-t", "color", "-m", name, *words, "--json").json["estimator"] == kind
    model = kernelpool.load("data.safetensors")
    assert hasattr(model, "steps") == scaled
    run("predict", "data.safetensors", data, "-o", "out.csv")


def test_settings_reach_the_estimator_as_json(run, data):
    words = [
        "--set",
        "max_iter=7",
        "--set",
        "acceleration=null",
        "--set",
        "init=random",
        "--set",
        "tol=1e-3",
    ]
    run("fit", data, "-t", "color", *QUICK, "--covariance", "diag", "--sharing", 0.25, *words)
    model = kernelpool.load("data.safetensors")
    found = (
        model.max_iter,
        model.acceleration,
        model.init,
        model.tol,
        model.sharing,
        model.covariance_type,
    )
    assert found == (7, None, "random", 1e-3, 0.25, "diag")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "max_iters=7"], "has no setting 'max_iters'"),
        (["--set", "max_iter"], "--set takes name=value"),
        (["--set", "random_state=3"], "use --seed"),
        (["--set", "callback=print"], "not possible on the command line"),
        (["--set", 'max_iter={"a": 1}'], "must be a number, a word"),
        (["--sharing", "much"], "takes a number from 0 to 1"),
        (["--sharing", "0,1"], "only with --model sharing-average"),
    ],
)
def test_wrong_settings_are_refused_before_data_are_read(run, words, said):
    assert said in run("fit", "no such file.csv", "-t", "color", *QUICK, *words, code=2).err


def test_settings_are_never_run_as_code(run, data, tmp_path):
    hit = tmp_path / "hit"
    code = f"__import__('pathlib').Path({str(hit)!r}).touch()"
    run("fit", data, "-t", "color", *QUICK, "--set", f"max_iter={code}", code=5)
    assert not hit.exists()


def test_what_the_estimator_refuses_is_told_without_a_traceback(run, data):
    ran = run("fit", data, "-t", "color", "-m", "shared-kernel", "-k", 4000, code=5)
    assert "n_kernels=4000 is more than the 240 rows" in ran.text
    assert (
        run("fit", data, "-t", "color", *QUICK, "--sharing", 3, code=5).err.count(
            "sharing must lie in [0, 1]"
        )
        == 1
    )


def test_warnings_of_the_fit_are_told(run, data):
    ran = run("fit", data, "-t", "color", *QUICK, "--set", "max_iter=1", "--set", "tol=0", "--json")
    assert any("max_iter=1" in text for text in ran.json["warnings"])


def test_words_become_categories_inside_the_model(run, tmp_path):
    rows = [[a, "yes" if color == "red" else "no", color] for a, _, color in colors()]
    data = write_csv(tmp_path / "data.csv", ["a", "sort", "color"], rows)
    ran = run("fit", data, "-t", "color", *QUICK, "--columns", "sort=number", code=3)
    assert "row 1, column 'sort': 'yes'" in ran.err
    assert (
        "--columns takes COLUMN=number or COLUMN=words"
        in run("fit", data, "-t", "color", "--columns", "sort", code=2).err
    )
    assert (
        "no column 'sorte' whose kind is given"
        in run("fit", data, "-t", "color", "--columns", "sorte=words", code=3).err
    )
    ran = run("fit", data, "-t", "color", *QUICK)
    assert "Words: 'sort' (2 words). Numbers: 'a'. --columns corrects it." in ran.err
    found = run("predict", "data.safetensors", data, "--format", "jsonl").out.splitlines()
    right = [f'"label": "{row[2]}"' in line for row, line in zip(rows, found, strict=True)]
    assert np.mean(right) > 0.6  # the word alone tells red, the number most of the rest
    assert '"red"' in found[0]
    new = write_csv(tmp_path / "new.csv", ["a", "sort"], [["1.5", "perhaps"], ["1", "no"]])
    assert (
        "column 'sort': 1 row with words that were not there"
        in run("predict", "data.safetensors", new).err
    )
    drawn = run("sample", "data.safetensors", "-n", 5).out.splitlines()
    assert drawn[0] == "a,sort,color"
    assert {line.split(",")[1] for line in drawn[1:]} <= {"yes", "no"}


@pytest.mark.parametrize(
    "kind", [["--scale", "none"], ["--covariance", "full"], ["--model", "neurons"]]
)
def test_numbers_beside_words_need_no_scale(run, tmp_path, kind):
    """They are handed on as they are in the file."""
    rows = [[a, "yes" if color == "red" else "no", color] for a, _, color in colors()]
    data = write_csv(tmp_path / "data.csv", ["a", "sort", "color"], rows)
    run("fit", data, "-t", "color", *QUICK, *kind, "--encode", "--holdout", 0)
    model = kernelpool.load("data.safetensors")
    found = unwrap(model)
    x = found.transform(
        pa.table({"a": [float(row[0]) for row in rows], "sort": [row[1] for row in rows]})
    )
    np.testing.assert_array_equal(x[:, 0], [float(row[0]) for row in rows])
    assert x.shape == (len(rows), 2)  # words by their codes
    run("predict", "data.safetensors", data, "-o", "out.csv")


def test_many_different_words_are_no_categories(run, tmp_path):
    rows = [[a, f"name {i // 3}", color] for i, (a, _, color) in enumerate(colors(900))]
    data = write_csv(tmp_path / "data.csv", ["a", "who", "color"], rows)
    ran = run("fit", data, "-t", "color", *QUICK, "--encode", code=3)
    assert "'who' has 300 different words" in ran.err
    assert "Leave it out with --drop who." in ran.err
    run("fit", data, "-t", "color", *QUICK, "--encode", "--drop", "who")
    rows = [[a, f"name {i}", color] for i, (a, _, color) in enumerate(colors(300))]
    data = write_csv(tmp_path / "names.csv", ["a", "who", "color"], rows)
    ran = run("fit", data, "-t", "color", *QUICK, "--encode")
    assert "column 'who' is left out: it has a different word in nearly every row" in ran.err
    assert run("predict", "names.safetensors", data).err.count("does not use") == 0


def test_rows_without_a_class(run, tmp_path):
    rows = colors()
    rows[4][2] = rows[7][2] = ""
    data = write_csv(tmp_path / "data.csv", ["a", "b", "color"], rows)
    ran = run("fit", data, "-t", "color", *QUICK, code=3)
    assert "2 rows of 90 without a class in column 'color'" in ran.err
    assert "row 5" in ran.err
    assert (
        run("fit", data, "-t", "color", *QUICK, "--unlabeled", "drop", "-o", "d.st", "--json").json[
            "n_rows"
        ]
        == 88
    )
    assert (
        run("fit", data, "-t", "color", *QUICK, "--unlabeled", "use", "-o", "u.st", "--json").json[
            "n_rows"
        ]
        == 90
    )
    assert kernelpool.load("u.st").classes_.tolist() == ["blue", "green", "red"]
    assert "counted are the 18 that were held out" in run("evaluate", "d.st", data).err
    assert "counted are the 18 that were held out" in run("evaluate", "u.st", data).err
    ran = run(
        "fit", data, "-t", "color", "-m", "neurons", "--unlabeled", "use", "-o", "n.st", code=5
    )
    assert "neurons need labels" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "parzen"],
        ["-m", "reduced-parzen", "--kernels", 20],
        ["-m", "rbf", "--kernels", 20],
        [
            "-m",
            "rbf",
            "--kernels",
            6,
            "--set",
            "training=two_stage",
            "--set",
            "covariance_type=diag",
        ],
        ["-m", "neurons", "--kernels", 3, "--set", "max_iter=200"],
        ["-m", "sharing-average", "--kernels", 3],
        ["-m", "shared-kernel", "--kernels", 3, "--set", "add_indicator=true"],
    ],
)
def test_every_model_takes_words_and_missing_cells(run, tmp_path, words):
    rows = [[a, b, "yes" if color == "red" else "no", color] for a, b, color in colors()]
    for i in range(0, 90, 7):
        rows[i][i % 3] = ""
    data = write_csv(tmp_path / "data.csv", ["a", "b", "sort", "color"], rows)
    ran = run("fit", data, "-t", "color", *words)
    assert "Words: 'sort' (2 words). Numbers: 'a', 'b'." in ran.err
    assert (
        run("predict", "data.safetensors", data, "-o", "out.csv", "--json").json[
            "with_missing_cells"
        ]
        == 13
    )
    named = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert sum(name == row[-1] for name, row in zip(named, rows, strict=True)) > 65
    run("info", "data.safetensors")


def test_missing_cells_of_numbers_and_words_are_learned_from_and_judged(run, tmp_path):
    rows = [
        [a, b, "yes" if color == "red" else "no", str(i % 2), color]
        for i, (a, b, color) in enumerate(colors())
    ]
    rows[1][0], rows[2][0], rows[2][1], rows[5][2] = "", "NA", "?", ""
    data = write_csv(tmp_path / "data.csv", ["a", "b", "sort", "code", "color"], rows)
    ran = run("fit", data, "-t", "color", *QUICK, "--columns", "code=words", "--report", "r.html")
    assert "Words: 'sort' (2 words), 'code' (2 words). Numbers: 'a', 'b'." in ran.err
    assert "4 missing cells in 3 of 90 rows: 'a' (2, first in" in ran.err
    model = kernelpool.load("data.safetensors")
    table = pa.table({"a": [1.0, None], "b": [0.0, 1.0], "sort": [None, "no"], "code": ["0", "1"]})
    x = unwrap(model).transform(table)
    np.testing.assert_array_equal(x, [[1, 0, np.nan, 0], [np.nan, 1, 0, 1]])
    assert (
        run("predict", "data.safetensors", data, "-o", "out.csv", "--json").json[
            "with_missing_cells"
        ]
        == 3
    )
    found = Path("out.csv").read_text().splitlines()
    assert all(line.split(",")[0] for line in found)  # every row has a label
    told = run("evaluate", "data.safetensors", data, "--json").json
    assert told["counted"] == "rows held out"
    whole = [
        row if all(row) and "NA" not in row else ["0", "0", "no", "0", row[-1]] for row in rows
    ]
    write_csv(tmp_path / "whole.csv", ["a", "b", "sort", "code", "color"], whole)
    run(
        "fit",
        tmp_path / "whole.csv",
        "-t",
        "color",
        "-m",
        "neurons",
        "--set",
        "missing=error",
        "-o",
        "n.st",
    )
    assert (
        "3 rows got no label" in run("predict", "n.st", data, "-o", "n.csv").err
    )  # it was told to refuse


def test_a_number_that_is_none_is_not_taken_for_a_word(run, tmp_path):
    rows = colors()
    rows[7][0] = "12..5"
    data = write_csv(tmp_path / "data.csv", ["a", "b", "color"], rows)
    assert "row 8, column 'a': '12..5'" in run("fit", data, "-t", "color", *QUICK, code=3).err


def test_missing_cells_are_counted_and_refused(run, tmp_path):
    rows = colors()
    rows[1][0], rows[2][0], rows[2][1] = "", "NA", "?"
    data = write_csv(tmp_path / "data.csv", ["a", "b", "color"], rows)
    ran = run("fit", data, "-t", "color", "-m", "rbf", "--set", "missing=error", "--json", code=3)
    message = ran.json["error"]["message"]
    assert "3 missing cells in 2 of 90 rows" in message
    assert "choose a model that takes them: pool, auto, shared-kernel" in message
    assert "'a' (2, first in" in message
    assert "row 2)" in message
    assert ran.json["error"]["missing"] == {"a": 2, "b": 1}


def test_nothing_is_replaced_without_force(run, data):
    run("fit", data, "-t", "color", *QUICK)
    before = Path("data.safetensors").read_bytes()
    assert "exists already; pass --force" in run("fit", data, "-t", "color", *QUICK, code=6).err
    assert Path("data.safetensors").read_bytes() == before
    run("fit", data, "-t", "color", "-m", "shared-kernel", "-k", 6, "--force")
    assert Path("data.safetensors").read_bytes() != before
    assert "no folder" in run("fit", data, "-t", "color", *QUICK, "-o", "nowhere/m.st", code=6).err


def test_the_report_comes_with_the_fit_and_alone(run, data):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    run("fit", data, "-t", "color", *QUICK, "--report", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "color" in page
    run("report", "data.safetensors", data, "-o", "again.html")
    ran = run("report", "data.safetensors", data, code=0)
    assert "Report: report.html" in ran.out
    assert "exists already" in run("report", "data.safetensors", data, code=6).err
    other = write_csv("other.csv", ["a", "b", "color"], blurred(30, 5))
    assert "not the rows of the fit" in run("report", "data.safetensors", other, "-o", "o.html").err
    assert not run("report", "data.safetensors", data, "--test", other, "-o", "t.html").err.count(
        "Warning"
    )
    assert "30" in Path("t.html").read_text(encoding="utf-8")


@pytest.fixture
def two_members(monkeypatch):
    """A pool that has no more than two networks to try."""
    pooled = importlib.import_module("kernelpool.estimators.pooled")
    mixture = kernelpool.SharedKernelClassifier
    candidates = [
        pooled.PoolCandidate("three kernels", mixture(3, random_state=0)),
        pooled.PoolCandidate("six kernels", mixture(6, covariance_type="full", random_state=0)),
    ]
    monkeypatch.setattr(pooled, "candidates_for", lambda *_: candidates)
    monkeypatch.setattr("kernelpool.training.cross_fitting.HOPELESS", -10.0)  # nobody is given up
    return candidates


def test_the_model_is_a_pool_unless_another_is_named(run, data, two_members):
    ran = run("fit", data, "-t", "color", "--json")
    assert ran.json["estimator"] == "PooledClassifier"
    assert ran.err == ""
    model = kernelpool.load("data.safetensors")
    assert (
        type(model) is kernelpool.PooledClassifier
    )  # nothing stands before it: it scales features itself
    assert ran.json["members"] == [
        {"name": name, "weight": weight}
        for name, weight in zip(model.members_, model.weights_.tolist(), strict=True)
    ]
    assert model.callback is None
    assert run("fit", data, "-t", "color", *QUICK, "-f", "--json").json["members"] is None


def test_a_pool_says_what_was_tried_and_what_is_left(run, data, two_members):
    said = run("fit", data, "-t", "color").err
    assert re.search(
        r"Fitting three kernels: held-out loss [\d.]+, kept, [\d.]+ s; pool [\d.]+; 1 left", said
    )
    assert re.search(
        r"Fitting six kernels: held-out loss [\d.]+, kept, [\d.]+ s; pool [\d.]+; none left", said
    )
    assert "Fitting" not in run("fit", data, "-t", "color", "-f", "-q").err


def test_the_time_of_a_pool_is_limited(run, data, two_members):
    run("fit", data, "-t", "color", "--time-limit", "1e-6")
    model = kernelpool.load("data.safetensors")
    assert model.budget == 1e-6
    assert model.members_ == ["three kernels"]
    assert model.trials_["outcome"].tolist() == ["kept", "not tried: the time was spent"]
    assert (
        "--time-limit is for --model pool alone"
        in run("fit", data, "-t", "color", *QUICK, "--time-limit", 3, code=2).err
    )


def test_a_pool_has_no_kernels_of_its_own(run, data):
    said = run("fit", data, "-t", "color", "--kernels", 3, code=2).err
    assert (
        "--kernels needs one network instead of a pool; name it with --model, such as --model shared-kernel"
        in said
    )
    assert (
        "is not possible on the command line"
        in run("fit", data, "-t", "color", "--set", "members=auto", code=2).err
    )


def test_an_interrupted_pool_keeps_the_members_that_are_ready(run, data, two_members, monkeypatch):
    original, fits = kernelpool.SharedKernelClassifier.fit, []

    def fitting(model, *words, **options):
        fits.append(model)
        if len(fits) == 6:  # the second network of the second member
            raise KeyboardInterrupt
        return original(model, *words, **options)

    monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)
    ran = run("fit", data, "-t", "color", "--json", code=130)
    assert ran.json["model"] == "data.interrupted.safetensors"
    assert ran.json["interrupted"] == "interrupted; 1 member was pooled"
    assert [member["name"] for member in ran.json["members"]] == ["three kernels"]
    assert ran.json["held_out"]["n_rows"] == 60
    assert kernelpool.load("data.interrupted.safetensors").members_ == ["three kernels"]


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "data.csv", "m.onnx"])
def test_a_model_file_is_not_called_like_something_else(run, data, name):
    assert (
        "name it .safetensors"
        in run("fit", data, "-t", "color", *QUICK, "-o", name, "--force", code=2).err
    )
    assert "colour" not in Path(data).read_text()


def test_the_model_and_the_report_are_two_files(run, data):
    said = run("fit", data, "-t", "color", *QUICK, "-o", "x.st", "--report", "./x.st", code=2).err
    assert "x.st cannot be both the model (-o) and the report (--report)" in said


def test_json_says_what_was_chosen(run, data):
    chosen = run("fit", data, "-t", "color", "--model", "auto", "--json").json["chosen"]
    model = kernelpool.load("data.safetensors")
    model = getattr(model, "steps", [(None, model)])[-1][1]
    assert chosen["covariance_type"] == model.covariance_type_
    assert chosen["n_kernels"] == len(model.means_)
    assert chosen["sharing"] != "auto"


def test_settings_are_listed(run, data):
    said = " ".join(
        run("fit", data, "-t", "color", "-m", "shared-kernel", "--set", "help", code=2).err.split()
    )
    assert "max_iter=" in said
    assert "n_kernels=" in said
    assert "random_state" not in said
    wrong = run(
        "fit", data, "-t", "color", "-m", "shared-kernel", "--set", "max_iters=3", code=2
    ).err
    assert "no setting 'max_iters'; did you mean 'max_iter'?" in wrong
    assert "did you mean 'parzen'?" in run("fit", data, "-t", "color", "-m", "parsen", code=2).err
    assert (
        "--covariance must be one of spherical"
        in run("fit", data, "-t", "color", "--covariance", "round", code=2).err
    )


def test_without_a_target_the_columns_are_listed(run, data):
    said = run("fit", data, code=3).err
    assert (
        "name the column that holds the classes; there are 'a', 'b', 'color'. Pass --target."
        in " ".join(said.split())
    )


class Interrupting:
    """Presses Ctrl-C in the fit of that number, at its second sweep or before its first."""

    def __init__(self, monkeypatch, fit, sweep=2):
        self.fits, self.fit, self.sweep = 0, fit, sweep
        watcher = work._watcher
        original = kernelpool.SharedKernelClassifier.fit

        def watching(*words):
            watch = watcher(*words)

            def told(info):
                if self.fits == self.fit and info.sweep >= self.sweep:
                    raise KeyboardInterrupt
                return watch(info)

            return told

        def fitting(model, *words, **options):
            self.fits += 1
            if self.fits == self.fit and self.sweep == 0:
                raise KeyboardInterrupt
            return original(model, *words, **options)

        monkeypatch.setattr(work, "_watcher", watching)
        monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)


def test_an_interrupted_fit_is_kept_under_a_free_name(run, data, monkeypatch):
    Path("data.interrupted.safetensors").write_text("an earlier one")
    Interrupting(monkeypatch, fit=1)
    ran = run("fit", data, "-t", "color", *QUICK, "--json", code=130)
    assert ran.json["model"] == "data.interrupted-2.safetensors"
    assert Path("data.interrupted.safetensors").read_text() == "an earlier one"
    assert kernelpool.load("data.interrupted-2.safetensors").n_iter_ < 5


def test_a_file_that_appears_during_the_fit_is_kept_and_so_is_the_model(run, data, monkeypatch):
    original = kernelpool.SharedKernelClassifier.fit

    def fitting(model, *words, **options):
        Path("data.safetensors").write_text("theirs")
        return original(model, *words, **options)

    monkeypatch.setattr(kernelpool.SharedKernelClassifier, "fit", fitting)
    ran = run("fit", data, "-t", "color", *QUICK, "--json")
    assert ran.json["model"] == "data-2.safetensors"
    assert "data.safetensors exists already and is kept" in ran.json["warnings"][0]
    assert Path("data.safetensors").read_text() == "theirs"
    assert kernelpool.load("data-2.safetensors").n_features_in_ == 2
    run("fit", data, "-t", "color", *QUICK, "--json", "--force")
    assert kernelpool.load("data.safetensors").n_features_in_ == 2
    assert not Path("data-3.safetensors").exists()


def test_an_interrupted_fit_is_kept_beside(run, data, monkeypatch):
    Interrupting(monkeypatch, fit=1)
    ran = run("fit", data, "-t", "color", *QUICK, "--json", code=130)
    assert ran.json["model"] == "data.interrupted.safetensors"
    assert "the best parameters so far were kept" in ran.json["interrupted"]
    assert ran.json["held_out"]["n_rows"] == 60
    assert kernelpool.load("data.interrupted.safetensors").n_iter_ < 5


def test_ctrl_c_instead_of_an_answer_throws_it_away(run, data, monkeypatch):
    def aborted(*_):
        raise typer.Abort

    Interrupting(monkeypatch, fit=1)
    monkeypatch.setattr(fit_command, "_offered", aborted)
    assert "nothing was saved" in run("fit", data, "-t", "color", *QUICK, code=130).err
    assert list(Path().glob("*.safetensors")) == []


def test_nothing_is_kept_of_a_fit_that_has_not_begun(run, data, monkeypatch):
    Interrupting(monkeypatch, fit=1, sweep=0)
    assert "nothing has been fitted yet" in run("fit", data, "-t", "color", *QUICK, code=130).err
    assert list(Path().glob("*.safetensors")) == []


def test_an_interrupted_choice_of_settings_ends_with_the_best_so_far(run, data, monkeypatch):
    from kernelpool.training.search import Search

    judge, judged = Search._judge, []

    def judging(search, cell, n_folds):
        if len(judged) == 3:
            raise KeyboardInterrupt
        judge(search, cell, n_folds)
        judged.append(cell)

    monkeypatch.setattr(Search, "_judge", judging)
    ran = run("fit", data, "-t", "color", "--model", "auto", "--json", code=130)
    assert (
        "interrupted while settings were chosen; the best so far was fitted"
        in ran.json["interrupted"]
    )
    model = kernelpool.load("data.interrupted.safetensors")
    assert model.covariance_type_ == judged[0].covariance_type
    assert ran.json["held_out"]["n_rows"] == 60
    judged[:] = [None] * 3
    assert (
        "nothing has been fitted yet"
        in run("fit", data, "-t", "color", "--model", "auto", code=130).err
    )


def test_interrupted_folds_leave_nothing(run, data, monkeypatch):
    Interrupting(monkeypatch, fit=2)
    ran = run("fit", data, "-t", "color", *QUICK, "--cv", 3, code=130)
    assert "the fit to all rows had not begun" in ran.err
    assert list(Path().glob("*.safetensors")) == []


def test_an_interrupted_refit_leaves_the_model_that_was_judged(run, data, monkeypatch):
    Interrupting(monkeypatch, fit=2, sweep=0)
    ran = run("fit", data, "-t", "color", *QUICK, "--refit", "--json", code=130)
    assert "the model that was judged is kept" in ran.json["interrupted"]
    assert read_header("data.interrupted.safetensors")["summary"]["split"]["n_rows"] == 60
