r"""Imputations of missing cells from one small mixture, for the networks that take complete numbers
alone.

.. math:: x_h \sim \sum_j P(j \mid x_o)\, p(x_h \mid x_o, j)

with :math:`x_o` the known cells of a row and :math:`x_h` the missing ones. All rows share the
points of one low-discrepancy sequence, a coordinate for the kernel and one for each feature, so
that the imputations of a row depend on the row alone. The one copy on which a network is trained
takes points that are made from the content of each row instead: shared points would give all rows
the same quantile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from ..data.door import TrainingData, surveyed
from ..mixtures.fit import MixtureSettings, fit_shared_kernel
from ..mixtures.fitted import ClassDensities
from ..rows import as_rows
from ..rows.sample import content_key, sample_rows

N_DRAWS = 8
"""Imputations of a row, over which predictions are averaged."""

MOST_SAMPLED = 1000
"""Rows that the mixture is fitted to, about."""

ROWS_A_FEATURE = 20
"""Rows for each feature that a kernel needs."""

MOST_IMPUTER_KERNELS = 6

MOST_FULL = 40
"""Numbers up to which kernels have full covariances."""

LOG_OF_LEAST = -745.0
"""Below it exp is zero: logarithms of zero are averaged as if they were this small."""


def imputation_mixture(data: TrainingData, seed: int = 0) -> ClassDensities:
    """A small mixture of encoded rows, whose cells may be missing; it takes no labels."""
    data = data.as_one_class()
    rows: Any = data.rows
    if len(rows.x) > MOST_SAMPLED:
        ((x, weight),) = sample_rows(rows, 1, seed, MOST_SAMPLED)
        rows = as_rows(x, np.zeros(len(x), np.int64), weight)
    if rows is not data.rows or data.scale.clips:  # clipped by classes
        data = surveyed(rows, data.classes, data.columns)
    n_numbers = sum(not n for n in data.columns.levels)
    family = "full" if n_numbers <= MOST_FULL else "tied"
    x = rows.x if rows.weight is None else rows.x[np.asarray(rows.weight) > 0]
    n_distinct = len(np.unique(content_key(data.scale.frame.inside(x), 0)))
    n_kernels = int(np.clip(n_distinct // (ROWS_A_FEATURE * x.shape[1]), 1, MOST_IMPUTER_KERNELS))
    settings = MixtureSettings(
        n_kernels, family, covariance_floor=1e-3, max_iter=50, tol=1e-3, seed=seed
    )
    fitted, *_ = fit_shared_kernel(data, settings.suited(data.columns.levels))
    return fitted.network


def imputations(mixture: ClassDensities, x: np.ndarray, n_draws: int = N_DRAWS) -> np.ndarray:
    """Rows with their missing cells drawn, (n_draws, n, d): a function of each row alone."""
    n, d = x.shape
    points = np.clip(_sequence(n_draws, 1 + d), 1e-6, 1 - 1e-6)
    drawn = _draw(mixture, np.tile(x, (n_draws, 1)), np.repeat(points, n, axis=0))
    return drawn.reshape(n_draws, n, d)


def _draw(mixture: ClassDensities, x: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Encoded rows (n, d) whose missing cells are drawn by numbers in (0, 1), (n, 1 + d)."""
    return mixture.imputed(x, drawn=(uniform[:, 0], ndtri(uniform[:, 1:])))


def draws_of(mixture: ClassDensities | None, x: np.ndarray) -> np.ndarray | None:
    """`imputations` of the rows that have missing cells, (N_DRAWS, m, d); None where there are none,
    or no mixture.
    """
    incomplete = np.isnan(x).any(axis=1)
    if mixture is None or not incomplete.any():
        return None
    return imputations(mixture, x[incomplete])


def averaged(
    x: np.ndarray,
    draws: np.ndarray | None,
    answer: Callable[[np.ndarray], np.ndarray],
    *,
    log: bool = False,
) -> np.ndarray:
    """`answer` of encoded rows, (n, ...); of rows with missing cells its mean over imputations.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Encoded rows; NaN for missing cells.
    draws : ndarray of shape (S, m, d) or None
        `imputations` of the m rows with missing cells; None where there are none.
    answer : callable
        Of complete encoded rows, row by row.
    log : bool
        Whether answers are logarithms; the mean is then that of what they are logarithms of.
    """
    if draws is None:
        return answer(x)
    incomplete = np.isnan(x).any(axis=1)
    of_draws = answer(draws.reshape(-1, x.shape[1]))
    of_draws = of_draws.reshape(len(draws), -1, *of_draws.shape[1:])
    if log:
        mean = logsumexp(np.maximum(of_draws, LOG_OF_LEAST), axis=0) - np.log(len(draws))
    else:
        mean = of_draws.mean(axis=0)
    out = np.empty((len(x), *mean.shape[1:]))
    out[incomplete] = mean
    if not incomplete.all():
        out[~incomplete] = answer(x[~incomplete])
    return out


def _sequence(n: int, d: int) -> np.ndarray:
    """Points in the unit cube, (n, d): Sobol's sequence, scrambled."""
    if d > qmc.Sobol.MAXDIM:
        return np.random.default_rng(0).random((n, d))
    return qmc.Sobol(d, rng=0).random(n)


def imputed(mixture: ClassDensities, x: np.ndarray) -> np.ndarray:
    """One copy of the rows with their missing cells drawn, (n, d): equal rows are drawn alike, in
    any order.
    """
    incomplete = np.isnan(x).any(axis=1)
    if not incomplete.any():
        return x
    out = x.copy()
    key = content_key(mixture.frame.inside(x[incomplete]), 0)[:, None] * 2.0**20
    uniform = np.column_stack([content_key(key, i) for i in range(1 + x.shape[1])])
    out[incomplete] = _draw(mixture, x[incomplete], uniform)
    return out
