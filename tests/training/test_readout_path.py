"""RBF networks along a path of widths and ridges, beside scikit-learn's logistic regression on the same activations."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from kernelpool.training import readout_path
from kernelpool.training.cross_fit import Selection
from kernelpool.training.readout_path import (
    RIDGES,
    Setting,
    fit_readout_path,
    linear_unit,
    squared_distances,
)


def rings(n, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    x = (1 + codes + 0.15 * rng.normal(size=n))[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )
    return (x - x.mean(axis=0)) / x.std(axis=0), codes, np.ones(n)


def test_the_output_layer_is_logistic_regression_with_that_ridge(monkeypatch):
    monkeypatch.setattr(readout_path, "STEPS", 5000)
    monkeypatch.setattr(readout_path, "TOLERANCE", 1e-13)
    train, other = rings(300, 0), rings(300, 1)
    found = fit_readout_path(train, other, n_kernels=20, n_classes=3, seed=0)
    activations = np.hstack(
        [
            np.exp(-0.5 * squared_distances(train[0], found.center) / found.variance),
            train[0] * linear_unit(train[0]),
        ]
    )
    # scikit-learn: C times the loss of all rows and half the squared weights
    reference = LogisticRegression(
        C=1 / (2 * RIDGES[found.setting.ridge]), tol=1e-10, max_iter=100_000
    ).fit(activations, train[1])
    scores = found.scores(train[0])
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        proba / proba.sum(axis=1, keepdims=True), reference.predict_proba(activations), atol=2e-3
    )


def test_rings_are_told_apart():
    found = fit_readout_path(rings(600, 0), rings(300, 1), n_kernels=100, n_classes=3, seed=0)
    x, codes, _ = rings(1000, 2)
    assert (
        found.scores(x).argmax(axis=1) != codes
    ).mean() < 0.03  # rings of width 0.15 a unit apart: 0.1 % at best


def test_the_loss_is_that_of_the_rows_that_took_no_part():
    train, other = rings(300, 0), rings(200, 1)
    found = fit_readout_path(train, other, n_kernels=50, n_classes=3, seed=0)
    scores = found.scores(other[0])
    log_proba = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert found.loss == pytest.approx(-log_proba[np.arange(200), other[1]].mean(), rel=1e-9)


def test_a_setting_found_before_is_looked_for_nearby():
    train, other = rings(300, 0), rings(200, 1)
    found = fit_readout_path(train, other, n_kernels=50, n_classes=3, seed=0, near=Setting(2, 1))
    assert found.setting.width == 2
    assert abs(found.setting.ridge - 1) <= 1


def test_a_row_twice_is_a_row_of_weight_two(monkeypatch):
    monkeypatch.setattr(readout_path, "STEPS", 500)
    monkeypatch.setattr(
        readout_path, "_centers", lambda x, *others: np.unique(x, axis=0)[::3]
    )  # k-means starts at random rows
    x, codes, _ = rings(75, 0)
    other, near = rings(100, 1), Setting(1, 2)
    heavy = fit_readout_path(
        (x, codes, np.full(75, 2.0)), other, n_kernels=30, n_classes=3, seed=0, near=near
    )
    x, codes = np.repeat(x, 2, axis=0), np.repeat(codes, 2)
    twice = fit_readout_path(
        (x, codes, np.ones(150)), other, n_kernels=30, n_classes=3, seed=0, near=near
    )
    np.testing.assert_allclose(twice.scores(other[0]), heavy.scores(other[0]), atol=1e-6)


def test_one_distinct_row_and_columns_without_width():
    x = np.column_stack([np.zeros(20), np.arange(20) % 2])
    found = fit_readout_path(
        (x, np.arange(20) % 2, np.ones(20)),
        (x, np.arange(20) % 2, np.ones(20)),
        n_kernels=300,
        n_classes=2,
        seed=0,
    )
    assert np.isfinite(found.scores(x)).all()
    assert (found.scores(x).argmax(axis=1) == np.arange(20) % 2).all()


def test_no_row_is_judged_by_the_setting_that_it_has_chosen():
    train, (x, codes, weight) = rings(60, 0), rings(60, 1)
    settings = {"n_kernels": 20, "n_classes": 3, "seed": 0, "near": Setting(2, 1)}
    selection = Selection(codes, weight, x[:, 0])
    fit_readout_path(train, (x, codes, weight), selection=selection, **settings)
    for mine in (selection.part == p for p in range(5)):  # what the others choose by themselves
        other = fit_readout_path(train, (x[~mine], codes[~mine], weight[~mine]), **settings)
        np.testing.assert_allclose(
            selection.log_proba[mine], log_softmax(other.scores(x[mine]), axis=1), atol=1e-9
        )


def test_labels_without_meaning_are_not_foretold():
    """Of coins no forecast has a mean loss below log 2; the least loss on the very rows that choose it promises more."""
    rng = np.random.default_rng(0)
    chosen, judged = [], []
    for seed in range(30):
        coins = [(rng.normal(size=(n, 4)), rng.integers(0, 2, n), np.ones(n)) for n in (60, 40)]
        selection = Selection(coins[1][1], np.ones(40), coins[1][0][:, 0])
        found = fit_readout_path(*coins, n_kernels=30, n_classes=2, seed=seed, selection=selection)
        chosen.append(found.loss)
        judged.append(-selection.log_proba[np.arange(40), coins[1][1]].mean())
    assert np.mean(chosen) < np.mean(judged) - 0.002
    assert np.mean(judged) > np.log(2) - 2 * np.std(judged) / np.sqrt(30)
