r"""Prediction sets that hold the true class as often as they promise, and nothing where a row is like none of the classes.

V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer 2005: p-values from ranks, and the
conditional version, one class at a time. V. Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial
Intelligence 74, 2015; R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+",
Annals of Statistics 49(1), 2021: no rows are lost to calibration.

.. math::

    p_k(x) = \frac{1 + \sum_f \#\{i \in f: s_f(x_i, y_i) \le s_f(x, k)\}}{1 + n}, \qquad
    \text{set}(x) = \{k: p_k(x) > \text{error}\}

====================  =======================================================================================
:math:`s_f(x, k)`     how well class k conforms to row x, by the classifier that has not seen fold f
:math:`P(C_k|x)`      as such a score: the smallest sets
log p(x|C_k)          as such a score: a row that is like none of the classes gets the empty set
====================  =======================================================================================

Departures: both scores are used at once. A class is in the set if neither refuses it, each at its share of the error, so that
the promise holds by the union bound. The most probable class is then refused by its density alone, which can only make the
promise safer: where the classifier errs less often than the error allows, probabilities alone would leave ambiguous rows with
no class at all, and an empty set is to say that a row is like none of the classes.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..arrays import to_numpy
from ..errors import KernelpoolError, warn
from ..inspection.notebook import NotebookMixin
from ..inspection.pipeline import is_fitted_estimator, knows_log_density, log_density
from ..registry import FEATURE_NAMES, FEATURES, EstimatorRecord, Field, register
from ..training.held_out import splitter
from .pooled import PooledClassifier

SCORES = ("auto", "probability", "density", "both")

NOVELTY_SHARE = 0.1
"""Share of the error that is spent on the density where both scores are used."""


class ConformalClassifier(NotebookMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier that answers with sets of classes, which hold the true one with a promised probability.

    Of rows like those of the fit, at most the share `error` has a true class outside its set, whatever the classifier and
    whatever the law of the rows. An ambiguous row gets several classes, or the most probable one where that keeps the
    promise. A row that is like none of the classes gets none: its density is too low for each of them.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, and for scores of density `log_density`. One that is fitted is taken as it is, and the rows of
        `fit` calibrate it: they must be others than it was fitted to.
    error : float, default=0.1
        How often the true class may be missing. `predict_set` takes others.
    per_class : bool, default=False
        Whether the promise is kept within each class, and so also where classes become more or less frequent (conditional
        conformal prediction). Rare classes then need rows enough: 1 / error - 1 at least, or they are in every set.
    conformity : {"auto", "probability", "density", "both"}, default="auto"
        By what a class conforms to a row. "both" spends a tenth of the error on the density, so that only rows unlike all of
        the classes lose by it, and get the empty set; by "probability" alone ambiguous rows may get it too. "auto" is
        "both" where the classifier knows densities.
    cv : int, float, cross-validation generator or iterable, default=None
        Which rows calibrate, each by a classifier that has not seen it: None or an int for so many stratified folds (5); a
        float for that share of the rows, held out of the fit. A `PooledClassifier` brings folds of its own.
    random_state : int, RandomState instance or None, default=None
        Seed of the split where `cv` is a float.

    Attributes
    ----------
    estimators_ : list of classifiers
        One a fold; one in all where rows were held out, where it came fitted, and for a pool.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    calibration_probability_, calibration_density_ : ndarray of shape (n_calibration,)
        Scores of the calibration rows for their own classes; density is NaN where it is not used.
    calibration_codes_, calibration_folds_ : ndarray of shape (n_calibration,)
        Their classes, as positions in `classes_`, and the classifier that judged each.
    calibration_weights_ : ndarray of shape (n_calibration,)
        How often each counts.
    n_features_in_ : int
        Number of features, where the classifier tells.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    RejectClassifier : One label or a refusal.

    Notes
    -----
    The promise is exact where one classifier judged rows that it was not fitted to: a fitted estimator, or a float as `cv`.
    With folds the true class is missing with a probability of at most 2 error (Barber et al. 2021), and in practice of about
    error or less.

    Examples
    --------
    >>> from kernelpool import ConformalClassifier, SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> model = ConformalClassifier(SharedKernelClassifier.prbf(12, random_state=0), error=0.05).fit(X, y)
    >>> model.predict_set([[0.0, 0.0], [0.0, 1.5], [50.0, 50.0]])
    array([[ True, False],
           [ True,  True],
           [False, False]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "error": [Interval(Real, 0, 1, closed="neither")],
        "per_class": ["boolean"],
        "conformity": [StrOptions(set(SCORES))],
        "cv": ["cv_object", Interval(RealNotInt, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        error: float = 0.1,
        per_class: bool = False,
        conformity: str = "auto",
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.error = error
        self.per_class = per_class
        self.conformity = conformity
        self.cv = cv
        self.random_state = random_state

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifiers and score the calibration rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, for calibration; for the classifiers as well, where their `fit` takes weights.

        Returns
        -------
        self : ConformalClassifier
            The fitted estimator.
        """
        knows = knows_log_density(self.estimator)
        if self.conformity in ("density", "both") and not knows:
            raise KernelpoolError(
                f"conformity={self.conformity!r} needs a classifier with log_density, such as SharedKernelClassifier; "
                f"{type(self.estimator).__name__} has none. Use conformity='probability'."
            )
        if y is None:
            raise ValueError(
                "ConformalClassifier requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weight = (
            np.ones(len(y))
            if sample_weight is None
            else _check_sample_weight(sample_weight, y, dtype=np.float64)
        )
        given = {} if sample_weight is None else {"sample_weight": weight}
        if self.cv is None and is_fitted_estimator(self.estimator):
            models, parts = [self.estimator], [(np.arange(len(y)), *_scores(self.estimator, X, y))]
        elif self.cv is None and isinstance(self.estimator, PooledClassifier):
            pool = clone(self.estimator).fit(X, y, **given)
            codes = np.searchsorted(pool.classes_, y)
            held = np.flatnonzero(np.isfinite(pool.held_out_proba_).all(axis=1))
            density = getattr(
                pool, "held_out_log_density_", np.full((len(y), len(pool.classes_)), np.nan)
            )
            own = held, codes[held]
            models, parts = [pool], [(held, codes[held], pool.held_out_proba_[own], density[own])]
        else:
            models, parts = self._fit_folds(X, y, given)
        classes = np.asarray(models[0].classes_)
        if any(len(model.classes_) != len(classes) for model in models):
            raise KernelpoolError(
                "Every class needs a row in every fold: pass cv with fewer folds, or more rows of rare classes."
            )
        rows = np.concatenate([at for at, *_ in parts])
        if not weight[rows].sum() > 0:
            raise KernelpoolError(
                "sample_weight is zero for every calibration row; at least one must be positive."
            )
        self.estimators_, self.calibration_weights_ = models, weight[rows]
        self.calibration_codes_ = np.concatenate([codes for _, codes, *_ in parts])
        self.calibration_probability_ = np.concatenate(
            [probability for *_, probability, _ in parts]
        )
        self.calibration_density_ = np.concatenate([density for *_, density in parts])
        self.calibration_folds_ = np.concatenate(
            [np.full(len(at), f) for f, (at, *_) in enumerate(parts)]
        )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(models[0], name):
                setattr(self, name, getattr(models[0], name))
        self._warn_if_too_few()
        return self

    def _fit_folds(
        self, X: Any, y: np.ndarray, given: dict[str, np.ndarray]
    ) -> tuple[list[Any], list[Any]]:
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            cv = StratifiedShuffleSplit(1, test_size=self.cv, random_state=self.random_state)
        else:
            cv = splitter(self.cv, y)
        models, parts = [], []
        for train, test in cv.split(X, y):
            unseen = np.setdiff1d(y[test], y[train])
            if len(unseen):
                name, count = unseen.tolist()[0], int((y == unseen[0]).sum())
                raise KernelpoolError(
                    f"Every class needs rows both to fit and to calibrate; class {name!r} has {count}, all of them held out "
                    f"at once. Drop the class, or pass an estimator that is fitted."
                )
            model = clone(self.estimator).fit(
                _safe_indexing(X, train),
                y[train],
                **{name: value[train] for name, value in given.items()},
            )
            models.append(model)
            parts.append((test, *_scores(model, _safe_indexing(X, test), y[test])))
        return models, parts

    def _warn_if_too_few(self) -> None:
        counts = np.bincount(
            self.calibration_codes_, self.calibration_weights_, minlength=len(self.classes_)
        )
        fewest = counts.min() if self.per_class else counts.sum()
        if (fewest + 1) * self.error < 1:
            which = (
                f"class {self.classes_.tolist()[int(counts.argmin())]!r} has"
                if self.per_class
                else "there are"
            )
            warn(
                f"error={self.error} needs {int(np.ceil(1 / self.error)) - 1} calibration rows; {which} {fewest:.0f}, so that "
                f"{'it is' if self.per_class else 'every class is'} in every set. Raise error, or pass more rows.",
                UserWarning,
            )

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the classes."""
        return np.asarray(self.estimators_[0].classes_)

    # -- sets -------------------------------------------------------------------------------------------------------

    def p_values(self, X: Any) -> np.ndarray:
        """p-values of all classes: how unusual each row would be as one of that class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p_value : ndarray of shape (n_samples, n_classes)
            A class is in the set where it exceeds the error.
        """
        check_is_fitted(self)
        weights = self._score_weights()
        found: np.ndarray | None = None
        for name, share in weights.items():
            p = self._ranked(X, name) / share
            if name == "probability" and len(weights) > 1:
                p[np.arange(len(p)), np.argmax(self.predict_proba(X), axis=1)] = 1.0
            found = p if found is None else np.minimum(found, p)
        assert found is not None
        return np.minimum(found, 1.0)

    def _score_weights(self) -> dict[str, float]:
        """The scores in use and the share of the error that each may spend."""
        knows = np.isfinite(self.calibration_density_).any()
        kind = self.conformity if self.conformity != "auto" else "both" if knows else "probability"
        if kind == "both":
            return {"probability": 1 - NOVELTY_SHARE, "density": NOVELTY_SHARE}
        return {kind: 1.0}

    def _ranked(self, X: Any, name: str) -> np.ndarray:
        """p-values from one score, (n, K)."""
        n_classes = len(self.classes_)
        calibration = (
            self.calibration_probability_ if name == "probability" else self.calibration_density_
        )
        below: np.ndarray | float = 0.0
        for f, model in enumerate(self.estimators_):
            score = (
                np.asarray(to_numpy(model.predict_proba(X)), np.float64)
                if name == "probability"
                else log_density(model, X)
            )
            below = below + self._weight_below(score, calibration, self.calibration_folds_ == f)
        total = self._weight_below(
            np.full((1, n_classes), np.inf), calibration, np.ones(len(calibration), bool)
        )
        return np.asarray((below + 1) / (total + 1))

    def _weight_below(
        self, score: np.ndarray, calibration: np.ndarray, chosen: np.ndarray
    ) -> np.ndarray:
        """Weight of the calibration rows whose score is at most each of `score`, (n, K)."""
        found = np.empty(score.shape)
        for k in range(score.shape[1]):
            counted = chosen & ((self.calibration_codes_ == k) | (not self.per_class))
            level, weight = calibration[counted], self.calibration_weights_[counted]
            level = np.where(np.isnan(level), -np.inf, level)
            order = np.argsort(level, kind="stable")
            up_to = np.concatenate([[0.0], np.cumsum(weight[order])])
            mine = np.where(np.isnan(score[:, k]), -np.inf, score[:, k])
            found[:, k] = up_to[np.searchsorted(level[order], mine, side="right")]
        return found

    def predict_set(self, X: Any, error: float | None = None) -> np.ndarray:
        """The set of classes of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        error : float, default=None
            How often the true class may be missing; None takes the parameter.

        Returns
        -------
        members : ndarray of bool of shape (n_samples, n_classes)
            In the order of `classes_`; no class at all for a row that is like none of them.
        """
        wanted = self.error if error is None else error
        if not 0 < wanted < 1:
            raise KernelpoolError(f"error must lie between 0 and 1; got {wanted}.")
        return np.asarray(self.p_values(X) > wanted)

    # -- labels -----------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities: the mean of the classifiers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return np.mean([to_numpy(model.predict_proba(X)) for model in self.estimators_], axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        likely = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[likely])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags, wrapped = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags = wrapped.input_tags, wrapped.classifier_tags
        return tags


def _scores(model: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of the classes of rows, and both scores of each row for its own class, three of shape (n,)."""
    classes = np.asarray(model.classes_)
    codes = np.searchsorted(classes, y)
    if (codes >= len(classes)).any() or (classes[np.minimum(codes, len(classes) - 1)] != y).any():
        raise KernelpoolError(
            f"y must hold labels of the classes {classes.tolist()}, which the classifier was fitted to."
        )
    own = np.arange(len(y)), codes
    probability = np.asarray(to_numpy(model.predict_proba(X)), np.float64)[own]
    density = np.full(len(y), np.nan)
    if knows_log_density(model):
        density = log_density(model, X)[own]
    return codes, probability, density


register(
    EstimatorRecord(
        ConformalClassifier,
        describe="kernelpool.inspection.pool:describe_conformal",
        fitted={
            "estimators_": Field("list", parts=(Field("model"),), size="L"),
            "calibration_probability_": Field("floats", ("C",), low=0.0, high=1.0 + 1e-9),
            "calibration_density_": Field("floats", ("C",), finite=False),
            "calibration_codes_": Field("integers", ("C",), low=0),
            "calibration_folds_": Field("integers", ("C",), low=0),
            "calibration_weights_": Field("floats", ("C",), low=0.0),
        },
        optional={**FEATURES, **FEATURE_NAMES},
        parameters={"estimator": Field("model")},
        required=frozenset({"estimator"}),
        check="kernelpool.app.files.checks:conformal",
    )
)
