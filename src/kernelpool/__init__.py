"""Classifiers that pool kernels: shared Gaussian mixtures that know their densities."""

from . import bounds
from .estimators.competitive import CompetitiveNeuronsClassifier
from .estimators.multi_edit import MultiEdit
from .estimators.parzen import ParzenClassifier, ReducedParzenClassifier
from .estimators.rbf_network import RBFNetworkClassifier
from .estimators.rbf_regressor import RBFNetworkRegressor
from .estimators.reject import RejectClassifier
from .estimators.shared_kernel import SharedKernelClassifier
from .estimators.sharing_average import SharingAverageClassifier
from .export import to_onnx
from .files import load, save

__all__ = [
    "CompetitiveNeuronsClassifier",
    "MultiEdit",
    "ParzenClassifier",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "ReducedParzenClassifier",
    "RejectClassifier",
    "SharedKernelClassifier",
    "SharingAverageClassifier",
    "bounds",
    "load",
    "save",
    "to_onnx",
]

__version__ = "0.1.0"
