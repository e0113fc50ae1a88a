"""One fit of the command line: rows held out, the fit, its evaluation, and what the file records.

Files larger than memory are read in batches, once: the first tells what the columns hold. Rows are
held out by their content while the others are fitted, and kept in memory together with as many of
the others; both stand for all rows in the evaluation, in the model file and in a report.
"""

import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ... import PooledClassifier
from ...errors import TableError
from ...inspection import DriftReference, Metrics, hold_out, row_keys, stratified_folds
from ...text import listed, plural, shown
from ..readers.files import Source
from ..readers.table import WHOLE, Rows, cells_of, fingerprint, table_of
from .output import CommandError, Exit, Screen, Working

MOST_CALIBRATION, MOST_WATCHED = 2000, 1000
"""Held-out rows whose scores are kept for sets of classes; features that are watched for drift."""

NOT_SETTABLE = ("callback", "verbose", "random_state", "members")
"""Parameters that are objects, or set by options of their own."""

MOST_KEPT = 50_000
"""Rows of a large file, held out and not, that are kept, approximately."""

LOWEST = 1000
"""Held-out densities that are kept, the lowest: thresholds of novelty are among them."""


@dataclass
class FitJob:
    """One fit to rows in memory."""

    rows: Rows
    estimator: Any
    screen: Screen
    holdout: float
    cv: int | None
    refit: bool
    seed: int
    model: Any = None
    metrics: Metrics | None = None
    """Of held-out rows."""
    test: np.ndarray | None = None
    """Positions of the rows that the model was not fitted to."""
    interrupted: str | None = None
    warnings: list[str] = field(default_factory=list)
    held_out: dict[str, Any] = field(default_factory=dict)
    """What the model file keeps of held-out rows: densities, calibration, reference for drift."""

    def run(self) -> None:
        """Fit and evaluate."""
        start, self.n_rows = time.perf_counter(), len(self.rows.y)
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        self.fingerprint = fingerprint(self.rows.table)
        self._run()
        self.seconds = time.perf_counter() - start

    def _run(self) -> None:
        self._encode(np.unique([label for label in self.rows.y.tolist() if label is not None]))
        key = row_keys(self.rows.table, seed=self.seed)  # equal rows are held out together
        if self.cv is None:
            out = hold_out(self.codes, self.holdout, key=key)
        else:
            self._cross_validate(self.cv, key)
            out = np.zeros(self.n_rows, bool)
        self._final(self.estimator, np.flatnonzero(~out))
        self._finish(np.flatnonzero(~out), np.flatnonzero(out))

    def _finish(self, train: np.ndarray, test: np.ndarray) -> None:
        """Evaluate on rows of `test`, keep what the file records, and fit again where asked to."""
        if len(test):
            self.test = test
            self._evaluate(self.model, test)
        self._keep(train)
        again, everything = self.refit and self.interrupted is None, np.arange(len(self.rows.y))
        if again and self._final(clone(self.estimator), everything):
            self.test = None

    def _encode(self, classes: np.ndarray) -> None:
        known = np.array([label is not None for label in self.rows.y], bool)
        self.classes, self.codes = classes, np.full(len(known), -1)
        self.codes[known] = np.searchsorted(classes, self.rows.y[known].tolist())

    def _cross_validate(self, n_folds: int, key: np.ndarray) -> None:
        most = np.bincount(self.codes[self.codes >= 0]).max()
        if most < n_folds:
            raise CommandError(
                Exit.FIT, f"--cv {n_folds}: no class has so many rows; the largest has {most}."
            )
        fold = stratified_folds(self.codes, n_folds, key=key)
        for k in range(n_folds):
            model = clone(self.estimator)
            try:
                self._fit(model, np.flatnonzero(fold != k), f"Fold {k + 1} of {n_folds}:")
            except KeyboardInterrupt:
                raise KeyboardInterrupt("the folds were not finished; nothing was saved") from None
            self._evaluate(model, np.flatnonzero(fold == k))

    # -- the fit -----------------------------------------------------------------------------------

    def _final(self, model: Any, at: np.ndarray) -> bool:
        """Fit to some rows; an interrupted fit counts if it left a model that predicts."""
        try:
            self._fit(model, at, "Fitting")
        except KeyboardInterrupt as error:
            self.interrupted = str(error) or "interrupted"
            try:
                model.predict_proba(self.rows.table.slice(0, 1))
            except (AttributeError, NotFittedError):
                if self.model is None:
                    raise KeyboardInterrupt("nothing has been fitted yet") from None
                self.interrupted = "interrupted before the last fit; the evaluated model is kept"
                return False
        self.model = model
        return True

    def _data(self, at: np.ndarray) -> tuple[Any, Any]:
        """X and y of some rows, as estimators take them."""
        return self.rows.at(at)

    def _fit(self, model: Any, at: np.ndarray, title: str) -> None:
        """With a progress bar; what goes wrong is reported as the command line does."""
        name, parameters = type(model).__name__, model.get_params(deep=False)
        with (
            self.screen.working(f"{title} {name}", parameters.get("max_iter")) as bar,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            if "callback" in parameters:
                pool = isinstance(model, PooledClassifier)
                model.set_params(callback=_watch_pool(bar, title) if pool else _watch_sweeps(bar))
            try:
                model.fit(*self._data(at))
            except TableError:  # of rows that are read while they are fitted
                raise
            except ValueError as error:
                raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
            except MemoryError:
                what = plural(self.n_rows, "row")
                raise CommandError(Exit.FIT, f"{name}: not enough memory for {what}.") from None
            finally:
                if "callback" in parameters:  # a function cannot be saved
                    model.set_params(callback=None)
        for text in dict.fromkeys(shown(warning.message, 400) for warning in caught):
            if text not in self.warnings:
                self.warnings.append(text)
                self.screen.warn(text)

    # -- held-out rows -----------------------------------------------------------------------------

    def _evaluate(self, model: Any, at: np.ndarray) -> None:
        """Add held-out rows to the metrics, and keep their scores unless folds have several."""
        probability = np.zeros((len(at), len(self.classes)))
        known = np.searchsorted(self.classes, model.classes_)  # a fold may lack a class
        probability[:, known] = model.predict_proba(self.rows.table.take(at))
        found = Metrics.of(self.codes[at], probability)
        self.metrics = found if self.metrics is None else self.metrics + found
        if self.cv is None:
            self._keep_scores(at, probability)

    def _keep_scores(self, at: np.ndarray, probability: np.ndarray) -> None:
        """Lowest densities for novelty; scores of some rows for their own classes, for sets."""
        least = -np.finfo(np.float64).max

        def finite(score: Any) -> np.ndarray:
            return np.nan_to_num(np.asarray(score), nan=least, neginf=least)

        if hasattr(self.model, "score_samples"):
            score = finite(self.model.score_samples(self.rows.table.take(at)))
            lowest = {"n_rows": len(score), "lowest": np.sort(score)[:LOWEST]}
            self.held_out["held_out_densities"] = lowest
        if len(self.model.classes_) < len(self.classes):
            return
        some = np.unique(np.linspace(0, len(at) - 1, MOST_CALIBRATION).astype(int))
        own = np.arange(len(some)), self.codes[at[some]]
        scores = [probability[some][own]]
        if hasattr(self.model, "log_density"):
            scores.append(finite(self.model.log_density(self.rows.table.take(at[some])))[own])
        self.held_out["calibration"] = {"codes": own[1], "scores": scores}

    def _keep(self, train: np.ndarray) -> None:
        """What the rows are like, for `kernelpool check`: counts, and no rows."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        self.held_out["class_shares"] = counts / counts.sum()
        if len(self.rows.kinds) <= MOST_WATCHED:
            held = None if self.test is None else self.rows.table.take(self.test)
            found = DriftReference.of(self.rows.table.take(train), self.model, held)
            self.held_out["reference"] = found.to_dict()

    # -- results -----------------------------------------------------------------------------------

    @property
    def evaluated_by(self) -> str | None:
        """How the error was measured."""
        if self.metrics is None:
            return None
        return "held-out rows" if self.cv is None else f"{self.cv} folds"

    def record(self) -> dict[str, Any]:
        """For programs."""
        settings, members = self.model.get_params(deep=False), None
        if isinstance(self.model, PooledClassifier):
            pairs = zip(self.model.members_, self.model.weights_.tolist(), strict=True)
            members = [{"name": name, "weight": weight} for name, weight in pairs]
        return {
            "estimator": type(self.model).__name__,
            "settings": {n: v for n, v in settings.items() if n not in NOT_SETTABLE},
            "members": members,
            "n_rows": self.n_rows,
            "n_features": len(self.rows.kinds),
            "classes": self.classes,
            "evaluated_by": self.evaluated_by,
            "held_out": None if self.metrics is None else self.metrics.rate(0.05).to_dict(),
            "log_loss": None if self.metrics is None else self.metrics.log_loss,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }

    def summary(self) -> dict[str, Any]:
        """For the model file."""
        return {
            **self.record(),
            "command": self.command,
            "source": self.rows.source,
            "target": self.rows.target,
            "seed": self.seed,
            "fingerprint": self.fingerprint,
            **self.held_out,
        }


@dataclass(kw_only=True)
class LargeJob(FitJob):
    """One fit to rows of which `rows` are the first ones, with labels as they were read."""

    source: Source
    unlabeled: str

    def _run(self) -> None:
        import pyarrow as pa

        first, target = self.rows, self.rows.target
        self.whole = all(WHOLE.fullmatch(str(v)) for v in first.y.tolist() if v is not None)
        n_rows = self.source.n_bytes / max(first.table.nbytes, 1) * len(first.y)
        self.share, self.kept = min(self.holdout or 0.2, MOST_KEPT / n_rows), ([], [])  # type: ignore[var-annotated]
        self._final(self.estimator, np.zeros(0, int))
        parts = [pa.concat_tables(part) for part in self.kept]
        both = pa.concat_tables(parts)
        self.rows = replace(
            first,
            table=both.drop_columns([target]).combine_chunks(),
            y=np.array(both.column(target).to_pylist(), object),
            ids=np.arange(1, len(both) + 1),
            source=f"{first.source}, {plural(len(both), 'row')} of {self.n_rows:,}",
        )
        self._encode(np.asarray(self.model.classes_))
        at, n_train = np.arange(len(both)), len(parts[0])
        self._finish(at[:n_train], at[n_train:])

    def _data(self, at: np.ndarray) -> tuple[Any, Any]:
        """An iterable of tables; without `at` those of all rows but the held-out ones."""
        return self._tables(everything=len(at) > 0), self.rows.target

    def _tables(self, everything: bool) -> Iterator[Any]:
        import pyarrow as pa

        self.n_rows = 0
        for batch in self.source.batches():
            table, unreadable = table_of(batch, self.rows.kinds, self.source.style)
            where = f"{batch.file}, row {batch.first_row} and below"
            if unreadable:
                raise TableError(
                    f"{where}: columns {listed(list(unreadable))} hold cells that are no numbers.",
                    "Pass --columns COLUMN=category.",
                )
            cells = cells_of(batch, self.rows.target).tolist()
            y = pa.array([None if v is None else str(v) for v in cells], pa.string())
            if y.null_count and self.unlabeled == "refuse":
                raise TableError(f"{where}: rows without a class.", "Pass --unlabeled drop or use.")
            key, labeled = row_keys(table, seed=self.seed), y.is_valid().to_numpy(False)
            table = table.append_column(self.rows.target, y.cast(pa.int64()) if self.whole else y)
            if self.unlabeled == "drop":
                table, key, labeled = table.filter(labeled), key[labeled], labeled[labeled]
            self.n_rows += len(table)
            if not everything:
                out = (key < self.share) & labeled & (self.holdout > 0)
                self.kept[0].append(table.filter(~out & (key > 1 - self.share)))
                self.kept[1].append(table.filter(out))
                table = table.filter(~out)
            yield table


# -- progress --------------------------------------------------------------------------------------


def _watch_pool(bar: Working, title: str) -> Callable[[Any], None]:
    """A line for every member that was tried, and what is left."""
    tried = 0

    def watch(info: Any) -> None:
        nonlocal tried
        tried += 1
        loss = f"log-loss {info.loss:.4f}, " if np.isfinite(info.loss) else ""
        pool = f"; pool {info.pool_loss:.4f}" if info.outcome == "kept" else ""
        outcome = f"{loss}{info.outcome}, {info.seconds:.1f} s{pool}"
        bar.line(f"{title} {info.name}: {outcome}; {len(info.left) or 'none'} left")
        bar.at(tried, ", ".join(info.left[:1]), description=title, total=tried + len(info.left))

    return watch


def _watch_sweeps(bar: Working) -> Callable[[Any], bool]:
    """Every sweep on a progress bar; never stops the fit."""

    def watch(info: Any) -> bool:
        bar.at(info.sweep, f"sweep {info.sweep}, objective {info.objective:.4f}")
        return False

    return watch
