"""Labels and decisions of a classifier that refuses rows, as nodes of an ONNX graph."""

from typing import Any

import numpy as np


def to_graph(answers: dict[str, Any], fitted: Any, classes: np.ndarray) -> dict[str, Any]:
    """`answers` of the classifier with the labels of a `RejectClassifier` around it, and its
    decisions.
    """
    probability = answers["probabilities"]
    label = answers["label"]
    g = probability.graph
    code = probability.argmax(axis=1, keepdims=True)  # (n, 1)
    if classes.dtype.kind == "b":
        label = label.astype(np.int64)
    decision = code.squeeze(1) * 0
    if fitted.ambiguity_threshold_ is not None:
        others = np.logical_not(code == np.arange(len(classes))[None, :]).astype(g.dtype)
        certain = (probability * others).sum(1) <= float(fitted.ambiguity_threshold_)
        label = g.where(certain, label, np.asarray(fitted.ambiguous_label_))
        decision = g.where(certain, decision, 1)
    if fitted.novelty_threshold_ is not None:
        lowest = max(fitted.novelty_threshold_, float(np.finfo(g.dtype).min))
        known = answers["score_samples"] >= lowest
        label = g.where(known, label, np.asarray(fitted.novel_label_))
        decision = g.where(known, decision, 2)
    return answers | {"label": label, "decision": decision}
