"""Parzen networks, full and reduced, as ONNX graphs.

Rows are a `kernelpool.app.onnx.graph.Tensor`.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import safe_log
from ..errors import KernelpoolError
from ..rows import Frame
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
    rows = x.indicators(fitted.door.columns.levels).framed(Frame(network.space.location, unit))
    squared = rows.squared_distances(net.center / net.radius, narrow=net.narrow)  # (n, M)
    if isinstance(profile, GaussianProfile):
        log_votes = log_sums(squared * -0.5 + safe_log(net.weight), net.offsets)
        scores = log_votes
    else:
        vote = np.eye(net.n_classes)[net.codes] * net.weight[:, None]  # (M, K)
        votes = profile.height(squared) @ vote  # (n, K)
        log_votes = np.log(votes)
        # where no kernel covers a row, those nearest to it vote, as in `nearest_votes`
        possible = np.isfinite(net.log_scale)
        reach = squared + np.where(possible[net.codes], 0.0, np.inf)
        least = reach.min(axis=1, keepdims=True)
        # a runtime may drop a factor next to one
        nearest = reach <= least + least * ROUNDING[g.dtype]
        covered = (votes * possible.astype(float)).max(axis=1, keepdims=True) > 0
        scores = np.log(np.where(covered, votes, nearest.astype(g.dtype) @ vote))
    scores = network.tempered(scores + net.log_scale)
    log_density = log_votes - np.log(network.votes) - network.log_norm
    return {
        "scores": scores,
        "probabilities": scores.softmax(),
        "log_density": log_density,
        "score_samples": (log_density + safe_log(network.class_prior)).logsumexp(),
    }


def log_sums(terms: Any, offsets: tuple[int, ...]) -> Any:
    """log sum exp of the columns of each class, (n, K)."""
    columns = [
        terms.slice(start, stop).logsumexp().unsqueeze(1)
        if stop > start
        else terms.slice(0, 1) - np.inf
        for start, stop in pairwise(offsets)
    ]
    return terms.graph.hstack(columns)
