"""Mixtures of competing neurons: paper 4."""

from .classifier import CompetitiveNeuronsClassifier

__all__ = ["CompetitiveNeuronsClassifier"]
