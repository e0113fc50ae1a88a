"""Parzen networks from rows: the width against double loops and SciPy, editing, and how few kernels
suffice.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from kernelpool import MultiEdit, ParzenClassifier
from kernelpool.datasets import make_clouds, make_ripley
from kernelpool.parzen.fit import (
    ParzenConfig,
    ParzenRows,
    Reduction,
    SizeSearch,
    apportion,
)
from kernelpool.parzen.network import PROFILES


@pytest.fixture(scope="module")
def rows():
    return make_ripley(120, random_state=0)


# -- the width -------------------------------------------------------------------------------------


def naive_log_votes(X, y, weight, radius, X_new=None):
    """log votes of each class for each row, left out with its copies; one pair after the other."""
    classes = np.unique(y)
    votes = np.zeros((len(X if X_new is None else X_new), len(classes)))
    for i, row in enumerate(X if X_new is None else X_new):
        for j, other in enumerate(X):
            if X_new is not None or (row != other).any():
                height = np.exp(-((row - other) ** 2).sum() / (2 * radius**2))
                votes[i, np.searchsorted(classes, y[j])] += weight[j] * height
    with np.errstate(divide="ignore"):
        log_votes = np.log(votes)
    longest_odds = np.log(1e12)
    return np.maximum(log_votes, log_votes.max(axis=1, keepdims=True) - longest_odds)


def loss_at(log_votes, codes, temperature, weight):
    scores = log_votes / temperature
    scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -(weight @ scores[np.arange(len(codes)), codes]) / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_and_the_temperature_are_those_of_a_double_loop(rows, weighted):
    X, y = rows
    weight = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else np.ones(len(y))
    weight = weight.astype(float)
    if weighted:  # copies are left out with their row
        X = np.vstack([X, X[:9]])
        y = np.append(y, y[:9])
        weight = np.append(weight, weight[:9])
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y, sample_weight=weight)
    codes = np.searchsorted(network.classes_, y)
    votes = naive_log_votes(X, y, weight, network.radius_)
    best = minimize_scalar(
        lambda log_t: loss_at(votes, codes, np.exp(log_t), weight),
        bounds=(-np.log(2), np.log(64)),
        method="bounded",
    )
    assert network.temperature_ == pytest.approx(np.exp(best.x), rel=0.02)
    assert network.radius_losses_.min() == pytest.approx(best.fun, rel=1e-4)
    for radius, found in list(zip(network.radii_, network.radius_losses_, strict=True))[::3]:
        votes = naive_log_votes(X, y, weight, radius)
        if np.isfinite(votes).all():  # otherwise the double loop itself rounds to zero
            temperatures = np.exp(np.linspace(-np.log(2), np.log(64), 300))
            least = min(loss_at(votes, codes, t, weight) for t in temperatures)
            assert found == pytest.approx(least, rel=3e-3)
        assert network.radius_losses_.min() <= found


def test_the_temperature_is_used_in_probabilities_and_not_in_densities(rows):
    X, y = rows
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y)
    X_new = X[:20] + 0.1
    scores = naive_log_votes(X, y, np.ones(len(y)), network.radius_, X_new) / network.temperature_
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.predict_proba(X_new), expected, atol=1e-9)
    plain = ParzenClassifier(radius=network.radius_, standardize=False).fit(X, y)
    assert plain.temperature_ == 1
    np.testing.assert_allclose(network.log_density(X_new), plain.log_density(X_new), rtol=1e-12)


def test_validation_rows_choose_the_width(rows):
    X, y = rows
    X_val, y_val = make_ripley(300, random_state=7)
    network = ParzenClassifier(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    loss = log_loss(y_val, network.predict_proba(X_val))
    assert network.radius_losses_.min() == pytest.approx(loss, rel=1e-3)
    assert network.radius_ != ParzenClassifier(random_state=0).fit(X, y).radius_


def test_a_single_row_of_a_class_does_not_set_the_temperature(rows):
    X, y = rows
    alone = ParzenClassifier(random_state=0).fit(np.vstack([X, [[3.0, 3.0]]]), np.append(y, 9))
    assert 0.5 < alone.temperature_ < 3
    two = ParzenClassifier().fit([[0.0], [1.0]], [0, 1])
    assert two.predict([[0.1], [0.9]]).tolist() == [0, 1]
    assert two.temperature_ == 1


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_rows_are_left_out_with_their_copies(kernel):
    """Against networks that are trained without the rows at one place."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.arange(40) % 2
    X[y == 1] += 1
    X[5], X[8] = X[7], X[7]  # three rows at one place, of two classes
    network = ParzenClassifier(kernel, 2.5, standardize=False).fit(X, y)
    found = np.exp(network.leave_one_out_log_proba())
    for i in range(0, 40, 7):
        others = (X[i] != X).any(axis=1)
        prior = network.class_prior_
        alone = ParzenClassifier(kernel, 2.5, standardize=False).fit(X[others], y[others])
        share = np.bincount(y[others]) / np.bincount(y)  # votes count the same, left out or not
        expected = alone.predict_proba(X[i : i + 1])[0]
        votes = np.exp(alone.log_density(X[i : i + 1])[0]) * prior * share
        np.testing.assert_allclose(votes / votes.sum(), expected, atol=1e-9)
        np.testing.assert_allclose(found[i], expected, atol=1e-9)


# -- editing and reduction -------------------------------------------------------------------------


def reduction_of(X, y, edit, radius=None):
    rows = X - X.mean(axis=0), y, np.ones(len(y))
    rows = ParzenRows.of(rows, np.arange(len(y)), 2).merged()
    config = ParzenConfig(PROFILES["hypersphere"](), radius)
    return Reduction(rows, config, np.random.RandomState(0), edit)


def test_the_full_network_is_scored_by_every_row_left_out():
    X, y = make_clouds(60, random_state=0)
    reduction = reduction_of(X, y, False, 0.3)
    wrong = [
        ParzenClassifier("hypersphere", standardize=False, radius=0.3)
        .fit(np.delete(X, i, 0), np.delete(y, i))
        .predict(X[i : i + 1])[0]
        != y[i]
        for i in range(len(X))
    ]
    search = SizeSearch(reduction, 0.01)
    np.testing.assert_array_equal(search.full_wrong, np.asarray(wrong)[reduction.rows.index])


def test_editing_may_end_after_its_first_round():
    X, y = make_clouds(400, random_state=0)
    reduction = reduction_of(X, y, True)
    first, last = reduction.pools
    assert set(last) < set(first)  # the first round is the same in both
    paper = {"standardize": False, "radius": reduction.full_radius}
    judge = ParzenClassifier("hypersphere", **paper)
    once = MultiEdit(judge, max_iter=1, random_state=0).fit(X, y)
    assert len(first) == pytest.approx(len(once.sample_indices_), rel=0.05)


def test_kernels_are_dealt_out_by_websters_method():
    assert apportion(np.array([53.0, 24.0, 23.0]), np.array([99, 99, 99]), 7) == [3, 2, 2]
    assert apportion(np.array([98.0, 1.0, 1.0]), np.array([3, 99, 99]), 7) == [3, 2, 2]
