"""Everything that a report says of a fitted model, from the model and its rows.

Whatever costs time is bounded: rows are looked at in blocks, and where rows times kernels times features would be too many, at
a random sample of rows; the summary says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from ...arrays import is_array, to_numpy
from ...errors import KernelpoolError
from ...estimators.conformal import ConformalClassifier
from ...estimators.reject import RejectClassifier
from ...inspection.describe import Pool, describe, refusals
from ...inspection.pipeline import Unwrapped, unwrap
from ...questions import feature_importance
from ...text import text_of
from ...training.prepare import is_unlabeled
from .data import BLOCK, Table, Target, blocks, data_of, some
from .evaluation import evaluation_of, judge, regression_of
from .explorer import MOST_POINTS, explorer_of
from .kernels import Seen, class_distances, class_posterior_by_rows, map_of, table_of
from .likeness import MOST_WATCHED, likeness_of, sets_of
from .outliers import Scored, density_of, outliers_of
from .records import (
    Evaluation,
    Explorer,
    Importance,
    ImportantFeature,
    KernelTable,
    Likeness,
    Map,
    Outliers,
    Regression,
    Sets,
    Summary,
)
from .training import members_of, rerun_of, selection_of, training_of

__all__ = ["Summary", "summarize"]


def summarize(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    target_name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    test_source: str | None = None,
    row_numbers: Any = None,
    test_row_numbers: Any = None,
    row_names: Sequence[str] | None = None,
    test_row_names: Sequence[str] | None = None,
    command: str | None = None,
    duration: float | None = None,
    doubt: float = 0.05,
    max_kernels: int = 40,
    n_outliers: int = 8,
    random_state: int = 0,
) -> Summary:
    """Everything that a report says of a fitted model, as plain data.

    Parameters
    ----------
    estimator : fitted estimator
        A classifier or regressor of this library, or a pipeline, search or `RejectClassifier` around one. Of other estimators
        the report tells what can be told without kernels.
    X : array-like or frame of shape (n_samples, n_features)
        The rows that it was fitted to.
    y : array-like of shape (n_samples,)
        Their labels, or numbers for a regressor.
    X_test, y_test : array-like, default=None
        Rows that played no part in training. Without them the report can only tell the error on the training rows.
    feature_names : sequence of str, default=None
        Names of the columns; None takes those of a frame, or x0, x1, ...
    target_name : str, default=None
        Name of the target.
    title : str, default=None
        Title of the report; None takes the name of the estimator.
    source, test_source : str, default=None
        Where the rows came from, such as a file name.
    row_numbers, test_row_numbers : array-like of int of shape (n_samples,), default=None
        Numbers by which the report names rows, such as those of the lines of a file; None counts from 0.
    row_names, test_row_names : sequence of str of length n_samples, default=None
        What is shown beside the numbers, such as an identifier.
    command : str, default=None
        A command line that makes the model again.
    duration : float, default=None
        Seconds that training took.
    doubt : float, default=0.05
        One minus the confidence of intervals.
    max_kernels : int, default=40
        Kernels to list.
    n_outliers : int, default=8
        Rows to list of the training rows and of the held-out ones.
    random_state : int, default=0
        Seed of samples of rows.

    Returns
    -------
    summary : Summary
        For `write_html`, or for machines by its `to_dict` and `to_json`.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.app.report import summarize
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> model = SharedKernelClassifier.prbf(n_kernels=12, covariance_type="full", random_state=0).fit(X, y)
    >>> summary = summarize(model, X, y, X_test, y_test)
    >>> rate = summary.evaluation.rate
    >>> rate.low < 0.0965 < rate.high  # the error of the best possible classifier
    True
    >>> len(summary.kernels.rows), summary.data.n_rows
    (12, 5000)
    """
    check_is_fitted(estimator)
    _check_arguments(estimator, X_test, y_test, doubt, max_kernels, n_outliers)
    numbers = row_numbers, test_row_numbers
    making = SummaryBuilder(
        estimator,
        X,
        y,
        X_test,
        y_test,
        feature_names,
        numbers,
        doubt,
        np.random.default_rng(random_state),
    )
    making.name_rows((row_names, test_row_names))
    labels = {"target": target_name, "source": source, "test_source": test_source}
    texts: dict[str, Any] = {
        name: None if value is None else text_of(value) for name, value in labels.items()
    }
    told = texts | {"numbered": row_numbers is not None}
    evaluation, regression = making.judged()
    pool, kernels, drawn = making.kernels(max_kernels)
    return Summary(
        title=text_of(title) if title is not None else type(making.model.inner).__name__,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        estimator=type(estimator).__name__,
        sentence=_sentence(making.model),
        task="classification" if making.classification else "regression",
        data=data_of(making.table, making.target, making.test, making.test_target, told),
        evaluation=evaluation,
        regression=regression,
        kernels=kernels,
        map=drawn,
        outliers=making.outliers(pool, n_outliers, random_state),
        training=training_of(making.model, duration),
        rerun=rerun_of(making.model, texts["source"], making.table.n_rows, command),
        notes=tuple(dict.fromkeys(making.notes)),
        members=members_of(making.model.inner),
        explorer=making.explorer(pool),
        importance=making.importance(random_state),
        selection=selection_of(making.model.inner),
        likeness=making.likeness(),
        sets=making.sets(),
    )


def _check_arguments(
    estimator: Any, X_test: Any, y_test: Any, doubt: float, max_kernels: int, n_outliers: int
) -> None:
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise KernelpoolError(
            f"A report needs a classifier or a regressor; got {type(estimator).__name__}."
        )
    if (X_test is None) != (y_test is None):
        raise KernelpoolError("X_test and y_test must be given together; one of them is None.")
    if not 0 < doubt < 1:
        raise KernelpoolError(f"doubt must lie between 0 and 1; got {doubt}.")
    if max_kernels < 1 or n_outliers < 0:
        raise KernelpoolError(
            f"max_kernels must be at least 1 and n_outliers at least 0; got {max_kernels} and {n_outliers}."
        )


def _sentence(model: Unwrapped) -> str:
    """The model inside, what stands before it and what stands around it."""
    parts = [describe(model.inner).sentence]
    steps = [type(step).__name__ for step in model.steps if step != "passthrough"]
    if steps:
        parts.append(f"Rows first go through {' and '.join(steps)}.")
    for wrapper in model.wrappers:
        if hasattr(wrapper, "best_estimator_"):
            parts.append(f"It was chosen by {type(wrapper).__name__}.")
        if isinstance(wrapper, RejectClassifier):
            parts.append(refusals(wrapper))
    return " ".join(parts)


PRODUCTS = 2e10
"""Rows x kernels x features that one pass over the rows may cost: some seconds on one core."""
PAIRS = 5e8
"""Rows x kernels."""
CELLS = 4e7
"""Rows x features that are kept at a time."""
DRAWN_CELLS = 1e7
"""Rows x features that are drawn from the model."""
LEAST_ROWS = 1000
MOST_COMPARED, MOST_FREQUENCIES = 5000, 30
"""Rows that are compared with each other, and classes whose frequencies are estimated."""
MOST_IMPORTANT, MOST_LISTED = 200, 20
"""Features that are left out one by one, and those of them that are listed."""


@dataclass
class JudgedRows:
    """Rows with their answers, and the numbers of those that are looked at."""

    table: Table
    target: Target
    at: np.ndarray
    numbers: np.ndarray
    """By which the report names all rows."""
    held_out: bool
    names: Sequence[str] | None = None
    """What is shown beside the numbers."""

    @property
    def where(self) -> str:
        return "held out" if self.held_out else "training"


class SummaryBuilder:
    """One report in the making: what is known, and what had to be left out."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        names: Any,
        numbers: tuple[Any, Any],
        doubt: float,
        rng: np.random.Generator,
    ) -> None:
        self.notes: list[str] = []
        self.rng, self.doubt = rng, doubt
        self.classification = bool(is_classifier(estimator))
        self.table = Table(X, names)
        self.model = unwrap(estimator, self.table.names)
        self.pool = describe(self.model.inner).pool
        self.target = self._target(y, self.table, "y")
        self.test = None if X_test is None else Table(X_test, names)
        self.test_target = None if self.test is None else self._target(y_test, self.test, "y_test")
        if self.test is not None and self.test.n_columns != self.table.n_columns:
            raise KernelpoolError(
                f"X_test has {self.test.n_columns} columns, X {self.table.n_columns}; they must be the same."
            )
        self._seen: Seen | None = None
        named = _numbers(numbers[0], self.table, "row_numbers")
        self.rows = [
            JudgedRows(
                self.table, self.target, self._some(self.table, "training"), named, held_out=False
            )
        ]
        if self.test is not None and self.test_target is not None:
            named = _numbers(numbers[1], self.test, "test_row_numbers")
            self.rows.append(
                JudgedRows(
                    self.test,
                    self.test_target,
                    self._some(self.test, "held-out"),
                    named,
                    held_out=True,
                )
            )
        words = [feature.name for feature in self.model.features if feature.words is not None]
        if words:
            self.notes.append(
                f"Of columns of words ({', '.join(map(text_of, words[:5]))}{' ...' if len(words) > 5 else ''}) kernels and "
                "rows show codes, which are no places: the model has a table of probabilities for each."
            )
        if any(feature.made for feature in self.model.features):
            self.notes.append(
                "Kernels are told in the features that the steps before the model make, where those are not input columns."
            )

    def name_rows(self, names: tuple[Sequence[str] | None, Sequence[str] | None]) -> None:
        """Give rows what is shown beside their numbers."""
        for rows, given, word in zip(
            self.rows, names, ("row_names", "test_row_names"), strict=False
        ):
            if given is not None and len(given) != rows.table.n_rows:
                raise KernelpoolError(
                    f"{word} must have one entry for each of the {rows.table.n_rows} rows; got {len(given)}."
                )
            rows.names = None if given is None else [text_of(name) for name in given]

    def _target(self, y: Any, table: Table, name: str) -> Target:
        labels = to_numpy(y) if is_array(y) else np.asarray(y)
        if self.classification:
            labels = column_or_1d(labels)
        if len(labels) != table.n_rows:
            raise KernelpoolError(
                f"X{name[1:]} has {table.n_rows} rows and {name} {len(labels)}; give one answer a row."
            )
        if not len(labels):
            raise KernelpoolError(f"X{name[1:]} has no rows.")
        unlabeled = np.zeros(len(labels), bool)
        if self.classification:
            unlabeled = is_unlabeled(labels, getattr(self.model.inner, "unlabeled", None))
            if unlabeled.all():
                raise KernelpoolError(
                    f"{name} must hold a label for at least one row; all are unlabeled."
                )
        return Target(labels, unlabeled, self.classification)

    def _some(self, table: Table, word: str) -> np.ndarray:
        """The rows that can be afforded."""
        at = some(table.n_rows, self._affordable(), self.rng)
        if len(at) < table.n_rows:
            self.notes.append(
                f"Of the {table.n_rows:,} {word} rows a random {len(at):,} were passed through the model."
            )
        return at

    def _affordable(self) -> int:
        """Rows in one pass, so that a report takes seconds."""
        d = len(self.model.features)
        n_kernels = 100 if self.pool is None else len(self.pool)
        wide = d if self.pool is None or self.pool.covariance is None else d * (d + 3) / 2
        most = min(PRODUCTS / (n_kernels * wide), PAIRS / n_kernels, CELLS / d)
        return int(max(LEAST_ROWS, most))

    # -- how good it is ---------------------------------------------------------------------------------------------

    def judged(self) -> tuple[Evaluation | None, tuple[Regression, ...]]:
        """On the held-out rows, or on the training rows where there are none."""
        rows, outer = self.rows[-1], self.model.outer
        if not rows.held_out:
            self.notes.append(
                "No held-out rows were given: the error is that of the training rows, which is too low an estimate."
            )
        if not self.classification:
            y = np.asarray(rows.target.y, np.float64)
            return None, regression_of(outer, rows.table, rows.at, y, rows.held_out, self.doubt)
        at = rows.at[~rows.target.unlabeled[rows.at]]
        if not len(at):
            return None, ()
        if rows.target.unlabeled.any():
            self.notes.append(
                f"{int(rows.target.unlabeled.sum()):,} {rows.where} rows without a label do not count as errors."
            )
        reject_classifier = self.reject_classifier
        refusals = (
            {}
            if reject_classifier is None
            else {reject_classifier.novel_label_: 2, reject_classifier.ambiguous_label_: 1}
        )
        found = judge(outer, rows.table, at, rows.target.y, refusals)
        return evaluation_of(
            found, reject_classifier, rows.held_out, rows.table.n_rows, self.doubt
        ), ()

    @property
    def reject_classifier(self) -> RejectClassifier | None:
        """What stands around the model and may refuse rows."""
        return next(
            (wrapper for wrapper in self.model.wrappers if isinstance(wrapper, RejectClassifier)),
            None,
        )

    @property
    def _refusals(self) -> dict[Any, str]:
        """What labels of refusal mean that are numbers."""
        reject_classifier = self.reject_classifier
        if reject_classifier is None:
            return {}
        both = {
            reject_classifier.novel_label_: "novel",
            reject_classifier.ambiguous_label_: "ambiguous",
        }
        return (
            {label: word for label, word in both.items() if not isinstance(label, str)}
            if len(both) > 1
            else {}
        )

    # -- kernels ----------------------------------------------------------------------------------------------------

    def seen(self) -> Seen:
        """The training rows as the model inside sees them."""
        if self._seen is None:
            at = self.rows[0].at
            x = self._through(self.table, at)
            deviation = x.std(axis=0)
            mean, deviation = x.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
            self._seen = Seen(
                x,
                at,
                self.rows[0].numbers[at],
                self.target.y[at],
                self.table.n_rows,
                mean,
                deviation,
            )
        return self._seen

    def _through(self, table: Table, at: np.ndarray) -> np.ndarray:
        parts = [
            np.asarray(self.model.transform(table.at(at[block])), np.float64)
            for block in blocks(len(at), BLOCK)
        ]
        return _filled(np.concatenate(parts), self.model.inner)

    def kernels(self, most: int) -> tuple[Pool | None, KernelTable | None, Map | None]:
        """The pool with its classes, the table of its kernels, and their map."""
        pool, inner = self.pool, self.model.inner
        if pool is None:
            self.notes.append(
                f"{type(inner).__name__} is not one of kernelpool's models: there are no kernels to list."
            )
            return None, None, None
        seen = self.seen()
        classes = np.asarray(inner.classes_) if self.classification else None
        if classes is not None and pool.class_posterior is None:
            pool = replace(pool, class_posterior=self._posterior_by_rows(seen, classes))
        if pool.mean is None:
            self.notes.append(
                "Neurons have slopes and no places (local=False): no nearest rows, no map, no outliers."
            )
        apart = None if classes is None else self._class_distances(seen, classes)
        table = table_of(pool, self.model, seen, classes, most, apart)
        return (
            pool,
            table,
            None if classes is None else map_of(pool, self.model, seen, classes, most, self.rng),
        )

    def _posterior_by_rows(self, seen: Seen, classes: np.ndarray) -> np.ndarray | None:
        codes = {label: code for code, label in enumerate(classes.tolist())}
        at = some(len(seen.x), max(LEAST_ROWS, int(2e7 / max(1, len(self.pool or ())))), self.rng)
        y = np.array([codes.get(label, -1) for label in seen.labels[at].tolist()])
        return class_posterior_by_rows(
            self.model.inner, self.model.transform(self.table.at(seen.at[at])), y, len(classes)
        )

    def _class_distances(self, seen: Seen, classes: np.ndarray) -> np.ndarray | None:
        known = np.flatnonzero(np.isin(seen.labels.astype(object), classes.tolist()))
        return class_distances(
            self.model.inner,
            self.model.transform(self.table.at(seen.at[known])),
            seen.labels[known],
        )

    # -- to be looked at from all sides ------------------------------------------------------------------------------

    def _judges(self, most: int) -> tuple[JudgedRows, np.ndarray]:
        """Held-out rows, or training rows where there are none; at most so many."""
        rows = self.rows[-1]
        return rows, rows.at[some(len(rows.at), most, self.rng)]

    def explorer(self, pool: Pool | None) -> Explorer | None:
        """Rows and kernels along any two features."""
        if not self.classification or not hasattr(self.model.outer, "predict_proba"):
            return None
        rows, at = self._judges(MOST_POINTS)
        names = None if rows.names is None else [rows.names[i] for i in at.tolist()]
        given = rows.table.at(at)
        return explorer_of(
            self.model,
            pool,
            given,
            self._through(rows.table, at),
            rows.target.y[at],
            rows.numbers[at],
            names,
            held_out=rows.held_out,
        )

    def importance(self, seed: int) -> Importance | None:
        """Which features matter, by rows that the model has not seen; None where there are none or too many features."""
        outer = self.model.outer
        if (
            not self.classification
            or not hasattr(outer, "predict_proba")
            or not self.rows[-1].held_out
        ):
            return None
        if not 1 < len(self.model.features) <= MOST_IMPORTANT:
            return None
        exact = (
            hasattr(self.model.inner, "_marginals") and self.model.inner._marginals() is not None
        )
        rows, at = self._judges(1000 if exact else 200)
        known = (
            np.isin(rows.target.y[at].astype(object), list(np.asarray(outer.classes_).tolist()))
            & ~rows.target.unlabeled[at]
        )
        at = at[known]
        x = self._through(rows.table, at)
        if not len(at) or not np.isfinite(x).all():
            return None
        y = np.asarray(rows.target.y[at].tolist())
        found = feature_importance(outer, rows.table.at(at), y, n_repeats=2, random_state=seed)
        order = np.argsort(-found.importance, kind="stable")[:MOST_LISTED]
        bare = {
            f"feature {i}": name for i, name in enumerate(self.table.names)
        }  # of columns that had no names at the fit
        names = [
            text_of(bare.get(name, name) if not hasattr(outer, "feature_names_in_") else name)
            for name in found.names
        ]
        listed = [
            ImportantFeature(names[i], float(found.importance[i]), float(found.error[i]))
            for i in order
        ]
        return Importance(
            tuple(listed),
            len(found.names) - len(listed),
            found.method,
            found.log_loss,
            found.n_rows,
        )

    # -- whether held-out rows are like training rows, and sets of classes ---------------------------------------------

    def _codes(self, rows: JudgedRows, at: np.ndarray) -> np.ndarray:
        """Places of the labels of rows among the classes; -1 where there is no label, or no such class."""
        known = {
            label: code for code, label in enumerate(np.asarray(self.model.outer.classes_).tolist())
        }
        codes = np.array([known.get(label, -1) for label in rows.target.y[at].tolist()], np.int64)
        return np.where(rows.target.unlabeled[at], -1, codes)

    def likeness(self) -> Likeness | None:
        """Held-out rows beside training rows; None where there are none, or too many features."""
        trained, rows = self.rows[0], self.rows[-1]
        if not rows.held_out or self.table.n_columns > MOST_WATCHED:
            return None
        reference = trained.table.at(trained.at[some(len(trained.at), MOST_COMPARED, self.rng)])
        at = rows.at[some(len(rows.at), MOST_COMPARED, self.rng)]
        bare = {f"feature {i}": name for i, name in enumerate(self.table.names)}
        outer = self.model.outer
        if (
            not self.classification
            or not hasattr(outer, "predict_proba")
            or len(outer.classes_) > MOST_FREQUENCIES
        ):
            return likeness_of(reference, rows.table.at(at), bare)
        counts = np.bincount(
            np.maximum(self._codes(trained, np.arange(trained.table.n_rows)), -1) + 1
        )[1:]
        shares = np.zeros(len(outer.classes_))
        shares[: len(counts)] = counts / max(1, counts.sum())
        shares = np.asarray(getattr(self.model.inner, "class_prior_", shares), np.float64)
        given = rows.table.at(at)
        probability = np.asarray(to_numpy(outer.predict_proba(given)), np.float64)
        if len(shares) != probability.shape[1] or not np.isfinite(probability).all():
            return likeness_of(reference, given, bare)
        return likeness_of(
            reference,
            given,
            bare,
            probability,
            self._codes(rows, at),
            shares,
            np.asarray(outer.classes_),
        )

    def sets(self) -> Sets | None:
        """Of a conformal classifier, on held-out rows where there are any."""
        around = (self.model.inner, *self.model.wrappers)
        if not any(isinstance(part, ConformalClassifier) for part in around) or not hasattr(
            self.model.outer, "predict_set"
        ):
            return None
        rows, at = self._judges(LEAST_ROWS)
        codes = self._codes(rows, at)
        at, codes = at[codes >= 0], codes[codes >= 0]
        return (
            sets_of(self.model.outer, rows.table.at(at), codes, rows.held_out, self.doubt)
            if len(at)
            else None
        )

    # -- outliers ---------------------------------------------------------------------------------------------------

    def outliers(self, pool: Pool | None, most: int, seed: int) -> Outliers | None:
        """The least likely rows; None where the model has no density."""
        density = None if pool is None else density_of(self.model.inner, pool)
        if pool is None or density is None or pool.mean is None:
            return None
        parts = [self._scored(density, rows) for rows in self.rows]
        n_drawn = min(self._affordable(), int(DRAWN_CELLS / len(self.model.features)))
        novelty = (
            None if self.reject_classifier is None else self.reject_classifier.novelty_threshold_
        )
        return outliers_of(density, pool, self.model, parts, most, n_drawn, seed, novelty)

    def _scored(self, density: Any, rows: JudgedRows) -> Scored:
        seen = self.model.transform
        own = density is self.model.inner
        score, x = [], []
        for block in blocks(len(rows.at)):
            inside = seen(rows.table.at(rows.at[block]))
            x.append(np.asarray(inside, np.float64))
            score.append(np.asarray(density.score_samples(inside if own else x[-1]), np.float64))

        def named(order: np.ndarray) -> Any:
            labels = np.asarray(self.model.outer.predict(rows.table.at(rows.at[order]))).tolist()
            kwargs = self._refusals
            return [kwargs.get(label, label) for label in labels] if kwargs else labels

        return Scored(
            rows.where,
            np.concatenate(x),
            rows.numbers[rows.at],
            rows.target.y[rows.at],
            named,
            np.concatenate(score),
        )


def _numbers(given: Any, table: Table, name: str) -> np.ndarray:
    numbers = np.arange(table.n_rows) if given is None else np.asarray(given)
    if numbers.shape != (table.n_rows,) or numbers.dtype.kind not in "iu":
        raise KernelpoolError(
            f"{name} must be whole numbers, one for each of the {table.n_rows} rows."
        )
    return numbers


def _filled(x: np.ndarray, inner: Any) -> np.ndarray:
    """Rows whose missing cells stand where the model expects them, or at the mean of their feature, to be drawn."""
    missing = np.isnan(x)
    if not missing.any():
        return x
    if hasattr(inner, "impute"):
        return np.asarray(inner.impute(x), dtype=np.float64)
    known = (~missing).sum(axis=0)
    mean = np.where(missing, 0.0, x).sum(axis=0) / np.maximum(known, 1)
    return np.where(missing, mean, x)
