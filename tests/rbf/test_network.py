"""The RBF network against its own formula and scikit-learn's logistic regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from kernelpool import RBFNetworkClassifier


def columns(network, X):
    """Kernels, features and bias from the public attributes alone."""
    z, center = ((a - network.location_) / network.scale_ for a in (X, network.means_))
    metric = getattr(network, "metric_", np.eye(X.shape[1]))
    features = getattr(network, "kernel_features_", 1)
    squared = (((z[:, None] - center) @ metric.T) ** 2 * features).sum(axis=2)
    kernels = np.exp(-0.5 * squared / network.width_**2)
    return np.hstack([kernels, z, np.ones((len(X), 1))])


@pytest.mark.parametrize(
    "settings",
    [{}, {"standardize": False}, {"max_features": 2}, {"metric": "learned"}, {"init": "random"}],
)
def test_attributes_are_the_network(three, rows, settings):
    for X, y in (three, rows):
        network = RBFNetworkClassifier(30, random_state=0, **settings).fit(X, y)
        scores = columns(network, X) @ network.readout_
        scores = np.hstack([0 * scores, scores]) if len(network.classes_) == 2 else scores
        expected = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected /= expected.sum(axis=1, keepdims=True)
        assert_allclose(network.predict_proba(X), expected, atol=1e-9)
        assert_allclose(network.activations(X), columns(network, X)[:, :30], atol=1e-9)
        decision = scores[:, 1] - scores[:, 0] if len(network.classes_) == 2 else np.log(expected)
        assert_allclose(network.decision_function(X), decision, atol=1e-7)
        assert network.loss_ == network.losses_[:, 2].min()
        assert network.mixing_.sum() == pytest.approx(1)


def test_the_readout_is_logistic_regression_with_that_ridge(three):
    X, y = three
    network = RBFNetworkClassifier(20, ridge=2.0, random_state=0).fit(X, y)
    inputs = columns(network, X)[:, :-1]
    inputs[:, 20:] /= np.sqrt(3)  # features are one more direction of variance one
    # scikit-learn: C times the loss of all rows and half the squared weights
    other = LogisticRegression(C=1 / network.ridge_, tol=1e-10, max_iter=100_000).fit(inputs, y)
    assert_allclose(network.predict_proba(X), other.predict_proba(inputs), atol=2e-3)


@pytest.mark.parametrize("max_features", [None, 1, 2])
def test_kernels_of_few_features_add_up(max_features):
    """The odds are a sum of functions of so many features: differences of a higher order vanish."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X.prod(axis=1) + X[:, 0] > 0
    network = RBFNetworkClassifier(60, max_features=max_features, random_state=0).fit(X, y)
    for n_features, vanishes in ((2, max_features == 1), (3, max_features is not None)):
        corners = np.array(list(np.ndindex(*[2] * n_features, *[1] * (3 - n_features))))
        at = np.where(corners, [1.0, -0.5, 0.8], [-0.7, 0.4, -0.9])
        difference = (-1.0) ** corners.sum(axis=1) @ network.decision_function(at)
        assert (abs(difference) < 1e-10) == vanishes
    if max_features is not None:
        assert set(network.kernel_features_.sum(axis=1)) == set(range(1, max_features + 1))
