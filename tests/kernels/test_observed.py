"""Kernels beside rows with missing cells: densities and expected moments by the textbook, one row
at a time.
"""

import array_api_strict as strict
import naive
import numpy as np
import pytest
from made_up_families import Unit, some_kernels
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from kernelpool.arrays import match_array
from kernelpool.errors import KernelpoolError
from kernelpool.kernels import FAMILIES
from kernelpool.rows import as_rows

EPS = 2.2e-16
M = 3
D = 3


def some_rows(n=60, d=D, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[rng.random(x.shape) < 0.4] = np.nan
    x[0], x[1, 0] = np.nan, np.nan  # nothing known, and at least one incomplete row
    return x[np.isnan(x).any(axis=1)]


def blocks_of(x):
    """The blocks of incomplete rows as a network sees them."""
    found = []
    as_rows(x, n_jobs=1).total(lambda block: found.append(block) or 0)
    return found


@pytest.mark.parametrize(
    ("guard", "at_once", "cached"),
    [(None, 1 << 18, 1 << 24), (-1.0, 1 << 17, 1 << 23), (None, 1, 0)],
    ids=["plain", "from x - mean", "matrices are made again"],
)
def test_densities_and_moments_are_those_of_the_textbook(
    family, guard, at_once, cached, monkeypatch
):
    """Row by row, with the conditional mean and covariance of the missing cells given the
    others.
    """
    monkeypatch.setattr("kernelpool.kernels.full.SWEPT_AT_ONCE", at_once)
    monkeypatch.setattr("kernelpool.kernels.full.PATTERN_NUMBERS", cached)
    kernel = FAMILIES[family](np.full(D, 1e-9))
    kernel.guard = guard
    kernels = some_kernels(kernel, M, D)
    natural_params = kernel.natural_params(kernels, EPS)
    assert bool(natural_params.guarded) == (guard is not None)
    (block,) = blocks_of(some_rows())
    x = np.where(block.missing.observed > 0, block.x, np.nan)
    rng = np.random.default_rng(1)
    share = rng.normal(size=(M, len(x)))  # signed, as gradients have them
    observed = kernel.observe(natural_params, block)
    found = observed.moments(share.sum(axis=1)[:, None], share)
    origin = natural_params.moment_origin
    full = naive.matrices(kernels.covariance, family, M, D)
    first = np.zeros((M, D))
    second = np.zeros((M, D, D))
    for j in range(M):
        mean = kernels.mean[j]
        covariance = full[j]
        for i, row in enumerate(x):
            o = np.flatnonzero(~np.isnan(row))
            h = np.flatnonzero(np.isnan(row))
            expected = (
                multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o])
                if len(o)
                else 0.0
            )
            assert_allclose(observed.log_density[j, i], expected, rtol=1e-9, atol=1e-9)
            slope = covariance[np.ix_(h, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
            imputed = row.copy()
            spread = np.zeros((D, D))
            imputed[h] = mean[h] + slope @ (row[o] - mean[o])
            spread[np.ix_(h, h)] = covariance[np.ix_(h, h)] - slope @ covariance[np.ix_(o, h)]
            away = imputed - origin[j]
            first[j] += share[j, i] * away
            second[j] += share[j, i] * (np.outer(away, away) + spread)
    assert_allclose(found.first, first, rtol=1e-9, atol=1e-9)
    if kernel.matrices:
        flat = kernel.pool_moments(kernel.flat(second))
    else:
        flat = np.einsum("jii->ji", second) @ kernel.square(np.eye(D)).T
    assert_allclose(found.second, flat, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("like", "rtol"),
    [(np.zeros(0, np.float32), 1e-3), (strict.zeros(0, dtype=strict.float64), 1e-9)],
    ids=["float32", "another library"],
)
def test_float32_rows_and_other_array_libraries_agree(family, like, rtol):
    kernel = FAMILIES[family](np.full(D, 1e-9))
    kernels = some_kernels(kernel, M, D)
    results = []
    for array, eps in ((np.zeros(0), EPS), (like, 1.2e-7 if rtol == 1e-3 else EPS)):
        (block,) = blocks_of(match_array(some_rows(), like=array))
        share = np.random.default_rng(2).uniform(size=(M, len(some_rows())))
        share = match_array((share.sum(axis=1)[:, None], share), like=array)
        observed = kernel.observe(
            match_array(kernel.natural_params(kernels, eps), like=array), block
        )
        results.append((observed.log_density, observed.moments(*share).second))
    for expected, found in zip(*results, strict=True):
        assert_allclose(np.asarray(found), expected, rtol=rtol, atol=10 * rtol)


def test_a_family_that_does_not_say_how_refuses():
    kernel = Unit()
    with pytest.raises(
        KernelpoolError, match="family 'unit' does not say how they are integrated out"
    ):
        kernel.observe(kernel.natural_params(some_kernels(kernel, M, D), EPS), None)
