"""Parzen networks from rows: the kernels, their common radius, editing, and the reduction to few kernels.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991. The mathematics is in
`kernelpool.networks.parzen` and `kernelpool.networks.parzen_reduction`; records go in and come out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from sklearn.neighbors import KDTree

from ..arrays import Array, namespace
from ..errors import KernelpoolError
from ..networks.parzen import (
    ParzenParams,
    RadiusErrors,
    decided,
    gaps_of,
    log_joint,
    log_prior_scale,
    parzen_params,
    radius_errors,
    wrong_rows,
)
from ..networks.parzen_kernels import (
    INSIDE,
    PROFILES,
    TILE,
    Hypersphere,
    Profile,
    ball_log_volume,
    observed_distances,
    squared_distances,
)
from ..networks.parzen_reduction import Reducer
from ..rows import ArrayRows, Block, Frame, MissingCells, Rows, StoredRows, as_rows, on_host
from ..tables.columns import Columns
from ..tables.words import Indicators
from .prepare import TrainingData, mean_and_variance, training_data

LOO_ROWS, LOO_PAIRS = 4096, 1 << 24
"""Rows that are left out, one at a time, to choose a radius: a random sample of so many, or of so many pairs with kernels."""

OCTAVE = 4
"""Radii are chosen from the powers of two to the 1/OCTAVE, a list that does not depend on the data."""

MAX_RADII = 48

TREE_FEATURES, TREE_KERNELS = 4, 2000
"""Trees are faster than blocked products up to so many features and from so many kernels on."""

DIRECTIONS = 1 << 16
"""Directions along which the volume of a star-shaped set is measured."""

HALVES = range(9)
"""Densities are compared at the full network's radius times 2^(h/2) for one of these h."""

TRIAL_ROWS, TRIAL_SWEEPS = 4096, 3
"""Rows, or eight times the kernels to be kept if that is more, and sweeps of exchanges of a quick trial."""

EASE = 0.25
"""Standard errors by which a reduced network may err more, on the training rows, for the sake of a larger radius."""

THREAD_ROWS = 16384
"""Rows from which on an exchange is worth more than one thread."""

EM_SWEEPS = 50
"""Sweeps of EM that fit the votes of kept kernels; the criterion is concave in them."""


# -- rows in memory -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParzenRows:
    """Rows in memory, each with a class and some weight."""

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    index: np.ndarray
    """Where each row stood in X."""
    classes: np.ndarray
    frame: Frame
    variance: np.ndarray
    """Of each feature, (d,)."""
    n_rows: int = 0
    """Rows of X, those of weight zero included."""
    levels: tuple[int, ...] | None = None
    """How many levels each column of words has, 0 for numbers; None where all are numbers, or words are indicators by now."""
    words: tuple[int, ...] = ()
    """Levels of the columns of words whose indicators are the last columns."""
    word_distance: float = 0.0
    """Between two words of such a column."""
    columns: Columns = Columns(())  # noqa: RUF009
    holed: np.ndarray | None = None
    """The rows as they are judged, NaN where a cell is missing: those of `x` are filled. None where nothing is missing."""

    @property
    def judged(self) -> np.ndarray:
        """The rows as a network is asked about them."""
        return self.x if self.holed is None else self.holed

    def seen(
        self, frame: Frame, metric: np.ndarray | None = None, word_distance: float = 0.0
    ) -> "ParzenRows":
        """The rows in a frame, and then in a metric or with indicators for words, in which distances are to be taken."""
        x, holed = (
            self._inside(frame, self.x),
            None if self.holed is None else self._inside(frame, self.holed),
        )
        variance, words = self.variance / frame.unit**2, self.words
        if metric is not None:
            x, variance = x @ metric.T, (metric**2) @ variance
        if self.levels is not None:
            indicators, height = Indicators(self.levels), word_distance / math.sqrt(2)
            x, holed = (
                indicators.of(x, height),
                None if holed is None else indicators.of(holed, height),
            )
            share, words = self.weight / self.weight.sum(), indicators.words
            variance = share @ x**2 - (share @ x) ** 2 if len(x) else np.zeros(x.shape[1])
            variance = np.where(variance > 1e-14 * (share @ x**2), variance, 0.0)
        d = x.shape[1]
        frame = Frame(np.zeros(d), np.ones(d))
        return replace(
            self,
            x=x,
            frame=frame,
            variance=variance,
            holed=holed,
            levels=None,
            words=words,
            word_distance=word_distance,
        )

    def _inside(self, frame: Frame, x: np.ndarray) -> np.ndarray:
        return np.asarray(frame.inside(np.asarray(x, np.float64)))

    def part(self, at: np.ndarray) -> "ParzenRows":
        """Some of the rows, in the same frame."""
        holed = None if self.holed is None else self.holed[at]
        return replace(
            self,
            x=self.x[at],
            codes=self.codes[at],
            weight=self.weight[at],
            index=self.index[at],
            holed=holed,
        )

    def merge_duplicates(self) -> "ParzenRows":
        """Rows that stand several times in one class as one row of their weights together; in an order of their own."""
        order = np.lexsort((*self.x.T, self.codes))
        x, codes = self.x[order], self.codes[order]
        first = np.append(True, (codes[1:] != codes[:-1]) | (x[1:] != x[:-1]).any(axis=1))
        weight = np.bincount(np.cumsum(first) - 1, self.weight[order])
        return replace(self.part(order[first]), weight=weight)


def labeled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ParzenRows:
    """Checked rows of positive weight, in NumPy: they are the network, so they must fit into memory."""
    data = training_data(estimator, X, y, sample_weight)
    _check_in_memory(data)
    codes = on_host(data.rows.y)  # type: ignore[attr-defined]
    if (codes < 0).any():
        raise KernelpoolError(
            f"y must have a label for every row; row {int(np.argmin(codes))} has None. Drop such rows first."
        )
    return labeled_rows(data)


def _check_in_memory(data: TrainingData) -> None:
    if isinstance(data.rows, StoredRows):
        raise KernelpoolError(
            f"This classifier needs its training rows in memory, and the {data.n_rows:.0f} rows of X are too many to be kept. "
            f"Fit a sample of them, or SharedKernelClassifier, which reads them batch by batch."
        )


def labeled_rows(data: TrainingData) -> ParzenRows:
    """The rows that have a label and some weight, in NumPy."""
    _check_in_memory(data)
    x, codes, weight = (on_host(a) for a in (data.rows.x, data.rows.y, data.rows.weight))  # type: ignore[attr-defined]
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
    at = np.flatnonzero((weight > 0) & (codes >= 0))
    if data.levels is None:
        frame, variance = common_unit_frame(data.mean, data.variance), data.variance
    else:  # codes of words stay as they are
        numbers = np.array(data.levels) == 0
        frame = Frame(np.where(numbers, data.mean, 0.0), np.ones(len(numbers)))
        variance = np.where(numbers, data.variance, 1.0)
    return ParzenRows(
        x[at],
        codes[at],
        weight[at],
        at,
        data.classes,
        frame,
        variance,
        len(x),
        data.levels,
        columns=data.columns,
    )


def common_unit_frame(mean: np.ndarray, variance: np.ndarray) -> Frame:
    """About the mean, in one unit for all features, a power of two: distances stay distances."""
    unit = 2.0 ** np.round(0.5 * np.log2(variance.mean())) if variance.any() else 1.0
    return Frame(mean, np.full(len(mean), unit))


def apportion_kernels(weight: np.ndarray, most: np.ndarray, total: int) -> list[int]:
    """`total` kernels dealt out in proportion to `weight`, at least one and at most `most` a class."""
    counts = np.ones(len(weight), int)
    for _ in range(min(total, int(most.sum())) - len(counts)):
        share = np.where(
            counts < most, weight / (counts + 0.5), -1.0
        )  # Webster's method: the most underrepresented next
        counts[np.argmax(share)] += 1
    return [int(n) for n in counts]


# -- star-shaped kernels ------------------------------------------------------------------------------------------------


class StarShaped(Hypersphere):
    """The indicator of a star-shaped set, given by its gauge: g(x - center) <= radius is inside."""

    noun = "star-shaped kernel"
    countable = False

    def __init__(self, gauge: Callable[[Array], Array], log_volume: float) -> None:
        self.gauge, self._log_volume = gauge, log_volume

    @classmethod
    def measured(cls, gauge: Callable[[np.ndarray], np.ndarray], d: int) -> Self:
        """Check the gauge and measure the volume of its set in d dimensions: the mean of g^-d over directions, times a ball."""
        value = _checked_gauge(gauge, directions(d))
        with np.errstate(divide="ignore"):
            return cls(gauge, ball_log_volume(d) + float(np.log(np.mean(value ** -float(d)))))

    def log_volume(self, d: int) -> float:
        return self._log_volume

    def squared(self, x: Array, center: Array, narrow: bool) -> Array:
        xp, step = (
            namespace(x),
            max(1, TILE // (2 * x.shape[1])),
        )  # differences take d times the memory of distances
        parts = []
        for start in range(0, center.shape[0], step):
            away = x[:, None, :] - center[None, start : min(start + step, center.shape[0]), :]
            parts.append(xp.reshape(self.gauge(xp.reshape(away, (-1, x.shape[1]))), away.shape[:2]))
        return xp.concat(parts, axis=1) ** 2

    def sample(self, n: int, d: int, rng: np.random.RandomState) -> np.ndarray:
        length = rng.uniform(size=(n, 1)) ** (1 / d)
        direction, gauge = directions(d), _checked_gauge(self.gauge, directions(d))
        volume = gauge ** -float(d)  # a direction holds the more of the set the farther it reaches
        at = rng.choice(len(direction), size=n, p=volume / volume.sum())
        return np.asarray(length * direction[at] / gauge[at, None])


def profile_of(
    kernel: str | Callable[[np.ndarray], np.ndarray], d: int, log_volume: float | None = None
) -> Profile:
    """The kernel that a user names, or gives by its gauge; a `log_volume` that is known is not measured again."""
    if isinstance(kernel, str):
        return PROFILES[kernel]()
    if isinstance(kernel, type):  # NumPy's types are callable too
        raise KernelpoolError(
            f"kernel must be one of {sorted(PROFILES)} or a function of differences, (n, d), that returns (n,) numbers; got "
            f"the class {kernel.__module__}.{kernel.__qualname__}."
        )
    return StarShaped.measured(kernel, d) if log_volume is None else StarShaped(kernel, log_volume)


@lru_cache(maxsize=4)
def directions(d: int) -> np.ndarray:
    """Directions, uniform on the sphere and always the same, (DIRECTIONS, d)."""
    normal = np.random.default_rng(0).standard_normal((DIRECTIONS, d))
    directions: np.ndarray = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    directions.flags.writeable = False
    return directions


def _checked_gauge(gauge: Callable[[np.ndarray], np.ndarray], directions: np.ndarray) -> np.ndarray:
    """The gauge along `directions`, found to be one."""
    found = np.asarray(gauge(directions))
    if found.shape != (len(directions),) or found.dtype.kind != "f":
        raise KernelpoolError(
            f"kernel must return one number a row, by what factor the set must be scaled to reach it: shape "
            f"({len(directions)},) and floats expected; got {found.shape} and {found.dtype}."
        )
    if not (np.isfinite(found).all() and found.min() > 0):
        raise KernelpoolError(
            f"kernel must return positive numbers except at zero; got {found.min()}."
        )
    if not np.allclose(np.asarray(gauge(2 * directions[:64])), 2 * found[:64], rtol=1e-6):
        raise KernelpoolError(
            "kernel must be a gauge: twice the difference must give twice the value."
        )
    return found


# -- networks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParzenConfig:
    """What every network of one fit has in common."""

    profile: Profile
    radius: float | None
    """None: chosen by leave-one-out."""
    class_prior: np.ndarray | None = None
    """None: every vote counts the same."""
    algorithm: str = "auto"
    n_jobs: int | None = None


@dataclass(frozen=True)
class RadiusChoice:
    """A radius, the candidates that it was chosen from, and their errors."""

    radius: float
    radii: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True)
class FittedParzen:
    """Some rows as kernels, sorted by class, in the units of the data."""

    kernels: np.ndarray
    """(M, d)."""
    codes: np.ndarray
    """Their classes, (M,)."""
    weight: np.ndarray
    """Their votes, (M,)."""
    index: np.ndarray
    """Where each stood in X, (M,)."""
    class_prior: np.ndarray | None
    """As the user gave it, (K,)."""
    votes: np.ndarray
    """Of each class, (K,)."""
    frame: Frame
    radius: float
    choice: RadiusChoice | None = None
    words: tuple[int, ...] = ()
    """As in `ParzenRows`."""
    word_distance: float = 0.0

    def params(self, radius: float | None = None) -> ParzenParams:
        """Parameters in the frame."""
        center = (np.asarray(self.kernels, np.float64) - self.frame.origin) / self.frame.unit
        radius = (self.radius if radius is None else radius) / float(self.frame.unit[0])
        words = self.words, (self.word_distance / float(self.frame.unit[0])) ** 2
        return voting_params(
            center, self.codes, self.weight, self.votes, self.class_prior, radius, *words
        )

    def with_radius(self, choice: RadiusChoice) -> "FittedParzen":
        """The same kernels at the radius chosen."""
        return replace(self, radius=choice.radius, choice=choice)


def voting_params(
    center: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    votes: np.ndarray,
    class_prior: np.ndarray | None,
    radius: float,
    words: tuple[int, ...] = (),
    word_squared: float = 0.0,
) -> ParzenParams:
    """Parameters of kernels in a frame, sorted by class; `votes` are those of each class, `class_prior` as the user gave it."""
    offsets = tuple(np.searchsorted(codes, np.arange(len(votes) + 1)).tolist())
    if class_prior is not None:
        log_scale = log_prior_scale(class_prior, votes)
    else:  # every vote counts the same, to the last bit: a tie is a tie
        log_scale = np.where(votes > 0, -math.log(votes.sum()), -np.inf)
    return parzen_params(center, weight, offsets, log_scale, radius, words, word_squared)


def kernels_at(
    data: ParzenRows,
    at: np.ndarray,
    weight: np.ndarray,
    class_prior: np.ndarray | None,
    radius: float = 1.0,
) -> FittedParzen:
    """The rows `at` as kernels, sorted by class, each with a `weight` of votes."""
    order = np.argsort(data.codes[at], kind="stable")
    at, weight = at[order], weight[order]
    codes = data.codes[at]
    votes = np.bincount(codes, weight, minlength=len(data.classes))
    rows = data.x[at], codes, weight, data.index[at]
    return FittedParzen(
        *rows,
        class_prior,
        votes,
        data.frame,
        radius,
        words=data.words,
        word_distance=data.word_distance,
    )


def fit_full_network(
    data: ParzenRows,
    config: ParzenConfig,
    rng: np.random.RandomState,
    held_out: ParzenRows | np.ndarray | None = None,
) -> FittedParzen:
    """A kernel at every row; the radius as given, chosen by leave-one-out, or chosen on rows that are held out.

    Held-out rows are given, or named by their positions in `data`: these judge the radii of the other rows' kernels and become
    kernels themselves afterwards.
    """
    every = kernels_at(data, np.arange(len(data.x)), data.weight, config.class_prior)
    if config.radius is not None:
        return replace(every, radius=float(config.radius))
    if held_out is None:
        return every.with_radius(
            choose_radius(every, data, data, own_kernels(data.codes), config, rng)
        )
    if isinstance(held_out, ParzenRows):
        return every.with_radius(
            choose_radius(every, data, held_out, _no_kernels(held_out), config, rng)
        )
    others = np.setdiff1d(np.arange(len(data.x)), held_out)
    some, judges = (
        kernels_at(data, others, data.weight[others], config.class_prior),
        data.part(held_out),
    )
    return every.with_radius(choose_radius(some, data, judges, _no_kernels(judges), config, rng))


def own_kernels(codes: np.ndarray) -> np.ndarray:
    """Which kernel each row is where all are, sorted by class, (n,)."""
    own = np.empty(len(codes), np.int64)
    own[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    return own


def _no_kernels(rows: ParzenRows) -> np.ndarray:
    return np.full(len(rows.x), -1)


# -- the radius ---------------------------------------------------------------------------------------------------------


def candidate_radii(profile: Profile, variance: np.ndarray, weight: float) -> np.ndarray:
    """Candidates, falling, from the fixed list: from the spread of the data to less than a row's distance from the next."""
    d = len(variance)
    spread = math.sqrt(variance.sum()) * profile.largest_radius(d)
    if not spread > 0:
        return np.ones(1)
    smallest = 0.5 * spread * max(weight, 2.0) ** (-1 / min(d, 2))
    high = math.floor(OCTAVE * math.log2(spread))
    low = max(math.floor(OCTAVE * math.log2(smallest)), high - MAX_RADII + 1)
    return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)


def choose_radius(
    network: FittedParzen,
    data: ParzenRows,
    query: ParzenRows,
    own: np.ndarray,
    config: ParzenConfig,
    rng: np.random.RandomState,
    ease: float = 0.0,
) -> RadiusChoice:
    """The radius with the fewest errors on `query`; of several, the middle one. `own` is the kernel that each row itself is.

    With some `ease`, the largest radius whose errors are within so many standard errors of the fewest: it covers more.
    """
    radii = candidate_radii(config.profile, data.variance, data.weight.sum())
    errors = errors_by_radius(network, radii, query, own, config, rng)
    share = errors.wrong / errors.weight
    fewest = float(errors.wrong.min())
    if ease:
        # the weights of wrong rows are added up in another order than those of all: their ratio may exceed one
        allowed = fewest + ease * math.sqrt(max(0.0, fewest * (1 - fewest / float(errors.weight))))
        return RadiusChoice(float(radii[np.argmax(errors.wrong <= allowed)]), radii, share)
    best = np.flatnonzero(errors.wrong <= fewest * (1 + 1e-12))
    return RadiusChoice(float(radii[best[(len(best) - 1) // 2]]), radii, share)


def judged_rows(query: ParzenRows, n_jobs: int | None, *, weighted: bool = False) -> Rows:
    """Rows to be judged, their positions in y."""
    at, weight = np.arange(len(query.x)), query.weight if weighted else None
    if query.holed is None:
        return ArrayRows(query.x, at, weight, n_jobs=n_jobs)
    return as_rows(query.holed, at, weight, n_jobs=n_jobs)


def errors_by_radius(
    network: FittedParzen,
    radii: np.ndarray,
    query: ParzenRows,
    own: np.ndarray,
    config: ParzenConfig,
    rng: np.random.RandomState,
) -> RadiusErrors:
    """Errors of each radius on `query`, or on a random part of it where pairs of rows and kernels are too many."""
    at, most = np.arange(len(query.x)), max(LOO_ROWS, LOO_PAIRS // len(network.kernels))
    if len(at) > most:
        at = np.sort(rng.choice(at, most, replace=False))
    rows = judged_rows(query.part(at), config.n_jobs, weighted=True).framed(network.frame, TILE)
    scaled = (radii / network.frame.unit[0]).tolist()
    params = network.params(float(radii[-1]))
    errors: RadiusErrors = rows.total(
        radius_errors, config.profile, params, scaled, query.codes[at], own[at]
    )
    return errors


# -- predictions --------------------------------------------------------------------------------------------------------

Trees = tuple[KDTree | None, ...]


def build_trees(params: ParzenParams, profile: Profile, algorithm: str) -> Trees | None:
    """One tree a class, of kernels in the frame, where counting with them is faster than multiplying; or None."""
    possible = profile.countable and len(np.unique(params.weight)) == 1
    if algorithm == "tree" and not possible:
        raise KernelpoolError(
            "algorithm='tree' needs kernel='hypersphere' and equal weights; use algorithm='auto'."
        )
    small = params.center.shape[1] <= TREE_FEATURES and len(params.center) >= TREE_KERNELS
    if not (algorithm == "tree" or (algorithm == "auto" and possible and small)):
        return None
    spans = [slice(params.offsets[k], params.offsets[k + 1]) for k in range(params.n_classes)]
    return tuple(KDTree(params.center[s]) if s.stop > s.start else None for s in spans)


def joint_or_counts(
    block: Block, profile: Profile, params: ParzenParams, log_norm: float, trees: Trees | None
) -> Array:
    """log P(C_k) p(x|C_k), (n, K); minus infinity where no kernel of the class covers the row."""
    if trees is None or block.missing is not None:
        return log_joint(block, profile, params, log_norm)
    return _count_votes(block, params, trees, log_norm)


LONGEST_ODDS = math.log(1e12)
"""Tempered votes of two classes are taken to differ by no more than this: a narrow kernel is never that sure of its class."""


def tempered_scores(scores: Array, temperature: float) -> Array:
    """Class scores (n, K) at a temperature, up to a constant of the row; a temperature of one leaves them as they are."""
    if temperature == 1:
        return scores
    xp = namespace(scores)
    away = scores - xp.max(scores, axis=1, keepdims=True)
    return (
        xp.clip(xp.where(xp.isnan(away), xp.zeros_like(away), away), min=-LONGEST_ODDS)
        / temperature
    )


def leave_one_out_scores(
    profile: Profile, params: ParzenParams, temperature: float, observed: np.ndarray | None = None
) -> np.ndarray:
    """log P(C_k|x) of every kernel's own row by the votes of the others, (M, K).

    A kernel of weight w is w rows at one place: w - 1 of them still vote for it. Where `observed` (M, D) is given, a row is
    judged by the cells that were known of it.
    """
    center, weight = np.asarray(params.center), np.asarray(params.weight, np.float64)
    of_class = np.zeros((len(center), params.n_classes))
    for k in range(params.n_classes):
        of_class[params.offsets[k] : params.offsets[k + 1], k] = 1
    found = np.empty_like(of_class)
    step = max(1, (1 << 21) // len(center))
    for start in range(0, len(center), step):
        rows = np.arange(start, min(start + step, len(center)))
        log_height = _log_heights_at(rows, profile, params, observed)
        votes = np.broadcast_to(weight, log_height.shape).copy()
        votes[np.arange(len(rows)), rows] = np.maximum(weight[rows] - 1, 0)
        log_height = np.where(votes > 0, log_height, -np.inf)
        peak = log_height.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            joint = (
                np.log((np.exp(log_height - peak) * votes) @ of_class)
                + peak
                + np.asarray(params.log_scale)
            )
        joint = np.where(
            np.isfinite(joint.max(axis=1, keepdims=True)), joint, 0.0
        )  # a row that no other vote reaches
        joint = np.asarray(tempered_scores(joint, temperature))
        found[rows] = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    return found


def _log_heights_at(
    rows: np.ndarray, profile: Profile, params: ParzenParams, observed: np.ndarray | None
) -> np.ndarray:
    """log of the heights of all kernels at the centers of some, (n, M), up to a constant of the row."""
    center, radius = np.asarray(params.center), params.radius
    if observed is None:
        squared = np.maximum(squared_distances(center[rows], center, params.narrow), 0) / radius**2
        return np.asarray(profile.log_height(squared))
    known = np.asarray(observed[rows], np.float64)
    squared = (
        np.maximum(observed_distances(center[rows], known, center, params.narrow), 0) / radius**2
    )
    gaps = gaps_of(_holed_block(center[rows], known), params.words)
    assert gaps is not None
    return np.asarray(
        profile.log_marginal(
            squared, gaps.n_numbers, gaps.log_ways, params.word_squared / radius**2
        )
    )


def _holed_block(x: np.ndarray, observed: np.ndarray) -> Block:
    block = Block(x)
    block.missing = MissingCells(observed, observed, ())
    return block


def class_scores(
    block: Block, profile: Profile, params: ParzenParams, log_norm: float, trees: Trees | None
) -> Array:
    """The same with rows that no kernel covers given to the class of their nearest kernel."""
    joint = joint_or_counts(block, profile, params, log_norm, trees)
    if trees is None or block.missing is not None:
        return decided(joint, block, profile, params)
    return _decided_by_trees(joint, block, trees)


def _count_votes(block: Block, params: ParzenParams, trees: Trees, log_norm: float) -> np.ndarray:
    """`log_joint` of hyperspheres by counting: whole branches within the radius are counted unseen."""
    x = np.asarray(block.x, np.float64)
    reach = params.radius * math.sqrt(INSIDE)
    counts = [
        np.zeros(len(x)) if tree is None else tree.query_radius(x, reach, count_only=True)
        for tree in trees
    ]
    with np.errstate(divide="ignore"):
        votes = np.log(np.stack(counts, axis=1)) + math.log(float(params.weight[0]))
    return np.asarray(votes + (params.log_scale - log_norm))


def _decided_by_trees(joint: np.ndarray, block: Block, trees: Trees) -> np.ndarray:
    rows = np.flatnonzero(joint.max(axis=1) == -np.inf)
    if len(rows):
        x = np.asarray(block.x[rows], np.float64)
        least = [
            np.full(len(x), np.inf) if tree is None else tree.query(x, k=1)[0][:, 0]
            for tree in trees
        ]
        joint[rows] = -np.inf
        joint[rows, np.argmin(np.stack(least, axis=1), axis=1)] = 0.0
    return joint


def predicted_codes(network: FittedParzen, config: ParzenConfig, x: np.ndarray) -> np.ndarray:
    """The class of each row, cells of which may be missing, (n,)."""
    params, d = network.params(), x.shape[1]
    trees = build_trees(params, config.profile, config.algorithm)
    log_norm = config.profile.log_volume(d) + d * math.log(network.radius)
    rows = as_rows(x, n_jobs=config.n_jobs).framed(network.frame, TILE)
    return np.asarray(rows.each(_most_votes, config.profile, params, log_norm, trees))


def _most_votes(
    block: Block, profile: Profile, params: ParzenParams, log_norm: float, trees: Trees | None
) -> np.ndarray:
    return np.argmax(class_scores(block, profile, params, log_norm, trees), axis=1)


# -- editing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoundInfo:
    """What a callback is told after each round of editing.

    Attributes
    ----------
    round : int
        Rounds made so far.
    n_kept : int
        Rows that are left.
    n_dropped : int
        Rows dropped in this round.
    n_quiet : int
        Rounds in a row, this one included, that dropped nothing.
    """

    round: int
    n_kept: int
    n_dropped: int
    n_quiet: int


@dataclass(frozen=True)
class EditedRows:
    """What editing left."""

    kept: np.ndarray
    """Positions of the rows, rising."""
    history: np.ndarray
    """Rows left after each round, from all of them on."""
    quiet: bool
    """Whether the last rounds dropped nothing."""
    spared: np.ndarray
    """Codes of classes of which a round would have dropped every row."""


def multi_edit(
    codes: np.ndarray,
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rng: np.random.RandomState,
    *,
    n_parts: int = 3,
    n_quiet: int = 3,
    max_rounds: int = 100,
    on_round: Callable[[RoundInfo], bool] | None = None,
) -> EditedRows:
    """Steps 1-5 of the paper; `predict(judges, part)` are the codes that the rows `judges` give to the rows `part`."""

    def is_right(part: np.ndarray, judges: np.ndarray) -> np.ndarray:
        present = np.unique(codes[judges])  # most classifiers refuse to learn from one class
        predicted = present[0] if len(present) == 1 else predict(judges, part)
        return np.asarray(codes[part] == predicted)

    pool, history, quiet = np.arange(len(codes)), [len(codes)], 0
    spared: set[int] = set()
    while quiet < n_quiet and len(history) <= max_rounds and len(pool) >= n_parts:
        parts = np.array_split(rng.permutation(pool), n_parts)
        kept = np.concatenate(
            [part[is_right(part, parts[(i + 1) % n_parts])] for i, part in enumerate(parts)]
        )
        lost = np.setdiff1d(np.unique(codes[pool]), np.unique(codes[kept]))
        if len(lost):  # no round may take a whole class away
            spared |= set(lost.tolist())
            kept = np.concatenate([kept, pool[np.isin(codes[pool], lost)]])
        quiet = quiet + 1 if len(kept) == len(pool) else 0
        n_dropped, pool = len(pool) - len(kept), kept
        history.append(len(pool))
        if on_round is not None and on_round(
            RoundInfo(len(history) - 1, len(pool), n_dropped, quiet)
        ):
            break
    return EditedRows(
        np.sort(pool), np.array(history), quiet >= n_quiet, np.array(sorted(spared), int)
    )


# -- reduction ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReductionConfig:
    """How few kernels are chosen from many."""

    method: str
    weights: str
    n_candidates: int
    max_sweeps: int
    tol: float
    edit: bool | str | Callable[[np.ndarray, np.ndarray], np.ndarray]
    """Whether to edit first, "auto" to let the errors decide; or a function of rows and codes that returns the positions of the
    rows it keeps."""


@dataclass(frozen=True)
class ReducedParzen:
    """A network of few kernels and how it came about."""

    network: FittedParzen
    full_radius: float
    criterion: np.ndarray
    """Mean ln(p_K / p_N) over the rows of each class from which kernels were chosen."""
    edited: np.ndarray
    """Where the rows from which kernels were chosen stood in X, rising."""
    error: float
    """On the training rows, none voting for itself."""


def _silent(line: str) -> None:
    """Says nothing."""


class Reduction:
    """One training set and its full network, from which networks of any size are made."""

    def __init__(
        self,
        data: ParzenRows,
        parzen: ParzenConfig,
        config: ReductionConfig,
        rng: np.random.RandomState,
        say: Callable[[str], None] = _silent,
        on_round: Callable[[RoundInfo], bool] | None = None,
        judges: ParzenRows | None = None,
    ) -> None:
        self.data, self.parzen, self.config, self.rng, self.say = data, parzen, config, rng, say
        self.judges = judges
        """Rows apart on which kernels and radius are chosen; None takes the training rows, none voting for itself."""
        self.full = fit_full_network(_in_own_frame(data, data.weight), parzen, rng)
        say(f"full network: {len(data.x)} kernels of radius {self.full.radius:.4g}")
        self.pools = self._pools(on_round)
        self.way = (0, 2)
        """Pool and scale of the network made last, from which the next search sets out."""
        self.best_trial: ReducedParzen | None = None
        """Of all networks made so far, the one with the fewest errors."""

    def full_wrong(self) -> np.ndarray:
        """One for each row that the full network misclassifies, the row left out of its own vote, zero for the others."""
        data, own = self.data, own_kernels(self.data.codes)
        rows = judged_rows(data, self.parzen.n_jobs).framed(self.full.frame, TILE)
        return np.asarray(
            rows.each(wrong_rows, self.parzen.profile, self.full.params(), data.codes, own)
        )

    def full_network(self) -> ReducedParzen:
        """The full network itself, in the form of a reduced one."""
        data, full = self.data, self.full
        every = kernels_at(data, np.arange(len(data.x)), data.weight, self.parzen.class_prior)
        every = replace(every, radius=full.radius, choice=full.choice)
        zeros = np.zeros(len(np.unique(data.codes)))
        error = float(full.choice.errors.min()) if full.choice is not None else math.nan
        return ReducedParzen(every, full.radius, zeros, np.sort(data.index), error)

    @property
    def n_tried(self) -> int:
        """Networks among which `judges` may have chosen: pools, scales and radii are fixed by the training rows alone.

        Twice as many, since a quick trial and the whole one may keep different kernels.
        """
        n_scales = len(HALVES) if self.parzen.radius is None else 1
        radii = candidate_radii(self.parzen.profile, self.data.variance, self.data.weight.sum())
        return 2 * len(self.pools) * n_scales * (len(radii) if self.parzen.radius is None else 1)

    # -- editing ----------------------------------------------------------------------------------------------------

    def _pools(self, on_round: Callable[[RoundInfo], bool] | None) -> list[np.ndarray]:
        """Sets of rows among which kernels may be chosen: what editing leaves, or all."""
        edit, everything = self.config.edit, np.arange(len(self.data.x))
        if edit is False or len(everything) < 3:  # too few to be dealt into parts
            return [everything]
        if callable(edit):
            order = np.argsort(
                self.data.index
            )  # the user's resampler sees the rows in the order of X
            pools = [self._checked_pool(order[edit(self.data.x[order], self.data.codes[order])])]
        else:
            pools = self._edited(on_round)
        self.say("edited: " + " or ".join(str(len(pool)) for pool in pools) + " kernels left")
        return [*pools, everything] if edit == "auto" else pools

    def _edited(self, on_round: Callable[[RoundInfo], bool] | None) -> list[np.ndarray]:
        """What is left after the first round, and at the end.

        Round after round is judged by what the rounds before have left. A row near a bent boundary has more of the outer class
        around it, so boundaries creep inwards as long as there is something to drop: the first round may be the better one.
        """
        data, seed = self.data, self.rng.randint(2**31)
        config = ParzenConfig(self.parzen.profile, self.full.radius, n_jobs=self.parzen.n_jobs)

        def predict(judges: np.ndarray, part: np.ndarray) -> np.ndarray:
            rows = _in_own_frame(data.part(judges), None)  # every distinct row counts once
            return predicted_codes(
                fit_full_network(rows, config, self.rng), config, data.judged[part]
            )

        once = multi_edit(data.codes, predict, np.random.RandomState(seed), max_rounds=1)
        ended = multi_edit(data.codes, predict, np.random.RandomState(seed), on_round=on_round)
        pools = [once.kept, ended.kept] if len(once.kept) != len(ended.kept) else [ended.kept]
        return [self._checked_pool(pool) for pool in pools]

    def _checked_pool(self, kept: np.ndarray) -> np.ndarray:
        data = self.data
        lost = np.setdiff1d(np.unique(data.codes), data.codes[kept])
        if len(lost):
            raise KernelpoolError(
                f"Editing left no row of class {data.classes[lost].tolist()[0]!r}. Use edit=False, or a smaller radius."
            )
        return np.sort(kept)

    # -- choosing kernels -------------------------------------------------------------------------------------------

    def reduce(self, size: int) -> ReducedParzen:
        """Keep `size` rows: of the pool, and at the scale, at which quick trials classify the training rows best."""
        seed = self.rng.randint(2**31)
        self.way = self._best_way(size, seed)
        found = self._trial(self.pools[self.way[0]], self.way, size, self.config.max_sweeps, seed)
        if self.judges is not None and self.best_trial is not None:
            found = (
                self.best_trial
            )  # the subset with the best performance on the test set, of all that were tried
        self.say(
            f"reduced: {len(found.network.kernels)} of {len(self.pools[self.way[0]])} kernels, radius "
            f"{found.network.radius:.4g}, criterion {found.criterion.mean():.4f}"
        )
        return found

    def _best_way(self, size: int, seed: int) -> tuple[int, int]:
        """Which pool, and which of `HALVES`: in each pool by octaves as long as the error falls, then one half step."""
        errors: dict[tuple[int, int], float] = {}

        def error_of(way: tuple[int, int]) -> float:
            if way not in errors:
                pool, most = self.pools[way[0]], max(TRIAL_ROWS, 8 * size)
                some = (
                    pool
                    if len(pool) <= most
                    else np.random.RandomState(seed).permutation(pool)[:most]
                )
                errors[way] = self._trial(
                    some, way, size, min(TRIAL_SWEEPS, self.config.max_sweeps), seed
                ).error
            return errors[way]

        def best_near(way: tuple[int, int], step: int) -> tuple[int, int]:
            near = [
                (way[0], half) for half in (way[1], way[1] - step, way[1] + step) if half in HALVES
            ]
            return min(near, key=error_of)

        if self.parzen.radius is not None:
            return (
                min(((i, 0) for i in range(len(self.pools))), key=error_of)
                if len(self.pools) > 1
                else (0, 0)
            )
        for i in range(len(self.pools)):
            way, last = (i, self.way[1]), None
            while way != last:
                way, last = best_near(way, 2), way
        return best_near(min(errors, key=error_of), 1)

    def _trial(
        self, some: np.ndarray, way: tuple[int, int], size: int, n_sweeps: int, seed: int
    ) -> ReducedParzen:
        """`size` of the rows `some` of a pool, and the radius at which they classify the training rows best."""
        data, rng = self.data, np.random.RandomState(seed)
        part = data.part(some)
        codes = np.unique(part.codes)
        counts = apportion_kernels(
            np.bincount(part.codes, part.weight)[codes], np.bincount(part.codes)[codes], size
        )
        kept, weight, criterion = [], [], []
        for code, count in zip(codes, counts, strict=True):
            in_class = np.flatnonzero(part.codes == code)
            chosen, vote, reached = self._reduce_class(
                part.part(in_class), count, 2.0 ** (way[1] / 2), n_sweeps, rng
            )
            kept.append(some[in_class[chosen]])
            weight.append(vote * count)
            criterion.append(reached)
        at = np.concatenate(kept)
        network, error = self._with_radius(at, np.concatenate(weight), seed)
        edited = np.sort(data.index[self.pools[way[0]]])
        found = ReducedParzen(network, self.full.radius, np.array(criterion), edited, error)
        if self.best_trial is None or error <= self.best_trial.error:
            self.best_trial = found
        return found

    def _with_radius(
        self, at: np.ndarray, weight: np.ndarray, seed: int
    ) -> tuple[FittedParzen, float]:
        """The rows `at` as kernels, at the radius given or the one with the fewest errors on the training rows; the error."""
        data, judges = self.data, np.random.RandomState(seed)  # the same rows judge every trial
        network = kernels_at(data, at, weight, self.parzen.class_prior)
        own = np.full(len(data.x), -1)
        own[at[np.argsort(data.codes[at], kind="stable")]] = np.arange(len(at))
        query, own = (data, own) if self.judges is None else (self.judges, _no_kernels(self.judges))
        if self.parzen.radius is None:
            choice = choose_radius(
                network, data, query, own, self.parzen, judges, EASE if self.judges is None else 0.0
            )
            return network.with_radius(choice), float(choice.errors.min())
        network = replace(network, radius=float(self.parzen.radius))
        errors = errors_by_radius(
            network, np.array([network.radius]), query, own, self.parzen, judges
        )
        return network, float(errors.wrong[0] / errors.weight)

    def _reduce_class(
        self, part: ParzenRows, count: int, scale: float, n_sweeps: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions of the kept rows of one class, their votes, which sum to one, and the criterion."""
        config = self.config
        if count >= len(part.x):
            return np.arange(len(part.x)), np.full(count, 1 / count), 0.0
        frame, d = part.frame, part.x.shape[1]
        x = np.asarray(frame.inside(np.asarray(part.x, np.float64)))
        radius = scale * self.full.radius / float(frame.unit[0])
        n_jobs = self.parzen.n_jobs if len(x) >= THREAD_ROWS else 1
        rows = ArrayRows(x, np.arange(len(x)), width=max(config.n_candidates, d), n_jobs=n_jobs)
        narrow = parzen_params(x, part.weight, (0, len(x)), np.zeros(1), radius).narrow
        reducer = Reducer(
            rows, x, np.asarray(part.weight, np.float64), self.parzen.profile, radius, narrow
        )
        kept = reducer.herd(count)
        sweeps = n_sweeps if config.method == "entropy" else 0
        kept, history = reducer.exchange(
            kept,
            lambda n: rng.uniform(size=n),
            n_candidates=config.n_candidates,
            max_sweeps=sweeps,
            tol=config.tol,
        )
        votes = (
            np.full(count, 1 / count)
            if config.weights == "equal"
            else reducer.weights(kept, n_sweeps=EM_SWEEPS)
        )
        return np.array(kept), votes, history[-1]


def _in_own_frame(data: ParzenRows, weight: np.ndarray | None) -> ParzenRows:
    """The rows in the frame of their own mean and variance; each counts once where `weight` is None."""
    rows = as_rows(data.x, data.codes, None if weight is None else weight.astype(data.x.dtype))
    mean, variance = mean_and_variance(rows)
    counts = (
        np.ones(len(data.x))
        if weight is None
        else np.asarray(weight.astype(data.x.dtype), np.float64)
    )
    return replace(data, weight=counts, frame=common_unit_frame(mean, variance), variance=variance)
