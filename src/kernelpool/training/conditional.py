r"""Shared-kernel networks trained to tell classes apart: on log P(C|x), from the EM solution.

EM makes a network that describes each class. The same network, moved from there to raise the conditional likelihood

.. math:: \frac1n \sum_n \log P(y_n \mid x_n), \qquad P(C_k \mid x) \propto P(C_k) \sum_j \pi_{jk}\, p(x \mid j)

decides between them. In more than a few dimensions mixtures are far too sure of their classes, and from such a start the first
steps only blur them. So the climb starts from the EM solution at the inverse temperature :math:`\beta` that suits held-out rows
best, kernel by kernel: :math:`(\pi_{jk}\, p(x \mid j))^\beta` is again a weighted Gaussian, of covariance
:math:`\Sigma_j / \beta`. It goes on by L-BFGS in the network's own coordinates, where a gradient costs about a sweep, and the
network with the least loss on held-out rows is kept.

Where a class has few rows for its number of features, covariances of its own mislead. So starts are also sought among networks
whose covariances are moved to their mean (Friedman, "Regularized discriminant analysis", Journal of the American Statistical
Association 84(405), 1989): with one kernel a class the far end is linear discriminant analysis.

Lasserre, Bishop & Minka, "Principled hybrids of generative and discriminative models", CVPR 2006, is behind ``pull``: that
share of the objective is the likelihood itself, which holds the kernels near the rows that they describe.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..arrays import log_weighted_sums, match_array, safe_log, to_numpy
from ..em import Outcome
from ..errors import KernelpoolError
from ..lbfgs import maximize
from ..networks.shared_kernel import Params, SharedKernel
from ..rows import Block, Rows, one_blas_thread
from ..sums import Sums, record
from .cross_fit import Selection
from .shared_kernel import MixtureTraining

BETAS = tuple(np.exp(np.linspace(-9, 0.5, 20)).tolist())
"""Inverse temperatures that are tried; where features are indicators of words, mixtures are sure beyond all measure."""

SHRINKAGES = (0.0, 0.3, 1.0)
"""How far the covariances of kernels are moved to their mean, at the start."""

PULLS = (0.0, 0.01, 0.1)
"""Shares of the likelihood in the objective that ``pull="auto"`` tries."""

MOST_PARAMETERS = 500
"""Parameters a row from which on the start is taken as it is: to move so many tells nothing of other rows."""

TOO_FAR = -1e6
"""The objective where there is no network; finite, so that a search can interpolate."""

PATIENCE = 12
"""Steps without a lower loss on held-out rows before the climb ends."""

HEAD_START = 8
"""Steps after which a climb from a second start must not lie behind where the first one was by then."""

GAIN = 1e-4
"""A loss lower by less than this part of it is no lower."""


@dataclass(frozen=True)
class ConditionalConfig:
    """How a network is trained to decide."""

    pull: float | str = 0.0
    """Share of the likelihood in the objective; "auto" is chosen on held-out rows."""
    max_iter: int = 150


@dataclass(frozen=True)
class ConditionalFit:
    """A network that decides, in the frame of its training."""

    params: Params
    beta: float
    """Inverse temperature of the start."""
    pull: float
    loss: float
    """Log-loss a row on held-out rows."""
    history: tuple[float, ...]
    """The objective at every step; it never falls."""
    n_steps: int
    """The step that was kept."""
    outcome: Outcome
    losses: tuple[float, ...] = ()
    """The lowest loss on held-out rows up to each step."""


@record
class LossSums(Sums):
    """Losses of several networks, and the weight of the rows."""

    loss: np.ndarray
    """Sum of -log P(y|x), (L,)."""
    weight: float


def tempered(network: SharedKernel, params: Params, beta: float) -> Params:
    """The network whose weighted densities are those of `params` to the power of `beta`, kernel by kernel."""
    kernel, host = network.kernel, on_host(params)
    kernels = kernel.tempered(host.kernels, beta)
    # (pi N)^beta = pi^beta (peak^beta / peak') N', and what a column sums to belongs to its class
    log_constant = beta * kernel.log_peak(host.kernels) - kernel.log_peak(kernels)  # (M,)
    log_mixing = beta * safe_log(host.mixing) + log_constant[:, None]
    log_column = logsumexp(log_mixing, axis=0)
    log_prior = beta * safe_log(host.class_prior) + log_column
    tempered = Params(
        kernels, np.exp(log_mixing - log_column), np.exp(log_prior - logsumexp(log_prior))
    )
    return match_array(tempered, like=params.mixing)  # type: ignore[no-any-return]


def _shrunk(network: SharedKernel, params: Params, shrinkage: float) -> Params:
    share = params.mixing @ params.class_prior
    return replace(
        params, kernels=network.kernel.shrunk(params.kernels, share / share.sum(), shrinkage)
    )


def fit_conditional(
    training: MixtureTraining,
    start: Params,
    held_out: Rows,
    selection: Selection,
    config: ConditionalConfig,
) -> ConditionalFit:
    """The network with the least loss on `held_out`, rows in the frame of `training`, on the way up from `start`.

    `selection` takes the predictions of every step.
    """
    network = SharedKernel(training.host_kernel, np.ones(start.mixing.shape))
    places = [(shrinkage, beta) for shrinkage in SHRINKAGES for beta in BETAS]
    losses = np.concatenate(
        [tempered_losses(network, held_out, _shrunk(network, start, s)) for s in SHRINKAGES]
    )
    # the best start is not always the start of the best way up: from the covariances as they are it goes on further
    begins = sorted({int(np.argmin(losses)), int(np.argmin(losses[: len(BETAS)]))})
    pulls = PULLS if config.pull == "auto" else (float(config.pull),)
    n_parameters = training.host_kernel.n_parameters(*start.kernels.mean.shape)
    max_iter = config.max_iter if n_parameters <= MOST_PARAMETERS * training.data.n_rows else 0
    fits: list[ConditionalFit] = []
    for (shrinkage, beta), pull in product([places[begin] for begin in begins], pulls):
        begin = tempered(network, _shrunk(network, start, shrinkage), beta)
        rival = next((fit.losses for fit in fits if fit.pull == pull), ())
        fits.append(
            _climb(network, training.rows, held_out, selection, begin, beta, pull, max_iter, rival)
        )
        if fits[-1].outcome is Outcome.INTERRUPTED:
            break
    return min(fits, key=lambda fit: fit.loss)


def _climb(
    network: SharedKernel,
    rows: Rows,
    held_out: Rows,
    selection: Selection,
    start: Params,
    beta: float,
    pull: float,
    max_iter: int,
    rival: tuple[float, ...] = (),
) -> ConditionalFit:
    best, lowest, best_step = start, selection.add(log_proba(network, held_out, start)), 0
    if not max_iter:
        likelihood = -float(conditional_losses(network, rows, [start])[0])
        return ConditionalFit(start, beta, pull, lowest, (likelihood,), 0, Outcome.STOPPED)
    n_steps = -1  # the start is told of too
    losses: list[float] = []

    def watch(vector: np.ndarray, _: float) -> bool:
        nonlocal best, lowest, best_step, n_steps
        n_steps += 1
        if n_steps == 0:
            losses.append(lowest)
            return False
        params = network.from_vector(vector, start)
        loss = selection.add(log_proba(network, held_out, params))
        if loss < (1 - GAIN) * lowest:
            best, lowest, best_step = params, loss, n_steps
        losses.append(lowest)
        if rival and n_steps >= HEAD_START and lowest > rival[min(n_steps, len(rival) - 1)]:
            return True
        return n_steps >= best_step + PATIENCE

    def objective(vector: np.ndarray) -> tuple[np.ndarray, float]:
        try:
            gradient, value = network.gradient(rows, network.from_vector(vector, start), pull)
        except (
            KernelpoolError,
            FloatingPointError,
        ):  # too long a step, covariances are none any more: back
            return np.zeros_like(vector), TOO_FAR
        return np.asarray(to_numpy(gradient)), value

    with one_blas_thread():
        top = maximize(
            objective,
            np.asarray(to_numpy(network.to_vector(start))),
            max_iter=max_iter,
            memory=15,
            on_step=watch,
        )
    return ConditionalFit(
        best, beta, pull, lowest, top.history, best_step, top.outcome, tuple(losses)
    )


def log_proba(network: SharedKernel, rows: Rows, params: Params) -> np.ndarray:
    """log P(C_k|x), (n, K)."""
    natural_params = network.kernel.natural_params(params.kernels, rows.eps)
    log_density = np.asarray(
        to_numpy(rows.each(_log_densities, network, natural_params, params.mixing)), np.float64
    )
    joint = log_density + safe_log(np.asarray(to_numpy(params.class_prior), np.float64))
    joint -= joint.max(axis=1, keepdims=True)
    return np.asarray(joint - np.log(np.exp(joint).sum(axis=1, keepdims=True)))


def conditional_losses(network: SharedKernel, rows: Rows, params: Sequence[Params]) -> np.ndarray:
    """Log-loss a row of each of several networks on the rows with a class, (L,)."""
    natural = tuple(network.kernel.natural_params(p.kernels, rows.eps) for p in params)
    rest = tuple((p.mixing, p.class_prior) for p in params)
    sums = rows.total(_losses, network, natural, rest)
    return np.asarray(sums.loss / sums.weight)


def tempered_losses(network: SharedKernel, rows: Rows, params: Params) -> np.ndarray:
    """Log-loss a row at each of `BETAS`, (L,), from one look at the densities: they need only be raised to a power.

    Of rows with missing cells it is that of the marginal densities to the power, not of the marginals of the power.
    """
    natural_params = network.kernel.natural_params(params.kernels, rows.eps)
    sums = rows.total(_tempered_losses, network, natural_params, params.mixing, params.class_prior)
    return np.asarray(sums.loss / sums.weight)


def _tempered_losses(
    block: Block, network: SharedKernel, natural_params: Any, mixing: Any, class_prior: Any
) -> LossSums:
    by_kernel = np.asarray(to_numpy(network.by_kernel(block, natural_params)), np.float64)
    mixing, log_prior = (
        np.asarray(to_numpy(mixing), np.float64),
        safe_log(np.asarray(to_numpy(class_prior), np.float64)),
    )
    return _summed(
        block,
        (log_weighted_sums(beta * by_kernel, mixing**beta).T + beta * log_prior for beta in BETAS),
    )


def _log_densities(block: Block, network: SharedKernel, natural_params: Any, mixing: Any) -> Any:
    return network.log_density(block, natural_params, mixing)


def _losses(block: Block, network: SharedKernel, natural: tuple, rest: tuple) -> LossSums:
    densities = (
        network.log_density(block, n, mixing) for n, (mixing, _) in zip(natural, rest, strict=True)
    )
    log_priors = (
        safe_log(np.asarray(to_numpy(class_prior), np.float64)) for _, class_prior in rest
    )
    return _summed(
        block,
        (
            np.asarray(to_numpy(d), np.float64) + p
            for d, p in zip(densities, log_priors, strict=True)
        ),
    )


def _summed(block: Block, joints: Iterable[np.ndarray]) -> LossSums:
    """Losses from log P(C_k, x) of several networks, up to a constant of the row, each (n, K); of the rows with a class."""
    codes = to_numpy(block.y)
    known = np.flatnonzero(codes >= 0)
    weight = (
        np.ones(len(known))
        if block.weight is None
        else np.asarray(to_numpy(block.weight), np.float64)[known]
    )
    losses = []
    for joint in joints:
        labeled = joint[known]
        most = labeled.max(axis=1)
        log_evidence = np.log(np.exp(labeled - most[:, None]).sum(axis=1)) + most
        losses.append(weight @ (log_evidence - labeled[np.arange(len(known)), codes[known]]))
    return LossSums(np.array(losses), float(weight.sum()))


def on_host(params: Params) -> Params:
    """The same parameters in NumPy."""
    kernels = match_array(params.kernels, like=np.empty(0))
    return Params(kernels, to_numpy(params.mixing), to_numpy(params.class_prior))
