"""The model inside pipelines, searches, frozen estimators and classifiers that may refuse, and the
features that it sees.

A kernel lives in the features that the last transformer made. Where those are input columns shifted
and scaled, `scale` and `offset` lead back to the units of the input.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..tables.columns import Columns

SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.scale_, step.mean_),
    RobustScaler: lambda step: (step.scale_, step.center_),
    MaxAbsScaler: lambda step: (step.scale_, None),
    MinMaxScaler: lambda step: (1 / step.scale_, -step.min_ / step.scale_),
}
"""Of transformers of single features, `scale` and `offset`: scale * output + offset is the
input.
"""


@dataclass(frozen=True)
class Unwrapped:
    """A model, what stands around it, and what stands before it."""

    inner: Any
    """The last step inside everything else; one of codes, where it takes categories."""
    wrappers: tuple[Any, ...]
    """Pipelines, searches and others around it, the outermost first."""
    steps: tuple[Any, ...]
    """The transformers before it, in their order."""
    names: tuple[str, ...]
    """Of the features of the model inside."""
    made: bool
    """Whether transformers made them out of something else than single columns."""
    scale: np.ndarray
    """(d,): scale * value + offset is in the units of the input, or of what was made of it."""
    offset: np.ndarray
    columns: Columns | None
    """The columns of a model that takes categories."""

    @property
    def categories(self) -> tuple[Any, ...]:
        """What the codes of each feature stand for; None for numbers."""
        return (None,) * len(self.names) if self.columns is None else self.columns.categories

    def transform(self, X: Any) -> Any:
        """Rows as the model inside sees them."""
        for step in self.steps:
            X = step.transform(X)
        return X if self.columns is None else self.columns.encode(X)


def unwrap(estimator: Any, input_names: Sequence[str] | None = None) -> Unwrapped:
    """The model inside; its input columns are called `input_names`, as in fit, or feature 0,
    feature 1 ...
    """
    inner, wrappers, steps = _layers(estimator)
    if input_names is None:
        input_names = getattr(estimator, "feature_names_in_", None)
    if input_names is None:
        input_names = [f"feature {i}" for i in range(getattr(estimator, "n_features_in_", 0))]
    names, made = tuple(map(str, input_names)), False
    scale: Any = 1.0
    offset: Any = 0.0
    for step in steps:
        if type(step) in SCALERS:
            by, to = SCALERS[type(step)](step)
            offset = offset + scale * (0.0 if to is None else to)
            scale = scale * (1.0 if by is None else by)
        else:
            names, made, scale, offset = _names_after(step, names), True, 1.0, 0.0
    n_features = getattr(inner, "n_features_in_", len(names))
    if len(names) != n_features:  # a transformer that does not name what it makes
        names, made = tuple(f"feature {i}" for i in range(n_features)), True
        scale, offset = 1.0, 0.0
    scale, offset = (np.broadcast_to(value, n_features) for value in (scale, offset))
    columns = inner.columns_ if hasattr(inner, "columns_") and any(inner.columns_.levels) else None
    if columns is not None:
        inner = inner._with_columns(columns.of_codes())
    return Unwrapped(inner, tuple(wrappers), tuple(steps), names, made, scale, offset, columns)


def innermost(estimator: Any) -> Any:
    """The model inside, fitted or not."""
    return _layers(estimator)[0]


def _layers(estimator: Any) -> tuple[Any, list[Any], list[Any]]:
    """The model inside, what stands around it, and the transformers before it."""
    inner, wrappers, steps = estimator, [], []
    while (attribute := inside_of(inner)) is not None:
        wrappers.append(inner)
        if attribute == "steps":
            steps += [step for _, step in inner.steps[:-1] if step not in (None, "passthrough")]
            inner = inner.steps[-1][1]
        else:
            inner = getattr(inner, attribute)
    return inner, wrappers, steps


def inside_of(estimator: Any) -> str | None:
    """The attribute in which a wrapper keeps what it fitted; None for a model."""
    if isinstance(estimator, Pipeline):
        return "steps"
    kept = ("estimator",) if isinstance(estimator, FrozenEstimator) else ()
    for name in (*kept, "best_estimator_", "estimator_"):
        if is_fitted_estimator(getattr(estimator, name, None)):
            return name
    return None


def _names_after(step: Any, names: Sequence[str]) -> tuple[str, ...]:
    """What a fitted transformer calls the features that it makes."""
    for arguments in ([list(names)], []):
        try:
            return tuple(map(str, step.get_feature_names_out(*arguments)))
        except (AttributeError, ValueError, TypeError):
            continue
    return ()


def log_density(estimator: Any, X: Any) -> np.ndarray:
    """log p(x|C_k) by the model inside, (n, K), in the features that it sees; pipelines do not hand
    it on.
    """
    found = unwrap(estimator)
    return np.asarray(to_numpy(found.inner.log_density(found.transform(X))), np.float64)


def is_fitted_estimator(estimator: Any) -> bool:
    """Whether it is an estimator that answers, a pipeline with all its steps; forests keep an
    unfitted one as a pattern.
    """
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
