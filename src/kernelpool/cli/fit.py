"""`kernelpool fit`: from a table to a model file, with an error that can be believed.

Settings are read as JSON, or as plain words where they are none, and go to the estimator's own checks; nothing is evaluated.

Distances in several units mean nothing, so features are standardized inside the saved model where its record in the registry,
or that of its kernel family, says that answers depend on units. `--scale` overrules this.
"""

import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags

from .. import registry
from ..estimators.pooled import PooledClassifier, PoolProgress
from ..estimators.shared_kernel import SharedKernelClassifier
from ..files import save
from ..inspection.metrics import Metrics, Rate, RegressionError
from ..inspection.pipeline import knows_log_density, log_density, unwrap
from ..questions import DriftReference
from ..selection.held_out import stratified_holdout
from ..tables.columns import CATEGORY, NUMBER, FeatureColumn
from ..tables.encoder import TableEncoder
from ..tables.labels import LabeledTable, codes_and_classes, has_label, read_labeled
from ..tables.sources import SUFFIXES, source, stem_of
from ..text import did_you_mean, listed, plain, plural, quoted, shown
from . import options as o
from .output import CommandError, Exit, Screen, Working, check_free, placed

POOL, AUTO = "pool", "auto"
MODEL = f"One of {', '.join((POOL, AUTO, *sorted(set(registry.commands()) - {POOL})))}."
TARGET = "Column that holds the classes; numbers, where --model is a regressor."
TIME_LIMIT = "Begin no further member of the pool after so many seconds."
SHARING = "How far classes share kernels, from 0 to 1; several with commas for sharing-average."
SET = "Any other parameter of the estimator, such as --set max_iter=500 (repeatable); --set help lists them."
OUTPUT = "Model file to write; the name of DATA with the ending .safetensors unless given."
NOT_SETTABLE = ("callback", "verbose", "random_state", "unlabeled", "members")
"""Objects, or set by options of their own."""

COLUMNS = "What a column holds, number or words, where it was taken for the other (repeatable)."
ENCODE = "Take every column of text for words, also one of numbers with some cells that are none."

NOT_MODELS = (*SUFFIXES, ".pkl", ".pickle", ".joblib", ".onnx", ".html", ".json", ".jsonl", ".xlsx")
"""Endings of files that a model file is not."""

MOST_CALIBRATION, MOST_WATCHED = 2000, 1000
"""Held-out rows whose scores are kept for sets of classes, and features that are watched for drift."""

MOST_NAMES = 1000
"""Names that are tried for a model whose own is taken."""

LOWEST = 1000
"""Held-out densities that are kept, the lowest: thresholds of novelty are among them."""


def fit(
    data: o.Data,
    target: Annotated[str | None, o.column("--target", "-t", help=TARGET)] = None,
    drop: o.Drop = None,
    columns: Annotated[list[str] | None, o.data("--columns", metavar="COLUMN=KIND", help=COLUMNS)] = None,
    encode: Annotated[bool, o.data("--encode", help=ENCODE)] = False,
    unlabeled: Annotated[o.Unlabeled, o.data("--unlabeled", help="What becomes of rows without a class.")] = o.Unlabeled.REFUSE,
    text_target: Annotated[bool, o.data("--text-target", help="Take classes as text, whatever they look like.")] = False,
    model: Annotated[str, o.model("--model", "-m", metavar="KIND", help=MODEL)] = POOL,
    time_limit: Annotated[float | None, o.model("--time-limit", metavar="SECONDS", min=0, help=TIME_LIMIT)] = None,
    kernels: Annotated[int | None, o.model("--kernels", "-k", metavar="N", min=1, help="Number of kernels (neurons).")] = None,
    covariance: Annotated[
        str | None, o.model("--covariance", metavar=f"{{{','.join(registry.families())}}}", help="Shape of the kernels.")
    ] = None,
    sharing: Annotated[str | None, o.model("--sharing", metavar="DEGREE", help=SHARING)] = None,
    setting: Annotated[list[str] | None, o.model("--set", metavar="NAME=VALUE", help=SET)] = None,
    scale: Annotated[
        o.Scale, o.model("--scale", help="Standardize features inside the model; auto: where distances matter.")
    ] = o.Scale.AUTO,
    holdout: Annotated[float, o.judging("--holdout", metavar="SHARE", min=0, max=0.9, help="Rows held out; 0 for none.")] = 0.2,
    cv: Annotated[
        int | None, o.judging("--cv", metavar="N", min=2, help="Judge by so many folds instead, and fit to all rows.")
    ] = None,
    refit: Annotated[bool, o.judging("--refit", help="After judging, fit again to all rows.")] = False,
    confidence: o.Confidence = 0.95,
    seed: o.Seed = 0,
    output: Annotated[str | None, o.output("--output", "-o", metavar="FILE", help=OUTPUT)] = None,
    report: Annotated[str | None, o.output("--report", metavar="FILE", help="Write a report (HTML) as well.")] = None,
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

    Example: kernelpool fit irises.csv --target species -o irises.safetensors --report irises.html
    """
    choice = ModelChoice(model, kernels, covariance, sharing, tuple(setting or ()), str(scale), seed, time_limit)
    estimator = choice.estimator()  # what is wrong with the settings is said before data are read
    kinds = column_kinds(columns or [])
    path = output or _default_output(data)
    _check_output(path, report)
    check_free(path, force)
    if report is not None:
        from .report import check_report, write_report

        check_report(report, force)
    rows_in = source(data, style)
    with screen.working(f"Reading {rows_in.label}", rows_in.n_bytes) as bar:
        rows = read_labeled(
            rows_in,
            target,
            drop=drop or (),
            encode=True,
            kinds=kinds,
            holes=bool(get_tags(estimator).input_tags.allow_nan),
            cautious=not encode,
            as_text=text_target,
            unlabeled=str(unlabeled),
            numeric=is_regressor(estimator),
            progress=lambda n_bytes, n_rows: bar.at(n_bytes, plural(n_rows, "row")),
        )
    screen.say(_seen(rows))
    for line in _taken_for(rows):
        screen.say(line)
    for name, why in rows.left_out.items():
        screen.warn(f"column {quoted(name)} is left out: {why}.")
    make = RegressionWork if is_regressor(estimator) else Work
    work = make(rows, choice, screen, holdout, cv, refit, 1 - confidence, [*(drop or []), *rows.left_out], str(unlabeled))
    work.run()
    if work.interrupted:
        path = _offered(work, path, screen)
    path = _saved(work, path, force, screen)
    _tell(work, path, screen)
    if report is not None:
        write_report(work.model, rows, work.test, report, force, screen, command=work.command, duration=work.seconds)
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
            Exit.USAGE, f"{shown(path, 200)}: model files are in the format safetensors; name it .safetensors, not {ending}."
        )
    if report is not None and Path(path).resolve() == Path(report).resolve():
        raise CommandError(Exit.USAGE, f"{shown(path, 200)} cannot be both the model (-o) and the report (--report).")


def _seen(rows: LabeledTable) -> str:
    words = sum(f.kind != NUMBER for f in rows.features)
    encoded = f" ({words} of words)" if words else ""
    size = f"{plural(len(rows), 'row')}, {plural(len(rows.features), 'feature')}{encoded}"
    return f"{rows.source}: {size}; {quoted(rows.target)}: {_target_seen(rows.labels)}"


def _target_seen(labels: np.ndarray) -> str:
    """How often each class comes, or from where to where numbers go."""
    if labels.dtype.kind == "f":
        return f"{labels.min():.4g} to {labels.max():.4g}, mean {labels.mean():.4g}"
    codes, classes = codes_and_classes(labels)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    named = ", ".join(f"{shown(c, 24)} {n:,}" for c, n in list(zip(classes.tolist(), counts, strict=True))[:6])
    more = f", and {len(classes) - 6} more" if len(classes) > 6 else ""
    without = int((codes < 0).sum())
    return named + more + (f"; {plural(without, 'row')} without a class" if without else "")


def _taken_for(rows: LabeledTable) -> list[str]:
    """What each column was taken for, where there are words or missing cells."""
    words, numbers = ([f.name for f in rows.features if (f.kind == CATEGORY) == wanted] for wanted in (True, False))
    lines = []
    if words:
        levels = [f"{quoted(name)} ({plural(_n_words(rows, name), 'word')})" for name in words[:12]]
        more = f" and {plural(len(words) - 12, 'other column')}" if len(words) > 12 else ""
        lines.append(f"Words: {', '.join(levels)}{more}. Numbers: {listed(numbers, 12) or 'none'}. --columns corrects it.")
    if rows.gaps.counts:
        n_cells = plural(sum(rows.gaps.counts.values()), "missing cell")
        lines.append(f"{n_cells} in {rows.gaps.rows:,} of {plural(len(rows), 'row')}: {rows.gaps.told()}.")
    return lines


def _n_words(rows: LabeledTable, name: str) -> int:
    return len(rows.table.column(name).unique().drop_null())


def column_kinds(given: Sequence[str]) -> dict[str, str]:
    """`--columns name=kind` as a dict."""
    kinds, found = {"number": NUMBER, "numbers": NUMBER, "word": CATEGORY, "words": CATEGORY}, {}
    for text in given:
        name, equals, kind = text.rpartition("=")
        if not equals or not name or kind not in kinds:
            raise CommandError(
                Exit.USAGE, f"--columns takes COLUMN=number or COLUMN=words, such as --columns zip=words; got {quoted(text)}."
            )
        found[name] = kinds[kind]
    return found


def _offered(work: "Work", path: str, screen: Screen) -> str:
    """Ctrl-C: ask whoever sits there; where nobody does, keep it beside the name that a finished model would have."""
    told = f" It errs on {work.rate} so far." if work.rate is not None else ""
    screen.say(f"\n{work.interrupted}.{told}")
    if sys.stdin.isatty() and sys.stderr.isatty() and not screen.as_json:
        if not typer.confirm(f"Keep it as {shown(path, 200)}?", default=True, err=True):
            raise KeyboardInterrupt("nothing was saved")
        return path
    target = Path(path)
    return str(target.with_name(f"{target.stem}.interrupted{target.suffix}"))


def _saved(work: "Work", path: str, force: bool, screen: Screen) -> str:
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
        work.warnings.append(f"{shown(path, 200)} exists already and is kept; pass --force to replace it.")
        screen.warn(work.warnings[-1])
    return name


def _tell(work: "Work", path: str, screen: Screen) -> None:
    from ..inspection.pool import describe

    screen.result(shown(describe(work.classifier).sentence, 2000))
    if work.rate is None:
        screen.result("Error: not measured (no rows were held out).")
    else:
        screen.result(f"{work.measure} by {work.judged_by}: {work.rate}")
    screen.result(f"Model: {shown(path, 400)}")


# -- which estimator ------------------------------------------------------------------------------------------------

Setting = Any
"""A number, a word, true, false, null, or a list of those."""


@dataclass(frozen=True)
class ModelChoice:
    """What the command line asks for."""

    name: str = POOL
    kernels: int | None = None
    covariance: str | None = None
    sharing: str | None = None
    settings: Sequence[str] = ()
    scale: str = "auto"
    seed: int = 0
    time_limit: float | None = None

    def estimator(self) -> Any:
        """The bare estimator."""
        models = registry.commands()
        if self.name != AUTO and self.name not in models:
            raise CommandError(
                Exit.USAGE,
                f"--model {quoted(self.name)} is not known{did_you_mean(self.name, list(models))} There are "
                f"{', '.join((POOL, AUTO, *sorted(set(models) - {POOL})))}.",
            )
        if self.covariance is not None and self.covariance not in registry.families():
            raise CommandError(
                Exit.USAGE, f"--covariance must be one of {', '.join(registry.families())}; got {quoted(self.covariance)}."
            )
        make = SharedKernelClassifier.auto if self.name == AUTO else models[self.name].cls
        given = self._given(make)
        known = _parameters(make)
        shape = [option for option, value in self._shape().items() if value is not None]
        if self.name == POOL and shape:
            raise CommandError(
                Exit.USAGE,
                f"{shape[0]} needs one network instead of a pool; name it with --model, such as --model shared-kernel.",
            )
        if self.time_limit is not None and self.name != POOL:
            raise CommandError(Exit.USAGE, f"--time-limit is for --model {POOL} alone; got --model {self.name}.")
        unknown = [name for name in given if name not in known and name != "random_state"]
        if unknown:
            hint = did_you_mean(unknown[0], list(known))
            raise CommandError(Exit.USAGE, f"--model {self.name} has no setting {quoted(unknown[0])}{hint} {_listing(known)}")
        return make(**given)

    def _shape(self) -> dict[str, Any]:
        """What a single network is asked for."""
        return {"--kernels": self.kernels, "--covariance": self.covariance, "--sharing": self.sharing}

    def _given(self, make: Callable[..., Any]) -> dict[str, Setting]:
        given: dict[str, Setting] = {"random_state": self.seed}
        record = registry.commands().get(self.name)
        if record is not None:
            given |= record.command_parameters
        if self.kernels is not None:
            given["n_kernels" if record is None else record.size_parameter] = self.kernels
        if self.covariance is not None:
            given["covariance_type"] = self.covariance
        if self.sharing is not None:
            several = not isinstance(_parameters(make).get("sharing", 1.0), float | int | str)
            given["sharing"] = _sharing(self.sharing, several)
        if self.time_limit is not None and self.name == POOL:
            given["budget"] = self.time_limit
        for text in self.settings:
            if text == "help":
                raise CommandError(Exit.USAGE, f"--model {self.name}: {_listing(_parameters(make))}")
            name, value = parse_setting(text)
            given[name] = value
        return given

    def pipeline(self, features: list[FeatureColumn]) -> Any:
        """The classifier behind the steps that its features need; the classifier alone where they need none."""
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        estimator = self.estimator()
        scale = self.scale == "standard" or (self.scale == "auto" and registry.needs_scaling(estimator))
        words = [f.name for f in features if f.kind == CATEGORY]
        if not words:
            return Pipeline([("scale", StandardScaler()), ("model", estimator)]) if scale else estimator
        if isinstance(estimator, SharedKernelClassifier) and self.name != AUTO and estimator.indicators is None:
            estimator.set_params(indicators="auto")
        return Pipeline([("columns", TableEncoder(words, standardize=scale)), ("model", estimator)])


def _parameters(make: Callable[..., Any]) -> dict[str, Any]:
    """The settings of an estimator with their defaults."""
    from inspect import Parameter, signature

    found = {p.name: p for p in signature(make).parameters.values()}
    if any(p.kind == Parameter.VAR_KEYWORD for p in found.values()):  # hands them on to the class
        found = {**{p.name: p for p in signature(make.__self__).parameters.values()}, **found}  # type: ignore[attr-defined]
    found = {name: p for name, p in found.items() if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)}
    return {name: p.default for name, p in sorted(found.items()) if name not in NOT_SETTABLE}


def _listing(known: dict[str, Any]) -> str:
    return f"Settings and their defaults: {', '.join(f'{name}={json.dumps(plain(value))}' for name, value in known.items())}."


def parse_setting(text: str) -> tuple[str, Setting]:
    """`name=value` of `--set`; the value is JSON, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(Exit.USAGE, f"--set takes name=value, such as --set max_iter=500, or help; got {quoted(text)}.")
    if name in NOT_SETTABLE:
        instead = {"random_state": "; use --seed", "unlabeled": "; use --unlabeled"}.get(name, "")
        raise CommandError(Exit.USAGE, f"--set {name} is not possible on the command line{instead}.")
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    if isinstance(found, list) and found and isinstance(found[0], list) and all(_is_row(r, len(found[0])) for r in found):
        return name, found
    if isinstance(found, dict) or (isinstance(found, list) and any(isinstance(item, dict | list) for item in found)):
        raise CommandError(
            Exit.USAGE,
            f"--set {name} must be a number, a word, true, false, null, a list of those or a table of numbers, such as "
            f"[[1, 0.5], [0.5, 1]]; got {quoted(value)}.",
        )
    return name, found


def _is_row(item: Any, n_columns: int) -> bool:
    """Whether it is a row of a table of numbers."""
    return isinstance(item, list) and len(item) == n_columns and all(type(cell) in (int, float) for cell in item)


def _sharing(text: str, several: bool) -> Setting:
    if text in ("learned", "auto") and not several:
        return text
    try:
        degrees = [float(part) for part in text.split(",")]
    except ValueError:
        raise CommandError(
            Exit.USAGE, f"--sharing takes a number from 0 to 1, or several with commas; got {quoted(text)}."
        ) from None
    if several:
        return degrees
    if len(degrees) > 1:
        raise CommandError(
            Exit.USAGE, f"--sharing takes one number here, several only with --model sharing-average; got {quoted(text)}."
        )
    return degrees[0]


# -- the fit --------------------------------------------------------------------------------------------------------


@dataclass
class Work:
    """One fit: how it is judged, what came out, and what to write down."""

    rows: LabeledTable
    choice: ModelChoice
    screen: Screen
    holdout: float
    cv: int | None
    refit: bool
    doubt: float
    dropped: list[str]
    unlabeled: str
    model: Any = None
    rate: Rate | RegressionError | None = None
    tally: Metrics | None = None
    test: np.ndarray | None = None
    lowest: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None
    interrupted: str | None = None
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    command: str = ""
    measure = "Error"
    """What `rate` is."""

    def run(self) -> None:
        """Fit and judge."""
        self.command = shlex.join(["kernelpool", *sys.argv[1:]])
        pipeline = self.choice.pipeline(self.rows.features)
        codes, classes = self._codes_and_classes()
        self.tally = Metrics.none(len(classes))
        start = time.perf_counter()
        if self.cv is not None:
            self._judge_by_folds(pipeline, codes, classes)
            self._final(pipeline, np.arange(len(codes)))
            self._note_reference(np.arange(len(codes)), None)
        else:
            test = stratified_holdout(codes, self.holdout, self.choice.seed)
            self._final(pipeline, np.flatnonzero(~test))
            if test.any():
                self.test = np.flatnonzero(test)
                self._judge(self.model, self.test, codes, classes)
                self._note_densities(self.test)
                self.calibration = self._calibration(self.test, codes)
            self._note_reference(np.flatnonzero(~test), self.test)
            if self.refit and self.interrupted is None and self._final(clone(pipeline), np.arange(len(codes))):
                self.test = None
        self.seconds = time.perf_counter() - start
        self.rate = self._judgment()

    def _codes_and_classes(self) -> tuple[np.ndarray, np.ndarray]:
        """By which rows are held out in equal shares: -1 where there is no class."""
        return codes_and_classes(self.rows.labels)

    def _judgment(self) -> Rate | RegressionError | None:
        """What the rows that were judged say together; None where there were none."""
        assert self.tally is not None
        return self.tally.rate(self.doubt) if self.tally.n_rows else None

    def _final(self, pipeline: Any, at: np.ndarray) -> bool:
        """Fit to some rows; an interrupted fit counts if it left parameters, and else a model that was there before."""
        try:
            self._fit(pipeline, at, "Fitting")
        except KeyboardInterrupt as error:
            self.interrupted = str(error) or "interrupted"
            if not self._answers(pipeline):
                if self.model is None:
                    raise KeyboardInterrupt("nothing has been fitted yet") from None
                self.interrupted = "interrupted while fitting again to all rows; the model that was judged is kept"
                return False
        self.model = pipeline
        return True

    def _answers(self, pipeline: Any) -> bool:
        """Whether an interrupted fit left a model that can be used."""
        try:
            pipeline.predict_proba(self.rows.table.slice(0, 1))
        except (AttributeError, NotFittedError):
            return False
        return True

    def _judge_by_folds(self, pipeline: Any, codes: np.ndarray, classes: np.ndarray) -> None:
        labeled, without = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        splitter = StratifiedKFold(self.cv or 2, shuffle=True, random_state=self.choice.seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a class of fewer rows than folds is missing in some of them
                folds = list(splitter.split(labeled, codes[labeled]))
        except ValueError:
            most = np.bincount(codes[labeled]).max()
            raise CommandError(Exit.FIT, f"--cv {self.cv}: no class has so many rows; the largest has {most}.") from None
        for k, (train, test) in enumerate(folds):
            model = clone(pipeline)
            try:
                self._fit(model, np.sort(np.concatenate([labeled[train], without])), f"Fold {k + 1} of {self.cv}:")
            except KeyboardInterrupt:
                raise KeyboardInterrupt("the folds were not finished, and the fit to all rows had not begun") from None
            self._judge(model, labeled[test], codes, classes)

    def _judge(self, model: Any, at: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
        assert self.tally is not None
        table, _ = self.rows.at(at)
        found = {label: i for i, label in enumerate(np.asarray(model.classes_).tolist())}
        probability, seen = np.asarray(model.predict_proba(table)), np.zeros((len(at), len(classes)))
        for i, label in enumerate(classes.tolist()):
            if label in found:  # a fold may lack a class
                seen[:, i] = probability[:, found[label]]
        self.tally = self.tally + Metrics.of(codes[at], seen)

    def _note_densities(self, at: np.ndarray) -> None:
        if hasattr(self.model, "score_samples"):
            score = np.asarray(self.model.score_samples(self.rows.at(at)[0]), np.float64)
            lowest = np.sort(np.where(np.isfinite(score), score, -np.finfo(np.float64).max))[:LOWEST]
            self.lowest = {"n_rows": len(score), "lowest": lowest.tolist()}

    def _calibration(self, at: np.ndarray, codes: np.ndarray) -> dict[str, Any] | None:
        """What held-out rows say of their own classes, for sets of classes; at most so many rows, spread evenly."""
        at = at[codes[at] >= 0]
        at = at[np.unique(np.linspace(0, len(at) - 1, MOST_CALIBRATION).astype(int))] if len(at) > MOST_CALIBRATION else at
        if not len(at) or len(self.model.classes_) != codes.max() + 1:
            return None
        table, own = self.rows.at(at)[0], (np.arange(len(at)), codes[at])
        found = {"codes": codes[at], "probability": np.asarray(self.model.predict_proba(table))[own]}
        if knows_log_density(self.model):
            density = log_density(self.model, table)[own]
            found["density"] = np.where(np.isfinite(density), density, -np.finfo(np.float64).max)
        return {name: values.tolist() for name, values in found.items()}

    def _note_reference(self, at: np.ndarray, held_out: np.ndarray | None) -> None:
        """What the rows are like, for `kernelpool check`: counts, and no rows."""
        if len(self.rows.features) <= MOST_WATCHED:
            held = None if held_out is None else self.rows.at(held_out)[0]
            self.reference = DriftReference.of(self.rows.at(at)[0], self.model, held).to_dict()

    def _fit(self, pipeline: Any, at: np.ndarray, title: str) -> None:
        table, labels = self.rows.at(at)
        last = unwrap(pipeline).inner
        name = type(last).__name__
        most = last.get_params(deep=False).get("max_iter")
        with self.screen.working(f"{title} {name}", most) as bar, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if isinstance(last, PooledClassifier):
                last.set_params(callback=_pool_watcher(bar, title))
            elif "callback" in last.get_params(deep=False):
                last.set_params(callback=_watcher(bar, title, name))
            try:
                pipeline.fit(table, labels)
            except ValueError as error:
                raise CommandError(Exit.FIT, f"{name}: {shown(error, 600)}") from None
            except MemoryError:
                raise CommandError(Exit.FIT, f"{name}: not enough memory for {plural(len(at), 'row')}.") from None
            finally:
                for part in (last, *getattr(last, "estimators_", ())):  # a function cannot be saved
                    if "callback" in part.get_params(deep=False):
                        part.set_params(callback=None)
        for warning in caught:
            text = shown(warning.message, 400)
            if text not in self.warnings:
                self.warnings.append(text)
                self.screen.warn(text)

    # -- what is told -----------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """For machines."""
        return {
            "estimator": type(self.classifier).__name__,
            "chosen": _chosen(self.classifier),
            "members": _members(self.classifier),
            "n_rows": len(self.rows),
            "n_features": len(self.rows.features),
            "classes": np.asarray(getattr(self.model, "classes_", [])).tolist(),
            "judged_by": self.judged_by,
            "held_out": None if self.rate is None else self.rate.to_dict(),
            "log_loss": None if self.tally is None or not self.tally.n_rows else self.tally.log_loss,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "warnings": self.warnings,
        }

    @property
    def classifier(self) -> Any:
        """The estimator behind the steps of the pipeline."""
        return unwrap(self.model).inner

    @property
    def judged_by(self) -> str | None:
        if self.rate is None:
            return None
        return f"{self.cv} folds" if self.cv is not None else "rows held out"

    def _class_shares(self) -> list[float] | None:
        """Of the rows of the fit, in the order of the classes of the model."""
        names, count = np.unique(np.asarray(self.rows.labels[has_label(self.rows.labels)].tolist()), return_counts=True)
        found = dict(zip(names.tolist(), count.tolist(), strict=True))
        counts = np.array([found.get(label, 0) for label in np.asarray(self.model.classes_).tolist()], np.float64)
        return (counts / counts.sum()).tolist()

    def summary(self) -> dict[str, Any]:
        """For the model file."""
        return {
            **self.record(),
            "made_by": "kernelpool fit",
            "command": self.command,
            "source": self.rows.source,
            "target": self.rows.target,
            "features": [{"name": f.name, "kind": f.kind} for f in self.rows.features],
            "dropped": self.dropped,
            "unlabeled": self.unlabeled,
            "seed": self.choice.seed,
            "data": {"fingerprint": self.rows.fingerprint(), "n_rows": len(self.rows)},
            "split": None if self.test is None else {"share": self.holdout, "seed": self.choice.seed, "n_rows": len(self.test)},
            "held_out_densities": self.lowest,
            "calibration": self.calibration,
            "reference": self.reference,
            "class_shares": self._class_shares(),
        }


@dataclass
class RegressionWork(Work):
    """One fit of a regressor: rows are held out at random, and numbers are judged by how far they lie off."""

    missed: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """True and predicted numbers of rows that were judged."""
    measure = "Root mean squared error"

    def _codes_and_classes(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self.rows) < max(2, self.cv or 0):
            raise CommandError(Exit.FIT, f"{plural(len(self.rows), 'row')}: at least {max(2, self.cv or 0)} are needed.")
        return np.zeros(len(self.rows), np.int64), np.zeros(1)

    def _answers(self, pipeline: Any) -> bool:
        try:
            pipeline.predict(self.rows.table.slice(0, 1))
        except (AttributeError, NotFittedError):
            return False
        return True

    def _judge(self, model: Any, at: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> None:
        table, true = self.rows.at(at)
        self.missed.append((true, np.asarray(model.predict(table))))

    def _judgment(self) -> RegressionError | None:
        if not self.missed:
            return None
        true, predicted = (np.concatenate(part) for part in zip(*self.missed, strict=True))
        return RegressionError.of(true, predicted, self.doubt)

    def _calibration(self, at: np.ndarray, codes: np.ndarray) -> None:
        return None

    def _note_reference(self, at: np.ndarray, held_out: np.ndarray | None) -> None:
        pass

    def _class_shares(self) -> None:
        return None


def _chosen(classifier: Any) -> dict[str, Any]:
    """The settings that were given or found: where the fit has chosen one (`covariance_type_`), that one."""
    given = {name: value for name, value in classifier.get_params(deep=False).items() if name not in NOT_SETTABLE}
    out = {}
    for name, value in given.items():
        candidates = (getattr(classifier, f"{name}_degree_", None), getattr(classifier, f"{name}_", None), value)
        found = next((v for v in candidates if v is not None and np.ndim(v) == 0), None)
        if not hasattr(found, "get_params"):
            out[name] = found
    return out


def _members(classifier: Any) -> list[dict[str, Any]] | None:
    """Who is heard in a pool, and how much; None for other models."""
    if not isinstance(classifier, PooledClassifier):
        return None
    pairs = zip(classifier.members_, classifier.weights_.tolist(), strict=True)
    return [{"name": name, "weight": weight} for name, weight in pairs]


def _pool_watcher(bar: Working, title: str) -> Callable[[PoolProgress], None]:
    """Says of every member that was tried what became of it, how good the pool is by now, and what is left."""
    tried = 0

    def watch(info: PoolProgress) -> None:
        nonlocal tried
        tried += 1
        loss = f"held-out loss {info.loss:.4f}, " if np.isfinite(info.loss) else ""
        pool = f"; pool {info.pool_loss:.4f}" if info.outcome == "kept" else ""
        left = f"{len(info.left)} left" if info.left else "none left"
        bar.line(f"{title} {info.name}: {loss}{info.outcome}, {info.seconds:.1f} s{pool}; {left}")
        following = f"{title} {info.left[0]}" if info.left else title
        bar.at(tried, f"{tried} of {tried + len(info.left)} tried", following, tried + len(info.left))

    return watch


def _watcher(bar: Any, title: str, name: str) -> Callable[[Any], bool]:
    """Tells a progress bar of every sweep; never asks to stop."""

    def watch(info: Any) -> bool:
        start = f" start {info.start + 1}" if info.start else ""
        bar.at(info.sweep, f"sweep {info.sweep}, objective {info.objective:.4f}", f"{title} {name}{start}")
        return False

    return watch
