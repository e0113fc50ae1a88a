"""Competing neurons from rows: settings and data in, fitted parameters out."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.door import TrainingData
from ..data.labels import labeled
from ..em import Fit, Outcome, Stop, em
from ..rows import Rows, as_rows, one_blas_thread
from ..rows.sample import sample_rows
from .network import Competitive, GradientRule, NeuronNetwork, NeuronParams, NeuronRows

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons differ."""

DEFAULT_DECAY = 0.003


@dataclass(frozen=True)
class NeuronSettings:
    """The parameters of `CompetitiveNeuronsClassifier`; without a `rule` the M-step is L-BFGS."""

    n_neurons: int
    precision: float
    repulsion: float
    decay: float | None
    rule: GradientRule | None
    local: bool
    margin: bool
    n_init: int
    max_iter: int
    tol: float
    seed: int

    def network(self, n_classes: int) -> Competitive:
        """The network that is trained."""
        decay = DEFAULT_DECAY if self.rule is None else 0.0
        return Competitive(
            n_classes,
            self.precision,
            self.repulsion,
            decay if self.decay is None else self.decay,
            self.margin,
            self.rule,
        )


def fit_neurons(
    data: TrainingData, settings: NeuronSettings
) -> tuple[NeuronNetwork, Fit[NeuronParams]]:
    """The best of the starts, in the units of the data, and its run."""
    x, codes, weight = labeled(data.rows)
    frame = data.scale.frame
    x = frame.inside(x)
    network = settings.network(len(data.classes))
    stop = Stop(settings.max_iter, settings.tol * settings.precision, settings.rule is None)
    rng = np.random.default_rng(settings.seed)
    runs = []
    # one thread for the whole run: BLAS takes longer to switch than a sweep over few rows
    # steps that are too long end in NaN, which EM reports
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for _ in range(settings.n_init):
            start = _start(as_rows(x, codes, weight), settings, network, rng)
            runs.append(_climb(network, network.rows(x, codes, weight), start, stop))
            if runs[-1][0].outcome is Outcome.INTERRUPTED:
                break
    best, steps = max(runs, key=lambda run: run[0].objective)
    params = best.params
    # densities change with the units of the features, errors do not
    shift = frame.log_volume if settings.local else 0.0
    history = np.asarray(best.history) - shift
    # w . (x - m) / s + b = (w / s) . x + b - (w / s) . m
    slope = params.weight[..., :-1] / frame.unit
    bias = params.weight[..., -1:] - (slope @ frame.origin)[..., None]
    weights = np.concatenate([slope, bias], axis=-1)
    means, variances = params.place or (None, None)
    fitted = NeuronNetwork(
        competitive=replace(network, rule=None),
        params=params,
        weights=weights[:, 0] if network.n_outputs == 1 else weights,
        mixing=params.mixing,
        means=None if means is None else frame.outside(means),
        covariances=None if variances is None else variances * frame.unit**2,
        location=frame.origin,
        scale=frame.unit,
        history=history,
        bound_history=np.array([step.bound for step in steps]) - shift,
        penalty_history=np.array(
            [-network.precision * network.penalty(s.weight)[0] for s in steps]
        ),
        objective=float(history[-1]),
        n_iter=best.n_sweeps,
        converged=best.outcome is Outcome.CONVERGED,
    )
    return fitted, best


def _climb(
    network: Competitive, rows: NeuronRows, start: NeuronParams, stop: Stop
) -> tuple[Fit[NeuronParams], list[NeuronParams]]:
    """EM from one start, and the parameters before each sweep."""
    steps: list[NeuronParams] = []

    def record(fit: Fit[NeuronParams]) -> bool:
        steps.append(fit.params)
        return False

    fit = em(partial(network.sweep, rows), start, stop, on_sweep=record)
    if network.rule is not None:  # (5) need not raise the objective: the last parameters count
        fit = replace(fit, params=steps[-1], objective=fit.history[-1])
    return fit, steps


# -- starts ----------------------------------------------------------------------------------------


def _start(
    rows: Rows, settings: NeuronSettings, network: Competitive, rng: np.random.Generator
) -> NeuronParams:
    """Neurons of all directions, with equal shares; at random rows if they have a place."""
    n_neurons = settings.n_neurons
    size = n_neurons, rows.n_features + 1
    columns = [_spread_directions(*size, rng) for _ in range(network.n_outputs)]
    weight = START_LENGTH * np.stack(columns, axis=1)
    place = None
    if settings.local:
        samples = sample_rows(rows, network.n_classes, int(rng.integers(2**31)))
        mean = rng.choice(np.concatenate([sample.x for sample in samples]), n_neurons)
        place = mean, np.ones_like(mean)
    return NeuronParams(weight, np.full(n_neurons, 1 / n_neurons), place)


def _spread_directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors at angles as wide as may be: the nearest frame with equal extent along all axes,
    (n, d).
    """
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    direction = left @ right
    return direction / np.linalg.norm(direction, axis=1, keepdims=True)
