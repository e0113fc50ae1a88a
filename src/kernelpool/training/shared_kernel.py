"""Training of shared-kernel networks: settings and rows in, fitted parameters out."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..arrays import match_array, to_numpy
from ..em import Fit, Outcome, Stop, best_of, em
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Gaussian, Kernels, NaturalParams
from ..networks.hierarchical import split
from ..networks.learned_sharing import Learned, LearnedSharing, init_sharing
from ..networks.shared_kernel import Params, SharedKernel, sharing_table
from ..penalties import Anchor, Conjugate, NoPenalty, Penalty, WordPrior
from ..rows import Block, Rows, as_rows, max_abs_value, one_blas_thread
from ..squarem import Squarem
from ..starts import METHODS, ClassSample, apportion, opened, placed, sample_rows, uniform_mixing
from .config import FitConfig, KernelConfig, PenaltyConfig, SharedKernelConfig, is_learned
from .frames import family_for, frame_of, frame_of_table, kernels_of
from .monitor import FitMonitor, OnSweep
from .prepare import (
    TrainingData,
    check_columns,
    check_positive,
    check_shape,
    class_prior_of,
    feature_name,
    label_name,
)

DEFAULT_PER_CLASS = 5
"""Kernels a class when `n_kernels` is None, fewer where a class has few distinct rows:"""

DEFAULT_ROWS = 10
"""of kernels with a matrix of their own, one for this many times d + 1; of others, one for five."""

SETTLING = 3
"""Sweeps that a moved kernel is given before it is judged."""


@dataclass(frozen=True)
class FittedNetwork:
    """A trained network in the units of the data."""

    means: np.ndarray
    """(M, d)."""
    covariances: np.ndarray
    mixing: np.ndarray
    """(M, K)."""
    owners: np.ndarray
    """Codes of classes, (M,)."""
    sharing: np.ndarray
    """The table under which it was trained, (M, K); a learned one as it came out."""
    classes: np.ndarray
    class_prior: np.ndarray
    objective: float
    history: np.ndarray
    fit: Fit[Params]
    """The run that it comes from, in the frame of the training."""
    n_kernels_asked: int
    """Kernels at the start."""
    covariance_type: str
    """Of `covariances`: spherical kernels of standardized features are diagonal in the units of the data."""
    starved: str | None = None
    """What is to be said of kernels that were dropped because they lost their rows."""
    parents: np.ndarray | None = None
    """The shared kernel that each was split from, (M,); None if nothing was split."""
    probability: np.ndarray | None = None
    """Of words, (M, W); None where there are none."""


def fit_shared_kernel(
    data: TrainingData,
    config: SharedKernelConfig,
    monitor: FitMonitor | None = None,
) -> FittedNetwork:
    """The best of the starts, split by class if the settings say so."""
    starts = Starts(data, config)
    sharing = starts.sharing_table(config.sharing)
    monitor = FitMonitor("", max_iter=config.fit.max_iter) if monitor is None else monitor
    with monitor.fitting(
        starts.n_starts + (config.split_anchor is not None), **starts.training.described()
    ):
        runs = _runs(starts, [config], monitor)[0]
        if config.split_anchor is None or runs[-1].outcome is Outcome.INTERRUPTED:
            return _network(starts, best_of(runs), sharing, starts.owners)
        with monitor.start(starts.n_starts) as on_sweep:
            return _split_by_class(starts, best_of(runs), sharing, config.split_anchor, on_sweep)


def fit_from_common_starts(
    data: TrainingData, configs: Sequence[SharedKernelConfig], monitor: FitMonitor | None = None
) -> list[FittedNetwork]:
    """One network for each of the settings, which may differ in their number of kernels, sharing and penalty.

    Those of one number of kernels come from the same starts. An interrupted fit returns the networks that were begun.
    """
    groups = [
        list(group) for _, group in groupby(configs, key=lambda config: config.start.n_kernels)
    ]
    starts = [Starts(data, group[0]) for group in groups]
    n_starts = sum(start.n_starts * len(group) for start, group in zip(starts, groups, strict=True))
    monitor = FitMonitor("", max_iter=configs[0].fit.max_iter) if monitor is None else monitor
    networks: list[FittedNetwork] = []
    with monitor.fitting(n_starts, **starts[0].training.described()):
        n_before = 0
        for start, group in zip(starts, groups, strict=True):
            runs = _runs(start, group, monitor, n_before)
            n_before += sum(map(len, runs))
            networks += [
                _network(
                    start.penalized(config.penalty.strength),
                    best_of(mine),
                    start.sharing_table(config.sharing),
                    start.owners,
                )
                for config, mine in zip(group, runs, strict=True)
                if mine
            ]
            if any(run.outcome is Outcome.INTERRUPTED for mine in runs for run in mine):
                break
    return networks


def _runs(
    starts: "Starts", configs: Sequence[SharedKernelConfig], monitor: FitMonitor, n_before: int = 0
) -> list[list[Fit[Params]]]:
    """EM from every start for each of the settings; fewer runs if interrupted."""
    runs: list[list[Fit[Params]]] = [[] for _ in configs]
    for place in starts.places():
        for config, mine in zip(configs, runs, strict=True):
            with monitor.start(n_before + sum(map(len, runs))) as on_sweep:
                mine.append(starts.run(place, config, on_sweep))
            if mine[-1].outcome is Outcome.INTERRUPTED:
                return runs
    return runs


def _network(
    starts: "Starts",
    fit: Fit[Params],
    sharing: np.ndarray,
    owners: np.ndarray,
    parents: np.ndarray | None = None,
) -> FittedNetwork:
    """The result in the units of the data, without the kernels that starved."""
    training, params = starts.training, fit.params
    starved = training.starved(params)
    sharing = to_numpy(params.sharing) if isinstance(params, Learned) else sharing
    if starved:
        params = training.without(params, starved)
    return FittedNetwork(
        *training.in_data_units(params),
        owners=np.delete(owners, starved),
        sharing=np.delete(sharing, starved, axis=0),
        classes=training.data.classes,
        class_prior=training.class_prior,
        objective=fit.objective - training.log_volume,
        history=np.asarray(fit.history) - training.log_volume,
        fit=fit,
        n_kernels_asked=len(starts.owners),
        covariance_type=training.type_in_data_units,
        starved=_starved_message(starved, owners, training.data.classes) if starved else None,
        parents=parents,
        probability=training.probability(params),
    )


def _starved_message(starved: list[int], owners: np.ndarray, classes: np.ndarray) -> str:
    named = ", ".join(f"{j} (class {label_name(classes[owners[j]])})" for j in starved[:5]) + (
        ", ..." if len(starved) > 5 else ""
    )
    return (
        f"{len(starved)} of {len(owners)} kernels lost all their rows and were dropped: {named}. "
        f"Use fewer kernels than {len(owners)}, or init='kmeans'; starving='keep' leaves them in place."
    )


# -- one data set and one kernel family -----------------------------------------------------------------------------


class MixtureTraining:
    """One data set and one kernel family, on which any number of networks may be trained."""

    def __init__(
        self,
        data: TrainingData,
        kernel: KernelConfig,
        fit: FitConfig,
        *,
        class_prior: np.ndarray,
        penalty: PenaltyConfig | None = None,
    ) -> None:
        family = FAMILIES[kernel.covariance_type]
        if data.levels is None:
            self.frame, variance = frame_of(family, data.mean, data.variance, kernel.is_stretched)
        else:
            self.frame, variance = frame_of_table(
                family, data.mean, data.variance, data.levels, kernel.is_stretched
            )
        self.is_stretched, self.type_in_data_units = kernel.is_stretched, kernel.type_in_data_units
        d, n_classes = len(data.mean), len(data.classes)
        floor = kernel.floor * variance
        self.kernel: Any = family_for(
            kernel.covariance_type, match_array(floor, like=data.rows.backend), data.levels
        )
        self.host_kernel: Any = family_for(kernel.covariance_type, floor, data.levels)
        self.data, self.variance, self.class_prior = data, variance, class_prior
        self.kernel_prior, self.accelerated, self.starving = (
            kernel.prior,
            fit.accelerated,
            fit.starving,
        )
        self.overlap = PenaltyConfig() if penalty is None else penalty
        # scratch of a row: features, indicators and one number a kernel; the number of kernels is not known yet
        self._width = self.host_kernel.n_features(d) + n_classes + 1
        self.rows = data.rows.framed(self.frame, self._width + 32)
        # the objective of float32 rows is itself no better than float32
        eps = max(Stop.eps, 8 * data.rows.eps)
        # kernels a millionth of a millionth wide: their log-densities are no better than this
        noise = min(8 * np.finfo(np.float64).eps / kernel.floor, 1e-2) if kernel.floor > 0 else 0.0
        self.stop = Stop(
            fit.max_iter, fit.tol, monotone=self.overlap.strength == 0, eps=eps, noise=noise
        )

    @property
    def log_volume(self) -> float:
        """Of an average row: an objective in the units of the data is less by this."""
        return self.data.log_volume(self.frame)

    def penalized(self, strength: float) -> "MixtureTraining":
        """The same training under another strength of the overlap penalty."""
        if strength == self.overlap.strength:
            return self
        other = copy(self)
        other.overlap = replace(self.overlap, strength=strength)
        other.stop = replace(self.stop, monotone=strength == 0)
        return other

    # -- starts -----------------------------------------------------------------------------------------------------

    def samples(self, seed: int) -> list[ClassSample]:
        """Rows of each class from which starts are made."""
        return sample_rows(self.rows, len(self.data.classes), seed)

    def counts(self, n_kernels: Any, samples: list[ClassSample]) -> list[int]:
        """Kernels of each class."""
        most, classes = [len(sample.x) for sample in samples], self.data.classes
        if n_kernels is None:
            d, n_numbers = len(self.data.mean), self.host_kernel.n_parameters
            many = (
                n_numbers(2, d) - n_numbers(1, d) > 2 * d
            )  # more than a mean and a width along each feature
            each = DEFAULT_ROWS * (d + 1) if many else 5
            return [min(DEFAULT_PER_CLASS, max(1, n // each)) if n else 0 for n in most]
        if isinstance(n_kernels, int | np.integer):
            if n_kernels > self.data.n_rows:
                raise KernelpoolError(
                    f"n_kernels={n_kernels} is more than the {self.data.n_rows:.0f} rows of X. "
                    f"Use at most as many kernels as rows."
                )
            return apportion(int(n_kernels), most)
        counts = [int(count) for count in n_kernels]
        if counts != list(n_kernels) or min(counts, default=0) < 0 or sum(counts) < 1:
            raise KernelpoolError(
                f"n_kernels must be a whole number for each class, none negative and not all zero; got {list(n_kernels)}."
            )
        if len(counts) != len(classes):
            raise KernelpoolError(
                f"n_kernels has {len(counts)} entries for {len(classes)} classes; give one for each class."
            )
        for name, count, n in zip(classes, counts, most, strict=True):
            if count > n and count > 1:
                raise KernelpoolError(
                    f"n_kernels asks for {count} kernels in class {label_name(name)}, which has {n} distinct rows. "
                    f"Use at most {n}."
                )
        return counts

    def place(
        self, method: str, samples: list[ClassSample], counts: list[int], rng: np.random.Generator
    ) -> Kernels:
        """First kernels, in the frame."""
        return placed(self.host_kernel, METHODS[method], samples, counts, rng)

    def start(self, kernels: Kernels, mixing: np.ndarray) -> Params:
        """Parameters of a start, where the rows live."""
        return Params(
            *(
                match_array(part, like=self.rows.backend)
                for part in (kernels, mixing, self.class_prior)
            )
        )

    def separate_mixtures(self, kernels: Kernels, owners: np.ndarray) -> Params:
        """`init="mixtures"`: a mixture for each class by itself, for the sharing to be opened afterwards."""
        alone = sharing_table(owners, 0.0, len(self.data.classes))
        network = self._network(alone)
        rows = self._rows_for(network)
        with one_blas_thread():
            return em(
                lambda params: network.sweep(rows, params),
                self.start(kernels, uniform_mixing(alone)),
                replace(self.stop, tol=max(self.stop.tol, 1e-4)),
                accelerator=Squarem(network.coordinates, network.at),
            ).params

    def opened(self, params: Params, sharing: np.ndarray) -> Params:
        """Separate mixtures whose classes may use each other's kernels."""
        mixing = to_numpy(params.mixing)
        if not (sharing * (mixing == 0)).any():
            return params
        return Params(
            params.kernels,
            match_array(opened(mixing, sharing), like=self.rows.backend),
            params.class_prior,
        )

    # -- training ---------------------------------------------------------------------------------------------------

    def run(
        self,
        start: Params,
        sharing: np.ndarray,
        owners: np.ndarray,
        on_sweep: OnSweep | None = None,
        penalty: Penalty | None = None,
    ) -> Fit[Params]:
        """EM from `start`, under `penalty` beside the one of the settings; a `Learned` start has its sharing learned."""
        network: Any = self._network(sharing, penalty)
        if isinstance(start, Learned):
            network = LearnedSharing(self.kernel, network.penalty)
        rows = self._rows_for(network)
        with one_blas_thread():
            return em(
                lambda params: network.sweep(rows, params),
                start,
                self.stop,
                accelerator=Squarem(network.coordinates, network.at) if self.accelerated else None,
                repair=self._mover(network, rows, owners) if self.starving == "move" else None,
                on_sweep=on_sweep,
            )

    @cached_property
    def _by_class(self) -> Rows:
        return self.rows.by_class()

    def _rows_for(self, network: SharedKernel | LearnedSharing) -> Rows:
        return self._by_class if network.takes_classes_apart else self.rows

    def _network(self, sharing: np.ndarray, penalty: Penalty | None = None) -> SharedKernel:
        own = self._penalty(sharing)
        table = match_array(sharing, like=self.rows.backend)
        return SharedKernel(self.kernel, table, own if penalty is None else own + penalty)

    def _penalty(self, sharing: np.ndarray) -> Penalty:
        penalty: Penalty = NoPenalty() if self.data.levels is None else WordPrior()
        if self.kernel_prior == "conjugate":
            # of a constant feature nothing is expected: a width there would be the narrower the more rows a kernel has
            expected = self.variance * (self.data.variance > 0)
            numbers = (
                expected if self.data.levels is None else expected[np.array(self.data.levels) == 0]
            )
            penalty = penalty + Conjugate(numbers, len(sharing)) if len(numbers) else penalty
        if self.overlap.strength != 0:
            penalty = penalty + self.overlap.in_raw_units(self.data.weight, sharing)
        return penalty

    def _class_weight(self) -> Any:
        weight = self.data.class_weight + self.data.unlabeled_weight * self.class_prior
        return match_array(weight, like=self.rows.backend)

    def _mover(
        self, network: Any, rows: Rows, owners: np.ndarray
    ) -> Callable[[Params], Params | None]:
        class_weight, row_weight = self._class_weight(), self.data.weight / self.data.n_rows

        def move(params: Params) -> Params | None:
            starving = network.starving(params, class_weight, row_weight)
            # a class without weight has no row that a kernel could be moved to
            starving = [j for j in starving if float(class_weight[int(owners[j])]) > 0]
            if not starving:
                return None
            moved = network.moved(rows, params, starving, owners, class_weight)
            for _ in range(SETTLING):
                moved, _ = network.sweep(rows, moved)
            return moved

        return move

    # -- what has been trained --------------------------------------------------------------------------------------

    def starved(self, params: Params) -> list[int]:
        """Kernels that lost their rows and are to be dropped."""
        if self.starving == "keep":
            return []
        row_weight = self.data.weight / self.data.n_rows
        found = _network_ignoring_sharing(self.kernel, params).starving(
            params, self._class_weight(), row_weight
        )
        left = np.delete(to_numpy(params.mixing), found, axis=0).sum(axis=0)
        last = to_numpy(params.mixing)[:, left == 0].argmax(
            axis=0
        )  # what a class without weight has left, it keeps
        return [j for j in found if j not in last]

    def without(self, params: Params, dropped: list[int]) -> Params:
        """The network less some kernels."""
        return _network_ignoring_sharing(self.kernel, params).without(params, dropped)

    def in_data_units(self, params: Params) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, covariances and mixing in the units of the data, as NumPy arrays."""
        inside = match_array(params.kernels, like=np.empty(0))
        kernels = (self.host_kernel.stretched if self.is_stretched else self.host_kernel.out_of)(
            inside, self.frame
        )
        return kernels.mean, kernels.covariance, np.array(to_numpy(params.mixing))

    def in_frame(self, kernels: Kernels) -> Kernels:
        """Kernels given in the units of the data, in the frame."""
        return (self.host_kernel.unstretched if self.is_stretched else self.host_kernel.into)(
            kernels, self.frame
        )  # type: ignore[no-any-return]

    def probability(self, params: Params) -> np.ndarray | None:
        """Of words, (M, W), as a NumPy array; None where there are none."""
        return None if self.data.levels is None else np.array(to_numpy(params.kernels.probability))

    def described(self) -> dict[str, Any]:
        """What `FitMonitor.fitting` must know of it."""

        def parameters(params: Params) -> dict[str, Any]:
            return dict(
                zip(("means_", "covariances_", "mixing_"), self.in_data_units(params), strict=True)
            )

        constants = {
            "classes_": self.data.classes,
            "class_prior_": self.class_prior,
            "covariance_type_": self.type_in_data_units,
        }
        return {"parameters": parameters, "constants": constants, "log_volume": self.log_volume}

    def log_density(self, params: Params, x: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """log p(x|C_k) of other rows, given in NumPy and in the units of the data, (n, K).

        It is the density in the frame: less `frame.log_volume` it is that in the units of the data.
        """
        natural_params = self.host_kernel.natural_params(params.kernels, self.rows.eps)
        network = SharedKernel(self.host_kernel, np.ones_like(params.mixing))
        rows = as_rows(x, n_jobs=n_jobs).framed(self.frame, sum(natural_params.weight.shape))
        in_frame = rows.each(_log_density, network, natural_params, params.mixing)
        return np.asarray(to_numpy(in_frame))


def _log_density(
    block: Block, network: SharedKernel, natural_params: NaturalParams, mixing: Any
) -> Any:
    return network.log_density(block, natural_params, mixing)


def _network_ignoring_sharing(kernel: Gaussian, params: Params) -> SharedKernel:
    """A network for what does not depend on sharing."""
    return SharedKernel(kernel, params.mixing)


# -- starts ---------------------------------------------------------------------------------------------------------


class Starts:
    """What follows from the settings and the data: the training, the owners of kernels, the places to start from."""

    def __init__(self, data: TrainingData, config: SharedKernelConfig) -> None:
        self.data, self.config = data, config
        self.training = MixtureTraining(
            data,
            config.kernel,
            config.fit,
            class_prior=class_prior_of(config.class_prior, data),
            penalty=config.penalty,
        )
        self._rng = np.random.default_rng(config.fit.seed)
        self._means, self._covariances = self._given_kernels()
        self._samples: list[ClassSample] = []
        self._counts: list[int] = []
        self.owners = self._owners()
        self.n_starts = 1 if self._covariances is not None else config.start.n_init

    @property
    def classes(self) -> np.ndarray:
        return self.data.classes

    def penalized(self, strength: float) -> "Starts":
        """The same starts, for another strength of the overlap penalty."""
        other = copy(self)
        other.training = self.training.penalized(strength)
        return other

    def run(
        self, place: Kernels | Params, config: SharedKernelConfig, on_sweep: OnSweep | None = None
    ) -> Fit[Params]:
        """EM from one place, under the sharing and the penalty of `config`."""
        sharing = self.sharing_table(config.sharing)
        start = self.start(place, sharing, learned=is_learned(config.sharing))
        return self.training.penalized(config.penalty.strength).run(
            start, sharing, self.owners, on_sweep
        )

    def sharing_table(self, sharing: Any) -> np.ndarray:
        """The table of sharing, (M, K); all open where it is to be learned."""
        if is_learned(sharing):
            return np.ones((len(self.owners), len(self.classes)))
        if not hasattr(sharing, "__len__"):
            return self._usable(sharing_table(self.owners, float(sharing), len(self.classes)))
        table = check_array(sharing, dtype=np.float64, input_name="sharing")
        check_shape("sharing", table, (len(self.owners), len(self.classes)))
        if table.min() < 0 or table.max() > 1:
            raise KernelpoolError(
                f"sharing must lie in [0, 1]; got values from {table.min():.3g} to {table.max():.3g}."
            )
        return self._usable(table)

    def _usable(self, table: np.ndarray) -> np.ndarray:
        usable = (table > 0).any(axis=0)
        if not usable.all():
            name = label_name(self.classes[int(np.argmin(usable))])
            raise KernelpoolError(
                f"sharing leaves class {name} without a kernel: it owns none and may use none. "
                f"Raise sharing above 0, or give the class a kernel in n_kernels or owners."
            )
        self._check_observed(table)
        return np.asarray(table)

    def _check_observed(self, table: np.ndarray) -> None:
        """Every feature is known in some row that each kernel may account for."""
        observed = self.data.observed
        if observed is None:
            return
        seen = (table > 0) @ observed[1:] + observed[0]  # (M, d)
        if (seen > 0).all() or not (self.data.class_weight[(table > 0).any(axis=0)] > 0).all():
            return
        feature = int(np.argmin((seen > 0).all(axis=0)))
        j = int(np.argmin(seen[:, feature] > 0))
        raise KernelpoolError(
            f"{feature_name(feature, self.data.columns)} of X is missing in every row of class "
            f"{label_name(self.classes[self.owners[j]])}, whose kernels no class with that feature may use: its density there "
            f"is unknown. Raise sharing above 0, or leave the feature out."
        )

    def places(self) -> Iterator[Kernels | Params]:
        """Where to start, one place after the other: kernels, or separate mixtures whose sharing is to be opened."""
        start = self.config.start
        for _ in range(self.n_starts):
            kernels = self._kernels()
            if start.init == "mixtures" and start.previous is None and start.mixing is None:
                yield self.training.separate_mixtures(kernels, self.owners)
            else:
                yield kernels

    def start(
        self, place: Kernels | Params, sharing: np.ndarray, *, learned: bool = False
    ) -> Params:
        """First parameters at `place` for one table of sharing, or with one that is to be learned."""
        if isinstance(place, Params):
            start = self.training.opened(place, sharing)
        else:
            mixing = self._given_mixing(sharing)
            start = self.training.start(
                place, uniform_mixing(sharing) if mixing is None else mixing
            )
        return init_sharing(start) if learned else start

    def _kernels(self) -> Kernels:
        """Kernels of one start, in the frame: those given, the others placed."""
        training, means, covariances = self.training, self._means, self._covariances
        if means is not None and covariances is not None:
            return training.in_frame(kernels_of(means, covariances, self._given_probability()))
        method = "random" if self.config.start.init == "random" else "kmeans"
        placed = training.place(method, self._samples, self._counts, self._rng)
        order = np.argsort(np.argsort(self.owners, kind="stable"), kind="stable")
        placed = training.host_kernel.take(placed, order)
        frame = training.frame
        mean = placed.mean if means is None else (means - frame.origin) / frame.unit
        farthest = float(np.abs(mean).max(initial=0.0))
        if not farthest <= max_abs_value(training.rows.eps):
            raise KernelpoolError(
                f"means_init must lie where rows can be told apart; one lies {farthest:.0e} deviations from their mean."
            )
        if covariances is not None:
            given = training.in_frame(
                replace(placed, mean=training.frame.outside(mean), covariance=covariances)
            )
            return replace(placed, mean=mean, covariance=given.covariance)
        return replace(placed, mean=mean)

    def _given_probability(self) -> np.ndarray | None:
        start = self.config.start
        return start.probability if start.previous is None else start.previous.probability

    def _given_kernels(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        start, family, d = (
            self.config.start,
            self.config.kernel.type_in_data_units,
            self.data.rows.n_features,
        )
        if start.previous is not None:
            return start.previous.means, start.previous.covariances
        means, covariances, n = start.means, start.covariances, start.n_total
        if means is not None:
            means = check_array(means, dtype=np.float64, input_name="means_init")
            check_shape("means_init", means, (len(means) if n is None else n, d))
            n = len(means)
        if covariances is not None:
            covariances = check_array(
                covariances,
                dtype=np.float64,
                ensure_2d=False,
                allow_nd=True,
                input_name="covariances_init",
            )
            if n is not None:
                check_shape("covariances_init", covariances, FAMILIES[family].shape(n, d))
            check_positive("covariances_init", covariances, family)
        return means, covariances

    def _given_mixing(self, sharing: np.ndarray) -> np.ndarray | None:
        start = self.config.start
        if start.previous is not None:
            mixing = np.asarray(start.previous.mixing)
        elif start.mixing is None:
            return None
        else:
            mixing = check_array(start.mixing, dtype=np.float64, input_name="mixing_init")
        check_shape("mixing_init", mixing, sharing.shape)
        check_columns("mixing_init", mixing)
        mixing = mixing * (sharing > 0)
        if not (mixing.sum(axis=0) > 0).all():
            raise KernelpoolError(
                "mixing_init gives a class no weight on any kernel that sharing allows it to use."
            )
        return np.asarray(mixing / mixing.sum(axis=0))

    def _owners(self) -> np.ndarray:
        """The class code of each kernel; draws the sample that starts need on the way."""
        start = self.config.start
        if start.previous is not None:
            self._check_previous()
            return np.searchsorted(self.classes, start.previous.owners)
        n_kernels = start.n_total if self._means is None else len(self._means)
        if start.owners is not None:
            owners = self._given_owners(n_kernels)
            self._counts = np.bincount(owners, minlength=len(self.classes)).tolist()
            if self._means is None or self._covariances is None:
                self._samples = self.training.samples(int(self._rng.integers(2**31)))
            return owners
        self._samples = self.training.samples(int(self._rng.integers(2**31)))
        given = self._means is not None or self._covariances is not None
        wanted = n_kernels if given and not hasattr(start.n_kernels, "__len__") else start.n_kernels
        self._counts = self.training.counts(wanted, self._samples)
        return np.repeat(np.arange(len(self._counts)), self._counts)

    def _check_previous(self) -> None:
        """The previous fit must be one that this one can go on from."""
        before, d = self.config.start.previous, self.data.rows.n_features
        assert before is not None
        shape = FAMILIES[self.config.kernel.type_in_data_units].shape(len(before.means), d)
        if not np.array_equal(before.classes, self.classes) or before.means.shape[1] != d:
            changed = "classes and features"
        elif before.covariances.shape != shape:
            changed = "covariance_type"
        elif self.config.start.n_total not in (None, before.n_kernels):
            changed = "n_kernels"
        else:
            return
        raise KernelpoolError(
            f"warm_start needs the {changed} of the previous fit; set warm_start=False to start anew."
        )

    def _given_owners(self, n_kernels: int | None) -> np.ndarray:
        labels = np.asarray(self.config.start.owners)
        if labels.ndim != 1 or (n_kernels is not None and len(labels) != n_kernels):
            raise KernelpoolError(
                f"owners must have shape ({n_kernels or 'n_kernels'},); got {labels.shape}."
            )
        unknown = sorted(set(labels.tolist()) - set(self.classes.tolist()), key=str)
        if unknown:
            raise KernelpoolError(
                f"owners must be labels of y, {self.classes.tolist()}; got {unknown[0]!r}."
            )
        return np.searchsorted(self.classes, labels)


# -- split_by_class -------------------------------------------------------------------------------------------------


def _split_by_class(
    starts: Starts, shared: Fit[Params], sharing: np.ndarray, anchor: float, on_sweep: OnSweep
) -> FittedNetwork:
    """`shared` split into one kernel for each class, and refined; `anchor` rows' worth of belief hold each near its origin."""
    starts = starts.penalized(0.0)
    training = starts.training = copy(starts.training)
    # a child that were moved would leave its kernel
    training.starving = "keep" if training.starving == "keep" else "drop"
    table = (
        shared.params.sharing
        if isinstance(shared.params, Learned)
        else match_array(sharing, like=training.rows.backend)
    )
    with one_blas_thread():
        least = min(
            1.0, training.data.weight / training.data.n_rows
        )  # a row, also where all rows weigh less than one
        children = split(training.kernel, training.rows, shared.params, table, least)
    owners, parents = np.asarray(children.owner), np.asarray(children.parent)
    alone = sharing_table(owners, 0.0, len(training.data.classes))
    refined = _refined(training, children.params, alone, owners, anchor, shared, on_sweep)
    starved = training.starved(refined.params)
    if starved:  # a child that its siblings have made needless; nobody asked for it by number, so nobody is warned
        refined = replace(refined, params=training.without(refined.params, starved))
        alone, owners, parents = (np.delete(a, starved, axis=0) for a in (alone, owners, parents))
    return _network(starts, _joined(shared, refined), alone, owners, parents)


def _refined(
    training: MixtureTraining,
    children: Params,
    alone: np.ndarray,
    owners: np.ndarray,
    anchor: float,
    shared: Fit[Params],
    on_sweep: OnSweep,
) -> Fit[Params]:
    """EM from the children; none if they are to stay as they are, or if the fit was told to stop."""
    if np.isfinite(anchor) and shared.outcome is not Outcome.STOPPED:
        return training.run(
            children, alone, owners, on_sweep, Anchor(anchor, children.kernels) if anchor else None
        )
    _, objective = training._network(alone).sweep(training.rows, children)
    return Fit(children, objective, [objective], change=shared.change, outcome=shared.outcome)


def _joined(shared: Fit[Params], refined: Fit[Params]) -> Fit[Params]:
    """The refined fit, which cost the sweeps of both and is finished if both are."""
    refined = replace(refined, n_sweeps=shared.n_sweeps + refined.n_sweeps)
    if shared.outcome in (Outcome.CONVERGED, Outcome.STOPPED):
        return refined
    return replace(refined, outcome=shared.outcome, change=shared.change)
