"""The mixture of neurons as users see it: predictions, parameters, messages."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.datasets import load_iris

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.errors import UnfinishedWarning
from kernelpool.neurons import GradientRule


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def augmented(x):
    return np.column_stack([x, np.ones(len(x))])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("option", [None, "local", "margin"])
def test_predictions_are_mean_outputs_in_the_units_of_the_input(iris, n_classes, option):
    x, y = (a[iris[1] >= 3 - n_classes] for a in iris)
    x = x * [100, 0.01, 1, 1] + [5000, -3, 0, 0]
    options = {} if option is None else {option: True}
    model = CompetitiveNeuronsClassifier(4, random_state=0, tol=1e-3, **options).fit(x, y)
    weight = model.weights_.reshape(4, -1, 5)
    activation = np.einsum("nd,jkd->njk", augmented(x), weight)
    output = softmax(activation, axis=2) if n_classes == 3 else expit(activation)
    if option == "margin":
        output = np.clip(0.5 + 0.5 * activation, 0, 1)
    share = np.tile(model.mixing_, (len(x), 1))
    if option == "local":  # a neuron is weighted by its density
        density = norm(model.means_, np.sqrt(model.covariances_)).logpdf(x[:, None]).sum(axis=2)
        share = softmax(np.log(share) + density, axis=1)
    mean = np.einsum("njk,nj->nk", output, share)
    probability = np.hstack([1 - mean, mean]) if n_classes == 2 else mean
    probability /= probability.sum(axis=1, keepdims=True)
    decision = probability[:, 1] - 0.5 if n_classes == 2 else probability
    assert_allclose(model.predict_proba(x), probability, rtol=1e-7, atol=1e-12)
    assert_allclose(model.decision_function(x), decision, atol=1e-8)


def test_neuron_posterior_is_bayes_rule_with_the_class_summed_out(plane):
    x, y = plane
    model = CompetitiveNeuronsClassifier(3, precision=6.0, random_state=0).fit(x, y)
    f = expit(augmented(x) @ model.weights_.T)
    joint = model.mixing_ * (np.exp(-3 * f**2) + np.exp(-3 * (1 - f) ** 2))
    assert_allclose(model.neuron_posterior(x), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8)


def test_too_few_sweeps_are_told(plane):
    with pytest.warns(UnfinishedWarning, match="max_iter=1 sweeps.*Raise max_iter, or tol"):
        CompetitiveNeuronsClassifier(2, max_iter=1, random_state=0).fit(*plane)


def test_a_learning_rate_beyond_numbers_is_told(plane):
    model = CompetitiveNeuronsClassifier(
        2, solver=GradientRule(1e60), margin=True, max_iter=50, random_state=0
    )
    with pytest.warns(
        UnfinishedWarning, match="left the range of numbers at sweep .: lower learning_rate"
    ):
        model.fit(*plane)
    assert np.isfinite(model.predict_proba(plane[0])).all()
