r"""How good predictions are: one record of sums over rows that adds up over batches, folds and
files; and two classifiers on the same rows.

C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
Theory 16(1), 1970: the curve. Q. McNemar, "Note on the sampling error of the difference between
correlated proportions or percentages", Psychometrika 12(2), 1947: only rows on which one of two
classifiers errs tell them apart.

.. math::

    \text{ECE} = \sum_b \frac{n_b}{n} \left| \text{accuracy}_b - \text{confidence}_b \right|

==========================  ===============================================================
:math:`n_b`                 rows whose most probable class has a probability in bin b
==========================  ===============================================================
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, roc_auc_score

from ..arrays import as_float64, to_numpy
from ..data.labels import class_codes, label_column
from ..errors import KernelpoolError
from ..sums import Sums, record
from ..text import JsonRecord, percent, plural, signed
from .bounds import binomial_interval, paired_difference
from .predictions import DECISIONS, Predictions

N_BINS = 10
"""Bins of equal width of the probability of the most probable class."""

MOST_RANKED = 1 << 24
"""Probabilities that are kept at most, for the metrics of rankings: those of the first rows."""

RARE = 0.1
"""A class is rare where fewer than this share of the rows have it."""


# -- error rates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate(JsonRecord):
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
        return cls(n_rows, n_errors, n_errors / n_rows, float(low), float(high), 1 - alpha)

    def __str__(self) -> str:
        interval = (
            f"{100 * self.confidence:.6g} % interval {100 * self.low:.1f} to {percent(self.high)}"
        )
        return (
            f"{percent(self.error)} ({interval}; {self.n_errors:,} of {plural(self.n_rows, 'row')})"
        )


# -- metrics ---------------------------------------------------------------------------------------


@record
class Ranking:
    """Rows whose classes the model knows; `a + b` has the rows of both, at most `MOST_RANKED`
    probabilities of them.
    """

    true: np.ndarray
    """Codes of the classes, (n,)."""
    probability: np.ndarray
    """(n, K)."""

    def __add__(self, other: Self) -> Self:
        most = MOST_RANKED // self.probability.shape[1]
        pairs = (self.true, other.true), (self.probability, other.probability)
        return type(self)(*(np.concatenate(pair)[:most] for pair in pairs))

    def score(self, metric: Any, k: int) -> float:
        """A metric of the order of all rows by P(C_k|x); NaN where it has no meaning."""
        hit = self.true == k
        return float(metric(hit, self.probability[:, k])) if 0 < hit.sum() < len(hit) else np.nan


@record
class Metrics(Sums):
    """Sums over rows with known classes, from which every metric follows; `a + b` is that of both
    sets of rows.
    """

    n_rows: int
    n_unlabeled: int
    """Rows without a class, which count for nothing else."""
    confusion: np.ndarray
    """True classes down, predicted ones across, (K_true, K); true classes that the model does not know
    come last.
    """
    log_loss_sum: float
    brier_sum: float
    bins: np.ndarray
    """Rows, sum of their probabilities and rows that are right, by the probability of the most
    probable class, (N_BINS, 3).
    """
    decisions: np.ndarray
    """Rows accepted, ambiguous and novel, and how many of each would be wrong, (3, 2)."""
    ranking: Ranking

    @classmethod
    def of(
        cls, true: np.ndarray, predictions: Predictions | np.ndarray, *, n_true: int | None = None
    ) -> Self:
        """Of a batch of rows.

        Parameters
        ----------
        true : ndarray of shape (n,)
            Codes of the classes; -1 where there is none, and K or more for a class that the model
            does not know.
        predictions : Predictions, or ndarray of shape (n, K)
            For the rows; of probabilities alone, all accepted.
        n_true : int, default=None
            K_true where it is not K.

        Returns
        -------
        metrics : Metrics
            Whole numbers, and sums over the rows.
        """
        if isinstance(predictions, np.ndarray):
            predictions = Predictions.of(np.arange(predictions.shape[1]), predictions)
        known = np.asarray(true) >= 0
        true = np.asarray(true)[known]
        rows = predictions.at(known)
        probability = rows.probability
        n, n_classes = probability.shape
        hit = true[:, None] == np.arange(n_classes)  # (n, K)
        of_class = np.where(hit, probability, 0).sum(axis=1)
        confusion = np.zeros((n_true or n_classes, n_classes), np.int64)
        np.add.at(confusion, (true, rows.predicted), 1)
        decisions = np.zeros((len(DECISIONS), 2), np.int64)
        counted = np.column_stack([np.ones(n, np.int64), rows.predicted != true])
        np.add.at(decisions, rows.decision, counted)
        return cls(
            n_rows=n,
            n_unlabeled=int((~known).sum()),
            confusion=confusion,
            log_loss_sum=-float(np.log(np.maximum(of_class, np.finfo(np.float64).tiny)).sum()),
            brier_sum=float(((probability - hit) ** 2).sum()),
            bins=bin_sums(probability.max(axis=1), probability.argmax(axis=1) == true),
            decisions=decisions,
            ranking=Ranking(true[true < n_classes], probability[true < n_classes]),
        )

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """Of no rows at all: what batches are added to."""
        return cls.of(np.empty(0, np.int64), np.empty((0, n_classes)))

    @property
    def n_errors(self) -> int:
        """Rows that were predicted in another class than their own."""
        return int(self.confusion.sum() - np.trace(self.confusion))

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class)."""
        return float(self.log_loss_sum / self.n_rows)

    @property
    def brier(self) -> float:
        """Mean squared distance of the probabilities from one and zeros; of two classes half of it,
        the squared distance of one of them, as scikit-learn has it.
        """
        scale = 0.5 if len(self.confusion) == 2 else 1.0
        return float(scale * self.brier_sum / self.n_rows)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: how far confidence and accuracy of a bin are apart, a mean
        over the rows.
        """
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.n_rows)

    def calibration(self) -> list[dict[str, Any]]:
        """The bins that hold rows, for machines."""
        return [
            {
                "from": i / N_BINS,
                "to": (i + 1) / N_BINS,
                "n_rows": int(n),
                "probability": total / n,
                "right": right / n,
            }
            for i, (n, total, right) in enumerate(self.bins.tolist())
            if n
        ]

    @property
    def baseline(self) -> float:
        """The error of always predicting the most frequent class."""
        return float(1 - self.confusion.sum(axis=1).max() / self.n_rows)

    @property
    def auc(self) -> float:
        """Area under the ROC curve of each class against the others, a mean over the classes."""
        scores = [self.ranking.score(roc_auc_score, k) for k in range(self.confusion.shape[1])]
        known = [score for score in scores if score == score]
        return float(np.mean(known)) if known else np.nan

    def rare(self) -> list[dict[str, Any]]:
        """Classes that few rows have: their codes, shares, recall and average precision."""
        counts = self.confusion.sum(axis=1)
        return [
            {
                "code": k,
                "share": float(counts[k] / self.n_rows),
                "recall": float(self.confusion[k, k] / counts[k]),
                "average_precision": self.ranking.score(average_precision_score, k),
            }
            for k in np.flatnonzero((counts > 0) & (counts < RARE * self.n_rows)).tolist()
            if k < self.confusion.shape[1]
        ]

    def to_dict(self, alpha: float) -> dict[str, Any]:
        """All of it, for machines."""
        accepted = self.accepted(alpha)
        return {
            **self.rate(alpha).to_dict(),
            "baseline": self.baseline,
            "auc": self.auc,
            "rare": self.rare(),
            "log_loss": self.log_loss,
            "brier": self.brier,
            "calibration_error": self.calibration_error,
            "calibration": self.calibration(),
            "confusion": self.confusion.tolist(),
            "unlabeled": int(self.n_unlabeled),
            "decisions": dict(zip(DECISIONS, self.decisions[:, 0].tolist(), strict=True)),
            "accepted": None if accepted is None else accepted.to_dict(),
        }

    def rate(self, alpha: float) -> Rate:
        """The error over all rows."""
        return Rate.of(self.n_errors, self.n_rows, alpha)

    def accepted(self, alpha: float) -> Rate | None:
        """The error over rows that were accepted; None where all were refused."""
        n, wrong = self.decisions[0].tolist()
        return Rate.of(wrong, n, alpha) if n else None


def bin_sums(confidence: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rows, their confidence and those of them that are right in bins of equal width, (N_BINS, 3).

    A row at an edge counts in the lower bin, as in scikit-learn's `calibration_curve`.
    """
    place = np.searchsorted(np.linspace(0, 1, N_BINS + 1)[1:-1], confidence)
    parts = (np.ones(len(confidence)), confidence, right)
    return np.column_stack([np.bincount(place, part, minlength=N_BINS) for part in parts])


# -- what refusing buys ----------------------------------------------------------------------------


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


def coverage_curve(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray, novel: np.ndarray
) -> CoverageCurve:
    """Every threshold that makes a difference; novel rows are never accepted, and count among
    all.
    """
    level, accepted, errors = accepted_up_to(ambiguity, wrong, weight * ~novel)
    return CoverageCurve(accepted / weight.sum(), errors / accepted, level)


# -- two classifiers on the same rows --------------------------------------------------------------


@dataclass(frozen=True)
class ModelComparison(JsonRecord):
    """Two classifiers, the first and the second, on the same rows; prints as sentences.

    Attributes
    ----------
    n_rows : int
        Rows.
    errors : tuple of float
        Shares of rows that each misclassifies.
    log_losses : tuple of float
        Means of -log P(true class).
    only_first, only_second : int
        Rows on which only one of them errs.
    p_value : float
        McNemar's exact test, two-sided, that both err alike.
    interval : tuple of float
        Of the error of the second less that of the first (`bounds.paired_difference`), both ends
        together wrong with a probability of at most 1 - `confidence`.
    confidence : float
        Of the interval.
    log_loss_difference : float
        Second less first: above zero where the first is better.
    log_loss_error : float
        Its standard error.
    n_different : int
        Rows to which they give different labels.
    """

    n_rows: int
    errors: tuple[float, float]
    log_losses: tuple[float, float]
    only_first: int
    only_second: int
    p_value: float
    interval: tuple[float, float]
    confidence: float
    log_loss_difference: float
    log_loss_error: float
    n_different: int

    @classmethod
    def of(
        cls, codes: np.ndarray, first: np.ndarray, second: np.ndarray, alpha: float = 0.05
    ) -> Self:
        """From the codes of the classes, (n,), and the probabilities of both, (n, K)."""
        n = len(codes)
        both = np.stack([first, second])
        predicted = both.argmax(axis=2)  # (2, n)
        wrong = predicted != codes
        loss = -np.log(np.maximum(both[:, np.arange(n), codes], np.finfo(np.float64).tiny))
        only = int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())
        most = [paired_difference(*pair, n, alpha / 2) for pair in (only, only[::-1])]
        gap = loss[1] - loss[0]
        return cls(
            n_rows=n,
            errors=tuple(wrong.mean(axis=1).tolist()),
            log_losses=tuple(loss.mean(axis=1).tolist()),
            only_first=only[0],
            only_second=only[1],
            p_value=float(binomtest(only[0], sum(only)).pvalue) if sum(only) else 1.0,
            interval=(-most[0], most[1]),
            confidence=1 - alpha,
            log_loss_difference=float(gap.mean()),
            log_loss_error=float(gap.std(ddof=1) / n**0.5) if n > 1 else float("inf"),
            n_different=int((predicted[0] != predicted[1]).sum()),
        )

    def __str__(self) -> str:
        low, high = (signed(100 * end) for end in self.interval)
        sure = "more than chance explains" if self.p_value < 0.05 else "chance may explain it"
        return (
            f"On {plural(self.n_rows, 'row')} the first errs on {percent(self.errors[0])} and the "
            f"second on {percent(self.errors[1])} (only the first on {self.only_first:,}, only the "
            f"second on {self.only_second:,}; p = {self.p_value:.2g}, {sure}), a difference of "
            f"{low} to {high} points with {100 * self.confidence:.6g} % confidence. Log-loss "
            f"{self.log_losses[0]:.4f} and {self.log_losses[1]:.4f}: a difference of "
            f"{signed(self.log_loss_difference, 4)} ± {self.log_loss_error:.4f}. "
            f"They give {plural(self.n_different, 'row')} different labels."
        )


def compare_models(
    first: Any, second: Any, X: Any, y: Any, *, alpha: float = 0.05
) -> ModelComparison:
    """Two fitted classifiers on rows that neither was fitted to.

    Parameters
    ----------
    first, second : classifier
        Fitted, with `predict_proba` and the same classes.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their classes.
    alpha : float, default=0.05
        Probability that the interval of the difference is wrong.

    Returns
    -------
    comparison : ModelComparison
        Prints as sentences.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import compare_models
    >>> X, y = make_clouds(random_state=0)
    >>> few, many = (SharedKernelClassifier.prbf(n, random_state=0).fit(X, y) for n in (2, 12))
    >>> compare_models(few, many, *make_clouds(random_state=1)).p_value < 0.001
    True
    """
    classes = np.asarray(first.classes_)
    if list(classes) != list(second.classes_):
        raise KernelpoolError(
            f"Both must know the same classes; got {list(classes)} and {list(second.classes_)}."
        )
    codes = class_codes(label_column(y, len(X)), classes, None)
    a, b = (as_float64(to_numpy(model.predict_proba(X))) for model in (first, second))
    return ModelComparison.of(codes, a, b, alpha)


def accepted_up_to(
    ambiguity: np.ndarray, wrong: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct ambiguities, rising, with the weight of the rows up to each and of the errors
    among them.
    """
    counted = weight > 0
    level, at = np.unique(ambiguity[counted], return_inverse=True)
    accepted = np.bincount(at, weight[counted], minlength=len(level))
    errors = np.bincount(at, weight[counted] * wrong[counted], minlength=len(level))
    return level, np.cumsum(accepted), np.cumsum(errors)
