"""The parameters that are "auto", chosen on held-out rows one after the other: settings are
cross-fitted by a few sweeps of EM and compared by their tempered loss (`data.folds`).
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import folds
from ..data.door import TrainingData
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES
from ..penalties import Overlap
from .fit import MixtureSettings, MixtureTraining, log_joint
from .network import SharedKernel

FIRST: dict[str, Any] = {
    "n_kernels": None,
    "covariance_type": "full",
    "kernel_prior": "conjugate",
    "sharing": 0.1,
    "overlap": Overlap(0.0),
}
"""The parameters that may be "auto", and the values with which the search begins."""

SIZES = (1, 3, 9, 27, 81)
"""Kernels a class of each family, as long as more lower the loss."""

GRIDS: dict[str, tuple[Any, ...]] = {
    "kernel_prior": (None,),
    "sharing": (0.0, 0.25, 0.5, 1.0),
    "overlap": (Overlap(5.0), Overlap(20.0)),
}
"""Values that are tried with the best of those before."""


class Search:
    """Trials: settings, their numbers of kernels and of parameters, and their held-out losses."""

    def __init__(self, data: TrainingData, seed: int, verbose: int) -> None:
        self.data = data
        self.verbose = verbose
        self.rows = folds.draw_rows(data, seed, most_rows=8_000)
        _, code, weight, key = self.rows
        self.fold = folds.stratified_folds(code, 3, key=key, weight=weight)
        classes = range(len(data.classes))
        self.n_distinct = [len(np.unique(key[(code == k) & (weight > 0)])) for k in classes]
        self.trials: list[tuple[MixtureSettings, int, int, folds.Loss]] = []

    def run(self, first: MixtureSettings, auto: Collection[str]) -> None:
        """Try families and numbers of kernels; then, with the best, the values of each grid."""
        shaped = "covariance_type" in auto and 0 in self.data.columns.levels
        for family in FAMILIES if shaped else [first.covariance_type]:
            self.grow(replace(first, covariance_type=family), SIZES if "n_kernels" in auto else ())
        for name in [name for name in GRIDS if name in auto]:
            best = self.trials[self.lowest()][0]
            for value in GRIDS[name]:
                self.score(replace(best, **{name: value}))

    def grow(self, settings: MixtureSettings, sizes: tuple[int, ...]) -> None:
        """More kernels, until they no longer lower the loss by half a standard error."""
        losses = [] if sizes else [self.score(settings)]
        for each in sizes:
            counts = [min(each, max(1, n // 2)) if n else 0 for n in self.n_distinct]
            if each > 1 and 10 * sum(counts) > self.rows.weight.sum():  # too few rows a kernel
                return
            losses.append(self.score(replace(settings, n_kernels=counts)))
            behind, error = losses[-1].behind(losses[max(0, len(losses) - 2)])
            if len(losses) > 2 and behind > -error / 2:  # spherical kernels need some to gain
                return

    def score(self, settings: MixtureSettings) -> folds.Loss:
        """The held-out losses of settings."""

        def fit(train: folds.Data, out: folds.Data) -> tuple[MixtureTraining, np.ndarray]:
            rows = folds.SampledRows(*train)
            data = folds.fold_data(self.data, rows, settings.n_jobs)
            fewer = settings.limited(rows.x, rows.code, len(data.classes))
            max_iter = min(settings.max_iter, 8)
            tol = max(settings.tol, 1e-3)
            training = MixtureTraining(data, replace(fewer, max_iter=max_iter, tol=tol))
            run = training.run(training.first())
            if run.outcome is Outcome.INTERRUPTED:
                raise KeyboardInterrupt("interrupted while settings were chosen; nothing was kept")
            network = SharedKernel(training.host_kernel, run.params.mixing)
            return training, log_joint(network, training.other_rows(out[0]), run.params)

        (training, *_), held_out = folds.cross_fit(fit, self.rows, self.fold)
        at = self.fold >= 0
        loss = folds.held_out_loss(held_out[at], self.rows.code[at], self.rows.weight[at])
        n_kernels = settings.n_total or len(training.owners)
        size = training.host_kernel.n_parameters(n_kernels, self.data.rows.n_features)
        self.trials.append((settings, n_kernels, size, loss))
        if self.verbose:
            print(f"auto: {settings}: loss {loss.mean(loss.tempered):.4f}")
        return loss

    def lowest(self) -> int:
        """The trial with the lowest loss, to six places: the rest is rounding."""
        losses = [loss for *_, loss in self.trials]
        return int(np.argmin([round(loss.mean(loss.tempered), 6) for loss in losses]))

    def table(self, chosen: int) -> dict[str, np.ndarray]:
        """What was tried, a column an entry."""
        lowest = self.trials[self.lowest()][-1]
        columns: dict[str, list[Any]] = {}
        for i, (settings, n_kernels, _, loss) in enumerate(self.trials):
            behind, error = loss.behind(lowest)
            row = {
                "covariance_type": settings.covariance_type,
                "n_kernels": n_kernels,
                "kernel_prior": settings.kernel_prior or "none",
                "sharing": np.nan if np.ndim(settings.sharing) else settings.sharing,
                "overlap": settings.overlap.strength,
                "tempered_loss": loss.mean(loss.tempered),
                "log_loss": loss.mean(loss.plain),
                "error": loss.mean(loss.wrong),
                "behind": behind,
                "behind_error": error,
                "n_folds": 3,
                "chosen": i == chosen,
            }
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
        return {name: np.array(values) for name, values in columns.items()}


def choose_settings(
    settings: MixtureSettings, auto: Collection[str], data: TrainingData, verbose: int
) -> tuple[MixtureSettings, dict[str, np.ndarray], bool]:
    """The settings with the parameters `auto` chosen, a table of what was tried, and whether the
    search was interrupted (Ctrl-C): it then ends with the best so far.
    """
    given = "table of sharing" if np.ndim(settings.sharing) else settings.start.given
    if given and {"n_kernels", "covariance_type"} & {*auto}:
        raise KernelpoolError(
            f"n_kernels='auto' and covariance_type='auto' take no {given}; leave it out, or give a "
            "number and a type."
        )
    search = Search(data, settings.seed, verbose)
    if (search.fold < 0).all():
        return settings, {}, False
    interrupted = False
    try:
        search.run(settings, auto)
    except KeyboardInterrupt:
        interrupted = True
        if not search.trials:
            raise
    sizes = [(size, tried.overlap.strength) for tried, _, size, _ in search.trials]
    chosen = folds.choose([loss for *_, loss in search.trials], sizes)
    return search.trials[chosen][0], search.table(chosen), interrupted
