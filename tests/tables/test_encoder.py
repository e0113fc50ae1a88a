"""Tables of words as arrays of numbers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kernelpool.tables.encoder import TableEncoder, word_columns

COLUMNS = {
    "age": [40, 50, None, 20],
    "town": ["Athens", None, "Volos", "Athens"],
    "married": [True, False, True, None],
    "income": [1.5, 2.5, 3.5, None],
}


def tables():
    frame = pd.DataFrame({name: pd.array(cells) for name, cells in COLUMNS.items()})
    found = {
        "pandas": frame,
        "categories": frame.astype({"town": "category"}),
        "arrow": pa.table(COLUMNS),
    }
    try:
        import polars
    except ImportError:
        return found
    return {**found, "polars": polars.DataFrame(COLUMNS)}


@pytest.mark.parametrize("kind", ["pandas", "categories", "arrow", "polars"])
def test_words_are_told_by_their_type_and_missing_ones_are_missing(kind):
    if kind not in tables():
        pytest.skip("polars is not installed")
    table = tables()[kind]
    assert word_columns(table) == ["town", "married"]
    encoder = TableEncoder(word_columns(table)).fit(table)
    assert [words.tolist() for words in encoder.categories_] == [
        ["Athens", "Volos"],
        ["False", "True"],
    ]
    nan = np.nan
    expected = [
        [40, 1.5, 1, 0, 0, 1],
        [50, 2.5, nan, nan, 1, 0],
        [nan, 3.5, 0, 1, 0, 1],
        [20, nan, 1, 0, nan, nan],
    ]
    np.testing.assert_array_equal(encoder.transform(table), expected)
    assert encoder.unknown_words(table) == {"town": 0, "married": 0}
