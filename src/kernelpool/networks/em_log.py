r"""EM-Log and EM-Log-Link: an RBF network whose two layers are trained together.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks", equations (2)-(5), steps 1a-1f.

.. math::

    y = \sigma\Big(\sum_j \beta_j\, p(x \mid j) + \beta_0\Big), \qquad
    \alpha_j \leftarrow \frac{|\beta_j|}{\sum_i |\beta_i|} \quad \text{(Link)}

==================================  ==============  ==========  =====================================================
paper                               here            shape       meaning
==================================  ==============  ==========  =====================================================
:math:`\mu_j, C_j`                  ``kernels``                 the hidden layer: one mixture of all rows
:math:`\alpha_j`                    ``mixing``      (M, 1)      mixing weights of that mixture
:math:`\beta`                       ``weight``      (M + 1, o)  output layer, the bias last
:math:`X`                           ``columns``     (M + 1, n)  outputs of the kernels for each row
==================================  ==============  ==========  =====================================================

The hidden layer is a shared-kernel network with one class: its E- and M-step, (3) and (4), are those of `shared_kernel`.

Deviations from the paper: :math:`\alpha = 1/N` at the start is a slip for 1/M. The output of a kernel is its density (the paper), a
Gaussian of height one, or its posterior in the mixture; the first two are the same functions in other units, which only the link
can tell apart. In either unit a column may be 1e-20 or 1e+20 everywhere, so columns are divided by their largest value and the
weights keep their meaning through `log_unit`. More outputs than one: the link takes the sum of their absolute weights, of K
classes their deviations from the mean class. EM does not see the labels and may come to serve them worse; `train` watches the
loss of rows left out, stops when it no longer falls, and returns the best sweep.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from ..arrays import Array, as_float64, device, logsumexp, match_array, namespace, safe_log
from ..kernels import Kernel, NaturalParams
from ..penalties import Penalty
from ..rows import Block, Rows
from ..sums import record
from .shared_kernel import Params, SharedKernel

ACTIVATIONS = ("density", "gaussian", "normalized")

_TOKENS = count(1)

LARGEST = 300.0
"""Largest exponent of a column: a row nearer to a kernel than any that it was trained on stays finite."""


class Mixture(SharedKernel):
    """A shared-kernel network with one class, which every row belongs to, whatever it carries in `y`."""

    def __init__(self, kernel: Kernel, like: Array, penalty: Penalty | None = None) -> None:
        super().__init__(kernel, namespace(like).ones_like(like), penalty)

    def _indicators(self, block: Block) -> Array:
        xp = namespace(block.x)
        return xp.asarray([[1.0], [0.0]], dtype=block.x.dtype, device=device(block.x))


# -- the hidden layer -----------------------------------------------------------------------------------


@record
class Layer:
    """A hidden layer as the output layer needs it."""

    natural_params: NaturalParams
    log_mixing: Array
    """(M,)."""
    log_scale: Array
    """log of what each column is divided by, (M,)."""
    log_unit: Array
    """log of the scaled column's one in the units of the activation: true weight = weight / exp(log_unit), (M,)."""
    token: int = 0
    """Names this layer, so that its columns need not be made twice for rows that stay in memory; 0 names none."""


@record
class Peaks:
    """Largest log-activation of each kernel, (M,); of two such records the larger values remain."""

    log: Array

    def __add__(self, other: "Peaks") -> "Peaks":
        return Peaks(namespace(self.log).maximum(self.log, other.log))


class Hidden:
    """Turns rows into the columns X of the output layer."""

    def __init__(self, kernel: Kernel, activation: str, temperature: float = 1.0) -> None:
        self.kernel, self.activation, self.temperature = kernel, activation, temperature

    def layer(self, rows: Rows, params: Params) -> Layer:
        """The layer at `params`, its columns scaled to a largest value of one."""
        xp = namespace(params.mixing)
        natural_params = self.kernel.natural_params(params.kernels, rows.eps)
        log_mixing = safe_log(params.mixing[:, 0])
        zero = xp.zeros_like(log_mixing)
        if self.activation == "normalized":
            return Layer(natural_params, log_mixing, zero, zero, next(_TOKENS))
        log_scale = match_array(
            rows.total(self.peaks, Layer(natural_params, log_mixing, zero, zero)).log, like=zero
        )
        return Layer(
            natural_params,
            log_mixing,
            log_scale,
            log_scale - self.log_height(params),
            next(_TOKENS),
        )

    def log_height(self, params: Params) -> Array:
        """log of what a column of one is in the units of the activation, less `log_scale`, (M,)."""
        xp = namespace(params.mixing)
        zero = xp.zeros_like(params.mixing[:, 0])
        if self.activation != "gaussian":
            return zero
        return self.kernel.log_peak(params.kernels) / self.temperature

    def log_activation(self, block: Block, layer: Layer) -> Array:
        """log p(x|j), or log P(j|x), (M, n), at the temperature: kernels wider by its square root."""
        log_density = self.kernel.log_density(layer.natural_params, block.x)
        log_density = as_float64(log_density) / self.temperature
        if self.activation != "normalized":
            return log_density
        log_joint = log_density + as_float64(layer.log_mixing)[:, None] / self.temperature
        return log_joint - logsumexp(log_joint, axis=0)

    def peaks(self, block: Block, layer: Layer) -> Peaks:
        """Largest log-activations of one block; rows without weight are not there."""
        xp = namespace(block.x)
        log_activation = self.log_activation(block, layer)
        if block.weight is not None:
            log_activation = xp.where(block.weight > 0, log_activation, -1e300 + 0 * log_activation)
        return Peaks(xp.max(log_activation, axis=1))

    def columns(self, block: Block, layer: Layer) -> Array:
        """X', (M + 1, n), in float64: the activations, scaled, and last the bias."""
        if not layer.token:
            return self._columns(block, layer)
        width = layer.log_mixing.shape[0] + 1
        return block.once(
            "columns of the layer",
            lambda block: self._columns(block, layer),
            width,
            version=layer.token,
        )

    def _columns(self, block: Block, layer: Layer) -> Array:
        xp = namespace(block.x)
        log_column = self.log_activation(block, layer) - as_float64(layer.log_scale)[:, None]
        columns = xp.exp(xp.clip(log_column, max=LARGEST))
        return xp.concat([columns, xp.ones_like(columns[:1, :])])


# -- training -----------------------------------------------------------------------------------------------------


class OutputLayer(Protocol):
    """What `readout` offers."""

    centered: bool
    """Whether a first output at zero is left out of the weights."""

    def step(self, rows: Rows, layer: Layer, before: Any) -> Any: ...
    def solve(self, rows: Rows, layer: Layer, before: Any) -> Any: ...
    def score(self, rows: Rows, layer: Layer, readout: Any) -> float: ...


@record
class RBFParams:
    """Both layers."""

    hidden: Params
    layer: Layer
    readout: Any


class EMLog:
    """Steps 1a-1f; `link` is step 1f, `once` makes step 1e one undamped step as printed."""

    def __init__(
        self, mixture: Mixture, hidden: Hidden, output: OutputLayer, *, link: bool, once: bool
    ) -> None:
        self.mixture, self.hidden, self.output, self.link, self.once = (
            mixture,
            hidden,
            output,
            link,
            once,
        )

    def sweep(
        self, rows: Rows, params: Params, before: RBFParams | None
    ) -> tuple[Params, RBFParams, float]:
        """Parameters for the next sweep, the network of this one, and the log-likelihood a row of the given mixture."""
        params, log_likelihood = self.mixture.sweep(rows, params)  # 1a-1d
        network = self.read(rows, params, before)  # 1e
        return (self.linked(network) if self.link else params), network, log_likelihood

    def read(
        self,
        rows: Rows,
        params: Params,
        before: RBFParams | None = None,
        *,
        once: bool | None = None,
    ) -> RBFParams:
        """Step 1e: the output layer of a hidden layer; `once` in place of that of the training, if given."""
        layer = self.hidden.layer(rows, params)
        solve = self.output.step if (self.once if once is None else once) else self.output.solve
        return RBFParams(
            params, layer, solve(rows, layer, None if before is None else carried(before, layer))
        )

    def linked(self, network: RBFParams) -> Params:
        """Step 1f: mixing weights from the output layer, |beta_j| / sum |beta|, in the units of the activation."""
        params, weight = network.hidden, network.readout.weight[:-1, :]
        xp = namespace(weight)
        size = xp.sum(xp.abs(weight), axis=1)
        if weight.shape[1] > 1 and self.output.centered:
            full = xp.concat([xp.zeros_like(weight[:, :1]), weight], axis=1)
            size = xp.sum(xp.abs(full - xp.mean(full, axis=1, keepdims=True)), axis=1)
        log_size = safe_log(size) - network.layer.log_unit
        if not bool(xp.any(size > 0)):
            return params
        mixing = xp.exp(log_size - logsumexp(log_size[:, None], axis=0))
        return Params(params.kernels, mixing[:, None], params.class_prior)


def carried(before: RBFParams, layer: Layer) -> Any:
    """The output layer of the sweep before with the same weights in the units of the activation, for the columns of `layer`."""
    xp, readout = namespace(layer.log_unit), before.readout
    factor = xp.exp(xp.clip(layer.log_unit - before.layer.log_unit, min=-LARGEST, max=LARGEST))
    weight = xp.concat([readout.weight[:-1, :] * factor[:, None], readout.weight[-1:, :]])
    return type(readout)(weight, readout.strength, readout.age)


@dataclass
class EMLogRun:
    """How a training went."""

    network: RBFParams
    """Of the best sweep; of the last, where nothing is watched."""
    history: list[float] = field(default_factory=list)
    """Loss of rows left out after every sweep; empty where nothing is watched."""
    n_sweeps: int = 0
    best_sweep: int = 0
    outcome: str = "max_iter"
    """watched: the loss stopped falling; settled: the mixture stopped changing; interrupted by the
    user; or max_iter."""


def train(
    em_log: EMLog,
    rows: Rows,
    start: Params,
    *,
    max_iter: int,
    tol: float,
    patience: int | None,
) -> EMLogRun:
    """Sweep until the loss of rows left out has not fallen for `patience` sweeps; with None, `max_iter` sweeps in any case."""
    run: EMLogRun | None = None
    try:
        for run, settled in _sweeps(em_log, rows, start, max_iter, tol, patience):
            if patience is not None and settled:
                run.outcome = "settled"
            if run.outcome != "max_iter":
                break
    except KeyboardInterrupt:
        if run is None:
            raise
        run.outcome = "interrupted"
    assert run is not None
    return run


def _sweeps(
    em_log: EMLog, rows: Rows, start: Params, max_iter: int, tol: float, patience: int | None
) -> Iterator[tuple[EMLogRun, bool]]:
    """The run after every sweep, and whether the mixture has settled."""
    params, network, before = start, None, -float("inf")
    run: EMLogRun | None = None
    while run is None or run.n_sweeps < max_iter:
        params, network, log_likelihood = em_log.sweep(rows, params, network)
        run = run or EMLogRun(network)
        run.n_sweeps += 1
        if patience is None:
            run.network, run.best_sweep = network, run.n_sweeps
        else:
            run.history.append(em_log.output.score(rows, network.layer, network.readout))
            best = run.history[run.best_sweep - 1] if run.best_sweep else float("inf")
            if run.history[-1] < best - tol:
                run.network, run.best_sweep = network, run.n_sweeps
            if run.n_sweeps - run.best_sweep >= patience:
                run.outcome = "watched"
        yield run, abs(log_likelihood - before) < tol
        before = log_likelihood
