"""What is computed once, and how often rows pass the model for it."""

from functools import wraps

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report import evaluate, write_page
from kernelpool.datasets import make_clouds
from kernelpool.inspection import predictions

ASKED = (
    "_predictions",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "log_density",
    "kernel_posterior",
)
"""What may be asked of a model about rows."""


@pytest.fixture
def passes(monkeypatch):
    """(method, rows) of every question to a network; those that it asks itself do not count."""
    asked = []
    depth = [0]

    def counted(name, method):
        @wraps(method)
        def count(self, X, *args, **kwargs):
            if not depth[0]:
                asked.append((name, len(X)))
            depth[0] += 1
            try:
                return method(self, X, *args, **kwargs)
            finally:
                depth[0] -= 1

        return count

    for name in ASKED:
        method = getattr(SharedKernelClassifier, name)
        monkeypatch.setattr(SharedKernelClassifier, name, counted(name, method))
    return asked


def test_rows_pass_the_model_once_and_once_more_a_feature(passes, tmp_path):
    pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1500)
    X = rng.normal(size=(1500, 3)) + y[:, None]
    network = SharedKernelClassifier(4, training="em", random_state=0, tol=0.02)
    network.fit(X[:599], y[:599])
    passes.clear()
    results = evaluate(network, X[599:], y[599:], X_train=X[:599], y_train=y[:599])
    assert passes == []
    assert results.metrics.n_rows == 901
    assert passes == [("_predictions", 901)]
    write_page(results, tmp_path / "report.html")
    held_out = [name for name, n in passes if n == 901]
    assert held_out == ["_predictions", *["predict_log_proba"] * 3]
    # the kernels of the rows that the explorer draws, which no prediction holds
    assert [pass_ for pass_ in passes if pass_[1] == 800] == [("kernel_posterior", 800)]
    assert [pass_ for pass_ in passes if pass_[1] == 599] == [("score_samples", 599)]


def test_a_fit_with_a_report_makes_no_other_passes(passes, tmp_path, monkeypatch):
    """The command line computes results once, for the screen, the model file and the page."""
    for extra in ("typer", "pyarrow", "jinja2"):
        pytest.importorskip(extra, reason="needs pip install '.[cli,report]'")
    from kernelpool.app.cli.app import run

    monkeypatch.chdir(tmp_path)
    X, y = make_clouds(1200, random_state=0)
    np.savetxt("clouds.csv", np.column_stack([X, y]), "%.6g", ",", header="a,b,y", comments="")
    options = "-m shared-kernel --set training=em --set n_kernels=4 --report page.html -q"
    assert not run(["fit", "clouds.csv", "-t", "y", *options.split()])
    name, n_held_out = passes[0]
    assert (name, 200 < n_held_out < 300) == ("_predictions", True)
    asked = [name for name, n in passes if n == n_held_out]
    # of the kernels, the rows that the explorer draws
    assert sorted(asked) == ["_predictions", "kernel_posterior", *["predict_log_proba"] * 2]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda network: network,
        lambda network: make_pipeline(StandardScaler(), network),
        lambda network: GridSearchCV(network, {"n_kernels": [4]}, cv=2),
        lambda network: RejectClassifier(network, ambiguity=0.3, novelty=0.05),
    ],
)
def test_a_pass_is_one_through_wrappers_too(passes, wrap):
    X, y = make_clouds(400, random_state=0)
    model = wrap(SharedKernelClassifier(4, training="em", random_state=0, tol=0.02)).fit(X, y)
    passes.clear()
    rows, labels = make_clouds(296, random_state=1)
    results = evaluate(model, rows, labels)
    assert results.importance.n_rows == results.metrics.n_rows == len(results.scores[0]) == 296
    assert len(results.curve.error) > 200
    assert passes == [("_predictions", 296), *[("predict_log_proba", 296)] * 2]


def test_predictions_that_are_known_are_not_made_again(clouds, fitted, passes):
    X, y = clouds[2:]
    known = predictions(fitted, X)
    passes.clear()
    results = evaluate(fitted, X, y, predictions=known, most_rows=10)
    assert results.predictions is known
    assert results.metrics.n_rows == len(X)
    assert passes == []
