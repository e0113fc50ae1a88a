"""Outputs of an exported model, and the model around its graph: types, names and metadata."""

import json
from importlib.metadata import version
from typing import Any

import numpy as np

from ...decide.reject import RejectClassifier
from ...inspection import describe
from .graph import IR_VERSION, OPSETS, Graph

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


def outputs_of(g: Graph, answers: Any, estimator: Any, network: Any, outside: Any) -> list[Any]:
    """Name, type and further axes of each answer, which is cast to its type."""
    classes = np.asarray(getattr(network, "classes_", 0)).dtype
    whole = np.dtype(np.int64)
    label = {"U": classes, "O": classes, "b": classes, "f": g.dtype}.get(classes.kind, whole)
    if isinstance(estimator, RejectClassifier) and classes.kind == "b":
        label = whole
    types = {"label": label, "decision": whole}
    axes: list[int] = []
    if hasattr(network, "classes_"):
        axes = [len(network.classes_)]
    elif not network.single_output_:
        axes = [network.readout_.shape[1]]
    outputs = []
    for name, answer in answers.items():
        dtype = types.get(name, outside)
        outputs.append((name, dtype, [] if name in (*types, "score_samples") else axes))
        if name in types:
            g.op("Identity", answer, name=name)
        else:
            g.op("Cast", answer, name=name, to=g.kind(dtype))
    return outputs


def model_of(g: Graph, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
    """The model of a graph with these inputs and outputs."""
    from onnx import helper

    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes,
        name,
        [tensor(key, g.kind(dtype), ["n", width]) for key, _, dtype, width in inputs],
        [tensor(key, g.kind(dtype), ["n", *axes]) for key, dtype, axes in outputs],
        initializer=g.constants,
    )
    domains = {"", *(node.domain for node in g.nodes)}
    opsets = [helper.make_opsetid(domain, OPSETS[domain]) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def add_metadata(model: Any, estimator: Any, last: Any, inputs: list[Any], complete: bool) -> None:
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
