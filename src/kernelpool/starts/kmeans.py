"""Kernels at the centers that k-means finds in the class that owns them, as wide as the clusters
are on average.
"""

from functools import lru_cache

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from ..rows import one_blas_thread
from .sample import ClassSample

RESTARTS = 3
MOST_ROUNDS = 50  # EM goes on from here; there is no need to finish


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


def kmeans(
    sample: ClassSample, n_kernels: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Centers (n_kernels, d), and for every row the point its deviation is measured from, (n,
    d).
    """
    if n_kernels >= len(sample.x):  # a kernel a row
        return np.resize(sample.x, (n_kernels, sample.x.shape[1])), sample.x
    found = KMeans(
        n_kernels, n_init=RESTARTS, max_iter=MOST_ROUNDS, random_state=int(rng.integers(2**31))
    )
    # on a few thousand rows threads cost more than they bring; BLAS is held as sweeps in other
    # threads may hold it now
    with one_blas_thread(), _controller().limit(limits=1):
        label = found.fit_predict(sample.x, sample_weight=sample.weight)
    return found.cluster_centers_, found.cluster_centers_[label]
