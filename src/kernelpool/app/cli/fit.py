"""`kernelpool fit`: from a table to a model file, with an error that can be believed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import is_regressor
from sklearn.utils import get_tags

from ... import registry
from ...errors import TableError
from ...kernels import FAMILIES
from ...text import listed, plain, plural, quoted, shown
from ..files import save
from ..readers.columns import CATEGORY, NUMBER
from ..readers.labels import LabeledTable, read_labeled
from ..readers.large import LargeTable, PlaceSplit, survey_labeled
from ..readers.sources import SUFFIXES, source, stem_of
from . import options as o
from .choice import AUTO, LARGE_MODEL, POOL, ModelChoice
from .output import CommandError, Exit, Screen, check_free, placed
from .report import KEEP, check_report, kept_names, report_on
from .work import LargeWork, RegressionWork, Work

OTHERS = ", ".join(sorted(set(registry.commands()) - {POOL}))
MODEL = (
    f"One of {POOL} (the default), {AUTO}, {OTHERS}. The default for large files is {LARGE_MODEL}."
)
TARGET = "Column that holds the classes; numbers, where --model is a regressor."
TIME_LIMIT = "Begin no further member of the pool after so many seconds."
SHARING = "How far classes share kernels, from 0 to 1; several with commas for sharing-average."
SET = "Any other parameter of the estimator, such as --set max_iter=500 (repeatable); --set help lists them."
OUTPUT = "Model file to write; the name of DATA with the ending .safetensors unless given."
IN_MEMORY = "Read larger files in batches, sweep after sweep, and never all of them into memory."

COLUMNS = "What a column holds, number or words, where it was taken for the other (repeatable)."
ENCODE = "Take every column of text for words, also one of numbers with some cells that are none."

NOT_MODELS = (*SUFFIXES, ".pkl", ".pickle", ".joblib", ".onnx", ".html", ".json", ".jsonl", ".xlsx")
"""Endings of files that a model file is not."""

MOST_NAMES = 1000
"""Names that are tried for a model whose own is taken."""


def fit(
    data: o.Data,
    target: Annotated[str | None, o.column("--target", "-t", help=TARGET)] = None,
    drop: o.Drop = None,
    keep: Annotated[list[str] | None, o.column("--keep", help=KEEP)] = None,
    columns: Annotated[
        list[str] | None, o.data("--columns", metavar="COLUMN=KIND", help=COLUMNS)
    ] = None,
    encode: Annotated[bool, o.data("--encode", help=ENCODE)] = False,
    unlabeled: Annotated[
        o.Unlabeled, o.data("--unlabeled", help="What becomes of rows without a class.")
    ] = o.Unlabeled.REFUSE,
    text_target: Annotated[
        bool, o.data("--text-target", help="Take classes as text, whatever they look like.")
    ] = False,
    in_memory: Annotated[float, o.data("--in-memory", metavar="MB", min=0, help=IN_MEMORY)] = 256,
    model: Annotated[str | None, o.model("--model", "-m", metavar="KIND", help=MODEL)] = None,
    time_limit: Annotated[
        float | None, o.model("--time-limit", metavar="SECONDS", min=0, help=TIME_LIMIT)
    ] = None,
    kernels: Annotated[
        int | None,
        o.model("--kernels", "-k", metavar="N", min=1, help="Number of kernels (neurons)."),
    ] = None,
    covariance: Annotated[
        str | None,
        o.model(
            "--covariance",
            metavar=f"{{{','.join(FAMILIES)}}}",
            help="Shape of the kernels.",
        ),
    ] = None,
    sharing: Annotated[str | None, o.model("--sharing", metavar="DEGREE", help=SHARING)] = None,
    setting: Annotated[list[str] | None, o.model("--set", metavar="NAME=VALUE", help=SET)] = None,
    scale: Annotated[
        o.Scale,
        o.model(
            "--scale", help="Standardize features inside the model; auto: where distances matter."
        ),
    ] = o.Scale.AUTO,
    holdout: Annotated[
        float,
        o.judging("--holdout", metavar="SHARE", min=0, max=0.9, help="Rows held out; 0 for none."),
    ] = 0.2,
    cv: Annotated[
        int | None,
        o.judging(
            "--cv", metavar="N", min=2, help="Judge by so many folds instead, and fit to all rows."
        ),
    ] = None,
    refit: Annotated[
        bool, o.judging("--refit", help="After judging, fit again to all rows.")
    ] = False,
    confidence: o.Confidence = 0.95,
    seed: o.Seed = 0,
    output: Annotated[str | None, o.output("--output", "-o", metavar="FILE", help=OUTPUT)] = None,
    report: Annotated[
        str | None, o.output("--report", metavar="FILE", help="Write a report (HTML) as well.")
    ] = None,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
    style: o.TextOptions,
) -> None:
    """Fit a model to a table and write it to a file.

    Unless --model names another, the model is a pool: several kernel networks, weighted by what they say of rows that they have
    not seen. A fifth of the rows is held out first; the error is measured on them, and the saved model is the one that was
    measured. With Ctrl-C the fit stops and what has been reached can be kept. --model rbf-regressor predicts numbers instead of
    classes.

    Files beyond --in-memory are never read whole: one network of shared kernels is fitted by sweeps over the file.

    Example: kernelpool fit irises.csv --target species -o irises.safetensors --report irises.html
    """
    kinds, path = column_kinds(columns or []), output or _default_output(data)
    large = _is_large(data, in_memory)
    name = model or (LARGE_MODEL if large else POOL)
    choice = ModelChoice(
        name,
        kernels,
        covariance,
        sharing,
        tuple(setting or ()),
        str(scale),
        seed,
        time_limit,
    )
    estimator = choice.estimator()  # what is wrong with the settings is said before data are read
    _check_output(path, report)
    check_free(path, force)
    if report is not None:
        check_report(report, force)
    elif keep:
        raise CommandError(
            Exit.USAGE, "--keep shows a column in the report: pass --report FILE as well."
        )
    if large:
        _check_large(choice, cv, in_memory)
        if keep:
            raise CommandError(
                Exit.USAGE,
                f"--keep needs a table that fits in memory; {shown(data, 200)} is beyond --in-memory.",
            )
    names = kept_names(data, style, list(keep or []))
    rows_in = source(data, style)
    reading: dict[str, Any] = {
        "drop": [*(drop or ()), *(keep or ())],
        "kinds": kinds,
        "holes": bool(get_tags(estimator).input_tags.allow_nan),
        "cautious": not encode,
        "as_text": text_target,
        "unlabeled": str(unlabeled),
    }
    with screen.working(f"Reading {rows_in.label}", rows_in.n_bytes) as bar:
        reading["progress"] = lambda n_bytes, n_rows: bar.at(n_bytes, plural(n_rows, "row"))
        rows: LabeledTable | LargeTable
        if large:
            rows = survey_labeled(rows_in, target, PlaceSplit(holdout, seed), **reading)
        else:
            rows = read_labeled(
                rows_in, target, encode=True, numeric=is_regressor(estimator), **reading
            )
    screen.say(_seen(rows))
    if large and model is None:
        screen.say(
            f"Beyond --in-memory {in_memory:g} MB: fitted by sweeps over the file, as --model {LARGE_MODEL}."
        )
    for line in _taken_for(rows):
        screen.say(line)
    for left, why in rows.left_out.items():
        screen.warn(f"column {quoted(left)} is left out: {why}.")
    dropped = [*(drop or []), *(keep or []), *rows.left_out]
    asked = choice, screen, holdout, cv, refit, 1 - confidence, dropped, str(unlabeled)
    work = (LargeWork if large else RegressionWork if is_regressor(estimator) else Work)(
        rows, *asked
    )
    work.run()
    if work.interrupted:
        path = _offered(work, path, screen)
    path = _saved(work, path, force, screen)
    _tell(work, path, screen)
    if report is not None:
        shown_rows, test = work.reported()
        made = {"command": work.command, "Seconds of training": work.seconds}
        report_on(work.model, shown_rows, test, report, force, screen, names=names, **made)
    screen.answer({"model": path, **work.record(), "report": report})
    if work.interrupted:
        raise typer.Exit(Exit.INTERRUPTED)


def _default_output(data: str) -> str:
    if data == "-":
        raise CommandError(Exit.USAGE, "Name the model file with -o when the data come from stdin.")
    name = stem_of(data)
    return f"{name}.safetensors" if not name.startswith("-") else f"./{name}.safetensors"


def _check_output(path: str, report: str | None) -> None:
    ending = Path(path).suffix.lower()
    if ending in NOT_MODELS:
        raise CommandError(
            Exit.USAGE,
            f"{shown(path, 200)}: model files are in the format safetensors; name it .safetensors, not {ending}.",
        )
    if report is not None and Path(path).resolve() == Path(report).resolve():
        raise CommandError(
            Exit.USAGE,
            f"{shown(path, 200)} cannot be both the model (-o) and the report (--report).",
        )


def _is_large(data: str, in_memory: float) -> bool:
    """Whether data are to be read in batches; those that cannot be read are found out later."""
    try:
        return data != "-" and (source(data).n_bytes or 0) > in_memory * 1e6
    except TableError:
        return False


def _check_large(choice: ModelChoice, cv: int | None, in_memory: float) -> None:
    """What cannot be done without all rows in memory is refused before they are read."""
    record, beyond = (
        registry.commands().get(choice.name),
        f"the file is beyond --in-memory {in_memory:g} MB",
    )
    if record is not None and record.keeps_rows:
        raise CommandError(
            Exit.USAGE,
            f"--model {choice.name} keeps its rows, and {beyond}: raise that, or take --model {LARGE_MODEL}.",
        )
    if is_regressor(choice.estimator()):
        raise CommandError(
            Exit.USAGE, f"--model {choice.name} needs all rows in memory, and {beyond}: raise that."
        )
    if cv is not None:
        raise CommandError(
            Exit.USAGE,
            f"--cv needs all rows in memory, and {beyond}: raise that, or take --holdout.",
        )


def _seen(rows: LabeledTable | LargeTable) -> str:
    words = sum(f.kind != NUMBER for f in rows.features)
    encoded = f" ({words} of words)" if words else ""
    size = f"{plural(len(rows), 'row')}, {plural(len(rows.features), 'feature')}{encoded}"
    return f"{rows.source}: {size}; {quoted(rows.target)}: {_target_seen(rows)}"


def _target_seen(rows: LabeledTable | LargeTable) -> str:
    """How often each class comes, or from where to where numbers go."""
    if isinstance(rows, LabeledTable) and rows.labels.dtype.kind == "f":
        return f"{rows.labels.min():.4g} to {rows.labels.max():.4g}, mean {rows.labels.mean():.4g}"
    classes, counts = rows.class_counts()
    named = ", ".join(
        f"{shown(c, 24)} {n:,}" for c, n in list(zip(classes.tolist(), counts, strict=True))[:6]
    )
    more = f", and {len(classes) - 6} more" if len(classes) > 6 else ""
    without = len(rows) - int(counts.sum())
    return named + more + (f"; {plural(without, 'row')} without a class" if without else "")


def _taken_for(rows: LabeledTable | LargeTable) -> list[str]:
    """What each column was taken for, where there are words or missing cells."""
    words, numbers = (
        [f.name for f in rows.features if (f.kind == CATEGORY) == wanted]
        for wanted in (True, False)
    )
    lines = []
    if words:
        levels = [f"{quoted(name)} ({plural(rows.n_words(name), 'word')})" for name in words[:12]]
        more = f" and {plural(len(words) - 12, 'other column')}" if len(words) > 12 else ""
        lines.append(
            f"Words: {', '.join(levels)}{more}. Numbers: {listed(numbers, 12) or 'none'}. --columns corrects it."
        )
    if rows.gaps.counts:
        n_cells = plural(sum(rows.gaps.counts.values()), "missing cell")
        lines.append(
            f"{n_cells} in {rows.gaps.rows:,} of {plural(len(rows), 'row')}: {rows.gaps.told()}."
        )
    return lines


def column_kinds(given: Sequence[str]) -> dict[str, str]:
    """`--columns name=kind` as a dict."""
    kinds, found = {"number": NUMBER, "numbers": NUMBER, "word": CATEGORY, "words": CATEGORY}, {}
    for text in given:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or kind not in kinds:
            raise CommandError(
                Exit.USAGE,
                f"--columns takes COLUMN=number or COLUMN=words, such as --columns zip=words; got {quoted(text)}.",
            )
        found[name] = kinds[kind]
    return found


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


def _saved(work: Work, path: str, force: bool, screen: Screen) -> str:
    """Where the model was written: beside `path` where a file has come to be there since, lest the work be lost."""
    target, n = Path(path), 1
    summary, name = plain(work.summary()), path
    while True:
        try:
            with placed(name, force) as beside:
                save(work.model, beside, summary=summary)
        except CommandError:
            if force or not os.path.lexists(name) or os.path.isdir(name) or n == MOST_NAMES:
                raise
            n += 1
            name = str(target.with_name(f"{target.stem}-{n}{target.suffix}"))
        else:
            break
    if n > 1:
        work.warnings.append(
            f"{shown(path, 200)} exists already and is kept; pass --force to replace it."
        )
        screen.warn(work.warnings[-1])
    return name


def _tell(work: Work, path: str, screen: Screen) -> None:
    from ...inspection.pool import describe

    screen.result(shown(describe(work.classifier).sentence, 2000))
    if work.rate is None:
        screen.result("Error: not measured (no rows were held out).")
    else:
        screen.result(f"{work.measure} by {work.judged_by}: {work.rate}")
    screen.result(f"Model: {shown(path, 400)}")
