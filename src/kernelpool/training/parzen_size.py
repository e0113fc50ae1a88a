"""The smallest reduced Parzen network that is almost as good as the full one.

Its size is found by cross-validation. The network of all rows is then another one than those that were judged, and networks
of few kernels differ: it must pass on the training rows too, or is made larger until it does.
"""

import math
from collections.abc import Callable

import numpy as np

from .held_out import folds
from .parzen import (
    ParzenConfig,
    ParzenRows,
    ReducedParzen,
    Reduction,
    ReductionConfig,
    RoundInfo,
    predicted_codes,
)

HOPELESS = 3.0
"""Standard errors beyond the tolerance at which a size is given up before every row has judged it."""


class SizeFold:
    """Some rows held out, and the networks of the others."""

    def __init__(
        self,
        data: ParzenRows,
        held_out: np.ndarray,
        full_wrong: np.ndarray,
        parzen: ParzenConfig,
        config: ReductionConfig,
        rng: np.random.RandomState,
    ) -> None:
        others, self.judges = (
            data.part(np.setdiff1d(np.arange(len(data.x)), held_out)),
            data.part(held_out),
        )
        self.reduction = Reduction(others, parzen, config, rng)
        self.n_rows, self.weight, self.full_wrong = len(others.x), self.judges.weight, full_wrong

    def wrong(self, size: int) -> np.ndarray:
        """One for each row held out that a network of this size misclassifies, zero for the others."""
        network = self.reduction.reduce(size).network
        codes = predicted_codes(network, self.reduction.parzen, self.judges.judged)
        return np.asarray(codes != self.judges.codes, np.float64)


class SizeSearch:
    """Sizes tried on rows held out in turn, beside the full network of all rows but the one it judges.

    The full network of some of the rows would be no measure: where rows have few neighbors, it is much worse than that of all.
    """

    def __init__(
        self,
        reduction: Reduction,
        folds: list[SizeFold],
        *,
        tolerance: float,
        full_error: float,
        n_classes: int,
        n_rows: int,
    ) -> None:
        self.reduction, self.folds, self.tolerance, self.full_error = (
            reduction,
            folds,
            tolerance,
            full_error,
        )
        self.n_classes, self.n_rows = n_classes, n_rows
        self.standard_error = math.inf
        """Of the excess of the size tried last."""
        self.curve: list[tuple[int, float]] = []
        """Sizes tried, and the error of each on the rows that judged it."""

    @classmethod
    def prepare(
        cls,
        data: ParzenRows,
        parzen: ParzenConfig,
        config: ReductionConfig,
        rng: np.random.RandomState,
        *,
        tolerance: float,
        validation_fraction: float,
        say: Callable[[str], None],
        on_round: Callable[[RoundInfo], bool] | None,
    ) -> "SizeSearch":
        """The full network, and the folds."""
        reduction = Reduction(data, parzen, config, rng, say, on_round)
        full_wrong = reduction.full_wrong()
        parts = folds(data.codes, max(2, round(1 / validation_fraction)), rng)
        return cls(
            reduction,
            [SizeFold(data, part, full_wrong[part], parzen, config, rng) for part in parts],
            tolerance=tolerance,
            full_error=float(full_wrong @ data.weight / data.weight.sum()),
            n_classes=len(np.unique(data.codes)),
            n_rows=len(data.x),
        )

    def build(self) -> ReducedParzen:
        """The network of all rows: of the smallest size that suffices, or as much larger as it needs to be."""
        size = self.smallest()
        while size < self.n_rows:
            found = self.reduction.reduce(size)
            if self._within(found.error - self.full_error):
                return found
            size = math.ceil(size * math.sqrt(2))
            size = self.n_rows if 2 * size > self.n_rows else size
        self.reduction.say(f"all {self.n_rows} kernels are needed")
        return self.reduction.full_network()

    def smallest(self) -> int:
        """The smallest size that suffices: doubled until one does, then once between the last two. All rows if none does."""
        fewest = min(fold.n_rows for fold in self.folds)
        below, size = 0, self.n_classes
        while not self.suffices(size):
            below, size = size, 2 * size
            if 2 * size > fewest:
                return self.n_rows
        between = round(math.sqrt(below * size))
        return between if below < between < size and self.suffices(between) else size

    def suffices(self, size: int) -> bool:
        """Whether the error stays within the tolerance of the full network's by a standard error of the difference.

        The difference is paired: rows that both networks get right, or both wrong, add nothing to its standard error. Where
        that exceeds half of the tolerance, the rows are too few to tell, and half of the tolerance must do.
        """
        wrong, full, weight = np.empty(0), np.empty(0), np.empty(0)
        for fold in self.folds:
            wrong = np.append(wrong, fold.wrong(size))
            full, weight = np.append(full, fold.full_wrong), np.append(weight, fold.weight)
            excess = float((wrong - full) @ weight / weight.sum())
            self.standard_error = math.sqrt(float((wrong - full - excess) ** 2 @ weight)) / float(
                weight.sum()
            )
            if excess - HOPELESS * self.standard_error > self.tolerance:
                break
        self.curve = sorted([*self.curve, (size, float(wrong @ weight / weight.sum()))])
        return self._within(excess)

    def _within(self, excess: float) -> bool:
        return excess + min(self.standard_error, self.tolerance / 2) <= self.tolerance
