r"""Kernels that remember where they came from.

Gauvain & Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of
Markov chains", IEEE Transactions on Speech and Audio Processing 2(2), 1994, section II, with the
prior centered on given kernels.

.. math:: \log p(\Theta) = -\nu \sum_j \mathrm{KL}\left( p_0(x \mid j) \,\|\, p(x \mid j) \right)

which is, but for a constant, the expected log-likelihood of :math:`\nu` more rows drawn from each
kernel as it was: a normal inverse Wishart prior whose mode is that kernel. At that kernel it is
zero.

====================================  ============  =================================================================
paper                                 here          meaning
====================================  ============  =================================================================
:math:`\tau = \alpha - d`             ``strength``  rows' worth of belief in each kernel, :math:`\nu` above
:math:`\mu_{0j}, \Sigma_{0j}`         ``home``      the kernels as they were
====================================  ============  =================================================================

Deviations: the paper lets the strength differ by kernel and between mean and covariance; here it is
one number of rows.
"""

from ..arrays import Array, match_array, namespace
from ..kernels import Gaussian, Kernel, Kernels, PriorStatistics, ProductKernels
from .penalty import PriorRows, Subkernels


class Anchor(PriorRows):
    """As if `strength` more rows, drawn from `home`, had been seen of every kernel."""

    def __init__(self, strength: float, home: Kernels) -> None:
        self.strength, self.home = strength, home

    def rows(self, kernel: Gaussian, moment_origin: Array) -> PriorStatistics:
        """nu rows with the mean and covariance of `home`."""
        xp, home = namespace(moment_origin), match_array(self.home, like=moment_origin)
        away = home.mean - moment_origin
        second = kernel.pool_moments(
            self.strength * (kernel.flat(home.covariance) + kernel.square(away.T).T)
        )
        n_rows = kernel.pool_moments(
            xp.ones_like(away[:, :1])
        )  # a tied covariance counts the rows of all kernels
        return PriorStatistics(
            self.strength, self.strength * away, second, self.strength * float(n_rows[0, 0])
        )

    def table_counts(self, like: Array) -> Array | float:
        """nu rows with the categories of `home`."""
        assert isinstance(self.home, ProductKernels)
        return self.strength * match_array(self.home.probability, like=like)

    def objective(
        self, kernel: Kernel, kernels: Kernels, subkernels: Subkernels | None = None
    ) -> float:
        """-nu times the sum of the divergences."""
        return super().objective(kernel, kernels) - super().objective(
            kernel, match_array(self.home, like=kernels.mean)
        )
