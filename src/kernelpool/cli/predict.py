"""`kernelpool predict`: labels, probabilities and densities of new rows, batch by batch."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Any

import numpy as np

from ..inspection.metrics import DECISIONS
from ..tables.columns import Gaps, check_columns, is_text
from ..tables.sources import Source, source
from ..text import listed, plural, shown
from . import options as o
from .output import NAME_IT, CommandError, Exit, Screen, check_free, format_of, table_output
from .saved import Saved, decisions, open_saved, tell_unknown_words, unknown_words

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
    rows have a label. Rows with missing cells have none either way.

    Example: kernelpool predict irises.safetensors new.csv -o answers.csv --keep id --reject
    """
    if screen.as_json and output == "-":
        raise CommandError(Exit.USAGE, NAME_IT)
    check_free(output, force)
    kind = format_of(output, format)
    saved = open_saved(model, screen)
    wrapped = saved.rejecting(reject, ambiguity, novelty, screen)
    rows = source(data, style)
    answers = Answers(saved, wrapped, rows, screen, list(keep or []), list(drop or []))
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

    def __init__(self, saved: Saved, wrapped: Any, rows: Source, screen: Screen, keep: list[str], drop: list[str]) -> None:
        self.saved, self.wrapped, self.rows, self.screen, self.keep, self.drop = saved, wrapped, rows, screen, keep, drop
        self.model = wrapped.estimator_ if wrapped is not None else saved.model
        self.labels = np.zeros(len(saved.classes), np.int64)
        self.decided = np.zeros(3, np.int64)
        self.gaps = Gaps()
        self.unknown: dict[str, int] = {}

    def tables(self) -> Iterator[Any]:
        """One table a batch."""
        target = {self.saved.target} if self.saved.target is not None else set()
        spare = {*target, *self.keep, *self.drop, *self.saved.set_drop()}
        for batch, features, complete in self.saved.batches(self.rows, self.screen, spare, "Predicting", self.gaps):
            check_columns(self.keep, self.rows.names, self.rows.label, "to keep")
            if self.saved.features is not None:
                unknown_words(self.saved, features, self.unknown)
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
                Exit.DATA, f"--keep: the output has columns {listed(clash)} of its own; rename those of the data."
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
            probability, decision = np.asarray(self.model.predict_proba(features)), decisions(self.wrapped, features)
            density = np.asarray(self.model.score_samples(features), np.float64) if self.saved.knows_density() else np.zeros(0)
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
        counts = {str(name): int(n) for name, n in zip(self.saved.classes.tolist(), self.labels, strict=True)}
        record: dict[str, Any] = {"output": output, "n_rows": self.n_rows, "labels": counts, INCOMPLETE: self.gaps.rows}
        told = [f"{shown(name, 24)} {n:,}" for name, n in list(counts.items())[:8]]
        if self.wrapped is not None:
            record["decisions"] = {**dict(zip(DECISIONS, self.decided.tolist(), strict=True)), INCOMPLETE: self.gaps.rows}
            told += [f"ambiguous {self.decided[1]:,}", f"novel {self.decided[2]:,}"]
        if self.gaps.rows:
            told.append(f"{INCOMPLETE} {self.gaps.rows:,}")
            self.screen.warn(
                f"{plural(self.gaps.rows, 'row')} got no label, for cells that are missing or no finite number: "
                f"{self.gaps.told()}."
            )
        where = "" if output == "-" else f" -> {shown(output, 200)}"
        self.screen.say(f"{plural(self.n_rows, 'row')}: {', '.join(told)}{where}")
        self.screen.answer({**record, "unknown_words": self.unknown})


def _labels(classes: np.ndarray, named: np.ndarray, refused: np.ndarray) -> Any:
    """Labels in the type of the classes; none for rows that were refused."""
    import pyarrow as pa

    if classes.dtype.kind in "iuf":
        kind = pa.float64() if classes.dtype.kind == "f" else pa.int64()
        return pa.array(classes[named].astype(kind.to_pandas_dtype()), kind, mask=refused)
    return pa.array([str(label) for label in classes.tolist()], pa.string()).take(pa.array(named, mask=refused))


def _flat(column: Any) -> Any:
    """A copied column; words in plain form, so that they can be made harmless."""
    import pyarrow as pa

    return column.cast(pa.string()) if is_text(column) else column
