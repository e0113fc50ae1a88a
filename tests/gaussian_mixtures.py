"""Checks of generators that draw mixtures of Gaussians with labels."""

import numpy as np
from numpy.testing import assert_array_equal


def assert_draws(make, parts):
    """Counts are exact and moments within sampling error of `parts`: (label, share, mean,
    covariance) of every Gaussian. Rows follow the seed, and are shuffled.
    """
    n = 120_000
    X, y = make(n, random_state=0)
    assert X.shape == (n, 2)
    for label in (0, 1):
        gaussians = [(share, np.array(m), c) for k, share, m, c in parts if k == label]
        total = sum(share for share, *_ in gaussians)
        mean = sum(share * m for share, m, _ in gaussians) / total
        second = sum(share * (c + np.outer(m, m)) for share, m, c in gaussians) / total
        rows = X[y == label]
        assert len(rows) == round(total * n)
        # Six standard errors, estimated from the rows: one test in a hundred million would fail by
        # chance.
        error = 6 / np.sqrt(len(rows))
        assert np.all(np.abs(rows.mean(axis=0) - mean) < error * rows.std(axis=0) + 1e-12)
        products = rows[:, :, None] * rows[:, None, :]
        assert np.all(np.abs(products.mean(axis=0) - second) < error * products.std(axis=0) + 1e-12)
    assert_seeded(make)


def assert_seeded(make):
    X, y = make(random_state=3)
    again, labels = make(random_state=3)
    assert_array_equal(X, again)
    assert_array_equal(y, labels)
    assert not np.array_equal(X, make(random_state=4)[0])
    assert np.count_nonzero(np.diff(y)) > len(y) / 4  # sorted classes would change once
    assert set(np.unique(y)) == {0, 1}
