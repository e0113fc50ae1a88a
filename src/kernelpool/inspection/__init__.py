"""What a fitted classifier and its predictions can be asked besides the class of a row.

Why a row got its class (`explain`), which features matter (`feature_importance`), how frequent the classes are among rows
without labels (`estimate_class_prior`), whether rows are still like those of the training (`check_drift`), which of two
classifiers is better (`compare_models`), what a model is made of (`describe`), and how good predictions are (`Metrics`).
"""

from ..training.folds import hold_out, row_keys, stratified_folds
from .compare import ModelComparison, compare_models
from .describe import Description, Pool, describe
from .drift import DriftReference, DriftReport, check_drift
from .explanation import Explanation, explain
from .importance import FeatureImportance, feature_importance
from .metrics import Metrics, Rate
from .priors import PriorEstimate, estimate_class_prior, with_class_prior

__all__ = [
    "Description",
    "DriftReference",
    "DriftReport",
    "Explanation",
    "FeatureImportance",
    "Metrics",
    "ModelComparison",
    "Pool",
    "PriorEstimate",
    "Rate",
    "check_drift",
    "compare_models",
    "describe",
    "estimate_class_prior",
    "explain",
    "feature_importance",
    "hold_out",
    "row_keys",
    "stratified_folds",
    "with_class_prior",
]
