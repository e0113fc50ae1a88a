"""A pool as an ONNX graph: the graphs of its networks, each in its view, and one probability from
theirs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

import math
from typing import Any

import numpy as np

from ..arrays import safe_log
from ..inspection.pipeline import graph_answers
from .combine import LEAST_LOG_PROBA, FittedPool


def to_graph(x: Any, fitted: FittedPool) -> dict[str, Any]:
    """Answers of a `PooledClassifier`, all of whose networks can be exported themselves."""
    g = x.graph
    x = x.complete()
    views = {
        name: view.warp(x.indicators(view.levels).scaled(view.center, view.scale))
        for name, view in fitted.views.items()
    }
    networks = fitted.networks
    answers = [graph_answers(n.estimator, views.get(n.view, x)) for n in networks]
    log_proba = []
    for member in fitted.members:
        proba = [
            answer["probabilities"].clip(math.exp(LEAST_LOG_PROBA))
            for network, answer in zip(networks, answers, strict=True)
            if network.member == member
        ]
        log_proba.append(np.log(sum(proba) / len(proba)))
    scores = fitted.pooled(log_proba)
    pooled = {"scores": scores, "probabilities": scores.softmax()}
    weight = np.array([network.density_weight for network in networks])
    if weight.any():
        densities = g.stack([answers[i]["log_density"] for i in np.flatnonzero(weight)])
        log_density = (densities + np.log(weight[weight > 0])[:, None]).logsumexp()
        joint = log_density + safe_log(fitted.class_prior)
        pooled |= {"log_density": log_density, "score_samples": joint.logsumexp()}
    return pooled
