"""Sections of the page: from `Results` to what a table lists. The template writes it down."""

from collections import Counter
from typing import Any

import numpy as np

from ... import ConformalClassifier
from ...inspection import DECISIONS, FittedPipeline, Rate, cells_of, never_seen, predictions
from .results import MOST_MASKED, Results

ALPHA = 0.05
"""One minus the confidence of intervals."""

MOST_LISTED_KERNELS = 40
MOST_COLUMNS = 6
MOST_TRAITS = 5
N_OUTLIERS = 8
N_UNSURE = 8

N_USUAL = 100
"""Rows, about, with which outliers are compared."""

MOST_IN_MATRIX = 12
"""Classes of a confusion matrix."""

MOST_PAIRS = 15
"""Pairs of classes that are listed where there are more."""

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
    """Codes of the classes; of many, those of the least recall first."""
    confusion = results.metrics.confusion
    n_true, n_classes = confusion.shape
    if n_true <= MOST_IN_MATRIX:
        return [*range(n_true)]
    hit = np.pad(np.diag(confusion), (0, n_true - n_classes))
    return np.argsort(hit / np.maximum(confusion.sum(axis=1), 1), kind="stable").tolist()


def confusions(results: Results) -> list[tuple[str, str, int]]:
    """(true, predicted, rows) of the most frequent errors, where a matrix would be too large."""
    if len(results.names) <= MOST_IN_MATRIX:
        return []
    wrong = results.metrics.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = np.column_stack(np.unravel_index(order, wrong.shape)).tolist()
    return [(results.names[i], results.names[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]


def sets(results: Results) -> dict[str, Any] | None:
    """Of a `ConformalClassifier`, rows whose class is not in the set, and rows by its size."""
    known = (results.rows.y >= 0) & (results.rows.y < len(results.predictions.classes))
    if not isinstance(results.model, ConformalClassifier) or not known.any():
        return None
    chosen = results.predictions.sets[known]
    missed = ~chosen[np.arange(len(chosen)), results.rows.y[known]]
    sizes = np.bincount(results.predictions.sets.sum(axis=1)).tolist()
    return {"missed": Rate.of(missed.sum(), len(missed), ALPHA), "sizes": sizes}


def predicted(results: Results) -> list[tuple[int, int]]:
    """Codes of the predicted classes and their rows, the most frequent first."""
    return Counter(results.predictions.predicted.tolist()).most_common()


def unsure(results: Results) -> list[tuple[int, list[int]]]:
    """Positions of the rows whose two most probable classes are closest, and the codes of these."""
    probability = results.predictions.probability
    order = np.argsort(-probability, axis=1, kind="stable")[:, :2]
    pair = np.take_along_axis(probability, order, axis=1)  # (n, 2)
    closest = np.argsort(pair[:, 0] - pair[:, -1], kind="stable")[:N_UNSURE]
    return [(i, order[i].tolist()) for i in closest.tolist()]


# -- kernels, outliers and columns -----------------------------------------------------------------


def kernels(results: Results) -> list[dict[str, Any]]:
    """The greatest kernels, with what they are along features."""
    inside = results.inside
    if inside.kernels is None:
        return []
    table = inside.kernels
    x = results.x[0]
    columns = [x[~np.isnan(x[:, i]), i] for i in range(len(inside.features))]
    listed = []
    for j in table.largest(MOST_LISTED_KERNELS).tolist():
        traits = [_trait(inside, j, i, known) for i, known in enumerate(columns)]
        if len(traits) > MOST_COLUMNS:
            traits = sorted(traits, key=lambda trait: -trait["away"])[:MOST_TRAITS]
        kernel = {"index": j, "group": table.group[j] if table.group else "", "traits": traits}
        listed.append({**kernel, "share": table.share[j], "classes": table.classes(j)[:4]})
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


def outliers(results: Results) -> dict[str, Any] | None:
    """The least likely rows, and how many are less likely than one in ONE_IN drawn rows.

    A row is compared with drawn rows in which the same cells are missing: its log-density is that
    of the others.
    """
    if not results.scores:
        return None
    sample = slice(None, None, max(1, len(results.x[0]) // N_USUAL))
    surprise = _surprise(results.inside, results.x[0][sample], results.scores[0][sample])
    usual = None if surprise is None else surprise.mean(axis=0)
    rows = []
    below = []
    for part, x, score, bound in zip(
        results.row_sets, results.x, results.scores, results.bounds[:-1], strict=True
    ):
        excess = score - bound
        below.append((part.name, len(part), int((excess < 0).sum())))
        at = np.argsort(excess, kind="stable")[:N_OUTLIERS]
        few = part.at(at)
        if part is results.rows:
            answers = results.predictions.at(at)
        else:
            answers = predictions(results.model, few.X, score=False)
        odd = [] if usual is None else _odd(results.inside, few.X, x[at], score[at], usual)
        rows += [
            {
                "part": part.name,
                "id": few.ids[i],
                "y": few.y[i],
                "label": DECISIONS[code] if code else results.names[answers.predicted[i]],
                "score": score[at[i]],
                "odd": odd[i] if odd else [],
            }
            for i, code in enumerate(answers.decision.tolist())
        ]
    return {"rows": rows, "bound": results.bounds[-1][0], "below": below}


def _surprise(inside: FittedPipeline, x: np.ndarray, score: np.ndarray) -> np.ndarray | None:
    """-log p(x_i | the other features) of each cell, (n, d), 0 where it is missing.

    That is the log-density of the row in which the cell is NaN, less that of the row.
    """
    n, d = x.shape
    if d > MOST_MASKED:
        return None
    without = np.repeat(x[:, None], d, axis=1)  # (n, d, d)
    without[:, np.arange(d), np.arange(d)] = np.nan
    rest = inside.score(without.reshape(-1, d))
    if rest is None:
        return None
    return np.where(np.isnan(x), 0.0, np.nan_to_num(rest.reshape(n, d) - score[:, None]))


def _odd(
    inside: FittedPipeline, X: Any, x: np.ndarray, score: np.ndarray, usual: np.ndarray
) -> list[list[dict[str, Any]]]:
    """Of each row the features that are least likely given the others, compared with other rows."""
    over: Any = _surprise(inside, x, score) - usual
    odd: list[list[dict[str, Any]]] = [[] for _ in x]
    for row, (cells, excess) in enumerate(zip(inside.cells(X), over, strict=True)):
        for i in np.argsort(-excess, kind="stable")[:3].tolist():
            if not excess[i] > 2:
                continue
            values = inside.categories[i]
            feature = {"name": inside.features[i], "value": cells[i], "less": excess[i]}
            feature["unseen"] = values is not None and x[row, i] >= len(values)
            if hasattr(inside.model, "impute"):
                unknown = x[[row]]
                unknown[0, i] = np.nan
                imputed = inside.model.impute(inside.table(unknown))
                mean = (imputed * inside.scale + inside.offset)[0, i]
                feature["expected"] = mean if values is None else values[int(mean)]
                feature["width"] = abs(mean - x[row, i]) / 100  # of a difference three digits
            odd[row].append(feature)
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
            constant = known.min() == known.max()
            column["width"] = 0.0 if constant else float(known.std())
            column["mean"] = known[0] if constant else float(known.mean())
            column |= {"lowest": known.min(), "highest": known.max()}
        listed.append(column)
    return listed
