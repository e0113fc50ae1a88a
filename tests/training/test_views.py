"""Views of the features, beside SciPy's and scikit-learn's transforms."""

import numpy as np
import pytest
from scipy.stats import yeojohnson
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import PowerTransformer, StandardScaler

from kernelpool.training.views import learned_metric, scaled_view, warped_view, yeo_johnson

NUMBERS = (0, 0, 0)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(5, 2, 300), rng.lognormal(1, 1, 300), -rng.gamma(1, 3, 300)])


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_the_transform_is_scipys(exponent):
    u = np.linspace(-3, 4, 41)
    np.testing.assert_allclose(
        yeo_johnson(u, np.array(exponent)), yeojohnson(u, exponent), rtol=1e-12, atol=1e-14
    )


def test_views_are_scikit_learns(x):
    scaled = scaled_view(x, np.ones(len(x)), NUMBERS)
    np.testing.assert_allclose(scaled.transform(x), StandardScaler().fit_transform(x), rtol=1e-12)
    expected = PowerTransformer().fit_transform(StandardScaler().fit_transform(x))
    np.testing.assert_allclose(warped_view(x, scaled).transform(x), expected, rtol=1e-6, atol=1e-8)


def test_weights_count_as_rows(x):
    weight = np.random.default_rng(1).integers(0, 4, len(x))
    heavy, twice = (
        scaled_view(x, weight.astype(float), NUMBERS),
        scaled_view(np.repeat(x, weight, axis=0), np.ones(weight.sum()), NUMBERS),
    )
    np.testing.assert_allclose(heavy.center, twice.center, rtol=1e-12)
    np.testing.assert_allclose(heavy.scale, twice.scale, rtol=1e-12)


def test_categories_are_indicators_one_apart(x):
    coded = np.column_stack([x[:, 0], np.arange(300) % 3])
    view = scaled_view(coded, np.ones(300), (0, 3))  # two categories, and any other value
    z = view.transform(coded[:3]) * view.scale + view.center
    np.testing.assert_allclose(
        z[:, 1:], np.sqrt(0.5) * np.array([[1, 0], [0, 1], [0, 0]]), atol=1e-12
    )


def test_constant_and_binary_features_stay_finite():
    x = np.column_stack([np.full(50, 1e8), np.arange(50) % 2, np.arange(50.0)])
    view = warped_view(x, scaled_view(x, np.ones(50), NUMBERS))
    assert np.isfinite(view.transform(x)).all()
    assert np.isfinite(view.transform(x + 1e6)).all()


def test_a_learned_metric_separates_classes_on_new_rows():
    """One feature of eight is informative: nearest neighbors err less in the metric, on new
    rows.
    """
    rng = np.random.default_rng(0)
    codes = np.arange(800) % 2
    z = np.column_stack([(codes - 0.5) * 2 + 0.4 * rng.normal(size=800), rng.normal(size=(800, 7))])
    metric = learned_metric(z[:400], codes[:400], np.ones(400), np.random.default_rng(0))
    error = [
        1
        - KNeighborsClassifier(5).fit(z[:400] @ a.T, codes[:400]).score(z[400:] @ a.T, codes[400:])
        for a in (np.eye(8), metric)
    ]
    assert error[1] < 0.5 * error[0]
