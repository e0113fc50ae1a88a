import os
from pathlib import Path

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # before NumPy is there: workers that run side by side take a core each
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

from kernelpool.kernels import FAMILIES

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's check of array-API input asks for it
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "KERNELPOOL_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["KERNELPOOL_DATA"] = str(BESIDE)


@pytest.fixture(params=list(FAMILIES))
def family(request):
    return request.param


@pytest.fixture
def blobs():
    """Three overlapping classes in three dimensions, each of two parts, with features of unequal
    scale.
    """
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], [120, 100, 80])
    part = rng.integers(2, size=len(y))
    center = rng.normal(size=(3, 2, 3)) * 1.5
    return (center[y, part] + rng.normal(size=(len(y), 3))) * [1.0, 2.0, 0.5], y


@pytest.fixture
def given_start(family, blobs):
    """Parameters of six kernels from which every implementation can start alike."""
    x, _ = blobs
    rng = np.random.default_rng(3)
    mean = x[[0, 1, 120, 121, 220, 221]] + 0.1
    full = np.array([np.diag([1.0, 2.0, 0.5]) + 0.2 * v for v in np.linspace(0, 1, 6)])
    kernel = FAMILIES[family](np.zeros(3))
    covariance = kernel.covariances(
        kernel.pool_moments(
            np.array([kernel.square(np.linalg.cholesky(c)).sum(axis=1) for c in full])
        ),
        np.ones(6),
        0.0,
    )
    mixing = rng.dirichlet(np.ones(6), size=3).T
    return mean, covariance, mixing, np.array([0, 0, 1, 1, 2, 2])
