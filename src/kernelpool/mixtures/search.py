"""Settings chosen on held-out rows: family and number of kernels, their prior, sharing, and the
overlap penalty.

Chosen one after the other, each network cross-fitted for a few sweeps of EM: the families with one,
two, four, ... kernels a class, until more no longer lower the loss; the best without the prior;
other degrees of sharing; the overlap penalty, for the most sharing that is as good as any.

Networks are compared by their tempered loss (`data.folds`). Each is scored on the first
fold, and on the others only if it is not behind the best there by more than a standard error (a
race, after Maron & Moore, "Hoeffding races", NIPS 1993).
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..data.door import TrainingData
from ..data.folds import (
    Loss,
    SampledRows,
    choose,
    cross_fit,
    draw_rows,
    fold_data,
    held_out_loss,
    stratified_folds,
)
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES
from ..penalties import Overlap
from .fit import DEFAULT_PER_CLASS, MixtureSettings, MixtureTraining, log_joint
from .network import SharedKernel
from .start import Start

FIRST_SHARING = 0.1

UNTIL_CHOSEN: dict[str, Any] = {
    "n_kernels": None,
    "covariance_type": "full",
    "kernel_prior": "conjugate",
    "sharing": FIRST_SHARING,
    "overlap": 0.0,
}
"""The parameters that may be "auto", and the values with which the search begins."""

DEGREES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
STRENGTHS = (5.0, 20.0)

EARLY = 4
"""A family is not given up below this many kernels a class: spherical ones need some to gain
anything.
"""

ROWS_A_KERNEL, ROWS_A_FEATURE = 10, 2
"""Fewest rows for each kernel; and, for kernels without a prior, for each kernel and feature."""

MOST_ROWS = 8_000
"""Settings are compared on a sample of about this many rows where there are more."""

MOST_SWEEPS, LOOSEST = 8, 1e-3
"""Networks that are only compared need not settle as far as the one that is kept."""


TABLE = [
    "covariance_type",
    "n_kernels",
    "kernel_prior",
    "sharing",
    "overlap",
    "tempered_loss",
    "log_loss",
    "error",
    "behind",
    "behind_error",
    "n_folds",
    "chosen",
]
"""Columns of the table of what was tried."""


class Candidate(NamedTuple):
    """One combination of settings."""

    covariance_type: str
    each: int
    """Kernels a class; 0 where their number is given."""
    kernel_prior: str | None
    sharing: float | None
    """A degree, or None: as the settings say."""
    strength: float
    """Of the overlap penalty."""


def choose_settings(
    settings: MixtureSettings, auto: Collection[str], data: TrainingData, verbose: int
) -> tuple[MixtureSettings, dict[str, np.ndarray], bool]:
    """The settings with nothing "auto" left, a table of what was tried, and whether the search was
    interrupted.

    An interrupted search (Ctrl-C) ends with the best setting so far.
    """
    names = ("owners", "means", "covariances", "mixing")
    given = [name for name in names if getattr(settings.start, name) is not None]
    given += ["table of sharing"] if np.ndim(settings.sharing) else []
    if given and {"n_kernels", "covariance_type"} & {*auto}:
        raise KernelpoolError(
            f"n_kernels='auto' and covariance_type='auto' take no {given[0]}; leave it out, or "
            "give a number and a type."
        )
    search = _Search(settings, auto, data, verbose)
    interrupted = False
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.losses:
            raise
        interrupted = True
    chosen = search.chosen()
    return search.settings_of(chosen, compared=False), search.table(chosen), interrupted


class _Search:
    """`losses` holds the held-out losses of each candidate: on the first fold and, if it was not
    behind there, on all.
    """

    def __init__(
        self, settings: MixtureSettings, auto: Collection[str], data: TrainingData, verbose: int
    ) -> None:
        self.settings = settings
        self.auto = auto
        self.data = data
        self.verbose = verbose
        self.rows = draw_rows(data, settings.seed, MOST_ROWS)
        _, code, weight, key = self.rows
        n_folds = 5 if data.weight < 600 else 3  # enough must be held out to compare networks
        self.fold = stratified_folds(code, n_folds, key=key, weight=weight)
        self.folds = np.unique(self.fold[self.fold >= 0]).tolist()
        classes = range(len(data.classes))
        self.distinct = [len(np.unique(key[(code == k) & (weight > 0)])) for k in classes]
        self.losses: dict[Candidate, list[Loss]] = {}
        self.log_joint: dict[Candidate, np.ndarray] = {}
        self.starts: dict[Any, Start] = {}
        sharing = settings.sharing
        d = data.rows.n_features
        degree = (
            FIRST_SHARING if isinstance(sharing, str) else None if np.ndim(sharing) else sharing
        )
        strength = settings.overlap.strength
        prior = settings.kernel_prior
        families = [settings.covariance_type]
        if "covariance_type" in auto and 0 in data.columns.levels:  # the fewest kernels first
            families = sorted(FAMILIES, key=lambda name: -_n_parameters(name, 2, d))
        each = int("n_kernels" in auto)
        self.first = [Candidate(name, each, prior, degree, strength) for name in families]

    def run(self) -> None:
        """Try candidates, from the first to those derived from the best."""
        if not self.folds:
            return
        rows_weight = self.rows.weight.sum()
        for candidate in self.first:
            self._enlarge(candidate)
        for candidate in sorted(self.losses, key=self._tempered):
            self._score(candidate)
        enough = ROWS_A_FEATURE * self.data.rows.n_features * self._n_kernels(self.best)
        if "kernel_prior" in self.auto and rows_weight > enough:
            self._score(self.best._replace(kernel_prior=None))
        best = self.best
        if "sharing" in self.auto:
            for degrees in (DEGREES, DEGREES[::-1]):
                more = degrees[degrees.index(best.sharing) + 1 :]
                self._along(best._replace(sharing=degree) for degree in more)
        best = self.best
        if "overlap" in self.auto:  # for the most sharing that is as good as any
            equal = [
                c.sharing
                for c in self.losses
                if c.sharing and c._replace(sharing=best.sharing) == best and not self._lags(c)
            ]
            if equal:
                most = best._replace(sharing=max(equal))
                self._along(most._replace(strength=strength) for strength in STRENGTHS)

    def _enlarge(self, candidate: Candidate) -> None:
        """More kernels a class, until that lowers the loss on the first fold no further."""
        smallest = candidate
        most = self.rows.weight.sum() / ROWS_A_KERNEL
        self._score(candidate, first=True)
        while candidate.each and 2 * self._n_kernels(candidate) <= most:
            candidate = candidate._replace(each=2 * candidate.each)
            self._score(candidate, first=True)
            behind, error = self._behind(candidate, smallest)
            # by less than a standard error of all folds, more kernels are not worth their time
            if behind < -error / np.sqrt(len(self.folds)):
                smallest = candidate
            elif candidate.each >= EARLY:
                return
            best, (behind, error) = self.best, self._behind(candidate, self.best)
            hopeless = behind > 2 * error and self._size(candidate) > 2 * self._size(best)
            if candidate.each >= EARLY and hopeless:
                return

    def _along(self, candidates: Iterable[Candidate]) -> None:
        """One after the other, until one is clearly behind."""
        for candidate in candidates:
            self._score(candidate)
            if self._lags(candidate):
                return

    def _score(self, candidate: Candidate, *, first: bool = False) -> None:
        """Cross-fit a candidate on the first fold and, if it is not clearly behind there, on
        all.
        """
        if candidate not in self.losses:
            self._cross_fit(candidate, self.folds[:1])
        if not first and len(self.losses[candidate]) == 1 and not self._lags(candidate):
            self._cross_fit(candidate, self.folds[1:])

    def _cross_fit(self, candidate: Candidate, folds: list[int]) -> None:
        """One loss more of a candidate: on these folds and those before.

        Networks that differ in the prior, sharing or overlap alone have one start.
        """
        settings = self.settings_of(candidate)

        def fit(train: tuple[Any, ...], out: tuple[Any, ...]) -> tuple[None, np.ndarray]:
            rows = SampledRows(*train[:4])
            key = (candidate[:2], out[4][0])
            data = fold_data(self.data, rows, settings.n_jobs)
            given = replace(settings, start=self.starts.get(key, settings.start))
            training = MixtureTraining(data, given.limited(rows.x, rows.code, len(data.classes)))
            first = training.first(training.sharing)
            fitted = training.run(first, training.sharing, training.owners)
            if fitted.outcome is Outcome.INTERRUPTED:
                raise KeyboardInterrupt("interrupted while settings were chosen; nothing was kept")
            if key not in self.starts:
                kernels = training.in_data_units(first)
                self.starts[key] = replace(
                    settings.start,
                    owners=data.classes[training.owners],
                    means=kernels.means,
                    covariances=kernels.covariances,
                    probabilities=kernels.probabilities,
                )
            network = SharedKernel(training.host_kernel, fitted.params.mixing)
            return None, log_joint(network, training.other_rows(out[0]), fitted.params)

        _, found = cross_fit(fit, (*self.rows, self.fold), self.fold, only=folds)
        found = np.where(np.isnan(found), self.log_joint.get(candidate, found), found)
        known = ~np.isnan(found).any(axis=1)
        loss = held_out_loss(found[known], self.rows.code[known], self.rows.weight[known])
        self.log_joint[candidate] = found
        self.losses.setdefault(candidate, []).append(loss)
        if self.verbose:
            mean = loss.mean(loss.tempered)
            print(f"auto: {candidate}: loss {mean:.4f}, {len(folds)} folds more")

    def _tempered(self, candidate: Candidate) -> float:
        loss = self.losses[candidate][-1]
        return round(loss.mean(loss.tempered), 6)

    @property
    def finalists(self) -> list[Candidate]:
        """Those that were scored on all folds; before any was, all."""
        on_all = [candidate for candidate, losses in self.losses.items() if len(losses) == 2]
        return on_all or list(self.losses)

    @property
    def best(self) -> Candidate:
        """Of the finalists, the one with the lowest tempered loss; of equals the first."""
        return min(self.finalists, key=self._tempered)

    def _behind(self, candidate: Candidate, other: Candidate) -> tuple[float, float]:
        """How far a loss is above another on common folds, and the standard error of that."""
        mine = self.losses[candidate]
        others = self.losses[other]
        common = min(len(mine), len(others)) - 1
        return mine[common].behind(others[common])

    def _lags(self, candidate: Candidate) -> bool:
        behind, error = self._behind(candidate, self.best)
        return behind > error

    def _counts(self, candidate: Candidate) -> list[int]:
        """Kernels of each class: no more than one for two distinct rows."""
        return [min(candidate.each, max(1, n // 2)) if n else 0 for n in self.distinct]

    def _n_kernels(self, candidate: Candidate) -> int:
        default = DEFAULT_PER_CLASS * len(self.data.classes)
        return sum(self._counts(candidate)) if candidate.each else self.settings.n_total or default

    def _size(self, candidate: Candidate) -> int:
        n_kernels = self._n_kernels(candidate)
        d = self.data.rows.n_features
        return _n_parameters(candidate.covariance_type, n_kernels, d)

    def settings_of(self, candidate: Candidate, compared: bool = True) -> MixtureSettings:
        """All settings of a candidate; networks that are only compared take fewer sweeps."""
        given = self.settings
        fixed = "sharing" not in self.auto and not (compared and isinstance(given.sharing, str))
        return replace(
            given,
            covariance_type=candidate.covariance_type,
            n_kernels=self._counts(candidate) if candidate.each else given.n_kernels,
            kernel_prior=candidate.kernel_prior,
            sharing=given.sharing if fixed else candidate.sharing,
            overlap=Overlap(candidate.strength) if "overlap" in self.auto else given.overlap,
            max_iter=min(given.max_iter, MOST_SWEEPS) if compared else given.max_iter,
            tol=max(given.tol, LOOSEST) if compared else given.tol,
        )

    def chosen(self) -> Candidate:
        """Of the finalists the smallest of the best calibrated of those with the lowest loss."""
        finalists = self.finalists
        losses = [self.losses[c][-1] for c in finalists]
        sizes = [(self._size(c), c.strength) for c in finalists]
        return finalists[choose(losses, sizes)] if finalists else self.first[0]

    def table(self, chosen: Candidate) -> dict[str, np.ndarray]:
        """What was tried and its losses, a column an entry; `pandas.DataFrame` takes it as it
        is.
        """
        rows = []
        for c, losses in self.losses.items():
            loss = losses[-1]
            n_folds = len(self.folds) if len(losses) == 2 else 1
            sharing = np.nan if c.sharing is None else c.sharing
            tried = c.covariance_type, self._n_kernels(c), c.kernel_prior or "none", sharing
            means = (loss.mean(values) for values in (loss.tempered, loss.plain, loss.wrong))
            behind = self._behind(c, self.best)
            rows.append((*tried, c.strength, *means, *behind, n_folds, c == chosen))
        return dict(zip(TABLE, map(np.array, zip(*rows, strict=True)), strict=False))


def _n_parameters(family: str, n_kernels: int, d: int) -> int:
    return int(FAMILIES[family](np.zeros(d)).n_parameters(n_kernels, d))
