"""Votes by counting in trees: one tree a class, of the centers of hyperspheres."""

import math
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree

from ..errors import KernelpoolError
from ..networks.parzen import Network
from ..networks.parzen_kernels import INSIDE
from ..rows import Block

TREE_FEATURES, TREE_KERNELS = 4, 2000
"""Trees are faster than blocked products up to so many features and from so many kernels on."""

Trees = tuple[KDTree | None, ...]


def build_trees(net: Network, kernel: Any, algorithm: str) -> Trees | None:
    """One tree a class, of kernels in the frame, where counting with them is faster than multiplying; or None."""
    possible = kernel == "hypersphere" and len(np.unique(net.weight)) == 1
    if algorithm == "tree" and not possible:
        raise KernelpoolError("algorithm='tree' needs kernel='hypersphere' and equal weights; use algorithm='auto'.")
    small = net.center.shape[1] <= TREE_FEATURES and len(net.center) >= TREE_KERNELS
    if not (algorithm == "tree" or (algorithm == "auto" and possible and small)):
        return None
    spans = [slice(net.offsets[k], net.offsets[k + 1]) for k in range(net.n_classes)]
    return tuple(KDTree(net.center[s]) if s.stop > s.start else None for s in spans)


def count_votes(block: Block, net: Network, trees: Trees, log_norm: float) -> np.ndarray:
    """`log_joint` of hyperspheres by counting: whole branches within the radius are counted unseen."""
    x = np.asarray(block.x, np.float64)
    reach = net.radius * math.sqrt(INSIDE)
    counts = [np.zeros(len(x)) if tree is None else tree.query_radius(x, reach, count_only=True) for tree in trees]
    with np.errstate(divide="ignore"):
        votes = np.log(np.stack(counts, axis=1)) + math.log(float(net.weight[0]))
    return np.asarray(votes + (net.log_scale - log_norm))


def decided_by_trees(joint: np.ndarray, block: Block, trees: Trees) -> np.ndarray:
    """`joint` with rows that no kernel covers given to the class of their nearest kernel."""
    rows = np.flatnonzero(joint.max(axis=1) == -np.inf)
    if len(rows):
        x = np.asarray(block.x[rows], np.float64)
        least = [np.full(len(x), np.inf) if tree is None else tree.query(x, k=1)[0][:, 0] for tree in trees]
        joint[rows] = -np.inf
        joint[rows, np.argmin(np.stack(least, axis=1), axis=1)] = 0.0
    return joint
