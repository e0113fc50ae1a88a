"""Networks that describe rows, from which missing cells are drawn for those that need every cell."""

from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from ..arrays import shares_of
from ..rows import as_rows
from ..starts.sample import content_key
from ..training.config import FitConfig, KernelConfig, SharedKernelConfig, StartConfig
from ..training.shared_kernel import fit_shared_kernel
from ..training.survey import surveyed
from ..training.views import View
from .shared_kernel import SharedKernelClassifier

N_DRAWS = 8
"""Fillings of a row with missing cells over which the networks that cannot take them are averaged."""

ROWS_A_FEATURE = 20
"""Rows for each feature that a kernel of such a mixture needs."""

FILLING_KERNELS = 6
"""Most kernels, beside one a class, of the mixture from which missing cells of training rows are drawn."""


def describing_network(
    x: np.ndarray,
    weight: np.ndarray,
    levels: tuple[int, ...] | None,
    seed: int,
    codes: np.ndarray | None = None,
) -> SharedKernelClassifier:
    """A small mixture of coded rows, cells of which may be missing; of one class, or of those of `codes`."""
    y = np.zeros(len(x), int) if codes is None else np.unique(codes, return_inverse=True)[1]
    n_classes = int(y.max()) + 1
    data = surveyed(as_rows(x, y, weight, holes=True), np.arange(n_classes))
    data.levels = levels
    n_kernels = int(np.clip(len(x) // (ROWS_A_FEATURE * x.shape[1]), 1, FILLING_KERNELS)) + n_classes - 1
    # given the class, matrices of few rows would tell it: rows left out are judged beside fillings that saw their labels
    enough = codes is None or 2 * len(x) >= ROWS_A_FEATURE * x.shape[1] * n_kernels
    family = "diag" if levels is not None and min(levels) > 0 else "full" if enough else "tied"
    config = SharedKernelConfig(
        KernelConfig(family, 1e-3, "conjugate"), StartConfig(n_kernels), fit=FitConfig(max_iter=50, tol=1e-3, seed=seed)
    )
    network = fit_shared_kernel(data, config)
    model = SharedKernelClassifier.from_parameters(
        network.means, network.covariances, network.mixing, network.class_prior, np.arange(n_classes), covariance_type=family
    )
    if levels is not None:
        model.categories_ = [np.array([str(code) for code in range(n - 1)], object) if n else None for n in levels]
        model.probabilities_ = network.probability
    return model


def drawn_fillings(
    network: SharedKernelClassifier, x: np.ndarray, codes: np.ndarray | None, n_draws: int, seed: int
) -> np.ndarray:
    """Rows with their missing cells drawn, given the class where `codes` are told, (n_draws, n, d)."""
    rng, of = np.random.RandomState(seed), np.full(len(x), -1) if codes is None else codes
    return np.stack([network._filled(x, of, rng.uniform(size=len(x)), rng.normal(size=x.shape)) for _ in range(n_draws)])


class Describing:
    """Networks with densities, and the logarithms of their weights."""

    def __init__(self, networks: list[tuple[Any, View | None]], log_weights: np.ndarray) -> None:
        self.networks, self.log_weights = networks, log_weights

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """log p(x|C_k), (n, K)."""
        said = np.stack([log_density_in_view(network, view, x) for network, view in self.networks])
        return np.asarray(logsumexp(said + self.log_weights[:, None, None], axis=0))

    def fillings(self, x: np.ndarray) -> np.ndarray:
        """Rows with their missing cells drawn given the others, (N_DRAWS, n, d): a function of the row alone, not of chance."""
        seen = [x if view is None else view.transform(x) for _, view in self.networks]
        evidence = np.stack(
            [
                np.asarray(network.score_samples(z)) + (0.0 if view is None else view.log_jacobian(x)) + log_weight
                for (network, view), z, log_weight in zip(self.networks, seen, self.log_weights, strict=True)
            ]
        )
        below = np.cumsum(np.exp(evidence - logsumexp(evidence, axis=0)), axis=0)  # (networks, n)
        d, nobody = x.shape[1], np.full(len(x), -1)
        out = np.repeat(x[None], N_DRAWS, axis=0)
        for s in range(N_DRAWS):
            which, pick, *uniform = (content_key(seen[0], s * (d + 2) + i) for i in range(d + 2))
            noise, chosen = ndtri(np.column_stack(uniform)), (below < which * below[-1]).sum(axis=0)
            for i in np.unique(chosen):
                (network, view), mine = self.networks[i], np.flatnonzero(chosen == i)
                filled = network._filled(seen[i][mine], nobody[mine], pick[mine], noise[mine])
                filled = filled if view is None else view.inverse(filled)
                out[s, mine] = np.where(np.isnan(x[mine]), filled, x[mine])
        return out

    def kernel_posterior(self, x: np.ndarray) -> np.ndarray:
        """P(j|x) of the kernels of all networks, one network after the other, (n, M)."""
        seen = [x if view is None else view.transform(x) for _, view in self.networks]
        evidence = np.stack(
            [
                np.asarray(network.score_samples(z)) + (0.0 if view is None else view.log_jacobian(x)) + log_weight
                for (network, view), z, log_weight in zip(self.networks, seen, self.log_weights, strict=True)
            ]
        )
        share = shares_of(evidence, axis=0)  # (networks, n)
        parts = [np.asarray(network.kernel_posterior(z)) for (network, _), z in zip(self.networks, seen, strict=True)]
        return np.hstack([part * s[:, None] for part, s in zip(parts, share, strict=True)])


def log_density_in_view(network: Any, view: View | None, x: np.ndarray) -> np.ndarray:
    """log p(x|C_k) of rows in the units of the data by a network that sees them in a view, (n, K)."""
    if view is None:
        return np.asarray(network.log_density(x))
    return np.asarray(network.log_density(view.transform(x)) + view.log_jacobian(x)[:, None])
