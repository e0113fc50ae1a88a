"""Average over degrees of sharing: the scikit-learn shell of Titsias & Likas 2001, section
III-B.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import check_random_state

from ..base.classifier import DensityClassifier
from ..errors import KernelpoolError, without_column_warnings
from ..inspection.description import (
    Description,
    classes_text,
    features_text,
    joined_tables,
    training_text,
)
from ..records import saved
from ..tables.columns import Columns
from ..text import plural
from .classifier import SharedKernelClassifier
from .description import gaussians_text, kernel_table, member_name, sharing_name
from .fit import Training, as_record, is_learned
from .fitted import Average
from .onnx import average_to_graph
from .start import check_degree


@saved
class FittedSharingAverage:
    """A fitted `SharingAverageClassifier`; see its attributes."""

    columns: Columns
    classes: np.ndarray
    class_prior: np.ndarray
    estimators: list[SharedKernelClassifier]
    n_iter: int
    converged: bool

    @property
    def densities(self) -> Average:
        """The mean of those of the networks."""
        mixtures = [member._fitted.network for member in self.estimators]
        return Average(mixtures, class_prior=self.class_prior)


class SharingAverageClassifier(MetaEstimatorMixin, DensityClassifier):  # type: ignore[misc]
    r"""Class densities averaged over several degrees of kernel sharing.

    One network is trained by EM for each value of `sharing`, all from the same start, and their
    class densities are averaged, :math:`p(x|C_k) = \frac1L \sum_i p(x|C_k, \lambda_i)` (equation
    (38); densities, not posteriors or votes). In the paper this was the best choice on average
    where the right degree of sharing is not known.

    Parameters
    ----------
    estimator : SharedKernelClassifier or None, default=None
        The network; its `sharing` and `training` play no part. None takes the paper's, with
        standardized features: ``SharedKernelClassifier.prbf(standardize=True)``.
    sharing : sequence of float or "learned", default=(0, 0.25, 0.5, 0.75, 1)
        Degrees of sharing, each in [0, 1] or "learned".
    overlap : sequence of float or Overlap, or None, default=None
        Overlap penalties: one network is trained for each with each degree of sharing. None takes
        that of `estimator`.

    Attributes
    ----------
    estimators_ : list of SharedKernelClassifier
        One for each value of `sharing` and `overlap`, the latter changing fastest.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    categories_ : list of (ndarray of str or None)
        The categories of each column, sorted, None for numbers; where there are any.
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
    M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation",
    IEEE Transactions on Neural Networks 12(5), 2001, section III-B.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier, SharingAverageClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> network = SharedKernelClassifier.prbf(12, random_state=0)
    >>> classifier = SharingAverageClassifier(network).fit(X, y)
    >>> [member.sharing for member in classifier.estimators_]
    [0, 0.25, 0.5, 0.75, 1]
    """

    takes_any_rows = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [SharedKernelClassifier, None],
        "sharing": ["array-like"],
        "overlap": ["array-like", None],
    }

    def __init__(
        self,
        estimator: SharedKernelClassifier | None = None,
        *,
        sharing: Sequence[float | str] = (0, 0.25, 0.5, 0.75, 1),
        overlap: Sequence[Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.sharing = sharing
        self.overlap = overlap

    @property
    def n_jobs(self) -> int | None:
        """Threads, as the network says."""
        return None if self.estimator is None else self.estimator.n_jobs

    @property
    def random_state(self) -> Any:
        """Seed, as the network says."""
        return None if self.estimator is None else self.estimator.random_state

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one network for each degree of sharing, all from one start.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; a source that can be read more than once.
        y : array-like of shape (n_samples,)
            Labels, as in `SharedKernelClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : SharingAverageClassifier
            The fitted estimator.
        """
        fitted: list[SharedKernelClassifier] = []
        for member in self._members():
            try:
                with without_column_warnings(bool(fitted)):
                    fitted.append(member.fit(X, y, sample_weight))
            except KeyboardInterrupt as error:
                if member.__sklearn_is_fitted__():
                    fitted.append(member)
                if not fitted:
                    raise
                self._keep(fitted)
                raise KeyboardInterrupt(f"interrupted; {len(fitted)} networks were kept") from error
        self._keep(fitted)
        return self

    def _members(self) -> list[SharedKernelClassifier]:
        """A network, not yet fitted, for every degree of sharing and overlap penalty; one seed, so
        that all start alike.
        """
        network = self.estimator
        if network is None:
            network = SharedKernelClassifier.prbf(standardize=True)
        degrees = list(self.sharing)
        penalties = [network.overlap] if self.overlap is None else list(self.overlap)
        if not degrees or not penalties:
            raise KernelpoolError(
                "sharing and overlap must hold at least one value; got an empty sequence."
            )
        for value in degrees:
            if not isinstance(value, str):
                check_degree(value, "Each value of sharing")
            elif not is_learned(value):
                raise KernelpoolError(
                    f"Each value of sharing must be a number in [0, 1] or 'learned'; got {value!r}."
                )
        seed = network.random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(2**31))
        training = replace(as_record(network.training, Training), method="em")
        common = {"random_state": seed, "training": training}
        return [
            clone(network).set_params(sharing=degree, overlap=penalty, **common)
            for degree, penalty in product(degrees, penalties)
        ]

    def _keep(self, members: list[SharedKernelClassifier]) -> None:
        first = members[0]._fitted
        self._fitted = FittedSharingAverage(
            first.columns,
            first.classes,
            first.network.class_prior,
            members,
            n_iter=max(member.n_iter_ for member in members),
            converged=all(member.converged_ for member in members),
        )

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return average_to_graph(x, self._fitted.densities)

    def _describe(self) -> Description:
        """The kernels of all networks, one network after the other."""
        members = self.estimators_
        tables = [kernel_table(member) for member in members]
        table = joined_tables(tables, [1.0] * len(tables), list(map(member_name, members)))
        strengths = dict.fromkeys(f"{member.overlap_:g}" for member in members)
        names = "sharing " + ", ".join(dict.fromkeys(sharing_name(member) for member in members))
        names += "" if list(strengths) == ["0"] else f"; overlap penalty {', '.join(strengths)}"
        sizes = sorted({len(member.means_) for member in members})
        size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return Description(
            f"An average of {plural(len(members), 'network')} ({names}), each of {size} "
            f"{gaussians_text(members[0].covariance_type_)} Gaussian kernels for {classes_text(self)} in "
            f"{features_text(self)}{training_text(self)}",
            table,
        )
