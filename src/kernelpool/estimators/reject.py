"""A classifier with a reject option: no label for rows that are ambiguous, or unlike anything seen.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory 16(1), 1970.
The rules and their symbols are those of `kernelpool.training.reject`.

A row is *novel* where its density is below a threshold, and else *ambiguous* where its largest class probability is. Novelty
comes first: probabilities mean little where there were no rows to learn them from.
"""

from copy import copy
from enum import IntEnum
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import (
    Bunch,
    _safe_indexing,
    assert_all_finite,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
)

from ..arrays import to_numpy
from ..errors import KernelpoolError, warn
from ..inspection.metrics import CoverageCurve, ambiguity_of, coverage_curve
from ..inspection.notebook import NotebookMixin
from ..inspection.pipeline import is_fitted_estimator, unwrap
from ..registry import FEATURE_NAMES, FEATURES, EstimatorRecord, Field, register
from ..training.held_out import splitter
from ..training.reject import HeldOutPredictions, ambiguity_threshold, is_novel, novelty_threshold

DEFAULT_AMBIGUITY, DEFAULT_NOVELTY = 0.2, 0.01
"""What is refused unless told otherwise."""

N_DRAWN = 10_000
"""Rows drawn from a model that came fitted, to tell how rare a row may be."""


class Decision(IntEnum):
    """What became of a row: the codes that `RejectClassifier.decide` returns."""

    ACCEPTED = 0
    AMBIGUOUS = 1
    NOVEL = 2


def _delegated(method: str, what: str, shape: str) -> Any:
    """A method that is there where the wrapped classifier has it, and calls it; `what` and `shape` document it."""

    def has(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    def call(self: Any, X: Any) -> Any:
        self._ready()
        return getattr(self.estimator_, method)(X)

    call.__name__, call.__doc__ = method, DELEGATED_DOCSTRING.format(what=what, shape=shape)
    return available_if(has)(call)


DELEGATED_DOCSTRING = """{what}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        answer : array of shape {shape}
            As the classifier has it.
        """


class RejectClassifier(NotebookMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier that may refuse: rows that are ambiguous, or unlike anything seen, get a label of their own.

    A row is *novel* where `score_samples` of the wrapped classifier, :math:`\log p(x)`, is below a threshold, and otherwise
    *ambiguous* where :math:`1 - \max_k P(C_k|x)`, by the model the probability that the label is wrong, is above another.
    Refusing just those rows is the best trade of errors against refusals there is (Chow 1970), if the probabilities are right.

    Thresholds are given, or set on rows that the classifier was not fitted to. Unless told otherwise, rows are refused whose
    label is wrong with a probability above 0.2, and, where the classifier knows densities, rows rarer than all but one ordinary
    row in a hundred.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `predict_proba`; for `novelty` it needs `score_samples` as well, as density classifiers have. One
        that is fitted, or loaded from a file, is taken as it is, and no call of `fit` is needed.
    ambiguity : float, "auto" or None, default="auto"
        How ambiguous a row may be; `ambiguity_rule` says in what sense. None refuses no row for it; "auto" is 0.2 where
        `novelty` is "auto" as well, and else None.
    novelty : float, "auto" or None, default="auto"
        How unlike the training rows a row may be; `novelty_rule` says in what sense. None refuses no row for it; "auto" is 0.01
        where the classifier knows densities and `ambiguity` is "auto" as well, and else None.
    ambiguity_rule : {"threshold", "rate", "error", "cost"}, default="threshold"
        What `ambiguity` is:

        - "threshold": the largest probability of an error, :math:`1 - \max_k P(C_k|x)`, that is accepted;
        - "rate": the share of all rows that may be ambiguous;
        - "error": the share of errors to be had among accepted rows, with as few refusals as that takes;
        - "cost": what a refusal costs where an error costs one; the threshold with the least cost is taken. With the right
          probabilities that is "threshold" (Chow's rule); this one does not rely on them.

        All but the first look at held-out rows.
    novelty_rule : {"rate", "threshold"}, default="rate"
        What `novelty` is: the share of ordinary rows that may be called novel, for which held-out rows are looked at, or the
        lowest log-density that is accepted. Rows of no density at all (no kernel of a `ParzenClassifier` covers them) are
        novel under either.
    ambiguous_label, novel_label : int, float, str or None, default=None
        What `predict` says of such rows. None takes "ambiguous" and "novel" where classes are strings, and for numbers -2 and
        -1, scikit-learn's mark of an outlier; where there are negative classes, the next lower numbers. They must not be
        classes, and may be the same.
    cv : int, float, cross-validation generator, iterable or "prefit", default=None
        Which rows are held out, as in `sklearn.model_selection.TunedThresholdClassifierCV`: None or an int for so many
        stratified folds (5), each judged by a classifier fitted to the others; a float for that share of the rows; "prefit"
        if `estimator` is fitted, to other rows than are passed to `fit`. None means that too where it is fitted; without rows,
        novelty is then judged by rows drawn from the model. A `sklearn.frozen.FrozenEstimator` does as well, and survives
        `clone`. Nothing is held out where both thresholds are given.
    refit : bool, default=True
        Whether the classifier is fitted again to all rows after the thresholds are set. False keeps the one that was judged,
        and so the exactness of "rate"; `cv` must then be a float or a single split.
    random_state : int, RandomState instance or None, default=None
        Seed of the split where `cv` is a float.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, without the two labels of refusal.
    ambiguity_threshold_ : float or None
        Rows with a larger :math:`1 - \max_k P(C_k|x)` are ambiguous. -1 refuses all.
    novelty_threshold_ : float or None
        Rows with a smaller log-density are novel. -1.8e308, the lowest number, refuses only rows of no density.
    ambiguous_label_, novel_label_ : int, float or str
        The labels of refusal.
    n_features_in_ : int
        Number of features, where the classifier tells.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Sets the threshold between two classes.

    Notes
    -----
    With "rate", the threshold is the j-th largest of the n held-out values with j = floor(rate (n + 1)). A new row of the same
    law exceeds it with a probability of at most rate, whatever the law and the classifier, if the classifier that is used is
    the one that was judged: `cv="prefit"`, a frozen estimator, or `refit=False`. With `refit=True` it holds nearly.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory 16(1), 1970.

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
        "cv": ["cv_object", StrOptions({"prefit"}), Interval(RealNotInt, 0, 1, closed="neither")],
        "refit": ["boolean"],
        "random_state": ["random_state"],
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
        refit: bool = True,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.ambiguity = ambiguity
        self.novelty = novelty
        self.ambiguity_rule = ambiguity_rule
        self.novelty_rule = novelty_rule
        self.ambiguous_label = ambiguous_label
        self.novel_label = novel_label
        self.cv = cv
        self.refit = refit
        self.random_state = random_state

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier and set the thresholds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows. A classifier that is fitted needs none, but for the rules "rate" (of ambiguity), "error" and "cost".
        y : array-like of shape (n_samples,), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, for the classifier where it takes weights and for the thresholds.
        **fit_params : dict
            Passed to `fit` of the classifier, and of the splitter, by scikit-learn's metadata routing.

        Returns
        -------
        self : RejectClassifier
            The fitted estimator.
        """
        ambiguous, novel = self._check_parameters()
        routed = self._route(sample_weight, fit_params)
        if self._is_prefit() and X is None:
            estimator = self._fit_estimator(X, y, routed)
            held_out = self._drawn(estimator, ambiguous, novel)
        elif self._needs_held_out_rows(ambiguous, novel):
            estimator, held_out = self._fit_and_predict_held_out(
                X, y, sample_weight, routed, novel is not None
            )
        else:
            estimator, held_out = self._fit_estimator(X, y, routed), None
        if held_out is not None and not held_out.weight.sum() > 0:
            raise KernelpoolError(
                "sample_weight is zero for every held-out row; at least one must be positive."
            )
        classes = np.asarray(estimator.classes_)
        novel_label = _refusal_label("novel_label", self.novel_label, 1, "novel", classes)
        ambiguous_label = _refusal_label(
            "ambiguous_label", self.ambiguous_label, 2, "ambiguous", classes
        )
        novelty, ambiguity = None, None
        if novel is not None:
            enough = (
                self.novelty != "auto"
                or held_out is None
                or novel * (held_out.weight.sum() + 1) >= 1
            )
            novelty = novelty_threshold(novel if enough else 0.0, self.novelty_rule, held_out)
        if ambiguous is not None:
            ambiguity = ambiguity_threshold(
                ambiguous, self.ambiguity_rule, held_out, classes=classes, novelty_threshold=novelty
            )
        self.estimator_ = estimator
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        self.novel_label_, self.ambiguous_label_ = novel_label, ambiguous_label
        self.novelty_threshold_, self.ambiguity_threshold_ = novelty, ambiguity
        return self

    def _ready(self) -> None:
        """A classifier that came fitted needs no call of `fit`."""
        if not hasattr(self, "estimator_") and self._is_prefit():
            self.fit()
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _is_prefit(self) -> bool:
        return bool(isinstance(self.cv, str)) or (
            self.cv is None and is_fitted_estimator(self.estimator)
        )

    def _check_parameters(self) -> tuple[float | None, float | None]:
        """`ambiguity` and `novelty` as numbers."""
        automatic = isinstance(self.ambiguity, str) and isinstance(self.novelty, str)
        ambiguous: Any = (
            self.ambiguity
            if not isinstance(self.ambiguity, str)
            else DEFAULT_AMBIGUITY
            if automatic
            else None
        )
        novel: Any = self.novelty
        if isinstance(self.novelty, str):
            novel = (
                DEFAULT_NOVELTY if automatic and hasattr(self.estimator, "score_samples") else None
            )
            if novel is not None and self.novelty_rule != "rate":
                raise KernelpoolError(
                    "novelty must be the lowest log-density to accept where novelty_rule='threshold'; got 'auto'."
                )
        elif self.novelty is not None:
            if not hasattr(self.estimator, "score_samples"):
                raise KernelpoolError(
                    f"novelty needs a classifier that knows how likely a row is (score_samples), such as "
                    f"SharedKernelClassifier; {type(self.estimator).__name__} does not. Set novelty=None."
                )
            if self.novelty_rule == "rate" and not 0 <= self.novelty < 1:
                raise KernelpoolError(
                    f"novelty must lie in [0, 1) where novelty_rule='rate'; got {self.novelty}."
                )
            if np.isnan(self.novelty):
                raise KernelpoolError("novelty must be a number; got nan.")
        return None if ambiguous is None else float(ambiguous), None if novel is None else float(
            novel
        )

    def _needs_held_out_rows(self, ambiguous: float | None, novel: float | None) -> bool:
        return (ambiguous is not None and self.ambiguity_rule != "threshold") or (
            novel is not None and self.novelty_rule == "rate"
        )

    def _drawn(
        self, estimator: Any, ambiguous: float | None, novel: float | None
    ) -> HeldOutPredictions | None:
        """Log-densities of rows drawn from a model that came fitted, where novelty is a rate."""
        if ambiguous is not None and self.ambiguity_rule != "threshold":
            raise KernelpoolError(
                f"ambiguity_rule={self.ambiguity_rule!r} looks at rows with labels: pass them to fit."
            )
        if novel is None or self.novelty_rule == "threshold":
            return None
        inner = unwrap(estimator).inner
        if not hasattr(inner, "sample"):
            raise KernelpoolError(
                f"{type(inner).__name__} cannot draw rows to judge novelty by: pass rows to fit."
            )
        inner = copy(inner)
        inner.__dict__.pop("feature_names_in_", None)  # rows that are drawn have no names
        score = np.asarray(
            to_numpy(inner.score_samples(inner.sample(N_DRAWN, random_state=0)[0])), np.float64
        )
        nothing = np.zeros(N_DRAWN)
        return HeldOutPredictions(nothing, score, nothing.astype(bool), nothing, np.ones(N_DRAWN))

    def _route(self, sample_weight: Any, fit_params: dict[str, Any]) -> Any:
        """Which of the parameters of `fit` go to the classifier, and which to the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return Bunch(
                estimator=routed.estimator, splitter=routed.get("splitter", Bunch(split={}))
            )
        given = dict(fit_params)
        if sample_weight is not None:
            if has_fit_parameter(self.estimator, "sample_weight"):
                given["sample_weight"] = sample_weight
            elif not self._is_prefit() and not isinstance(self.estimator, FrozenEstimator):
                name = type(self.estimator).__name__
                warn(
                    f"{name}.fit takes no sample_weight: the weights count for the thresholds alone.",
                    UserWarning,
                )
        return Bunch(estimator=Bunch(fit=given), splitter=Bunch(split={}))

    def _fit_estimator(self, X: Any, y: Any, routed: Any) -> Any:
        """The classifier, fitted to all rows unless it came fitted."""
        if not self._is_prefit():
            return clone(self.estimator).fit(X, y, **routed.estimator.fit)
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                "cv='prefit' needs an estimator that is fitted; fit it first, or leave cv=None."
            ) from error
        return self.estimator

    def _fit_and_predict_held_out(
        self, X: Any, y: Any, sample_weight: Any, routed: Any, with_score: bool
    ) -> tuple[Any, HeldOutPredictions]:
        """The classifier, and what it, or its clones, predict for rows that were left out."""
        if y is None:
            raise ValueError("RejectClassifier requires y to be passed, but the target y is None.")
        X, y = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weight = (
            np.ones(len(y))
            if sample_weight is None
            else _check_sample_weight(sample_weight, y, dtype=np.float64)
        )
        if self._is_prefit():
            model = self._fit_estimator(X, y, routed)
            return model, _predictions(model, X, y, weight, with_score)
        folds = []
        for train, test in self._splits(X, y, routed.splitter.split):
            fit_params = _check_method_params(X, routed.estimator.fit, indices=train)
            model = clone(self.estimator).fit(_safe_indexing(X, train), y[train], **fit_params)
            folds.append(
                _predictions(model, _safe_indexing(X, test), y[test], weight[test], with_score)
            )
        names = ("ambiguity", "score", "wrong", "label", "weight")
        held_out = HeldOutPredictions(
            *(np.concatenate([getattr(fold, name) for fold in folds]) for name in names)
        )
        return self._fit_estimator(X, y, routed) if self.refit else model, held_out

    def _splits(
        self, X: Any, y: np.ndarray, split_params: dict[str, Any]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            cv = StratifiedShuffleSplit(1, test_size=self.cv, random_state=self.random_state)
        else:
            cv = splitter(self.cv, y)
        splits = list(cv.split(X, y, **split_params))
        if not self.refit and len(splits) != 1:
            raise KernelpoolError(
                f"refit=False keeps the one classifier that was judged, but cv makes {len(splits)} of them. "
                f"Use a share of the rows such as cv=0.25, or refit=True."
            )
        return splits

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the classes, without the labels of refusal."""
        if not hasattr(self, "estimator_") and self._is_prefit():
            self.fit()
        return np.asarray(self.estimator_.classes_)

    # -- decisions --------------------------------------------------------------------------------------------------

    def decide(self, X: Any) -> np.ndarray:
        """What becomes of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of int8 of shape (n_samples,)
            Codes of `kernelpool.estimators.reject.Decision`: 0 for an accepted row, 1 for an ambiguous, 2 for a novel one.
        """
        self._ready()
        ambiguity = ambiguity_of(to_numpy(self.estimator_.predict_proba(X)))
        decision = np.full(len(ambiguity), Decision.ACCEPTED, dtype=np.int8)
        if self.ambiguity_threshold_ is not None:
            decision[~(ambiguity <= self.ambiguity_threshold_)] = Decision.AMBIGUOUS
        if self.novelty_threshold_ is not None:
            decision[
                is_novel(to_numpy(self.estimator_.score_samples(X)), self.novelty_threshold_)
            ] = Decision.NOVEL
        return decision

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
        return np.asarray(self.decide(X) == Decision.ACCEPTED)

    def predict(self, X: Any) -> np.ndarray:
        """Label of each row, or the label of its refusal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels of `classes_`, `ambiguous_label_` and `novel_label_`, of the type of the classes; wider only where that
            type cannot hold the labels of refusal (booleans, unsigned numbers, short strings).
        """
        decision = self.decide(X)
        label = np.array(to_numpy(self.estimator_.predict(X)))
        if self.ambiguity_threshold_ is None and self.novelty_threshold_ is None:
            return label
        refusals = [self.ambiguous_label_, self.novel_label_]
        if label.dtype != object:
            label = label.astype(
                np.result_type(label.dtype, *(np.min_scalar_type(refusal) for refusal in refusals))
            )
        label[decision == Decision.AMBIGUOUS] = self.ambiguous_label_
        label[decision == Decision.NOVEL] = self.novel_label_
        return label

    # -- judgment --------------------------------------------------------------------------------------------------

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
            How often each row counts.

        Returns
        -------
        accuracy : float
            In [0, 1]; 0 with a warning where no row is accepted.
        """
        judged, accepted = self._judged(X, y, sample_weight)
        total = judged.weight[accepted].sum()
        if not total > 0:
            warn(
                "No row is accepted, so that the share of right labels is undefined; it is set to 0.",
                UndefinedMetricWarning,
            )
            return 0.0
        return float(1 - judged.weight[accepted] @ judged.wrong[accepted] / total)

    def mean_cost(self, X: Any, y: Any, refusal: float, sample_weight: Any = None) -> float:
        """Chow's cost: an error costs one, a refusal of either kind `refusal`, a right label nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        refusal : float
            What a refusal costs.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        cost : float
            A mean over all rows.
        """
        judged, accepted = self._judged(X, y, sample_weight)
        return float(
            judged.weight @ np.where(accepted, judged.wrong, refusal) / judged.weight.sum()
        )

    def coverage_curve(self, X: Any, y: Any, sample_weight: Any = None) -> CoverageCurve:
        """Error of accepted rows against the share that is accepted, for every threshold of ambiguity.

        Novelty stays as it is set: novel rows are never accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        curve : CoverageCurve
            A named tuple of `coverage`, `error` and `thresholds`, all rising with the threshold but for the error.
        """
        judged, _ = self._judged(X, y, sample_weight)
        return coverage_curve(
            judged.ambiguity,
            judged.wrong,
            judged.weight,
            is_novel(judged.score, self.novelty_threshold_),
        )

    def _judged(self, X: Any, y: Any, sample_weight: Any) -> tuple[HeldOutPredictions, np.ndarray]:
        self._ready()
        y = column_or_1d(to_numpy(y) if hasattr(y, "__dlpack__") else y)
        weight = (
            np.ones(len(y))
            if sample_weight is None
            else _check_sample_weight(sample_weight, y, dtype=np.float64)
        )
        judged = _predictions(self.estimator_, X, y, weight, self.novelty_threshold_ is not None)
        accepted = ~is_novel(judged.score, self.novelty_threshold_)
        if self.ambiguity_threshold_ is not None:
            accepted &= judged.ambiguity <= self.ambiguity_threshold_
        return judged, accepted

    # -- predictions of the wrapped classifier ----------------------------------------------------------------------------

    predict_proba = _delegated(
        "predict_proba", "Class probabilities, untouched by any refusal.", "(n_samples, n_classes)"
    )
    predict_log_proba = _delegated(
        "predict_log_proba", "Logarithm of `predict_proba`.", "(n_samples, n_classes)"
    )
    decision_function = _delegated(
        "decision_function",
        "Decision function of the classifier.",
        "(n_samples,) or (n_samples, n_classes)",
    )
    score_samples = _delegated(
        "score_samples", "log p(x), by which rows are novel.", "(n_samples,)"
    )
    log_density = _delegated(
        "log_density", "log p(x|C_k) of every class.", "(n_samples, n_classes)"
    )

    # -- metadata and tags --------------------------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Where `sample_weight` and other parameters go: see scikit-learn's guide to metadata routing."""
        fits = MethodMapping().add(caller="fit", callee="fit")
        splits = MethodMapping().add(caller="fit", callee="split")
        router = (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=fits)
        )
        return (
            router.add(splitter=self.cv, method_mapping=splits)
            if hasattr(self.cv, "split")
            else router
        )

    def __sklearn_tags__(self) -> Any:
        tags, wrapped = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = wrapped.input_tags
        tags.classifier_tags = wrapped.classifier_tags
        return tags


def _predictions(
    model: Any, X: Any, y: np.ndarray, weight: np.ndarray, with_score: bool
) -> HeldOutPredictions:
    ambiguity = ambiguity_of(to_numpy(model.predict_proba(X)))
    score = (
        np.asarray(to_numpy(model.score_samples(X)), np.float64)
        if with_score
        else np.zeros(len(ambiguity))
    )
    return HeldOutPredictions(ambiguity, score, to_numpy(model.predict(X)) != y, y, weight)


def _refusal_label(name: str, given: Any, below: int, word: str, classes: np.ndarray) -> Any:
    """The label that is given; or, where classes are numbers, so far `below` all of them, else `word`."""
    numbers, taken = classes.dtype.kind in "biuf", classes.tolist()
    if given is not None and isinstance(given, str) == numbers:
        wanted = "a number" if numbers else "a string"
        raise KernelpoolError(f"{name} must be {wanted}, as the classes are; got {given!r}.")
    if given is not None and given in taken:
        raise KernelpoolError(f"{name} must not be one of the classes {taken}; got {given!r}.")
    if given is not None:
        return given
    kind = float if classes.dtype.kind == "f" else int
    found = kind(np.floor(min(float(classes.min()), 0.0))) - below if numbers else word
    if found in taken:
        raise KernelpoolError(f"A class is called {found!r}: name another {name}.")
    return found


register(
    EstimatorRecord(
        RejectClassifier,
        describe="kernelpool.inspection.pool:describe_reject",
        fitted={
            "estimator_": Field("model"),
            "ambiguity_threshold_": Field("float", low=-1.0, high=1.0, options=(None,)),
            "novelty_threshold_": Field("float", low=-1.8e308, high=1.8e308, options=(None,)),
            "ambiguous_label_": Field("label"),
            "novel_label_": Field("label"),
        },
        optional={**FEATURES, **FEATURE_NAMES},
        parameters={"estimator": Field("model")},
        required=frozenset({"estimator"}),
        check="kernelpool.app.files.checks:reject",
    )
)
