"""The width at which the votes of the other rows tell the class of each row best: against double loops and SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from kernelpool import ParzenClassifier
from kernelpool.datasets import make_clouds, make_ripley


@pytest.fixture(scope="module")
def rows():
    return make_ripley(120, random_state=0)


def naive_log_votes(X, y, weight, radius, X_new=None):
    """log votes of each class for each row, left out of its own vote once; one pair after the other."""
    classes = np.unique(y)
    votes = np.zeros((len(X if X_new is None else X_new), len(classes)))
    for i, row in enumerate(X if X_new is None else X_new):
        for j, other in enumerate(X):
            times = weight[j] - 1 if X_new is None and i == j else weight[j]
            votes[i, np.searchsorted(classes, y[j])] += max(times, 0) * np.exp(
                -((row - other) ** 2).sum() / (2 * radius**2)
            )
    with np.errstate(divide="ignore"):
        log_votes = np.log(votes)
    return np.maximum(
        log_votes, log_votes.max(axis=1, keepdims=True) - np.log(1e12)
    )  # the longest odds


def loss_at(log_votes, codes, temperature, weight):
    scores = log_votes / temperature
    scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -(weight @ scores[np.arange(len(codes)), codes]) / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_and_the_temperature_are_those_of_a_double_loop(rows, weighted):
    X, y = rows
    weight = (
        np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
        if weighted
        else np.ones(len(y))
    )
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y, sample_weight=weight)
    votes, codes = (
        naive_log_votes(X, y, weight, network.radius_),
        np.searchsorted(network.classes_, y),
    )
    best = minimize_scalar(
        lambda log_t: loss_at(votes, codes, np.exp(log_t), weight),
        bounds=(-np.log(2), np.log(64)),
        method="bounded",
    )
    assert network.temperature_ == pytest.approx(np.exp(best.x), rel=0.02)
    assert network.radius_losses_.min() == pytest.approx(best.fun, rel=1e-4)
    for radius, found in zip(network.radii_, network.radius_losses_, strict=True):
        votes = naive_log_votes(X, y, weight, radius)
        if not np.isfinite(votes).all():  # so narrow that the double loop itself rounds to zero
            continue
        least = min(
            loss_at(votes, codes, t, weight)
            for t in np.exp(np.linspace(-np.log(2), np.log(64), 300))
        )
        assert found == pytest.approx(
            least, rel=3e-3
        )  # the search stays a little inside its bounds
        assert network.radius_losses_.min() <= found


def test_the_temperature_is_used_in_probabilities_and_not_in_densities(rows):
    X, y = rows
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y)
    X_new = X[:20] + 0.1
    scores = naive_log_votes(X, y, np.ones(len(y)), network.radius_, X_new) / network.temperature_
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.predict_proba(X_new), expected, atol=1e-9)
    np.testing.assert_allclose(network.predict_log_proba(X_new), np.log(expected), atol=1e-8)
    plain = ParzenClassifier(radius=network.radius_, standardize=False).fit(X, y)
    assert plain.temperature_ == 1
    np.testing.assert_allclose(network.log_density(X_new), plain.log_density(X_new), rtol=1e-12)
    np.testing.assert_array_equal(network.predict(X_new), plain.predict(X_new))


def test_rows_of_ones_own_choose(rows):
    X, y = rows
    X_val, y_val = make_ripley(300, random_state=7)
    network = ParzenClassifier(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    assert network.radius_losses_.min() == pytest.approx(
        log_loss(y_val, network.predict_proba(X_val)), rel=1e-3
    )
    assert network.radius_ != ParzenClassifier(random_state=0).fit(X, y).radius_


def test_it_decides_better_than_the_likelihood_of_errors():
    X, y = make_clouds(1500, random_state=0)
    X_test, y_test = make_clouds(2000, random_state=1)
    conditional, errors = (
        ParzenClassifier(radius=r, random_state=0).fit(X, y) for r in ("conditional", "loo")
    )
    assert log_loss(y_test, conditional.predict_proba(X_test)) < log_loss(
        y_test, errors.predict_proba(X_test)
    )


def test_a_single_row_of_a_class_does_not_set_the_temperature(rows):
    X, y = rows
    alone = ParzenClassifier(random_state=0).fit(np.vstack([X, [[3.0, 3.0]]]), np.append(y, 9))
    assert 0.5 < alone.temperature_ < 3
    two = ParzenClassifier().fit([[0.0], [1.0]], [0, 1])
    assert two.predict([[0.1], [0.9]]).tolist() == [0, 1]
    assert two.temperature_ == 1
