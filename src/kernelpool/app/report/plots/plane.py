r"""The plane in which kernels of any number of features are drawn.

A point is drawn at :math:`z = (x - \text{shift}) \cdot \text{matrix}`. A Gaussian kernel seen so is a Gaussian again, of mean
:math:`(\mu - \text{shift}) \cdot \text{matrix}` and covariance :math:`\text{matrix}' \Sigma\, \text{matrix}`: its ellipse is
not a cut through the kernel but its whole shadow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ....errors import KernelpoolError
from ....inspection.describe import Pool
from ....inspection.pipeline import Unwrapped

SHRINKAGE = 0.1
"""Of covariances within classes towards round ones, so that many features and few rows have directions too."""


@dataclass(frozen=True)
class Plane:
    """Two axes through the features of a model."""

    shift: np.ndarray
    """(d,)."""
    matrix: np.ndarray
    """(d, 2)."""
    names: tuple[str, str]

    def points(self, x: np.ndarray) -> np.ndarray:
        """Where rows are drawn, (n, 2)."""
        return np.asarray((x - self.shift) @ self.matrix)

    def back(self, z: np.ndarray, through: np.ndarray) -> np.ndarray:
        """The rows of the plane through the row `through` that are drawn at z, (n, d)."""
        return np.asarray(through + (z - self.points(through[None])) @ np.linalg.pinv(self.matrix))

    def covariances(self, pool: Pool) -> np.ndarray:
        """Of the kernels as they are drawn, (M, 2, 2)."""
        if pool.covariance is None:
            return np.asarray(
                np.einsum("da,jd,db->jab", self.matrix, np.asarray(pool.variance), self.matrix)
            )
        matrices = np.broadcast_to(pool.covariance, (len(pool), *pool.covariance.shape[-2:]))
        return np.asarray(self.matrix.T @ matrices @ self.matrix)


def plane_of(model: Unwrapped, x: np.ndarray, codes: np.ndarray, features: Any) -> Plane:
    """The plane asked for: two features in the units of the input, or the directions in which classes differ most."""
    d = len(model.features)
    if d < 2:
        raise KernelpoolError(f"KernelDisplay needs at least two features; the model has {d}.")
    if features is None:
        features = (0, 1) if d == 2 else "lda"
    if isinstance(features, str):
        if features != "lda":
            raise KernelpoolError(f'features must be two features or "lda"; got {features!r}.')
        return _discriminant(x, codes)
    i, j = _two(features, model.names)
    matrix = np.zeros((d, 2))
    matrix[[i, j], [0, 1]] = model.scale[[i, j]]
    return Plane(-model.offset / model.scale, matrix, (model.names[i], model.names[j]))


def _two(features: Sequence[Any], names: Sequence[str]) -> tuple[int, int]:
    found = []
    for feature in features:
        if feature in names:
            found.append(list(names).index(feature))
        elif not isinstance(feature, str) and -len(names) <= int(feature) < len(names):
            found.append(int(feature) % len(names))
        else:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise KernelpoolError(
                f"features must be numbers below {len(names)} or names among {shown}; got {feature!r}."
            )
    if len(found) != 2 or found[0] == found[1]:
        raise KernelpoolError(f"features must be two different features; got {features!r}.")
    return found[0], found[1]


def _discriminant(x: np.ndarray, codes: np.ndarray) -> Plane:
    """The two directions in which classes differ most, by linear discriminant analysis; else the widest."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    z, known = (x - mean) / deviation, codes >= 0
    n_axes = min(2, len(np.unique(codes[known])) - 1)
    axes = np.empty((x.shape[1], 0))
    if n_axes > 0:
        axes = (
            LinearDiscriminantAnalysis(solver="eigen", shrinkage=SHRINKAGE)
            .fit(z[known], codes[known])
            .scalings_[:, :n_axes]
        )
    if n_axes < 2:
        basis = np.linalg.qr(axes)[0]
        rest = z - z @ basis @ basis.T  # seen at right angles to the first axis
        axes = np.column_stack([axes, np.linalg.svd(rest, full_matrices=False)[2][: 2 - n_axes].T])
    axes = axes / np.maximum((z @ axes).std(axis=0), np.finfo(float).tiny)
    names = tuple(
        f"discriminant axis {i + 1}" if i < n_axes else f"widest axis {i + 1 - n_axes}"
        for i in range(2)
    )
    return Plane(mean, axes / deviation[:, None], names)  # type: ignore[arg-type]
