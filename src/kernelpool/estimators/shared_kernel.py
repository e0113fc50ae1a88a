"""Shared-kernel classifier: the scikit-learn shell of `kernelpool.networks.shared_kernel`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..arrays import logsumexp, namespace, safe_log
from ..em import Outcome
from ..errors import KernelpoolError, StarvedKernelWarning, warn
from ..inspection.describe import (
    Description,
    classes_text,
    features_text,
    gaussians_text,
    shared_pool,
    sharing_of,
    sharing_text,
    training_text,
)
from ..inspection.marginals import Marginals, MixtureParams
from ..kernels import FAMILIES, Gaussian, Kernels, NaturalParams, Product, ProductKernels
from ..networks.shared_kernel import Params, SharedKernel, TotalsByClass
from ..penalties import DISTANCES, STEPS, Overlap
from ..penalties.penalty import Subkernels
from ..rows import Block, Frame, Rows, as_rows, one_blas_thread
from ..tables.columns import Columns
from ..text import plural
from ..training.conditional import ConditionalConfig
from ..training.config import (
    FitConfig,
    KernelConfig,
    PenaltyConfig,
    PreviousFit,
    SharedKernelConfig,
    StartConfig,
    is_auto,
)
from ..training.cross_conditional import DecidingNetworks, fit_deciding
from ..training.frames import family_for, kernels_of, mixture_frame
from ..training.held_out import SampledRows, rows_apart
from ..training.monitor import CallbackSupportMixin, SweepInfo, warn_if_unfinished, with_callbacks
from ..training.prepare import (
    TrainingData,
    check_columns,
    check_degree,
    check_positive,
    check_shape,
    class_codes,
    encoded_rows,
    family_of,
    is_unlabeled,
    named_features,
    surveyed,
    training_data,
    validation_rows,
)
from ..training.search import resolve_auto
from ..training.shared_kernel import FittedNetwork, fit_shared_kernel
from ..training.stream import (
    StreamConfig,
    StreamNetwork,
    begin,
    mini_batch,
    resume,
    stream_classes,
    stream_config,
)
from .base import DensityClassifier, RowFunction, fit_monitor, log_softmax

CLOSED = 1e-8
"""Sharing at or below this is none."""


class SharedKernelClassifier(CallbackSupportMixin, TransformerMixin, DensityClassifier):  # type: ignore[misc]
    r"""Class densities as mixtures of Gaussian kernels that classes may share.

    Each class is a mixture :math:`p(x|C_k) = \sum_j \pi_{jk}\, p(x|j)` over one common pool of kernels (the probabilistic
    RBF network, PRBF). Each kernel is owned by one class; `sharing` says how freely the others may use it while training: 0
    gives one separate mixture a class, 1 the full PRBF, values between the lambda-PRBF of Titsias & Likas (2001).

    The defaults are made to classify: a few full kernels a class with a prior, trained to tell the classes apart. The network
    of the paper is `SharedKernelClassifier.prbf`; `SharedKernelClassifier.auto` chooses everything on held-out rows.

    Parameters
    ----------
    n_kernels : int, sequence of int, "auto" or None, default=None
        Number of kernels M, dealt out to the classes as evenly as it goes, or the number for each class in the order of the
        sorted labels. None takes five a class, fewer for a class with fewer than 25 distinct rows and, of full kernels, no
        more than one for 10 (d + 1) rows. "auto" grows the network from one kernel a class by splitting those whose rows are
        classified badly, as long as that helps on held-out rows.
    covariance_type : {"spherical", "diag", "full", "tied", "auto"}, default="full"
        Shape of the kernels. The spherical family is the paper's and depends on the units of the features, see `standardize`;
        the other three do not. "auto" chooses on held-out rows.
    standardize : bool, default=True
        Whether spherical kernels are round among features of variance one, so that units do not matter, or among the features
        as they are, as in the papers. Densities and parameters are in the units of the data, where such kernels are diagonal:
        `covariance_type_` is then "diag". The other families are the same either way.
    sharing : float, "learned", "auto" or array-like of shape (n_kernels, n_classes), default=0.0
        How far a class may use the kernels of the others, in [0, 1]; or a table of it for every kernel and class. "learned"
        finds the table while training (Titsias & Likas 2003): each kernel divides its attention among the classes. "auto"
        chooses one degree on held-out rows.
    owners : array-like of shape (n_kernels,), default=None
        The class (a label) that owns each kernel. None derives it from `n_kernels`.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes, in the order of the sorted labels, all alike, or by label. None takes their shares
        among the labeled rows. `with_class_prior` changes them afterwards.
    means_init, covariances_init, mixing_init : array-like, default=None
        Where to start, in the units of the data and the shapes of `means_`, `covariances_` and `mixing_`. What is not given is
        chosen by `init`.
    init : {"kmeans", "random", "mixtures"}, default="kmeans"
        How kernels are placed: by k-means in the class that owns them, at random rows of that class (the paper), or by fitting
        a separate mixture for each class from a k-means start and opening the sharing afterwards.
    n_init : int, default=1
        Number of starts; the one with the highest objective is kept.
    max_iter : int, default=200
        Most sweeps over the rows from one start.
    tol : float, default=1e-5
        EM stops when a sweep adds less than this to the objective per row.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in the data (spherical: of the
        mean variance). At 0 a kernel that collapses is an error.
    kernel_prior : {"conjugate", "auto"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel, so that kernels of few rows keep a
        width of their own and none falls to the floor. None is maximum likelihood, as in the papers. "auto" chooses on
        held-out rows.
    overlap_penalty : float or "auto", default=0.0
        Strength of the penalty on kernels whose classes lie apart (Constantinopoulos, Titsias & Likas 2002); 0 is maximum
        likelihood, the paper's tables go from 5 to 20. "auto" chooses on held-out rows.
    overlap_units : {"paper", "raw"}, default="paper"
        Whether `overlap_penalty` counts in N / (K M), rows by classes and kernels, or is the paper's alpha itself.
    overlap_distance : {"bhattacharyya", "full_bhattacharyya", "hellinger", "kullback_leibler"}, default="bhattacharyya"
        How far a class lies from a kernel; the first is the paper's.
    overlap_step : {"next", "current", "printed"}, default="next"
        Which kernels and subkernels the update (29) of the mixing weights compares, since the paper's (29) and (30) count
        sweeps differently: the new kernels and this sweep's subkernels; the kernels and subkernels of this sweep; or these
        kernels and the subkernels of the sweep before, as printed. Where EM settles, all are the same.
    split_by_class : bool, default=False
        After training, split every kernel into one for each class with rows in it, and refine these (Titsias & Likas 2002). The
        fitted network then has up to n_kernels x n_classes kernels, each of one class.
    split_anchor : float, default=100.0
        Rows' worth of belief that holds each of them near where it was split off; 0 refines by maximum likelihood, infinity
        not at all.
    acceleration : {"squarem"} or None, default="squarem"
        Extrapolate EM, keeping only steps that do not lower the objective. None is plain EM, as in the papers.
    starving : {"move", "drop", "keep"}, default="move"
        What becomes of a kernel that accounts for less than a thousandth of a row when the objective has settled: it is moved
        to the worst modeled row of its class if that raises the objective and dropped otherwise; dropped at once; or kept.
    training : {"em", "conditional"}, default="conditional"
        "em" describes each class by its density. "conditional" trains further networks, from the EM solution, to tell the
        classes apart: on log P(C|x), each stopped where the loss on rows that it has not seen is least. Probabilities and
        labels then come from these (`deciding_networks_`); `log_density`, `score_samples`, `kernel_posterior` and `sample`
        still come from the EM network.
    pull : float or "auto", default=0.0
        Share of the likelihood in the objective of conditional training: 0 is the conditional likelihood alone, 1 the
        likelihood. "auto" takes the one of 0, 0.01 and 0.1 with the least loss on held-out rows.
    n_folds : int, default=4
        Conditional networks, each of which is stopped on one fold; their probabilities are averaged. More than 20,000 rows
        train one network and stay where they live; about 10,000 are held out.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words: those whose type says so (strings, categories, booleans; of an array of Python objects,
        columns with text in them); those named, counted or marked; those of which a dict gives the words; or none. A kernel has
        a table of probabilities for each, beside a Gaussian over the numbers.
    unlabeled : int, float, str or None, default=None
        The label in `y` that marks rows without a label: -1 as in scikit-learn's semi-supervised module, NaN, a string, or
        None. Nothing is guessed: -1 is a class like any other unless it is named here.
    unlabeled_weight : float, default=1.0
        Weight of a row without a label, whose class is summed out; values below one often serve better.
    warm_start : bool, default=False
        Start from the parameters of the previous call to `fit`; what was chosen there stays chosen.
    half_life : float or None, default=None
        In `partial_fit`: rows after which half of what was seen is forgotten, for streams that drift. None forgets nothing
        but the beginning.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads. None takes as many as BLAS may, which joblib, threadpoolctl and the environment control; -1 all cores. The
        results do not depend on it.
    verbose : int, default=0
        1 shows a progress bar where `rich` is installed and a line every ten sweeps otherwise, 2 a line each sweep.
    callback : callable or None, default=None
        Called after each sweep with a `SweepInfo`; a true answer ends the fit with what has been reached. scikit-learn's own
        callbacks (`set_callbacks`, from 1.9) are honored too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_ : ndarray of shape (n_kernels, n_features)
        Centers of the kernels.
    covariances_ : ndarray
        (n_kernels,), (n_kernels, n_features), (n_kernels, n_features, n_features) or (n_features, n_features), by
        `covariance_type_`; always variances. Parameters are float64 whatever the data, predictions have the type of X.
    mixing_ : ndarray of shape (n_kernels, n_classes)
        Weight of each kernel for each class; columns sum to one.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    owners_ : ndarray of shape (n_kernels,)
        Label of the class that owns each kernel.
    n_kernels_ : int
        Number of kernels of the fitted network.
    covariance_type_ : str
        Shape of the kernels: the one that was asked for, or chosen; "diag" for spherical kernels of standardized features.
    kernel_prior_ : str or None
        The prior on the kernels, asked for or chosen.
    overlap_penalty_ : float
        Strength of the penalty, asked for or chosen.
    sharing_degree_ : float
        Degree of sharing, asked for or chosen; NaN where it is a table.
    selection_ : dict of str to ndarray
        What was tried on held-out rows where something is "auto", one entry a column: the settings, ``tempered_loss`` and how
        far it is ``behind`` the lowest (with its standard error, ``behind_error``), ``log_loss``, ``error``, ``beta`` (the
        inverse temperature), ``n_folds`` (on how many folds it was judged: what was clearly behind after one was given up) and
        ``chosen``. The guide explains them.
    sharing_ : ndarray of shape (n_kernels, n_classes)
        How far each class could use each kernel while training; the table that was learned, where it was.
    parents_ : ndarray of shape (n_kernels,)
        Which of the shared kernels each was split from; with `split_by_class` alone.
    objective_ : float
        Objective per row, equation (31), of the parameters above, in the units of the data. With `split_by_class`, that of the
        refinement: the log-likelihood, less what `split_anchor` charges for moving away.
    history_ : ndarray
        The objective of every set of parameters that was kept on the way. It never falls, except under `overlap_penalty`,
        whose steps may lower it; the best parameters are returned. With `split_by_class`, that of the refinement alone.
    n_iter_ : int
        Sweeps made by the best start.
    converged_ : bool
        Whether the objective settled.
    deciding_networks_ : list of SharedKernelClassifier
        The networks whose averaged probabilities decide; with ``training="conditional"`` alone.
    conditional_loss_ : float
        Their log-loss a row on the rows that each has not seen, and was stopped on.
    validation_log_proba_ : ndarray of shape (n_validation_samples, n_classes)
        log P(C_k|x) of the rows of `X_val`, where these stopped conditional training: of each fifth by the network as stopped
        on the others, so that no row is judged by what it has chosen. Not kept in model files.
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labeled rows, on which they were trained: where `class_prior_` differs, their
        probabilities are adjusted to it.
    columns_ : Columns
        Names of the columns, and the categories of those that hold some.
    probabilities_ : ndarray of shape (n_kernels, n_levels)
        Probability of each category in each kernel, then of all other values, column after column; where there are categories.
        `means_` and `covariances_` hold zeros and ones for these columns, which mean nothing.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions on Neural
    Networks 12(5), 2001.

    Examples
    --------
    Two classes that overlap everywhere; their density is known, and no classifier can err less than 9.7 %:

    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> classifier = SharedKernelClassifier(random_state=0).fit(X, y)
    >>> print(f"{1 - classifier.score(X_test, y_test):.1f}")
    0.1
    """

    means_: np.ndarray
    covariances_: np.ndarray
    covariance_type_: str
    mixing_: np.ndarray
    _n_kernels_asked: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [
            Interval(Integral, 1, None, closed="left"),
            "array-like",
            StrOptions({"auto"}),
            None,
        ],
        "covariance_type": [StrOptions({*FAMILIES, "auto"})],
        "standardize": ["boolean"],
        "sharing": [Real, "array-like", StrOptions({"learned", "auto"})],
        "owners": ["array-like", None],
        "class_prior": ["array-like", dict, StrOptions({"balanced"}), None],
        "means_init": ["array-like", None],
        "covariances_init": ["array-like", None],
        "mixing_init": ["array-like", None],
        "init": [StrOptions({"kmeans", "random", "mixtures"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_floor": [Interval(Real, 0, None, closed="left")],
        "kernel_prior": [StrOptions({"conjugate", "auto"}), None],
        "overlap_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "overlap_units": [StrOptions({"paper", "raw"})],
        "overlap_distance": [StrOptions(set(DISTANCES))],
        "overlap_step": [StrOptions(set(STEPS))],
        "split_by_class": ["boolean"],
        "split_anchor": [Interval(Real, 0, None, closed="both")],
        "acceleration": [StrOptions({"squarem"}), None],
        "starving": [StrOptions({"move", "drop", "keep"})],
        "training": [StrOptions({"em", "conditional"})],
        "pull": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", Columns, None],
        "unlabeled": "no_validation",
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
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
        n_kernels: int | Sequence[int] | str | None = None,
        *,
        covariance_type: str = "full",
        standardize: bool = True,
        sharing: Any = 0.0,
        owners: Any = None,
        class_prior: Any = None,
        means_init: Any = None,
        covariances_init: Any = None,
        mixing_init: Any = None,
        init: str = "kmeans",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = "conjugate",
        overlap_penalty: float | str = 0.0,
        overlap_units: str = "paper",
        overlap_distance: str = "bhattacharyya",
        overlap_step: str = "next",
        split_by_class: bool = False,
        split_anchor: float = 100.0,
        acceleration: str | None = "squarem",
        starving: str = "move",
        training: str = "conditional",
        pull: float | str = 0.0,
        n_folds: int = 4,
        categorical_features: Any = "from_dtype",
        unlabeled: Any = None,
        unlabeled_weight: float = 1.0,
        warm_start: bool = False,
        half_life: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.covariance_type = covariance_type
        self.standardize = standardize
        self.sharing = sharing
        self.owners = owners
        self.class_prior = class_prior
        self.means_init = means_init
        self.covariances_init = covariances_init
        self.mixing_init = mixing_init
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.overlap_penalty = overlap_penalty
        self.overlap_units = overlap_units
        self.overlap_distance = overlap_distance
        self.overlap_step = overlap_step
        self.split_by_class = split_by_class
        self.split_anchor = split_anchor
        self.acceleration = acceleration
        self.starving = starving
        self.training = training
        self.pull = pull
        self.n_folds = n_folds
        self.categorical_features = categorical_features
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.warm_start = warm_start
        self.half_life = half_life
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the network by EM and, with ``training="conditional"``, networks that decide from there.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best parameters reached so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are. Data
            frames and Arrow tables may hold words, see `categorical_features`.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels; see `unlabeled` for rows that have none. Or class probabilities, with a column for each class and rows that
            sum to one: a row counts as a row of each class, weighted by its probability. Classes are then the names of the
            columns of a data frame, or their positions.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which one conditional network is stopped; None cross-fits several, each stopped on a fold of X.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : SharedKernelClassifier
            The fitted estimator.
        """
        return self._fit_labels(X, y, sample_weight, X_val, y_val)

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Self:
        config = self._config()
        data = training_data(
            self,
            X,
            y,
            sample_weight,
            unlabeled=self.unlabeled,
            unlabeled_weight=self.unlabeled_weight,
        )
        self._check_words(data)
        if (
            data.levels is not None and min(data.levels) > 0
        ):  # without numbers kernels have no shape
            config = replace(config, kernel=replace(config.kernel, covariance_type="diag"))
        with named_features(data.columns):
            resolved = resolve_auto(config, data, self._say)
            network = fit_shared_kernel(
                data, resolved.config, fit_monitor(self, X, y, sample_weight)
            )
            deciding = None
            if self.training == "conditional" and network.fit.outcome is not Outcome.INTERRUPTED:
                deciding = fit_deciding(
                    data,
                    resolved.deciding,
                    ConditionalConfig(self.pull),
                    network,
                    n_folds=self.n_folds,
                    held_out=None if X_val is None else self._validation_rows(X_val, y_val, data),
                )
        if config.start.previous is None:
            self._n_kernels_asked = network.n_kernels_asked
        self.columns_ = data.columns
        self._keep(network, resolved.config, resolved.selection)
        self.weight_seen_ = data.weight
        self._keep_deciding(
            deciding, data.class_weight / data.class_weight.sum(), validated=X_val is not None
        )
        if network.starved is not None and not is_auto(
            self.n_kernels
        ):  # a network that was grown is pruned without a word
            warn(network.starved, StarvedKernelWarning)
        warn_if_unfinished(network.fit, self.max_iter)
        if resolved.interrupted:
            raise KeyboardInterrupt(
                "interrupted while settings were chosen; the best so far was fitted to all rows"
            )
        if deciding is not None and deciding.interrupted:
            raise KeyboardInterrupt(
                f"interrupted; {len(deciding.networks)} of {self.n_folds} conditional networks were kept"
            )
        return self

    @available_if(lambda self: self._can_stream())  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        r"""Learn from one mini-batch more, by stepwise EM (Cappé & Moulines 2009).

        Statistics are averaged over mini-batches with steps :math:`\gamma_t = (1 + N_t/n_t)^{-0.7}`, with :math:`N_t` the
        weight of the rows before and :math:`n_t` that of the mini-batch, or larger ones where `half_life` asks for it. The
        first call makes its start from its own rows: give it some hundreds a kernel. Kernels are born where rows of a class
        come that its density does not know, up to twice as many as at first, and dropped when they have lost their rows. A
        network that was fitted by `fit` is gone on from. Conditional training needs all rows: whatever `training` says, a
        stream is learned by EM, and the densities decide.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in memory, or torch and other array-API arrays.
        y : array-like of shape (n_samples,)
            Labels; see `unlabeled` for rows that have none.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : SharedKernelClassifier
            The fitted estimator. `objective_` is the log-likelihood a row of rows that were not yet learned from, averaged as
            the steps go; `n_iter_` counts mini-batches.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> from kernelpool.datasets import make_clouds
        >>> model = SharedKernelClassifier(12, covariance_type="full", random_state=0)
        >>> for day in range(5):
        ...     X, y = make_clouds(1000, random_state=day)
        ...     model = model.partial_fit(X, y, classes=[0, 1])
        >>> X_test, y_test = make_clouds(random_state=9)
        >>> print(f"{1 - model.score(X_test, y_test):.1f}")
        0.1
        """
        config = self._config()
        stream = stream_config(config, self.half_life)
        begun = hasattr(self, "classes_")
        labels = stream_classes(getattr(self, "classes_", None), classes)
        batch = mini_batch(
            self,
            X,
            y,
            sample_weight,
            labels,
            self.unlabeled,
            self.unlabeled_weight,
            self.n_jobs,
        )
        with one_blas_thread(), named_features(batch.columns):
            if begun:
                network = self._stream_network(stream, batch.weight).step(batch.rows, batch.probes)
            else:
                network = begin(surveyed(batch.rows, labels), config, stream, batch.probes)
        self.columns_ = batch.columns
        self._keep_stream(network, labels)
        return self

    def _can_stream(self) -> bool:
        stream_config(
            self._config(seed=0), self.half_life
        )  # asking must not draw from random_state
        return True

    def _stream_network(self, stream: StreamConfig, batch_weight: float) -> StreamNetwork:
        state = getattr(self, "_stream", None)
        if state is not None:
            return StreamNetwork(state, stream)
        network, kernels, frame = self._trained_network()
        trained, stretched = network.kernel.name, network.kernel.name != self.covariance_type_
        stream = replace(
            stream, kernel=replace(stream.kernel, covariance_type=trained, standardize=stretched)
        )
        return resume(
            kernels,
            np.asarray(self.mixing_),
            np.searchsorted(self.classes_, self.owners_),
            np.asarray(self.class_prior_),
            Frame(np.asarray(frame.origin), np.asarray(frame.unit)),
            getattr(self, "weight_seen_", batch_weight),
            getattr(self, "objective_", 0.0),
            stream,
        )

    def _keep_stream(self, network: StreamNetwork, classes: np.ndarray) -> None:
        state = network.state
        self.means_, self.covariances_ = network.in_data_units()
        self.mixing_, self.class_prior_, self.classes_ = state.mixing, network.class_prior, classes
        self.owners_, self.sharing_ = classes[state.owners], network.sharing
        self.objective_, self.history_ = state.objective, np.array([state.objective])
        self.n_iter_, self.converged_ = state.n_steps, False
        self.n_kernels_, self.covariance_type_ = (
            len(self.means_),
            network.config.kernel.type_in_data_units,
        )
        self.overlap_penalty_, self.sharing_degree_ = 0.0, network.config.sharing
        self.weight_seen_, self._stream = state.seen, state
        if not hasattr(self, "_n_kernels_asked"):
            self._n_kernels_asked = self.n_kernels_
        decided = (
            "deciding_networks_",
            "conditional_loss_",
            "class_shares_",
            "validation_log_proba_",
        )
        for name in ("selection_", "parents_", *decided):
            self.__dict__.pop(name, None)

    def _check_words(self, data: TrainingData) -> None:
        """What cannot be done with words is refused."""
        if data.levels is not None and self.covariances_init is not None:
            raise KernelpoolError(
                "covariances_init is for numbers alone, and X has columns of words; leave it out."
            )

    def _kernel(self) -> Any:
        """The family of the fitted kernels, without a floor."""
        return family_for(
            self.covariance_type_, np.zeros(self.means_.shape[1]), self.columns_.levels
        )

    def _kernels(self) -> Kernels:
        """The fitted kernels, in the units of the data."""
        return kernels_of(self.means_, self.covariances_, getattr(self, "probabilities_", None))

    def _validation_rows(self, X_val: Any, y_val: Any, data: TrainingData) -> SampledRows:
        x, codes = validation_rows(self, X_val, y_val, data.columns, data.classes)
        return rows_apart(x.astype(np.float64), codes, data)

    def _keep_deciding(
        self, deciding: DecidingNetworks | None, class_shares: np.ndarray, *, validated: bool
    ) -> None:
        for name in (
            "deciding_networks_",
            "conditional_loss_",
            "class_shares_",
            "validation_log_proba_",
        ):
            self.__dict__.pop(name, None)
        if deciding is not None and deciding.networks:  # no row of too few could be held out
            self.deciding_networks_ = [
                type(self).from_parameters(
                    n.means,
                    n.covariances,
                    n.mixing,
                    n.class_prior,
                    self.classes_,
                    self.covariance_type_,
                )
                for n in deciding.networks
            ]
            for network, fitted in zip(self.deciding_networks_, deciding.networks, strict=True):
                self._lend_words(network, fitted.probability)
            self.conditional_loss_, self.class_shares_ = deciding.loss, class_shares
            if validated:
                self.validation_log_proba_ = deciding.networks[0].judged

    def _lend_words(self, other: "SharedKernelClassifier", probability: np.ndarray | None) -> None:
        """Another network over the same columns has the same categories."""
        other.columns_ = self.columns_
        if probability is not None:
            other.probabilities_ = probability

    def _config(self, seed: int | None = None) -> SharedKernelConfig:
        """The parameters as records."""
        if self.split_by_class and self.warm_start:
            raise KernelpoolError(
                "warm_start cannot go on from a network that was split; set split_by_class=False."
            )
        if not hasattr(self.sharing, "__len__"):
            check_degree(self.sharing, "sharing")
        several = hasattr(self.n_kernels, "__len__") and not isinstance(self.n_kernels, str)
        return SharedKernelConfig(
            KernelConfig(
                self.covariance_type,
                self.covariance_floor,
                self.kernel_prior,
                bool(self.standardize),
            ),
            StartConfig(
                list(self.n_kernels) if several else self.n_kernels,  # type: ignore[arg-type]
                self.owners,
                self.init,
                self.n_init,
                self.means_init,
                self.covariances_init,
                self.mixing_init,
                None,
                self._previous() if self.warm_start and hasattr(self, "means_") else None,
            ),
            self.sharing,
            PenaltyConfig(
                self.overlap_penalty, self.overlap_units, self.overlap_distance, self.overlap_step
            ),
            FitConfig(
                self.max_iter,
                self.tol,
                self.acceleration is not None,
                self.starving,
                int(check_random_state(self.random_state).randint(2**31)) if seed is None else seed,
                self.n_jobs,
            ),
            self.class_prior,
            self.split_anchor if self.split_by_class else None,
        )

    def _previous(self) -> PreviousFit:
        return PreviousFit(
            self.means_,
            self.covariances_,
            self.mixing_,
            self.owners_,
            self.classes_,
            self._n_kernels_asked,
            self._trained_type(),
            getattr(self, "kernel_prior_", None),
            self.overlap_penalty_,
            self.sharing_degree_,
            getattr(self, "selection_", None),
            getattr(self, "probabilities_", None),
        )

    def _keep(
        self,
        network: FittedNetwork,
        config: SharedKernelConfig,
        selection: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.__dict__.pop("_stream", None)
        self.classes_, self.class_prior_ = network.classes, network.class_prior
        self.means_, self.covariances_, self.mixing_ = (
            network.means,
            network.covariances,
            network.mixing,
        )
        self.owners_, self.sharing_ = network.classes[network.owners], network.sharing
        self.history_, self.objective_ = network.history, network.objective
        self.n_iter_ = network.fit.n_sweeps
        self.converged_ = network.fit.outcome is Outcome.CONVERGED
        self.n_kernels_, self.covariance_type_ = len(self.means_), network.covariance_type
        self.kernel_prior_, self.overlap_penalty_ = (
            config.kernel.prior,
            float(config.penalty.strength),
        )
        self.sharing_degree_ = (
            float("nan") if hasattr(config.sharing, "__len__") else float(config.sharing)
        )
        kept = {
            "selection_": selection,
            "parents_": network.parents,
            "probabilities_": network.probability,
        }
        for name, value in kept.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"auto: {line}")

    @classmethod
    def prbf(cls, n_kernels: int | Sequence[int] | str | None = None, **parameters: Any) -> Self:
        """The network of Titsias & Likas (2001): spherical kernels that all classes share, by maximum likelihood.

        Parameters
        ----------
        n_kernels : int, sequence of int, "auto" or None, default=None
            Number of kernels, as in the class.
        **parameters
            Any parameter of the class; what is given here takes the place of the paper's.

        Returns
        -------
        model : SharedKernelClassifier
            Not yet fitted.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> SharedKernelClassifier.prbf(12, random_state=0)
        SharedKernelClassifier(covariance_type='spherical', kernel_prior=None,
                               n_kernels=12, random_state=0, sharing=1.0,
                               standardize=False, training='em')
        """
        paper = {
            "covariance_type": "spherical",
            "standardize": False,
            "sharing": 1.0,
            "kernel_prior": None,
            "training": "em",
        }
        return cls(n_kernels, **{**paper, **parameters})

    @classmethod
    def auto(cls, **parameters: Any) -> Self:
        """The recommended setting: shape and number of kernels, sharing and penalty are all chosen on held-out rows.

        Parameters
        ----------
        **parameters
            Any parameter of the class; what is given here is not chosen.

        Returns
        -------
        model : SharedKernelClassifier
            Not yet fitted.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> from kernelpool.datasets import make_clouds
        >>> X, y = make_clouds(1000, random_state=0)
        >>> model = SharedKernelClassifier.auto(random_state=0).fit(X, y)
        >>> print(model.covariance_type_)
        diag
        """
        chosen = dict.fromkeys(
            ("n_kernels", "covariance_type", "sharing", "kernel_prior", "overlap_penalty"), "auto"
        )
        return cls(**{**chosen, **parameters})

    @classmethod
    def from_parameters(
        cls,
        means: Any,
        covariances: Any,
        mixing: Any,
        class_prior: Any,
        classes: Any,
        covariance_type: str | None = None,
    ) -> Self:
        """A ready model from known parameters, without data.

        Parameters
        ----------
        means : array-like of shape (n_kernels, n_features)
            Centers.
        covariances : array-like
            Variances in the shape of one of the families.
        mixing : array-like of shape (n_kernels, n_classes)
            Weights; each column must sum to one.
        class_prior : array-like of shape (n_classes,)
            Prior probabilities; they must sum to one.
        classes : array-like of shape (n_classes,)
            Labels, sorted.
        covariance_type : str or None, default=None
            The family; None tells it by the shape of `covariances`.

        Returns
        -------
        model : SharedKernelClassifier
            Ready to predict and to be sampled.

        Examples
        --------
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0], [4.0]],
        ...     covariances=[1.0, 1.0],
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.99, 0.01],
        ...     classes=["a", "b"],
        ... )
        >>> print(model.predict_proba([[2.0]]).round(2))
        [[0.99 0.01]]
        """
        means = check_array(means, dtype=np.float64, input_name="means")
        covariances = check_array(
            covariances, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name="covariances"
        )
        mixing = check_array(mixing, dtype=np.float64, input_name="mixing")
        prior = check_array(
            class_prior, dtype=np.float64, ensure_2d=False, input_name="class_prior"
        )
        labels = np.asarray(classes)
        family = family_of(covariances, means.shape, covariance_type)
        check_positive("covariances", covariances, family)
        check_shape("mixing", mixing, (len(means), len(labels)))
        check_shape("class_prior", prior, (len(labels),))
        check_columns("mixing", mixing)
        check_columns("class_prior", prior[:, None])
        if (np.unique(labels) != labels).any() if len(np.unique(labels)) == len(labels) else True:
            raise KernelpoolError(f"classes must be distinct and sorted; got {labels.tolist()}.")
        model = cls(len(means), covariance_type=family)
        model._n_kernels_asked = model.n_kernels_ = len(means)
        model.covariance_type_, model.kernel_prior_ = family, None
        model.overlap_penalty_, model.sharing_degree_ = 0.0, 1.0
        model.classes_, model.class_prior_ = labels, prior
        model.means_, model.covariances_, model.mixing_ = means, covariances, mixing
        model.owners_ = labels[np.argmax(mixing * prior, axis=1)]
        model.columns_ = Columns.numbers(means.shape[1])
        return model

    # -- what a fitted network says ---------------------------------------------------------------------------------

    def _network(self, frame: Frame | None = None) -> tuple[SharedKernel, Kernels, Frame]:
        """The fitted network, its kernels in a frame (their own, if none is given), and that frame."""
        kernel = self._kernel()
        kernels = self._kernels()
        if frame is None:
            share = self.mixing_ @ self.class_prior_
            frame = mixture_frame(kernel, kernels, share / share.sum())
        return SharedKernel(kernel, np.ones_like(self.mixing_)), kernel.into(kernels, frame), frame

    def _trained_type(self) -> str:
        """The family that the kernels had among the features as training saw them."""
        asked = self.covariance_type
        if is_auto(asked) and hasattr(self, "selection_"):
            asked = str(self.selection_["covariance_type"][np.argmax(self.selection_["chosen"])])
        words_alone = min(self.columns_.levels) > 0
        stretched = (
            self.standardize and not words_alone and FAMILIES[asked].scaled == self.covariance_type_
        )
        return asked if stretched else self.covariance_type_

    def _trained_network(self) -> tuple[SharedKernel, Kernels, Frame]:
        """The network of `_trained_type`, its kernels in a frame in which they are of that family, and that frame."""
        trained = self._trained_type()
        if trained == self.covariance_type_:
            return self._network()
        network, _, frame = self._network()
        # round among standardized features, kernels have variances that differ by a factor alone: the squares of the units
        numbers = np.array(self.columns_.levels) == 0
        unit = np.sqrt(self.covariances_[0])
        unit = np.where(numbers, unit * np.exp(np.mean(np.log(frame.unit / unit)[numbers])), 1.0)
        kernel = family_for(trained, np.zeros(len(unit)), self.columns_.levels)
        frame = Frame(frame.origin, unit)
        return (
            SharedKernel(kernel, network.sharing),
            kernel.unstretched(self._kernels(), frame),
            frame,
        )

    def _density(self, rows: Rows) -> RowFunction:
        network, kernels, frame = self._network()
        natural_params = network.kernel.natural_params(kernels, rows.eps)
        framed = rows.framed(
            frame,
            natural_params.weight.shape[0]
            + natural_params.weight.shape[1]
            + 2 * len(self.classes_),
        )
        volume = (frame.log_volume, np.log(frame.unit))
        return RowFunction(framed, _log_density, (network, natural_params, self.mixing_, *volume))

    def _scores(self, rows: Rows) -> RowFunction:
        deciding = getattr(self, "deciding_networks_", None)
        if not deciding:
            return self._joint(rows)
        _, _, frame = self._network()
        parts = [network._network(frame) for network in deciding]
        members = tuple(
            (
                part,
                part.kernel.natural_params(kernels, rows.eps),
                network.mixing_,
                safe_log(network.class_prior_),
            )
            for network, (part, kernels, _) in zip(deciding, parts, strict=True)
        )
        width = sum(max(member[1].weight.shape) for member in members[:1]) + 2 * len(self.classes_)
        params = members, self._log_prior_shift(), safe_log(self.class_prior_)
        return RowFunction(rows.framed(frame, width), _average_log_proba, params)

    def _log_prior_shift(self) -> np.ndarray:
        """What other class priors than those of the training rows add to log P(C_k|x), (K,)."""
        shares = np.asarray(
            self.class_shares_
        )  # of a class without weight nothing is known that could be shifted
        return np.asarray(safe_log(self.class_prior_) - np.log(np.where(shares > 0, shares, 1.0)))

    def _marginals(self) -> Marginals:
        network, kernels, frame = self._network()
        deciding = [
            (member, *member._network(frame)[:2])
            for member in getattr(self, "deciding_networks_", ())
        ]
        return Marginals(
            frame,
            (MixtureParams(network.kernel, kernels, self.mixing_),),
            np.zeros(1),
            safe_log(self.class_prior_),
            tuple(
                (MixtureParams(part.kernel, inside, member.mixing_), safe_log(member.class_prior_))
                for member, part, inside in deciding
            ),
            self._log_prior_shift() if deciding else 0.0,
        )

    def _posterior(self, rows: Rows) -> RowFunction:
        density = self._density(rows)
        network, natural_params, mixing, *_ = density.params
        return RowFunction(
            density.rows, _kernel_posterior, (network, natural_params, mixing, self.class_prior_)
        )

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        network, kernels, frame = self._network()
        x = np.empty((len(codes), self.means_.shape[1]))
        chosen = np.empty(len(codes), int)
        for k in range(len(self.classes_)):
            mine = codes == k
            chosen[mine] = rng.choice(
                len(self.mixing_), size=mine.sum(), p=self.mixing_[:, k] / self.mixing_[:, k].sum()
            )
        for j in np.unique(chosen):
            mine = chosen == j
            x[mine] = network.kernel.sample(kernels, j, mine.sum(), rng)
        outside: np.ndarray = frame.outside(x)
        return outside

    # -- what is missing --------------------------------------------------------------------------------------------

    def impute(
        self, X: Any, y: Any = None, *, n_draws: int | None = None, random_state: Any = None
    ) -> np.ndarray:
        r"""Fill missing cells by what the model believes of them.

        .. math:: E[x_h \mid x_o] = \sum_j P(j \mid x_o)\, (\mu_{jh} + \Sigma_{jho} \Sigma_{joo}^{-1} (x_o - \mu_{jo}))

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN marks the cells to fill.
        y : array-like of shape (n_samples,), default=None
            Their classes, where they are known; otherwise the class is summed out.
        n_draws : int or None, default=None
            How many fillings to draw from the conditional density of the missing cells, for multiple imputation; None gives
            the conditional mean.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses the estimator's own `random_state`.

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features) or (n_draws, n_samples, n_features)
            Cells that are known are as they were. With columns of words, objects: a missing word is the most probable one, or
            one that is drawn, None where that is any other value.

        Examples
        --------
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0, 0.0], [4.0, 8.0]],
        ...     covariances=[[[1.0, 0.5], [0.5, 1.0]]] * 2,
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.5, 0.5],
        ...     classes=["a", "b"],
        ... )
        >>> print(model.impute([[0.5, np.nan], [4.0, np.nan]], ["a", "b"]))
        [[0.5  0.25]
         [4.   8.  ]]
        """
        check_is_fitted(self)
        x = encoded_rows(self, X, dtype=np.float64)
        codes = (
            np.full(len(x), -1)
            if y is None
            else class_codes(np.asarray(y), self.classes_, self.unlabeled)
        )
        if n_draws is None:
            return self.columns_.decode(self._filled(x, codes))
        rng = check_random_state(self.random_state if random_state is None else random_state)
        draws = [
            self._filled(x, codes, rng.uniform(size=len(x)), rng.normal(size=x.shape))
            for _ in range(n_draws)
        ]
        arrays = replace(self.columns_, frame=None)
        return np.stack([arrays.decode(draw) for draw in draws])

    def transform(self, X: Any) -> np.ndarray:
        """Fill missing cells as `impute` does, the class summed out: a step of a pipeline before a model that takes no gaps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
            Conditional means of numbers, the most probable words.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from kernelpool.datasets import make_ripley
        >>> X, y = make_ripley(random_state=0)
        >>> X[::3, 1] = np.nan
        >>> filler = SharedKernelClassifier(training="em", random_state=0)
        >>> model = make_pipeline(filler, LogisticRegression()).fit(X, y)
        >>> print(f"{model.score(X, y):.1f}")
        0.8
        """
        return self.impute(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of what `transform` makes: those of the features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names, where the model knows none.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)

    def _filled(
        self,
        x: np.ndarray,
        codes: np.ndarray,
        pick: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> np.ndarray:
        """Rows in NumPy with their missing cells filled; see `SharedKernel.fill`."""
        network, kernels, frame = self._network()
        natural_params = network.kernel.natural_params(kernels, float(np.finfo(x.dtype).eps))
        log_share = safe_log(
            np.column_stack([self.mixing_, self.mixing_ @ self.class_prior_])
        )  # the last for any class
        rows = as_rows(x, np.arange(len(x)), n_jobs=self.n_jobs).framed(
            frame, sum(natural_params.weight.shape)
        )
        filled = rows.each(_fill, network, natural_params, log_share, codes, pick, noise)
        return np.where(np.isnan(x), frame.outside(np.asarray(filled)), x)

    def marginal(self, features: Sequence[Any]) -> "SharedKernelClassifier":
        """The model of some of the features: the others are integrated out.

        Parameters
        ----------
        features : sequence of int or str
            Positions, or names where the model knows them.

        Returns
        -------
        model : SharedKernelClassifier
            Of these features alone, in the order given.
        """
        check_is_fitted(self)
        at = self._positions(features, "features")
        kernel = self._kernel()
        family, kernels = kernel.marginal(self._kernels(), at)
        return self._model_of(at, family, kernels, self.mixing_, self.class_prior_)

    def conditional(self, x: Any, given: Sequence[Any] | None = None) -> "SharedKernelClassifier":
        """The model of the other features once some are known, for one row: its class priors are P(C_k|known).

        Parameters
        ----------
        x : array-like of shape (n_features,)
            One row.
        given : sequence of int or str or None, default=None
            The features that count as known, by position or name; None takes those that are not missing in `x`.

        Returns
        -------
        model : SharedKernelClassifier
            Of the features that are not given. Its `sample`, `means_` and `log_density` say what they are likely to be, its
            `class_prior_` which class.

        Examples
        --------
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0, 0.0], [4.0, 8.0]],
        ...     covariances=[[[1.0, 0.5], [0.5, 1.0]]] * 2,
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.5, 0.5],
        ...     classes=["a", "b"],
        ... )
        >>> known = model.conditional([2.0, np.nan])
        >>> print(known.class_prior_, known.means_.ravel(), known.covariances_.ravel())
        [0.5 0.5] [1. 7.] [0.75 0.75]
        """
        check_is_fitted(self)
        levels = self.columns_.levels
        row = self.columns_.encode(_one_row(x))[0] if any(levels) else np.asarray(x, np.float64)
        check_shape("x", row, (self.n_features_in_,))
        at = (
            np.flatnonzero(~np.isnan(row)).tolist()
            if given is None
            else self._positions(given, "given")
        )
        rest = [i for i in range(self.n_features_in_) if i not in at]
        if not rest or not np.isfinite(row[at]).all():
            what = (
                "known values of all features in `given`" if rest else "a feature that is not given"
            )
            raise KernelpoolError(
                f"conditional needs {what}; got {row.tolist()} and given={list(at)}."
            )
        kernel = self._kernel()
        holed = np.where(np.isin(np.arange(len(row)), at), row, np.nan)[None, :]
        network, inside, frame = self._network()
        natural_params = kernel.natural_params(inside, float(np.finfo(np.float64).eps))
        log_kernel = (
            as_rows(holed).framed(frame, 64).each(_by_kernel, network, natural_params)[0]
        )  # (M,)
        joint = np.exp(log_kernel - log_kernel.max())[:, None] * self.mixing_
        of_class = joint.sum(axis=0)
        mixing = np.where(of_class > 0, joint / np.where(of_class > 0, of_class, 1.0), self.mixing_)
        prior = of_class * self.class_prior_
        family, kernels = kernel.given(self._kernels(), at, rest, row[at])
        return self._model_of(rest, family, kernels, mixing, prior / prior.sum())

    def _positions(self, features: Sequence[Any], name: str) -> list[int]:
        """Features by position or name, as positions."""
        names = {str(n): i for i, n in enumerate(getattr(self, "feature_names_in_", ()))}
        known: dict[Any, int] = {**names, **{i: i for i in range(self.n_features_in_)}}
        unknown = [f for f in features if f not in known]
        if unknown or not len(features):
            found = f"got {unknown[0]!r}" if unknown else "got none"
            raise KernelpoolError(
                f"{name} must be positions below {self.n_features_in_} or names of features; {found}."
            )
        return [known[f] for f in features]

    def _model_of(
        self, at: list[int], family: Any, kernels: Any, mixing: np.ndarray, class_prior: np.ndarray
    ) -> "SharedKernelClassifier":
        model = SharedKernelClassifier.from_parameters(
            kernels.mean, kernels.covariance, mixing, class_prior, self.classes_, family.name
        )
        model.columns_ = self.columns_.select(at)
        if isinstance(kernels, ProductKernels):
            model.probabilities_ = np.asarray(kernels.probability)
        return model

    # -- model choice -----------------------------------------------------------------------------------------------

    def n_parameters(self) -> int:
        """Number of free parameters: kernels, mixing weights that are not fixed at zero, and class priors."""
        check_is_fitted(self)
        n_kernels, n_classes = self.mixing_.shape
        kernel = self._trained_network()[0].kernel
        # a weight that learned sharing has all but closed is no longer free
        free = getattr(self, "sharing_", np.ones_like(self.mixing_)) > CLOSED
        n_mixing = int(free.sum()) - n_classes
        return kernel.n_parameters(n_kernels, self.n_features_in_) + n_mixing + n_classes - 1

    @property
    def class_posterior_(self) -> np.ndarray:
        """P(C_k|j), equation (22): the share of each class in each kernel, (n_kernels, n_classes)."""
        check_is_fitted(self)
        joint = self.mixing_ * self.class_prior_
        of_kernel = joint.sum(axis=1, keepdims=True)
        return joint / np.where(of_kernel > 0, of_kernel, 1.0)

    def kernel_overlap(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        r"""How far the classes of each kernel lie apart (Constantinopoulos, Titsias & Likas 2002, equation (16)).

        .. math:: \delta_j = \sum_k P(C_k \mid j)\, \beta_{jk}

        with :math:`\beta_{jk}` the Bhattacharyya distance of kernel j from what the rows of class k alone make of it. Zero
        where the classes overlap completely, and where a kernel serves one class alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, such as those of `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        overlap : ndarray of shape (n_kernels,)
            :math:`\delta_j`, which the overlap penalty adds up.
        """
        kernel, kernels, subkernels, _ = self._subkernels(X, y, sample_weight)
        distance = Overlap(1.0).exact(kernel, kernels, subkernels)
        return np.asarray(np.sum(subkernels.posterior * distance, axis=1))

    def subkernels(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Each kernel as each class alone sees it (Constantinopoulos, Titsias & Likas 2002, equations (11), (12)).

        .. math::

            \mu_{jk} = \frac{\sum_{x \in C_k} h_{jk}(x)\, x}{\sum_{x \in C_k} h_{jk}(x)}, \qquad
            \Sigma_{jk} = \frac{\sum_{x \in C_k} h_{jk}(x) (x - \mu_{jk})(x - \mu_{jk})'}{\sum_{x \in C_k} h_{jk}(x)}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, such as those of `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        means : ndarray of shape (n_kernels, n_classes, n_features)
            :math:`\mu_{jk}`; the mean of the kernel itself where a class has no rows in it.
        covariances : ndarray of shape (n_kernels, n_classes, ...)
            :math:`\Sigma_{jk}`, by `covariance_type`; of tied kernels one matrix a class, (n_classes, n_features, n_features).
        """
        kernel, _, subkernels, frame = self._subkernels(X, y, sample_weight)
        outside = kernel.out_of if kernel.name == self.covariance_type_ else kernel.stretched
        if not isinstance(kernel, Gaussian):
            raise KernelpoolError(
                "subkernels has means and covariances of numbers; this model holds words besides."
            )
        by_class = [outside(part, frame) for part in subkernels.kernels]
        common = kernel.shape(1, self.n_features_in_) == kernel.shape(
            2, self.n_features_in_
        )  # one matrix for all kernels
        means = np.stack([np.asarray(part.mean) for part in by_class], axis=1)
        return means, np.stack(
            [np.asarray(part.covariance) for part in by_class], axis=0 if common else 1
        )

    def _subkernels(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Subkernels, Frame]:
        """The family, the kernels and their subkernels by some labeled rows, in a frame, and that frame."""
        check_is_fitted(self)
        X = encoded_rows(self, X)
        codes = class_codes(np.asarray(y), self.classes_, self.unlabeled)
        plain, kernels, frame = self._trained_network()
        kernel = plain.kernel
        if not isinstance(kernel, Gaussian | Product):
            raise KernelpoolError(
                f"The overlap is a distance of Gaussian kernels; covariance_type={self.covariance_type_!r} has none."
            )
        network = SharedKernel(kernel, plain.sharing, Overlap(1.0))
        weight = None if sample_weight is None else np.asarray(sample_weight, float)
        rows = as_rows(X, codes, weight).framed(frame, 64)
        params = Params(kernels, self.mixing_, self.class_prior_)
        e_step_params = network.e_step_params(params, rows.eps)
        totals = network.totals(rows, e_step_params)
        assert isinstance(totals, TotalsByClass)  # what a penalty by class asks for
        return kernel, kernels, network.subkernels(totals, params, e_step_params), frame

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """log p(X, y) under the model, equation (8); rows marked by `unlabeled` count with their class summed out.

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
        log_likelihood : float
            Summed over the rows.
        """
        check_is_fitted(self)
        labels = np.asarray(y)
        unlabeled = is_unlabeled(labels, self.unlabeled)
        unknown = set(labels[~unlabeled].tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(
                f"y contains labels that were not seen in fit: {sorted(map(str, unknown))[:5]}."
            )
        codes = class_codes(labels, self.classes_, self.unlabeled)
        with np.errstate(divide="ignore"):
            joint = np.asarray(self.log_density(X)) + np.log(self.class_prior_)
        known = joint[np.arange(len(codes)), np.maximum(codes, 0)]
        by_row = np.where(codes < 0, np.logaddexp.reduce(joint, axis=1), known)
        return float(by_row.sum() if sample_weight is None else np.asarray(sample_weight) @ by_row)

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, -2 log p(X, y) + (number of parameters) log n: the lower the better.

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
        bic : float
            The criterion.
        """
        n = len(y) if sample_weight is None else float(np.sum(sample_weight))
        return -2 * self.log_likelihood(X, y, sample_weight) + self.n_parameters() * float(
            np.log(n)
        )

    def aic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Akaike information criterion, -2 log p(X, y) + 2 (number of parameters): the lower the better.

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
        aic : float
            The criterion.
        """
        return -2 * self.log_likelihood(X, y, sample_weight) + 2 * self.n_parameters()

    def _describe(self) -> Description:
        n = plural(len(self.means_), f"{gaussians_text(self)} Gaussian kernel")
        split = ", split by class in the end," if self.split_by_class else ""
        return Description(
            f"{n} {sharing_text(sharing_of(self))} {classes_text(self)}{split} in "
            f"{features_text(self)}{training_text(self)}",
            shared_pool(self),
        )


def _log_density(
    block: Block,
    network: SharedKernel,
    natural_params: NaturalParams,
    mixing: Any,
    log_volume: float,
    log_unit: Any,
) -> Any:
    return network.log_density(block, natural_params, mixing) - volume_of(
        block, log_volume, log_unit
    )


def _by_kernel(block: Block, network: SharedKernel, natural_params: NaturalParams) -> Any:
    return network.by_kernel(block, natural_params).T


def _one_row(x: Any) -> Any:
    """One row as a table of one row."""
    if hasattr(x, "to_frame"):  # of pandas
        return x.to_frame().T
    return x if hasattr(x, "shape") and len(x.shape) == 2 else np.asarray(x, dtype=object)[None, :]


def _fill(
    block: Block,
    network: SharedKernel,
    natural_params: NaturalParams,
    log_share: Any,
    codes: Any,
    pick: Any,
    noise: Any,
) -> Any:
    """Rows whose `y` are their positions, filled."""
    at = block.y
    drawn = (None, None) if pick is None else (pick[at], noise[at, :])
    return network.fill(block, natural_params, log_share[:, codes[at]], *drawn)


def volume_of(block: Block, log_volume: float, log_unit: Any) -> Any:
    """What the frame adds to log-densities: `log_volume`, or, where cells are missing, that of the known ones, (n, 1)."""
    return log_volume if block.missing is None else (block.missing.observed @ log_unit)[:, None]


def _average_log_proba(
    block: Block, members: tuple[Any, ...], log_prior_ratio: Any, log_prior: Any
) -> Any:
    """The log of the mean P(C_k|x) of several networks, adjusted to other class priors, (n, K).

    Their own priors were moved to decide better; of a row of which nothing is known the class priors are all there is to say.
    """
    xp = namespace(block.x)
    log_proba = [
        log_softmax(network.log_density(block, natural_params, mixing) + own_prior)
        for network, natural_params, mixing, own_prior in members
    ]
    found = logsumexp(xp.stack(log_proba), axis=0) + log_prior_ratio
    if block.missing is None:
        return found
    nothing = xp.sum(block.missing.observed, axis=1, keepdims=True) == 0  # (n, 1)
    return xp.where(nothing, log_prior + xp.zeros_like(found), found)


def _kernel_posterior(
    block: Block,
    network: SharedKernel,
    natural_params: NaturalParams,
    mixing: Any,
    class_prior: Any,
) -> Any:
    return network.kernel_posterior(block, natural_params, mixing, class_prior)
