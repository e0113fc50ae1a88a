"""From an estimator's parameters and the data to a training: owners, sharing, starts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from ..em import Stop
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Kernels
from ..networks.learned_sharing import init_sharing
from ..networks.shared_kernel import Params, sharing_table
from ..starts import ClassSample, uniform_mixing
from ..training.validation import (
    TrainingData,
    check_columns,
    check_positive,
    check_shape,
    class_prior_of,
    is_learned,
    label_name,
    total_of,
)
from .training import OverlapSetting, Training


class Setup:
    """What follows from an estimator's parameters and the data: the training, the owners, the starts."""

    def __init__(self, estimator: Any, data: TrainingData) -> None:
        self.estimator, self.data = estimator, data
        self.class_prior = class_prior_of(estimator.class_prior, data)
        self.training = Training(
            data,
            covariance_type=estimator.covariance_type,
            covariance_floor=estimator.covariance_floor,
            kernel_prior=estimator.kernel_prior,
            overlap=_overlap_of(estimator),
            class_prior=self.class_prior,
            stop=Stop(estimator.max_iter, estimator.tol),
            accelerated=estimator.acceleration is not None,
            starving=estimator.starving,
        )
        self.warm = getattr(estimator, "warm_start", False) and hasattr(estimator, "means_")
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
        self._given = self._given_kernels()
        self.samples: list[ClassSample] = []
        self.counts: list[int] = []
        self.owners = self._owners()
        self.n_starts = 1 if self._given is not None and self._given[1] is not None else estimator.n_init

    @property
    def classes(self) -> np.ndarray:
        return self.data.classes

    def sharing(self, sharing: Any) -> np.ndarray:
        """The table of sharing, (M, K); all open where it is to be learned."""
        if is_learned(sharing):
            return np.ones((len(self.owners), len(self.classes)))
        if not hasattr(sharing, "__len__"):
            return self._usable(sharing_table(self.owners, float(sharing), len(self.classes)))
        table = check_array(sharing, dtype=np.float64, input_name="sharing")
        check_shape("sharing", table, (len(self.owners), len(self.classes)))
        if table.min() < 0 or table.max() > 1:
            raise KernelpoolError(f"sharing must lie in [0, 1]; got values from {table.min():.3g} to {table.max():.3g}.")
        return self._usable(table)

    def _usable(self, table: np.ndarray) -> np.ndarray:
        usable = (table > 0).any(axis=0)
        if not usable.all():
            name = label_name(self.classes[int(np.argmin(usable))])
            raise KernelpoolError(
                f"sharing leaves class {name} without a kernel: it owns none and may use none. "
                f"Raise sharing above 0, or give the class a kernel in n_kernels or owners."
            )
        return np.asarray(table)

    def places(self) -> Iterator[Kernels | Params]:
        """Where to start, one place after the other: kernels, or separate mixtures whose sharing is to be opened."""
        for _ in range(self.n_starts):
            kernels = self._kernels()
            given_mixing = self.warm or self.estimator.mixing_init is not None
            if self.estimator.init == "mixtures" and not given_mixing:
                yield self.training.separate(kernels, self.owners)
            else:
                yield kernels

    def start(self, place: Kernels | Params, sharing: np.ndarray, *, learned: bool = False) -> Params:
        """First parameters at `place` for one table of sharing, or with one that is to be learned."""
        if isinstance(place, Params):
            start = self.training.opened(place, sharing)
        else:
            mixing = self._given_mixing(sharing)
            start = self.training.start(place, uniform_mixing(sharing) if mixing is None else mixing)
        return init_sharing(start) if learned else start

    def _kernels(self) -> Kernels:
        """Kernels of one start, in the frame: those given, the others placed."""
        means, covariances = self._given if self._given is not None else (None, None)
        if means is not None and covariances is not None:
            return self.training.host_kernel.into(Kernels(means, covariances), self.training.frame)
        method = "random" if self.estimator.init == "random" else "kmeans"
        placed = self.training.place(method, self.samples, self.counts, self.rng)
        order = np.argsort(np.argsort(self.owners, kind="stable"), kind="stable")
        placed = self.training.host_kernel.take(placed, order)
        frame = self.training.frame
        mean = placed.mean if means is None else (means - frame.origin) / frame.unit
        factor = 1 / np.asarray(frame.unit)
        wide = placed.covariance if covariances is None else self.training.host_kernel.rescaled(covariances, factor)
        return Kernels(mean, wide)

    def _given_kernels(self) -> tuple[np.ndarray | None, np.ndarray | None] | None:
        estimator, d = self.estimator, self.data.rows.n_features
        if self.warm:
            return estimator.means_, estimator.covariances_
        means, covariances = estimator.means_init, estimator.covariances_init
        if means is None and covariances is None:
            return None
        if means is not None:
            means = check_array(means, dtype=np.float64, input_name="means_init")
            n = total_of(estimator.n_kernels)
            check_shape("means_init", means, (len(means) if n is None else n, d))
        if covariances is not None:
            covariances = check_array(
                covariances, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name="covariances_init"
            )
            n = len(means) if means is not None else total_of(estimator.n_kernels)
            if n is not None:
                check_shape("covariances_init", covariances, FAMILIES[estimator.covariance_type].shape(n, d))
            check_positive("covariances_init", covariances, estimator.covariance_type)
        return means, covariances

    def _given_mixing(self, sharing: np.ndarray) -> np.ndarray | None:
        if self.warm:
            mixing = np.asarray(self.estimator.mixing_)
        elif self.estimator.mixing_init is None:
            return None
        else:
            mixing = check_array(self.estimator.mixing_init, dtype=np.float64, input_name="mixing_init")
        check_shape("mixing_init", mixing, sharing.shape)
        check_columns("mixing_init", mixing)
        mixing = mixing * (sharing > 0)
        if not (mixing.sum(axis=0) > 0).all():
            raise KernelpoolError("mixing_init gives a class no weight on any kernel that sharing allows it to use.")
        return np.asarray(mixing / mixing.sum(axis=0))

    def _owners(self) -> np.ndarray:
        """The class code of each kernel; draws the sample that starts need on the way."""
        estimator, given = self.estimator, self._given
        needs_sample = given is None or given[0] is None or given[1] is None
        if self.warm:
            self._check_warm()
            return np.searchsorted(self.classes, estimator.owners_)
        n_kernels = len(given[0]) if given is not None and given[0] is not None else total_of(estimator.n_kernels)
        if estimator.owners is not None:
            owners = self._given_owners(n_kernels)
            self.counts = np.bincount(owners, minlength=len(self.classes)).tolist()
            if needs_sample:
                self.samples = self.training.samples(int(self.rng.integers(2**31)))
            return owners
        self.samples = self.training.samples(int(self.rng.integers(2**31)))
        wanted = n_kernels if given is not None and not hasattr(estimator.n_kernels, "__len__") else estimator.n_kernels
        self.counts = self.training.counts(wanted, self.samples)
        return self.training.owners(self.counts)

    def _check_warm(self) -> None:
        """The previous fit must be one that this one can go on from."""
        before, d = self.estimator, self.data.rows.n_features
        n_kernels = total_of(before.n_kernels)
        shape = FAMILIES[before.covariance_type].shape(len(before.means_), d)
        if not np.array_equal(before.classes_, self.classes) or before.means_.shape[1] != d:
            changed = "classes and features"
        elif before.covariances_.shape != shape:
            changed = "covariance_type"
        elif n_kernels not in (None, before._n_kernels_asked):
            changed = "n_kernels"
        else:
            return
        raise KernelpoolError(f"warm_start needs the {changed} of the previous fit; set warm_start=False to start anew.")

    def _given_owners(self, n_kernels: int | None) -> np.ndarray:
        labels = np.asarray(self.estimator.owners)
        if labels.ndim != 1 or (n_kernels is not None and len(labels) != n_kernels):
            raise KernelpoolError(f"owners must have shape ({n_kernels or 'n_kernels'},); got {labels.shape}.")
        unknown = sorted(set(labels.tolist()) - set(self.classes.tolist()), key=str)
        if unknown:
            raise KernelpoolError(f"owners must be labels of y, {self.classes.tolist()}; got {unknown[0]!r}.")
        return np.searchsorted(self.classes, labels)


def _overlap_of(estimator: Any) -> OverlapSetting | None:
    strength = float(np.ravel(estimator.overlap_penalty)[0])  # an average goes through its others by itself
    return OverlapSetting(strength, estimator.overlap_units, estimator.overlap_distance)
