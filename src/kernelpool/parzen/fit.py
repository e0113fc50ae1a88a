"""Parzen networks from rows: a kernel at every row, and the radius.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991. Rows
are complete. The radius is chosen in `kernelpool.parzen.radius`, and few of the kernels in
`kernelpool.parzen.reduce`.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..data.door import TrainingData
from ..data.labels import Labeled, labeled
from .network import GaussianProfile, ParzenNetwork, Profile, Space, as_profile
from .radius import (
    ParzenRows,
    Trial,
    candidate_radii,
    trial_of,
    with_fewest_errors,
    with_least_loss,
)


@dataclass(frozen=True)
class ParzenSettings:
    """Parameters of a `ParzenClassifier`."""

    kernel: str | Profile
    radius: float | str
    standardize: bool
    class_prior: np.ndarray | None = None
    """(K,); None: every vote counts the same."""

    @property
    def profile(self) -> Profile:
        """Shape of the kernels."""
        return as_profile(self.kernel)

    @property
    def is_conditional(self) -> bool:
        """Whether the radius is the one with the least log-loss."""
        return self.radius == "conditional" and isinstance(self.profile, GaussianProfile)

    def radii(self, rows: ParzenRows) -> np.ndarray:
        """The radius as given, or candidates, falling."""
        if isinstance(self.radius, str):
            return candidate_radii(self.profile, rows)
        return np.array([self.radius])


S = TypeVar("S", bound=ParzenSettings)


def fit_parzen(
    data: TrainingData,
    n_numbers: int,
    settings: ParzenSettings,
    rng: np.random.RandomState,
    validation: Labeled | None = None,
) -> ParzenNetwork:
    """A kernel at every row; `validation` rows choose the radius.

    The first `n_numbers` columns are numbers, the others indicators.
    """
    space, settings, rows, query = in_space(data, n_numbers, settings, validation)
    return network_of(full_network(rows, settings, rng, query), data, space, settings)


def in_space(
    data: TrainingData, n_numbers: int, settings: S, validation: Labeled | None
) -> tuple[Space, S, ParzenRows, ParzenRows | None]:
    """The space in which distances are taken, and there the settings, the training rows of positive
    weight, and the validation rows.
    """
    space = space_of(data, n_numbers, settings.standardize)
    if not isinstance(settings.radius, str):
        settings = replace(settings, radius=settings.radius / space.unit)
    training: Any = data.rows
    x, codes, weight = labeled(training)
    index = np.arange(len(training.x))
    index = index if training.weight is None else np.flatnonzero(training.weight)
    rows = ParzenRows.of((space.inside(x), codes, weight), index, len(data.classes))
    if validation is None:
        return space, settings, rows, None
    x, codes, weight = validation
    nowhere = np.full(len(x), -1)  # they never become kernels
    query = ParzenRows(space.inside(x), codes, weight, nowhere, nowhere, len(data.classes))
    return space, settings, rows, query


def full_network(
    rows: ParzenRows,
    settings: ParzenSettings,
    rng: np.random.RandomState,
    validation: ParzenRows | None = None,
) -> Trial:
    """A kernel at every row; the radius as given, or the best on rows left out or on validation
    rows.
    """
    trial = trial_of(rows, settings.profile, settings.class_prior)
    if not isinstance(settings.radius, str):
        return trial.at_radius(settings.radius)
    distinct = rows.merged()  # a row of weight two is the row twice
    chosen = trial_of(distinct, settings.profile, settings.class_prior)
    query = validation or distinct
    if settings.is_conditional:
        chosen = with_least_loss(chosen, query, rng)
    else:
        chosen = with_fewest_errors(chosen, settings.radii(distinct), query, rng)
    params = replace(trial.params, radius=chosen.params.radius)
    return replace(chosen, index=trial.index, params=params)


# -- units of the data -----------------------------------------------------------------------------


def space_of(data: TrainingData, n_numbers: int, standardize: bool) -> Space:
    """Features of variance one, or in one common unit, a power of two: distances stay distances."""
    variance = data.scale.variance
    scale = np.ones_like(variance)
    unit = 1.0
    if standardize:
        is_number = np.arange(len(variance)) < n_numbers
        scale = np.sqrt(np.where((variance > 0) & is_number, variance, 1.0))
    elif variance.any():
        unit = float(2.0 ** np.round(0.5 * np.log2(variance.mean())))
    return Space(location=data.scale.mean, scale=scale, unit=unit)


def network_of(
    trial: Trial, data: TrainingData, space: Space, settings: ParzenSettings
) -> ParzenNetwork:
    """The network in the units of the data."""
    params = trial.params
    x = np.asarray(data.rows.x, np.float64)  # type: ignore[attr-defined]
    prior = settings.class_prior
    if prior is None:
        votes = np.bincount(params.codes, params.weight, minlength=len(data.classes))
        prior = votes / votes.sum()
    if not isinstance(settings.radius, str):
        trial = replace(trial, radii=None, errors=None)
    return ParzenNetwork(
        space=space,
        kernel=settings.kernel,
        kernels=x[trial.index],
        kernel_classes=data.classes[params.codes],
        kernel_weights=params.weight,
        kept_indices=trial.index,
        offsets=params.offsets,
        log_scale=params.log_scale,
        radius=params.radius * space.unit,
        temperature=trial.temperature,
        class_prior=prior,
        fitted_prior=prior,
        radii=None if trial.radii is None else trial.radii * space.unit,
        radius_errors=trial.errors,
        radius_losses=trial.losses,
    )
