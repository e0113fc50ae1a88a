"""`kernelpool check`: whether new rows are still like those of the fit."""

from typing import Annotated, Any

import numpy as np
import typer

from ...errors import KernelpoolError
from ...questions import DriftReference
from ...questions.priors import prior_from_probability
from ...text import percent, plural, shown
from ..readers.columns import Gaps
from ..readers.sources import source
from . import options as o
from .output import CommandError, Exit
from .saved import Saved, open_saved

ALARM = "End with exit code 7 where the p-value is below this."
MOST = 20
"""Features that are listed."""


def check(
    model: o.ModelPath,
    data: o.Data,
    drop: o.Drop = None,
    alarm: Annotated[
        float | None, o.judging("--alarm", metavar="P", min=0, max=1, help=ALARM)
    ] = None,
    confidence: o.Confidence = 0.95,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Say whether new rows are like those that a model was fitted to.

    Compares every feature, and the density of the model, with what was counted at the fit; names the features that have moved;
    and estimates how frequent the classes are among the new rows. No labels are needed.

    Example: kernelpool check irises.safetensors new.csv --alarm 0.01
    """
    saved = open_saved(model, screen)
    reference = reference_of(saved)
    rows, gaps = source(data, style), Gaps()
    spare = {
        *({saved.target} if saved.target is not None else ()),
        *(drop or ()),
        *saved.set_drop(),
    }
    counts: Any = None
    density: Any = None
    probability = AnswerSample()
    for _, table, _ in saved.batches(rows, screen, spare, "Checking", gaps):
        found, score = reference.count(table, saved.model)
        counts = found if counts is None else counts + found
        density = score if density is None else density + score
        probability.add(table, saved.model)
    if counts is None or not counts.n_rows:
        raise CommandError(Exit.DATA, f"{rows.label}: no row is complete: nothing can be checked.")
    report = reference.compare(counts, density)
    if gaps.rows:
        screen.warn(
            f"{plural(gaps.rows, 'row')} left out, for cells that are missing or no finite number: {gaps.told()}."
        )
    screen.result(str(report))
    screen.table(
        "What moved most",
        ["feature", "rows that moved", "p", "p, adjusted"],
        [
            [
                shown(part.name, 40),
                percent(part.distance),
                f"{part.p_value:.2g}",
                f"{part.adjusted:.2g}",
            ]
            for part in report.parts[:MOST]
        ],
    )
    record: dict[str, Any] = {
        "rows": rows.label,
        **report.to_dict(),
        "moved": report.moved(),
        "class_frequencies": None,
    }
    shares = class_shares(saved)
    if shares is not None:
        estimate = prior_from_probability(probability.rows(), shares, saved.classes, confidence)
        screen.result(str(estimate))
        record["class_frequencies"] = estimate.to_dict()
    screen.answer(record)
    if alarm is not None and report.p_value < alarm:
        raise typer.Exit(Exit.REFUTED)


class AnswerSample:
    """Probabilities of rows that are read in batches: of all rows, or of every second, fourth, ... where there are many."""

    MOST = 1_000_000
    """Rows."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self.every, self.n_seen = 1, 0

    def add(self, table: Any, model: Any) -> None:
        """Rows of a table."""
        n = len(table)
        at = np.arange(-self.n_seen % self.every, n, self.every)
        self.n_seen += n
        if not len(at):
            return
        self.parts.append(np.asarray(model.predict_proba(table))[at])
        while sum(map(len, self.parts)) > self.MOST:
            self.every *= 2
            self.parts = [np.concatenate(self.parts)[::2]]

    def rows(self) -> np.ndarray:
        """(n, K)."""
        return np.concatenate(self.parts)


def reference_of(saved: Saved) -> DriftReference:
    """What the model file says of the rows of the fit."""
    told = saved.summary.get("reference")
    if told is None:
        raise CommandError(
            Exit.MODEL,
            f"{shown(saved.path, 200)} does not say what the rows of its fit were like: fit it with this version of "
            f"kernelpool, from a table with names of columns.",
        )
    try:
        return DriftReference.from_dict(told)
    except KernelpoolError as error:
        raise CommandError(Exit.MODEL, f"{shown(saved.path, 200)}: {shown(error, 200)}") from None


def class_shares(saved: Saved) -> np.ndarray | None:
    """Frequencies of the classes at the fit, where the file tells them."""
    told = saved.summary.get("class_shares")
    if (
        not isinstance(told, list)
        or len(told) != len(saved.classes)
        or not all(isinstance(n, float | int) for n in told)
    ):
        return None
    shares = np.array(told, np.float64)
    return shares / shares.sum() if (shares >= 0).all() and shares.sum() > 0 else None
