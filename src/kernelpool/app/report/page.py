"""A report on a fitted classifier: one HTML file that needs neither network nor server.

The entry point is

    write_report(model, X, y, path, *, X_test=None, y_test=None, row_ids=None, test_row_ids=None,
                 title=None, facts=None, command=None, dates=()) -> Path

The template reads the results themselves: metrics, importance, drift and class priors of
`kernelpool.inspection`, the description of the model, its attributes and parameters. Everything
that comes from the data passes jinja2's escaping, and the page's policy (Content-Security-Policy)
allows its own style and script, named by their hashes, and images in the page, and nothing else.
"""

import base64
import contextlib
import json
import os
import platform
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn import config_context
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing

import kernelpool

from ... import ConformalClassifier, RejectClassifier
from ...atomic import write_atomically
from ...errors import KernelpoolError
from ...inspection import (
    FittedPipeline,
    Metrics,
    Predictions,
    Rate,
    ambiguity_of,
    cells_of,
    check_drift,
    coverage_curve,
    describe,
    estimate_class_prior,
    feature_importance,
    never_seen,
    refusals,
)
from ...text import date_text, decimals_of, is_missing, plain, text_of
from . import plots

NEVER_SEEN = "never seen"
"""Marks a category that was not there when the model was fitted."""

MINUS = "\N{MINUS SIGN}"
ALPHA = 0.05
"""One minus the confidence of intervals."""

DASH = "\N{EN DASH}"
"""Where there is no value."""

MOST_PAGE_ROWS = 20_000
"""Rows of the training, and of the others, that pass the model; of more, a sample."""

MOST_EXPLORED = 800
"""Rows in the explorer."""

MOST_COMPARED = 5000
"""Rows from which drift and class frequencies are estimated."""

MOST_PRIORS = 30
"""Classes of which frequencies are estimated."""

MOST_COMPARED_FEATURES = 1000
"""Features that are tested for drift; none of more."""

MOST_MASKED = 100
"""Features that are left out one by one; none of more."""

MOST_MASKED_CELLS = 6000
"""Cells that are left out for the importance of features."""

MOST_LISTED_KERNELS = 40
MOST_COLUMNS = 6
MOST_TRAITS = 5
N_OUTLIERS = 8
N_UNSURE = 8

MOST_IN_MATRIX = 12
"""Classes of a confusion matrix."""

N_SIMULATED = 5000
"""Rows drawn from the model, for the distribution of its densities."""

ONE_IN = 100
"""An outlier is less likely than one drawn row in so many."""

MOST_PATTERNS = 20
"""Sets of missing cells for which drawn rows are scored."""

MOST_EXPLORED_FEATURES = 6
"""Numeric features in the explorer."""

MOST_CATEGORY_COLUMNS = 6
"""Categorical features in the explorer."""

MOST_DRAWN = 60
"""Kernels in the explorer."""

N_CELLS = 6000
"""Cells of the regions of classes, about, of all pairs of features together."""


@dataclass(frozen=True)
class RowSet:
    """Rows of the training, or others."""

    name: str
    X: Any
    y: np.ndarray
    """Codes of their classes, (n,): -1 for none, K and more for classes unknown to the model."""
    ids: list[str]
    n_given: int
    """Of which X may be a sample."""


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    X_test: Any = None,
    y_test: Any = None,
    row_ids: Sequence[Any] | None = None,
    test_row_ids: Sequence[Any] | None = None,
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
    command: str | None = None,
    dates: Sequence[str] = (),
) -> Path:
    """Write a report as one HTML file that can be opened, mailed and printed as it is.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`: of this library or another, alone or in a pipeline.
    X : array-like or data frame of shape (n_samples, n_features), or None
        The rows that it was fitted to; None where they are not at hand.
    y : array-like of shape (n_samples,), or None
        Their classes.
    path : str or path
        Where to write; a file that is there is replaced, completely or not at all.
    X_test : array-like or data frame of shape (n_test_samples, n_features), default=None
        Rows that had no part in the training: held out, or new.
    y_test : array-like of shape (n_test_samples,), default=None
        Their classes; None where they are not known.
    row_ids, test_row_ids : sequence of length n_samples, default=None
        Names of the rows, such as numbers or identifiers; None takes the index of a data frame, or
        counts from 0.
    title : str, default=None
        Title; None takes the name of the file in `facts["Rows"]`.
    facts : dict of str to value, default=None
        What else is known of the training, such as {"Rows": "irises.csv", "Target": "species"}.
    command : str, default=None
        A command line that makes the model again.
    dates : sequence of str, default=()
        Columns of numbers that are days since 1970, to be shown as dates.

    Returns
    -------
    path : Path
        Where it was written.

    Examples
    --------
    >>> import tempfile
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.app.report import write_report
    >>> X, y = make_clouds(500, random_state=0)
    >>> model = SharedKernelClassifier.prbf(6, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, X, y, folder + "/report.html").name
    'report.html'
    """
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise KernelpoolError(f"path must name a file in a folder that exists; got {str(path)!r}.")
    if not is_classifier(model) or not hasattr(model, "predict_proba"):
        raise KernelpoolError(
            f"A report needs a classifier with predict_proba; got {type(model).__name__}."
        )
    row_sets, names, notes = _row_sets(model, (X, X_test), (y, y_test), (row_ids, test_row_ids))
    inside = FittedPipeline(model, row_sets[0].X, dates)
    rejecting = (wrapper for wrapper in inside.wrappers if isinstance(wrapper, RejectClassifier))
    reject = next(rejecting, None)
    page = {
        "title": text_of(title or (facts or {}).get("Rows") or "A classifier"),
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "sentence": _sentence(inside, reject),
        "names": names,
        "row_sets": row_sets,
        "facts": {k: v for k, v in (facts or {}).items() if v is not None},
        "command": None if command is None else text_of(command, 2000),
        "inside": inside,
        "reject": reject,
        "versions": _versions(),
        "code": _code(model),
        "columns": _columns(inside, row_sets[0].X),
        **_results(inside, reject, row_sets, names, notes),
        "notes": notes,
    }
    page["colors"] = _colors(row_sets[0].y, names)
    page["explorer_json"] = json.dumps(
        {**(page["explorer"] or {}), "colors": [page["colors"].get(n, "other") for n in names]},
        separators=(",", ":"),
    )
    html = _environment().get_template("report.html").render(**page, **_shell())
    write_atomically(target, [html.encode("utf-8")])
    return target


def _row_sets(
    model: Any, tables: Any, targets: Any, ids: Any
) -> tuple[list[RowSet], list[str], list[str]]:
    """The rows, sampled where they are many; names of classes, unknown ones last; and notes."""
    classes = np.asarray(model.classes_).tolist()
    row_sets: list[RowSet] = []
    notes: list[str] = []
    rng = np.random.default_rng(0)
    kinds = ("training", "new" if tables[0] is None else "held-out")
    for name, table, y, row_ids in zip(kinds, tables, targets, ids, strict=True):
        if table is None:
            continue
        X: Any = table if hasattr(table, "shape") else np.asarray(table)
        n = X.shape[0]
        labels = [None] * n if y is None else np.asarray(y).ravel().tolist()
        if not n or len(labels) != n or (row_ids is not None and len(row_ids) != n):
            raise KernelpoolError(
                f"Give one class and one id for each of the {n} {name} rows, at least one."
            )
        if name != "training":  # classes that the model does not have
            known = {*classes, -1}
            new = {v: None for v in labels if not is_missing(v) and v not in known}
            classes += list(new)
        place = {label: code for code, label in enumerate(classes)}
        codes = np.array([place.get(label, -1) for label in labels], np.int64)
        if row_ids is None:
            row_ids = X.index if hasattr(X, "iloc") else range(n)
        texts = [text_of(i) for i in row_ids]
        at = np.arange(n)
        if n > MOST_PAGE_ROWS:
            at = np.sort(rng.choice(n, MOST_PAGE_ROWS, replace=False))
            notes.append(f"Of the {n:,} {name} rows a random {len(at):,} passed through the model.")
        rows = _safe_indexing(X, at)
        row_sets.append(RowSet(name, rows, codes[at], [texts[i] for i in at.tolist()], n))
    if not row_sets:
        raise KernelpoolError("A report needs rows: X or X_test; both are None.")
    if row_sets[-1].name == "training":
        notes.append("No held-out rows: the error is that of the training rows, which is too low.")
    return row_sets, [text_of(label) for label in classes], notes


def _results(
    inside: FittedPipeline, reject: Any, row_sets: list[RowSet], names: list[str], notes: list[str]
) -> dict[str, Any]:
    """Everything that is computed of the rows, by the names that the template has for it."""
    model = inside.outer
    rows = row_sets[-1]
    train = row_sets[0] if row_sets[0].name == "training" else None
    test = rows if rows is not train else None
    charts: dict[str, str] = {}
    results: dict[str, Any] = {"charts": charts, "metrics": None, "curve": [], "sets": None}
    results |= {"importance": None, "drift": None, "prior": None}
    if (rows.y >= 0).any():
        results |= _evaluation(inside.outer, reject, rows, names, charts)
    if test is not None and train is not None and len(inside.names) <= MOST_COMPARED_FEATURES:
        few = _safe_indexing(test.X, _spaced(len(test.y), MOST_COMPARED))
        results["drift"] = check_drift(None, few, train.X)
        trained = np.bincount(train.y[train.y >= 0], minlength=len(model.classes_))
        if trained.all() and len(trained) <= MOST_PRIORS:
            prior = estimate_class_prior(model, few, trained=trained / trained.sum())
            results["prior"] = replace(prior, moved=bool(results["drift"].moved()))
    if test is not None and 1 < len(inside.names) <= MOST_MASKED:
        known = np.flatnonzero((test.y >= 0) & (test.y < len(model.classes_)))
        known = known[: MOST_MASKED_CELLS // len(inside.names)]
        if len(known):
            labels = np.asarray(model.classes_)[test.y[known]]
            with contextlib.suppress(ValueError):  # it takes no missing values
                results["importance"] = feature_importance(
                    model, _safe_indexing(test.X, known), labels
                )
    results |= _predictions(model, rows, names)
    x = [inside.rows(row_set.X) for row_set in row_sets]
    scores = [inside.score(row_set) for row_set in x]
    novelty = None if reject is None else reject.novelty_threshold_
    results["outliers"] = _outliers(inside, novelty, row_sets, x, scores, names, charts)
    at = _spaced(len(rows.y), MOST_EXPLORED)
    score = scores[-1]
    ids = [rows.ids[i] for i in at.tolist()]
    few = _safe_indexing(rows.X, at)
    score = None if score is None else score[at]
    threshold = None if reject is None else reject.ambiguity_threshold_
    results["explorer"] = explore(inside, few, rows.y[at], ids, score, threshold)
    results["kernels"] = _kernels(inside, x[0], names)
    if inside.kernels is None:
        notes.append("The model has no kernels with means: none are listed.")
    elif 1 < len(inside.numbers) < len(x[0]) / 4:  # of fewer rows directions mean nothing
        charts["kernels"] = _chart(
            lambda ax: plots.draw_kernels(inside, x[0], row_sets[0].y, ax), (7.4, 4.7)
        )
    return results


def _spaced(n: int, most: int) -> np.ndarray:
    """At most so many of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def _colors(y: np.ndarray, names: list[str]) -> dict[str, str]:
    """Series of the most frequent classes: the same everywhere on the page."""
    frequent = np.argsort(-np.bincount(y[y >= 0], minlength=len(names)), kind="stable")[:7]
    return {names[k]: f"s{i}" for i, k in enumerate(np.sort(frequent).tolist())}


# -- how good it is --------------------------------------------------------------------------------


def _evaluation(
    model: Any, reject: Any, rows: RowSet, names: list[str], charts: dict[str, str]
) -> dict[str, Any]:
    """Metrics on rows with known classes, points of the reject curve, and prediction sets."""
    at = np.flatnonzero(rows.y >= 0)
    n_true = len(names)
    X = _safe_indexing(rows.X, at)
    y = rows.y[at]
    probability = np.asarray(model.predict_proba(X), np.float64)
    likely = probability.argmax(axis=1)
    labels = np.asarray(model.predict(X)).tolist()
    refused = {} if reject is None else {reject.novel_label_: 2, reject.ambiguous_label_: 1}
    decision = np.array([refused.get(label, 0) for label in labels])
    place = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    predicted = np.array(
        [place.get(label, code) for label, code in zip(labels, likely, strict=True)]
    )
    predicted = np.where(decision > 0, likely, predicted)
    found = replace(
        Predictions.of(model.classes_, probability, predicted), decision=decision.astype(np.int8)
    )
    metrics = Metrics.of(y, found, n_true=n_true)
    ambiguity = ambiguity_of(probability)
    wrong = predicted != y
    charts["calibration"] = _chart(lambda ax: plots.draw_calibration(metrics.bins, ax))
    hit = np.diag(metrics.confusion)
    total = metrics.confusion.sum(axis=1)
    recall = np.pad(hit, (0, n_true - len(hit))) / np.maximum(total, 1)
    by_recall = np.argsort(recall, kind="stable") if n_true > MOST_IN_MATRIX else np.arange(n_true)
    results: dict[str, Any] = {"metrics": metrics, "rate": metrics.rate(ALPHA), "sets": None}
    results |= {"by_recall": by_recall.tolist(), "pairs": _worst_pairs(metrics.confusion, names)}
    coverage, error, threshold = coverage_curve(ambiguity, wrong, np.ones(len(y)), decision == 2)
    if len(coverage):
        charts["reject"] = _chart(
            lambda ax: plots.draw_reject_curve(ambiguity, wrong, decision, ax)
        )
        wanted = [int(np.abs(coverage - c).argmin()) for c in (1, 0.99, 0.95, 0.9, 0.8, 0.5)]
        count = np.rint(coverage * len(y)).astype(int)
        results["curve"] = [
            (coverage[i], 1 - threshold[i], Rate.of(round(error[i] * count[i]), count[i], ALPHA))
            for i in dict.fromkeys(wanted)
        ]
    if isinstance(model, ConformalClassifier):
        sets = model.predict_set(X)
        known = y < len(model.classes_)
        missed = ~sets[np.flatnonzero(known), y[known]]
        if len(missed):
            sizes = np.bincount(sets.sum(axis=1)).tolist()
            results["sets"] = {"missed": Rate.of(missed.sum(), len(missed), ALPHA), "sizes": sizes}
    return results


def _predictions(model: Any, rows: RowSet, names: list[str]) -> dict[str, Any]:
    """Rows of each predicted class, the most frequent first, and the rows whose two most probable
    classes are closest.
    """
    probability = np.asarray(model.predict_proba(rows.X), np.float64)
    order = np.argsort(-probability, axis=1, kind="stable")[:, :2]
    pair = np.take_along_axis(probability, order, axis=1)  # (n, 2)
    counts = Counter(names[k] for k in order[:, 0].tolist()).most_common()
    unsure = [
        {
            "id": rows.ids[i],
            "label": names[rows.y[i]] if rows.y[i] >= 0 else DASH,
            "classes": [(names[k], p) for k, p in zip(order[i], pair[i], strict=True)],
        }
        for i in np.argsort(pair[:, 0] - pair[:, -1], kind="stable")[:N_UNSURE].tolist()
    ]
    return {"predicted": counts, "unsure": unsure}


def _worst_pairs(confusion: np.ndarray, names: list[str]) -> list[tuple[str, str, int]]:
    """(true, predicted, rows) of the most frequent errors, where a matrix would be too large."""
    if len(names) <= MOST_IN_MATRIX:
        return []
    wrong = confusion * (np.arange(len(names))[:, None] != np.arange(confusion.shape[1]))
    order = np.argsort(-wrong, axis=None, kind="stable")[: min(15, int((wrong > 0).sum()) or 1)]
    at = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return [(names[i], names[j], int(wrong[i, j])) for i, j in at]


# -- kernels and outliers --------------------------------------------------------------------------


def value_text(inside: FittedPipeline, name: str, value: Any, width: float = 0.0) -> str:
    """A cell as the data have it; with the `width` of a deviation or difference what is no cell,
    such as a mean.
    """
    if isinstance(value, str):
        return text_of(value)
    if name in inside.dates:
        return date_text(round(value) if width > 0.1 else value)
    return number(value, 4 if width else 0, width)


def _days(inside: FittedPipeline, name: str) -> str:
    return " days" if name in inside.dates else ""


def _kernels(inside: FittedPipeline, x: np.ndarray, names: list[str]) -> list[dict[str, Any]]:
    """The greatest kernels, with what they are along features; `x` are rows, (n, d)."""
    if inside.kernels is None:
        return []
    table = inside.kernels
    described = []
    for j in table.largest(MOST_LISTED_KERNELS).tolist():
        traits = _traits(inside, j, x)
        if len(traits) > MOST_COLUMNS:
            traits = sorted(traits, key=lambda trait: -trait["away"])[:MOST_TRAITS]
        kernel = {"index": j, "group": table.group[j] if table.group else "", "traits": traits}
        classes = [(names[k], share) for k, share in table.classes(j)[:4]]
        described.append({**kernel, "share": float(table.share[j]), "classes": classes})
    return described


def _traits(inside: FittedPipeline, j: int, x: np.ndarray) -> list[dict[str, Any]]:
    """Mean and width of a kernel along numbers, and the most probable of its categories.

    `away` is the difference from all rows, in standard deviations of the rows.
    """
    table = inside.kernels
    traits = []
    for i, (name, values) in enumerate(zip(inside.features, inside.categories, strict=True)):
        seen: np.ndarray = x[~np.isnan(x[:, i]), i]
        varies = len(seen) > 0 and np.ptp(seen) > 0
        if values is None:
            here = float(table.mean[j, i])
            width = float(table.variance[j, i]) ** 0.5
            after = f"± {number(width, 2)}{_days(inside, name)}"
            trait = {"text": value_text(inside, name, here, width), "after": after, "sort": here}
        else:
            code, here = inside.category(j, i)
            text = text_of(values[code])
            seen = seen == code
            trait = {"text": text, "after": percent(here, 0), "sort": text}
        deviations = abs(here - seen.mean()) / (seen.std() or len(seen) ** -0.5) if varies else 0.0
        traits.append({**trait, "name": text_of(name), "away": deviations})
    return traits


def _outliers(
    inside: FittedPipeline,
    novelty: float | None,
    row_sets: list[RowSet],
    x: list[np.ndarray],
    scores: list[Any],
    names: list[str],
    charts: dict[str, str],
) -> dict[str, Any] | None:
    """The least likely rows, and how many are less likely than one in ONE_IN drawn rows.

    A row is compared with drawn rows in which the same cells are missing: its log-density is that
    of the others.
    """
    if any(score is None for score in scores):
        return None
    drawn = inside.model.sample(N_SIMULATED, random_state=0)[0] * inside.scale + inside.offset
    bounds = _bounds(inside, drawn, np.vstack([*x, np.zeros(drawn.shape[1])]))
    named = {f"{row_set.name} rows": score for row_set, score in zip(row_sets, scores, strict=True)}
    lines = {f"one in {ONE_IN:,} below": bounds[-1], "novel below": novelty}
    charts["novelty"] = _chart(lambda ax: plots.draw_novelty(named, lines, ax))
    rows = []
    usual = _surprise(inside, x[0][:: max(1, len(x[0]) // 100)])
    below = []
    starts = np.cumsum([0, *map(len, x)]).tolist()
    for row_set, cells, score, start in zip(row_sets, x, scores, starts[:-1], strict=True):
        excess = score - bounds[start : start + len(score)]
        below.append((row_set.name, len(score), int((excess < 0).sum())))
        at = np.argsort(excess, kind="stable")[:N_OUTLIERS]
        few = _safe_indexing(row_set.X, at)
        labels = np.asarray(inside.outer.predict(few)).tolist()
        odd = _odd(inside, few, cells[at], usual)
        for i, label, features in zip(at.tolist(), labels, odd, strict=True):
            row = {
                "part": row_set.name,
                "id": row_set.ids[i],
                "score": float(score[i]),
                "odd": features,
            }
            true = names[row_set.y[i]] if row_set.y[i] >= 0 else DASH
            rows.append({**row, "label": true, "named": text_of(label)})
    return {"rows": rows, "bound": bounds[-1], "one_in": ONE_IN, "below": below}


def _bounds(inside: FittedPipeline, drawn: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The log-density that one in ONE_IN drawn rows falls below, for the cells of each row, (n,).

    NaN for rows in which rare sets of cells are missing, except the last.
    """
    patterns, group = np.unique(np.isnan(x), axis=0, return_inverse=True)
    group = group.ravel()
    bound = np.full(len(x), np.nan)
    for g in {*np.argsort(-np.bincount(group))[:MOST_PATTERNS].tolist(), int(group[-1])}:
        score: Any = inside.score(np.where(patterns[g], np.nan, drawn))
        bound[group == g] = np.quantile(score, 1 / ONE_IN, method="lower")
    return bound


def _surprise(inside: FittedPipeline, x: np.ndarray) -> np.ndarray | None:
    """-log p(x_i | the other features) of each cell, (n, d), 0 where it is missing.

    That is the log-density of the row in which the cell is NaN, less that of the row.
    """
    n, d = x.shape
    if d > MOST_MASKED:
        return None
    without = np.repeat(x[:, None], d, axis=1)  # (n, d, d)
    without[:, np.arange(d), np.arange(d)] = np.nan
    whole = inside.score(x)
    rest = inside.score(without.reshape(-1, d))
    if whole is None or rest is None:
        return None
    return np.where(np.isnan(x), 0.0, np.nan_to_num(rest.reshape(n, d) - whole[:, None]))


def _odd(
    inside: FittedPipeline, X: Any, x: np.ndarray, usual: np.ndarray | None
) -> list[list[dict[str, Any]]]:
    """Of each row the features that are least likely given the others, compared with other rows."""
    surprise = None if usual is None else _surprise(inside, x)
    if surprise is None or usual is None:
        return [[] for _ in x]
    excess = surprise - usual.mean(axis=0)
    odd_features: list[list[dict[str, Any]]] = []
    for cells, row, over in zip(inside.cells(X), x, excess, strict=True):
        far = [i for i in np.argsort(-over, kind="stable")[:3].tolist() if over[i] > 2]
        features = []
        for i in far:
            name = inside.features[i]
            values = inside.categories[i]
            unknown = row.copy()
            unknown[i] = np.nan
            notes = [NEVER_SEEN] if values is not None and row[i] >= len(values) else []
            if hasattr(inside.model, "impute"):
                imputed = inside.model.impute(inside.table(unknown[None]))
                mean = (imputed * inside.scale + inside.offset)[0, i]
                near = abs(mean - row[i]) / 100  # of a difference three digits
                value = mean if values is None else values[int(mean)]
                notes.append(f"expected {value_text(inside, name, value, near)}")
            notes.append(f"{MINUS}{number(over[i], 2)}")
            feature = {"name": text_of(name), "text": value_text(inside, name, cells[i])}
            features.append({**feature, "notes": ", ".join(notes)})
        odd_features.append(features)
    return odd_features


# -- the explorer ----------------------------------------------------------------------------------


def explore(
    inside: FittedPipeline,
    X: Any,
    y: np.ndarray,
    ids: list[str],
    score: np.ndarray | None,
    threshold: float | None,
) -> dict[str, Any] | None:
    """Rows, kernels and regions of classes along any two features: the data of the page's script.

    Of rows with the codes of their classes, (n,), -1 where not known, and log p(x), (n,).
    `threshold` is that of the ambiguity. Axes are
    input columns of numbers: None where there are none. Categories are given by name, and a region
    is the most probable class where the two features of the axes alone are known.
    """
    x = inside.input.encode(X)
    classes = np.asarray(inside.outer.classes_)
    cells = cells_of(inside.input, x, X)
    unseen = never_seen(inside.input, x)
    probability = np.asarray(inside.outer.predict_proba(X), np.float64)
    named = probability.argmax(axis=1)
    categories = inside.input.categories
    numbers = [i for i, c in enumerate(categories) if c is None and not np.isnan(x[:, i]).all()]
    if not numbers:
        return None
    axes = plots.separating(x, named, numbers, MOST_EXPLORED_FEATURES)
    categorical = [i for i, values in enumerate(categories) if values is not None][
        :MOST_CATEGORY_COLUMNS
    ]
    kernels, nearest = _drawn_kernels(inside, X, axes)
    ranges = [_range(x[:, i]) for i in axes]
    n_pairs = max(1, len(axes) * (len(axes) - 1) // 2)
    grid = [round(side * min(3.0, (N_CELLS / n_pairs / 384) ** 0.5)) for side in (24, 16)]
    return {
        "features": [text_of(inside.names[i]) for i in axes],
        "labels": [text_of(label) for label in classes.tolist()],
        "ids": ids,
        "dates": [inside.names[i] in inside.dates for i in axes],
        "values": plain(x[:, axes]),
        "categories": {
            text_of(inside.names[i]): [
                row[i] and text_of(row[i]) + f" ({NEVER_SEEN})" * new
                for row, new in zip(cells, unseen[:, i].tolist(), strict=True)
            ]
            for i in categorical
        },
        "true": np.where(y < len(classes), y, -1).tolist(),
        "named": named.tolist(),
        "ambiguity": ambiguity_of(probability).tolist(),
        "score": [None] * len(x) if score is None else plain(score),
        "nearest": nearest,
        "kernels": kernels,
        "threshold": threshold,
        "ranges": ranges,
        "missing": bool(np.isnan(x[:, axes]).any()),
        "start": [axes.index(i) for i in plots.separating(x, named, axes, 2)] * 2,
        "grid": grid,
        "regions": _regions(inside, axes, ranges, grid),
    }


def _range(column: np.ndarray) -> tuple[float, float]:
    """What the page's script shows of a feature."""
    low = float(np.nanmin(column))
    high = float(np.nanmax(column))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _regions(
    inside: FittedPipeline, axes: list[int], ranges: Any, grid: list[int]
) -> list[list[int]]:
    """Codes of the cells of each pair of axes, from the lowest row up, as runs (code, count)."""
    runs = []
    for a, b in combinations(range(len(axes)), 2):
        centers = [
            low + (np.arange(n) + 0.5) / n * (high - low)
            for n, (low, high) in zip(grid, (ranges[a], ranges[b]), strict=True)
        ]
        code = plots.regions_of(inside, (axes[a], axes[b]), centers[0], centers[1], decide=False)
        if code is None:
            return []
        code = code.ravel()
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        counts = np.diff(starts, append=len(code))
        runs.append(np.column_stack([code[starts], counts]).ravel().tolist())
    return runs


def _drawn_kernels(
    inside: FittedPipeline, X: Any, axes: list[int]
) -> tuple[list[dict[str, Any]], list[int]]:
    """The greatest kernels along the axes, and that of each row, -1 where it is not drawn."""
    none = [-1] * X.shape[0]
    if inside.kernels is None or inside.made:
        return [], none
    table = inside.kernels
    greatest = np.sort(inside.kernels.largest(MOST_DRAWN)).tolist()
    kernels = [
        {
            "index": j,
            "share": float(table.share[j]),
            "classes": table.classes(j)[:5],
            "mean": table.mean[j][axes].tolist(),
            "covariance": inside.covariance(j, axes).tolist(),
        }
        for j in greatest
    ]
    posterior = inside.responsibilities(X)
    if posterior is None:
        return kernels, none
    at = table.largest(len(table))
    nearest = at[posterior[:, at].argmax(axis=1)].tolist()
    return kernels, [j if j in greatest else -1 for j in nearest]


# -- the data, and how the model was made ----------------------------------------------------------


def _columns(inside: FittedPipeline, X: Any) -> list[dict[str, Any]]:
    """Ranges, categories and missing cells of columns."""
    columns: list[dict[str, Any]] = []
    x = inside.input.encode(X)
    cells = cells_of(inside.input, x, X)
    unseen = never_seen(inside.input, x)
    for i, (name, values) in enumerate(zip(inside.names, inside.input.categories, strict=True)):
        known = x[~(np.isnan(x[:, i]) | unseen[:, i]), i]
        new = np.flatnonzero(unseen[:, i])
        about: dict[str, Any] = {"name": text_of(name), "n_missing": int(np.isnan(x[:, i]).sum())}
        if values is not None:
            common = values[np.bincount(known.astype(int)).argmax()] if len(known) else None
            unseen_texts = Counter(text_of(cells[n][i]) for n in new.tolist()).most_common(3)
            about |= {"n_categories": len(values), "common": common, "never_seen": unseen_texts}
        elif len(known):
            low = float(known.min())
            high = float(known.max())
            mean, width = (float(known.mean()), float(known.std())) if low < high else (low, 0.0)
            statistics = [("lowest", low, 0.0), ("mean", mean, width / 10), ("highest", high, 0.0)]
            numbers = [(label, v, value_text(inside, name, v, w)) for label, v, w in statistics]
            numbers.append(("deviation", width, f"{number(width)}{_days(inside, name)}"))
            about["numbers"] = numbers
        columns.append(about)
    return columns


def _sentence(inside: FittedPipeline, reject: Any) -> str:
    """The model inside, the steps before it and the wrappers around it."""
    steps = [type(step).__name__ for step in inside.steps if isinstance(step, BaseEstimator)]
    sentences = [describe(inside.model).sentence]
    sentences += [f"Rows first go through {' and '.join(steps)}."] * bool(steps)
    for wrapper in inside.wrappers:
        sentences += [f"Selected by {type(wrapper).__name__}."] * hasattr(
            wrapper, "best_estimator_"
        )
    sentences += [] if reject is None else [refusals(reject)]
    return " ".join(sentences)


def _versions() -> dict[str, str]:
    libraries = {"kernelpool": kernelpool, "scikit-learn": sklearn, "NumPy": np, "SciPy": scipy}
    versions = {name: library.__version__ for name, library in libraries.items()}
    return {**versions, "Python": f"{platform.python_version()}, {platform.system()}"}


def _code(model: Any) -> str:
    """Python that makes an estimator with the same parameters."""
    with config_context(print_changed_only=True):
        made = model.__repr__(N_CHAR_MAX=1_000_000)
    origin = {"kernelpool.app.report": {"write_report"}}
    for estimator in (model, *model.get_params(deep=True).values()):
        if isinstance(estimator, BaseEstimator) and re.search(
            rf"\b{type(estimator).__name__}\(", made
        ):
            modules = type(estimator).__module__.split(".")
            private = [i for i, module in enumerate(modules) if module.startswith("_")]
            n_public = 1 if modules[0] == "kernelpool" else min(private, default=9)
            origin.setdefault(".".join(modules[:n_public]), set()).add(type(estimator).__name__)
    lines = [
        f"from {module} import {', '.join(sorted(classes))}" for module, classes in origin.items()
    ]
    lines += ["", f"model = {made}", "model.fit(X, y)", 'write_report(model, X, y, "report.html")']
    return "\n".join(lines)


# -- the page --------------------------------------------------------------------------------------


def _chart(draw: Callable[[Any], Any], size: tuple[float, float] = (5.0, 3.6)) -> str:
    """A plot as the address of an SVG image: in an image no script runs and nothing is loaded."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Reports need matplotlib: pip install '.[report]' in kernelpool's folder."
        ) from error
    buffer = BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # whatever style the user has set
        mpl.rcParams.update({**plots.STYLE, "svg.fonttype": "none", "svg.hashsalt": "kernelpool"})
        warnings.filterwarnings("ignore", message="Glyph|Matplotlib currently does not support")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


def _shell() -> dict[str, str]:
    """Style and script of the page, and the policy that allows these alone."""
    style = _own("report.css")
    script = _own("report.js") + _own("explorer.js")
    hashes = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in (script, style)]
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {"style": style, "script": script, "policy": policy}


def _own(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text("utf-8")


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "Reports need jinja2: pip install '.[report]' in kernelpool's folder."
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["zip"] = zip
    environment.filters.update(number=number, percent=percent, count=count, text=text_of)
    return environment


def number(value: Any, digits: int = 4, width: float = 0.0) -> str:
    """A number with a few digits, or as many as its width has, or all of its own (0); a dash where
    there is none.
    """
    if value is None:
        return DASH
    if not isfinite(value):
        return DASH if value != value else "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:,.{digits}g}"
    decimals = decimals_of(width, digits - 2) if width > 0 else 9
    if not digits:
        text = f"{float(value):,}".removesuffix(".0")
    elif abs(value) < 1e15 and (decimals < 9 or "e+" in text):
        decimals %= 9
        text = f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return text.replace("-", MINUS)


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return (
        DASH if value is None or value != value else f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"
    )


def count(value: Any) -> str:
    """A whole number with separators, the greatest of several."""
    return DASH if value is None else f"{np.max(value):,.0f}"
