"""Parzen networks from rows: a kernel at every row, and the radius.

Kraaijveld & Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991. Rows
are complete. The radius is chosen in `kernelpool.parzen.radius`, and few of the kernels in
`kernelpool.parzen.reduce`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.door import TrainingData
from ..data.labels import Labeled, labeled
from .network import GaussianProfile, ParzenNetwork, Profile, Space, as_profile
from .radius import (
    ParzenRows,
    Trial,
    candidate_radii,
    trial_at,
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
    space = space_of(data, n_numbers, settings.standardize)
    settings = in_space(settings, space)
    rows = rows_in(space, data)
    query = None if validation is None else validation_in(space, validation, rows.n_classes)
    trial = full_network(rows, settings, rng, query)
    return network_of(trial, data, space, settings)


def full_network(
    rows: ParzenRows,
    settings: ParzenSettings,
    rng: np.random.RandomState,
    validation: ParzenRows | None = None,
) -> Trial:
    """A kernel at every row; the radius as given, or the best on rows left out or on validation
    rows.
    """
    trial = trial_at(rows, np.arange(len(rows)), settings.profile, settings.class_prior)
    if not isinstance(settings.radius, str):
        return trial.at_radius(settings.radius)
    distinct = rows.merged()  # a row of weight two is the row twice
    chosen = trial_at(distinct, np.arange(len(distinct)), settings.profile, settings.class_prior)
    query = validation or distinct
    if settings.is_conditional:
        chosen = with_least_loss(chosen, query, rng)
    else:
        chosen = with_fewest_errors(chosen, settings.radii(distinct), query, rng)
    params = replace(trial.params, radius=chosen.params.radius)
    return replace(chosen, index=trial.index, params=params)


# -- the space in which distances are taken --------------------------------------------------------


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


def in_space(settings: Any, space: Space) -> Any:
    """The settings, the radius in units of the space."""
    radius = settings.radius
    return settings if isinstance(radius, str) else replace(settings, radius=radius / space.unit)


def rows_in(space: Space, data: TrainingData) -> ParzenRows:
    """Training rows of positive weight."""
    rows: Any = data.rows
    x, codes, weight = labeled(rows)
    positive = np.arange(len(rows.x)) if rows.weight is None else np.flatnonzero(rows.weight)
    return ParzenRows.of((space.inside(x), codes, weight), positive, len(data.classes))


def validation_in(space: Space, rows: Labeled, n_classes: int) -> ParzenRows:
    """Rows that never become kernels."""
    z, codes, weight = rows
    nowhere = np.full(len(z), -1)
    return ParzenRows(space.inside(z), codes, weight, nowhere, nowhere, n_classes)


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
    chosen = isinstance(settings.radius, str) and trial.radii is not None
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
        radii=trial.radii * space.unit if chosen else None,
        radius_errors=trial.errors if chosen else None,
        radius_losses=trial.losses,
    )
