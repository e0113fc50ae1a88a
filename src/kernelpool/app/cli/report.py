"""`kernelpool report`: a page about a model and its rows."""

from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np

from ...text import shown
from ..readers.columns import check_columns
from ..readers.labels import LabeledTable, codes_and_classes
from ..readers.sources import source
from . import options as o
from .output import CommandError, Exit, Screen, check_free, placed
from .saved import open_saved

KEEP = "Show this column of DATA, such as an identifier, beside the numbers of rows (repeatable)."


def report(
    model: o.ModelPath,
    data: o.Data,
    output: Annotated[
        str, o.output("--output", "-o", help="File to write.", metavar="FILE")
    ] = "report.html",
    test: Annotated[
        str | None,
        o.data(
            "--test",
            help="Rows that played no part in fitting; told from the model file unless given.",
            metavar="DATA",
        ),
    ] = None,
    target: o.Target = None,
    keep: Annotated[list[str] | None, o.column("--keep", help=KEEP)] = None,
    drop: o.Drop = None,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Write a report (HTML) on a model and the rows it was fitted to.

    DATA are the rows of the fit. Those that were held out are found again and judged apart; where there were none, or for other
    rows, pass --test.

    Example: kernelpool report irises.safetensors irises.csv -o irises.html
    """
    check_report(output, force)
    saved = open_saved(model, screen, numeric=True)
    column = saved.target_of(target)
    spare = [*(drop or []), *(keep or [])]
    rows = saved.read(source(data, style), column, screen, spare)
    names = kept_names(data, style, list(keep or []))
    codes = rows.labels if saved.numeric else codes_and_classes(rows.labels)[0]
    same, held = saved.split_of(rows.fingerprint(), codes)
    kwargs = {
        key: saved.summary.get(name)
        for key, name in (("command", "command"), ("Seconds of training", "seconds"))
    }
    kwargs = {key: value for key, value in kwargs.items() if isinstance(value, str | float)}
    if test is not None:
        other = saved.read(source(test, style), column, screen, spare)
        names = names + kept_names(test, style, list(keep or []))
        rows, at = _joined(rows, other), np.arange(len(rows), len(rows) + len(other))
        report_on(
            saved.model,
            rows,
            at,
            output,
            force,
            screen,
            names=names,
            **kwargs,
        )
    else:
        if not same:
            screen.warn(
                "these are not the rows of the fit, or not in their order: errors are counted on all of them."
            )
        found = np.flatnonzero(held) if held is not None and held.any() else None
        report_on(saved.model, rows, found, output, force, screen, names=names, **kwargs)
    screen.answer({"report": output, "rows_of_fit": same, "n_rows": len(rows)})


def kept_names(data: str, style: Any, keep: list[str]) -> list[str]:
    """What is shown beside the number of each row of a file; nothing where no column is kept."""
    if not keep:
        return []
    if data == "-":
        raise CommandError(Exit.USAGE, "--keep reads DATA twice: name a file, not stdin.")
    rows, kept = source(data, style), {name: [] for name in keep}  # type: ignore[var-annotated]
    for batch in rows.batches():
        check_columns(keep, rows.names, rows.label, "to keep")
        for name in keep:
            kept[name] += batch.columns[name].to_pylist()
    return row_names(kept)


def row_names(kept: dict[str, list[Any]]) -> list[str]:
    """Columns that are kept, as one text a row."""
    texts = [
        [
            f"{name} {shown(value, 40)}" if len(kept) > 1 else shown(value, 40)
            for value in kept[name]
        ]
        for name in kept
    ]
    return [", ".join(parts) for parts in zip(*texts, strict=True)]


def _joined(rows: LabeledTable, other: LabeledTable) -> LabeledTable:
    import pyarrow as pa

    labels = np.concatenate([rows.labels, other.labels])
    return LabeledTable(
        pa.concat_tables([rows.table, other.table]).combine_chunks(),
        labels,
        rows.features,
        rows.target,
        rows.source,
        rows.columns,
        numbers=np.concatenate([rows.row_numbers, other.row_numbers]),
    )


def check_report(path: str, force: bool) -> None:
    """Refuses before any work what could not be written after it."""
    if find_spec("jinja2") is None or find_spec("matplotlib") is None:
        raise CommandError(
            Exit.EXTRA,
            "A report needs jinja2 and matplotlib: pip install '.[report]' in kernelpool's folder.",
        )
    check_free(path, force)


def report_on(
    model: Any,
    rows: LabeledTable,
    test: np.ndarray | None,
    path: str,
    force: bool,
    screen: Screen,
    *,
    names: list[str] | None = None,
    command: str | None = None,
    **kwargs: Any,
) -> None:
    """The report of a model on its rows, those held out apart."""
    from ..report import write_report

    train = np.arange(len(rows)) if test is None else np.setdiff1d(np.arange(len(rows)), test)
    held = (None, None) if test is None else rows.at(test)
    ids = rows.row_numbers.astype(object)
    if names:  # rows may have been left out for want of a label
        named = names if len(names) == len(rows) else [names[i - 1] for i in rows.row_numbers]
        ids = np.array([f"{i} ({name})" for i, name in zip(ids, named, strict=True)], object)
    facts = {"Rows": rows.source, "Target": rows.target, **kwargs}
    with placed(path, force) as beside, screen.working("Writing the report"):
        write_report(
            model,
            *rows.at(train),
            beside,
            X_test=held[0],
            y_test=held[1],
            row_ids=ids[train].tolist(),
            test_row_ids=None if test is None else ids[test].tolist(),
            facts=facts,
            command=command,
        )
    screen.result(f"Report: {shown(path, 400)}")
