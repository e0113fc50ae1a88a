r"""The width of Gaussian Parzen kernels at which they tell classes apart best.

Each row in turn is left out and judged by the votes of the others,

.. math:: P(C_k \mid x_i) \propto \Big(\sum_{j \ne i:\, y_j = k} w_j\, e^{-\|x_i - x_j\|^2 / 2 r^2}\Big)^{1/T}

and the width r and the temperature T are those with the least mean log-loss of the right class. Likelihood would ask how well
the kernels describe the rows; this asks how well they tell them apart. Votes of two classes are taken to differ by at most
`LONGEST_ODDS`: otherwise the few rows that lie among another class would ask for a temperature that blurs all.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ..networks.parzen_kernels import observed_distances, squared_distances
from .held_out import Loss, held_out_loss
from .parzen import LONGEST_ODDS, FittedParzen, ParzenRows, kernels_at, own_kernels

JUDGES, PAIRS = 1500, 1 << 24
"""Most rows that are left out, a random sample where there are more; fewer where pairs with kernels would be too many."""

GRID = np.exp(np.linspace(-1.6, 1.6, 8))
"""Widths that are tried first, in units of the median distance to the third neighbor."""

NEAREST = 0.05
"""The unit is at least this part of the features' deviation: many rows may stand at one place."""

REFINEMENTS = 6
"""Further widths, between the neighbors of the best of the grid."""


@dataclass(frozen=True)
class WidthChoice:
    """A width, its temperature, and what was tried on the way."""

    radius: float
    temperature: float
    radii: np.ndarray
    """Rising."""
    losses: np.ndarray
    """Log-loss a row at each."""


def choose_width(
    data: ParzenRows,
    class_prior: np.ndarray | None,
    rng: np.random.RandomState,
    held_out: ParzenRows | None = None,
) -> WidthChoice:
    """The width and temperature with the least log-loss on `held_out`, or on rows of `data`, each left out of the votes."""
    data = data.merge_duplicates()  # a row of weight two is the row twice
    network = kernels_at(data, np.arange(len(data.x)), data.weight, class_prior)
    own = own_kernels(data.codes) if held_out is None else np.full(len(held_out.x), -1)
    votes = _Votes.of(network, data if held_out is None else held_out, own, rng)
    spread = math.sqrt(data.variance.mean()) or 1.0
    if votes is None:  # no class has a second row
        return WidthChoice(spread, 1.0, np.array([spread]), np.array([np.nan]))
    unit = max(votes.third_neighbor(), NEAREST * spread)
    tried: dict[float, Loss] = {}

    def loss_at(log_radius: float) -> float:
        loss = tried[float(math.exp(log_radius))] = votes.loss(math.exp(log_radius))
        return loss.mean(loss.tempered)

    grid = np.log(unit * GRID)
    losses = [loss_at(point) for point in grid]
    best = int(np.argmin(losses))
    step = grid[1] - grid[0]
    minimize_scalar(
        loss_at,
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"maxiter": REFINEMENTS, "xatol": 0.02},
    )
    radii = np.array(sorted(tried))
    means = np.array([tried[radius].mean(tried[radius].tempered) for radius in radii])
    radius = float(radii[np.argmin(means)])
    return WidthChoice(radius, 1 / tried[radius].beta, radii, means)


class _Votes:
    """Votes on some rows at any width: distances are taken once, each less the least of its class."""

    def __init__(
        self,
        network: FittedParzen,
        x: np.ndarray,
        own: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        params = network.params(1.0)
        self.unit, self.codes, self.weight = float(network.frame.unit[0]), codes, weight
        self.log_scale, self.votes = (
            np.asarray(params.log_scale),
            np.asarray(params.weight, np.float32),
        )
        self.spans = [
            slice(params.offsets[k], params.offsets[k + 1]) for k in range(params.n_classes)
        ]
        inside = np.asarray(network.frame.inside(np.asarray(x, np.float64)))
        self.away = np.empty((len(x), len(network.kernels)), np.float32)
        self.least = np.zeros((len(x), len(self.spans)))
        third = []
        step = max(1, (1 << 21) // len(network.kernels))
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            squared = np.maximum(
                _distances(inside[rows], np.asarray(params.center), params.narrow), 0
            )
            mine = np.flatnonzero(own[rows] >= 0)
            squared[mine, own[rows][mine]] = np.inf
            third.append(
                np.partition(squared, min(2, squared.shape[1] - 1), axis=1)[
                    :, min(2, squared.shape[1] - 1)
                ]
            )
            for k, span in enumerate(self.spans):
                if span.start < span.stop:
                    self.least[rows, k] = squared[:, span].min(axis=1)
                    squared[:, span] -= self.least[rows, k][:, None]
            self.away[rows] = squared
        self.third = np.concatenate(third)
        again = (
            np.where(own >= 0, np.asarray(network.weight, np.float64)[own], 0.0) - 1
        )  # other copies of the row itself
        with np.errstate(divide="ignore"):
            self.again = np.log(np.maximum(again, 0.0))

    @classmethod
    def of(
        cls, network: FittedParzen, query: ParzenRows, own: np.ndarray, rng: np.random.RandomState
    ) -> "_Votes | None":
        """Votes on the rows of `query`, or on a sample; None if no row has a kernel of its class left."""
        counts = np.bincount(network.codes, minlength=len(network.votes))[query.codes]
        at = np.flatnonzero(counts > (own >= 0))
        most = min(JUDGES, max(JUDGES // 5, PAIRS // len(network.kernels)))
        if len(at) > most:
            at = np.sort(rng.choice(at, most, replace=False))
        return (
            cls(network, query.judged[at], own[at], query.codes[at], query.weight[at])
            if len(at)
            else None
        )

    def third_neighbor(self) -> float:
        """The median distance to the third neighbor, or to the last where there are fewer."""
        finite = self.third[np.isfinite(self.third)]
        return self.unit * math.sqrt(float(np.median(finite))) if len(finite) else 0.0

    def log_joint(self, radius: float) -> np.ndarray:
        """log of what the classes get of the votes, (n, K)."""
        scale = -0.5 * (self.unit / radius) ** 2
        joint = np.full(self.least.shape, -np.inf)
        for k, span in enumerate(self.spans):
            if span.start < span.stop:
                height = self.away[:, span] * np.float32(scale)
                np.exp(height, out=height)
                joint[:, k] = np.log(height @ self.votes[span]) + scale * self.least[:, k]
        own = np.arange(len(joint)), self.codes
        joint[own] = np.logaddexp(joint[own], self.again)
        joint += self.log_scale
        return np.maximum(joint, joint.max(axis=1, keepdims=True) - LONGEST_ODDS)

    def loss(self, radius: float) -> Loss:
        """Log-losses of the rows, as they are and at the temperature that suits them best."""
        return held_out_loss(self.log_joint(radius), self.codes, self.weight)


def _distances(x: np.ndarray, center: np.ndarray, narrow: bool) -> np.ndarray:
    """Squared, along the features that are known of each row, (n, M); what is missing counts the same for all kernels."""
    observed = ~np.isnan(x)
    if observed.all():
        return np.asarray(squared_distances(x, center, narrow))
    return np.asarray(observed_distances(x, observed.astype(np.float64), center, narrow))
