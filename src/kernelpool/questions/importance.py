r"""Which features a classifier needs, by what the log-loss of held-out rows rises when one is taken away.

.. math:: \text{importance}_i = \frac{1}{n} \sum_n \log P(y_n \mid x_n) - \log P(y_n \mid x_{n,-i})

A mixture integrates the feature out, which is exact and needs no random numbers; a Parzen network with Gaussian kernels is a
mixture. For other classifiers the values of the feature are exchanged among the rows (Breiman, "Random forests", Machine
Learning 45, 2001), which asks them about rows that cannot occur where features hang together.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..inspection.marginals import Marginals
from ..inspection.pipeline import of_codes
from ..text import shown
from .explanation import seen_rows, user_features

LOWEST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class FeatureImportance:
    """What taking features away costs; prints as a table.

    Attributes
    ----------
    names : tuple of str
        Of the features, in the order of the input.
    importance : ndarray of shape (n_features,)
        Rise of the log-loss a row; below zero where the classifier is better off without.
    error : ndarray of shape (n_features,)
        Standard errors over the rows.
    log_loss : float
        With all features.
    method : str
        "marginal" or "permutation".
    n_rows : int
        Rows that judged.
    """

    names: tuple[str, ...]
    importance: np.ndarray
    error: np.ndarray
    log_loss: float
    method: str
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        found = asdict(self)
        return {**found, "importance": self.importance.tolist(), "error": self.error.tolist()}

    def __str__(self) -> str:
        how = "integrated out" if self.method == "marginal" else "shuffled"
        lines = [
            f"Log-loss {self.log_loss:.4f} a row over {self.n_rows:,} rows; it rises where a feature is {how}:"
        ]
        for i in np.argsort(-self.importance, kind="stable"):
            lines.append(
                f"  {shown(self.names[i], 40)}: {self.importance[i]:+.4f} ± {self.error[i]:.4f}"
            )
        return "\n".join(lines)


def feature_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "auto",
    n_repeats: int = 5,
    random_state: Any = 0,
) -> FeatureImportance:
    """What the log-loss of held-out rows rises by when a feature is taken away.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`; pipelines included.
    X : array-like of shape (n_samples, n_features)
        Rows that played no part in the fit.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts.
    method : {"auto", "marginal", "permutation"}, default="auto"
        Integrate the feature out, or shuffle its values among the rows; "auto" integrates where the classifier can.
    n_repeats : int, default=5
        Times that values are shuffled.
    random_state : int, RandomState instance or None, default=0
        Seed of the shuffling.

    Returns
    -------
    importance : FeatureImportance
        Prints as a table.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier, questions
    >>> from kernelpool.datasets import make_clouds
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(*make_clouds(random_state=0))
    >>> found = questions.feature_importance(model, *make_clouds(500, random_state=1))
    >>> found.method
    'marginal'
    """
    if method not in ("auto", "marginal", "permutation"):
        raise KernelpoolError(
            f"method must be 'auto', 'marginal' or 'permutation'; got {method!r}."
        )
    found, x = seen_rows(model, X)
    labels = column_or_1d(y)
    check_consistent_length(x, labels)
    classes = np.asarray(found.inner.classes_)
    codes = np.searchsorted(classes, labels)
    if not len(labels) or (classes[np.minimum(codes, len(classes) - 1)] != labels).any():
        raise KernelpoolError(
            f"y must hold labels of the classes {classes.tolist()}, at least one."
        )
    weight = (
        np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    )
    rows, features = np.arange(len(x)), user_features(found, X, x)
    inner = of_codes(found.inner)
    marginals = (
        inner._marginals() if hasattr(inner, "_marginals") and method != "permutation" else None
    )
    if marginals is None and method == "marginal":
        raise KernelpoolError(
            f"{type(inner).__name__} cannot leave features out: use method='permutation'."
        )
    if marginals is not None:
        every = [c for feature in features for c in feature.columns]
        whole = _known_log_proba(marginals, x, every)[rows, codes]
        lost = [
            whole
            - _known_log_proba(marginals, x, [c for c in every if c not in feature.columns])[
                rows, codes
            ]
            for feature in features
        ]
    else:
        rng = check_random_state(random_state)
        whole = _log_proba(inner, x)[rows, codes]
        lost = []
        for feature in features:
            repeats = []
            for _ in range(n_repeats):
                mixed = x.copy()
                mixed[:, list(feature.columns)] = x[rng.permutation(len(x))][
                    :, list(feature.columns)
                ]
                repeats.append(whole - _log_proba(inner, mixed)[rows, codes])
            lost.append(np.mean(repeats, axis=0))
    total = weight.sum()
    mean = np.array([weight @ loss / total for loss in lost])
    spread = np.array(
        [weight @ (loss - m) ** 2 / total for loss, m in zip(lost, mean, strict=True)]
    )
    effective = total**2 / (weight @ weight)
    return FeatureImportance(
        tuple(feature.name for feature in features),
        mean,
        np.sqrt(spread / max(effective - 1, 1)),
        float(-(weight @ whole) / total),
        "permutation" if marginals is None else "marginal",
        len(x),
    )


def _known_log_proba(marginals: Marginals, x: np.ndarray, columns: list[int]) -> np.ndarray:
    """log P(C_k|x_S) of rows of which cells may be missing: those are integrated out as well, (n, K)."""
    missing = np.isnan(x)
    if not missing.any():
        return marginals.log_proba(x, columns)
    found = np.empty((len(x), len(marginals.log_prior)))
    for pattern in np.unique(missing, axis=0):
        rows = np.flatnonzero((missing == pattern).all(axis=1))
        found[rows] = marginals.log_proba(x[rows], [c for c in columns if not pattern[c]])
    return found


def _log_proba(model: Any, x: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.asarray(to_numpy(model.predict_proba(x)), np.float64), LOWEST))
