"""Validation as statistics over rows: the same on every backend."""

import numpy as np
import pytest

from kernelpool.data.door import training_data

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)) * [1, 10, 100] + 1e4
Y = np.resize(["a", "b", "?"], 90)
WEIGHT = RNG.uniform(0, 2, size=90)
WEIGHT[:9] = 0


def at_home(home, x, y, weight):
    if home == "numpy":
        return x, y, weight
    if home == "array_api_strict":
        return pytest.importorskip(home).asarray(x), y, weight
    da = pytest.importorskip("dask.array")
    return tuple(da.from_array(a, chunks=(40, *a.shape[1:])) for a in (x, y, weight))


HOMES = ["numpy", "array_api_strict", "dask"]


@pytest.mark.parametrize("home", HOMES)
def test_what_is_learned_of_rows_is_what_numpy_says(home):
    data = training_data(*at_home(home, X, Y, WEIGHT), name="", unlabeled="?")
    weight = WEIGHT
    assert data.classes.tolist() == ["a", "b"]
    np.testing.assert_allclose(data.class_weight, [weight[Y == "a"].sum(), weight[Y == "b"].sum()])
    assert data.unlabeled_weight == pytest.approx(weight[Y == "?"].sum())
    assert data.n_rows == 81
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(data.scale.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(
        data.scale.variance, np.average((X - mean) ** 2, axis=0, weights=weight), rtol=1e-9
    )
