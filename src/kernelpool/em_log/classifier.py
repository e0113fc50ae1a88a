"""EM-Log classifier and regressor: the scikit-learn estimators of `kernelpool.em_log.fit`."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from ..base.constraints import COUNT, NOT_NEGATIVE, POSITIVE
from ..base.estimator import Estimator
from ..complete.classifier import KernelNetworkClassifier
from ..data.door import encoded_rows
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..inspection.description import (
    Description,
    KernelTable,
    classes_text,
    features_text,
    training_text,
)
from ..kernels import FAMILIES
from ..mixtures.description import gaussian_shapes, gaussians_text
from ..text import plural
from .fit import EMLogSettings, fit_classes, fit_numbers
from .network import ACTIVATIONS, FittedEMLogClassifier
from .onnx import regression_to_graph, to_graph


class EMLogEstimator(Estimator):
    """What the classifier and the regressor have in common."""

    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [*COUNT, None],
        "init": "no_validation",  # a name or a mixture: checked where it is used
        "training": [StrOptions({"two_stage", "em_log", "em_log_link"})],
        "ridge": [StrOptions({"loo", "gcv"}), *NOT_NEGATIVE],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "temperature": [*POSITIVE, None],
        "covariance_type": [StrOptions(set(FAMILIES))],
        "kernel_prior": [StrOptions({"conjugate"}), None],
        "patience": [*COUNT, None],
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        init: Any = "kmeans",
        training: str = "em_log_link",
        ridge: float | str = "loo",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "diag",
        kernel_prior: str | None = "conjugate",
        patience: int | None = 10,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.init = init
        self.training = training
        self.ridge = ridge
        self.activation = activation
        self.temperature = temperature
        self.covariance_type = covariance_type
        self.kernel_prior = kernel_prior
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _layers(self, **resolved: Any) -> EMLogSettings:
        """The parameters of both layers."""
        seed = check_random_state(self.random_state).randint(2**31)
        return self._settings(EMLogSettings, seed=seed, **resolved)

    def _finish(self, outcome: str) -> Self:
        if not self.converged_:
            layer = "mixture" if self.training == "two_stage" else "loss of rows left out"
            warn(
                f"Training stopped after max_iter={self.max_iter} sweeps; the {layer} was still "
                f"improving. Raise max_iter, or tol.",
                UnfinishedWarning,
            )
        if outcome == "interrupted":
            raise KeyboardInterrupt(
                f"interrupted after {self.n_iter_} sweeps; the best network so far was kept"
            )
        return self

    def _describe(self) -> Description:
        share = self.mixing_
        classifier = isinstance(self, EMLogClassifier)
        n = plural(len(share), f"{gaussians_text(self.covariance_type_)} Gaussian kernel")
        task = f"for {classes_text(self)}" if classifier else "for real outputs"
        layer = "logistic" if classifier and self.readout != "least_squares" else "linear"
        # with categories the kernels are in the space of the indicators
        shapes = {} if any(self.columns_.levels) else gaussian_shapes(self)
        two_stage = self.training == "two_stage"
        how = "the two layers trained one after the other" if two_stage else "both trained together"
        return Description(
            f"A radial basis function network: {n} in {features_text(self)} and a {layer} output "
            f"layer {task}, {how} ({self.training}){training_text(self, fitted='')}",
            KernelTable(share / share.sum(), **shapes),
        )


class EMLogClassifier(KernelNetworkClassifier, EMLogEstimator):
    r"""EM-Log and EM-Log-Link: an RBF network whose layers are trained together.

    The hidden layer is one Gaussian mixture of all rows, which does not depend on the labels; the
    output layer is a logistic regression on the kernels. Each sweep makes one EM step of the
    mixture and solves the output layer for it; with the link, the absolute weights of the output
    layer become the mixing weights of the next sweep, so that kernels that matter to the labels get
    more rows (Ferreira & Figueiredo).

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes ten for each class, fewer where X has fewer than five
        distinct rows for each kernel.
    init : {"kmeans", "random", "em"} or fitted mixture, default="kmeans"
        First kernels: the clusters of k-means; random rows with the variance of the data; where EM
        converges from k-means; or those of a fitted mixture, scikit-learn's or any object with
        `means_`, `covariances_`, `covariance_type` and `weights_` or `mixing_`. scikit-learn's
        `clone` drops the fit of such a mixture unless it is wrapped in
        `sklearn.frozen.FrozenEstimator`.
    training : {"em_log_link", "em_log", "two_stage"}, default="em_log_link"
        How the layers are trained: together, with or without the link, or the output layer after
        the hidden layer, which stays as `init` makes it.
    readout : {"logistic", "newton", "bound", "least_squares"}, default="logistic"
        The output layer. "logistic" solves a logistic regression with a ridge in each sweep.
        "newton" and "bound" make one Newton step as printed in the paper, with W = p (1 - p) or W =
        0.25 I (with ``training="two_stage"`` they converge). Outputs of "least_squares" estimate
        P(C_k|x) and sum to one, but may leave [0, 1]: those below 1 / (n + K) are raised to that,
        and all are divided by their sum.
    ridge : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge on the output layer: half of it times the squared weights is added to
        the loss; the bias is free. "loo" takes the strength with the least loss on rows left out,
        in closed form (for "logistic" to first order); "gcv", for "least_squares", that with the
        least generalized cross-validation error. "newton" and "bound" have no ridge unless a number
        is given.
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        Output of a kernel: its posterior P(j|x) in the mixture, its density p(x|j) (the paper), or
        a Gaussian of height one. The last two are the same network in other units, and differ only
        in what the link makes of the weights. In many dimensions only the first varies smoothly.
    temperature : float or None, default=None
        The logarithm of the activation is divided by this. None takes for "normalized" the one of
        1, d and d² (d features) with the least loss on rows left out at the start, and 1 for the
        others.
    covariance_type : {"full", "diag", "spherical", "tied"}, default="full"
        Shape of the kernels. Spherical kernels are spherical in features of variance one.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel; None is
        maximum likelihood, as in the paper.
    patience : int or None, default=10
        EM does not depend on the labels and may make the output layer worse. Training stops when
        the loss on rows left out has not fallen for this many sweeps, and the best sweep is kept.
        None makes `max_iter` sweeps and keeps the last.
    max_iter : int, default=200
        Largest number of sweeps.
    tol : float, default=1e-5
        Smallest gain per row that counts.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns of X are categorical, as in `SharedKernelClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the start.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_, covariances_, mixing_ : ndarray
        The hidden layer: means (n_kernels, n_columns), covariances in the shape of
        `covariance_type_`, and mixing weights (n_kernels,). The columns are the features; with
        categorical features the numbers and then one indicator for each category.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs)
        Weights of `activations`, and the bias. One output for two classes: the log-odds of the
        second class, or for "least_squares" its probability. One output for each class otherwise.
    activation_log_scale_ : ndarray of shape (n_kernels,)
        log of what each activation was divided by.
    ridge_ : float
        Strength of the ridge.
    loss_ : float
        Loss per row on rows left out: log-loss, or squared error for "least_squares".
    history_ : ndarray
        That loss after each sweep, where it was monitored.
    n_iter_, best_iter_ : int
        Sweeps made, and the sweep that was kept.
    converged_ : bool
        Whether training ended before `max_iter`.
    covariance_type_ : str
        Family of the kernels.
    activation_ : str
        As `activation`.
    temperature_ : float
        The temperature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    RBFNetworkClassifier : Many kernels of one width, chosen on held-out rows; usually more accurate.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural
    networks".

    Examples
    --------
    >>> from kernelpool import EMLogClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> network = EMLogClassifier(n_kernels=12, random_state=0).fit(X, y)
    >>> print(f"{1 - network.score(*make_clouds(random_state=1)):.2f}")
    0.10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **EMLogEstimator._parameter_constraints,
        **KernelNetworkClassifier._parameter_constraints,
        "readout": [StrOptions({"logistic", "newton", "bound", "least_squares"})],
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        init: Any = "kmeans",
        training: str = "em_log_link",
        readout: str = "logistic",
        ridge: float | str = "loo",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "full",
        kernel_prior: str | None = "conjugate",
        patience: int | None = 10,
        max_iter: int = 200,
        tol: float = 1e-5,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_kernels,
            init=init,
            training=training,
            ridge=ridge,
            activation=activation,
            temperature=temperature,
            covariance_type=covariance_type,
            kernel_prior=kernel_prior,
            patience=patience,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
        )
        self.readout = readout
        self.categorical_features = categorical_features

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels; rows whose label is missing (None, NaN) take part in the hidden layer only.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : EMLogClassifier
            The fitted estimator.
        """
        if self.ridge == "gcv" and self.readout != "least_squares":
            raise KernelpoolError(
                f"ridge='gcv' is for readout='least_squares'; got readout={self.readout!r}. Use "
                f"ridge='loo'."
            )
        door, data = self._complete_data(X, y, sample_weight, unlabeled=np.nan)
        network, outcome = fit_classes(data, self._layers())
        self._fitted = FittedEMLogClassifier(door, network)
        return self._finish(outcome)

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)


class EMLogRegressor(MultiOutputMixin, RegressorMixin, EMLogEstimator):
    r"""EM-Log and EM-Log-Link for real outputs with Gaussian noise.

    As `EMLogClassifier`, with outputs :math:`y = \sum_j \beta_j\, a_j(x) + \beta_0 + \text{noise}`.
    Each sweep makes one EM step of the mixture of kernels and solves the output layer for it; with
    the link, the absolute weights, summed over the outputs, become the mixing weights of the next
    sweep.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes forty, fewer where X has fewer than 200 distinct rows.
    init : {"kmeans", "random", "em"} or fitted mixture, default="kmeans"
        As in `EMLogClassifier`.
    training : {"em_log_link", "em_log", "two_stage"}, default="em_log_link"
        As in `EMLogClassifier`.
    ridge : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge: this times the squared weights is added to the squared errors, the
        outputs in units of their deviation; the bias is free. "loo" takes the one with the least
        leave-one-out error, "gcv" with the least generalized cross-validation error; both in closed
        form. 0 is least squares.
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        As in `EMLogClassifier`.
    temperature : float or None, default=None
        As in `EMLogClassifier`.
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Shape of the kernels.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        As in `EMLogClassifier`.
    patience : int or None, default=10
        As in `EMLogClassifier`.
    max_iter : int, default=200
        Largest number of sweeps.
    tol : float, default=1e-5
        Smallest gain per row that counts.
    random_state : int, RandomState instance or None, default=None
        Seed of the start.

    Attributes
    ----------
    means_, covariances_, mixing_, activation_log_scale_ : ndarray
        The hidden layer, as in `EMLogClassifier`.
    covariance_type_, activation_, temperature_ : str, str, float
        As in `EMLogClassifier`.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs)
        The output layer, for the columns of `activations`, and last the bias, in the units of y.
    noise_variance_ : ndarray of shape (n_outputs,)
        Variance of the noise: squared residuals, divided by the rows less the effective number of
        weights.
    loss_ : float
        Squared leave-one-out error per row, summed over the outputs, each in units of its variance.
    ridge_, history_, n_iter_, best_iter_, converged_ : float, ndarray, int, int, bool
        As in `EMLogClassifier`.
    readout_covariance_ : ndarray of shape (n_kernels + 1, n_kernels + 1)
        Covariance of the weights, in units of the noise variance.
    single_output_ : bool
        Whether y was one-dimensional.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural
    networks".

    Examples
    --------
    A sine, with noise of variance 0.01:

    >>> import numpy as np
    >>> from kernelpool import EMLogRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (500, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(0, 0.1, 500)
    >>> network = EMLogRegressor(random_state=0).fit(X, y)
    >>> print(network.predict([[np.pi / 2]]).round(1), network.noise_variance_.round(2))
    [1.] [0.01]
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : EMLogRegressor
            The fitted estimator.
        """
        settings = self._layers(readout="least_squares")
        self._fitted, outcome = fit_numbers(X, y, sample_weight, settings, type(self).__name__)
        return self._finish(outcome)

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return regression_to_graph(x, self._fitted)

    def _checked(self, X: Any) -> np.ndarray:
        x = np.asarray(encoded_rows(self, X), np.float64)
        if np.isnan(x).any():
            raise ValueError("Input X contains NaN; EMLogRegressor takes complete rows only.")
        return x

    def activations(self, X: Any) -> Any:
        """Outputs of the kernels: the columns that `readout_` weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        activation : ndarray of shape (n_samples, n_kernels)
            p(x|j) / exp(activation_log_scale_), or P(j|x) where `activation` is "normalized".
        """
        x = self._checked(X)
        return self._fitted.network.activations(x)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected outputs of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Return the standard deviation of a new observation too: noise, and the uncertainty of
            the output layer given the kernels. Far from all rows it does not grow as that of a
            Gaussian process does.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Means.
        std : ndarray of the same shape
            Only where `return_std`.
        """
        x = self._checked(X)
        fitted = self._fitted
        activations = fitted.network.activations(x)
        mean, std = fitted.predicted(activations)
        if fitted.single_output:
            mean = mean[:, 0]
            std = std[:, 0]
        return (mean, std) if return_std else mean
