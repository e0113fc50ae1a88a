"""Data that other mixture libraries die of: every family must fit it, and say the same of it as
when it is tame.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernelpool import SharedKernelClassifier, Start
from kernelpool.errors import CollapsedKernelError, EmptyKernelWarning


def two_classes(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 2.0 * y[:, None], y


def duplicates():
    x, y = two_classes(12)
    return np.repeat(x, 10, axis=0), np.repeat(y, 10)


def constant_columns_whose_mean_rounds():
    x, y = two_classes()
    return np.column_stack([np.full(len(y), 0.1), x, np.full(len(y), 1e6 / 3)]), y


def one_hot():
    x, y = two_classes()
    return np.column_stack([x[:, :1], np.eye(4)[np.arange(len(y)) % 4]]), y


def fewer_rows_than_features():
    return two_classes(n=20, d=50)


def a_class_of_one_row():
    x, y = two_classes()
    return x, np.where(np.arange(len(y)) == 0, 2, y)


def ninety_nine_to_one():
    x, y = two_classes(n=400)
    keep = (y == 0) | (np.cumsum(y) <= 2)
    return x[keep], y[keep]


def float32_far_away():
    x, y = two_classes()
    return (1000 + 0.1 * x).astype(np.float32), y


def float64_far_away():
    x, y = two_classes()
    return 1e8 + x, y


def tiny():
    x, y = two_classes()
    return 1e-9 * x, y


def a_copied_column():
    x, y = two_classes()
    return np.column_stack([x, x[:, 0], 2 * x[:, 1] - 1]), y


ALL = [
    duplicates,
    constant_columns_whose_mean_rounds,
    one_hot,
    fewer_rows_than_features,
    a_class_of_one_row,
    ninety_nine_to_one,
    float32_far_away,
    float64_far_away,
    tiny,
    a_copied_column,
]


def fitted(x, y, family, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyKernelWarning)
        warnings.filterwarnings("ignore", "EM stopped")
        return SharedKernelClassifier.prbf(6, covariance_type=family, random_state=0, **more).fit(
            x, y
        )


def tamed(x):
    """The same rows centered and divided by one scale, in float64."""
    x = np.asarray(x, dtype=np.float64)
    x = x - x.mean(axis=0)
    return x / np.sqrt(x.var(axis=0).mean())


@pytest.mark.parametrize("data", ALL, ids=lambda data: data.__name__)
@pytest.mark.parametrize("kernel_prior", [None, "conjugate"])
def test_fits_and_answers_as_when_centered_and_scaled(data, family, kernel_prior):
    x, y = data()
    model = fitted(x, y, family, kernel_prior=kernel_prior)
    for answer in (model.log_density(x), model.score_samples(x), model.means_, model.covariances_):
        assert np.isfinite(answer).all()
    assert_allclose(model.predict_proba(x).sum(axis=1), 1, rtol=1e-5)
    assert (np.diff(model.history_) >= -1e-6).all()
    tame = fitted(tamed(x), y, family, kernel_prior=kernel_prior)
    assert_array_equal(model.predict(x), tame.predict(tamed(x)))
    # float32 at a mean of 1000 knows a deviation of 0.1 to some 1e-3
    atol = 0.02 if x.dtype == np.float32 else 1e-4
    assert_allclose(model.predict_proba(x), tame.predict_proba(tamed(x)), atol=atol)


def test_without_a_floor_the_error_names_kernel_and_feature():
    x, y = two_classes()
    frame = pd.DataFrame({"height": x[:, 0], "weight": x[:, 1], "always": np.full(len(y), 3.0)})
    model = SharedKernelClassifier.prbf([1, 1], covariance_type="full", covariance_floor=0)
    message = r"Kernel \d has no width left along feature 2 \('always'\).*covariance_floor"
    with pytest.raises(CollapsedKernelError, match=message):
        model.fit(frame, y)


def test_the_floor_is_a_part_of_each_features_variance():
    x, y = two_classes()
    x = np.column_stack([x * [1, 100, 0.01], np.repeat(0.5, len(y))])
    model = fitted(
        np.repeat(x[:4], 30, axis=0), np.repeat(y[:4], 30), "diag", covariance_floor=1e-3, sharing=0
    )
    variance = np.repeat(x[:4], 30, axis=0).var(axis=0)
    assert_allclose(model.covariances_[:, :3].min(axis=0), 1e-3 * variance[:3], rtol=1e-6)


def test_far_rows_of_every_kind_get_an_answer(family):
    x, y = two_classes()
    model = fitted(x, y, family)
    far = np.array([[1e10, 0, 0], [-1e200, 1e200, 0], [1e308, 1e308, -1e308], [0, 0, 0]])
    for rows in (far, far[:1].astype(np.float32)):
        probability = model.predict_proba(rows)
        assert probability.dtype == rows.dtype
        assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
        assert_allclose(model.kernel_posterior(rows).sum(axis=1), 1, rtol=1e-6)
        assert np.isfinite(model.score_samples(rows)).all()


def test_empty_kernels_are_moved_dropped_or_kept(family):
    x, y = two_classes(n=200)
    mean = np.vstack([x[:3], [[60.0, 60.0, 60.0]]])  # nobody's kernel, owned by class 0
    model = SharedKernelClassifier.prbf(
        4, covariance_type=family, init=Start(owners=[0, 1, 1, 0], means=mean), random_state=0
    )

    def fit(policy, x, y):
        return clone(model).set_params(empty_kernels=policy).fit(x, y)

    message = r"1 of 4 kernels lost all their rows and were dropped: 3 \(class"
    with pytest.warns(EmptyKernelWarning, match=message):
        dropped = fit("drop", x, y)
    assert dropped.means_.shape == (3, 3)
    assert dropped.mixing_.shape == (3, 2)
    assert dropped.owners_.tolist() == [0, 1, 1]
    assert_allclose(dropped.mixing_.sum(axis=0), 1)
    kept = fit("keep", x, y)
    assert_allclose(kept.means_[3], 60, rtol=0.2)
    assert_allclose(kept.mixing_[3], 0, atol=1e-6)
    outliers = np.array([[-9.0, -9, -9], [-9.1, -9, -9], [-9, -9.1, -9]])
    more = np.vstack([x, outliers]), np.r_[y, 0, 0, 0]
    moved = fit("move", *more)
    with pytest.warns(EmptyKernelWarning):
        dropped = fit("drop", *more)
    assert len(moved.means_) == 4 > len(dropped.means_)
    assert moved.objective_ > dropped.objective_ + 1e-3
    assert (np.diff(moved.history_) >= -1e-9).all()


@pytest.mark.parametrize("policy", ["move", "drop"])
def test_a_class_of_hardly_any_weight_keeps_a_kernel(policy):
    """Rows of class 2 hardly count, so its kernels starve; the last of them stays, for a class needs a
    density.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    x = rng.normal(size=(120, 2)) + 4 * y[:, None]
    owners = np.repeat([0, 1, 2], 2)
    means = x[[0, 1, 40, 41, 80, 81]]
    model = SharedKernelClassifier.prbf(
        init=Start(owners=owners, means=means), sharing=0, empty_kernels=policy, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyKernelWarning)
        model.fit(x, y, sample_weight=np.where(y < 2, 1.0, 1e-300))
    assert model.mixing_.shape[1] == 3
    assert_allclose(model.mixing_.sum(axis=0), 1)
    assert np.isfinite(model.log_density(x)).all()
