"""What a mixture contributes to the description of a fitted model: its kernels as a `KernelTable`,
and how they are shared, in words.
"""

from typing import Any

import numpy as np

from ..inspection.description import KernelTable
from ..kernels import FAMILIES, Kernels


def gaussian_shapes(estimator: Any) -> dict[str, Any]:
    """Means, variances and covariances of Gaussian kernels, as `KernelTable` has them."""
    family = FAMILIES[estimator.covariance_type_]
    kernels = Kernels(np.asarray(estimator.means_), np.asarray(estimator.covariances_))
    variance = family(np.zeros(kernels.mean.shape[1])).variances(kernels)
    covariance = kernels.covariance if family.matrices else None
    variance = np.broadcast_to(variance, kernels.mean.shape)
    return {"mean": kernels.mean, "variance": variance, "covariance": covariance}


def kernel_table(estimator: Any) -> KernelTable:
    """Gaussian kernels with mixing weights of every class, (M, K)."""
    joint = estimator.mixing_ * estimator.class_prior_
    share = joint.sum(axis=1)
    total = joint.sum(axis=1, keepdims=True)
    even = 1 / joint.shape[1]  # where a kernel has no weight in any class
    posterior = np.where(total > 0, joint / np.where(total > 0, total, 1), even)
    shapes = gaussian_shapes(estimator)
    if any(estimator.columns_.levels):
        shapes["probability"] = np.asarray(estimator.probabilities_)
    return KernelTable(share / share.sum(), posterior, **shapes)


def member_name(member: Any) -> str:
    """A network of an average by the settings in which it differs."""
    penalty = f", penalty {member.overlap_:g}" if member.overlap_ else ""
    return f"sharing {sharing_name(member)}{penalty}"


def sharing_name(estimator: Any) -> str:
    """The degree of sharing as a number or a word."""
    sharing = sharing_of(estimator)
    if isinstance(sharing, str):
        return sharing
    return "a table" if np.ndim(sharing) else f"{sharing:g}"


def sharing_of(estimator: Any) -> Any:
    """The degree of sharing: the chosen one where it was chosen automatically."""
    sharing = estimator.sharing
    return estimator.sharing_degree_ if isinstance(sharing, str) and sharing == "auto" else sharing


def sharing_text(sharing: Any) -> str:
    """How kernels are shared, before "n classes"."""
    if isinstance(sharing, str):  # "learned"
        return f"shared to {sharing} degrees between"
    if np.ndim(sharing):
        return "shared, as a table says, between"
    if sharing == 0:
        return "that are not shared, a separate mixture for each of"
    return "shared fully between" if sharing == 1 else f"shared to the degree {sharing:g} between"


def gaussians_text(covariance_type: str) -> str:
    """The family of Gaussian kernels, before "Gaussian"."""
    return "diagonal" if covariance_type == "diag" else covariance_type
