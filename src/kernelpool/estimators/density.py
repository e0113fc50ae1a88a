"""What every classifier that estimates class densities can do."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, logsumexp
from ..rows import Block, Rows
from .probability import ProbabilityClassifier, Question


class DensityClassifier(ProbabilityClassifier):
    """Labels, probabilities and densities from log p(x|C_k).

    A subclass says how rows are judged: `_density(rows)` by the log-density of each class, `_posterior(rows)` by how much each
    kernel has to do with them. `_sample_rows` draws rows of given classes.
    """

    class_prior_: np.ndarray

    def _density(self, rows: Rows) -> Question:
        raise NotImplementedError

    def _posterior(self, rows: Rows) -> Question:
        raise NotImplementedError

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        raise NotImplementedError

    def _scores(self, rows: Rows) -> Question:
        rows, log_density, params = self._density(rows)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.class_prior_)
        return rows, _log_joint, (log_density, log_prior, *params)

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
        return self._ask(X, self._density)

    def score_samples(self, X: Any) -> Any:
        """log p(x), the classes summed out: low where a row is unlike anything seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : array of shape (n_samples,)
            In the units of the data; minus infinity where no kernel reaches.
        """
        return self._each(X, evidence)

    def kernel_posterior(self, X: Any) -> Any:
        """P(j|x): how much each kernel has to do with each row, the class summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_kernels)
            Rows sum to one; kernels in the order of the fitted attributes, those of an average network by network. A row that
            no kernel reaches belongs to the nearest one.
        """
        return self._ask(X, self._posterior)

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
        rng = check_random_state(self.random_state if random_state is None else random_state)
        codes = rng.choice(len(self.classes_), size=n_samples, p=self.class_prior_ / self.class_prior_.sum())
        return self._sample_rows(codes, rng), self.classes_[codes]


def _log_joint(block: Block, log_density: Callable[..., Array], log_prior: Array, *params: Any) -> Array:
    """Titsias & Likas 2001, (1), up to a constant of the row: log P(C_k) p(x|C_k), (n, K)."""
    return log_density(block, *params) + log_prior


def evidence(log_joint: Array) -> Array:
    """log p(x), (n,)."""
    return logsumexp(log_joint, axis=1)
