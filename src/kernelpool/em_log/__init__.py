"""EM-Log networks: paper 3."""

from .classifier import EMLogClassifier, EMLogRegressor

__all__ = ["EMLogClassifier", "EMLogRegressor"]
