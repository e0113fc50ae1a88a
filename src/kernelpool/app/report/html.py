"""The page: a summary through templates into one file that needs nothing else, neither network nor server.

Whatever comes from the data passes jinja2's escaping. The page's policy (Content-Security-Policy) allows its own style and its
own small script, told by their hashes, and nothing else: even text that escaped the escaping could not run.
"""

import base64
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...atomic import write_atomically
from ...errors import KernelpoolError
from ...text import plain
from ...training.reject import NOTHING_BELOW
from .charts import charts_of, in_use
from .records import Accepted, Evaluation, Explorer, PageTable, Summary

MINUS, DASH, SPACE = "\N{MINUS SIGN}", "\N{EN DASH}", "\N{NO-BREAK SPACE}"

PLOT_CLASSES = 7


def write_html(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write a report as one HTML file that can be opened, mailed and printed as it is.

    The file appears complete or not at all: it is written beside its place and then moved there.

    Parameters
    ----------
    summary : Summary
        What `summarize` returned.
    path : str or path
        Where to write; a file that is there is replaced.

    Returns
    -------
    path : Path
        Where it was written.

    Examples
    --------
    >>> import tempfile
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.app.report import summarize, write_html
    >>> X, y = make_clouds(500, random_state=0)
    >>> summary = summarize(SharedKernelClassifier.prbf(6, random_state=0).fit(X, y), X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_html(summary, folder + "/report.html").name
    'report.html'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise KernelpoolError(
            f"There is no folder {str(target.parent)!r} to write {target.name!r} to; make it first."
        )
    if target.is_dir():
        raise KernelpoolError(f"path must name a file; {str(target)!r} is a folder.")
    write_atomically(target, [render_html(summary).encode("utf-8")])
    return target


def render_html(summary: Summary) -> str:
    """The page as text.

    Parameters
    ----------
    summary : Summary
        What `summarize` returned.

    Returns
    -------
    page : str
        An HTML document.
    """
    environment = _environment()
    import markupsafe  # comes with jinja2

    used = None if summary.evaluation is None else in_use(summary.evaluation)
    colors = _colors(summary)
    page: str = environment.get_template("report.html").render(
        summary=summary,
        **_shell(),
        colors=colors,
        explorer_data=None if summary.explorer is None else explorer_json(summary.explorer, colors),
        charts={name: markupsafe.Markup(text) for name, text in charts_of(summary).items()},
        has_density=lambda threshold: threshold > NOTHING_BELOW,
        used=used,
        bought=[] if summary.evaluation is None else _bought(summary.evaluation, used),
    )
    return page


def render_explorer(
    title: str,
    told: Sequence[str],
    explorers: Sequence[tuple[str, Explorer]],
    tables: Sequence[PageTable] = (),
) -> str:
    """A page of pictures to be touched, side by side where there are several.

    Parameters
    ----------
    title : str
        Title.
    told : sequence of str
        Sentences above the pictures.
    explorers : sequence of (str, Explorer)
        Headings and pictures.
    tables : sequence of PageTable, default=()
        Tables above the pictures.

    Returns
    -------
    page : str
        An HTML document.
    """
    names = [label for _, explorer in explorers for label in explorer.labels]
    colors = {name: f"s{i}" for i, name in enumerate(list(dict.fromkeys(names))[:PLOT_CLASSES])}
    parts = [(name, explorer, explorer_json(explorer, colors)) for name, explorer in explorers]
    page: str = (
        _environment()
        .get_template("explore.html")
        .render(title=title, told=told, parts=parts, tables=tables, colors=colors, **_shell())
    )
    return page


def explorer_json(explorer: Explorer, colors: dict[str, str]) -> str:
    """What the script reads; the page puts it, escaped, into an attribute."""
    told = {
        **plain(asdict(explorer)),
        "colors": [colors.get(label, "other") for label in explorer.labels],
    }
    return json.dumps(told, separators=(",", ":"), allow_nan=False)


def _shell() -> dict[str, str]:
    """Style and script of a page, and the policy that lets it run these alone."""
    style, script = _own("report.css"), _own("report.js") + _own("explorer.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"style": style, "script": script, "policy": policy}


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
    environment.filters.update(
        number=number, beside=beside, percent=percent, count=count, seconds=seconds
    )
    return environment


def _own(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _hash(text: str) -> str:
    """How a policy names an inline script or style."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


def _colors(summary: Summary) -> dict[str, str]:
    """Series of each class: the same everywhere on the page."""
    names = (
        summary.map.labels
        if summary.map is not None
        else sorted(c.name for c in summary.data.classes[:PLOT_CLASSES])
    )
    return {name: f"s{i}" for i, name in enumerate(names)}


def _bought(evaluation: Evaluation, used: Accepted | None) -> list[tuple[Accepted, bool]]:
    """Points of the reject curve from greatest coverage to least, and which of them is the one in use."""
    points = [(point, False) for point in evaluation.choices] + (
        [] if used is None else [(used, True)]
    )
    return sorted(points, key=lambda pair: -pair[0].coverage)


# -- numbers for readers ------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 4) -> str:
    """A few digits, with a real minus sign; a dash where there is no number."""
    if value is None or value != value:
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else MINUS + "∞"
    text = f"{value:,.{digits}g}"
    if "e+" in text:  # more digits before the point than were asked for
        text = f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3e}"
    return text.replace("-", MINUS)


def beside(value: float | None, width: float | None, digits: int = 2) -> str:
    """A number with no more decimals than `digits` digits of the width that stands beside it have."""
    if value is None or width is None or not math.isfinite(value) or not 0 < abs(width) < math.inf:
        return number(value)
    decimals = digits - 1 - math.floor(math.log10(abs(width)))
    if decimals > 8 or abs(value) >= 1e9:
        return number(value)
    rounded = round(value, decimals) + 0.0  # no minus zero
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", MINUS)


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return DASH if value is None or value != value else f"{100 * value:.{digits}f}{SPACE}%"


def count(value: float | None) -> str:
    """A whole number with separators."""
    return DASH if value is None else f"{value:,.0f}"


def seconds(value: float) -> str:
    """A duration as people say it."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"
