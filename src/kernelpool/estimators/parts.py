"""Training rows less a fold, and the networks that are trained on them while settings are chosen."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import log_weighted_sums, safe_log, to_numpy
from ..em import Outcome, Stop
from ..kernels import NaturalParams
from ..networks.shared_kernel import Params, SharedKernel, sharing_table
from ..rows import ArrayRows, Block
from ..starts import opened
from ..starts.grown import needs, split
from ..starts.sample import Sample, _uniform
from ..training.validation import TrainingData
from .setup import Setup
from .training import Training

MOST_ROWS = 20_000
"""Settings are chosen on a sample of about this many rows where there are more."""


@dataclass(frozen=True)
class Cell:
    """One combination of settings."""

    covariance_type: str
    n_splits: int
    """How often the network has been grown; 0 where the number of kernels is given."""
    sharing: Any
    """A degree, or None: as the estimator says."""
    overlap_penalty: float

    @property
    def grown(self) -> tuple[str, int]:
        """What fixes the kernels' number."""
        return self.covariance_type, self.n_splits


@dataclass(frozen=True)
class Sampled:
    """Rows on the host, in the units of the data."""

    x: np.ndarray
    """(n, d)."""
    code: np.ndarray
    """(n,); -1 without a label."""
    weight: np.ndarray
    """(n,)."""
    key: np.ndarray
    """A number in (0, 1) made from the content of the row, (n,)."""

    def where(self, mask: np.ndarray) -> "Sampled":
        """Some of the rows."""
        return Sampled(self.x[mask], self.code[mask], self.weight[mask], self.key[mask])


def sampled(data: TrainingData, seed: int) -> Sampled:
    """Rows on the host; of each class, and of the rows without one, no more than its part of `MOST_ROWS`."""
    unit = float(np.sqrt(data.variance.mean())) or 1.0
    most = max(MOST_ROWS // (len(data.classes) + 1), 1000)
    drawn = data.rows.total(_of_block, seed, most, data.mean, unit)
    order = np.argsort(drawn.key * drawn.weight, kind="stable")
    x, code, weight = drawn.x[order], drawn.code[order], _as_common(drawn.code[order], drawn.weight[order], most, data)
    return Sampled(x, code, weight, _uniform((x - data.mean) / unit, seed))


def _as_common(code: np.ndarray, weight: np.ndarray, most: int, data: TrainingData) -> np.ndarray:
    """Weights that make each class as common in the sample as it is in the data."""
    drawn = np.bincount(code + 1, minlength=len(data.classes) + 1)  # rows of no class come first
    if (drawn < most).all():
        return weight
    # a row was drawn the more often the more it weighs: among those drawn of a class all count alike
    total = np.concatenate([[data.unlabeled_weight], data.class_weight])
    return np.asarray((total / np.maximum(drawn, 1) * (drawn.sum() / total.sum()))[code + 1])


def _of_block(block: Block, seed: int, most: int, mean: np.ndarray, unit: float) -> Sample:
    x, code = np.asarray(to_numpy(block.x), dtype=np.float64), to_numpy(block.y)
    weight = np.ones(len(x)) if block.weight is None else np.asarray(to_numpy(block.weight), dtype=np.float64)
    x, code, weight = x[weight > 0], code[weight > 0], weight[weight > 0]
    # as in starts.sample, but rows without a label are drawn too
    uniform = _uniform((x - np.asarray(to_numpy(mean), dtype=np.float64)) / unit, seed)
    return Sample(-np.log(uniform) / weight, code, x, weight, most).thinned()


class Part:
    """Networks trained on some of the rows; what they say of the others."""

    def __init__(self, estimator: Any, data: TrainingData, inside: Sampled, outside: Sampled, stop: Stop) -> None:
        self.estimator, self.stop = estimator, stop
        self.inside, self.outside = inside, outside
        labeled = inside.code >= 0
        self.data = replace(
            data,
            rows=ArrayRows(inside.x, inside.code, inside.weight, n_jobs=estimator.n_jobs),
            class_weight=np.bincount(inside.code[labeled], inside.weight[labeled], minlength=len(data.classes)),
            unlabeled_weight=float(inside.weight[~labeled].sum()),
            n_rows=float(np.count_nonzero(inside.weight)),
        )
        self.setups: dict[str, Setup] = {}
        self.owners: dict[tuple[str, int], np.ndarray] = {}
        self.params: dict[Cell, Params] = {}
        self.chosen: Any = None

    def training(self, cell: Cell) -> Training:
        """How networks of this cell are trained."""
        return self._setup(cell.covariance_type).training.penalized(cell.overlap_penalty)

    def sharing(self, cell: Cell) -> np.ndarray:
        """Its table of sharing, (M, K)."""
        if cell.sharing is None:
            return self._setup(cell.covariance_type).sharing(self.estimator.sharing)
        return np.asarray(sharing_table(self.owners[cell.grown], cell.sharing, len(self.data.classes)))

    def _setup(self, family: str) -> Setup:
        if family not in self.setups:
            plan = copy(self.estimator)
            plan.covariance_type, plan.max_iter, plan.tol = family, self.stop.max_iter, self.stop.tol
            plan.n_kernels = self._affordable(plan)
            self.setups[family] = Setup(plan, self.data)
        return self.setups[family]

    def _affordable(self, plan: Any) -> Any:
        """The number of kernels asked for, or as many as there are rows without those held out."""
        if plan.n_kernels is None or plan.owners is not None or plan.means_init is not None:
            return plan.n_kernels
        if not hasattr(plan.n_kernels, "__len__"):
            return min(int(plan.n_kernels), int(self.data.n_rows))
        rows = [len(np.unique(self.inside.x[self.inside.code == k], axis=0)) for k in range(len(self.data.classes))]
        return [min(count, max(1, n)) for count, n in zip(plan.n_kernels, rows, strict=False)]

    def forget(self, family: str) -> None:
        """Let go of the rows' features of all families but one."""
        self.setups = {name: setup for name, setup in self.setups.items() if name == family}

    # -- three ways to a network ------------------------------------------------------------------------------------

    def begin(self, cell: Cell) -> None:
        """From the start that the estimator's parameters describe."""
        setup = self._setup(cell.covariance_type)
        self.owners[cell.grown] = setup.owners
        sharing = self.sharing(cell)
        self._run(cell, setup.start(next(iter(setup.places())), sharing))

    def grow(self, cell: Cell, before: Cell, n_new: int) -> bool:
        """From the network of `before`, with `n_new` kernels split; False if none could be."""
        training, params = self.training(before), self.params[before]
        kernel, owners = training.host_kernel, self.owners[before.grown]
        rows = self.inside.where((self.inside.code >= 0) & (self.inside.weight > 0))
        x = training.frame.inside(rows.x)
        responsibility, loss = _seen(training, params, self.sharing(before), x, rows.code)
        owned = owners[:, None] == rows.code[None, :]
        need = needs(responsibility, loss, rows.weight, owned)
        member = responsibility.argmax(axis=0)
        member = np.where(owners[member] == rows.code, member, -1)
        kernels, mixing, parent = split(kernel, params.kernels, params.mixing, need, x, member, rows.weight, n_new)
        self.owners[cell.grown] = owners[parent]
        if len(parent) > len(owners):
            self._run(cell, Params(kernels, mixing, params.class_prior))
        return len(parent) > len(owners)

    def change(self, cell: Cell, before: Cell) -> None:
        """From the network of `before`, which has the same kernels under another sharing or penalty."""
        params, sharing = self.params[before], self.sharing(cell)
        mixing = params.mixing * (sharing > 0)
        wider = cell.sharing is not None and cell.sharing > before.sharing
        if wider or not (mixing.sum(axis=0) > 0).all():  # EM never finds its way back from a weight of nothing
            mixing = opened(mixing, sharing)
        self._run(cell, Params(params.kernels, mixing / mixing.sum(axis=0), params.class_prior))

    def _run(self, cell: Cell, start: Params) -> None:
        fit = self.training(cell).run(start, self.sharing(cell), self.owners[cell.grown])
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt("interrupted while settings were chosen; nothing was kept")
        self.params[cell] = fit.params

    # -- what they say ----------------------------------------------------------------------------------------------

    def log_joint(self, cell: Cell) -> np.ndarray:
        """log P(C_k) p(x|C_k) of the rows outside, up to a constant, (n, K)."""
        training, params = self.training(cell), self.params[cell]
        natural_params = training.host_kernel.natural_params(params.kernels, training.rows.eps)
        network = SharedKernel(training.host_kernel, np.ones_like(params.mixing))
        rows = ArrayRows(self.outside.x, n_jobs=self.estimator.n_jobs).framed(training.frame, sum(natural_params.weight.shape))
        log_density = rows.each(_log_density, network, natural_params, params.mixing)
        return np.asarray(to_numpy(log_density) + safe_log(training.class_prior))


def _log_density(block: Block, network: SharedKernel, natural_params: NaturalParams, mixing: Any) -> Any:
    return network.log_density(block, natural_params, mixing)


def _seen(
    training: Training, params: Params, sharing: np.ndarray, x: np.ndarray, code: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities (M, n) and losses -log P(C_y|x) (n,) of rows in the frame."""
    kernel = training.host_kernel
    log_density = kernel.log_density(kernel.natural_params(params.kernels, training.rows.eps), x)
    joint = log_density + safe_log(sharing * params.mixing)[:, code]
    joint = np.exp(joint - joint.max(axis=0))
    by_class = log_weighted_sums(log_density, params.mixing) + safe_log(params.class_prior)[:, None]  # (K, n)
    by_class = by_class - by_class.max(axis=0)
    log_all = np.log(np.exp(by_class).sum(axis=0))
    return joint / joint.sum(axis=0), log_all - by_class[code, np.arange(len(code))]
