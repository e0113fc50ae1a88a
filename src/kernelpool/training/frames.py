"""Frames and kernel families for numbers, or for numbers and categories."""

from typing import Any

import numpy as np

from ..arrays import namespace
from ..kernels import FAMILIES, Gaussian, Kernels, Product
from ..rows import Frame


def frame_of(
    kernel: type[Gaussian], mean: np.ndarray, variance: np.ndarray, standardize: bool = False
) -> tuple[Frame, np.ndarray]:
    """The frame that suits a family, and the variance of each feature in it (that of a constant
    feature is one).

    Families that are closed under scaling features one by one get a unit for each; the spherical
    one a common unit, unless features are to be standardized.
    """
    typical = variance[variance > 0].mean() if variance.any() else 1.0
    positive = np.where(variance > 0, variance, typical)
    unit = np.sqrt(
        positive if kernel.equivariant or standardize else np.full_like(positive, positive.mean())
    )
    return Frame(mean, unit), positive / unit**2


def frame_of_table(
    kernel: type[Gaussian],
    mean: np.ndarray,
    variance: np.ndarray,
    levels: tuple[int, ...],
    standardize: bool = False,
) -> tuple[Frame, np.ndarray]:
    """`frame_of` for the numbers among the features; codes of categories stay as they are."""
    numbers = np.array(levels) == 0
    frame, inside = frame_of(kernel, mean[numbers], variance[numbers], standardize)
    origin, unit, found = np.zeros(len(mean)), np.ones(len(mean)), np.ones(len(mean))
    origin[numbers], unit[numbers], found[numbers] = frame.origin, frame.unit, inside
    return Frame(origin, unit), found


def mixture_frame(kernel: Gaussian | Product, kernels: Any, share: np.ndarray) -> Frame:
    """The frame that suits the rows which a mixture stands for: it needs no rows."""
    origin = share @ kernels.mean
    variance = share @ (kernel.variances(kernels) + (kernels.mean - origin) ** 2)
    if not isinstance(kernel, Product):
        return frame_of(type(kernel), origin, variance)[0]
    frame, _ = frame_of(type(kernel.gaussian), origin, variance)
    whole = Frame(np.zeros(len(kernel.levels)), np.ones(len(kernel.levels)))
    whole.origin[kernel.numbers], whole.unit[kernel.numbers] = frame.origin, frame.unit
    return whole


def family_for(name: str, floor: Any, levels: tuple[int, ...] | None) -> Any:
    """The family of kernels over numbers, or over numbers and categories; `floor` (d,) is the
    smallest variance of each.
    """
    if levels is None or not any(levels):
        return FAMILIES[name](floor)
    numbers = [i for i, n_levels in enumerate(levels) if not n_levels]
    index = namespace(floor).asarray(numbers, dtype=namespace(floor).int64)
    return Product(FAMILIES[name](namespace(floor).take(floor, index, axis=0)), levels)


def kernels_of(
    kernel: Gaussian | Product,
    means: np.ndarray,
    covariances: np.ndarray,
    probability: np.ndarray | None = None,
) -> Kernels:
    """The kernels of a family from arrays that have an entry for every column."""
    arrays = np.asarray(means), np.asarray(covariances)
    if isinstance(kernel, Product):
        return kernel.from_arrays(*arrays, np.asarray(probability))
    return Kernels(*arrays)


def arrays_of(kernel: Gaussian | Product, kernels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of kernels, with an entry for every column."""
    if isinstance(kernel, Product):
        return kernel.to_arrays(kernels)
    return kernels.mean, kernels.covariance
