"""Sections of the page: from `Results` to what a table lists. The template writes it down."""

from collections import Counter
from typing import Any

import numpy as np

from ...inspection import (
    FittedPipeline,
    Predictions,
    Rate,
    cells_of,
    never_seen,
    predictions,
)
from .results import MOST_MASKED, Results, RowSet

ALPHA = 0.05
"""One minus the confidence of intervals."""

MOST_LISTED_KERNELS = 40
MOST_COLUMNS = 6
MOST_TRAITS = 5
N_OUTLIERS = 8
N_UNSURE = 8

N_USUAL = 100
"""Rows, about, with which outliers are compared."""

MOST_PAIRS = 15
"""Pairs of classes that are listed where there are too many classes for a matrix."""

COVERAGE = (1, 0.99, 0.95, 0.9, 0.8, 0.5)
"""Shares of rows that may be accepted."""


# -- how good it is --------------------------------------------------------------------------------


def accepted(results: Results) -> list[tuple[float, float, Rate]]:
    """Share of the rows, least probability and error of those that some thresholds accept."""
    coverage, error, threshold = results.curve
    if not len(coverage):
        return []
    wanted = dict.fromkeys(int(np.abs(coverage - share).argmin()) for share in COVERAGE)
    counts = np.rint(coverage * results.metrics.n_rows).astype(int)
    return [
        (coverage[i], 1 - threshold[i], Rate.of(round(error[i] * counts[i]), counts[i], ALPHA))
        for i in wanted
    ]


def recalls(results: Results) -> list[int]:
    """Codes of the classes, those of the least recall first."""
    confusion = results.metrics.confusion
    recall = [row[k : k + 1].sum() / max(row.sum(), 1) for k, row in enumerate(confusion)]
    return np.argsort(recall, kind="stable").tolist()


def confusions(results: Results) -> list[list[int]]:
    """Codes of the true and the predicted class of the most frequent errors."""
    wrong = results.metrics.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong[wrong > 0], kind="stable")[:MOST_PAIRS]
    return np.argwhere(wrong)[order].tolist()


def missed(results: Results) -> Rate | None:
    """Rows whose class is not in their set, of a `ConformalClassifier`."""
    sets = results.predictions.sets
    if sets is None or not len(results.known):
        return None
    wrong = ~sets[results.known, results.rows.y[results.known]]
    return Rate.of(int(wrong.sum()), len(wrong), ALPHA)


def predicted(results: Results) -> list[tuple[int, int]]:
    """Codes of the predicted classes and their rows, the most frequent first."""
    return Counter(results.predictions.predicted.tolist()).most_common()


def unsure(results: Results) -> list[tuple[int, list[int]]]:
    """Positions of the rows whose two most probable classes are closest, and the codes of these."""
    probability = results.predictions.probability
    codes = np.argsort(-probability, axis=1, kind="stable")[:, :2]
    pair = np.sort(probability, axis=1)[:, -2:]
    closest = np.argsort(pair[:, -1] - pair[:, 0], kind="stable")[:N_UNSURE]
    return [(i, codes[i].tolist()) for i in closest.tolist()]


# -- kernels, outliers and columns -----------------------------------------------------------------


def kernels(results: Results) -> list[tuple[int, list[dict[str, Any]]]]:
    """The greatest kernels, and what each is along the features in which it differs most."""
    inside = results.inside
    if inside.kernels is None:
        return []
    columns = [column[~np.isnan(column)] for column in results.x[0].T]
    listed = []
    for j in inside.kernels.largest(MOST_LISTED_KERNELS).tolist():
        traits = [_trait(inside, j, i, known) for i, known in enumerate(columns)]
        if len(traits) > MOST_COLUMNS:
            traits = sorted(traits, key=lambda trait: -trait["away"])[:MOST_TRAITS]
        listed.append((j, traits))
    return listed


def _trait(inside: FittedPipeline, j: int, i: int, known: np.ndarray) -> dict[str, Any]:
    """Mean and deviation of kernel j along a number, or its most probable category.

    `away` is the difference from the `known` cells of all rows, in standard deviations of theirs.
    """
    trait: dict[str, Any] = {"name": inside.features[i], "width": 0.0, "away": 0.0}
    varies = len(known) > 0 and np.ptp(known) > 0
    values = inside.categories[i]
    if values is None:
        here = float(inside.kernels.mean[j, i])
        trait |= {"value": here, "width": float(inside.kernels.variance[j, i]) ** 0.5}
    else:
        code, here = inside.category(j, i)
        trait |= {"value": values[code], "share": here}
        known = known == code
    if varies:
        trait["away"] = abs(here - known.mean()) / (known.std() or len(known) ** -0.5)
    return trait


def outliers(results: Results) -> list[tuple[RowSet, np.ndarray, Predictions, Any]]:
    """The least likely rows of each set of rows, their log-densities and predictions, and what is
    odd about them.

    A row is compared with drawn rows in which the same cells are missing: its log-density is that
    of the others.
    """
    if not results.scores:
        return []
    inside = results.inside
    listed = []
    usual = None
    for part, x, score, bound in zip(
        results.row_sets, results.x, results.scores, results.bounds, strict=False
    ):
        if usual is None and x.shape[1] <= MOST_MASKED:
            every = slice(None, None, max(1, len(x) // N_USUAL))
            usual = _surprise(inside, x[every], score[every]).mean(axis=0)
        at = np.argsort(score - bound, kind="stable")[:N_OUTLIERS]
        few = part.at(at)
        if part is results.rows:
            answers = results.predictions.at(at)
        else:
            answers = predictions(results.model, few.X, score=False)
        odd = [[]] * len(at) if usual is None else _odd(inside, few.X, x[at], score[at], usual)
        listed.append((few, score[at], answers, odd))
    return listed


def _surprise(inside: FittedPipeline, x: np.ndarray, score: np.ndarray) -> np.ndarray:
    """-log p(x_i | the other features) of each cell, (n, d), 0 where it is missing.

    That is the log-density of the row in which the cell is NaN, less that of the row.
    """
    n, d = x.shape
    without = np.where(np.eye(d, dtype=bool), np.nan, x[:, None])  # (n, d, d)
    rest: Any = inside.score(without.reshape(-1, d))
    return np.where(np.isnan(x), 0.0, np.nan_to_num(rest.reshape(n, d) - score[:, None]))


def _odd(
    inside: FittedPipeline, X: Any, x: np.ndarray, score: np.ndarray, usual: np.ndarray
) -> list[list[dict[str, Any]]]:
    """Of each row the features that are least likely given the others, compared with other rows."""
    odd: list[list[dict[str, Any]]] = []
    over = _surprise(inside, x, score) - usual
    for row, cells, less in zip(x, inside.cells(X), over, strict=True):
        odd.append([])
        for i in np.argsort(-less, kind="stable")[:3].tolist():
            if not less[i] > 2:
                break
            values = inside.categories[i]
            feature = {"name": inside.features[i], "value": cells[i], "less": less[i]}
            feature["unseen"] = values is not None and row[i] >= len(values)
            if hasattr(inside.model, "impute"):
                unknown = np.where(np.arange(len(row)) == i, np.nan, row)
                imputed = inside.model.impute(inside.table(unknown[None]))
                mean = (imputed * inside.scale + inside.offset)[0, i]
                feature["expected"] = mean if values is None else values[int(mean)]
                feature["apart"] = abs(mean - row[i])
            odd[-1].append(feature)
    return odd


def columns(results: Results) -> list[dict[str, Any]]:
    """Ranges, categories and missing cells of columns."""
    inside = results.inside
    X = results.row_sets[0].X
    x = inside.input.encode(X)
    cells = cells_of(inside.input, x, X)
    unseen = never_seen(inside.input, x)
    listed = []
    for i, (name, values) in enumerate(zip(inside.names, inside.input.categories, strict=True)):
        known = x[~(np.isnan(x[:, i]) | unseen[:, i]), i]
        column: dict[str, Any] = {"name": name, "n_missing": int(np.isnan(x[:, i]).sum())}
        if values is not None:
            column["n_categories"] = len(values)
            column["common"] = values[np.bincount(known.astype(int)).argmax()] if len(known) else ""
            new = np.flatnonzero(unseen[:, i]).tolist()
            column["never_seen"] = Counter(cells[row][i] for row in new).most_common(3)
        elif len(known):
            apart = known - known[0]  # exactly zero where all are the same
            column |= {"lowest": known.min(), "highest": known.max()}
            column |= {"mean": known[0] + apart.mean(), "width": apart.std()}
        listed.append(column)
    return listed
