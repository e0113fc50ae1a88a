r"""A conjugate prior on every kernel, scaled by the data.

Fraley & Raftery, "Bayesian regularization for normal mixture estimation and model-based
clustering", Journal of Classification 24, 2007, sections 3 and 4 and table 2.

.. math::

    \mu_j \mid \Sigma_j \sim N(\mu_P, \Sigma_j / \kappa_P), \qquad \Sigma_j \sim \text{inverse Wishart}(\nu_P, \Lambda_P)

with inverse gammas in place of the Wishart for spherical and diagonal kernels.

==================  ==============  ==============================================================================
paper               here            meaning and default
==================  ==============  ==============================================================================
:math:`\mu_P`       the origin      mean of the data
:math:`\kappa_P`    ``shrinkage``   rows' worth of belief in that mean, 0.01
:math:`\nu_P`       in ``kernel``   degrees of freedom: d + 2, the smallest whole number that has a mean
:math:`\Lambda_P`   ``variance``    (variance of the data) / M^(2/d): the data cut into M equal parts
==================  ==============  ==============================================================================

Deviations: the scale is the diagonal of the data's covariance, not the whole of it, so that the
prior needs no more of the data than its frame does and makes no kernel more singular than its
neighbors. The paper keeps d + 2 degrees of freedom where the prior is on single variances
(spherical, diagonal); their mean is then 1/d of what it was meant to be, and in many dimensions the
prior narrows kernels instead of widening them. There we take 3, as the paper does for one
dimension.
"""

from ..arrays import Array, match_array
from ..kernels import Gaussian, Kernel, Parameters, PriorStatistics, Product
from .penalty import Penalty, PriorRows, Subkernels


class Conjugate(PriorRows):
    """As if `shrinkage` rows lay at the mean of the data, and some more spread as a kernel is
    expected to be.
    """

    def __init__(self, variance: Array, n_kernels: int, shrinkage: float = 0.01) -> None:
        self.shrinkage = shrinkage
        self.variance = variance / n_kernels ** (2 / variance.shape[0])
        """What is expected of a kernel along each feature, (d,)."""

    def rows(self, kernel: Gaussian, moment_origin: Array) -> PriorStatistics:
        """kappa rows at mu_P, the origin, and a scatter of Lambda that counts for nu_P and some
        more rows.
        """
        scatter, count = kernel.prior(
            match_array(self.variance, like=moment_origin), moment_origin.shape[0]
        )
        second = scatter + kernel.squares(self.shrinkage + 0 * moment_origin[:, 0], moment_origin)
        return PriorStatistics(self.shrinkage, -self.shrinkage * moment_origin, second, count)


class WordPrior(Penalty):
    r"""A Dirichlet prior on the probabilities of categories.

    .. math:: \log p(\Theta) = \sum_j \sum_g \frac{\alpha}{L_g + 1} \sum_{l = 0}^{L_g} \log \theta_{jg}(l)

    as if :math:`\alpha` more rows of every kernel had been seen, spread evenly over the :math:`L_g`
    categories of each column and any other value. The family adds these rows itself
    (`kernels.product`); this is their term of the objective.
    """

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        return kernel.log_dirichlet_prior(kernels) if isinstance(kernel, Product) else 0.0
