r"""Two classifiers on the same rows: who errs less, whose probabilities are better, and whether that may be chance.

Q. McNemar, "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika 12(2),
1947: only rows on which one of both errs tell them apart. Differences of log-losses are paired row by row.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import binomtest

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..text import percent, plural
from .metrics import class_codes


@dataclass(frozen=True)
class ModelComparison:
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
    log_loss_difference: float
    log_loss_error: float
    n_different: int

    @classmethod
    def of(cls, codes: np.ndarray, first: np.ndarray, second: np.ndarray) -> Self:
        """From the codes of the classes, (n,), and the probabilities of both, (n, K)."""
        rows = np.arange(len(codes))
        named = [p.argmax(axis=1) for p in (first, second)]
        wrong = [n != codes for n in named]
        loss = [
            -np.log(np.maximum(p[rows, codes], np.finfo(np.float64).tiny)) for p in (first, second)
        ]
        only = int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())
        p_value = float(binomtest(only[0], sum(only)).pvalue) if sum(only) else 1.0
        gap = loss[1] - loss[0]
        error = float(gap.std(ddof=1) / len(gap) ** 0.5) if len(gap) > 1 else float("inf")
        return cls(
            len(codes),
            (float(wrong[0].mean()), float(wrong[1].mean())),
            (float(loss[0].mean()), float(loss[1].mean())),
            *only,
            p_value,
            float(gap.mean()),
            error,
            int((named[0] != named[1]).sum()),
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        better = "first" if self.errors[0] < self.errors[1] else "second"
        told = "both err alike" if self.errors[0] == self.errors[1] else f"the {better} errs less"
        sure = "more than chance explains" if self.p_value < 0.05 else "chance may explain it"
        return (
            f"On {plural(self.n_rows, 'row')} the first errs on {percent(self.errors[0])} and the second on "
            f"{percent(self.errors[1])}: {told} (only the first on {self.only_first:,}, only the second on "
            f"{self.only_second:,}; p = {self.p_value:.2g}, {sure}). Log-loss {self.log_losses[0]:.4f} and "
            f"{self.log_losses[1]:.4f}: a difference of {self.log_loss_difference:+.4f} ± {self.log_loss_error:.4f}. "
            f"They give {plural(self.n_different, 'row')} different labels."
        )


def compare_models(first: Any, second: Any, X: Any, y: Any) -> ModelComparison:
    """Two fitted classifiers on rows that neither was fitted to.

    Parameters
    ----------
    first, second : classifier
        Fitted, with `predict_proba` and the same classes.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their classes.

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
    codes = class_codes(classes, y, len(X))
    probability = [
        np.asarray(to_numpy(model.predict_proba(X)), np.float64) for model in (first, second)
    ]
    return ModelComparison.of(codes, *probability)
