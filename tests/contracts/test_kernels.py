"""Every kernel family, and a made-up one: what networks, penalties and starts may rely on.

A family is tested as soon as it stands in FAMILIES: nothing here knows one by name.
"""

import numpy as np
import pytest
from made_up_families import MADE_UP, some_kernels
from numpy.testing import assert_allclose

from kernelpool.kernels import FAMILIES
from kernelpool.rows import Frame

EPS = 2.2e-16
M = 4
D = 3


class OneByOne(FAMILIES["full"]):
    """Full kernels as they are taken where there are many features."""

    def one_by_one(self, d):
        return True


EVERY = {**FAMILIES, **MADE_UP, "full, one by one": OneByOne}


@pytest.fixture(params=list(EVERY))
def family_class(request):
    return EVERY[request.param]


@pytest.fixture
def kernel(family_class):
    return family_class(np.full(D, 1e-9))


@pytest.fixture
def kernels(kernel):
    return some_kernels(kernel, M, D)


def log_density(kernel, kernels, x):
    return kernel.log_density(kernel.natural_params(kernels, EPS), x)


def moments_of(kernel, kernels, x, share):
    """The sums of rows with weights (M, n), as a network takes them, and the points they are
    about.
    """
    natural_params = kernel.natural_params(kernels, EPS)
    sums = kernel.sums(kernel.features(x), x, share)
    return kernel.moments(
        share.sum(axis=1)[:, None], sums, natural_params, x, share
    ), natural_params.moment_origin


def some_rows(n=80):
    return np.random.default_rng(5).normal(size=(n, D))


def test_densities_integrate_to_one(family_class):
    kernel = family_class(np.full(1, 1e-9))
    kernels = some_kernels(kernel, M, 1)
    line = np.linspace(-30, 30, 20_001)
    density = np.exp(log_density(kernel, kernels, line[:, None]))
    assert_allclose(np.trapezoid(density, line, axis=1), 1, rtol=1e-6)
    assert_allclose(np.log(density.max(axis=1)), kernel.log_peak(kernels), atol=1e-4)


def test_marginals_are_integrals(family_class):
    """The other feature integrated out on a fine grid."""
    kernel = family_class(np.full(2, 1e-9))
    kernels = some_kernels(kernel, M, 2)
    line = np.linspace(-25, 25, 5001)
    at = np.array([-1.3, 0.2, 2.0])
    for kept in (0, 1):
        other, marginal = kernel.marginal(kernels, [kept])
        found = np.exp(log_density(other, marginal, at[:, None]))
        for i, value in enumerate(at):
            rows = np.empty((len(line), 2))
            rows[:, kept], rows[:, 1 - kept] = value, line
            density = np.exp(log_density(kernel, kernels, rows))
            assert_allclose(found[:, i], np.trapezoid(density, line, axis=1), rtol=1e-6)


def test_estimates_are_the_most_likely_kernels(kernel, kernels):
    rng = np.random.default_rng(1)
    x = some_rows()
    share = rng.dirichlet(np.ones(M), size=80).T

    def value(some):
        return (share * log_density(kernel, some, x)).sum()

    best = kernel.estimate(*moments_of(kernel, kernels, x, share))
    top = value(best)
    vector = kernel.coordinates(best)
    for _ in range(30):
        assert value(kernel.at(vector + 0.01 * rng.normal(size=vector.shape), best)) <= top


def test_coordinates_there_and_back_and_everywhere_valid(kernel, kernels):
    vector = kernel.coordinates(kernels)
    assert vector.ndim == 1
    for name, value in vars(kernel.at(vector, kernels)).items():
        assert_allclose(value, getattr(kernels, name), rtol=1e-10, atol=1e-12)
    anywhere = kernel.at(vector + np.random.default_rng(0).normal(size=vector.shape), kernels)
    assert np.isfinite(log_density(kernel, anywhere, some_rows())).all()


@pytest.mark.parametrize("signed", [True, False])
def test_pullbacks_are_gradients(kernel, kernels, signed):
    """By central differences of sum s log p(x|j); s of either sign, or of one."""
    rng = np.random.default_rng(2)
    x = some_rows()
    share = rng.normal(size=(M, 80)) if signed else rng.uniform(size=(M, 80))

    def value(vector):
        return (share * log_density(kernel, kernel.at(vector, kernels), x)).sum()

    found = kernel.pullback(kernels, *moments_of(kernel, kernels, x, share))
    vector = kernel.coordinates(kernels)
    step = 1e-5
    slope = [
        (value(vector + step * e) - value(vector - step * e)) / (2 * step)
        for e in np.eye(len(vector))
    ]
    assert_allclose(found, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_samples_have_the_moments_of_their_kernel(family_class):
    kernel = family_class(np.full(2, 1e-9))
    kernels = some_kernels(kernel, 2, 2)
    rng = np.random.default_rng(0)
    rows = [kernel.sample(kernels, j, 40_000, rng) for j in range(2)]
    x = np.concatenate(rows)
    share = np.repeat(np.eye(2), 40_000, axis=1)
    again = kernel.estimate(*moments_of(kernel, kernels, x, share))
    assert_allclose(kernel.coordinates(again), kernel.coordinates(kernels), atol=0.03)


def test_free_numbers_are_no_more_than_coordinates(kernel, kernels):
    assert kernel.n_parameters(M, D) <= len(kernel.coordinates(kernels))
    assert kernel.n_parameters(M + 1, D) > kernel.n_parameters(M, D)


def test_kernels_are_taken_and_moved(kernel, kernels):
    x = some_rows()
    order = np.array([2, 0, 3, 1])
    density = log_density(kernel, kernels, x)
    taken = kernel.take(kernels, order)
    assert_allclose(log_density(kernel, taken, x), density[order], rtol=1e-12)
    moved = kernel.move(kernels, {1: x[0]})
    after = log_density(kernel, moved, x)
    assert_allclose(after[[0, 2, 3]], density[[0, 2, 3]], rtol=1e-12)
    assert np.argmax(after[1]) == 0  # no row is nearer to it than the one it was moved to
    assert_allclose(log_density(kernel, kernels, x), density)  # nothing was written over


def test_vanished_kernels_keep_their_place(kernel, kernels):
    rng = np.random.default_rng(1)
    share = rng.uniform(size=(M, 80))
    share[1] = 0
    moments, origin = moments_of(kernel, kernels, some_rows(), share)
    held = kernel.with_pseudocounts(moments, origin, np.arange(M) == 1, kernels, 1e-12)
    better = kernel.estimate(held, origin)
    one, other = (kernel.take(k, np.array([1])) for k in (better, kernels))
    at = some_rows(5)
    # in a family that shares a shape among kernels only the place is kept
    if len(getattr(kernels, "covariance", range(M))) == M:
        assert_allclose(
            log_density(kernel, one, at), log_density(kernel, other, at), rtol=1e-6, atol=1e-6
        )
    assert np.isfinite(kernel.coordinates(better)).all()


def test_frames_map_there_and_back(kernel, kernels):
    frame = Frame(
        np.array([10.0, -1.0, 0.5]),
        np.array([4.0, 0.5, 2.0]) if kernel.equivariant else np.full(D, 4.0),
    )
    back = kernel.out_of(kernel.into(kernels, frame), frame)
    assert_allclose(kernel.coordinates(back), kernel.coordinates(kernels), rtol=1e-10, atol=1e-10)
