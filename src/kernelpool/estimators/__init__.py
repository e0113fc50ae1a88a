"""Thin scikit-learn shells around the networks."""

from .competitive import CompetitiveNeuronsClassifier
from .conformal import ConformalClassifier
from .multi_edit import MultiEdit
from .parzen import ParzenClassifier, ReducedParzenClassifier
from .pooled import PooledClassifier
from .rbf import RBFNetworkClassifier, RBFNetworkRegressor
from .reject import RejectClassifier
from .shared_kernel import SharedKernelClassifier
from .sharing_average import SharingAverageClassifier

__all__ = [
    "CompetitiveNeuronsClassifier",
    "ConformalClassifier",
    "MultiEdit",
    "ParzenClassifier",
    "PooledClassifier",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "ReducedParzenClassifier",
    "RejectClassifier",
    "SharedKernelClassifier",
    "SharingAverageClassifier",
]
