"""`kernelpool fit`: from a table to a model file, with an error measured on held-out rows.

Rows are fitted in memory.
"""

import json
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ... import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    SharedKernelClassifier,
    save,
)
from ...data.folds import cross_fit, hold_out, stratified_folds, table_keys
from ...inspection import DriftReference, Metrics, describe
from ...tables.files import SUFFIXES, stem_of
from ...tables.kinds import CATEGORY, COLUMN_KINDS, DATE
from ...tables.read import check_columns, feature_names, scan
from ...text import did_you_mean, listed, plain, plural, quoted, shown
from ..readers.table import (
    Rows,
    fingerprint,
    read_rows,
)
from . import console as o
from .console import CommandError, Exit, Screen, check_free, placed

POOL = "pool"
"""The model that is fitted unless another is named."""

MODELS: dict[str, Callable[..., Any]] = {
    POOL: PooledClassifier,
    "auto": SharedKernelClassifier.auto,
    "shared-kernel": SharedKernelClassifier,
    "rbf": RBFNetworkClassifier,
    "neurons": CompetitiveNeuronsClassifier,
    "parzen": ParzenClassifier,
    "reduced-parzen": ReducedParzenClassifier,
}
MODEL = f"One of {', '.join(MODELS)}."
TARGET = "Column that holds the classes."
SET = "A parameter of the model; --set help lists them (repeatable)."
OUTPUT = "Model file; the name of DATA with .safetensors unless given."
TIME_LIMIT = "Seconds to fit a pool, 0 for no limit. [default: 60]"
COLUMNS = "What a column holds: number, category or date (repeatable)."

MOST_CALIBRATION = 2000
"""Held-out rows whose scores are recorded for sets of classes."""

MOST_REFERENCE_FEATURES = 1000
"""Features that are recorded for tests of drift; none of more."""

NOT_SETTABLE = ("callback", "verbose", "random_state", "time_limit")
"""Parameters that are objects, or set by options of their own."""

MOST_NAMED = 8
"""Columns, or classes, that a line names."""

N_LOWEST = 1000
"""Held-out densities that are recorded, the lowest: thresholds of novelty are among them."""

NOT_RECORDED = ("calibration", "confusion", "unlabeled", "decisions", "accepted")
"""Metrics that the model file does not record."""

NOT_MODELS = (*SUFFIXES, ".pkl", ".pickle", ".joblib", ".onnx", ".html", ".json", ".jsonl")
"""Endings of files that a model file is not."""


def fit(
    data: o.Data,
    target: Annotated[str | None, o.column("--target", "-t", help=TARGET)] = None,
    drop: Annotated[
        list[str] | None, o.column("--drop", help="Leave this column out (repeatable).")
    ] = None,
    keep: o.Keep = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", metavar="COLUMN=KIND", help=COLUMNS)
    ] = None,
    unlabeled: Annotated[
        o.Unlabeled, typer.Option("--unlabeled", help="What becomes of rows without a class.")
    ] = o.Unlabeled.REFUSE,
    text: o.Text = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help=MODEL)] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=SET)
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="SECONDS", help=TIME_LIMIT, min=0)
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed of the fit.", min=0, max=2**32 - 1)
    ] = 0,
    holdout: Annotated[
        float,
        typer.Option(
            "--holdout", metavar="SHARE", min=0, max=0.5, help="Rows held out; 0 for none."
        ),
    ] = 0.2,
    cv: Annotated[
        int | None,
        typer.Option("--cv", metavar="N", min=2, help="Evaluate by N folds, and fit to all rows."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help=OUTPUT)
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write a report (HTML) as well.")
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model to a table and write it to a file.

    The model is a pool of kernel networks unless --model names another. A fifth of the rows is held
    out, and the error is measured on them. Ctrl-C ends the fit, and keeps what has been reached.

    Example: kernelpool fit irises.csv --target species -o irises.safetensors --report irises.html
    """
    screen = Screen(as_json, quiet)
    kinds = column_kinds(columns or [])
    style = o.text_style(text)
    estimator = make_estimator(model or POOL, setting or [], seed)  # before data are read
    if isinstance(estimator, PooledClassifier):
        estimator.set_params(time_limit=(60.0 if time_limit is None else time_limit) or None)
    elif time_limit is not None:
        raise CommandError(Exit.USAGE, "--time-limit is for --model pool alone.")
    if unlabeled == o.Unlabeled.USE and "unlabeled" not in settings_of(estimator):
        raise CommandError(Exit.USAGE, "--unlabeled use needs --model shared-kernel or auto.")
    path = _model_path(data, output, report)
    source = scan(data, style)
    feature_names(source, target, None, [*(drop or ()), *(keep or ())])
    check_columns(list(kinds), source, "whose kind is given")
    check_free(path, force)
    if report is not None:
        o.check_report(report, force)
    with screen.working(f"Reading {source.label}"):
        rows = read_rows(
            source,
            target,
            drop=drop or (),
            keep=keep or (),
            kinds=kinds,
            unlabeled=str(unlabeled),
        )
    _describe(rows, screen)
    start = time.perf_counter()
    classes, codes = _classes_and_codes(rows.y)
    if (codes < 0).any() and "unlabeled" in settings_of(estimator):
        estimator.set_params(unlabeled=np.nan)
    key = table_keys(rows.table, seed)  # equal rows are held out together, the same of any format
    metrics = None
    if cv is not None:
        metrics = _cross_validated(estimator, rows, classes, codes, cv, key, screen)
    out = hold_out(codes, holdout if cv is None else 0, key=key)
    test = np.flatnonzero(out)
    train = np.flatnonzero(~out)
    interrupted = _fit_or_keep(estimator, *rows.at(train), screen)
    with screen.working("Evaluating"):
        probability = None
        if len(test):
            probability = _probability(estimator, rows.table.take(test), classes)
            metrics = Metrics.of(codes[test], probability)
        recorded = _recorded(estimator, rows, codes, train, test, probability)
    about = {
        "estimator": type(estimator).__name__,
        "settings": settings_of(estimator),
        "members": _members(estimator),
        "n_rows": len(codes),
        "n_features": len(rows.kinds),
        "classes": classes,
        "evaluated_by": f"{cv} folds" if cv is not None else "held-out rows" if metrics else None,
        "held_out": None if metrics is None else _figures(metrics),
        "seconds": round(time.perf_counter() - start, 3),
        "interrupted": interrupted,
        "warnings": screen.warned,
        "command": shlex.join(["kernelpool", *sys.argv[1:]]),
        "source": rows.source,
        "target": rows.target,
        "seed": seed,
        "fingerprint": fingerprint(rows.table),
    }
    if interrupted:
        path = _offered(interrupted, metrics, path, screen)
    path = _saved(estimator, about | recorded, path, force, screen)
    _show(estimator, about, metrics, path, screen)
    if report is not None:
        tables = {"fitted": train, "new": test if len(test) else None}
        o.write_page(estimator, rows, report, force, screen, command=about["command"], **tables)
    screen.answer({"model": path, **about, "report": report})
    if interrupted:
        raise typer.Exit(Exit.INTERRUPTED)


def column_kinds(pairs: Sequence[str]) -> dict[str, str]:
    """`--columns name=kind` as a dict."""
    kinds = {}
    for text in pairs:
        name, _, kind = text.rpartition("=")
        if not name or kind not in COLUMN_KINDS:
            raise CommandError(
                Exit.USAGE,
                f"--columns takes COLUMN=number, COLUMN=category or COLUMN=date, such as --columns "
                f"zip=category; got {quoted(text)}.",
            )
        kinds[name] = kind
    return kinds


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
    numbers = [
        quoted(name) + " (a date, in days)" * (kind == DATE)
        for name, kind in rows.kinds.items()
        if kind != CATEGORY
    ]
    for title, names in (("Numbers", numbers), ("Categories", levels)):
        if names:
            screen.say(f"{title}: {_some(names)}")
    missing = Counter({name: column.null_count for name, column in columns.items()})
    if missing.total():
        cells = [f"{quoted(name)} {n:,}" for name, n in missing.most_common() if n]
        screen.say(f"{plural(missing.total(), 'missing cell')}: {_some(cells)}.")
    for name, why in list(rows.left_out.items())[:MOST_NAMED]:
        screen.warn(f"column {quoted(name)} is left out: {why}.")
    if len(rows.left_out) > MOST_NAMED:
        rest = listed(list(rows.left_out)[MOST_NAMED:], MOST_NAMED)
        screen.warn(f"for such reasons these are left out, too: {rest}.")


def _some(texts: list[str]) -> str:
    more = len(texts) - MOST_NAMED
    return ", ".join(texts[:MOST_NAMED]) + (f", and {more} more" if more > 0 else "")


# -- the fit ---------------------------------------------------------------------------------------


def _figures(metrics: Metrics) -> dict[str, Any]:
    """Of held-out rows, for the model file and for programs."""
    return {k: v for k, v in metrics.to_dict(0.05).items() if k not in NOT_RECORDED}


def _classes_and_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, and the position of each row's, -1 where it has none."""
    known = np.array([label is not None for label in y], bool)
    codes = np.full(len(y), -1)
    classes, codes[known] = np.unique(y[known].tolist(), return_inverse=True)
    return classes, codes


def _cross_validated(
    estimator: Any,
    rows: Rows,
    classes: np.ndarray,
    codes: np.ndarray,
    n_folds: int,
    key: np.ndarray,
    screen: Screen,
) -> Metrics:
    """The metrics of rows that are predicted by the model of the other folds."""
    most = np.bincount(codes[codes >= 0]).max()
    if most < n_folds:
        raise CommandError(
            Exit.FIT, f"--cv {n_folds}: no class has so many rows; the largest has {most}."
        )
    fold = stratified_folds(codes, n_folds, key=key)

    def fit(train: tuple[np.ndarray], held_out: tuple[np.ndarray]) -> tuple[None, np.ndarray]:
        model = clone(estimator)
        title = f"Fold {fold[held_out[0][0]] + 1} of {n_folds}:"
        try:
            fit_with_progress(model, title, *rows.at(train[0]), screen)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the folds were not finished; nothing was saved") from None
        return None, _probability(model, rows.table.take(held_out[0]), classes)

    _, probability = cross_fit(fit, (np.arange(len(fold)),), fold)
    return Metrics.of(codes[fold >= 0], probability[fold >= 0])


def _fit_or_keep(model: Any, x: Any, y: Any, screen: Screen) -> str | None:
    """Fit; None, or how the fit was interrupted, if it left a model that predicts."""
    try:
        fit_with_progress(model, "Fitting", x, y, screen)
    except KeyboardInterrupt as error:
        try:
            model.predict_proba(x.slice(0, 1))
        except (AttributeError, NotFittedError):
            raise KeyboardInterrupt("nothing has been fitted yet") from None
        return str(error) or "interrupted"
    return None


def fit_with_progress(model: Any, title: str, x: Any, y: Any, screen: Screen) -> None:
    """Fit; what goes wrong is reported as the command line does."""
    name = type(model).__name__
    parameters = model.get_params(deep=False)
    with screen.warnings(), screen.working(title, parameters.get("time_limit")):
        if "callback" in parameters:
            watch = _watch_pool if isinstance(model, PooledClassifier) else _watch_sweeps
            model.set_params(callback=watch(screen))
        try:
            model.fit(x, y)
        except ValueError as error:
            raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
        except MemoryError:
            what = plural(len(y), "row")
            raise CommandError(Exit.FIT, f"{name}: not enough memory for {what}.") from None
        finally:
            if "callback" in parameters:  # a function cannot be saved
                model.set_params(callback=None)


def _probability(model: Any, x: Any, classes: np.ndarray) -> np.ndarray:
    """Of all classes, of which a fold may lack some."""
    probability = np.zeros((len(x), len(classes)))
    probability[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(x)
    return probability


def _recorded(
    model: Any,
    rows: Rows,
    codes: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    probability: np.ndarray | None,
) -> dict[str, Any]:
    """What the model file holds of the rows: class frequencies, the reference for drift, and of
    held-out rows densities and scores for their own classes.
    """
    counts = np.bincount(codes[codes >= 0])
    recorded: dict[str, Any] = {"class_shares": counts / counts.sum()}
    held = rows.table.take(test) if len(test) else None
    if len(rows.kinds) <= MOST_REFERENCE_FEATURES:
        reference = DriftReference.of(rows.table.take(train), model, held)
        recorded["reference"] = reference.to_dict()
    if probability is None:
        return recorded
    if hasattr(model, "score_samples"):
        score = _finite(model.score_samples(held))
        recorded["held_out_densities"] = {
            "n_rows": len(score),
            "lowest": np.sort(score)[:N_LOWEST],
        }
    if len(model.classes_) == probability.shape[1]:
        sample = np.unique(np.linspace(0, len(test) - 1, MOST_CALIBRATION).astype(int))
        own = np.arange(len(sample)), codes[test[sample]]
        scores = [probability[sample][own]]
        if hasattr(model, "log_density"):
            scores.append(_finite(model.log_density(rows.table.take(test[sample])))[own])
        recorded["calibration"] = {"codes": own[1], "scores": scores}
    return recorded


def _finite(score: Any) -> np.ndarray:
    least = -np.finfo(np.float64).max
    return np.nan_to_num(np.asarray(score), nan=least, neginf=least)


def _members(model: Any) -> list[dict[str, Any]] | None:
    """Of a pool, with their weights."""
    if not isinstance(model, PooledClassifier):
        return None
    pairs = zip(model.members_, model.weights_.tolist(), strict=True)
    return [{"name": name, "weight": weight} for name, weight in pairs]


def _watch_pool(screen: Screen) -> Callable[[Any], None]:
    """The network that is tried, and how many are left."""

    def watch(info: Any) -> None:
        screen.note = f"{plural(len(info.left), 'network')} left"
        screen.note += f", now {info.left[0]}" if info.left else ""

    return watch


def _watch_sweeps(screen: Screen) -> Callable[[Any], bool]:
    """The sweeps of one network; never stops the fit."""

    def watch(info: Any) -> bool:
        screen.note = f"sweep {info.sweep}, objective {info.objective:.4f}"
        return False

    return watch


# -- the result ------------------------------------------------------------------------------------


def _offered(interrupted: str, metrics: Metrics | None, path: str, screen: Screen) -> str:
    """Ctrl-C: asks on a terminal; elsewhere the model goes next to the name of a finished one."""
    so_far = "" if metrics is None else f" Its error is {metrics.rate(0.05)} so far."
    screen.say(f"\n{interrupted}.{so_far}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or screen.as_json:
        return str(Path(path).with_stem(f"{Path(path).stem}.interrupted"))
    if not typer.confirm(f"Keep it as {shown(path, 200)}?", default=True, err=True):
        raise KeyboardInterrupt("nothing was saved")
    return path


def _saved(model: Any, about: dict[str, Any], path: str, force: bool, screen: Screen) -> str:
    """Where the model was written: under another name where a file has appeared in the meantime."""
    name = path
    n = 1
    while os.path.lexists(name) and not force:
        n += 1
        name = str(Path(path).with_stem(f"{Path(path).stem}-{n}"))
    if n > 1:
        screen.warn(f"{shown(path, 200)} exists and is kept; pass --force to replace it.")
    with placed(name, force) as temporary:
        save(model, temporary, summary=plain(about))
    return name


def _show(
    model: Any, about: dict[str, Any], metrics: Metrics | None, path: str, screen: Screen
) -> None:
    """The result, for people."""
    lines = {"Error": "not measured: no rows were held out"}
    if metrics is not None:
        lines = o.figures(metrics, about["classes"].tolist(), 0.05)
        lines["Measured on"] = about["evaluated_by"]
    lines["Model"] = shown(path, 400)
    lines["Next"] = f"kernelpool predict {shown(shlex.quote(path), 400)} NEW_ROWS --reject"
    if "Rare classes" in lines and "class_prior" in about["settings"]:
        lines["Rare classes"] += ". --set class_prior=balanced finds more of them"
    screen.lines(lines)
    screen.result(shown(describe(model).sentence, 2000))


# -- the estimator ---------------------------------------------------------------------------------


def make_estimator(name: str, settings: Sequence[str], seed: int) -> Any:
    """The estimator of `--model` and `--set`; values are JSON, or words."""
    if name not in MODELS:
        raise CommandError(
            Exit.USAGE,
            f"--model {quoted(name)} is not known{did_you_mean(name, list(MODELS))} There are the "
            f"classifiers {', '.join(MODELS)}; numbers are predicted from Python, by "
            f"kernelpool.EMLogRegressor.",
        )
    estimator = MODELS[name](random_state=seed)
    known = settings_of(estimator)
    defaults = ", ".join(f"{key}={json.dumps(plain(value))}" for key, value in known.items())
    for text in settings:
        key, _, value = text.partition("=")
        if key not in known or key == text:
            raise CommandError(
                Exit.USAGE,
                f"--set {quoted(text)}: expected NAME=VALUE{did_you_mean(key, list(known))} "
                f"Settings of --model {name}, and their defaults: {defaults}.",
            )
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
        estimator.set_params(**{key: value})
    return estimator


def settings_of(estimator: Any) -> dict[str, Any]:
    """Parameters that `--set` sets, with their values."""
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name not in NOT_SETTABLE}
