"""The hidden layer of EM-Log networks against SciPy's densities."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from kernelpool.em_log.network import Hidden
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params
from kernelpool.rows import ArrayRows

RNG = np.random.default_rng(11)
ROWS = ArrayRows(RNG.normal(size=(120, 2)), np.zeros(120, int), n_jobs=1)


def densities(x, mean, covariance):
    return np.column_stack(
        [multivariate_normal(m, c).pdf(x) for m, c in zip(mean, covariance, strict=True)]
    )


@pytest.mark.parametrize("activation", ["density", "gaussian", "normalized"])
def test_columns_are_what_they_are_called(activation, family):
    mean = RNG.uniform(-1, 1, (3, 2))
    kernels = Kernels(mean, naive.shaped(np.array([np.eye(2)] * 3), family))
    params = Params(kernels, np.full((3, 1), 1 / 3), np.ones(1))
    columns, _, log_unit = Hidden(FAMILIES[family](np.zeros(2)), activation).layer(ROWS, params)
    p = densities(ROWS.x, mean, [np.eye(2)] * 3)
    if activation == "normalized":
        expected = p / p.sum(axis=1, keepdims=True)
    else:
        expected = p / p.max(axis=0)
        unit = {"density": 1.0, "gaussian": 1 / (2 * np.pi)}[activation]
        assert_allclose(np.exp(log_unit), p.max(axis=0) / unit, rtol=1e-10)
    assert_allclose(columns[:, :-1], expected, rtol=1e-9, atol=1e-15)
    assert (columns[:, -1] == 1).all()


def test_temperature_widens_spherical_kernels():
    mean = RNG.normal(size=(3, 2))
    columns = []
    for variance, temperature in ((1.0, 4.0), (4.0, 1.0)):
        params = Params(Kernels(mean, np.full(3, variance)), np.full((3, 1), 1 / 3), np.ones(1))
        hidden = Hidden(FAMILIES["spherical"](np.zeros(2)), "normalized", temperature)
        columns.append(hidden.layer(ROWS, params)[0])
    assert_allclose(*columns, rtol=1e-12)
