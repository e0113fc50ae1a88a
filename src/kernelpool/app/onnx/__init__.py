"""ONNX: fitted networks as graphs of standard operators, for whoever predicts without Python.

The steps of a pipeline before a network are converted by skl2onnx.
"""

import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ...atomic import write_atomically
from ...decide.conformal import ConformalClassifier
from ...decide.reject import RejectClassifier
from ...errors import KernelpoolError, warn
from ...inspection import Inside, describe
from ...text import shorten
from .graph import IR_VERSION, OPSETS, Graph, Tensor
from .networks import CONVERTERS, coded, refused

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

    Its input is ``X``, (n, d), for any number of rows n. A model of a table with categories takes
    one input for each column instead, (n, 1), under the name of the column, with an underscore where
    an output has that name: text for categories, numbers elsewhere. A missing cell is NaN, or the empty text. A classifier returns ``label``
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
        that skl2onnx converts; or a `RejectClassifier` around any of these, which returns
        ``decision`` as well: 0 for an accepted row, 1 for an ambiguous, 2 for a novel one.
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
    graph does not, also where rows of the fit had missing cells: onnxruntime ends a run with an
    error that says so where a cell is missing.

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
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    steps, last = _steps_and_network(estimator)
    outside, inside = map(np.dtype, PRECISIONS[precision])
    g = Graph(inside)
    inputs, x = _inputs(g, steps, last, outside)
    answers = CONVERTERS[type(last)](x, last)
    if hasattr(last, "classes_"):
        code = g.op("ArgMax", answers.pop("scores"), axis=1, keepdims=0)
        answers = {"label": g.op("Gather", np.asarray(last.classes_), code)} | answers
    if isinstance(estimator, RejectClassifier):
        answers = refused(answers, estimator, np.asarray(last.classes_))
    if steps is not None:
        behind = Inside(estimator)
        g.offset = max(g.offset, float(np.max(np.abs(behind.offset / behind.scale))))
    if outside == np.float32 and g.offset * np.finfo(np.float32).eps > COARSE:
        warn(
            "Values of a feature of X are so large for their width that float32 inputs lose digits "
            "that count: answers will differ from those in Python. Pass precision='float64'.",
            UserWarning,
        )
    outputs = _outputs(g, answers, estimator, last, outside)
    model = _model(g, type(last).__name__, inputs, outputs)
    _add_metadata(model, estimator, last, inputs, g.complete)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def _steps_and_network(estimator: Any) -> tuple[Any, Any]:
    """The steps before the network, a Pipeline or None, and the network."""
    inner = estimator.estimator_ if isinstance(estimator, RejectClassifier) else estimator
    steps, last = (inner[:-1], inner[-1]) if isinstance(inner, Pipeline) else (None, inner)
    if isinstance(last, ConformalClassifier):
        raise KernelpoolError(
            "ConformalClassifier cannot be exported to ONNX, which has no sets of classes: export "
            "one of its classifiers, such as model.estimators_[0], and compare its answers with "
            "calibration_probability_ and calibration_density_."
        )
    if type(last) not in CONVERTERS:
        known = ", ".join(sorted(cls.__name__ for cls in CONVERTERS))
        raise KernelpoolError(
            f"{type(last).__name__} cannot be exported to ONNX; expected one of {known}, or a "
            f"Pipeline that ends with one."
        )
    return steps or None, last


# -- inputs and outputs ----------------------------------------------------------------------------

OUTPUTS = (
    "label",
    "probabilities",
    "log_density",
    "score_samples",
    "prediction",
    "std",
    "decision",
)
"""Names that a graph has for its answers; a column of such a name gets another."""


def free_names(columns: Sequence[str]) -> list[str]:
    """The names of columns, with underscores behind those that are taken."""
    names: dict[str, None] = {}
    for at, column in enumerate(columns):
        name = (
            column.encode("utf-8", "replace").decode("utf-8") or f"x{at}"
        )  # half a character is no text, and "" is no name
        while name in OUTPUTS or name in names:
            name += "_"
        names[name] = None
    return list(names)


def _inputs(g: Graph, steps: Any, network: Any, outside: Any) -> tuple[list[Any], Tensor]:
    """The inputs (name, column, type, width), and the rows that the network takes."""
    columns = network.columns_
    if steps is None and any(columns.levels):
        names = list(columns.names or (f"x{i}" for i in range(len(columns.levels))))
        kinds = [np.dtype(str) if n else outside for n in columns.levels]
        free = free_names(names)
        inputs = list(zip(free, names, kinds, [1] * len(free), strict=True))
        return inputs, coded([Tensor(g, name) for name in free], network)
    width = len(columns.levels) if steps is None else int(steps[0].n_features_in_)
    x = Tensor(g, "X").astype(g.dtype)
    return [("X", "X", outside, width)], x if steps is None else _stepped(g, steps, x, width)


def _stepped(g: Graph, steps: Any, x: Tensor, n_features: int) -> Tensor:
    """Rows behind the steps of a pipeline before the network, by skl2onnx."""
    from onnx import compose
    from skl2onnx import convert_sklearn
    from skl2onnx.common import data_types as types

    number = types.DoubleTensorType if g.dtype == np.float64 else types.FloatTensorType
    initial = [("X", number([None, n_features]))]
    try:
        made = convert_sklearn(steps, initial_types=initial, target_opset=OPSETS)
    except Exception as error:  # skl2onnx raises many kinds where it has no answer
        raise KernelpoolError(
            f"A step before the classifier cannot be exported to ONNX: "
            f"{shorten(' '.join(str(error).split()), 300)} "
            f"Export the last step alone, and transform the rows yourself."
        ) from None
    graph = compose.add_prefix(made, "steps/").graph
    g.op("Identity", x, name=graph.input[0].name)
    g.nodes += graph.node
    g.constants += graph.initializer
    return Tensor(g, graph.output[0].name).astype(g.dtype)


def _outputs(g: Graph, answers: Any, estimator: Any, network: Any, outside: Any) -> list[Any]:
    """Name, type and further axes of each answer, which is cast to its type."""
    if hasattr(network, "classes_"):
        axes: list[int] = [len(network.classes_)]
    else:
        axes = [] if network.single_output_ else [int(network.readout_.shape[1])]
    classes = np.asarray(getattr(network, "classes_", 0)).dtype
    whole = np.dtype(np.int64)
    label = {"U": classes, "O": classes, "b": classes, "f": g.dtype}.get(classes.kind, whole)
    if isinstance(estimator, RejectClassifier) and classes.kind == "b":
        label = whole
    found = []
    for name, made in answers.items():
        kind = {"label": label, "decision": whole}.get(name, outside)
        rows = name in ("label", "decision", "score_samples")
        found.append((name, kind, [] if rows else axes))
        if kind == outside:
            g.op("Cast", made, name=name, to=g.kind(kind))
        else:
            g.op("Identity", made, name=name)
    return found


def _model(g: Graph, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
    from onnx import helper

    taken = [
        helper.make_tensor_value_info(given, g.kind(kind), ["n", width])
        for given, _, kind, width in inputs
    ]
    made = [
        helper.make_tensor_value_info(answer, g.kind(kind), ["n", *axes])
        for answer, kind, axes in outputs
    ]
    graph = helper.make_graph(g.nodes, name, taken, made, initializer=g.constants)
    domains = {"", *(node.domain for node in g.nodes)}
    opsets = [helper.make_opsetid(domain, OPSETS[domain]) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _add_metadata(model: Any, estimator: Any, last: Any, inputs: list[Any], complete: bool) -> None:
    """What the model is, and what its numbers mean."""
    from onnx import helper

    number = version("kernelpool")
    model.producer_name = "kernelpool"
    model.producer_version = number
    model.doc_string = describe(
        estimator if isinstance(estimator, RejectClassifier) else last
    ).sentence
    about = {"estimator": type(estimator).__name__, "kernelpool_version": number}
    about["missing_cells"] = "refused" if complete else "integrated out"
    if hasattr(last, "classes_"):
        about["classes"] = json.dumps(np.asarray(last.classes_).tolist())
    if isinstance(estimator, RejectClassifier):
        about["refusals"] = json.dumps([estimator.ambiguous_label_, estimator.novel_label_])
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        about["feature_names"] = json.dumps([str(name) for name in names])
    if [name for name, *_ in inputs] != ["X"]:
        about["inputs"] = json.dumps(
            [
                {
                    "name": name,
                    "column": column,
                    "kind": "category" if kind.kind == "U" else "number",
                }
                for name, column, kind, _ in inputs
            ]
        )
    helper.set_model_props(model, about)
