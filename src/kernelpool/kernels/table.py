r"""The factor of one categorical column: a table of probabilities for every kernel.

.. math:: p(w \mid j) = \theta_j(w)

A category stands in its column as its code, 0 to L - 1; the last code is any other value. Its
log-probability is looked up in the table of the kernel, and its moments are weighted counts: no
array of rows times levels is ever made, however many levels there are.
"""

from ..arrays import Array, counts_of_codes, device, namespace, normal_cdf, take_columns

INDICATORS_OF_STARTS = 32
"""Levels of a column that starts tell apart; those whose codes are equal modulo this share one."""

ROWS_OF_PRIOR = 1.0
"""Rows that the prior of a table counts, spread evenly over its levels."""

LEVELS_AT_ONCE = 1 << 20
"""Numbers in an array of some rows by all levels, where missing categories are imputed."""


class Table:
    """Where the table of one column lies among those of all columns, (M, W), and what it is for."""

    def __init__(self, column: int, span: slice) -> None:
        self.column = column
        self.span = span
        self.known = slice(span.start, span.stop - 1)
        """Its levels but for the last, which is any other value."""
        self.n_levels = span.stop - span.start
        self.n_indicators = min(self.n_levels, INDICATORS_OF_STARTS)
        self.prior_count = ROWS_OF_PRIOR / self.n_levels
        """What the prior counts of each level."""

    def codes(self, x: Array) -> Array:
        """The level of every row, (n,)."""
        xp = namespace(x)
        return xp.astype(x[:, self.column], xp.int64)

    def look_up(self, tables: Array, x: Array) -> Array:
        """Entries of tables (M, W) for the levels of rows, (M, n)."""
        return namespace(x).take(tables[:, self.span], self.codes(x), axis=1)

    def counts(self, weight: Array, x: Array) -> Array:
        """Weights (M, n) summed by level, (M, L)."""
        return counts_of_codes(weight, self.codes(x), self.n_levels)

    def indicators(self, x: Array) -> Array:
        """One for the level of each row, modulo `INDICATORS_OF_STARTS`, (n, I)."""
        xp = namespace(x)
        column = x[:, self.column : self.column + 1]
        level = xp.arange(self.n_indicators, dtype=x.dtype, device=device(x))
        is_level = xp.astype(column % self.n_indicators == level, x.dtype)
        return xp.where(xp.isnan(column), column, is_level)

    def place(self, share: Array) -> Array:
        """Tables from shares of the indicators (M, I), drawn some way towards equal shares."""
        xp = namespace(share)
        levels = [level % self.n_indicators for level in range(self.n_levels)]
        odds = take_columns(xp.clip(share, min=0.0, max=1.0), levels) + 1e-9
        return 0.8 * odds / xp.sum(odds, axis=1, keepdims=True) + 0.2 / self.n_levels

    def sample(self, probability: Array, uniform: Array) -> Array:
        """Levels drawn from one kernel, whose tables are (W,), by numbers in (0, 1), (n,)."""
        xp = namespace(probability)
        below = xp.cumulative_sum(probability[self.known])
        return xp.clip(xp.searchsorted(below, uniform * below[-1]), max=below.shape[0] - 1)

    def imputed(
        self, x: Array, observed: Array, tables: Array, share: Array, noise: Array | None
    ) -> Array:
        """The column (n,) with its missing cells imputed by the most probable level under `share`
        (M, n) of the kernels, or drawn by standard normal `noise` (n, d).
        """
        xp = namespace(x)
        levels = []
        for start in range(0, x.shape[0], max(1, LEVELS_AT_ONCE // self.n_levels)):
            rows = slice(start, start + max(1, LEVELS_AT_ONCE // self.n_levels))
            odds = share[:, rows].T @ tables[:, self.known]  # (rows, L - 1)
            if noise is not None:
                below = xp.cumulative_sum(odds, axis=1)
                uniform = normal_cdf(noise[rows, self.column])
                odds = xp.astype(below >= uniform[:, None] * below[:, -1:], xp.int64)
            levels.append(xp.argmax(odds, axis=1))
        imputed = xp.astype(xp.concat(levels), x.dtype)
        return xp.where(observed > 0, x[:, self.column], imputed)
