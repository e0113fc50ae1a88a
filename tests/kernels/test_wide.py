"""Full kernels of many features: one after the other equals products of all pairs of features."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from kernelpool.arrays import whitened_distances
from kernelpool.kernels import Full, Kernels, Tied, full
from kernelpool.mixtures.network import Params, SharedKernel, sharing_table
from kernelpool.penalties import Overlap
from kernelpool.rows import Frame, as_rows

M = 5
D = 4
K = 3
N = 300


class ByPairs(Full):
    def one_by_one(self, d):
        return False


class OneByOne(Full):
    def one_by_one(self, d):
        return True


def problem(*, sharing=0.4, missing=False):
    """Rows of three classes, a fifth of them without a label, and a network that has not
    converged.
    """
    rng = np.random.default_rng(3)
    y = rng.integers(K, size=N)
    x = rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + 0.8 * y[:, None]
    y[rng.uniform(size=N) < 0.2] = -1
    if missing:
        x[rng.uniform(size=x.shape) < 0.2] = np.nan
    weight = rng.uniform(0.5, 2, size=N)
    table = sharing_table(np.array([0, 0, 1, 2, 2]), sharing, K)
    factor = rng.normal(size=(M, D, D)) / 2
    kernels = Kernels(rng.normal(size=(M, D)), factor @ factor.swapaxes(1, 2) + np.eye(D))
    mixing = table / table.sum(axis=0)
    rows = as_rows(x, y, weight, n_jobs=1).framed(Frame(np.zeros(D), np.ones(D)), 40)
    return rows, table, Params(kernels, mixing, np.array([0.5, 0.3, 0.2]))


def assert_same(found, expected, rtol=1e-9):
    assert type(found) is type(expected)
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, rtol)
    elif hasattr(expected, "__dataclass_fields__"):
        assert_same(tuple(vars(found).values()), tuple(vars(expected).values()), rtol)
    elif expected is not None:
        assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("penalty", [None, Overlap(5.0)], ids=["none", "overlap"])
@pytest.mark.parametrize(("sharing", "sort"), [(0.0, True), (0.4, False)])
def test_a_sweep_is_that_of_pairs(sharing, penalty, sort):
    rows, table, params = problem(sharing=sharing)
    rows = rows.by_class() if sort else rows
    (found, objective), (expected, other) = (
        SharedKernel(family(np.full(D, 1e-6)), table, penalty).sweep(rows, params)
        for family in (OneByOne, ByPairs)
    )
    assert objective == pytest.approx(other, rel=1e-12)
    assert_same(found, expected)


@pytest.mark.parametrize(("wide", "plain"), [(OneByOne, ByPairs), (Tied, Tied)])
def test_rows_with_missing_cells_are_swept_the_same(wide, plain, monkeypatch):
    rows, table, params = problem(missing=True)
    if wide is Tied:
        tied = Kernels(params.kernels.mean, params.kernels.covariance[0])
        params = Params(tied, params.mixing, params.class_prior)
    network = SharedKernel(plain(np.full(D, 1e-6)), table)
    expected = network.sweep(rows, params), network.gradient(rows, params)
    monkeypatch.setattr(full, "WIDE", 1)
    network = SharedKernel(wide(np.full(D, 1e-6)), table)
    assert_same((network.sweep(rows, params), network.gradient(rows, params)), expected)


def test_most_likely_kernels_of_wide_rows():
    """One class with one kernel: mean and covariance of the rows, and SciPy's density."""
    d = 150
    x = np.random.default_rng(0).normal(size=(400, d)) + 3
    rows = as_rows(x, np.zeros(400, int), n_jobs=1).framed(Frame(np.zeros(d), np.ones(d)), d + 3)
    kernel = Full(np.zeros(d))
    assert kernel.one_by_one(d)
    network = SharedKernel(kernel, np.ones((1, 1)))
    params = Params(Kernels(np.zeros((1, d)), np.eye(d)[None]), np.ones((1, 1)), np.ones(1))
    for mean, covariance in ((np.zeros(d), np.eye(d)), (x.mean(axis=0), np.cov(x.T, bias=True))):
        assert_allclose(params.kernels.mean[0], mean, rtol=1e-10)
        assert_allclose(params.kernels.covariance[0], covariance, rtol=1e-8, atol=1e-10)
        params, objective = network.sweep(rows, params)
        expected = multivariate_normal(mean, covariance).logpdf(x).mean()
        assert objective == pytest.approx(expected, rel=1e-9)


FIT = """
import sys, tracemalloc
import numpy as np
from kernelpool import SharedKernelClassifier
family, d = sys.argv[1], 1000
rng = np.random.default_rng(0)
y = np.arange(300) % 2
X = rng.normal(size=(300, d)) + y[:, None] * (np.arange(d) < 20)
model = SharedKernelClassifier(covariance_type=family, training="em", max_iter=3, tol=1e9, random_state=0)
tracemalloc.start()
assert model.fit(X, y).score(X, y) > 0.9
print(tracemalloc.get_traced_memory()[1], model.covariances_.nbytes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("family", ["full", "tied"])
def test_a_thousand_features_fit_in_little_memory(family):
    """Some times what the covariances take; a table of all pairs of features and these rows takes
    1.2 GB.
    """
    done = subprocess.run(
        [sys.executable, "-c", FIT, family], capture_output=True, text=True, check=True
    )
    peak, covariances = map(int, done.stdout.split())
    assert peak < 15 * covariances + 100e6
    assert peak < 250e6


@pytest.mark.parametrize(("n", "d"), [(0, 3), (7, 3), (700, 5), (300, 131), (3, 260)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whitened_distances_are_those_of_whitened_rows(n, d, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    mean = rng.normal(size=d)
    factor = np.tril(rng.normal(size=(d, d)))
    found = whitened_distances(*(a.astype(dtype) for a in (x, mean, factor)))
    assert found.dtype == dtype
    expected = np.linalg.norm((x - mean) @ factor.T, axis=1) ** 2
    assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-4)
