"""What `SharingAverageClassifier` averages over, and how much each network counts."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..em import Fit, Outcome, best_of
from ..errors import KernelpoolError
from ..kernels import Kernels
from ..networks.shared_kernel import Params, SharedKernel
from ..networks.stacking import stacked
from ..rows import ArrayRows, Block
from ..selection.held_out import folds_of, n_folds
from ..training.validation import TrainingData, check_degree, is_learned
from .parts import Sampled, sampled
from .setup import Setup

FEWEST = 10
"""Distinct rows that a class must have for some of them to be held out."""


@dataclass(frozen=True)
class Choice:
    """The settings of one network of an average."""

    total: int | None
    """Number of kernels; None is what `n_kernels` says."""
    sharing: float | str
    strength: float


def choices_of(estimator: Any) -> list[Choice]:
    """Every number of kernels with every degree of sharing with every strength of the penalty."""
    degrees, strengths = list(estimator.sharing), [float(s) for s in np.ravel(estimator.overlap_penalty)]
    totals: list[int | None] = [None] if estimator.kernel_totals is None else list(estimator.kernel_totals)
    if not degrees or not strengths or not totals:
        raise KernelpoolError("sharing, overlap_penalty and kernel_totals must hold at least one value; got an empty sequence.")
    for value in degrees:
        if isinstance(value, str) and not is_learned(value):
            raise KernelpoolError(f"Each value of sharing must be a number in [0, 1] or 'learned'; got {value!r}.")
        if not isinstance(value, str):
            check_degree(value, "Each value of sharing")
    if min(strengths) < 0:
        raise KernelpoolError(f"Each value of overlap_penalty must be at least 0; got {min(strengths)}.")
    _check_totals(estimator, totals)
    return [Choice(None if t is None else int(t), s, p) for t, s, p in product(totals, degrees, strengths)]


def _check_totals(estimator: Any, totals: list[Any]) -> None:
    if estimator.kernel_totals is None:
        return
    for total in totals:
        if isinstance(total, bool) or int(total) != total or total < 1:
            raise KernelpoolError(f"Each value of kernel_totals must be a whole number above zero; got {total!r}.")
    for name in ("n_kernels", "owners", "means_init", "covariances_init", "mixing_init"):
        if getattr(estimator, name) is not None:
            raise KernelpoolError(f"{name} and kernel_totals both say how many kernels there are; leave {name} at None.")


def setups_of(estimator: Any, choices: list[Choice], data: TrainingData) -> dict[int | None, Setup]:
    """One setup, with its own start, for each number of kernels."""
    setups: dict[int | None, Setup] = {}
    for choice in choices:
        if choice.total not in setups:
            plan = copy(estimator)
            plan.n_kernels = estimator.n_kernels if choice.total is None else choice.total
            setups[choice.total] = Setup(plan, data)
    return setups


def run_of(
    setup: Setup, choice: Choice, place: Kernels | Params, on_sweep: Callable[[Fit[Params]], bool] | None = None
) -> Fit[Params]:
    """EM for one choice from one place."""
    sharing = setup.sharing(choice.sharing)
    start = setup.start(place, sharing, learned=is_learned(choice.sharing))
    return setup.training.penalized(choice.strength).run(start, sharing, setup.owners, on_sweep)


# -- weights from rows that were held out -------------------------------------------------------------------------


def held_out_weights(estimator: Any, choices: list[Choice], data: TrainingData) -> np.ndarray:
    """Stacking over folds, (L,); equal where no class has enough rows to spare any."""
    rows = sampled(data, seed=0)
    fold = _folds(rows, data)
    parts = [_said(estimator, choices, data, rows, fold == f) for f in np.unique(fold[fold >= 0])]
    if not parts:
        return np.full(len(choices), 1 / len(choices))
    log_density = np.concatenate([said for said, _ in parts], axis=1)
    return np.asarray(stacked(log_density, np.concatenate([weight for _, weight in parts])))


def _folds(rows: Sampled, data: TrainingData) -> np.ndarray:
    """The fold of each row; -1 for rows that always train, among them those of a class too small to spare any."""
    fold = folds_of(rows.key, rows.code, rows.weight, n_folds(data.weight))
    for k in range(len(data.classes)):
        mine = rows.code == k
        if len(np.unique(rows.x[mine], axis=0)) < FEWEST:
            fold[mine] = -1
    return fold


def _said(
    estimator: Any, choices: list[Choice], data: TrainingData, rows: Sampled, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """log p(x|C_y) of the rows held out by every network trained without them, (L, n), and their weights."""
    inside, outside = rows.where(~out), rows.where(out)
    part = _part(data, inside, estimator.n_jobs)
    setups = setups_of(_modest(estimator, inside), [_fewer(choice, inside) for choice in choices], part)
    said: dict[Choice, np.ndarray] = {}
    for choice in choices:
        fewer = _fewer(choice, inside)
        if fewer not in said:
            said[fewer] = _log_density(setups[fewer.total], fewer, outside)
    return np.stack([said[_fewer(choice, inside)] for choice in choices]), outside.weight


def _part(data: TrainingData, inside: Sampled, n_jobs: int | None) -> TrainingData:
    """The training data less the rows that are held out."""
    labeled = inside.code >= 0
    return replace(
        data,
        rows=ArrayRows(inside.x, inside.code, inside.weight, n_jobs=n_jobs),
        class_weight=np.bincount(inside.code[labeled], inside.weight[labeled], minlength=len(data.classes)),
        unlabeled_weight=float(inside.weight[~labeled].sum()),
        n_rows=float(len(inside.weight)),
    )


def _fewer(choice: Choice, inside: Sampled) -> Choice:
    """The choice with no more kernels than there are rows left."""
    return choice if choice.total is None else replace(choice, total=min(choice.total, len(inside.weight)))


def _modest(estimator: Any, inside: Sampled) -> Any:
    """The estimator asking for no more kernels than there are rows left, class by class where it says so."""
    plan = copy(estimator)
    if hasattr(plan.n_kernels, "__len__"):
        rows = [len(np.unique(inside.x[inside.code == k], axis=0)) for k in range(len(plan.n_kernels))]
        plan.n_kernels = [min(int(count), max(1, n)) for count, n in zip(plan.n_kernels, rows, strict=True)]
    elif plan.n_kernels is not None and plan.owners is None and plan.means_init is None:
        plan.n_kernels = min(int(plan.n_kernels), len(inside.weight))
    return plan


def _log_density(setup: Setup, choice: Choice, outside: Sampled) -> np.ndarray:
    """log p(x|C_y) of rows on which the network of this choice was not trained, up to a constant, (n,)."""
    fit = best_of([run_of(setup, choice, place) for place in setup.places()])
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt("interrupted while weights were found; all networks count the same")
    kernel, frame = setup.training.host_kernel, setup.training.frame
    network = SharedKernel(kernel, np.ones_like(fit.params.mixing))
    block = Block(frame.inside(outside.x))
    log_density = network.log_density(
        block, kernel.natural_params(fit.params.kernels, setup.training.rows.eps), fit.params.mixing
    )
    return np.asarray(log_density[np.arange(len(outside.code)), outside.code]) - frame.log_volume
