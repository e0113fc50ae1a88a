"""What is done better than the array standard asks gives what the standard would."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from kernelpool.arrays import (
    inverse_of_lower,
    log_weighted_sums,
    multiply_pairs_into,
    responsibilities,
    safe_log,
    squared_distances,
    triangle,
)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("library", [np, strict])
def test_every_pair_is_multiplied_once(d, library):
    x = np.random.default_rng(d).normal(size=(d, 5))
    out = library.asarray(np.full((d * (d + 1) // 2, 5), np.nan))
    multiply_pairs_into(out, library.asarray(x))
    upper, back, times = (np.asarray(a) for a in triangle(library.asarray(x), d))
    outer = np.einsum("in,jn->ijn", x, x).reshape(d * d, 5)
    assert_array_equal(np.asarray(out), outer[upper])
    assert_array_equal(np.asarray(out)[back], outer)
    assert (np.bincount(back) == times).all()


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


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (4, 8, 8), (8, 8), (2, 33, 33), (0, 9, 9)])
@pytest.mark.parametrize("library", [np, strict])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangles_are_inverted(shape, library, dtype):
    lower = np.tril(np.random.default_rng(0).normal(size=shape)) * 0.1 + np.eye(shape[-1])
    given = library.asarray(lower.astype(dtype))
    found = np.asarray(inverse_of_lower(given))
    assert found.dtype == dtype
    assert_array_equal(np.asarray(given), lower.astype(dtype))  # it is not written over
    assert_allclose(
        found @ lower,
        np.broadcast_to(np.eye(shape[-1]), shape),
        atol=1e-14 if dtype == "float64" else 1e-5,
    )
    if dtype == "float64":
        assert not np.triu(found, 1).any()


@pytest.mark.parametrize("library", [np, strict])
def test_the_logarithm_of_what_is_not_positive_is_minus_infinity(library):
    found = np.asarray(safe_log(library.asarray(np.array([1.0, np.e, 0.0, -1e-300, -2.0, np.nan]))))
    assert_array_equal(found, [0, 1, -np.inf, -np.inf, -np.inf, -np.inf])


def test_distances_from_products_and_from_differences_agree():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 5))
    center = rng.normal(size=(6, 5))
    for exact in (True, False):
        assert_allclose(
            squared_distances(x, center, exact), cdist(x, center) ** 2, rtol=1e-10, atol=1e-13
        )
