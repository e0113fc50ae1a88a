"""Files beyond `--in-memory`: the same commands, without ever holding all rows."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss

import kernelpool
from kernelpool.app.files import read_header
from kernelpool.app.readers import sources
from kernelpool.app.readers.large import PlaceSplit, place_keys
from kernelpool.tables import batches
from kernelpool.training import batched

from .tables import blurred, features, write_csv

LARGE = ("--in-memory", 0, "--model", "shared-kernel", "-k", 5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 700)
    monkeypatch.setattr(sources, "HEAD", 700)
    monkeypatch.setattr(batches, "BATCH_ROWS", 64)
    monkeypatch.setattr(batched, "IN_MEMORY", 0)


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "data.csv", ["a", "b", "color"], blurred())


def held_out(n, seed=0, share=0.2):
    return PlaceSplit(share, seed).of(np.zeros(n, int), 0)[0]


def worded(n=400, seed=2):
    """A number that is missing now and then, and a word that tells the class."""
    rng = np.random.default_rng(seed)
    code = rng.integers(2, size=n)
    a = [f"{v:.3f}" if i % 10 else "" for i, v in enumerate(rng.normal(size=n) + code)]
    word = np.array([["north", "south", "east"], ["south", "east", "west"]])[
        code, rng.integers(3, size=n)
    ]
    return [[x, w, ("no", "yes")[k]] for x, w, k in zip(a, word.tolist(), code, strict=True)]


def test_the_keys_of_rows_are_those_of_splitmix64():
    """Its first outputs for the seed 0 as published with the generator (Vigna's splitmix64.c)."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    np.testing.assert_allclose(place_keys(0, 3, 0), [z / 2**64 for z in first], rtol=1e-12)
    assert np.array_equal(place_keys(5, 3, 7), place_keys(0, 8, 7)[5:])
    assert abs(held_out(100_000).mean() - 0.2) < 0.005
    assert abs(np.corrcoef(place_keys(0, 10_000, 0), place_keys(0, 10_000, 1))[0, 1]) < 0.04


def test_the_model_is_that_of_the_rows_not_held_out(run, data):
    rows = blurred()
    x, y, out = features(rows), np.array([row[2] for row in rows]), held_out(300, seed=3)
    ran = run(
        "fit", data, "--target", "color", *LARGE, "--set", "training=em", "--seed", 3, "--json"
    )
    expected = kernelpool.SharedKernelClassifier(5, training="em", random_state=3).fit(
        x[~out], y[~out]
    )
    model = kernelpool.load("data.safetensors")
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-7)
    probability = expected.predict_proba(x[out])
    assert ran.json["held_out"]["n_errors"] == int((expected.predict(x[out]) != y[out]).sum()) > 0
    assert ran.json["held_out"]["n_rows"] == int(out.sum())
    assert ran.json["log_loss"] == pytest.approx(log_loss(y[out], probability), rel=1e-6)
    summary = read_header("data.safetensors")["summary"]
    assert summary["class_shares"] == pytest.approx([1 / 3] * 3)
    density = np.sort(expected.score_samples(x[out]))
    np.testing.assert_allclose(summary["held_out_densities"]["lowest"], density, rtol=1e-6)
    assert sorted(summary["calibration"]["density"]) == pytest.approx(
        sorted(
            expected.log_density(x[out])[
                np.arange(out.sum()), np.unique(y, return_inverse=True)[1][out]
            ]
        ),
        rel=1e-6,
    )


def test_evaluate_predict_and_check_know_such_a_model(run, data):
    fitted = run("fit", data, "--target", "color", *LARGE, "--json").json
    judged = run("evaluate", "data.safetensors", data, "--json").json
    assert judged["counted"] == "rows held out"
    assert judged["n_errors"] == fitted["held_out"]["n_errors"]
    run("predict", "data.safetensors", data, "-o", "answers.csv", "--sets", 0.2, "--reject")
    assert len(Path("answers.csv").read_text().splitlines()) == 301
    assert run("check", "data.safetensors", data, "--json").json["p_value"] > 0.01
    moved = write_csv(
        "moved.csv", ["a", "b", "color"], [[float(a) + 2, b, c] for a, b, c in blurred()]
    )
    assert "a" in run("check", "data.safetensors", moved, "--json").json["moved"]


def test_words_and_missing_cells(run, tmp_path):
    data = write_csv(tmp_path / "data.csv", ["a", "side", "answer"], worded())
    ran = run("fit", data, "-t", "answer", *LARGE, "--set", "training=em", "--covariance", "diag")
    assert "Words: 'side' (4 words). Numbers: 'a'" in ran.text
    assert "40 missing cells in 40 of 400 rows" in ran.text
    model, out, rows = kernelpool.load("data.safetensors"), held_out(400), worded()
    a = np.array([float(row[0]) if row[0] else np.nan for row in rows])
    table = pa.table({"a": a, "side": [row[1] for row in rows]})
    y = np.array([row[2] for row in rows])
    settings = {"covariance_type": "diag", "training": "em", "random_state": 0}
    expected = kernelpool.SharedKernelClassifier(5, **settings).fit(
        table.filter(pa.array(~out)), y[~out]
    )
    assert model.categories_[1].tolist() == expected.categories_[1].tolist()
    np.testing.assert_allclose(model.predict_proba(table), expected.predict_proba(table), atol=1e-6)
    assert run("evaluate", "data.safetensors", data, "--json").json["counted"] == "rows held out"


def test_a_column_that_turns_to_words_late(run, tmp_path):
    rows = [[str(i % 4) if i < 300 else "many", b, c] for i, (_, b, c) in enumerate(blurred(400))]
    data = write_csv(tmp_path / "data.csv", ["a", "b", "color"], rows)
    assert "'many'" in run("fit", data, "-t", "color", *LARGE, code=3).text
    run("fit", data, "-t", "color", *LARGE, "--encode")
    assert kernelpool.load("data.safetensors").categories_[0].tolist() == [
        "0",
        "1",
        "2",
        "3",
        "many",
    ]


def test_a_folder_of_parquet_and_rows_without_a_class(run, tmp_path):
    rows = blurred()
    x, y = features(rows), [row[2] if i % 7 else None for i, row in enumerate(rows)]
    (tmp_path / "rows").mkdir()
    for i, at in enumerate(np.array_split(np.arange(300), 3)):
        table = pa.table({"a": x[at, 0], "b": x[at, 1], "color": [y[j] for j in at]})
        pq.write_table(table, tmp_path / "rows" / f"{i}.parquet", row_group_size=40)
    assert (
        "43 rows of 300 without a class" in run("fit", "rows", "-t", "color", *LARGE, code=3).text
    )
    known = np.array([label is not None for label in y])
    run("fit", "rows", "-t", "color", *LARGE, "--set", "training=em", "--unlabeled", "drop")
    out, labels = held_out(known.sum()), np.array([label for label in y if label is not None])
    expected = kernelpool.SharedKernelClassifier(5, training="em", random_state=0).fit(
        x[known][~out], labels[~out]
    )
    np.testing.assert_allclose(
        kernelpool.load("rows.safetensors").means_, expected.means_, rtol=1e-7
    )
    assert run("evaluate", "rows.safetensors", "rows", "--json").json["n_rows"] == out.sum()
    used = run("fit", "rows", "-t", "color", *LARGE, "--unlabeled", "use", "-f", "--json").json
    assert used["n_rows"] == 300


def test_refit_and_no_rows_held_out(run, data):
    rows = blurred()
    x, y = features(rows), np.array([row[2] for row in rows])
    expected = kernelpool.SharedKernelClassifier(5, training="em", random_state=0).fit(x, y)
    for words in (["--refit"], ["--holdout", 0]):
        run("fit", data, "-t", "color", *LARGE, "--set", "training=em", *words, "-f")
        np.testing.assert_allclose(
            kernelpool.load("data.safetensors").means_, expected.means_, rtol=1e-7
        )
        assert "very rows" in run("evaluate", "data.safetensors", data).text


def test_the_default_is_one_network_and_what_needs_all_rows_is_refused_first(run, data):
    assert (
        "as --model shared-kernel"
        in run("fit", data, "-t", "color", "--in-memory", 0, "-k", 3).text
    )
    for words in (["-m", "pool"], ["-m", "parzen"], ["--cv", 3]):
        assert (
            "--in-memory 0 MB: raise that"
            in run("fit", data, "-t", "color", "--in-memory", 0, "-f", *words, code=2).text
        )


def test_a_report_shows_a_sample(run, data):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    run("fit", data, "-t", "color", *LARGE, "--report", "report.html")
    assert "data.csv, 300 rows of 300" in Path("report.html").read_text(encoding="utf-8")


def test_a_class_whose_rows_are_all_held_out(run, tmp_path):
    rows, out = blurred(), held_out(301)
    rows.insert(int(np.flatnonzero(out)[0]), ["0.0", "0.0", "violet"])
    data = write_csv(tmp_path / "data.csv", ["a", "b", "color"], rows)
    assert (
        "All rows of class 'violet' (1) are held out"
        in run("fit", data, "-t", "color", *LARGE, code=5).text
    )


def test_the_answer_is_valid_json(run, data):
    assert (
        json.loads(run("fit", data, "-t", "color", *LARGE, "--json").out)["estimator"]
        == "SharedKernelClassifier"
    )
