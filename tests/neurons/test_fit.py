"""Training of neurons: the objective, known limits, starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neurons.test_classifier import augmented
from numpy.testing import assert_allclose
from scipy.optimize import least_squares
from scipy.special import expit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.neurons import GradientRule

pytestmark = pytest.mark.filterwarnings("ignore:EM stopped")

PARAMETERS = {
    "local": st.booleans(),
    "margin": st.booleans(),
    "precision": st.sampled_from([0.03, 4, 30]),
    "repulsion": st.sampled_from([0, 0.1, 20]),
    "random_state": st.integers(0, 10**6),
}


@settings(max_examples=8, deadline=None)
@given(n_classes=st.sampled_from([2, 3]), parameters=st.fixed_dictionaries(PARAMETERS))
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


def test_one_neuron_is_a_least_squares_fit(plane):
    x, y = plane
    model = CompetitiveNeuronsClassifier(1, decay=0, tol=1e-10, random_state=0).fit(x, y)
    reference = least_squares(lambda w: expit(augmented(x) @ w) - y, np.zeros(3), xtol=1e-12)
    assert_allclose(model.weights_[0], reference.x, rtol=1e-3)


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
    assert_allclose(model.weights_[0, :-1], machine.coef_[0], rtol=1e-3)
    assert model.weights_[0, -1] == pytest.approx(machine.intercept_[0], abs=1e-3)


def test_the_default_learning_rate_is_four_neurons_over_the_rows(plane):
    default, given = (
        CompetitiveNeuronsClassifier(3, solver=solver, max_iter=3, random_state=0).fit(*plane)
        for solver in ("gradient", GradientRule(4 * 3 / 300))
    )
    assert_allclose(default.weights_, given.weights_, rtol=1e-12)


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
