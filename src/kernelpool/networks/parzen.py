r"""Parzen classifier.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991 (its formulas are not numbered).
The kernels themselves are in `parzen_kernels`, the reduction to few of them in `parzen_reduction`.

.. math::

    f(x) = \arg\max_k \sum_{i:\, y_i = k} w_i\, K\!\left(\frac{x - x_i}{r}\right)

==================  ===============  ==========  ==================================================================
paper               here             shape       meaning
==================  ===============  ==========  ==================================================================
:math:`x_i`         ``center``       (M, d)      kernels, sorted by class
:math:`\theta_i`    ``offsets``      K + 1       kernels offsets[k] .. offsets[k+1] belong to class k
:math:`w_i`         ``weight``       (M,)        votes of a kernel; the paper gives one to each
:math:`r`           ``radius``       scalar      common radius, or standard deviation, or scale
:math:`K(x, r)`     ``Profile``                  height of a kernel over the squared distance in units of the radius
==================  ===============  ==========  ==================================================================

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; it goes to the class of its nearest
kernel, which is what a radius that grew until it reached one would give.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..arrays import (
    Array,
    as_float64,
    device,
    exp_in_place,
    match_array,
    matmul_into,
    namespace,
    safe_log,
    shares_of,
    thread_scratch,
)
from ..rows import Block
from ..sums import Sums, record
from .parzen_kernels import TILE, GaussianProfile, Profile

VANISHED = 1e-200
"""Sums of Gaussian heights below this are taken about the largest term."""

NARROW = 1e-6
"""Where radius^2 is less than this part of the largest squared norm, distances are taken from differences, not products."""


# -- the network --------------------------------------------------------------------------------------------------------


@record
class ParzenParams:
    """M kernels of a common radius, sorted by class."""

    center: Array
    """(M, d)."""
    weight: Array
    """(M,)."""
    offsets: tuple[int, ...]
    """Kernels offsets[k] to offsets[k + 1] belong to class k."""
    log_scale: Array
    """log of what one vote counts for each class, (K,): the prior over the sum of the class's votes."""
    radius: float
    group: Array
    """Kernels at the same point share a number, (M,)."""

    @cached_property
    def narrow(self) -> bool:
        """Whether distances must be taken from differences, not from a product."""
        return is_narrow(self.center, self.radius)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.offsets) - 1

    def spans(self, k: int) -> Iterator[slice]:
        """The kernels of class k, a tile at a time."""
        for start in range(self.offsets[k], self.offsets[k + 1], TILE):
            yield slice(start, min(start + TILE, self.offsets[k + 1]))


def is_narrow(center: Array, radius: float) -> bool:
    """Whether a product of rows and centers would lose too much of distances of about the radius."""
    xp = namespace(center)
    norms = xp.sum(center**2, axis=1)
    return bool(norms.shape[0] and radius**2 < NARROW * float(xp.max(norms)))


def log_prior_scale(prior: Any, votes: Any) -> Any:
    """log(P(C_k) / votes of class k), (K,): what one vote counts; minus infinity for a class without votes."""
    xp = namespace(votes)
    safe = xp.where(votes > 0, votes, xp.ones_like(votes))
    return xp.where(votes > 0, safe_log(prior / safe), -xp.inf)


def log_votes(block: Block, profile: Profile, params: ParzenParams) -> Array:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the class covers the row."""
    xp, x = namespace(block.x), as_float64(block.x)
    gaussian = isinstance(profile, GaussianProfile) and not params.narrow
    log_sum = _log_gaussian_sum if gaussian else _log_sum
    nothing = xp.full((x.shape[0],), -xp.inf, dtype=x.dtype, device=device(x))
    columns = [
        log_sum(x, profile, params, k) if params.offsets[k] < params.offsets[k + 1] else nothing
        for k in range(params.n_classes)
    ]
    return xp.stack(columns, axis=1)


def _log_sum(x: Array, profile: Profile, params: ParzenParams, k: int) -> Array:
    return profile.log_total(_tiles(x, profile, params, k))


def _log_gaussian_sum(x: Array, profile: Profile, params: ParzenParams, k: int) -> Array:
    """The same by one product that is the exponent itself; rows so far off that the sum vanishes are done again."""
    xp = namespace(x)
    weight, scaled = as_float64(params.weight), x / params.radius
    left = xp.concat(
        [scaled, -0.5 * xp.sum(scaled**2, axis=1)[:, None], xp.ones_like(x[:, :1])], axis=1
    )
    total = xp.zeros_like(x[:, 0])
    for span in params.spans(k):
        center = as_float64(params.center)[span, :] / params.radius
        norm = -0.5 * xp.sum(center**2, axis=1)[:, None]
        exponent = thread_scratch("parzen_exponent", (x.shape[0], center.shape[0]), x)
        matmul_into(exponent, left, xp.concat([center, xp.ones_like(norm), norm], axis=1).T)
        total += exp_in_place(exponent) @ weight[span]
    (far,) = xp.nonzero(total < VANISHED)
    result = safe_log(total)
    if far.shape[0]:
        result[far] = _log_sum(xp.take(x, far, axis=0), profile, params, k)
    return result


def _tiles(
    x: Array, profile: Profile, params: ParzenParams, k: int
) -> Iterator[tuple[Array, Array]]:
    narrow, x = params.narrow, x / params.radius
    for span in params.spans(k):
        center = params.center[span, :] / params.radius
        yield profile.squared(x, center, narrow), params.weight[span]


def _nearest(x: Array, profile: Profile, params: ParzenParams) -> Array:
    """The class of the nearest kernel, (n,); the first of those at the same distance."""
    xp, narrow = namespace(x), params.narrow
    far = xp.full((x.shape[0],), xp.inf, dtype=x.dtype, device=device(x))
    columns = []
    for k in range(params.n_classes):
        least = far
        for span in params.spans(k):
            squared = profile.squared(x, params.center[span, :], narrow)
            least = xp.minimum(least, xp.min(squared, axis=1))
        columns.append(least)
    return xp.argmin(xp.stack(columns, axis=1), axis=1)


def log_joint(block: Block, profile: Profile, params: ParzenParams, log_norm: float) -> Array:
    """log P(C_k) p(x|C_k), (n, K), with the integral of a kernel taken out by `log_norm`."""
    votes = log_votes(block, profile, params)
    return votes + (match_array(params.log_scale, like=votes) - log_norm)


def decided(joint: Array, block: Block, profile: Profile, params: ParzenParams) -> Array:
    """`joint` with rows that no kernel covers given to the class of their nearest kernel."""
    xp = namespace(joint)
    (rows,) = xp.nonzero(xp.max(joint, axis=1) == -xp.inf)
    if rows.shape[0]:
        nearest = _nearest(as_float64(xp.take(block.x, rows, axis=0)), profile, params)
        classes = xp.arange(joint.shape[1], dtype=nearest.dtype, device=device(joint))
        chosen = classes[None, :] == nearest[:, None]
        joint[rows, :] = safe_log(xp.astype(chosen, joint.dtype))
    return joint


def kernel_posterior(block: Block, profile: Profile, params: ParzenParams) -> Array:
    """P(i|x), the class summed out, (n, M); all on the nearest kernel where none covers the row."""
    xp, x = namespace(block.x), as_float64(block.x)
    squared = profile.squared(x, params.center, params.narrow) / params.radius**2
    counts = [params.offsets[k + 1] - params.offsets[k] for k in range(params.n_classes)]
    scale = xp.concat(
        [
            xp.full((n,), float(params.log_scale[k]), dtype=x.dtype, device=device(x))
            for k, n in enumerate(counts)
        ]
    )
    log_posterior = profile.log_height(squared) + (safe_log(params.weight) + scale)
    (rows,) = xp.nonzero(xp.max(log_posterior, axis=1) == -xp.inf)
    if rows.shape[0]:
        nearest = xp.argmin(xp.take(squared, rows, axis=0), axis=1)
        kernels = xp.arange(squared.shape[1], dtype=nearest.dtype, device=device(x))
        first = nearest[:, None] == kernels[None, :]
        log_posterior[rows, :] = safe_log(xp.astype(first, x.dtype))
    return shares_of(log_posterior, axis=1)


# -- the radius ---------------------------------------------------------------------------------------------------------


@record
class RadiusErrors(Sums):
    """Errors at each radius."""

    wrong: Array
    """Weight of misclassified rows at each radius, (R,)."""
    weight: Array


def radius_errors(
    block: Block,
    profile: Profile,
    params: ParzenParams,
    radii: list[float],
    label: Array,
    own: Array,
) -> RadiusErrors:
    """Errors of one block at all radii, from one pass over its distances.

    `block.y` holds positions in `label` (the class of a row) and `own` (its group, or -1). Kernels of
    the group of a row, the row itself and its copies, do not vote on it.
    """
    xp = namespace(block.x)
    wrong = wrong_rows(block, profile, params, radii, label, own)
    counts = xp.ones_like(wrong[0, :]) if block.weight is None else as_float64(block.weight)
    return RadiusErrors(wrong @ counts, xp.sum(counts))


def wrong_rows(
    block: Block,
    profile: Profile,
    params: ParzenParams,
    radii: list[float],
    label: Array,
    own: Array,
) -> Array:
    """Whether each row is misclassified at every radius, (R, n), ones and zeros."""
    xp, x = namespace(block.x), as_float64(block.x)
    label, own, narrow = xp.take(label, block.y), xp.take(own, block.y), params.narrow
    votes = xp.zeros((len(radii), x.shape[0], params.n_classes), dtype=x.dtype, device=device(x))
    least = xp.full((x.shape[0], params.n_classes), xp.inf, dtype=x.dtype, device=device(x))
    for k in range(params.n_classes):
        for span in params.spans(k):
            squared = profile.squared(x, params.center[span, :], narrow)
            squared = xp.where(own[:, None] == params.group[span][None, :], xp.inf, squared)
            least[:, k] = xp.minimum(least[:, k], xp.min(squared, axis=1))
            # float32 is many times faster, and enough to choose by
            heights = profile.heights(xp.astype(squared, xp.float32), radii)
            weight = xp.astype(params.weight[span], xp.float32)
            for i, height in enumerate(heights):
                votes[i, :, k] += as_float64(height @ weight)
    uncovered = xp.max(votes, axis=2) == 0  # (R, n)
    scale = xp.exp(as_float64(params.log_scale) - float(xp.max(params.log_scale)))
    nearest, most = xp.argmin(least, axis=1)[None, :], xp.argmax(votes * scale, axis=2)
    return xp.astype(xp.where(uncovered, nearest, most) != label[None, :], x.dtype)
