"""Views of the features, beside SciPy's and scikit-learn's transforms and numerical derivatives."""

import numpy as np
import pytest
from scipy.stats import yeojohnson
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import PowerTransformer, StandardScaler

from kernelpool.training.views import (
    inverse_yeo_johnson,
    learned_metric,
    plain_view,
    warped_view,
    yeo_johnson,
)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(5, 2, 300), rng.lognormal(1, 1, 300), -rng.gamma(1, 3, 300)])


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_the_transform_is_scipys_and_has_an_inverse(exponent):
    u = np.linspace(-3, 4, 41)
    np.testing.assert_allclose(
        yeo_johnson(u, np.array(exponent)), yeojohnson(u, exponent), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        inverse_yeo_johnson(yeojohnson(u, exponent), np.array(exponent)), u, rtol=1e-9, atol=1e-12
    )


def test_views_are_scikit_learns(x):
    plain = plain_view(x, np.ones(len(x)))
    np.testing.assert_allclose(plain.transform(x), StandardScaler().fit_transform(x), rtol=1e-12)
    expected = PowerTransformer().fit_transform(StandardScaler().fit_transform(x))
    np.testing.assert_allclose(warped_view(x, plain).transform(x), expected, rtol=1e-6, atol=1e-8)


def test_weights_count_as_rows(x):
    weight = np.random.default_rng(1).integers(0, 4, len(x))
    heavy, twice = (
        plain_view(x, weight.astype(float)),
        plain_view(np.repeat(x, weight, axis=0), np.ones(weight.sum())),
    )
    np.testing.assert_allclose(heavy.center, twice.center, rtol=1e-12)
    np.testing.assert_allclose(heavy.scale, twice.scale, rtol=1e-12)


def test_densities_stay_densities(x):
    """log |dz/dx| beside a numerical determinant; and the inverse leads back."""
    from dataclasses import replace

    view = replace(
        warped_view(x, plain_view(x, np.ones(len(x)))),
        metric=np.array([[1.0, 0.4, 0], [0.1, 0.8, 0], [0, 0.3, 2]]),
    )
    rows, step = x[:5], 1e-6
    for row, log_jacobian in zip(rows, view.log_jacobian(rows), strict=True):
        around = row + step * np.concatenate([np.eye(3), -np.eye(3)])
        z = view.transform(around)
        slope = (z[:3] - z[3:]) / (2 * step)
        assert log_jacobian == pytest.approx(np.log(np.abs(np.linalg.det(slope))), abs=1e-6)
    np.testing.assert_allclose(view.inverse(view.transform(rows)), rows, rtol=1e-9, atol=1e-9)


def test_constant_and_binary_features_stay_finite():
    x = np.column_stack([np.full(50, 1e8), np.arange(50) % 2, np.arange(50.0)])
    view = warped_view(x, plain_view(x, np.ones(50)))
    assert np.isfinite(view.transform(x)).all()
    assert np.isfinite(view.transform(x + 1e6)).all()
    assert np.isfinite(view.log_jacobian(x)).all()


def test_a_learned_metric_tells_classes_apart_on_other_rows():
    """One feature of eight says everything: nearest neighbors err less in the metric, on rows it has not seen."""
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
