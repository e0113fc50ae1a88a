"""Encoders that put rare categories together: their table must have a place for every category."""

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

import kernelpool
from kernelpool.errors import ModelFileError


def test_a_table_of_rare_categories_that_is_too_short_is_refused(tmp_path):
    x = np.array([["a"]] * 5 + [["b"]] * 4 + [["c"], ["d"]], dtype=object)
    encoder = OneHotEncoder(min_frequency=3, sparse_output=False).fit(x)
    kernelpool.save(encoder, tmp_path / "whole")
    np.testing.assert_array_equal(kernelpool.load(tmp_path / "whole").transform(x), encoder.transform(x))
    encoder._default_to_infrequent_mappings = [encoder._default_to_infrequent_mappings[0][:1]]
    with pytest.raises(ModelFileError, match="a place for every category"):
        kernelpool.save(encoder, tmp_path / "short")
