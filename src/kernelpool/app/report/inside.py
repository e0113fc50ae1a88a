"""A fitted classifier with its kernels in the units of the input, and the data of the explorer.

Pipelines, searches and rejecting classifiers are looked through. A feature that is an input
column, shifted and scaled, is in the units of the input; a feature that other steps made, in its
own.
"""

from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...estimators import RejectClassifier
from ...inspection import ambiguity_of, describe, unwrap
from ...tables.columns import Columns
from ...text import text_of

MOST_AXES, MOST_CATEGORIES, MOST_DRAWN = 6, 6, 60
"""Features, categorical features and kernels in the explorer."""
GRID = 24, 16
"""Cells of regions, across and up."""


class Inside:
    """A classifier and the model inside it.

    Parameters
    ----------
    outer : classifier
        Fitted.
    X : array-like or data frame
        Rows as the classifier takes them, for the kinds and names of columns.

    Attributes
    ----------
    input : Columns
        Of X; `names` are theirs.
    model : classifier
        The innermost one; its features have the names `features`, and `categories`: what their
        codes stand for, None for numbers.
    pool : Pool or None
        Kernels of the model, in the units of the input; their classes are the probabilities at
        their means, where the model has no others.
    reject : RejectClassifier or None
        Around the model.
    """

    def __init__(self, outer: Any, X: Any) -> None:
        check_is_fitted(outer)
        self.outer, self.input = outer, Columns.learn(X)
        n = len(self.input.categories)
        self.names = list(self.input.names or [f"feature {i}" for i in range(n)])
        self.found = unwrap(outer, self.names)
        self.model, self.features = self.found.inner, list(self.found.names)
        self.columns = Columns.learn(self.found.transform(X))
        self.categories = list(self.found.categories)
        self.description = describe(self.model)
        around = (part for part in self.found.wrappers if isinstance(part, RejectClassifier))
        self.reject = next(around, None)

    @property
    def numbers(self) -> list[int]:
        """Features of the model that are no categories."""
        return [i for i, values in enumerate(self.categories) if values is None]

    def position(self, feature: int) -> int | None:
        """The input column that a feature is, shifted and scaled; None where it is made."""
        return None if self.found.made else self.names.index(self.features[feature])

    # -- rows --------------------------------------------------------------------------------------

    def rows(self, X: Any) -> np.ndarray:
        """Rows as the model inside sees them, in input units, (n, d): codes, NaN where missing."""
        return self.columns.encode(self.found.transform(X)) * self.found.scale + self.found.offset

    def table(self, x: np.ndarray) -> Any:
        """The table for the model inside that `rows` come from."""
        return self.columns.decode((x - self.found.offset) / self.found.scale)

    def score(self, x: np.ndarray) -> np.ndarray | None:
        """log p(x) of rows, (n,); None where the model has no density of such rows."""
        if not hasattr(self.model, "score_samples"):
            return None
        try:
            return np.asarray(self.model.score_samples(self.table(x)), np.float64)
        except ValueError:
            return None

    def regions(
        self, pair: tuple[int, int], across: np.ndarray, up: np.ndarray, decide: bool = True
    ) -> Any:
        """Codes of the most probable classes where two input columns alone are known, (up, across).

        With `decide`, K where a rejecting classifier finds the row ambiguous, K + 1 where novel.
        None where the classifier takes no missing values.
        """
        x = np.full((len(up) * len(across), len(self.names)), np.nan)
        x[:, list(pair)] = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
        rows = self.input.decode(x)
        try:
            code = np.asarray(self.outer.predict_proba(rows)).argmax(axis=1)
            if decide and isinstance(self.outer, RejectClassifier):
                decision = self.outer.decide(rows)
                code = np.where(decision > 0, len(self.outer.classes_) - 1 + decision, code)
        except ValueError:
            return None
        return code.reshape(len(up), len(across))

    # -- kernels -----------------------------------------------------------------------------------

    @cached_property
    def pool(self) -> Any:
        """Kernels in the units of the input, a `Pool`; None where there are none with means."""
        pool, scale = self.description.pool, self.found.scale
        if pool is None or pool.mean is None or pool.mean.shape[1] != len(scale):
            return None
        mean = pool.mean * scale + self.found.offset
        posterior = pool.class_posterior
        if posterior is None:
            x = np.full(mean.shape, np.nan)
            x[:, self.numbers] = mean[:, self.numbers]
            posterior = np.asarray(self.model.predict_proba(self.table(x)))
        covariance = None if pool.covariance is None else pool.covariance * np.outer(scale, scale)
        return replace(
            pool,
            mean=mean,
            variance=pool.variance * scale**2,
            covariance=covariance,
            class_posterior=posterior,
        )

    def responsibilities(self, X: Any) -> np.ndarray | None:
        """P(j|x) of the kernels of `pool`, (n, M); None where the model has none."""
        if self.pool is None or not hasattr(self.model, "kernel_posterior"):
            return None
        found = np.asarray(self.model.kernel_posterior(self.found.transform(X)))
        return found if found.shape[1] == len(self.pool) else None

    def classes(self, j: int, most: int) -> list[tuple[int, float]]:
        """Codes and shares of the most frequent classes of kernel j."""
        posterior = self.pool.class_posterior[j]
        order = np.argsort(-posterior, kind="stable")[:most].tolist()
        return [(k, float(posterior[k])) for k in order if posterior[k] >= 0.005]

    def covariance(self, j: int, at: list[int]) -> np.ndarray:
        """Of kernel j along some features."""
        if self.pool.covariance is None:
            return np.diag(self.pool.variance[j][at])
        whole = self.pool.covariance if self.pool.covariance.ndim == 2 else self.pool.covariance[j]
        return np.asarray(whole[np.ix_(at, at)])


def category(values: Any, code: Any) -> str:
    """What a code stands for."""
    return text_of(values[int(code)]) if code < len(values) else "another value"


def codes_of(y: Any, classes: Any) -> np.ndarray:
    """Position of each label among the classes; -1 where it is none of them, (n,)."""
    place = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([place.get(label, -1) for label in np.asarray(y).ravel().tolist()], np.int64)


def separating(x: np.ndarray, codes: np.ndarray, features: list[int], most: int) -> list[int]:
    """The features along which classes lie farthest apart, in deviations; in their order."""
    if len(features) <= most:
        return features
    z, apart = x[:, features], np.zeros(len(features))
    for j, spread in enumerate(np.nanvar(z, axis=0)):
        known = ~np.isnan(z[:, j]) & (codes >= 0)
        means = [z[known & (codes == k), j].mean() for k in np.unique(codes[known])]
        apart[j] = np.var(means) / spread if spread > 0 and means else 0.0
    return sorted(features[j] for j in np.argsort(-apart, kind="stable")[:most])


# -- the explorer ----------------------------------------------------------------------------------


def explore(
    inside: Inside, X: Any, y: np.ndarray, ids: list[str], score: np.ndarray | None
) -> dict[str, Any] | None:
    """Rows, kernels and regions of classes along any two features: the data of the page's script.

    Of rows with the codes of their classes, (n,), -1 where not known, and log p(x), (n,). Axes are
    input columns of numbers: None where there are none. Categories are given by name, and a region
    is the most probable class where the two features of the axes alone are known.
    """
    x, classes = inside.input.encode(X), np.asarray(inside.outer.classes_)
    probability = np.asarray(inside.outer.predict_proba(X), np.float64)
    named = probability.argmax(axis=1)
    categories = inside.input.categories
    numbers = [i for i, c in enumerate(categories) if c is None and not np.isnan(x[:, i]).all()]
    if not numbers:
        return None
    axes = separating(x, named, numbers, MOST_AXES)
    shown = [i for i, values in enumerate(categories) if values is not None][:MOST_CATEGORIES]
    kernels, nearest = _kernels(inside, X, axes)
    ranges = [_range(x[:, i]) for i in axes]
    reject = inside.reject
    return {
        "features": [text_of(inside.names[i]) for i in axes],
        "labels": [text_of(label) for label in classes.tolist()],
        "ids": ids,
        "values": [[_short(cell) for cell in row] for row in x[:, axes].tolist()],
        "categories": {
            text_of(inside.names[i]): [
                None if np.isnan(code) else category(categories[i], code) for code in x[:, i]
            ]
            for i in shown
        },
        "true": np.where(y < len(classes), y, -1).tolist(),
        "named": named.tolist(),
        "ambiguity": [_short(value) for value in ambiguity_of(probability).tolist()],
        "score": [None] * len(x) if score is None else [_short(v) for v in score.tolist()],
        "nearest": nearest,
        "kernels": kernels,
        "threshold": None if reject is None else reject.ambiguity_threshold_,
        "ranges": ranges,
        "grid": GRID,
        "regions": _regions(inside, axes, ranges),
    }


def _range(column: np.ndarray) -> tuple[float, float]:
    """What the page's script shows of a feature."""
    low, high = float(np.nanmin(column)), float(np.nanmax(column))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _regions(inside: Inside, axes: list[int], ranges: Any) -> list[list[int]]:
    """Codes of the cells of each pair of axes, from the lowest row up, as runs (code, count)."""
    found = []
    for a, b in combinations(range(len(axes)), 2):
        centers = [
            low + (np.arange(n) + 0.5) / n * (high - low)
            for n, (low, high) in zip(GRID, (ranges[a], ranges[b]), strict=True)
        ]
        code = inside.regions((axes[a], axes[b]), centers[0], centers[1], decide=False)
        if code is None:
            return []
        code = code.ravel()
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        counts = np.diff(starts, append=len(code))
        found.append(np.column_stack([code[starts], counts]).ravel().tolist())
    return found


def _kernels(inside: Inside, X: Any, axes: list[int]) -> tuple[list[dict[str, Any]], list[int]]:
    """The greatest kernels along the axes, and that of each row, -1 where it is not drawn."""
    none = [-1] * len(inside.input.encode(X))
    place = {inside.position(i): i for i in inside.numbers}
    at = [place[i] for i in axes if i in place]
    if inside.pool is None or len(at) < len(axes):
        return [], none
    pool, greatest = inside.pool, np.sort(inside.pool.largest(MOST_DRAWN)).tolist()
    kernels = [
        {
            "index": j,
            "share": _short(float(pool.share[j])),
            "classes": [(k, _short(share)) for k, share in inside.classes(j, 5)],
            "mean": [_short(v) for v in pool.mean[j][at].tolist()],
            "covariance": [[_short(v) for v in r] for r in inside.covariance(j, at).tolist()],
        }
        for j in greatest
    ]
    posterior = inside.responsibilities(X)
    if posterior is None:
        return kernels, none
    return kernels, [j if j in greatest else -1 for j in posterior.argmax(axis=1).tolist()]


def _short(value: float) -> float | None:
    """As many digits as a picture needs; None where there is no number."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
