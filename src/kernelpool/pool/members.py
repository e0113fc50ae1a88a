"""The classifiers that may become members of a pool.

A line of the table in `candidates_of` is a candidate: its name, the view in which it takes rows
(`kernelpool.pool.views`) and its settings. What else a pool uses of a classifier is declared once
for its class, in `KINDS`: another kind of network that has more than `predict_proba` gets a line
there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from ..complete.classifier import TabularClassifier
from ..errors import KernelpoolError
from ..mixtures.classifier import SharedKernelClassifier
from ..parzen.classifier import ParzenClassifier
from ..rbf.classifier import RBFNetworkClassifier
from ..tables.columns import Columns

SETS = ("auto", "fast")
"""The sets of members; the second has fewer networks."""


class Kind(NamedTuple):
    """What a pool uses of the classifiers of a class, beside their probabilities."""

    selects: bool = False
    """Whether `fit` selects by validation rows, and predicts each by what the others select."""
    leave_one_out: Callable[[Any], np.ndarray] | None = None
    """log P(C_k|x) of all training rows, each left out: such a network is trained once."""
    narrowed: Callable[[Any], Any] = clone
    """An unfitted copy with the settings that a fitted network has selected."""
    has_densities: bool = False


KINDS: dict[type, Kind] = {
    SharedKernelClassifier: Kind(selects=True, has_densities=True),
    RBFNetworkClassifier: Kind(selects=True, narrowed=RBFNetworkClassifier.narrowed),
    ParzenClassifier: Kind(leave_one_out=ParzenClassifier.leave_one_out_log_proba),
}


class Candidate(NamedTuple):
    """A classifier that may become a member, not fitted."""

    name: str
    estimator: Any
    view: str
    seconds: float = 0.0
    """That its fit is expected to take."""

    @property
    def kind(self) -> Kind:
        """What the pool uses of it."""
        kinds = (kind for cls, kind in KINDS.items() if isinstance(self.estimator, cls))
        return next(kinds, Kind())

    @property
    def has_densities(self) -> bool:
        """Whether its densities are of encoded rows, and so of use in the pool."""
        return self.kind.has_densities and self.view == "codes"

    def narrowed(self, fitted: Any) -> "Candidate":
        """The candidate with the settings that a fitted network of it has selected."""
        return self._replace(estimator=self.kind.narrowed(fitted))


def candidates_of(
    members: Any, n_classes: int, columns: Columns, missing: bool = False
) -> list[Candidate]:
    """The networks of a set, cheap ones first; or the classifiers that are listed.

    The first one of a set is always kept, so that every such pool has a mixture and with it
    densities.
    """
    if not isinstance(members, str):
        if not len(members):
            raise KernelpoolError("members must hold at least one classifier; got an empty list.")
        return [_named(i, member, columns) for i, member in enumerate(members)]
    categories = any(columns.levels)
    codes = columns.of_codes()

    def mixture(name: str, per_class: int, prior: str | None = None) -> Candidate:
        network = SharedKernelClassifier(
            per_class * n_classes,
            covariance_type=name.replace("diagonal", "diag"),
            sharing=0.0,
            kernel_prior="conjugate" if categories else prior,
            training="conditional",
            covariance_floor=1e-2,
            categorical_features=codes,
        )
        return Candidate(f"{name} mixture, {per_class} per class", network, "codes")

    def rbf(name: str, **settings: Any) -> Candidate:
        return Candidate(name, RBFNetworkClassifier(standardize=False, **settings), "scaled")

    default = SharedKernelClassifier(categorical_features=codes)
    parzen = ParzenClassifier(standardize=False)
    is_auto = members == "auto"
    table = [
        (categories, mixture("diagonal", 1)),
        (categories, mixture("full", 1)),
        (missing and not categories, Candidate("full mixture", default, "codes")),
        (not categories, mixture("tied", 1)),
        (True, rbf("RBF network, kernels of few features", max_features=3)),
        (not is_auto, mixture("diagonal", 3)),
        (True, rbf("RBF network")),
        (True, Candidate("Parzen network, warped", parzen, "warped")),
        (is_auto, Candidate("Parzen network", parzen, "scaled")),
        (is_auto and categories, mixture("tied", 2)),
        (is_auto and not categories, mixture("full", 1, prior="conjugate")),
        (is_auto, rbf("RBF network, learned metric", metric="learned")),
        (is_auto, mixture("diagonal", 8)),
    ]
    return [candidate for is_used, candidate in table if is_used]


def _named(i: int, member: Any, columns: Columns) -> Candidate:
    """The i-th classifier of a list, or its pair of a name and a classifier, as a candidate."""
    name, estimator = (
        member if isinstance(member, tuple) else (f"{type(member).__name__} {i + 1}", member)
    )
    if not HasMethods(["fit", "predict_proba"]).is_satisfied_by(estimator):
        raise KernelpoolError(
            f"members must be classifiers with predict_proba, or one of {list(SETS)}; {name} is "
            f"{estimator!r}."
        )
    if isinstance(estimator, SharedKernelClassifier | TabularClassifier):
        estimator = clone(estimator).set_params(categorical_features=columns.of_codes())
        return Candidate(name, estimator, "codes")
    view = "table" if get_tags(estimator).input_tags.allow_nan else "complete table"
    return Candidate(name, estimator, view)
