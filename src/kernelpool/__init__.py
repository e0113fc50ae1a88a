"""Classifiers that pool kernels: shared Gaussian mixtures that know their densities."""

from .estimators.shared_kernel import SharedKernelClassifier
from .estimators.sharing_average import SharingAverageClassifier

__all__ = ["SharedKernelClassifier", "SharingAverageClassifier"]

__version__ = "0.1.0"
