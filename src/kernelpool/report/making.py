"""A report in the making: which rows are looked at, and what each part of the summary is made of.

Whatever costs time is bounded: rows are looked at in blocks, and where rows times kernels times features would be too many, at
a random sample of rows; the summary says so.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from ..arrays import is_array, to_numpy
from ..errors import KernelpoolError
from ..estimators.reject import RejectClassifier
from ..inspection.pipeline import unwrap
from ..inspection.pool import Pool, describe
from ..training.validation import is_unlabeled
from .evaluation import evaluation_of, judge, regression_of
from .glance import Target
from .kernels import Seen, class_posterior_by_rows, table_of
from .map import map_of
from .outliers import Scored, density_of, outliers_of
from .records import Evaluation, KernelTable, Map, Outliers, Regression
from .table import BLOCK, Table, blocks, some

PRODUCTS = 2e10
"""Rows x kernels x features that one pass over the rows may cost: some seconds on one core."""
PAIRS = 5e8
"""Rows x kernels."""
CELLS = 4e7
"""Rows x features that are kept at a time."""
DRAWN_CELLS = 1e7
"""Rows x features that are drawn from the model."""
LEAST_ROWS = 1000


@dataclass
class JudgedRows:
    """Rows with their answers, and the numbers of those that are looked at."""

    table: Table
    target: Target
    at: np.ndarray
    held_out: bool

    @property
    def where(self) -> str:
        return "held out" if self.held_out else "training"


class SummaryBuilder:
    """One report in the making: what is known, and what had to be left out."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, names: Any, doubt: float, rng: np.random.Generator
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
            raise KernelpoolError(f"X_test has {self.test.n_columns} columns, X {self.table.n_columns}; they must be the same.")
        self._seen: Seen | None = None
        self.rows = [JudgedRows(self.table, self.target, self._some(self.table, "training"), held_out=False)]
        if self.test is not None and self.test_target is not None:
            self.rows.append(JudgedRows(self.test, self.test_target, self._some(self.test, "held-out"), held_out=True))
        if any(feature.made for feature in self.model.features):
            self.notes.append(
                "Kernels are told in the features that the steps before the model make, where those are not input columns."
            )

    def _target(self, y: Any, table: Table, name: str) -> Target:
        labels = to_numpy(y) if is_array(y) else np.asarray(y)
        if self.classification:
            labels = column_or_1d(labels)
        if len(labels) != table.n_rows:
            raise KernelpoolError(f"X{name[1:]} has {table.n_rows} rows and {name} {len(labels)}; give one answer a row.")
        if not len(labels):
            raise KernelpoolError(f"X{name[1:]} has no rows.")
        unlabeled = np.zeros(len(labels), bool)
        if self.classification:
            unlabeled = is_unlabeled(labels, getattr(self.model.inner, "unlabeled", None))
            if unlabeled.all():
                raise KernelpoolError(f"{name} must hold a label for at least one row; all are unlabeled.")
        return Target(labels, unlabeled, self.classification)

    def _some(self, table: Table, word: str) -> np.ndarray:
        """The rows that can be afforded."""
        at = some(table.n_rows, self._affordable(), self.rng)
        if len(at) < table.n_rows:
            self.notes.append(f"Of the {table.n_rows:,} {word} rows a random {len(at):,} were passed through the model.")
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
            self.notes.append(f"{int(rows.target.unlabeled.sum()):,} {rows.where} rows without a label do not count as errors.")
        reject_classifier = self.reject_classifier
        refusals = (
            {} if reject_classifier is None else {reject_classifier.novel_label_: 2, reject_classifier.ambiguous_label_: 1}
        )
        found = judge(outer, rows.table, at, rows.target.y, refusals)
        return evaluation_of(found, reject_classifier, rows.held_out, rows.table.n_rows, self.doubt), ()

    @property
    def reject_classifier(self) -> RejectClassifier | None:
        """What stands around the model and may refuse rows."""
        return next((wrapper for wrapper in self.model.wrappers if isinstance(wrapper, RejectClassifier)), None)

    @property
    def _refusals(self) -> dict[Any, str]:
        """What labels of refusal mean that are numbers."""
        reject_classifier = self.reject_classifier
        if reject_classifier is None:
            return {}
        both = {reject_classifier.novel_label_: "novel", reject_classifier.ambiguous_label_: "ambiguous"}
        return {label: word for label, word in both.items() if not isinstance(label, str)} if len(both) > 1 else {}

    # -- kernels ----------------------------------------------------------------------------------------------------

    def seen(self) -> Seen:
        """The training rows as the model inside sees them."""
        if self._seen is None:
            at = self.rows[0].at
            x = self._through(self.table, at)
            deviation = x.std(axis=0)
            mean, labels = x.mean(axis=0), self.target.y[at]
            self._seen = Seen(x, at, labels, self.table.n_rows, mean, np.where(deviation > 0, deviation, 1.0))
        return self._seen

    def _through(self, table: Table, at: np.ndarray) -> np.ndarray:
        parts = [np.asarray(self.model.transform(table.at(at[block])), np.float64) for block in blocks(len(at), BLOCK)]
        return np.concatenate(parts)

    def kernels(self, most: int) -> tuple[Pool | None, KernelTable | None, Map | None]:
        """The pool with its classes, the table of its kernels, and their map."""
        pool, inner = self.pool, self.model.inner
        if pool is None:
            self.notes.append(f"{type(inner).__name__} is not one of kernelpool's models: there are no kernels to list.")
            return None, None, None
        seen = self.seen()
        classes = np.asarray(inner.classes_) if self.classification else None
        if classes is not None and pool.class_posterior is None:
            pool = replace(pool, class_posterior=self._posterior_by_rows(seen, classes))
        if pool.mean is None:
            self.notes.append("Neurons have slopes and no places (local=False): no nearest rows, no map, no outliers.")
        table = table_of(pool, self.model, seen, classes, most)
        return pool, table, None if classes is None else map_of(pool, self.model, seen, classes, most, self.rng)

    def _posterior_by_rows(self, seen: Seen, classes: np.ndarray) -> np.ndarray | None:
        codes = {label: code for code, label in enumerate(classes.tolist())}
        at = some(len(seen.x), max(LEAST_ROWS, int(2e7 / max(1, len(self.pool or ())))), self.rng)
        y = np.array([codes.get(label, -1) for label in seen.labels[at].tolist()])
        return class_posterior_by_rows(self.model.inner, self.model.transform(self.table.at(seen.at[at])), y, len(classes))

    # -- outliers ---------------------------------------------------------------------------------------------------

    def outliers(self, pool: Pool | None, most: int, seed: int) -> Outliers | None:
        """The least likely rows; None where the model has no density."""
        density = None if pool is None else density_of(self.model.inner, pool)
        if pool is None or density is None or pool.mean is None:
            return None
        parts = [self._scored(density, rows) for rows in self.rows]
        n_drawn = min(self._affordable(), int(DRAWN_CELLS / len(self.model.features)))
        novelty = None if self.reject_classifier is None else self.reject_classifier.novelty_threshold_
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

        return Scored(rows.where, np.concatenate(x), rows.at, rows.target.y[rows.at], named, np.concatenate(score))
