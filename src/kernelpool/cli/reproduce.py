"""`kernelpool reproduce`: the papers' tables, rerun."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import KernelpoolError
from . import options as o
from .screen import CommandError, Exit, Screen, quoted, shown


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Which tables; all if none is named. A wrong name lists them.", metavar="[TABLE]...", show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A sample, in about a minute.")] = False,
    output: Annotated[
        str,
        o.option("--output", "-o", help="Folder for what is written.", metavar="FOLDER", panel=o.OUTPUT_PANEL),
    ] = "reproduction",
    anew: Annotated[bool, typer.Option("--anew", help="Do not go on where an earlier run stopped.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.", min=1)] = 2,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Redraw the papers' figures.", rich_help_panel=o.OUTPUT_PANEL)
    ] = True,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rerun the tables of the papers and set the figures side by side.

    Data sets that cannot be found are skipped, with the reason. An interrupted run goes on where it stopped.
    """
    from ..papers import reproduce as papers

    screen = Screen(as_json, quiet)
    unknown = [name for name in tables or [] if name not in papers.TABLES]
    if unknown:
        raise CommandError(Exit.USAGE, f"There is no table {quoted(unknown[0])}; there are {', '.join(papers.TABLES)}.")
    if Path(output).exists() and not Path(output).is_dir():
        raise CommandError(Exit.OUTPUT, f"{shown(output, 200)} is a file; name a folder.")
    try:
        results = papers.run(tables or None, quick, output, not anew, jobs, progress=not (as_json or quiet), figures=figures)
    except KernelpoolError as error:
        raise CommandError(Exit.DATA, str(error)) from None
    except OSError as error:
        raise CommandError(Exit.OUTPUT, f"{shown(output, 200)}: {(error.strerror or str(error)).lower()}.") from None
    screen.result(str(results))
    counts = {
        verdict: sum(row["verdict"] == verdict for row in results.cells)
        for verdict in sorted({r["verdict"] for r in results.cells})
    }
    screen.answer(
        {
            "page": str(results.page),
            "cells": len(results.cells),
            "verdicts": counts,
            "skipped": results.skipped,
            "run": results.run,
        }
    )
