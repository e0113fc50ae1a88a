r"""Whether rows are still like those that a classifier was trained on, and which features have moved.

K. Pearson, "On the probability that two independent distributions of frequency are really samples from the same population",
Biometrika 8, 1911: the test. S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6(2), 1979: many tests at once.

.. math::

    \chi^2 = \sum_b \frac{(\sqrt{n/m}\, r_b - \sqrt{m/n}\, c_b)^2}{r_b + c_b}

==============  ====================================================================================
:math:`r_b`     reference rows in bin b, :math:`m` in all
:math:`c_b`     new rows in bin b, :math:`n` in all
==============  ====================================================================================

Every feature is counted in bins of equal mass of the reference, words one by one, and so is the log-density log p(x) of the
model: single features may all look the same where the way they hang together has changed, and the density tells. A reference
is counts alone, no rows; counts add up over batches. Bins that expect fewer than five rows are joined with their neighbors.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import chi2

from ..arrays import to_numpy
from ..errors import KernelpoolError
from ..sums import Sums, record
from ..text import percent, plural, shown

N_BINS = 10
"""Of a feature of numbers; one more holds cells that are missing."""

FEWEST = 5
"""Rows that a bin must expect."""

DENSITY = "log-density"
"""What the density of the model is called among the features."""

MOST_WORDS = 50
"""Words of a column that are counted one by one; all others together."""


@dataclass(frozen=True)
class Bins:
    """How the values of one feature are counted: numbers by edges, words by themselves."""

    name: str
    edges: tuple[float, ...] = ()
    words: tuple[str, ...] | None = None

    @property
    def n_bins(self) -> int:
        """With one for what is missing, or for words that are not known."""
        return (len(self.edges) + 1 if self.words is None else len(self.words)) + 1

    def counts(self, values: Any) -> np.ndarray:
        """Of the values in each bin, (n_bins,)."""
        if self.words is None:
            numbers = np.asarray(values, np.float64)
            place = np.searchsorted(np.asarray(self.edges), numbers, side="right")
            place = np.where(np.isnan(numbers), self.n_bins - 1, place)
        else:
            known = {word: i for i, word in enumerate(self.words)}
            place = np.array(
                [known.get(str(word), len(known)) for word in np.asarray(values, object).tolist()],
                np.int64,
            )
        return np.bincount(place, minlength=self.n_bins)

    @classmethod
    def of(cls, name: str, values: Any) -> Self:
        """Bins of about equal mass, whose edges lie between the values."""
        values = np.asarray(values)
        if values.dtype.kind not in "biuf":
            words, count = np.unique(values.astype(str), return_counts=True)
            common = words[np.sort(np.argsort(-count, kind="stable")[:MOST_WORDS])]
            return cls(name, words=tuple(common.tolist()))
        numbers = np.asarray(values, np.float64)
        numbers = np.sort(numbers[np.isfinite(numbers)])
        if not len(numbers):
            return cls(name)
        levels = np.unique(numbers)
        if len(levels) <= N_BINS:
            edges = 0.5 * (levels[1:] + levels[:-1])
        else:
            edges = np.unique(np.quantile(numbers, np.arange(1, N_BINS) / N_BINS))
        return cls(name, tuple(edges.tolist()))


@record
class BinCounts(Sums):
    """Rows in the bins of all features, one after the other; counts of several batches add up."""

    n_rows: Any
    counts: np.ndarray


@dataclass(frozen=True)
class DriftPart:
    """One feature, or the density.

    Attributes
    ----------
    name : str
        Of the feature; "log-density" for that of the model.
    p_value : float
        Of the test that it has not moved, alone.
    adjusted : float
        The same after Holm's correction for all features: small where this feature has moved.
    distance : float
        Half the sum of the differences of the shares of all bins (total variation), between 0 and 1.
    """

    name: str
    p_value: float
    adjusted: float
    distance: float


@dataclass(frozen=True)
class DriftReport:
    """Whether new rows are like the reference; prints as a table.

    Attributes
    ----------
    n_rows, n_reference : int
        New rows and reference rows.
    p_value : float
        Of the test that nothing has moved.
    parts : tuple of DriftPart
        The density and the features, the clearest first.
    """

    n_rows: int
    n_reference: int
    p_value: float
    parts: tuple[DriftPart, ...]

    def moved(self, level: float = 0.05) -> list[str]:
        """Names of what has moved, wrong about any of them with a probability of at most `level`."""
        return [part.name for part in self.parts if part.adjusted < level]

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        rows = f"{plural(self.n_rows, 'row')} against {plural(self.n_reference, 'row')} of the reference"
        moved = self.moved()
        if not moved:
            return f"{rows}: nothing has moved (p = {self.p_value:.2g})."
        lines = [
            f"{rows}: {plural(len(moved), 'feature')} of {len(self.parts)} moved (p = {self.p_value:.2g})."
        ]
        for part in self.parts[: max(len(moved), 1)][:12]:
            lines.append(
                f"  {shown(part.name, 40)}: {percent(part.distance)} of the rows, p = {part.adjusted:.2g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class DriftReference:
    """What rows were like when a classifier was trained: counts in bins, and no rows.

    Attributes
    ----------
    bins : tuple of Bins
        Of the features, and last of the density where the model knows it.
    counts : BinCounts
        Of the reference rows.
    density_counts : BinCounts or None
        Of the density; it may have been counted on fewer rows, held out of the fit.
    """

    bins: tuple[Bins, ...]
    counts: BinCounts
    density: Bins | None = None
    density_counts: BinCounts | None = None

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
            Rows that the model was not fitted to, for the density: it is higher at the rows of the fit. None takes X.

        Returns
        -------
        reference : DriftReference
            To be kept, and to check new rows against.
        """
        columns = columns_of(X)
        n_rows = len(next(iter(columns.values())))
        if not n_rows:
            raise KernelpoolError("X has no rows to refer to.")
        bins = tuple(Bins.of(name, values) for name, values in columns.items())
        counts = BinCounts(n_rows, np.concatenate([b.counts(columns[b.name]) for b in bins]))
        if model is None or not hasattr(model, "score_samples"):
            return cls(bins, counts)
        score = np.asarray(
            to_numpy(model.score_samples(X if held_out is None else held_out)), np.float64
        )
        density = Bins.of(DENSITY, score)
        return cls(bins, counts, density, BinCounts(len(score), density.counts(score)))

    def count(self, X: Any, model: Any = None) -> tuple[BinCounts, BinCounts | None]:
        """New rows in the same bins; those of batches add up."""
        columns = columns_of(X)
        if [b.name for b in self.bins] != list(columns):
            missing = [b.name for b in self.bins if b.name not in columns]
            if missing:
                raise KernelpoolError(f"X lacks the column {missing[0]!r} of the reference.")
        n_rows = len(next(iter(columns.values())))
        found = BinCounts(n_rows, np.concatenate([b.counts(columns[b.name]) for b in self.bins]))
        if self.density is None or model is None or not hasattr(model, "score_samples"):
            return found, None
        score = np.asarray(to_numpy(model.score_samples(X)), np.float64) if n_rows else np.zeros(0)
        return found, BinCounts(n_rows, self.density.counts(score))

    def compare(self, counts: BinCounts, density_counts: BinCounts | None = None) -> DriftReport:
        """The report on new rows that were counted by `count`."""
        if not counts.n_rows:
            raise KernelpoolError("There are no new rows to check.")
        ends = np.cumsum([b.n_bins for b in self.bins])[:-1]
        pairs = zip(np.split(self.counts.counts, ends), np.split(counts.counts, ends), strict=True)
        tested = [(b.name, *homogeneity(*pair)) for b, pair in zip(self.bins, pairs, strict=True)]
        if (
            self.density is not None
            and self.density_counts is not None
            and density_counts is not None
        ):
            tested.append(
                (DENSITY, *homogeneity(self.density_counts.counts, density_counts.counts))
            )
        adjusted = holm([p for _, p, _ in tested])
        parts = [DriftPart(name, p, a, t) for (name, p, t), a in zip(tested, adjusted, strict=True)]
        parts.sort(key=lambda part: (part.adjusted, part.p_value, -part.distance))
        return DriftReport(int(counts.n_rows), int(self.counts.n_rows), min(adjusted), tuple(parts))

    # -- for model files ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """In plain numbers and words."""

        def told(bins: Bins) -> dict[str, Any]:
            return {
                "name": bins.name,
                "edges": list(bins.edges),
                "words": None if bins.words is None else list(bins.words),
            }

        def counted(counts: BinCounts) -> dict[str, Any]:
            return {"n_rows": int(counts.n_rows), "counts": counts.counts.tolist()}

        found: dict[str, Any] = {"bins": [told(b) for b in self.bins], **counted(self.counts)}
        if self.density is not None and self.density_counts is not None:
            found["density"] = {**told(self.density), **counted(self.density_counts)}
        return found

    @classmethod
    def from_dict(cls, told: Any) -> Self:
        """From what `to_dict` wrote; refuses anything else."""
        try:
            bins = tuple(_bins(one) for one in told["bins"])
            counts = _counts(told, sum(b.n_bins for b in bins))
            if "density" not in told:
                return cls(bins, counts)
            density = _bins(told["density"])
            return cls(bins, counts, density, _counts(told["density"], density.n_bins))
        except (KeyError, TypeError, ValueError) as error:
            raise KernelpoolError(f"The reference for drift cannot be read: {error}.") from None


def _bins(told: Any) -> Bins:
    edges = tuple(float(edge) for edge in told["edges"])
    words = None if told["words"] is None else tuple(str(word) for word in told["words"])
    if not np.isfinite(edges).all() or list(edges) != sorted(edges):
        raise ValueError("edges must rise")
    return Bins(str(told["name"]), edges, words)


def _counts(told: Any, n_bins: int) -> BinCounts:
    counts = np.array([int(n) for n in told["counts"]], np.int64)
    if len(counts) != n_bins or counts.min(initial=0) < 0 or int(told["n_rows"]) < 1:
        raise ValueError("counts do not fit the bins")
    return BinCounts(int(told["n_rows"]), counts)


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
    return reference.compare(*reference.count(X, model))


def columns_of(X: Any) -> dict[str, np.ndarray]:
    """Columns of an array, a data frame or an Arrow table by name."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is not None:
        return {str(name): np.asarray(X[name]) for name in names}
    x = np.asarray(to_numpy(X) if hasattr(X, "__dlpack__") else X)
    if x.ndim != 2:
        raise KernelpoolError(f"X must have rows and columns; got {x.ndim} dimensions.")
    return {f"feature {i}": x[:, i] for i in range(x.shape[1])}


def homogeneity(reference: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Pearson's p-value that two sets of counts come from one distribution, and their total variation distance."""
    m, n = float(reference.sum()), float(new.sum())
    distance = float(0.5 * np.abs(reference / max(m, 1) - new / max(n, 1)).sum())
    share = min(m, n) / (m + n) if m + n else 0.0
    joined: list[list[float]] = []
    for r, c in zip(reference.tolist(), new.tolist(), strict=True):
        if joined and (joined[-1][0] + joined[-1][1]) * share < FEWEST:
            joined[-1] = [joined[-1][0] + r, joined[-1][1] + c]
        else:
            joined.append([r, c])
    if len(joined) > 1 and sum(joined[-1]) * share < FEWEST:
        last = joined.pop()
        joined[-1] = [joined[-1][0] + last[0], joined[-1][1] + last[1]]
    if len(joined) < 2:
        return 1.0, distance
    r, c = np.array(joined).T
    statistic = float((((n / m) ** 0.5 * r - (m / n) ** 0.5 * c) ** 2 / (r + c)).sum())
    return float(chi2.sf(statistic, len(joined) - 1)), distance


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: rejecting those below a level errs on any with a probability of at most that level."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted = np.empty(len(p))
    adjusted[order] = stepped
    return adjusted.tolist()
