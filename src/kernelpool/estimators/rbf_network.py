"""RBF network classifier: the shell of `networks.em_log`, `networks.logistic` and `networks.least_squares`."""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, namespace, to_numpy
from ..errors import KernelpoolError
from ..networks.em_log import Hidden, Layer
from ..networks.least_squares import LeastSquares
from ..networks.logistic import Logistic
from ..networks.readout import Labels
from ..registry import CLASSES, FEATURE_NAMES, EstimatorRecord, Field, register
from ..rows import Block, Rows
from ..training.validation import named_features, training_data
from ._base import Answer, ProbabilityClassifier, Question, log_softmax
from .rbf_layers import RBF_FITTED, RBF_PARAMETERS, RBFNetwork, outputs
from .rbf_training import RBFTraining

KERNELS_PER_CLASS = 10


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
    hidden : {"kmeans", "random", "em"} or fitted mixture, default="kmeans"
        Where the kernels are, or start if `training` moves them: at the centers that k-means finds, as wide as its clusters;
        at random rows, as wide as the data; where EM settles from a k-means start; or those of a mixture fitted before,
        scikit-learn's or anything with `means_`, `covariances_`, `covariance_type` and `weights_` or `mixing_`.
        scikit-learn's `clone` forgets the fit of such a mixture unless it is wrapped in `sklearn.frozen.FrozenEstimator`.
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
        setup = RBFTraining(self, data, KERNELS_PER_CLASS * n_classes)
        with named_features(getattr(self, "feature_names_in_", None)):
            fitted = setup.best(self._output(setup.hidden, n_classes))
        self.classes_ = data.classes
        weight = to_numpy(fitted.run.network.readout.weight)
        if self.readout == "logistic" and n_classes > 2:  # the first class was the reference: now all are alike
            weight = np.concatenate([np.zeros_like(weight[:, :1]), weight], axis=1)
            weight = weight - weight.mean(axis=1, keepdims=True)
        self.readout_ = np.array(weight)
        self._smallest = 1 / (data.weight + n_classes)
        self._keep(fitted, setup)
        return self

    def _output(self, hidden: Hidden, n_classes: int) -> Any:
        first = 1 if self.readout == "logistic" or n_classes == 2 else 0
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        if self.readout == "logistic":
            return Logistic(hidden, Labels(n_classes, first), strength, bound=self.solver == "bound")
        return LeastSquares(hidden, Labels(n_classes, first), 0.0 if self.readout == "least_squares" else strength)

    def _scores(self, rows: Rows) -> Question:
        framed, hidden, layer = self._layers(rows)
        return framed, _class_outputs, (hidden, layer, self.readout_.tolist(), self.readout == "logistic")

    def _log_probability(self) -> Answer:
        check_is_fitted(self)
        return log_softmax if self.readout == "logistic" else partial(_log_raised, smallest=self._smallest)

    def _probability(self) -> Answer:
        return partial(_exp_of, answer=self._log_probability())

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
        return self._each(X, _decision)


def _class_outputs(block: Block, hidden: Hidden, layer: Layer, readout: list[list[float]], logistic: bool) -> Array:
    """One output a class, (n, K): of two classes the first is zero, or what is left of one."""
    xp, output = namespace(block.x), outputs(hidden.columns(block, layer), readout)
    if output.shape[1] > 1:
        return output
    return xp.concat([xp.zeros_like(output) if logistic else 1 - output, output], axis=1)


def _decision(scores: Array) -> Array:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _log_raised(scores: Array, smallest: float) -> Array:
    xp = namespace(scores)
    scores = xp.clip(scores, min=smallest)
    return xp.log(scores / xp.sum(scores, axis=1, keepdims=True))


def _exp_of(scores: Array, answer: Answer) -> Array:
    return namespace(scores).exp(answer(scores))


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
