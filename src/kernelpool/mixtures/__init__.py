r"""Gaussian mixtures whose kernels classes may share: papers 1 and 2.

Paper 1: M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density
estimation", IEEE Transactions on Neural Networks 12(5), 2001. Paper 2: C. Constantinopoulos, M. K.
Titsias and A. C. Likas, "A Bayesian regularization method for the probabilistic RBF network",
2002: a penalty on kernels whose classes lie apart.

.. math::

    p(x \mid C_k) = \sum_j \pi_{jk}\, p(x \mid j), \qquad
    L = \sum_k \sum_{x \in C_k} \log \sum_j \lambda_{jk}\, \pi_{jk}\, p(x \mid j)
        - \alpha \sum_j \delta_j

====================  =======================  =======  ============================================
paper                 here                     shape    meaning
====================  =======================  =======  ============================================
:math:`\pi_{jk}`      ``mixing``, `mixing_`    (M, K)   weight of kernel j for class k
:math:`\lambda`       ``sharing``, `sharing_`  (M, K)   how far class k may use kernel j in training
:math:`T_k`           ``owner``, `owners_`     (M,)     the class that kernel j belongs to
:math:`P(C_k)`        `class_prior_`           (K,)     share of class k among all rows
:math:`P(C_k|j)`      `class_posterior_`       (M, K)   share of class k in kernel j
:math:`\alpha`        ``overlap``              scalar   strength of the penalty
:math:`\delta_j`      `kernel_overlap`         (M,)     how far the classes of kernel j lie apart
====================  =======================  =======  ============================================

The equations are in `network` (E-step, M-step) and `kernelpool.penalties.overlap`; `fit` trains,
`fitted` answers, `conditional` trains further networks to discriminate, `by_class` splits kernels,
`learned_sharing` learns the degrees of sharing, and `stream` follows mini-batches.

Deviations. The defaults of `SharedKernelClassifier` classify better than the papers' network, which
is `SharedKernelClassifier.prbf`: full kernels with a prior, and conditional training. Sharing may
differ by kernel and class. Rows may have weights, missing cells and no label; kernels may be
products with tables of categories.

The probabilities of the papers' network are Bayes' rule on its class densities:

>>> import numpy as np
>>> from scipy.stats import multivariate_normal
>>> from kernelpool import SharedKernelClassifier
>>> from kernelpool.datasets import make_clouds
>>> X, y = make_clouds(random_state=0)
>>> model = SharedKernelClassifier.prbf(8, sharing=0.5, overlap=5, random_state=0).fit(X, y)
>>> kernels = zip(model.means_, model.covariances_)
>>> density = np.array([multivariate_normal(m, v).pdf(X) for m, v in kernels])
>>> joint = (model.mixing_ * model.class_prior_).T @ density
>>> np.allclose(joint / sum(joint), model.predict_proba(X).T)
True
"""

from .classifier import SharedKernelClassifier
from .fit import Training
from .sharing_average import SharingAverageClassifier
from .start import Start

__all__ = ["SharedKernelClassifier", "SharingAverageClassifier", "Start", "Training"]
