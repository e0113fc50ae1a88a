r"""The radius of a Parzen network.

It is chosen by errors on rows left out, or on validation rows (the paper), or for Gaussian kernels
by log-loss: each row is left out, together with its copies, and predicted by the votes of the
others,

.. math:: P(C_k \mid x_i) \propto \Big(\sum_{j:\, x_j \ne x_i,\, y_j = k}
    w_j\, e^{-\|x_i - x_j\|^2 / 2 r^2}\Big)^{1/T}

and the width r and the temperature T are those with the least mean log-loss of the right class.
Votes of two classes are taken to differ by at most `LONGEST_ODDS`: otherwise the few rows that lie
among another class would ask for a temperature that blurs all.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..arrays import safe_log, squared_distances
from ..data.folds import Loss, held_out_loss
from ..data.labels import Labeled, merge_duplicates
from ..data.scale import mean_and_variance
from .network import LONGEST_ODDS, ParzenParams, Profile, each_row, near_copies, nearest_votes

LOO_ROWS = 4096
"""Rows that are left out to choose a radius: a random sample of so many, or of more where pairs
with kernels are fewer than `LOO_PAIRS`."""

LOO_PAIRS = 1 << 24
"""Pairs of rows left out and kernels beyond which rows are sampled."""

OCTAVE = 4
"""Radii are chosen from the powers of two to the 1/OCTAVE, a list that does not depend on the
data.
"""

MAX_RADII = 48
"""Radii that are tried at most."""

WIDTH_ROWS = 1500
"""Most rows that are left out to choose a width; fewer where pairs with kernels would be more than
`LOO_PAIRS`.
"""

GRID = np.exp(np.linspace(-1.6, 1.6, 8))
"""Widths that are tried first, in units of the median distance to the third neighbor."""

NEAREST = 0.05
"""The unit is at least this part of the features' deviation: many rows may stand at one place."""

REFINEMENTS = 6
"""Further widths, between the neighbors of the best of the grid."""

BLOCK_PAIRS = 1 << 21
"""Pairs of which distances are taken at a time."""


# -- rows and kernels ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParzenRows:
    """Labeled rows in the space in which distances are taken."""

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    index: np.ndarray
    """Positions of the rows in X, (n,)."""
    group: np.ndarray
    """Rows of equal `row_keys` share a number, (n,); -1 for rows that never become kernels."""
    n_classes: int

    @classmethod
    def of(cls, rows: Labeled, index: np.ndarray, n_classes: int) -> "ParzenRows":
        """Rows and their positions in X."""
        return cls(*rows, index, near_copies(rows[0], rows[2]), n_classes)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, at: np.ndarray) -> "ParzenRows":
        """Some of the rows."""
        return ParzenRows(
            self.x[at],
            self.codes[at],
            self.weight[at],
            self.index[at],
            self.group[at],
            self.n_classes,
        )

    def merged(self) -> "ParzenRows":
        """Equal rows of a class as one row of more weight."""
        (*_, weight), first = merge_duplicates((self.x, self.codes, self.weight))
        return replace(self.take(first), weight=weight)

    def sampled(self, most: int, rng: np.random.RandomState) -> "ParzenRows":
        """The rows, or a random part of them if there are more than `most`."""
        if len(self) <= most:
            return self
        return self.take(np.sort(rng.choice(len(self), most, replace=False)))


@dataclass(frozen=True)
class Trial:
    """Some of the rows as kernels, and how well they predict."""

    index: np.ndarray
    """Positions of the kernels in X, sorted by class, (M,)."""
    params: ParzenParams
    radii: np.ndarray | None = None
    """Radii that were tried."""
    errors: np.ndarray | None = None
    """Of each radius, the share of rows that are misclassified."""
    losses: np.ndarray | None = None
    """Of each radius, the log-loss, where that is what chose."""
    temperature: float = 1.0
    error: float = math.nan
    """On the training rows, none voting for itself; or on validation rows."""
    candidates: np.ndarray | None = None
    """Positions of the rows from which the kernels of a reduced network were chosen."""
    criterion: np.ndarray | None = None
    """Mean ln(p_K / p_N) over those rows of each class."""

    def at_radius(self, radius: float) -> "Trial":
        """The same kernels with another radius."""
        return replace(self, params=replace(self.params, radius=radius))


def trial_of(
    rows: ParzenRows,
    profile: Profile,
    class_prior: np.ndarray | None,
    *,
    equal: bool = False,
) -> Trial:
    """Rows as kernels of radius one, with their weights as votes, or with `equal` ones."""
    own = rows.take(np.argsort(rows.codes, kind="stable"))
    # equal weights become ones: they add up exactly, and a tie is a tie
    alike = equal or (own.weight == own.weight[0]).all()
    weight = np.ones(len(rows)) if alike else own.weight
    votes = np.bincount(own.codes, weight, minlength=rows.n_classes)
    of_vote = 1 / votes.sum()
    if class_prior is not None:
        of_vote = class_prior / np.where(votes > 0, votes, 1.0)
    log_scale = np.where(votes > 0, safe_log(of_vote), -np.inf)
    offsets = tuple(np.searchsorted(own.codes, np.arange(rows.n_classes + 1)).tolist())
    return Trial(
        own.index, ParzenParams(profile, own.x, weight, offsets, log_scale, group=own.group)
    )


# -- the radius with the fewest errors -------------------------------------------------------------


def candidate_radii(profile: Profile, rows: ParzenRows) -> np.ndarray:
    """Candidates, falling, from the fixed list: from the spread of the data to less than a row's
    distance from the next.
    """
    variance = mean_and_variance(rows.x, rows.weight)[1]
    d = len(variance)
    # the largest has the variance of a ball with the spread of the rows as its radius
    spread = math.sqrt(variance.sum() / ((d + 2) * profile.variance(d)))
    if not spread > 0:
        return np.ones(1)
    smallest = 0.5 * spread * max(rows.weight.sum(), 2.0) ** (-1 / min(d, 2))
    high = math.floor(OCTAVE * math.log2(spread) + 1e-9)  # standardized rows lie on a step
    low = max(math.floor(OCTAVE * math.log2(smallest)), high - MAX_RADII + 1)
    return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)


def with_fewest_errors(
    trial: Trial,
    radii: np.ndarray,
    query: ParzenRows,
    rng: np.random.RandomState,
    ease: float = 0.0,
) -> Trial:
    """The kernels at the radius with the fewest errors on `query`, of several the middle one.

    With some `ease`, the largest radius whose errors are within so many standard errors of the
    fewest: it covers more. Where pairs of rows and kernels are too many, a random part of the rows
    counts.
    """
    query = query.sampled(max(LOO_ROWS, LOO_PAIRS // len(trial.index)), rng)
    narrowest = trial.at_radius(float(radii[-1])).params
    at_radii = partial(wrong_rows, params=narrowest, radii=radii.tolist())
    wrong = query.weight @ each_row(at_radii, query.x, query.codes, query.group)  # (R,)
    total = float(query.weight.sum())
    fewest = float(wrong.min())
    if ease:
        # wrong rows are added up in another order than all: their ratio may exceed one
        allowed = fewest + ease * math.sqrt(max(0.0, fewest * (1 - fewest / total)))
        best = int(np.argmax(wrong <= allowed))
    else:
        least = np.flatnonzero(wrong <= fewest * (1 + 1e-12))
        best = int(least[(len(least) - 1) // 2])
    trial = trial.at_radius(float(radii[best]))
    return replace(trial, radii=radii, errors=wrong / total, error=fewest / total)


def wrong_rows(
    x: np.ndarray, label: np.ndarray, own: np.ndarray, params: ParzenParams, radii: list[float]
) -> np.ndarray:
    """Whether each row is misclassified at every radius, (n, R), from one pass over the distances.

    `label` is the class of each row, `own` its group or -1: kernels of that group, the row itself
    and its copies, do not vote on it.
    """
    votes = np.zeros((len(radii), len(x), params.n_classes))
    for k, tile in params.tiles():
        # float32 is many times faster, and enough to choose by
        squared = params.squared(x, tile, own).astype(np.float32)
        weight = params.weight[tile].astype(np.float32)
        for i, radius in enumerate(radii):
            votes[i, :, k] += params.profile.height(squared * (1 / radius**2)) @ weight
    uncovered = votes.max(axis=2) == 0  # (R, n)
    rows = uncovered.any(axis=0)
    if rows.any():
        nearest = np.zeros(votes.shape[1:])
        nearest[rows] = nearest_votes(x[rows], params, own[rows])
        votes = np.where(uncovered[:, :, None], nearest, votes)
    most = (votes * np.exp(params.log_scale - params.log_scale.max())).argmax(axis=2)
    return (most != label).T


# -- the width with the least log-loss -------------------------------------------------------------


def with_least_loss(trial: Trial, query: ParzenRows, rng: np.random.RandomState) -> Trial:
    """Gaussian kernels at the width and temperature with the least log-loss on `query`."""
    params = trial.params
    most = min(WIDTH_ROWS, max(WIDTH_ROWS // 5, LOO_PAIRS // len(params.center)))
    query = query.sampled(most, rng)
    distances = left_out_distances(params, query)
    reached = np.isfinite(distances.least[np.arange(len(query)), query.codes])
    weight = np.where(reached, query.weight, 0.0)
    spread = math.sqrt(mean_and_variance(params.center, params.weight)[1].mean()) or 1.0
    if not weight.any():  # no class has a second row
        nothing = np.array([np.nan])
        return replace(trial.at_radius(spread), radii=np.array([spread]), losses=nothing)
    unit = max(distances.third, NEAREST * spread)
    tried: dict[float, Loss] = {}

    def loss_at(log_radius: float) -> float:
        radius = math.exp(log_radius)
        loss = tried[radius] = held_out_loss(distances.joint(params, radius), query.codes, weight)
        return loss.mean(loss.tempered)

    grid = np.log(unit * GRID)
    best = int(np.argmin([loss_at(point) for point in grid]))
    step = grid[1] - grid[0]
    minimize_scalar(
        loss_at,
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"maxiter": REFINEMENTS, "xatol": 0.02},
    )
    radii = np.array(sorted(tried))
    losses = np.array([tried[radius].mean(tried[radius].tempered) for radius in radii])
    radius = float(radii[np.argmin(losses)])
    temperature = 1 / tried[radius].beta
    return replace(trial.at_radius(radius), radii=radii, losses=losses, temperature=temperature)


class Distances(NamedTuple):
    """Distances of rows from the kernels of other groups, from which votes at any width follow."""

    beyond: np.ndarray
    """Squared distances, each less the least of the kernel's class, (n, M) float32."""
    least: np.ndarray
    """Least squared distance of each class, (n, K)."""
    third: float
    """The median distance to the third neighbor, or to the last where there are fewer."""

    def joint(self, params: ParzenParams, radius: float) -> np.ndarray:
        """log P(C_k) p(x|C_k) up to a constant of the row at a width, (n, K)."""
        scale = -0.5 / radius**2
        votes = np.asarray(params.weight, np.float32)
        joint = scale * self.least
        for k in range(joint.shape[1]):
            span = slice(*params.offsets[k : k + 2])
            height = self.beyond[:, span] * np.float32(scale)
            np.exp(height, out=height)
            with np.errstate(divide="ignore"):
                joint[:, k] += np.log(height @ votes[span])
        joint += params.log_scale
        return np.maximum(joint, joint.max(axis=1, keepdims=True) - LONGEST_ODDS)


def left_out_distances(params: ParzenParams, query: ParzenRows) -> Distances:
    """Distances of rows from kernels; every class has some."""
    n = len(query)
    n_kernels = len(params.center)
    beyond = np.empty((n, n_kernels), np.float32)
    least = np.empty((n, params.n_classes))
    third = np.empty(n)
    rank = min(2, n_kernels - 1)
    step = max(1, BLOCK_PAIRS // n_kernels)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        squared = np.maximum(squared_distances(query.x[rows], params.center, params.narrow), 0)
        squared[query.group[rows][:, None] == params.group] = np.inf
        third[rows] = np.partition(squared, rank, axis=1)[:, rank]
        least[rows] = np.minimum.reduceat(squared, params.offsets[:-1], axis=1)
        finite = np.where(np.isfinite(least[rows]), least[rows], 0.0)
        beyond[rows] = squared - finite[:, params.codes]
    third = third[np.isfinite(third)]
    return Distances(beyond, least, math.sqrt(np.median(third)) if len(third) else 0.0)
