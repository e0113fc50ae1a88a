"""What is believed of the kernels before rows are seen, one belief a file."""

from typing import Protocol

from ..arrays import Array
from ..kernels import Gaussian, Kernels, Moments
from .anchor import Anchor
from .conjugate import Conjugate
from .none import NoPenalty
from .overlap import DISTANCES, ConjugateOverlap, Overlap
from .subkernels import Subkernels

__all__ = ["DISTANCES", "Anchor", "Conjugate", "ConjugateOverlap", "NoPenalty", "Overlap", "Penalty", "Subkernels"]


class Penalty(Protocol):
    """The M-step asks a penalty four things; `NoPenalty` answers them by maximum likelihood.

    `subkernels` are what each class sees in each kernel; they are worked out only for a penalty whose `by_class` is true.
    A penalty that is not `monotone` cannot promise that its M-step never lowers the objective.
    """

    by_class: bool
    monotone: bool

    def center(self, kernel: Gaussian, moments: Moments, moment_origin: Array, subkernels: Subkernels | None) -> Array: ...
    def prior_statistics(self, kernel: Gaussian, mean: Array) -> tuple[Array | float, float]: ...
    def mixing(self, kernel: Gaussian, mass: Array, before: Array, moved: Kernels, subkernels: Subkernels | None) -> Array: ...
    def objective(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels | None) -> float: ...
