r"""The output layer of an RBF network: its targets, and how its equations are solved.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks", equation (1).

.. math:: y = X \beta

==================  ==============  ==========  ==========================================================
paper               here            shape       meaning
==================  ==============  ==========  ==========================================================
:math:`X'`          ``columns``     (M + 1, n)  outputs of the kernels, each at most one, and last the bias
:math:`\beta`       ``weight``      (M + 1, o)  output layer: o outputs
:math:`y`           ``target``      (o, n)      indicators of classes, or real numbers
==================  ==============  ==========  ==========================================================

Deviations from the paper: any number of classes and real outputs. What is singular is solved by least norm.
"""

from typing import Protocol

from ..arrays import (
    Array,
    as_float64,
    cholesky,
    device,
    inverse_of_lower,
    namespace,
    solve_factored,
)
from ..rows import Block
from ..sums import record

SMALLEST = 1e-12
"""A column whose residual given the others is below this, relative to its square, is taken to depend on them."""

FLAT = 1e-100
"""A curvature below this is none: the outputs are 0 or 1 wherever the column is not zero."""


@record
class Readout:
    """A trained output layer."""

    weight: Array
    """(M + 1, o), for the columns of the layer that it was trained on."""
    strength: float
    age: int = 0
    """How many layers it has followed."""


class Targets(Protocol):
    """Targets of the output layer."""

    n_outputs: int

    def of(self, block: Block) -> tuple[Array, Array]:
        """Targets (o, n), and how much each row counts (n,); float64."""


class ClassTargets:
    """Indicators of the classes `first`, ..., K - 1; rows without a label count nothing."""

    def __init__(self, n_classes: int, first: int = 0) -> None:
        self.first, self.n_outputs = first, n_classes - first

    def of(self, block: Block) -> tuple[Array, Array]:
        xp, home = namespace(block.x), device(block.x)
        codes = xp.arange(self.first, self.first + self.n_outputs, dtype=block.y.dtype, device=home)  # type: ignore[union-attr]
        target = xp.astype(codes[:, None] == block.y[None, :], xp.float64)  # type: ignore[index]
        known = xp.astype(block.y >= 0, xp.float64)  # type: ignore[operator]
        return target, known if block.weight is None else known * as_float64(block.weight)


class Values:
    """Real numbers, about their mean and in units of their deviation."""

    def __init__(self, mean: list[float], scale: list[float]) -> None:
        self.mean, self.scale, self.n_outputs = mean, scale, len(mean)

    def of(self, block: Block) -> tuple[Array, Array]:
        xp, home = namespace(block.x), device(block.x)
        y = as_float64(block.y)
        y = y[None, :] if y.ndim == 1 else y.T
        mean, scale = (
            xp.asarray(a, dtype=xp.float64, device=home)[:, None] for a in (self.mean, self.scale)
        )
        weight = xp.ones_like(y[0, :]) if block.weight is None else as_float64(block.weight)
        return (y - mean) / scale, weight


# -- symmetric equations that may be singular ------


def solved(a: Array, b: Array) -> Array:
    """a^-1 b for a symmetric `a` that may be singular: of all solutions the shortest, in units of the diagonal."""
    xp = namespace(a)
    unit, scaled = _unit_diagonal(a)
    factor = cholesky(scaled)
    if factor is not None and float(xp.min(xp.linalg.diagonal(factor))) ** 2 > SMALLEST:
        return solve_factored(factor, b / unit[:, None]) / unit[:, None]
    return pseudo_inverse(a) @ b


def pseudo_inverse(a: Array) -> Array:
    """Of a symmetric, positive semi-definite `a`, in units of its diagonal."""
    xp = namespace(a)
    unit, scaled = _unit_diagonal(a)
    factor = cholesky(scaled)
    if (
        factor is not None and float(xp.min(xp.linalg.diagonal(factor))) ** 2 > SMALLEST
    ):  # several times quicker
        root = inverse_of_lower(factor, overwrite=True)
        return root.T @ root / (unit[:, None] * unit[None, :])
    value, vector = xp.linalg.eigh(scaled)
    live = value > max(SMALLEST * float(value[-1]), FLAT)
    inverse = xp.where(live, 1 / xp.where(live, value, xp.ones_like(value)), xp.zeros_like(value))
    return (vector * inverse) @ vector.T / (unit[:, None] * unit[None, :])


def _unit_diagonal(a: Array) -> tuple[Array, Array]:
    xp = namespace(a)
    diagonal = xp.linalg.diagonal(a)
    unit = xp.where(diagonal > FLAT, diagonal, xp.ones_like(diagonal)) ** 0.5
    return unit, a / (unit[:, None] * unit[None, :])
