r"""Settings chosen on held-out rows: family and number of kernels, their prior, sharing, and the overlap penalty.

The settings are chosen one after the other, each network cross-fitted for a few sweeps of EM:

1. each family with one, two, four, ... kernels a class, until more no longer lower the loss;
2. the best of these without the prior on its kernels;
3. other degrees of sharing, outwards from the one it was trained with;
4. the overlap penalty, for the most sharing that is as good as any.

Networks are compared by their tempered loss (`training.held_out`). Most of what is tried is far
from the best, and one fold shows it: every network is scored on the first fold, and on the others
only if it is not behind the best there by more than a standard error (a race, after Maron & Moore,
"Hoeffding races", NIPS 1993).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import safe_log
from ..em import Outcome
from ..errors import CollapsedKernelError, KernelpoolError
from ..kernels import FAMILIES
from ..penalties import Overlap
from .cross_fit import cross_fit
from .folds import stratified_folds
from .held_out import (
    Loss,
    SampledRows,
    choose,
    draw_rows,
    fold_data,
    held_out_loss,
    limited,
    n_folds,
)
from .prepare import TrainingData
from .settings import Settings, is_auto
from .shared_kernel import DEFAULT_PER_CLASS, MixtureTraining

FIRST_SHARING, DEGREES = 0.1, (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
STRENGTHS = (5.0, 20.0)

EARLY = 4
"""A family is not given up below this many kernels a class: spherical kernels often need some before they gain anything."""

HOPELESS = 2
"""It is given up too where it has this many times the parameters of the best of another family and is still behind it."""

ROWS_A_KERNEL, ROWS_A_FEATURE = 10, 2
"""Fewest rows for each kernel; and, for kernels without a prior, for each kernel and feature."""

MOST_ROWS = 8_000
"""Settings are compared on a sample of about this many rows where there are more."""

MOST_SWEEPS, LOOSEST = 8, 1e-3
"""Networks that are only compared need not settle as far as the one that is kept."""


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
    settings: Settings, data: TrainingData, report: Callable[[str], None]
) -> tuple[Settings, dict[str, np.ndarray], bool]:
    """The settings with nothing "auto" left, a table of what was tried, and whether the user interrupted the search.

    An interrupted search (Ctrl-C) ends with the best setting so far.
    """
    _check(settings)
    search, interrupted = _Search(settings, data, report), False
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.log_joint:
            raise
        interrupted = True
    chosen = search.chosen()
    resolved = search.settings_of(chosen, compared=False)
    return resolved, search.table(chosen), interrupted


def _check(settings: Settings) -> None:
    start = settings.start
    if is_auto(settings.n_kernels):
        given = {
            name: getattr(start, name) for name in ("owners", "means", "covariances", "mixing")
        }
        given["table of sharing"] = None if np.ndim(settings.sharing) == 0 else settings.sharing
        for name, value in given.items():
            if value is not None:
                raise KernelpoolError(
                    f"n_kernels='auto' takes no {name}; leave it out, or give n_kernels."
                )
    if is_auto(settings.covariance_type) and start.covariances is not None:
        raise KernelpoolError(
            "covariance_type='auto' takes no covariances; leave them out, or name the type."
        )


class _Search:
    """Cross-fits candidates; `log_joint` holds log P(C_k) p(x|C_k) of the held-out rows of each, (n, K)."""

    def __init__(
        self, settings: Settings, data: TrainingData, report: Callable[[str], None]
    ) -> None:
        self.settings, self.data, self.report = settings, data, report
        self.rows = draw_rows(data, settings.seed, MOST_ROWS)
        code, weight = self.rows.code, self.rows.weight
        self.fold = stratified_folds(code, n_folds(data.weight), key=self.rows.key, weight=weight)
        self.folds = np.unique(self.fold[self.fold >= 0]).tolist()
        self.distinct = [
            len(np.unique(self.rows.key[(code == k) & (weight > 0)]))
            for k in range(len(data.classes))
        ]
        self.log_joint: dict[Candidate, np.ndarray] = {}
        self._losses: dict[tuple[Candidate, bool], Loss] = {}

    def run(self) -> None:
        """Try candidates, from the first to what is derived from the best."""
        settings, sharing = self.settings, self.settings.sharing
        first = Candidate(
            settings.covariance_type,
            int(is_auto(settings.n_kernels)),
            "conjugate" if is_auto(settings.kernel_prior) else settings.kernel_prior,
            FIRST_SHARING if isinstance(sharing, str) else None if np.ndim(sharing) else sharing,
            0.0 if is_auto(settings.overlap) else settings.overlap.strength,
        )
        # the shapes that need the fewest kernels first: the others are then given up the sooner
        families = (
            list(FAMILIES)[::-1] if is_auto(first.covariance_type) else [first.covariance_type]
        )
        if not self.folds:
            self.log_joint[first._replace(covariance_type=families[0])] = np.empty((0, 0))
            return
        collapsed = None
        for family in families:
            try:
                self._grow(first._replace(covariance_type=family))
            except CollapsedKernelError as error:  # without a floor, some have no fit on few rows
                collapsed = error
        if not self.log_joint and collapsed is not None:
            raise collapsed
        for candidate in sorted(self.log_joint, key=self._tempered):
            self._score(candidate)
        rows_a_kernel = self.rows.weight.sum() / self._n_kernels(self.best)
        if (
            is_auto(settings.kernel_prior)
            and rows_a_kernel > ROWS_A_FEATURE * self.data.rows.n_features
        ):
            self._score(self.best._replace(kernel_prior=None))
        if is_auto(sharing):
            best = self.best
            for degrees in (DEGREES, DEGREES[::-1]):
                more = degrees[degrees.index(best.sharing) + 1 :]
                self._along([best._replace(sharing=degree) for degree in more])
        if is_auto(
            settings.overlap
        ):  # for the most sharing that is as good as any: separate kernels have no overlap
            best = self.best
            equal = [
                c for c in self.log_joint if c._replace(sharing=best.sharing) == best and c.sharing
            ]
            for most in sorted((c for c in equal if not self._lags(c)), key=lambda c: -c.sharing)[
                :1
            ]:
                self._along([most._replace(strength=strength) for strength in STRENGTHS])

    def _along(self, candidates: list[Candidate]) -> None:
        """One after the other, until one is clearly behind."""
        for candidate in candidates:
            self._score(candidate)
            if self._lags(candidate):
                return

    def _grow(self, candidate: Candidate) -> None:
        """More kernels a class, until that lowers the loss on the first fold no further."""
        best = candidate
        self._score(candidate, first=True)
        while candidate.each:
            candidate = candidate._replace(each=2 * candidate.each)
            if self._n_kernels(candidate) > self.rows.weight.sum() / ROWS_A_KERNEL:
                return
            self._score(candidate, first=True)
            behind, error = self._behind(candidate, best)
            # by less than a standard error of all folds, more kernels are not worth their time
            if behind < -error / np.sqrt(len(self.folds)):
                best = candidate
            elif candidate.each >= EARLY:
                return
            if candidate.each >= EARLY and self._is_hopeless(candidate):
                return

    def _is_hopeless(self, candidate: Candidate) -> bool:
        others = [c for c in self.log_joint if c.covariance_type != candidate.covariance_type]
        if not others:
            return False
        behind, error = self._behind(candidate, best := min(others, key=self._tempered))
        return behind > 2 * error and self._size(candidate) > HOPELESS * self._size(best)

    # -- losses -------------------------------------------------------------------------------------------------------

    def _score(self, candidate: Candidate, *, first: bool = False) -> None:
        """Cross-fit a candidate on the first fold and, if it is not clearly behind there, on the others."""
        folds = self.folds[:1]
        if candidate not in self.log_joint:
            self.log_joint[candidate] = self._cross_fit(candidate, folds)
        if not first and not self._lags(candidate):
            folds = self.folds
            others = self._cross_fit(candidate, folds[1:])
            known = self.log_joint[candidate]
            self.log_joint[candidate] = np.where(np.isnan(known), others, known)
        loss = self._loss(candidate, len(folds) > 1)
        self.report(
            f"{candidate}: held-out loss {loss.mean(loss.tempered):.4f} tempered, {loss.mean(loss.plain):.4f} plain, "
            f"error {100 * loss.mean(loss.wrong):.1f} %, on {len(folds)} of {len(self.folds)} folds"
        )

    def _cross_fit(self, candidate: Candidate, folds: list[int]) -> np.ndarray:
        settings = self.settings_of(candidate)

        def fit(train: tuple[Any, ...], out: tuple[Any, ...]) -> tuple[None, np.ndarray]:
            rows = SampledRows(*train)
            data = fold_data(self.data, rows, settings.n_jobs)
            training = MixtureTraining(data, limited(settings, rows, len(data.classes)))
            fitted = training.best()
            if fitted.outcome is Outcome.INTERRUPTED:
                raise KeyboardInterrupt("interrupted while settings were chosen; nothing was kept")
            return None, training.log_density(fitted.params, out[0]) + safe_log(
                training.class_prior
            )

        return cross_fit(fit, self.rows, self.fold, only=folds)[1]

    def _loss(self, candidate: Candidate, on_all: bool) -> Loss:
        if (candidate, on_all) not in self._losses:
            held = self.fold >= 0 if on_all else self.fold == self.folds[0]
            parts = self.log_joint[candidate][held], self.rows.code[held], self.rows.weight[held]
            self._losses[candidate, on_all] = held_out_loss(*parts)
        return self._losses[candidate, on_all]

    def _on_all(self, candidate: Candidate) -> bool:
        return not np.isnan(self.log_joint[candidate][self.fold >= 0]).any()

    def _tempered(self, candidate: Candidate) -> float:
        loss = self._loss(candidate, self._on_all(candidate))
        return round(loss.mean(loss.tempered), 6)

    @property
    def _finalists(self) -> list[Candidate]:
        """Those that were scored on all folds, or all before any was."""
        on_all = [candidate for candidate in self.log_joint if self._on_all(candidate)]
        return on_all or list(self.log_joint)

    @property
    def best(self) -> Candidate:
        """Of the finalists, the one with the lowest tempered loss; of equals (to six places) the first."""
        return min(self._finalists, key=self._tempered)

    def _behind(self, candidate: Candidate, other: Candidate) -> tuple[float, float]:
        """How far the loss of one is above that of another on common folds, and the standard error of that."""
        on_all = self._on_all(candidate) and self._on_all(other)
        return self._loss(candidate, on_all).behind(self._loss(other, on_all))

    def _lags(self, candidate: Candidate) -> bool:
        behind, error = self._behind(candidate, self.best)
        return behind > error

    # -- results ------------------------------------------------------------------------------------------------------

    def _counts(self, candidate: Candidate) -> list[int]:
        """Kernels of each class, where they are chosen: no more than one for two distinct rows."""
        return [min(candidate.each, max(1, n // 2)) if n else 0 for n in self.distinct]

    def _n_kernels(self, candidate: Candidate) -> int:
        if candidate.each:
            return sum(self._counts(candidate))
        given = self.settings.n_total
        return DEFAULT_PER_CLASS * len(self.data.classes) if given is None else given

    def _size(self, candidate: Candidate) -> int:
        """Parameters of the kernels."""
        d = self.data.rows.n_features
        family = FAMILIES[candidate.covariance_type](np.zeros(d))
        return int(family.n_parameters(self._n_kernels(candidate), d))

    def settings_of(self, candidate: Candidate, compared: bool = True) -> Settings:
        """All settings of a candidate; networks that are only compared take fewer sweeps."""
        given, overlap = self.settings, self.settings.overlap
        shared = not (compared and isinstance(given.sharing, str)) and not is_auto(given.sharing)
        return replace(
            given,
            covariance_type=candidate.covariance_type,
            n_kernels=self._counts(candidate) if candidate.each else given.n_kernels,
            kernel_prior=candidate.kernel_prior,
            sharing=given.sharing if shared else candidate.sharing,
            overlap=Overlap(candidate.strength) if is_auto(overlap) else overlap,
            max_iter=min(given.max_iter, MOST_SWEEPS) if compared else given.max_iter,
            tol=max(given.tol, LOOSEST) if compared else given.tol,
        )

    def chosen(self) -> Candidate:
        """Of the finalists the smallest of the best calibrated of those that tell classes apart best."""
        if not self.folds:
            return next(iter(self.log_joint))
        finalists = self._finalists
        losses = [self._loss(candidate, self._on_all(candidate)) for candidate in finalists]
        return finalists[choose(losses, [(self._size(c), c.strength) for c in finalists])]

    def table(self, chosen: Candidate) -> dict[str, np.ndarray]:
        """What was tried and its losses, a column an entry; `pandas.DataFrame` takes it as it is."""
        tried = list(self.log_joint) if self.folds else []
        losses = [self._loss(candidate, self._on_all(candidate)) for candidate in tried]
        behind = np.array([self._behind(c, self.best) for c in tried]).reshape(-1, 2)
        return {
            "covariance_type": np.array([c.covariance_type for c in tried], dtype=str),
            "n_kernels": np.array([self._n_kernels(c) for c in tried], dtype=int),
            "kernel_prior": np.array([c.kernel_prior or "none" for c in tried], dtype=str),
            "sharing": np.array(
                [np.nan if c.sharing is None else c.sharing for c in tried], dtype=float
            ),
            "overlap": np.array([c.strength for c in tried], dtype=float),
            "tempered_loss": np.array([loss.mean(loss.tempered) for loss in losses]),
            "behind": behind[:, 0],
            "behind_error": behind[:, 1],
            "log_loss": np.array([loss.mean(loss.plain) for loss in losses]),
            "error": np.array([loss.mean(loss.wrong) for loss in losses]),
            "n_folds": np.array(
                [len(self.folds) if self._on_all(c) else 1 for c in tried], dtype=int
            ),
            "chosen": np.array([c == chosen for c in tried], dtype=bool),
        }
