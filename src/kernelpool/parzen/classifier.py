"""Parzen classifiers, full and reduced: the scikit-learn estimators of `kernelpool.parzen.fit` and
`kernelpool.parzen.reduce`.
"""

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ..base.classifier import ArrayFunction, DensityClassifier
from ..base.constraints import COUNT, POSITIVE, PRIOR
from ..complete.classifier import CompleteDoor, TabularClassifier
from ..data.labels import class_prior_for
from ..inspection.description import Description, KernelTable, classes_text, features_text
from ..records import replaced
from ..text import plural
from .fit import ParzenSettings, fit_parzen
from .network import PROFILES, FittedParzen, Profile, kernel_posterior
from .onnx import to_graph
from .reduce import FittedReducedParzen, ReducedSettings, fit_reduced


class ParzenEstimator(TabularClassifier, DensityClassifier):
    """Kernels of one radius and predictions from them."""

    n_jobs = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TabularClassifier._parameter_constraints,
        "kernel": [StrOptions(set(PROFILES)), Profile],
        "class_prior": PRIOR,
        "standardize": ["boolean"],
        "random_state": ["random_state"],
    }

    def _inputs(
        self, settings: type[Any], X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> tuple[CompleteDoor, tuple[Any, ...]]:
        """The door of the fitted record, and what the functions that fit a network take."""
        door, data = self._complete_data(X, y, sample_weight, merge=False)
        prior = None
        if self.class_prior is not None:
            prior = class_prior_for(self.class_prior, door.classes, door.class_share)
            door = replace(door, class_share=prior)
        n_numbers = sum(not n for n in door.columns.levels)
        resolved: Any = self._settings(settings, class_prior=prior)
        rng = check_random_state(self.random_state)
        return door, (data, n_numbers, resolved, rng, self._validation(door, X_val, y_val))

    def _discriminative(self, rows: np.ndarray) -> ArrayFunction:
        return self._scores(rows)

    def _density(self, rows: np.ndarray) -> ArrayFunction:
        fitted = self._fitted
        z = fitted.door.columns.indicators(rows)
        return ArrayFunction(partial(fitted.network.log_density, z))

    def _posterior(self, rows: np.ndarray) -> ArrayFunction:
        kernels_of = partial(self._fitted.network.of_rows, kernel_posterior)
        return ArrayFunction(partial(self._fitted.door.averaged, rows, kernels_of))

    def _set_class_prior(self, class_prior: np.ndarray) -> None:
        fitted = replaced(self._fitted, "class_prior", class_prior)
        self._fitted = replaced(fitted, "class_share", class_prior)

    def in_support(self, X: Any) -> np.ndarray:
        """Whether any kernel covers each row; where none does, `predict` returns the class of the
        nearest kernel, of several equally far ones that with the most votes.

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
        return self._fitted.door.averaged(x, self._fitted.network.covered) > 0

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        columns = self.columns_
        z = self._fitted.network.sample(codes, sum(not n for n in columns.levels), rng)
        x = np.empty((len(z), len(columns)))
        for i, n in enumerate(columns.levels):
            own = z[:, columns.sources == i]
            x[:, i] = np.where(own.any(axis=1), own.argmax(axis=1), n - 1) if n else own[:, 0]
        return x

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)

    def _kernel_table(self) -> KernelTable:
        network = self._fitted.network
        codes = network.params.codes
        share = network.kernel_weights * (network.class_prior / network.votes)[codes]
        scale = network.space.scale
        variance = network.radius**2 * network.profile.variance(len(scale)) * scale**2
        shapes = {}
        if not any(self.columns_.levels):  # with categories kernels are in the space of indicators
            variance = np.broadcast_to(variance, network.kernels.shape)
            shapes = {"mean": network.kernels, "variance": variance}
        return KernelTable(share / share.sum(), np.eye(len(self.classes_))[codes], **shapes)


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
        from `kernelpool.parzen.network.Profile`.
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
        "radius": [StrOptions({"conditional", "loo"}), *POSITIVE],
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
        door, inputs = self._inputs(ParzenSettings, X, y, sample_weight, X_val, y_val)
        self._fitted = FittedParzen(door, fit_parzen(*inputs))
        return self

    def leave_one_out_log_proba(self) -> np.ndarray:
        """log P(C_k|x) of every training row by the votes of all rows that differ from it.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
            In the order of the training rows; those of weight zero are left out.
        """
        network = self._fitted.network
        return network.leave_one_out_log_proba()[np.argsort(network.kept_indices)]

    def _describe(self) -> Description:
        return Description(
            f"A {self._fitted.network.profile.noun} of radius {self.radius_:.4g} at each of "
            f"{len(self.kernels_):,} training rows in "
            f"{features_text(self)}; the one of {classes_text(self)} with the most votes wins.",
            self._kernel_table(),
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
        As in `ParzenClassifier`.
    standardize : bool, default=True
        As in `ParzenClassifier`. Certificates need False: the scale of the features depends on all
        rows, not on the kernels.
    categorical_features : "from_dtype", sequence, Columns or None, default="from_dtype"
        As in `ParzenClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the editing, of the candidates, and of `sample`.

    Attributes
    ----------
    classes_, class_prior_, location_, scale_ : ndarray
        As in `ParzenClassifier`.
    radius_, temperature_ : float
        As in `ParzenClassifier`; the temperature is always 1.
    full_radius_ : float
        Radius of the full network, at which rows were edited.
    radii_, radius_errors_ : ndarray
        Candidates for `radius_` and their errors on the training rows, where it was chosen.
    kernels_, kernel_classes_, kernel_weights_, kept_indices_ : ndarray
        The kernels kept, as in `ParzenClassifier`; one vote each.
    edited_indices_ : ndarray
        The training rows among which kernels were chosen: those that editing left, or all.
    criterion_ : ndarray of shape (n_classes,)
        Mean :math:`\ln(p_K / p_N)` over the edited rows of each class, with equal votes. The
        integral that it stands for is never positive, and zero where both densities agree; a mean
        over rows may exceed it and be positive.
    curve_ : list of (int, float)
        Where ``n_kernels="auto"``: the sizes tried and their errors on held-out rows; of a hopeless
        size, on some of them.
    full_error_ : float
        Where ``n_kernels="auto"``: that of the full network, each row left out of its own vote.
    n_rows_ : int
        Training rows.
    validation_error_ : float
        Share of the validation rows that the network misclassifies, where they chose.
    n_tried_ : int
        Where validation rows chose: networks among which they may have, for `bounds.certify`.
    n_choices_ : int
        Radii that might have been taken, for `bounds.certify_by_compression`; 0 where the network
        depends on more.
    n_features_in_, feature_names_in_ : int, ndarray
        As in `ParzenClassifier`.

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
            *COUNT,
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "radius": [StrOptions({"loo"}), *POSITIVE],
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
        door, inputs = self._inputs(ReducedSettings, X, y, sample_weight, X_val, y_val)
        network, history, interrupted = fit_reduced(*inputs)
        self._fitted = FittedReducedParzen(door, network, history)
        if interrupted:
            raise KeyboardInterrupt("interrupted; the best network tried so far was kept")
        return self

    def _describe(self) -> Description:
        edited = len(self.edited_indices_)
        left = "" if edited == self.n_rows_ else f", {edited:,} of which editing had left"
        return Description(
            f"{plural(len(self.kernels_), self._fitted.network.profile.noun)} of radius {self.radius_:.4g}, "
            f"chosen from {self.n_rows_:,} "
            f"training rows{left}, for {classes_text(self)} in {features_text(self)}.",
            self._kernel_table(),
        )
