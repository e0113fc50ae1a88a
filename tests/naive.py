"""The published equations, computed row by row with SciPy's densities: slow, plain, and written
apart from the library.
"""

import numpy as np
from scipy.stats import multivariate_normal


def matrices(covariance, family, n_kernels, d):
    """Covariances of any family as full matrices, (M, d, d), told by their shape; `family` settles
    what shapes leave open.
    """
    covariance = np.asarray(covariance)
    if covariance.shape == (n_kernels,):
        return covariance[:, None, None] * np.eye(d)
    if covariance.shape == (d, d) and (n_kernels != d or family == "tied"):
        return np.broadcast_to(covariance, (n_kernels, d, d))
    return covariance if covariance.ndim == 3 else covariance[:, :, None] * np.eye(d)


def kernel_densities(x, mean, covariance, family):
    """p(x|j), (n, M)."""
    full = matrices(covariance, family, *mean.shape)
    return np.column_stack(
        [multivariate_normal(m, c).pdf(x) for m, c in zip(mean, full, strict=True)]
    )


def shaped(full, family, weight=None):
    """Full matrices (..., d, d) as covariances of a family; a tied one is their weighted mean."""
    if family == "tied":
        return np.average(full, axis=tuple(range(full.ndim - 2)), weights=weight)
    if family == "spherical":
        return np.trace(full, axis1=-2, axis2=-1) / full.shape[-1]
    return np.diagonal(full, axis1=-2, axis2=-1) if family == "diag" else full


def responsibilities(x, y, mean, covariance, mixing, table, family, weight, prior):
    """(29) of kernel and class in every row, (n, M, K), times its weight; a row with y = -1 is dealt
    out by P(C_k) p(x|C_k).
    """
    density = kernel_densities(x, mean, covariance, family)
    h = np.zeros((len(x), *mixing.shape))
    for n in range(len(x)):
        joint = table * mixing * density[n][:, None]
        joint = joint * (np.arange(mixing.shape[1]) == y[n]) if y[n] >= 0 else joint * prior
        h[n] = weight[n] * joint / joint.sum()
    return h


def sharing_weights(owner, sharing, n_classes):
    if np.ndim(sharing) == 2:  # a whole table
        return np.asarray(sharing)
    return np.array(
        [[1.0 if owner[j] == k else sharing for k in range(n_classes)] for j in range(len(owner))]
    )


def objective(x, y, mean, covariance, mixing, owner, sharing, family, weight=None, prior=None):
    """Titsias & Likas (31), summed; rows with y = -1 have their class summed out."""
    density = kernel_densities(x, mean, covariance, family)
    share = sharing_weights(owner, sharing, mixing.shape[1])
    total = 0.0
    for n in range(len(x)):
        by_class = [
            sum(share[j, k] * mixing[j, k] * density[n, j] for j in range(len(mean)))
            for k in range(mixing.shape[1])
        ]
        value = (
            by_class[y[n]]
            if y[n] >= 0
            else sum(p * v for p, v in zip(prior, by_class, strict=True))
        )
        total += (1.0 if weight is None else weight[n]) * np.log(value)
    return total


def sweep(x, y, mean, covariance, mixing, owner, sharing, family, weight=None, prior=None):
    """(29) and (35)-(37): one E-step and one M-step."""
    n_rows, (n_kernels, d), n_classes = len(x), mean.shape, mixing.shape[1]
    weight = np.ones(n_rows) if weight is None else weight
    share = sharing_weights(owner, sharing, n_classes)
    h = responsibilities(x, y, mean, covariance, mixing, share, family, weight, prior)
    mass = h.sum(axis=2).sum(axis=0)
    new_mean = np.array([h[:, j].sum(axis=1) @ x / mass[j] for j in range(n_kernels)])
    scatter = np.zeros((n_kernels, d, d))
    for j in range(n_kernels):
        for n in range(n_rows):
            away = x[n] - new_mean[j]
            scatter[j] += h[n, j].sum() * np.outer(away, away)
    full = scatter / mass[:, None, None]
    shaped = {
        (n_kernels,): lambda: np.trace(full, axis1=1, axis2=2) / d,
        (n_kernels, d): lambda: np.diagonal(full, axis1=1, axis2=2),
        (n_kernels, d, d): lambda: full,
    }
    tied = family == "tied" or np.shape(covariance) not in shaped
    new_covariance = scatter.sum(axis=0) / mass.sum() if tied else shaped[np.shape(covariance)]()
    by_class = h.sum(axis=0)
    return new_mean, new_covariance, by_class / by_class.sum(axis=0)
