"""What a fitted model is made of, without any rows: a sentence, and its kernels with their shares
and classes.

=====================  ===================  ======================================================
paper                  here                 meaning
=====================  ===================  ======================================================
:math:`P(j)`           ``share``            of a kernel in the whole mixture; they sum to one
:math:`P(C_k|j)`       ``class_posterior``  of a row that a kernel generated
=====================  ===================  ======================================================

Every estimator of the library returns its own `Description` from ``_describe()``. Reports,
notebooks, the command line, model files and ONNX models read it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import FAMILIES, Kernels
from ..text import plural


@dataclass(frozen=True)
class Pool:
    """The kernels of a fitted model, or its neurons, in the order of its attributes."""

    share: np.ndarray
    """P(j), (M,)."""
    class_posterior: np.ndarray | None = None
    """P(C_k|j), (M, K); None where it is defined for rows only."""
    mean: np.ndarray | None = None
    """(M, d)."""
    variance: np.ndarray | None = None
    """Along each feature, (M, d)."""
    covariance: np.ndarray | None = None
    """(M, d, d), or (d, d) for all; None where features are independent within a kernel."""
    weight: np.ndarray | None = None
    """Slopes of neurons, (M, outputs, d), or weights of kernels in the output layer, (M,
    outputs).
    """
    group: tuple[str, ...] = ()
    """The network that each belongs to, where there are several."""
    rows: np.ndarray | None = None
    """Indices of the training rows that are the kernels, (M,), in Parzen networks."""
    word: str = "kernel"

    def __len__(self) -> int:
        return len(self.share)

    def largest(self, n: int) -> np.ndarray:
        """At most n kernels, those with the greatest shares; equidistant ones if all shares are
        equal.
        """
        if len(self) > n and np.ptp(self.share) < 1e-12 * self.share.max():
            return np.linspace(0, len(self) - 1, n).astype(int)
        return np.argsort(-self.share, kind="stable")[:n]


@dataclass(frozen=True)
class Description:
    """A fitted model in a sentence or two, and its kernels where it has any."""

    sentence: str
    pool: Pool | None = None


def describe(estimator: Any) -> Description:
    """The description of a fitted estimator; without kernels if it is not one of this library."""
    if hasattr(type(estimator), "_describe"):
        description: Description = estimator._describe()
        return description
    return Description(f"A fitted {type(estimator).__name__}.")


# -- parts of the descriptions -------------------------------------------------------------------


def gaussian_shapes(estimator: Any) -> dict[str, Any]:
    """Means, variances and covariances of Gaussian kernels, as `Pool` has them."""
    family = FAMILIES[_family(estimator)]
    kernels = Kernels(np.asarray(estimator.means_), np.asarray(estimator.covariances_))
    variance = family(np.zeros(kernels.mean.shape[1])).variances(kernels)
    covariance = kernels.covariance if family.matrices else None
    variance = np.broadcast_to(variance, kernels.mean.shape)
    return {"mean": kernels.mean, "variance": variance, "covariance": covariance}


def shared_pool(estimator: Any) -> Pool:
    """Gaussian kernels with mixing weights of every class, (M, K)."""
    joint = estimator.mixing_ * estimator.class_prior_
    share, total = joint.sum(axis=1), joint.sum(axis=1, keepdims=True)
    even = 1 / joint.shape[1]  # where a kernel has no weight in any class
    posterior = np.where(total > 0, joint / np.where(total > 0, total, 1), even)
    return Pool(share / share.sum(), posterior, **gaussian_shapes(estimator))


def member_name(member: Any) -> str:
    """A network of an average by the settings in which it differs."""
    penalty = f", penalty {member.overlap_:g}" if member.overlap_ else ""
    return f"sharing {sharing_name(member)}{penalty}"


def sharing_name(estimator: Any) -> str:
    """The degree of sharing as a number or a word."""
    sharing = sharing_of(estimator)
    if isinstance(sharing, str):
        return sharing
    return "a table" if hasattr(sharing, "__len__") else f"{sharing:g}"


def sharing_of(estimator: Any) -> Any:
    """The degree of sharing: the chosen one where it was chosen automatically."""
    sharing = estimator.sharing
    return estimator.sharing_degree_ if isinstance(sharing, str) and sharing == "auto" else sharing


def sharing_text(sharing: Any) -> str:
    """How kernels are shared, before "n classes"."""
    if isinstance(sharing, str):  # "learned"
        return f"shared to {sharing} degrees between"
    if hasattr(sharing, "__len__"):
        return "shared, as a table says, between"
    if sharing == 0:
        return "that are not shared, a separate mixture for each of"
    return "shared fully between" if sharing == 1 else f"shared to the degree {sharing:g} between"


def gaussians_text(estimator: Any) -> str:
    """The family of Gaussian kernels, before "Gaussian"."""
    return "diagonal" if _family(estimator) == "diag" else _family(estimator)


def classes_text(estimator: Any) -> str:
    """The number of classes."""
    return plural(len(estimator.classes_), "class")


def features_text(estimator: Any) -> str:
    """The number of features."""
    return plural(estimator.n_features_in_, "feature")


def training_text(estimator: Any, fitted: str = ", fitted by EM") -> str:
    """The end of a sentence: the number of sweeps, and whether training converged."""
    n_sweeps = getattr(estimator, "n_iter_", None)
    if n_sweeps is None:  # made from known parameters
        return "."
    end = "" if getattr(estimator, "converged_", True) else "; training stopped before convergence"
    return f"{fitted} in {plural(int(n_sweeps), 'sweep')}{end}."


def refusals(estimator: Any) -> str:
    """When a `RejectClassifier` refuses a row, in a sentence."""
    rules = []
    if estimator.ambiguity_threshold_ is not None:
        percent = 100 * estimator.ambiguity_threshold_
        rules.append(f"ambiguous where the probability of an error exceeds {percent:.3g} %")
    if estimator.novelty_threshold_ is not None:
        rules.append(f"novel where log p(x) is below {estimator.novelty_threshold_:.4g}")
    if not rules:
        return "It may refuse rows, but no threshold is set."
    return f"It refuses a row as {' and as '.join(rules)}."


def _family(estimator: Any) -> str:
    """The second may be "auto"."""
    return str(getattr(estimator, "covariance_type_", estimator.covariance_type))
