"""The checks of a fit: statistics over rows are the same on every backend."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool.data.door import surveyed, training_data, validation_rows
from kernelpool.errors import KernelpoolError
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns

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
    assert_allclose(data.class_weight, [weight[Y == "a"].sum(), weight[Y == "b"].sum()])
    assert data.unlabeled_weight == pytest.approx(weight[Y == "?"].sum())
    assert data.n_rows == 81
    mean = np.average(X, axis=0, weights=weight)
    assert_allclose(data.scale.mean, mean, rtol=1e-12)
    assert_allclose(
        data.scale.variance, np.average((X - mean) ** 2, axis=0, weights=weight), rtol=1e-9
    )


def test_rows_of_one_class_are_surveyed_as_such():
    x = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    data = training_data(x, Y, WEIGHT, name="", unlabeled="?").as_one_class()
    rows = as_rows(x, np.zeros(90, int), WEIGHT)
    expected = surveyed(rows, np.zeros(1, int))
    assert_array_equal(data.rows.y, rows.y)
    for name in ("classes", "class_weight", "unlabeled_weight", "n_rows", "observed"):
        assert_allclose(getattr(data, name), getattr(expected, name))
    assert_allclose(data.scale.variance, expected.scale.variance)


def test_a_given_scale_is_kept_and_rows_are_counted():
    whole = surveyed(as_rows(X, np.arange(90) % 2), np.arange(2))
    part = surveyed(as_rows(X[:30], np.arange(30) % 2), np.arange(2), scale=whole.scale)
    assert part.scale is whole.scale
    assert part.class_weight.tolist() == [15, 15]
    assert part.row_weight == 1
    assert_array_equal(whole.class_share, [0.5, 0.5])


def test_the_order_of_rows_and_copies_do_not_matter_where_equal_rows_are_merged():
    weight = np.resize([0, 1, 2, 3], 90)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(90), weight))
    settings = {"name": "", "unlabeled": "?", "in_memory": True, "merge": True}
    data = training_data(X.astype(np.float32), Y, weight, **settings)
    copies = training_data(X[order].astype(np.float32), Y[order], **settings)
    assert data.rows.x.dtype == np.float64
    for name in ("x", "y", "weight"):
        assert_array_equal(getattr(data.rows, name), getattr(copies.rows, name))
    assert_array_equal(data.scale.mean, copies.scale.mean)
    assert_array_equal(data.scale.variance, copies.scale.variance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "Net requires y to be passed"),
        ({"sample_weight": np.where(Y == "a", 0, 1)}, "class 'a' has none"),
        ({"sample_weight": np.full(90, 1e-290)}, "must sum to a number between .*; got 9e-289"),
        ({"X": np.where(np.arange(3) == 1, np.nan, X)}, "Feature 1 of X is missing in every row"),
        ({"X": X[:1], "y": Y[:1]}, "minimum of 2 is required by Net"),
    ],
)
def test_what_cannot_be_trained_on(change, message):
    given = {"X": X, "y": Y, "name": "Net"} | change
    with pytest.raises(ValueError, match=message):
        training_data(**given)


def test_validation_rows_are_encoded_as_training_rows_are():
    frame = pd.DataFrame({"a": [1.0, 2.0], "k": ["u", "v"]})
    columns = Columns.learn(frame)
    given = frame[::-1], ["c", "b"], None, columns, np.array(["b", "c"]), "Net"
    for found, expected in zip(
        validation_rows(*given), ([[2, 1], [1, 0]], [1, 0], [1, 1]), strict=True
    ):
        assert_array_equal(found, expected)
    with pytest.raises(KernelpoolError, match="y_val must be given with X_val"):
        validation_rows(frame, None, *given[2:])
    with pytest.raises(ValueError, match="X_val has 3 features; X has 1"):
        validation_rows(X, Y, None, Columns.numbers(1), np.array(["b", "c"]), "Net")
