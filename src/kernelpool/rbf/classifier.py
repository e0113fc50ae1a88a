"""RBF network classifier: the scikit-learn estimator of `kernelpool.rbf.fit`."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from ..base.constraints import COUNT, NOT_NEGATIVE, POSITIVE
from ..base.monitor import print_sweep
from ..complete.classifier import CompleteDoor, KernelNetworkClassifier
from ..errors import KernelpoolError
from ..inspection.description import Description, KernelTable, classes_text, features_text
from ..records import nested, saved
from ..text import plural
from .fit import RBFSettings, fit_rbf
from .network import RBFNetwork
from .onnx import to_graph


@saved
class FittedRBF:
    """The fitted state of an `RBFNetworkClassifier`."""

    door: CompleteDoor = nested()
    network: RBFNetwork = nested()


class RBFNetworkClassifier(KernelNetworkClassifier):
    r"""Radial basis function network: many Gaussian kernels and a logistic readout.

    The kernels have one width and lie at k-means centers. The readout is a logistic regression on
    the kernels and on the features themselves. The width and the ridge of the readout are those
    with the least log-loss on held-out rows.

    Parameters
    ----------
    n_kernels : int, default=300
        Number of kernels M, at most half of the distinct rows.
    init : {"kmeans", "random"}, default="kmeans"
        Centers of the kernels: those of k-means, or random rows.
    width : float or None, default=None
        Standard deviation of the kernels, in units of `scale_`. None chooses one of five on
        held-out rows.
    ridge : float or None, default=None
        Strength of the ridge: half of it times the squared weights is added to the log-loss of all
        rows; the biases are free. None chooses one on held-out rows, of five or, where rows count
        more than three times or less than a third on average, of more.
    max_features : int or None, default=None
        Number of features that a kernel may depend on. None is all of them. With a number, kernels
        lie at rows, and each depends on one to so many features, drawn at random, as trees of a
        forest do. Two or three suit tables of many columns of which few interact.
    metric : {"learned"} or None, default=None
        "learned" takes distances in a linear map of the features under which near rows are of one
        class: neighborhood components (Goldberger et al. 2004), learned on a sample of 600 rows.
    standardize : bool, default=True
        Whether distances are taken between features of variance one, rather than between the
        features as they come.
    categorical_features : "from_dtype", sequence, Columns or None, default="from_dtype"
        Which columns of X are categorical, as in `SharedKernelClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers.
    verbose : int, default=0
        1 prints a line every ten settings, 2 a line for each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_ : ndarray of shape (n_kernels, n_columns)
        Centers of the kernels. The columns are the features; with categorical features the numbers
        and then one indicator for each category.
    mixing_ : ndarray of shape (n_kernels,)
        Fraction of the rows that are nearest to each center; equal with `max_features`.
    location_, scale_ : ndarray of shape (n_columns,)
        What is subtracted from the columns, and what they are divided by.
    width_ : float
        Standard deviation of the kernels, in units of `scale_`.
    readout_ : ndarray of shape (n_kernels + n_columns + 1, n_outputs)
        Weights of `activations`, of the scaled columns, and the bias. One output for two classes,
        the log-odds of the second; one output for each class otherwise.
    kernel_features_ : ndarray of bool of shape (n_kernels, n_columns)
        The columns that each kernel depends on, where `max_features` is set.
    metric_ : ndarray of shape (n_columns, n_columns)
        The map of the scaled columns in which distances are taken, where it was learned.
    ridge_ : float
        Strength of the ridge.
    loss_ : float
        Log-loss per row on held-out rows.
    losses_ : ndarray of shape (n_settings, 3)
        Width, ridge and held-out log-loss of each setting that was tried.
    validation_log_proba_ : ndarray of shape (n_validation_samples, n_classes)
        log P(C_k|x) of the rows of `X_val`, where there are any: of each fifth at the width and ridge
        that the others select. Not stored in model files.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    See Also
    --------
    EMLogClassifier : Few kernels of any shape, trained together with the readout.

    Examples
    --------
    Two classes that overlap everywhere; no classifier can err less than 9.7 %:

    >>> from kernelpool import RBFNetworkClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> network = RBFNetworkClassifier(random_state=0).fit(X, y)
    >>> print(f"{1 - network.score(X_test, y_test):.2f}")
    0.10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelNetworkClassifier._parameter_constraints,
        "n_kernels": COUNT,
        "init": [StrOptions({"kmeans", "random"})],
        "width": [*POSITIVE, None],
        "ridge": [*NOT_NEGATIVE, None],
        "max_features": [*COUNT, None],
        "metric": [StrOptions({"learned"}), None],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_kernels: int = 300,
        *,
        init: str = "kmeans",
        width: float | None = None,
        ridge: float | None = None,
        max_features: int | None = None,
        metric: str | None = None,
        standardize: bool = True,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.init = init
        self.width = width
        self.ridge = ridge
        self.max_features = max_features
        self.metric = metric
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which width and ridge are chosen. None holds a quarter of X out for that (of
            less than 500 rows each quarter in turn), and then trains on all of X.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Their weights.

        Returns
        -------
        self : RBFNetworkClassifier
            The fitted estimator.
        """
        if self.max_features is not None and self.metric is not None:
            raise KernelpoolError(
                "max_features and metric='learned' exclude each other: a linear map mixes the "
                "features."
            )
        door, data = self._complete_data(X, y, sample_weight)
        name = type(self).__name__
        seed = check_random_state(self.random_state).randint(2**31)
        network = fit_rbf(
            data,
            self._settings(RBFSettings, seed=seed),
            n_numbers=sum(not n for n in door.columns.levels),
            validation=self._validation(door, X_val, y_val, sample_weight_val),
            on_setting=lambda n, loss: print_sweep(self.verbose, name, n, -loss, float("nan")),
        )
        self._fitted = FittedRBF(door, network)
        return self

    def narrowed(self) -> Self:
        """An unfitted copy that tries the width of this network only.

        For networks fitted to other rows of the same data, as in cross-validation.

        Returns
        -------
        network : RBFNetworkClassifier
            Not fitted.
        """
        return clone(self).set_params(width=self.width_)

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x.indicators(self.columns_.levels), self._fitted.network)

    def _describe(self) -> Description:
        network = self._fitted.network
        inverse = np.diag(network.scale)
        if network.metric is not None:
            inverse = inverse @ np.linalg.inv(network.metric)
        variance = network.width**2 * (inverse**2).sum(axis=1)
        # with categories the kernels are in the space of the indicators
        shapes = {}
        if not any(self.columns_.levels):
            variance = np.broadcast_to(variance, network.means.shape)
            shapes = {"mean": network.means, "variance": variance}
        few = network.kernel_features is not None
        of_few = f", each of at most {self.max_features} of them," if few else ""
        return Description(
            f"A radial basis function network: {plural(len(network.means), 'Gaussian kernel')} of one "
            f"width in {features_text(self)}{of_few} and a logistic output layer for "
            f"{classes_text(self)} on them and on the features; width and ridge are the best of "
            f"{plural(len(network.losses), 'setting')}.",
            KernelTable(network.mixing, **shapes),
        )
