r"""Stepwise EM: a network that follows a stream of mini-batches.

Cappé & Moulines, "On-line expectation-maximization algorithm for latent data models", Journal of
the Royal Statistical Society B 71(3), 2009, (11)-(12); Liang & Klein, "Online EM for unsupervised
models", NAACL 2009.

.. math::

    s_t = (1 - \gamma_t)\, s_{t-1} + \gamma_t\, \bar s(X_t; \theta_{t-1}), \qquad \theta_t = \arg\max_\theta \ell(s_t; \theta)

with :math:`\bar s` the statistics of a mini-batch a row. The step is

.. math:: \gamma_t = \max\bigl((1 + N_t / n_t)^{-\alpha},\; 1 - 2^{-n_t / h}\bigr)

==================  ================  ==============================================================================
in the formula      here              meaning
==================  ================  ==============================================================================
:math:`n_t`         ``n``             weight of the rows of the mini-batch
:math:`N_t`         ``seen``          weight of all rows before it; equal batches give the :math:`t^{-\alpha}` of print
:math:`\alpha`      ``STEP_POWER``    0.7: between 1/2, which forgets its start soonest, and 1, which averages longest
:math:`h`           ``half_life``     rows after which half of what was seen is forgotten; none for a stream at rest
==================  ================  ==============================================================================

The kernels are those of the start. One that has lost its rows keeps its place; rows unlike any
before need a new `fit`.

Deviations from the print: the statistics of a kernel are kept as mass, mean and scatter about that
mean, which lose nothing where a kernel lies far from the origin for its width; the M-step is the
one of batch EM, floor and prior included.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..arrays import column_like, is_foreign_array, is_lazy, match_array
from ..data.door import TrainingData, complete_numbers
from ..data.labels import (
    class_codes,
    distinct_labels,
    given_weights,
    label_column,
    label_name,
    with_two_classes,
)
from ..data.scale import check_finite
from ..data.source import is_source
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Gaussian, Kernels, Moments, as_diag
from ..penalties import Conjugate, NoPenalty, Penalty
from ..records import replaced, saved
from ..rows import Frame, Rows, as_rows
from ..tables.columns import Columns
from .e_step import Totals
from .fit import MixtureSettings, MixtureTraining, is_learned
from .fitted import ClassDensities, FittedSharedKernel
from .network import VANISHED, Params, SharedKernel, sharing_table

STEP_POWER = 0.7
START_SWEEPS = 10
"""Sweeps of batch EM over the first mini-batch."""


@saved
class StreamState:
    """All that is kept of a stream: statistics a row, in the frame of its first mini-batch."""

    frame: Frame
    variance: np.ndarray
    """Of each feature in the frame, at first, (d,)."""
    mass: np.ndarray
    """Share of the rows by kernel and class, (M, K)."""
    mean: np.ndarray
    """(M, d)."""
    scatter: np.ndarray
    """About the means, flat, (M, S), or (1, S) in the tied family."""
    mixing: np.ndarray
    """(M, K)."""
    owners: np.ndarray
    """Class codes, (M,)."""
    class_weight: np.ndarray
    """Of the labeled rows that are remembered, (K,)."""
    seen: float
    """Weight of all rows."""
    objective: float
    """Log-likelihood a row of rows that were not yet learned from, as steps go."""
    n_steps: int


def check_settings(settings: MixtureSettings, auto: list[str]) -> None:
    """Refuse the settings that depend on all rows, such as those that are to be chosen."""
    refused = [*auto]
    if np.ndim(settings.sharing) or is_learned(settings.sharing):
        refused.append("sharing")
    if not refused and settings.overlap.strength != 0:
        refused.append("overlap")
    if refused:
        raise KernelpoolError(
            f"partial_fit takes a number or a name for {refused[0]}, which does not depend on all "
            "rows; set it, or use fit."
        )


# -- the network of a state ------------------------------------------------------------------------


class StreamNetwork:
    """A state with the network that it stands for."""

    def __init__(
        self, state: StreamState, settings: MixtureSettings, half_life: float | None = None
    ) -> None:
        self.state = state
        self.settings = settings
        self.half_life = half_life
        self.kernel: Gaussian = FAMILIES[settings.covariance_type](
            settings.covariance_floor * state.variance
        )
        n_kernels, n_classes = state.mass.shape
        self.sharing = np.asarray(sharing_table(state.owners, settings.sharing, n_classes))
        self.penalty: Penalty = (
            Conjugate(state.variance, n_kernels) if settings.kernel_prior else NoPenalty()
        )
        self.network = SharedKernel(self.kernel, self.sharing, self.penalty)

    @cached_property
    def params(self) -> Params:
        """The most likely network of the statistics."""
        state = self.state
        forgotten = np.inf if self.half_life is None else self.half_life / np.log(2)
        n = min(state.seen, forgotten)  # rows that the statistics stand for
        moments = Moments(n * state.mass, np.zeros_like(state.mean), n * state.scatter)
        prior = self.penalty.prior_statistics(self.kernel, moments, state.mean, None)
        kernels = self.kernel.estimate(moments, state.mean, prior)
        return Params(kernels, state.mixing, self.class_prior)

    @property
    def class_prior(self) -> np.ndarray:
        """(K,)."""
        if self.settings.class_prior is not None:
            return np.asarray(self.settings.class_prior, np.float64)
        return self.state.class_weight / self.state.class_weight.sum()

    def framed(self, rows: Rows) -> Rows:
        """Rows in the frame."""
        d = self.state.mean.shape[1]
        return rows.framed(
            self.state.frame, self.kernel.n_features(d) + sum(self.state.mass.shape) + 1
        )

    def _of(self, state: StreamState) -> "StreamNetwork":
        return StreamNetwork(state, self.settings, self.half_life)

    def holding(self, data: TrainingData) -> "StreamNetwork":
        """The same with the outliers of a mini-batch held where `fit` would hold them."""
        frame = self.state.frame
        scale = data.scale
        farthest = np.abs(scale.mean - frame.origin) + scale.reach * scale.frame.unit
        frame = replace(frame, reach=farthest / frame.unit)
        return self._of(replace(self.state, frame=frame))

    def step(self, rows: Rows) -> "StreamNetwork":
        """The network after one more mini-batch."""
        e_step_params = self.network.e_step_params(self.params, rows.eps)
        totals: Totals = match_array(
            self.network.e_step.total(self.framed(rows), e_step_params), like=np.zeros(0)
        )
        n = float(totals.weight)
        if n == 0:
            return self
        step = step_size(n, self.state.seen, self.half_life)
        mass = np.asarray(self.network.by_class(totals.moments.mass, e_step_params))
        stepped = self._averaged(totals, mass, e_step_params.natural_params, step)
        log_likelihood = float(totals.log_likelihood) / n - self.state.frame.log_volume
        keep = 1.0 if self.half_life is None else 2 ** (-n / self.half_life)
        labeled = np.asarray(totals.moments.mass[:, :-1].sum(axis=0))
        state = replace(
            stepped,
            frame=replace(self.state.frame, reach=None),
            mixing=self.penalty.mixing(
                self.kernel, stepped.mass, stepped.mixing, self.params.kernels, None
            ),
            class_weight=keep * self.state.class_weight + labeled,
            seen=self.state.seen + n,
            objective=(1 - step) * self.state.objective + step * log_likelihood,
            n_steps=self.state.n_steps + 1,
        )
        return self._of(state)

    def _averaged(
        self, totals: Totals, mass: np.ndarray, natural_params: Any, step: float
    ) -> StreamState:
        """(1 - gamma) of what was, and gamma of a mini-batch with this mass (M, K); scatters about
        the new means.
        """
        n = float(totals.weight)
        moments = cast(Moments, totals.moments)
        of_kernel = mass.sum(axis=1)
        state = self.state
        kernel = self.kernel
        has_rows = of_kernel > VANISHED * n
        divisor = np.where(has_rows, of_kernel, 1)[:, None]
        shift = np.where(has_rows[:, None], moments.first / divisor, 0.0)
        scatter = np.asarray(moments.second - kernel.squares(of_kernel, shift)) / n
        origin = np.asarray(natural_params.moment_origin)
        mean = np.where(has_rows[:, None], origin + shift, natural_params.kernels.mean)
        share = state.mass.sum(axis=1)
        # a kernel without rows keeps a trace, and with it its place
        keep = np.maximum(1 - step, np.minimum(VANISHED / np.maximum(share, VANISHED), 1))
        before = keep * share
        now = step * of_kernel / n
        both = np.maximum(before + now, 1e-300)
        move = mean - state.mean
        between = kernel.squares(before * now / both, move)
        is_pooled = len(state.scatter) < len(keep)
        return replace(
            state,
            mass=keep[:, None] * state.mass + step * mass / n,
            mean=state.mean + (now / both)[:, None] * move,
            scatter=(1 - step if is_pooled else keep[:, None]) * state.scatter
            + step * scatter
            + between,
        )

    # -- what has been learned ---------------------------------------------------------------------

    def fitted(self, classes: np.ndarray, columns: Columns) -> FittedSharedKernel:
        """The network in the units of the data."""
        state = self.state
        settings = self.settings
        n_kernels = len(self.state.mean)
        data_type = settings.type_in_data_units
        kernels = self.params.kernels
        if data_type != settings.covariance_type:
            kernels = as_diag(kernels)
        kernel = FAMILIES[data_type](self.kernel.floor)
        kernels = kernel.out_of(kernels, state.frame)
        return FittedSharedKernel.of(
            ClassDensities.of(kernel, kernels, state.mixing, self.class_prior, columns.levels),
            columns,
            classes,
            owners=classes[state.owners],
            sharing=self.sharing,
            training_type=settings.covariance_type,
            n_kernels_at_start=settings.n_total or n_kernels,
            sharing_degree=float(settings.sharing),
            kernel_prior=settings.kernel_prior,
            objective=state.objective,
            history=np.array([state.objective]),
            n_iter=state.n_steps,
            converged=False,
            weight_seen=state.seen,
            stream=state,
        )


def step_size(n: float, seen: float, half_life: float | None) -> float:
    """gamma for a mini-batch of weight `n` after rows of weight `seen`."""
    forgotten = 0.0 if half_life is None else 1 - 2 ** (-n / half_life)
    return float(max((1 + seen / n) ** -STEP_POWER, forgotten))


# -- mini-batches ----------------------------------------------------------------------------------


def stream_classes(known: np.ndarray | None, given: Any) -> np.ndarray:
    """All classes of a stream, sorted: those of its first call."""
    if known is None:
        if given is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return with_two_classes(distinct_labels(np.asarray(given), None))
    if given is not None and not np.array_equal(np.unique(np.asarray(given)), known):
        raise ValueError(
            f"classes={np.asarray(given).tolist()} is not the same as on the first call: "
            f"{known.tolist()}."
        )
    return known


def mini_batch(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: np.ndarray
) -> tuple[Rows, float, Columns]:
    """Rows of one call to `partial_fit`, their weight and columns."""
    if is_lazy(X) or is_source(X, y):
        raise KernelpoolError(
            f"partial_fit takes a mini-batch that is in memory; got {type(X).__name__}. Call it "
            "for each part, or use fit."
        )
    columns, X = complete_numbers(estimator, X, "partial_fit")
    codes = class_codes(label_column(y, X.shape[0]), classes, estimator.unlabeled)
    weight = given_weights(X, sample_weight)
    rows = as_rows(X, column_like(X, codes), column_like(X, weight), n_jobs=estimator.n_jobs)
    if is_foreign_array(X):
        check_finite(rows)
    return rows, float(weight.sum()), columns


# -- the beginning ---------------------------------------------------------------------------------


def begin(data: TrainingData, settings: MixtureSettings, half_life: float | None) -> StreamNetwork:
    """A stream from its first mini-batch: a few sweeps of batch EM over it."""
    if not data.class_weight.all() and (settings.sharing == 0 or not data.class_weight.any()):
        raise KernelpoolError(
            "The first mini-batch has no rows of class "
            f"{label_name(data.classes[data.class_weight == 0][0])}, which has no kernels of other "
            "classes. Begin with rows of all classes."
        )
    training = MixtureTraining(data, replace(settings, max_iter=START_SWEEPS, empty_kernels="drop"))
    fitted, *_ = training.fitted(training.best())
    weight = data.class_weight + data.unlabeled_weight * fitted.network.class_prior
    fitted = replaced(fitted, "class_prior", weight / weight.sum())
    kernels = training.in_frame(fitted.network.means, fitted.network.covariances)
    state = replace(
        resume(fitted, kernels, training.frame, data.weight, settings, half_life).state,
        variance=training.variance,
        class_weight=data.class_weight,
        n_steps=1,
    )
    return StreamNetwork(state, settings, half_life)


def resume(
    fitted: FittedSharedKernel,
    kernels: Kernels,
    frame: Frame,
    seen: float,
    settings: MixtureSettings,
    half_life: float | None,
) -> StreamNetwork:
    """A stream that goes on from a fitted network, whose kernels are given in the frame."""
    plain = FAMILIES[settings.covariance_type](np.zeros(kernels.mean.shape[1]))
    mean = np.asarray(kernels.mean)
    mass = fitted.network.mixing * fitted.network.class_prior
    share = mass.sum(axis=1)
    spread = np.asarray(plain.variances(kernels)) + (mean - share @ mean) ** 2
    flat = np.asarray(plain.flat(kernels.covariance))
    state = StreamState(
        frame=Frame(np.asarray(frame.origin), np.asarray(frame.unit)),
        variance=np.asarray(share @ spread),
        mass=mass,
        mean=mean,
        scatter=np.asarray(plain.pool_moments(share[:, None] * flat)),
        mixing=fitted.network.mixing,
        owners=np.searchsorted(fitted.classes, fitted.owners),
        class_weight=seen * fitted.network.class_prior,
        seen=seen,
        objective=fitted.objective or 0.0,
        n_steps=0,
    )
    return StreamNetwork(state, settings, half_life)


def continued_stream(
    before: FittedSharedKernel,
    settings: MixtureSettings,
    half_life: float | None,
    batch_weight: float,
) -> StreamNetwork:
    """A stream that goes on from a fitted network, of `partial_fit` or `fit`; one that was made of
    known parameters counts as a mini-batch.
    """
    if isinstance(before.stream, StreamState):
        return StreamNetwork(before.stream, settings, half_life)
    kernel, kernels, frame = before.as_trained()
    standardize = before.training_type != before.network.covariance_type
    settings = replace(settings, covariance_type=kernel.name, standardize=standardize)
    seen = batch_weight if before.weight_seen is None else before.weight_seen
    return resume(before, kernels, frame, seen, settings, half_life)
