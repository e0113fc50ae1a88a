"""What the registry promises: every record is enough for model files, ONNX, inspection, reports and the command line.

A made-up network (``tests/made_up_network.py``) and a made-up kernel family (``tests/made_up_families.py``) go the same way
with no other change.
"""

import csv

import made_up_network
import numpy as np
import onnxruntime
import pytest
from saved_models import UNFITTED, answers, fitted, rows
from typer.testing import CliRunner

import kernelpool
from kernelpool import SharedKernelClassifier, registry
from kernelpool.app.cli.app import COMMANDS, app, load_command
from kernelpool.app.report import render_html, summarize
from kernelpool.inspection.pool import describe
from kernelpool.kernels import FAMILIES

EXAMPLES = {}
for _name, (_estimator, _) in UNFITTED.items():
    EXAMPLES.setdefault(type(_estimator).__name__, _name)

WITHOUT_COMMAND = {"ConformalClassifier", "MultiEdit", "RejectClassifier", "TableEncoder"}
"""A resampler, a regressor, wrappers (--sets, --reject) and an encoder (--encode)."""

WITHOUT_ONNX = {"ConformalClassifier", "MultiEdit"}
"""Sets, and a resampler. (RejectClassifier is converted with what it holds.)"""

RECORDS = {record.name: record for record in registry.estimators()}

for _command in (
    COMMANDS
):  # their help lists the families that are registered when they are loaded: not the made-up one
    load_command(_command)


@pytest.fixture
def network():
    registry.register(made_up_network.RECORD)
    yield made_up_network.RECORD
    registry.unregister(made_up_network.RECORD.name)


@pytest.fixture
def table(tmp_path):
    X, _, text, _ = rows()
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "kind"])
        writer.writerows(
            [*map(repr, row), label] for row, label in zip(X.tolist(), text, strict=True)
        )
    return path


def run(*words):
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran


def run_onnx(model, X):
    graph = kernelpool.to_onnx(model, precision="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"X": X})[0]


# -- every record -----------------------------------------------------------------------------------------------------------


def test_the_registry_and_the_examples_are_not_empty():
    assert len(RECORDS) >= 10
    assert set(RECORDS) <= set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_estimator_is_saved_and_loaded(name, tmp_path):
    model, X = fitted(EXAMPLES[name])
    kernelpool.save(model, tmp_path / "model")
    again = kernelpool.load(tmp_path / "model")
    found, wanted = answers(again, X), answers(model, X)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)


@pytest.mark.parametrize("name", sorted(set(RECORDS) - {"TableEncoder", "MultiEdit"}))
def test_every_model_is_described(name):
    model, _ = fitted(EXAMPLES[name])
    description = describe(model)
    assert description.sentence.endswith(".")
    assert "A fitted" not in description.sentence
    np.testing.assert_allclose(description.pool.share.sum(), 1)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_estimator_has_a_command_or_a_reason(name):
    assert (RECORDS[name].command is None) == (name in WITHOUT_COMMAND)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_references_lead_somewhere(name):
    record = RECORDS[name]
    for reference in (record.check, record.describe, record.onnx):
        assert reference is None or callable(registry.resolve(reference))
    assert (record.onnx is None) == (name in WITHOUT_ONNX | {"RejectClassifier"})


@pytest.mark.parametrize(
    "name",
    sorted(name for name, record in RECORDS.items() if record.onnx and name != "TableEncoder"),
)
def test_every_converter_says_what_the_estimator_says(name):
    model, X = fitted(EXAMPLES[name])
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(run_onnx(model, X), model.predict_proba(X), atol=1e-8)
    assert RECORDS[name].has_density == hasattr(model, "log_density")


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_is_saved_and_exported(name, tmp_path):
    X, y, _, _ = rows()
    model = SharedKernelClassifier.prbf(4, covariance_type=name, random_state=0, tol=1e-3).fit(X, y)
    kernelpool.save(model, tmp_path / "model")
    assert np.array_equal(
        kernelpool.load(tmp_path / "model").predict_proba(X), model.predict_proba(X)
    )
    np.testing.assert_allclose(run_onnx(model, X), model.predict_proba(X), atol=1e-8)


# -- a made-up network ------------------------------------------------------------------------------------------------------


def test_a_new_network_is_saved_exported_and_described(network, tmp_path):
    X, _, text, _ = rows()
    model = made_up_network.NearestMeans().fit(X, text)
    kernelpool.save(model, tmp_path / "model")
    again = kernelpool.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(run_onnx(model, X), model.predict_proba(X), atol=1e-12)
    assert describe(again).sentence == "The means of 3 classes."
    assert "The means of 3 classes." in render_html(summarize(model, X, text))


def test_a_new_network_has_a_command(network, table, tmp_path):
    model, report = tmp_path / "model.safetensors", tmp_path / "report.html"
    run("fit", table, "-t", "kind", "--model", "nearest-means", "-o", model, "--report", report)
    assert "The means of 3 classes." in report.read_text(encoding="utf-8")
    run("predict", model, table, "-o", tmp_path / "out.csv", "--drop", "kind")
    loaded = kernelpool.load(model)
    assert type(loaded[-1]) is made_up_network.NearestMeans
    run("export", model, "-o", tmp_path / "model.onnx")


def test_a_network_that_is_no_longer_known_is_refused(network, tmp_path):
    X, y, _, _ = rows()
    model = made_up_network.NearestMeans().fit(X, y)
    kernelpool.save(model, tmp_path / "model")
    registry.unregister("NearestMeans")
    try:
        with pytest.raises(
            kernelpool.errors.ModelFileError, match="holds a 'NearestMeans'; a model file may hold"
        ):
            kernelpool.load(tmp_path / "model")
    finally:
        registry.register(network)
