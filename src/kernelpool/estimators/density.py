"""What every classifier that estimates class densities can do."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device, is_numpy_array, logsumexp, namespace, to_numpy
from ..rows import Block, Rows
from .data import query_rows
from .notebook import NotebookMixin


class DensityClassifier(NotebookMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labels, probabilities and densities from log p(x|C_k).

    A subclass says how the log-density of a block of rows is computed: `_density_of(rows)` returns rows seen in the right
    frame, a function of a block, and the parameters to pass to it.
    """

    classes_: np.ndarray
    class_prior_: np.ndarray

    def _density(self, rows: Rows) -> tuple[Rows, Any, tuple[Any, ...]]:
        raise NotImplementedError

    def _each(self, X: Any, answer: Any) -> Array:
        check_is_fitted(self)
        rows, log_density, params = self._density(query_rows(self, X, getattr(self, "n_jobs", None)))
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.class_prior_)
        return rows.each(_answered, answer, log_density, log_prior, *params)

    def predict(self, X: Any) -> Any:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NumPy, pandas, torch and other array-API arrays, or Dask arrays.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels, in the home of `X` where it can hold them.
        """
        return self._labels(self._each(X, _most_probable))

    def predict_proba(self, X: Any) -> Any:
        """P(C_k|x), class priors included (Titsias & Likas 2001, (1)).

        A row far from every kernel still gets probabilities that sum to one: see `score_samples` for how far it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, _probability)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`, exact where the probability itself would round to zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, _log_probability)

    def log_density(self, X: Any) -> Any:
        """log p(x|C_k) of every class (Titsias & Likas 2001, (2)).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : array of shape (n_samples, n_classes)
            In the order of `classes_` and in the units of the data.
        """
        return self._each(X, _density_alone)

    def score_samples(self, X: Any) -> Any:
        """log p(x), the classes summed out: low where a row is unlike anything seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : array of shape (n_samples,)
            In the units of the data.
        """
        return self._each(X, _evidence)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes from the model.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        random_state : int, RandomState instance or None, default=None
            Seed; None uses the estimator's own `random_state`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples}.")
        rng = check_random_state(getattr(self, "random_state", None) if random_state is None else random_state)
        codes = rng.choice(len(self.classes_), size=n_samples, p=self.class_prior_ / self.class_prior_.sum())
        return self._sample_rows(codes, rng), self.classes_[codes]

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        raise NotImplementedError

    def _labels(self, codes: Array) -> Any:
        if hasattr(codes, "map_blocks"):
            return codes.map_blocks(lambda block, classes: classes[block], self.classes_, dtype=self.classes_.dtype)
        if is_numpy_array(codes) or self.classes_.dtype.kind not in "biuf":
            return self.classes_[to_numpy(codes)]
        xp = namespace(codes)
        return xp.take(xp.asarray(self.classes_, device=device(codes)), codes, axis=0)


def _answered(block: Block, answer: Any, log_density: Any, log_prior: Array, *params: Any) -> Array:
    return answer(log_density(block, *params), log_prior)


def _density_alone(log_density: Array, log_prior: Array) -> Array:  # noqa: ARG001
    return log_density


def _evidence(log_density: Array, log_prior: Array) -> Array:
    return logsumexp(log_density + log_prior, axis=1)


def _log_probability(log_density: Array, log_prior: Array) -> Array:
    joint = log_density + log_prior
    joint = joint - namespace(joint).max(joint, axis=1, keepdims=True)  # far rows: -1e17 + log 2 would lose the log 2
    return joint - logsumexp(joint, axis=1)[:, None]


def _probability(log_density: Array, log_prior: Array) -> Array:
    xp = namespace(log_density)
    joint = log_density + log_prior
    likelihood = xp.exp(joint - xp.max(joint, axis=1, keepdims=True))
    return likelihood / xp.sum(likelihood, axis=1, keepdims=True)


def _most_probable(log_density: Array, log_prior: Array) -> Array:
    return namespace(log_density).argmax(log_density + log_prior, axis=1)
