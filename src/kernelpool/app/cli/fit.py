"""`kernelpool fit`: from a table to a model file, with an error measured on held-out rows.

Of a table that does not fit in memory, models for any rows learn from all of it, batch by batch, the
others from an even draw; either way what is held out is of the draw.
"""

import json
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ... import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    SharedKernelClassifier,
)
from ...data.folds import cross_fit, hold_out, row_keys, stratified_folds
from ...errors import TableError
from ...inspection import DriftReference, Metrics, Predictions, describe, predictions
from ...tables.columns import sorted_categories, texts_of
from ...tables.files import SUFFIXES, stem_of
from ...tables.kinds import CATEGORY, COLUMN_KINDS, DATE, FEW, NUMBER
from ...tables.read import Rows, Scan, read_table, scan
from ...text import did_you_mean, listed, plain, plural, quoted, shown
from ..files import ModelFile, save
from ..report.results import Results, evaluate, spaced
from . import console as o
from .console import CommandError, Exit, Screen, check_free, placed
from .model import codes_of, fingerprint

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

MOST_CALIBRATION = 20_000
"""Held-out rows whose predictions are recorded, for thresholds and sets of classes."""

MOST_REFERENCE_FEATURES = 1000
"""Features that are recorded for tests of drift; none of more."""

NOT_SETTABLE = ("callback", "verbose", "random_state", "time_limit")
"""Parameters that are objects, or set by options of their own."""

TITLES = {NUMBER: "Numbers", CATEGORY: "Categories", DATE: "Dates"}
"""Kinds of columns, as lines begin that list them."""

MOST_NAMED = 8
"""Columns, or classes, that a line names."""

ROWS_A_CLASS = 3
"""With fewer rows a class than this, on average, a target holds no classes."""

Training = tuple[Any, Any, Any]
"""X, y and sample_weight of a fit."""

NOT_MODELS = (*SUFFIXES, ".pkl", ".pickle", ".joblib", ".onnx", ".html", ".json", ".jsonl")
"""Endings of files that a model file is not."""


def fit(
    data: o.Data,
    target: Annotated[
        str | None, o.option("--target -t", "Column that holds the classes.", "COLUMN")
    ] = None,
    drop: Annotated[
        list[str] | None, o.option("--drop", "Leave this column out (repeatable).", "COLUMN")
    ] = None,
    keep: o.Keep = None,
    columns: Annotated[
        list[str] | None,
        o.option(
            "--columns",
            "What a column holds: number, category or date (repeatable).",
            "COLUMN=KIND",
        ),
    ] = None,
    unlabeled: Annotated[
        o.Unlabeled, o.option("--unlabeled", "What becomes of rows without a class.")
    ] = o.Unlabeled.REFUSE,
    text: o.Text = None,
    model: Annotated[
        str | None, o.option("--model -m", f"One of {', '.join(MODELS)}.", "NAME")
    ] = None,
    setting: Annotated[
        list[str] | None,
        o.option(
            "--set", "A parameter of the model; --set help lists them (repeatable).", "NAME=VALUE"
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        o.option(
            "--time-limit", "Seconds to fit a pool, 0 for no limit. [default: 60]", "SECONDS", min=0
        ),
    ] = None,
    seed: Annotated[int, o.option("--seed", "Seed of the fit.", "N", min=0, max=2**32 - 1)] = 0,
    holdout: Annotated[
        float,
        o.option("--holdout", "Rows held out; 0 for none.", "SHARE", min=0, max=0.5),
    ] = 0.2,
    cv: Annotated[
        int | None,
        o.option("--cv", "Evaluate by N folds, and fit to all rows.", "N", min=2),
    ] = None,
    output: Annotated[
        str | None,
        o.option(
            "--output -o", "Model file; the name of DATA with .safetensors unless given.", "FILE"
        ),
    ] = None,
    report: Annotated[
        str | None, o.option("--report", "Write a report (HTML) as well.", "FILE")
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
    options = o.read_options(text)
    estimator = make_estimator(model or POOL, setting or [], seed)  # before data are read
    if isinstance(estimator, PooledClassifier):
        estimator.set_params(time_limit=(60.0 if time_limit is None else time_limit) or None)
    elif time_limit is not None:
        raise CommandError(Exit.USAGE, "--time-limit is for --model pool alone.")
    if unlabeled == o.Unlabeled.USE and "unlabeled" not in settings_of(estimator):
        raise CommandError(Exit.USAGE, "--unlabeled use needs --model shared-kernel or auto.")
    path = _model_path(data, output, report)
    check_free(path, force)
    if report is not None:
        o.check_report(report, force)
    source = scan(data, options)
    with screen.working(f"Reading {source.label}"):
        rows = read_table(source, target, drop=drop or (), keep=keep or (), kinds=kinds)
    rows, classes, codes = _labeled(rows, kinds.get(rows.target) == CATEGORY, unlabeled)
    _describe(rows, codes, classes, screen)
    start = time.perf_counter()
    if (codes < 0).any():
        estimator.set_params(unlabeled=np.nan)
    key = row_keys(rows.X, seed=seed)  # equal rows are held out together, the same of any format
    metrics = None
    if cv is not None:
        fold = _folds(codes, cv, key)
        metrics = _cross_validated(estimator, rows, classes, codes, fold, screen)
    test = _held_out(rows, codes, holdout if cv is None else 0, key)
    training = _training(source, rows, classes, test, estimator, screen)
    interrupted = _fit_or_keep(estimator, training, screen)
    with screen.working("Evaluating"):
        results = _results(estimator, rows, test)
        metrics = results.metrics if test.any() else metrics
        file = _model_file(results, rows, codes, test)
    about: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "settings": settings_of(estimator),
        "members": _members(estimator),
        "n_rows": rows.n_rows,
        "n_features": len(rows.kinds),
        "classes": classes,
        "evaluated_by": f"{cv} folds" if cv else "held-out rows" if test.any() else None,
        "held_out": None if metrics is None else metrics.to_dict(0.05),
        "seconds": round(time.perf_counter() - start, 3),
        "interrupted": interrupted,
        "warnings": screen.warned,
        "command": shlex.join(["kernelpool", *sys.argv[1:]]),
        "source": rows.label,
        "target": rows.target,
        "text": list(text or ()),
        "seed": seed,
        "first_rows": fingerprint(next(source.batches([*rows.kinds])).table),
    }
    if interrupted:
        path = _offered(interrupted, metrics, path, screen)
    path = _saved(file, about, path, force, screen)
    _show(estimator, about, metrics, path, screen)
    if report is not None:
        o.write_page(results, rows.label, rows.target, report, force, screen, about["command"])
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


def _describe(rows: Rows, codes: np.ndarray, classes: np.ndarray, screen: Screen) -> None:
    """What was read: classes, categorical columns, missing cells, columns left out."""
    without, *counts = np.bincount(codes + 1).tolist()
    names = [f"{shown(label, 24)} {n:,}" for label, n in zip(classes, counts, strict=True)]
    names += [f"{plural(without, 'row')} without a class"] * bool(without)
    is_drawn = rows.weight is not None
    n_rows = plural(rows.n_rows if is_drawn else len(codes), "row")
    of_draw = f"of {len(codes):,} drawn evenly " * is_drawn
    features = plural(len(rows.kinds), "feature")
    screen.say(
        f"{rows.label}: {n_rows}, {features}; {of_draw}{quoted(rows.target)}: {_some(names)}"
    )
    listed_as: dict[str, list[str]] = {kind: [] for kind in TITLES}
    missing = Counter[str]()
    for i, (name, kind) in enumerate(rows.kinds.items()):
        text = quoted(name)
        if kind == CATEGORY:
            text += f" ({len(sorted_categories(set(texts_of(rows.X, i)[1])))})"
        listed_as[kind].append(text)
        missing[name] = int(np.sum(rows.X[name].is_null(nan_is_null=True)))
    for kind, texts in listed_as.items():
        if texts:
            screen.say(f"{TITLES[kind]}: {_some(texts)}")
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


def _labeled(rows: Rows, are_text: bool, unlabeled: str) -> tuple[Rows, np.ndarray, np.ndarray]:
    """The rows that may be used, the distinct labels, and the position of each row's, -1 where it has
    none. TableError where labels can be no classes.
    """
    known = np.array([label is not None for label in rows.y], bool)
    classes, codes = np.unique(rows.y[known].tolist(), return_inverse=True)
    n_rows = len(codes)
    name = quoted(rows.target)
    fractions = [v for v in classes.tolist() if isinstance(v, float) and not v.is_integer()]
    many = len(classes) > FEW and not are_text and n_rows < ROWS_A_CLASS * len(classes)
    if fractions or many:
        what = "a measurement, not classes" if fractions else "too many for classes"
        raise TableError(
            f"Column {name} holds {len(classes):,} different values in {plural(n_rows, 'row')}, "
            f"such as {listed((fractions or classes.tolist())[:3])}: {what}. The command line fits "
            f"classifiers.",
            f"Is --target the right column? Numbers are predicted from Python, by "
            f"kernelpool.EMLogRegressor. If these are classes, pass --columns "
            f"{rows.target}=category.",
        )
    if len(classes) < 2:
        found = f"only {quoted(classes[0])}" if len(classes) else "nothing"
        raise TableError(
            f"Column {name} must hold at least two classes; found {found} in "
            f"{plural(len(known), 'row')}."
        )
    if unlabeled == o.Unlabeled.REFUSE and not known.all():
        raise TableError(
            f"{plural(len(known) - n_rows, 'row')} of {len(known):,} without a class in column "
            f"{name}, the first is row {rows.ids[int(np.argmin(known))]}.",
            "Pass --unlabeled drop to leave them out, or --unlabeled use to learn from them.",
            missing={rows.target: len(known) - n_rows},
        )
    if unlabeled == o.Unlabeled.DROP:
        return replace(rows.at(known), y=classes[codes]), classes, codes
    all_codes = np.full(len(known), -1)
    all_codes[known] = codes
    return rows, classes, all_codes


def _held_out(rows: Rows, codes: np.ndarray, share: float, key: np.ndarray) -> np.ndarray:
    """Whether each row is held out, (n,), every class as often as it is in the whole."""
    out = hold_out(codes, share, key=key)
    if rows.weight is None:
        return out
    return out & (np.random.default_rng(0).random(len(out)) < rows.weight)


def _training(
    source: Scan, rows: Rows, classes: np.ndarray, test: np.ndarray, model: Any, screen: Screen
) -> Training:
    """The rows to fit to: those that were read, or all of a source that does not fit in memory."""
    train = rows.at(~test)
    if rows.weight is not None and model.takes_any_rows:
        return _streamed(source, rows, classes, test, model.unlabeled is not None), None, None
    if rows.weight is not None:
        screen.warn(
            f"{type(model).__name__} learns from {len(train.y):,} of {rows.n_rows:,} rows, drawn "
            f"evenly from all of them, since more may not fit in memory; --model shared-kernel "
            f"learns from all."
        )
    return train.X, train.y, train.weight


def _streamed(
    source: Scan, rows: Rows, classes: np.ndarray, test: np.ndarray, keep: bool
) -> Iterator[tuple[Any, np.ndarray]]:
    """All rows but those that are held out, batch by batch, with their labels; those without one
    only with `keep`.
    """
    held_out = rows.positions[test]
    labels = np.array([*classes.tolist(), None], object) if keep else classes
    for batch in source.batches([*rows.kinds, rows.target]):
        codes = codes_of(batch, rows.target, classes)
        use = (codes >= 0) | keep
        first, last = np.searchsorted(held_out, [batch.first, batch.first + len(codes)])
        use[held_out[first:last] - batch.first] = False
        yield rows.typed(batch.table).filter(use), labels[codes[use]]


def _folds(codes: np.ndarray, n_folds: int, key: np.ndarray) -> np.ndarray:
    most = np.bincount(codes[codes >= 0]).max()
    if most < n_folds:
        raise CommandError(
            Exit.FIT, f"--cv {n_folds}: no class has so many rows; the largest has {most}."
        )
    return stratified_folds(codes, n_folds, key=key)


def _cross_validated(
    estimator: Any,
    rows: Rows,
    classes: np.ndarray,
    codes: np.ndarray,
    fold: np.ndarray,
    screen: Screen,
) -> Metrics:
    """The metrics of rows that are predicted by the model of the other folds."""

    def fit(train: tuple[np.ndarray], held_out: tuple[np.ndarray]) -> tuple[None, np.ndarray]:
        model = clone(estimator)
        title = f"Fold {fold[held_out[0][0]] + 1} of {fold.max() + 1}:"
        part = rows.at(train[0])
        try:
            fit_with_progress(model, title, (part.X, part.y, part.weight), screen)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the folds were not finished; nothing was saved") from None
        probability = np.zeros((len(held_out[0]), len(classes)))
        known = np.searchsorted(classes, model.classes_)  # a fold may lack a class
        probability[:, known] = model.predict_proba(rows.X.take(held_out[0]))
        return None, probability

    _, probability = cross_fit(fit, (np.arange(len(fold)),), fold)
    answers = Predictions.of(classes, probability[fold >= 0])
    return Metrics.of(codes[fold >= 0], answers)


def _fit_or_keep(model: Any, training: Training, screen: Screen) -> str | None:
    """Fit; None, or how the fit was interrupted, if it left a model."""
    try:
        fit_with_progress(model, "Fitting", training, screen)
    except KeyboardInterrupt as error:
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise KeyboardInterrupt("nothing has been fitted yet") from None
        return str(error) or "interrupted"
    return None


def fit_with_progress(model: Any, title: str, training: Training, screen: Screen) -> None:
    """Fit; what goes wrong is reported as the command line does."""
    name = type(model).__name__
    parameters = model.get_params(deep=False)
    with screen.warnings(), screen.working(title, parameters.get("time_limit")):
        if "callback" in parameters:
            watch = _watch_pool if isinstance(model, PooledClassifier) else _watch_sweeps
            model.set_params(callback=watch(screen))
        try:
            model.fit(*training)
        except ValueError as error:
            raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
        except MemoryError:
            raise CommandError(Exit.FIT, f"{name}: not enough memory for these rows.") from None
        finally:
            if "callback" in parameters:  # a function cannot be saved
                model.set_params(callback=None)


def _results(model: Any, rows: Rows, test: np.ndarray) -> Results:
    """Of held-out rows, which pass the model once; without any, of those of the training."""
    train = rows.at(~test)
    fitted = {"X_train": train.X, "y_train": train.y, "train_ids": train.ids.tolist()}
    if not test.any():
        return evaluate(model, None, **fitted)
    held_out = rows.at(test)
    answers = predictions(model, held_out.X, log_density=True)
    return evaluate(
        model, held_out.X, held_out.y, ids=held_out.ids.tolist(), predictions=answers, **fitted
    )


def _model_file(results: Results, rows: Rows, codes: np.ndarray, test: np.ndarray) -> ModelFile:
    """The model, with predictions of held-out rows and counts of the others; no rows."""
    answers = results.predictions if test.any() else None
    reference = None
    if len(rows.kinds) <= MOST_REFERENCE_FEATURES:
        reference = DriftReference.of(rows.at(~test).X, results.model, answers)
    if answers is None or len(answers.classes) <= codes.max():
        return ModelFile(results.model, reference=reference)
    few = spaced(len(answers), MOST_CALIBRATION)
    return ModelFile(results.model, answers.at(few), codes[test][few], reference)


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


def _saved(file: ModelFile, about: dict[str, Any], path: str, force: bool, screen: Screen) -> str:
    """Where the model was written: under another name where a file has appeared in the meantime."""
    name = path
    n = 1
    while os.path.lexists(name) and not force:
        n += 1
        name = str(Path(path).with_stem(f"{Path(path).stem}-{n}"))
    if n > 1:
        screen.warn(f"{shown(path, 200)} exists and is kept; pass --force to replace it.")
    with placed(name, force) as temporary:
        save(file, temporary, summary=plain(about))
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
