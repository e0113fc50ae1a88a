r"""What the Gaussian families share.

Titsias & Likas 2001, equations (6) and (39).

.. math::

    p(x \mid j) = (2\pi)^{-d/2} |\Sigma_j|^{-1/2} \exp(-\tfrac12 (x - \mu_j)' \Sigma_j^{-1} (x - \mu_j))
                = \exp(\text{offset}_j + \text{weight}_j \cdot \phi(x))

A family is a feature map :math:`\phi`: with it the log-densities of all kernels are one matrix
product, and so are the moments from which all kernels are estimated.

=====================  ===============  ============================  =========================================
paper                  here             shape                         meaning
=====================  ===============  ============================  =========================================
:math:`\mu_j`          ``mean``         (M, d)                        center
:math:`\Sigma_j`       ``covariance``   (M,), (M, d), (M, d, d)       always variances, never deviations;
                                        or tied: (d, d)               the shape tells the family
:math:`\phi(x)`        ``features``     (P, n)                        x, then its ``square``
:math:`x x'`           ``square``       (S, n)                        the part of x x' that the family keeps, flat
=====================  ===============  ============================  =========================================

Deviations from the print: none in the model. Squares about a common origin cancel where a kernel is
narrow for its distance from that origin; such kernels (``guarded``) are computed from x - mean
instead, which is slower and exact.
"""

import math
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    clip,
    device,
    eps_of,
    feature_sums,
    match_array,
    namespace,
    rows_above,
    rows_that_count,
    transpose_into,
)
from ..errors import CollapsedKernelError
from ..rows import Block, Frame, max_abs_value
from ..sums import Sums, record
from .kernel import Kernel, KernelSums, NaturalParams, Observed

LOG_2_PI = math.log(2 * math.pi)

WIDE = 96
"""From so many features on full kernels are taken one after the other: products of all pairs of
features are huge, and with 2 kernels 2 to 4 times slower (`python -m benchmarks wide`)."""


INVERSE_GAMMA_DOF = 3
"""Degrees of freedom of the conjugate prior on one variance: the smallest whole number for which it
has a mean.
"""


@record
class Kernels:
    """M Gaussians, in a frame."""

    mean: Array
    """(M, d)."""
    covariance: Array
    """In the shape of the family."""


K = TypeVar("K", bound=Kernels)


@record
class GaussianNaturalParams(NaturalParams):
    """The same, with what the guarded kernels need."""

    kernels: Kernels
    whitening: Array
    """W with W' W = precision, in the shape of the covariances: worked out before anything is
    rounded to the rows' type.
    """
    log_size: Array
    """log |covariance|, (M,), or () in the tied family."""


@record
class Moments(KernelSums):
    """Sums over rows, weighted by responsibility, about the origin or, for guarded kernels, about
    their own mean.
    """

    first: Array
    """(M, d)."""
    second: Array
    """(M, S); one for all kernels, (1, S), in the tied family."""


S = TypeVar("S", bound=Moments)


@record
class PriorStatistics(Sums):
    """What is added to the moments of M kernels before kernels are estimated from them; zeros add
    nothing, bit for bit.

    The first four are those of rows that might have been seen before, about the same points as the
    moments.
    """

    mass: Array | float = 0.0
    """Their number, where a mean is taken, (M,)."""
    first: Array | float = 0.0
    """(M, d)."""
    second: Array | float = 0.0
    """(M, S), or (1, S)."""
    count: float = 0.0
    """Their number, where a covariance is taken."""
    pull_mass: Array | float = 0.0
    """Rows that draw the means alone, (M,): covariances are taken about the means without them."""
    pull_first: Array | float = 0.0
    """(M, d)."""
    table_counts: Array | float = 0.0
    """Rows of each level of the categorical columns, (M, W)."""


def without(guarded: tuple[int, ...], a: Array) -> Array:
    """`a` (M, ...) with zeros for the guarded kernels."""
    if not guarded:
        return a
    xp = namespace(a)
    is_guarded = xp.asarray([j in guarded for j in range(a.shape[0])], device=device(a))
    return xp.where(xp.reshape(is_guarded, (-1,) + (1,) * (a.ndim - 1)), xp.zeros_like(a), a)


def with_mean_of_all(a: Array, chosen: Collection[int]) -> Array:
    """`a` (M, ...) with the mean over all kernels in place of the `chosen` ones."""
    xp = namespace(a)
    mean = xp.mean(a, axis=0)
    return xp.stack([mean if j in chosen else a[j, ...] for j in range(a.shape[0])])


class Gaussian(Kernel):
    """A family of Gaussian kernels."""

    matrices: ClassVar[bool] = False
    """Whether covariances are whole matrices, (..., d, d), and not variances alone."""

    guard: float | None = None
    """Relative loss of variance at which a kernel is guarded; None chooses by the type of the rows."""

    def __init__(self, floor: Array) -> None:
        self.floor = floor
        """Smallest variance along each feature, (d,), in the frame; zero leaves kernels as the rows
        shape them.
        """

    # -- what a family states -------------------------------------------------------------------
    # Where covariances are variances, some of these follow; families of matrices state them all.

    @abstractmethod
    def square(self, x: Array) -> Array:
        """The part of x x' that the family keeps, flat: (S, n) from (d, n)."""

    @abstractmethod
    def cross(self, a: Array, b: Array) -> Array:
        """The same part of a_j b_j' + b_j a_j', (M, S), of two vectors a kernel, (M, d)."""

    @abstractmethod
    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        """W with W' W = covariance^-1, in the covariance's own shape, and log |covariance|, (M,) or
        ().
        """

    def gram(self, whitening: Array) -> Array:
        """W' W, in the same shape."""
        return whitening * whitening

    def squared_distance(self, whitening: Array, x: Array, point: Array) -> Array:
        """|W (x - point)|², (n,), for rows (n, d) and the W of one kernel."""
        white = (x - point) * whitening
        return namespace(x).vecdot(white, white)

    @abstractmethod
    def apply(self, precision: Array, x: Array) -> Array:
        """precision_j x_j for one vector a kernel: (M, d) from (M, d)."""

    @abstractmethod
    def dual(self, precision: Array) -> Array:
        """Weights w with w . square(x) = x' precision x, (M, S)."""

    def deviate(self, covariance: Array, noise: Array) -> Array:
        """Deviations with the covariance of one kernel, (n, d), from standard normal noise, (n,
        d).
        """
        return noise * covariance**0.5

    @abstractmethod
    def unflatten(self, second: Array) -> Array:
        """Covariances from flat second moments about the mean, the inverse of `flat`."""

    @abstractmethod
    def flat(self, covariance: Array) -> Array:
        """Flat second moments about the mean, (M, S), the inverse of `unflatten`."""

    @abstractmethod
    def apply_floor(self, covariance: Array) -> Array:
        """The most likely covariances at or above the floor."""

    @abstractmethod
    def rescaled(self, covariance: Array, factor: Array) -> Array:
        """Covariances of rows multiplied by `factor`, (d,)."""

    def covariance_coordinates(self, covariance: Array) -> Array:
        """Covariances as free coordinates, flat: any vector is some covariance."""
        xp = namespace(covariance)
        return xp.reshape(xp.log(covariance), (-1,))

    def covariance_at(self, coordinates: Array, like: Array) -> Array:
        """The way back from `covariance_coordinates`, in the shape of `like`."""
        xp = namespace(coordinates)
        return xp.reshape(xp.exp(coordinates), like.shape)

    @abstractmethod
    def covariance_pullback(self, covariance: Array, scatter: Array, mass: Array) -> Array:
        """Gradient by `covariance_coordinates` of -(mass_j log |covariance_j| + tr(precision_j
        scatter_j)) / 2, summed over j; `scatter` is flat, (M, S) or (1, S).
        """

    @abstractmethod
    def submatrix(self, covariance: Array, columns: Array) -> Array:
        """Covariances of some of the features."""

    @abstractmethod
    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        """What the conjugate prior adds to a kernel's scatter, (1, S), and to its divisor (Fraley &
        Raftery 2007, table 2); it expects the `variance` (d,) along each feature.
        """

    @staticmethod
    @abstractmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        """Shape of the covariances of `n_kernels` kernels."""

    def n_covariance_parameters(self, n_kernels: int, d: int) -> int:
        """Free numbers in the covariances of `n_kernels` kernels."""
        return math.prod(self.shape(n_kernels, d))

    @abstractmethod
    def variances(self, kernels: Kernels) -> Array:
        """Variance of each kernel along each feature, (M, d)."""

    # -- what follows from it -------------------------------------------------------------------

    def precision(self, covariance: Array) -> tuple[Array, Array]:
        """Inverse of the covariance in the covariance's own shape, and log |covariance|, (M,) or
        ().
        """
        whitening, log_size = self.whitening(covariance)
        return self.gram(whitening), log_size

    def pool_moments(self, flat: Array) -> Array:
        """Flat moments (M, S) as `estimate` wants them: every kernel its own."""
        return flat

    def squares(self, weight: Array, a: Array) -> Array:
        """weight_j square(a_j) of one vector a kernel (M, d), as `pool_moments` leaves them."""
        return self.pool_moments(weight[:, None] * self.square(a.T).T)

    def log_size(self, covariance: Array) -> Array:
        """log |covariance|, (M,) or ()."""
        return self.whitening(covariance)[1]

    def of_kernel(self, covariance: Array, j: int) -> Array:
        """Covariance of kernel j."""
        return covariance[j, ...]

    def take(self, kernels: K, index: Array) -> K:
        """The kernels at the positions `index`."""
        xp = namespace(index)
        mean = xp.take(kernels.mean, index, axis=0)
        return replace(kernels, mean=mean, covariance=xp.take(kernels.covariance, index, axis=0))

    def write_features(self, out: Array, block: Block) -> None:
        d = block.x.shape[1]
        if d:  # among categories there may be no number
            transpose_into(out[:d, :], block.by_column())
        if out.shape[0] > d:
            self.write_square(out[d:, :], out[:d, :], block)

    def factors(self, block: Block) -> tuple[Array, tuple[tuple[int, int], ...]] | None:
        d = block.x.shape[1]
        squares = self.square_factors(d)
        return None if squares is None else (block.x.T, (*((i, d) for i in range(d)), *squares))

    def square_factors(self, d: int) -> tuple[tuple[int, int], ...] | None:
        """The two columns of x that each entry of `square` is the product of; None where one is
        more than that.
        """
        return None

    @abstractmethod
    def write_square(self, out: Array, x: Array, block: Block) -> None:
        """`square` of the columns `x` (d, n) of a block, written into `out`."""

    def natural_params(self, kernels: Kernels, eps: float) -> GaussianNaturalParams:
        """The kernels in natural parameters; `eps` is the spacing of the rows' float type."""
        xp = namespace(kernels.mean)
        d = kernels.mean.shape[1]
        # no row comes near a kernel beyond this bound, or tells one narrower than that from a
        # point: the rows' type must hold
        # them, and squares of distances to the farthest rows
        bound = 1e3 * max_abs_value(eps)
        narrow = 3e-6 * max_abs_value(eps)
        kernels = replace(kernels, mean=clip(kernels.mean, -bound, bound))
        whitening, log_size = self.whitening(kernels.covariance)
        whitening = clip(whitening, -narrow, narrow)
        guarded = tuple(range(kernels.mean.shape[0]))
        weight = xp.zeros_like(kernels.mean)
        depth: Array | float = 0.0
        if not self.one_by_one(d):
            precision = self.gram(whitening)
            slope = self.apply(precision, kernels.mean)  # (M, d)
            guarded = self._guarded(kernels, precision, eps)
            # `correct` replaces these sums, whose terms may be huge: they are left out
            depth = without(guarded, xp.sum(slope * kernels.mean, axis=1))  # (M,)
            weight = self._weight(without(guarded, slope), precision)
        offset = -0.5 * (depth + log_size + d * LOG_2_PI)
        origin = kernels.mean - without(guarded, kernels.mean)
        return GaussianNaturalParams(weight, offset, guarded, origin, kernels, whitening, log_size)

    def one_by_one(self, d: int) -> bool:
        """Whether every kernel of d features is guarded, wherever it lies, and there are no squares
        among the features.
        """
        return False

    def _weight(self, slope: Array, precision: Array) -> Array:
        return namespace(slope).concat([slope, -0.5 * self.dual(precision)], axis=1)

    def _guarded(self, kernels: Kernels, precision: Array, eps: float) -> tuple[int, ...]:
        """|mean|' |precision| |mean| times the rounding is what cancellation can cost of a kernel's
        variance.

        What lies about the mean cancels as well, in kernels much longer than they are wide:
        `elongation`.
        """
        xp = namespace(precision)
        size = xp.abs(kernels.mean)
        far = xp.sum(size * self.apply(xp.abs(precision), size), axis=1)
        # this one costs digits of a log-density, not of a variance: float32 may lose 1e-2, float64
        # 1e-4
        loss = eps * (far + 1e-2 * self.elongation(precision, kernels.covariance))
        # float32 rows carry no more than some 1e-5 of a variance themselves
        limit = self.guard if self.guard is not None else 1e-6 if eps < 1e-10 else 1e-4
        return tuple(j for j, over in enumerate(loss > limit) if bool(over))

    def elongation(self, precision: Array, covariance: Array) -> Array | float:
        """How many times more the terms of a row's squared distance add up to than the distance
        itself, (M,).
        """
        return 0.0  # terms of one sign do not cancel

    def correct(
        self,
        log_joint: Array,
        natural_params: GaussianNaturalParams,
        x: Array,
        constant: Array | None,
        index: Array | None = None,
    ) -> None:
        """(6) from x - mean, of the guarded kernels."""
        for j in natural_params.guarded:
            assert constant is not None
            more = constant[j, ...] - natural_params.offset[j]
            # the other rows may not use the kernel, and what stands there says so
            rows = None if more.ndim == 0 else rows_above(more, 0.5 * LOG_ZERO)
            if rows is None:
                rows = slice(None)
            whitening = self.of_kernel(natural_params.whitening, j)
            mean = natural_params.kernels.mean[j, :]
            # a sum of squares, so that no rounding turns its sign
            distance = self.squared_distance(whitening, x[rows, ...], mean)
            log_size = self.of_kernel(natural_params.log_size, j)
            exact = -0.5 * (distance + log_size + x.shape[1] * LOG_2_PI)
            log_joint[j, rows] = exact + (more[rows] if more.ndim else more)

    def observe(self, natural_params: GaussianNaturalParams, block: Block) -> Observed:
        """Features are independent given the kernel, where covariances are variances alone."""
        return IndependentFeatures(self, natural_params, block)

    def distance(self, kernels: Kernels, step: Array) -> Array:
        """Squared length of `step` (M, K, d) in the metric of each kernel, (M, K)."""
        precision, _ = self.precision(kernels.covariance)
        return namespace(step).sum(step * self.apply(precision, step), axis=2)

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """phi @ responsibility', (..., M); the last rows of `phi` are the features of `x`, whatever
        stands before them.
        """
        return feature_sums(phi, responsibility)

    def moments(
        self,
        mass: Array,
        sums: Array,
        natural_params: GaussianNaturalParams,
        x: Array,
        responsibility: Array,
    ) -> Moments:
        """Moments of one block; `sums` (P, M) is features @ responsibility'."""
        xp = namespace(sums)
        d = x.shape[1]
        if not natural_params.guarded:
            return Moments(mass, sums[:d, :].T, sums[d:, :].T)
        first = [sums[:d, j] for j in range(sums.shape[1])]
        second = [sums[d:, j] for j in range(sums.shape[1])]
        for j in natural_params.guarded:  # about its mean, from the rows that count
            rows = rows_that_count(responsibility[j, :])
            rows = slice(None) if rows is None else rows
            deviation = x[rows, ...] - natural_params.kernels.mean[j, :]
            first[j] = as_float64(responsibility[j, rows] @ deviation)
            second[j] = self.scatter(deviation, responsibility[j, rows])
        return Moments(mass, xp.stack(first), self.pool_moments(xp.stack(second)))

    def scatter(self, deviation: Array, responsibility: Array) -> Array:
        """sum_n r_n square(deviation_n), (S,), of one kernel."""
        return self.square(deviation.T) @ responsibility

    def estimate(
        self, moments: Moments, moment_origin: Array, prior: PriorStatistics | None = None
    ) -> Kernels:
        """(35), (36): the most likely kernels, from moments about `moment_origin` and what a prior
        adds to them.
        """
        xp = namespace(moment_origin)
        prior = PriorStatistics() if prior is None else prior
        n_rows = xp.sum(moments.mass, axis=1)
        mass = n_rows + prior.mass
        first = moments.first + prior.first
        step = (first + prior.pull_first) / (mass + prior.pull_mass)[:, None]
        second = moments.second + prior.second + self._shift(mass, first, step)
        return Kernels(moment_origin + step, self.covariances(second, n_rows, prior.count))

    def covariances(self, second: Array, mass: Array, count: float) -> Array:
        """Covariances at or above the floor from flat scatters (M, S) of `mass` (M,) and `count`
        more rows.
        """
        xp = namespace(second)
        d = self.floor.shape[0]
        covariance = self.unflatten(second / (self.pool_moments(mass[:, None]) + count))
        return xp.reshape(self.apply_floor(covariance), self.shape(mass.shape[0], d))

    def log_prior(self, kernels: Kernels, prior: PriorStatistics) -> float:
        """log p(x|j) summed over the rows that `prior` stands for, about the origin, up to a
        constant.
        """
        xp = namespace(kernels.mean)
        precision, log_size = self.precision(kernels.covariance)
        mass = prior.mass + xp.zeros_like(kernels.mean[:, 0])
        scatter = prior.second + self._shift(mass, prior.first + 0 * kernels.mean, kernels.mean)
        return float(
            -0.5 * (prior.count * xp.sum(log_size) + xp.sum(self.dual(precision) * scatter))
        )

    def _shift(self, mass: Array, first: Array, step: Array) -> Array:
        """sum r (z - step)(z - step)' - sum r z z', flat, as `pool_moments` leaves it."""
        # mass * step^2 - 2 * first * step, as a difference of two squares so that one feature map
        # serves
        xp = namespace(mass)
        middle = first / xp.where(mass > 0, mass, xp.ones_like(mass))[:, None]
        return self.squares(mass, middle - step) - self.squares(mass, middle)

    def with_pseudocounts(
        self, moments: S, moment_origin: Array, vanished: Array, kernels: Kernels, mass: float
    ) -> S:
        """Moments in which the `vanished` kernels (M,) have a trace of `mass` that keeps them as
        they are.
        """
        xp = namespace(moment_origin)
        step = kernels.mean - moment_origin
        gone = vanished[:, None]
        still = mass * (self.flat(kernels.covariance) + self.square(step.T).T)
        second = moments.second
        if second.shape[0] == still.shape[0]:  # every kernel has its own
            second = xp.where(gone, xp.zeros_like(second), second)
        trace = xp.full_like(moments.mass, mass / moments.mass.shape[1])
        return replace(
            moments,
            mass=xp.where(gone, trace, moments.mass),
            first=xp.where(gone, mass * step, moments.first),
            second=second + self.pool_moments(xp.where(gone, still, xp.zeros_like(still))),
        )

    # -- coordinates -------------------------------------------------------------------------------

    def coordinates(self, kernels: Kernels) -> Array:
        xp = namespace(kernels.mean)
        return xp.concat(
            [xp.reshape(kernels.mean, (-1,)), self.covariance_coordinates(kernels.covariance)]
        )

    def at(self, coordinates: Array, like: Kernels) -> Kernels:
        """The kernels at `coordinates`, at or above the floor."""
        xp = namespace(coordinates)
        n_kernels, d = like.mean.shape
        covariance = self.covariance_at(coordinates[n_kernels * d :], like.covariance)
        if not bool(xp.all(xp.isfinite(coordinates)) and xp.all(xp.isfinite(covariance))):
            raise FloatingPointError(
                "A step was extrapolated beyond the range of floating-point numbers."
            )
        return Kernels(
            xp.reshape(coordinates[: n_kernels * d], (n_kernels, d)), self.apply_floor(covariance)
        )

    def pullback(self, kernels: Kernels, moments: Moments, moment_origin: Array) -> Array:
        """d/d mean_j = precision_j (first_j - mass_j mean_j); the covariances follow from the
        scatter about the means.
        """
        xp = namespace(kernels.mean)
        step = kernels.mean - moment_origin
        mass = xp.sum(moments.mass, axis=1)
        precision, _ = self.precision(kernels.covariance)
        by_mean = self.apply(precision, moments.first - mass[:, None] * step)
        crossed = self.pool_moments(self.cross(moments.first, step))
        scatter = moments.second + (self.squares(mass, step) - crossed)
        by_covariance = self.covariance_pullback(kernels.covariance, scatter, mass)
        return xp.concat([xp.reshape(by_mean, (-1,)), by_covariance])

    # -- kernels as such ---------------------------------------------------------------------------

    def n_parameters(self, n_kernels: int, d: int) -> int:
        return n_kernels * d + self.n_covariance_parameters(n_kernels, d)

    def log_peak(self, kernels: Kernels) -> Array:
        xp = namespace(kernels.mean)
        d = kernels.mean.shape[1]
        log_peak = -0.5 * (self.log_size(kernels.covariance) + d * LOG_2_PI)
        return xp.zeros_like(xp.sum(kernels.mean, axis=1)) + log_peak

    def move(self, kernels: K, to: dict[int, Array]) -> K:
        mean = namespace(kernels.mean).asarray(kernels.mean, copy=True)
        for j, row in to.items():
            mean[j, :] = row
        covariance = self.reset_covariance(kernels.covariance, to)
        return replace(kernels, mean=mean, covariance=covariance)

    def place(self, groups: list[tuple[Array, Array, Array]]) -> Kernels:
        """Each kernel has the width of its group; where a group has none (every row is a center),
        that of all groups.
        """
        mean = namespace(groups[0][0]).concat([centers for centers, _, _ in groups])
        xp = namespace(mean)
        n_kernels, d = mean.shape
        # zero where no row of the group counts
        scatters = [self.scatter(deviation, weight) for _, deviation, weight in groups]
        weights = [xp.sum(weight) for _, _, weight in groups]
        total = sum(weights)
        pooled = sum(scatters) / total
        if not bool(xp.any(pooled != 0)):
            one = xp.eye(d, dtype=mean.dtype, device=device(mean))
            pooled = xp.sum(self.square(one), axis=1) * n_kernels ** (-2 / max(d, 1))
        flat = []
        share = []
        for (centers, _, _), scatter, weight in zip(groups, scatters, weights, strict=True):
            m = centers.shape[0]
            flat += [scatter / weight if bool(xp.any(scatter != 0)) else pooled] * m
            share += [weight / m] * m
        mass = xp.stack(share) + 1e-12 * total  # a group may weigh nothing
        second = self.pool_moments(mass[:, None] * xp.stack(flat))
        return Kernels(mean, self.covariances(second, mass, 0.0))

    def tempered(self, kernels: K, beta: float) -> K:
        return replace(kernels, covariance=kernels.covariance / beta)

    def shrunk(self, kernels: K, share: Array, strength: float) -> K:
        xp = namespace(kernels.covariance)
        covariance = kernels.covariance
        if strength == 0:
            return kernels
        common = xp.sum(covariance * xp.reshape(share, (-1, *(1,) * (covariance.ndim - 1))), axis=0)
        return replace(kernels, covariance=(1 - strength) * covariance + strength * common)

    def given(
        self, kernels: Kernels, known: list[int], rest: list[int], x: Array | None
    ) -> tuple["Gaussian", Kernels]:
        """Independent features depend on no others: their means and covariances."""
        xp = namespace(kernels.mean)
        index = xp.asarray(rest, dtype=xp.int64, device=device(kernels.mean))
        floor = namespace(self.floor).take(self.floor, match_array(index, like=self.floor))
        covariance = self.submatrix(kernels.covariance, index)
        return type(self)(floor), Kernels(xp.take(kernels.mean, index, axis=1), covariance)

    def sample(self, kernels: Kernels, j: int, n: int, rng: Any) -> Array:
        noise = match_array(rng.standard_normal((n, kernels.mean.shape[1])), like=kernels.mean)
        return kernels.mean[j, :] + self.deviate(self.of_kernel(kernels.covariance, j), noise)

    def reset_covariance(self, covariance: Array, chosen: Collection[int]) -> Array:
        """Covariances in which the `chosen` kernels have the mean of all."""
        return with_mean_of_all(covariance, chosen)

    def from_arrays(
        self, mean: Array, covariance: Array, probability: Array | None = None
    ) -> Kernels:
        """Kernels of arrays with an entry for every column; tables of probabilities are for
        categories.
        """
        return Kernels(mean, covariance)

    def to_arrays(self, kernels: Kernels) -> tuple[Array, Array]:
        """Mean and covariance with an entry for every column."""
        return kernels.mean, kernels.covariance

    def into(self, kernels: K, frame: Frame) -> K:
        """Kernels given in the units of the data, in the frame."""
        frame = match_array(frame, like=kernels.mean)
        mean = (kernels.mean - frame.origin) / frame.unit
        covariance = self.rescaled(kernels.covariance, 1 / frame.unit)
        return replace(kernels, mean=mean, covariance=covariance)

    def out_of(self, kernels: K, frame: Frame) -> K:
        """Kernels of the frame, in the units of the data."""
        frame = match_array(frame, like=kernels.mean)
        covariance = self.rescaled(kernels.covariance, frame.unit)
        return replace(kernels, mean=frame.outside(kernels.mean), covariance=covariance)

    def _raise_to_floor(self, variance: Array, floor: Array) -> Array:
        """Variances (M, ...) at or above `floor`, or the error that names the kernel and feature
        without width.
        """
        xp = namespace(variance)
        variance = xp.maximum(variance, floor)
        if not variance.shape[1]:  # among categories there may be no number
            return variance
        j, f = divmod(int(xp.argmin(variance)), variance.shape[1])
        if float(variance[j, f]) < eps_of(variance):
            raise CollapsedKernelError(j, f, float(variance[j, f]))
        return variance


class IndependentFeatures(Observed):
    r"""Kernels whose features are independent of each other, beside rows with missing cells: marks
    of these are features too.

    .. math:: \log p(x_{known} \mid j) = \text{offset}_j + \text{weight}_j \cdot \phi(x)
        - \sum_{i\ \text{missing}} \log N(0;\, \mu_{ji}, v_{ji})

    with missing cells at zero: still one product for the log-densities and one for the sums.
    """

    def __init__(
        self, kernel: Gaussian, natural_params: GaussianNaturalParams, block: Block
    ) -> None:
        assert block.missing is not None
        self.kernel = kernel
        self.natural_params = natural_params
        self.block = block
        self.observed = block.missing.observed
        xp = namespace(block.x)
        n, d = block.x.shape
        self.mean = natural_params.kernels.mean  # (M, d)
        self.variance = kernel.variances(natural_params.kernels)  # (M, d)
        n_features = kernel.n_features(d)
        # until the next block of this thread
        self.phi = block.scratch("observed", (n_features + d, n))
        kernel.write_features(self.phi[:n_features, :], block)
        self.phi[n_features:, :] = 1 - self.observed.T
        # those of guarded kernels are replaced below
        depth = without(natural_params.guarded, self.mean**2 / self.variance)
        of_missing = 0.5 * (depth + xp.log(self.variance) + LOG_2_PI)
        self.log_density = (
            xp.concat([natural_params.weight, of_missing], axis=1) @ self.phi
            + natural_params.offset[:, None]
        )
        for j in natural_params.guarded:
            deviation = (block.x - self.mean[j, :]) * self.observed
            constant = self.observed @ (xp.log(self.variance[j, :]) + LOG_2_PI)
            self.log_density[j, :] = -0.5 * (deviation**2 @ (1 / self.variance[j, :]) + constant)

    def moments(self, mass: Array, responsibility: Array) -> Moments:
        """A missing cell has the mean and the variance of the kernel."""
        xp = namespace(responsibility)
        d = self.block.x.shape[1]
        flat = as_float64(
            self.kernel.square(xp.eye(d, dtype=self.phi.dtype, device=device(self.phi)))
        )  # (S, d)
        sums = as_float64(self.phi @ responsibility.T).T  # (M, P + d)
        missing = sums[:, -d:]
        mean = as_float64(self.mean)
        variance = as_float64(self.variance)
        first = sums[:, :d] + missing * mean
        second = sums[:, d:-d] + (missing * (mean**2 + variance)) @ flat.T
        for j in self.natural_params.guarded:
            deviation = (self.block.x - self.mean[j, :]) * self.observed
            first[j, :] = responsibility[j, :] @ deviation
            uncertain = flat @ (missing[j, :] * variance[j, :])
            second[j, :] = self.kernel.scatter(deviation, responsibility[j, :]) + uncertain
        return Moments(mass, first, second)

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        expected = share.T @ self.mean
        if noise is not None:
            expected = expected + noise * (share.T @ self.variance**0.5)
        return self.block.x + (1 - self.observed) * expected
