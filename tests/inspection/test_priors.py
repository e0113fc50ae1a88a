"""Other class frequencies, against Bayes' rule and a likelihood on a grid."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from kernelpool import (
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    inspection,
)
from kernelpool.errors import KernelpoolError

TRUE = SharedKernelClassifier.from_parameters(
    means=[[0.0], [2.0], [5.0]],
    covariances=[1.0, 1.0, 1.0],
    mixing=np.eye(3),
    class_prior=[0.5, 0.3, 0.2],
    classes=["a", "b", "c"],
)


def normalized(joint):
    return joint / joint.sum(axis=1, keepdims=True)


EM = SharedKernelClassifier.prbf(3, random_state=0)
POOL = PooledClassifier([EM, ParzenClassifier()], n_folds=2, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        EM,
        SharedKernelClassifier.prbf(3, training="conditional", random_state=0),
        SharingAverageClassifier(SharedKernelClassifier.prbf(3, random_state=0, standardize=True)),
        ParzenClassifier(),
        ParzenClassifier("hypersphere", 1.0),
        POOL,
    ],
    ids=["em", "conditional", "average", "parzen", "hypersphere", "pool"],
)
def test_other_frequencies_follow_bayes_rule(model):
    x, y = TRUE.sample(150, random_state=0)
    model.fit(x, y)
    new = np.array([0.1, 0.1, 0.8])
    other = model.with_class_prior(new)
    before = model.predict_proba(x)
    found = other.predict_proba(x)
    near = {"rtol": 1e-6, "atol": 1e-12}
    assert_allclose(found, normalized(before * new / model.class_prior_), **near)
    assert_array_equal(model.predict_proba(x), before)  # the model itself is as it was
    joint = other.log_density(x) + np.log(new)
    assert_allclose(other.score_samples(x), np.logaddexp.reduce(joint, axis=1))
    assert (other.sample(2000, random_state=0)[1] == "c").mean() == pytest.approx(0.8, abs=0.03)
    again = other.with_class_prior(model.class_prior_)
    assert_allclose(again.predict_proba(x), before, **near)
    if isinstance(model, SharedKernelClassifier | PooledClassifier):
        told = clone(model).set_params(class_prior=new).fit(x, y)
        assert_allclose(told.predict_proba(x), found, rtol=1e-5, atol=1e-12)


def test_whatever_stands_around_a_model_takes_them_too():
    x, y = TRUE.sample(100, random_state=0)
    model = make_pipeline(MinMaxScaler((0, 2)), FrozenEstimator(TRUE)).fit(x, y)
    wrapped = RejectClassifier(model, ambiguity=0.1).fit(x, y)
    before = wrapped.predict_proba(x)
    found = inspection.with_class_prior(wrapped, "balanced").predict_proba(x)
    assert_allclose(found, normalized(before / TRUE.class_prior_))
    assert_array_equal(wrapped.predict_proba(x), before)
    with pytest.raises(KernelpoolError, match="RBFNetworkClassifier cannot take other class freq"):
        inspection.with_class_prior(RBFNetworkClassifier(5, random_state=0).fit(x, y), "balanced")


def test_frequencies_of_unlabeled_rows_are_the_most_likely_ones_with_their_interval():
    shifted = TRUE.with_class_prior([0.2, 0.7, 0.1])
    x, _ = shifted.sample(300, random_state=1)
    density = np.exp(TRUE.log_density(x))
    found = inspection.estimate_class_prior(TRUE, x)
    a, b = np.mgrid[0:1:201j, 0:1:201j].reshape(2, -1)
    grid = np.column_stack([a, b, 1 - a - b])[a + b <= 1]
    likelihood = np.log(np.maximum(density @ grid.T, 1e-300)).sum(axis=0)
    best = likelihood.argmax()
    assert_allclose(found.class_prior, grid[best], atol=0.006)
    near = likelihood > likelihood[best] - chi2.ppf(0.95, 1) / 2
    assert_allclose(found.low, grid[near].min(axis=0), atol=0.008)
    assert_allclose(found.high, grid[near].max(axis=0), atol=0.008)
    before = np.log(density @ TRUE.class_prior_).sum()
    assert found.p_value == pytest.approx(chi2.sf(2 * (likelihood[best] - before), 2), rel=0.2)
    assert "They have changed (p = " in str(found)
    assert "not reliable: features have moved" in str(replace(found, moved=True))
    assert found.to_dict()["classes"][1]["label"] == "b"


def test_models_that_do_not_have_their_frequencies_are_given_them():
    x, y = TRUE.sample(200, random_state=0)
    model = LogisticRegression().fit(x, y)
    with pytest.raises(KernelpoolError, match=r"LogisticRegression does not have.*pass trained="):
        inspection.estimate_class_prior(model, x)
    given = inspection.estimate_class_prior(model, x, trained={"a": 0.5, "b": 0.3, "c": 0.2})
    assert given.n_rows == 200
    bayes = GaussianNB().fit(x, y)
    assert_allclose(inspection.estimate_class_prior(bayes, x).trained, bayes.class_prior_)
    with pytest.raises(KernelpoolError, match="confidence must lie between 0 and 1"):
        inspection.estimate_class_prior(TRUE, x, confidence=2)
