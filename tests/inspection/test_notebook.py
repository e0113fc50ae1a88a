"""What a notebook shows of a model: scikit-learn's diagram, and of a fitted one a summary."""

import re

import numpy as np
import pandas as pd
import pytest
import zoo
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import estimator_html_repr

from kernelpool import SharedKernelClassifier
from kernelpool.inspection import explain
from kernelpool.inspection.notebook import notebook_summary


def diagram_of(model):
    """Without the numbers of containers, which count up."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", estimator_html_repr(model))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["em", "average", "reduced", "em_log", "neurons", "reject"])
def test_a_fitted_model_shows_the_diagram_and_a_summary(name):
    model = zoo.fitted(name)
    summary = notebook_summary(model)
    bundle = model._repr_mimebundle_()
    assert "<table>" in summary
    assert model._repr_html_().endswith(summary)
    assert bundle["text/plain"] == repr(model)
    assert bundle["text/html"].endswith(summary)
    page = re.sub(r"sk-(container|estimator)-id-\d+", "", model._repr_html_())
    assert page.startswith(diagram_of(model))
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
    assert notebook_summary(clone(model)) == ""


def test_the_table_has_the_greatest_kernels_first_is_cut_and_escaped():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=[bad, "b"])
    model = SharedKernelClassifier.prbf(12, random_state=0).fit(frame, np.array([bad, "<b>"])[y])
    summary = notebook_summary(model)
    share = np.sort(model.mixing_ @ model.class_prior_)[::-1]
    assert summary.count("<tr>") == 11
    assert "and 2 more kernels" in summary
    assert summary.index(f"{100 * share[0]:.1f} %") < summary.index(f"{100 * share[9]:.1f} %")
    assert "12 spherical Gaussian kernels shared fully between 2 classes in 2 features" in summary
    assert "<img" not in summary
    assert "<b>" not in summary
    assert "&lt;img src=x onerror=alert(1)&gt;" in summary
    model = SharedKernelClassifier.from_parameters(
        means=[[1e8], [1e8 + 900]],
        covariances=[16.0, 16.0],
        mixing=[[0.1, 0.9], [0.9, 0.1]],
        class_prior=[0.5, 0.5],
        classes=["a", "b"],
    )
    summary = notebook_summary(model)
    assert "b 90 %, a 10 %" in summary
    assert "100000900 ± 4<" in summary


def test_dates_are_shown_as_dates():
    """Days without hours as such."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    day = np.datetime64("2024-03-01") + rng.integers(0, 20, 200) + 40 * y
    X = pd.DataFrame({"day": day, "width": rng.normal(size=200)})
    model = SharedKernelClassifier(2, training="em", random_state=0).fit(X, y)
    mean = pd.Timestamp(0) + pd.Timedelta(days=round(model.means_[0, 0]))
    deviation = model.covariances_[0].reshape(2, -1)[0, 0] ** 0.5
    assert f"<td>{mean.date()} ± {round(deviation, 1):g} days</td>" in model._repr_html_()
    assert f"day = {day[0]}" in str(explain(model, X[:1])[0])
