"""Weights of density estimates against a general-purpose optimizer, and against what is known in
closed form.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from kernelpool.pool.fit import stacked


@pytest.mark.parametrize("seed", range(4))
def test_the_weights_are_the_maximum(seed):
    rng = np.random.default_rng(seed)
    log_density = rng.normal(size=(4, 200)) * 2
    weight = rng.exponential(size=200)

    def loss(free):
        share = softmax(free)
        return -(weight @ logsumexp(log_density, axis=0, b=share[:, None]) + np.log(share).sum())

    found = minimize(loss, np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(stacked(log_density, weight), softmax(found.x), atol=1e-5)


def test_known_cases():
    ones = np.ones(10)
    np.testing.assert_allclose(
        stacked(np.zeros((3, 10)), ones), 1 / 3
    )  # nothing to tell them apart
    # each row is explained by one network alone: shares are counts, with one more for each network
    log_density = np.where(np.arange(2)[:, None] == (np.arange(10) < 7), 0.0, -1e9)
    np.testing.assert_allclose(stacked(log_density, ones), [(3 + 1) / 12, (7 + 1) / 12])
    np.testing.assert_allclose(stacked(log_density, 2 * ones), [(6 + 1) / 22, (14 + 1) / 22])
    np.testing.assert_allclose(stacked(log_density, ones, prior_rows=0.0), [0.3, 0.7])
    np.testing.assert_allclose(
        stacked(log_density - 1e6, ones), [4 / 12, 8 / 12]
    )  # far from every network
