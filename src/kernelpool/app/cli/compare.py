"""`kernelpool compare`: two models on the same rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...inspection.metrics import Metrics, Rate
from ...inspection.pipeline import unwrap
from ...inspection.pool import describe
from ...questions.comparison import ModelComparison
from ...text import listed, percent, plural, shown, text_of
from ..readers.labels import LabeledTable, codes_and_classes
from ..readers.sources import source
from . import options as o
from .output import CommandError, Exit, Screen, placed
from .report import check_report
from .saved import Saved, open_saved

MOST_CLASSES, MOST_PARTED = 30, 50
"""Classes and rows that the page lists."""


def compare(
    first: Annotated[str, o.given("FIRST", "A model file that `kernelpool fit` wrote.")],
    second: Annotated[str, o.given("SECOND", "Another one, of the same classes.")],
    data: o.Data,
    target: o.Target = None,
    drop: o.Drop = None,
    confidence: o.Confidence = 0.95,
    report: Annotated[
        str | None,
        o.output("--report", metavar="FILE", help="Write a page (HTML) with both side by side."),
    ] = None,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Judge two models on the same rows, whose classes are known.

    Prints the error and log-loss of both, and whether the differences may be chance. Of rows that either was fitted to, only
    those that were held out are counted.

    Example: kernelpool compare pool.safetensors parzen.safetensors irises.csv
    """
    if report is not None:
        check_report(report, force)
    if data == "-":
        raise CommandError(
            Exit.USAGE, "compare reads DATA once for each model: name a file, not stdin."
        )
    models = [open_saved(path, screen) for path in (first, second)]
    if list(models[0].classes) != list(models[1].classes):
        raise CommandError(
            Exit.MODEL,
            f"The models know different classes: {listed(models[0].classes.tolist(), 8)} and "
            f"{listed(models[1].classes.tolist(), 8)}.",
        )
    tables = [
        saved.read(source(data, style), saved.target_of(target), screen, list(drop or []))
        for saved in models
    ]
    judges = [
        _judging_rows(saved, table, screen) for saved, table in zip(models, tables, strict=True)
    ]
    common = np.intersect1d(judges[0], judges[1])
    if not len(common):
        raise CommandError(
            Exit.DATA,
            "No row is left that both models can be judged on: pass rows that neither was fitted to.",
        )
    answers = [_answers(*pair, common) for pair in zip(models, tables, strict=True)]
    codes = answers[0][0]
    comparison = ModelComparison.of(codes, answers[0][1], answers[1][1])
    rates = [Metrics.of(codes, probability).rate(1 - confidence) for _, probability in answers]
    for name, path, rate, loss in zip(
        ("First", "Second"), (first, second), rates, comparison.log_losses, strict=True
    ):
        screen.result(f"{name + ':':8} {shown(path, 60)}: error {rate}, log-loss {loss:.4f}")
    screen.result(str(comparison))
    if report is not None:
        judged = judged_tables(
            (Path(first).name, Path(second).name),
            saved_classes(models),
            common,
            answers,
            rates,
            comparison,
        )
        _write_page(report, force, (first, second), models, tables, common, str(comparison), judged)
        screen.result(f"Page: {shown(report, 400)}")
    record: dict[str, Any] = {"first": first, "second": second, **comparison.to_dict()}
    record["rates"] = [rate.to_dict() for rate in rates]
    screen.answer(record)


def _write_page(
    path: str,
    force: bool,
    names: tuple[str, str],
    models: list[Saved],
    tables: list[LabeledTable],
    common: np.ndarray,
    sentence: str,
    judged: Sequence[Any],
) -> None:
    """Both models side by side, on the same rows."""
    from ..report.explorer import MOST_POINTS, explorer_of
    from ..report.html import render_explorer

    chosen = common[
        np.unique(np.linspace(0, len(common) - 1, min(MOST_POINTS, len(common))).astype(int))
    ]
    parts = []
    for name, saved, table in zip(names, models, tables, strict=True):
        rows, labels = table.at(np.flatnonzero(np.isin(table.row_numbers, chosen)))
        found = unwrap(saved.model, [feature.name for feature in table.features])
        x = np.asarray(found.transform(rows) if found.transforms else rows, np.float64)
        explorer = explorer_of(found, describe(found.inner).pool, rows, x, labels, chosen)
        if explorer is not None:
            parts.append((Path(name).name, explorer))
    described = [describe(unwrap(saved.model).inner).sentence for saved in models]
    sentences = [
        sentence,
        *(f"{Path(name).name}: {text}" for name, text in zip(names, described, strict=True)),
    ]
    page = render_explorer(" and ".join(Path(n).name for n in names), sentences, parts, judged)
    with placed(path, force) as beside:
        Path(beside).write_bytes(page.encode("utf-8"))


def saved_classes(models: list[Saved]) -> list[str]:
    """Names of the classes, which are those of both."""
    return [text_of(label) for label in models[0].classes.tolist()]


def judged_tables(
    names: tuple[str, str],
    classes: list[str],
    numbers: np.ndarray,
    answers: list[tuple[np.ndarray, np.ndarray]],
    rates: list[Rate],
    comparison: ModelComparison,
) -> list[Any]:
    """How good both are, class by class as well, and the rows on which they disagree."""
    from ..report.records import PageTable

    codes, named = answers[0][0], [p.argmax(axis=1) for _, p in answers]
    tallies = [Metrics.of(codes, p) for _, p in answers]
    quality = [
        ("error", *(percent(rate.error) for rate in rates)),
        ("its interval", *(f"{percent(rate.low)} to {percent(rate.high)}" for rate in rates)),
        ("log-loss", *(f"{loss:.4f}" for loss in comparison.log_losses)),
        ("Brier score", *(f"{tally.brier:.4f}" for tally in tallies)),
        ("probabilities are off by", *(percent(tally.calibration_error) for tally in tallies)),
        (
            "rows on which it alone errs",
            f"{comparison.only_first:,}",
            f"{comparison.only_second:,}",
        ),
    ]
    for k in np.argsort(-np.bincount(codes, minlength=len(classes)), kind="stable")[
        :MOST_CLASSES
    ].tolist():
        if (codes == k).any():
            quality.append(
                (
                    f"error of class {classes[k]}",
                    *(percent(float((n[codes == k] != k).mean())) for n in named),
                )
            )
    parted = np.flatnonzero(named[0] != named[1])
    doubtful = sorted(parted.tolist(), key=lambda i: -max(p[i].max() for _, p in answers))
    rows = [
        (
            str(numbers[i]),
            classes[codes[i]],
            *(f"{classes[p[i].argmax()]} ({percent(float(p[i].max()))})" for _, p in answers),
        )
        for i in doubtful[:MOST_PARTED]
    ]
    return [
        PageTable("How good both are", ("", *names), tuple(quality), numbers=True, sortable=False),
        PageTable(
            "Rows on which they disagree",
            ("row", "class", *names),
            tuple(rows),
            len(parted) - len(rows),
        ),
    ]


def _judging_rows(saved: Saved, table: LabeledTable, screen: Screen) -> np.ndarray:
    """Numbers of the rows that a model may be judged on."""
    codes, _ = codes_and_classes(table.labels)
    labeled = codes >= 0
    same, held = saved.split_of(table.fingerprint(), codes)
    if same and held is not None and held.any():
        screen.say(
            f"{shown(saved.path, 60)} was fitted to these rows; counted are the {plural(int(held.sum()), 'row')} held out."
        )
        labeled &= held
    elif same:
        screen.warn(
            f"{shown(saved.path, 60)} was fitted to these very rows: its error is too low an estimate."
        )
    return table.row_numbers[labeled]


def _answers(
    saved: Saved, table: LabeledTable, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and probabilities of the rows with these numbers."""
    rows, labels = table.at(np.flatnonzero(np.isin(table.row_numbers, numbers)))
    codes = np.array([saved.classes.tolist().index(label) for label in np.asarray(labels).tolist()])
    return codes, np.asarray(saved.model.predict_proba(rows))
