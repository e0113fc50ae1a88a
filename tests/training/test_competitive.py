"""Training of competing neurons: its solver, and records in and out."""

import numpy as np
import pytest

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.datasets import make_clouds
from kernelpool.training.competitive import (
    CompetitiveConfig,
    Lbfgs,
    fit_neurons,
    weights_in,
    weights_out,
)
from kernelpool.training.prepare import training_data


def test_the_solver_never_climbs():
    weight = np.zeros((1, 1, 2))

    def steep(w):
        return float(np.sum((w - 3) ** 2)), 2 * (w - 3)

    def misleading(w):
        return float(np.sum(w)) + 5, -np.ones_like(w)

    found, cost = Lbfgs(10.0, 20)(steep, weight, steep(weight))
    np.testing.assert_allclose(found, 3, atol=1e-4)
    assert cost == pytest.approx(0, abs=1e-6)
    found, cost = Lbfgs(10.0, 20)(misleading, weight, misleading(weight))
    np.testing.assert_array_equal(found, weight)
    assert cost == 5


def test_the_estimator_is_a_shell():
    """Settings and rows in, parameters out: what the estimator keeps is what the training returns."""
    X, y = make_clouds(200, random_state=0)
    model = CompetitiveNeuronsClassifier(3, max_iter=5, tol=0.1, random_state=0)
    seed = np.random.RandomState(0).randint(2**31)
    config = CompetitiveConfig(
        3, 4.0, 0.1, None, "lbfgs", None, 20, False, False, "weights", 1, 5, 0.1, seed
    )
    found = fit_neurons(training_data(model, X, y, None, None, 1.0, None), config)
    assert not hasattr(model, "weights_")
    np.testing.assert_array_equal(found.attributes["weights_"], model.fit(X, y).weights_)
    np.testing.assert_array_equal(found.history, model.history_)


def test_weights_in_and_out_of_a_frame():
    from kernelpool.rows import Frame

    rng = np.random.default_rng(0)
    weight, x = rng.normal(size=(3, 2, 5)), rng.normal(size=(7, 4))
    frame = Frame(rng.normal(size=4), rng.uniform(0.5, 2, size=4))
    inside = np.column_stack([(x - frame.origin) / frame.unit, np.ones(7)])
    out = weights_out(weight, frame)
    np.testing.assert_allclose(np.column_stack([x, np.ones(7)]) @ out[1].T, inside @ weight[1].T)
    np.testing.assert_allclose(weights_in(out, frame), weight)
