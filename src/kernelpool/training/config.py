"""Settings of a shared-kernel network as frozen records; the estimators' parameters are turned into these.

Four of them may be "auto" until `kernelpool.training.search` has chosen: the number of kernels, their family, their sharing
and the strength of the overlap penalty.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernels import FAMILIES
from ..penalties import DISTANCES, Overlap

AUTO, LEARNED = "auto", "learned"


def is_auto(value: Any) -> bool:
    """Whether a setting is to be chosen by the data."""
    return isinstance(value, str) and value == AUTO


def is_learned(sharing: Any) -> bool:
    """Whether the degrees of sharing are to be learned."""
    return isinstance(sharing, str) and sharing == LEARNED


@dataclass(frozen=True)
class KernelConfig:
    """What kernels are."""

    covariance_type: str = "spherical"
    floor: float = 1e-6
    """Smallest variance along a feature, as a part of the variance of that feature in the data."""
    prior: str | None = None
    """"conjugate", "auto" or None."""
    standardize: bool = False
    """Whether a family that depends on the units of single features sees them with variance one."""

    @property
    def is_stretched(self) -> bool:
        """Whether kernels are of another family in the units of the data than in those of training."""
        return self.standardize and FAMILIES[self.covariance_type].scaled is not None

    @property
    def type_in_data_units(self) -> str:
        """The family of the kernels in the units of the data."""
        return (
            FAMILIES[self.covariance_type].scaled or ""
            if self.is_stretched
            else self.covariance_type
        )


@dataclass(frozen=True)
class PenaltyConfig:
    """The overlap penalty."""

    strength: Any = 0.0
    units: str = "paper"
    distance: str = "bhattacharyya"
    step: str = "next"

    def in_raw_units(self, weight: float, sharing: np.ndarray) -> Overlap:
        """The penalty for rows of this total weight: the paper's tables count in N / (K M)."""
        n_kernels, n_classes = sharing.shape
        unit = weight / (n_kernels * n_classes) if self.units == "paper" else 1.0
        return Overlap(self.strength * unit, DISTANCES[self.distance](), self.step)


@dataclass(frozen=True)
class PreviousFit:
    """The network that a warm start goes on from, in the units of the data."""

    means: np.ndarray
    covariances: np.ndarray
    mixing: np.ndarray
    owners: np.ndarray
    """Labels, (M,)."""
    classes: np.ndarray
    n_kernels: int
    """As asked for then; kernels that starved are no longer among the means."""
    covariance_type: str
    kernel_prior: str | None
    overlap_penalty: float
    sharing_degree: float
    selection: dict[str, np.ndarray] | None = None
    """What was tried, if anything was "auto"."""
    probability: np.ndarray | None = None
    """Of words, (M, W)."""


@dataclass(frozen=True)
class StartConfig:
    """Where training starts."""

    n_kernels: int | list[int] | str | None = None
    owners: Any = None
    """Labels, (M,), as given."""
    init: str = "kmeans"
    n_init: int = 1
    means: Any = None
    covariances: Any = None
    mixing: Any = None
    probability: np.ndarray | None = None
    """Of words, (M, W)."""
    previous: PreviousFit | None = None

    @property
    def n_total(self) -> int | None:
        """How many kernels in all were asked for."""
        return None if self.n_kernels is None else int(np.sum(self.n_kernels))  # type: ignore[arg-type]


@dataclass(frozen=True)
class FitConfig:
    """How long training goes on, and how."""

    max_iter: int = 200
    tol: float = 1e-5
    accelerated: bool = True
    starving: str = "move"
    seed: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class SharedKernelConfig:
    """All settings of one network."""

    kernel: KernelConfig = field(default_factory=KernelConfig)
    start: StartConfig = field(default_factory=StartConfig)
    sharing: Any = 1.0
    """A degree, a table (M, K), "learned" or "auto"."""
    penalty: PenaltyConfig = field(default_factory=PenaltyConfig)
    fit: FitConfig = field(default_factory=FitConfig)
    class_prior: Any = None
    """As given, (K,); None takes the shares among the labeled rows."""
    split_anchor: float | None = None
    """Rows' worth of belief that holds each kernel of one class near the shared one it was split from; None does not split."""

    @property
    def has_auto(self) -> bool:
        """Whether anything is still to be chosen."""
        given = (
            self.start.n_kernels,
            self.kernel.covariance_type,
            self.kernel.prior,
            self.sharing,
            self.penalty.strength,
        )
        return any(map(is_auto, given))
