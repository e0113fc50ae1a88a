r"""Least squares and ridge, with the ridge chosen in closed form.

Golub, Heath & Wahba, "Generalized cross-validation as a method for choosing a good ridge parameter", Technometrics 21(2), 1979.

.. math::

    \min_\beta |y - X \beta|^2 + \lambda |\beta|^2, \qquad
    \text{GCV} = \frac{n\, |y - Hy|^2}{(n - \text{tr} H)^2}, \quad
    \text{left out: } \frac{(y - Hy)_i}{1 - H_{ii}}, \quad H = X (X'X + \lambda)^{-1} X'

===================  ==============  ================  =================================================
paper                here            shape             meaning
===================  ==============  ================  =================================================
:math:`X'X`          ``gram``        (M + 1, M + 1)    adds up over blocks of rows
:math:`X'y`          ``cross``       (M + 1, o)        adds up over blocks of rows
:math:`\lambda`      ``strength``    scalar            one for all outputs
===================  ==============  ================  =================================================

Deviations from the paper: the bias is free, so everything is taken about the means. Generalized cross-validation needs no rows
at all; leaving out needs one pass for all strengths together.
"""

from ..arrays import Array, as_float64, device, namespace
from ..rows import Block, Rows
from ..sums import Sums, record
from .em_log import Hidden, Layer
from .readout import FLAT, SMALLEST, Readout, Targets


@record
class Squares(Sums):
    """Everything that least squares asks of rows."""

    gram: Array
    """(M + 1, M + 1)."""
    cross: Array
    """(M + 1, o)."""
    square: Array
    """Sum of the squared targets, (o,)."""


@record
class Axes:
    """`Squares` about the means, along the axes in which the columns are uncorrelated."""

    count: Array
    mean: Array
    """Of the columns, (M,)."""
    target_mean: Array
    """(o,)."""
    vector: Array
    """(M, M)."""
    value: Array
    """Sum of squares along each axis, (M,)."""
    along: Array
    """Sum of column times target, (M, o)."""
    square: Array
    """Sum of squared targets, (o,)."""


class LeastSquares:
    """min |y - X beta|² + strength |beta|²; the strength given, or chosen by "gcv" or "loo"."""

    centered = False

    def __init__(self, hidden: Hidden, targets: Targets, strength: float | str = 0.0) -> None:
        self.hidden, self.targets, self.strength = hidden, targets, strength

    def solve(self, rows: Rows, layer: Layer, before: Readout | None = None) -> Readout:
        """The best output layer for `layer`; what was there before plays no part."""
        axes = _axes(rows.total(self.squares, layer))
        strength = (
            self.strength if isinstance(self.strength, float) else self._chosen(rows, layer, axes)
        )
        inverse = _inverse(axes, [strength])  # (M, 1)
        xp = namespace(inverse)
        weight = axes.vector @ (axes.along * inverse)
        bias = axes.target_mean - axes.mean @ weight
        return Readout(xp.concat([weight, bias[None, :]]), strength)

    step = solve

    def score(self, rows: Rows, layer: Layer, readout: Readout) -> float:
        """Mean squared error of every row when it is left out, in closed form."""
        axes = _axes(rows.total(self.squares, layer))
        inverse = _inverse(axes, [readout.strength])
        return float(rows.total(self.left_out, layer, axes, inverse)[0]) / float(axes.count)

    def uncertainty(self, rows: Rows, layer: Layer, readout: Readout) -> tuple[Array, Array]:
        """Variance of the noise about each output, (o,), and that of the weights in units of it, (M + 1, M + 1)."""
        axes = _axes(rows.total(self.squares, layer))
        xp, inverse = namespace(axes.value), _inverse(axes, [readout.strength])
        left = max(float(_freedom(axes, inverse)[0]), 1.0)
        spread = (axes.vector * inverse[:, 0]) @ axes.vector.T
        cross = -(spread @ axes.mean)[:, None]  # (M, 1)
        bias = xp.reshape(1 / axes.count - xp.sum(axes.mean * cross[:, 0]), (1, 1))
        whole = xp.concat([xp.concat([spread, cross], axis=1), xp.concat([cross.T, bias], axis=1)])
        return _residual(axes, inverse)[:, 0] / left, whole

    def squares(self, block: Block, layer: Layer) -> Squares:
        """X'WX and X'Wy of one block."""
        xp = namespace(block.x)
        columns = self.hidden.columns(block, layer)
        target, weight = self.targets.of(block)
        weighted = columns * weight
        return Squares(
            weighted @ columns.T, weighted @ target.T, xp.sum(weight * target**2, axis=1)
        )

    def left_out(self, block: Block, layer: Layer, axes: Axes, inverse: Array) -> Array:
        """Squared error of the rows of one block, each left out, for every strength, (L,): r_i / (1 - h_ii)."""
        xp = namespace(block.x)
        axes, inverse = _wide(axes), as_float64(inverse)
        target, weight = self.targets.of(block)
        away = axes.vector.T @ (
            self.hidden.columns(block, layer)[:-1, :] - axes.mean[:, None]
        )  # (M, n)
        rest = 1 - 1 / axes.count - (away**2).T @ inverse  # (n, L)
        rest = xp.clip(rest, min=1e-9)  # a row that alone decides its own output
        total = xp.zeros_like(inverse[0, :])
        for o in range(target.shape[0]):
            residual = (target[o, :] - axes.target_mean[o])[:, None] - away.T @ (
                axes.along[:, o][:, None] * inverse
            )
            total = total + weight @ (residual / rest) ** 2
        return total

    def _chosen(self, rows: Rows, layer: Layer, axes: Axes) -> float:
        """The strength with the least error, on a grid of three a decade and then a finer one around the best."""
        top = float(namespace(axes.value).max(axes.value))
        best = top if top > FLAT else 1.0  # constant columns need no ridge
        for steps, fewest, most in ((3, -30, 7), (15, -5, 6)):
            grid = [best * 10 ** (i / steps) for i in range(fewest, most)]
            by_rows = self.strength == "loo"
            errors = (
                rows.total(self.left_out, layer, axes, _inverse(axes, grid))
                if by_rows
                else _gcv(axes, grid)
            )
            best = grid[int(namespace(errors).argmin(errors))]
        return best


def _axes(sums: Squares) -> Axes:
    xp = namespace(sums.gram)
    count = sums.gram[-1, -1]
    mean, target_mean = sums.gram[:-1, -1] / count, sums.cross[-1, :] / count
    value, vector = xp.linalg.eigh(sums.gram[:-1, :-1] - count * mean[:, None] * mean[None, :])
    along = vector.T @ (sums.cross[:-1, :] - count * mean[:, None] * target_mean[None, :])
    square = sums.square - count * target_mean**2
    return Axes(
        count,
        mean,
        target_mean,
        vector,
        xp.where(value > 0, value, xp.zeros_like(value)),
        along,
        square,
    )


def _wide(axes: Axes) -> Axes:
    parts = (
        axes.count,
        axes.mean,
        axes.target_mean,
        axes.vector,
        axes.value,
        axes.along,
        axes.square,
    )
    return Axes(*(as_float64(part) for part in parts))


def _inverse(axes: Axes, strengths: list[float]) -> Array:
    """1 / (value + strength) for every strength, (M, L); zero along empty axes: the pseudo-inverse."""
    xp = namespace(axes.value)
    tries = xp.asarray(strengths, dtype=axes.value.dtype, device=device(axes.value))
    total = axes.value[:, None] + tries[None, :]
    empty = total <= max(SMALLEST * float(xp.max(axes.value)), FLAT)
    return xp.where(empty, xp.zeros_like(total), 1 / xp.where(empty, xp.ones_like(total), total))


def _gcv(axes: Axes, strengths: list[float]) -> Array:
    """n |residual|² / (n - trace of the hat matrix)² for every strength, (L,)."""
    xp = namespace(axes.value)
    inverse = _inverse(axes, strengths)
    residual, left = xp.sum(_residual(axes, inverse), axis=0), _freedom(axes, inverse)
    return xp.where(
        left > 0,
        axes.count * residual / xp.where(left > 0, left, xp.ones_like(left)) ** 2,
        xp.inf + 0 * left,
    )


def _residual(axes: Axes, inverse: Array) -> Array:
    """Sum of squared residuals, (o, L)."""
    xp = namespace(inverse)
    fitted = (axes.along**2).T @ (inverse * (2 - axes.value[:, None] * inverse))
    return xp.clip(axes.square[:, None] - fitted, min=0.0)


def _freedom(axes: Axes, inverse: Array) -> Array:
    """n less the trace of the hat matrix, (L,)."""
    return axes.count - 1 - namespace(inverse).sum(axes.value[:, None] * inverse, axis=0)
