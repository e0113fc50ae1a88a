"""Average over degrees of sharing: the scikit-learn shell of Titsias & Likas 2001, section III-B."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from ..arrays import Array, logsumexp, namespace, safe_log
from ..em import Fit, Outcome, best_of
from ..kernels import FAMILIES, NaturalParams
from ..networks.shared_kernel import Params, SharedKernel
from ..registry import BOOL, CLASSES, COUNT, FEATURE_NAMES, EstimatorRecord, Field, register
from ..rows import Block, Rows
from ..training.monitor import CallbackSupportMixin, SweepInfo, warn_if_unfinished, with_callbacks
from ..training.validation import TrainingData, named_features, training_data
from ._base import DensityClassifier, Question, fit_monitor
from .averaging import Choice, choices_of, held_out_weights, run_of, setups_of
from .setup import Setup
from .shared_kernel import SharedKernelClassifier

Member = tuple[SharedKernel, NaturalParams, Array]
"""A network, its kernels seen in the frame of all, and its mixing weights."""

NOT_AVERAGED = ("warm_start", "split_by_class", "split_anchor")
"""Parameters of a single network that an average does not have."""


class SharingAverageClassifier(CallbackSupportMixin, DensityClassifier):
    r"""Class densities averaged over several degrees of kernel sharing.

    One network is trained for each value of `sharing`, all from the same start, and their class densities are averaged,
    :math:`p(x|C_k) = \sum_i w_i\, p(x|C_k, \lambda_i)` (equation (38), where all :math:`w_i = 1/L`; densities, not
    posteriors or votes). In the paper this was the best choice on average where the right degree of sharing is not known.
    Strengths of the overlap penalty and numbers of kernels may be averaged over as well.

    Parameters
    ----------
    n_kernels : int, sequence of int or None, default=None
        As in `SharedKernelClassifier`, for each network: a sequence is the number for each class.
    sharing : sequence of float or "learned", default=(0, 0.25, 0.5, 0.75, 1)
        Degrees of sharing, each in [0, 1] or "learned".
    covariance_type : {"spherical", "diag", "full", "tied"}, default="spherical"
        Shape of the kernels.
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
    kernel_totals : sequence of int or None, default=None
        Numbers of kernels in all to average over; each is dealt out to the classes as an int for `n_kernels` is. None takes
        `n_kernels` alone. (A sequence for `n_kernels` has another meaning: the kernels of each class.)
    weights : {"equal", "held_out"}, default="equal"
        How much each network counts: all the same, as in the papers, or by what it says of held-out rows (stacking; Smyth &
        Wolpert 1999). The latter trains every network three to five times more, on parts of at most about 20,000 rows.
    acceleration : {"squarem"} or None, default="squarem"
        None is plain EM.
    starving : {"move", "drop", "keep"}, default="move"
        What becomes of kernels that lose their rows.
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
        One for each value of `kernel_totals`, `sharing` and `overlap_penalty`, the last changing fastest.
    weights_ : ndarray of shape (n_networks,)
        How much each network counts; they sum to one.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
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

    P. Smyth and D. Wolpert, "Linearly combining density estimators via stacking", Machine Learning 36, 1999.

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
        **{k: v for k, v in SharedKernelClassifier._parameter_constraints.items() if k not in NOT_AVERAGED},
        "n_kernels": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "covariance_type": [StrOptions(set(FAMILIES))],
        "sharing": ["array-like"],
        "kernel_totals": ["array-like", None],
        "weights": [StrOptions({"equal", "held_out"})],
        "overlap_penalty": [Interval(Real, 0, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        n_kernels: int | Sequence[int] | None = None,
        *,
        sharing: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
        covariance_type: str = "spherical",
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
        kernel_totals: Sequence[int] | None = None,
        weights: str = "equal",
        acceleration: str | None = "squarem",
        starving: str = "move",
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
        self.kernel_totals = kernel_totals
        self.weights = weights
        self.acceleration = acceleration
        self.starving = starving
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
        choices = choices_of(self)
        data = training_data(self, X, y, sample_weight, self.unlabeled, self.unlabeled_weight, self.n_jobs)
        setups = setups_of(self, choices, data)
        with named_features(getattr(self, "feature_names_in_", None)):
            fits = self._fits(setups, choices, X, y, sample_weight)
            self._gather(setups, choices, fits, data)
            if len(self.estimators_) == len(choices) and self.weights == "held_out":
                self.weights_ = held_out_weights(self, choices, data)
        if any(run.outcome is Outcome.INTERRUPTED for runs in fits for run in runs):
            raise KeyboardInterrupt(f"interrupted; {len(self.estimators_)} of {len(choices)} networks were kept")
        return self

    def _fits(
        self, setups: dict[int | None, Setup], choices: list[Choice], X: Any, y: Any, weight: Any
    ) -> list[list[Fit[Params]]]:
        """The runs of every choice, one a start; fewer if interrupted."""
        fits: list[list[Fit[Params]]] = [[] for _ in choices]
        n_starts = sum(setups[choice.total].n_starts for choice in choices)
        first = next(iter(setups.values()))
        monitor = fit_monitor(self, X, y, weight)
        with monitor.fitting(n_starts, **first.training.described()):
            for total, setup in setups.items():
                mine = [(choice, runs) for choice, runs in zip(choices, fits, strict=True) if choice.total == total]
                for place in setup.places():
                    for choice, runs in mine:
                        with monitor.start(sum(map(len, fits))) as on_sweep:
                            runs.append(run_of(setup, choice, place, on_sweep))
                        if runs[-1].outcome is Outcome.INTERRUPTED:
                            return fits
        return fits

    def _gather(
        self, setups: dict[int | None, Setup], choices: list[Choice], fits: list[list[Fit[Params]]], data: TrainingData
    ) -> None:
        self.classes_, self.class_prior_ = data.classes, next(iter(setups.values())).class_prior
        self.estimators_ = [
            self._member(setups[choice.total], choice, best_of(runs))
            for choice, runs in zip(choices, fits, strict=True)
            if runs
        ]
        self.weights_ = np.full(len(self.estimators_), 1 / len(self.estimators_))
        self.n_iter_ = max(member.n_iter_ for member in self.estimators_)
        self.converged_ = all(member.converged_ for member in self.estimators_)

    def _member(self, setup: Setup, choice: Choice, best: Fit[Params]) -> SharedKernelClassifier:
        kwargs = {k: v for k, v in self.get_params(deep=False).items() if k not in ("kernel_totals", "weights")}
        if choice.total is not None:
            kwargs["n_kernels"] = choice.total
        member = SharedKernelClassifier(**{**kwargs, "sharing": choice.sharing, "overlap_penalty": choice.strength})
        training = setup.training.penalized(choice.strength)
        member._keep(training.trained(best, setup.sharing(choice.sharing), setup.owners), setup.data, setup.class_prior)
        member.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            member.feature_names_in_ = self.feature_names_in_
        if best.outcome is not Outcome.INTERRUPTED:
            warn_if_unfinished(best, self.max_iter)
        return member

    def _as_if_stopped(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The network now in training stands for all."""
        member = SharedKernelClassifier(covariance_type=self.covariance_type)
        for name, value in parameters.items():
            setattr(member, name, value)
        return {
            "estimators_": [member],
            "weights_": np.ones(1),
            "classes_": member.classes_,
            "class_prior_": member.class_prior_,
        }

    def _density(self, rows: Rows) -> Question:
        _, _, frame = self.estimators_[0]._network()
        members: list[Member] = []
        for member in self.estimators_:
            network, kernels, _ = member._network(frame)
            members.append((network, network.kernel.natural_params(kernels, rows.eps), member.mixing_))
        width = max(sum(natural_params.weight.shape) for _, natural_params, _ in members)
        framed = rows.framed(frame, width + 2 * len(self.classes_))
        return framed, _average_log_density, (tuple(members), np.log(self.weights_), frame.log_volume)

    def _posterior(self, rows: Rows) -> Question:
        framed, _, (members, log_weights, _) = self._density(rows)
        return framed, _joint_posterior, (members, log_weights, self.class_prior_)

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        drawn = rng.choice(len(self.estimators_), size=len(codes), p=self.weights_ / self.weights_.sum())
        x = np.empty((len(codes), self.n_features_in_))
        for i, member in enumerate(self.estimators_):
            x[drawn == i] = member._sample_rows(codes[drawn == i], rng)
        return x


def _average_log_density(block: Block, members: tuple[Member, ...], log_weights: Array, log_volume: float) -> Array:
    """(38): log of the weighted mean of the networks' densities, (n, K)."""
    parts = [network.log_density(block, natural_params, mixing) for network, natural_params, mixing in members]
    return logsumexp(namespace(block.x).stack(parts) + log_weights[:, None, None], axis=0) - log_volume


def _joint_posterior(block: Block, members: tuple[Member, ...], log_weights: Array, class_prior: Array) -> Array:
    xp = namespace(block.x)
    log_prior = safe_log(class_prior)
    evidence = xp.stack(
        [
            logsumexp(net.log_density(block, natural_params, mixing) + log_prior, axis=1)
            for net, natural_params, mixing in members
        ]
    )
    evidence = evidence + log_weights[:, None]
    share = xp.exp(evidence - logsumexp(evidence, axis=0))  # (L, n)
    columns = [
        network.kernel_posterior(block, natural_params, mixing, class_prior) * share[i, :][:, None]
        for i, (network, natural_params, mixing) in enumerate(members)
    ]
    return xp.concat(columns, axis=1)


register(
    EstimatorRecord(
        SharingAverageClassifier,
        describe="kernelpool.inspection.pool:describe_sharing_average",
        command="sharing-average",
        has_density=True,
        fitted={
            **CLASSES,
            "class_prior_": Field("shares", ("K",)),
            "weights_": Field("shares", ("L",)),
            "estimators_": Field("list", parts=(Field("model", classes=("SharedKernelClassifier",)),), size="L"),
            "n_iter_": COUNT,
            "converged_": BOOL,
        },
        optional=FEATURE_NAMES,
        check="kernelpool.files.checks:sharing_average",
        probe=lambda model: model.estimators_[0].means_,
        onnx="kernelpool.export.networks:sharing_average",
    )
)
