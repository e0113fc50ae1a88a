"""`kernelpool explore`: new rows and the kernels of a model, as a page that can be touched."""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...inspection.pipeline import unwrap
from ...inspection.pool import describe
from ...text import plural, shown
from ..readers.columns import Gaps, check_columns
from ..readers.labels import codes_of
from ..readers.sources import source
from . import options as o
from .output import CommandError, Exit, placed
from .report import KEEP, check_report, row_names
from .saved import Saved, open_saved


def explore(
    model: o.ModelPath,
    data: o.Data,
    output: Annotated[
        str, o.output("--output", "-o", help="File to write.", metavar="FILE")
    ] = "explore.html",
    keep: Annotated[list[str] | None, o.column("--keep", help=KEEP)] = None,
    drop: o.Drop = None,
    opened: Annotated[
        bool, o.output("--open/--no-open", help="Open it in a browser, where there is a terminal.")
    ] = True,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Look at new rows and the kernels of a model from all sides, in a page (HTML).

    Choose two features, point at rows, choose kernels, toggle classes, and move the threshold of refusal. Labels are shown
    where DATA have them. Of many rows the first 800 complete ones are taken.

    Example: kernelpool explore irises.safetensors new.csv --keep id
    """
    check_report(output, force)
    saved = open_saved(model, screen)
    from ..report.html import render_explorer

    wanted, found = list(keep or []), ExploredRows(saved, list(keep or []), list(drop or []))
    found.read(source(data, style), screen)
    if not found.n_rows:
        raise CommandError(
            Exit.DATA, f"{shown(data, 200)}: no row is complete: there is nothing to look at."
        )
    explorer = found.explorer(wanted)
    if explorer is None:
        raise CommandError(
            Exit.MODEL,
            f"{shown(saved.path, 200)}: the model gives no probabilities that could be drawn.",
        )
    title, sentence = (
        f"{Path(data).name} seen by {Path(model).name}",
        describe(unwrap(saved.model).inner).sentence,
    )
    page = render_explorer(title, [sentence], [("", explorer)])
    with placed(output, force) as beside:
        Path(beside).write_bytes(page.encode("utf-8"))
    screen.result(f"Page: {shown(output, 400)} ({plural(found.n_rows, 'row')})")
    if opened and sys.stdout.isatty() and not screen.as_json:
        webbrowser.open(Path(output).resolve().as_uri())
    screen.answer({"page": output, "n_rows": found.n_rows})


class ExploredRows:
    """The first complete rows of a source, with their numbers, labels where there are any, and columns to be kept."""

    def __init__(self, saved: Saved, keep: list[str], drop: list[str]) -> None:
        self.saved, self.keep, self.drop = saved, keep, drop
        self.tables: list[Any] = []
        self.numbers: list[np.ndarray] = []
        self.codes: list[np.ndarray] = []
        self.kept: dict[str, list[Any]] = {name: [] for name in keep}
        self.n_rows = 0

    def read(self, rows: Any, screen: Any) -> None:
        """As many as a picture can show."""
        from ..report.explorer import MOST_POINTS

        target = self.saved.target
        spare = {
            *self.keep,
            *self.drop,
            *self.saved.set_drop(),
            *({target} if target is not None else ()),
        }
        for batch, table, complete in self.saved.batches(rows, screen, spare, "Reading", Gaps()):
            check_columns(self.keep, rows.names, rows.label, "to keep")
            if self.n_rows >= MOST_POINTS:
                continue
            at = np.flatnonzero(complete)[: MOST_POINTS - self.n_rows]
            self.tables.append(
                table.slice(0, len(at)) if hasattr(table, "slice") else table[: len(at)]
            )
            self.numbers.append(batch.first_row + at)
            known = target is not None and target in rows.names
            codes = np.full(batch.n_rows, -1)
            if known:
                codes = codes_of(batch, target, self.saved.classes)  # type: ignore[arg-type]
            self.codes.append(codes[at])
            for name in self.keep:
                self.kept[name] += batch.columns[name].take(at).to_pylist()
            self.n_rows += len(at)

    def explorer(self, keep: list[str]) -> Any:
        """The picture."""
        from ..report.explorer import explorer_of

        saved = self.saved
        if hasattr(self.tables[0], "slice"):
            import pyarrow as pa

            rows = pa.concat_tables(self.tables).combine_chunks()
        else:
            rows = np.concatenate(self.tables)
        found = unwrap(
            saved.model, None if saved.features is None else [f.name for f in saved.features]
        )
        x = np.asarray(found.transform(rows) if found.transforms else rows, np.float64)
        codes = np.concatenate(self.codes)
        labels = np.where(codes < 0, None, saved.classes.astype(object)[codes])
        names = row_names(self.kept) if keep else None
        return explorer_of(
            found, describe(found.inner).pool, rows, x, labels, np.concatenate(self.numbers), names
        )
