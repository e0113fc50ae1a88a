"""Generators against their definitions."""

import numpy as np
import pytest
from gaussian_mixtures import assert_draws
from scipy.stats import norm

from kernelpool.datasets import make_clouds, make_ripley, make_xor
from kernelpool.datasets.generators import split
from kernelpool.errors import KernelpoolError

I2 = np.eye(2)
PARTS = {
    make_clouds: [
        (0, 1 / 8, (0, 0), 0.04 * I2),
        (0, 1 / 8, (0, 2), 0.04 * I2),
        (0, 1 / 4, (2, 1), np.diag([0.04, 1])),
        (1, 1 / 2, (0, 0), I2),
    ],
    make_ripley: [
        (0, 1 / 4, (-0.7, 0.3), 0.03 * I2),
        (0, 1 / 4, (0.3, 0.3), 0.03 * I2),
        (1, 1 / 4, (-0.3, 0.7), 0.03 * I2),
        (1, 1 / 4, (0.4, 0.7), 0.03 * I2),
    ],
    make_xor: [
        (0, 1 / 4, (1, 1), 0.09 * I2),
        (0, 1 / 4, (-1, -1), 0.09 * I2),
        (1, 1 / 4, (1, -1), 0.09 * I2),
        (1, 1 / 4, (-1, 1), 0.09 * I2),
    ],
}
"""(label, share, mean, covariance) of every Gaussian, from the papers."""


@pytest.mark.parametrize("make", PARTS, ids=lambda make: make.__name__)
def test_shares_moments_and_seeds(make):
    assert_draws(make, PARTS[make])


def test_split():
    assert split(250, [1, 1, 1, 1]) == [63, 63, 62, 62]
    assert split(10, [0.45, 0.05, 0.05, 0.45]) == [5, 1, 0, 4]
    assert split(0, [1, 1]) == [0, 0]


def test_xor():
    """The error of the best rule in the docstring, on many rows."""
    X, y = make_xor(400_000, random_state=0)
    assert np.mean((X[:, 0] * X[:, 1] < 0) != y) == pytest.approx(2 * norm.cdf(-1 / 0.3), rel=0.3)
    with pytest.raises(KernelpoolError, match="deviation must not be negative; got -1"):
        make_xor(deviation=-1)
