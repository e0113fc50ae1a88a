"""An accelerator of `em`: squared extrapolation of its steps."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .errors import CollapsedKernelError

P = TypeVar("P")

FIRST_LIMIT = 4.0
"""Longest step of `Squarem` at first."""

LIMIT_GROWTH = 4.0
"""Factor by which that limit grows with every step of its length that is kept."""


class Squarem(Generic[P]):
    r"""SQUAREM: squared extrapolation of EM in the coordinates that a network offers.

    Varadhan & Roland, "Simple and globally convergent methods for accelerating the convergence of
    any EM algorithm", Scandinavian Journal of Statistics 35(2), 2008, scheme S3.

    .. math::

        r = g(x_0) - x_0, \quad v = g(g(x_0)) - g(x_0) - r, \quad s = \|r\| / \|v\|, \qquad
        x = x_0 + 2 s\, r + s^2 v

    EM is a fixed-point iteration x <- g(x) whose error shrinks by a constant factor a sweep, close
    to one where kernels overlap; two plain steps measure that factor, and the third goes where many
    more would have led. It costs a few vectors as long as the parameters.

    Deviations: the step is taken in coordinates in which every vector is a valid network (square
    roots of mixing weights, logarithms of variances, Cholesky factors), and whether it is kept is
    decided in `em`: the objective never falls. Anderson acceleration, tried in the same
    coordinates, needed 2-10 times as many sweeps.
    """

    def __init__(self, coordinates: Callable[[P], Any], at: Callable[[Any, P], P]) -> None:
        self.coordinates = coordinates
        self.at = at
        self._limit = FIRST_LIMIT
        """Longest step allowed; longer ones are earned by steps of this length that were kept."""
        self._origin: Any = None
        self._pending = 0.0
        """Length of the step now on trial; 0 when there is none."""

    def propose(self, params: P, better: P) -> P | None:
        """Parameters beyond the plain step `params` -> `better`; None where a plain step is due."""
        if self._pending:  # the proposal was kept: a new cycle starts from it
            if self._pending == self._limit:
                self._limit *= LIMIT_GROWTH
            self._origin = None
        self._pending = 0.0
        start = self._origin
        self._origin = None
        try:
            x = self.coordinates(params)
            if start is None:
                self._origin = x
                return None
            first = x - start
            second = self.coordinates(better) - x - first
            length = min(
                (float(first @ first) / max(float(second @ second), 1e-300)) ** 0.5, self._limit
            )
            if length <= 1:
                return None
            proposal = self.at(start + 2 * length * first + length**2 * second, better)
        except (CollapsedKernelError, FloatingPointError):
            return None
        self._pending = length
        return proposal

    def reject(self) -> None:
        """The objective fell at the proposal."""
        if self._pending == self._limit:
            self._limit = max(FIRST_LIMIT, self._limit / LIMIT_GROWTH)
        self._pending = 0.0
