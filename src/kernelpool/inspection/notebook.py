"""What a notebook shows of a fitted model: a sentence and its greatest kernels below scikit-learn's
diagram.
"""

from html import escape
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..text import date_text, decimals_of, percent, shorten, text_of
from .description import Inspected, KernelTable, describe
from .pipeline import FittedPipeline

LISTED_KERNELS = 10
"""Kernels of the table."""

LISTED_FEATURES = 4
"""Features of the table."""

LISTED_CLASSES = 2
"""Classes that are named for a kernel."""

NAME_LENGTH = 40
"""Characters of a name."""


class NotebookMixin(Inspected):
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
    description = describe(estimator)
    body = f"<p>{escape(description.sentence)}</p>"
    if description.kernels is not None:
        inside = FittedPipeline(estimator)
        body += _table(description.kernels, inside, getattr(estimator, "classes_", ()))
    return f'<div style="margin:0.6em 0;max-width:60em;font-size:90%">{body}</div>'


def _table(table: KernelTable, inside: FittedPipeline, classes: Any) -> str:
    features = [] if inside.kernels is None else inside.features
    listed = [shorten(name, NAME_LENGTH) for name in features[:LISTED_FEATURES]]
    heads = [table.word, "network", "share", "classes", *listed]
    order = table.largest(LISTED_KERNELS).tolist()
    rows = []
    for j in order:
        network = table.group[j] if table.group else ""
        traits = [_feature_text(inside, j, i) for i in range(len(listed))]
        rows.append(
            [str(j), network, percent(table.share[j]), _class_shares(table, j, classes), *traits]
        )
    filled = [n for n, column in enumerate(zip(*rows, strict=True)) if any(column)]
    html = "".join(
        f"<tr>{''.join(f'<td>{escape(row[n])}</td>' for n in filled)}</tr>"
        for row in (heads, *rows)
    )
    left = {f"{table.word}s": len(table) - len(order), "features": len(features) - len(listed)}
    more = ", ".join(f"{n:,} more {word}" for word, n in left.items() if n)
    return f"<table>{html}</table>" + (f"<p>… and {escape(more)}.</p>" if more else "")


def _feature_text(inside: FittedPipeline, j: int, i: int) -> str:
    """What kernel j is along feature i: a category and its share, or a mean and a deviation."""
    if inside.categories[i] is not None:
        code, share = inside.category(j, i)
        return f"{text_of(inside.categories[i][code], NAME_LENGTH)} {percent(share, 0)}"
    deviation = inside.kernels.variance[j, i] ** 0.5
    numbers = (inside.kernels.mean[j, i], deviation)
    if inside.features[i] in inside.dates:
        return f"{date_text(round(numbers[0]))} ± {text_of(round(deviation, 1))} days"
    return " ± ".join(text_of(round(number, decimals_of(deviation, 2))) for number in numbers)


def _class_shares(table: KernelTable, j: int, classes: Any) -> str:
    """The most frequent classes of a kernel."""
    shares = table.classes(j) if len(classes) else []
    texts = [f"{shorten(str(classes[k]), NAME_LENGTH)} {percent(share, 0)}" for k, share in shares]
    more = [f"{len(texts) - LISTED_CLASSES} more"] if len(texts) > LISTED_CLASSES else []
    return ", ".join([*texts[:LISTED_CLASSES], *more])
