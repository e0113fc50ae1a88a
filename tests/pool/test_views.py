"""Views of the features, beside SciPy's and scikit-learn's transforms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import yeojohnson
from sklearn.preprocessing import PowerTransformer, StandardScaler

from kernelpool.pool.views import scaled_view, warped_view, yeo_johnson

NUMBERS = (0, 0, 0)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(5, 2, 300), rng.lognormal(1, 1, 300), -rng.gamma(1, 3, 300)])


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_the_transform_is_scipys(exponent):
    u = np.linspace(-3, 4, 41)
    assert_allclose(
        yeo_johnson(u, np.array(exponent)), yeojohnson(u, exponent), rtol=1e-12, atol=1e-14
    )


def test_views_are_scikit_learns(x):
    scaled = scaled_view(x, np.ones(len(x)), NUMBERS)
    assert_allclose(scaled.transform(x), StandardScaler().fit_transform(x), rtol=1e-12)
    expected = PowerTransformer().fit_transform(StandardScaler().fit_transform(x))
    warped = warped_view(x, np.ones(len(x)), NUMBERS)
    assert_allclose(warped.transform(x), expected, rtol=1e-6, atol=1e-8)


def test_weights_count_as_rows(x):
    weight = np.random.default_rng(1).integers(0, 4, len(x))
    heavy = warped_view(x, weight.astype(float), NUMBERS)
    often = warped_view(np.repeat(x, weight, axis=0), np.ones(weight.sum()), NUMBERS)
    assert_allclose(heavy.transform(x), often.transform(x), rtol=1e-9, atol=1e-9)


def test_categories_are_indicators_one_apart(x):
    coded = np.column_stack([x[:, 0], np.arange(300) % 3])
    view = scaled_view(coded, np.ones(300), (0, 3))  # two categories, and any other value
    z = view.transform(coded[:3]) * view.scale + view.center
    assert_allclose(z[:, 1:], np.sqrt(0.5) * np.array([[1, 0], [0, 1], [0, 0]]), atol=1e-12)


def test_constant_and_binary_features_stay_finite():
    x = np.column_stack([np.full(50, 1e8), np.arange(50) % 2, np.arange(50.0)])
    view = warped_view(x, np.ones(50), NUMBERS)
    assert np.isfinite(view.transform(x)).all()
    assert np.isfinite(view.transform(x + 1e6)).all()
