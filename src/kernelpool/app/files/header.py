"""What a model file says of itself: versions, and what is told beside the model."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import sklearn

from ...errors import ModelFileError
from ...inspection import innermost
from .codec import read_model
from .container import check_depth, clipped, parse_json, short

FORMAT_VERSION = 1
"""Of the files that `save` writes. It rises when a reader of the old version could misunderstand a new file."""

HEADER = {
    "library_version",
    "scikit_learn_version",
    "estimator",
    "classes",
    "n_features",
    "feature_names",
    "units",
    "summary",
    "model",
}


def header_of(metadata: dict[str, str]) -> dict[str, Any]:
    """The header, checked."""
    if metadata.get("format") != "kernelpool":
        raise ModelFileError(
            f"This is a safetensors file, but not one of kernelpool's: its format is {short(metadata.get('format'))}."
        )
    number = metadata.get("format_version", "")
    if not (number.isascii() and number.isdigit() and len(number) <= 6):
        raise ModelFileError(f"The format version must be a whole number; got {short(number)}.")
    if "header" not in metadata:
        raise ModelFileError("The file has no header.")
    header = parse_json(metadata["header"], "header")
    if not isinstance(header, dict):
        raise ModelFileError("The header must be a JSON object.")
    if int(number) != FORMAT_VERSION:
        raise ModelFileError(
            f"The file has format version {number}, written by kernelpool {short(header.get('library_version'))}; "
            f"this is kernelpool {_library_version()}, which reads version {FORMAT_VERSION}. "
            f"Upgrade it (pip install --upgrade kernelpool), or save the model anew."
        )
    return _checked_header(header)


def _checked_header(header: dict[str, Any]) -> dict[str, Any]:
    if set(header) != HEADER:
        odd = sorted(set(header) ^ HEADER)
        raise ModelFileError(
            f"The header must have {', '.join(sorted(HEADER))}; {short(odd[0])} is missing or not known."
        )
    model, names, units = header["model"], header["feature_names"], header["units"]
    if not isinstance(model, dict) or not isinstance(model.get("parameters"), dict):
        raise ModelFileError("The header's model must be a JSON object with parameters.")
    for word in ("library_version", "scikit_learn_version", "estimator"):
        if not isinstance(header[word], str) or len(header[word]) > 100:
            raise ModelFileError(f"The header's {word} must be a short text.")
    for what, found in (("feature_names", names), ("units", units)):
        if found is not None and not (
            isinstance(found, list) and all(isinstance(name, str | None) for name in found)
        ):
            raise ModelFileError(f"The header's {what} must be a list of text, or null.")
    if header["summary"] is not None and not isinstance(header["summary"], dict):
        raise ModelFileError("The header's summary must be a JSON object, or null.")
    return header


def model_of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The estimator that the header describes; the two must say the same."""
    estimator = read_model(header["model"], arrays)
    try:
        glance = _at_a_glance(estimator)
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"The model in the file does not fit together: {clipped(error)}"
        ) from None
    for word, found in glance.items():
        if header[word] != found:
            raise ModelFileError(
                f"The header says {word} is {short(header[word])}; the model says {short(found)}."
            )
    return estimator


# -- what is told beside the model ------------------------------------------------------------------------------------------


def header_for(estimator: Any, summary: Any, units: Any) -> dict[str, Any]:
    """The header of a file to be written, but for the model itself."""
    names, n_features = _feature_names(estimator), getattr(estimator, "n_features_in_", None)
    return {
        "library_version": _library_version(),
        "scikit_learn_version": sklearn.__version__,
        **_at_a_glance(estimator),
        "units": _units_of(units, names, n_features),
        "summary": _summary_of(estimator) if summary is None else _checked_summary(summary),
    }


def _at_a_glance(estimator: Any) -> dict[str, Any]:
    """Told twice, for whoever reads the header alone; `load` compares."""
    classes, n_features = (
        getattr(estimator, "classes_", None),
        getattr(estimator, "n_features_in_", None),
    )
    names = _feature_names(estimator)
    return {
        "estimator": type(estimator).__name__,
        "classes": None
        if classes is None
        else [_plain(label) for label in np.ravel(classes).tolist()],
        "n_features": None if n_features is None else int(n_features),
        "feature_names": names,
    }


def _plain(label: Any) -> Any:
    return (
        label if label is None or isinstance(label, bool | int | str) or label == label else "NaN"
    )


def _feature_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _units_of(
    units: Any, names: list[str] | None, n_features: int | None
) -> list[str | None] | None:
    if units is None:
        return None
    if isinstance(units, Mapping):
        if names is None:
            raise ModelFileError(
                "units by name need an estimator that was fitted with feature names; give a list instead."
            )
        unknown = sorted(set(units) - set(names), key=str)
        if unknown:
            raise ModelFileError(f"units must name features; got {short(unknown[0])}.")
        found = [units.get(name) for name in names]
    else:
        found = list(units)
    if len(found) != n_features or not all(isinstance(unit, str | None) for unit in found):
        raise ModelFileError(
            f"units must be text, one for each of the {n_features} features; got {short(found)}."
        )
    return found


def _summary_of(estimator: Any) -> dict[str, Any]:
    last = innermost(estimator)
    told = {}
    for name in ("n_iter_", "converged_", "objective_", "loss_", "radius_"):
        value = getattr(last, name, None)
        if value is not None and np.isfinite(value):
            told[name.rstrip("_")] = value.item() if isinstance(value, np.generic) else value
    return told


def _checked_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(summary, Mapping):
        raise ModelFileError(f"summary must be a dict; got {type(summary).__name__}.")
    try:
        text = json.dumps(dict(summary), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"summary must hold only what JSON can: {clipped(error)}.") from None
    found: dict[str, Any] = parse_json(text, "summary")
    check_depth([[[found]]], "summary")
    return found


def _library_version() -> str:
    return version("kernelpool")
