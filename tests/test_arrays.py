"""What is done better than the array standard asks gives what the standard would."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from kernelpool.arrays import (
    inverse_of_lower,
    multiply_pairs_into,
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
