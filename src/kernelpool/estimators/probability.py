"""What every classifier that gives probabilities can do."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device, is_numpy_array, logsumexp, namespace, to_numpy
from ..rows import Block, Rows
from .data import query_rows
from .notebook import NotebookMixin

Question = tuple[Rows, Callable[..., Array], tuple[Any, ...]]
"""Rows seen in a frame, a function of a block of them, and the parameters to pass to it."""

Answer = Callable[[Array], Array]
"""What is made of scores, (n, K)."""


class ProbabilityClassifier(NotebookMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labels and probabilities from scores, one a row and class: the class with the highest is named, the first of equals.

    A subclass says by `_scores(rows)` how the scores of a block of rows are computed. Where they are not logarithms of
    probabilities, up to a constant of the row, it says what makes probabilities of them as well.
    """

    classes_: np.ndarray

    def _scores(self, rows: Rows) -> Question:
        raise NotImplementedError

    def _probability(self) -> Answer:
        return softmax

    def _log_probability(self) -> Answer:
        return log_softmax

    def _ask(self, X: Any, question: Callable[[Rows], Question]) -> Array:
        """What `question` asks of every row."""
        check_is_fitted(self)
        rows, function, params = question(query_rows(self, X, self.n_jobs))
        return rows.each(function, *params)

    def _each(self, X: Any, answer: Answer) -> Array:
        """What `answer` makes of the scores of every row."""

        def question(rows: Rows) -> Question:
            rows, scores, params = self._scores(rows)
            return rows, _answered, (answer, scores, *params)

        return self._ask(X, question)

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
        return self._labels(self._each(X, argmax_class))

    def predict_proba(self, X: Any) -> Any:
        """P(C_k|x), class priors included.

        A row far from all that was seen still gets probabilities that sum to one: where there is a `score_samples`, it tells
        how far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, self._probability())

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`.

        From densities and log-odds it is exact even where the probability itself would round to zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, self._log_probability())

    def _labels(self, codes: Array) -> Any:
        if hasattr(codes, "map_blocks"):
            return codes.map_blocks(lambda block, classes: classes[block], self.classes_, dtype=self.classes_.dtype)
        if is_numpy_array(codes) or self.classes_.dtype.kind not in "biuf":
            return self.classes_[to_numpy(codes)]
        xp = namespace(codes)
        return xp.take(xp.asarray(self.classes_, device=device(codes)), codes, axis=0)


def _answered(block: Block, answer: Answer, scores: Callable[..., Array], *params: Any) -> Array:
    return answer(scores(block, *params))


def identity(scores: Array) -> Array:
    """The scores as they are, (n, K)."""
    return scores


def argmax_class(scores: Array) -> Array:
    """Code of the class with the highest score, (n,)."""
    return namespace(scores).argmax(scores, axis=1)


def softmax(scores: Array) -> Array:
    """Probabilities from their logarithms up to a constant of the row, (n, K)."""
    xp = namespace(scores)
    likelihood = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return likelihood / xp.sum(likelihood, axis=1, keepdims=True)


def log_softmax(scores: Array) -> Array:
    """The constant taken off, (n, K): exact where the probability itself would round to zero."""
    scores = scores - namespace(scores).max(scores, axis=1, keepdims=True)  # far rows: -1e17 + log 2 would lose the log 2
    return scores - logsumexp(scores, axis=1)[:, None]
