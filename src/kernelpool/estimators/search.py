r"""A greedy search through the settings of a network, judged on held-out rows.

Networks are warm-started from each other, so that a combination costs some sweeps and not a fit: for each family a network
grows from one kernel a class by splitting (`starts.grown`) until that no longer helps; the best then goes through degrees of
sharing and strengths of the overlap penalty, and its number of kernels is looked at once more.
"""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..em import Stop
from ..errors import CollapsedKernelError
from ..kernels import FAMILIES
from ..selection.held_out import Loss, choose, folds_of, loss_of, n_folds
from ..training.validation import TrainingData, is_auto
from .parts import Cell, Part, sampled

FIRST_SHARING = 0.1
"""Sharing while networks grow: nearly separate mixtures, in which no row is far from every kernel of its class."""

DEGREES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
STRENGTHS = (5.0, 20.0)

GROWTH = 0.5
"""Part of the kernels that is split in one step."""

PATIENCE = 2
"""Steps of growth in a row that bring nothing before a family is given up,"""

EARLY = 4
"""but not before it has this many kernels a class: round kernels often need some before they gain anything."""

HOPELESS = 2
"""A family is given up too when it has spent this many times the numbers of another's best network and is still well behind it
(by two standard errors)."""

ROWS_A_KERNEL = 5
"""Fewest rows for each kernel."""

MOST_SWEEPS, LOOSEST = 50, 1e-4
"""Networks that are only compared need not settle as far as the one that is kept."""


class Search:
    """Tries settings; `tried` remembers what each came to on the held-out rows."""

    def __init__(self, estimator: Any, data: TrainingData, seed: int, say: Callable[[str], None]) -> None:
        self.estimator, self.data, self.say = estimator, data, say
        self.grows = is_auto(estimator.n_kernels)
        plan = self._plan(seed)
        stop = Stop(min(estimator.max_iter, MOST_SWEEPS), max(estimator.tol, LOOSEST))
        rows = sampled(data, seed)
        fold = folds_of(rows.key, rows.code, rows.weight, n_folds(data.weight))
        self.parts = [Part(plan, data, rows.where(fold != f), rows.where(fold == f), stop) for f in np.unique(fold[fold >= 0])]
        self.whole = Part(plan, data, rows, rows.where(fold == -2), stop)
        self.tried: dict[Cell, Loss] = {}

    def _plan(self, seed: int) -> Any:
        """The estimator as each network's setup should see it."""
        plan = copy(self.estimator)
        plan.warm_start, plan.random_state, plan.overlap_penalty = False, seed, 0.0
        if self.grows:
            plan.n_kernels = (self.data.class_weight > 0).astype(int).tolist()
        return plan

    # -- the search -------------------------------------------------------------------------------------------------

    def run(self) -> Cell:
        """The cell that is chosen: the first one, where no row could be held out."""
        given = self.estimator
        first = Cell(
            given.covariance_type,
            0,
            FIRST_SHARING if isinstance(given.sharing, str) else None if np.ndim(given.sharing) else given.sharing,
            0.0 if is_auto(given.overlap_penalty) else given.overlap_penalty,
        )
        families = list(FAMILIES) if is_auto(given.covariance_type) else [given.covariance_type]
        if not self.parts:
            return replace(first, covariance_type=families[0])
        self._each_family(first, families)
        if is_auto(given.sharing):
            self._share(self.best)
        if is_auto(given.overlap_penalty):
            self._penalize(self.best)
        if self.grows:
            self._resize(self.best)
        cells = list(self.tried)
        sizes = [(self.size(cell), cell.overlap_penalty) for cell in cells]
        return cells[choose([self.tried[cell] for cell in cells], sizes)]

    @property
    def best(self) -> Cell:
        """The cell with the lowest tempered loss so far."""
        return min(self.tried, key=self._loss)

    def _loss(self, cell: Cell) -> float:
        loss = self.tried[cell]
        return loss.mean(loss.tempered)

    def _each_family(self, first: Cell, families: list[str]) -> None:
        collapsed = None
        for family in families:
            try:
                self._grow(replace(first, covariance_type=family))
            except CollapsedKernelError as error:  # without a floor, some families have no fit on few rows
                collapsed = error
            for part in self.parts:
                part.forget(self.best.covariance_type if self.tried else family)
        if not self.tried and collapsed is not None:
            raise collapsed

    def _grow(self, cell: Cell) -> None:
        """From few kernels to many, until that brings nothing any more."""
        for part in self.parts:
            part.begin(cell)
        self._judge(cell)
        lowest, since, enough = self._loss(cell), 0, EARLY * len(self.data.classes)
        while self.grows and (since < PATIENCE or self.n_kernels(cell) < enough):
            before, cell = cell, replace(cell, n_splits=cell.n_splits + 1)
            n_new = _n_new(self.n_kernels(before))
            if (self.n_kernels(before) + n_new) * ROWS_A_KERNEL > self.whole.inside.weight.sum():
                return
            if not all(part.grow(cell, before, n_new) for part in self.parts):
                return
            self._judge(cell)
            if self.n_kernels(cell) >= enough and self._hopeless(cell):
                return
            since = 0 if self._loss(cell) < lowest else since + 1
            lowest = min(lowest, self._loss(cell))

    def _hopeless(self, cell: Cell) -> bool:
        others = [other for other in self.tried if other.covariance_type != cell.covariance_type]
        if not others:
            return False
        best = min(others, key=self._loss)
        behind, error = self.tried[cell].behind(self.tried[best])
        return behind > 2 * error and self.size(cell) > HOPELESS * self.size(best)

    def _share(self, cell: Cell) -> None:
        """Degrees of sharing, outwards from the one that the network has."""
        self._along([replace(cell, sharing=s) for s in sorted(DEGREES) if s > cell.sharing], cell)
        self._along([replace(cell, sharing=s) for s in sorted(DEGREES, reverse=True) if s < cell.sharing], cell)

    def _penalize(self, cell: Cell) -> None:
        """Strengths of the penalty, for the sharing that was best and for full sharing, which the penalty is made for."""
        degrees = {cell.sharing, 1.0} if is_auto(self.estimator.sharing) else {cell.sharing}
        for sharing in sorted(degrees - {0.0}, key=str):  # separate mixtures have no overlap
            first = replace(cell, sharing=sharing)
            self._along([replace(first, overlap_penalty=s) for s in STRENGTHS], first)

    def _resize(self, cell: Cell) -> None:
        """Fewer or more kernels, under the sharing and the penalty that were best."""
        for n_splits in (cell.n_splits - 1, cell.n_splits + 1):
            other = replace(cell, n_splits=n_splits)
            grown = [known for known in self.tried if known.grown == other.grown]
            if grown and other not in self.tried:
                self._along([other], grown[0])

    def _along(self, cells: Iterable[Cell], before: Cell) -> None:
        """One cell after the other, each from the one before."""
        for cell in cells:
            for part in self.parts:
                part.change(cell, before)
            self._judge(cell)
            before = cell

    def finish(self, chosen: Cell) -> Part:
        """The chosen network on all rows, by the way it was reached on the parts."""
        part = self.whole
        cell = next((cell for cell in self.tried if cell.covariance_type == chosen.covariance_type), chosen)
        part.begin(cell)
        for n_splits in range(1, chosen.n_splits + 1):
            before, cell = cell, replace(cell, n_splits=n_splits)
            if not part.grow(cell, before, _n_new(len(part.owners[before.grown]))):
                cell = before
                break
        last = replace(chosen, n_splits=cell.n_splits)
        if last != cell:
            part.change(last, cell)
        part.chosen = last
        return part

    # -- the record -------------------------------------------------------------------------------------------------

    def n_kernels(self, cell: Cell) -> int:
        """Kernels of the networks of a cell; where a fold could not be grown as far as the others, the fewest."""
        return min(len(part.owners[cell.grown]) for part in self.parts)

    def size(self, cell: Cell) -> int:
        """Numbers in the kernels of a cell."""
        n_kernels, d = self.n_kernels(cell), self.data.rows.n_features
        return n_kernels * d + FAMILIES[cell.covariance_type](np.zeros(d)).n_parameters(n_kernels, d)

    def _judge(self, cell: Cell) -> None:
        loss = loss_of(
            np.concatenate([part.log_joint(cell) for part in self.parts]),
            np.concatenate([part.outside.code for part in self.parts]),
            np.concatenate([part.outside.weight for part in self.parts]),
        )
        self.tried[cell] = loss
        sharing = "given" if cell.sharing is None else f"{cell.sharing:g}"
        self.say(
            f"{cell.covariance_type}, {self.n_kernels(cell)} kernels, sharing {sharing}, penalty {cell.overlap_penalty:g}: "
            f"held-out loss {loss.mean(loss.tempered):.4f} tempered, {loss.mean(loss.plain):.4f} plain, "
            f"error {100 * loss.mean(loss.wrong):.1f} %"
        )

    def table(self, chosen: Cell) -> dict[str, np.ndarray]:
        """What was tried and what it came to, a column an entry; `pandas.DataFrame` takes it as it is."""
        cells, losses = list(self.tried), list(self.tried.values())
        best = self.tried[self.best] if cells else None
        return {
            "covariance_type": np.array([cell.covariance_type for cell in cells]),
            "n_kernels": np.array([self.n_kernels(cell) for cell in cells], dtype=int),
            "sharing": np.array([np.nan if cell.sharing is None else cell.sharing for cell in cells], dtype=float),
            "overlap_penalty": np.array([cell.overlap_penalty for cell in cells], dtype=float),
            "tempered_loss": np.array([loss.mean(loss.tempered) for loss in losses]),
            "behind": np.array([loss.behind(best)[0] for loss in losses]) if best else np.array([]),
            "behind_error": np.array([loss.behind(best)[1] for loss in losses]) if best else np.array([]),
            "log_loss": np.array([loss.mean(loss.plain) for loss in losses]),
            "error": np.array([loss.mean(loss.wrong) for loss in losses]),
            "beta": np.array([loss.beta for loss in losses]),
            "chosen": np.array([cell == chosen for cell in cells], dtype=bool),
        }


def _n_new(n_kernels: int) -> int:
    return int(np.ceil(GROWTH * n_kernels))
