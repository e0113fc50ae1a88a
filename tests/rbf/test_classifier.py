"""The RBF network with a grid, against scikit-learn's logistic regression and its own formula."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from kernelpool import RBFNetworkClassifier
from kernelpool.datasets import make_ripley
from kernelpool.errors import KernelpoolError


@pytest.fixture(scope="module")
def rows():
    return make_ripley(300, random_state=0)


@pytest.fixture(scope="module")
def three():
    """Three classes in features of very different units."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 360)
    X = np.column_stack([y == 1, y == 2, rng.normal(size=360)]) + rng.normal(0, 0.5, (360, 3))
    return X * [1000.0, 1.0, 0.01] + [5e4, 0.0, 3.0], np.array(["a", "b", "c"])[y]


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
        np.testing.assert_allclose(network.predict_proba(X), expected, atol=1e-9)
        np.testing.assert_allclose(network.activations(X), columns(network, X)[:, :30], atol=1e-9)
        decision = scores[:, 1] - scores[:, 0] if len(network.classes_) == 2 else np.log(expected)
        np.testing.assert_allclose(network.decision_function(X), decision, atol=1e-7)
        assert network.loss_ == network.losses_[:, 2].min()
        assert network.mixing_.sum() == pytest.approx(1)


def test_the_readout_is_logistic_regression_with_that_ridge(three):
    X, y = three
    network = RBFNetworkClassifier(20, ridge=2.0, random_state=0).fit(X, y)
    inputs = columns(network, X)[:, :-1]
    inputs[:, 20:] /= np.sqrt(3)  # features are one more direction of variance one
    # scikit-learn: C times the loss of all rows and half the squared weights
    other = LogisticRegression(C=1 / network.ridge_, tol=1e-10, max_iter=100_000).fit(inputs, y)
    np.testing.assert_allclose(network.predict_proba(X), other.predict_proba(inputs), atol=2e-3)


def test_validation_rows_choose_and_training_rows_train(rows):
    X, y = rows
    X_val, y_val = make_ripley(400, random_state=5)
    network = RBFNetworkClassifier(40, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    probability = network.predict_proba(X_val)[np.arange(400), y_val]
    assert network.loss_ == pytest.approx(-np.log(probability).mean(), abs=1e-9)
    with pytest.raises(KernelpoolError, match="y_val must be given"):
        RBFNetworkClassifier().fit(X, y, X_val=X_val)


def test_validation_rows_do_not_select_their_own_predictions():
    """For random labels no prediction has a mean loss below log 2."""
    rng = np.random.default_rng(0)
    selected = []
    held_out = []
    for seed in range(30):
        X, X_val = (rng.normal(size=(n, 4)) for n in (60, 40))
        y, y_val = (rng.integers(0, 2, n) for n in (60, 40))
        network = RBFNetworkClassifier(30, random_state=seed).fit(X, y, X_val=X_val, y_val=y_val)
        selected.append(network.loss_)
        held_out.append(-network.validation_log_proba_[np.arange(40), y_val].mean())
    assert np.mean(selected) < np.mean(held_out) - 0.002
    assert np.mean(held_out) > np.log(2) - 2 * np.std(held_out) / np.sqrt(30)


@pytest.mark.parametrize("unit", [1e-3, 1000.0])
def test_the_unit_of_the_weights_does_not_matter(unit):
    """Where rows count a thousand times, ridges of a thousand times the strength are tried."""
    X, y = make_ripley(300, random_state=3)
    one = RBFNetworkClassifier(20, random_state=0).fit(X, y)
    many = RBFNetworkClassifier(20, random_state=0).fit(X, y, np.full(len(X), unit))
    assert many.ridge_ == pytest.approx(unit * one.ridge_)
    np.testing.assert_allclose(many.predict_proba(X), one.predict_proba(X), atol=1e-3)


def test_narrowed_copies_try_one_width(rows):
    X, y = rows
    network = RBFNetworkClassifier(40, random_state=0).fit(X, y)
    copy = network.narrowed()
    assert not hasattr(copy, "means_")
    again = copy.fit(X, y)
    assert len(again.losses_) <= 5 < len(network.losses_)
    np.testing.assert_allclose(again.predict_proba(X), network.predict_proba(X), atol=0.05)


@pytest.mark.parametrize("max_features", [None, 1, 2])
def test_kernels_of_few_features_add_up(max_features):
    """The odds are a sum of functions of so many features: differences of a higher order vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X.prod(axis=1) + X[:, 0] > 0
    network = RBFNetworkClassifier(60, max_features=max_features, random_state=0).fit(X, y)

    def mixed_difference(*features):
        axes = ([0, 1] if i in features else [0] for i in range(3))
        corners = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
        at = np.where(corners, [1.0, -0.5, 0.8], [-0.7, 0.4, -0.9])
        return abs(((-1.0) ** corners.sum(axis=1)) @ network.decision_function(at))

    assert (mixed_difference(0, 1) < 1e-10) == (max_features == 1)
    assert (mixed_difference(0, 1, 2) < 1e-10) == (max_features is not None)
    if max_features is not None:
        assert set(network.kernel_features_.sum(axis=1)) == set(range(1, max_features + 1))


@pytest.mark.parametrize(
    "change",
    [{"n_kernels": 10}, {"init": "random"}, {"ridge": 5.0}, {"width": 3.0}, {"max_features": 1}],
)
def test_every_parameter_matters(rows, change):
    X, y = rows
    base = {"n_kernels": 40, "random_state": 0}
    one, other = (
        RBFNetworkClassifier(**{**base, **c}).fit(X, y).predict_proba(X) for c in ({}, change)
    )
    assert np.abs(one - other).max() > 1e-3


def test_metric_and_few_features_exclude_each_other(rows):
    with pytest.raises(KernelpoolError, match="max_features and metric='learned' exclude"):
        RBFNetworkClassifier(metric="learned", max_features=2).fit(*rows)


@pytest.mark.parametrize("X", [[[0.0], [1.0]], [[0.0, 2.0], [1.0, 2.0]]])
def test_two_rows_are_enough(X):
    network = RBFNetworkClassifier(random_state=0).fit(X, [0, 1])
    assert network.predict(X).tolist() == [0, 1]
    assert np.isnan(network.loss_)
