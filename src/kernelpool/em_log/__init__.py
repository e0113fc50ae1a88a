r"""EM-Log networks: paper 3.

A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural
networks", equations (1)-(5), steps 1a-1f: the layers of an RBF network are trained together.

.. math::

    y = \sigma\Big(\sum_j \beta_j\, p(x \mid j) + \beta_0\Big), \qquad
    \alpha_j \leftarrow \frac{|\beta_j|}{\sum_i |\beta_i|} \quad \text{(Link)}

===================  =====================  ==========  ============================================
paper                here                   shape       meaning
===================  =====================  ==========  ============================================
:math:`\mu_j, C_j`   ``kernels``,                       the hidden layer: one mixture of all rows
                     `means_`,
                     `covariances_`
:math:`\alpha_j`     ``mixing``,            (M,)        mixing weights of that mixture
                     `mixing_`
:math:`\beta`        ``weight``,            (M + 1, o)  output layer, the bias last
                     `readout_`
:math:`X`            ``design``             (n, M + 1)  outputs of the kernels for each row
===================  =====================  ==========  ============================================

Deviations: :math:`\alpha = 1/N` at the start is a slip for 1/M, and (5) prints p(1 - p) where the
residual needs p. The output of a kernel is its density (the paper), a Gaussian of height one, or
its posterior in the mixture; a temperature makes kernels wider. There may be more outputs than one,
or real ones. The output layer has a ridge, and is solved by one step (the paper) or until it
converges. EM does not depend on the labels and may come to serve them worse: training stops when
the loss of rows left out no longer falls, and returns the best sweep.

The log-odds of a fitted network are a linear function of the outputs of its kernels:

>>> import numpy as np
>>> from kernelpool import EMLogClassifier
>>> from kernelpool.datasets import make_clouds
>>> X, y = make_clouds(random_state=0)
>>> network = EMLogClassifier(12, random_state=0).fit(X, y)
>>> weight, bias = network.readout_[:-1, 0], network.readout_[-1, 0]
>>> log_odds = network.activations(X) @ weight + bias
>>> np.allclose(log_odds, network.decision_function(X))
True
"""

from .classifier import EMLogClassifier, EMLogRegressor

__all__ = ["EMLogClassifier", "EMLogRegressor"]
