"""Multi-edit: drop the rows that lie among those of another class."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state, check_X_y
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.multiclass import check_classification_targets

from ..base.constraints import COUNT
from ..base.estimator import Estimator
from ..complete.classifier import TabularClassifier
from ..data.door import learned_rows
from ..errors import KernelpoolError
from ..records import saved
from ..tables.columns import Columns
from .classifier import ParzenClassifier
from .reduce import multi_edit


@saved
class FittedMultiEdit:
    """The fitted state of a `MultiEdit`."""

    columns: Columns
    classifier: Any
    sample_indices: np.ndarray
    history: np.ndarray
    n_iter: int
    converged: bool
    spared_classes: np.ndarray


class MultiEdit(Estimator):
    """Edit a learning set until the classes no longer overlap.

    The rows are split at random into P > 2 parts, part i is classified by part i + 1 (the last by
    the first), the rows that were misclassified are dropped, and the rest are pooled; again, until
    nothing was dropped for some rounds. What is left represents of every class only the regions in
    which it is the densest, which is all that a classifier needs.

    It follows imbalanced-learn's convention for resamplers and works in its pipelines;
    imbalanced-learn itself is not needed.

    Parameters
    ----------
    classifier : classifier or None, default=None
        What classifies a part. None is the paper's: a `ParzenClassifier`, whose radius is chosen
        once, by leave-one-out on a random part. ``KNeighborsClassifier(1)`` gives Devijver &
        Kittler's original.
    n_splits : int, default=3
        Parts P, at least three: with two, each part would be classified by the very rows that it
        classifies.
    n_iter_no_change : int, default=3
        Rounds in a row without a change, I, after which to stop.
    max_iter : int, default=100
        Largest number of rounds.
    random_state : int, RandomState instance or None, default=None
        Seed of the parts.

    Attributes
    ----------
    sample_indices_ : ndarray
        The rows that were kept, in the order of X.
    history_ : ndarray
        Rows left after each round, from all of them on.
    n_iter_ : int
        Rounds made.
    converged_ : bool
        Whether the last `n_iter_no_change` rounds dropped nothing.
    spared_classes_ : ndarray
        Classes of which a round would have dropped every row; their rows were kept in that round.
    classifier_ : classifier
        What classified the parts.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based
    networks", IJCNN 1991. P. A. Devijver and J. Kittler, "Pattern Recognition: A Statistical
    Approach", Prentice Hall 1982.

    Examples
    --------
    >>> from kernelpool import MultiEdit
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(2000, random_state=0)
    >>> X_kept, y_kept = MultiEdit(random_state=0).fit_resample(X, y)
    >>> len(X), len(X_kept)
    (2000, 1680)
    """

    _estimator_type = "sampler"
    _sampling_type = "bypass"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "classifier": [HasMethods(["fit", "predict"]), None],
        "n_splits": [Interval(Integral, 3, None, closed="left")],
        "n_iter_no_change": COUNT,
        "max_iter": COUNT,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_splits: int = 3,
        n_iter_no_change: int = 3,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.n_splits = n_splits
        self.n_iter_no_change = n_iter_no_change
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the rows to keep; see `sample_indices_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : MultiEdit
            The fitted resampler.
        """
        self.fit_resample(X, y)
        return self

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The rows that are left, and their labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        X_resampled : array-like of shape (n_samples_new, n_features)
            Of the kind of X.
        y_resampled : array-like of shape (n_samples_new,)
            Of the kind of y.
        """
        columns, x = learned_rows(X, None, type(self).__name__)
        x, labels = check_X_y(x, y, estimator=self)
        check_classification_targets(labels)
        if len(x) < self.n_splits:
            raise KernelpoolError(
                f"n_splits={self.n_splits} needs at least as many rows; got {len(x)} samples."
            )
        classes, codes = np.unique(labels, return_inverse=True)
        rng = check_random_state(self.random_state)
        classifier = self._classifier(x, codes, rng)

        numbers = Columns.numbers(x.shape[1], complete=True)

        def predict(train: np.ndarray, test: np.ndarray) -> np.ndarray:
            model = clone(classifier)
            if isinstance(model, TabularClassifier):
                model.set_params(categorical_features=numbers)
            return np.asarray(model.fit(x[train], codes[train]).predict(x[test]))

        left, history, converged, spared = multi_edit(
            codes,
            predict,
            rng,
            n_splits=self.n_splits,
            n_iter_no_change=self.n_iter_no_change,
            max_iter=self.max_iter,
        )
        self._fitted = FittedMultiEdit(
            columns, classifier, left, history, len(history) - 1, converged, classes[spared]
        )
        return _safe_indexing(X, left), _safe_indexing(y, left)

    def _classifier(self, x: np.ndarray, codes: np.ndarray, rng: np.random.RandomState) -> Any:
        """The classifier of the parts; the radius of the default one is chosen on one part."""
        if self.classifier is not None:
            return clone(self.classifier)
        part = rng.permutation(len(x))[: max(2, len(x) // self.n_splits)]
        if len(np.unique(codes[part])) < 2:
            part = np.arange(len(x))
        network = ParzenClassifier("hypersphere", 1.0, standardize=False)
        if len(np.unique(codes[part])) < 2:
            return network
        by_part = clone(network).set_params(radius="loo", random_state=rng)
        return network.set_params(radius=by_part.fit(x[part], codes[part]).radius_)
