"""A report on a fitted classifier: one HTML file that needs neither network nor server.

The entry points are

    write_report(model, X, y, path, *, X_test=None, y_test=None, row_ids=None, test_row_ids=None,
                 title=None, facts=None, command=None) -> Path
    write_page(results, path, *, title=None, facts=None, command=None) -> Path

The template reads the `Results` themselves, the tables of `sections`, the description of the model,
its attributes and parameters. Everything that comes from the data passes jinja2's escaping, and the
page's policy (Content-Security-Policy) allows its own style and script, named by their hashes, and
images in the page, and nothing else.
"""

import base64
import os
import platform
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn import config_context
from sklearn.base import BaseEstimator

import kernelpool

from ...atomic import write_atomically
from ...errors import KernelpoolError, without_column_warnings
from ...inspection import DECISIONS, describe, refusals
from ...text import date_text, decimals_of, text_of
from . import plots, sections
from .explorer import N_SERIES, explore
from .results import MOST_EVALUATED, ONE_IN, Results, evaluate
from .sections import ALPHA
from .svg import address_of

SVG_STYLE = {
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "svg.fonttype": "none",
    "svg.hashsalt": "kernelpool",
}
"""Text stays text, and the same results make the same picture."""

MINUS = "\N{MINUS SIGN}"

DASH = "\N{EN DASH}"
"""Where there is no value."""


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
    results = evaluate(
        model,
        X_test,
        y_test,
        X_train=X,
        y_train=y,
        ids=test_row_ids,
        train_ids=row_ids,
        most_rows=MOST_EVALUATED,
    )
    return write_page(results, path, title=title, facts=facts, command=command)


def write_page(
    results: Results,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> Path:
    """Write down what `evaluate` returned, as `write_report` does; the same parameters."""
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise KernelpoolError(f"path must name a file in a folder that exists; got {str(path)!r}.")
    page = {
        "title": title,
        "facts": facts or {},
        "command": command,
        "results": results,
        "answers": results.predictions,
        "chart_of": partial(chart_of, results),
        "code": _code(results.model),
        "created": datetime.now(UTC),
    }
    with without_column_warnings():  # a few rows may well hold no category of the fit
        html = _environment().get_template("report.html").render(page)
    write_atomically(target, [html.encode("utf-8")])
    return target


def _code(model: Any) -> tuple[dict[str, set[str]], str]:
    """Names by the modules that they are imported from, and what makes an estimator with the same
    parameters.
    """
    names = {"kernelpool.app.report": {"write_report"}}
    for estimator in (model, *model.get_params(deep=True).values()):
        if isinstance(estimator, BaseEstimator):
            module = re.sub(r"(?<=^kernelpool)\..*|\._.*", "", type(estimator).__module__)
            names.setdefault(module, set()).add(type(estimator).__name__)
    with config_context(print_changed_only=True):
        return names, model.__repr__(N_CHAR_MAX=1_000_000)


# -- the page --------------------------------------------------------------------------------------


def chart_of(results: Results, name: str, width: float = 5.0, height: float = 3.6) -> str:
    """The address of a picture of `plots`: in an image no script runs and nothing is loaded."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    buffer = StringIO()
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # whatever style the user has set
        mpl.rcParams.update({**plots.STYLE, **SVG_STYLE})
        warnings.filterwarnings("ignore", message="Glyph|Matplotlib currently does not support")
        figure = Figure(figsize=(width, height), layout="constrained")
        getattr(plots, name)(results, ax=figure.add_subplot())
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return address_of(buffer.getvalue())


@cache
def _environment() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reports need jinja2 and matplotlib: pip install '.[report]' in kernelpool's folder."
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    filters = (count, cell, describe, digest, number, percent, refusals, text_of, type)
    environment.filters.update((function.__name__, function) for function in filters)
    environment.globals.update(
        zip=zip,
        own=_own,
        sections=sections,
        explore=explore,
        n_series=N_SERIES,
        one_in=ONE_IN,
        decisions=DECISIONS,
        alpha=ALPHA,
        libraries=(kernelpool, sklearn, np, scipy),
        python=f"{platform.python_version()}, {platform.system()}",
    )
    return environment


def _own(name: str) -> str:
    """A template, or a part of the page, without indentation."""
    text = (files(__package__) / "templates" / name).read_text("utf-8")
    return re.sub(r"\n\s+", "\n", text)


def digest(text: str) -> str:
    """Of a part of the page, by which its policy allows it."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def number(value: Any, digits: int = 4, width: float = 0.0) -> str:
    """A number with a few digits, or as many as its width has, or all of its own (0); a dash where
    there is none.
    """
    if value is None or value != value:
        return DASH
    text = f"{value:,.{digits}g}"
    decimals = decimals_of(width, digits - 2)
    if not digits:
        text = f"{float(value):,}".removesuffix(".0")
    elif abs(value) < 1e15 and ("e+" in text or (width > 0 and decimals < 9)):
        text = f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return text.replace("-", MINUS).replace("inf", "∞")


def cell(value: Any, is_date: bool = False, width: float = 0.0) -> str:
    """A cell as the data have it; with the `width` of a deviation or difference what is no cell,
    such as a mean.
    """
    if isinstance(value, str):
        return text_of(value)
    if is_date:
        return date_text(round(value) if width > 0.1 else value)
    return number(value, 4 if width else 0, width)


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return (
        DASH if value is None or value != value else f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"
    )


def count(value: Any) -> str:
    """A whole number with separators, the greatest of several."""
    return DASH if value is None else f"{np.max(value):,.0f}"
