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

Words stand behind the numbers by their indicators (`tables.words.Indicators`), so that all words of a column are equally far
from one another. Of rows with missing cells the votes are those of the marginal kernels, `Profile.log_marginal`.

Deviations: several classes, by the largest sum. A row that no kernel covers has no votes; it goes to the class of its nearest
kernel, which is what a radius that grew until it reached one would give.
"""

from collections.abc import Iterator
from typing import Any

from ..arrays import (
    Array,
    as_float64,
    device,
    exp_in_place,
    logsumexp,
    match_array,
    matmul_into,
    namespace,
    safe_log,
    shares_of,
    thread_scratch,
)
from ..rows import Block
from ..sums import Sums, record
from .parzen_kernels import TILE, GaussianProfile, Profile, log_ways, observed_distances

VANISHED = 1e-200
"""Sums of Gaussian heights below this are taken about the largest term."""

NARROW = 1e-6
"""Where radius^2 is less than this part of the largest squared norm, distances are taken from differences, not products."""


# -- the network --------------------------------------------------------------------------------------------------------


@record
class ParzenParams:
    """M kernels of a common radius, in a frame, sorted by class."""

    center: Array
    """(M, d)."""
    weight: Array
    """(M,)."""
    offsets: tuple[int, ...]
    """Kernels offsets[k] to offsets[k + 1] belong to class k."""
    log_scale: Array
    """log of what one vote counts for each class, (K,): the prior over the sum of the class's votes."""
    radius: float
    narrow: bool
    words: tuple[int, ...] = ()
    """Levels of each column of words, whose indicators are the last columns."""
    word_squared: float = 0.0
    """Squared distance between two words of a column."""

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.offsets) - 1

    def spans(self, k: int) -> Iterator[slice]:
        """The kernels of class k, a tile at a time."""
        for start in range(self.offsets[k], self.offsets[k + 1], TILE):
            yield slice(start, min(start + TILE, self.offsets[k + 1]))


def parzen_params(
    center: Array,
    weight: Array,
    offsets: tuple[int, ...],
    log_scale: Array,
    radius: float,
    words: tuple[int, ...] = (),
    word_squared: float = 0.0,
) -> ParzenParams:
    """Parameters of a network whose distances are computed in the way that its radius allows."""
    xp = namespace(center)
    largest = float(xp.max(xp.sum(center**2, axis=1))) if center.shape[0] else 0.0
    return ParzenParams(
        center,
        weight,
        offsets,
        log_scale,
        radius,
        radius**2 < NARROW * largest,
        words,
        word_squared,
    )


@record
class Gaps:
    """What is missing of some rows."""

    observed: Array
    """One where a number or an indicator is known, (n, D)."""
    n_numbers: Array
    """Missing numbers, (n, 1)."""
    log_ways: Array
    """See `Profile.log_marginal`, (n, G + 1)."""

    def taken(self, rows: Array) -> "Gaps":
        """Those of some rows."""
        return Gaps(
            *(
                namespace(a).take(a, rows, axis=0)
                for a in (self.observed, self.n_numbers, self.log_ways)
            )
        )


def gaps_of(block: Block, words: tuple[int, ...] = ()) -> Gaps | None:
    """What is missing of the rows of a block whose last columns are the indicators of words; None where nothing is."""
    if block.missing is None:
        return None
    xp, observed = namespace(block.x), as_float64(block.missing.observed)
    q = observed.shape[1] - sum(words)
    starts = xp.asarray(
        [q + sum(words[:g]) for g in range(len(words))], dtype=xp.int64, device=device(observed)
    )
    missing = 1 - xp.take(observed, starts, axis=1)
    return Gaps(observed, xp.sum(1 - observed[:, :q], axis=1)[:, None], log_ways(words, missing))


def log_prior_scale(prior: Any, votes: Any) -> Any:
    """log(P(C_k) / votes of class k), (K,): what one vote counts; minus infinity for a class without votes."""
    xp = namespace(votes)
    safe = xp.where(votes > 0, votes, xp.ones_like(votes))
    return xp.where(votes > 0, safe_log(prior / safe), -xp.inf)


def log_votes(block: Block, profile: Profile, params: ParzenParams) -> Array:
    """log sum_i w_i K((x - x_i) / r) of each class, (n, K); minus infinity where no kernel of the class covers the row."""
    xp, x, gaps = namespace(block.x), as_float64(block.x), gaps_of(block, params.words)
    log_sum = (
        _log_gaussian_sum
        if isinstance(profile, GaussianProfile) and not params.narrow
        else _log_sum
    )
    present = [k for k in range(params.n_classes) if params.offsets[k] < params.offsets[k + 1]]
    columns = [
        log_sum(x, profile, params, k)
        if gaps is None
        else _log_marginal_sum(x, profile, params, k, gaps)
        for k in present
    ]
    nothing = xp.full((x.shape[0],), -xp.inf, dtype=x.dtype, device=device(x))
    filled = iter(columns)
    return xp.stack(
        [
            next(filled) if params.offsets[k] < params.offsets[k + 1] else nothing
            for k in range(params.n_classes)
        ],
        axis=1,
    )


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


def _log_marginal_sum(
    x: Array, profile: Profile, params: ParzenParams, k: int, gaps: Gaps
) -> Array:
    """The same for rows of which cells are missing."""
    log_weight = safe_log(as_float64(params.weight))
    parts = [
        logsumexp(_log_marginal_heights(x, profile, params, span, gaps) + log_weight[span], axis=1)
        for span in params.spans(k)
    ]
    return logsumexp(namespace(x).stack(parts), axis=0)


def _log_marginal_heights(
    x: Array, profile: Profile, params: ParzenParams, span: slice, gaps: Gaps
) -> Array:
    """log of the marginal heights of some kernels, (n, m)."""
    center, radius = as_float64(params.center)[span, :], params.radius
    squared = observed_distances(x / radius, gaps.observed, center / radius, params.narrow)
    squared = namespace(x).clip(squared, min=0.0)
    return profile.log_marginal(
        squared, gaps.n_numbers, gaps.log_ways, params.word_squared / radius**2
    )


def _distances(
    x: Array, profile: Profile, params: ParzenParams, span: slice, gaps: Gaps | None
) -> Array:
    """Squared distances from some kernels, along the features that are known, (n, m)."""
    center = as_float64(params.center)[span, :]
    if gaps is None:
        return profile.squared(x, center, params.narrow)
    return observed_distances(x, gaps.observed, center, params.narrow)


def _tiles(
    x: Array, profile: Profile, params: ParzenParams, k: int
) -> Iterator[tuple[Array, Array]]:
    center, weight = as_float64(params.center), as_float64(params.weight)
    x = x / params.radius
    for span in params.spans(k):
        yield profile.squared(x, center[span, :] / params.radius, params.narrow), weight[span]


def nearest_class(block: Block, profile: Profile, params: ParzenParams) -> Array:
    """The class of the nearest kernel, (n,); the first of those at the same distance."""
    return _nearest(as_float64(block.x), profile, params, gaps_of(block, params.words))


def _nearest(x: Array, profile: Profile, params: ParzenParams, gaps: Gaps | None) -> Array:
    return namespace(x).argmin(_least(x, profile, params, gaps), axis=1)


def _least(x: Array, profile: Profile, params: ParzenParams, gaps: Gaps | None) -> Array:
    """Squared distance of the nearest kernel of each class, (n, K)."""
    xp = namespace(x)
    far = xp.full((x.shape[0],), xp.inf, dtype=x.dtype, device=device(x))
    columns = []
    for k in range(params.n_classes):
        least = far
        for span in params.spans(k):
            least = xp.minimum(least, xp.min(_distances(x, profile, params, span, gaps), axis=1))
        columns.append(least)
    return xp.stack(columns, axis=1)


def log_joint(block: Block, profile: Profile, params: ParzenParams, log_norm: float) -> Array:
    """log P(C_k) p(x|C_k), (n, K), with the integral of a kernel taken out by `log_norm`."""
    votes = log_votes(block, profile, params)
    return votes + (match_array(params.log_scale, like=votes) - log_norm)


def decided(joint: Array, block: Block, profile: Profile, params: ParzenParams) -> Array:
    """`joint` with rows that no kernel covers given to the class of their nearest kernel."""
    xp = namespace(joint)
    (rows,) = xp.nonzero(xp.max(joint, axis=1) == -xp.inf)
    if rows.shape[0]:
        gaps = gaps_of(block, params.words)
        x = as_float64(xp.take(block.x, rows, axis=0))
        nearest = _nearest(x, profile, params, None if gaps is None else gaps.taken(rows))
        classes = xp.arange(joint.shape[1], dtype=nearest.dtype, device=device(joint))
        chosen = classes[None, :] == nearest[:, None]
        joint[rows, :] = safe_log(xp.astype(chosen, joint.dtype))
    return joint


def kernel_posterior(block: Block, profile: Profile, params: ParzenParams) -> Array:
    """P(i|x), the class summed out, (n, M); all on the nearest kernel where none covers the row."""
    xp, x, gaps = namespace(block.x), as_float64(block.x), gaps_of(block, params.words)
    every = slice(0, params.center.shape[0])
    squared = _distances(x, profile, params, every, gaps) / params.radius**2
    counts = [params.offsets[k + 1] - params.offsets[k] for k in range(params.n_classes)]
    share = xp.concat(
        [
            xp.full((n,), float(params.log_scale[k]), dtype=x.dtype, device=device(x))
            for k, n in enumerate(counts)
        ]
    )
    height = (
        profile.log_height(squared)
        if gaps is None
        else _log_marginal_heights(x, profile, params, every, gaps)
    )
    log_posterior = height + (safe_log(as_float64(params.weight)) + share)
    (rows,) = xp.nonzero(xp.max(log_posterior, axis=1) == -xp.inf)
    if rows.shape[0]:
        alone = xp.take(squared, rows, axis=0)
        first = (
            xp.argmin(alone, axis=1)[:, None]
            == xp.arange(squared.shape[1], dtype=xp.int64, device=device(x))[None, :]
        )
        log_posterior[rows, :] = safe_log(xp.astype(first, x.dtype))
    return shares_of(log_posterior, axis=1)


# -- the radius ---------------------------------------------------------------------------------------------------------


@record
class RadiusErrors(Sums):
    """What each radius would have cost."""

    wrong: Array
    """Weight of misclassified rows at each radius, (R,)."""
    uncovered: Array
    """Weight of rows without a vote, (R,)."""
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

    `block.y` holds positions in `label` (the class of a row) and `own` (the kernel that the row itself is, or -1). A row is
    left out of its own vote; one that counts w times is left out once, as if it stood there w times.
    """
    xp = namespace(block.x)
    wrong, uncovered = _judged(block, profile, params, radii, label, own)
    counts = xp.ones_like(wrong[0, :]) if block.weight is None else as_float64(block.weight)
    return RadiusErrors(wrong @ counts, uncovered @ counts, xp.sum(counts))


def wrong_rows(
    block: Block, profile: Profile, params: ParzenParams, label: Array, own: Array
) -> Array:
    """One for each row that the network misclassifies, the row left out of its own vote, zero for the others, (n,)."""
    return _judged(block, profile, params, [params.radius], label, own)[0][0, :]


def _judged(
    block: Block,
    profile: Profile,
    params: ParzenParams,
    radii: list[float],
    label: Array,
    own: Array,
) -> tuple[Array, Array]:
    """Whether each row is misclassified, and whether no kernel covers it, at every radius, (R, n) each, ones and zeros."""
    xp, x = namespace(block.x), as_float64(block.x)
    label, own = xp.take(label, block.y), xp.take(own, block.y)
    gaps = gaps_of(block, params.words)
    votes, least = _votes_by_radius(x, profile, params, radii, own, gaps)  # (R, n, K), (n, K)
    classes = xp.arange(params.n_classes, dtype=label.dtype, device=device(x))
    mine = xp.astype(classes[None, :] == label[:, None], x.dtype)
    weight = as_float64(params.weight)
    again = xp.where(
        own >= 0,
        xp.take(weight, xp.where(own >= 0, own, xp.zeros_like(own))) - 1,
        xp.zeros_like(x[:, 0]),
    )
    again = xp.clip(again, min=0.0)  # the other copies of the row
    votes += (again[:, None] * mine)[None, :, :]
    least = xp.where((again[:, None] * mine) > 0, xp.zeros_like(least), least)
    uncovered = xp.max(votes, axis=2) == 0  # (R, n)
    scale = xp.exp(as_float64(params.log_scale) - float(xp.max(params.log_scale)))
    chosen = xp.where(
        uncovered, xp.argmin(least, axis=1)[None, :], xp.argmax(votes * scale, axis=2)
    )
    return xp.astype(chosen != label[None, :], x.dtype), xp.astype(uncovered, x.dtype)


def _votes_by_radius(
    x: Array,
    profile: Profile,
    params: ParzenParams,
    radii: list[float],
    own: Array,
    gaps: Gaps | None,
) -> tuple[Array, Array]:
    xp, home = namespace(x), device(x)
    weight = as_float64(params.weight)
    votes = xp.zeros((len(radii), x.shape[0], params.n_classes), dtype=x.dtype, device=home)
    least = xp.full((x.shape[0], params.n_classes), xp.inf, dtype=x.dtype, device=home)
    for k in range(params.n_classes):
        for span in params.spans(k):
            squared = _distances(x, profile, params, span, gaps)
            itself = (
                own[:, None]
                == xp.arange(span.start, span.stop, dtype=own.dtype, device=home)[None, :]
            )
            squared = xp.where(itself, xp.inf, squared)
            least[:, k] = xp.minimum(least[:, k], xp.min(squared, axis=1))
            if gaps is None:
                squared = xp.astype(
                    squared, xp.float32
                )  # many times faster, and enough to choose by
                heights = profile.heights(squared, radii)
            else:
                heights = _marginal_heights(xp.clip(squared, min=0.0), profile, params, radii, gaps)
            for i, height in enumerate(heights):
                votes[i, :, k] += as_float64(height @ xp.astype(weight[span], xp.float32))
    return votes, least


def _marginal_heights(
    squared: Array, profile: Profile, params: ParzenParams, radii: list[float], gaps: Gaps
) -> Iterator[Array]:
    """Marginal heights at one radius after the other, each row's over its largest possible: of a row only ratios matter."""
    xp = namespace(squared)
    for radius in radii:
        ratio = params.word_squared / radius**2
        most = profile.log_marginal(
            xp.zeros_like(squared[:, :1]), gaps.n_numbers, gaps.log_ways, ratio
        )
        log_height = profile.log_marginal(squared / radius**2, gaps.n_numbers, gaps.log_ways, ratio)
        yield xp.astype(xp.exp(log_height - most), xp.float32)
