"""The classifier inside a `RejectClassifier`: how it is fitted, and what it says of rows that it was not fitted to."""

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import Bunch, _safe_indexing, assert_all_finite, column_or_1d, indexable
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, _check_sample_weight, check_is_fitted, has_fit_parameter

from ..arrays import to_numpy
from ..errors import KernelpoolError, warn
from ..inspection.metrics import ambiguity_of


class HeldOut(NamedTuple):
    """What a classifier says of rows that it was not fitted to."""

    ambiguity: np.ndarray
    score: np.ndarray
    """Log-density, zero where it is not asked for."""
    wrong: np.ndarray
    label: np.ndarray
    weight: np.ndarray

    @classmethod
    def judged(cls, model: Any, X: Any, y: np.ndarray, weight: np.ndarray, with_score: bool) -> "HeldOut":
        """One record a row."""
        ambiguity = ambiguity_of(to_numpy(model.predict_proba(X)))
        score = np.asarray(to_numpy(model.score_samples(X)), np.float64) if with_score else np.zeros(len(ambiguity))
        return cls(ambiguity, score, to_numpy(model.predict(X)) != y, y, weight)


def routed(reject: Any, sample_weight: Any, fit_params: dict[str, Any]) -> Any:
    """Which of the parameters of `fit` go where."""
    if _routing_enabled():
        kwargs = process_routing(reject, "fit", sample_weight=sample_weight, **fit_params)
        return Bunch(estimator=kwargs.estimator, splitter=kwargs.get("splitter", Bunch(split={})))
    given = dict(fit_params)
    if sample_weight is not None:
        if has_fit_parameter(reject.estimator, "sample_weight"):
            given["sample_weight"] = sample_weight
        elif reject.cv != "prefit" and not isinstance(reject.estimator, FrozenEstimator):
            name = type(reject.estimator).__name__
            warn(f"{name}.fit takes no sample_weight: the weights count for the thresholds alone.", UserWarning)
    return Bunch(estimator=Bunch(fit=given), splitter=Bunch(split={}))


def fitted(reject: Any, X: Any, y: Any, kwargs: Any) -> Any:
    """The classifier, fitted to all rows unless it came fitted."""
    if reject.cv != "prefit":
        return clone(reject.estimator).fit(X, y, **kwargs.estimator.fit)
    try:
        check_is_fitted(reject.estimator)
    except NotFittedError as error:
        raise NotFittedError("cv='prefit' needs an estimator that is fitted; fit it first, or leave cv=None.") from error
    return reject.estimator


def fitted_and_judged(reject: Any, X: Any, y: Any, sample_weight: Any, kwargs: Any) -> tuple[Any, HeldOut]:
    """The classifier, and what it, or its like, says of rows that were left out."""
    if y is None:
        raise ValueError("RejectClassifier requires y to be passed, but the target y is None.")
    X, y = indexable(X, column_or_1d(y, warn=True))
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    weight = np.ones(len(y)) if sample_weight is None else _check_sample_weight(sample_weight, y, dtype=np.float64)
    with_score = reject.novelty is not None
    if reject.cv == "prefit":
        model = fitted(reject, X, y, kwargs)
        return model, HeldOut.judged(model, X, y, weight, with_score)
    parts = []
    for train, test in _splits(reject, X, y, kwargs.splitter.split):
        mine = _check_method_params(X, kwargs.estimator.fit, indices=train)
        model = clone(reject.estimator).fit(_safe_indexing(X, train), y[train], **mine)
        parts.append(HeldOut.judged(model, _safe_indexing(X, test), y[test], weight[test], with_score))
    judged = HeldOut(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    return fitted(reject, X, y, kwargs) if reject.refit else model, judged


def _splits(reject: Any, X: Any, y: np.ndarray, kwargs: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(reject.cv, Real) and not isinstance(reject.cv, Integral):
        cv = StratifiedShuffleSplit(1, test_size=reject.cv, random_state=reject.random_state)
    else:
        cv = check_cv(reject.cv, y, classifier=True)
    splits = list(cv.split(X, y, **kwargs))
    if not reject.refit and len(splits) != 1:
        raise KernelpoolError(
            f"refit=False keeps the one classifier that was judged, but cv makes {len(splits)} of them. "
            f"Use a share of the rows such as cv=0.25, or refit=True."
        )
    return splits
