"""Parzen classifiers, full and reduced: the scikit-learn shells of `kernelpool.networks.parzen`."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KDTree
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import Array, is_numpy_array, namespace, to_numpy
from ..errors import KernelpoolError
from ..networks.parzen import (
    INSIDE,
    PROFILES,
    TILE,
    Network,
    Profile,
    RadiusErrors,
    Reducer,
    StarShaped,
    ball_log_volume,
    decided,
    kernel_posterior,
    log_joint,
    log_prior_scale,
    network,
    radius_errors,
)
from ..rows import ArrayRows, Block, Frame
from .data import query_rows, training_data
from .density import DensityClassifier, _density_alone, _evidence

LOO_ROWS = 4096
"""Most rows that are left out, one at a time, to choose a radius; a random sample where there are more."""

OCTAVE = 4
"""Radii are chosen from the powers of two to the 1/OCTAVE, a list that does not depend on the data."""

MOST_RADII = 48

SCALES = (1.0, 2.0, 4.0, 8.0)
"""Multiples of the full network's radius at which densities are compared."""

TRY_ROWS, TRY_SWEEPS = 4096, 3
"""Rows, or eight times the kernels to be kept if that is more, and passes of exchanges with which such a multiple is tried."""

EASE = 0.25
"""Standard errors by which a reduced network may err more, on the training rows, for the sake of a larger radius."""

THREAD_ROWS = 16384
"""Rows from which on an exchange is worth more than one thread."""

EM_SWEEPS = 50
"""Sweeps of EM that fit the votes of kept kernels; the criterion is concave in them."""

DIRECTIONS = 1 << 16
"""Directions along which the volume of a star-shaped set is measured."""

TREE_FEATURES, TREE_KERNELS = 4, 2000
"""Trees are faster than blocked products up to so many features and from so many kernels on."""


class _Parzen(DensityClassifier):
    """What the full and the reduced network share: kernels that are there, and answers from them."""

    kernels_: np.ndarray
    kernel_classes_: np.ndarray
    kernel_weights_: np.ndarray
    radius_: float

    # -- the kernels ------------------------------------------------------------------------------------------------

    def _profile(self, d: int) -> Profile:
        if not callable(self.kernel):
            return PROFILES[self.kernel]()
        directions = _directions(d)
        gauge = _checked_gauge(self.kernel, directions)
        with np.errstate(divide="ignore"):
            log_volume = ball_log_volume(d) + float(np.log(np.mean(gauge ** -float(d))))
        return StarShaped(self.kernel, log_volume)

    def _set_kernels(self, data: "Labelled", kept: np.ndarray, weight: np.ndarray, prior: np.ndarray | None) -> None:
        """Keep the rows `kept` as kernels, sorted by class, each with a `weight` of votes."""
        order = np.argsort(data.codes[kept], kind="stable")
        kept, weight = kept[order], weight[order]
        self.classes_ = data.classes
        self.kernels_, self.kernel_weights_, self.kept_indices_ = data.x[kept], weight, data.index[kept]
        codes = data.codes[kept]
        self.kernel_classes_ = data.classes[codes]
        votes = np.bincount(codes, weight, minlength=len(data.classes))
        self._votes = votes
        self._prior_given = prior is not None
        self.class_prior_ = votes / votes.sum() if prior is None else prior
        self._origin, self._unit = data.frame.origin, data.frame.unit
        self._log_volume = self._profile(data.x.shape[1]).log_volume(data.x.shape[1])

    def _network(self, radius: float | None = None) -> Network:
        """In the frame."""
        frame = self._frame
        codes = np.searchsorted(self.classes_, self.kernel_classes_)
        offsets = tuple(np.searchsorted(codes, np.arange(len(self.classes_) + 1)).tolist())
        if self._prior_given:
            log_scale = log_prior_scale(self.class_prior_, self._votes)
        else:  # every vote counts the same, to the last bit: a tie is a tie
            log_scale = np.where(self._votes > 0, -math.log(self._votes.sum()), -np.inf)
        radius = self.radius_ if radius is None else radius
        centre = (np.asarray(self.kernels_, np.float64) - frame.origin) / frame.unit
        return network(centre, self.kernel_weights_, offsets, log_scale, radius / float(frame.unit[0]))

    @property
    def _frame(self) -> Frame:
        return Frame(self._origin, self._unit)

    def _plant_trees(self) -> None:
        """One tree a class, of kernels in the frame, where counting with them is faster than multiplying."""
        equal = len(np.unique(self.kernel_weights_)) == 1
        possible = self.kernel == "hypersphere" and equal
        if self.algorithm == "tree" and not possible:
            raise KernelpoolError("algorithm='tree' needs kernel='hypersphere' and equal weights; use algorithm='auto'.")
        small = self.kernels_.shape[1] <= TREE_FEATURES and len(self.kernels_) >= TREE_KERNELS
        self._trees = None
        if self.algorithm == "tree" or (self.algorithm == "auto" and possible and small):
            net = self._network()
            spans = [slice(net.offsets[k], net.offsets[k + 1]) for k in range(net.n_classes)]
            self._trees = tuple(KDTree(net.centre[s]) if s.stop > s.start else None for s in spans)

    # -- the radius -------------------------------------------------------------------------------------------------

    def _radii(self, variance: np.ndarray, weight: float) -> np.ndarray:
        """Candidates, falling, from the fixed list: from the spread of the data to less than a row's distance from the next."""
        d = len(variance)
        spread = math.sqrt(variance.sum()) * (1.0 if self.kernel != "gaussian" else 1 / math.sqrt(d + 2))
        if not spread > 0:
            return np.ones(1)
        smallest = 0.5 * spread * max(weight, 2.0) ** (-1 / min(d, 2))
        high = math.floor(OCTAVE * math.log2(spread))
        low = max(math.floor(OCTAVE * math.log2(smallest)), high - MOST_RADII + 1)
        return 2.0 ** (np.arange(high, low - 1, -1) / OCTAVE)

    def _best_radius(
        self, data: "Labelled", query: "Labelled", own: np.ndarray, rng: np.random.RandomState, ease: float = 0.0
    ) -> float:
        """The radius with the fewest errors on `query`; of several, the middle one. `own` tells which kernel a row itself is.

        With some `ease`, the largest radius whose errors are within so many standard errors of the fewest: it covers more.
        """
        radii = self._radii(data.variance, data.weight.sum())
        at = np.arange(len(query.x))
        if len(at) > LOO_ROWS:
            at = np.sort(rng.choice(at, LOO_ROWS, replace=False))
        profile = self._profile(data.x.shape[1])
        net = self._network(float(radii[-1]))
        rows = ArrayRows(query.x[at], np.arange(len(at)), query.weight[at], n_jobs=self.n_jobs).framed(self._frame, TILE)
        scaled = (radii / self._unit[0]).tolist()
        errors: RadiusErrors = rows.total(radius_errors, profile, net, scaled, query.codes[at], own[at])
        self.radii_, self.radius_errors_ = radii, errors.wrong / errors.weight
        fewest = float(errors.wrong.min())
        if ease:
            allowed = fewest + ease * math.sqrt(fewest * (1 - fewest / float(errors.weight)))
            return float(radii[np.argmax(errors.wrong <= allowed)])
        best = np.flatnonzero(errors.wrong <= fewest * (1 + 1e-12))
        return float(radii[best[(len(best) - 1) // 2]])

    # -- answers ----------------------------------------------------------------------------------------------------

    def _each(self, X: Any, answer: Any) -> Array:
        check_is_fitted(self)
        rows = query_rows(self, X, self.n_jobs)
        net, d = self._network(), self.n_features_in_
        if answer is _density_alone:
            net = replace(net, log_scale=log_prior_scale(np.ones_like(self._votes), self._votes))
        trees = self._trees if is_numpy_array(getattr(rows, "x", None)) else None
        log_norm = self._log_volume + d * math.log(self.radius_)
        return rows.framed(self._frame, TILE).each(_answered, answer, self._profile(d), net, log_norm, trees)

    def covered(self, X: Any) -> Any:
        """Whether any kernel covers each row; where none does, `predict` names the class of the nearest kernel.

        Gaussian kernels cover everything.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        covered : array of shape (n_samples,)
            Booleans.
        """
        return self._each(X, _covered)

    def kernel_posterior(self, X: Any) -> Any:
        """P(i|x): how much each kernel has to do with each row, the class summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_kernels)
            Rows sum to one; the columns are those of `kernels_`. A row that no kernel covers belongs to its nearest one.
        """
        check_is_fitted(self)
        rows = query_rows(self, X, self.n_jobs).framed(self._frame, TILE)
        return rows.each(kernel_posterior, self._profile(self.n_features_in_), self._network())

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        chosen = np.empty(len(codes), int)
        for k in np.unique(codes):
            mine = np.flatnonzero(self.kernel_classes_ == self.classes_[k])
            share = self.kernel_weights_[mine] / self.kernel_weights_[mine].sum()
            chosen[codes == k] = rng.choice(mine, size=(codes == k).sum(), p=share)
        return np.asarray(self.kernels_[chosen] + self.radius_ * self._deviates(len(codes), rng))

    def _deviates(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws from a kernel of radius one at zero, (n, d)."""
        d = self.n_features_in_
        normal = rng.standard_normal((n, d))
        if self.kernel == "gaussian":
            return normal
        length = rng.uniform(size=(n, 1)) ** (1 / d)
        if self.kernel == "epanechnikov":
            length = np.sqrt(rng.beta(d / 2, 2, size=(n, 1)))
        if not callable(self.kernel):
            return np.asarray(length * normal / np.linalg.norm(normal, axis=1, keepdims=True))
        directions = _directions(d)
        gauge = _checked_gauge(self.kernel, directions)
        volume = gauge ** -float(d)  # a direction holds the more of the set the farther it reaches
        at = rng.choice(len(directions), size=n, p=volume / volume.sum())
        return np.asarray(length * directions[at] / gauge[at, None])


class ParzenClassifier(_Parzen):
    r"""A kernel at every training row; the class with the most votes within the radius wins.

    The kernel-based network of Kraaijveld & Duin (1991), also known as probabilistic neural network:
    :math:`p(x|C_k) \propto \sum_{i: y_i = k} w_i K((x - x_i)/r)`. It is consistent: with more rows its error falls towards the
    Bayes error. Distances are plain Euclidean, so features should be on a common scale.

    Parameters
    ----------
    kernel : {"hypersphere", "gaussian", "epanechnikov"} or callable, default="hypersphere"
        Shape of the kernels: the indicator of a ball (the paper), a Gaussian whose standard deviation is the radius,
        :math:`1 - u^2` within the radius; or a star-shaped set, given by its gauge: a function of differences, (n, d), that
        returns by what factor the set must be scaled to reach each, (n,). ``lambda u: np.abs(u).max(axis=1)`` is a cube.
    radius : float or {"loo", "validation"}, default="loo"
        The common radius; or how it is chosen: by leave-one-out on the training rows (a random 4,096 of them where there are
        more), or on rows set aside (the paper): see `validation_fraction`, and `X_val` of `fit`. The candidates are powers of
        :math:`2^{1/4}`.
    validation_fraction : float, default=0.25
        Share of the rows on which ``radius="validation"`` judges the others. All of them become kernels in the end.
    class_prior : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes. None lets every kernel vote alike, so that they are the shares of the classes.
    algorithm : {"auto", "tree", "blocks"}, default="auto"
        How kernels around a row are found: by counting in one tree a class (hyperspheres of equal weight only), or by matrix
        products, a block at a time. The answers are the same; "auto" takes the faster one.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows left out or set aside, and of `sample`.
    n_jobs : int or None, default=None
        Threads, as in `SharedKernelClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        The radius in use.
    radii_, radius_errors_ : ndarray
        The candidates, and the error of each on the rows left out; where the radius was chosen.
    kernels_ : ndarray of shape (n_kernels, n_features)
        Centres, sorted by class.
    kernel_classes_ : ndarray of shape (n_kernels,)
        Their classes.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Their votes.
    kept_indices_ : ndarray of shape (n_kernels,)
        The training rows that they are.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ReducedParzenClassifier : The same with few kernels.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.

    Examples
    --------
    >>> from kernelpool import ParzenClassifier
    >>> network = ParzenClassifier(radius=1.0).fit([[0.0], [0.5], [4.0]], ["a", "a", "b"])
    >>> network.predict([[0.2], [3.5], [9.0]])
    array(['a', 'b', 'b'], dtype='<U1')
    >>> network.covered([[0.2], [3.5], [9.0]])
    array([ True,  True, False])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions(set(PROFILES)), callable],
        "radius": [StrOptions({"loo", "validation"}), Interval(Real, 0, None, closed="neither")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "class_prior": ["array-like", None],
        "algorithm": [StrOptions({"auto", "tree", "blocks"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: str | Callable[[np.ndarray], np.ndarray] = "hypersphere",
        radius: float | str = "loo",
        *,
        validation_fraction: float = 0.25,
        class_prior: Any = None,
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.radius = radius
        self.validation_fraction = validation_fraction
        self.class_prior = class_prior
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Keep the rows and choose the radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; they become the kernels.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which ``radius="validation"`` is chosen; None sets some of X aside.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : ParzenClassifier
            The fitted estimator.
        """
        data = labelled(self, X, y, sample_weight)
        prior = checked_prior(self.class_prior, len(data.classes))
        rng = check_random_state(self.random_state)
        everything = np.arange(len(data.x))
        if self.radius == "validation" and X_val is None:
            self._judge_by_some(data, prior, rng)
        self._set_kernels(data, everything, data.weight, prior)
        if self.radius == "loo":
            own = np.empty(len(data.x), np.int64)
            own[np.argsort(data.codes, kind="stable")] = everything
            self.radius_ = self._best_radius(data, data, own, rng)
        elif self.radius == "validation" and X_val is not None:
            query = self._validation_rows(X_val, y_val, data)
            self.radius_ = self._best_radius(data, query, np.full(len(query.x), -1), rng)
        elif self.radius != "validation":
            self.radius_ = float(self.radius)
        self._plant_trees()
        return self

    def _judge_by_some(self, data: "Labelled", prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        """The radius at which most rows classify the others best."""
        others, judged = split(data.codes, self.validation_fraction, rng)
        self._set_kernels(data, others, data.weight[others], prior)
        self.radius_ = self._best_radius(data, data.part(judged), np.full(len(judged), -1), rng)

    def _validation_rows(self, X_val: Any, y_val: Any, data: "Labelled") -> "Labelled":
        if y_val is None:
            raise KernelpoolError("y_val must be given with X_val.")
        x = np.asarray(validate_data(self, X_val, dtype=[np.float64, np.float32], reset=False))
        labels = np.asarray(y_val)
        if len(labels) != len(x):
            raise KernelpoolError(f"X_val has {len(x)} rows and y_val {len(labels)}; give one label a row.")
        strange = sorted(set(labels.tolist()) - set(data.classes.tolist()), key=str)
        if strange:
            raise KernelpoolError(f"y_val must hold labels of y, {data.classes.tolist()}; got {strange[0]!r}.")
        codes = np.searchsorted(data.classes, labels)
        return Labelled(x, codes, np.ones(len(x)), np.arange(len(x)), data.classes, data.frame, data.variance)


class ReducedParzenClassifier(_Parzen):
    r"""A Parzen classifier with few kernels: edited, then reduced to those that best represent the rest.

    First the rows that lie among those of another class are edited away (`MultiEdit`): they cannot win a vote. Then, class by
    class, those K of the N kernels are kept whose density is closest to that of all of them, by Fukunaga's entropy criterion
    :math:`\sum_i \ln(p_K(x_i) / p_N(x_i))`. Few kernels represent a density best at a larger radius than many do: the densities
    are compared at 1, 2, 4 and 8 times the radius of the full network, and the one is taken whose kernels then classify the
    training rows best, none voting for itself.

    Parameters
    ----------
    n_kernels : int, float or "auto", default=0.05
        How many kernels to keep, in all, or what share of the rows; they are dealt out to the classes in proportion to the rows
        left of each. "auto" takes the smallest number whose error on rows set aside is within `tolerance` of the full
        network's.
    kernel : {"hypersphere", "gaussian", "epanechnikov"} or callable, default="hypersphere"
        As in `ParzenClassifier`.
    radius : float or "loo", default="loo"
        The common radius. "loo" chooses one by leave-one-out for the full network, with which rows are edited, and one for the
        reduced network: the radius at which its kernels classify the training rows best.
    edit : bool, "auto" or resampler, default="auto"
        Whether to edit first, as the paper does; "auto" edits where the reduced network then classifies the training rows
        better. Or what does it, a `MultiEdit` or anything else with `fit_resample` and `sample_indices_`.
    method : {"entropy", "herding"}, default="entropy"
        Fukunaga's criterion with exchanges, started from herding; or kernel herding alone (Chen, Welling & Smola 2010), which
        is quicker.
    weights : {"equal", "em"}, default="equal"
        One vote a kernel, as in the paper; or votes fitted by EM to the same criterion. Only equal votes can be certified by
        `bounds.certify_by_compression`.
    tolerance : float, default=0.01
        For ``n_kernels="auto"``: by how much the error may exceed that of the full network.
    validation_fraction : float, default=0.25
        For ``n_kernels="auto"``: share of the rows set aside while sizes are tried.
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
        For ``n_kernels="auto"``: the sizes tried and their errors on the rows set aside.
    full_error_ : float
        For ``n_kernels="auto"``: that of the full network on the same rows.
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
        "n_kernels": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "kernel": [StrOptions(set(PROFILES)), callable],
        "radius": [StrOptions({"loo"}), Interval(Real, 0, None, closed="neither")],
        "edit": ["boolean", StrOptions({"auto"}), HasMethods("fit_resample")],
        "method": [StrOptions({"entropy", "herding"})],
        "weights": [StrOptions({"equal", "em"})],
        "tolerance": [Interval(Real, 0, 1, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_candidates": [Interval(Integral, 2, None, closed="left")],
        "max_sweeps": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "class_prior": ["array-like", None],
        "algorithm": [StrOptions({"auto", "tree", "blocks"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
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
            How often each row counts; rows of weight zero take no part.

        Returns
        -------
        self : ReducedParzenClassifier
            The fitted estimator.
        """
        data = labelled(self, X, y, sample_weight)
        prior = checked_prior(self.class_prior, len(data.classes))
        rng = check_random_state(self.random_state)
        size = self._size(data)
        if size is None:
            size = self._smallest(data, prior, rng)
        self._prepare(data, prior, rng)
        self._reduce(data, size, prior, rng)
        del self._pools
        self._plant_trees()
        self.n_rows_ = data.n_rows
        simple = self.weights == "equal" and prior is None
        in_list = self.radius != "loo" or 2.0**-32 <= self.radius_ < 2.0**32
        self.n_choices_ = None if not (simple and in_list) else 1 if self.radius != "loo" else 64 * OCTAVE
        return self

    # -- stages -----------------------------------------------------------------------------------------------------

    def _prepare(self, data: "Labelled", prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        """The full network's radius, and the rows that editing leaves."""
        full = ParzenClassifier(self.kernel, self.radius, class_prior=prior, random_state=rng, n_jobs=self.n_jobs)
        full.fit(data.x, data.classes[data.codes], data.weight)
        self.full_radius_ = full.radius_
        self._say(f"full network: {len(data.x)} kernels of radius {full.radius_:.4g}")
        everything = np.arange(len(data.x))
        alone = self.edit is False or len(everything) < 3  # too few to be dealt into parts
        self._pools = [everything] if alone else [self._edit_rows(data, rng)]
        self._say(f"edited: {len(self._pools[0])} kernels left")
        if self.edit == "auto" and not alone:
            self._pools.append(everything)

    def _edit_rows(self, data: "Labelled", rng: np.random.RandomState) -> np.ndarray:
        from .multi_edit import MultiEdit  # MultiEdit's own classifier is defined above

        editor = clone(self.edit) if isinstance(self.edit, BaseEstimator) else self.edit
        if self.edit is True or self.edit == "auto":
            judge = ParzenClassifier(self.kernel, self.full_radius_, n_jobs=self.n_jobs)
            editor = MultiEdit(judge, random_state=rng, verbose=max(0, self.verbose - 1))
        editor.fit_resample(data.x, data.codes)
        if not hasattr(editor, "sample_indices_"):
            raise KernelpoolError(f"edit must tell which rows it kept in sample_indices_; {type(editor).__name__} does not.")
        kept = np.unique(editor.sample_indices_)
        lost = np.setdiff1d(np.unique(data.codes), data.codes[kept])
        if len(lost):
            raise KernelpoolError(
                f"Editing left no row of class {data.classes[lost].tolist()[0]!r}. Use edit=False, or a smaller radius."
            )
        return np.asarray(kept)

    def _reduce(self, data: "Labelled", size: int, prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        """Keep `size` rows: of the pool, and with a radius, at which quick tries classify the training rows best."""
        seed = rng.randint(2**31)
        ways = [(pool, scale) for pool in self._pools for scale in (SCALES if self.radius == "loo" else (1.0,))]
        if len(ways) > 1:
            most = max(TRY_ROWS, 8 * size)
            errors = []
            for pool, scale in ways:
                some = pool if len(pool) <= most else rng.permutation(pool)[:most]
                n_sweeps = min(TRY_SWEEPS, self.max_sweeps)
                errors.append(self._keep(data, some, size, scale, n_sweeps, prior, np.random.RandomState(seed)))
            ways = [ways[int(np.argmin(errors))]]
        pool, scale = ways[0]
        self._keep(data, pool, size, scale, self.max_sweeps, prior, np.random.RandomState(seed))
        self.edited_indices_ = np.sort(data.index[pool])
        self._say(
            f"reduced: {len(self.kernels_)} of {len(pool)} kernels, radius {self.radius_:.4g}, "
            f"criterion {self.criterion_.mean():.4f}"
        )

    def _keep(
        self,
        data: "Labelled",
        pool: np.ndarray,
        size: int,
        scale: float,
        n_sweeps: int,
        prior: np.ndarray | None,
        rng: np.random.RandomState,
    ) -> float:
        """Keep `size` rows of the pool, and the radius at which they classify the training rows best; its error."""
        part = data.part(pool)
        codes = np.unique(part.codes)
        counts = dealt(np.bincount(part.codes, part.weight)[codes], np.bincount(part.codes)[codes], size)
        kept, weight, criterion = [], [], []
        for code, count in zip(codes, counts, strict=True):
            mine = np.flatnonzero(part.codes == code)
            chosen, vote, reached = self._reduced_class(part.part(mine), count, scale, n_sweeps, rng)
            kept.append(pool[mine[chosen]])
            weight.append(vote * count)
            criterion.append(reached)
        self.criterion_ = np.array(criterion)
        at = np.concatenate(kept)
        self._set_kernels(data, at, np.concatenate(weight), prior)
        if self.radius != "loo":
            self.radius_ = float(self.radius)
            return 0.0
        own = np.full(len(data.x), -1)
        own[at[np.argsort(data.codes[at], kind="stable")]] = np.arange(len(at))
        self.radius_ = self._best_radius(data, data, own, rng, EASE)
        return float(self.radius_errors_.min())

    def _reduced_class(
        self, part: "Labelled", count: int, scale: float, n_sweeps: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions of the kept rows of one class, their votes, which sum to one, and the criterion."""
        if count >= len(part.x):
            return np.arange(len(part.x)), np.full(count, 1 / count), 0.0
        frame, d = part.frame, part.x.shape[1]
        x = np.asarray(frame.inside(np.asarray(part.x, np.float64)))
        radius = scale * self.full_radius_ / float(frame.unit[0])
        n_jobs = self.n_jobs if len(x) >= THREAD_ROWS else 1
        rows = ArrayRows(x, np.arange(len(x)), width=max(self.n_candidates, d), n_jobs=n_jobs)
        narrow = network(x, part.weight, (0, len(x)), np.zeros(1), radius).narrow
        reducer = Reducer(rows, x, np.asarray(part.weight, np.float64), self._profile(d), radius, narrow)
        kept = reducer.herd(count)
        options = {"n_candidates": self.n_candidates, "max_sweeps": n_sweeps if self.method == "entropy" else 0}
        kept, history = reducer.exchange(kept, lambda n: rng.uniform(size=n), tol=self.tol, **options)
        votes = np.full(count, 1 / count) if self.weights == "equal" else reducer.weights(kept, n_sweeps=EM_SWEEPS)
        return np.array(kept), votes, history[-1]

    # -- the size ---------------------------------------------------------------------------------------------------

    def _size(self, data: "Labelled") -> int | None:
        """How many kernels to keep; None if that is to be found."""
        n, n_classes = len(data.x), len(np.unique(data.codes))
        if self.n_kernels == "auto":
            return None
        size = self.n_kernels if isinstance(self.n_kernels, Integral) else max(n_classes, round(float(self.n_kernels) * n))
        if size > n:
            raise KernelpoolError(f"n_kernels must not exceed the number of rows, {n}; got {size}.")
        if size < n_classes:
            raise KernelpoolError(f"n_kernels must be at least the number of classes, {n_classes}; got {size}.")
        return int(size)

    def _smallest(self, data: "Labelled", prior: np.ndarray | None, rng: np.random.RandomState) -> int:
        """The smallest of a ladder of sizes whose error on rows set aside is within `tolerance` of the full network's."""
        others, judged = split(data.codes, self.validation_fraction, rng)
        part, test = data.part(others), data.part(judged)
        labels = data.classes[test.codes]
        self._prepare(part, prior, rng)
        full = ParzenClassifier(self.kernel, self.full_radius_, class_prior=prior, n_jobs=self.n_jobs)
        full.fit(part.x, data.classes[part.codes], part.weight)
        self.full_error_ = 1 - full.score(test.x, labels, test.weight)
        self.curve_ = []
        size = n_classes = len(np.unique(part.codes))
        while size < len(part.x):
            self._reduce(part, size, prior, rng)
            self._plant_trees()
            self.curve_.append((size, 1 - self.score(test.x, labels, test.weight)))
            if self.curve_[-1][1] <= self.full_error_ + self.tolerance:
                return size
            size = max(size + n_classes, int(size * math.sqrt(2)))
        return len(part.x)

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"ReducedParzenClassifier: {line}")


# -- answers of a block ------------------------------------------------------------------------------------------------


def _answered(block: Block, answer: Any, profile: Profile, net: Network, log_norm: float, trees: Any) -> Array:
    joint = log_joint(block, profile, net, log_norm) if trees is None else _counted(block, net, trees, log_norm)
    if answer is _covered:
        return namespace(joint).max(joint, axis=1) > -np.inf
    if answer not in (_density_alone, _evidence):
        joint = decided(joint, block, profile, net) if trees is None else _decided_by_trees(joint, block, trees)
    result = answer(joint, 0.0)
    xp = namespace(result)
    return xp.astype(result, block.x.dtype) if xp.isdtype(result.dtype, "real floating") else result


def _covered(*_: Any) -> None:
    """Stands for the question whether any kernel covers a row."""


def _counted(block: Block, net: Network, trees: tuple[KDTree | None, ...], log_norm: float) -> np.ndarray:
    """`log_joint` of hyperspheres by counting: whole branches within the radius are counted unseen."""
    x = np.asarray(block.x, np.float64)
    reach = net.radius * math.sqrt(INSIDE)
    counts = [np.zeros(len(x)) if tree is None else tree.query_radius(x, reach, count_only=True) for tree in trees]
    with np.errstate(divide="ignore"):
        votes = np.log(np.stack(counts, axis=1)) + math.log(float(net.weight[0]))
    return np.asarray(votes + (net.log_scale - log_norm))


def _decided_by_trees(joint: np.ndarray, block: Block, trees: tuple[KDTree | None, ...]) -> np.ndarray:
    rows = np.flatnonzero(joint.max(axis=1) == -np.inf)
    if len(rows):
        x = np.asarray(block.x[rows], np.float64)
        least = [np.full(len(x), np.inf) if tree is None else tree.query(x, k=1)[0][:, 0] for tree in trees]
        joint[rows] = -np.inf
        joint[rows, np.argmin(np.stack(least, axis=1), axis=1)] = 0.0
    return joint


# -- rows and their labels ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labelled:
    """Rows in memory, each with a class and some weight."""

    x: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    index: np.ndarray
    """Where each row stood in X."""
    classes: np.ndarray
    frame: Frame
    variance: np.ndarray
    """Of each feature, (d,)."""
    n_rows: int = 0
    """Rows of X, those of weight zero included."""

    def part(self, at: np.ndarray) -> "Labelled":
        """Some of the rows, in the same frame."""
        return replace(self, x=self.x[at], codes=self.codes[at], weight=self.weight[at], index=self.index[at])


def labelled(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Labelled:
    """Checked rows of positive weight, in NumPy: they are the network, so they must fit into memory."""
    data = training_data(estimator, X, y, sample_weight, None, 1.0, None)
    x, codes, weight = (_host(a) for a in (data.rows.x, data.rows.y, data.rows.weight))  # type: ignore[attr-defined]
    if (codes < 0).any():
        raise KernelpoolError(f"y must have a label for every row; row {int(np.argmin(codes))} has None. Drop such rows first.")
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, np.float64)
    at = np.flatnonzero(weight > 0)
    frame = _frame(data.mean, data.variance)
    return Labelled(x[at], codes[at], weight[at], at, data.classes, frame, data.variance, len(x))


def _host(a: Any) -> Any:
    return None if a is None else to_numpy(a.compute() if hasattr(a, "compute") else a)


def _frame(mean: np.ndarray, variance: np.ndarray) -> Frame:
    """About the mean, in one unit for all features, a power of two: distances stay distances."""
    unit = 2.0 ** np.round(0.5 * np.log2(variance.mean())) if variance.any() else 1.0
    return Frame(mean, np.full(len(mean), unit))


def checked_prior(given: Any, n_classes: int) -> np.ndarray | None:
    """`class_prior` as the user gave it, or None."""
    if given is None:
        return None
    prior = np.asarray(check_array(given, dtype=np.float64, ensure_2d=False, input_name="class_prior"))
    if prior.shape != (n_classes,):
        raise KernelpoolError(f"class_prior must have shape ({n_classes},); got {prior.shape}.")
    if prior.min() < 0 or not math.isclose(prior.sum(), 1, abs_tol=1e-6):
        raise KernelpoolError(f"class_prior must not be negative and must sum to one; got {prior.tolist()}.")
    return prior


def split(codes: np.ndarray, fraction: float, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Positions of most rows, and of the rest, with the classes in the same shares where there are rows enough."""
    least = np.bincount(codes)[np.unique(codes)].min()
    n_judged = math.ceil(fraction * len(codes))
    enough = least > 1 and min(n_judged, len(codes) - n_judged) >= len(np.unique(codes))
    others, judged = train_test_split(
        np.arange(len(codes)), test_size=fraction, random_state=rng, stratify=codes if enough else None
    )
    return np.sort(others), np.sort(judged)


def dealt(weight: np.ndarray, most: np.ndarray, total: int) -> list[int]:
    """`total` kernels dealt out in proportion to `weight`, at least one and at most `most` a class."""
    counts = np.ones(len(weight), int)
    for _ in range(min(total, int(most.sum())) - len(counts)):
        share = np.where(counts < most, weight / (counts + 0.5), -1.0)  # Webster's method: the most underrepresented next
        counts[np.argmax(share)] += 1
    return [int(n) for n in counts]


# -- star-shaped sets --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _directions(d: int) -> np.ndarray:
    """Directions, uniform on the sphere and always the same, (DIRECTIONS, d)."""
    normal = np.random.default_rng(0).standard_normal((DIRECTIONS, d))
    directions: np.ndarray = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    directions.flags.writeable = False
    return directions


def _checked_gauge(gauge: Callable[[np.ndarray], np.ndarray], directions: np.ndarray) -> np.ndarray:
    """The gauge along `directions`, found to be one."""
    found = np.asarray(gauge(directions))
    if found.shape != (len(directions),) or found.dtype.kind != "f":
        raise KernelpoolError(
            f"kernel must return one number a row, by what factor the set must be scaled to reach it: shape "
            f"({len(directions)},) and floats expected; got {found.shape} and {found.dtype}."
        )
    if not (np.isfinite(found).all() and found.min() > 0):
        raise KernelpoolError(f"kernel must return positive numbers except at zero; got {found.min()}.")
    if not np.allclose(np.asarray(gauge(2 * directions[:64])), 2 * found[:64], rtol=1e-6):
        raise KernelpoolError("kernel must be a gauge: twice the difference must give twice the value.")
    return found
