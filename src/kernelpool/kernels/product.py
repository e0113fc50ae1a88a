r"""Gaussians over numbers times tables of probabilities over words.

.. math:: p(x \mid j) = N(x_{numbers};\, \mu_j, \Sigma_j) \prod_g \theta_{jg}(w_g)

A word stands in x as indicators, one for each level that is told apart: all zero is any other word. The features of a column of
words are its indicators, its natural parameters log-probabilities, its moments weighted counts; so words need no other sweep
than numbers. A missing word leaves its factor out.

=======================  ================  =============================================================================
in the formula           here              meaning
=======================  ================  =============================================================================
:math:`\theta_{jg}(l)`   ``mean``          probability of level l: the mean of its indicator, in the indicator's column
1 - sum of them          the other words   what no indicator stands for, never nothing: a level of its own to the prior
=======================  ================  =============================================================================

A symmetric Dirichlet prior, as if `strength` rows had been spread evenly over the levels and the other words, keeps every
probability above zero. So that parameters have the shapes of the Gaussian family, covariances have a row and a column for every
indicator too: the variance of the indicator, and no correlations.
"""

from typing import Any

from ..arrays import (
    Array,
    as_float64,
    device,
    match_array,
    namespace,
    normal_cdf,
    to_numpy,
)
from ..rows import Block, Frame, Holes
from ..sums import record
from .diag import Diag
from .gaussian import Gaussian, GaussianNaturalParams, Kernels, Moments
from .kernel import Kernel, KernelSums, NaturalParams, Observed


@record
class ProductNaturalParams(NaturalParams):
    """Those of both factors."""

    gaussian: GaussianNaturalParams
    probability: Array
    """Of each indicator, (M, W)."""
    log_odds: Array
    """Of each indicator against the other words of its group, (M, W)."""
    log_other: Array
    """Log-probability of the other words of each group, (M, G)."""


@record
class ProductMoments(KernelSums):
    """Those of the Gaussian family, and counts."""

    first: Array
    """(M, q)."""
    second: Array
    words: Array
    """Weighted counts of the indicators, (M, W)."""

    def gaussian(self) -> Moments:
        """Of the numbers alone."""
        return Moments(self.mass, self.first, self.second)


class Product(Kernel):
    """One of the Gaussian families for some columns, words in the others."""

    def __init__(self, gaussian: Gaussian, groups: tuple[int, ...], strength: float = 1.0) -> None:
        self.gaussian, self.groups, self.strength = gaussian, groups, strength
        """`groups` tells of each column the group of indicators it belongs to, -1 for a number, (d,)."""
        self.name, self.equivariant, self.matrices = gaussian.name, gaussian.equivariant, gaussian.matrices  # type: ignore[misc]
        self.numbers = [i for i, g in enumerate(groups) if g < 0]
        self.words = [i for i, g in enumerate(groups) if g >= 0]
        self.n_groups = max(groups, default=-1) + 1
        self._of_word = [groups[i] for i in self.words]

    # -- both parts -----------------------------------------------------------------------------------------------

    def _at(self, columns: list[int], like: Array) -> Array:
        xp = namespace(like)
        return xp.asarray(columns, dtype=xp.int64, device=device(like))

    def _take(self, a: Array, columns: list[int]) -> Array:
        return namespace(a).take(a, self._at(columns, a), axis=-1)

    def _membership(self, like: Array) -> Array:
        """Which group each indicator belongs to, (W, G), zeros and ones."""
        xp = namespace(like)
        rows = [[float(g == of) for g in range(self.n_groups)] for of in self._of_word]
        return xp.reshape(xp.asarray(rows, dtype=like.dtype, device=device(like)), (len(self.words), self.n_groups))

    def _parts(self, kernels: Kernels) -> tuple[Kernels, Array]:
        """The Gaussians, and the probabilities (M, W)."""
        index = self._at(self.numbers, kernels.mean)
        gaussian = Kernels(self._take(kernels.mean, self.numbers), self.gaussian.submatrix(kernels.covariance, index))
        return gaussian, self._take(kernels.mean, self.words)

    def parts(self, kernels: Kernels) -> tuple[Gaussian, Kernels]:
        """The Gaussian family and its part of the kernels."""
        return self.gaussian, self._parts(kernels)[0]

    def tempered(self, kernels: Kernels, beta: float) -> Kernels:
        """Both factors: probabilities to the power of beta sum to one again."""
        gaussian, probability = self._parts(kernels)
        other, member = self._other(probability) ** beta, self._membership(probability)
        power = probability**beta
        return self._joined(self.gaussian.tempered(gaussian, beta), power / ((other + power @ member) @ member.T))

    def _joined(self, gaussian: Kernels, probability: Array) -> Kernels:
        """Both parts in the shapes of the whole."""
        xp, d = namespace(probability), len(self.groups)
        order = [([*self.numbers, *self.words]).index(i) for i in range(d)]
        mean = self._take(xp.concat([gaussian.mean, probability], axis=1), order)
        covariance = gaussian.covariance
        spread = probability * (1 - probability)  # (M, W)
        if self.matrices:
            tied = covariance.ndim == 2
            spread = xp.mean(spread, axis=0) if tied else spread
            one = xp.eye(len(self.words), dtype=mean.dtype, device=device(mean))
            block = spread[..., None] * one
            side = xp.zeros((*covariance.shape[:-1], len(self.words)), dtype=mean.dtype, device=device(mean))
            whole = xp.concat(
                [xp.concat([covariance, side], axis=-1), xp.concat([xp.matrix_transpose(side), block], axis=-1)], axis=-2
            )
            index = self._at(order, mean)
            covariance = xp.take(xp.take(whole, index, axis=-1), index, axis=-2)
        elif covariance.ndim == 2:
            covariance = self._take(xp.concat([covariance, spread], axis=1), order)
        return Kernels(mean, covariance)

    def _numbers_of(self, block: Block) -> Block:
        """The block as the Gaussian family sees it."""
        part = Block(self._take(block.x, self.numbers), block.y, block.weight, classes=block.classes)
        if block.holes is not None:
            observed, patterns = (self._take(a, self.numbers) for a in (block.holes.observed, block.holes.patterns))
            part.holes = Holes(observed, patterns, block.holes.spans)
        return part

    # -- the model ------------------------------------------------------------------------------------------------

    def n_features(self, d: int) -> int:
        return self.gaussian.n_features(len(self.numbers)) + len(self.words)

    def write_features(self, out: Array, block: Block) -> None:
        n_words = len(self.words)
        self.gaussian.write_features(out[: out.shape[0] - n_words, :], self._numbers_of(block))
        out[out.shape[0] - n_words :, :] = self._take(block.x, self.words).T

    def natural_params(self, kernels: Kernels, eps: float) -> ProductNaturalParams:
        xp = namespace(kernels.mean)
        gaussian, probability = self._parts(kernels)
        inner = self.gaussian.natural_params(gaussian, eps)
        member = self._membership(probability)
        log_other = xp.log(self._other(probability))  # (M, G)
        log_odds = xp.log(probability) - log_other @ member.T
        weight = xp.concat([inner.weight, log_odds], axis=1)
        offset = inner.offset + xp.sum(log_other, axis=1)
        return ProductNaturalParams(weight, offset, inner.guarded, inner, probability, log_odds, log_other)

    def _other(self, probability: Array) -> Array:
        """Probability of the other words of each group, (M, G)."""
        xp = namespace(probability)
        other = 1 - probability @ self._membership(probability)
        return xp.where(other > 1e-12, other, xp.ones_like(other) * 1e-12)

    def _log_words(self, natural_params: ProductNaturalParams, x: Array) -> Array:
        """Log-probability of the words of complete rows, (M, n)."""
        xp = namespace(x)
        return natural_params.log_odds @ self._take(x, self.words).T + xp.sum(natural_params.log_other, axis=1)[:, None]

    def log_density(self, natural_params: ProductNaturalParams, x: Array) -> Array:
        numbers = self._take(x, self.numbers)
        return self.gaussian.log_density(natural_params.gaussian, numbers) + self._log_words(natural_params, x)

    def common(self, natural_params: ProductNaturalParams, x: Array) -> Array | float:
        return self.gaussian.common(natural_params.gaussian, self._take(x, self.numbers))

    def correct(self, log_joint: Array, natural_params: ProductNaturalParams, x: Array, constant: Array) -> None:
        if not natural_params.guarded:
            return
        numbers, words = self._take(x, self.numbers), self._log_words(natural_params, x)
        for j in natural_params.guarded:
            exact = self.gaussian.exact_log_density(natural_params.gaussian, j, numbers) + words[j, :]
            log_joint[j, :] = exact + (constant[j, ...] - natural_params.offset[j])

    def observe(self, natural_params: ProductNaturalParams, block: Block) -> "ObservedProduct":
        return ObservedProduct(self, natural_params, block)

    def log_peak(self, kernels: Kernels) -> Array:
        xp = namespace(kernels.mean)
        gaussian, probability = self._parts(kernels)
        peak, other = self.gaussian.log_peak(gaussian), self._other(probability)
        for g in range(self.n_groups):
            mine = xp.concat(
                [probability[:, [i for i, of in enumerate(self._of_word) if of == g]], other[:, g : g + 1]], axis=1
            )
            peak = peak + xp.log(xp.max(mine, axis=1))
        return peak

    # -- estimation -----------------------------------------------------------------------------------------------

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        return phi @ responsibility.T

    def moments(
        self, mass: Array, sums: Array, natural_params: ProductNaturalParams, x: Array, responsibility: Array
    ) -> ProductMoments:
        n = sums.shape[0] - len(self.words)
        numbers = self._take(x, self.numbers)
        found = self.gaussian.moments(mass, sums[:n, :], natural_params.gaussian, numbers, responsibility)
        return ProductMoments(mass, found.first, found.second, sums[n:, :].T)

    def moment_origin(self, natural_params: ProductNaturalParams) -> Array:
        return self.gaussian.moment_origin(natural_params.gaussian)

    def with_pseudocounts(
        self, moments: ProductMoments, moment_origin: Array, vanished: Array, kernels: Kernels, mass: float
    ) -> ProductMoments:
        xp = namespace(moments.words)
        gaussian, probability = self._parts(kernels)
        found = self.gaussian.with_pseudocounts(moments.gaussian(), moment_origin, vanished, gaussian, mass)
        words = xp.where(vanished[:, None], mass * probability, moments.words)
        return ProductMoments(found.mass, found.first, found.second, words)

    def concat_moments(self, parts: tuple[ProductMoments, ...], mass: Array) -> ProductMoments:
        found = self.gaussian.concat_moments(tuple(part.gaussian() for part in parts), mass)
        return ProductMoments(mass, found.first, found.second, namespace(mass).concat([part.words for part in parts]))

    def estimate(self, moments: ProductMoments, moment_origin: Array, prior: Any = None) -> Kernels:
        xp = namespace(moments.words)
        gaussian = self.gaussian.estimate(moments.gaussian(), moment_origin, prior)
        mass = xp.sum(moments.mass, axis=1)[:, None]
        counts = xp.where(moments.words > 0, moments.words, xp.zeros_like(moments.words))
        return self._joined(gaussian, (counts + self._spread_evenly(counts)) / (mass + self.strength))

    def _spread_evenly(self, like: Array) -> Array:
        """Rows' worth of belief in each indicator, (W,): `strength` over the levels of its group and the other words."""
        xp, member = namespace(like), self._membership(like)
        return member @ (self.strength / (xp.sum(member, axis=0) + 1))

    def log_word_prior(self, kernels: Kernels) -> float:
        """The Dirichlet prior of all kernels, up to a constant."""
        xp = namespace(kernels.mean)
        _, probability = self._parts(kernels)
        member = self._membership(probability)
        of_other = self.strength / (xp.sum(member, axis=0) + 1)
        inside = xp.sum(xp.log(probability) @ self._spread_evenly(probability))
        return float(inside + xp.sum(xp.log(self._other(probability)) @ of_other))

    # -- coordinates ----------------------------------------------------------------------------------------------

    def coordinates(self, kernels: Kernels) -> Array:
        """Those of the Gaussians, then log-odds against the other words."""
        xp = namespace(kernels.mean)
        gaussian, probability = self._parts(kernels)
        log_odds = xp.log(probability) - xp.log(self._other(probability)) @ self._membership(probability).T
        return xp.concat([self.gaussian.coordinates(gaussian), xp.reshape(log_odds, (-1,))])

    def at(self, coordinates: Array, like: Kernels) -> Kernels:
        xp, n_kernels = namespace(coordinates), like.mean.shape[0]
        gaussian, probability = self._parts(like)
        n = n_kernels * len(self.words)
        odds = xp.exp(xp.clip(xp.reshape(coordinates[coordinates.shape[0] - n :], probability.shape), min=-30.0, max=30.0))
        member = self._membership(probability)
        return self._joined(
            self.gaussian.at(coordinates[: coordinates.shape[0] - n], gaussian), odds / ((1 + odds @ member) @ member.T)
        )

    def pullback(self, kernels: Kernels, moments: ProductMoments, moment_origin: Array) -> Array:
        """Of the log-odds: counts less what was expected of them."""
        xp = namespace(kernels.mean)
        gaussian, probability = self._parts(kernels)
        by_numbers = self.gaussian.pullback(gaussian, moments.gaussian(), moment_origin)
        by_words = moments.words - xp.sum(moments.mass, axis=1)[:, None] * probability
        return xp.concat([by_numbers, xp.reshape(by_words, (-1,))])

    # -- kernels as such ------------------------------------------------------------------------------------------

    def shapes(self, n_kernels: int, d: int) -> dict[str, tuple[int, ...]]:  # type: ignore[override]
        return self.gaussian.shapes(n_kernels, d)

    def n_parameters(self, n_kernels: int, d: int) -> int:
        return self.gaussian.n_parameters(n_kernels, len(self.numbers)) + n_kernels * len(self.words)

    def variances(self, kernels: Kernels) -> Array:
        """Variance of each kernel along each column, (M, d)."""
        gaussian, probability = self._parts(kernels)
        found = namespace(probability).concat([self.gaussian.variances(gaussian), probability * (1 - probability)], axis=1)
        return self._take(found, [([*self.numbers, *self.words]).index(i) for i in range(len(self.groups))])

    def take(self, kernels: Kernels, index: Array) -> Kernels:
        return self.gaussian.take(kernels, index)

    def move(self, kernels: Kernels, to: dict[int, Array], *, reset: bool = False) -> Kernels:
        """Moved kernels keep their words, or take the mean of all."""
        xp = namespace(kernels.mean)
        gaussian, probability = self._parts(kernels)
        gaussian = self.gaussian.move(gaussian, {j: self._take(row, self.numbers) for j, row in to.items()}, reset=reset)
        if reset:
            mean = xp.mean(probability, axis=0)
            probability = xp.stack([mean if j in to else probability[j, :] for j in range(probability.shape[0])])
        return self._joined(gaussian, probability)

    def place(self, groups: list[tuple[Array, Array, Array]]) -> Kernels:
        """The shares of words around each center, drawn some way towards equal shares."""
        parts = [
            (self._take(centers, self.numbers), self._take(away, self.numbers), weight) for centers, away, weight in groups
        ]
        gaussian = self.gaussian.place(parts)
        shares = namespace(gaussian.mean).concat([self._take(centers, self.words) for centers, _, _ in groups])
        even = self._spread_evenly(shares) / self.strength
        return self._joined(gaussian, 0.8 * namespace(shares).clip(shares, min=0.0, max=1.0) + 0.2 * even)

    def marginal(self, kernels: Kernels, columns: list[int]) -> tuple["Kernel", Kernels]:
        """Levels whose indicators are left out are among the other words."""
        gaussian, probability = self._parts(kernels)
        numbers = [self.numbers.index(i) for i in columns if i in self.numbers]
        words = [self.words.index(i) for i in columns if i in self.words]
        family, left = self.gaussian.marginal(gaussian, numbers)
        if not numbers:  # no matrix has no rows
            nothing = left.mean[:, :0]
            family, left = Diag(family.floor), Kernels(nothing, nothing)
        known = sorted({self.groups[i] for i in columns if self.groups[i] >= 0})
        groups = tuple(known.index(self.groups[i]) if self.groups[i] >= 0 else -1 for i in columns)
        other = Product(family, groups, self.strength)
        return other, other._joined(left, self._take(probability, words))

    def sample(self, kernels: Kernels, j: int, n: int, rng: Any) -> Array:
        gaussian, probability = self._parts(kernels)
        numbers = self.gaussian.sample(gaussian, j, n, rng)
        uniform = match_array(rng.uniform(size=(n, self.n_groups)), like=probability)
        words = self._drawn(namespace(probability).zeros_like(numbers[:, :1]) + probability[j, :], uniform)
        both = namespace(words).concat([numbers, words], axis=1)
        return self._take(both, [([*self.numbers, *self.words]).index(i) for i in range(len(self.groups))])

    def _drawn(self, probability: Array, uniform: Array) -> Array:
        """Indicators of one level a group, (n, W), drawn with probabilities (n, W) by uniform numbers (n, G)."""
        xp, columns, below = namespace(probability), [], [0.0 * uniform[:, 0] for _ in range(self.n_groups)]
        for i, g in enumerate(self._of_word):
            above = below[g] + probability[:, i]
            columns.append(xp.astype((uniform[:, g] >= below[g]) & (uniform[:, g] < above), probability.dtype))
            below[g] = above
        return xp.stack(columns, axis=1)

    def describe(self, kernels: Kernels) -> list[dict[str, Any]]:
        """Mean, deviation and correlations of the numbers, and the probability of each indicator."""
        gaussian, probability = self._parts(kernels)
        told = self.gaussian.describe(gaussian)
        return [{**one, "probability": p.tolist()} for one, p in zip(told, to_numpy(probability), strict=True)]

    def _frame_of_numbers(self, frame: Frame) -> Frame:
        return Frame(self._take(frame.origin, self.numbers), self._take(frame.unit, self.numbers))

    def into(self, kernels: Kernels, frame: Frame) -> Kernels:
        gaussian, probability = self._parts(kernels)
        return self._joined(self.gaussian.into(gaussian, self._frame_of_numbers(frame)), probability)

    def out_of(self, kernels: Kernels, frame: Frame) -> Kernels:
        gaussian, probability = self._parts(kernels)
        return self._joined(self.gaussian.out_of(gaussian, self._frame_of_numbers(frame)), probability)


class ObservedProduct(Observed):
    """Both factors beside rows with holes; a word is missing where one of its indicators is."""

    def __init__(self, kernel: Product, natural_params: ProductNaturalParams, block: Block) -> None:
        assert block.holes is not None
        self.kernel, self.natural_params, self.block = kernel, natural_params, block
        self.inner = kernel.gaussian.observe(natural_params.gaussian, kernel._numbers_of(block))
        xp, member = namespace(block.x), kernel._membership(block.x)
        unknown = 1 - kernel._take(block.holes.observed, kernel.words)  # (n, W)
        self.known = xp.astype(unknown @ member == 0, block.x.dtype)  # (n, G)
        self.words = kernel._take(block.x, kernel.words) * (self.known @ member.T)  # (n, W)
        log_words = natural_params.log_odds @ self.words.T + natural_params.log_other @ self.known.T
        self.log_density = self.inner.log_density + log_words

    def moments(self, mass: Array, responsibility: Array) -> ProductMoments:
        """Missing words as each kernel expects them."""
        found = self.inner.moments(mass, responsibility)
        member = self.kernel._membership(self.block.x)
        missing = as_float64(responsibility @ (1 - self.known) @ member.T)  # (M, W)
        words = as_float64(responsibility @ self.words) + missing * as_float64(self.natural_params.probability)
        return ProductMoments(mass, found.first, found.second, words)

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        kernel = self.kernel
        xp, probability = namespace(share), self.natural_params.probability
        numbers = self.inner.fill(share, None if noise is None else kernel._take(noise, kernel.numbers))
        expected = share.T @ probability  # (n, W)
        if noise is not None:
            first = [kernel._of_word.index(g) for g in range(kernel.n_groups)]
            expected = kernel._drawn(expected, normal_cdf(kernel._take(kernel._take(noise, kernel.words), first)))
        words = self.words + (1 - self.known @ kernel._membership(self.block.x).T) * expected
        both = xp.concat([numbers, words], axis=1)
        return kernel._take(both, [([*kernel.numbers, *kernel.words]).index(i) for i in range(len(kernel.groups))])
