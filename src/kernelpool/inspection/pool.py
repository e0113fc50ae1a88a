"""What a fitted model is made of, without any rows: its kernels, their shares and classes, and a sentence.

=====================  ==================  =============================================================
paper                  here                meaning
=====================  ==================  =============================================================
:math:`P(j)`           ``share``           of a kernel in the whole mixture; they sum to one
:math:`P(C_k|j)`       ``class_posterior``  what the model believes of a row that a kernel made
=====================  ==================  =============================================================

Every estimator's record in `kernelpool.registry` names the function here that describes it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import FAMILIES, Kernels
from ..registry import record_of, resolve
from ..text import plural


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

    def largest(self, n: int) -> np.ndarray:
        """At most n kernels: those with the greatest shares; of kernels that are all alike, some from everywhere."""
        if len(self) > n and np.ptp(self.share) < 1e-12 * self.share.max():
            return np.linspace(0, len(self) - 1, n).astype(int)
        return np.argsort(-self.share, kind="stable")[:n]


@dataclass(frozen=True)
class Description:
    """A fitted model in a sentence or two, and its kernels where it has any."""

    sentence: str
    pool: Pool | None = None


def describe(estimator: Any) -> Description:
    """Of a fitted estimator; one that is none of this library's has no pool."""
    records = (
        record_of(cls) for cls in type(estimator).__mro__
    )  # a user's subclass is described as what it was made of
    reference = next(
        (
            record.describe
            for record in records
            if record is not None and record.describe is not None
        ),
        None,
    )
    if reference is not None:
        description: Description = resolve(reference)(estimator)
        return description
    return Description(f"A fitted {type(estimator).__name__}.")


# -- shared kernels -----------------------------------------------------------------------------------------------


def describe_shared_kernel(estimator: Any) -> Description:
    """`SharedKernelClassifier`."""
    joint = estimator.mixing_ * estimator.class_prior_  # (M, K)
    share = joint.sum(axis=1)
    n = plural(len(estimator.means_), f"{_shape(estimator)} Gaussian kernel")
    split = ", split by class in the end," if estimator.split_by_class else ""
    return Description(
        f"{n} {_shared(_degree(estimator))} {_classes(estimator)}{split} in {_features(estimator)}{_trained(estimator)}",
        Pool(share / share.sum(), _normalized(joint), **_shapes(estimator)),
    )


def describe_sharing_average(estimator: Any) -> Description:
    """`SharingAverageClassifier`: the kernels of all its networks, one network after the other."""
    members = estimator.estimators_
    pools: list[Any] = [describe(member).pool for member in members]
    parts: dict[str, Any] = {
        name: [getattr(pool, name) for pool in pools]
        for name in ("class_posterior", "mean", "variance", "covariance")
    }
    if estimator.covariance_type == "tied":  # one matrix a network, not one for all
        parts["covariance"] = [
            np.broadcast_to(c, (len(p), *c.shape))
            for c, p in zip(parts["covariance"], pools, strict=True)
        ]
    joined: dict[str, Any] = {
        name: None if arrays[0] is None else np.concatenate(arrays)
        for name, arrays in parts.items()
    }
    share = np.concatenate(
        [w * pool.share for w, pool in zip(member_weights(estimator), pools, strict=True)]
    )
    group = tuple(
        member_name(member)
        for member, pool in zip(members, pools, strict=True)
        for _ in range(len(pool))
    )
    strengths = dict.fromkeys(f"{member.overlap_penalty_:g}" for member in members)
    names = "sharing " + ", ".join(dict.fromkeys(_degree_name(member) for member in members))
    names += "" if list(strengths) == ["0"] else f"; overlap penalty {', '.join(strengths)}"
    sizes = sorted({len(member.means_) for member in members})
    size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    sentence = (
        f"An average of {plural(len(members), 'network')} ({names}), each of {size} {_shape(estimator)} "
        f"Gaussian kernels for {_classes(estimator)} in {_features(estimator)}{_trained(estimator)}"
    )
    return Description(sentence, Pool(share, group=group, **joined))


def member_weights(estimator: Any) -> np.ndarray:
    """Of the networks in an average, (L,); they sum to one."""
    weight = getattr(estimator, "weights_", None)
    weight = (
        np.ones(len(estimator.estimators_)) if weight is None else np.asarray(weight, np.float64)
    )
    return np.asarray(weight / weight.sum())


def member_name(member: Any) -> str:
    """A network of an average by what sets it apart."""
    return f"sharing {_degree_name(member)}" + (
        f", penalty {member.overlap_penalty_:g}" if member.overlap_penalty_ else ""
    )


def _degree_name(member: Any) -> str:
    sharing = _degree(member)
    return (
        sharing
        if isinstance(sharing, str)
        else "a table"
        if hasattr(sharing, "__len__")
        else f"{sharing:g}"
    )


# -- Parzen networks ----------------------------------------------------------------------------------------------


def describe_pooled(estimator: Any) -> Description:
    """`PooledClassifier`: who is heard and how much; its kernels are those of the networks that give its densities."""
    heard = sorted(zip(estimator.weights_, estimator.members_, strict=True), reverse=True)
    names = "; ".join(f"{name} ({weight:.2f})" for weight, name in heard)
    how = "multiplied" if estimator.pooling_ == "log_linear" else "added"
    sentence = (
        f"A pool of {plural(len(heard), 'member')} for {_classes(estimator)} in {_features(estimator)}, whose probabilities "
        f"are weighted and {how}: {names}. Held-out log-loss {estimator.loss_:.3f} a row."
    )
    return Description(sentence, _described_kernels(estimator))


def _described_kernels(estimator: Any) -> Pool | None:
    """In the units of the data; networks that see warped features have no Gaussian kernels there and are left out."""
    straight = (estimator.view_exponents_ == 1).all(axis=1)
    parts: list[tuple[Any, ...]] = []
    for i in np.flatnonzero(estimator.density_weights_):
        network, view = estimator.networks_[i], int(estimator.network_views_[i])
        if view >= 0 and not straight[view]:
            continue
        pool: Any = describe(network).pool
        center = estimator.view_centers_[view] if view >= 0 else 0.0
        scale = estimator.view_scales_[view] if view >= 0 else 1.0
        member = int(estimator.network_members_[i])
        name = estimator.members_[member] if member >= 0 else "density alone"
        share = estimator.density_weights_[i] * pool.share
        parts.append(
            (
                share,
                pool.class_posterior,
                pool.mean * scale + center,
                pool.variance * scale**2,
                [name] * len(pool),
            )
        )
    if not parts:
        return None
    share, posterior, mean, variance, group = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Pool(share / share.sum(), posterior, mean, variance, group=tuple(map(str, group)))


def describe_parzen(estimator: Any) -> Description:
    """`ParzenClassifier`."""
    return Description(
        f"A {estimator._profile.noun} of radius {estimator.radius_:.4g} at each of {len(estimator.kernels_):,} training rows "
        f"in {_features(estimator)}; the one of {_classes(estimator)} with the most votes wins.",
        _parzen_pool(estimator),
    )


def describe_reduced_parzen(estimator: Any) -> Description:
    """`ReducedParzenClassifier`."""
    edited = len(estimator.edited_indices_)
    left = "" if edited == estimator.n_rows_ else f", {edited:,} of which editing had left"
    return Description(
        f"{plural(len(estimator.kernels_), estimator._profile.noun)} of radius {estimator.radius_:.4g}, chosen from "
        f"{estimator.n_rows_:,} training rows{left}, for {_classes(estimator)} in {_features(estimator)}.",
        _parzen_pool(estimator),
    )


def _parzen_pool(estimator: Any) -> Pool:
    codes = np.searchsorted(estimator.classes_, estimator.kernel_classes_)
    prior = np.asarray(estimator.class_prior_)
    votes = np.bincount(codes, estimator.kernel_weights_, minlength=len(prior))
    share = estimator.kernel_weights_ * (prior / np.where(votes > 0, votes, 1))[codes]
    mean = np.asarray(estimator.kernels_, np.float64)
    back = np.diag(estimator._scale)  # from where distances are taken to the units of the data
    if hasattr(estimator, "metric_"):
        back = back @ np.linalg.inv(estimator.metric_)
    variance = np.broadcast_to(
        estimator.radius_**2 * estimator._profile.variance(len(back)) * (back**2).sum(axis=1),
        mean.shape,
    )
    if any(estimator.columns_.levels):  # of categories: zeros and ones
        numbers = np.array(estimator.columns_.levels) == 0
        mean, variance = np.where(numbers, mean, 0.0), np.where(numbers, variance, 1.0)
    return Pool(
        share / share.sum(),
        np.eye(len(prior))[codes],
        mean,
        variance,
        rows=np.asarray(estimator.kept_indices_),
    )


# -- RBF networks and neurons -------------------------------------------------------------------------------------


def describe_rbf(estimator: Any) -> Description:
    """`RBFNetworkClassifier` and `RBFNetworkRegressor`."""
    share = np.asarray(estimator.mixing_)
    n = plural(len(estimator.means_), f"{_shape(estimator)} Gaussian kernel")
    task = f"for {_classes(estimator)}" if hasattr(estimator, "classes_") else "for real outputs"
    layer = estimator.readout.replace("_", "-")
    shapes = (
        {} if hasattr(estimator, "word_distance_") else _shapes(estimator)
    )  # of numbers and words, not of features
    pool = Pool(share / share.sum(), weight=np.asarray(estimator.readout_)[: len(share)], **shapes)
    if estimator.training == "path":
        n = plural(len(estimator.means_), "Gaussian kernel")
        few = (
            f", each of at most {estimator.max_features} of them,"
            if hasattr(estimator, "kernel_features_")
            else ""
        )
        return Description(
            f"A radial basis function network: {n} of one width in {_features(estimator)}{few} and a logistic output layer "
            f"{task} on them and on the features; width and ridge are the best of {plural(estimator.n_iter_, 'setting')}.",
            pool,
        )
    how = (
        "the two layers trained one after the other"
        if estimator.training == "two_stage"
        else "both layers trained together"
    )
    return Description(
        f"A radial basis function network: {n} in {_features(estimator)} and a {layer} output layer {task}, "
        f"{how} ({estimator.training}){_trained(estimator, fitted='')}",
        pool,
    )


def describe_competitive(estimator: Any) -> Description:
    """`CompetitiveNeuronsClassifier`."""
    share = np.asarray(estimator.mixing_)
    placed: dict[str, Any] = {
        "weight": np.asarray(estimator.weights_).reshape(
            len(share), -1, len(estimator.location_) + 1
        )[:, :, :-1]
    }
    if estimator.local:
        placed |= {"mean": estimator.means_, "variance": estimator.covariances_}
    if any(estimator.columns_.levels):  # of numbers and indicators, not of features
        placed = {}
    place = ", each with a place of its own," if estimator.local else ""
    rows = f"the rows{place} of {_classes(estimator)} in {_features(estimator)}"
    return Description(
        f"A mixture of {plural(len(share), 'neuron')} that compete for {rows}{_trained(estimator)}",
        Pool(share / share.sum(), word="neuron", **placed),
    )


# -- classifiers that refuse --------------------------------------------------------------------------------------


def describe_reject(estimator: Any) -> Description:
    """`RejectClassifier`: the model inside, and when it refuses."""
    inside = describe(estimator.estimator_)
    return Description(f"{inside.sentence} {refusals(estimator)}", inside.pool)


def describe_conformal(estimator: Any) -> Description:
    """`ConformalClassifier`: the first of the models inside, and what its sets promise."""
    inside = describe(estimator.estimators_[0])
    within = "within each class" if estimator.per_class else "over all rows"
    rows = plural(len(estimator.calibration_codes_), "row")
    several = (
        f"The first of {len(estimator.estimators_)}: " if len(estimator.estimators_) > 1 else ""
    )
    promise = f"Its sets lack the true class with a probability of {100 * estimator.error:g} %, {within}, by {rows}."
    return Description(f"{several}{inside.sentence} {promise}", inside.pool)


def refusals(estimator: Any) -> str:
    """When a `RejectClassifier` refuses a row, in a sentence."""
    rules = []
    if estimator.ambiguity_threshold_ is not None:
        rules.append(
            f"ambiguous where the probability of an error exceeds {100 * estimator.ambiguity_threshold_:.3g} %"
        )
    if estimator.novelty_threshold_ is not None:
        rules.append(f"novel where log p(x) is below {estimator.novelty_threshold_:.4g}")
    return (
        f"It refuses a row as {' and as '.join(rules)}."
        if rules
        else "It may refuse rows, but no threshold is set."
    )


# -- shapes and words ---------------------------------------------------------------------------------------------


def _family(estimator: Any) -> str:
    return str(
        getattr(estimator, "covariance_type_", estimator.covariance_type)
    )  # the second may be "auto"


def _degree(estimator: Any) -> Any:
    sharing = estimator.sharing
    return estimator.sharing_degree_ if isinstance(sharing, str) and sharing == "auto" else sharing


def _shapes(estimator: Any) -> dict[str, Any]:
    family = FAMILIES[_family(estimator)]
    kernels = Kernels(
        np.asarray(estimator.means_), np.asarray(estimator.covariances_)
    )  # of words: zeros and ones
    variance = family(np.zeros(kernels.mean.shape[1])).variances(kernels)
    covariance = kernels.covariance if family.matrices else None
    d = len(kernels.mean[0]) - len(())  # without what tells of missing cells
    kernels = Kernels(kernels.mean[:, :d], kernels.covariance)
    variance = np.broadcast_to(variance, (len(kernels.mean), estimator.means_.shape[1]))[:, :d]
    covariance = None if covariance is None else covariance[..., :d, :d]
    return {
        "mean": kernels.mean,
        "variance": np.broadcast_to(variance, kernels.mean.shape),
        "covariance": covariance,
    }


def _shape(estimator: Any) -> str:
    return "diagonal" if _family(estimator) == "diag" else _family(estimator)


def _normalized(joint: np.ndarray) -> np.ndarray:
    """Rows that sum to one; all alike where there is nothing."""
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
    return plural(len(estimator.classes_), "class")


def _features(estimator: Any) -> str:
    return plural(estimator.n_features_in_, "feature")


def _trained(estimator: Any, fitted: str = ", fitted by EM") -> str:
    n_sweeps = getattr(estimator, "n_iter_", None)
    if n_sweeps is None:  # made from known parameters
        return "."
    end = (
        "" if getattr(estimator, "converged_", True) else "; training stopped before it had settled"
    )
    return f"{fitted} in {plural(int(n_sweeps), 'sweep')}{end}."
