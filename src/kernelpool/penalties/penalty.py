r"""What a penalty is, a sum of penalties, and conjugate priors.

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

from ..arrays import Array, match_array, namespace
from ..errors import KernelpoolError
from ..kernels import (
    Gaussian,
    Kernel,
    Kernels,
    Parameters,
    PriorStatistics,
    Product,
    ProductKernels,
)
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
    """`kernels` of the sweep before; None in the first sweep."""


def gaussian_of(kernel: Kernel, name: str) -> Gaussian:
    """The Gaussian family of all columns, or of the numbers among them, which the penalty called
    `name` needs.
    """
    family = kernel.gaussian if isinstance(kernel, Product) else kernel
    if not isinstance(family, Gaussian):
        raise KernelpoolError(
            f"{name} is defined for Gaussian kernels only; the family is {kernel.name!r}."
        )
    return family


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
        family = gaussian_of(kernel, type(self).__name__)
        xp = namespace(kernels.mean)
        found = family.log_prior(kernels, self.rows(family, xp.zeros_like(kernels.mean)))
        if isinstance(kernel, Product):
            found += float(xp.sum(self.table_counts(kernels.mean) * xp.log(kernels.probability)))
        return found

    def prior_statistics(
        self, kernel: Kernel, moments: Any, moment_origin: Array, subkernels: Subkernels | None
    ) -> PriorStatistics:
        stated = self.rows(gaussian_of(kernel, type(self).__name__), moment_origin)
        if not isinstance(kernel, Product):
            return stated
        return replace(stated, table_counts=self.table_counts(moment_origin))

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

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        return sum(term.objective(kernel, kernels, subkernels) for term in self.terms)


class Conjugate(PriorRows):
    r"""As if `shrinkage` rows lay at the mean of the data, and some more spread as a kernel is
    expected to be.

    Fraley & Raftery, "Bayesian regularization for normal mixture estimation and model-based
    clustering", Journal of Classification 24, 2007, sections 3 and 4 and table 2.

    .. math::

        \mu_j \mid \Sigma_j \sim N(\mu_P, \Sigma_j / \kappa_P), \qquad \Sigma_j \sim \text{inverse Wishart}(\nu_P, \Lambda_P)

    with inverse gammas in place of the Wishart for spherical and diagonal kernels.

    ==================  ==============  ==============================================================================
    paper               here            meaning and default
    ==================  ==============  ==============================================================================
    :math:`\mu_P`       the origin      mean of the data
    :math:`\kappa_P`    ``shrinkage``   rows' worth of belief in that mean, 0.01
    :math:`\nu_P`       in ``kernel``   degrees of freedom: d + 2, the smallest whole number that has a mean
    :math:`\Lambda_P`   ``variance``    (variance of the data) / M^(2/d): the data cut into M equal parts
    ==================  ==============  ==============================================================================

    Deviations: the scale is the diagonal of the data's covariance, not the whole of it, so that the
    prior needs no more of the data than its frame does and makes no kernel more singular than its
    neighbors. The paper keeps d + 2 degrees of freedom where the prior is on single variances
    (spherical, diagonal); their mean is then 1/d of what it was meant to be, and in many dimensions the
    prior narrows kernels instead of widening them. There we take 3, as the paper does for one
    dimension.
    """

    def __init__(self, variance: Array, n_kernels: int, shrinkage: float = 0.01) -> None:
        self.shrinkage = shrinkage
        self.variance = variance / n_kernels ** (2 / variance.shape[0])
        """What is expected of a kernel along each feature, (d,)."""

    def rows(self, kernel: Gaussian, moment_origin: Array) -> PriorStatistics:
        """kappa rows at mu_P, the origin, and a scatter of Lambda that counts for nu_P and some
        more rows.
        """
        scatter, count = kernel.prior(
            match_array(self.variance, like=moment_origin), moment_origin.shape[0]
        )
        second = scatter + kernel.squares(self.shrinkage + 0 * moment_origin[:, 0], moment_origin)
        return PriorStatistics(self.shrinkage, -self.shrinkage * moment_origin, second, count)


class CategoryPrior(Penalty):
    r"""A Dirichlet prior on the probabilities of categories.

    .. math:: \log p(\Theta) = \sum_j \sum_g \frac{\alpha}{L_g + 1} \sum_{l = 0}^{L_g} \log \theta_{jg}(l)

    as if :math:`\alpha` more rows of every kernel had been seen, spread evenly over the :math:`L_g`
    categories of each column and any other value. The family adds these rows itself
    (`kernels.product`); this is their term of the objective.
    """

    def objective(
        self, kernel: Kernel, kernels: Parameters, subkernels: Subkernels | None
    ) -> float:
        return kernel.log_dirichlet_prior(kernels) if isinstance(kernel, Product) else 0.0


class Anchor(PriorRows):
    r"""As if `strength` more rows, drawn from `home`, had been seen of every kernel.

    Gauvain & Lee, "Maximum a posteriori estimation for multivariate Gaussian mixture observations of
    Markov chains", IEEE Transactions on Speech and Audio Processing 2(2), 1994, section II, with the
    prior centered on given kernels.

    .. math:: \log p(\Theta) = -\nu \sum_j \mathrm{KL}\left( p_0(x \mid j) \,\|\, p(x \mid j) \right)

    which is, but for a constant, the expected log-likelihood of :math:`\nu` more rows drawn from each
    kernel as it was: a normal inverse Wishart prior whose mode is that kernel. At that kernel it is
    zero.

    ====================================  ============  =================================================================
    paper                                 here          meaning
    ====================================  ============  =================================================================
    :math:`\tau = \alpha - d`             ``strength``  rows' worth of belief in each kernel, :math:`\nu` above
    :math:`\mu_{0j}, \Sigma_{0j}`         ``home``      the kernels as they were
    ====================================  ============  =================================================================

    Deviations: the paper lets the strength differ by kernel and between mean and covariance; here it is
    one number of rows.
    """

    def __init__(self, strength: float, home: Kernels) -> None:
        self.strength = strength
        self.home = home

    def rows(self, kernel: Gaussian, moment_origin: Array) -> PriorStatistics:
        """nu rows with the mean and covariance of `home`."""
        xp = namespace(moment_origin)
        home = match_array(self.home, like=moment_origin)
        away = home.mean - moment_origin
        second = kernel.pool_moments(
            self.strength * (kernel.flat(home.covariance) + kernel.square(away.T).T)
        )
        n_rows = kernel.pool_moments(
            xp.ones_like(away[:, :1])
        )  # a tied covariance counts the rows of all kernels
        return PriorStatistics(
            self.strength, self.strength * away, second, self.strength * float(n_rows[0, 0])
        )

    def table_counts(self, like: Array) -> Array | float:
        """nu rows with the categories of `home`."""
        assert isinstance(self.home, ProductKernels)
        return self.strength * match_array(self.home.probability, like=like)

    def objective(
        self, kernel: Kernel, kernels: Kernels, subkernels: Subkernels | None = None
    ) -> float:
        """-nu times the sum of the divergences."""
        return super().objective(kernel, kernels) - super().objective(
            kernel, match_array(self.home, like=kernels.mean)
        )
