"""The Parzen network's parts, against sums written out."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from kernelpool import ParzenClassifier
from kernelpool.parzen import network as parzen
from kernelpool.parzen.network import (
    PROFILES,
    ParzenParams,
    class_scores,
    kernel_posterior,
    log_votes,
)

HEIGHTS = {
    "hypersphere": lambda u: (u <= 1).astype(float),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
    "gaussian": lambda u: np.exp(-(u**2) / 2),
}


@pytest.fixture
def small():
    """Nine weighted kernels of three classes, and twelve rows."""
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=(9, 2)),
        rng.uniform(0.5, 2, size=9),
        (0, 4, 6, 9),
        rng.normal(size=(12, 2)),
    )


def network(kernel, *params):
    return ParzenParams(PROFILES[kernel](), *params)


def votes_written_out(kernel, center, weight, offsets, x, radius):
    height = HEIGHTS[kernel](cdist(x, center) / radius) * weight
    return np.stack([height[:, a:b].sum(axis=1) for a, b in itertools.pairwise(offsets)], axis=1)


@pytest.mark.parametrize("kernel", list(PROFILES))
@pytest.mark.parametrize("tile", [2, 2048])
def test_votes_are_sums_of_heights(kernel, tile, small, monkeypatch):
    monkeypatch.setattr(parzen, "TILE", tile)
    center, weight, offsets, x = small
    net = network(kernel, center, weight, offsets, np.zeros(3), 0.9)
    found = np.exp(log_votes(x, net))
    assert_allclose(
        found, votes_written_out(kernel, center, weight, offsets, x, 0.9), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("kernel", list(PROFILES))
@pytest.mark.parametrize("d", [1, 2])
def test_kernels_integrate_to_their_volume(kernel, d):
    profile = PROFILES[kernel]()
    axis = np.linspace(-8, 8, 2001 if d == 1 else 801)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    integral = profile.height((grid**2).sum(axis=1)).sum() * (axis[1] - axis[0]) ** d
    assert math.exp(profile.log_volume(d)) == pytest.approx(integral, rel=5e-3)


def test_kernels_much_narrower_than_their_distance_from_the_origin_use_differences():
    center = np.array([[1e3, 0.0], [1e3 + 1e-6, 0.0]])
    net = network("hypersphere", center, np.ones(2), (0, 1, 2), np.zeros(2), 1e-7)
    assert net.narrow
    assert np.exp(log_votes(center, net)).tolist() == [
        [1, 0],
        [0, 1],
    ]


def test_far_rows_keep_the_order_of_gaussian_kernels():
    net = network("gaussian", np.array([[0.0], [1.0]]), np.ones(2), (0, 1, 2), np.zeros(2), 0.01)
    votes = log_votes(np.array([[100.0], [-100.0]]), net)
    assert_allclose(votes, [[-0.5e8, -0.5 * 9900**2], [-0.5e8, -0.5 * 10100**2]], rtol=1e-12)


def test_uncovered_rows_go_to_the_nearest_kernel_and_covered_ones_do_not():
    net = network(
        "hypersphere", np.array([[0.0], [0.5], [4.0]]), np.ones(3), (0, 2, 3), np.zeros(2), 1.0
    )
    x = np.array([[0.2], [9.0], [-7.0], [1.4]])
    joint = class_scores(x, net)
    assert np.argmax(joint, axis=1).tolist() == [0, 1, 0, 0]
    posterior = kernel_posterior(x, net)
    assert_allclose(posterior, [[0.5, 0.5, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_equally_far_kernels_vote_alike_where_none_covers_a_row():
    """What a radius that grew until it reached one would give: 2 votes against 1 at a distance of
    one, also where distances come from a matrix product and differ in the last bit.
    """
    circle = np.array([[np.cos(a), np.sin(a)] for a in (0.3, 2.0, 4.0)])
    center = np.vstack([circle, [[-3.0, 3.0]]]) + 5.0
    weight = np.array([1.0, 1.0, 1.0, 9.0])
    for kernel in ("hypersphere", "epanechnikov"):
        net = network(kernel, center, weight, (0, 2, 4), np.log([0.5, 0.25]), 0.1)
        x = np.array([[5.0, 5.0], [-5.0, 20.0]])
        assert_allclose(np.exp(class_scores(x, net)), [[2 * 0.5, 0.25], [0, 9 * 0.25]])
        expected = np.array([[0.5, 0.5, 0.25, 0], [0, 0, 0, 2.25]])
        expected /= expected.sum(axis=1, keepdims=True)
        assert_allclose(kernel_posterior(x, net), expected, rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_a_kernel_that_falls_to_zero_at_the_radius_does_not_reach_it(shift):
    """Categories one apart at a radius of one: whether rounding leaves 1 - u^2 above zero must not
    matter.
    """
    center = np.eye(2) * np.sqrt(0.5) + shift
    net = network("epanechnikov", center, np.ones(2), (0, 1, 2), np.zeros(2), 1.0)
    votes = np.exp(log_votes(center, net))
    assert votes[[0, 1], [1, 0]].tolist() == [0, 0]
    assert_allclose(votes, np.eye(2), rtol=1e-12)


def test_a_class_of_prior_zero_is_never_predicted():
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    for kernel in PROFILES:
        model = ParzenClassifier(kernel, 0.1).fit(X, [0, 0, 1, 1])
        for prior in ([0.0, 1.0], [1.0, 0.0]):
            found = model.with_class_prior(prior).predict_proba([*X, [-50.0]])
            assert found.tolist() == [prior] * 5


def test_kernel_posteriors_are_shares_of_votes(small):
    center, weight, offsets, x = small
    prior = np.array([0.2, 0.3, 0.5])
    net = network("gaussian", center, weight, offsets, np.log(prior), 0.9)
    joint = HEIGHTS["gaussian"](cdist(x, center) / 0.9) * weight * np.repeat(prior, [4, 2, 3])
    assert_allclose(kernel_posterior(x, net), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
