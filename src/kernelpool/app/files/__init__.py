"""Model files: one file, plain data, nothing that runs.

A model file is a `safetensors <https://huggingface.co/docs/safetensors>`_ container whose arrays
are the fitted numbers, and whose metadata hold a JSON header that says what they are. The format is
described in the guide, precisely enough to be read in another language. Loading trusts nothing:
only classes of a fixed list are rebuilt, and sizes, types, ranges and what the parts must be
together are checked before a model is returned.
"""

import json
import os
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import sklearn

from ...atomic import write_atomically
from ...errors import ModelFileError
from .codec import Writer
from .container import container_bytes, opened, parse_json, short
from .model_file import PARTS, ModelFile, overview, read_file

__all__ = ["FORMAT_VERSION", "ModelFile", "load", "load_file", "read_header", "save"]

FORMAT_VERSION = 3
"""Of the files that `save` writes. It rises when a reader of the old version could misunderstand a
new file.
"""

MAX_BYTES = 2 << 30
"""Largest file that is read unless asked for."""


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    summary: dict[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to one file that `load` can read and that holds no code.

    The file is written next to `path` and moved into place when it is complete: a crash leaves the
    old file or the new one.

    Parameters
    ----------
    estimator : fitted estimator or ModelFile
        Any estimator of this library, alone or behind a `StandardScaler` in a `Pipeline`; or a
        `ModelFile` of one, with what was recorded beside it. For pipelines of other transformers
        use skops or joblib; neither is checked by this library, and joblib runs whatever code a
        file holds.
    path : str or path
        Where to write; an existing file is replaced.
    summary : dict or None, default=None
        What to keep about the training, units of features for instance: anything that JSON can
        hold. None keeps that of a `ModelFile`.

    Raises
    ------
    ModelFileError
        If the estimator holds what a file cannot: a function, for instance, as `callback` or as the
        kernel of a `ParzenClassifier`.

    See Also
    --------
    load : Read the estimator back.
    kernelpool.app.files.load_file : Read all that was saved.

    Examples
    --------
    >>> import kernelpool, os, tempfile
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(200, random_state=0)
    >>> model = kernelpool.SharedKernelClassifier.prbf(n_kernels=4, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clouds.safetensors")
    ...     kernelpool.save(model, path, summary={"rows": 200})
    ...     again = kernelpool.load(path)
    ...     header = kernelpool.app.files.read_header(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    >>> header["estimator"], header["classes"], header["summary"]
    ('SharedKernelClassifier', [0, 1], {'rows': 200})
    """
    file = estimator if isinstance(estimator, ModelFile) else ModelFile(estimator)
    if summary is not None:
        file = replace(file, summary=summary)
    writer = Writer()
    header = {
        "overview": {
            "library_version": version("kernelpool"),
            "scikit_learn_version": sklearn.__version__,
            **overview(file.model),
            "summary": file.summary,
        },
        **{name: writer.value(getattr(file, name), name) for name in PARTS},
    }
    file.check()
    try:
        text = json.dumps(header, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        what = f"summary must hold only what JSON can: {short(str(error))}."
        raise ModelFileError(what) from None
    parse_json(text, "header")  # what is written can be read
    metadata = {"format": "kernelpool", "format_version": str(FORMAT_VERSION), "header": text}
    write_atomically(path, container_bytes(metadata, writer.arrays))


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
    return load_file(path, max_bytes=max_bytes).model


def load_file(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> ModelFile:
    """Read all that `save` has written: the model, its predictions of held-out rows, the reference
    for drift.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2 GiB
        A larger file is refused before anything of it is read.

    Returns
    -------
    file : ModelFile
        What the file does not hold is None.

    Raises
    ------
    ModelFileError
        As `load`; also where predictions and counts are none, or not of this model.

    See Also
    --------
    load : The model alone.

    Examples
    --------
    Thresholds that held-out rows set, of a model that was saved without any:

    >>> import kernelpool, os, tempfile
    >>> from kernelpool.app.files import ModelFile, load_file
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.inspection import predictions
    >>> X, y = make_clouds(200, random_state=0)
    >>> X_new, y_new = make_clouds(200, random_state=1)
    >>> model = kernelpool.SharedKernelClassifier.prbf(12, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clouds.safetensors")
    ...     kernelpool.save(ModelFile(model, predictions(model, X_new), y_new), path)
    ...     file = load_file(path)
    >>> reject = kernelpool.RejectClassifier.from_predictions(
    ...     file.model, file.calibration, file.codes, novelty=0.01
    ... )
    >>> reject.predict([[0.0, 0.0], [50.0, 50.0]])
    array([ 0, -1])
    """
    with opened(path, max_bytes) as container:
        return read_file(_header_of(container.metadata), container.arrays())


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
        of its class), ``parameters``, ``classes``, ``n_features``, ``feature_names``,
        ``summary``, and ``arrays``: the shape and dtype of each. Parameters that are no plain JSON
        are as in the file.
    """
    with opened(path) as container:
        header = _header_of(container.metadata)
    return {
        "format_version": FORMAT_VERSION,
        **header["overview"],
        "parameters": {k: v for k, v in header["model"]["fields"].items() if k[:1] != "_"},
        "arrays": {
            place.name: {"dtype": str(place.like.dtype), "shape": list(place.like.shape)}
            for place in container.places
        },
    }


# -- the header ------------------------------------------------------------------------------------


def _header_of(metadata: dict[str, str]) -> dict[str, Any]:
    """The header, checked."""
    number = metadata.get("format_version")
    if metadata.get("format") != "kernelpool" or "header" not in metadata:
        raise ModelFileError(
            f"This is a safetensors file, but not one of kernelpool's: its format is "
            f"{short(metadata.get('format'))}."
        )
    header = parse_json(metadata["header"], "header")
    if number != str(FORMAT_VERSION):
        raise ModelFileError(
            f"The file has format version {short(number)}, and kernelpool {version('kernelpool')} "
            f"reads version {FORMAT_VERSION}: fit and save the model anew, or load it with the "
            f"kernelpool that wrote it."
        )
    names = ("overview", *PARTS)
    match header:
        case {"overview": dict(), "model": {"fields": dict()}} if set(header) == set(names):
            return header
    raise ModelFileError(
        f"The header must be a JSON object of {', '.join(names)}; got {short(header)}."
    )
