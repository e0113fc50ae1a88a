import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelpool.kernels import FAMILIES
from kernelpool.mixtures.start import (
    METHODS,
    apportion,
    placed,
)
from kernelpool.rows import ArrayRows
from kernelpool.rows.sample import ClassSample, sample_rows


def test_kernels_are_dealt_out_as_evenly_as_rows_allow():
    assert apportion(7, [100, 100, 100]) == [3, 2, 2]
    assert apportion(2, [5, 9, 7]) == [0, 1, 1]
    assert apportion(10, [1, 100, 2]) == [1, 7, 2]
    assert apportion(6, [1, 1]) == [
        3,
        3,
    ]  # more than there are rows: still as many as were asked for


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sample_is_the_same_however_the_rows_lie(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30_000, 3))
    y = rng.integers(-1, 2, size=len(x))
    whole = sample_rows(ArrayRows(x, y), 2, seed, most=4000)
    order = rng.permutation(len(x))
    cut = sample_rows(ArrayRows(x[order], y[order], width=10**5), 2, seed, most=4000)
    for a, b in zip(whole, cut, strict=True):
        assert_array_equal(a.x, b.x)
    assert [len(sample.x) for sample in whole] == [2000, 2000]
    assert not np.array_equal(whole[0].x, sample_rows(ArrayRows(x, y), 2, seed + 7, most=4000)[0].x)
    known = {tuple(row) for row in x[y == 1]}
    assert all(tuple(row) in known for row in whole[1].x)


def test_a_sample_is_unbiased_and_follows_the_weights():
    x = np.linspace(-1, 1, 20_000)[:, None]
    y = np.zeros(len(x), int)
    even = sample_rows(ArrayRows(x, y), 1, 0, most=5000)[0]
    assert even.x.mean() == pytest.approx(0, abs=0.04)
    weight = np.where(x[:, 0] > 0, 3.0, 0.0)
    right = sample_rows(ArrayRows(x, y, weight), 1, 0, most=5000)[0]
    assert right.x.min() > 0
    # four times the weight, four times the chance: 8000 and 2000 in 10,000, a little less for
    # drawing without replacement
    skewed = sample_rows(ArrayRows(x, y, np.where(x[:, 0] > 0, 4.0, 1.0)), 1, 0, most=1000)[0]
    assert (skewed.x > 0).mean() == pytest.approx(0.8, abs=0.05)


def test_equal_rows_become_one_with_their_joint_weight():
    x = np.array([[1.0, 2.0], [0.0, -0.0], [1.0, 2.0], [-0.0, 0.0]])
    (sample,) = sample_rows(ArrayRows(x, np.zeros(4, int), np.array([1.0, 1.0, 2.0, 1.0])), 1, 0)
    assert_array_equal(sample.x, [[0, 0], [1, 2]])
    assert_array_equal(sample.weight, [2, 3])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_places_kernels_in_their_class(method, family):
    rng = np.random.default_rng(0)
    samples = [ClassSample(rng.normal(size=(50, 2)) + 20 * k, np.ones(50)) for k in range(3)]
    kernels = placed(FAMILIES[family](np.full(2, 1e-6)), METHODS[method], samples, [2, 0, 3], rng)
    assert np.abs(kernels.mean[:2]).max() < 5
    assert np.abs(kernels.mean[2:] - 40).max() < 5
    assert np.isfinite(kernels.covariance).all()
    if method == "random":  # rows of the class
        assert {*map(tuple, kernels.mean[:2])} <= {*map(tuple, samples[0].x)}


def test_a_class_of_one_row_gets_the_width_of_the_others(family):
    rng = np.random.default_rng(0)
    samples = [ClassSample(rng.normal(size=(n, 2)), np.ones(n)) for n in (1, 50)]
    kernels = placed(FAMILIES[family](np.full(2, 1e-6)), METHODS["kmeans"], samples, [1, 2], rng)
    assert (np.diag(naive.matrices(kernels.covariance, family, 3, 2)[0]) > 0.1).all()
