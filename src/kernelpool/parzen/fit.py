r"""Parzen networks from rows: kernels at the rows, their radius, multi-edit, and the reduction to
few kernels.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991. The
mathematics is in `kernelpool.parzen.network`. Rows are complete, and scaled as distances are to be
taken.

The radius is chosen by errors on rows left out, or on validation rows (the paper), or for Gaussian
kernels by log-loss: each row is left out, together with its copies, and predicted by the votes of
the others,

.. math:: P(C_k \mid x_i) \propto \Big(\sum_{j:\, x_j \ne x_i,\, y_j = k}
    w_j\, e^{-\|x_i - x_j\|^2 / 2 r^2}\Big)^{1/T}

and the width r and the temperature T are those with the least mean log-loss of the right class.
Votes of two classes are taken to differ by at most `LONGEST_ODDS`: otherwise the few rows that lie
among another class would ask for a temperature that blurs all.

The smallest size of a reduced network that suffices is found by cross-validation. The network of
all rows is then another one than those that were scored, and networks of few kernels differ: it
must pass on the training rows too, or is made larger until it does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ..arrays import squared_distances
from ..data.folds import Loss, cross_fit, held_out_loss, row_keys, stratified_folds
from ..data.labels import Labeled, merge_duplicates
from ..data.scale import mean_and_variance
from ..errors import KernelpoolError
from .network import (
    ParzenParams,
    Profile,
    Reducer,
    class_scores,
    each_row,
    log_votes,
    voting_params,
    wrong_rows,
)

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


HALVES = range(9)
"""Densities are compared at the full network's radius times 2^(h/2) for one of these h."""

TRIAL_ROWS, TRIAL_SWEEPS = 4096, 3
"""Rows, or eight times the kernels to be kept if that is more, and sweeps of exchanges of a quick
trial.
"""

EASE = 0.25
"""Standard errors by which a reduced network may err more, on the training rows, for the sake of a
larger radius.
"""

N_CANDIDATES, MAX_SWEEPS, TOLERANCE = 64, 10, 1e-3
"""Rows tried in the place of a kernel, passes of exchanges, and the gain of a pass below which
exchanges end.
"""

N_FOLDS = 4
"""Folds in which sizes are tried."""

HOPELESS = 3.0
"""Standard errors beyond the tolerance at which a size is given up before every fold has scored
it.
"""

Editor = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows and codes to the positions of the rows that are kept."""


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

    def merged(self) -> "ParzenRows":
        """Equal rows of a class as one row of more weight."""
        rows, first = merge_duplicates((self.x, self.codes, self.weight))
        return ParzenRows(*rows, self.index[first], self.group[first], self.n_classes)

    def part(self, at: np.ndarray) -> "ParzenRows":
        """Some of the rows."""
        rows = self.x[at], self.codes[at], self.weight[at]
        return ParzenRows(*rows, self.index[at], self.group[at], self.n_classes)

    @property
    def variance(self) -> np.ndarray:
        """Of each feature, (d,)."""
        return mean_and_variance(self.x, self.weight)[1]


def near_copies(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A number for each row, (n,), the same for those that are left out together."""
    return np.unique(row_keys(x, weight), return_inverse=True)[1].ravel()


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
    error: float = math.nan
    """On the training rows, none voting for itself; or on validation rows."""
    pool: np.ndarray | None = None
    """Positions of the rows from which the kernels of a reduced network were chosen."""
    criterion: np.ndarray | None = None
    """Mean ln(p_K / p_N) over those rows of each class."""


def network_at(
    rows: ParzenRows, at: np.ndarray, class_prior: np.ndarray | None, *, equal: bool = False
) -> ParzenNetwork:
    """The rows `at` as kernels of radius one, with their weights as votes, or with `equal` ones."""
    at = at[np.argsort(rows.codes[at], kind="stable")]
    some = rows.part(at)
    weight = np.ones(len(at)) if equal else some.weight
    params = voting_params(some.x, some.codes, weight, some.group, rows.n_classes, class_prior)
    return ParzenNetwork(at, params)


def full_network(
    rows: ParzenRows,
    config: ParzenConfig,
    rng: np.random.RandomState,
    validation: ParzenRows | None = None,
) -> ParzenNetwork:
    """A kernel at every row; the radius as given, or with the fewest errors on rows left out or on
    validation rows.
    """
    network = network_at(rows, np.arange(len(rows.x)), config.class_prior)
    if config.radius is not None:
        return replace(network, params=replace(network.params, radius=config.radius))
    distinct = rows.merged()  # a row of weight two is the row twice
    chosen = network_at(distinct, np.arange(len(distinct.x)), config.class_prior)
    chosen = with_radius(chosen, distinct, validation or distinct, config, rng)
    params = replace(network.params, radius=chosen.params.radius)
    return replace(chosen, at=network.at, params=params)


# -- the radius with the fewest errors -------------------------------------------------------------


def candidate_radii(profile: Profile, rows: ParzenRows) -> np.ndarray:
    """Candidates, falling, from the fixed list: from the spread of the data to less than a row's
    distance from the next.
    """
    variance = rows.variance
    d = rows.x.shape[1]
    # the largest has the variance of a ball with the spread of the rows as its radius
    spread = math.sqrt(variance.sum() / ((d + 2) * profile.variance(d)))
    if not spread > 0:
        return np.ones(1)
    smallest = 0.5 * spread * max(rows.weight.sum(), 2.0) ** (-1 / min(d, 2))
    high = math.floor(
        OCTAVE * math.log2(spread) + 1e-9
    )  # standardized rows lie on a step of the list
    low = max(math.floor(OCTAVE * math.log2(smallest)), high - MAX_RADII + 1)
    return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)


def with_radius(
    network: ParzenNetwork,
    rows: ParzenRows,
    query: ParzenRows,
    config: ParzenConfig,
    rng: np.random.RandomState,
    ease: float = 0.0,
) -> ParzenNetwork:
    """The network at the given radius, or at the one with the fewest errors on `query`, of several
    the middle one.

    With some `ease`, the largest radius whose errors are within so many standard errors of the
    fewest: it covers more. Where pairs of rows and kernels are too many, a random part of the rows
    counts.
    """
    profile = config.profile
    given = config.radius
    params = network.params
    radii = candidate_radii(profile, rows) if given is None else np.array([given])
    at = np.arange(len(query.x))
    most = max(LOO_ROWS, LOO_PAIRS // len(network.at))
    if len(at) > most:
        at = np.sort(rng.choice(at, most, replace=False))
    some = query.part(at)
    narrowest = replace(params, radius=float(radii[-1]))
    at_radii = partial(wrong_rows, profile=profile, params=narrowest, radii=radii.tolist())
    wrong = some.weight @ each_row(at_radii, some.x, some.codes, some.group)  # (R,)
    total = float(some.weight.sum())
    fewest = float(wrong.min())
    if ease:
        # wrong rows are added up in another order than all: their ratio may exceed one
        allowed = fewest + ease * math.sqrt(max(0.0, fewest * (1 - fewest / total)))
        best = int(np.argmax(wrong <= allowed))
    else:
        least = np.flatnonzero(wrong <= fewest * (1 + 1e-12))
        best = int(least[(len(least) - 1) // 2])
    params = replace(params, radius=float(radii[best]))
    network = replace(network, params=params, error=fewest / total)
    return network if given else replace(network, radii=radii, errors=wrong / total)


# -- the width with the least log-loss -------------------------------------------------------------


def conditional_network(
    rows: ParzenRows,
    class_prior: np.ndarray | None,
    rng: np.random.RandomState,
    validation: ParzenRows | None = None,
) -> ParzenNetwork:
    """Gaussian kernels at every row, of the width and temperature with the least log-loss on rows
    left out or on validation rows.
    """
    network = network_at(rows, np.arange(len(rows.x)), class_prior)
    distinct = rows.merged()  # a row of weight two is the row twice
    params = network_at(distinct, np.arange(len(distinct.x)), class_prior).params
    query = validation or distinct
    most = min(WIDTH_ROWS, max(WIDTH_ROWS // 5, LOO_PAIRS // len(params.center)))
    if len(query.x) > most:
        query = query.part(np.sort(rng.choice(len(query.x), most, replace=False)))
    votes = _Votes(params, query)
    spread = math.sqrt(rows.variance.mean()) or 1.0
    if not votes.weight.any():  # no class has a second row
        params = replace(network.params, radius=spread)
        nothing = np.array([np.nan])
        return replace(network, params=params, radii=np.array([spread]), errors=nothing)
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
    return replace(
        network,
        params=replace(network.params, radius=radius),
        radii=radii,
        errors=losses,
        temperature=1 / tried[radius].beta,
    )


class _Votes:
    """Votes on some rows at any width: distances are taken once, each less the least of its
    class. Rows without a kernel of their class have no weight.
    """

    def __init__(self, params: ParzenParams, query: ParzenRows) -> None:
        self.codes = query.codes
        self.log_scale = params.log_scale
        self.votes = np.asarray(params.weight, np.float32)
        self.spans = [slice(*params.offsets[k : k + 2]) for k in range(params.n_classes)]
        n = len(query.x)
        n_kernels = len(params.center)
        self.away = np.empty((n, n_kernels), np.float32)
        self.least, self.third = np.full((n, len(self.spans)), np.inf), np.empty(n)
        step = max(1, (1 << 21) // n_kernels)
        third = min(2, n_kernels - 1)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            squared = np.maximum(squared_distances(query.x[rows], params.center, params.narrow), 0)
            squared[query.group[rows][:, None] == params.group] = np.inf
            self.third[rows] = np.partition(squared, third, axis=1)[:, third]
            for k, span in enumerate(self.spans):
                if span.start < span.stop:
                    least = squared[:, span].min(axis=1)
                    self.least[rows, k] = least
                    squared[:, span] -= np.where(np.isfinite(least), least, 0.0)[:, None]
            self.away[rows] = squared
        reached = np.isfinite(self.least[np.arange(n), query.codes])
        self.weight = np.where(reached, query.weight, 0.0)

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

    def of_block(x: np.ndarray, own: np.ndarray) -> np.ndarray:
        joint = log_votes(x, profile, params, own) + params.log_scale
        reached = np.isfinite(joint.max(axis=1, keepdims=True))
        return log_softmax(tempered_scores(np.where(reached, joint, 0.0), temperature), axis=1)

    return each_row(of_block, params.center, params.group)


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

    left = np.arange(len(codes))
    history = [len(codes)]
    unchanged = 0
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


# -- reduction -------------------------------------------------------------------------------------


def apportion(weight: np.ndarray, most: np.ndarray, total: int) -> list[int]:
    """`total` kernels dealt out in proportion to `weight`, at least one and at most `most` for each
    class (Webster's method).
    """
    counts = np.ones(len(weight), int)
    for _ in range(min(total, int(most.sum())) - len(counts)):
        counts[np.argmax(np.where(counts < most, weight / (counts + 0.5), -1.0))] += 1
    return [int(n) for n in counts]


class Reduction:
    """One training set and its full network, from which networks of any size are made.

    `edit` is whether to edit first, "auto" to let the errors decide, or an `Editor`. `validation`
    rows choose kernels and radius; without them the training rows do, none voting for itself.
    """

    def __init__(
        self,
        rows: ParzenRows,
        config: ParzenConfig,
        rng: np.random.RandomState,
        edit: bool | str | Editor,
        validation: ParzenRows | None = None,
    ) -> None:
        self.rows = rows
        self.config = config
        self.rng = rng
        self.edit = edit
        self.validation = validation
        self.full = full_network(rows, config, rng)
        self.full_radius = self.full.params.radius
        self.pools = self._pools()
        self.way = (0, 2)
        """Pool and scale of the network made last, from which the next search sets out."""
        self.best_trial: ParzenNetwork | None = None
        """Of all networks made so far, the one with the fewest errors."""

    @property
    def n_tried(self) -> int:
        """Networks among which validation rows may have chosen: pools, scales and radii are fixed
        by the training rows alone.

        Twice as many, since a quick trial and the whole one may keep different kernels.
        """
        if self.config.radius is not None:
            return 2 * len(self.pools)
        n_radii = len(candidate_radii(self.config.profile, self.rows))
        return 2 * len(self.pools) * len(HALVES) * n_radii

    # -- editing -----------------------------------------------------------------------------------

    def _pools(self) -> list[np.ndarray]:
        """Sets of rows among which kernels may be chosen: what editing leaves, or all."""
        rows = self.rows
        everything = np.arange(len(self.rows.x))
        if self.edit is False or len(everything) < 3:  # too few for three parts
            return [everything]
        if callable(self.edit):
            order = np.argsort(rows.index)  # the resampler takes the rows in the order of X
            pools = [np.sort(order[self.edit(rows.x[order], rows.codes[order])])]
        else:
            pools = self._edited()
        for pool in pools:
            lost = np.setdiff1d(rows.codes, rows.codes[pool])
            if len(lost):
                raise KernelpoolError(
                    f"Editing left no row of class number {int(lost[0])}. Use edit=False, or a "
                    f"smaller radius."
                )
        return [*pools, everything] if self.edit == "auto" else pools

    def _edited(self) -> list[np.ndarray]:
        """What is left after the first round, and at the end.

        Each round is scored by what the rounds before have left. A row near a bent boundary has
        more of the outer class around it, so boundaries move inwards as long as there is something
        to drop: the first round may be the better one.
        """
        rows = self.rows
        seed = self.rng.randint(2**31)

        def predict(train: np.ndarray, test: np.ndarray) -> np.ndarray:
            params = network_at(rows, train, None, equal=True).params  # distinct rows count once
            params = replace(params, radius=self.full_radius)
            return predicted_codes(params, self.config.profile, rows.x[test])

        once = multi_edit(rows.codes, predict, np.random.RandomState(seed), max_iter=1)[0]
        ended = multi_edit(rows.codes, predict, np.random.RandomState(seed))[0]
        return [once, ended] if len(once) != len(ended) else [ended]

    # -- choosing kernels --------------------------------------------------------------------------

    def reduce(self, size: int) -> ParzenNetwork:
        """Keep `size` rows: of the pool, and at the scale, at which quick trials classify the
        training rows best.
        """
        seed = self.rng.randint(2**31)
        self.way = self._best_way(size, seed)
        found = self._trial(self.pools[self.way[0]], self.way, size, MAX_SWEEPS, seed)
        if self.validation is not None and self.best_trial is not None:
            found = self.best_trial  # the best on the validation rows, of all that were tried
        return found

    def _best_way(self, size: int, seed: int) -> tuple[int, int]:
        """Which pool, and which of `HALVES`: in each pool by octaves as long as the error falls,
        then one half step.
        """
        errors: dict[tuple[int, int], float] = {}

        def error_of(way: tuple[int, int]) -> float:
            if way not in errors:
                some = self.pools[way[0]]
                most = max(TRIAL_ROWS, 8 * size)
                if len(some) > most:
                    some = np.random.RandomState(seed).permutation(some)[:most]
                errors[way] = self._trial(some, way, size, TRIAL_SWEEPS, seed).error
            return errors[way]

        def best_near(way: tuple[int, int], step: int) -> tuple[int, int]:
            halves = (way[1], way[1] - step, way[1] + step)
            return min([(way[0], half) for half in halves if half in HALVES], key=error_of)

        if self.config.radius is not None:
            ways = [(i, 0) for i in range(len(self.pools))]
            return min(ways, key=error_of) if len(ways) > 1 else (0, 0)
        for i in range(len(self.pools)):
            way = (i, self.way[1])
            last = None
            while way != last:
                way, last = best_near(way, 2), way
        return best_near(min(errors, key=error_of), 1)

    def _trial(
        self, some: np.ndarray, way: tuple[int, int], size: int, n_sweeps: int, seed: int
    ) -> ParzenNetwork:
        """`size` of the rows `some` of a pool, and the radius at which they classify the training
        rows best.
        """
        rng = np.random.RandomState(seed)
        part = self.rows.part(some)
        codes = np.unique(part.codes)
        weights = np.bincount(part.codes, part.weight)[codes]
        most = np.bincount(part.codes)[codes]
        radius = 2.0 ** (way[1] / 2) * self.full_radius
        kept = []
        criterion = []
        for code, count in zip(codes, apportion(weights, most, size), strict=True):
            in_class = np.flatnonzero(part.codes == code)
            reached = [0.0]
            chosen = list(range(count))
            if count < len(in_class):
                own = part.part(in_class)
                reducer = Reducer(own.x, own.weight, self.config.profile, radius)
                chosen, reached = reducer.exchange(
                    reducer.herd(count),
                    rng,
                    n_candidates=N_CANDIDATES,
                    max_sweeps=n_sweeps,
                    tol=TOLERANCE,
                )
            kept.append(some[in_class[chosen]])
            criterion.append(reached[-1])
        network = network_at(self.rows, np.concatenate(kept), self.config.class_prior, equal=True)
        rng = np.random.RandomState(seed)  # the same rows score every trial
        query, ease = (self.rows, EASE) if self.validation is None else (self.validation, 0.0)
        network = with_radius(network, self.rows, query, self.config, rng, ease)
        found = replace(network, pool=self.pools[way[0]], criterion=np.array(criterion))
        if self.best_trial is None or found.error <= self.best_trial.error:
            self.best_trial = found
        return found


class SizeSearch:
    """The smallest size whose error is within `tolerance` of the full network's, by
    cross-validation.

    The full network of some of the rows would be no measure: where rows have few neighbors, it is
    much worse than that of all.
    """

    def __init__(self, reduction: Reduction, tolerance: float) -> None:
        rows = reduction.rows
        config = reduction.config
        self.reduction = reduction
        self.rows = rows
        self.tolerance = tolerance
        params = reduction.full.params
        at_radius = partial(
            wrong_rows, profile=config.profile, params=params, radii=[params.radius]
        )
        self.full_wrong = 1.0 * each_row(at_radius, rows.x, rows.codes, rows.group)[:, 0]
        """Whether the full network misclassifies each row, left out of its own vote, (n,)."""
        self.full_error = float(self.full_wrong @ rows.weight / rows.weight.sum())
        fold = stratified_folds(rows.codes, N_FOLDS, key=row_keys(rows.x, rows.weight))
        self.reductions, _ = cross_fit(self._without, (np.arange(len(fold)),), fold)
        """For each fold, the positions of its rows and the networks of all others."""
        self.standard_error = math.inf
        """Of the excess of the size tried last."""
        self.curve: list[tuple[int, float]] = []
        """Sizes tried, and the error of each on held-out rows."""

    def _without(
        self, train: tuple[np.ndarray], held_out: tuple[np.ndarray]
    ) -> tuple[tuple[np.ndarray, Reduction], np.ndarray]:
        """`fit` for `cross_fit`."""
        whole = self.reduction
        reduction = Reduction(self.rows.part(train[0]), whole.config, whole.rng, whole.edit)
        return (held_out[0], reduction), held_out[0]

    def build(self) -> ParzenNetwork:
        """The network of all rows: of the smallest size that suffices, or as much larger as it
        needs to be.
        """
        size = self.smallest()
        n_rows = len(self.rows.x)
        while size < n_rows:
            found = self.reduction.reduce(size)
            if self._within(found.error - self.full_error):
                return found
            size = math.ceil(size * math.sqrt(2))
            size = n_rows if 2 * size > n_rows else size
        zeros = np.zeros(len(np.unique(self.rows.codes)))
        return replace(self.reduction.full, pool=np.arange(n_rows), criterion=zeros)

    def smallest(self) -> int:
        """The smallest size that suffices: doubled until one does, then once between the last two.
        All rows if none does.
        """
        fewest = min((len(r.rows.x) for _, r in self.reductions), default=0)
        below = 0
        size = len(np.unique(self.rows.codes))
        while not self.suffices(size):
            below = size
            size = 2 * size
            if 2 * size > fewest:
                return len(self.rows.x)
        between = round(math.sqrt(below * size))
        return between if below < between < size and self.suffices(between) else size

    def suffices(self, size: int) -> bool:
        """Whether the error stays within the tolerance of the full network's by a standard error of
        the difference.

        The difference is paired: rows that both networks get right, or both wrong, add nothing to
        its standard error. Where that exceeds half of the tolerance, the rows are too few to tell,
        and half of the tolerance must do.
        """
        wrong = np.empty(0)
        at = np.empty(0, int)
        excess = math.inf
        for out, reduction in self.reductions:
            held_out = self.rows.part(out)
            params = reduction.reduce(size).params
            codes = predicted_codes(params, reduction.config.profile, held_out.x)
            wrong = np.append(wrong, codes != held_out.codes)
            at = np.append(at, out)
            difference = wrong - self.full_wrong[at]
            weight = self.rows.weight[at]
            excess = float(difference @ weight / weight.sum())
            variance = float((difference - excess) ** 2 @ weight)
            self.standard_error = math.sqrt(variance) / float(weight.sum())
            if excess - HOPELESS * self.standard_error > self.tolerance:
                break
        if len(at):
            weight = self.rows.weight[at]
            self.curve = sorted([*self.curve, (size, float(wrong @ weight / weight.sum()))])
        return self._within(excess)

    def _within(self, excess: float) -> bool:
        return excess + min(self.standard_error, self.tolerance / 2) <= self.tolerance
