"""`kernelpool check`: whether new rows are like those of the fit."""

from typing import Annotated, Any

import numpy as np
import typer

from ...errors import KernelpoolError
from ...inspection import DriftReference, prior_from_probability
from ...text import shown
from ..readers.files import Source
from . import options as o
from .loaded import LoadedModel, load_model
from .output import CommandError, Exit, Screen

ALARM = "End with exit code 7 where the p-value is below this."


def check(
    model: o.ModelPath,
    data: o.Data,
    text: o.Text = None,
    alarm: Annotated[
        float | None, o.evaluation("--alarm", metavar="P", min=0, max=1, help=ALARM)
    ] = None,
    confidence: o.Confidence = 0.95,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Test whether new rows are like those that a model was fitted to.

    Compares every feature, and the density of the model, with counts of the rows of the fit; names
    the features that have changed; and estimates how frequent the classes are among the new rows.
    No labels are needed.

    Example: kernelpool check irises.safetensors new.csv --alarm 0.01
    """
    screen = Screen(as_json, quiet)
    loaded, source = load_model(model, screen), Source(data, o.text_style(text))
    reference, shares = _reference(loaded), class_shares(loaded)
    counts: Any = None
    sample: list[np.ndarray] = []
    for _, table in loaded.tables(source, screen, "Checking"):
        found = reference.count(table, loaded.model)
        counts = found if counts is None else counts + found
        sample.append(np.asarray(loaded.model.predict_proba(table), np.float32))
    drift = reference.compare(counts)
    screen.result(str(drift))
    record: dict[str, Any] = {"rows": source.label, **drift.to_dict(), "moved": drift.moved()}
    if shares is not None:
        estimate = prior_from_probability(
            np.concatenate(sample), shares, loaded.classes, confidence
        )
        screen.result(str(estimate))
        if drift.moved():
            screen.result(
                "These frequencies hold only where nothing but they has changed: features have."
            )
        record["class_frequencies"] = estimate.to_dict()
    screen.answer(record)
    if alarm is not None and drift.p_value < alarm:
        raise typer.Exit(Exit.REFUTED)


def _reference(loaded: LoadedModel) -> DriftReference:
    """The counts of the rows of the fit in the model file."""
    try:
        return DriftReference.from_dict(loaded.summary["reference"])
    except KeyError:
        what = "has no counts of the rows of its fit: fit it by `kernelpool fit`."
        raise CommandError(Exit.MODEL, f"{shown(loaded.path, 200)} {what}") from None
    except KernelpoolError as error:
        raise CommandError(Exit.MODEL, f"{shown(loaded.path, 200)}: {shown(error, 200)}") from None


def class_shares(loaded: LoadedModel) -> np.ndarray | None:
    """Frequencies of the classes at the fit, where the file has them, (K,)."""
    try:
        shares = np.array(loaded.summary["class_shares"], np.float64)
    except (KeyError, TypeError, ValueError):
        return None
    fits = shares.shape == loaded.classes.shape and (shares >= 0).all() and shares.sum() > 0
    return shares / shares.sum() if fits else None
