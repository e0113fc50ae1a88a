r"""Views of the features: scaled, warped so that each looks normal, and seen in a learned metric.

.. math:: z = A\, \frac{\psi_\lambda((x - m) / s) - m'}{s'}

with :math:`\psi_\lambda` the transform of Yeo and Johnson ("A new family of power transformations to improve normality or
symmetry", Biometrika 87(4), 2000), one exponent a feature, fitted by likelihood. Every step is one to one, so that densities
stay densities: :math:`\log p(x) = \log p(z) + \log |dz / dx|`.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..lbfgs import maximize
from ..networks.neighborhood import neighborhood_objective
from ..tables.columns import indicators_of

FARTHEST = 8.0
"""Warped features are cut here, in standard deviations: beyond the training rows a power may run away."""

EXPONENTS, BISECTIONS = (-3.0, 5.0), 32
"""Between which the exponent of a warp is sought, and how often what is left is halved."""

METRIC_ROWS = 600
"""A metric is learned on a sample of this many rows: its cost grows with their square."""

METRIC_STEPS = 25
METRIC_RIDGE = 1e-3


@dataclass(frozen=True)
class Warp:
    """Yeo and Johnson's transform of every feature, then mean zero and variance one."""

    exponent: np.ndarray
    """(d,)."""
    center: np.ndarray
    """(d,)."""
    scale: np.ndarray
    """(d,)."""

    def transform(self, u: np.ndarray) -> np.ndarray:
        """Warped rows, (n, d)."""
        return np.clip(
            (yeo_johnson(u, self.exponent) - self.center) / self.scale, -FARTHEST, FARTHEST
        )

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """The way back, (n, d)."""
        return inverse_yeo_johnson(z * self.scale + self.center, self.exponent)

    def log_jacobian(self, u: np.ndarray) -> np.ndarray:
        """log |dz / du| of each row, (n,)."""
        slope = (
            (self.exponent - 1) * np.sign(u) * np.log1p(np.abs(u))
        )  # log of the derivative of psi
        return np.asarray(slope.sum(axis=1) - np.log(self.scale).sum())


@dataclass(frozen=True)
class View:
    """One view of the features; its parts are in the order of its steps."""

    center: np.ndarray
    """(d,)."""
    scale: np.ndarray
    """(d,)."""
    warp: Warp | None = None
    """None leaves the features straight."""
    metric: np.ndarray | None = None
    """A linear map, (d, d)."""
    levels: tuple[int, ...] | None = None
    """Of the columns of coded rows that it sees by indicators: d is then their number; None where all are numbers."""

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Rows in this view, (n, d)."""
        x = x if self.levels is None else indicators_of(x, self.levels)
        z = (x - self.center) / self.scale
        z = z if self.warp is None else self.warp.transform(z)
        return z if self.metric is None else z @ self.metric.T

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Rows of this view in the units of the data, (n, d)."""
        z = z if self.metric is None else np.linalg.solve(self.metric, z.T).T
        z = z if self.warp is None else self.warp.inverse(z)
        return z * self.scale + self.center

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        """log |dz / dx| of each row, (n,)."""
        if np.isnan(x).any():
            return self._log_jacobian_of_known(x)
        constant = -np.log(self.scale).sum()
        if self.metric is not None:
            constant += np.linalg.slogdet(self.metric)[1]
        if self.warp is None:
            return np.full(len(x), constant)
        return constant + self.warp.log_jacobian((x - self.center) / self.scale)

    def _log_jacobian_of_known(self, x: np.ndarray) -> np.ndarray:
        """The same of the cells that are known, (n,); a metric would mix them with the others."""
        assert self.metric is None
        slope = -np.log(self.scale) + np.where(np.isnan(x), np.nan, 0.0)  # (n, d)
        if self.warp is not None:
            u = (x - self.center) / self.scale
            slope = (
                slope
                + (self.warp.exponent - 1) * np.sign(u) * np.log1p(np.abs(u))
                - np.log(self.warp.scale)
            )
        return np.asarray(np.nansum(slope, axis=1))


def yeo_johnson(u: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """psi_lambda, feature by feature: a power of 1 + u above zero, one of 1 - u, with 2 - lambda, below."""
    size, power = np.log1p(np.abs(u)), np.where(u >= 0, exponent, 2 - exponent)
    small = np.abs(power) < 1e-8
    return np.sign(u) * np.where(small, size, np.expm1(power * size) / np.where(small, 1, power))


def inverse_yeo_johnson(z: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """The way back from `yeo_johnson`; what no row reaches becomes the farthest row there is."""
    power = np.where(z >= 0, exponent, 2 - exponent)
    small = np.abs(power) < 1e-8
    inside = np.maximum(power * np.abs(z), -1 + 1e-12)
    return np.sign(z) * np.expm1(
        np.where(small, np.abs(z), np.log1p(inside) / np.where(small, 1, power))
    )


def plain_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...] | None = None) -> View:
    """Mean zero and variance one; a constant feature keeps its unit."""
    x = x if levels is None else indicators_of(x, levels)
    center = weight @ x / weight.sum()
    variance = weight @ (x - center) ** 2 / weight.sum()
    constant = variance <= (8 * np.finfo(x.dtype).eps * np.abs(center)) ** 2
    return View(center, np.where(constant, 1.0, np.sqrt(variance)), levels=levels)


def indicator_view(levels: tuple[int, ...]) -> View:
    """Words as indicators, and nothing else."""
    d = indicators_of(np.zeros((1, len(levels))), levels).shape[1]
    return View(np.zeros(d), np.ones(d), levels=levels)


def warped_view(x: np.ndarray, plain: View) -> View:
    """The plain view, warped by the exponents of the greatest likelihood."""
    z = plain.transform(x)
    exponent = likely_exponents(z)
    warped = yeo_johnson(z, exponent)
    scale = warped.std(axis=0)
    return replace(
        plain, warp=Warp(exponent, warped.mean(axis=0), np.where(scale > 1e-9, scale, 1.0))
    )


def likely_exponents(u: np.ndarray) -> np.ndarray:
    r"""The exponent of each feature at which the warped feature is most likely to be normal, (d,), within `EXPONENTS`.

    .. math::

        \ell(\lambda) = -\tfrac n2 \log \operatorname{var} \psi_\lambda(u)
            + (\lambda - 1) \sum_n \operatorname{sign}(u_n) \log(1 + |u_n|)

    Its slope is taken to zero by bisection, for all features at once; a constant feature stays straight.
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
    # exponentials of all pairs are the cost, and half as wide they take a third of it; far rows would be infinitely far
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
