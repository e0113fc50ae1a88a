"""Files larger than memory: the same model as from rows in memory, categories and missing cells
too.
"""

import numpy as np
import pyarrow as pa
import pytest

import kernelpool
from kernelpool.app.cli import fit
from kernelpool.app.files import read_header
from kernelpool.app.readers import files
from kernelpool.inspection import row_keys

from .tables import QUICK, colors, write_csv

NAMES = ["a", "b", "w", "color"]


def mixed(n=900, seed=1):
    rng = np.random.default_rng(seed)
    return [
        ["" if rng.random() < 0.1 else a, b, ("x", "y", "")[rng.integers(3)], c]
        for a, b, c in colors(n, seed, 1.5)
    ]


@pytest.fixture(autouse=True)
def _small_memory(monkeypatch):
    monkeypatch.setattr(fit, "IN_MEMORY", 100)
    monkeypatch.setattr(files, "BLOCK", 2000)


def test_the_model_is_that_of_the_rows_not_held_out(run):
    rows = mixed()
    data = write_csv("d.csv", NAMES, rows)
    found = run("fit", data, "-t", "color", *QUICK, "--json", "--report", "r.html").json
    table = pa.table(
        {
            "a": [float(a) if a else np.nan for a, *_ in rows],
            "b": [float(row[1]) for row in rows],
            "w": [row[2] or None for row in rows],
        }
    )
    batches = [batch.rows.num_rows for batch in files.Source(data).batches()]
    assert len(batches) > 5
    starts = np.cumsum([0, *batches])
    keys = [row_keys(table.slice(at, n), seed=0) for at, n in zip(starts, batches, strict=False)]
    out, y = np.concatenate(keys) < 0.2, np.array([row[3] for row in rows])
    settings = {"n_kernels": 3, "training": "em", "random_state": 0}
    expected = kernelpool.SharedKernelClassifier(**settings).fit(table.filter(~out), y[~out])
    model = kernelpool.load("d.safetensors")
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-6)
    wrong = np.asarray(model.predict(table.filter(pa.array(out)))) != y[out]
    assert (found["n_rows"], found["held_out"]["n_rows"]) == (900, int(out.sum()))
    assert found["held_out"]["n_errors"] == int(wrong.sum())
    assert 120 < out.sum() < 240
    new = write_csv("new.csv", NAMES, mixed(90, 5))
    run("predict", "d.safetensors", new, "--sets", 0.1, "--novelty", 0.05, "-o", "out.csv")
    assert run("check", "d.safetensors", new, "--json").json["p_value"] > 0.001


def test_some_held_out_rows_are_enough(run, monkeypatch):
    monkeypatch.setattr(fit, "MOST_KEPT", 50)
    write_csv("d.csv", NAMES, mixed())
    found = run("fit", "d.csv", "-t", "color", *QUICK, "--json").json
    assert 20 <= found["held_out"]["n_rows"] <= 100
    summary = read_header("d.safetensors")["summary"]
    assert summary["held_out_densities"]["n_rows"] == found["held_out"]["n_rows"]
    assert summary["n_rows"] == 900


def test_rows_without_a_class_and_what_needs_memory(run):
    rows = [[*row[:3], "" if i % 9 == 8 else i % 2] for i, row in enumerate(mixed(180))]
    data = write_csv("d.csv", NAMES, rows)
    assert "without a class" in run("fit", data, "-t", "color", *QUICK, code=3).err
    found = run("fit", data, "-t", "color", *QUICK, "--unlabeled", "drop", "--json").json
    assert (found["n_rows"], found["classes"]) == (160, [0, 1])
    run("fit", data, "-t", "color", *QUICK, "--unlabeled", "use", "-f")
    assert read_header("d.safetensors")["summary"]["n_rows"] == 180
    assert "fits in memory" in run("fit", data, "-t", "color", "--cv", 3, "-f", code=2).err
    words = ("-m", "parzen", "--unlabeled", "drop", "-o", "p.st")
    assert "Larger" not in run("fit", data, "-t", "color", *words).err
    rows[170][1] = "late"
    write_csv("late.csv", NAMES, rows)
    ran = run("fit", "late.csv", "-t", "color", *QUICK, "--unlabeled", "drop", code=3)
    assert "columns 'b' hold cells that are no numbers" in ran.err
