"""Labels, weights and class priors, against NumPy, pandas and definitions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelpool.data.labels import (
    class_codes,
    class_prior_for,
    coded_labels,
    distinct_labels,
    is_matrix,
    known_labels,
    label_column,
    labeled,
    merge_duplicates,
    spread_shares,
)
from kernelpool.errors import KernelpoolError
from kernelpool.rows import as_rows

RNG = np.random.default_rng(0)
CLASSES = np.array(["a", "b", "c"])
SHARES = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (["b", "a", "?", "b"], "?"),
        (["b", "a", None, "b"], np.nan),
        (pd.Series(["b", "a", None, "b"], dtype="string"), np.nan),
        ([2, 1, -1, 2], -1),
        ([2.0, 1.0, np.nan, 2.0], np.nan),
        (pd.array([True, False, pd.NA, True], dtype="boolean"), np.nan),
    ],
)
def test_codes_are_positions_among_the_sorted_labels(labels, marker):
    labels = label_column(labels, 4)
    codes, classes = coded_labels(np.empty((4, 1)), labels, marker)
    assert codes.tolist() == [1, 0, -1, 1]
    assert classes.tolist() == sorted({labels[0], labels[1]})
    assert_array_equal(class_codes(labels, classes, marker), codes)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, np.nan, np.nan], "Input y contains NaN: 2 of 3 labels are missing"),
        (["a", 1], "text and numbers, 'a' and 1"),
    ],
)
def test_labels_that_cannot_be_classes(labels, message):
    with pytest.raises(KernelpoolError, match=message):
        distinct_labels(np.array(labels, object), None)


def test_one_class_and_unknown_labels_are_refused():
    with pytest.raises(KernelpoolError, match="found 1 class: 'a'"):
        coded_labels(np.empty((2, 1)), ["a", "a"], None)
    with pytest.raises(KernelpoolError, match=r"y_val has the label 'd', .* \['a', 'b', 'c'\]"):
        class_codes(np.array(["a", "d"]), CLASSES, None, "y_val")
    with pytest.raises(KernelpoolError, match="label 1"):  # numbers are no text
        class_codes(np.array([1]), np.array(["1", "2"]), None)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[3, 2\]"):
        label_column(["a", "b"], 3)


def test_class_probabilities_are_weighted_rows():
    """Of each class the weight and the weighted sum of the rows are those of the matrix."""
    x = RNG.normal(size=(6, 2))
    table = RNG.dirichlet(np.ones(3), 6)
    table[0] = [1, 0, 0]
    weight = RNG.uniform(1, 2, 6)
    rows, labels, weights = spread_shares(x, pd.DataFrame(table, columns=list("abc")), weight)
    assert len(rows) == np.count_nonzero(table)
    for k, name in enumerate("abc"):
        of_class = labels == name
        assert_allclose(weights[of_class] @ rows[of_class], (weight * table[:, k]) @ x)
    assert is_matrix(table)
    assert is_matrix(table.tolist())
    assert not is_matrix(["a", "b"])
    assert not is_matrix(table[:, :1])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.5], [0.7, 0.7]], r"row 1 holds \[0.7, 0.7\]"),
        ([[1.0, 0.0], [1.0, 0.0]], "class 1 no share in any row"),
        ([[1.0, 0.0]], r"inconsistent numbers of samples: \[2, 1\]"),
    ],
)
def test_matrices_that_are_no_class_probabilities(table, message):
    with pytest.raises(ValueError, match=message):
        spread_shares(np.zeros((2, 1)), table, None)


@pytest.mark.parametrize(
    ("class_prior", "expected"),
    [
        (None, SHARES),
        ("balanced", np.full(3, 1 / 3)),
        ([0.1, 0.2, 0.7], [0.1, 0.2, 0.7]),
        ({"c": 0.6}, [0.4 * 0.5 / 0.8, 0.4 * 0.3 / 0.8, 0.6]),  # the others keep their ratio
        ({"a": 0.2, "b": 0.2, "c": 0.6}, [0.2, 0.2, 0.6]),
    ],
)
def test_class_priors(class_prior, expected):
    assert_allclose(class_prior_for(class_prior, CLASSES, SHARES), expected)


@pytest.mark.parametrize(
    ("class_prior", "message"),
    [
        ("equal", "'balanced', a dict or one number a class; got 'equal'"),
        ({"d": 0.5}, "names 'd'"),
        ({"a": 0.7, "b": 0.7}, "sum to one"),
        ({"a": 0.1, "b": 0.1, "c": 0.1}, "sum to one"),
        ([0.5, 0.5], r"shape \(3,\)"),
        ([0.5, 0.6, 0.2], r"the sums are \[1.3\]"),
        ([1.5, -0.5, 0.0], "must not be negative"),
    ],
)
def test_class_priors_that_are_none(class_prior, message):
    with pytest.raises(KernelpoolError, match=message):
        class_prior_for(class_prior, CLASSES, SHARES)


def test_equal_rows_of_a_class_become_one_as_groups_of_pandas_do():
    x = RNG.integers(0, 2, (60, 2)).astype(float)
    x[::7, 1] = np.nan
    codes = RNG.integers(0, 2, 60)
    weight = RNG.integers(0, 4, 60).astype(float)
    (merged, merged_codes, total), first = merge_duplicates((x, codes, weight))
    frame = pd.DataFrame({"code": codes, "a": x[:, 0], "b": x[:, 1], "weight": weight})
    frame = frame[frame["weight"] > 0]  # a row of no weight is none
    groups = frame.groupby(["code", "b", "a"], dropna=False)["weight"].sum().reset_index()
    assert_array_equal(merged_codes, groups["code"])
    assert_array_equal(merged, groups[["a", "b"]])
    assert_array_equal(total, groups["weight"])
    assert_array_equal(x[first], merged)
    order = RNG.permutation(60)
    again, _ = merge_duplicates((x[order], codes[order], weight[order]))
    assert_array_equal(again[0], merged)
    assert len(merge_duplicates((x, codes, np.zeros(60)))[0][0]) == 0


def test_labeled_rows_have_a_label_and_a_weight():
    x = np.arange(4, dtype=np.float32)[:, None]
    rows = as_rows(x, np.array([0, -1, 1, 1]), np.array([1.0, 1.0, 0.0, 2.0]))
    for column, expected in zip(labeled(rows), ([[0.0], [3.0]], [0, 1], [1.0, 2.0]), strict=True):
        assert_array_equal(column, expected)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["1", " 2.0 ", "3"], [1, 2], [1, 2, None]),
        (["true", "FALSE", "1", "2"], [False, True], [True, False, True, None]),
        ([1, 2, 0.5], ["1", "2.0"], ["1", "2.0", None]),
        (["001", "1", "002"], ["001", "2"], ["001", None, None]),
        (["b", "a", "c"], ["a", "b"], ["b", "a", None]),
        ([True, False], ["true", "no"], ["true", None]),
    ],
)
def test_labels_of_files_stand_for_classes(labels, classes, expected):
    found = known_labels(np.array(labels, object), np.array(classes)).tolist()
    assert [label if label in classes else None for label in found] == expected
