"""Pooled classifier: networks that `training.pool` cross-fits and weights."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, safe_log
from ..base.classifier import DensityClassifier, RowFunction, Transform, log_softmax
from ..complete.classifier import TabularClassifier
from ..complete.imputation import imputation_mixture, imputations
from ..data.door import check_in_memory, encoded_rows, training_data
from ..data.folds import folds_of
from ..data.labels import class_codes, class_prior_for, is_matrix, labeled
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..inspection.describe import (
    Description,
    Pool,
    classes_text,
    describe,
    features_text,
    joined_pools,
)
from ..mixtures.classifier import SharedKernelClassifier
from ..mixtures.fitted import ClassDensities
from ..parzen.classifier import ParzenClassifier
from ..rbf.classifier import RBFNetworkClassifier
from ..rows import Block, Rows, with_missing
from ..tables.columns import Columns
from ..text import plural
from .fit import (
    KINDS,
    UNIMPUTED,
    Candidate,
    PoolFit,
    PoolNetwork,
    PoolProgress,
    View,
    average,
    fit_pool,
    log_probas,
    pooled,
)
from .onnx import to_graph

SETS = ("auto", "fast")
"""The sets of members; the second has fewer networks."""

MANY_ROWS = 20_000
"""From so many rows on, three folds are enough to compare networks."""


def candidates_for(
    members: str, n_classes: int, columns: Columns, missing: bool = False
) -> list[Candidate]:
    """The networks of a set, cheap ones first, each with the view in which it takes a table.

    The first one is always kept, so that every pool has a mixture and with it densities.
    """
    categories = any(columns.levels)

    def mixture(family: str, per_class: int, kernel_prior: str | None = None) -> Any:
        return SharedKernelClassifier(
            per_class * n_classes,
            covariance_type=family,
            sharing=0.0,
            kernel_prior="conjugate" if categories else kernel_prior,
            training="conditional",
            covariance_floor=1e-2,
            categorical_features=columns.of_codes(),
        )

    rbf = RBFNetworkClassifier(standardize=False)
    few = RBFNetworkClassifier(standardize=False, max_features=3)
    metric = RBFNetworkClassifier(standardize=False, metric="learned")
    parzen = ParzenClassifier(standardize=False)
    default = SharedKernelClassifier(categorical_features=columns.of_codes())
    prior = None if categories else "conjugate"
    table: list[tuple[bool, str, str, Any]] = [
        (categories, "diagonal mixture, 1 per class", "codes", mixture("diag", 1)),
        (categories, "full mixture, 1 per class", "codes", mixture("full", 1)),
        (missing and not categories, "full mixture", "codes", default),
        (not categories, "tied mixture, 1 per class", "codes", mixture("tied", 1)),
        (True, "RBF network, kernels of few features", "scaled", few),
        (members == "fast", "diagonal mixture, 3 per class", "codes", mixture("diag", 3)),
        (True, "RBF network", "scaled", rbf),
        (True, "Parzen network, warped", "warped", parzen),
    ]
    if members != "fast":
        table += [
            (True, "Parzen network", "scaled", parzen),
            (categories, "tied mixture, 2 per class", "codes", mixture("tied", 2)),
            (not categories, "full mixture, 1 per class", "codes", mixture("full", 1, prior)),
            (True, "RBF network, learned metric", "scaled", metric),
            (True, "diagonal mixture, 8 per class", "codes", mixture("diag", 8)),
        ]
    return [Candidate(name, estimator, view) for use, name, view, estimator in table if use]


@dataclass(frozen=True, eq=False)
class FittedPool:
    """The fitted state of a pool; see the attributes of `PooledClassifier`."""

    columns: Columns
    classes: np.ndarray
    class_prior: np.ndarray
    class_shares: np.ndarray
    members: list[str]
    weights: np.ndarray
    pooling: str
    loss: float
    networks: tuple[PoolNetwork, ...]
    views: dict[str, View]
    trials: dict[str, np.ndarray]
    imputation: ClassDensities | None
    """The mixture from which missing cells are drawn; None where all networks take rows as they
    are.
    """
    table: Columns
    """The columns of the table that was passed to `fit`, which named members take."""


def _has_densities(model: "PooledClassifier") -> bool:
    """Whether a pool has mixtures; one that is not fitted may come to have some."""
    return "_fitted" not in vars(model) or bool(model._density_networks())


class PooledClassifier(DensityClassifier):
    r"""Several kernel networks, cross-fitted and pooled: the classifier to begin with.

    Mixtures trained on class probabilities, RBF networks and Parzen networks, some of them on
    warped features or in a learned metric. Each is trained without one fold of the rows at a time;
    the predictions for these folds determine the weights,

    .. math:: P(C_k \mid x) \propto \prod_m P_m(C_k \mid x)^{w_m}, \qquad w_m \ge 0

    Members of weight zero are dropped. Probabilities and labels come from the pool. Densities
    (`log_density`, `score_samples`, `sample`) come from its mixtures, averaged with weights from
    the held-out likelihood.

    Mixtures take categories and missing cells as they are. For the other networks categories are
    indicators, and their probabilities are averaged over imputations of the missing cells.

    Parameters
    ----------
    members : {"auto", "fast"} or list of classifiers, default="auto"
        What is pooled: the networks that are of use among eight or nine, or among five or six. A
        list holds classifiers with `predict_proba`, kernelpool's or others, or (name,
        classifier) pairs; they take X as it is, with missing cells imputed for those that take no
        NaN.
    time_limit : float or None, default=None
        Seconds that a fit may take. Members that cannot end in time are left out, and of many rows
        a part is trained on; a warning names both. At least one member is trained. None trains on
        up to 100,000 rows.
    pooling : {"auto", "log_linear", "linear"}, default="auto"
        Whether probabilities are multiplied or added; "auto" takes the lower loss on held-out rows.
    n_folds : int or None, default=None
        Networks of each member. None takes four, three from 20,000 rows on.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes where they differ from their shares in the training rows;
        `with_class_prior` changes them later.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns of X hold categories, as in `SharedKernelClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the networks.
    n_jobs : int or None, default=None
        Networks that are trained at a time.
    verbose : int, default=0
        1 prints a line for each candidate: its loss, that of the pool, and how many are left.
    callback : callable or None, default=None
        Called after each candidate with a `PoolProgress`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes in the training rows.
    members_ : list of str
        Names of the members.
    weights_ : ndarray of shape (n_members,)
        Their weights.
    pooling_ : str
        "log_linear" or "linear".
    networks_ : tuple of PoolNetwork
        The networks of all members, and of mixtures that are kept for their densities alone:
        `estimator`, `member`, `view` ("codes" for encoded rows, "table", "complete table" with
        missing cells imputed, or a name in `views_`) and `density_weight`.
    views_ : dict of str to View
        How networks that are no mixtures take rows: scaled, warped.
    trials_ : dict of str to ndarray
        What was tried: ``name``, ``loss``, ``pool_loss``, ``seconds``, ``outcome`` and, of members,
        ``predict_seconds`` for 1,000 rows; see `leaderboard`.
    loss_ : float
        Log-loss per row of the pool on held-out rows.
    held_out_proba_ : ndarray of shape (n_samples, n_classes)
        P(C_k|x) of every training row by networks that were trained without it; NaN for rows that
        were in no fold. Not kept in model files.
    held_out_log_density_ : ndarray of shape (n_samples, n_classes)
        log p(x|C_k), likewise; where the pool has densities.
    columns_ : Columns
        Names and categories of the features.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    SharedKernelClassifier : One mixture, with densities of its own.
    RejectClassifier : Refuses rows that are ambiguous or unlike the training rows.

    Examples
    --------
    >>> from kernelpool import PooledClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(400, random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> model = PooledClassifier("fast", random_state=0).fit(X, y)
    >>> print(f"{1 - model.score(X_test, y_test):.1f}")
    0.1
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": [StrOptions(set(SETS)), "array-like"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "pooling": [StrOptions({"auto", *KINDS})],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "class_prior": ["array-like", dict, StrOptions({"balanced"}), None],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
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
        time_limit: float | None = None,
        pooling: str = "auto",
        n_folds: int | None = None,
        class_prior: Any = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[PoolProgress], Any] | None = None,
    ) -> None:
        self.members = members
        self.time_limit = time_limit
        self.pooling = pooling
        self.n_folds = n_folds
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # -- fitting -----------------------------------------------------------------------------------

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
            How often each row counts, as in `SharedKernelClassifier.fit`.

        Returns
        -------
        self : PooledClassifier
            The fitted estimator.
        """
        end = perf_counter() + (np.inf if self.time_limit is None else self.time_limit)
        if is_matrix(y):
            raise ValueError(
                f"y should be a 1d array, got an array of shape {np.shape(y)} instead. Shares of "
                f"classes are for SharedKernelClassifier."
            )
        data = training_data(
            X,
            y,
            sample_weight,
            name=type(self).__name__,
            categorical_features=self.categorical_features,
            n_jobs=self.n_jobs,
            in_memory=True,
        )
        (X,) = indexable(X)
        columns = data.columns
        classes = data.classes
        n_classes = len(data.classes)
        rows: Any = data.rows
        n_rows = len(rows.x)
        index = np.arange(n_rows) if rows.weight is None else np.flatnonzero(rows.weight > 0)
        x, codes, weight = labeled(rows)
        prior = class_prior_for(self.class_prior, classes, data.class_share)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        missing = bool(np.isnan(x).any())
        candidates = self._candidates(n_classes, columns, missing)
        n_folds = self.n_folds or (3 if len(x) >= MANY_ROWS else 4)
        imputes = any(candidate.view not in UNIMPUTED for candidate in candidates)
        imputation = imputation_mixture(data, seed) if imputes and missing else None
        fit = PoolFit(
            x,
            codes,
            weight,
            folds_of(n_folds, x, codes, weight, seed),
            columns=columns,
            imputation=imputation,
            table=X if len(x) == n_rows else _safe_indexing(X, index),
            kind=self.pooling,
            seed=seed,
            n_jobs=self.n_jobs,
        )
        if isinstance(self.members, str):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of members that the user has not chosen
                fit = fit_pool(fit, candidates, end, self._report_trial)
        else:
            fit.run(candidates, end, self._report_trial)
        if fit.pooling is None:
            raise KernelpoolError(
                f"No member could be trained; the last failure: {fit.trials[-1].outcome}."
            )
        weights = dict(zip(fit.networks, fit.pooling.weight, strict=True))
        density_shares, held_density = fit.densities()
        networks = tuple(
            replace(network, density_weight=density_shares.get(name, 0.0) / len(of_member))
            for name, of_member in fit.networks.items()
            if weights[name] > 0 or name in density_shares
            for network in of_member
        )
        if imputes and density_shares:  # a mixture that was trained with labels
            densest = max(networks, key=lambda network: network.density_weight)
            imputation = densest.estimator._fitted.network
        elif imputes and imputation is None:
            imputation = imputation_mixture(data, seed)
        members = [name for name in weights if weights[name] > 0]
        held_out = np.stack(list(fit.held_out.values()))
        names = ("name", "loss", "pool_loss", "seconds", "outcome")
        trials = {name: np.array([getattr(trial, name) for trial in fit.trials]) for name in names}
        spent = {name: fit.predict_seconds(name) for name in members}
        trials["predict_seconds"] = np.array([spent.get(name, np.nan) for name in trials["name"]])
        self._fitted = FittedPool(
            columns,
            classes,
            prior,
            data.class_share,
            members,
            np.array([weights[name] for name in members]),
            fit.pooling.kind,
            fit.pooling.loss,
            networks,
            fit.views,
            trials,
            imputation,
            columns,
        )
        self.held_out_proba_ = np.full((n_rows, n_classes), np.nan)
        index = index[fit.at]
        self.held_out_proba_[index] = np.exp(pooled(held_out, *fit.pooling[:2]))
        self.held_out_log_density_ = None
        if held_density is not None:
            self.held_out_log_density_ = np.full((n_rows, n_classes), np.nan)
            self.held_out_log_density_[index] = held_density
        if fit.interrupted:
            were = "was" if len(members) == 1 else "were"
            raise KeyboardInterrupt(f"interrupted; {plural(len(members), 'member')} {were} pooled")
        failed = [trial for trial in fit.trials if trial.outcome.startswith("failed")]
        if failed:
            warn(
                f"{len(failed)} of {len(candidates)} members could not be trained: "
                f"{failed[0].name}, {failed[0].outcome}.",
                UnfinishedWarning,
            )
        late = [trial.name for trial in fit.trials if trial.outcome.startswith("not tried")]
        if late or len(fit.x) < len(x):
            limit = "" if self.time_limit is None else f" in time_limit={self.time_limit:g} s"
            without = f" and without {', '.join(late)}" if late else ""
            warn(
                f"The pool was trained on {len(fit.x):,} of {len(x):,} rows{limit}{without}.",
                UnfinishedWarning,
            )
        return self

    def _candidates(self, n_classes: int, columns: Columns, missing: bool) -> list[Candidate]:
        if isinstance(self.members, str):
            return candidates_for(self.members, n_classes, columns, missing)
        candidates = []
        for i, member in enumerate(self.members):
            name, estimator = (
                member
                if isinstance(member, tuple)
                else (f"{type(member).__name__} {i + 1}", member)
            )
            if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
                raise KernelpoolError(
                    f"members must be classifiers with predict_proba, or one of {list(SETS)}; "
                    f"{name} is {estimator!r}."
                )
            view = "table" if get_tags(estimator).input_tags.allow_nan else "complete table"
            if isinstance(estimator, SharedKernelClassifier | TabularClassifier):
                view = "codes"
                estimator = clone(estimator).set_params(categorical_features=columns.of_codes())
            candidates.append(Candidate(name, estimator, view))
        if not candidates:
            raise KernelpoolError("members must hold at least one classifier; got an empty list.")
        return candidates

    def _report_trial(self, trial: PoolProgress, fit: PoolFit) -> None:
        if self.verbose:
            loss = np.nan if fit.pooling is None else fit.pooling.loss
            print(
                f"{trial.name}: held-out loss {trial.loss:.4f}, {trial.outcome}, "
                f"{trial.seconds:.1f} s; pool {loss:.4f}; {len(trial.left)} left"
            )
        if self.callback is not None:
            self.callback(trial)

    # -- probabilities -----------------------------------------------------------------------------

    def _map_scores(self, X: Any, transform: Transform) -> Array:
        check_is_fitted(self)
        check_in_memory(type(self).__name__, X)
        fitted = self._fitted
        x = encoded_rows(self, X, dtype=np.float64)
        table = fitted.table.decode(x) if fitted.columns.coded else X
        networks = [network for network in fitted.networks if network.member in fitted.members]
        missing = np.isnan(x)
        draws = None
        if missing.any() and fitted.imputation is not None:
            draws = imputations(fitted.imputation, x[missing.any(axis=1)])
        of_network = log_probas(networks, fitted.views, fitted.table, x, draws, table)
        of_member = [
            average(
                np.stack([p for p, n in zip(of_network, networks, strict=True) if n.member == name])
            )
            for name in fitted.members
        ]
        # other class priors than the shares in training add log P(C_k) - log share_k
        shift = safe_log(fitted.class_prior) - np.log(fitted.class_shares)
        scores = pooled(np.stack(of_member), fitted.weights, fitted.pooling) + shift
        nothing = missing.all(axis=1, keepdims=True)
        return transform(np.where(nothing, safe_log(fitted.class_prior), scores))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._map_scores(X, log_softmax)

    # -- densities ---------------------------------------------------------------------------------

    def _density_networks(self) -> list[PoolNetwork]:
        return [network for network in self._fitted.networks if network.density_weight > 0]

    log_density = available_if(_has_densities)(DensityClassifier.log_density)
    score_samples = available_if(_has_densities)(DensityClassifier.score_samples)
    kernel_posterior = available_if(_has_densities)(DensityClassifier.kernel_posterior)
    sample = available_if(_has_densities)(DensityClassifier.sample)

    def _rows(self, X: Any) -> Rows:
        check_in_memory(type(self).__name__, X)
        return super()._rows(X)

    def _density(self, rows: Rows) -> RowFunction:
        return RowFunction(rows, _log_density, (self._density_networks(),))

    def _posterior(self, rows: Rows) -> RowFunction:
        return RowFunction(rows, _kernel_posterior, (self._density_networks(),))

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        networks = self._density_networks()
        x = np.empty((len(codes), self.n_features_in_))
        weights = np.array([network.density_weight for network in networks])
        chosen = rng.choice(len(networks), size=len(codes), p=weights / weights.sum())
        for i in np.unique(chosen):
            x[chosen == i] = networks[i].estimator._sample_rows(codes[chosen == i], rng)
        return x

    @available_if(_has_densities)  # type: ignore[untyped-decorator]
    def impute(self, X: Any, y: Any = None) -> Any:
        """Impute missing cells by their conditional mean, or by the most probable category.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN and None mark the cells to impute.
        y : array-like of shape (n_samples,), default=None
            Their classes, where they are known; otherwise the class is summed out.

        Returns
        -------
        X_imputed : ndarray or data frame of shape (n_samples, n_features)
            By the mixture with the highest weight in the densities; a data frame like X where the
            model was fitted to one and X is one. Cells that are known are as they were.
        """
        check_is_fitted(self)
        x = encoded_rows(self, X, dtype=np.float64)
        densest = max(self._density_networks(), key=lambda network: network.density_weight)
        codes = None if y is None else class_codes(np.asarray(y), self.classes_, None)
        found = densest.estimator.impute(x, codes)
        return self.columns_.imputed(X, x, found)

    # -- description -------------------------------------------------------------------------------

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)

    def _describe(self) -> Description:
        """The members and their weights; the kernels are those of its densities."""
        members = sorted(zip(self.weights_, self.members_, strict=True), reverse=True)
        names = "; ".join(f"{name} ({weight:.2f})" for weight, name in members)
        product = "multiplied, each to the power in parentheses"
        how = product if self.pooling_ == "log_linear" else "added with the weights in parentheses"
        return Description(
            f"A pool of {plural(len(members), 'member')} for {classes_text(self)} in "
            f"{features_text(self)}, whose probabilities are {how}: {names}. "
            f"Cross-fitted log-loss {self.loss_:.3g} a row.",
            self._density_kernels(),
        )

    def leaderboard(self) -> Any:
        """What was tried, the lowest validation loss first.

        Returns
        -------
        table : pandas.DataFrame, or dict of ndarray where pandas is not installed
            ``name``, ``validation_loss`` (per row that a network was not trained on; NaN where not
            all rows were predicted), ``weight`` in the pool, ``fit_seconds``, ``predict_seconds``
            for 1,000 rows and ``outcome``.
        """
        check_is_fitted(self)
        trials = self.trials_
        weights = dict(zip(self.members_, self.weights_, strict=True))
        order = np.argsort(trials["loss"])  # NaN comes last
        table = {
            "name": trials["name"],
            "validation_loss": trials["loss"],
            "weight": np.array([weights.get(name, 0.0) for name in trials["name"]]),
            "fit_seconds": trials["seconds"],
            "predict_seconds": trials["predict_seconds"],
            "outcome": trials["outcome"],
        }
        table = {name: column[order] for name, column in table.items()}
        try:
            import pandas as pd
        except ImportError:
            return table
        return pd.DataFrame(table)

    def _density_kernels(self) -> Pool | None:
        networks = self._density_networks()
        pools: list[Any] = [describe(network.estimator).pool for network in networks]
        weights, names = (
            [getattr(n, key) for n in networks] for key in ("density_weight", "member")
        )
        return joined_pools(pools, weights, names) if pools else None


def _log_density(block: Block, networks: list[PoolNetwork]) -> Array:
    x = with_missing(block)
    parts = [n.estimator.log_density(x) + np.log(n.density_weight) for n in networks]
    return np.asarray(logsumexp(np.stack(parts), axis=0))


def _kernel_posterior(block: Block, networks: list[PoolNetwork]) -> Array:
    """P(j|x) of the kernels of all networks, one network after the other, (n, M)."""
    x = with_missing(block)
    evidence = [n.estimator.score_samples(x) + np.log(n.density_weight) for n in networks]
    share = softmax(np.stack(evidence), axis=0)  # (networks, n)
    parts = [
        n.estimator.kernel_posterior(x) * s[:, None] for n, s in zip(networks, share, strict=True)
    ]
    return np.hstack(parts)
