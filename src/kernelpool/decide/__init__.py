"""Whether a prediction is accepted, ambiguous or novel, and sets of classes."""

from .conformal import ConformalClassifier
from .reject import RejectClassifier

__all__ = ["ConformalClassifier", "RejectClassifier"]
