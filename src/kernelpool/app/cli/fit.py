"""`kernelpool fit`: from a table to a model file, with an error measured on held-out rows."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ... import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    SharedKernelClassifier,
    save,
)
from ...inspection import describe
from ...text import did_you_mean, plain, plural, quoted, shown
from ..readers.files import SUFFIXES, Source, stem_of
from ..readers.table import CATEGORY, NUMBER, Rows, read_rows
from . import options as o
from .evaluate import baseline, check_report, write_page
from .job import NOT_SETTABLE, FitJob, LargeJob
from .output import CommandError, Exit, Screen, check_free, placed

IN_MEMORY = 256_000_000
"""Bytes of files that are read whole."""

POOL, LARGE = "pool", "shared-kernel"
"""The models that are fitted unless another is named, to rows in memory and to larger files."""

MODELS: dict[str, Callable[..., Any]] = {
    POOL: PooledClassifier,
    "auto": SharedKernelClassifier.auto,
    LARGE: SharedKernelClassifier,
    "rbf": RBFNetworkClassifier,
    "neurons": CompetitiveNeuronsClassifier,
    "parzen": ParzenClassifier,
    "reduced-parzen": ReducedParzenClassifier,
}
MODEL = f"One of {', '.join(MODELS)}."
TARGET = "Column that holds the classes."
SET = "A parameter of the estimator, such as --set budget=fast (repeatable); --set help lists them."
OUTPUT = "Model file to write; the name of DATA with the ending .safetensors unless given."
COLUMNS = "What a column holds, number or category, where it was taken for the other (repeatable)."

NOT_MODELS = (*SUFFIXES, ".pkl", ".pickle", ".joblib", ".onnx", ".html", ".json", ".jsonl", ".xlsx")
"""Endings of files that a model file is not."""


def fit(
    data: o.Data,
    target: Annotated[str | None, o.column("--target", "-t", help=TARGET)] = None,
    drop: Annotated[
        list[str] | None, o.column("--drop", help="Leave this column out (repeatable).")
    ] = None,
    keep: o.Keep = None,
    columns: Annotated[
        list[str] | None, o.data("--columns", metavar="COLUMN=KIND", help=COLUMNS)
    ] = None,
    unlabeled: Annotated[
        o.Unlabeled, o.data("--unlabeled", help="What becomes of rows without a class.")
    ] = o.Unlabeled.REFUSE,
    text: o.Text = None,
    model: Annotated[str | None, o.model("--model", "-m", metavar="NAME", help=MODEL)] = None,
    setting: Annotated[list[str] | None, o.model("--set", metavar="NAME=VALUE", help=SET)] = None,
    seed: Annotated[
        int, o.model("--seed", metavar="N", help="Seed of the fit.", min=0, max=2**32 - 1)
    ] = 0,
    holdout: Annotated[
        float,
        o.evaluation(
            "--holdout", metavar="SHARE", min=0, max=0.5, help="Rows held out; 0 for none."
        ),
    ] = 0.2,
    cv: Annotated[
        int | None,
        o.evaluation("--cv", metavar="N", min=2, help="Evaluate by N folds, and fit to all rows."),
    ] = None,
    refit: Annotated[
        bool, o.evaluation("--refit", help="After the evaluation, fit again to all rows.")
    ] = False,
    output: Annotated[str | None, o.output("--output", "-o", metavar="FILE", help=OUTPUT)] = None,
    report: Annotated[
        str | None, o.output("--report", metavar="FILE", help="Write a report (HTML) as well.")
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model to a table and write it to a file.

    Unless --model names another, the model is a pool: several kernel networks, weighted by their
    predictions of rows that they were not fitted to. A fifth of the rows is held out first; the
    error is measured on them, and the saved model is the one that was evaluated. With Ctrl-C the
    fit stops, and what has been reached can be kept.

    Example: kernelpool fit irises.csv --target species -o irises.safetensors --report irises.html
    """
    screen, kinds, style = Screen(as_json, quiet), column_kinds(columns or []), o.text_style(text)
    estimator = make_estimator(model or POOL, setting or [], seed)  # before data are read
    path = _model_path(data, output, report)
    check_free(path, force)
    if report is not None:
        check_report(report, force)
    source = Source(data, style)
    large = source.n_bytes > IN_MEMORY and model in (None, LARGE)
    if large:
        if cv is not None or keep:
            raise CommandError(Exit.USAGE, "--cv and --keep need a file that fits in memory.")
        estimator = make_estimator(LARGE, setting or [], seed)
    with screen.working(f"Reading {source.label}"):
        rows = read_rows(
            source,
            target,
            drop=drop or (),
            keep=keep or (),
            kinds=kinds,
            unlabeled=str(unlabeled),
            head=large,
        )
    if large:
        screen.say(f"Larger than memory: read in batches, as --model {LARGE}. Its first rows:")
    _describe(rows, screen)
    settings = rows, estimator, screen, holdout, cv, refit and cv is None, seed
    job = FitJob(*settings)
    if large:
        job = LargeJob(*settings, source=source, unlabeled=str(unlabeled))
    job.run()
    if job.interrupted:
        path = _offered(job, path, screen)
    path = _saved(job, path, force, screen)
    screen.result(shown(describe(job.model).sentence, 2000))
    error = "not measured (no rows were held out)."
    if job.metrics is not None:
        error = f"{job.metrics.rate(0.05)} by {job.evaluated_by}; {baseline(job.metrics)}"
    screen.result(f"Error: {error}")
    screen.result(f"Model: {shown(path, 400)}")
    if report is not None:
        fitted = np.setdiff1d(np.arange(len(job.rows.y)), [] if job.test is None else job.test)
        parts = {"fitted": fitted, "new": job.test}
        write_page(job.model, job.rows, report, force, screen, command=job.command, **parts)
    screen.answer({"model": path, **job.record(), "report": report})
    if job.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)


def column_kinds(given: Sequence[str]) -> dict[str, str]:
    """`--columns name=kind` as a dict."""
    found = {}
    for text in given:
        name, _, kind = text.rpartition("=")
        if not name or kind not in (NUMBER, CATEGORY):
            raise CommandError(
                Exit.USAGE,
                f"--columns takes COLUMN=number or COLUMN=category, such as --columns "
                f"zip=category; "
                f"got {quoted(text)}.",
            )
        found[name] = kind
    return found


def _model_path(data: str, output: str | None, report: str | None) -> str:
    """The model file to write, checked."""
    if output is None and data == "-":
        raise CommandError(Exit.USAGE, "Name the model file with -o when the data come from stdin.")
    path = output or f"{'./' * stem_of(data).startswith('-')}{stem_of(data)}.safetensors"
    ending = Path(path).suffix.lower()
    wrong = None
    if ending in NOT_MODELS:
        wrong = f"model files are in the format safetensors; name it .safetensors, not {ending}."
    elif report is not None and Path(path).resolve() == Path(report).resolve():
        wrong = "it cannot be both the model (-o) and the report."
    if wrong is not None:
        raise CommandError(Exit.USAGE, f"{shown(path, 200)}: {wrong}")
    return path


def _describe(rows: Rows, screen: Screen) -> None:
    """What was read: classes, categorical columns, missing cells, columns left out."""
    counts = Counter(rows.y.tolist())
    without = counts.pop(None, 0)
    classes = [f"{shown(label, 24)} {n:,}" for label, n in sorted(counts.items(), key=str)]
    classes += [f"{plural(without, 'row')} without a class"] * bool(without)
    size = f"{plural(len(rows.y), 'row')}, {plural(len(rows.kinds), 'feature')}"
    screen.say(f"{rows.source}: {size}; {quoted(rows.target)}: {_some(classes)}")
    columns = dict(zip(rows.kinds, rows.table.columns, strict=True))
    levels = [
        f"{quoted(name)} ({len(columns[name].unique().drop_null())})"
        for name, kind in rows.kinds.items()
        if kind == CATEGORY
    ]
    if levels:
        screen.say(f"Categorical: {_some(levels)}. --columns corrects it.")
    missing = Counter({name: column.null_count for name, column in columns.items()})
    if missing.total():
        cells = [f"{quoted(name)} {n:,}" for name, n in missing.most_common() if n]
        screen.say(f"{plural(missing.total(), 'missing cell')}: {_some(cells)}.")
    for name, why in rows.left_out.items():
        screen.warn(f"column {quoted(name)} is left out: {why}.")


def _some(texts: list[str]) -> str:
    return ", ".join(texts[:8]) + (f", and {len(texts) - 8} more" if len(texts) > 8 else "")


def _offered(job: FitJob, path: str, screen: Screen) -> str:
    """Ctrl-C: asks on a terminal; elsewhere the model goes beside the name of a finished one."""
    so_far = f" Its error is {job.metrics.rate(0.05)} so far." if job.metrics is not None else ""
    screen.say(f"\n{job.interrupted}.{so_far}")
    if sys.stdin.isatty() and sys.stderr.isatty() and not screen.as_json:
        if not typer.confirm(f"Keep it as {shown(path, 200)}?", default=True, err=True):
            raise KeyboardInterrupt("nothing was saved")
        return path
    target = Path(path)
    return str(target.with_name(f"{target.stem}.interrupted{target.suffix}"))


def _saved(job: FitJob, path: str, force: bool, screen: Screen) -> str:
    """Where the model was written: under another name where a file has appeared in the meantime."""
    target, name, n = Path(path), path, 1
    while os.path.lexists(name) and not force:
        n += 1
        name = str(target.with_name(f"{target.stem}-{n}{target.suffix}"))
    if n > 1:
        job.warnings.append(f"{shown(path, 200)} exists and is kept; pass --force to replace it.")
        screen.warn(job.warnings[-1])
    with placed(name, force) as beside:
        save(job.model, beside, summary=plain(job.summary()))
    return name


# -- the estimator ---------------------------------------------------------------------------------


def make_estimator(name: str, settings: Sequence[str], seed: int) -> Any:
    """The estimator that `--model` and `--set` ask for."""
    if name not in MODELS:
        raise CommandError(
            Exit.USAGE,
            f"--model {quoted(name)} is not known{did_you_mean(name, list(MODELS))} There are "
            f"{', '.join(MODELS)}.",
        )
    known = parameters_of(MODELS[name])
    defaults = ", ".join(f"{key}={json.dumps(plain(value))}" for key, value in known.items())
    if "help" in settings:
        raise CommandError(Exit.USAGE, f"--model {name}: settings and their defaults: {defaults}.")
    given = dict(map(parse_setting, settings))
    unknown = [key for key in given if key not in known]
    if unknown:
        raise CommandError(
            Exit.USAGE,
            f"--model {name} has no setting {quoted(unknown[0])}"
            f"{did_you_mean(unknown[0], list(known))} Settings and their defaults: {defaults}.",
        )
    return MODELS[name](random_state=seed, **given)


def parameters_of(make: Callable[..., Any]) -> dict[str, Any]:
    """The settings of an estimator with their defaults."""
    found = dict(signature(make).parameters)
    if any(p.kind == Parameter.VAR_KEYWORD for p in found.values()):  # auto(**parameters)
        found |= dict(signature(SharedKernelClassifier).parameters)
    several = Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL
    names = sorted(n for n, p in found.items() if p.kind not in several and n not in NOT_SETTABLE)
    return {name: found[name].default for name in names}


def parse_setting(text: str) -> tuple[str, Any]:
    """`name=value` of `--set`; the value is JSON, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(
            Exit.USAGE,
            f"--set takes name=value, such as --set max_iter=500, or help; got {quoted(text)}.",
        )
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
