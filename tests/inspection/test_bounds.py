"""Bounds: the papers' formulas, scipy's binomial distribution, and simulated certificates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest
from sklearn.base import BaseEstimator, ClassifierMixin

from kernelpool import ParzenClassifier, bounds
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.bounds import _binomial_upper, log_networks

shares = st.floats(1e-4, 0.99)
sizes = st.integers(2, 100_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


# N, K, error, alpha, slack, then Corollary 1 and Theorem 3, worked out from the printed formulas on their own
POINTS = [
    (1000, 20, 0.1, 0.05, 0.5, 8098.9, 1_207_957),
    (1000, 1, 0.1, 0.05, 0.5, 872.279, 94_355.87),
    (100, 10, 0.05, 0.01, 1.0, 1505.241, 188_160.45),
    (2, 1, 0.5, 0.5, 1.0, 9.5452, 541.807),
    (5000, 100, 0.1, 0.05, 0.5, 39535.84, 5_916_008.4),
]


@pytest.mark.parametrize(("n", "k", "error", "alpha", "slack", "fixed", "chosen"), POINTS)
def test_the_papers_test_set_sizes(n, k, error, alpha, slack, fixed, chosen):
    given = {"n_kernels": n, "n_kept": k, "error": error, "alpha": alpha, "slack": slack}
    assert bounds.test_size(**given) == pytest.approx(fixed, rel=1e-4)
    assert bounds.test_size(**given, radius="chosen") == pytest.approx(chosen, rel=1e-4)


def test_theorem_3_is_its_first_term_where_alpha_is_tiny():
    size = bounds.test_size(
        n_kernels=2, n_kept=1, error=0.5, alpha=1e-250, slack=1.0, radius="chosen"
    )
    assert size == pytest.approx(8 / 0.5 * math.log(8 / 1e-250))


def test_theorem_2_for_any_capacity():
    given = {"error": 0.2, "alpha": 0.01, "slack": 0.4}
    scale = 0.4**2 * 0.2
    assert bounds.test_size_for_capacity(7.5, **given) == pytest.approx(
        16 * 7.5 / scale * math.log(16 / scale)
    )
    assert bounds.test_size_for_capacity(1, **{**given, "alpha": 1e-250}) == pytest.approx(
        8 / scale * math.log(8e250)
    )
    of_kernels = bounds.test_size_for_capacity(
        bounds.capacity(1000, 20), error=0.1, alpha=0.05, slack=0.5
    )
    assert of_kernels == pytest.approx(1_207_957, rel=1e-6)  # Theorem 3
    with pytest.raises(KernelpoolError, match=r"capacity must be at least 1; got 0\.5\."):
        bounds.test_size_for_capacity(0.5, error=0.1)


@given(sizes, shares, shares, st.floats(0.01, 1), st.sampled_from(["fixed", "chosen"]))
def test_the_certified_error_is_the_inverse_of_the_test_size(size, error, alpha, slack, radius):
    given_ = {
        "n_kernels": size[0],
        "n_kept": size[1],
        "alpha": alpha,
        "slack": slack,
        "radius": radius,
    }
    n_rows = bounds.test_size(**given_, error=error)
    assert bounds.certified_error(n_rows=n_rows, **given_) == pytest.approx(error, rel=1e-9)


@given(sizes)
def test_the_number_of_networks_is_bounded_from_above(size):
    n, k = size
    exact = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    assert exact <= log_networks(n, k) * (1 + 1e-12) + 1e-9
    # the proof of Theorem 3 demands m K (eN/K)^K <= 2^m at m = capacity
    m = bounds.capacity(n, k)
    assert math.log2(m * k) + k * math.log2(math.e * n / k) <= m * (1 + 1e-12)


@given(sizes, shares, st.floats(0, 0.9), st.integers(1, 10**7))
def test_theorem_1_as_it_stands_is_where_its_inequality_is_tight(size, alpha, test_error, n_rows):
    error = bounds.certified_error(
        n_rows=n_rows,
        n_kernels=size[0],
        n_kept=size[1],
        alpha=alpha,
        slack=None,
        test_error=test_error,
    )
    if error < 1:
        chi = (error - test_error) / math.sqrt(error)
        assert log_networks(*size) - chi**2 * n_rows / 2 == pytest.approx(
            math.log(alpha), rel=1e-6, abs=1e-6
        )


def test_a_test_error_beyond_the_slack_is_not_certified_away():
    given = {"n_rows": 10**6, "n_kernels": 100, "n_kept": 5, "slack": 0.5}
    assert bounds.certified_error(**given) < 0.01
    assert bounds.certified_error(**given, test_error=0.2) == pytest.approx(0.4)


@settings(max_examples=50)
@given(st.integers(1, 10**6), st.floats(0, 0.999), st.floats(-600, -0.7))
def test_the_binomial_tail_is_scipys(n, share, log_alpha):
    k = min(round(share * n), n - 1)
    bound = _binomial_upper(k, n, log_alpha)
    if bound < 1:
        slack = 1e-12 * n / (1 - bound)  # of a bound that is known to fifteen digits
        assert binom.logcdf(k, n, bound) == pytest.approx(log_alpha, rel=1e-7, abs=1e-9 + slack)


@given(st.integers(1, 10**5), st.floats(0, 1), st.floats(1e-8, 0.9), st.integers(1, 1000))
def test_the_binomial_bounds_are_clopper_and_pearsons(n, share, alpha, n_tried):
    k = round(share * n)
    upper = beta.ppf(1 - alpha / n_tried, k + 1, n - k) if k < n else 1.0
    assert bounds.binomial_upper(k, n, alpha, n_tried=n_tried) == pytest.approx(upper, rel=1e-6)
    expected = binomtest(k, n).proportion_ci(1 - alpha, "exact")
    assert bounds.binomial_interval(k, n, alpha) == pytest.approx(
        (expected.low, expected.high), rel=1e-6, abs=1e-12
    )


def test_the_compression_bound_solves_its_own_equation():
    n, k, errors, alpha, choices = 5000, 30, 200, 0.05, 256
    bound = bounds.compression_bound(
        n_rows=n, n_kept=k, n_errors=errors, alpha=alpha, n_choices=choices
    )
    log_price = math.log(n) + math.log(math.comb(n, k)) + math.log(choices)
    assert binom.logcdf(errors, n - k, bound) == pytest.approx(
        math.log(alpha) - log_price, rel=1e-6
    )


def test_the_compression_bound_without_kept_rows_is_binomial_but_for_the_price_of_the_size():
    assert bounds.compression_bound(n_rows=100, n_kept=0, n_errors=3, alpha=0.05) == pytest.approx(
        beta.ppf(1 - 0.05 / 100, 4, 97)
    )


# -- coverage, exactly -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "alpha"), [(1, 0.05), (7, 0.2), (100, 0.01)])
def test_no_true_error_makes_certificates_fail_more_often_than_they_say(n_rows, alpha):
    """The probability of failure, summed over every outcome of the test set, for true errors where it is greatest.

    It jumps where the true error passes one of the bounds that the test may end with, and falls from there to the next.
    """
    n_errors = np.arange(n_rows + 1)
    bound = np.array([bounds.binomial_upper(int(k), n_rows, alpha) for k in n_errors])
    worst = np.nextafter(bound[:-1], 1)
    true = np.concatenate([worst, np.linspace(0.001, 0.999, 99)])
    fails = np.array([binom.pmf(n_errors, n_rows, p)[bound < p].sum() for p in true])
    assert fails.max() <= alpha * (1 + 1e-6)
    assert fails[: len(worst)] == pytest.approx(
        np.full(len(worst), alpha), rel=1e-6
    )  # nothing is given away either


# -- coverage, by simulation -------------------------------------------------------------------------------------------


DRAWS = 500
ALLOWED = int(binom.ppf(0.999, DRAWS, 0.05))
"""Failures of a certificate that fails in just 5 % of the draws: no more than these in 999 simulations of 1,000."""


class Threshold(ClassifierMixin, BaseEstimator):
    """x > t on the unit interval, where the class is x > 1/2 but for a noise of 10 %: its true error is known."""

    def __init__(self, t):
        self.t = t

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.t).astype(int)

    @property
    def error(self):
        return 0.1 + 0.8 * abs(self.t - 0.5)


def draw(n, rng):
    X = rng.uniform(size=(n, 1))
    return X, ((X[:, 0] > 0.5) ^ (rng.uniform(size=n) < 0.1)).astype(int)


def test_certificates_fail_no_more_often_than_they_say():
    rng, network = np.random.default_rng(0), Threshold(0.55)
    fails = sum(bounds.certify(network, *draw(60, rng)).error < network.error for _ in range(DRAWS))
    assert 0 < fails <= ALLOWED


def test_the_best_of_many_is_certified_only_if_their_number_is_given():
    n_errors = np.random.default_rng(1).binomial(200, 0.1, size=(DRAWS, 50)).min(axis=1)
    levels, draws = np.unique(n_errors, return_counts=True)
    one, fifty = (
        sum(
            n * (bounds.binomial_upper(int(k), 200, n_tried=n_tried) < 0.1)
            for k, n in zip(levels, draws, strict=True)
        )
        for n_tried in (1, 50)
    )
    assert one > DRAWS / 2
    assert fifty <= ALLOWED


def test_the_paired_bound_fails_no_more_often_than_it_says():
    rng, small, full = np.random.default_rng(2), Threshold(0.56), Threshold(0.5)
    fails = 0
    for _ in range(DRAWS):
        X, y = draw(300, rng)
        wrong, other = (network.predict(X) != y for network in (small, full))
        counts = int((wrong & ~other).sum()), int((other & ~wrong).sum())
        fails += bounds.paired_difference(*counts, 300) < small.error - full.error
    assert fails <= 0.05 * DRAWS


def test_the_papers_certificate_holds_for_the_network_chosen_on_the_test_rows():
    rng = np.random.default_rng(3)
    fails = 0
    for _ in range(DRAWS):
        X, y = draw(200, rng)
        networks = [
            Threshold(t) for t in rng.uniform(0.3, 0.7, size=20)
        ]  # "20 kernels", one of which is kept
        wrong = [float(np.mean(network.predict(X) != y)) for network in networks]
        best = int(np.argmin(wrong))
        fails += networks[best].error > bounds.certified_error(
            n_rows=200, n_kernels=20, n_kept=1, alpha=0.05, slack=None, test_error=wrong[best]
        )
    assert fails <= 0.05 * DRAWS


# -- sentences ---------------------------------------------------------------------------------------------------------


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
            SIZE | {"n_kernels": 1, "radius": "chosen"},
            "n_kernels must be at least 2; got 1",
        ),
        (
            "test_size",
            SIZE | {"error": 1.0},
            "error must lie between 0 and 1, both excluded; got 1.0",
        ),
        ("test_size", SIZE | {"alpha": 0}, "alpha must lie between 0 and 1"),
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
            {"classifier": Threshold(0.5), "X_test": np.zeros((0, 1)), "y_test": []},
            "The test set has no rows",
        ),
        (
            "certify_by_compression",
            {"classifier": Threshold(0.5), "X": [[0.1]], "y": [0]},
            "needs a fitted ReducedParzenClassifier",
        ),
    ],
)
def test_bad_input_is_explained(function, arguments, message):
    with pytest.raises(KernelpoolError, match=message):
        getattr(bounds, function)(**arguments)
