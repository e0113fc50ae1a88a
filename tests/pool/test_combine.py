"""Opinion pools and stacked densities: limits that are known, and optima that another optimizer
agrees with.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.linear_model import LogisticRegression

from kernelpool.complete.imputation import imputation_mixture, imputations
from kernelpool.data.door import surveyed
from kernelpool.pool.combine import (
    LEAST_LOG_PROBA,
    PRICE,
    RIDGE,
    PoolNetwork,
    best_combination,
    combined,
    log_loss,
    log_mean_proba,
    stacked,
)
from kernelpool.pool.views import ViewedRows
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns


def members(n=400, n_classes=3, seed=0):
    """Two members with independent evidence, one that guesses, and the classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    evidence = [2.0 * np.eye(n_classes)[codes] + rng.normal(size=(n, n_classes)) for _ in range(2)]
    guess = rng.normal(size=(n, n_classes))
    return log_softmax(np.stack([*evidence, guess]), axis=2), codes


def test_independent_evidence_is_added_and_guesses_are_dropped():
    log_proba, codes = members(40_000)
    weight, _, loss = best_combination(log_proba, codes, np.ones(len(codes)), "log_linear")
    # each evidence is a Gaussian about 2 in its class: log-odds of twice the difference, of which
    # softmax takes one
    assert_allclose(weight[:2], [2, 2], rtol=0.15)
    assert weight[2] < 0.05
    assert loss < min(log_loss(member, codes, np.ones(len(codes))) for member in log_proba)


def test_log_linear_weights_are_the_minimum():
    log_proba, codes = members()
    row_weight = np.random.default_rng(1).uniform(0.5, 2, len(codes))
    weight, *_ = best_combination(log_proba, codes, row_weight, "log_linear")

    def loss(w):
        scores = log_softmax(np.tensordot(np.abs(w), log_proba, 1), axis=1)
        ridge = RIDGE * len(w) * np.var(np.abs(w)) / row_weight.sum()
        return log_loss(scores, codes, row_weight) + PRICE * np.abs(w).sum() + ridge

    options = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 4000}
    best = np.abs(minimize(loss, np.ones(3), method="Nelder-Mead", options=options).x)
    assert_allclose(weight, np.where(best < 0.01, 0, best), atol=2e-3)


def test_auto_takes_the_lower_loss_and_certainty_does_no_harm():
    log_proba, codes = members()
    labels = np.where(np.arange(len(codes)) % 10 == 0, (codes + 1) % 3, codes)
    # certain of all, wrong of every tenth
    log_proba[1] = np.where(np.eye(3)[labels] > 0, 0.0, LEAST_LOG_PROBA)
    loss = {}
    for pooling in ("log_linear", "linear", "auto"):
        weight, kind, loss[pooling] = best_combination(
            log_proba, codes, np.ones(len(codes)), pooling
        )
        assert np.isfinite(combined(log_proba, weight, kind)).all()
    assert loss["auto"] == min(loss["log_linear"], loss["linear"])


def test_members_without_skill_leave_the_best_one():
    codes = np.arange(60) % 2
    wrong = log_softmax(np.random.default_rng(0).normal(size=(2, 60, 2)), axis=2)
    wrong[np.arange(2)[:, None], np.arange(60), codes] -= [[9.0], [8.0]]
    wrong = log_softmax(wrong, axis=2)
    weight, *_ = best_combination(wrong, codes, np.ones(60), "log_linear")
    assert weight.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_stacked_weights_are_the_maximum(seed):
    rng = np.random.default_rng(seed)
    log_density = rng.normal(size=(4, 200)) * 2
    weight = rng.exponential(size=200)

    def loss(free):
        share = softmax(free)
        return -(weight @ logsumexp(log_density, axis=0, b=share[:, None]) + np.log(share).sum())

    best = minimize(loss, np.zeros(4), tol=1e-12)
    assert_allclose(stacked(log_density, weight), softmax(best.x), atol=1e-5)


def test_stacked_weights_in_closed_form():
    ones = np.ones(10)
    assert_allclose(stacked(np.zeros((3, 10)), ones), 1 / 3)
    # each row is explained by one network alone: shares are counts, with one more for each network
    log_density = np.where(np.arange(2)[:, None] == (np.arange(10) < 7), 0.0, -1e9)
    assert_allclose(stacked(log_density, ones), [(3 + 1) / 12, (7 + 1) / 12])
    assert_allclose(stacked(log_density, 2 * ones), [(6 + 1) / 22, (14 + 1) / 22])
    # far from every network
    assert_allclose(stacked(log_density - 1e6, ones), [4 / 12, 8 / 12])


def test_blocks_and_views_of_rows_are_predicted_alike(monkeypatch):
    """Tables with and without imputation, in blocks of 50 rows and at once."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 4))
    codes = np.arange(240) % 3
    x = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    known = ~np.isnan(x).any(axis=1)
    draws = imputations(imputation_mixture(surveyed(as_rows(x, codes), np.arange(3))), x[~known])
    line, other = (LogisticRegression(C=c).fit(X, codes) for c in (0.1, 1.0))
    networks = [
        PoolNetwork(line, "a", "complete table"),
        PoolNetwork(other, "b", "table"),
        PoolNetwork(other, "b", "complete table"),
    ]
    rows = ViewedRows(x, X, Columns.numbers(4), {}, draws)
    log_proba = [log_mean_proba([network], rows) for network in networks]
    expected = other.predict_log_proba(X)
    assert_allclose(log_proba[1], np.maximum(expected, LEAST_LOG_PROBA), atol=1e-9)
    assert_allclose(log_proba[2][known], expected[known], atol=1e-9)
    mean = np.mean([line.predict_proba(z) for z in draws], axis=0)
    assert_allclose(np.exp(log_proba[0][~known]), mean, atol=1e-9)
    monkeypatch.setattr("kernelpool.pool.views.ROWS_AT_ONCE", 50)
    for network, expected in zip(networks, log_proba, strict=True):
        assert_allclose(log_mean_proba([network], rows), expected, rtol=1e-12)
