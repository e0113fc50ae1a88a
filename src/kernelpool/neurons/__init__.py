r"""Mixtures of simple neurons that compete for the rows.

Sridharan, Beal & Govindaraju, "Competitive mixtures of simple neurons", ICPR 2006, equations
(1)-(5).

.. math::

    P(t \mid x) = \sum_j \pi_j f(x; w_j), \qquad
    \log p(x, t \mid j) = -\tfrac{\alpha}{2} (t - f(x; w_j))^2
    - \tfrac{\beta}{2} \sum_{l \ne j} \cos^2(w_j, w_l)

==================  ==================  =============  ===========================================
paper               here                shape          meaning
==================  ==================  =============  ===========================================
:math:`w_j`         ``weight``          (M, C, d + 1)  weights of neuron j, bias last; C = 1 for
                                                       two classes, else K
:math:`\pi_j`       ``mixing``          (M,)           share of neuron j
:math:`\alpha`      ``precision``                      how sharply errors decide which neuron a
                                                       row belongs to
:math:`\beta`       ``repulsion``                      how strongly neurons are kept at right
                                                       angles
:math:`Q_i(j)`      ``responsibility``  (M, n)         share of neuron j in row i, times the
                                                       weight of the row
:math:`\mathcal F`  ``bound``                          what the M-step raises, (2)
==================  ==================  =============  ===========================================

Deviations from the paper. What (5) follows is the slope of

.. math::

    \text{cost} = \tfrac12 \sum_{ij} Q_i(j) (t_i - f_{ij})^2
    + \tfrac{\beta}{2} \sum_{j<l} \cos^2(w_j, w_l)

which is (2) with the repulsion counted once, not once a row, and everything divided by alpha. Our
default takes that at its word: the objective is the log-likelihood without repulsion less alpha
times the repulsion, every sweep raises it, and the E-step leaves the repulsion out. `GradientRule`
puts it back, as (3) is printed; the objective is then the printed one, which (5) need not raise.
The exponent before section 3.1 has lost the minus of its second term.

Ours: more than two classes (each neuron a softmax, half the squared distance of outputs and classes
in place of the square); the paper's wishes, a density that weights a neuron near its rows
(`local`) and neurons with a margin (`Margin`); and a decay of the weights, because cosines do not
see how long they are and separable rows would let them grow for ever. `GradientRule.repulsion_on`
has section 5's link to margins: (5) with its second term for the bias alone, a rule and no longer
the slope of a cost.

Four neurons solve exclusive or, which none of them can alone. The prediction is their mean output:

>>> import numpy as np
>>> from kernelpool import CompetitiveNeuronsClassifier
>>> from kernelpool.datasets import make_xor
>>> X, y = make_xor(random_state=0)
>>> neurons = CompetitiveNeuronsClassifier(4, repulsion=40, tol=1e-6, random_state=0).fit(X, y)
>>> activation = X @ neurons.weights_[:, :-1].T + neurons.weights_[:, -1]
>>> probability = 1 / (1 + np.exp(-activation)) @ neurons.mixing_
>>> np.allclose(probability, neurons.predict_proba(X)[:, 1])
True
"""

from .classifier import CompetitiveNeuronsClassifier
from .network import GradientRule

__all__ = ["CompetitiveNeuronsClassifier", "GradientRule"]
