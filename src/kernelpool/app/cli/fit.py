"""`kernelpool fit`: from a table to a model file, with an error measured on held-out rows.

Rows are fitted in memory. Of larger files rows are drawn at random, with a message: from
Python, `SharedKernelClassifier().fit(path, target)` takes all of them.
"""

import json
import os
import shlex
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
from ...text import did_you_mean, listed, percent, plain, plural, quoted, shown
from ..readers.files import SUFFIXES, Source, stem_of
from ..readers.table import (
    CATEGORY,
    COLUMN_KINDS,
    DATE,
    Rows,
    check_columns,
    feature_names,
    fingerprint,
    read_rows,
)
from . import console as o
from .console import CommandError, Exit, Screen, check_free, placed

READ_WHOLE = 1e9
"""Bytes of files that are read whole."""

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
    source = Source(data, style, READ_WHOLE)
    next(source.batches(), None)  # the names of the columns
    feature_names(source, target, [*(drop or ()), *(keep or ())])
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
    if source.share < 1:
        screen.warn(
            f"{source.label} is larger than {READ_WHOLE / 1e9:g} GB: {percent(source.share)} of its "
            f"rows are fitted, drawn at random. From Python, SharedKernelClassifier().fit(path, "
            f"target) takes all rows."
        )
    _describe(rows, screen)
    job = FitJob(rows, estimator, screen, holdout, cv, seed)
    job.run()
    if job.interrupted:
        path = _offered(job, path, screen)
    path = _saved(job, path, force, screen)
    lines = {"Error": "not measured: no rows were held out"}
    if job.metrics is not None:
        lines = o.figures(job.metrics, job.classes.tolist(), 0.05)
        lines["Measured on"] = str(job.evaluated_by)
    lines["Model"] = shown(path, 400)
    lines["Next"] = f"kernelpool predict {shown(shlex.quote(path), 400)} NEW_ROWS --reject"
    if "Rare classes" in lines and "class_prior" in settings_of(job.model):
        lines["Rare classes"] += ". --set class_prior=balanced finds more of them"
    screen.lines(lines)
    screen.result(shown(describe(job.model).sentence, 2000))
    if report is not None:
        fitted = np.setdiff1d(np.arange(len(job.rows.y)), [] if job.test is None else job.test)
        tables = {"fitted": fitted, "new": job.test}
        o.write_page(job.model, job.rows, report, force, screen, command=job.command, **tables)
    screen.answer({"model": path, **job.record(), "report": report})
    if job.interrupted:
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


# -- one fit ---------------------------------------------------------------------------------------


@dataclass
class FitJob:
    """One fit to rows in memory."""

    rows: Rows
    estimator: Any
    screen: Screen
    holdout: float
    cv: int | None
    seed: int
    metrics: Metrics | None = None
    """Of held-out rows."""
    test: np.ndarray | None = None
    """Positions of the rows that the model was not fitted to."""
    interrupted: str | None = None
    warnings: list[str] = field(default_factory=list)
    recorded: dict[str, Any] = field(default_factory=dict)
    """What the model file holds of the rows: densities, calibration, reference for drift."""

    def run(self) -> None:
        """Fit and evaluate."""
        start, self.n_rows, y = time.perf_counter(), len(self.rows.y), self.rows.y
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        known = np.array([label is not None for label in y], bool)
        self.classes, self.codes = np.unique(y[known].tolist()), np.full(len(y), -1)
        self.codes[known] = np.searchsorted(self.classes, y[known].tolist())
        if not known.all() and "unlabeled" in settings_of(self.estimator):
            self.estimator.set_params(unlabeled=np.nan)
        # equal rows are held out together, the same of every format
        key = table_keys(self.rows.table, self.seed)
        if self.cv is not None:
            self._cross_validate(self.cv, key)
        out = hold_out(self.codes, self.holdout if self.cv is None else 0, key=key)
        self._fit_last(*self.rows.at(np.flatnonzero(~out)))
        with self.screen.working("Evaluating"):
            if out.any():
                self.test = np.flatnonzero(out)
                self._record_scores(self.test, self._evaluate(self.model, self.test))
            self._record_rows(np.flatnonzero(~out))
        self.seconds = time.perf_counter() - start

    def _cross_validate(self, n_folds: int, key: np.ndarray) -> None:
        most = np.bincount(self.codes[self.codes >= 0]).max()
        if most < n_folds:
            raise CommandError(
                Exit.FIT, f"--cv {n_folds}: no class has so many rows; the largest has {most}."
            )
        fold = stratified_folds(self.codes, n_folds, key=key)

        def fit(train: tuple[np.ndarray], held_out: tuple[np.ndarray]) -> tuple[None, np.ndarray]:
            model = clone(self.estimator)
            k = fold[held_out[0][0]]
            try:
                self._fit(model, f"Fold {k + 1} of {n_folds}:", *self.rows.at(train[0]))
            except KeyboardInterrupt:
                raise KeyboardInterrupt("the folds were not finished; nothing was saved") from None
            return None, self._evaluate(model, held_out[0])

        cross_fit(fit, (np.arange(len(fold)),), fold)

    # -- the fit -----------------------------------------------------------------------------------

    def _fit_last(self, x: Any, y: Any) -> None:
        """Fit; an interrupted fit counts if it left a model that predicts."""
        self.model = self.estimator
        try:
            self._fit(self.model, "Fitting", x, y)
        except KeyboardInterrupt as error:
            self.interrupted = str(error) or "interrupted"
            try:
                self.model.predict_proba(self.rows.table.slice(0, 1))
            except (AttributeError, NotFittedError):
                raise KeyboardInterrupt("nothing has been fitted yet") from None

    def _fit(self, model: Any, title: str, x: Any, y: Any) -> None:
        """With a progress bar; what goes wrong is reported as the command line does."""
        name = type(model).__name__
        parameters = model.get_params(deep=False)
        with (
            self.screen.working(title, parameters.get("time_limit")),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            if "callback" in parameters:
                pool = isinstance(model, PooledClassifier)
                watch = _watch_pool if pool else _watch_sweeps
                model.set_params(callback=watch(self.screen))
            try:
                model.fit(x, y)
            except ValueError as error:
                raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
            except MemoryError:
                what = plural(self.n_rows, "row")
                raise CommandError(Exit.FIT, f"{name}: not enough memory for {what}.") from None
            finally:
                if "callback" in parameters:  # a function cannot be saved
                    model.set_params(callback=None)
        for text in dict.fromkeys(shown(warning.message, 400) for warning in caught):
            if text not in self.warnings:
                self.warnings.append(text)
                self.screen.warn(text)

    # -- held-out rows -----------------------------------------------------------------------------

    def _evaluate(self, model: Any, at: np.ndarray) -> np.ndarray:
        """Add held-out rows to the metrics; their probabilities."""
        probability = np.zeros((len(at), len(self.classes)))
        known = np.searchsorted(self.classes, model.classes_)  # a fold may lack a class
        probability[:, known] = model.predict_proba(self.rows.table.take(at))
        metrics = Metrics.of(self.codes[at], probability)
        self.metrics = metrics if self.metrics is None else self.metrics + metrics
        return probability

    def _record_scores(self, at: np.ndarray, probability: np.ndarray) -> None:
        """Lowest densities for novelty; scores of some rows for their own classes, for sets."""
        least = -np.finfo(np.float64).max

        def finite(score: Any) -> np.ndarray:
            return np.nan_to_num(np.asarray(score), nan=least, neginf=least)

        if hasattr(self.model, "score_samples"):
            score = finite(self.model.score_samples(self.rows.table.take(at)))
            lowest = {"n_rows": len(score), "lowest": np.sort(score)[:N_LOWEST]}
            self.recorded["held_out_densities"] = lowest
        if len(self.model.classes_) < len(self.classes):
            return
        sample = np.unique(np.linspace(0, len(at) - 1, MOST_CALIBRATION).astype(int))
        own = np.arange(len(sample)), self.codes[at[sample]]
        scores = [probability[sample][own]]
        if hasattr(self.model, "log_density"):
            scores.append(finite(self.model.log_density(self.rows.table.take(at[sample])))[own])
        self.recorded["calibration"] = {"codes": own[1], "scores": scores}

    def _record_rows(self, train: np.ndarray) -> None:
        """What the rows are like, for `kernelpool check`: counts, and no rows."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        self.recorded["class_shares"] = counts / counts.sum()
        if len(self.rows.kinds) <= MOST_REFERENCE_FEATURES:
            held = None if self.test is None else self.rows.table.take(self.test)
            reference = DriftReference.of(self.rows.table.take(train), self.model, held)
            self.recorded["reference"] = reference.to_dict()

    # -- results -----------------------------------------------------------------------------------

    @property
    def evaluated_by(self) -> str | None:
        """How the error was measured."""
        if self.metrics is None:
            return None
        return "held-out rows" if self.cv is None else f"{self.cv} folds"

    def record(self) -> dict[str, Any]:
        """For programs."""
        members = None
        held_out = None
        if self.metrics is not None:
            held_out = {
                k: v for k, v in self.metrics.to_dict(0.05).items() if k not in NOT_RECORDED
            }
        if isinstance(self.model, PooledClassifier):
            pairs = zip(self.model.members_, self.model.weights_.tolist(), strict=True)
            members = [{"name": name, "weight": weight} for name, weight in pairs]
        return {
            "estimator": type(self.model).__name__,
            "settings": settings_of(self.model),
            "members": members,
            "n_rows": self.n_rows,
            "n_features": len(self.rows.kinds),
            "classes": self.classes,
            "evaluated_by": self.evaluated_by,
            "held_out": held_out,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }

    def summary(self) -> dict[str, Any]:
        """For the model file."""
        return {
            **self.record(),
            "command": self.command,
            "source": self.rows.source,
            "target": self.rows.target,
            "dates": [name for name, kind in self.rows.kinds.items() if kind == DATE],
            "seed": self.seed,
            "fingerprint": fingerprint(self.rows.table),
            **self.recorded,
        }


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


def _offered(job: FitJob, path: str, screen: Screen) -> str:
    """Ctrl-C: asks on a terminal; elsewhere the model goes next to the name of a finished one."""
    so_far = f" Its error is {job.metrics.rate(0.05)} so far." if job.metrics is not None else ""
    screen.say(f"\n{job.interrupted}.{so_far}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or screen.as_json:
        return str(Path(path).with_stem(f"{Path(path).stem}.interrupted"))
    if not typer.confirm(f"Keep it as {shown(path, 200)}?", default=True, err=True):
        raise KeyboardInterrupt("nothing was saved")
    return path


def _saved(job: FitJob, path: str, force: bool, screen: Screen) -> str:
    """Where the model was written: under another name where a file has appeared in the meantime."""
    name = path
    n = 1
    while os.path.lexists(name) and not force:
        n += 1
        name = str(Path(path).with_stem(f"{Path(path).stem}-{n}"))
    if n > 1:
        job.warnings.append(f"{shown(path, 200)} exists and is kept; pass --force to replace it.")
        screen.warn(job.warnings[-1])
    with placed(name, force) as temporary:
        save(job.model, temporary, summary=plain(job.summary()))
    return name


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
