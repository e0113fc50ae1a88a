"""The radius of Parzen networks against double loops and SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from parzen.test_network import votes_written_out
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax

from kernelpool import ParzenClassifier
from kernelpool.datasets import make_ripley
from kernelpool.parzen.network import PROFILES, ParzenParams
from kernelpool.parzen.radius import wrong_rows


@pytest.fixture(scope="module")
def rows():
    return make_ripley(120, random_state=0)


# -- the width -------------------------------------------------------------------------------------


def log_votes_written_out(X, y, weight, radius, X_new=None):
    """log votes of each class for each row; rows of training are left out with their copies."""
    distance = cdist(X if X_new is None else X_new, X)
    heights = np.exp(-(distance**2) / (2 * radius**2)) * weight
    if X_new is None:
        heights[distance == 0] = 0
    with np.errstate(divide="ignore"):
        log_votes = np.log(np.stack([heights[:, y == k].sum(axis=1) for k in np.unique(y)], axis=1))
    longest_odds = np.log(1e12)
    return np.maximum(log_votes, log_votes.max(axis=1, keepdims=True) - longest_odds)


def loss_at(log_votes, codes, temperature, weight):
    log_proba = log_softmax(log_votes / temperature, axis=1)
    return -(weight @ log_proba[np.arange(len(codes)), codes]) / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_and_the_temperature_are_those_of_sums_written_out(rows, weighted):
    X, y = rows
    weight = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else np.ones(len(y))
    weight = weight.astype(float)
    if weighted:  # copies are left out with their row
        X = np.vstack([X, X[:9]])
        y = np.append(y, y[:9])
        weight = np.append(weight, weight[:9])
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y, sample_weight=weight)
    codes = np.searchsorted(network.classes_, y)
    votes = log_votes_written_out(X, y, weight, network.radius_)
    best = minimize_scalar(
        lambda log_t: loss_at(votes, codes, np.exp(log_t), weight),
        bounds=(-np.log(2), np.log(64)),
        method="bounded",
    )
    assert network.temperature_ == pytest.approx(np.exp(best.x), rel=0.02)
    assert network.radius_losses_.min() == pytest.approx(best.fun, rel=1e-4)
    for radius, found in list(zip(network.radii_, network.radius_losses_, strict=True))[::3]:
        votes = log_votes_written_out(X, y, weight, radius)
        if np.isfinite(votes).all():  # otherwise the sums themselves round to zero
            temperatures = np.exp(np.linspace(-np.log(2), np.log(64), 300))
            least = min(loss_at(votes, codes, t, weight) for t in temperatures)
            assert found == pytest.approx(least, rel=3e-3)
        assert network.radius_losses_.min() <= found


def test_the_temperature_is_used_in_probabilities_and_not_in_densities(rows):
    X, y = rows
    network = ParzenClassifier(standardize=False, random_state=0).fit(X, y)
    X_new = X[:20] + 0.1
    votes = log_votes_written_out(X, y, np.ones(len(y)), network.radius_, X_new)
    expected = softmax(votes / network.temperature_, axis=1)
    assert_allclose(network.predict_proba(X_new), expected, atol=1e-9)
    plain = ParzenClassifier(radius=network.radius_, standardize=False).fit(X, y)
    assert plain.temperature_ == 1
    assert_allclose(network.log_density(X_new), plain.log_density(X_new), rtol=1e-12)


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
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + y[:, None]
    X[5], X[8] = X[7], X[7]  # three rows at one place, of two classes
    network = ParzenClassifier(kernel, 2.5, standardize=False).fit(X, y)
    found = np.exp(network.leave_one_out_log_proba())
    for i in range(0, 40, 7):
        others = (X[i] != X).any(axis=1)
        alone = ParzenClassifier(kernel, 2.5, standardize=False).fit(X[others], y[others])
        assert_allclose(found[i], alone.predict_proba(X[i : i + 1])[0], atol=1e-9)


# -- the fewest errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", list(PROFILES))
def test_all_radii_in_one_pass_cost_what_each_would(kernel):
    """A row is left out with its copies: nothing at its own place votes on it."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 2))
    y = np.sort(rng.integers(3, size=40))
    x[1], x[-1] = x[0], x[5]  # a row that stands twice, in one class and in two
    weight = np.where(np.arange(40) % 9 == 3, 3.0, 1.0)
    x[7] = 30.0  # far from all
    offsets = tuple(np.searchsorted(y, np.arange(4)).tolist())
    prior = np.array([0.21, 0.32, 0.47])
    radii = (2.0 ** (-np.arange(12) / 4)).tolist()
    group = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    net = ParzenParams(PROFILES[kernel](), x, weight, offsets, np.log(prior), group=group)
    expected = np.zeros(12)
    for i, row in enumerate(x):
        others = (x != row).any(axis=1)
        nearest = y[others][np.argmin(cdist([row], x[others])[0])]
        for at, radius in enumerate(radii):
            votes = votes_written_out(kernel, x, weight * others, offsets, [row], radius)[0]
            named = np.argmax(votes * prior) if votes.max() > 0 else nearest
            expected[at] += weight[i] * (named != y[i])
    assert_array_equal(weight @ wrong_rows(x, y, group, net, radii), expected)


def test_copies_choose_the_radius_as_weights_do():
    """Votes tie often: rounding must not break ties one way for copies, another for weights."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2)) + np.outer(y, [1.5, 0])
    for weight in (np.full(200, 2), rng.integers(1, 4, 200)):
        heavy = ParzenClassifier("hypersphere", "loo").fit(X, y, weight.astype(float))
        copies = np.repeat(X, weight, axis=0), np.repeat(y, weight)
        often = ParzenClassifier("hypersphere", "loo").fit(*copies)
        assert_allclose(heavy.radius_errors_, often.radius_errors_, atol=1e-12)
        assert heavy.radius_ == pytest.approx(often.radius_)
