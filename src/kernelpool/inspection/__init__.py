"""What a fitted classifier and its predictions can be asked besides the class of a row.

Probabilities, densities and labels by one pass over the rows (`predictions`), why a row got its
class (`explain`), which features matter (`feature_importance`), how frequent the classes are among
rows without labels (`estimate_class_prior`), whether rows are still like those of the training
(`check_drift`), which of two classifiers is better (`compare_models`), what a model is made of
(`describe`), how good predictions are (`Metrics`), and what is certain of their error (`bounds`).
"""

from . import bounds
from .bounds import binomial_interval
from .description import Description, KernelTable, describe, refusals
from .drift import (
    DriftReference,
    DriftReport,
    PriorEstimate,
    check_drift,
    estimate_class_prior,
    prior_from_probability,
    with_class_prior,
)
from .explanation import (
    Explanation,
    Explanations,
    FeatureImportance,
    FeaturePart,
    explain,
    feature_importance,
)
from .metrics import (
    CoverageCurve,
    Metrics,
    ModelComparison,
    Rate,
    bin_sums,
    compare_models,
    coverage_curve,
)
from .pipeline import FittedPipeline, cells_of, innermost, never_seen
from .predictions import (
    DECISIONS,
    Predictions,
    Thresholds,
    ambiguity_of,
    predictions,
)

__all__ = [
    "DECISIONS",
    "CoverageCurve",
    "Description",
    "DriftReference",
    "DriftReport",
    "Explanation",
    "Explanations",
    "FeatureImportance",
    "FeaturePart",
    "FittedPipeline",
    "KernelTable",
    "Metrics",
    "ModelComparison",
    "Predictions",
    "PriorEstimate",
    "Rate",
    "Thresholds",
    "ambiguity_of",
    "bin_sums",
    "binomial_interval",
    "bounds",
    "cells_of",
    "check_drift",
    "compare_models",
    "coverage_curve",
    "describe",
    "estimate_class_prior",
    "explain",
    "feature_importance",
    "innermost",
    "never_seen",
    "predictions",
    "prior_from_probability",
    "refusals",
    "with_class_prior",
]
