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

Kernels come and go. One whose share has fallen below a hundredth of an average kernel's is dropped.
Where rows of a class come that its density does not know, a kernel is born at their mean: they are
looked for among a few rows of every mini-batch, and count as not known below the running mean of
log p(x|C) less five deviations.

Deviations from the print: the statistics of a kernel are kept as mass, mean and scatter about that
mean, which lose nothing where a kernel lies far from the origin for its width; the M-step is the
one of batch EM, floor and prior included.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..arrays import column_like, is_foreign_array, is_lazy, is_source, match_array, to_numpy
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
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Gaussian, Kernels, Moments
from ..penalties import Conjugate, NoPenalty, Penalty
from ..records import replaced
from ..rows import ArrayRows, Frame, Rows, as_rows
from ..tables.columns import Columns
from .fit import MixtureTraining, Settings, is_auto, is_learned
from .fitted import ClassDensities, FittedSharedKernel
from .network import Params, SharedKernel, Totals, sharing_table

STEP_POWER = 0.7
START_SWEEPS = 10
"""Sweeps of batch EM over the first mini-batch."""

DEAD = 0.01
"""A kernel with less than this part of an average kernel's mass is dropped."""

N_PROBES = 500
"""Rows of a mini-batch among which those that no density knows are looked for."""

FAR = 5.0
"""Deviations of log p(x|C) below its mean from which on a row is not known."""

FEWEST_NEW, NEW_SHARE = 5, 0.02
"""So many rows, and such a part of those of their class, make a kernel."""

MOST = 2
"""Kernels that a stream may come to, for each one it began with."""


@dataclass(frozen=True)
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
    level: np.ndarray
    """Mean and variance of log p(x|C) among rows of each class, (2, K); NaN before any."""
    seen: float
    """Weight of all rows."""
    objective: float
    """Log-likelihood a row of rows that were not yet learned from, as steps go."""
    n_steps: int
    most_kernels: int


def check_settings(settings: Settings) -> None:
    """Refuse the settings that depend on all rows."""
    refused = [name for name, value in vars(settings).items() if is_auto(value)]
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

Birth = tuple[np.ndarray, int, float]
"""Of a kernel: its center, its class and its share of the rows."""


class StreamNetwork:
    """A state with the network that it stands for."""

    def __init__(
        self, state: StreamState, settings: Settings, half_life: float | None = None
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
        return np.asarray(self.state.class_weight / self.state.class_weight.sum())

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
        deviation = np.sqrt(data.variance)
        farthest = np.abs(data.mean - frame.origin) + data.reach * np.where(deviation, deviation, 1)
        frame = replace(frame, reach=farthest / frame.unit)
        return self._of(replace(self.state, frame=frame))

    def step(self, rows: Rows, probes: ArrayRows) -> "StreamNetwork":
        """What a mini-batch makes of it; `probes` are some of its rows."""
        e_step_params = self.network.e_step_params(self.params, rows.eps)
        totals: Totals = match_array(
            self.network.totals(self.framed(rows), e_step_params), like=np.zeros(0)
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
        level, born = self._probed(probes, step)
        state = replace(
            stepped,
            frame=replace(self.state.frame, reach=None),
            level=level,
            mixing=_mixing(stepped.mass, stepped.mixing),
            class_weight=keep * self.state.class_weight + labeled,
            seen=self.state.seen + n,
            objective=(1 - step) * self.state.objective + step * log_likelihood,
            n_steps=self.state.n_steps + 1,
        )
        return self._of(state)._turned_over(born)

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
        some = of_kernel > 1e-12 * n
        shift = np.where(some[:, None], moments.first / np.where(some, of_kernel, 1)[:, None], 0.0)
        scatter = np.asarray(moments.second - kernel.squares(of_kernel, shift)) / n
        origin = np.asarray(kernel.moment_origin(natural_params))
        mean = np.where(some[:, None], origin + shift, natural_params.kernels.mean)
        before = (1 - step) * state.mass.sum(axis=1)
        now = step * of_kernel / n
        both = np.maximum(before + now, 1e-300)
        away = mean - state.mean
        between = kernel.squares(before * now / both, away)
        return replace(
            state,
            mass=(1 - step) * state.mass + step * mass / n,
            mean=state.mean + (now / both)[:, None] * away,
            scatter=(1 - step) * state.scatter + step * scatter + between,
        )

    # -- kernels that come and go ------------------------------------------------------------------

    def _turned_over(self, born: list[Birth]) -> "StreamNetwork":
        """With new kernels, of the mean shape of all, and without those that have lost their rows;
        a class keeps its largest.
        """
        state = self.state
        kernel = self.kernel
        n_kernels = len(self.state.mean)
        mass = state.mass
        mean = state.mean
        scatter = state.scatter
        mixing = state.mixing
        owners = state.owners
        is_pooled = len(kernel.pool_moments(np.ones((2, 1)))) == 1
        if born:
            centers, codes, shares = map(np.array, zip(*born, strict=True))
            at = np.append(np.arange(n_kernels), np.zeros_like(codes))
            to = dict(enumerate(centers, n_kernels))
            moved = kernel.move(kernel.take(self.params.kernels, at), to)
            new_mass = shares[:, None] * np.eye(mass.shape[1])[codes]
            flat = np.asarray(kernel.flat(moved.covariance))[-len(born) :]
            new = np.asarray(kernel.pool_moments(shares[:, None] * flat))
            scatter = scatter + new if is_pooled else np.append(scatter, new, axis=0)
            mean = np.append(mean, centers, axis=0)
            owners = np.append(owners, codes)
            mass = np.append(mass, new_mass, axis=0)
            mixing = _mixing(mass, np.append(mixing, 0 * new_mass, axis=0))
        share = mass.sum(axis=1)
        alive = share >= DEAD * share.mean()
        alive[mixing.argmax(axis=0)] = True
        if alive.all() and not born:
            return self
        kept = {
            "mass": mass[alive],
            "mean": mean[alive],
            "owners": owners[alive],
            "mixing": mixing[alive] / mixing[alive].sum(axis=0),
            "scatter": scatter * (share[alive].sum() / share.sum())
            if is_pooled
            else scatter[alive],
        }
        return self._of(replace(state, **kept))

    def _probed(self, probes: ArrayRows, step: float) -> tuple[np.ndarray, list[Birth]]:
        """The level of the rows of each class now, and the kernels to add."""
        framed = self.framed(probes)
        codes = np.asarray(probes.y)
        natural_params = self.kernel.natural_params(self.params.kernels, probes.eps)
        log_density = np.asarray(
            framed.each(self.network.log_density, natural_params, self.state.mixing)
        )
        level = self.state.level.copy()
        born: list[Birth] = []
        for k in np.unique(codes[codes >= 0]):
            mine = codes == k
            score, (mean, variance) = log_density[mine, k], level[:, k]
            new = score < mean - FAR * np.sqrt(variance)  # none is before there is a level
            room = self.state.most_kernels - len(self.state.mean) - len(born)
            if new.sum() >= max(FEWEST_NEW, NEW_SHARE * len(score)) and room > 0:
                center = np.asarray(self.state.frame.inside(probes.x[mine][new]).mean(axis=0))
                born.append((center, int(k), step * new.sum() / len(codes)))
            elif not new.all():  # the level is that of rows that are known
                weight = max(step, 0.05)
                now = np.array([score[~new].mean(), score[~new].var()])
                level[:, k] = now if np.isnan(mean) else (1 - weight) * level[:, k] + weight * now
        return level, born

    # -- what has been learned ---------------------------------------------------------------------

    def fitted(self, classes: np.ndarray, columns: Columns) -> FittedSharedKernel:
        """The network in the units of the data."""
        state = self.state
        settings = self.settings
        n_kernels = len(self.state.mean)
        kernels = self.kernel.out_of(
            self.params.kernels, state.frame, stretched=settings.is_stretched
        )
        arrays = kernels.mean, kernels.covariance, state.mixing, self.class_prior
        return FittedSharedKernel.of(
            ClassDensities(settings.type_in_data_units, *arrays, None, columns.levels),
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


def _mixing(mass: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Shares of mass, (M, K); a class without any keeps the column it had."""
    of_class = mass.sum(axis=0)
    return np.where(of_class > 0, mass / np.where(of_class > 0, of_class, 1.0), before)


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
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    classes: np.ndarray,
    unlabeled: Any,
    n_jobs: int | None,
) -> tuple[Rows, ArrayRows, float, Columns]:
    """Rows of one call to `partial_fit`, some of them in NumPy, their weight and columns."""
    if is_lazy(X) or is_source(X, y):
        raise KernelpoolError(
            f"partial_fit takes a mini-batch that is in memory; got {type(X).__name__}. Call it "
            "for each part, or use fit."
        )
    columns, X = complete_numbers(estimator, X, "partial_fit")
    labels = label_column(y, X.shape[0])
    codes = class_codes(labels, classes, unlabeled)
    weight = None if sample_weight is None else given_weights(X, sample_weight)
    rows = as_rows(
        X, column_like(X, codes), None if weight is None else column_like(X, weight), n_jobs=n_jobs
    )
    if is_foreign_array(X):
        check_finite(rows)
    every = max(1, X.shape[0] // N_PROBES)
    probes = ArrayRows(np.asarray(to_numpy(X[::every, ...]), np.float64), codes[::every], n_jobs=1)
    total = float(len(codes) if weight is None else weight.sum())
    return rows, probes, total, columns


# -- the beginning ---------------------------------------------------------------------------------


def begin(
    data: TrainingData, settings: Settings, half_life: float | None, probes: ArrayRows
) -> StreamNetwork:
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
        most_kernels=MOST * len(training.owners),
    )
    level, _ = StreamNetwork(state, settings, half_life)._probed(probes, 1.0)
    return StreamNetwork(replace(state, level=level), settings, half_life)


def resume(
    fitted: FittedSharedKernel,
    kernels: Kernels,
    frame: Frame,
    seen: float,
    settings: Settings,
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
        level=np.full((2, mass.shape[1]), np.nan),
        seen=seen,
        objective=fitted.objective or 0.0,
        n_steps=0,
        most_kernels=MOST * len(mean),
    )
    return StreamNetwork(state, settings, half_life)
