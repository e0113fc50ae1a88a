r"""Class frequencies other than those of the training rows: set them, or estimate them from rows
without labels.

M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
probabilities: a simple procedure", Neural Computation 14(1), 2002, equations (2.4) and (2.9).

.. math::

    P'(C_k \mid x) \propto \frac{P'(C_k)}{P(C_k)}\, P(C_k \mid x), \qquad
    P'(C_k) \leftarrow \frac{1}{n} \sum_i P'(C_k \mid x_i)

==========================  ==========================================================
:math:`P(C_k)`              `trained`, the frequencies that the probabilities assume
:math:`P'(C_k)`             `class_prior`, those of the rows at hand
==========================  ==========================================================

The iteration is EM, and climbs the log-likelihood :math:`\sum_i \log \sum_k P'(C_k) P(C_k|x_i) /
P(C_k)`, which is concave. So the interval of each frequency is that of the likelihood ratio, the
other frequencies at their best, and the same ratio tests whether the frequencies have changed at
all. Both hold where only the frequencies differ (label shift) and the probabilities are right; they
do not count what the classifier itself does not know.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..text import percent, plural, shown
from ..training.prepare import class_prior_for
from .pipeline import innermost, inside_of


@dataclass(frozen=True)
class PriorEstimate:
    """Class frequencies among rows without labels; prints as a table.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    class_prior : ndarray of shape (n_classes,)
        The most likely frequencies.
    low, high : ndarray of shape (n_classes,)
        Interval of each.
    trained : ndarray of shape (n_classes,)
        Those that the classifier assumes.
    p_value : float
        Of the test that they have not changed.
    confidence : float
        Of the intervals.
    n_rows : int
        Rows.
    """

    classes: np.ndarray
    class_prior: np.ndarray
    low: np.ndarray
    high: np.ndarray
    trained: np.ndarray
    p_value: float
    confidence: float
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        names = ("label", "share", "low", "high", "trained")
        columns = (self.classes, self.class_prior, self.low, self.high, self.trained)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        classes = [dict(zip(names, values, strict=True)) for values in rows]
        about = {"n_rows": self.n_rows, "p_value": self.p_value, "confidence": self.confidence}
        return {**about, "classes": classes}

    def __str__(self) -> str:
        confidence = f"{100 * self.confidence:.6g} % intervals"
        lines = [f"Class frequencies of {plural(self.n_rows, 'row')} ({confidence}; in training):"]
        columns = zip(self.class_prior, self.low, self.high, self.trained, strict=True)
        for label, shares in zip(self.classes.tolist(), columns, strict=True):
            share, low, high, trained = map(percent, shares)
            lines.append(f"  {shown(label)}: {share} ({low} to {high}; {trained})")
        changed = "have changed" if self.p_value < 1 - self.confidence else "may be the same"
        return "\n".join([*lines, f"They {changed} (p = {self.p_value:.2g})."])


def estimate_class_prior(
    model: Any, X: Any, *, trained: Any = None, confidence: float = 0.95
) -> PriorEstimate:
    """How frequent the classes are among rows without labels.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    trained : array-like of shape (n_classes,), dict or None, default=None
        Frequencies that the probabilities of the model assume; None asks the model, which must then
        have `class_prior_`.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    estimate : PriorEstimate
        Prints as a table.

    See Also
    --------
    with_class_prior : The classifier with these frequencies.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import estimate_class_prior
    >>> X, y = make_clouds(random_state=0)
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    >>> rare = make_clouds(4000, random_state=1)
    >>> keep = (rare[1] == 0) | (np.arange(4000) % 9 == 0)  # few of the second class
    >>> found = estimate_class_prior(model, rare[0][keep])
    >>> bool(found.low[1] < (rare[1][keep] == 1).mean() < found.high[1])
    True
    """
    if not 0 < confidence < 1:
        raise KernelpoolError(f"confidence must lie between 0 and 1; got {confidence}.")
    check_is_fitted(model)
    probability = np.asarray(to_numpy(model.predict_proba(X)), np.float64)
    if not len(probability):
        raise KernelpoolError("X has no rows: nothing can be estimated from them.")
    classes = np.asarray(model.classes_)
    if trained is None:
        assumed = _trained_prior(innermost(model))
    else:
        assumed = class_prior_for(trained, classes, np.ones(len(classes)))
    return prior_from_probability(probability, assumed, classes, confidence)


def _trained_prior(inner: Any) -> np.ndarray:
    """The frequencies that the probabilities of a model assume, (K,)."""
    for name in ("class_prior_", "priors_"):  # scikit-learn's naive Bayes and discriminants
        if hasattr(inner, name):
            return np.asarray(getattr(inner, name), np.float64)
    raise KernelpoolError(
        f"{type(inner).__name__} does not have the class frequencies that it was trained with: "
        "pass trained=, their shares."
    )


def prior_from_probability(
    probability: np.ndarray, trained: np.ndarray, classes: np.ndarray, confidence: float = 0.95
) -> PriorEstimate:
    """The estimate from P(C_k|x), (n, K), that assume the frequencies `trained`, (K,)."""
    known = trained > 0
    ratio = (
        probability / np.where(known, trained, 1.0) * known
    )  # p(x|C_k) up to a factor of the row
    best = _most_likely(ratio, trained)
    top = _log_likelihood(ratio, best)
    changed = 2 * (top - _log_likelihood(ratio, trained))
    threshold = 0.5 * chi2.ppf(confidence, 1)
    low, high = np.zeros(len(trained)), np.where(known, 1.0, 0.0)
    for k in np.flatnonzero(known).tolist():

        def fall(share: float, k: int = k) -> float:
            start = _with_share(np.maximum(best, 1e-6) * known, k, share)
            return top - _log_likelihood(ratio, _most_likely(ratio, start, fixed=k)) - threshold

        low[k] = brentq(fall, 0.0, best[k], xtol=1e-6) if fall(0.0) > 0 else 0.0
        high[k] = brentq(fall, best[k], 1.0, xtol=1e-6) if fall(1.0) > 0 else 1.0
    p_value = float(chi2.sf(max(changed, 0.0), max(known.sum() - 1, 1)))
    return PriorEstimate(classes, best, low, high, trained, p_value, confidence, len(probability))


def _log_likelihood(ratio: np.ndarray, prior: np.ndarray) -> float:
    return float(np.log(np.maximum(ratio @ prior, np.finfo(np.float64).tiny)).sum())


def _most_likely(
    ratio: np.ndarray, prior: np.ndarray, fixed: int | None = None, tol: float = 1e-8
) -> np.ndarray:
    """(2.9): the frequencies that make the rows most likely, from a start; one of them may be
    `fixed`.
    """
    for _ in range(2000):
        before, joint = prior, ratio * prior
        total = joint.sum(axis=1, keepdims=True)
        prior = (joint / np.where(total > 0, total, 1.0)).mean(axis=0)
        if fixed is not None:
            prior = _with_share(prior, fixed, before[fixed])
        if np.abs(prior - before).max() < tol:
            break
    return prior


def _with_share(prior: np.ndarray, k: int, share: float) -> np.ndarray:
    """Class k has this share, and the others what is left, in the same proportions."""
    others = np.where(np.arange(len(prior)) == k, 0.0, prior)
    prior = others * ((1 - share) / others.sum()) if others.sum() > 0 else others
    prior[k] = share
    return np.asarray(prior)


def with_class_prior(model: Any, class_prior: Any) -> Any:
    """The same classifier where classes have other frequencies, whatever stands around it.

    Parameters
    ----------
    model : classifier
        Fitted: one with the method of that name, or a pipeline, search or `RejectClassifier` around
        one.
    class_prior : "balanced", dict of label to float, or array-like of shape (n_classes,)
        The frequencies.

    Returns
    -------
    model : classifier
        A copy; nothing is trained again.
    """
    check_is_fitted(model)
    if hasattr(model, "with_class_prior"):
        return model.with_class_prior(class_prior)
    attribute, other = inside_of(model), copy(model)
    if attribute is None:
        raise KernelpoolError(
            f"{type(model).__name__} cannot take other class frequencies; SharedKernelClassifier, "
            f"SharingAverageClassifier, Parzen networks and PooledClassifier can."
        )
    kept = getattr(model, attribute)
    if attribute == "steps":  # of a pipeline
        name, last = kept[-1]
        other.steps = [*kept[:-1], (name, with_class_prior(last, class_prior))]
    else:
        setattr(other, attribute, with_class_prior(kept, class_prior))
    return other
