"""ONNX: fitted networks as graphs of standard operators, for whoever predicts without Python.

The steps of a pipeline before a network are converted by skl2onnx.
"""

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...atomic import write_atomically
from ...errors import KernelpoolError, warn
from ...inspection.pipeline import (
    FittedPipeline,
    exported,
    feature_names,
    graph_answers,
    layers,
)
from ...text import listed
from .graph import Graph
from .inputs import inputs_of
from .outputs import add_metadata, model_of

__all__ = ["to_onnx"]

PRECISIONS = {
    "mixed": (np.float32, np.float64),
    "float32": (np.float32, np.float32),
    "float64": (np.float64, np.float64),
}
"""Types of what goes in and out, and of what is computed in between."""

COARSE = 1e-3
"""Rounding of the inputs, as a part of a feature's width, from which on answers may differ."""


def to_onnx(
    estimator: Any, path: str | os.PathLike[str] | None = None, *, precision: str = "mixed"
) -> Any:
    """A fitted estimator as an ONNX model that needs a runtime such as onnxruntime, and nothing of
    this library.

    Its input is ``X``, (n, d), for any number of rows n. A model of a table with categories or dates
    takes one input for each column instead, (n, 1), under the name of the column, with an underscore
    where an output has that name: text for categories, without space around it; numbers elsewhere,
    dates as days since 1970. A missing cell is NaN, or text that stands for one, such as none at
    all. A classifier returns ``label``
    (int64, or text) and ``probabilities`` (n, K); one that knows densities also ``log_density`` (n,
    K), log p(x|C_k), and ``score_samples`` (n,), log p(x). A regressor returns ``prediction`` and
    ``std``.

    Parameters
    ----------
    estimator : fitted estimator
        `PooledClassifier` (of networks that can be exported), `SharedKernelClassifier`,
        `SharingAverageClassifier`, `ParzenClassifier` and `ReducedParzenClassifier` (with a named
        kernel), `RBFNetworkClassifier`, `EMLogClassifier`, `EMLogRegressor`,
        `CompetitiveNeuronsClassifier`; a `Pipeline` that ends with one of them, after transformers
        that skl2onnx converts; a search, for the model that it chose; or a `RejectClassifier` around
        any of these, which returns ``decision`` as well: 0 for an accepted row, 1 for an ambiguous,
        2 for a novel one.
    path : str, path or None, default=None
        Where to write the model, if anywhere; all at once or not at all.
    precision : {"mixed", "float32", "float64"}, default="mixed"
        "mixed" takes and returns float32 and computes in float64; "float32" computes in float32 as
        well, for runtimes that know nothing else; "float64" takes and returns float64.

    Returns
    -------
    model : onnx.ModelProto
        The model; its metadata hold the class names, the feature names, the columns behind the
        inputs where there is more than one, what becomes of ``missing_cells`` ("refused" or
        "integrated out"), and the version of this library.

    Raises
    ------
    KernelpoolError
        If the estimator cannot be expressed in ONNX, or skl2onnx is not installed (``pip install
        ".[onnx]"`` in its folder).

    Notes
    -----
    `SharedKernelClassifier` and `SharingAverageClassifier` integrate missing cells out in the
    graph, as they do in Python. The other networks average over imputations in Python, which the
    graph does not: onnxruntime ends a run with an error that says so where a cell is missing. A
    warning names the columns of which rows of the fit had missing cells.

    Examples
    --------
    >>> import kernelpool
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(200, random_state=0)
    >>> model = kernelpool.SharedKernelClassifier.prbf(n_kernels=4, random_state=0).fit(X, y)
    >>> graph = kernelpool.to_onnx(model).graph
    >>> [output.name for output in graph.output]
    ['label', 'probabilities', 'log_density', 'score_samples']
    """
    if precision not in PRECISIONS:
        raise KernelpoolError(f"precision must be one of {sorted(PRECISIONS)}; got {precision!r}.")
    try:
        import onnx
        import skl2onnx  # noqa: F401
    except ImportError:
        raise KernelpoolError(
            "to_onnx needs skl2onnx: pip install '.[onnx]' in kernelpool's folder."
        ) from None
    check_is_fitted(estimator)
    exported(estimator)
    (*_, network), steps = layers(estimator)
    outside, inside = map(np.dtype, PRECISIONS[precision])
    g = Graph(inside)
    inputs, x = inputs_of(g, steps, network, outside)
    answers = graph_answers(estimator, x)
    if "scores" in answers:
        code = answers.pop("scores").argmax(axis=1)
        classes = g.constant(network.classes_)
        answers = {"label": classes.node("Gather", code)} | answers
    behind = FittedPipeline(estimator)
    g.offset = max(g.offset, float(np.max(np.abs(behind.offset / behind.scale))))
    if outside == np.float32 and g.offset * np.finfo(np.float32).eps > COARSE:
        warn(
            "Values of a feature of X are so large for their width that float32 inputs lose digits "
            "that count: answers will differ from those in Python. Pass precision='float64'.",
            UserWarning,
        )
    columns = network.columns_
    if g.complete and columns.incomplete:
        names = feature_names(columns)
        lacking = listed([names[i] for i in columns.incomplete], 8)
        warn(
            "The graph refuses rows with missing cells, which rows of the fit had in "
            f"{lacking}: impute these first, or export a SharedKernelClassifier, whose graph "
            "integrates them out.",
            UserWarning,
        )
    model = model_of(g, type(network).__name__, inputs, answers, outside)
    add_metadata(model, estimator, inputs, behind.input.names, g.complete)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model
