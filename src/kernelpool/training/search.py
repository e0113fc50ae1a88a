r"""A greedy search through the settings of a network, judged on held-out rows.

Networks are warm-started from each other, so that a combination costs some sweeps and not a fit: for each family a network
grows from one kernel a class by splitting (`starts.grown`) until that no longer helps; the best then goes through degrees of
sharing and strengths of the overlap penalty, and its number of kernels is looked at once more. The network that is trained on
all rows starts from the one that the search ended with.

Most of what is tried is far from the best, and one fold shows it. So every network is judged on one fold first, and only those
that are not clearly behind there are trained on the others (a race, after Maron & Moore, "Hoeffding races", NIPS 1993).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.utils import check_random_state

from ..errors import CollapsedKernelError, KernelpoolError
from ..kernels import FAMILIES
from .candidates import Candidate, CandidateFits
from .config import SharedKernelConfig, is_auto
from .folds import stratified_folds
from .held_out import Loss, choose, draw_rows, held_out_loss, n_folds
from .prepare import TrainingData

FIRST_SHARING = 0.1
"""Sharing while networks grow: nearly separate mixtures, in which no row is far from every kernel of its class."""

DEGREES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
STRENGTHS = (5.0, 20.0)

FIRST_PRIOR = "conjugate"
"""Prior on the kernels while networks grow; the best network is then tried without."""

EARLY = 4
"""A family is not given up before it has this many kernels a class: round kernels often need some before they gain anything.
Up to there half of the kernels are split in one step, then all."""

HOPELESS = 2
"""A family is given up too when it has spent this many times the numbers of another's best network and is still well behind it
(by two standard errors)."""

ROWS_A_KERNEL = 10
"""Fewest rows for each kernel."""

ROWS_A_FEATURE = 2
"""Networks with fewer rows for each kernel and feature keep the prior: without one their kernels would be flat."""

MOST_ROWS = 8_000
"""Settings are compared on a sample of about this many rows where there are more."""

NOTHING = 1e-3
"""The penalty, which costs most, is not tried in other folds where it changes no loss by this part of it in the first."""

MOST_SWEEPS, LOOSEST = 8, 1e-3
"""Networks that are only compared need not settle as far as the one that is kept: each goes on from another."""

DECIDING_SWEEPS = 20
"""Sweeps without a fold from the network that was grown on all rows, before it is trained to decide."""


@dataclass(frozen=True)
class Resolved:
    """Settings with nothing "auto" left."""

    config: SharedKernelConfig
    selection: dict[str, np.ndarray] | None = None
    """What was tried, a column an entry; None where nothing was to be chosen."""
    interrupted: bool = False
    """Whether the user ended the search (Ctrl-C): the best setting so far was taken."""
    grown: bool = False
    """Whether the start is a network that was grown on all rows."""

    @property
    def deciding(self) -> SharedKernelConfig:
        """Settings of the networks that are trained to decide, each without a fold: from a grown one it is not far to go."""
        fit = self.config.fit
        if not self.grown:
            return self.config
        return replace(self.config, fit=replace(fit, max_iter=min(fit.max_iter, DECIDING_SWEEPS)))


def resolve_auto(
    config: SharedKernelConfig, data: TrainingData, say: Callable[[str], None]
) -> Resolved:
    """The settings with what is "auto" filled in, and with the start that the search ended with.

    A search that is interrupted (Ctrl-C) ends with the best setting so far; interrupt again to end the fit.
    """
    if not config.has_auto:
        return Resolved(config)
    _check(config)
    if config.start.previous is not None:
        return _going_on(config)
    search, interrupted = Search(config, data, say), False
    try:
        chosen = search.run()
    except KeyboardInterrupt:
        if not search.tried:
            raise
        chosen, interrupted = search.best, True
    return Resolved(search.finish(chosen), search.table(chosen), interrupted, search.grows)


def _going_on(config: SharedKernelConfig) -> Resolved:
    """A warm start: what was chosen by the previous fit stays chosen."""
    before = config.start.previous
    assert before is not None
    chosen = replace(
        config,
        start=replace(config.start, n_kernels=before.n_kernels),
        kernel=replace(
            config.kernel, covariance_type=before.covariance_type, prior=before.kernel_prior
        ),
        penalty=replace(config.penalty, strength=before.overlap_penalty),
        sharing=before.sharing_degree if is_auto(config.sharing) else config.sharing,
    )
    return Resolved(chosen, before.selection)


def _check(config: SharedKernelConfig) -> None:
    start = config.start
    if is_auto(start.n_kernels):
        given = {
            "owners": start.owners,
            "means_init": start.means,
            "covariances_init": start.covariances,
            "mixing_init": start.mixing,
        }
        for name, value in given.items():
            if value is not None:
                raise KernelpoolError(
                    f"n_kernels='auto' places the kernels itself and takes no {name}; leave it out, or say how many kernels."
                )
        if hasattr(config.sharing, "__len__") and not isinstance(config.sharing, str):
            raise KernelpoolError(
                "n_kernels='auto' takes no table of sharing, which has a line for each kernel; "
                "give one number, 'auto' or 'learned'."
            )
    if is_auto(config.kernel.covariance_type) and start.covariances is not None:
        raise KernelpoolError(
            "covariance_type='auto' takes no covariances_init, whose shape depends on the type; leave it out, or name the type."
        )


class Search:
    """Tries settings; `tried` remembers what each came to on the held-out rows."""

    def __init__(
        self, config: SharedKernelConfig, data: TrainingData, say: Callable[[str], None]
    ) -> None:
        self.config, self.data, self.say = config, data, say
        self.grows = is_auto(config.start.n_kernels)
        seed = config.fit.seed
        self._next_seed = int(check_random_state(seed).randint(2**31))
        rows = draw_rows(data, seed, MOST_ROWS)
        fold = stratified_folds(rows.code, n_folds(data.weight), key=rows.key, weight=rows.weight)
        compared = self._compared()
        self.folds = [
            CandidateFits(compared, data, rows.where(fold != f), rows.where(fold == f))
            for f in np.unique(fold[fold >= 0])
        ]
        self.whole = CandidateFits(compared, data, rows, rows.where(fold == -2))
        self.tried: dict[Candidate, dict[int, Loss]] = {}
        """What each came to on the first folds, by how many they are."""
        self.before: dict[Candidate, Candidate | None] = {}
        """The network from which each is trained; None for the start that the settings describe."""

    def _compared(self) -> SharedKernelConfig:
        """The settings of networks that are only compared."""
        config, fit, start = self.config, self.config.fit, self.config.start
        if self.grows:
            start = replace(start, n_kernels=(self.data.class_weight > 0).astype(int).tolist())
        fit = replace(
            fit,
            max_iter=min(fit.max_iter, MOST_SWEEPS),
            tol=max(fit.tol, LOOSEST),
            seed=self._next_seed,
        )
        return replace(config, start=start, fit=fit, penalty=replace(config.penalty, strength=0.0))

    # -- the search -------------------------------------------------------------------------------------------------

    def run(self) -> Candidate:
        """The candidate that is chosen: the first one, where no row could be held out."""
        family, sharing, strength = (
            self.config.kernel.covariance_type,
            self.config.sharing,
            self.config.penalty.strength,
        )
        first = Candidate(
            family,
            0,
            FIRST_SHARING if isinstance(sharing, str) else None if np.ndim(sharing) else sharing,
            0.0 if is_auto(strength) else strength,
            FIRST_PRIOR if is_auto(self.config.kernel.prior) else self.config.kernel.prior,
        )
        # the shapes that need the fewest kernels first: the others are then given up the sooner
        families = list(FAMILIES)[::-1] if is_auto(family) else [family]
        if not self.folds:
            return replace(first, covariance_type=families[0])
        self._each_family(first, families)
        self._race()
        if (
            is_auto(self.config.kernel.prior)
            and self._rows_a_kernel(self.best) > ROWS_A_FEATURE * self.data.rows.n_features
        ):
            self._along([replace(self.best, prior=None)], self.best)
        if is_auto(sharing):
            self._share(self.best)
        if is_auto(strength):
            self._penalize(self.best)
        if self.grows:
            self._resize(self.best)
        candidates = self._finalists
        sizes = [(self.size(candidate), candidate.overlap_penalty) for candidate in candidates]
        return candidates[choose([self.loss(candidate) for candidate in candidates], sizes)]

    @property
    def _finalists(self) -> list[Candidate]:
        """Those that have been judged on the most folds."""
        most = max(max(losses) for losses in self.tried.values())
        return [candidate for candidate, losses in self.tried.items() if most in losses]

    @property
    def best(self) -> Candidate:
        """The one of these with the lowest tempered loss so far; of equals (to six places) the first."""
        return min(self._finalists, key=self._tempered)

    def loss(self, candidate: Candidate) -> Loss:
        """On as many folds as it was judged on."""
        return self.tried[candidate][max(self.tried[candidate])]

    def _tempered(self, candidate: Candidate) -> float:
        loss = self.loss(candidate)
        return round(loss.mean(loss.tempered), 6)

    def behind(self, candidate: Candidate, other: Candidate) -> tuple[float, float]:
        """By how much a candidate is behind another on the folds that both were judged on, and the standard error of that."""
        losses, others = self.tried[candidate], self.tried[other]
        n_first = max(losses.keys() & others.keys())
        return losses[n_first].behind(others[n_first])

    def _each_family(self, first: Candidate, families: list[str]) -> None:
        """Every family on the first fold."""
        collapsed = None
        for family in families:
            try:
                self._grow(replace(first, covariance_type=family))
            except (
                CollapsedKernelError
            ) as error:  # without a floor, some families have no fit on few rows
                collapsed = error
            self.folds[0].forget_other_families(self.best.covariance_type if self.tried else family)
        if not self.tried and collapsed is not None:
            raise collapsed

    def _race(self) -> None:
        """One fold more at a time, the best first, for those that are not clearly behind on the folds before."""
        for n_first in range(2, len(self.folds) + 1):
            for candidate in [
                known
                for known in sorted(self._finalists, key=self._tempered)
                if not self._lags(known)
            ]:
                self._judged(candidate, n_first)
        for fold in self.folds:
            fold.forget_other_families(self.best.covariance_type)

    def _grow(self, candidate: Candidate) -> None:
        """From few kernels to many, until that brings nothing any more on the first fold."""
        self.before[candidate] = None
        self._judge(candidate, 1)
        best, enough = candidate, EARLY * len(self.data.classes)
        while self.grows and (best == candidate or self.n_kernels(candidate) < enough):
            before, candidate = candidate, replace(candidate, n_splits=candidate.n_splits + 1)
            n_new = self._n_new(self.n_kernels(before))
            if self.n_kernels(before) + n_new > self._most_kernels:
                return
            self.before[candidate] = before
            self._train(self.folds[0], candidate)
            if self.n_kernels(candidate) == self.n_kernels(before):
                return
            self._judge(candidate, 1)
            if self.n_kernels(candidate) >= enough and self._hopeless(candidate):
                return
            behind, error = self.behind(candidate, best)
            # by less than a standard error of all folds, growing on is not worth its time
            if behind < -error / np.sqrt(len(self.folds)):
                best = candidate

    @cached_property
    def _most_kernels(self) -> float:
        """As many as have rows enough; however heavy rows are, no more than differ."""
        rows = self.whole.train
        return min(
            float(rows.weight.sum()) / ROWS_A_KERNEL, len(np.unique(rows.key[rows.weight > 0]))
        )

    def _n_new(self, n_kernels: int) -> int:
        """Kernels to split in one step."""
        return n_kernels if n_kernels >= EARLY * len(self.data.classes) else -(-n_kernels // 2)

    def _hopeless(self, candidate: Candidate) -> bool:
        others = [
            other for other in self.tried if other.covariance_type != candidate.covariance_type
        ]
        if not others:
            return False
        behind, error = self.behind(candidate, best := min(others, key=self._tempered))
        return behind > 2 * error and self.size(candidate) > HOPELESS * self.size(best)

    def _share(self, candidate: Candidate) -> None:
        """Degrees of sharing, outwards from the one that the network has."""
        assert candidate.sharing is not None
        more = [s for s in sorted(DEGREES) if s > candidate.sharing]
        less = [s for s in sorted(DEGREES, reverse=True) if s < candidate.sharing]
        for degrees in (more, less):
            self._along([replace(candidate, sharing=s) for s in degrees], candidate)

    def _penalize(self, candidate: Candidate) -> None:
        """Strengths of the penalty for the most sharing that is as good as any: the penalty is made for shared kernels."""
        shared = [
            other for other in self.tried if replace(other, sharing=candidate.sharing) == candidate
        ]
        equal = [
            other for other in shared if other.sharing != 0.0 and not self._lags(other)
        ]  # separate ones have no overlap
        if equal:
            first = max(equal, key=lambda other: other.sharing or 0.0)
            self._along(
                [replace(first, overlap_penalty=s) for s in STRENGTHS], first, self._matters
            )

    def _resize(self, candidate: Candidate) -> None:
        """Fewer or more kernels, under the sharing and the penalty that were best."""
        for n_splits in (candidate.n_splits - 1, candidate.n_splits + 1):
            other = replace(candidate, n_splits=n_splits)
            grown = [known for known in self.tried if known.size_key == other.size_key]
            if grown and other not in self.tried:
                self._along([other], grown[0])

    def _along(
        self,
        candidates: Iterable[Candidate],
        before: Candidate,
        worth: Callable[[Candidate], bool] = lambda _: True,
    ) -> None:
        """One candidate after the other, each from the one before, until one is clearly worse than the best so far.

        Already in the first fold: `worth` is asked there whether a candidate is to be trained on the others.
        """
        for candidate in candidates:
            self.before[candidate] = before
            if not self._judged(candidate, 1) or self._lags(candidate) or not worth(candidate):
                return
            if not self._judged(candidate, len(self.folds)) or self._lags(candidate):
                return
            before = candidate

    def _matters(self, candidate: Candidate) -> bool:
        """Whether the tempered or the plain loss is another than that of the best in the first fold."""
        loss, best = self.tried[candidate][1], self.tried[self.best][1]
        return any(
            abs(loss.behind(best, kind)[0]) > NOTHING * best.mean(getattr(best, kind))
            for kind in ("tempered", "plain")
        )

    def _lags(self, candidate: Candidate) -> bool:
        """Whether the loss is above the lowest by more than a standard error."""
        behind, error = self.behind(candidate, self.best)
        return behind > error

    def finish(self, chosen: Candidate) -> SharedKernelConfig:
        """The settings that were chosen; where the network was grown, it is grown again on all rows to be started from."""
        config = self.config
        config = replace(
            config,
            kernel=replace(
                config.kernel, covariance_type=chosen.covariance_type, prior=chosen.prior
            ),
            penalty=replace(config.penalty, strength=chosen.overlap_penalty),
            sharing=chosen.sharing if is_auto(config.sharing) else config.sharing,
            fit=replace(config.fit, seed=self._next_seed),
        )
        if not self.grows:
            return config
        grown = self._grown(chosen)
        training, params = self.whole.training(grown), self.whole.params[grown]
        means, covariances, mixing = training.in_data_units(params)
        owners = self.data.classes[self.whole.owners[grown.size_key]]
        start = replace(
            config.start,
            n_kernels=len(means),
            owners=owners,
            means=means,
            covariances=covariances,
            mixing=mixing,
            probability=training.probability(params),
        )
        return replace(config, start=start)

    def _grown(self, chosen: Candidate) -> Candidate:
        """The chosen network on all rows, by the way it was grown on the folds."""
        grown = (
            next(other for other in self.before if other.size_key == chosen.size_key)
            if self.tried
            else chosen
        )
        self.before.setdefault(grown, None)
        if chosen != grown:
            self.before[chosen] = grown
        self._train(self.whole, chosen)
        return chosen

    def _train(self, fits: CandidateFits, candidate: Candidate) -> None:
        """By the way it was reached first, with the networks on that way where they are not there yet."""
        if candidate in fits.params:
            return
        before = self.before[candidate]
        if before is None:
            fits.begin(candidate)
            return
        self._train(fits, before)
        if before.size_key == candidate.size_key:
            fits.change(candidate, before)
        else:
            fits.grow(candidate, before, self._n_new(len(fits.owners[before.size_key])))

    # -- the record -------------------------------------------------------------------------------------------------

    def n_kernels(self, candidate: Candidate) -> int:
        """Kernels of the networks of a candidate; where a fold could not be grown as far as the others, the fewest."""
        return min(
            len(fold.owners[candidate.size_key])
            for fold in self.folds
            if candidate.size_key in fold.owners
        )

    def _rows_a_kernel(self, candidate: Candidate) -> float:
        return float(self.whole.train.weight.sum()) / self.n_kernels(candidate)

    def size(self, candidate: Candidate) -> int:
        """Numbers in the kernels of a candidate."""
        n_kernels, d = self.n_kernels(candidate), self.data.rows.n_features
        return FAMILIES[candidate.covariance_type](np.zeros(d)).n_parameters(n_kernels, d)

    def _judged(self, candidate: Candidate, n_first: int) -> bool:
        """Judge it, if it has a fit: without a floor, some families have none on few rows, and are out of the race."""
        try:
            self._judge(candidate, n_first)
        except CollapsedKernelError:
            folds = self.folds[:n_first]
            first = next(
                known
                for known in self._way(candidate)
                if any(known not in fold.params for fold in folds)
            )
            for known in list(self.tried):
                if first in self._way(known):
                    del self.tried[known]
            return False
        return True

    def _way(self, candidate: Candidate) -> list[Candidate]:
        """From the first network to this one."""
        before = self.before[candidate]
        return [candidate] if before is None else [*self._way(before), candidate]

    def _judge(self, candidate: Candidate, n_first: int) -> None:
        """On the first of the folds."""
        folds = self.folds[:n_first]
        for fold in folds:
            self._train(fold, candidate)
        loss = held_out_loss(
            np.concatenate([fold.log_joint(candidate) for fold in folds]),
            np.concatenate([fold.held_out.code for fold in folds]),
            np.concatenate([fold.held_out.weight for fold in folds]),
        )
        self.tried.setdefault(candidate, {})[n_first] = loss
        sharing = "given" if candidate.sharing is None else f"{candidate.sharing:g}"
        self.say(
            f"{candidate.covariance_type}, {self.n_kernels(candidate)} kernels, sharing {sharing}, "
            f"penalty {candidate.overlap_penalty:g}: "
            f"held-out loss {loss.mean(loss.tempered):.4f} tempered, {loss.mean(loss.plain):.4f} plain, "
            f"error {100 * loss.mean(loss.wrong):.1f} %, on {n_first} of {len(self.folds)} folds"
        )

    def table(self, chosen: Candidate) -> dict[str, np.ndarray]:
        """What was tried and what it came to, a column an entry; `pandas.DataFrame` takes it as it is."""
        candidates = list(self.tried)
        losses = [self.loss(candidate) for candidate in candidates]
        behind = np.array([self.behind(candidate, self.best) for candidate in candidates]).reshape(
            -1, 2
        )
        return {
            "covariance_type": np.array([candidate.covariance_type for candidate in candidates]),
            "n_kernels": np.array(
                [self.n_kernels(candidate) for candidate in candidates], dtype=int
            ),
            "sharing": np.array(
                [
                    np.nan if candidate.sharing is None else candidate.sharing
                    for candidate in candidates
                ],
                dtype=float,
            ),
            "kernel_prior": np.array([candidate.prior or "none" for candidate in candidates]),
            "overlap_penalty": np.array(
                [candidate.overlap_penalty for candidate in candidates], dtype=float
            ),
            "tempered_loss": np.array([loss.mean(loss.tempered) for loss in losses]),
            "behind": behind[:, 0],
            "behind_error": behind[:, 1],
            "log_loss": np.array([loss.mean(loss.plain) for loss in losses]),
            "error": np.array([loss.mean(loss.wrong) for loss in losses]),
            "beta": np.array([loss.beta for loss in losses]),
            "n_folds": np.array(
                [max(self.tried[candidate]) for candidate in candidates], dtype=int
            ),
            "chosen": np.array([candidate == chosen for candidate in candidates], dtype=bool),
        }
