r"""Penalty on kernels whose classes lie apart.

Constantinopoulos, Titsias & Likas, "A Bayesian regularization method for the probabilistic RBF network", 2002, equations
(16)-(30).

.. math:: \log p(\Theta) = -\alpha \sum_j \sum_k P(C_k \mid j)\, \beta_{jk}

with :math:`\beta_{jk}` the Bhattacharyya distance of kernel j from what class k alone would make of it.

========================  ================  ======  ======================================================================
paper                     here              shape   meaning
========================  ================  ======  ======================================================================
:math:`\alpha`            ``strength``      scalar  weight of the penalty; 0 is maximum likelihood, bit for bit
:math:`P(C_k \mid j)`     ``posterior``     (M, K)  share of class k in kernel j
:math:`\delta_{jk}`       ``apart``         (M, K)  squared distance of a class's mean from the kernel's, in its metric
:math:`\beta_{jk}`        ``distance``      (M, K)  what is penalized
========================  ================  ======  ======================================================================

Deviations. (29) can make every share of a class negative, and zeroing them as the paper does leaves 0/0 (seen on ionosphere
with four kernels and a strength of 20): a class to which that happens keeps its shares of mass for this sweep. (29) prints
:math:`\delta` at step t, (30) defines it at t + 1; the latter is used. The updates assume :math:`\Sigma_{jk} = \Sigma_j`,
the objective (22), (23) does not, so it may fall: it is tracked as it is, and the best parameters are kept. Other distances
than the paper's (its wish list) replace :math:`\delta / 8` in (27) and (29) by their own value and slope.
"""

from typing import Protocol

from ..arrays import Array, namespace
from ..kernels import Gaussian, Kernels, Moments, PriorStatistics
from .penalty import Penalty, Subkernels


class Distance(Protocol):
    """How far kernels lie from their subkernels; one small class each."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(M, K), as the updates use it."""

    def slope(self, apart: Array) -> Array:
        """Derivative of `value` by delta, (M, K), with the covariances held fixed."""

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(M, K), as the objective uses it: with Sigma_jk."""


def apart(kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
    """(30): delta_jk, (M, K)."""
    return kernel.distance(kernels, _means(subkernels) - kernels.mean[:, None, :])


def _means(subkernels: Subkernels) -> Array:
    """mu_jk, (M, K, d)."""
    return namespace(subkernels.posterior).stack([kernels.mean for kernels in subkernels.kernels], axis=1)


class Bhattacharyya:
    """(23), in the updates with Sigma_jk = Sigma_j: delta / 8."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        return apart(kernel, kernels, subkernels) / 8

    def slope(self, apart: Array) -> Array:
        return namespace(apart).ones_like(apart) / 8

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(23): the distance of the means in the mean of both metrics, and the distance of the shapes."""
        xp = namespace(kernels.mean)
        _, log_size = kernel.precision(kernels.covariance)
        columns = []
        for own in subkernels.kernels:
            both = Kernels(kernels.mean, 0.5 * (kernels.covariance + own.covariance))
            _, log_both = kernel.precision(both.covariance)
            _, log_own = kernel.precision(own.covariance)
            away = (own.mean - kernels.mean)[:, None, :]
            columns.append(kernel.distance(both, away)[:, 0] / 8 + 0.5 * (log_both - 0.5 * (log_size + log_own)))
        return xp.stack(columns, axis=1)


class FullBhattacharyya(Bhattacharyya):
    """(23) with Sigma_jk its own, in the updates too."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        return self.exact(kernel, kernels, subkernels)


class Hellinger(Bhattacharyya):
    """Squared Hellinger distance, 1 - exp(-beta): bounded, so a remote class is given up sooner."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        xp = namespace(kernels.mean)
        return 1 - xp.exp(-super().value(kernel, kernels, subkernels))

    def slope(self, apart: Array) -> Array:
        return namespace(apart).exp(-apart / 8) / 8

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        xp = namespace(kernels.mean)
        return 1 - xp.exp(-super().exact(kernel, kernels, subkernels))


class KullbackLeibler:
    """Divergence of the kernel from its subkernel, KL(p(x|jk) || p(x|j)); delta / 2 where the shapes agree."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        return apart(kernel, kernels, subkernels) / 2

    def slope(self, apart: Array) -> Array:
        return namespace(apart).ones_like(apart) / 2

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(delta + tr(Sigma_j^-1 Sigma_jk) - d + log |Sigma_j| - log |Sigma_jk|) / 2."""
        xp, d = namespace(kernels.mean), kernels.mean.shape[1]
        precision, log_size = kernel.precision(kernels.covariance)
        columns = []
        for own in subkernels.kernels:
            _, log_own = kernel.precision(own.covariance)
            columns.append(0.5 * (kernel.trace(precision, own.covariance) - d + log_size - log_own))
        shapes = xp.stack(columns, axis=1) + xp.zeros_like(subkernels.posterior)
        return apart(kernel, kernels, subkernels) / 2 + shapes


DISTANCES: dict[str, type[Distance]] = {
    "bhattacharyya": Bhattacharyya,
    "full_bhattacharyya": FullBhattacharyya,
    "hellinger": Hellinger,
    "kullback_leibler": KullbackLeibler,
}
"""Every distance by the name under which users ask for it."""


class Overlap(Penalty):
    """Draws each mean towards its classes' means, and weight away from the classes that lie far off."""

    by_class = True
    monotone = False

    def __init__(self, strength: float, distance: Distance | None = None) -> None:
        self.strength = strength
        self.distance = Bhattacharyya() if distance is None else distance

    def prior_statistics(
        self, kernel: Gaussian, moments: Moments, moment_origin: Array, subkernels: Subkernels | None
    ) -> PriorStatistics:
        """(27): as if 2 * strength * slope more rows of each class lay at its mean; (28) leaves the shapes to the rows."""
        assert subkernels is not None
        xp, here = namespace(moments.mass), kernel.estimate(moments, moment_origin)
        pull = 2 * self.strength * subkernels.posterior * self.distance.slope(apart(kernel, here, subkernels))  # (M, K)
        drawn = xp.sum(pull[:, :, None] * (_means(subkernels) - moment_origin[:, None, :]), axis=1)
        return PriorStatistics(pull_mass=xp.sum(pull, axis=1), pull_first=drawn)

    def shares(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels | None) -> Array | float:
        """(29)."""
        assert subkernels is not None
        xp, posterior = namespace(subkernels.posterior), subkernels.posterior
        distance = self.distance.value(kernel, kernels, subkernels)
        typical = xp.sum(posterior * distance, axis=1)[:, None]
        return self.strength * posterior * (typical - distance)

    def objective(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels | None) -> float:
        """(22), second term."""
        assert subkernels is not None
        xp = namespace(kernels.mean)
        return -self.strength * float(xp.sum(subkernels.posterior * self.distance.exact(kernel, kernels, subkernels)))
