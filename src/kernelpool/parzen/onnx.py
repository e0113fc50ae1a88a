"""Parzen networks, full and reduced, as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import safe_log
from ..base.classifier import prior_shift
from ..errors import KernelpoolError
from .network import INSIDE, LONGEST_ODDS, PROFILES, FittedParzen, GaussianProfile, Hypersphere


def to_graph(x: Any, fitted: FittedParzen) -> dict[str, Any]:
    """Answers of a `ParzenClassifier` or a `ReducedParzenClassifier` with a named kernel."""
    network = fitted.network
    net = network.params
    profile = net.profile
    if type(profile) not in PROFILES.values():
        raise KernelpoolError(
            "kernel is an object, which ONNX cannot hold; fit with one of the named kernels "
            "instead."
        )
    g = x.graph
    # one scaling, with a bound behind it: a runtime may fold a bare factor into the next product,
    # and round it to float32
    unit = network.space.scale * network.space.unit * net.radius
    rows = x.indicators(fitted.door.columns.levels).framed(network.space.location, unit)
    squared = rows.squared_distances(net.center / net.radius, narrow=net.narrow)  # (n, M)
    log_norm = network.log_norm
    weight = np.eye(net.n_classes)[net.codes] * net.weight[:, None]  # votes of kernels, (M, K)
    alone = np.where(weight.any(axis=0), -safe_log(weight.sum(axis=0)) - log_norm, -np.inf)
    shift = prior_shift(network.class_prior, network.fitted_prior)
    log_scale = net.log_scale - log_norm

    def from_votes(log_votes: Any) -> dict[str, Any]:
        joint = log_votes + g.finite(log_scale + shift)
        return {
            "scores": joint,
            "probabilities": joint.softmax(),
            "log_density": log_votes + g.finite(alone),
            "score_samples": joint.logsumexp(),
        }

    if isinstance(profile, GaussianProfile):
        terms = squared * -0.5 + g.safe_log(net.weight)
        log_votes = _by_class(terms, net, lambda a: a.logsumexp().unsqueeze(1), g.forbidden)
        scores = log_votes + g.finite(log_scale)
        if network.temperature != 1:
            scores = (scores - scores.max(1)).clip(-LONGEST_ODDS) * (1 / network.temperature)
        scores = scores + g.finite(shift)
        return from_votes(log_votes) | {"scores": scores, "probabilities": scores.softmax()}
    if isinstance(profile, Hypersphere):
        # the slack that rounding asks for is that of the type
        height = (squared <= (INSIDE if g.dtype == np.float64 else 1 + 1e-6)).astype(g.dtype)
    else:
        height = g.op("Relu", 1.0 - squared)
    votes = height @ weight  # (n, K)
    positive = votes > 0.0
    answers = from_votes(g.where(positive, np.log(g.where(positive, votes, 1.0)), g.forbidden))
    # where no kernel covers a row, the class of the nearest
    least = _by_class(squared, net, lambda a: g.op("ReduceMin", a, [1]), -g.forbidden)
    code = g.op("ArgMin", least, axis=1)
    nearest = (code == np.arange(net.n_classes)[None, :]).astype(g.dtype)
    covered = votes.max(1) > 0.0
    return {
        "scores": g.where(covered, answers["scores"], nearest),
        "probabilities": g.where(covered, answers["probabilities"], nearest),
        "log_density": g.where(positive, answers["log_density"], -np.inf),
        "score_samples": g.where(covered.squeeze(1), answers["score_samples"], -np.inf),
    }


def _by_class(a: Any, net: Any, reduce: Callable[[Any], Any], absent: float) -> Any:
    """`reduce` of the columns of each class, (n, K); `absent` for a class without kernels."""
    columns = [
        reduce(a.slice(start, stop)) if stop > start else a.slice(0, 1) * 0.0 + absent
        for start, stop in pairwise(net.offsets)
    ]
    return a.graph.concat(columns)
