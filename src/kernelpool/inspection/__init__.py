"""What can be said of a fitted model and of its predictions: its pool of kernels, what stands around it, metrics, intervals."""

from ..training.folds import hold_out, row_keys, stratified_folds

__all__ = ["hold_out", "row_keys", "stratified_folds"]
