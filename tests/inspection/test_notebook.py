"""What a notebook shows of a model: scikit-learn's diagram, and of a fitted one a summary."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    EMLogRegressor,
    ParzenClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.inspection.notebook import notebook_summary

MODELS = [
    SharedKernelClassifier.prbf(12, random_state=0),
    SharingAverageClassifier(
        SharedKernelClassifier.prbf(4, random_state=0, standardize=True), sharing=(0, 1)
    ),
    ParzenClassifier("hypersphere", standardize=False, radius=1.0),
    ReducedParzenClassifier(8, random_state=0),
    EMLogClassifier(4, random_state=0),
    RBFNetworkClassifier(4, random_state=0),
    EMLogRegressor(4, random_state=0),
    CompetitiveNeuronsClassifier(3, random_state=0),
    RejectClassifier(SharedKernelClassifier.prbf(4, random_state=0), ambiguity=0.1),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    return rng.normal(size=(120, 2)) + 2 * y[:, None], y


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_fitted_model_shows_the_diagram_and_a_summary(model, rows):
    assert uncounted(model._repr_html_()) == uncounted(estimator_html_repr(model))
    model.fit(*rows)
    page = model._repr_html_()
    diagram, summary = page[: page.rindex("</body>") + 7], page[page.rindex("</body>") + 7 :]
    assert uncounted(diagram) == uncounted(estimator_html_repr(model))
    assert summary == notebook_summary(model)
    assert "<table>" in summary
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert bundle["text/html"].endswith(summary)
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


def uncounted(page):
    """Without the numbers of containers, which count up."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", page)


def test_the_table_has_the_greatest_kernels_first_and_is_cut(rows):
    model = SharedKernelClassifier.prbf(12, random_state=0).fit(*rows)
    summary = notebook_summary(model)
    share = np.sort(model.mixing_ @ model.class_prior_)[::-1]
    assert summary.count("<tr>") == 11
    assert "and 2 more kernels" in summary
    assert summary.index(f"{100 * share[0]:.1f} %") < summary.index(f"{100 * share[9]:.1f} %")
    assert summary.startswith('<div style="margin')
    assert "12 spherical Gaussian kernels shared fully between 2 classes in 2 features" in summary


def test_names_are_escaped(rows):
    import pandas as pd

    x, y = rows
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame(x, columns=[bad, "b"])
    model = SharedKernelClassifier.prbf(2, random_state=0).fit(frame, np.array([bad, "<b>"])[y])
    summary = notebook_summary(model)
    assert "<img" not in summary
    assert "<b>" not in summary
    assert "&lt;img src=x onerror=alert(1)&gt;" in summary


def test_a_pipeline_shows_what_it_always_showed(rows):
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(2, random_state=0)).fit(
        *rows
    )
    assert "SharedKernelClassifier" in pipeline._repr_html_()
