r"""How good predictions are: one record of sums over rows that adds up over batches, folds and files; and one interval.

C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26(4), 1934: the interval of an error rate.
C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information Theory 16(1), 1970: the curve.

.. math::

    \text{ECE} = \sum_b \frac{n_b}{n} \left| \text{accuracy}_b - \text{confidence}_b \right|

==========================  ===============================================================
:math:`1 - m(x)`            `ambiguity` of a row, the sum of all its probabilities but the largest
:math:`n_b`                 rows whose most probable class has a probability in bin b
==========================  ===============================================================

Departures: ambiguity is summed from the small probabilities and not taken as 1 - max, which rounds to zero for confident rows.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import beta
from sklearn.utils import column_or_1d

from ..errors import KernelpoolError
from ..sums import Sums, record
from ..text import percent, plural
from ..training.reject import accepted_up_to

N_BINS = 10
"""Bins of equal width of the probability of the most probable class."""

DECISIONS = ("accepted", "ambiguous", "novel")
"""What may become of a row, by the codes that `RejectClassifier.decide` returns."""


def class_codes(classes: Any, y: Any, n_rows: int) -> np.ndarray:
    """Positions of labels among the classes of a model, (n,); there must be one for each row."""
    known, labels = np.asarray(classes), column_or_1d(y)
    if len(labels) != n_rows:
        raise KernelpoolError(f"X has {n_rows} rows and y {len(labels)} labels.")
    codes = np.searchsorted(known, labels)
    if not n_rows or (known[np.minimum(codes, len(known) - 1)] != labels).any():
        raise KernelpoolError(f"y must hold labels of the classes {known.tolist()}, at least one.")
    return np.asarray(codes)


# -- intervals ----------------------------------------------------------------------------------------------------


def binomial_interval(
    n_errors: Any, n_rows: Any, alpha: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    """Clopper and Pearson's interval of a share, wrong with a probability of at most `alpha`; from none of n to all of n."""
    k, n = np.asarray(n_errors, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low, high = beta.ppf(alpha / 2, k, n - k + 1), beta.isf(alpha / 2, k + 1, n - k)
    return np.where(k > 0, low, 0.0), np.where(k < n, high, 1.0)


@dataclass(frozen=True)
class Rate:
    """A share of rows that were misclassified, with Clopper & Pearson's interval."""

    n_rows: int
    n_errors: int
    error: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, n_errors: int, n_rows: int, alpha: float) -> Self:
        """Of counts; each end of the interval is wrong with half of `alpha`."""
        low, high = binomial_interval(n_errors, n_rows, alpha)
        return cls(
            int(n_rows), int(n_errors), float(n_errors / n_rows), float(low), float(high), 1 - alpha
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        interval = (
            f"{100 * self.confidence:.6g} % interval {100 * self.low:.1f} to {percent(self.high)}"
        )
        return (
            f"{percent(self.error)} ({interval}; {self.n_errors:,} of {plural(self.n_rows, 'row')})"
        )


# -- metrics ------------------------------------------------------------------------------------------------------


@record
class Metrics(Sums):
    """Sums over rows with known classes, from which every metric follows; `a + b` is that of both sets of rows."""

    n_rows: Any
    """Rows, or their weight: a whole number where there are no weights."""
    n_unlabeled: Any
    """Rows without a class, which count for nothing else."""
    confusion: np.ndarray
    """True classes down, named ones across, (K_true, K); true classes that the model does not know come last."""
    log_loss_sum: float
    brier_sum: float
    bins: np.ndarray
    """Rows, sum of their probabilities and rows that are right, by the probability of the most probable class, (N_BINS, 3)."""
    decisions: np.ndarray
    """Rows accepted, ambiguous and novel, and how many of each would be wrong, (3, 2)."""

    @classmethod
    def of(
        cls,
        true: np.ndarray,
        probability: np.ndarray | None = None,
        *,
        named: np.ndarray | None = None,
        decision: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        n_classes: int | None = None,
        n_true: int | None = None,
    ) -> Self:
        """Of a batch of rows.

        Parameters
        ----------
        true : ndarray of shape (n,)
            Codes of the classes; -1 where there is none, and K or more for a class that the model does not know.
        probability : ndarray of shape (n, K), default=None
            Of all classes; None where the model gives none.
        named : ndarray of shape (n,), default=None
            Codes of the labels; None takes the most probable class.
        decision : ndarray of shape (n,), default=None
            0 for a row that was accepted, 1 for an ambiguous, 2 for a novel one; None accepts all.
        weight : ndarray of shape (n,), default=None
            How often each row counts; None is once.
        n_classes, n_true : int, default=None
            K where there are no probabilities, and K_true where it is not K.

        Returns
        -------
        metrics : Metrics
            Whole numbers where there are no weights.
        """
        known = np.asarray(true) >= 0
        weight = np.ones(len(known), np.int64) if weight is None else np.asarray(weight)
        n_unlabeled = weight[~known].sum()
        true, weight = np.asarray(true)[known], weight[known]
        decision = (
            np.zeros(len(true), np.int64) if decision is None else np.asarray(decision)[known]
        )
        log_loss = brier = 0.0
        bins = np.zeros((N_BINS, 3))
        if probability is not None:
            probability = np.asarray(probability)[known]
            n_classes = probability.shape[1]
            likely = probability.argmax(axis=1)
            named = likely if named is None else np.asarray(named)[known]
            hit = true[:, None] == np.arange(n_classes)  # (n, K)
            given = np.where(hit, probability, 0).sum(axis=1)
            log_loss = -float(weight @ np.log(np.maximum(given, np.finfo(np.float64).tiny)))
            brier = float(weight @ ((probability - hit) ** 2).sum(axis=1))
            bins = bin_sums(
                probability.max(axis=1), likely == true, np.linspace(0, 1, N_BINS + 1), weight
            )
        else:
            named = np.asarray(named)[known]
        size = (n_classes or 0) if n_true is None else n_true
        confusion = np.zeros((size, n_classes or 0), weight.dtype)
        np.add.at(confusion, (true, named), weight)
        decisions = np.zeros((len(DECISIONS), 2), weight.dtype)
        np.add.at(decisions, decision, np.column_stack([weight, weight * (named != true)]))
        return cls(weight.sum(), n_unlabeled, confusion, log_loss, brier, bins, decisions)

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """Of no rows at all: what batches are added to."""
        return cls.of(np.empty(0, np.int64), np.empty((0, n_classes)))

    @property
    def n_errors(self) -> Any:
        """Rows that were given another class than their own."""
        return self.confusion.sum() - np.trace(self.confusion)

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class)."""
        return float(self.log_loss_sum / self.n_rows)

    @property
    def brier(self) -> float:
        """Mean squared distance of the probabilities from one and zeros."""
        return float(self.brier_sum / self.n_rows)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: how far confidence and accuracy of a bin are apart, a mean over the rows."""
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.n_rows)

    def calibration(self) -> list[dict[str, Any]]:
        """The bins that hold rows, for machines."""
        return [
            {
                "from": i / N_BINS,
                "to": (i + 1) / N_BINS,
                "n_rows": int(n),
                "said": said / n,
                "right": right / n,
            }
            for i, (n, said, right) in enumerate(self.bins.tolist())
            if n
        ]

    def rate(self, alpha: float) -> Rate:
        """The error over all rows, counted as whole rows."""
        return Rate.of(int(self.n_errors), int(self.n_rows), alpha)

    def accepted(self, alpha: float) -> Rate | None:
        """The error over rows that were accepted; None where all were refused."""
        n, wrong = self.decisions[0].tolist()
        return Rate.of(int(wrong), int(n), alpha) if n else None


def bin_sums(
    confidence: np.ndarray, right: np.ndarray, edges: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Weight, weighted confidence and weight of those that are right in each bin, (n_bins, 3).

    A row at an edge counts in the lower bin, as in scikit-learn's `calibration_curve`.
    """
    n_bins = len(edges) - 1
    place = np.clip(np.searchsorted(edges[1:-1], confidence), 0, max(n_bins - 1, 0))
    weight = np.ones(len(confidence)) if weight is None else weight
    parts = (weight, weight * confidence, weight * right)
    return np.column_stack([np.bincount(place, part, minlength=n_bins) for part in parts])


# -- what refusing buys -------------------------------------------------------------------------------------------


class CoverageCurve(NamedTuple):
    """What is accepted, and how often that is wrong, as the threshold of ambiguity rises.

    Attributes
    ----------
    coverage : ndarray of shape (n_thresholds,)
        Share of the rows that are accepted; rises, and ends at the share that is not novel.
    error : ndarray of shape (n_thresholds,)
        Share of errors among the accepted rows.
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds: rows whose ambiguity is at most this are accepted. Rises.
    """

    coverage: np.ndarray
    error: np.ndarray
    thresholds: np.ndarray


def ambiguity_of(probability: np.ndarray) -> np.ndarray:
    """1 - m(x): the model's own probability that its label is wrong, (n,)."""
    others = np.array(probability, dtype=np.float64)
    np.put_along_axis(others, np.argmax(others, axis=1)[:, None], 0.0, axis=1)
    return np.asarray(others.sum(axis=1))


def coverage_curve(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, novel: np.ndarray
) -> CoverageCurve:
    """Every threshold that makes a difference; novel rows are never accepted, and count among all."""
    kept = ~novel & (weight > 0)
    level, accepted, errors = accepted_up_to(ambiguity[kept], wrong[kept], weight[kept])
    return CoverageCurve(accepted / weight.sum(), errors / accepted, level)
