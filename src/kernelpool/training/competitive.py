"""Competing neurons from rows: settings and data in, fitted parameters out."""

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array, match_array, to_numpy
from ..em import Fit, Outcome, Stop, best_of, em
from ..kernels import Diag, Kernels
from ..lbfgs import maximize
from ..networks.competitive import Competitive, Cost, GradientStep, NeuronParams
from ..rows import Frame, Rows, one_blas_thread
from ..starts import sample_rows
from .monitor import FitMonitor, OnSweep
from .prepare import TrainingData

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons begin with opinions of their own."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, as a part of the feature's variance."""

DEFAULT_DECAY = 0.003

COST_TOL, SLOPE_TOL = 1e7 * float(np.finfo(np.float64).eps), 1e-5
"""L-BFGS ends an M-step when a step lowers the cost a row by less than a part of it, or its slope is as small as this."""


@dataclass(frozen=True)
class CompetitiveConfig:
    """Settings of a mixture of neurons; the words are those of `CompetitiveNeuronsClassifier`."""

    n_neurons: int
    precision: float
    repulsion: float
    decay: float | None
    """None takes the default of the solver."""
    solver: str
    """"lbfgs", or "gradient": the paper's single step (5), which need not raise the objective."""
    learning_rate: float | None
    n_steps: int
    local: bool
    margin: bool
    repulsion_on: str
    """"weights" or, by the paper's single step alone, "bias"."""
    n_init: int
    max_iter: int
    tol: float
    seed: int
    standardize: bool = True

    @property
    def is_printed_rule(self) -> bool:
        """Whether the M-step is that of the paper as printed."""
        return self.solver == "gradient"


@dataclass(frozen=True)
class FittedNeurons:
    """A trained mixture in the units of the data, and how its run went."""

    attributes: dict[str, np.ndarray]
    """weights_, mixing_ and, where neurons have places, means_ and covariances_."""
    classes: np.ndarray
    scaling: Frame
    """By which features are standardized."""
    fit: Fit[NeuronParams]
    history: np.ndarray
    bounds: np.ndarray
    penalties: np.ndarray


class Lbfgs:
    """Some steps of L-BFGS down the cost of the M-step; never up."""

    def __init__(self, n_rows: float, n_steps: int) -> None:
        self.n_rows, self.n_steps = n_rows, n_steps

    def __call__(
        self, cost: Cost, weight: Array, first: tuple[float, Array]
    ) -> tuple[Array, float]:
        start, shape = np.array(to_numpy(weight), dtype=np.float64).ravel(), weight.shape

        def per_row(flat: np.ndarray) -> tuple[np.ndarray, float]:
            # the E-step knows the cost where L-BFGS begins
            value, slope = (
                first
                if np.array_equal(flat, start)
                else cost(match_array(flat.reshape(shape), like=weight))
            )
            return -np.asarray(
                to_numpy(slope), np.float64
            ).ravel() / self.n_rows, -value / self.n_rows

        found = maximize(
            per_row, start, max_iter=self.n_steps, tol=COST_TOL, gradient_tol=SLOPE_TOL
        )
        if found.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        reached = -found.objective * self.n_rows
        if not reached < first[0]:
            return weight, first[0]
        return match_array(found.point.reshape(shape), like=weight), reached


@dataclass(frozen=True)
class _Run:
    fit: Fit[NeuronParams]
    bounds: list[float]
    penalties: list[float]


def fit_neurons(
    data: TrainingData, config: CompetitiveConfig, monitor: FitMonitor | None = None
) -> FittedNeurons:
    """The best of the starts."""
    training = NeuronTraining(data, config)
    monitor = FitMonitor("", max_iter=config.max_iter) if monitor is None else monitor
    runs: list[_Run] = []
    with monitor.fitting(
        config.n_init, training.attributes, training.constants, training.frame.log_volume
    ):
        for i in range(config.n_init):
            with monitor.start(i) as on_sweep:
                runs.append(training.run(on_sweep))
            if runs[-1].fit.outcome is Outcome.INTERRUPTED:
                break
    best = best_of([run.fit for run in runs])
    run, shift = next(run for run in runs if run.fit is best), training.frame.log_volume
    return FittedNeurons(
        attributes=training.attributes(best.params),
        classes=data.classes,
        scaling=training.scaling,
        fit=best,
        history=np.asarray(best.history) - shift,
        bounds=np.asarray(run.bounds) - shift,
        penalties=np.asarray(run.penalties),
    )


class NeuronTraining:
    """One data set, one set of parameters, any number of starts."""

    def __init__(self, data: TrainingData, config: CompetitiveConfig) -> None:
        self.data, self.config = data, config
        self.scaling = Frame(np.zeros_like(data.mean), np.ones_like(data.mean))
        if config.standardize:
            self.scaling = Frame(data.mean, np.where(data.variance > 0, data.variance, 1.0) ** 0.5)
        # densities change with the units of the features, errors do not
        self.frame = self.scaling if config.local else Frame(data.mean, np.ones_like(data.mean))
        self.rng = np.random.default_rng(config.seed)
        self.network = self._network()
        n_scratch = 2 * config.n_neurons * self.network.n_outputs
        self.rows: Rows = data.rows.framed(self.scaling, n_scratch + 2 * len(data.mean))

    def _network(self) -> Competitive:
        c, d = self.config, len(self.data.mean)
        rate = (
            c.learning_rate if c.learning_rate is not None else 4 * c.n_neurons / self.data.weight
        )
        decay = c.decay if c.decay is not None else 0.0 if c.is_printed_rule else DEFAULT_DECAY
        return Competitive(
            len(self.data.classes),
            precision=c.precision,
            repulsion=c.repulsion,
            decay=decay,
            margin=c.margin,
            kernel=Diag(match_array(np.full(d, LOCAL_FLOOR), like=self.data.rows.backend))
            if c.local
            else None,
            repel_rows=c.is_printed_rule,
            repel_bias=c.repulsion_on == "bias",
            solver=GradientStep(rate) if c.is_printed_rule else Lbfgs(self.data.weight, c.n_steps),
        )

    def run(self, on_sweep: OnSweep) -> _Run:
        """EM from one start."""
        c, bounds, penalties = self.config, [], []
        last: list[NeuronParams] = []

        def record(fit: Fit[NeuronParams]) -> bool:
            last[:] = [fit.params]
            bounds.append(fit.params.bound)
            penalties.append(-c.precision * self.network.penalty(fit.params.weight))
            return on_sweep(fit)

        stop = Stop(c.max_iter, c.tol * c.precision, monotone=not c.is_printed_rule)
        # the objective of float32 rows is itself no better than float32
        stop = replace(stop, eps=max(stop.eps, 8 * self.data.rows.eps))
        # held at one thread for the whole run: BLAS takes longer to change its mind than a sweep over few rows
        # steps that are too long end in NaN, and EM tells of it
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            fit = em(
                lambda params: self.network.sweep(self.rows, params),
                self._start(),
                stop,
                on_sweep=record,
            )
        if c.is_printed_rule:  # (5) need not raise the objective, so the highest means nothing: the last parameters count
            fit = replace(fit, params=last[0], objective=fit.history[-1])
        return _Run(fit, bounds, penalties)

    def _start(self) -> NeuronParams:
        n_neurons, d = self.config.n_neurons, len(self.data.mean)
        columns = [
            _spread_directions(n_neurons, d + 1, self.rng) for _ in range(self.network.n_outputs)
        ]
        weight = START_LENGTH * np.stack(columns, axis=1)
        kernels = None
        if self.config.local:
            samples = sample_rows(self.rows, len(self.data.classes), int(self.rng.integers(2**31)))
            x = np.concatenate([sample.x for sample in samples])
            kernels = Kernels(self.rng.choice(x, n_neurons), np.ones((n_neurons, d)))
        mixing = np.full(n_neurons, 1 / n_neurons)
        weight, mixing, kernels = match_array((weight, mixing, kernels), like=self.rows.backend)
        return NeuronParams(weight, mixing, kernels, float("nan"))

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """Fitted attributes that do not change while training."""
        return {
            "classes_": self.data.classes,
            "location_": self.scaling.origin,
            "scale_": self.scaling.unit,
        }

    def attributes(self, params: NeuronParams) -> dict[str, np.ndarray]:
        """Fitted attributes, in the units of the data."""
        weight = weights_out(to_numpy(params.weight), self.scaling)
        found = {
            "weights_": weight[:, 0, :] if weight.shape[1] == 1 else weight,
            "mixing_": np.array(to_numpy(params.mixing)),
        }
        if params.kernels is not None:
            kernels = Kernels(to_numpy(params.kernels.mean), to_numpy(params.kernels.covariance))
            kernels = Diag(np.zeros(len(self.data.mean))).out_of(kernels, self.scaling)
            found |= {"means_": kernels.mean, "covariances_": kernels.covariance}
        return found


def _spread_directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors at angles as wide as may be: the nearest frame with equal extent along all axes, (n, d)."""
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    direction = left @ right
    return np.asarray(direction / np.linalg.norm(direction, axis=1, keepdims=True))


def weights_out(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """Weights of standardized features in the units of the features; w . (x - m) / s + b = (w / s) . x + b - w . m / s."""
    slope = weight[..., :-1] / frame.unit
    return np.concatenate([slope, weight[..., -1:] - (slope @ frame.origin)[..., None]], axis=-1)


def weights_in(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """The way back."""
    bias = weight[..., -1:] + (weight[..., :-1] @ frame.origin)[..., None]
    return np.concatenate([weight[..., :-1] * frame.unit, bias], axis=-1)
