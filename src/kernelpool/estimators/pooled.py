"""Pooled classifier: the shell of `selection.cross_fitting` and `selection.pooling`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..arrays import Array, match_array, namespace, safe_log, to_numpy
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..inspection.describe import Description, Pool, classes_text, describe, features_text
from ..rows import Block, Rows, with_missing
from ..tables.columns import Columns
from ..text import plural
from ..training.cross_fitting import (
    INDICATORS,
    RAW,
    WARPED,
    LabeledRows,
    PoolCandidate,
    PoolFit,
    PoolMember,
    Trial,
    average,
    can_take_holes,
    fit_pool,
    member_log_proba,
    network_log_proba,
    takes_holes,
)
from ..training.folds import row_keys, stratified_folds
from ..training.parzen import labeled
from ..training.pooling import KINDS, Pooling
from ..training.prepare import class_prior_for
from ..training.stacking import stacked
from ..training.views import View, Warp
from .base import DensityClassifier, RowFunction
from .describing import N_DRAWS, Describing, describing_network, drawn_fillings, log_density_in_view
from .parzen import ParzenClassifier
from .rbf import RBFNetworkClassifier
from .shared_kernel import SharedKernelClassifier

BUDGETS = ("fast", "balanced", "best")

MANY_ROWS = 20_000
"""From so many rows on, three folds are enough to tell networks apart."""


def _mixture(
    family: str, per_class: int, n_classes: int, kernel_prior: str | None = None
) -> SharedKernelClassifier:
    return SharedKernelClassifier(
        per_class * n_classes,
        covariance_type=family,
        sharing=0.0,
        kernel_prior=kernel_prior,
        training="conditional",
        covariance_floor=1e-2,
    )


def word_candidates(budget: str, n_classes: int, columns: Columns) -> list[PoolCandidate]:
    """Mixtures that take words for words, for tables that hold some; rows come to them coded."""
    few = [("diag", 1), ("full", 1), ("diag", 3)]
    shapes = few if budget == "fast" else [*few, ("tied", 2), ("diag", 8)]
    return [
        PoolCandidate(
            f"{family} mixture over words, {per_class} a class",
            _mixture(family, per_class, n_classes, "conjugate").set_params(
                categorical_features=columns.of_codes()
            ),
            RAW,
        )
        for family, per_class in shapes
    ]


def candidates_for(budget: str, n_classes: int, holes: bool = False) -> list[PoolCandidate]:
    """The networks that a budget allows, cheap ones first; what is missing is filled for those that are no mixtures.

    The first is never given up, so that every pool has a mixture, and with it densities. Where cells are missing, mixtures
    that know how features go together have the most to say, and are tried first.
    """
    rbf = RBFNetworkClassifier(standardize=False)
    few = RBFNetworkClassifier(standardize=False, max_features=3)
    parzen = ParzenClassifier(standardize=False, missing="error")
    fast = [
        PoolCandidate("tied mixture, 1 a class", _mixture("tied", 1, n_classes)),
        PoolCandidate("RBF network, kernels of few features", few),
        PoolCandidate("diagonal mixture, 3 a class", _mixture("diag", 3, n_classes)),
        PoolCandidate("RBF network", rbf),
        PoolCandidate("Parzen network, warped", parzen, WARPED),
    ]
    if holes:
        fast = [PoolCandidate("full mixture", SharedKernelClassifier()), *fast]
    if budget == "fast":
        return fast
    balanced = [
        *fast,
        PoolCandidate("Parzen network", parzen),
        PoolCandidate(
            "full mixture, 1 a class", _mixture("full", 1, n_classes, kernel_prior="conjugate")
        ),
        PoolCandidate("RBF network, warped, learned metric", rbf, WARPED, metric=True),
        PoolCandidate("RBF network, learned metric", rbf, metric=True),
        PoolCandidate("diagonal mixture, 8 a class", _mixture("diag", 8, n_classes)),
    ]
    if budget == "balanced":
        return balanced
    return [
        *balanced,
        PoolCandidate("RBF network, kernels of few features, warped", few, WARPED),
        PoolCandidate("tied mixture, 6 a class, warped", _mixture("tied", 6, n_classes), WARPED),
        PoolCandidate("RBF network, warped", rbf, WARPED),
        PoolCandidate("Parzen network, learned metric", parzen, metric=True),
        PoolCandidate(
            "full mixture, 4 a class", _mixture("full", 4, n_classes, kernel_prior="conjugate")
        ),
        PoolCandidate(
            "RBF network, 600 kernels",
            RBFNetworkClassifier(600, standardize=False),
        ),
    ]


@dataclass(frozen=True)
class PoolProgress:
    """What a callback is told after each candidate.

    Attributes
    ----------
    name : str
        The candidate.
    loss : float
        Its log-loss a row on held-out rows.
    pool_loss : float
        That of the pool so far.
    seconds : float
        What it took.
    outcome : str
        Whether it was kept.
    left : tuple of str
        Candidates still to be tried.
    """

    name: str
    loss: float
    pool_loss: float
    seconds: float
    outcome: str
    left: tuple[str, ...]


def _knows_densities(model: "PooledClassifier") -> bool:
    """Whether a pool has members that describe the classes; one that is not fitted may come to have some."""
    if not np.any(getattr(model, "density_weights_", 1)):
        raise AttributeError(
            "None of the members of this pool describes the classes: it has probabilities but no densities. Add a "
            "SharedKernelClassifier to members."
        )
    return True


class PooledClassifier(DensityClassifier):
    r"""Several kernel networks, cross-fitted and pooled: the classifier to begin with.

    Mixtures trained to tell classes apart, RBF networks and Parzen networks, some of them on warped features or in a learned
    metric. Each is trained without one fold of the rows at a time; what the copies predict for the rows that they have not seen
    decides how much each is heard,

    .. math:: P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m}, \qquad w_m \ge 0

    Probabilities and labels come from the pool. Densities (`log_density`, `score_samples`, `sample`) come from those of its
    networks that describe the classes, averaged with weights from the held-out likelihood.

    Parameters
    ----------
    members : "auto" or list of classifiers, default="auto"
        What is pooled. A list holds classifiers with `predict_proba`, kernelpool's or others, or (name, classifier) pairs; they
        see X as it is.
    budget : {"fast", "balanced", "best"} or float, default="balanced"
        For ``members="auto"``, how many networks are tried; or the seconds after which no further one is begun.
    pooling : {"auto", "log_linear", "linear"}, default="auto"
        Whether probabilities are multiplied or added; "auto" takes what suits the held-out rows better.
    n_folds : int or None, default=None
        Networks of each member. None takes four, three from 20,000 rows on.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes where they differ from their shares in the training rows; it may be changed after the
        fit.
    missing : {"marginalize", "error"}, default="marginalize"
        What NaN in X means: a missing cell, or an error. Mixtures integrate missing cells out; of the other networks' answers
        the mean is taken over fillings drawn from the conditional density that the mixtures give.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words, as in `SharedKernelClassifier`. Mixtures over words are tried then, and densities are
        theirs; the other networks see an indicator for each word.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the networks.
    n_jobs : int or None, default=None
        Networks that are trained at a time.
    verbose : int, default=0
        1 prints a line for each candidate: its loss, that of the pool, and what is left.
    callback : callable or None, default=None
        Called after each candidate with a `PoolProgress`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes in the training rows.
    members_ : list of str
        Names of the members.
    weights_ : ndarray of shape (n_members,)
        How much each is heard.
    pooling_ : str
        "log_linear" or "linear".
    networks_ : list of classifiers
        The networks of all members.
    network_members_ : ndarray of shape (n_networks,)
        The member that each network belongs to, or -1 for one that is kept for its density alone.
    network_views_ : ndarray of shape (n_networks,)
        The view of the features that each network sees; -1 for X as it is.
    density_weights_ : ndarray of shape (n_networks,)
        Weight of each network in the density.
    view_centers_, view_scales_, view_exponents_, view_warp_centers_, view_warp_scales_, view_metrics_ : ndarray
        The views: features are shifted and scaled, raised to a power (Yeo and Johnson's transform), shifted and scaled
        again, and mapped.
    trials_ : dict of str to ndarray
        What was tried: ``name``, ``loss``, ``pool_loss``, ``seconds``, ``outcome``.
    loss_ : float
        Log-loss a row of the pool on held-out rows.
    held_out_proba_ : ndarray of shape (n_samples, n_classes)
        P(C_k|x) of every training row by networks that have not seen it. Not kept in model files.
    held_out_log_density_ : ndarray of shape (n_samples, n_classes)
        log p(x|C_k), likewise; where the pool has densities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    SharedKernelClassifier : One mixture, with densities of its own.
    RejectClassifier : Refuses rows that are ambiguous or unlike anything seen.

    Examples
    --------
    >>> from kernelpool import PooledClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(1000, random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> model = PooledClassifier(budget="fast", random_state=0).fit(X, y)
    >>> print(f"{1 - model.score(X_test, y_test):.2f}")
    0.10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": [StrOptions({"auto"}), "array-like"],
        "budget": [StrOptions(set(BUDGETS)), Interval(Real, 0, None, closed="neither")],
        "pooling": [StrOptions({"auto", *KINDS})],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "class_prior": ["array-like", dict, StrOptions({"balanced"}), None],
        "missing": [StrOptions({"marginalize", "error"})],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
        "random_state": ["random_state"],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        members: Any = "auto",
        *,
        budget: str | float = "balanced",
        pooling: str = "auto",
        n_folds: int | None = None,
        class_prior: Any = None,
        missing: str = "marginalize",
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[PoolProgress], Any] | None = None,
    ) -> None:
        self.members = members
        self.budget = budget
        self.pooling = pooling
        self.n_folds = n_folds
        self.class_prior = class_prior
        self.missing = missing
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @property
    def _takes_holes(self) -> bool:
        return self.missing != "error"

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Cross-fit the members and weight them.

        Interrupting a fit (Ctrl-C) pools the members that are ready.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : PooledClassifier
            The fitted estimator.
        """
        data = labeled(self, X, y, sample_weight)
        n_classes = len(data.classes)
        levels = data.levels
        weightless = sorted(set(range(n_classes)) - set(data.codes.tolist()))
        if weightless:
            name = data.classes.tolist()[weightless[0]]
            raise KernelpoolError(
                f"Every class needs a row of positive weight; class {name!r} has none. Drop its rows, or give them some weight."
            )
        if self.class_prior is not None:
            class_prior_for(self.class_prior, data.classes, np.full(n_classes, 1 / n_classes))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        x, n = np.asarray(data.x, np.float64), len(data.x)
        holes = bool(np.isnan(x).any())
        candidates = self._candidates(n_classes, data.columns, holes)
        n_folds = self.n_folds or (3 if n >= MANY_ROWS else 4)
        key = row_keys(x, np.asarray(data.weight, np.float64), seed)
        fold = stratified_folds(data.codes, n_folds, key=key, weight=data.weight)
        if (fold < 0).all():
            raise KernelpoolError(
                f"y must have a class with at least two distinct rows to hold some out; the {n} rows have one for each class."
            )
        rows = LabeledRows(x, data.codes, data.weight, fold, n_classes, levels=levels)
        if holes:
            fillings = drawn_fillings(
                describing_network(x, data.weight, data.columns, seed), x, None, 1 + N_DRAWS, seed
            )
            rows = replace(rows, x=fillings[0], holed=x, draws=fillings[1:])
        fit = fit_pool(
            candidates,
            rows,
            kind=self.pooling,
            seconds=float("inf") if isinstance(self.budget, str) else float(self.budget),
            seed=seed,
            n_jobs=self.n_jobs,
            on_trial=self._tell,
        )
        if not fit.members:
            raise KernelpoolError(
                f"No member could be trained; the last failure: {fit.trials[-1].outcome}."
            )
        self._keep(fit, rows, data.columns, data.classes, data.index, data.n_rows)
        if fit.interrupted:
            were = "was" if len(fit.members) == 1 else "were"
            raise KeyboardInterrupt(
                f"interrupted; {plural(len(fit.members), 'member')} {were} pooled"
            )
        failed = [trial for trial in fit.trials if trial.outcome.startswith("failed")]
        if failed:
            warn(
                f"{len(failed)} of {len(candidates)} members could not be trained: {failed[0].name}, {failed[0].outcome}.",
                UnfinishedWarning,
            )
        return self

    def _candidates(self, n_classes: int, columns: Columns, holes: bool) -> list[PoolCandidate]:
        if isinstance(self.members, str):
            budget = self.budget if isinstance(self.budget, str) else "best"
            over_words = word_candidates(budget, n_classes, columns) if any(columns.levels) else []
            return [*over_words, *candidates_for(budget, n_classes, holes and not over_words)]
        candidates = []
        for i, member in enumerate(self.members):
            name, estimator = (
                member
                if isinstance(member, tuple)
                else (f"{type(member).__name__} {i + 1}", member)
            )
            if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
                raise KernelpoolError(
                    f"members must be classifiers with predict_proba; {name} is {estimator!r}."
                )
            candidates.append(PoolCandidate(name, estimator, INDICATORS))
        if not candidates:
            raise KernelpoolError("members must hold at least one classifier; got an empty list.")
        return candidates

    def _tell(self, trial: Trial, fit: PoolFit, left: Sequence[str]) -> None:
        progress = PoolProgress(
            trial.name, trial.loss, trial.pool_loss, trial.seconds, trial.outcome, tuple(left)
        )
        if self.verbose:
            best = fit.pooling.loss if fit.pooling is not None else float("nan")
            print(
                f"{trial.name}: held-out loss {trial.loss:.4f}, {trial.outcome}, {trial.seconds:.1f} s; "
                f"pool {best:.4f}; {len(left)} left"
            )
        if self.callback is not None:
            self.callback(progress)

    def _keep(
        self,
        fit: PoolFit,
        rows: LabeledRows,
        columns: Columns,
        classes: np.ndarray,
        index: np.ndarray,
        n_rows: int,
    ) -> None:
        """Set the attributes, all at once."""
        pooling = fit.pooling
        assert pooling is not None
        density = _densities(fit, rows)
        views: list[View] = []
        networks, members, seen, density_weights = [], [], [], []
        for m, member in enumerate(
            [*fit.members, *(member for member in fit.unheard if member.name in density)]
        ):
            for network in member.networks:
                networks.append(network.estimator)
                members.append(m if m < len(fit.members) else -1)
                seen.append(_position(views, network.view))
                density_weights.append(density.get(member.name, 0.0) / len(member.networks))
        class_weight = np.bincount(rows.codes, rows.weight, minlength=rows.n_classes)
        self.columns_ = columns
        self.classes_, self.class_prior_ = classes, class_weight / class_weight.sum()
        self.members_, self.weights_ = [member.name for member in fit.members], pooling.weight
        self.pooling_, self.loss_ = pooling.kind, pooling.loss
        self.networks_, self.network_members_ = networks, np.array(members)
        self.network_views_, self.density_weights_ = np.array(seen), np.array(density_weights)
        self._keep_views(views, len(views[0].center) if views else rows.x.shape[1])
        held_out = np.full((n_rows, rows.n_classes), np.nan)
        held_out[index] = np.exp(
            pooling.log_proba(np.stack([member.held_out for member in fit.members]))
        )
        self.held_out_proba_ = held_out
        self.__dict__.pop("held_out_log_density_", None)
        if density:
            found = np.full((n_rows, rows.n_classes), np.nan)
            found[index] = _held_out_densities(fit, rows, density)
            self.held_out_log_density_ = found
        columns = ("name", "loss", "pool_loss", "seconds", "outcome")
        self.trials_ = {
            column: np.array([getattr(trial, column) for trial in fit.trials]) for column in columns
        }

    def _keep_views(self, views: list[View], d: int) -> None:
        straight = Warp(np.ones(d), np.zeros(d), np.ones(d))
        warps = [view.warp or straight for view in views]
        self.view_centers_ = np.array([view.center for view in views]).reshape(-1, d)
        self.view_scales_ = np.array([view.scale for view in views]).reshape(-1, d)
        self.view_exponents_ = np.array([warp.exponent for warp in warps]).reshape(-1, d)
        self.view_warp_centers_ = np.array([warp.center for warp in warps]).reshape(-1, d)
        self.view_warp_scales_ = np.array([warp.scale for warp in warps]).reshape(-1, d)
        self.view_metrics_ = np.array(
            [np.eye(d) if view.metric is None else view.metric for view in views]
        ).reshape(-1, d, d)

    def _views(self) -> list[View]:
        """The views as records."""
        views, levels = [], self.columns_.levels if any(self.columns_.levels) else None
        for v, metric in enumerate(self.view_metrics_):
            straight = (self.view_exponents_[v] == 1).all()
            warp = Warp(
                self.view_exponents_[v], self.view_warp_centers_[v], self.view_warp_scales_[v]
            )
            plain = (metric == np.eye(len(metric))).all()
            views.append(
                View(
                    self.view_centers_[v],
                    self.view_scales_[v],
                    None if straight else warp,
                    None if plain else metric,
                    levels,
                )
            )
        return views

    # -- predictions ------------------------------------------------------------------------------------------------

    def _log_prior_shift(self) -> np.ndarray:
        """What other class priors than those of the training rows add to log P(C_k|x), (K,)."""
        if self.class_prior is None:
            return np.zeros(len(self.classes_))
        return np.asarray(safe_log(self._prior()) - np.log(self.class_prior_))

    def _prior(self) -> np.ndarray:
        return (
            self.class_prior_
            if self.class_prior is None
            else class_prior_for(self.class_prior, self.classes_, self.class_prior_)
        )

    def _set_class_prior(self, class_prior: np.ndarray) -> None:
        self.class_prior = class_prior

    def _scores(self, rows: Rows) -> RowFunction:
        pooling = Pooling(self.weights_, self.pooling_, self.loss_)
        pool = _Pool(
            self.networks_, self.network_members_, self.network_views_, self._views(), pooling
        )
        describing = self._describing() if np.any(self.density_weights_) else None
        return RowFunction(
            rows,
            _pooled_log_proba,
            (pool, describing, self._log_prior_shift(), safe_log(self._prior())),
        )

    def _describing(self) -> "Describing":
        heard = np.flatnonzero(self.density_weights_)
        views = self._views()
        networks = [
            (
                self.networks_[i],
                None if self.network_views_[i] < 0 else views[self.network_views_[i]],
            )
            for i in heard
        ]
        return Describing(networks, np.log(self.density_weights_[heard]))

    log_density = available_if(_knows_densities)(DensityClassifier.log_density)
    score_samples = available_if(_knows_densities)(DensityClassifier.score_samples)
    kernel_posterior = available_if(_knows_densities)(DensityClassifier.kernel_posterior)
    sample = available_if(_knows_densities)(DensityClassifier.sample)

    def _density(self, rows: Rows) -> RowFunction:
        return RowFunction(rows, _pooled_log_density, (self._describing(),))

    def _posterior(self, rows: Rows) -> RowFunction:
        return RowFunction(rows, _pooled_posterior, (self._describing(),))

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        views, x = self._views(), np.empty((len(codes), self.n_features_in_))
        chosen = rng.choice(
            len(self.networks_),
            size=len(codes),
            p=self.density_weights_ / self.density_weights_.sum(),
        )
        for i in np.unique(chosen):
            mine = chosen == i
            z = self.networks_[i]._sample_rows(codes[mine], rng)
            x[mine] = z if self.network_views_[i] < 0 else views[self.network_views_[i]].inverse(z)
        return x

    def _describe(self) -> Description:
        """The members and their weights; the kernels are those of the networks of its densities."""
        members = sorted(zip(self.weights_, self.members_, strict=True), reverse=True)
        names = "; ".join(f"{name} ({weight:.2f})" for weight, name in members)
        how = "multiplied" if self.pooling_ == "log_linear" else "added"
        return Description(
            f"A pool of {plural(len(members), 'member')} for {classes_text(self)} in "
            f"{features_text(self)}, whose probabilities are weighted and {how}: {names}. "
            f"Held-out log-loss {self.loss_:.3f} a row.",
            self._density_kernels(),
        )

    def _density_kernels(self) -> Pool | None:
        """In the units of the data; networks over warped features have no Gaussian kernels there."""
        straight = (self.view_exponents_ == 1).all(axis=1)
        parts: list[tuple[Any, ...]] = []
        for i in np.flatnonzero(self.density_weights_):
            view, member = int(self.network_views_[i]), int(self.network_members_[i])
            if view >= 0 and not straight[view]:
                continue
            pool: Any = describe(self.networks_[i]).pool
            center = self.view_centers_[view] if view >= 0 else 0.0
            scale = self.view_scales_[view] if view >= 0 else 1.0
            name = self.members_[member] if member >= 0 else "density alone"
            share = self.density_weights_[i] * pool.share
            mean, variance = pool.mean * scale + center, pool.variance * scale**2
            parts.append((share, pool.class_posterior, mean, variance, [name] * len(pool)))
        if not parts:
            return None
        share, posterior, mean, variance, group = map(np.concatenate, zip(*parts, strict=True))
        return Pool(share / share.sum(), posterior, mean, variance, group=tuple(map(str, group)))


class _Pool:
    """The networks of a pool and how they are heard; one object, so that homes of rows hand it on as it is."""

    def __init__(
        self,
        networks: list[Any],
        members: np.ndarray,
        seen: np.ndarray,
        views: list[View],
        pooling: Pooling,
    ) -> None:
        self.networks, self.members, self.seen, self.views, self.pooling = (
            networks,
            members,
            seen,
            views,
            pooling,
        )

    def log_proba(self, x: np.ndarray, describing: "Describing | None") -> np.ndarray:
        """log P(C_k|x), (n, K); what is missing is drawn from the networks that describe the rows."""
        if np.isnan(x).any():
            said = self._said_of_holed(x, describing)
        else:
            shown = {v: x if v < 0 else self.views[v].transform(x) for v in np.unique(self.seen)}
            said = {
                i: member_log_proba(self.networks[i], shown[self.seen[i]]) for i in self._heard()
            }
        of_members = [
            average(np.stack([said[i] for i in self._heard() if self.members[i] == m]))
            for m in range(len(self.pooling.weight))
        ]
        return self.pooling.log_proba(np.stack(of_members))

    def _heard(self) -> list[int]:
        """The networks that have a part in the probabilities."""
        return [int(i) for i in np.flatnonzero(self.members >= 0)]

    def _said_of_holed(
        self, x: np.ndarray, describing: "Describing | None"
    ) -> dict[int, np.ndarray]:
        heard = self._heard()
        views = {i: None if self.seen[i] < 0 else self.views[self.seen[i]] for i in heard}
        draws = None
        if not all(takes_holes(self.networks[i], views[i]) for i in heard):
            if describing is not None and describing.networks:
                draws = describing.fillings(x[np.isnan(x).any(axis=1)])
            elif not all(can_take_holes(self.networks[i], views[i]) for i in heard):
                raise KernelpoolError(
                    "X has missing values, and this pool has no member that describes the rows, from which they could be "
                    "drawn: impute them, or add a SharedKernelClassifier to members."
                )
        return {i: network_log_proba(self.networks[i], views[i], x, draws) for i in heard}


def _densities(fit: PoolFit, rows: LabeledRows) -> dict[str, float]:
    """Weights of the members that describe the classes, by stacking on held-out rows (Smyth & Wolpert 1999).

    Where none of those that are heard does, the one of the others that describes held-out rows best.
    """
    heard = [member for member in fit.members if _describes(member)]
    others = [member for member in fit.unheard if _describes(member)]
    held = (rows.fold >= 0) & (rows.weight > 0)
    if not heard and others:
        likelihood = [
            rows.weight[held] @ _held_out_log_density(member, rows)[held] for member in others
        ]
        heard = [others[int(np.argmax(likelihood))]]
    if not heard:
        return {}
    log_density = np.stack([_held_out_log_density(member, rows)[held] for member in heard])
    return dict(
        zip(
            (member.name for member in heard),
            stacked(log_density, rows.weight[held]).tolist(),
            strict=True,
        )
    )


def _describes(member: PoolMember) -> bool:
    """Whether a member has densities, of the columns as they are: words are not as dense as numbers."""
    (network, view) = member.networks[0].estimator, member.networks[0].view
    return isinstance(network, SharedKernelClassifier) and (view is None or view.levels is None)


def _held_out_log_density(member: PoolMember, rows: LabeledRows) -> np.ndarray:
    """log p(x|C_y) of each row by the network that has not seen it, (n,)."""
    return _held_out_log_densities(member, rows)[np.arange(len(rows.x)), rows.codes]


def _held_out_log_densities(member: PoolMember, rows: LabeledRows) -> np.ndarray:
    """log p(x|C_k) of each row by the network that has not seen it, (n, K); NaN for rows in no fold."""
    said = np.full((len(rows.x), rows.n_classes), np.nan)
    for network in member.networks:
        out = np.flatnonzero(rows.fold == network.fold)
        if len(out):
            x = rows.x[out] if rows.holed is None else rows.holed[out]
            said[out] = log_density_in_view(network.estimator, network.view, x)
    return said


def _held_out_densities(fit: PoolFit, rows: LabeledRows, weights: dict[str, float]) -> np.ndarray:
    """log p(x|C_k) of the pool for each row by networks that have not seen it, (n, K)."""
    members = [
        member for member in (*fit.members, *fit.unheard) if weights.get(member.name, 0.0) > 0
    ]
    said = np.stack(
        [_held_out_log_densities(member, rows) + np.log(weights[member.name]) for member in members]
    )
    return np.asarray(logsumexp(said, axis=0))


def _pooled_log_proba(
    block: Block, pool: _Pool, describing: "Describing | None", log_prior_shift: Any, log_prior: Any
) -> Array:
    x, (shift, prior) = (
        with_missing(block),
        (np.asarray(to_numpy(a), np.float64) for a in (log_prior_shift, log_prior)),
    )
    found = pool.log_proba(x, describing) + shift
    if (
        block.missing is not None
    ):  # of a row of which nothing is known the class priors are all there is to say
        found = np.where(np.isnan(x).all(axis=1, keepdims=True), prior, found)
    return match_array(namespace(block.x).asarray(found), like=block.x)


def _pooled_posterior(block: Block, describing: "Describing") -> Array:
    found = describing.kernel_posterior(with_missing(block))
    return match_array(namespace(block.x).asarray(found), like=block.x)


def _pooled_log_density(block: Block, describing: Describing) -> Array:
    found = describing.log_density(with_missing(block))
    return match_array(namespace(block.x).asarray(found), like=block.x)


def _position(views: list[View], view: View | None) -> int:
    """Where a view stands in the list, to which it is added if it is new; -1 for none."""
    if view is None:
        return -1
    for i, known in enumerate(views):
        if known is view:
            return i
    views.append(view)
    return len(views) - 1
