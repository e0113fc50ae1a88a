"""Rows of files and frames, missing cells and warnings of columns. (Batches are tested in
`rows/test_stored.py`.)
"""

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernelpool import ParzenClassifier, RejectClassifier, SharedKernelClassifier
from kernelpool.data.source import checked_rows, labeled_batches, warn_of_columns
from kernelpool.errors import ColumnWarning, KernelpoolError, TableError
from kernelpool.tables import draw, files
from kernelpool.tables.columns import Columns
from kernelpool.text import is_missing


def test_columns_that_give_the_class_away_are_named():
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 3
    x = np.column_stack([codes, rng.permutation(codes), np.where(codes == 2, np.nan, codes)])
    columns = Columns((None,) * 3, ("same", "other", "gap"))
    with pytest.warns(ColumnWarning, match=r"'same' \(each of its values .*'gap' \(each") as caught:
        warn_of_columns(columns, 60, x, codes)
    assert "other" not in str(caught[0].message)
    for rows in (slice(49), slice(0, 60, 3)):  # too few rows, or one value
        warn_of_columns(columns, len(x[rows]), x[rows], codes[rows])
    warn_of_columns(Columns.numbers(3), 60, x, codes)  # of another network


def test_missing_cells_among_objects_are_nan():
    X = np.array([[1, pd.NA], [2, None]], object)
    assert_array_equal(checked_rows("Net", X, Columns.learn(X)), [[1, np.nan], [2, np.nan]])


# -- models of files -------------------------------------------------------------------------------

MODELS = {
    "mixture": SharedKernelClassifier(2, training="em", random_state=0),
    "parzen": ParzenClassifier(random_state=0),
}
WORDS = {
    "zip codes": ["90210-1", "90210", "02134"],
    "exponents": ["A", "1e3", "7"],
    "leading zeros": ["A", "01", "02"],
    "booleans": ["maybe", "true", "false"],
    "hours": ["A", "12:30", "12:31"],
    "long integers": ["A", "12345678901234567890", "12345678901234567891"],
    "hexadecimal": ["A", "0x10", "0x11"],
    "whole numbers": ["A", "1", "2"],
    "dates": ["soon", "2024-01-31", "2024-02-01"],
}


def table_of(words, n=200):
    """The first word goes with class yes."""
    rng = np.random.default_rng(0)
    c = rng.choice(words, n)
    yes = (c == words[0]) ^ (rng.random(n) < 0.1)
    return pd.DataFrame({"x": rng.normal(size=n), "c": c, "t": np.where(yes, "yes", "no")})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", WORDS)
def test_a_part_of_a_file_is_read_as_the_whole_by_the_columns_of_the_model(tmp_path, kind, name):
    table = table_of(WORDS[kind])
    is_part = table["c"] != WORDS[kind][0]
    whole, part = tmp_path / "whole.csv", tmp_path / "part.csv"
    table.to_csv(whole, index=False)
    table[is_part].to_csv(part, index=False)
    model = clone(MODELS[name]).fit(whole, "t")
    assert model.columns_.categories[1].tolist() == sorted(WORDS[kind])
    found = model.predict_proba(whole)
    assert_allclose(model.predict_proba(part), found[is_part], rtol=1e-12)
    assert_array_equal(model.predict_proba(table[["c", "x"]][["x", "c"]]), found)
    in_memory = clone(model).fit(table[["x", "c"]].astype({"c": "category"}), table["t"])
    assert_array_equal(in_memory.predict_proba(table[["x", "c"]]), found)
    assert model.score(part, "t") == np.mean(model.predict(part) == table["t"][is_part])


@pytest.mark.parametrize("most_cells", [100, draw.MOST_CELLS])
def test_a_mixture_learns_the_kinds_of_all_rows(tmp_path, monkeypatch, most_cells):
    """From a file that is larger than memory, too: labels, and cells behind the first block."""
    monkeypatch.setattr(draw, "MOST_CELLS", most_cells)
    monkeypatch.setattr(files, "BLOCK", 1000)
    table = table_of(["1", "2"]).assign(n=[f"{i % 30}" for i in range(200)], t=[0, 1] * 100)
    table.loc[199, ["c", "n", "t"]] = ["A", "?", 1.0]
    table.to_csv(tmp_path / "t.csv", index=False)
    typed = table.assign(n=pd.to_numeric(table["n"], "coerce")).astype({"c": "category"})
    model = clone(MODELS["mixture"])
    labels = typed.pop("t")
    expected = clone(model).fit(typed, labels).predict_proba(typed)
    model.fit(tmp_path / "t.csv", "t")
    for rows in (typed, tmp_path / "t.csv"):
        assert_allclose(model.predict_proba(rows), expected, rtol=1e-6)
    assert model.columns_.categories[1].tolist() == ["1", "2", "A"]
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore::kernelpool.errors.ColumnWarning")
def test_columns_that_are_left_out_are_named_and_not_asked_for(tmp_path):
    table = table_of(["a", "b"]).assign(id=range(200), name=[f"n{i}" for i in range(200)])
    table.to_csv(tmp_path / "t.csv", index=False)
    for model in map(clone, MODELS.values()):
        with pytest.warns(ColumnWarning, match=r"left out: 'id' \(it counts the rows\); 'name'"):
            model.fit(tmp_path / "t.csv", "t")
        assert model.feature_names_in_.tolist() == ["x", "c"]
        assert len(model.predict(tmp_path / "t.csv")) == 200
        model.set_params(categorical_features=["c", "name"])
        with pytest.warns(ColumnWarning, match="nearly every row"):
            model.fit(tmp_path / "t.csv", "t")
        assert model.feature_names_in_.tolist() == ["x", "c", "name"]


def test_what_cannot_be_learned_from_a_file_is_named_with_the_way_out(tmp_path):
    path = tmp_path / "t.csv"
    table = table_of([f"{i}" for i in range(30)])
    table.loc[77, "c"] = "oops"
    table.to_csv(path, index=False)
    wrapped = RejectClassifier(clone(MODELS["parzen"]))
    for model in (*map(clone, MODELS.values()), wrapped):
        with pytest.raises(TableError, match="row 78, column 'c': 'oops'"):
            model.fit(path, "t")
    wrapped.set_params(estimator__categorical_features=["c"])
    assert wrapped.fit(path, "t").predict(path).shape == (200,)
    table["c"] = 1.0
    table.loc[5, "t"] = "?"
    table.to_csv(path, index=False)
    for model in map(clone, MODELS.values()):
        with pytest.raises(ValueError, match="1 of 200 labels are missing"):
            model.fit(path, "t")


@pytest.mark.parametrize(
    "make", [pa.table, pa.RecordBatch.from_pydict, pd.DataFrame, polars.DataFrame]
)
def test_tables_of_every_library_name_their_labels_and_weights(make):
    cells = {"x": [1.0, 2, 3], "t": ["u", None, "v"], "w": [1, 2, 3]}
    for source in (make(cells), [make(cells)]):
        (batch,) = labeled_batches(source, "t", "w")
        assert_array_equal(np.asarray(batch[0]), [[1], [2], [3]])
        assert [None if is_missing(label) else label for label in batch[1]] == cells["t"]
        assert batch[2].tolist() == cells["w"]


def test_part_of_a_folder_without_a_readable_number(tmp_path):
    """Its cells are missing, and counted in one warning, as on the command line."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "z": rng.normal(size=40)})
    model = ParzenClassifier(random_state=0).fit(frame, frame["x"] > 0)
    frame[:30].to_csv(tmp_path / "a.csv", index=False)
    frame[30:].assign(x="oops").to_csv(tmp_path / "b.csv", index=False)
    with pytest.warns(ColumnWarning, match="10 cells that cannot be read .* 'x' 10") as caught:
        found = model.predict_proba(tmp_path)
    assert len(caught) == 1
    frame.loc[30:, "x"] = np.nan
    assert_allclose(found, model.predict_proba(frame), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("method", ["impute", "explain"])
def test_a_path_where_rows_must_be_in_memory(method):
    frame = pd.DataFrame({"x": np.arange(20.0), "c": ["a", "b"] * 10})
    model = SharedKernelClassifier(2, training="em", random_state=0).fit(frame, frame["c"])
    with pytest.raises(KernelpoolError, match="rows in memory here; got the path 'new"):
        getattr(model, method)("new.csv")
