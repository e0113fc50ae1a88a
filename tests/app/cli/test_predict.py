"""`kernelpool predict` and `sample`: the same answers as in Python, in every format, whatever the columns are called."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import kernelpool
from kernelpool.app.readers import sources

from .tables import QUICK, blurred, colors, features, write_csv


@pytest.fixture
def expected(fitted):
    """The answers by the library itself."""
    model, x = (
        kernelpool.load(fitted[1]),
        pa.table({"a": features(colors())[:, 0], "b": features(colors())[:, 1]}),
    )
    return model.predict(x), model.predict_proba(x), model.score_samples(x)


def in_pieces(monkeypatch, n_bytes):
    monkeypatch.setattr(sources, "BLOCK", n_bytes)
    monkeypatch.setattr(sources, "HEAD", 64)


def check(table, expected):
    label, probability, density = expected
    names = ["label", "probability_blue", "probability_green", "probability_red", "log_density"]
    assert table.column_names == names
    assert table.column("label").to_pylist() == label.tolist()
    found = np.column_stack([table.column(name).to_numpy() for name in names[1:4]])
    np.testing.assert_allclose(found, probability, rtol=1e-14)
    np.testing.assert_allclose(table.column("log_density").to_numpy(), density, rtol=1e-14)


def test_csv_parquet_arrow_and_json_lines_hold_the_same(run, fitted, expected):
    data, model = fitted
    for name in ("out.csv", "out.parquet", "out.feather", "out.jsonl"):
        run("predict", model, data, "-o", name)
    check(pcsv.read_csv("out.csv"), expected)
    check(pq.read_table("out.parquet"), expected)
    check(feather.read_table("out.feather"), expected)
    check(
        pa.Table.from_pylist(
            [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
        ),
        expected,
    )
    check(pcsv.read_csv(io.BytesIO(run("predict", model, data).out.encode())), expected)


def test_answers_do_not_depend_on_how_rows_are_cut_into_batches(run, fitted, expected, monkeypatch):
    in_pieces(monkeypatch, 200)
    data, model = fitted
    run("predict", model, data, "-o", "out.parquet")
    check(pq.read_table("out.parquet"), expected)
    assert pq.ParquetFile("out.parquet").num_row_groups > 1


def test_columns_are_matched_by_name(run, fitted, expected):
    rows = [[c, b, a] for a, b, c in colors()]
    run(
        "predict",
        fitted[1],
        write_csv("turned.csv", ["color", "b", "a"], rows),
        "-o",
        "out.parquet",
    )
    check(pq.read_table("out.parquet"), expected)
    run(
        "predict",
        fitted[1],
        write_csv("bare.csv", ["b", "a"], [row[1:] for row in rows]),
        "-o",
        "bare.parquet",
    )
    check(pq.read_table("bare.parquet"), expected)


def test_missing_and_extra_columns_are_named(run, fitted):
    data = write_csv("d.csv", ["a", "c", "id"], [[1, 2, 3]])
    ran = run("predict", fitted[1], data, "-o", "out.csv", "--json", code=3)
    assert ran.json["error"]["missing_columns"] == ["b"]
    assert ran.json["error"]["extra_columns"] == ["c", "id"]
    assert "it lacks 'b'. It has 'c', 'id' besides." in ran.json["error"]["message"]
    data = write_csv("e.csv", ["a", "b", "id"], [[1, 2, 3]])
    ran = run("predict", fitted[1], data)
    assert "e.csv: the model does not use 'id'." in ran.err
    assert ran.out.splitlines()[0].startswith("label")
    assert "does not use" not in run("predict", fitted[1], data, "--drop", "id").err
    assert (
        run("predict", fitted[1], data, "--keep", "id").out.splitlines()[0].startswith("id,label")
    )


def test_columns_left_out_at_fit_may_stay_in_the_data(run):
    rows = [[i, *row] for i, row in enumerate(colors())]
    data = write_csv("d.csv", ["id", "a", "b", "color"], rows)
    run("fit", data, "-t", "color", *QUICK, "--drop", "id")
    assert (
        run("predict", "d.safetensors", data, "--keep", "id").out.splitlines()[-1].startswith("89,")
    )


def test_kept_columns_must_not_be_called_like_answers(run, fitted):
    data = write_csv("d.csv", ["a", "b", "label"], [[1, 2, 3]])
    assert "'label' of its own" in run("predict", fitted[1], data, "--keep", "label", code=3).err
    assert (
        "no column 'x' to keep"
        in run("predict", fitted[1], data, "--drop", "label", "--keep", "x", code=3).err
    )


def test_rows_with_missing_or_bad_cells_get_no_answer_and_the_others_do(run, fitted, monkeypatch):
    rows = [row[:2] for row in colors()]
    whole = run(
        "predict", fitted[1], write_csv("e.csv", ["a", "b"], rows), "--reject"
    ).out.splitlines()
    in_pieces(monkeypatch, 100)
    rows[10][0] = rows[80][0] = rows[80][1] = ""
    rows[20][1], rows[30][1] = "many", "inf"
    data = write_csv("d.csv", ["a", "b"], rows)
    ran = run("predict", fitted[1], data, "-o", "out.csv", "--reject")
    found = Path("out.csv").read_text().splitlines()
    bad = {21, 31}  # those whose cells cannot be read; where cells are missing the others speak
    assert [line for i, line in enumerate(found) if i not in {*bad, 11, 81}] == [
        line for i, line in enumerate(whole) if i not in {*bad, 11, 81}
    ]
    assert {found[i] for i in bad} == {",incomplete,,,,"}
    assert "2 rows with missing cells judged by the cells that are known" in ran.text
    assert "'b' (2, first in d.csv, row 21)" in ran.text
    assert "90 rows: " in ran.text
    assert "incomplete 2" in ran.text
    told = run("predict", fitted[1], data, "-o", "out.jsonl", "--json").json
    assert (told["n_rows"], told["incomplete"], sum(told["labels"].values())) == (90, 2, 88)
    ran = run(
        "evaluate",
        fitted[1],
        write_csv("f.csv", ["a", "b", "color"], [[1, 2, "red"], [3, "many", "red"]]),
        code=3,
    )
    assert "f.csv, row 2, column 'b': 'many'" in ran.err
    assert "fitted on numbers" in ran.err


def test_a_row_of_which_nothing_is_known_gets_the_frequencies_of_the_classes(run, fitted):
    data = write_csv("d.csv", ["a", "b"], [["", 1], ["", ""]])
    found = run("predict", fitted[1], data, "-o", "out.csv").text
    assert "2 rows with missing cells judged by the cells that are known" in found
    last = [float(cell) for cell in Path("out.csv").read_text().splitlines()[2].split(",")[1:]]
    np.testing.assert_allclose(
        last, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-9
    )  # and the density of nothing is one


def test_a_file_without_a_row_that_can_be_read_is_refused(run, fitted):
    data = write_csv("d.csv", ["a", "b"], [["inf", 1], [2, "inf"]])
    assert (
        "2 missing cells in 2 of 2 rows"
        in run("predict", fitted[1], data, "-o", "out.csv", code=3).text
    )
    assert not Path("out.csv").exists()


def test_refused_rows_have_no_label(run):
    data = write_csv("d.csv", ["a", "b", "color"], blurred(900))
    run("fit", data, "-t", "color", *QUICK)
    new = write_csv("new.csv", ["a", "b"], [[0.75, 0.0], [-1.5, -1], [900, -900]])
    run("predict", "d.safetensors", new, "-o", "out.parquet", "--reject")
    found = pq.read_table("out.parquet")
    assert found.column("decision").to_pylist() == ["ambiguous", "accepted", "novel"]
    labels = found.column("label").to_pylist()
    assert labels[0] is labels[2] is None
    assert labels[1] == "red"
    both = run("predict", "d.safetensors", new, "--ambiguity", "0.9", "-q").out.splitlines()
    assert [line.split(",")[1] for line in both[1:]] == ["accepted"] * 3


def test_novelty_is_the_share_of_held_out_rows_below_the_threshold(run):
    rows = blurred(900)
    data = write_csv("d.csv", ["a", "b", "color"], rows)
    run("fit", data, "-t", "color", *QUICK)
    found = run("evaluate", "d.safetensors", data, "--novelty", 0.1, "--json").json
    assert found["counted"] == "rows held out"
    assert (
        found["decisions"]["novel"] == 17
    )  # j = floor(0.1 * 181) = 18: the rows below the 18th lowest of 180
    assert "at most" in run("predict", "d.safetensors", data, "--novelty", 1, code=2).err


def test_what_cannot_refuse_says_so(run):
    data = write_csv("d.csv", ["a", "b", "color"], colors())
    run("fit", data, "-t", "color", "-m", "neurons", "-k", 2)
    assert (
        "does not know how likely a row is"
        in run("predict", "d.safetensors", data, "--novelty", 0.1, code=4).err
    )
    assert (
        "only ambiguous ones are refused" in run("predict", "d.safetensors", data, "--reject").err
    )
    assert "knows no densities" in run("sample", "d.safetensors", code=4).err
    run("fit", data, "-t", "color", *QUICK, "--holdout", 0, "-o", "all.st")
    assert "without rows held out" in run("predict", "all.st", data, "--novelty", 0.1, code=4).err


def test_a_saved_reject_classifier_decides_by_its_own_thresholds(run):
    rows = colors()
    x, y = (
        pa.table({"a": features(rows)[:, 0], "b": features(rows)[:, 1]}),
        np.array([row[2] for row in rows]),
    )
    inner = kernelpool.SharedKernelClassifier.prbf(3, random_state=0).fit(x, y)
    wary = kernelpool.RejectClassifier(inner, ambiguity=0.0, novelty=None).fit(x, y)
    kernelpool.save(wary, "wary.st")
    data = write_csv("d.csv", ["a", "b"], [row[:2] for row in rows])
    decided = [line.split(",")[1] for line in run("predict", "wary.st", data).out.splitlines()[1:]]
    assert decided == [
        "ambiguous" if label == "ambiguous" else "accepted" for label in wary.predict(x)
    ]
    assert "ambiguous" in decided


def test_a_model_fitted_to_an_array_takes_columns_in_their_order(run):
    rows = colors()
    model = kernelpool.SharedKernelClassifier.prbf(3, random_state=0).fit(
        features(rows), [row[2] for row in rows]
    )
    kernelpool.save(model, "m.st")
    data = write_csv("d.csv", ["p", "q", "color"], rows)
    assert "2 columns without names; there are 3" in run("predict", "m.st", data, code=3).text
    found = run("predict", "m.st", data, "--drop", "color").out.splitlines()[1:]
    assert [line.split(",")[0] for line in found] == model.predict(features(rows)).tolist()
    assert "pass --target" in run("evaluate", "m.st", data, code=2).err
    assert (
        run("evaluate", "m.st", data, "--target", "color", "--json").json["counted"] == "all rows"
    )


def test_not_a_model(run, fitted):
    Path("text.st").write_text("hello")
    for name in ("nothing.st", "text.st", fitted[0], "."):
        ran = run("predict", name, fitted[0], code=4)
        assert "Traceback" not in ran.err
    assert "is not a model file" in run("predict", "text.st", fitted[0], code=4).err
    swapped = run("predict", fitted[0], fitted[1], code=4).err
    assert "the model comes first, then the data" in swapped
    assert "no such file" in run("predict", "nothing.st", fitted[0], code=4).err
    kernelpool.save(
        kernelpool.RBFNetworkRegressor(2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]),
        "r.st",
    )
    assert "RBFNetworkRegressor predicts numbers" in run("check", "r.st", fitted[0], code=4).err


def test_outputs(run, fitted):
    data, model = fitted
    assert "name it .csv" in run("predict", model, data, "-o", "out.xls", code=2).err
    run("predict", model, data, "-o", "out.xls", "--format", "csv")
    before = Path("out.xls").read_bytes()
    assert (
        "exists already"
        in run("predict", model, data, "-o", "out.xls", "--format", "csv", code=6).err
    )
    assert Path("out.xls").read_bytes() == before
    assert "--format jsonl" in run("predict", model, data, "--json", code=2).out
    assert run("predict", model, data, "-o", "o.csv", "--json").json["labels"] == {
        "blue": 30,
        "green": 30,
        "red": 30,
    }
    assert [path.name for path in Path().iterdir() if path.name.endswith(".part")] == []


def test_samples_have_the_law_of_the_model(run, fitted):
    _, model = fitted
    run("sample", model, "-n", 4000, "-o", "s.parquet", "--seed", 1)
    found = pq.read_table("s.parquet")
    assert found.column_names == ["a", "b", "color"]
    assert found.num_rows == 4000
    x = features(colors())
    drawn = np.column_stack([found.column("a").to_numpy(), found.column("b").to_numpy()])
    # kernels match the first moments of the rows, 72 of which were fitted: four standard errors of their mean
    np.testing.assert_allclose(drawn.mean(axis=0), x.mean(axis=0), atol=4 * x.std() / np.sqrt(72))
    np.testing.assert_allclose(drawn.std(axis=0), x.std(axis=0), rtol=0.15)
    run("sample", model, "-n", 4000, "-o", "again.parquet", "--seed", 1)
    assert pq.read_table("again.parquet").equals(found)
    run("sample", model, "-n", 4000, "-o", "other.parquet", "--seed", 2)
    assert not pq.read_table("other.parquet").equals(found)
    assert set(found.column("color").to_pylist()) == {"red", "green", "blue"}


def test_onnx_says_the_same(run, fitted, expected):
    pytest.importorskip("onnx", reason="export needs onnx: pip install '.[onnx]'")
    runtime = pytest.importorskip(
        "onnxruntime", reason="needs onnxruntime to run what was exported"
    )
    run("export", fitted[1], "-o", "m.onnx")
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    label, probability = session.run(
        ["label", "probabilities"], {"X": features(colors()).astype(np.float32)}
    )
    assert label.tolist() == expected[0].tolist()
    np.testing.assert_allclose(probability, expected[1], atol=1e-5)
    assert "exists already" in run("export", fitted[1], "-o", "m.onnx", code=6).err
