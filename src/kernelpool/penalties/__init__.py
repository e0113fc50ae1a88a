"""What is believed of the kernels before rows are seen, one belief a file."""

from typing import Protocol

from ..arrays import Array
from ..kernels import Gaussian, Kernels, Moments
from .conjugate import Conjugate
from .none import NoPenalty

__all__ = ["Conjugate", "NoPenalty", "Penalty"]


class Penalty(Protocol):
    """The M-step asks a penalty four things; `NoPenalty` answers them by maximum likelihood."""

    def centre(self, moments: Moments, about: Array) -> Array: ...
    def imagined(self, kernel: Gaussian, mean: Array) -> tuple[Array | float, float]: ...
    def mixing(self, mass: Array, before: Array) -> Array: ...
    def objective(self, kernel: Gaussian, kernels: Kernels) -> float: ...
