"""Model files: one file, plain data, nothing that runs.

A model file is a `safetensors <https://huggingface.co/docs/safetensors>`_ container whose arrays are the fitted numbers, and
whose metadata hold a JSON header that says what they are. The format is described in the guide, precisely enough to be read in
another language. Loading trusts nothing: only classes of a fixed list are rebuilt, and sizes, types, ranges and what the parts
must be together are checked before a model is returned.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...errors import ModelFileError
from .codec import Writer
from .container import digest_of, read_contents, read_metadata, write_contents
from .header import FORMAT_VERSION, header_for, header_of, model_of

__all__ = ["FORMAT_VERSION", "load", "read_header", "save"]

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

    The file is written beside `path` and moved into place when it is complete: a crash leaves the old file or the
    new one.

    Parameters
    ----------
    estimator : fitted estimator
        Any estimator of this library, alone or behind a `StandardScaler` in a `Pipeline`. For pipelines of other transformers
        use skops or joblib; neither is checked by this library, and joblib runs whatever code a file holds.
    path : str or path
        Where to write; an existing file is replaced.
    summary : dict or None, default=None
        What to tell of the training: anything that JSON can hold. None takes what the estimator knows, such as `n_iter_`.
    units : dict of str, or sequence of str, or None, default=None
        The unit of each feature, by its name or in order; kept for whoever reads the file.

    Raises
    ------
    ModelFileError
        If the estimator holds what a file cannot: a function, for instance, as `callback` or as the kernel of a
        `ParzenClassifier`.

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
    header = {**header_for(estimator, summary, units), "model": model}
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
        Its predictions are those of the estimator that was saved, to the last bit, on the same machine with the same versions.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, of a newer format, or holds numbers that are no model.

    See Also
    --------
    save : Write it.
    read_header : What the file says of itself, without the arrays.
    """
    contents = read_contents(path, max_bytes)
    header = header_of(contents.metadata)
    if contents.metadata.get("sha256") != contents.digest:
        raise ModelFileError(
            "The file is damaged: it is not what was written (its SHA-256 differs). Save the model anew."
        )
    return model_of(header, contents.arrays)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself; no array is read, and nothing is rebuilt.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    header : dict
        ``format_version``, ``library_version``, ``scikit_learn_version``, ``estimator`` (the name of its class),
        ``parameters``, ``classes``, ``n_features``, ``feature_names``, ``units``, ``summary``, and ``arrays``: the shape and
        dtype of each.
        Parameters that are no plain JSON are told as in the file.
    """
    index = read_metadata(path)
    header = header_of(index.metadata)
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
