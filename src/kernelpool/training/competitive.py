"""Competing neurons from rows: settings and data in, fitted parameters out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..em import Fit, Outcome, Stop, best_of, em
from ..kernels import Diag, Kernels
from ..lbfgs import maximize
from ..networks.competitive import Competitive, Cost, GradientStep, NeuronParams
from ..rows import Frame, Rows, as_rows, one_blas_thread
from ..starts import sample_rows
from .prepare import TrainingData, labeled, merge_duplicates, surveyed

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons differ."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, as a part of the feature's variance."""

DEFAULT_DECAY = 0.003

COST_TOL, SLOPE_TOL = 1e7 * float(np.finfo(np.float64).eps), 1e-5
"""L-BFGS ends an M-step when a step lowers the cost a row by less than a part of it, or its slope
is as small as this.
"""


N_STEPS = 20
"""Steps of L-BFGS in one M-step, at most."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class CompetitiveConfig:
    """Settings of a mixture of neurons; the names are those of `CompetitiveNeuronsClassifier`."""

    n_neurons: int
    precision: float
    repulsion: float
    decay: float | None
    """None takes the default of the solver."""
    rule: GradientRule | None
    """None is L-BFGS."""
    local: bool
    margin: bool
    n_init: int
    max_iter: int
    tol: float
    seed: int


class Lbfgs:
    """Some steps of L-BFGS down the cost of the M-step; never up."""

    def __init__(self, n_rows: float) -> None:
        self.n_rows = n_rows

    def __call__(
        self, cost: Cost, weight: Array, first: tuple[float, Array]
    ) -> tuple[Array, float]:
        start, shape = np.array(weight, dtype=np.float64).ravel(), weight.shape

        def per_row(flat: np.ndarray) -> tuple[np.ndarray, float]:
            known = np.array_equal(flat, start)  # from the E-step
            value, slope = first if known else cost(flat.reshape(shape))
            return -np.asarray(slope, np.float64).ravel() / self.n_rows, -value / self.n_rows

        found = maximize(per_row, start, max_iter=N_STEPS, tol=COST_TOL, gradient_tol=SLOPE_TOL)
        if found.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        reached = -found.objective * self.n_rows
        if not reached < first[0]:
            return weight, first[0]
        return found.point.reshape(shape), reached


def fit_neurons(
    data: TrainingData, config: CompetitiveConfig
) -> tuple[dict[str, Any], Fit[NeuronParams]]:
    """The best of the starts: the fields of a fitted record, in the units of the data, and its
    run.
    """
    rows, _ = merge_duplicates(labeled(data.rows))  # copies are weights, to the last bit
    data = surveyed(as_rows(*rows), data.classes)
    training = NeuronTraining(data, config)
    runs = []
    for _ in range(config.n_init):
        runs.append(training.run())
        if runs[-1][0].outcome is Outcome.INTERRUPTED:
            break
    best = best_of([fit for fit, _, _ in runs])
    _, bounds, penalties = next(run for run in runs if run[0] is best)
    shift = training.frame.log_volume
    history = np.asarray(best.history) - shift
    fields = {
        **training.in_data_units(best.params),
        "history": history,
        "bound_history": np.asarray(bounds) - shift,
        "penalty_history": np.asarray(penalties),
        "objective": float(history[-1]),
        "n_iter": best.n_sweeps,
        "converged": best.outcome is Outcome.CONVERGED,
    }
    return fields, best


class NeuronTraining:
    """One data set, one set of parameters, any number of starts."""

    def __init__(self, data: TrainingData, config: CompetitiveConfig) -> None:
        self.data, self.config = data, config
        self.scaling = Frame(data.mean, np.where(data.variance > 0, data.variance, 1.0) ** 0.5)
        # densities change with the units of the features, errors do not
        self.frame = self.scaling if config.local else Frame(data.mean, np.ones_like(data.mean))
        self.rng = np.random.default_rng(config.seed)
        self.network = self._network()
        n_scratch = 2 * config.n_neurons * self.network.n_outputs
        self.rows: Rows = data.rows.framed(self.scaling, n_scratch + 2 * len(data.mean))

    def _network(self) -> Competitive:
        c, rule, d = self.config, self.config.rule, len(self.data.mean)
        solver: Any = Lbfgs(self.data.weight)
        if rule is not None:
            rate = rule.learning_rate
            solver = GradientStep(4 * c.n_neurons / self.data.weight if rate is None else rate)
        default_decay = DEFAULT_DECAY if rule is None else 0.0
        return Competitive(
            len(self.data.classes),
            precision=c.precision,
            repulsion=c.repulsion,
            decay=default_decay if c.decay is None else c.decay,
            margin=c.margin,
            kernel=Diag(np.full(d, LOCAL_FLOOR)) if c.local else None,
            repel_rows=rule is not None,
            repel_bias=rule is not None and rule.repulsion_on == "bias",
            solver=solver,
        )

    def run(self) -> tuple[Fit[NeuronParams], list[float], list[float]]:
        """EM from one start; the bound and the penalty after each sweep."""
        c, bounds, penalties = self.config, list[float](), list[float]()
        last: list[NeuronParams] = []

        def record(fit: Fit[NeuronParams]) -> bool:
            last[:] = [fit.params]
            bounds.append(fit.params.bound)
            penalties.append(-c.precision * self.network.penalty(fit.params.weight))
            return False

        stop = Stop(c.max_iter, c.tol * c.precision, monotone=c.rule is None)
        # one thread for the whole run: BLAS takes longer to switch than a sweep over few rows
        # steps that are too long end in NaN, which EM reports
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            sweep = self.network.sweep
            fit = em(lambda params: sweep(self.rows, params), self._start(), stop, on_sweep=record)
        if c.rule is not None:  # (5) need not raise the objective: the last parameters count
            fit = replace(fit, params=last[0], objective=fit.history[-1])
        return fit, bounds, penalties

    def _start(self) -> NeuronParams:
        n_neurons, d = self.config.n_neurons, len(self.data.mean)
        columns = [
            _spread_directions(n_neurons, d + 1, self.rng) for _ in range(self.network.n_outputs)
        ]
        weight, kernels = START_LENGTH * np.stack(columns, axis=1), None
        if self.config.local:
            samples = sample_rows(self.rows, len(self.data.classes), int(self.rng.integers(2**31)))
            x = np.concatenate([sample.x for sample in samples])
            kernels = Kernels(self.rng.choice(x, n_neurons), np.ones((n_neurons, d)))
        return NeuronParams(weight, np.full(n_neurons, 1 / n_neurons), kernels, float("nan"))

    def in_data_units(self, params: NeuronParams) -> dict[str, np.ndarray]:
        """Fields of the fitted record."""
        weight = weights_out(params.weight, self.scaling)
        found = {
            "weights": weight[:, 0, :] if weight.shape[1] == 1 else weight,
            "mixing": np.array(params.mixing),
            "location": self.scaling.origin,
            "scale": self.scaling.unit,
        }
        if params.kernels is not None:
            kernels = Diag(np.zeros(len(self.data.mean))).out_of(params.kernels, self.scaling)
            found |= {"means": kernels.mean, "covariances": kernels.covariance}
        return found


def _spread_directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors at angles as wide as may be: the nearest frame with equal extent along all axes,
    (n, d).
    """
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    direction = left @ right
    return np.asarray(direction / np.linalg.norm(direction, axis=1, keepdims=True))


def weights_out(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """Weights of standardized features in the units of the features; w . (x - m) / s + b = (w / s)
    . x + b - w . m / s.
    """
    slope = weight[..., :-1] / frame.unit
    return np.concatenate([slope, weight[..., -1:] - (slope @ frame.origin)[..., None]], axis=-1)


def weights_in(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """The way back."""
    bias = weight[..., -1:] + (weight[..., :-1] @ frame.origin)[..., None]
    return np.concatenate([weight[..., :-1] * frame.unit, bias], axis=-1)
