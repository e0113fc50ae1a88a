"""The papers' tables, cell by cell, and two measures of how far a figure of ours lies from one of
theirs.

The 299 figures are in `tables.csv` as the papers print them, errors in percent. `spread` is the
standard deviation over five folds for shared kernels and the standard error of the mean over 20
trials for competitive neurons; the regularized-PRBF paper prints none.

==================  ===========================================  =============================================================
paper               printed deviation                            standard error of the published
mean
==================  ===========================================  =============================================================
shared kernels      `spread`, over the folds                     `spread` / sqrt(5)
regularized PRBF    none; 0.75 points, on ionosphere 2, instead  none
EM-Log              none; range of our starts / 4 instead         none, one start each
competitive neurons none                                         `spread`
==================  ===========================================  =============================================================

A difference is counted twice where the paper gives enough: in printed deviations, which tell how
much a single fold may lie off, and in standard errors of the difference of the two means, theirs
and ours. Both ways a cell is *within* where the difference is at most two, *lower* where our error
is lower by more, and *higher* where it is higher by more.
"""

import csv
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

LIMIT = 2.0
"""How many deviations, or standard errors, a figure may lie from the published one."""

UNPRINTED = {"ionosphere": 2.0}
"""The deviation where a paper prints none, in points; 0.75 for the sets not named."""

OWN_METHODS = {
    "shared-kernels": ("sharing", "average"),
    "regularized-prbf": ("penalty",),
    "competitive-neurons": ("neurons", "competitive-neurons"),
    "em-log": ("em-log-link",),
}
"""Methods that a paper proposes; the others are its baselines."""

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Cell:
    """One published figure."""

    paper: str
    dataset: str
    method: str
    parameter: str
    kernels: str
    error: float
    spread: float | None

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return self.paper, self.dataset, self.method, self.parameter, self.kernels

    @property
    def own(self) -> bool:
        """Whether the paper proposes the method; plain PRBF, without a penalty, is a baseline of
        the regularized one.
        """
        plain = self.paper == "regularized-prbf" and self.parameter == "0"
        return self.method in OWN_METHODS[self.paper] and not plain

    def deviation(self, between: float = math.nan) -> float | None:
        """The printed standard deviation over folds, or what stands for it; None where the paper
        prints a standard error.

        For the EM-Log paper's one start it is `between`, a quarter of the range of our starts, an
        eighth of a point at least: a figure that lies in their range is within two of it.
        """
        if self.paper == "competitive-neurons":
            return None
        if self.paper == "em-log":
            return max(between, 0.125) if math.isfinite(between) else 0.125
        return UNPRINTED.get(self.dataset, 0.75) if self.spread is None else self.spread

    @property
    def standard_error(self) -> float | None:
        """Standard error of the published mean, where the paper gives enough."""
        if self.spread is None:
            return None
        return self.spread if self.paper == "competitive-neurons" else self.spread / math.sqrt(5)

    def deviations(self, ours: float, between: float = math.nan) -> float | None:
        """How many printed deviations our error lies above the published one."""
        deviation = self.deviation(between)
        return None if deviation is None else (ours - self.error) / deviation

    def standard_errors(self, ours: float, standard_error: float) -> float | None:
        """How many standard errors of the difference our mean, which has this standard error, lies
        above the published one.
        """
        if self.standard_error is None:
            return None
        return (ours - self.error) / math.hypot(
            self.standard_error, standard_error if math.isfinite(standard_error) else 0.0
        )


def verdict(away: float) -> str:
    """Say whether a difference in deviations or standard errors is "within" the limit, "lower" or
    "higher".
    """
    return "higher" if away > LIMIT else "lower" if away < -LIMIT else "within"


@lru_cache
def cells() -> tuple[Cell, ...]:
    """Every published figure, in the order of the papers."""
    with (files(__package__) / "tables.csv").open(encoding="utf-8") as lines:
        return tuple(
            Cell(
                row["paper"],
                row["dataset"],
                row["method"],
                row["parameter"],
                row["kernels"],
                float(row["error_percent"]),
                float(row["spread"]) if row["spread"] else None,
            )
            for row in csv.DictReader(lines)
        )


def columns(paper: str) -> list[tuple[str, int]]:
    """Data sets and numbers of kernels of a paper's tables, each once."""
    return list(
        dict.fromkeys(
            (c.dataset, int(c.kernels)) for c in cells() if c.paper == paper and c.kernels
        )
    )
