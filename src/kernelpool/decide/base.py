"""Classifiers around a classifier: what it predicts for rows that it was not fitted to."""

from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, column_or_1d, get_tags, indexable
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_method_params,
    has_fit_parameter,
)

from ..base.estimator import Estimator, fitted_record
from ..data.folds import Data, cross_fit, folds_of
from ..data.labels import distinct_labels, given_weights, with_two_classes
from ..errors import KernelpoolError, warn
from ..inspection.pipeline import innermost, is_fitted_estimator
from ..inspection.predictions import Predictions, predictions
from ..pool.classifier import PooledClassifier


class HeldOut(NamedTuple):
    """Predictions for rows by classifiers that were not fitted to them."""

    models: list[Any]
    rows: Predictions
    codes: np.ndarray
    """Classes of the rows, -1 for none of those of the classifier, (n,)."""
    weight: np.ndarray
    """(n,)."""
    fold: np.ndarray
    """The classifier that each row was held out from, (n,)."""

    @classmethod
    def by_one(cls, model: Any, rows: Predictions, codes: Any, weight: Any = None) -> Self:
        """By one classifier, which was fitted to other rows; codes and weights are checked."""
        codes = np.asarray(codes)
        n_rows, n_classes = rows.probability.shape
        is_whole = codes.dtype.kind in "iu"
        if codes.shape != (n_rows,) or not is_whole or codes.max(initial=-1) >= n_classes:
            raise KernelpoolError(
                f"codes must hold the position of its class, below {n_classes}, for each of the "
                f"{n_rows} predictions, or -1 where there is none; got {codes.dtype} of shape "
                f"{codes.shape} up to {codes.max(initial=-1)}."
            )
        weight = given_weights(codes, weight).astype(np.float64)
        return cls([model], rows, codes, weight, np.zeros(len(codes), int))


class MetaClassifier(ClassifierMixin, MetaEstimatorMixin, Estimator):
    """The base of classifiers that wrap another one, `estimator`, and hold rows out by `cv`.

    `classes_` and what describes the columns are those of the fitted classifier.
    """

    estimator: Any
    cv: Any
    classes_: np.ndarray

    @property
    def _inner(self) -> Any:
        """The fitted classifier, or the first of several."""
        raise NotImplementedError

    def _attributes(self) -> dict[str, Any]:
        values = super()._attributes()
        for name in ("classes_", "n_features_in_", "feature_names_in_", "columns_"):
            with suppress(AttributeError):
                values[name] = getattr(self._inner, name)
        return values

    def _is_prefit(self) -> bool:
        """Whether the classifier is taken as it is."""
        return self.cv is None and is_fitted_estimator(self.estimator)

    @property
    def _fits_once(self) -> bool:
        """Whether held-out predictions take no further fits: the first classifier of `_held_out` is
        then final.
        """
        return self._is_prefit() or (
            self.cv is None and isinstance(self.estimator, PooledClassifier)
        )

    def _held_out(
        self, X: Any, y: Any, weight: np.ndarray, routed: Bunch, **wanted: bool
    ) -> HeldOut:
        """Held-out predictions for rows, with those `wanted` of a `score` and a `log_density`."""
        wanted["labels"] = False
        if self._is_prefit():
            models = [self.estimator]
            rows = predictions(self.estimator, X, **wanted)
            fold = np.zeros(len(y), int)
        elif self._fits_once:
            models = [clone(self.estimator).fit(X, y, **routed.fit)]
            rows = fitted_record(models[0]).held_out
            fold = np.where(np.isfinite(rows.probability).all(axis=1), 0, -1)
            rows = rows.at(fold == 0)
        else:
            models, rows, fold = self._cross_fitted(X, y, weight, routed, wanted)
        held = fold >= 0
        if not weight[held].sum() > 0:
            raise KernelpoolError(
                "sample_weight is zero for every held-out row; at least one must be positive."
            )
        known = held & np.isin(y, rows.classes)
        codes = np.full(len(y), -1)
        codes[known] = np.searchsorted(rows.classes, y[known])
        return HeldOut(models, rows, codes[held], weight[held], fold[held])

    def _cross_fitted(
        self, X: Any, y: np.ndarray, weight: np.ndarray, routed: Bunch, wanted: dict[str, bool]
    ) -> tuple[list[Any], Predictions, np.ndarray]:
        def fit(train: Data, held_out: Data) -> tuple[Any, np.ndarray]:
            labels = self._distinct_labels(held_out[1])
            unseen = np.setdiff1d(labels, self._distinct_labels(train[1]))
            if len(unseen):
                raise KernelpoolError(
                    f"Every class needs rows in training; those of class {unseen.tolist()[0]!r} "
                    "are all held out at once. Pass another cv, or drop the class."
                )
            fit_params = _check_method_params(X, routed.fit, indices=train[2])
            model = clone(self.estimator).fit(*train[:2], **fit_params)
            rows = predictions(model, held_out[0], **wanted)
            return (model, rows), np.empty((len(rows), 0))

        if min(np.shape(X)) == 0:  # the message is that of the classifier
            clone(self.estimator).fit(X, y)
        fold = folds_of(self.cv, X, y, weight, split_params=routed.split)
        fitted, _ = cross_fit(fit, (X, y, np.arange(len(y))), fold, n_jobs=None)
        models, batches = zip(*fitted, strict=True)
        place = np.argsort(np.argsort(fold[fold >= 0], kind="stable"))  # from the order of folds
        return list(models), Predictions.joined(batches).at(place), fold

    def _distinct_labels(self, y: np.ndarray) -> np.ndarray:
        """The labels of rows that have one, for the classifier inside."""
        unlabeled = innermost(self.estimator).get_params(deep=False).get("unlabeled")
        return distinct_labels(y, unlabeled)

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, labels and weights that can be held out."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, column_or_1d(y, warn=True))
        labels = self._distinct_labels(y)
        if not self._is_prefit():
            with_two_classes(labels)
        return X, y, given_weights(y, sample_weight).astype(np.float64)

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> Bunch:
        """Which of the parameters of `fit` go to the classifier, and which to the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            split = routed.get("splitter", Bunch(split={})).split
            return Bunch(fit=routed.estimator.fit, split=split)
        given = dict(fit_params)
        if sample_weight is not None:
            if has_fit_parameter(self.estimator, "sample_weight"):
                given["sample_weight"] = sample_weight
            elif not self._is_prefit() and not isinstance(self.estimator, FrozenEstimator):
                warn(
                    f"{type(self.estimator).__name__}.fit takes no sample_weight: the weights "
                    "count for held-out rows alone.",
                    UserWarning,
                )
        return Bunch(fit=given, split={})

    def get_metadata_routing(self) -> MetadataRouter:
        """Where `sample_weight` and other parameters go: see scikit-learn's guide to metadata
        routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        fits = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=fits)
        if hasattr(self.cv, "split"):
            splits = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=splits)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self.estimator)
        tags.input_tags = wrapped.input_tags
        tags.classifier_tags = wrapped.classifier_tags
        return tags
