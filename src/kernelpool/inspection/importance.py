r"""Which features a classifier needs: by how much the log-loss of held-out rows rises when one is missing.

.. math:: \text{importance}_i = \frac{1}{n} \sum_n \log P(y_n \mid x_n) - \log P(y_n \mid x_{n,-i})

The probabilities are those that the classifier returns for rows in which the feature is a missing cell.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..text import shown
from .explanation import encoded, feature_names
from .metrics import class_codes


@dataclass(frozen=True)
class FeatureImportance:
    """What missing features cost; prints as a table.

    Attributes
    ----------
    names : tuple of str
        Of the features, in the order of the input.
    importance : ndarray of shape (n_features,)
        Rise of the log-loss per row; below zero where the classifier is better without the feature.
    error : ndarray of shape (n_features,)
        Standard errors over the rows.
    log_loss : float
        With all features.
    n_rows : int
        Rows that were scored.
    """

    names: tuple[str, ...]
    importance: np.ndarray
    error: np.ndarray
    log_loss: float
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        found = asdict(self)
        return {**found, "importance": self.importance.tolist(), "error": self.error.tolist()}

    def __str__(self) -> str:
        lines = [
            f"Log-loss {self.log_loss:.4f} a row over {self.n_rows:,} rows; it rises where a feature is missing:"
        ]
        for i in np.argsort(-self.importance, kind="stable"):
            lines.append(
                f"  {shown(self.names[i], 40)}: {self.importance[i]:+.4f} ± {self.error[i]:.4f}"
            )
        return "\n".join(lines)


def feature_importance(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None
) -> FeatureImportance:
    """By how much the log-loss of held-out rows rises when a feature is missing.

    Parameters
    ----------
    model : classifier
        Fitted, and one that answers rows with missing cells; pipelines and wrappers included.
    X : array-like of shape (n_samples, n_features)
        Rows that were not part of the fit.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts.

    Returns
    -------
    importance : FeatureImportance
        Prints as a table.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import feature_importance
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(*make_clouds(random_state=0))
    >>> found = feature_importance(model, *make_clouds(500, random_state=1))
    >>> bool((found.importance > 0).all())
    True
    """
    columns, x, log_proba = encoded(model, X)
    codes = class_codes(model.classes_, y, len(x))
    weight = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    rows, total = np.arange(len(x)), weight.sum()
    whole = log_proba(x)[rows, codes]
    lost = np.empty((x.shape[1], len(x)))
    for i in range(x.shape[1]):
        without = x.copy()
        without[:, i] = np.nan
        lost[i] = whole - log_proba(without)[rows, codes]
    mean = lost @ weight / total
    variance = (lost - mean[:, None]) ** 2 @ weight / total
    effective = total**2 / (weight @ weight)
    return FeatureImportance(
        tuple(feature_names(columns)),
        mean,
        np.sqrt(variance / max(effective - 1, 1)),
        float(-(weight @ whole) / total),
        len(x),
    )
