"""The smallest reduced network that is almost as good as the full one.

Its size is found by cross-validation. The network of all rows is then another one than those that were judged, and networks
of few kernels differ: it must pass on the training rows too, or is made larger until it does.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from ..selection.held_out import folds
from ..training.validation import Labeled
from .reduction import Reduction

HOPELESS = 3.0
"""Standard errors beyond the tolerance at which a size is given up before every row has judged it."""


class Search:
    """Sizes tried on rows set aside in turn, beside the full network of all rows but the one it judges.

    The full network of some of the rows would be no measure: where rows have few neighbors, it is much worse than that of all.
    """

    def __init__(self, estimator: Any, data: Labeled, prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        self.tolerance = float(estimator.tolerance)
        self.reduction = Reduction(estimator, data, prior, rng)
        full_wrong = self.reduction.full_wrong()
        self.full_error = float(full_wrong @ data.weight / data.weight.sum())
        parts = folds(data.codes, max(2, round(1 / estimator.validation_fraction)), rng)
        self.folds = [Fold(estimator, data, judged, full_wrong[judged], prior, rng) for judged in parts]
        self.n_classes, self.n_rows = len(np.unique(data.codes)), len(data.x)
        self.doubt = math.inf
        """Standard error of the excess of the size tried last."""
        self.curve: list[tuple[int, float]] = []
        """Sizes tried, and the error of each on the rows that judged it."""

    def build(self) -> None:
        """Make the network of all rows: of the smallest size that suffices, or as much larger as it needs to be."""
        size = self.smallest()
        while size < self.n_rows and not self._within(self.reduction.reduce(size) - self.full_error):
            size = math.ceil(size * math.sqrt(2))
            size = self.n_rows if 2 * size > self.n_rows else size
        if size >= self.n_rows:
            self.reduction.keep_everything()

    def smallest(self) -> int:
        """The smallest size that suffices: doubled until one does, then once between the last two. All rows if none does."""
        least = min(fold.n_rows for fold in self.folds)
        below, size = 0, self.n_classes
        while not self.suffices(size):
            below, size = size, 2 * size
            if 2 * size > least:
                return self.n_rows
        between = round(math.sqrt(below * size))
        found = between if below < between < size and self.suffices(between) else size
        self.curve.sort()
        return found

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
            self.doubt = math.sqrt(float((wrong - full - excess) ** 2 @ weight)) / float(weight.sum())
            if excess - HOPELESS * self.doubt > self.tolerance:
                break
        self.curve.append((size, float(wrong @ weight / weight.sum())))
        return self._within(excess)

    def _within(self, excess: float) -> bool:
        return excess + min(self.doubt, self.tolerance / 2) <= self.tolerance


class Fold:
    """Some rows set aside, and the networks of the others."""

    def __init__(
        self,
        estimator: Any,
        data: Labeled,
        judged: np.ndarray,
        full_wrong: np.ndarray,
        prior: np.ndarray | None,
        rng: np.random.RandomState,
    ) -> None:
        others, judges = data.part(np.setdiff1d(np.arange(len(data.x)), judged)), data.part(judged)
        self.network = clone(estimator).set_params(verbose=0)
        self.network.n_features_in_ = data.x.shape[1]
        self.reduction = Reduction(self.network, others, prior, rng)
        self.n_rows, self.weight, self.full_wrong = len(others.x), judges.weight, full_wrong
        self._x, self._labels = judges.x, data.classes[judges.codes]

    def wrong(self, size: int) -> np.ndarray:
        """One for each row set aside that a network of this size misclassifies, zero for the others."""
        self.reduction.reduce(size)
        return np.asarray(self.network.predict(self._x) != self._labels, np.float64)
