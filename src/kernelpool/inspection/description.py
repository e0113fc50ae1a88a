"""What a fitted model is made of, without any rows: a sentence, and its kernels with their shares
and classes.

=====================  ===================  ======================================================
paper                  here                 meaning
=====================  ===================  ======================================================
:math:`P(j)`           ``share``            of a kernel in the whole mixture; they sum to one
:math:`P(C_k|j)`       ``class_posterior``  of a row that a kernel generated
=====================  ===================  ======================================================

Every estimator of the library returns its own `Description` from ``_describe()``. Reports,
notebooks, the command line, model files and ONNX models read it. Kernels are those of the features
that the model takes; `kernelpool.inspection.pipeline` has them in the units of the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..errors import KernelpoolError
from ..tables.columns import Columns
from ..text import plural


@dataclass(frozen=True)
class KernelTable:
    """The kernels of a fitted model, or its neurons, in the order of its attributes."""

    share: np.ndarray
    """P(j), (M,)."""
    class_posterior: np.ndarray | None = None
    """P(C_k|j), (M, K); None where it is defined for rows only."""
    mean: np.ndarray | None = None
    """(M, d)."""
    variance: np.ndarray | None = None
    """Along each feature, (M, d)."""
    covariance: np.ndarray | None = None
    """(M, d, d), or (d, d) for all; None where features are independent within a kernel."""
    probability: np.ndarray | None = None
    """Of the categories of all categorical features, one after the other, (M, all levels)."""
    group: tuple[str, ...] = ()
    """The network that each belongs to, where there are several."""
    word: str = "kernel"
    listed: np.ndarray | None = None
    """Which belong to the first network of their name, (M,): those of other folds are nearly the same.
    """

    def __len__(self) -> int:
        return len(self.share)

    def matrices(self) -> np.ndarray:
        """The covariance of each kernel, (M, d, d)."""
        mean, variance, whole = map(np.asarray, (self.mean, self.variance, self.covariance))
        if self.covariance is None:
            whole = variance[:, :, None] * np.eye(mean.shape[1])
        return np.broadcast_to(whole, (len(mean), *whole.shape[-2:]))

    def largest(self, n: int) -> np.ndarray:
        """At most n kernels that are listed, those with the greatest shares; equidistant ones if all
        shares are equal.
        """
        at = np.flatnonzero(np.ones(len(self)) if self.listed is None else self.listed)
        share = self.share[at]
        if len(at) > n and np.ptp(share) < 1e-12 * share.max():
            return at[np.linspace(0, len(at) - 1, n).astype(int)]
        return at[np.argsort(-share, kind="stable")[:n]]

    def classes(self, j: int) -> list[tuple[int, float]]:
        """Codes and shares of the classes of a kernel, the most frequent first; none where they are
        not known.
        """
        return [] if self.class_posterior is None else greatest(self.class_posterior[j], 0.005)


def greatest(shares: np.ndarray, least: float) -> list[tuple[int, float]]:
    """Positions and values of the shares that are at least this, the greatest first."""
    order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares >= least)].tolist()
    return [(i, float(shares[i])) for i in order]


def joined_tables(
    tables: Sequence[KernelTable], weights: Sequence[float], names: Sequence[str]
) -> KernelTable:
    """The kernels of several networks, each with its weight and name."""

    def joined(field: str) -> np.ndarray | None:
        parts = [getattr(table, field) for table in tables]
        if all(part is None for part in parts):
            return None
        if field == "covariance":
            parts = [table.matrices() for table in tables]
        return np.concatenate(parts)

    share = np.concatenate([w * table.share for w, table in zip(weights, tables, strict=True)])
    fields = ("class_posterior", "mean", "variance", "covariance", "probability")
    shapes: dict[str, Any] = {field: joined(field) for field in fields}
    sizes = list(map(len, tables))
    group = tuple(np.repeat(names, sizes).tolist())
    first = np.repeat([name not in names[:i] for i, name in enumerate(names)], sizes)
    return KernelTable(share / share.sum(), **shapes, group=group, listed=first)


@dataclass(frozen=True)
class Description:
    """A fitted model in a sentence or two, and its kernels where it has any."""

    sentence: str
    kernels: KernelTable | None = None


class Inspected:
    """What a fitted estimator of this library answers to rooms above and below its own."""

    def _describe(self) -> Description:
        return Description(f"A fitted {type(self).__name__}.")

    def _with_columns(self, columns: Columns) -> Self:
        """A copy of the fitted estimator for the same rows in another form, such as codes."""
        raise NotImplementedError

    def _predictions(self, X: Any, score: bool, log_density: bool) -> Any:
        """`kernelpool.inspection.Predictions` for rows, of a classifier; see `predictions`."""
        raise KernelpoolError(
            f"A classifier with predict_proba is expected; got {type(self).__name__}."
        )

    def _to_graph(self, x: Any) -> dict[str, Any]:
        """Answers in an ONNX graph of `x`, encoded rows as a `kernelpool.app.onnx.graph.Tensor`,
        under the names of the outputs; the label is the class of the greatest of the `scores`.
        """
        raise KernelpoolError(f"{type(self).__name__} cannot be exported to ONNX.")


def describe(estimator: Any) -> Description:
    """The description of a fitted estimator; without kernels if it is not one of this library."""
    described = isinstance(estimator, Inspected)
    return estimator._describe() if described else Inspected._describe(estimator)


# -- parts of the descriptions -------------------------------------------------------------------


def classes_text(estimator: Any) -> str:
    """The number of classes."""
    return plural(len(estimator.classes_), "class")


def features_text(estimator: Any) -> str:
    """The number of features."""
    return plural(estimator.n_features_in_, "feature")


def training_text(estimator: Any, fitted: str = ", fitted by EM") -> str:
    """The end of a sentence: the number of sweeps, and whether training converged."""
    n_sweeps = getattr(estimator, "n_iter_", None)
    if n_sweeps is None:  # made from known parameters
        return "."
    end = "" if getattr(estimator, "converged_", True) else "; training stopped before convergence"
    return f"{fitted} in {plural(int(n_sweeps), 'sweep')}{end}."


def refusals(estimator: Any) -> str:
    """When a `RejectClassifier` refuses a row, in a sentence."""
    rules = []
    if estimator.ambiguity_threshold_ is not None:
        limit = 100 * estimator.ambiguity_threshold_
        rules.append(f"ambiguous where the probability of an error exceeds {limit:.3g} %")
    if estimator.novelty_threshold_ is not None:
        rules.append(f"novel where log p(x) is below {estimator.novelty_threshold_:.4g}")
    if not rules:
        return "It may refuse rows, but no threshold is set."
    return f"It refuses a row as {' and as '.join(rules)}."
