r"""Fitted mixtures: densities of classes in the units of the data, and what follows from them.

.. math::

    p(x \mid C_k) = \sum_j \pi_{jk}\, p(x \mid j), \qquad
    P(j \mid x) \propto \sum_k P(C_k)\, \pi_{jk}\, p(x \mid j)

Cells that are missing are integrated out. Several mixtures are averaged, their densities (Titsias &
Likas 2001, (38)) or, of those that are trained to discriminate, their class probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import logsumexp, namespace, safe_log
from ..base.classifier import RowFunction, log_softmax, prior_shift
from ..data.scale import feature_scale
from ..kernels import FAMILIES, Kernels, NaturalParams, as_spherical, family_for
from ..penalties import Overlap
from ..penalties.penalty import Subkernels
from ..records import nested, saved, unsaved
from ..rows import Block, Frame, Rows, RowsInMemory, as_rows
from ..softmax import log_weighted_sums, shares_of
from ..tables.columns import Columns
from .network import Params, SharedKernel
from .start import Start

CLOSED = 1e-8
"""Sharing at or below this is none."""

Member = tuple[SharedKernel, NaturalParams]
"""A network and its kernels in the frame of some rows."""


def frame_of(
    name: str,
    mean: np.ndarray,
    variance: np.ndarray,
    levels: tuple[int, ...] | None = None,
    standardize: bool = False,
) -> tuple[Frame, np.ndarray]:
    """The frame that suits a family, and the variance of each feature in it (that of a constant
    feature is one).

    Families that are closed under scaling features one by one get a unit for each; the spherical
    one a common unit, unless features are to be standardized. Codes of categories stay as they are.
    """
    numbers = np.array(levels or [0] * len(mean)) == 0
    unit = np.ones(len(mean))
    unit[numbers] = feature_scale(variance[numbers], FAMILIES[name].equivariant or standardize)
    in_frame = np.where(numbers & (variance > 0), variance / unit**2, 1.0)
    return Frame(np.where(numbers, mean, 0.0), unit), in_frame


@saved
class ClassDensities:
    """Class densities in the units of the data.

    What predictions need of the kernels is computed once; it is neither stored nor pickled.
    """

    covariance_type: str
    """Of `covariances`: spherical kernels of standardized features are diagonal in the units of the
    data.
    """
    means: np.ndarray
    """(M, d)."""
    covariances: np.ndarray
    mixing: np.ndarray
    """(M, K)."""
    class_prior: np.ndarray
    """(K,)."""
    probabilities: np.ndarray | None
    """Of categories, (M, W); None where there are none."""
    levels: tuple[int, ...]
    """`Columns.levels`: the number of codes of each column, 0 for numbers."""

    @classmethod
    def of(
        cls,
        kernel: Any,
        kernels: Any,
        mixing: np.ndarray,
        class_prior: np.ndarray,
        levels: tuple[int, ...],
    ) -> "ClassDensities":
        """Kernels of a family, in the units of the data."""
        means, covariances = kernel.to_arrays(kernels)
        probabilities = kernels.probability if any(levels) else None
        return cls(kernel.name, means, covariances, mixing, class_prior, probabilities, levels)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # -- the kernels in a frame --------------------------------------------------------------------

    @cached_property
    def kernel(self) -> Any:
        """The family of the kernels, without a floor."""
        return family_for(self.covariance_type, np.zeros(len(self.levels)), self.levels)

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels in the units of the data."""
        arrays = self.means, self.covariances, self.probabilities
        return self.kernel.from_arrays(*arrays)  # type: ignore[no-any-return]

    @cached_property
    def frame(self) -> Frame:
        """The frame that suits the rows for which the mixture stands."""
        share = self.mixing @ self.class_prior
        share = share / share.sum()
        origin = share @ self.means
        numbers = np.array(self.levels) == 0
        variance = np.ones(len(self.levels))
        spread = self.kernel.variances(self.kernels) + (self.kernels.mean - origin[numbers]) ** 2
        variance[numbers] = share @ spread
        return frame_of(self.covariance_type, origin, variance, self.levels)[0]

    @cached_property
    def network(self) -> SharedKernel:
        """The network; sharing plays no part in predictions."""
        return SharedKernel(self.kernel, np.ones_like(self.mixing))

    @cached_property
    def _last_params(self) -> dict[float, tuple[Frame, NaturalParams]]:
        return {}

    def natural_params(self, eps: float, frame: Frame | None = None) -> NaturalParams:
        """The kernels as rows of a float type need them, in a frame or their own; those of the last
        frame are kept.
        """
        frame = self.frame if frame is None else frame
        last_frame, params = self._last_params.get(eps, (None, None))
        if params is None or last_frame is not frame:
            params = self.kernel.natural_params(self.kernel.into(self.kernels, frame), eps)
            self._last_params[eps] = frame, params
        return params

    # -- answers for rows --------------------------------------------------------------------------

    def log_density(self, rows: RowsInMemory) -> RowFunction:
        """log p(x|C_k), (n, K)."""
        return Average([self]).log_density(rows)

    def posterior(self, rows: RowsInMemory) -> RowFunction:
        """P(j|x), (n, M)."""
        return Average([self]).posterior(rows)

    def imputed(
        self,
        x: np.ndarray,
        codes: np.ndarray | None = None,
        drawn: tuple[np.ndarray, np.ndarray] | None = None,
        n_jobs: int | None = None,
    ) -> np.ndarray:
        """Encoded rows (n, d) with their missing cells imputed: of classes `codes`, -1 for any; as
        expected, or `drawn` by `pick` and `noise` (see `SharedKernel.impute`).
        """
        # the last column is for any class
        log_share = safe_log(np.column_stack([self.mixing, self.mixing @ self.class_prior]))
        codes = np.full(len(x), -1) if codes is None else codes
        ((network, natural_params),), rows = in_one_frame(
            [self], as_rows(x, np.arange(len(x)), n_jobs=n_jobs)
        )
        imputed = rows.each(_impute, network, natural_params, log_share, codes, drawn)
        return np.where(np.isnan(x), self.frame.outside(np.asarray(imputed)), x)

    def sample(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Encoded rows drawn from the classes of `codes`, (n, d)."""
        kernels = self.kernel.into(self.kernels, self.frame)
        x = np.empty((len(codes), len(self.levels)))
        chosen = np.empty(len(codes), int)
        for k, share in enumerate(self.mixing.T):
            in_class = codes == k
            chosen[in_class] = rng.choice(len(share), size=in_class.sum(), p=share / share.sum())
        for j in np.unique(chosen):
            x[chosen == j] = self.kernel.sample(kernels, j, (chosen == j).sum(), rng)
        return np.asarray(self.frame.outside(x))

    # -- models of some features -------------------------------------------------------------------

    def marginal(self, columns: list[int]) -> "ClassDensities":
        """The densities of some columns."""
        kernel, kernels = self.kernel.marginal(self.kernels, columns)
        return self._of(kernel, kernels, columns)

    def conditional(self, row: np.ndarray, known: list[int], rest: list[int]) -> "ClassDensities":
        """The densities of the columns `rest` given the others of an encoded row, (d,); class priors
        are P(C_k|known).
        """
        frame = self.frame
        cells = np.where(np.isin(np.arange(len(row)), known), row, np.nan)[None, :]
        ((network, natural_params),), rows = in_one_frame([self], as_rows(cells))
        log_kernel = rows.each(lambda block, p: network.by_kernel(block, p).T, natural_params)[0]
        joint = np.exp(log_kernel - log_kernel.max())[:, None] * self.mixing
        of_class = joint.sum(axis=0)
        mixing = np.where(of_class > 0, joint / np.where(of_class > 0, of_class, 1.0), self.mixing)
        prior = of_class * self.class_prior
        inside = self.kernel.into(self.kernels, frame)
        kernel, kernels = self.kernel.given(
            inside, known, rest, frame.inside(row[None, :])[0, known]
        )
        kernels = kernel.out_of(kernels, Frame(frame.origin[rest], frame.unit[rest]))
        conditional = self._of(kernel, kernels, rest)
        return replace(conditional, mixing=mixing, class_prior=prior / prior.sum())

    def _of(self, kernel: Any, kernels: Any, columns: list[int]) -> "ClassDensities":
        levels = tuple(self.levels[i] for i in columns)
        return ClassDensities.of(kernel, kernels, self.mixing, self.class_prior, levels)


def _impute(
    block: Block,
    network: SharedKernel,
    natural_params: NaturalParams,
    log_share: Any,
    codes: Any,
    drawn: Any,
) -> Any:
    """Rows whose `y` are their positions, imputed."""
    at = block.y
    pick, noise = (None, None) if drawn is None else (drawn[0][at], drawn[1][at, :])
    return network.impute(block, natural_params, log_share[:, codes[at]], pick, noise)


# -- averages of several mixtures ------------------------------------------------------------------


def in_one_frame(
    mixtures: Sequence[ClassDensities], rows: RowsInMemory, frame: Frame | None = None
) -> tuple[tuple[Member, ...], RowsInMemory]:
    """Mixtures with their kernels in a frame, that of the first if none is given, and rows in it."""
    frame = mixtures[0].frame if frame is None else frame
    members = tuple(
        (mixture.network, mixture.natural_params(rows.eps, frame)) for mixture in mixtures
    )
    n_classes = mixtures[0].mixing.shape[1]
    width = max(sum(params.weight.shape) for _, params in members) + 2 * n_classes
    return members, rows.framed(frame, width)


@dataclass(frozen=True)
class Average:
    """The mean of several class densities, weighted if weights are given (Titsias & Likas 2001,
    (38)): one mixture of all of their kernels.
    """

    mixtures: Sequence[ClassDensities]
    weights: Sequence[float] | None = None
    class_prior: np.ndarray | None = None
    """None for those of each mixture."""

    def log_density(self, rows: RowsInMemory) -> RowFunction:
        """log p(x|C_k), (n, K)."""
        members, framed = in_one_frame(self.mixtures, rows)
        frame = self.mixtures[0].frame
        mixing = self._weighted([mixture.mixing for mixture in self.mixtures])
        params = members, mixing, frame.log_volume, np.log(frame.unit)
        return RowFunction(framed, _log_density, params)

    def posterior(self, rows: RowsInMemory) -> RowFunction:
        """P(mixture, kernel | x), (n, M of all mixtures)."""
        members, framed = in_one_frame(self.mixtures, rows)
        shares = [
            mixture.mixing @ (mixture.class_prior if self.class_prior is None else self.class_prior)
            for mixture in self.mixtures
        ]
        return RowFunction(framed, _posterior, (members, safe_log(self._weighted(shares))))

    def sample(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Encoded rows drawn from the classes of `codes`, (n, d)."""
        share = None if self.weights is None else np.array(self.weights) / sum(self.weights)
        drawn = rng.choice(len(self.mixtures), size=len(codes), p=share)
        x = np.empty((len(codes), len(self.mixtures[0].levels)))
        for i in np.unique(drawn):
            x[drawn == i] = self.mixtures[i].sample(codes[drawn == i], rng)
        return x

    def _weighted(self, shares: list[np.ndarray]) -> np.ndarray:
        """Shares of the kernels of each mixture as shares in the mean, of all kernels."""
        n = len(self.mixtures)
        weights = [1 / n] * n if self.weights is None else self.weights
        return np.concatenate([w * share for w, share in zip(weights, shares, strict=True)])


def _by_kernel(block: Block, members: tuple[Member, ...]) -> Any:
    """log p(x|j) of the kernels of all networks, (M of all, n)."""
    parts = [network.by_kernel(block, natural_params) for network, natural_params in members]
    return parts[0] if len(parts) == 1 else namespace(block.x).concat(parts, axis=0)


def _log_density(
    block: Block, members: tuple[Member, ...], mixing: Any, log_volume: float, log_unit: Any
) -> Any:
    """log p(x|C_k), (n, K), in the units of the data."""
    log_density = log_weighted_sums(_by_kernel(block, members), mixing).T
    # where cells are missing, the volume is that of the known ones, (n, 1)
    missing = block.missing
    return log_density - (log_volume if missing is None else (missing.observed @ log_unit)[:, None])


def _posterior(block: Block, members: tuple[Member, ...], log_share: Any) -> Any:
    return shares_of(_by_kernel(block, members) + log_share[:, None], axis=0).T


def _average_log_proba(
    block: Block,
    members: tuple[Member, ...],
    mixing: tuple[Any, ...],
    log_priors: tuple[Any, ...],
    shift: Any,
    log_prior: Any,
) -> Any:
    """The log of the mean P(C_k|x) of several networks, adjusted to other class priors, (n, K).

    The networks' own priors were moved to discriminate better: without any known cell the
    probabilities are the class priors.
    """
    xp = namespace(block.x)
    each = [
        log_softmax(network.log_density(block, natural_params, weights) + own_prior)
        for (network, natural_params), weights, own_prior in zip(
            members, mixing, log_priors, strict=True
        )
    ]
    log_proba = logsumexp(xp.stack(each), axis=0) + shift
    if block.missing is None:
        return log_proba
    nothing = xp.sum(block.missing.observed, axis=1, keepdims=True) == 0  # (n, 1)
    return xp.where(nothing, log_prior + xp.zeros_like(log_proba), log_proba)


# -- the fitted classifier -------------------------------------------------------------------------


@saved
class FittedSharedKernel:
    """A fitted `SharedKernelClassifier`; see its attributes."""

    columns: Columns
    classes: np.ndarray
    owners: np.ndarray
    """Labels of classes, (M,)."""
    sharing: np.ndarray
    """The table under which it was trained, (M, K); a learned one as it came out."""
    training_type: str
    n_kernels: int
    n_kernels_at_start: int
    """Those that lost their rows are no longer among the means."""
    network: ClassDensities = nested()
    sharing_degree: float = 1.0
    kernel_prior: str | None = None
    overlap: float = 0.0
    objective: float | None = None
    history: np.ndarray | None = None
    n_iter: int | None = None
    converged: bool | None = None
    weight_seen: float | None = None
    parents: np.ndarray | None = None
    """The shared kernel that each was split from, (M,); None if nothing was split."""
    selection: dict[str, np.ndarray] | None = None
    discriminative: tuple[ClassDensities, ...] | None = None
    """The networks whose class probabilities are averaged; None where the densities decide."""
    conditional_loss: float | None = None
    class_shares: np.ndarray | None = None
    validation_log_proba: np.ndarray | None = unsaved()
    stream: Any = None

    @classmethod
    def of(
        cls, network: ClassDensities, columns: Columns, classes: np.ndarray, **values: Any
    ) -> "FittedSharedKernel":
        """A network as a fitted record; `values` are those of the other fields."""
        n_kernels = len(network.means)
        defaults = {
            "owners": classes[np.argmax(network.mixing * network.class_prior, axis=1)],
            "sharing": np.ones_like(network.mixing),
            "training_type": network.covariance_type,
            "n_kernels_at_start": n_kernels,
        }
        values = {**defaults, **values, "network": network, "n_kernels": n_kernels}
        return cls(columns, classes, **values)

    def as_start(self) -> Start:
        """A start from here."""
        names = "means", "covariances", "mixing", "probabilities"
        return Start(owners=self.owners, **{name: getattr(self.network, name) for name in names})

    def log_proba(self, rows: RowsInMemory) -> RowFunction:
        """log P(C_k|x) of the discriminative networks up to a constant of the row, (n, K)."""
        networks = self.discriminative
        assert networks
        assert self.class_shares is not None
        members, framed = in_one_frame(networks, rows, self.network.frame)
        log_priors = tuple(safe_log(network.class_prior) for network in networks)
        prior = self.network.class_prior
        mixing = tuple(network.mixing for network in networks)
        shift = prior_shift(prior, self.class_shares)
        params = members, mixing, log_priors, shift, safe_log(prior)
        return RowFunction(framed, _average_log_proba, params)

    @property
    def densities(self) -> ClassDensities:
        """Of the classes."""
        return self.network

    @property
    def n_parameters(self) -> int:
        """Free numbers: of the kernels, mixing weights that are not fixed at zero, class priors."""
        (n_kernels, n_classes) = self.sharing.shape
        d = len(self.columns)
        kernel = family_for(self.training_type, np.zeros(d), self.columns.levels)
        # a weight that learned sharing has all but closed is no longer free
        n_mixing = int((self.sharing > CLOSED).sum()) - n_classes
        return int(kernel.n_parameters(n_kernels, d)) + n_mixing + n_classes - 1

    def as_trained(self) -> tuple[Any, Kernels, Frame]:
        """The family of `training_type`, the kernels in a frame in which they are of that family,
        and that frame.
        """
        network = self.network
        frame = network.frame
        if self.training_type == network.covariance_type:
            return network.kernel, network.kernel.into(network.kernels, frame), frame
        # spherical among standardized features, kernels have variances that differ by a factor
        # alone: the squares of the units
        numbers = np.array(network.levels) == 0
        unit = np.ones(len(network.levels))
        width = np.sqrt(network.covariances[0])[numbers]
        unit[numbers] = width * np.exp(np.mean(np.log(frame.unit[numbers] / width)))
        frame = Frame(frame.origin, unit)
        kernel: Any = family_for(self.training_type, 0 * unit, network.levels)
        return kernel, as_spherical(network.kernel.into(network.kernels, frame)), frame

    def subkernels(self, rows: Rows) -> tuple[Any, Kernels, Subkernels, Frame]:
        """The family, the kernels and their subkernels by some labeled rows, in a frame, and that
        frame.
        """
        kernel, kernels, frame = self.as_trained()
        network = SharedKernel(kernel, self.network.network.sharing, Overlap(1.0, units="raw"))
        params = Params(kernels, self.network.mixing, self.network.class_prior)
        e_step_params = network.e_step_params(params, rows.eps)
        totals = network.e_step.total(rows.framed(frame, 64), e_step_params)
        return kernel, kernels, network.subkernels(totals, params, e_step_params), frame
