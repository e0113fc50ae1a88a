r"""Parzen networks from rows: kernels at the rows, their radius, and multi-edit.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991. The
mathematics is in `kernelpool.networks.parzen`; the reduction to few kernels is in
`kernelpool.training.parzen_reduction`. Rows are complete, and scaled and mapped as distances are to
be taken.

The radius is chosen by errors on rows left out (the paper), or for Gaussian kernels by log-loss:
each row is left out, together with its copies, and predicted by the votes of the others,

.. math:: P(C_k \mid x_i) \propto \Big(\sum_{j:\, x_j \ne x_i,\, y_j = k} w_j\, e^{-\|x_i - x_j\|^2 / 2 r^2}\Big)^{1/T}

and the width r and the temperature T are those with the least mean log-loss of the right class.
Votes of two classes are taken to differ by at most `LONGEST_ODDS`: otherwise the few rows that lie
among another class would ask for a temperature that blurs all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from ..networks.parzen import (
    ParzenParams,
    Profile,
    class_scores,
    each_row,
    log_prior_scale,
    squared_distances,
    wrong_rows,
)
from .cross_fit import Loss, held_out_loss
from .prepare import Labeled, mean_and_variance, merge_duplicates

LOO_ROWS, LOO_PAIRS = 4096, 1 << 24
"""Rows that are left out to choose a radius: a random sample of so many, or of so many pairs with
kernels.
"""

OCTAVE = 4
"""Radii are chosen from the powers of two to the 1/OCTAVE, a list that does not depend on the
data.
"""

MAX_RADII = 48

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

LONGEST_ODDS = math.log(1e12)
"""Tempered votes of two classes are taken to differ by no more than this: a narrow kernel is never
that sure of its class.
"""


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
    """Equal rows share a number, (n,)."""
    n_classes: int

    @classmethod
    def of(
        cls, rows: Labeled, index: np.ndarray, n_classes: int, *, merge: bool = False
    ) -> "ParzenRows":
        """Rows and their positions in X; with `merge`, equal rows of a class are one row of more
        weight.
        """
        if merge:
            rows, first = merge_duplicates(rows)
            index = index[first]
        group = np.unique(rows[0], axis=0, return_inverse=True)[1].ravel()
        return cls(*rows, index, group, n_classes)

    def merged(self) -> "ParzenRows":
        """Equal rows of a class as one row of more weight."""
        rows = self.x, self.codes, self.weight
        return ParzenRows.of(rows, self.index, self.n_classes, merge=True)

    def part(self, at: np.ndarray) -> "ParzenRows":
        """Some of the rows."""
        rows = self.x[at], self.codes[at], self.weight[at]
        return ParzenRows(*rows, self.index[at], self.group[at], self.n_classes)

    @property
    def variance(self) -> np.ndarray:
        """Of each feature, (d,)."""
        return mean_and_variance(self.x, self.weight)[1]


def network_at(
    rows: ParzenRows, at: np.ndarray, weight: np.ndarray, class_prior: np.ndarray | None
) -> tuple[np.ndarray, ParzenParams]:
    """The rows `at` as kernels of radius one, sorted by class: their positions, and the network."""
    order = np.argsort(rows.codes[at], kind="stable")
    at, weight = at[order], weight[order]
    votes = np.bincount(rows.codes[at], weight, minlength=rows.n_classes)
    return at, voting_params(rows.x[at], rows.codes[at], weight, votes, class_prior, rows.group[at])


def voting_params(
    center: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    votes: np.ndarray,
    class_prior: np.ndarray | None,
    group: np.ndarray,
) -> ParzenParams:
    """Kernels sorted by class; without a `class_prior` every vote counts the same, to the last bit:
    a tie is a tie.
    """
    offsets = tuple(np.searchsorted(codes, np.arange(len(votes) + 1)).tolist())
    if class_prior is not None:
        log_scale = log_prior_scale(class_prior, votes)
    else:
        log_scale = np.where(votes > 0, -math.log(votes.sum()), -np.inf)
    return ParzenParams(center, weight, offsets, log_scale, 1.0, group)


@dataclass(frozen=True)
class ParzenConfig:
    """What all networks of one fit have in common."""

    profile: Profile
    radius: float | None
    """None: chosen on rows left out."""
    class_prior: np.ndarray | None = None
    """None: every vote counts the same."""


@dataclass(frozen=True)
class ParzenNetwork:
    """Some rows as kernels."""

    at: np.ndarray
    """Positions of the kernels in the rows, sorted by class, (M,)."""
    params: ParzenParams
    radii: np.ndarray | None = None
    """Radii that were tried, falling, and the errors or losses of each."""
    errors: np.ndarray | None = None
    temperature: float = 1.0


def full_network(
    rows: ParzenRows,
    config: ParzenConfig,
    rng: np.random.RandomState,
    held_out: ParzenRows | None = None,
) -> ParzenNetwork:
    """A kernel at every row; the radius as given, or with the fewest errors on rows left out or
    held out.
    """
    at, params = network_at(rows, np.arange(len(rows.x)), rows.weight, config.class_prior)
    if config.radius is not None:
        return ParzenNetwork(at, replace(params, radius=config.radius))
    query, own = (rows, rows.group) if held_out is None else (held_out, no_group(held_out))
    radius, radii, errors = choose_radius(params, rows, query, own, config.profile, rng)
    return ParzenNetwork(at, replace(params, radius=radius), radii, errors)


def no_group(rows: ParzenRows) -> np.ndarray:
    """For rows that are no kernels, (n,)."""
    return np.full(len(rows.x), -1)


# -- the radius with the fewest errors -------------------------------------------------------------


def candidate_radii(profile: Profile, variance: np.ndarray, weight: float) -> np.ndarray:
    """Candidates, falling, from the fixed list: from the spread of the data to less than a row's
    distance from the next.
    """
    d = len(variance)
    spread = math.sqrt(variance.sum()) * profile.largest_radius(d)
    if not spread > 0:
        return np.ones(1)
    smallest = 0.5 * spread * max(weight, 2.0) ** (-1 / min(d, 2))
    high = math.floor(OCTAVE * math.log2(spread))
    low = max(math.floor(OCTAVE * math.log2(smallest)), high - MAX_RADII + 1)
    return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)


def choose_radius(
    params: ParzenParams,
    rows: ParzenRows,
    query: ParzenRows,
    own: np.ndarray,
    profile: Profile,
    rng: np.random.RandomState,
    ease: float = 0.0,
) -> tuple[float, np.ndarray, np.ndarray]:
    """The radius with the fewest errors on `query`, of several the middle one; all candidates, and
    their errors.

    With some `ease`, the largest radius whose errors are within so many standard errors of the
    fewest: it covers more.
    """
    radii = candidate_radii(profile, rows.variance, rows.weight.sum())
    wrong, total = errors_by_radius(params, radii, query, own, profile, rng)
    share, fewest = wrong / total, float(wrong.min())
    if ease:
        # wrong rows are added up in another order than all: their ratio may exceed one
        allowed = fewest + ease * math.sqrt(max(0.0, fewest * (1 - fewest / total)))
        return float(radii[np.argmax(wrong <= allowed)]), radii, share
    best = np.flatnonzero(wrong <= fewest * (1 + 1e-12))
    return float(radii[best[(len(best) - 1) // 2]]), radii, share


def errors_by_radius(
    params: ParzenParams,
    radii: np.ndarray,
    query: ParzenRows,
    own: np.ndarray,
    profile: Profile,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, float]:
    """Weight of the misclassified rows of `query` at each radius, (R,), and of all; or of a random
    part where pairs of rows and kernels are too many.
    """
    at, most = np.arange(len(query.x)), max(LOO_ROWS, LOO_PAIRS // len(params.center))
    if len(at) > most:
        at = np.sort(rng.choice(at, most, replace=False))
    some, narrowest = query.part(at), replace(params, radius=float(radii[-1]))
    at_radii = partial(wrong_rows, profile=profile, params=narrowest, radii=radii.tolist())
    wrong = each_row(at_radii, some.x, some.codes, own[at])
    return some.weight @ wrong, float(some.weight.sum())


# -- the width with the least log-loss -------------------------------------------------------------


def conditional_network(
    rows: ParzenRows,
    class_prior: np.ndarray | None,
    rng: np.random.RandomState,
    held_out: ParzenRows | None = None,
) -> ParzenNetwork:
    """Gaussian kernels at every row, of the width and temperature with the least log-loss on rows
    left out or held out.
    """
    at, params = network_at(rows, np.arange(len(rows.x)), rows.weight, class_prior)
    distinct = rows.merged()  # a row of weight two is the row twice
    some = network_at(distinct, np.arange(len(distinct.x)), distinct.weight, class_prior)[1]
    query, own = distinct, distinct.group
    if held_out is not None:
        query, own = held_out, no_group(held_out)
    votes = _votes(some, query, own, rng)
    spread = math.sqrt(rows.variance.mean()) or 1.0
    if votes is None:  # no class has a second row
        nothing = np.array([spread]), np.array([np.nan])
        return ParzenNetwork(at, replace(params, radius=spread), *nothing)
    unit = max(votes.third_neighbor(), NEAREST * spread)
    tried: dict[float, Loss] = {}

    def loss_at(log_radius: float) -> float:
        loss = tried[float(math.exp(log_radius))] = votes.loss(math.exp(log_radius))
        return loss.mean(loss.tempered)

    grid = np.log(unit * GRID)
    best = int(np.argmin([loss_at(point) for point in grid]))
    step = grid[1] - grid[0]
    bounds = grid[best] - step, grid[best] + step
    options = {"maxiter": REFINEMENTS, "xatol": 0.02}
    minimize_scalar(loss_at, bounds=bounds, method="bounded", options=options)
    radii = np.array(sorted(tried))
    losses = np.array([tried[radius].mean(tried[radius].tempered) for radius in radii])
    radius = float(radii[np.argmin(losses)])
    temperature = 1 / tried[radius].beta
    return ParzenNetwork(at, replace(params, radius=radius), radii, losses, temperature)


def _votes(
    params: ParzenParams, query: ParzenRows, own: np.ndarray, rng: np.random.RandomState
) -> "_Votes | None":
    """Votes on the rows of `query`, or on a sample; None if no row has a kernel of its class
    left.
    """
    codes = params.codes
    of_class = np.bincount(codes, minlength=params.n_classes)[query.codes]
    pairs, counts = np.unique(np.stack([params.group, codes]), axis=1, return_counts=True)
    copies = dict(zip(map(tuple, pairs.T.tolist()), counts.tolist(), strict=True))
    in_group = [copies.get(p, 0) for p in zip(own.tolist(), query.codes.tolist(), strict=True)]
    at = np.flatnonzero(of_class > np.array(in_group))
    most = min(WIDTH_ROWS, max(WIDTH_ROWS // 5, LOO_PAIRS // len(params.center)))
    if len(at) > most:
        at = np.sort(rng.choice(at, most, replace=False))
    return _Votes(params, query.part(at), own[at]) if len(at) else None


class _Votes:
    """Votes on some rows at any width: distances are taken once, each less the least of its
    class.
    """

    def __init__(self, params: ParzenParams, query: ParzenRows, own: np.ndarray) -> None:
        self.codes, self.weight, self.log_scale = query.codes, query.weight, params.log_scale
        self.votes = np.asarray(params.weight, np.float32)
        self.spans = [slice(*params.offsets[k : k + 2]) for k in range(params.n_classes)]
        n, n_kernels = len(query.x), len(params.center)
        self.away = np.empty((n, n_kernels), np.float32)
        self.least, self.third = np.zeros((n, len(self.spans))), np.empty(n)
        step, third = max(1, (1 << 21) // n_kernels), min(2, n_kernels - 1)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            squared = np.maximum(squared_distances(query.x[rows], params.center, params.narrow), 0)
            squared[own[rows][:, None] == params.group] = np.inf
            self.third[rows] = np.partition(squared, third, axis=1)[:, third]
            for k, span in enumerate(self.spans):
                if span.start < span.stop:
                    least = squared[:, span].min(axis=1)
                    self.least[rows, k] = least
                    squared[:, span] -= np.where(np.isfinite(least), least, 0.0)[:, None]
            self.away[rows] = squared

    def third_neighbor(self) -> float:
        """The median distance to the third neighbor, or to the last where there are fewer."""
        finite = self.third[np.isfinite(self.third)]
        return math.sqrt(float(np.median(finite))) if len(finite) else 0.0

    def loss(self, radius: float) -> Loss:
        """Log-losses of the rows, as they are and at the temperature that suits them best."""
        scale = -0.5 / radius**2
        joint = np.full(self.least.shape, -np.inf)
        for k, span in enumerate(self.spans):
            if span.start < span.stop:
                height = self.away[:, span] * np.float32(scale)
                np.exp(height, out=height)
                with np.errstate(divide="ignore"):
                    joint[:, k] = np.log(height @ self.votes[span]) + scale * self.least[:, k]
        joint += self.log_scale
        joint = np.maximum(joint, joint.max(axis=1, keepdims=True) - LONGEST_ODDS)
        return held_out_loss(joint, self.codes, self.weight)


# -- predictions -----------------------------------------------------------------------------------


def tempered_scores(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Class scores (n, K) at a temperature, up to a constant of the row; a temperature of one
    leaves them as they are.
    """
    if temperature == 1:
        return scores
    away = np.nan_to_num(scores - scores.max(axis=1, keepdims=True), neginf=-np.inf)
    return np.maximum(away, -LONGEST_ODDS) / temperature


def leave_one_out_scores(profile: Profile, params: ParzenParams, temperature: float) -> np.ndarray:
    """log P(C_k|x) of every kernel's own row by the kernels at other points, (M, K): copies of a
    row are left out with it.
    """
    center, weight = params.center, params.weight
    of_class = np.eye(params.n_classes)[params.codes]
    found = np.empty_like(of_class)
    step = max(1, (1 << 21) // len(center))
    for start in range(0, len(center), step):
        rows = slice(start, start + step)
        squared = np.maximum(squared_distances(center[rows], center, params.narrow), 0)
        log_height = np.asarray(profile.log_height(squared / params.radius**2))
        log_height[params.group[rows][:, None] == params.group] = -np.inf
        peak = log_height.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            votes = np.log((np.exp(log_height - peak) * weight) @ of_class)
        joint = votes + peak + params.log_scale
        reached = np.isfinite(joint.max(axis=1, keepdims=True))
        joint = tempered_scores(np.where(reached, joint, 0.0), temperature)
        found[rows] = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return found


def predicted_codes(params: ParzenParams, profile: Profile, x: np.ndarray) -> np.ndarray:
    """The class of each row, (n,)."""
    return each_row(lambda x: class_scores(x, profile, params).argmax(axis=1), x)


# -- editing ---------------------------------------------------------------------------------------


def multi_edit(
    codes: np.ndarray,
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rng: np.random.RandomState,
    *,
    n_splits: int = 3,
    n_iter_no_change: int = 3,
    max_iter: int = 100,
) -> tuple[np.ndarray, np.ndarray, bool, np.ndarray]:
    """Steps 1-5 of the paper; `predict(train, test)` are codes of the rows `test` by those of
    `train`.

    Returns the positions of the rows that are left, rising; the number of rows after each round,
    from all of them on; whether the last rounds dropped nothing; and the codes of classes of which
    a round would have dropped every row.
    """

    def is_right(test: np.ndarray, train: np.ndarray) -> np.ndarray:
        present = np.unique(codes[train])  # most classifiers refuse to learn from one class
        predicted = present[0] if len(present) == 1 else predict(train, test)
        return np.asarray(codes[test] == predicted)

    left, history, unchanged = np.arange(len(codes)), [len(codes)], 0
    spared: set[int] = set()
    while unchanged < n_iter_no_change and len(history) <= max_iter and len(left) >= n_splits:
        parts = np.array_split(rng.permutation(left), n_splits)
        kept = np.concatenate(
            [part[is_right(part, parts[(i + 1) % n_splits])] for i, part in enumerate(parts)]
        )
        lost = np.setdiff1d(np.unique(codes[left]), np.unique(codes[kept]))
        if len(lost):  # no round may take a whole class away
            spared |= set(lost.tolist())
            kept = np.concatenate([kept, left[np.isin(codes[left], lost)]])
        unchanged = unchanged + 1 if len(kept) == len(left) else 0
        left = kept
        history.append(len(left))
    converged = unchanged >= n_iter_no_change
    return np.sort(left), np.array(history), converged, np.array(sorted(spared), int)
