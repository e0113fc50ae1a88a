"""The mixture of neurons against the paper's equations, finite differences and other programs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import norm

from kernelpool.neurons.network import (
    Competitive,
    GradientRule,
    LogisticNeuron,
    NeuronParams,
    Softmax,
    repelled,
)


def problem(n=40, d=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(n_classes, size=n), rng


def start(n_neurons, n_outputs, d, rng, local=False):
    weight = rng.normal(size=(n_neurons, n_outputs, d + 1))
    mixing = rng.dirichlet(np.ones(n_neurons))
    if not local:
        return NeuronParams(weight, mixing)
    place = rng.normal(size=(n_neurons, d)), np.full((n_neurons, d), 2)
    return NeuronParams(weight, mixing, place)


# -- the equations as printed, one loop a sum ------------------------------------------------------


def printed_sweep(x, t, weight, mixing, alpha, beta, eta, moved=slice(None)):
    """(3), (4) and (5) of the paper; also the logarithm of the likelihood that (2) bounds."""
    x = np.column_stack([x, np.ones(len(x))])
    k = len(weight)
    length = np.linalg.norm(weight, axis=1)
    cosine = weight @ weight.T / np.outer(length, length)
    f = expit(x @ weight.T)
    repulsion = (cosine**2).sum(axis=1) - 1
    likelihood = np.exp(-alpha / 2 * (t[:, None] - f) ** 2 - beta / 2 * repulsion)
    q = mixing * likelihood / (likelihood @ mixing)[:, None]
    better = weight.copy()
    for j in range(k):
        better[j] += eta * (q[:, j] * (t - f[:, j]) * (1 - f[:, j]) * f[:, j]) @ x
        for m in set(range(k)) - {j}:
            lengths = length[j] * length[m]
            aside = weight[m] - weight[j] * (weight[j] @ weight[m]) / length[j] ** 2
            better[j, moved] -= (eta * beta * cosine[j, m] * aside / lengths)[moved]
    return better, q.mean(axis=0), np.log(likelihood @ mixing).mean()


@pytest.mark.parametrize(("alpha", "beta", "bias"), [(0.03, 0.01, False), (5.0, 0.7, True)])
def test_gradient_sweeps_equal_the_printed_equations(alpha, beta, bias):
    """`bias` is section 5: the repulsion moves the biases alone."""
    x, t, rng = problem()
    params = start(4, 1, 3, rng)
    weight = params.weight[:, 0]
    mixing = params.mixing
    rule = GradientRule(0.2, "bias" if bias else "weights")
    network = Competitive(2, precision=alpha, repulsion=beta, rule=rule)
    rows = network.rows(x, t, np.ones(40))
    moved = [-1] if bias else slice(None)
    for _ in range(5):
        params, objective = network.sweep(rows, params)
        weight, mixing, expected = printed_sweep(x, t, weight, mixing, alpha, beta, 0.2, moved)
        assert_allclose(params.weight[:, 0], weight, rtol=1e-11)
        assert_allclose(params.mixing, mixing, rtol=1e-11)
        assert objective == pytest.approx(expected, rel=1e-11)


# -- slopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "margin"), [(2, False), (2, True), (3, False), (3, True)])
def test_the_slope_of_the_cost_is_that_of_finite_differences(n_classes, margin):
    x, t, rng = problem(n_classes=n_classes)
    shape = 4, 1 if n_classes == 2 else n_classes, 4
    weight = rng.normal(size=shape)
    network = Competitive(n_classes, precision=3.0, repulsion=0.8, decay=0.3, margin=margin)
    rows = network.rows(x, t, np.ones(40))
    responsibility = rng.dirichlet(np.ones(4), size=40).T
    slope = approx_fprime(
        weight.ravel(), lambda w: network.cost(rows, responsibility, w.reshape(shape))[0], 1e-6
    )
    _, expected = network.cost(rows, responsibility, weight)
    assert_allclose(expected.ravel(), slope, rtol=1e-4, atol=2e-4)


def test_right_angles_and_zero_weights_repel_nothing():
    for weight in (np.eye(4)[:, None, :] * 3.0, np.zeros((2, 1, 3))):
        squares, slope = repelled(weight)
        assert not squares.any()
        assert not slope.any()


# -- neurons ---------------------------------------------------------------------------------------


def test_a_softmax_of_two_opposite_outputs_is_a_logistic_neuron():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(5, 1, 30)) * 3
    t = rng.integers(2, size=(1, 30)).astype(float)
    both = np.concatenate([-z, z], axis=1) / 2
    target = np.concatenate([1 - t, t])
    assert_allclose(Softmax().output(both)[:, 1:, :], LogisticNeuron().output(z), rtol=1e-12)
    error, slope = LogisticNeuron().misfit(z, t)
    error_of_both, slope_of_both = Softmax().misfit(both, target)
    assert_allclose(error_of_both, error, rtol=1e-12)
    assert_allclose(
        (slope_of_both[:, 1, :] - slope_of_both[:, 0, :]) / 2, slope[:, 0, :], rtol=1e-12
    )


# -- the objective and its bound -------------------------------------------------------------------


@pytest.mark.parametrize("local", [False, True])
def test_the_bound_is_the_sum_that_is_printed(local):
    x, t, rng = problem(n=60)
    params = start(3, 1, 3, rng, local)
    network = Competitive(2, precision=4.0, repulsion=0.5, decay=0.1)
    better, objective = network.sweep(network.rows(x, t, np.ones(60)), params)
    joint = log_joint(x, t, better)
    old = log_joint(x, t, params)
    evidence = np.logaddexp.reduce(old, axis=1, keepdims=True)
    q = np.exp(old - evidence)
    # (2), and the penalty once
    expected = (q * (joint - np.log(q))).sum() - 4 * network.penalty(better.weight)[0]
    assert better.bound == pytest.approx(expected / 60, rel=1e-10)
    expected = evidence.sum() - 4 * network.penalty(params.weight)[0]
    assert objective == pytest.approx(expected / 60, rel=1e-12)
    if local:  # places are means and variances of the rows of a neuron
        share = q / q.sum(axis=0)
        mean, variance = better.place
        assert_allclose(mean, share.T @ x)
        assert_allclose(variance, share.T @ x**2 - mean**2)


def log_joint(x, t, params):
    f = expit(np.column_stack([x, np.ones(len(x))]) @ params.weight[:, 0, :].T)
    joint = np.log(params.mixing) - 2 * (t[:, None] - f) ** 2
    if params.place is not None:
        mean, variance = params.place
        joint += norm.logpdf(x[:, None], mean, variance**0.5).sum(axis=2)
    return joint
