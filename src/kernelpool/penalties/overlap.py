r"""Penalty on kernels whose classes lie apart.

Constantinopoulos, Titsias & Likas, "A Bayesian regularization method for the probabilistic RBF
network", 2002, equations (16)-(30).

.. math:: \log p(\Theta) = -\alpha \sum_j \sum_k P(C_k \mid j)\, \beta_{jk}

with :math:`\beta_{jk}` the Bhattacharyya distance of kernel j from what class k alone would make of
it.

========================  ================  ======  ======================================================================
paper                     here              shape   meaning
========================  ================  ======  ======================================================================
:math:`\alpha`            ``strength``      scalar  weight of the penalty; 0 is maximum likelihood, bit for bit
:math:`P(C_k \mid j)`     ``posterior``     (M, K)  share of class k in kernel j
:math:`\delta_{jk}`       ``apart``         (M, K)  squared distance of a class's mean from the kernel's, in its metric
:math:`\beta_{jk}`        ``distance``      (M, K)  what is penalized
========================  ================  ======  ======================================================================

Deviations. (29) can make every share of a class negative, and zeroing them as the paper does leaves
0/0 (seen on ionosphere with four kernels and a strength of 20): a class to which that happens keeps
its shares of mass for this sweep. The updates assume :math:`\Sigma_{jk} = \Sigma_j`, the objective
(22), (23) does not, so it may fall: it is tracked as it is, and the best parameters are kept. Other
distances than the paper's (its wish list) replace :math:`\delta / 8` in (27) and (29) by their own
value and slope. Categories (`kernels.product`) add the distance of their tables; (27)
leaves the tables to the rows, as (28) does the shapes.

The step of :math:`\delta`. (29) prints :math:`\delta^{(t)}`, while (30) defines
:math:`\delta^{(t+1)}` by the means and covariances at t + 1 and the subkernels at t. Three readings
are offered (`STEPS`); where EM has settled they are the same:

=========  ====================  ==========  ==================================================
step       kernels               subkernels  reading
=========  ====================  ==========  ==================================================
"next"     t + 1, (27) and (28)  t           (30) as it stands, in the same sweep
"current"  t                     t           (29) as it stands, of this sweep's E-step
"printed"  t                     t - 1       both as they stand: (30) of the sweep before
=========  ====================  ==========  ==================================================
"""

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from ..arrays import Array, device, namespace
from ..errors import KernelpoolError, check_choices
from ..kernels import Gaussian, Kernel, Kernels, Moments, PriorStatistics, Product, ProductKernels
from ..records import saved
from .penalty import Penalty, Subkernels, gaussian_of

STEPS = ("next", "current", "printed")
"""Which kernels and subkernels (29) compares, by the name under which users ask for it."""


class Distance(ABC):
    """How far kernels lie from their subkernels; one small class each."""

    factor: ClassVar[float] = 1 / 8
    """What delta counts where the shapes agree."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(M, K), as the updates use it: with Sigma_jk = Sigma_j."""
        return self.factor * apart(kernel, kernels, subkernels)

    def slope(self, apart: Array) -> Array | float:
        """Derivative of `value` by delta, (M, K), with the covariances held fixed."""
        return self.factor

    @abstractmethod
    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(M, K), as the objective uses it: with Sigma_jk."""

    def of_categories(self, kernel: Product, kernels: ProductKernels, own: ProductKernels) -> Array:
        """How far the tables of categories lie from those of one class, (M,): the Bhattacharyya
        distances of all columns.
        """
        xp = namespace(kernels.mean)
        both = (kernels.probability * own.probability) ** 0.5
        return -sum(xp.log(xp.sum(both[:, table.span], axis=1)) for table in kernel.tables)

    def joined(self, of_numbers: Array, of_categories: Array) -> Array:
        """Both factors of a kernel, (M, K)."""
        return of_numbers + of_categories

    def pull(
        self,
        kernel: Gaussian,
        here: Kernels,
        subkernels: Subkernels,
        strength: float,
        mass: Array,
        moment_origin: Array,
    ) -> PriorStatistics:
        """(27): as if 2 * strength * slope more rows of each class lay at its mean."""
        xp = namespace(mass)
        slope = self.slope(apart(kernel, here, subkernels))
        rows = 2 * strength * subkernels.posterior * slope  # (M, K)
        first = xp.sum(rows[:, :, None] * (_means(subkernels) - moment_origin[:, None, :]), axis=1)
        return PriorStatistics(pull_mass=xp.sum(rows, axis=1), pull_first=first)


def apart(kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
    """(30): delta_jk, (M, K)."""
    return kernel.distance(kernels, _means(subkernels) - kernels.mean[:, None, :])


def _means(subkernels: Subkernels) -> Array:
    """mu_jk, (M, K, d)."""
    return namespace(subkernels.posterior).stack(
        [kernels.mean for kernels in subkernels.kernels], axis=1
    )


class Bhattacharyya(Distance):
    """(23), in the updates with Sigma_jk = Sigma_j: delta / 8."""

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(23): the distance of the means in the mean of both metrics, and the distance of the
        shapes.
        """
        xp = namespace(kernels.mean)
        log_size = kernel.log_size(kernels.covariance)
        columns = []
        for own in subkernels.kernels:
            both = Kernels(kernels.mean, 0.5 * (kernels.covariance + own.covariance))
            log_both = kernel.log_size(both.covariance)
            log_own = kernel.log_size(own.covariance)
            step = (own.mean - kernels.mean)[:, None, :]
            columns.append(
                kernel.distance(both, step)[:, 0] / 8
                + 0.5 * (log_both - 0.5 * (log_size + log_own))
            )
        return xp.stack(columns, axis=1)


class FullBhattacharyya(Bhattacharyya):
    r"""(23) with Sigma_jk its own, in the updates too.

    The means then solve, with :math:`S_{jk} = (\Sigma_j + \Sigma_{jk}) / 2` and n_j rows of mean
    m_j in kernel j,

    .. math:: n_j (m_j - \mu_j) = \frac\alpha4 \sum_k P(C_k \mid j)\, \Sigma_j S_{jk}^{-1} (\mu_j - \mu_{jk})

    which is (27) where :math:`\Sigma_{jk} = \Sigma_j`. Beside another penalty the pull is that at
    the mean without it.
    """

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        return self.exact(kernel, kernels, subkernels)

    def pull(
        self,
        kernel: Gaussian,
        here: Kernels,
        subkernels: Subkernels,
        strength: float,
        mass: Array,
        moment_origin: Array,
    ) -> PriorStatistics:
        xp = namespace(mass)
        d = here.mean.shape[1]
        unit = xp.eye(d, dtype=mass.dtype, device=device(mass))
        matrix, force = mass[:, None, None] * unit, xp.zeros_like(here.mean)  # (M, d, d), (M, d)
        for k, own in enumerate(subkernels.kernels):
            rows = 0.25 * strength * subkernels.posterior[:, k : k + 1]  # (M, 1)
            precision, _ = kernel.precision(0.5 * (here.covariance + own.covariance))
            each = [xp.zeros_like(here.mean) + unit[i, :] for i in range(d)]
            # Sigma_j S_jk^-1, applied to every unit vector, (M, d, d)
            turn = xp.stack(
                [kernel.apply(here.covariance, kernel.apply(precision, x)) for x in each], axis=2
            )
            matrix = matrix + rows[:, :, None] * turn
            force = force + rows * (turn @ (own.mean - here.mean)[..., None])[..., 0]
        step = xp.linalg.solve(matrix, force[..., None])[..., 0]
        return PriorStatistics(pull_first=mass[:, None] * step)


class Hellinger(Bhattacharyya):
    """Squared Hellinger distance, 1 - exp(-beta): bounded, so a remote class is given up sooner."""

    def value(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        xp = namespace(kernels.mean)
        return 1 - xp.exp(-super().value(kernel, kernels, subkernels))

    def slope(self, apart: Array) -> Array:
        return namespace(apart).exp(-apart / 8) / 8

    def joined(self, of_numbers: Array, of_categories: Array) -> Array:
        return 1 - (1 - of_numbers) * namespace(of_categories).exp(-of_categories)

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        xp = namespace(kernels.mean)
        return 1 - xp.exp(-super().exact(kernel, kernels, subkernels))


class KullbackLeibler(Distance):
    """Divergence of the kernel from its subkernel, KL(p(x|jk) || p(x|j)); delta / 2 where the
    shapes agree.
    """

    factor = 1 / 2

    def of_categories(self, kernel: Product, kernels: ProductKernels, own: ProductKernels) -> Array:
        """Divergences of the tables of all columns."""
        xp = namespace(kernels.mean)
        return xp.sum(
            own.probability * (xp.log(own.probability) - xp.log(kernels.probability)), axis=1
        )

    def exact(self, kernel: Gaussian, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(delta + tr(Sigma_j^-1 Sigma_jk) - d + log |Sigma_j| - log |Sigma_jk|) / 2."""
        xp = namespace(kernels.mean)
        d = kernels.mean.shape[1]
        precision, log_size = kernel.precision(kernels.covariance)
        columns = []
        for own in subkernels.kernels:
            log_own = kernel.log_size(own.covariance)
            trace = xp.sum(kernel.dual(precision) * kernel.flat(own.covariance), axis=1)
            columns.append(0.5 * (trace - d + log_size - log_own))
        shapes = xp.stack(columns, axis=1) + xp.zeros_like(subkernels.posterior)
        return self.value(kernel, kernels, subkernels) + shapes


DISTANCES: dict[str, type[Distance]] = {
    "bhattacharyya": Bhattacharyya,
    "full_bhattacharyya": FullBhattacharyya,
    "hellinger": Hellinger,
    "kullback_leibler": KullbackLeibler,
}
"""Every distance by the name under which users ask for it."""


NAME = "The overlap penalty"


@saved
class Overlap(Penalty):
    """Penalty on kernels whose classes lie apart (Constantinopoulos, Titsias & Likas 2002).

    Parameters
    ----------
    strength : float
        Weight of the penalty; 0 is maximum likelihood, the paper's tables go from 5 to 20.
    distance : {"bhattacharyya", "full_bhattacharyya", "hellinger", "kullback_leibler"}
        Distance of a class from a kernel; the first is the paper's, and the default.
    step : {"next", "current", "printed"}, default="next"
        Which kernels and subkernels the update (29) of the mixing weights compares, since the
        paper's (29) and (30) count sweeps differently: the new kernels and this sweep's
        subkernels; the kernels and subkernels of this sweep; or these kernels and the subkernels
        of the sweep before, as printed. Where EM settles, all are the same.
    units : {"paper", "raw"}, default="paper"
        Whether `strength` counts in N / (K M), rows by classes and kernels, or is the paper's alpha
        itself.
    """

    strength: float
    distance: str = "bhattacharyya"
    step: str = "next"
    units: str = "paper"

    by_class: ClassVar[bool] = True  # type: ignore[misc]
    monotone: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_choices(self, distance=DISTANCES, step=STEPS, units=("paper", "raw"))
        if not 0 <= self.strength < math.inf:
            raise KernelpoolError(
                f"strength of Overlap must be a number of at least 0; got {self.strength!r}."
            )

    def in_raw_units(self, weight: float, sharing: Any) -> "Overlap":
        """The penalty for rows of this total weight and a table of sharing, (M, K)."""
        n_kernels, n_classes = sharing.shape
        unit = weight / (n_kernels * n_classes) if self.units == "paper" else 1.0
        return replace(self, strength=self.strength * unit, units="raw")

    @property
    def _distance(self) -> Distance:
        return DISTANCES[self.distance]()

    def prior_statistics(
        self, kernel: Kernel, moments: Moments, moment_origin: Array, subkernels: Subkernels | None
    ) -> PriorStatistics:
        """(27); (28) leaves the shapes to the rows."""
        assert subkernels is not None
        family = gaussian_of(kernel, NAME)
        here = kernel.estimate(moments, moment_origin)
        mass = namespace(moments.mass).sum(moments.mass, axis=1)
        return self._distance.pull(family, here, subkernels, self.strength, mass, moment_origin)

    def shares(
        self, kernel: Kernel, kernels: Kernels, subkernels: Subkernels | None
    ) -> Array | float:
        """(29)."""
        assert subkernels is not None
        xp = namespace(subkernels.posterior)
        posterior = subkernels.posterior
        if self.step != "next":
            assert subkernels.current is not None
            kernels = subkernels.current
        if self.step == "printed" and subkernels.previous is not None:
            subkernels = replace(subkernels, kernels=subkernels.previous)
        distance = self._distance.value(gaussian_of(kernel, NAME), kernels, subkernels)
        distance = self._with_categories(distance, kernel, kernels, subkernels)
        typical = xp.sum(posterior * distance, axis=1)[:, None]
        return self.strength * posterior * (typical - distance)

    def objective(self, kernel: Kernel, kernels: Kernels, subkernels: Subkernels | None) -> float:
        """(22), second term."""
        assert subkernels is not None
        return -self.strength * float(
            namespace(kernels.mean).sum(
                subkernels.posterior * self.exact(kernel, kernels, subkernels)
            )
        )

    def exact(self, kernel: Kernel, kernels: Kernels, subkernels: Subkernels) -> Array:
        """(23), beta_jk, (M, K), of numbers and categories."""
        distance = self._distance.exact(gaussian_of(kernel, NAME), kernels, subkernels)
        return self._with_categories(distance, kernel, kernels, subkernels)

    def _with_categories(
        self, distance: Array, kernel: Kernel, kernels: Kernels, subkernels: Subkernels
    ) -> Array:
        if not isinstance(kernel, Product):
            return distance
        assert isinstance(kernels, ProductKernels)
        of_categories = [
            self._distance.of_categories(kernel, kernels, own) for own in subkernels.kernels
        ]
        return self._distance.joined(distance, namespace(distance).stack(of_categories, axis=1))
