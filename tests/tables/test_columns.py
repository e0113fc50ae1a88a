"""Columns: cells of every kind of table to codes, and back."""

import sys
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kernelpool.errors import ColumnWarning, KernelpoolError
from kernelpool.tables.columns import MOST_INDICATORS, Columns, Found
from kernelpool.tables.kinds import MISSING

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


@pytest.mark.parametrize("kind", ["pandas", "other categories", "polars", "array"])
def test_pyarrow_is_not_needed(kind, monkeypatch):
    table = tables().get(kind)
    days = pd.DataFrame({"day": ["2024-01-31", "?"], "code": ["02134", None], "x": ["1e3", "2"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    if table is None:
        pytest.skip("polars is not installed")
    columns = Columns.learn(table)
    assert columns.levels == (0, 3, 3, 0)
    assert_array_equal(columns.encode(table), CODES)
    columns = Columns.learn(days)
    assert columns.kinds == ("date", "category", "number")
    assert_array_equal(columns.encode(days), [[19753, 0, 1000], [nan, nan, 2]])


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


STAMPS = [
    datetime(2024, 1, 31, tzinfo=UTC),
    datetime(1969, 12, 31, 18, 30, tzinfo=UTC),
    None,
    datetime(2024, 2, 29, 6, 0, 0, 250_000, UTC),
]
DAYS = np.array([np.nan if t is None else t.timestamp() / 86400 for t in STAMPS])


def dates():
    """The same days in tables of every kind."""
    naive = [t and t.replace(tzinfo=None) for t in STAMPS]
    text = [None if t is None else str(t) for t in naive]
    zone = timezone(timedelta(hours=-5))
    table = pa.table({"day": pa.array(naive, pa.timestamp("us"))})
    found = {
        "stamps": pd.DataFrame({"day": pd.to_datetime(naive)}),
        "zone": pd.DataFrame({"day": pd.to_datetime(STAMPS).tz_convert("Europe/Athens")}),
        "objects": pd.DataFrame({"day": pd.Series(naive, dtype=object)}),
        "text": pd.DataFrame({"day": text}),
        "text with zones": pd.DataFrame(
            {"day": [t and t.astimezone(zone).isoformat() for t in STAMPS]}
        ),
        "arrow": table,
        "arrow zone": pa.table({"day": pa.array(STAMPS, pa.timestamp("us", "Asia/Tokyo"))}),
        "array": np.array(naive, "datetime64[us]")[:, None],
        "array of text": np.array(["?" if t is None else t for t in text])[:, None],
        "list": [[t] for t in naive],
    }
    try:
        import polars
    except ImportError:
        return found
    return {**found, "polars": polars.from_arrow(table)}


@pytest.mark.parametrize("kind", dates())
def test_dates_are_days_since_1970_in_tables_of_every_kind(kind):
    table = dates()[kind]
    columns = Columns.learn(table)
    assert columns.kinds == ("date",)
    assert columns.levels == (0,)
    x = columns.encode(table)
    assert_array_equal(x[:, 0], DAYS)
    back = columns.decode(x)
    assert type(back) is (np.ndarray if kind == "list" else type(table))
    assert_array_equal(columns.encode(back), x)
    if columns.frame is not None:
        cells = pd.Series(pa.table(back)["day"].to_pylist())
        expected = pd.Series([t and t.replace(tzinfo=None) for t in STAMPS])
        assert_array_equal(cells.isna(), expected.isna())
        assert cells[~cells.isna()].tolist() == expected[~cells.isna()].tolist()
    for other in dates().values():
        assert_array_equal(columns.encode(other), x)
    assert columns.select([0]).kinds == columns.of_codes().kinds == ("date",)
    assert_array_equal(columns.encode(DAYS[:, None]), x)  # days may be counted
    if kind == "list":
        return
    completed = columns.imputed(table, x, np.full((4, 1), 19722.0))
    assert_array_equal(columns.encode(completed)[:, 0], np.where(np.isnan(DAYS), 19722, DAYS))
    if hasattr(table, "schema"):
        assert completed.schema == table.schema
    if isinstance(table, pd.DataFrame):
        assert completed.dtypes.tolist() == table.dtypes.tolist()


def test_days_without_hours_are_imputed_as_such():
    days = pa.table({"day": pa.array([19753, 19722, None], pa.date32())})
    columns = Columns.learn(days)
    x = columns.encode(days)
    assert_array_equal(x[:, 0], [19753, 19722, nan])
    made = columns.imputed(days, x, np.full((3, 1), 19740.4))
    assert made["day"].to_pylist()[2] == date(2024, 1, 18)
    assert made.schema == days.schema


def test_what_text_is_taken_for_is_said_once():
    table = pd.DataFrame({"a": ["1", "2"], "b": ["x", "y"], "c": [1.0, 2.0], "d": ["3", "4"]})
    columns = Columns.learn(table)
    with pytest.warns(ColumnWarning, match=r"reads as numbers: column 'a', column 'd'\. Name"):
        columns.warn_of_text(table)
    Columns.learn(table, ["a", "b", "d"]).warn_of_text(table)
    Columns.learn(table.to_numpy()).warn_of_text(table.to_numpy())


def test_words_of_the_user_are_remembered():
    table = pd.DataFrame({"x": ["1", "-99", "3"], "town": ["kA", "Volos", " kA"]})
    columns = Columns.learn(table, missing=["-99", "kA"])
    assert columns.missing == ("-99", "kA")
    assert columns.categories[1].tolist() == ["Volos"]
    expected = [[1, nan], [nan, 0], [3, nan]]
    assert_array_equal(columns.encode(table), expected)


def test_a_few_odd_cells_are_an_error_that_names_the_first():
    numbers = [f"{i}.5" for i in range(100)]
    frame = pd.DataFrame({"x": [*numbers, "1,081.5"]})
    match = r"'x' of X must hold numbers; row 100 holds '1,081\.5' \(a thousands separator\)\."
    with pytest.raises(KernelpoolError, match=match):
        Columns.learn(frame)
    assert Columns.learn(frame, ["x"]).levels == (102,)
    days = pd.DataFrame({"day": [*pd.date_range("2024-01-01", periods=50).astype(str), "soon"]})
    with pytest.raises(KernelpoolError, match="'day' of X must hold dates; row 50 holds 'soon'"):
        Columns.learn(days)


def test_cells_that_cannot_be_read_later_are_missing_and_counted():
    table = pd.DataFrame({"x": [1.5, 2.5, 3.5], "day": pd.to_datetime(["2024-01-31"] * 3)})
    columns = Columns.learn(table)
    new = pa.table({"x": ["1", "oops", "12 %"], "day": ["2024-01-31", "NA", "soon"]})
    with pytest.warns(ColumnWarning) as caught:
        x = columns.encode(new)
    assert_array_equal(x, [[1, 19753], [nan, nan], [nan, nan]])
    (message,) = (str(w.message) for w in caught)
    assert "column 'x' (2 cells such as 'oops')" in message
    assert "column 'day' (1 cell such as 'soon')" in message
    for wrong, match in (
        (
            {"x": ["a", "b"], "day": ["?", "?"]},
            "Column 'x' of X must hold numbers; row 0 holds 'a'",
        ),
        (
            {"x": ["1", "2"], "day": ["?", "b"]},
            "Column 'day' of X must hold dates; row 1 holds 'b'",
        ),
        ({"x": pd.to_datetime(["2024-01-31"]), "day": ["?"]}, "Column 'x' of X must hold numbers"),
    ):
        with pytest.raises(KernelpoolError, match=match):
            columns.encode(pd.DataFrame(wrong))


@pytest.mark.parametrize(
    "cells",
    [
        pd.to_timedelta([1, 2], "D"),
        pd.period_range("2024-01", periods=2, freq="M"),
        pd.Series([[1], [2]]),
        pd.Series([b"x", b"y"]),
        pd.Series([1j, 2j]),
        pa.array([1, 2], pa.time32("s")),
    ],
)
def test_what_no_model_takes_is_an_error(cells):
    table = pa.table({"x": cells}) if isinstance(cells, pa.Array) else pd.DataFrame({"x": cells})
    with pytest.raises(KernelpoolError, match="Column 'x' of X must hold numbers; row 0 holds"):
        Columns.learn(table)


def test_columns_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="unique column names, got:\n- 'a' 2 times"):
        Columns.learn(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))


def test_tables_of_other_libraries_come_as_arrow():
    class Capsule:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(CELLS).__arrow_c_stream__(requested_schema)

    columns = Columns.learn(Capsule())
    assert columns.names == tuple(CELLS)
    assert_array_equal(columns.encode(Capsule()), CODES)
    assert_array_equal(columns.encode(pa.table(CELLS).to_batches()[0]), CODES)


def test_types_of_other_libraries_are_read_as_their_cells():
    """Of unsigned codes -1 is none; columns of views cannot be filtered; Arrow's categories in
    pandas have no `cat`.
    """
    polars = pytest.importorskip("polars")
    towns = pa.array(["a", None, "b", "a"])
    numbers = ["1.5", "?", "2", "3"]
    frames = [
        polars.DataFrame({"c": polars.Series(towns.to_pylist(), dtype=polars.Categorical)}),
        pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(towns.dictionary_encode()))}),
        pa.table({"c": towns.dictionary_encode().cast(pa.dictionary(pa.uint64(), pa.string()))}),
        pa.table({"c": pa.array(numbers, pa.string_view())}),
        polars.DataFrame({"c": polars.Series([1, None, 2, 3], dtype=polars.Int128)}),
        pd.DataFrame({"c": pd.Series(["\ud800", None, "z", "\ud800"], dtype=object)}),
        pd.DataFrame(
            {"c": pd.Series(np.array(["1970-01-02", "NaT", "1970-01-03"], "M8[D]"), dtype=object)}
        ),
    ]
    codes = [[0, nan, 1, 0]] * 3 + [[1.5, nan, 2, 3], [1, nan, 2, 3], [1, nan, 0, 1], [1, nan, 2]]
    for frame, expected in zip(frames, codes, strict=True):
        assert_array_equal(Columns.learn(frame).encode(frame)[:, 0], expected)


def test_days_are_the_same_categories_in_tables_of_every_type():
    text = pd.DataFrame({"c": ["2024-01-31", None, "2024-02-01"]})
    stamps = text.astype("datetime64[us]")
    columns = Columns.learn(text, ["c"])
    for table in (stamps, stamps.astype("category"), pa.Table.from_pandas(stamps)):
        assert_array_equal(columns.encode(table)[:, 0], [0, nan, 1])
        assert_array_equal(Columns.learn(table, ["c"]).encode(text)[:, 0], [0, nan, 1])


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
@settings(max_examples=25, deadline=None)
def test_any_cells_come_back_as_text(rows):
    table = np.empty((len(rows), 2), dtype=object)
    table[:] = rows
    columns = Columns.learn(table, [0, 1])
    x = columns.encode(table)
    back = columns.decode(x)
    assert_array_equal(columns.encode(back), x)
    missing = [
        [c is None or c != c or (isinstance(c, str) and c.strip() in MISSING) for c in row]
        for row in rows
    ]
    assert_array_equal(np.isnan(x), missing)


def test_cells_that_were_not_expected_are_counted_batch_by_batch():
    columns = Columns.learn(pd.DataFrame({"x": [1.5, 2.5], "c": ["a", "b"]}))
    found = Found(np.zeros(2, int), np.zeros(2, int))
    columns.encode(pd.DataFrame({"x": ["1", "x", "?"], "c": ["a", "z", None]}), found)
    assert_array_equal(columns.encode(pd.DataFrame({"x": ["y"], "c": ["y"]}), found), [[nan, 2]])
    assert found.unreadable.tolist() == [2, 0]
    assert found.unknown.tolist() == [0, 2]
    assert (found.n_incomplete, found.n_rows) == (3, 4)
