r"""Cross-fitted members of a pool: every member is F networks, each trained without one fold.

Their average is the member. The predictions of each network for the fold that it was trained without are what the weights of
the pool are fitted to (`training.pooling`), so that nothing is trained twice. Candidates are tried in the order given, cheap
ones first. A candidate that does not lower the loss of the pool on its first fold is dropped, and so are all that are left
when the time is over. An interruption (Ctrl-C) keeps the members that are ready. A classifier that can leave each of its rows
out by itself (`leave_one_out_log_proba`, as Parzen networks can) is trained once, on all rows.

========================  ==========================================================================
a candidate's ``view``    its rows
========================  ==========================================================================
"codes"                   as `Columns.encode` makes them: codes of categories, NaN for missing cells
"scaled", "warped"        complete numbers, see `training.views`; missing cells are imputed
... with " metric"        in a metric that is learned without the held-out fold
"table"                   as they were passed to `fit`
"complete table"          the same with missing cells imputed
========================  ==========================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..arrays import safe_log
from ..tables.columns import Columns
from .cross_fit import cross_fit
from .imputation import ImputationMixture, imputations, imputed
from .pooling import LOWEST, Pooling, log_loss, normalized, pool
from .views import TableView, View, learned_metric, scaled_view, warped_view

TABLE = -1
"""In place of the position of a view: the rows as they were passed."""


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
    """Position of the view in which it takes rows; None for encoded rows, -1 for the table."""
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

    def __init__(
        self,
        x: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        fold: np.ndarray,
        *,
        columns: Columns,
        imputation: ImputationMixture | None = None,
        table: Any = None,
        kind: str = "auto",
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.x, self.codes, self.weight, self.fold = x, codes, weight, fold
        self.columns, self.table = columns, table
        self.missing = np.flatnonzero(np.isnan(x).any(axis=1))
        self.complete, self.draws = x, None
        if imputation is not None and len(self.missing):
            self.complete = imputed(imputation, x)
            self.draws = imputations(imputation, x[self.missing])
        self.kind, self.seed, self.n_jobs = kind, seed, n_jobs
        self.folds = np.unique(fold[fold >= 0]).tolist()
        self.held = fold >= 0
        self.networks: dict[str, list[PoolNetwork]] = {}
        """Of each member."""
        self.held_out: dict[str, np.ndarray] = {}
        """log P(C_k|x) of each row by the network that was trained without it, (n, K); NaN for rows in no fold."""
        self.pooling: Pooling | None = None
        self.trials: list[PoolProgress] = []
        self.interrupted = False
        self.views: list[View | TableView] = []
        self._known: dict[tuple[str, int], int] = {}
        """Positions of views, by name and, with a metric, by fold."""
        self._rows: dict[str, Any] = {}
        """All rows in the views without a metric."""

    def run(
        self,
        candidates: Sequence[Candidate],
        seconds: float = np.inf,
        on_trial: Callable[[PoolProgress, "PoolFit"], None] | None = None,
    ) -> None:
        """Cross-fit the candidates one after the other, keep those that help, and weight them."""
        end = perf_counter() + seconds
        for i, candidate in enumerate(candidates):
            left = tuple(later.name for later in candidates[i + 1 :])
            if self.networks and perf_counter() > end:
                outcome = "not tried: the time was over"
                self.trials.append(PoolProgress(candidate.name, np.nan, np.nan, 0.0, outcome))
                continue
            try:
                trial = replace(self._try(candidate), left=left)
                self.trials.append(trial)
                if on_trial is not None:
                    on_trial(trial, self)
            except KeyboardInterrupt:
                if not self.networks:
                    raise
                self.interrupted = True
                break
        if self.networks:
            self._finish()

    def _try(self, candidate: Candidate) -> PoolProgress:
        begun = perf_counter()

        def trial(loss: float, pool_loss: float, outcome: str) -> PoolProgress:
            return PoolProgress(candidate.name, loss, pool_loss, perf_counter() - begun, outcome)

        by_itself = hasattr(candidate.estimator, "leave_one_out_log_proba")
        whole = by_itself and not candidate.view.endswith("metric")
        data = self._data(candidate)
        estimator = candidate.estimator
        try:
            if whole:
                networks, held_out = self._leave_one_out(candidate, data)
            else:
                fit = self._fit(candidate, estimator)
                networks, held_out = cross_fit(fit, data, self.fold, only=self.folds[:1])
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            if not self.networks and candidate.view.endswith("table"):
                raise
            return trial(np.nan, np.nan, f"failed: {type(error).__name__}: {error}")
        out = self.held if whole else self.fold == self.folds[0]
        loss = log_loss(held_out[out], self.codes[out], self.weight[out])
        pool_loss = self._pooled([held_out], out).loss
        if self.networks and pool_loss > self._pooled([], out).loss:
            return trial(loss, pool_loss, "dropped" if whole else "dropped after one fold")
        if not whole:
            if hasattr(networks[0].estimator, "narrowed"):
                estimator = networks[0].estimator.narrowed()
            rest, others = cross_fit(
                self._fit(candidate, estimator),
                data,
                self.fold,
                only=self.folds[1:],
                n_jobs=self.n_jobs,
            )
            networks, held_out = [*networks, *rest], np.where(out[:, None], held_out, others)
        self.networks[candidate.name], self.held_out[candidate.name] = networks, held_out
        self.pooling = self._pooled([], self.held)
        loss = log_loss(held_out[self.held], self.codes[self.held], self.weight[self.held])
        return trial(loss, self.pooling.loss, "kept")

    def _pooled(self, others: list[np.ndarray], rows: np.ndarray) -> Pooling:
        """The members and other predictions pooled on some of the rows."""
        held_out = np.stack([*self.held_out.values(), *others])[:, rows]
        part = np.count_nonzero(rows) / np.count_nonzero(self.held)
        return pool(held_out, self.codes[rows], self.weight[rows], self.kind, part)

    def _finish(self) -> None:
        """Weight the members; those of weight zero leave `pooling`, but not `networks`."""
        pooling = self._pooled([], self.held)
        if not pooling.weight.any():  # no member is better than chance: the best one is the pool
            rows = self.held
            losses = [
                log_loss(h[rows], self.codes[rows], self.weight[rows])
                for h in self.held_out.values()
            ]
            best = np.eye(len(losses))[int(np.argmin(losses))]
            pooling = Pooling(best, "linear", min(losses))
        self.pooling = pooling
        zero = {name for name, w in zip(self.networks, pooling.weight, strict=True) if not w}
        self.trials = [
            replace(trial, outcome="weight zero") if trial.name in zero else trial
            for trial in self.trials
        ]

    # -- one candidate --------------------------------------------------------------------------------------------------

    def _data(self, candidate: Candidate) -> tuple[Any, ...]:
        """What `cross_fit` divides: rows as the candidate takes them, classes, weights, positions and folds."""
        rows = {"codes": self.x, "table": self.table}.get(candidate.view)
        if rows is None:
            name = candidate.view.removesuffix(" metric")
            position: Any = self._view(name)
            if name not in self._rows:
                self._rows[name] = self.views[position].transform(self.complete)
            rows = self._rows[name]
        return rows, self.codes, self.weight, np.arange(len(self.x)), self.fold

    def _view(self, name: str, fold: int = -1, train: tuple[Any, ...] = ()) -> int | None:
        """Position of a view in `views`, which it joins when it is first needed; a metric is learned on training rows."""
        if name in ("codes", "table"):
            return None if name == "codes" else TABLE
        key = name, fold if name.endswith(" metric") else -1
        if key not in self._known:
            view: Any = TableView(self.columns)
            if name.endswith(" metric"):
                base: Any = self._view(name.removesuffix(" metric"))
                z, codes, weight = train[:3]
                metric = learned_metric(z, codes, weight, np.random.default_rng(self.seed))
                view = replace(self.views[base], metric=metric)
            elif name != "complete table":
                view = scaled_view(self.complete, self.weight, self.columns.levels)
                view = view if name == "scaled" else warped_view(self.complete, view)
            self.views.append(view)
            self._known[key] = len(self.views) - 1
        return self._known[key]

    def _fit(self, candidate: Candidate, estimator: Any) -> Callable[..., tuple[Any, np.ndarray]]:
        """`fit` for `cross_fit`."""

        def fit(
            train: tuple[Any, ...], held_out: tuple[Any, ...]
        ) -> tuple[PoolNetwork, np.ndarray]:
            view: Any = self._view(candidate.view, int(held_out[4][0]), train)
            at = held_out[3]
            z, z_out = train[0], held_out[0]
            if candidate.view.endswith(" metric"):
                metric = self.views[view].metric
                z, z_out = z @ metric.T, z_out @ metric.T
            model = self._fitted(candidate, estimator, (z, *train[1:3]), (z_out, *held_out[1:3]))
            network = PoolNetwork(model, candidate.name, view)
            # rows that selected anything of the network are scored by what other rows select
            scored = getattr(model, "validation_log_proba_", None)
            if scored is None or (view not in (None, TABLE) and self.draws is not None):
                draws = self.draws
                if draws is not None:
                    draws = draws[:, np.isin(self.missing, at)]
                (scored,) = log_probas([network], self.views, self.x[at], draws, held_out[0])
            return network, normalized(np.maximum(scored, LOWEST))

        return fit

    def _leave_one_out(
        self, candidate: Candidate, data: tuple[Any, ...]
    ) -> tuple[list[PoolNetwork], np.ndarray]:
        """One network of all rows, and its predictions for each of them left out."""
        model = self._fitted(candidate, candidate.estimator, data[:3])
        log_proba = normalized(np.maximum(model.leave_one_out_log_proba(), LOWEST))
        network = PoolNetwork(model, candidate.name, self._view(candidate.view))
        return [network], np.where(self.held[:, None], log_proba, np.nan)

    def _fitted(
        self,
        candidate: Candidate,
        estimator: Any,
        train: tuple[Any, ...],
        validation: tuple[Any, ...] | None = None,
    ) -> Any:
        """A fitted copy of the estimator, with weights and validation rows where its `fit` takes them."""
        rows, codes, weight = train
        model = clone(estimator)
        if candidate.view.startswith(("scaled", "warped")):
            model._imputes = False  # the pool imputes for all its members
        params = model.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            model.set_params(random_state=self.seed)
        takes, kwargs = signature(model.fit).parameters, {}
        if "sample_weight" in takes and not (weight == 1).all():
            kwargs["sample_weight"] = weight
        if "X_val" in takes and validation is not None:
            kwargs |= {"X_val": validation[0], "y_val": validation[1]}
            if "sample_weight_val" in takes:
                kwargs["sample_weight_val"] = validation[2]
        return model.fit(rows, codes, **kwargs)


# -- predictions ----------------------------------------------------------------------------------------------------------


def log_probas(
    networks: Sequence[PoolNetwork],
    views: Sequence[View | TableView],
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
    shown: dict[int, Any] = {}
    found = []
    for network in networks:
        if network.view is None or network.view == TABLE:
            found.append(member_log_proba(network.estimator, x if network.view is None else table))
            continue
        if network.view not in shown:
            shown[network.view] = views[network.view].transform(complete)
        log_proba = member_log_proba(network.estimator, shown[network.view])
        if draws is not None:
            n_complete, n_classes = np.count_nonzero(~missing), log_proba.shape[1]
            joined = np.empty((len(x), n_classes))
            joined[~missing] = log_proba[:n_complete]
            joined[missing] = average(log_proba[n_complete:].reshape(len(draws), -1, n_classes))
            log_proba = joined
        found.append(log_proba)
    return found


def member_log_proba(estimator: Any, rows: Any) -> np.ndarray:
    """log P(C_k|x) of any classifier, none below what a pool takes, (n, K)."""
    if hasattr(estimator, "predict_log_proba"):
        log_proba = np.asarray(estimator.predict_log_proba(rows), np.float64)
    else:
        log_proba = safe_log(np.asarray(estimator.predict_proba(rows), np.float64))
    return normalized(np.maximum(log_proba, LOWEST))


def average(log_proba: np.ndarray) -> np.ndarray:
    """The log of the mean probability of several networks, (F, n, K) to (n, K)."""
    return np.asarray(np.log(np.exp(log_proba).mean(axis=0)))
