r"""RBF networks: many Gaussian kernels of one width, and a logistic readout.

Moody & Darken, "Fast learning in networks of locally-tuned processing units", Neural Computation
1(2), 1989: kernels at k-means centers, then a linear output layer.

.. math::

    P(C_k \mid x) \propto \exp\Big(b_k + \sum_j v_{jk}\, h_j(z) + \sum_i u_{ik}\, z_i\Big), \qquad
    h_j(z) = \exp\Big(-\frac{1}{2 \sigma^2} \sum_{i \in S_j} (z_i - \mu_{ji})^2\Big)

==================  ====================  ===========  =============================================
symbol              here                  shape        meaning
==================  ====================  ===========  =============================================
:math:`z`           ``z``                 (n, d)       features, scaled and mapped by the metric
:math:`\mu_j`       ``center``, `means_`  (M, d)       k-means centers of all rows, or rows
:math:`S_j`         ``features``          (M, d)       features of kernel j: all, or a few at random
:math:`\sigma`      ``width``             scalar       standard deviation of all kernels
:math:`v, u, b`     ``readout``           (M+d+1, K)   weights of kernels and features, and biases
==================  ====================  ===========  =============================================

Deviations. The readout is logistic regression with a ridge in place of least squares, and takes the
features beside the kernels. All kernels have one width; it and the ridge are those with the least
log-loss on held-out rows, where the paper takes widths from distances between centers.

Kernels of few features each (Ho, "The random subspace method for constructing decision forests",
IEEE Transactions on Pattern Analysis and Machine Intelligence 20(8), 1998) lie at rows: in many
features a spherical kernel is near no row, while one of two or three features represents how these
interact. A learned metric is that of neighborhood components (`kernelpool.rbf.metric`).

The output layer of a fitted network is a linear function of the kernels and the scaled features:

>>> import numpy as np
>>> from kernelpool import RBFNetworkClassifier
>>> from kernelpool.datasets import make_clouds
>>> X, y = make_clouds(random_state=0)
>>> network = RBFNetworkClassifier(20, random_state=0).fit(X, y)
>>> z = (X - network.location_) / network.scale_
>>> kernels, features, bias = np.split(network.readout_[:, 0], [20, -1])
>>> log_odds = network.activations(X) @ kernels + z @ features + bias
>>> np.allclose(log_odds, network.decision_function(X))
True
"""

from .classifier import RBFNetworkClassifier

__all__ = ["RBFNetworkClassifier"]
