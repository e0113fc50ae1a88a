"""Thin scikit-learn shells around the networks."""

from .competitive import CompetitiveNeuronsClassifier
from .conformal import ConformalClassifier
from .em_log import EMLogClassifier, EMLogRegressor
from .multi_edit import MultiEdit
from .parzen import ParzenClassifier, ReducedParzenClassifier
from .pooled import PooledClassifier
from .rbf import RBFNetworkClassifier
from .reject import RejectClassifier
from .shared_kernel import SharedKernelClassifier
from .sharing_average import SharingAverageClassifier

__all__ = [
    "CompetitiveNeuronsClassifier",
    "ConformalClassifier",
    "EMLogClassifier",
    "EMLogRegressor",
    "MultiEdit",
    "ParzenClassifier",
    "PooledClassifier",
    "RBFNetworkClassifier",
    "ReducedParzenClassifier",
    "RejectClassifier",
    "SharedKernelClassifier",
    "SharingAverageClassifier",
]
