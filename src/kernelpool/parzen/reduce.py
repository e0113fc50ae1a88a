r"""Few kernels that represent all: multi-edit, and the reduction of a Parzen network.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991: rows
that lie among those of another class are edited away, and some of the rest are kept.

The reduction is that of K. Fukunaga & R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI
11(4), 1989; it starts from the kernels of Chen, Welling & Smola, "Super-samples from kernel
herding", UAI 2010. Of the N kernels of one class those K are kept that maximize

.. math::

    \int \ln\frac{p_K(x)}{p_N(x)}\, p_N(x)\, dx \approx \sum_i w_i \ln\frac{p_K(x_i)}{p_N(x_i)}

==================  ===============  ==========  ===================================================
paper               here             shape       meaning
==================  ===============  ==========  ===================================================
:math:`p_N`         ``full``         (N,)        density of all kernels at every row, in units of a
                                                 kernel's height
:math:`K p_K`       ``sums``         (N,)        sum of the heights of those kept
:math:`w_i`         ``weight``       (N,)        weight of a row; they sum to one
K of N              ``chosen``       (K,)        positions of the rows that are kept
==================  ===============  ==========  ===================================================

Deviations: :math:`p_K` is mixed with a little of :math:`p_N`, or the criterion would be minus
infinity as soon as one row is left uncovered. Fukunaga tries every exchange; here a kernel is
exchanged for the best of some candidates, drawn near it and where rows are badly represented, and
all sums are carried along.

The smallest size that suffices is found by cross-validation. The network of all rows is then
another one than those that were scored, and networks of few kernels differ: it must pass on the
training rows too, or is made larger until it does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..data.door import TrainingData
from ..data.folds import cross_fit, row_keys, stratified_folds
from ..data.labels import Labeled
from ..errors import KernelpoolError
from ..records import nested, saved
from .fit import ParzenSettings, full_network, in_space, network_of
from .network import (
    TILE,
    FittedParzen,
    ParzenNetwork,
    Profile,
    each_row,
    is_narrow,
    predicted_codes,
)
from .radius import OCTAVE, ParzenRows, Trial, trial_of, with_fewest_errors, wrong_rows

DEFENSE = 1e-3
"""Share of the full density in the reduced one while kernels are chosen."""

HALVES = range(9)
"""Densities are compared at the full network's radius times 2^(h/2) for one of these h."""

TRIAL_ROWS = 4096
"""Rows of a quick trial, or eight times the kernels to be kept if that is more."""

TRIAL_SWEEPS = 3
"""Sweeps of exchanges of a quick trial."""

EASE = 0.25
"""Standard errors by which a reduced network may err more, on the training rows, for the sake of a
larger radius.
"""

N_CANDIDATES = 64
"""Rows tried in the place of a kernel."""

MAX_SWEEPS = 10
"""Passes of exchanges."""

TOLERANCE = 1e-3
"""Gain of a pass below which exchanges end."""

N_FOLDS = 4
"""Folds in which sizes are tried."""

HOPELESS = 3.0
"""Standard errors beyond the tolerance at which a size is given up before every fold has scored
it.
"""

Editor = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows and codes to the positions of the rows that are kept."""


@dataclass(frozen=True)
class ReducedSettings(ParzenSettings):
    """Parameters of a `ReducedParzenClassifier`."""

    n_kernels: Any = 0.05
    edit: Any = "auto"
    """Whether to edit first, "auto" to let the errors decide, or an `Editor`."""
    tolerance: float = 0.01


@saved(kw_only=True)
class ReductionHistory:
    """How the kernels of a reduced network were chosen."""

    full_radius: float
    criterion: np.ndarray | None
    edited_indices: np.ndarray
    n_rows: int
    n_choices: int
    curve: list[tuple[int, float]] | None
    full_error: float | None
    validation_error: float | None
    n_tried: int | None


@saved
class FittedReducedParzen(FittedParzen):
    """The fitted state of a `ReducedParzenClassifier`."""

    reduction: ReductionHistory = nested()


def fit_reduced(
    data: TrainingData,
    n_numbers: int,
    settings: ReducedSettings,
    rng: np.random.RandomState,
    validation: Labeled | None = None,
) -> tuple[ParzenNetwork, ReductionHistory, bool]:
    """The network, how it was chosen, and whether Ctrl-C ended the choice: it is then the best of
    those tried.

    The first `n_numbers` columns are numbers, the others indicators.
    """
    space, settings, rows, query = in_space(data, n_numbers, settings, validation)
    rows = rows.merged()
    size = kernel_count(settings.n_kernels, rows)
    if query is not None and size is None:
        raise KernelpoolError(
            "Validation rows choose among networks of one size; give n_kernels as a number, "
            'not "auto".'
        )
    if not isinstance(settings.edit, bool | str):
        settings = replace(settings, edit=editor_of(settings.edit, space.unit))
    reduction = Reduction(rows, settings, rng, query)
    search = None
    interrupted = False
    try:
        if size is None:
            search = SizeSearch(reduction)
            trial = search.build()
        else:
            trial = reduction.reduce(size)
    except KeyboardInterrupt:
        if reduction.best_trial is None:
            raise
        trial = reduction.best_trial
        interrupted = True
    network = network_of(trial, data, space, settings)
    history = ReductionHistory(
        full_radius=reduction.full_radius * space.unit,
        criterion=trial.criterion,
        edited_indices=np.sort(rows.index[trial.candidates]),
        n_rows=data.rows.n_rows,  # type: ignore[attr-defined]
        n_choices=n_choices(network, settings, n_numbers),
        curve=None if search is None else sorted(search.curve),
        full_error=None if search is None else search.full_error,
        validation_error=None if query is None else trial.error,
        n_tried=None if query is None else reduction.n_tried,
    )
    return network, history, interrupted


def kernel_count(n_kernels: Any, rows: ParzenRows) -> int | None:
    """How many kernels to keep; None if that is to be found."""
    if n_kernels == "auto":
        return None
    n = len(rows)
    n_classes = len(np.unique(rows.codes))
    if not isinstance(n_kernels, Integral):
        n_kernels = max(n_classes, round(float(n_kernels) * n))
    if not n_classes <= n_kernels <= n:
        raise KernelpoolError(
            f"n_kernels must be at least the number of classes, {n_classes}, and not exceed the "
            f"number of distinct rows, {n}; got {n_kernels}."
        )
    return int(n_kernels)


def n_choices(network: ParzenNetwork, settings: ReducedSettings, n_numbers: int) -> int:
    """Radii that might have been taken, for a certificate; 0 where the network depends on more than
    its kernels and a radius from the fixed list.
    """
    own_votes = settings.class_prior is None and (network.kernel_weights == 1).all()
    own_space = not settings.standardize and n_numbers == network.kernels.shape[1]
    if not (own_votes and own_space):
        return 0
    if not isinstance(settings.radius, str):
        return 1
    return 64 * OCTAVE if 2.0**-32 <= network.radius < 2.0**32 else 0


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
        return codes[test] == predicted

    left = np.arange(len(codes))
    history = [len(codes)]
    unchanged = 0
    spared: set[int] = set()
    while unchanged < n_iter_no_change and len(history) <= max_iter and len(left) >= n_splits:
        splits = np.array_split(rng.permutation(left), n_splits)
        remaining = np.concatenate(
            [split[is_right(split, splits[(i + 1) % n_splits])] for i, split in enumerate(splits)]
        )
        lost = np.setdiff1d(np.unique(codes[left]), np.unique(codes[remaining]))
        if len(lost):  # no round may take a whole class away
            spared |= set(lost.tolist())
            remaining = np.concatenate([remaining, left[np.isin(codes[left], lost)]])
        unchanged = unchanged + 1 if len(remaining) == len(left) else 0
        left = remaining
        history.append(len(left))
    converged = unchanged >= n_iter_no_change
    return np.sort(left), np.array(history), converged, np.array(sorted(spared), int)


def editor_of(resampler: Any, unit: float) -> Editor:
    """The positions of the rows that a resampler leaves, as a function of rows in some unit and
    codes.
    """

    def edited(x: np.ndarray, codes: np.ndarray) -> np.ndarray:
        fresh = clone(resampler) if isinstance(resampler, BaseEstimator) else resampler
        fresh.fit_resample(x * unit, codes)
        if not hasattr(fresh, "sample_indices_"):
            raise KernelpoolError(
                f"edit must list the rows that it kept in sample_indices_; {type(fresh).__name__} "
                "does not."
            )
        return np.unique(fresh.sample_indices_)

    return edited


def candidate_sets(
    rows: ParzenRows, settings: ReducedSettings, radius: float, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Sets of rows among which kernels may be chosen: what editing leaves, or all."""
    everything = np.arange(len(rows))
    edit = settings.edit
    if edit is False or len(everything) < 3:  # too few for three parts
        return [everything]
    if callable(edit):
        order = np.argsort(rows.index)  # the resampler takes the rows in the order of X
        sets = [np.sort(order[edit(rows.x[order], rows.codes[order])])]
    else:
        sets = edited_sets(rows, settings.profile, radius, rng.randint(2**31))
    for candidates in sets:
        lost = np.setdiff1d(rows.codes, rows.codes[candidates])
        if len(lost):
            raise KernelpoolError(
                f"Editing left no row of class number {int(lost[0])}. Use edit=False, or a "
                "smaller radius."
            )
    return [*sets, everything] if edit == "auto" else sets


def edited_sets(rows: ParzenRows, profile: Profile, radius: float, seed: int) -> list[np.ndarray]:
    """What is left after the first round, and at the end.

    Each round is scored by what the rounds before have left. A row near a bent boundary has more of
    the outer class around it, so boundaries move inwards as long as there is something to drop: the
    first round may be the better one.
    """

    def predict(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        trial = trial_of(rows.take(train), profile, None, equal=True)  # distinct rows count once
        return predicted_codes(rows.x[test], trial.at_radius(radius).params)

    once = multi_edit(rows.codes, predict, np.random.RandomState(seed), max_iter=1)[0]
    ended = multi_edit(rows.codes, predict, np.random.RandomState(seed))[0]
    return [once, ended] if len(once) != len(ended) else [ended]


# -- choosing kernels ------------------------------------------------------------------------------


def apportion(weight: np.ndarray, most: np.ndarray, total: int) -> list[int]:
    """`total` kernels dealt out in proportion to `weight`, at least one and at most `most` for each
    class (Webster's method).
    """
    counts = np.ones(len(weight), int)
    for _ in range(min(total, int(most.sum())) - len(counts)):
        counts[np.argmax(np.where(counts < most, weight / (counts + 0.5), -1.0))] += 1
    return [int(n) for n in counts]


class Setting(NamedTuple):
    """Where the kernels of a reduced network are chosen, and how wide they are meanwhile."""

    candidates: int
    """Index into the sets of candidates."""
    halves: int
    """Densities are compared at the full network's radius times 2^(halves / 2)."""

    def descend(self, error: Callable[["Setting"], float]) -> "Setting":
        """By octaves as long as the error falls."""
        best = self.best_near(2, error)
        return self if best == self else best.descend(error)

    def best_near(self, step: int, error: Callable[["Setting"], float]) -> "Setting":
        """The best of the setting and those some half octaves below and above."""
        halves = (self.halves, self.halves - step, self.halves + step)
        return min((self._replace(halves=h) for h in halves if h in HALVES), key=error)


class Reduction:
    """One training set and its full network, from which networks of any size are made.

    `validation` rows choose kernels and radius; without them the training rows do, none voting for
    itself.
    """

    def __init__(
        self,
        rows: ParzenRows,
        settings: ReducedSettings,
        rng: np.random.RandomState,
        validation: ParzenRows | None = None,
    ) -> None:
        self.rows = rows
        self.settings = settings
        self.rng = rng
        self.validation = validation
        self.full = full_network(rows, settings, rng)
        self.full_radius = self.full.params.radius
        self.candidate_sets = candidate_sets(rows, settings, self.full_radius, rng)
        self.radii = settings.radii(rows)
        self.setting = Setting(0, 2)
        """Of the network made last, from which the next search sets out."""
        self.best_trial: Trial | None = None
        """Of all networks made so far, the one with the fewest errors."""

    @property
    def n_tried(self) -> int:
        """Networks among which validation rows may have chosen: sets of candidates, scales and
        radii are fixed by the training rows alone.

        Twice as many, since a quick trial and the whole one may keep different kernels.
        """
        n_scales = len(HALVES) if isinstance(self.settings.radius, str) else 1
        return 2 * len(self.candidate_sets) * n_scales * len(self.radii)

    def reduce(self, size: int) -> Trial:
        """Keep `size` rows: of the candidates, and at the scale, at which quick trials classify the
        training rows best.
        """
        seed = self.rng.randint(2**31)
        self.setting = self._best_setting(size, seed)
        candidates = self.candidate_sets[self.setting.candidates]
        trial = self._trial(candidates, self.setting, size, MAX_SWEEPS, seed)
        if self.validation is not None and self.best_trial is not None:
            return self.best_trial  # the best on the validation rows, of all that were tried
        return trial

    def _best_setting(self, size: int, seed: int) -> Setting:
        """Descend by octaves within each set of candidates, then try half an octave around the
        best.
        """

        @cache
        def error(setting: Setting) -> float:
            candidates = self.candidate_sets[setting.candidates]
            most = max(TRIAL_ROWS, 8 * size)
            if len(candidates) > most:
                candidates = np.random.RandomState(seed).permutation(candidates)[:most]
            return self._trial(candidates, setting, size, TRIAL_SWEEPS, seed).error

        sets = range(len(self.candidate_sets))
        if isinstance(self.settings.radius, str):
            ends = [Setting(i, self.setting.halves).descend(error) for i in sets]
            return min(ends, key=error).best_near(1, error)
        settings = [Setting(i, 0) for i in sets]
        return min(settings, key=error) if len(settings) > 1 else settings[0]

    def _trial(
        self, candidates: np.ndarray, setting: Setting, size: int, n_sweeps: int, seed: int
    ) -> Trial:
        """`size` of the candidates, and the radius at which they classify the training rows
        best.
        """
        rng = np.random.RandomState(seed)
        profile = self.settings.profile
        radius = 2.0 ** (setting.halves / 2) * self.full_radius
        rows = self.rows.take(candidates)
        codes, most = np.unique(rows.codes, return_counts=True)
        weights = np.bincount(rows.codes, rows.weight)[codes]
        kept = []
        criterion = []
        for code, count in zip(codes, apportion(weights, most, size), strict=True):
            in_class = np.flatnonzero(rows.codes == code)
            chosen = list(range(count))
            reached = [0.0]
            if count < len(in_class):
                reducer = Reducer(rows.x[in_class], rows.weight[in_class], profile, radius)
                chosen, reached = reducer.exchange(reducer.herd(count), rng, n_sweeps)
            kept.append(candidates[in_class[chosen]])
            criterion.append(reached[-1])
        rows = self.rows.take(np.concatenate(kept))
        trial = trial_of(rows, profile, self.settings.class_prior, equal=True)
        rng = np.random.RandomState(seed)  # the same rows score every trial
        query, ease = (self.rows, EASE) if self.validation is None else (self.validation, 0.0)
        trial = replace(
            with_fewest_errors(trial, self.radii, query, rng, ease),
            candidates=self.candidate_sets[setting.candidates],
            criterion=np.array(criterion),
        )
        if self.best_trial is None or trial.error <= self.best_trial.error:
            self.best_trial = trial
        return trial


class Reducer:
    """Chooses K of the N rows of one class so that their kernels have the density of all N.

    Sums over the rows are carried along, so that an exchange costs N times the number of
    candidates.
    """

    def __init__(self, x: np.ndarray, weight: np.ndarray, profile: Profile, radius: float) -> None:
        self.x = x
        self.weight = weight / weight.sum()
        self.profile = profile
        self.radius = radius
        self.narrow = is_narrow(x, radius)
        self.full = self._mixed(np.arange(len(x)), self.weight)
        """p_N at every row, in units of a kernel's height: sum_j w_j K((x_i - x_j) / r), (N,)."""

    def heights(self, chosen: list[int] | np.ndarray) -> np.ndarray:
        """Heights of the kernels at some rows over all rows, (N, m), in float32: exponentials and
        logarithms are ten times as fast in it.
        """
        centers = self.x[chosen]

        def of_block(x: np.ndarray) -> np.ndarray:
            squared = self.profile.squared(x, centers, self.narrow) * (1 / self.radius**2)
            return self.profile.height(squared.astype(np.float32))

        return each_row(of_block, self.x, width=max(len(centers), self.x.shape[1]))

    def _mixed(self, chosen: np.ndarray, vote: np.ndarray) -> np.ndarray:
        """sum_j vote_j K((x - x_j) / r), (N,)."""
        total = np.zeros(len(self.x))
        for start in range(0, len(chosen), TILE):
            tile = slice(start, start + TILE)
            total += self.heights(chosen[tile]).astype(np.float64) @ vote[tile]
        return total

    def criterion(self, sums: np.ndarray, k: int) -> float:
        """Fukunaga: mean over the rows of ln(p_K / p_N), for sums of K heights."""
        return float(self.weight @ np.log((1 - DEFENSE) * sums / (k * self.full) + DEFENSE))

    def herd(self, k: int) -> list[int]:
        """Chen, Welling & Smola (8)-(9): each kernel goes where the density so far falls short of
        the full one the most.
        """
        shortfall = self.full.copy()
        running = np.zeros_like(self.full)
        chosen: list[int] = []
        for t in range(k):
            chosen.append(int(shortfall.argmax()))
            running += self.heights(chosen[-1:])[:, 0]
            shortfall = self.full - running / (t + 2)
            shortfall[chosen] = -np.inf
        return chosen

    def exchange(
        self, chosen: list[int], rng: Any, max_sweeps: int
    ) -> tuple[list[int], list[float]]:
        """Fukunaga & Hayes: exchange chosen kernels for others as long as the criterion rises."""
        chosen = list(chosen)
        k = len(chosen)
        sums = self._mixed(np.array(chosen), np.ones(k))
        history = [self.criterion(sums, k)]
        for _ in range(max_sweeps):
            for place in range(k):
                sums = self._exchanged(chosen, place, sums, rng)
            history.append(self.criterion(sums, k))
            if history[-1] - history[-2] < TOLERANCE:
                break
        return chosen, history

    def _exchanged(self, chosen: list[int], place: int, sums: np.ndarray, rng: Any) -> np.ndarray:
        """The sums after the kernel at `place` has been exchanged for the best candidate, itself
        among them: each adds sum_i w_i ln(1 + K((x_i - c) / r) / rest_i) to the criterion.
        """
        out = self.heights([chosen[place]])[:, 0].astype(np.float64)
        rest = np.maximum(sums - out, 0.0)
        candidates = [chosen[place], *self._candidates(chosen, out, rest, rng)]
        heights = self.heights(candidates)
        share = 1 / (rest + DEFENSE / (1 - DEFENSE) * len(chosen) * self.full)
        terms = np.log1p(heights * share.astype(np.float32)[:, None])
        gain = self.weight.astype(np.float32) @ terms
        best = int(gain.argmax())
        if gain[best] <= (1 + 1e-5) * gain[0]:  # sums are rounded to float32
            return sums
        chosen[place] = candidates[best]
        return rest + heights[:, best]

    def _candidates(
        self, chosen: list[int], out: np.ndarray, rest: np.ndarray, rng: Any
    ) -> list[int]:
        """Half near the kernel that goes, half where rows would be badly represented without it;
        all of them if few.
        """
        taken = set(chosen)
        n = len(self.x)
        if n - len(chosen) <= N_CANDIDATES:
            return sorted(set(range(n)) - taken)
        near = self.weight * out
        poor = self.weight / (rest + len(chosen) * self.full * DEFENSE)
        drawn: set[int] = set()
        for chance in (near, poor):
            edge = np.cumsum(chance)
            where = np.searchsorted(edge, rng.uniform(size=N_CANDIDATES // 2) * edge[-1])
            drawn |= set(np.minimum(where, n - 1).tolist())
        return sorted(drawn - taken)


# -- the smallest size that suffices ---------------------------------------------------------------


class SizeSearch:
    """The smallest size whose error is within the tolerance of the full network's, by
    cross-validation.

    The full network of some of the rows would be no measure: where rows have few neighbors, it is
    much worse than that of all.
    """

    def __init__(self, reduction: Reduction) -> None:
        rows = reduction.rows
        self.reduction = reduction
        self.tolerance = reduction.settings.tolerance
        params = reduction.full.params
        at_radius = partial(wrong_rows, params=params, radii=[params.radius])
        self.full_wrong = 1.0 * each_row(at_radius, rows.x, rows.codes, rows.group)[:, 0]
        """Whether the full network misclassifies each row, left out of its own vote, (n,)."""
        self.full_error = float(np.average(self.full_wrong, weights=rows.weight))
        fold = stratified_folds(rows.codes, N_FOLDS, key=row_keys(rows.x, rows.weight))

        def of_others(train: Any, held_out: Any) -> tuple[tuple[np.ndarray, Reduction], Any]:
            others = Reduction(rows.take(*train), reduction.settings, reduction.rng)
            return (held_out[0], others), held_out[0]

        self.reductions, _ = cross_fit(of_others, (np.arange(len(rows)),), fold)
        """For each fold, the positions of its rows and the networks of all others."""
        self.standard_error = math.inf
        """Of the excess of the size tried last."""
        self.curve: list[tuple[int, float]] = []
        """Sizes tried, and the error of each on held-out rows."""

    def build(self) -> Trial:
        """The network of all rows: of the smallest size that suffices, or as much larger as it
        needs to be.
        """
        size = self.smallest()
        n_rows = len(self.reduction.rows)
        while size < n_rows:
            trial = self.reduction.reduce(size)
            if self._within(trial.error - self.full_error):
                return trial
            size = math.ceil(size * math.sqrt(2))
            size = n_rows if 2 * size > n_rows else size
        zeros = np.zeros(len(np.unique(self.reduction.rows.codes)))
        return replace(self.reduction.full, candidates=np.arange(n_rows), criterion=zeros)

    def smallest(self) -> int:
        """The smallest size that suffices: doubled until one does, then once between the last two.
        All rows if none does.
        """
        rows = self.reduction.rows
        fewest = min((len(r.rows) for _, r in self.reductions), default=0)
        below = 0
        size = len(np.unique(rows.codes))
        while not self.suffices(size):
            below = size
            size = 2 * size
            if 2 * size > fewest:
                return len(rows)
        between = round(math.sqrt(below * size))
        return between if below < between < size and self.suffices(between) else size

    def suffices(self, size: int) -> bool:
        """Whether the error stays within the tolerance of the full network's by a standard error of
        the difference.

        The difference is paired: rows that both networks get right, or both wrong, add nothing to
        its standard error. Where that exceeds half of the tolerance, the rows are too few to tell,
        and half of the tolerance must do.
        """
        rows = self.reduction.rows
        wrong = np.zeros(len(rows))
        weight = np.zeros(len(rows))  # of the rows that have been scored
        excess = math.inf
        for out, reduction in self.reductions:
            codes = predicted_codes(rows.x[out], reduction.reduce(size).params)
            wrong[out] = codes != rows.codes[out]
            weight[out] = rows.weight[out]
            difference = wrong - self.full_wrong
            excess = float(np.average(difference, weights=weight))
            variance = float((difference - excess) ** 2 @ weight)
            self.standard_error = math.sqrt(variance) / float(weight.sum())
            if excess - HOPELESS * self.standard_error > self.tolerance:
                break
        if self.reductions:
            self.curve.append((size, float(np.average(wrong, weights=weight))))
        return self._within(excess)

    def _within(self, excess: float) -> bool:
        return excess + min(self.standard_error, self.tolerance / 2) <= self.tolerance
