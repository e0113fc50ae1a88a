"""Training of shared-kernel networks: settings and rows in, fitted parameters out."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from ..arrays import match_array, safe_log, to_numpy
from ..base.monitor import FitMonitor, OnSweep
from ..data.door import TrainingData
from ..data.labels import check_columns, class_prior_for, given_array, label_name
from ..data.scale import feature_name
from ..em import Fit, Outcome, Stop, best_of, em
from ..errors import KernelpoolError, check_choices
from ..kernels import FAMILIES, Kernels, ProductKernels, as_diag, as_spherical, family_for
from ..penalties import Anchor, CategoryPrior, Conjugate, NoPenalty, Overlap, Penalty
from ..records import saved
from ..rows import Rows, RowsInMemory, as_rows, max_abs_value, one_blas_thread
from ..rows.sample import ClassSample, sample_rows
from ..squarem import Squarem
from .by_class import split
from .fitted import ClassDensities, FittedSharedKernel, frame_of
from .learned_sharing import Learned, LearnedSharing, init_sharing
from .network import Params, SharedKernel, sharing_table
from .start import (
    METHODS,
    Start,
    apportion,
    check_degree,
    check_positive,
    opened,
    placed,
    uniform_mixing,
)

T = TypeVar("T")

DEFAULT_PER_CLASS = 5
"""Kernels a class when `n_kernels` is None, fewer where a class has few distinct rows:"""

DEFAULT_ROWS = 10
"""of kernels with a matrix of their own, one for this many times d + 1; of others, one for five."""

SETTLING = 3
"""Sweeps of a moved kernel before the objective is compared."""


AUTO = "auto"
LEARNED = "learned"


def is_auto(value: Any) -> bool:
    """Whether a setting is to be chosen on held-out rows."""
    return isinstance(value, str) and value == AUTO


def as_record(value: Any, record: type[T]) -> T:
    """A parameter that is a record, or the first field of one."""
    return value if isinstance(value, record) else record(value)  # type: ignore[call-arg]


def is_learned(sharing: Any) -> bool:
    """Whether the degrees of sharing are to be learned."""
    return isinstance(sharing, str) and sharing == LEARNED


@saved
class Training:
    """How a `SharedKernelClassifier` is trained, where the defaults of a name do not do.

    Parameters
    ----------
    method : {"conditional", "em"}, default="conditional"
        As the parameter `training` of `SharedKernelClassifier`.
    generative_weight : float or "auto", default=0.0
        Share of the likelihood in the objective of conditional training (Lasserre, Bishop & Minka
        2006): 0 is the conditional likelihood alone, 1 the likelihood. "auto" takes the one of 0,
        0.01 and 0.1 with the least loss on held-out rows.
    n_folds : int, default=4
        Conditional networks, each stopped on one fold; their probabilities are averaged.
    acceleration : {"squarem"} or None, default="squarem"
        Extrapolate EM, keeping only steps that do not lower the objective. None is plain EM, as in
        the papers.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier, Training
    >>> plain = SharedKernelClassifier.prbf(8, training=Training("em", acceleration=None))
    """

    method: str = "conditional"
    generative_weight: float | str = 0.0
    n_folds: int = 4
    acceleration: str | None = "squarem"

    def __post_init__(self) -> None:
        check_choices(self, method=("conditional", "em"), acceleration=("squarem", None))
        if not self.n_folds >= 2:
            raise KernelpoolError(f"n_folds of Training must be at least 2; got {self.n_folds!r}.")
        weight = self.generative_weight
        if not is_auto(weight) and (isinstance(weight, str) or not 0 <= weight <= 1):
            raise KernelpoolError(
                f"generative_weight of Training must lie in [0, 1], or be 'auto'; got {weight!r}."
            )


@dataclass(frozen=True)
class MixtureSettings:
    """How one network is trained: the parameters of `SharedKernelClassifier`, resolved."""

    n_kernels: Any = None
    """How many in all, or of each class; None for a number that suits the rows."""
    covariance_type: str = "full"
    standardize: bool = True
    sharing: Any = 0.0
    """A degree, a table (M, K) or "learned"."""
    overlap: Overlap = field(default_factory=lambda: Overlap(0.0))
    kernel_prior: str | None = "conjugate"
    covariance_floor: float = 1e-6
    class_prior: Any = None
    start: Start = field(default_factory=Start)
    training: Training = field(default_factory=Training)
    empty_kernels: str = "move"
    max_iter: int = 200
    tol: float = 1e-5
    seed: int = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.sharing, Real):
            check_degree(float(self.sharing), "sharing")

    def suited(self, levels: tuple[int, ...]) -> "MixtureSettings":
        """The settings for columns of these levels: kernels over categories alone have no shape and
        count as diagonal.
        """
        return self if 0 in levels else replace(self, covariance_type="diag")

    @property
    def type_in_data_units(self) -> str:
        """The family of the kernels in the units of the data: of standardized features, spherical
        kernels are diagonal there.
        """
        stays = FAMILIES[self.covariance_type].equivariant or not self.standardize
        return self.covariance_type if stays else "diag"

    @property
    def n_total(self) -> int | None:
        """How many kernels in all were asked for."""
        return None if self.n_kernels is None else int(np.sum(self.n_kernels))

    def limited(self, x: np.ndarray, codes: np.ndarray, n_classes: int) -> "MixtureSettings":
        """No more kernels than there are rows, class by class where they are given so."""
        if self.n_kernels is None or self.start.owners is not None or self.start.means is not None:
            return self
        if not np.ndim(self.n_kernels):
            return replace(self, n_kernels=min(int(self.n_kernels), len(x)))
        most = [max(1, len(np.unique(x[codes == k], axis=0))) for k in range(n_classes)]
        return replace(self, n_kernels=[*map(min, self.n_kernels, most)])


def continued(
    settings: MixtureSettings, auto: Collection[str], before: FittedSharedKernel, data: TrainingData
) -> MixtureSettings:
    """A warm start: from fitted parameters, with what was chosen of the parameters `auto`."""
    same = {
        "classes and features": np.array_equal(before.classes, data.classes)
        and len(before.columns) == len(data.scale.mean),
        "covariance_type": "covariance_type" in auto
        or settings.covariance_type == before.training_type,
        "n_kernels": settings.n_total in (None, before.n_kernels_at_start),
    }
    for changed in [name for name, is_same in same.items() if not is_same]:
        raise KernelpoolError(
            f"warm_start needs the {changed} of the previous fit; set warm_start=False to start "
            "anew."
        )
    chosen: dict[str, Any] = {
        "kernel_prior": before.kernel_prior,
        "overlap": Overlap(before.overlap),
        "sharing": before.sharing_degree,
    }
    return replace(
        settings,
        n_kernels=None,
        covariance_type=before.training_type,
        start=before.as_start(),
        **{name: value for name, value in chosen.items() if name in auto},
    )


Trained = tuple[FittedSharedKernel, Fit[Params], str | None]
"""A trained network, the run that it comes from, in the frame of the training, and a warning about
kernels that were dropped because they lost their rows.
"""


def fit_shared_kernel(
    data: TrainingData, settings: MixtureSettings, monitor: FitMonitor | None = None
) -> Trained:
    """The best of the starts."""
    training = MixtureTraining(data, settings)
    return training.fitted(training.best(monitor))


class MixtureTraining:
    """One data set and one kernel family, on which networks are trained."""

    def __init__(self, data: TrainingData, settings: MixtureSettings) -> None:
        self.data = data
        self.settings = settings
        floor = settings.covariance_floor
        name = settings.covariance_type
        about = data.scale.mean, data.scale.variance, data.levels
        self.frame, self.variance = frame_of(name, *about, standardize=settings.standardize)
        self.host_kernel: Any = family_for(name, floor * self.variance, data.levels)
        self.data_kernel: Any = family_for(
            settings.type_in_data_units, floor * self.variance, data.levels
        )
        at_rows = match_array(floor * self.variance, like=data.rows.backend)
        self.kernel: Any = family_for(name, at_rows, data.levels)
        self.class_prior = class_prior_for(settings.class_prior, data.classes, data.class_share)
        # scratch of a row: features, indicators and one number a kernel; their number is not known
        # yet
        self._width = self.host_kernel.n_features(len(data.scale.mean)) + len(data.classes) + 1
        reach = data.scale.reach * np.sqrt(self.variance) if data.scale.clips else None
        self._frame_in_reach = replace(self.frame, reach=reach)
        self.rows = data.rows.framed(self._frame_in_reach, self._width + 32)
        self.stop = Stop(
            settings.max_iter,
            settings.tol,
            monotone=settings.overlap.strength == 0,
            # the objective of float32 rows is itself no better than float32
            eps=max(Stop.eps, 8 * data.rows.eps),
            # kernels a millionth of a millionth wide: their log-densities are no better than this
            noise=min(8 * np.finfo(np.float64).eps / floor, 1e-2) if floor > 0 else 0.0,
        )
        self._rng = np.random.default_rng(settings.seed)

    # -- training ----------------------------------------------------------------------------------

    def best(self, monitor: FitMonitor | None = None) -> Fit[Params]:
        """EM from every start; the run that ended highest."""
        monitor = FitMonitor() if monitor is None else monitor
        fits = []
        n_starts = 1 if self._given_kernels[1] is not None else self.settings.start.n_init
        with monitor.fitting(n_starts, *self.as_if_stopped()):
            for i in range(n_starts):
                start = self.first()
                with monitor.start(i) as on_sweep:
                    fits.append(self.run(start, on_sweep))
                if fits[-1].outcome is Outcome.INTERRUPTED:
                    break
        return best_of(fits)

    def run(
        self, start: Params, on_sweep: OnSweep | None = None, penalty: Penalty | None = None
    ) -> Fit[Params]:
        """EM from `start`, under `penalty` beside the one of the settings; a `Learned` start has
        its sharing learned.
        """
        network = self.network(self.sharing, penalty)
        if isinstance(start, Learned):
            network = LearnedSharing(self.kernel, network.sharing, network.penalty)
        accelerated = self.settings.training.acceleration is not None
        move = self._mover(network) if self.settings.empty_kernels == "move" else None
        return self._em(network, start, self.stop, accelerated, repair=move, on_sweep=on_sweep)

    def _em(
        self,
        network: SharedKernel,
        start: Params,
        stop: Stop,
        accelerated: bool = True,
        **options: Any,
    ) -> Fit[Params]:
        rows = self._rows_for(network)
        options["accelerator"] = Squarem(network.coordinates, network.at) if accelerated else None
        with one_blas_thread():
            return em(lambda params: network.sweep(rows, params), start, stop, **options)

    def _rows_for(self, network: SharedKernel) -> Rows:
        return self._by_class if network.takes_classes_apart else self.rows

    @cached_property
    def _by_class(self) -> Rows:
        return self.rows.by_class()

    def network(self, sharing: np.ndarray, penalty: Penalty | None = None) -> SharedKernel:
        """A network in the frame of the training, under `penalty` beside the one of the settings."""
        own = self._penalty(sharing)
        table = match_array(sharing, like=self.rows.backend)
        return SharedKernel(self.kernel, table, own if penalty is None else own + penalty)

    def _penalty(self, sharing: np.ndarray) -> Penalty:
        levels = self.data.levels
        settings = self.settings
        penalty: Penalty = NoPenalty() if levels is None else CategoryPrior()
        if settings.kernel_prior == "conjugate":
            # of a constant feature nothing is expected: a width there would be the narrower the
            # more rows a kernel has
            expected = self.variance * (self.data.scale.variance > 0)
            numbers = expected if levels is None else expected[np.array(levels) == 0]
            penalty = penalty + Conjugate(numbers, len(sharing)) if len(numbers) else penalty
        if settings.overlap.strength != 0:
            penalty = penalty + settings.overlap.in_raw_units(self.data.weight, sharing)
        return penalty

    def _class_weight(self) -> Any:
        weight = self.data.class_weight + self.data.unlabeled_weight * self.class_prior
        return match_array(weight, like=self.rows.backend)

    def _mover(self, network: SharedKernel) -> Callable[[Params], Params | None]:
        rows = self._rows_for(network)
        class_weight = self._class_weight()
        owners = self.owners

        def move(params: Params) -> Params | None:
            lost = network.empty_kernels(params, class_weight, self.data.row_weight)
            # a class without weight has no row that a kernel could be moved to
            lost = [j for j in lost if float(class_weight[int(owners[j])]) > 0]
            if not lost:
                return None
            moved = network.moved(rows, params, lost, owners, class_weight)
            for _ in range(SETTLING):
                moved, _ = network.sweep(rows, moved)
            return moved

        return move

    # -- owners and sharing ------------------------------------------------------------------------

    @cached_property
    def owners(self) -> np.ndarray:
        """The class code of each kernel, (M,)."""
        settings = self.settings
        classes = self.data.classes
        means = self._given_kernels[0]
        n_kernels = settings.n_total if means is None else len(means)
        if settings.start.owners is None:
            wanted = n_kernels if settings.n_kernels is None else settings.n_kernels
            counts = self._counts(wanted)
            return np.repeat(np.arange(len(counts)), counts)
        labels = np.asarray(settings.start.owners)
        if labels.ndim != 1 or (n_kernels is not None and len(labels) != n_kernels):
            raise KernelpoolError(
                f"owners must have shape ({n_kernels or 'n_kernels'},); got {labels.shape}."
            )
        unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
        if unknown:
            raise KernelpoolError(
                f"owners must be labels of y, {classes.tolist()}; got {unknown[0]!r}."
            )
        return np.searchsorted(classes, labels)

    @cached_property
    def samples(self) -> list[ClassSample]:
        """Rows of each class from which starts are made."""
        return sample_rows(self.rows, len(self.data.classes), int(self._rng.integers(2**31)))

    @cached_property
    def sharing(self) -> np.ndarray:
        """The table of sharing, (M, K); all open where it is to be learned."""
        sharing = self.settings.sharing
        classes = self.data.classes
        shape = len(self.owners), len(classes)
        if is_learned(sharing):
            return np.ones(shape)
        if not np.ndim(sharing):
            table = np.asarray(sharing_table(self.owners, float(sharing), len(classes)))
        else:
            table = given_array("sharing", sharing, shape)
            if table.min() < 0 or table.max() > 1:
                raise KernelpoolError(
                    f"sharing must lie in [0, 1]; got values from {table.min():.3g} to "
                    f"{table.max():.3g}."
                )
        usable = (table > 0).any(axis=0)
        if not usable.all():
            k = int(np.argmin(usable))
            name = label_name(classes[k])
            given = self.settings.n_kernels
            problem = f"sharing leaves class {name} without a kernel: it owns none and may use none"
            remedy = "Give the class a kernel in n_kernels or owners"
            if np.ndim(sharing) == 0 and given is not None:
                problem = f"n_kernels={given} leaves class {name} without a kernel"
                remedy = f"Use {len(classes)} kernels or more, at least one for each class"
            raise KernelpoolError(f"{problem}. {remedy}, or raise sharing above 0.")
        return table

    def _check_observed(self) -> None:
        """Every feature is known in some row that each kernel may account for."""
        table = self.sharing
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
            f"{label_name(self.data.classes[self.owners[j]])}, whose kernels no class with that "
            f"feature may use: its "
            f"density there is unknown. Raise sharing above 0, or leave the feature out."
        )

    # -- starts ------------------------------------------------------------------------------------

    def _counts(self, n_kernels: Any) -> list[int]:
        """Kernels of each class."""
        most = [len(sample.x) for sample in self.samples]
        classes = self.data.classes
        if n_kernels is None:
            d = len(self.data.scale.mean)
            n_numbers = self.host_kernel.n_parameters
            # more than a mean and a width along each feature
            many = n_numbers(2, d) - n_numbers(1, d) > 2 * d
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
                f"n_kernels must be a whole number for each class, none negative and not all zero; "
                f"got {list(n_kernels)}."
            )
        if len(counts) != len(classes):
            raise KernelpoolError(
                f"n_kernels has {len(counts)} entries for {len(classes)} classes; give one for "
                f"each class."
            )
        for name, count, n in zip(classes, counts, most, strict=True):
            if count > n and count > 1:
                raise KernelpoolError(
                    f"n_kernels asks for {count} kernels in class {label_name(name)}, which has "
                    f"{n} distinct rows. Use at most {n}."
                )
        return counts

    def start(self, kernels: Kernels, mixing: np.ndarray) -> Params:
        """Parameters of a start, where the rows live."""
        parts = kernels, mixing, self.class_prior
        return Params(*(match_array(part, like=self.rows.backend) for part in parts))

    def first(self) -> Params:
        """First parameters: those given, the others as the settings say; each call makes another
        start.
        """
        sharing = self.sharing
        self._check_observed()
        mixing = self._given_mixing(sharing)
        kernels = self._kernels()
        separate = self.settings.start.method == "mixtures" and mixing is None
        start = self.start(kernels, uniform_mixing(sharing) if mixing is None else mixing)
        start = self._separate_mixtures(kernels, sharing) if separate else start
        return init_sharing(start) if is_learned(self.settings.sharing) else start

    def _separate_mixtures(self, kernels: Kernels, sharing: np.ndarray) -> Params:
        """A mixture for each class by itself; then classes may use each other's kernels."""
        alone = sharing_table(self.owners, 0.0, len(self.data.classes))
        start = self.start(kernels, uniform_mixing(alone))
        loose = replace(self.stop, tol=max(self.stop.tol, 1e-4))
        params = self._em(self.network(alone), start, loose).params
        mixing = to_numpy(params.mixing)
        if (sharing * (mixing == 0)).any():
            mixing = opened(mixing, sharing)
        return replace(params, mixing=match_array(mixing, like=self.rows.backend))

    def _kernels(self) -> Kernels:
        """Kernels of one start, in the frame: those given, the others placed."""
        (means, covariances), owners = self._given_kernels, self.owners
        if means is not None and covariances is not None:
            return self.in_frame(means, covariances, self.settings.start.probabilities)
        method = METHODS.get(self.settings.start.method, METHODS["kmeans"])
        counts = np.bincount(owners, minlength=len(self.data.classes)).tolist()
        first = placed(self.host_kernel, method, self.samples, counts, self._rng)
        order = np.argsort(np.argsort(owners, kind="stable"), kind="stable")
        first = self.host_kernel.take(first, order)
        if means is None and covariances is None:
            return first
        outside = self.data_kernel.to_arrays(self._outside(first))
        means = outside[0] if means is None else means
        farthest = float(np.abs((means - self.frame.origin) / self.frame.unit).max())
        if not farthest <= max_abs_value(self.rows.eps):
            raise KernelpoolError(
                f"means of Start must lie near the rows; one lies {farthest:.0e} standard "
                f"deviations from their mean."
            )
        covariances = outside[1] if covariances is None else covariances
        probability = first.probability if isinstance(first, ProductKernels) else None
        return self.in_frame(means, covariances, probability)

    @cached_property
    def _given_kernels(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Means and covariances as given, checked."""
        settings = self.settings
        d = self.data.rows.n_features
        family = settings.type_in_data_units
        n = settings.n_total
        means = settings.start.means
        covariances = settings.start.covariances
        if means is not None:
            n = len(means) if n is None else n
            means = given_array("means of Start", means, (n, d))
        if covariances is not None:
            if self.data.levels and settings.start.probabilities is None:
                raise KernelpoolError(
                    "covariances of Start are for numbers alone, and X has categorical columns; "
                    "give probabilities too, or leave the covariances out."
                )
            shape = None if n is None else FAMILIES[family].shape(n, d)
            covariances = given_array("covariances of Start", covariances, shape)
            check_positive("covariances of Start", covariances, family)
        return means, covariances

    def _given_mixing(self, sharing: np.ndarray) -> np.ndarray | None:
        if self.settings.start.mixing is None:
            return None
        mixing = given_array("mixing of Start", self.settings.start.mixing, sharing.shape)
        check_columns("mixing of Start", mixing)
        mixing = mixing * (sharing > 0)
        if not (mixing.sum(axis=0) > 0).all():
            raise KernelpoolError(
                "mixing of Start gives a class no weight on any kernel that sharing allows it to "
                "use."
            )
        return mixing / mixing.sum(axis=0)

    # -- results -----------------------------------------------------------------------------------

    def fitted(self, fit: Fit[Params], parents: np.ndarray | None = None) -> Trained:
        """The result in the units of the data, without the kernels that lost their rows."""
        params = fit.params
        data = self.data
        settings = self.settings
        owners = data.classes[self.owners]
        sharing = to_numpy(params.sharing) if isinstance(params, Learned) else self.sharing
        lost = self.lost(params)
        message = None
        if lost:
            params = SharedKernel(self.kernel, params.mixing).without(params, lost)
            named = ", ".join(f"{j} (class {label_name(owners[j])})" for j in lost[:5])
            message = (
                f"{len(lost)} of {len(owners)} kernels lost all their rows and were dropped: "
                f"{named}{', ...' if len(lost) > 5 else ''}. Use fewer kernels than {len(owners)}, "
                f"or init='kmeans'; empty_kernels='keep' leaves them in place."
            )
        log_volume = data.log_volume(self.frame)
        degree = settings.sharing
        record = FittedSharedKernel.of(
            self.in_data_units(params),
            data.columns,
            data.classes,
            owners=np.delete(owners, lost),
            sharing=np.delete(sharing, lost, axis=0),
            training_type=settings.covariance_type,
            n_kernels_at_start=settings.n_total or len(owners) - len(lost),
            sharing_degree=np.nan if isinstance(degree, str) or np.ndim(degree) else float(degree),
            kernel_prior=settings.kernel_prior,
            overlap=float(settings.overlap.strength),
            objective=fit.objective - log_volume,
            history=np.asarray(fit.history) - log_volume,
            n_iter=fit.n_sweeps,
            converged=fit.outcome is Outcome.CONVERGED,
            weight_seen=data.weight,
            parents=None if parents is None else np.delete(parents, lost),
        )
        return record, fit, message

    def lost(self, params: Params) -> list[int]:
        """Kernels that lost their rows and are to be dropped."""
        if self.settings.empty_kernels == "keep":
            return []
        network = SharedKernel(self.kernel, params.mixing)
        mixing = to_numpy(params.mixing)
        empty = network.empty_kernels(params, self._class_weight(), self.data.row_weight)
        left = np.delete(mixing, empty, axis=0).sum(axis=0)
        last = mixing[:, left == 0].argmax(axis=0)  # what a class without weight has left, it keeps
        return [j for j in empty if j not in last]

    def in_data_units(self, params: Params) -> ClassDensities:
        """A network in the units of the data, in NumPy."""
        inside: Any = match_array(params.kernels, like=np.empty(0))
        shares = to_numpy(params.mixing), to_numpy(params.class_prior)
        levels = self.data.columns.levels
        return ClassDensities.of(self.data_kernel, self._outside(inside), *shares, levels)

    def _outside(self, inside: Kernels) -> Kernels:
        if self.data_kernel.name != self.host_kernel.name:
            inside = as_diag(inside)
        return self.data_kernel.out_of(inside, self.frame)  # type: ignore[no-any-return]

    def in_frame(
        self, means: np.ndarray, covariances: np.ndarray, probability: np.ndarray | None = None
    ) -> Kernels:
        """Kernels given in the units of the data, in the frame."""
        kernels = self.data_kernel.from_arrays(means, covariances, probability)
        kernels = self.data_kernel.into(kernels, self.frame)
        changed = self.data_kernel.name != self.host_kernel.name
        return as_spherical(kernels) if changed else kernels

    def as_if_stopped(self) -> tuple[Callable[[Params], FittedSharedKernel], float]:
        """The record of a fit that stops now, and the log volume of the frame."""

        def fitted(params: Params) -> FittedSharedKernel:
            network = self.in_data_units(params)
            return FittedSharedKernel.of(network, self.data.columns, self.data.classes)

        return fitted, self.data.log_volume(self.frame)

    def other_rows(self, x: np.ndarray, codes: Any = None, weight: Any = None) -> RowsInMemory:
        """Rows on the host, given in the units of the data, in the frame."""
        rows = as_rows(x, codes, weight, n_jobs=self.settings.n_jobs)
        return rows.framed(self._frame_in_reach, self._width + len(self.owners))


def log_joint(network: SharedKernel, rows: RowsInMemory, params: Params) -> np.ndarray:
    """log P(C_k) p(x|C_k) in the frame of the rows, (n, K)."""
    natural_params = network.kernel.natural_params(params.kernels, rows.eps)
    log_density = to_numpy(rows.each(network.log_density, natural_params, params.mixing))
    return np.asarray(log_density, np.float64) + safe_log(params.class_prior)


def split_by_class(
    data: TrainingData,
    settings: MixtureSettings,
    shared: FittedSharedKernel,
    anchor: float,
    monitor: FitMonitor,
) -> tuple[FittedSharedKernel, Fit[Params]]:
    """`shared` split into one kernel for each class, and refined by EM.

    `anchor` rows' worth of belief hold each near the kernel it was split from; infinity leaves the
    subkernels as they are. Nobody is warned of a subkernel that its siblings make needless: its
    number was not set by the user.
    """
    if not np.array_equal(data.classes, shared.classes):
        raise KernelpoolError(
            f"split_by_class needs rows of the classes {shared.classes.tolist()}; got "
            f"{data.classes.tolist()}."
        )
    network = shared.network
    settings = replace(
        settings,
        n_kernels=None,
        covariance_type=shared.training_type,
        kernel_prior=shared.kernel_prior,
        overlap=Overlap(0.0),
        sharing=0.0,
        class_prior=network.class_prior,
        start=Start(),
        # a subkernel that is moved would leave its kernel
        empty_kernels="keep" if settings.empty_kernels == "keep" else "drop",
    )
    training = MixtureTraining(data, settings)
    kernels = training.in_frame(network.means, network.covariances, network.probabilities)
    params = training.start(kernels, network.mixing)
    # a row, also where all rows weigh less than one
    least = min(1.0, data.row_weight)
    with one_blas_thread():
        table = match_array(shared.sharing, like=training.rows.backend)
        children = split(training.kernel, training._by_class, params, table, least)
    owners = data.classes[children.owner]
    training = MixtureTraining(data, replace(settings, start=Start(owners=owners)))
    if np.isfinite(anchor):
        penalty = Anchor(anchor, children.params.kernels) if anchor else None
        with monitor.fitting(1, *training.as_if_stopped()), monitor.start(0) as on_sweep:
            fit = training.run(children.params, on_sweep, penalty)
    else:
        _, objective = training.network(training.sharing).sweep(training.rows, children.params)
        fit = Fit(children.params, objective, [objective], outcome=Outcome.CONVERGED)
    record, *_ = training.fitted(fit, np.asarray(children.parent))
    unchanged = "columns", "discriminative", "conditional_loss", "class_shares"
    return replace(record, **{name: getattr(shared, name) for name in unchanged}), fit
