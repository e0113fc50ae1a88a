"""Products in tiles are products, whatever the sizes."""

import array_api_strict as strict
import numpy as np
import pytest

from kernelpool import products

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
        (products.linear_scores(weight, phi), np.einsum("jp,pn->jn", weight, phi)),
        (products.weighted_feature_sums(phi, share), np.einsum("pn,jn->pj", phi, share)),
    ):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_tiles_are_used_where_they_pay(tiles, monkeypatch):
    calls = []
    monkeypatch.setattr(products, "_tiled", lambda a, n, tiled=products._tiled: calls.append(n) or tiled(a, n))
    products.linear_scores(np.ones((16, 18)), np.ones((18, 8000)))
    products.weighted_feature_sums(np.ones((18, 8000)), np.ones((16, 8000)))
    assert calls == ([20, 20, 20] if tiles else [])


def test_other_libraries_multiply_in_their_own_way(tiles):
    a, b = strict.ones((2, 3)), strict.ones((3, 5))
    assert np.asarray(products.linear_scores(a, b)).tolist() == [[3.0] * 5] * 2
    assert np.asarray(products.weighted_feature_sums(b, strict.ones((2, 5)))).tolist() == [[5.0] * 2] * 3
