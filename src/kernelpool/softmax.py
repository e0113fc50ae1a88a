"""Softmax and logarithms of weighted sums of exponentials, with no underflow and little waiting.

Taking the largest exponent of a row off is safe and slow. So exponentials are summed as they are,
and only where the sums show that exp left its range is the safe way gone.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .arrays import (
    Array,
    exp_at_least,
    logsumexp,
    namespace,
    on_accelerator,
    safe_log,
    without_overflow_warnings,
)

N_PROBE_ROWS = 8
"""Rows at which a block is looked at before it is worked on."""


@lru_cache
def _exponents(xp: Any, dtype: Any) -> tuple[float, float]:
    """(largest exponent that may be summed, smallest one whose exponential is a normal number)."""
    info = xp.finfo(dtype)
    return 0.85 * math.log(float(info.max)), 0.98 * math.log(float(info.smallest_normal))


def responsibilities(
    make_log_joint: Callable[[], Array], weight: Array | None
) -> tuple[Array, Array]:
    """Softmax over the kernels times the weight of the row, (M, n), and log sum exp, (n,).

    What `make_log_joint` (M, n) makes is overwritten. Exponents too small for a normal number are
    raised to the smallest normal one: denormal numbers make the product that follows 5-10 times
    slower, and what is added (1e-40 of a row) is far below rounding. The largest exponent of a row
    is taken off only where exp would leave its range, which shows in the sums: then everything is
    made once more. A few rows are looked at first, so that this seldom happens.
    """
    log_joint = make_log_joint()
    xp = namespace(log_joint)
    n = log_joint.shape[1]
    if n == 0:
        return log_joint, xp.zeros_like(log_joint[0, :])
    # a look makes an accelerator wait, where a maximum costs next to nothing
    likelihood = None if on_accelerator(log_joint) else exp_within_range(log_joint)
    if likelihood is not None:
        total = sums_within_range(lambda: xp.sum(likelihood, axis=0))
        if total is not None:
            return _normalized(likelihood, total, weight), xp.log(total)
        log_joint = make_log_joint()
    peak = xp.max(log_joint, axis=0)
    log_joint -= peak
    likelihood = exp_at_least(log_joint, _exponents(xp, log_joint.dtype)[1])
    total = xp.sum(likelihood, axis=0)
    return _normalized(likelihood, total, weight), xp.log(total) + peak


def exp_within_range(log_terms: Array) -> Array | None:
    """exp(log_terms) (M, n), written over them, or None if the largest terms of some rows looked at
    leave the range of exp.

    Terms too small for a normal number are raised to the smallest normal one, see
    `responsibilities`.
    """
    xp = namespace(log_terms)
    n = log_terms.shape[1]
    largest, smallest = _exponents(xp, log_terms.dtype)
    if not n:
        return None
    peak = xp.max(log_terms[:, :: max(1, n // N_PROBE_ROWS)], axis=0)
    if not -0.5 * largest <= float(xp.min(peak)) <= float(xp.max(peak)) <= largest:
        return None
    with without_overflow_warnings():
        return exp_at_least(log_terms, smallest)


def sums_within_range(make_sums: Callable[[], Array]) -> Array | None:
    """Sums of what `exp_within_range` returns; None where they are infinite, or made of terms that
    were raised.
    """
    with without_overflow_warnings():
        sums = make_sums()
    xp = namespace(sums)
    largest, _ = _exponents(xp, sums.dtype)
    lowest = math.exp(-0.5 * largest)
    in_range = float(xp.max(sums)) <= math.exp(largest) and float(xp.min(sums)) >= lowest
    return sums if in_range else None


def _normalized(likelihood: Array, total: Array, weight: Array | None) -> Array:
    likelihood *= (1 / total) if weight is None else weight / total
    return likelihood


def shares_of(log_terms: Array, axis: int) -> Array:
    """exp(log_terms) made to sum to one along an axis, exactly: at -1e17 a logarithm of the sum
    would be rounded away.
    """
    xp = namespace(log_terms)
    largest = xp.max(log_terms, axis=axis, keepdims=True)
    terms = xp.exp(log_terms - xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest)))
    return terms / xp.sum(terms, axis=axis, keepdims=True)


def log_weighted_sums(log_terms: Array, shares: Array) -> Array:
    """log sum_j shares[j, k] exp(log_terms[j, n]), (K, n), with no underflow.

    One matrix product serves all k. The largest term of a row is taken off only where exp would
    leave its range; and only the rows in which some k vanishes beside the largest term are done
    again, one k at a time.
    """
    xp = namespace(log_terms)
    n = log_terms.shape[1]
    if n == 0:
        return shares.T @ log_terms
    density = exp_within_range(xp.asarray(log_terms, copy=True))
    if density is not None:
        sums = sums_within_range(lambda: shares.T @ density)
        if sums is not None:
            return xp.log(sums)
    _, smallest = _exponents(xp, log_terms.dtype)
    peak = xp.max(log_terms, axis=0)
    sums = shares.T @ exp_at_least(log_terms - peak, smallest)  # (K, n)
    vanished = xp.min(sums, axis=0) < math.exp(smallest / 2)
    result = xp.log(xp.where(sums > 0, sums, xp.ones_like(sums))) + peak
    if bool(xp.any(vanished)):
        (rows,) = xp.nonzero(vanished)
        again = _one_by_one(xp.take(log_terms, rows, axis=1), shares)
        # the standard knows no assignment by index: every row is sent to its place in `again`, if
        # it has one
        place = xp.clip(xp.cumulative_sum(xp.astype(vanished, xp.int64)) - 1, min=0)
        result = xp.where(vanished, xp.take(again, place, axis=1), result)
    return result


def _one_by_one(log_terms: Array, shares: Array) -> Array:
    """`log_weighted_sums`, one k after the other, of no more than the terms that have a share in
    it.
    """
    xp = namespace(log_terms)
    log_shares = safe_log(shares)
    sums = []
    for k in range(shares.shape[1]):
        terms = log_terms
        log_share = log_shares[:, k]
        (index,) = xp.nonzero(shares[:, k] > 0)
        if 0 < index.shape[0] < shares.shape[0]:
            terms = xp.take(terms, index, axis=0)
            log_share = xp.take(log_share, index)
        sums.append(logsumexp(terms + log_share[:, None], axis=0))
    return xp.stack(sums)
