"""From the records of finished units to figures beside the published ones: plain data, no layout.

The papers of shared and regularized kernels print one run of five folds: `ours` is the mean over
all folds of all repeats, `spread` the standard deviation over the five folds of a repeat, averaged
over the repeats (what the paper prints beside its error), and `between` the standard deviation over
repeats of a five-fold mean (how far one run of five folds may lie off). For competitive neurons a
repeat is a trial, and `spread` the standard error of the mean over the trials.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .experiment import Record, Row
from .published import Cell, cells, verdict

KEY_FIELDS = ("paper", "dataset", "method", "parameter", "kernels")
FIELDS = (
    *KEY_FIELDS,
    "published",
    "published_spread",
    "ours",
    "spread",
    "between",
    "repeats",
    "higher_alone",
    "deviations",
    "standard_errors",
    "own",
    "verdict",
    "verdict_in_standard_errors",
)
"""Columns of `results.csv`. `deviations` and `standard_errors` are the difference in units of
`published`, positive where our error is higher; `verdict` goes by printed deviations where there
are any, else by standard errors; `own` is "yes" for a method that the paper proposes and "no" for
its baselines; `higher_alone` says of how many repeats, each one run of five folds as in the paper,
the error is higher by more than two deviations.
"""

WORDS = (*KEY_FIELDS, "step", "own", "verdict", "verdict_in_standard_errors")
COMPARED = ("error", "log_loss", "calibration", "fit_seconds", "predict_seconds")


class Counts(NamedTuple):
    """How many cells there are, were run, and lie within two units, lower by more, and higher by
    more.
    """

    cells: int
    run: int
    within: int
    lower: int
    higher: int


def summarize(
    records: Iterable[Record], tables: Sequence[str], skipped: Iterable[str] = ()
) -> list[Row]:
    """A row for every published cell of the tables, those without a figure of ours included."""
    skipped = set(skipped)
    by_cell: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in records:
        key = (
            r["table"],
            r["dataset"],
            r["method"],
            str(r.get("parameter", "")),
            str(r.get("kernels", "")),
        )
        by_cell[key][r["repeat"]].append(r["error"])
    return [
        _row(cell, by_cell.get(cell.key, {}), cell.dataset in skipped)
        for cell in cells()
        if cell.paper in tables
    ]


def _row(cell: Cell, by_repeat: dict[int, list[float]], skipped: bool) -> Row:
    row: Row = dict.fromkeys(FIELDS, "")
    row |= {name: getattr(cell, name) for name in KEY_FIELDS}
    row |= {"published": cell.error, "published_spread": "" if cell.spread is None else cell.spread}
    row["own"] = "yes" if cell.own else "no"
    if not by_repeat:
        return row | {"repeats": 0, "verdict": "skipped" if skipped else "not run"}
    runs = list(by_repeat.values())
    means = np.array([np.mean(run) for run in runs])
    ours = float(means.mean())
    between = float(means.std(ddof=1)) if len(means) > 1 else float("nan")
    error_of_mean = between / len(means) ** 0.5
    trials = all(len(run) == 1 for run in runs)
    row |= {
        "ours": round(ours, 3),
        "spread": round(
            error_of_mean if trials else float(np.mean([np.std(run, ddof=1) for run in runs])), 3
        ),
        "between": round(between, 3),
        "repeats": len(means),
    }
    middle = (means.max() + means.min()) / 2
    quarter = (means.max() - means.min()) / 4
    away = (
        cell.deviations(float(middle), float(quarter))
        if cell.paper == "em-log"
        else cell.deviations(ours)
    )
    deviations = away
    standard_errors = cell.standard_errors(ours, error_of_mean)
    if standard_errors is not None:
        row |= {
            "standard_errors": round(standard_errors, 2),
            "verdict": verdict(standard_errors),
            "verdict_in_standard_errors": verdict(standard_errors),
        }
    if deviations is not None:
        alone = (
            ""
            if trials
            else sum(verdict(cell.deviations(float(mean)) or 0.0) == "higher" for mean in means)
        )
        row |= {
            "deviations": round(deviations, 2),
            "verdict": verdict(deviations),
            "higher_alone": alone,
        }
    return row


def count(rows: Iterable[Row], field: str = "verdict") -> Counts:
    """Count verdicts, by deviations or ("verdict_in_standard_errors") by standard errors."""
    found = [row[field] for row in rows]
    n = {name: found.count(name) for name in ("within", "lower", "higher")}
    return Counts(len(found), sum(n.values()), **n)


def compared(records: Iterable[Record]) -> list[Row]:
    """Means over the folds of each data set and method, and the standard deviation of the error
    over them.
    """
    by_cell: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for r in records:
        by_cell[r["dataset"], r["method"]].append(r)
    rows: list[Row] = []
    for (dataset, method), found in by_cell.items():
        row: Row = {"dataset": dataset, "method": method, "folds": len(found)}
        row |= {name: round(float(np.mean([r[name] for r in found])), 5) for name in COMPARED}
        errors = [r["error"] for r in found]
        rows.append(
            row
            | {
                "error_spread": round(float(np.std(errors, ddof=1)), 3)
                if len(errors) > 1
                else float("nan")
            }
        )
    return rows


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
        return [
            {name: _number(name, text) for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


def _number(name: str, text: str) -> Any:
    if name in WORDS:
        return text
    try:
        return float(text)
    except ValueError:
        return text
