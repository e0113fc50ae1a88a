"""Parzen classifiers, full and reduced: the scikit-learn estimators of
`kernelpool.parzen.fit`.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import safe_log
from ..base.classifier import DensityClassifier
from ..complete.classifier import CompleteDoor, FittedTabular, TabularClassifier
from ..data.door import TrainingData
from ..data.labels import class_prior_for, labeled
from ..data.scale import mean_and_variance
from ..errors import KernelpoolError
from ..inspection.describe import Description, Pool, classes_text, features_text
from ..tables.columns import Columns
from ..text import plural
from .fit import (
    OCTAVE,
    Editor,
    ParzenConfig,
    ParzenNetwork,
    ParzenRows,
    Reduction,
    SizeSearch,
    conditional_network,
    full_network,
    leave_one_out_scores,
    near_copies,
    tempered_scores,
)
from .network import (
    PROFILES,
    GaussianProfile,
    ParzenParams,
    Profile,
    class_scores,
    each_row,
    kernel_posterior,
    log_votes,
    voting_params,
)
from .onnx import to_graph


@dataclass(frozen=True, kw_only=True)
class Space:
    """How rows are scaled before distances are taken."""

    location: np.ndarray
    scale: np.ndarray
    """What features are divided by: their deviations, or ones, (D,)."""
    unit: float
    """What all features are divided by as well: a power of two."""

    def inside(self, z: np.ndarray) -> np.ndarray:
        """Rows in the space in which distances are taken, in units of `unit`, (n, D)."""
        return np.asarray((z - self.location) / (self.scale * self.unit), np.float64)


@dataclass(frozen=True, kw_only=True)
class FittedParzen(Space, FittedTabular):
    """The fitted state of a Parzen classifier."""

    kernels: np.ndarray
    """Centers in the units of the data, sorted by class, (M, D)."""
    kernel_classes: np.ndarray
    kernel_weights: np.ndarray
    kept_indices: np.ndarray
    """Positions of the kernels in the training rows, (M,)."""
    radius: float
    temperature: float
    class_prior: np.ndarray
    fitted_prior: np.ndarray
    """The class priors of the fit; `class_prior` may have been changed since, (K,)."""
    prior_given: bool
    """Whether class priors were given; otherwise every vote counts the same."""
    radii: np.ndarray | None = None
    radius_errors: np.ndarray | None = None
    radius_losses: np.ndarray | None = None

    def params(self, *, grouped: bool = False) -> ParzenParams:
        """The network in that space; `grouped` where copies of kernels must be known."""
        codes = np.searchsorted(self.classes, self.kernel_classes)
        center = self.inside(self.kernels)
        weight = self.kernel_weights
        group = near_copies(center, weight) if grouped else np.zeros(len(codes), int)
        prior = self.fitted_prior if self.prior_given else None
        params = voting_params(center, codes, weight, group, len(self.classes), prior)
        return replace(params, radius=self.radius / self.unit)

    def log_norm(self, profile: Profile) -> float:
        """log of the integral of a kernel in the units of the data."""
        d = len(self.scale)
        return float(profile.log_volume(d) + d * math.log(self.radius) + np.log(self.scale).sum())


@dataclass(frozen=True, kw_only=True)
class FittedReducedParzen(FittedParzen):
    """The fitted state of a `ReducedParzenClassifier`."""

    full_radius: float
    criterion: np.ndarray | None
    edited_indices: np.ndarray
    n_rows: int
    n_choices: int
    curve: list[tuple[int, float]] | None = None
    full_error: float | None = None
    validation_error: float | None = None
    n_tried: int | None = None


class ParzenEstimator(TabularClassifier, DensityClassifier):
    """Kernels of one radius and predictions from them."""

    n_jobs = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TabularClassifier._parameter_constraints,
        "kernel": [StrOptions(set(PROFILES)), Profile],
        "class_prior": ["array-like", dict, StrOptions({"balanced"}), None],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
    }

    # -- fitting -----------------------------------------------------------------------------------

    @property
    def _profile(self) -> Profile:
        return PROFILES[self.kernel]() if isinstance(self.kernel, str) else self.kernel

    def _space(self, data: TrainingData, columns: Columns) -> Space:
        """Features of variance one, or in one common unit, a power of two: distances stay
        distances.
        """
        x, _, weight = labeled(data.rows)
        location, variance = mean_and_variance(x, weight)
        scale = np.ones_like(variance)
        unit = 1.0
        if self.standardize:
            numbers = np.arange(len(variance)) < sum(not n for n in columns.levels)
            scale = np.sqrt(np.where((variance > 0) & numbers, variance, 1.0))
        elif variance.any():
            unit = float(2.0 ** np.round(0.5 * np.log2(variance.mean())))
        return Space(location=location, scale=scale, unit=unit)

    def _record(
        self,
        network: ParzenNetwork,
        rows: ParzenRows,
        z: np.ndarray,
        space: Space,
        door: CompleteDoor,
    ) -> dict[str, Any]:
        """The fields of the fitted record."""
        at = network.at
        params = network.params
        prior = self._prior_given(door)
        given = self.class_prior is not None
        votes = np.bincount(rows.codes[at], params.weight, minlength=rows.n_classes)
        prior = prior if given else votes / votes.sum()
        conditional = self.radius == "conditional" and isinstance(self._profile, GaussianProfile)
        errors = network.errors
        return {
            **vars(door),
            **vars(space),
            "class_share": prior if given else door.class_share,
            "kernels": z[rows.index[at]],
            "kernel_classes": door.classes[rows.codes[at]],
            "kernel_weights": params.weight,
            "kept_indices": rows.index[at],
            "radius": params.radius * space.unit,
            "temperature": network.temperature,
            "class_prior": prior,
            "fitted_prior": prior,
            "prior_given": given,
            "radii": None if network.radii is None else network.radii * space.unit,
            "radius_losses": errors if conditional else None,
            "radius_errors": None if conditional else errors,
        }

    def _inner_radius(self, space: Space) -> float | None:
        """The radius where distances are taken; None if it is to be chosen."""
        return None if isinstance(self.radius, str) else float(self.radius) / space.unit

    def _prior_given(self, door: CompleteDoor) -> Any:
        if self.class_prior is None:
            return None
        return class_prior_for(self.class_prior, door.classes, door.class_share)

    def _parzen_rows(self, data: TrainingData, space: Space) -> ParzenRows:
        rows: Any = data.rows
        x, codes, weight = labeled(rows)
        positive = np.ones(len(rows.x)) if rows.weight is None else np.asarray(rows.weight)
        inside = space.inside(x), codes, weight
        return ParzenRows.of(inside, np.flatnonzero(positive > 0), len(data.classes))

    def _validation_rows(
        self, X_val: Any, y_val: Any, door: CompleteDoor, space: Space
    ) -> ParzenRows | None:
        validation = self._validation(door, X_val, y_val)
        if validation is None:
            return None
        z, codes, weight = validation
        rows = space.inside(z), codes, weight
        nowhere = np.full(len(z), -1)
        return ParzenRows(*rows, nowhere, nowhere, len(door.classes))

    # -- predictions -------------------------------------------------------------------------------

    def _of_kernels(self, z: np.ndarray, function: Any, *args: Any) -> np.ndarray:
        """`function(x, profile, params, *args)` of complete rows."""
        args = self._profile, self._fitted.params(), *args
        return each_row(lambda x: function(x, *args), self._fitted.inside(z))

    def _network_log_proba(self, z: np.ndarray) -> np.ndarray:
        fitted = self._fitted
        scores = self._of_kernels(z, class_scores)
        scores = tempered_scores(scores, fitted.temperature)
        if fitted.class_prior is not fitted.fitted_prior:
            fitted_prior = np.where(fitted.fitted_prior > 0, fitted.fitted_prior, 1.0)
            scores = scores + safe_log(fitted.class_prior / fitted_prior)
        return np.asarray(log_softmax(scores, axis=1))

    def _rows(self, X: Any) -> Any:
        return self._encoded(X)

    def _network_log_density(self, z: np.ndarray) -> np.ndarray:
        """log p(x|C_k), (n, K)."""
        fitted = self._fitted
        codes = np.searchsorted(fitted.classes, fitted.kernel_classes)
        votes = np.bincount(codes, fitted.kernel_weights, minlength=len(fitted.classes))
        log_votes_of_class = np.log(np.where(votes > 0, votes, 1.0))
        log_norm = fitted.log_norm(self._profile)
        return self._of_kernels(z, log_votes) - log_votes_of_class - log_norm

    def _density(self, rows: Any) -> Any:
        return partial(self._fitted.door.averaged, rows, self._network_log_density, log=True)

    def _evidence(self, rows: Any) -> Any:
        log_prior = safe_log(self._fitted.class_prior)
        return lambda: logsumexp(self._density(rows)() + log_prior, axis=1)

    def _posterior(self, rows: Any) -> Any:
        return partial(
            self._fitted.door.averaged, rows, partial(self._of_kernels, function=kernel_posterior)
        )

    def _set_class_prior(self, class_prior: np.ndarray) -> None:
        changed = {"class_prior": class_prior, "class_share": class_prior}
        self._fitted = replace(self._fitted, **changed)

    def in_support(self, X: Any) -> np.ndarray:
        """Whether any kernel covers each row; where none does, `predict` returns the class of the
        nearest kernel.

        `score_samples` is minus infinity there. Hyperspheres and Epanechnikov's kernels are zero
        beyond their radius; Gaussian kernels cover everything.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        in_support : ndarray of shape (n_samples,)
            Booleans.
        """
        x = self._encoded(X)
        return self._fitted.door.averaged(x, partial(self._of_kernels, function=_covered)) > 0

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        fitted = self._fitted
        columns = self._fitted.columns
        chosen = np.empty(len(codes), int)
        for k in np.unique(codes):
            in_class = np.flatnonzero(fitted.kernel_classes == fitted.classes[k])
            share = fitted.kernel_weights[in_class] / fitted.kernel_weights[in_class].sum()
            chosen[codes == k] = rng.choice(in_class, size=(codes == k).sum(), p=share)
        deviates = self._profile.sample(len(codes), len(fitted.scale), rng)
        z = fitted.kernels[chosen] + fitted.radius * deviates * fitted.scale
        if not any(columns.levels):
            return np.asarray(z)
        x = np.empty((len(z), len(columns)))
        for i, n in enumerate(columns.levels):  # categories are those of the kernels
            at = np.flatnonzero(columns.sources == i)
            own = fitted.kernels[chosen][:, at]
            x[:, i] = np.where(own.any(axis=1), own.argmax(axis=1), n - 1) if n else z[:, at[0]]
        return x

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted, self._profile)

    def _pool(self) -> Pool:
        fitted = self._fitted
        codes = np.searchsorted(fitted.classes, fitted.kernel_classes)
        votes = np.bincount(codes, fitted.kernel_weights, minlength=len(fitted.classes))
        share = fitted.kernel_weights * (fitted.class_prior / np.where(votes > 0, votes, 1))[codes]
        variance = fitted.radius**2 * self._profile.variance(len(fitted.scale)) * fitted.scale**2
        shapes = {
            "mean": fitted.kernels,
            "variance": np.broadcast_to(variance, fitted.kernels.shape),
        }
        # with categories the kernels are in the space of the indicators
        shapes = {} if any(fitted.columns.levels) else shapes
        posterior = np.eye(len(fitted.classes))[codes]
        return Pool(share / share.sum(), posterior, **shapes)


def _covered(x: np.ndarray, profile: Profile, params: ParzenParams) -> np.ndarray:
    return 1.0 * (log_votes(x, profile, params).max(axis=1) > -np.inf)


class ParzenClassifier(ParzenEstimator):
    r"""A kernel at every training row; the class with the most votes wins.

    The kernel-based network of Kraaijveld & Duin (1991), also known as probabilistic neural
    network: :math:`p(x|C_k) \propto \sum_{i: y_i = k} w_i K((x - x_i)/r)`. It is consistent: with
    more rows its error falls towards the Bayes error. Distances are Euclidean, between features of
    variance one (`standardize`).

    By default kernels are Gaussian, and their width is the one at which the other rows predict the
    class of each row best. With ``kernel="hypersphere", radius="loo", standardize=False`` it is the
    network of the paper.

    Parameters
    ----------
    kernel : {"gaussian", "hypersphere", "epanechnikov"} or Profile, default="gaussian"
        Shape of the kernels: the indicator of a ball (the paper), a Gaussian whose standard
        deviation is the radius, :math:`1 - u^2` within the radius; or an object of a class derived
        from `kernelpool.parzen.network.Profile`, such as `papers.star_shaped.StarShaped`.
    radius : float or {"conditional", "loo"}, default="conditional"
        The common radius; or how it is chosen. "conditional" takes the radius, and a temperature
        with it, at which the log-loss of training rows (a random 1,500 of them where there are
        more), each left out with its copies, is least; kernels other than Gaussian, whose votes end
        at the radius, are then chosen as by "loo". "loo" takes the radius with the fewest errors by
        leave-one-out on the training rows (a random 4,096), out of the powers of :math:`2^{1/4}`.
        Both score validation rows instead where `fit` is given some (the paper). A radius is
        measured between features of variance one where `standardize` is set.
    standardize : bool, default=True
        Whether distances are taken between features of variance one. All attributes but `radius_`
        are in the units of the data.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes. None lets every kernel vote alike, so that they are the
        shares of the classes.
    categorical_features : "from_dtype", sequence, Columns or None, default="from_dtype"
        Which columns of X are categorical, as in `SharedKernelClassifier`. Two categories of a
        column are one apart.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows left out, and of `sample`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        The radius in use.
    temperature_ : float
        What the logarithms of the votes are divided by in `predict_proba`, so that probabilities
        are calibrated; 1 unless `radius` is "conditional". Densities do not depend on it.
    radii_, radius_errors_, radius_losses_ : ndarray
        The candidates, where the radius was chosen, and of each the error on the rows left out, or
        for "conditional" their log-loss.
    location_, scale_ : ndarray of shape (n_columns,)
        Mean of the columns, and what they are divided by: their deviations, or ones.
    kernels_ : ndarray of shape (n_kernels, n_columns)
        Centers, sorted by class. The columns are the features; with categorical features the
        numbers and then one indicator for each category.
    kernel_classes_ : ndarray of shape (n_kernels,)
        Their classes.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Their votes: the weights of the rows, or ones where they are equal.
    kept_indices_ : ndarray of shape (n_kernels,)
        Their positions in the training rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    ReducedParzenClassifier : The same with few kernels.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based
    networks", IJCNN 1991.

    Examples
    --------
    >>> from kernelpool import ParzenClassifier
    >>> X, y = [[0.0], [0.5], [4.0]], ["a", "a", "b"]
    >>> network = ParzenClassifier("hypersphere", 1.0, standardize=False).fit(X, y)
    >>> network.predict([[0.2], [3.5], [9.0]])
    array(['a', 'b', 'b'], dtype='<U1')
    >>> network.in_support([[0.2], [3.5], [9.0]])
    array([ True,  True, False])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ParzenEstimator._parameter_constraints,
        "radius": [StrOptions({"conditional", "loo"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: Any = "gaussian",
        radius: float | str = "conditional",
        *,
        standardize: bool = True,
        class_prior: Any = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.radius = radius
        self.standardize = standardize
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Keep the rows and choose the radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; they become the kernels.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which the radius is chosen; None leaves out training rows.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : ParzenClassifier
            The fitted estimator.
        """
        door, data = self._complete_data(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        space = self._space(data, door.columns)
        rows = self._parzen_rows(data, space)
        prior = self._prior_given(door)
        validation = self._validation_rows(X_val, y_val, door, space)
        if self.radius == "conditional" and isinstance(self._profile, GaussianProfile):
            network = conditional_network(rows, prior, rng, validation)
        else:
            config = ParzenConfig(self._profile, self._inner_radius(space), prior)
            network = full_network(rows, config, rng, validation)
        z = np.asarray(data.rows.x, np.float64)  # type: ignore[attr-defined]
        self._fitted = FittedParzen(**self._record(network, rows, z, space, door))
        return self

    def leave_one_out_log_proba(self) -> np.ndarray:
        """log P(C_k|x) of every training row by the votes of all rows that differ from it.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
            In the order of the training rows; those of weight zero are left out.
        """
        check_is_fitted(self)
        fitted = self._fitted
        found = np.empty((len(fitted.kernels), len(fitted.classes)))
        order = np.argsort(np.argsort(fitted.kept_indices))
        found[order] = leave_one_out_scores(
            self._profile, fitted.params(grouped=True), fitted.temperature
        )
        return found

    def _describe(self) -> Description:
        return Description(
            f"A {self._profile.noun} of radius {self.radius_:.4g} at each of "
            f"{len(self.kernels_):,} training rows in "
            f"{features_text(self)}; the one of {classes_text(self)} with the most votes wins.",
            self._pool(),
        )


class ReducedParzenClassifier(ParzenEstimator):
    r"""A Parzen classifier with few kernels: edited, then reduced to those that best represent the
    rest.

    First the rows that lie among those of another class are edited away (`MultiEdit`): they cannot
    win a vote. Then, class by class, those K of the N kernels are kept whose density is closest to
    that of all of them, by Fukunaga's entropy criterion :math:`\sum_i \ln(p_K(x_i) / p_N(x_i))`.
    Kernels start as those of kernel herding (Chen, Welling & Smola 2010) and are exchanged for
    others as long as the criterion rises. Few kernels represent a density best at a larger radius
    than many do: the densities are compared at multiples of the radius of the full network, up to
    16, and the multiple is taken whose kernels then classify the training rows best, none voting
    for itself. A row that stands several times counts as one row of more weight.

    Parameters
    ----------
    n_kernels : int, float or "auto", default=0.05
        How many kernels to keep, in all, or what share of the distinct rows; they are dealt out to
        the classes in proportion to the rows left of each. "auto" takes the smallest number whose
        error is within `tolerance` of the full network's, by cross-validation; all rows where half
        of them are not enough.
    kernel : {"hypersphere", "gaussian", "epanechnikov"} or Profile, default="hypersphere"
        As in `ParzenClassifier`.
    radius : float or "loo", default="loo"
        The common radius. "loo" chooses one by leave-one-out for the full network, with which rows
        are edited, and one for the reduced network: the radius at which its kernels classify the
        training rows best, or `X_val` of `fit`.
    edit : bool, "auto" or resampler, default="auto"
        Whether to edit first, as the paper does: with what the first round of `MultiEdit` leaves or
        with what is left at its end, whichever then classifies the training rows better. "auto" may
        take all rows as well. Or an object that edits, a `MultiEdit` or any other with
        `fit_resample` and `sample_indices_`.
    tolerance : float, default=0.01
        For ``n_kernels="auto"``: by how much the error may exceed that of the full network. The
        excess found must stay below it by a standard error, or by half of the tolerance where that
        is less.
    class_prior : array-like of shape (n_classes,), "balanced", dict or None, default=None
        Prior probabilities of the classes. None lets every kernel vote alike.
    standardize : bool, default=True
        As in `ParzenClassifier`. Certificates need False: the scale of the features depends on all
        rows, not on the kernels.
    categorical_features : "from_dtype", sequence, Columns or None, default="from_dtype"
        As in `ParzenClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the editing, of the candidates, and of `sample`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    radius_ : float
        Radius of the kernels, between features of variance one where `standardize` is set.
    temperature_ : float
        Always 1; see `ParzenClassifier`.
    location_, scale_ : ndarray of shape (n_columns,)
        Mean of the columns, and what they are divided by: their deviations, or ones.
    full_radius_ : float
        Radius of the full network, at which rows were edited.
    radii_, radius_errors_ : ndarray
        Candidates for `radius_` and their errors on the training rows, where it was chosen.
    kernels_, kernel_classes_, kernel_weights_ : ndarray
        The kernels kept, sorted by class, with their classes and votes, one each; see
        `ParzenClassifier`.
    kept_indices_ : ndarray of shape (n_kernels,)
        Their positions in the training rows.
    edited_indices_ : ndarray
        The training rows among which kernels were chosen: those that editing left, or all.
    criterion_ : ndarray of shape (n_classes,)
        Mean :math:`\ln(p_K / p_N)` over the edited rows of each class, with equal votes. The
        integral that it stands for is never positive, and zero where both densities agree; a mean
        over rows may exceed it and be positive.
    curve_ : list of (int, float)
        For ``n_kernels="auto"``: the sizes tried and their errors on held-out rows; of a hopeless
        size, on some of them.
    full_error_ : float
        For ``n_kernels="auto"``: that of the full network, each row left out of its own vote.
    n_rows_ : int
        Training rows.
    validation_error_ : float
        Share of the validation rows that the network misclassifies, where they chose.
    n_tried_ : int
        Networks among which validation rows may have chosen, for `bounds.certify`.
    n_choices_ : int
        Radii that might have been taken, for `bounds.certify_by_compression`; 0 where the network
        depends on more.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based
    networks", IJCNN 1991. K. Fukunaga and R. R. Hayes, "The reduced Parzen classifier", IEEE PAMI
    11(4), 1989. Y. Chen, M. Welling and A. Smola, "Super-samples from kernel herding", UAI 2010.

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
        **ParzenEstimator._parameter_constraints,
        "n_kernels": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "radius": [StrOptions({"loo"}), Interval(Real, 0, None, closed="neither")],
        "edit": ["boolean", StrOptions({"auto"}), HasMethods("fit_resample")],
        "tolerance": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_kernels: int | float | str = 0.05,
        *,
        kernel: Any = "hypersphere",
        radius: float | str = "loo",
        edit: Any = "auto",
        tolerance: float = 0.01,
        class_prior: Any = None,
        standardize: bool = True,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
    ) -> None:
        self.n_kernels = n_kernels
        self.kernel = kernel
        self.radius = radius
        self.edit = edit
        self.tolerance = tolerance
        self.class_prior = class_prior
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Edit the rows, choose the kernels among those left, and choose their radius.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best network tried so far, if
        there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; those of weight zero take no part. Editing counts every distinct
            row once.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Validation rows, the paper's test set: of the subsets of kernels and, with
            ``radius="loo"``, radii that are tried, the network is kept that misclassifies the
            fewest of them. Their error, `validation_error_`, is that of the best of `n_tried_`
            networks (`bounds.certify`).
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : ReducedParzenClassifier
            The fitted estimator.
        """
        door, data = self._complete_data(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        space = self._space(data, door.columns)
        rows = self._parzen_rows(data, space).merged()
        validation = self._validation_rows(X_val, y_val, door, space)
        size = self._size(rows)
        if validation is not None and size is None:
            raise KernelpoolError(
                "Validation rows choose among networks of one size; give n_kernels as a number, "
                'not "auto".'
            )
        config = ParzenConfig(self._profile, self._inner_radius(space), self._prior_given(door))
        edit = self.edit if isinstance(self.edit, bool | str) else _editor(self.edit, space)
        reduction = Reduction(rows, config, rng, edit, validation)
        search = None
        interrupted = False
        try:
            if size is None:
                search = SizeSearch(reduction, float(self.tolerance))
                network = search.build()
            else:
                network = reduction.reduce(size)
        except KeyboardInterrupt:
            if reduction.best_trial is None:
                raise
            network = reduction.best_trial
            interrupted = True
        z = np.asarray(data.rows.x, np.float64)  # type: ignore[attr-defined]
        fields = self._record(network, rows, z, space, door)
        # a certificate needs a network that depends on its kernels and a radius from the fixed list
        # alone
        simple = self.class_prior is None and not self.standardize and data.observed is None
        simple = simple and not any(door.columns.levels) and len(set(fields["kernel_weights"])) == 1
        given = not isinstance(self.radius, str)
        in_list = given or 2.0**-32 <= fields["radius"] < 2.0**32
        self._fitted = FittedReducedParzen(
            **fields,
            full_radius=reduction.full_radius * space.unit,
            criterion=network.criterion,
            edited_indices=np.sort(rows.index[network.pool]),
            n_rows=len(z),
            n_choices=(1 if given else 64 * OCTAVE) if simple and in_list else 0,
            curve=None if search is None else search.curve,
            full_error=None if search is None else search.full_error,
            validation_error=None if validation is None else network.error,
            n_tried=None if validation is None else reduction.n_tried,
        )
        if interrupted:
            raise KeyboardInterrupt("interrupted; the best network tried so far was kept")
        return self

    def _size(self, rows: ParzenRows) -> int | None:
        """How many kernels to keep; None if that is to be found."""
        n = len(rows.x)
        n_classes = len(np.unique(rows.codes))
        if self.n_kernels == "auto":
            return None
        size = self.n_kernels
        if not isinstance(size, Integral):
            size = max(n_classes, round(float(size) * n))
        if size > n:
            raise KernelpoolError(
                f"n_kernels must not exceed the number of distinct rows, {n}; got {size}."
            )
        if size < n_classes:
            raise KernelpoolError(
                f"n_kernels must be at least the number of classes, {n_classes}; got {size}."
            )
        return int(size)

    def _describe(self) -> Description:
        edited = len(self.edited_indices_)
        left = "" if edited == self.n_rows_ else f", {edited:,} of which editing had left"
        return Description(
            f"{plural(len(self.kernels_), self._profile.noun)} of radius {self.radius_:.4g}, "
            f"chosen from {self.n_rows_:,} "
            f"training rows{left}, for {classes_text(self)} in {features_text(self)}.",
            self._pool(),
        )


def _editor(resampler: Any, space: Space) -> Editor:
    """The positions of the rows that a resampler keeps, as a function of rows and codes."""

    def kept(x: np.ndarray, codes: np.ndarray) -> np.ndarray:
        own = clone(resampler) if isinstance(resampler, BaseEstimator) else resampler
        own.fit_resample(x * space.unit, codes)
        if not hasattr(own, "sample_indices_"):
            raise KernelpoolError(
                f"edit must list the rows that it kept in sample_indices_; {type(own).__name__} "
                f"does not."
            )
        return np.unique(own.sample_indices_)

    return kept
