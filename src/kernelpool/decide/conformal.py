r"""Prediction sets that contain the true class with a given probability, and are empty for rows
unlike all of the classes.

V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer 2005:
p-values from ranks, and the conditional version, one class at a time. V. Vovk, "Cross-conformal
predictors", Annals of Mathematics and Artificial Intelligence 74, 2015; R. F. Barber, E. J. Candes,
A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics
49(1), 2021: no rows are lost to calibration.

.. math::

    p_k(x) = \frac{1 + \sum_f \#\{i \in f: s_f(x_i, y_i) \le s_f(x, k)\}}{1 + n}, \qquad
    \text{set}(x) = \{k: p_k(x) > \text{error}\}

====================  =======================================================================================
:math:`s_f(x, k)`     how well class k conforms to row x, by the classifier that has not seen fold f
:math:`P(C_k|x)`      as such a score: the smallest sets
log p(x|C_k)          as such a score: a row that is like none of the classes gets the empty set
====================  =======================================================================================

Departures: both scores are used at once. A class is in the set if neither excludes it, each at its
share of the error, so that the error holds by the union bound. The most probable class is then
excluded by its density alone, which can only lower the error: where the classifier errs less often
than the error allows, probabilities alone would leave ambiguous rows with no class at all, and an
empty set is to mean that a row is unlike all of the classes.
"""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ..data.labels import class_codes
from ..errors import KernelpoolError, warn
from ..inspection.description import Description, describe
from ..inspection.pipeline import innermost
from ..inspection.predictions import Predictions, predictions
from ..records import saved
from ..text import plural
from .base import HeldOut, MetaClassifier

SCORES = ("auto", "probability", "density", "both")

NOVELTY_SHARE = 0.1
"""Share of the error that is spent on the density where both scores are used."""

TIE = 1e-9
"""Scores that differ by less are equal: of probabilities relative to them, of log-densities relative to
one more than their size. Rounding, which differs between one row and many, decides no rank; more
ties can only raise a p-value, so that the error holds.
"""


@saved(eq=False)
class FittedConformal:
    """The fitted state of a `ConformalClassifier`; see its attributes."""

    estimators: list[Any]
    calibration_codes: np.ndarray
    calibration_probability: np.ndarray
    calibration_density: np.ndarray
    calibration_folds: np.ndarray
    calibration_weights: np.ndarray

    @classmethod
    def of(cls, held_out: HeldOut) -> Self:
        """From predictions for calibration rows; those without a class do not count."""
        known = np.flatnonzero(held_out.codes >= 0)
        codes = held_out.codes[known]
        density = held_out.rows.log_density
        return cls(
            held_out.models,
            codes,
            held_out.rows.probability[known, codes],
            np.full(len(codes), np.nan) if density is None else density[known, codes],
            held_out.fold[known],
            held_out.weight[known],
        )

    def counts(self, per_class: bool) -> np.ndarray:
        """Weight of the calibration rows that a score is ranked among, for each class, (K,)."""
        n_classes = len(self.estimators[0].classes_)
        counts = np.bincount(self.calibration_codes, self.calibration_weights, n_classes)
        return counts if per_class else np.full(n_classes, counts.sum())

    def p_values(self, name: str, per_class: bool, scores: list[np.ndarray]) -> np.ndarray:
        """p-values from one score, "probability" or "density", of the rows by each classifier,
        (F, n, K); NaN is the lowest score.
        """
        calibration = lowest_if_nan(vars(self)[f"calibration_{name}"])
        up_to = np.zeros(scores[0].shape)
        for fold, score in enumerate(scores):
            of_fold = self.calibration_folds == fold
            for k, column in enumerate(lowest_if_nan(score).T):
                at = np.flatnonzero(of_fold & ((self.calibration_codes == k) | (not per_class)))
                at = at[np.argsort(calibration[at])]
                weight = np.concatenate([[0.0], np.cumsum(self.calibration_weights[at])])
                size = np.abs(np.where(np.isinf(column), 0, column)) + (name == "density")
                below = np.searchsorted(calibration[at], column + TIE * size, side="right")
                up_to[:, k] += weight[below]
        return (up_to + 1) / (self.counts(per_class) + 1)


def lowest_if_nan(score: np.ndarray) -> np.ndarray:
    """Scores, with minus infinity for NaN."""
    return np.where(np.isnan(score), -np.inf, score)


class ConformalClassifier(MetaClassifier):
    r"""A classifier that predicts sets of classes, which contain the true one with a given
    probability.

    Of rows like those of the fit, at most the share `error` has a true class outside its set,
    whatever the classifier and the distribution of the rows. An ambiguous row gets several classes,
    or the most probable one where that is enough. A row unlike all of the classes gets none: its
    density is too low for each of them.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, and for scores of density `log_density`. One that is fitted is taken
        as it is where `cv` is None, and the rows of `fit` calibrate it: they must be others than it
        was fitted to; pass ``clone(estimator)`` to fit it to the same rows, in folds.
    error : float, default=0.1
        How often the true class may be missing. `predict_set` takes others.
    per_class : bool, default=False
        Whether the error holds within each class, and so also where class frequencies change
        (class-conditional conformal prediction). Rare classes need at least 1 / error - 1 rows, or
        they are in every set.
    conformity : {"auto", "probability", "density", "both"}, default="auto"
        The conformity score of a class for a row. "both" spends a tenth of the error on the
        density, so that rows unlike all of the classes get the empty set; by "probability" alone
        ambiguous rows may get it too. "auto" is "both" where the classifier has densities.
    cv : int, cross-validation generator, iterable or None, default=None
        Which rows calibrate, each by a classifier that was fitted without it; as in
        `RejectClassifier`.

    Attributes
    ----------
    estimators_ : list of classifiers
        One for each fold; one in all where it was fitted before, and for a pool.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    calibration_probability_, calibration_density_ : ndarray of shape (n_calibration,)
        Scores of the calibration rows for their own classes; density is NaN where it is not used.
    calibration_codes_, calibration_folds_ : ndarray of shape (n_calibration,)
        Their classes, as positions in `classes_`, and the classifier that each was held out from.
    calibration_weights_ : ndarray of shape (n_calibration,)
        Their weights.
    n_features_in_ : int
        Number of features, where the classifier has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    RejectClassifier : One label or a refusal.

    Notes
    -----
    The error is exact where the classifier was fitted before, or `cv` is a single split. With folds
    the true class is missing with a probability of at most 2 error (Barber et al. 2021), and in
    practice of about error or less.

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
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        error: float = 0.1,
        per_class: bool = False,
        conformity: str = "auto",
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.error = error
        self.per_class = per_class
        self.conformity = conformity
        self.cv = cv

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the classifiers and score the calibration rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for calibration and, where their `fit` takes weights, for the
            classifiers.
        **fit_params : dict
            Passed to `fit` of the classifier, and of the splitter, by scikit-learn's metadata
            routing.

        Returns
        -------
        self : ConformalClassifier
            The fitted estimator.
        """
        has_density = hasattr(innermost(self.estimator), "log_density")
        if self.conformity in ("density", "both") and not has_density:
            raise KernelpoolError(
                f"conformity={self.conformity!r} needs a classifier with log_density, such as "
                f"SharedKernelClassifier; {type(self.estimator).__name__} has none. Use "
                "conformity='probability'."
            )
        routed = self._routed(sample_weight, fit_params)
        X, y, weight = self._check_rows(X, y, sample_weight)
        held_out = self._held_out(X, y, weight, routed, score=False, log_density=has_density)
        class_codes(self._distinct_labels(y), held_out.rows.classes, None)  # the model knows all
        self._fitted = FittedConformal.of(held_out)
        self._warn_if_too_few()
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
            For the calibration rows, as `kernelpool.inspection.predictions` returns them; with
            `log_density` for scores of density.
        codes : ndarray of int of shape (n_calibration,)
            Their classes, as positions in `classes_`; rows below 0 have none and do not count.
        sample_weight : array-like of shape (n_calibration,), default=None
            Weights of the rows.
        **params : dict
            Parameters of the constructor.

        Returns
        -------
        model : ConformalClassifier
            Fitted.
        """
        model = cls(estimator, **params)
        model._validate_params()
        held_out = HeldOut.by_one(estimator, predictions, codes, sample_weight)
        model._fitted = FittedConformal.of(held_out)
        model._warn_if_too_few()
        return model

    def _warn_if_too_few(self) -> None:
        counts = self._fitted.counts(self.per_class)
        fewest = counts.min()
        if (fewest + 1) * self.error < 1:
            rows = "there are"
            sets = "every class is"
            if self.per_class:
                rows = f"class {self.classes_.tolist()[int(counts.argmin())]!r} has"
                sets = "it is"
            warn(
                f"error={self.error} needs {int(np.ceil(1 / self.error)) - 1} calibration rows; "
                f"{rows} {fewest:.0f}, so that {sets} in every set. Raise error, or pass more rows.",
                UserWarning,
            )

    @property
    def _inner(self) -> Any:
        return self._fitted.estimators[0]

    # -- sets --------------------------------------------------------------------------------------

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
        return self._p_values(self._by_model(X))

    def _by_model(self, X: Any, **wanted: bool) -> list[Predictions]:
        """What each classifier predicts, with the densities that the scores take."""
        density = "density" in self._error_shares()
        wanted = {"score": False, "log_density": density, "labels": False} | wanted
        return [predictions(model, X, **wanted) for model in self.estimators_]

    def _p_values(self, by_model: list[Predictions]) -> np.ndarray:
        scores = {
            "probability": [rows.probability for rows in by_model],
            "density": [rows.log_density for rows in by_model],
        }
        p_values = {
            name: self._fitted.p_values(name, self.per_class, scores[name]) / share
            for name, share in self._error_shares().items()
        }
        if len(p_values) > 1:
            likely = _mean_probability(by_model).argmax(axis=1)
            p_values["probability"][np.arange(len(likely)), likely] = 1.0
        return np.minimum(np.minimum.reduce(list(p_values.values())), 1.0)

    def _error_shares(self) -> dict[str, float]:
        """The scores in use and the share of the error that each may spend."""
        kind = self.conformity
        if kind == "auto":
            has_density = np.isfinite(self._fitted.calibration_density).any()
            kind = "both" if has_density else "probability"
        if kind == "both":
            return {"probability": 1 - NOVELTY_SHARE, "density": NOVELTY_SHARE}
        return {kind: 1.0}

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
            In the order of `classes_`; no class at all for a row unlike all of them.
        """
        wanted = self.error if error is None else error
        if not 0 < wanted < 1:
            raise KernelpoolError(f"error must lie between 0 and 1; got {wanted}.")
        return self.p_values(X) > wanted

    # -- labels ------------------------------------------------------------------------------------

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
        return _mean_probability(self._by_model(X, log_density=False))

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
        return self.classes_[likely]

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Predictions:
        by_model = self._by_model(X)
        rows = Predictions.of(self.classes_, _mean_probability(by_model))
        return replace(rows, sets=self._p_values(by_model) > self.error)

    def _to_graph(self, x: Any) -> dict[str, Any]:
        raise KernelpoolError(
            "ConformalClassifier cannot be exported to ONNX, which has no sets of classes: export "
            "one of its classifiers, such as model.estimators_[0], and compare its answers with "
            "calibration_probability_ and calibration_density_."
        )

    def _describe(self) -> Description:
        inside = describe(self.estimators_[0])
        n_models = len(self.estimators_)
        several = f"The first of {n_models}: " if n_models > 1 else ""
        within = "within each class" if self.per_class else "over all rows"
        return Description(
            f"{several}{inside.sentence} Its sets lack the true class with a probability of "
            f"{100 * self.error:g} %, {within}, by {plural(len(self.calibration_codes_), 'row')}.",
            inside.kernels,
        )


def _mean_probability(by_model: list[Predictions]) -> np.ndarray:
    """P(C_k|x), (n, K)."""
    return np.mean([rows.probability for rows in by_model], axis=0)
