"""A table that nobody published: our best automatic setting beside scikit-learn's classifiers, on
the same folds.

Every method sees the same five folds, standardized by their training rows, and nothing of the test
rows.

======================  ======================================================================================================
kernelpool              `SharedKernelClassifier.auto()` SVM                     RBF kernel, C and
gamma by cross-validation on the training rows, probabilities by Platt's method random forest
300 trees gradient boosting       histogram boosting, learning rate and leaves by cross-validation
QDA                     its regularization by cross-validation Gaussian mixtures
scikit-learn's, one for each class; number of kernels and shape by BIC
======================  ======================================================================================================

Cross-validation chooses on at most 2,000 of the training rows; the model is then fitted to all. The
calibration error is the mean distance of confidence and accuracy over ten bins of equal width,
weighted by their rows (`kernelpool.inspection`). Times are processor seconds of one thread, so that
what else the machine does hardly counts; choosing the parameters counts as fitting.
"""

from collections.abc import Callable
from itertools import product
from time import process_time
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelpool import SharedKernelClassifier
from kernelpool.inspection import Metrics

from .experiment import Record, Unit
from .folds import N_FOLDS, folds

NAME = "comparison"
OURS = "kernelpool"
SETS = ("clouds", "ionosphere", "pima", "phoneme", "satimage", "wdbc", "bupa")
QUICK_SETS = ("ionosphere", "bupa")
INNER = 3
"""Folds within the training rows, by which the rivals' parameters are chosen."""
FEW = 2000
"""Most rows on which that is done."""


class ClassMixtures(ClassifierMixin, BaseEstimator):
    """A `GaussianMixture` for each class, of the size and shape with the least BIC."""

    def __init__(
        self,
        sizes: tuple[int, ...] = (1, 2, 3, 5, 8),
        shapes: tuple[str, ...] = ("full", "diag"),
        seed: int = 0,
    ) -> None:
        self.sizes = sizes
        self.shapes = shapes
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / len(y))
        self.mixtures_ = [self._best(X[y == label]) for label in self.classes_]
        return self

    def _best(self, X: np.ndarray) -> GaussianMixture:
        choices = [
            GaussianMixture(
                size, covariance_type=shape, random_state=self.seed, max_iter=200, tol=1e-3
            ).fit(X)
            for size, shape in product(self.sizes, self.shapes)
        ]
        return min(choices, key=lambda mixture: mixture.bic(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        joint = (
            np.stack([mixture.score_samples(X) for mixture in self.mixtures_], axis=1)
            + self.log_prior_
        )
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        return posterior / posterior.sum(axis=1, keepdims=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class Tuned(ClassifierMixin, BaseEstimator):
    """A rival with the parameters that cross-validation chooses on the training rows, on `FEW` of
    them where there are more.

    Without probabilities of its own it gets them by Platt's method, with the parameters chosen.
    """

    def __init__(
        self, model: Any, grid: dict[str, list[Any]], scoring: str | None = None, seed: int = 0
    ) -> None:
        self.model = model
        self.grid = grid
        self.scoring = scoring
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        some = X
        y_some = y
        if len(y) > FEW:
            some, _, y_some, _ = train_test_split(
                X, y, train_size=FEW, stratify=y, random_state=self.seed
            )
        search = GridSearchCV(
            self.model, self.grid, cv=INNER, scoring=self.scoring, refit=False
        ).fit(some, y_some)
        best = clone(self.model).set_params(**search.best_params_)
        if not hasattr(best, "predict_proba"):
            best = CalibratedClassifierCV(best, cv=INNER, ensemble=False)
        self.fitted_ = best.fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.fitted_.predict_proba(X))


def automatic(seed: int) -> Any:
    """Our best automatic setting; the only place that says which."""
    return SharedKernelClassifier.auto(random_state=seed)


def _svm(seed: int) -> Any:
    return Tuned(SVC(), {"C": [1, 10, 100], "gamma": [0.01, 0.03, 0.1, 0.3, 1]}, seed=seed)


def _boosting(seed: int) -> Any:
    model = HistGradientBoostingClassifier(random_state=seed)
    return Tuned(
        model, {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}, "neg_log_loss", seed
    )


def _qda(seed: int) -> Any:
    return Tuned(
        QuadraticDiscriminantAnalysis(), {"reg_param": [1e-3, 0.01, 0.1, 0.3]}, "neg_log_loss", seed
    )


METHODS: dict[str, Callable[[int], Any]] = {
    OURS: automatic,
    "SVM": _svm,
    "random forest": lambda seed: RandomForestClassifier(300, random_state=seed, n_jobs=1),
    "gradient boosting": _boosting,
    "QDA": _qda,
    "Gaussian mixtures": lambda seed: ClassMixtures(seed=seed),
}

PROTOCOL: dict[str, Any] = {
    name: {"model": repr(make(0)), "revision": 2} for name, make in METHODS.items()
}
"""Of each method its own: when ours changes, the others need not be run again."""


def units(quick: bool = False) -> list[Unit]:
    """A unit is one method on one fold of one data set; `repeat` is the fold."""
    sets, n_folds = (QUICK_SETS, 1) if quick else (SETS, N_FOLDS)
    return [
        Unit(NAME, dataset, None, fold, method)
        for dataset in sets
        for method in METHODS
        for fold in range(n_folds)
    ]


def work(unit: Unit) -> list[Record]:
    """Error, log-loss, calibration error and times of one method on one fold."""
    fold = list(folds(unit.dataset, 0, scale="standard"))[unit.repeat]
    model = METHODS[unit.method](fold.seed)
    with threadpool_limits(1):
        begin = process_time()
        model.fit(fold.X, fold.y)
        fitted = process_time()
        posterior = np.asarray(model.predict_proba(fold.X_test))
        done = process_time()
    posterior = np.clip(posterior, 1e-12, 1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    metrics = Metrics.of(np.searchsorted(model.classes_, fold.y_test), posterior)
    return [
        {
            "method": unit.method,
            "fold": unit.repeat,
            "error": 100 * float(metrics.n_errors / metrics.n_rows),
            "log_loss": metrics.log_loss,
            "calibration": 100 * metrics.calibration_error,
            "fit_seconds": fitted - begin,
            "predict_seconds": done - fitted,
        }
    ]
