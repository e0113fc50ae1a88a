"""How far an error rate measured on test rows can be trusted.

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26, 1934; Langford, "Tutorial on practical prediction theory for
classification", JMLR 6, 2005, section 3.

A binomial bound holds for the one classifier that was fixed before the test rows were seen. Bounds
for networks of K out of N kernels are in `kernelpool.parzen.bounds`; `kernelpool.bounds` has both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.utils import check_consistent_length, column_or_1d

from ..errors import KernelpoolError
from ..text import percent, plural
from .description import describe
from .pipeline import innermost

__all__ = [
    "Certificate",
    "binomial_interval",
    "binomial_upper",
    "certify",
    "paired_difference",
]


# -- error rates on test rows ----------------------------------------------------------------------


def binomial_interval(
    n_errors: Any, n_rows: Any, alpha: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    """Clopper & Pearson's interval of a share, wrong with a probability of at most `alpha`, half of
    it at each end.

    Parameters
    ----------
    n_errors : array-like
        Rows that are counted, such as misclassified ones.
    n_rows : array-like
        All rows.
    alpha : float, default=0.05
        Probability that the interval does not hold the share.

    Returns
    -------
    low, high : ndarray
        From 0 where none is counted, and to 1 where all are.
    """
    k = np.asarray(n_errors, dtype=np.float64)
    n = np.asarray(n_rows, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = beta.ppf(alpha / 2, k, n - k + 1)
        high = beta.isf(alpha / 2, k + 1, n - k)
    return np.where(k > 0, low, 0.0), np.where(k < n, high, 1.0)


def binomial_upper(n_errors: int, n_rows: int, alpha: float = 0.05, *, n_tried: int = 1) -> float:
    """Clopper & Pearson's upper bound of an error rate, from one test set and a network fixed
    before it.

    Parameters
    ----------
    n_errors : int
        Misclassified test rows.
    n_rows : int
        Test rows.
    alpha : float, default=0.05
        Probability that the bound is wrong.
    n_tried : int, default=1
        Networks among which the test rows chose: the bound then holds for all of them at once
        (union bound).

    Returns
    -------
    error : float
        The true error exceeds it with probability at most `alpha`.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.binomial_upper(0, 100, 0.05), 4)  # 1 - 0.05 ** (1 / 100)
    0.0295
    """
    check_shares(alpha=alpha)
    check_errors(n_errors, n_rows)
    if n_tried < 1:
        raise KernelpoolError(f"n_tried must be at least 1; got {n_tried}.")
    return float(binomial_interval(n_errors, n_rows, 2 * alpha / n_tried)[1])


def paired_difference(n_worse: int, n_better: int, n_rows: int, alpha: float = 0.05) -> float:
    """Upper bound of the error of one network less that of another, tested on the same rows.

    The difference is the rate of rows that only the first gets wrong less the rate of those that
    only the second does; each rate gets its binomial bound at half of `alpha`. Rows that both get
    wrong, or neither, do not count and widen nothing.

    Parameters
    ----------
    n_worse : int
        Rows that only the first network misclassifies.
    n_better : int
        Rows that only the second misclassifies.
    n_rows : int
        Test rows.
    alpha : float, default=0.05
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
    check_shares(alpha=alpha)
    ends = binomial_interval([n_worse, n_better], n_rows, alpha)
    return float(ends[1][0] - ends[0][1])


# -- certificates ----------------------------------------------------------------------------------


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
    alpha : float
        Probability that the certificate is wrong.
    n_tried : int
        Classifiers among which the rows chose.
    guessing : float
        Error of always naming the most frequent class.
    """

    n_kernels: int | None
    n_rows: int
    n_errors: int
    error: float
    alpha: float
    n_tried: int
    guessing: float

    @property
    def certifies(self) -> bool:
        """Whether the classifier is certified to err less than always naming the most frequent
        class does.
        """
        return self.error < self.guessing

    def __str__(self) -> str:
        size = "" if self.n_kernels is None else f"{plural(self.n_kernels, 'kernel')}; "
        confidence = f"{100 * (1 - self.alpha):.6g} %"
        if not self.certifies:
            return (
                f"{size}{self.n_rows} test rows are too few to certify anything with {confidence} "
                f"confidence: {self.n_errors} were misclassified, so up to {percent(self.error)} "
                f"of new rows might be, no better than always naming the most frequent class "
                f"({percent(self.guessing)}).{self._advice()}"
            )
        tried = "" if self.n_tried <= 1 else f", the best of {self.n_tried} tried"
        rows = f"at most {percent(self.error)} of new rows are misclassified"
        return f"{size}with {confidence} confidence {rows}{tried}."

    def _advice(self) -> str:
        """How many rows would do at the rate of errors seen, found by doubling."""
        rate = self.n_errors / self.n_rows
        if rate >= self.guessing:
            return " More rows would not help: so many errors were found."
        factor = 1
        while factor < 1 << 20:
            factor *= 2
            n = factor * self.n_rows
            if binomial_upper(int(rate * n), n, self.alpha, n_tried=self.n_tried) < self.guessing:
                return f" About {n} rows would do if the rate of errors stayed as it is."
        return ""


def certify(
    classifier: Any, X_test: Any, y_test: Any, alpha: float = 0.05, n_tried: int = 1
) -> Certificate:
    """How many new rows a classifier misclassifies at most, measured on rows that played no part in
    making it.

    Clopper & Pearson's binomial bound; where the test rows were used to choose among several
    classifiers (sizes, radii, kernels), say among how many with `n_tried`.

    Parameters
    ----------
    classifier : classifier
        Any fitted scikit-learn classifier.
    X_test : array-like of shape (n_samples, n_features)
        Rows drawn as the new rows will be, and not used in `fit`.
    y_test : array-like of shape (n_samples,)
        Their classes.
    alpha : float, default=0.05
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
    wrong, guessing = misclassified(classifier, X_test, y_test)
    n_errors = int(wrong.sum())
    n_rows = len(wrong)
    error = binomial_upper(n_errors, n_rows, alpha, n_tried=n_tried)
    table = describe(innermost(classifier)).kernels
    n_kernels = None if table is None else len(table)
    return Certificate(n_kernels, n_rows, n_errors, error, alpha, n_tried, guessing)


def misclassified(classifier: Any, X: Any, y: Any) -> tuple[np.ndarray, float]:
    """Whether each row is misclassified, and the error of always naming the most frequent class."""
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    if not len(labels):
        raise KernelpoolError(
            "The test set has no rows: nothing can be certified. Hold some rows out of fit."
        )
    most = np.unique(labels, return_counts=True)[1].max()
    wrong = np.asarray(np.asarray(classifier.predict(X)) != labels)
    return wrong, float(1 - most / len(labels))


# -- checks ----------------------------------------------------------------------------------------


def check_errors(n_errors: int, n_rows: int) -> None:
    """There are no more errors than rows."""
    if n_rows < 0 or not 0 <= n_errors <= n_rows:
        raise KernelpoolError(f"n_errors must lie in [0, n_rows], here {n_rows}; got {n_errors}.")


def check_shares(**shares: float) -> None:
    """Shares lie between 0 and 1."""
    for name, value in shares.items():
        if not 0 < value < 1:
            raise KernelpoolError(f"{name} must lie between 0 and 1, both excluded; got {value}.")
