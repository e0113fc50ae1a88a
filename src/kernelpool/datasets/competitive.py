"""The pictures of the competitive-neurons paper: an open, a closed and a crossed boundary.

K. Sridharan, M. J. Beal and V. Govindaraju, "Competitive mixtures of simple neurons", figure 2 and section 4. Their
classes 1 and 2 are 0 and 1 here. Row numbers and class shares are not printed; ours are equal.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import KernelpoolError
from .gaussians import Part, draw, shuffled, split

RING_RADIUS = 2.0
"""Mean distance of the ring from the origin."""

RING_DEVIATION = 0.5
"""Standard deviation of that distance."""


def make_one_against_two(n_samples: int = 400, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw one Gaussian against two beside it (competitive neurons, figure 2a).

    Class 0 is N((0, 0), I), class 1 half and half of N((2, 0), I) and N((0, 2), I): all of it printed in the paper, which
    separates them by two neurons. Half of the rows belong to each class. No classifier errs less than 20.0 %.

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
    parts = [Part(0, 0.5, (0, 0), (1, 1)), Part(1, 0.25, (2, 0), (1, 1)), Part(1, 0.25, (0, 2), (1, 1))]
    return draw(parts, n_samples, random_state)


def make_ring(n_samples: int = 400, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw a disc inside a ring (competitive neurons, figure 2b).

    Class 0 is N((0, 0), I). Class 1 lies around it at every angle alike, at a distance from the origin that is N(2, 0.5²).
    Half of the rows belong to each class. The best boundary is a circle of radius 1.50, and errs on 24.1 % of the rows.
    (Beyond a radius of 3.55 the tail of class 0 would win again; one row in 700 lies there.)

    The paper prints: class 0, that class 1 surrounds it "in a circular fashion", the boundary's radius 1.5, and that four
    neurons come close to it. It leaves open how class 1 is spread; ours is the round choice that puts the boundary there.

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
    distance, angle = rng.normal(RING_RADIUS, RING_DEVIATION, size=n_ring), rng.uniform(0, 2 * np.pi, size=n_ring)
    ring = distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return shuffled(np.concatenate([disc, ring]), np.repeat([0, 1], [n_disc, n_ring]), rng)


def make_xor(n_samples: int = 400, random_state: Any = None, *, deviation: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Draw exclusive or, with noise (competitive neurons, figures 2c and 2d).

    Gaussians of the given deviation at the corners (±1, ±1), a quarter of the rows each; class 1 where the signs differ.
    The axes are the best boundary, and err on 2q(1 - q) of the rows with q = Phi(-1 / deviation): 0.09 % as given.

    The paper prints: the "XOR function", four neurons. It leaves open everything else.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, at least 4.
    random_state : int, RandomState instance or None, default=None
        Seed.
    deviation : float, default=0.3
        Standard deviation of the noise; with 0 all rows are corners.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows, shuffled.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    """
    if deviation < 0:
        raise KernelpoolError(f"deviation must not be negative; got {deviation}.")
    corners = [(-1, -1), (1, 1), (-1, 1), (1, -1)]
    parts = [Part(int(a != b), 0.25, (a, b), (deviation, deviation)) for a, b in corners]
    return draw(parts, n_samples, random_state)
