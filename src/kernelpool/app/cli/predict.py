"""`kernelpool predict`: labels, probabilities and densities of new rows, batch by batch."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ... import ConformalClassifier, RejectClassifier
from ...errors import KernelpoolError
from ...inspection import DECISIONS, Predictions, explain, predictions, with_class_prior
from ...tables.read import places_of
from ...text import listed, plural, shown, signed
from . import console as o
from .console import CommandError, Exit, Screen, check_free
from .model import LoadedModel, load_model
from .output import FORMATS, table_output

ROWS_AT_A_TIME = 20_000
"""Rows that are predicted and written at a time."""

EXPLAINED_AT_A_TIME = 100
"""The same of rows with explanations."""

MOST_PARTS = 3
"""Features that an explanation in a cell names."""


def predict(
    model: o.ModelPath,
    data: o.Data,
    keep: Annotated[
        list[str] | None,
        o.option("--keep", "Copy this column of DATA to the output (repeatable).", "COLUMN"),
    ] = None,
    text: o.Text = None,
    reject: o.Reject = False,
    ambiguity: o.Ambiguity = None,
    novelty: o.Novelty = None,
    sets: Annotated[
        float | None,
        o.option("--sets", "Add a set of classes that lacks the true one this rarely.", **o.SHARE),
    ] = None,
    per_class: Annotated[
        bool, o.option("--per-class", "Keep the promise of --sets within each class.")
    ] = False,
    class_prior: Annotated[
        str | None,
        o.option("--class-prior", "Class frequencies: balanced, or sick=0.1,well=0.9.", "SHARES"),
    ] = None,
    explain: Annotated[
        bool, o.option("--explain", "Add the features that count most for the label.")
    ] = False,
    output: Annotated[str, o.option("--output -o", "File to write, - for stdout.", "FILE")] = "-",
    format: Annotated[
        o.OutputFormat | None,
        o.option("--format", "By the name of the output unless given; csv on stdout."),
    ] = None,
    raw: Annotated[
        bool, o.option("--raw", "CSV: no apostrophe before what a spreadsheet would run.")
    ] = False,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Predict the classes of new rows.

    Columns are matched by name. The output has a row for each row of DATA: label, a probability for
    each class, and log_density where the model has one. With --reject a column decision is
    accepted, ambiguous or novel, and only accepted rows have a label.

    Example: kernelpool predict irises.safetensors new.csv -o answers.csv --keep id --reject
    """
    screen = Screen(as_json, quiet)
    if as_json and output == "-":
        raise CommandError(
            Exit.USAGE,
            "--json describes the run: name the output with -o, or use --format jsonl for rows as "
            "JSON.",
        )
    check_free(output, force)
    kind = format or ("csv" if output == "-" else FORMATS.get(Path(output).suffix.lower()))
    if kind is None:
        raise CommandError(
            Exit.USAGE,
            f"{shown(output, 200)}: name it .csv, .parquet, .arrow, .feather or .jsonl, or pass "
            f"--format.",
        )
    loaded = load_model(model, screen)
    source = loaded.scan(data, text)
    names = tuple(keep or ())
    if class_prior is not None:
        if sets is not None:
            raise CommandError(
                Exit.USAGE,
                "--sets needs the class frequencies of the fit: leave --class-prior out.",
            )
        _set_class_prior(loaded, class_prior)
    conformal = None if sets is None else _conformal(loaded, sets, per_class, screen)
    loaded.reject(reject, ambiguity, novelty, screen)
    refuses = isinstance(loaded.model, RejectClassifier)
    n_labels = np.zeros(len(loaded.classes), int)
    n_decided = np.zeros(len(DECISIONS), int)
    with ExitStack() as stack:
        write: Any = None
        step = EXPLAINED_AT_A_TIME if explain else ROWS_AT_A_TIME
        for batch, features, _ in loaded.batches(source, screen, "Predicting", keep=names):
            for at in range(0, len(features), step):
                x = features[at : at + step]
                rows = predictions(loaded.model, x)
                accepted = rows.predicted[rows.decision == 0]
                n_labels += np.bincount(accepted, minlength=len(n_labels))
                n_decided += np.bincount(rows.decision, minlength=len(n_decided))
                screen.note = plural(int(n_decided.sum()), "row")
                table = _answers(rows, loaded.classes, refuses)
                if conformal is not None or rows.sets is not None:
                    inside = rows.sets if conformal is None else conformal.predict_set(x)
                    table = table.append_column("set", [_texts_of(inside, loaded.classes)])
                if explain:
                    table = table.append_column("why", [_reasons(loaded.model, x)])
                table = _with_copies(table, batch.table.slice(at, step), names)
                if write is None:
                    out = table_output(output, str(kind), table.schema, force, raw)
                    write = stack.enter_context(out)
                write(table)
    n_rows = int(n_decided.sum())
    counts = dict(zip(map(str, loaded.classes.tolist()), n_labels.tolist(), strict=True))
    decisions = dict(zip(DECISIONS, n_decided.tolist(), strict=True)) if refuses else {}
    counted = [f"{shown(name, 24)} {n:,}" for name, n in list(counts.items())[:8]]
    counted += [f"{name} {decisions[name]:,}" for name in DECISIONS[1:] if refuses]
    if loaded.n_incomplete:
        screen.say(f"{plural(loaded.n_incomplete, 'row')} with missing cells.")
    if 2 * n_decided[DECISIONS.index("ambiguous")] > n_rows:
        screen.warn(
            "most rows are ambiguous: a larger --ambiguity accepts more of them, with more errors."
        )
    where = "" if output == "-" else f" -> {shown(output, 200)}"
    screen.say(f"{plural(n_rows, 'row')}: {', '.join(counted)}{where}")
    screen.answer(
        {
            "output": output,
            "n_rows": n_rows,
            "labels": counts,
            "decisions": decisions,
            "rows_with_missing_cells": loaded.n_incomplete,
            "unreadable": loaded.unreadable,
            "unknown": loaded.unknown,
        }
    )


def _answers(rows: Predictions, classes: np.ndarray, refuses: bool) -> Any:
    """Labels, decisions, probabilities and densities as a table."""
    import pyarrow as pa

    names = classes.tolist()
    labels = pa.array(classes if classes.dtype.kind in "iuf" else list(map(str, names)))
    columns = {"label": labels.take(pa.array(rows.predicted, mask=rows.decision > 0))}
    if refuses:
        columns["decision"] = pa.array(DECISIONS).take(pa.array(rows.decision))
    for name, probability in zip(names, rows.probability.T, strict=True):
        columns[f"probability_{name}"] = pa.array(probability.copy())
    if rows.score is not None:
        columns["log_density"] = pa.array(rows.score)
    return pa.table(columns)


def _texts_of(sets: Any, classes: np.ndarray) -> list[str]:
    """Sets of classes (n, K) as text."""
    names = np.array([re.sub(r"([|\\])", r"\\\1", str(name)) for name in classes.tolist()], object)
    return ["|".join(names[chosen]) for chosen in sets]


def _with_copies(table: Any, rows: Any, keep: tuple[str, ...]) -> Any:
    """The output behind columns of DATA; dictionaries as plain text, in which formulas are
    found.
    """
    import pyarrow as pa

    clash = [name for name in keep if name in table.column_names]
    if clash:
        raise CommandError(
            Exit.DATA,
            f"--keep: the output has columns {listed(clash)} of its own; rename those of DATA.",
        )
    for name in reversed(keep):
        column = rows.column(name)
        text = pa.types.is_dictionary(column.type) or "string" in str(column.type)
        table = table.add_column(0, name, column.cast(pa.string()) if text else column)
    return table


def _conformal(
    loaded: LoadedModel, error: float, per_class: bool, screen: Screen
) -> ConformalClassifier:
    """The model with the calibration in its file."""
    if not 0 < error < 1:
        raise CommandError(Exit.USAGE, f"--sets must lie between 0 and 1; got {error:g}.")
    file = loaded.file
    if file.calibration is None:
        raise CommandError(
            Exit.MODEL, "--sets is not possible: the model was fitted without held-out rows."
        )
    codes: Any = file.codes
    with screen.warnings():
        return ConformalClassifier.from_predictions(
            file.model, file.calibration, codes, error=error, per_class=per_class
        )


def _reasons(model: Any, features: Any) -> list[str]:
    """The largest parts of the log-odds of each row, in one cell."""
    reasons = []
    for why in explain(model, features):
        terms = ", ".join(
            f"{feature.name} {signed(feature.part)}" for feature in why.features[:MOST_PARTS]
        )
        reasons.append(f"against {why.against} {signed(why.log_odds)}: {terms}")
    return reasons


def _set_class_prior(loaded: LoadedModel, text: str) -> None:
    """Replace the model by one with other class frequencies, as --class-prior names them."""
    prior: Any = text
    try:
        if text != "balanced":
            names = loaded.classes.tolist()
            labels, _, shares = zip(*(p.rpartition("=") for p in text.split(",")), strict=True)
            pairs = zip(labels, places_of(labels, names), shares, strict=True)
            prior = {label if i < 0 else names[i]: float(share) for label, i, share in pairs}
        loaded.model = with_class_prior(loaded.model, prior)
    except KernelpoolError as error:
        raise CommandError(Exit.USAGE, f"--class-prior: {shown(error, 300)}") from None
    except ValueError:
        raise CommandError(
            Exit.USAGE, f"--class-prior takes balanced or CLASS=SHARE pairs; got {shown(text)}."
        ) from None
