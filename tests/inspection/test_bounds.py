"""Bounds: the papers' formulas, scipy's binomial distribution, and simulated certificates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest

from kernelpool import bounds
from kernelpool.errors import KernelpoolError
from kernelpool.inspection.bounds import log_binomial_cdf, log_networks

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


def test_theorem_3_is_its_first_term_where_doubt_is_tiny():
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


@settings(max_examples=200)
@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-6, 1 - 1e-6))
def test_the_binomial_tail_is_scipys(n, share, p):
    k = round(share * n)
    expected = binom.logcdf(k, n, p)
    if expected > -600:  # scipy's own answer loses its digits beyond
        assert log_binomial_cdf(k, n, p) == pytest.approx(expected, rel=1e-7, abs=1e-10)


@given(st.integers(1, 10**5), st.floats(0, 1), st.floats(1e-8, 0.9), st.integers(1, 1000))
def test_the_binomial_bounds_are_clopper_and_pearsons(n, share, alpha, n_tried):
    k = round(share * n)
    upper = beta.ppf(1 - alpha / n_tried, k + 1, n - k) if k < n else 1.0
    lower = beta.ppf(alpha, k, n - k + 1) if k else 0.0
    assert bounds.binomial_upper(k, n, alpha, n_tried=n_tried) == pytest.approx(upper, rel=1e-6)
    assert bounds.binomial_lower(k, n, alpha) == pytest.approx(lower, rel=1e-6, abs=1e-12)


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


def test_the_paired_test_is_the_exact_sign_test():
    for n_worse, n_better in [(0, 0), (3, 0), (10, 2), (2, 10), (40, 41)]:
        n = n_worse + n_better
        expected = binomtest(n_worse, n, 0.5, alternative="greater").pvalue if n else 1.0
        assert bounds.paired_p_value(n_worse, n_better) == pytest.approx(expected)


# -- coverage, exactly -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "alpha"), [(1, 0.05), (2, 0.05), (7, 0.2), (30, 0.05), (100, 0.01), (300, 0.05)]
)
def test_no_true_error_makes_certificates_fail_more_often_than_they_say(n_rows, alpha):
    """The probability of failure, summed over every outcome of the test set, for true errors where it is greatest.

    It jumps where the true error passes one of the bounds that the test may end with, and falls from there to the next.
    """
    n_errors = np.arange(n_rows + 1)
    bound = np.array([bounds.binomial_upper(int(k), n_rows, alpha) for k in n_errors])
    worst = np.nextafter(bound[:-1], 1)
    true = np.concatenate([worst, np.linspace(0.001, 0.999, 499)])
    fails = np.array([binom.pmf(n_errors, n_rows, p)[bound < p].sum() for p in true])
    assert fails.max() <= alpha * (1 + 1e-6)
    assert fails[: len(worst)] == pytest.approx(
        np.full(len(worst), alpha), rel=1e-6
    )  # nothing is given away either


# -- coverage, by simulation -------------------------------------------------------------------------------------------


ALLOWED = int(binom.ppf(0.999, 1000, 0.05))
"""Failures in 1,000 draws of a certificate that fails in just 5 % of them: no more than these in 999 simulations of 1,000."""


class Threshold:
    """x > t on the unit interval, where the class is x > 1/2 but for a noise of 10 %: its true error is known."""

    def __init__(self, t, size=None):
        self.t = t
        if size is not None:
            self.kernels_ = np.zeros(size)

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.t).astype(int)

    @property
    def error(self):
        return 0.1 + 0.8 * abs(self.t - 0.5)


def draw(n, rng):
    X = rng.uniform(size=(n, 1))
    return X, ((X[:, 0] > 0.5) ^ (rng.uniform(size=n) < 0.1)).astype(int)


@pytest.mark.parametrize("n_rows", [30, 400])
def test_certificates_fail_no_more_often_than_they_say(n_rows):
    rng = np.random.default_rng(0)
    network = Threshold(0.55)
    fails = sum(
        bounds.certify(network, *draw(n_rows, rng)).error < network.error for _ in range(1000)
    )
    assert 0 < fails <= ALLOWED


def test_the_best_of_many_is_certified_only_if_their_number_is_told():
    rng = np.random.default_rng(1)
    networks = [Threshold(t) for t in np.linspace(0.5, 0.5001, 50)]
    coins = [rng.uniform(size=50) for _ in range(1000)]
    fails = {1: 0, 50: 0}
    for coin in (
        coins
    ):  # fifty networks with independent errors: the test error of each is a draw of its own
        errors = binom.ppf(coin, 200, networks[0].error).min()
        for n_tried in fails:
            fails[n_tried] += (
                bounds.binomial_upper(int(errors), 200, 0.05, n_tried=n_tried) < networks[0].error
            )
    assert fails[1] > 500
    assert fails[50] <= ALLOWED


def test_the_paired_bound_fails_no_more_often_than_it_says():
    rng = np.random.default_rng(2)
    small, full = Threshold(0.56), Threshold(0.5)
    fails = sum(
        bounds.compare(small, full, *draw(300, rng)).difference < small.error - full.error
        for _ in range(1000)
    )
    assert fails <= 50


def test_the_papers_certificate_holds_for_the_network_chosen_on_the_test_rows():
    rng = np.random.default_rng(3)
    fails = 0
    for _ in range(1000):
        X, y = draw(200, rng)
        networks = [
            Threshold(t) for t in rng.uniform(0.3, 0.7, size=20)
        ]  # "20 kernels", one of which is kept
        wrong = [float(np.mean(network.predict(X) != y)) for network in networks]
        best = int(np.argmin(wrong))
        fails += networks[best].error > bounds.certified_error(
            n_rows=200, n_kernels=20, n_kept=1, alpha=0.05, slack=None, test_error=wrong[best]
        )
    assert fails <= 50


# -- sentences ---------------------------------------------------------------------------------------------------------


def test_a_certificate_prints_as_a_sentence():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 1))
    certificate = bounds.certify(Threshold(0.5, size=12), X, (X[:, 0] > 0.5).astype(int))
    assert certificate.n_errors == 0
    assert certificate.error == pytest.approx(1 - 0.05 ** (1 / 1000))
    assert (
        str(certificate)
        == "12 kernels; with 95 % confidence at most 0.3 % of new rows are misclassified."
    )


def test_a_certificate_says_when_the_test_rows_are_too_few():
    certificate = bounds.certify(Threshold(0.5), [[0.1], [0.9], [0.2]], [0, 1, 0])
    assert not certificate.certifies
    assert (
        "3 test rows are too few to certify anything with 95 % confidence: 0 were misclassified"
        in str(certificate)
    )
    assert "up to 63.2 % of new rows might be" in str(certificate)  # 1 - 0.05 ** (1 / 3)
    assert "About 12 rows would do" in str(
        certificate
    )  # 1 - 0.05 ** (1 / 12) = 22 % < 33 %; at 6 rows it is 39 %


def test_a_certificate_says_when_more_rows_would_not_help():
    certificate = bounds.certify(Threshold(2.0), [[0.6], [0.9], [0.2]], [1, 1, 0])
    assert "More rows would not help" in str(certificate)


def test_comparisons_print_as_sentences():
    X = np.linspace(0.001, 0.999, 1000)[:, None]
    y = (X[:, 0] > 0.5).astype(int)
    full = Threshold(0.5)
    assert "at most" in str(bounds.compare(Threshold(0.5), full, X, y))
    assert str(bounds.compare(Threshold(0.6), full, X, y)).startswith("The small network is worse")
    assert str(bounds.compare(Threshold(0.503), full, X[::10], y[::10])).startswith(
        "100 test rows cannot tell"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bounds.test_size(n_kernels=10, n_kept=11, error=0.1),
            r"n_kept must lie in \[1, n_kernels\], here 10; got 11",
        ),
        (
            lambda: bounds.test_size(n_kernels=0, n_kept=1, error=0.1),
            "n_kernels must be at least 1; got 0",
        ),
        (
            lambda: bounds.test_size(n_kernels=1, n_kept=1, error=0.1, radius="chosen"),
            "n_kernels must be at least 2; got 1",
        ),
        (
            lambda: bounds.test_size(n_kernels=10, n_kept=1, error=1.0),
            "error must lie between 0 and 1, both excluded; got 1.0",
        ),
        (
            lambda: bounds.test_size(n_kernels=10, n_kept=1, error=0.1, alpha=0),
            "alpha must lie between 0 and 1",
        ),
        (
            lambda: bounds.test_size(n_kernels=10, n_kept=1, error=0.1, slack=0),
            r"slack must lie in \(0, 1\]; got 0",
        ),
        (
            lambda: bounds.test_size(n_kernels=10, n_kept=1, error=0.1, radius="free"),
            "radius must be 'fixed' or 'chosen'",
        ),
        (
            lambda: bounds.certified_error(n_rows=0, n_kernels=10, n_kept=1),
            "n_rows must be positive; got 0",
        ),
        (
            lambda: bounds.certified_error(n_rows=9, n_kernels=9, n_kept=1, test_error=2),
            "test_error must lie in",
        ),
        (
            lambda: bounds.certified_error(
                n_rows=9, n_kernels=9, n_kept=1, slack=None, radius="chosen"
            ),
            "slack=None needs",
        ),
        (lambda: bounds.binomial_upper(5, 4), r"n_errors must lie in \[0, n_rows\], here 4; got 5"),
        (lambda: bounds.binomial_upper(1, 4, n_tried=0), "n_tried must be at least 1; got 0"),
        (lambda: bounds.compression_bound(n_rows=10, n_kept=10, n_errors=0), "n_kept must lie in"),
        (
            lambda: bounds.compression_bound(n_rows=10, n_kept=1, n_errors=0, n_choices=0),
            "n_choices must be at least 1",
        ),
        (
            lambda: bounds.paired_difference(5, 6, 10),
            "n_worse [+] n_better must not exceed n_rows=10; got 11",
        ),
        (lambda: bounds.certify(Threshold(0.5), np.zeros((0, 1)), []), "The test set has no rows"),
        (
            lambda: bounds.certify_by_compression(Threshold(0.5), [[0.1]], [0]),
            "needs a fitted ReducedParzenClassifier",
        ),
    ],
)
def test_bad_input_is_explained(call, message):
    with pytest.raises(KernelpoolError, match=message):
        call()
