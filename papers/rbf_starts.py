"""Hidden layers of the baselines that two papers name: spherical kernels in the units of the
data.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from kernelpool.data.door import surveyed
from kernelpool.mixtures.fit import MixtureSettings, MixtureTraining
from kernelpool.mixtures.start import Start
from kernelpool.rows import as_rows


def mixture(means: np.ndarray, variance: Any, covariance_type: str = "spherical") -> Any:
    """A mixture of equal weights with one variance, in the form that `EMLogClassifier` takes as
    `init`.
    """
    n, d = means.shape
    covariances = np.full(n, variance)
    if covariance_type == "full":
        covariances = np.broadcast_to(variance * np.eye(d), (n, d, d)).copy()
    return SimpleNamespace(
        means_=means,
        covariances_=covariances,
        weights_=np.full(n, 1 / n),
        covariance_type=covariance_type,
    )


def trained_mixture(
    X: np.ndarray,
    n_kernels: int,
    init: str,
    seed: int,
    *,
    widths: str | None = None,
    kernel_prior: str | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
) -> Any:
    """Spherical kernels at random rows, at k-means centers or where EM converges.

    `widths` replaces their variances: "unit" is variance one, as in (1) of the EM-Log paper, and
    "farthest" the largest squared distance between two centers, as in Netlab.
    """
    X = np.asarray(X, np.float64)
    settings = MixtureSettings(
        n_kernels,
        "spherical",
        standardize=False,
        kernel_prior=kernel_prior,
        start=Start("random" if init == "random" else "kmeans"),
        max_iter=max_iter,
        tol=tol,
        seed=check_random_state(seed).randint(2**31),
    )
    data = surveyed(as_rows(X, np.zeros(len(X), int)), np.zeros(1))
    training = MixtureTraining(data, settings)
    params = training.first()
    if init == "em":
        params = training.run(params).params
    network = training.in_data_units(params)
    means = network.means
    covariances = network.covariances
    mixing = network.mixing
    found = mixture(means, 1.0)
    found.covariances_ = covariances
    found.weights_ = mixing[:, 0]
    if widths is not None:
        variance = 1.0 if widths == "unit" else float(pdist(means, "sqeuclidean").max())
        found.covariances_ = np.full(len(means), variance)
    return found
