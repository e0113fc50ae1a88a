"""What a notebook shows of a fitted model: a sentence and its greatest kernels below scikit-learn's
diagram.
"""

from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..text import decimals_of, percent, shorten, text_of
from .describe import Pool, describe
from .pipeline import FittedPipeline

LISTED_KERNELS = 10
"""Kernels of the table."""

LISTED_FEATURES = 4
"""Features of the table."""

LISTED_CLASSES = 2
"""Classes that are named for a kernel."""

NAME_LENGTH = 40
"""Characters of a name."""


class NotebookMixin:
    """Adds a summary of a fitted model to scikit-learn's diagram.

    HTML is written by hand here, a table of numbers: notebooks must not need the packages that
    whole reports do. Everything that comes from the data is escaped.
    """

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + notebook_summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += notebook_summary(self)
        return bundle


def notebook_summary(estimator: Any) -> str:
    """A sentence and the greatest kernels, as HTML that can stand in any page; nothing where the
    model is not fitted.
    """
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return ""
    body = f"<p>{escape(describe(estimator).sentence)}</p>"
    pool = describe(estimator).pool
    if pool is not None:
        body += _table(pool, FittedPipeline(estimator), getattr(estimator, "classes_", ()))
    return f'<div style="margin:0.6em 0;max-width:60em;font-size:90%">{body}</div>'


def _table(pool: Pool, inside: FittedPipeline, classes: Any) -> str:
    order = pool.largest(LISTED_KERNELS).tolist()
    columns = {pool.word: [str(j) for j in order]}
    if pool.group:
        columns["network"] = [pool.group[j] for j in order]
    columns["share"] = [percent(pool.share[j]) for j in order]
    if pool.class_posterior is not None and len(classes):
        columns["classes"] = [_class_shares(pool.class_posterior[j], classes) for j in order]
    left = {f"{pool.word}s": len(pool) - len(order)}
    heads = list(columns)
    cells = list(columns.values())
    if inside.pool is not None:
        left["features"] = max(0, len(inside.features) - LISTED_FEATURES)
        for i, name in enumerate(inside.features[:LISTED_FEATURES]):
            heads.append(shorten(name, NAME_LENGTH))
            cells.append([_feature_text(inside, j, i) for j in order])
    rows = [heads, *zip(*cells, strict=True)]
    marks = ["th", *["td"] * len(order)]
    html = "".join(
        f"<tr>{''.join(f'<{mark}>{escape(cell)}</{mark}>' for cell in row)}</tr>"
        for mark, row in zip(marks, rows, strict=True)
    )
    more = ", ".join(f"{n:,} more {word}" for word, n in left.items() if n)
    return f"<table>{html}</table>" + (f"<p>… and {escape(more)}.</p>" if more else "")


def _feature_text(inside: FittedPipeline, j: int, i: int) -> str:
    """What kernel j is along feature i: a category and its share, or a mean and a deviation."""
    if inside.categories[i] is not None:
        code, share = inside.category(j, i)
        return f"{text_of(inside.categories[i][code], NAME_LENGTH)} {percent(share, 0)}"
    mean = inside.pool.mean[j, i]
    deviation = inside.pool.variance[j, i] ** 0.5
    texts = (text_of(round(v, decimals_of(deviation, 2))) for v in (mean, deviation))
    return " ± ".join(texts)


def _class_shares(posterior: np.ndarray, classes: Any) -> str:
    order = [k for k in np.argsort(-posterior, kind="stable").tolist() if posterior[k] >= 0.005]
    named = [f"{shorten(str(classes[k]), NAME_LENGTH)} {percent(posterior[k], 0)}" for k in order]
    more = [f"{len(order) - LISTED_CLASSES} more"] if len(order) > LISTED_CLASSES else []
    return ", ".join([*named[:LISTED_CLASSES], *more])
