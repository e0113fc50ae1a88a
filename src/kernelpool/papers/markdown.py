"""The reproduction page of the documentation, built from the files of a full run.

    python -m kernelpool.papers.markdown docs/reproduction docs/reproduction.md [--pictures]

reads ``results.csv``, ``comparison.csv``, ``variations.csv`` and ``run.json`` in the folder, and with ``--pictures`` redraws
the papers' figures there first; their sentences are kept beside them in ``pictures.json``.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import grids
from .comparison import OURS
from .figures import PICTURES, drawn
from .grids import MEASURES, TITLES, Grid, in_words
from .reasons import NOTES, grouped
from .summary import Row, agreeing, read_csv

INTRODUCTION = """# The papers' tables, rerun

Every published figure beside ours. This page is built from the files of the last full run in `docs/reproduction/`, made on
{date} by

```bash
{command}
```

({versions}; {units} units of work.)

The command writes the same tables, colored, to an HTML page that needs no other file,
goes on where it was stopped if it is interrupted, and with `--quick` runs a sample in about a minute. What the papers print
and leave open, and what was chosen, is at the head of `kernelpool.papers.shared_kernels`, `regularized_prbf` and
`competitive`. No choice was made for a single cell.

A cell reads *published / ours (difference in deviations)*, errors in percent. The deviation is the paper's standard
deviation over five folds; where it prints none, 0.75 points (on ionosphere 2); for competitive neurons the standard error of
the difference. A cell agrees where our error is at most two deviations above the published one; cells that do not are
**bold**.
"""


def markdown(folder: Path) -> str:
    """The whole page."""
    rows, others = read_csv(folder / "results.csv"), read_csv(folder / "comparison.csv")
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    parts = [_introduction(run), _counts(rows), _skipped(run)]
    for name in TITLES:
        parts.append(f"## {TITLES[name]}\n")
        parts += [f"### {grid.title}\n\n{_table(grid, _cell)}" for grid in grids.published(rows, name)]
        parts.append(NOTES[name] + "\n")
        parts.append(_outside([row for row in rows if row["paper"] == name]))
    parts.append(_variations(read_csv(folder / "variations.csv")))
    parts.append(_comparison(others))
    parts.append(_pictures(folder))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _introduction(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    return INTRODUCTION.format(date=run["date"], command=run["command"], versions=versions, units=run["units"])


def _counts(rows: Sequence[Row]) -> str:
    lines = ["| paper | agree or better | of | share |", "|---|---|---|---|"]
    for name in TITLES:
        good, done, every = agreeing(row for row in rows if row["paper"] == name)
        share = f"{100 * good / done:.0f} %" if done else ""
        lines.append(f"| {TITLES[name]} | {good} | {done if done == every else f'{done} run, of {every}'} | {share} |")
    return "\n".join(lines) + "\n"


def _skipped(run: dict[str, Any]) -> str:
    return "".join(f"Skipped: {name}. {why}\n" for name, why in run["skipped"].items())


def _table(grid: Grid, cell: Any) -> str:
    lines = [f"| | {' | '.join(grid.head)} |", "|---" * (len(grid.head) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(cell(row) for row in rows)} |" for name, rows in grid.lines]
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row["verdict"] in ("skipped", "not run"):
        return f"{row['published']:.2f} / {row['verdict']}"
    text = f"{row['published']:.2f} / {row['ours']:.2f} ({row['away']:+.1f})"
    return f"**{text}**" if row["verdict"] == "outside" else text


def _outside(rows: Sequence[Row]) -> str:
    by_reason = grouped(rows)
    if not by_reason:
        return "No cell lies outside.\n"
    lines = [f"- {'; '.join(map(in_words, cells))}. {why}" for why, cells in by_reason.items()]
    return "Outside:\n\n" + "\n".join(lines) + "\n"


def _variations(rows: Sequence[Row]) -> str:
    """What was tried on the columns with cells outside, and on the RBF row."""
    parts = [
        "## What the cells outside depend on\n",
        "The columns that have cells outside, rerun with one choice changed at a time "
        "(`python -m kernelpool.papers.variations 2`; two repeats, where the tables have five; they keep their protocol). Mean "
        "errors over the cells of a group, in percent; *one run* is a single run of five folds, which is what the papers "
        "print.\n",
        "| | published | ours | cells outside | in one run | one run varies by |\n|---|---|---|---|---|---|",
    ]
    for row in rows:
        what = f"{row['dataset']}, {row['variation']}"
        if row["outside"] == "":
            parts.append(f"| {what} | {row['published']:.2f} | {row['ours']:.2f} | | | |")
        else:
            counts = f"{row['outside']:.0f} of {row['cells']:.0f} | {row['outside_in_one_run']:.1f}"
            counts += f" | {row['one_run_varies_by']:.2f}"
            parts.append(f"| {what} | {row['published']:.2f} | {row['ours']:.2f} | {counts} |")
    return "\n".join(parts) + "\n"


def _comparison(rows: Sequence[Row]) -> str:
    grid = grids.compared(rows)
    parts = [
        "## Beside scikit-learn\n",
        "Nobody published this table: our best automatic setting and scikit-learn's classifiers on the same five folds, "
        "the rivals' parameters chosen by cross-validation on the training rows (`kernelpool.papers.comparison` says how). "
        "The least of each line is **bold**. Times are processor seconds of one thread; choosing parameters counts as "
        "fitting.\n",
    ]
    parts.append(_verdict(grid) + "\n")
    for measure, (title, form) in MEASURES.items():
        best = {name: min(row[measure] for row in cells if row) for name, cells in grid.lines}

        def cell(row: Row | None, measure: str = measure, form: str = form, best: dict[str, float] = best) -> str:
            if row is None:
                return ""
            text = form.format(row[measure])
            return f"**{text}**" if row[measure] == best[row["dataset"]] else text

        parts.append(f"### {title}\n\n{_table(grid, cell)}")
    return "\n".join(parts)


def _verdict(grid: Grid) -> str:
    """Where ours is best, and where it is not, in words."""
    parts = []
    for measure in ("error", "log_loss", "calibration"):
        won: list[str] = []
        lost: list[str] = []
        for name, cells in grid.lines:
            best = min((row for row in cells if row), key=lambda row: row[measure])
            ours = next(row for row in cells if row and row["method"] == OURS)
            (won if ours is best else lost).append(name if ours is best else f"{name} ({best['method']})")
        what = MEASURES[measure][0].split(",")[0].lower()
        least = f"Ours has the least {what} on {', '.join(won)}" if won else f"Ours has the least {what} on none of the sets"
        parts.append(f"{least}{'; it loses on ' + ', '.join(lost) if lost else ''}.")
    return " ".join(parts)


def _pictures(folder: Path) -> str:
    parts = ["## The papers' figures, redrawn\n"]
    sentences = json.loads((folder / "pictures.json").read_text(encoding="utf-8"))
    for picture in PICTURES:
        parts.append(f"### {picture.title}\n")
        if (folder / f"{picture.name}.png").exists():
            parts.append(f"```{{image}} {folder.name}/{picture.name}.png\n:alt: {picture.title}\n```\n")
        parts.append(sentences[picture.name] + "\n")
    return "\n".join(parts)


def draw(folder: Path) -> None:
    """Redraw the papers' figures into the folder."""
    sentences = {}
    for picture in PICTURES:
        image, sentences[picture.name] = drawn(picture)
        if image is not None:
            (folder / f"{picture.name}.png").write_bytes(image)
    (folder / "pictures.json").write_text(json.dumps(sentences, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main(folder: str, path: str, *kwargs: str) -> None:
    """Build the page."""
    if "--pictures" in kwargs:
        draw(Path(folder))
    Path(path).write_text(markdown(Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
