"""Generators of the papers' problems against their definitions, and the papers' pictures come true."""

import numpy as np
import pytest
from gaussian_mixtures import assert_draws, assert_seeded
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import kstest, norm

from papers.data.generators import (
    RING_DEVIATION,
    RING_RADIUS,
    make_ellipses,
    make_one_against_two,
    make_ring,
    make_strips,
    make_two_against_one,
    make_two_regions,
)

I2 = np.eye(2)
LEAN = np.deg2rad(30)
LONG = np.array([-np.sin(LEAN), np.cos(LEAN)])  # the vertical, turned anticlockwise
WIDE = np.array([np.cos(LEAN), np.sin(LEAN)])
LEFT = 1.0**2 * np.outer(LONG, LONG) + 0.3**2 * np.outer(WIDE, WIDE)
RIGHT = LEFT * [[1, -1], [-1, 1]]
THIN = np.diag([4, 0.01])
PARTS = {
    make_two_against_one: [
        (0, 1 / 3, (0, 0), I2),
        (0, 1 / 3, (2.5, 0), I2),
        (1, 1 / 3, (2.5, 2), I2),
    ],
    make_two_regions: [
        (0, 0.45, (0, 0), I2),
        (0, 0.05, (6, 0), I2),
        (1, 0.05, (0, 0), I2),
        (1, 0.45, (6, 0), I2),
    ],
    make_ellipses: [(0, 1 / 2, (-2, 0), LEFT), (1, 1 / 2, (2, 0), RIGHT)],
    make_strips: [(0, 1 / 4, (0, 1), THIN), (0, 1 / 4, (0, -1), THIN), (1, 1 / 2, (0, 0), THIN)],
    make_one_against_two: [(0, 1 / 2, (0, 0), I2), (1, 1 / 4, (2, 0), I2), (1, 1 / 4, (0, 2), I2)],
}
"""(label, share, mean, covariance) of every Gaussian, from the papers and docstrings."""


@pytest.mark.parametrize("make", PARTS, ids=lambda make: make.__name__)
def test_shares_moments_and_seeds(make):
    assert_draws(make, PARTS[make])


def test_ring():
    assert_seeded(make_ring)
    X, y = make_ring(100_000, random_state=0)
    assert np.bincount(y).tolist() == [50_000, 50_000]
    disc = X[y == 0]
    ring = X[y == 1]
    assert (
        kstest((disc**2).sum(axis=1) / 2, "expon").pvalue > 1e-4
    )  # squared length of a unit Gaussian, halved
    # A distance drawn below zero (one in 30,000) points the other way: its length is folded.
    fold = norm(2, 0.5)
    assert kstest(np.hypot(*ring.T), lambda r: fold.cdf(r) - fold.cdf(-r)).pvalue > 1e-4
    for part in (disc, ring):
        turn = np.arctan2(part[:, 1], part[:, 0]) / (2 * np.pi) + 0.5
        assert kstest(turn, "uniform").pvalue > 1e-4


def test_ring_has_the_papers_boundary():
    """Radius 1.5, printed; the error, the outer circle and what lies beyond it, as the docstring
    says.
    """

    def disc(r):
        return r * np.exp(-(r**2) / 2)

    def ring(r):
        return norm.pdf(r, RING_RADIUS, RING_DEVIATION) + norm.pdf(-r, RING_RADIUS, RING_DEVIATION)

    inner = brentq(lambda r: disc(r) - ring(r), 1, 2)
    outer = brentq(lambda r: disc(r) - ring(r), 3, 5)
    assert round(inner, 2) == 1.50
    assert round(outer, 2) == 3.55
    error = sum(
        0.5 * quad(lambda r: min(disc(r), ring(r)), a, b)[0]
        for a, b in [(0, inner), (inner, outer), (outer, 20)]
    )
    assert error == pytest.approx(0.241, abs=5e-4)
    beyond = 0.5 * (quad(disc, outer, 20)[0] + norm.sf(outer, RING_RADIUS, RING_DEVIATION))
    assert 1 / beyond == pytest.approx(700, rel=0.05)
