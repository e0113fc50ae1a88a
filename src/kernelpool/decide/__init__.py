r"""Decisions from predictions: a label or a refusal, and sets of classes.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
Theory 16(1), 1970: `RejectClassifier`. V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in
a Random World", Springer 2005: `ConformalClassifier`.

Both stand around any classifier, fitted or not, and set thresholds or ranks on rows that it was not
fitted to: rows that are passed, folds (`base`), or those of a pool. Deviations: a refused row is
either ambiguous or novel, and a set is empty only for a row that is unlike all of the classes.

>>> from kernelpool import ConformalClassifier, RejectClassifier, SharedKernelClassifier
>>> from kernelpool.datasets import make_clouds
>>> network = SharedKernelClassifier.prbf(12, random_state=0).fit(*make_clouds(random_state=0))
>>> X, y = make_clouds(random_state=1)
>>> between, far = [0.0, 1.5], [50.0, 50.0]
>>> RejectClassifier(network).fit(X, y).decide([between, far])
array([1, 2], dtype=int8)
>>> ConformalClassifier(network, error=0.05).fit(X, y).predict_set([between, far])
array([[ True,  True],
       [False, False]])
"""

from .conformal import ConformalClassifier
from .reject import RejectClassifier

__all__ = ["ConformalClassifier", "RejectClassifier"]
