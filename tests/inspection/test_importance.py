"""Importance of features against integrals done by hand."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import RBFNetworkClassifier, SharedKernelClassifier
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import feature_importance

MODEL = SharedKernelClassifier.from_parameters(
    means=[[0.0, 0.0], [2.0, 0.0]],
    covariances=[1.0, 1.0],
    mixing=[[1, 0], [0, 1]],
    class_prior=[0.5, 0.5],
    classes=[0, 1],
)


def test_a_feature_is_integrated_out_exactly():
    x, y = MODEL.sample(400, random_state=0)
    found = feature_importance(MODEL, x, y)
    density = norm(np.array([0.0, 2.0])).pdf(x[:, :1])  # (n, K): the second feature tells nothing
    log_proba = np.log((density / density.sum(axis=1, keepdims=True))[np.arange(400), y])
    np.testing.assert_allclose(found.importance, [np.log(2) + log_proba.mean(), 0.0], atol=1e-9)
    np.testing.assert_allclose(found.log_loss, -log_proba.mean())
    np.testing.assert_allclose(found.error[0], log_proba.std(ddof=1) / 20, rtol=1e-6)
    assert str(found).splitlines()[1].startswith("  feature 0: +0.")


def test_a_row_of_weight_two_counts_as_two_rows():
    x, y = MODEL.sample(50, random_state=0)
    twice = feature_importance(MODEL, np.vstack([x, x[:10]]), np.concatenate([y, y[:10]]))
    weighted = feature_importance(MODEL, x, y, sample_weight=np.where(np.arange(50) < 10, 2.0, 1.0))
    np.testing.assert_allclose(weighted.importance, twice.importance)
    np.testing.assert_allclose(weighted.log_loss, twice.log_loss)


def test_networks_that_are_no_mixtures_and_pipelines_know_which_feature_matters():
    x, y = MODEL.sample(300, random_state=1)
    for model in (
        RBFNetworkClassifier(20, random_state=0),
        make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(2, random_state=0)),
    ):
        found = feature_importance(model.fit(x[:200], y[:200]), x[200:], y[200:])
        assert found.importance[0] > 0.2
        assert abs(found.importance[1]) < 0.1


def test_other_labels_are_refused():
    x, y = MODEL.sample(20, random_state=0)
    with pytest.raises(KernelpoolError, match="y must hold labels of the classes"):
        feature_importance(MODEL, x, y + 5)


def test_missing_cells_are_integrated_out_as_well():
    x, y = MODEL.sample(60, random_state=0)
    holes = x.copy()
    holes[:20, 0] = np.nan
    found = feature_importance(MODEL, holes, y)
    known = feature_importance(MODEL, x[20:], y[20:])
    np.testing.assert_allclose(
        found.importance, known.importance * 40 / 60, atol=1e-9
    )  # nothing can be lost in the others
    np.testing.assert_allclose(found.log_loss, (40 * known.log_loss + 20 * np.log(2)) / 60)
