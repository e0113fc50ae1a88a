r"""Cross-fitting: every member of a pool is F networks, each trained without one fold and judged on it.

Their average is the member. What each network predicts for the fold that it has not seen is what the pool is fitted on, so that
nothing is trained twice. Candidates are tried in the order given, cheap ones first. A candidate that does not lower the loss of
the pool on its first fold is given up, and so are all that are left when the time is spent. An interruption (Ctrl-C) keeps the
members that are ready. A classifier that can leave each of its rows out by itself (`leave_one_out_log_proba`, as Parzen
networks can) is trained once, on all rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import get_tags

from ..arrays import safe_log
from ..kernels import FAMILIES
from ..rows import as_rows
from .pooling import LOWEST, Pooling, log_loss, normalized, pool
from .views import View, indicator_view, learned_metric, plain_view, warped_view

HOPELESS = 0.0
"""A candidate must lower the loss of the pool on its first fold by more than this part of it to be trained on the others."""

PLAIN, WARPED, RAW, INDICATORS = "plain", "warped", "raw", "indicators"


@dataclass(frozen=True)
class PoolCandidate:
    """A classifier that may become a member, not fitted."""

    name: str
    estimator: Any
    view: str = PLAIN
    """What it is shown: "plain" (scaled), "warped" or "raw" rows, or these with words as "indicators"."""
    metric: bool = False
    """Whether in a metric that is learned on the rows of each fold."""


@dataclass(frozen=True)
class LabeledRows:
    """Rows in memory with the codes of their classes, weights, and the fold in which each is held out (-1: in none)."""

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    n_classes: int
    holed: np.ndarray | None = None
    """The rows with NaN where a cell is missing, (n, d); `x` are then one filling of them."""
    draws: np.ndarray | None = None
    """Other fillings, (S, n, d)."""
    levels: tuple[int, ...] | None = None
    """How many levels each column of words has, 0 for numbers; None where all are numbers."""

    def at(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Some rows as a network is asked about them: as they are, and fillings of those that have holes."""
        if self.holed is None or self.draws is None:
            return self.x[mask], None
        x = self.holed[mask]
        return x, self.draws[:, mask][:, np.isnan(x).any(axis=1)]

    @property
    def folds(self) -> list[int]:
        """The folds that there are."""
        return [int(f) for f in np.unique(self.fold[self.fold >= 0])]


class Views:
    """The views of some rows; each is made when it is first asked for, a metric once a fold and view."""

    def __init__(self, rows: LabeledRows, seed: int) -> None:
        self.rows, self.seed = rows, seed
        self._known: dict[tuple[str, int], View | None] = {}
        self._seen: dict[tuple[str, int], np.ndarray] = {}

    def of(self, candidate: PoolCandidate, fold: int) -> tuple[View | None, np.ndarray]:
        """The view of a candidate on one fold (None: the rows as they are), and all rows in it."""
        key = candidate.view, fold if candidate.metric else -1
        if key not in self._known:
            self._known[key] = self._made(*key)
        view = self._known[key]
        if key not in self._seen:
            self._seen[key] = self.rows.x if view is None else view.transform(self.rows.x)
        return view, self._seen[key]

    def _made(self, name: str, fold: int) -> View | None:
        if name == RAW:
            return None
        if name == INDICATORS:
            return None if self.rows.levels is None else indicator_view(self.rows.levels)
        if fold < 0:
            plain = plain_view(self.rows.x, self.rows.weight, self.rows.levels)
            return plain if name == PLAIN else warped_view(self.rows.x[self.rows.weight > 0], plain)
        base, z = self.of(PoolCandidate("", None, name), -1)
        train = (self.rows.fold != fold) & (self.rows.weight > 0)
        metric = learned_metric(
            z[train],
            self.rows.codes[train],
            self.rows.weight[train],
            np.random.default_rng(self.seed),
        )
        return replace(base, metric=metric)  # type: ignore[type-var]


@dataclass(frozen=True)
class FoldNetwork:
    """One network of a member."""

    estimator: Any
    view: View | None
    fold: int

    def log_proba(self, x: np.ndarray, draws: np.ndarray | None = None) -> np.ndarray:
        """log P(C_k|x) of rows in the units of the data, (n, K); see `network_log_proba`."""
        return network_log_proba(self.estimator, self.view, x, draws)

    def judged(self, rows: LabeledRows, out: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of the rows of its fold, which may have chosen when it was to stop: none is judged by its own choice."""
        said = getattr(self.estimator, "validation_log_proba_", None)
        if said is None or rows.holed is not None:
            return self.log_proba(*rows.at(out))
        return normalized(np.maximum(said, LOWEST))


@dataclass(frozen=True)
class PoolMember:
    """A cross-fitted candidate."""

    name: str
    networks: tuple[FoldNetwork, ...]
    held_out: np.ndarray
    """log P(C_k|x) of each row by the network that never saw it, (n, K); of rows in no fold by all of them."""
    loss: float
    """Log-loss a row on the held-out rows."""
    seconds: float


@dataclass(frozen=True)
class Trial:
    """What became of a candidate."""

    name: str
    loss: float
    """Of the candidate alone on the rows that it was held from; those of the first fold where it was given up."""
    pool_loss: float
    """Of the pool with it, on the same rows as before."""
    seconds: float
    outcome: str
    """"kept", "given up after one fold", "failed: ...", "not tried: ..."."""


@dataclass
class PoolFit:
    """Members, how they are pooled, and what was tried."""

    members: list[PoolMember] = field(default_factory=list)
    unheard: list[PoolMember] = field(default_factory=list)
    """Members whose weight is zero: they play no part in probabilities."""
    pooling: Pooling | None = None
    trials: list[Trial] = field(default_factory=list)
    interrupted: bool = False


def member_log_proba(estimator: Any, x: np.ndarray) -> np.ndarray:
    """log P(C_k|x) of any classifier, none below what a pool takes."""
    if hasattr(estimator, "_rows_log_proba"):  # one of ours; the pool has checked the rows
        rows = as_rows(x, n_jobs=estimator.n_jobs)
        found = np.asarray(estimator._rows_log_proba(rows), dtype=np.float64)
    elif hasattr(estimator, "predict_log_proba"):
        found = np.asarray(estimator.predict_log_proba(x), dtype=np.float64)
    else:
        found = safe_log(np.asarray(estimator.predict_proba(x), dtype=np.float64))
    return normalized(np.maximum(found, LOWEST))


def can_take_holes(estimator: Any, view: View | None) -> bool:
    """Whether a network can take rows with missing cells as they are; a metric mixes them with the others."""
    return bool(get_tags(estimator).input_tags.allow_nan) and (view is None or view.metric is None)


def takes_holes(estimator: Any, view: View | None) -> bool:
    """Whether it is given them, and not fillings: whole covariances of indicators, for every pattern, take minutes."""
    family = FAMILIES.get(getattr(estimator, "covariance_type", ""))
    costly = view is not None and view.levels is not None and getattr(family, "matrices", False)
    return can_take_holes(estimator, view) and not costly


def network_log_proba(
    estimator: Any, view: View | None, x: np.ndarray, draws: np.ndarray | None
) -> np.ndarray:
    """log P(C_k|x) of rows in the units of the data, (n, K).

    Of rows with missing cells a network that takes them, or for which there are no `draws`, is asked directly, and any other
    for the mean of what it says of several fillings, `draws` (S, rows with holes, d).
    """

    def said(x: np.ndarray) -> np.ndarray:
        return member_log_proba(estimator, x if view is None else view.transform(x))

    holed = np.isnan(x).any(axis=1)
    if draws is None or not holed.any() or takes_holes(estimator, view):
        return said(x)
    of_holed = average(np.stack([said(filled) for filled in draws]))
    out = np.empty((len(x), of_holed.shape[1]))
    out[holed] = of_holed
    if not holed.all():
        out[~holed] = said(x[~holed])
    return out


def average(log_proba: np.ndarray) -> np.ndarray:
    """The log of the mean probability of several networks, (F, n, K) to (n, K)."""
    return np.asarray(np.log(np.exp(log_proba).mean(axis=0)))


def fit_pool(
    candidates: Sequence[PoolCandidate],
    rows: LabeledRows,
    *,
    kind: str = "auto",
    seconds: float = np.inf,
    seed: int = 0,
    n_jobs: int | None = None,
    on_trial: Callable[[Trial, PoolFit, Sequence[str]], None] | None = None,
) -> PoolFit:
    """Cross-fit the candidates one after the other and pool those that help."""
    fit, views, begun = PoolFit(), Views(rows, seed), perf_counter()
    for i, candidate in enumerate(candidates):
        left = [later.name for later in candidates[i + 1 :]]
        if fit.members and perf_counter() - begun > seconds:
            fit.trials.append(
                Trial(candidate.name, np.nan, np.nan, 0.0, "not tried: the time was spent")
            )
            continue
        try:
            trial = _try(candidate, rows, views, fit, kind, seed, n_jobs)
            fit.trials.append(trial)
            if on_trial is not None:
                on_trial(trial, fit, left)
        except KeyboardInterrupt:
            if not fit.members:
                raise
            fit.interrupted = True
            break
    if fit.members:
        _finish(fit, rows, kind)
    return fit


def _try_whole(
    candidate: PoolCandidate, rows: LabeledRows, views: Views, fit: PoolFit, kind: str, seed: int
) -> Trial:
    """A candidate that leaves each row out by itself: one network of all rows."""
    begun = perf_counter()
    network = _trained(candidate.estimator, candidate, rows, views, -2, seed)
    held_out = np.zeros((len(rows.x), rows.n_classes))
    counts = rows.weight > 0
    held_out[counts] = normalized(np.maximum(network.estimator.leave_one_out_log_proba(), LOWEST))
    held = (rows.fold >= 0) & counts
    codes, weight = rows.codes[held], rows.weight[held]
    loss = log_loss(held_out[held], codes, weight)
    before = [member.held_out[held] for member in fit.members]
    joined = pool(np.stack([*before, held_out[held]]), codes, weight, kind)
    if fit.pooling is not None and joined.loss > (1 - HOPELESS) * fit.pooling.loss:
        return Trial(candidate.name, loss, joined.loss, perf_counter() - begun, "given up")
    fit.members.append(
        PoolMember(candidate.name, (network,), held_out, loss, perf_counter() - begun)
    )
    fit.pooling = joined
    return Trial(candidate.name, loss, joined.loss, perf_counter() - begun, "kept")


def _try(
    candidate: PoolCandidate,
    rows: LabeledRows,
    views: Views,
    fit: PoolFit,
    kind: str,
    seed: int,
    n_jobs: int | None,
) -> Trial:
    begun, folds = perf_counter(), rows.folds
    if hasattr(candidate.estimator, "leave_one_out_log_proba") and not candidate.metric:
        return _try_whole(candidate, rows, views, fit, kind, seed)
    try:
        first = _trained(candidate.estimator, candidate, rows, views, folds[0], seed)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        if not fit.members and candidate.view in (RAW, INDICATORS):
            raise
        return Trial(
            candidate.name,
            np.nan,
            np.nan,
            perf_counter() - begun,
            f"failed: {type(error).__name__}: {error}",
        )
    out = (rows.fold == folds[0]) & (rows.weight > 0)
    said = first.judged(rows, out)
    loss = log_loss(said, rows.codes[out], rows.weight[out])
    if fit.members and len(folds) > 1:
        before, part = np.stack([member.held_out[out] for member in fit.members]), 1 / len(folds)
        without = pool(before, rows.codes[out], rows.weight[out], kind, part).loss
        joined = pool(
            np.concatenate([before, said[None]]), rows.codes[out], rows.weight[out], kind, part
        ).loss
        if joined > (1 - HOPELESS) * without:
            return Trial(
                candidate.name, loss, joined, perf_counter() - begun, "given up after one fold"
            )
    narrowed = (
        first.estimator.narrowed() if hasattr(first.estimator, "narrowed") else candidate.estimator
    )
    for fold in folds[1:]:
        views.of(
            candidate, fold
        )  # here, not in the workers: metrics are shared with other candidates
    rest = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_trained)(narrowed, candidate, rows, views, fold, seed + fold) for fold in folds[1:]
    )
    fit.members.append(_member(candidate.name, (first, *rest), rows, perf_counter() - begun))
    held = (rows.fold >= 0) & (rows.weight > 0)
    fit.pooling = pool(
        np.stack([member.held_out[held] for member in fit.members]),
        rows.codes[held],
        rows.weight[held],
        kind,
    )
    return Trial(
        candidate.name, fit.members[-1].loss, fit.pooling.loss, perf_counter() - begun, "kept"
    )


def _trained(
    estimator: Any, candidate: PoolCandidate, rows: LabeledRows, views: Views, fold: int, seed: int
) -> FoldNetwork:
    """A copy of the estimator, trained on all rows but one fold, which it may be judged on if it asks to."""
    view, z = views.of(candidate, fold)
    if rows.holed is not None and takes_holes(estimator, view):
        z = rows.holed if view is None else view.transform(rows.holed)
    train, out = (rows.fold != fold) & (rows.weight > 0), (rows.fold == fold) & (rows.weight > 0)
    network = clone(estimator)
    if hasattr(network, "_imputes"):
        network._imputes = False
    if (
        "random_state" in network.get_params(deep=False)
        and network.get_params(deep=False)["random_state"] is None
    ):
        network.set_params(random_state=seed)
    takes, kwargs = signature(network.fit).parameters, {}
    if "sample_weight" in takes and not (rows.weight[train] == 1).all():
        kwargs["sample_weight"] = rows.weight[train]
    if "X_val" in takes and out.any():
        kwargs |= {"X_val": z[out], "y_val": rows.codes[out]}
    return FoldNetwork(network.fit(z[train], rows.codes[train], **kwargs), view, fold)


def _member(
    name: str, networks: tuple[FoldNetwork, ...], rows: LabeledRows, seconds: float
) -> PoolMember:
    held_out = np.empty((len(rows.x), rows.n_classes))
    for network in networks:
        out = rows.fold == network.fold
        held_out[out] = network.judged(rows, out)
    never = rows.fold < 0
    if never.any():
        held_out[never] = average(
            np.stack([network.log_proba(*rows.at(never)) for network in networks])
        )
    held = (rows.fold >= 0) & (rows.weight > 0)
    return PoolMember(
        name,
        networks,
        held_out,
        log_loss(held_out[held], rows.codes[held], rows.weight[held]),
        seconds,
    )


def _finish(fit: PoolFit, rows: LabeledRows, kind: str) -> None:
    """Members without a weight are let go; the others are weighted once more without them."""
    held = (rows.fold >= 0) & (rows.weight > 0)
    codes, weight = rows.codes[held], rows.weight[held]
    pooling = pool(np.stack([member.held_out[held] for member in fit.members]), codes, weight, kind)
    heard = [i for i, share in enumerate(pooling.weight) if share > 0]
    if not heard:  # nobody knows better than chance: the one who errs least speaks for itself
        heard = [int(np.argmin([member.loss for member in fit.members]))]
        weight_of_one = np.eye(len(fit.members))[heard[0]]
        pooling = Pooling(weight_of_one, "linear", fit.members[heard[0]].loss)
    fit.unheard = [member for i, member in enumerate(fit.members) if i not in heard]
    names = {member.name for member in fit.unheard}
    fit.trials = [
        replace(t, outcome="not heard: its weight is zero") if t.name in names else t
        for t in fit.trials
    ]
    fit.members = [fit.members[i] for i in heard]
    fit.pooling = replace(pooling, weight=pooling.weight[heard])
