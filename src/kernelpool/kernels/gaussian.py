r"""What the Gaussian families share.

Titsias & Likas 2001, equations (6) and (39).

.. math::

    p(x \mid j) = (2\pi)^{-d/2} |\Sigma_j|^{-1/2} \exp(-\tfrac12 (x - \mu_j)' \Sigma_j^{-1} (x - \mu_j))
                = \exp(\text{offset}_j + \text{weight}_j \cdot \phi(x))

A family is a feature map :math:`\phi`: with it the log-densities of all kernels are one matrix product, and so are the
moments from which all kernels are estimated.

=====================  ===============  ============================  =========================================
paper                  here             shape                         meaning
=====================  ===============  ============================  =========================================
:math:`\mu_j`          ``mean``         (M, d)                        center
:math:`\Sigma_j`       ``covariance``   (M,), (M, d), (M, d, d)       always variances, never deviations;
                                        or tied: (d, d)               the shape tells the family
:math:`\phi(x)`        ``features``     (P, n)                        x, then its ``square``
:math:`x x'`           ``square``       (S, n)                        the part of x x' that the family keeps, flat
=====================  ===============  ============================  =========================================

Deviations from the print: none in the model. Squares about a common origin cancel where a kernel is narrow for its
distance from that origin; such kernels (``guarded``) are computed from x - mean instead, which is slower and exact.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from ..arrays import Array, clip, device, empty, eps_of, match_array, namespace
from ..errors import CollapsedKernelError
from ..products import linear_scores, weighted_feature_sums
from ..rows import Frame, max_abs_value
from ..sums import Sums, record

LOG_2_PI = math.log(2 * math.pi)

INVERSE_GAMMA_DOF = 3
"""Degrees of freedom of the conjugate prior on one variance: the smallest whole number for which it has a mean."""


@record
class Kernels:
    """M Gaussians, in a frame."""

    mean: Array
    """(M, d)."""
    covariance: Array
    """In the shape of the family."""


@record
class NaturalParams:
    """Kernels as the E-step needs them: log p(x|j) = offset + weight . features(x)."""

    weight: Array
    """(M, P)."""
    offset: Array
    """(M,)."""
    kernels: Kernels
    whitening: Array
    """W with W' W = precision, in the shape of the covariances: worked out before anything is rounded to the rows' type."""
    log_size: Array
    """log |covariance|, (M,), or () in the tied family."""
    guarded: tuple[int, ...]
    """The kernels for which that sum would cancel."""


@record
class Moments(Sums):
    """Sums over rows, weighted by responsibility, about the origin or, for guarded kernels, about their own mean."""

    mass: Array
    """By kernel and class, (M, K)."""
    first: Array
    """(M, d)."""
    second: Array
    """(M, S); one for all kernels, (1, S), in the tied family."""


@record
class PriorStatistics(Sums):
    """What is added to the moments of M kernels before kernels are estimated from them; zeros add nothing, bit for bit.

    The first four are those of rows that might have been seen before, about the same points as the moments.
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


NO_PRIOR = PriorStatistics()


class Gaussian(ABC):
    """A family of Gaussian kernels."""

    name: ClassVar[str]
    equivariant: ClassVar[bool] = True
    """Whether the family is closed under scaling the features one by one."""
    matrices: ClassVar[bool] = False
    """Whether covariances are whole matrices, (..., d, d), and not variances alone."""

    def __init__(self, floor: Array, guard: float | None = None) -> None:
        self.floor = floor
        """Smallest variance along each feature, (d,), in the frame; zero leaves kernels as the rows shape them."""
        self.guard = guard
        """Relative loss of variance at which a kernel is guarded; None chooses by the type of the rows."""

    # -- what a family states -------------------------------------------------------------------------------------

    @abstractmethod
    def square(self, x: Array) -> Array:
        """The part of x x' that the family keeps, flat: (S, n) from (d, n)."""

    @abstractmethod
    def n_features(self, d: int) -> int:
        """P, the width of the feature map."""

    @abstractmethod
    def whitening(self, covariance: Array) -> tuple[Array, Array]:
        """W with W' W = covariance^-1, in the covariance's own shape, and log |covariance|, (M,) or ()."""

    @abstractmethod
    def gram(self, whitening: Array) -> Array:
        """W' W, in the same shape."""

    @abstractmethod
    def whiten(self, whitening: Array, x: Array) -> Array:
        """W x for rows (n, d) and the W of one kernel."""

    @abstractmethod
    def apply(self, precision: Array, x: Array) -> Array:
        """precision_j x_j for one vector a kernel: (M, d) from (M, d)."""

    @abstractmethod
    def dual(self, precision: Array) -> Array:
        """Weights w with w . square(x) = x' precision x, (M, S)."""

    @abstractmethod
    def deviate(self, covariance: Array, noise: Array) -> Array:
        """Deviations with the covariance of one kernel, (n, d), from standard normal noise, (n, d)."""

    @abstractmethod
    def unflatten(self, second: Array, d: int) -> Array:
        """Covariances from flat second moments about the mean, the inverse of `square`."""

    @abstractmethod
    def flat(self, covariance: Array) -> Array:
        """Flat second moments about the mean, (M, S), the inverse of `unflatten`."""

    @abstractmethod
    def apply_floor(self, covariance: Array) -> Array:
        """The most likely covariances at or above the floor."""

    @abstractmethod
    def rescaled(self, covariance: Array, factor: Array) -> Array:
        """Covariances of rows multiplied by `factor`, (d,)."""

    @abstractmethod
    def coordinates(self, covariance: Array) -> Array:
        """Covariances as free coordinates, flat, (C,): any vector is some covariance."""

    @abstractmethod
    def at(self, coordinates: Array, like: Array) -> Array:
        """The way back from `coordinates`, in the shape of `like`."""

    @abstractmethod
    def n_parameters(self, n_kernels: int, d: int) -> int:
        """Free numbers in the covariances of `n_kernels` kernels."""

    @abstractmethod
    def prior(self, variance: Array, n_kernels: int) -> tuple[Array, float]:
        """What the conjugate prior adds to a kernel's scatter, (1, S), and to its divisor (Fraley & Raftery 2007, table 2).

        `variance` (d,) is what the prior expects of a kernel along each feature.
        """

    @staticmethod
    @abstractmethod
    def shape(n_kernels: int, d: int) -> tuple[int, ...]:
        """Shape of the covariances of `n_kernels` kernels."""

    @abstractmethod
    def variances(self, kernels: Kernels) -> Array:
        """Variance of each kernel along each feature, (M, d)."""

    def precision(self, covariance: Array) -> tuple[Array, Array]:
        """Inverse of the covariance in the covariance's own shape, and log |covariance|, (M,) or ()."""
        whitening, log_size = self.whitening(covariance)
        return self.gram(whitening), log_size

    def widths(self, flat: Array, weight: Array) -> Array:
        """Covariances at or above the floor from one flat second moment a kernel, (M, S), and their weights, (M,)."""
        return self.apply_floor(self.unflatten(flat, self.floor.shape[0]))

    def pool_moments(self, flat: Array) -> Array:
        """Flat moments (M, S) as `estimate` wants them: every kernel its own."""
        return flat

    def trace(self, precision: Array, covariance: Array) -> Array:
        """tr(precision_j covariance_j), (M,)."""
        return namespace(precision).sum(self.dual(precision) * self.flat(covariance), axis=1)

    def of_kernel(self, covariance: Array, j: int) -> Array:
        """Covariance of kernel j."""
        return covariance[j, ...]

    def take(self, kernels: Kernels, index: Array) -> Kernels:
        """The kernels at the positions `index`."""
        xp = namespace(index)
        return Kernels(xp.take(kernels.mean, index, axis=0), xp.take(kernels.covariance, index, axis=0))

    # -- what follows from it -------------------------------------------------------------------------------------

    def features(self, x: Array) -> Array:
        """phi(x) without its constant, (P, n), from rows (n, d)."""
        out = empty((self.n_features(x.shape[1]), x.shape[0]), x)
        self.write_features(out, x)
        return out

    def write_features(self, out: Array, x: Array) -> None:
        """The same, written into `out`."""
        d = x.shape[1]
        out[:d, :] = x.T
        self.complete(out, d)

    def complete(self, features: Array, d: int) -> None:
        """Writes what follows x in `features` (P, n), whose first d rows are x."""
        self.write_square(features[d:, :], features[:d, :])

    def write_square(self, out: Array, x: Array) -> None:
        """`square`, written into `out`."""
        out[...] = self.square(x)

    def natural_params(self, kernels: Kernels, eps: float) -> NaturalParams:
        """The kernels in natural parameters; `eps` is the spacing of the rows' float type."""
        xp, d = namespace(kernels.mean), kernels.mean.shape[1]
        # no row comes near a kernel beyond this bound, or tells one narrower than that from a point: the rows' type must hold
        # them, and squares of distances to the farthest rows
        bound, narrow = 1e3 * max_abs_value(eps), 3e-6 * max_abs_value(eps)
        kernels = Kernels(clip(kernels.mean, -bound, bound), kernels.covariance)
        whitening, log_size = self.whitening(kernels.covariance)
        whitening = clip(whitening, -narrow, narrow)
        precision = self.gram(whitening)
        slope = self.apply(precision, kernels.mean)  # (M, d)
        depth = xp.sum(slope * kernels.mean, axis=1)  # (M,)
        guarded = self._guarded(kernels, precision, eps)
        if guarded:  # `correct` replaces these sums, whose terms may be huge: they are left out
            depth, slope = (xp.where(self._is_guarded(guarded, a), xp.zeros_like(a), a) for a in (depth, slope))
        offset = -0.5 * (depth + log_size + d * LOG_2_PI)
        return NaturalParams(self._weight(slope, precision), offset, kernels, whitening, log_size, guarded)

    def _is_guarded(self, guarded: tuple[int, ...], like: Array) -> Array:
        """(M, 1, ...), to choose among arrays such as `like`."""
        xp, shape = namespace(like), (-1,) + (1,) * (like.ndim - 1)
        return xp.reshape(xp.asarray([j in guarded for j in range(like.shape[0])], device=device(like)), shape)

    def _weight(self, slope: Array, precision: Array) -> Array:
        return namespace(slope).concat([slope, -0.5 * self.dual(precision)], axis=1)

    def _guarded(self, kernels: Kernels, precision: Array, eps: float) -> tuple[int, ...]:
        """|mean|' |precision| |mean| times the rounding is what cancellation can cost of a kernel's variance.

        What lies about the mean cancels as well, in kernels much longer than they are wide: `elongation`.
        """
        xp = namespace(precision)
        size = xp.abs(kernels.mean)
        far = xp.sum(size * self.apply(xp.abs(precision), size), axis=1)
        # this one costs digits of a log-density, not of a variance: float32 may lose 1e-2, float64 1e-4
        loss = eps * (far + 1e-2 * self.elongation(precision, kernels.covariance))
        # float32 rows carry no more than some 1e-5 of a variance themselves
        limit = self.guard if self.guard is not None else 1e-6 if eps < 1e-10 else 1e-4
        return tuple(j for j, over in enumerate(loss > limit) if bool(over))

    def elongation(self, precision: Array, covariance: Array) -> Array | float:
        """How many times more the terms of a row's squared distance add up to than the distance itself, (M,)."""
        return 0.0  # terms of one sign do not cancel

    def common(self, natural_params: NaturalParams, x: Array) -> Array | float:
        """The part of log p(x|j) that is the same for every kernel and left out of the features, (n,)."""
        return 0.0

    def log_density(self, natural_params: NaturalParams, x: Array) -> Array:
        """log p(x|j), (M, n)."""
        log_density = linear_scores(natural_params.weight, self.features(x))
        log_density += natural_params.offset[:, None]
        self.correct(log_density, natural_params, x, natural_params.offset)
        return log_density + self.common(natural_params, x)

    def correct(self, log_joint: Array, natural_params: NaturalParams, x: Array, constant: Array) -> None:
        """Puts the exact values of the guarded kernels, less their `offset` and plus `constant`, into `log_joint`."""
        for j in natural_params.guarded:
            log_joint[j, :] = self.exact_log_density(natural_params, j, x) + (constant[j, ...] - natural_params.offset[j])

    def exact_log_density(self, natural_params: NaturalParams, j: int, x: Array) -> Array:
        """(6): log p(x|j) of one kernel, from x - mean, (n,); a sum of squares, so that no rounding turns its sign."""
        white = self.whiten(self.of_kernel(natural_params.whitening, j), x - natural_params.kernels.mean[j, :])
        distance = namespace(x).sum(white * white, axis=1)
        return -0.5 * (distance + self.of_kernel(natural_params.log_size, j) + x.shape[1] * LOG_2_PI)

    def distance(self, kernels: Kernels, away: Array) -> Array:
        """Squared length of `away` (M, K, d) in the metric of each kernel, (M, K)."""
        xp = namespace(away)
        precision, _ = self.precision(kernels.covariance)
        columns = [self.apply(precision, away[:, k, :]) for k in range(away.shape[1])]
        return xp.sum(away * xp.stack(columns, axis=1), axis=2)

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """phi @ responsibility', (..., M); the last rows of `phi` are the features of `x`, whatever stands before them."""
        return weighted_feature_sums(phi, responsibility)

    def moments(self, mass: Array, sums: Array, natural_params: NaturalParams, x: Array, responsibility: Array) -> Moments:
        """Moments of one block; `sums` (P, M) is features @ responsibility'."""
        xp, d = namespace(sums), x.shape[1]
        if natural_params.guarded:  # their columns are replaced below
            sums = xp.asarray(sums, copy=True)
        first, second = sums[:d, :].T, sums[d:, :].T
        for j in natural_params.guarded:
            away = x - natural_params.kernels.mean[j, :]
            first[j, :] = responsibility[j, :] @ away
            second[j, :] = self.scatter(away, responsibility[j, :])
        return Moments(mass, first, second)

    def scatter(self, away: Array, responsibility: Array) -> Array:
        """sum_n r_n square(away_n), (S,), of one kernel."""
        return self.square(away.T) @ responsibility

    def moment_origin(self, natural_params: NaturalParams) -> Array:
        """The points about which `moments` were taken: the origin, or a guarded kernel's mean, (M, d)."""
        xp, mean = namespace(natural_params.kernels.mean), natural_params.kernels.mean
        return xp.where(self._is_guarded(natural_params.guarded, mean), mean, xp.zeros_like(mean))

    def estimate(self, moments: Moments, moment_origin: Array, prior: PriorStatistics = NO_PRIOR) -> Kernels:
        """(35), (36): the most likely kernels, from moments about `moment_origin` and what a prior adds to them."""
        xp = namespace(moment_origin)
        n_rows = xp.sum(moments.mass, axis=1)
        mass, first = n_rows + prior.mass, moments.first + prior.first
        step = (first + prior.pull_first) / (mass + prior.pull_mass)[:, None]
        second = moments.second + prior.second + self.pool_moments(self._shift(mass, first, step))
        return Kernels(moment_origin + step, self.covariances(second, n_rows, prior.count))

    def covariances(self, second: Array, mass: Array, count: float) -> Array:
        """Covariances at or above the floor from flat scatters (M, S) of `mass` (M,) and `count` more rows."""
        return self.apply_floor(self.unflatten(second / (mass + count)[:, None], self.floor.shape[0]))

    def log_prior(self, kernels: Kernels, prior: PriorStatistics) -> float:
        """log p(x|j) summed over the rows that `prior` stands for, about the origin, up to a constant."""
        xp = namespace(kernels.mean)
        precision, log_size = self.precision(kernels.covariance)
        mass = prior.mass + xp.zeros_like(kernels.mean[:, 0])
        # where there is no mass there is no first moment either: any other mass leaves the product zero
        shift = self._shift(xp.where(mass > 0, mass, xp.ones_like(mass)), prior.first + 0 * kernels.mean, kernels.mean)
        shift = xp.where(mass[:, None] > 0, shift, xp.zeros_like(shift))
        scatter = prior.second + self.pool_moments(shift)
        return float(-0.5 * (prior.count * xp.sum(log_size) + xp.sum(self.dual(precision) * scatter)))

    def _shift(self, mass: Array, first: Array, step: Array) -> Array:
        """sum r (z - step)(z - step)' - sum r z z', flat (M, S)."""
        # mass * step^2 - 2 * first * step, as a difference of two squares so that one feature map serves
        middle = first / mass[:, None]
        return mass[:, None] * (self.square((middle - step).T) - self.square(middle.T)).T

    def with_pseudocounts(
        self, moments: Moments, moment_origin: Array, vanished: Array, kernels: Kernels, mass: float
    ) -> Moments:
        """Moments in which the `vanished` kernels (M,) have a trace of `mass` that keeps them as they are."""
        xp, away = namespace(moment_origin), kernels.mean - moment_origin
        still = mass * (self.flat(kernels.covariance) + self.square(away.T).T)
        return Moments(
            *self._pseudocount_mass(moments, away, vanished, mass), xp.where(vanished[:, None], still, moments.second)
        )

    def _pseudocount_mass(self, moments: Moments, away: Array, vanished: Array, mass: float) -> tuple[Array, Array]:
        """Mass and first moments of `held`, which are every kernel's own."""
        xp = namespace(away)
        trace = mass / moments.mass.shape[1] + xp.zeros_like(moments.mass)
        return (
            xp.where(vanished[:, None], trace, moments.mass),
            xp.where(vanished[:, None], mass * away, moments.first),
        )

    def reset_covariance(self, covariance: Array, chosen: list[int]) -> Array:
        """Covariances in which the `chosen` kernels have the mean of all."""
        xp = namespace(covariance)
        mean = xp.mean(covariance, axis=0)
        return xp.stack([mean if j in chosen else covariance[j, ...] for j in range(covariance.shape[0])])

    def into(self, kernels: Kernels, frame: Frame) -> Kernels:
        """Kernels given in the units of the data, in the frame."""
        frame = match_array(frame, like=kernels.mean)
        return Kernels((kernels.mean - frame.origin) / frame.unit, self.rescaled(kernels.covariance, 1 / frame.unit))

    def out_of(self, kernels: Kernels, frame: Frame) -> Kernels:
        """Kernels of the frame, in the units of the data."""
        frame = match_array(frame, like=kernels.mean)
        return Kernels(frame.outside(kernels.mean), self.rescaled(kernels.covariance, frame.unit))

    def _raise_to_floor(self, variance: Array, floor: Array) -> Array:
        """Variances (M, ...) at or above `floor`, or the error that names the kernel and feature without width."""
        xp = namespace(variance)
        variance = xp.maximum(variance, floor)
        if float(xp.min(variance)) < eps_of(variance):
            j, f = next(
                (j, f)
                for j in range(variance.shape[0])
                for f in range(variance.shape[1])
                if float(variance[j, f]) < eps_of(variance)
            )
            raise CollapsedKernelError(j, f, float(variance[j, f]))
        return variance
