"""The base of classifiers whose networks take complete numbers alone: RBF networks, EM-Log, neurons
and Parzen networks.

Categories become indicators, and missing cells imputations from one small mixture; of a row of
which nothing is known the answer is the class prior. The networks themselves see neither. Rows are
in memory.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ..arrays import safe_log
from ..base.classifier import ArrayFunction, ProbabilityClassifier
from ..data.door import (
    TrainingData,
    encoded_rows,
    surveyed,
    training_data,
    validation_rows,
)
from ..data.labels import Labeled, merge_duplicates
from ..mixtures.fitted import ClassDensities
from ..records import saved
from ..rows import as_rows
from ..tables.columns import Columns
from .imputation import averaged, draws_of, imputation_mixture, imputed


@saved
class CompleteDoor:
    """From encoded rows to the complete numbers of a network: categories become indicators, and
    missing cells imputations.
    """

    columns: Columns
    classes: np.ndarray
    imputer: ClassDensities | None
    """None where no cell is ever missing."""
    class_share: np.ndarray
    """Weights of the classes among the labeled rows, (K,); they sum to one."""

    def complete(self, x: np.ndarray) -> np.ndarray:
        """One copy of encoded rows as complete numbers, (n, D), on which a network is trained."""
        self._check(x)
        return self.columns.indicators(x if self.imputer is None else imputed(self.imputer, x))

    def averaged(
        self, x: np.ndarray, answer: Callable[[np.ndarray], np.ndarray], *, log: bool = False
    ) -> np.ndarray:
        """`answer` of encoded rows as complete numbers, (n, ...), as `imputation.averaged`."""
        self._check(x)
        draws = draws_of(self.imputer, x)
        return averaged(x, draws, lambda rows: answer(self.columns.indicators(rows)), log=log)

    def log_proba(
        self, x: np.ndarray, network_log_proba: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """log P(C_k|x) of encoded rows, (n, K); of a row of which nothing is known, the class
        prior.
        """
        log_proba = self.averaged(x, network_log_proba, log=True)
        unknown = np.isnan(x).all(axis=1, keepdims=True)
        return np.where(unknown, safe_log(self.class_share), log_proba)

    def _check(self, x: np.ndarray) -> None:
        if self.imputer is None and np.isnan(x).any():
            raise ValueError(
                "Input X contains NaN; the network was fitted to columns without missing cells."
            )


class TabularClassifier(ProbabilityClassifier):
    """Labels and probabilities from a network of complete numbers.

    ``fit`` of a subclass takes its rows and a `CompleteDoor` from `_complete_data` and ends with a
    record that has the door as its field `door`, and a `network` that answers complete rows.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
    }

    n_jobs: int | None = None

    def _network_log_proba(self, z: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of complete numbers (n, D), as `Columns.indicators` makes them, (n, K)."""
        return self._fitted.network.log_proba(z)

    # -- fitting -----------------------------------------------------------------------------------

    def _complete_data(
        self, X: Any, y: Any, sample_weight: Any, *, unlabeled: Any = None, merge: bool = True
    ) -> tuple[CompleteDoor, TrainingData]:
        """The door that further rows come through, and checked training rows as complete numbers.

        With `merge`, equal rows of a class are one, and rows are sorted: neither their order nor
        whether weights are copies matters, to the last bit.
        """
        data = training_data(
            X,
            y,
            sample_weight,
            name=type(self).__name__,
            categorical_features=self.categorical_features,
            n_jobs=self.n_jobs,
            unlabeled=unlabeled,
            in_memory=True,
            merge=merge,
        )
        rows: Any = data.rows
        if data.scale.clips:
            x = data.scale.clipped(rows.x)
            rows = as_rows(x, rows.y, rows.weight, n_jobs=self.n_jobs)
            data = surveyed(rows, data.classes, data.columns)
        imputer = None if data.columns.complete else imputation_mixture(data)
        door = CompleteDoor(data.columns, data.classes, imputer, data.class_share)
        if data.observed is None and data.levels is None:
            return door, data
        complete = door.complete(rows.x), rows.y, rows.weight
        if merge:  # in another order than before
            complete, _ = merge_duplicates(complete)
        columns = data.columns if data.levels is None else None
        return door, surveyed(as_rows(*complete, n_jobs=self.n_jobs), data.classes, columns)

    def _validation(
        self, door: CompleteDoor, X_val: Any, y_val: Any, sample_weight_val: Any = None
    ) -> Labeled | None:
        """Checked validation rows as complete numbers; None where there are none."""
        if X_val is None:
            return None
        rows = X_val, y_val, sample_weight_val
        x, codes, weight = validation_rows(*rows, door.columns, door.classes, type(self).__name__)
        return door.complete(x), codes, weight

    # -- answers -----------------------------------------------------------------------------------

    def _encoded(self, X: Any) -> np.ndarray:
        """Checked rows, encoded, (n, d) float64."""
        return np.asarray(encoded_rows(self, X), np.float64)

    def _log_proba(self, x: np.ndarray) -> np.ndarray:
        return self._fitted.door.log_proba(x, self._network_log_proba)

    def _rows(self, X: Any) -> np.ndarray:
        return self._encoded(X)

    def _scores(self, rows: np.ndarray) -> ArrayFunction:
        return ArrayFunction(partial(self._log_proba, rows))


class KernelNetworkClassifier(TabularClassifier):
    """A hidden layer of kernels, `network.activations` of the record, and an output layer."""

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
        return self._fitted.door.averaged(self._encoded(X), self._fitted.network.activations)

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
