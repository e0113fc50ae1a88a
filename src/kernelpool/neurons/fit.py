"""Competing neurons from rows: settings and data in, fitted parameters out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.door import TrainingData, surveyed
from ..data.labels import labeled, merge_duplicates
from ..em import Fit, Outcome, Stop, em
from ..lbfgs import maximize
from ..rows import Frame, as_rows, one_blas_thread
from ..rows.sample import sample_rows
from .network import Competitive, Cost, NeuronParams, Solver

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons differ."""

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


def gradient_step(learning_rate: float) -> Solver:
    """(5): one step down the slope, summed over the rows as printed."""
    return lambda _, weight, first: (weight - learning_rate * first[1], float("nan"))


def lbfgs(n_rows: float) -> Solver:
    """Some steps of L-BFGS down the cost of the M-step; never up."""

    def solve(
        cost: Cost, weight: np.ndarray, first: tuple[float, np.ndarray]
    ) -> tuple[np.ndarray, float]:
        start = weight.ravel()

        def per_row(flat: np.ndarray) -> tuple[np.ndarray, float]:
            known = np.array_equal(flat, start)
            value, slope = first if known else cost(flat.reshape(weight.shape))
            return -slope.ravel() / n_rows, -value / n_rows

        found = maximize(per_row, start, max_iter=N_STEPS, tol=COST_TOL, gradient_tol=SLOPE_TOL)
        if found.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        reached = -found.objective * n_rows
        if not reached < first[0]:
            return weight, first[0]
        return found.point.reshape(weight.shape), reached

    return solve


def fit_neurons(
    data: TrainingData,
    *,
    n_neurons: int,
    precision: float,
    repulsion: float,
    decay: float | None,
    rule: GradientRule | None,
    local: bool,
    margin: bool,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> tuple[dict[str, Any], Fit[NeuronParams]]:
    """The best of the starts: the fields of a fitted record, in the units of the data, and its
    run. Without a `rule` the M-step is L-BFGS.
    """
    # copies are weights, to the last bit
    (x, codes, weight), _ = merge_duplicates(labeled(data.rows))
    data = surveyed(as_rows(x, codes, weight), data.classes)
    frame = Frame(data.mean, np.where(data.variance > 0, data.variance, 1.0) ** 0.5)
    rate = None if rule is None else rule.learning_rate
    rate = 4 * n_neurons / data.weight if rate is None else rate
    solver = lbfgs(data.weight) if rule is None else gradient_step(rate)
    default_decay = DEFAULT_DECAY if rule is None else 0.0
    network = Competitive(
        len(data.classes),
        precision=precision,
        repulsion=repulsion,
        decay=default_decay if decay is None else decay,
        margin=margin,
        repel_rows=rule is not None,
        repel_bias=rule is not None and rule.repulsion_on == "bias",
    )
    x = frame.inside(x)
    rng = np.random.default_rng(seed)
    rows = network.rows(x, codes, weight)
    stop = Stop(max_iter, tol * precision, monotone=rule is None)
    runs: list[tuple[Fit[NeuronParams], list[NeuronParams]]] = []
    # one thread for the whole run: BLAS takes longer to switch than a sweep over few rows
    # steps that are too long end in NaN, which EM reports
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for _ in range(n_init):
            start = _start(n_neurons, network.n_outputs, len(x.T), rng)
            if local:  # at random rows
                samples = sample_rows(
                    as_rows(x, codes, weight), len(data.classes), int(rng.integers(2**31))
                )
                mean = rng.choice(np.concatenate([sample.x for sample in samples]), n_neurons)
                start = replace(start, place=(mean, np.ones_like(mean)))
            steps: list[NeuronParams] = []

            def record(fit: Fit[NeuronParams], steps: list[NeuronParams] = steps) -> bool:
                steps.append(fit.params)
                return False

            fit = em(lambda p: network.sweep(rows, p, solver), start, stop, on_sweep=record)
            if rule is not None:  # (5) need not raise the objective: the last parameters count
                fit = replace(fit, params=steps[-1], objective=fit.history[-1])
            runs.append((fit, steps))
            if fit.outcome is Outcome.INTERRUPTED:
                break
    best, steps = max(runs, key=lambda run: run[0].objective)
    # densities change with the units of the features, errors do not
    shift = frame.log_volume if local else 0.0
    history = np.asarray(best.history) - shift
    params = best.params
    weights = weights_out(params.weight, frame)
    fields = {
        "weights": weights[:, 0] if network.n_outputs == 1 else weights,
        "mixing": params.mixing,
        "means": None if params.place is None else frame.outside(params.place[0]),
        "covariances": None if params.place is None else params.place[1] * frame.unit**2,
        "location": frame.origin,
        "scale": frame.unit,
        "history": history,
        "bound_history": np.array([step.bound for step in steps]) - shift,
        "penalty_history": np.array([-precision * network.penalty(s.weight) for s in steps]),
        "objective": float(history[-1]),
        "n_iter": best.n_sweeps,
        "converged": best.outcome is Outcome.CONVERGED,
    }
    return fields, best


def _start(n_neurons: int, n_outputs: int, d: int, rng: np.random.Generator) -> NeuronParams:
    """Neurons of all directions, with equal shares."""
    columns = [_spread_directions(n_neurons, d + 1, rng) for _ in range(n_outputs)]
    weight = START_LENGTH * np.stack(columns, axis=1)
    return NeuronParams(weight, np.full(n_neurons, 1 / n_neurons))


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
