"""Columns: cells of every kind of table to codes, and back."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kernelpool.errors import ColumnWarning, KernelpoolError
from kernelpool.tables.columns import MOST_INDICATORS, Columns

nan = np.nan
CELLS = {
    "age": [40, 50, None, 20],
    "town": ["Athens", None, "Volos", "Athens"],
    "married": [True, False, True, None],
    "income": [1.5, 2.5, 3.5, None],
}
CODES = np.array([[40, 0, 1, 1.5], [50, nan, 0, 2.5], [nan, 1, 1, 3.5], [20, 0, nan, nan]])


def tables():
    frame = pd.DataFrame({name: pd.array(cells) for name, cells in CELLS.items()})
    objects = np.array([*CELLS.values()], dtype=object).T
    found = {
        "pandas": frame,
        "objects": frame.astype(object),
        "categories": frame.astype({"town": "category"}),
        "other categories": frame.astype({"town": pd.CategoricalDtype(["Volos", "x", "Athens"])}),
        "arrow": pa.table(CELLS),
        "dictionaries": pa.table({**CELLS, "town": pa.array(CELLS["town"]).dictionary_encode()}),
        "array": objects,
        "list": objects.tolist(),
    }
    try:
        import polars
    except ImportError:
        return found
    return {**found, "polars": polars.DataFrame(CELLS)}


@pytest.mark.parametrize("kind", tables())
def test_tables_of_every_kind_have_the_same_codes(kind):
    table = tables()[kind]
    columns = Columns.learn(table)
    assert [None if c is None else c.tolist() for c in columns.categories] == [
        None,
        ["Athens", "Volos"],
        ["False", "True"],
        None,
    ]
    assert columns.levels == (0, 3, 3, 0)
    assert columns.names == (None if kind in ("array", "list") else tuple(CELLS))
    assert_array_equal(columns.encode(table), CODES)


@pytest.mark.parametrize("kind", tables())
def test_what_leaves_is_a_table_of_the_same_kind(kind):
    table = tables()[kind]
    columns = Columns.learn(table)
    back = columns.decode(columns.encode(table))
    assert type(back) is (np.ndarray if kind == "list" else type(table))
    assert_array_equal(Columns.learn(back).encode(back), CODES)
    if kind == "categories":
        assert back["town"].cat.categories.tolist() == ["Athens", "Volos"]
    if kind == "pandas":
        assert columns.decode(CODES[:1]).dtypes[["married", "age"]].tolist() == [bool, np.int64]


def test_whole_numbers_stay_whole_and_within_their_range():
    """Where a model made them; known cells are as they are."""
    for kind in ("pandas", "arrow"):
        columns = Columns.learn(tables()[kind])
        made = np.array([[12.3, 0, 0, 9.7], [33.4, 1, 1, 2.2]])
        assert_array_equal(columns.rounded(made)[:, [0, 3]], [[20, 9.7], [33, 2.2]])
        known = np.array([[nan, 0, nan, 1.5], [99, 0, 0, nan]])
        found = columns.encode(columns.imputed(columns.decode(known), known, made))
        assert_array_equal(found, [[20, 0, 0, 1.5], [99, 0, 0, 2.2]])


def test_imputed_cells_have_the_type_of_their_column():

    def of_cells(single, large, count, cell, nullable, ordered, number, text):
        return pd.DataFrame(
            {
                "single": np.array([0.1, single, 0.3], np.float32),
                "large": pd.array([2**53 + 1, large, 3], "Int64"),
                "count": pd.array([1, count, 2], "Int64"),
                "object": [True, cell, False],
                "nullable": pd.array([True, nullable, False], "boolean"),
                "ordered": pd.Categorical(["low", ordered, "high"], ["low", "high"], ordered=True),
                "numbers": pd.Categorical([4, number, 5]),
                "text": [" a", text, "b"],
            },
            index=[5, 3, 9],
        )

    frame = of_cells(nan, *[None] * 6, "")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    columns = Columns.learn(frame, [2, 3, 4, 5, 6, 7])
    made = np.array([[0.5, 7, 0, 1, 1, 0, 1, 0]] * 3)
    cells = [0.5, 7, 1, True, True, "high", 5, "a"]
    expected = of_cells(*cells).astype(frame.dtypes)
    for learned in (columns, Columns.learn(table, [2, 3, 4, 5, 6, 7])):
        found = learned.imputed(frame, learned.encode(frame), made)
        pd.testing.assert_frame_equal(found, expected)
    found = columns.imputed(table, columns.encode(table), made)
    assert found.schema.types == table.schema.types
    assert [column[1].as_py() for column in found.columns] == cells


def test_numbers_stay_as_they_are():
    x = np.array([[1.0, nan], [2.0, 3.0]])
    columns = Columns.learn(x)
    assert columns.levels == (0, 0)
    assert columns.decode(x) is x
    assert columns.indicators(x) is x
    assert Columns.learn(x.tolist()).levels == Columns.learn(np.ones((2, 2), bool)).levels == (0, 0)


def test_another_value_has_the_code_after_the_last_and_no_name():
    columns = Columns.learn(tables()["pandas"])
    strange = tables()["pandas"].assign(town=["Mars", "Athens", None, "Venus"])
    assert_array_equal(columns.encode(strange)[:, 1], [2, 0, nan, 2])
    assert columns.unknown(strange) == {"town": 2, "married": 0}
    assert columns.decode(columns.encode(strange))["town"].isna().tolist() == [1, 0, 1, 1]
    with pytest.warns(
        ColumnWarning, match=r"'married'.*found 'no', 'yes', expected 'False', 'True"
    ):
        columns.encode(strange.assign(married=["yes", "no", None, "no"]))


def test_columns_are_named_counted_or_marked():
    x = np.array([[1.0, 3.0], [2.0, 3.0], [1.0, nan], [1.5, 5.0]])
    for given_ in ([1], [False, True]):
        columns = Columns.learn(x, given_)
        assert columns.categories[0] is None
        assert columns.categories[1].tolist() == ["3", "5"]
        assert_array_equal(columns.encode(x)[:, 1], [0, 0, nan, 1])
    assert Columns.learn(x, columns) is columns
    frame = tables()["pandas"]
    assert Columns.learn(frame, ["age", 1, "married"]).levels == (4, 3, 3, 0)
    with pytest.raises(KernelpoolError, match="must be positions below 2; got 'town'"):
        Columns.learn(x, ["town"])
    with pytest.raises(KernelpoolError, match="must mark each of the 2 columns of X; got 1 marks"):
        Columns.learn(x, [True])
    with pytest.raises(KernelpoolError, match="Column 'town' of X must hold numbers; row 0 holds"):
        Columns.learn(frame, ["married"]).encode(frame)
    with pytest.raises(ValueError, match="X has 3 features; the model was fitted to 4"):
        Columns.learn(frame).encode(frame.to_numpy(object)[:, :3])


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_dates_are_neither_categories_nor_numbers(kind):
    frame = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=5)})
    table = frame if kind == "pandas" else pa.Table.from_pandas(frame)
    with pytest.raises(KernelpoolError, match="Column 'day' of X holds dates"):
        Columns.learn(table).encode(table)


def test_codes_of_a_cell_do_not_depend_on_the_cells_beside_it():
    """True equals 1 in Python, and 1.0 is the category of 1."""
    cells = np.array([[1], [True], ["1"], [1.0], ["True"], [None], [2.5]], dtype=object)
    columns = Columns.learn(cells)
    assert columns.categories[0].tolist() == ["1", "2.5", "True"]
    together = columns.encode(cells)
    assert_array_equal(together[:, 0], [0, 2, 0, 0, 2, nan, 1])
    alone = [columns.encode(cells[i : i + 1])[0] for i in range(len(cells))]
    assert_array_equal(alone, together)


def test_encoded_rows_pass_as_they_are():
    columns = Columns.learn(tables()["pandas"]).of_codes()
    assert columns.names is None
    assert columns.encode(CODES) is CODES
    assert columns.decode(CODES) is CODES
    assert Columns.learn(tables()["pandas"]).select([1, 3]).levels == (3, 0)


def test_indicators_of_two_categories_lie_one_apart():
    columns = Columns.learn(tables()["pandas"])
    x = np.nan_to_num(CODES)
    z = columns.indicators(x)
    assert columns.sources.tolist() == [0, 3, 1, 1, 2, 2]
    assert_array_equal(z[:, :2], x[:, [0, 3]])
    assert ((z[0, 2:4] - z[2, 2:4]) ** 2).sum() == pytest.approx(1)
    other = columns.indicators(np.array([[0, 2, 2, 0], [0, nan, 0, 0]]))
    assert_array_equal(other[0, 2:], 0)
    assert_array_equal(other[1, 2:4], nan)
    many = Columns((np.array([f"{i:04d}" for i in range(500)], object),))
    wide = many.indicators(np.arange(501.0)[:, None])
    assert wide.shape == (501, MOST_INDICATORS)
    assert not wide[500].any()


cell = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_infinity=False), st.text()
)


@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_any_cells_come_back_as_text(rows):
    table = np.empty((len(rows), 2), dtype=object)
    table[:] = rows
    columns = Columns.learn(table, [0, 1])
    x = columns.encode(table)
    back = columns.decode(x)
    assert_array_equal(columns.encode(back), x)
    missing = [[c is None or c != c or not str(c).strip() for c in row] for row in rows]
    assert_array_equal(np.isnan(x), missing)
