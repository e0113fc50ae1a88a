"""Multi-edit: drop the rows that lie among those of another class."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import KernelpoolError
from ..training.parzen import EditedRows, RoundInfo, multi_edit
from .parzen import ParzenClassifier


class MultiEdit(BaseEstimator):  # type: ignore[misc]
    """Edit a learning set until the classes no longer overlap.

    The rows are dealt at random into P > 2 parts, part i is classified by part i + 1 (the last by the first), the rows that
    were misclassified are dropped, the rest are pooled; again and again, until nothing was dropped for some rounds. What is
    left represents of every class only the regions in which it is the densest, which is all that a classifier needs.

    It follows imbalanced-learn's convention for resamplers and works in its pipelines; imbalanced-learn itself is not needed.

    Parameters
    ----------
    classifier : classifier or None, default=None
        What classifies a part. None is the paper's: a `ParzenClassifier`, whose radius is chosen once, by leave-one-out on a
        random part. ``KNeighborsClassifier(1)`` gives Devijver & Kittler's original.
    n_parts : int, default=3
        Parts P, at least three: with two, each part would be judged by the very rows that it judges.
    n_quiet : int, default=3
        Rounds in a row without an edit, I, after which to stop.
    max_rounds : int, default=100
        Most rounds.
    random_state : int, RandomState instance or None, default=None
        Seed of the parts.
    verbose : int, default=0
        1 prints a line each round.
    callback : callable or None, default=None
        Called after each round with a `RoundInfo`; a true answer ends the editing.

    Attributes
    ----------
    sample_indices_ : ndarray
        The rows that were kept, in the order of X.
    history_ : ndarray
        Rows left after each round, from all of them on.
    n_rounds_ : int
        Rounds made.
    quiet_ : bool
        Whether the last `n_quiet` rounds dropped nothing.
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
    M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.
    P. A. Devijver and J. Kittler, "Pattern Recognition: A Statistical Approach", Prentice Hall 1982.

    Examples
    --------
    >>> from kernelpool import MultiEdit
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(2000, random_state=0)
    >>> X_kept, y_kept = MultiEdit(random_state=0).fit_resample(X, y)
    >>> len(X_kept) < len(X)
    True
    """

    _estimator_type = "sampler"
    _sampling_type = "bypass"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "classifier": [HasMethods(["fit", "predict"]), None],
        "n_parts": [Interval(Integral, 1, None, closed="left")],
        "n_quiet": [Interval(Integral, 1, None, closed="left")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_parts: int = 3,
        n_quiet: int = 3,
        max_rounds: int = 100,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[RoundInfo], Any] | None = None,
    ) -> None:
        self.classifier = classifier
        self.n_parts = n_parts
        self.n_quiet = n_quiet
        self.max_rounds = max_rounds
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that was interrupted has seen the features, and kept no rows."""
        return hasattr(self, "sample_indices_")

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
        if self.n_parts < 3:
            raise KernelpoolError(
                f"n_parts must be at least 3: of two parts each would judge its own judge; got {self.n_parts}."
            )
        x, labels = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(labels)
        if len(x) < self.n_parts:
            raise KernelpoolError(
                f"n_parts={self.n_parts} needs at least as many rows; got {len(x)} samples."
            )
        classes, codes = np.unique(labels, return_inverse=True)
        rng = check_random_state(self.random_state)
        classifier = self._judge(x, codes, rng)

        def predict(judges: np.ndarray, part: np.ndarray) -> np.ndarray:
            return np.asarray(clone(classifier).fit(x[judges], codes[judges]).predict(x[part]))

        edited = multi_edit(
            codes,
            predict,
            rng,
            n_parts=self.n_parts,
            n_quiet=self.n_quiet,
            max_rounds=self.max_rounds,
            on_round=self._on_round,
        )
        self._set_edited(edited, classifier, classes)
        return _safe_indexing(X, edited.kept), _safe_indexing(y, edited.kept)

    def _set_edited(self, edited: EditedRows, classifier: Any, classes: np.ndarray) -> None:
        self.classifier_ = classifier
        self.sample_indices_, self.history_ = edited.kept, edited.history
        self.n_rounds_, self.quiet_ = len(edited.history) - 1, edited.quiet
        self.spared_classes_ = classes[edited.spared]

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Which rows were kept.

        Parameters
        ----------
        indices : bool, default=False
            Return positions, not a mask.

        Returns
        -------
        support : ndarray
            A mask over the rows of X, or their positions.
        """
        check_is_fitted(self)
        mask = np.zeros(int(self.history_[0]), bool)
        mask[self.sample_indices_] = True
        return self.sample_indices_ if indices else mask

    # -- rounds -----------------------------------------------------------------------------------------------------

    def _judge(self, x: np.ndarray, codes: np.ndarray, rng: np.random.RandomState) -> Any:
        """The classifier of the parts; the default one learns its radius on one part."""
        if self.classifier is not None:
            return clone(self.classifier)
        part = rng.permutation(len(x))[: max(2, len(x) // self.n_parts)]
        if len(np.unique(codes[part])) < 2:
            part = np.arange(len(x))
        if len(np.unique(codes[part])) < 2:
            return ParzenClassifier("hypersphere", 1.0, standardize=False)
        paper: dict[str, Any] = {"kernel": "hypersphere", "standardize": False}
        found = ParzenClassifier(radius="loo", random_state=rng, **paper).fit(x[part], codes[part])
        return ParzenClassifier(radius=found.radius_, **paper)

    def _on_round(self, info: RoundInfo) -> bool:
        """Report a round; True if the callback asks to stop."""
        if self.verbose:
            print(f"MultiEdit: round {info.round}, {info.n_dropped} dropped, {info.n_kept} left")
        return self.callback is not None and bool(self.callback(info))
