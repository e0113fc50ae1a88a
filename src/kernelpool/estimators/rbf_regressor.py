"""RBF network regressor: the shell of `networks.em_log` and `networks.least_squares`."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device, namespace, to_numpy
from ..networks.least_squares import LeastSquares
from ..registry import BOOL, FEATURE_NAMES, FEATURES, EstimatorRecord, Field, register
from ..training.validation import named_features
from .rbf_layers import RBF_FITTED, RBF_PARAMETERS, RBFNetwork, outputs
from .rbf_training import RBFTraining, regression_data

KERNELS = 40


class RBFNetworkRegressor(MultiOutputMixin, RegressorMixin, RBFNetwork):
    r"""Radial basis function network for real outputs with Gaussian noise.

    As `RBFNetworkClassifier`, with outputs :math:`y = \sum_j \beta_j\, a_j(x) + \beta_0 + \text{noise}`. EM-Log carries over:
    each sweep makes one EM step of the mixture of kernels and solves the output layer for it; with the link, the absolute
    weights, summed over the outputs, become the mixing weights of the next sweep.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes forty, fewer where X has fewer than 200 distinct rows.
    hidden : {"kmeans", "random", "em"} or fitted mixture, default="kmeans"
        Where the kernels are, or start; see `RBFNetworkClassifier`.
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
        data, values, self._flat = regression_data(self, X, y, sample_weight, self.n_jobs)
        setup = RBFTraining(self, data, KERNELS)
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        output = LeastSquares(setup.hidden, values, 0.0 if self.readout == "least_squares" else strength)
        with named_features(getattr(self, "feature_names_in_", None)):
            fitted = setup.best(output)
        network, scale = fitted.run.network, np.asarray(values.scale)
        self.readout_ = to_numpy(network.readout.weight) * scale
        self.readout_[-1] += values.mean
        noise, spread = output.doubt(setup.rows, network.layer, network.readout)
        self.noise_variance_, self._spread = to_numpy(noise) * scale**2, np.array(to_numpy(spread))
        self._keep(fitted, setup)
        return self

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
        mean = self._of_columns(X, outputs, self.readout_.tolist())
        mean = mean[:, 0] if self._flat else mean
        if not return_std:
            return mean
        std = self._of_columns(X, _deviation, self._spread.tolist(), self.noise_variance_.tolist())
        return mean, std[:, 0] if self._flat else std


def _deviation(columns: Array, spread: list[list[float]], noise: list[float]) -> Array:
    xp = namespace(columns)
    lever = xp.sum(columns * outputs(columns, spread).T, axis=0)
    noise = xp.asarray(noise, dtype=xp.float64, device=device(columns))
    return ((1 + xp.clip(lever, min=0.0))[:, None] * noise) ** 0.5


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
