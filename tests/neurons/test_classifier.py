"""The mixture of neurons as users see it: scikit-learn's contract, known limits, bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.errors import UnfinishedWarning
from kernelpool.neurons import GradientRule
from kernelpool.neurons.network import Competitive
from papers.data.generators import make_one_against_two


@pytest.fixture(scope="module")
def plane():
    return make_one_against_two(300, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def augmented(x):
    return np.column_stack([x, np.ones(len(x))])


# -- the objective ---------------------------------------------------------------------------------


PARAMETERS = {
    "local": st.booleans(),
    "margin": st.booleans(),
    "precision": st.sampled_from([0.03, 4, 30]),
    "repulsion": st.sampled_from([0, 0.1, 20]),
    "random_state": st.integers(0, 10**6),
}


@settings(max_examples=8, deadline=None)
@given(n_classes=st.sampled_from([2, 3]), parameters=st.fixed_dictionaries(PARAMETERS))
@pytest.mark.filterwarnings("ignore:EM stopped")
def test_the_bound_lies_between_objectives_that_never_fall(n_classes, parameters):
    rng = np.random.default_rng(parameters["random_state"])
    y = np.arange(80) % n_classes
    x = rng.normal(size=(80, 2)) * rng.uniform(0.1, 10, size=2) + rng.normal(size=(n_classes, 2))[y]
    model = CompetitiveNeuronsClassifier(3, max_iter=12, tol=0, **parameters)
    model.fit(x, y, sample_weight=rng.uniform(0, 2, size=80))
    slack = 1e-9 * (1 + abs(model.objective_))
    assert (model.history_[:-1] - slack <= model.bound_history_[1:]).all()
    assert (model.bound_history_[1:] <= model.history_[1:] + slack).all()
    assert (model.penalty_history_ <= 0).all()
    assert len(model.history_) == len(model.penalty_history_)
    assert model.mixing_.sum() == pytest.approx(1)


@pytest.mark.parametrize("precision", [0.5, 8.0])
def test_tol_is_in_units_of_the_precision(plane, precision):
    model = CompetitiveNeuronsClassifier(4, precision=precision, tol=1e-3, random_state=0).fit(
        *plane
    )
    *before, last = np.diff(model.history_)
    assert last < 1e-3 * precision <= min(before)


# -- limits ----------------------------------------------------------------------------------------


def test_one_neuron_is_a_least_squares_fit(plane):
    x, y = plane
    model = CompetitiveNeuronsClassifier(1, decay=0, tol=1e-10, random_state=0).fit(x, y)
    reference = least_squares(lambda w: expit(augmented(x) @ w) - y, np.zeros(3), xtol=1e-12)
    np.testing.assert_allclose(model.weights_[0], reference.x, rtol=1e-3)


def test_one_margin_neuron_is_a_support_vector_machine(plane):
    x, y = plane
    x = StandardScaler().fit_transform(x)
    model = CompetitiveNeuronsClassifier(1, margin=True, decay=0.5, tol=1e-10, random_state=0).fit(
        x, y
    )
    # ½ sum (hinge / 2)² + decay / 2 |w|² is decay (½ |w|² + C sum hinge²) with C = 1 / (8 decay);
    # the bias is hardly punished
    machine = LinearSVC(
        C=1 / (8 * 0.5), intercept_scaling=1e3, tol=1e-10, max_iter=100_000, random_state=0
    ).fit(x, y)
    np.testing.assert_allclose(model.weights_[0, :-1], machine.coef_[0], rtol=1e-3)
    assert model.weights_[0, -1] == pytest.approx(machine.intercept_[0], abs=1e-3)


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
    np.testing.assert_allclose(model.predict_proba(x), probability, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(x), decision, atol=1e-8)


def test_neuron_posterior_is_bayes_rule_with_the_class_summed_out(plane):
    x, y = plane
    model = CompetitiveNeuronsClassifier(3, precision=6.0, random_state=0).fit(x, y)
    f = expit(augmented(x) @ model.weights_.T)
    joint = model.mixing_ * (np.exp(-3 * f**2) + np.exp(-3 * (1 - f) ** 2))
    np.testing.assert_allclose(
        model.neuron_posterior(x), joint / joint.sum(axis=1, keepdims=True), rtol=1e-8
    )


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize(
    "change",
    [{"precision": 8.0}, {"repulsion": 5.0}, {"decay": 1.0}, {"local": True}, {"margin": True},
     {"max_iter": 2}, {"tol": 1e-1}, {"random_state": 1}, {"solver": "gradient"}],
)  # fmt: skip
def test_every_parameter_changes_something(plane, change):
    x, y = plane
    base = {"n_neurons": 3, "random_state": 0}
    reference = CompetitiveNeuronsClassifier(**base).fit(x, y).predict_proba(x)
    changed = CompetitiveNeuronsClassifier(**{**base, **change}).fit(x, y).predict_proba(x)
    assert np.abs(changed - reference).max() > 1e-6


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_the_default_learning_rate_is_four_neurons_over_the_rows(plane):
    default, given = (
        CompetitiveNeuronsClassifier(3, solver=solver, max_iter=3, random_state=0).fit(*plane)
        for solver in ("gradient", GradientRule(4 * 3 / 300))
    )
    np.testing.assert_allclose(default.weights_, given.weights_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_the_printed_rule_may_lower_its_objective_and_keeps_what_it_reaches(plane):
    x, y = plane
    settings = {"solver": "gradient", "precision": 0.03, "repulsion": 0.01, "tol": 0}
    model = CompetitiveNeuronsClassifier(4, max_iter=60, random_state=0, **settings).fit(x, y)
    assert model.n_iter_ == 60
    assert np.isnan(model.bound_history_).all()
    assert np.diff(model.history_).min() < 0
    assert model.objective_ == model.history_[-1] < max(model.history_)


def test_the_best_of_several_starts_is_kept(plane):
    x, y = plane
    few, many = (
        CompetitiveNeuronsClassifier(3, precision=8, n_init=n, random_state=1).fit(x, y)
        for n in (1, 4)
    )
    assert many.objective_ > few.objective_


def test_an_interrupted_fit_keeps_what_it_has(plane, monkeypatch):
    sweep = Competitive.sweep
    calls = itertools.count()

    def interrupted(self, *args):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return sweep(self, *args)

    monkeypatch.setattr(Competitive, "sweep", interrupted)
    model = CompetitiveNeuronsClassifier(3, tol=0, n_init=2, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="best parameters so far"):
        model.fit(*plane)
    assert model.score(*plane) > 0.6


# -- bad input -------------------------------------------------------------------------------------


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
