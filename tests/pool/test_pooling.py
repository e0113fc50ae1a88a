"""Opinion pools: limits that are known, and optima that another optimizer agrees with."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from kernelpool.pool.fit import PRICE, RIDGE, log_loss, normalized, pool, pooled


def members(n=400, n_classes=3, seed=0):
    """Two members with independent evidence, one that guesses, and the classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    evidence = [2.0 * np.eye(n_classes)[codes] + rng.normal(size=(n, n_classes)) for _ in range(2)]
    guess = rng.normal(size=(n, n_classes))
    return log_softmax(np.stack([*evidence, guess]), axis=2), codes


def test_independent_evidence_is_added_and_guesses_are_dropped():
    log_proba, codes = members(40_000)
    found = pool(log_proba, codes, np.ones(len(codes)), "log_linear")
    # each evidence is a Gaussian about 2 in its class: log-odds of twice the difference, of which
    # softmax takes one
    np.testing.assert_allclose(found.weight[:2], [2, 2], rtol=0.15)
    assert found.weight[2] < 0.05
    assert found.loss < min(log_loss(member, codes, np.ones(len(codes))) for member in log_proba)


def test_the_weights_are_the_minimum():
    log_proba, codes = members()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(codes))
    found = pool(log_proba, codes, weight, "log_linear")

    def loss(w):
        return (
            log_loss(normalized(np.tensordot(np.abs(w), log_proba, 1)), codes, weight)
            + PRICE * np.abs(w).sum()
            + RIDGE * len(w) * np.var(np.abs(w)) / weight.sum()
        )

    best = minimize(
        loss,
        np.ones(3),
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 4000},
    )
    np.testing.assert_allclose(
        found.weight, np.where(np.abs(best.x) < 0.01, 0, np.abs(best.x)), atol=2e-3
    )


@pytest.mark.parametrize("kind", ["log_linear", "linear"])
def test_a_row_twice_is_a_row_of_weight_two(kind):
    log_proba, codes = members(200)
    weight = np.random.default_rng(2).integers(1, 4, 200)
    heavy = pool(log_proba, codes, weight.astype(float), kind)
    twice = pool(
        np.repeat(log_proba, weight, axis=1), np.repeat(codes, weight), np.ones(weight.sum()), kind
    )
    np.testing.assert_allclose(heavy.weight, twice.weight, atol=1e-4)


def test_auto_takes_the_lower_loss_and_certainty_does_no_harm():
    log_proba, codes = members()
    with np.errstate(divide="ignore"):
        log_proba[1] = np.log(
            np.eye(3)[(codes + (np.arange(len(codes)) % 10 == 0)) % 3]
        )  # certain of all, wrong of every tenth
    poolings = {
        kind: pool(log_proba, codes, np.ones(len(codes)), kind)
        for kind in ("log_linear", "linear", "auto")
    }
    assert poolings["auto"].loss == min(poolings["log_linear"].loss, poolings["linear"].loss)
    for found in poolings.values():
        assert np.isfinite(pooled(log_proba, *found[:2])).all()
