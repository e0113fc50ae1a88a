"""Clouds: two overlapping classes in the plane, from the ELENA project's data bases."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

BAYES_ERROR = 0.09654
"""Error of the best possible classifier, by quadrature."""


def make_clouds(n_samples: int = 5000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw the Clouds problem.

    Class 0 is a quarter each of N((0, 0), 0.2² I) and N((0, 2), 0.2² I) and half of N((2, 1), diag(0.2², 1)); class 1 is
    N((0, 0), I). Half of the rows belong to each class and, within class 0, the parts have their exact shares. No classifier
    errs less than 9.654 %.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows, at least 8; rounded down to a multiple of 8.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    if n_samples < 8:
        raise ValueError(f"n_samples must be at least 8; got {n_samples}.")
    rng = check_random_state(random_state)
    eighth = n_samples // 8
    parts = [
        (eighth, (0, 0), (0.2, 0.2), 0),
        (eighth, (0, 2), (0.2, 0.2), 0),
        (2 * eighth, (2, 1), (0.2, 1), 0),
        (4 * eighth, (0, 0), (1, 1), 1),
    ]
    X = np.concatenate([rng.normal(mean, deviation, size=(n, 2)) for n, mean, deviation, _ in parts])
    y = np.repeat([label for *_, label in parts], [n for n, *_ in parts])
    order = rng.permutation(len(y))
    return X[order], y[order]
