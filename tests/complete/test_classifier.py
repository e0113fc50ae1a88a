"""Imputations for networks of complete numbers, against integrals and sums over what is missing."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from zoo import CLASSIFIERS, table

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.complete.imputation import imputation_mixture, imputations, imputed
from kernelpool.data.door import surveyed
from kernelpool.mixtures.fitted import ClassDensities
from kernelpool.rows import as_rows
from kernelpool.tables.columns import Columns

MIXTURE = ClassDensities(
    levels=(0, 0, 3),
    covariance_type="full",
    means=np.array([[0.0, 0.0, 0.0], [4.0, 8.0, 0.0]]),
    covariances=np.array([[[1.0, 0.5, 0], [0.5, 1.0, 0], [0, 0, 1]]] * 2),
    mixing=np.array([[0.25], [0.75]]),
    class_prior=np.ones(1),
    probabilities=np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]),
)


def test_missing_numbers_have_the_conditional_moments():
    """Of each kernel the mean is 0.5 (x - mean) away and the variance 0.75; the kernels are
    weighted by p(x).
    """
    (drawn,) = imputations(MIXTURE, np.array([[2.0, np.nan, 0.0]]), 4096).transpose(1, 0, 2)
    joint = [
        share * multivariate_normal(mean, 1).pdf(2.0) * p
        for share, mean, p in zip([0.25, 0.75], [0, 4], [0.8, 0.1], strict=True)
    ]
    weight = np.array(joint) / sum(joint)
    means = np.array([1.0, 7.0])
    assert drawn[:, 1].mean() == pytest.approx(weight @ means, abs=0.02)
    variance = 0.75 + weight @ means**2 - (weight @ means) ** 2
    assert drawn[:, 1].var() == pytest.approx(variance, rel=0.02)
    assert_array_equal(drawn[:, [0, 2]], [[2.0, 0.0]] * 4096)


def test_missing_categories_have_their_probabilities():
    drawn = imputations(MIXTURE, np.full((1, 3), np.nan), 4096)[:, 0]
    known = MIXTURE.probabilities[:, :2]  # no other value is drawn
    expected = [0.25, 0.75] @ (known / known.sum(axis=1, keepdims=True))
    assert_allclose(np.bincount(drawn[:, 2].astype(int)) / 4096, expected, atol=0.01)
    # categories and numbers go together: code 0 is mostly of the kernel at zero
    assert drawn[drawn[:, 2] == 0, 0].mean() == pytest.approx(
        0.75 * 0.1 / (0.75 * 0.1 + 0.25 * 0.8) * 4, abs=0.1
    )


def test_one_copy_for_training_spreads_as_the_density_and_does_not_depend_on_order():
    x = np.column_stack([np.random.default_rng(0).normal(size=5000), np.full(5000, np.nan)])
    x = np.column_stack([x, np.zeros(5000)])
    copy = imputed(MIXTURE, x)
    near = copy[:, 1] < 4  # of the kernel at zero
    residual = copy[near, 1] - 0.5 * x[near, 0]
    assert residual.mean() == pytest.approx(0, abs=0.05)
    assert residual.var() == pytest.approx(0.75, rel=0.05)
    assert_array_equal(imputed(MIXTURE, x[::-1])[::-1], copy)


def test_the_mixture_is_that_of_the_rows():
    """Fewer rows than two kernels need: one kernel, their mean and, up to a prior of a few rows,
    their covariance.
    """
    x = np.random.default_rng(0).multivariate_normal([3, -5], [[4, 1], [1, 2]], size=59)
    mixture = imputation_mixture(surveyed(as_rows(x, np.zeros(59, int)), np.arange(1)))
    assert len(mixture.means) == 1
    assert_allclose(mixture.means[0], x.mean(axis=0), atol=0.1)
    assert_allclose(mixture.covariances[0], np.cov(x.T), rtol=0.2, atol=0.2)


@pytest.mark.parametrize("name", ["rbf", "neurons", "em_log"])
def test_probabilities_of_known_cells_are_means_over_the_conditional_density(name):
    """E[P(C|x) | known], by quadrature over the missing number, against many imputations."""
    X, y = table(missing=0)
    model = CLASSIFIERS[name].fit(X[["age", "dose"]], y)
    row = X[["age", "dose"]][:1]
    grid = np.linspace(-0.1, 0.08, 1501)
    rows = np.column_stack([np.full(len(grid), row["age"].iloc[0]), grid])
    fitted = model.imputer_
    density = sum(
        share * multivariate_normal(mean, covariance).pdf(rows)
        for share, mean, covariance in zip(
            fitted.mixing[:, 0], fitted.means, fitted.covariances, strict=True
        )
    )
    frame = model.columns_.decode(rows)
    expected = density @ model.predict_proba(frame) / density.sum()
    found = model.predict_proba(row.assign(dose=np.nan))[0]
    assert_allclose(found, expected, atol=0.05)


def test_columns_without_missing_cells_need_no_mixture():
    X, y = table(missing=0)
    columns = replace(Columns.learn(X), complete=True)
    model = CompetitiveNeuronsClassifier(2, max_iter=3, tol=1.0, categorical_features=columns)
    model.fit(X, y)
    assert not hasattr(model, "imputer_")
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(X.assign(age=np.nan))
