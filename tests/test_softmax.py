"""Softmax and logarithms of sums, beside SciPy's."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax

from kernelpool.softmax import log_weighted_sums, responsibilities


@pytest.mark.parametrize("library", [np, strict])
@pytest.mark.parametrize("odd", [None, -5000.0, -400.0, 800.0])
@pytest.mark.parametrize("at", [0, 1])
def test_responsibilities_of_rows_out_of_the_range_of_exp(library, odd, at):
    """One odd row among many, which a look at a few rows finds (0) or does not find (1)."""
    a = np.random.default_rng(0).normal(size=(4, 640))
    if odd is not None:
        a[:, at] += odd
    weight = np.linspace(0.5, 2, 640)
    share, log_evidence = responsibilities(
        lambda: library.asarray(a.copy()), library.asarray(weight)
    )
    assert_allclose(np.asarray(log_evidence), logsumexp(a, axis=0), rtol=1e-13, atol=1e-13)
    assert_allclose(np.asarray(share), softmax(a, axis=0) * weight, rtol=1e-12)


@pytest.mark.parametrize("library", [np, strict])
@pytest.mark.parametrize("odd", [None, -5000.0, -400.0, 800.0])
@pytest.mark.parametrize("at", [0, 1])
def test_logarithms_of_sums_out_of_the_range_of_exp(library, odd, at):
    """As above; and one kernel, the only one of its class, is so far off that the class vanishes
    beside the other.
    """
    a = np.random.default_rng(0).normal(size=(4, 640))
    a[3, 17] = -2000.0
    if odd is not None:
        a[:, at] += odd
    shares = np.array([[0.5, 0], [0.25, 0], [0.25, 0], [0, 1]])
    with np.errstate(divide="ignore"):
        expected = logsumexp(a[:, None, :] + np.log(shares)[:, :, None], axis=0)
    found = np.asarray(log_weighted_sums(library.asarray(a), library.asarray(shares)))
    assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
