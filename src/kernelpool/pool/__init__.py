"""Networks of several kinds, cross-fitted and pooled."""

from .classifier import PooledClassifier

__all__ = ["PooledClassifier"]
