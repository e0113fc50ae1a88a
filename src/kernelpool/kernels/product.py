r"""Gaussians over numbers times tables of probabilities over categories.

.. math:: p(x \mid j) = N(x_{numbers};\, \mu_j, \Sigma_j) \prod_g \theta_{jg}(w_g)

A category stands in x as its code, 0 to L - 1; the last code is any other value. Its
log-probability is looked up in the table of the kernel, and its moments are weighted counts: no
array of rows times levels is ever made, however many levels there are. A missing cell leaves its
factor out.

=======================  ===============  ======  ==================================================
in the formula           here             shape   meaning
=======================  ===============  ======  ==================================================
:math:`w_g`              a column of x    (n,)    code of the category, a whole number
:math:`\theta_{jg}(l)`   ``probability``  (M, W)  tables of all such columns side by side
=======================  ===============  ======  ==================================================

Each table sums to one. A symmetric Dirichlet prior, as if `strength` rows had been spread evenly
over the levels, keeps every probability above zero. Means and covariances are those of the numbers.
"""

from itertools import accumulate, pairwise
from typing import Any

from ..arrays import (
    Array,
    as_float64,
    counts_of_codes,
    device,
    match_array,
    namespace,
    normal_cdf,
    take_columns,
)
from ..rows import Block, Frame, MissingCells
from ..sums import record
from .diag import Diag
from .gaussian import Gaussian, GaussianNaturalParams, Kernels, Moments
from .kernel import Kernel, Observed

MOST_INDICATORS = 32
"""Levels of a column that starts tell apart; those whose codes are equal modulo this share one."""

CHUNK = 1 << 20
"""Numbers in an array of some rows by all levels, where missing categories are imputed."""


@record
class ProductKernels(Kernels):
    """M Gaussians, and M tables for each categorical column."""

    probability: Array
    """(M, W)."""


@record
class ProductNaturalParams(GaussianNaturalParams):
    """Those of the Gaussians; what categories add is looked up, not multiplied."""

    probability: Array
    """(M, W)."""
    log_probability: Array
    """(M, W)."""


@record
class ProductMoments(Moments):
    """Those of the numbers, and counts."""

    counts: Array
    """Weighted counts of the levels, (M, W)."""


class Product(Kernel):
    """One of the Gaussian families for some columns, categories in the others."""

    looks_up = True

    def __init__(self, gaussian: Gaussian, levels: tuple[int, ...], strength: float = 1.0) -> None:
        self.gaussian, self.levels, self.strength = gaussian, levels, strength
        """`levels` has for each column the number of its levels, 0 for a number, (d,)."""
        self.name = gaussian.name  # type: ignore[misc]
        self.equivariant = gaussian.equivariant  # type: ignore[misc]
        self.matrices = gaussian.matrices  # type: ignore[misc]
        self.numbers = [i for i, n in enumerate(levels) if not n]
        self.categorical = [i for i, n in enumerate(levels) if n]
        ends = accumulate((levels[i] for i in self.categorical), initial=0)
        self.spans = [slice(start, end) for start, end in pairwise(ends)]
        """Where the table of each categorical column lies among all."""
        self.n_levels = sum(levels)

    # -- both parts -----------------------------------------------------------------------------

    def _numbers_of(self, block: Block) -> Block:
        """The block as the Gaussian family sees it."""
        numbers = take_columns(block.x, self.numbers)
        part = Block(numbers, block.y, block.weight, classes=block.classes)
        if block.missing is not None:
            known = block.missing
            observed, patterns = (
                take_columns(a, self.numbers) for a in (known.observed, known.patterns)
            )
            part.missing = MissingCells(observed, patterns, known.spans)
        return part

    def _rows_of(self, numbers: Array, codes: list[Array]) -> Array:
        """Rows (n, d) of numbers (n, q) and of the codes of each categorical column, (n,)."""
        xp = namespace(numbers)
        among = [*self.numbers, *self.categorical]
        columns = [xp.astype(code, numbers.dtype)[:, None] for code in codes]
        order = [among.index(i) for i in range(len(self.levels))]
        return take_columns(xp.concat([numbers, *columns], axis=1), order)

    def _codes(self, x: Array) -> list[Array]:
        """The level of every row in each categorical column, (n,)."""
        xp = namespace(x)
        return [xp.astype(x[:, i], xp.int64) for i in self.categorical]

    def _with(self, kernels: Kernels, probability: Array) -> ProductKernels:
        return ProductKernels(kernels.mean, kernels.covariance, probability)

    def normalized(self, odds: Array) -> Array:
        """Tables that sum to one, (M, W)."""
        xp = namespace(odds)
        return xp.concat(
            [odds[:, s] / xp.sum(odds[:, s], axis=1, keepdims=True) for s in self.spans], axis=1
        )

    # -- an entry for every column --------------------------------------------------------------

    def from_arrays(self, mean: Array, covariance: Array, probability: Array) -> ProductKernels:
        """Kernels of arrays with an entry for every column; those of categories have no meaning."""
        if covariance.ndim > 1:
            covariance = take_columns(covariance, self.numbers)
        if self.matrices:
            turned = namespace(covariance).matrix_transpose(covariance)
            covariance = take_columns(turned, self.numbers)
        return ProductKernels(take_columns(mean, self.numbers), covariance, probability)

    def to_arrays(self, kernels: ProductKernels) -> tuple[Array, Array]:
        """Mean and covariance with an entry for every column: zero and one for categories."""
        xp = namespace(kernels.mean)
        mean = kernels.mean
        covariance = kernels.covariance
        one = xp.eye(len(self.levels), dtype=mean.dtype, device=device(mean))
        place = take_columns(one, self.numbers).T  # (q, d)
        alone = 1 - xp.sum(place, axis=0)
        if self.matrices:
            covariance = place.T @ covariance @ place + one * alone
        elif covariance.ndim > 1:
            covariance = covariance @ place + alone
        return mean @ place, covariance

    # -- the model ------------------------------------------------------------------------------

    def n_features(self, d: int) -> int:
        return self.gaussian.n_features(len(self.numbers))

    def write_features(self, out: Array, block: Block) -> None:
        self.gaussian.write_features(out, self._numbers_of(block))

    def natural_params(self, kernels: ProductKernels, eps: float) -> ProductNaturalParams:
        found = self.gaussian.natural_params(kernels, eps)
        log_probability = namespace(kernels.mean).log(kernels.probability)
        return ProductNaturalParams(
            **vars(found), probability=kernels.probability, log_probability=log_probability
        )

    def look_up(
        self, natural_params: ProductNaturalParams, x: Array, of: Array | None = None
    ) -> Array:
        xp = namespace(x)
        tables = natural_params.log_probability
        tables = tables if of is None else xp.take(tables, of, axis=0)
        found = [
            xp.take(tables[:, s], code, axis=1)
            for s, code in zip(self.spans, self._codes(x), strict=True)
        ]
        return sum(found[1:], found[0])

    def log_density(self, natural_params: ProductNaturalParams, x: Array) -> Array:
        of_numbers = self.gaussian.log_density(natural_params, take_columns(x, self.numbers))
        return of_numbers + self.look_up(natural_params, x)

    def common(self, natural_params: ProductNaturalParams, x: Array) -> Array | float:
        return self.gaussian.common(natural_params, take_columns(x, self.numbers))

    def correct(
        self, log_joint: Array, natural_params: ProductNaturalParams, x: Array, constant: Array
    ) -> None:
        numbers = take_columns(x, self.numbers)
        self.gaussian.correct(log_joint, natural_params, numbers, constant)

    def observe(self, natural_params: ProductNaturalParams, block: Block) -> "ObservedProduct":
        return ObservedProduct(self, natural_params, block)

    def log_peak(self, kernels: ProductKernels) -> Array:
        xp = namespace(kernels.mean)
        peak = self.gaussian.log_peak(kernels)
        for s in self.spans:
            peak = peak + xp.log(xp.max(kernels.probability[:, s], axis=1))
        return peak

    # -- estimation -----------------------------------------------------------------------------

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """The sums of the numbers, then counts."""
        found = self.gaussian.sums(phi, take_columns(x, self.numbers), responsibility)
        return namespace(x).concat([as_float64(found), self._counts(x, responsibility).T])

    def _counts(self, x: Array, responsibility: Array, known: Array | None = None) -> Array:
        """Responsibility summed by level, (M, W), over the rows in which each cell is known (n,
        G).
        """
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
        numbers = take_columns(x, self.numbers)
        found = self.gaussian.moments(mass, sums[:n, :], natural_params, numbers, responsibility)
        return ProductMoments(mass, found.first, found.second, sums[n:, :].T)

    def moment_origin(self, natural_params: ProductNaturalParams) -> Array:
        return self.gaussian.moment_origin(natural_params)

    def with_pseudocounts(
        self,
        moments: ProductMoments,
        moment_origin: Array,
        vanished: Array,
        kernels: ProductKernels,
        mass: float,
    ) -> ProductMoments:
        found = self.gaussian.with_pseudocounts(moments, moment_origin, vanished, kernels, mass)
        still = mass * kernels.probability
        counts = namespace(still).where(vanished[:, None], still, moments.counts)
        return ProductMoments(found.mass, found.first, found.second, counts)

    def estimate(
        self, moments: ProductMoments, moment_origin: Array, prior: Any = None
    ) -> ProductKernels:
        xp = namespace(moments.counts)
        counts = xp.where(moments.counts > 0, moments.counts, xp.zeros_like(moments.counts))
        counts = counts + self._spread_evenly(counts)
        if prior is not None:
            counts = counts + prior.table_counts
        found = self.gaussian.estimate(moments, moment_origin, prior)
        return self._with(found, self.normalized(counts))

    def _spread_evenly(self, like: Array) -> Array:
        """What the prior counts of each level, (W,): `strength` rows over the levels of its
        column.
        """
        each = [max(self.strength, 1e-9) / n for n in self.levels for _ in range(n)]
        return namespace(like).asarray(each, dtype=like.dtype, device=device(like))

    def log_dirichlet_prior(self, kernels: ProductKernels) -> float:
        """The prior of all tables, up to a constant."""
        xp = namespace(kernels.mean)
        probability = kernels.probability
        return float(xp.sum(xp.log(probability) @ self._spread_evenly(probability)))

    # -- coordinates ----------------------------------------------------------------------------

    def coordinates(self, kernels: ProductKernels) -> Array:
        """Those of the Gaussians, then log-probabilities."""
        xp = namespace(kernels.mean)
        logs = xp.reshape(xp.log(kernels.probability), (-1,))
        return xp.concat([self.gaussian.coordinates(kernels), logs])

    def at(self, coordinates: Array, like: ProductKernels) -> ProductKernels:
        xp = namespace(coordinates)
        n = like.mean.shape[0] * self.n_levels
        logs = xp.reshape(coordinates[coordinates.shape[0] - n :], like.probability.shape)
        gaussian = self.gaussian.at(coordinates[: coordinates.shape[0] - n], like)
        away = [
            xp.clip(logs[:, s] - xp.max(logs[:, s], axis=1, keepdims=True), min=-60.0)
            for s in self.spans
        ]
        return self._with(gaussian, self.normalized(xp.exp(xp.concat(away, axis=1))))

    def pullback(
        self, kernels: ProductKernels, moments: ProductMoments, moment_origin: Array
    ) -> Array:
        """Of the log-probabilities: counts less what was expected of them."""
        xp = namespace(kernels.mean)
        expected = xp.sum(moments.mass, axis=1)[:, None] * kernels.probability
        by_tables = xp.reshape(moments.counts - expected, (-1,))
        if not self.numbers:
            return by_tables
        return xp.concat([self.gaussian.pullback(kernels, moments, moment_origin), by_tables])

    # -- kernels as such ------------------------------------------------------------------------

    def n_parameters(self, n_kernels: int, d: int) -> int:
        in_tables = n_kernels * (self.n_levels - len(self.categorical))
        return self.gaussian.n_parameters(n_kernels, len(self.numbers)) + in_tables

    def variances(self, kernels: ProductKernels) -> Array:
        """Variance of each kernel along each number, (M, q)."""
        return self.gaussian.variances(kernels)

    def take(self, kernels: ProductKernels, index: Array) -> ProductKernels:
        probability = namespace(index).take(kernels.probability, index, axis=0)
        return self._with(self.gaussian.take(kernels, index), probability)

    def move(self, kernels: ProductKernels, to: dict[int, Array]) -> ProductKernels:
        """Moved kernels take the mean of all tables."""
        xp = namespace(kernels.mean)
        before = kernels.probability
        rows = {j: take_columns(row, self.numbers) for j, row in to.items()}
        mean = xp.mean(before, axis=0)
        tables = [mean if j in to else before[j, :] for j in range(before.shape[0])]
        return self._with(self.gaussian.move(kernels, rows), xp.stack(tables))

    def embed(self, x: Array) -> Array:
        """Numbers, then indicators of levels."""
        xp = namespace(x)
        parts = [take_columns(x, self.numbers)]
        for i in self.categorical:
            n = min(self.levels[i], MOST_INDICATORS)
            column = x[:, i : i + 1]
            bucket = xp.arange(n, dtype=x.dtype, device=device(x))
            parts.append(
                xp.where(xp.isnan(column), column, xp.astype(column % n == bucket, x.dtype))
            )
        return xp.concat(parts, axis=1)

    def place(self, groups: list[tuple[Array, Array, Array]]) -> ProductKernels:
        """The shares of levels around each center, drawn some way towards equal shares."""
        q = len(self.numbers)
        gaussian = self.gaussian.place(
            [(centers[:, :q], away[:, :q], weight) for centers, away, weight in groups]
        )
        xp = namespace(gaussian.mean)
        shares = xp.clip(xp.concat([centers[:, q:] for centers, _, _ in groups]), min=0.0, max=1.0)
        bucket = []
        n_before = 0
        for i in self.categorical:
            n = min(self.levels[i], MOST_INDICATORS)
            bucket += [n_before + level % n for level in range(self.levels[i])]
            n_before += n
        table = self.normalized(take_columns(shares, bucket) + 1e-9)
        evenly = self._spread_evenly(table)
        return self._with(gaussian, 0.8 * table + 0.2 * self.normalized(evenly + 0 * table))

    def tempered(self, kernels: ProductKernels, beta: float) -> ProductKernels:
        """Both factors: probabilities to the power of beta sum to one again."""
        probability = self.normalized(kernels.probability**beta)
        return self._with(self.gaussian.tempered(kernels, beta), probability)

    def shrunk(self, kernels: ProductKernels, share: Array, strength: float) -> ProductKernels:
        """Of the Gaussian factor; tables are held together by their prior."""
        return self._with(self.gaussian.shrunk(kernels, share, strength), kernels.probability)

    def marginal(self, kernels: ProductKernels, columns: list[int]) -> tuple["Kernel", Kernels]:
        numbers = [self.numbers.index(i) for i in columns if i in self.numbers]
        return self._of(*self.gaussian.marginal(kernels, numbers), columns, kernels.probability)

    def given(
        self, kernels: ProductKernels, known: list[int], rest: list[int], x: Array
    ) -> tuple["Kernel", Kernels]:
        """The family and the kernels of the `rest` of the columns given values x of the `known`
        ones.
        """
        numbers = [self.numbers.index(i) for i in rest if i in self.numbers]
        at = [(self.numbers.index(i), place) for place, i in enumerate(known) if i in self.numbers]
        values = take_columns(x, [place for _, place in at])
        found = self.gaussian.given(kernels, [i for i, _ in at], numbers, values)
        return self._of(*found, rest, kernels.probability)

    def _of(
        self, family: Gaussian, left: Kernels, columns: list[int], probability: Array
    ) -> tuple[Kernel, Kernels]:
        """Kernels over some of the columns, from those of their numbers."""
        tables = [
            probability[:, self.spans[self.categorical.index(i)]]
            for i in columns
            if i in self.categorical
        ]
        if not tables:
            return family, left
        if left.mean.shape[1] == 0:  # no matrix has no rows
            family = Diag(family.floor)
            left = Kernels(left.mean, left.mean)
        other = Product(family, tuple(self.levels[i] for i in columns), self.strength)
        return other, other._with(left, namespace(probability).concat(tables, axis=1))

    def sample(self, kernels: ProductKernels, j: int, n: int, rng: Any) -> Array:
        xp = namespace(kernels.mean)
        probability = kernels.probability
        numbers = self.gaussian.sample(kernels, j, n, rng)
        uniform = match_array(rng.uniform(size=(n, len(self.spans))), like=probability)
        codes = []
        for g, s in enumerate(self.spans):
            below = xp.cumulative_sum(probability[j, s.start : s.stop - 1])  # no other value
            drawn = xp.searchsorted(below, uniform[:, g] * below[-1])
            codes.append(xp.clip(drawn, max=below.shape[0] - 1))
        return self._rows_of(numbers, codes)

    def _frame_of_numbers(self, frame: Frame) -> Frame:
        return Frame(
            take_columns(frame.origin, self.numbers), take_columns(frame.unit, self.numbers)
        )

    def into(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        inside = self.gaussian.into(kernels, self._frame_of_numbers(frame))
        return self._with(inside, kernels.probability)

    def out_of(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        outside = self.gaussian.out_of(kernels, self._frame_of_numbers(frame))
        return self._with(outside, kernels.probability)


class ObservedProduct(Observed):
    """Both factors of rows with missing cells."""

    def __init__(self, kernel: Product, natural_params: ProductNaturalParams, block: Block) -> None:
        assert block.missing is not None
        self.kernel = kernel
        self.natural_params = natural_params
        self.block = block
        self.inner = kernel.gaussian.observe(natural_params, kernel._numbers_of(block))
        self.known = take_columns(block.missing.observed, kernel.categorical)  # (n, G)
        xp = namespace(block.x)
        tables = natural_params.log_probability
        self.log_density = self.inner.log_density
        for g, (s, code) in enumerate(zip(kernel.spans, kernel._codes(block.x), strict=True)):
            self.log_density = (
                self.log_density + xp.take(tables[:, s], code, axis=1) * self.known[:, g]
            )

    def moments(self, mass: Array, responsibility: Array) -> ProductMoments:
        """Missing categories as each kernel expects them."""
        xp = namespace(self.block.x)
        kernel = self.kernel
        found = self.inner.moments(mass, responsibility)
        counts = kernel._counts(self.block.x, responsibility, self.known)
        missing = as_float64(responsibility @ (1 - self.known))
        probability = as_float64(self.natural_params.probability)
        expected = [missing[:, g : g + 1] * probability[:, s] for g, s in enumerate(kernel.spans)]
        return ProductMoments(mass, found.first, found.second, counts + xp.concat(expected, axis=1))

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        """Of categories the most probable one, or one that is drawn."""
        kernel = self.kernel
        xp = namespace(share)
        of_numbers = None if noise is None else take_columns(noise, kernel.numbers)
        numbers = self.inner.fill(share, of_numbers)
        columns = []
        for g, (i, s) in enumerate(zip(kernel.categorical, kernel.spans, strict=True)):
            missing = self.known[:, g] == 0
            (at,) = xp.nonzero(missing)
            table = self.natural_params.probability[:, s.start : s.stop - 1]  # no other value
            step = max(1, CHUNK // kernel.levels[i])
            codes = [xp.zeros((1,), dtype=xp.int64, device=device(at))]
            for start in range(0, at.shape[0], step):
                some = at[start : min(start + step, at.shape[0])]
                levels = xp.take(share, some, axis=1).T @ table  # (rows, L)
                if noise is not None:
                    below = xp.cumulative_sum(levels, axis=1)
                    uniform = normal_cdf(xp.take(noise[:, i], some, axis=0))
                    levels = xp.astype(below >= uniform[:, None] * below[:, -1:], xp.int64)
                codes.append(xp.argmax(levels, axis=1))
            found = xp.astype(xp.concat(codes), self.block.x.dtype)
            place = xp.cumulative_sum(xp.astype(missing, xp.int64))
            columns.append(xp.where(missing, xp.take(found, place, axis=0), self.block.x[:, i]))
        return kernel._rows_of(numbers, columns)
