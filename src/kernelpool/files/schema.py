"""What a class must hold to be written and read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..errors import ModelFileError
from .kinds import Kind, Sizes

PROBES = 16
"""Centers at which a rebuilt model is asked for an answer."""


def _nothing(model: Any, sizes: Sizes) -> None:
    """No more to check."""


def _no_more(model: Any) -> None:
    """No more to do."""


@dataclass(frozen=True)
class Schema:
    """One class of estimators."""

    type: Any
    fitted: dict[str, Kind]
    """Attributes that a fitted one must have. Sizes are bound in this order."""
    optional: dict[str, Kind] = field(default_factory=dict)
    """Attributes that it may have."""
    parameters: dict[str, Kind] = field(default_factory=dict)
    """Parameters of which more is asked than of any: those that may hold models, and those that could do harm."""
    needs: frozenset[str] = frozenset()
    """Parameters without a default; others may be missing in files of older versions."""
    rebuilt: frozenset[str] = frozenset()
    """Attributes that are not written: `rebuild` makes them."""
    check: Callable[[Any, Sizes], None] = _nothing
    """What the parts must be together."""
    rebuild: Callable[[Any], None] = _no_more
    probe: Callable[[Any], None] = _no_more
    """Asks the model for an answer."""


def is_fitted(model: Any) -> bool:
    """Whether it has what a fit leaves behind; of a pipeline, every step."""
    if isinstance(model, Pipeline):
        return all(is_fitted(step) for _, step in model.steps)
    if isinstance(model, FrozenEstimator):
        return is_fitted(model.estimator)
    return isinstance(model, str | None) or any(name.endswith("_") and not name.startswith("_") for name in vars(model))


def answers(rows: Callable[[Any], np.ndarray]) -> Callable[[Any], None]:
    """A probe: at the model's own centers its answers are finite, and its probabilities sum to one."""

    def probe(model: Any) -> None:
        x = np.asarray(rows(model), np.float64)[:PROBES]
        classifies = hasattr(model, "predict_proba")
        answer = np.asarray(model.predict_proba(x) if classifies else model.predict(x))
        if not np.isfinite(answer).all():
            raise ModelFileError("at its own centers its answers are not finite.")
        if classifies and np.abs(answer.sum(axis=1) - 1).max() > 1e-6:
            raise ModelFileError("at its own centers its probabilities do not sum to one.")

    return probe
