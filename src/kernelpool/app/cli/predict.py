"""`kernelpool predict`: labels, probabilities and densities of new rows, or numbers, batch by batch."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from ... import questions
from ...errors import KernelpoolError
from ...estimators.conformal import ConformalClassifier
from ...estimators.reject import RejectClassifier
from ...inspection.explanation import signed
from ...inspection.metrics import DECISIONS
from ...inspection.pipeline import unwrap
from ...questions.priors import prior_from_probability
from ...text import listed, plural, shown
from ..readers.columns import Gaps, check_columns, is_text
from ..readers.sources import Source, source
from . import options as o
from .check import AnswerSample, class_shares
from .output import NAME_IT, CommandError, Exit, Screen, check_free, format_of, table_output
from .saved import Saved, decisions, open_saved, tell_unknown_words, unknown_words

SETS = "Add a column of all classes that are possible, wrong with at most this probability."
CLASS_PRIOR = (
    "Frequencies of the classes: balanced, estimated (from DATA), or such as sick=0.1,well=0.9."
)
MOST_PARTS = 3
"""Features that an explanation in a cell names."""

KEEP = "Copy this column of DATA, such as an identifier, to the output (repeatable)."
INCOMPLETE = "incomplete"
"""The decision about a row that lacks cells."""


def predict(
    model: o.ModelPath,
    data: o.Data,
    output: o.OutputPath = "-",
    keep: Annotated[list[str] | None, o.column("--keep", help=KEEP)] = None,
    drop: o.Drop = None,
    reject: o.Reject = False,
    ambiguity: o.Ambiguity = None,
    novelty: o.Novelty = None,
    sets: Annotated[float | None, o.refusing("--sets", help=SETS, **o.share)] = None,
    per_class: Annotated[
        bool, o.refusing("--per-class", help="Keep the promise of --sets within each class.")
    ] = False,
    class_prior: Annotated[
        str | None, o.judging("--class-prior", metavar="SHARES", help=CLASS_PRIOR)
    ] = None,
    explain: Annotated[
        bool,
        o.judging("--explain", help="Add a column that says which features spoke for the label."),
    ] = False,
    format: o.Format = None,
    raw: o.Raw = False,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Predict the classes of new rows.

    Columns are matched by name. The output has a row for each row of DATA: label, a probability for each class, and log_density
    where the model knows it. With --reject a column decision says accepted, ambiguous, novel or incomplete, and only accepted
    rows have a label. Rows with missing cells are judged by the others where the model can do that, and have no label
    otherwise. --sets adds all classes that are possible, none for a row that is like none of them; --explain adds the features
    that spoke for the label. A model that predicts numbers writes prediction and deviation, the standard deviation of a new
    observation.

    Example: kernelpool predict irises.safetensors new.csv -o answers.csv --keep id --reject
    """
    if screen.as_json and output == "-":
        raise CommandError(Exit.USAGE, NAME_IT)
    check_free(output, force)
    kind = format_of(output, format)
    saved = open_saved(model, screen, numeric=True)
    if saved.numeric:
        options = {
            "--reject": reject,
            "--ambiguity": ambiguity,
            "--novelty": novelty,
            "--sets": sets,
            "--per-class": per_class,
        }
        saved.check_options({**options, "--class-prior": class_prior, "--explain": explain})
    if class_prior is not None:
        if sets is not None:
            raise CommandError(
                Exit.USAGE,
                "--sets was calibrated with the frequencies of the fit: leave --class-prior out.",
            )
        saved = _with_class_prior(
            saved, class_prior, data, {*(keep or ()), *(drop or ())}, style, screen
        )
    wrapped = saved.rejecting(reject, ambiguity, novelty, screen)
    rows = source(data, style)
    make = NumberAnswers if saved.numeric else Answers
    answers = make(saved, wrapped, rows, screen, list(keep or []), list(drop or []))
    answers.conformal = None if sets is None else _conformal(saved, sets, per_class)
    answers.explaining = explain
    with ExitStack() as stack:
        writer: Any = None
        for table in answers.tables():
            if writer is None:
                writer = stack.enter_context(table_output(output, kind, table.schema, force, raw))
            writer.write(table)
        answers.check()
    tell_unknown_words(answers.unknown, screen)
    answers.tell(output)


class Answers:
    """What a model says of rows, as tables to be written."""

    def __init__(
        self,
        saved: Saved,
        wrapped: Any,
        rows: Source,
        screen: Screen,
        keep: list[str],
        drop: list[str],
    ) -> None:
        self.saved, self.wrapped, self.rows, self.screen, self.keep, self.drop = (
            saved,
            wrapped,
            rows,
            screen,
            keep,
            drop,
        )
        self.model = wrapped.estimator_ if wrapped is not None else saved.model
        self.labels = np.zeros(len(saved.classes), np.int64)
        self.decided = np.zeros(3, np.int64)
        self.gaps = Gaps()
        self.n_holed = 0
        self.unknown: dict[str, int] = {}
        self.conformal: Any = None
        self.explaining = False

    def tables(self) -> Iterator[Any]:
        """One table a batch."""
        target = {self.saved.target} if self.saved.target is not None else set()
        spare = {*target, *self.keep, *self.drop, *self.saved.set_drop()}
        for batch, features, complete in self.saved.batches(
            self.rows, self.screen, spare, "Predicting", self.gaps
        ):
            check_columns(self.keep, self.rows.names, self.rows.label, "to keep")
            if self.saved.features is not None:
                unknown_words(self.saved, features, self.unknown)
            self.n_holed += _n_holed(features)
            yield self._table(features, complete, {name: batch.columns[name] for name in self.keep})

    def _table(self, features: Any, complete: np.ndarray, kept: dict[str, Any]) -> Any:
        import pyarrow as pa

        columns: dict[str, Any] = {name: _flat(column) for name, column in kept.items()}
        found = self._answered(features)
        if not complete.all():  # rows without all their cells get no answer
            at = pa.array(np.where(complete, np.cumsum(complete) - 1, 0), mask=~complete)
            found = {name: column.take(at) for name, column in found.items()}
            if "decision" in found:
                found["decision"] = found["decision"].fill_null(INCOMPLETE)
        clash = [name for name in found if name in columns]
        if clash:
            raise CommandError(
                Exit.DATA,
                f"--keep: the output has columns {listed(clash)} of its own; rename those of the data.",
            )
        return pa.table({**columns, **found})

    def _answered(self, features: Any) -> dict[str, Any]:
        """Label, decision, probabilities and density of complete rows."""
        import pyarrow as pa

        if not len(features):
            probability = np.zeros((0, len(self.saved.classes)))
            decision = None if self.wrapped is None else np.zeros(0, np.int64)
            density = np.zeros(0)
        else:
            probability, decision = (
                np.asarray(self.model.predict_proba(features)),
                decisions(self.wrapped, features),
            )
            density = (
                np.asarray(self.model.score_samples(features), np.float64)
                if self.saved.knows_density()
                else np.zeros(0)
            )
        named = probability.argmax(axis=1)
        refused = np.zeros(len(named), bool) if decision is None else decision > 0
        self.labels += np.bincount(named[~refused], minlength=len(self.labels))
        found: dict[str, Any] = {"label": _labels(self.saved.classes, named, refused)}
        if decision is not None:
            self.decided += np.bincount(decision, minlength=3)
            found["decision"] = pa.array(DECISIONS, pa.string()).take(pa.array(decision))
        for i, name in enumerate(self.saved.classes.tolist()):
            found[f"probability_{name}"] = pa.array(np.ascontiguousarray(probability[:, i]))
        if hasattr(self.model, "score_samples"):
            found["log_density"] = pa.array(density)
        if self.conformal is not None:
            found["set"] = pa.array(
                _sets(self.conformal, features) if len(features) else [], pa.string()
            )
        if self.explaining:
            found["why"] = pa.array(
                _reasons(self.model, features) if len(features) else [], pa.string()
            )
        return found

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return int(self.labels.sum() + self.decided[1:].sum()) + self.gaps.rows

    def check(self) -> None:
        """Refuse data of which no row could be answered."""
        if self.gaps.rows == self.n_rows:
            raise self.gaps.error(self.n_rows)

    def tell(self, output: str) -> None:
        """How many of what."""
        counts = {
            str(name): int(n)
            for name, n in zip(self.saved.classes.tolist(), self.labels, strict=True)
        }
        record: dict[str, Any] = {
            "output": output,
            "n_rows": self.n_rows,
            "labels": counts,
            INCOMPLETE: self.gaps.rows,
        }
        told = [f"{shown(name, 24)} {n:,}" for name, n in list(counts.items())[:8]]
        if self.wrapped is not None:
            record["decisions"] = {
                **dict(zip(DECISIONS, self.decided.tolist(), strict=True)),
                INCOMPLETE: self.gaps.rows,
            }
            told += [f"ambiguous {self.decided[1]:,}", f"novel {self.decided[2]:,}"]
        if self.n_holed:
            self.screen.say(
                f"{plural(self.n_holed, 'row')} with missing cells judged by the cells that are known."
            )
        if self.gaps.rows:
            told.append(f"{INCOMPLETE} {self.gaps.rows:,}")
            self.screen.warn(
                f"{plural(self.gaps.rows, 'row')} got no label, for cells that are missing or no finite number: "
                f"{self.gaps.told()}."
            )
        where = "" if output == "-" else f" -> {shown(output, 200)}"
        self.screen.say(f"{plural(self.n_rows, 'row')}: {', '.join(told)}{where}")
        self.screen.answer(
            {**record, "unknown_words": self.unknown, "with_missing_cells": self.n_holed}
        )


class NumberAnswers(Answers):
    """What a regressor says of rows, as tables to be written."""

    n_complete = 0

    def _answered(self, features: Any) -> dict[str, Any]:
        """Prediction and standard deviation of complete rows, of each output."""
        import pyarrow as pa

        n_outputs = np.asarray(unwrap(self.model).inner.readout_).shape[1]
        mean, std = (
            self.saved.predict_numbers(features)
            if len(features)
            else (np.zeros((0, n_outputs)),) * 2
        )
        self.n_complete += len(mean)
        ends = [""] if n_outputs == 1 else [f"_{i}" for i in range(n_outputs)]
        found = {
            f"prediction{end}": pa.array(np.ascontiguousarray(mean[:, i]))
            for i, end in enumerate(ends)
        }
        return found | {
            f"deviation{end}": pa.array(np.ascontiguousarray(std[:, i]))
            for i, end in enumerate(ends)
        }

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self.n_complete + self.gaps.rows

    def tell(self, output: str) -> None:
        """How many rows."""
        told = plural(self.n_rows, "row")
        if self.gaps.rows:
            told += f", {INCOMPLETE} {self.gaps.rows:,}"
            self.screen.warn(
                f"{plural(self.gaps.rows, 'row')} got no prediction, for cells that are missing or no finite number: "
                f"{self.gaps.told()}."
            )
        self.screen.say(f"{told}{'' if output == '-' else f' -> {shown(output, 200)}'}")
        self.screen.answer(
            {
                "output": output,
                "n_rows": self.n_rows,
                INCOMPLETE: self.gaps.rows,
                "unknown_words": self.unknown,
            }
        )


def _conformal(saved: Saved, error: float, per_class: bool) -> ConformalClassifier:
    """The model with what its file says of held-out rows."""
    told = saved.summary.get("calibration")
    if not isinstance(told, dict):
        raise CommandError(
            Exit.MODEL,
            "--sets is not possible: the model was fitted without rows held out (--holdout).",
        )
    if not 0 < error < 1:
        raise CommandError(Exit.USAGE, f"--sets must lie between 0 and 1; got {error:g}.")
    try:
        codes, probability = (
            np.array(told["codes"], np.int64),
            np.array(told["probability"], np.float64),
        )
        density = np.array(told.get("density", [np.nan] * len(codes)), np.float64)
        fits = len(codes) == len(probability) == len(
            density
        ) > 0 and 0 <= codes.min() <= codes.max() < len(saved.classes)
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise CommandError(
            Exit.MODEL, f"{shown(saved.path, 200)}: what it says of held-out rows cannot be read."
        )
    model = saved.model.estimator_ if isinstance(saved.model, RejectClassifier) else saved.model
    conformal = ConformalClassifier(model, error=error, per_class=per_class)
    conformal.estimators_, conformal.calibration_codes_ = [model], codes
    conformal.calibration_probability_, conformal.calibration_density_ = probability, density
    conformal.calibration_folds_, conformal.calibration_weights_ = (
        np.zeros(len(codes), np.int64),
        np.ones(len(codes)),
    )
    return conformal


def _sets(conformal: ConformalClassifier, features: Any) -> list[str]:
    names = [str(name) for name in conformal.classes_.tolist()]
    return [
        "|".join(name for name, inside in zip(names, row, strict=True) if inside)
        for row in conformal.predict_set(features)
    ]


def _reasons(model: Any, features: Any) -> list[str]:
    """The largest parts of each row, in one cell."""
    told = []
    for why in questions.explain(model, features):
        parts = ", ".join(f"{part.name} {signed(part.part)}" for part in why.features[:MOST_PARTS])
        told.append(f"against {why.against} {why.log_odds:+.2f}: {parts}")
    return told


def _with_class_prior(
    saved: Saved, text: str, data: str, spare: set[str], style: Any, screen: Screen
) -> Saved:
    """The model with other frequencies of the classes, as --class-prior names them."""
    prior: Any = text
    if text == "estimated":
        if data == "-":
            raise CommandError(
                Exit.USAGE, "--class-prior estimated reads DATA twice: name a file, not stdin."
            )
        assumed, rows = class_shares(saved), source(data, style)
        target = {saved.target} if saved.target is not None else set()
        batches = saved.batches(
            rows,
            screen,
            {*spare, *target, *saved.set_drop()},
            "Estimating frequencies from",
            Gaps(),
        )
        found = AnswerSample()
        for _, table, _ in batches:
            found.add(table, saved.model)
        if assumed is None or not found.parts:
            raise CommandError(
                Exit.MODEL,
                f"--class-prior estimated: {shown(saved.path, 200)} does not tell those of its fit.",
            )
        estimate = prior_from_probability(found.rows(), assumed, saved.classes)
        screen.say(str(estimate))
        prior = estimate.class_prior
    elif text != "balanced":
        known = {str(label): label for label in saved.classes.tolist()}
        prior = {}
        for pair in text.split(","):
            name, _, share = pair.rpartition("=")
            try:
                prior[known.get(name, name)] = float(share)
            except ValueError:
                raise CommandError(
                    Exit.USAGE,
                    f"--class-prior takes balanced, estimated or CLASS=SHARE pairs; got {shown(text)}.",
                ) from None
    try:
        return replace(saved, model=questions.with_class_prior(saved.model, prior))
    except KernelpoolError as error:
        raise CommandError(Exit.USAGE, f"--class-prior: {shown(error, 300)}") from None


def _labels(classes: np.ndarray, named: np.ndarray, refused: np.ndarray) -> Any:
    """Labels in the type of the classes; none for rows that were refused."""
    import pyarrow as pa

    if classes.dtype.kind in "iuf":
        kind = pa.float64() if classes.dtype.kind == "f" else pa.int64()
        return pa.array(classes[named].astype(kind.to_pandas_dtype()), kind, mask=refused)
    return pa.array([str(label) for label in classes.tolist()], pa.string()).take(
        pa.array(named, mask=refused)
    )


def _n_holed(features: Any) -> int:
    """Rows in which a cell is missing."""
    columns = (
        features.columns if hasattr(features, "column_names") else list(np.asarray(features).T)
    )
    masks = [
        np.asarray(column.is_null(nan_is_null=True))
        if hasattr(column, "is_null")
        else np.isnan(column)
        for column in columns
    ]
    return int(np.logical_or.reduce(masks).sum()) if masks else 0


def _flat(column: Any) -> Any:
    """A copied column; words in plain form, so that they can be made harmless."""
    import pyarrow as pa

    return column.cast(pa.string()) if is_text(column) else column
