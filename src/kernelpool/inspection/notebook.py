"""How a fitted model shows itself in a notebook: scikit-learn's diagram, and below it a sentence
and the kernels.

HTML is written by hand here, a table of numbers: notebooks must not need the packages that whole
reports do. Everything that comes from the data is escaped.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..text import percent, shorten
from .describe import Pool, describe
from .pipeline import unwrap

MINUS = "\N{MINUS SIGN}"
MOST_ROWS, MOST_FEATURES, MOST_CLASSES, LONGEST = 10, 4, 2, 40


class NotebookMixin:
    """Adds a summary of a fitted model to scikit-learn's diagram."""

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
    description = describe(estimator)
    body = f"<p>{escape(description.sentence)}</p>"
    if description.pool is not None:
        body += _table(
            description.pool, getattr(estimator, "classes_", ()), unwrap(estimator).names
        )
    return f'<div style="margin:0.6em 0;max-width:60em;font-size:90%">{body}</div>'


def _table(pool: Pool, classes: Any, names: Sequence[str]) -> str:
    order = pool.largest(MOST_ROWS).tolist()
    columns = {pool.word: [str(j) for j in order]}
    if pool.group:
        columns["network"] = [pool.group[j] for j in order]
    columns["share"] = [percent(pool.share[j]) for j in order]
    if pool.class_posterior is not None and len(classes):
        columns["classes"] = [_class_shares(pool.class_posterior[j], classes) for j in order]
    left = {f"{pool.word}s": len(pool) - len(order)}
    heads, cells = list(columns), list(columns.values())
    if pool.mean is not None and pool.variance is not None:
        left["features"] = max(0, len(names) - MOST_FEATURES)
        for i, name in enumerate(names[:MOST_FEATURES]):
            heads.append(shorten(name, LONGEST))
            placed = zip(pool.mean[order, i], pool.variance[order, i] ** 0.5, strict=True)
            cells.append([f"{m:.3g} ± {sd:.2g}".replace("-", MINUS) for m, sd in placed])
    rows = [heads, *zip(*cells, strict=True)]
    marks = ["th", *["td"] * len(order)]
    html = "".join(
        f"<tr>{''.join(f'<{mark}>{escape(cell)}</{mark}>' for cell in row)}</tr>"
        for mark, row in zip(marks, rows, strict=True)
    )
    more = ", ".join(f"{n:,} more {word}" for word, n in left.items() if n)
    return f"<table>{html}</table>" + (f"<p>… and {escape(more)}.</p>" if more else "")


def _class_shares(posterior: np.ndarray, classes: Any) -> str:
    order = [k for k in np.argsort(-posterior, kind="stable").tolist() if posterior[k] >= 0.005]
    named = [f"{shorten(str(classes[k]), LONGEST)} {percent(posterior[k], 0)}" for k in order]
    more = [f"{len(order) - MOST_CLASSES} more"] if len(order) > MOST_CLASSES else []
    return ", ".join([*named[:MOST_CLASSES], *more])
