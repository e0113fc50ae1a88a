"""`kernelpool compare`: two models on the same rows."""

from typing import Annotated, Any

import numpy as np

from ..inspection.metrics import Metrics
from ..questions.comparison import ModelComparison
from ..tables.labels import LabeledTable, codes_and_classes
from ..tables.sources import source
from ..text import listed, plural, shown
from . import options as o
from .output import CommandError, Exit, Screen
from .saved import Saved, open_saved


def compare(
    first: Annotated[str, o.given("FIRST", "A model file that `kernelpool fit` wrote.")],
    second: Annotated[str, o.given("SECOND", "Another one, of the same classes.")],
    data: o.Data,
    target: o.Target = None,
    drop: o.Drop = None,
    confidence: o.Confidence = 0.95,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Judge two models on the same rows, whose classes are known.

    Prints the error and log-loss of both, and whether the differences may be chance. Of rows that either was fitted to, only
    those that were held out are counted.

    Example: kernelpool compare pool.safetensors parzen.safetensors irises.csv
    """
    if data == "-":
        raise CommandError(Exit.USAGE, "compare reads DATA once for each model: name a file, not stdin.")
    models = [open_saved(path, screen) for path in (first, second)]
    if list(models[0].classes) != list(models[1].classes):
        raise CommandError(
            Exit.MODEL,
            f"The models know different classes: {listed(models[0].classes.tolist(), 8)} and "
            f"{listed(models[1].classes.tolist(), 8)}.",
        )
    tables = [saved.read(source(data, style), saved.target_of(target), screen, list(drop or [])) for saved in models]
    judges = [_judging_rows(saved, table, screen) for saved, table in zip(models, tables, strict=True)]
    common = np.intersect1d(judges[0], judges[1])
    if not len(common):
        raise CommandError(Exit.DATA, "No row is left that both models can be judged on: pass rows that neither was fitted to.")
    answers = [_answers(*pair, common) for pair in zip(models, tables, strict=True)]
    codes = answers[0][0]
    comparison = ModelComparison.of(codes, answers[0][1], answers[1][1])
    rates = [Metrics.of(codes, probability).rate(1 - confidence) for _, probability in answers]
    for name, path, rate, loss in zip(("First", "Second"), (first, second), rates, comparison.log_losses, strict=True):
        screen.result(f"{name + ':':8} {shown(path, 60)}: error {rate}, log-loss {loss:.4f}")
    screen.result(str(comparison))
    record: dict[str, Any] = {"first": first, "second": second, **comparison.to_dict()}
    record["rates"] = [rate.to_dict() for rate in rates]
    screen.answer(record)


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
        screen.warn(f"{shown(saved.path, 60)} was fitted to these very rows: its error is too low an estimate.")
    return table.row_numbers[labeled]


def _answers(saved: Saved, table: LabeledTable, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and probabilities of the rows with these numbers."""
    rows, labels = table.at(np.flatnonzero(np.isin(table.row_numbers, numbers)))
    codes = np.array([saved.classes.tolist().index(label) for label in np.asarray(labels).tolist()])
    return codes, np.asarray(saved.model.predict_proba(rows))
