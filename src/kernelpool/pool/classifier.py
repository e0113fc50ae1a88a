"""The pooled classifier."""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..base.classifier import ArrayFunction, DensityClassifier, RowFunction
from ..base.constraints import N_JOBS, POSITIVE, PRIOR
from ..data.door import encoded_rows, on_host, training_data
from ..data.labels import class_codes, class_prior_for, is_matrix
from ..inspection.description import (
    Description,
    classes_text,
    describe,
    features_text,
    joined_tables,
)
from ..inspection.predictions import Predictions
from ..rows import as_rows
from ..text import plural
from .combine import POOLINGS
from .fit import PoolProgress, PoolSettings, fit_pool
from .members import SETS
from .onnx import to_graph


def _has_densities(model: "PooledClassifier") -> bool:
    """Whether a pool has mixtures; one that is not fitted may come to have some."""
    return "_fitted" not in vars(model) or bool(model._fitted.density_networks)


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
        "time_limit": [*POSITIVE, None],
        "pooling": [StrOptions({"auto", *POOLINGS})],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "class_prior": PRIOR,
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
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
        (table,) = indexable(on_host(X))
        settings = self._settings(
            PoolSettings,
            class_prior=class_prior_for(self.class_prior, data.classes, data.class_share),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        self._fitted, fit = fit_pool(data, table, settings, self._report_trial)
        fit.warn_if_unfinished(int(data.n_rows))
        return self

    def _report_trial(self, trial: PoolProgress) -> None:
        if self.verbose:
            print(
                f"{trial.name}: held-out loss {trial.loss:.4f}, {trial.outcome}, "
                f"{trial.seconds:.1f} s; pool {trial.pool_loss:.4f}; {len(trial.left)} left"
            )
        if self.callback is not None:
            self.callback(trial)

    # -- probabilities -----------------------------------------------------------------------------

    def _rows(self, X: Any) -> tuple[np.ndarray, Any]:
        """Encoded rows, and the table that they were."""
        return encoded_rows(self, X), on_host(X)

    def _discriminative(self, rows: tuple[np.ndarray, Any]) -> ArrayFunction:
        x, table = rows
        return ArrayFunction(partial(self._fitted.scores, np.asarray(x, np.float64), table))

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Predictions:
        dense = _has_densities(self)
        return super()._predictions(X, score and dense, log_density and dense)

    # -- densities ---------------------------------------------------------------------------------

    log_density = available_if(_has_densities)(DensityClassifier.log_density)
    score_samples = available_if(_has_densities)(DensityClassifier.score_samples)
    kernel_posterior = available_if(_has_densities)(DensityClassifier.kernel_posterior)
    sample = available_if(_has_densities)(DensityClassifier.sample)

    def _density(self, rows: tuple[np.ndarray, Any]) -> RowFunction:
        return super()._density(as_rows(rows[0], n_jobs=self.n_jobs))  # type: ignore[no-any-return]

    def _posterior(self, rows: tuple[np.ndarray, Any]) -> RowFunction:
        return super()._posterior(as_rows(rows[0], n_jobs=self.n_jobs))  # type: ignore[no-any-return]

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
        x = encoded_rows(self, X, dtype=np.float64)
        densest = max(self._fitted.density_networks, key=lambda network: network.density_weight)
        codes = None if y is None else class_codes(np.asarray(y), self.classes_, None)
        return self.columns_.imputed(X, x, densest.estimator.impute(x, codes))

    # -- description -------------------------------------------------------------------------------

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)

    def _describe(self) -> Description:
        """The members and their weights; the kernels are those of its densities."""
        members = sorted(zip(self.weights_, self.members_, strict=True), reverse=True)
        names = "; ".join(f"{name} ({weight:.2f})" for weight, name in members)
        product = "multiplied, each to the power in parentheses"
        networks = self._fitted.density_networks
        tables: list[Any] = [describe(network.estimator).kernels for network in networks]
        weights = [network.density_weight for network in networks]
        of_member = [network.member for network in networks]
        how = product if self.pooling_ == "log_linear" else "added with the weights in parentheses"
        return Description(
            f"A pool of {plural(len(members), 'member')} for {classes_text(self)} in "
            f"{features_text(self)}, whose probabilities are {how}: {names}. "
            f"Cross-fitted log-loss {self.loss_:.3g} a row.",
            joined_tables(tables, weights, of_member) if networks else None,
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
