"""Generators of the papers' artificial problems, most of which are mixtures of Gaussians with
labels; more are in `kernelpool.datasets`.

- M. K. Titsias and A. C. Likas, "Shared kernel models for class conditional density estimation",
  IEEE Transactions on Neural Networks 12(5), 2001, figures 3-5. The paper prints no parameter of
  these data, only pictures and what two spherical kernels make of them; centers, deviations and row
  numbers below are ours, chosen so that they make the same of ours.
- A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural
  networks" (EM-Log and EM-Log-Link), figures 3 and 4. The paper prints row numbers and errors, but
  neither centers nor covariances; those below are ours.
- K. Sridharan, M. J. Beal and V. Govindaraju, "Competitive mixtures of simple neurons", figure 2
  and section 4. Their classes 1 and 2 are 0 and 1 here. Row numbers and class shares are not
  printed; ours are equal.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelpool.datasets.generators import Part, draw, shuffled, split
from kernelpool.errors import KernelpoolError

RING_RADIUS = 2.0
"""Mean distance of the ring from the origin."""

RING_DEVIATION = 0.5
"""Standard deviation of that distance."""


def make_two_against_one(
    n_samples: int = 300, random_state: Any = None, *, distance: float = 2.5, height: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two Gaussians of one class against one of the other (shared kernels, figures 3 and 5).

    Class 0 has unit Gaussians at (0, 0) and (`distance`, 0), class 1 has one at (`distance`,
    `height`), a third of the rows each.

    - ``distance=2.5`` is figure 3: with two kernels, PRBF gives one to each class, while a mixture
      that ignores the labels pools class 1 with its neighbor.
    - ``distance=8`` is figure 5: now PRBF too pools class 1 with its neighbor, and one kernel a
      class (``sharing=0``) is better. The paper numbers the classes the other way round there.

    The paper prints: three Gaussians, two of one class and one of the other; in figure 5 the two
    are "widely separated". It leaves open where they lie, how wide they are and how many rows there
    are.

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
    """Draw two regions, each with many rows of one class and few of the other (shared kernels,
    figure 4).

    Unit Gaussians at (0, 0) and (`distance`, 0). Class 0 has the share `minority` of its rows in
    the second, class 1 in the first; half of the rows belong to each class. Two pooled kernels
    describe both classes exactly, one kernel a class cannot: it would take two each. No classifier
    errs less than about `minority`.

    The paper prints: "two distinct regions, where in each region there exist many patterns of one
    class and few patterns of the opposite class". It leaves open how many, and where the regions
    lie.

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
    here = (0.0, 0.0)
    there = (distance, 0.0)
    parts = [
        Part(0, (1 - minority) / 2, here, (1, 1)),
        Part(0, minority / 2, there, (1, 1)),
        Part(1, minority / 2, here, (1, 1)),
        Part(1, (1 - minority) / 2, there, (1, 1)),
    ]
    return draw(parts, n_samples, random_state)


def make_ellipses(n_samples: int = 200, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw two elongated Gaussian classes, leaning apart (EM-Log, figure 3).

    Class 0 is a Gaussian at (-2, 0), class 1 one at (2, 0), both with standard deviations 0.3 and
    1; the long axis is turned by 30 degrees from the vertical, anticlockwise for class 0 and
    clockwise for class 1. Half of the rows belong to each class.

    The paper prints: two Gaussian classes, 100 rows each to train and 200 each to test,
    ellipsoidal, and no test error for k-means with least squares or for EM-Log-Link with four
    kernels after ten sweeps. It leaves open where they lie and how they are shaped. Ours are chosen
    so that the classes hardly touch: a straight line between them errs on about one row in 5000.

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


def make_strips(
    n_samples: int = 100, random_state: Any = None, *, angle: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw three thin parallel strips, the middle one of another class (EM-Log, figure 4).

    Class 0 is half and half of Gaussians at (0, 1) and (0, -1), class 1 is one at (0, 0), all with
    standard deviations 2 along the strip and 0.1 across it. Half of the rows belong to each class.
    Kernels that follow the strips separate the classes; round ones have to be many.

    The paper prints: 100 rows to train and 200 to test, six kernels, fifteen sweeps, 15 test errors
    for k-means with least squares and none for EM-Log-Link, which is at its best "when classes have
    different covariances with different orientations". It leaves open what the data are; `angle`
    gives the classes different orientations.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows, at least 3; the paper trains on 100 and tests on 200.
    random_state : int, RandomState instance or None, default=None
        Seed.
    angle : float, default=0.0
        Degrees by which the strips of class 0 are turned anticlockwise and that of class 1
        clockwise, from 0 to 45. They are shortened so that they would meet at 3.3 standard
        deviations.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    if not 0 <= angle <= 45:
        raise KernelpoolError(f"angle must lie in [0, 45]; got {angle}.")
    meeting = (
        1 / (2 * np.sin(np.deg2rad(angle))) if angle > 0 else np.inf
    )  # from the middle of a strip, along it
    thin = (min(2.0, float(meeting) / 3.3), 0.1)
    parts = [Part(0, 0.25, (0, y), thin, angle) for y in (1, -1)] + [
        Part(1, 0.5, (0, 0), thin, -angle)
    ]
    return draw(parts, n_samples, random_state)


def make_one_against_two(
    n_samples: int = 400, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one Gaussian against two beside it (competitive neurons, figure 2a).

    Class 0 is N((0, 0), I), class 1 half and half of N((2, 0), I) and N((0, 2), I): all of it
    printed in the paper, which separates them by two neurons. Half of the rows belong to each
    class. No classifier errs less than 20.0 %.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, at least 3.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    parts = [
        Part(0, 0.5, (0, 0), (1, 1)),
        Part(1, 0.25, (2, 0), (1, 1)),
        Part(1, 0.25, (0, 2), (1, 1)),
    ]
    return draw(parts, n_samples, random_state)


def make_ring(n_samples: int = 400, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw a disc inside a ring (competitive neurons, figure 2b).

    Class 0 is N((0, 0), I). Class 1 lies around it at every angle alike, at a distance from the
    origin that is N(2, 0.5²). Half of the rows belong to each class. The best boundary is a circle
    of radius 1.50, and errs on 24.1 % of the rows. (Beyond a radius of 3.55 the tail of class 0
    would win again; one row in 700 lies there.)

    The paper prints: class 0, that class 1 surrounds it "in a circular fashion", the boundary's
    radius 1.5, and that four neurons come close to it. It leaves open how class 1 is spread; ours
    is the round choice that puts the boundary there.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, at least 2.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    rng = check_random_state(random_state)
    n_disc, n_ring = split(n_samples, (0.5, 0.5), at_least=2)
    disc = rng.normal(size=(n_disc, 2))
    distance = rng.normal(RING_RADIUS, RING_DEVIATION, size=n_ring)
    angle = rng.uniform(0, 2 * np.pi, size=n_ring)
    ring = distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return shuffled(np.concatenate([disc, ring]), np.repeat([0, 1], [n_disc, n_ring]), rng)
