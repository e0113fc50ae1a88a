"""Every kernel family, and two made-up ones: what networks, penalties and starts may rely on.

A family is tested as soon as it stands in FAMILIES: nothing here knows one by name.
"""

import array_api_strict as strict
import numpy as np
import pytest
from made_up_families import MADE_UP, some_kernels

from kernelpool.arrays import match_array
from kernelpool.em import Outcome, Stop, em
from kernelpool.kernels import FAMILIES
from kernelpool.networks.shared_kernel import Params, SharedKernel
from kernelpool.rows import ArrayRows, Block, Frame
from kernelpool.squarem import Squarem

EPS = 2.2e-16
M, D = 4, 3


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


def moments_of(kernel, kernels, x, share):
    """The sums of rows with weights (M, n), as a network takes them, and the points they are about."""
    natural_params = kernel.natural_params(kernels, EPS)
    sums = kernel.sums(kernel.features(x), x, share)
    return kernel.moments(
        share.sum(axis=1)[:, None], sums, natural_params, x, share
    ), kernel.moment_origin(natural_params)


def some_rows(n=80):
    return np.random.default_rng(5).normal(size=(n, D))


def test_log_densities_are_linear_in_the_features(kernel, kernels):
    x = some_rows()
    natural_params = kernel.natural_params(kernels, EPS)
    assert kernel.features(x).shape == (kernel.n_features(D), len(x))
    expected = (
        natural_params.weight @ kernel.features(x)
        + natural_params.offset[:, None]
        + kernel.common(natural_params, x)
    )
    kernel.correct(expected, natural_params, x, natural_params.offset)
    np.testing.assert_allclose(
        kernel.log_density(natural_params, x), expected, rtol=1e-10, atol=1e-10
    )


def test_densities_integrate_to_one(family_class):
    kernel = family_class(np.full(1, 1e-9))
    kernels = some_kernels(kernel, M, 1)
    line = np.linspace(-30, 30, 20_001)
    density = np.exp(kernel.log_density(kernel.natural_params(kernels, EPS), line[:, None]))
    np.testing.assert_allclose(np.trapezoid(density, line, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.log(density.max(axis=1)), kernel.log_peak(kernels), atol=1e-4)


def test_marginals_are_integrals(family_class):
    """The other feature integrated out on a fine grid."""
    kernel = family_class(np.full(2, 1e-9))
    kernels = some_kernels(kernel, M, 2)
    line, at = np.linspace(-25, 25, 5001), np.array([-1.3, 0.2, 2.0])
    for kept in (0, 1):
        other, marginal = kernel.marginal(kernels, [kept])
        found = np.exp(other.log_density(other.natural_params(marginal, EPS), at[:, None]))
        for i, value in enumerate(at):
            rows = np.empty((len(line), 2))
            rows[:, kept], rows[:, 1 - kept] = value, line
            density = np.exp(kernel.log_density(kernel.natural_params(kernels, EPS), rows))
            np.testing.assert_allclose(found[:, i], np.trapezoid(density, line, axis=1), rtol=1e-6)


def test_a_marginal_over_all_columns_is_the_kernel_itself(kernel, kernels):
    same, marginal = kernel.marginal(kernels, list(range(D)))
    np.testing.assert_array_equal(same.coordinates(marginal), kernel.coordinates(kernels))


def test_estimates_are_the_most_likely_kernels(kernel, kernels):
    rng = np.random.default_rng(1)
    x, share = some_rows(), rng.dirichlet(np.ones(M), size=80).T

    def value(some):
        return (share * kernel.log_density(kernel.natural_params(some, EPS), x)).sum()

    best = kernel.estimate(*moments_of(kernel, kernels, x, share))
    top, vector = value(best), kernel.coordinates(best)
    for _ in range(30):
        assert value(kernel.at(vector + 0.01 * rng.normal(size=vector.shape), best)) <= top


def test_moments_add_up_and_come_apart(kernel, kernels):
    rng = np.random.default_rng(1)
    x, share = some_rows(), rng.normal(size=(M, 80))  # of either sign
    (whole, _), (a, _), (b, _) = (
        moments_of(kernel, kernels, x[s], share[:, s])
        for s in (slice(80), slice(30), slice(30, 80))
    )
    for name, value in vars(a + b).items():
        np.testing.assert_allclose(value, getattr(whole, name), rtol=1e-10, atol=1e-12)


def test_coordinates_there_and_back_and_everywhere_valid(kernel, kernels):
    vector = kernel.coordinates(kernels)
    assert vector.ndim == 1
    for name, value in vars(kernel.at(vector, kernels)).items():
        np.testing.assert_allclose(value, getattr(kernels, name), rtol=1e-10, atol=1e-12)
    anywhere = kernel.at(vector + np.random.default_rng(0).normal(size=vector.shape), kernels)
    assert np.isfinite(kernel.log_density(kernel.natural_params(anywhere, EPS), some_rows())).all()


@pytest.mark.parametrize("signed", [True, False])
def test_pullbacks_are_gradients(kernel, kernels, signed):
    """By central differences of sum s log p(x|j); s of either sign, or of one."""
    rng = np.random.default_rng(2)
    x, share = some_rows(), rng.normal(size=(M, 80)) if signed else rng.uniform(size=(M, 80))

    def value(vector):
        return (
            share * kernel.log_density(kernel.natural_params(kernel.at(vector, kernels), EPS), x)
        ).sum()

    found = kernel.pullback(kernels, *moments_of(kernel, kernels, x, share))
    vector, step = kernel.coordinates(kernels), 1e-5
    slope = [
        (value(vector + step * e) - value(vector - step * e)) / (2 * step)
        for e in np.eye(len(vector))
    ]
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_samples_have_the_moments_of_their_kernel(family_class):
    kernel = family_class(np.full(2, 1e-9))
    kernels = some_kernels(kernel, 2, 2)
    rng = np.random.default_rng(0)
    rows = [kernel.sample(kernels, j, 40_000, rng) for j in range(2)]
    x = np.concatenate(rows)
    share = np.repeat(np.eye(2), 40_000, axis=1)
    again = kernel.estimate(*moments_of(kernel, kernels, x, share))
    np.testing.assert_allclose(kernel.coordinates(again), kernel.coordinates(kernels), atol=0.03)


def test_free_numbers_are_no_more_than_coordinates(kernel, kernels):
    assert kernel.n_parameters(M, D) <= len(kernel.coordinates(kernels))
    assert kernel.n_parameters(M + 1, D) > kernel.n_parameters(M, D)


def test_kernels_are_taken_and_moved(kernel, kernels):
    x, order = some_rows(), np.array([2, 0, 3, 1])
    density = kernel.log_density(kernel.natural_params(kernels, EPS), x)
    taken = kernel.take(kernels, order)
    np.testing.assert_allclose(
        kernel.log_density(kernel.natural_params(taken, EPS), x), density[order], rtol=1e-12
    )
    for reset in (False, True):
        moved = kernel.move(kernels, {1: x[0]}, reset=reset)
        after = kernel.log_density(kernel.natural_params(moved, EPS), x)
        np.testing.assert_allclose(after[[0, 2, 3]], density[[0, 2, 3]], rtol=1e-12)
        assert np.argmax(after[1]) == 0  # no row is nearer to it than the one it was moved to
    np.testing.assert_allclose(
        kernel.log_density(kernel.natural_params(kernels, EPS), x), density
    )  # nothing was written over


def test_vanished_kernels_keep_their_place(kernel, kernels):
    rng = np.random.default_rng(1)
    share = rng.uniform(size=(M, 80))
    share[1] = 0
    moments, origin = moments_of(kernel, kernels, some_rows(), share)
    held = kernel.with_pseudocounts(moments, origin, np.arange(M) == 1, kernels, 1e-12)
    better = kernel.estimate(held, origin)
    one, other = (
        kernel.natural_params(kernel.take(k, np.array([1])), EPS) for k in (better, kernels)
    )
    at = some_rows(5)
    # in a family that shares a shape among kernels only the place is kept
    if len(getattr(kernels, "covariance", range(M))) == M:
        np.testing.assert_allclose(
            kernel.log_density(one, at), kernel.log_density(other, at), rtol=1e-6, atol=1e-6
        )
    assert np.isfinite(kernel.coordinates(better)).all()


def test_frames_map_there_and_back(kernel, kernels):
    frame = Frame(
        np.array([10.0, -1.0, 0.5]),
        np.array([4.0, 0.5, 2.0]) if kernel.equivariant else np.full(D, 4.0),
    )
    back = kernel.out_of(kernel.into(kernels, frame), frame)
    np.testing.assert_allclose(
        kernel.coordinates(back), kernel.coordinates(kernels), rtol=1e-10, atol=1e-10
    )


def test_libraries_agree(family_class, kernel, kernels):
    x, share = some_rows(), np.random.default_rng(1).normal(size=(M, 80))
    there = family_class(strict.asarray(np.full(D, 1e-9)))
    like = strict.asarray(np.zeros(1))
    moved, x_there, share_there = (match_array(a, like=like) for a in (kernels, x, share))
    density = there.log_density(there.natural_params(moved, EPS), x_there)
    np.testing.assert_allclose(
        np.asarray(density), kernel.log_density(kernel.natural_params(kernels, EPS), x), rtol=1e-9
    )
    natural_params = there.natural_params(moved, EPS)
    sums = there.sums(there.features(x_there), x_there, share_there)
    mass = strict.sum(share_there, axis=1)[:, None]
    moments = there.moments(mass, sums, natural_params, x_there, share_there)
    found = there.pullback(moved, moments, there.moment_origin(natural_params))
    expected = kernel.pullback(kernels, *moments_of(kernel, kernels, x, share))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, atol=1e-8)
    other, marginal = there.marginal(moved, [2, 0])
    same, expected = kernel.marginal(kernels, [2, 0])
    np.testing.assert_allclose(
        np.asarray(other.coordinates(marginal)), same.coordinates(expected), rtol=1e-10
    )


def test_features_written_into_a_block_that_keeps_them_are_the_same(kernel):
    x = some_rows()
    plain, keeping = Block(x), Block(x, keep_width=100)
    for _ in range(2):
        for block in (plain, keeping):
            out = np.full((kernel.n_features(D), len(x)), np.nan)
            kernel.write_features(out, block)
            np.testing.assert_array_equal(out, kernel.features(x))


def test_a_network_of_them_is_trained_and_predicts(kernel, kernels):
    """EM, accelerated, from a start of the family: the objective never falls, and classes far apart are told apart."""
    rng = np.random.default_rng(3)
    y = np.arange(300) % 2
    x = rng.normal(size=(300, D)) + 4 * y[:, None]
    rows = ArrayRows(x, y, frame=Frame(np.zeros(D), np.ones(D)))
    network = SharedKernel(kernel, np.ones((M, 2)))
    start = Params(
        kernel.move(kernels, {0: x[0], 1: x[1]}), np.full((M, 2), 1 / M), np.full(2, 0.5)
    )
    fit = em(
        lambda params: network.sweep(rows, params),
        start,
        Stop(100, 1e-8),
        accelerator=Squarem(network.coordinates, network.at),
    )
    assert fit.outcome in (Outcome.CONVERGED, Outcome.MAX_ITER)
    assert (np.diff(fit.history) >= -1e-10).all()
    natural_params = kernel.natural_params(fit.params.kernels, EPS)
    log_density = rows.each(network.log_density, natural_params, fit.params.mixing)
    assert (log_density.argmax(axis=1) == y).mean() > 0.97
