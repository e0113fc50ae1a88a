"""Labels and decisions of a classifier that refuses rows, as nodes of an ONNX graph.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from typing import Any

import numpy as np

from ..errors import KernelpoolError
from ..inspection.pipeline import graph_answers


def to_graph(x: Any, fitted: Any) -> dict[str, Any]:
    """Answers of a `RejectClassifier`: those of the classifier inside, other labels for refused
    rows, and the decisions.
    """
    answers = graph_answers(fitted.estimator, x)
    if "decision" in answers:
        raise KernelpoolError("A RejectClassifier in another one cannot be exported to ONNX.")
    probability = answers["probabilities"]
    classes = fitted.estimator.classes_.tolist()
    codes = np.arange(len(classes))[None, :]
    is_likely = np.equal(probability.argmax(axis=1, keepdims=True), codes)
    ambiguity = np.where(is_likely, 0.0, probability).sum(axis=1)
    decision = fitted.thresholds.decide(ambiguity, answers.get("score_samples")).astype(np.int64)
    labels = np.array([*classes, fitted.ambiguous_label, fitted.novel_label])
    code = answers.pop("scores").argmax(axis=1)
    code = np.where(decision > 0, decision + (len(classes) - 1), code)
    label = x.graph.constant(labels).node("Gather", code)
    return {"label": label, **answers, "decision": decision}
