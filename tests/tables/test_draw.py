"""A draw is what its definition says, whatever the rows are and however they are cut."""

from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool.arrays import splitmix64
from kernelpool.tables.draw import DRAWN_OF_CLASS, Draw

N = 60_000
MOST = 20_000
RNG = np.random.default_rng(0)
LABELS = np.array(["common", "other", "rare", "few"])[
    np.searchsorted([0.7, 0.94, 0.999], RNG.random(N))
]
WEIGHT = RNG.uniform(0.5, 2, N)


def naive(position):
    """SplitMix64 in whole numbers of Python (Steele, Lea & Flood 2014)."""
    z = (position + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@pytest.fixture(scope="module")
def expected():
    """Positions of the smallest keys of all rows and of each class."""
    order = np.array(sorted(range(N), key=naive))
    of_class = [order[LABELS[order] == k][:DRAWN_OF_CLASS] for k in np.unique(LABELS)]
    return np.unique(np.concatenate([order[:MOST], *of_class]))


def test_the_hash_gives_its_published_numbers():
    state = np.array([1234567, (1234567 + 0x9E3779B97F4A7C15) % 2**64], np.uint64)
    published = [6457827717110365317, 3203168211198807973]
    assert splitmix64(state.view(np.int64)).view(np.uint64).tolist() == published


def arrays(at):
    return (np.column_stack([at, at]), None), LABELS[at]


def frames(at):
    return pd.DataFrame({"at": at}), LABELS[at].astype(object)


def arrow(at):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"at": at, "label": LABELS[at]})
    return table, table["label"]


def positions_in(rows):
    return rows[0][:, 0] if isinstance(rows, tuple) else np.asarray(rows["at"])


@pytest.mark.parametrize("make", [arrays, frames, arrow], ids=lambda make: make.__name__)
@pytest.mark.parametrize("size", [N, 7001])
def test_the_rows_with_the_smallest_keys_are_drawn_from_any_parts(make, size, expected):
    draw = Draw(MOST)
    parts = np.split(np.arange(N), range(size, N, size))
    for at in parts:
        rows, labels = make(at)
        draw.add(rows, labels)
    drawn = draw.drawn()
    assert_array_equal(drawn.positions, expected)
    assert_array_equal(positions_in(drawn.rows), expected)
    assert draw.n_rows == N
    # parts on other machines, in any order, that know how many rows there are in all
    of_parts = [Draw(MOST) for _ in parts]
    for part, at in zip(of_parts, parts, strict=True):
        rows, labels = make(at)
        part.add(rows, labels, first=at[0])
        part.of_whole(N)
    sent = sum(len(piece.position) for part in of_parts for piece in part.pieces)
    assert sent < 1.2 * MOST + 4 * DRAWN_OF_CLASS * len(parts)
    merged = reduce(add, of_parts[::-1]).drawn()
    assert_array_equal(merged.positions, expected)
    assert_allclose(merged.weight, drawn.weight, rtol=1e-12)
    assert_array_equal(positions_in(merged.rows), expected)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_weights_make_classes_as_common_as_in_the_whole(weight, expected):
    draw = Draw(MOST)
    draw.add(np.arange(N), LABELS, weight)
    drawn = draw.drawn()
    own = np.ones(N) if weight is None else weight
    labels = LABELS[expected]
    assert sum(labels == "few") == sum(LABELS == "few")  # a class of 0.1 % keeps all of its rows
    for k in np.unique(LABELS):
        share = own[k == LABELS].sum() / own.sum()
        assert drawn.weight[labels == k].sum() / drawn.weight.sum() == pytest.approx(share)
        of_class = drawn.weight[labels == k] / own[expected][labels == k]
        assert_allclose(of_class, of_class[0])  # rows of a class keep their proportions
    assert drawn.weight.sum() == pytest.approx(own[expected].sum())


def test_where_all_rows_fit_they_are_as_they_were():
    draw = Draw(N)
    for at in np.split(np.arange(N), 4):
        draw.add(pd.DataFrame({"at": at}), LABELS[at])
    drawn = draw.drawn()
    assert drawn.weight is None
    assert_array_equal(drawn.rows["at"], np.arange(N))
    draw = Draw(N)
    draw.add(np.arange(N), None, WEIGHT)
    assert_array_equal(draw.drawn().weight, WEIGHT)


def test_missing_labels_are_one_group_and_no_labels_another():
    labels = np.array(["a", None, np.nan, pd.NA, "b"], object)
    draw = Draw(10)
    draw.add(np.arange(5), labels)
    draw.add(np.arange(2), np.array([1.0, np.nan]))
    assert draw.class_weight.tolist() == [1, 4, 1, 1]
    draw = Draw(2)
    draw.add(np.arange(5))
    assert len(draw.drawn().positions) == 2
    assert_allclose(draw.drawn().weight, 1)


def test_many_classes_do_not_crowd_out_the_draw():
    labels = np.arange(N) // 2
    draw = Draw(MOST)
    draw.add(np.arange(N), labels)
    assert MOST <= len(draw.drawn().positions) <= 1.25 * MOST
