"""Products in tiles are products, whatever the sizes."""

import array_api_strict as strict
import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from kernelpool import products
from kernelpool.arrays import log_of_sums, multiply_pairs_into, responsibilities, triangle

SIZES = [(1, 1, 1), (3, 5, 399), (16, 18, 6251), (32, 34, 4000), (32, 66, 3125), (7, 562, 801), (150, 40, 900), (200, 3, 5000)]


@pytest.fixture(params=[True, False])
def tiles(request, monkeypatch):
    """As on a processor on which tiles pay, and as on one on which they don't."""
    monkeypatch.setattr(products, "_unpacked", lambda: request.param)
    return request.param


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_kernels", "p", "n"), SIZES)
def test_products_are_the_products(tiles, n_kernels, p, n, dtype):
    # whole numbers: their sums are exact in any order
    rng = np.random.default_rng(n)
    weight, phi, share = (rng.integers(-3, 4, size=s).astype(dtype) for s in ((n_kernels, p), (p + 2, n), (n_kernels, n)))
    phi = phi[2:]  # rows of a larger array, as they are in a sweep
    for found, expected in (
        (products.weighed(weight, phi), np.einsum("jp,pn->jn", weight, phi)),
        (products.summed(phi, share), np.einsum("pn,jn->pj", phi, share)),
    ):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_tiles_are_used_where_they_pay(tiles, monkeypatch):
    calls = []
    monkeypatch.setattr(products, "_tiled", lambda a, n, tiled=products._tiled: calls.append(n) or tiled(a, n))
    products.weighed(np.ones((16, 18)), np.ones((18, 8000)))
    products.summed(np.ones((18, 8000)), np.ones((16, 8000)))
    assert calls == ([20, 20, 20] if tiles else [])


def test_other_libraries_multiply_in_their_own_way(tiles):
    a, b = strict.ones((2, 3)), strict.ones((3, 5))
    assert np.asarray(products.weighed(a, b)).tolist() == [[3.0] * 5] * 2
    assert np.asarray(products.summed(b, strict.ones((2, 5)))).tolist() == [[5.0] * 2] * 3


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("library", [np, strict])
def test_every_pair_is_multiplied_once(d, library):
    x = np.random.default_rng(d).normal(size=(d, 5))
    room = library.asarray(np.full((d * (d + 1) // 2, 5), np.nan))
    multiply_pairs_into(room, library.asarray(x))
    upper, back, times = (np.asarray(a) for a in triangle(library.asarray(x), d))
    outer = np.einsum("in,jn->ijn", x, x).reshape(d * d, 5)
    np.testing.assert_array_equal(np.asarray(room), outer[upper])
    np.testing.assert_array_equal(np.asarray(room)[back], outer)
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
    share, log_evidence = responsibilities(lambda: library.asarray(a.copy()), library.asarray(weight))
    np.testing.assert_allclose(np.asarray(log_evidence), logsumexp(a, axis=0), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(np.asarray(share), softmax(a, axis=0) * weight, rtol=1e-12)


@pytest.mark.parametrize("library", [np, strict])
@pytest.mark.parametrize("odd", [None, -5000.0, -400.0, 800.0])
@pytest.mark.parametrize("at", [0, 1])
def test_logarithms_of_sums_out_of_the_range_of_exp(library, odd, at):
    """As above; and one kernel, the only one of its class, is so far off that the class vanishes beside the other."""
    a = np.random.default_rng(0).normal(size=(4, 640))
    a[3, 17] = -2000.0
    if odd is not None:
        a[:, at] += odd
    shares = np.array([[0.5, 0], [0.25, 0], [0.25, 0], [0, 1]])
    with np.errstate(divide="ignore"):
        expected = logsumexp(a[:, None, :] + np.log(shares)[:, :, None], axis=0)
    found = np.asarray(log_of_sums(library.asarray(a), library.asarray(shares)))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
