"""What the RBF network classifier and regressor share: their hidden layer, and the outputs read from it."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device, namespace, safe_log
from ..errors import UnfinishedWarning, warn
from ..inspection.notebook import NotebookMixin
from ..kernels import FAMILIES, Kernels
from ..networks.em_log import ACTIVATIONS, Hidden, Layer
from ..registry import BOOL, COUNT, FLOAT, HISTORY, Field
from ..rows import Block, Rows
from ..training.validation import mixture_frame, query_rows
from .rbf_training import Fitted, RBFTraining


class RBFNetwork(NotebookMixin, BaseEstimator):
    """What both networks have in common."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [Interval(Integral, 1, None, closed="left"), None],
        "hidden": "no_validation",  # a name or a mixture: looked at where it is used
        "training": [StrOptions({"two_stage", "em_log", "em_log_link"})],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "temperature": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_type": [StrOptions(set(FAMILIES))],
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

    def _keep(self, fitted: Fitted, setup: RBFTraining) -> None:
        """Keeps what was reached, and says so where that is not the end of it."""
        self.means_, self.covariances_, self.mixing_ = fitted.means, fitted.covariances, fitted.mixing
        self.covariance_type_ = setup.covariance_type
        self.temperature_ = fitted.temperature
        self.activation_log_scale_ = fitted.log_scale
        self.strength_ = fitted.run.network.readout.strength
        self.loss_, self.history_ = fitted.loss, np.asarray(fitted.run.history)
        self.n_iter_, self.best_iter_ = fitted.run.n_sweeps, fitted.run.best_sweep
        self.converged_ = fitted.settled
        if not fitted.settled:
            what = "the mixture was" if self.training == "two_stage" else "the loss of rows left out was"
            warn(
                f"Training stopped after max_iter={self.max_iter} sweeps; {what} still improving. Raise max_iter, or tol.",
                UnfinishedWarning,
            )
        if setup.interrupted is not None:
            raise KeyboardInterrupt(setup.interrupted)

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
        return framed.each(_answered, answer, hidden, layer, *params)

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


def _answered(block: Block, answer: Callable[..., Array], hidden: Hidden, layer: Layer, *params: Any) -> Array:
    return answer(hidden.columns(block, layer), *params)


def _activation(columns: Array) -> Array:
    return columns[:-1, :].T


def outputs(columns: Array, readout: list[list[float]]) -> Array:
    """Outputs of the network, (n, o), in float64: the weights come as numbers, so that no float type rounds them."""
    xp = namespace(columns)
    return columns.T @ xp.asarray(readout, dtype=xp.float64, device=device(columns))


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
        classes=("SharedKernelClassifier", "RBFNetworkClassifier", "RBFNetworkRegressor"),
        options=("kmeans", "random", "em"),
    )
}
