"""Cross-fitting and selection by held-out rows, by their definitions."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from kernelpool.data.cross_fit import Selection, cross_fit


def test_cross_fit_is_cross_val_predict_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = np.arange(60) % 3
    weight = rng.uniform(0.5, 2, 60)
    fold = rng.integers(0, 4, 60)
    model = LogisticRegression()

    def fit(train, held_out):
        network = LogisticRegression().fit(train[0], train[1], train[2])
        return network, network.predict_log_proba(held_out[0])

    networks, held_out = cross_fit(fit, (x, y, weight), fold)
    expected = cross_val_predict(
        model,
        x,
        y,
        cv=PredefinedSplit(fold),
        method="predict_log_proba",
        params={"sample_weight": weight},
    )
    np.testing.assert_allclose(held_out, expected)
    some, parts = cross_fit(fit, (x, y, weight), np.where(fold == 3, -1, fold), only=[1])
    np.testing.assert_array_equal(some[0].coef_, networks[1].coef_)
    np.testing.assert_array_equal(np.isfinite(parts).all(axis=1), fold == 1)


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_each_part_is_scored_at_the_step_that_the_others_select(gain):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 40)
    weight = rng.uniform(0.5, 2, 40)
    steps = log_softmax(rng.normal(size=(12, 40, 3)), axis=2)
    selection = Selection(codes, weight, rng.random(40), gain)
    for step in steps:
        assert selection.add(step) == pytest.approx(
            log_loss(codes, np.exp(step), sample_weight=weight, labels=[0, 1, 2])
        )
    for p in range(5):
        others = selection.part != p
        least = np.inf
        for step in steps:
            loss = log_loss(
                codes[others], np.exp(step[others]), sample_weight=weight[others], labels=[0, 1, 2]
            )
            if loss < (1 - gain) * least:
                least = loss
                chosen = step
        np.testing.assert_array_equal(selection.log_proba[~others], chosen[~others])


def test_rows_without_a_class_and_classes_ruled_out():
    selection = Selection(np.array([0, -1, 1]), np.ones(3), np.arange(3))
    with np.errstate(all="raise"):
        loss = selection.add(np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]]))
    assert loss == pytest.approx(5e5)  # of two rows with a class one is ruled out
    assert selection.add(np.log(np.full((3, 2), 0.5))) == pytest.approx(np.log(2))
    assert np.isfinite(selection.log_proba[0]).all()  # the others like the second step better
