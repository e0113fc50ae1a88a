r"""A Dirichlet prior on the probabilities of words.

.. math:: \log p(\Theta) = \sum_j \sum_g \frac{\alpha}{L_g + 1} \sum_{l = 0}^{L_g} \log \theta_{jg}(l)

as if :math:`\alpha` more rows of every kernel had been seen, spread evenly over the :math:`L_g` levels of each column of words
and over all words that have no level of their own. The family adds these rows itself (`kernels.product`); this is their term of
the objective.
"""

from ..kernels import Kernel, Parameters, Product
from .penalty import Penalty, Subkernels


class WordPrior(Penalty):
    """The belief that no word is impossible."""

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        return kernel.log_dirichlet_prior(kernels) if isinstance(kernel, Product) else 0.0
