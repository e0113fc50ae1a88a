"""The pictures of the EM-Log paper: classes that are long and thin.

A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks" (EM-Log and
EM-Log-Link), figures 3 and 4. The paper prints row numbers and errors, but neither centers nor covariances; those below are
ours.
"""

from typing import Any

import numpy as np

from ..errors import KernelpoolError
from .gaussians import Part, draw


def make_ellipses(n_samples: int = 200, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw two elongated Gaussian classes, leaning apart (EM-Log, figure 3).

    Class 0 is a Gaussian at (-2, 0), class 1 one at (2, 0), both with standard deviations 0.3 and 1; the long axis is
    turned by 30 degrees from the vertical, anticlockwise for class 0 and clockwise for class 1. Half of the rows belong to
    each class.

    The paper prints: two Gaussian classes, 100 rows each to train and 200 each to test, ellipsoidal, and no test error for
    k-means with least squares or for EM-Log-Link with four kernels after ten sweeps. It leaves open where they lie and how
    they are shaped. Ours are chosen so that the classes hardly touch: a straight line between them errs on about one row in
    5000.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows, at least 2; the paper trains on 200 and tests on 400.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    parts = [Part(0, 0.5, (-2, 0), (0.3, 1), angle=30), Part(1, 0.5, (2, 0), (0.3, 1), angle=-30)]
    return draw(parts, n_samples, random_state)


def make_strips(n_samples: int = 100, random_state: Any = None, *, angle: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw three thin parallel strips, the middle one of another class (EM-Log, figure 4).

    Class 0 is half and half of Gaussians at (0, 1) and (0, -1), class 1 is one at (0, 0), all with standard deviations 2
    along the strip and 0.1 across it. Half of the rows belong to each class. Kernels that follow the strips separate the
    classes; round ones have to be many.

    The paper prints: 100 rows to train and 200 to test, six kernels, fifteen sweeps, 15 test errors for k-means with least
    squares and none for EM-Log-Link, which is at its best "when classes have different covariances with different
    orientations". It leaves open what the data are; `angle` gives the classes different orientations.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows, at least 3; the paper trains on 100 and tests on 200.
    random_state : int, RandomState instance or None, default=None
        Seed.
    angle : float, default=0.0
        Degrees by which the strips of class 0 are turned anticlockwise and that of class 1 clockwise, from 0 to 45. They are
        shortened so that they would meet at 3.3 standard deviations.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    if not 0 <= angle <= 45:
        raise KernelpoolError(f"angle must lie in [0, 45]; got {angle}.")
    meeting = 1 / (2 * np.sin(np.deg2rad(angle))) if angle > 0 else np.inf  # from the middle of a strip, along it
    thin = (min(2.0, float(meeting) / 3.3), 0.1)
    parts = [Part(0, 0.25, (0, y), thin, angle) for y in (1, -1)] + [Part(1, 0.5, (0, 0), thin, -angle)]
    return draw(parts, n_samples, random_state)
