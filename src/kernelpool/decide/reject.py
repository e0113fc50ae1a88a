r"""A classifier with a reject option: no label for rows that are ambiguous, or unlike anything
seen.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
Theory 16(1), 1970: the rule. V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random
World", Springer 2005: the ranks of exchangeable rows.

.. math::

    \text{refuse } x \text{ if } \max_k P(C_k|x) < 1 - t, \qquad \text{cost}(t) = E(t) + t R(t)

| paper | here |
|---|---|
| t | the threshold of ambiguity; the cost of a refusal where an error costs one |
| 1 - m(x) | `ambiguity` of a row: see `kernelpool.inspection.predictions.ambiguity_of` |
| E, R | share of errors, share of refusals, over all rows |

Departures: a threshold is a value that a held-out row has, and a row that equals it is accepted. A
row of weight two counts as two rows. A row is *novel* where its density is below a threshold, and
else *ambiguous* where its largest class probability is. Novelty comes first: probabilities mean
little where there were no rows to learn them from.
"""

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..arrays import is_foreign_array
from ..data.labels import given_weights, label_column
from ..errors import KernelpoolError, warn, without_column_warnings
from ..inspection.description import Description, describe, refusals
from ..inspection.metrics import (
    CoverageCurve,
    accepted_up_to,
    coverage_curve,
)
from ..inspection.pipeline import innermost
from ..inspection.predictions import (
    NOTHING_BELOW,
    Decision,
    Predictions,
    Thresholds,
    predictions,
)
from ..records import saved
from .base import HeldOut, MetaClassifier
from .onnx import to_graph

DEFAULT_AMBIGUITY = 0.2
"""What `ambiguity="auto"` is."""

DEFAULT_NOVELTY = 0.01
"""What `novelty="auto"` is."""

REFUSE_ALL = -1.0
"""A threshold below any ambiguity."""

REFUSE_NONE = 1.0
"""A threshold that no ambiguity exceeds."""

N_DRAWN = 10_000
"""Rows drawn from a fitted model, by which novelty is set where no rows are passed."""


@saved(eq=False)
class FittedReject:
    """The fitted state of a `RejectClassifier`; see its attributes."""

    estimator: Any
    thresholds: Thresholds
    ambiguous_label: Any
    novel_label: Any


def _delegated(method: str, what: str) -> Any:
    """A method that is there where the wrapped classifier has it, and calls it; `what` documents
    it.
    """

    def has(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    def call(self: Any, X: Any) -> Any:
        return getattr(self.estimator_, method)(X)

    call.__name__, call.__doc__ = method, DELEGATED_DOCSTRING.format(what=what)
    return available_if(has)(call)


DELEGATED_DOCSTRING = """{what}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        answer : array of shape (n_samples,) or (n_samples, n_classes)
            As the classifier has it.
        """


class RejectClassifier(MetaClassifier):
    r"""A classifier with a reject option: ambiguous rows, and rows unlike the training rows, get
    labels of their own.

    A row is *novel* where `score_samples` of the wrapped classifier, :math:`\log p(x)`, is below a
    threshold, and otherwise *ambiguous* where :math:`1 - \max_k P(C_k|x)`, by the model the
    probability that the label is wrong, is above another. No other rule that refuses as many rows
    makes fewer errors (Chow 1970), if the probabilities are right.

    Thresholds are given, or set on rows that the classifier was not fitted to. By default, rows are
    refused whose label is wrong with a probability above 0.2 and, where the classifier has
    densities, rows with a lower density than all but one training row in a hundred.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `predict_proba`; for `novelty` it needs `score_samples` as well, as
        density classifiers have. One that is fitted, or loaded from a file, is not fitted again.
    ambiguity : float, "auto" or None, default="auto"
        How ambiguous a row may be; `ambiguity_rule` defines the number. None refuses no row for it;
        "auto" is 0.2 where `novelty` is "auto" as well, and otherwise None.
    novelty : float, "auto" or None, default="auto"
        How unlike the training rows a row may be; `novelty_rule` defines the number. None refuses
        no row for it; "auto" is 0.01 where the classifier has densities (without, there is a
        warning) and `ambiguity` is "auto" as well, and otherwise None.
    ambiguity_rule : {"threshold", "rate", "error", "cost"}, default="threshold"
        What `ambiguity` is:

        - "threshold": the largest probability of an error, :math:`1 - \max_k P(C_k|x)`, that is
          accepted;
        - "rate": the share of all rows that may be ambiguous;
        - "error": the share of errors among accepted rows, with as few refusals as possible;
        - "cost": the cost of a refusal where an error costs one; the threshold with the least cost
          is taken. With the right probabilities that is "threshold" (Chow's rule).

        All but the first are set on held-out rows.
    novelty_rule : {"rate", "threshold"}, default="rate"
        What `novelty` is: the share of ordinary rows that may be called novel, set on held-out
        rows, or the lowest log-density that is accepted. Rows of density zero (no kernel of a
        `ParzenClassifier` covers them) are novel under either.
    ambiguous_label, novel_label : int, float, str or None, default=None
        Labels of refused rows. None takes "ambiguous" and "novel" where classes are strings, and
        for numbers -2 and -1, scikit-learn's mark of an outlier; where there are negative classes,
        the next lower numbers. They must not be classes, and may be the same.
    cv : int, cross-validation generator, iterable or None, default=None
        Which rows are held out: None or an int for so many stratified folds (5), in which equal
        rows stay together; or a splitter that holds each row out at most once. The classifier is
        fitted without each fold, and then to all rows. A `PooledClassifier` has folds of its own.
        With None, a classifier that is fitted (or a `sklearn.frozen.FrozenEstimator`, which
        survives `clone`) predicts the rows passed to `fit`, which must be others than it was fitted
        to; without rows, novelty is set on rows drawn from the model.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, without the two labels of refusal.
    thresholds_ : Thresholds
        Both thresholds; its `decide` applies them.
    ambiguity_threshold_ : float or None
        Rows with a larger :math:`1 - \max_k P(C_k|x)` are ambiguous. -1 refuses all.
    novelty_threshold_ : float or None
        Rows with a smaller log-density are novel. -1.8e308, the lowest number, refuses only rows of
        no density.
    ambiguous_label_, novel_label_ : int, float or str
        The labels of refusal.
    n_features_in_ : int
        Number of features, where the classifier has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Sets the threshold between two classes.

    Notes
    -----
    With "rate", the threshold is the j-th largest of the n held-out values with j = floor(rate (n +
    1)). A new row of the same distribution exceeds it with a probability of at most rate, whatever
    the distribution and the classifier, if the classifier was fitted before. With folds it holds
    approximately. Where j is zero, as for a rate of 0.01 with fewer than 99 rows, the threshold is
    the largest value, with a warning.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
    Theory 16(1), 1970.

    Examples
    --------
    >>> from kernelpool import RejectClassifier, SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> network = SharedKernelClassifier.prbf(n_kernels=12, random_state=0)
    >>> reject = RejectClassifier(network, ambiguity=0.2, novelty=0.01).fit(X, y)
    >>> reject.predict([[0.0, 0.0], [0.0, 1.5], [50.0, 50.0]])
    array([ 0, -2, -1])
    >>> reject.decide([[0.0, 0.0], [0.0, 1.5], [50.0, 50.0]])
    array([0, 1, 2], dtype=int8)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "ambiguity": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"}), None],
        "novelty": [Real, StrOptions({"auto"}), None],
        "ambiguity_rule": [StrOptions({"threshold", "rate", "error", "cost"})],
        "novelty_rule": [StrOptions({"rate", "threshold"})],
        "ambiguous_label": [Real, str, None],
        "novel_label": [Real, str, None],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        ambiguity: float | str | None = "auto",
        novelty: float | str | None = "auto",
        ambiguity_rule: str = "threshold",
        novelty_rule: str = "rate",
        ambiguous_label: float | str | None = None,
        novel_label: float | str | None = None,
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.ambiguity = ambiguity
        self.novelty = novelty
        self.ambiguity_rule = ambiguity_rule
        self.novelty_rule = novelty_rule
        self.ambiguous_label = ambiguous_label
        self.novel_label = novel_label
        self.cv = cv

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier and set the thresholds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows. A fitted classifier needs none, except for the rules "rate" (of ambiguity),
            "error" and "cost".
        y : array-like of shape (n_samples,), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for the classifier where its `fit` takes weights and for the
            thresholds.
        **fit_params : dict
            Passed to `fit` of the classifier, and of the splitter, by scikit-learn's metadata
            routing.

        Returns
        -------
        self : RejectClassifier
            The fitted estimator.
        """
        rules = self._rules()
        by_labels, by_scores = self._by_rows(rules)
        routed = self._routed(sample_weight, fit_params)
        held_out = None
        if X is None and self._is_prefit():
            held_out = self._drawn_rows(by_labels) if by_labels or by_scores else None
        elif by_labels or by_scores or not (self._is_prefit() or is_foreign_array(X)):
            X, y, weight = self._check_rows(X, y, sample_weight)
            if by_labels or by_scores:
                score = rules.novelty is not None
                held_out = self._held_out(X, y, weight, routed, score=score, log_density=False)
        if self._fits_once and held_out is not None:
            (estimator,) = held_out.models
        elif self._is_prefit():
            estimator = self.estimator
        else:
            with without_column_warnings(held_out is not None):  # as in the cross-fits
                estimator = clone(self.estimator).fit(X, y, **routed.fit)
        self._fitted = self._refusing(estimator, rules, held_out)
        return self

    @classmethod
    def from_predictions(
        cls,
        estimator: Any,
        predictions: Predictions,
        codes: np.ndarray,
        sample_weight: Any = None,
        **params: Any,
    ) -> Self:
        """A fitted classifier from the predictions for rows that it was not fitted to.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        predictions : Predictions
            For the held-out rows, as `kernelpool.inspection.predictions` returns them; with `score`
            where `novelty` is not None.
        codes : ndarray of int of shape (n_samples,)
            Their classes, as positions in `classes_`; below 0 where there is none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        **params : dict
            Parameters of the constructor.

        Returns
        -------
        model : RejectClassifier
            Fitted.
        """
        model = cls(estimator, **params)
        model._validate_params()
        held_out = HeldOut.by_one(estimator, predictions, codes, sample_weight)
        model._fitted = model._refusing(estimator, model._rules(), held_out)
        return model

    def _refusing(
        self, estimator: Any, rules: Thresholds, held_out: HeldOut | None
    ) -> FittedReject:
        """The fitted state, with thresholds and labels of refusal."""
        classes = np.asarray(estimator.classes_)
        thresholds = rules if held_out is None else self._thresholds(rules, held_out)
        wanted = rules.novelty is not None or self.novelty == self.ambiguity == "auto"
        if wanted and thresholds.novelty is None:
            warn(
                f"{type(self.estimator).__name__} has no densities (score_samples), so that no row "
                f"is refused as novel. Use a classifier with densities, such as "
                f"SharedKernelClassifier, or pass novelty=None.",
                UserWarning,
            )
        return FittedReject(
            estimator,
            thresholds,
            _refusal_label("ambiguous_label", self.ambiguous_label, 2, "ambiguous", classes),
            _refusal_label("novel_label", self.novel_label, 1, "novel", classes),
        )

    @property
    def _inner(self) -> Any:
        return self._fitted.estimator

    @property
    def ambiguity_threshold_(self) -> float | None:
        """Rows with a larger ambiguity are ambiguous."""
        return self._fitted.thresholds.ambiguity  # type: ignore[no-any-return]

    @property
    def novelty_threshold_(self) -> float | None:
        """Rows with a smaller log-density are novel."""
        return self._fitted.thresholds.novelty  # type: ignore[no-any-return]

    # -- thresholds --------------------------------------------------------------------------------

    def _by_rows(self, rules: Thresholds) -> tuple[bool, bool]:
        """Whether ambiguity and novelty are set on held-out rows."""
        return (
            rules.ambiguity is not None and self.ambiguity_rule != "threshold",
            rules.novelty is not None and self.novelty_rule == "rate",
        )

    def _drawn_rows(self, by_labels: bool) -> HeldOut:
        """Rows drawn from the fitted model, by which novelty is set where none are passed."""
        if by_labels:
            raise KernelpoolError(
                f"ambiguity_rule={self.ambiguity_rule!r} needs rows with labels: pass them to fit."
            )
        inner = innermost(self.estimator)
        if not hasattr(inner, "sample"):
            raise KernelpoolError(
                f"{type(inner).__name__} cannot draw rows, by which novelty is set: pass rows to "
                "fit."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # arrays have no feature names
            rows = predictions(inner, inner.sample(N_DRAWN, random_state=0)[0])
        return HeldOut.by_one(self.estimator, rows, rows.predicted)

    def _thresholds(self, rules: Thresholds, held_out: HeldOut) -> Thresholds:
        """The thresholds that the rules set on held-out rows."""
        ambiguity: Any = rules.ambiguity
        novelty: Any = rules.novelty
        rows = held_out.rows
        by_labels, by_scores = self._by_rows(rules)
        if rows.score is None:
            novelty = None  # a pool may have come out without densities
        elif by_scores:
            novelty = novelty_threshold(novelty, rows.score, held_out.weight)
        if by_labels:
            counted = np.ones(len(rows), bool)
            if self.ambiguity_rule != "rate":
                # errors are counted among rows that have a class and are not novel
                novel = Thresholds(novelty=novelty).decide(rows.ambiguity, rows.score)
                counted = (held_out.codes >= 0) & (novel != Decision.NOVEL)
            ambiguity = ambiguity_threshold(
                ambiguity,
                self.ambiguity_rule,
                rows.ambiguity[counted],
                (rows.probability.argmax(axis=1) != held_out.codes)[counted],
                held_out.weight[counted],
            )
        return Thresholds(ambiguity, novelty)

    def _rules(self) -> Thresholds:
        """`ambiguity` and `novelty` as numbers, whatever they stand for, or None."""
        automatic = isinstance(self.ambiguity, str) and isinstance(self.novelty, str)
        has_density = hasattr(self.estimator, "score_samples")
        ambiguity: Any = self.ambiguity
        novelty: Any = self.novelty
        if isinstance(ambiguity, str):
            ambiguity = DEFAULT_AMBIGUITY if automatic else None
        if isinstance(novelty, str):
            novelty = DEFAULT_NOVELTY if automatic and has_density else None
            if novelty is not None and self.novelty_rule != "rate":
                raise KernelpoolError(
                    "novelty must be the lowest log-density to accept where "
                    "novelty_rule='threshold'; got 'auto'."
                )
        elif novelty is not None and not has_density:
            raise KernelpoolError(
                "novelty needs a classifier with densities (score_samples), such as "
                f"SharedKernelClassifier; {type(self.estimator).__name__} has none. Set "
                f"novelty=None."
            )
        if novelty is not None and self.novelty_rule == "rate" and not 0 <= novelty < 1:
            raise KernelpoolError(
                f"novelty must lie in [0, 1) where novelty_rule='rate'; got {novelty}."
            )
        return Thresholds(ambiguity, novelty)

    # -- decisions ---------------------------------------------------------------------------------

    def decide(self, X: Any) -> np.ndarray:
        """Whether each row is accepted, ambiguous or novel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of int8 of shape (n_samples,)
            Codes of `kernelpool.inspection.predictions.Decision`: 0 for an accepted row, 1 for an
            ambiguous, 2 for a novel one.
        """
        return self._predicted(X, labels=False).decision

    def accepted(self, X: Any) -> np.ndarray:
        """Whether each row gets the label of a class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        accepted : ndarray of bool of shape (n_samples,)
            False for rows that are ambiguous or novel.
        """
        return self.decide(X) == Decision.ACCEPTED

    def predict(self, X: Any) -> np.ndarray:
        """Label of each row, or the label of its refusal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels of `classes_`, `ambiguous_label_` and `novel_label_`, of the type of the classes;
            wider only where that type cannot hold the labels of refusal (booleans, unsigned
            numbers, short strings).
        """
        fitted = self._fitted
        rows = self._predicted(X)
        label = rows.classes.take(rows.predicted)
        if fitted.thresholds == Thresholds():
            return label
        refusals = [fitted.ambiguous_label, fitted.novel_label]
        if label.dtype != object:
            label = label.astype(np.result_type(label.dtype, *map(np.min_scalar_type, refusals)))
        label[rows.decision == Decision.AMBIGUOUS] = fitted.ambiguous_label
        label[rows.decision == Decision.NOVEL] = fitted.novel_label
        return label

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Predictions:
        return self._predicted(X, score=score, log_density=log_density)

    def _predicted(self, X: Any, score: bool = False, **wanted: bool) -> Predictions:
        thresholds = self._fitted.thresholds
        score = score or thresholds.novelty is not None
        rows = predictions(self._fitted.estimator, X, score=score, **wanted)
        return replace(rows, decision=thresholds.decide(rows.ambiguity, rows.score))

    # -- evaluation --------------------------------------------------------------------------------

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right labels among the accepted rows.

        It rises as more rows are refused: compare `mean_cost` instead where refusals differ.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            In [0, 1]; 0 with a warning where no row is accepted.
        """
        return self.score_of(y, self.predict(X), sample_weight)

    def score_of(self, y: Any, predicted: Any, weight: Any = None) -> float:
        """The score of predictions."""
        labels = label_column(y, len(predicted))
        refused = np.isin(predicted, [self.ambiguous_label_, self.novel_label_])
        weight = np.where(refused, 0.0, given_weights(labels, weight))
        if not weight.sum() > 0:
            warn(
                "No row is accepted, so that the share of right labels is undefined; it is set to "
                "0.",
                UndefinedMetricWarning,
            )
            return 0.0
        return float(weight @ (predicted == labels) / weight.sum())

    def mean_cost(self, X: Any, y: Any, refusal: float, sample_weight: Any = None) -> float:
        """Chow's cost: an error costs one, a refusal of either kind `refusal`, a right label
        nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        refusal : float
            What a refusal costs.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        cost : float
            A mean over all rows.
        """
        _, wrong, weight, decision = self._evaluated(X, y, sample_weight)
        cost = np.where(decision == Decision.ACCEPTED, wrong, refusal)
        return float(weight @ cost / weight.sum())

    def coverage_curve(self, X: Any, y: Any, sample_weight: Any = None) -> CoverageCurve:
        """Error of accepted rows against the share that is accepted, for every threshold of
        ambiguity.

        Novelty stays as it is set: novel rows are never accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        curve : CoverageCurve
            A named tuple of `coverage`, `error` and `thresholds`, all rising with the threshold but
            for the error.
        """
        ambiguity, wrong, weight, decision = self._evaluated(X, y, sample_weight)
        return coverage_curve(ambiguity, wrong, weight, decision == Decision.NOVEL)

    def _evaluated(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, ...]:
        """Ambiguity of each row, whether its label is wrong, its weight, and the decision."""
        rows = self._predicted(X)
        y = label_column(y, len(rows))
        wrong = rows.classes.take(rows.predicted) != y
        return rows.ambiguity, wrong, given_weights(y, sample_weight), rows.decision

    # -- predictions of the wrapped classifier -----------------------------------------------------

    predict_proba = _delegated("predict_proba", "Class probabilities, untouched by any refusal.")
    predict_log_proba = _delegated("predict_log_proba", "Logarithm of `predict_proba`.")
    decision_function = _delegated("decision_function", "Decision function of the classifier.")
    score_samples = _delegated("score_samples", "log p(x), by which rows are novel.")
    log_density = _delegated("log_density", "log p(x|C_k) of every class.")

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)

    def _describe(self) -> Description:
        inside = describe(self.estimator_)
        return Description(f"{inside.sentence} {refusals(self)}", inside.kernels)


def _refusal_label(name: str, label: Any, below: int, word: str, classes: np.ndarray) -> Any:
    """The `label` of the parameter `name`; without one, where classes are numbers, so far `below`
    all of them, else `word`.
    """
    are_numbers = classes.dtype.kind in "biuf"
    taken = classes.tolist()
    if label is None:
        kind = float if classes.dtype.kind == "f" else int
        label = kind(np.floor(min(float(classes.min()), 0.0))) - below if are_numbers else word
    elif isinstance(label, str) == are_numbers:
        expected = "a number" if are_numbers else "a string"
        raise KernelpoolError(f"{name} must be {expected}, as the classes are; got {label!r}.")
    if label in taken:
        raise KernelpoolError(
            f"{name} must not be one of the classes {taken}; got {label!r}. Pass another."
        )
    return label


# -- thresholds ------------------------------------------------------------------------------------


def novelty_threshold(rate: float, score: np.ndarray, weight: np.ndarray) -> float:
    """The log-density below which at most the share `rate` of ordinary rows lies, from those of
    held-out rows.
    """
    score = np.where(np.isnan(score), -np.inf, score)
    no_density = float(weight[score == -np.inf].sum() / weight.sum())
    if no_density > rate:
        warn(
            f"{100 * no_density:.1f} % of the held-out rows have no density at all and count as "
            f"novel, more than novelty={rate}. Use wider kernels, or kernels that reach "
            "everywhere, such as kernel='gaussian'.",
            UserWarning,
        )
    return max(-_rate_threshold("novelty", -score, weight, rate), NOTHING_BELOW)


def _rate_threshold(name: str, values: np.ndarray, weight: np.ndarray, rate: float) -> float:
    """The least of `values` that a new row of the same law exceeds with a probability of at most
    `rate`; inf if there is none.

    The new row is as likely as any to be the largest, the second largest and so on of all n + 1. So
    it exceeds the j-th largest value with a probability of at most j / (n + 1). With too few rows
    for the rate it is the largest value.
    """
    level, up_to, _ = accepted_up_to(values, np.zeros(len(values)), weight)
    n_rows = up_to[-1]
    if 0 < rate * (n_rows + 1) < 1:
        warn(
            f"{name}={rate} needs at least {int(np.ceil(1 / rate)) - 1} held-out rows to set a "
            f"threshold; there are {n_rows:.0f} by weight, so that what lies beyond all of them is "
            f"refused. Raise {name}, or pass more rows.",
            UserWarning,
        )
        return float(level[-1])
    enough = n_rows - up_to + 1 <= rate * (n_rows + 1)
    return float(level[np.argmax(enough)]) if enough.any() else float("inf")


def ambiguity_threshold(
    value: float, rule: str, ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray
) -> float:
    """The ambiguity above which a row is refused, from those of held-out rows and whether each is
    misclassified.

    By the rule "cost" E + t R is least, and of several such thresholds the one that refuses least
    is taken; by the rule "error" the most rows are accepted of which at most the share `value` is
    wrong.
    """
    if rule == "rate":
        return min(_rate_threshold("ambiguity", ambiguity, weight, value), REFUSE_NONE)
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight)
    accepted = np.append(0.0, accepted)
    errors = np.append(0.0, errors)
    if rule == "cost":
        cost = (weight.sum() - accepted) * value + errors
        n_levels = len(level) - int(np.argmin(cost[::-1]))
    else:
        n_levels = int(np.flatnonzero(errors <= value * accepted)[-1])
    if n_levels == len(level):
        return REFUSE_NONE  # also of rows that are more ambiguous than any that was held out
    if n_levels:
        return float(level[n_levels - 1])
    warn(
        f"No held-out row is certain enough for ambiguity={value} with ambiguity_rule={rule!r}: "
        "every row will be refused. Raise it, or use a better classifier.",
        UserWarning,
    )
    return REFUSE_ALL
