"""One fit from the command line: how it is judged, what came out, and what is written down."""

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

from ..inspection.metrics import Metrics, Rate
from ..inspection.pipeline import unwrap
from ..text import plural
from .models import ModelChoice
from .reading import Labeled, codes_and_classes, folds, held_out
from .screen import CommandError, Exit, Screen, shown

LOWEST = 1000
"""Held-out densities that are kept, the lowest: thresholds of novelty are among them."""


@dataclass
class Work:
    """One fit: how it is judged, what came out, and what to write down."""

    rows: Labeled
    choice: ModelChoice
    screen: Screen
    holdout: float
    cv: int | None
    refit: bool
    seed: int
    doubt: float
    dropped: list[str]
    unlabeled: str
    model: Any = None
    rate: Rate | None = None
    tally: Metrics | None = None
    test: np.ndarray | None = None
    lowest: dict[str, Any] | None = None
    interrupted: str | None = None
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    command: str = ""

    def run(self) -> None:
        """Fit and judge."""
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        pipeline = self.choice.pipeline(self.rows.features)
        codes, classes = codes_and_classes(self.rows.labels)
        self.tally = Metrics.none(len(classes))
        start = time.perf_counter()
        if self.cv is not None:
            self._judge_by_folds(pipeline, codes, classes)
            self._final(pipeline, np.arange(len(codes)))
        else:
            test = held_out(codes, self.holdout, self.seed)
            self._final(pipeline, np.flatnonzero(~test))
            if test.any():
                self.test = np.flatnonzero(test)
                self._judge(self.model, self.test, codes, classes)
                self._note_densities(self.test)
            if self.refit and self.interrupted is None and self._final(clone(pipeline), np.arange(len(codes))):
                self.test = None
        self.seconds = time.perf_counter() - start
        self.rate = self.tally.rate(self.doubt) if self.tally.n_rows else None

    def _final(self, pipeline: Any, at: np.ndarray) -> bool:
        """Fit to some rows; an interrupted fit counts if it left parameters, and else a model that was there before."""
        try:
            self._fit(pipeline, at, "Fitting")
        except KeyboardInterrupt as error:
            self.interrupted = str(error) or "interrupted"
            if not self._answers(pipeline):
                if self.model is None:
                    raise KeyboardInterrupt("nothing has been fitted yet") from None
                self.interrupted = "interrupted while fitting again to all rows; the model that was judged is kept"
                return False
        self.model = pipeline
        return True

    def _answers(self, pipeline: Any) -> bool:
        """Whether an interrupted fit left a model that can be used."""
        try:
            pipeline.predict_proba(self.rows.table.slice(0, 1))
        except (AttributeError, NotFittedError):
            return False
        return True

    def _judge_by_folds(self, pipeline: Any, codes: np.ndarray, classes: np.ndarray) -> None:
        fold = folds(codes, self.cv or 2, self.seed)
        for k in range(self.cv or 2):
            model = clone(pipeline)
            try:
                self._fit(model, np.flatnonzero(fold != k), f"Fold {k + 1} of {self.cv}:")
            except KeyboardInterrupt:
                raise KeyboardInterrupt("the folds were not finished, and the fit to all rows had not begun") from None
            self._judge(model, np.flatnonzero(fold == k), codes, classes)

    def _judge(self, model: Any, at: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
        assert self.tally is not None
        table, _ = self.rows.at(at)
        found = {label: i for i, label in enumerate(np.asarray(model.classes_).tolist())}
        probability, seen = np.asarray(model.predict_proba(table)), np.zeros((len(at), len(classes)))
        for i, label in enumerate(classes.tolist()):
            if label in found:  # a fold may lack a class
                seen[:, i] = probability[:, found[label]]
        self.tally = self.tally + Metrics.of(codes[at], seen)

    def _note_densities(self, at: np.ndarray) -> None:
        if hasattr(self.model, "score_samples"):
            score = np.asarray(self.model.score_samples(self.rows.at(at)[0]), np.float64)
            lowest = np.sort(np.where(np.isfinite(score), score, -np.finfo(np.float64).max))[:LOWEST]
            self.lowest = {"n_rows": len(score), "lowest": lowest.tolist()}

    def _fit(self, pipeline: Any, at: np.ndarray, title: str) -> None:
        table, labels = self.rows.at(at)
        last = unwrap(pipeline).inner
        name = type(last).__name__
        most = last.get_params(deep=False).get("max_iter")
        with self.screen.working(f"{title} {name}", most) as bar, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if "callback" in last.get_params(deep=False):
                last.set_params(callback=_watcher(bar, title, name))
            try:
                pipeline.fit(table, labels)
            except ValueError as error:
                raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
            except MemoryError:
                raise CommandError(Exit.FIT, f"{name}: not enough memory for {plural(len(at), 'row')}.") from None
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
        last = unwrap(self.model).inner
        return {
            "estimator": type(last).__name__,
            "n_rows": len(self.rows),
            "n_features": len(self.rows.features),
            "classes": np.asarray(self.model.classes_).tolist(),
            "judged_by": self.judged_by,
            "held_out": None if self.rate is None else self.rate.to_dict(),
            "log_loss": None if self.tally is None or not self.tally.n_rows else self.tally.log_loss,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }

    @property
    def judged_by(self) -> str | None:
        if self.rate is None:
            return None
        return f"{self.cv} folds" if self.cv is not None else "rows held out"

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
            "seed": self.seed,
            "data": {"fingerprint": self.rows.fingerprint(), "n_rows": len(self.rows)},
            "split": None if self.test is None else {"share": self.holdout, "seed": self.seed, "n_rows": len(self.test)},
            "held_out_densities": self.lowest,
        }


def _watcher(bar: Any, title: str, name: str) -> Callable[[Any], bool]:
    """Tells a progress bar of every sweep; never asks to stop."""

    def watch(info: Any) -> bool:
        start = f" start {info.start + 1}" if info.start else ""
        bar.at(info.sweep, f"sweep {info.sweep}, objective {info.objective:.4f}", f"{title} {name}{start}")
        return False

    return watch
