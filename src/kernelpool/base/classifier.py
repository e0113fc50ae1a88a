"""What every classifier that gives probabilities, and every one that estimates densities, can
do.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..arrays import (
    Array,
    device,
    is_numpy_array,
    logsumexp,
    namespace,
    safe_log,
    to_numpy,
)
from ..data.door import query_rows
from ..data.labels import class_prior_for
from ..inspection.explanation import Explanation, Explanations, explain
from ..inspection.predictions import Predictions
from ..records import replaced
from ..rows import Block, RowsInMemory, as_rows
from ..softmax import shares_of
from .estimator import Estimator

Transform = Callable[..., Array]
"""Makes an answer of the scores of some rows, (n, K)."""


@dataclass(frozen=True)
class RowFunction:
    """What is asked of every row: a function of a block of rows, and its parameters."""

    rows: RowsInMemory
    """In the frame that the function expects."""
    function: Callable[..., Array]
    """`function(block, *params)` answers row for row."""
    params: tuple[Any, ...] = ()

    def then(self, transform: Transform, *params: Any) -> "RowFunction":
        """The same, with `transform(answer, *params)` made of what it answers."""
        return RowFunction(self.rows, _followed, (self.function, self.params, transform, params))

    def __call__(self) -> Array:
        return self.rows.each(self.function, *self.params)


def _followed(
    block: Block,
    function: Callable[..., Array],
    params: tuple[Any, ...],
    transform: Transform,
    more: tuple[Any, ...],
) -> Array:
    return transform(function(block, *params), *more)


@dataclass(frozen=True)
class ArrayFunction:
    """The same of encoded rows that are one array in memory."""

    answer: Callable[[], np.ndarray]

    def then(self, transform: Transform, *params: Any) -> "ArrayFunction":
        """As that of `RowFunction`."""
        return ArrayFunction(lambda: transform(self.answer(), *params))

    def __call__(self) -> np.ndarray:
        return self.answer()


class ProbabilityClassifier(ClassifierMixin, Estimator):
    """Labels and probabilities from scores, one a row and class; of equal scores the first class is
    predicted.

    `_scores(rows)` of a subclass computes the scores of rows as its `_rows(X)` returns them:
    logarithms of probabilities, up to a constant of the row.
    """

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # `categorical` would make scikit-learn's checks round X to a few whole numbers
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _scores(self, rows: Any) -> Any:
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        """Checked rows."""
        return query_rows(self, X)

    def _map_scores(self, X: Any, transform: Transform) -> Array:
        """What `transform` makes of the scores of every row."""
        return self._scores(self._rows(X)).then(transform)()

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Predictions:
        answer = np.asarray(to_numpy(self._map_scores(X, _probability_and_class)))
        return Predictions.of(self.classes_, answer[:, :-1], answer[:, -1])

    def _log_proba(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of encoded rows in memory, (n, K), which are not checked."""
        return np.asarray(self._scores(as_rows(x)).then(log_softmax)())

    def predict(self, X: Any) -> Any:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NumPy, pandas, torch and other array-API arrays, or Dask arrays.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels, in the array library of `X` where it can hold them.
        """
        return self._labels(self._map_scores(X, argmax_class))

    def predict_proba(self, X: Any) -> Any:
        """P(C_k|x), class priors included.

        A row far from all that was seen still gets probabilities that sum to one: where there is a
        `score_samples`, it tells how far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._map_scores(X, softmax)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`.

        From densities and log-odds it is exact even where the probability itself would round to
        zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._map_scores(X, log_softmax)

    def explain(
        self, X: Any, *, against: Any = None, random_state: Any = 0
    ) -> Explanation | Explanations:
        r"""Why rows get their classes: the part of each feature in the log-odds, and the kernels.

        The log-odds of the most probable class against the next are the sum of those of the class
        prior and of one part for each feature, its Shapley value where features that are left out
        are missing cells. Up to ten features this is exact; beyond, the mean over random orders of
        the features, with its standard error.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_features,)
            Rows, or one row. Missing cells have no part.
        against : label, default=None
            The class to compare with; None takes the most probable of the others.
        random_state : int, RandomState instance or None, default=0
            Seed of the orders.

        Returns
        -------
        explanation : Explanation, or Explanations
            One for one row, a list for rows; both print as sentences and bar charts.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0, 0.0], [2.0, 0.0]],
        ...     covariances=[1.0, 1.0],
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.5, 0.5],
        ...     classes=["a", "b"],
        ... )
        >>> print(model.explain([2.0, 1.0]))
        b (88.1 %) rather than a (11.9 %): log-odds +2.00
          before any feature    +0.00
          feature 0 = 2         +2.00  ++++++++++++++++++++++++
          feature 1 = 1         +0.00                            0 expected
          kernel 1 (b 100 %): 88.1 %; kernel 0 (a 100 %): 11.9 %
        """
        one = not hasattr(X, "columns") and np.ndim(X) == 1
        explanations = explain(self, X, against=against, random_state=random_state)
        return explanations[0] if one else explanations

    def _labels(self, codes: Array) -> Any:
        classes = self.classes_
        if is_numpy_array(codes) or classes.dtype.kind not in "biuf":
            return classes.take(to_numpy(codes))
        xp = namespace(codes)
        return xp.take(xp.asarray(classes, device=device(codes)), codes, axis=0)


def encoded_log_proba(estimator: ProbabilityClassifier, x: np.ndarray) -> np.ndarray:
    """log P(C_k|x) of encoded rows in memory, which are not checked, (n, K)."""
    return estimator._log_proba(x)


def argmax_class(scores: Array) -> Array:
    """Code of the class with the highest score, (n,)."""
    return namespace(scores).argmax(scores, axis=1)


def softmax(scores: Array) -> Array:
    """Probabilities from their logarithms up to a constant of the row, (n, K)."""
    return shares_of(scores, axis=1)


def _probability_and_class(scores: Array) -> Array:
    """P(C_k|x), and the code of the most probable class, (n, K + 1)."""
    xp = namespace(scores)
    code = xp.astype(argmax_class(scores), scores.dtype)
    return xp.concat([softmax(scores), code[:, None]], axis=1)


def log_softmax(scores: Array) -> Array:
    """The constant taken off, (n, K): exact where the probability itself would round to zero."""
    # far rows: -1e17 + log 2 would lose the log 2
    scores = scores - namespace(scores).max(scores, axis=1, keepdims=True)
    return scores - logsumexp(scores, axis=1)[:, None]


def prior_shift(class_prior: np.ndarray, class_share: np.ndarray) -> np.ndarray:
    """What other class priors than the shares of the classes in training add to log P(C_k|x), (K,);
    a class without weight cannot be shifted.
    """
    share = np.where(class_share > 0, class_share, 1.0)
    return safe_log(class_prior) - np.log(share)


class DensityClassifier(ProbabilityClassifier):
    """Labels, probabilities and densities from log p(x|C_k).

    The fitted record of a subclass has `densities`, whose `log_density(rows)` computes the
    log-density of each class, `posterior(rows)` the responsibilities of the kernels, and `sample`
    draws rows of given classes.
    """

    class_prior_: np.ndarray

    def _density(self, rows: Any) -> Any:
        return self._fitted.densities.log_density(rows)  # type: ignore[no-any-return]

    def _posterior(self, rows: Any) -> Any:
        return self._fitted.densities.posterior(rows)

    def _discriminative(self, rows: Any) -> Any:
        """Scores by something else than the densities; None where they are those of Bayes' rule."""
        return None

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        return self._fitted.densities.sample(codes, rng)  # type: ignore[no-any-return]

    def _joint(self, rows: Any) -> Any:
        """log P(C_k) p(x|C_k)."""
        return self._density(rows).then(_log_joint, safe_log(self.class_prior_))

    def _scores(self, rows: Any) -> Any:
        return self._discriminative(rows) or self._joint(rows)

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Predictions:
        if not (score or log_density):
            return super()._predictions(X, score, log_density)
        rows = self._rows(X)
        discriminative = self._discriminative(rows)
        density = self._density(rows)
        log_prior = safe_log(self.class_prior_)
        if discriminative is None:
            answers = [density.then(_all_answers, log_prior)()]
        else:
            answers = [
                discriminative.then(_probability_and_class)(),
                density.then(_evidence_and_density, log_prior)(),
            ]
        answer = np.hstack([to_numpy(values) for values in answers])  # (n, 2 K + 2)
        n_classes = len(self.classes_)
        return Predictions.of(
            self.classes_,
            answer[:, :n_classes],
            answer[:, n_classes],
            answer[:, n_classes + 1] if score else None,
            answer[:, n_classes + 2 :] if log_density else None,
        )

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
        return self._density(self._rows(X))()

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
        return self._joint(self._rows(X)).then(evidence)()

    def kernel_posterior(self, X: Any) -> Any:
        """P(j|x): how much each kernel has to do with each row, the class summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_kernels)
            Rows sum to one; kernels in the order of the fitted attributes, those of an average
            network by network. A row that no kernel reaches belongs to the nearest one.
        """
        return self._posterior(self._rows(X))()

    def with_class_prior(self, class_prior: Any) -> Self:
        """The same model where classes have other frequencies; nothing is trained again.

        p(x|C_k) does not depend on the frequencies of the classes: only P(C_k) changes.

        Parameters
        ----------
        class_prior : "balanced", dict of label to float, or array-like of shape (n_classes,)
            The frequencies: all alike; by label, where classes that are not named keep their
            proportions in what is left; or in the order of `classes_`.

        Returns
        -------
        model : classifier
            A copy that shares its parameters with this one.

        See Also
        --------
        kernelpool.inspection.estimate_class_prior : Frequencies from rows without labels.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0], [4.0]],
        ...     covariances=[1.0, 1.0],
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.99, 0.01],
        ...     classes=["a", "b"],
        ... )
        >>> print(model.with_class_prior("balanced").predict_proba([[2.0]]).round(2))
        [[0.5 0.5]]
        """
        other = copy(self)
        other._set_class_prior(class_prior_for(class_prior, self.classes_, self.class_prior_))
        return other

    def _set_class_prior(self, class_prior: np.ndarray) -> None:
        self._fitted = replaced(self._fitted, "class_prior", class_prior)

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
        X : ndarray or data frame of shape (n_samples, n_features)
            Rows, a data frame where the model was fitted to one; categories as text, or of the type
            that they had in it. In columns of a data frame that held whole numbers alone, whole
            numbers within their range.
        y : ndarray of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples}.")
        rng = check_random_state(self.random_state if random_state is None else random_state)
        prior = np.asarray(self.class_prior_)
        codes = rng.choice(len(self.classes_), size=n_samples, p=prior / prior.sum())
        x = self.columns_.rounded(self._sample_rows(codes, rng))
        return self.columns_.decode(x), self.classes_[codes]


def _log_joint(log_density: Array, log_prior: Array) -> Array:
    """Titsias & Likas 2001, (1), up to a constant of the row: log P(C_k) p(x|C_k), (n, K)."""
    return log_density + log_prior


def _evidence_and_density(log_density: Array, log_prior: Array) -> Array:
    """log p(x), and log p(x|C_k), (n, 1 + K)."""
    log_evidence = evidence(_log_joint(log_density, log_prior))
    return namespace(log_density).concat([log_evidence[:, None], log_density], axis=1)


def _all_answers(log_density: Array, log_prior: Array) -> Array:
    """By Bayes' rule: P(C_k|x), the code of the class, log p(x) and log p(x|C_k), (n, 2 K + 2)."""
    answers = [
        _probability_and_class(_log_joint(log_density, log_prior)),
        _evidence_and_density(log_density, log_prior),
    ]
    return namespace(log_density).concat(answers, axis=1)


def evidence(log_joint: Array) -> Array:
    """log p(x), (n,)."""
    return logsumexp(log_joint, axis=1)
