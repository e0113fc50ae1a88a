"""Published figures beside ours as one page of Markdown, built from the files that a run wrote.

    python -m papers.page docs/reproduction docs/reproduction.md [--figures]

reads ``results.csv``, ``comparison.csv``, ``variations.csv``, ``figures.json`` and ``run.json`` in
the folder, as far as they are there, and with ``--figures`` redraws the papers' figures first.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from .comparison import METHODS, OURS
from .experiment import Row, in_processes
from .figures import FIGURES, drawn
from .regularized_prbf import STEP
from .remarks import NOTES, by_remark
from .summary import count, read_csv

INTRODUCTION = """# The papers' tables, rerun

Every published figure beside ours, from the run of {date} by

```bash
{command}
```

({versions}; {units} units of work.) Without `--repeats 5` the tables of the first two papers have one split and start, as
in the papers, and without `all` the comparison with scikit-learn is left out. An interrupted run is resumed by the same
command; `--quick` runs a sample. What the papers print and leave open, and what was chosen, is at the head of
`papers/shared_kernels.py`, `regularized_prbf.py` and `competitive_neurons.py`. No choice was made for a single cell.

A cell reads *published / ours (difference)*, errors in percent. The difference is in printed standard deviations over five
folds; where a paper prints none, in units of 0.75 points (on ionosphere 2); for competitive neurons, in standard errors of the
difference. Cells that are **higher** by more than two are bold, cells that are _lower_ by more than two in italics, and ° marks
a difference of more than two standard errors, where the paper gives enough to tell: two deviations over the folds are 4.5
standard errors of a mean of five.
"""

TITLES = {
    "shared-kernels": "Shared kernels (Titsias & Likas 2001)",
    "regularized-prbf": "Regularized PRBF (Constantinopoulos, Titsias & Likas 2001)",
    "competitive-neurons": "Competitive neurons (Sridharan, Beal & Govindaraju 2006)",
    "em-log": "EM-Log (Ferreira & Figueiredo)",
}
"""Papers in the order in which they are shown."""

NUMBERED = {
    ("shared-kernels", "clouds"): "Table I",
    ("shared-kernels", "ionosphere"): "Table II",
    ("shared-kernels", "pima"): "Table III",
    ("shared-kernels", "phoneme"): "Table IV",
    ("shared-kernels", "satimage5"): "Table V",
    ("regularized-prbf", "pima"): "Table 1",
    ("regularized-prbf", "satimage5"): "Table 2",
    ("regularized-prbf", "phoneme"): "Table 3",
    ("regularized-prbf", "ionosphere"): "Table 4",
}
"""The papers' own numbers of their tables."""

COLUMN_NAMES = {
    "backprop": "back-propagation",
    "svm-gaussian": "SVM, Gaussian",
    "svm-polynomial": "SVM, polynomial",
    "neurons": "neurons, no competition",
    "competitive-neurons": "neurons, competition",
    "kmeans-ls": "KMeans+LS",
    "em-log-link": "EM-Log-Link, W = 0.25 I",
}


@dataclass(frozen=True)
class Grid:
    """A table: a title, the heads of its columns, and lines of cells, None where there is none."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Row | None, ...]], ...]


def label(row: Row) -> str:
    """A cell's line in its paper's table."""
    if row["method"] == "sharing":
        return f"sharing {row['parameter']}"
    if row["method"] == "penalty":
        return f"penalty {row['parameter']}" if row["parameter"] != "0" else "no penalty"
    names: dict[str, str] = {"rbf": "RBF (Netlab)", **COLUMN_NAMES}
    return names.get(row["method"], str(row["method"]))


def full_name(row: Row) -> str:
    """A cell in words."""
    where = (
        f", {row['kernels']} kernels"
        if row["kernels"] and row["paper"] != "competitive-neurons"
        else ""
    )
    return f"{row['dataset']}, {label(row)}{where}"


def in_words(row: Row) -> str:
    """A cell, both figures, and how many single runs of five folds, which is what the papers print,
    are not higher.
    """
    figures = f"{full_name(row)}: {row['published']:.2f} published, {row['ours']:.2f} ours"
    if row["higher_alone"] == "":
        return figures
    return f"{figures}, not higher in {row['repeats'] - row['higher_alone']:.0f} of {row['repeats']:.0f} single runs"


def published(rows: Sequence[Row], paper: str) -> list[Grid]:
    """The tables of one paper."""
    mine = [row for row in rows if row["paper"] == paper]
    if paper in ("competitive-neurons", "em-log"):
        title = (
            "Table 1" if paper == "competitive-neurons" else "Figures 3 and 4: test error, percent"
        )
        return [_grid(title, mine, "method", "dataset")] if mine else []
    sets = dict.fromkeys(row["dataset"] for row in mine)
    return [
        _grid(
            f"{NUMBERED[paper, name]}: {name}, by number of kernels",
            [row for row in mine if row["dataset"] == name],
            "kernels",
            None,
        )
        for name in sets
    ]


def _grid(title: str, rows: Sequence[Row], column: str, line: str | None) -> Grid:
    heads = list(dict.fromkeys(row[column] for row in rows))
    lines: dict[str, dict[str, Row]] = {}
    for row in rows:
        lines.setdefault(row[line] if line else label(row), {})[row[column]] = row
    shown = tuple(COLUMN_NAMES.get(head, head) for head in heads)
    return Grid(
        title,
        shown,
        tuple((name, tuple(cells.get(head) for head in heads)) for name, cells in lines.items()),
    )


MEASURES = {
    "error": ("Error, percent", "{:.1f}"),
    "log_loss": ("Log-loss, nats per row", "{:.3f}"),
    "calibration": ("Calibration error, percent", "{:.1f}"),
    "fit_seconds": ("Time to fit, processor seconds", "{:.2f}"),
    "predict_seconds": ("Time to predict, processor seconds", "{:.3f}"),
}
"""What is compared: title and format. Less is better in all of them."""


def compared(rows: Sequence[Row]) -> Grid:
    """Data sets by methods; every measure is in the cells."""
    heads = [name for name in METHODS if any(row["method"] == name for row in rows)]
    sets = dict.fromkeys(row["dataset"] for row in rows)
    by_cell = {(row["dataset"], row["method"]): row for row in rows}
    return Grid(
        "",
        tuple(heads),
        tuple((name, tuple(by_cell.get((name, head)) for head in heads)) for name in sets),
    )


def page(folder: Path, images: str = "") -> str:
    """The whole page; `images` is the folder of the figures, as seen from the page."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    rows, rivals, variations = (
        _rows(folder / f"{name}.csv") for name in ("results", "comparison", "variations")
    )
    parts = [_introduction(run), _counts(rows), _skipped(run)]
    for name in TITLES:
        mine = [row for row in rows if row["paper"] == name]
        if mine:
            parts.append(f"## {TITLES[name]}\n")
            parts += [
                f"### {grid.title}\n\n{_table(grid, _cell)}" for grid in published(rows, name)
            ]
            parts += [NOTES[name] + "\n", _higher(mine)]
    parts += [_readings(_rows(folder / "readings.csv"))]
    parts += [_variations(variations)] if variations else []
    parts += [_comparison(rivals)] if rivals else []
    parts.append(_figures(folder, images))
    parts.append((Path(__file__).parent / "items.md").read_text(encoding="utf-8"))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _rows(path: Path) -> list[Row]:
    return read_csv(path) if path.exists() else []


def _introduction(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    text = INTRODUCTION.format(
        date=run["date"], command=run["command"], versions=versions, units=run["units"]
    )
    older = [
        f"The table of {name} is that of the run of {date}.\n"
        for name, date in run.get("older", {}).items()
    ]
    return "\n".join([text, *older, *([run["note"] + "\n"] if "note" in run else [])])


def _counts(rows: Sequence[Row]) -> str:
    """How many cells lie within two deviations and within two standard errors: the papers' methods,
    then their baselines.
    """
    lines = [
        "| | cells | within 2 deviations | lower | higher | within 2 standard errors | lower | "
        "higher |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, title in TITLES.items():
        for own, what in (("yes", "its own method"), ("no", "its baselines")):
            mine = [row for row in rows if row["paper"] == name and row["own"] == own]
            if mine:
                lines.append(f"| {title}, {what} | {_count_cells(mine)} |")
    lines.append("| Minimal kernel networks (Kraaijveld & Duin 1991) | 0 | | | | | | |")
    lines += [
        "",
        "The last paper prints no figures of errors: its figure and bounds are below, redrawn. "
        "EM-Log prints one start each, ",
    ]
    lines[-1] += "which must lie in the range of ours."
    return "\n".join(lines) + "\n"


def _count_cells(rows: Sequence[Row]) -> str:
    n = count(rows)
    texts = [str(n.cells) if n.run == n.cells else f"{n.run} run, of {n.cells}"]
    for field, verdict in (
        ("deviations", "verdict"),
        ("standard_errors", "verdict_in_standard_errors"),
    ):
        n = count([row for row in rows if row[field] != ""], verdict)
        texts += [str(n.within), str(n.lower), str(n.higher)] if n.run else ["", "", ""]
    return " | ".join(texts)


def _skipped(run: dict[str, Any]) -> str:
    return "".join(f"Skipped: {name}. {why}\n" for name, why in run["skipped"].items())


def _table(grid: Grid, cell: Callable[[Row | None], str]) -> str:
    lines = [f"| | {' | '.join(grid.head)} |", "|---" * (len(grid.head) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(cell(row) for row in rows)} |" for name, rows in grid.lines]
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row["verdict"] in ("skipped", "not run"):
        return f"{row['published']:.2f} / {row['verdict']}"
    away = row["standard_errors"] if row["deviations"] == "" else row["deviations"]
    mark = "" if row["verdict_in_standard_errors"] in ("", "within") else "°"
    text = f"{row['published']:.2f} / {row['ours']:.2f} ({away:+.1f}){mark}"
    return {"higher": f"**{text}**", "lower": f"_{text}_"}.get(row["verdict"], text)


def _higher(rows: Sequence[Row]) -> str:
    lines = [
        f"- {'; '.join(map(in_words, cells))}. {why}" for why, cells in by_remark(rows).items()
    ]
    return (
        "Higher:\n\n" + "\n".join(lines) + "\n"
        if lines
        else "No cell is higher by more than two.\n"
    )


def _readings(rows: Sequence[Row]) -> str:
    """The regularized-PRBF tables under each reading of its equation (29), side by side."""
    if not rows:
        return ""
    steps = list(dict.fromkeys(row["step"] for row in rows))
    parts = [
        "## The step of delta in (29)\n",
        "The regularized-PRBF paper prints delta at sweep t in (29) and defines it at t + 1 in "
        "(30). Three readings: *next* takes (30) in the same sweep, *current* the kernels and "
        "subkernels of this sweep, *printed* what (30) gave in the sweep before. "
        "`Overlap(step=...)` offers each. Every cell under each of them, and how the penalized "
        "objective went: the share of sweeps that lower it, by how much they do so in one fit, "
        "in all, and how far its highest value stays below that of the best reading, both per "
        f"row. (Repeats: {min(int(row['repeats']) for row in rows)}.)\n",
        "| | reading | within 2 | lower | higher | mean difference | absolute | sweeps that fall | "
        "falls | below the best |",
        "|---" * 10 + "|",
    ]
    for dataset in [*dict.fromkeys(row["dataset"] for row in rows), "all"]:
        for step in steps:
            mine = [
                r
                for r in rows
                if r["step"] == step
                and (dataset in ("all", r["dataset"]))
                and r["parameter"] != "0"
            ]
            n = count(mine)
            away = [r["ours"] - r["published"] for r in mine]

            def mean(values: Sequence[float]) -> float:
                return sum(values) / len(values)

            cells = [
                f"{n.within}",
                f"{n.lower}",
                f"{n.higher}",
                f"{mean(away):+.2f}",
                f"{mean([abs(a) for a in away]):.2f}",
            ]
            cells += [f"{100 * mean([r['share_falling'] for r in mine]):.0f} %"]
            cells += [
                f"{mean([r['sum_of_falls'] for r in mine]):.3f}",
                f"{-mean([r['objective'] for r in mine]):.4f}",
            ]
            parts.append(f"| {dataset} | {step} | {' | '.join(cells)} |")
    parts.append("\n" + _choice_of_reading(rows, steps))
    parts.append(
        f"\nCell by cell, *published / {' / '.join(steps)}*; the line without penalty is the same "
        f"under all.\n"
    )
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        kernels = list(dict.fromkeys(row["kernels"] for row in mine))
        parts += [f"| {dataset} | {' | '.join(kernels)} |", "|---" * (len(kernels) + 1) + "|"]
        for parameter in dict.fromkeys(row["parameter"] for row in mine):
            cells = []
            for kernel in kernels:
                found = {
                    r["step"]: r
                    for r in mine
                    if (r["parameter"], r["kernels"]) == (parameter, kernel)
                }
                published_ = next(iter(found.values()))["published"]
                cells.append(
                    f"{published_:.2f} / "
                    + " / ".join(f"{found[s]['ours']:.2f}" for s in steps if s in found)
                )
            parts.append(f"| penalty {parameter} | {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def _choice_of_reading(rows: Sequence[Row], steps: Sequence[str]) -> str:
    """Which reading is the default and why, what the objective says of it, and what the cells
    say.
    """
    penalized = [row for row in rows if row["parameter"] != "0"]

    def means(field: str, dataset: str | None = None) -> dict[str, float]:
        mine = [row for row in penalized if dataset in (None, row["dataset"])]
        return {
            s: sum(r[field] for r in mine if r["step"] == s) / sum(r["step"] == s for r in mine)
            for s in steps
        }

    def ranked(values: dict[str, float], form: str) -> str:
        return ", ".join(
            f"{form.format(value)} under *{step}*"
            for step, value in sorted(values.items(), key=lambda v: v[1])
        )

    falls = means("sum_of_falls")
    below = means("objective")
    share = means("share_falling")
    least = min(falls, key=lambda s: falls[s])
    highest = max(below, key=lambda s: below[s])
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    steady = [
        name
        for name in sets
        if min(means("sum_of_falls", name).items(), key=lambda v: v[1])[0] == STEP
    ]
    within = {step: count([r for r in penalized if r["step"] == step]).within for step in steps}
    return " ".join(
        [
            f"The default, *{STEP}*, was chosen by the objective and not by the cells.",
            f"The objective falls least under *{least}*: per row and fit, in all, by "
            f"{ranked(falls, '{:.2f}')};",
            f"of the {len(sets)} sets *{STEP}* lets it fall least on {len(steady)}.",
            *([] if least == STEP else [_doubt_about(penalized, STEP, least)]),
            f"Since the best sweep is kept, what counts is how high the objective comes: highest "
            f"under *{highest}*, with",
            f"{ranked({s: -v for s, v in below.items()}, '{:.3f}')} below the best of the three on "
            f"average.",
            f"It falls at all in "
            f"{ranked({s: 100 * v for s, v in share.items()}, '{:.0f} % of the sweeps')}.",
            f"Of the {len(penalized) // len(steps)} cells with a penalty",
            f"{', '.join(f'{within[s]} are within two under *{s}*' for s in steps)}: who wants to "
            f"come near the paper's tables",
            'rather than to the highest objective passes `Overlap(..., step="current")` or '
            '`"printed"`.',
        ]
    )


def _doubt_about(rows: Sequence[Row], step: str, least: str) -> str:
    """How much more the objective falls under one reading than under another, with its standard
    error over the cells.
    """
    by_cell = {
        (r["dataset"], r["parameter"], r["kernels"], r["step"]): r["sum_of_falls"] for r in rows
    }
    more = [value - by_cell[(*key[:3], least)] for key, value in by_cell.items() if key[3] == step]
    error = (stdev(more) if len(more) > 1 else 0.0) / len(more) ** 0.5
    found = f"Under *{step}* it falls by {fmean(more):.2f} ± {error:.2f} more than under *{least}* (standard error over the cells)"
    return found + (", which decides nothing." if abs(fmean(more)) <= 2 * error else ".")


def _variations(rows: Sequence[Row]) -> str:
    """What was tried on the columns with higher cells, and on the RBF row."""
    parts = [
        "## What the higher cells depend on\n",
        "The columns that have cells higher by more than two deviations, rerun with one choice "
        "changed at a time (`python -m papers.variations 2`; two repeats, where the tables have "
        "five; they keep their protocol). Mean errors over the cells of a group, in percent; "
        "*one run* is a single run of five folds, which is what the papers print.\n",
        "| | published | ours | cells higher | in one run | one run varies by "
        "|\n|---|---|---|---|---|---|",
    ]
    for row in rows:
        what = f"{row['dataset']}, {row['variation']}"
        if row["higher"] == "":
            parts.append(f"| {what} | {row['published']:.2f} | {row['ours']:.2f} | | | |")
        else:
            counts = f"{row['higher']:.0f} of {row['cells']:.0f} | {row['higher_in_one_run']:.1f}"
            counts += f" | {row['one_run_varies_by']:.2f}"
            parts.append(f"| {what} | {row['published']:.2f} | {row['ours']:.2f} | {counts} |")
    return "\n".join(parts) + "\n"


def _comparison(rows: Sequence[Row]) -> str:
    grid = compared(rows)
    parts = [
        "## Beside scikit-learn\n",
        "Nobody published this table: `SharedKernelClassifier.auto()` and scikit-learn's "
        "classifiers on the same five folds, the rivals' parameters chosen by cross-validation "
        "on the training rows (`papers.comparison` says how). The least of each line is "
        "**bold**. Times are processor seconds of one thread; choosing parameters counts as "
        "fitting.\n",
    ]
    parts.append(_verdict(grid) + "\n")
    for measure, (title, form) in MEASURES.items():
        best = {name: min(row[measure] for row in cells if row) for name, cells in grid.lines}

        def cell(
            row: Row | None, measure: str = measure, form: str = form, best: dict[str, float] = best
        ) -> str:
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
            (won if ours is best else lost).append(
                name if ours is best else f"{name} ({best['method']})"
            )
        what = MEASURES[measure][0].split(",")[0].lower()
        least = (
            f"Ours has the least {what} on {', '.join(won)}"
            if won
            else f"Ours has the least {what} on none of the sets"
        )
        parts.append(f"{least}{'; it loses on ' + ', '.join(lost) if lost else ''}.")
    return " ".join(parts)


def _figures(folder: Path, images: str) -> str:
    if not (folder / "figures.json").exists():
        return ""
    parts = ["## The papers' figures, redrawn\n"]
    captions = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    for figure in FIGURES:
        parts.append(f"### {figure.title}\n")
        if (folder / f"{figure.name}.png").exists():
            parts.append(f"![{figure.title}]({images}{figure.name}.png)\n")
        parts.append(captions.get(figure.name, "Not drawn yet.") + "\n")
    return "\n".join(parts)


def draw_figures(folder: Path, n_jobs: int = 2) -> None:
    """Redraw the papers' figures into the folder."""
    captions = {}
    for figure, (image, caption) in zip(FIGURES, in_processes(drawn, FIGURES, n_jobs), strict=True):
        captions[figure.name] = caption
        if image is not None:
            (folder / f"{figure.name}.png").write_bytes(image)
    (folder / "figures.json").write_text(
        json.dumps(captions, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main(folder: str, path: str, *options: str) -> None:
    """Build the page."""
    if "--figures" in options:
        draw_figures(Path(folder))
    Path(path).write_text(page(Path(folder), f"{Path(folder).name}/"), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
