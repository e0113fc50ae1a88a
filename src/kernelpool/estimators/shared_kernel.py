"""Shared-kernel classifier: the scikit-learn shell of `kernelpool.networks.shared_kernel`."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..em import Fit, Outcome, Stop, best_of
from ..errors import CollapsedKernelError, KernelpoolError, UnfinishedWarning
from ..kernels import FAMILIES, Gaussian, Kernels, Lens
from ..networks.shared_kernel import Params, SharedKernel, sharing_table
from ..rows import Block, Frame, Rows
from ..starts import ClassSample, uniform_mixing
from .data import TrainingData, _codes_of, _is_unlabelled, frame_of, label_name, query_rows, training_data
from .density import DensityClassifier
from .progress import CallbackSupportMixin, Progress, SweepInfo, with_callbacks
from .training import Trained, Training, unfinished_message, with_names


class SharedKernelClassifier(CallbackSupportMixin, DensityClassifier):
    r"""Class densities as mixtures of Gaussian kernels that classes may share.

    Each class is a mixture :math:`p(x|C_k) = \sum_j \pi_{jk}\, p(x|j)` over one common pool of kernels (the probabilistic
    RBF network, PRBF). Each kernel is owned by one class; `sharing` says how freely the others may use it while training: 0
    gives one separate mixture a class, 1 the full PRBF, values between the lambda-PRBF of Titsias & Likas (2001).

    Parameters
    ----------
    n_kernels : int, sequence of int or None, default=None
        Number of kernels M, dealt out to the classes as evenly as it goes, or the number for each class in the order of the
        sorted labels. None takes five a class, fewer for a class with fewer than 25 distinct rows.
    covariance_type : {"spherical", "diag", "full", "tied"}, default="spherical"
        Shape of the kernels. The spherical family is the paper's and depends on the units of the features; the other three
        do not.
    sharing : float or array-like of shape (n_kernels, n_classes), default=1.0
        How far a class may use the kernels of the others, in [0, 1]; or a table of it for every kernel and class.
    owners : array-like of shape (n_kernels,), default=None
        The class (a label) that owns each kernel. None derives it from `n_kernels`.
    class_prior : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes. None takes their shares among the labelled rows.
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
    kernel_prior : {"conjugate"} or None, default=None
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel, so that kernels of few rows keep a
        width of their own and none falls to the floor.
    acceleration : {"squarem"} or None, default="squarem"
        Extrapolate EM, keeping only steps that do not lower the objective. None is plain EM, as in the papers.
    starving : {"move", "drop", "keep"}, default="move"
        What becomes of a kernel that accounts for less than a thousandth of a row when the objective has settled: it is moved
        to the worst modelled row of its class if that raises the objective and dropped otherwise; dropped at once; or kept.
    unlabeled : int, float, str or None, default=None
        The label in `y` that marks rows without a label: -1 as in scikit-learn's semi-supervised module, NaN, a string, or
        None. Nothing is guessed: -1 is a class like any other unless it is named here.
    unlabeled_weight : float, default=1.0
        Weight of a row without a label, whose class is summed out; values below one often serve better.
    warm_start : bool, default=False
        Start from the parameters of the previous call to `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads. None takes as many as BLAS may, which joblib, threadpoolctl and the environment control; -1 all cores. The
        results do not depend on it.
    verbose : int, default=0
        1 shows a progress bar where `rich` is installed and a line every ten sweeps otherwise, 2 a line each sweep.
    callback : callable or None, default=None
        Called after each sweep with a `SweepInfo`; a true answer ends the fit with what has been reached. scikit-learn's own
        callbacks (`set_callbacks`, from 1.9) are honoured too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_ : ndarray of shape (n_kernels, n_features)
        Centres of the kernels.
    covariances_ : ndarray
        (n_kernels,), (n_kernels, n_features), (n_kernels, n_features, n_features) or (n_features, n_features), by
        `covariance_type`; always variances. Parameters are float64 whatever the data, predictions have the type of X.
    mixing_ : ndarray of shape (n_kernels, n_classes)
        Weight of each kernel for each class; columns sum to one.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    owners_ : ndarray of shape (n_kernels,)
        Label of the class that owns each kernel.
    objective_ : float
        Objective per row, equation (31), of the parameters above, in the units of the data.
    history_ : ndarray
        The objective of every set of parameters that was kept on the way; it never falls.
    n_iter_ : int
        Sweeps made by the best start.
    converged_ : bool
        Whether the objective settled.
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
    >>> classifier = SharedKernelClassifier(n_kernels=12, covariance_type="full", random_state=0).fit(X, y)
    >>> print(f"{1 - classifier.score(X_test, y_test):.3f}")
    0.099
    """

    _n_kernels_asked: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "covariance_type": [StrOptions(set(FAMILIES))],
        "sharing": [Real, "array-like"],
        "owners": ["array-like", None],
        "class_prior": ["array-like", None],
        "means_init": ["array-like", None],
        "covariances_init": ["array-like", None],
        "mixing_init": ["array-like", None],
        "init": [StrOptions({"kmeans", "random", "mixtures"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_floor": [Interval(Real, 0, None, closed="left")],
        "kernel_prior": [StrOptions({"conjugate"}), None],
        "acceleration": [StrOptions({"squarem"}), None],
        "starving": [StrOptions({"move", "drop", "keep"})],
        "unlabeled": "no_validation",
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_kernels: int | Sequence[int] | None = None,
        *,
        covariance_type: str = "spherical",
        sharing: Any = 1.0,
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
        kernel_prior: str | None = None,
        acceleration: str | None = "squarem",
        starving: str = "move",
        unlabeled: Any = None,
        unlabeled_weight: float = 1.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.covariance_type = covariance_type
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
        self.acceleration = acceleration
        self.starving = starving
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the network by EM.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best parameters reached so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are.
        y : array-like of shape (n_samples,)
            Labels; see `unlabeled` for rows that have none.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : SharedKernelClassifier
            The fitted estimator.
        """
        if not hasattr(self.sharing, "__len__"):
            _check_scalar_sharing(self.sharing, "sharing")
        data = training_data(self, X, y, sample_weight, self.unlabeled, self.unlabeled_weight, self.n_jobs)
        setup = Setup(self, data)
        if not setup.warm:
            self._n_kernels_asked = len(setup.owners)
        try:
            fit, sharing = self._best_start(setup, X, y, sample_weight)
        except CollapsedKernelError as error:
            raise with_names(error, getattr(self, "feature_names_in_", None)) from None
        self._keep(setup.training.trained(fit, sharing, setup.owners), data, setup.class_prior)
        self._conclude(fit)
        return self

    def _best_start(self, setup: "Setup", X: Any, y: Any, sample_weight: Any) -> tuple[Fit[Params], np.ndarray]:
        sharing = setup.sharing(self.sharing)
        fits: list[Fit[Params]] = []
        with Watch(self, setup.training, setup.n_starts, X, y, sample_weight) as watch:
            for i, place in enumerate(setup.places()):
                fits.append(setup.training.run(setup.start(place, sharing), sharing, setup.owners, watch.begin(i)))
                watch.end()
                if fits[-1].outcome is Outcome.INTERRUPTED:
                    break
        return best_of(fits), sharing

    def _keep(self, trained: Trained, data: TrainingData, class_prior: np.ndarray) -> None:
        self.classes_, self.class_prior_ = data.classes, class_prior
        self.means_, self.covariances_, self.mixing_ = trained.means, trained.covariances, trained.mixing
        self.owners_ = data.classes[trained.owners]
        self.history_, self.objective_ = trained.history, float(trained.history[-1])
        self.n_iter_ = trained.fit.n_sweeps
        self.converged_ = trained.fit.outcome is Outcome.CONVERGED

    def _as_if_stopped(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """What would be kept of a fit that stopped with these parameters."""
        return parameters

    def _conclude(self, fit: Fit[Params]) -> None:
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(fit.sentence(self.max_iter))
        message = unfinished_message(fit, self.max_iter)
        if message is not None:
            warnings.warn(message, UnfinishedWarning, stacklevel=3)

    @classmethod
    def from_parameters(
        cls, means: Any, covariances: Any, mixing: Any, class_prior: Any, classes: Any, covariance_type: str | None = None
    ) -> Self:
        """A ready model from known parameters, without data.

        Parameters
        ----------
        means : array-like of shape (n_kernels, n_features)
            Centres.
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
        covariances = check_array(covariances, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name="covariances")
        mixing = check_array(mixing, dtype=np.float64, input_name="mixing")
        prior = check_array(class_prior, dtype=np.float64, ensure_2d=False, input_name="class_prior")
        labels = np.asarray(classes)
        family = _family_of(covariances, means.shape, covariance_type)
        _check_positive("covariances", covariances, family)
        _check_shape("mixing", mixing, (len(means), len(labels)))
        _check_shape("class_prior", prior, (len(labels),))
        _check_columns("mixing", mixing)
        _check_columns("class_prior", prior[:, None])
        if (np.unique(labels) != labels).any() if len(np.unique(labels)) == len(labels) else True:
            raise KernelpoolError(f"classes must be distinct and sorted; got {labels.tolist()}.")
        model = cls(len(means), covariance_type=family)
        model._n_kernels_asked = len(means)
        model.classes_, model.class_prior_ = labels, prior
        model.means_, model.covariances_, model.mixing_ = means, covariances, mixing
        model.owners_ = labels[np.argmax(mixing * prior, axis=1)]
        model.n_features_in_ = means.shape[1]
        return model

    # -- prediction -------------------------------------------------------------------------------------------------

    def _network(self, frame: Frame | None = None) -> tuple[SharedKernel, Kernels, Frame]:
        """The fitted network, its kernels in a frame (their own, if none is given), and that frame."""
        family = FAMILIES[self.covariance_type]
        kernel = family(np.zeros(self.means_.shape[1]))
        kernels = Kernels(np.asarray(self.means_), np.asarray(self.covariances_))
        if frame is not None:
            return SharedKernel(kernel, np.ones_like(self.mixing_)), kernel.into(kernels, frame), frame
        share = self.mixing_ @ self.class_prior_
        share = share / share.sum()
        origin = share @ kernels.mean
        variance = share @ (_variances(kernel, kernels) + (kernels.mean - origin) ** 2)
        frame, _ = frame_of(family, origin, variance)
        return SharedKernel(kernel, np.ones_like(self.mixing_)), kernel.into(kernels, frame), frame

    def _density(self, rows: Rows) -> tuple[Rows, Any, tuple[Any, ...]]:
        network, kernels, frame = self._network()
        lens = network.kernel.lens(kernels, rows.rounding)
        framed = rows.framed(frame, lens.weight.shape[0] + lens.weight.shape[1] + 2 * len(self.classes_))
        return framed, _log_density, (network, lens, self.mixing_, frame.log_volume)

    def kernel_posterior(self, X: Any) -> Any:
        """P(j|x): how much each kernel has to do with each row, the class summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_kernels)
            Rows sum to one.
        """
        check_is_fitted(self)
        rows = query_rows(self, X, self.n_jobs)
        framed, _, (network, lens, mixing, _) = self._density(rows)
        return framed.each(_kernel_posterior, network, lens, mixing, self.class_prior_)

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        network, kernels, frame = self._network()
        x = np.empty((len(codes), self.n_features_in_))
        chosen = np.empty(len(codes), int)
        for k in range(len(self.classes_)):
            mine = codes == k
            chosen[mine] = rng.choice(len(self.mixing_), size=mine.sum(), p=self.mixing_[:, k] / self.mixing_[:, k].sum())
        for j in np.unique(chosen):
            mine = chosen == j
            noise = rng.standard_normal((mine.sum(), x.shape[1]))
            covariance = network.kernel.of_kernel(kernels.covariance, j)
            x[mine] = kernels.mean[j] + network.kernel.deviate(covariance, noise)
        outside: np.ndarray = frame.outside(x)
        return outside

    # -- model choice -----------------------------------------------------------------------------------------------

    def n_parameters(self) -> int:
        """Number of free parameters: kernels, mixing weights that are not fixed at zero, and class priors."""
        check_is_fitted(self)
        n_kernels, n_classes = self.mixing_.shape
        kernel = FAMILIES[self.covariance_type](np.zeros(self.n_features_in_))
        table = self.sharing if hasattr(self.sharing, "__len__") else None
        free = (self.mixing_ > 0) if table is not None or not self.sharing else np.ones_like(self.mixing_, bool)
        n_mixing = int(free.sum()) - n_classes
        return n_kernels * self.n_features_in_ + kernel.n_parameters(n_kernels, self.n_features_in_) + n_mixing + n_classes - 1

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
        unknown = _is_unlabelled(labels, self.unlabeled)
        strange = set(labels[~unknown].tolist()) - set(self.classes_.tolist())
        if strange:
            raise ValueError(f"y contains labels that were not seen in fit: {sorted(map(str, strange))[:5]}.")
        codes = _codes_of(labels, self.classes_, self.unlabeled)
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
        return -2 * self.log_likelihood(X, y, sample_weight) + self.n_parameters() * float(np.log(n))

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


def _log_density(block: Block, network: SharedKernel, lens: Lens, mixing: Any, log_volume: float) -> Any:
    return network.log_density(block, lens, mixing) - log_volume


def _kernel_posterior(block: Block, network: SharedKernel, lens: Lens, mixing: Any, class_prior: Any) -> Any:
    return network.kernel_posterior(block, lens, mixing, class_prior)


# -- from parameters to a training ------------------------------------------------------------------------------------


class Setup:
    """What follows from an estimator's parameters and the data: the training, the owners, the starts."""

    def __init__(self, estimator: Any, data: TrainingData) -> None:
        self.estimator, self.data = estimator, data
        self.class_prior = _class_prior(estimator.class_prior, data)
        self.training = Training(
            data,
            covariance_type=estimator.covariance_type,
            covariance_floor=estimator.covariance_floor,
            kernel_prior=estimator.kernel_prior,
            class_prior=self.class_prior,
            stop=Stop(estimator.max_iter, estimator.tol),
            accelerated=estimator.acceleration is not None,
            starving=estimator.starving,
        )
        self.warm = getattr(estimator, "warm_start", False) and hasattr(estimator, "means_")
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
        self._given = self._given_kernels()
        self.samples: list[ClassSample] = []
        self.counts: list[int] = []
        self.owners = self._owners()
        self.n_starts = 1 if self._given is not None and self._given[1] is not None else estimator.n_init

    @property
    def classes(self) -> np.ndarray:
        return self.data.classes

    def sharing(self, sharing: Any) -> np.ndarray:
        """The table of sharing, (M, K)."""
        if not hasattr(sharing, "__len__"):
            return self._usable(sharing_table(self.owners, float(sharing), len(self.classes)))
        table = check_array(sharing, dtype=np.float64, input_name="sharing")
        _check_shape("sharing", table, (len(self.owners), len(self.classes)))
        if table.min() < 0 or table.max() > 1:
            raise KernelpoolError(f"sharing must lie in [0, 1]; got values from {table.min():.3g} to {table.max():.3g}.")
        return self._usable(table)

    def _usable(self, table: np.ndarray) -> np.ndarray:
        usable = (table > 0).any(axis=0)
        if not usable.all():
            name = label_name(self.classes[int(np.argmin(usable))])
            raise KernelpoolError(
                f"sharing leaves class {name} without a kernel: it owns none and may use none. "
                f"Raise sharing above 0, or give the class a kernel in n_kernels or owners."
            )
        return np.asarray(table)

    def places(self) -> Iterator[Kernels | Params]:
        """Where to start, one place after the other: kernels, or separate mixtures whose sharing is to be opened."""
        for _ in range(self.n_starts):
            kernels = self._kernels()
            given_mixing = self.warm or self.estimator.mixing_init is not None
            if self.estimator.init == "mixtures" and not given_mixing:
                yield self.training.separate(kernels, self.owners)
            else:
                yield kernels

    def start(self, place: Kernels | Params, sharing: np.ndarray) -> Params:
        """First parameters at `place` for one table of sharing."""
        if isinstance(place, Params):
            return self.training.opened(place, sharing)
        mixing = self._given_mixing(sharing)
        return self.training.start(place, uniform_mixing(sharing) if mixing is None else mixing)

    def _kernels(self) -> Kernels:
        """Kernels of one start, in the frame: those given, the others placed."""
        means, covariances = self._given if self._given is not None else (None, None)
        if means is not None and covariances is not None:
            return self.training.host_kernel.into(Kernels(means, covariances), self.training.frame)
        method = "random" if self.estimator.init == "random" else "kmeans"
        placed = self.training.place(method, self.samples, self.counts, self.rng)
        order = np.argsort(np.argsort(self.owners, kind="stable"), kind="stable")
        placed = self.training.host_kernel.kept(placed, order)
        frame = self.training.frame
        mean = placed.mean if means is None else (means - frame.origin) / frame.unit
        factor = 1 / np.asarray(frame.unit)
        wide = placed.covariance if covariances is None else self.training.host_kernel.rescaled(covariances, factor)
        return Kernels(mean, wide)

    def _given_kernels(self) -> tuple[np.ndarray | None, np.ndarray | None] | None:
        estimator, d = self.estimator, self.data.rows.n_features
        if self.warm:
            return estimator.means_, estimator.covariances_
        means, covariances = estimator.means_init, estimator.covariances_init
        if means is None and covariances is None:
            return None
        if means is not None:
            means = check_array(means, dtype=np.float64, input_name="means_init")
            n = _total(estimator.n_kernels)
            _check_shape("means_init", means, (len(means) if n is None else n, d))
        if covariances is not None:
            covariances = check_array(
                covariances, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name="covariances_init"
            )
            n = len(means) if means is not None else _total(estimator.n_kernels)
            if n is not None:
                _check_shape("covariances_init", covariances, _covariance_shape(estimator.covariance_type, n, d))
            _check_positive("covariances_init", covariances, estimator.covariance_type)
        return means, covariances

    def _given_mixing(self, sharing: np.ndarray) -> np.ndarray | None:
        if self.warm:
            mixing = np.asarray(self.estimator.mixing_)
        elif self.estimator.mixing_init is None:
            return None
        else:
            mixing = check_array(self.estimator.mixing_init, dtype=np.float64, input_name="mixing_init")
        _check_shape("mixing_init", mixing, sharing.shape)
        _check_columns("mixing_init", mixing)
        mixing = mixing * (sharing > 0)
        if not (mixing.sum(axis=0) > 0).all():
            raise KernelpoolError("mixing_init gives a class no weight on any kernel that sharing allows it to use.")
        return np.asarray(mixing / mixing.sum(axis=0))

    def _owners(self) -> np.ndarray:
        """The class code of each kernel; draws the sample that starts need on the way."""
        estimator, given = self.estimator, self._given
        needs_sample = given is None or given[0] is None or given[1] is None
        if self.warm:
            self._check_warm()
            return np.searchsorted(self.classes, estimator.owners_)
        n_kernels = len(given[0]) if given is not None and given[0] is not None else _total(estimator.n_kernels)
        if estimator.owners is not None:
            owners = self._given_owners(n_kernels)
            self.counts = np.bincount(owners, minlength=len(self.classes)).tolist()
            if needs_sample:
                self.samples = self.training.samples(int(self.rng.integers(2**31)))
            return owners
        self.samples = self.training.samples(int(self.rng.integers(2**31)))
        wanted = n_kernels if given is not None and not hasattr(estimator.n_kernels, "__len__") else estimator.n_kernels
        self.counts = self.training.counts(wanted, self.samples)
        return self.training.owners(self.counts)

    def _check_warm(self) -> None:
        """The previous fit must be one that this one can go on from."""
        before, d = self.estimator, self.data.rows.n_features
        n_kernels = _total(before.n_kernels)
        shape = _covariance_shape(before.covariance_type, len(before.means_), d)
        if not np.array_equal(before.classes_, self.classes) or before.means_.shape[1] != d:
            changed = "classes and features"
        elif before.covariances_.shape != shape:
            changed = "covariance_type"
        elif n_kernels not in (None, before._n_kernels_asked):
            changed = "n_kernels"
        else:
            return
        raise KernelpoolError(f"warm_start needs the {changed} of the previous fit; set warm_start=False to start anew.")

    def _given_owners(self, n_kernels: int | None) -> np.ndarray:
        labels = np.asarray(self.estimator.owners)
        if labels.ndim != 1 or (n_kernels is not None and len(labels) != n_kernels):
            raise KernelpoolError(f"owners must have shape ({n_kernels or 'n_kernels'},); got {labels.shape}.")
        strange = sorted(set(labels.tolist()) - set(self.classes.tolist()), key=str)
        if strange:
            raise KernelpoolError(f"owners must be labels of y, {self.classes.tolist()}; got {strange[0]!r}.")
        return np.searchsorted(self.classes, labels)


class Watch:
    """Tells of each sweep: to the user's callback, to scikit-learn's callbacks, and on the screen."""

    def __init__(self, estimator: Any, training: Training, n_starts: int, X: Any, y: Any, weight: Any) -> None:
        self.estimator, self.training = estimator, training
        self.progress = Progress(estimator.verbose, n_starts, estimator.max_iter, type(estimator).__name__)
        self.sent = {"X": X, "y": y, "metadata": None if weight is None else {"sample_weight": weight}}
        self.context: Any = None
        self.start_context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=n_starts)

    def __enter__(self) -> Self:
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
        self.progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.__exit__(*error)
        if self.context is not None and error[0] is None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.sent)

    def begin(self, index: int) -> Callable[[Fit[Params]], bool]:
        """A start begins; the answer is told of its sweeps."""
        self.index = index
        self.progress.start(index)
        if self.context is not None:
            self.start_context = self.context.subcontext(task_name="start", max_subtasks=None)
            self.start_context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
        return self.sweep

    def end(self) -> None:
        """A start has ended."""
        if self.start_context is not None:
            self.start_context.call_on_fit_task_end(estimator=self.estimator, **self.sent)

    def sweep(self, fit: Fit[Params]) -> bool:
        """True if somebody asks to stop."""
        objective = fit.objective - self.training.frame.log_volume
        self.progress.sweep(fit.n_sweeps, objective, fit.change)
        stop = False
        if self.estimator.callback is not None:
            info = SweepInfo(self.index, fit.n_sweeps, objective, fit.change, self._parameters(fit.params))
            stop = bool(self.estimator.callback(info))
        if self.start_context is not None:
            context = self.start_context.subcontext(task_name="sweep")
            context.call_on_fit_task_begin(estimator=self.estimator, **self.sent)
            stop |= bool(
                context.call_on_fit_task_end(
                    estimator=self.estimator, **self.sent, reconstruction_attributes=lambda: self._attributes(fit.params)
                )
            )
        return stop

    def _parameters(self, params: Params) -> dict[str, Any]:
        return dict(zip(("means_", "covariances_", "mixing_"), self.training.outside(params), strict=True))

    def _attributes(self, params: Params) -> dict[str, Any]:
        common = {"classes_": self.training.data.classes, "class_prior_": self.training.class_prior}
        kept: dict[str, Any] = self.estimator._as_if_stopped({**self._parameters(params), **common})
        return kept


# -- checks -------------------------------------------------------------------------------------------------------------


def _check_scalar_sharing(sharing: float, name: str) -> None:
    if not 0 <= sharing <= 1:
        raise KernelpoolError(f"{name} must lie in [0, 1]; got {sharing}.")


def _class_prior(given: Any, data: TrainingData) -> np.ndarray:
    if given is None:
        return np.asarray(data.class_weight / data.class_weight.sum())
    prior = check_array(given, dtype=np.float64, ensure_2d=False, input_name="class_prior")
    _check_shape("class_prior", prior, (len(data.classes),))
    _check_columns("class_prior", prior[:, None])
    return np.asarray(prior)


def _check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise KernelpoolError(f"{name} must have shape {shape}; got {array.shape}.")


def _check_columns(name: str, array: np.ndarray) -> None:
    total = array.sum(axis=0)
    if array.min() < 0 or not np.allclose(total, 1, atol=1e-6):
        what = (
            "must not be negative"
            if array.min() < 0
            else f"must sum to one, column by column; the sums are {total.round(6).tolist()}"
        )
        raise KernelpoolError(f"{name} {what}.")


def _check_positive(name: str, covariances: np.ndarray, covariance_type: str) -> None:
    """Variances above zero, matrices symmetric and positive definite."""
    if covariance_type in ("full", "tied"):
        matrices = covariances.reshape(-1, *covariances.shape[-2:])
        asymmetry = np.abs(matrices - matrices.swapaxes(1, 2)).max(axis=(1, 2))
        bad = (np.linalg.eigvalsh(matrices)[:, 0] <= 0) | (asymmetry > 1e-8 * np.abs(matrices).max(axis=(1, 2)))
        wanted = "symmetric and positive definite"
    else:
        bad = covariances.reshape(len(covariances), -1).min(axis=1) <= 0
        wanted = "positive (variances, not deviations)"
    if bad.any():
        raise KernelpoolError(f"{name} must be {wanted}; that of kernel {int(np.argmax(bad))} is not.")


def _total(n_kernels: Any) -> int | None:
    return None if n_kernels is None else int(np.sum(n_kernels))


def _covariance_shape(covariance_type: str, n_kernels: int, d: int) -> tuple[int, ...]:
    shapes = {"spherical": (n_kernels,), "diag": (n_kernels, d), "full": (n_kernels, d, d), "tied": (d, d)}
    return shapes[covariance_type]


def _family_of(covariances: np.ndarray, shape: tuple[int, int], named: str | None) -> str:
    """The family that `covariances` belong to, by their shape."""
    fits = [name for name in FAMILIES if _covariance_shape(name, *shape) == covariances.shape]
    if named is not None:
        if named not in FAMILIES:
            raise KernelpoolError(f"covariance_type must be one of {list(FAMILIES)}; got {named!r}.")
        _check_shape("covariances", covariances, _covariance_shape(named, *shape))
        return named
    if len(fits) != 1:
        found = f"may be of type {fits[0]} or {fits[1]}: say covariance_type=" if fits else "fits none of the covariance types"
        raise KernelpoolError(f"covariances of shape {covariances.shape} for means of shape {shape} {found}.")
    return fits[0]


def _variances(kernel: Gaussian, kernels: Kernels) -> np.ndarray:
    """Variance of each kernel along each feature, (M, d)."""
    shape = kernels.mean.shape
    if kernel.name in ("full", "tied"):
        return np.broadcast_to(np.diagonal(kernels.covariance, axis1=-2, axis2=-1), shape)
    return np.broadcast_to(kernels.covariance.reshape(shape[0], -1), shape)
