import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from kernelpool.training.folds import hold_out, row_keys, stratified_folds


def test_folds_deal_out_every_class():
    rng = np.random.default_rng(0)
    code = np.repeat([0, 1, 2, -1], [52, 23, 1, 30])
    key, weight = rng.random(len(code)), np.ones(len(code))
    fold = stratified_folds(code, 5, key=key, weight=weight)
    for k in (0, 1):
        counts = np.bincount(fold[code == k], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert (fold[code == 2] == -1).all()  # the only row of its class
    assert (fold[code == -1] == -1).all()
    assert (
        np.bincount(fold[fold >= 0]).tolist() == [15] * 5
    )  # a class goes on where the one before stopped


def test_folds_keep_equal_rows_together_and_ignore_the_order():
    rng = np.random.default_rng(0)
    key, code = rng.random(60), np.repeat([0, 1], 30)
    fold = stratified_folds(code, 3, key=key, weight=np.ones(60))
    order = rng.permutation(60)
    np.testing.assert_array_equal(
        stratified_folds(code[order], 3, key=key[order], weight=np.ones(60)), fold[order]
    )
    twice = np.r_[np.arange(60), np.arange(10)]
    np.testing.assert_array_equal(
        stratified_folds(code[twice], 3, key=key[twice], weight=np.ones(70)), fold[twice]
    )


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
    words = ["yes", "no", "yes"]
    assert row_keys(words)[0] == row_keys(words)[2] != row_keys(words)[1]
    assert len(np.unique(row_keys(csr_array(np.nan_to_num(x))))) == 40


def test_a_share_of_every_class_is_held_out_and_never_all_of_one():
    codes = np.array([0] * 50 + [1] * 10 + [2] + [-1] * 4)
    key = np.random.default_rng(0).random(65)
    out = hold_out(codes, 0.2, key=key)
    assert [out[codes == k].sum() for k in (0, 1, 2, -1)] == [10, 2, 0, 0]
    assert hold_out(np.array([0, 0]), 0.9, key=key[:2]).sum() == 1
