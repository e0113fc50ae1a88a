"""How a fitted model shows itself in a notebook: scikit-learn's diagram, and below it a sentence and the kernels.

HTML is written by hand here, a table of numbers: notebooks must not need the packages that whole reports do. Everything that
comes from the data is escaped.
"""

from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..text import shorten
from .describe import Pool, describe

MINUS = "\N{MINUS SIGN}"
MOST_ROWS, MOST_FEATURES, MOST_CLASSES, LONGEST = 10, 4, 2, 40


class NotebookMixin:
    """Adds a summary of a fitted model to scikit-learn's diagram."""

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + _summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += _summary(self)
        return bundle


def _summary(estimator: Any) -> str:
    """A sentence and a table; nothing where the model is not fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return ""
    return notebook_summary(estimator)


def notebook_summary(estimator: Any) -> str:
    """The model in a sentence and its greatest kernels, as HTML.

    Parameters
    ----------
    estimator : fitted estimator
        One of this library's.

    Returns
    -------
    html : str
        A block that can stand in any page.
    """
    description = describe(estimator)
    pool, parts = description.pool, [f"<p>{escape(description.sentence)}</p>"]
    if pool is not None:
        names = [
            str(n)
            for n in getattr(
                estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)]
            )
        ]
        parts.append(_table(pool, np.asarray(getattr(estimator, "classes_", ())), names))
    return f'<div style="margin:0.6em 0;max-width:60em;font-size:90%">{"".join(parts)}</div>'


def _table(pool: Pool, classes: np.ndarray, names: list[str]) -> str:
    order = np.argsort(-pool.share, kind="stable")[:MOST_ROWS]
    mean, variance, posterior = pool.mean, pool.variance, pool.class_posterior
    placed = mean is not None and variance is not None
    with_classes = posterior is not None and len(classes) > 0
    heads = [
        pool.word,
        *(["network"] if pool.group else []),
        "share",
        *(["classes"] if with_classes else []),
    ]
    heads += [shorten(name, LONGEST) for name in names[:MOST_FEATURES]] if placed else []
    rows = []
    for j in order.tolist():
        cells = [str(j), *([pool.group[j]] if pool.group else []), f"{100 * pool.share[j]:.1f} %"]
        if posterior is not None and with_classes:
            cells.append(_class_shares(posterior[j], classes))
        if mean is not None and variance is not None:
            some = zip(mean[j][:MOST_FEATURES], variance[j][:MOST_FEATURES] ** 0.5, strict=True)
            cells += [f"{center:.3g} ± {width:.2g}".replace("-", MINUS) for center, width in some]
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    left = [
        f"{n:,} more {word}"
        for n, word in (
            (len(pool) - len(order), f"{pool.word}s"),
            (_hidden(placed, names), "features"),
        )
        if n
    ]
    more = f"<p>… and {escape(', '.join(left))}.</p>" if left else ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>{more}"


def _hidden(placed: bool, names: list[str]) -> int:
    return max(0, len(names) - MOST_FEATURES) if placed else 0


def _class_shares(posterior: np.ndarray, classes: np.ndarray) -> str:
    order = [k for k in np.argsort(-posterior, kind="stable").tolist() if posterior[k] >= 0.005]
    named = [
        f"{shorten(str(classes[k]), LONGEST)} {100 * posterior[k]:.0f} %"
        for k in order[:MOST_CLASSES]
    ]
    return ", ".join(named) + (
        f", {len(order) - MOST_CLASSES} more" if len(order) > MOST_CLASSES else ""
    )
