"""Parzen networks, full and reduced, as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import KernelpoolError
from .network import PROFILES, ROUNDING, FittedParzen, GaussianProfile


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
    if isinstance(profile, GaussianProfile):
        terms = squared * -0.5 + g.safe_log(net.weight)
        log_votes = _by_class(terms, net, lambda a: a.logsumexp().unsqueeze(1), g.forbidden)
        scores = log_votes
    else:
        vote = np.eye(net.n_classes)[net.codes] * net.weight[:, None]  # (M, K)
        votes = profile.height(squared) @ vote  # (n, K)
        log_votes = votes.safe_log()
        # where no kernel covers a row, those nearest to it vote, as in `nearest_votes`
        possible = np.isfinite(net.log_scale)
        reach = squared + np.where(possible[net.codes], 0.0, -g.forbidden)
        least = reach.min(axis=1, keepdims=True)
        # a runtime may drop a factor next to one
        nearest = reach <= least + least * ROUNDING[g.dtype]
        covered = (votes * possible.astype(float)).max(axis=1, keepdims=True) > 0.0
        scores = np.where(covered, votes, nearest.astype(g.dtype) @ vote).safe_log()
    scores = network.tempered(scores + g.finite(net.log_scale))
    has_kernels = np.diff(net.offsets) > 0
    alone = np.where(has_kernels, -np.log(network.votes) - network.log_norm, g.forbidden)
    log_density = log_votes + alone
    evidence = (log_density + g.safe_log(network.class_prior)).logsumexp()
    return {
        "scores": scores,
        "probabilities": scores.softmax(),
        "log_density": log_density.with_infinity(),
        "score_samples": evidence.with_infinity(),
    }


def _by_class(a: Any, net: Any, reduce: Callable[[Any], Any], absent: float) -> Any:
    """`reduce` of the columns of each class, (n, K); `absent` for a class without kernels."""
    columns = [
        reduce(a.slice(start, stop)) if stop > start else a.slice(0, 1) * 0.0 + absent
        for start, stop in pairwise(net.offsets)
    ]
    return a.graph.hstack(columns)
