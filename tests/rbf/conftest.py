"""Rows for networks of two and of three classes."""

import numpy as np
import pytest

from kernelpool.datasets import make_ripley


@pytest.fixture(scope="module")
def rows():
    return make_ripley(300, random_state=0)


@pytest.fixture(scope="module")
def three():
    """Three classes in features of very different units."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 360)
    X = np.column_stack([y == 1, y == 2, rng.normal(size=360)]) + rng.normal(0, 0.5, (360, 3))
    return X * [1000.0, 1.0, 0.01] + [5e4, 0.0, 3.0], np.array(["a", "b", "c"])[y]
