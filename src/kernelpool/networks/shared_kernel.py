r"""Probabilistic RBF network with shared kernels.

Titsias & Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions on Neural Networks
12(5), 2001, equations (2)-(5) and (27)-(37).

.. math:: p(x \mid C_k) = \sum_j \pi_{jk}\, p(x \mid j)

==================  ==================  =======  =====================================================================
paper               here                shape    meaning
==================  ==================  =======  =====================================================================
:math:`\pi_{jk}`    ``mixing``          (M, K)   weight of kernel j for class k; each column sums to one
:math:`\lambda`     ``sharing``         (M, K)   how far class k may use kernel j while training; 1 for its owner
:math:`T_k`         ``owner``           (M,)     the class that kernel j belongs to
:math:`P(C_k)`      ``class_prior``     (K,)     share of class k among all rows
:math:`h_{jk}(x)`   ``responsibility``  (M, n)   share of kernel j in a row whose class is known, times its weight
==================  ==================  =======  =====================================================================

Deviations from the paper: sharing may differ by kernel and class (its wish list). A row without a label takes part with
its class summed out, :math:`\sum_k P(C_k) p_\lambda(x \mid C_k)`; the class priors stay those of the labelled rows, (10).
A kernel that loses its rows keeps its place instead of dividing by zero.
"""

import math

from ..arrays import (
    FORBIDDEN,
    Array,
    at_home_of,
    clipped,
    device,
    empty,
    log_of_sums,
    logsumexp,
    namespace,
    responsibilities,
    safe_log,
    turn_into,
    wide,
)
from ..kernels import Gaussian, Kernels, Lens, Moments
from ..penalties import NoPenalty, Penalty, Subkernels
from ..products import weighed
from ..rows import Block, Rows
from ..sums import Sums, record

STARVING = 1e-3
"""A kernel that accounts for less than this part of one average row has lost its rows."""

VANISHED = 1e-12
"""Below this part of one average row a mean of rows is no longer taken at all."""


@record
class Params:
    """A trained network."""

    kernels: Kernels
    mixing: Array
    """(M, K)."""
    class_prior: Array
    """(K,)."""


@record
class Usable:
    """The kernels that rows of one class may use."""

    weight: Array
    """Their part of one column of `View.table`, then of `Lens.weight`, (m, 1 + P)."""
    place: Array
    """Where each kernel of the network stands among them, or m, (M,)."""


@record
class View:
    """The parameters as one E-step needs them."""

    lens: Lens
    table: Array
    """offset + log(sharing * mixing), by class and, last, for rows without a class, (M, K + 1)."""
    weight: Array
    """`table`, then the natural parameters: what a row's indicators and features are multiplied with, (M, K + 1 + P)."""
    allowed: Array
    """sharing * mixing, (M, K)."""
    class_posterior: Array
    """P(C_k|j), (M, K): how a row without a class counts towards each."""
    usable: tuple[Usable, ...] | None
    """For each column of `table` the kernels that count there, unless all count everywhere."""


@record
class Totals(Sums):
    """What the E-step keeps of the rows."""

    log_likelihood: Array
    weight: Array
    moments: Moments
    """With mass by class and, last, of the rows without a class, (M, K + 1)."""


@record
class TotalsByClass(Totals):
    """The same, and the moments of each class apart, for penalties that ask for them."""

    first: Array
    """(K, M, d)."""
    second: Array
    """(K, M, S), or (K, 1, S) in the tied family."""


@record
class Worst:
    """The row of each class that is modelled worst; of two such records the worse rows remain."""

    log_evidence: Array
    """(K,)."""
    x: Array
    """(K, d)."""

    def __add__(self, other: "Worst") -> "Worst":
        xp = namespace(self.x)
        keep = self.log_evidence <= other.log_evidence
        return Worst(xp.where(keep, self.log_evidence, other.log_evidence), xp.where(keep[:, None], self.x, other.x))


def sharing_table(owner: Array, sharing: float | Array, n_classes: int) -> Array:
    """lambda for the classes that borrow a kernel, one for the class that owns it, (M, K); a full table stays as it is."""
    xp = namespace(owner)
    if getattr(sharing, "ndim", 0) == 2:
        return sharing
    classes = xp.arange(n_classes, dtype=owner.dtype, device=device(owner))
    own = xp.astype(owner[:, None] == classes[None, :], xp.float64)
    return own + (1 - own) * float(sharing)


class SharedKernel:
    """Networks of one kernel family and one table of sharing; the parameters are passed in and returned."""

    def __init__(self, kernel: Gaussian, sharing: Array, penalty: Penalty | None = None) -> None:
        self.kernel, self.sharing = kernel, sharing
        self.penalty = NoPenalty() if penalty is None else penalty

    # -- training -------------------------------------------------------------------------------------------------

    @property
    def takes_classes_apart(self) -> bool:
        """Whether a sweep has less to do over rows that are sorted by class."""
        return self.penalty.by_class or not bool(namespace(self.sharing).all(self.sharing > 0))

    def sweep(self, rows: Rows, params: Params) -> tuple[Params, float]:
        """One E-step and one M-step: better parameters, and the objective a row of the given ones."""
        view = self.view(params, rows.rounding)
        totals = rows.total(self.expect, view)
        subkernels = self.subkernels(totals, params, view) if isinstance(totals, TotalsByClass) else None
        belief = self.penalty.objective(self.kernel, params.kernels, subkernels)
        objective = (float(totals.log_likelihood) + belief) / float(totals.weight)
        return self.maximize(totals, params, view, subkernels), objective

    def view(self, params: Params, rounding: float) -> View:
        """What the E-step needs to know, worked out once a sweep."""
        xp = namespace(params.mixing)
        lens = self.kernel.lens(params.kernels, rounding)
        by_class = self.sharing * params.mixing  # (M, K)
        joint = by_class * params.class_prior
        of_kernel = xp.sum(joint, axis=1)[:, None]
        by_column = xp.concat([by_class, of_kernel], axis=1)
        table = lens.offset[:, None] + clipped(safe_log(by_column), FORBIDDEN, math.inf)
        weight = xp.concat([table, lens.weight], axis=1)
        class_posterior = joint / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
        return View(lens, table, weight, by_class, class_posterior, _usable(lens, table, by_column))

    def expect(self, block: Block, view: View) -> Totals:
        """(29), (30): responsibilities of one block, kept only as sums."""
        if block.classes is not None and view.usable is not None and not (view.lens.guarded or self.penalty.by_class):
            return self._expect_by_class(block, view, block.classes, view.usable)
        xp = namespace(block.x)
        n_columns = view.table.shape[1]
        phi = self._features(block)  # (K + 1 + P, n)
        responsibility, log_evidence = self._responsibility(block, view, phi)
        sums = wide(self.kernel.sums(phi, block.x, responsibility))  # (K + 1 + P, M)
        plain = self._totals(block, view, sums[:n_columns, :].T, sums[n_columns:, :], responsibility, log_evidence)
        if not self.penalty.by_class:
            return plain
        parts = [self._moments_of(block, view, phi, responsibility, k) for k in range(n_columns - 1)]
        first, second = xp.stack([p.first for p in parts]), xp.stack([p.second for p in parts])
        return TotalsByClass(plain.log_likelihood, plain.weight, plain.moments, first, second)

    def _expect_by_class(self, block: Block, view: View, classes: dict[int, slice], usable: tuple[Usable, ...]) -> Totals:
        """The same where rows of one class lie together: every class is multiplied with the kernels that it may use alone."""
        xp, (n, d), n_columns = namespace(block.x), block.x.shape, len(usable)
        mine = [(code % n_columns, span, usable[code % n_columns]) for code, span in classes.items()]
        n_most = max(part.weight.shape[0] for _, _, part in mine)
        phi = block.scratch((1 + self.kernel.n_features(d), n))
        phi[0, :] = 1
        self._write_features(block, phi[1:, :])

        def log_joint() -> Array:
            room = empty((n_most, n), block.x)
            for _, span, part in mine:
                m = part.weight.shape[0]
                room[:m, span] = weighed(part.weight, phi[:, span])
                room[m:, span] = FORBIDDEN
            return room

        responsibility, log_evidence = responsibilities(log_joint, block.weight)
        sums, mass = 0.0, [xp.zeros_like(view.table[:, 0])] * n_columns
        for k, span, part in mine:
            found = self.kernel.sums(phi[:, span], block.x[span, :], responsibility[: part.weight.shape[0], span])
            found = xp.concat([wide(found), wide(xp.zeros_like(found[:, :1]))], axis=1)
            found = xp.take(found, part.place, axis=1)  # (1 + P, M)
            sums, mass[k] = sums + found[1:, :], found[0, :]
        return self._totals(block, view, xp.stack(mass, axis=1), sums, responsibility, log_evidence)

    def _totals(self, block: Block, view: View, mass: Array, sums: Array, responsibility: Array, log_evidence: Array) -> Totals:
        """Sums by kernel (P, M) and mass (M, K + 1) as totals."""
        xp = namespace(block.x)
        moments = self.kernel.moments(mass, sums, view.lens, block.x, responsibility)
        log_evidence = wide(log_evidence + self.kernel.common(view.lens, block.x))
        if block.weight is None:
            return Totals(xp.sum(log_evidence), 0 * log_evidence[0] + log_evidence.shape[0], moments)
        return Totals(wide(block.weight) @ log_evidence, xp.sum(wide(block.weight)), moments)

    def _moments_of(self, block: Block, view: View, phi: Array, responsibility: Array, k: int) -> Moments:
        """Moments of the rows of class k, those without a class by P(C_k|j)."""
        n_columns, posterior = view.table.shape[1], view.class_posterior[:, k : k + 1]
        if block.classes is None:
            mine = responsibility * (phi[k, :] + posterior * phi[n_columns - 1, :])
            return self._moments_in(slice(0, block.x.shape[0]), block, view, phi[n_columns:, :], mine)
        spans = [block.classes.get(code, slice(0, 0)) for code in (k, -1)]  # no other rows have a part in it
        shares = responsibility[:, spans[0]], responsibility[:, spans[1]] * posterior
        labelled, others = (
            self._moments_in(span, block, view, phi[n_columns:, span], share) for span, share in zip(spans, shares, strict=True)
        )
        return labelled + others

    def _moments_in(self, span: slice, block: Block, view: View, phi: Array, responsibility: Array) -> Moments:
        """Moments of the rows in `span`, whose features and responsibilities are given."""
        x = block.x[span, :]
        sums = wide(self.kernel.sums(phi, x, responsibility))
        return self.kernel.moments(sums[:1, :].T, sums, view.lens, x, responsibility)

    def maximize(self, totals: Totals, params: Params, view: View, subkernels: Subkernels | None = None) -> Params:
        """(35)-(37), or their counterparts under the penalty."""
        xp = namespace(params.mixing)
        mass = self.by_class(totals.moments.mass, view)
        moments = Moments(mass, totals.moments.first, totals.moments.second)
        about = self.kernel.about(at_home_of(mass, view.lens))
        vanished = xp.sum(mass, axis=1) <= VANISHED * totals.weight / mass.shape[0]
        if bool(xp.any(vanished)):
            moments = self.kernel.held(moments, about, vanished, params.kernels, VANISHED)
        mean = self.penalty.centre(self.kernel, moments, about, subkernels)
        kernels = self.kernel.estimate(moments, about, mean, *self.penalty.imagined(self.kernel, mean))
        mixing = self.penalty.mixing(self.kernel, mass, params.mixing, kernels, subkernels)
        return Params(kernels, mixing, params.class_prior)

    def subkernels(self, totals: "TotalsByClass", params: Params, view: View) -> Subkernels:
        """(11), (12), (15): each kernel as each class alone sees it."""
        xp = namespace(params.mixing)
        mass = self.by_class(totals.moments.mass, view)
        about = self.kernel.about(at_home_of(mass, view.lens))
        means, covariances = [], []
        for k in range(mass.shape[1]):
            moments = Moments(mass[:, k : k + 1], totals.first[k, ...], totals.second[k, ...])
            absent = mass[:, k] <= VANISHED * totals.weight / mass.shape[0]
            moments = self.kernel.held(moments, about, absent, params.kernels, VANISHED)
            means.append(about + moments.first / moments.mass)
            covariances.append(self.kernel.estimate(moments, about, means[-1], 0.0, 0.0).covariance)
        prior = params.mixing * params.class_prior
        of_kernel = xp.sum(prior, axis=1)[:, None]
        class_posterior = prior / xp.where(of_kernel > 0, of_kernel, xp.ones_like(of_kernel))
        return Subkernels(class_posterior, xp.stack(means, axis=1), tuple(covariances))

    def by_class(self, mass: Array, view: View) -> Array:
        """Mass by class, (M, K): that of the rows without a class is dealt out by P(C_k | j)."""
        xp = namespace(mass)
        # exp() was kept off denormals: what a class may not use is exactly zero again here
        labelled = xp.where(view.allowed > 0, mass[:, :-1], xp.zeros_like(view.allowed))
        return labelled + mass[:, -1:] * view.class_posterior

    def _features(self, block: Block) -> Array:
        """Indicators of class 0..K-1 and of no class, then phi(x), (K + 1 + P, n).

        Squares are made anew in every sweep: that costs less than to fetch them from memory, for they would not fit the caches.
        """
        (n, d), n_columns = block.x.shape, self.sharing.shape[1] + 1
        phi = block.scratch((n_columns + self.kernel.n_features(d), n))
        phi[:n_columns, :] = block.once((type(self), n_columns), self._indicators)
        self._write_features(block, phi[n_columns:, :])
        return phi

    def _write_features(self, block: Block, room: Array) -> None:
        """phi(x), of which a held block remembers as much as it has rows."""
        p, d = room.shape[0], block.x.shape[1]
        if p <= d + 1:
            block.write_once(self.kernel.name, room, lambda room: self.kernel.write_features(room, block.x))
            return
        block.write_once("columns", room[:d, :], lambda room: turn_into(room, block.x))
        self.kernel.complete(room, d)

    def _indicators(self, block: Block) -> Array:
        """(K + 1, n) or (K + 1, 1)."""
        xp, home = namespace(block.x), device(block.x)
        codes = xp.asarray([*range(self.sharing.shape[1]), -1], dtype=block.y.dtype, device=home)  # type: ignore[union-attr]
        return xp.astype(codes[:, None] == block.y[None, :], block.x.dtype)  # type: ignore[index]

    def _responsibility(self, block: Block, view: View, phi: Array) -> tuple[Array, Array]:
        return responsibilities(lambda: self._log_joint(block, view, phi), block.weight)

    def _log_joint(self, block: Block, view: View, phi: Array) -> Array:
        log_joint = weighed(view.weight, phi)  # (M, n)
        if view.lens.guarded:
            n_columns = view.table.shape[1]
            self.kernel.correct(log_joint, view.lens, block.x, view.table @ phi[:n_columns, :])
        return log_joint

    # -- coordinates in which steps may be extrapolated -----------------------------------------------------------

    def coordinates(self, params: Params) -> Array:
        """The parameters as one vector; every vector is some network. Square roots keep mixing weights positive."""
        xp = namespace(params.mixing)
        return xp.concat(
            [
                xp.reshape(params.kernels.mean, (-1,)),
                self.kernel.coordinates(params.kernels.covariance),
                xp.reshape(params.mixing**0.5, (-1,)),
            ]
        )

    def at(self, coordinates: Array, like: Params) -> Params:
        """The network at `coordinates`, at or above the floor, in the shapes of `like`."""
        xp = namespace(coordinates)
        n_kernels, d = like.kernels.mean.shape
        n_mixing = n_kernels * like.mixing.shape[1]
        mean = xp.reshape(coordinates[: n_kernels * d], (n_kernels, d))
        covariance = self.kernel.at(coordinates[n_kernels * d : -n_mixing], like.kernels.covariance)
        mixing = xp.reshape(coordinates[-n_mixing:], like.mixing.shape) ** 2
        if not bool(xp.all(xp.isfinite(coordinates)) and xp.all(xp.isfinite(covariance))):
            raise FloatingPointError("A step was extrapolated beyond the range of floating-point numbers.")
        kernels = Kernels(mean, self.kernel.floored(covariance))
        return Params(kernels, mixing / xp.sum(mixing, axis=0), like.class_prior)

    # -- kernels that have lost their rows ------------------------------------------------------------------------

    def starving(self, params: Params, class_weight: Array, row_weight: float) -> list[int]:
        """Kernels that account for next to none of the rows; `class_weight` (K,) and `row_weight` tell how much there is."""
        mass = params.mixing @ class_weight
        return [j for j, starves in enumerate(mass < STARVING * row_weight) if bool(starves)]

    def moved(self, rows: Rows, params: Params, starving: list[int], owner: Array, class_weight: Array) -> Params:
        """The same network with starving kernels, one a class, moved to the worst modelled row of the class that owns them.

        A moved kernel starts with the weight of one row and the mean covariance of all kernels, so that the rows it takes
        no part in lose almost nothing.
        """
        xp = namespace(params.mixing)
        moves = {int(owner[j]): j for j in starving}
        worst = at_home_of(params.mixing, rows.total(self.worst, self.view(params, rows.rounding)))
        mean, mixing = xp.asarray(params.kernels.mean, copy=True), xp.asarray(params.mixing, copy=True)
        for k, j in moves.items():
            share = 1 / (1 + float(class_weight[k]))
            mean[j, :] = worst.x[k, :]
            mixing[j, k] = 0
            mixing[:, k] = mixing[:, k] * ((1 - share) / xp.sum(mixing[:, k]))
            mixing[j, k] = share
        covariance = self.kernel.levelled(params.kernels.covariance, list(moves.values()))
        return Params(Kernels(mean, covariance), mixing, params.class_prior)

    def without(self, params: Params, dropped: list[int]) -> Params:
        """The network less some kernels, its mixing weights made to sum to one again."""
        xp, home = namespace(params.mixing), device(params.mixing)
        keep = [j for j in range(params.mixing.shape[0]) if j not in dropped]
        index = xp.asarray(keep, dtype=xp.int64, device=home)
        mixing = xp.take(params.mixing, index, axis=0)
        return Params(self.kernel.kept(params.kernels, index), mixing / xp.sum(mixing, axis=0), params.class_prior)

    def worst(self, block: Block, view: View) -> Worst:
        """Of each class, the row of this block with the lowest log p(x|C_k)."""
        xp = namespace(block.x)
        n_columns = view.table.shape[1]
        phi = self._features(block)
        _, log_evidence = self._responsibility(block, view, phi)
        log_evidence = log_evidence + self.kernel.common(view.lens, block.x)
        counts = (phi[: n_columns - 1, :] > 0) & ((block.weight if block.weight is not None else phi[0, :] + 1) > 0)
        by_class = xp.where(counts, log_evidence, xp.inf * xp.ones_like(log_evidence))  # (K, n)
        return Worst(xp.min(by_class, axis=1), xp.take(block.x, xp.argmin(by_class, axis=1), axis=0))

    # -- prediction -----------------------------------------------------------------------------------------------

    def log_density(self, block: Block, lens: Lens, mixing: Array) -> Array:
        """(2): log p(x|C_k), (n, K); sharing plays no part."""
        return log_of_sums(self.kernel.log_density(lens, block.x), mixing).T

    def kernel_posterior(self, block: Block, lens: Lens, mixing: Array, class_prior: Array) -> Array:
        """P(j|x), the class summed out, (n, M)."""
        xp = namespace(block.x)
        log_joint = self.kernel.log_density(lens, block.x) + safe_log(mixing @ class_prior)[:, None]
        return xp.exp(log_joint - logsumexp(log_joint, axis=0)).T


def _usable(lens: Lens, table: Array, share: Array) -> tuple[Usable, ...] | None:
    """For every column of `table` the kernels with a `share` (M, K + 1) in it, or None if all have one in all."""
    xp = namespace(table)
    if bool(xp.all(share > 0)):
        return None
    found = []
    for k in range(table.shape[1]):
        counts = share[:, k] > 0
        counts = counts if bool(xp.any(counts)) else ~counts  # rows of a class without kernels weigh nothing
        (index,) = xp.nonzero(counts)
        place = xp.where(counts, xp.cumulative_sum(xp.astype(counts, index.dtype)) - 1, index.shape[0])
        weight = xp.concat([table[:, k : k + 1], lens.weight], axis=1)
        found.append(Usable(xp.take(weight, index, axis=0), place))
    return tuple(found)
