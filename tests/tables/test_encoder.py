"""Tables of words as arrays of numbers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from kernelpool import SharedKernelClassifier
from kernelpool.tables.encoder import TableEncoder, word_columns

COLUMNS = {
    "age": [40, 50, None, 20],
    "town": ["Athens", None, "Volos", "Athens"],
    "married": [True, False, True, None],
    "income": [1.5, 2.5, 3.5, None],
}


def tables():
    frame = pd.DataFrame({name: pd.array(cells) for name, cells in COLUMNS.items()})
    found = {"pandas": frame, "categories": frame.astype({"town": "category"}), "arrow": pa.table(COLUMNS)}
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
    assert [words.tolist() for words in encoder.categories_] == [["Athens", "Volos"], ["False", "True"]]
    nan = np.nan
    expected = [
        [40, 1.5, 1, 0, 0, 1],
        [50, 2.5, nan, nan, 1, 0],
        [nan, 3.5, 0, 1, 0, 1],
        [20, nan, 1, 0, nan, nan],
    ]
    np.testing.assert_array_equal(encoder.transform(table), expected)
    assert encoder.unknown_words(table) == {"town": 0, "married": 0}


def test_a_data_frame_goes_through_without_a_line_of_preprocessing():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300) + y),
            "town": [None if rng.random() < 0.2 else rng.choice(["a", "b"], p=[0.9, 0.1] if k else [0.2, 0.8]) for k in y],
        }
    )
    model = make_pipeline(TableEncoder(word_columns(table)), SharedKernelClassifier.prbf(2, indicators="auto", random_state=0))
    model.fit(table[:200], y[:200])
    assert model[-1].indicator_groups_.tolist() == [-1, 0, 0]
    assert model.score(table[200:], y[200:]) > 0.75
    new = pd.DataFrame({"age": [0.5], "town": ["never seen"]})
    np.testing.assert_allclose(model.predict_proba(new).sum(), 1)
