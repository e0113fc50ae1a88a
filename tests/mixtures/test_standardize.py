"""`standardize`: spherical kernels that are round among features of variance one, whatever the
units.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from zoo import CLASSIFIERS

from kernelpool import SharedKernelClassifier, Start
from kernelpool.data.door import surveyed
from kernelpool.rows import as_rows

SHIFT = np.array([5.0, -2.0, 0.0])
UNIT = np.array([1e3, 1e-2, 7.0])
SETTINGS = {"covariance_type": "spherical", "random_state": 0}


def in_other_units(x):
    return x * UNIT + SHIFT


@pytest.mark.parametrize("training", ["em", "conditional"])
def test_it_is_the_spherical_network_behind_a_scaler(blobs, training):
    x, y = blobs
    x = in_other_units(x)
    scaler = StandardScaler().fit(x)
    inside = SharedKernelClassifier(6, training=training, **SETTINGS).fit(x, y)
    behind = SharedKernelClassifier(6, training=training, standardize=False, **SETTINGS).fit(
        scaler.transform(x), y
    )
    assert_allclose(inside.predict_proba(x), behind.predict_proba(scaler.transform(x)), atol=1e-6)
    jacobian = np.log(scaler.scale_).sum()
    assert_allclose(
        inside.log_density(x), behind.log_density(scaler.transform(x)) - jacobian, rtol=1e-8
    )
    assert_allclose(inside.means_, scaler.inverse_transform(behind.means_), rtol=1e-7)
    assert_allclose(inside.covariances_, behind.covariances_[:, None] * scaler.scale_**2, rtol=1e-7)
    assert (inside.covariance_type_, behind.covariance_type_) == ("diag", "spherical")
    assert inside.n_parameters() == behind.n_parameters()
    assert_allclose(
        inside.kernel_overlap(x, y), behind.kernel_overlap(scaler.transform(x), y), atol=1e-9
    )
    means, variances = inside.subkernels(x, y)
    expected = behind.subkernels(scaler.transform(x), y)
    assert_allclose(means, expected[0] * scaler.scale_ + scaler.mean_, rtol=1e-7)
    assert_allclose(variances, expected[1][:, :, None] * scaler.scale_**2, rtol=1e-7)


def test_a_warm_start_and_given_kernels_go_on_from_there(blobs):
    x, y = blobs
    x = in_other_units(x)
    model = SharedKernelClassifier(6, training="em", warm_start=True, tol=1e-3, **SETTINGS).fit(
        x, y
    )
    before = model.objective_
    model.set_params(tol=1e-7).fit(x, y)
    assert model.objective_ > before
    assert model.training_type_ == "spherical"
    given = Start(means=model.means_, covariances=model.covariances_, mixing=model.mixing_)
    again = SharedKernelClassifier(6, training="em", tol=1e-7, init=given, **SETTINGS).fit(x, y)
    assert again.objective_ == pytest.approx(model.objective_, abs=1e-6)


# -- wild cells ------------------------------------------------------------------------------------


def apart(n, seed):
    """Two classes 2.5 deviations apart in the first of five features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 5)) + 2.5 * np.outer(y, np.eye(5)[0]), y


@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_wild_cell_does_not_set_the_unit(name):
    (X, y), (X_test, y_test) = apart(300, 0), apart(2000, 1)
    error = 1 - clone(CLASSIFIERS[name]).fit(X, y).score(X_test, y_test)
    cells = (0, 0, 9999), (0, 0, 999999), (3, slice(None), 1e9), (0, 0, 99)
    for row, column, value in cells:
        wild = X.copy()
        wild[row, column] = value
        model = clone(CLASSIFIERS[name]).fit(wild, y)
        assert 1 - model.score(X_test, y_test) < error + 0.03


@pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")
@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - {"neurons", "reduced"}))
def test_a_rare_class_far_away_is_no_error_of_typing(name):
    """One row in a hundred, 300 deviations from all others. (Whether a few neurons or four kernels
    represent it depends on the start.)
    """
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 100 == 0
    X = rng.normal(size=(1000, 3)) + 300 * np.outer(y, [1, 0, 0])
    model = clone(CLASSIFIERS[name]).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) == 1
    if hasattr(model, "score_samples"):
        assert model.score_samples(X[500:][y[500:]]).min() > -100


def test_units_are_those_of_the_other_cells_on_every_backend():
    """A rare one among zeros is not wild: all but zeros are too few to have a unit."""
    array = pytest.importorskip("dask.array")
    X, y = apart(300, 0)
    X[5, 1], X[7, 2], X[:, 3] = 1e6, np.nan, np.arange(300) < 3
    tame = np.delete(X, 5, axis=0)[:, 1]
    for rows in (as_rows(X, y), as_rows(*(array.from_array(a, chunks=70) for a in (X, y)))):
        scale = surveyed(rows, np.arange(2)).scale
        assert scale.mean[1] == pytest.approx(tame.mean(), rel=1e-9)
        assert_allclose(scale.variance[[1, 3]], [tame.var(), X[:, 3].var()], rtol=1e-9)
        assert np.isfinite(scale.reach).tolist() == [False, True, False, False, False]
