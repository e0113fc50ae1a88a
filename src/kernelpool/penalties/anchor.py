r"""Kernels that remember where they came from.

Gauvain & Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of Markov chains", IEEE
Transactions on Speech and Audio Processing 2(2), 1994, section II, with the prior centered on given kernels.

.. math:: \log p(\Theta) = -\nu \sum_j \mathrm{KL}\left( p_0(x \mid j) \,\|\, p(x \mid j) \right)

which is, but for a constant, the expected log-likelihood of :math:`\nu` more rows drawn from each kernel as it was: a normal
inverse Wishart prior whose mode is that kernel. At that kernel it is zero.

====================================  ============  =================================================================
paper                                 here          meaning
====================================  ============  =================================================================
:math:`\tau = \alpha - d`             ``strength``  rows' worth of belief in each kernel, :math:`\nu` above
:math:`\mu_{0j}, \Sigma_{0j}`         ``home``      the kernels as they were
====================================  ============  =================================================================

Deviations: the paper lets the strength differ by kernel and between mean and covariance; here it is one number of rows.
"""

from ..arrays import Array, match_array, namespace
from ..kernels import Gaussian, Kernels, Moments
from .none import NoPenalty
from .subkernels import Subkernels


class Anchor(NoPenalty):
    """As if `strength` more rows, drawn from `home`, had been seen of every kernel."""

    def __init__(self, strength: float, home: Kernels) -> None:
        self.strength, self.home = strength, home

    def center(self, kernel: Gaussian, moments: Moments, moment_origin: Array, subkernels: Subkernels | None) -> Array:
        """(n_j mean_j + nu mu_0j) / (n_j + nu)."""
        mass = namespace(moments.mass).sum(moments.mass, axis=1)[:, None]
        home = match_array(self.home.mean, like=moment_origin)
        return moment_origin + (moments.first + self.strength * (home - moment_origin)) / (mass + self.strength)

    def prior_statistics(self, kernel: Gaussian, mean: Array) -> tuple[Array | float, float]:
        """nu (Sigma_0j + (mean - mu_0j)(mean - mu_0j)'), flat, and the rows it counts for."""
        xp = namespace(mean)
        rows = kernel.pool_moments(xp.ones_like(mean[:, :1]))  # a tied covariance is told of the rows of all kernels
        return kernel.pool_moments(self.strength * self._scatter(kernel, mean)), self.strength * float(rows[0, 0])

    def objective(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels | None) -> float:
        """-nu times the sum of the divergences, (tr(Sigma^-1 S) - d + log |Sigma| - log |Sigma_0|) / 2 each."""
        xp, (n_kernels, d) = namespace(kernels.mean), kernels.mean.shape
        precision, log_size = kernel.precision(kernels.covariance)
        _, log_home = kernel.precision(match_array(self.home.covariance, like=kernels.mean))
        grown = xp.sum(log_size - log_home + xp.zeros_like(kernels.mean[:, 0]))
        spread = xp.sum(kernel.dual(precision) * self._scatter(kernel, kernels.mean))
        return float(-0.5 * self.strength * (spread - n_kernels * d + grown))

    def _scatter(self, kernel: Gaussian, mean: Array) -> Array:
        """S = Sigma_0j + (mean - mu_0j)(mean - mu_0j)', flat, (M, S)."""
        home = match_array(self.home, like=mean)
        return kernel.flat(home.covariance) + kernel.square((mean - home.mean).T).T
