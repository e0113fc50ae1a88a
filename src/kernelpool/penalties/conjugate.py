r"""A conjugate prior on every kernel, scaled by the data.

Fraley & Raftery, "Bayesian regularization for normal mixture estimation and model-based clustering", Journal of
Classification 24, 2007, sections 3 and 4 and table 2.

.. math::

    \mu_j \mid \Sigma_j \sim N(\mu_P, \Sigma_j / \kappa_P), \qquad \Sigma_j \sim \text{inverse Wishart}(\nu_P, \Lambda_P)

with inverse gammas in place of the Wishart for spherical and diagonal kernels.

==================  ==============  ==============================================================================
paper               here            meaning and default
==================  ==============  ==============================================================================
:math:`\mu_P`       ``mean``        mean of the data
:math:`\kappa_P`    ``shrinkage``   rows' worth of belief in that mean, 0.01
:math:`\nu_P`       ``dof``         d + 2, the smallest integer that has a mean
:math:`\Lambda_P`   ``scatter``     (variance of the data) / M^(2/d): the data cut into M equal parts
==================  ==============  ==============================================================================

Deviation: the scale is the diagonal of the data's covariance, not the whole of it, so that the prior needs no more of
the data than its frame does and makes no kernel more singular than its neighbours.
"""

from ..arrays import Array, at_home_of, device, namespace
from ..kernels import Gaussian, Kernels, Moments
from .none import NoPenalty


class Conjugate(NoPenalty):
    """As if `shrinkage` rows lay at `mean`, and `dof` more with the given scatter."""

    def __init__(self, variance: Array, n_kernels: int, shrinkage: float = 0.01) -> None:
        d = variance.shape[0]
        self.shrinkage, self.dof = shrinkage, d + 2.0
        self.variance = variance / n_kernels ** (2 / d)
        """Diagonal of Lambda_P, (d,); the mean of the data is the origin of the frame."""

    def centre(self, moments: Moments, about: Array) -> Array:
        """(n_j mean_j + kappa mu_P) / (n_j + kappa), with mu_P at the origin."""
        xp = namespace(moments.mass)
        mass = xp.sum(moments.mass, axis=1)[:, None]
        return (moments.first + mass * about) / (mass + self.shrinkage)

    def imagined(self, kernel: Gaussian, mean: Array) -> tuple[Array | float, float]:
        """Lambda + kappa (mean - mu_P)(mean - mu_P)', flat, and the rows it counts for."""
        n_kernels, d = mean.shape
        drawn = self.shrinkage * kernel.square(mean.T).T  # (M, S)
        scatter = self._scatter(kernel, mean)
        if kernel.name == "tied":
            drawn = namespace(mean).sum(drawn, axis=0, keepdims=True)
        return scatter + drawn, kernel.prior_count(self.dof, d, n_kernels)

    def objective(self, kernel: Gaussian, kernels: Kernels) -> float:
        """log p(mu, Sigma), up to a constant."""
        xp = namespace(kernels.mean)
        n_kernels, d = kernels.mean.shape
        precision, log_size = kernel.precision(kernels.covariance)
        pull = self.shrinkage * xp.sum(kernels.mean * kernel.apply(precision, kernels.mean))
        width = xp.sum(kernel.dual(precision) * self._scatter(kernel, kernels.mean))
        return float(-0.5 * (kernel.prior_count(self.dof, d, n_kernels) * xp.sum(log_size) + pull + width))

    def _scatter(self, kernel: Gaussian, mean: Array) -> Array:
        """Lambda_P, flat, (1, S)."""
        xp = namespace(mean)
        variance = at_home_of(mean, self.variance)
        if kernel.name == "spherical":  # one variance a kernel is judged by one feature's worth of scatter
            return xp.reshape(xp.mean(variance), (1, 1))
        root = xp.eye(variance.shape[0], dtype=mean.dtype, device=device(mean)) * variance**0.5
        return xp.sum(kernel.square(root), axis=1)[None, :]
