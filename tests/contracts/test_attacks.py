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
    Start,
    Training,
)
from kernelpool.errors import KernelpoolError

FAMILIES = ["spherical", "diag", "full", "tied"]


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(2, size=n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        *(
            SharedKernelClassifier.prbf(
                sharing=0.0, covariance_type=family, random_state=0, max_iter=20
            )
            for family in FAMILIES
        ),
        SharedKernelClassifier.prbf(
            sharing=0.0,
            covariance_type="full",
            random_state=0,
            training=Training(n_folds=2),
            max_iter=5,
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_class_of_one_light_row_does_not_stop_the_fit(model):
    x, y = rows(100)
    y[0] = 2
    weight = np.where(np.arange(100) == 0, 5e-4, 1.0)
    model.fit(x, y, sample_weight=weight)
    assert np.isfinite(model.predict_proba(x)).all()
    assert np.isfinite(model.score_samples(x)).all()
    density = model.log_density(x)[:, 2]
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
    with pytest.raises(
        KernelpoolError, match="sample_weight must sum to a number between 1e-280 and 1e\\+280"
    ):
        cls(random_state=0).fit(x, y, sample_weight=np.full(300, weight))


@pytest.mark.parametrize("scale", [1e-155, 1e-300])
def test_features_too_small_to_be_squared_are_named(scale):
    cls, (x, y) = SharedKernelClassifier.prbf, rows()
    with pytest.raises(
        KernelpoolError,
        match="Feature 1 of X is too small to be squared in float64; multiply X by a constant",
    ):
        cls(random_state=0).fit(x * [1, scale, 1], y)
    model = cls(4, covariance_type="diag", random_state=0).fit(x * [1, 1e-140, 1], y)
    assert_allclose(
        model.predict_proba(x * [1, 1e-140, 1]),
        cls(4, covariance_type="diag", random_state=0).fit(x, y).predict_proba(x),
        rtol=1e-6,
    )


def test_starts_out_of_reach_are_named():
    x, y = rows()
    with pytest.raises(
        KernelpoolError,
        match=r"means of Start must lie near the rows; one lies 1e\+300 standard deviations",
    ):
        SharedKernelClassifier.prbf(
            2, init=Start(means=[[1e300] * 3, [0.0] * 3]), random_state=0
        ).fit(x, y)
