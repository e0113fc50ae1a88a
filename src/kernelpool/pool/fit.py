r"""A pool of classifiers: cross-fitted members, and one probability from those of several.

Every member is F networks, each trained without one fold; their average is the member. The
predictions of each network for the fold that it was trained without are what the weights of the
pool are fitted to, so that nothing is trained twice. Candidates are tried in the order given, cheap
ones first; what cannot end in time is left out. An interruption (Ctrl-C) keeps the members that are
ready. A classifier that can leave each of its rows out by itself (`leave_one_out_log_proba`, as Parzen
networks can) is trained once, on at most `MOST_KERNELS` rows.

Of many rows a sample comes first (`fit_pool`): which candidates are of use, their settings and
their seconds are found there, and only those of use are trained on all rows, or on as many as the
time allows, in the order of their weight per second.

========================  ==========================================================================
a candidate's ``view``    its rows
========================  ==========================================================================
"codes"                   as `Columns.encode` makes them: codes of categories, NaN for missing cells
"scaled", "warped"        complete numbers, see `View`; missing cells are imputed
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
from functools import cached_property
from inspect import signature
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ..arrays import safe_log
from ..complete.classifier import TabularClassifier
from ..complete.imputation import imputations, imputed
from ..data.folds import cross_fit, row_keys, take_rows
from ..data.scale import mean_and_variance
from ..em import Stop, em
from ..errors import without_column_warnings
from ..lbfgs import maximize
from ..mixtures.fitted import ClassDensities
from ..tables.columns import Columns, indicators_of

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


PRICE = 1e-3
"""Penalty on the sum of the weights, in log-loss per row."""

RIDGE = 20.0
"""Strength of the ridge towards equal weights, in rows: held-out losses of few rows are noisy."""

SAMPLE_ROWS = 3_000
"""Rows of the sample on which candidates are selected; with fewer than twice as many, all rows
take part from the start.
"""

MOST_ROWS, MOST_KERNELS, WEIGHT_ROWS = 100_000, 6_000, 20_000
"""Rows that train the networks of a pool, those that become kernels of a network that leaves rows
out by itself, and those to which weights are fitted, at most.
"""

GROWTH = 0.5
"""Seconds for each row of a fit, relative to those of a sample: settings are chosen there, and part
of the work does not grow with the rows.
"""

FEWEST = 5
"""Rows of a class in a sample, at least."""

BLOCK_ROWS = 8_192
"""Rows that are predicted at a time."""

SMALLEST = 0.08
"""Weights below this are set to zero: such members cost time and, on the sets of development,
accuracy.
"""

LOWEST = np.log(1e-12)
"""The least log-probability of a member: no class is impossible."""

KINDS = ("log_linear", "linear")


UNIMPUTED = ("codes", "table")
"""The views in which rows keep their missing cells."""


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
    seconds: float = 0.0
    """That it is expected to take."""


@dataclass(frozen=True, eq=False)
class PoolNetwork:
    """A fitted network of a pool."""

    estimator: Any
    member: str
    """The candidate that it belongs to."""
    view: str
    """How it takes rows, as in `Candidate`."""
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
    loss: float
    pool_loss: float
    seconds: float
    outcome: str
    left: tuple[str, ...] = ()


# -- views -----------------------------------------------------------------------------------------

FARTHEST = 8.0
"""Warped features are clipped here, in standard deviations: beyond the training rows a power may
diverge.
"""

EXPONENTS, BISECTIONS = (-3.0, 5.0), 32
"""Range of the exponent of a warp, and how often it is halved."""


@dataclass(frozen=True, eq=False)
class View:
    r"""A map of encoded rows without missing cells to the numbers that a network takes, (n, D).

    .. math:: z = \frac{\psi_\lambda((x - m) / s) - m'}{s'}

    with :math:`\psi_\lambda` the transform of Yeo and Johnson ("A new family of power
    transformations to improve normality or symmetry", Biometrika 87(4), 2000), one exponent for
    each feature, fitted by maximum likelihood. Categories are indicators.
    """

    levels: tuple[int, ...]
    """`Columns.levels`."""
    center: np.ndarray
    """(D,)."""
    scale: np.ndarray
    """(D,)."""
    exponent: np.ndarray | None = None
    """Of the warp, (D,); None for no warp."""
    warped_center: np.ndarray | None = None
    """(D,)."""
    warped_scale: np.ndarray | None = None
    """(D,)."""

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Rows in this view, (n, D)."""
        z = (indicators_of(x, self.levels) - self.center) / self.scale
        if self.exponent is None:
            return np.asarray(z)
        z = (yeo_johnson(z, self.exponent) - self.warped_center) / self.warped_scale
        return np.clip(z, -FARTHEST, FARTHEST)


def scaled_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...]) -> View:
    """Mean zero and variance one; a constant feature keeps its unit."""
    x = indicators_of(x, levels)
    center, variance = mean_and_variance(x, weight)
    constant = variance <= (8 * np.finfo(x.dtype).eps * np.abs(center)) ** 2
    return View(levels, center, np.where(constant, 1.0, np.sqrt(variance)))


def warped_view(x: np.ndarray, weight: np.ndarray, levels: tuple[int, ...]) -> View:
    """The scaled view, warped by the exponents of the greatest likelihood."""
    scaled = scaled_view(x, weight, levels)
    share = weight / weight.sum()
    z = scaled.transform(x)
    exponent = likely_exponents(z, share)
    warped = yeo_johnson(z, exponent)
    center = share @ warped
    scale = np.sqrt(share @ (warped - center) ** 2)
    return replace(
        scaled,
        exponent=exponent,
        warped_center=center,
        warped_scale=np.where(scale > 1e-9, scale, 1.0),
    )


def yeo_johnson(u: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """psi_lambda, feature by feature: a power of 1 + u above zero, one of 1 - u, with 2 - lambda,
    below.
    """
    size = np.log1p(np.abs(u))
    power = np.where(u >= 0, exponent, 2 - exponent)
    small = np.abs(power) < 1e-8
    return np.sign(u) * np.where(small, size, np.expm1(power * size) / np.where(small, 1, power))


def likely_exponents(u: np.ndarray, share: np.ndarray) -> np.ndarray:
    r"""The exponent of each feature at which the warped feature is most likely to be normal, (d,),
    within `EXPONENTS`.

    .. math::

        \ell(\lambda) = -\tfrac12 \log \operatorname{var} \psi_\lambda(u)
            + (\lambda - 1) \sum_n \text{share}_n \operatorname{sign}(u_n) \log(1 + |u_n|)

    Its slope is zero there, found by bisection for all features at once; a constant feature keeps
    1.
    """
    size = np.log1p(np.abs(u))
    above = u >= 0
    sign = np.sign(u)
    drift = share @ (sign * size)
    low, high = (np.full(u.shape[1], end) for end in EXPONENTS)
    for _ in range(BISECTIONS):
        exponent = 0.5 * (low + high)
        power = np.where(above, exponent, 2 - exponent)
        power = np.where(np.abs(power) < 1e-8, 1e-8, power)
        grown = np.expm1(power * size)
        warped = sign * grown / power
        slope = (size * (1 + grown) - grown / power) / power  # of warped, by the exponent
        centered = warped - share @ warped
        with np.errstate(invalid="ignore", divide="ignore"):
            rises = drift > share @ (centered * slope) / (share @ (centered * centered))
        low = np.where(rises, exponent, low)
        high = np.where(rises, high, exponent)
    return np.where(np.ptp(u, axis=0) > 1e-12, 0.5 * (low + high), 1.0)


VIEWS = {"scaled": scaled_view, "warped": warped_view}


# -- the fit ---------------------------------------------------------------------------------------


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
    imputation : ClassDensities or None
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
    imputation: ClassDensities | None = None
    table: Any = None
    kind: str = "auto"
    seed: int = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.missing = np.flatnonzero(np.isnan(self.x).any(axis=1))
        self.held = self.fold >= 0
        self.folds = np.unique(self.fold[self.held]).tolist()
        self.at = np.arange(len(self.x))
        """Positions of the rows among those that this fit is a sample of."""
        self.networks: dict[str, list[PoolNetwork]] = {}
        """Of each member."""
        self.held_out: dict[str, np.ndarray] = {}
        """log P(C_k|x) of each row by the network that was trained without it, (n, K); NaN for rows
        in no fold.
        """
        self.pooling: Pooling | None = None
        self.trials: list[PoolProgress] = []
        self.interrupted = False
        self.views: dict[str, View] = {}
        self.end = np.inf

    @cached_property
    def key(self) -> np.ndarray:
        """A number for each row by which samples are drawn, the same for equal rows, (n,)."""
        return row_keys(self.x, self.weight, self.seed + 1)  # folds take those of the seed

    @cached_property
    def complete(self) -> np.ndarray:
        """One copy of the rows with missing cells imputed, (n, d)."""
        return self.x if self.imputation is None else imputed(self.imputation, self.x)

    @cached_property
    def draws(self) -> np.ndarray | None:
        """Imputations of the rows with missing cells, (S, m, d)."""
        if self.imputation is None or not len(self.missing):
            return None
        return imputations(self.imputation, self.x[self.missing])

    @cached_property
    def weight_rows(self) -> np.ndarray:
        """Positions of the held-out rows to which weights are fitted."""
        return np.intersect1d(np.flatnonzero(self.held), self.chosen(WEIGHT_ROWS))

    def chosen(self, n_rows: int) -> np.ndarray:
        """Positions of a sample of about `n_rows` rows, the classes in proportion; equal rows are
        all in it or none.
        """
        if n_rows >= len(self.x):
            return np.arange(len(self.x))
        within = np.zeros(len(self.x), bool)
        for k in range(int(self.codes.max()) + 1):
            distinct, place = np.unique(self.key[self.codes == k], return_inverse=True)
            within[self.codes == k] = place < max(n_rows / len(self.x) * len(distinct), FEWEST)
        return np.flatnonzero(within)

    def sample(self, n_rows: int) -> "PoolFit":
        """The same fit on a sample of the rows."""
        at = self.chosen(n_rows)
        rows = {name: getattr(self, name)[at] for name in ("x", "codes", "weight", "fold")}
        fit = replace(self, **rows, table=_safe_indexing(self.table, at))
        fit.at = at
        return fit

    def run(
        self,
        candidates: Sequence[Candidate],
        end: float = np.inf,
        on_trial: Callable[[PoolProgress, "PoolFit"], None] | None = None,
    ) -> None:
        """Cross-fit the candidates one after the other, keep those that help, and weight them.

        Members of weight zero stay in `networks`. `end` is a time of `perf_counter`.
        """
        self.end = end
        try:
            for i, candidate in enumerate(candidates):
                if self.networks and perf_counter() + candidate.seconds > end:
                    self.trials.append(left_out(candidate.name, "not tried: the time was over"))
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
        if not self.pooling.weight.any():
            # no member is better than chance: the best one is the pool
            losses = [self._loss(h, self.held) for h in self.held_out.values()]
            self.pooling = Pooling(np.eye(len(losses))[np.argmin(losses)], "linear", min(losses))
        else:
            log_proba = pooled(np.stack(list(self.held_out.values())), *self.pooling[:2])
            self.pooling = self.pooling._replace(loss=self._loss(log_proba, self.held))
        weights = dict(zip(self.networks, self.pooling.weight, strict=True))
        self.trials = [
            trial if weights.get(trial.name, 1.0) else replace(trial, outcome="weight zero")
            for trial in self.trials
        ]

    def plan(self, candidates: Sequence[Candidate], n_rows: int) -> list[Candidate]:
        """The members of this pool as candidates for a fit to `n_rows` rows: with the settings that
        were chosen here and the seconds that they would take, the most weight per second first.

        A mixture is always among them, and comes first: the pool has its densities.
        """
        assert self.pooling is not None
        weight = dict(zip(self.networks, self.pooling.weight, strict=True))
        mixtures = [c.name for c in candidates if c.view == "codes" and c.name in weight]
        first = max(mixtures, key=weight.__getitem__, default="")
        rows = GROWTH * n_rows / len(self.x)
        seconds = {trial.name: trial.seconds * rows for trial in self.trials}
        planned = [
            narrowed(c, self.networks[c.name][0])._replace(seconds=seconds[c.name])
            for c in candidates
            if weight.get(c.name, 0.0) > 0 or c.name == first
        ]
        return sorted(planned, key=lambda c: (c.name != first, -weight[c.name] / c.seconds))

    def _try(self, candidate: Candidate) -> PoolProgress:
        begun = perf_counter()
        fold = self.fold
        view = candidate.view

        def trial(loss: float, pool_loss: float, outcome: str) -> PoolProgress:
            return PoolProgress(candidate.name, loss, pool_loss, perf_counter() - begun, outcome)

        if view in VIEWS and view not in self.views:
            self.views[view] = VIEWS[view](self.complete, self.weight, self.columns.levels)
        rows = shown(view, self.views, self.columns, self.x, self.complete, self.table)
        data = rows, self.codes, self.weight, np.arange(len(self.x))
        whole = hasattr(candidate.estimator, "leave_one_out_log_proba")
        whole = whole and getattr(candidate.estimator, "metric", None) != "learned"
        try:
            if whole:
                networks, held_out = self._leave_one_out(candidate, data)
            else:
                first, *rest = self.folds
                networks, held_out = cross_fit(self._fit(candidate), data, fold, only=[first])
                now = perf_counter()
                more = len(rest) * (now - begun)
                if self.networks and now + more > self.end:
                    return trial(np.nan, np.nan, f"not tried: it takes {more:.0f} s more")
                candidate = narrowed(candidate, networks[0])
                others = cross_fit(self._fit(candidate), data, fold, only=rest, n_jobs=self.n_jobs)
                networks += others[0]
                held_out = np.where((fold == first)[:, None], held_out, others[1])
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            if not self.networks and view.endswith("table"):
                raise
            return trial(np.nan, np.nan, f"failed: {type(error).__name__}: {error}")
        self.networks[candidate.name], self.held_out[candidate.name] = networks, held_out
        rows = self.weight_rows
        held_out_by = np.stack(list(self.held_out.values()))
        self.pooling = pool(held_out_by[:, rows], self.codes[rows], self.weight[rows], self.kind)
        return trial(self._loss(held_out, self.held), self.pooling.loss, "kept")

    def _loss(self, log_proba: np.ndarray, rows: np.ndarray) -> float:
        return log_loss(log_proba[rows], self.codes[rows], self.weight[rows])

    def _fit(self, candidate: Candidate) -> Callable[..., tuple[Any, np.ndarray]]:
        """`fit` for `cross_fit`."""

        def fit(
            train: tuple[Any, ...], held_out: tuple[Any, ...]
        ) -> tuple[PoolNetwork, np.ndarray]:
            # predictions that are averaged over imputations select nothing
            selects = candidate.view in UNIMPUTED or self.draws is None
            model = self._fitted(candidate, train, held_out if selects else ())
            network = PoolNetwork(model, candidate.name, candidate.view)
            # rows that selected anything of the network are scored by what other rows select
            scored = getattr(model, "validation_log_proba_", None)
            if scored is None:
                (scored,) = self._predicted([network], held_out[3])
            return network, normalized(np.maximum(scored, LOWEST))

        return fit

    def _leave_one_out(
        self, candidate: Candidate, data: tuple[Any, ...]
    ) -> tuple[list[PoolNetwork], np.ndarray]:
        """One network of all rows, or of a sample of many, and its predictions for each of them
        left out.
        """
        some = self.chosen(MOST_KERNELS)
        model = self._fitted(candidate, take_rows(data, some))
        network = PoolNetwork(model, candidate.name, candidate.view)
        held_out = np.empty((len(self.x), int(self.codes.max()) + 1))
        held_out[some] = normalized(np.maximum(model.leave_one_out_log_proba(), LOWEST))
        rest = np.setdiff1d(data[3], some)
        if len(rest):
            (held_out[rest],) = self._predicted([network], rest)
        return [network], np.where(self.held[:, None], held_out, np.nan)

    def _predicted(self, networks: list[PoolNetwork], at: np.ndarray) -> list[np.ndarray]:
        """log P(C_k|x) of the rows at some positions by each network, (n, K)."""
        draws = None if self.draws is None else self.draws[:, np.isin(self.missing, at)]
        table = _safe_indexing(self.table, at)
        return log_probas(networks, self.views, self.columns, self.x[at], draws, table)

    def _fitted(
        self, candidate: Candidate, train: tuple[Any, ...], validation: tuple[Any, ...] = ()
    ) -> Any:
        """A fitted copy of the estimator, with weights and validation rows where its `fit` takes
        them.
        """
        rows, codes, weight = train[:3]
        model = clone(candidate.estimator)
        if candidate.view in VIEWS and isinstance(model, TabularClassifier):
            # the pool imputes for all its members
            model.set_params(categorical_features=Columns.numbers(rows.shape[1], complete=True))
        if model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=self.seed)
        given = dict(zip(("X_val", "y_val", "sample_weight_val"), validation, strict=False))
        if not (weight == 1).all():
            given["sample_weight"] = weight
        takes = signature(model.fit).parameters
        with without_column_warnings():  # those of all rows are warned of once
            return model.fit(rows, codes, **{n: v for n, v in given.items() if n in takes})

    def predict_seconds(self, name: str) -> float:
        """The time in which a member predicts 1,000 rows, by that of the first ones."""
        begun = perf_counter()
        at = np.arange(min(1000, len(self.x)))
        self._predicted(self.networks[name], at)
        return (perf_counter() - begun) * 1000 / len(at)

    def densities(self) -> tuple[dict[str, float], np.ndarray | None]:
        """The weights of mixtures in the densities of the pool, and its held-out log p(x|C_k), (n,
        K); NaN for rows in no fold, None where there are no mixtures.

        Mixtures over encoded rows are weighted by stacking on held-out rows (Smyth & Wolpert 1999).
        Where all of them have weight zero in the pool, the most likely one is kept for its density
        alone.
        """
        assert self.pooling is not None
        weights = dict(zip(self.networks, self.pooling.weight, strict=True))
        log_density: dict[str, np.ndarray] = {}
        for name, networks in self.networks.items():
            # a mixture, which imputes: densities of other networks are not of encoded rows
            if networks[0].view == "codes" and hasattr(networks[0].estimator, "impute"):
                values = np.full((len(self.x), int(self.codes.max()) + 1), np.nan)
                for fold, network in zip(self.folds, networks, strict=True):
                    out = self.fold == fold
                    values[out] = network.estimator.log_density(self.x[out])
                log_density[name] = values
        if not log_density:
            return {}, None
        held = self.weight_rows
        row_weight = self.weight[self.weight_rows]
        own = {name: values[held, self.codes[held]] for name, values in log_density.items()}
        likely = max(own, key=lambda name: float(row_weight @ own[name]))
        names = [name for name in own if weights[name] > 0] or [likely]
        share = stacked(np.stack([own[name] for name in names]), row_weight)
        parts = [log_density[name] + s for name, s in zip(names, safe_log(share), strict=True)]
        return dict(zip(names, share.tolist(), strict=True)), logsumexp(np.stack(parts), axis=0)


def narrowed(candidate: Candidate, network: PoolNetwork) -> Candidate:
    """The candidate with the settings that a network of it has chosen."""
    fitted = network.estimator
    return (
        candidate._replace(estimator=fitted.narrowed())
        if hasattr(fitted, "narrowed")
        else candidate
    )


def left_out(name: str, outcome: str, seconds: float = 0.0) -> PoolProgress:
    """The result of a candidate that was not cross-fitted."""
    return PoolProgress(name, np.nan, np.nan, seconds, outcome)


def fit_pool(
    fit: PoolFit,
    candidates: Sequence[Candidate],
    end: float = np.inf,
    on_trial: Callable[[PoolProgress, PoolFit], None] | None = None,
) -> PoolFit:
    """A pool of the candidates: of many rows, those of use on a sample are trained on all rows, or
    on as many as the time allows.

    Where the time allows little more than the sample, the pool of the sample is the result.
    """
    n = min(len(fit.x), MOST_ROWS)
    if n < 2 * SAMPLE_ROWS:
        fit.run(candidates, end, on_trial)
        return fit
    sample = fit.sample(SAMPLE_ROWS)
    sample.run(candidates, end, on_trial)
    if sample.interrupted or sample.pooling is None:
        return sample
    planned = sample.plan(candidates, n)
    total = sum(candidate.seconds for candidate in planned)
    n_rows = int(min(1.0, (end - perf_counter()) / total) * n)
    if n_rows < 2 * SAMPLE_ROWS:
        return sample
    final = fit.sample(n_rows)
    try:
        final.run([c._replace(seconds=c.seconds * n_rows / n) for c in planned], end, on_trial)
    except KeyboardInterrupt:  # before any member was ready
        sample.interrupted = True
        return sample
    kept = {candidate.name for candidate in planned}
    for trial in sample.trials:
        if trial.name not in kept:
            failed = trial.outcome.startswith("failed")
            outcome = trial.outcome if failed else "dropped on a sample"
            final.trials.append(left_out(trial.name, outcome, trial.seconds))
    return final


# -- predictions -----------------------------------------------------------------------------------


def shown(
    view: str,
    views: dict[str, View],
    columns: Columns,
    x: np.ndarray,
    complete: np.ndarray,
    table: Any,
) -> Any:
    """Rows in a view, from the encoded rows, these without missing cells, and the table that was
    passed.
    """
    if view in UNIMPUTED:
        return x if view == "codes" else table
    return columns.decode(complete) if view == "complete table" else views[view].transform(complete)


def log_probas(
    networks: Sequence[PoolNetwork],
    views: dict[str, View],
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
    if len(x) > BLOCK_ROWS:
        blocks = []
        for start in range(0, len(x), BLOCK_ROWS):
            at = np.arange(start, min(start + BLOCK_ROWS, len(x)))
            some = None if draws is None else draws[:, np.cumsum(missing)[at][missing[at]] - 1]
            part = table if table is None else _safe_indexing(table, at)
            blocks.append(log_probas(networks, views, columns, x[at], some, part))
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    complete = x
    if draws is not None:
        complete = np.concatenate([x[~missing], draws.reshape(-1, x.shape[1])])
    rows: dict[str, Any] = {}
    found = []
    for network in networks:
        view = network.view
        if view not in rows:
            rows[view] = shown(view, views, columns, x, complete, table)
        log_proba = member_log_proba(network, rows[view])
        if draws is not None and view not in UNIMPUTED:
            n_complete = np.count_nonzero(~missing)
            n_classes = log_proba.shape[1]
            joined = np.empty((len(x), n_classes))
            joined[~missing] = log_proba[:n_complete]
            joined[missing] = average(log_proba[n_complete:].reshape(len(draws), -1, n_classes))
            log_proba = joined
        found.append(log_proba)
    return found


def member_log_proba(network: PoolNetwork, rows: Any) -> np.ndarray:
    """log P(C_k|x) by any classifier, none below what a pool takes, (n, K).

    Networks of this library are asked directly, without a check of the rows.
    """
    estimator = network.estimator
    if network.view == "codes":
        log_proba = estimator._log_proba(rows)
    elif network.view in VIEWS and hasattr(estimator, "_network_log_proba"):
        log_proba = estimator._network_log_proba(rows)
    elif hasattr(estimator, "predict_log_proba"):
        with np.errstate(divide="ignore"):  # forests take the logarithm of zero
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
    log_proba: np.ndarray, codes: np.ndarray, row_weight: np.ndarray, kind: str = "auto"
) -> Pooling:
    """The weights with the least held-out loss; of kind "auto", the better of the two pools."""
    log_proba = np.maximum(log_proba, LOWEST)
    own = log_proba[:, np.arange(len(codes)), codes]  # (L, n)
    fitted = []
    for k in KINDS if kind == "auto" else (kind,):
        if k == "linear":
            weight = stacked(own, row_weight)
            weight = np.where(weight >= min(SMALLEST, weight.max()), weight, 0.0)
            weight = weight / weight.sum()
        else:
            weight = _log_linear(log_proba, own, row_weight)
        loss = log_loss(pooled(log_proba, weight, k), codes, row_weight)
        fitted.append(Pooling(weight, k, loss))
    return min(fitted, key=lambda pooling: pooling.loss)


def _log_linear(log_proba: np.ndarray, own: np.ndarray, row_weight: np.ndarray) -> np.ndarray:
    """The weights of a logarithmic pool, (L,)."""
    n_members = len(log_proba)
    share = row_weight / row_weight.sum()
    own_mean = own @ share
    ridge = RIDGE / row_weight.sum()

    def objective(weight: np.ndarray) -> tuple[np.ndarray, float]:
        scores = np.tensordot(weight, log_proba, axes=1)
        log_total = logsumexp(scores, axis=1)
        expected = np.exp(scores - log_total[:, None]) * share[:, None]  # (n, K)
        away = weight - weight.mean()
        gradient = own_mean - np.tensordot(log_proba, expected, axes=2) - PRICE - 2 * ridge * away
        value = weight @ own_mean - share @ log_total - PRICE * weight.sum() - ridge * away @ away
        return gradient, float(value)

    start = np.full(n_members, 1 / n_members)
    bounds = [(0, None)] * n_members
    weight = maximize(objective, start, max_iter=200, bounds=bounds).point
    keep = weight >= SMALLEST
    if 0 < np.count_nonzero(keep) < n_members:
        weight = np.zeros(n_members)
        weight[keep] = _log_linear(log_proba[keep], own[keep], row_weight)
    return np.asarray(weight)
