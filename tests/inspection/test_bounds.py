"""Bounds: the papers' formulas, scipy's binomial distribution, and simulated certificates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from kernelpool import ParzenClassifier, bounds
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.bounds import log_networks

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


@settings(max_examples=40)
@given(st.integers(1, 10**5), st.floats(0, 1), st.floats(1e-8, 0.9), st.integers(1, 1000))
def test_the_binomial_bounds_are_clopper_and_pearsons(n, share, alpha, n_tried):
    k = round(share * n)
    one = binomtest(k, n, alternative="less")
    two = binomtest(k, n)
    upper = one.proportion_ci(1 - alpha / n_tried, "exact").high
    assert bounds.binomial_upper(k, n, alpha, n_tried=n_tried) == pytest.approx(upper, rel=1e-6)
    interval = tuple(two.proportion_ci(1 - alpha, "exact"))
    assert bounds.binomial_interval(k, n, alpha) == pytest.approx(interval, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("n", "k", "choices"), [(5000, 30, 256), (100, 0, 1)])
def test_the_compression_bound_is_binomial_at_the_price_of_every_choice(n, k, choices):
    bound = bounds.compression_bound(n_rows=n, n_kept=k, n_errors=n // 25, n_choices=choices)
    log_alpha = math.log(0.05) - math.log(n * choices) - math.log(math.comb(n, k))
    assert binom.logcdf(n // 25, n - k, bound) == pytest.approx(log_alpha, rel=1e-6)


# -- coverage --------------------------------------------------------------------------------------


def test_the_paired_bound_fails_no_more_often_than_it_says():
    counts = np.random.default_rng(2).multinomial(300, [0.054, 0.006, 0.94], size=500)
    found = [bounds.paired_difference(*pair, 300) for pair in counts[:, :2].tolist()]
    assert (np.array(found) < 0.048).sum() <= 25


# -- sentences -------------------------------------------------------------------------------------


class Threshold:
    """x > t."""

    def __init__(self, t):
        self.t = t

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.t).astype(int)


def test_a_certificate_prints_as_a_sentence():
    X = np.random.default_rng(0).uniform(size=(1000, 1))
    y = (X[:, 0] > 0.5).astype(int)
    network = ParzenClassifier("gaussian", 0.001, standardize=False).fit(X[:12], y[:12])
    certificate = bounds.certify(network, X[:12], y[:12])
    assert str(certificate).startswith("12 kernels; with 95 % confidence at most 22.1 % of")
    certificate = bounds.certify(Threshold(0.5), X, y)
    assert certificate.error == pytest.approx(1 - 0.05 ** (1 / 1000))
    text = "with 95 % confidence at most 0.3 % of new rows are misclassified."
    assert (certificate.n_errors, str(certificate)) == (0, text)


def test_a_certificate_says_when_the_test_rows_are_too_few():
    text = str(bounds.certify(Threshold(0.5), [[0.1], [0.9], [0.2]], [0, 1, 0]))
    assert "3 test rows are too few to certify anything with 95 % confidence: 0 were" in text
    assert "up to 63.2 % of new rows might be" in text  # 1 - 0.05 ** (1 / 3)
    assert "About 12 rows would do" in text  # 1 - 0.05 ** (1 / 12) = 22 % < 33 %; at 6 rows 39 %
    wrong = bounds.certify(Threshold(2.0), [[0.6], [0.9], [0.2]], [1, 1, 0])
    assert not wrong.certifies
    assert "More rows would not help" in str(wrong)


SIZE = {"n_kernels": 10, "n_kept": 1, "error": 0.1}
CERTIFIED = {"n_rows": 9, "n_kernels": 9, "n_kept": 1}
FITTED = {"classifier": Threshold(0.5)}
COMPRESSED = {"n_rows": 10, "n_kept": 1, "n_errors": 0}


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (
            "test_size",
            SIZE | {"n_kept": 11},
            r"n_kept must lie in \[1, n_kernels\], here 10; got 11",
        ),
        ("test_size", SIZE | {"n_kernels": 0}, "n_kernels must be at least 1; got 0"),
        (
            "test_size",
            SIZE | {"error": 1.0},
            "error must lie between 0 and 1, both excluded; got 1.0",
        ),
        ("test_size", SIZE | {"slack": 0}, r"slack must lie in \(0, 1\]; got 0"),
        ("test_size", SIZE | {"radius": "free"}, "radius must be 'fixed' or 'chosen'; got 'free'"),
        ("certified_error", CERTIFIED | {"n_rows": 0}, "n_rows must be positive; got 0"),
        (
            "certified_error",
            CERTIFIED | {"test_error": 2},
            r"test_error must lie in \[0, 1\]; got 2",
        ),
        ("certified_error", CERTIFIED | {"slack": None, "radius": "chosen"}, "slack=None needs"),
        (
            "binomial_upper",
            {"n_errors": 5, "n_rows": 4},
            r"n_errors must lie in \[0, n_rows\], here 4",
        ),
        (
            "binomial_upper",
            {"n_errors": 1, "n_rows": 4, "n_tried": 0},
            "n_tried must be at least 1",
        ),
        ("compression_bound", COMPRESSED | {"n_kept": 10}, r"n_kept must lie in \[0, n_rows - 1\]"),
        ("compression_bound", COMPRESSED | {"n_choices": 0}, "n_choices must be at least 1; got 0"),
        (
            "paired_difference",
            {"n_worse": 5, "n_better": 6, "n_rows": 10},
            "n_worse [+] n_better must not exceed n_rows=10; got 11",
        ),
        (
            "certify",
            FITTED | {"X_test": np.zeros((0, 1)), "y_test": []},
            "The test set has no rows",
        ),
        ("certify_by_compression", FITTED | {"X": [[0.1]], "y": [0]}, "needs a fitted Reduced"),
        ("test_size_for_capacity", {"capacity": 0.5, "error": 0.1}, "capacity must be at least 1"),
    ],
)
def test_bad_input_is_explained(function, arguments, message):
    with pytest.raises(KernelpoolError, match=message):
        getattr(bounds, function)(**arguments)
