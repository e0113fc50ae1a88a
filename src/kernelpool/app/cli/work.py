"""One fit of the command line: how it is judged, what came out, and what the model file says of it."""

import shlex
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from ...estimators.pooled import PooledClassifier, PoolProgress
from ...inspection.metrics import Metrics, Rate, RegressionError
from ...inspection.pipeline import knows_log_density, log_density, unwrap
from ...questions import DriftReference
from ...tables.encoder import TableEncoder
from ...text import plural, quoted, shown
from ...training.held_out import stratified_holdout
from ..readers.labels import Fingerprint, LabeledTable, codes_and_classes
from ..readers.large import LargeNumbers, RowSample
from .choice import NOT_SETTABLE, ModelChoice
from .output import CommandError, Exit, Screen, Working

MOST_CALIBRATION, MOST_WATCHED = 2000, 1000
"""Held-out rows whose scores are kept for sets of classes, and features that are watched for drift."""

LOWEST = 1000
"""Held-out densities that are kept, the lowest: thresholds of novelty are among them."""

MOST_SAMPLED = 50_000
"""Rows of a large table, held out and not, that stand for all of them in the reference for drift and in a report."""


@dataclass
class Work:
    """One fit to rows in memory."""

    rows: Any
    """A `LabeledTable`."""
    choice: ModelChoice
    screen: Screen
    holdout: float
    cv: int | None
    refit: bool
    doubt: float
    dropped: list[str]
    unlabeled: str
    model: Any = None
    rate: Rate | RegressionError | None = None
    tally: Metrics | None = None
    test: np.ndarray | None = None
    lowest: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None
    interrupted: str | None = None
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    command: str = ""
    measure = "Error"
    """What `rate` is."""

    def run(self) -> None:
        """Fit and judge."""
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        pipeline = self.choice.pipeline(self.rows.features)
        codes, classes = self._codes_and_classes()
        self.tally = Metrics.none(len(classes))
        start = time.perf_counter()
        if self.cv is not None:
            self._judge_by_folds(pipeline, codes, classes)
            self._final(pipeline, np.arange(len(codes)))
            self._note_reference(np.arange(len(codes)), None)
        else:
            test = stratified_holdout(codes, self.holdout, self.choice.seed)
            self._final(pipeline, np.flatnonzero(~test))
            if test.any():
                self.test = np.flatnonzero(test)
                self._judge(self.model, self.test, codes, classes)
                self._note_densities(self.test)
                self.calibration = self._calibration(self.test, codes)
            self._note_reference(np.flatnonzero(~test), self.test)
            if (
                self.refit
                and self.interrupted is None
                and self._final(clone(pipeline), np.arange(len(codes)))
            ):
                self.test = None
        self.seconds = time.perf_counter() - start
        self.rate = self._judgment()

    def _codes_and_classes(self) -> tuple[np.ndarray, np.ndarray]:
        """By which rows are held out in equal shares: -1 where there is no class."""
        return codes_and_classes(self.rows.labels)

    def _judgment(self) -> Rate | RegressionError | None:
        """What the rows that were judged say together; None where there were none."""
        assert self.tally is not None
        return self.tally.rate(self.doubt) if self.tally.n_rows else None

    def _final(self, pipeline: Any, at: np.ndarray) -> bool:
        """Fit to some rows; an interrupted fit counts if it left parameters, and else a model that was there before."""
        try:
            self._fit(pipeline, at, "Fitting")
        except KeyboardInterrupt as error:
            self.interrupted = str(error) or "interrupted"
            if not self._answers(pipeline):
                if self.model is None:
                    raise KeyboardInterrupt("nothing has been fitted yet") from None
                self.interrupted = (
                    "interrupted while fitting again to all rows; the model that was judged is kept"
                )
                return False
        self.model = pipeline
        return True

    def _answers(self, pipeline: Any) -> bool:
        """Whether an interrupted fit left a model that can be used."""
        try:
            pipeline.predict_proba(self._one_row())
        except (AttributeError, NotFittedError):
            return False
        return True

    def _one_row(self) -> Any:
        return self.rows.table.slice(0, 1)

    def reported(self) -> tuple[LabeledTable, np.ndarray | None]:
        """The rows of a report, and which of them were held out."""
        return self.rows, self.test

    def _judge_by_folds(self, pipeline: Any, codes: np.ndarray, classes: np.ndarray) -> None:
        labeled, without = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        splitter = StratifiedKFold(self.cv or 2, shuffle=True, random_state=self.choice.seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # a class of fewer rows than folds is missing in some of them
                folds = list(splitter.split(labeled, codes[labeled]))
        except ValueError:
            most = np.bincount(codes[labeled]).max()
            raise CommandError(
                Exit.FIT, f"--cv {self.cv}: no class has so many rows; the largest has {most}."
            ) from None
        for k, (train, test) in enumerate(folds):
            model = clone(pipeline)
            try:
                self._fit(
                    model,
                    np.sort(np.concatenate([labeled[train], without])),
                    f"Fold {k + 1} of {self.cv}:",
                )
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    "the folds were not finished, and the fit to all rows had not begun"
                ) from None
            self._judge(model, labeled[test], codes, classes)

    def _judge(self, model: Any, at: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
        assert self.tally is not None
        table, _ = self.rows.at(at)
        found = {label: i for i, label in enumerate(np.asarray(model.classes_).tolist())}
        probability, seen = (
            np.asarray(model.predict_proba(table)),
            np.zeros((len(at), len(classes))),
        )
        for i, label in enumerate(classes.tolist()):
            if label in found:  # a fold may lack a class
                seen[:, i] = probability[:, found[label]]
        self.tally = self.tally + Metrics.of(codes[at], seen)

    def _note_densities(self, at: np.ndarray) -> None:
        if hasattr(self.model, "score_samples"):
            score = np.asarray(self.model.score_samples(self.rows.at(at)[0]), np.float64)
            self.lowest = _lowest(score, len(score))

    def _calibration(self, at: np.ndarray, codes: np.ndarray) -> dict[str, Any] | None:
        """What held-out rows say of their own classes, for sets of classes; at most so many rows, spread evenly."""
        at = at[codes[at] >= 0]
        at = (
            at[np.unique(np.linspace(0, len(at) - 1, MOST_CALIBRATION).astype(int))]
            if len(at) > MOST_CALIBRATION
            else at
        )
        if not len(at) or len(self.model.classes_) != codes.max() + 1:
            return None
        return _calibration(self.model, self.rows.at(at)[0], codes[at])

    def _note_reference(self, at: np.ndarray, held_out: np.ndarray | None) -> None:
        """What the rows are like, for `kernelpool check`: counts, and no rows."""
        if len(self.rows.features) <= MOST_WATCHED:
            held = None if held_out is None else self.rows.at(held_out)[0]
            self.reference = DriftReference.of(self.rows.at(at)[0], self.model, held).to_dict()

    def _fit(self, pipeline: Any, at: np.ndarray, title: str) -> None:
        table, labels = self.rows.at(at)
        self._watch(pipeline, lambda _: pipeline.fit(table, labels), title, len(at))

    def _watch(self, pipeline: Any, fit: Callable[[Working], Any], title: str, n_rows: int) -> None:
        """`fit`, with a progress bar; what goes wrong is told as the command line does."""
        last = unwrap(pipeline).inner
        name = type(last).__name__
        most = last.get_params(deep=False).get("max_iter")
        with (
            self.screen.working(f"{title} {name}", most) as bar,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            if isinstance(last, PooledClassifier):
                last.set_params(callback=_pool_watcher(bar, title))
            elif "callback" in last.get_params(deep=False):
                last.set_params(callback=_watcher(bar, title, name))
            try:
                fit(bar)
            except ValueError as error:
                raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
            except MemoryError:
                raise CommandError(
                    Exit.FIT, f"{name}: not enough memory for {plural(n_rows, 'row')}."
                ) from None
            finally:
                for part in (last, *getattr(last, "estimators_", ())):  # a function cannot be saved
                    if "callback" in part.get_params(deep=False):
                        part.set_params(callback=None)
        for warning in caught:
            text = shown(warning.message, 400)
            if text not in self.warnings:
                self.warnings.append(text)
                self.screen.warn(text)

    # -- what is told -----------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """For machines."""
        return {
            "estimator": type(self.classifier).__name__,
            "chosen": _chosen(self.classifier),
            "members": _members(self.classifier),
            "n_rows": len(self.rows),
            "n_features": len(self.rows.features),
            "classes": np.asarray(getattr(self.model, "classes_", [])).tolist(),
            "judged_by": self.judged_by,
            "held_out": None if self.rate is None else self.rate.to_dict(),
            "log_loss": None
            if self.tally is None or not self.tally.n_rows
            else self.tally.log_loss,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }

    @property
    def classifier(self) -> Any:
        """The estimator behind the steps of the pipeline."""
        return unwrap(self.model).inner

    @property
    def judged_by(self) -> str | None:
        if self.rate is None:
            return None
        return f"{self.cv} folds" if self.cv is not None else "rows held out"

    def _class_shares(self) -> list[float] | None:
        """Of the rows of the fit, in the order of the classes of the model."""
        found = dict(zip(*(part.tolist() for part in self.rows.class_counts()), strict=True))
        counts = np.array(
            [found.get(label, 0) for label in np.asarray(self.model.classes_).tolist()], np.float64
        )
        return (counts / counts.sum()).tolist()

    def _split(self) -> dict[str, Any] | None:
        """How rows were held out; None where none were."""
        return (
            None
            if self.test is None
            else {"share": self.holdout, "seed": self.choice.seed, "n_rows": len(self.test)}
        )

    def _fingerprint(self) -> str:
        return str(self.rows.fingerprint())

    def summary(self) -> dict[str, Any]:
        """For the model file."""
        return {
            **self.record(),
            "made_by": "kernelpool fit",
            "command": self.command,
            "source": self.rows.source,
            "target": self.rows.target,
            "features": [{"name": f.name, "kind": f.kind} for f in self.rows.features],
            "dropped": self.dropped,
            "unlabeled": self.unlabeled,
            "seed": self.choice.seed,
            "data": {"fingerprint": self._fingerprint(), "n_rows": len(self.rows)},
            "split": self._split(),
            "held_out_densities": self.lowest,
            "calibration": self.calibration,
            "reference": self.reference,
            "class_shares": self._class_shares(),
        }


@dataclass
class RegressionWork(Work):
    """One fit of a regressor: rows are held out at random, and numbers are judged by how far they lie off."""

    missed: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """True and predicted numbers of rows that were judged."""
    measure = "Root mean squared error"

    def _codes_and_classes(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self.rows) < max(2, self.cv or 0):
            raise CommandError(
                Exit.FIT,
                f"{plural(len(self.rows), 'row')}: at least {max(2, self.cv or 0)} are needed.",
            )
        return np.zeros(len(self.rows), np.int64), np.zeros(1)

    def _answers(self, pipeline: Any) -> bool:
        try:
            pipeline.predict(self._one_row())
        except (AttributeError, NotFittedError):
            return False
        return True

    def _judge(self, model: Any, at: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
        table, true = self.rows.at(at)
        self.missed.append((true, np.asarray(model.predict(table))))

    def _judgment(self) -> RegressionError | None:
        if not self.missed:
            return None
        true, predicted = (np.concatenate(part) for part in zip(*self.missed, strict=True))
        return RegressionError.of(true, predicted, self.doubt)

    def _calibration(self, at: np.ndarray, codes: np.ndarray) -> None:
        return None

    def _note_reference(self, at: np.ndarray, held_out: np.ndarray | None) -> None:
        pass

    def _class_shares(self) -> None:
        return None


class LargeWork(Work):
    """One fit to a `LargeTable`, whose rows are read in batches: for the fit, and once more to judge it."""

    mark: Fingerprint
    n_held_out = 0
    sample: LabeledTable
    """Rows for the reference and the report."""

    def run(self) -> None:
        """Fit and judge."""
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        self._check_classes()
        start = time.perf_counter()
        self._final(self._pipeline(), np.zeros(0))
        self._judge_all()
        if self.refit and self.interrupted is None and self._final(self._pipeline(), np.ones(1)):
            self.n_held_out = 0
        self.seconds = time.perf_counter() - start
        self.rate = self._judgment()

    def _check_classes(self) -> None:
        """Rows are held out without a look at their classes: some of every class must be left."""
        none = np.flatnonzero(self.rows.learned == 0)
        if len(none):
            name, n = self.rows.classes[none[0]], int(self.rows.counts[none[0]])
            raise CommandError(
                Exit.FIT,
                f"All rows of class {quoted(name)} ({n:,}) are held out: pass another --seed, or a smaller --holdout.",
            )

    def _pipeline(self) -> Any:
        """As for rows in memory, the step before the classifier made from the survey."""
        made = self.choice.pipeline(self.rows.features)
        if not isinstance(made, Pipeline):
            return made
        first, estimator = made.steps[0][1], made.steps[-1][1]
        encoder = self.rows.encoder(first.standardize if isinstance(first, TableEncoder) else True)
        return Pipeline([("columns", encoder), ("model", estimator)])

    def _fit(self, pipeline: Any, at: np.ndarray, title: str) -> None:
        encoder = pipeline.steps[0][1] if isinstance(pipeline, Pipeline) else None
        columns = self.rows.columns if encoder is None else None
        numbers = LargeNumbers(self.rows, encoder, columns, everything=bool(len(at)))

        def fit(bar: Working) -> None:
            self.rows.progress = lambda _, n_rows: bar.at(0, f"{plural(n_rows, 'row')} read")
            unwrap(pipeline).inner.fit(numbers, None)

        try:
            self._watch(pipeline, fit, title, len(self.rows))
        finally:
            self.rows.progress = None

    def _one_row(self) -> Any:
        return next(self.rows.batches()).table.slice(0, 1)

    def _judge_all(self) -> None:
        """One more reading: what is counted of held-out rows, and a sample of both parts."""
        self.tally = Metrics.none(len(self.rows.classes))
        self.mark = Fingerprint(self.rows.features, self.rows.classes)
        parts = {True: RowSample(MOST_SAMPLED), False: RowSample(MOST_SAMPLED)}
        density, lowest = hasattr(self.model, "score_samples"), np.zeros(0)
        with self.screen.working(f"Judging by {self.rows.source}", self.rows.origin.n_bytes) as bar:
            self.rows.progress = lambda n_bytes, n_rows: bar.at(n_bytes, plural(n_rows, "row"))
            for batch in self.rows.batches():
                self.mark.add(batch.table, batch.codes)
                for held_out, sample in parts.items():
                    sample.add(batch, np.flatnonzero(batch.held_out == held_out))
                at = np.flatnonzero(batch.held_out)
                if not len(at):
                    continue
                table = batch.table.take(at)
                self.tally += Metrics.of(
                    batch.codes[at], np.asarray(self.model.predict_proba(table))
                )
                self.n_held_out += len(at)
                if density:
                    lowest = np.sort(
                        np.append(lowest, np.asarray(self.model.score_samples(table), np.float64))
                    )[:LOWEST]
        self.rows.progress = None
        self._note_samples(parts[True], parts[False])
        if self.n_held_out and density:
            self.lowest = _lowest(lowest, self.n_held_out)

    def _note_samples(self, held: RowSample, learned: RowSample) -> None:
        import pyarrow as pa

        table, codes, _, places = learned.rows()
        out, out_codes, out_keys, out_places = held.rows()
        if len(out_codes):
            at = np.argsort(out_keys, kind="stable")[:MOST_CALIBRATION]
            self.calibration = _calibration(self.model, out.take(at), out_codes[at])
        if len(self.rows.features) <= MOST_WATCHED:
            self.reference = DriftReference.of(
                table, self.model, out if len(out_codes) else None
            ).to_dict()
        labels = self.rows.classes.astype(object)[np.concatenate([codes, out_codes])]
        labels[np.concatenate([codes, out_codes]) < 0] = None
        both, numbers = (
            pa.concat_tables([table, out]).combine_chunks(),
            np.concatenate([places, out_places]) + 1,
        )
        label = f"{self.rows.source}, {plural(len(labels), 'row')} of {len(self.rows):,}"
        self.sample = LabeledTable(
            both,
            labels,
            self.rows.features,
            self.rows.target,
            label,
            self.rows.origin.names,
            numbers=numbers,
        )
        self.test = np.arange(len(codes), len(labels)) if len(out_codes) else None

    def reported(self) -> tuple[LabeledTable, np.ndarray | None]:
        return self.sample, self.test

    def _split(self) -> dict[str, Any] | None:
        if not self.n_held_out:
            return None
        return {
            "share": self.holdout,
            "seed": self.choice.seed,
            "n_rows": self.n_held_out,
            "rule": "place",
        }

    def _fingerprint(self) -> str:
        return self.mark.text()


def _lowest(score: np.ndarray, n_rows: int) -> dict[str, Any]:
    """The lowest densities of held-out rows."""
    lowest = np.sort(np.where(np.isfinite(score), score, -np.finfo(np.float64).max))[:LOWEST]
    return {"n_rows": n_rows, "lowest": lowest.tolist()}


def _calibration(model: Any, table: Any, codes: np.ndarray) -> dict[str, Any]:
    """What a model says of rows and their own classes."""
    own = np.arange(len(codes)), codes
    found = {"codes": codes, "probability": np.asarray(model.predict_proba(table))[own]}
    if knows_log_density(model):
        density = log_density(model, table)[own]
        found["density"] = np.where(np.isfinite(density), density, -np.finfo(np.float64).max)
    return {name: values.tolist() for name, values in found.items()}


def _chosen(classifier: Any) -> dict[str, Any]:
    """The settings that were given or found: where the fit has chosen one (`covariance_type_`), that one."""
    given = {
        name: value
        for name, value in classifier.get_params(deep=False).items()
        if name not in NOT_SETTABLE
    }
    out = {}
    for name, value in given.items():
        candidates = (
            getattr(classifier, f"{name}_degree_", None),
            getattr(classifier, f"{name}_", None),
            value,
        )
        found = next((v for v in candidates if v is not None and np.ndim(v) == 0), None)
        if not hasattr(found, "get_params"):
            out[name] = found
    return out


def _members(classifier: Any) -> list[dict[str, Any]] | None:
    """Who is heard in a pool, and how much; None for other models."""
    if not isinstance(classifier, PooledClassifier):
        return None
    pairs = zip(classifier.members_, classifier.weights_.tolist(), strict=True)
    return [{"name": name, "weight": weight} for name, weight in pairs]


def _pool_watcher(bar: Working, title: str) -> Callable[[PoolProgress], None]:
    """Says of every member that was tried what became of it, how good the pool is by now, and what is left."""
    tried = 0

    def watch(info: PoolProgress) -> None:
        nonlocal tried
        tried += 1
        loss = f"held-out loss {info.loss:.4f}, " if np.isfinite(info.loss) else ""
        pool = f"; pool {info.pool_loss:.4f}" if info.outcome == "kept" else ""
        left = f"{len(info.left)} left" if info.left else "none left"
        bar.line(f"{title} {info.name}: {loss}{info.outcome}, {info.seconds:.1f} s{pool}; {left}")
        following = f"{title} {info.left[0]}" if info.left else title
        bar.at(
            tried, f"{tried} of {tried + len(info.left)} tried", following, tried + len(info.left)
        )

    return watch


def _watcher(bar: Any, title: str, name: str) -> Callable[[Any], bool]:
    """Tells a progress bar of every sweep; never asks to stop."""

    def watch(info: Any) -> bool:
        start = f" start {info.start + 1}" if info.start else ""
        bar.at(
            info.sweep,
            f"sweep {info.sweep}, objective {info.objective:.4f}",
            f"{title} {name}{start}",
        )
        return False

    return watch
