"""What a fitted classifier does on rows: computed once, then shown, saved and drawn.

    evaluate(model, X, y) -> Results

The command line shows and saves results, `write_report` renders them, `plots` draws them. Each part
is computed when it is first asked for. The rows pass the model once, and once more for each feature
where the importance of features is asked for.
"""

import contextlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from ... import RejectClassifier
from ...errors import KernelpoolError
from ...inspection import (
    CoverageCurve,
    DriftReport,
    FeatureImportance,
    FittedPipeline,
    Metrics,
    Predictions,
    PriorEstimate,
    check_drift,
    coverage_curve,
    feature_importance,
    predictions,
    prior_from_probability,
)
from ...inspection.predictions import Decision
from ...text import is_missing, text_of

MOST_EVALUATED = 20_000
"""Rows of the training that are looked at, and rows that a page is about; of more, a sample."""

MOST_COMPARED = 5000
"""Rows from which drift and class frequencies are estimated."""

MOST_PRIORS = 30
"""Classes of which frequencies are estimated."""

MOST_COMPARED_FEATURES = 1000
"""Features that are tested for drift; none of more."""

MOST_MASKED = 100
"""Features that are left out one by one; none of more."""

MOST_MASKED_CELLS = 6000
"""Cells that are left out for the importance of features."""

N_SIMULATED = 5000
"""Rows drawn from the model, for the distribution of its densities."""

ONE_IN = 100
"""An outlier is less likely than one drawn row in so many."""

MOST_PATTERNS = 20
"""Sets of missing cells for which drawn rows are scored."""


@dataclass(frozen=True, eq=False)
class RowSet:
    """Rows of the training, or others."""

    name: str
    X: Any
    y: np.ndarray
    """Codes of their classes, (n,): -1 for none, K and more for classes unknown to the model."""
    ids: Any
    n_given: int
    """Of which these may be a sample."""

    def __len__(self) -> int:
        return len(self.y)

    def at(self, index: np.ndarray) -> "RowSet":
        """Some of the rows."""
        ids = [self.ids[i] for i in index.tolist()]
        return replace(self, X=_safe_indexing(self.X, index), y=self.y[index], ids=ids)


@dataclass(frozen=True, eq=False)
class Results:
    """What a fitted classifier does on rows; see `evaluate`.

    Attributes
    ----------
    model : classifier
        Fitted.
    rows : RowSet
        Those that are evaluated.
    train : RowSet or None
        Those of the training, at most 20,000 of them; `rows` themselves where there are no others.
    names : list of str
        Of the classes of the model; those that only the rows have follow.
    predictions : Predictions
        Of `rows`.
    metrics : Metrics
        Over those of the rows whose classes are known.
    """

    model: Any
    rows: RowSet
    train: RowSet | None
    names: list[str]
    known_predictions: Predictions | None = field(default=None, repr=False)

    @property
    def row_sets(self) -> list[RowSet]:
        """The training rows first, where they are known."""
        return [self.rows] if self.train is None or not self.held_out else [self.train, self.rows]

    @property
    def held_out(self) -> bool:
        """Whether the rows had no part in the training."""
        return self.rows is not self.train

    @cached_property
    def inside(self) -> FittedPipeline:
        """The model inside of pipelines and searches."""
        return FittedPipeline(self.model, self.row_sets[0].X)

    @cached_property
    def reject(self) -> RejectClassifier | None:
        """The classifier that may refuse rows, if there is one."""
        rejecting = (w for w in self.inside.wrappers if isinstance(w, RejectClassifier))
        return next(rejecting, None)

    # -- how good it is ----------------------------------------------------------------------------

    @cached_property
    def predictions(self) -> Predictions:
        return self.known_predictions or predictions(self.model, self.rows.X)

    @cached_property
    def known(self) -> np.ndarray:
        """Positions of the rows whose classes the model has."""
        y = self.rows.y
        return np.flatnonzero((y >= 0) & (y < len(self.predictions.classes)))

    @cached_property
    def metrics(self) -> Metrics:
        return Metrics.of(self.rows.y, self.predictions, n_true=len(self.names))

    @cached_property
    def curve(self) -> CoverageCurve:
        """Error of accepted rows against the share that is accepted; novel rows are never."""
        known = np.flatnonzero(self.rows.y >= 0)
        answers = self.predictions.at(known)
        wrong = answers.predicted != self.rows.y[known]
        novel = answers.decision == Decision.NOVEL
        return coverage_curve(answers.ambiguity, wrong, np.ones(len(known)), novel)

    @cached_property
    def importance(self) -> FeatureImportance | None:
        """None of many features, of training rows, and where no cell may be missing."""
        n_features = len(self.inside.names)
        at = self.known[: MOST_MASKED_CELLS // n_features]
        if not (self.held_out and 1 < n_features <= MOST_MASKED and len(at)):
            return None
        few = self.rows.at(at)
        y = self.predictions.classes[few.y]
        with contextlib.suppress(ValueError):
            return feature_importance(
                self.model, few.X, y, probability=self.predictions.probability[at]
            )
        return None

    # -- rows of the training and others -----------------------------------------------------------

    @cached_property
    def _compared(self) -> np.ndarray:
        return spaced(len(self.rows), MOST_COMPARED)

    @cached_property
    def drift(self) -> DriftReport | None:
        """None without rows of the training and others."""
        if len(self.row_sets) < 2 or len(self.inside.names) > MOST_COMPARED_FEATURES:
            return None
        return check_drift(None, self.rows.at(self._compared).X, self.row_sets[0].X)

    @cached_property
    def prior(self) -> PriorEstimate | None:
        """Class frequencies of the rows, estimated without their classes."""
        classes = self.predictions.classes
        if self.drift is None or len(classes) > MOST_PRIORS:
            return None
        y = self.row_sets[0].y
        trained = np.bincount(y[y >= 0], minlength=len(classes))
        if not trained.all():
            return None
        probability = self.predictions.probability[self._compared]
        prior = prior_from_probability(probability, trained / trained.sum(), classes)
        return replace(prior, moved=bool(self.drift.moved()))

    @cached_property
    def x(self) -> list[np.ndarray]:
        """The row sets as the model inside has them, in the units of the input, (n, d)."""
        return [self.inside.rows(part.X) for part in self.row_sets]

    @cached_property
    def scores(self) -> list[Any]:
        """log p(x) of the row sets, (n,); none where the model has no densities."""
        own = [] if self.predictions.score is None else [self.predictions.score]
        others = self.x[: len(self.x) - len(own)]
        scores = [*(self.inside.score(x) for x in others), *own]
        return [] if any(score is None for score in scores) else scores

    @cached_property
    def bounds(self) -> list[np.ndarray]:
        """The log-density that one in ONE_IN drawn rows falls below, where the same cells are
        missing as in each row of the row sets, (n,), NaN for rare sets of cells; and where none are,
        (1,).
        """
        inside = self.inside
        drawn = inside.model.sample(N_SIMULATED, random_state=0)[0] * inside.scale + inside.offset
        missing = np.isnan(np.vstack([*self.x, np.zeros(drawn.shape[1])]))
        sets, group, count = np.unique(missing, axis=0, return_inverse=True, return_counts=True)
        group = group.ravel()
        bound = np.full(len(sets), np.nan)
        for g in {*np.argsort(-count)[:MOST_PATTERNS].tolist(), int(group[-1])}:
            score: Any = inside.score(np.where(sets[g], np.nan, drawn))
            bound[g] = np.quantile(score, 1 / ONE_IN, method="lower")
        return np.split(bound[group], np.cumsum([len(part) for part in self.row_sets]))


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    X_train: Any = None,
    y_train: Any = None,
    ids: Any = None,
    train_ids: Any = None,
    most_rows: int | None = None,
    predictions: Predictions | None = None,
) -> Results:
    """What a fitted classifier does on rows.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`: of this library or another, alone or in a pipeline.
    X : array-like or data frame of shape (n_samples, n_features), or None
        Rows that had no part in the training: held out, or new. None evaluates those of the
        training, whose error is too low.
    y : array-like of shape (n_samples,), default=None
        Their classes; None where they are not known, as a whole or for single rows.
    X_train, y_train : array-like, default=None
        The rows of the training and their classes, where they are at hand.
    ids, train_ids : sequence of length n_samples, default=None
        Names of the rows, such as numbers or identifiers; None takes the index of a data frame, or
        counts from 0.
    most_rows : int, default=None
        At most so many rows are evaluated, drawn at random; None evaluates all.
    predictions : Predictions, default=None
        Of all rows of X, where they have passed the model already.

    Returns
    -------
    results : Results
        Each part is computed when it is first asked for.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.app.report import evaluate
    >>> from kernelpool.datasets import make_clouds
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(*make_clouds(random_state=0))
    >>> results = evaluate(model, *make_clouds(400, random_state=1))
    >>> results.metrics.n_rows, results.importance.names
    (400, ('feature 0', 'feature 1'))
    """
    if not is_classifier(model) or not hasattr(model, "predict_proba"):
        raise KernelpoolError(
            f"A report needs a classifier with predict_proba; got {type(model).__name__}."
        )
    labels = np.asarray(model.classes_).tolist()
    train = None
    if X_train is not None:
        train = _row_set("training", X_train, y_train, train_ids, labels, MOST_EVALUATED)
    rows = train
    if X is not None:
        name = "new" if train is None else "held-out"
        rows = _row_set(name, X, y, ids, labels, None if predictions is not None else most_rows)
    if rows is None:
        raise KernelpoolError("A report needs rows: X or X_test; both are None.")
    return Results(model, rows, train, [text_of(label) for label in labels], predictions)


def _row_set(name: str, X: Any, y: Any, ids: Any, labels: list[Any], most: int | None) -> RowSet:
    """Rows, sampled where they are many; labels that the model does not have join `labels`, but
    for those of the training.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    n = X.shape[0]
    given = [None] * n if y is None else np.asarray(y).ravel().tolist()
    if not n or len(given) != n or (ids is not None and len(ids) != n):
        raise KernelpoolError(
            f"Give one class and one id for each of the {n} {name} rows, at least one."
        )
    if name != "training":
        known = {*labels, -1}
        labels += {label: None for label in given if not is_missing(label) and label not in known}
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place.get(label, -1) for label in given], np.int64)
    if ids is None:
        ids = X.index if hasattr(X, "iloc") else range(n)
    rows = RowSet(name, X, codes, ids, n)
    if most is None or n <= most:
        return rows
    return rows.at(np.sort(np.random.default_rng(0).choice(n, most, replace=False)))


def spaced(n: int, most: int) -> np.ndarray:
    """At most so many of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)
