"""Logistic regression with a ridge, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from kernelpool.logistic import RidgePath


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("before", [(), (50.0, 5.0)])
def test_a_solution_is_that_of_scikit_learn(n_classes, before):
    """Weights of the rows, collinear inputs far from zero, and ridges before this one included."""
    rng = np.random.default_rng(0)
    codes = np.arange(200) % n_classes
    inputs = rng.normal(size=(200, 3)) + 0.8 * np.eye(3)[codes]
    inputs = np.column_stack([inputs, inputs.sum(axis=1)]) * [1, 10, 0.1, 1] + [100, 0, 0, -5]
    weight = rng.uniform(0.5, 2, 200)
    path = RidgePath(inputs, codes, weight, n_classes)
    for ridge in (*before, 0.5):
        readout = path.solve(ridge, max_iter=5000, tol=1e-15)
    # scikit-learn: C times the loss of all rows and half the squared weights; one of two classes
    # has all weights, which are shared here
    peer = LogisticRegression(C=(2 if n_classes == 2 else 1) / 0.5, tol=1e-12, max_iter=100_000)
    peer.fit(inputs - inputs.mean(axis=0), codes, sample_weight=weight)
    scores = inputs @ readout[:-1] + readout[-1]
    scores = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores - scores.mean(1)[:, None]
    expected = peer.decision_function(inputs - inputs.mean(axis=0))
    np.testing.assert_allclose(scores, expected, atol=1e-5)
