r"""Competitive mixture of simple neurons.

Sridharan, Beal & Govindaraju, "Competitive mixtures of simple neurons", ICPR 2006, equations
(1)-(5).

.. math::

    P(t \mid x) = \sum_j \pi_j f(x; w_j), \qquad
    \log p(x, t \mid j) = -\tfrac{\alpha}{2} (t - f(x; w_j))^2 - \tfrac{\beta}{2} \sum_{l \ne j} \cos^2(w_j, w_l)

==================  ==================  =============  ================================================================
paper               here                shape          meaning
==================  ==================  =============  ================================================================
:math:`w_j`         ``weight``          (M, C, d + 1)  weights of neuron j, bias last; C = 1 for two classes, else K
:math:`\pi_j`       ``mixing``          (M,)           share of neuron j
:math:`\alpha`      ``precision``                      how sharply errors decide which neuron a row belongs to
:math:`\beta`       ``repulsion``                      how strongly neurons are kept at right angles
:math:`Q_i(j)`      ``responsibility``  (M, n)         share of neuron j in row i, times the weight of the row
:math:`\mathcal F`  ``bound``                          what the M-step raises, (2)
==================  ==================  =============  ================================================================

Deviations from the paper. What (5) follows is the slope of

.. math:: \text{cost} = \tfrac12 \sum_{ij} Q_i(j) (t_i - f_{ij})^2 + \tfrac{\beta}{2} \sum_{j<l} \cos^2(w_j, w_l)

which is (2) with the repulsion counted once, not once a row, and everything divided by alpha. Our
default takes that at its word: the objective is the log-likelihood without repulsion less alpha
times the repulsion, every sweep raises it, and the E-step leaves the repulsion out. `repel_rows`
puts it back, as (3) is printed; the objective is then the printed one, which (5) need not raise.
The exponent before section 3.1 has lost the minus of its second term.

Ours: more than two classes (each neuron a softmax, half the squared distance of outputs and classes
in place of the square); the paper's wishes, a density that weights a neuron near its rows
(`kernel`) and neurons with a margin (`Margin`); and a decay of the weights, because cosines do not
see how long they are and separable rows would let them grow for ever. `repel_bias` is section 5's
link to margins: (5) with its second term for the bias alone, a rule and no longer the slope of a
cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from ..arrays import (
    LOG_ZERO,
    Array,
    as_float64,
    device,
    logsumexp,
    namespace,
    responsibilities,
    safe_log,
    shares_of,
)
from ..kernels import Kernel, KernelSums, NaturalParams, Parameters
from ..rows import Block, Rows
from ..sums import Sums, record

SHORTEST = 1e-100
"""Stands for the length of a weight vector that is zero: it has no angle to any other."""

VANISHED = 1e-12
"""A neuron with less than this part of its share of the rows keeps its place."""


@record
class NeuronParams:
    """A trained network."""

    weight: Array
    """(M, C, d + 1)."""
    mixing: Array
    """(M,)."""
    kernels: Parameters | None
    """Places of the neurons; None where all are everywhere."""
    bound: float
    """(2) a row, with the responsibilities of the sweep that led here."""


@record
class NeuronEStepParams:
    """The parameters as one E-step needs them."""

    weight: Array
    """(M * C, d + 1)."""
    log_mixing: Array
    """(M,)."""
    natural_params: NaturalParams | None


@record
class Misfit(Sums):
    """The data's part of the cost, and its slope."""

    error: Array
    """Half the sum of squared errors, each row with its neuron's responsibility, ()."""
    slope: Array
    """Of `error`, (M * C, d + 1)."""


@record
class NeuronTotals(Sums):
    """What the E-step keeps of the rows."""

    log_likelihood: Array
    weight: Array
    mass: Array
    """(M,)."""
    misfit: Misfit
    """At the parameters of the E-step."""
    moments: KernelSums | float
    """Of the rows of each neuron; 0 where neurons have no place."""
    features: Array | float
    """Sum of responsibility * phi(x), (P, M)."""


Cost = Callable[[Array], tuple[float, Array]]
"""Weights (M, C, d + 1) -> the cost and its slope."""

Solver = Callable[[Cost, Array, tuple[float, Array]], tuple[Array, float | None]]
"""(cost, first weights, cost and slope there) -> better weights and, where it is known, their
cost.
"""


# -- neurons ---------------------------------------------------------------------------------------


class Neuron(ABC):
    """What a neuron makes of its activations (M, C, n), for targets (C, n)."""

    @abstractmethod
    def output(self, activation: Array) -> Array:
        """f, between zero and one, (M, C, n)."""

    @abstractmethod
    def misfit(self, activation: Array, target: Array) -> tuple[Array, Array]:
        """Squared error (M, n), and the slope of half of it, (M, C, n)."""


class LogisticNeuron(Neuron):
    """Section 2: f = 1 / (1 + exp(-z)), one output for two classes."""

    def output(self, activation: Array) -> Array:
        return 0.5 + 0.5 * namespace(activation).tanh(0.5 * activation)  # exp would overflow

    def misfit(self, activation: Array, target: Array) -> tuple[Array, Array]:
        """(t - f)², and -(t - f) f (1 - f) as in (5)."""
        f = self.output(activation)
        away = f - target
        return (away * away)[:, 0, :], away * f * (1 - f)


class Softmax(Neuron):
    """f_k = exp(z_k) / sum exp(z); with two opposite outputs it is `LogisticNeuron`."""

    def output(self, activation: Array) -> Array:
        xp = namespace(activation)
        f = xp.exp(activation - xp.max(activation, axis=1, keepdims=True))
        return f / xp.sum(f, axis=1, keepdims=True)

    def misfit(self, activation: Array, target: Array) -> tuple[Array, Array]:
        """½ sum_k (t_k - f_k)², and the slope of half of it."""
        xp = namespace(activation)
        f = self.output(activation)
        away = f - target
        slope = 0.5 * f * (away - xp.sum(away * f, axis=1, keepdims=True))
        return 0.5 * xp.sum(away * away, axis=1), slope


class Margin(Neuron):
    """f = (1 + z) / 2 within [0, 1]: errors count until z is at least one on the right side
    (squared hinge).
    """

    def output(self, activation: Array) -> Array:
        return namespace(activation).clip(0.5 + 0.5 * activation, min=0.0, max=1.0)

    def misfit(self, activation: Array, target: Array) -> tuple[Array, Array]:
        """(max(0, 1 - s z) / 2)² with s = ±1, (half the sum over classes of it), and the slope of
        half of it.
        """
        xp = namespace(activation)
        side = 2 * target - 1
        short = xp.clip(0.5 - 0.5 * side * activation, min=0.0)
        share = 1.0 if target.shape[0] == 1 else 0.5
        return share * xp.sum(short * short, axis=1), (-0.5 * share) * side * short


# -- the network -----------------------------------------------------------------------------------


class Competitive:
    """Networks for one number of classes; the parameters are passed in and returned."""

    def __init__(
        self,
        n_classes: int,
        *,
        precision: float,
        repulsion: float = 0.0,
        decay: float = 0.0,
        margin: bool = False,
        kernel: Kernel | None = None,
        repel_rows: bool = False,
        repel_bias: bool = False,
        solver: Solver | None = None,
    ) -> None:
        self.n_classes, self.n_outputs = n_classes, 1 if n_classes == 2 else n_classes
        self.neuron: Neuron = (
            Margin() if margin else LogisticNeuron() if n_classes == 2 else Softmax()
        )
        self.precision, self.repulsion, self.decay = precision, repulsion, decay
        self.kernel, self.repel_rows, self.repel_bias, self.solver = (
            kernel,
            repel_rows,
            repel_bias,
            solver,
        )

    # -- training ----------------------------------------------------------------------------------

    def sweep(self, rows: Rows, params: NeuronParams) -> tuple[NeuronParams, float]:
        """One E-step and one M-step: better parameters, and the objective a row of the given
        ones.
        """
        e_step_params = self.e_step_params(params, rows.eps)
        totals = rows.total(self.e_step, e_step_params)
        belief = 0.0 if self.repel_rows else -self.precision * self.penalty(params.weight)
        objective = float(totals.log_likelihood) + belief
        return self._maximize(rows, totals, params, e_step_params, objective), objective / float(
            totals.weight
        )

    def e_step_params(self, params: NeuronParams, eps: float) -> NeuronEStepParams:
        """What the E-step needs to know, worked out once a sweep."""
        xp = namespace(params.mixing)
        log_mixing = xp.clip(safe_log(params.mixing), min=LOG_ZERO)
        if self.repel_rows:  # (3) with the second term of (1)
            log_mixing = log_mixing - 0.5 * self.repulsion * repelled(params.weight)[0]
        natural_params = (
            None if self.kernel is None else self.kernel.natural_params(params.kernels, eps)
        )  # type: ignore[arg-type]
        return NeuronEStepParams(_flat(params.weight), log_mixing, natural_params)

    def e_step(self, block: Block, e_step_params: NeuronEStepParams) -> NeuronTotals:
        """(3): responsibilities of one block, kept only as sums."""
        xp = namespace(block.x)
        error, slope = self._misfit(block, e_step_params.weight)
        responsibility, log_evidence = self._responsibility(block, e_step_params, error)
        log_evidence, mass = as_float64(log_evidence), as_float64(xp.sum(responsibility, axis=1))
        weight = xp.ones_like(log_evidence) if block.weight is None else as_float64(block.weight)
        misfit = _weighed(block, responsibility, error, slope)
        if self.kernel is None or e_step_params.natural_params is None:
            return NeuronTotals(weight @ log_evidence, xp.sum(weight), mass, misfit, 0.0, 0.0)
        sums = as_float64(
            self.kernel.sums(self._features(block), block.x, responsibility)
        )  # (P, M)
        log_evidence = log_evidence + self.kernel.common(e_step_params.natural_params, block.x)
        moments = self.kernel.moments(
            mass[:, None], sums, e_step_params.natural_params, block.x, responsibility
        )
        return NeuronTotals(weight @ log_evidence, xp.sum(weight), mass, misfit, moments, sums)

    def refit(self, block: Block, e_step_params: NeuronEStepParams, weight: Array) -> Misfit:
        """The rows' part of the cost at new weights (M * C, d + 1), with the responsibilities of
        `e_step_params`.
        """
        error, _ = self._misfit(block, e_step_params.weight)
        responsibility, _ = self._responsibility(block, e_step_params, error)
        return _weighed(block, responsibility, *self._misfit(block, weight))

    def _maximize(
        self,
        rows: Rows,
        totals: NeuronTotals,
        params: NeuronParams,
        e_step_params: NeuronEStepParams,
        objective: float,
    ) -> NeuronParams:
        """(4) for the mixing; the solver lowers the cost of the weights, (5)."""
        xp = namespace(params.weight)

        def cost(weight: Array) -> tuple[float, Array]:
            return self._cost(rows.total(self.refit, e_step_params, _flat(weight)), weight)

        first = self._cost(totals.misfit, params.weight)
        weight, last = (
            (params.weight, first[0])
            if self.solver is None
            else self.solver(cost, params.weight, first)
        )
        mixing = totals.mass / xp.sum(totals.mass)
        better = NeuronParams(
            weight, mixing, self._kernels(totals, params, e_step_params), float("nan")
        )
        if self.repel_rows or last is None:
            return better
        gain = _expected(totals, self.e_step_params(better, rows.eps)) - _expected(
            totals, e_step_params
        )
        bound = objective + gain - self.precision * (last - first[0])
        return NeuronParams(weight, mixing, better.kernels, bound / float(totals.weight))

    def _cost(self, misfit: Misfit, weight: Array) -> tuple[float, Array]:
        """Half the squared error and the penalty; and the slope, which is (5) less its sign and
        learning rate.
        """
        penalty, slope = self._belief(weight)
        return float(misfit.error) + penalty, namespace(weight).reshape(
            misfit.slope, weight.shape
        ) + slope

    def penalty(self, weight: Array) -> float:
        """Of every pair of neurons beta / 2 cos², and the decay of the weights."""
        return self._belief(weight)[0]

    def _belief(self, weight: Array) -> tuple[float, Array]:
        total, free = namespace(weight).sum, _without_bias(weight)
        squares, slope = repelled(weight)
        value = 0.25 * self.repulsion * float(total(squares)) + 0.5 * self.decay * float(
            total(free**2)
        )
        if self.repel_bias:  # section 5: the cosines move the biases alone
            slope = slope - _without_bias(slope)
        return value, self.repulsion * slope + self.decay * free

    def _kernels(
        self, totals: NeuronTotals, params: NeuronParams, e_step_params: NeuronEStepParams
    ) -> Parameters | None:
        """Mean and spread of the rows of each neuron; a neuron without rows keeps its place."""
        kernel, moments = self.kernel, totals.moments
        if (
            kernel is None
            or e_step_params.natural_params is None
            or params.kernels is None
            or not isinstance(moments, KernelSums)
        ):
            return None
        xp, moment_origin = (
            namespace(params.mixing),
            kernel.moment_origin(e_step_params.natural_params),
        )
        vanished = totals.mass <= VANISHED * totals.weight / totals.mass.shape[0]
        if bool(xp.any(vanished)):
            moments = kernel.with_pseudocounts(
                moments, moment_origin, vanished, params.kernels, VANISHED
            )
        return kernel.estimate(moments, moment_origin)

    # -- one block ---------------------------------------------------------------------------------

    def _activation(self, block: Block, weight: Array) -> Array:
        """w . (x, 1), (M, C, n), from weights (M * C, d + 1)."""
        xp, n = namespace(block.x), block.x.shape[0]
        return xp.reshape(
            weight @ _with_one(block), (weight.shape[0] // self.n_outputs, self.n_outputs, n)
        )

    def _target(self, block: Block) -> Array:
        """One where the row is of the class, (C, n); of two classes only the second."""
        xp, home = namespace(block.x), device(block.x)
        codes = range(self.n_classes) if self.n_outputs > 1 else [1]
        classes = xp.asarray([*codes], dtype=block.y.dtype, device=home)  # type: ignore[union-attr]
        return xp.astype(classes[:, None] == block.y[None, :], block.x.dtype)  # type: ignore[index]

    def _misfit(self, block: Block, weight: Array) -> tuple[Array, Array]:
        target = block.once(("target", self.n_classes), self._target, self.n_outputs)
        return self.neuron.misfit(self._activation(block, weight), target)

    def _responsibility(
        self, block: Block, e_step_params: NeuronEStepParams, error: Array
    ) -> tuple[Array, Array]:
        return responsibilities(
            lambda: self._gate(block, e_step_params) - 0.5 * self.precision * error, block.weight
        )

    def _gate(self, block: Block, e_step_params: NeuronEStepParams) -> Array:
        """log pi_j, and log p(x|j) where neurons have a place, (M, 1) or (M, n)."""
        kernel, natural_params = self.kernel, e_step_params.natural_params
        if kernel is None or natural_params is None:
            return e_step_params.log_mixing[:, None]
        constant = e_step_params.log_mixing + natural_params.offset
        gate = natural_params.weight @ self._features(block) + constant[:, None]
        kernel.correct(gate, natural_params, block.x, constant)
        return gate

    def _features(self, block: Block) -> Array:
        """phi(x), (P, n); asked for with a kernel alone."""
        assert self.kernel is not None
        kernel, width = self.kernel, self.kernel.n_features(block.x.shape[1])
        return block.once(("features", kernel.name), lambda block: kernel.features(block.x), width)

    # -- prediction --------------------------------------------------------------------------------

    def probability(self, block: Block, e_step_params: NeuronEStepParams) -> Array:
        """sum_j pi_j f(x; w_j), (n, K); where neurons have a place, pi_j is P(j|x)."""
        xp = namespace(block.x)
        gate = self._gate(block, e_step_params)
        share = xp.exp(gate - xp.max(gate, axis=0))
        share = share / xp.sum(share, axis=0)
        output = self.neuron.output(self._activation(block, e_step_params.weight))
        mean = xp.sum(share[:, None, :] * output, axis=0).T  # (n, C)
        if self.n_outputs == 1:
            mean = xp.clip(mean, max=1.0)  # shares add up to one but for rounding
            return xp.concat([1 - mean, mean], axis=1)
        total = xp.sum(mean, axis=1, keepdims=True)
        voted = total > 0  # the outputs of all margin neurons may be zero
        return xp.where(
            voted,
            mean / xp.where(voted, total, xp.ones_like(total)),
            xp.ones_like(mean) / self.n_classes,
        )

    def neuron_posterior(self, block: Block, e_step_params: NeuronEStepParams) -> Array:
        """(3) with the class summed out, P(j|x), (n, M)."""
        xp, home = namespace(block.x), device(block.x)
        activation, gate = (
            self._activation(block, e_step_params.weight),
            self._gate(block, e_step_params),
        )
        joint = []
        for k in range(self.n_classes):
            hot = (
                [float(k)]
                if self.n_outputs == 1
                else [float(k == c) for c in range(self.n_classes)]
            )
            target = xp.asarray(hot, dtype=block.x.dtype, device=home)[:, None]
            joint.append(gate - 0.5 * self.precision * self.neuron.misfit(activation, target)[0])
        log_joint = logsumexp(xp.stack(joint), axis=0)  # (M, n)
        return shares_of(log_joint, axis=0).T


class GradientStep:
    """(5): one step down the slope, summed over the rows as printed."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def __call__(self, cost: Cost, weight: Array, first: tuple[float, Array]) -> tuple[Array, None]:
        return weight - self.learning_rate * first[1], None


def repelled(weight: Array) -> tuple[Array, Array]:
    """sum_l cos²(w_j, w_l) over the other neurons, (M,), and the second term of (5) less eta beta,
    (M, C, d + 1).

    Of more than two classes, cosines are taken class by class and half of their sum counts.
    """
    xp, n_outputs = namespace(weight), weight.shape[1]
    by_output = xp.permute_dims(weight, (1, 0, 2))  # (C, M, d + 1)
    length = xp.clip(xp.sum(by_output**2, axis=2, keepdims=True) ** 0.5, min=SHORTEST)
    direction = by_output / length
    cosine = direction @ xp.permute_dims(direction, (0, 2, 1))  # (C, M, M)
    others = 1 - xp.eye(weight.shape[0], dtype=weight.dtype, device=device(weight))
    cosine = cosine * others
    squares = xp.sum(cosine**2, axis=2, keepdims=True)  # (C, M, 1)
    slope = (cosine @ direction - squares * direction) / length
    share = 1.0 if n_outputs == 1 else 0.5
    return share * xp.sum(squares, axis=0)[:, 0], share * xp.permute_dims(slope, (1, 0, 2))


def _flat(weight: Array) -> Array:
    return namespace(weight).reshape(weight, (-1, weight.shape[2]))


def _without_bias(weight: Array) -> Array:
    xp = namespace(weight)
    return xp.concat([weight[:, :, :-1], xp.zeros_like(weight[:, :, -1:])], axis=2)


def _with_one(block: Block) -> Array:
    """x and a one for the bias, (d + 1, n), contiguous along rows."""

    def make(block: Block) -> Array:
        xp = namespace(block.x)
        return xp.concat([block.x.T, xp.ones_like(block.x[:, :1].T)])

    return block.once("x and one", make, block.x.shape[1] + 1)


def _weighed(block: Block, responsibility: Array, error: Array, slope: Array) -> Misfit:
    xp = namespace(error)
    flat = xp.reshape(responsibility[:, None, :] * slope, (-1, error.shape[1]))  # (M * C, n)
    return Misfit(
        0.5 * as_float64(xp.sum(responsibility * error)), as_float64(flat @ _with_one(block).T)
    )


def _expected(totals: NeuronTotals, e_step_params: NeuronEStepParams) -> float:
    """Sum of responsibility * log(pi_j p(x|j)): linear in the sums over rows, whatever the
    parameters.
    """
    xp = namespace(totals.mass)
    if e_step_params.natural_params is None:
        return float(xp.sum(totals.mass * e_step_params.log_mixing))
    return float(
        xp.sum(totals.mass * (e_step_params.log_mixing + e_step_params.natural_params.offset))
        + xp.sum(e_step_params.natural_params.weight.T * totals.features)
    )
