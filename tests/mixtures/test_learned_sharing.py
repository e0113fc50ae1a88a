"""Learned sharing against the equations of its docstring, written out row by row."""

import naive
import numpy as np
import pytest
from mixtures.test_network import assert_network
from numpy.testing import assert_allclose
from zoo import faithful

from kernelpool import SharedKernelClassifier
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.learned_sharing import Learned, LearnedSharing
from kernelpool.rows import ArrayRows, Frame


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize("hidden", [0, 0.3])
def test_sweeps_equal_the_equations(blobs, given_start, family, hidden):
    x, y = blobs
    mean, covariance, mixing, _ = given_start
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3, size=len(y))
    labels = np.where(rng.random(len(y)) < hidden, -1, y)
    known = labels >= 0
    prior = np.bincount(labels[known], weight[known]) / weight[known].sum()
    table = mixing * prior / (mixing * prior).sum(axis=1, keepdims=True)
    model = faithful(given_start, family, "learned", 4, unlabeled=-1).fit(x, labels, weight)
    for value in model.history_:
        network = x, labels, mean, covariance, mixing
        more = None, table, family, weight, prior
        assert value == pytest.approx(naive.objective(*network, *more) / weight.sum(), rel=1e-10)
        last = table, (mean, covariance, mixing)
        mass = naive.responsibilities(*network, *more[1:]).sum(axis=0)
        mean, covariance, mixing = naive.sweep(*network, *more)
        table = mass / mass.sum(axis=1, keepdims=True)
    assert len(model.history_) == 5
    assert_allclose(model.sharing_, last[0], rtol=1e-8, atol=1e-12)
    assert_network(model, *last[1])


def test_classes_that_do_not_meet_share_nothing():
    """Far apart, every kernel ends with one class, and the network is the separate mixtures of the
    same start.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    x = rng.normal(size=(200, 2)) + 40 * y[:, None]
    learned = SharedKernelClassifier.prbf(4, sharing="learned", random_state=0).fit(x, y)
    separate = SharedKernelClassifier.prbf(4, sharing=0, random_state=0).fit(x, y)
    assert_allclose(learned.sharing_, [[1, 0], [1, 0], [0, 1], [0, 1]], atol=1e-12)
    assert_allclose(learned.means_, separate.means_, atol=1e-3)
    assert learned.objective_ == pytest.approx(separate.objective_, abs=1e-5)
    assert learned.n_parameters() == separate.n_parameters() == 4 * 2 + 4 + 2 + 1


def test_classes_that_cannot_be_told_apart_share_by_their_numbers():
    """The same rows in both classes, one of them three times as often: attention is 3 to 1 in the
    only kernel.
    """
    rng = np.random.default_rng(0)
    half = rng.normal(size=(100, 2))
    x = np.concatenate([half] * 4)
    y = np.repeat([0, 0, 0, 1], 100)
    model = SharedKernelClassifier.prbf(1, sharing="learned", random_state=0).fit(x, y)
    assert_allclose(model.sharing_, [[0.75, 0.25]])
    expected = np.log(0.75) * 0.75 + np.log(0.25) * 0.25  # the price of sharing, a row
    alone = SharedKernelClassifier.prbf(1, sharing=1, random_state=0).fit(x, y)
    assert model.objective_ == pytest.approx(alone.objective_ + expected)


def test_a_kernel_without_rows_is_moved_and_heeds_all():
    """A kernel at 1e3 loses everything; moved, it lies at a row of its owner, attentive to all
    classes alike.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.arange(60) % 2
    rows = ArrayRows(x, y, frame=Frame(np.zeros(2), np.ones(2)))
    network = LearnedSharing(FAMILIES["spherical"](np.full(2, 1e-6)), np.ones((2, 2)))
    kernels = Kernels(np.array([[0.0, 0], [1e3, 0]]), np.ones(2))
    sharing = np.array([[0.5, 0.5], [0.9, 0.1]])
    params = Learned(kernels, np.array([[1.0, 1.0], [0, 0]]), np.full(2, 0.5), sharing)
    after, _ = network.sweep(rows, params)
    assert_allclose(after.sharing[1], [0.9, 0.1])  # without rows it keeps what it had
    assert network.empty_kernels(after, np.full(2, 30.0), 1.0) == [1]
    moved = network.moved(rows, after, [1], np.array([0, 1]), np.full(2, 30.0))
    assert (moved.kernels.mean[1] == x[y == 1]).all(axis=1).any()
    assert_allclose(moved.sharing, [after.sharing[0], [0.5, 0.5]])
