"""From what a user fitted to the model inside: pipelines, searches and classifiers that may refuse.

A kernel lives in the features that the last transformer made. Where those are input columns shifted and scaled, it is told in
the units of the input; elsewhere in the features themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

INSIDE = ("best_estimator_", "estimator_")
"""Where wrappers keep the estimator that they fitted: searches, thresholds, RejectClassifier."""


@dataclass(frozen=True)
class Feature:
    """A feature as the model sees it: scale * value + offset is in the units of the input."""

    name: str
    scale: float = 1.0
    offset: float = 0.0
    made: bool = False
    """Whether a transformer made it out of something else."""


@dataclass(frozen=True)
class Unwrapped:
    """A model, what stands around it, and what stands before it."""

    outer: Any
    inner: Any
    wrappers: tuple[Any, ...]
    transforms: tuple[Any, ...]
    features: tuple[Feature, ...]

    def seen(self, X: Any) -> Any:
        """Rows as the model inside sees them."""
        for transform in self.transforms:
            X = transform.transform(X)
        return X

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


def unwrapped(estimator: Any, names: Sequence[str]) -> Unwrapped:
    """The model inside, for input columns called `names`."""
    inner, wrappers, transforms = estimator, [], []
    while True:
        if isinstance(inner, Pipeline):
            if len(inner.steps) > 1:
                transforms.append(inner[:-1])
            wrappers.append(inner)
            inner = inner.steps[-1][1]
            continue
        attribute = next((name for name in INSIDE if hasattr(inner, name)), None)
        if attribute is None and type(inner).__name__ == "FrozenEstimator":
            attribute = "estimator"
        if attribute is None:
            break
        wrappers.append(inner)
        inner = getattr(inner, attribute)
    features = [Feature(name) for name in names]
    for transform in transforms:
        features = after(transform, features)
    n_features = getattr(inner, "n_features_in_", len(features))
    if len(features) != n_features:  # a transformer that does not say what it makes
        features = [Feature(f"feature {i}", made=True) for i in range(n_features)]
    return Unwrapped(estimator, inner, tuple(wrappers), tuple(transforms), tuple(features))


@singledispatch
def after(transformer: Any, features: list[Feature]) -> list[Feature]:
    """The features that a fitted transformer makes of `features`."""
    if transformer is None or transformer == "passthrough":
        return features
    if transformer == "drop":
        return []
    try:
        names = transformer.get_feature_names_out([feature.name for feature in features])
    except (AttributeError, ValueError, TypeError):
        try:
            names = transformer.get_feature_names_out()
        except (AttributeError, ValueError, TypeError):
            return []
    return [Feature(str(name), made=True) for name in names]


def _moved(features: list[Feature], scale: Any, offset: Any) -> list[Feature]:
    """Features z of which scale * z + offset were the features before."""
    n = len(features)
    scale = np.broadcast_to(1.0 if scale is None else scale, n)
    offset = np.broadcast_to(0.0 if offset is None else offset, n)
    return [
        replace(f, scale=f.scale * float(a), offset=f.offset + f.scale * float(b))
        for f, a, b in zip(features, scale, offset, strict=True)
    ]


@after.register
def _(transformer: StandardScaler, features: list[Feature]) -> list[Feature]:
    return _moved(
        features,
        transformer.scale_ if transformer.with_std else None,
        transformer.mean_ if transformer.with_mean else None,
    )


@after.register
def _(transformer: RobustScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, transformer.scale_, transformer.center_)


@after.register
def _(transformer: MaxAbsScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, transformer.scale_, None)


@after.register
def _(transformer: MinMaxScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, 1 / transformer.scale_, -transformer.min_ / transformer.scale_)


@after.register
def _(transformer: SimpleImputer, features: list[Feature]) -> list[Feature]:
    made = after.dispatch(object)(transformer, features)
    same = {feature.name: feature for feature in features}
    return [same.get(feature.name, feature) for feature in made]


@after.register
def _(transformer: FunctionTransformer, features: list[Feature]) -> list[Feature]:
    if transformer.func is None:  # what a ColumnTransformer makes of "passthrough"
        return features
    made: list[Feature] = after.dispatch(object)(transformer, features)
    return made


@after.register
def _(transformer: Pipeline, features: list[Feature]) -> list[Feature]:
    for _, step in transformer.steps:
        features = after(step, features)
    return features


@after.register
def _(transformer: ColumnTransformer, features: list[Feature]) -> list[Feature]:
    spans = transformer.output_indices_
    made = [Feature(f"feature {i}", made=True) for i in range(max((span.stop for span in spans.values()), default=0))]
    inputs = transformer._transformer_to_input_indices
    for name, step, _ in transformer.transformers_:
        part = [features[i] for i in inputs.get(name, [])]
        if name in spans and len(out := after(step, part)) == spans[name].stop - spans[name].start:
            made[spans[name]] = out
    return made
