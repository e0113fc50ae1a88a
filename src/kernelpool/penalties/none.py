"""No belief: maximum likelihood."""

from ..arrays import Array, namespace
from ..kernels import Gaussian, Kernels, Moments
from .subkernels import Subkernels


class NoPenalty:
    """Centers are weighted means, mixing weights are shares of mass."""

    by_class = False
    """Whether the moments of each class in each kernel are needed."""
    monotone = True
    """Whether the objective never falls."""

    def center(self, kernel: Gaussian, moments: Moments, moment_origin: Array, subkernels: Subkernels | None) -> Array:
        """(35): where the means go, (M, d)."""
        mass = namespace(moments.mass).sum(moments.mass, axis=1)
        return moment_origin + moments.first / mass[:, None]

    def prior_statistics(self, kernel: Gaussian, mean: Array) -> tuple[Array | float, float]:
        """What is added to the scatter of each kernel and to its divisor."""
        return 0.0, 0.0

    def mixing(self, kernel: Gaussian, mass: Array, before: Array, moved: Kernels, subkernels: Subkernels | None) -> Array:
        """(37): pi_jk, (M, K); a class without weight keeps the column it had."""
        xp = namespace(mass)
        of_class = xp.sum(mass, axis=0)
        return xp.where(of_class > 0, mass / xp.where(of_class > 0, of_class, xp.ones_like(of_class)), before)

    def objective(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels | None) -> float:
        """What the belief adds to the log-likelihood."""
        return 0.0
