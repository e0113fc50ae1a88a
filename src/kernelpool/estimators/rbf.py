"""RBF network classifier and regressor: shells of `kernelpool.training.rbf`."""

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, Float64, namespace, safe_log, to_numpy
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..inspection.notebook import NotebookMixin
from ..kernels import FAMILIES, Kernels
from ..networks.em_log import ACTIVATIONS, Hidden, Layer, OutputLayer
from ..networks.least_squares import LeastSquares
from ..networks.logistic import Logistic
from ..networks.readout import Labels, Values
from ..registry import BOOL, CLASSES, COUNT, FEATURE_NAMES, FEATURES, FLOAT, HISTORY, EstimatorRecord, Field, register
from ..rows import Block, Rows
from ..training.config import KernelConfig
from ..training.monitor import Progress
from ..training.rbf import FittedRBF, GivenMixture, RBFConfig, fit_rbf, regression_data
from ..training.validation import TrainingData, mixture_frame, named_features, query_rows, training_data
from ._base import ProbabilityClassifier, RowFunction, Transform, log_softmax

PLACES = ("kmeans", "random", "em", "uniform", "normal")
"""Where kernels may start, by the names under which users ask for them."""

KERNELS_PER_CLASS = 10
KERNELS_OF_REGRESSOR = 40


class RBFNetwork(NotebookMixin, BaseEstimator):
    """What both networks have in common."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [Interval(Integral, 1, None, closed="left"), None],
        "hidden": "no_validation",  # a name or a mixture: looked at where it is used
        "widths": [StrOptions({"unit", "farthest"}), None],
        "training": [StrOptions({"two_stage", "em_log", "em_log_link"})],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "temperature": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_type": [StrOptions(FAMILIES.keys())],  # a view: families may be registered later
        "strength": [StrOptions({"loo", "gcv"}), Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_floor": [Interval(Real, 0, None, closed="left")],
        "kernel_prior": [StrOptions({"conjugate"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that was interrupted or failed may have seen the features; it has no output layer unless it kept a network."""
        return hasattr(self, "readout_")

    def _fit_layers(
        self, data: TrainingData, default_kernels: int, make_output: Callable[[Hidden], OutputLayer], *, once: bool = False
    ) -> FittedRBF:
        """Train both layers; nothing is written into the estimator."""
        if isinstance(self.hidden, str) and self.hidden not in PLACES:
            raise KernelpoolError(f"hidden must be one of {PLACES} or a fitted mixture; got {self.hidden!r}.")
        hidden: str | GivenMixture = self.hidden
        family = self.covariance_type
        if not isinstance(hidden, str):
            hidden, family = _given_mixture(hidden, data.rows.n_features)
        config = RBFConfig(
            n_kernels=self.n_kernels,
            default_kernels=default_kernels,
            hidden=hidden,
            widths=self.widths,
            kernel=KernelConfig(family, self.covariance_floor, self.kernel_prior),
            training=self.training,
            activation=self.activation,
            temperature=self.temperature,
            once=once,
            patience=self.patience,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=check_random_state(self.random_state).randint(2**31),
        )
        n_starts = self.n_init if isinstance(hidden, str) else 1
        with named_features(getattr(self, "feature_names_in_", None)):
            return fit_rbf(data, config, make_output, Progress(self.verbose, n_starts, self.max_iter, type(self).__name__))

    def _set_layers(self, fitted: FittedRBF) -> None:
        """Set the attributes that both networks have."""
        self.means_, self.covariances_, self.mixing_ = fitted.means, fitted.covariances, fitted.mixing
        self.covariance_type_ = fitted.covariance_type
        self.temperature_ = fitted.temperature
        self.activation_log_scale_ = fitted.log_scale
        self.strength_ = fitted.network.readout.strength
        self.loss_, self.history_ = fitted.loss, np.asarray(fitted.run.history)
        self.n_iter_, self.best_iter_ = fitted.run.n_sweeps, fitted.run.best_sweep
        self.converged_ = fitted.settled

    def _warn_if_unfinished(self, fitted: FittedRBF) -> None:
        if not fitted.settled:
            what = "the mixture was" if self.training == "two_stage" else "the loss of rows left out was"
            warn(
                f"Training stopped after max_iter={self.max_iter} sweeps; {what} still improving. Raise max_iter, or tol.",
                UnfinishedWarning,
            )
        if fitted.interrupted is not None:
            raise KeyboardInterrupt(fitted.interrupted)

    def _layers(self, rows: Rows) -> tuple[Rows, Hidden, Layer]:
        """Rows in the frame of the kernels, the hidden layer, and its parameters in that frame."""
        kernel = FAMILIES[self.covariance_type_](np.zeros(self.n_features_in_))
        kernels = Kernels(self.means_, self.covariances_)
        frame = mixture_frame(kernel, kernels, self.mixing_)
        natural_params = kernel.natural_params(kernel.into(kernels, frame), rows.eps)
        log_scale = self.activation_log_scale_ + (
            0.0 if self.activation == "normalized" else frame.log_volume / self.temperature_
        )
        layer = Layer(natural_params, safe_log(self.mixing_), log_scale, np.zeros_like(log_scale))
        framed = rows.framed(frame, natural_params.weight.shape[1] + 5 * natural_params.weight.shape[0])
        return framed, Hidden(kernel, self.activation, self.temperature_), layer

    def _of_columns(self, X: Any, answer: Callable[..., Array], *params: Any) -> Array:
        """`answer(columns, *params)` of every row."""
        check_is_fitted(self)
        framed, hidden, layer = self._layers(query_rows(self, X, self.n_jobs))
        return framed.each(_of_block_columns, answer, hidden, layer, *params)

    def activations(self, X: Any) -> Any:
        """What the kernels say of each row: the columns that `readout_` weighs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        activation : array of shape (n_samples, n_kernels)
            p(x|j) / exp(activation_log_scale_), or P(j|x) where `activation` is "normalized".
        """
        return self._of_columns(X, _activation)


def _of_block_columns(block: Block, answer: Callable[..., Array], hidden: Hidden, layer: Layer, *params: Any) -> Array:
    return answer(hidden.columns(block, layer), *params)


def _activation(columns: Array) -> Array:
    return columns[:-1, :].T


def _outputs(columns: Array, readout: Float64) -> Array:
    """Outputs of the network, (n, o), in float64."""
    return columns.T @ readout.value


def _given_mixture(mixture: Any, n_features: int) -> tuple[GivenMixture, str]:
    """What is needed of scikit-learn's mixtures, of ours, or of anything with the same attributes; and its family."""
    name = type(mixture).__name__
    missing = [attribute for attribute in ("means_", "covariances_") if not hasattr(mixture, attribute)]
    if not hasattr(mixture, "weights_") and not hasattr(mixture, "mixing_"):
        missing.append("weights_")
    if missing:
        raise KernelpoolError(
            f"hidden must be one of {PLACES} or a fitted mixture; got {name} without {', '.join(missing)}. Fit it first; "
            f"scikit-learn's clone forgets a fit unless the mixture is wrapped in sklearn.frozen.FrozenEstimator."
        )
    means, covariances = np.asarray(mixture.means_, np.float64), np.asarray(mixture.covariances_, np.float64)
    if means.ndim != 2 or means.shape[1] != n_features:
        raise KernelpoolError(f"hidden has kernels of shape {means.shape}; X has {n_features} features.")
    kind = str(getattr(mixture, "covariance_type_", getattr(mixture, "covariance_type", None)))
    m, d = means.shape
    shapes = {name: family.shape(m, d) for name, family in FAMILIES.items()}
    if covariances.shape != shapes.get(kind):
        raise KernelpoolError(
            f"hidden has covariance_type={kind!r} and covariances of shape {covariances.shape}; expected one of {shapes}."
        )
    return GivenMixture(Kernels(means, covariances), _given_mixing(mixture, m)), kind


def _given_mixing(mixture: Any, n_kernels: int) -> np.ndarray:
    mixing = np.asarray(mixture.weights_ if hasattr(mixture, "weights_") else mixture.mixing_, np.float64)
    if mixing.ndim == 2:
        mixing = mixing @ np.asarray(mixture.class_prior_)
    if mixing.shape != (n_kernels,) or not np.isfinite(mixing).all() or mixing.min() < 0 or not mixing.sum() > 0:
        raise KernelpoolError(
            f"hidden has mixing weights {mixing.tolist()} for {n_kernels} kernels; expected positive numbers."
        )
    return np.asarray(mixing / mixing.sum())


class RBFNetworkClassifier(ProbabilityClassifier, RBFNetwork):
    r"""Radial basis function network: Gaussian kernels, and an output layer on what they say.

    The kernels are one mixture of all rows, which does not see the labels; the output layer does. They are trained one after
    the other (`training="two_stage"`), or together (EM-Log and EM-Log-Link of Ferreira & Figueiredo): in every sweep one
    EM step of the mixture and the output layer for it; with the link, the weights of the output layer become the mixing
    weights of the next sweep, so that kernels that matter to the labels draw more rows.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes ten a class, fewer where X has fewer than five distinct rows for each.
    hidden : {"kmeans", "random", "em", "uniform", "normal"} or fitted mixture, default="kmeans"
        Where the kernels are, or start if `training` moves them: at the centers that k-means finds, as wide as its clusters;
        at random rows, as wide as the data; where EM settles from a k-means start; at random in [-1, 1], or by a Gaussian
        of mean zero and variance one, with unit covariances, in the units of X and whatever its rows are (the paper's step 0,
        and the start of its conclusions); or those of a mixture fitted before, scikit-learn's or anything with `means_`,
        `covariances_`, `covariance_type` and `weights_` or `mixing_`. scikit-learn's `clone` forgets the fit of such a
        mixture unless it is wrapped in `sklearn.frozen.FrozenEstimator`.
    widths : {"unit", "farthest"} or None, default=None
        Widths that replace those of `hidden`, one for all kernels and directions, in the units of X: variance one, as in the
        paper's (1), or the largest squared distance between two centers, as in Netlab. None leaves them as they are. With
        `hidden="em"` they are replaced after EM; what `training` moves then starts with them.
    readout : {"logistic", "least_squares", "ridge"}, default="logistic"
        The output layer. Logistic outputs are log-odds, fitted by likelihood. Outputs of "least_squares" and "ridge" estimate
        P(C_k|x) themselves and sum to one, but may leave [0, 1]: for `predict_proba`, what lies below 1 / (n + K), for n
        training rows, is raised to that, and the outputs are divided by their new sum. The order of the classes stays.
    training : {"em_log_link", "em_log", "two_stage"}, default="em_log_link"
        How the two layers are trained.
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        What a kernel says of a row: its share P(j|x) in the mixture, its density p(x|j) (the paper), or a Gaussian of height
        one. The last two are the same network in other units, and differ only in what the link makes of the weights. In many
        dimensions only the first still varies smoothly.
    temperature : float or None, default=None
        The logarithm of what a kernel says is divided by this, which widens it by the square root. log p(x|j) varies with
        the number of features d, so that in many dimensions one kernel has everything to say and the next nothing. None takes
        for "normalized" the one of 1, d and d² with the least loss on rows left out at the start, and 1, the paper, for the
        other two.
    covariance_type : {"full", "diag", "spherical", "tied"}, default="full"
        Shape of the kernels. The spherical family depends on the units of the features; the other three do not.
    solver : {"damped", "newton", "bound"}, default="damped"
        The logistic step of each sweep: Newton's method with a ridge and a line search until it has converged; or, as in the
        paper, one Newton step with W = p (1 - p), or one with the bound W = 0.25 I. With `training="two_stage"` the last two
        are made until they converge, damped.
    strength : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge on the output layer ("ridge", and "logistic" where `solver` is "damped"): half of it times the
        squared weights is added to the loss, for "ridge" and for two classes; the bias is free. "loo" takes the strength with
        the least loss on rows left out, in closed form (for "logistic" to first order), "gcv" (only for "ridge") that
        with the least generalized cross-validation error. The paper's solvers use no ridge unless a number is given.
    patience : int or None, default=10
        EM does not see the labels and may come to serve them worse. Training stops when the loss on rows left out has not
        fallen for this many sweeps, and the best sweep is kept. None makes `max_iter` sweeps and keeps the last.
    n_init : int, default=1
        Number of starts; the one with the least loss on rows left out is kept.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        A smaller gain per row is none.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in the data.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel; None is maximum likelihood, as in
        the paper.
    unlabeled : int, float, str or None, default=None
        The label in `y` that marks rows without a label: they take part in the hidden layer only.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the results do not depend on it.
    verbose : int, default=0
        1 shows progress, 2 a line each sweep.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_, covariances_, mixing_ : ndarray
        The hidden layer: centers (n_kernels, n_features), covariances in the shape of `covariance_type_`, and the mixing
        weights (n_kernels,) of the mixture.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs)
        The output layer, for the columns of `activations`, and last the bias. One output for two classes: for "logistic" the
        log-odds of the second class, else its probability. One output a class for more.
    activation_log_scale_ : ndarray of shape (n_kernels,)
        log of what each column was divided by: readout_ / exp(activation_log_scale_) are the weights of densities.
    strength_ : float
        Strength of the ridge.
    loss_ : float
        Loss a row on rows left out: log-loss, or for "least_squares" and "ridge" squared error.
    history_ : ndarray
        That loss after each sweep, where it was watched.
    n_iter_, best_iter_ : int
        Sweeps made, and the sweep that was kept.
    converged_ : bool
        Whether training ended by itself.
    covariance_type_ : str
        Family of the kernels.
    temperature_ : float
        The temperature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks".

    Examples
    --------
    Two classes that overlap everywhere; no classifier can err less than 9.7 %:

    >>> from kernelpool import RBFNetworkClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> network = RBFNetworkClassifier(n_kernels=12, random_state=0).fit(X, y)
    >>> print(f"{1 - network.score(X_test, y_test):.2f}")
    0.10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RBFNetwork._parameter_constraints,
        "readout": [StrOptions({"logistic", "least_squares", "ridge"})],
        "solver": [StrOptions({"damped", "newton", "bound"})],
        "unlabeled": "no_validation",
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        hidden: Any = "kmeans",
        widths: str | None = None,
        readout: str = "logistic",
        training: str = "em_log_link",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "full",
        solver: str = "damped",
        strength: float | str = "loo",
        patience: int | None = 10,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = "conjugate",
        unlabeled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.hidden = hidden
        self.widths = widths
        self.readout = readout
        self.training = training
        self.activation = activation
        self.temperature = temperature
        self.covariance_type = covariance_type
        self.solver = solver
        self.strength = strength
        self.patience = patience
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both layers.

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
        self : RBFNetworkClassifier
            The fitted estimator.
        """
        if self.strength == "gcv" and self.readout != "ridge":
            raise KernelpoolError(f"strength='gcv' is for readout='ridge'; got readout={self.readout!r}. Use strength='loo'.")
        data = training_data(self, X, y, sample_weight, self.unlabeled, 1.0, self.n_jobs)
        n_classes = len(data.classes)
        output = partial(self._output, n_classes=n_classes)
        fitted = self._fit_layers(data, KERNELS_PER_CLASS * n_classes, output, once=self.solver != "damped")
        weight = to_numpy(fitted.network.readout.weight)
        if self.readout == "logistic" and n_classes > 2:  # the first class was the reference: now all are alike
            weight = np.concatenate([np.zeros_like(weight[:, :1]), weight], axis=1)
            weight = weight - weight.mean(axis=1, keepdims=True)
        self.classes_ = data.classes
        self._set_layers(fitted)
        self.readout_ = np.array(weight)
        self._smallest = 1 / (data.weight + n_classes)
        self._warn_if_unfinished(fitted)
        return self

    def _output(self, hidden: Hidden, n_classes: int) -> OutputLayer:
        first = 1 if self.readout == "logistic" or n_classes == 2 else 0
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        if self.readout == "logistic":
            return Logistic(hidden, Labels(n_classes, first), strength, bound=self.solver == "bound")
        return LeastSquares(hidden, Labels(n_classes, first), 0.0 if self.readout == "least_squares" else strength)

    def _scores(self, rows: Rows) -> RowFunction:
        framed, hidden, layer = self._layers(rows)
        return RowFunction(framed, _class_outputs, (hidden, layer, Float64(self.readout_), self.readout == "logistic"))

    def _log_probability(self) -> Transform:
        check_is_fitted(self)
        return log_softmax if self.readout == "logistic" else partial(_log_raised, smallest=self._smallest)

    def _probability(self) -> Transform:
        return partial(_exp_of, transform=self._log_probability())

    def decision_function(self, X: Any) -> Any:
        """Outputs of the network before they are made probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        output : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes one number, positive for the second class: its log-odds ("logistic"), or by how much its output
            exceeds that of the first. One number a class for more.
        """
        return self._map_scores(X, _decision)


def _class_outputs(block: Block, hidden: Hidden, layer: Layer, readout: Float64, logistic: bool) -> Array:
    """One output a class, (n, K): of two classes the first is zero, or what is left of one."""
    xp, output = namespace(block.x), _outputs(hidden.columns(block, layer), readout)
    if output.shape[1] > 1:
        return output
    return xp.concat([xp.zeros_like(output) if logistic else 1 - output, output], axis=1)


def _decision(scores: Array) -> Array:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _log_raised(scores: Array, smallest: float) -> Array:
    xp = namespace(scores)
    scores = xp.clip(scores, min=smallest)
    return xp.log(scores / xp.sum(scores, axis=1, keepdims=True))


def _exp_of(scores: Array, transform: Transform) -> Array:
    return namespace(scores).exp(transform(scores))


class RBFNetworkRegressor(MultiOutputMixin, RegressorMixin, RBFNetwork):
    r"""Radial basis function network for real outputs with Gaussian noise.

    As `RBFNetworkClassifier`, with outputs :math:`y = \sum_j \beta_j\, a_j(x) + \beta_0 + \text{noise}`. EM-Log carries over:
    each sweep makes one EM step of the mixture of kernels and solves the output layer for it; with the link, the absolute
    weights, summed over the outputs, become the mixing weights of the next sweep.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes forty, fewer where X has fewer than 200 distinct rows.
    hidden : {"kmeans", "random", "em", "uniform", "normal"} or fitted mixture, default="kmeans"
        Where the kernels are or start, as in `RBFNetworkClassifier`.
    widths : {"unit", "farthest"} or None, default=None
        Widths that replace those of `hidden`, as in `RBFNetworkClassifier`.
    readout : {"ridge", "least_squares"}, default="ridge"
        The output layer.
    training : {"em_log_link", "em_log", "two_stage"}, default="em_log_link"
        How the two layers are trained.
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        What a kernel says of a row; see `RBFNetworkClassifier`.
    temperature : float or None, default=None
        How much wider kernels are for the output layer than for EM; see `RBFNetworkClassifier`.
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Shape of the kernels.
    strength : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge: this times the squared weights is added to the squared errors, the outputs in units of their
        deviation; the bias is free. "loo" takes the one with the least leave-one-out error, "gcv" with the least generalized
        cross-validation error; both in closed form.
    patience : int or None, default=10
        Training stops when the leave-one-out error has not fallen for this many sweeps, and the best sweep is kept. None makes
        `max_iter` sweeps and keeps the last.
    n_init : int, default=1
        Number of starts; the one with the least leave-one-out error is kept.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        A smaller gain per row is none.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in the data.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel; None is maximum likelihood.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the results do not depend on it.
    verbose : int, default=0
        1 shows progress, 2 a line each sweep.

    Attributes
    ----------
    means_, covariances_, mixing_ : ndarray
        The hidden layer, as in `RBFNetworkClassifier`.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs)
        The output layer, for the columns of `activations`, and last the bias, in the units of y.
    noise_variance_ : ndarray of shape (n_outputs,)
        Variance of the noise: squared residuals, divided by the rows less the effective number of weights.
    activation_log_scale_ : ndarray of shape (n_kernels,)
        log of what each column was divided by.
    strength_ : float
        Strength of the ridge.
    loss_ : float
        Squared leave-one-out error a row, summed over the outputs, each in units of its variance.
    history_ : ndarray
        That error after each sweep, where it was watched.
    n_iter_, best_iter_ : int
        Sweeps made, and the sweep that was kept.
    converged_ : bool
        Whether training ended by itself.
    covariance_type_ : str
        Family of the kernels.
    temperature_ : float
        The temperature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks".

    Examples
    --------
    A sine, with noise of variance 0.01:

    >>> import numpy as np
    >>> from kernelpool import RBFNetworkRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (500, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(0, 0.1, 500)
    >>> network = RBFNetworkRegressor(random_state=0).fit(X, y)
    >>> print(network.predict([[np.pi / 2]]).round(1), network.noise_variance_.round(2))
    [1.] [0.01]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RBFNetwork._parameter_constraints,
        "readout": [StrOptions({"least_squares", "ridge"})],
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        hidden: Any = "kmeans",
        widths: str | None = None,
        readout: str = "ridge",
        training: str = "em_log_link",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "diag",
        strength: float | str = "loo",
        patience: int | None = 10,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = "conjugate",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.hidden = hidden
        self.widths = widths
        self.readout = readout
        self.training = training
        self.activation = activation
        self.temperature = temperature
        self.covariance_type = covariance_type
        self.strength = strength
        self.patience = patience
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : RBFNetworkRegressor
            The fitted estimator.
        """
        data, values, flat = regression_data(self, X, y, sample_weight, self.n_jobs)
        fitted = self._fit_layers(data, KERNELS_OF_REGRESSOR, partial(self._output, values=values))
        output, network, scale = fitted.output, fitted.network, np.asarray(values.scale)
        assert isinstance(output, LeastSquares)
        noise, spread = output.doubt(fitted.rows, network.layer, network.readout)
        self._set_layers(fitted)
        self.readout_ = to_numpy(network.readout.weight) * scale
        self.readout_[-1] += values.mean
        self.noise_variance_, self._spread = to_numpy(noise) * scale**2, np.array(to_numpy(spread))
        self._flat = flat
        self._warn_if_unfinished(fitted)
        return self

    def _output(self, hidden: Hidden, values: Values) -> OutputLayer:
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        return LeastSquares(hidden, values, 0.0 if self.readout == "least_squares" else strength)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected outputs of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Return the standard deviation of a new observation too: noise, and doubt about the output layer. The kernels
            are taken for granted, and far from all rows the doubt does not grow as that of a Gaussian process does.

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Means, in float64.
        std : array of the same shape
            Only where `return_std`.
        """
        check_is_fitted(self)
        mean = self._of_columns(X, _outputs, Float64(self.readout_))
        mean = mean[:, 0] if self._flat else mean
        if not return_std:
            return mean
        std = self._of_columns(X, _deviation, Float64(self._spread), Float64(self.noise_variance_))
        return mean, std[:, 0] if self._flat else std


def _deviation(columns: Array, spread: Float64, noise: Float64) -> Array:
    xp = namespace(columns)
    lever = xp.sum(columns * _outputs(columns, spread).T, axis=0)
    return ((1 + xp.clip(lever, min=0.0))[:, None] * noise.value) ** 0.5


RBF_FITTED = {
    "means_": Field("floats", ("M", "d")),
    "covariance_type_": Field("family"),
    "covariances_": Field("covariances"),
    "mixing_": Field("shares", ("M",)),
    "temperature_": Field("float", low=0.0, open_low=True),
    "activation_log_scale_": Field("floats", ("M",)),
    "strength_": FLOAT,
    "loss_": FLOAT,
    "history_": HISTORY,
    "n_iter_": COUNT,
    "best_iter_": COUNT,
    "converged_": BOOL,
}
"""What both networks hold in a model file."""

RBF_PARAMETERS = {
    "hidden": Field(
        "model",
        classes=("SharedKernelClassifier", "RBFNetworkClassifier", "RBFNetworkRegressor", "FrozenEstimator"),
        options=PLACES,
    )
}

register(
    EstimatorRecord(
        RBFNetworkClassifier,
        describe="kernelpool.inspection.pool:describe_rbf",
        command="rbf",
        fitted={
            **CLASSES,
            **RBF_FITTED,
            "readout_": Field("floats", ("M+1", "o")),
            "_smallest": Field("float", low=0.0, high=1.0, open_low=True),
        },
        optional=FEATURE_NAMES,
        parameters=RBF_PARAMETERS,
        check="kernelpool.files.checks:rbf",
        probe=lambda model: model.means_,
        onnx="kernelpool.export.networks:rbf_classifier",
    )
)

register(
    EstimatorRecord(
        RBFNetworkRegressor,
        describe="kernelpool.inspection.pool:describe_rbf",
        fitted={
            **FEATURES,
            **RBF_FITTED,
            "readout_": Field("floats", ("M+1", "o")),
            "noise_variance_": Field("floats", ("o",), low=0.0),
            "_spread": Field("floats", ("M+1", "M+1")),
            "_flat": BOOL,
        },
        optional=FEATURE_NAMES,
        parameters=RBF_PARAMETERS,
        check="kernelpool.files.checks:rbf",
        probe=lambda model: model.means_,
        onnx="kernelpool.export.networks:rbf_regressor",
    )
)
