"""Importance of features against integrals and shuffling done by hand."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import PooledClassifier, SharedKernelClassifier, questions
from kernelpool.errors import KernelpoolError

MODEL = SharedKernelClassifier.from_parameters(
    means=[[0.0, 0.0], [2.0, 0.0]],
    covariances=[1.0, 1.0],
    mixing=[[1, 0], [0, 1]],
    class_prior=[0.5, 0.5],
    classes=[0, 1],
)


def test_a_feature_is_integrated_out_exactly():
    x, y = MODEL.sample(400, random_state=0)
    found = questions.feature_importance(MODEL, x, y)
    density = norm(np.array([0.0, 2.0])).pdf(x[:, :1])  # (n, K): the second feature tells nothing
    log_proba = np.log((density / density.sum(axis=1, keepdims=True))[np.arange(400), y])
    np.testing.assert_allclose(found.importance, [np.log(2) + log_proba.mean(), 0.0], atol=1e-9)
    np.testing.assert_allclose(found.log_loss, -log_proba.mean())
    np.testing.assert_allclose(found.error[0], log_proba.std(ddof=1) / 20, rtol=1e-6)
    assert found.method == "marginal"
    assert str(found).splitlines()[1].startswith("  feature 0: +0.")


def test_a_row_of_weight_two_counts_as_two_rows():
    x, y = MODEL.sample(50, random_state=0)
    twice = questions.feature_importance(MODEL, np.vstack([x, x[:10]]), np.concatenate([y, y[:10]]))
    weighted = questions.feature_importance(
        MODEL, x, y, sample_weight=np.where(np.arange(50) < 10, 2.0, 1.0)
    )
    np.testing.assert_allclose(weighted.importance, twice.importance)
    np.testing.assert_allclose(weighted.log_loss, twice.log_loss)


def test_other_classifiers_have_their_values_shuffled():
    x, y = MODEL.sample(300, random_state=1)
    for model in (
        RandomForestClassifier(20, random_state=0),
        make_pipeline(
            StandardScaler(),
            PooledClassifier(
                [SharedKernelClassifier.prbf(2, random_state=0)], n_folds=2, random_state=0
            ),
        ),
    ):
        found = questions.feature_importance(model.fit(x[:200], y[:200]), x[200:], y[200:])
        assert found.method == "permutation"
        assert found.importance[0] > 10 * abs(found.importance[1]) or found.importance[0] > 0.3
    rng = np.random.RandomState(0)
    forest = RandomForestClassifier(20, random_state=0).fit(x[:200], y[:200])
    once = questions.feature_importance(forest, x[200:], y[200:], n_repeats=1, random_state=0)
    mixed = x[200:].copy()
    mixed[:, 0] = mixed[rng.permutation(100), 0]
    loss = [
        -np.log(
            np.maximum(forest.predict_proba(z)[np.arange(100), y[200:]], np.finfo(float).tiny)
        ).mean()
        for z in (mixed, x[200:])
    ]
    assert once.importance[0] == pytest.approx(loss[0] - loss[1])


def test_what_cannot_be_judged_is_said():
    x, y = MODEL.sample(20, random_state=0)
    with pytest.raises(KernelpoolError, match="y must hold labels of the classes"):
        questions.feature_importance(MODEL, x, y + 5)
    with pytest.raises(KernelpoolError, match="method must be"):
        questions.feature_importance(MODEL, x, y, method="gain")
    with pytest.raises(KernelpoolError, match="cannot leave features out"):
        questions.feature_importance(RandomForestClassifier(3).fit(x, y), x, y, method="marginal")


def test_missing_cells_are_integrated_out_as_well():
    x, y = MODEL.sample(60, random_state=0)
    holes = x.copy()
    holes[:20, 0] = np.nan
    found = questions.feature_importance(MODEL, holes, y)
    known = questions.feature_importance(MODEL, x[20:], y[20:])
    np.testing.assert_allclose(
        found.importance, known.importance * 40 / 60, atol=1e-9
    )  # nothing can be lost in the others
    np.testing.assert_allclose(found.log_loss, (40 * known.log_loss + 20 * np.log(2)) / 60)
