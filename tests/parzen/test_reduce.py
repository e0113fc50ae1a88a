"""Multi-edit, the reduction to few kernels, and how few suffice, against sums written out."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from parzen.test_network import HEIGHTS
from scipy.spatial.distance import cdist

from kernelpool import ParzenClassifier
from kernelpool.datasets import make_clouds
from kernelpool.parzen import reduce
from kernelpool.parzen.network import PROFILES
from kernelpool.parzen.radius import ParzenRows
from kernelpool.parzen.reduce import (
    DEFENSE,
    ReducedSettings,
    Reducer,
    Reduction,
    SizeSearch,
    apportion,
)


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
def test_exchanges_end_where_no_single_exchange_helps(kernel, monkeypatch):
    monkeypatch.setattr(reduce, "TOLERANCE", 0.0)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(14, 2))
    weight = rng.integers(1, 4, size=14).astype(float)
    kept, history = reducer(x, kernel, weight=weight).exchange([0, 1, 2], rng, 20)
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


def test_few_candidates_still_raise_the_criterion(monkeypatch):
    monkeypatch.setattr(reduce, "N_CANDIDATES", 16)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 3))
    start = list(range(20))
    kept, history = reducer(x).exchange(start, rng, 5)
    assert len(set(kept)) == 20
    assert history[0] == pytest.approx(
        criterion_written_out(x, start, "gaussian", 0.7, np.ones(300)), abs=1e-6
    )
    assert history[-1] > history[0] + 0.1


# -- editing and reduction -------------------------------------------------------------------------


def test_the_full_network_is_scored_by_every_row_left_out():
    X, y = make_clouds(60, random_state=0)
    rows = ParzenRows.of((X, y, np.ones(len(y))), np.arange(len(y)), 2).merged()
    settings = ReducedSettings("hypersphere", 0.3, standardize=False, edit=False)
    reduction = Reduction(rows, settings, np.random.RandomState(0))
    network = ParzenClassifier("hypersphere", standardize=False, radius=0.3)
    wrong = [
        network.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] != y[i]
        for i in range(len(y))
    ]
    assert_array_equal(SizeSearch(reduction).full_wrong, np.asarray(wrong)[reduction.rows.index])


def test_kernels_are_dealt_out_by_websters_method():
    assert apportion(np.array([53.0, 24.0, 23.0]), np.array([99, 99, 99]), 7) == [3, 2, 2]
    assert apportion(np.array([98.0, 1.0, 1.0]), np.array([3, 99, 99]), 7) == [3, 2, 2]
