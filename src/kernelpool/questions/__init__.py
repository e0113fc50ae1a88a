"""What a fitted classifier can be asked besides the class of a row.

Why this row got its class (`explain`), which features matter (`feature_importance`), how frequent the classes are among rows
without labels (`estimate_class_prior`), whether rows are still like those of the training (`check_drift`), and which of two
is better (`compare_models`). Each takes any
fitted classifier, pipelines and classifiers that may refuse included; mixtures answer exactly: they can leave features out.
"""

from .comparison import ModelComparison, compare_models
from .drift import DriftReference, DriftReport, check_drift
from .explanation import explain
from .importance import FeatureImportance, feature_importance
from .priors import PriorEstimate, estimate_class_prior, with_class_prior

__all__ = [
    "DriftReference",
    "DriftReport",
    "FeatureImportance",
    "ModelComparison",
    "PriorEstimate",
    "check_drift",
    "compare_models",
    "estimate_class_prior",
    "explain",
    "feature_importance",
    "with_class_prior",
]
