"""Rows from tables and sources of batches, against the whole table, encoded at once."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool.data import source
from kernelpool.data.source import checked_rows, read, rows_of, warn_of_columns
from kernelpool.errors import ColumnWarning, KernelpoolError
from kernelpool.rows import StoredRows
from kernelpool.tables.columns import Columns

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=60),
        "kind": RNG.choice(["w", "v", "u", None], 60),
        "of": RNG.choice(["sick", "well"], 60),
        "times": RNG.integers(1, 4, 60),
    }
)
X = TABLE[["size", "kind"]]


def batches(table=TABLE, n_rows=17):
    return (table[start : start + n_rows] for start in range(0, len(table), n_rows))


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_batches_are_encoded_as_the_whole_table_is(in_memory, monkeypatch):
    monkeypatch.setattr(source, "IN_MEMORY", in_memory)
    columns, labels, store = read(batches(), "of", "times", None, "from_dtype")
    whole = Columns.learn(X)
    assert columns.names == whole.names
    assert columns.categories[1].tolist() == ["u", "v", "w"]
    assert labels.tolist() == TABLE["of"].drop_duplicates().tolist()  # as they come
    rows = rows_of(store, np.argsort(np.argsort(labels)), None)
    assert isinstance(rows, StoredRows) == (in_memory == 0)
    x = whole.encode(X)
    codes = (TABLE["of"] == "well").to_numpy()
    weight = TABLE["times"].to_numpy(float)
    table = np.column_stack([np.nan_to_num(x), codes])

    def moments(block):
        x = block.x if block.missing is None else np.where(block.missing.observed, block.x, 0)
        return np.column_stack([x, block.y]).T @ block.weight

    assert_allclose(rows.total(moments), table.T @ weight)


def test_columns_of_a_fitted_estimator_are_matched_by_name():
    columns = Columns.learn(X)
    shuffled = batches(TABLE[["of", "kind", "size"]])
    found, _, store = read(shuffled, "of", None, columns)
    assert found is columns
    assert_array_equal(store.in_memory()[0], columns.encode(X))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([X[:5], X[:5].assign(kind=1.0)], "'kind' of X holds categories in the first batch"),
        ([X[:0]], "X has 0 rows"),
    ],
)
def test_batches_that_do_not_fit_together(tables, message):
    with pytest.raises((KernelpoolError, ValueError), match=message):
        read(iter([(x, np.zeros(len(x))) for x in tables]), None, None, None, "from_dtype")


def test_missing_cells_of_every_kind_are_nan():
    expected = [[1.0, np.nan], [2.0, 3.0]]
    masked = np.ma.masked_invalid(np.array(expected))
    objects = np.array([[1, pd.NA], [2, 3]], object)
    nothing = np.array([[1, None], [2, 3]], object)
    frame = pd.DataFrame({"a": [1, 2], "b": pd.array([pd.NA, 3], dtype="Int64")})
    for X in (masked, objects, nothing, frame):
        columns = Columns.learn(X)
        assert_array_equal(checked_rows("Net", X, columns), expected)
    with pytest.raises(ValueError, match="infinity"):
        checked_rows("Net", np.array([[np.inf]]), Columns.numbers(1))


def test_columns_that_give_the_class_away_are_named():
    codes = np.arange(60) % 3
    x = np.column_stack([codes, RNG.permutation(codes), np.where(codes == 2, np.nan, codes)])
    columns = Columns((None,) * 3, ("same", "other", "gap"))
    with pytest.warns(ColumnWarning, match=r"'same' \(each of its values .*'gap' \(each") as caught:
        warn_of_columns(columns, 60, x, codes)
    assert "other" not in str(caught[0].message)
    for rows in (slice(49), slice(0, 60, 3)):  # too few rows, or one value
        warn_of_columns(columns, len(x[rows]), x[rows], codes[rows])
    warn_of_columns(Columns.numbers(3), 60, x, codes)  # of another network
