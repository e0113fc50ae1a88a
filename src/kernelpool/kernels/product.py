r"""Gaussians over numbers times tables of probabilities over words.

.. math:: p(x \mid j) = N(x_{numbers};\, \mu_j, \Sigma_j) \prod_g \theta_{jg}(w_g)

A word stands in x as the code of its level, 0 to L - 1; the last level is any other word. Its log-probability is looked up in
the table of the kernel, and its moments are weighted counts: no array of rows times levels is ever made, however many levels
there are. A missing word leaves its factor out.

=======================  ===============  ======  ===========================================================================
in the formula           here             shape   meaning
=======================  ===============  ======  ===========================================================================
:math:`w_g`              a column of x    (n,)    code of the level, a whole number
:math:`\theta_{jg}(l)`   ``probability``  (M, W)  tables of all columns of words, one beside the other; each sums to one
=======================  ===============  ======  ===========================================================================

A symmetric Dirichlet prior, as if `strength` rows had been spread evenly over the levels, keeps every probability above zero.
So that means and covariances have the shapes of the Gaussian family, they have an entry for every column of words too: mean
zero, variance one, no correlations. It means nothing.
"""

from itertools import pairwise
from typing import Any

from ..arrays import (
    Array,
    as_float64,
    counts_of_codes,
    device,
    match_array,
    namespace,
    normal_cdf,
)
from ..rows import Block, Frame, MissingCells
from ..sums import record
from .diag import Diag
from .gaussian import Gaussian, GaussianNaturalParams, Kernels, Moments
from .kernel import Kernel, KernelSums, NaturalParams, Observed

MOST_INDICATORS = 32
"""Levels of a column that starts tell apart; more of them are thrown together by their codes."""

CHUNK = 1 << 20
"""Numbers in an array of some rows by all levels, where missing words are filled."""


@record
class ProductKernels(Kernels):
    """M Gaussians, and M tables for each column of words."""

    probability: Array
    """(M, W)."""


@record
class ProductNaturalParams(NaturalParams):
    """Those of both factors; what words add is looked up, not multiplied."""

    gaussian: GaussianNaturalParams
    probability: Array
    """(M, W)."""
    log_probability: Array
    """(M, W)."""


@record
class ProductMoments(KernelSums):
    """Those of the Gaussian family, and counts."""

    first: Array
    """(M, q)."""
    second: Array
    words: Array
    """Weighted counts of the levels, (M, W)."""

    def gaussian(self) -> Moments:
        """Of the numbers alone."""
        return Moments(self.mass, self.first, self.second)


class Product(Kernel):
    """One of the Gaussian families for some columns, words in the others."""

    looks_up = True

    def __init__(self, gaussian: Gaussian, levels: tuple[int, ...], strength: float = 1.0) -> None:
        self.gaussian, self.levels, self.strength = gaussian, levels, strength
        """`levels` tells of each column how many levels its words have, 0 for a number, (d,)."""
        self.name = gaussian.name  # type: ignore[misc]
        self.equivariant = gaussian.equivariant  # type: ignore[misc]
        self.matrices = gaussian.matrices  # type: ignore[misc]
        self.scaled = gaussian.scaled  # type: ignore[misc]
        self.numbers = [i for i, n in enumerate(levels) if not n]
        self.words = [i for i, n in enumerate(levels) if n]
        ends = [0]
        for i in self.words:
            ends.append(ends[-1] + levels[i])
        self.spans = [slice(start, end) for start, end in pairwise(ends)]
        """Where the table of each column of words lies among all."""
        self.n_levels = ends[-1]

    # -- both parts -----------------------------------------------------------------------------------------------

    def _at(self, columns: list[int], like: Array) -> Array:
        xp = namespace(like)
        return xp.asarray(columns, dtype=xp.int64, device=device(like))

    def _take(self, a: Array, columns: list[int]) -> Array:
        return namespace(a).take(a, self._at(columns, a), axis=-1)

    def parts(self, kernels: Kernels) -> tuple[Gaussian, Kernels]:
        """The Gaussian family and its part of the kernels."""
        index = self._at(self.numbers, kernels.mean)
        return self.gaussian, Kernels(
            self._take(kernels.mean, self.numbers),
            self.gaussian.submatrix(kernels.covariance, index),
        )

    def _joined(self, gaussian: Kernels, probability: Array) -> ProductKernels:
        """Both parts, means and covariances with an entry for every column."""
        xp, mean, covariance = namespace(probability), gaussian.mean, gaussian.covariance
        order = self._order()
        zero = xp.zeros((mean.shape[0], len(self.words)), dtype=mean.dtype, device=device(mean))
        if self.matrices:
            side = xp.zeros(
                (*covariance.shape[:-1], len(self.words)), dtype=mean.dtype, device=device(mean)
            )
            one = (
                xp.eye(len(self.words), dtype=mean.dtype, device=device(mean))
                + xp.matrix_transpose(side)[..., :1] * 0
            )
            below = xp.concat([xp.matrix_transpose(side), one], axis=-1)
            index = self._at(order, mean)
            whole = xp.concat([xp.concat([covariance, side], axis=-1), below], axis=-2)
            covariance = xp.take(xp.take(whole, index, axis=-1), index, axis=-2)
        elif covariance.ndim == 2:
            covariance = self._take(xp.concat([covariance, zero + 1], axis=1), order)
        return ProductKernels(
            self._take(xp.concat([mean, zero], axis=1), order), covariance, probability
        )

    def _order(self) -> list[int]:
        """Where each column stands among the numbers and, after them, the words."""
        among = [*self.numbers, *self.words]
        return [among.index(i) for i in range(len(self.levels))]

    def _numbers_of(self, block: Block) -> Block:
        """The block as the Gaussian family sees it."""
        part = Block(
            self._take(block.x, self.numbers), block.y, block.weight, classes=block.classes
        )
        if block.missing is not None:
            observed, patterns = (
                self._take(a, self.numbers)
                for a in (block.missing.observed, block.missing.patterns)
            )
            part.missing = MissingCells(observed, patterns, block.missing.spans)
        return part

    def _codes(self, x: Array) -> list[Array]:
        """The level of every row in each column of words, (n,)."""
        xp = namespace(x)
        return [xp.astype(x[:, i], xp.int64) for i in self.words]

    def normalized(self, odds: Array) -> Array:
        """Tables that sum to one, (M, W)."""
        xp = namespace(odds)
        return xp.concat(
            [odds[:, s] / xp.sum(odds[:, s], axis=1, keepdims=True) for s in self.spans], axis=1
        )

    # -- the model ------------------------------------------------------------------------------------------------

    def n_features(self, d: int) -> int:
        return self.gaussian.n_features(len(self.numbers))

    def write_features(self, out: Array, block: Block) -> None:
        self.gaussian.write_features(out, self._numbers_of(block))

    def natural_params(self, kernels: ProductKernels, eps: float) -> ProductNaturalParams:
        _, gaussian = self.parts(kernels)
        inner = self.gaussian.natural_params(gaussian, eps)
        log_probability = namespace(kernels.mean).log(kernels.probability)
        return ProductNaturalParams(
            inner.weight, inner.offset, inner.guarded, inner, kernels.probability, log_probability
        )

    def look_up(
        self, natural_params: ProductNaturalParams, x: Array, of: Array | None = None
    ) -> Array:
        xp, tables = namespace(x), natural_params.log_probability
        tables = tables if of is None else xp.take(tables, of, axis=0)
        found = [
            xp.take(tables[:, s], code, axis=1)
            for s, code in zip(self.spans, self._codes(x), strict=True)
        ]
        return sum(found[1:], found[0])

    def log_density(self, natural_params: ProductNaturalParams, x: Array) -> Array:
        numbers = self._take(x, self.numbers)
        return self.gaussian.log_density(natural_params.gaussian, numbers) + self.look_up(
            natural_params, x
        )

    def common(self, natural_params: ProductNaturalParams, x: Array) -> Array | float:
        return self.gaussian.common(natural_params.gaussian, self._take(x, self.numbers))

    def correct(
        self, log_joint: Array, natural_params: ProductNaturalParams, x: Array, constant: Array
    ) -> None:
        self.gaussian.correct(
            log_joint, natural_params.gaussian, self._take(x, self.numbers), constant
        )

    def observe(self, natural_params: ProductNaturalParams, block: Block) -> "ObservedProduct":
        return ObservedProduct(self, natural_params, block)

    def log_peak(self, kernels: ProductKernels) -> Array:
        xp = namespace(kernels.mean)
        peak = self.gaussian.log_peak(self.parts(kernels)[1])
        for s in self.spans:
            peak = peak + xp.log(xp.max(kernels.probability[:, s], axis=1))
        return peak

    # -- estimation -----------------------------------------------------------------------------------------------

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """The sums of the numbers, then counts."""
        found = self.gaussian.sums(phi, self._take(x, self.numbers), responsibility)
        return namespace(x).concat([as_float64(found), self._counts(x, responsibility).T])

    def _counts(self, x: Array, responsibility: Array, known: Array | None = None) -> Array:
        """Responsibility summed by level, (M, W), over the rows in which each word is known (n, G)."""
        counts = [
            counts_of_codes(
                responsibility if known is None else responsibility * known[:, g],
                code,
                s.stop - s.start,
            )
            for g, (s, code) in enumerate(zip(self.spans, self._codes(x), strict=True))
        ]
        return namespace(x).concat(counts, axis=1)

    def moments(
        self,
        mass: Array,
        sums: Array,
        natural_params: ProductNaturalParams,
        x: Array,
        responsibility: Array,
    ) -> ProductMoments:
        n = sums.shape[0] - self.n_levels
        numbers = self._take(x, self.numbers)
        found = self.gaussian.moments(
            mass, sums[:n, :], natural_params.gaussian, numbers, responsibility
        )
        return ProductMoments(mass, found.first, found.second, sums[n:, :].T)

    def moment_origin(self, natural_params: ProductNaturalParams) -> Array:
        return self.gaussian.moment_origin(natural_params.gaussian)

    def with_pseudocounts(
        self,
        moments: ProductMoments,
        moment_origin: Array,
        vanished: Array,
        kernels: ProductKernels,
        mass: float,
    ) -> ProductMoments:
        xp = namespace(moments.words)
        gaussian = self.parts(kernels)[1]
        found = self.gaussian.with_pseudocounts(
            moments.gaussian(), moment_origin, vanished, gaussian, mass
        )
        words = xp.where(vanished[:, None], mass * kernels.probability, moments.words)
        return ProductMoments(found.mass, found.first, found.second, words)

    def concat_moments(self, parts: tuple[ProductMoments, ...], mass: Array) -> ProductMoments:
        found = self.gaussian.concat_moments(tuple(part.gaussian() for part in parts), mass)
        return ProductMoments(
            mass, found.first, found.second, namespace(mass).concat([part.words for part in parts])
        )

    def estimate(
        self, moments: ProductMoments, moment_origin: Array, prior: Any = None
    ) -> ProductKernels:
        xp = namespace(moments.words)
        gaussian = self.gaussian.estimate(moments.gaussian(), moment_origin, prior)
        counts = xp.where(moments.words > 0, moments.words, xp.zeros_like(moments.words))
        counts = counts if prior is None else counts + prior.words
        return self._joined(gaussian, self.normalized(counts + self._spread_evenly(counts)))

    def _spread_evenly(self, like: Array) -> Array:
        """Rows' worth of belief in each level, (W,): `strength` over the levels of its column."""
        xp = namespace(like)
        each = [
            max(self.strength, 1e-9) / (s.stop - s.start)
            for s in self.spans
            for _ in range(s.start, s.stop)
        ]
        return xp.asarray(each, dtype=like.dtype, device=device(like))

    def log_word_prior(self, kernels: ProductKernels) -> float:
        """The Dirichlet prior of all kernels, up to a constant."""
        xp = namespace(kernels.mean)
        return float(xp.sum(xp.log(kernels.probability) @ self._spread_evenly(kernels.probability)))

    # -- coordinates ----------------------------------------------------------------------------------------------

    def coordinates(self, kernels: ProductKernels) -> Array:
        """Those of the Gaussians, then log-probabilities."""
        xp = namespace(kernels.mean)
        by_numbers = self.gaussian.coordinates(self.parts(kernels)[1])
        return xp.concat([by_numbers, xp.reshape(xp.log(kernels.probability), (-1,))])

    def at(self, coordinates: Array, like: ProductKernels) -> ProductKernels:
        xp, n = namespace(coordinates), like.mean.shape[0] * self.n_levels
        logs = xp.reshape(coordinates[coordinates.shape[0] - n :], like.probability.shape)
        gaussian = self.gaussian.at(coordinates[: coordinates.shape[0] - n], self.parts(like)[1])
        away = [
            xp.clip(logs[:, s] - xp.max(logs[:, s], axis=1, keepdims=True), min=-60.0)
            for s in self.spans
        ]
        return self._joined(gaussian, self.normalized(xp.exp(xp.concat(away, axis=1))))

    def pullback(
        self, kernels: ProductKernels, moments: ProductMoments, moment_origin: Array
    ) -> Array:
        """Of the log-probabilities: counts less what was expected of them."""
        xp = namespace(kernels.mean)
        by_words = xp.reshape(
            moments.words - xp.sum(moments.mass, axis=1)[:, None] * kernels.probability, (-1,)
        )
        if not self.numbers:
            return by_words
        return xp.concat(
            [
                self.gaussian.pullback(self.parts(kernels)[1], moments.gaussian(), moment_origin),
                by_words,
            ]
        )

    # -- kernels as such ------------------------------------------------------------------------------------------

    def n_parameters(self, n_kernels: int, d: int) -> int:
        of_words = n_kernels * (self.n_levels - len(self.words))
        return self.gaussian.n_parameters(n_kernels, len(self.numbers)) + of_words

    def variances(self, kernels: Kernels) -> Array:
        """Variance of each kernel along each column, one for words, (M, d)."""
        xp, gaussian = namespace(kernels.mean), self.parts(kernels)[1]
        variance = self.gaussian.variances(gaussian) + xp.zeros_like(gaussian.mean)
        ones = xp.ones(
            (variance.shape[0], len(self.words)), dtype=variance.dtype, device=device(variance)
        )
        return self._take(xp.concat([variance, ones], axis=1), self._order())

    def take(self, kernels: ProductKernels, index: Array) -> ProductKernels:
        left = self.gaussian.take(kernels, index)
        return ProductKernels(
            left.mean, left.covariance, namespace(index).take(kernels.probability, index, axis=0)
        )

    def move(
        self, kernels: ProductKernels, to: dict[int, Array], *, reset: bool = False
    ) -> ProductKernels:
        """Moved kernels keep their words, or take the mean of all."""
        xp, probability = namespace(kernels.mean), kernels.probability
        gaussian = self.parts(kernels)[1]
        gaussian = self.gaussian.move(
            gaussian, {j: self._take(row, self.numbers) for j, row in to.items()}, reset=reset
        )
        if reset:
            mean = xp.mean(probability, axis=0)
            probability = xp.stack(
                [mean if j in to else probability[j, :] for j in range(probability.shape[0])]
            )
        return self._joined(gaussian, probability)

    def embed(self, x: Array) -> Array:
        """Numbers, then indicators of levels."""
        xp, parts = namespace(x), [self._take(x, self.numbers)]
        for i, s in zip(self.words, self.spans, strict=True):
            n = min(s.stop - s.start, MOST_INDICATORS)
            bucket = xp.arange(n, dtype=x.dtype, device=device(x))
            hot = xp.astype(x[:, i : i + 1] % n == bucket, x.dtype)
            parts.append(xp.where(xp.isnan(x[:, i : i + 1]), x[:, i : i + 1], hot))
        return xp.concat(parts, axis=1)

    def place(self, groups: list[tuple[Array, Array, Array]]) -> ProductKernels:
        """The shares of words around each center, drawn some way towards equal shares."""
        q = len(self.numbers)
        gaussian = self.gaussian.place(
            [(centers[:, :q], away[:, :q], weight) for centers, away, weight in groups]
        )
        xp = namespace(gaussian.mean)
        shares = xp.clip(xp.concat([centers[:, q:] for centers, _, _ in groups]), min=0.0, max=1.0)
        tables, n_before = [], 0
        for s in self.spans:
            n_levels, n = s.stop - s.start, min(s.stop - s.start, MOST_INDICATORS)
            of_level = xp.asarray(
                [n_before + level % n for level in range(n_levels)],
                dtype=xp.int64,
                device=device(shares),
            )
            tables.append(
                0.8 * self._even(xp.take(shares, of_level, axis=1) + 1e-9) + 0.2 / n_levels
            )
            n_before += n
        return self._joined(gaussian, xp.concat(tables, axis=1))

    def _even(self, odds: Array) -> Array:
        return odds / namespace(odds).sum(odds, axis=1, keepdims=True)

    def tempered(self, kernels: ProductKernels, beta: float) -> ProductKernels:
        """Both factors: probabilities to the power of beta sum to one again."""
        gaussian = self.gaussian.tempered(self.parts(kernels)[1], beta)
        return self._joined(gaussian, self.normalized(kernels.probability**beta))

    def shrunk(self, kernels: ProductKernels, share: Array, strength: float) -> ProductKernels:
        """Of the Gaussian factor; tables of words are held together by their prior."""
        return self._joined(
            self.gaussian.shrunk(self.parts(kernels)[1], share, strength), kernels.probability
        )

    def marginal(self, kernels: ProductKernels, columns: list[int]) -> tuple["Kernel", Kernels]:
        numbers = [self.numbers.index(i) for i in columns if i in self.numbers]
        family, left = self.gaussian.marginal(self.parts(kernels)[1], numbers)
        return self._of(family, left, columns, kernels.probability)

    def given(
        self, kernels: ProductKernels, known: list[int], rest: list[int], x: Array
    ) -> tuple["Kernel", Kernels]:
        """The family and the kernels of the `rest` of the columns given values x of the `known` ones."""
        numbers = [self.numbers.index(i) for i in rest if i in self.numbers]
        at = [(self.numbers.index(i), place) for place, i in enumerate(known) if i in self.numbers]
        values = self._take(x, [place for _, place in at])
        family, left = self.gaussian.given(
            self.parts(kernels)[1], [i for i, _ in at], numbers, values
        )
        return self._of(family, left, rest, kernels.probability)

    def _of(
        self, family: Kernel, left: Kernels, columns: list[int], probability: Array
    ) -> tuple[Kernel, Kernels]:
        """Kernels over some of the columns, from those of their numbers."""
        words = [self.words.index(i) for i in columns if i in self.words]
        assert isinstance(family, Gaussian)
        if not words:
            return family, left
        if left.mean.shape[1] == 0:  # no matrix has no rows
            nothing = left.mean[:, :0]
            family, left = Diag(family.floor), Kernels(nothing, nothing)
        other = Product(family, tuple(self.levels[i] for i in columns), self.strength)
        tables = namespace(probability).concat(
            [probability[:, self.spans[g]] for g in words], axis=1
        )
        return other, other._joined(left, tables)

    def sample(self, kernels: ProductKernels, j: int, n: int, rng: Any) -> Array:
        xp, probability = namespace(kernels.mean), kernels.probability
        numbers = self.gaussian.sample(self.parts(kernels)[1], j, n, rng)
        uniform = match_array(rng.uniform(size=(n, len(self.words))), like=probability)
        codes = []
        for g, s in enumerate(self.spans):
            below = xp.cumulative_sum(probability[j, s])
            codes.append(
                xp.clip(xp.searchsorted(below, uniform[:, g] * below[-1]), max=s.stop - s.start - 1)
            )
        words = [xp.astype(code, numbers.dtype)[:, None] for code in codes]
        return self._take(xp.concat([numbers, *words], axis=1), self._order())

    def _frame_of_numbers(self, frame: Frame) -> Frame:
        return Frame(self._take(frame.origin, self.numbers), self._take(frame.unit, self.numbers))

    def into(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        gaussian = self.gaussian.into(self.parts(kernels)[1], self._frame_of_numbers(frame))
        return self._joined(gaussian, kernels.probability)

    def out_of(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        gaussian = self.gaussian.out_of(self.parts(kernels)[1], self._frame_of_numbers(frame))
        return self._joined(gaussian, kernels.probability)

    def stretched(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        gaussian = self.gaussian.stretched(self.parts(kernels)[1], self._frame_of_numbers(frame))
        return self._joined(gaussian, kernels.probability)

    def unstretched(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        numbers = Kernels(
            self._take(kernels.mean, self.numbers), self._take(kernels.covariance, self.numbers)
        )
        gaussian = self.gaussian.unstretched(numbers, self._frame_of_numbers(frame))
        return self._joined(gaussian, kernels.probability)


class ObservedProduct(Observed):
    """Both factors beside rows with holes."""

    def __init__(self, kernel: Product, natural_params: ProductNaturalParams, block: Block) -> None:
        assert block.missing is not None
        self.kernel, self.natural_params, self.block = kernel, natural_params, block
        self.inner = kernel.gaussian.observe(natural_params.gaussian, kernel._numbers_of(block))
        self.known = kernel._take(block.missing.observed, kernel.words)  # (n, G)
        xp, tables = namespace(block.x), natural_params.log_probability
        self.log_density = self.inner.log_density
        for g, (s, code) in enumerate(zip(kernel.spans, kernel._codes(block.x), strict=True)):
            self.log_density = (
                self.log_density + xp.take(tables[:, s], code, axis=1) * self.known[:, g]
            )

    def moments(self, mass: Array, responsibility: Array) -> ProductMoments:
        """Missing words as each kernel expects them."""
        xp, kernel = namespace(self.block.x), self.kernel
        found = self.inner.moments(mass, responsibility)
        counts = kernel._counts(self.block.x, responsibility, self.known)
        missing, probability = (
            as_float64(responsibility @ (1 - self.known)),
            as_float64(self.natural_params.probability),
        )
        expected = [missing[:, g : g + 1] * probability[:, s] for g, s in enumerate(kernel.spans)]
        return ProductMoments(mass, found.first, found.second, counts + xp.concat(expected, axis=1))

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        """Of words the most probable one, or one that is drawn."""
        kernel, xp = self.kernel, namespace(share)
        numbers = self.inner.fill(
            share, None if noise is None else kernel._take(noise, kernel.numbers)
        )
        words = []
        for g, (i, s) in enumerate(zip(kernel.words, kernel.spans, strict=True)):
            missing = self.known[:, g] == 0
            (at,) = xp.nonzero(missing)
            table, step = self.natural_params.probability[:, s], max(1, CHUNK // (s.stop - s.start))
            codes = [xp.zeros((1,), dtype=xp.int64, device=device(at))]
            for start in range(0, at.shape[0], step):
                some = at[start : min(start + step, at.shape[0])]
                levels = xp.take(share, some, axis=1).T @ table  # (rows, L)
                if noise is None:
                    codes.append(xp.argmax(levels, axis=1))
                else:
                    below = xp.cumulative_sum(levels, axis=1)
                    uniform = normal_cdf(xp.take(noise[:, i], some, axis=0))
                    codes.append(
                        xp.argmax(
                            xp.astype(below >= uniform[:, None] * below[:, -1:], xp.int64), axis=1
                        )
                    )
            found = xp.astype(xp.concat(codes), self.block.x.dtype)
            place = xp.cumulative_sum(xp.astype(missing, xp.int64))
            words.append(
                xp.where(missing, xp.take(found, place, axis=0), self.block.x[:, i])[:, None]
            )
        return kernel._take(xp.concat([numbers, *words], axis=1), kernel._order())
