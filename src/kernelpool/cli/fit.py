"""`kernelpool fit`: from a table to a model file, with an error that can be believed."""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..errors import KernelpoolError
from ..files import save
from ..inspection.pipeline import unwrap
from ..text import plural
from . import options as o
from .models import ModelChoice
from .reading import Labeled, codes_and_classes, read_labeled
from .report import check_report, write_report
from .screen import CommandError, Exit, Screen, plain, quoted, shown
from .sources import source
from .work import Work
from .writing import check_free, placed

MODEL = f"One of {', '.join(o.ModelName)}."
SHARING = "How far classes share kernels, from 0 to 1; several with commas for sharing-average."
SET = "Any other parameter of the estimator, such as --set max_iter=500 (repeatable)."
OUTPUT = "Model file to write; the name of DATA with the ending .safetensors unless given."


def fit(
    data: o.Data,
    target: Annotated[
        str, o.option("--target", "-t", panel=o.DATA_PANEL, metavar="COLUMN", help="Column that holds the classes.")
    ],
    drop: o.Drop = None,
    encode: Annotated[
        bool, o.option("--encode", panel=o.DATA_PANEL, help="Turn columns of words into categories, inside the saved model.")
    ] = False,
    unlabeled: Annotated[
        o.Unlabeled, o.option("--unlabeled", panel=o.DATA_PANEL, help="What becomes of rows without a class.")
    ] = o.Unlabeled.REFUSE,
    text_target: Annotated[
        bool, o.option("--text-target", panel=o.DATA_PANEL, help="Take classes as text, whatever they look like.")
    ] = False,
    model: Annotated[
        o.ModelName, o.option("--model", "-m", panel=o.MODEL_PANEL, metavar="KIND", help=MODEL)
    ] = o.ModelName.AUTO,
    kernels: Annotated[
        int | None, o.option("--kernels", "-k", panel=o.MODEL_PANEL, metavar="N", min=1, help="Number of kernels (neurons).")
    ] = None,
    covariance: Annotated[o.Shape | None, o.option("--covariance", panel=o.MODEL_PANEL, help="Shape of the kernels.")] = None,
    sharing: Annotated[str | None, o.option("--sharing", panel=o.MODEL_PANEL, metavar="DEGREE", help=SHARING)] = None,
    setting: Annotated[list[str] | None, o.option("--set", panel=o.MODEL_PANEL, metavar="NAME=VALUE", help=SET)] = None,
    scale: Annotated[
        o.Scale,
        o.option("--scale", panel=o.MODEL_PANEL, help="Standardize features inside the model; auto: where distances matter."),
    ] = o.Scale.AUTO,
    holdout: Annotated[
        float, o.option("--holdout", panel=o.JUDGE_PANEL, metavar="SHARE", min=0, max=0.9, help="Rows held out; 0 for none.")
    ] = 0.2,
    cv: Annotated[
        int | None,
        o.option("--cv", panel=o.JUDGE_PANEL, metavar="N", min=2, help="Judge by so many folds instead, and fit to all rows."),
    ] = None,
    refit: Annotated[bool, o.option("--refit", panel=o.JUDGE_PANEL, help="After judging, fit again to all rows.")] = False,
    confidence: o.Confidence = 0.95,
    seed: o.Seed = 0,
    output: Annotated[str | None, o.option("--output", "-o", panel=o.OUTPUT_PANEL, metavar="FILE", help=OUTPUT)] = None,
    report: Annotated[
        str | None, o.option("--report", panel=o.OUTPUT_PANEL, metavar="FILE", help="Write a report (HTML) as well.")
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = o.DecimalPoint.POINT,
    encoding: o.Encoding = None,
    no_header: o.NoHeader = False,
) -> None:
    """Fit a model to a table and write it to a file.

    A fifth of the rows is held out first; the error is measured on them, and the saved model is the one that was measured. With
    Ctrl-C the fit stops and what has been reached can be kept.

    Example: kernelpool fit irises.csv --target species -o irises.safetensors --report irises.html
    """
    screen = Screen(as_json, quiet)
    choice = ModelChoice(str(model), kernels, covariance and str(covariance), sharing, tuple(setting or ()), str(scale), seed)
    choice.estimator()  # what is wrong with the settings is said before data are read
    path = output or _default_output(data)
    check_free(path, force)
    if report is not None:
        check_report(report, force)
    style = o.text_style(delimiter, decimal, encoding, no_header)
    rows = read_labeled(
        source(data, style), target, screen, drop=drop, encode=encode, as_text=text_target, unlabeled=str(unlabeled)
    )
    screen.say(_seen(rows))
    work = Work(rows, choice, screen, holdout, cv, refit, seed, 1 - confidence, list(drop or []), str(unlabeled))
    work.run()
    if work.interrupted:
        path = _offered(work, path, screen)
    with placed(path, force) as beside:
        try:
            save(work.model, beside, summary=plain(work.summary()))
        except KernelpoolError as error:
            raise CommandError(Exit.OUTPUT, f"{shown(path, 200)}: {shown(error, 600)}") from None
    record = {"model": path, **work.record(), "report": report}
    _tell(work, path, screen)
    if report is not None:
        write_report(work.model, rows, work.test, report, force, screen, command=work.command, duration=work.seconds)
    screen.answer(record)
    if work.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)


def _default_output(data: str) -> str:
    if data == "-":
        raise CommandError(Exit.USAGE, "Name the model file with -o when the data come from stdin.")
    name = Path(data).resolve().name
    for _ in range(2):
        stem, _, suffix = name.rpartition(".")
        if stem and suffix.lower() in (
            "csv",
            "tsv",
            "txt",
            "gz",
            "bz2",
            "zst",
            "parquet",
            "pq",
            "arrow",
            "arrows",
            "feather",
            "ipc",
        ):
            name = stem
    return f"{name}.safetensors" if not name.startswith("-") else f"./{name}.safetensors"


def _seen(rows: Labeled) -> str:
    codes, classes = codes_and_classes(rows.labels)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    named = ", ".join(f"{shown(c, 24)} {n:,}" for c, n in list(zip(classes.tolist(), counts, strict=True))[:6])
    more = f", and {len(classes) - 6} more" if len(classes) > 6 else ""
    without = int((codes < 0).sum())
    words = sum(f.kind != "number" for f in rows.features)
    encoded = f" ({words} of words)" if words else ""
    tail = f"; {plural(without, 'row')} without a class" if without else ""
    size = f"{plural(len(rows), 'row')}, {plural(len(rows.features), 'feature')}{encoded}"
    return f"{rows.source}: {size}; {quoted(rows.target)}: {named}{more}{tail}"


def _offered(work: Work, path: str, screen: Screen) -> str:
    """Ctrl-C: ask whoever sits there; where nobody does, keep it beside the name that a finished model would have."""
    told = f" It errs on {work.rate} so far." if work.rate is not None else ""
    screen.say(f"\n{work.interrupted}.{told}")
    if sys.stdin.isatty() and sys.stderr.isatty() and not screen.as_json:
        if not typer.confirm(f"Keep it as {shown(path, 200)}?", default=True, err=True):
            raise KeyboardInterrupt("nothing was saved")
        return path
    target = Path(path)
    return str(target.with_name(f"{target.stem}.interrupted{target.suffix}"))


def _tell(work: Work, path: str, screen: Screen) -> None:
    from ..inspection.pool import describe

    screen.result(shown(describe(unwrap(work.model).inner).sentence, 2000))
    if work.rate is None:
        screen.result("Error: not measured (no rows were held out).")
    else:
        screen.result(f"Error by {work.judged_by}: {work.rate}")
    screen.result(f"Model: {shown(path, 400)}")
