import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from kernelpool.data.folds import hold_out, row_keys, stratified_folds


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("seed", range(20))
def test_folds_are_equal_parts_of_every_class_and_stay_when_a_row_changes(n_folds, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 4)
    code = np.repeat([0, 1, 2, -1], sizes)
    n = len(code)
    key = rng.random(len(code))
    fold = stratified_folds(code, n_folds, key=key, weight=np.ones(n))
    for k, size in enumerate(sizes[:3]):
        counts = np.bincount(fold[code == k] + 1, minlength=n_folds + 1)
        assert counts[0] == (size if size == 1 else 0)  # the only row of its class always trains
        assert size == 1 or np.ptp(counts[1:]) <= 1
    assert (fold[code == -1] == -1).all()
    order = rng.permutation(n)
    twice = np.append(np.arange(n), rng.integers(n, size=9))
    for at in (order, twice):
        again = stratified_folds(code[at], n_folds, key=key[at], weight=np.ones(len(at)))
        np.testing.assert_array_equal(again, fold[at])
    key[rng.integers(n)] = rng.random()
    again = stratified_folds(code, n_folds, key=key)
    assert (again != fold).sum() <= n_folds  # the row itself, and one at each cut


def test_keys_depend_on_the_content_of_rows_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    x[3, 1] = np.nan
    key = row_keys(x)
    assert len(np.unique(key)) == 40
    order = rng.permutation(40)
    np.testing.assert_array_equal(row_keys(x[order]), key[order])
    np.testing.assert_array_equal(row_keys(1024 * x + 8), key)  # the units do not matter
    twice = np.r_[np.arange(40), 5, 5]
    weight = np.ones(40)
    weight[5] = 3
    np.testing.assert_array_equal(row_keys(x[twice]), row_keys(x, weight)[twice])
    frame = pd.DataFrame({"a": x[:, 0], "b": rng.choice(["u", "v", None], 40)})
    assert len(np.unique(row_keys(frame))) == 40
    np.testing.assert_array_equal(row_keys(frame.iloc[order]), row_keys(frame)[order])
    wild = x.copy()
    wild[np.argmax(x[:, 0]), 0] = 1e9  # another row changes its own key alone
    assert (row_keys(wild) != key).sum() == 1
    words = ["yes", "no", "yes"]
    assert row_keys(words)[0] == row_keys(words)[2] != row_keys(words)[1]
    assert len(np.unique(row_keys(csr_array(np.nan_to_num(x))))) == 40


def test_a_share_of_every_class_is_held_out_and_never_all_of_one():
    codes = np.array([0] * 50 + [1] * 10 + [2] + [-1] * 4)
    key = np.random.default_rng(0).random(65)
    out = hold_out(codes, 0.2, key=key)
    assert [out[codes == k].sum() for k in (0, 1, 2, -1)] == [10, 2, 0, 0]
    assert hold_out(np.array([0, 0]), 0.9, key=key[:2]).sum() == 1
