"""RBF networks: many kernels and a logistic readout."""

from .classifier import RBFNetworkClassifier

__all__ = ["RBFNetworkClassifier"]
