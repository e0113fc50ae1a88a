"""The hidden layer of EM-Log networks against SciPy's densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from kernelpool.em_log.network import Hidden
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params
from kernelpool.rows import ArrayRows


def densities(x, mean, covariance):
    return np.column_stack(
        [multivariate_normal(m, c).pdf(x) for m, c in zip(mean, covariance, strict=True)]
    )


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


def rows_of(x):
    return ArrayRows(x, np.zeros(len(x), int), n_jobs=1)


@pytest.mark.parametrize("activation", ["density", "gaussian", "normalized"])
def test_columns_are_what_they_are_called(problem, activation, family):
    x, _ = problem
    params = start(x, family=family)
    hidden = Hidden(FAMILIES[family](np.zeros(2)), activation)
    columns, _, log_unit = hidden.layer(rows_of(x), params)
    p = densities(x, params.kernels.mean, [np.eye(2)] * 3)
    if activation == "normalized":
        expected = p * params.mixing[:, 0] / (p @ params.mixing)
    else:
        expected = p / p.max(axis=0)
        unit = {"density": 1.0, "gaussian": 1 / (2 * np.pi)}[activation]
        assert_allclose(np.exp(log_unit), p.max(axis=0) / unit, rtol=1e-10)
    assert_allclose(columns[:, :-1], expected, rtol=1e-9, atol=1e-15)
    assert (columns[:, -1] == 1).all()


def test_temperature_widens_spherical_kernels(problem):
    x, _ = problem
    mean = np.random.default_rng(0).normal(size=(3, 2))
    kernel = FAMILIES["spherical"](np.zeros(2))
    columns = []
    for variance, temperature in ((1.0, 4.0), (4.0, 1.0)):
        params = Params(Kernels(mean, np.full(3, variance)), np.full((3, 1), 1 / 3), np.ones(1))
        hidden = Hidden(kernel, "normalized", temperature)
        columns.append(hidden.layer(rows_of(x), params)[0])
    assert_allclose(*columns, rtol=1e-12)
