"""Candidates for the settings of a network, and the networks that are trained for them on some of the rows."""

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import log_weighted_sums, safe_log, to_numpy
from ..em import Outcome
from ..kernels import NaturalParams
from ..networks.shared_kernel import Params, SharedKernel, sharing_table
from ..rows import Block, as_rows
from ..starts import opened
from ..starts.grown import needs, split
from .config import SharedKernelConfig, StartConfig
from .held_out import SampledRows, fold_data
from .prepare import TrainingData
from .shared_kernel import MixtureTraining, Starts


@dataclass(frozen=True)
class Candidate:
    """One combination of settings."""

    covariance_type: str
    n_splits: int
    """How often the network has been grown; 0 where the number of kernels is given."""
    sharing: float | None
    """A degree, or None: as the settings say."""
    overlap_penalty: float
    prior: str | None = None
    """On the kernels."""

    @property
    def size_key(self) -> tuple[str, int]:
        """What fixes the number of kernels."""
        return self.covariance_type, self.n_splits


def limit_kernels(start: StartConfig, rows: SampledRows, n_classes: int) -> StartConfig:
    """No more kernels than there are rows to train on, class by class where the settings say so."""
    n_kernels = start.n_kernels
    if (
        n_kernels is None
        or isinstance(n_kernels, str)
        or start.owners is not None
        or start.means is not None
    ):
        return start
    if not isinstance(n_kernels, list):
        return replace(start, n_kernels=min(int(n_kernels), len(rows.weight)))
    n_rows = [len(np.unique(rows.x[rows.code == k], axis=0)) for k in range(n_classes)]
    return replace(
        start,
        n_kernels=[min(count, max(1, n)) for count, n in zip(n_kernels, n_rows, strict=False)],
    )


class CandidateFits:
    """Networks of candidates, trained on some of the rows, and what they say of the others."""

    def __init__(
        self,
        config: SharedKernelConfig,
        data: TrainingData,
        train: SampledRows,
        held_out: SampledRows,
    ) -> None:
        self.train, self.held_out = train, held_out
        self.data = fold_data(data, train, config.fit.n_jobs)
        self.config = replace(config, start=limit_kernels(config.start, train, len(data.classes)))
        self.owners: dict[tuple[str, int], np.ndarray] = {}
        self.params: dict[Candidate, Params] = {}
        self._starts: dict[tuple[str, str | None], Starts] = {}

    def training(self, candidate: Candidate) -> MixtureTraining:
        """How networks of this candidate are trained."""
        return self._starts_of(candidate).training.penalized(candidate.overlap_penalty)

    def sharing(self, candidate: Candidate) -> np.ndarray:
        """Its table of sharing, (M, K)."""
        if candidate.sharing is None:
            return self._starts_of(candidate).sharing_table(self.config.sharing)
        return np.asarray(
            sharing_table(
                self.owners[candidate.size_key], candidate.sharing, len(self.data.classes)
            )
        )

    def _starts_of(self, candidate: Candidate) -> Starts:
        key = candidate.covariance_type, candidate.prior
        if key not in self._starts:
            kernel = replace(
                self.config.kernel, covariance_type=candidate.covariance_type, prior=candidate.prior
            )
            self._starts[key] = Starts(self.data, replace(self.config, kernel=kernel))
        return self._starts[key]

    def forget_other_families(self, family: str) -> None:
        """Let go of the rows' features of all families but one."""
        self._starts = {key: starts for key, starts in self._starts.items() if key[0] == family}

    # -- three ways to a network ------------------------------------------------------------------------------------

    def begin(self, candidate: Candidate) -> None:
        """From the start that the settings describe."""
        starts = self._starts_of(candidate)
        self.owners[candidate.size_key] = starts.owners
        self._run(candidate, starts.start(next(iter(starts.places())), self.sharing(candidate)))

    def grow(self, candidate: Candidate, before: Candidate, n_new: int) -> None:
        """From the network of `before`, with `n_new` kernels split; fewer, or none, where they could not be."""
        training, params = self.training(before), self.params[before]
        kernel, owners = training.host_kernel, self.owners[before.size_key]
        rows = self.train.where((self.train.code >= 0) & (self.train.weight > 0))
        x = training.frame.inside(rows.x)
        responsibility, loss = _responsibility_and_loss(
            training, params, self.sharing(before), x, rows.code
        )
        if np.isnan(
            x
        ).any():  # a missing cell lies where the kernel that most of the row belongs to lies
            x = np.where(
                np.isnan(x), to_numpy(params.kernels.mean)[responsibility.argmax(axis=0)], x
            )
        owned = owners[:, None] == rows.code[None, :]
        need = needs(responsibility, loss, rows.weight, owned)
        member = responsibility.argmax(axis=0)
        member = np.where(owners[member] == rows.code, member, -1)
        kernels, mixing, parent = split(
            kernel, params.kernels, params.mixing, need, x, member, rows.weight, n_new
        )
        self.owners[candidate.size_key] = owners[parent]
        if len(parent) > len(owners):
            self._run(candidate, Params(kernels, mixing, params.class_prior))
        else:
            self.params[candidate] = params

    def change(self, candidate: Candidate, before: Candidate) -> None:
        """From the network of `before`, which has the same kernels under another sharing, penalty or prior."""
        params, sharing = self.params[before], self.sharing(candidate)
        mixing = params.mixing * (sharing > 0)
        wider = (
            candidate.sharing is not None
            and before.sharing is not None
            and candidate.sharing > before.sharing
        )
        if (
            wider or not (mixing.sum(axis=0) > 0).all()
        ):  # EM never finds its way back from a weight of nothing
            mixing = opened(mixing, sharing)
        self._run(
            candidate, Params(params.kernels, mixing / mixing.sum(axis=0), params.class_prior)
        )

    def _run(self, candidate: Candidate, start: Params) -> None:
        fit = self.training(candidate).run(
            start, self.sharing(candidate), self.owners[candidate.size_key]
        )
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt("interrupted while settings were chosen; nothing was kept")
        self.params[candidate] = fit.params

    # -- what they say ----------------------------------------------------------------------------------------------

    def log_joint(self, candidate: Candidate) -> np.ndarray:
        """log P(C_k) p(x|C_k) of the rows held out, (n, K)."""
        training = self.training(candidate)
        log_density = training.log_density(
            self.params[candidate], self.held_out.x, self.config.fit.n_jobs
        )
        return np.asarray(log_density + safe_log(training.class_prior))


def _responsibility_and_loss(
    training: MixtureTraining, params: Params, sharing: np.ndarray, x: np.ndarray, code: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities (M, n) and losses -log P(C_y|x) (n,) of rows in the frame."""
    kernel = training.host_kernel
    natural_params = kernel.natural_params(params.kernels, training.rows.eps)
    log_density = (
        as_rows(x, n_jobs=1).each(_by_kernel, SharedKernel(kernel, sharing), natural_params).T
    )
    joint = log_density + safe_log(sharing * params.mixing)[:, code]
    joint = np.exp(joint - joint.max(axis=0))
    by_class = (
        log_weighted_sums(log_density, params.mixing) + safe_log(params.class_prior)[:, None]
    )  # (K, n)
    by_class = by_class - by_class.max(axis=0)
    log_all = np.log(np.exp(by_class).sum(axis=0))
    return joint / joint.sum(axis=0), log_all - by_class[code, np.arange(len(code))]


def _by_kernel(block: Block, network: SharedKernel, natural_params: NaturalParams) -> np.ndarray:
    return np.asarray(network.by_kernel(block, natural_params)).T
