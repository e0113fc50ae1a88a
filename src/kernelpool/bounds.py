"""Test-set sizes and certificates: how far the error of a classifier can be trusted.

The paper's bounds and sample compression are in `kernelpool.networks.bounds`; here are bounds from test rows (Clopper and
Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934), and
certificates of classifiers, which print as sentences.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.utils import check_consistent_length, column_or_1d

from .errors import KernelpoolError
from .inspection.metrics import binomial_interval
from .inspection.pipeline import unwrap
from .networks.bounds import (
    capacity,
    certified_error,
    check_errors,
    check_share,
    compression_bound,
    test_size,
    test_size_for_capacity,
)
from .text import percent, plural

__all__ = [
    "Certificate",
    "Comparison",
    "binomial_lower",
    "binomial_upper",
    "capacity",
    "certified_error",
    "certify",
    "certify_by_compression",
    "compare",
    "compression_bound",
    "paired_difference",
    "paired_p_value",
    "test_size",
    "test_size_for_capacity",
]


# -- error rates on test rows -------------------------------------------------------------------------------------------


def binomial_upper(n_errors: int, n_rows: int, doubt: float = 0.05, *, n_tried: int = 1) -> float:
    """Clopper & Pearson's upper bound of an error rate, from one test set and a network fixed before it.

    Parameters
    ----------
    n_errors : int
        Misclassified test rows.
    n_rows : int
        Test rows.
    doubt : float, default=0.05
        Probability that the bound is wrong.
    n_tried : int, default=1
        Networks among which the test rows chose: the bound then holds for all of them at once (union bound).

    Returns
    -------
    error : float
        The true error exceeds it with probability at most `doubt`.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.binomial_upper(0, 100, 0.05), 4)  # 1 - 0.05 ** (1 / 100)
    0.0295
    """
    check_share("doubt", doubt)
    check_errors(n_errors, n_rows)
    if n_tried < 1:
        raise KernelpoolError(f"n_tried must be at least 1; got {n_tried}.")
    return float(binomial_interval(n_errors, n_rows, 2 * doubt / n_tried)[1])


def binomial_lower(n_errors: int, n_rows: int, doubt: float = 0.05) -> float:
    """Clopper & Pearson's lower bound of an error rate: the mirror of `binomial_upper`.

    Parameters
    ----------
    n_errors : int
        Misclassified test rows.
    n_rows : int
        Test rows.
    doubt : float, default=0.05
        Probability that the bound is wrong.

    Returns
    -------
    error : float
        The true error is smaller with probability at most `doubt`.
    """
    check_share("doubt", doubt)
    check_errors(n_errors, n_rows)
    return float(binomial_interval(n_errors, n_rows, 2 * doubt)[0])


def paired_difference(n_worse: int, n_better: int, n_rows: int, doubt: float = 0.05) -> float:
    """Upper bound of the error of one network less that of another, tested on the same rows.

    The difference is the rate of rows that only the first gets wrong less the rate of those that only the second does; each
    rate gets its binomial bound at half the doubt. Rows that both get wrong, or neither, tell nothing and widen nothing.

    Parameters
    ----------
    n_worse : int
        Rows that only the first network misclassifies.
    n_better : int
        Rows that only the second misclassifies.
    n_rows : int
        Test rows.
    doubt : float, default=0.05
        Probability that the bound is wrong.

    Returns
    -------
    difference : float
        In [-1, 1]; the first network errs at most that much more.
    """
    if n_worse + n_better > n_rows:
        raise KernelpoolError(
            f"n_worse + n_better must not exceed n_rows={n_rows}; got {n_worse + n_better}."
        )
    return binomial_upper(n_worse, n_rows, doubt / 2) - binomial_lower(n_better, n_rows, doubt / 2)


def paired_p_value(n_worse: int, n_better: int) -> float:
    """McNemar's exact test: probability of `n_worse` or more such rows if the first network were no worse than the second.

    Parameters
    ----------
    n_worse : int
        Rows that only the first network misclassifies.
    n_better : int
        Rows that only the second misclassifies.

    Returns
    -------
    p_value : float
        Small where the first network is worse.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.paired_p_value(3, 0), 6)  # three tosses, three heads
    0.125
    """
    check_errors(n_worse, n_worse + n_better)
    return float(binom.cdf(n_better, n_worse + n_better, 0.5))


# -- certificates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """What is known of the error of one classifier; prints as a sentence.

    Attributes
    ----------
    n_kernels : int or None
        Kernels of the classifier, where it has any.
    n_rows : int
        Rows that were not used to make the classifier.
    n_errors : int
        Those of them that it misclassifies.
    error : float
        With the stated confidence the classifier errs on no greater share of new rows.
    doubt : float
        Probability that the certificate is wrong.
    n_tried : float
        Classifiers among which the rows chose.
    guessing : float
        Error of always naming the most frequent class.
    """

    n_kernels: int | None
    n_rows: int
    n_errors: int
    error: float
    doubt: float
    n_tried: float
    guessing: float

    @property
    def certifies(self) -> bool:
        """Whether the classifier is certified to err less than always naming the most frequent class does."""
        return self.error < self.guessing

    def __str__(self) -> str:
        size = "" if self.n_kernels is None else f"{plural(self.n_kernels, 'kernel')}; "
        confidence = f"{100 * (1 - self.doubt):.6g} %"
        if not self.certifies:
            return (
                f"{size}{self.n_rows} test rows are too few to certify anything with {confidence} confidence: "
                f"{self.n_errors} were misclassified, so up to {percent(self.error)} of new rows might be, no better than "
                f"always naming the most frequent class ({percent(self.guessing)}).{self._advice()}"
            )
        tried = "" if self.n_tried <= 1 else f", the best of {self.n_tried:.6g} tried"
        return f"{size}with {confidence} confidence at most {percent(self.error)} of new rows are misclassified{tried}."

    def _advice(self) -> str:
        """How many rows would do at the rate of errors seen, found by doubling."""
        rate = self.n_errors / self.n_rows
        if rate >= self.guessing:
            return " More rows would not help: so many errors were found."
        factor = 1
        while factor < 1 << 20:
            factor *= 2
            n = factor * self.n_rows
            if (
                binomial_upper(int(rate * n), n, self.doubt, n_tried=max(1, ceil(self.n_tried)))
                < self.guessing
            ):
                return f" About {n} rows would do if the rate of errors stayed as it is."
        return ""


def certify(
    classifier: Any, X_test: Any, y_test: Any, doubt: float = 0.05, n_tried: int = 1
) -> Certificate:
    """How many new rows a classifier misclassifies at most, judged by rows that played no part in making it.

    Clopper & Pearson's binomial bound; where the test rows were used to choose among several classifiers (sizes, radii,
    kernels), say among how many with `n_tried`.

    Parameters
    ----------
    classifier : classifier
        Any fitted scikit-learn classifier.
    X_test : array-like of shape (n_samples, n_features)
        Rows drawn as the new rows will be, and not used in `fit`.
    y_test : array-like of shape (n_samples,)
        Their classes.
    doubt : float, default=0.05
        Probability that the certificate is wrong; 0.05 is 95 % confidence.
    n_tried : int, default=1
        Classifiers among which these test rows chose.

    Returns
    -------
    certificate : Certificate
        Prints as a sentence.

    Examples
    --------
    >>> from kernelpool import ReducedParzenClassifier, bounds
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(2000, random_state=0)
    >>> X_test, y_test = make_clouds(5000, random_state=1)
    >>> network = ReducedParzenClassifier(n_kernels=40, standardize=False, random_state=0).fit(X, y)
    >>> print(bounds.certify(network, X_test, y_test))
    40 kernels; with 95 % confidence at most 12.4 % of new rows are misclassified.
    """
    wrong, labels = _wrong(classifier, X_test, y_test)
    n_errors, n_rows = int(wrong.sum()), len(wrong)
    error = binomial_upper(n_errors, n_rows, doubt, n_tried=n_tried)
    return Certificate(
        _n_kernels(classifier), n_rows, n_errors, error, doubt, n_tried, _guessing(labels)
    )


def certify_by_compression(classifier: Any, X: Any, y: Any, doubt: float = 0.05) -> Certificate:
    """The same statement without test rows, for a network made of few of its training rows.

    Langford's sample-compression bound: see `compression_bound`. Valid for a `ReducedParzenClassifier` whose kernels vote
    equally, since such a network is told completely by which rows were kept and which radius of a fixed list was taken.

    Parameters
    ----------
    classifier : ReducedParzenClassifier
        Fitted on exactly these rows, with `weights="equal"` and `class_prior=None`.
    X : array-like of shape (n_samples, n_features)
        Its training rows.
    y : array-like of shape (n_samples,)
        Their classes.
    doubt : float, default=0.05
        Probability that the certificate is wrong.

    Returns
    -------
    certificate : Certificate
        Prints as a sentence.
    """
    network = classifier  # not a pipeline: what its other steps learned of the rows would have to be paid for too
    if not hasattr(network, "kept_indices_") or not hasattr(network, "n_choices_"):
        raise KernelpoolError(
            f"certify_by_compression needs a fitted ReducedParzenClassifier; got {type(network).__name__}. "
            f"Use certify with rows held out for any other classifier."
        )
    if not network.n_choices_:
        raise KernelpoolError(
            "The network depends on more than its kept rows and radius: fit it with weights='equal', class_prior=None and "
            "standardize=False, or use certify with rows held out."
        )
    wrong, labels = _wrong(classifier, X, y)
    if len(wrong) != network.n_rows_:
        raise KernelpoolError(
            f"X must be the {network.n_rows_} rows that the network was fitted on; got {len(wrong)} rows."
        )
    others = np.ones(len(wrong), bool)
    others[network.kept_indices_] = False
    n_errors, n_kept = int(wrong[others].sum()), int((~others).sum())
    error = compression_bound(
        n_rows=len(wrong),
        n_kept=n_kept,
        n_errors=n_errors,
        doubt=doubt,
        n_choices=network.n_choices_,
    )
    return Certificate(n_kept, int(others.sum()), n_errors, error, doubt, 1, _guessing(labels))


@dataclass(frozen=True)
class Comparison:
    """Two classifiers on the same test rows; prints as a sentence.

    Attributes
    ----------
    n_rows : int
        Test rows.
    n_worse : int
        Rows that only the small network misclassifies.
    n_better : int
        Rows that only the full one misclassifies.
    difference : float
        With the stated confidence the small network errs at most that much more often.
    p_value : float
        McNemar's exact test; small where the small network is worse.
    margin : float
        What still counts as no worse.
    doubt : float
        Probability that the bound is wrong.
    """

    n_rows: int
    n_worse: int
    n_better: int
    difference: float
    p_value: float
    margin: float
    doubt: float

    @property
    def no_worse(self) -> bool:
        """Whether the small network is certified to be worse by no more than the margin."""
        return self.difference <= self.margin

    def __str__(self) -> str:
        confidence, points = (
            f"{100 * (1 - self.doubt):.6g} %",
            f"{100 * self.difference:.2f} points",
        )
        found = f"(only it errs on {self.n_worse} of {self.n_rows} rows, only the full one on {self.n_better})"
        if self.no_worse:
            return f"With {confidence} confidence the small network errs at most {points} more than the full one {found}."
        if self.p_value <= self.doubt:
            return f"The small network is worse than the full one {found}, by up to {points} with {confidence} confidence."
        return (
            f"{self.n_rows} test rows cannot tell whether the small network is no worse than the full one {found}: with "
            f"{confidence} confidence it errs up to {points} more, and {100 * self.margin:.2f} were allowed."
        )


def compare(
    small: Any, full: Any, X_test: Any, y_test: Any, doubt: float = 0.05, margin: float = 0.01
) -> Comparison:
    """Whether a small network is no worse than the full one, judged on the same test rows.

    Parameters
    ----------
    small, full : classifier
        Fitted classifiers.
    X_test : array-like of shape (n_samples, n_features)
        Rows that played no part in making them.
    y_test : array-like of shape (n_samples,)
        Their classes.
    doubt : float, default=0.05
        Probability that the statement is wrong.
    margin : float, default=0.01
        How much more the small one may err and still count as no worse.

    Returns
    -------
    comparison : Comparison
        Prints as a sentence.
    """
    small_wrong, _ = _wrong(small, X_test, y_test)
    full_wrong, _ = _wrong(full, X_test, y_test)
    n_worse, n_better = (
        int((small_wrong & ~full_wrong).sum()),
        int((full_wrong & ~small_wrong).sum()),
    )
    difference = paired_difference(n_worse, n_better, len(small_wrong), doubt)
    return Comparison(
        len(small_wrong),
        n_worse,
        n_better,
        difference,
        paired_p_value(n_worse, n_better),
        margin,
        doubt,
    )


def _wrong(classifier: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    if not len(labels):
        raise KernelpoolError(
            "The test set has no rows: nothing can be certified. Hold some rows out of fit."
        )
    return np.asarray(np.asarray(classifier.predict(X)) != labels), labels


def _guessing(labels: np.ndarray) -> float:
    return float(1 - np.unique(labels, return_counts=True)[1].max() / len(labels))


def _n_kernels(classifier: Any) -> int | None:
    network = unwrap(classifier).inner
    for name in ("kernels_", "means_"):
        if hasattr(network, name):
            return len(getattr(network, name))
    return None
