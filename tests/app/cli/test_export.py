"""`kernelpool export`: what onnxruntime says of the rows of a table is what `kernelpool predict` says."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import kernelpool.estimators  # noqa: F401  (fills the registry)
from kernelpool import registry

from .tables import colors, write_csv

pytest.importorskip("onnx", reason="export needs onnx: pip install '.[onnx]'")
onnxruntime = pytest.importorskip(
    "onnxruntime", reason="needs onnxruntime to run what was exported"
)

NAMES = ["a", "b", "=shape & <i>size</i>", "made in", "color"]
FEW = {
    "parzen": [],
    "pool": ["--set", "budget=fast"],
    "reduced-parzen": ["--set", "n_kernels=20"],
    "sharing-average": ["--kernels", 3],
}


def shapes(unknown=False):
    """Two features, two columns of words, and a class."""
    rng = np.random.default_rng(3)
    words = [["round", "square", "läng"], ["here", "there"]]
    table = [[a, b, rng.choice(words[0]), rng.choice(words[1]), color] for a, b, color in colors()]
    if unknown:
        for row in table[::4]:
            row[2] = "never seen"
    return table


def said(run, model, data):
    """Labels, probabilities and log-densities by the command line."""
    run("predict", model, data, "-o", "said.parquet", "--drop", "color", "--force")
    table = pq.read_table("said.parquet")
    names = [name for name in table.column_names if name.startswith("probability_")]
    density = (
        table.column("log_density").to_numpy() if "log_density" in table.column_names else None
    )
    return (
        table.column("label").to_pylist(),
        np.column_stack([table.column(name).to_numpy() for name in names]),
        density,
    )


def told(path, table):
    """The same by onnxruntime."""
    ready = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {}
    for entry in ready.get_inputs():
        cells = np.array([[row[NAMES.index(entry.name)]] for row in table])
        given[entry.name] = cells if entry.type == "tensor(string)" else cells.astype(np.float32)
    return dict(
        zip([output.name for output in ready.get_outputs()], ready.run(None, given), strict=True)
    )


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize(
    "kind", ["auto", *(kind for kind in registry.commands() if kind != "rbf-regressor")]
)
def test_models_with_categories_say_the_same(run, kind, scale):
    data = write_csv("data.csv", NAMES, shapes())
    few = FEW.get(kind, ["--kernels", 3] if kind != "auto" else ["--kernels", 3, "--sharing", 1])
    run(
        "fit",
        data,
        "-t",
        "color",
        "-m",
        kind,
        "--encode",
        "--scale",
        scale,
        *few,
        "-o",
        "m.safetensors",
    )
    run("export", "m.safetensors")
    for unknown in (False, True):
        table = shapes(unknown)
        label, probability, density = said(run, "m.safetensors", write_csv("new.csv", NAMES, table))
        found = told("m.onnx", table)
        ranked = np.sort(probability, axis=1)
        clear = (
            ranked[:, -1] - ranked[:, -2] > 1e-6
        )  # networks of a pool may be divided half and half over words never seen
        assert clear.mean() > 0.9
        assert [a for a, c in zip(found["label"].tolist(), clear, strict=True) if c] == [
            b for b, c in zip(label, clear, strict=True) if c
        ]
        np.testing.assert_allclose(found["probabilities"], probability, atol=1e-5)
        if density is not None:
            np.testing.assert_allclose(found["score_samples"], density, rtol=1e-5, atol=1e-5)
        assert ("log_density" in found) == (density is not None)


def test_inputs_are_told(run):
    data = write_csv("data.csv", NAMES, shapes())
    run(
        "fit",
        data,
        "-t",
        "color",
        "-m",
        "shared-kernel",
        "-k",
        3,
        "--encode",
        "-o",
        "m.safetensors",
    )
    assert (
        "4 inputs, each (n, 1): 'a', 'b', '=shape & <i>size</i>', 'made in'"
        in run("export", "m.safetensors").text
    )
    answer = run("export", "m.safetensors", "-o", "n.onnx", "--json").json
    assert answer["inputs"] == NAMES[:4]
    assert answer["outputs"] == ["label", "probabilities", "log_density", "score_samples"]
    run(
        "fit",
        data,
        "-t",
        "color",
        "-m",
        "shared-kernel",
        "-k",
        3,
        "--drop",
        NAMES[2],
        "--drop",
        NAMES[3],
        "-o",
        "x.safetensors",
    )
    ran = run("export", "x.safetensors")
    assert "(n, 1)" not in ran.text
    assert json.loads(run("export", "x.safetensors", "--force", "--json").out)["inputs"] == ["X"]


def test_a_file_is_written_whole_or_not_at_all(run, fitted, monkeypatch):
    """What fails on the way leaves the old file as it was, and nothing beside it."""
    run("export", fitted[1], "-o", "m.onnx")
    before = Path("m.onnx").read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fails)
            ran = run(
                "export", fitted[1], "-o", "m.onnx", "--precision", "float64", "--force", code=6
            )
        assert "m.onnx: no space left on device" in ran.err
        assert Path("m.onnx").read_bytes() == before
        assert os.listdir() == ["m.onnx"]
    run("export", fitted[1], "-o", "m.onnx", "--precision", "float64", "--force")
    assert Path("m.onnx").read_bytes() != before
