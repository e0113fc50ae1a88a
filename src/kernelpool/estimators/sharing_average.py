"""Average over degrees of sharing: the scikit-learn shell of Titsias & Likas 2001, section III-B."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from ..arrays import Array, logsumexp, namespace, safe_log, shares_of
from ..em import Outcome
from ..errors import KernelpoolError, StarvedKernelWarning, warn
from ..inspection.describe import (
    Description,
    Pool,
    classes_text,
    features_text,
    gaussians_text,
    member_name,
    member_weights,
    shared_pool,
    sharing_name,
    training_text,
)
from ..inspection.marginals import Marginals, MixtureParams
from ..kernels import FAMILIES, NaturalParams
from ..networks.shared_kernel import SharedKernel
from ..rows import Block, Rows
from ..text import plural
from ..training.config import SharedKernelConfig, is_learned
from ..training.monitor import CallbackSupportMixin, SweepInfo, warn_if_unfinished, with_callbacks
from ..training.prepare import check_degree, named_features, training_data
from ..training.shared_kernel import FittedNetwork, fit_from_common_starts
from .base import DensityClassifier, RowFunction, fit_monitor
from .shared_kernel import SharedKernelClassifier, volume_of

Member = tuple[SharedKernel, NaturalParams, Array]
"""A network, its kernels seen in the frame of all, and its mixing weights."""

NOT_AVERAGED = ("warm_start", "split_by_class", "split_anchor")
"""Parameters of a single network that an average does not have."""


class SharingAverageClassifier(CallbackSupportMixin, DensityClassifier):
    r"""Class densities averaged over several degrees of kernel sharing.

    One network is trained for each value of `sharing`, all from the same start, and their class densities are averaged,
    :math:`p(x|C_k) = \sum_i w_i\, p(x|C_k, \lambda_i)` (equation (38), where all :math:`w_i = 1/L`; densities, not
    posteriors or votes). In the paper this was the best choice on average where the right degree of sharing is not known.
    Strengths of the overlap penalty may be averaged over as well.

    Parameters
    ----------
    n_kernels : int, sequence of int or None, default=None
        As in `SharedKernelClassifier`, for each network: a sequence is the number for each class.
    sharing : sequence of float or "learned", default=(0, 0.25, 0.5, 0.75, 1)
        Degrees of sharing, each in [0, 1] or "learned".
    covariance_type : {"spherical", "diag", "full", "tied"}, default="spherical"
        Shape of the kernels.
    standardize : bool, default=True
        Whether spherical kernels are round among features of variance one, as in `SharedKernelClassifier`; the paper's are
        round among the features as they are.
    owners, class_prior, means_init, covariances_init, mixing_init : array-like, default=None
        As in `SharedKernelClassifier`.
    init : {"kmeans", "random", "mixtures"}, default="kmeans"
        How the common start is made.
    n_init : int, default=1
        Number of starts; of each degree of sharing the best is kept.
    max_iter : int, default=200
        Most sweeps over the rows for one network.
    tol : float, default=1e-5
        EM stops when a sweep adds less than this to the objective per row.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel, as a part of the data's.
    kernel_prior : {"conjugate"} or None, default=None
        Prior on every kernel.
    overlap_penalty : float or sequence of float, default=0.0
        Strength of the penalty on kernels whose classes lie apart (Constantinopoulos, Titsias & Likas 2002); 0 is maximum
        likelihood. Of several, one network is trained for each with each degree of sharing.
    overlap_units : {"paper", "raw"}, default="paper"
        Whether `overlap_penalty` counts in N / (K M), rows by classes and kernels, or is the paper's alpha itself.
    overlap_distance : {"bhattacharyya", "full_bhattacharyya", "hellinger", "kullback_leibler"}, default="bhattacharyya"
        How far a class lies from a kernel; the first is the paper's.
    overlap_step : {"next", "current", "printed"}, default="next"
        Which kernels and subkernels the update (29) of the mixing weights compares, since the paper's (29) and (30) count
        sweeps differently: the new kernels and this sweep's subkernels; the kernels and subkernels of this sweep; or these
        kernels and the subkernels of the sweep before, as printed. Where EM settles, all are the same.
    acceleration : {"squarem"} or None, default="squarem"
        None is plain EM.
    starving : {"move", "drop", "keep"}, default="move"
        What becomes of kernels that lose their rows.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words, as in `SharedKernelClassifier`.
    unlabeled : int, float, str or None, default=None
        The label that marks rows without a label.
    unlabeled_weight : float, default=1.0
        Weight of such rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the start.
    n_jobs : int or None, default=None
        Threads.
    verbose : int, default=0
        Progress on the screen.
    callback : callable or None, default=None
        Called after each sweep.

    Attributes
    ----------
    estimators_ : list of SharedKernelClassifier
        One for each value of `sharing` and `overlap_penalty`, the latter changing fastest.
    weights_ : ndarray of shape (n_networks,)
        How much each network counts; they sum to one.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    categories_ : list of (ndarray of str or None)
        The words that are told apart in each column, sorted, None for numbers; where there are columns of words.
    n_iter_ : int
        Sweeps made by the slowest network.
    converged_ : bool
        Whether every network settled.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions on Neural
    Networks 12(5), 2001, section III-B.

    Examples
    --------
    >>> from kernelpool import SharingAverageClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> classifier = SharingAverageClassifier(n_kernels=12, random_state=0).fit(X, y)
    >>> [member.sharing for member in classifier.estimators_]
    [0, 0.25, 0.5, 0.75, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            k: v
            for k, v in SharedKernelClassifier._parameter_constraints.items()
            if k not in NOT_AVERAGED
        },
        "n_kernels": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "covariance_type": [StrOptions(set(FAMILIES))],
        "sharing": ["array-like"],
        "kernel_prior": [StrOptions({"conjugate"}), None],
        "overlap_penalty": [Interval(Real, 0, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        n_kernels: int | Sequence[int] | None = None,
        *,
        sharing: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
        covariance_type: str = "spherical",
        standardize: bool = True,
        owners: Any = None,
        class_prior: Any = None,
        means_init: Any = None,
        covariances_init: Any = None,
        mixing_init: Any = None,
        init: str = "kmeans",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = None,
        overlap_penalty: float | Sequence[float] = 0.0,
        overlap_units: str = "paper",
        overlap_distance: str = "bhattacharyya",
        overlap_step: str = "next",
        acceleration: str | None = "squarem",
        starving: str = "move",
        categorical_features: Any = "from_dtype",
        unlabeled: Any = None,
        unlabeled_weight: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.sharing = sharing
        self.covariance_type = covariance_type
        self.standardize = standardize
        self.owners = owners
        self.class_prior = class_prior
        self.means_init = means_init
        self.covariances_init = covariances_init
        self.mixing_init = mixing_init
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.overlap_penalty = overlap_penalty
        self.overlap_units = overlap_units
        self.overlap_distance = overlap_distance
        self.overlap_step = overlap_step
        self.acceleration = acceleration
        self.starving = starving
        self.categorical_features = categorical_features
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one network for each degree of sharing, all from one start.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels; see `unlabeled` for rows that have none.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : SharingAverageClassifier
            The fitted estimator.
        """
        members = self._members()
        first = (
            members[0]._config().fit
        )  # one seed for all, so that networks of one size come from one start
        configs = [replace(member._config(), fit=first) for member in members]
        data = training_data(
            self,
            X,
            y,
            sample_weight,
            unlabeled=self.unlabeled,
            unlabeled_weight=self.unlabeled_weight,
        )
        if data.levels is not None:
            members[0]._check_words(data)
            if min(data.levels) > 0:  # without numbers kernels have no shape
                configs = [
                    replace(config, kernel=replace(config.kernel, covariance_type="diag"))
                    for config in configs
                ]
        with named_features(data.columns):
            networks = fit_from_common_starts(
                data, configs, fit_monitor(self, X, y, sample_weight, self._as_if_stopped)
            )
            self.columns_ = data.columns
        self._keep(members, networks, configs)
        if any(network.fit.outcome is Outcome.INTERRUPTED for network in networks):
            raise KeyboardInterrupt(
                f"interrupted; {len(networks)} of {len(members)} networks were kept"
            )
        return self

    def _members(self) -> list[SharedKernelClassifier]:
        """A network, not yet fitted, for every number of kernels, degree of sharing and strength of the penalty."""
        degrees, strengths = list(self.sharing), [float(s) for s in np.ravel(self.overlap_penalty)]
        if not degrees or not strengths:
            raise KernelpoolError(
                "sharing and overlap_penalty must hold at least one value; got an empty sequence."
            )
        for value in degrees:
            if isinstance(value, str) and not is_learned(value):
                raise KernelpoolError(
                    f"Each value of sharing must be a number in [0, 1] or 'learned'; got {value!r}."
                )
            if not isinstance(value, str):
                check_degree(value, "Each value of sharing")
        if min(strengths) < 0:
            raise KernelpoolError(
                f"Each value of overlap_penalty must be at least 0; got {min(strengths)}."
            )
        common = self.get_params(deep=False)
        return [
            SharedKernelClassifier(
                **{
                    **common,
                    "sharing": degree,
                    "overlap_penalty": strength,
                    "training": "em",
                }
            )
            for degree, strength in product(degrees, strengths)
        ]

    def _keep(
        self,
        members: list[SharedKernelClassifier],
        networks: list[FittedNetwork],
        configs: list[SharedKernelConfig],
    ) -> None:
        self.classes_, self.class_prior_ = networks[0].classes, networks[0].class_prior
        self.estimators_ = members[: len(networks)]
        for member, network, config in zip(members, networks, configs, strict=False):
            member._keep(network, config)
            member.columns_ = self.columns_
        self.weights_ = np.full(len(networks), 1 / len(networks))
        self.n_iter_ = max(member.n_iter_ for member in self.estimators_)
        self.converged_ = all(member.converged_ for member in self.estimators_)
        for network in networks:
            if network.starved is not None:
                warn(network.starved, StarvedKernelWarning)
            if network.fit.outcome is not Outcome.INTERRUPTED:
                warn_if_unfinished(network.fit, self.max_iter)

    def _as_if_stopped(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The network now in training stands for all."""
        member = SharedKernelClassifier.prbf(
            covariance_type=self.covariance_type, standardize=self.standardize
        )
        for name, value in parameters.items():
            setattr(member, name, value)
        return {
            "estimators_": [member],
            "weights_": np.ones(1),
            "classes_": member.classes_,
            "class_prior_": member.class_prior_,
        }

    def _density(self, rows: Rows) -> RowFunction:
        _, _, frame = self.estimators_[0]._network()
        members: list[Member] = []
        for member in self.estimators_:
            network, kernels, _ = member._network(frame)
            members.append(
                (network, network.kernel.natural_params(kernels, rows.eps), member.mixing_)
            )
        width = max(sum(natural_params.weight.shape) for _, natural_params, _ in members)
        framed = rows.framed(frame, width + 2 * len(self.classes_))
        volume = (frame.log_volume, np.log(frame.unit))
        return RowFunction(
            framed, _average_log_density, (tuple(members), np.log(self.weights_), *volume)
        )

    def _marginals(self) -> Marginals:
        _, _, frame = self.estimators_[0]._network()
        members = [(member, *member._network(frame)[:2]) for member in self.estimators_]
        return Marginals(
            frame,
            tuple(
                MixtureParams(network.kernel, kernels, member.mixing_)
                for member, network, kernels in members
            ),
            np.log(self.weights_),
            safe_log(self.class_prior_),
        )

    def _posterior(self, rows: Rows) -> RowFunction:
        density = self._density(rows)
        members, log_weights, *_ = density.params
        return RowFunction(
            density.rows, _joint_posterior, (members, log_weights, self.class_prior_)
        )

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        drawn = rng.choice(
            len(self.estimators_), size=len(codes), p=self.weights_ / self.weights_.sum()
        )
        x = np.empty((len(codes), self.n_features_in_))
        for i, member in enumerate(self.estimators_):
            x[drawn == i] = member._sample_rows(codes[drawn == i], rng)
        return x

    def _describe(self) -> Description:
        """The kernels of all networks, one network after the other."""
        members = self.estimators_
        pools = [shared_pool(member) for member in members]

        def joined(name: str) -> np.ndarray | None:
            parts = [getattr(pool, name) for pool in pools]
            if self.covariance_type == "tied" and name == "covariance":  # one matrix a network
                parts = [
                    np.broadcast_to(c, (len(p), *c.shape))
                    for c, p in zip(parts, pools, strict=True)
                ]
            return None if parts[0] is None else np.concatenate(parts)

        weighted = zip(member_weights(self), pools, strict=True)
        named = zip(members, pools, strict=True)
        pool = Pool(
            np.concatenate([weight * pool.share for weight, pool in weighted]),
            joined("class_posterior"),
            joined("mean"),
            joined("variance"),
            joined("covariance"),
            group=tuple(name for m, pool in named for name in [member_name(m)] * len(pool)),
        )
        strengths = dict.fromkeys(f"{member.overlap_penalty_:g}" for member in members)
        names = "sharing " + ", ".join(dict.fromkeys(sharing_name(member) for member in members))
        names += "" if list(strengths) == ["0"] else f"; overlap penalty {', '.join(strengths)}"
        sizes = sorted({len(member.means_) for member in members})
        size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return Description(
            f"An average of {plural(len(members), 'network')} ({names}), each of {size} "
            f"{gaussians_text(self)} Gaussian kernels for {classes_text(self)} in "
            f"{features_text(self)}{training_text(self)}",
            pool,
        )


def _average_log_density(
    block: Block,
    members: tuple[Member, ...],
    log_weights: Array,
    log_volume: float,
    log_unit: Array,
) -> Array:
    """(38): log of the weighted mean of the networks' densities, (n, K)."""
    parts = [
        network.log_density(block, natural_params, mixing)
        for network, natural_params, mixing in members
    ]
    log_density = logsumexp(namespace(block.x).stack(parts) + log_weights[:, None, None], axis=0)
    return log_density - volume_of(block, log_volume, log_unit)


def _joint_posterior(
    block: Block, members: tuple[Member, ...], log_weights: Array, class_prior: Array
) -> Array:
    xp = namespace(block.x)
    log_prior = safe_log(class_prior)
    evidence = xp.stack(
        [
            logsumexp(net.log_density(block, natural_params, mixing) + log_prior, axis=1)
            for net, natural_params, mixing in members
        ]
    )
    evidence = evidence + log_weights[:, None]
    share = shares_of(evidence, axis=0)  # (L, n)
    columns = [
        network.kernel_posterior(block, natural_params, mixing, class_prior) * share[i, :][:, None]
        for i, (network, natural_params, mixing) in enumerate(members)
    ]
    return xp.concat(columns, axis=1)
