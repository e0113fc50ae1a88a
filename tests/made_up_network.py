"""A network that nobody has: one Gaussian of common width a class. Its whole share in the library is this file."""

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelpool.inspection.pool import Description, Pool
from kernelpool.registry import CLASSES, FEATURE_NAMES, EstimatorRecord, Field


class NearestMeans(ClassifierMixin, BaseEstimator):
    """P(C_k|x) from the distances to the means of the classes."""

    _parameter_constraints: ClassVar = {"random_state": ["random_state"]}

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.means_ = np.array([X[codes == k].mean(axis=0) for k in range(len(self.classes_))])
        self.variance_ = float(np.square(X - self.means_[codes]).mean())
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        score = -0.5 * np.square(X[:, None, :] - self.means_).sum(axis=2) / self.variance_
        p = np.exp(score - score.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def to_onnx(g, x, model):
    away = g.subtract(g.unsqueeze(x, 1), model.means_)
    score = g.multiply(g.total(g.multiply(away, away), 2), -0.5 / model.variance_)
    return {"scores": score, "probabilities": g.softmax(score, 1)}


def describe(model):
    k = len(model.classes_)
    spread = np.full(model.means_.shape, model.variance_)
    return Description(
        f"The means of {k} classes.",
        Pool(np.full(k, 1 / k), np.eye(k), model.means_, spread, word="mean"),
    )


RECORD = EstimatorRecord(
    NearestMeans,
    command="nearest-means",
    depends_on_units=True,
    fitted={
        **CLASSES,
        "means_": Field("floats", ("K", "d")),
        "variance_": Field("float", low=0.0, open_low=True),
    },
    optional=FEATURE_NAMES,
    probe=lambda model: model.means_,
    describe=describe,
    onnx=to_onnx,
)
