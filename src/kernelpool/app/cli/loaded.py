"""A model file together with what was written down when the model was fitted.

What the file says of its training is checked like any other input: anybody may have written it.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import RejectClassifier, load
from ...errors import KernelpoolError, TableError
from ...inspection.metrics import ambiguity_of
from ...inspection.pipeline import unwrap
from ...text import listed, plural, quoted, shown
from ..files import read_header
from ..readers.files import Batch, Source, stem_of
from ..readers.table import CATEGORY, NUMBER, table_of
from .output import CommandError, Exit, Screen

AMBIGUITY, NOVELTY = 0.2, 0.01
"""Thresholds of `--reject` alone."""

SWAPPED = "It has the name of a data file: the model comes first, then the data."


class Predictions(NamedTuple):
    """What a model predicts for some rows."""

    probability: np.ndarray
    """(n, K)."""
    score: np.ndarray | None
    """log p(x), (n,); None where the model has no densities."""
    decision: np.ndarray | None
    """0 accepted, 1 ambiguous, 2 novel, (n,); None where no row may be rejected."""


@dataclass
class LoadedModel:
    """A fitted classifier, and the columns that it takes."""

    model: Any
    path: str
    summary: dict[str, Any]
    kinds: dict[str, str] | None
    """Of the features; None where the model was fitted without names: columns go by their order."""
    rejecting: RejectClassifier | None = None
    """Where the file holds a classifier with thresholds of its own, which is asked to decide."""
    ambiguity: float | None = None
    lowest: float | None = None
    """Thresholds of ambiguity and of log p(x)."""
    unreadable: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """Cells, by column, that are no numbers, and of categories that the model does not know."""

    @property
    def classes(self) -> np.ndarray:
        return np.asarray(self.model.classes_)

    @property
    def has_density(self) -> bool:
        """Whether log p(x) is known."""
        return hasattr(self.model, "score_samples")

    @property
    def target(self) -> str | None:
        """The target column of the fit."""
        found = self.summary.get("target")
        return found if isinstance(found, str) else None

    def target_of(self, given: str | None) -> str:
        """The target column; an error where it is not known."""
        name = given or self.target
        if name is None:
            raise CommandError(
                Exit.USAGE,
                f"{shown(self.path, 200)} does not name the column of the classes: pass --target.",
            )
        return name

    # -- rows --------------------------------------------------------------------------------------

    def tables(
        self, source: Source, screen: Screen, title: str, skip: tuple[str, ...] = ()
    ) -> Iterator[tuple[Batch, Any]]:
        """Batches, and the features of their rows, which are matched by name."""
        kinds, n_rows = None, 0
        with screen.working(f"{title} {source.label}") as bar:
            for batch in source.batches():
                kinds = kinds or self._kinds_in(source, {*skip, self.target}, screen)
                table, unreadable = table_of(batch, kinds, source.style)
                self.unreadable.update(unreadable)
                self._count_unknown(table)
                n_rows += batch.rows.num_rows
                bar.at(0, plural(n_rows, "row"))
                yield batch, table if self.kinds is not None else np.column_stack(table.columns)
        if not n_rows:
            self._kinds_in(source, {*skip, self.target}, screen)
            raise TableError(f"{source.label}: no rows below the header.")
        for counts, what in (
            (self.unreadable, "that are no finite numbers are taken as missing"),
            (self.unknown, "hold values that were not there when the model was fitted"),
        ):
            if counts:
                columns = ", ".join(f"{quoted(name)} {n:,}" for name, n in counts.most_common(8))
                screen.warn(f"{plural(counts.total(), 'cell')} {what}: {columns}.")

    def _kinds_in(self, source: Source, skip: set[str | None], screen: Screen) -> dict[str, str]:
        """The features among the columns of a source; others are passed over."""
        names = [name for name in source.names if name not in skip]
        if self.kinds is None:
            if len(names) != self.model.n_features_in_:
                raise TableError(
                    f"{source.label}: the model was fitted to {self.model.n_features_in_} columns "
                    f"without names; there are {len(names)}: {listed(names)}."
                )
            return dict.fromkeys(names, NUMBER)
        present = set(source.names)
        missing = [name for name in self.kinds if name not in present]
        extra = [name for name in names if name not in self.kinds]
        if missing:
            others = f" It has {listed(extra, 8)} besides." if extra else ""
            raise TableError(
                f"{source.label}: the columns are not those that the model was fitted to: it lacks "
                f"{listed(missing, 8)}.{others}",
                missing_columns=missing,
                extra_columns=extra,
            )
        if extra:
            screen.say(f"{source.label}: the model does not use {listed(extra, 8)}.")
        return self.kinds

    def _count_unknown(self, table: Any) -> None:
        columns = getattr(self.model, "columns_", None)  # other estimators have none
        if columns is not None and self.kinds is not None:
            self.unknown.update({name: n for name, n in columns.unknown(table).items() if n})

    def predictions(self, table: Any) -> Predictions:
        """For rows of `tables`."""
        probability = np.asarray(self.model.predict_proba(table), np.float64)
        score = None
        if self.has_density:
            score = np.asarray(self.model.score_samples(table), np.float64)
        if self.rejecting is not None:
            return Predictions(probability, score, np.asarray(self.rejecting.decide(table), int))
        if self.ambiguity is None and self.lowest is None:
            return Predictions(probability, score, None)
        decision = np.zeros(len(probability), int)
        if self.ambiguity is not None:
            decision[ambiguity_of(probability) > self.ambiguity] = 1
        if self.lowest is not None:
            decision[~(score >= self.lowest)] = 2  # NaN is novel
        return Predictions(probability, score, decision)

    # -- rejection ---------------------------------------------------------------------------------

    def reject(
        self, reject: bool, ambiguity: float | None, novelty: float | None, screen: Screen
    ) -> None:
        """Set the thresholds that options ask for; a classifier with its own keeps these."""
        if ambiguity is None and novelty is None:
            if not reject or self.rejecting is not None:
                return
            ambiguity = AMBIGUITY
            novelty = NOVELTY if self._densities() is not None else None
            if novelty is None:
                screen.warn("the model cannot detect novel rows: only ambiguous ones are rejected.")
        self.rejecting, self.ambiguity = None, ambiguity
        self.lowest = None if novelty is None else self._novelty_threshold(novelty, screen)

    def _densities(self) -> tuple[int, list[float]] | None:
        """How many rows were held out, and the lowest of their log-densities, rising."""
        found = self.summary.get("held_out_densities")
        try:
            n_rows, lowest = int(found["n_rows"]), sorted(map(float, found["lowest"]))
        except (KeyError, TypeError, ValueError):
            return None
        return (n_rows, lowest) if self.has_density else None

    def _novelty_threshold(self, rate: float, screen: Screen) -> float:
        """The j-th lowest of n held-out densities, j = floor(rate (n + 1)).

        A new row has a lower density with a probability of at most `rate`.
        """
        found = self._densities()
        if found is None:
            why = "fitted without held-out rows" if self.has_density else "one without densities"
            raise CommandError(Exit.MODEL, f"--novelty is not possible: the model is {why}.")
        n, lowest = found
        j = int(np.floor(rate * (n + 1)))
        if j < 1:
            screen.warn(
                f"{plural(n, 'held-out row')} are too few for the rarest {100 * rate:g} % of rows: "
                f"no row is called novel."
            )
            return -float(np.finfo(np.float64).max)
        if j > len(lowest):
            most = len(lowest) / (n + 1)
            raise CommandError(Exit.USAGE, f"--novelty must be at most {most:.3g}; got {rate:g}.")
        return lowest[j - 1]


def load_model(path: str, screen: Screen) -> LoadedModel:
    """The classifier in a file; never runs code from it."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, header = load(path), read_header(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(Exit.MODEL, f"{shown(path, 200)}: {reason}.") from None
    except KernelpoolError as error:
        swapped = f" {SWAPPED}" if stem_of(path) != Path(path).name else ""
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)} is not a model file that can be used: {error}{swapped}"
        ) from None
    for warning in caught:
        screen.warn(shown(warning.message, 400))
    if not hasattr(model, "classes_") or not hasattr(model, "predict_proba"):
        kind = type(unwrap(model).inner).__name__
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)}: {kind} is no classifier; ask it from Python."
        )
    summary = header.get("summary") or {}
    if isinstance(model, RejectClassifier):
        return LoadedModel(model.estimator_, path, summary, _kinds(model.estimator_), model)
    return LoadedModel(model, path, summary, _kinds(model))


def _kinds(model: Any) -> dict[str, str] | None:
    """The kind of each feature; None where a model was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    columns = getattr(model, "columns_", None)
    levels = columns.levels if columns is not None else [0] * len(names)
    kinds = (CATEGORY if n else NUMBER for n in levels)
    return dict(zip(map(str, names), kinds, strict=True))
