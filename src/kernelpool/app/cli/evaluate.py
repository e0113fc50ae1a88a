"""Models and rows: `kernelpool evaluate`, `check` and `report`.

How good models are on rows with known classes, whether rows are like those of the fit, and a page
about both.
"""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from ...inspection import Metrics, ModelComparison, bounds, predictions, prior_from_probability
from ...tables.draw import MOST_CELLS, Draw
from ...tables.read import Scan, row_ids
from ...text import listed, percent, plural, shown
from ..report.results import MOST_EVALUATED
from ..report.results import evaluate as measure
from . import console as o
from .console import CommandError, Exit, Screen
from .model import LoadedModel, load_model

PATHS = "Model files that `kernelpool fit` wrote, and rows: a file, a folder, or - for stdin."
MOST_COUNTED = 1_000_000
"""Rows from which class frequencies are estimated; of more, an even draw."""

MOST_LISTED = 20
"""Classes of a confusion matrix on the screen."""


def evaluate(
    paths: Annotated[list[str], o.given("MODEL... DATA", PATHS)],
    target: o.Target = None,
    text: o.Text = None,
    confidence: o.Confidence = 0.95,
    at_most: Annotated[
        float | None,
        o.option(
            "--at-most",
            "Exit with code 7 unless the error is certified to be at most this.",
            "ERROR",
            min=0,
            max=1,
        ),
    ] = None,
    tried: Annotated[
        int | None,
        o.option(
            "--tried", "Models among which DATA chose; as many as are given by default.", "N", min=1
        ),
    ] = None,
    reject: o.Reject = False,
    ambiguity: o.Ambiguity = None,
    novelty: o.Novelty = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure the error of models on rows whose classes are known.

    DATA are rows that no model was fitted to. Of one model this prints the error with its
    confidence interval, an upper bound that is certified, log-loss, calibration and the confusion
    matrix; of several their errors side by side, and whether chance may explain the differences.

    Example: kernelpool evaluate irises.safetensors unseen.csv --at-most 0.1
    """
    screen = Screen(as_json, quiet)
    alpha = 1 - confidence
    if len(paths) < 2:
        raise CommandError(Exit.USAGE, "Name a model (or several) and the data.")
    loaded = [load_model(path, screen) for path in paths[:-1]]
    if any(list(one.classes) != list(loaded[0].classes) for one in loaded):
        named = " and ".join(listed(one.classes.tolist(), 8) for one in loaded)
        raise CommandError(Exit.MODEL, f"The models have different classes: {named}.")
    for one in loaded:
        one.reject(reject, ambiguity, novelty, screen)
    source = loaded[0].scan(paths[-1], text)
    evaluations = [_evaluated(one, source, target, screen, len(loaded) > 1) for one in loaded]
    records = []
    for one, (metrics, _) in zip(loaded, evaluations, strict=True):
        counts = int(metrics.n_errors), int(metrics.n_rows)
        bound = bounds.binomial_upper(*counts, alpha, n_tried=tried or len(loaded))
        names = {"model": one.path, "classes": one.classes.tolist()}
        records.append({**names, "certified": bound, **metrics.to_dict(alpha)})
    if len(loaded) == 1:
        _print(evaluations[0][0], records[0], screen)
    else:
        records[0]["comparisons"] = _compare(evaluations, records, screen)
    screen.answer(
        {**(records[0] if len(records) == 1 else {"models": records}), "at_most": at_most}
    )
    if at_most is not None and min(record["certified"] for record in records) > at_most:
        screen.result(f"Not certified: at most {100 * at_most:g} % was asked for.")
        raise typer.Exit(Exit.REFUTED)


def _evaluated(
    loaded: LoadedModel, source: Scan, target: str | None, screen: Screen, keep: bool
) -> tuple[Metrics, list[tuple[np.ndarray, np.ndarray]]]:
    """The metrics of one model; with `keep` also codes and probabilities of labeled rows."""
    target = target or loaded.target
    if target is None:
        what = "does not name the column of the classes: pass --target."
        raise CommandError(Exit.USAGE, f"{shown(loaded.path, 200)} {what}")
    metrics = Metrics.none(len(loaded.classes))
    kept = []
    for _, table, codes in loaded.batches(source, screen, "Evaluating by", target):
        rows = predictions(loaded.model, table, score=False)
        metrics += Metrics.of(codes, rows)
        if keep:
            kept.append((codes[codes >= 0], rows.probability[codes >= 0]))
    loaded.warn_of_training(screen, "errors on them are too low")
    if not metrics.n_rows:
        raise CommandError(Exit.DATA, f"{source.label}: no row has a class.")
    if metrics.n_unlabeled:
        screen.warn(f"{plural(int(metrics.n_unlabeled), 'row')} without a class were left out.")
    return metrics, kept


def _print(metrics: Metrics, record: dict[str, Any], screen: Screen) -> None:
    """The figures of one model, for people."""
    alpha = 1 - record["confidence"]
    bound = f"at most {percent(record['certified'])} of new rows are misclassified"
    lines = o.figures(metrics, record["classes"], alpha)
    lines["Certified"] = f"with {100 * record['confidence']:g} % confidence {bound}"
    if metrics.decisions[1:].any():
        counts = ", ".join(f"{name} {n:,}" for name, n in record["decisions"].items())
        lines["Decisions"] = f"{counts}; error of accepted rows {metrics.accepted(alpha)}"
    screen.lines(lines)
    screen.table(
        "Calibration: rows by the probability of their label",
        ["from", "rows", "probability", "correct"],
        [
            [b["from"], b["n_rows"], percent(b["probability"]), percent(b["right"])]
            for b in record["calibration"]
        ],
    )
    names = [str(name) for name in record["classes"]]
    if len(names) <= MOST_LISTED:
        rows = [[name, *row] for name, row in zip(names, record["confusion"], strict=True)]
        screen.table("Confusion: true classes down, predicted ones across", ["true", *names], rows)


def _compare(
    evaluations: list[tuple[Metrics, list[tuple[np.ndarray, np.ndarray]]]],
    records: list[dict[str, Any]],
    screen: Screen,
) -> list[dict[str, Any]]:
    """Several models side by side, and each against the first."""
    shares = ("error", "low", "high", "certified", "calibration_error")
    screen.table(
        "Models on the same rows",
        ["model", "error", "from", "to", "certified", "calibration", "log-loss"],
        [
            [r["model"], *(percent(r[name]) for name in shares), f"{r['log_loss']:.4f}"]
            for r in records
        ],
    )
    codes = np.concatenate([code for code, _ in evaluations[0][1]])
    first, *rest = (np.concatenate([p for _, p in predictions]) for _, predictions in evaluations)
    comparisons = []
    for record, other in zip(records[1:], rest, strict=True):
        compared = ModelComparison.of(codes, first, other)
        screen.result(f"First and {shown(record['model'], 60)}: {compared}")
        comparisons.append({"model": record["model"], **compared.to_dict()})
    return comparisons


# -- other questions about rows --------------------------------------------------------------------


def check(
    model: o.ModelPath,
    data: o.Data,
    text: o.Text = None,
    alarm: Annotated[
        float | None,
        o.option(
            "--alarm", "End with exit code 7 where the p-value is below this.", "P", min=0, max=1
        ),
    ] = None,
    confidence: o.Confidence = 0.95,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Test whether new rows are like those that a model was fitted to.

    Compares every feature, and the density of the model, with counts of the rows of the fit; names
    the features that have changed; and estimates how frequent the classes are among the new rows.
    No labels are needed.

    Example: kernelpool check irises.safetensors new.csv --alarm 0.01
    """
    screen = Screen(as_json, quiet)
    loaded = load_model(model, screen)
    source = loaded.scan(data, text)
    reference = loaded.file.reference
    if reference is None:
        what = "has no counts of the rows of its fit: fit it by `kernelpool fit`."
        raise CommandError(Exit.MODEL, f"{shown(loaded.path, 200)} {what}")
    counts: Any = 0
    draw = Draw(MOST_COUNTED)
    for _, table, _ in loaded.batches(source, screen, "Checking"):
        rows = predictions(loaded.model, table)
        counts = counts + reference.count(table, rows)
        draw.add(rows.probability)
    loaded.warn_of_training(screen, "they cannot have changed")
    drift = reference.compare(counts)
    screen.result(str(drift))
    record: dict[str, Any] = {"rows": source.label, **drift.to_dict(), "moved": drift.moved()}
    prior = getattr(loaded.model, "class_prior_", None)
    if prior is None and loaded.file.codes is not None:  # about the frequencies of the fit
        prior = np.bincount(loaded.file.codes, minlength=len(loaded.classes))
        prior = prior / prior.sum()
    if prior is not None:
        estimate = prior_from_probability(draw.drawn().rows, prior, loaded.classes, confidence)
        estimate = replace(estimate, moved=bool(drift.moved()))
        screen.result(str(estimate))
        record["class_frequencies"] = estimate.to_dict()
    screen.answer(record)
    if alarm is not None and drift.p_value < alarm:
        raise typer.Exit(Exit.REFUTED)


def report(
    model: o.ModelPath,
    data: o.Data,
    target: o.Target = None,
    keep: o.Keep = None,
    text: o.Text = None,
    output: Annotated[str, o.option("--output -o", "File to write.", "FILE")] = "report.html",
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a report (HTML) on a model and rows.

    DATA are rows that the model was not fitted to, with classes or without. `kernelpool fit
    --report` writes one on the rows of the fit.

    Example: kernelpool report irises.safetensors new.csv -o irises.html
    """
    screen = Screen(as_json, quiet)
    o.check_report(output, force)
    loaded = load_model(model, screen)
    if loaded.names is None:
        what = "was fitted without names of columns"
        raise CommandError(Exit.MODEL, f"{shown(loaded.path, 200)} {what}.")
    source = loaded.scan(data, text)
    if target is None and loaded.target in source.names:
        target = loaded.target
    draw = Draw(MOST_CELLS // len(loaded.names))
    for batch, table, codes in loaded.batches(source, screen, "Reading", target, keep or ()):
        numbers = np.arange(batch.row, batch.row + len(codes))
        draw.add((table, codes, row_ids(numbers, [batch.table[name] for name in keep or ()])))
    x, codes, ids = draw.drawn().rows
    y = np.array([*loaded.classes.tolist(), None], object)[codes]
    results = measure(loaded.model, x, y, ids=ids.tolist(), most_rows=MOST_EVALUATED)
    o.write_page(results, source.label, target, output, force, screen)
    screen.answer({"report": output, "n_rows": len(y)})
