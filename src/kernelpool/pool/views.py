r"""Views: how the members of a pool take rows.

========================  ==========================================================================
a view                    its rows
========================  ==========================================================================
"codes"                   as `Columns.encode` makes them: codes of categories, NaN for missing cells
"table"                   as they were passed to `fit` or `predict`
"complete table"          the same with missing cells imputed
"scaled", "warped"        complete numbers, see `View`; missing cells are imputed
========================  ==========================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..complete.imputation import averaged
from ..data.folds import take_rows
from ..data.scale import mean_and_variance
from ..records import saved
from ..rows import map_over_threads
from ..tables.columns import Columns, indicators_of

EXPONENTS = (-3.0, 5.0)
"""Range of the exponent of a warp."""

BISECTIONS = 32
"""How often that range is halved."""

ROWS_AT_ONCE = 8_192
"""Rows that are predicted at a time."""

UNIMPUTED = ("codes", "table")
"""The views in which rows keep their missing cells."""

TABLES = ("table", "complete table")
"""The views for classifiers of any kind; the others are for those of this library."""


@saved(eq=False)
class View:
    r"""A map of encoded rows without missing cells to the numbers that a network takes, (n, D).

    .. math:: z = \frac{\psi_\lambda((x - m) / s) - m'}{s'}

    with :math:`\psi_\lambda` the transform of Yeo and Johnson ("A new family of power
    transformations to improve normality or symmetry", Biometrika 87(4), 2000), one exponent for
    each feature, fitted by maximum likelihood. Categories are indicators.
    """

    LIMIT: ClassVar[float] = 8.0
    """Warped features are clipped here, in standard deviations: beyond the training rows a power
    may diverge.
    """

    levels: tuple[int, ...]
    """`Columns.levels`."""
    center: np.ndarray
    """(D,)."""
    scale: np.ndarray
    """(D,)."""
    exponent: np.ndarray | None = None
    """Of the warp, (D,); None for no warp."""
    warped_center: np.ndarray | None = None
    """(D,)."""
    warped_scale: np.ndarray | None = None
    """(D,)."""

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Rows in this view, (n, D)."""
        return np.asarray(self.warp((indicators_of(x, self.levels) - self.center) / self.scale))

    def warp(self, z: Any) -> Any:
        """Standardized features, warped if the view is, (n, D)."""
        if self.exponent is None:
            return z
        z = (yeo_johnson(z, self.exponent) - self.warped_center) / self.warped_scale
        return z.clip(-self.LIMIT, self.LIMIT)


def scaled_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...]) -> View:
    """Mean zero and variance one; a constant feature keeps its unit."""
    return View(levels, *_location_and_scale(indicators_of(x, levels), weight))


def warped_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...]) -> View:
    """The scaled view, warped by the exponents of the greatest likelihood."""
    scaled = scaled_view(x, weight, levels)
    z = scaled.transform(x)
    exponent = likely_exponents(z, weight / weight.sum())
    center, scale = _location_and_scale(yeo_johnson(z, exponent), weight)
    return replace(scaled, exponent=exponent, warped_center=center, warped_scale=scale)


def _location_and_scale(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    center, variance = mean_and_variance(x, weight)
    return center, np.sqrt(np.where(variance > 0, variance, 1.0))


def yeo_johnson(u: Any, exponent: np.ndarray) -> Any:
    """psi_lambda, feature by feature: a power of 1 + u above zero, one of 1 - u, with 2 - lambda,
    below.
    """
    size = np.log1p(np.abs(u))
    power = np.where(u >= 0, exponent, 2 - exponent)
    small = np.abs(power) < 1e-8
    return np.sign(u) * np.where(small, size, np.expm1(power * size) / np.where(small, 1, power))


def likely_exponents(u: np.ndarray, share: np.ndarray) -> np.ndarray:
    r"""The exponent of each feature at which the warped feature is most likely to be normal, (d,),
    within `EXPONENTS`.

    .. math::

        \ell(\lambda) = -\tfrac12 \log \operatorname{var} \psi_\lambda(u)
            + (\lambda - 1) \sum_n \text{share}_n \operatorname{sign}(u_n) \log(1 + |u_n|)

    Its slope is zero there, found by bisection for all features at once; a constant feature keeps
    1.
    """
    size = np.log1p(np.abs(u))
    above = u >= 0
    sign = np.sign(u)
    drift = share @ (sign * size)
    low = np.full(u.shape[1], EXPONENTS[0])
    high = np.full(u.shape[1], EXPONENTS[1])
    for _ in range(BISECTIONS):
        exponent = 0.5 * (low + high)
        power = np.where(above, exponent, 2 - exponent)
        power = np.where(np.abs(power) < 1e-8, 1e-8, power)
        grown = np.expm1(power * size)
        warped = sign * grown / power
        slope = (size * (1 + grown) - grown / power) / power  # of warped, by the exponent
        centered = warped - share @ warped
        with np.errstate(invalid="ignore", divide="ignore"):
            rises = drift > share @ (centered * slope) / (share @ (centered * centered))
        low = np.where(rises, exponent, low)
        high = np.where(rises, high, exponent)
    return np.where(np.ptp(u, axis=0) > 1e-12, 0.5 * (low + high), 1.0)


VIEWS = {"scaled": scaled_view, "warped": warped_view}
"""How the views of complete numbers are fitted: functions of rows, weights and levels."""


@dataclass(frozen=True, eq=False)
class ViewedRows:
    """Rows as the members of a pool take them."""

    x: np.ndarray
    """Encoded, (n, d); NaN for missing cells."""
    table: Any
    """As they were passed; None where they came as codes."""
    columns: Columns
    """Of the table."""
    views: dict[str, View]
    """Those of complete numbers that are fitted."""
    draws: np.ndarray | None = None
    """Imputations of the rows with missing cells, (S, m, d); None where nothing is imputed."""

    def take(self, at: np.ndarray) -> "ViewedRows":
        """The rows at some positions, which rise."""
        x, table = take_rows((self.x, self.table), at)
        draws = self.draws
        if draws is not None:
            incomplete = np.flatnonzero(np.isnan(self.x).any(axis=1))
            draws = draws[:, np.isin(incomplete, at)]
        return replace(self, x=x, table=table, draws=draws)

    def in_view(self, view: str, complete: np.ndarray) -> Any:
        """The rows in a view; `complete` are the encoded rows with missing cells imputed."""
        if view == "codes":
            return self.x
        if view == "table":
            return self.columns.decode(self.x) if self.table is None else self.table
        if view == "complete table":
            return self.columns.decode(complete)
        return self.views[view].transform(complete)

    def averaged(self, view: str, answer: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Log-probabilities `answer` of the rows in a view, (n, ...); where it imputes, their mean
        over imputations.
        """
        n = len(self.x)
        if n > ROWS_AT_ONCE:
            blocks = np.split(np.arange(n), range(ROWS_AT_ONCE, n, ROWS_AT_ONCE))
            # one BLAS thread each: several wait for each other longer than they compute
            answers = map_over_threads(lambda at: self.take(at).averaged(view, answer), blocks)
            return np.concatenate(answers)
        if view in UNIMPUTED:
            return answer(self.in_view(view, self.x))
        return averaged(
            self.x, self.draws, lambda complete: answer(self.in_view(view, complete)), log=True
        )
