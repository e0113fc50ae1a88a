"""Weights, scales and starts beyond reason: an answer that is finite, or a sentence that names what
is wrong.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from zoo import fitted, table

from kernelpool import (
    CompetitiveNeuronsClassifier,
    ParzenClassifier,
    RBFNetworkClassifier,
    SharedKernelClassifier,
    Training,
)
from kernelpool.errors import KernelpoolError


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(2, size=n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", ["em", Training(n_folds=2)], ids=["em", "conditional"])
def test_a_class_of_one_light_row_does_not_stop_the_fit(family, training):
    x, y = rows(100)
    y[0] = 2
    weight = np.where(np.arange(100) == 0, 5e-4, 1.0)
    settings = {"covariance_type": family, "training": training, "max_iter": 10}
    model = SharedKernelClassifier.prbf(sharing=0.0, random_state=0, **settings)
    model.fit(x, y, sample_weight=weight)
    assert np.isfinite(model.predict_proba(x)).all()
    density = model.log_density(x)[:, 2]
    assert np.isfinite(density).all()
    assert density[0] == density.max()  # its kernel lies at its row


@pytest.mark.parametrize("name", ["em", "average", "parzen", "pool"])
@pytest.mark.parametrize("far", [1e3, 1e60, 1e150])
def test_kernel_posteriors_sum_to_one_however_far_the_row(name, far):
    X, _ = table(missing=0)
    posterior = fitted(name).kernel_posterior(X.assign(age=far * X["age"]))
    assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    "cls",
    [SharedKernelClassifier, ParzenClassifier, RBFNetworkClassifier, CompetitiveNeuronsClassifier],
)
@pytest.mark.parametrize("weight", [5e-324, 1e-285, 1e308])
def test_weights_out_of_range_are_named(cls, weight):
    x, y = rows()
    match = r"sample_weight must sum to a number between 1e-280 and 1e\+280"
    with pytest.raises(KernelpoolError, match=match):
        cls(random_state=0).fit(x, y, sample_weight=np.full(300, weight))


def test_features_that_can_just_be_squared_are_fitted():
    x, y = rows()
    model = SharedKernelClassifier.prbf(4, covariance_type="diag", random_state=0)
    expected = model.fit(x, y).predict_proba(x)
    x = x * [1, 1e-140, 1]
    assert_allclose(model.fit(x, y).predict_proba(x), expected, rtol=1e-6)
