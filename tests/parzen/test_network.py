"""The Parzen network's parts, against sums written out."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernelpool.parzen import network as parzen
from kernelpool.parzen.network import (
    DEFENSE,
    PROFILES,
    ParzenParams,
    Reducer,
    class_scores,
    kernel_posterior,
    log_votes,
    wrong_rows,
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


def network(center, weight, offsets, log_scale, radius, group=None):
    return ParzenParams(center, weight, offsets, log_scale, radius, group)


def votes_written_out(kernel, center, weight, offsets, x, radius):
    height = HEIGHTS[kernel](cdist(x, center) / radius) * weight
    return np.stack([height[:, a:b].sum(axis=1) for a, b in itertools.pairwise(offsets)], axis=1)


@pytest.mark.parametrize("kernel", list(PROFILES))
@pytest.mark.parametrize("tile", [2, 2048])
def test_votes_are_sums_of_heights(kernel, tile, small, monkeypatch):
    monkeypatch.setattr(parzen, "TILE", tile)
    center, weight, offsets, x = small
    net = network(center, weight, offsets, np.zeros(3), 0.9)
    found = np.exp(log_votes(x, PROFILES[kernel](), net))
    np.testing.assert_allclose(
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
    net = network(center, np.ones(2), (0, 1, 2), np.zeros(2), 1e-7)
    assert net.narrow
    assert np.exp(log_votes(center, PROFILES["hypersphere"](), net)).tolist() == [
        [1, 0],
        [0, 1],
    ]


def test_far_rows_keep_the_order_of_gaussian_kernels():
    net = network(np.array([[0.0], [1.0]]), np.ones(2), (0, 1, 2), np.zeros(2), 0.01)
    votes = log_votes(np.array([[100.0], [-100.0]]), PROFILES["gaussian"](), net)
    np.testing.assert_allclose(
        votes, [[-0.5e8, -0.5 * 9900**2], [-0.5e8, -0.5 * 10100**2]], rtol=1e-12
    )


def test_uncovered_rows_go_to_the_nearest_kernel_and_covered_ones_do_not():
    net = network(np.array([[0.0], [0.5], [4.0]]), np.ones(3), (0, 2, 3), np.zeros(2), 1.0)
    x = np.array([[0.2], [9.0], [-7.0], [1.4]])
    profile = PROFILES["hypersphere"]()
    joint = class_scores(x, profile, net)
    assert np.argmax(joint, axis=1).tolist() == [0, 1, 0, 0]
    posterior = kernel_posterior(x, profile, net)
    np.testing.assert_allclose(posterior, [[0.5, 0.5, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_kernel_posteriors_are_shares_of_votes(small):
    center, weight, offsets, x = small
    scale = np.log([0.2, 0.3, 0.5])
    net = network(center, weight, offsets, scale, 0.9)
    joint = (
        HEIGHTS["gaussian"](cdist(x, center) / 0.9)
        * weight
        * np.repeat(np.exp(scale), np.diff(offsets))
    )
    found = kernel_posterior(x, PROFILES["gaussian"](), net)
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("kernel", list(PROFILES))
def test_all_radii_in_one_pass_cost_what_each_would(kernel):
    """A row is left out with its copies: nothing at its own place votes on it."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 2))
    y = np.sort(rng.integers(3, size=40))
    x[1], x[-1] = x[0], x[5]  # a row that stands twice, in one class and in two
    weight = np.ones(40)
    weight[3], weight[7] = 3, 2
    x[7] = 30.0  # far from all
    offsets = tuple(np.searchsorted(y, np.arange(4)).tolist())
    radii = (2.0 ** (-np.arange(12) / 4)).tolist()
    group = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    net = network(x, weight, offsets, np.zeros(3), 1.0, group)
    found = weight @ wrong_rows(x, y, group, PROFILES[kernel](), net, radii)
    for i, radius in enumerate(radii):
        wrong = 0.0
        for row in range(40):
            others = (x != x[row]).any(axis=1)
            votes = votes_written_out(
                kernel, x, weight * others, offsets, x[row : row + 1], radius
            )[0]
            nearest = y[others][np.argmin(cdist(x[row : row + 1], x[others])[0])]
            wrong += weight[row] * ((np.argmax(votes) if votes.max() > 0 else nearest) != y[row])
        assert found[i] == wrong


# -- reduction -------------------------------------------------------------------------------------


def reducer(x, kernel="gaussian", radius=0.7, weight=None):
    weight = np.ones(len(x)) if weight is None else weight
    return Reducer(x, weight, PROFILES[kernel](), radius)


def criterion_written_out(x, kept, kernel, radius, weight):
    weight = weight / weight.sum()
    height = HEIGHTS[kernel](cdist(x, x) / radius)
    full = height @ weight
    few = height[:, kept].mean(axis=1)
    return weight @ np.log((1 - DEFENSE) * few / full + DEFENSE)


@pytest.mark.parametrize("kernel", ["hypersphere", "gaussian"])
def test_exchanges_end_where_no_single_exchange_helps(kernel):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(14, 2))
    weight = rng.integers(1, 4, size=14).astype(float)
    kept, history = reducer(x, kernel, weight=weight).exchange(
        [0, 1, 2], rng, n_candidates=64, max_sweeps=20, tol=0.0
    )
    reached = criterion_written_out(x, kept, kernel, 0.7, weight)
    assert history[-1] == pytest.approx(reached, abs=1e-6)
    assert history == sorted(history)
    for place, other in itertools.product(range(3), set(range(14)) - set(kept)):
        exchanged = [*kept[:place], other, *kept[place + 1 :]]
        assert criterion_written_out(x, exchanged, kernel, 0.7, weight) <= reached + 1e-5


def test_herding_follows_its_greedy_rule():
    x = np.random.default_rng(5).normal(size=(30, 2))
    height = HEIGHTS["gaussian"](cdist(x, x) / 0.7)
    expected: list[int] = []
    for t in range(8):  # Chen, Welling & Smola 2010, (8)-(9), among rows not yet taken
        score = height.mean(axis=1) - height[:, expected].sum(axis=1) / (t + 1)
        score[expected] = -np.inf
        expected.append(int(np.argmax(score)))
    assert reducer(x).herd(8) == expected


def test_few_candidates_still_raise_the_criterion():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 3))
    reduce = reducer(x)
    start = list(range(20))
    kept, history = reduce.exchange(start, rng, n_candidates=16, max_sweeps=5, tol=0.0)
    assert len(set(kept)) == 20
    assert history[0] == pytest.approx(
        criterion_written_out(x, start, "gaussian", 0.7, np.ones(300)), abs=1e-6
    )
    assert history[-1] > history[0] + 0.1
