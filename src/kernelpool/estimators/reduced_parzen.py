"""Reduced Parzen classifier: a scikit-learn shell of `kernelpool.networks.parzen_reduction`."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ..errors import KernelpoolError
from ..registry import COUNT, EstimatorRecord, Field, register
from ..training.validation import Labeled, checked_prior, labeled
from .parzen import PARZEN_FITTED, PARZEN_OPTIONAL
from .parzen_network import OCTAVE, ParzenNetwork
from .reduction import Reduction
from .smallest_network import Search


class ReducedParzenClassifier(ParzenNetwork):
    r"""A Parzen classifier with few kernels: edited, then reduced to those that best represent the rest.

    First the rows that lie among those of another class are edited away (`MultiEdit`): they cannot win a vote. Then, class by
    class, those K of the N kernels are kept whose density is closest to that of all of them, by Fukunaga's entropy criterion
    :math:`\sum_i \ln(p_K(x_i) / p_N(x_i))`. Few kernels represent a density best at a larger radius than many do: the densities
    are compared at multiples of the radius of the full network, up to 16, and the multiple is taken whose kernels then classify
    the training rows best, none voting for itself. A row that stands several times counts as one row of more weight.

    Parameters
    ----------
    n_kernels : int, float or "auto", default=0.05
        How many kernels to keep, in all, or what share of the distinct rows; they are dealt out to the classes in proportion to
        the rows left of each. "auto" takes the smallest number whose error is within `tolerance` of the full network's, by
        cross-validation; all rows where half of them are not enough.
    kernel : {"hypersphere", "gaussian", "epanechnikov"} or callable, default="hypersphere"
        As in `ParzenClassifier`.
    radius : float or "loo", default="loo"
        The common radius. "loo" chooses one by leave-one-out for the full network, with which rows are edited, and one for the
        reduced network: the radius at which its kernels classify the training rows best.
    edit : bool, "auto" or resampler, default="auto"
        Whether to edit first, as the paper does: with what the first round of `MultiEdit` leaves or with what is left at its
        end, whichever then classifies the training rows better. "auto" may take all rows as well. Or what edits, a `MultiEdit`
        or anything else with `fit_resample` and `sample_indices_`.
    method : {"entropy", "herding"}, default="entropy"
        Fukunaga's criterion with exchanges, started from herding; or kernel herding alone (Chen, Welling & Smola 2010), which
        is quicker.
    weights : {"equal", "em"}, default="equal"
        One vote a kernel, as in the paper; or votes fitted by EM to the same criterion. Only equal votes can be certified by
        `bounds.certify_by_compression`.
    tolerance : float, default=0.01
        For ``n_kernels="auto"``: by how much the error may exceed that of the full network. The excess found must stay below it
        by a standard error, or by half of the tolerance where that is less.
    validation_fraction : float, default=0.25
        For ``n_kernels="auto"``: share of the rows set aside while sizes are tried; all rows are, in turn.
    n_candidates : int, default=64
        Rows that are tried in the place of a kernel.
    max_sweeps : int, default=10
        Most passes of exchanges over the kernels.
    tol : float, default=1e-3
        Exchanges end when a pass adds less than this to the criterion, a mean over the rows.
    class_prior : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes. None lets every kernel vote alike.
    algorithm : {"auto", "tree", "blocks"}, default="auto"
        As in `ParzenClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the editing, of the candidates, and of `sample`.
    n_jobs : int or None, default=None
        Threads, as in `SharedKernelClassifier`.
    verbose : int, default=0
        1 prints a line for each stage, 2 also one for each round of editing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        Radius of the kernels.
    full_radius_ : float
        Radius of the full network, at which rows were edited.
    radii_, radius_errors_ : ndarray
        Candidates for `radius_` and their errors on the training rows, where it was chosen.
    kernels_, kernel_classes_, kernel_weights_ : ndarray
        The kernels kept, sorted by class, with their classes and votes.
    kept_indices_ : ndarray of shape (n_kernels,)
        The training rows that they are.
    edited_indices_ : ndarray
        The training rows among which kernels were chosen: those that editing left, or all.
    criterion_ : ndarray of shape (n_classes,)
        Mean :math:`\ln(p_K / p_N)` over the edited rows of each class, with equal votes; zero at best.
    curve_ : list of (int, float)
        For ``n_kernels="auto"``: the sizes tried and their errors on rows set aside; of a hopeless size, on some of them.
    full_error_ : float
        For ``n_kernels="auto"``: that of the full network, each row left out of its own vote.
    n_rows_ : int
        Training rows.
    n_choices_ : int or None
        Radii that might have been taken, for `bounds.certify_by_compression`; None where the network depends on more.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.
    K. Fukunaga and R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI 11(4), 1989.
    Y. Chen, M. Welling and A. Smola, "Super-samples from kernel herding", UAI 2010.

    Examples
    --------
    >>> from kernelpool import ReducedParzenClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(2000, random_state=0)
    >>> network = ReducedParzenClassifier(n_kernels=40, random_state=0).fit(X, y)
    >>> network.kernels_.shape
    (40, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ParzenNetwork._parameter_constraints,
        "n_kernels": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "radius": [StrOptions({"loo"}), Interval(Real, 0, None, closed="neither")],
        "edit": ["boolean", StrOptions({"auto"}), HasMethods("fit_resample")],
        "method": [StrOptions({"entropy", "herding"})],
        "weights": [StrOptions({"equal", "em"})],
        "tolerance": [Interval(Real, 0, 1, closed="left")],
        "n_candidates": [Interval(Integral, 2, None, closed="left")],
        "max_sweeps": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_kernels: int | float | str = 0.05,
        *,
        kernel: str | Callable[[np.ndarray], np.ndarray] = "hypersphere",
        radius: float | str = "loo",
        edit: Any = "auto",
        method: str = "entropy",
        weights: str = "equal",
        tolerance: float = 0.01,
        validation_fraction: float = 0.25,
        n_candidates: int = 64,
        max_sweeps: int = 10,
        tol: float = 1e-3,
        class_prior: Any = None,
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.kernel = kernel
        self.radius = radius
        self.edit = edit
        self.method = method
        self.weights = weights
        self.tolerance = tolerance
        self.validation_fraction = validation_fraction
        self.n_candidates = n_candidates
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.class_prior = class_prior
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Edit the rows, choose the kernels among those left, and choose their radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight zero take no part. Editing counts every distinct row once.

        Returns
        -------
        self : ReducedParzenClassifier
            The fitted estimator.
        """
        data = labeled(self, X, y, sample_weight).merge_duplicates()
        prior = checked_prior(self.class_prior, len(data.classes))
        rng = check_random_state(self.random_state)
        size = self._size(data)
        if size is None:
            search = Search(self, data, prior, rng)
            search.build()
            self.curve_, self.full_error_ = search.curve, search.full_error
        else:
            Reduction(self, data, prior, rng).reduce(size)
        self.n_rows_ = data.n_rows
        simple = self.weights == "equal" and prior is None
        in_list = self.radius != "loo" or 2.0**-32 <= self.radius_ < 2.0**32
        self.n_choices_ = None if not (simple and in_list) else 1 if self.radius != "loo" else 64 * OCTAVE
        return self

    def _size(self, data: Labeled) -> int | None:
        """How many kernels to keep; None if that is to be found."""
        n, n_classes = len(data.x), len(np.unique(data.codes))
        if self.n_kernels == "auto":
            return None
        size = self.n_kernels if isinstance(self.n_kernels, Integral) else max(n_classes, round(float(self.n_kernels) * n))
        if size > n:
            raise KernelpoolError(f"n_kernels must not exceed the number of distinct rows, {n}; got {size}.")
        if size < n_classes:
            raise KernelpoolError(f"n_kernels must be at least the number of classes, {n_classes}; got {size}.")
        return int(size)

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"ReducedParzenClassifier: {line}")


register(
    EstimatorRecord(
        ReducedParzenClassifier,
        describe="kernelpool.inspection.pool:describe_reduced_parzen",
        command="reduced-parzen",
        depends_on_units=True,
        has_density=True,
        fitted={
            **PARZEN_FITTED,
            "full_radius_": Field("float", low=0.0, open_low=True),
            "criterion_": Field("floats", ("C",), finite=False),
            "edited_indices_": Field("integers", ("E",), distinct=True),
            "n_rows_": COUNT,
            "n_choices_": replace(COUNT, options=(None,)),
        },
        optional={
            **PARZEN_OPTIONAL,
            "curve_": Field("list", parts=(Field("tuple", parts=(COUNT, Field("float"))),)),
            "full_error_": Field("float"),
        },
        parameters={
            "kernel": Field("choice", options=("hypersphere", "epanechnikov", "gaussian")),
            "edit": Field("model", classes=("MultiEdit",), options=(True, False)),
        },
        rebuilt={"_trees": lambda model: model._plant_trees()},
        check="kernelpool.files.checks:parzen",
        probe=lambda model: model.kernels_,
        onnx="kernelpool.export.networks:parzen",
    )
)
