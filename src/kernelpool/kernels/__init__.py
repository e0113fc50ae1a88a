"""Kernel families, p(x|j), one a file."""

from ..arrays import Array, namespace
from .diag import Diag
from .full import Full
from .gaussian import Gaussian, Kernels, Moments, PriorStatistics
from .kernel import Kernel, KernelSums, NaturalParams, Observed, Parameters
from .product import Product, ProductKernels
from .spherical import Spherical, as_diag, as_spherical
from .tied import Tied

FAMILIES: dict[str, type[Gaussian]] = {
    family.name: family for family in (Spherical, Diag, Full, Tied)
}
"""Every family by the name under which users ask for it, `covariance_type`."""


def family_for(
    name: str, floor: Array, levels: tuple[int, ...] | None = None
) -> Gaussian | Product:
    """The family of kernels over numbers, or over numbers and categories; `floor` (d,) is the
    smallest variance of each.
    """
    if levels is None or not any(levels):
        return FAMILIES[name](floor)
    xp = namespace(floor)
    numbers = xp.asarray([i for i, n_levels in enumerate(levels) if not n_levels], dtype=xp.int64)
    return Product(FAMILIES[name](xp.take(floor, numbers, axis=0)), levels)


__all__ = [
    "FAMILIES",
    "Diag",
    "Full",
    "Gaussian",
    "Kernel",
    "KernelSums",
    "Kernels",
    "Moments",
    "NaturalParams",
    "Observed",
    "Parameters",
    "PriorStatistics",
    "Product",
    "ProductKernels",
    "Spherical",
    "Tied",
    "as_diag",
    "as_spherical",
    "family_for",
]
