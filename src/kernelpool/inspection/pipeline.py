"""From what a user fitted to the model inside: pipelines, searches, frozen estimators and classifiers that may refuse.

A kernel lives in the features that the last transformer made. Where those are input columns shifted and scaled, it is told in
the units of the input; elsewhere in the features themselves. Only public attributes of scikit-learn's classes are read.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..tables.columns import Columns
from ..tables.encoder import TableEncoder

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
    source: str | None = None
    """The column of words of which it is an indicator."""
    words: tuple[str, ...] | None = None
    """What its codes stand for, where it is a column of words; the code after the last is any other word."""


@dataclass(frozen=True)
class Unwrapped:
    """A model, what stands around it, and what stands before it."""

    outer: Any
    inner: Any
    """The last step inside everything else."""
    wrappers: tuple[Any, ...]
    """Pipelines, searches and others around it, the outermost first."""
    transforms: tuple[Pipeline, ...]
    """The steps before it, one pipeline for each pipeline it is in."""
    input_names: tuple[str, ...]

    def transform(self, X: Any) -> Any:
        """Rows as the model inside sees them."""
        for transform in self.transforms:
            X = transform.transform(X)
        return X

    @property
    def steps(self) -> list[Any]:
        """The transformers before the model, in their order."""
        return [step for transform in self.transforms for _, step in transform.steps]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Of the model inside."""
        features = [Feature(name) for name in self.input_names]
        for transform in self.transforms:
            features = features_after(transform, features)
        n_features = getattr(self.inner, "n_features_in_", len(features))
        if len(features) != n_features:  # a transformer that does not say what it makes
            features = [Feature(f"feature {i}", made=True) for i in range(n_features)]
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
        count = getattr(estimator, "n_features_in_", 0)
        input_names = (
            [f"feature {i}" for i in range(count)]
            if names is None
            else [str(name) for name in names]
        )
    inner, wrappers, transforms = estimator, [], []
    while True:
        if isinstance(inner, Pipeline):
            if len(inner.steps) > 1:
                transforms.append(inner[:-1])
            wrappers.append(inner)
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
    if columns is not None and any(
        columns.levels
    ):  # the model inside that takes words is, to those who ask, a model of their codes
        transforms.append(Pipeline([("words", Coding(columns))]))
        inner = of_codes(inner)
    return Unwrapped(estimator, inner, tuple(wrappers), tuple(transforms), tuple(input_names))


class Coding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A table of words and numbers as the numbers that a model makes of it."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> "Coding":
        """Nothing is learned."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Words as codes, (n, d)."""
        return self.columns.encode(X)

    def inverse_transform(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Columns as they were, by name."""
        x, names = np.asarray(x, np.float64), self.columns.names
        table = replace(self.columns, frame=None).decode(x)
        columns = zip(table.T, self.columns.categories, strict=True)
        made = [
            column if words is not None else column.astype(np.float64) for column, words in columns
        ]
        return dict(zip(names or map(str, range(len(made))), made, strict=True))

    def unknown_words(self, X: Any) -> dict[str, int]:
        """How many cells of each column of words hold one that the model does not tell apart."""
        return self.columns.unknown(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def of_codes(estimator: Any) -> Any:
    """The same fitted classifier for rows that are coded already, and whose columns have no names."""
    if hasattr(estimator, "columns_"):
        return estimator._with_columns(estimator.columns_.of_codes())
    other = copy(estimator)
    other.__dict__.pop("feature_names_in_", None)
    if isinstance(other.__dict__.get("estimators_"), list):  # which may have seen names too
        other.estimators_ = [of_codes(part) for part in other.estimators_]
    return other


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


# -- what transformers make of features ---------------------------------------------------------------------------


@singledispatch
def features_after(transformer: Any, features: list[Feature]) -> list[Feature]:
    """The features that a fitted transformer makes of `features`."""
    if transformer is None or transformer == "passthrough":
        return features
    if transformer == "drop":
        return []
    for arguments in ([[feature.name for feature in features]], []):
        try:
            return [
                Feature(str(name), made=True)
                for name in transformer.get_feature_names_out(*arguments)
            ]
        except (AttributeError, ValueError, TypeError):
            continue
    return []


def _moved(features: list[Feature], scale: Any, offset: Any) -> list[Feature]:
    """Features z of which scale * z + offset were the features before."""
    n = len(features)
    scale = np.broadcast_to(1.0 if scale is None else scale, n)
    offset = np.broadcast_to(0.0 if offset is None else offset, n)
    return [
        replace(f, scale=f.scale * float(a), offset=f.offset + f.scale * float(b))
        for f, a, b in zip(features, scale, offset, strict=True)
    ]


@features_after.register
def _(transformer: StandardScaler, features: list[Feature]) -> list[Feature]:
    return _moved(
        features,
        transformer.scale_ if transformer.with_std else None,
        transformer.mean_ if transformer.with_mean else None,
    )


@features_after.register
def _(transformer: Coding, features: list[Feature]) -> list[Feature]:
    told = zip(features, transformer.columns.categories, strict=True)
    return [
        f if words is None else replace(f, words=tuple(str(word) for word in words))
        for f, words in told
    ]


@features_after.register
def _(transformer: RobustScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, transformer.scale_, transformer.center_)


@features_after.register
def _(transformer: MaxAbsScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, transformer.scale_, None)


@features_after.register
def _(transformer: MinMaxScaler, features: list[Feature]) -> list[Feature]:
    return _moved(features, 1 / transformer.scale_, -transformer.min_ / transformer.scale_)


@features_after.register
def _(transformer: SimpleImputer, features: list[Feature]) -> list[Feature]:
    made = features_after.dispatch(object)(transformer, features)
    same = {feature.name: feature for feature in features}
    return [same.get(feature.name, feature) for feature in made]


@features_after.register
def _(transformer: FunctionTransformer, features: list[Feature]) -> list[Feature]:
    if transformer.func is None:  # what a ColumnTransformer makes of "passthrough"
        return features
    made: list[Feature] = features_after.dispatch(object)(transformer, features)
    return made


@features_after.register
def _(transformer: TableEncoder, features: list[Feature]) -> list[Feature]:
    numbers = _moved(
        [f for f in features if f.name not in transformer.words],
        transformer.scale_,
        transformer.mean_,
    )
    sources = [
        name
        for name, words in zip(transformer.words, transformer.categories_, strict=True)
        for _ in words
    ]
    made = zip(transformer.get_feature_names_out()[len(numbers) :], sources, strict=True)
    return [*numbers, *(Feature(str(name), made=True, source=source) for name, source in made)]


@features_after.register
def _(transformer: Pipeline, features: list[Feature]) -> list[Feature]:
    for _, step in transformer.steps:
        features = features_after(step, features)
    return features


@features_after.register
def _(transformer: ColumnTransformer, features: list[Feature]) -> list[Feature]:
    spans = transformer.output_indices_
    made = [
        Feature(f"feature {i}", made=True)
        for i in range(max((span.stop for span in spans.values()), default=0))
    ]
    names = [str(name) for name in getattr(transformer, "feature_names_in_", ())]
    for name, step, columns in transformer.transformers_:
        part = [features[i] for i in column_indices(columns, len(features), names)]
        if (
            name in spans
            and len(out := features_after(step, part)) == spans[name].stop - spans[name].start
        ):
            made[spans[name]] = out
    return made


def column_indices(columns: Any, n_columns: int, names: Sequence[str]) -> list[int]:
    """Places of the columns that a `ColumnTransformer` names: by place, name, slice of either, or mask, one or several."""
    if isinstance(columns, slice):
        ends = [columns.start, columns.stop]
        if any(
            isinstance(end, str) for end in ends
        ):  # by name, the last one included, as in pandas
            start, stop = (None if end is None else list(names).index(end) for end in ends)
            columns = slice(start, None if stop is None else stop + 1, columns.step)
        return list(range(n_columns))[columns]
    wanted = [columns] if np.ndim(columns) == 0 else list(columns)
    if wanted and all(isinstance(column, bool | np.bool_) for column in wanted):
        return np.flatnonzero(wanted).tolist()
    return [
        list(names).index(column) if isinstance(column, str) else int(column) % n_columns
        for column in wanted
    ]
