"""A model file together with what was recorded at the fit; `kernelpool info` and `export`.

What the file holds of its training is checked like any other input: anybody may have written it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ... import RejectClassifier, load, to_onnx
from ...decide.reject import DEFAULT_AMBIGUITY, DEFAULT_NOVELTY, novelty_threshold
from ...errors import KernelpoolError, TableError
from ...inspection import ambiguity_of, describe
from ...tables.files import stem_of
from ...tables.kinds import NUMBER
from ...tables.read import Batch, Scan, check_columns
from ...text import listed, percent, plural, quoted, shown
from ..files import read_header
from ..readers.table import (
    Rows,
    codes_of,
    fingerprint,
    row_ids,
    table_of,
)
from . import console as o
from .console import CommandError, Exit, Screen, check_free, placed

RECORDED = ("command", "source", "seed", "settings", "held_out", "evaluated_by", "n_rows")
"""What `info` shows of the training."""

ONNX = "File to write; the name of MODEL with the ending .onnx unless given."
SWAPPED = "It has the name of a data file: the model comes first, then the data."


@dataclass
class LoadedModel:
    """A fitted classifier, and the columns that it takes."""

    model: Any
    path: str
    summary: dict[str, Any]
    kinds: dict[str, str] | None
    """Of the features; None where the model was fitted without names: columns go by their order."""
    saved: Any
    """The model, or the `RejectClassifier` around it."""
    ambiguity: float | None = None
    lowest: float | None = None
    """Thresholds of ambiguity and of log p(x); a `RejectClassifier` has its own."""
    unreadable: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    """Cells of the rows read last, by column: no numbers, and of categories that are not known."""
    n_incomplete: int = 0
    """Rows with missing cells among them."""

    @property
    def classes(self) -> np.ndarray:
        return np.asarray(self.model.classes_)

    @property
    def has_density(self) -> bool:
        """Whether log p(x) is known."""
        return hasattr(self.model, "score_samples")

    @property
    def target(self) -> str | None:
        """The target column of the fit."""
        name = self.summary.get("target")
        return name if isinstance(name, str) else None

    def recorded(self, key: str, read: Callable[[Any], Any]) -> Any:
        """What the file holds of its training, as `read` makes it; None where that is not
        possible.
        """
        try:
            return read(self.summary[key])
        except (KeyError, IndexError, TypeError, ValueError):
            return None

    # -- rows --------------------------------------------------------------------------------------

    def tables(
        self, source: Scan, screen: Screen, title: str, skip: tuple[str | None, ...] = ()
    ) -> Iterator[tuple[Batch, Any]]:
        """Batches, and the features of their rows, which are matched by name."""
        kinds = None
        n_rows = 0
        counts = (Counter[str](), Counter[str]())
        columns = getattr(self.model, "columns_", None)  # other estimators have none
        self.n_incomplete = 0
        with screen.working(f"{title} {source.label}"):
            for batch in source.batches():
                kinds = kinds or self._kinds_in(source, {*skip, self.target}, screen)
                table, unreadable = table_of(batch, kinds)
                counts[0].update(unreadable)
                if columns is not None and self.kinds is not None:
                    counts[1].update({k: n for k, n in columns.unknown(table).items() if n})
                self.n_incomplete += len(table) - len(table.drop_null())
                n_rows += len(table)
                screen.note = plural(n_rows, "row")
                yield batch, table if self.kinds is not None else np.column_stack(table.columns)
        if not n_rows:
            self._kinds_in(source, {*skip, self.target}, screen)
            raise TableError(f"{source.label}: no rows below the header.")
        self.unreadable, self.unknown = map(dict, counts)
        for n_cells, what in (
            (counts[0], "that are no finite numbers are taken as missing"),
            (counts[1], "hold values that were not there when the model was fitted"),
        ):
            if n_cells:
                names = ", ".join(f"{quoted(name)} {n:,}" for name, n in n_cells.most_common(8))
                screen.warn(f"{plural(n_cells.total(), 'cell')} {what}: {names}.")

    def _kinds_in(self, source: Scan, skip: set[str | None], screen: Screen) -> dict[str, str]:
        """The features among the columns of a source; others are passed over."""
        names = [name for name in source.names if name not in skip]
        if self.kinds is None:
            n_features = self.model.n_features_in_
            if len(names) != n_features:
                raise TableError(
                    f"{source.label}: the model was fitted to {n_features} columns without names; "
                    f"there are {len(names)}: {listed(names)}."
                )
            return dict.fromkeys(names, NUMBER)
        present = set(source.names)
        missing = [name for name in self.kinds if name not in present]
        extra = [name for name in names if name not in self.kinds]
        if missing:
            raise TableError(
                f"{source.label}: the columns are not those that the model was fitted to: it lacks "
                f"{listed(missing, 8)}.{f' It has {listed(extra, 8)} besides.' if extra else ''}",
                missing_columns=missing,
                extra_columns=extra,
            )
        if extra:
            screen.say(f"{source.label}: the model does not use {listed(extra, 8)}.")
        return self.kinds

    def labeled(
        self,
        source: Scan,
        target: str | None,
        screen: Screen,
        title: str,
        keep: tuple[str, ...] = (),
    ) -> Iterator[tuple[Batch, Any, np.ndarray]]:
        """The same with codes of the classes, all -1 where the source has no column of them."""
        column = target or self.target
        for batch, table in self.tables(source, screen, title, (*keep, column)):
            check_columns(keep, source, "to show")
            check_columns([target] if target else [], source, "for the target")
            if batch.row == 1 and self.summary.get("fingerprint") == fingerprint(table):
                screen.warn("the model was fitted to these first rows: errors on them are too low.")
            codes = np.full(len(table), -1)
            if column in source.names:
                codes = codes_of(batch, str(column), self.classes)
            yield batch, table, codes

    def read(
        self, source: Scan, target: str | None, screen: Screen, keep: tuple[str, ...] = ()
    ) -> Rows:
        """All rows of a source, with labels where it has them."""
        import pyarrow as pa

        if self.kinds is None:
            what = "was fitted without names of columns"
            raise CommandError(Exit.MODEL, f"{shown(self.path, 200)} {what}.")
        batches, tables, codes = zip(
            *self.labeled(source, target, screen, "Reading", keep), strict=True
        )
        labels = np.array([*self.classes.tolist(), None], object)
        table = pa.concat_tables(tables).combine_chunks()
        y = labels[np.concatenate(codes)]
        column = target or self.target or ""
        ids = row_ids(batches, keep)
        return Rows(table, y, self.kinds, column, source.label, ids)

    # -- predictions -------------------------------------------------------------------------------

    def predictions(
        self, table: Any, with_score: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Probabilities (n, K); log p(x) (n,), where known; and decisions (n,), where any are made.

        A row is accepted (0), ambiguous (1) or novel (2).
        """
        probability = np.asarray(self.model.predict_proba(table), np.float64)
        score = None
        decision = np.zeros(len(probability), int)
        if self.lowest is not None or (with_score and self.has_density):
            score = np.asarray(self.model.score_samples(table), np.float64)
        if self.ambiguity is not None:
            decision[~(ambiguity_of(probability) <= self.ambiguity)] = 1
        if score is not None and self.lowest is not None:
            decision[~(score >= self.lowest)] = 2  # NaN is novel
        decides = self.ambiguity is not None or self.lowest is not None
        return probability, score, decision if decides else None

    def reject(
        self, reject: bool, ambiguity: float | None, novelty: float | None, screen: Screen
    ) -> None:
        """Set the thresholds of the options; a classifier with its own keeps these."""
        densities = self.recorded("held_out_densities", _lowest_densities)
        if ambiguity is None and novelty is None:
            if not reject or self.saved is not self.model:
                return
            ambiguity = DEFAULT_AMBIGUITY
            novelty = DEFAULT_NOVELTY if densities is not None and self.has_density else None
            if novelty is None:
                screen.warn("the model cannot detect novel rows: only ambiguous ones are rejected.")
        self.ambiguity = ambiguity
        self.lowest = None
        if novelty is None:
            return
        if densities is None or not self.has_density:
            why = "fitted without held-out rows" if self.has_density else "one without densities"
            raise CommandError(Exit.MODEL, f"--novelty is not possible: the model is {why}.")
        n, lowest = densities
        # the others of the n held-out densities are above these
        score = np.append(lowest, np.inf)
        weight = np.append(np.ones(len(lowest)), n - len(lowest))
        if novelty * (n + 1) >= len(lowest) + 1:
            most = len(lowest) / (n + 1)
            raise CommandError(
                Exit.USAGE, f"--novelty must be at most {most:.3g}; got {novelty:g}."
            )
        with screen.warnings():
            self.lowest = novelty_threshold(novelty, score, weight)


def _lowest_densities(recorded: Any) -> tuple[int, list[float]]:
    """How many rows were held out, and the lowest of their densities."""
    n = int(recorded["n_rows"])
    lowest = list(map(float, recorded["lowest"]))
    if not 0 < len(lowest) <= n:
        raise ValueError
    return n, lowest


def load_model(path: str, screen: Screen) -> LoadedModel:
    """The classifier in a file; never runs code from it."""
    try:
        with screen.warnings():
            model = load(path)
            header = read_header(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(Exit.MODEL, f"{shown(path, 200)}: {reason}.") from None
    except KernelpoolError as error:
        swapped = f" {SWAPPED}" if stem_of(path) != Path(path).name else ""
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)} is not a model file that can be used: {error}{swapped}"
        ) from None
    if not hasattr(model, "predict_proba"):
        kind = type(model).__name__
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)}: {kind} is no classifier; use it from Python."
        )
    summary = header.get("summary") or {}
    if not isinstance(model, RejectClassifier):
        return LoadedModel(model, path, summary, _kinds(model), model)
    inner = model.estimator_
    thresholds = (model.ambiguity_threshold_, model.novelty_threshold_)
    return LoadedModel(inner, path, summary, _kinds(inner), model, *thresholds)


def _kinds(model: Any) -> dict[str, str] | None:
    """The kind of each feature; None where a model was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    columns = getattr(model, "columns_", None)
    kinds = [NUMBER] * len(names) if columns is None else columns.kinds
    return dict(zip(map(str, names), kinds, strict=True))


# -- commands on a file alone ----------------------------------------------------------------------


def info(model: o.ModelPath, as_json: o.Json = False) -> None:
    """Describe a model file.

    What the model is, which columns it takes, what it predicts, and how it was made.

    Example: kernelpool info irises.safetensors
    """
    screen = Screen(as_json)
    loaded = load_model(model, screen)
    record = {
        "model": loaded.path,
        "estimator": type(loaded.model).__name__,
        "sentence": shown(describe(loaded.model).sentence, 2000),
        "classes": loaded.classes.tolist(),
        "n_features": int(loaded.model.n_features_in_),
        "features": loaded.kinds,
        "target": loaded.target,
        "density": loaded.has_density,
        **{key: loaded.summary.get(key) for key in RECORDED},
    }
    screen.result(record["sentence"])
    lines = {
        "Classes": listed(record["classes"], 12),
        "Features": f"{record['n_features']}: {listed(list(loaded.kinds or ()), 12) or 'no names'}",
        "Target": record["target"],
        "Made by": record["command"],
        "From": record["source"],
        "Density": "known" if loaded.has_density else "not known",
    }
    held_out = record["held_out"]
    if isinstance(held_out, dict) and isinstance(held_out.get("error"), float):
        lines["Error"] = f"{percent(held_out['error'])} by {record['evaluated_by']}"
    for name, text in lines.items():
        if text:
            screen.result(f"{name + ':':10} {shown(text, 300)}")
    screen.answer(record)


def export(
    model: o.ModelPath,
    output: Annotated[str | None, typer.Option("--output", "-o", help=ONNX, metavar="FILE")] = None,
    precision: Annotated[
        o.Precision,
        typer.Option("--precision", help="mixed is float32 outside and float64 inside."),
    ] = o.Precision.MIXED,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Write a model as ONNX, to be run by onnxruntime and others.

    Its input X has the columns of the fit in their order; a model with categories has an input for
    each column instead, under its name. The outputs are label, probabilities and, where known,
    log_density and score_samples. Rows with missing cells end a run, except of shared-kernel models.

    Example: kernelpool export irises.safetensors -o irises.onnx
    """
    screen = Screen(as_json)
    path = output or f"{model.removesuffix('.safetensors')}.onnx"
    check_free(path, force)
    loaded = load_model(model, screen)
    try:
        with screen.warnings():
            graph = to_onnx(loaded.saved, precision=str(precision))
    except KernelpoolError as error:
        code = Exit.EXTRA if "pip install" in str(error) else Exit.MODEL
        raise CommandError(code, f"{shown(model, 200)}: {error}") from None
    missing = {entry.key: entry.value for entry in graph.metadata_props}["missing_cells"]
    with placed(path, force) as temporary:
        Path(temporary).write_bytes(graph.SerializeToString())
    inputs, outputs = (
        [entry.name for entry in entries] for entries in (graph.graph.input, graph.graph.output)
    )
    screen.result(f"ONNX: {shown(path, 400)}, with {', '.join(outputs)}")
    if inputs != ["X"]:
        screen.result(f"{plural(len(inputs), 'input')}, each (n, 1): {listed(inputs, 12)}")
    screen.answer({"onnx": path, "inputs": inputs, "outputs": outputs, "missing_cells": missing})
