r"""Competitive mixture of simple neurons.

Sridharan, Beal & Govindaraju, "Competitive mixtures of simple neurons", ICPR 2006, equations
(1)-(5).

.. math::

    P(t \mid x) = \sum_j \pi_j f(x; w_j), \qquad
    \log p(x, t \mid j) = -\tfrac{\alpha}{2} (t - f(x; w_j))^2
    - \tfrac{\beta}{2} \sum_{l \ne j} \cos^2(w_j, w_l)

==================  ==================  =============  ===========================================
paper               here                shape          meaning
==================  ==================  =============  ===========================================
:math:`w_j`         ``weight``          (M, C, d + 1)  weights of neuron j, bias last; C = 1 for
                                                       two classes, else K
:math:`\pi_j`       ``mixing``          (M,)           share of neuron j
:math:`\alpha`      ``precision``                      how sharply errors decide which neuron a
                                                       row belongs to
:math:`\beta`       ``repulsion``                      how strongly neurons are kept at right
                                                       angles
:math:`Q_i(j)`      ``responsibility``  (M, n)         share of neuron j in row i, times the
                                                       weight of the row
:math:`\mathcal F`  ``bound``                          what the M-step raises, (2)
==================  ==================  =============  ===========================================

Deviations from the paper. What (5) follows is the slope of

.. math::

    \text{cost} = \tfrac12 \sum_{ij} Q_i(j) (t_i - f_{ij})^2
    + \tfrac{\beta}{2} \sum_{j<l} \cos^2(w_j, w_l)

which is (2) with the repulsion counted once, not once a row, and everything divided by alpha. Our
default takes that at its word: the objective is the log-likelihood without repulsion less alpha
times the repulsion, every sweep raises it, and the E-step leaves the repulsion out. `repel_rows`
puts it back, as (3) is printed; the objective is then the printed one, which (5) need not raise.
The exponent before section 3.1 has lost the minus of its second term.

Ours: more than two classes (each neuron a softmax, half the squared distance of outputs and classes
in place of the square); the paper's wishes, a density that weights a neuron near its rows
(`local`) and neurons with a margin (`Margin`); and a decay of the weights, because cosines do not
see how long they are and separable rows would let them grow for ever. `repel_bias` is section 5's
link to margins: (5) with its second term for the bias alone, a rule and no longer the slope of a
cost.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import LOG_ZERO, logsumexp, responsibilities, safe_log, shares_of

SHORTEST = 1e-100
"""Stands for the length of a weight vector that is zero: it has no angle to any other."""

VANISHED = 1e-12
"""A neuron with less than about this part of its share of the rows keeps its place."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, for features of unit variance."""

BLOCK_SIZE, FEWEST_ROWS = 2**16, 64
"""Activations that are computed at once, and rows below which overhead would count."""


@dataclass(frozen=True)
class NeuronParams:
    """A trained network."""

    weight: np.ndarray
    """(M, C, d + 1)."""
    mixing: np.ndarray
    """(M,)."""
    place: tuple[np.ndarray, np.ndarray] | None = None
    """Means and variances of the neurons, (M, d) each; None where all are everywhere."""
    bound: float = float("nan")
    """(2) a row, with the responsibilities of the sweep that led here."""


@dataclass(frozen=True)
class NeuronRows:
    """Rows as the neurons take them."""

    inputs: np.ndarray
    """x and a one for the bias, (d + 1, n)."""
    target: np.ndarray
    """One where the row is of the class, (C, n); of two classes only the second."""
    weight: np.ndarray
    """(n,)."""


Cost = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Weights (M, C, d + 1) -> the cost and its slope."""

Solver = Callable[[Cost, np.ndarray, tuple[float, np.ndarray]], tuple[np.ndarray, float]]
"""(cost, first weights, cost and slope there) -> better weights and their cost."""


# -- neurons ---------------------------------------------------------------------------------------


class LogisticNeuron:
    """Section 2: f = 1 / (1 + exp(-z)), one output for two classes."""

    def output(self, activation: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * activation))  # exp would overflow

    def misfit(self, activation: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t - f)², and -(t - f) f (1 - f) as in (5)."""
        f = self.output(activation)
        away = f - target
        return (away * away)[:, 0], away * f * (1 - f)


class Softmax:
    """f_k = exp(z_k) / sum exp(z); with two opposite outputs it is `LogisticNeuron`."""

    def output(self, activation: np.ndarray) -> np.ndarray:
        f = activation - activation.max(axis=1, keepdims=True)
        np.exp(f, out=f)
        f /= f.sum(axis=1, keepdims=True)
        return np.asarray(f)

    def misfit(self, activation: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """½ sum_k (t_k - f_k)², and the slope of half of it: few passes over (M, K, n), which are
        nearly all of the time of a fit to many classes.
        """
        f = self.output(activation)
        away = f - target
        inner = np.einsum("mkn,mkn->mn", away, f)
        error = 0.5 * np.einsum("mkn,mkn->mn", away, away)
        away -= inner[:, None]
        away *= f
        away *= 0.5
        return error, away


class Margin:
    """f = (1 + z) / 2 within [0, 1]: errors count until z is at least one on the right side
    (squared hinge).
    """

    def output(self, activation: np.ndarray) -> np.ndarray:
        return np.clip(0.5 + 0.5 * activation, 0.0, 1.0)

    def misfit(self, activation: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(max(0, 1 - s z) / 2)² with s = ±1, (half the sum over classes of it), and the slope of
        half of it.
        """
        side = 2 * target - 1
        short = np.maximum(0.5 - 0.5 * side * activation, 0.0)
        share = 1.0 if len(target) == 1 else 0.5
        return share * (short * short).sum(axis=1), (-0.5 * share) * side * short


Neuron = LogisticNeuron | Softmax | Margin
"""What a neuron makes of its activations (M, C, n): `output`, f between zero and one (M, C, n), and
for targets (C, n) `misfit`, the squared error (M, n) and the slope of half of it (M, C, n).
"""


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
        repel_rows: bool = False,
        repel_bias: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.n_outputs = 1 if n_classes == 2 else n_classes
        smooth = LogisticNeuron() if n_classes == 2 else Softmax()
        self.neuron: Neuron = Margin() if margin else smooth
        self.precision = precision
        self.repulsion = repulsion
        self.decay = decay
        self.repel_rows = repel_rows
        self.repel_bias = repel_bias

    # -- training ----------------------------------------------------------------------------------

    def rows(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> NeuronRows:
        """Rows of standardized features with the codes of their classes."""
        classes = range(self.n_classes) if self.n_outputs > 1 else [1]
        return NeuronRows(with_one(x), np.array([codes == k for k in classes], float), weight)

    def sweep(
        self, rows: NeuronRows, params: NeuronParams, solver: Solver
    ) -> tuple[NeuronParams, float]:
        """(3), (4), and (5) by the solver: better parameters, and the objective a row of the given
        ones.
        """
        gate = self._gate(rows.inputs, params)
        error = np.hstack(
            [self._misfit(rows, at, params.weight)[0] for at in spans(rows.inputs.T, params.weight)]
        )
        responsibility, log_evidence = responsibilities(
            lambda: gate - 0.5 * self.precision * error, rows.weight
        )
        belief = 0.0 if self.repel_rows else -self.precision * self.penalty(params.weight)
        objective = float(rows.weight @ log_evidence) + belief

        def cost(weight: np.ndarray) -> tuple[float, np.ndarray]:
            return self._cost(rows, responsibility, weight)

        first = cost(params.weight)
        weight, last = solver(cost, params.weight, first)
        mass = responsibility.sum(axis=1)
        n_rows = float(rows.weight.sum())
        better = replace(params, weight=weight, mixing=mass / mass.sum())
        if params.place is not None:
            place = _moved(*params.place, rows.inputs[:-1].T, responsibility)
            better = replace(better, place=place)
        gain = (responsibility * (self._gate(rows.inputs, better) - gate)).sum()
        # what the printed rule follows is not the objective of its E-step
        bound = objective + float(gain) - self.precision * (last - first[0])
        bound = float("nan") if self.repel_rows else bound / n_rows
        return replace(better, bound=bound), objective / n_rows

    def _cost(
        self, rows: NeuronRows, responsibility: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Half the squared error and the penalty; and the slope, which is (5) less its sign and
        learning rate.
        """
        total, slope = self._belief(weight)
        for at in spans(rows.inputs.T, weight):
            error, by_activation = self._misfit(rows, at, weight)
            q = responsibility[:, at]
            total += 0.5 * float((q * error).sum())
            by_activation *= q[:, None]
            flat = by_activation.reshape(-1, q.shape[1])  # (M * C, n)
            slope = slope + (flat @ rows.inputs[:, at].T).reshape(weight.shape)
        return total, slope

    def penalty(self, weight: np.ndarray) -> float:
        """Of every pair of neurons beta / 2 cos², and the decay of the weights."""
        return self._belief(weight)[0]

    def _belief(self, weight: np.ndarray) -> tuple[float, np.ndarray]:
        free = weight * (np.arange(weight.shape[2]) < weight.shape[2] - 1)  # without the bias
        squares, slope = repelled(weight)
        value = 0.25 * self.repulsion * squares.sum() + 0.5 * self.decay * (free**2).sum()
        if self.repel_bias:  # section 5: the cosines move the biases alone
            slope[:, :, :-1] = 0.0
        return float(value), self.repulsion * slope + self.decay * free

    # -- some rows ---------------------------------------------------------------------------------

    def _misfit(
        self, rows: NeuronRows, at: slice, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        activation = self._activation(rows.inputs[:, at], weight)
        return self.neuron.misfit(activation, rows.target[:, at])

    def _activation(self, inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """w . (x, 1), (M, C, n)."""
        return (weight.reshape(-1, len(inputs)) @ inputs).reshape(*weight.shape[:2], -1)

    def _gate(self, inputs: np.ndarray, params: NeuronParams) -> np.ndarray:
        """log pi_j, and log p(x|j) where neurons have a place, (M, 1) or (M, n)."""
        gate = np.maximum(safe_log(params.mixing), LOG_ZERO)
        if self.repel_rows:  # (3) with the second term of (1)
            gate = gate - 0.5 * self.repulsion * repelled(params.weight)[0]
        if params.place is None:
            return np.asarray(gate[:, None])
        mean, variance = params.place
        x = inputs[:-1]
        precision = 1 / variance
        squared = precision @ (x * x) - 2 * (precision * mean) @ x
        constant = (precision * mean**2 + np.log(2 * np.pi * variance)).sum(axis=1)
        return np.asarray((gate - 0.5 * constant)[:, None] - 0.5 * squared)

    # -- prediction --------------------------------------------------------------------------------

    def probability(self, x: np.ndarray, params: NeuronParams) -> np.ndarray:
        """sum_j pi_j f(x; w_j), (n, K); where neurons have a place, pi_j is P(j|x)."""
        parts = [with_one(x[at]) for at in spans(x, params.weight)]
        mean = np.vstack([self._mean_output(inputs, params) for inputs in parts])  # (n, C)
        if self.n_outputs == 1:
            mean = np.minimum(mean, 1.0)  # shares add up to one but for rounding
            return np.hstack([1 - mean, mean])
        total = mean.sum(axis=1, keepdims=True)
        voted = total > 0  # the outputs of all margin neurons may be zero
        return np.where(voted, mean / np.where(voted, total, 1.0), 1 / self.n_classes)

    def _mean_output(self, inputs: np.ndarray, params: NeuronParams) -> np.ndarray:
        share = shares_of(self._gate(inputs, params), axis=0)
        output = self.neuron.output(self._activation(inputs, params.weight))
        return np.asarray((share[:, None] * output).sum(axis=0).T)

    def neuron_posterior(self, x: np.ndarray, params: NeuronParams) -> np.ndarray:
        """(3) with the class summed out, P(j|x), (n, M)."""
        inputs = with_one(x)
        activation = self._activation(inputs, params.weight)
        gate = self._gate(inputs, params)
        targets = np.eye(self.n_classes)[:, -self.n_outputs :, None]  # (K, C, 1)
        errors = [self.neuron.misfit(activation, target)[0] for target in targets]
        log_joint = gate - 0.5 * self.precision * np.stack(errors)  # (K, M, n)
        return np.asarray(shares_of(logsumexp(log_joint, axis=0), axis=0).T)


def spans(x: np.ndarray, weight: np.ndarray) -> list[slice]:
    """Where to cut the rows, so that the activations of some fit into the caches."""
    size = max(-(-BLOCK_SIZE // (weight.shape[0] * weight.shape[1])), FEWEST_ROWS)
    return [slice(i, i + size) for i in range(0, len(x), size)]


def _moved(
    mean: np.ndarray, variance: np.ndarray, x: np.ndarray, responsibility: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the rows of each neuron; a neuron without rows keeps its place."""
    mass = responsibility.sum(axis=1, keepdims=True)
    before = VANISHED * mass.mean()  # how much the place before counts
    first = responsibility @ x + before * mean
    second = responsibility @ (x * x) + before * (variance + mean**2)
    mean = first / (mass + before)
    return mean, np.maximum(second / (mass + before) - mean**2, LOCAL_FLOOR)


def with_one(x: np.ndarray) -> np.ndarray:
    """x and a one for the bias, (d + 1, n), contiguous along rows."""
    return np.vstack([x.T, np.ones(len(x))])


def repelled(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sum_l cos²(w_j, w_l) over the other neurons, (M,), and the second term of (5) less eta beta,
    (M, C, d + 1).

    Of more than two classes, cosines are taken class by class and half of their sum counts.
    """
    by_output = weight.transpose(1, 0, 2)  # (C, M, d + 1)
    length = np.maximum(np.linalg.norm(by_output, axis=2, keepdims=True), SHORTEST)
    direction = by_output / length
    cosine = direction @ direction.transpose(0, 2, 1) * (1 - np.eye(len(weight)))  # (C, M, M)
    squares = (cosine**2).sum(axis=2, keepdims=True)  # (C, M, 1)
    slope = (cosine @ direction - squares * direction) / length
    share = 1.0 if weight.shape[1] == 1 else 0.5
    return share * squares.sum(axis=0)[:, 0], share * slope.transpose(1, 0, 2)
