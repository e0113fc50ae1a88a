"""ONNX: fitted networks as graphs of standard operators, for whoever predicts without Python."""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..errors import KernelpoolError
from ..estimators.competitive import CompetitiveNeuronsClassifier
from ..estimators.parzen import ParzenClassifier
from ..estimators.rbf_network import RBFNetworkClassifier
from ..estimators.rbf_regressor import RBFNetworkRegressor
from ..estimators.reduced_parzen import ReducedParzenClassifier
from ..estimators.reject import RejectClassifier
from ..estimators.shared_kernel import SharedKernelClassifier
from ..estimators.sharing_average import SharingAverageClassifier
from .graph import IR_VERSION, OPSET, Graph
from .layers import Answers, neurons, parzen, rbf_classifier, rbf_regressor, refused, shared_kernel, sharing_average

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

    Its input is ``X``, (n, d), for any number of rows n. A classifier returns ``label`` (int64, or text) and ``probabilities``
    (n, K); one that knows densities also ``log_density`` (n, K), log p(x|C_k), and ``score_samples`` (n,), log p(x). A
    regressor returns ``prediction`` and ``std``.

    Parameters
    ----------
    estimator : fitted estimator
        `SharedKernelClassifier`, `SharingAverageClassifier`, `ParzenClassifier` and `ReducedParzenClassifier` (with a named
        kernel), `RBFNetworkClassifier`, `RBFNetworkRegressor`, `CompetitiveNeuronsClassifier`; a `Pipeline` that ends with one
        of them, after `StandardScaler` and numeric `SimpleImputer` steps; or a `RejectClassifier` around any of these, which
        returns ``decision`` as well: 0 for an accepted row, 1 for an ambiguous, 2 for a novel one.
    path : str, path or None, default=None
        Where to write the model, if anywhere.
    precision : {"mixed", "float32", "float64"}, default="mixed"
        "mixed" takes and returns float32 and computes in float64; "float32" computes in float32 as well, for runtimes that
        know nothing else; "float64" takes and returns float64.

    Returns
    -------
    model : onnx.ModelProto
        The model; its metadata hold the class names, the feature names and the version of this library.

    Raises
    ------
    KernelpoolError
        If the estimator cannot be told in ONNX, or onnx is not installed (``pip install "kernelpool[onnx]"``).

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
    reject = estimator if isinstance(estimator, RejectClassifier) else None
    steps, last = _taken_apart(estimator if reject is None else reject.estimator_)
    outside, inside = (np.dtype(kind) for kind in PRECISIONS[precision])
    g = Graph(inside)
    x = "X" if inside == outside else g.cast("X", inside)
    for step in steps:
        x = _transformed(g, x, step)
    answers = NETWORKS[type(last)](g, x, last)
    classes = np.asarray(getattr(last, "classes_", []))
    if reject is not None:
        classes = refused(g, answers, reject, classes)
    outputs = _outputs(g, answers, last, classes, outside)
    d = int(steps[0].n_features_in_ if steps else last.n_features_in_)
    rows = onnx.helper.make_tensor_value_info("X", g.kind(outside.name), ["n", d])
    graph = onnx.helper.make_graph(g.nodes, type(last).__name__, [rows], outputs, initializer=g.constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    _describe(model, estimator, last)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        Path(os.fsdecode(path)).write_bytes(model.SerializeToString())
    return model


def _taken_apart(estimator: Any) -> tuple[list[Any], Any]:
    """The steps before the last, and the last."""
    steps: list[Any] = []
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        estimator = estimator.steps[-1][1]
    for step in steps:
        _check_step(step)
    if type(estimator) not in NETWORKS:
        known = ", ".join(sorted(kind.__name__ for kind in NETWORKS))
        raise KernelpoolError(
            f"{type(estimator).__name__} cannot be exported to ONNX; expected one of {known}, or a Pipeline that ends with one."
        )
    if callable(getattr(estimator, "kernel", None)):
        raise KernelpoolError("kernel is a function, which ONNX cannot hold; fit with one of the named kernels instead.")
    return steps, estimator


def _check_step(step: Any) -> None:
    if type(step) is StandardScaler:
        return
    if type(step) is SimpleImputer:
        gaps = step.missing_values
        if (
            step.statistics_.dtype.kind == "f"
            and np.isfinite(step.statistics_).all()
            and gaps != gaps
            and not step.add_indicator
        ):
            return
        raise KernelpoolError("SimpleImputer can be exported only for NaN in numeric columns, without add_indicator.")
    raise KernelpoolError(
        f"{type(step).__name__} cannot be exported to ONNX; before the classifier only StandardScaler and SimpleImputer can. "
        f"Export the last step alone, and transform the rows yourself."
    )


def _transformed(g: Graph, x: str, step: Any) -> str:
    if type(step) is SimpleImputer:
        return str(g.op("Where", g.op("IsNaN", x), g.constant(np.asarray(step.statistics_, np.float64)), x))
    if step.mean_ is not None and step.with_mean:
        x = g.centred(x, np.asarray(step.mean_, np.float64))
    return x if step.scale_ is None or not step.with_std else g.multiply(x, 1 / np.asarray(step.scale_, np.float64))


def _outputs(g: Graph, answers: Answers, model: Any, labels: np.ndarray, outside: np.dtype) -> list[Any]:
    """Names and types of what the graph returns; the last nodes."""
    from onnx import helper

    found, kind = [], g.kind(outside.name)
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
            g.cast(answers[name], outside, name=name)
            shape = shapes.get(name) or ["n", len(model.classes_)]
            found.append(helper.make_tensor_value_info(name, kind, shape))
    if "decision" in answers:
        g.op("Identity", answers["decision"], name="decision")
        found.append(helper.make_tensor_value_info("decision", g.kind("int64"), ["n"]))
    return found


def _describe(model: Any, estimator: Any, last: Any) -> None:
    """Who made it, and what its numbers mean."""
    from onnx import helper

    number = version("kernelpool")
    model.producer_name, model.producer_version = "kernelpool", number
    model.doc_string = f"{type(last).__name__} of kernelpool {number}"
    about = {"estimator": type(estimator).__name__, "kernelpool_version": number}
    if hasattr(last, "classes_"):
        about["classes"] = json.dumps(np.asarray(last.classes_).tolist())
    if isinstance(estimator, RejectClassifier):
        about["refusals"] = json.dumps([estimator.ambiguous_label_, estimator.novel_label_])
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        about["feature_names"] = json.dumps([str(name) for name in names])
    helper.set_model_props(model, about)
