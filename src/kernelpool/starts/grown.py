r"""Kernels grown by splitting.

Constantinopoulos & Likas, "An incremental training method for the probabilistic RBF network", IEEE Transactions on Neural
Networks 17(4), 2006, is the idea: start from one kernel a class and split, where it helps the classes, what is there.

.. math:: \text{need}_j = \sum_{n \in C_{owner(j)}} w_n\, r_{jn}\, (-\log P(C_{y_n} \mid x_n))

=====================  ==================  =======  =================================================================
in the formula         here                shape    meaning
=====================  ==================  =======  =================================================================
:math:`r_{jn}`         ``responsibility``  (M, n)   share of kernel j in row n, whose class is known
:math:`-\log P`        ``loss``            (n,)     how badly the row is classified by the network as it is
:math:`\text{need}_j`  ``need``            (M,)     how much of what is classified badly lies in kernel j
=====================  ==================  =======  =================================================================

Deviations from the paper: it adds one kernel at a time and tries each component of the whole network; here the third (or
another part) of the kernels with the greatest need is split at once, so that the cost grows with the logarithm of the number
of kernels. The need is measured by the classes: a dense region in which one class lives alone is never split, however badly
one Gaussian fits it, as long as its rows are told apart from the others.
"""

import numpy as np

from ..kernels import Kernel, Parameters

FEWEST = 4
"""A kernel is split only if it holds at least this weight of rows of its own class."""


def needs(
    responsibility: np.ndarray, loss: np.ndarray, weight: np.ndarray, owned: np.ndarray
) -> np.ndarray:
    """How much of the classes' loss lies in each kernel, (M,); `owned` (M, n) tells which rows are of the owner's class."""
    need: np.ndarray = (responsibility * owned) @ (weight * loss)
    return need


def split(
    kernel: Kernel,
    kernels: Parameters,
    mixing: np.ndarray,
    need: np.ndarray,
    x: np.ndarray,
    member: np.ndarray,
    weight: np.ndarray,
    n_new: int,
) -> tuple[Parameters, np.ndarray, np.ndarray]:
    """The network with the `n_new` kernels of greatest need split in two, its mixing, and the parent of every kernel.

    `member` (n,) is the kernel that a row belongs to, -1 for none; a kernel is cut across the direction in which its members
    are spread most. Both halves keep its covariance, and share its weight: EM finds the rest. Kernels of too few rows or of
    equal rows are left whole, so fewer may be split than asked for.
    """
    parents: list[int] = []
    means: list[tuple[np.ndarray, np.ndarray]] = []
    for j in np.argsort(-need, kind="stable"):
        if len(parents) == n_new:
            break
        mine = x[member == j]
        halves = _halves(mine, kernel.embed(mine), weight[member == j])
        if halves is not None:
            parents.append(int(j))
            means.append(halves)
    origin = np.concatenate([np.arange(len(mixing)), parents]).astype(int)
    to = {j: one for j, (one, _) in zip(parents, means, strict=True)}
    to |= {len(mixing) + i: other for i, (_, other) in enumerate(means)}
    part = np.ones(len(mixing))
    part[parents] = 0.5
    return kernel.move(kernel.take(kernels, origin), to), (mixing * part[:, None])[origin], origin


def _halves(
    x: np.ndarray, seen: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Means of the two parts into which rows, `seen` in a space of their own, are cut at their mean, across the longest way."""
    if weight.sum() < FEWEST or len(x) < 2:
        return None
    away = seen - weight @ seen / weight.sum()
    _, spread, direction = np.linalg.svd(away * np.sqrt(weight)[:, None], full_matrices=False)
    along = away @ direction[0]
    side = along > 0
    if spread[0] <= 1e-9 * np.abs(seen).max() or not side.any() or side.all():
        return None
    return tuple(weight[s] @ x[s] / weight[s].sum() for s in (side, ~side))  # type: ignore[return-value]
