"""Rows of `results.csv` and `comparison.csv` as the papers' tables: what stands in which line and column, no layout yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from .comparison import METHODS
from .summary import Row

TITLES = {
    "shared-kernels": "Shared kernels (Titsias & Likas 2001)",
    "regularized-prbf": "Regularized PRBF (Constantinopoulos, Titsias & Likas 2001)",
    "competitive-neurons": "Competitive neurons (Sridharan, Beal & Govindaraju 2006)",
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
    where = f", {row['kernels']} kernels" if row["kernels"] and row["paper"] != "competitive-neurons" else ""
    return f"{row['dataset']}, {label(row)}{where}"


def in_words(row: Row) -> str:
    """A cell, both figures, and how many single runs of five folds, which is what the papers print, agree by themselves."""
    figures = f"{full_name(row)}: {row['published']:.2f} published, {row['ours']:.2f} ours"
    if row["agreeing_alone"] == "":
        return figures
    return f"{figures}, {row['agreeing_alone']:.0f} of {row['repeats']:.0f} single runs agree"


def published(rows: Sequence[Row], paper: str) -> list[Grid]:
    """The tables of one paper."""
    mine = [row for row in rows if row["paper"] == paper]
    if paper == "competitive-neurons":
        return [_grid("Table 1", mine, "method", "dataset")] if mine else []
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
    return Grid(title, shown, tuple((name, tuple(cells.get(head) for head in heads)) for name, cells in lines.items()))


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
    return Grid("", tuple(heads), tuple((name, tuple(by_cell.get((name, head)) for head in heads)) for name in sets))
