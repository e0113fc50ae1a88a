"""Model files: one file, plain data, nothing that runs.

A model file is a `safetensors <https://huggingface.co/docs/safetensors>`_ container whose arrays
are the fitted numbers, and whose metadata hold a JSON header that says what they are. The format is
described in the guide, precisely enough to be read in another language. Loading trusts nothing:
only classes of a fixed list are rebuilt, and sizes, types, ranges and what the parts must be
together are checked before a model is returned.
"""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from ...errors import ModelFileError
from ...inspection import innermost
from .codec import Writer, read_model
from .container import (
    check_depth,
    clipped,
    digest_of,
    parse_json,
    read_contents,
    read_metadata,
    short,
    write_contents,
)

__all__ = ["FORMAT_VERSION", "load", "read_header", "save"]

FORMAT_VERSION = 1
"""Of the files that `save` writes. It rises when a reader of the old version could misunderstand a
new file.
"""

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

MAX_BYTES = 2 << 30
"""Largest file that is read unless asked for."""


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    summary: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | Sequence[str] | None = None,
) -> None:
    """Write a fitted estimator to one file that `load` can read and that holds no code.

    The file is written beside `path` and moved into place when it is complete: a crash leaves the
    old file or the new one.

    Parameters
    ----------
    estimator : fitted estimator
        Any estimator of this library, alone or behind a `StandardScaler` in a `Pipeline`. For
        pipelines of other transformers use skops or joblib; neither is checked by this library, and
        joblib runs whatever code a file holds.
    path : str or path
        Where to write; an existing file is replaced.
    summary : dict or None, default=None
        What to tell of the training: anything that JSON can hold. None takes what the estimator
        knows, such as `n_iter_`.
    units : dict of str, or sequence of str, or None, default=None
        The unit of each feature, by its name or in order; kept for whoever reads the file.

    Raises
    ------
    ModelFileError
        If the estimator holds what a file cannot: a function, for instance, as `callback` or as the
        kernel of a `ParzenClassifier`.

    See Also
    --------
    load : Read it back.

    Examples
    --------
    >>> import kernelpool, os, tempfile
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(200, random_state=0)
    >>> model = kernelpool.SharedKernelClassifier.prbf(n_kernels=4, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clouds.safetensors")
    ...     kernelpool.save(model, path, summary={"rows": 200}, units=["m", "m"])
    ...     again = kernelpool.load(path)
    ...     header = kernelpool.app.files.read_header(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    >>> header["estimator"], header["classes"], header["summary"], header["units"]
    ('SharedKernelClassifier', [0, 1], {'rows': 200}, ['m', 'm'])
    """
    writer = Writer()
    model = writer.model(estimator)
    check_is_fitted(estimator)
    header = {**_header_for(estimator, summary, units), "model": model}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False)
    metadata = {"format": "kernelpool", "format_version": str(FORMAT_VERSION), "header": text}
    metadata["sha256"] = digest_of(metadata, writer.arrays)
    write_contents(path, metadata, writer.arrays)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read an estimator that `save` has written, ready to predict and to be fitted again.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2 GiB
        A larger file is refused before anything of it is read.

    Returns
    -------
    estimator : estimator
        Its predictions are those of the estimator that was saved, to the last bit, on the same
        machine with the same versions.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, of a newer format, or holds numbers that are no
        model.

    See Also
    --------
    save : Write it.
    read_header : What the file says of itself, without the arrays.
    """
    contents = read_contents(path, max_bytes)
    header = _header_of(contents.metadata)
    if contents.metadata.get("sha256") != contents.digest:
        raise ModelFileError(
            "The file is damaged: it is not what was written (its SHA-256 differs). Save the model "
            "anew."
        )
    return _model_of(header, contents.arrays)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself; no array is read, and nothing is rebuilt.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    header : dict
        ``format_version``, ``library_version``, ``scikit_learn_version``, ``estimator`` (the name
        of its class), ``parameters``, ``classes``, ``n_features``, ``feature_names``, ``units``,
        ``summary``, and ``arrays``: the shape and dtype of each. Parameters that are no plain JSON
        are told as in the file.
    """
    index = read_metadata(path)
    header = _header_of(index.metadata)
    model = header.pop("model")
    return {
        "format_version": int(index.metadata["format_version"]),
        **header,
        "parameters": model["parameters"],
        "arrays": {
            place.name: {"dtype": str(place.dtype), "shape": list(place.shape)}
            for place in index.places
        },
    }


# -- the header ------------------------------------------------------------------------------------


def _header_of(metadata: dict[str, str]) -> dict[str, Any]:
    """The header, checked."""
    if metadata.get("format") != "kernelpool":
        raise ModelFileError(
            f"This is a safetensors file, but not one of kernelpool's: its format is "
            f"{short(metadata.get('format'))}."
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
            f"The file has format version {number}, written by kernelpool "
            f"{short(header.get('library_version'))}; "
            f"this is kernelpool {_library_version()}, which reads version {FORMAT_VERSION}. "
            f"Upgrade it (pip install --upgrade kernelpool), or save the model anew."
        )
    return _checked_header(header)


def _checked_header(header: dict[str, Any]) -> dict[str, Any]:
    if set(header) != HEADER:
        odd = sorted(set(header) ^ HEADER)
        raise ModelFileError(
            f"The header must have {', '.join(sorted(HEADER))}; {short(odd[0])} is missing or not "
            f"known."
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


def _model_of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
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


# -- what is told beside the model -----------------------------------------------------------------


def _header_for(estimator: Any, summary: Any, units: Any) -> dict[str, Any]:
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
                "units by name need an estimator that was fitted with feature names; give a list "
                "instead."
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
