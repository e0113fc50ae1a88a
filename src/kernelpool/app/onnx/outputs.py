"""Outputs of an exported model, and the model around its graph: types, names and metadata."""

import json
from importlib.metadata import version
from typing import Any

from ...decide.reject import RejectClassifier
from ...inspection.description import describe
from ...inspection.pipeline import exported
from .graph import IR_VERSION, OPSETS, Graph, Tensor, kind_of

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


def model_of(
    g: Graph, name: str, inputs: list[Any], answers: dict[str, Tensor], outside: Any
) -> Any:
    """The model of a graph with these inputs and answers; numbers among them go out as `outside`."""
    from onnx import helper, shape_inference

    outputs = []
    for key, answer in answers.items():
        is_number = answer.dtype == g.dtype and key != "label"
        answer = answer.astype(outside) if is_number else answer
        outputs.append(helper.make_tensor_value_info(key, kind_of(answer.dtype), None))
        answer.node("Identity", name=key)
    cells = [
        helper.make_tensor_value_info(key, kind_of(dtype), ["n", width])
        for key, *_, dtype, width in inputs
    ]
    graph = helper.make_graph(g.nodes, name, cells, outputs, initializer=g.constants)
    domains = {"", *(node.domain for node in g.nodes)}
    opsets = [helper.make_opsetid(domain, OPSETS[domain]) for domain in sorted(domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    return shape_inference.infer_shapes(model)


def add_metadata(model: Any, estimator: Any, inputs: list[Any], names: Any, complete: bool) -> None:
    """What the model is, and what its numbers mean."""
    from onnx import helper

    own = exported(estimator)
    model.producer_name = "kernelpool"
    model.producer_version = version("kernelpool")
    model.doc_string = describe(own).sentence
    about = {"estimator": type(estimator).__name__, "kernelpool_version": model.producer_version}
    about["missing_cells"] = "refused" if complete else "integrated out"
    if hasattr(own, "classes_"):
        about["classes"] = json.dumps(own.classes_.tolist(), default=str)
    if isinstance(own, RejectClassifier):
        about["refusals"] = json.dumps([own.ambiguous_label_, own.novel_label_])
    if names is not None:
        about["feature_names"] = json.dumps(list(map(str, names)))
    if [name for name, *_ in inputs] != ["X"]:
        keys = "name", "column", "kind"
        about["inputs"] = json.dumps([dict(zip(keys, entry, strict=False)) for entry in inputs])
    helper.set_model_props(model, about)
