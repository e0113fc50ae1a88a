"""Shared-kernel classifier: the scikit-learn shell of `kernelpool.mixtures.network`."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import COUNT, N_JOBS, NOT_NEGATIVE, PRIOR
from ..base.monitor import (
    CallbackSupportMixin,
    FitMonitor,
    SweepInfo,
    warn_if_unfinished,
    with_callbacks,
)
from ..data.door import TrainingData, surveyed, training_data, validation_rows
from ..data.folds import SampledRows, row_keys
from ..data.labels import check_columns, class_prior_for, given_array
from ..em import Outcome
from ..errors import EmptyKernelWarning, KernelpoolError, warn
from ..kernels import FAMILIES
from ..penalties import Overlap
from ..rows import one_blas_thread
from ..tables.columns import Columns
from .conditional import fit_discriminative
from .fit import (
    MixtureSettings,
    Training,
    as_record,
    continued,
    fit_shared_kernel,
    is_auto,
    split_by_class,
)
from .fitted import ClassDensities
from .fitted_classifier import FittedMixture
from .search import FIRST, choose_settings
from .start import Start, check_positive, family_of, named_features
from .stream import begin, check_settings, continued_stream, mini_batch, stream_classes


class SharedKernelClassifier(  # type: ignore[misc]
    CallbackSupportMixin, FittedMixture
):
    r"""Class densities as mixtures of Gaussian kernels that classes may share.

    Each class is a mixture :math:`p(x|C_k) = \sum_j \pi_{jk}\, p(x|j)` over one common pool of
    kernels (the probabilistic RBF network, PRBF). Each kernel is owned by one class; `sharing` says
    how freely the others may use it while training: 0 gives one separate mixture a class, 1 the
    full PRBF, values between the lambda-PRBF of Titsias & Likas (2001).

    The defaults are made to classify: a few full kernels a class with a prior, trained to tell the
    classes apart. The network of the paper is `SharedKernelClassifier.prbf`;
    `SharedKernelClassifier.auto` chooses everything on held-out rows.

    Parameters come in groups: the usual ones, from `n_kernels` to `n_jobs`; the start, `init` and
    `warm_start`; what keeps kernels from collapsing, from `kernel_prior` to `standardize`; sharing
    and overlap, the subjects of the papers; and how long training runs and what it shows, from
    `max_iter` on.

    Parameters
    ----------
    n_kernels : int, sequence of int, "auto" or None, default=None
        Number of kernels M, dealt out to the classes as evenly as possible, or the number for each
        class in the order of the sorted labels. None takes five a class, fewer for a class with
        fewer than 25 distinct rows and, of full kernels, no more than one for 10 (d + 1) rows.
        "auto" chooses on held-out rows.
    covariance_type : {"spherical", "diag", "full", "tied", "auto"}, default="full"
        Shape of the kernels. The spherical family is the paper's and depends on the units of the
        features, see `standardize`; the other three do not. "auto" chooses on held-out rows.
    training : {"conditional", "em"} or Training, default="conditional"
        "em" fits the density of each class. "conditional" trains further networks, from the EM
        solution, to discriminate the classes: on log P(C|x), each stopped where the loss on
        held-out rows is least. Probabilities and labels then come from these (`discriminative_`);
        `log_density`, `score_samples`, `kernel_posterior` and `sample` still come from the EM
        network. A :class:`~kernelpool.Training` says more. More than 20,000 rows train one
        conditional network and stay where they live; about 10,000 are held out. Where rows times
        kernels times classes are more than 3 10^7, as with a hundred classes, networks make fewer
        steps, and from about 3 10^8 on none: they are then the EM networks at the temperature that
        suits held-out rows.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes, in the order of the sorted labels, all equal, or by
        label. None takes their shares among the labeled rows. `with_class_prior` changes them
        afterwards.
    categorical_features : "from_dtype", array-like of str, int or bool, or None
        Which columns of X hold categories: those whose type says so (categories, booleans) or whose
        text is neither numbers nor dates, the default; those named, counted or marked; or none. A
        kernel has a table of probabilities for each, beside a Gaussian over the numbers and dates.
    unlabeled : int, float, str or None, default=None
        The label in `y` that marks rows without a label, whose class is summed out: -1 as in
        scikit-learn's semi-supervised module, NaN for any missing value, or a string. Nothing is
        guessed: -1 is a class like any other unless it is named here, and a missing label is an
        error. Their weight is that of `sample_weight`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads. None takes as many as BLAS may, which joblib, threadpoolctl and the environment
        control; -1 all cores. The results do not depend on it.
    init : {"kmeans", "random", "mixtures"} or Start, default="kmeans"
        How kernels are placed: by k-means in the class that owns them, at random rows of that class
        (the paper), or by fitting a separate mixture for each class from a k-means start and
        opening the sharing afterwards. A :class:`~kernelpool.Start` gives first parameters, the
        owners of the kernels, and the number of starts.
    warm_start : bool, default=False
        Start from the parameters of the previous call to `fit`; what was chosen there stays chosen.
    kernel_prior : {"conjugate", "auto"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel, so that
        kernels of few rows keep a width of their own and none falls to the floor. None is maximum
        likelihood, as in the papers. "auto" chooses on held-out rows.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in
        the data (spherical: of the mean variance). At 0 a kernel that collapses is an error.
    empty_kernels : {"move", "drop", "keep"}, default="move"
        What becomes of a kernel that accounts for less than a thousandth of a row when the
        objective has settled: it is moved to the worst modeled row of its class if that raises the
        objective and dropped otherwise; dropped at once; or kept.
    standardize : bool, default=True
        Whether spherical kernels are round among features of variance one, so that units do not
        matter, or among the features as they are, as in the papers. Densities and parameters are in
        the units of the data, where such kernels are diagonal: `covariance_type_` is then "diag".
        The other families are the same either way.
    sharing : float, "learned", "auto" or array-like of shape (n_kernels, n_classes), default=0.0
        How far a class may use the kernels of the others, in [0, 1]; or a table of it for every
        kernel and class. "learned" finds the table while training (Titsias & Likas 2003). "auto"
        chooses one degree on held-out rows.
    overlap : float, Overlap or "auto", default=0.0
        Strength of the penalty on kernels whose classes lie apart (Constantinopoulos, Titsias &
        Likas 2002); 0 is maximum likelihood, the paper's tables go from 5 to 20. An
        :class:`~kernelpool.Overlap` says how it is measured. "auto" chooses on held-out rows.
    max_iter : int, default=200
        Most sweeps over the rows from one start.
    tol : float, default=1e-5
        EM stops when a sweep adds less than this to the objective per row.
    verbose : int, default=0
        1 prints a line every ten sweeps, 2 a line each sweep.
    callback : callable or None, default=None
        Called after each sweep with a `SweepInfo`; a true answer ends the fit with the parameters
        reached. scikit-learn's own callbacks (`set_callbacks`, from 1.9) are honored too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_ : ndarray of shape (n_kernels, n_features)
        Centers of the kernels.
    covariances_ : ndarray
        (n_kernels,), (n_kernels, n_features), (n_kernels, n_features, n_features) or (n_features,
        n_features), by `covariance_type_`; always variances. Parameters are float64 whatever the
        data, predictions have the type of X.
    mixing_ : ndarray of shape (n_kernels, n_classes)
        Weight of each kernel for each class; columns sum to one.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    owners_ : ndarray of shape (n_kernels,)
        Label of the class that owns each kernel.
    n_kernels_ : int
        Number of kernels of the fitted network.
    covariance_type_ : str
        Shape of the kernels, given or chosen; "diag" for spherical kernels of standardized
        features.
    training_type_ : str
        Shape of the kernels in the units of training.
    kernel_prior_ : str or None
        The prior on the kernels, given or chosen.
    overlap_ : float
        Strength of the overlap penalty, given or chosen.
    sharing_degree_ : float
        Degree of sharing, given or chosen; NaN where it is a table.
    selection_ : dict of str to ndarray
        What was tried on held-out rows where something is "auto", one entry a column: the settings,
        ``tempered_loss`` and how far it is ``behind`` the lowest (with its standard error,
        ``behind_error``), ``log_loss``, ``error``, ``n_folds`` and ``chosen``. The guide explains
        them.
    sharing_ : ndarray of shape (n_kernels, n_classes)
        How far each class could use each kernel while training; the learned table, if it was
        learned.
    parents_ : ndarray of shape (n_kernels,)
        Which of the shared kernels each was split from; after `split_by_class` alone.
    objective_ : float
        Objective per row, equation (31), of the parameters above, in the units of the data.
    history_ : ndarray
        The objective of every set of parameters that was kept on the way. It never falls, except
        under `overlap`, whose steps may lower it; the best parameters are returned.
    n_iter_ : int
        Sweeps made by the best start.
    converged_ : bool
        Whether the objective settled.
    discriminative_ : list of SharedKernelClassifier
        The networks whose averaged probabilities are predicted; with ``training="conditional"``
        alone.
    conditional_loss_ : float
        Log-loss a row of the networks of conditional training on the rows that each was not trained
        on, where there are any.
    validation_log_proba_ : ndarray of shape (n_validation_samples, n_classes)
        log P(C_k|x) of the rows of `X_val`, where these stopped conditional training: of each fifth
        by the network as stopped on the others. Not kept in model files.
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labeled rows, on which they were trained: where
        `class_prior_` differs, their probabilities are adjusted to it.
    categories_ : list of (ndarray of str or None)
        The categories of each column, sorted, None for numbers; where there are any.
    probabilities_ : ndarray of shape (n_kernels, n_levels)
        Probability of each of `categories_` in each kernel, then of any other value, column after
        column; where there are any. `means_` and `covariances_` hold zeros and ones for these
        columns, which mean nothing.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation",
    IEEE Transactions on Neural Networks 12(5), 2001.

    Examples
    --------
    Two classes that overlap everywhere; their density is known, and no classifier can err less than
    9.7 %:

    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> classifier = SharedKernelClassifier(random_state=0).fit(X, y)
    >>> print(f"{1 - classifier.score(X_test, y_test):.1f}")
    0.1
    """

    takes_any_rows = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [
            *COUNT,
            "array-like",
            StrOptions({"auto"}),
            None,
        ],
        "covariance_type": [StrOptions({*FAMILIES, "auto"})],
        "standardize": ["boolean"],
        "sharing": [Real, "array-like", StrOptions({"learned", "auto"})],
        "overlap": [*NOT_NEGATIVE, Overlap, StrOptions({"auto"})],
        "kernel_prior": [StrOptions({"conjugate", "auto"}), None],
        "covariance_floor": NOT_NEGATIVE,
        "class_prior": PRIOR,
        "init": [StrOptions({"kmeans", "random", "mixtures"}), Start],
        "training": [StrOptions({"em", "conditional"}), Training],
        "empty_kernels": [StrOptions({"move", "drop", "keep"})],
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", dict, None],
        "unlabeled": "no_validation",
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_kernels: int | Sequence[int] | str | None = None,
        *,
        covariance_type: str = "full",
        training: str | Training = "conditional",
        class_prior: Any = None,
        categorical_features: Any = "from_dtype",
        unlabeled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        init: str | Start = "kmeans",
        warm_start: bool = False,
        kernel_prior: str | None = "conjugate",
        covariance_floor: float = 1e-6,
        empty_kernels: str = "move",
        standardize: bool = True,
        sharing: Any = 0.0,
        overlap: float | str | Overlap = 0.0,
        max_iter: int = 200,
        tol: float = 1e-5,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.covariance_type = covariance_type
        self.training = training
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.init = init
        self.warm_start = warm_start
        self.kernel_prior = kernel_prior
        self.covariance_floor = covariance_floor
        self.empty_kernels = empty_kernels
        self.standardize = standardize
        self.sharing = sharing
        self.overlap = overlap
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.callback = callback

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the network by EM and, with ``training="conditional"``, discriminative networks from
        there.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best parameters reached so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays
            stay where they are. Data frames and Arrow tables may hold categories, see
            `categorical_features`. NaN is a missing cell, which is integrated out.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels; see `unlabeled` for rows that have none. Or class probabilities, with a column
            for each class and rows that sum to one: a row counts as a row of each class, weighted
            by its probability. Classes are then the names of the columns of a data frame, or their
            positions.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: a weight of two is the row twice, one of zero no row. The sum
            of all weights is the number of rows with which priors and held-out losses reckon, so
            weights of which only the proportions are known should sum to n_samples.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which one conditional network is stopped; None cross-fits several, each stopped
            on a fold of X.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Their weights.

        Returns
        -------
        self : SharedKernelClassifier
            The fitted estimator.
        """
        settings = self._mixture_settings()
        data = self._data(X, y, sample_weight)
        settings = settings.suited(data.columns.levels)
        selection = None
        held_out = None
        choice_interrupted = False
        training_interrupted = False
        if X_val is not None:
            rows = X_val, y_val, sample_weight_val
            name = type(self).__name__
            x, codes, weight = validation_rows(*rows, data.columns, data.classes, name)
            held_out = SampledRows(x.astype(np.float64), codes, weight, row_keys(x, weight))
        with named_features(data.columns):
            if self._warm:
                settings = continued(settings, self._auto, self._fitted, data)
                selection = self._fitted.selection
            elif self._auto:
                chosen = choose_settings(settings, self._auto, data, self.verbose)
                settings, selection, choice_interrupted = chosen
            monitor = FitMonitor(self, X, y, sample_weight)
            fitted, run, dropped = fit_shared_kernel(data, settings, monitor)
            if self._warm:
                fitted = replace(fitted, n_kernels_at_start=self._fitted.n_kernels_at_start)
            fitted = replace(fitted, selection=selection)
            if settings.training.method == "conditional" and run.outcome is not Outcome.INTERRUPTED:
                fitted, training_interrupted = fit_discriminative(data, settings, fitted, held_out)
        self._fitted = fitted
        if dropped is not None and "n_kernels" not in self._auto:
            warn(dropped, EmptyKernelWarning)
        warn_if_unfinished(run, self.max_iter)
        if choice_interrupted:
            raise KeyboardInterrupt(
                "interrupted while settings were chosen; the best so far was fitted to all rows"
            )
        if training_interrupted:
            n_networks = len(fitted.discriminative or ())
            raise KeyboardInterrupt(f"interrupted; {n_networks} conditional networks were kept")
        return self

    def _data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        return training_data(
            X,
            y,
            sample_weight,
            name=type(self).__name__,
            categorical_features=self.categorical_features,
            n_jobs=self.n_jobs,
            unlabeled=self.unlabeled,
        )

    @property
    def _warm(self) -> bool:
        """Whether `fit` starts from the parameters of the one before."""
        return self.warm_start and self.__sklearn_is_fitted__()

    @property
    def _auto(self) -> list[str]:
        """The parameters that are to be chosen on held-out rows."""
        return [name for name in FIRST if is_auto(getattr(self, name))]

    def _mixture_settings(self, seed: int | None = None) -> MixtureSettings:
        """The parameters, resolved; those that are "auto" have the values with which the search
        begins.
        """
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        resolved = {name: FIRST[name] for name in self._auto}
        overlap = resolved.pop("overlap", self.overlap)
        resolved["overlap"] = as_record(overlap, Overlap)
        start = as_record(self.init, Start)
        training = as_record(self.training, Training)
        return self._settings(
            MixtureSettings, start=start, training=training, seed=seed, **resolved
        )

    @property
    def discriminative_(self) -> list[Self]:
        networks = self.__getattr__("discriminative_")
        return [self._model(network, self.classes_, self.columns_) for network in networks]

    def split_by_class(
        self, X: Any, y: Any, sample_weight: Any = None, *, anchor: float = 100.0
    ) -> "SharedKernelClassifier":
        """Split every kernel into one for each class with rows in it, and refine these (Titsias &
        Likas 2002).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, such as those of `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        anchor : float, default=100.0
            Rows' worth of belief that holds each subkernel near where it was split off; 0 refines
            by maximum likelihood, infinity not at all.

        Returns
        -------
        model : SharedKernelClassifier
            A copy with up to n_kernels x n_classes kernels, each of one class; `parents_` has the
            kernel that each was split from. Its `objective_` is the log-likelihood, less what the
            anchor charges for moving away. Discriminative networks stay as they are.
        """
        check_is_fitted(self)
        if not anchor >= 0:
            raise KernelpoolError(f"anchor must be at least 0; got {anchor}.")
        data = self._data(X, y, sample_weight)
        settings = self._mixture_settings(seed=0)
        monitor = FitMonitor(self, X, y, sample_weight)
        model = copy(self)
        with named_features(data.columns):
            model._fitted, run = split_by_class(data, settings, self._fitted, anchor, monitor)
        warn_if_unfinished(run, self.max_iter)
        return model

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        half_life: float | None = None,
    ) -> Self:
        r"""Learn from one mini-batch more, by stepwise EM (Cappé & Moulines 2009).

        Statistics are averaged over mini-batches with steps :math:`\gamma_t = (1 +
        N_t/n_t)^{-0.7}`, with :math:`N_t` the weight of the rows before and :math:`n_t` that of the
        mini-batch, or larger ones where `half_life` asks for it. The first call makes its start
        from its own rows: give it some hundreds a kernel. Their number stays: where a stream
        brings rows unlike any before, fit again. A network that was fitted by `fit` is continued.
        Conditional training needs all rows: whatever `training` says, a stream is learned by EM,
        and the densities decide.

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
        half_life : float or None, default=None
            Rows after which half of what was learned is forgotten, for streams that drift. None
            forgets nothing but the beginning.

        Returns
        -------
        self : SharedKernelClassifier
            The fitted estimator. `objective_` is the log-likelihood a row of rows that were not yet
            learned from, averaged as the steps go; `n_iter_` counts mini-batches.

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
        if half_life is not None and not half_life > 0:
            raise KernelpoolError(f"half_life must be above 0; got {half_life}.")
        begun = self.__sklearn_is_fitted__()
        settings = self._mixture_settings()
        check_settings(settings, self._auto)
        labels = stream_classes(self.classes_ if begun else None, classes)
        if self.class_prior is not None:
            prior = class_prior_for(self.class_prior, labels, np.full(len(labels), 1 / len(labels)))
            settings = replace(settings, class_prior=prior)
        rows, weight, columns = mini_batch(self, X, y, sample_weight, labels)
        with one_blas_thread(), named_features(columns):
            if not begun:
                stream = begin(surveyed(rows, labels), settings, half_life)
            else:
                stream = continued_stream(self._fitted, settings, half_life, weight)
                if weight > 0:
                    stream = stream.holding(surveyed(rows, labels)).step(rows)
        self._fitted = stream.fitted(labels, columns)
        return self

    @classmethod
    def prbf(cls, n_kernels: int | Sequence[int] | str | None = None, **parameters: Any) -> Self:
        """The network of Titsias & Likas (2001): spherical kernels that all classes share, by
        maximum likelihood.

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
        """Shape and number of kernels, their prior, sharing and overlap penalty chosen on held-out
        rows.

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
        names = "n_kernels", "covariance_type", "sharing", "kernel_prior", "overlap"
        return cls(**{**dict.fromkeys(names, "auto"), **parameters})

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
        labels = np.asarray(classes)
        covariances = given_array("covariances", covariances)
        family = family_of(covariances, means.shape, covariance_type)
        check_positive("covariances", covariances, family)
        mixing = given_array("mixing", mixing, (len(means), len(labels)))
        check_columns("mixing", mixing)
        prior = class_prior_for(class_prior, labels, np.empty(0))
        if not np.array_equal(np.unique(labels), labels):
            raise KernelpoolError(f"classes must be distinct and sorted; got {labels.tolist()}.")
        columns = Columns.numbers(means.shape[1])
        network = ClassDensities(family, means, covariances, mixing, prior, None, columns.levels)
        return cls._model(network, labels, columns)
