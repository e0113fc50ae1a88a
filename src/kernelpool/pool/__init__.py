r"""Pools: networks of several kinds, cross-fitted, and one probability from theirs.

C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated
bibliography", Statistical Science 1(1), 1986: the pools. L. Breiman, "Stacked regressions", Machine
Learning 24, 1996: weights from predictions for rows that took no part in training. P. Smyth and D.
Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999: the same
for densities.

.. math::

    P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m} \qquad \text{or} \qquad
    P(C_k \mid x) = \sum_m w_m P_m(C_k \mid x), \quad \sum_m w_m = 1

============  =====================================================================================
module        holds
============  =====================================================================================
`members`     the candidates: one line each, and what a pool uses of a class of classifiers
`views`       how they take rows: codes, tables, scaled or warped numbers, imputations
`combine`     the fitted pool and its probabilities; weights of members and of densities
`fit`         trials of the candidates, on a sample first, within a time limit
`classifier`  `PooledClassifier`
============  =====================================================================================

Deviations. The weights of the logarithmic pool need not sum to one: they are a temperature as well.
A small price sets weights to zero, and a ridge keeps them near each other where rows are few. Every
network of a member keeps the fold that it was trained without, so that nothing is trained twice;
networks that leave out single rows by themselves are trained once. No probability of a member
counts as less than 1e-12.

The probabilities of a logarithmic pool from those of its networks:

>>> import numpy as np
>>> from kernelpool import PooledClassifier, RBFNetworkClassifier, SharedKernelClassifier
>>> from kernelpool.datasets import make_clouds
>>> X, y = make_clouds(400, random_state=0)
>>> members = [("mixture", SharedKernelClassifier(4)), ("rbf", RBFNetworkClassifier(50))]
>>> model = PooledClassifier(members, pooling="log_linear", random_state=0).fit(X, y)
>>> product = 1.0
>>> for name, weight in zip(model.members_, model.weights_):
...     networks = [network.estimator for network in model.networks_ if network.member == name]
...     product *= np.mean([network.predict_proba(X) for network in networks], 0) ** weight
>>> probability = product / product.sum(1)[:, None]
>>> np.allclose(model.predict_proba(X), probability, 0, 1e-6)
True
"""

from .classifier import PooledClassifier

__all__ = ["PooledClassifier"]
