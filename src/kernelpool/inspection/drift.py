r"""Whether rows are still like those that a classifier was trained on, and which features have
moved.

K. Pearson, "On the probability that two independent distributions of frequency are really samples
from the same population", Biometrika 8, 1911: the test. S. Holm, "A simple sequentially rejective
multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979: many tests at once.

.. math::

    \chi^2 = \sum_b \frac{(\sqrt{n/m}\, r_b - \sqrt{m/n}\, c_b)^2}{r_b + c_b}

==============  ====================================================================================
:math:`r_b`     reference rows in bin b, :math:`m` in all
:math:`c_b`     new rows in bin b, :math:`n` in all
==============  ====================================================================================

Numbers are counted in bins of equal mass of the reference, categories one by one, missing cells
apart, and the log-density log p(x) of the model like a feature: single features may all look the
same where their dependence has changed, and the density shows it. A reference holds counts and no
rows; counts add up over batches. Bins that expect fewer than five rows are joined with their
neighbors.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import chi2_contingency

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..tables.columns import Columns
from ..text import percent, plural, shown
from .explanation import feature_names

N_BINS = 10
"""Of a feature of numbers; one more holds cells that are missing."""

FEWEST = 5
"""Rows that a bin must expect."""

DENSITY = "log-density"
"""What the density of the model is called among the features."""

MOST_CATEGORIES = 50
"""Categories of a column that are counted one by one; all others together."""


@dataclass(frozen=True)
class DriftReport:
    """Whether new rows are like the reference; prints as a table.

    Attributes
    ----------
    n_rows, n_reference : int
        New rows and reference rows.
    p_value : float
        Of the test that nothing has moved.
    parts : tuple of dict
        The density and the features, the clearest first: `name`; `p_value`, of the test that this
        one has not moved; `adjusted`, the same after Holm's correction for all of them; and
        `distance`, half the sum of the differences of the shares of all bins (total variation),
        between 0 and 1.
    """

    n_rows: int
    n_reference: int
    p_value: float
    parts: tuple[dict[str, Any], ...]

    def moved(self, level: float = 0.05) -> list[str]:
        """Names of what has moved, wrong about any of them with a probability of at most
        `level`.
        """
        return [part["name"] for part in self.parts if part["adjusted"] < level]

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        rows = f"{plural(self.n_rows, 'row')} against {self.n_reference:,} of the reference"
        n_moved, p_value = len(self.moved()), f"(p = {self.p_value:.2g})"
        if not n_moved:
            return f"{rows}: nothing has moved {p_value}."
        lines = [f"{rows}: {plural(n_moved, 'feature')} of {len(self.parts)} moved {p_value}."]
        for part in self.parts[: min(n_moved, 12)]:
            share = f"{percent(part['distance'])} of the rows, p = {part['adjusted']:.2g}"
            lines.append(f"  {shown(part['name'], 40)}: {share}")
        return "\n".join(lines)


@dataclass(frozen=True)
class DriftReference:
    """What rows were like when a classifier was trained: counts in bins, and no rows.

    Attributes
    ----------
    features : tuple of dict
        Of the features, and last of the log-density where the model knows it: `name`; `edges`
        between the bins of numbers; `categories`, after which a bin for any other value follows,
        None for numbers; and `counts` of the reference rows, the last of missing cells.
    """

    features: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, X: Any, model: Any = None, held_out: Any = None) -> Self:
        """From reference rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), data frame or table
            Rows, such as those of the training.
        model : classifier, default=None
            Fitted; where it has `score_samples`, its log-density is watched as well.
        held_out : array-like or table, default=None
            Rows that the model was not fitted to, for the density: it is higher at the rows of the
            fit. None takes X.

        Returns
        -------
        reference : DriftReference
            To be kept, and to check new rows against.
        """
        columns = Columns.learn(X)
        x = columns.encode(X)
        if not len(x):
            raise KernelpoolError("X has no rows to refer to.")
        watched = [_most_frequent(*pair) for pair in zip(x.T, columns.categories, strict=True)]
        x = Columns(tuple(watched)).encode(X)
        features = [
            _feature(*each) for each in zip(feature_names(columns), x.T, watched, strict=True)
        ]
        if hasattr(model, "score_samples"):
            features.append(_feature(DENSITY, _scores(model, X if held_out is None else held_out)))
        return cls(tuple(features))

    def count(self, X: Any, model: Any = None) -> np.ndarray:
        """New rows in the bins of all features, one after the other; counts of batches add up."""
        features = [feature for feature in self.features if feature["name"] != DENSITY]
        if hasattr(X, "columns"):
            names, given = (
                [feature["name"] for feature in features],
                feature_names(Columns.learn(X, None)),
            )
            missing = [name for name in names if name not in given]
            if missing:
                raise KernelpoolError(f"X lacks the column {missing[0]!r} of the reference.")
            if given != names:
                X = X.select(names) if hasattr(X, "select") else X[names]
        categories = (feature["categories"] for feature in features)
        columns = Columns(tuple(None if v is None else np.array(v, object) for v in categories))
        counts = [_count(*pair) for pair in zip(features, columns.encode(X).T, strict=True)]
        if len(features) < len(self.features):
            known = hasattr(model, "score_samples") and counts[0].sum() > 0
            score = _scores(model, X) if known else np.zeros(0)
            counts.append(_count(self.features[-1], score))
        return np.concatenate(counts)

    def compare(self, counts: np.ndarray) -> DriftReport:
        """The report on new rows that were counted by `count`."""
        ends = np.cumsum([len(feature["counts"]) for feature in self.features])[:-1]
        parts = []
        for feature, new in zip(self.features, np.split(counts, ends), strict=True):
            if new.any():  # the density is not counted without a model
                p_value, distance = homogeneity(np.array(feature["counts"]), new)
                parts.append({"name": feature["name"], "p_value": p_value, "distance": distance})
        if not parts:
            raise KernelpoolError("There are no new rows to check.")
        for part, adjusted in zip(parts, holm([part["p_value"] for part in parts]), strict=True):
            part["adjusted"] = adjusted
        parts.sort(key=lambda part: (part["adjusted"], part["p_value"], -part["distance"]))
        n_reference = sum(self.features[0]["counts"])
        n_rows = int(counts[: len(self.features[0]["counts"])].sum())
        return DriftReport(n_rows, n_reference, parts[0]["adjusted"], tuple(parts))

    def to_dict(self) -> dict[str, Any]:
        """In plain numbers and text, for model files."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """From what `to_dict` wrote; refuses anything else."""
        try:
            return cls(tuple(_checked(feature) for feature in given["features"]))
        except (KeyError, TypeError, ValueError) as error:
            raise KernelpoolError(f"The reference for drift cannot be read: {error}.") from None


def _checked(given: Any) -> dict[str, Any]:
    """A feature of a reference that was read from a file."""
    edges, counts = [float(edge) for edge in given["edges"]], [int(n) for n in given["counts"]]
    values = None if given["categories"] is None else [str(value) for value in given["categories"]]
    if not np.isfinite(edges).all() or edges != sorted(edges):
        raise ValueError("edges must rise")
    n_bins = len(edges if values is None else values) + 2
    if len(counts) != n_bins or min(counts) < 0 or not any(counts):
        raise ValueError("counts do not fit the bins")
    return {"name": str(given["name"]), "edges": edges, "categories": values, "counts": counts}


def _scores(model: Any, X: Any) -> np.ndarray:
    return np.asarray(to_numpy(model.score_samples(X)), np.float64)


def _most_frequent(codes: np.ndarray, values: np.ndarray | None) -> np.ndarray | None:
    """At most MOST_CATEGORIES of the categories of a column; None for numbers."""
    if values is None:
        return None
    often = np.bincount(codes[~np.isnan(codes)].astype(int), minlength=len(values))
    return np.asarray(values[np.sort(np.argsort(-often, kind="stable")[:MOST_CATEGORIES])])


def _feature(name: str, values: np.ndarray, categories: np.ndarray | None = None) -> dict[str, Any]:
    """Bins of a feature, and how many of the values are in each; those of numbers have about equal
    mass.
    """
    numbers, edges = values[np.isfinite(values)], np.zeros(0)
    levels = np.unique(numbers)
    if categories is None and len(levels) > N_BINS:
        edges = np.unique(np.quantile(numbers, np.arange(1, N_BINS) / N_BINS))
    elif categories is None:
        edges = 0.5 * (levels[1:] + levels[:-1])
    known = None if categories is None else categories.tolist()
    feature = {"name": name, "edges": edges.tolist(), "categories": known}
    return {**feature, "counts": _count(feature, values).tolist()}


def _count(feature: dict[str, Any], values: np.ndarray) -> np.ndarray:
    """Numbers, or codes of categories, in each bin of a feature, the last of missing cells."""
    edges, missing = feature["edges"], np.isnan(values)
    if feature["categories"] is not None:
        edges = np.arange(len(feature["categories"])) + 0.5  # between the codes
    place = np.searchsorted(edges, values, side="right")
    return np.bincount(np.where(missing, len(edges) + 1, place), minlength=len(edges) + 2)


def check_drift(model: Any, X: Any, reference: Any) -> DriftReport:
    """Whether rows are still like those of the training, and which features have moved.

    Parameters
    ----------
    model : classifier or None
        Fitted; where it has `score_samples`, its log-density is tested like a feature.
    X : array-like of shape (n_samples, n_features), data frame or table
        New rows.
    reference : DriftReference, array-like, data frame or table
        What to compare with: the record of `DriftReference.of`, or the rows themselves.

    Returns
    -------
    report : DriftReport
        Prints as a table.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import check_drift
    >>> X, y = make_clouds(random_state=0)
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    >>> X_new, _ = make_clouds(random_state=1)
    >>> check_drift(model, X_new, X).moved()
    []
    >>> check_drift(model, X_new + [0.5, 0.0], X).moved()
    ['feature 0', 'log-density']
    """
    if not isinstance(reference, DriftReference):
        reference = DriftReference.of(reference, model)
    return reference.compare(reference.count(X, model))


def homogeneity(reference: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Pearson's p-value that two sets of counts come from one distribution, and their total
    variation distance.
    """
    counts = np.stack([reference, new])
    total = counts.sum(axis=1)
    distance = float(0.5 * np.abs(counts[0] / total[0] - counts[1] / total[1]).sum())
    needed = FEWEST * total.sum() / total.min()  # rows in a bin that expects FEWEST
    starts, held = [0], 0
    for bin_, n in enumerate(counts.sum(axis=0).tolist()):
        if held >= needed:
            starts.append(bin_)
            held = 0
        held += n
    if held < needed and len(starts) > 1:
        starts.pop()
    joined = np.add.reduceat(counts, starts, axis=1)
    if len(starts) < 2:
        return 1.0, distance
    return float(chi2_contingency(joined, correction=False).pvalue), distance


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: rejecting those below a level errs on any with a probability of at most
    that level.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted.tolist()
