r"""What a mixture says when it is shown some of the features only: the others are integrated out, exactly.

.. math::

    p(x_S \mid C_k) = \sum_j \pi_{jk}\, p(x_S \mid j), \qquad
    E[x_i \mid x_{-i}, C_k] = \sum_j P(j \mid x_{-i}, C_k)\, E[x_i \mid x_{-i}, j]

A kernel family knows the marginals of its kernels (`Kernel.marginal`), so that nothing is drawn at random and no rows are
needed. The records here are made by the estimators; all that is asked of a classifier about single features starts from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..arrays import eps_of, log_weighted_sums, safe_log, shares_of
from ..kernels import Kernel
from ..kernels.product import Product
from ..rows import Frame

CHUNK = 4096
"""Rows that are looked at together."""


@dataclass(frozen=True)
class MixtureParams:
    """Class densities over one set of kernels, in a frame."""

    kernel: Kernel
    kernels: Any
    mixing: np.ndarray
    """(M, K)."""

    def log_kernels(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log p(x_S|j) of rows that hold all features, (M, n)."""
        kernel, kernels = self.kernel.marginal(self.kernels, list(columns))
        inside = np.ascontiguousarray(x[:, list(columns)])
        return np.asarray(
            kernel.log_density(kernel.natural_params(kernels, eps_of(inside)), inside)
        )

    def log_density(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log p(x_S|C_k), (n, K); zero where S is empty."""
        if not len(columns):
            return np.zeros((len(x), self.mixing.shape[1]))
        used = np.where(self.mixing.sum(axis=0) > 0, self.mixing, 1.0)
        found = np.asarray(log_weighted_sums(self.log_kernels(x, columns), used)).T
        return np.where(self.mixing.sum(axis=0) > 0, found, -np.inf)


@dataclass(frozen=True)
class Marginals:
    """A classifier from which features can be left out."""

    frame: Frame
    describing: tuple[MixtureParams, ...]
    """Their weighted mean is the density."""
    log_weights: np.ndarray
    log_prior: np.ndarray
    """log P(C_k), (K,)."""
    deciding: tuple[tuple[MixtureParams, np.ndarray], ...] = ()
    """Mixtures with their own log-priors whose mean probability decides; where there are none, the density does."""
    log_prior_shift: np.ndarray | float = 0.0
    """What is added to the log-probabilities in the end, (K,)."""
    temperature: float = 1.0
    longest_odds: float = np.inf
    """How far apart log-densities may be before they are divided by the temperature."""

    def log_density(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log p(x_S|C_k), (n, K), in the units of the data."""
        volume = float(np.log(self.frame.unit[list(columns)]).sum())
        return self._in_chunks(x, lambda z: self._log_density(z, columns)) - volume

    def log_proba(self, x: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """log P(C_k|x_S), (n, K); the log-priors where S is empty."""
        return self._in_chunks(x, lambda z: self._log_proba(z, columns))

    def expected(
        self, x: np.ndarray, column: int, codes: np.ndarray, known: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of one feature given the others that are known and the class of each row, two of shape (n,)."""
        z = np.asarray(self.frame.inside(np.array(x, np.float64)))
        columns = list(range(z.shape[1])) if known is None else sorted(known)
        others = [c for c in columns if c != column]
        terms, means, variances = [], [], []
        for member, log_weight in zip(self.describing, self.log_weights, strict=True):
            log_joint = safe_log(member.mixing).take(codes, axis=1) + log_weight  # (M, n)
            terms.append(log_joint + member.log_kernels(z, others) if others else log_joint)
            kernel, kernels = member.kernel.marginal(member.kernels, columns)
            mean, variance = conditional_moments(
                kernel, kernels, z[:, columns], columns.index(column)
            )
            means.append(mean)
            variances.append(variance)
        log_share = np.concatenate(terms)
        share = shares_of(log_share, axis=0)  # (M, n)
        mean = (share * np.concatenate(means)).sum(axis=0)
        variance = (share * (np.concatenate(variances) + (np.concatenate(means) - mean) ** 2)).sum(
            axis=0
        )
        unit, origin = self.frame.unit[column], self.frame.origin[column]
        return mean * unit + origin, np.sqrt(variance) * unit

    def _in_chunks(self, x: np.ndarray, function: Any) -> np.ndarray:
        z = np.asarray(self.frame.inside(np.array(x, np.float64)))
        return np.concatenate([function(z[i : i + CHUNK]) for i in range(0, max(len(z), 1), CHUNK)])

    def _log_density(self, z: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        parts = np.stack([member.log_density(z, columns) for member in self.describing])
        return np.asarray(logsumexp(parts + self.log_weights[:, None, None], axis=0))

    def _log_proba(self, z: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        if self.deciding:
            said = [
                normalized(member.log_density(z, columns) + log_prior)
                for member, log_prior in self.deciding
            ]
            return normalized(np.asarray(logsumexp(np.stack(said), axis=0)) + self.log_prior_shift)
        joint = self._log_density(z, columns) + self.log_prior
        if (
            len(columns) and self.temperature != 1
        ):  # of the features; without them the priors are left
            joint = (
                np.maximum(joint - joint.max(axis=1, keepdims=True), -self.longest_odds)
                / self.temperature
            )
        return normalized(joint + self.log_prior_shift)


def normalized(scores: np.ndarray) -> np.ndarray:
    """Log-probabilities from their values up to a constant of the row, (n, K); exact for the far and the near."""
    away = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(away - logsumexp(away, axis=1, keepdims=True))


def conditional_moments(
    kernel: Any, kernels: Any, z: np.ndarray, column: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of one feature given the others in each Gaussian kernel, two of shape (M, n)."""
    means, shape = np.asarray(kernels.mean), (len(kernels.mean), len(z))
    if isinstance(kernel, Product):  # numbers are independent of words within a kernel
        if column in kernel.words:  # what is expected of a word is its table, not a number
            return np.broadcast_to(means[:, column, None], shape), np.ones(shape)
        _, gaussian = kernel.parts(kernels)
        return conditional_moments(
            kernel.gaussian, gaussian, z[:, kernel.numbers], kernel.numbers.index(column)
        )
    if not kernel.matrices:
        variance = np.broadcast_to(np.asarray(kernel.variances(kernels)), means.shape)
        return np.broadcast_to(means[:, column, None], shape), np.broadcast_to(
            variance[:, column, None], shape
        )
    precision = np.broadcast_to(
        np.asarray(kernel.precision(kernels.covariance)[0]), (len(means), z.shape[1], z.shape[1])
    )
    own = precision[:, column, column]  # (M,)
    pull = np.einsum("mi,mni->mn", precision[:, column, :], z - means[:, None, :]) - own[
        :, None
    ] * (z[:, column] - means[:, column, None])
    return means[:, column, None] - pull / own[:, None], np.broadcast_to(1 / own[:, None], shape)
