"""Bounds of the paper: the printed formulas, and networks certified by compression."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone

from kernelpool import ParzenClassifier, ReducedParzenClassifier, bounds
from kernelpool.datasets import make_clouds
from kernelpool.errors import KernelpoolError
from kernelpool.parzen.bounds import log_networks

shares = st.floats(1e-4, 0.99)
sizes = st.integers(2, 100_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@pytest.mark.parametrize(
    ("n", "k", "error", "alpha", "slack", "fixed", "chosen"),
    [  # Corollary 1 and Theorem 3, worked out from the printed formulas on their own
        (1000, 20, 0.1, 0.05, 0.5, 8098.9, 1_207_957),
        (100, 10, 0.05, 0.01, 1.0, 1505.241, 188_160.45),
        (2, 1, 0.5, 0.5, 1.0, 9.5452, 541.807),
    ],
)
def test_the_papers_test_set_sizes(n, k, error, alpha, slack, fixed, chosen):
    given = {"error": error, "alpha": alpha, "slack": slack}
    kernels = {"n_kernels": n, "n_kept": k}
    assert bounds.test_size(**kernels, **given) == pytest.approx(fixed, rel=1e-4)
    assert bounds.test_size(**kernels, **given, radius="chosen") == pytest.approx(chosen, rel=1e-4)
    size = bounds.test_size_for_capacity(bounds.capacity(n, k), **given)
    assert size == pytest.approx(chosen, rel=1e-4)


def test_theorem_2_is_the_greater_of_two_terms():
    scale = 0.4**2 * 0.2
    for capacity, alpha, expected in (
        (7.5, 0.01, 16 * 7.5 / scale * math.log(16 / scale)),
        (1, 1e-250, 8 / scale * math.log(8e250)),
    ):
        size = bounds.test_size_for_capacity(capacity, error=0.2, alpha=alpha, slack=0.4)
        assert size == pytest.approx(expected)


@given(sizes, shares, shares, st.floats(0.01, 1), st.sampled_from(["fixed", "chosen"]))
def test_the_certified_error_is_the_inverse_of_the_test_size(size, error, alpha, slack, radius):
    given_ = dict(zip(("n_kernels", "n_kept"), size, strict=True), alpha=alpha, slack=slack)
    n_rows = bounds.test_size(**given_, error=error, radius=radius)
    found = bounds.certified_error(n_rows=n_rows, **given_, radius=radius)
    assert found == pytest.approx(error, rel=1e-9)


@given(sizes, shares, st.floats(0, 0.9), st.integers(1, 10**7))
def test_theorem_1_as_it_stands_is_where_its_inequality_is_tight(size, alpha, test_error, n_rows):
    kernels = dict(zip(("n_kernels", "n_kept"), size, strict=True))
    given_ = {"alpha": alpha, "slack": None, "test_error": test_error}
    error = bounds.certified_error(n_rows=n_rows, **kernels, **given_)
    if error < 1:
        log_alpha = log_networks(*size) - (error - test_error) ** 2 / error * n_rows / 2
        assert log_alpha == pytest.approx(math.log(alpha), rel=1e-6, abs=1e-6)


def test_a_test_error_beyond_the_slack_is_not_certified_away():
    given = {"n_rows": 10**6, "n_kernels": 100, "n_kept": 5, "slack": 0.5}
    assert bounds.certified_error(**given) < 0.01
    assert bounds.certified_error(**given, test_error=0.2) == pytest.approx(0.4)


@pytest.mark.parametrize(("n", "k", "choices"), [(5000, 30, 256), (100, 0, 1)])
def test_the_compression_bound_is_binomial_at_the_price_of_every_choice(n, k, choices):
    bound = bounds.compression_bound(n_rows=n, n_kept=k, n_errors=n // 25, n_choices=choices)
    log_alpha = math.log(0.05) - math.log(n * choices) - math.log(math.comb(n, k))
    assert binom.logcdf(n // 25, n - k, bound) == pytest.approx(log_alpha, rel=1e-6)


# -- networks certified without test rows ----------------------------------------------------------


@pytest.fixture(scope="module")
def clouds():
    return make_clouds(2000, random_state=0)


def test_a_reduced_network_is_certified_without_test_rows(clouds):
    reduced = ReducedParzenClassifier(40, standardize=False, random_state=0).fit(*clouds)
    certificate = bounds.certify_by_compression(reduced, *clouds)
    assert certificate.n_kernels == 40
    assert certificate.n_rows == 1960
    assert certificate.error > 1 - reduced.score(*make_clouds(4000, random_state=1))
    assert certificate.certifies
    wrong = reduced.predict(clouds[0]) != clouds[1]
    wrong[reduced.kept_indices_] = False
    assert certificate.n_errors == wrong.sum()
    assert certificate.error == bounds.compression_bound(
        n_rows=2000, n_kept=40, n_errors=wrong.sum(), n_choices=256
    )


def test_what_depends_on_more_than_the_kept_rows_is_not_certified_by_compression(clouds):
    X = clouds[0][:300]
    y = clouds[1][:300]
    paper = ReducedParzenClassifier(10, standardize=False, random_state=0)
    for network in (
        ReducedParzenClassifier(10, random_state=0),
        clone(paper).set_params(class_prior=[0.5, 0.5]),
    ):
        network.fit(X, y)
        with pytest.raises(KernelpoolError, match="depends on more than its kept rows"):
            bounds.certify_by_compression(network, X, y)
    paper.fit(X, y)
    with pytest.raises(KernelpoolError, match="must be the 300 rows"):
        bounds.certify_by_compression(paper, X[:200], y[:200])
    with pytest.raises(KernelpoolError, match="needs a fitted ReducedParzenClassifier"):
        bounds.certify_by_compression(ParzenClassifier().fit(X, y), X, y)


# -- bad input -------------------------------------------------------------------------------------

SIZE = {"n_kernels": 10, "n_kept": 1, "error": 0.1}
CERTIFIED = {"n_rows": 9, "n_kernels": 9, "n_kept": 1}
COMPRESSED = {"n_rows": 10, "n_kept": 1, "n_errors": 0}


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (bounds.test_size, SIZE | {"n_kept": 11}, r"in \[1, n_kernels\], here 10; got 11"),
        (bounds.test_size, SIZE | {"n_kernels": 0}, "n_kernels must be at least 1; got 0"),
        (bounds.test_size, SIZE | {"error": 1.0}, "error must lie between 0 and 1, .* got 1.0"),
        (bounds.test_size, SIZE | {"slack": 0}, r"slack must lie in \(0, 1\]; got 0"),
        (bounds.test_size, SIZE | {"radius": "free"}, "'fixed' or 'chosen'; got 'free'"),
        (bounds.certified_error, CERTIFIED | {"n_rows": 0}, "n_rows must be positive; got 0"),
        (bounds.certified_error, CERTIFIED | {"test_error": 2}, r"lie in \[0, 1\]; got 2"),
        (
            bounds.certified_error,
            CERTIFIED | {"slack": None, "radius": "chosen"},
            "slack=None needs radius='fixed'",
        ),
        (bounds.compression_bound, COMPRESSED | {"n_kept": 10}, r"lie in \[0, n_rows - 1\]"),
        (bounds.compression_bound, COMPRESSED | {"n_choices": 0}, "at least 1; got 0"),
        (
            bounds.test_size_for_capacity,
            {"capacity": 0.5, "error": 0.1},
            "capacity must be at least 1",
        ),
    ],
)
def test_bad_input_is_explained(function, arguments, message):
    with pytest.raises(KernelpoolError, match=message):
        function(**arguments)
