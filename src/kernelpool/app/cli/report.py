"""`kernelpool report`: a page about a model and rows."""

from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np

from ...text import shown
from ..readers.files import Source
from ..readers.table import Rows
from . import options as o
from .loaded import load_model
from .output import CommandError, Exit, Screen, check_free, placed


def report(
    model: o.ModelPath,
    data: o.Data,
    target: o.Target = None,
    keep: o.Keep = None,
    text: o.Text = None,
    output: Annotated[
        str, o.output("--output", "-o", help="File to write.", metavar="FILE")
    ] = "report.html",
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a report (HTML) on a model and rows.

    DATA are rows that the model was not fitted to, with classes or without. `kernelpool fit
    --report` writes one on the rows of the fit.

    Example: kernelpool report irises.safetensors new.csv -o irises.html
    """
    screen = Screen(as_json, quiet)
    check_report(output, force)
    loaded, source = load_model(model, screen), Source(data, o.text_style(text))
    rows = loaded.read(source, target, screen, tuple(keep or ()))
    write(loaded.model, rows, output, force, screen, new=np.arange(len(rows.y)))
    screen.answer({"report": output, "n_rows": len(rows.y)})


def check_report(path: str, force: bool) -> None:
    """Refuse before any work what could not be written after it."""
    if find_spec("jinja2") is None or find_spec("matplotlib") is None:
        raise CommandError(
            Exit.EXTRA,
            "A report needs jinja2 and matplotlib: pip install '.[report]' in kernelpool's folder.",
        )
    check_free(path, force)


def write(
    model: Any,
    rows: Rows,
    path: str,
    force: bool,
    screen: Screen,
    *,
    new: np.ndarray | None,
    fitted: np.ndarray | None = None,
    command: str | None = None,
) -> None:
    """The report of a model on rows that it was not fitted to, and on those that it was."""
    from ..report import write_report

    def part(at: np.ndarray | None) -> tuple[Any, Any, Any]:
        if at is None:
            return None, None, None
        table, y = rows.at(at)
        known = any(label is not None for label in y)
        return table, y if known else None, rows.ids[at].tolist()

    (x, y, ids), (x_new, y_new, new_ids) = part(fitted), part(new)
    with placed(path, force) as beside, screen.working("Writing the report"):
        write_report(
            model,
            x,
            y,
            beside,
            X_test=x_new,
            y_test=y_new,
            row_ids=ids,
            test_row_ids=new_ids,
            facts={"Rows": rows.source, "Target": rows.target},
            command=command,
        )
    screen.result(f"Report: {shown(path, 400)}")
