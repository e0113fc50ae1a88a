"""How a shared-kernel network is trained on given data; the estimators set it up and keep what it returns."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..acceleration import Squarem
from ..arrays import match_array, to_numpy
from ..em import Fit, Stop, em
from ..errors import KernelpoolError, StarvedKernelWarning, warn
from ..kernels import FAMILIES, Gaussian, Kernels
from ..networks.learned_sharing import Learned, LearnedSharing
from ..networks.shared_kernel import Params, SharedKernel, sharing_table
from ..penalties import DISTANCES, Conjugate, NoPenalty, Overlap, Penalty
from ..rows import Rows, one_blas_thread
from ..starts import METHODS, ClassSample, apportion, opened, placed, sample_rows, uniform_mixing
from ..training.validation import TrainingData, frame_of, label_name

DEFAULT_PER_CLASS = 5
"""Kernels a class when `n_kernels` is None, fewer where a class has few distinct rows."""

SETTLING = 3
"""Sweeps that a moved kernel is given before it is judged."""


@dataclass(frozen=True)
class OverlapSetting:
    """The overlap penalty as a user asks for it."""

    strength: float
    units: str
    distance: str

    def scaled(self, weight: float, sharing: np.ndarray) -> Overlap:
        """The penalty in raw units: the paper's tables count in N / (K M)."""
        n_kernels, n_classes = sharing.shape
        unit = weight / (n_kernels * n_classes) if self.units == "paper" else 1.0
        return Overlap(self.strength * unit, DISTANCES[self.distance]())


@dataclass
class Trained:
    """A trained network in the units of the data."""

    means: np.ndarray
    covariances: np.ndarray
    mixing: np.ndarray
    owners: np.ndarray
    sharing: np.ndarray
    """The table under which it was trained, (M, K); a learned one as it came out."""
    fit: Fit[Params]
    objective: float
    history: np.ndarray


class Training:
    """One data set, one kernel family, one set of owners; any number of networks may be trained on them."""

    def __init__(
        self,
        data: TrainingData,
        *,
        covariance_type: str,
        covariance_floor: float,
        kernel_prior: str | None,
        overlap: OverlapSetting | None = None,
        class_prior: np.ndarray,
        stop: Stop,
        accelerated: bool,
        starving: str,
    ) -> None:
        family = FAMILIES[covariance_type]
        self.frame, variance = frame_of(family, data.mean, data.variance)
        d, n_classes = len(data.mean), len(data.classes)
        self.kernel: Gaussian = family(match_array(covariance_floor * variance, like=data.rows.home))
        self.host_kernel: Gaussian = family(covariance_floor * variance)
        self.data, self.variance, self.class_prior = data, variance, class_prior
        self.kernel_prior, self.overlap, self.accelerated, self.starving = kernel_prior, overlap, accelerated, starving
        # scratch of a row: features, indicators and one number a kernel; the number of kernels is not known yet
        self._width = len(self.host_kernel.features(np.zeros((1, d)))) + n_classes + 1
        self.rows = data.rows.framed(self.frame, self._width + 32)
        # the objective of float32 rows is itself no better than float32
        eps = max(stop.eps, 8 * data.rows.eps)
        self.stop = replace(stop, eps=eps, monotone=overlap is None or overlap.strength == 0)

    def penalized(self, strength: float) -> "Training":
        """The same training under another strength of the overlap penalty."""
        if self.overlap is None or strength == self.overlap.strength:
            return self
        other = copy(self)
        other.overlap = replace(self.overlap, strength=strength)
        other.stop = replace(self.stop, monotone=strength == 0)
        return other

    # -- starts -----------------------------------------------------------------------------------------------------

    def samples(self, seed: int) -> list[ClassSample]:
        """Rows of each class from which starts are made."""
        return sample_rows(self.rows, len(self.data.classes), seed)

    def counts(self, n_kernels: int | Sequence[int] | None, samples: list[ClassSample]) -> list[int]:
        """Kernels of each class."""
        most, classes = [len(sample.x) for sample in samples], self.data.classes
        if n_kernels is None:
            return [min(DEFAULT_PER_CLASS, max(1, n // 5)) if n else 0 for n in most]
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
            raise KernelpoolError(f"n_kernels has {len(counts)} entries for {len(classes)} classes; give one for each class.")
        for name, count, n in zip(classes, counts, most, strict=True):
            if count > n and count > 1:
                raise KernelpoolError(
                    f"n_kernels asks for {count} kernels in class {label_name(name)}, which has {n} distinct rows. "
                    f"Use at most {n}."
                )
        return counts

    def owners(self, counts: list[int]) -> np.ndarray:
        """The class of each kernel."""
        return np.repeat(np.arange(len(counts)), counts)

    def place(self, method: str, samples: list[ClassSample], counts: list[int], rng: np.random.Generator) -> Kernels:
        """First kernels, in the frame."""
        return placed(self.host_kernel, METHODS[method], samples, counts, rng)

    def start(self, kernels: Kernels, mixing: np.ndarray) -> Params:
        """Parameters of a start, where the rows live."""
        return Params(*(match_array(part, like=self.rows.home) for part in (kernels, mixing, self.class_prior)))

    def separate(self, kernels: Kernels, owners: np.ndarray) -> Params:
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
        return Params(params.kernels, match_array(opened(mixing, sharing), like=self.rows.home), params.class_prior)

    # -- training ---------------------------------------------------------------------------------------------------

    def run(
        self,
        start: Params,
        sharing: np.ndarray,
        owners: np.ndarray,
        on_sweep: Callable[[Fit[Params]], bool] | None = None,
        penalty: Penalty | None = None,
    ) -> Fit[Params]:
        """EM from `start`, under `penalty` beside the estimator's own; a `Learned` start has its sharing learned."""
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
        table = match_array(sharing, like=self.rows.home)
        return SharedKernel(self.kernel, table, own if penalty is None else own + penalty)

    def _penalty(self, sharing: np.ndarray) -> Penalty:
        penalty: Penalty = NoPenalty()
        if self.kernel_prior == "conjugate":
            penalty = penalty + Conjugate(self.variance, len(sharing))
        if self.overlap is not None and self.overlap.strength != 0:
            penalty = penalty + self.overlap.scaled(self.data.weight, sharing)
        return penalty

    def _class_weight(self) -> Any:
        weight = self.data.class_weight + self.data.unlabeled_weight * self.class_prior
        return match_array(weight, like=self.rows.home)

    def _mover(self, network: Any, rows: Rows, owners: np.ndarray) -> Callable[[Params], Params | None]:
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

    def trained(self, fit: Fit[Params], sharing: np.ndarray, owners: np.ndarray, *, told: bool = True) -> Trained:
        """The result in the units of the data, without the kernels that starved, of which the user is `told`."""
        params, starved = fit.params, self.starved(fit.params)
        sharing = to_numpy(params.sharing) if isinstance(params, Learned) else sharing
        if starved:
            params = self.without(params, starved)
            if told:
                warn(_starved_message(starved, owners, self.data.classes), StarvedKernelWarning)
        history = np.asarray(fit.history) - self.frame.log_volume
        objective = fit.objective - self.frame.log_volume
        sharing = np.delete(sharing, starved, axis=0)
        return Trained(*self.outside(params), np.delete(owners, starved), sharing, fit, objective, history)

    def starved(self, params: Params) -> list[int]:
        """Kernels that lost their rows and are to be dropped."""
        if self.starving == "keep":
            return []
        row_weight = self.data.weight / self.data.n_rows
        found = _network_ignoring_sharing(self.kernel, params).starving(params, self._class_weight(), row_weight)
        left = np.delete(to_numpy(params.mixing), found, axis=0).sum(axis=0)
        last = to_numpy(params.mixing)[:, left == 0].argmax(axis=0)  # what a class without weight has left, it keeps
        return [j for j in found if j not in last]

    def without(self, params: Params, dropped: list[int]) -> Params:
        """The network less some kernels."""
        return _network_ignoring_sharing(self.kernel, params).without(params, dropped)

    def described(self) -> dict[str, Any]:
        """What a monitor must know of it."""

        def parameters(params: Params) -> dict[str, Any]:
            return dict(zip(("means_", "covariances_", "mixing_"), self.outside(params), strict=True))

        constants = {
            "classes_": self.data.classes,
            "class_prior_": self.class_prior,
            "covariance_type_": self.kernel.name,
        }
        return {"parameters": parameters, "constants": constants, "log_volume": self.frame.log_volume}

    def outside(self, params: Params) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, covariances and mixing in the units of the data, as NumPy arrays."""
        kernels = Kernels(to_numpy(params.kernels.mean), to_numpy(params.kernels.covariance))
        kernels = self.host_kernel.out_of(kernels, self.frame)
        return kernels.mean, kernels.covariance, np.array(to_numpy(params.mixing))


def _network_ignoring_sharing(kernel: Gaussian, params: Params) -> SharedKernel:
    """A network for what does not depend on sharing."""
    return SharedKernel(kernel, params.mixing)


def _starved_message(starved: list[int], owners: np.ndarray, classes: np.ndarray) -> str:
    named = ", ".join(f"{j} (class {label_name(classes[owners[j]])})" for j in starved[:5]) + (
        ", ..." if len(starved) > 5 else ""
    )
    return (
        f"{len(starved)} of {len(owners)} kernels lost all their rows and were dropped: {named}. "
        f"Use fewer kernels than {len(owners)}, or init='kmeans'; starving='keep' leaves them in place."
    )
