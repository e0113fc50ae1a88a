"""Cross-fitted conditional training: several networks, each stopped on a fold that it has not seen."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import to_numpy
from ..em import Outcome, best_of
from ..networks.shared_kernel import Params
from ..rows import as_rows
from .candidates import limit_kernels
from .conditional import GAIN, ConditionalConfig, ConditionalFit, fit_conditional, on_host
from .config import PreviousFit, SharedKernelConfig, StartConfig
from .cross_fit import Selection
from .folds import stratified_folds
from .held_out import MOST_ROWS, SampledRows, divide, draw_rows, fold_data
from .prepare import TrainingData
from .shared_kernel import FittedNetwork, Starts

MOST_HELD_OUT = 10_000
"""Rows that are held out of more than `MOST_ROWS`."""

FORGETTING = 10
"""Sweeps without the rows that are held out, from the network that has seen them."""


@dataclass(frozen=True)
class DecidingNetwork:
    """A network that decides, in the units of the data."""

    means: np.ndarray
    """(M, d)."""
    covariances: np.ndarray
    mixing: np.ndarray
    """(M, K)."""
    class_prior: np.ndarray
    """(K,)."""
    fit: ConditionalFit
    weight: float
    """Of the rows that it was judged on."""
    probability: np.ndarray | None = None
    """Of words, (M, W)."""
    judged: np.ndarray | None = None
    """log P(C_k|x) of the rows that it was judged on, each by the network as stopped on others of them, (n, K)."""


@dataclass(frozen=True)
class DecidingNetworks:
    """Networks whose probabilities are averaged."""

    networks: tuple[DecidingNetwork, ...]
    interrupted: bool = False

    @property
    def loss(self) -> float:
        """Log-loss a row on rows that each network has not seen."""
        weight = np.array(
            [n.weight for n in self.networks]
        )  # all of it may be on rows that no fold holds out
        return float(
            np.average(
                [n.fit.loss for n in self.networks], weights=weight if weight.any() else None
            )
        )


def fit_deciding(
    data: TrainingData,
    config: SharedKernelConfig,
    conditional: ConditionalConfig,
    described: FittedNetwork,
    *,
    n_folds: int,
    held_out: SampledRows | None = None,
) -> DecidingNetworks:
    """One network for each fold, or one for the rows that are given as held out.

    More rows than the host should hold stay where they live: some are held out once, and the network that describes them all
    is first trained on by EM without these.
    """
    networks: list[DecidingNetwork] = []
    try:
        for part, settings, out in _parts(data, config, described, n_folds, held_out):
            networks.append(_trained(part, settings, conditional, out))
            if networks[-1].fit.outcome is Outcome.INTERRUPTED:
                return DecidingNetworks(tuple(networks), interrupted=True)
    except (
        KeyboardInterrupt
    ):  # while EM ran: what there is stays, and if it is none, the network that describes decides
        return DecidingNetworks(tuple(networks), interrupted=True)
    return DecidingNetworks(tuple(networks))


def _parts(
    data: TrainingData,
    config: SharedKernelConfig,
    described: FittedNetwork,
    n_folds: int,
    held_out: SampledRows | None,
) -> Iterator[tuple[TrainingData, SharedKernelConfig, SampledRows]]:
    """The rows that train each network, its settings, and the rows that it is judged on."""
    if data.n_rows > MOST_ROWS:
        part, out = (
            (data, held_out)
            if held_out is not None
            else divide(data, config.fit.seed, MOST_HELD_OUT)
        )
        yield part, _going_on_from(described, config), out
        return
    if (
        held_out is not None
    ):  # all rows train, and the network that describes them is what EM comes to
        yield data, _going_on_from(described, config, 0), held_out
        return
    rows = draw_rows(data, config.fit.seed)
    fold = stratified_folds(rows.code, n_folds, key=rows.key, weight=rows.weight)
    for f in np.unique(fold[fold >= 0]):
        train = rows.where(fold != f)
        start = limit_kernels(config.start, train, len(data.classes))
        yield (
            fold_data(data, train, config.fit.n_jobs),
            replace(config, start=start),
            rows.where(fold == f),
        )


def _going_on_from(
    described: FittedNetwork, config: SharedKernelConfig, n_sweeps: int = FORGETTING
) -> SharedKernelConfig:
    """Settings that start from a network, for as many sweeps as it takes to forget some of its rows."""
    previous = PreviousFit(
        described.means,
        described.covariances,
        described.mixing,
        described.classes[described.owners],
        described.classes,
        len(described.means),
        config.kernel.covariance_type,
        config.kernel.prior,
        config.penalty.strength,
        float("nan"),
        probability=described.probability,
    )
    fit = replace(config.fit, max_iter=min(config.fit.max_iter, n_sweeps))
    return replace(config, start=StartConfig(previous=previous), sharing=described.sharing, fit=fit)


def _trained(
    data: TrainingData, config: SharedKernelConfig, conditional: ConditionalConfig, out: SampledRows
) -> DecidingNetwork:
    """EM on the rows that train, then the climb."""
    config = replace(config, class_prior=None, split_anchor=None)
    starts = Starts(data, config)
    described = best_of([starts.run(place, config) for place in starts.places()])
    if described.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    training, params = starts.training, described.params
    held_out = as_rows(out.x, out.code, out.weight, n_jobs=config.fit.n_jobs)
    width = params.mixing.shape[0] + training.host_kernel.n_features(out.x.shape[1])
    start = on_host(
        Params(params.kernels, params.mixing, params.class_prior)
    )  # a learned sharing plays no part from here on
    selection = Selection(out.code, out.weight, out.key, GAIN)
    fit = fit_conditional(
        training, start, held_out.framed(training.frame, width), selection, conditional
    )
    parameters = training.in_data_units(fit.params)
    class_prior, probability = (
        np.array(to_numpy(fit.params.class_prior)),
        training.probability(fit.params),
    )
    return DecidingNetwork(
        *parameters, class_prior, fit, float(out.weight.sum()), probability, selection.log_proba
    )
