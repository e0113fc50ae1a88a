r"""Shared-kernel networks trained to tell classes apart: on log P(C|x), from the EM solution.

EM makes a network that describes each class. The same network, moved from there to raise the
conditional likelihood

.. math:: \frac1n \sum_n \log P(y_n \mid x_n), \qquad P(C_k \mid x) \propto P(C_k) \sum_j \pi_{jk}\, p(x \mid j)

decides between them. In more than a few dimensions mixtures are far too sure of their classes, and
from such a start the first steps only blur them. So the climb starts from the EM solution at the
inverse temperature :math:`\beta` that suits held-out rows best, kernel by kernel:
:math:`(\pi_{jk}\, p(x \mid j))^\beta` is again a weighted Gaussian, of covariance
:math:`\Sigma_j / \beta`. It goes on by L-BFGS in the network's own coordinates, where a gradient costs about a sweep, and the
network with the least loss on held-out rows is kept.

Where a class has few rows for its number of features, covariances of its own mislead. So starts are
also sought among networks whose covariances are moved to their mean (Friedman, "Regularized
discriminant analysis", Journal of the American Statistical Association 84(405), 1989): with one
kernel a class the far end is linear discriminant analysis.

Lasserre, Bishop & Minka, "Principled hybrids of generative and discriminative models", CVPR 2006,
is behind ``generative_weight``: that share of the objective is the likelihood itself, which holds
the kernels near the rows that they describe.

Several networks are trained, each stopped on a fold that it was not trained on; their probabilities
are averaged.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..arrays import (
    Array,
    device,
    logsumexp,
    match_array,
    namespace,
    safe_log,
    to_numpy,
)
from ..base.classifier import log_softmax
from ..data.door import TrainingData, surveyed
from ..data.folds import (
    Data,
    SampledRows,
    Selection,
    cross_fit,
    draw_rows,
    fold_data,
    near,
    stratified_folds,
)
from ..em import Outcome
from ..errors import KernelpoolError
from ..lbfgs import maximize
from ..rows import Block, Frame, Rows, RowsInMemory, one_blas_thread
from ..rows.sample import MOST_ROWS, content_key, sample_block
from ..softmax import log_weighted_sums
from .fit import MixtureSettings, MixtureTraining, is_auto, log_joint
from .fitted import ClassDensities, FittedSharedKernel
from .network import Params, SharedKernel

BETAS = tuple(np.exp(np.linspace(-9, 0.5, 20)).tolist())
"""Inverse temperatures of the start that are tried; over indicators of categories, mixtures are far
too sure."""

SHRINKAGES = (0.0, 0.3, 1.0)
"""Degrees to which the covariances of the start are moved to their mean that are tried."""

GENERATIVE_WEIGHTS = (0.0, 0.01, 0.1)
"""Shares of the likelihood in the objective that ``generative_weight="auto"`` tries."""

MAX_STEPS = 150
"""Steps of L-BFGS in one run at most."""

MOST_PARAMETERS = 500
"""Skip conditional training above this many parameters per row."""

MOST_AT_START = 10**8
"""Choose the start on fewer rows where rows x kernels x classes exceed this."""

MOST_IN_CLIMB = 4 * 10**9
"""Make fewer steps where steps x rows x kernels x classes would exceed this."""

TOO_FAR = -1e6
"""The objective where there is no network; finite, so that a search can interpolate."""

PATIENCE = 12
"""Stop after this many steps without a lower loss on held-out rows."""

HEAD_START = 8
"""Stop the second run if, after this many steps, its held-out loss exceeds the first run's at the
same step."""

GAIN = 1e-4
"""Relative decrease of a loss that counts as one."""

MOST_HELD_OUT = 10_000
"""Rows that are held out of more than `MOST_ROWS`, or a fifth of them."""

MIN_ROWS_OF_CLASS = 20
"""Hold out no row of a class with fewer rows."""

FORGETTING_SWEEPS = 10
"""Sweeps of EM without the rows that are held out, from the network that was trained on them."""


def fit_discriminative(
    data: TrainingData,
    settings: MixtureSettings,
    generative: FittedSharedKernel,
    held_out: SampledRows | None = None,
) -> tuple[FittedSharedKernel, bool]:
    """One network for each fold, or one for the rows that are given as held out.

    More rows than the host should hold stay where they live: some are held out once, and the
    generative network of all rows is first trained on by EM without these.

    Returns the fitted record with these networks, and whether the training was interrupted.
    """
    trained: list[tuple[ClassDensities, float, Selection]] = []

    def fit(
        part: TrainingData, settings: MixtureSettings, out: SampledRows
    ) -> tuple[None, np.ndarray]:
        selection = Selection(out.code, out.weight, out.key, GAIN)
        network, loss, outcome = _trained(part, settings, out, selection)
        trained.append((network, loss, selection))
        if outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        return None, selection.log_proba

    def fit_fold(train: Data, out: Data) -> tuple[None, np.ndarray]:
        rows = SampledRows(*train)
        fewer = settings.limited(rows.x, rows.code, len(data.classes))
        return fit(fold_data(data, rows, settings.n_jobs), fewer, SampledRows(*out))

    interrupted = False
    try:
        if held_out is not None:  # all rows train, and EM has settled on them
            n_sweeps = FORGETTING_SWEEPS if data.n_rows > MOST_ROWS else 0
            fit(data, _from_network(generative, settings, n_sweeps), held_out)
        elif data.n_rows > MOST_ROWS:
            part, out = divide(data, settings)
            fit(part, _from_network(generative, settings, FORGETTING_SWEEPS), out)
        else:
            rows = draw_rows(data, settings.seed)
            fold = stratified_folds(
                rows.code, settings.training.n_folds, key=rows.key, weight=rows.weight
            )
            cross_fit(fit_fold, rows, fold)
    except KeyboardInterrupt:  # what there is stays; without any, the generative network decides
        interrupted = True
    if not trained:
        return generative, interrupted
    networks, losses, selections = zip(*trained, strict=True)
    weights = [selection.weight.sum() for selection in selections]  # may be zero in every fold
    loss = float(np.average(losses, weights=weights if any(weights) else None))
    log_proba = None if held_out is None else selections[0].log_proba
    return replace(
        generative,
        discriminative=networks,
        conditional_loss=loss,
        class_shares=data.class_share,
        validation_log_proba=log_proba,
    ), interrupted


def _from_network(
    network: FittedSharedKernel, settings: MixtureSettings, n_sweeps: int
) -> MixtureSettings:
    """MixtureSettings that start from a network, for some sweeps."""
    return replace(
        settings,
        n_kernels=None,
        start=network.as_start(),
        sharing=network.sharing,
        max_iter=min(settings.max_iter, n_sweeps),
    )


# -- rows held out where they live -----------------------------------------------------------------


def _is_drawn(block: Block, seed: int, share: float, spared: np.ndarray, held_out: bool) -> Array:
    """Whether each row is held out, (n,), or trains, by its content in the frame of training.

    `spared` (K + 1,): whether the rows of a class always train, and (last) those without a class.
    """
    xp = namespace(block.x)
    x = block.x
    if block.missing is not None:
        x = xp.where(block.missing.observed > 0, x, xp.nan * xp.ones_like(x))
    last = (len(spared) - 1) * xp.ones_like(block.y)
    code = xp.where(block.y < 0, last, block.y)  # type: ignore[operator]
    is_spared = xp.take(xp.asarray(spared, device=device(x)), code, axis=0)
    return ((content_key(near(x), seed) < share) & ~is_spared) == held_out


class SomeRows:
    """All rows, of which those that are not selected count nothing in sums."""

    def __init__(self, rows: Rows, selected: Callable[[Block], Array]) -> None:
        self.rows = rows
        self.selected = selected
        self.n_features = rows.n_features
        self.backend = rows.backend
        self.eps = rows.eps

    def total(self, statistic: Callable[..., Any], *params: Any) -> Any:
        return self.rows.total(partial(_total_of_selected, statistic, self.selected), *params)

    def framed(self, frame: Frame, width: int) -> "SomeRows":
        return SomeRows(self.rows.framed(frame, width), self.selected)

    def by_class(self) -> "SomeRows":
        return SomeRows(self.rows.by_class(), self.selected)


def _total_of_selected(
    statistic: Callable[..., Any], selected: Callable[[Block], Array], block: Block, *params: Any
) -> Any:
    def weighted(block: Block) -> Block:
        weight = namespace(block.x).astype(selected(block), block.x.dtype)
        return block.changed(weight=weight if block.weight is None else block.weight * weight)

    return statistic(block.once(selected, weighted, 2), *params)


def divide(data: TrainingData, settings: MixtureSettings) -> tuple[TrainingData, SampledRows]:
    """The training data less some rows that are held out; and these, on the host.

    Unlike folds, it moves no other row to the host. Classes of few rows are not held out.
    """
    share = min(MOST_HELD_OUT / max(data.n_rows, 1.0), 0.2)
    spared = np.append(data.class_weight < MIN_ROWS_OF_CLASS * data.row_weight, True)
    seed = settings.seed
    held_out = partial(_is_drawn, seed=seed, share=share, spared=spared, held_out=True)
    in_training = partial(held_out, held_out=False)
    training = MixtureTraining(data, settings)
    drawn = SomeRows(training.rows, held_out).total(sample_block, seed, sys.maxsize)
    order = np.lexsort((drawn.code, *drawn.x.T))
    x = training.frame.outside(drawn.x[order])
    out = SampledRows(x, drawn.code[order], drawn.weight[order], drawn.key[order])
    in_frame = SomeRows(training.rows, in_training)
    counted = surveyed(in_frame, data.classes, data.columns, data.scale)
    return replace(counted, rows=SomeRows(data.rows, in_training)), out


# -- the climb -------------------------------------------------------------------------------------


def tempered(network: SharedKernel, params: Params, beta: float) -> Params:
    """The network whose weighted densities are those of `params` to the power of `beta`, kernel by
    kernel.
    """
    kernel = network.kernel
    kernels = kernel.tempered(params.kernels, beta)
    # (pi N)^beta = pi^beta (peak^beta / peak') N', and what a column sums to belongs to its class
    log_constant = beta * kernel.log_peak(params.kernels) - kernel.log_peak(kernels)  # (M,)
    log_mixing = beta * safe_log(params.mixing) + log_constant[:, None]
    log_column = logsumexp(log_mixing, axis=0)
    log_prior = beta * safe_log(params.class_prior) + log_column
    return Params(
        kernels, np.exp(log_mixing - log_column), np.exp(log_prior - logsumexp(log_prior, axis=0))
    )


def _trained(
    data: TrainingData, settings: MixtureSettings, out: SampledRows, selection: Selection
) -> tuple[ClassDensities, float, Outcome]:
    """EM on the rows that train, then climbs from there: the network with the least loss on the
    rows held out, in the units of the data, that loss a row, and how the last climb ended.
    """
    training = MixtureTraining(data, replace(settings, class_prior=None))
    em_fit = training.best()
    if em_fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    last = em_fit.params  # a learned sharing plays no part from here on
    params = match_array(Params(last.kernels, last.mixing, last.class_prior), like=np.empty(0))
    network = SharedKernel(training.host_kernel, np.ones(params.mixing.shape))
    held_out = training.other_rows(out.x, out.code, out.weight)
    few = slice(None, None, 1 + int(len(out.x) * params.mixing.size // MOST_AT_START))
    few_held_out = training.other_rows(out.x[few], out.code[few], out.weight[few])
    max_steps = _max_steps(network, params, data.n_rows)

    def loss(params: Params) -> float:
        return selection.add(log_proba(network, held_out, params))

    given = settings.training.generative_weight
    weights = GENERATIVE_WEIGHTS if is_auto(given) else (float(given),)
    first_losses: dict[float, list[float]] = {}
    climbs = []
    for start, weight in product(_starts(network, params, few_held_out), weights):
        objective = partial(network.gradient, training.rows, generative_weight=weight)
        rival = first_losses.get(weight, [])
        climb, losses = _climb(network, start, objective, loss, max_steps, rival)
        first_losses.setdefault(weight, losses)
        climbs.append(climb)
        if climb[2] is Outcome.INTERRUPTED:
            break
    best, lowest, _ = min(climbs, key=lambda climb: climb[1])
    return training.in_data_units(best), lowest, climbs[-1][2]


def _starts(network: SharedKernel, params: Params, held_out: Rows) -> list[Params]:
    """The best start by loss on held-out rows, and the best with covariances as they are: from
    there a climb goes on further.
    """
    share = params.mixing @ params.class_prior
    share = share / share.sum()
    shrunk = [
        replace(params, kernels=network.kernel.shrunk(params.kernels, share, degree))
        for degree in SHRINKAGES
    ]
    losses = np.concatenate([tempered_losses(network, held_out, start) for start in shrunk])
    chosen = sorted({int(np.argmin(losses)), int(np.argmin(losses[: len(BETAS)]))})
    return [tempered(network, shrunk[i // len(BETAS)], BETAS[i % len(BETAS)]) for i in chosen]


def _max_steps(network: SharedKernel, params: Params, n_rows: float) -> int:
    """Steps that one climb may take; none where they would be too few, or tell nothing."""
    n_steps = min(MAX_STEPS, int(MOST_IN_CLIMB // (n_rows * params.mixing.size)))
    n_parameters = network.kernel.n_parameters(*params.kernels.mean.shape)
    return n_steps if n_parameters <= MOST_PARAMETERS * n_rows and n_steps >= PATIENCE else 0


def _climb(
    network: SharedKernel,
    start: Params,
    objective: Callable[[Params], tuple[Any, float]],
    held_out_loss: Callable[[Params], float],
    max_steps: int,
    rival: list[float],
) -> tuple[tuple[Params, float, Outcome], list[float]]:
    """Up from `start`: the network with the least held-out loss on the way, that loss, and how the
    climb ended; and the least loss up to each step. `rival` has those of the climb before.
    """
    best = start
    lowest = held_out_loss(start)
    best_step = 0
    losses: list[float] = []
    if not max_steps:
        return (start, lowest, Outcome.STOPPED), [lowest]

    def watch(vector: np.ndarray, _: float) -> bool:
        """Called at the start, and after each step."""
        nonlocal best, lowest, best_step
        n_steps = len(losses)
        if n_steps:
            params = network.from_vector(vector, start)
            loss = held_out_loss(params)
            if loss < (1 - GAIN) * lowest:
                best = params
                lowest = loss
                best_step = n_steps
        losses.append(lowest)
        if rival and n_steps >= HEAD_START and lowest > rival[min(n_steps, len(rival) - 1)]:
            return True
        return n_steps >= best_step + PATIENCE

    def at(vector: np.ndarray) -> tuple[np.ndarray, float]:
        try:
            gradient, value = objective(network.from_vector(vector, start))
        except (KernelpoolError, FloatingPointError):  # too long a step: no covariances any more
            return np.zeros_like(vector), TOO_FAR
        return np.asarray(to_numpy(gradient)), value

    point = np.asarray(to_numpy(network.to_vector(start)))
    with one_blas_thread():
        top = maximize(at, point, max_iter=max_steps, memory=15, on_step=watch)
    return (best, lowest, top.outcome), losses


def log_proba(network: SharedKernel, rows: RowsInMemory, params: Params) -> np.ndarray:
    """log P(C_k|x), (n, K)."""
    return np.asarray(log_softmax(log_joint(network, rows, params)))


def tempered_losses(network: SharedKernel, rows: Rows, params: Params) -> np.ndarray:
    """Sum of the log-losses at each of `BETAS`, (L,), from one pass over the densities: they need
    only be raised to a power.

    Of rows with missing cells it is that of the marginal densities to the power, not of the
    marginals of the power.
    """
    natural_params = network.kernel.natural_params(params.kernels, rows.eps)
    return np.asarray(rows.total(_tempered_losses, network, natural_params, params))


def _tempered_losses(
    block: Block, network: SharedKernel, natural_params: Any, params: Params
) -> Any:
    """Sums over the rows with a class, (L,)."""
    codes = np.asarray(block.y)
    known = np.flatnonzero(codes >= 0)
    weight = np.ones(len(known)) if block.weight is None else np.asarray(block.weight)[known]
    by_kernel = np.asarray(network.by_kernel(block, natural_params), np.float64)[:, known]
    mixing = np.asarray(params.mixing)
    log_prior = safe_log(np.asarray(params.class_prior))
    losses = []
    for beta in BETAS:
        joint = log_weighted_sums(beta * by_kernel, mixing**beta).T + beta * log_prior  # (n, K)
        own = joint[np.arange(len(known)), codes[known]]
        losses.append(weight @ (logsumexp(joint, axis=1) - own))
    return np.array(losses)
