r"""How far the error of a network of K out of N kernels can be trusted.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991, Theorems 1 and 2, Corollary 1
and Theorem 3; Langford, "Tutorial on practical prediction theory for classification", JMLR 6, 2005, sections 3 and 5.

.. math:: m \ge \frac{2 (K \ln(eN/K) + \ln(1/\delta))}{\gamma^2 \epsilon}
    \qquad m \ge \max\Bigl(\frac{8}{\gamma^2\epsilon} \ln\frac{8}{\delta},\;
    \frac{32 (\log_2 K + K \log_2(eN/K))}{\gamma^2\epsilon} \ln\frac{16}{\gamma^2\epsilon}\Bigr)

==================  ====================  ================================================================================
paper               here                  meaning
==================  ====================  ================================================================================
:math:`m`           ``n_rows``            rows of the test set
:math:`N`, K        ``n_kernels``,        kernels to choose from, and kernels chosen
                    ``n_kept``
:math:`\epsilon`    ``error``             what the probability of a misclassified row must not exceed
:math:`\delta`      ``doubt``             probability that the statement is wrong: 0.05 is 95 % confidence
:math:`\gamma`      ``slack``             the share of `error` by which the test error must stay below it
==================  ====================  ================================================================================

Deviations: Theorem 1 is also used as it stands, which needs no slack and is never worse. The paper's bounds hold for every
network that could have been chosen, and are loose for it; a binomial bound (`kernelpool.bounds.binomial_upper`) holds for the
one network that was fixed before the test rows were seen. Its tail is written out here for `compression_bound` alone, which
asks for probabilities far below the smallest number that SciPy's functions can return.
"""

import math
from collections.abc import Callable

from ..errors import KernelpoolError

RADII = ("fixed", "chosen")


# -- the paper's test sets ----------------------------------------------------------------------------------------------


def test_size(
    *,
    n_kernels: int,
    n_kept: int,
    error: float,
    doubt: float = 0.05,  # noqa: PT028
    slack: float = 0.5,  # noqa: PT028
    radius: str = "fixed",  # noqa: PT028
) -> float:
    """Corollary 1 and Theorem 3: rows that a test set needs before a chosen network can be trusted.

    If a network of `n_kept` out of `n_kernels` kernels, chosen in whatever way, misclassifies at most a share
    ``(1 - slack) * error`` of that many test rows, its true error exceeds `error` with probability at most `doubt`.

    Parameters
    ----------
    n_kernels : int
        Kernels to choose from, N.
    n_kept : int
        Kernels chosen, K.
    error : float
        The error to certify, in (0, 1).
    doubt : float, default=0.05
        Probability that the certificate is wrong, in (0, 1).
    slack : float, default=0.5
        How far below `error` the test error must stay, in (0, 1].
    radius : {"fixed", "chosen"}, default="fixed"
        Whether the radius was fixed beforehand (Corollary 1) or chosen on the test set too (Theorem 3).

    Returns
    -------
    n_rows : float
        Rows needed; round up.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.test_size(n_kernels=1000, n_kept=20, error=0.1, doubt=0.05, slack=0.5), 1)
    8098.9
    >>> round(bounds.test_size(n_kernels=1000, n_kept=20, error=0.1, doubt=0.05, slack=0.5, radius="chosen"))
    1207957
    """
    _check_counts(n_kernels, n_kept, radius)
    check_share("error", error)
    check_share("doubt", doubt)
    _check_slack(slack)
    scale = slack**2 * error
    if radius == "fixed":
        return 2 * (log_networks(n_kernels, n_kept) + math.log(1 / doubt)) / scale
    return test_size_for_capacity(
        capacity(n_kernels, n_kept), error=error, doubt=doubt, slack=slack
    )


def test_size_for_capacity(
    capacity: float,
    *,
    error: float,
    doubt: float = 0.05,  # noqa: PT028
    slack: float = 0.5,  # noqa: PT028
) -> float:
    """Theorem 2: rows that a test set needs before a classifier chosen from a set of finite capacity can be trusted.

    If a classifier of the set, chosen in whatever way, misclassifies at most a share ``(1 - slack) * error`` of that many
    test rows, its true error exceeds `error` with probability at most `doubt`.

    Parameters
    ----------
    capacity : float
        Capacity (Vapnik-Chervonenkis dimension) of the set of classifiers, V, or a bound on it; at least 1.
    error : float
        The error to certify, in (0, 1).
    doubt : float, default=0.05
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
    check_share("error", error)
    check_share("doubt", doubt)
    _check_slack(slack)
    scale = slack**2 * error
    return max(8 / scale * math.log(8 / doubt), 16 * capacity / scale * math.log(16 / scale))


test_size_for_capacity.__test__ = False  # type: ignore[attr-defined]
test_size.__test__ = False  # type: ignore[attr-defined]  # imported into a test module, it is no test


def certified_error(
    *,
    n_rows: float,
    n_kernels: int,
    n_kept: int,
    doubt: float = 0.05,
    slack: float | None = 0.5,
    radius: str = "fixed",
    test_error: float = 0.0,
) -> float:
    """The inverse of `test_size`: the error that `n_rows` test rows certify for a network chosen on them.

    Parameters
    ----------
    n_rows : float
        Rows of the test set.
    n_kernels : int
        Kernels to choose from, N.
    n_kept : int
        Kernels chosen, K.
    doubt : float, default=0.05
        Probability that the certificate is wrong, in (0, 1).
    slack : float or None, default=0.5
        As in `test_size`. None uses Theorem 1 as it stands, with the `test_error` that was found; for a fixed radius only.
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
    >>> round(bounds.certified_error(n_rows=8098.9, n_kernels=1000, n_kept=20, doubt=0.05, slack=0.5), 4)
    0.1
    """
    _check_counts(n_kernels, n_kept, radius)
    check_share("doubt", doubt)
    if not n_rows > 0:
        raise KernelpoolError(f"n_rows must be positive; got {n_rows}.")
    if not 0 <= test_error <= 1:
        raise KernelpoolError(f"test_error must lie in [0, 1]; got {test_error}.")
    if slack is None:
        if radius != "fixed":
            raise KernelpoolError(
                "slack=None needs radius='fixed': Theorem 1 is about finitely many networks."
            )
        return min(
            1.0,
            _theorem_1(log_networks(n_kernels, n_kept) + math.log(1 / doubt), n_rows, test_error),
        )
    _check_slack(slack)

    def needed(error: float) -> float:
        return test_size(
            n_kernels=n_kernels, n_kept=n_kept, error=error, doubt=doubt, slack=slack, radius=radius
        )

    # a network with a greater error than both would have had to do better on the test rows than the bound allows
    found = test_error / (1 - slack) if slack < 1 else (1.0 if test_error else 0.0)
    return min(1.0, max(_falling_to(needed, n_rows), found))


def log_networks(n_kernels: int, n_kept: int) -> float:
    """K ln(eN/K), above the logarithm of the number of networks, N over K."""
    return n_kept * math.log(math.e * n_kernels / n_kept)


def capacity(n_kernels: int, n_kept: int) -> float:
    """V <= 2 (log2 K + K log2(eN/K)): capacity of networks of K out of N kernels with a common radius, at most.

    The capacity, or Vapnik-Chervonenkis dimension, is the largest number of rows that the networks can label in every way;
    `test_size_for_capacity` makes a test-set size of it.

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


def _theorem_1(log_odds: float, n_rows: float, test_error: float) -> float:
    """The largest error with (error - test_error) / sqrt(error) <= chi, where chi^2 = 2 ln(L / doubt) / m."""
    chi = math.sqrt(2 * log_odds / n_rows)
    return ((chi + math.sqrt(chi**2 + 4 * test_error)) / 2) ** 2


def _falling_to(needed: Callable[[float], float], n_rows: float) -> float:
    """The error in (0, 1) at which the falling function `needed` comes down to `n_rows`; 1 where it does not."""
    low, high = math.log(1e-300), math.log(1 - 1e-16)
    if needed(math.exp(high)) > n_rows:
        return 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(math.exp(middle)) > n_rows else (low, middle)
    return math.exp(high)


# -- sample compression -----------------------------------------------------------------------------------------------------


def compression_bound(
    *, n_rows: int, n_kept: int, n_errors: int, doubt: float = 0.05, n_choices: float = 1
) -> float:
    """Langford 2005, section 5: the error of a network made of `n_kept` of its own training rows, no other rows needed.

    Had the kept rows been named beforehand, the others would be a test set. They were not, so the bound is paid for every
    set of rows that might have been kept: the binomial bound over the `n_rows` - `n_kept` other rows, with a doubt of
    `doubt` / (`n_rows` * (`n_rows` over `n_kept`) * `n_choices`). It holds however the rows were picked, as long as the
    network depends on the training rows through those kept, and through the choices counted.

    Parameters
    ----------
    n_rows : int
        Training rows, kept and not.
    n_kept : int
        Rows that became kernels.
    n_errors : int
        Misclassified rows among those not kept.
    doubt : float, default=0.05
        Probability that the bound is wrong.
    n_choices : float, default=1
        Settings among which the training rows chose besides, for instance the number of radii; a list fixed beforehand.

    Returns
    -------
    error : float
        At most 1, which certifies nothing.

    Examples
    --------
    >>> from kernelpool import bounds
    >>> round(bounds.compression_bound(n_rows=5000, n_kept=10, n_errors=50, doubt=0.05), 3)
    0.039
    """
    check_share("doubt", doubt)
    if not 0 <= n_kept < n_rows:
        raise KernelpoolError(
            f"n_kept must lie in [0, n_rows - 1], here {n_rows - 1}; got {n_kept}."
        )
    if n_choices < 1:
        raise KernelpoolError(f"n_choices must be at least 1; got {n_choices}.")
    log_subsets = (
        math.lgamma(n_rows + 1) - math.lgamma(n_kept + 1) - math.lgamma(n_rows - n_kept + 1)
    )
    log_doubt = math.log(doubt) - math.log(n_rows) - log_subsets - math.log(n_choices)
    return _binomial_inverse(n_errors, n_rows - n_kept, log_doubt)


def log_binomial_cdf(k: int, n: int, p: float) -> float:
    """log P(X <= k) for n draws of probability p, exact far into the tail, where the probability itself is zero."""
    if k >= n or p <= 0:
        return 0.0
    if p >= 1:
        return -math.inf
    a, b, x = n - k, k + 1, 1 - p  # P(X <= k) = I_{1-p}(n - k, k + 1)
    if x < (a + 1) / (a + b + 2):
        return _log_beta_fraction(a, b, x)
    return math.log1p(-min(1 - 1e-16, math.exp(_log_beta_fraction(b, a, p))))


def _log_beta_fraction(a: float, b: float, x: float) -> float:
    """log I_x(a, b) by its continued fraction (DLMF 8.17.22), in Lentz's form; quick where x < (a + 1) / (a + b + 2)."""
    tiny = 1e-300
    front = (
        a * math.log(x)
        + b * math.log1p(-x)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        - math.log(a)
    )
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front + math.log(fraction)


def _binomial_inverse(n_errors: int, n_rows: int, log_doubt: float) -> float:
    """The largest p with log P(X <= n_errors) >= log_doubt: the binomial tail, inverted."""
    check_errors(n_errors, n_rows)
    if n_errors == n_rows:
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (
            (middle, high)
            if log_binomial_cdf(n_errors, n_rows, middle) >= log_doubt
            else (low, middle)
        )
    return high


# -- checks -------------------------------------------------------------------------------------------------------------


def check_errors(n_errors: int, n_rows: int) -> None:
    """There are no more errors than rows."""
    if n_rows < 0 or not 0 <= n_errors <= n_rows:
        raise KernelpoolError(f"n_errors must lie in [0, n_rows], here {n_rows}; got {n_errors}.")


def _check_counts(n_kernels: int, n_kept: int, radius: str) -> None:
    if radius not in RADII:
        raise KernelpoolError(f"radius must be 'fixed' or 'chosen'; got {radius!r}.")
    if n_kernels < (2 if radius == "chosen" else 1):
        raise KernelpoolError(
            f"n_kernels must be at least {2 if radius == 'chosen' else 1}; got {n_kernels}."
        )
    if not 1 <= n_kept <= n_kernels:
        raise KernelpoolError(f"n_kept must lie in [1, n_kernels], here {n_kernels}; got {n_kept}.")


def check_share(name: str, value: float) -> None:
    """A share lies between 0 and 1."""
    if not 0 < value < 1:
        raise KernelpoolError(f"{name} must lie between 0 and 1, both excluded; got {value}.")


def _check_slack(slack: float) -> None:
    if not 0 < slack <= 1:
        raise KernelpoolError(f"slack must lie in (0, 1]; got {slack}.")
