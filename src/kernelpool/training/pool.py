r"""A pool of classifiers: cross-fitted members, and one probability from those of several.

Every member is F networks, each trained without one fold; their average is the member. The
predictions of each network for the fold that it was trained without are what the weights of the
pool are fitted to, so that nothing is trained twice. Candidates are tried in the order given, cheap
ones first. A candidate that does not lower the loss of the pool on its first fold is dropped, and
so are all that are left when the time is over. An interruption (Ctrl-C) keeps the members that are
ready. A classifier that can leave each of its rows out by itself (`leave_one_out_log_proba`, as
Parzen networks can) is trained once, on all rows.

========================  ==========================================================================
a candidate's ``view``    its rows
========================  ==========================================================================
"codes"                   as `Columns.encode` makes them: codes of categories, NaN for missing cells
"scaled", "warped"        complete numbers, see `training.views`; missing cells are imputed
... with " metric"        in a metric that is learned without the held-out fold
"table"                   as they were passed to `fit`
"complete table"          the same with missing cells imputed
========================  ==========================================================================

Genest & Zidek, "Combining probability distributions: a critique and an annotated bibliography",
Statistical Science 1(1), 1986: the logarithmic and the linear opinion pool.

.. math::

    P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m} \qquad \text{or} \qquad
    P(C_k \mid x) = \sum_m w_m P_m(C_k \mid x), \quad \sum_m w_m = 1

==================  ====================  ==========  ==============================================================
paper               here                  shape       meaning
==================  ====================  ==========  ==============================================================
:math:`P_m`         ``log_proba``         (L, n, K)   predictions of member m, trained without row n
:math:`w_m`         ``weight``            (L,)        not negative; of the logarithmic pool they need not sum to one
==================  ====================  ==========  ==============================================================

The weights minimize the log-loss on held-out rows, which is convex in both cases. Those of the
logarithmic pool are a temperature as well: members that are overconfident together get weights that
sum to less than one. A small penalty (`PRICE`) sets the weights of members without use to zero. A
ridge towards equal weights (`RIDGE`) fades as rows become many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from ..arrays import safe_log
from ..em import Stop, em
from ..lbfgs import maximize
from ..tables.columns import Columns
from .cross_fit import cross_fit
from .imputation import ImputationMixture, imputations, imputed
from .views import View, learned_metric, scaled_view, warped_view

PRIOR_ROWS = 1.0
"""Rows that each network is taken to have explained before any is seen."""


def stacked(
    log_density: np.ndarray, weight: np.ndarray, prior_rows: float = PRIOR_ROWS
) -> np.ndarray:
    r"""Weights of several density estimates, (L,), from rows that none of them was trained on.

    Smyth & Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999:

    .. math:: \max_w \; \sum_n \log \sum_i w_i\, p_i(x_n), \qquad w_i \ge 0, \quad \sum_i w_i = 1

    The objective is concave, so EM finds its one maximum from anywhere. `log_density` (L, n) is
    that of network i, trained without row n. Deviations: rows may have weights, and a Dirichlet
    prior of `prior_rows` a network keeps the weights near equal where few rows are held out.
    """
    n_networks = len(log_density)
    total = weight.sum() + prior_rows * n_networks
    most = log_density.max(axis=0)
    density, constant = np.exp(log_density - most), weight @ most  # (L, n), as parts of the largest

    def sweep(share: np.ndarray) -> tuple[np.ndarray, float]:
        evidence = share @ density
        mass = share * (density @ (weight / evidence))
        objective = (
            weight @ np.log(evidence) + constant + prior_rows * np.log(share).sum()
        ) / total
        return (mass + prior_rows) / total, float(objective)

    return em(sweep, np.full(n_networks, 1 / n_networks), Stop(max_iter=2000, tol=1e-10)).params


TABLE, COMPLETE_TABLE = -1, -2
"""In place of the position of a view: the table that was passed, and the same with missing cells
imputed.
"""

NO_VIEW = {"codes": None, "table": TABLE, "complete table": COMPLETE_TABLE}

PRICE = 1e-3
"""Penalty on the sum of the weights, in log-loss per row."""

RIDGE = 20.0
"""Strength of the ridge towards equal weights, in rows: held-out losses of few rows are noisy."""

SMALLEST = 0.01
"""Weights below this are set to zero."""

LOWEST = np.log(1e-12)
"""The least log-probability of a member: no class is impossible."""

KINDS = ("log_linear", "linear")


class Pooling(NamedTuple):
    """How the probabilities of members become one."""

    weight: np.ndarray
    """(L,)."""
    kind: str
    loss: float
    """Log-loss per row on the held-out rows that the weights were fitted to."""


class Candidate(NamedTuple):
    """A classifier that may become a member, not fitted."""

    name: str
    estimator: Any
    view: str = "scaled"


@dataclass(frozen=True, eq=False)
class PoolNetwork:
    """A fitted network of a pool."""

    estimator: Any
    member: str
    """The candidate that it belongs to."""
    view: int | None = None
    """Position of the view in which it takes rows; None for encoded rows, -1 for the table, -2 for
    the table with missing cells imputed.
    """
    density_weight: float = 0.0
    """Its weight in the densities of the pool."""


@dataclass(frozen=True)
class PoolProgress:
    """The result of one candidate, as a callback gets it.

    Attributes
    ----------
    name : str
        The candidate.
    loss : float
        Its log-loss per row on held-out rows; on those of the first fold where it was dropped.
    pool_loss : float
        That of the pool with it, on the same rows.
    seconds : float
        Time of its training.
    outcome : str
        "kept", "dropped after one fold", "weight zero", "failed: ...", "not tried: ...".
    left : tuple of str
        Candidates still to be tried.
    """

    name: str
    loss: float
    pool_loss: float
    seconds: float
    outcome: str
    left: tuple[str, ...] = ()


@dataclass(eq=False)
class PoolFit:
    """The members that candidates become on some rows.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Encoded rows, all of positive weight.
    codes, weight, fold : ndarray of shape (n,)
        Their classes and weights, and the fold in which each is held out; -1 for none.
    columns : Columns
        Of the rows.
    imputation : ImputationMixture or None
        From which missing cells are drawn; None where no candidate needs complete numbers.
    table : array or data frame
        The rows as they were passed to `fit`.
    kind : {"auto", "log_linear", "linear"}
        How members are pooled.
    seed : int
        Seed of the networks.
    n_jobs : int or None
        Networks that are trained at a time.
    """

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    columns: Columns
    imputation: ImputationMixture | None = None
    table: Any = None
    kind: str = "auto"
    seed: int = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.missing = np.flatnonzero(np.isnan(self.x).any(axis=1))
        self.complete, self.draws = self.x, None
        if self.imputation is not None and len(self.missing):
            self.complete = imputed(self.imputation, self.x)
            self.draws = imputations(self.imputation, self.x[self.missing])
        self.held = self.fold >= 0
        self.folds = np.unique(self.fold[self.held]).tolist()
        self.networks: dict[str, list[PoolNetwork]] = {}
        """Of each member."""
        self.held_out: dict[str, np.ndarray] = {}
        """log P(C_k|x) of each row by the network that was trained without it, (n, K); NaN for rows
        in no fold.
        """
        self.pooling: Pooling | None = None
        self.trials: list[PoolProgress] = []
        self.interrupted = False
        self.views: list[View] = []
        self._known: dict[tuple[str, int], int] = {}
        """Positions of views, by name and, with a metric, by fold."""

    def run(
        self,
        candidates: Sequence[Candidate],
        seconds: float = np.inf,
        on_trial: Callable[[PoolProgress, "PoolFit"], None] | None = None,
    ) -> None:
        """Cross-fit the candidates one after the other, keep those that help, and weight them.

        Members of weight zero stay in `networks`.
        """
        end = perf_counter() + seconds
        try:
            for i, candidate in enumerate(candidates):
                if self.networks and perf_counter() > end:
                    outcome = "not tried: the time was over"
                    self.trials.append(PoolProgress(candidate.name, np.nan, np.nan, 0.0, outcome))
                    continue
                left = tuple(later.name for later in candidates[i + 1 :])
                trial = replace(self._try(candidate), left=left)
                self.trials.append(trial)
                if on_trial is not None:
                    on_trial(trial, self)
        except KeyboardInterrupt:
            if not self.networks:
                raise
            self.interrupted = True
        if self.pooling is None:
            return
        if (
            not self.pooling.weight.any()
        ):  # no member is better than chance: the best one is the pool
            losses = [self._loss(h, self.held) for h in self.held_out.values()]
            self.pooling = Pooling(np.eye(len(losses))[np.argmin(losses)], "linear", min(losses))
        weights = dict(zip(self.networks, self.pooling.weight, strict=True))
        self.trials = [
            trial if weights.get(trial.name, 1.0) else replace(trial, outcome="weight zero")
            for trial in self.trials
        ]

    def _try(self, candidate: Candidate) -> PoolProgress:
        begun = perf_counter()

        def trial(loss: float, pool_loss: float, outcome: str) -> PoolProgress:
            return PoolProgress(candidate.name, loss, pool_loss, perf_counter() - begun, outcome)

        by_itself = hasattr(candidate.estimator, "leave_one_out_log_proba")
        whole = by_itself and not candidate.view.endswith("metric")
        data, fold = self._data(candidate), self.fold
        try:
            if whole:
                networks, held_out = self._leave_one_out(candidate, data)
            else:
                networks, held_out = cross_fit(
                    self._fit(candidate), data, fold, only=self.folds[:1]
                )
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            if not self.networks and candidate.view.endswith("table"):
                raise
            return trial(np.nan, np.nan, f"failed: {type(error).__name__}: {error}")
        out = self.held if whole else fold == self.folds[0]
        pool_loss = self._pooled([held_out], out).loss
        if self.networks and pool_loss > self._pooled([], out).loss:
            outcome = "dropped" if whole else "dropped after one fold"
            return trial(self._loss(held_out, out), pool_loss, outcome)
        if not whole:
            if hasattr(networks[0].estimator, "narrowed"):
                candidate = candidate._replace(estimator=networks[0].estimator.narrowed())
            rest, others = cross_fit(
                self._fit(candidate), data, fold, only=self.folds[1:], n_jobs=self.n_jobs
            )
            networks, held_out = [*networks, *rest], np.where(out[:, None], held_out, others)
        self.networks[candidate.name], self.held_out[candidate.name] = networks, held_out
        self.pooling = self._pooled([], self.held)
        return trial(self._loss(held_out, self.held), self.pooling.loss, "kept")

    def _loss(self, log_proba: np.ndarray, rows: np.ndarray) -> float:
        return log_loss(log_proba[rows], self.codes[rows], self.weight[rows])

    def _pooled(self, others: list[np.ndarray], rows: np.ndarray) -> Pooling:
        """The members and other predictions pooled on some of the rows."""
        held_out = np.stack([*self.held_out.values(), *others])[:, rows]
        part = self.weight[rows].sum() / self.weight[self.held].sum()
        return pool(held_out, self.codes[rows], self.weight[rows], self.kind, part)

    # -- one candidate -----------------------------------------------------------------------------

    def _data(self, candidate: Candidate) -> tuple[Any, ...]:
        """What `cross_fit` divides: rows as the candidate takes them, classes, weights, positions
        and folds.
        """
        view: Any = self._view(candidate.view.removesuffix(" metric"))
        rows = shown(view, self.views, self.columns, self.x, self.complete, self.table)
        return rows, self.codes, self.weight, np.arange(len(self.x)), self.fold

    def _view(self, name: str, fold: int = -1, train: tuple[Any, ...] = ()) -> int | None:
        """Position of a view in `views`, which it joins when it is first needed; a metric is
        learned on training rows.
        """
        if name in NO_VIEW:
            return NO_VIEW[name]
        learned = name.endswith(" metric")
        key = name, fold if learned else -1
        if key not in self._known:
            if learned:
                base: Any = self._view(name.removesuffix(" metric"))
                z, codes, weight = train[:3]
                metric = learned_metric(z, codes, weight, np.random.default_rng(self.seed))
                view = replace(self.views[base], metric=metric)
            else:
                view = scaled_view(self.complete, self.weight, self.columns.levels)
                view = view if name == "scaled" else warped_view(self.complete, view)
            self.views.append(view)
            self._known[key] = len(self.views) - 1
        return self._known[key]

    def _fit(self, candidate: Candidate) -> Callable[..., tuple[Any, np.ndarray]]:
        """`fit` for `cross_fit`."""

        def fit(
            train: tuple[Any, ...], held_out: tuple[Any, ...]
        ) -> tuple[PoolNetwork, np.ndarray]:
            view: Any = self._view(candidate.view, int(held_out[4][0]), train)
            z, z_out, at = train[0], held_out[0], held_out[3]
            if candidate.view.endswith(" metric"):
                metric = self.views[view].metric
                z, z_out = z @ metric.T, z_out @ metric.T
            model = self._fitted(candidate, (z, *train[1:3]), (z_out, *held_out[1:3]))
            network = PoolNetwork(model, candidate.name, view)
            # rows that selected anything of the network are scored by what other rows select
            scored = getattr(model, "validation_log_proba_", None)
            if scored is None or (view not in (None, TABLE) and self.draws is not None):
                draws = None if self.draws is None else self.draws[:, np.isin(self.missing, at)]
                (scored,) = log_probas(
                    [network], self.views, self.columns, self.x[at], draws, held_out[0]
                )
            return network, normalized(np.maximum(scored, LOWEST))

        return fit

    def _leave_one_out(
        self, candidate: Candidate, data: tuple[Any, ...]
    ) -> tuple[list[PoolNetwork], np.ndarray]:
        """One network of all rows, and its predictions for each of them left out."""
        model = self._fitted(candidate, data[:3])
        log_proba = normalized(np.maximum(model.leave_one_out_log_proba(), LOWEST))
        network = PoolNetwork(model, candidate.name, self._view(candidate.view))
        return [network], np.where(self.held[:, None], log_proba, np.nan)

    def _fitted(
        self,
        candidate: Candidate,
        train: tuple[Any, ...],
        validation: tuple[Any, ...] | None = None,
    ) -> Any:
        """A fitted copy of the estimator, with weights and validation rows where its `fit` takes
        them.
        """
        rows, codes, weight = train
        model = clone(candidate.estimator)
        if candidate.view.startswith(("scaled", "warped")):
            model._imputes = False  # the pool imputes for all its members
        if model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=self.seed)
        takes, kwargs = signature(model.fit).parameters, {}
        if "sample_weight" in takes and not (weight == 1).all():
            kwargs["sample_weight"] = weight
        if validation is not None:
            names = ("X_val", "y_val", "sample_weight_val")
            kwargs |= {n: v for n, v in zip(names, validation, strict=True) if n in takes}
        return model.fit(rows, codes, **kwargs)


# -- predictions -----------------------------------------------------------------------------------


def shown(
    view: int | None,
    views: Sequence[View],
    columns: Columns,
    x: np.ndarray,
    complete: np.ndarray,
    table: Any,
) -> Any:
    """Rows in a view, from the encoded rows, these without missing cells, and the table that was
    passed.
    """
    if view is None:
        return x
    if view == TABLE:
        return table
    return columns.decode(complete) if view == COMPLETE_TABLE else views[view].transform(complete)


def log_probas(
    networks: Sequence[PoolNetwork],
    views: Sequence[View],
    columns: Columns,
    x: np.ndarray,
    draws: np.ndarray | None,
    table: Any,
) -> list[np.ndarray]:
    """log P(C_k|x) by each network, (n, K), of encoded rows.

    Networks that need complete numbers are averaged over `draws`, (S, m, d): imputations of the m
    rows that have missing cells.
    """
    missing = np.isnan(x).any(axis=1)
    complete = x
    if draws is not None:
        complete = np.concatenate([x[~missing], draws.reshape(-1, x.shape[1])])
    rows: dict[int | None, Any] = {}
    found = []
    for network in networks:
        view = network.view
        if view not in rows:
            rows[view] = shown(view, views, columns, x, complete, table)
        log_proba = member_log_proba(network.estimator, rows[view], view is None or view >= 0)
        if draws is not None and view not in (None, TABLE):
            n_complete, n_classes = np.count_nonzero(~missing), log_proba.shape[1]
            joined = np.empty((len(x), n_classes))
            joined[~missing] = log_proba[:n_complete]
            joined[missing] = average(log_proba[n_complete:].reshape(len(draws), -1, n_classes))
            log_proba = joined
        found.append(log_proba)
    return found


def member_log_proba(estimator: Any, rows: Any, encoded: bool) -> np.ndarray:
    """log P(C_k|x) of any classifier, none below what a pool takes, (n, K).

    Networks of this library are asked for `encoded` rows directly: they need no check.
    """
    if encoded and hasattr(estimator, "_log_proba"):
        log_proba = estimator._log_proba(rows)
    elif hasattr(estimator, "predict_log_proba"):
        log_proba = estimator.predict_log_proba(rows)
    else:
        log_proba = safe_log(np.asarray(estimator.predict_proba(rows), np.float64))
    return normalized(np.maximum(np.asarray(log_proba, np.float64), LOWEST))


def average(log_proba: np.ndarray) -> np.ndarray:
    """The log of the mean probability of several networks, (F, n, K) to (n, K)."""
    return np.asarray(np.log(np.exp(log_proba).mean(axis=0)))


# -- weights ---------------------------------------------------------------------------------------


def pooled(log_proba: np.ndarray, weight: np.ndarray, kind: str) -> np.ndarray:
    """log P(C_k|x), (n, K), from those of the members, (L, n, K)."""
    log_proba = np.maximum(log_proba, LOWEST)
    if kind == "linear":
        return normalized(logsumexp(log_proba + safe_log(weight)[:, None, None], axis=0))
    return normalized(np.tensordot(weight, log_proba, axes=1))


def normalized(scores: np.ndarray) -> np.ndarray:
    """Log-probabilities from scores, (n, K)."""
    scores = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))


def log_loss(log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray) -> float:
    """Mean of -log P(C_y|x) over the rows."""
    return float(-(row_weight @ log_proba[np.arange(len(codes)), codes]) / row_weight.sum())


def pool(
    log_proba: np.ndarray,
    codes: np.ndarray,
    row_weight: np.ndarray,
    kind: str = "auto",
    part: float = 1.0,
) -> Pooling:
    """The weights with the least held-out loss; of kind "auto", the better of the two pools.

    Where the rows are a fraction `part` of all, the ridge is that of all rows.
    """
    log_proba = np.maximum(log_proba, LOWEST)
    own = log_proba[:, np.arange(len(codes)), codes]  # (L, n)
    fitted = []
    for k in KINDS if kind == "auto" else (kind,):
        if k == "linear":
            weight = stacked(own, row_weight)
            weight = np.where(weight >= SMALLEST, weight, 0.0)
            weight = weight / weight.sum()
        else:
            weight = _log_linear(log_proba, own, row_weight, part * RIDGE)
        loss = log_loss(pooled(log_proba, weight, k), codes, row_weight)
        fitted.append(Pooling(weight, k, loss))
    return min(fitted, key=lambda pooling: pooling.loss)


def _log_linear(
    log_proba: np.ndarray, own: np.ndarray, row_weight: np.ndarray, ridge_rows: float
) -> np.ndarray:
    """The weights of a logarithmic pool, (L,)."""
    n_members, share = len(log_proba), row_weight / row_weight.sum()
    own_mean, ridge = own @ share, ridge_rows / row_weight.sum()

    def objective(weight: np.ndarray) -> tuple[np.ndarray, float]:
        scores = np.tensordot(weight, log_proba, axes=1)
        log_total = logsumexp(scores, axis=1)
        expected = np.exp(scores - log_total[:, None]) * share[:, None]  # (n, K)
        away = weight - weight.mean()
        gradient = own_mean - np.tensordot(log_proba, expected, axes=2) - PRICE - 2 * ridge * away
        value = weight @ own_mean - share @ log_total - PRICE * weight.sum() - ridge * away @ away
        return gradient, float(value)

    start, bounds = np.full(n_members, 1 / n_members), [(0, None)] * n_members
    weight = maximize(objective, start, max_iter=200, bounds=bounds).point
    keep = weight >= SMALLEST
    if 0 < np.count_nonzero(keep) < n_members:
        weight = np.zeros(n_members)
        weight[keep] = _log_linear(log_proba[keep], own[keep], row_weight, ridge_rows)
    return np.asarray(weight)
