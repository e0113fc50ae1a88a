"""`kernelpool predict`: labels, probabilities and densities of new rows, batch by batch."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from ... import ConformalClassifier
from ...errors import KernelpoolError
from ...inspection import explain, with_class_prior
from ...inspection.explain import signed
from ...inspection.metrics import DECISIONS
from ...inspection.priors import prior_from_probability
from ...text import listed, plural, shown
from ..readers.files import Batch, Source
from ..readers.table import CATEGORY, check_columns
from . import options as o
from .check import ProbabilitySample, class_shares
from .loaded import LoadedModel, load_model
from .output import NAME_IT, CommandError, Exit, Screen, check_free, format_of, table_output

SETS = "Add a column of possible classes that lacks the true one with at most this probability."
CLASS_PRIOR = (
    "Frequencies of the classes: balanced, estimated (from DATA), or such as sick=0.1,well=0.9."
)
KEEP = "Copy this column of DATA, such as an identifier, to the output (repeatable)."
RAW = "CSV: do not put an apostrophe before cells that a spreadsheet would run."
FORMAT = "By the name of the output unless given; csv on stdout."
MOST_PARTS = 3
"""Features that an explanation in a cell names."""


def predict(
    model: o.ModelPath,
    data: o.Data,
    keep: Annotated[list[str] | None, o.column("--keep", help=KEEP)] = None,
    text: o.Text = None,
    reject: o.Reject = False,
    ambiguity: o.Ambiguity = None,
    novelty: o.Novelty = None,
    sets: Annotated[float | None, o.rejection("--sets", help=SETS, **o.share)] = None,
    per_class: Annotated[
        bool, o.rejection("--per-class", help="Keep the promise of --sets within each class.")
    ] = False,
    class_prior: Annotated[
        str | None, o.evaluation("--class-prior", metavar="SHARES", help=CLASS_PRIOR)
    ] = None,
    explain: Annotated[
        bool, o.evaluation("--explain", help="Add the features that count most for the label.")
    ] = False,
    output: Annotated[
        str, o.output("--output", "-o", metavar="FILE", help="File to write, - for stdout.")
    ] = "-",
    format: Annotated[o.OutputFormat | None, o.output("--format", help=FORMAT)] = None,
    raw: Annotated[bool, o.output("--raw", help=RAW)] = False,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Predict the classes of new rows.

    Columns are matched by name. The output has a row for each row of DATA: label, a probability for
    each class, and log_density where the model knows it. With --reject a column decision says
    accepted, ambiguous or novel, and only accepted rows have a label. Missing cells are integrated
    out. --sets adds all classes that are possible, none for a row that is like none of them;
    --explain adds the features that count most for the label.

    Example: kernelpool predict irises.safetensors new.csv -o answers.csv --keep id --reject
    """
    screen = Screen(as_json, quiet)
    if as_json and output == "-":
        raise CommandError(Exit.USAGE, NAME_IT)
    check_free(output, force)
    kind = format_of(output, format)
    loaded, source = load_model(model, screen), Source(data, o.text_style(text))
    if class_prior is not None:
        if sets is not None:
            raise CommandError(
                Exit.USAGE,
                "--sets needs the class frequencies of the fit: leave --class-prior out.",
            )
        _set_class_prior(loaded, class_prior, source, tuple(keep or ()), screen)
    loaded.reject(reject, ambiguity, novelty, screen)
    conformal = None if sets is None else _conformal(loaded, sets, per_class)
    writing = Output(loaded, list(keep or []), explain, conformal)
    with ExitStack() as stack:
        writer: Any = None
        for table in writing.tables(source, screen):
            if writer is None:
                writer = stack.enter_context(table_output(output, kind, table.schema, force, raw))
            writer.write(table)
    writing.conclude(output, screen)


@dataclass
class Output:
    """Predictions as tables to be written, and what is counted of them."""

    loaded: LoadedModel
    keep: list[str]
    explain: bool
    conformal: ConformalClassifier | None
    decisions: np.ndarray = field(default_factory=lambda: np.zeros(3, int))
    n_missing: int = 0
    """Rows with missing cells."""

    def __post_init__(self) -> None:
        self.labels = np.zeros(len(self.loaded.classes), int)

    def tables(self, source: Source, screen: Screen) -> Iterator[Any]:
        """One table a batch."""
        for batch, features in self.loaded.tables(source, screen, "Predicting", tuple(self.keep)):
            check_columns(self.keep, source, "to keep")
            yield self._table(batch, features)

    def _table(self, batch: Batch, features: Any) -> Any:
        import pyarrow as pa

        classes, found = self.loaded.classes, self.loaded.predictions(features)
        likely = found.probability.argmax(axis=1)
        rejected = np.zeros(len(likely), bool)
        columns: dict[str, Any] = {}
        if found.decision is not None:
            rejected = found.decision > 0
            self.decisions += np.bincount(found.decision, minlength=3)
            columns["decision"] = pa.array(DECISIONS, pa.string()).take(pa.array(found.decision))
        self.labels += np.bincount(likely[~rejected], minlength=len(classes))
        self.n_missing += _n_incomplete(features)
        if classes.dtype.kind not in "iuf":
            classes = classes.astype(str)
        columns = {"label": pa.array(classes).take(pa.array(likely, mask=rejected)), **columns}
        for i, name in enumerate(self.loaded.classes.tolist()):
            columns[f"probability_{name}"] = pa.array(found.probability[:, i].copy())
        if found.score is not None:
            columns["log_density"] = pa.array(found.score)
        if self.conformal is not None:
            names = np.array([str(name) for name in classes.tolist()], object)
            sets = self.conformal.predict_set(features)
            columns["set"] = pa.array(["|".join(names[row]) for row in sets], pa.string())
        if self.explain:
            columns["why"] = pa.array(_reasons(self.loaded.model, features), pa.string())
        clash = [name for name in self.keep if name in columns]
        if clash:
            raise CommandError(
                Exit.DATA,
                f"--keep: the output has columns {listed(clash)} of its own; rename those of DATA.",
            )
        kept = {name: _plain(batch.rows.column(name)) for name in self.keep}
        return pa.table({**kept, **columns})

    def conclude(self, output: str, screen: Screen) -> None:
        """How many of what."""
        n_rows = int(self.labels.sum() + self.decisions[1:].sum())
        counts = dict(zip(map(str, self.loaded.classes.tolist()), self.labels, strict=True))
        parts = [f"{shown(name, 24)} {n:,}" for name, n in list(counts.items())[:8]]
        record: dict[str, Any] = {"output": output, "n_rows": n_rows, "labels": counts}
        if self.decisions.any():
            record["decisions"] = dict(zip(DECISIONS, self.decisions, strict=True))
            parts += [f"{name} {n:,}" for name, n in list(record["decisions"].items())[1:]]
        if self.n_missing:
            screen.say(f"{plural(self.n_missing, 'row')} with missing cells.")
        where = "" if output == "-" else f" -> {shown(output, 200)}"
        screen.say(f"{plural(n_rows, 'row')}: {', '.join(parts)}{where}")
        record |= {"rows_with_missing_cells": self.n_missing}
        record |= {"unreadable": self.loaded.unreadable, "unknown": self.loaded.unknown}
        screen.answer(record)


def _n_incomplete(features: Any) -> int:
    if isinstance(features, np.ndarray):
        return int(np.isnan(features).any(axis=1).sum())
    masks = [np.asarray(column.is_null(nan_is_null=True)) for column in features.columns]
    return int(np.logical_or.reduce(masks).sum())


def _plain(column: Any) -> Any:
    """A copied column; text without a dictionary, so that formulas in it can be found."""
    import pyarrow as pa

    from ..readers.table import kind_of

    text = kind_of(column.type) == CATEGORY and not pa.types.is_boolean(column.type)
    return column.cast(pa.string()) if text else column


def _conformal(loaded: LoadedModel, error: float, per_class: bool) -> ConformalClassifier:
    """The model with the calibration in its file."""
    found = loaded.summary.get("calibration")
    if not isinstance(found, dict):
        raise CommandError(
            Exit.MODEL, "--sets is not possible: the model was fitted without held-out rows."
        )
    if not 0 < error < 1:
        raise CommandError(Exit.USAGE, f"--sets must lie between 0 and 1; got {error:g}.")
    try:
        codes, probability = np.array(found["codes"], int), np.array(found["probability"], float)
        density = np.array(found["density"], float) if "density" in found else None
        if not 0 <= codes.min() <= codes.max() < len(loaded.classes):
            raise ValueError
        if len(codes) != len(probability) or (density is not None and len(density) != len(codes)):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise CommandError(
            Exit.MODEL, f"{shown(loaded.path, 200)}: its calibration cannot be read."
        ) from None
    return ConformalClassifier.from_scores(
        loaded.model, codes, probability, density, error=error, per_class=per_class
    )


def _reasons(model: Any, features: Any) -> list[str]:
    """The largest parts of the log-odds of each row, in one cell."""
    found = []
    for why in explain(model, features):
        parts = ", ".join(f"{part.name} {signed(part.part)}" for part in why.features[:MOST_PARTS])
        found.append(f"against {why.against} {why.log_odds:+.2f}: {parts}")
    return found


def _set_class_prior(
    loaded: LoadedModel, text: str, source: Source, skip: tuple[str, ...], screen: Screen
) -> None:
    """Replace the model by one with other class frequencies, as --class-prior names them."""
    prior: Any = text
    if text == "estimated":
        assumed, sample = class_shares(loaded), ProbabilitySample()
        if assumed is None:
            raise CommandError(
                Exit.MODEL,
                f"--class-prior estimated: {shown(loaded.path, 200)} lacks those of its fit.",
            )
        for _, table in loaded.tables(source, screen, "Estimating frequencies from", skip):
            sample.add(loaded.model.predict_proba(table))
        loaded.unreadable.clear(), loaded.unknown.clear()
        estimate = prior_from_probability(sample.rows(), assumed, loaded.classes)
        screen.say(str(estimate))
        prior = estimate.class_prior
    elif text != "balanced":
        known, prior = {str(label): label for label in loaded.classes.tolist()}, {}
        for pair in text.split(","):
            name, _, share = pair.rpartition("=")
            try:
                prior[known.get(name, name)] = float(share)
            except ValueError:
                raise CommandError(
                    Exit.USAGE,
                    f"--class-prior takes balanced, estimated or CLASS=SHARE pairs; "
                    f"got {shown(text)}.",
                ) from None
    try:
        loaded.model = with_class_prior(loaded.model, prior)
    except KernelpoolError as error:
        raise CommandError(Exit.USAGE, f"--class-prior: {shown(error, 300)}") from None
