"""What the loaders return: on made-up copies everywhere, and facts about the real sets where those
can be found.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer

from kernelpool.errors import KernelpoolError
from papers import data as datasets

from .copies import csv_text, made_up, write_folder


def need(*names):
    """Skips the test, with a reason that says how to get the set, where a set is not on this
    machine.
    """
    for name in names:
        if reason := datasets.missing_reason(name):
            pytest.skip(reason)


def test_satimage_in_five_dimensions(folder):
    X, y = made_up("satimage")
    X[:, :6] += np.eye(6)[y]  # classes that can be told apart, so that the axes are well defined
    write_folder(folder, "satimage", csv_text("satimage", X, y))
    bunch = datasets.load_satimage(dims=5)
    assert bunch.data.shape == (6435, 5)
    assert bunch.feature_names == ["lda1", "lda2", "lda3", "lda4", "lda5"]
    _assert_discriminant_axes(bunch.data, X, y)


def _assert_discriminant_axes(Z, X, y):
    """By definition: linear in X, unit pooled covariance within classes, uncorrelated class means,
    the widest apart first.
    """
    centered = np.column_stack([X, np.ones(len(X))])
    residual = Z - centered @ np.linalg.lstsq(centered, Z, rcond=None)[0]
    assert np.abs(residual).max() < 1e-6
    means = np.array([Z[y == k].mean(axis=0) for k in range(6)])
    within = (Z - means[y]).T @ (Z - means[y]) / len(y)
    assert_allclose(within, within[0, 0] * np.eye(5), atol=1e-6)
    assert within[0, 0] == pytest.approx(
        1, rel=2e-3
    )  # scikit-learn has divided by n and by n - 6, a part in a thousand apart
    offset = (means - Z.mean(axis=0)) * np.sqrt(np.bincount(y))[:, None]
    between = offset.T @ offset / len(y)
    spread = np.diag(between)
    assert_allclose(between, np.diag(spread), atol=1e-6 * spread[0])
    assert np.all(np.diff(spread) < 0)


def test_missing_reason(folder):
    reason = datasets.missing_reason("bupa")
    assert reason.startswith(
        "The data set 'bupa' is not on this machine. To get it: set KERNELPOOL_DATA"
    )
    write_folder(folder, "bupa", csv_text("bupa", *made_up("bupa")))
    assert datasets.missing_reason("bupa") is None
    write_folder(folder, "bupa", "spoilt")
    with pytest.raises(KernelpoolError, match="must have the columns"):
        datasets.missing_reason("bupa")


def test_wdbc_needs_no_file(nowhere):
    bunch = datasets.load_wdbc()
    reference = load_breast_cancer()
    assert_array_equal(bunch.data, reference.data)
    assert_array_equal(bunch.target, reference.target)
    assert np.bincount(bunch.target).tolist() == [212, 357]
    assert bunch.target_names.tolist() == ["malignant", "benign"]
    assert bunch.feature_names == reference.feature_names.tolist()
    assert bunch.DESCR == reference.DESCR
    assert datasets.load_wdbc(as_frame=True).data.columns.tolist() == bunch.feature_names


# Facts about the real sets, as their sources publish them.


@pytest.mark.parametrize(
    ("name", "shape", "counts", "n_repeated"),
    [
        ("phoneme", (5404, 5), [3818, 1586], None),
        ("ionosphere", (351, 34), [126, 225], 1),
        ("bupa", (345, 6), [145, 200], 4),
    ],
)
def test_real_sets(name, shape, counts, n_repeated):
    need(name)
    bunch = getattr(datasets, f"load_{name}")()
    assert bunch.data.shape == shape
    assert np.bincount(bunch.target).tolist() == counts
    rows = np.unique(np.column_stack([bunch.data, bunch.target]), axis=0)
    assert n_repeated in (None, shape[0] - len(rows))


def test_real_satimage_starts_with_statlogs_training_set():
    need("satimage")
    bunch = datasets.load_satimage()
    assert bunch.data.shape == (6435, 36)
    assert bunch.data.min() >= 0
    assert bunch.data.max() <= 255
    # UCI's description of the Statlog sets gives these class counts.
    assert np.bincount(bunch.target[:4435]).tolist() == [1072, 479, 961, 415, 470, 1038]
    assert np.bincount(bunch.target[4435:]).tolist() == [461, 224, 397, 211, 237, 470]


def test_real_pima():
    need("pima")
    bunch = datasets.load_pima(missing="nan", as_frame=True)
    assert bunch.data.shape == (768, 8)
    assert bunch.data.isna().sum().to_dict() == {
        "pregnant": 0, "glucose": 5, "pressure": 35, "triceps": 227, "insulin": 374, "mass": 11, "pedigree": 0, "age": 0
    }  # fmt: skip
    # UCI's description prints these means, zeros counted as values.
    means = datasets.load_pima().data.mean(axis=0)
    assert_allclose(means, [3.8, 120.9, 69.1, 20.5, 79.8, 32.0, 0.5, 33.2], atol=0.051)


def test_real_ripley_and_its_best_rule():
    need("ripley_train", "ripley_test")
    center = np.array([(-0.7, 0.3), (0.3, 0.3), (-0.3, 0.7), (0.4, 0.7)])

    def best(X):
        near = np.exp(-((X[:, None] - center) ** 2).sum(axis=2) / 0.06)
        return (near[:, 2:].sum(axis=1) > near[:, :2].sum(axis=1)).astype(int)

    X, y = datasets.load_ripley(subset="test", return_X_y=True)
    assert np.bincount(y).tolist() == [500, 500]
    assert np.sum(best(X) != y) == 80  # the Bayes error of 8.0 % that is quoted for this set
    X, y = datasets.load_ripley(return_X_y=True)
    assert np.bincount(y).tolist() == [125, 125]
    assert np.sum(best(X) != y) == 33
