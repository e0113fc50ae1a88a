r"""Whether rows are still like those that a classifier was trained on: which features have moved,
and how frequent the classes are now.

K. Pearson, "On the probability that two independent distributions of frequency are really samples
from the same population", Biometrika 8, 1911: the test. S. Holm, "A simple sequentially rejective
multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979: many tests at once. M.
Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
probabilities: a simple procedure", Neural Computation 14(1), 2002, equations (2.4) and (2.9).

.. math::

    \chi^2 = \sum_b \frac{(\sqrt{n/m}\, r_b - \sqrt{m/n}\, c_b)^2}{r_b + c_b}, \qquad
    P'(C_k \mid x) \propto \frac{P'(C_k)}{P(C_k)}\, P(C_k \mid x), \qquad
    P'(C_k) \leftarrow \frac{1}{n} \sum_i P'(C_k \mid x_i)

================  ==================================================================================
:math:`r_b`       reference rows in bin b, :math:`m` in all
:math:`c_b`       new rows in bin b, :math:`n` in all
:math:`P(C_k)`    `trained`, the frequencies that the probabilities assume
:math:`P'(C_k)`   `class_prior`, those of the rows at hand
================  ==================================================================================

Numbers are counted in bins of equal mass of the reference, categories one by one, missing cells
apart, and the log-density log p(x) of the model like a feature: single features may all look the
same where their dependence has changed, and the density shows it. A reference holds counts and no
rows; counts add up over batches. Bins that expect fewer than five rows are joined with their
neighbors. Numbers that take a few values are counted value by value. Where a column has many
categories, or rare ones, new rows hold others: its categories are counted in groups by a hash of
their text, which does not depend on the rows.

The iteration of class frequencies is EM, and climbs the log-likelihood :math:`\sum_i \log \sum_k
P'(C_k) P(C_k|x_i) / P(C_k)`, which is concave. So the interval of each frequency is that of the
likelihood ratio, the other frequencies at their best, and the same ratio tests whether the
frequencies have changed at all. Both hold where only the frequencies differ (label shift) and the
probabilities are right; they do not count what the classifier itself does not know.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self
from zlib import crc32

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, chi2_contingency
from sklearn.utils.validation import check_is_fitted

from ..arrays import as_float64, to_numpy
from ..data.labels import class_prior_for
from ..errors import KernelpoolError
from ..records import saved
from ..tables.columns import Columns, names_of, texts_of
from ..text import JsonRecord, percent, plural, shown
from .bounds import check_shares
from .pipeline import columns_of, feature_names, innermost, inside_of
from .predictions import Predictions, asked

N_QUANTILE_BINS = 10
"""Of a feature of numbers; one more holds cells that are missing."""

FEWEST = 5
"""Rows that a bin must expect."""

DENSITY = "log-density"
"""What the density of the model is called among the features."""

MOST_CATEGORIES = 50
"""Categories of a column that are counted one by one."""

N_GROUPS = 256
"""Groups of more categories, or of rarer ones."""


@dataclass(frozen=True)
class DriftReport(JsonRecord):
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

    def __str__(self) -> str:
        rows = f"{plural(self.n_rows, 'row')} against {self.n_reference:,} of the reference"
        n_moved = len(self.moved())
        p_value = f"(p = {self.p_value:.2g})"
        if not n_moved:
            return f"{rows}: nothing has moved {p_value}."
        lines = [f"{rows}: {plural(n_moved, 'feature')} of {len(self.parts)} moved {p_value}."]
        for part in self.parts[: min(n_moved, 12)]:
            share = f"{percent(part['distance'])} of the rows, p = {part['adjusted']:.2g}"
            lines.append(f"  {shown(part['name'], 40)}: {share}")
        return "\n".join(lines)


@saved(eq=False)
class Bins:
    """Bins of a feature, and how many of the reference rows are in each."""

    name: str
    edges: list[float]
    """Between the bins; they rise."""
    counts: list[int]
    """The last of missing cells."""

    def __post_init__(self) -> None:
        edges = np.array(self.edges, np.float64)
        if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise KernelpoolError(f"The edges of {shown(self.name)} must rise.")
        counts = np.array(self.counts)
        is_count = counts.shape == (len(edges) + 2,) and counts.dtype.kind == "i"
        if not is_count or counts.min() < 0 or not counts.any():
            raise KernelpoolError(f"The counts of {shown(self.name)} do not fit its bins.")

    @classmethod
    def of(cls, name: str, edges: Any, values: np.ndarray) -> Self:
        """Of reference rows."""
        return cls(name, list(map(float, edges)), in_bins(edges, values).tolist())


@saved(eq=False)
class DriftReference:
    """What rows were like when a classifier was trained: counts in bins, and no rows.

    Attributes
    ----------
    columns : Columns
        Of the rows; without categories where these are counted in groups.
    features : tuple of Bins
        Of each feature `name`, `edges` between its bins and `counts` of the reference rows: of
        categories one by one, or of their groups, and then of any other value; last of missing
        cells.
    density : Bins or None
        The same of the log-density, where held-out rows were given.
    """

    columns: Columns
    features: tuple[Bins, ...]
    density: Bins | None = None

    def __post_init__(self) -> None:
        if not self.features or len(self.features) != len(self.columns):
            raise KernelpoolError("A reference for drift holds bins of each of its columns.")
        for bins, values in zip(self.features, self.columns.categories, strict=True):
            if values is not None and len(bins.edges) != (len(values) or N_GROUPS):
                raise KernelpoolError(f"The bins of {shown(bins.name)} are not its categories.")

    @classmethod
    def of(cls, X: Any, model: Any = None, held_out: Any = None) -> Self:
        """From reference rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), data frame or table
            Rows, such as those of the training.
        model : classifier, default=None
            Fitted: its columns are those of X, and where it has `score_samples`, its log-density at
            `held_out` is watched as well.
        held_out : array-like, table or Predictions, default=None
            Rows that the model was not fitted to, or what it predicts for them; X, if it was not
            fitted to X. At the rows of its fit the density of a model is higher than at any others,
            so that None leaves it out.

        Returns
        -------
        reference : DriftReference
            To be kept, and to check new rows against.
        """
        columns = columns_of(model) or Columns.learn(X)
        x = columns.encode(X)
        if not len(x):
            raise KernelpoolError("X has no rows to refer to.")
        names = feature_names(columns)
        categories = tuple(map(_kept, columns.categories, x.T))
        columns = replace(columns, categories=categories)
        features = tuple(
            Bins.of(name, _edges(column, values), column)
            for name, values, column in zip(names, categories, _binned(columns, X, x), strict=True)
        )
        score = None if held_out is None else _score(model, held_out)
        if score is None:
            return cls(columns, features)
        name = DENSITY if DENSITY not in names else f"{DENSITY} of the model"
        return cls(columns, features, Bins.of(name, _edges(score), score))

    def count(self, X: Any, model: Any = None) -> np.ndarray:
        """New rows in the bins of all features, one after the other; counts of batches add up.

        The density is counted where there is a `model`, or its `Predictions` for these rows.
        """
        names = self.columns.names
        own = names_of(X)
        if names is not None and own is not None and own != names:
            missing = [name for name in names if name not in own]
            if missing:
                raise KernelpoolError(f"X lacks the column {missing[0]!r} of the reference.")
            X = X.select(list(names)) if hasattr(X, "select") else X[list(names)]
        columns = _binned(self.columns, X, self.columns.encode(X))
        counts = [in_bins(bins.edges, x) for bins, x in zip(self.features, columns, strict=True)]
        if self.density is not None:
            score = _score(model, X) if counts[0].any() else None
            counts.append(in_bins(self.density.edges, np.zeros(0) if score is None else score))
        return np.concatenate(counts)

    def compare(self, counts: np.ndarray) -> DriftReport:
        """The report on new rows that were counted by `count`."""
        watched = [*self.features, *([] if self.density is None else [self.density])]
        ends = np.cumsum([len(bins.counts) for bins in watched])[:-1]
        tests = [
            (bins.name, *homogeneity(np.array(bins.counts), new))
            for bins, new in zip(watched, np.split(counts, ends), strict=True)
            if new.any()  # the density is not counted without a model
        ]
        if not tests:
            raise KernelpoolError("There are no new rows to check.")
        adjusted = holm([p_value for _, p_value, _ in tests])
        keys = ("name", "p_value", "distance", "adjusted")
        parts: list[dict[str, Any]]
        parts = [
            dict(zip(keys, (*t, p), strict=True)) for t, p in zip(tests, adjusted, strict=True)
        ]
        parts.sort(key=lambda part: (part["adjusted"], part["p_value"], -part["distance"]))
        n_reference = sum(self.features[0].counts)
        n_rows = int(counts[: len(self.features[0].counts)].sum())
        return DriftReport(n_rows, n_reference, parts[0]["adjusted"], tuple(parts))


def _score(model: Any, X: Any) -> np.ndarray | None:
    """log p(x), (n,): of predictions that were made, or by a model."""
    for made in (model, X):
        if isinstance(made, Predictions):
            return made.score
    score = asked(model, "score_samples", X)
    return None if score is None else np.asarray(to_numpy(score), np.float64)


def _kept(categories: np.ndarray | None, codes: np.ndarray) -> np.ndarray | None:
    """The categories of a column; none of them where they are many or rare, and counted in
    groups.
    """
    if categories is None:
        return None
    n_rows = np.unique(codes[~np.isnan(codes)], return_counts=True)[1]
    rare = n_rows.min(initial=FEWEST) < FEWEST or len(n_rows) > MOST_CATEGORIES
    return categories[:0] if rare else categories


def _binned(columns: Columns, X: Any, x: np.ndarray) -> list[np.ndarray]:
    """The columns of encoded rows; where there are no categories, the groups of the cells of X by a
    hash of their text.
    """
    binned = list(x.T)
    for i, values in enumerate(columns.categories):
        if values is not None and not len(values):
            at, texts = texts_of(X, i)
            groups = [float(crc32(text.encode("utf-8", "replace")) % N_GROUPS) for text in texts]
            binned[i] = np.array([*groups, np.nan])[at]
    return binned


def _edges(values: np.ndarray, categories: np.ndarray | None = None) -> np.ndarray:
    """The edges between the bins of a feature.

    Of numbers that take a few values, a bin for each value and for what lies between; of others,
    bins of about equal mass, and one on either side for what lies beyond the reference.
    """
    if categories is not None:
        return np.arange(len(categories) or N_GROUPS) + 0.5  # between codes
    numbers = values[np.isfinite(values)]
    levels = np.unique(numbers)
    if not len(levels):
        return levels
    if len(levels) <= min(N_QUANTILE_BINS, len(numbers) // FEWEST):
        # rounded values are the same ones; whole numbers are never rounded
        apart = np.diff(levels).min() if len(levels) > 1 else min(0.1 * abs(levels[0]), 5e5)
        ends = levels - 1e-6 * apart, levels + 1e-6 * apart
        return np.unique([np.nextafter(ends[0], -np.inf), np.nextafter(ends[1], np.inf)])
    inner = np.quantile(numbers, np.arange(1, N_QUANTILE_BINS) / N_QUANTILE_BINS)
    return np.unique([levels[0], *inner, np.nextafter(levels[-1], np.inf)])


def in_bins(edges: Any, values: np.ndarray) -> np.ndarray:
    """Numbers, or codes of categories, in each bin, the last of missing cells."""
    place = np.searchsorted(edges, values, side="right")
    return np.bincount(np.where(np.isnan(values), len(edges) + 1, place), minlength=len(edges) + 2)


def check_drift(model: Any, X: Any, reference: Any) -> DriftReport:
    """Whether rows are still like those of the training, and which features have moved.

    Parameters
    ----------
    model : classifier, Predictions or None
        Fitted, or what it predicts for X; for the log-density, where the reference has it.
    X : array-like of shape (n_samples, n_features), data frame or table
        New rows.
    reference : DriftReference, array-like, data frame or table
        What to compare with: the record of `DriftReference.of`, which with `held_out` rows has the
        log-density of the model like a feature; or the rows themselves, feature by feature.

    Returns
    -------
    report : DriftReport
        Prints as a table.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import DriftReference, check_drift
    >>> X, y = make_clouds(random_state=0)
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    >>> X_new, _ = make_clouds(random_state=1)
    >>> check_drift(model, X_new, X).moved()
    []
    >>> X_test, _ = make_clouds(random_state=2)
    >>> reference = DriftReference.of(X, model, held_out=X_test)
    >>> check_drift(model, X_new + [0.5, 0.0], reference).moved()
    ['feature 0', 'log-density']
    """
    if not isinstance(reference, DriftReference):
        reference = DriftReference.of(reference)
    return reference.compare(reference.count(X, model))


def homogeneity(reference: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Pearson's p-value that two sets of counts come from one distribution, and their total
    variation distance.
    """
    counts = np.stack([reference, new])
    total = counts.sum(axis=1)
    distance = float(0.5 * np.abs(counts[0] / total[0] - counts[1] / total[1]).sum())
    needed = FEWEST * total.sum() / total.min()  # rows in a bin that expects FEWEST
    starts = [0]
    held = 0
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


# -- class frequencies -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorEstimate:
    """Class frequencies among rows without labels; prints as a table.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    class_prior : ndarray of shape (n_classes,)
        The most likely frequencies.
    low, high : ndarray of shape (n_classes,)
        Interval of each.
    trained : ndarray of shape (n_classes,)
        Those that the classifier assumes.
    p_value : float
        Of the test that they have not changed.
    confidence : float
        Of the intervals.
    n_rows : int
        Rows.
    moved : bool
        Whether features are known to have moved as well: the estimate is then not reliable.
    """

    classes: np.ndarray
    class_prior: np.ndarray
    low: np.ndarray
    high: np.ndarray
    trained: np.ndarray
    p_value: float
    confidence: float
    n_rows: int
    moved: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        columns = (self.classes, self.class_prior, self.low, self.high, self.trained)
        names = ("label", "share", "low", "high", "trained")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        keys = ("n_rows", "p_value", "confidence", "moved")
        return {
            **{key: getattr(self, key) for key in keys},
            "classes": [dict(zip(names, row, strict=True)) for row in rows],
        }

    def __str__(self) -> str:
        confidence = f"{100 * self.confidence:.6g} % intervals"
        lines = [f"Class frequencies of {plural(self.n_rows, 'row')} ({confidence}; in training):"]
        for row in self.to_dict()["classes"]:
            label, share, low, high, trained = row.values()
            interval = f"{percent(low)} to {percent(high)}"
            lines.append(f"  {shown(label)}: {percent(share)} ({interval}; {percent(trained)})")
        return "\n".join([*lines, self.conclusion])

    @property
    def conclusion(self) -> str:
        """Whether the frequencies have changed, in a sentence."""
        if self.moved:
            return (
                "This is not reliable: features have moved, and the estimate holds only where "
                "nothing but the frequencies changes."
            )
        changed = "have changed" if self.p_value < 1 - self.confidence else "may be the same"
        return f"They {changed} (p = {self.p_value:.2g})."


def estimate_class_prior(
    model: Any, X: Any, *, trained: Any = None, confidence: float = 0.95
) -> PriorEstimate:
    """How frequent the classes are among rows without labels.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    trained : array-like of shape (n_classes,), dict or None, default=None
        Frequencies that the probabilities of the model assume; None asks the model, which must then
        have `class_prior_`.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    estimate : PriorEstimate
        Prints as a table.

    See Also
    --------
    with_class_prior : The classifier with these frequencies.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import estimate_class_prior
    >>> X, y = make_clouds(random_state=0)
    >>> model = SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    >>> rare = make_clouds(4000, random_state=1)
    >>> keep = (rare[1] == 0) | (np.arange(4000) % 9 == 0)  # few of the second class
    >>> found = estimate_class_prior(model, rare[0][keep])
    >>> bool(found.low[1] < (rare[1][keep] == 1).mean() < found.high[1])
    True
    """
    check_shares(confidence=confidence)
    check_is_fitted(model)
    probability = as_float64(to_numpy(model.predict_proba(X)))
    if not len(probability):
        raise KernelpoolError("X has no rows: nothing can be estimated from them.")
    classes = np.asarray(model.classes_)
    if trained is None:
        assumed = _trained_prior(innermost(model))
    else:
        assumed = class_prior_for(trained, classes, np.ones(len(classes)))
    return prior_from_probability(probability, assumed, classes, confidence)


def _trained_prior(inner: Any) -> np.ndarray:
    """The frequencies that the probabilities of a model assume, (K,)."""
    for name in ("class_prior_", "priors_"):  # scikit-learn's naive Bayes and discriminants
        if hasattr(inner, name):
            return np.asarray(getattr(inner, name), np.float64)
    raise KernelpoolError(
        f"{type(inner).__name__} does not have the class frequencies that it was trained with: "
        "pass trained=, their shares."
    )


def prior_from_probability(
    probability: np.ndarray, trained: np.ndarray, classes: np.ndarray, confidence: float = 0.95
) -> PriorEstimate:
    """The estimate from P(C_k|x), (n, K), that assume the frequencies `trained`, (K,)."""
    known = trained > 0
    # p(x|C_k) up to a factor of the row; sums over few classes are faster by column
    ratio = np.asfortranarray(probability / np.where(known, trained, 1.0) * known)
    best = _most_likely(ratio, trained)
    top = _log_likelihood(ratio, best)
    changed = 2 * (top - _log_likelihood(ratio, trained))
    threshold = 0.5 * chi2.ppf(confidence, 1)
    low = np.zeros(len(trained))
    high = np.where(known, 1.0, 0.0)
    for k in np.flatnonzero(known).tolist():

        def fall(share: float, k: int = k) -> float:
            start = _with_share(np.maximum(best, 1e-6) * known, k, share)
            return top - _log_likelihood(ratio, _most_likely(ratio, start, fixed=k)) - threshold

        if fall(0.0) > 0:
            low[k] = brentq(fall, 0.0, best[k], xtol=1e-6)
        if fall(1.0) > 0:
            high[k] = brentq(fall, best[k], 1.0, xtol=1e-6)
    p_value = float(chi2.sf(max(changed, 0.0), max(known.sum() - 1, 1)))
    return PriorEstimate(classes, best, low, high, trained, p_value, confidence, len(probability))


def _log_likelihood(ratio: np.ndarray, prior: np.ndarray) -> float:
    return float(np.log(np.maximum(ratio @ prior, np.finfo(np.float64).tiny)).sum())


def _most_likely(
    ratio: np.ndarray, prior: np.ndarray, fixed: int | None = None, tol: float = 1e-8
) -> np.ndarray:
    """(2.9): the frequencies that make the rows most likely, from a start; one of them may be
    `fixed`.
    """
    for _ in range(2000):
        before = prior
        joint = ratio * prior
        total = joint.sum(axis=1, keepdims=True)
        prior = (joint / np.where(total > 0, total, 1.0)).mean(axis=0)
        if fixed is not None:
            prior = _with_share(prior, fixed, before[fixed])
        if np.abs(prior - before).max() < tol:
            break
    return prior


def _with_share(prior: np.ndarray, k: int, share: float) -> np.ndarray:
    """Class k has this share, and the others what is left, in the same proportions."""
    rest = np.where(np.arange(len(prior)) == k, 0.0, prior)
    prior = rest * ((1 - share) / rest.sum()) if rest.sum() > 0 else rest
    prior[k] = share
    return np.asarray(prior)


def with_class_prior(model: Any, class_prior: Any) -> Any:
    """The same classifier where classes have other frequencies, whatever stands around it.

    Parameters
    ----------
    model : classifier
        Fitted: one with the method of that name, or a pipeline, search or `RejectClassifier` around
        one.
    class_prior : "balanced", dict of label to float, or array-like of shape (n_classes,)
        The frequencies.

    Returns
    -------
    model : classifier
        A copy; nothing is trained again.
    """
    check_is_fitted(model)
    if hasattr(model, "with_class_prior"):
        return model.with_class_prior(class_prior)
    attribute = inside_of(model)
    other = copy(model)
    if attribute is None:
        raise KernelpoolError(
            f"{type(model).__name__} cannot take other class frequencies; SharedKernelClassifier, "
            f"SharingAverageClassifier, Parzen networks and PooledClassifier can."
        )
    kept = getattr(model, attribute)
    if attribute == "steps":  # of a pipeline
        name, last = kept[-1]
        other.steps = [*kept[:-1], (name, with_class_prior(last, class_prior))]
    else:
        setattr(other, attribute, with_class_prior(kept, class_prior))
    return other
