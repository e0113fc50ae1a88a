"""`standardize`: spherical kernels that are round among features of variance one, whatever the
units.
"""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from kernelpool import SharedKernelClassifier, Start

SHIFT, UNIT = np.array([5.0, -2.0, 0.0]), np.array([1e3, 1e-2, 7.0])
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
    np.testing.assert_allclose(
        inside.predict_proba(x), behind.predict_proba(scaler.transform(x)), atol=1e-6
    )
    jacobian = np.log(scaler.scale_).sum()
    np.testing.assert_allclose(
        inside.log_density(x), behind.log_density(scaler.transform(x)) - jacobian, rtol=1e-8
    )
    np.testing.assert_allclose(inside.means_, scaler.inverse_transform(behind.means_), rtol=1e-7)
    np.testing.assert_allclose(
        inside.covariances_, behind.covariances_[:, None] * scaler.scale_**2, rtol=1e-7
    )
    assert (inside.covariance_type_, behind.covariance_type_) == ("diag", "spherical")
    assert inside.n_parameters() == behind.n_parameters()
    np.testing.assert_allclose(
        inside.kernel_overlap(x, y), behind.kernel_overlap(scaler.transform(x), y), atol=1e-9
    )
    means, variances = inside.subkernels(x, y)
    expected = behind.subkernels(scaler.transform(x), y)
    np.testing.assert_allclose(means, expected[0] * scaler.scale_ + scaler.mean_, rtol=1e-7)
    np.testing.assert_allclose(variances, expected[1][:, :, None] * scaler.scale_**2, rtol=1e-7)


def test_without_it_units_matter_and_the_papers_network_is_without(blobs):
    x, y = blobs
    settings = {"training": "em", "standardize": False, **SETTINGS}
    here = SharedKernelClassifier(6, **settings).fit(x, y)
    there = SharedKernelClassifier(6, **settings).fit(in_other_units(x), y)
    assert abs(there.predict_proba(in_other_units(x)) - here.predict_proba(x)).max() > 0.1
    assert here.covariances_.shape == (6,)
    assert SharedKernelClassifier.prbf().standardize is False
    assert SharedKernelClassifier.auto().standardize is True


def test_a_warm_start_and_given_kernels_go_on_from_there(blobs):
    x, y = blobs
    x = in_other_units(x)
    model = SharedKernelClassifier(6, training="em", warm_start=True, tol=1e-3, **SETTINGS).fit(
        x, y
    )
    before = model.objective_
    model.set_params(tol=1e-7).fit(x, y)
    assert model.objective_ > before
    assert model.covariance_type_ == "diag"
    np.testing.assert_allclose(
        np.ptp(model.covariances_ / model.covariances_[:, :1], axis=0), 0, atol=1e-9
    )  # still round
    given = Start(means=model.means_, covariances=model.covariances_, mixing=model.mixing_)
    again = SharedKernelClassifier(6, training="em", tol=1e-7, init=given, **SETTINGS).fit(x, y)
    assert again.objective_ == pytest.approx(model.objective_, abs=1e-6)
