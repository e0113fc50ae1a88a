import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import invgamma, invwishart, multivariate_normal

from kernelpool import SharedKernelClassifier
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.penalties import Conjugate

D = 3
M = 4
VARIANCE = np.array([1.0, 1.2, 0.8])


def log_prior(family, kernels):
    """By SciPy."""
    scale = VARIANCE / M ** (2 / D)
    shrinkage = 0.01
    full = naive.matrices(kernels.covariance, family, M, D)
    total = sum(
        multivariate_normal(np.zeros(D), full[j] / shrinkage).logpdf(kernels.mean[j])
        for j in range(M)
    )
    if family in ("full", "tied"):
        prior = invwishart(D + 2, np.diag(scale))
        return total + sum(prior.logpdf(c) for c in (full if family == "full" else full[:1]))
    scale = scale.mean() if family == "spherical" else scale
    return total + invgamma(3 / 2, scale=scale / 2).logpdf(kernels.covariance).sum()


def random_kernels(family, rng):
    mean = rng.normal(size=(M, D))
    root = rng.normal(size=(M, D, D))
    full = root @ root.swapaxes(1, 2) + np.eye(D)
    return Kernels(mean, naive.shaped(full, family))


def test_the_term_of_the_objective_is_the_log_prior(family):
    """Differences of `objective` are those of SciPy's normal and inverse Wishart (or gamma)
    densities.
    """
    rng = np.random.default_rng(0)
    kernel = FAMILIES[family](np.zeros(D))
    some = [random_kernels(family, rng) for _ in range(5)]
    penalty = Conjugate(VARIANCE, M)
    gaps = [log_prior(family, kernels) - penalty.objective(kernel, kernels) for kernels in some]
    assert_allclose(gaps, gaps[0], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*lost all their rows")
def test_kernels_that_would_collapse_keep_a_width(family):
    """Four distinct rows, each repeated: without the prior every kernel falls to the floor, with it
    none comes near.
    """
    x = np.repeat([[0.0, 0], [0, 1], [5, 5], [5, 6]], 10, axis=0)
    y = np.repeat([0, 1], 20)
    floor = 1e-6 * x.var(axis=0).mean()
    smallest = np.linalg.eigvalsh if family in ("full", "tied") else np.asarray
    settings = {"covariance_type": family, "random_state": 0, "tol": 1e-8}
    for prior in (None, "conjugate"):
        model = SharedKernelClassifier.prbf(4, kernel_prior=prior, **settings).fit(x, y)
        # an anchor of one row in a billion leaves the refinement to the prior
        for network in (model, model.split_by_class(x, y, anchor=1e-9)):
            width = smallest(network.covariances_).min() / floor
            assert width > 1000 if prior else width < 10


@pytest.mark.filterwarnings("error")
def test_a_constant_feature_changes_nothing(blobs, family):
    x, y = blobs
    settings = {"kernel_prior": "conjugate", "random_state": 0, "max_iter": 300}
    model = SharedKernelClassifier.prbf(6, covariance_type=family, sharing=0, **settings)
    alone = model.fit(x, y).predict(x)
    wider = np.column_stack([x, np.full(len(x), 3.0)])
    agree = model.fit(wider, y).predict(wider) == alone
    assert model.n_kernels_ == 6
    # the widths of round kernels are means over the features
    assert family == "spherical" or agree.mean() > 0.97
