r"""Labels that are not certain: class probabilities, sets of classes, and labels that may be wrong.

.. math:: L = \sum_n w_n \log \sum_k \ell_{nk}\, P(C_k)\, p(x_n \mid C_k)

with :math:`\ell_{nk}` the probability of what was told of a row if its class were k: zeros and ones where a set of classes was
told, :math:`P(\text{label} \mid C_k)` where labels may be wrong, ones where nothing was told. EM takes the class for missing: a
row counts as one row of each class, weighted by its share

.. math:: t_{nk} \propto \ell_{nk}\, P(C_k)\, p(x_n \mid C_k)

and a table of noise that is not known is the mean of these shares among the rows of each label. Class probabilities that are
told are shares that stay as they are: the objective is then :math:`\sum_{nk} w_n t_{nk} \log P(C_k)\, p(x_n \mid C_k)`.

=======================  ==============  =======  ====================================================================
in the formula           here            shape    meaning
=======================  ==============  =======  ====================================================================
:math:`\ell_{nk}`        ``likelihood``  (n, K)   of what was told of each row
:math:`t_{nk}`           ``share``       (n, K)   of each class in each row
P(label l | C_k)         ``noise``       (K, K)   rows are classes, columns labels
=======================  ==============  =======  ====================================================================
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..arrays import safe_log
from ..errors import KernelpoolError
from .labels import class_codes, distinct_labels, with_two_classes
from .validation import check_columns, check_shape

FIRST_NOISE = 0.2
"""Share of wrong labels from which a table of noise is estimated."""

LEAST_SHARE = 1e-9
"""A class with less than this share in a row has none."""


@dataclass(frozen=True)
class UncertainLabels:
    """What was told of the classes of some rows."""

    classes: np.ndarray
    likelihood: np.ndarray
    """(n, K)."""
    settled: bool = False
    """Whether these are class probabilities, which no density changes."""
    codes: np.ndarray | None = None
    """The labels, -1 for none, where they may be wrong, (n,)."""
    noise: np.ndarray | None = None
    """(K, K)."""
    estimated: bool = False
    """Whether the table of noise is to be found."""

    def first_share(self) -> np.ndarray:
        """Before anything is known of the densities, (n, K)."""
        return np.asarray(self.likelihood / self.likelihood.sum(axis=1, keepdims=True))

    def share(self, log_joint: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
        """t_nk given log P(C_k) p(x|C_k), (n, K), and the objective."""
        scores = log_joint + safe_log(self.likelihood)
        evidence = logsumexp(scores, axis=1)
        return np.exp(scores - evidence[:, None]), float(weight @ evidence)

    def with_noise(self, share: np.ndarray, weight: np.ndarray) -> "UncertainLabels":
        """The same labels, with the table of noise that the shares of the classes make likely."""
        if not self.estimated or self.codes is None:
            return self
        known = self.codes >= 0
        table = np.zeros((len(self.classes), len(self.classes)))
        np.add.at(table.T, self.codes[known], share[known] * weight[known, None])
        noise = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
        return replace(self, noise=noise, likelihood=_likelihood(noise, self.codes))


def uncertain_labels(y: Any, noise: Any, unlabeled: Any) -> UncertainLabels | None:
    """What was told of the classes; None where it is plain labels, taken at their word."""
    matrix = y if hasattr(y, "shape") else np.asarray(y, dtype=object) if _is_nested(y) else None
    if matrix is not None and len(matrix.shape) == 2 and matrix.shape[1] > 1:
        if noise is not None:
            raise KernelpoolError(
                "label_noise is for labels; a matrix of probabilities or sets tells of doubt itself."
            )
        return _from_matrix(matrix)
    if noise is None:
        return None
    labels = np.asarray(y)
    classes = with_two_classes(distinct_labels(labels, unlabeled))
    codes = class_codes(labels, classes, unlabeled)
    table = _noise_table(noise, len(classes))
    return UncertainLabels(
        classes, _likelihood(table, codes), False, codes, table, isinstance(noise, str)
    )


def _is_nested(y: Any) -> bool:
    return (
        isinstance(y, list | tuple) and len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray)
    )


def _from_matrix(y: Any) -> UncertainLabels:
    table = np.asarray(y, dtype=np.float64)
    classes = (
        np.array([str(name) for name in y.columns])
        if hasattr(y, "columns")
        else np.arange(table.shape[1])
    )
    if (np.unique(classes) != classes).any():
        order = np.argsort(classes)
        classes, table = classes[order], table[:, order]
    total = table.sum(axis=1)
    bad = ~np.isfinite(total) | (table < 0).any(axis=1) | (total <= 0)
    sets = bool(np.isin(table, (0.0, 1.0)).all())
    bad |= False if sets else np.abs(total - 1) > 1e-6
    if bad.any():
        row = int(np.argmax(bad))
        raise KernelpoolError(
            f"y as a matrix must hold class probabilities, rows that sum to one, or sets of classes, rows of zeros and one 1 "
            f"at least; row {row} holds {table[row].tolist()[:8]}."
        )
    if (table.sum(axis=0) <= 0).any():
        raise KernelpoolError(
            f"y gives class {classes[int(np.argmin(table.sum(axis=0)))]!s} no share in any row; leave it out."
        )
    return UncertainLabels(classes, table, settled=not sets or bool((total == 1).all()))


def _noise_table(noise: Any, n_classes: int) -> np.ndarray:
    if isinstance(noise, str) or np.ndim(noise) == 0:
        wrong = FIRST_NOISE if isinstance(noise, str) else float(noise)
        if not 0 <= wrong < 1:
            raise KernelpoolError(
                f"label_noise must be a share in [0, 1), a table or 'estimate'; got {noise!r}."
            )
        one = np.eye(n_classes)
        return np.asarray((1 - wrong) * one + wrong * (1 - one) / (n_classes - 1))
    table = np.asarray(noise, dtype=np.float64)
    check_shape("label_noise", table, (n_classes, n_classes))
    check_columns("label_noise, transposed,", table.T)
    return table


def _likelihood(noise: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """P(label|C_k), (n, K); ones where there is none."""
    return np.where(codes[:, None] < 0, 1.0, noise.T[np.maximum(codes, 0)])


def spread_out(share: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each row once for every class that has a share in it: places, codes and weights, (N,) each."""
    at, codes = np.nonzero(share > LEAST_SHARE)
    return at, codes, share[at, codes] * weight[at]
