r"""Parzen networks: the fitted record, votes of kernels, and what is predicted from them.

.. math::

    f(x) = \arg\max_k \sum_{i:\, y_i = k} w_i\, K\!\left(\frac{x - x_i}{r}\right)

The symbols, and the deviations from the paper, are those of `kernelpool.parzen`. A reduced network
(`kernelpool.parzen.reduce`) is the same with few of the rows as kernels.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from ..arrays import safe_log, squared_distances
from ..base.classifier import prior_shift
from ..complete.classifier import CompleteDoor
from ..data.folds import row_keys
from ..errors import KernelpoolError
from ..records import nested, saved
from ..rows import ArrayRows

TILE = 512
"""Kernels that a block of rows meets at a time: nothing of size n x M is ever held."""

ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}
"""Of a squared distance: two that differ by no more are equal. A hypersphere is closed, and holds
what lies this little outside; kernels that fall to zero at the radius do not reach it.
"""

VANISHED_VOTES = 1e-200
"""Sums of Gaussian heights below this are taken about the largest term."""

LONGEST_ODDS = math.log(1e12)
"""Tempered votes of two classes are taken to differ by no more than this: a narrow kernel is never
that sure of its class.
"""

NARROW = 1e-6
"""Where radius^2 is less than this part of the largest squared norm, distances are taken from
differences, not products."""


def each_row(
    function: Callable[..., np.ndarray], x: np.ndarray, *aligned: np.ndarray, width: int = 4 * TILE
) -> np.ndarray:
    """`function(x, *aligned)` of blocks of rows, on several threads; `width` numbers of scratch a
    row.
    """
    rows = ArrayRows(x, np.arange(len(x)), width=width)
    return np.asarray(
        rows.each(lambda block: function(block.x, *(values[block.y] for values in aligned)))
    )


# -- kernels -------------------------------------------------------------------------------------


class Profile(ABC):
    """Height of a kernel over the squared distance from its center, in units of the radius; one at
    the center.
    """

    noun: ClassVar[str]
    """What one kernel is called."""

    compact: ClassVar[bool] = True
    """Whether it is zero beyond some distance."""

    @abstractmethod
    def height(self, squared: np.ndarray) -> np.ndarray:
        """Height at `squared` = (distance / radius)^2."""

    @abstractmethod
    def log_volume(self, d: int) -> float:
        """Logarithm of its integral in d dimensions at radius one."""

    @abstractmethod
    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        """Draws from the kernel of radius one at zero, (n, d); `rng` is a NumPy random state."""

    @abstractmethod
    def variance(self, d: int) -> float:
        """Variance along each feature in d dimensions at radius one."""

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        """Logarithm of the height."""
        return safe_log(self.height(squared))

    def marginal(self, n: int) -> "Profile | None":
        """The kernel with n of its features integrated out, up to a factor; None where it is not
        known.
        """
        return None

    def squared(self, x: np.ndarray, center: np.ndarray, narrow: bool) -> np.ndarray:
        """Squared distances of rows from centers, (n, m)."""
        return squared_distances(x, center, narrow)


class Ball(Profile):
    """(1 - u^2)^power within the radius."""

    power: float

    def height(self, squared: np.ndarray) -> np.ndarray:
        inside = squared < 1 - ROUNDING[squared.dtype]
        return np.where(inside, np.maximum(1 - squared, 0.0) ** self.power, 0.0)

    def log_volume(self, d: int) -> float:
        gamma = math.lgamma
        q = self.power
        return ball_log_volume(d) + gamma(d / 2 + 1) + gamma(q + 1) - gamma(d / 2 + q + 1)

    def variance(self, d: int) -> float:
        return 1 / (d + 2 + 2 * self.power)

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        """The squared length is of the beta distribution with parameters d / 2 and power + 1."""
        return _directions(n, d, rng) * rng.beta(d / 2, self.power + 1, size=(n, 1)) ** 0.5

    def marginal(self, n: int) -> Profile:
        """Integrals over balls are powers again: each feature adds a half."""
        return _PowerOfBall(self.power + n / 2) if n else self


class _PowerOfBall(Ball):
    noun = "ball"

    def __init__(self, power: float) -> None:
        self.power = power


class Hypersphere(Ball):
    """The indicator of a ball: one vote for all rows within the radius."""

    noun = "hypersphere"
    power = 0.0

    def height(self, squared: np.ndarray) -> np.ndarray:
        return (squared <= 1 + ROUNDING[squared.dtype]).astype(squared.dtype)

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        return _directions(n, d, rng) * rng.uniform(size=(n, 1)) ** (1 / d)


class Epanechnikov(Ball):
    """1 - u^2 within the radius."""

    noun = "epanechnikov kernel"
    power = 1.0

    def height(self, squared: np.ndarray) -> np.ndarray:
        return np.where(squared < 1 - ROUNDING[squared.dtype], 1 - squared, 0.0)


class GaussianProfile(Profile):
    """exp(-u^2 / 2); the radius is the standard deviation."""

    noun = "Gaussian kernel"
    compact = False

    def height(self, squared: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * squared)

    def log_height(self, squared: np.ndarray) -> np.ndarray:
        return -0.5 * squared

    def log_volume(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def variance(self, d: int) -> float:
        return 1.0

    def sample(self, n: int, d: int, rng: Any) -> np.ndarray:
        return rng.standard_normal((n, d))

    def marginal(self, n: int) -> Profile:
        return self


PROFILES: dict[str, type[Profile]] = {
    "hypersphere": Hypersphere,
    "epanechnikov": Epanechnikov,
    "gaussian": GaussianProfile,
}


def as_profile(kernel: str | Profile) -> Profile:
    """The profile of a name, or the profile itself."""
    return PROFILES[kernel]() if isinstance(kernel, str) else kernel


def _directions(n: int, d: int, rng: Any) -> np.ndarray:
    """Points drawn from the unit sphere, (n, d)."""
    normal = rng.standard_normal((n, d))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def log_integral(profile: Profile, radius: float, scale: np.ndarray) -> float:
    """log of the integral of a kernel over features that are divided by `scale`, (d,)."""
    d = len(scale)
    return float(profile.log_volume(d) + d * math.log(radius) + np.log(scale).sum())


def ball_log_volume(d: int) -> float:
    """log of the volume of the unit ball in d dimensions."""
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


# -- votes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParzenParams:
    """M kernels of a common radius, sorted by class."""

    profile: Profile
    center: np.ndarray
    """(M, d)."""
    weight: np.ndarray
    """(M,)."""
    offsets: tuple[int, ...]
    """Kernels offsets[k] to offsets[k + 1] belong to class k."""
    log_scale: np.ndarray
    """log of what one vote counts for each class, (K,): the prior over the sum of the class's
    votes."""
    radius: float = 1.0
    group: Any = None
    """Kernels at the same point share a number, (M,), where rows are left out."""

    @cached_property
    def narrow(self) -> bool:
        """Whether distances must be taken from differences, not from a product."""
        return is_narrow(self.center, self.radius)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.log_scale)

    @property
    def codes(self) -> np.ndarray:
        """The class of each kernel, (M,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.offsets))

    def tiles(self) -> Iterator[tuple[int, slice]]:
        """Classes and their kernels, a tile at a time."""
        for k, (first, last) in enumerate(pairwise(self.offsets)):
            for start in range(first, last, TILE):
                yield k, slice(start, min(start + TILE, last))

    def squared(self, x: np.ndarray, tile: slice, own: np.ndarray | None = None) -> np.ndarray:
        """Squared distances of rows from some kernels, (n, m); infinity from those of the group
        `own` of the row, (n,).
        """
        squared = self.profile.squared(x, self.center[tile], self.narrow)
        return (
            squared if own is None else np.where(own[:, None] == self.group[tile], np.inf, squared)
        )


def is_narrow(center: np.ndarray, radius: float) -> bool:
    """Whether a product of rows and centers would lose too much of distances of about the
    radius.
    """
    return bool(radius**2 < NARROW * (center**2).sum(axis=1).max(initial=0.0))


def log_votes(x: np.ndarray, params: ParzenParams, own: np.ndarray | None = None) -> np.ndarray:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the
    class covers the row. Kernels of the group `own` of a row, (n,), do not vote on it.
    """
    profile = params.profile
    factor = 1 / params.radius**2
    votes = np.zeros((len(x), params.n_classes))
    for k, tile in params.tiles():
        height = profile.height(params.squared(x, tile, own) * factor)
        votes[:, k] += height @ params.weight[tile]
    out = safe_log(votes)
    if profile.compact:
        return out
    far = votes < VANISHED_VOTES
    out[far] = -np.inf
    for k, tile in params.tiles():
        at = np.flatnonzero(far[:, k])
        if len(at):
            squared = params.squared(x[at], tile, None if own is None else own[at])
            log_height = profile.log_height(squared * factor)
            of_tile = logsumexp(log_height, axis=1, b=params.weight[tile])
            out[at, k] = np.logaddexp(out[at, k], of_tile)
    return out


def nearest_votes(x: np.ndarray, params: ParzenParams, own: np.ndarray | None = None) -> np.ndarray:
    """Votes of the kernels nearest to each row, (n, K): of those that a radius that grew would reach
    first, which are several where the distances are equal but for rounding.
    """
    least = np.full((len(x), 1), np.inf)
    votes = np.zeros((len(x), params.n_classes))
    for k, tile in params.tiles():
        if params.log_scale[k] == -np.inf:
            continue
        squared = params.squared(x, tile, own)
        nearer = np.minimum(least, squared.min(axis=1, keepdims=True))
        reach = nearer * (1 + ROUNDING[squared.dtype])
        votes *= least <= reach
        votes[:, k] += (squared <= reach) @ params.weight[tile]
        least = nearer
    return votes


def class_scores(x: np.ndarray, params: ParzenParams) -> np.ndarray:
    """log P(C_k) p(x|C_k) up to a constant, (n, K); where no kernel covers a row, those nearest to
    it vote.
    """
    joint = log_votes(x, params) + params.log_scale
    rows = joint.max(axis=1) == -np.inf
    if rows.any():
        joint[rows] = safe_log(nearest_votes(x[rows], params)) + params.log_scale
    return joint


def kernel_posterior(x: np.ndarray, params: ParzenParams) -> np.ndarray:
    """P(i|x), the class summed out, (n, M); where no kernel covers a row, of those nearest to it."""
    squared = params.squared(x, slice(None)) / params.radius**2
    votes = safe_log(params.weight) + params.log_scale[params.codes]
    log_posterior = params.profile.log_height(squared) + votes
    rows = log_posterior.max(axis=1) == -np.inf
    reach = np.where(votes > -np.inf, squared[rows], np.inf)
    nearest = reach <= reach.min(axis=1, keepdims=True) * (1 + ROUNDING[reach.dtype])
    log_posterior[rows] = np.where(nearest, votes, -np.inf)
    return softmax(log_posterior, axis=1)


def predicted_codes(x: np.ndarray, params: ParzenParams) -> np.ndarray:
    """The class of each row, (n,)."""
    return each_row(lambda x: class_scores(x, params).argmax(axis=1), x)


def near_copies(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A number for each row, (n,), the same for those that are left out together."""
    return np.unique(row_keys(x, weight), return_inverse=True)[1].ravel()


# -- the fitted network --------------------------------------------------------------------------


@saved(kw_only=True)
class Space:
    """How rows are scaled before distances are taken."""

    location: np.ndarray
    scale: np.ndarray
    """What features are divided by: their deviations, or ones, (D,)."""
    unit: float
    """What all features are divided by as well: a power of two."""

    def inside(self, z: np.ndarray) -> np.ndarray:
        """Rows in the space in which distances are taken, in units of `unit`, (n, D)."""
        return np.asarray((z - self.location) / (self.scale * self.unit), np.float64)


@saved(kw_only=True)
class ParzenNetwork:
    """Some of the training rows as kernels, in the units of the data."""

    space: Space = nested()
    kernel: str | Profile
    kernels: np.ndarray
    """Centers, sorted by class, (M, D)."""
    kernel_classes: np.ndarray
    """Their labels, (M,)."""
    kernel_weights: np.ndarray
    """(M,)."""
    kept_indices: np.ndarray
    """Positions of the kernels in the training rows, (M,)."""
    offsets: tuple[int, ...]
    log_scale: np.ndarray
    """As in `ParzenParams`."""
    radius: float
    temperature: float
    class_prior: np.ndarray
    fitted_prior: np.ndarray
    """The class priors of the fit; `class_prior` may have been changed since, (K,)."""
    radii: np.ndarray | None = None
    """Radii that were tried."""
    radius_errors: np.ndarray | None = None
    radius_losses: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # without `params`

    @property
    def profile(self) -> Profile:
        """Shape of the kernels."""
        return as_profile(self.kernel)

    @cached_property
    def params(self) -> ParzenParams:
        """The kernels in the space in which distances are taken."""
        center = self.space.inside(self.kernels)
        return ParzenParams(
            self.profile,
            center,
            self.kernel_weights,
            self.offsets,
            self.log_scale + self.shift,
            self.radius / self.space.unit,
        )

    @property
    def shift(self) -> np.ndarray:
        """What `class_prior` adds to log P(C_k|x), (K,)."""
        return prior_shift(self.class_prior, self.fitted_prior)

    @property
    def votes(self) -> np.ndarray:
        """Of all kernels of each class; one for a class without any, (K,)."""
        votes = np.bincount(self.params.codes, self.kernel_weights, self.params.n_classes)
        return np.where(votes > 0, votes, 1.0)

    @property
    def log_norm(self) -> float:
        """log of the integral of a kernel in the units of the data."""
        return log_integral(self.profile, self.radius, self.space.scale)

    def of_rows(self, function: Callable[..., np.ndarray], z: np.ndarray) -> np.ndarray:
        """`function(x, params)` of complete rows."""
        return each_row(lambda x: function(x, self.params), self.space.inside(z))

    def tempered(self, scores: Any) -> Any:
        """Class scores at the temperature, which is that of the priors of the fit, up to a constant
        of the row, (n, K).
        """
        if self.temperature == 1:
            return scores
        shift = self.shift
        scores = scores - np.where(np.isfinite(shift), shift, 0.0)
        below = scores - scores.max(axis=1, keepdims=True)
        return below.clip(-LONGEST_ODDS) * (1 / self.temperature) + shift

    def log_proba(self, z: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of complete rows, (n, K)."""
        return log_softmax(self.tempered(self.of_rows(class_scores, z)), axis=1)

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """log p(x|C_k), (n, K); of rows with missing cells that of the known ones."""
        x = self.space.inside(z)
        patterns, pattern = np.unique(np.isnan(x), axis=0, return_inverse=True)
        out = np.empty((len(x), self.params.n_classes))
        for i, missing in enumerate(patterns):
            at = pattern.ravel() == i
            marginal = self._marginal(~missing)
            log_norm = log_integral(marginal.profile, self.radius, self.space.scale[~missing])
            log_vote = each_row(partial(log_votes, params=marginal), x[at][:, ~missing])
            out[at] = log_vote - np.log(self.votes) - log_norm
        return out

    def _marginal(self, known: np.ndarray) -> ParzenParams:
        """The kernels of some features alone."""
        n_missing = int((~known).sum())
        profile = self.profile.marginal(n_missing) if n_missing else self.profile
        if profile is None:
            raise KernelpoolError(
                f"{self.profile.noun} has no `marginal`, by which rows with missing cells get "
                "densities: give it one, or impute the rows."
            )
        return replace(self.params, profile=profile, center=self.params.center[:, known])

    def covered(self, z: np.ndarray) -> np.ndarray:
        """Whether any kernel covers each of some complete rows, (n,)."""
        return self.of_rows(lambda *args: 1.0 * (log_votes(*args).max(axis=1) > -np.inf), z)

    def leave_one_out_log_proba(self) -> np.ndarray:
        """log P(C_k|x) of every kernel's own row by the kernels at other points, (M, K): copies of
        a row are left out with it.
        """
        copies = near_copies(self.params.center, self.kernel_weights)
        params = replace(self.params, group=copies)

        def of_block(x: np.ndarray, own: np.ndarray) -> np.ndarray:
            joint = log_votes(x, params, own) + params.log_scale
            reached = np.isfinite(joint.max(axis=1, keepdims=True))
            return log_softmax(self.tempered(np.where(reached, joint, 0.0)), axis=1)

        return each_row(of_block, params.center, copies)

    def sample(self, codes: np.ndarray, n_numbers: int, rng: np.random.RandomState) -> np.ndarray:
        """Rows drawn from given classes, (n, D); indicators, which come after `n_numbers` numbers,
        are those of a kernel.
        """
        chosen = np.empty(len(codes), int)
        for k in np.unique(codes):
            first, last = self.offsets[k : k + 2]
            share = self.kernel_weights[first:last] / self.kernel_weights[first:last].sum()
            in_class = codes == k
            chosen[in_class] = first + rng.choice(last - first, size=in_class.sum(), p=share)
        z = self.kernels[chosen]
        n, d = z.shape
        deviates = self.radius * self.profile.sample(n, d, rng) * self.space.scale
        z[:, :n_numbers] += deviates[:, :n_numbers]
        return z


@saved
class FittedParzen:
    """The fitted state of a `ParzenClassifier`."""

    door: CompleteDoor = nested()
    network: ParzenNetwork = nested()
