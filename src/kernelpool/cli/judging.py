"""How good a model is on rows with known answers, counted batch by batch.

The interval of the error is Clopper & Pearson's, from `kernelpool.bounds`: whatever the error is, it covers it with at least
the stated confidence. Calibration compares the probability of the class that is named with how often it is right, in ten bins.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bounds import binomial_lower, binomial_upper
from .screen import percent, plural

BINS = 10
DECISIONS = ("accepted", "ambiguous", "novel")


@dataclass(frozen=True)
class Rate:
    """A share of rows with its confidence interval."""

    n_rows: int
    n_errors: int
    doubt: float

    @property
    def error(self) -> float:
        return self.n_errors / self.n_rows

    @property
    def low(self) -> float:
        return float(binomial_lower(self.n_errors, self.n_rows, self.doubt / 2))

    @property
    def high(self) -> float:
        return float(binomial_upper(self.n_errors, self.n_rows, self.doubt / 2))

    def record(self) -> dict[str, Any]:
        """For machines."""
        return {
            "n_rows": self.n_rows,
            "n_errors": self.n_errors,
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "confidence": 1 - self.doubt,
        }

    def __str__(self) -> str:
        interval = f"{100 * (1 - self.doubt):.6g} % interval {100 * self.low:.1f} to {percent(self.high)}"
        return f"{percent(self.error)} ({interval}; {self.n_errors:,} of {plural(self.n_rows, 'row')})"


@dataclass
class Tally:
    """Counts that add up over batches; rows without a label are left out."""

    classes: np.ndarray
    n_rows: int = 0
    unlabeled: int = 0
    log_loss: float = 0.0
    brier: float = 0.0
    confusion: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    bins: np.ndarray = field(default_factory=lambda: np.zeros((BINS, 3)))
    """Rows, sum of probabilities, rows that are right."""
    decisions: np.ndarray = field(default_factory=lambda: np.zeros((3, 2), np.int64))
    """Rows accepted, ambiguous and novel, and how many of each are wrong."""

    def __post_init__(self) -> None:
        if not self.confusion.size:
            self.confusion = np.zeros((len(self.classes), len(self.classes)), np.int64)

    def add(self, true: np.ndarray, probability: np.ndarray, decision: np.ndarray | None = None) -> None:
        """Rows with their true classes, as codes, and the probabilities of all classes."""
        labeled = true >= 0
        self.unlabeled += int((~labeled).sum())
        decision = np.zeros(len(true), np.int64) if decision is None else np.asarray(decision)
        true, probability, decision = true[labeled], np.asarray(probability)[labeled], decision[labeled]
        named, at = probability.argmax(axis=1), np.arange(len(true))
        wrong = named != true
        np.add.at(self.confusion, (true, named), 1)
        np.add.at(self.decisions, decision, np.column_stack([np.ones(len(wrong), np.int64), wrong]))
        self.n_rows += len(true)
        self.log_loss -= float(np.log(np.maximum(probability[at, true], np.finfo(np.float64).tiny)).sum())
        hit = np.zeros_like(probability)
        hit[at, true] = 1
        self.brier += float(((probability - hit) ** 2).sum())
        sure = probability[at, named]
        which = np.minimum((sure * BINS).astype(int), BINS - 1)
        np.add.at(self.bins, which, np.column_stack([np.ones(len(true)), sure, ~wrong]))

    def rate(self, doubt: float) -> Rate:
        """The error over all rows."""
        return Rate(self.n_rows, int(self.confusion.sum() - np.trace(self.confusion)), doubt)

    def accepted(self, doubt: float) -> Rate | None:
        """The error over rows that were accepted; None where all were refused."""
        n, wrong = self.decisions[0].tolist()
        return Rate(n, wrong, doubt) if n else None

    @property
    def calibration_error(self) -> float:
        """Mean distance of what is said from what comes true, over the bins."""
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.n_rows)

    def calibration(self) -> list[dict[str, Any]]:
        """The bins that hold rows."""
        return [
            {"from": i / BINS, "to": (i + 1) / BINS, "n_rows": int(n), "said": said / n, "right": right / n}
            for i, (n, said, right) in enumerate(self.bins.tolist())
            if n
        ]
