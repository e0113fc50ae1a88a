"""Rows that do not lie in memory, for every method of every estimator.

`Estimator` wraps the methods of its subclasses once, where they are defined; none of them knows of
it.

==================================  =============================  ================================
rows                                answers (`ANSWERS`)            `fit`
==================================  =============================  ================================
in memory                           the method                     the method
an array or a data frame of Dask    of Dask, made block by block   of rows that are drawn, unless
a path, a data set of pyarrow,      of NumPy, made batch by batch  the estimator takes any rows as
batches of rows                                                    they come (`takes_any_rows`)
==================================  =============================  ================================
"""

import warnings
from collections.abc import Callable
from functools import partial, wraps
from inspect import getattr_static, signature
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils._available_if import _AvailableIfDescriptor
from sklearn.utils.validation import check_is_fitted

from ..arrays import is_lazy, is_lazy_frame
from ..data.labels import known_labels
from ..data.source import columns_named, in_memory, is_in_memory, labeled_batches
from ..errors import KernelpoolError
from ..rows.dask import each_part
from ..text import is_missing

ANSWERS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "log_density",
    "score_samples",
    "kernel_posterior",
    "neuron_posterior",
    "activations",
    "in_support",
    "decide",
    "accepted",
    "p_values",
    "predict_set",
)
"""Methods that answer each row by itself."""

FITS = ("fit", "fit_resample")
"""Methods that learn from all rows."""


def wrap_methods(cls: type) -> None:
    """Wrap the methods of a class that take rows, those that it inherits from other libraries
    included.
    """
    wrappers = {
        **dict.fromkeys(ANSWERS, _in_parts),
        **dict.fromkeys(FITS, _drawn),
        "score": _scored,
    }
    for name, wrapper in wrappers.items():
        method = getattr_static(cls, name, None)
        optional = isinstance(method, _AvailableIfDescriptor)  # only some of its estimators have it
        function = method.fn if optional else method
        if not isinstance(function, FunctionType) or "takes_parts" in vars(function):
            continue
        wrapped: Any = wrapper(function)
        wrapped.takes_parts = True
        if optional:
            method.fn = wrapped
        else:
            setattr(cls, name, wrapped)


# -- answers ---------------------------------------------------------------------------------------


def _in_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if is_in_memory(X):
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        ask = partial(_ask, self, method.__name__, args, kwargs)
        names = _names(self)
        if is_lazy_frame(X) or is_lazy(X):
            if is_lazy_frame(X) and names is not None:
                X = columns_named(X, names)
            return each_part(X, ask, _of_one_row(self, ask, X))
        columns = self._attributes().get("columns_")
        batches = labeled_batches(X, names=names, columns=columns)
        return _concatenated([ask(x) for x, _, _ in batches])

    return answer


def _ask(estimator: Any, name: str, args: Any, kwargs: Any, rows: Any) -> Any:
    return getattr(estimator, name)(rows, *args, **kwargs)


def _names(estimator: Any) -> list[str] | None:
    """Of the columns that a fitted estimator takes."""
    names = estimator._attributes().get("feature_names_in_")
    return None if names is None else list(names)


def _of_one_row(estimator: Any, ask: Callable[[Any], Any], X: Any) -> Any:
    """The answer for a row that stands for those of a Dask collection: its type and shape."""
    columns = estimator._attributes().get("columns_")
    if columns is not None and (columns.frame is not None or any(columns.levels)):
        row = columns.decode(np.zeros((1, len(columns))))
    elif is_lazy_frame(X):
        row = X._meta_nonempty.iloc[:1]
    else:
        row = np.zeros((1, *X.shape[1:]), X.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(row)


def _concatenated(answers: list[Any]) -> Any:
    if not answers:
        raise ValueError("X has 0 rows, while a minimum of 1 is required: no batch has any.")
    if isinstance(answers[0], tuple):
        return tuple(map(np.concatenate, zip(*answers, strict=True)))
    return np.concatenate(answers)


# -- scores ----------------------------------------------------------------------------------------


def _scored(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def score(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        if is_in_memory(X, y):
            return method(self, X, y, sample_weight)
        check_is_fitted(self)
        y, predicted, weight = _predicted(self, X, y, sample_weight)
        known = np.array([not is_missing(label) for label in y.tolist()], bool)
        if not known.any():
            raise KernelpoolError("X has no rows with a label: there is nothing to score.")
        y = y[known].astype(float) if is_regressor(self) else known_labels(y[known], self.classes_)
        return self.score_of(y, predicted[known], None if weight is None else weight[known])

    return score


def _predicted(estimator: Any, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Labels, predictions and weights of all rows."""
    if is_lazy(X) or is_lazy_frame(X):
        columns = [columns_named(X, [v])[v] if isinstance(v, str) else v for v in (y, weight)]
        columns = [v.compute() if is_lazy(v) or is_lazy_frame(v) else v for v in columns]
        y, weight = (None if v is None else np.asarray(v) for v in columns)
        return y, estimator.predict(X).compute(), weight
    names = _names(estimator)
    columns = estimator._attributes().get("columns_")
    batches = labeled_batches(X, y, weight, names=names, columns=columns)
    parts = [(labels, estimator.predict(x), w) for x, labels, w in batches if labels is not None]
    if not parts:
        raise KernelpoolError("X has no rows with a label: there is nothing to score.")
    y, predicted, weights = zip(*parts, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return np.concatenate(y), np.concatenate(predicted), weight


# -- fits ------------------------------------------------------------------------------------------


def _drawn(method: Callable[..., Any]) -> Callable[..., Any]:
    parameters = signature(method)

    @wraps(method)
    def fit(self: Any, X: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if self.takes_any_rows or X is None or is_in_memory(X, y):
            return method(self, X, y, *args, **kwargs)
        self._validate_params()
        given = parameters.bind(self, X, y, *args, **kwargs)
        weighted = "sample_weight" in parameters.parameters
        chosen = [
            value
            for name, value in self.get_params().items()
            if name.rpartition("__")[2] == "categorical_features"
        ]
        X, y, weight = in_memory(
            X,
            y,
            given.arguments.get("sample_weight"),
            name=type(self).__name__,
            labeled=not is_regressor(self),
            categorical_features=chosen[0] if chosen else None,
        )
        given.arguments |= {"X": X, "y": y} | ({"sample_weight": weight} if weighted else {})
        return method(*given.args, **given.kwargs)

    return fit
