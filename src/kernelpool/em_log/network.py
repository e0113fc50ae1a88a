r"""EM-Log networks: the fitted record, its forward pass, and the sweep that trains both layers.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks",
equations (2)-(5), steps 1a-1f. The symbols, and the deviations from the paper, are those of
`kernelpool.em_log`.

The hidden layer is a shared-kernel network with one class, that of every row: its E- and M-step,
(3) and (4), are those of `kernelpool.mixtures.network`. The output layer is one of
`kernelpool.em_log.readout`.

Densities, and Gaussians of height one, are the same functions in other units, which only the link
can tell apart. In either unit a column may be 1e-20 or 1e+20 everywhere, so columns are divided by
their largest value and the weights keep their meaning through `log_unit`. With more outputs than
one, the link takes the sum of their absolute weights, of K classes their deviations from the mean
class.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from ..arrays import safe_log
from ..complete.classifier import CompleteDoor
from ..kernels import Kernel, NaturalParams
from ..mixtures.fitted import ClassDensities
from ..mixtures.network import Params, SharedKernel
from ..records import nested, saved
from ..rows import ArrayRows, Block
from ..tables.columns import Columns
from .readout import LeastSquares, Logistic, Readout

ACTIVATIONS = ("density", "gaussian", "normalized")

LARGEST = {np.dtype(np.float64): 300.0, np.dtype(np.float32): 80.0}
"""Largest exponent of a column: a row nearer to a kernel than any that it was trained on stays
finite."""


# -- the forward pass ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hidden:
    """From rows to the columns of the output layer."""

    kernel: Kernel
    activation: str
    temperature: float = 1.0

    def log_activation(
        self, rows: ArrayRows, natural_params: NaturalParams, mixing: np.ndarray
    ) -> np.ndarray:
        """log p(x|j), or log P(j|x), (n, M), at the temperature: kernels wider by its square
        root.
        """
        log_density = np.asarray(rows.each(self._log_density, natural_params)) / self.temperature
        if self.activation != "normalized":
            return log_density
        log_joint = log_density + safe_log(mixing) / self.temperature
        return log_joint - logsumexp(log_joint, axis=1, keepdims=True)

    def _log_density(self, block: Block, natural_params: NaturalParams) -> Any:
        return self.kernel.log_density(natural_params, block.x).T

    def layer(self, rows: ArrayRows, params: Params) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`design`, `log_scale` and `log_unit` at `params`: the columns are scaled to a largest
        value of one over rows of positive weight.
        """
        natural_params = self.kernel.natural_params(params.kernels, rows.eps)
        log_activation = self.log_activation(rows, natural_params, params.mixing[:, 0])
        log_scale = log_unit = np.zeros(log_activation.shape[1])
        if self.activation != "normalized":
            present = slice(None) if rows.weight is None else rows.weight > 0
            log_scale = log_unit = log_activation[present].max(axis=0)
        if self.activation == "gaussian":
            log_unit = log_scale - self.kernel.log_peak(params.kernels) / self.temperature
        columns = scaled_columns(log_activation, log_scale)
        return np.hstack([columns, np.ones((len(columns), 1))]), log_scale, log_unit


def scaled_columns(log_activation: Any, log_scale: np.ndarray) -> Any:
    """The activations divided by exp(log_scale), (n, M)."""
    return np.exp(np.minimum(log_activation - log_scale, LARGEST[log_activation.dtype]))


@saved(kw_only=True)
class EMLogNetwork:
    """A trained network in the units of the data."""

    means: np.ndarray
    covariances: np.ndarray
    covariance_type: str
    mixing: np.ndarray
    readout: np.ndarray
    """(M + 1, o)."""
    activation: str
    activation_log_scale: np.ndarray
    """log of what each column is divided by, (M,)."""
    temperature: float
    ridge: float
    loss: float
    """Per row, on rows left out."""
    history: np.ndarray
    n_iter: int
    best_iter: int
    converged: bool
    smallest: float | None = None
    """What the outputs of least squares are raised to; None where outputs are log-odds."""

    @cached_property
    def mixture(self) -> ClassDensities:
        """The hidden layer: a mixture of one class."""
        return ClassDensities(
            self.covariance_type,
            self.means,
            self.covariances,
            self.mixing[:, None],
            np.ones(1),
            None,
            (0,) * self.means.shape[1],
        )

    def activations(self, x: np.ndarray) -> np.ndarray:
        """Columns of the readout without the bias, (n, M)."""
        mixture = self.mixture
        frame = mixture.frame
        log_scale = self.activation_log_scale
        if self.activation != "normalized":
            log_scale = log_scale + frame.log_volume / self.temperature
        rows = ArrayRows(x).framed(frame, 6 * len(self.means))
        hidden = Hidden(mixture.kernel, self.activation, self.temperature)
        log_activation = hidden.log_activation(rows, mixture.natural_params(rows.eps), self.mixing)
        return scaled_columns(log_activation, log_scale)

    def outputs(self, activations: Any) -> Any:
        """(n, o)."""
        return activations @ self.readout[:-1] + self.readout[-1]

    def class_outputs(self, activations: Any) -> Any:
        """Of a classifier log-odds, or by least squares what is proportional to P(C_k|x), (n, K)."""
        output = self.outputs(activations)
        if self.readout.shape[1] == 1:
            output = np.hstack([output * 0 if self.smallest is None else 1 - output, output])
        return output if self.smallest is None else np.maximum(output, self.smallest)

    def log_proba(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x) of a classifier, (n, K)."""
        output = self.class_outputs(self.activations(x))
        if self.smallest is None:
            return log_softmax(output, axis=1)
        return np.log(output / output.sum(axis=1, keepdims=True))


@saved
class FittedEMLogClassifier:
    """The fitted state of an `EMLogClassifier`."""

    door: CompleteDoor = nested()
    network: EMLogNetwork = nested()


@saved(kw_only=True)
class FittedEMLogRegressor:
    """The fitted state of an `EMLogRegressor`."""

    columns: Columns
    network: EMLogNetwork = nested()
    noise_variance: np.ndarray
    """(o,)."""
    readout_covariance: np.ndarray
    """Of the weights, in units of the noise variance, (M + 1, M + 1)."""
    single_output: bool
    """Whether y was one-dimensional."""

    def predicted(self, activations: Any) -> tuple[Any, Any]:
        """Mean and standard deviation of a new observation, (n, o) each."""
        spread = self.readout_covariance
        quadratic = (activations @ spread[:-1, :-1]) * activations
        linear = activations @ (2 * spread[:-1, -1:]) + spread[-1, -1]  # (n, 1)
        leverage = quadratic.sum(axis=1, keepdims=True) + linear
        variance = (1 + np.maximum(leverage, 0)) * self.noise_variance
        return self.network.outputs(activations), np.sqrt(variance)


# -- training --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RBFParams:
    """Both layers."""

    hidden: Params
    design: np.ndarray
    """The activations, scaled, and last the bias, (n, M + 1)."""
    log_scale: np.ndarray
    """log of what each column is divided by, (M,)."""
    log_unit: np.ndarray
    """log of the scaled column's one in the units of the activation: true weight = weight /
    exp(log_unit), (M,)."""
    readout: Readout


@dataclass(frozen=True)
class EMLog:
    """Steps 1a-1f; `link` is step 1f, `once` makes step 1e one undamped step as printed."""

    mixture: SharedKernel
    hidden: Hidden
    output: Logistic | LeastSquares
    link: bool
    once: bool

    def at(self, temperature: float) -> "EMLog":
        """The same at another temperature."""
        return replace(self, hidden=replace(self.hidden, temperature=temperature))

    def sweep(
        self, rows: ArrayRows, params: Params, before: RBFParams | None
    ) -> tuple[Params, RBFParams, float]:
        """Parameters for the next sweep, the network of this one, and the log-likelihood per row of
        the given mixture.
        """
        params, log_likelihood = self.mixture.sweep(rows, params)  # 1a-1d
        network = self.read(rows, params, before, once=self.once)  # 1e
        return (self.linked(network) if self.link else params), network, log_likelihood

    def read(
        self,
        rows: ArrayRows,
        params: Params,
        before: RBFParams | None = None,
        *,
        once: bool = False,
    ) -> RBFParams:
        """Step 1e: the output layer of a hidden layer."""
        design, log_scale, log_unit = self.hidden.layer(rows, params)
        solve = self.output.step if once else self.output.solve
        readout = solve(design, None if before is None else carried(before, log_unit))
        return RBFParams(params, design, log_scale, log_unit, readout)

    def linked(self, network: RBFParams) -> Params:
        """Step 1f: mixing weights from the output layer, |beta_j| / sum |beta|, in the units of the
        activation.
        """
        params = network.hidden
        size = np.abs(self.output.of_classes(network.readout.weight[:-1])).sum(axis=1)
        if not size.any():
            return params
        log_size = safe_log(size) - network.log_unit
        mixing = np.exp(log_size - logsumexp(log_size))
        return Params(params.kernels, mixing[:, None], params.class_prior)


def carried(before: RBFParams, log_unit: np.ndarray) -> Readout:
    """The output layer of the sweep before with the same weights in the units of the activation,
    for columns of `log_unit`.
    """
    readout = before.readout
    largest = LARGEST[log_unit.dtype]
    factor = np.exp(np.clip(log_unit - before.log_unit, -largest, largest))
    weight = readout.weight * np.append(factor, 1.0)[:, None]
    return Readout(weight, readout.strength, readout.age)


@dataclass
class EMLogRun:
    """How a training went."""

    network: RBFParams
    """Of the best sweep; of the last, where the loss is not computed."""
    history: list[float] = field(default_factory=list)
    """Loss of rows left out after every sweep; empty without `patience`."""
    n_sweeps: int = 0
    best_sweep: int = 0
    outcome: str = "max_iter"
    """patience: the loss stopped falling; settled: the mixture stopped changing; interrupted by the
    user; or max_iter."""


def train(
    em_log: EMLog,
    rows: ArrayRows,
    start: Params,
    max_iter: int,
    tol: float,
    patience: int | None,
) -> EMLogRun:
    """Sweep until the loss of rows left out has not fallen for `patience` sweeps; with None,
    `max_iter` sweeps in any case.
    """
    params = start
    network = None
    run = None
    before = -np.inf
    try:
        while run is None or (run.n_sweeps < max_iter and run.outcome == "max_iter"):
            params, network, log_likelihood = em_log.sweep(rows, params, network)
            run = run or EMLogRun(network)
            run.n_sweeps += 1
            if patience is None:
                run.network, run.best_sweep = network, run.n_sweeps
                continue
            run.history.append(em_log.output.score(network.design, network.readout))
            best = run.history[run.best_sweep - 1] if run.best_sweep else np.inf
            if run.history[-1] < best - tol:
                run.network, run.best_sweep = network, run.n_sweeps
            if run.n_sweeps - run.best_sweep >= patience:
                run.outcome = "patience"
            elif abs(log_likelihood - before) < tol:
                run.outcome = "settled"
            before = log_likelihood
    except KeyboardInterrupt:
        if run is None:
            raise
        run.outcome = "interrupted"
    return run
