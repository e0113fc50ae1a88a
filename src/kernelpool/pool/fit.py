r"""Cross-fitting of the candidates, and the pool of those that help.

Every member is F networks, each trained without one fold; their average is the member. The
predictions of each network for the fold that it was trained without are what the weights of the
pool are fitted to, so that nothing is trained twice. Candidates are tried in the order given, cheap
ones first; what cannot end in time is left out. An interruption (Ctrl-C) keeps the members that are
ready. A network that can leave each of its rows out by itself, as Parzen networks can, is trained
once, on at most `MOST_CENTERS` rows.

Of many rows a sample comes first: it selects the candidates that are of use and their settings, and
measures their seconds. Only those of use are trained on all rows, or on as many as the time allows,
in the order of their weight per second.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ..arrays import safe_log
from ..base.estimator import fitted_record
from ..complete.imputation import draws_of, imputation_mixture, imputed
from ..data.door import TrainingData
from ..data.folds import Data, cross_fit, folds_of, places, row_keys, take_rows
from ..data.labels import labeled
from ..errors import KernelpoolError, UnfinishedWarning, warn, without_column_warnings
from ..mixtures.fitted import ClassDensities
from ..records import attributes
from ..rows import as_rows
from ..tables.columns import Columns
from ..text import plural
from .combine import (
    LEAST_LOG_PROBA,
    FittedPool,
    PoolNetwork,
    best_combination,
    combined,
    log_loss,
    log_mean_proba,
    stacked,
)
from .members import Candidate, candidates_of
from .views import TABLES, UNIMPUTED, VIEWS, View, ViewedRows

MANY_ROWS = 20_000
"""From so many rows on, three folds are enough to compare networks."""

SAMPLE_ROWS = 3_000
"""Rows of the sample on which candidates are selected; with fewer than twice as many, all rows
take part from the start.
"""

TRAINING_ROWS = 100_000
"""Rows that train the networks of a set, at most."""

MOST_CENTERS = 6_000
"""Rows that become kernels of a network that leaves rows out by itself, at most."""

WEIGHT_ROWS = 20_000
"""Rows to which weights are fitted, at most."""

GROWTH = 0.5
"""Seconds for each row of a full fit, relative to those of the sample: settings are selected there,
and part of the work does not grow with the rows.
"""

FEWEST_OF_CLASS = 5
"""Rows of a class in a sample, at least."""

TIMED_ROWS = 1000
"""Rows whose prediction is timed, at most."""


@dataclass(frozen=True)
class PoolSettings:
    """The parameters of `PooledClassifier` that its fit depends on."""

    members: Any
    time_limit: float | None
    pooling: str
    n_folds: int | None
    class_prior: np.ndarray
    seed: int
    n_jobs: int | None


@dataclass(frozen=True)
class PoolProgress:
    """The result of one candidate, as a callback gets it.

    Attributes
    ----------
    name : str
        The candidate.
    loss : float
        Its log-loss per row on held-out rows; NaN where not all were predicted.
    pool_loss : float
        That of the pool with it.
    seconds : float
        Time of its training.
    outcome : str
        "kept", "dropped on a sample", "weight zero", "failed: ...", "not tried: ...".
    left : tuple of str
        Candidates still to be tried.
    """

    name: str
    loss: float = np.nan
    pool_loss: float = np.nan
    seconds: float = 0.0
    outcome: str = "kept"
    left: tuple[str, ...] = ()


def fit_pool(
    data: TrainingData,
    table: Any,
    settings: PoolSettings,
    on_trial: Callable[[PoolProgress], None],
) -> tuple[FittedPool, "PoolFit"]:
    """Cross-fit the candidates on rows, which came as `table`, and pool those that help."""
    end = perf_counter() + (np.inf if settings.time_limit is None else settings.time_limit)
    rows: Any = data.rows
    x, codes, weight = labeled(rows)
    at = np.arange(len(rows.x)) if rows.weight is None else np.flatnonzero(rows.weight > 0)
    (table,) = take_rows((table,), at)
    columns = data.columns
    seed = settings.seed
    missing = bool(np.isnan(x).any())
    candidates = candidates_of(settings.members, len(data.classes), columns, missing)
    imputes = any(candidate.view not in UNIMPUTED for candidate in candidates)
    imputation = imputation_mixture(data, seed) if imputes and missing else None
    n_folds = settings.n_folds or (3 if len(x) >= MANY_ROWS else 4)
    fold = folds_of(n_folds, x, codes, weight, seed)
    fit = PoolFit(x, table, codes, weight, fold, at, columns, imputation, settings, end, on_trial)
    if isinstance(settings.members, str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of members that the user has not chosen
            fit = fit.selected(candidates)
    else:
        fit.run(candidates)
    if not fit.weights:
        raise KernelpoolError(
            f"No member could be trained; the last failure: {fit.trials[-1].outcome}."
        )
    weights = {name: weight for name, weight in fit.weights.items() if weight > 0}
    shares, held_out_density = fit.densities()
    networks = tuple(
        replace(network, density_weight=shares.get(name, 0.0) / len(of_member))
        for name, of_member in fit.networks.items()
        if name in weights or name in shares
        for network in of_member
    )
    if imputes and shares:  # a mixture that was trained with labels
        densest = max(networks, key=lambda network: network.density_weight)
        imputation = fitted_record(densest.estimator).network
    elif imputes and imputation is None:
        imputation = imputation_mixture(data, seed)

    held_out = np.full((2, len(rows.x), fit.n_classes), np.nan)
    held_out[0, fit.at] = np.exp(fit.held_out_log_proba())
    held_out[1, fit.at] = held_out_density
    fitted = FittedPool(
        columns=columns,
        classes=data.classes,
        class_prior=settings.class_prior,
        class_shares=data.class_share,
        members=list(weights),
        weights=np.array(list(weights.values())),
        pooling=fit.pooling,
        loss=fit.loss,
        networks=networks,
        views=fit.views,
        trials=fit.table_of_trials(weights),
        imputation=imputation,
        input_columns=columns,
        held_out_proba=held_out[0],
        held_out_log_density=held_out[1] if shares else None,
    )
    return fitted, fit


@dataclass(eq=False)
class PoolFit:
    """The members that candidates become on some rows.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Encoded rows, all of positive weight.
    table : array or data frame
        The rows as they were passed to `fit`.
    codes, weight, fold : ndarray of shape (n,)
        Their classes and weights, and the fold in which each is held out; -1 for none.
    at : ndarray of shape (n,)
        Their positions among the rows that were passed to `fit`.
    columns : Columns
        Of the rows.
    imputation : ClassDensities or None
        From which missing cells are drawn; None where no candidate needs complete numbers.
    settings : PoolSettings
        How members are trained and pooled.
    end : float
        The time of `perf_counter` at which the fit must end.
    on_trial : callable
        Called after each candidate.
    """

    x: np.ndarray
    table: Any
    codes: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    at: np.ndarray
    columns: Columns
    imputation: ClassDensities | None
    settings: PoolSettings
    end: float = np.inf
    on_trial: Callable[[PoolProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        self.held = self.fold >= 0
        self.networks: dict[str, list[PoolNetwork]] = {}
        """Of each member."""
        self.held_out: dict[str, np.ndarray] = {}
        """log P(C_k|x) of each row by the network that was trained without it, (n, K); NaN for rows
        in no fold.
        """
        self.held_out_density: dict[str, np.ndarray] = {}
        """log p(x|C_k) of mixtures, likewise."""
        self.weights: dict[str, float] = {}
        """Of the members, those of weight zero included."""
        self.pooling = self.settings.pooling
        self.loss = np.nan
        self.trials: list[PoolProgress] = []
        self.interrupted = False
        self.views: dict[str, View] = {}

    # -- the rows ----------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> ViewedRows:
        """The rows as networks predict them."""
        draws = draws_of(self.imputation, self.x)
        return ViewedRows(self.x, self.table, self.columns, self.views, draws)

    @cached_property
    def complete(self) -> np.ndarray:
        """One copy of the rows with missing cells imputed, (n, d)."""
        return self.x if self.imputation is None else imputed(self.imputation, self.x)

    @cached_property
    def key(self) -> np.ndarray:
        """A number for each row by which samples are drawn, the same for equal rows, (n,)."""
        # folds take those of the seed
        return row_keys(self.x, self.weight, self.settings.seed + 1)

    @cached_property
    def weight_rows(self) -> np.ndarray:
        """Positions of the held-out rows to which weights are fitted."""
        return np.intersect1d(np.flatnonzero(self.held), self.positions(WEIGHT_ROWS))

    def positions(self, n_rows: int) -> np.ndarray:
        """Positions of a sample of about `n_rows` rows, the classes in proportion; equal rows are
        all in it or none.
        """
        if n_rows >= len(self.x):
            return np.arange(len(self.x))
        place, n_distinct = places(self.codes, self.key)
        n_drawn = np.maximum(n_rows / len(self.x) * n_distinct, FEWEST_OF_CLASS)
        return np.flatnonzero(place < n_drawn)

    def sample(self, n_rows: int) -> "PoolFit":
        """The same fit on a sample of the rows."""
        at = self.positions(n_rows)
        names = "x", "table", "codes", "weight", "fold", "at"
        rows = take_rows(tuple(getattr(self, name) for name in names), at)
        return replace(self, **dict(zip(names, rows, strict=True)))

    @property
    def n_classes(self) -> int:
        """Classes of the rows."""
        return len(self.settings.class_prior)

    def held_out_log_proba(self) -> np.ndarray:
        """log P(C_k|x) of each row by the pool of networks that were trained without it, (n, K)."""
        held_out = np.stack(list(self.held_out.values()))
        return combined(held_out, np.array(list(self.weights.values())), self.pooling)

    # -- trials ------------------------------------------------------------------------------------

    def selected(self, candidates: Sequence[Candidate]) -> "PoolFit":
        """Run the candidates; of many rows, those of use on a sample, on all rows or on as many as
        the time allows.

        Where the time allows little more than the sample, the pool of the sample is the result.
        """
        n = min(len(self.x), TRAINING_ROWS)
        if n < 2 * SAMPLE_ROWS:
            self.run(candidates)
            return self
        sample = self.sample(SAMPLE_ROWS)
        sample.run(candidates)
        if sample.interrupted or not sample.weights:
            return sample
        planned = sample.plan(candidates, n)
        seconds = sum(candidate.seconds for candidate in planned)
        share = min(1.0, (self.end - perf_counter()) / seconds)
        n_rows = int(share * n)
        if n_rows < 2 * SAMPLE_ROWS:
            return sample
        final = self.sample(n_rows)
        try:
            final.run([c._replace(seconds=c.seconds * n_rows / n) for c in planned])
        except KeyboardInterrupt:  # before any member was ready
            sample.interrupted = True
            return sample
        names = {candidate.name for candidate in planned}
        for trial in sample.trials:
            if trial.name not in names:
                failed = trial.outcome.startswith("failed")
                outcome = trial.outcome if failed else "dropped on a sample"
                final.trials.append(replace(trial, loss=np.nan, pool_loss=np.nan, outcome=outcome))
        return final

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Cross-fit the candidates one after the other, keep those that help, and weight them.

        Members of weight zero stay in `networks`.
        """
        try:
            for i, candidate in enumerate(candidates):
                left = tuple(later.name for later in candidates[i + 1 :])
                trial = replace(self._try(candidate), left=left)
                self.trials.append(trial)
                self.on_trial(trial)
        except KeyboardInterrupt:
            if not self.networks:
                raise
            self.interrupted = True
        if self.weights:
            self.loss = self._loss(self.held_out_log_proba())
        self.trials = [
            trial if self.weights.get(trial.name, 1.0) else replace(trial, outcome="weight zero")
            for trial in self.trials
        ]

    def plan(self, candidates: Sequence[Candidate], n_rows: int) -> list[Candidate]:
        """The members of this pool as candidates for a fit to `n_rows` rows: with the settings that
        were selected here and the seconds that they would take, the most weight per second first.

        A mixture is always among them, and comes first: the pool has its densities.
        """
        weights = self.weights
        mixtures = [c.name for c in candidates if c.view == "codes" and c.name in weights]
        first = max(mixtures, key=weights.__getitem__, default="")
        growth = GROWTH * n_rows / len(self.x)
        seconds = {trial.name: trial.seconds * growth for trial in self.trials}
        planned = [
            c.narrowed(self.networks[c.name][0].estimator)._replace(seconds=seconds[c.name])
            for c in candidates
            if weights.get(c.name, 0.0) > 0 or c.name == first
        ]
        return sorted(planned, key=lambda c: (c.name != first, -weights[c.name] / c.seconds))

    def _try(self, candidate: Candidate) -> PoolProgress:
        """Cross-fit a candidate; if that succeeds, keep it, and weight the members anew."""
        begun = perf_counter()
        trial = PoolProgress(candidate.name)
        view = candidate.view
        if self.networks and begun + candidate.seconds > self.end:
            return replace(trial, outcome="not tried: the time was over")
        if view in VIEWS and view not in self.views:
            self.views[view] = VIEWS[view](self.complete, self.weight, self.columns.levels)
        rows = self.rows.in_view(view, self.complete)
        data = rows, self.codes, self.weight, np.arange(len(self.x))  # the last are positions
        train = self._leave_one_out if candidate.kind.leave_one_out else self._cross_fit
        try:
            networks, held_out = train(candidate, data)
        except TimeoutError as error:
            trial = replace(trial, outcome=f"not tried: {error}")
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            if not self.networks and view in TABLES:
                raise
            trial = replace(trial, outcome=f"failed: {type(error).__name__}: {error}")
        else:
            self._keep(candidate, networks, held_out)
            loss = self._loss(self.held_out[candidate.name])
            trial = replace(trial, loss=loss, pool_loss=self.loss)
        return replace(trial, seconds=perf_counter() - begun)

    def _keep(
        self, candidate: Candidate, networks: list[PoolNetwork], held_out: np.ndarray
    ) -> None:
        """Add a member, and weight all of them."""
        self.networks[candidate.name] = networks
        self.held_out[candidate.name] = held_out[:, : self.n_classes]
        if candidate.has_densities:
            self.held_out_density[candidate.name] = held_out[:, self.n_classes :]
        rows = self.weight_rows
        log_proba = np.stack([values[rows] for values in self.held_out.values()])
        weight, self.pooling, self.loss = best_combination(
            log_proba, self.codes[rows], self.weight[rows], self.settings.pooling
        )
        self.weights = dict(zip(self.networks, weight.tolist(), strict=True))

    def _loss(self, log_proba: np.ndarray) -> float:
        held = self.held
        return log_loss(log_proba[held], self.codes[held], self.weight[held])

    # -- networks ----------------------------------------------------------------------------------

    def _cross_fit(self, candidate: Candidate, data: Data) -> tuple[list[PoolNetwork], np.ndarray]:
        """One network for each fold, the first of which selects settings for the others; and the
        held-out predictions, (n, K), with log-densities beside them, (n, 2K), of mixtures.

        TimeoutError if the others cannot end in time.
        """
        begun = perf_counter()
        first, *later = np.unique(self.fold[self.held]).tolist()
        (network,), held_out = cross_fit(self._fit_one(candidate), data, self.fold, only=[first])
        seconds = len(later) * (perf_counter() - begun)
        if self.networks and perf_counter() + seconds > self.end:
            raise TimeoutError(f"it takes {seconds:.0f} s more")
        fit = self._fit_one(candidate.narrowed(network.estimator))
        n_jobs = self.settings.n_jobs
        networks, rest = cross_fit(fit, data, self.fold, only=later, n_jobs=n_jobs)
        return [network, *networks], np.where((self.fold == first)[:, None], held_out, rest)

    def _fit_one(
        self, candidate: Candidate
    ) -> Callable[[Data, Data], tuple[PoolNetwork, np.ndarray]]:
        """`fit` for `cross_fit`."""
        # predictions that are averaged over imputations select nothing
        selects = candidate.kind.selects and (
            candidate.view in UNIMPUTED or self.rows.draws is None
        )

        def fit(train: Data, held_out: Data) -> tuple[PoolNetwork, np.ndarray]:
            model = self._model(candidate, train, held_out if selects else None)
            network = PoolNetwork(model, candidate.name, candidate.view)
            # rows that selected anything of the network are scored by what other rows select
            fitted = attributes(fitted_record(model)) if selects else {}
            log_proba = fitted.get("validation_log_proba")
            if log_proba is None:
                rows = self.rows.take(held_out[3])
                log_proba = rows.averaged(candidate.view, network.log_proba)
            log_proba = np.maximum(log_proba, LEAST_LOG_PROBA)
            if candidate.has_densities:
                log_density = fitted_record(model).network.log_density(as_rows(held_out[0]))()
                log_proba = np.hstack([log_proba, log_density])
            return network, log_proba

        return fit

    def _leave_one_out(
        self, candidate: Candidate, data: Data
    ) -> tuple[list[PoolNetwork], np.ndarray]:
        """One network of all rows, or of a sample of many, and its predictions for each of them
        left out.
        """
        leave_one_out: Any = candidate.kind.leave_one_out
        at = self.positions(MOST_CENTERS)
        model = self._model(candidate, take_rows(data, at))
        network = PoolNetwork(model, candidate.name, candidate.view)
        held_out = np.empty((len(self.x), self.n_classes))
        held_out[at] = np.maximum(leave_one_out(model), LEAST_LOG_PROBA)
        rest = np.setdiff1d(data[3], at)
        if len(rest):
            rows = self.rows.take(rest)
            held_out[rest] = rows.averaged(candidate.view, network.log_proba)
        return [network], np.where(self.held[:, None], held_out, np.nan)

    def _model(self, candidate: Candidate, train: Data, validation: Data | None = None) -> Any:
        """A fitted copy of the estimator, with weights where its `fit` takes them."""
        rows, codes, weight, _ = train
        model = clone(candidate.estimator)
        if model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=self.settings.seed)
        if candidate.view in VIEWS:  # the pool imputes for all its members
            model.set_params(categorical_features=Columns.numbers(rows.shape[1], complete=True))
        names = "X_val", "y_val", "sample_weight_val"
        kwargs = dict(zip(names, validation or (), strict=False))
        if not (weight == 1).all():
            kwargs["sample_weight"] = weight
        kwargs = {name: value for name, value in kwargs.items() if has_fit_parameter(model, name)}
        with without_column_warnings():  # those of all rows are warned of once
            return model.fit(rows, codes, **kwargs)

    # -- the result --------------------------------------------------------------------------------

    def densities(self) -> tuple[dict[str, float], Any]:
        """The weights of mixtures in the densities of the pool, and its held-out log p(x|C_k), (n,
        K); NaN for rows in no fold, and where there are no mixtures.

        Mixtures over encoded rows are weighted by stacking on held-out rows (Smyth & Wolpert 1999).
        Where all of them have weight zero in the pool, the most likely one is kept for its density
        alone.
        """
        if not self.held_out_density:
            return {}, np.nan
        rows = self.weight_rows
        row_weight = self.weight[rows]
        own = {name: d[rows, self.codes[rows]] for name, d in self.held_out_density.items()}
        likely = max(own, key=lambda name: float(row_weight @ own[name]))
        names = [name for name in own if self.weights[name] > 0] or [likely]
        share = stacked(np.stack([own[name] for name in names]), row_weight)
        log_density = np.stack([self.held_out_density[name] for name in names])
        mean = logsumexp(log_density + safe_log(share)[:, None, None], axis=0)
        return dict(zip(names, share.tolist(), strict=True)), mean

    def table_of_trials(self, members: Iterable[str]) -> dict[str, np.ndarray]:
        """The trials, column by column, and the seconds in which members predict 1,000 rows."""
        names = ("name", "loss", "pool_loss", "seconds", "outcome")
        table = {name: np.array([getattr(trial, name) for trial in self.trials]) for name in names}
        seconds = {name: self._predict_seconds(name) for name in members}
        of_trials = [seconds.get(trial.name, np.nan) for trial in self.trials]
        return table | {"predict_seconds": np.array(of_trials)}

    def _predict_seconds(self, name: str) -> float:
        """The time in which a member predicts 1,000 rows, by that of the first ones."""
        begun = perf_counter()
        rows = self.rows.take(np.arange(min(TIMED_ROWS, len(self.x))))
        log_mean_proba(self.networks[name], rows)
        return (perf_counter() - begun) * 1000 / len(rows.x)

    def warn_if_unfinished(self, n_rows: int) -> None:
        """KeyboardInterrupt after an interruption; warnings of members that could not be trained,
        and of what the time left out of `n_rows` rows.
        """
        if self.interrupted:
            n_members = sum(weight > 0 for weight in self.weights.values())
            were = "was" if n_members == 1 else "were"
            raise KeyboardInterrupt(f"interrupted; {plural(n_members, 'member')} {were} pooled")
        failed = [trial for trial in self.trials if trial.outcome.startswith("failed")]
        if failed:
            warn(
                f"{len(failed)} of {len(self.trials)} members could not be trained: "
                f"{failed[0].name}, {failed[0].outcome}.",
                UnfinishedWarning,
            )
        late = [trial.name for trial in self.trials if trial.outcome.startswith("not tried")]
        if late or len(self.x) < n_rows:
            time_limit = self.settings.time_limit
            limit = "" if time_limit is None else f" in time_limit={time_limit:g} s"
            without = f" and without {', '.join(late)}" if late else ""
            warn(
                f"The pool was trained on {len(self.x):,} of {n_rows:,} rows{limit}{without}.",
                UnfinishedWarning,
            )
