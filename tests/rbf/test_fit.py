"""The selection of width and ridge on held-out rows."""

import numpy as np
import pytest

from kernelpool import RBFNetworkClassifier
from kernelpool.datasets import make_ripley


@pytest.mark.parametrize("unit", [1e-3, 1000.0])
def test_the_unit_of_the_weights_does_not_matter(unit):
    """Where rows count a thousand times, ridges of a thousand times the strength are tried."""
    X, y = make_ripley(300, random_state=3)
    one = RBFNetworkClassifier(20, random_state=0).fit(X, y)
    many = RBFNetworkClassifier(20, random_state=0).fit(X, y, np.full(len(X), unit))
    assert many.ridge_ == pytest.approx(unit * one.ridge_)
    np.testing.assert_allclose(many.predict_proba(X), one.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("X", [[[0.0], [1.0]], [[0.0, 2.0], [1.0, 2.0]]])
def test_two_rows_are_enough(X):
    network = RBFNetworkClassifier(random_state=0).fit(X, [0, 1])
    assert network.predict(X).tolist() == [0, 1]
    assert np.isnan(network.loss_)
