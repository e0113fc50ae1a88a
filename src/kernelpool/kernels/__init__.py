"""Kernel families, p(x|j), one a file."""

from collections.abc import Mapping

from ..registry import FamilyClasses, FamilyRecord, Field, register_family
from .diag import Diag
from .full import Full
from .gaussian import Gaussian, Kernels, Moments, PriorStatistics
from .kernel import Kernel, KernelSums, NaturalParams, Observed, Parameters
from .product import Product, ProductKernels
from .spherical import Spherical
from .tied import Tied

FAMILIES: Mapping[str, type[Gaussian]] = FamilyClasses()
"""Every registered family by the name under which users ask for it."""

for _family, _covariances in (
    (Spherical, Field("floats", ("M",), low=0.0, open_low=True)),
    (Diag, Field("floats", ("M", "d"), low=0.0, open_low=True)),
    (Full, Field("matrices", ("M", "d", "d"))),
    (Tied, Field("matrices", ("d", "d"))),
):
    register_family(
        FamilyRecord(
            _family.name,
            _family,
            _covariances,
            _family.equivariant,
            onnx="kernelpool.app.onnx.networks:gaussian",
        )
    )

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
