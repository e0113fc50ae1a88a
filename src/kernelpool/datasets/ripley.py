"""Ripley's synthetic problem: two classes in the plane, two Gaussians each.

B. D. Ripley, "Neural networks and related methods for classification", Journal of the Royal Statistical Society B 56(3), 1994.
"""

from typing import Any

import numpy as np

from .gaussians import Part, draw

BAYES_ERROR = 0.0893
"""Error of the best possible classifier, by quadrature. The 8.0 % usually quoted is its error on Ripley's test rows."""

_DEVIATION = (0.03**0.5, 0.03**0.5)


def make_ripley(n_samples: int = 250, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw Ripley's problem anew; `load_ripley` has his own rows.

    Each class is half and half of two Gaussians with covariance 0.03 I: centers (-0.7, 0.3) and (0.3, 0.3) for class 0, (-0.3,
    0.7) and (0.4, 0.7) for class 1. Half of the rows belong to each class. No classifier errs less than 8.93 % of the time.
    The 8.0 % usually quoted is what the best classifier makes of Ripley's own 1000 test rows: it errs on 80 of them.

    Parameters
    ----------
    n_samples : int, default=250
        Number of rows, at least 4. Ripley drew 250 for training and 1000 for testing.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.

    Examples
    --------
    >>> from kernelpool.datasets import make_ripley
    >>> X, y = make_ripley(random_state=0)
    >>> X.shape, int(y.sum())
    ((250, 2), 125)
    """
    parts = [
        Part(0, 0.25, (-0.7, 0.3), _DEVIATION),
        Part(0, 0.25, (0.3, 0.3), _DEVIATION),
        Part(1, 0.25, (-0.3, 0.7), _DEVIATION),
        Part(1, 0.25, (0.4, 0.7), _DEVIATION),
    ]
    return draw(parts, n_samples, random_state)
