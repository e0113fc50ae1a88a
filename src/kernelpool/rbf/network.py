r"""The RBF network: its fitted record and its forward pass.

.. math::

    P(C_k \mid x) \propto \exp\Big(b_k + \sum_j v_{jk}\, h_j(x) + \sum_i u_{ik}\, z_i\Big), \qquad
    h_j(x) = \exp\Big(-\frac{1}{2 \sigma^2} \sum_{i \in S_j} (A z - A \zeta_j)_i^2\Big)

with :math:`z = (x - m) / s` and :math:`\zeta_j = (\mu_j - m) / s`; the symbols are those of
`kernelpool.rbf`.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax

from ..arrays import squared_distances
from ..records import saved, unsaved
from ..rows import map_over_threads

CACHED_ROWS = 512
"""Rows that are predicted at a time: their activations stay in the caches."""


@saved(kw_only=True)
class RBFNetwork:
    """A fitted network of complete numbers."""

    location: np.ndarray
    """m, (d,)."""
    scale: np.ndarray
    """s, (d,)."""
    metric: np.ndarray | None
    """A, (d, d); None for the identity."""
    means: np.ndarray
    """Centers in the units of x, (M, d)."""
    mixing: np.ndarray
    """Fraction of the rows that are nearest to each center, (M,)."""
    kernel_features: np.ndarray | None
    """Whether each kernel depends on each feature, (M, d); None if on all."""
    width: float
    readout: np.ndarray
    """v, u and b, (M + d + 1, o): log-odds of the second of two classes, o = 1, else o = K."""
    ridge: float
    loss: float
    """Log-loss per row on held-out rows at the selected setting."""
    losses: np.ndarray
    """Width, ridge and held-out loss of every setting that was tried, (S, 3)."""
    validation_log_proba: np.ndarray | None = unsaved()
    """Of the validation rows, each by the setting that the other rows select, (n, K)."""

    def activations(self, x: np.ndarray) -> np.ndarray:
        """h_j(x), (n, M)."""
        z, center = (self.mapped((a - self.location) / self.scale) for a in (x, self.means))
        return np.asarray(self.heights(distances_along(z, center, self.kernel_features)))

    def mapped(self, z: Any) -> Any:
        """A z, (n, d)."""
        return z if self.metric is None else z @ self.metric.T

    def heights(self, squared: Any) -> Any:
        """h_j(x) by squared distances, (n, M)."""
        return np.exp(squared * (-0.5 / self.width**2))

    def log_proba(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x), (n, K)."""
        blocks = np.split(x, range(CACHED_ROWS, len(x), CACHED_ROWS))
        return log_softmax(np.concatenate(map_over_threads(self._scores, blocks)), axis=1)

    def _scores(self, x: np.ndarray) -> np.ndarray:
        z = (x - self.location) / self.scale
        return np.asarray(self.scores(self.activations(x), z))

    def scores(self, activations: Any, z: Any) -> Any:
        """log P(C_k|x) up to a constant of the row, (n, K)."""
        n_kernels = len(self.means)
        linear = z @ self.readout[n_kernels:-1] + self.readout[-1]
        scores = activations @ self.readout[:n_kernels] + linear
        return np.hstack([scores * 0, scores]) if self.readout.shape[1] == 1 else scores


def distances_along(
    x: np.ndarray, center: np.ndarray, features: np.ndarray | None = None
) -> np.ndarray:
    """Squared distances along the features of each kernel, (n, M)."""
    if features is None:
        return np.maximum(squared_distances(x, center), 0)
    one = features.astype(center.dtype)
    # a kernel depends on a few of the features: a sparse product is several times faster
    weight = csr_array(np.hstack([one, -2 * center * one]))  # (M, 2 d)
    squared = (weight @ np.vstack([(x * x).T, x.T])).T + (center * center * one).sum(axis=1)
    return np.maximum(squared, 0)
