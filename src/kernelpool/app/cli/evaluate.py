"""`kernelpool evaluate`: how good models are on rows with known classes."""

from typing import Annotated, Any

import numpy as np
import typer

from ...bounds import binomial_upper
from ...inspection import FeatureImportance, ModelComparison, feature_importance
from ...inspection.metrics import DECISIONS, Metrics
from ...text import listed, percent, plural, shown
from ..readers.files import Source
from ..readers.table import check_columns, codes_of
from . import options as o
from .loaded import LoadedModel, load_model
from .output import CommandError, Exit, Screen
from .report import warn_if_fitted

PATHS = "Model files that `kernelpool fit` wrote, and rows: a file, a folder, or - for stdin."
AT_MOST = "Exit with code 7 unless the error is certified to be at most this."
TRIED = "Models among which DATA chose; those that are given unless said otherwise."
IMPORTANCE = "Print also how much the log-loss rises without each feature."
MOST_CLASSES = 20
"""Of a confusion matrix on the screen."""


def evaluate(
    paths: Annotated[list[str], o.given("MODEL... DATA", PATHS)],
    target: o.Target = None,
    text: o.Text = None,
    confidence: o.Confidence = 0.95,
    at_most: Annotated[
        float | None, o.evaluation("--at-most", metavar="ERROR", help=AT_MOST, min=0, max=1)
    ] = None,
    tried: Annotated[int | None, o.evaluation("--tried", metavar="N", help=TRIED, min=1)] = None,
    importance: Annotated[bool, o.evaluation("--importance", help=IMPORTANCE)] = False,
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
    screen, alpha = Screen(as_json, quiet), 1 - confidence
    if len(paths) < 2:
        raise CommandError(Exit.USAGE, "Name a model (or several) and the data.")
    loaded = [load_model(path, screen) for path in paths[:-1]]
    if any(list(one.classes) != list(loaded[0].classes) for one in loaded):
        named = " and ".join(listed(one.classes.tolist(), 8) for one in loaded)
        raise CommandError(Exit.MODEL, f"The models have different classes: {named}.")
    for one in loaded:
        one.reject(reject, ambiguity, novelty, screen)
    column = loaded[0].target_of(target)
    source = Source(paths[-1], o.text_style(text))
    found = [_evaluated(one, source, column, screen, len(loaded) > 1) for one in loaded]
    records = []
    for one, (metrics, _) in zip(loaded, found, strict=True):
        bound = binomial_upper(
            int(metrics.n_errors), int(metrics.n_rows), alpha, n_tried=tried or len(loaded)
        )
        records.append({"model": one.path, **_record(metrics, one, alpha), "certified": bound})
    certified = f"with {100 * confidence:g} % confidence at most {{}} of new rows are misclassified"
    if len(loaded) == 1:
        _print(found[0][0], loaded[0], alpha, screen)
        screen.result(f"Certified:    {certified.format(percent(records[0]['certified']))}")
        if importance:
            records[0]["importance"] = _importance(loaded[0], source, column, screen).to_dict()
        screen.answer({**records[0], "at_most": at_most})
    else:
        records[0]["comparisons"] = _compare(found, loaded, records, screen)
        screen.answer({"models": records, "at_most": at_most})
    best = min(record["certified"] for record in records)
    if at_most is not None and best > at_most:
        screen.result(f"Not certified: at most {100 * at_most:g} % was asked for.")
        raise typer.Exit(Exit.REFUTED)


def _evaluated(
    loaded: LoadedModel, source: Source, target: str, screen: Screen, keep: bool
) -> tuple[Metrics, tuple[np.ndarray, np.ndarray]]:
    """The metrics of one model; with `keep` also codes and probabilities of labeled rows."""
    metrics, parts = Metrics.none(len(loaded.classes)), []
    for batch, table in loaded.tables(source, screen, "Evaluating by", (target,)):
        check_columns([target], source, "for the target")
        if batch.first_row == 1 and loaded.kinds is not None:
            warn_if_fitted(loaded.summary, table, screen)
        codes, predicted = codes_of(batch, target, loaded.classes), loaded.predictions(table)
        metrics += Metrics.of(codes, predicted.probability, decision=predicted.decision)
        if keep:
            parts.append((codes[codes >= 0], predicted.probability[codes >= 0]))
    if not metrics.n_rows:
        raise CommandError(Exit.DATA, f"{source.label}: no row has a class.")
    if metrics.n_unlabeled:
        screen.warn(f"{plural(int(metrics.n_unlabeled), 'row')} without a class were left out.")
    codes, probability = zip(*parts, strict=True) if parts else ((np.zeros(0),),) * 2
    return metrics, (np.concatenate(codes), np.concatenate(probability))


def _importance(
    loaded: LoadedModel, source: Source, target: str, screen: Screen
) -> FeatureImportance:
    """A second reading: how much the log-loss rises without each feature, as a table."""
    import pyarrow as pa

    tables, codes = [], []
    for batch, table in loaded.tables(source, Screen(True), "Reading", (target,)):
        code = codes_of(batch, target, loaded.classes)
        tables.append(table.take(np.flatnonzero(code >= 0)))
        codes.append(code[code >= 0])
    labels = loaded.classes[np.concatenate(codes)]
    with screen.working("Leaving out features"):
        found = feature_importance(loaded.model, pa.concat_tables(tables).combine_chunks(), labels)
    order = np.argsort(-found.importance, kind="stable")[:MOST_CLASSES]
    screen.table(
        "Rise of the log-loss without a feature",
        ["feature", "rise", "±"],
        [[found.names[i], f"{found.importance[i]:+.4f}", f"{found.error[i]:.4f}"] for i in order],
    )
    return found


def _compare(
    found: list[tuple[Metrics, tuple[np.ndarray, np.ndarray]]],
    loaded: list[LoadedModel],
    records: list[dict[str, Any]],
    screen: Screen,
) -> list[dict[str, Any]]:
    """Several models side by side, and each against the first."""
    screen.table(
        "Models on the same rows",
        ["model", "error", "interval", "certified", "log-loss", "Brier", "calibration"],
        [
            [
                shown(record["model"], 40),
                percent(record["error"]),
                f"{percent(record['low'])} to {percent(record['high'])}",
                percent(record["certified"]),
                f"{record['log_loss']:.4f}",
                f"{record['brier']:.4f}",
                percent(record["calibration_error"]),
            ]
            for record in records
        ],
    )
    comparisons = []
    codes, first = found[0][1]
    for one, (_, (_, probability)) in zip(loaded[1:], found[1:], strict=True):
        compared = ModelComparison.of(codes.astype(int), first, probability)
        screen.result(f"{shown(loaded[0].path, 60)} and {shown(one.path, 60)}: {compared}")
        comparisons.append({"model": one.path, **compared.to_dict()})
    return comparisons


def _print(metrics: Metrics, loaded: LoadedModel, alpha: float, screen: Screen) -> None:
    frequent = float(1 - metrics.confusion.sum(axis=1).max() / metrics.n_rows)
    baseline = f"always the most frequent class: {percent(frequent)}"
    screen.result(f"Error:        {metrics.rate(alpha)}; {baseline}")
    screen.result(f"Log-loss:     {metrics.log_loss:.4f} (Brier score {metrics.brier:.4f})")
    off = percent(metrics.calibration_error)
    screen.result(f"Calibration:  probabilities are off by {off} on average")
    accepted = metrics.accepted(alpha)
    if accepted is None or accepted.n_rows < metrics.n_rows:
        counts = zip(DECISIONS, metrics.decisions.tolist(), strict=True)
        parts = [
            f"{name} {plural(int(n), 'row')}, {int(wrong):,} wrong" for name, (n, wrong) in counts
        ]
        screen.result(f"Decisions:    {'; '.join(parts)}")
        error = "all rows are rejected" if accepted is None else f"error {accepted}"
        screen.result(f"Accepted:     {error}")
    screen.table(
        "Calibration: rows by the probability of their label",
        ["from", "to", "rows", "probability", "correct"],
        [
            [
                f"{b['from']:.1f}",
                f"{b['to']:.1f}",
                f"{b['n_rows']:,}",
                percent(b["said"]),
                percent(b["right"]),
            ]
            for b in metrics.calibration()
        ],
    )
    names, confusion = [str(name) for name in loaded.classes.tolist()], metrics.confusion
    if len(names) <= MOST_CLASSES:
        rows = [
            [name, *(f"{n:,}" for n in row)] for name, row in zip(names, confusion, strict=True)
        ]
        screen.table("Confusion: true classes down, predicted ones across", ["true", *names], rows)
        return
    off_diagonal = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-off_diagonal, axis=None, kind="stable")[:MOST_CLASSES]
    pairs = [divmod(int(at), len(names)) for at in order]
    rows = [[names[i], names[j], f"{off_diagonal[i, j]:,}"] for i, j in pairs if off_diagonal[i, j]]
    screen.table("Most frequent confusions", ["true", "predicted", "rows"], rows)


def _record(metrics: Metrics, loaded: LoadedModel, alpha: float) -> dict[str, Any]:
    accepted = metrics.accepted(alpha)
    return {
        **metrics.rate(alpha).to_dict(),
        "log_loss": metrics.log_loss,
        "brier": metrics.brier,
        "calibration_error": metrics.calibration_error,
        "calibration": metrics.calibration(),
        "classes": loaded.classes,
        "confusion": metrics.confusion,
        "unlabeled": int(metrics.n_unlabeled),
        "decisions": dict(zip(DECISIONS, metrics.decisions[:, 0], strict=True)),
        "accepted": None if accepted is None else accepted.to_dict(),
    }
