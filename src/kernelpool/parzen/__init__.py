"""Kernel-based networks and their minimal form: paper 5."""

from .classifier import ParzenClassifier, ReducedParzenClassifier
from .multi_edit import MultiEdit

__all__ = ["MultiEdit", "ParzenClassifier", "ReducedParzenClassifier"]
