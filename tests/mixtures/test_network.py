import naive
import numpy as np
import pytest
from kernels.test_wide import assert_same
from numpy.testing import assert_allclose
from sklearn.mixture import GaussianMixture
from zoo import faithful

from kernelpool import SharedKernelClassifier
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.penalties import Overlap
from kernelpool.rows import ArrayRows, Frame, as_rows


def assert_network(model, mean, covariance, mixing):
    assert_allclose(model.means_, mean, rtol=1e-8)
    assert_allclose(model.covariances_, covariance, rtol=1e-8, atol=1e-10)
    assert_allclose(model.mixing_, mixing, rtol=1e-8, atol=1e-12)


CLOSED = np.array([[1, 0, 0.5], [1, 0, 0], [0, 1, 0.2], [0.7, 1, 0], [0, 0, 1], [0.1, 0, 1]])
"""Sharing with kernels that a class may not use: each class has another number of them."""


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize("hidden", [0, 0.3], ids=["plain", "weights and unlabeled rows"])
@pytest.mark.parametrize("sharing", [0, 0.3, 1, CLOSED], ids=["none", "some", "all", "closed"])
def test_sweeps_equal_the_printed_equations(blobs, given_start, family, sharing, hidden):
    x, y = blobs
    mean, covariance, mixing, owner = given_start
    closed = naive.sharing_weights(owner, sharing, 3) == 0
    mixing = np.where(closed, 0, mixing)  # (28): the start is confined to the owners' kernels first
    mixing = mixing / mixing.sum(axis=0)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 3, size=len(y)) if hidden else np.ones(len(y))
    labels = np.where(rng.random(len(y)) < hidden, -1, y)
    known = labels >= 0
    counted = np.where(known, 1, 0.5) * weight
    model = faithful(given_start, family, sharing, 3, unlabeled=-1).fit(x, labels, counted)
    prior = np.bincount(y[known], weight[known]) / weight[known].sum()
    more = owner, sharing, family, counted, prior
    for _ in range(3):
        mean, covariance, mixing = naive.sweep(x, labels, mean, covariance, mixing, *more)
    assert_network(model, mean, covariance, mixing)
    assert model.n_iter_ == 3
    assert (model.mixing_[closed] == 0).all()
    assert_allclose(model.class_prior_, prior)
    expected = naive.objective(x, labels, mean, covariance, mixing, *more) / counted.sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("sharing", [np.ones((6, 3)), CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize("hidden", [0, 3], ids=["labeled", "unlabeled"])
@pytest.mark.parametrize("penalty", [None, Overlap(2.0)], ids=["plain", "overlap"])
def test_rows_sorted_by_class_have_the_same_sweep(
    blobs, given_start, family, sharing, hidden, penalty
):
    """Rows of each class are multiplied with that class's kernels alone, and the sums are those of
    all.
    """
    x, y = (np.concatenate([a] * 5) for a in blobs)
    y = np.where(np.arange(len(y)) % 10 < hidden, -1, y)
    mean, covariance, mixing, _ = given_start
    mixing = mixing * (sharing > 0)
    prior = np.array([0.5, 0.3, 0.2])
    params = Params(Kernels(mean, covariance), mixing / mixing.sum(axis=0), prior)
    network = SharedKernel(FAMILIES[family](np.zeros(3)), sharing, penalty)
    weight = np.linspace(0.1, 2, len(x))
    frame = Frame(np.zeros(3), np.ones(3))
    rows = ArrayRows(x, y, weight, frame=frame, width=20_000)
    assert rows.n_blocks > 1
    assert_same(network.sweep(rows.by_class(), params), network.sweep(rows, params), 1e-11)


@pytest.mark.filterwarnings(
    "ignore:EM stopped", "ignore:Best performing", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize(
    "family", ["spherical", "diag", "full"], scope="function"
)  # a tied covariance joins the classes
def test_no_sharing_is_one_gaussian_mixture_a_class(blobs, given_start, family):
    x, y = blobs
    mean, covariance, mixing, owner = given_start
    model = faithful(given_start, family, 0, 10).fit(x, y)
    for k in range(3):
        own = owner == k
        weights = mixing[own, k] / mixing[own, k].sum()
        precision = np.linalg.inv(covariance[own]) if family == "full" else 1 / covariance[own]
        peer = GaussianMixture(
            2, covariance_type=family, means_init=mean[own], precisions_init=precision, weights_init=weights,
            max_iter=10, tol=0, reg_covar=0,
        )  # fmt: skip
        peer.fit(x[y == k])
        assert_allclose(model.means_[own], peer.means_, rtol=1e-8)
        assert_allclose(model.covariances_[own], peer.covariances_, rtol=1e-8, atol=1e-10)
        assert_allclose(model.mixing_[own, k], peer.weights_, rtol=1e-8)
        assert_allclose(model.log_density(x)[:, k], peer.score_samples(x), rtol=1e-9)


def test_prediction_is_bayes_rule_on_the_densities(blobs, family, given_start):
    x, _ = blobs
    mean, covariance, mixing, _ = given_start
    prior = np.array([0.7, 0.2, 0.1])
    model = SharedKernelClassifier.from_parameters(
        mean, covariance, mixing, prior, ["a", "b", "c"], covariance_type=family
    )
    density = naive.kernel_densities(x, mean, covariance, family)
    by_class = density @ mixing
    assert_allclose(model.log_density(x), np.log(by_class), rtol=1e-10)
    assert_allclose(model.score_samples(x), np.log(by_class @ prior), rtol=1e-10)
    posterior = by_class * prior / (by_class @ prior)[:, None]
    assert_allclose(model.predict_proba(x), posterior, rtol=1e-9)
    assert_allclose(model.predict_log_proba(x), np.log(posterior), rtol=1e-9, atol=1e-12)
    kernel = density * (mixing @ prior) / (by_class @ prior)[:, None]
    assert_allclose(model.kernel_posterior(x), kernel, rtol=1e-9)
    assert (model.predict(x) == np.array(["a", "b", "c"])[posterior.argmax(axis=1)]).all()


def test_densities_survive_where_they_underflow(family):
    """A row a thousand deviations from one class and next to another: both log-densities are
    exact.
    """
    d = 3
    covariance = naive.shaped(np.array([np.eye(d)] * 2), family)
    mean = np.array([[0.0] * d, [1000.0] * d])
    model = SharedKernelClassifier.from_parameters(
        mean, covariance, np.eye(2), [0.5, 0.5], [0, 1], covariance_type=family
    )
    x = np.array([[0.0] * d, [1000.0] * d, [500.0] * d])
    squared = ((x[:, None] - mean) ** 2).sum(axis=2)
    assert_allclose(model.log_density(x), -0.5 * squared - 1.5 * np.log(2 * np.pi), rtol=1e-9)
    assert_allclose(model.predict_log_proba(x[:1]), [[0, -0.5 * squared[0, 1]]], atol=1e-12)


@pytest.mark.parametrize("sharing", [np.ones((6, 2)), np.eye(2)[[0, 1] * 3]], ids=["all", "none"])
def test_float32_rows_are_worked_on_in_float64_where_kernels_are_narrow(family, sharing):
    """The numbers are then those of the same rows in float64, not those of float32 with a guard."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(6, 3)), 50, axis=0) + 1e-3 * rng.normal(size=(300, 3))
    x = x.astype(np.float32)
    y = np.arange(300) % 3 - 1
    network = SharedKernel(FAMILIES[family](np.full(3, 1e-12)), sharing)
    kernels = Kernels(
        x[::50].astype(float), naive.shaped(np.tile(1e-6 * np.eye(3), (6, 1, 1)), family)
    )
    for eps, guarded in ((2.0**-23, True), (2.0**-52, False)):
        assert bool(network.kernel.natural_params(kernels, eps).guarded) == guarded
    params = Params(kernels, np.full((6, 2), 1 / 6), np.array([0.4, 0.6]))
    frame = Frame(np.zeros(3), np.ones(3))
    (found, value), (expected, same) = (
        network.sweep(as_rows(rows, y).framed(frame.like(rows), 32).by_class(), params)
        for rows in (x, x.astype(float))
    )
    assert value == pytest.approx(same, rel=1e-12)
    assert_allclose(found.kernels.covariance, expected.kernels.covariance, rtol=1e-9)
    assert_allclose(found.mixing, expected.mixing, rtol=1e-12)


def test_a_kernel_moves_away_from_others_of_weights_that_nothing_can_be_divided_by(family):
    x = np.random.default_rng(0).normal(size=(20, 2))
    kernels = Kernels(x[:3], naive.shaped(np.tile(np.eye(2), (3, 1, 1)), family))
    params = Params(
        kernels, np.array([[1, 0.5], [2.5e-312, 0.25], [2.5e-312, 0.25]]), np.full(2, 0.5)
    )
    network = SharedKernel(FAMILIES[family](np.zeros(2)), np.ones((3, 2)))
    rows = ArrayRows(x, np.arange(20) % 2, frame=Frame(np.zeros(2), np.ones(2)))
    moved = network.moved(rows, params, [0], np.array([0, 1, 1]), np.array([1e-3, 10.0]))
    assert_allclose(moved.mixing.sum(axis=0), 1)
