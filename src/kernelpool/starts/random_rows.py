"""Kernels at random rows of the class that owns them, as wide as the class (Titsias & Likas 2001,
section IV).

The paper does not say how wide; the variance of the owner's rows reproduces its tables.
"""

import numpy as np

from .sample import ClassSample


def random_rows(
    sample: ClassSample, n_kernels: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Centers (n_kernels, d), and for every row the point its deviation is measured from, (n,
    d).
    """
    share = sample.weight / sample.weight.sum()
    chosen = rng.choice(len(share), size=min(n_kernels, len(share)), replace=False, p=share)
    return np.resize(sample.x[chosen], (n_kernels, sample.x.shape[1])), np.broadcast_to(
        share @ sample.x, sample.x.shape
    )
