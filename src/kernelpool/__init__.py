"""Classifiers that pool kernels: shared Gaussian mixtures that know their densities."""

from . import bounds
from .estimators.competitive import CompetitiveNeuronsClassifier
from .estimators.multi_edit import MultiEdit
from .estimators.parzen import ParzenClassifier, ReducedParzenClassifier
from .estimators.rbf_network import RBFNetworkClassifier
from .estimators.rbf_regressor import RBFNetworkRegressor
from .estimators.shared_kernel import SharedKernelClassifier
from .estimators.sharing_average import SharingAverageClassifier

__all__ = [
    "CompetitiveNeuronsClassifier",
    "MultiEdit",
    "ParzenClassifier",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "ReducedParzenClassifier",
    "SharedKernelClassifier",
    "SharingAverageClassifier",
    "bounds",
]

__version__ = "0.1.0"
