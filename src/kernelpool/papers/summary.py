"""From the records of finished units to figures beside the published ones: plain data, no layout.

The papers of shared and regularized kernels print one run of five folds: `ours` is the mean over all folds of all repeats,
`spread` the standard deviation over the five folds of a repeat, averaged over the repeats (what the paper prints beside its
error), and `between` the standard deviation over repeats of a five-fold mean (how far one run of five folds may lie off).
For competitive neurons a repeat is a trial, and `spread` the standard error of the mean over the trials.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .published import Cell, cells
from .units import Record

Row = dict[str, Any]

FIELDS = (
    "paper",
    "dataset",
    "method",
    "parameter",
    "kernels",
    "published",
    "published_spread",
    "ours",
    "spread",
    "between",
    "repeats",
    "agreeing_alone",
    "away",
    "verdict",
)
"""Columns of `results.csv`. `away` is the difference in deviations, positive where our error is higher; `agreeing_alone` how
many repeats, each one run of five folds as in the paper, would agree by themselves."""

COMPARED = ("error", "log_loss", "calibration", "fit_seconds", "predict_seconds")


def figures(records: Iterable[Record], tables: Sequence[str], skipped: Iterable[str] = ()) -> list[Row]:
    """A row for every published cell of the tables, those without a figure of ours included."""
    skipped = set(skipped)
    by_cell: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in records:
        key = (r["table"], r["dataset"], r["method"], str(r.get("parameter", "")), str(r.get("kernels", "")))
        by_cell[key][r["repeat"]].append(r["error"])
    return [_row(cell, by_cell.get(cell.key, {}), cell.dataset in skipped) for cell in cells() if cell.paper in tables]


def _row(cell: Cell, by_repeat: dict[int, list[float]], skipped: bool) -> Row:
    row: Row = dict.fromkeys(FIELDS, "")
    row |= {name: getattr(cell, name) for name in FIELDS[:5]}
    row |= {"published": cell.error, "published_spread": "" if cell.spread is None else cell.spread}
    if not by_repeat:
        return row | {"repeats": 0, "verdict": "skipped" if skipped else "not run"}
    runs = list(by_repeat.values())
    means = np.array([np.mean(run) for run in runs])
    ours, between = float(means.mean()), float(means.std(ddof=1)) if len(means) > 1 else float("nan")
    error_of_mean = between / len(means) ** 0.5
    trials = all(len(run) == 1 for run in runs)
    spread = error_of_mean if trials else float(np.mean([np.std(run, ddof=1) for run in runs]))
    away = (ours - cell.error) / cell.deviation(error_of_mean)
    alone = "" if trials else sum(cell.verdict(float(mean), 0.0) != "outside" for mean in means)
    return row | {
        "ours": round(ours, 3),
        "spread": round(spread, 3),
        "between": round(between, 3),
        "repeats": len(means),
        "agreeing_alone": alone,
        "away": round(away, 2),
        "verdict": cell.verdict(ours, error_of_mean),
    }


def compared(records: Iterable[Record]) -> list[Row]:
    """Means over the folds of each data set and method, and the standard deviation of the error over them."""
    by_cell: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for r in records:
        by_cell[r["dataset"], r["method"]].append(r)
    rows: list[Row] = []
    for (dataset, method), found in by_cell.items():
        row: Row = {"dataset": dataset, "method": method, "folds": len(found)}
        row |= {name: round(float(np.mean([r[name] for r in found])), 5) for name in COMPARED}
        errors = [r["error"] for r in found]
        rows.append(row | {"error_spread": round(float(np.std(errors, ddof=1)), 3) if len(errors) > 1 else float("nan")})
    return rows


def agreeing(rows: Iterable[Row]) -> tuple[int, int, int]:
    """Cells that agree with the paper or are better, cells with a figure of ours, and cells in all."""
    verdicts = [row["verdict"] for row in rows]
    run = [verdict for verdict in verdicts if verdict in ("within", "better", "outside")]
    return sum(verdict != "outside" for verdict in run), len(run), len(verdicts)


def write_csv(path: Path, rows: Sequence[Row], fields: Sequence[str] | None = None) -> None:
    """Rows as CSV; the file is replaced only when it is whole."""
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def read_csv(path: Path) -> list[Row]:
    """Rows of a CSV that `write_csv` wrote; numbers are numbers again."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _number(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _number(name: str, text: str) -> Any:
    if name in FIELDS[:5] or name == "verdict":
        return text
    try:
        return float(text)
    except ValueError:
        return text
