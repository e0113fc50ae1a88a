r"""What a classifier predicts for rows, made by one pass over them, and the one rule that accepts or
refuses a row.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
Theory 16(1), 1970: the rule for ambiguous rows.

.. math::

    x \text{ is novel if } \log p(x) < a, \text{ and else ambiguous if } 1 - m(x) > t, \qquad
    m(x) = \max_k P(C_k|x)

===================  ==============================================================
:math:`1 - m(x)`     `ambiguity` of a row, the sum of all its probabilities but the largest
:math:`\log p(x)`    its `score`
:math:`t`, :math:`a` the thresholds of `ambiguity` and `novelty`
===================  ==============================================================

Departures: ambiguity is summed from the small probabilities and not taken as 1 - max, which rounds
to zero for confident rows. A row that equals a threshold is accepted. Novelty comes first:
probabilities mean little where there were no rows to learn them from.
"""

from collections.abc import Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, Self

import numpy as np

from ..arrays import to_numpy
from ..records import saved
from .description import Inspected
from .pipeline import inside_of, layers, transformed, transformers

NOTHING_BELOW = float(np.finfo(np.float64).min)
"""A threshold of log-density under which only rows of no density fall."""


class Decision(IntEnum):
    """The codes that `RejectClassifier.decide` returns."""

    ACCEPTED = 0
    AMBIGUOUS = 1
    NOVEL = 2


DECISIONS = tuple(decision.name.lower() for decision in Decision)
"""Their names."""


@saved
class Thresholds:
    """What rows are refused for."""

    ambiguity: float | None = None
    """The largest ambiguity that is accepted; None accepts any."""
    novelty: float | None = None
    """The lowest log-density that is accepted; None accepts any."""

    def decide(self, ambiguity: Any, score: Any = None) -> Any:
        """The code of the decision for each row, (n,).

        Parameters
        ----------
        ambiguity : array of shape (n,)
            Of NumPy, or a tensor of an ONNX graph: functions of NumPy are all that is asked of it.
        score : array of shape (n,), default=None
            log p(x). Minus infinity and NaN are novel under any threshold.

        Returns
        -------
        decision : array of int8 of shape (n,)
            Values of `Decision`.
        """
        decision = np.isnan(ambiguity).astype(np.int64) * int(Decision.ACCEPTED)  # zeros
        if self.ambiguity is not None:
            refused = np.logical_not(ambiguity <= self.ambiguity).astype(np.int64)
            decision = np.maximum(decision, refused * int(Decision.AMBIGUOUS))
        if self.novelty is not None:
            lowest = max(self.novelty, float(np.finfo(score.dtype).min))
            refused = np.logical_not(score >= lowest).astype(np.int64)
            decision = np.maximum(decision, refused * int(Decision.NOVEL))
        return decision.astype(np.int8)


def ambiguity_of(probability: np.ndarray) -> np.ndarray:
    """1 - m(x): the model's own probability that its label is wrong, (n,)."""
    rest = np.array(probability, dtype=np.float64)
    np.put_along_axis(rest, np.argmax(rest, axis=1)[:, None], 0.0, axis=1)
    return rest.sum(axis=1)


@saved(eq=False)
class Predictions:
    """What a classifier predicts for rows; those of further rows are joined by `joined`."""

    classes: np.ndarray
    """Labels, (K,)."""
    probability: np.ndarray
    """P(C_k|x), (n, K)."""
    predicted: np.ndarray
    """Codes of the labels, refused rows among them, (n,)."""
    decision: np.ndarray
    """Values of `Decision`, (n,) int8."""
    score: np.ndarray | None = None
    """log p(x), (n,); None where the classifier has no densities."""
    log_density: np.ndarray | None = None
    """log p(x|C_k), (n, K), where it was asked for."""
    sets: np.ndarray | None = None
    """Whether each class is in the set of the row, (n, K), of a `ConformalClassifier`."""

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def ambiguity(self) -> np.ndarray:
        """The model's own probability that its label is wrong, (n,)."""
        return ambiguity_of(self.probability)

    def at(self, index: Any) -> Self:
        """Those of some of the rows."""
        columns: Any = [c if c is None else c[index] for c in self._by_row()]
        return type(self)(self.classes, *columns)

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Those of several batches of rows by one classifier, one after the other."""
        columns: Any = zip(*(batch._by_row() for batch in batches), strict=True)
        columns = [None if any(c is None for c in cs) else np.concatenate(cs) for cs in columns]
        return cls(batches[0].classes, *columns)

    def _by_row(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)[1:]]  # type: ignore[arg-type]

    @classmethod
    def of(
        cls,
        classes: Any,
        probability: Any,
        predicted: Any = None,
        score: Any = None,
        log_density: Any = None,
    ) -> Self:
        """From arrays of any library, all rows accepted; without `predicted`, the most probable
        classes.
        """
        columns = (probability, score, log_density)
        floats: Any = [c if c is None else np.asarray(to_numpy(c), np.float64) for c in columns]
        proba, score, density = floats
        codes: Any = proba.argmax(axis=1) if predicted is None else to_numpy(predicted)
        accepted = np.zeros(len(codes), np.int8)
        return cls(np.asarray(classes), proba, codes.astype(np.int64), accepted, score, density)


def asked(model: Any, method: str, X: Any) -> Any:
    """What a method of a model returns for rows; None where there is no such method."""
    return getattr(model, method)(X) if model is not None and hasattr(model, method) else None


def log_density_inside(model: Any, X: Any) -> Any:
    """log p(x|C_k) by the innermost model, (n, K), in the features that it takes; None where it has
    none.
    """
    estimators, steps = layers(model)
    return asked(estimators[-1], "log_density", transformed(steps, X))


def predictions(
    model: Any, X: Any, *, score: bool = True, log_density: bool = False, labels: bool = True
) -> Predictions:
    """What a fitted classifier predicts for rows.

    Rows are encoded once. A classifier of this library computes probabilities and densities in one
    pass, also inside of a pipeline or a search; any other is asked by its public methods.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X : array-like of shape (n_samples, n_features), data frame or table
        Rows.
    score : bool, default=True
        Whether log p(x) is wanted, where the classifier has it.
    log_density : bool, default=False
        Whether log p(x|C_k) is wanted, where the classifier has it.
    labels : bool, default=True
        Whether a classifier of another library is asked for its labels as well, which may be others
        than the most probable classes.

    Returns
    -------
    predictions : Predictions
        Probabilities and scores equal those of `predict_proba` and `score_samples`.
    """
    while (attribute := inside_of(model)) in ("steps", "best_estimator_", "estimator"):
        if attribute == "steps":  # of a pipeline
            X = transformed(transformers(model), X)
            model = model.steps[-1][1]
        else:
            model = getattr(model, attribute)
    if isinstance(model, Inspected):
        return model._predictions(X, score, log_density)  # type: ignore[no-any-return]
    classes = np.asarray(model.classes_)
    answers = Predictions.of(
        classes,
        model.predict_proba(X),
        score=asked(model, "score_samples", X) if score else None,
        log_density=log_density_inside(model, X) if log_density else None,
    )
    if not labels:
        return answers
    # thresholds or votes of its own may choose another than the most probable class
    chosen = np.asarray(to_numpy(model.predict(X)))[:, None] == classes  # (n, K)
    answers.predicted[chosen.any(axis=1)] = chosen.argmax(axis=1)[chosen.any(axis=1)]
    return answers
