"""ONNX: fitted networks as graphs of standard operators, for whoever predicts without Python.

The converters of our networks are registered with skl2onnx, which converts whatever stands around them.
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
from ...errors import KernelpoolError
from ...estimators.conformal import ConformalClassifier
from ...estimators.reject import RejectClassifier
from ...inspection import describe
from ...text import shorten
from .graph import IR_VERSION, OPSETS, Graph
from .networks import CONVERTERS, coded, hstack, refused

__all__ = ["register_converters", "to_onnx"]

PRECISIONS = {
    "mixed": (np.float32, np.float64),
    "float32": (np.float32, np.float32),
    "float64": (np.float64, np.float64),
}
"""Types of what goes in and out, and of what is computed in between."""


def to_onnx(
    estimator: Any, path: str | os.PathLike[str] | None = None, *, precision: str = "mixed"
) -> Any:
    """A fitted estimator as an ONNX model that needs a runtime such as onnxruntime, and nothing of this library.

    Its input is ``X``, (n, d), for any number of rows n. A model of a table with categories takes one input for each column
    instead, (n, 1), under the name of the column: text for categories, numbers elsewhere. A missing cell is NaN, or the empty
    text. A classifier returns ``label`` (int64, or text) and ``probabilities`` (n, K); one that knows
    densities also ``log_density`` (n, K), log p(x|C_k), and ``score_samples`` (n,), log p(x). A regressor returns
    ``prediction`` and ``std``.

    Parameters
    ----------
    estimator : fitted estimator
        `PooledClassifier` (of networks that can be exported), `SharedKernelClassifier`, `SharingAverageClassifier`,
        `ParzenClassifier` and `ReducedParzenClassifier` (with a named kernel), `RBFNetworkClassifier`,
        `EMLogClassifier`, `EMLogRegressor`, `CompetitiveNeuronsClassifier`; a `Pipeline` that ends with one of them, after transformers that
        skl2onnx converts; or a `RejectClassifier` around any of these, which returns ``decision`` as well: 0 for an accepted
        row, 1 for an ambiguous, 2 for a novel one.
    path : str, path or None, default=None
        Where to write the model, if anywhere; all at once or not at all.
    precision : {"mixed", "float32", "float64"}, default="mixed"
        "mixed" takes and returns float32 and computes in float64; "float32" computes in float32 as well, for runtimes that
        know nothing else; "float64" takes and returns float64.

    Returns
    -------
    model : onnx.ModelProto
        The model; its metadata hold the class names, the feature names, the columns behind the inputs where there is more than
        one, and the version of this library.

    Raises
    ------
    KernelpoolError
        If the estimator cannot be told in ONNX, or skl2onnx is not installed (``pip install ".[onnx]"`` in its folder).

    Notes
    -----
    `SharedKernelClassifier` and `SharingAverageClassifier` integrate missing cells out in the graph, as they do in Python. The
    other networks average over imputations in Python, which the graph does not: onnxruntime ends a run with an error that
    says so where a cell is missing.

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
    register_converters()
    check_is_fitted(estimator)
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    first, last = _ends(estimator)
    outside, inside = PRECISIONS[precision]
    columns = first.columns_ if first is last and any(last.columns_.levels) else None
    inner = _converted(estimator, last, columns, int(first.n_features_in_), inside)
    model, inputs = _with_ends(inner, columns, np.dtype(outside), type(last).__name__)
    _add_metadata(model, estimator, last, inputs)
    _check(model)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def _ends(estimator: Any) -> tuple[Any, Any]:
    """The first step of a model, and its network."""
    inner = estimator.estimator_ if isinstance(estimator, RejectClassifier) else estimator
    first, last = (inner[0], inner[-1]) if isinstance(inner, Pipeline) else (inner, inner)
    if isinstance(last, ConformalClassifier):
        raise KernelpoolError(
            "ConformalClassifier cannot be exported to ONNX, which has no sets of classes: export one of its classifiers, such "
            "as model.estimators_[0], and compare its answers with calibration_probability_ and calibration_density_."
        )
    if type(last) not in CONVERTERS:
        known = ", ".join(sorted(cls.__name__ for cls in CONVERTERS))
        raise KernelpoolError(
            f"{type(last).__name__} cannot be exported to ONNX; expected one of {known}, or a Pipeline that ends with one."
        )
    return first, last


# -- converters -------------------------------------------------------------------------------------------------------------


def register_converters() -> None:
    """Make the estimators of this library known to skl2onnx, for those who call it themselves."""
    try:
        import onnx  # noqa: F401
        from skl2onnx import update_registered_converter
    except ImportError:
        raise KernelpoolError(
            "to_onnx needs skl2onnx: pip install '.[onnx]' in kernelpool's folder."
        ) from None
    converters: dict[type, Any] = dict.fromkeys(CONVERTERS, (_convert_network, _parse_network))
    converters[RejectClassifier] = (_convert_reject, _parse_reject)
    for cls, (convert, parse) in converters.items():
        update_registered_converter(
            cls,
            f"Kernelpool{cls.__name__}",
            _no_shapes,
            convert,
            parser=parse,
            options={"precision": [None, *DTYPES]},
        )


DTYPES: dict[str, np.dtype] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}


def _no_shapes(operator: Any) -> None:
    """Types and shapes are told when outputs are declared."""


def _dtype(asked: Any, inputs: Sequence[Any]) -> np.dtype:
    from skl2onnx.common.data_types import DoubleTensorType

    wide = any(isinstance(variable.type, DoubleTensorType) for variable in inputs)
    return DTYPES[asked or ("float64" if wide else "float32")]


def _network_outputs(model: Any) -> dict[str, list[Any]]:
    """Names and shapes of what a network returns."""
    if not hasattr(model, "classes_"):
        several: list[Any] = (
            [None] if model.single_output_ else [None, int(model.readout_.shape[1])]
        )
        return {"prediction": several, "std": several}
    k = len(model.classes_)
    # a pool may have no densities
    densities: dict[str, list[Any]] = (
        {"log_density": [None, k], "score_samples": [None]} if hasattr(model, "log_density") else {}
    )
    return {"label": [None], "probabilities": [None, k], **densities}


def _label_type(classes: np.ndarray, dtype: np.dtype) -> Any:
    from skl2onnx.common import data_types as types

    kinds = {
        "U": types.StringTensorType,
        "O": types.StringTensorType,
        "b": types.BooleanTensorType,
        "f": _float_type(dtype),
    }
    return kinds.get(classes.dtype.kind, types.Int64TensorType)


def _float_type(dtype: Any) -> Any:
    from skl2onnx.common import data_types as types

    return types.DoubleTensorType if np.dtype(dtype) == np.float64 else types.FloatTensorType


def _declared(
    scope: Any,
    model: Any,
    inputs: Sequence[Any],
    outputs: dict[str, list[Any]],
    types: dict[str, Any],
) -> Any:
    operator = scope.declare_local_operator(f"Kernelpool{type(model).__name__}", model)
    operator.inputs = list(inputs)
    for name, shape in outputs.items():
        operator.outputs.append(
            scope.declare_local_variable(name, types.get(name, types[""])(shape))
        )
    return operator.outputs


def _parse_network(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:  # noqa: ARG001
    dtype = _dtype(scope.get_options(model, {"precision": None})["precision"], inputs)
    types = {"": _float_type(dtype)}
    if hasattr(model, "classes_"):
        types["label"] = _label_type(model.classes_, dtype)
    return _declared(scope, model, inputs, _network_outputs(model), types)


def _convert_network(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    g = Graph(
        scope,
        container,
        _dtype(container.get_options(model, {"precision": None})["precision"], operator.inputs),
    )
    given = [variable.full_name for variable in operator.inputs]
    categorical = any(model.columns_.levels)
    x = (
        coded(g, given, model)
        if categorical
        else hstack(g, [g.cast(name, g.dtype) for name in given])
    )
    answers = CONVERTERS[type(model)](g, x, model)
    if hasattr(model, "classes_"):
        code = g.op("ArgMax", answers["scores"], axis=1, keepdims=0)
        answers["label"] = g.op("Gather", g.constant(np.asarray(model.classes_)), code)
    for variable in operator.outputs:
        g.op("Identity", answers[variable.raw_name], name=variable.full_name)


def _parse_reject(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx._parse import _parse_sklearn
    from skl2onnx.common.data_types import Int64TensorType

    found = _parse_sklearn(scope, model.estimator_, inputs, custom_parsers=custom_parsers)
    outputs = {variable.raw_name: list(variable.type.shape) for variable in found} | {
        "decision": [None]
    }
    types: dict[str, Any] = {variable.raw_name: type(variable.type) for variable in found} | {
        "decision": Int64TensorType
    }
    if model.classes_.dtype.kind == "b":
        types["label"] = Int64TensorType
    return _declared(scope, model, found, outputs, types | {"": None})


def _convert_reject(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    g = Graph(scope, container, _dtype(None, operator.inputs))
    answers = {variable.raw_name: variable.full_name for variable in operator.inputs}
    answers = refused(g, answers, model, np.asarray(model.classes_))
    for variable in operator.outputs:
        g.op("Identity", answers[variable.raw_name], name=variable.full_name)


NOT_CONVERTED = (
    AssertionError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What skl2onnx raises where it has no answer."""


def _converted(estimator: Any, last: Any, columns: Any, n_features: int, inside: Any) -> Any:
    """The model in the type of what is computed inside, by skl2onnx."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    number = _float_type(inside)
    types = [("X", number([None, n_features]))]
    if columns is not None:
        kinds = [StringTensorType if n else number for n in columns.levels]
        types = [(f"x{i}", kind([None, 1])) for i, kind in enumerate(kinds)]
    try:
        return convert_sklearn(
            estimator,
            initial_types=types,
            target_opset=OPSETS,
            options={id(last): {"precision": np.dtype(inside).name}},
        )
    except KernelpoolError:
        raise
    except (MissingConverter, MissingShapeCalculator, *NOT_CONVERTED) as error:
        raise KernelpoolError(
            f"A step before the classifier cannot be exported to ONNX: {shorten(' '.join(str(error).split()), 300)} "
            f"Export the last step alone, and transform the rows yourself."
        ) from None


# -- inputs and outputs -----------------------------------------------------------------------------------------------------

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


def _with_ends(
    inner: Any, columns: Any, outside: np.dtype, name: str
) -> tuple[Any, list[dict[str, str]]]:
    """The model with inputs and outputs in the type of the outside, and its inputs: name, column, kind."""
    from onnx import TensorProto, compose, helper

    outputs = [entry.name for entry in inner.graph.output]
    inner = compose.add_prefix(inner, "inner/")
    graph, number = inner.graph, Graph.kind(outside.name)
    names = ["X"]
    if columns is not None:
        names = list(columns.names or (f"x{i}" for i in range(len(columns))))
    given = dict(zip([entry.name for entry in graph.input], free_names(names), strict=True))
    used = {name for node in graph.node for name in node.input}
    nodes, infos, about = [], [], []
    for at, entry in enumerate(graph.input):
        if entry.name not in used:
            continue
        text = entry.type.tensor_type.elem_type == TensorProto.STRING
        width = entry.type.tensor_type.shape.dim[1].dim_value
        kind = TensorProto.STRING if text else number
        infos.append(helper.make_tensor_value_info(given[entry.name], kind, ["n", width]))
        nodes.append(_cast(given[entry.name], entry.name, kind, entry.type.tensor_type.elem_type))
        kind_name = "category" if text else "number"
        about.append({"name": given[entry.name], "column": names[at], "kind": kind_name})
    nodes += graph.node
    answers = []
    for short, entry in zip(outputs, graph.output, strict=True):
        kind = entry.type.tensor_type.elem_type
        told = next(known for known in OUTPUTS if short.rstrip("0123456789") == known)
        wanted = (
            number if kind in (TensorProto.FLOAT, TensorProto.DOUBLE) and told != "label" else kind
        )
        shape = ["n", *(dim.dim_value for dim in entry.type.tensor_type.shape.dim[1:])]
        nodes.append(_cast(entry.name, told, kind, wanted))
        answers.append(helper.make_tensor_value_info(told, wanted, shape))
    wrapped = helper.make_graph(nodes, name, infos, answers, initializer=list(graph.initializer))
    domains = {node.domain for node in nodes}
    opsets = [
        helper.make_opsetid(domain, number)
        for domain, number in OPSETS.items()
        if domain in domains or not domain
    ]
    return helper.make_model(wrapped, opset_imports=opsets, ir_version=IR_VERSION), about


def _cast(source: str, target: str, kind: int, wanted: int) -> Any:
    from onnx import helper

    if kind == wanted:
        return helper.make_node("Identity", [source], [target])
    return helper.make_node("Cast", [source], [target], to=wanted)


def _check(model: Any) -> None:
    import onnx

    onnx.checker.check_model(model, full_check=True)


def _add_metadata(model: Any, estimator: Any, last: Any, inputs: list[dict[str, str]]) -> None:
    """What the model is, and what its numbers mean."""
    from onnx import helper

    number = version("kernelpool")
    model.producer_name, model.producer_version = "kernelpool", number
    model.doc_string = describe(
        estimator if isinstance(estimator, RejectClassifier) else last
    ).sentence
    about = {"estimator": type(estimator).__name__, "kernelpool_version": number}
    if hasattr(last, "classes_"):
        about["classes"] = json.dumps(np.asarray(last.classes_).tolist())
    if isinstance(estimator, RejectClassifier):
        about["refusals"] = json.dumps([estimator.ambiguous_label_, estimator.novel_label_])
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        about["feature_names"] = json.dumps([str(name) for name in names])
    if [entry["name"] for entry in inputs] != ["X"]:
        about["inputs"] = json.dumps(inputs)
    helper.set_model_props(model, about)
