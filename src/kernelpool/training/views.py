r"""How networks of a pool that are no mixtures take a table: complete numbers, scaled, warped, in a
learned metric.

.. math:: z = A\, \frac{\psi_\lambda((x - m) / s) - m'}{s'}

with :math:`\psi_\lambda` the transform of Yeo and Johnson ("A new family of power transformations
to improve normality or symmetry", Biometrika 87(4), 2000), one exponent for each feature, fitted by
maximum likelihood. Categories are indicators.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..lbfgs import maximize
from ..networks.neighborhood import neighborhood_objective
from ..tables.columns import indicators_of

FARTHEST = 8.0
"""Warped features are clipped here, in standard deviations: beyond the training rows a power may
diverge.
"""

EXPONENTS, BISECTIONS = (-3.0, 5.0), 32
"""Range of the exponent of a warp, and how often it is halved."""

METRIC_ROWS = 600
"""A metric is learned on a sample of this many rows: its cost grows with their square."""

METRIC_STEPS = 25
METRIC_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class View:
    """A map of encoded rows without missing cells to the numbers that a network takes, (n, D)."""

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
    metric: np.ndarray | None = None
    """A linear map, (D, D); None for none."""

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Rows in this view, (n, D)."""
        z = (indicators_of(x, self.levels) - self.center) / self.scale
        if self.exponent is not None:
            z = (yeo_johnson(z, self.exponent) - self.warped_center) / self.warped_scale
            z = np.clip(z, -FARTHEST, FARTHEST)
        return z if self.metric is None else z @ self.metric.T


def yeo_johnson(u: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """psi_lambda, feature by feature: a power of 1 + u above zero, one of 1 - u, with 2 - lambda,
    below.
    """
    size, power = np.log1p(np.abs(u)), np.where(u >= 0, exponent, 2 - exponent)
    small = np.abs(power) < 1e-8
    return np.sign(u) * np.where(small, size, np.expm1(power * size) / np.where(small, 1, power))


def scaled_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...]) -> View:
    """Mean zero and variance one; a constant feature keeps its unit."""
    x = indicators_of(x, levels)
    center = weight @ x / weight.sum()
    variance = weight @ (x - center) ** 2 / weight.sum()
    constant = variance <= (8 * np.finfo(x.dtype).eps * np.abs(center)) ** 2
    return View(levels, center, np.where(constant, 1.0, np.sqrt(variance)))


def warped_view(x: np.ndarray, scaled: View) -> View:
    """The scaled view, warped by the exponents of the greatest likelihood."""
    z = scaled.transform(x)
    exponent = likely_exponents(z)
    warped = yeo_johnson(z, exponent)
    scale = warped.std(axis=0)
    return replace(
        scaled,
        exponent=exponent,
        warped_center=warped.mean(axis=0),
        warped_scale=np.where(scale > 1e-9, scale, 1.0),
    )


def likely_exponents(u: np.ndarray) -> np.ndarray:
    r"""The exponent of each feature at which the warped feature is most likely to be normal, (d,),
    within `EXPONENTS`.

    .. math::

        \ell(\lambda) = -\tfrac n2 \log \operatorname{var} \psi_\lambda(u)
            + (\lambda - 1) \sum_n \operatorname{sign}(u_n) \log(1 + |u_n|)

    Its slope is zero there, found by bisection for all features at once; a constant feature keeps
    1.
    """
    size, above, sign = np.log1p(np.abs(u)), u >= 0, np.sign(u)
    drift = (sign * size).mean(axis=0)
    low, high = (np.full(u.shape[1], end) for end in EXPONENTS)
    for _ in range(BISECTIONS):
        exponent = 0.5 * (low + high)
        power = np.where(above, exponent, 2 - exponent)
        power = np.where(np.abs(power) < 1e-8, 1e-8, power)
        grown = np.expm1(power * size)
        warped = sign * grown / power
        slope = (size * (1 + grown) - grown / power) / power  # of warped, by the exponent
        centered = warped - warped.mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rises = drift > (centered * slope).mean(axis=0) / (centered * centered).mean(axis=0)
        low, high = np.where(rises, exponent, low), np.where(rises, high, exponent)
    varies = u.std(axis=0) > 1e-12
    return np.where(varies, 0.5 * (low + high), 1.0)


def learned_metric(
    z: np.ndarray, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Neighborhood components of a sample of rows of a view, (d, d)."""
    chosen = np.sort(rng.permutation(len(z))[:METRIC_ROWS])
    z, codes, weight, d = z[chosen], codes[chosen], weight[chosen], z.shape[1]
    near = np.median([np.sort(((z - row) ** 2).sum(axis=1))[min(3, len(z) - 1)] for row in z[:200]])
    z = z / (np.sqrt(near) if near > 0 else 1.0)
    # exponentials of all pairs are the cost, and half as wide they take a third of it; far rows
    # would be infinitely far
    dtype, tol = (np.float32, 1e-6) if np.abs(z).max(initial=0.0) < 1e6 else (np.float64, 1e-9)
    z, weight = z.astype(dtype), weight.astype(dtype)

    def objective(a: np.ndarray) -> tuple[np.ndarray, float]:
        value, gradient = neighborhood_objective(
            a.reshape(d, d).astype(dtype), z, codes, weight, METRIC_RIDGE
        )
        return gradient.ravel().astype(np.float64), value

    return np.asarray(
        maximize(objective, np.eye(d).ravel(), max_iter=METRIC_STEPS, tol=tol).point.reshape(d, d)
    )
