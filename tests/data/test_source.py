"""Missing cells and warnings of columns. (Batches are tested in `rows/test_stored.py`.)"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from kernelpool.data.source import checked_rows, warn_of_columns
from kernelpool.errors import ColumnWarning
from kernelpool.tables.columns import Columns


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
