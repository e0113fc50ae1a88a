r"""Weights of several density estimates, from rows that none of them has seen.

Smyth & Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999.

.. math:: \max_w \; \sum_n \log \sum_i w_i\, p_i(x_n), \qquad w_i \ge 0, \quad \sum_i w_i = 1

=================  ===============  ==================================================================
paper              here             meaning
=================  ===============  ==================================================================
:math:`p_i(x_n)`   ``log_density``  what network i, trained without row n, says of it, (L, n)
:math:`w_i`        ``share``        weight of network i, (L,)
=================  ===============  ==================================================================

The objective is concave, so EM finds its one maximum from anywhere. Deviations: rows may have weights, and every network
counts as if it had explained one row more (a Dirichlet prior): with few rows held out the weights stay near equal, and none
is ever zero.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..em import Outcome, Stop, best_of, em
from .candidates import limit_kernels
from .config import SharedKernelConfig
from .folds import stratified_folds
from .held_out import SampledRows, draw_rows, fold_data, n_folds
from .shared_kernel import Starts
from .survey import TrainingData

PRIOR_ROWS = 1.0
"""Rows that each network is taken to have explained before any is seen."""

FEWEST = 10
"""Distinct rows that a class must have for some of them to be held out."""


def stacked(
    log_density: np.ndarray, weight: np.ndarray, prior_rows: float = PRIOR_ROWS
) -> np.ndarray:
    """The weights of the networks, (L,)."""
    n_networks = len(log_density)
    total = weight.sum() + prior_rows * n_networks
    most = log_density.max(axis=0)
    density, constant = np.exp(log_density - most), weight @ most  # (L, n), as parts of the largest

    def sweep(share: np.ndarray) -> tuple[np.ndarray, float]:
        evidence = share @ density
        mass = share * (density @ (weight / evidence))
        objective = (
            weight @ np.log(evidence) + constant + prior_rows * np.log(share).sum()
        ) / total
        return (mass + prior_rows) / total, float(objective)

    return em(sweep, np.full(n_networks, 1 / n_networks), Stop(max_iter=2000, tol=1e-10)).params


def held_out_weights(configs: Sequence[SharedKernelConfig], data: TrainingData) -> np.ndarray:
    """Stacking over folds, (L,); equal where no class has enough rows to spare any."""
    rows = draw_rows(data, seed=0)
    fold = _folds(rows, data)
    log_density, weight = [], []
    for f in np.unique(fold[fold >= 0]):
        train, held_out = rows.where(fold != f), rows.where(fold == f)
        log_density.append(_held_out_log_density(configs, data, train, held_out))
        weight.append(held_out.weight)
    if not weight:
        return np.full(len(configs), 1 / len(configs))
    return stacked(np.concatenate(log_density, axis=1), np.concatenate(weight))


def _folds(rows: SampledRows, data: TrainingData) -> np.ndarray:
    """The fold of each row; -1 for rows that always train, among them those of a class too small to spare any."""
    fold = stratified_folds(rows.code, n_folds(data.weight), key=rows.key, weight=rows.weight)
    for k in range(len(data.classes)):
        in_class = rows.code == k
        if len(np.unique(rows.x[in_class], axis=0)) < FEWEST:
            fold[in_class] = -1
    return fold


def _held_out_log_density(
    configs: Sequence[SharedKernelConfig],
    data: TrainingData,
    train: SampledRows,
    held_out: SampledRows,
) -> np.ndarray:
    """log p(x|C_y) of the rows held out by every network trained without them, (L, n)."""
    fold = fold_data(data, train, configs[0].fit.n_jobs)
    starts: dict[str, Starts] = {}
    known: dict[tuple[str, object, float], np.ndarray] = {}
    answers = []
    for config in configs:
        config = replace(config, start=limit_kernels(config.start, train, len(data.classes)))
        size = str(config.start.n_kernels)
        key = (size, config.sharing, config.penalty.strength)
        if size not in starts:
            starts[size] = Starts(fold, config)
        if key not in known:
            known[key] = _log_density(starts[size], config, held_out)
        answers.append(known[key])
    return np.stack(answers)


def _log_density(starts: Starts, config: SharedKernelConfig, held_out: SampledRows) -> np.ndarray:
    """log p(x|C_y) of rows on which the network was not trained, (n,)."""
    fit = best_of([starts.run(place, config) for place in starts.places()])
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt("interrupted while weights were found; all networks count the same")
    log_density = starts.training.log_density(fit.params, held_out.x, config.fit.n_jobs)
    return (
        np.asarray(log_density[np.arange(len(held_out.code)), held_out.code])
        - starts.training.frame.log_volume
    )
