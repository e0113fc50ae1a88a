"""From what a user fitted to the model inside: pipelines, searches, frozen estimators and classifiers that may refuse.

A kernel lives in the features that the last transformer made. Where those are input columns shifted and scaled, it is told in
the units of the input; elsewhere in the features themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy

INSIDE = ("best_estimator_", "estimator_")
"""Where wrappers keep the estimator that they fitted: searches, thresholds, RejectClassifier."""

SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.scale_, step.mean_),
    RobustScaler: lambda step: (step.scale_, step.center_),
    MaxAbsScaler: lambda step: (step.scale_, None),
    MinMaxScaler: lambda step: (1 / step.scale_, -step.min_ / step.scale_),
}
"""Of transformers of single features, `scale` and `offset`: scale * output + offset is the input."""


@dataclass(frozen=True)
class Feature:
    """A feature as the model sees it: scale * value + offset is in the units of the input."""

    name: str
    scale: float = 1.0
    offset: float = 0.0
    made: bool = False
    """Whether a transformer made it out of something else."""
    words: tuple[str, ...] | None = None
    """Its categories, where it is categorical; rows then hold their codes."""


@dataclass(frozen=True)
class Unwrapped:
    """A model, what stands around it, and what stands before it."""

    outer: Any
    inner: Any
    """The last step inside everything else; one of codes, where it takes categories."""
    wrappers: tuple[Any, ...]
    """Pipelines, searches and others around it, the outermost first."""
    steps: tuple[Any, ...]
    """The transformers before it, in their order."""
    input_names: tuple[str, ...]
    columns: Any = None
    """The columns of a model that takes categories."""

    def transform(self, X: Any) -> Any:
        """Rows as the model inside sees them."""
        for step in self.steps:
            X = step.transform(X)
        return X if self.columns is None else self.columns.encode(X)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Of the model inside."""
        features = [Feature(name) for name in self.input_names]
        for step in self.steps:
            features = _features_after(step, features)
        n_features = getattr(self.inner, "n_features_in_", len(features))
        if len(features) != n_features:  # a transformer that does not name what it makes
            features = [Feature(f"feature {i}", made=True) for i in range(n_features)]
        if self.columns is not None:
            told = zip(features, self.columns.categories, strict=True)
            features = [f if v is None else replace(f, words=tuple(map(str, v))) for f, v in told]
        return tuple(features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the features of the model inside."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def scale(self) -> np.ndarray:
        """(d,)."""
        return np.array([feature.scale for feature in self.features])

    @cached_property
    def offset(self) -> np.ndarray:
        """(d,)."""
        return np.array([feature.offset for feature in self.features])


def unwrap(estimator: Any, input_names: Sequence[str] | None = None) -> Unwrapped:
    """The model inside; its input columns are called `input_names`, as in fit, or feature 0, feature 1 ..."""
    if input_names is None:
        names = getattr(estimator, "feature_names_in_", None)
        count = range(getattr(estimator, "n_features_in_", 0) if names is None else 0)
        input_names = [f"feature {i}" for i in count] if names is None else [str(n) for n in names]
    inner, wrappers, steps = estimator, [], []
    while True:
        if isinstance(inner, Pipeline):
            wrappers.append(inner)
            before = [step for _, step in inner.steps[:-1]]
            steps += [step for step in before if step not in (None, "passthrough")]
            inner = inner.steps[-1][1]
            continue
        names_inside = ("estimator",) if isinstance(inner, FrozenEstimator) else INSIDE
        attribute = next(
            (name for name in names_inside if is_fitted_estimator(getattr(inner, name, None))), None
        )
        if attribute is None:
            break
        wrappers.append(inner)
        inner = getattr(inner, attribute)
    columns = inner.columns_ if hasattr(inner, "columns_") else None
    if columns is not None and any(columns.levels):
        inner = inner._with_columns(columns.of_codes())
    else:
        columns = None
    parts = tuple(wrappers), tuple(steps), tuple(input_names)
    return Unwrapped(estimator, inner, *parts, columns)


def _features_after(step: Any, features: list[Feature]) -> list[Feature]:
    """The features that a fitted transformer makes of `features`."""
    if type(step) in SCALERS:
        scale, offset = SCALERS[type(step)](step)
        scales = np.broadcast_to(1.0 if scale is None else scale, len(features)).tolist()
        offsets = np.broadcast_to(0.0 if offset is None else offset, len(features)).tolist()
        return [
            replace(f, scale=f.scale * a, offset=f.offset + f.scale * b)
            for f, a, b in zip(features, scales, offsets, strict=True)
        ]
    for arguments in ([[feature.name for feature in features]], []):
        try:
            names = step.get_feature_names_out(*arguments)
        except (AttributeError, ValueError, TypeError):
            continue
        return [Feature(str(name), made=True) for name in names]
    return []


def knows_log_density(estimator: Any) -> bool:
    """Whether the model inside has `log_density`; pipelines do not hand it on."""
    return hasattr(unwrap(estimator).inner, "log_density")


def log_density(estimator: Any, X: Any) -> np.ndarray:
    """log p(x|C_k) by the model inside, (n, K), in the features that it sees."""
    found = unwrap(estimator)
    return np.asarray(to_numpy(found.inner.log_density(found.transform(X))), np.float64)


def is_fitted_estimator(estimator: Any) -> bool:
    """Whether it is an estimator that answers, a pipeline with all its steps; forests keep an unfitted one as a pattern."""
    if isinstance(estimator, Pipeline):  # scikit-learn asks its last step alone
        return all(
            step in (None, "passthrough") or is_fitted_estimator(step)
            for _, step in estimator.steps
        )
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True
