r"""What a penalty is, and what a sum of penalties is.

.. math:: \text{objective} = \log p(\text{rows} \mid \Theta) + \sum_i \log p_i(\Theta)

A penalty states what it adds to the sufficient statistics of the M-step, as if rows had been seen
before the first one (`prior_statistics`), and what it adds to each class's share of mass in each
kernel (`shares`). Its term of the objective follows from the former. Statistics add, and so do
penalties.
"""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from ..arrays import Array, namespace
from ..errors import KernelpoolError
from ..kernels import Gaussian, Kernel, Kernels, Parameters, PriorStatistics, Product
from ..sums import record


@record
class Subkernels:
    """Kernel j as the rows of class k alone would have it (Constantinopoulos, Titsias & Likas 2002,
    (11), (12), (15)).
    """

    posterior: Array
    """P(C_k|j), (M, K), equation (15)."""
    kernels: tuple[Parameters, ...]
    """For each class its M kernels, (11) and (12); a kernel itself where a class has no rows in
    it.
    """
    current: Parameters | None = None
    """The M kernels that the rows were assigned by."""
    previous: tuple[Parameters, ...] | None = None
    """`kernels` of the sweep before, for a penalty that `remembers`; None in the first sweep."""


def gaussian(kernel: Kernel, what: str) -> Gaussian:
    """The family, if it is Gaussian, which `what` needs."""
    if not isinstance(kernel, Gaussian):
        raise KernelpoolError(
            f"{what} is defined for Gaussian kernels only; the family is {kernel.name!r}."
        )
    return kernel


def numbers_of(kernel: Kernel, kernels: Parameters, what: str) -> tuple[Gaussian, Kernels]:
    """The Gaussian family of all columns, or of the numbers among them, and its kernels."""
    family = kernel.gaussian if isinstance(kernel, Product) else gaussian(kernel, what)
    return family, kernels


class Penalty:
    """Believes nothing: every default is maximum likelihood.

    `subkernels` are what each class sees in each kernel; they are worked out only for a penalty
    whose `by_class` is true. A penalty that is not `monotone` cannot promise that its M-step never
    lowers the objective.
    """

    by_class: bool = False
    """Whether the moments of each class in each kernel are needed."""
    monotone: bool = True
    """Whether the objective never falls."""
    remembers: bool = False
    """Whether the subkernels of the sweep before are needed."""

    def prior_statistics(
        self, kernel: Kernel, moments: Any, moment_origin: Array, subkernels: Subkernels | None
    ) -> Any:
        """What is added to the moments, about `moment_origin` (M, d), before kernels are estimated;
        None is nothing.
        """
        return None

    def shares(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> Array | float:
        """What is added to the mass of each kernel in each class, (M, K), before mixing weights are
        taken.
        """
        return 0.0

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        """log p(Theta), up to a constant: what the penalty adds to the log-likelihood."""
        return 0.0

    def gradient(self, kernel: Kernel, kernels: Parameters) -> Array | float:
        """Of `objective`, by the family's coordinates; only where it follows from the kernels alone
        (not `by_class`).
        """
        return 0.0

    def mixing(
        self,
        kernel: Kernel,
        mass: Array,
        before: Array,
        kernels: Parameters,
        subkernels: Subkernels | None,
    ) -> Array:
        """(37): pi_jk, (M, K), negative shares cut at zero.

        A class that would have no share left keeps its shares of mass, and one without mass the
        column it had.
        """
        xp = namespace(mass)
        share = mass + self.shares(kernel, kernels, subkernels)
        share = xp.where(share > 0, share, xp.zeros_like(share))
        share = xp.where(xp.sum(share, axis=0) > 0, share, mass)
        of_class = xp.sum(share, axis=0)
        return xp.where(
            of_class > 0, share / xp.where(of_class > 0, of_class, xp.ones_like(of_class)), before
        )

    def __add__(self, other: "Penalty") -> "Penalty":
        return Sum(self, other)


class NoPenalty(Penalty):
    """Maximum likelihood."""


class PriorRows(Penalty):
    """A penalty that is a conjugate prior: as if some rows had been seen of every kernel, and
    nothing else.

    Such a prior states the statistics of those rows about the origin; their log-likelihood is its
    term of the objective.
    """

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None = None
    ) -> float:
        """The expected log-likelihood of the rows that were seen before, up to a constant."""
        family, gaussians = numbers_of(kernel, kernels, type(self).__name__)
        xp = namespace(gaussians.mean)
        found = family.log_prior(gaussians, self.rows(family, xp.zeros_like(gaussians.mean)))
        if isinstance(kernel, Product):
            found += float(xp.sum(self.table_counts(kernels.mean) * xp.log(kernels.probability)))
        return found

    def gradient(self, kernel: Kernel, kernels: Parameters) -> Array:
        family, gaussians = numbers_of(kernel, kernels, type(self).__name__)
        xp = namespace(gaussians.mean)
        found = family.prior_pullback(gaussians, self.rows(family, xp.zeros_like(gaussians.mean)))
        if not isinstance(kernel, Product):
            return found
        counts = self.table_counts(kernels.mean) + xp.zeros_like(kernels.probability)
        totals = [
            xp.sum(counts[:, s], axis=1, keepdims=True) + xp.zeros_like(counts[:, s])
            for s in kernel.spans
        ]
        return xp.concat(
            [found, xp.reshape(counts - xp.concat(totals, axis=1) * kernels.probability, (-1,))]
        )

    def prior_statistics(
        self, kernel: Kernel, moments: Any, moment_origin: Array, subkernels: Subkernels | None
    ) -> PriorStatistics:
        if not isinstance(kernel, Product):
            return self.rows(gaussian(kernel, type(self).__name__), moment_origin)
        return replace(
            self.rows(kernel.gaussian, moment_origin),
            table_counts=self.table_counts(moment_origin),
        )

    def table_counts(self, like: Array) -> Array | float:
        """Of those rows, how many have each level, (M, W), in the library of `like`."""
        return 0.0

    def rows(self, kernel: Gaussian, moment_origin: Array) -> PriorStatistics:
        """The statistics of those rows, about `moment_origin` (M, d)."""
        raise NotImplementedError


class Sum(Penalty):
    """Several penalties at once: their statistics, shares and terms of the objective add."""

    def __init__(self, *terms: Penalty) -> None:
        self.terms: tuple[Penalty, ...] = tuple(
            t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,))
        )

    @property
    def by_class(self) -> bool:  # type: ignore[override]
        return any(term.by_class for term in self.terms)

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        return all(term.monotone for term in self.terms)

    @property
    def remembers(self) -> bool:  # type: ignore[override]
        return any(term.remembers for term in self.terms)

    def prior_statistics(
        self, kernel: Kernel, moments: Any, moment_origin: Array, subkernels: Subkernels | None
    ) -> Any:
        each = [
            term.prior_statistics(kernel, moments, moment_origin, subkernels) for term in self.terms
        ]
        stated = [one for one in each if one is not None]
        return reduce(add, stated) if stated else None

    def shares(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> Array | float:
        return sum((term.shares(kernel, kernels, subkernels) for term in self.terms), 0.0)

    def gradient(self, kernel: Kernel, kernels: Parameters) -> Array | float:
        return sum((term.gradient(kernel, kernels) for term in self.terms), 0.0)

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        return sum(term.objective(kernel, kernels, subkernels) for term in self.terms)
