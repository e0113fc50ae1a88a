"""The mixture of neurons against the paper's equations, finite differences and other programs."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from kernelpool.kernels import Diag, Kernels
from kernelpool.networks.competitive import (
    Competitive,
    GradientStep,
    LogisticNeuron,
    Margin,
    NeuronParams,
    Softmax,
    repelled,
)
from kernelpool.rows import ArrayRows, Frame
from kernelpool.training.competitive import Lbfgs, weights_in, weights_out


def problem(n=40, d=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(n_classes, size=n), rng


def start(n_neurons, n_outputs, d, rng, kernels=None):
    return NeuronParams(
        rng.normal(size=(n_neurons, n_outputs, d + 1)),
        rng.dirichlet(np.ones(n_neurons)),
        kernels,
        float("nan"),
    )


# -- the equations as printed, one loop a sum ------------------------------------------------------


def printed_sweep(x, t, weight, mixing, alpha, beta, eta):
    """(3), (4) and (5) of the paper; also the logarithm of the likelihood that (2) bounds."""
    n, k = len(x), len(weight)
    x = np.column_stack([x, np.ones(n)])

    def cosine(j, m):
        return weight[j] @ weight[m] / (np.linalg.norm(weight[j]) * np.linalg.norm(weight[m]))

    likelihood = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            f = 1 / (1 + np.exp(-weight[j] @ x[i]))
            repulsion = sum(cosine(j, m) ** 2 for m in range(k) if m != j)
            likelihood[i, j] = np.exp(-alpha / 2 * (t[i] - f) ** 2 - beta / 2 * repulsion)
    q = mixing * likelihood / (likelihood @ mixing)[:, None]
    better = weight.copy()
    for j in range(k):
        step = np.zeros(x.shape[1])
        for i in range(n):
            f = 1 / (1 + np.exp(-weight[j] @ x[i]))
            step += eta * q[i, j] * (t[i] - f) * (1 - f) * f * x[i]
        for m in range(k):
            if m != j:
                lengths = np.linalg.norm(weight[j]) * np.linalg.norm(weight[m])
                aside = weight[m] - weight[j] * (weight[j] @ weight[m]) / (weight[j] @ weight[j])
                step -= eta * beta * weight[j] @ weight[m] / lengths * aside / lengths
        better[j] += step
    return better, q.mean(axis=0), np.log(likelihood @ mixing).mean()


@pytest.mark.parametrize(("alpha", "beta"), [(0.03, 0.01), (5.0, 0.7)])
def test_gradient_sweeps_equal_the_printed_equations(alpha, beta):
    x, t, rng = problem()
    params = start(4, 1, 3, rng)
    weight, mixing = params.weight[:, 0, :], params.mixing
    network = Competitive(
        2, precision=alpha, repulsion=beta, repel_rows=True, solver=GradientStep(0.2)
    )
    for _ in range(5):
        params, objective = network.sweep(ArrayRows(x, t), params)
        weight, mixing, expected = printed_sweep(x, t, weight, mixing, alpha, beta, 0.2)
        np.testing.assert_allclose(params.weight[:, 0, :], weight, rtol=1e-11)
        np.testing.assert_allclose(params.mixing, mixing, rtol=1e-11)
        assert objective == pytest.approx(expected, rel=1e-11)


# -- slopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "margin"), [(2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize("local", [False, True])
def test_the_slope_of_the_cost_is_that_of_finite_differences(n_classes, margin, local):
    x, t, rng = problem(n_classes=n_classes)
    weight = rng.uniform(0.5, 2, size=len(x))
    n_outputs = 1 if n_classes == 2 else n_classes
    places = Kernels(rng.normal(size=(4, 3)), rng.uniform(1, 2, size=(4, 3))) if local else None
    params = start(4, n_outputs, 3, rng, places)
    seen = []

    def solver(cost, at, first):
        seen.extend([cost, at, first])
        return at, first[0]

    network = Competitive(
        n_classes, precision=3.0, repulsion=0.8, decay=0.3, margin=margin, kernel=Diag(np.zeros(3)) if local else None,
        solver=solver,
    )  # fmt: skip
    network.sweep(ArrayRows(x, t, weight), params)
    cost, at, first = seen
    again = cost(at)
    assert again[0] == pytest.approx(
        first[0], rel=1e-12
    )  # what the E-step says of the start is what the M-step finds
    np.testing.assert_allclose(again[1], first[1], rtol=1e-9, atol=1e-12)
    elsewhere = at + rng.normal(size=at.shape)  # with the responsibilities of `at`
    slope = approx_fprime(elsewhere.ravel(), lambda w: cost(w.reshape(at.shape))[0], 1e-6)
    np.testing.assert_allclose(cost(elsewhere)[1].ravel(), slope, rtol=1e-4, atol=2e-4)


def test_the_repulsion_is_the_sum_of_squared_cosines():
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(5, 1, 4))
    unit = weight[:, 0, :] / np.linalg.norm(weight[:, 0, :], axis=1, keepdims=True)
    expected = ((unit @ unit.T) ** 2).sum(axis=1) - 1
    squares, slope = repelled(weight)
    np.testing.assert_allclose(squares, expected, rtol=1e-12)
    numeric = approx_fprime(
        weight.ravel(), lambda w: repelled(w.reshape(weight.shape))[0].sum() / 4, 1e-7
    )
    np.testing.assert_allclose(slope.ravel(), numeric, atol=1e-6)
    assert (np.abs(np.sum(slope * weight, axis=2)) < 1e-12).all()  # turning, never stretching
    orthogonal = np.eye(4)[:, None, :] * 3.0
    assert (repelled(orthogonal)[0] == 0).all()
    silent = repelled(np.zeros((2, 1, 3)))  # a neuron without weights has no angle
    assert np.isfinite(silent[0]).all()
    assert np.isfinite(silent[1]).all()


# -- neurons ---------------------------------------------------------------------------------------


def test_a_softmax_of_two_opposite_outputs_is_a_logistic_neuron():
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=(5, 1, 30)) * 3, rng.integers(2, size=(1, 30)).astype(float)
    both, target = np.concatenate([-z, z], axis=1) / 2, np.concatenate([1 - t, t])
    np.testing.assert_allclose(
        Softmax().output(both)[:, 1:, :], LogisticNeuron().output(z), rtol=1e-12
    )
    error, slope = LogisticNeuron().misfit(z, t)
    error_of_both, slope_of_both = Softmax().misfit(both, target)
    np.testing.assert_allclose(error_of_both, error, rtol=1e-12)
    np.testing.assert_allclose(
        (slope_of_both[:, 1, :] - slope_of_both[:, 0, :]) / 2, slope[:, 0, :], rtol=1e-12
    )
    margin_error, _ = Margin().misfit(np.concatenate([-z, z], axis=1), target)
    np.testing.assert_allclose(margin_error, Margin().misfit(z, t)[0], rtol=1e-12)


def test_outputs_stay_numbers_at_any_activation():
    z = np.array([-1e300, -800.0, 0.0, 800.0, 1e300])[None, None, :]
    np.testing.assert_allclose(LogisticNeuron().output(z)[0, 0], [0, 0, 0.5, 1, 1], atol=1e-300)
    np.testing.assert_allclose(Margin().output(z)[0, 0], [0, 0, 0.5, 1, 1])
    soft = Softmax().output(np.concatenate([z, -z], axis=1))
    np.testing.assert_allclose(soft[0, 0], [0, 0, 0.5, 1, 1], atol=1e-300)


def test_a_margin_neuron_pays_until_it_is_one_away():
    z = np.array([-1.0, 0.0, 0.5, 1.0, 7.0])[None, None, :]
    error, slope = Margin().misfit(z, np.ones((1, 5)))
    np.testing.assert_allclose(error[0], [1, 0.25, 0.0625, 0, 0])  # ((1 - z) / 2)² below one
    np.testing.assert_allclose(slope[0, 0], [-0.5, -0.25, -0.125, 0, 0])


# -- the objective and its bound -------------------------------------------------------------------


def downhill(cost, weight, first):
    """A solver that takes the first of ever shorter steps that helps."""
    for power in range(30):
        trial = weight - 0.5**power * first[1]
        value, _ = cost(trial)
        if value < first[0]:
            return trial, value
    return weight, first[0]


@pytest.mark.parametrize("local", [False, True])
def test_the_bound_is_the_sum_that_is_printed(local):
    x, t, rng = problem(n=60)
    kernels = Kernels(rng.normal(size=(3, 3)), np.ones((3, 3))) if local else None
    params = start(3, 1, 3, rng, kernels)
    network = Competitive(
        2,
        precision=4.0,
        repulsion=0.5,
        decay=0.1,
        kernel=Diag(np.zeros(3)) if local else None,
        solver=downhill,
    )
    better, objective = network.sweep(ArrayRows(x, t), params)
    joint, old = log_joint(x, t, better), log_joint(x, t, params)
    evidence = np.logaddexp.reduce(old, axis=1, keepdims=True)
    q = np.exp(old - evidence)
    expected = (q * (joint - np.log(q))).sum() - 4 * network.penalty(
        better.weight
    )  # (2), and the penalty once
    assert better.bound == pytest.approx(expected / len(x), rel=1e-10)
    assert objective == pytest.approx(
        (evidence.sum() - 4 * network.penalty(params.weight)) / len(x), rel=1e-12
    )


def log_joint(x, t, params):
    f = expit(np.column_stack([x, np.ones(len(x))]) @ params.weight[:, 0, :].T)
    joint = np.log(params.mixing) - 2 * (t[:, None] - f) ** 2
    if params.kernels is not None:
        mean, variance = params.kernels.mean, params.kernels.covariance
        away = (x[:, None, :] - mean) ** 2 / variance
        joint = joint - 0.5 * (away + np.log(2 * np.pi * variance)).sum(axis=2)
    return joint


# -- the solver ------------------------------------------------------------------------------------


def test_the_solver_never_climbs():
    weight = np.zeros((1, 1, 2))

    def steep(w):
        return float(np.sum((w - 3) ** 2)), 2 * (w - 3)

    def misleading(w):
        return float(np.sum(w)) + 5, -np.ones_like(w)

    found, cost = Lbfgs(10.0)(steep, weight, steep(weight))
    np.testing.assert_allclose(found, 3, atol=1e-4)
    assert cost == pytest.approx(0, abs=1e-6)
    found, cost = Lbfgs(10.0)(misleading, weight, misleading(weight))
    np.testing.assert_array_equal(found, weight)
    assert cost == 5


def test_weights_in_and_out_of_a_frame():
    rng = np.random.default_rng(0)
    weight, x = rng.normal(size=(3, 2, 5)), rng.normal(size=(7, 4))
    frame = Frame(rng.normal(size=4), rng.uniform(0.5, 2, size=4))
    inside = np.column_stack([(x - frame.origin) / frame.unit, np.ones(7)])
    out = weights_out(weight, frame)
    np.testing.assert_allclose(np.column_stack([x, np.ones(7)]) @ out[1].T, inside @ weight[1].T)
    np.testing.assert_allclose(weights_in(out, frame), weight)
