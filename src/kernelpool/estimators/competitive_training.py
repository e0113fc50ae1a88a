"""How competing neurons are trained on given data; the estimator sets it up and keeps what it returns."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from ..arrays import Array, match_array, to_numpy
from ..em import Fit, Stop, em
from ..kernels import Diag, Kernels
from ..networks.competitive import Competitive, Cost, GradientStep, Params
from ..rows import Frame, Rows, one_blas_thread
from ..starts import sample_rows
from ..training.validation import TrainingData

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons begin with opinions of their own."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, as a part of the feature's variance."""

DEFAULT_DECAY = 0.003


class Lbfgs:
    """Some steps of L-BFGS down the cost of the M-step; never up."""

    def __init__(self, n_rows: float, n_steps: int) -> None:
        self.n_rows, self.n_steps = n_rows, n_steps

    def __call__(self, cost: Cost, weight: Array, first: tuple[float, Array]) -> tuple[Array, float]:
        start, shape = np.array(to_numpy(weight), dtype=np.float64).ravel(), weight.shape

        def per_row(flat: np.ndarray) -> tuple[float, np.ndarray]:
            # the E-step knows the cost where L-BFGS begins
            known = np.array_equal(flat, start)
            value, slope = first if known else cost(match_array(flat.reshape(shape), like=weight))
            return value / self.n_rows, np.asarray(to_numpy(slope), np.float64).ravel() / self.n_rows

        found = minimize(per_row, start, jac=True, method="L-BFGS-B", options={"maxiter": self.n_steps})
        if not found.fun * self.n_rows < first[0]:
            return weight, first[0]
        return match_array(found.x.reshape(shape), like=weight), float(found.fun * self.n_rows)


class Trace:
    """A run of EM and what was written down of it on the way."""

    def __init__(self, penalty: Callable[[Params], float]) -> None:
        self.fit: Fit[Params]
        self.last: Params
        self.bounds: list[float] = []
        self.penalties: list[float] = []
        self._penalty = penalty

    def write(self, fit: Fit[Params]) -> None:
        """After each sweep."""
        self.last = fit.params
        self.bounds.append(fit.params.bound)
        self.penalties.append(self._penalty(fit.params))


class NeuronTraining:
    """One data set, one set of parameters, any number of starts."""

    def __init__(self, estimator: Any, data: TrainingData) -> None:
        self.data, self.estimator = data, estimator
        self.scaling = Frame(data.mean, np.where(data.variance > 0, data.variance, 1.0) ** 0.5)
        # densities change with the units of the features, errors do not
        self.frame = self.scaling if estimator.local else Frame(data.mean, np.ones_like(data.mean))
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
        self.network = self._network()
        n_scratch = 2 * estimator.n_neurons * self.network.n_outputs
        self.rows: Rows = data.rows.framed(self.scaling, n_scratch + 2 * len(data.mean))
        self.tol = estimator.tol * estimator.precision

    def _network(self) -> Competitive:
        e, n_classes, d = self.estimator, len(self.data.classes), len(self.data.mean)
        printed = e.solver == "gradient"
        rate = e.learning_rate if e.learning_rate is not None else 4 * e.n_neurons / self.data.weight
        decay = e.decay if e.decay is not None else 0.0 if printed else DEFAULT_DECAY
        return Competitive(
            n_classes,
            precision=e.precision,
            repulsion=e.repulsion,
            decay=decay,
            margin=e.margin,
            kernel=Diag(match_array(np.full(d, LOCAL_FLOOR), like=self.data.rows.home)) if e.local else None,
            repel_rows=printed,
            solver=GradientStep(rate) if printed else Lbfgs(self.data.weight, e.n_steps),
        )

    def run(self, on_sweep: Callable[[Fit[Params]], bool]) -> Trace:
        """EM from one start."""
        factor = -self.estimator.precision
        trace = Trace(lambda params: factor * self.network.penalty(params.weight))
        printed = self.estimator.solver == "gradient"

        def watched(fit: Fit[Params]) -> bool:
            trace.write(fit)
            return on_sweep(fit)

        stop = Stop(self.estimator.max_iter, self.tol, monotone=not printed)
        # the objective of float32 rows is itself no better than float32
        stop = replace(stop, eps=max(stop.eps, 8 * self.data.rows.eps))
        # held at one thread for the whole run: BLAS takes longer to change its mind than a sweep over few rows
        # steps that are too long end in NaN, and EM tells of it
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            trace.fit = em(lambda params: self.network.sweep(self.rows, params), self._start(), stop, on_sweep=watched)
        if printed:  # (5) need not raise the objective, so the highest means nothing: the last parameters are the result
            trace.fit = replace(trace.fit, params=trace.last, objective=trace.fit.history[-1])
        return trace

    def _start(self) -> Params:
        e, d = self.estimator, len(self.data.mean)
        columns = [_spread_directions(e.n_neurons, d + 1, self.rng) for _ in range(self.network.n_outputs)]
        weight = START_LENGTH * np.stack(columns, axis=1)
        kernels = None
        if e.local:
            samples = sample_rows(self.rows, len(self.data.classes), int(self.rng.integers(2**31)))
            x = np.concatenate([sample.x for sample in samples])
            kernels = Kernels(self.rng.choice(x, e.n_neurons), np.ones((e.n_neurons, d)))
        mixing = np.full(e.n_neurons, 1 / e.n_neurons)
        weight, mixing, kernels = match_array((weight, mixing, kernels), like=self.rows.home)
        return Params(weight, mixing, kernels, float("nan"))

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """Fitted attributes that do not change while training."""
        return {"classes_": self.data.classes, "location_": self.scaling.origin, "scale_": self.scaling.unit}

    def outside(self, params: Params) -> dict[str, np.ndarray]:
        """Fitted attributes, in the units of the data."""
        weight = weights_out(to_numpy(params.weight), self.scaling)
        found = {"weights_": weight[:, 0, :] if weight.shape[1] == 1 else weight, "mixing_": np.array(to_numpy(params.mixing))}
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
