"""A pool as an ONNX graph: the graphs of its networks, each in its view, and one probability from
theirs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

import math
from typing import Any

import numpy as np

from ..base.classifier import prior_shift
from ..base.estimator import Estimator
from ..errors import KernelpoolError
from .combine import LEAST_LOG_PROBA
from .views import View


def to_graph(x: Any, fitted: Any) -> dict[str, Any]:
    """Answers of a `PooledClassifier`, all of whose networks can be exported themselves."""
    g = x.graph
    x = x.complete()
    views = {name: in_view(x, view) for name, view in fitted.views.items()}
    answers = []
    for network in fitted.networks:
        if not isinstance(network.estimator, Estimator):
            name = type(network.estimator).__name__
            raise KernelpoolError(
                f"A pool with a {name} cannot be exported to ONNX: it has no converter."
            )
        answers.append(network.estimator._to_graph(views.get(network.view, x)))
    log_proba = []
    for member in fitted.members:
        probabilities = [
            answer["probabilities"].clip(math.exp(LEAST_LOG_PROBA)).shares()
            for network, answer in zip(fitted.networks, answers, strict=True)
            if network.member == member
        ]
        log_proba.append(np.log(g.mean(probabilities)).clip(LEAST_LOG_PROBA))
    stacked = g.stack(log_proba)  # (n, L, K)
    if fitted.pooling == "linear":
        scores = (stacked + g.safe_log(fitted.weights)[:, None]).logsumexp()
    else:
        scores = (stacked * fitted.weights[:, None]).sum(1)
    scores = scores + g.finite(prior_shift(fitted.class_prior, fitted.class_shares))
    pooled = {"scores": scores, "probabilities": scores.softmax()}
    weight = np.array([network.density_weight for network in fitted.networks])
    if weight.any():
        densities = g.stack([answers[i]["log_density"] for i in np.flatnonzero(weight)])
        log_density = (densities + np.log(weight[weight > 0])[:, None]).logsumexp()
        joint = log_density + g.safe_log(fitted.class_prior)
        pooled |= {"log_density": log_density, "score_samples": joint.logsumexp()}
    return pooled


def in_view(x: Any, view: View) -> Any:
    """`View.transform` of rows, (n, D)."""
    g = x.graph
    u = x.indicators(view.levels).scaled(view.center, view.scale)
    if view.exponent is None:
        return u
    size = np.log(np.abs(u) + 1.0)
    power = g.where(u >= 0.0, view.exponent, 2 - view.exponent)
    straight = np.abs(power) < 1e-8
    exponent = size * power
    grown = np.tanh(exponent * 0.5) * (np.exp(exponent) + 1.0)  # exp - 1
    psi = g.where(straight, size, grown / g.where(straight, 1.0, power)) * np.sign(u)
    scale: Any = view.warped_scale
    return ((psi - view.warped_center) * (1 / scale)).clip(-view.LIMIT, view.LIMIT)
