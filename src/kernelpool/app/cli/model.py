"""A model file together with what was recorded at the fit; `kernelpool info` and `export`.

What the file holds of its training is checked like any other input: anybody may have written it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ... import RejectClassifier, to_onnx
from ...errors import KernelpoolError, TableError
from ...inspection import describe
from ...tables.columns import Columns, Found
from ...tables.files import stem_of
from ...tables.kinds import arrow_codes
from ...tables.read import Batch, Scan, check_columns, labels_of, places_of, read_by, scan
from ...text import listed, percent, plural, quoted, shown
from ..files import ModelFile, load_file
from . import console as o
from .console import CommandError, Exit, Screen, check_free, placed

MARKED = 64
"""First rows by which the data of a fit are known again."""

RECORDED = ("command", "source", "seed", "settings", "held_out", "evaluated_by", "n_rows")
"""What `info` shows of the training."""

ONNX = "File to write; the name of MODEL with the ending .onnx unless given."
SWAPPED = "It has the name of a data file: the model comes first, then the data."


class LoadedModel:
    """A fitted classifier, and the columns that it takes."""

    def __init__(self, path: str, file: ModelFile) -> None:
        self.path = path
        self.file = file
        self.model: Any = file.model
        """What predicts: that of the file, or one around it that refuses rows."""
        self.summary = file.summary or {}
        """What was said of the training."""
        self.classes = np.asarray(self.model.classes_)
        n_features = int(self.model.n_features_in_)
        self.columns: Columns = getattr(self.model, "columns_", Columns.numbers(n_features))
        names = getattr(self.model, "feature_names_in_", None)
        self.names = None if names is None else list(map(str, names))
        """Of the features; None where the model was fitted without: columns go by their order."""
        target = self.summary.get("target")
        self.target = target if isinstance(target, str) else None
        """The target column of the fit."""
        self.unreadable = Counter[str]()
        self.unknown = Counter[str]()
        """Cells of the rows read last, by column: no numbers, and of categories that are not known."""
        self.n_incomplete = 0
        """Rows with missing cells among them."""
        self.is_training = False
        """Whether the first of these rows are those of the data of the fit."""

    # -- rows --------------------------------------------------------------------------------------

    def scan(self, data: str, text: Sequence[str] | None) -> Scan:
        """Data; how text is read is that of the fit unless `text` says otherwise."""
        fitted = self.summary.get("text")
        options = [t for t in fitted if isinstance(t, str)] if isinstance(fitted, list) else []
        return scan(data, o.read_options([*options, *(text or ())]))

    def batches(
        self,
        source: Scan,
        screen: Screen,
        title: str,
        target: str | None = None,
        keep: Sequence[str] = (),
    ) -> Iterator[tuple[Batch, Any, np.ndarray]]:
        """Batches, the features of their rows, and the positions of their labels among the classes,
        -1 where there is none.

        Features are matched by name and read as those of the fit were. Cells that cannot be are
        missing; they are counted, and warned of at the end.
        """
        check_columns([target] if target else [], source, "for the target")
        check_columns(keep, source, "to keep")
        names = self._names_in(source, {*keep, target, self.target}, screen)
        found = Found.none(len(names))
        with screen.working(f"{title} {source.label}"):
            for batch in source.batches():
                if batch.first == 0:
                    first = fingerprint(batch.table.select(names))
                    self.is_training = self.summary.get("first_rows") == first
                table, x = read_by(self.columns, batch, names, found)
                screen.note = plural(found.n_rows, "row")
                codes = np.full(len(x), -1)
                if target is not None:
                    codes = codes_of(batch, target, self.classes)
                yield batch, x if self.names is None else table, codes
        if not found.n_rows:
            raise TableError(f"{source.label}: no rows below the header.")
        self.n_incomplete = found.n_incomplete
        self.unreadable = +Counter(dict(zip(names, found.unreadable.tolist(), strict=True)))
        self.unknown = +Counter(dict(zip(names, found.unknown.tolist(), strict=True)))
        for sentence in filter(None, found.sentences(names)):
            screen.warn(sentence)

    def _names_in(self, source: Scan, skip: set[str | None], screen: Screen) -> list[str]:
        """The features among the columns of a source; others are passed over."""
        names = [name for name in source.names if name not in skip]
        if self.names is None:
            n_features = len(self.columns)
            if len(names) != n_features:
                raise TableError(
                    f"{source.label}: the model was fitted to {n_features} columns without names; "
                    f"there are {len(names)}: {listed(names)}."
                )
            return names
        check_columns(self.names, source, "that the model was fitted to")
        extra = [name for name in names if name not in self.names]
        if extra:
            screen.say(f"{source.label}: the model does not use {listed(extra, 8)}.")
        return self.names

    def warn_of_training(self, screen: Screen, what: str) -> None:
        """A line where the rows read last are those of the fit."""
        if self.is_training:
            screen.warn(f"the model was fitted to most of these rows: {what}.")

    # -- rows that are refused ---------------------------------------------------------------------

    def reject(
        self, reject: bool, ambiguity: float | None, novelty: float | None, screen: Screen
    ) -> None:
        """Refuse rows by the options; a classifier with thresholds of its own keeps these."""
        options: dict[str, Any] = {"ambiguity": ambiguity, "novelty": novelty}
        refuses = isinstance(self.model, RejectClassifier)
        if not any(value is not None for value in options.values()):
            if refuses or not reject:
                return
            options = {}  # as RejectClassifier has them
        inner = self.model.estimator_ if refuses else self.model
        file = self.file
        try:
            with screen.warnings():
                if file.calibration is None or file.codes is None:
                    self.model = RejectClassifier(inner, **options).fit()
                else:
                    self.model = RejectClassifier.from_predictions(
                        inner, file.calibration, file.codes, **options
                    )
        except KernelpoolError as error:
            raise CommandError(Exit.USAGE, f"--{shown(error, 400)}") from None


def codes_of(batch: Batch, name: str, classes: np.ndarray) -> np.ndarray:
    """Positions of labels among the classes of a model; -1 where there is no label."""
    names = classes.tolist()
    at, labels = arrow_codes(labels_of(batch, name))
    codes = np.array([*places_of(labels, names), -1])[at]
    if (codes == -2).any():
        first = int(np.argmax(codes == -2))
        raise TableError(
            f"{batch.place(first, name)}: unknown class {quoted(labels[at[first]])}; the model has "
            f"{listed(names, 8)}."
        )
    return codes


def fingerprint(table: Any) -> str:
    """Of the first rows, by which the data of a fit are known again."""
    cells = repr(table.slice(0, MARKED).to_pydict()).encode(errors="backslashreplace")
    return blake2b(cells, digest_size=16).hexdigest()


def load_model(path: str, screen: Screen) -> LoadedModel:
    """The classifier in a file; never runs code from it."""
    try:
        with screen.warnings():
            file = load_file(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(Exit.MODEL, f"{shown(path, 200)}: {reason}.") from None
    except KernelpoolError as error:
        swapped = f" {SWAPPED}" if stem_of(path) != Path(path).name else ""
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)} is not a model file that can be used: {error}{swapped}"
        ) from None
    if not hasattr(file.model, "predict_proba"):
        kind = type(file.model).__name__
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)}: {kind} is no classifier; use it from Python."
        )
    return LoadedModel(path, file)


# -- commands on a file alone ----------------------------------------------------------------------


def info(model: o.ModelPath, as_json: o.Json = False) -> None:
    """Describe a model file.

    What the model is, which columns it takes, what it predicts, and how it was made.

    Example: kernelpool info irises.safetensors
    """
    screen = Screen(as_json)
    loaded = load_model(model, screen)
    features = loaded.names and dict(zip(loaded.names, loaded.columns.kinds, strict=True))
    density = hasattr(loaded.model, "score_samples")
    record = {
        "model": loaded.path,
        "estimator": type(loaded.model).__name__,
        "sentence": shown(describe(loaded.model).sentence, 2000),
        "classes": loaded.classes.tolist(),
        "n_features": len(loaded.columns),
        "features": features,
        "target": loaded.target,
        "density": density,
        **{key: loaded.summary.get(key) for key in RECORDED},
    }
    screen.result(record["sentence"])
    lines = {
        "Classes": listed(record["classes"], 12),
        "Features": f"{record['n_features']}: {listed(list(features or ()), 12) or 'no names'}",
        "Target": record["target"],
        "Made by": record["command"],
        "From": record["source"],
        "Density": "known" if density else "not known",
    }
    held_out = record["held_out"]
    if isinstance(held_out, dict) and isinstance(held_out.get("error"), float):
        lines["Error"] = f"{percent(held_out['error'])} by {record['evaluated_by']}"
    screen.lines({name: shown(text, 300) for name, text in lines.items() if text})
    screen.answer(record)


def export(
    model: o.ModelPath,
    output: Annotated[str | None, o.option("--output -o", ONNX, "FILE")] = None,
    precision: Annotated[
        o.Precision,
        o.option("--precision", "mixed is float32 outside and float64 inside."),
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
            graph = to_onnx(loaded.model, precision=str(precision))
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
