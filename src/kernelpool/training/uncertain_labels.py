r"""Class probabilities in place of labels.

.. math:: L = \sum_{nk} w_n t_{nk} \log P(C_k)\, p(x_n \mid C_k)

with :math:`t_{nk}` the probability of class k in row n: the row counts as one row of each class, of weight
:math:`w_n t_{nk}`.
"""

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..errors import KernelpoolError
from ..rows import is_lazy_frame, lives_elsewhere
from ..tables.batches import is_source

LEAST_SHARE = 1e-9
"""A class with less than this probability in a row has none."""


def is_matrix(y: Any) -> bool:
    """Whether `y` holds class probabilities rather than labels."""
    if isinstance(y, list | tuple):
        return len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray) and len(y[0]) > 1
    return hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] > 1


def spread_out(X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, labels and weights in which each row stands once for every class with a probability."""
    if lives_elsewhere(X) or is_lazy_frame(X) or is_source(X):
        raise KernelpoolError("Class probabilities need rows in memory, in NumPy or a table.")
    table = np.asarray(y, dtype=np.float64)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(table):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n}, {len(table)}]"
        )
    names = getattr(y, "columns", None)
    classes = (
        np.arange(table.shape[1]) if names is None else np.array([str(name) for name in names])
    )
    bad = ~np.isfinite(table.sum(axis=1)) | (table < 0).any(axis=1)
    bad |= np.abs(table.sum(axis=1) - 1) > 1e-6
    if bad.any():
        row = int(np.argmax(bad))
        raise KernelpoolError(
            f"y as a matrix must hold class probabilities, rows that sum to one; "
            f"row {row} holds {table[row].tolist()[:8]}."
        )
    if (table.sum(axis=0) <= 0).any():
        raise KernelpoolError(
            f"y gives class {classes[int(np.argmin(table.sum(axis=0)))]!s} no share in any row; "
            f"leave it out."
        )
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    at, codes = np.nonzero(table > LEAST_SHARE)
    return _safe_indexing(X, at), classes[codes], table[at, codes] * weight[at]
