"""The equations of Ferreira & Figueiredo, row by row with SciPy's densities, against the network;
readouts against others.
"""

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression, Ridge

from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.networks.em_log import EMLog, Hidden, Layer, RBFParams, train
from kernelpool.networks.readout import (
    LeastSquares,
    Logistic,
    Readout,
    class_targets,
    pseudo_inverse,
    solved,
)
from kernelpool.networks.shared_kernel import Params, SharedKernel
from kernelpool.rows import ArrayRows


def densities(x, mean, covariance):
    return np.column_stack(
        [multivariate_normal(m, c).pdf(x) for m, c in zip(mean, covariance, strict=True)]
    )


def naive_em_log(x, y, mean, covariance, n_sweeps, *, link, bound):
    """Steps 1a-1f as printed, with the residual y - p in (5) and alpha = 1/k at the start."""
    k, n = len(mean), len(x)
    alpha, beta = np.full(k, 1 / k), np.zeros(k + 1)
    for _ in range(n_sweeps):
        joint = alpha * densities(x, mean, covariance)
        z = joint / joint.sum(axis=1, keepdims=True)  # 1a
        alpha = z.mean(axis=0)  # 1b
        mean = np.array([z[:, s] @ x / z[:, s].sum() for s in range(k)])  # 1c
        covariance = np.array(
            [(x - mean[s]).T @ ((x - mean[s]) * z[:, s : s + 1]) / z[:, s].sum() for s in range(k)]
        )  # 1d
        design = np.column_stack([densities(x, mean, covariance), np.ones(n)])
        p = expit(design @ beta)
        w = np.full(n, 0.25) if bound else p * (1 - p)
        beta = beta + np.linalg.solve(design.T @ np.diag(w) @ design, design.T @ (y - p))  # 1e
        mixture = alpha
        if link:
            alpha = np.abs(beta[:k]) / np.abs(beta[:k]).sum()  # 1f
    return mean, covariance, mixture, alpha, beta


@pytest.fixture
def problem():
    rng = np.random.default_rng(11)
    y = np.arange(120) % 2
    x = rng.normal(size=(120, 2)) * [1.0, 0.6] + np.array([[-0.7, 0], [0.8, 0.3]])[y]
    return x, y


def start(x, m=3, seed=5, family="full"):
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    covariance = {
        "full": np.repeat(np.eye(d)[None], m, 0),
        "spherical": np.ones(m),
        "diag": np.ones((m, d)),
        "tied": np.eye(d),
    }
    return Params(
        Kernels(rng.uniform(-1, 1, (m, d)), covariance[family]), np.full((m, 1), 1 / m), np.ones(1)
    )


def rows_of(x, weight=None):
    return ArrayRows(x, np.zeros(len(x), int), weight, n_jobs=1)


def two_classes(y, strength=0.0, **settings):
    return Logistic(*class_targets(y, np.ones(len(y)), 2, 1), strength, **settings)


def network_of(x, output, activation="density", family="full", **settings):
    kernel, one = FAMILIES[family](np.zeros(x.shape[1])), np.ones((3, 1))
    settings = {"link": False, "once": False} | settings
    return EMLog(SharedKernel(kernel, one), Hidden(kernel, activation), output, **settings)


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_sweeps_equal_the_papers_equations(problem, link, bound):
    x, y = problem
    params = start(x)
    rows = rows_of(x)
    em_log = network_of(x, two_classes(y, bound=bound), link=link, once=True)
    network = None
    for n in range(1, 5):
        params, network, _ = em_log.sweep(rows, params, network)
        mean, covariance, mixture, alpha, beta = naive_em_log(
            x,
            y,
            start(x).kernels.mean,
            start(x).kernels.covariance,
            n,
            link=link,
            bound=bound,
        )
        np.testing.assert_allclose(params.kernels.mean, mean, rtol=1e-7)
        np.testing.assert_allclose(params.kernels.covariance, covariance, rtol=1e-7)
        np.testing.assert_allclose(network.hidden.mixing[:, 0], mixture, rtol=1e-7)
        np.testing.assert_allclose(params.mixing[:, 0], alpha, rtol=1e-6)
        found = network.readout.weight[:, 0].copy()
        found[:-1] /= np.exp(network.layer.log_unit)
        np.testing.assert_allclose(found, beta, rtol=1e-6)


def test_heights_of_one_only_change_the_units_and_the_link(problem):
    x, y = problem
    params = start(x)
    by = {}
    for activation in ("density", "gaussian"):
        em_log = network_of(x, two_classes(y), activation, link=True, once=True)
        linked, network, _ = em_log.sweep(rows_of(x), params, None)
        by[activation] = network, linked.mixing[:, 0]
    (density, _), (gaussian, shares) = by["density"], by["gaussian"]
    np.testing.assert_allclose(density.readout.weight, gaussian.readout.weight, rtol=1e-12)
    height = (2 * np.pi * np.sqrt(np.linalg.det(gaussian.hidden.kernels.covariance))) ** -1
    true = np.abs(density.readout.weight[:-1, 0] / np.exp(density.layer.log_unit)) * height
    np.testing.assert_allclose(shares, true / true.sum(), rtol=1e-9)


@pytest.mark.parametrize("activation", ["density", "gaussian", "normalized"])
def test_columns_are_what_they_are_called(problem, activation, family):
    x, _ = problem
    params = start(x, family=family)
    layer = Hidden(FAMILIES[family](np.zeros(2)), activation).layer(rows_of(x), params)
    columns = layer.design
    p = densities(x, params.kernels.mean, [np.eye(2)] * 3)
    if activation == "normalized":
        expected = p * params.mixing[:, 0] / (p @ params.mixing)
    else:
        expected = p / p.max(axis=0)
        unit = {"density": 1.0, "gaussian": 1 / (2 * np.pi)}[activation]
        np.testing.assert_allclose(np.exp(layer.log_unit), p.max(axis=0) / unit, rtol=1e-10)
    np.testing.assert_allclose(columns[:, :-1], expected, rtol=1e-9, atol=1e-15)
    assert (columns[:, -1] == 1).all()


def test_temperature_widens_spherical_kernels(problem):
    x, _ = problem
    mean = np.random.default_rng(0).normal(size=(3, 2))
    kernel = FAMILIES["spherical"](np.zeros(2))
    columns = []
    for variance, temperature in ((1.0, 4.0), (4.0, 1.0)):
        params = Params(Kernels(mean, np.full(3, variance)), np.full((3, 1), 1 / 3), np.ones(1))
        hidden = Hidden(kernel, "normalized", temperature)
        columns.append(hidden.layer(rows_of(x), params).design)
    np.testing.assert_allclose(*columns, rtol=1e-12)


# -- output layers against other implementations ---------------------------------------------------


@pytest.fixture
def setting(problem):
    """Rows, the outputs of five kernels with a bias, and two real targets."""
    x, _ = problem
    hidden = Hidden(FAMILIES["full"](np.zeros(2)), "gaussian")
    columns = hidden.layer(rows_of(x), start(x, 5, seed=2)).design
    return x, columns, np.column_stack([np.sin(x[:, 0]) + 0.1 * x[:, 1], x[:, 1] ** 2])


def test_least_squares_is_the_pseudo_inverse(setting):
    x, columns, value = setting
    readout = LeastSquares(value, np.ones(len(x)), 0.0).solve(columns)
    np.testing.assert_allclose(
        columns @ readout.weight, columns @ np.linalg.pinv(columns) @ value, atol=1e-6
    )


@pytest.mark.parametrize("strength", [0.01, 3.0])
def test_ridge_is_scikit_learns(setting, strength):
    x, columns, value = setting
    weight = np.random.default_rng(1).uniform(0.5, 2, len(x))
    readout = LeastSquares(value, weight, strength).solve(columns)
    other = Ridge(strength).fit(columns[:, :-1], value, weight)
    np.testing.assert_allclose(readout.weight[:-1].T, other.coef_, rtol=1e-6)
    np.testing.assert_allclose(readout.weight[-1], other.intercept_, rtol=1e-6)


def test_leave_one_out_is_leaving_one_out(setting):
    x, columns, value = setting
    output = LeastSquares(value, np.ones(len(x)), 0.3)
    score = output.score(columns, output.solve(columns))
    total = 0.0
    for i in range(len(x)):
        keep = np.arange(len(x)) != i
        left = Ridge(0.3).fit(columns[keep, :-1], value[keep])
        total += ((left.predict(columns[i : i + 1, :-1]) - value[i]) ** 2).sum()
    assert score == pytest.approx(total / len(x), rel=1e-8)


@pytest.mark.parametrize("rule", ["gcv", "loo"])
def test_the_strength_is_the_best_one(setting, rule):
    x, columns, value = setting
    value = value + np.random.default_rng(3).normal(
        size=value.shape
    )  # noise, so that the best ridge is inside the grid
    chosen = LeastSquares(value, np.ones(len(x)), rule).solve(columns).strength

    def error(strength):
        free = np.diag([1.0] * 5 + [0.0])
        hat = columns @ np.linalg.solve(columns.T @ columns + strength * free, columns.T)
        residual = value - hat @ value
        if rule == "gcv":
            return len(x) * (residual**2).sum() / (len(x) - np.trace(hat)) ** 2
        return ((residual / (1 - np.diag(hat))[:, None]) ** 2).sum()

    grid = chosen * 10.0 ** np.linspace(-4, 2, 61)
    assert error(chosen) <= min(error(s) for s in grid) * (1 + 1e-4)
    assert error(chosen) < 0.999 * max(error(chosen * 100), error(chosen / 1000))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("bound", [False, True])
def test_logistic_is_scikit_learns(setting, n_classes, bound):
    x, columns, _ = setting
    rng = np.random.default_rng(0)
    y = (np.argsort(np.argsort(x[:, 0] + 0.5 * rng.normal(size=len(x)))) * n_classes) // len(x)
    weight = rng.uniform(0.5, 2, len(x))
    strength = 0.2
    output = Logistic(*class_targets(y, weight, n_classes, 1), strength, bound=bound)
    readout = output.solve(columns)
    for _ in range(
        200 if bound else 2
    ):  # the bound converges slowly and may stop early: go on from there
        readout = output.solve(columns, readout)
    # two classes: half the squared weights; more: twice the squared deviations from the mean class
    other = LogisticRegression(
        C=1 / strength if n_classes == 2 else 0.5 / strength, tol=1e-10, max_iter=10_000
    )
    other.fit(columns[:, :-1], y, weight)
    logit = np.column_stack([np.zeros(len(x)), columns @ readout.weight])
    np.testing.assert_allclose(
        softmax(logit, axis=1), other.predict_proba(columns[:, :-1]), atol=2e-4 if bound else 1e-5
    )


def naive_step(columns, y, beta, n_classes, bound):
    """One Newton step for the stacked weights of classes 1..K-1, the Hessian summed row by row."""
    o, width = n_classes - 1, columns.shape[1]
    hessian, slope = np.zeros((o * width, o * width)), np.zeros(o * width)
    for z, code in zip(columns, y, strict=True):
        p = softmax(np.concatenate([[0], beta.T @ z]))[1:]
        target = (np.arange(1, n_classes) == code).astype(float)
        w = 0.5 * (np.eye(o) - 1 / n_classes) if bound else np.diag(p) - np.outer(p, p)
        hessian += np.kron(w, np.outer(z, z))
        slope += np.kron(target - p, z)
    return beta + np.linalg.solve(hessian, slope).reshape(o, width).T


@pytest.mark.parametrize("bound", [False, True])
def test_a_step_for_many_classes_is_newtons(setting, bound):
    x, columns, _ = setting
    y = np.random.default_rng(4).integers(3, size=len(x))
    beta = np.random.default_rng(5).normal(size=(6, 2)) * 0.3
    output = Logistic(*class_targets(y, np.ones(len(x)), 3, 1), 0.0, bound=bound)
    after = output.step(columns, Readout(beta, 0.0))
    np.testing.assert_allclose(
        after.weight, naive_step(columns, y, beta, 3, bound), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_rows_left_out_are_one_newton_step_away(setting, n_classes):
    x, columns, _ = setting
    y = (
        ((x[:, 0] > 0) + (x[:, 1] > 0.3)).astype(int)
        if n_classes == 3
        else (x[:, 0] > 0).astype(int)
    )
    y[::7] = 0
    x, columns, y = x[:60], columns[:60], y[:60]
    output = Logistic(*class_targets(y, np.ones(len(x)), n_classes, 1), 0.5)
    readout = output.solve(columns, output.solve(columns))
    o = n_classes - 1
    metric = 2 * (np.eye(o) - 1 / n_classes)
    free = np.diag([1.0] * 5 + [0.0])
    total = 0.0
    for i in range(len(x)):
        hessian, slope = (
            0.5 * np.kron(metric, free),
            -0.5 * np.kron(metric, free) @ readout.weight.T.ravel(),
        )
        for n in range(len(x)):
            if n != i:
                p = softmax(np.concatenate([[0], readout.weight.T @ columns[n]]))[1:]
                target = (np.arange(1, n_classes) == y[n]).astype(float)
                hessian += np.kron(np.diag(p) - np.outer(p, p), np.outer(columns[n], columns[n]))
                slope += np.kron(target - p, columns[n])
        beta = readout.weight + np.linalg.solve(hessian, slope).reshape(o, 6).T
        total -= np.log(softmax(np.concatenate([[0], beta.T @ columns[i]]))[y[i]])
    assert output.score(columns, readout) == pytest.approx(total / len(x), rel=1e-4)


def test_singular_columns_are_solved_all_the_same(problem):
    x, y = problem
    kernels = Kernels(
        np.array([[0.0, 0], [0, 0], [1, 1]]), np.repeat(np.eye(2)[None], 3, 0)
    )  # two kernels are one
    params = Params(kernels, np.full((3, 1), 1 / 3), np.ones(1))
    for activation in ("density", "normalized"):  # shares sum to one: singular beside a bias
        for cls in (Logistic, LeastSquares):
            output = cls(*class_targets(y, np.ones(len(x)), 2, 1), 0.0)
            em_log, rows = network_of(x, output, activation), rows_of(x)
            network = em_log.read(rows, params)
            assert np.isfinite(network.readout.weight).all()
            assert np.abs(network.readout.weight).max() < 1e4
            assert np.isfinite(em_log.read(rows, params, network, once=True).readout.weight).all()


@pytest.mark.parametrize("excess", [0.0, 1e-14])
def test_of_many_solutions_the_shortest(excess):
    a = np.array([[1.0, 1.0], [1.0, 1.0 + excess]])
    np.testing.assert_allclose(solved(a, np.array([[1.0], [1.0]])), [[0.5], [0.5]], rtol=1e-6)
    np.testing.assert_allclose(pseudo_inverse(a), np.full((2, 2), 0.25), rtol=1e-6)
    np.testing.assert_allclose(
        solved(np.diag([4.0, 0.0]), np.array([[2.0], [0.0]])), [[0.5], [0.0]]
    )


def test_rows_without_weight_do_not_scale_columns(problem):
    x, _ = problem
    params = start(x)
    more = np.concatenate([x, params.kernels.mean])  # where every kernel is highest
    weight = np.concatenate([np.ones(len(x)), np.zeros(3)])
    hidden = Hidden(FAMILIES["full"](np.zeros(2)), "density")
    a, b = (hidden.layer(rows, params).log_scale for rows in (rows_of(x), rows_of(more, weight)))
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_logistic_strength_has_no_better_neighbor(setting):
    x, columns, _ = setting
    rng = np.random.default_rng(6)
    y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
    chosen = two_classes(y, "loo").solve(columns)

    def loss(strength):
        fixed = two_classes(y, strength)
        return fixed.score(columns, fixed.solve(columns))

    assert 0.001 < chosen.strength < 1e4
    assert (
        loss(chosen.strength) <= min(loss(chosen.strength * 10), loss(chosen.strength / 10)) + 1e-8
    )


# -- stopping --------------------------------------------------------------------------------------


class Scripted:
    """A training whose loss follows a script; the network is the number of the sweep."""

    def __init__(self, losses):
        self.losses, self.output = losses, self

    def sweep(self, rows, params, before):
        n = 1 if before is None else before.readout + 1
        return params, RBFParams(params, Layer(None, None, None), n), -1.0 / n

    def score(self, design, readout):
        return self.losses[readout - 1]


@pytest.mark.parametrize(
    ("losses", "patience", "best", "made", "outcome"),
    [
        ([5, 4, 3, 3.5, 4, 5, 1], 3, 3, 6, "patience"),
        ([5, 4, 3, 3.5, 4, 5, 1], 4, 7, 7, "max_iter"),
        ([5, 4, 3, 3.5, 4, 5, 1], None, 7, 7, "max_iter"),
        ([5, 4.999999, 4.999998], 2, 1, 3, "patience"),  # gains below tol are none
    ],
)
def test_training_keeps_the_best_sweep(losses, patience, best, made, outcome):
    run = train(Scripted(losses), None, "start", max_iter=len(losses), tol=1e-5, patience=patience)
    assert (run.network.readout, run.best_sweep, run.n_sweeps, run.outcome) == (
        best,
        best,
        made,
        outcome,
    )
    assert run.history == ([] if patience is None else losses[:made])
