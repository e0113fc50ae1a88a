"""Reduced Parzen networks from rows: editing, the choice of few kernels and their radius, and how
few suffice.

The mathematics is in `kernelpool.networks.parzen_reduction`. The smallest size that suffices is
found by cross-validation. The network of all rows is then another one than those that were scored,
and networks of few kernels differ: it must pass on the training rows too, or is made larger until
it does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import KernelpoolError
from ..networks.parzen import each_row, wrong_rows
from ..networks.parzen_reduction import Reducer
from .folds import row_keys, stratified_folds
from .parzen import (
    ParzenConfig,
    ParzenNetwork,
    ParzenRows,
    candidate_radii,
    choose_radius,
    errors_by_radius,
    full_network,
    multi_edit,
    network_at,
    no_group,
    predicted_codes,
)

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

EM_SWEEPS = 50
"""Sweeps of EM that fit the votes of kept kernels; the criterion is concave in them."""

HOPELESS = 3.0
"""Standard errors beyond the tolerance at which a size is given up before every fold has scored
it.
"""

Editor = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows and codes to the positions of the rows that are kept."""


@dataclass(frozen=True)
class ReducedNetwork:
    """A network of few kernels."""

    network: ParzenNetwork
    full_radius: float
    criterion: np.ndarray
    """Mean ln(p_K / p_N) over the rows of each class from which kernels were chosen."""
    edited: np.ndarray
    """Positions in X of the rows from which kernels were chosen, rising."""
    error: float
    """On the training rows, none voting for itself; or on validation rows."""


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
        parzen: ParzenConfig,
        rng: np.random.RandomState,
        *,
        edit: bool | str | Editor = "auto",
        fitted_weights: bool = False,
        exchange: bool = True,
        validation: ParzenRows | None = None,
    ) -> None:
        self.rows, self.parzen, self.rng = rows, parzen, rng
        self.fitted_weights, self.exchange, self.validation = fitted_weights, exchange, validation
        self.full = full_network(rows, parzen, rng)
        self.full_radius = self.full.params.radius
        self.pools = self._pools(edit)
        self.way = (0, 2)
        """Pool and scale of the network made last, from which the next search sets out."""
        self.best_trial: ReducedNetwork | None = None
        """Of all networks made so far, the one with the fewest errors."""

    def full_wrong(self) -> np.ndarray:
        """Whether the full network misclassifies each row, left out of its own vote, (n,), ones and
        zeros.
        """
        rows, params = self.rows, self.full.params
        at_radius = partial(
            wrong_rows, profile=self.parzen.profile, params=params, radii=[params.radius]
        )
        wrong = each_row(at_radius, rows.x, rows.codes, rows.group)
        return wrong[:, 0].astype(np.float64)

    def full_network(self) -> ReducedNetwork:
        """The full network itself, in the form of a reduced one."""
        zeros = np.zeros(len(np.unique(self.rows.codes)))
        error = math.nan if self.full.errors is None else float(self.full.errors.min())
        return ReducedNetwork(self.full, self.full_radius, zeros, np.sort(self.rows.index), error)

    @property
    def n_tried(self) -> int:
        """Networks among which validation rows may have chosen: pools, scales and radii are fixed
        by the training rows alone.

        Twice as many, since a quick trial and the whole one may keep different kernels.
        """
        if self.parzen.radius is not None:
            return 2 * len(self.pools)
        radii = candidate_radii(self.parzen.profile, self.rows.variance, self.rows.weight.sum())
        return 2 * len(self.pools) * len(HALVES) * len(radii)

    # -- editing -----------------------------------------------------------------------------------

    def _pools(self, edit: bool | str | Editor) -> list[np.ndarray]:
        """Sets of rows among which kernels may be chosen: what editing leaves, or all."""
        rows, everything = self.rows, np.arange(len(self.rows.x))
        if edit is False or len(everything) < 3:  # too few for three parts
            return [everything]
        if callable(edit):
            order = np.argsort(rows.index)  # the resampler takes the rows in the order of X
            pools = [self._checked_pool(order[edit(rows.x[order], rows.codes[order])])]
        else:
            pools = self._edited()
        return [*pools, everything] if edit == "auto" else pools

    def _edited(self) -> list[np.ndarray]:
        """What is left after the first round, and at the end.

        Each round is scored by what the rounds before have left. A row near a bent boundary has
        more of the outer class around it, so boundaries move inwards as long as there is something
        to drop: the first round may be the better one.
        """
        rows, seed = self.rows, self.rng.randint(2**31)
        config = ParzenConfig(self.parzen.profile, self.full_radius)

        def predict(train: np.ndarray, test: np.ndarray) -> np.ndarray:
            part = replace(rows.part(train), weight=np.ones(len(train)))  # distinct rows count once
            network = full_network(part, config, self.rng)
            return predicted_codes(network.params, config.profile, rows.x[test])

        once = multi_edit(rows.codes, predict, np.random.RandomState(seed), max_iter=1)[0]
        ended = multi_edit(rows.codes, predict, np.random.RandomState(seed))[0]
        pools = [once, ended] if len(once) != len(ended) else [ended]
        return [self._checked_pool(pool) for pool in pools]

    def _checked_pool(self, kept: np.ndarray) -> np.ndarray:
        lost = np.setdiff1d(np.unique(self.rows.codes), self.rows.codes[kept])
        if len(lost):
            raise KernelpoolError(
                f"Editing left no row of class number {int(lost[0])}. Use edit=False, or a smaller "
                f"radius."
            )
        return np.sort(kept)

    # -- choosing kernels --------------------------------------------------------------------------

    def reduce(self, size: int) -> ReducedNetwork:
        """Keep `size` rows: of the pool, and at the scale, at which quick trials classify the
        training rows best.
        """
        seed = self.rng.randint(2**31)
        self.way = self._best_way(size, seed)
        pool = self.pools[self.way[0]]
        found = self._trial(pool, self.way, size, MAX_SWEEPS, seed)
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
                some, most = self.pools[way[0]], max(TRIAL_ROWS, 8 * size)
                if len(some) > most:
                    some = np.random.RandomState(seed).permutation(some)[:most]
                errors[way] = self._trial(some, way, size, TRIAL_SWEEPS, seed).error
            return errors[way]

        def best_near(way: tuple[int, int], step: int) -> tuple[int, int]:
            halves = (way[1], way[1] - step, way[1] + step)
            return min([(way[0], half) for half in halves if half in HALVES], key=error_of)

        if self.parzen.radius is not None:
            ways = [(i, 0) for i in range(len(self.pools))]
            return min(ways, key=error_of) if len(ways) > 1 else (0, 0)
        for i in range(len(self.pools)):
            way, last = (i, self.way[1]), None
            while way != last:
                way, last = best_near(way, 2), way
        return best_near(min(errors, key=error_of), 1)

    def _trial(
        self, some: np.ndarray, way: tuple[int, int], size: int, n_sweeps: int, seed: int
    ) -> ReducedNetwork:
        """`size` of the rows `some` of a pool, and the radius at which they classify the training
        rows best.
        """
        rng, part = np.random.RandomState(seed), self.rows.part(some)
        codes = np.unique(part.codes)
        weights, most = np.bincount(part.codes, part.weight)[codes], np.bincount(part.codes)[codes]
        counts = apportion(weights, most, size)
        kept, weight, criterion = [], [], []
        for code, count in zip(codes, counts, strict=True):
            in_class = np.flatnonzero(part.codes == code)
            scale = 2.0 ** (way[1] / 2)
            chosen, vote, reached = self._reduce_class(
                part.part(in_class), count, scale, n_sweeps, rng
            )
            kept.append(some[in_class[chosen]])
            weight.append(vote * count)
            criterion.append(reached)
        network, error = self._with_radius(np.concatenate(kept), np.concatenate(weight), seed)
        edited = np.sort(self.rows.index[self.pools[way[0]]])
        found = ReducedNetwork(network, self.full_radius, np.array(criterion), edited, error)
        if self.best_trial is None or error <= self.best_trial.error:
            self.best_trial = found
        return found

    def _with_radius(
        self, at: np.ndarray, weight: np.ndarray, seed: int
    ) -> tuple[ParzenNetwork, float]:
        """The rows `at` as kernels, at the radius given or the one with the fewest errors; and that
        error.
        """
        rows, rng = self.rows, np.random.RandomState(seed)  # the same rows score every trial
        at, params = network_at(rows, at, weight, self.parzen.class_prior)
        query, own, ease = rows, rows.group, EASE
        if self.validation is not None:
            query, own, ease = self.validation, no_group(self.validation), 0.0
        profile = self.parzen.profile
        if self.parzen.radius is None:
            radius, radii, errors = choose_radius(params, rows, query, own, profile, rng, ease)
            network = ParzenNetwork(at, replace(params, radius=radius), radii, errors)
            return network, float(errors.min())
        radii = np.array([self.parzen.radius])
        wrong, total = errors_by_radius(params, radii, query, own, profile, rng)
        network = ParzenNetwork(at, replace(params, radius=self.parzen.radius))
        return network, float(wrong[0]) / total

    def _reduce_class(
        self, part: ParzenRows, count: int, scale: float, n_sweeps: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions of the kept rows of one class, their votes, which sum to one, and the
        criterion.
        """
        if count >= len(part.x):
            return np.arange(len(part.x)), np.full(count, 1 / count), 0.0
        radius = scale * self.full_radius
        reducer = Reducer(part.x, part.weight, self.parzen.profile, radius)
        kept, history = reducer.exchange(
            reducer.herd(count),
            lambda n: rng.uniform(size=n),
            n_candidates=N_CANDIDATES,
            max_sweeps=n_sweeps if self.exchange else 0,
            tol=TOLERANCE,
        )
        votes = np.full(count, 1 / count)
        if self.fitted_weights:
            votes = reducer.weights(kept, n_sweeps=EM_SWEEPS)
        return np.array(kept), votes, history[-1]


class SizeSearch:
    """The smallest size whose error is within `tolerance` of the full network's, by
    cross-validation.

    The full network of some of the rows would be no measure: where rows have few neighbors, it is
    much worse than that of all.
    """

    def __init__(
        self,
        rows: ParzenRows,
        parzen: ParzenConfig,
        rng: np.random.RandomState,
        *,
        tolerance: float,
        n_folds: int,
        **settings: object,
    ) -> None:
        self.rows, self.tolerance = rows, tolerance
        self.reduction = Reduction(rows, parzen, rng, **settings)  # type: ignore[arg-type]
        self.full_wrong = self.reduction.full_wrong()
        self.full_error = float(self.full_wrong @ rows.weight / rows.weight.sum())
        fold = stratified_folds(rows.codes, n_folds, key=row_keys(rows.x, rows.weight))
        self.folds = [np.flatnonzero(fold == f) for f in range(n_folds) if (fold == f).any()]
        self.reductions = [
            Reduction(rows.part(np.flatnonzero(fold != fold[out[0]])), parzen, rng, **settings)  # type: ignore[arg-type]
            for out in self.folds
        ]
        self.standard_error = math.inf
        """Of the excess of the size tried last."""
        self.curve: list[tuple[int, float]] = []
        """Sizes tried, and the error of each on held-out rows."""

    def build(self) -> ReducedNetwork:
        """The network of all rows: of the smallest size that suffices, or as much larger as it
        needs to be.
        """
        size, n_rows = self.smallest(), len(self.rows.x)
        while size < n_rows:
            found = self.reduction.reduce(size)
            if self._within(found.error - self.full_error):
                return found
            size = math.ceil(size * math.sqrt(2))
            size = n_rows if 2 * size > n_rows else size
        return self.reduction.full_network()

    def smallest(self) -> int:
        """The smallest size that suffices: doubled until one does, then once between the last two.
        All rows if none does.
        """
        fewest = min((len(r.rows.x) for r in self.reductions), default=0)
        below, size = 0, len(np.unique(self.rows.codes))
        while not self.suffices(size):
            below, size = size, 2 * size
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
        wrong, at = np.empty(0), np.empty(0, int)
        excess = math.inf
        for out, reduction in zip(self.folds, self.reductions, strict=True):
            held_out = self.rows.part(out)
            params = reduction.reduce(size).network.params
            codes = predicted_codes(params, reduction.parzen.profile, held_out.x)
            wrong, at = np.append(wrong, codes != held_out.codes), np.append(at, out)
            difference, weight = wrong - self.full_wrong[at], self.rows.weight[at]
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
