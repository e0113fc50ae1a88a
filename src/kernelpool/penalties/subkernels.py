r"""What each class sees in each kernel.

Constantinopoulos, Titsias & Likas, "A Bayesian regularization method for the probabilistic RBF network", 2002, equations
(11), (12) and (15).
"""

from ..arrays import Array
from ..sums import record


@record
class Subkernels:
    """Kernel j as the rows of class k alone would have it."""

    posterior: Array
    """P(C_k|j), (M, K), equation (15)."""
    mean: Array
    """mu_jk, (M, K, d), equation (11); the kernel's own where a class has no rows in it."""
    covariance: tuple[Array, ...]
    """Sigma_jk for each k, each in the shape of the family, equation (12)."""
