"""Kernel families, p(x|j), one a file."""

from .diag import Diag
from .full import Full
from .gaussian import Gaussian, Kernels, Moments, PriorStatistics
from .kernel import Kernel, KernelSums, NaturalParams, Observed, Parameters
from .product import Product, ProductKernels
from .spherical import Spherical
from .tied import Tied

FAMILIES: dict[str, type[Gaussian]] = {
    family.name: family for family in (Spherical, Diag, Full, Tied)
}
"""Every family by the name under which users ask for it, `covariance_type`."""

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
]
