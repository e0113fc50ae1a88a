r"""Gaussians over numbers times tables of probabilities over categories.

.. math:: p(x \mid j) = N(x_{numbers};\, \mu_j, \Sigma_j) \prod_g \theta_{jg}(w_g)

The factors are a Gaussian family and one `Table` for each categorical column. A missing cell leaves
its factor out.

=======================  ===============  ======  ==================================================
in the formula           here             shape   meaning
=======================  ===============  ======  ==================================================
:math:`w_g`              a column of x    (n,)    code of the category, a whole number
:math:`\theta_{jg}(l)`   ``probability``  (M, W)  tables of all such columns side by side
=======================  ===============  ======  ==================================================

Each table sums to one. A symmetric Dirichlet prior, as if some rows had been spread evenly over the
levels, keeps every probability above zero. Means and covariances are those of the numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from ..arrays import Array, as_float64, device, match_array, namespace, take_columns
from ..rows import Block, Frame, MissingCells
from ..sums import record
from .diag import Diag
from .gaussian import (
    Gaussian,
    GaussianNaturalParams,
    Kernels,
    Moments,
    PriorStatistics,
    with_mean_of_all,
)
from .kernel import Kernel, Observed
from .table import Table


@record
class ProductKernels(Kernels):
    """M Gaussians, and M tables for each categorical column."""

    probability: Array
    """(M, W)."""


@record
class ProductNaturalParams(GaussianNaturalParams):
    """Those of the Gaussians; what categories add is looked up, not multiplied."""

    log_probability: Array
    """(M, W)."""


@record
class ProductMoments(Moments):
    """Those of the numbers, and counts."""

    counts: Array
    """Weighted counts of the levels, (M, W)."""


class Product(Kernel):
    """A Gaussian family for some columns, a table of probabilities for each other one."""

    def __init__(self, gaussian: Gaussian, levels: tuple[int, ...]) -> None:
        self.name = gaussian.name  # type: ignore[misc]
        self.equivariant = gaussian.equivariant  # type: ignore[misc]
        self.gaussian = gaussian
        self.levels = levels
        """The number of levels of each column, 0 for a number, (d,)."""
        self.numbers = [i for i, n in enumerate(levels) if not n]
        self.n_levels = sum(levels)
        ends = pairwise(accumulate(levels, initial=0))
        self.tables = [Table(i, slice(*end)) for i, end in enumerate(ends) if levels[i]]

    # -- the factors ----------------------------------------------------------------------------

    def _numbers_of(self, block: Block) -> Block:
        """The block of the Gaussian factor."""
        missing = block.missing
        if missing is not None:
            observed = take_columns(missing.observed, self.numbers)
            patterns = take_columns(missing.patterns, self.numbers)
            missing = MissingCells(observed, patterns, missing.spans)
        x = take_columns(block.x, self.numbers)
        return block.changed(x=x, missing=missing, keep_width=0)

    def _by_table(self, function: Callable[[Table], Array]) -> Array:
        """What each table gives, (..., L), side by side, (..., W)."""
        parts = [function(table) for table in self.tables]
        return namespace(parts[0]).concat(parts, axis=1)

    def _rows_of(self, numbers: Array, columns: list[Array]) -> Array:
        """Rows (n, d) of numbers (n, q) and of the levels of each categorical column, (n,)."""
        xp = namespace(numbers)
        among = [*self.numbers, *(table.column for table in self.tables)]
        levels = [xp.astype(column, numbers.dtype)[:, None] for column in columns]
        order = [among.index(i) for i in range(len(self.levels))]
        return take_columns(xp.concat([numbers, *levels], axis=1), order)

    def _with_tables(self, kernels: Kernels, odds: Array) -> ProductKernels:
        """Kernels with tables in proportion to `odds`, (M, W)."""

        def shares(table: Table) -> Array:
            part = odds[:, table.span]
            return part / namespace(part).sum(part, axis=1, keepdims=True)

        return ProductKernels(kernels.mean, kernels.covariance, self._by_table(shares))

    def log_dirichlet_prior(self, kernels: ProductKernels) -> float:
        """The prior of all tables, up to a constant."""
        xp = namespace(kernels.mean)
        logs = xp.log(kernels.probability)
        return float(sum(table.prior_count * xp.sum(logs[:, table.span]) for table in self.tables))

    # -- an entry for every column --------------------------------------------------------------

    def from_arrays(self, mean: Array, covariance: Array, probability: Array) -> ProductKernels:
        """Kernels of arrays with an entry for every column; those of categories have no meaning."""
        xp = namespace(mean)
        index = xp.asarray(self.numbers, dtype=xp.int64, device=device(mean))
        covariance = self.gaussian.submatrix(covariance, index)
        return ProductKernels(take_columns(mean, self.numbers), covariance, probability)

    def to_arrays(self, kernels: ProductKernels) -> tuple[Array, Array]:
        """Mean and covariance with an entry for every column: zero and one for categories."""
        xp = namespace(kernels.mean)
        covariance = kernels.covariance
        one = xp.eye(len(self.levels), dtype=covariance.dtype, device=device(covariance))
        place = take_columns(one, self.numbers).T  # (q, d)
        alone = 1 - xp.sum(place, axis=0)
        if self.gaussian.matrices:
            covariance = place.T @ covariance @ place + one * alone
        elif covariance.ndim > 1:
            covariance = covariance @ place + alone
        return kernels.mean @ place, covariance

    # -- the model ------------------------------------------------------------------------------

    def n_features(self, d: int) -> int:
        return self.gaussian.n_features(len(self.numbers))

    def write_features(self, out: Array, block: Block) -> None:
        self.gaussian.write_features(out, self._numbers_of(block))

    def natural_params(self, kernels: ProductKernels, eps: float) -> ProductNaturalParams:
        of_numbers = self.gaussian.natural_params(kernels, eps)
        logs = namespace(kernels.mean).log(kernels.probability)
        return ProductNaturalParams(**vars(of_numbers), log_probability=logs)

    def common(self, natural_params: ProductNaturalParams, x: Array) -> Array | float:
        return self.gaussian.common(natural_params, take_columns(x, self.numbers))

    def correct(
        self,
        log_joint: Array,
        natural_params: ProductNaturalParams,
        x: Array,
        constant: Array | None,
        index: Array | None = None,
    ) -> None:
        numbers = take_columns(x, self.numbers)
        self.gaussian.correct(log_joint, natural_params, numbers, constant)
        logs = natural_params.log_probability
        logs = logs if index is None else namespace(logs).take(logs, index, axis=0)
        log_joint += sum(table.look_up(logs, x) for table in self.tables)

    def observe(self, natural_params: ProductNaturalParams, block: Block) -> "ObservedProduct":
        return ObservedProduct(self, natural_params, block)

    def log_peak(self, kernels: ProductKernels) -> Array:
        xp = namespace(kernels.mean)
        logs = xp.log(kernels.probability)
        peak = self.gaussian.log_peak(kernels)
        return peak + sum(xp.max(logs[:, table.span], axis=1) for table in self.tables)

    # -- estimation -----------------------------------------------------------------------------

    def sums(self, phi: Array, x: Array, responsibility: Array) -> Array:
        """The sums of the numbers, then counts."""
        of_numbers = self.gaussian.sums(phi, take_columns(x, self.numbers), responsibility)
        counts = self._by_table(lambda table: table.counts(responsibility, x))
        return namespace(x).concat([as_float64(of_numbers), counts.T])

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
        moments = self.gaussian.moments(mass, sums[:n, :], natural_params, numbers, responsibility)
        return ProductMoments(mass, moments.first, moments.second, sums[n:, :].T)

    def with_pseudocounts(
        self,
        moments: ProductMoments,
        moment_origin: Array,
        vanished: Array,
        kernels: ProductKernels,
        mass: float,
    ) -> ProductMoments:
        trace = mass * kernels.probability
        counts = namespace(trace).where(vanished[:, None], trace, moments.counts)
        moments = self.gaussian.with_pseudocounts(moments, moment_origin, vanished, kernels, mass)
        return replace(moments, counts=counts)

    def estimate(
        self, moments: ProductMoments, moment_origin: Array, prior: PriorStatistics | None = None
    ) -> ProductKernels:
        xp = namespace(moments.counts)
        counts = xp.where(moments.counts > 0, moments.counts, xp.zeros_like(moments.counts))
        counts = self._by_table(lambda table: counts[:, table.span] + table.prior_count)
        if prior is not None:
            counts = counts + prior.table_counts
        return self._with_tables(self.gaussian.estimate(moments, moment_origin, prior), counts)

    # -- coordinates ----------------------------------------------------------------------------

    def coordinates(self, kernels: ProductKernels) -> Array:
        """Those of the Gaussians, then log-probabilities."""
        xp = namespace(kernels.mean)
        logs = xp.reshape(xp.log(kernels.probability), (-1,))
        return xp.concat([self.gaussian.coordinates(kernels), logs])

    def at(self, coordinates: Array, like: ProductKernels) -> ProductKernels:
        xp = namespace(coordinates)
        n = coordinates.shape[0] - like.mean.shape[0] * self.n_levels
        logs = xp.reshape(coordinates[n:], like.probability.shape)

        def odds(table: Table) -> Array:
            part = logs[:, table.span]
            return xp.exp(xp.clip(part - xp.max(part, axis=1, keepdims=True), min=-60.0))

        return self._with_tables(self.gaussian.at(coordinates[:n], like), self._by_table(odds))

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
        in_tables = n_kernels * (self.n_levels - len(self.tables))
        return self.gaussian.n_parameters(n_kernels, len(self.numbers)) + in_tables

    def variances(self, kernels: ProductKernels) -> Array:
        """Variance of each kernel along each number, (M, q)."""
        return self.gaussian.variances(kernels)

    def take(self, kernels: ProductKernels, index: Array) -> ProductKernels:
        probability = namespace(index).take(kernels.probability, index, axis=0)
        return replace(self.gaussian.take(kernels, index), probability=probability)

    def move(self, kernels: ProductKernels, to: dict[int, Array]) -> ProductKernels:
        """Moved kernels take the mean of all tables."""
        rows = {j: take_columns(row, self.numbers) for j, row in to.items()}
        tables = with_mean_of_all(kernels.probability, to)
        return replace(self.gaussian.move(kernels, rows), probability=tables)

    def embed(self, x: Array) -> Array:
        """Numbers, then indicators of levels."""
        indicators = self._by_table(lambda table: table.indicators(x))
        return namespace(x).concat([take_columns(x, self.numbers), indicators], axis=1)

    def place(self, groups: list[tuple[Array, Array, Array]]) -> ProductKernels:
        """The shares of levels around each center, drawn some way towards equal shares."""
        q = len(self.numbers)
        gaussian = self.gaussian.place(
            [(centers[:, :q], deviation[:, :q], weight) for centers, deviation, weight in groups]
        )
        xp = namespace(gaussian.mean)
        shares = xp.concat([centers for centers, _, _ in groups])
        ends = pairwise(accumulate((table.n_indicators for table in self.tables), initial=q))
        tables = [
            table.place(shares[:, start:end])
            for table, (start, end) in zip(self.tables, ends, strict=True)
        ]
        return ProductKernels(gaussian.mean, gaussian.covariance, xp.concat(tables, axis=1))

    def tempered(self, kernels: ProductKernels, beta: float) -> ProductKernels:
        """Both factors: probabilities to the power of beta sum to one again."""
        return self._with_tables(self.gaussian.tempered(kernels, beta), kernels.probability**beta)

    def shrunk(self, kernels: ProductKernels, share: Array, strength: float) -> ProductKernels:
        """Of the Gaussian factor; tables are held together by their prior."""
        return self.gaussian.shrunk(kernels, share, strength)

    def given(
        self, kernels: ProductKernels, known: list[int], rest: list[int], x: Array | None
    ) -> tuple["Gaussian | Product", Kernels]:
        numbers = [self.numbers.index(i) for i in rest if i in self.numbers]
        at = {self.numbers.index(i): place for place, i in enumerate(known) if i in self.numbers}
        values = None if x is None else take_columns(x, list(at.values()))
        family, of_numbers = self.gaussian.given(kernels, list(at), numbers, values)
        spans = {table.column: table.span for table in self.tables}
        tables = [kernels.probability[:, spans[i]] for i in rest if i in spans]
        if not tables:
            return family, of_numbers
        covariance = of_numbers.covariance
        if not numbers:  # no matrix has no rows
            family = Diag(family.floor)
            covariance = of_numbers.mean
        other = Product(family, tuple(self.levels[i] for i in rest))
        probability = namespace(covariance).concat(tables, axis=1)
        return other, ProductKernels(of_numbers.mean, covariance, probability)

    def sample(self, kernels: ProductKernels, j: int, n: int, rng: Any) -> Array:
        numbers = self.gaussian.sample(kernels, j, n, rng)
        uniform = match_array(rng.uniform(size=(n, len(self.tables))), like=kernels.probability)
        probability = kernels.probability[j, :]
        levels = [table.sample(probability, uniform[:, g]) for g, table in enumerate(self.tables)]
        return self._rows_of(numbers, levels)

    def _frame_of_numbers(self, frame: Frame) -> Frame:
        return Frame(
            take_columns(frame.origin, self.numbers), take_columns(frame.unit, self.numbers)
        )

    def into(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        return self.gaussian.into(kernels, self._frame_of_numbers(frame))

    def out_of(self, kernels: ProductKernels, frame: Frame) -> ProductKernels:
        return self.gaussian.out_of(kernels, self._frame_of_numbers(frame))


class ObservedProduct(Observed):
    """Both kinds of factors of rows with missing cells."""

    def __init__(self, kernel: Product, natural_params: ProductNaturalParams, block: Block) -> None:
        assert block.missing is not None
        self.kernel = kernel
        self.x = block.x
        self.observed = block.missing.observed
        self.gaussian = kernel.gaussian.observe(natural_params, kernel._numbers_of(block))
        kernels = natural_params.kernels
        assert isinstance(kernels, ProductKernels)
        self.probability = kernels.probability
        self.log_density = self.gaussian.log_density
        for table in kernel.tables:
            log_probability = table.look_up(natural_params.log_probability, block.x)
            self.log_density = self.log_density + log_probability * self.observed[:, table.column]

    def moments(self, mass: Array, responsibility: Array) -> ProductMoments:
        """Missing categories as each kernel expects them."""
        probability = as_float64(self.probability)

        def counts(table: Table) -> Array:
            observed = self.observed[:, table.column]
            missing = as_float64(responsibility @ (1 - observed))
            expected = missing[:, None] * probability[:, table.span]
            return table.counts(responsibility * observed, self.x) + expected

        moments = self.gaussian.moments(mass, responsibility)
        return ProductMoments(mass, moments.first, moments.second, self.kernel._by_table(counts))

    def fill(self, share: Array, noise: Array | None = None) -> Array:
        """Of categories the most probable one, or one that is drawn."""
        of_numbers = None if noise is None else take_columns(noise, self.kernel.numbers)
        columns = [
            table.imputed(self.x, self.observed[:, table.column], self.probability, share, noise)
            for table in self.kernel.tables
        ]
        return self.kernel._rows_of(self.gaussian.fill(share, of_numbers), columns)
