r"""Which rows a full Gaussian may matter to, told before its densities are worked out.

The squared distance :math:`q_j(x) = (x - \mu_j)' P_j (x - \mu_j)` is convex, so it lies above its tangent at any point a, by at
least as much as its least curvature says:

.. math:: q_j(x) \ge q_j(a) + 2 (a - \mu_j)' P_j (x - a) + \lambda_j \lVert x - a \rVert^2, \qquad
    \lambda_j = 1 / \lVert \Sigma_j \rVert \le \lambda_{min}(P_j)

With the mean of a near kernel for a, a product of d + 1 numbers bounds the density of a kernel in a row, which itself takes d²
of them. Kernels whose share in a row must be below 1e-17 are left out of it: where clusters lie apart that is nearly all. Some
rows are looked at first: where most kernels count in them, every density is worked out.
"""

import math
from collections.abc import Callable

from ..arrays import LOG_ZERO, Array, is_numpy_array, namespace
from ..sums import record

LOG_NEGLIGIBLE = math.log(1e-17)
"""A kernel with less than this share in a row is left out of it."""

FEWEST_KERNELS, MOST_NUMBERS = 8, 1 << 22
"""Tangents are made of so many kernels at least, and of so many numbers at most."""

N_PROBE_ROWS, WORTHWHILE = 64, 0.5
"""Densities are left out where at most this part of the pairs counts in some rows that are looked at first."""


@record
class Tangents:
    """log p(x|j) <= level[g, j] + slope[g, j] . (x - mean_g, |x - mean_g|²)."""

    mean: Array
    """(M, d)."""
    level: Array
    """(M, M)."""
    slope: Array
    """(M, M, d + 1)."""


def tangents(mean: Array, covariance: Array, whitening: Array, log_peak: Array) -> Tangents | None:
    """Of all kernels at the means of all, from W with W' W = P, (M, d, d), and log p(mean_j|j), (M,)."""
    xp, (n_kernels, d) = namespace(mean), mean.shape
    if (
        not is_numpy_array(mean)
        or n_kernels < FEWEST_KERNELS
        or n_kernels * n_kernels * (d + 1) > MOST_NUMBERS
    ):
        return None
    norm = xp.minimum(
        xp.sum(covariance**2, axis=(1, 2)) ** 0.5,
        xp.max(xp.sum(xp.abs(covariance), axis=2), axis=1),
    )
    level, slope = [], []
    for j in range(n_kernels):
        white = (mean - mean[j, :]) @ whitening[j, ...].T  # (M, d)
        level.append(log_peak[j] - 0.5 * xp.vecdot(white, white))
        bend = xp.zeros_like(white[:, :1]) - 0.5 / norm[j]
        slope.append(xp.concat([-(white @ whitening[j, ...]), bend], axis=1))
    return Tangents(mean, xp.stack(level, axis=1), xp.stack(slope, axis=1))


Density = Callable[[int, Array], Array]
"""log p(x|j) of one kernel and some rows, (n,)."""


def write_near(log_joint: Array, found: Tangents, density: Density, x: Array, more: Array) -> bool:
    """log p(x|j) + `more` (M, n), written where it counts and log 0 elsewhere; False, and nothing, where that does not pay."""
    n = x.shape[0]
    some = slice(0, n, max(1, n // N_PROBE_ROWS))
    _, probe = _near(log_joint[:, some], found, density, x[some, :], more[:, some])
    xp = namespace(x)
    if float(xp.mean(xp.astype(probe, xp.float64))) > WORTHWHILE:
        return False
    log_joint[...] = LOG_ZERO
    order, near = _near(log_joint, found, density, x, more)
    for j in range(more.shape[0]):
        rows = order[near[j, :]]
        if rows.shape[0]:
            log_joint[j, rows] = density(j, x[rows, :]) + more[j, rows]
    return True


def _near(
    log_joint: Array, found: Tangents, density: Density, x: Array, more: Array
) -> tuple[Array, Array]:
    """Rows in the order of their nearest kernel, (n,), and in that order which other kernels may count in them, (M, n).

    What the nearest kernel says is written into `log_joint`.
    """
    xp, mean = namespace(x), found.mean
    nearest = xp.argmax(x @ mean.T + (more.T - 0.5 * xp.vecdot(mean, mean)), axis=1)
    order = xp.argsort(nearest, stable=True)
    ends = xp.searchsorted(xp.take(nearest, order), xp.arange(mean.shape[0] + 1))
    near = xp.zeros(more.shape, dtype=xp.bool)
    for g in range(mean.shape[0]):
        span = slice(int(ends[g]), int(ends[g + 1]))
        if span.start == span.stop:
            continue
        rows = order[span]
        mine, rest = x[rows, :], more[:, rows]
        away = mine - mean[g, :]
        away = xp.concat([away, xp.vecdot(away, away)[:, None]], axis=1)  # (n, d + 1)
        own = density(g, mine) + rest[g, :]
        upper = found.slope[g, ...] @ away.T + (found.level[g, :][:, None] + rest)  # (M, n)
        near[:, span] = ~(upper < own + LOG_NEGLIGIBLE)  # what is no number counts
        near[g, span] = False
        log_joint[g, rows] = own
    return order, near
