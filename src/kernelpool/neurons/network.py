r"""Competing neurons: EM in a standardized frame, and the fitted record with its forward pass.

Equations and symbols are those of `kernelpool.neurons` (Sridharan, Beal & Govindaraju 2006):

.. math::

    P(t \mid x) = \sum_j \pi_j f(x; w_j), \qquad
    \log p(x, t \mid j) = -\tfrac{\alpha}{2} (t - f(x; w_j))^2
    - \tfrac{\beta}{2} \sum_{l \ne j} \cos^2(w_j, w_l)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from ..arrays import LOG_ZERO, logsumexp, safe_log
from ..em import Outcome
from ..lbfgs import maximize
from ..records import internal, saved
from ..rows import Frame
from ..softmax import responsibilities, shares_of

SHORTEST = 1e-100
"""Stands for the length of a weight vector that is zero: it has no angle to any other."""

NEGLIGIBLE_SHARE = 1e-12
"""A neuron with less than about this part of its share of the rows keeps its place."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, for features of unit variance."""

BLOCK_SIZE = 2**16
"""Activations that are computed at once."""

FEWEST_BLOCK_ROWS = 64
"""Rows below which overhead would count."""

COST_TOL = 1e7 * float(np.finfo(np.float64).eps)
"""L-BFGS ends an M-step when a step lowers the cost per row by less than this part of it."""

SLOPE_TOL = 1e-5
"""It ends as well where no component of the slope per row exceeds this."""

N_STEPS = 20
"""Steps of L-BFGS in one M-step, at most."""


@saved
class GradientRule:
    """The M-step of the paper: one gradient step (5) as printed, and the E-step (3) with the
    repulsion.

    Parameters
    ----------
    learning_rate : float or None, default=None
        eta of (5), whose sum runs over the rows. None takes 4 M / (number of rows).
    repulsion_on : {"weights", "bias"}, default="weights"
        What the repulsion moves: all weights, or the biases alone, which the paper's section 5
        likens to a margin: neurons that have separated the classes keep their direction and are
        pushed apart.
    """

    learning_rate: float | None = None
    repulsion_on: str = "weights"


@saved
class NeuronParams:
    """What EM iterates, for standardized features."""

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


# -- neurons ---------------------------------------------------------------------------------------


class LogisticNeuron:
    """Section 2: f = 1 / (1 + exp(-z)), one output for two classes."""

    def output(self, activation: Any) -> Any:
        return 0.5 + 0.5 * np.tanh(0.5 * activation)  # exp would overflow

    def misfit(self, activation: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t - f)², and -(t - f) f (1 - f) as in (5)."""
        f = self.output(activation)
        error = f - target
        return (error * error)[:, 0], error * f * (1 - f)


class Softmax:
    """f_k = exp(z_k) / sum exp(z); with two opposite outputs it is `LogisticNeuron`."""

    def output(self, activation: np.ndarray) -> np.ndarray:
        return softmax(activation, axis=1)

    def misfit(self, activation: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """½ sum_k (t_k - f_k)², and the slope of half of it: few passes over (M, K, n), which are
        nearly all of the time of a fit to many classes.
        """
        f = self.output(activation)
        error = f - target
        inner = np.einsum("mkn,mkn->mn", error, f)
        squared = 0.5 * np.einsum("mkn,mkn->mn", error, error)
        error -= inner[:, None]
        error *= f
        error *= 0.5
        return squared, error


class Margin:
    """f = (1 + z) / 2 within [0, 1]: errors count until z is at least one on the right side
    (squared hinge).
    """

    def output(self, activation: Any) -> Any:
        return (0.5 + 0.5 * activation).clip(0.0, 1.0)

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


@saved
class Competitive:
    """The paper's network for one number of classes; the parameters are passed in and returned."""

    n_classes: int
    precision: float
    repulsion: float = 0.0
    decay: float = 0.0
    margin: bool = False
    rule: GradientRule | None = None
    """None raises the objective by L-BFGS, and leaves the repulsion out of the E-step."""

    @property
    def n_outputs(self) -> int:
        """One for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def neuron(self) -> Neuron:
        """f of each neuron."""
        smooth = LogisticNeuron() if self.n_classes == 2 else Softmax()
        return Margin() if self.margin else smooth

    # -- training ----------------------------------------------------------------------------------

    def rows(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> NeuronRows:
        """Rows of standardized features with the codes of their classes."""
        classes = np.arange(self.n_classes)[-self.n_outputs :, None]
        return NeuronRows(with_one(x), (codes == classes).astype(float), weight)

    def sweep(self, rows: NeuronRows, params: NeuronParams) -> tuple[NeuronParams, float]:
        """(3), (4), and (5): better parameters, and the objective per row of the given ones."""
        gate = self._gate(rows.inputs, params)
        error = np.hstack([error for _, error, _ in self._misfits(rows, params.weight)])
        responsibility, log_evidence = responsibilities(
            lambda: gate - 0.5 * self.precision * error, rows.weight
        )
        objective = rows.weight @ log_evidence
        if self.rule is None:
            objective -= self.precision * self.penalty(params.weight)[0]
        n_rows = rows.weight.sum()
        cost = partial(self.cost, rows, responsibility)
        weight, change = self._m_step(cost, params.weight, n_rows)
        mass = responsibility.sum(axis=1)
        place = None
        if params.place is not None:
            place = _moved(*params.place, rows.inputs[:-1].T, responsibility)
        better = NeuronParams(weight, mass / mass.sum(), place)
        gain = (responsibility * (self._gate(rows.inputs, better) - gate)).sum()
        bound = objective + gain - self.precision * change
        return replace(better, bound=float(bound / n_rows)), float(objective / n_rows)

    def _m_step(self, cost: Cost, weight: np.ndarray, n_rows: float) -> tuple[np.ndarray, float]:
        """Better weights, and by how much their cost is higher; NaN where that is not known."""
        if self.rule is None:
            return descended(cost, weight, n_rows)
        rate = self.rule.learning_rate
        rate = 4 * len(weight) / n_rows if rate is None else rate
        return weight - rate * cost(weight)[1], np.nan

    def cost(
        self, rows: NeuronRows, responsibility: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Half the squared error and the penalty; and the slope, which is (5) less its sign and
        learning rate.
        """
        total, slope = self.penalty(weight)
        for at, error, by_activation in self._misfits(rows, weight):
            q = responsibility[:, at]
            total += 0.5 * float((q * error).sum())
            by_activation *= q[:, None]  # (M, C, n)
            slope = slope + np.tensordot(by_activation, rows.inputs[:, at], ((2,), (1,)))
        return total, slope

    def penalty(self, weight: np.ndarray) -> tuple[float, np.ndarray]:
        """Of every pair of neurons beta / 2 cos², and the decay of the weights; and its slope."""
        free = weight.copy()
        free[:, :, -1] = 0.0  # the bias
        squares, slope = repelled(weight)
        value = 0.25 * self.repulsion * squares.sum() + 0.5 * self.decay * (free**2).sum()
        if self.rule is not None and self.rule.repulsion_on == "bias":
            slope[:, :, :-1] = 0.0
        return float(value), self.repulsion * slope + self.decay * free

    def _misfits(
        self, rows: NeuronRows, weight: np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Which rows, their squared errors, and the slope of half of these, block by block."""
        for at in spans(rows.inputs, weight):
            activation = np.tensordot(weight, rows.inputs[:, at], 1)
            yield at, *self.neuron.misfit(activation, rows.target[:, at])

    def _gate(self, inputs: np.ndarray, params: NeuronParams) -> np.ndarray:
        """log pi_j, and log p(x|j) where neurons have a place, (M, 1) or (M, n)."""
        gate: np.ndarray = np.maximum(safe_log(params.mixing), LOG_ZERO)
        if self.rule is not None:  # (3) with the second term of (1)
            gate = gate - 0.5 * self.repulsion * repelled(params.weight)[0]
        if params.place is None:
            return gate[:, None]
        mean, variance = params.place
        x = inputs[:-1]
        precision = 1 / variance
        squared = precision @ (x * x) - 2 * (precision * mean) @ x
        constant = (precision * mean**2 + np.log(2 * np.pi * variance)).sum(axis=1)
        gate = gate - 0.5 * constant
        return gate[:, None] - 0.5 * squared

    # -- prediction --------------------------------------------------------------------------------

    def probability(self, x: np.ndarray, params: NeuronParams) -> np.ndarray:
        """sum_j pi_j f(x; w_j), (n, K); where neurons have a place, pi_j is P(j|x)."""
        inputs = with_one(x)
        means = []
        for at in spans(inputs, params.weight):
            share = shares_of(self._gate(inputs[:, at], params), axis=0)
            output = self.neuron.output(np.tensordot(params.weight, inputs[:, at], 1))
            means.append((share[:, None] * output).sum(axis=0))
        return np.asarray(self.of_classes(np.hstack(means).T))

    def of_classes(self, mean: Any) -> Any:
        """P(C_k|x) by the mean outputs of the neurons, (n, C): (n, K)."""
        if self.n_outputs == 1:
            mean = np.minimum(mean, 1.0)  # shares add up to one but for rounding
            return np.hstack([1 - mean, mean])
        total = mean.sum(axis=1, keepdims=True)
        voted = total > 0  # the outputs of all margin neurons may be zero
        return np.where(voted, mean / np.where(voted, total, 1.0), 1 / self.n_classes)

    def neuron_posterior(self, x: np.ndarray, params: NeuronParams) -> np.ndarray:
        """(3) with the class summed out, P(j|x), (n, M)."""
        inputs = with_one(x)
        activation = np.tensordot(params.weight, inputs, 1)
        targets = np.eye(self.n_classes)[:, -self.n_outputs :, None]  # (K, C, 1)
        errors = [self.neuron.misfit(activation, target)[0] for target in targets]
        log_joint = self._gate(inputs, params) - 0.5 * self.precision * np.stack(errors)
        return shares_of(logsumexp(log_joint, axis=0), axis=0).T  # of (K, M, n)


def spans(inputs: np.ndarray, weight: np.ndarray) -> list[slice]:
    """Blocks of rows (d + 1, n) whose activations fit into the caches."""
    size = max(-(-BLOCK_SIZE // weight[:, :, 0].size), FEWEST_BLOCK_ROWS)
    return [slice(i, i + size) for i in range(0, inputs.shape[1], size)]


def descended(cost: Cost, weight: np.ndarray, n_rows: float) -> tuple[np.ndarray, float]:
    """Some steps of L-BFGS down the cost, never up: the weights, and the change of the cost."""

    def per_row(flat: np.ndarray) -> tuple[np.ndarray, float]:
        value, slope = cost(flat.reshape(weight.shape))
        return -slope.ravel() / n_rows, -value / n_rows

    best = maximize(per_row, weight.ravel(), max_iter=N_STEPS, tol=COST_TOL, gradient_tol=SLOPE_TOL)
    if best.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    return best.point.reshape(weight.shape), n_rows * (best.history[0] - best.objective)


def _moved(
    mean: np.ndarray, variance: np.ndarray, x: np.ndarray, responsibility: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the rows of each neuron; a neuron without rows keeps its place."""
    mass = responsibility.sum(axis=1, keepdims=True)
    before = NEGLIGIBLE_SHARE * mass.mean()  # how much the place before counts
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


# -- a fitted network ------------------------------------------------------------------------------


@saved(kw_only=True)
class NeuronNetwork:
    """A fitted network of complete numbers; the attributes are in the units of the features."""

    competitive: Competitive = internal()
    """Without a rule: predictions leave the repulsion out."""
    params: NeuronParams = internal()
    """For standardized features."""
    weights: np.ndarray
    """(M, d + 1) for two classes, else (M, K, d + 1)."""
    mixing: np.ndarray
    """(M,)."""
    means: np.ndarray | None
    """Places of the neurons, (M, d); None where all are everywhere."""
    covariances: np.ndarray | None
    """Variances of the places, (M, d)."""
    location: np.ndarray
    """(d,)."""
    scale: np.ndarray
    """(d,); standardized features are (x - location) / scale."""
    history: np.ndarray
    """Objective per row after each sweep."""
    bound_history: np.ndarray
    """(2) per row that the M-step reached before each of these."""
    penalty_history: np.ndarray
    """What the penalty adds to the objective."""
    objective: float
    n_iter: int
    converged: bool

    def _inside(self, x: np.ndarray) -> np.ndarray:
        return Frame(self.location, self.scale).inside(x)

    def log_proba(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x), (n, K)."""
        return safe_log(self.competitive.probability(self._inside(x), self.params))

    def neuron_posterior(self, x: np.ndarray) -> np.ndarray:
        """P(j|x), (n, M)."""
        return self.competitive.neuron_posterior(self._inside(x), self.params)
