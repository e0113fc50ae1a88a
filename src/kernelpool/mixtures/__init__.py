"""Gaussian mixtures shared between classes: papers 1 and 2."""

from .classifier import SharedKernelClassifier
from .fit import Training
from .sharing_average import SharingAverageClassifier
from .start import Start

__all__ = ["SharedKernelClassifier", "SharingAverageClassifier", "Start", "Training"]
