"""The fitted state of every estimator."""

from copy import copy
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from ..inspection.notebook import NotebookMixin
from ..records import attributes, replaced
from ..tables.columns import Columns
from .parts import wrap_methods

S = TypeVar("S")


class Estimator(NotebookMixin, BaseEstimator):  # type: ignore[misc]
    """The fitted state of an estimator is one frozen record, `_fitted`, that `fit` sets whole at
    its end.

    A public attribute ``name_`` is the field ``name`` of the record or of a record nested in it;
    where that is None, there is no such attribute. The number and the names of the features are
    those of the record's `columns`. A fit that fails or is interrupted before its end leaves the
    estimator as it was. Before a fit the record and its attributes raise NotFittedError.
    """

    _fitted: Any

    takes_any_rows: ClassVar[bool] = False
    """Whether `fit` takes rows of files and of Dask as they come; others learn from those that fit
    in memory.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        wrap_methods(cls)
        super().__init_subclass__(**kwargs)

    def score_of(self, y: Any, predicted: Any, weight: Any = None) -> float:
        """The score of predictions: what scikit-learn's classifiers and regressors call so."""
        score = r2_score if is_regressor(self) else accuracy_score
        return float(score(y, predicted, sample_weight=weight))

    def __getattr__(self, name: str) -> Any:
        is_public = name.endswith("_") and not name.startswith("_")
        if "_fitted" not in self.__dict__ and (is_public or name == "_fitted"):
            check_is_fitted(self)  # NotFittedError, which is an AttributeError too
        if is_public:
            values = self._attributes()
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._attributes()})

    def _attributes(self) -> dict[str, Any]:
        """The fitted attributes by their public names."""
        if "_fitted" not in self.__dict__:
            return {}
        values = attributes(self._fitted)
        columns = values.get("columns")
        public = {f"{name}_": value for name, value in values.items()}
        if columns is not None:
            public["n_features_in_"] = len(columns)
            if columns.names is not None:
                public["feature_names_in_"] = np.array(columns.names, dtype=object)
        return public

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def _settings(self, settings: type[S], **resolved: Any) -> S:
        """The parameters of the estimator as a record of settings; `resolved` replaces what is not
        passed on as the user set it.
        """
        names = {f.name for f in fields(settings)} - set(resolved)  # type: ignore[arg-type]
        return settings(**{name: getattr(self, name) for name in names}, **resolved)

    def _with_columns(self, columns: Columns) -> Self:
        other = copy(self)
        other._fitted = replaced(self._fitted, "columns", columns)
        return other


def fitted_record(estimator: Any) -> Any:
    """The fitted record of an estimator, for rooms that build on its methods."""
    return estimator._fitted
