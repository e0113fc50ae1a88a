"""Location and scale of features, against NumPy and definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from zoo import CLASSIFIERS

from kernelpool.data import door, scale
from kernelpool.data.door import surveyed
from kernelpool.data.scale import (
    CLIP_DEVIATIONS,
    Scale,
    feature_scale,
    mean_and_variance,
    survey,
    trimmed_moments,
    weighted_quantiles,
)
from kernelpool.errors import KernelpoolError
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", ["rbf", "neurons", "em_log"])
def test_the_rows_of_a_fit_are_surveyed_in_two_passes(name, monkeypatch):
    passes = []

    def counted(block, about, n_classes):
        passes.append(about)
        return survey(block, about, n_classes)

    x = RNG.normal(size=(90, 3))
    for module in (door, scale):
        monkeypatch.setattr(module, "survey", counted)
    CLASSIFIERS[name].fit(x, np.arange(90) % 2)
    assert len(passes) == 2
    assert_array_equal(passes[0], np.zeros(3))
    assert_allclose(passes[1], x.mean(axis=0), rtol=1e-12)


def test_a_survey_adds_up_over_blocks_and_counts_known_cells():
    x = RNG.normal(size=(40, 2))
    x[::5, 1] = np.nan
    codes = np.arange(40) % 3 - 1
    weight = RNG.uniform(0, 2, 40)
    weight[:4] = 0
    parts = [slice(15), slice(15, 40)]
    totals = [as_rows(x[at], codes[at], weight[at]).total(survey, np.ones(2), 2) for at in parts]
    found = totals[0] + totals[1]
    known = weight[:, None] * ~np.isnan(x)
    of_code = codes[:, None] == np.arange(-1, 2)
    assert_allclose(found.by_code, of_code.T @ weight)
    assert_allclose(found.observed, of_code.T @ known)
    assert_allclose(found.weight, known.sum(axis=0))
    for power, name in ((1, "first"), (2, "second"), (4, "fourth")):
        expected = np.nansum(weight[:, None] * (x - 1) ** power, axis=0)
        assert_allclose(getattr(found, name), expected)
    assert found.n_rows == 36


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_are_those_of_numpy_wherever_the_origin_is(offset):
    x = RNG.normal(size=(200, 2)) + offset
    x[:, 1] = offset + 0.1
    weight = RNG.uniform(0, 2, 200)
    mean, variance = mean_and_variance(x, weight)
    assert_allclose(mean, np.average(x, axis=0, weights=weight), rtol=1e-13, atol=1e-15)
    expected = np.average((x[:, 0] - mean[0]) ** 2, weights=weight)
    assert_allclose(variance, [expected, 0.0], rtol=1e-7)  # a constant has none


def test_weighted_quantiles_are_the_inverse_of_the_distribution_function():
    x = RNG.normal(size=(50, 3))
    weight = RNG.uniform(0, 2, 50)
    levels = (0.02, 0.25, 0.5, 0.98)
    found = np.concatenate(weighted_quantiles(x, weight, levels))
    expected = np.quantile(x, levels, axis=0, weights=weight, method="inverted_cdf")
    assert_array_equal(found, expected)
    x[:10, 1] = np.nan
    (median,) = weighted_quantiles(x, weight, (0.5,))
    expected = np.quantile(x[10:, 1], 0.5, weights=weight[10:], method="inverted_cdf")
    assert median[0, 1] == expected


def test_outliers_are_trimmed_where_they_dominate_and_only_there():
    x = RNG.normal(size=(1000, 3)) * [1, 1, 1e-3] + [0, 5, 1e6]
    x[:3, 0] = 1e4
    x[:3, 2] += 10
    weight = np.ones(1000)
    mean = x.mean(axis=0)
    variance = x.var(axis=0)
    features = np.array([True, True, False])
    found = trimmed_moments(x, weight, mean, variance, features)
    inliers = x[3:, 0]
    assert_allclose(found[0], [inliers.mean(), *mean[1:]], rtol=1e-10)
    assert_allclose(found[1], [inliers.var(), *variance[1:]], rtol=1e-10)
    assert_allclose(mean_and_variance(x, weight)[1][2], x[3:, 2].var(), rtol=1e-6)


def test_cells_are_clipped_at_five_deviations_from_the_median_of_the_farthest_class():
    """The second class is wider than all rows without the outlier are."""
    narrow = RNG.normal(size=(900, 1))
    wide = 40 + 30 * RNG.normal(size=(100, 1))
    x = np.concatenate([narrow, wide, [[1e5]]])
    codes = np.repeat([0, 1], [900, 101])
    found = surveyed(as_rows(x, codes), np.arange(2)).scale
    deviation = np.sqrt(found.variance[0])
    low, median, high = np.quantile(x[900:, 0], (0.25, 0.5, 0.75), method="inverted_cdf")
    center = abs(median - found.mean[0]) / deviation
    expected = center + CLIP_DEVIATIONS * max((high - low) / 1.35 / deviation, 1)
    assert_allclose(found.reach, [expected])
    clipped = found.clipped(x)
    assert_array_equal(clipped[:-1], x[:-1])
    assert_allclose(clipped[-1], found.mean + expected * deviation)


def test_a_scale_without_outliers_clips_nothing_and_a_constant_keeps_its_unit():
    found = Scale(np.array([1.0, 2.0]), np.array([4.0, 0.0]), np.full(2, np.inf))
    x = np.array([[3.0, 5.0]])
    assert not found.clips
    assert found.clipped(x) is x
    assert_array_equal(found.frame.inside(x), [[1.0, 3.0]])


def test_categories_are_never_outliers():
    x = np.resize([0.0, 1.0], (500, 1))
    x[:5] = 90
    columns = Columns((np.array([f"{i:02}" for i in range(91)], object),))
    codes = np.arange(500) % 2
    for known, clips in ((columns, False), (None, True)):
        found = surveyed(as_rows(x, codes), np.arange(2), known).scale
        assert found.clips == clips
        assert (found.variance == pytest.approx(x.var())) != clips


def test_the_mean_of_rows_in_float32_is_that_of_float64():
    x = (1e4 + 0.05 * RNG.normal(size=(300, 1))).astype(np.float32)
    found = surveyed(as_rows(x, np.arange(300) % 2), np.arange(2)).scale
    np.testing.assert_allclose(found.variance, x.astype(float).var(axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("variance", "standardize", "expected"),
    [
        ([4.0, 0.0, 16.0], True, [2.0, 10**0.5, 4.0]),  # a constant is as wide as the others
        ([4.0, 0.0, 16.0], False, [10**0.5] * 3),
        ([0.0, 0.0], True, [1.0, 1.0]),
    ],
)
def test_feature_scale(variance, standardize, expected):
    assert_allclose(feature_scale(np.array(variance), standardize), expected)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1e200, -1e200], "Feature 0 of X is too large to be squared in float64; divide"),
        ([1e-200, 2e-200], "Feature 0 of X is too small to be squared in float64; multiply"),
        ([1e-155, 1e-155], "too small to be squared"),
        (np.float32([1e-37, 2e-37]), "too small to be told apart in float32"),
    ],
)
def test_squares_neither_overflow_nor_vanish(x, message):
    with pytest.raises(KernelpoolError, match=message):
        surveyed(as_rows(np.asarray(x)[:, None], np.arange(2)), np.arange(2))
