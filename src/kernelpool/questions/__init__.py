"""What a fitted classifier can be asked besides the class of a row.

Why this row got its class (`explain`), which features matter (`feature_importance`), how frequent the classes are among rows
without labels (`estimate_class_prior`), and whether rows are still like those of the training (`check_drift`). Each takes any
fitted classifier, pipelines and classifiers that may refuse included; mixtures answer exactly: they can leave features out.
"""

from .drift import DriftReference, DriftReport, check_drift
from .explanation import explain
from .importance import FeatureImportance, feature_importance
from .priors import PriorEstimate, estimate_class_prior, with_class_prior

__all__ = [
    "DriftReference",
    "DriftReport",
    "FeatureImportance",
    "PriorEstimate",
    "check_drift",
    "estimate_class_prior",
    "explain",
    "feature_importance",
    "with_class_prior",
]
