"""Bounds from test rows: scipy's binomial distribution, and simulated certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from kernelpool import ParzenClassifier, bounds
from kernelpool.errors import KernelpoolError


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


def test_the_paired_bound_fails_no_more_often_than_it_says():
    counts = np.random.default_rng(2).multinomial(300, [0.054, 0.006, 0.94], size=500)
    found = [bounds.paired_difference(*pair, 300) for pair in counts[:, :2].tolist()]
    assert (np.array(found) < 0.048).sum() <= 25


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


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (bounds.binomial_upper, (5, 4), r"n_errors must lie in \[0, n_rows\], here 4"),
        (bounds.binomial_upper, (1, 4, 1.0), "alpha must lie between 0 and 1, both excluded"),
        (
            lambda *rates: bounds.binomial_upper(*rates, n_tried=0),
            (1, 4),
            "n_tried must be at least 1",
        ),
        (bounds.paired_difference, (5, 6, 10), "must not exceed n_rows=10; got 11"),
        (bounds.certify, (Threshold(0.5), np.zeros((0, 1)), []), "The test set has no rows"),
    ],
)
def test_bad_input_is_explained(function, arguments, message):
    with pytest.raises(KernelpoolError, match=message):
        function(*arguments)
