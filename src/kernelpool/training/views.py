r"""Views of the features: scaled, warped so that each looks normal, and seen in a learned metric.

.. math:: z = A\, \frac{\psi_\lambda((x - m) / s) - m'}{s'}

with :math:`\psi_\lambda` the transform of Yeo and Johnson ("A new family of power transformations to improve normality or
symmetry", Biometrika 87(4), 2000), one exponent a feature, fitted by likelihood. Every step is one to one, so that densities
stay densities: :math:`\log p(x) = \log p(z) + \log |dz / dx|`.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.preprocessing import PowerTransformer

from ..networks.neighborhood import neighborhood_objective
from ..solvers.lbfgs import maximize

FARTHEST = 8.0
"""Warped features are cut here, in standard deviations: beyond the training rows a power may run away."""

METRIC_ROWS = 800
"""A metric is learned on a sample of this many rows: its cost grows with their square."""

METRIC_STEPS = 30
METRIC_RIDGE = 1e-3


@dataclass(frozen=True)
class View:
    """One view of the features; the arrays are in the order of its steps."""

    center: np.ndarray
    """(d,)."""
    scale: np.ndarray
    """(d,)."""
    exponent: np.ndarray | None = None
    """Of the warp, (d,); None leaves the features straight."""
    warped_center: np.ndarray | None = None
    warped_scale: np.ndarray | None = None
    metric: np.ndarray | None = None
    """(d, d), or None."""

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Rows in this view, (n, d)."""
        z = (x - self.center) / self.scale
        if self.exponent is not None:
            z = np.clip((yeo_johnson(z, self.exponent) - self.warped_center) / self.warped_scale, -FARTHEST, FARTHEST)
        return z if self.metric is None else z @ self.metric.T

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Rows of this view in the units of the data, (n, d)."""
        if self.metric is not None:
            z = np.linalg.solve(self.metric, z.T).T
        if self.exponent is not None:
            z = inverse_yeo_johnson(z * self.warped_scale + self.warped_center, self.exponent)
        return z * self.scale + self.center

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        """log |dz / dx| of each row, (n,)."""
        log_volume = np.full(len(x), -np.log(self.scale).sum())
        if self.exponent is not None:
            u = (x - self.center) / self.scale
            slope = (self.exponent - 1) * np.sign(u) * np.log1p(np.abs(u))  # log of the derivative of psi
            log_volume += slope.sum(axis=1) - np.log(self.warped_scale).sum()
        return log_volume if self.metric is None else log_volume + np.linalg.slogdet(self.metric)[1]

    def with_metric(self, metric: np.ndarray) -> "View":
        """The same view, followed by a linear map."""
        return replace(self, metric=metric)


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
    return np.sign(z) * np.expm1(np.where(small, np.abs(z), np.log1p(inside) / np.where(small, 1, power)))


def plain_view(x: np.ndarray, weight: np.ndarray) -> View:
    """Mean zero and variance one; a constant feature keeps its unit."""
    center = weight @ x / weight.sum()
    variance = weight @ (x - center) ** 2 / weight.sum()
    constant = variance <= (8 * np.finfo(x.dtype).eps * np.abs(center)) ** 2
    return View(center, np.where(constant, 1.0, np.sqrt(variance)))


def warped_view(x: np.ndarray, plain: View) -> View:
    """The plain view, warped by the exponents of the greatest likelihood; a feature whose fit fails stays straight."""
    z = plain.transform(x)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # features of few values have no exponent; they are found below
        exponent = PowerTransformer(standardize=False).fit(z).lambdas_
    exponent = np.where(np.isfinite(exponent), np.clip(exponent, -3, 5), 1.0)
    warped = yeo_johnson(z, exponent)
    scale = warped.std(axis=0)
    return replace(plain, exponent=exponent, warped_center=warped.mean(axis=0), warped_scale=np.where(scale > 1e-9, scale, 1.0))


def learned_metric(z: np.ndarray, codes: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Neighborhood components of a sample of rows of a view, (d, d)."""
    chosen = np.sort(rng.permutation(len(z))[:METRIC_ROWS])
    z, codes, weight, d = z[chosen], codes[chosen], weight[chosen], z.shape[1]
    near = np.median([np.sort(((z - row) ** 2).sum(axis=1))[min(3, len(z) - 1)] for row in z[:200]])
    unit = np.sqrt(near) if near > 0 else 1.0

    def objective(a: np.ndarray) -> tuple[np.ndarray, float]:
        value, gradient = neighborhood_objective(a.reshape(d, d), z / unit, codes, weight, METRIC_RIDGE)
        return gradient.ravel(), value

    return np.asarray(maximize(objective, np.eye(d).ravel(), max_iter=METRIC_STEPS).point.reshape(d, d))
