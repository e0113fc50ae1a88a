"""ONNX: fitted networks as graphs of standard operators, for whoever predicts without Python."""

import json
import os
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..errors import KernelpoolError
from ..estimators.competitive import CompetitiveNeuronsClassifier
from ..estimators.parzen import ParzenClassifier, ReducedParzenClassifier
from ..estimators.rbf import RBFNetworkClassifier, RBFNetworkRegressor
from ..estimators.reject import RejectClassifier
from ..estimators.shared_kernel import SharedKernelClassifier
from ..estimators.sharing_average import SharingAverageClassifier
from ..files.atomic import write_atomically
from .columns import Inputs, numbers
from .encoders import after, one_by_one, takes_columns
from .graph import IR_VERSION, Graph
from .networks import Answers, neurons, parzen, rbf_classifier, rbf_regressor, refused, shared_kernel, sharing_average

__all__ = ["to_onnx"]

NETWORKS: dict[type, Any] = {
    SharedKernelClassifier: shared_kernel,
    SharingAverageClassifier: sharing_average,
    ParzenClassifier: parzen,
    ReducedParzenClassifier: parzen,
    RBFNetworkClassifier: rbf_classifier,
    RBFNetworkRegressor: rbf_regressor,
    CompetitiveNeuronsClassifier: neurons,
}

PRECISIONS = {"mixed": (np.float32, np.float64), "float32": (np.float32, np.float32), "float64": (np.float64, np.float64)}
"""Types of what goes in and out, and of what is computed in between."""


def to_onnx(estimator: Any, path: str | os.PathLike[str] | None = None, *, precision: str = "mixed") -> Any:
    """A fitted estimator as an ONNX model that needs a runtime such as onnxruntime, and nothing of this library.

    Its input is ``X``, (n, d), for any number of rows n. A model that begins with a `ColumnTransformer` or an encoder takes one
    input for each column that it uses instead, (n, 1), under the name of the column: text where the model has categories of
    words, numbers elsewhere. A classifier returns ``label`` (int64, or text) and ``probabilities`` (n, K); one that knows
    densities also ``log_density`` (n, K), log p(x|C_k), and ``score_samples`` (n,), log p(x). A regressor returns
    ``prediction`` and ``std``.

    Parameters
    ----------
    estimator : fitted estimator
        `SharedKernelClassifier`, `SharingAverageClassifier`, `ParzenClassifier` and `ReducedParzenClassifier` (with a named
        kernel), `RBFNetworkClassifier`, `RBFNetworkRegressor`, `CompetitiveNeuronsClassifier`; a `Pipeline` that ends with one
        of them, after `ColumnTransformer`, `OneHotEncoder`, `OrdinalEncoder`, `SimpleImputer` and `StandardScaler` steps, such
        as ``kernelpool fit --encode`` makes; or a `RejectClassifier` around any of these, which returns ``decision`` as well:
        0 for an accepted row, 1 for an ambiguous, 2 for a novel one.
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
        If the estimator cannot be told in ONNX, or onnx is not installed (``pip install "kernelpool[onnx]"``).

    Notes
    -----
    A category that an encoder has never seen becomes what it becomes in Python: nothing, the column of rare ones, or the number
    set for it. Where the encoder refuses it (``handle_unknown="error"``), the run ends with an error that names the column; so
    it is in onnxruntime on the CPU, and ONNX calls it an error, but a runtime that does not look may give an answer without
    meaning. An empty word stands for a missing one. Categories that are numbers are compared in the type of the input.

    Examples
    --------
    >>> import kernelpool
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(200, random_state=0)
    >>> model = kernelpool.SharedKernelClassifier(n_kernels=4, random_state=0).fit(X, y)
    >>> graph = kernelpool.to_onnx(model).graph
    >>> [output.name for output in graph.output]
    ['label', 'probabilities', 'log_density', 'score_samples']
    """
    try:
        import onnx
    except ImportError:
        raise KernelpoolError('to_onnx needs onnx: pip install "kernelpool[onnx]".') from None
    if precision not in PRECISIONS:
        raise KernelpoolError(f"precision must be one of {sorted(PRECISIONS)}; got {precision!r}.")
    check_is_fitted(estimator)
    steps, last, reject = _taken_apart(estimator)
    outside, inside = PRECISIONS[precision]
    g = Graph(inside, outside)
    inputs = Inputs(g, _columns(steps, last), whole=not takes_columns(steps))
    columns = inputs.table()
    for step in steps:
        columns = after(g, inputs, columns, step)
    answers = NETWORKS[type(last)](g, numbers(g, inputs, columns), last)
    classes = np.asarray(getattr(last, "classes_", []))
    if reject is not None:
        classes = refused(g, answers, reject, classes)
    outputs = _outputs(g, answers, last, classes)
    graph = onnx.helper.make_graph(g.nodes, type(last).__name__, inputs.infos(), outputs, initializer=g.constants)
    model = onnx.helper.make_model(graph, opset_imports=g.opsets(), ir_version=IR_VERSION)
    _describe(model, estimator, last, reject, inputs)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        write_atomically(path, [model.SerializeToString()])
    return model


def _taken_apart(estimator: Any) -> tuple[list[Any], Any, Any]:
    """The steps before the network, the network, and what refuses its answers, if anything does."""
    steps: list[Any] = []
    reject = None
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            steps += one_by_one(step for _, step in estimator.steps[:-1])
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, RejectClassifier) and reject is None:
            reject, estimator = estimator, estimator.estimator_
        else:
            break
    if type(estimator) not in NETWORKS:
        known = ", ".join(sorted(kind.__name__ for kind in NETWORKS))
        raise KernelpoolError(
            f"{type(estimator).__name__} cannot be exported to ONNX; expected one of {known}, or a Pipeline that ends with one."
        )
    if callable(getattr(estimator, "kernel", None)):
        raise KernelpoolError("kernel is a function, which ONNX cannot hold; fit with one of the named kernels instead.")
    return steps, estimator, reject


def _columns(steps: list[Any], last: Any) -> list[str]:
    """The names of the columns that come in; x0, x1 ... where they have none, as scikit-learn calls them."""
    first = steps[0] if steps else last
    names = getattr(first, "feature_names_in_", None)
    return [f"x{at}" for at in range(int(first.n_features_in_))] if names is None else [str(name) for name in names]


def _outputs(g: Graph, answers: Answers, model: Any, labels: np.ndarray) -> list[Any]:
    """Names and types of what the graph returns; the last nodes."""
    from onnx import helper

    found, kind = [], g.kind(g.outside.name)
    if "scores" in answers:
        code = answers.get("code") or g.op("ArgMax", answers["scores"], axis=1, keepdims=0)
        g.op("Gather", g.constant(labels), code, name="label")
        label = {"U": "string", "f": g.dtype.name, "b": "bool"}.get(labels.dtype.kind, "int64")
        found.append(helper.make_tensor_value_info("label", g.kind(label), ["n"]))
    shapes: dict[str, list[Any]] = {"score_samples": ["n"]}
    if "prediction" in answers:
        several: list[Any] = ["n"] if model._flat else ["n", int(model.readout_.shape[1])]
        shapes |= {"prediction": several, "std": several}
    for name in ("probabilities", "log_density", "score_samples", "prediction", "std"):
        if name in answers:
            g.cast(answers[name], g.outside, name=name)
            shape = shapes.get(name) or ["n", len(model.classes_)]
            found.append(helper.make_tensor_value_info(name, kind, shape))
    if "decision" in answers:
        g.op("Identity", answers["decision"], name="decision")
        found.append(helper.make_tensor_value_info("decision", g.kind("int64"), ["n"]))
    return found


def _describe(model: Any, estimator: Any, last: Any, reject: Any, inputs: Inputs) -> None:
    """Who made it, and what its numbers mean."""
    from onnx import helper

    number = version("kernelpool")
    model.producer_name, model.producer_version = "kernelpool", number
    model.doc_string = f"{type(last).__name__} of kernelpool {number}"
    about = {"estimator": type(estimator).__name__, "kernelpool_version": number}
    if hasattr(last, "classes_"):
        about["classes"] = json.dumps(np.asarray(last.classes_).tolist())
    if reject is not None:
        about["refusals"] = json.dumps([reject.ambiguous_label_, reject.novel_label_])
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        about["feature_names"] = json.dumps([str(name) for name in names])
    if not inputs.whole:
        about["inputs"] = json.dumps(inputs.about())
    helper.set_model_props(model, about)
