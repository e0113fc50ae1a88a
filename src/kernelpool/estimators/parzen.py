"""Parzen classifier: a scikit-learn shell of `kernelpool.networks.parzen`."""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from ..errors import KernelpoolError
from ..registry import BOOL, CLASSES, FEATURE_NAMES, EstimatorRecord, Field, register
from ..selection.held_out import split
from ..training.validation import Labeled, checked_prior, labeled
from .parzen_network import ParzenNetwork


class ParzenClassifier(ParzenNetwork):
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
        Centers, sorted by class.
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
        **ParzenNetwork._parameter_constraints,
        "radius": [StrOptions({"loo", "validation"}), Interval(Real, 0, None, closed="neither")],
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
        data = labeled(self, X, y, sample_weight)
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

    def _judge_by_some(self, data: Labeled, prior: np.ndarray | None, rng: np.random.RandomState) -> None:
        """The radius at which most rows classify the others best."""
        others, judged = split(data.codes, self.validation_fraction, rng)
        self._set_kernels(data, others, data.weight[others], prior)
        self.radius_ = self._best_radius(data, data.part(judged), np.full(len(judged), -1), rng)

    def _validation_rows(self, X_val: Any, y_val: Any, data: Labeled) -> Labeled:
        if y_val is None:
            raise KernelpoolError("y_val must be given with X_val.")
        x = np.asarray(validate_data(self, X_val, dtype=[np.float64, np.float32], reset=False))
        labels = np.asarray(y_val)
        if len(labels) != len(x):
            raise KernelpoolError(f"X_val has {len(x)} rows and y_val {len(labels)}; give one label a row.")
        unknown = sorted(set(labels.tolist()) - set(data.classes.tolist()), key=str)
        if unknown:
            raise KernelpoolError(f"y_val must hold labels of y, {data.classes.tolist()}; got {unknown[0]!r}.")
        codes = np.searchsorted(data.classes, labels)
        return Labeled(x, codes, np.ones(len(x)), np.arange(len(x)), data.classes, data.frame, data.variance)


PARZEN_FITTED = {
    **CLASSES,
    "class_prior_": Field("shares", ("K",)),
    "kernels_": Field("floats", ("M", "d"), float32=True),
    "kernel_classes_": Field("labels", ("M",)),
    "kernel_weights_": Field("floats", ("M",), low=0.0, float32=True),
    "kept_indices_": Field("integers", ("M",), distinct=True),
    "radius_": Field("float", low=0.0, open_low=True),
    "_votes": Field("floats", ("K",), low=0.0),
    "_prior_given": BOOL,
    "_origin": Field("floats", ("d",)),
    "_unit": Field("floats", ("d",), low=0.0, open_low=True),
    "_log_volume": Field("float"),
}
PARZEN_OPTIONAL = {
    **FEATURE_NAMES,
    "radii_": Field("floats", ("R",), low=0.0),
    "radius_errors_": Field("floats", ("R",), low=0.0),
}

register(
    EstimatorRecord(
        ParzenClassifier,
        describe="kernelpool.inspection.pool:describe_parzen",
        command="parzen",
        depends_on_units=True,
        has_density=True,
        fitted=PARZEN_FITTED,
        optional=PARZEN_OPTIONAL,
        parameters={"kernel": Field("choice", options=("hypersphere", "epanechnikov", "gaussian"))},
        rebuilt={"_trees": lambda model: model._plant_trees()},
        check="kernelpool.files.checks:parzen",
        probe=lambda model: model.kernels_,
        onnx="kernelpool.export.networks:parzen",
    )
)
