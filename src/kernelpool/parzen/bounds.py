r"""How far the error of a network of K out of N kernels can be trusted.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991,
Theorems 1 and 2, Corollary 1 and Theorem 3; Langford, "Tutorial on practical prediction theory for
classification", JMLR 6, 2005, section 5.

.. math:: m \ge \frac{2 (K \ln(eN/K) + \ln(1/\delta))}{\gamma^2 \epsilon}
    \qquad m \ge \max\Bigl(\frac{8}{\gamma^2\epsilon} \ln\frac{8}{\delta},\;
    \frac{32 (\log_2 K + K \log_2(eN/K))}{\gamma^2\epsilon} \ln\frac{16}{\gamma^2\epsilon}\Bigr)

==================  ====================  ========================================================
paper               here                  meaning
==================  ====================  ========================================================
:math:`m`           ``n_rows``            rows of the test set
:math:`N`, K        ``n_kernels``,        kernels to choose from, and kernels chosen
                    ``n_kept``
:math:`\epsilon`    ``error``             what the error rate must not exceed
:math:`\delta`      ``alpha``             probability that the statement is wrong
:math:`\gamma`      ``slack``             share of `error` by which test errors must stay below
==================  ====================  ========================================================

Deviations: Theorem 1 is also used as it stands, which needs no slack and is never worse. The
paper's bounds hold for every network that could have been chosen, and are loose for it; a binomial
bound (`kernelpool.bounds.binomial_upper`) holds for the one network that was fixed before the test
rows were seen.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from ..errors import KernelpoolError
from ..inspection.bounds import (
    Certificate,
    check_errors,
    check_shares,
    misclassified,
)

__all__ = [
    "capacity",
    "certified_error",
    "certify_by_compression",
    "compression_bound",
    "test_size",
    "test_size_for_capacity",
]


# -- the paper's test sets -------------------------------------------------------------------------


def test_size(
    *,
    n_kernels: int,
    n_kept: int,
    error: float,
    alpha: float = 0.05,  # noqa: PT028
    slack: float = 0.5,  # noqa: PT028
    radius: str = "fixed",  # noqa: PT028
) -> float:
    """Corollary 1 and Theorem 3: rows that a test set needs before a chosen network can be trusted.

    If a network of `n_kept` out of `n_kernels` kernels, chosen in whatever way, misclassifies at
    most a share ``(1 - slack) * error`` of that many test rows, its true error exceeds `error` with
    probability at most `alpha`.

    Parameters
    ----------
    n_kernels : int
        Kernels to choose from, N.
    n_kept : int
        Kernels chosen, K.
    error : float
        The error to certify, in (0, 1).
    alpha : float, default=0.05
        Probability that the certificate is wrong, in (0, 1).
    slack : float, default=0.5
        How far below `error` the test error must stay, in (0, 1].
    radius : {"fixed", "chosen"}, default="fixed"
        Whether the radius was fixed beforehand (Corollary 1) or chosen on the test set too (Theorem
        3).

    Returns
    -------
    n_rows : float
        Rows needed; round up.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.test_size(n_kernels=1000, n_kept=20, error=0.1), 1)
    8098.9
    >>> round(bounds.test_size(n_kernels=1000, n_kept=20, error=0.1, radius="chosen"))
    1207957
    """
    _check_counts(n_kernels, n_kept, radius)
    check_shares(error=error, alpha=alpha)
    _check_slack(slack)
    if radius == "fixed":
        return 2 * (log_networks(n_kernels, n_kept) + math.log(1 / alpha)) / (slack**2 * error)
    return test_size_for_capacity(
        capacity(n_kernels, n_kept), error=error, alpha=alpha, slack=slack
    )


def test_size_for_capacity(
    capacity: float,
    *,
    error: float,
    alpha: float = 0.05,  # noqa: PT028
    slack: float = 0.5,  # noqa: PT028
) -> float:
    """Theorem 2: rows that a test set needs before a classifier chosen from a set of finite
    capacity can be trusted.

    If a classifier of the set, chosen in whatever way, misclassifies at most a share ``(1 - slack)
    * error`` of that many test rows, its true error exceeds `error` with probability at most
    `alpha`.

    Parameters
    ----------
    capacity : float
        Capacity (Vapnik-Chervonenkis dimension) of the set of classifiers, V, or a bound on it; at
        least 1.
    error : float
        The error to certify, in (0, 1).
    alpha : float, default=0.05
        Probability that the certificate is wrong, in (0, 1).
    slack : float, default=0.5
        How far below `error` the test error must stay, in (0, 1].

    Returns
    -------
    n_rows : float
        Rows needed; round up.

    Examples
    --------
    A straight line in the plane has capacity 3:

    >>> from kernelpool import bounds
    >>> round(bounds.test_size_for_capacity(3, error=0.1))
    12406
    """
    if not capacity >= 1:
        raise KernelpoolError(f"capacity must be at least 1; got {capacity}.")
    check_shares(error=error, alpha=alpha)
    _check_slack(slack)
    scale = slack**2 * error
    return max(8 / scale * math.log(8 / alpha), 16 * capacity / scale * math.log(16 / scale))


# imported into a test module, they are no tests
test_size_for_capacity.__test__ = False  # type: ignore[attr-defined]
test_size.__test__ = False  # type: ignore[attr-defined]


def certified_error(
    *,
    n_rows: float,
    n_kernels: int,
    n_kept: int,
    alpha: float = 0.05,
    slack: float | None = 0.5,
    radius: str = "fixed",
    test_error: float = 0.0,
) -> float:
    """The inverse of `test_size`: the error that `n_rows` test rows certify for a network chosen on
    them.

    Parameters
    ----------
    n_rows : float
        Rows of the test set.
    n_kernels : int
        Kernels to choose from, N.
    n_kept : int
        Kernels chosen, K.
    alpha : float, default=0.05
        Probability that the certificate is wrong, in (0, 1).
    slack : float or None, default=0.5
        As in `test_size`. None uses Theorem 1 as it stands, with the `test_error` that was found;
        for a fixed radius only.
    radius : {"fixed", "chosen"}, default="fixed"
        As in `test_size`.
    test_error : float, default=0.0
        Share of the test rows that the network misclassifies.

    Returns
    -------
    error : float
        At most 1, which certifies nothing.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.certified_error(n_rows=8098.9, n_kernels=1000, n_kept=20), 4)
    0.1
    """
    _check_counts(n_kernels, n_kept, radius)
    check_shares(alpha=alpha)
    if not n_rows > 0:
        raise KernelpoolError(f"n_rows must be positive; got {n_rows}.")
    if not 0 <= test_error <= 1:
        raise KernelpoolError(f"test_error must lie in [0, 1]; got {test_error}.")
    if slack is None:
        if radius != "fixed":
            raise KernelpoolError(
                "slack=None needs radius='fixed': Theorem 1 is about finitely many networks."
            )
        # the largest error with (error - test_error) / sqrt(error) <= chi, chi^2 = 2 ln(L / alpha)
        # / m
        chi = math.sqrt(2 * (log_networks(n_kernels, n_kept) + math.log(1 / alpha)) / n_rows)
        return min(1.0, ((chi + math.sqrt(chi**2 + 4 * test_error)) / 2) ** 2)

    def excess(log_error: float) -> float:
        """Falls in the error; zero where as many rows are needed as there are."""
        error = math.exp(log_error)
        needed = test_size(
            n_kernels=n_kernels,
            n_kept=n_kept,
            error=error,
            alpha=alpha,
            slack=slack,
            radius=radius,
        )
        return math.log(needed / n_rows)

    low = math.log(1e-100)
    high = math.log(1 - 1e-16)
    # a network with a greater error than both would have had to do better on the test rows than the
    # bound allows
    least = test_error / (1 - slack) if slack < 1 else float(test_error > 0)
    error = 1.0 if excess(high) > 0 else math.exp(brentq(excess, low, high))
    return min(1.0, max(error, least))


def log_networks(n_kernels: int, n_kept: int) -> float:
    """K ln(eN/K), above the logarithm of the number of networks, N over K."""
    return n_kept * math.log(math.e * n_kernels / n_kept)


def capacity(n_kernels: int, n_kept: int) -> float:
    """V <= 2 (log2 K + K log2(eN/K)): capacity of networks of K out of N kernels with a common
    radius, at most.

    The capacity, or Vapnik-Chervonenkis dimension, is the largest number of rows that the networks
    can label in every way; `test_size_for_capacity` makes a test-set size of it.

    Parameters
    ----------
    n_kernels : int
        Kernels to choose from, N.
    n_kept : int
        Kernels chosen, K.

    Returns
    -------
    capacity : float
        A bound from above.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.capacity(1000, 20), 1)
    292.1
    """
    _check_counts(n_kernels, n_kept, "chosen")
    return 2 * (math.log2(n_kept) + n_kept * math.log2(math.e * n_kernels / n_kept))


# -- sample compression ----------------------------------------------------------------------------


def compression_bound(
    *, n_rows: int, n_kept: int, n_errors: int, alpha: float = 0.05, n_choices: float = 1
) -> float:
    """Langford 2005, section 5: the error of a network made of `n_kept` of its own training rows,
    no other rows needed.

    Had the kept rows been named beforehand, the others would be a test set. They were not, so the
    bound is paid for every set of rows that might have been kept: the binomial bound over the
    `n_rows` - `n_kept` other rows, with an alpha of `alpha` / (`n_rows` * (`n_rows` over `n_kept`)
    * `n_choices`). It holds however the rows were picked, as long as the network depends on the
    training rows through those kept, and through the choices counted.

    Parameters
    ----------
    n_rows : int
        Training rows, kept and not.
    n_kept : int
        Rows that became kernels.
    n_errors : int
        Misclassified rows among those not kept.
    alpha : float, default=0.05
        Probability that the bound is wrong.
    n_choices : float, default=1
        Settings among which the training rows chose besides, for instance the number of radii; a
        list fixed beforehand.

    Returns
    -------
    error : float
        At most 1, which certifies nothing.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.compression_bound(n_rows=5000, n_kept=10, n_errors=50, alpha=0.05), 3)
    0.039
    """
    check_shares(alpha=alpha)
    if not 0 <= n_kept < n_rows:
        raise KernelpoolError(
            f"n_kept must lie in [0, n_rows - 1], here {n_rows - 1}; got {n_kept}."
        )
    if n_choices < 1:
        raise KernelpoolError(f"n_choices must be at least 1; got {n_choices}.")
    check_errors(n_errors, n_rows - n_kept)
    log_subsets = gammaln(n_rows + 1) - gammaln(n_kept + 1) - gammaln(n_rows - n_kept + 1)
    log_alpha = math.log(alpha) - math.log(n_rows) - float(log_subsets) - math.log(n_choices)
    return _binomial_upper(n_errors, n_rows - n_kept, log_alpha)


def _binomial_upper(n_errors: int, n_rows: int, log_alpha: float) -> float:
    """The p with log P(X <= n_errors) = log_alpha, for probabilities that are no floating-point
    numbers.

    Above n_errors / n_rows the terms of the sum fall at least as fast as those of a Gaussian: 40
    deviations are enough.
    """
    k = np.arange(max(0, n_errors - 40 * (math.isqrt(n_rows) + 1)), n_errors + 1)

    def excess(p: float) -> float:
        return float(logsumexp(binom.logpmf(k, n_rows, p))) - log_alpha

    highest = 1 - 1e-15
    if n_errors == n_rows or excess(highest) >= 0:
        return 1.0
    return float(brentq(excess, n_errors / n_rows, highest, xtol=1e-15))


def certify_by_compression(classifier: Any, X: Any, y: Any, alpha: float = 0.05) -> Certificate:
    """The same statement without test rows, for a network made of few of its training rows.

    Langford's sample-compression bound: see `compression_bound`. Valid for a
    `ReducedParzenClassifier` whose votes and distances depend on nothing but its kernels, since
    such a network is described completely by which rows were kept and which radius of a fixed list
    was taken.

    Parameters
    ----------
    classifier : ReducedParzenClassifier
        Fitted on exactly these rows, numbers without missing cells, with `class_prior=None`,
        `standardize=False` and `n_kernels` a number.
    X : array-like of shape (n_samples, n_features)
        Its training rows.
    y : array-like of shape (n_samples,)
        Their classes.
    alpha : float, default=0.05
        Probability that the certificate is wrong.

    Returns
    -------
    certificate : Certificate
        Prints as a sentence.
    """
    # not a pipeline: what its other steps learned of the rows would have to be paid for too
    if not hasattr(classifier, "kept_indices_") or not hasattr(classifier, "n_choices_"):
        raise KernelpoolError(
            f"certify_by_compression needs a fitted ReducedParzenClassifier; got "
            f"{type(classifier).__name__}. Use certify with rows held out for any other classifier."
        )
    if not classifier.n_choices_:
        raise KernelpoolError(
            "The network depends on more than its kept rows and radius: fit it to numbers without "
            "missing cells, with class_prior=None, standardize=False and n_kernels a number, or use "
            "certify with rows held out."
        )
    wrong, guessing = misclassified(classifier, X, y)
    if len(wrong) != classifier.n_rows_:
        raise KernelpoolError(
            f"X must be the {classifier.n_rows_} rows that the network was fitted on; got "
            f"{len(wrong)} rows."
        )
    others = np.ones(len(wrong), bool)
    others[classifier.kept_indices_] = False
    n_errors = int(wrong[others].sum())
    n_others = int(others.sum())
    n_kept = len(wrong) - n_others
    error = compression_bound(
        n_rows=len(wrong),
        n_kept=n_kept,
        n_errors=n_errors,
        alpha=alpha,
        n_choices=classifier.n_choices_,
    )
    return Certificate(n_kept, n_others, n_errors, error, alpha, 1, guessing)


# -- checks ----------------------------------------------------------------------------------------


def _check_counts(n_kernels: int, n_kept: int, radius: str) -> None:
    if radius not in ("fixed", "chosen"):
        raise KernelpoolError(f"radius must be 'fixed' or 'chosen'; got {radius!r}.")
    fewest = 2 if radius == "chosen" else 1
    if n_kernels < fewest:
        raise KernelpoolError(f"n_kernels must be at least {fewest}; got {n_kernels}.")
    if not 1 <= n_kept <= n_kernels:
        raise KernelpoolError(f"n_kept must lie in [1, n_kernels], here {n_kernels}; got {n_kept}.")


def _check_slack(slack: float) -> None:
    if not 0 < slack <= 1:
        raise KernelpoolError(f"slack must lie in (0, 1]; got {slack}.")
