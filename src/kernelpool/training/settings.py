"""Settings of one shared-kernel network: the estimator's parameters as one frozen record."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import KernelpoolError
from ..kernels import FAMILIES
from ..penalties import Overlap
from ..starts import Start

AUTO, LEARNED = "auto", "learned"


def is_auto(value: Any) -> bool:
    """Whether a setting is to be chosen on held-out rows."""
    return isinstance(value, str) and value == AUTO


def is_learned(sharing: Any) -> bool:
    """Whether the degrees of sharing are to be learned."""
    return isinstance(sharing, str) and sharing == LEARNED


@dataclass(frozen=True)
class Training:
    """How a `SharedKernelClassifier` is trained, where the defaults of a name do not do.

    Parameters
    ----------
    method : {"conditional", "em"}, default="conditional"
        As the parameter `training` of `SharedKernelClassifier`.
    generative_weight : float or "auto", default=0.0
        Share of the likelihood in the objective of conditional training (Lasserre, Bishop & Minka
        2006): 0 is the conditional likelihood alone, 1 the likelihood. "auto" takes the one of 0,
        0.01 and 0.1 with the least loss on held-out rows.
    n_folds : int, default=4
        Conditional networks, each stopped on one fold; their probabilities are averaged.
    acceleration : {"squarem"} or None, default="squarem"
        Extrapolate EM, keeping only steps that do not lower the objective. None is plain EM, as in
        the papers.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier, Training
    >>> plain = SharedKernelClassifier.prbf(8, training=Training("em", acceleration=None))
    """

    method: str = "conditional"
    generative_weight: float | str = 0.0
    n_folds: int = 4
    acceleration: str | None = "squarem"

    def __post_init__(self) -> None:
        allowed = {"method": ("conditional", "em"), "acceleration": ("squarem", None)}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise KernelpoolError(
                    f"{name} of Training must be one of {list(values)}; got {getattr(self, name)!r}."
                )
        if not self.n_folds >= 2:
            raise KernelpoolError(f"n_folds of Training must be at least 2; got {self.n_folds!r}.")
        weight = self.generative_weight
        if not is_auto(weight) and (isinstance(weight, str) or not 0 <= weight <= 1):
            raise KernelpoolError(
                f"generative_weight of Training must lie in [0, 1], or be 'auto'; got {weight!r}."
            )


@dataclass(frozen=True)
class Settings:
    """All settings of one network; see the parameters of `SharedKernelClassifier`."""

    n_kernels: Any = None
    covariance_type: str = "full"
    standardize: bool = False
    sharing: Any = 1.0
    """A degree, a table (M, K), "learned" or "auto"."""
    overlap: Any = field(default_factory=lambda: Overlap(0.0))
    """An `Overlap`, or "auto"."""
    kernel_prior: str | None = None
    covariance_floor: float = 1e-6
    class_prior: Any = None
    start: Start = field(default_factory=Start)
    probabilities: np.ndarray | None = None
    """Of categories, (M, W), beside the means and covariances of `start`."""
    training: Training = field(default_factory=Training)
    empty_kernels: str = "move"
    max_iter: int = 200
    tol: float = 1e-5
    seed: int = 0
    n_jobs: int | None = None

    @property
    def has_auto(self) -> bool:
        """Whether anything is still to be chosen."""
        given = self.n_kernels, self.covariance_type, self.kernel_prior, self.sharing, self.overlap
        return any(map(is_auto, given))

    @property
    def is_stretched(self) -> bool:
        """Whether kernels are of another family in the units of the data than in those of training."""
        return self.standardize and FAMILIES[self.covariance_type].scaled is not None

    @property
    def type_in_data_units(self) -> str:
        """The family of the kernels in the units of the data."""
        scaled = FAMILIES[self.covariance_type].scaled
        return scaled if self.standardize and scaled is not None else self.covariance_type

    @property
    def n_total(self) -> int | None:
        """How many kernels in all were asked for."""
        return None if self.n_kernels is None else int(np.sum(self.n_kernels))
