"""What a fitted model is made of, without any rows: its kernels, their shares and classes, and a sentence.

=====================  ==================  =============================================================
paper                  here                meaning
=====================  ==================  =============================================================
:math:`P(j)`           ``share``           of a kernel in the whole mixture; they sum to one
:math:`P(C_k|j)`       ``class_posterior``  what the model believes of a row that a kernel made
=====================  ==================  =============================================================
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from ..kernels import FAMILIES, Kernels
from .competitive import CompetitiveNeuronsClassifier
from .parzen import ParzenClassifier
from .parzen_network import ParzenNetwork
from .rbf_layers import RBFNetwork
from .rbf_network import RBFNetworkClassifier
from .reduced_parzen import ReducedParzenClassifier
from .reject import RejectClassifier
from .shared_kernel import SharedKernelClassifier
from .sharing_average import SharingAverageClassifier


@dataclass(frozen=True)
class Pool:
    """The kernels of a fitted model, or its neurons, in the order in which the model has them."""

    share: np.ndarray
    """P(j), (M,)."""
    class_posterior: np.ndarray | None = None
    """P(C_k|j), (M, K); None where only rows can tell."""
    mean: np.ndarray | None = None
    """(M, d)."""
    variance: np.ndarray | None = None
    """Along each feature, (M, d)."""
    covariance: np.ndarray | None = None
    """(M, d, d), or (d, d) for all; None where features are independent within a kernel."""
    weight: np.ndarray | None = None
    """Slopes of neurons, (M, outputs, d), or weights of kernels in the output layer, (M, outputs)."""
    group: tuple[str, ...] = ()
    """The network that each belongs to, where there are several."""
    rows: np.ndarray | None = None
    """The training rows that the kernels are, (M,), where they are rows."""
    word: str = "kernel"

    def __len__(self) -> int:
        return len(self.share)


@singledispatch
def pool_of(estimator: Any) -> Pool | None:  # noqa: ARG001
    """Kernels of a fitted model; None where it is none of this library's."""
    return None


@singledispatch
def sentence_of(estimator: Any) -> str:
    """A fitted model in a sentence or two."""
    return f"A fitted {type(estimator).__name__}."


# -- shared kernels -----------------------------------------------------------------------------------------------


@pool_of.register
def _(estimator: SharedKernelClassifier) -> Pool:
    joint = estimator.mixing_ * estimator.class_prior_  # (M, K)
    share = joint.sum(axis=1)
    return Pool(share / share.sum(), _divided(joint), **_shapes(estimator))


@sentence_of.register
def _(estimator: SharedKernelClassifier) -> str:
    n = counted(len(estimator.means_), f"{_shape(estimator)} Gaussian kernel")
    split = ", split by class in the end," if estimator.split_by_class else ""
    return f"{n} {_shared(_degree(estimator))} {_classes(estimator)}{split} in {_features(estimator)}{_trained(estimator)}"


@pool_of.register
def _(estimator: SharingAverageClassifier) -> Pool:
    members = estimator.estimators_
    pools: list[Any] = [pool_of(member) for member in members]
    weight = member_weights(estimator)
    parts: dict[str, Any] = {
        name: [getattr(pool, name) for pool in pools] for name in ("class_posterior", "mean", "variance", "covariance")
    }
    if estimator.covariance_type == "tied":  # one matrix a network, not one for all
        parts["covariance"] = [np.broadcast_to(c, (len(p), *c.shape)) for c, p in zip(parts["covariance"], pools, strict=True)]
    joined: dict[str, Any] = {name: None if arrays[0] is None else np.concatenate(arrays) for name, arrays in parts.items()}
    share = np.concatenate([w * pool.share for w, pool in zip(weight, pools, strict=True)])
    group = tuple(member_name(member) for member, pool in zip(members, pools, strict=True) for _ in range(len(pool)))
    return Pool(share, group=group, **joined)


@sentence_of.register
def _(estimator: SharingAverageClassifier) -> str:
    members = estimator.estimators_
    strengths = dict.fromkeys(f"{member.overlap_penalty_:g}" for member in members)
    names = "sharing " + ", ".join(dict.fromkeys(_degree_name(member) for member in members))
    names += "" if list(strengths) == ["0"] else f"; overlap penalty {', '.join(strengths)}"
    sizes = sorted({len(member.means_) for member in members})
    size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return (
        f"An average of {counted(len(members), 'network')} ({names}), each of {size} {_shape(estimator)} "
        f"Gaussian kernels for {_classes(estimator)} in {_features(estimator)}{_trained(estimator)}"
    )


def member_weights(estimator: SharingAverageClassifier) -> np.ndarray:
    """Of the networks in the average, (L,); they sum to one."""
    weight = getattr(estimator, "weights_", None)
    weight = np.ones(len(estimator.estimators_)) if weight is None else np.asarray(weight, np.float64)
    return np.asarray(weight / weight.sum())


def member_name(member: SharedKernelClassifier) -> str:
    """A network of an average by what sets it apart."""
    return f"sharing {_degree_name(member)}" + (f", penalty {member.overlap_penalty_:g}" if member.overlap_penalty_ else "")


def _degree_name(member: SharedKernelClassifier) -> str:
    sharing = _degree(member)
    return sharing if isinstance(sharing, str) else "a table" if hasattr(sharing, "__len__") else f"{sharing:g}"


# -- Parzen networks ----------------------------------------------------------------------------------------------


@pool_of.register
def _(estimator: ParzenNetwork) -> Pool:
    codes = np.searchsorted(estimator.classes_, estimator.kernel_classes_)
    prior = np.asarray(estimator.class_prior_)
    votes = np.bincount(codes, estimator.kernel_weights_, minlength=len(prior))
    share = estimator.kernel_weights_ * (prior / np.where(votes > 0, votes, 1))[codes]
    mean = np.asarray(estimator.kernels_, np.float64)
    # the standard deviation of a ball of radius r is r / sqrt(d + 2) along each feature, that of 1 - u² r / sqrt(d + 4)
    shrunk = {"gaussian": 1.0, "epanechnikov": mean.shape[1] + 4.0}.get(str(estimator.kernel), mean.shape[1] + 2.0)
    variance = np.broadcast_to(estimator.radius_**2 / shrunk, mean.shape)
    return Pool(share / share.sum(), np.eye(len(prior))[codes], mean, variance, rows=np.asarray(estimator.kept_indices_))


@sentence_of.register
def _(estimator: ParzenClassifier) -> str:
    return (
        f"A {_profile(estimator)} of radius {estimator.radius_:.4g} at each of {len(estimator.kernels_):,} training rows in "
        f"{_features(estimator)}; the one of {_classes(estimator)} with the most votes wins."
    )


@sentence_of.register
def _(estimator: ReducedParzenClassifier) -> str:
    edited = len(estimator.edited_indices_)
    left = "" if edited == estimator.n_rows_ else f", {edited:,} of which editing had left"
    return (
        f"{counted(len(estimator.kernels_), _profile(estimator))} of radius {estimator.radius_:.4g}, chosen from "
        f"{estimator.n_rows_:,} training rows{left}, for {_classes(estimator)} in {_features(estimator)}."
    )


def _profile(estimator: Any) -> str:
    if callable(estimator.kernel):
        return "star-shaped kernel"
    return {"hypersphere": "hypersphere", "gaussian": "Gaussian kernel"}.get(estimator.kernel, f"{estimator.kernel} kernel")


# -- RBF networks and neurons -------------------------------------------------------------------------------------


@pool_of.register
def _(estimator: RBFNetwork) -> Pool:
    share = np.asarray(estimator.mixing_)
    weight = np.asarray(estimator.readout_)[:-1]
    return Pool(share / share.sum(), weight=weight, **_shapes(estimator))


@sentence_of.register
def _(estimator: RBFNetwork) -> str:
    n = counted(len(estimator.means_), f"{_shape(estimator)} Gaussian kernel")
    task = f"for {_classes(estimator)}" if isinstance(estimator, RBFNetworkClassifier) else "for real outputs"
    layer = estimator.readout.replace("_", "-")
    how = "the two layers trained one after the other" if estimator.training == "two_stage" else "both layers trained together"
    return (
        f"A radial basis function network: {n} in {_features(estimator)} and a {layer} output layer {task}, "
        f"{how} ({estimator.training}){_trained(estimator, fitted='')}"
    )


@pool_of.register
def _(estimator: CompetitiveNeuronsClassifier) -> Pool:
    share = np.asarray(estimator.mixing_)
    weight = np.asarray(estimator.weights_).reshape(len(share), -1, estimator.n_features_in_ + 1)[:, :, :-1]
    place = {"mean": estimator.means_, "variance": estimator.covariances_} if estimator.local else {}
    return Pool(share / share.sum(), weight=weight, word="neuron", **place)


@sentence_of.register
def _(estimator: CompetitiveNeuronsClassifier) -> str:
    n = counted(len(estimator.mixing_), "neuron")
    place = ", each with a place of its own," if estimator.local else ""
    rows = f"the rows{place} of {_classes(estimator)} in {_features(estimator)}"
    return f"A mixture of {n} that compete for {rows}{_trained(estimator)}"


# -- the right to refuse ------------------------------------------------------------------------------------------


@pool_of.register
def _(estimator: RejectClassifier) -> Pool | None:
    return pool_of(estimator.estimator_)


@sentence_of.register
def _(estimator: RejectClassifier) -> str:
    return f"{sentence_of(estimator.estimator_)} {refusal_of(estimator)}"


def refusal_of(estimator: RejectClassifier) -> str:
    """When a classifier refuses a row, in a sentence."""
    rules = []
    if estimator.ambiguity_threshold_ is not None:
        rules.append(f"ambiguous where the probability of an error exceeds {100 * estimator.ambiguity_threshold_:.3g} %")
    if estimator.novelty_threshold_ is not None:
        rules.append(f"novel where log p(x) is below {estimator.novelty_threshold_:.4g}")
    return f"It refuses a row as {' and as '.join(rules)}." if rules else "It may refuse rows, but no threshold is set."


# -- words --------------------------------------------------------------------------------------------------------


def counted(n: int, word: str) -> str:
    """`12 kernels`, `1 kernel`, `3 classes`."""
    plural = word if n == 1 else f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n:,} {plural}"


def _family(estimator: Any) -> str:
    return str(getattr(estimator, "covariance_type_", estimator.covariance_type))  # the second may be "auto"


def _degree(estimator: SharedKernelClassifier) -> Any:
    sharing = estimator.sharing
    return estimator.sharing_degree_ if isinstance(sharing, str) and sharing == "auto" else sharing


def _shapes(estimator: Any) -> dict[str, Any]:
    covariance_type = _family(estimator)
    kernels = Kernels(np.asarray(estimator.means_), np.asarray(estimator.covariances_))
    variance = FAMILIES[covariance_type](np.zeros(kernels.mean.shape[1])).variances(kernels)
    covariance = kernels.covariance if FAMILIES[covariance_type].matrices else None
    return {"mean": kernels.mean, "variance": np.broadcast_to(variance, kernels.mean.shape), "covariance": covariance}


def _shape(estimator: Any) -> str:
    return "diagonal" if _family(estimator) == "diag" else _family(estimator)


def _divided(joint: np.ndarray) -> np.ndarray:
    total = joint.sum(axis=1, keepdims=True)
    return np.where(total > 0, joint / np.where(total > 0, total, 1), 1 / joint.shape[1])


def _shared(sharing: Any) -> str:
    if isinstance(sharing, str):  # "learned"
        return f"shared to {sharing} degrees between"
    if hasattr(sharing, "__len__"):
        return "shared, as a table says, between"
    if sharing == 0:
        return "that are not shared, a separate mixture for each of"
    return "shared fully between" if sharing == 1 else f"shared to the degree {sharing:g} between"


def _classes(estimator: Any) -> str:
    return counted(len(estimator.classes_), "class")


def _features(estimator: Any) -> str:
    return counted(estimator.n_features_in_, "feature")


def _trained(estimator: Any, fitted: str = ", fitted by EM") -> str:
    n_sweeps = getattr(estimator, "n_iter_", None)
    if n_sweeps is None:  # made from known parameters
        return "."
    end = "" if getattr(estimator, "converged_", True) else "; training stopped before it had settled"
    return f"{fitted} in {counted(int(n_sweeps), 'sweep')}{end}."
