r"""Kernel-based networks and their minimal form: paper 5.

M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks",
IJCNN 1991 (its formulas are not numbered): a kernel at every row, multi-edit, few kernels, and
bounds on the error.

.. math::

    f(x) = \arg\max_k \sum_{i:\, y_i = k} w_i\, K\!\left(\frac{x - x_i}{r}\right), \qquad
    K(u) = [u \le 1], \quad 1 - u^2, \quad e^{-u^2/2}

==================  =======================  ==========  ===========================================
paper               here                     shape       meaning
==================  =======================  ==========  ===========================================
:math:`x_i`         ``center``, `kernels_`   (M, d)      kernels, sorted by class
:math:`\theta_i`    ``offsets``              K + 1       kernels offsets[k] .. offsets[k+1] are of
                                                         class k
:math:`w_i`         ``weight``               (M,)        votes of a kernel; the paper gives one to
                                                         each
:math:`r`           ``radius``               scalar      common radius, or standard deviation
:math:`K(u)`        ``Profile``                          height over the squared distance in radii
P, I                ``n_splits``,            integers    multi-edit: parts, and rounds without a
                    ``n_iter_no_change``                 change
N, K                ``n_kernels``,           integers    bounds: kernels to choose from, and those
                    ``n_kept``                           chosen
==================  =======================  ==========  ===========================================

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; those
nearest to it vote instead, equally far ones together, which is what a radius that grew until it
reached one would give. Features are divided by their deviations (`standardize`), or all by one power of two, before
distances are taken. The radius may be that with the least log-loss, and votes then have a
temperature. The paper does not say which kernels to keep: the reduction is Fukunaga & Hayes's
(`kernelpool.parzen.reduce`). Any other `kernelpool.parzen.network.Profile`, such as the indicator
of a star-shaped set (the paper), may be the kernel.

The network of the paper votes by the rows within the radius:

>>> import numpy as np
>>> from scipy.spatial.distance import cdist
>>> from kernelpool import ParzenClassifier
>>> from kernelpool.datasets import make_clouds
>>> X, y = make_clouds(random_state=0)
>>> network = ParzenClassifier("hypersphere", "loo", standardize=False).fit(X, y)
>>> near = cdist(X, network.kernels_) <= network.radius_
>>> votes = near.astype(int) @ (network.kernel_classes_[:, None] == network.classes_)
>>> np.array_equal(network.predict(X), network.classes_[votes.argmax(1)])
True
"""

from .classifier import ParzenClassifier, ReducedParzenClassifier
from .multi_edit import MultiEdit

__all__ = ["MultiEdit", "ParzenClassifier", "ReducedParzenClassifier"]
