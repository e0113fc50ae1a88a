"""The base of classifiers whose networks take complete numbers alone: RBF networks, EM-Log, neurons
and Parzen networks.

Categories become indicators, and missing cells imputations from one small mixture; of a row of
which nothing is known the answer is the class prior. The networks themselves see neither. Rows are
in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import safe_log
from ..base.classifier import ProbabilityClassifier, Transform
from ..data.door import (
    TrainingData,
    check_in_memory,
    encoded_rows,
    surveyed,
    training_data,
    validation_rows,
)
from ..mixtures.fitted import ClassDensities
from ..rows import as_rows
from ..tables.columns import Columns
from .imputation import averaged, imputation_mixture, imputations, imputed


@dataclass(frozen=True, kw_only=True)
class FittedTabular:
    """What the fitted records of all these classifiers hold."""

    columns: Columns
    classes: np.ndarray
    imputer: ClassDensities | None
    class_share: np.ndarray
    """Weights of the classes among the labeled rows, (K,); they sum to one."""


class TabularClassifier(ProbabilityClassifier):
    """Labels and probabilities from a network of complete numbers.

    ``fit`` of a subclass takes its rows from `_complete_data` and ends with a record that has,
    beside what the network needs, the fields `columns`, `classes`, `imputer` and `class_share` that
    `_complete_data` returns. `_network_log_proba` of a subclass answers complete rows.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
    }

    n_jobs: int | None = None

    def _network_log_proba(self, z: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of complete numbers (n, D), as `Columns.indicators` makes them, (n, K)."""
        raise NotImplementedError

    # -- fitting -----------------------------------------------------------------------------------

    def _complete_data(
        self, X: Any, y: Any, sample_weight: Any, *, unlabeled: Any = None
    ) -> tuple[TrainingData, dict[str, Any]]:
        """Checked training rows as complete numbers, and the fields of the fitted record that are
        the same for all networks.
        """
        data = training_data(self, X, y, sample_weight, unlabeled=unlabeled, in_memory=True)
        rows: Any = data.rows
        x = rows.x
        imputer = None
        wild = np.isfinite(data.reach)
        if wild.any():
            reach = (data.reach * np.sqrt(data.variance))[wild]
            x = x.copy()
            x[:, wild] = np.clip(x[:, wild], data.mean[wild] - reach, data.mean[wild] + reach)
        if not data.columns.complete:
            imputer = imputation_mixture(np.asarray(x, np.float64), rows.weight, data.columns)
        shared = {
            "columns": data.columns,
            "classes": data.classes,
            "imputer": imputer,
            "class_share": data.class_share,
        }
        if data.observed is None and data.levels is None and not wild.any():
            return data, shared
        z = self._complete(x, data.columns, imputer)
        complete = as_rows(z, rows.y, rows.weight, n_jobs=self.n_jobs)
        columns = data.columns if data.levels is None else None
        return surveyed(complete, data.classes, columns), shared

    def _validation_data(
        self, X_val: Any, y_val: Any, shared: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Checked validation rows as complete numbers, and the codes of their classes."""
        x, codes = validation_rows(self, X_val, y_val, shared["columns"], shared["classes"])
        return self._complete(x, shared["columns"], shared["imputer"]), codes

    def _complete(
        self, x: np.ndarray, columns: Columns, imputer: ClassDensities | None
    ) -> np.ndarray:
        """One copy of encoded rows as complete numbers, (n, D)."""
        self._check_imputes(x, imputer)
        x = np.asarray(x, np.float64) if np.isnan(x).any() or any(columns.levels) else x
        return columns.indicators(x if imputer is None else imputed(imputer, x))

    def _check_imputes(self, x: np.ndarray, imputer: ClassDensities | None) -> None:
        if imputer is None and np.isnan(x).any():
            raise ValueError(
                f"Input X contains NaN; this {type(self).__name__} was fitted to columns without "
                f"missing cells."
            )

    # -- answers -----------------------------------------------------------------------------------

    def _encoded(self, X: Any) -> np.ndarray:
        """Checked rows, encoded, (n, d) float64."""
        check_is_fitted(self)
        check_in_memory(self, X)
        return np.asarray(encoded_rows(self, X), np.float64)

    def _averaged(
        self, x: np.ndarray, answer: Callable[[np.ndarray], np.ndarray], *, log: bool = False
    ) -> np.ndarray:
        """`answer` of encoded rows as complete numbers, (n, ...); its mean over imputations where
        cells are missing.

        With `log`, answers are logarithms, and the mean is that of what they are logarithms of.
        """
        columns = self._fitted.columns
        imputer = self._fitted.imputer
        self._check_imputes(x, imputer)
        incomplete = np.isnan(x).any(axis=1)
        draws = imputations(imputer, x[incomplete]) if incomplete.any() else None
        return averaged(x, draws, lambda rows: answer(columns.indicators(rows)), log=log)

    def _log_proba(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of encoded rows, (n, K); of a row of which nothing is known, the class
        prior.
        """
        found = self._averaged(x, self._network_log_proba, log=True)
        nothing = np.isnan(x).all(axis=1, keepdims=True)
        return np.where(nothing, safe_log(self._fitted.class_share), found)

    def _map_scores(self, X: Any, transform: Transform) -> Any:
        return transform(self._log_proba(self._encoded(X)))


class KernelNetworkClassifier(TabularClassifier):
    """A hidden layer of kernels, `_network_activations`, and an output layer on them."""

    def _network_activations(self, z: np.ndarray) -> np.ndarray:
        """Outputs of the kernels for complete numbers (n, D), (n, M)."""
        return np.asarray(self._fitted.activations(z))

    def activations(self, X: Any) -> np.ndarray:
        """Outputs of the kernels: the columns that `readout_` weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        activation : ndarray of shape (n_samples, n_kernels)
            Heights of Gaussian kernels, between 0 and 1; of EM-Log p(x|j) /
            exp(activation_log_scale_), or P(j|x) where `activation` is "normalized".
        """
        return self._averaged(self._encoded(X), self._network_activations)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second of two classes, or log-probabilities of more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        score : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The most probable class has the highest.
        """
        log_proba = self._log_proba(self._encoded(X))
        return log_proba[:, 1] - log_proba[:, 0] if log_proba.shape[1] == 2 else log_proba
