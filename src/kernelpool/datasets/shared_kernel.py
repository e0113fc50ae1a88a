"""The pictures of the shared-kernel paper: where pooling kernels helps, and where it harms.

M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation", IEEE Transactions on Neural
Networks 12(5), 2001, figures 3-5. The paper prints no parameter of these data, only pictures and what two spherical kernels
make of them; centers, deviations and row numbers below are ours, chosen so that they make the same of ours.
"""

from typing import Any

import numpy as np

from ..errors import KernelpoolError
from .gaussians import Part, draw


def make_two_against_one(
    n_samples: int = 300, random_state: Any = None, *, distance: float = 2.5, height: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two Gaussians of one class against one of the other (shared kernels, figures 3 and 5).

    Class 0 has unit Gaussians at (0, 0) and (`distance`, 0), class 1 has one at (`distance`, `height`), a third of the rows
    each.

    - ``distance=2.5`` is figure 3: with two kernels, PRBF gives one to each class, while a mixture that ignores the labels
      pools class 1 with its neighbor.
    - ``distance=8`` is figure 5: now PRBF too pools class 1 with its neighbor, and one kernel a class (``sharing=0``) is
      better. The paper numbers the classes the other way round there.

    The paper prints: three Gaussians, two of one class and one of the other; in figure 5 the two are "widely separated". It
    leaves open where they lie, how wide they are and how many rows there are.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows, at least 3.
    random_state : int, RandomState instance or None, default=None
        Seed.
    distance : float, default=2.5
        Distance of the two Gaussians of class 0, in standard deviations.
    height : float, default=2.0
        Distance of class 1 from the nearer of them.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    third = 1 / 3
    parts = [
        Part(0, third, (0, 0), (1, 1)),
        Part(0, third, (distance, 0), (1, 1)),
        Part(1, third, (distance, height), (1, 1)),
    ]
    return draw(parts, n_samples, random_state)


def make_two_regions(
    n_samples: int = 400, random_state: Any = None, *, minority: float = 0.1, distance: float = 6.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two regions, each with many rows of one class and few of the other (shared kernels, figure 4).

    Unit Gaussians at (0, 0) and (`distance`, 0). Class 0 has the share `minority` of its rows in the second, class 1 in the
    first; half of the rows belong to each class. Two pooled kernels describe both classes exactly, one kernel a class
    cannot: it would take two each. No classifier errs less than about `minority`.

    The paper prints: "two distinct regions, where in each region there exist many patterns of one class and few patterns of the
    opposite class". It leaves open how many, and where the regions lie.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, at least 4.
    random_state : int, RandomState instance or None, default=None
        Seed.
    minority : float, default=0.1
        Share of a class that lies in the other's region, in [0, 0.5].
    distance : float, default=6.0
        Distance of the regions, in standard deviations.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    if not 0 <= minority <= 0.5:
        raise KernelpoolError(f"minority must lie in [0, 0.5]; got {minority}.")
    here, there = (0.0, 0.0), (distance, 0.0)
    parts = [
        Part(0, (1 - minority) / 2, here, (1, 1)),
        Part(0, minority / 2, there, (1, 1)),
        Part(1, minority / 2, here, (1, 1)),
        Part(1, (1 - minority) / 2, there, (1, 1)),
    ]
    return draw(parts, n_samples, random_state)
