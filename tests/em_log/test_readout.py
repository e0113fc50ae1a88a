"""Output layers of EM-Log networks against scikit-learn's regressions and equations written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, Ridge

from kernelpool.em_log.readout import (
    LeastSquares,
    Logistic,
    class_targets,
)


@pytest.fixture
def setting():
    """Rows, the outputs of five kernels with a bias, and two real targets."""
    x = np.random.default_rng(11).normal(size=(120, 2)) * [1.0, 0.6]
    x += np.array([[-0.7, 0], [0.8, 0.3]])[np.arange(120) % 2]
    means = np.random.default_rng(2).uniform(-1, 1, (5, 2))
    kernels = np.exp(-0.5 * cdist(x, means, "sqeuclidean"))
    columns = np.column_stack([kernels / kernels.max(axis=0), np.ones(120)])
    return x, columns, np.column_stack([np.sin(x[:, 0]) + 0.1 * x[:, 1], x[:, 1] ** 2])


@pytest.mark.parametrize("strength", [0.01, 3.0])
def test_ridge_is_scikit_learns(setting, strength):
    x, columns, value = setting
    weight = np.random.default_rng(1).uniform(0.5, 2, len(x))
    readout = LeastSquares(value, weight, strength).solve(columns)
    other = Ridge(strength).fit(columns[:, :-1], value, weight)
    assert_allclose(readout.weight[:-1].T, other.coef_, rtol=1e-6)
    assert_allclose(readout.weight[-1], other.intercept_, rtol=1e-6)


def test_leave_one_out_is_leaving_one_out(setting):
    """A row leaves with all its weight, as all copies of a row do."""
    x, columns, value = setting
    weight = np.arange(len(x)) % 3 + 0.5
    output = LeastSquares(value, weight, 0.3)
    score = output.score(columns, output.solve(columns))
    total = 0.0
    for i in range(len(x)):
        keep = np.arange(len(x)) != i
        left = Ridge(0.3).fit(columns[keep, :-1], value[keep], weight[keep])
        total += weight[i] * ((left.predict(columns[i : i + 1, :-1]) - value[i]) ** 2).sum()
    assert score == pytest.approx(total / weight.sum(), rel=1e-8)


@pytest.mark.parametrize("rule", ["gcv", "loo"])
def test_the_strength_is_the_best_one(setting, rule):
    x, columns, value = setting
    # noise, so that the best ridge is inside the grid
    value = value + np.random.default_rng(3).normal(size=value.shape)
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
    # the bound converges slowly and may stop early: go on from there
    for _ in range(200 if bound else 2):
        readout = output.solve(columns, readout)
    # two classes: half the squared weights; more: twice the squared deviations from the mean class
    other = LogisticRegression(
        C=1 / strength if n_classes == 2 else 0.5 / strength, tol=1e-10, max_iter=10_000
    )
    other.fit(columns[:, :-1], y, weight)
    logit = np.column_stack([np.zeros(len(x)), columns @ readout.weight])
    assert_allclose(
        softmax(logit, axis=1), other.predict_proba(columns[:, :-1]), atol=2e-4 if bound else 1e-5
    )


def naive_step(columns, y, beta, n_classes, strength):
    """One Newton step for the stacked weights of classes 1..K-1, the Hessian summed row by row."""
    o = n_classes - 1
    width = columns.shape[1]
    ridge = np.kron(2 * (np.eye(o) - 1 / n_classes), np.diag([1.0] * (width - 1) + [0]))
    hessian = strength * ridge
    slope = -strength * ridge @ beta.T.ravel()
    for z, code in zip(columns, y, strict=True):
        p = softmax(np.concatenate([[0], beta.T @ z]))[1:]
        target = (np.arange(1, n_classes) == code).astype(float)
        hessian += np.kron(np.diag(p) - np.outer(p, p), np.outer(z, z))
        slope += np.kron(target - p, z)
    return beta + np.linalg.solve(hessian, slope).reshape(o, width).T


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_rows_left_out_are_one_newton_step_away(setting, n_classes):
    x, columns, _ = (a[:60] for a in setting)
    y = np.minimum((x[:, 0] > 0) + (x[:, 1] > 0.3), n_classes - 1)
    y[::7] = 0
    output = Logistic(*class_targets(y, np.ones(60), n_classes, 1), 0.5)
    readout = output.solve(columns, output.solve(columns))
    total = 0.0
    for i in range(60):
        rest = np.arange(60) != i
        beta = naive_step(columns[rest], y[rest], readout.weight, n_classes, 0.5)
        total -= np.log(softmax(np.concatenate([[0], beta.T @ columns[i]]))[y[i]])
    assert output.score(columns, readout) == pytest.approx(total / 60, rel=1e-4)


@pytest.mark.parametrize("cls", [Logistic, LeastSquares])
def test_singular_columns_are_solved_all_the_same(setting, cls):
    """Of many solutions least squares take the shortest."""
    x = setting[0]
    y = np.arange(len(x)) % 2
    column = np.exp(-(x**2).sum(axis=1))
    output = cls(*class_targets(y, np.ones(len(x)), 2, 1), 0.0)
    # one kernel twice, or shares of one
    for other, sign in ((column, 1), (1 - column, -1)):
        design = np.column_stack([column, other, np.ones(len(x))])
        for solve in (output.solve, output.step):
            first, second, bias = solve(design).weight
            assert np.abs([first, second, bias]).max() < 1e4
            assert cls is Logistic or first == pytest.approx(sign * second, rel=1e-4)


def test_the_logistic_strength_has_no_better_neighbor(setting):
    x, columns, _ = setting
    rng = np.random.default_rng(6)
    y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
    targets = class_targets(y, np.ones(len(y)), 2, 1)
    chosen = Logistic(*targets, "loo").solve(columns).strength

    def loss(strength):
        fixed = Logistic(*targets, strength)
        return fixed.score(columns, fixed.solve(columns))

    assert 0.001 < chosen < 1e4
    assert loss(chosen) <= min(loss(chosen * 10), loss(chosen / 10)) + 1e-8
