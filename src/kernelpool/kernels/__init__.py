"""Kernel families, p(x|j), one a file."""

from .diag import Diag
from .full import Full
from .gaussian import Gaussian, Kernels, Moments, NaturalParams
from .spherical import Spherical
from .tied import Tied

FAMILIES: dict[str, type[Gaussian]] = {family.name: family for family in (Spherical, Diag, Full, Tied)}
"""Every family by the name under which users ask for it."""

__all__ = ["FAMILIES", "Diag", "Full", "Gaussian", "Kernels", "Moments", "NaturalParams", "Spherical", "Tied"]
