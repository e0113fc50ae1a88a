"""`kernelpool evaluate`: how good models are on rows with known classes."""

from typing import Annotated, Any

import numpy as np
import typer

from ...bounds import binomial_upper
from ...inspection import ModelComparison, feature_importance
from ...inspection.metrics import DECISIONS, Metrics
from ...text import listed, percent, plural, shown
from ..readers.files import Source
from . import options as o
from .loaded import LoadedModel, load_model
from .output import CommandError, Exit, Screen

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
    source = Source(paths[-1], o.text_style(text))
    found = [_evaluated(one, source, target, screen, len(loaded) > 1) for one in loaded]
    records = []
    for one, (metrics, _) in zip(loaded, found, strict=True):
        counts = int(metrics.n_errors), int(metrics.n_rows)
        bound = binomial_upper(*counts, alpha, n_tried=tried or len(loaded))
        records.append({"model": one.path, "certified": bound, **_record(metrics, one, alpha)})
    if len(loaded) == 1:
        _print(found[0][0], records[0], screen)
        if importance:
            records[0]["importance"] = _importance(loaded[0], source, target, screen)
    else:
        records[0]["comparisons"] = _compare(found, records, screen)
    screen.answer(
        {**(records[0] if len(records) == 1 else {"models": records}), "at_most": at_most}
    )
    if at_most is not None and min(record["certified"] for record in records) > at_most:
        screen.result(f"Not certified: at most {100 * at_most:g} % was asked for.")
        raise typer.Exit(Exit.REFUTED)


def _evaluated(
    loaded: LoadedModel, source: Source, target: str | None, screen: Screen, keep: bool
) -> tuple[Metrics, list[tuple[np.ndarray, np.ndarray]]]:
    """The metrics of one model; with `keep` also codes and probabilities of labeled rows."""
    metrics, kept = Metrics.none(len(loaded.classes)), []
    for table, codes in loaded.labeled(source, target, screen, "Evaluating by"):
        probability, _, decision = loaded.predictions(table)
        metrics += Metrics.of(codes, probability, decision=decision)
        if keep:
            kept.append((codes[codes >= 0], probability[codes >= 0]))
    if not metrics.n_rows:
        raise CommandError(Exit.DATA, f"{source.label}: no row has a class.")
    if metrics.n_unlabeled:
        screen.warn(f"{plural(int(metrics.n_unlabeled), 'row')} without a class were left out.")
    return metrics, kept


def _record(metrics: Metrics, loaded: LoadedModel, alpha: float) -> dict[str, Any]:
    """All figures of a model, for programs."""
    rate, accepted = metrics.rate(alpha), metrics.accepted(alpha)
    return {
        **rate.to_dict(),
        "sentence": str(rate),
        "most_frequent_class_error": 1 - metrics.confusion.sum(axis=1).max() / metrics.n_rows,
        "log_loss": metrics.log_loss,
        "brier": metrics.brier,
        "calibration_error": metrics.calibration_error,
        "calibration": metrics.calibration(),
        "classes": loaded.classes.tolist(),
        "confusion": metrics.confusion.tolist(),
        "unlabeled": int(metrics.n_unlabeled),
        "decisions": dict(zip(DECISIONS, metrics.decisions[:, 0].tolist(), strict=True)),
        "accepted": None if accepted is None else {**accepted.to_dict(), "sentence": str(accepted)},
    }


def _print(metrics: Metrics, record: dict[str, Any], screen: Screen) -> None:
    """The figures of one model, for people."""
    baseline = f"always the most frequent class: {percent(record['most_frequent_class_error'])}"
    certified = f"at most {percent(record['certified'])} of new rows are misclassified"
    lines = {
        "Error": f"{record['sentence']}; {baseline}",
        "Certified": f"with {100 * record['confidence']:g} % confidence {certified}",
        "Log-loss": f"{record['log_loss']:.4f} (Brier score {record['brier']:.4f})",
        "Calibration": f"probabilities are off by {percent(record['calibration_error'])} on average",
    }
    if record["accepted"] is None or record["accepted"]["n_rows"] < record["n_rows"]:
        counts = (
            (name, int(n), int(k))
            for name, (n, k) in zip(DECISIONS, metrics.decisions, strict=True)
        )
        lines["Decisions"] = "; ".join(f"{name} {n:,} rows, {k:,} wrong" for name, n, k in counts)
        lines["Accepted"] = "none" if record["accepted"] is None else record["accepted"]["sentence"]
    for name, text in lines.items():
        screen.result(f"{name + ':':13} {text}")
    screen.table(
        "Calibration: rows by the probability of their label",
        ["probability", "rows", "on average", "correct"],
        [
            [
                f"{b['from']:.1f} to {b['to']:.1f}",
                b["n_rows"],
                percent(b["said"]),
                percent(b["right"]),
            ]
            for b in record["calibration"]
        ],
    )
    names, confusion = [str(name) for name in record["classes"]], metrics.confusion
    if len(names) <= MOST_CLASSES:
        rows = [[name, *row] for name, row in zip(names, confusion.tolist(), strict=True)]
        screen.table("Confusion: true classes down, predicted ones across", ["true", *names], rows)
        return
    errors = confusion - np.diag(np.diag(confusion))
    order = np.argsort(-errors, axis=None, kind="stable")[:MOST_CLASSES]
    rows = [[names[i], names[j], errors[i, j]] for i, j in (divmod(at, len(names)) for at in order)]
    screen.table("Most frequent confusions", ["true", "predicted", "rows"], rows)


def _importance(
    loaded: LoadedModel, source: Source, target: str | None, screen: Screen
) -> dict[str, Any]:
    """A second reading: how much the log-loss rises without each feature."""
    import pyarrow as pa

    parts = list(loaded.labeled(source, target, Screen(True), "Reading"))
    codes = np.concatenate([code for _, code in parts])
    table = pa.concat_tables([part for part, _ in parts]).combine_chunks()
    known = np.flatnonzero(codes >= 0)
    with screen.working("Leaving out features"):
        found = feature_importance(loaded.model, table.take(known), loaded.classes[codes[known]])
    order = np.argsort(-found.importance, kind="stable")[:MOST_CLASSES]
    screen.table(
        "Rise of the log-loss without a feature",
        ["feature", "rise", "±"],
        [[found.names[i], f"{found.importance[i]:+.4f}", f"{found.error[i]:.4f}"] for i in order],
    )
    return found.to_dict()


def _compare(
    found: list[tuple[Metrics, list[tuple[np.ndarray, np.ndarray]]]],
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
    codes = np.concatenate([code for code, _ in found[0][1]])
    first, *others = (np.concatenate([p for _, p in kept]) for _, kept in found)
    comparisons = []
    for record, other in zip(records[1:], others, strict=True):
        compared = ModelComparison.of(codes, first, other)
        names = f"{shown(records[0]['model'], 60)} and {shown(record['model'], 60)}"
        screen.result(f"{names}: {compared}")
        comparisons.append({"model": record["model"], **compared.to_dict()})
    return comparisons
